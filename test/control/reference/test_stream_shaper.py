"""Shaped streams of points: what they leave of a swing, beside a pendulum that only the point of suspension moves."""

from functools import cache

import numpy as np
import pytest
from test_suspension_path import DRIVEN, LATER, W, crane, swing

from psdyn_ros.control.reference.reference import ReferenceMotion
from psdyn_ros.control.reference.reference_limits import ReferenceLimits
from psdyn_ros.control.reference.stream import StreamedPoint
from psdyn_ros.control.reference.stream_shaper import StreamShaper
from psdyn_ros.control.reference.swing_shaper import NONE, ZVD, SwingShaping, shaper
from psdyn_ros.control.reference.trajectory import TrajectoryError

RATE, SECONDS = 100.0, 2.0
WAY = np.array((0.2, 0.08, -0.08, 0.25))


def motion(t):
    """Return x, xd, xdd (4,) of a sender that goes its WAY within SECONDS, and then stands still."""
    u = min(max(t / SECONDS, 0.0), 1.0)
    s = (u**3 * (10.0 - 15.0 * u + 6.0 * u * u), 30.0 * (u * (1.0 - u))**2 / SECONDS,
         60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / SECONDS**2)
    start = crane()[0].initial_position[DRIVEN]
    return start + s[0] * WAY, s[1] * WAY, s[2] * WAY


def reference(kind, frequency=W):
    one = ReferenceMotion(crane()[0].driven_machine, ReferenceLimits(stream_timeout=0.1, start_tolerance=0.01))
    one.shaping = SwingShaping(lambda x: ((frequency,), (0.0,)), kind)
    one.hold(crane()[0].initial_position[DRIVEN])
    return one


@cache
def streamed(kind, frequency=W, given=3, seed=0):
    """Return samples (N, 3, 4) of a reference after points with 30 % jitter, the first `given` of x, xd, xdd."""
    one, rng, samples = reference(kind, frequency), np.random.default_rng(seed), []
    due, clock = 0.0, 0.0
    while clock < SECONDS + 4.0:
        while due <= clock:
            one.stream(due, *motion(due)[:given], now=clock)
            due += (1.0 + rng.uniform(-0.3, 0.3)) / RATE
        samples.append(np.array(one.sample(clock)))
        clock += LATER / 4.0
    return np.array(samples[::4]), one


@pytest.mark.parametrize('given', [1, 3])
def test_stream_that_comes_to_rest_leaves_next_to_no_swing(given):
    (unshaped, _), (shaped, one) = streamed(NONE), streamed(ZVD, given=given)
    assert swing(unshaped) > 0.05
    assert swing(shaped) < 0.05 * swing(unshaped)
    assert one.shaped_by == 'joints, of streamed points'
    np.testing.assert_allclose(shaped[-1, 0], motion(SECONDS)[0], atol=1e-4)


@pytest.mark.parametrize('length', [0.8, 1.2])
def test_rope_that_is_not_as_believed_leaves_a_fifth_at_most(length):
    shaped, _ = streamed(ZVD, W / np.sqrt(length))
    assert swing(shaped) < 0.2 * swing(streamed(NONE)[0])


def test_shaped_point_is_the_sum_of_delayed_motions():
    kept, rng, t = None, np.random.default_rng(1), 0.0
    one = shaper(ZVD, W)
    while t < SECONDS + 4.0:
        point = StreamedPoint(t, np.array(motion(t)))
        kept = kept or StreamShaper(one, point)
        expected = sum(share * np.array(motion(t - delay)) for share, delay in zip(one.shares, one.delays))
        np.testing.assert_allclose(kept.shaped(point).state, expected, atol=2e-3)
        np.testing.assert_allclose(kept.shaped(point).state[0], expected[0], atol=1e-5)
        if t > 0.0:
            kept.take(point)
        t += (1.0 + rng.uniform(-0.3, 0.3)) / RATE


def test_points_are_judged_as_they_come_and_not_as_they_are_shaped():
    one = reference(ZVD)
    x = motion(0.0)[0]
    one.stream(0.0, x, np.zeros(4), now=0.0)
    with pytest.raises(TrajectoryError, match='it jumps: telescope is 0.03 away from the one before'):
        one.stream(0.001, x + (0.0, 0.0, 0.0, 0.03), np.zeros(4), now=0.001)
    with pytest.raises(TrajectoryError, match='not later than the one before'):
        one.stream(0.0, x, np.zeros(4), now=0.001)
    one.stream(0.01, x, np.zeros(4), now=0.01)


def test_stream_that_begins_in_motion_is_followed_as_it_is():
    one = reference(ZVD)
    one.stream(0.0, motion(0.0)[0], WAY, now=0.0)
    one.sample(0.05)
    one.stop(0.05)
    one.stream(0.06, one.sample(0.06)[0].copy(), now=0.06)
    assert one.shaped_by == 'nothing: the stream begins in motion'
