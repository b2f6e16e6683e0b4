"""Points of a reference that come one at a time."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_reference_motion import AXES, DECELERATION, assert_smooth, at, load, reference_of, run

from psdyn_ros.control.reference.trajectory import TrajectoryError, Waypoints
from psdyn_ros.kernels.control.path import path_sample

TIMEOUT = 0.1


def wave(home, t):
    """A motion that somebody streams, from rest; rows x, xd, xdd."""
    amplitude, w = 0.02 * np.ones(4), 2.0
    return np.array([home + amplitude * (1.0 - np.cos(w * t)), amplitude * w * np.sin(w * t),
                     amplitude * w**2 * np.cos(w * t)])


def streamed(reference, home, until, period, lead=0.0, late=0.0, missing=()):
    """Stream the wave and sample it; (N,) times and (N, 3, dof)."""
    times = np.arange(0.0, until, 0.002)
    path, n = [], 0
    for t in times:
        while n * period + late <= t:
            if n not in missing:
                reference.stream(n * period + lead, *wave(home, n * period + lead), now=t)
            n += 1
        path.append(at(reference, t))
    return times, np.array(path)


@pytest.mark.parametrize('period, lead, late', [(0.01, 0.0, 0.0), (0.01, 0.02, 0.0), (0.02, 0.0, 0.005),
                                                (0.002, 0.0, 0.001), (0.033, 0.033, 0.0)])
def test_points_are_followed_without_jumps(crane, period, lead, late):
    home = crane.initial_position
    reference = reference_of(crane, deceleration=DECELERATION)
    times, path = streamed(reference, home, 1.0, period, lead, late)
    assert_smooth(path)
    error = np.array([row[0] - wave(home, t)[0] for t, row in zip(times, path)])
    assert np.abs(error[times > 0.2]).max() < 2e-4
    assert reference.moving(times[-1])


def test_a_missing_point_is_bridged_by_carrying_on_the_last(crane):
    home = crane.initial_position
    reference = reference_of(crane, deceleration=DECELERATION)
    times, path = streamed(reference, home, 1.0, 0.01, missing=(40, 41, 42, 60))
    assert_smooth(path)
    assert max(np.abs(row[0] - wave(home, t)[0]).max() for t, row in zip(times, path) if t > 0.2) < 1e-3


def test_a_stream_that_stops_is_carried_on_for_its_timeout_and_comes_to_rest(crane):
    home = crane.initial_position
    reference = reference_of(crane, deceleration=DECELERATION, stream_timeout=TIMEOUT)
    times, _ = streamed(reference, home, 0.6, 0.01)
    last = 0.59
    v = wave(home, last)[1]
    assert reference.stream_age(0.65) == pytest.approx(0.06)
    assert at(reference, last + 0.9 * TIMEOUT)[1] == pytest.approx(v, abs=3e-3)
    _, path = run(reference, times[-1], 2.0)
    assert_smooth(path)
    end = reference.end
    assert end == pytest.approx(last + TIMEOUT + (v / DECELERATION).max() + 0.05, abs=0.02)
    assert reference.at_rest(end) and not reference.moving(end) and not reference.at_rest(end - 0.01)
    assert not path[-1, 1:].any()
    assert reference.progress(end) == 1.0 and reference.progress(0.6) == 0.0


def test_far_from_limits_a_point_is_carried_on_as_near_them(crane, rng):
    """The short form of what follows a point is that of the curve which ends at rest."""
    home = crane.initial_position
    limited, short = (reference_of(crane, deceleration=DECELERATION, stream_timeout=TIMEOUT) for _ in range(2))
    for reference in (limited, short):
        streamed(reference, home, 0.4, 0.01)
    limited.ahead(2.0)                      # the whole curve is made for that
    times = np.linspace(0.39, 0.39 + TIMEOUT, 60)
    assert [at(short, t) == pytest.approx(at(limited, t), abs=1e-12) for t in times] == [True] * 60


def test_a_point_is_not_carried_on_over_a_limit(crane):
    limits = crane.limits
    x = crane.initial_position.copy()
    x[1] = limits.upper[1] - 0.06
    reference = reference_of(crane, deceleration=DECELERATION, soft_margin=0.005, stream_timeout=1.0)
    reference.hold(x)
    v = 0.1 * AXES[1]
    for k in range(20):
        reference.stream(0.01 * k, x + 0.5 * 0.01 * k * v, min(k / 10.0, 1.0) * v, now=0.01 * k)
        at(reference, 0.01 * k)
    _, path = run(reference, 0.19, 3.0)
    assert_smooth(path)
    assert path[:, 0, 1].max() <= limits.upper[1] - 0.005 + 1e-9
    assert path[-1, 0, 1] > limits.upper[1] - 0.01


def test_a_stop_ends_a_stream_and_so_does_a_trajectory(crane):
    home = crane.initial_position
    for end in ('stop', 'follow', 'hold'):
        reference = reference_of(crane, deceleration=DECELERATION)
        times, _ = streamed(reference, home, 0.5, 0.01)
        t = times[-1] + 0.002
        before = at(reference, t)
        if end == 'stop':
            reference.stop(t)
        elif end == 'follow':
            reference.follow(Waypoints(crane.actuators, [3.0], [home]), t)
        else:
            reference.hold(before[0])
        assert reference.stream_age(t) == np.inf
        if end != 'hold':
            assert at(reference, t)[:2] == pytest.approx(before[:2], abs=1e-9)
            assert_smooth(run(reference, t, t + 3.0)[1])
        assert reference.at_rest(t + 3.1)


def test_a_stream_takes_over_from_a_trajectory_in_motion(crane):
    home = crane.initial_position
    reference = reference_of(crane, deceleration=DECELERATION)
    reference.follow(Waypoints(crane.actuators, [3.0], [home + 0.1]), 0.0)
    before = at(reference, 1.0)
    reference.stream(1.03, before[0] + 0.03 * before[1], before[1], now=1.0)
    assert at(reference, 1.0) == pytest.approx(before, abs=1e-9)
    assert_smooth(run(reference, 1.0, 2.0)[1])


def test_without_a_time_of_arrival_a_point_came_at_the_last_sample(crane):
    reference = reference_of(crane)
    at(reference, 4.0)
    before = at(reference, 4.0)
    reference.stream(4.05, crane.initial_position + 1e-3)
    assert reference.stream_age(4.0) == 0.0
    assert at(reference, 4.0).tolist() == before.tolist()
    assert at(reference, 4.1)[0] == pytest.approx(crane.initial_position + 1e-3)


@pytest.mark.parametrize('point, says', [
    (dict(x=np.zeros(3)), 'positions have shape'),
    *[({field: values}, f'{what} is not an array of numbers')
      for field, what in (('x', 'positions'), ('xd', 'velocities'))
      for values in ('abc', ['0'] * 4, np.zeros(4) * 1j, np.ma.array(np.zeros(4), mask=True))],
    (dict(x=None), 'positions is not an array of numbers: None'),
    (dict(x=np.full(4, np.nan)), 'not finite'),
    (dict(t=np.inf), 'not finite'),
    (dict(xd=np.full(4, np.inf)), 'not finite'),
    (dict(t=0.3), 'is 0.2 s old'),
    (dict(t=0.7), 'lies 0.2 s ahead'),
    (dict(t=0.479), 'not later than the one before'),
    (dict(shift=0.05), r'it jumps: lift_cylinder is 0\.05.* away from the one before, .* allow 0\.016'),
    (dict(xd=np.array([0.0, 5.0, 0.0, 0.0])), 'lift_cylinder'),
    (dict(shift=-1.0), 'it jumps'),
    (dict(xdd=np.ones(3)), 'accelerations have shape'),
    (dict(xd=None), 'accelerations but no velocities'),
])
def test_a_point_that_does_not_fit_is_refused_and_the_motion_goes_on(crane, point, says):
    home = crane.initial_position
    reference, witness = (reference_of(crane, deceleration=DECELERATION, start_tolerance=0.01) for _ in range(2))
    for one in (reference, witness):
        streamed(one, home, 0.5, 0.02)
    t = point.get('t', 0.5)
    x, xd, xdd = wave(home, 0.5)
    with pytest.raises(TrajectoryError, match=f'streamed point: .*{says}'):
        reference.stream(t, point.get('x', x + point.get('shift', 0.0)), point.get('xd', xd), point.get('xdd', xdd),
                         now=0.5)
    for t in (0.5, 0.51, 0.7, 1.5):
        assert at(reference, t).tolist() == at(witness, t).tolist()


def test_an_acceleration_that_leads_beyond_the_rated_speed_is_not_carried_on(crane):
    limit = crane.limits.velocity[0]
    reference = reference_of(crane)
    reference.follow(Waypoints(crane.actuators, [4.0], [crane.initial_position + 0.8 * limit * 2.0 * AXES[0]]), 0.0)
    x, v, _ = at(reference, 2.0)
    assert 0.4 * limit < v[0] < limit
    a = 1.1 * (limit - v[0]) / 0.0125 * AXES[0]
    reference.stream(2.04, x + 0.04 * v, v, a, now=2.0)
    _, path = run(reference, 2.0, 3.5)
    assert_smooth(path)
    assert (np.abs(path[:, 1, 0]) <= 1.001 * limit).all()


def test_a_velocity_from_which_there_is_no_stop_before_the_limit_is_refused(crane):
    low = crane.limits.lower[1]
    x = crane.initial_position.copy()
    x[1] = low + 0.1
    reference = reference_of(crane, deceleration=0.2)
    reference.hold(x)
    reference.follow(Waypoints(crane.actuators, [1.0], [x - 0.09 * AXES[1]], [np.zeros(4)]), 0.0)
    before = at(reference, 0.6)
    v = before[1]
    assert before[0, 1] - v[1]**2 / 0.4 < low
    with pytest.raises(TrajectoryError, match='at its velocity lift_cylinder can only stop at -0'):
        reference.stream(0.62, before[0] + 0.02 * v, v, now=0.6)
    assert at(reference, 1.0)[0, 1] == pytest.approx(low + 0.01)
    # where the point is well, but a stop on the way to it is not, the reference goes on to the point
    reference.stream(0.66, before[0] + 0.03 * v, 0.3 * v, now=0.6)
    reference.stop(0.605)
    _, path = run(reference, 0.6, 3.0)
    assert_smooth(path)
    assert path[:, 0, 1].min() > low and not path[-1, 1:].any()


def test_the_first_point_has_to_be_near(crane):
    reference = reference_of(crane, start_tolerance=0.01)
    with pytest.raises(TrajectoryError, match=r'the first one has lift_cylinder 0\.02 away.*tolerance 0\.01'):
        reference.stream(0.09, crane.initial_position + 0.02 * AXES[1], now=0.0)
    assert reference.at_rest(0.0)
    reference.stream(0.09, crane.initial_position + 0.005 * AXES[1], now=0.0)
    assert reference.moving(0.05)


# limits, contents, jitter and losses

ACCELERATION, JERK = np.array([2.0, 1.0, 1.0, 1.0]), np.array([40.0, 20.0, 20.0, 20.0])


def limited(crane, **limits):
    return reference_of(crane, acceleration=ACCELERATION, jerk=JERK, deceleration=DECELERATION, **limits)


def assert_limits(crane, path, dt=0.002):
    """Position, velocity, acceleration continuous; all within what is declared, jerk too."""
    x, v, a = path.swapaxes(0, 1)
    jerk = np.diff(a, axis=0) / dt
    assert (np.abs(v) <= 1.001 * crane.limits.velocity).all()
    assert (np.abs(a) <= 1.001 * ACCELERATION).all()
    assert (np.abs(jerk) <= 1.001 * JERK).all()
    slack = dt**2 * JERK
    assert (np.abs(np.diff(v, axis=0) - dt * 0.5 * (a[1:] + a[:-1])) <= slack).all()
    assert (np.abs(np.diff(x, axis=0) - dt * 0.5 * (v[1:] + v[:-1])) <= dt * slack + 1e-12).all()


@pytest.mark.parametrize('axis', range(4))
def test_a_point_that_jumps_within_the_tolerance_is_led_over_to_within_all_limits(crane, axis):
    home, path = crane.initial_position, []
    reference = limited(crane, start_tolerance=0.01)
    for k in range(1500):
        t = 0.002 * k
        if k % 10 == 0:
            reference.stream(t, home + 0.009 * (k % 200 >= 100) * AXES[axis], np.zeros(4), now=t)
        path.append(at(reference, t))
    assert_limits(crane, np.array(path))
    assert np.ptp(np.array(path)[:, 0, axis]) > 0.006


def test_velocities_that_step_are_followed_within_all_limits_and_caught_up_with(crane):
    home, path, x = crane.initial_position, [], 0.0
    reference = limited(crane)
    for k in range(2000):
        t, v = 0.002 * k, 0.1 if 500 <= k < 1200 else 0.0
        if k % 10 == 0:
            reference.stream(t, home + x * AXES[2], v * AXES[2], now=t)
        x += 0.002 * v
        path.append(at(reference, t))
    path = np.array(path)
    assert_limits(crane, path)
    assert path[-1, 0, 2] - home[2] == pytest.approx(x, abs=1e-4)
    assert path[1150, 0, 2] - home[2] == pytest.approx(0.1 * 1.3, abs=1e-3)


@settings(max_examples=examples(15), deadline=None)
@given(st.sampled_from([10.0, 20.0, 50.0, 200.0, 500.0, 1000.0]), st.integers(1, 3), st.integers(0, 1000),
       st.floats(0.0, 0.3), st.floats(0.0, 0.1), st.sampled_from(['exact', 'noisy', 'late', 'ahead', 'twice']))
def test_whatever_jitter_and_losses_the_reference_is_smooth_and_near_the_motion(rate, rows, seed, jitter, loss, stamps):
    crane, rng, period = load(), np.random.default_rng(seed), 1.0 / rate
    home, path, points = crane.initial_position, [], []
    reference = limited(crane, start_tolerance=0.01, stream_timeout=0.2)
    for k in range(round(3.0 * rate)):
        at_time = max((k + jitter * rng.uniform(-1.0, 1.0)) * period, 0.0)
        if k == 0 or rng.random() >= loss or points[-1][2] < k - 1:
            of = {'noisy': k * period, 'ahead': at_time + min(period, 0.1)}.get(stamps, at_time)
            late = min(period, 0.05) if stamps == 'late' else 0.0
            points.append((at_time + late, at_time if stamps == 'noisy' else of, k, wave(home, of)[:rows]))
            if stamps == 'twice':
                points.append(points[-1])
    due, refused = 0, 0
    for k in range(1500):
        t = 0.002 * k
        while due < len(points) and points[due][0] <= t:
            try:
                reference.stream(points[due][1], *points[due][3], now=t)
            except TrajectoryError as error:
                refused += 1
                assert 'not later than the one before' in str(error)
            due += 1
        path.append(at(reference, t))
    path = np.array(path)
    assert refused == (due // 2 if stamps == 'twice' else 0)
    assert_limits(crane, path)
    off = np.array([row[0] - wave(home, 0.002 * k)[0] for k, row in enumerate(path)])[500:]
    delay = 0.04 * jitter * period if stamps == 'noisy' else 0.0        # at 40 mm/s
    bound = 2e-3 if rows == 1 else 5e-4
    assert np.sqrt(np.mean(off**2, axis=0)).max() < bound + delay if rate >= 50.0 else np.abs(off).max() < 0.02


def test_what_a_law_has_seen_of_the_future_is_not_changed(crane):
    home, rng, room = crane.initial_position, np.random.default_rng(1), np.empty((3, 3, 4))
    reference, seen = limited(crane), None
    for cycle in range(1000):
        t = 0.002 * cycle
        if cycle % 10 == 0:
            reference.stream(t, wave(home, t)[0] + 1e-3 * rng.uniform(-1.0, 1.0, 4), now=t)
        if seen is not None and cycle > 20:
            assert np.array(reference.ahead(t + 0.02)) == pytest.approx(seen, abs=1e-9)
        times = t, t + 0.021, t + 0.022
        spline = reference.path(times, room)
        if spline is not None:
            for at, row in zip(times, room):
                path_sample(*spline, at, row)
        seen = room[2].copy()
        assert seen == pytest.approx(np.array(reference.ahead(times[2])), abs=1e-9)


def test_a_point_is_nothing_without_a_state():
    from psdyn_ros.control.reference.reference import ReferenceMotion
    with pytest.raises(TrajectoryError, match='no state was measured'):
        ReferenceMotion(load()).stream(0.0, np.zeros(4))


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(0, 1000), st.booleans(), st.floats(0.3, 1.5))
def test_goals_that_change_every_50_ms_keep_all_limits(seed, velocities, seconds):
    crane, rng, path, taken = load(), np.random.default_rng(seed), [], 0
    reference = limited(crane, start_tolerance=0.01)
    for k in range(1500):
        t = 0.002 * k
        if k % 25 == 0:
            goal = at(reference, t)[0] + 0.05 * rng.uniform(-1.0, 1.0, 4)
            try:
                rates = [np.zeros(4)] if velocities else None
                reference.follow(Waypoints(crane.coordinates, [seconds], [goal], rates), t)
                taken += 1
            except TrajectoryError as error:
                assert 'limit' in str(error) or 'outside' in str(error) or 'step' in str(error)
        path.append(at(reference, t))
    assert_limits(crane, np.array(path))
    assert taken or seconds < 0.6
