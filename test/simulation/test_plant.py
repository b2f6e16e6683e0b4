"""The plant: held until commanded, held again when commands stop, and honest mechanics in between."""

import numpy as np
import pytest
from support.paths import CONFIG

import psdyn_ros
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import FAULT, HELD, RUNNING, Plant

PERIOD = 0.002


def hydraulic(machine):
    return HydraulicPlant(machine, read_hydraulics(CONFIG / 'hiab_xs031_hydraulics.yaml', machine.actuators),
                          period=PERIOD)


@pytest.fixture
def plant(crane):
    return Plant(crane, period=PERIOD)


def test_nothing_moves_before_the_first_command(crane, plant):
    plant.step(None, 1.0)
    assert plant.state == HELD
    assert plant.x.tolist() == crane.initial_position.tolist() and not plant.xd.any()
    assert plant.force == pytest.approx(crane.gravity_forces(plant.x))
    assert plant.time == pytest.approx(1.0)


def test_gravity_forces_keep_it_where_it_is(crane, plant):
    plant.step(crane.gravity_forces(plant.x), 0.4)
    assert plant.state == RUNNING
    assert plant.x == pytest.approx(crane.initial_position, abs=1e-6)


def test_a_force_accelerates_it_as_the_forward_dynamics_says(crane, plant):
    force = crane.gravity_forces(plant.x) + [500.0, 2000.0, -1000.0, 300.0]
    expected = crane.forward_dynamics(plant.x, plant.xd, force)
    plant.step(force, PERIOD)
    assert plant.xd / PERIOD == pytest.approx(expected, rel=0.05)
    assert plant.force == pytest.approx(force)


def test_it_is_held_again_when_commands_stop(crane):
    plant = Plant(crane, period=PERIOD, command_timeout=0.1)
    force = crane.gravity_forces(plant.x) + [2000.0, 0.0, 0.0, 0.0]
    plant.step(force, 0.1)
    assert plant.state == RUNNING and plant.xd[0] > 0.0
    plant.step(None, PERIOD)
    assert plant.state == HELD
    there = plant.x.copy()
    plant.step(None, 1.0)
    assert plant.x.tolist() == there.tolist() and not plant.xd.any()
    assert plant.force == pytest.approx(crane.gravity_forces(there))
    plant.step(force, PERIOD)
    assert plant.state == RUNNING


def test_a_command_lasts_for_its_timeout_and_not_a_step_longer(crane):
    plant = Plant(crane, period=PERIOD, command_timeout=10 * PERIOD)
    plant.step(crane.gravity_forces(plant.x), PERIOD)
    states = []
    for _ in range(12):
        plant.step(None, PERIOD)
        states.append(plant.state)
    assert states == [RUNNING] * 9 + [HELD] * 3


def test_zero_force_is_a_command_and_drops_the_load(crane, plant):
    plant.step(np.zeros(4), 0.3)
    assert plant.state == RUNNING
    assert crane.energy(plant.x, 0 * plant.xd)[1] < crane.energy(crane.initial_position, plant.xd)[1] - 100.0


def test_many_periods_at_once_are_as_many_steps(crane):
    once, often = Plant(crane, period=PERIOD), Plant(crane, period=PERIOD)
    force = crane.gravity_forces(once.x) + [500.0, 500.0, 100.0, 50.0]
    once.step(force, 20 * PERIOD)
    often.step(force, PERIOD)
    for _ in range(19):
        often.step(None, PERIOD)
    assert once.x.tolist() == often.x.tolist() and once.xd.tolist() == often.xd.tolist()


def test_energy_changes_by_the_work_of_the_actuators_and_the_error_has_the_order_of_the_method(crane):
    def defect(substeps):
        plant = Plant(crane, period=0.05, substeps=substeps, command_timeout=10.0)
        force = crane.gravity_forces(plant.x) + [800.0, 1500.0, -800.0, 150.0]
        start = sum(crane.energy(plant.x, plant.xd))
        plant.step(force, 0.3)
        work = force @ (plant.x - crane.initial_position)
        return abs(sum(crane.energy(plant.x, plant.xd)) - start - work) / abs(work)

    coarse, fine = defect(2), defect(8)
    assert fine < 1e-6
    assert coarse / fine > 4.0**3.5        # fourth order: 256


@pytest.mark.slow
def test_it_stops_at_its_limits(crane):
    plant = Plant(crane, period=PERIOD, substeps=4, command_timeout=100.0)
    push = crane.gravity_forces(plant.x) + [0.0, 0.0, 0.0, 3000.0]
    highest = 0.0
    for _ in range(3000):
        push[:3] = crane.gravity_forces(plant.x)[:3] - 5e4 * plant.xd[:3]
        plant.step(push, PERIOD)
        highest = max(highest, plant.x[3])
    assert plant.state == RUNNING
    assert crane.limits.upper[3] - 0.01 < plant.x[3] < crane.limits.upper[3] + 0.005
    assert highest < crane.limits.upper[3] + 0.02


