"""Control laws at force level against the plant."""

import numpy as np
import pytest
from support.machines import URDF

import psdyn_ros
from psdyn_ros.control.laws.computed_torque import LAWS, ComputedTorque, PdGravity
from psdyn_ros.control.reference.trajectory import Waypoints
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.tools.demo.demonstration import demonstration

PERIOD = 0.002


@pytest.fixture(scope='module')
def crane():
    return psdyn_ros.load(URDF / 'hiab_xs031.urdf')


def law_of(kind, machine, bandwidth):
    return kind(machine, np.full(machine.dof, bandwidth**2), np.full(machine.dof, 2.0 * bandwidth))


def run(law, plant, seconds):
    """(N, dof) differences between motion and reference of the law in closed loop with the plant."""
    errors = []
    for k in range(round(seconds / PERIOD)):
        force = law.update(k * PERIOD, plant.x.copy(), plant.xd.copy())
        errors.append(plant.x - law.desired[0])
        plant.step(force, PERIOD)
    return np.array(errors)


@pytest.mark.parametrize('kind', LAWS.values())
def test_without_a_reference_the_first_position_is_held(crane, kind):
    law, plant = law_of(kind, crane, 6.0), Plant(crane, period=PERIOD)
    assert law.update(0.0, plant.x, plant.xd) == pytest.approx(crane.gravity_forces(plant.x))
    assert np.abs(run(law, plant, 1.0)).max() <= 1e-9
    assert not law.saturations.any()


def test_an_error_decays_as_the_gains_say_on_every_actuator(crane):
    plant = Plant(crane, period=PERIOD / 8, command_timeout=9.0)
    law = law_of(ComputedTorque, crane, 10.0)
    law.reference.hold(crane.initial_position)
    off = np.array([0.02, 0.004, -0.003, 0.01])
    plant.x[:] += off
    for k in range(8 * 100):
        plant.step(law.update(k * PERIOD / 8, plant.x.copy(), plant.xd.copy()), PERIOD / 8)
    t = 100 * PERIOD
    assert plant.x - crane.initial_position == pytest.approx(off * (1.0 + 10.0 * t) * np.exp(-10.0 * t), rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['hiab_xs031', 'hiab_xs031_lift'])
def test_computed_torque_follows_the_demonstration_within_the_bounds_and_far_better_than_the_baseline(name):
    machine = psdyn_ros.load(URDF / f'{name}.urdf')
    rms = {}
    for kind, bandwidth in ((ComputedTorque, 15.0), (PdGravity, 6.0)):
        law, plant = law_of(kind, machine, bandwidth), Plant(machine, period=PERIOD)
        law.update(0.0, plant.x, plant.xd)
        law.reference.follow(demonstration(machine), 0.0)
        rms[kind] = np.sqrt(np.mean(run(law, plant, 10.0)**2, axis=0))
    assert (rms[ComputedTorque] <= 0.5e-3).all()
    assert (rms[PdGravity] >= 10.0 * rms[ComputedTorque]).all()


def test_the_baseline_is_what_its_formula_says(crane, rng):
    law = law_of(PdGravity, crane, 6.0)
    start = crane.initial_position
    law.update(0.0, start, np.zeros(4))
    x, xd = start + rng.uniform(-0.01, 0.01, 4), rng.uniform(-0.01, 0.01, 4)
    expected = crane.gravity_forces(start) + np.diag(crane.mass_matrix(start)) * (36.0 * (start - x) - 12.0 * xd)
    assert law.update(0.0, x, xd) == pytest.approx(expected)


@pytest.mark.parametrize('kind', LAWS.values())
def test_forces_are_clamped_to_the_limits_and_counted(crane, kind):
    law = law_of(kind, crane, 200.0)
    law.reference.hold(crane.initial_position)
    force = law.update(0.0, crane.initial_position + [0.0, 0.2, 0.0, 0.0], np.zeros(4))
    assert (np.abs(force) <= crane.limits.effort).all()
    assert law.saturations[1] == 1
    law.update(0.0, crane.initial_position, np.zeros(4))
    assert law.saturations[1] == 1


@pytest.mark.parametrize('kind', LAWS.values())
@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_what_is_not_finite_raises_and_gives_no_force(crane, kind, bad):
    law = law_of(kind, crane, 6.0)
    law.update(0.0, crane.initial_position, np.zeros(4))
    with pytest.raises(psdyn_ros.PsdynError, match='finite'):
        law.update(0.0, crane.initial_position, np.array([0.0, bad, 0.0, 0.0]))


def test_a_stroke_at_which_no_loop_closes_is_named(crane):
    law = law_of(ComputedTorque, crane, 6.0)
    law.reference.hold(crane.initial_position)
    with pytest.raises(psdyn_ros.UnreachableStrokeError, match='lift_cylinder'):
        law.update(0.0, crane.initial_position + [0.0, 5.0, 0.0, 0.0], np.zeros(4))


def test_new_gains_count_from_the_next_update_on(crane):
    law = law_of(ComputedTorque, crane, 6.0)
    law.reference.hold(crane.initial_position)
    off = crane.initial_position + [0.01, 0.0, 0.0, 0.0]
    law.update(0.0, off, np.zeros(4))
    law.set_gains(np.zeros(4), np.zeros(4))
    assert law.update(0.0, off, np.zeros(4)) == pytest.approx(crane.gravity_forces(off))


def test_a_trajectory_starts_from_the_reference_and_not_from_the_measurement(crane):
    law = law_of(ComputedTorque, crane, 6.0)
    law.update(0.0, crane.initial_position, np.zeros(4))
    law.update(0.1, crane.initial_position + 0.001, np.zeros(4))
    law.reference.follow(Waypoints(crane.actuators, [2.0], [crane.initial_position + 0.05]), 0.1)
    law.update(0.1, crane.initial_position + 0.001, np.zeros(4))
    assert law.desired[0] == pytest.approx(crane.initial_position)
