"""Laws on valves against the hydraulic plant: what they reach with an exact model, a wrong one, and bad input."""

import time
from dataclasses import fields, replace

import numpy as np
import pytest
from support.control.law_loop import tracked
from support.machines import URDF

import psdyn_ros
from psdyn_ros.control.laws.base import RAMP
from psdyn_ros.control.laws.valve_computed_torque import ValveControl
from psdyn_ros.control.laws.valve_gains import driven_inertia
from psdyn_ros.control.laws.valve_pid import ValvePid
from psdyn_ros.control.reference.trajectory import Waypoints
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.tools.studies.tracking_runs import CORNERS, LOOP_GAINS, PERIOD, REFERENCES, mistaken, plant_for
from psdyn_ros.tools.studies.tracking_runs import crane as crane_of

START = np.array([0.0, 0.2, 0.2, 0.2])


def follow(law, plant, seconds=10.0, late=1):
    """(N, 4) differences [mm, mrad] between motion and reference; measurements come `late` periods late."""
    errors = tracked(law, plant, REFERENCES['demonstration'](), seconds, late)
    assert not plant.fault
    return 1e3 * errors


def rms(errors):
    return np.sqrt(np.mean(errors[:, 1:]**2, axis=0))


def louder(law, factor):
    """The law with all gains of its loops multiplied."""
    names = [field.name for field in fields(law.gains) if field.name in LOOP_GAINS]
    law.set_gains(replace(law.gains, **{name: factor * getattr(law.gains, name) for name in names}))
    return law


# what they reach


@pytest.mark.slow
def test_with_an_exact_model_the_cylinders_follow_within_the_bounds_and_far_better_than_under_pid(crane, hydraulics):
    torque, pid = (follow(kind(crane, hydraulics, PERIOD), plant_for(START))
                   for kind in (ValveControl, ValvePid))
    assert (rms(torque) <= 0.1).all() and np.abs(torque[:, 1:]).max() <= 0.5
    assert (rms(pid) <= 5.0).all()          # no straw man
    assert (rms(pid) >= 15.0 * rms(torque)).all()
    assert np.abs(torque[:, 0]).max() <= 0.05       # slewing is at force level


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize('corner', CORNERS[1::4], ids=str)        # all: `psdyn_ros.tools.studies.tracking_study`
def test_with_a_wrong_model_they_still_do(hydraulics, corner):
    law = ValveControl(crane_of(corner.inertia), mistaken(hydraulics, corner), PERIOD)
    errors = follow(law, plant_for(START))
    assert (rms(errors) <= 1.2).all() and np.abs(errors[:, 1:]).max() <= 5.0
    assert not law.saturations.any()


@pytest.mark.slow
def test_half_as_much_gain_again_is_stable(crane, hydraulics):
    errors = follow(louder(ValveControl(crane, hydraulics, PERIOD), 1.5), plant_for(START), 5.0)
    assert (rms(errors) <= 0.15).all()


@pytest.mark.slow
def test_delay_that_stamps_tell_costs_little(crane, hydraulics):
    late, soon = (rms(follow(ValveControl(crane, hydraulics, PERIOD), plant_for(START), 5.0, late=periods))
                  for periods in (3, 1))
    assert (late <= 1.5 * soon + 0.05).all()


@pytest.mark.slow
def test_a_dead_band_that_is_known_is_jumped_over(crane, hydraulics):
    plant, known, unknown = plant_for(START), *(ValveControl(crane, hydraulics, PERIOD) for _ in range(2))
    for records in (plant.cylinder_records, known.cylinders):
        records['overlap_up'] = records['overlap_down'] = 0.05
    another = plant_for(START)
    another.cylinder_records['overlap_up'] = another.cylinder_records['overlap_down'] = 0.05
    assert (rms(follow(known, plant, 5.0)) <= 0.15).all()
    assert (rms(follow(unknown, another, 5.0)) >= 0.5).all()


# gains


def test_gains_of_the_crane_are_those_that_were_tried_on_it(crane, hydraulics):
    gains = ValveControl(crane, hydraulics, PERIOD).gains
    cylinders = slice(1, None)
    for name, value in (('stiffness', 25.0), ('damping', 10.0), ('integral', 10.0), ('flow_stiffness', [5.0, 5.0, 7.3]),
                        ('flow_integral', [15.0, 15.0, 32.0]), ('flow_decoupling', 0.3), ('force_gain', 10.0),
                        ('error_filter', 150.0), ('pressure_filter', 1000.0)):
        assert getattr(gains, name)[cylinders] == pytest.approx(value, rel=0.05), name
    assert gains.stiffness[0] == 225.0 and gains.damping[0] == 30.0
    assert gains.inertia == pytest.approx(np.diag(crane.mass_matrix(crane.initial_position)))


