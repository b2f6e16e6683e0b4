"""What is asked of a trajectory before it is followed, in slices, and what a refused one leaves behind."""

import gc

import numpy as np
import pytest
from support.machines import URDF
from test_reference_motion import AXES, at, load, reference_of

import psdyn_ros
from psdyn_ros.control.monitors.singularity import toggle_measure
from psdyn_ros.control.reference.reference import ReferenceMotion
from psdyn_ros.control.reference.reference_limits import ReferenceLimits
from psdyn_ros.control.reference.trajectory import TrajectoryError, TrajectoryOverError, Waypoints
from psdyn_ros.model.errors import ShapeError
from psdyn_ros.model.parameters.safety import read_safety
from psdyn_ros.tools.demo.demonstration import demonstration

STILL = [np.zeros(4)]


def angles(crane, joints, x):
    names, q, _, _ = crane.joint_state(x)
    return np.array([q[names.index(name)] for name in joints])


def finished(validated, budget=1e-5):
    """Number of slices that it takes."""
    count = 1
    while not validated.advance(budget):
        count += 1
    return count


# slices


@pytest.mark.long
@pytest.mark.parametrize('name', ['hiab_xs031', 'pkm_2pur2rpu'])
def test_slices_come_to_what_following_at_once_comes_to(name):
    m = load(name)
    waypoints = demonstration(m)
    sliced, whole = reference_of(m), reference_of(m)
    validated = sliced.validate_trajectory(waypoints, 0.0)
    assert sliced.at_rest(5.0) and not validated.done
    assert finished(validated) > 10 and validated.done
    assert sliced.at_rest(5.0)
    sliced.execute(validated, 0.0)
    whole.follow(waypoints, 0.0)
    for t in np.linspace(0.0, waypoints.times[-1], 50):
        assert at(sliced, t).tolist() == at(whole, t).tolist()


def test_a_candidate_is_not_accepted_before_its_end(crane):
    reference = reference_of(crane)
    validated = reference.validate_trajectory(demonstration(crane), 0.0)
    with pytest.raises(TrajectoryError, match='not come to their end'):
        reference.execute(validated, 0.0)
    assert reference.at_rest(1.0)


def test_a_refused_candidate_stays_refused(crane):
    reference = reference_of(crane)
    validated = reference.validate_trajectory(Waypoints(crane.actuators, [0.1], [crane.initial_position + 0.2]), 0.0)
    for attempt in (validated.advance, validated.advance, lambda: reference.execute(validated, 0.0)):
        with pytest.raises(TrajectoryError, match='moves lift_cylinder'):
            attempt()
    assert reference.at_rest(1.0)


def test_one_that_was_looked_at_for_long_begins_when_it_is_accepted_from_rest(crane):
    reference = reference_of(crane)
    target = crane.initial_position + 0.05
    validated = reference.validate_trajectory(Waypoints(crane.actuators, [2.0], [target], STILL), 0.0)
    validated.advance()
    reference.execute(validated, 0.7)
    assert reference.end == pytest.approx(2.7)
    assert at(reference, 0.7)[:2] == pytest.approx(np.array([crane.initial_position, np.zeros(4)]), abs=1e-12)


def test_a_stamped_one_that_was_looked_at_for_long_is_caught_up_with(crane):
    reference = reference_of(crane)
    target = crane.initial_position + 0.05
    validated = reference.validate_trajectory(Waypoints(crane.actuators, [2.0], [target], STILL), 0.0, 0.0)
    validated.advance()
    reference.execute(validated, 0.3)
    assert at(reference, 0.3)[:2] == pytest.approx(np.array([crane.initial_position, np.zeros(4)]), abs=1e-12)
    assert reference.end == 2.0
    on_time = reference_of(crane)
    on_time.follow(Waypoints(crane.actuators, [2.0], [target], STILL), 0.0)
    assert at(reference, 1.9) == pytest.approx(at(on_time, 1.9), abs=1e-12)


def test_one_that_ends_where_it_begins_is_over_since_0_s(crane):
    with pytest.raises(TrajectoryOverError, match='its last point lies 0 s in the past, or is no later than its start'):
        reference_of(crane).follow(Waypoints(crane.actuators, [0.0], [crane.initial_position]), 0.0)


def test_one_that_ended_while_it_was_looked_at_is_over(crane):
    reference = reference_of(crane)
    validated = reference.validate_trajectory(Waypoints(crane.actuators, [1.0], [crane.initial_position + 0.02]), 0.0,
                                              0.0)
    validated.advance()
    with pytest.raises(TrajectoryOverError, match='ended while it was looked at'):
        reference.execute(validated, 1.5)
    assert reference.at_rest(1.5)


