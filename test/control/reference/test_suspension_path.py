"""Shaped paths of the point of suspension: what they leave of a swing, beside a pendulum that only the point moves."""

from functools import cache

import numpy as np
import pytest
from conftest import thorough
from scipy.optimize import minimize_scalar

from psdyn_ros.api.load import load
from psdyn_ros.control import Waypoints
from psdyn_ros.control.laws.passive_states import Suspension
from psdyn_ros.control.reference.reference import ReferenceMotion
from psdyn_ros.control.reference.swing_shaper import NONE, ZVD, SwingShaping
from psdyn_ros.model.locate import find_machine

W = 2.273               # rad/s
DRIVEN = slice(0, 4)
LATER = 0.02            # s beyond which samples of a curve tell nothing of a pendulum that takes 2.8 s


@cache
def crane():
    m = load(find_machine('loader_crane'))
    return m, Suspension(m)


def followed(way, suspension, joints=None, telescope=None, seconds=2.0, frequency=W, kind=ZVD):
    """Return samples (N, 3, n) LATER after each other of a motion by `way` from rest to rest."""
    m = crane()[0].driven_machine
    one, start = ReferenceMotion(m), m.initial_position.copy()
    start[3] = start[3] if telescope is None else telescope
    one.shaping = SwingShaping(lambda x: ((frequency,), (0.0,)), kind, suspension)
    one.hold(start)
    names, ends, zero = m.coordinates, (start, start + way), np.zeros((2, 4))
    if joints is not None:
        names, columns = joints, [m.joints.index(name) for name in joints]
        ends = [m.joint_state(x, zero[0], zero[0])[1][columns] for x in ends]
    one.follow(Waypoints(names, [0.0, seconds], ends, zero, zero), 0.0)
    return np.array([np.array(one.sample(t)) for t in np.arange(0.0, one.end + 2.0 * LATER, LATER)])


def swing(samples):
    """Amplitude of a pendulum after its point of suspension moved by samples, in units of its length and gravity."""
    points = crane()[1](samples[:, 0])[0]
    acceleration = np.diff(points[:, :2], 2, axis=0) / LATER**2
    t = LATER * np.arange(1, len(points) - 1)
    return float(np.linalg.norm(np.exp(-1j * W * t) @ acceleration) * LATER)


def left(samples):
    """Largest angle [rad] of the load from where it hangs, on axes that keep to samples exactly, after their end.

    The whole crane by hybrid dynamics, a step of Runge and Kutta every two samples.
    """
    m = crane()[0]
    driven, free = m.coordinates[DRIVEN], dict.fromkeys(m.coordinates[4:], 0.0)
    still = np.concatenate([samples[-1:]] * round(2.0 * np.pi / W / LATER))

    def rate(sample, state):
        x, xd = np.concatenate((sample[:2], state), axis=1)
        found = m.hybrid_dynamics(x, xd, accelerations=dict(zip(driven, sample[2])), efforts=free)
        return np.array((state[1], found.accelerations[4:]))

    state, angles, h = np.array((m.initial_position[4:], (0.0, 0.0))), [], 2.0 * LATER
    samples = np.concatenate((samples, still))
    for a, b, c in zip(samples[:-2:2], samples[1::2], samples[2::2]):
        k1 = rate(a, state)
        k2 = rate(b, state + 0.5 * h * k1)
        k3 = rate(b, state + 0.5 * h * k2)
        state = state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + rate(c, state + h * k3))
        angles.append(state[0])
    angles = np.array(angles[-(len(still) // 2):])
    return float(np.linalg.norm(0.5 * (angles.max(axis=0) - angles.min(axis=0))))


@pytest.mark.parametrize(('way', 'seconds'), thorough([
    ((0.4, 0.1, -0.1, 0.3), 2.0), ((0.8, 0.1, -0.1, 0.3), 3.0), ((0.4, 0.1, 0.1, 0.3), 4.0)], 1, several=True))
def test_whole_crane_is_left_with_a_fiftieth_of_the_swing(way, seconds):
    suspension = crane()[1]
    unshaped = left(followed(way, None, seconds=seconds, kind=NONE))
    assert unshaped > 0.1
    assert left(followed(way, suspension, seconds=seconds)) < 0.02 * unshaped
    assert max(left(followed(way, suspension, seconds=seconds, frequency=W / np.sqrt(length)))
               for length in (0.8, 1.2)) < 0.2 * unshaped


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


def shaped_by(kind, suspension, telescope, begins=(0.0,)):
    """Return what the reference reports of the last of slews, each begun at a time [s]."""
    m = crane()[0].driven_machine
    one, start = ReferenceMotion(m), m.initial_position.copy()
    start[3] = telescope
    one.shaping = SwingShaping(lambda x: ((W,), (0.0,)), kind, suspension)
    one.hold(start)
    assert one.shaped_by == 'nothing: no motion was executed yet'
    for begin in begins:
        one.follow(Waypoints(m.coordinates, [4.0], [start + [0.9, 0.0, 0.0, 0.0]]), begin)
    return one.shaped_by


def taken(samples, modes=((W,), (0.0,))):
    """Return what the reference reports of a motion by samples, and how long it then takes [s]."""
    m = crane()[0].driven_machine
    one = ReferenceMotion(m)
    one.shaping = SwingShaping(lambda x: modes, ZVD, crane()[1])
    one.hold(samples[0, 0])
    times = LATER * np.arange(1, len(samples))
    one.follow(Waypoints(m.coordinates, times, *samples[1:].swapaxes(0, 1)), 0.0)
    return one.shaped_by, one.end


@pytest.mark.parametrize('modes', [((W,), (0.0,)), ((W, 300.0), (0.0, 0.9))], ids=['', 'and one that dies out'])
def test_motion_that_was_shaped_already_is_taken_as_it_is(modes):
    samples = followed((0.4, 0.1, -0.1, 0.3), crane()[1])
    said, end = taken(samples, modes)
    assert said == 'nothing: its own swings cancel each other'
    assert end == pytest.approx(LATER * (len(samples) - 1))


def test_motion_whose_length_happens_to_cancel_its_swing_is_shaped():
    """At a zero of its spectrum a motion leaves no swing, and much where the rope is a little longer."""
    slew = (0.05, 0.0, 0.0, 0.0)
    def of(seconds):
        return swing(followed(slew, None, seconds=seconds, kind=NONE))
    zero = minimize_scalar(of, bounds=(4.0, 6.5), method='bounded').x
    assert of(zero) < 0.02 * of(2.0)
    assert taken(followed(slew, None, seconds=zero, kind=NONE))[0] == 'path of the suspension'


def test_what_is_shaped_of_a_trajectory_is_reported():
    suspension = crane()[1]
    assert shaped_by(ZVD, suspension, 0.5) == 'path of the suspension'
    assert shaped_by(ZVD, suspension, 0.0).startswith('joints: with the path of the suspension point 0: ')
    assert shaped_by(ZVD, None, 0.5) == 'joints'
    assert shaped_by(NONE, suspension, 0.5) == "nothing: the shaper is 'none', or no mode swings"
    assert shaped_by(ZVD, suspension, 0.5, (0.0, 0.7)) == 'nothing: the trajectory begins in motion'