def test_slow_valves_and_twin_cylinders_are_allowed_for():
    excavator = psdyn_ros.load(URDF / 'excavator.urdf')
    hydraulics = read_hydraulics(find_config('excavator_hydraulics.yaml'), excavator.actuators)
    law = ValveControl(excavator, hydraulics, PERIOD)
    assert law.lag == pytest.approx(2.0 * 0.8 / (2.0 * np.pi * 15.0))
    assert (law.gains.force_gain * (law.lag + PERIOD) <= 0.1 + 1e-12).all()
    M = excavator.mass_matrix(excavator.initial_position)
    assert driven_inertia(excavator, M) == pytest.approx([M[0, 0], 0.5 * M[1, 1], 0.5 * M[1, 1], M[2, 2], M[3, 3]])


def test_louder_valves_follow_from_the_bandwidth_asked_for(crane, hydraulics):
    gains = ValveControl(crane, hydraulics, PERIOD, bandwidth=4.0, effort_bandwidth=8.0).gains
    assert gains.force_gain.tolist() == [4.0] * 4 and gains.stiffness.tolist() == [64.0, 4.0, 4.0, 4.0]


# one update after the other


@pytest.fixture
def plant():
    return plant_for(START)


@pytest.fixture(params=[ValveControl, ValvePid])
def law(request, crane, hydraulics):
    return request.param(crane, hydraulics, PERIOD)


def pressures(plant):
    return plant.fluid[:, :2].copy()


def test_without_a_reference_the_first_position_is_held_and_valves_stay_shut(law, plant):
    start = plant.x.copy()
    for k in range(250):
        command = law.update(k * PERIOD, plant.x.copy(), plant.xd.copy(), pressures(plant))
        assert np.abs(command[1:]).max() <= 1e-3
        plant.step(command, PERIOD)
    assert np.abs(plant.x - start).max() <= 1e-5 and not law.saturations.any()


def test_pressures_that_the_model_does_not_expect_move_nothing_at_the_start(crane, hydraulics, plant):
    law = ValveControl(crane, hydraulics, PERIOD)
    off = pressures(plant) + [8e5, 0.0]
    for k in range(50):
        assert np.abs(law.update(k * PERIOD, plant.x, plant.xd, off)[1:]).max() <= 1e-3
    # afterwards it is a change of force, which the valves act upon
    assert (law.update(0.1, plant.x, plant.xd, pressures(plant))[1:] > 0.01).all()


def test_an_axis_without_a_cylinder_gets_computed_torque(law, crane, plant):
    law.hold(START)
    x, xd = START + [0.01, 0.0, 0.0, 0.0], np.array([0.02, 0.01, 0.0, -0.03])
    command = law.update(0.0, x, xd, pressures(plant))
    expected = crane.inverse_dynamics(x, xd, np.array([225.0 * -0.01, 0.0, 0.0, 0.0]))
    assert command[0] == pytest.approx(expected[0], rel=1e-9)


def test_commands_are_clipped_and_counted_and_the_integral_does_not_wind_up(law, plant):
    law.hold(START)
    far = START - [0.0, 0.5, 0.5, 2.0] * np.array([0.0, 0.38, 0.2, 0.09])
    for k in range(500):
        command = law.update(k * PERIOD, far, plant.xd, pressures(plant))
    assert (command[1:] <= 1.0).all()
    law.set_gains(replace(law.gains, **{name: 1e2 * getattr(law.gains, name) for name in ('proportional',
                  'flow_stiffness') if hasattr(law.gains, name)}))
    for k in range(round(RAMP / PERIOD) + 2):
        law.update(1.0 + k * PERIOD, far, plant.xd, pressures(plant))
    before = law.saturations.copy()
    law.update(2.0, far, plant.xd, pressures(plant))
    grown = law._law['sum'].copy()
    for k in range(1, 100):
        assert (law.update(2.0 + k * PERIOD, far, plant.xd, pressures(plant))[1:] == 1.0).all()
    assert (law.saturations - before)[1:].tolist() == [100] * 3
    assert law._law['sum'][1:] == pytest.approx(grown[1:], rel=1e-12)


