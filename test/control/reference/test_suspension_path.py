"""Shaped paths of the point of suspension: what they leave of a swing, beside a pendulum that only the point moves."""

from functools import cache

import numpy as np
import pytest

from psdyn_ros.api.load import load
from psdyn_ros.control import Waypoints
from psdyn_ros.control.laws.passive_states import Suspension
from psdyn_ros.control.reference.reference import ReferenceMotion
from psdyn_ros.control.reference.swing_shaper import SwingShaping
from psdyn_ros.model.locate import find_machine

W = 2.273               # rad/s
DRIVEN = slice(0, 4)
LATER = 0.02            # s beyond which samples of a curve tell nothing of a pendulum that takes 2.8 s


@cache
def crane():
    m = load(find_machine('loader_crane'))
    return m, Suspension(m)


def followed(way, suspension, joints=None, telescope=None):
    """Return samples (N, 3, n) LATER after each other of a motion by `way` from rest to rest in two seconds."""
    m = crane()[0].driven_machine
    one, start = ReferenceMotion(m), m.initial_position.copy()
    start[3] = start[3] if telescope is None else telescope
    one.shaping = SwingShaping(lambda x: ((W,), (0.0,)), suspension=suspension)
    one.hold(start)
    names, ends, zero = m.coordinates, (start, start + way), np.zeros((2, 4))
    if joints is not None:
        names, columns = joints, [m.joints.index(name) for name in joints]
        ends = [m.joint_state(x, zero[0], zero[0])[1][columns] for x in ends]
    one.follow(Waypoints(names, [0.0, 2.0], ends, zero, zero), 0.0)
    return np.array([np.array(one.sample(t)) for t in np.arange(0.0, one.end + 2.0 * LATER, LATER)])


def swing(samples):
    """Amplitude of a pendulum after its point of suspension moved by samples, in units of its length and gravity."""
    points = crane()[1](samples[:, 0])[0]
    acceleration = np.diff(points[:, :2], 2, axis=0) / LATER**2
    t = LATER * np.arange(1, len(points) - 1)
    return float(np.linalg.norm(np.exp(-1j * W * t) @ acceleration) * LATER)


@pytest.mark.parametrize('way', [(0.4, 0.1, -0.1, 0.3), (0.8, 0.1, -0.1, 0.3), (0.0, 0.1, -0.1, 0.3)])
def test_no_swing_is_left_by_the_path_of_the_suspension(way):
    of_joints, of_point = (swing(followed(way, suspension)) for suspension in (None, crane()[1]))
    assert of_joints > 0.005 and of_point < 0.02 * of_joints


def test_motion_keeps_its_ends_and_is_smooth():
    way = (0.4, 0.1, -0.1, 0.3)
    samples = followed(way, crane()[1])
    np.testing.assert_allclose(samples[-1, 0], crane()[0].initial_position[DRIVEN] + way, atol=1e-9)
    assert np.abs(samples[[0, -1], 1:]).max() < 1e-9
    x, xd, xdd = samples.swapaxes(0, 1)
    np.testing.assert_allclose(np.diff(x, axis=0), 0.5 * LATER * (xd[1:] + xd[:-1]), atol=2e-5)
    np.testing.assert_allclose(np.diff(xd, axis=0), 0.5 * LATER * (xdd[1:] + xdd[:-1]), atol=2e-4)


def test_other_joints_in_the_trajectory_leave_no_swing_either():
    joints = 'slew', 'lift_boom', 'tilt_boom', 'telescope'
    way = (0.4, 0.1, -0.1, 0.3)
    assert swing(followed(way, crane()[1], joints=joints)) < 0.05 * swing(followed(way, None, joints=joints))


def test_motion_that_axes_cannot_follow_is_shaped_in_its_joints():
    """A slew along the chord of its arc takes a telescope that is shorter than it can be."""
    way = (0.9, 0.0, 0.0, 0.0)
    for telescope, least, most in ((0.5, 0.01, 0.5), (0.0, 0.0, 1e-12)):
        samples = followed(way, crane()[1], telescope=telescope)
        others = np.abs(samples[:, 0, 1:] - samples[0, 0, 1:]).max()
        assert least <= others <= most
        assert np.abs(samples[-1, 0] - samples[0, 0] - way).max() < 1e-9
