"""Whatever is asked of a reference and whenever: no jump in position or velocity, nothing beyond the limits."""

import gc
import weakref
from functools import cache

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from support.machines import URDF

import psdyn_ros
from psdyn_ros.control.reference.reference import ReferenceMotion
from psdyn_ros.control.reference.reference_limits import ReferenceLimits
from psdyn_ros.control.reference.trajectory import TrajectoryError, Waypoints

DT = 0.002
DECELERATION = np.array([0.5, 0.3, 0.3, 0.4])
AXES = np.eye(4)
BOOMS = ('slew', 'lift_boom', 'tilt_boom', 'telescope')


@cache
def load(name='hiab_xs031'):
    return psdyn_ros.load(URDF / f'{name}.urdf', allow_unphysical=True)


def reference_of(machine, **limits):
    reference = ReferenceMotion(machine, ReferenceLimits(**limits))
    reference.hold(machine.initial_position)
    reference.sample(0.0)
    return reference


def at(reference, t):
    return np.array([values.copy() for values in reference.sample(t)])


def run(reference, start, end, dt=DT):
    """(N,), (N, 3, dof)"""
    times = np.arange(start, end, dt)
    return times, np.array([at(reference, t) for t in times])


def assert_smooth(path, dt=DT, acceleration=None):
    """Positions go with the velocities and velocities with the accelerations, apart from steps of the latter."""
    x, v, a = path.swapaxes(0, 1)
    slack = dt * (np.abs(a[1:]) + np.abs(a[:-1])) + 5e-5
    assert (np.abs(np.diff(v, axis=0) - dt * 0.5 * (a[1:] + a[:-1])) <= slack).all()
    assert (np.abs(np.diff(x, axis=0) - dt * 0.5 * (v[1:] + v[:-1])) <= dt * slack).all()
    if acceleration is not None:
        assert (np.abs(a) <= 1.03 * acceleration).all()


ACTION = st.tuples(st.sampled_from(['follow', 'positions', 'future', 'past', 'speed', 'stop', 'point', 'sliced',
                                    'booms']),
                   st.floats(-1.0, 1.0), st.integers(0, 3), st.floats(0.0, 0.6), st.sampled_from([0.7, 1.0, 2.0]))


@settings(max_examples=examples(60))
@given(st.lists(ACTION, min_size=1, max_size=8))
def test_nothing_that_is_asked_makes_the_reference_jump_or_leave_its_limits(actions):
    machine = load()
    reference = reference_of(machine, deceleration=DECELERATION)
    home, t, path = machine.initial_position, 0.0, []
    for kind, amount, axis, wait, seconds in actions:
        validated = ask(reference, machine, kind, amount, axis, seconds, t, home)
        if validated is not None:
            times, part = run(reference, t, t + 0.03)
            path.append(part)
            t = times[-1] + DT
            try:
                reference.execute(validated, t)
            except TrajectoryError:
                pass
        times, part = run(reference, t, t + wait + 2 * DT)
        path.append(part)
        t = times[-1] + DT
    reference.set_speed(1.0, t)
    path.append(run(reference, t, t + 6.0, 2 * DT)[1])
    assert reference.at_rest(t + 6.0) and not reference.abandoned
    for part, following in zip(path, path[1:]):
        assert_smooth(np.concatenate([part, following[:1]]))
    assert_smooth(path[-1], 2 * DT)
    everything = np.concatenate(path)
    assert (np.abs(everything[:, 1]) <= 1.002 * machine.limits.velocity).all()
    assert (everything[:, 0] >= machine.limits.lower - 1e-6).all()
    assert (everything[:, 0] <= machine.limits.upper + 1e-6).all()


def ask(reference, machine, kind, amount, axis, seconds, t, home):
    """Ask for something at time t; what is refused leaves everything as it was. Returns a trajectory for later."""
    target = home + 0.15 * amount * AXES[axis]
    validated = None
    still = [np.zeros(4)]
    before = at(reference, t)
    try:
        if kind == 'speed':
            reference.set_speed(abs(amount), t)
        elif kind == 'stop':
            reference.stop(t)
        elif kind == 'point':
            x, v, _ = before
            reference.stream(t + 0.04, x + 0.04 * v + 1e-4 * amount * AXES[axis], v, now=t)
        elif kind == 'sliced':
            validated = reference.validate_trajectory(Waypoints(machine.actuators, [seconds], [target], still), t)
            while not validated.advance(1e-5):
                pass
        elif kind == 'booms':
            names, q, _, _ = machine.joint_state(target)
            angles = [q[names.index(name)] for name in BOOMS]
            reference.follow(Waypoints(BOOMS, [seconds], [angles], still), t)
        else:
            start = {'future': t + abs(amount), 'past': t - 0.2 * abs(amount)}.get(kind)
            velocities = None if kind == 'positions' else still
            reference.follow(Waypoints(machine.actuators, [seconds], [target], velocities), t, start)
    except TrajectoryError:
        pass
    if kind != 'stop':
        assert at(reference, t)[:2] == pytest.approx(before[:2], abs=1e-7)
    return validated


@pytest.mark.parametrize('later', [2.0, 4.0, 6.0])
def test_a_trajectory_that_waits_gives_way_to_another_that_waits(crane, later):
    """Whether the other one begins before or after: it takes over from what is running then."""
    home = crane.initial_position
    reference = reference_of(crane)
    reference.follow(Waypoints(crane.actuators, [5.0], [home + 0.2 * AXES[0]], [np.zeros(4)]), 0.0)
    reference.follow(Waypoints(crane.actuators, [1.5], [home - 0.05], [np.zeros(4)]), 0.5, 3.0)
    reference.follow(Waypoints(crane.actuators, [2.0], [home + 0.05], [np.zeros(4)]), 1.0, later)
    assert_smooth(run(reference, 1.0, 9.0)[1])
    assert at(reference, 9.0)[0] == pytest.approx(home + 0.05) and not reference.abandoned


def test_one_that_was_accepted_meanwhile_is_led_over_from(crane):
    home = crane.initial_position
    reference = reference_of(crane)
    validated = reference.validate_trajectory(Waypoints(crane.actuators, [2.0], [home + 0.05], [np.zeros(4)]), 0.0, 2.0)
    validated.advance()
    reference.follow(Waypoints(crane.actuators, [6.0], [home + 0.2 * AXES[0]], [np.zeros(4)]), 0.5)
    reference.execute(validated, 0.6)
    assert_smooth(run(reference, 0.6, 5.0)[1])
    assert at(reference, 5.0)[0] == pytest.approx(home + 0.05) and not reference.abandoned


@pytest.mark.parametrize('velocities', [None, [np.zeros(4)]])
def test_in_motion_the_acceleration_goes_over_too(crane, velocities):
    home = crane.initial_position
    reference = reference_of(crane)
    reference.follow(Waypoints(crane.actuators, [3.0], [home + 0.1], [np.zeros(4)]), 0.0)
    before = at(reference, 1.0)
    reference.follow(Waypoints(crane.actuators, [1.5, 3.0], [home + 0.05, home], velocities and 2 * velocities), 1.0)
    assert at(reference, 1.0) == pytest.approx(before, abs=1e-9)
    steps = np.abs(np.diff(run(reference, 1.0, 3.9)[1][:, 2], axis=0))
    assert steps.max() < 0.02


def test_a_stream_keeps_nothing_of_the_points_before(crane):
    reference = reference_of(crane)
    reference.stream(0.0, crane.initial_position, now=0.0)
    first = weakref.ref(reference._motion)
    reference.stream(0.02, crane.initial_position, now=0.02)
    gc.collect()
    assert first() is None