def test_one_whose_start_has_moved_away_meanwhile_is_refused(crane):
    reference = reference_of(crane, start_tolerance=0.01)
    validated = reference.validate_trajectory(Waypoints(crane.actuators, [2.0], [crane.initial_position + 0.05]), 0.0)
    validated.advance()
    reference.hold(crane.initial_position + 0.03 * AXES[2])
    with pytest.raises(TrajectoryError, match=r'tilt_cylinder has moved 0\.03 away .* tolerance 0\.01'):
        reference.execute(validated, 0.1)
    assert reference.at_rest(0.1)


def test_another_motion_is_replaced_unless_that_is_not_wanted(crane):
    reference = reference_of(crane)
    waypoints = Waypoints(crane.actuators, [2.0], [crane.initial_position + 0.05])
    reference.validate_trajectory(waypoints, 0.0, replace=False)
    reference.follow(waypoints, 0.0)
    with pytest.raises(TrajectoryError, match='not to replace'):
        reference.validate_trajectory(waypoints, 1.0, replace=False)
    reference.validate_trajectory(waypoints, 2.0, replace=False)


# where it starts


def test_the_first_point_has_to_be_where_the_reference_is(crane):
    reference = reference_of(crane, start_tolerance=0.01)
    home = crane.initial_position
    path = np.array([home + 0.02 * AXES[3], home + 0.05])
    for start in (None, 0.0, -0.0005):
        with pytest.raises(TrajectoryError, match=r'point 0 has telescope 0\.02 away .* tolerance 0\.01') as caught:
            reference.follow(Waypoints(crane.actuators, [0.0, 2.0], path), 0.0, start)
        assert caught.value.point == 0
    path[0] = home + 0.009 * AXES[3]
    reference.follow(Waypoints(crane.actuators, [0.0, 2.0], path), 0.0)


def test_of_a_trajectory_under_way_the_reference_has_to_be_between_its_points(crane):
    reference = reference_of(crane, start_tolerance=0.01)
    home = crane.initial_position
    times = [0.0, 1.0, 3.0]
    reference.validate_trajectory(Waypoints(crane.actuators, times, [home - 0.02, home + 0.02, home + 0.05]), 0.0, -0.5)
    with pytest.raises(TrajectoryError, match='point 1 has slew 0.03 away'):
        reference.validate_trajectory(Waypoints(crane.actuators, times, [home, home + 0.03, home + 0.05]), 0.0, -1.5)
    # a first point that is yet to come may be anywhere
    reference.validate_trajectory(Waypoints(crane.actuators, [1.0, 2.0], [home + 0.1, home]), 0.0)


def test_the_machine_has_to_be_where_its_reference_is(crane):
    reference = reference_of(crane, start_tolerance=0.01)
    home = crane.initial_position
    waypoints = Waypoints(crane.actuators, [2.0], [home + 0.05])
    reference.validate_trajectory(waypoints, 0.0, state=home + 0.009)
    for off in (0.011, np.nan):
        state = home.copy()
        state[1] += off
        with pytest.raises(TrajectoryError, match='lift_cylinder is .* away from its reference'):
            reference.validate_trajectory(waypoints, 0.0, state=state)


def test_a_machine_beyond_a_limit_may_come_back_but_not_go_further(crane):
    beyond = crane.initial_position.copy()
    beyond[1] = crane.limits.upper[1] + 0.003
    reference = ReferenceMotion(crane)
    reference.hold(beyond)
    with pytest.raises(TrajectoryError, match='is beyond the limit of lift_cylinder'):
        reference.follow(Waypoints(crane.actuators, [2.0], [beyond + 0.001 * AXES[1]], STILL), 0.0)
    reference.follow(Waypoints(crane.actuators, [2.0], [beyond + 0.1 * AXES[0]], STILL), 0.0)
    reference.hold(beyond)
    reference.follow(Waypoints(crane.actuators, [2.0], [beyond - 0.05 * AXES[1]], STILL), 0.0)
    assert reference.moving(1.0)


# limits on the way


def moved(crane, seconds=2.0, far=0.1, velocities=STILL, accelerations=None):
    return Waypoints(crane.actuators, [seconds], [crane.initial_position + far], velocities, accelerations)


