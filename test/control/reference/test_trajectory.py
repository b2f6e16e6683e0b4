"""Waypoints, curves through them, and the reference that starts from wherever the machine is."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from support.machines import URDF

import psdyn_ros
from psdyn_ros.control.reference.reference import ReferenceMotion
from psdyn_ros.control.reference.trajectory import (
    TrajectoryError,
    Waypoints,
    cubic_curve,
    quintic_curve,
    smooth_accelerations,
)
from psdyn_ros.tools.demo.demonstration import demonstration

TINY = 1e-9         # s; on either side of a knot


@pytest.fixture
def reference(crane):
    motion = ReferenceMotion(crane)
    motion.hold(crane.initial_position)
    return motion


def samples(curve, times):
    """(N, 3, n)"""
    return np.array([curve.sample(t).copy() for t in times])


def at(reference, t):
    return np.array([values.copy() for values in reference.sample(t)])


def assert_derivatives(sample, times, rel=1e-5):
    """Rates are the differences of what they are rates of."""
    h = 1e-5
    for t in times:
        before, here, after = sample(t - h), sample(t), sample(t + h)
        slope = (after - before) / (2.0 * h)
        scale = 1.0 + np.abs(here).max()
        assert np.abs(slope[0] - here[1]).max() <= rel * scale
        assert np.abs(slope[1] - here[2]).max() <= rel * scale


def jerk(curve, t, side):
    """One-sided jerk (n,) at t, from accelerations, which are cubic in time."""
    h = 1e-3
    a = samples(curve, [t + side * (TINY + i * h) for i in range(4)])[:, 2]
    return side * (-11.0 * a[0] + 18.0 * a[1] - 9.0 * a[2] + 2.0 * a[3]) / (6.0 * h)


# curves


def test_cubic_is_the_clamped_spline_of_scipy(rng):
    knots = np.cumsum(rng.uniform(0.2, 1.0, 7))
    positions, start = rng.normal(size=(7, 3)), rng.normal(size=3)
    witness = CubicSpline(knots, positions, bc_type=((1, start), (1, np.zeros(3))))
    times = np.linspace(knots[0], knots[-1], 101)[:-1]
    curve = samples(cubic_curve(knots, positions, start), times)
    for order in range(3):
        assert curve[:, order] == pytest.approx(witness(times, order), rel=1e-11, abs=1e-11)


def test_cubic_through_two_points_starts_with_the_velocity_given_and_ends_at_rest():
    curve = cubic_curve(np.array([1.0, 3.0]), np.array([[0.0], [2.0]]), np.array([0.5]))
    assert curve.sample(1.0)[:2, 0].tolist() == [0.0, 0.5]
    assert curve.sample(3.0)[:2, 0] == pytest.approx([2.0, 0.0], abs=1e-15)


def test_quintic_takes_the_values_given_on_both_sides_of_every_knot(rng):
    knots = np.cumsum(rng.uniform(0.2, 1.0, 6))
    values = rng.normal(size=(3, 6, 2))
    curve = quintic_curve(knots, *values)
    for k, knot in enumerate(knots):
        for t in (knot - TINY, knot, knot + TINY):
            assert np.abs(curve.sample(t) - values[:, k]).max() <= 1e-3       # TINY times the jerk
    assert_derivatives(lambda t: curve.sample(t).copy(), rng.uniform(knots[0] + 0.01, knots[-1] - 0.01, 30))


def test_quintic_gives_back_a_quintic(rng):
    p = np.polynomial.Polynomial(rng.normal(size=6))
    knots = np.array([0.0, 0.3, 1.0, 1.4])
    values = [p.deriv(order)(knots)[:, None] if order else p(knots)[:, None] for order in range(3)]
    for t in np.linspace(0.0, 1.4, 40):
        assert quintic_curve(knots, *values).sample(t)[0, 0] == pytest.approx(p(t), rel=1e-12, abs=1e-12)


def test_estimated_accelerations_make_the_jerk_continuous(rng):
    knots = np.cumsum(rng.uniform(0.4, 1.0, 6))
    positions, velocities = rng.normal(size=(2, 6, 2))
    start = rng.normal(size=2)
    accelerations = smooth_accelerations(knots, positions, velocities, start)
    assert accelerations[0] == pytest.approx(start)
    assert not accelerations[-1].any()
    curve = quintic_curve(knots, positions, velocities, accelerations)
    for knot in knots[1:-1]:
        assert jerk(curve, knot, 1) == pytest.approx(jerk(curve, knot, -1), rel=1e-3, abs=1e-2)


def test_a_joint_stands_still_where_the_waypoints_ask_for_it():
    knots = np.arange(5.0)
    positions = np.array([[0.0, 0.0], [1.0, 0.2], [1.0, 0.4], [1.0, 0.6], [0.0, 0.0]])
    velocities = np.array([[0.0, 0.0], [0.0, 0.2], [0.0, 0.2], [0.0, 0.2], [0.0, 0.0]])
    accelerations = smooth_accelerations(knots, positions, velocities, np.zeros(2))
    assert not accelerations[1:4, 0].any()
    curve = samples(quintic_curve(knots, positions, velocities, accelerations), np.linspace(1.0, 3.0, 50))
    assert np.abs(curve[:, 0, 0] - 1.0).max() <= 1e-14


def test_a_curve_stays_at_its_ends():
    curve = cubic_curve(np.array([0.0, 1.0, 2.0]), np.array([[0.0], [1.0], [3.0]]), np.zeros(1))
    assert curve.sample(-5.0)[0, 0] == curve.sample(0.0)[0, 0] == 0.0
    assert curve.sample(7.0)[0, 0] == pytest.approx(3.0)


# waypoints


@pytest.mark.parametrize('wrong, says', [
    ({'joints': ()}, 'names no joints'),
    *[({'joints': joints}, 'expected a list of joint names') for joints in ({'a', 'b'}, 'ab', None, [1, 2], [b'a'])],
    *[({field: values}, f'{field} is not an array of numbers') for field in ('times', 'positions', 'velocities')
      for values in ('ab', ['0', '1'], [0, None], [[0, 0], [0]], np.zeros(2) * 1j, np.ma.array([0, 1], mask=[0, 1]),
                     np.zeros(2, 'timedelta64[ns]'))],
    ({'positions': None}, 'positions is not an array of numbers: None'),
    *[({'times': times}, 'expected one number for each point') for times in ([[0.0, 1.0]], 1.0)],
    ({'joints': ('a', 'a')}, 'a more than once'),
    ({'times': [], 'positions': np.empty((0, 2))}, 'no points'),
    ({'times': np.arange(1.0, 20_001.0), 'positions': np.zeros((20_000, 2))}, 'at most'),
    ({'positions': [[0.0], [1.0]]}, 'positions have shape'),
    ({'velocities': [[0.0, 0.0]]}, 'velocities have shape'),
    ({'accelerations': [[0.0, 0.0]] * 2}, 'no velocities'),
    ({'positions': [[0.0, 0.0], [np.nan, 0.0]]}, 'point 1 has positions that are not finite'),
    ({'velocities': [[np.inf, 0.0], [0.0, 0.0]]}, 'point 0 has velocities'),
    ({'times': [np.nan, 2.0]}, 'point 0 has times'),
    ({'times': [-1.0, 2.0]}, 'before the start'),
    ({'times': [2.0, 2.0]}, 'point 1 is not later'),
    ({'times': [2.0, 1.0]}, 'point 1 is not later'),
    ({'velocities': [[0.0, 0.0], [0.0, 0.1]]}, 'ends with b in motion'),
])
def test_waypoints_that_mean_nothing_are_named(wrong, says):
    good = {'joints': ('a', 'b'), 'times': [1.0, 2.0], 'positions': [[0.0, 0.0], [1.0, 1.0]]}
    Waypoints(**good)
    with pytest.raises(TrajectoryError, match=says):
        Waypoints(**{**good, **wrong})


# reference


def test_without_a_state_there_is_no_reference(crane):
    reference = ReferenceMotion(crane)
    assert not reference.started
    with pytest.raises(TrajectoryError, match='no state'):
        reference.follow(Waypoints(crane.actuators, [1.0], [crane.initial_position]), 0.0)


def test_a_motion_goes_from_the_hold_through_the_waypoints_to_a_hold(crane, reference):
    start = crane.initial_position
    passing, end = start + [0.2, 0.05, 0.03, 0.1], start + [0.3, 0.02, 0.06, 0.05]
    reference.follow(Waypoints(crane.actuators, [1.0, 2.5], [passing, end]), 10.0)
    assert at(reference, 10.0)[:2] == pytest.approx(np.array([start, np.zeros(4)]), abs=1e-14)
    assert at(reference, 11.0)[0] == pytest.approx(passing)
    assert reference.moving(11.0)
    assert at(reference, 12.5) == pytest.approx(np.array([end, np.zeros(4), np.zeros(4)]))
    assert at(reference, 99.0) == pytest.approx(np.array([end, np.zeros(4), np.zeros(4)]))
    assert not reference.moving(12.5)


def test_points_in_the_past_are_passed_over_and_the_rest_is_followed(crane, reference):
    start = crane.initial_position
    path = [start + 0.1, start + 0.02, start + 0.05]
    reference.follow(Waypoints(crane.actuators, [0.0, 1.0, 3.0], path), 10.0, 8.5)
    assert at(reference, 10.0)[0] == pytest.approx(start)
    assert at(reference, 11.5)[0] == pytest.approx(start + 0.05)


def test_a_trajectory_of_the_past_is_refused(crane, reference):
    with pytest.raises(TrajectoryError, match='is over'):
        reference.follow(Waypoints(crane.actuators, [1.0], [crane.initial_position]), 10.0, 5.0)


def test_a_trajectory_of_the_future_lets_the_present_one_go_on(crane, reference):
    start = crane.initial_position
    reference.follow(Waypoints(crane.actuators, [2.0], [start + 0.05]), 0.0)
    expected = at(reference, 0.7)
    reference.follow(Waypoints(crane.actuators, [2.0], [start]), 0.5, 1.0)
    assert at(reference, 0.7) == pytest.approx(expected)
    switch = at(reference, 1.0 - 1e-9), at(reference, 1.0)
    assert switch[1][:2] == pytest.approx(switch[0][:2], abs=1e-8)
    assert at(reference, 3.0)[0] == pytest.approx(start)


def test_boom_angles_are_interpolated_as_such_and_mapped_to_strokes(crane, reference):
    joints = ('tilt_boom', 'telescope', 'slew', 'lift_boom')
    start = crane.initial_position

    def angles(x, xd=None, xdd=None):
        names, *rows = crane.joint_state(x, xd, xdd)
        return np.array([row[[names.index(name) for name in joints]] for row in rows if row is not None])

    target = angles(start + [0.3, 0.1, 0.05, 0.1])[0]
    reference.follow(Waypoints(joints, [2.0], [target]), 0.0)
    witness = CubicSpline([0.0, 2.0], [angles(start)[0], target], bc_type='clamped')
    for t in np.linspace(0.01, 1.99, 23):
        expected = np.array([witness(t, order) for order in range(3)])
        assert angles(*at(reference, t)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert_derivatives(lambda t: at(reference, t), np.linspace(0.1, 1.9, 9))


def test_names_are_matched_by_name(crane, reference):
    order = [2, 0, 3, 1]
    end = crane.initial_position + [0.2, 0.05, 0.03, 0.1]
    reference.follow(Waypoints([crane.actuators[i] for i in order], [1.0], [end[order]]), 0.0)
    assert at(reference, 1.0)[0] == pytest.approx(end)


@pytest.mark.parametrize('joints, says', [
    (('slew', 'lift_cylinder', 'tilt_cylinder'), 'telescope'),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescop'), "did you mean 'telescope'"),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope', 'lift_boom'), '1 more'),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope', 'lift_cylindr'), "did you mean 'lift_cylinder'"),
])
def test_joints_that_do_not_fit_are_refused_and_the_motion_goes_on(crane, reference, joints, says):
    reference.follow(Waypoints(crane.actuators, [2.0], [crane.initial_position + 0.05]), 0.0)
    before = at(reference, 1.0)
    with pytest.raises(psdyn_ros.PsdynError, match=says):
        reference.follow(Waypoints(joints, [1.0], np.zeros((1, len(joints)))), 1.0)
    assert at(reference, 1.0) == pytest.approx(before)


@pytest.mark.parametrize('actuator, change, seconds, says', [
    (1, 0.32, 9.0, r'point 0: 0\.5\d* is beyond the limit of lift_cylinder; expected 0 to 0\.5 m$'),
    (1, 450.0, 5.0, r'point 0: 450\.\d* is beyond the limit of lift_cylinder; expected 0 to 0\.5 m: in mm\?$'),
    (0, 90.0, 5.0, r'point 0: 90 is beyond the limit of slew; .* rad: in degrees\?$'),
    (1, 0.1, 0.1, r'lift_cylinder at .* per second, limit 0\.3'),
    (0, -0.5, 0.3, r'slew at -.* per second'),
])
def test_a_trajectory_beyond_the_limits_is_refused(crane, reference, actuator, change, seconds, says):
    target = crane.initial_position
    target[actuator] += change
    with pytest.raises(TrajectoryError, match=says):
        reference.follow(Waypoints(crane.actuators, [seconds], [target]), 0.0)
    assert at(reference, 5.0)[0] == pytest.approx(crane.initial_position)


def test_a_way_between_points_leaves_no_limits(crane, reference):
    points = np.tile(crane.initial_position, (2, 1))
    velocities = np.zeros_like(points)
    points[0, 1], velocities[0, 1] = 0.49, 0.2
    with pytest.raises(TrajectoryError, match=r'point 1: on the way .* lift_cylinder to 0\.5.*outside of \[0, 0\.5\]'):
        reference.follow(Waypoints(crane.actuators, [5.0, 10.0], points, velocities), 0.0)


# the reference of the demonstration


@pytest.mark.parametrize('name', ['hiab_xs031', 'hiab_xs031_lift'])
@pytest.mark.parametrize('duration', [3.0, 10.0])
def test_the_demonstration_moves_every_actuator_out_and_back_within_its_limits(name, duration):
    machine = psdyn_ros.load(URDF / f'{name}.urdf')
    waypoints = demonstration(machine, duration)
    reference = ReferenceMotion(machine)
    reference.hold(machine.initial_position)
    reference.follow(waypoints, 0.0)        # refuses what leaves the limits
    path = np.array([at(reference, t) for t in np.linspace(0.0, duration, 500)])
    assert path[-1, 0] == pytest.approx(machine.initial_position)
    assert (np.ptp(path[:, 0], axis=0) > 0.03).all()
    assert (np.abs(path[:, 1]).max(axis=0) <= 0.5001 * machine.limits.velocity).all()
    assert (np.abs(path[:, 1]).max(axis=0) >= 0.05 * machine.limits.velocity).all()


def test_a_machine_without_limits_has_no_demonstration(crane):
    class Unlimited:
        dof, coordinates, initial_position = 1, ('a',), np.zeros(1)
        driven_machine = property(lambda self: self)
        coordinate_limits = psdyn_ros.Limits(*np.array([[-np.inf], [np.inf], [np.inf], [np.inf]]))

    with pytest.raises(TrajectoryError, match='neither its limits nor its speed'):
        demonstration(Unlimited())
