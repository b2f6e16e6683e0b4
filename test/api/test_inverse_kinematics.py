"""Inverse kinematics: poses that forward kinematics reaches are found, within all limits, and no others."""

from functools import cache

import numpy as np
import pytest
from conftest import thorough
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cases import made
from support.paths import ROOT

import psdyn_ros
from psdyn_ros import NonFiniteError, OutOfReachError, PsdynError, ShapeError, StateError, UnknownNameError
from psdyn_ros.api.motion.samples import ranges

TOOLS = {'hiab_xs031': 'tcp', 'hiab_xs031_lift': 'lift_boom_link', 'four_bar': 'coupler_link', 'five_bar': 'tcp',
         'excavator': 'tcp', 'pkm_2pur2rpu': 'tcp'}
POINT = (0.05, -0.1, 0.02)


@cache
def machine(name):
    return psdyn_ros.load(str(ROOT / 'urdf' / f'{name}.urdf'))


def within_limits(m, x, slack=1e-7):
    """Whether all joints are within their limits."""
    declared = m.machine.description.joints
    return all(not declared[name].lower - slack > position and not position > declared[name].upper + slack
               for name, position in zip(*m.joint_state(x)[:2]))


def reachable(m, rng, count):
    """Return `count` positions within all limits at which the loops close."""
    box, found = ranges(m), []
    while len(found) < count:
        x = m.initial_position.copy()
        x[m.nx - len(m.coordinates):] = rng.uniform(box.lower, box.upper)
        try:
            if within_limits(m, x):
                found.append(x)
        except PsdynError:
            continue
    return found


def pose_of(m, x, link):
    pose = m.link_pose(x, link)
    pose[:3, 3] += pose[:3, :3] @ POINT
    return pose


@pytest.mark.jit
@pytest.mark.parametrize('whole', [False, True], ids=['position', 'pose'])
@pytest.mark.parametrize('name', thorough([*TOOLS], 2))
def test_random_poses_are_reached_within_the_limits(name, whole, rng):
    """All of 300; the 99.9 % of the requirement leave none."""
    m, link = machine(name), TOOLS[name]
    for drawn in reachable(m, rng, 300):
        pose = pose_of(m, drawn, link)
        x = m.inverse_kinematics(link, pose if whole else pose[:3, 3], point=POINT)
        assert abs(pose_of(m, x, link) - pose)[:3, 0 if whole else 3:].max() < 2e-8
        assert within_limits(m, x)


@pytest.mark.parametrize('name', thorough(['hiab_xs031', 'excavator'], 1))
def test_solution_of_a_redundant_machine_is_next_to_the_start(name, rng):
    """Four coordinates for a position: the distance to the start has no slope along the positions that reach it."""
    m, box = machine(name), ranges(machine(name))
    link, inner = 'tcp', 0
    for start, goal in zip(*2 * [iter(reachable(m, rng, 40))]):
        x = m.inverse_kinematics(link, m.link_pose(goal, link)[:3, 3], start=start)
        stopped = [not low + 1e-9 < value < high - 1e-9 for low, value, high in zip(box.lower, x, box.upper)]
        E = m.jacobian(x, link)[:3] * box.width
        away = (start - x) / box.width
        free = ~np.array(stopped)
        if free.sum() < 4:
            continue
        null = np.linalg.svd(E)[2][3:]
        inner += 1
        assert np.linalg.norm(null @ away) < 2e-3 * (1.0 + np.linalg.norm(away))
    assert inner > 5


@pytest.mark.parametrize('name', thorough([*TOOLS], 2))
def test_what_is_out_of_reach_is_not_solved(name):
    m = machine(name)
    link = TOOLS[name]
    position = m.link_pose(m.initial_position, link)[:3, 3]
    far = position + (6.0, 4.0, 2.0)
    with pytest.raises(OutOfReachError, match='misses it by') as caught:
        m.inverse_kinematics(link, far)
    there = m.link_pose(caught.value.x, link)[:3, 3]
    assert abs(np.linalg.norm(there - far) - caught.value.distance) < 1e-9
    assert caught.value.distance > 1.0
    # limits of actuators that are no coordinates give way to the distance a little
    assert within_limits(m, caught.value.x, 1e-4 * caught.value.distance)