@pytest.mark.parametrize('limits, says', [
    # from rest to rest over 0.1 m in 2 s: 5.77 far / T^2 and 60 far / T^3
    ({'acceleration': [1.0, 0.14, 1.0, 1.0]}, r'accelerates lift_cylinder at .* per second\^2, limit 0\.14'),
    ({'jerk': [10.0, 10.0, 0.5, 10.0]}, r'jerks tilt_cylinder at .* per second\^3, limit 0\.5'),
])
def test_declared_accelerations_and_jerks_are_kept(crane, limits, says):
    with pytest.raises(TrajectoryError, match=f'point 0: .*{says}'):
        reference_of(crane, **limits).follow(moved(crane), 0.0)
    reference = reference_of(crane, acceleration=0.15, jerk=0.75 + 0.01)
    reference.follow(moved(crane), 0.0)
    assert reference.moving(1.0)


def test_a_step_of_the_acceleration_is_no_motion_of_limited_jerk(crane):
    reference = reference_of(crane, jerk=20.0)
    reference.follow(moved(crane, velocities=None), 0.0)       # positions alone are led through without steps
    assert not at(reference, 0.0)[2].any()
    reference.hold(crane.initial_position)
    with pytest.raises(TrajectoryError, match='ends with a step of the acceleration: it jerks'):
        reference.follow(moved(crane, far=0.02, accelerations=[np.full(4, -0.05)]), 0.0)
    reference_of(crane).follow(moved(crane, velocities=None), 0.0)


@pytest.mark.parametrize('joints', [('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'),
                                    ('slew', 'lift_boom', 'tilt_boom', 'telescope')])
def test_the_first_bad_point_is_named_by_its_index(crane, joints):
    reference = reference_of(crane)
    x = np.tile(crane.initial_position, (6, 1))
    x[3:, 1] = crane.limits.upper[1] - 0.001
    x[4, 1] = crane.limits.upper[1] + 0.02
    points = np.array([angles(crane, joints, row) for row in x])
    times = 3.0 * np.arange(6)
    reference.follow(Waypoints(joints, times[1:], points[[1, 2, 3, 3, 3]], np.zeros((5, 4))), 0.0)
    before = at(reference, 2.0)
    with pytest.raises(TrajectoryError, match=r'^point 4: .*lift_cylinder') as caught:
        reference.follow(Waypoints(joints, times, points, np.zeros((6, 4))), 2.0, 1.0)
    assert caught.value.point == 4
    assert at(reference, 2.0).tolist() == before.tolist()


def test_a_loop_that_does_not_close_is_found_between_points_too(crane):
    joints = ('slew', 'lift_boom', 'tilt_boom', 'telescope')
    start, end = (angles(crane, joints, x) for x in (crane.initial_position, crane.initial_position + 0.05))
    beyond = end.copy()
    beyond[1] = 3.0         # on the other side of the toggle point
    with pytest.raises(TrajectoryError, match='^point 1: .* cannot be followed: loop') as caught:
        reference_of(crane).follow(Waypoints(joints, [5.0, 25.0, 30.0], [end, beyond, end]), 0.0)
    assert caught.value.point == 1 and caught.value.__cause__ is not None
    five = load('five_bar')
    with pytest.raises(TrajectoryError, match='point 0: .* does not close'):
        reference_of(five).follow(Waypoints(five.coordinates, [60.0], [five.initial_position + [2.5, -2.5]]), 0.0)


def test_limits_that_reach_further_than_a_loop_do_not_open_it(crane):
    text = (URDF / 'hiab_xs031.urdf').read_text()
    for passive in 'lower="-2.245" upper="-0.617"', 'lower="-0.393" upper="-0.156"':
        text = text.replace(passive, 'lower="-9" upper="9"')
    joint = text.index('<joint name="lift_cylinder"')
    limit = text.index('upper="', joint)
    far = psdyn_ros.load(text[:limit] + 'upper="5.0"' + text[text.index('"', limit + 7) + 1:])
    assert far.limits.upper[1] == 5.0
    waypoints = Waypoints(far.actuators, [10.0, 20.0], [far.initial_position, far.initial_position + 0.6 * AXES[1]])
    with pytest.raises(TrajectoryError, match='point 1: .* takes lift_cylinder to where its loop does not close'):
        reference_of(far).follow(waypoints, 0.0)