@pytest.mark.parametrize('what', range(3))
@pytest.mark.parametrize('bad', [np.nan, np.inf])
def test_what_is_not_finite_raises_and_leaves_no_trace(crane, hydraulics, plant, what, bad):
    spoilt, clean = (ValveControl(crane, hydraulics, PERIOD) for _ in range(2))
    measured = [plant.x.copy(), plant.xd.copy(), pressures(plant)]
    for law in (spoilt, clean):
        law.update(0.0, *measured)
    wrong = [value.copy() for value in measured]
    wrong[what].flat[1] = bad
    with pytest.raises(psdyn_ros.PsdynError, match='finite'):
        spoilt.update(PERIOD, *wrong)
    moved = [measured[0] + 1e-4, *measured[1:]]
    commands = [law.update(2 * PERIOD, *moved) for law in (spoilt, clean)]
    assert np.isfinite(commands[0]).all() and commands[0] == pytest.approx(commands[1], abs=2e-3)


@pytest.mark.parametrize('shapes', [(3, 4, (3, 2)), (4, 5, (3, 2)), (4, 4, (2, 2)), (4, 4, (6,))])
def test_wrong_shapes_are_refused(law, shapes):
    with pytest.raises(psdyn_ros.ShapeError, match='expected'):
        law.update(0.0, *(np.zeros(shape) for shape in shapes))


def test_a_stroke_at_which_no_loop_closes_is_named(law, plant):
    law.hold(START)
    with pytest.raises(psdyn_ros.UnreachableStrokeError, match='lift_cylinder'):
        law.update(0.0, START + [0.0, 5.0, 0.0, 0.0], plant.xd, pressures(plant))


def test_lists_and_other_layouts_give_the_same_command(law, plant):
    x, xd, p = plant.x.copy(), plant.xd.copy(), pressures(plant)
    expected = law.update(0.0, x, xd, p)
    law.hold(x)
    assert law.update(0.0, x.tolist(), xd.tolist(), np.asfortranarray(p)).tolist() == expected.tolist()


def test_an_update_at_the_same_time_changes_no_filter(law, plant):
    first = law.update(0.0, plant.x, plant.xd, pressures(plant))
    second = law.update(PERIOD, plant.x + 1e-3, plant.xd, pressures(plant))
    assert np.abs(second - first).max() > 1e-3
    assert law.update(PERIOD, plant.x + 1e-3, plant.xd, pressures(plant))[1:] == pytest.approx(second[1:], abs=1e-12)


def test_a_step_of_an_encoder_accelerates_as_much_as_checks_allow(law, plant):
    accelerations = []
    for k in range(20):
        law.update(k * PERIOD, plant.x + (1e-3 if k > 0 else 0.0), plant.xd, pressures(plant))
        accelerations.append(law._law['damping'] * np.abs(law._law['error_rate']))
    most = np.max(accelerations, axis=0)
    assert most == pytest.approx(1e-3 * law.step_gains, rel=0.02) and most[0] > 1.0


def test_looking_ahead_begins_no_trajectory(law, crane):
    law.hold(START)
    law.reference.follow(Waypoints(crane.coordinates, [1.0], [START + 0.05]), 0.0, 0.5)
    assert law.reference.ahead(1.5)[0] == pytest.approx(START + 0.05)
    assert law.reference.sample(0.1)[0] == pytest.approx(START)


@pytest.mark.long
def test_an_excavator_gets_the_same_command_for_both_boom_cylinders():
    excavator = psdyn_ros.load(URDF / 'excavator.urdf')
    hydraulics = read_hydraulics(find_config('excavator_hydraulics.yaml'), excavator.actuators)
    x = excavator.initial_position
    for kind in (ValveControl, ValvePid):
        law = kind(excavator, hydraulics, PERIOD)
        law.hold(x)
        measured = np.tile([120e5, 60e5], (4, 1))
        command = law.update(0.0, x - [0.01, 0.01, 0.02, 0.0], np.zeros(4), measured)
        assert command[1] == pytest.approx(command[2], rel=1e-6) and np.isfinite(command).all()
        assert command[1] > 0.0 and command[3] > 0.0


@pytest.mark.jit
def test_an_update_takes_microseconds(law, plant):
    law.hold(START)
    law.reference.follow(REFERENCES['demonstration'](), 0.0)
    x, xd, p = plant.x.copy(), plant.xd.copy(), pressures(plant)
    costs = []
    for batch in range(20):
        began = time.process_time()
        for k in range(100):
            law.update(0.2 * batch + k * PERIOD, x, xd, p, 0.001)
        costs.append((time.process_time() - began) / 100)
    assert min(costs) <= 30e-6