def test_nearest_position_is_as_near_as_any_sample(rng):
    """A little beyond the longest reach: the limit of the telescope is in the way, and no sample is nearer."""
    m = machine('hiab_xs031')
    samples = [m.link_pose(x, 'tcp')[:3, 3] for x in reachable(m, rng, 400)]
    goal = 1.2 * max(samples, key=np.linalg.norm)
    with pytest.raises(OutOfReachError, match='at the limit of .*telescope') as caught:
        m.inverse_kinematics('tcp', goal)
    assert caught.value.distance <= min(np.linalg.norm(goal - one) for one in samples)
    assert 'telescope' in caught.value.at_limit


def test_held_coordinates_stay_and_are_named(rng):
    m = machine('hiab_xs031')
    goal = m.link_pose(reachable(m, rng, 1)[0], 'tcp')[:3, 3]
    start = m.initial_position
    start[3] = 0.4
    with pytest.raises(OutOfReachError, match='slew, telescope held') as caught:
        m.inverse_kinematics('tcp', goal, start=start, free=('lift_cylinder', 'tilt_cylinder'))
    assert np.array_equal(caught.value.x[[0, 3]], start[[0, 3]])
    moved = start + (0.0, 0.02, -0.02, 0.0)
    x = m.inverse_kinematics('tcp', m.link_pose(moved, 'tcp'), start=start, free=('lift_cylinder', 'tilt_cylinder'))
    assert abs(x - moved).max() < 1e-6 and np.array_equal(x[[0, 3]], start[[0, 3]])


def test_start_beyond_a_limit_is_moved_into_it():
    m = machine('hiab_xs031')
    start = m.initial_position
    start[3] = m.coordinate_limits.upper[3] + 0.05
    x = m.inverse_kinematics('tcp', m.link_pose(m.initial_position, 'tcp')[:3, 3], start=start)
    assert within_limits(m, x)


def test_floating_base_stays_and_targets_are_in_the_world(rng):
    case = made('floating crane')
    m, s = case.m, case.state(rng)
    goal = s.x.copy()
    goal[7:] += (0.2, 0.03, -0.02, 0.1)
    x = m.inverse_kinematics('tcp', m.link_pose(goal, 'tcp'), start=s.x)
    assert np.array_equal(x[:7], s.x[:7])
    assert abs(m.link_pose(x, 'tcp') - m.link_pose(goal, 'tcp')).max() < 1e-7


def test_half_a_turn_is_an_error_of_orientation():
    """The logarithm of a rotation by pi: the solver leaves it, where sines alone would see no error."""
    m = machine('hiab_xs031')
    pose = m.link_pose(m.initial_position, 'tcp')
    turned = pose @ np.diag((-1.0, -1.0, 1.0, 1.0))
    with pytest.raises(OutOfReachError) as caught:
        m.inverse_kinematics('tcp', turned)
    assert caught.value.angle > 0.5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-6.0, 6.0), min_size=3, max_size=3))
def test_any_position_is_reached_or_refused_with_its_distance(goal):
    m = machine('hiab_xs031')
    try:
        x = m.inverse_kinematics('tcp', goal)
        miss = 0.0
    except OutOfReachError as reason:
        x, miss = reason.x, reason.distance
        assert miss > 1e-8
    assert abs(np.linalg.norm(m.link_pose(x, 'tcp')[:3, 3] - goal) - miss) < 2e-8
    assert within_limits(m, x)


@pytest.mark.parametrize('options, kind, message', [
    ({'link': 'tpc'}, UnknownNameError, 'tcp'), ({'target': (1, 2)}, ShapeError, 'position .* or a pose'),
    ({'target': (1, 2, np.nan)}, NonFiniteError, 'target'), ({'target': np.ones((4, 4))}, StateError, 'is no pose'),
    ({'free': ('lift_boom',)}, UnknownNameError, "no coordinate 'lift_boom'"),
    ({'start': (0, 0)}, ShapeError, 'start'), ({'tolerance': 0.0}, StateError, 'positive'),
    ({'length': -1.0}, StateError, 'positive')])
def test_what_does_not_fit_is_named(options, kind, message):
    with pytest.raises(kind, match=message):
        machine('hiab_xs031').inverse_kinematics(**{'link': 'tcp', 'target': (1.0, 0.0, 1.0), **options})
