"""A reference that is given less than its speed, and points that are faster: no jump, a bounded lag, an end."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_reference_motion import AXES, DECELERATION, assert_smooth, at, load, reference_of, run

from psdyn_ros.control.reference.trajectory import TrajectoryError

PERIOD = 0.002


def travel(machine, share, duration):
    """A function t -> (3, dof) of points from rest to rest that reach this share of the rated speeds."""
    far = share * machine.limits.velocity * duration / 1.875 * np.array([1.0, 0.3, 0.3, 0.6])

    def points(t):
        s = np.clip(t / duration, 0.0, 1.0)
        return np.array([machine.initial_position + far * s**3 * (10 - 15 * s + 6 * s**2),
                         far * 30 * (s * (1 - s))**2 / duration,
                         far * 60 * s * (1 - s) * (1 - 2 * s) / duration**2])
    return points


def streamed(reference, points, until, period=0.01, speeds=()):
    """Stream points, and give speeds ((time, share), ...); (N,), (N, 3, dof) reference, [text of what was refused]."""
    times, path, refused, n, speeds = np.arange(0.0, until, PERIOD), [], [], 0, list(speeds)
    for t in times:
        path.append(at(reference, t))
        while speeds and speeds[0][0] <= t:
            reference.set_speed(speeds.pop(0)[1], t)
        while n * period <= t:
            try:
                reference.stream(n * period, *points(n * period), now=t)
            except TrajectoryError as error:
                refused.append(str(error))
            n += 1
    return times, np.array(path), refused


def behind(times, path, points):
    return np.array([row[0] - points(t)[0] for t, row in zip(times, path)])


@pytest.mark.parametrize('period', [0.01, 0.033])
def test_points_that_are_no_faster_than_the_speed_that_is_left_are_followed_as_they_are(crane, period):
    points = travel(crane, 0.45, 4.0)
    times, path, refused = streamed(reference_of(crane, deceleration=DECELERATION), points, 4.5, period, [(1.0, 0.5)])
    _, usual, _ = streamed(reference_of(crane, deceleration=DECELERATION), points, 4.5, period)
    assert not refused
    assert path[:, :2] == pytest.approx(usual[:, :2], abs=1e-4)


@pytest.mark.parametrize('period', [0.004, 0.033])
def test_faster_ones_are_followed_at_that_speed_and_caught_up_with(crane, period):
    points = travel(crane, 0.65, 5.0)
    reference = reference_of(crane, deceleration=DECELERATION)
    times, path, refused = streamed(reference, points, 8.0, period, [(2.0, 0.5), (3.0, 1.0)])
    assert not refused
    assert_smooth(path)
    speed = np.abs(path[:, 1]) / crane.limits.velocity
    off = np.abs(behind(times, path, points)).max(axis=1)
    slowed = (times > 2.5) & (times < 3.0)
    assert speed[slowed].max() <= 0.501 and speed[times < 2.0].max() > 0.55
    assert (speed <= 1.001).all()
    assert off[times < 2.0].max() < 1e-4 and off[slowed].min() > 5e-3 and off[slowed].max() < 0.1
    assert (np.abs(path[times > 2.0, 2]).max(axis=0) <= 1.15 * DECELERATION).all(), 'no harder than a stop'
    assert off[times > 6.0].max() < 1e-4
    # what it does in the end is no other than what it did before
    assert not reference._motion.behind


def test_what_it_is_behind_has_a_limit_beyond_which_points_are_refused_and_the_machine_stops(crane):
    points = travel(crane, 0.95, 8.0)
    reference = reference_of(crane, deceleration=DECELERATION, stream_lag=0.2)
    times, path, refused = streamed(reference, points, 9.0, 0.01, [(3.0, 0.5)])
    assert_smooth(path)
    assert refused and 'slew is 0.12' in refused[0] and '0.12 may be made up for' in refused[0]
    first = np.abs(behind(times, path, points))[:, 0].searchsorted(0.12)
    assert 3.2 < times[first] < 5.0
    assert not path[times > times[first] + 2.5, 1:].any(), 'at rest, though points go on'
    assert reference.stream_age(9.0) > 3.0


def test_a_stop_ends_it_and_so_does_silence(crane):
    points = travel(crane, 0.8, 5.0)
    for stop in (True, False):
        reference = reference_of(crane, deceleration=DECELERATION)
        _, path, _ = streamed(reference, points, 2.5, 0.01, [(1.8, 0.5)])
        assert reference._motion.behind
        if stop:
            reference.stop(2.5)
        _, rest = run(reference, 2.5, 5.0)
        assert_smooth(np.concatenate([path, rest]))
        assert not rest[-1, 1:].any() and reference.at_rest(5.0)
        moved = (rest[-1, 0] - path[-1, 0])[0]
        v = path[-1, 1, 0]
        carried = 0.0 if stop else 0.1
        assert moved == pytest.approx(v * (carried + 0.05) + 0.5 * v * v / DECELERATION[0], rel=0.2)


def test_another_speed_does_not_wake_a_stream_that_came_to_rest(crane):
    points = travel(crane, 0.45, 4.0)
    for speed in (1.0, 0.3):
        reference = reference_of(crane, deceleration=DECELERATION)
        _, path, _ = streamed(reference, points, 2.0, 0.01, [(1.0, 0.5)])
        _, rest = run(reference, 2.0, 3.0)
        assert np.abs(path[-1, 1]).max() > 0.1 and not rest[-1, 1:].any()
        reference.set_speed(speed, 3.0)
        assert run(reference, 3.0, 4.0)[1] == pytest.approx(np.broadcast_to(rest[-1], (500, 3, 4)), abs=1e-12)
        # nor does the full speed change what is carried on already
        reference = reference_of(crane, deceleration=DECELERATION)
        streamed(reference, points, 2.0, 0.01, [(1.0, 0.5)])
        reference.set_speed(1.0, 2.0)
        assert run(reference, 2.0, 3.0)[1] == pytest.approx(rest, abs=1e-12)


def test_near_a_limit_it_goes_no_further_than_the_points(crane):
    home, upper = crane.initial_position.copy(), crane.limits.upper[1]
    home[1] = upper - 0.15
    reference = reference_of(crane, deceleration=DECELERATION, soft_margin=0.005)
    reference.hold(home)

    def points(t, duration=1.6):        # 0.16 m/s at most, and 0.02 m before the limit at rest
        s = np.clip(t / duration, 0.0, 1.0)
        return home + 0.13 * s**3 * (10 - 15 * s + 6 * s**2) * AXES[1], 0.13 * 30 * (s * (1 - s))**2 / 1.6 * AXES[1]

    times, path, refused = streamed(reference, points, 5.0, 0.01, [(0.4, 0.3)])
    assert not refused
    assert_smooth(path)
    assert path[:, 0, 1].max() <= upper - 0.019
    assert path[-1, 0, 1] == pytest.approx(upper - 0.02, abs=1e-4)


def test_axes_keep_the_direction_to_the_points(crane):
    """All are slowed down by the same share of what they need, so that the way is the straight one."""
    home = crane.initial_position
    v = np.array([0.5, 0.05, 0.1, 0.15])
    reference = reference_of(crane, deceleration=DECELERATION)

    def points(t):
        t, ease = max(t, 0.0), 1.5
        way = t - 0.5 * ease if t > ease else t**3 / ease**2 - 0.5 * t**4 / ease**3
        return home + way * v, (1.0 if t > ease else 3 * (t / ease)**2 - 2 * (t / ease)**3) * v

    times, path, refused = streamed(reference, points, 3.0, 0.01, [(2.0, 0.5)])
    assert not refused
    late = path[times > 2.9, 1]
    assert late[:, 0].max() == pytest.approx(0.3, rel=2e-3)
    assert late / late[:, :1] == pytest.approx(np.tile(v / v[0], (len(late), 1)), rel=0.1)


def test_twin_cylinders_that_are_no_coordinates_keep_their_share_too():
    m = load('excavator')
    reference = reference_of(m, deceleration=0.6)
    boom = np.eye(m.dof)[1]
    speed = 0.8 * m.limits.velocity[1]

    def points(t, duration=3.0):
        s = np.clip(t / duration, 0.0, 1.0)
        far = speed * duration / 1.875
        return (m.initial_position + far * s**3 * (10 - 15 * s + 6 * s**2) * boom,
                far * 30 * (s * (1 - s))**2 / duration * boom)

    times, path, refused = streamed(reference, points, 5.0, 0.02, [(1.0, 0.5)])
    assert not refused
    assert_smooth(path)
    columns = [m.joints.index(name) for name in m.actuators]
    rates = np.array([m.joint_state(*row)[2][columns] for row in path[(times > 1.6) & (times < 2.0)]])
    assert (np.abs(rates) <= 0.505 * m.limits.velocity).all() and np.abs(rates[:, 1:3]).max() > 0.1
    assert path[-1, 0] == pytest.approx(points(5.0)[0], abs=1e-3)


@pytest.mark.long
@settings(max_examples=examples(10), deadline=None)
@given(st.floats(0.3, 1.0), st.floats(2.0, 5.0), st.sampled_from([0.004, 0.01, 0.03]),
       st.lists(st.tuples(st.floats(0.0, 5.0), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])), max_size=6))
def test_whatever_speed_is_given_whenever(share, duration, period, speeds):
    machine = load()
    points = travel(machine, share, duration)
    reference = reference_of(machine, deceleration=DECELERATION)
    times, path, refused = streamed(reference, points, 5.0, period, sorted(speeds))
    assert_smooth(path)
    rated, limits = machine.limits.velocity, machine.coordinate_limits
    assert (np.abs(path[:, 1]) <= 1.002 * rated).all()
    assert ((path[:, 0] >= limits.lower) & (path[:, 0] <= limits.upper)).all()
    off = np.abs(behind(times, path, points))
    if refused:
        assert all('may be made up for' in text or 'the way to it' in text for text in refused)
    else:
        assert (off <= 0.5 * rated + 0.01).all()
    _, rest = run(reference, 5.0, 8.0)
    assert_smooth(np.concatenate([path, rest]))
    assert not rest[-1, 1:].any()