def test_a_trajectory_stays_clear_of_singularities(crane):
    target = crane.initial_position.copy()
    target[2] = crane.limits.upper[2]       # measure 0.39
    waypoints = Waypoints(crane.actuators, [20.0, 30.0], [target, crane.initial_position], np.zeros((2, 4)))
    reference_of(crane, sigma_stop=0.35).follow(waypoints, 0.0)
    reference = reference_of(crane, sigma_stop=0.45)
    with pytest.raises(TrajectoryError, match='point 0: .*singularity of tilt_cylinder: 0.4.* limit 0.45'):
        reference.follow(waypoints, 0.0)
    assert reference.at_rest(10.0)
    m = load('pkm_2pur2rpu')
    with pytest.raises(TrajectoryError, match='too near to a singularity of'):
        reference_of(m, sigma_stop=0.9).follow(demonstration(m), 0.0)


@pytest.mark.parametrize('name, axis', [('hiab_xs031', 2), ('excavator', 3)])
def test_what_begins_too_near_to_a_singularity_may_go_away_from_it(name, axis):
    m = load(name)
    near = m.initial_position
    near[axis] = m.coordinate_limits.upper[axis] - 0.01
    measure, joint = toggle_measure(m, near)
    reference = reference_of(m, sigma_stop=min(measure + 0.05, 0.99))
    step = 0.005 * np.eye(m.dof)[axis]
    still = [np.zeros(m.dof)]
    reference.hold(near)
    with pytest.raises(TrajectoryError, match=f'singularity of {joint}'):
        reference.follow(Waypoints(m.coordinates, [2.0], [near + step], still), 0.0)
    reference.follow(Waypoints(m.coordinates, [2.0], [near - step], still), 0.0)
    assert reference.moving(1.0)


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('far', [1e308, -1e300, 1e16, 1e6])
def test_absurd_numbers_are_refused_without_a_warning(crane, far):
    points = [crane.initial_position, crane.initial_position + far * AXES[0]]
    for velocities in (None, [np.zeros(4), np.zeros(4)]):
        with pytest.raises(TrajectoryError, match='point [01]'):
            reference_of(crane).follow(Waypoints(crane.actuators, [1.0, 1.0 + 1e-9], points, velocities), 0.0)
    with pytest.raises(TrajectoryError, match='point 1 has times beyond'):
        Waypoints(crane.actuators, [1.0, abs(far) + 1e6], np.zeros((2, 4)))


@pytest.mark.parametrize('limits, says', [
    ({'acceleration': [1.0, 2.0]}, r'acceleration has shape \(2,\)'),
    ({'deceleration': -1.0}, 'not negative'), ({'jerk': np.nan}, 'not negative')])
def test_limits_that_mean_nothing_are_named(crane, limits, says):
    with pytest.raises(ShapeError, match=says):
        ReferenceMotion(crane, ReferenceLimits(**limits))


def test_limits_are_those_of_a_safety_declaration(crane):
    path = URDF.parent / 'config' / 'hiab_xs031_safety.yaml'
    safety = read_safety(path, crane.actuators, ('effort',) * 4, crane.limits)
    limits = ReferenceLimits.declared(safety)
    checks = ReferenceMotion(crane, limits)._checks
    assert checks.deceleration.tolist() == safety.deceleration.tolist()
    assert (limits.start_tolerance, limits.sigma_stop, limits.stream_timeout) == (
        safety.plausibility.start_tolerance, safety.plausibility.sigma_stop, safety.timeouts.stream)
    assert checks.soft_lower.tolist() == (crane.limits.lower + safety.soft_margin).tolist()
    assert ReferenceLimits().stream_timeout == safety.timeouts.stream


@pytest.mark.long
def test_a_dropped_trajectory_leaves_the_table_of_its_loops_to_the_next():
    machine = psdyn_ros.load(URDF / 'five_bar.urdf', allow_unphysical=True)
    reference = reference_of(machine)
    names, q, *_ = machine.joint_state(machine.initial_position + [0.1, -0.05])
    joints = ('elbow_1', 'shoulder_1')
    waypoints = Waypoints(joints, [2.0], [[q[names.index(name)] for name in joints]])
    dropped = reference.validate_trajectory(waypoints, 0.0)
    for _ in range(100):
        assert not dropped.advance(0.0)
    del dropped
    gc.collect()
    validated = reference.validate_trajectory(waypoints, 0.0)
    slices = 1
    while not validated.advance(0.0):
        slices += 1
    assert slices > 1000
    reference.execute(validated, 0.0)
    assert reference.sample(2.0)[0] == pytest.approx(machine.initial_position + [0.1, -0.05], abs=1e-9)