def test_forces_beyond_what_the_actuators_give_are_clamped_and_counted(crane, plant):
    plant.step(np.array([0.0, 1e9, -1e9, 0.0]), PERIOD)
    assert plant.force.tolist() == [0.0, crane.limits.effort[1], -crane.limits.effort[2], 0.0]
    assert plant.saturations == 1


class Failing:
    """An integrator that gives up, or that comes to nothing."""

    def __init__(self, status, value):
        self.status, self.value = status, value

    def step(self, x, xd, f):
        x[:] = self.value
        return self.status

    def error(self, status, x):
        return psdyn_ros.StateError('it gives up')


@pytest.mark.filterwarnings('ignore:overflow')
@pytest.mark.parametrize('integrator', [Failing(3, 0.0), Failing(0, np.nan), Failing(0, 1e200)])
def test_a_motion_that_cannot_go_on_is_a_fault_that_keeps_the_last_good_state(crane, plant, integrator):
    force = crane.gravity_forces(plant.x) + [500.0, 0.0, 0.0, 0.0]
    plant.step(force, 0.1)
    x, xd = plant.x.copy(), plant.xd.copy()
    plant._integrator = integrator
    plant.step(force, PERIOD)
    assert plant.state == FAULT and 'cannot be integrated' in plant.fault
    plant.step(force, 1.0)
    assert plant.x.tolist() == x.tolist() and plant.xd.tolist() == xd.tolist()
    plant.reset()
    assert plant.state == HELD and plant.x.tolist() == crane.initial_position.tolist()


def test_it_starts_where_it_is_told_to(crane):
    start = crane.initial_position + 0.05
    plant = Plant(crane, period=PERIOD, position=start)
    plant.step(crane.gravity_forces(start) + [1000.0, 0.0, 0.0, 0.0], 0.1)
    plant.reset()
    assert plant.x.tolist() == start.tolist() and plant.time == 0.0


def test_a_start_where_no_loop_closes_is_refused(crane):
    with pytest.raises(psdyn_ros.UnreachableStrokeError, match='lift_cylinder'):
        Plant(crane, period=PERIOD, position=[0.0, 5.0, 0.2, 0.2])

def test_actuator_without_a_command_is_held_alone(crane):
    """NaN is no command: the last one lasts for its timeout, then the brake; the others obey theirs."""
    plant = Plant(crane, period=PERIOD, command_timeout=0.1)
    force = crane.gravity_forces(plant.x) + [2000.0, 0.0, 0.0, 400.0]
    silent = np.where([True, False, False, False], np.nan, force)
    plant.step(np.full(4, np.nan), PERIOD)
    assert plant.state == HELD and plant.safe.all()
    plant.step(silent, PERIOD)
    assert plant.held == ('slew',) and plant.xd[3] > 0.0 and abs(plant.xd[0]) < 1e-9
    plant.step(force, PERIOD)
    assert plant.state == RUNNING and plant.xd[0] > 0.0
    for _ in range(round(0.1 / PERIOD) - 1):
        plant.step(silent, PERIOD)
    assert plant.state == RUNNING and plant.force == pytest.approx(force)
    plant.step(silent, PERIOD)
    assert plant.state == HELD and plant.held == ('slew',)
    there = plant.x.copy()
    for _ in range(150):
        plant.step(np.where([True, False, False, False], np.nan,
                            crane.gravity_forces(plant.x) - 5e4 * plant.xd), PERIOD)
    assert abs(plant.xd[0]) < 1e-6 and abs(plant.x[0] - there[0]) < 0.02 and not plant.fault
    assert plant.saturations == 0


@pytest.mark.parametrize('value, kind', [(np.inf, psdyn_ros.NonFiniteError), (-np.inf, psdyn_ros.NonFiniteError),
                                         ('up', psdyn_ros.ShapeError), (1j, psdyn_ros.ShapeError)])
@pytest.mark.parametrize('make', [lambda m: Plant(m, period=PERIOD), hydraulic])
def test_command_that_is_no_number_names_its_actuator(crane, make, value, kind):
    plant = make(crane)
    with pytest.raises(kind, match=f"command of 'tilt_cylinder' is .*{str(value)[-2:]}.*; expected a number, or NaN"):
        plant.step([0.0, 0.0, value, 0.0], PERIOD)
    assert plant.steps == 0 and plant.safe.all()


def test_status_of_a_step_is_told_in_words(crane):
    """Efforts that overflow: which machine, and of what."""
    plant = Plant(crane, period=PERIOD)
    plant._limit[:] = np.inf
    plant.step([0.0, 1e300, 0.0, 0.0], PERIOD)
    assert plant.state == FAULT and 'not finite' in plant.fault and 'status' not in plant.fault
