"""Structure that pictures show: poses of links, loops, roles of joints, the tool."""

import numpy as np
import pytest
from conftest import thorough
from support.cases import machine

from psdyn_ros.view.poses import link_poses
from psdyn_ros.view.topology import ACTUATED, DEPENDENT, FIXED, PASSIVE, tool_of, topology


@pytest.mark.parametrize('name', thorough(['hiab_xs031', 'excavator', 'balloon', 'pkm_2pur2rpu', 'delta'], 3))
def test_poses_are_those_of_the_recursion(name):
    m = machine(name)
    x = np.tile(m.initial_position, (3, 1))
    x[1:, -len(m.coordinates):] += 0.01
    if m.floating:
        x[2, :7] = 0.3, -0.2, 0.5, 0.5, -0.5, 0.5, 0.5
    poses = link_poses(m, m.joint_state(x)[1], x[:, :7] if m.floating else None)
    for link in m.links:
        for row, pose in zip(x, poses[link]):
            np.testing.assert_allclose(pose, m.link_pose(row, link), atol=1e-12)


def test_every_joint_has_a_role():
    roles = topology(machine('loader_crane')).roles
    assert roles['lift_cylinder'] == ACTUATED and roles['hook_pitch'] == PASSIVE
    assert roles['lift_boom'] == DEPENDENT and roles['hook_mount'] == FIXED
    assert set(roles) == set(machine('loader_crane').machine.description.joints)


def test_a_loop_lists_the_joints_between_its_ends():
    loops = topology(machine('five_bar')).loops
    assert sorted(map(sorted, loops.values())) == [['elbow_1', 'elbow_2', 'shoulder_1', 'shoulder_2']]


@pytest.mark.parametrize('name, body', [
    ('hiab_xs031', {'telescope_link', 'tcp'}), ('excavator', {'bucket_link', 'tcp'}),
    ('loader_crane', {'hook', 'load'}), ('delta', {'ball', 'platform'}), ('pkm_2pur2rpu', {'platform_link', 'tcp'})])
def test_the_tool_is_on_the_body_that_all_coordinates_move(name, body):
    m = machine(name)
    poses = {link: m.link_pose(m.initial_position, link) for link in m.links}
    tool, point = tool_of(m, poses, dict.fromkeys(m.links, np.zeros(3)))
    assert tool in body and not point.any()
    assert topology(m).moved[tool] == set(m.coordinates)


def test_a_frame_without_shape_may_be_the_tool():
    m = machine('five_bar')
    poses = {link: m.link_pose(m.initial_position, link) for link in m.links}
    assert tool_of(m, poses, {'upper_1_link': np.zeros(3)})[0] == 'tcp'
