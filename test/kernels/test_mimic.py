"""Joints that follow others by <mimic>: against the same tree without it, its efforts projected by the ratios."""

import numpy as np
import pytest

import psdyn_ros
from psdyn_ros.formulations.adapters import Mechanism, call_witnesses
from psdyn_ros.model.errors import ActuationError, ModelError, UnknownNameError

JOINTS = 'slew', 'boom', 'stage_1', 'stage_2', 'stage_3', 'hook', 'rack'
LEADERS = 'slew', 'boom', 'stage_1', 'hook'
MIMIC = {'stage_2': ('stage_1', 1.0, 0.0), 'stage_3': ('stage_2', 0.5, 0.1), 'rack': ('slew', -0.25, 0.02)}


def link(name, mass, x):
    return (f'<link name="{name}"><inertial><origin xyz="{x} 0.02 0.01" rpy="0.1 0.2 0.3"/><mass value="{mass}"/>'
            '<inertia ixx="0.5" iyy="0.8" izz="0.9" ixy="0.02" ixz="-0.01" iyz="0.03"/></inertial></link>')


def joint(name, kind, parent, origin, axis, mimic, limits='lower="-2" upper="2" velocity="1" effort="1e5"'):
    follows = ''
    if mimic and name in MIMIC:
        follows = '<mimic joint="{}" multiplier="{}" offset="{}"/>'.format(*MIMIC[name])
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{name}_link"/>'
            f'<origin xyz="{origin}" rpy="0.1 -0.2 0.3"/><axis xyz="{axis}"/><limit {limits}/>'
            f'<dynamics damping="3" friction="2"/>{follows}</joint>')


def crane(mimic=True, change=('', ''), **options):
    """A boom on a slew by a rack, with a telescope of three stages by chains and a hook."""
    text = '\n'.join((
        '<robot name="crane"><link name="base"/>',
        *(link(f'{name}_link', 20.0 + 3.0 * k, 0.2 * k) for k, name in enumerate(JOINTS)),
        joint('slew', 'revolute', 'base', '0 0 1', '0 0 1', mimic),
        joint('boom', 'revolute', 'slew_link', '0.1 0 0.4', '0 1 0', mimic),
        joint('stage_1', 'prismatic', 'boom_link', '1 0 0', '1 0 0', mimic),
        joint('stage_2', 'prismatic', 'stage_1_link', '0.9 0 0', '1 0.1 0', mimic),
        joint('stage_3', 'prismatic', 'stage_2_link', '0.8 0 0', '1 0 0', mimic),
        joint('hook', 'revolute', 'stage_3_link', '0.5 0 0', '0 1 0', mimic),
        joint('rack', 'prismatic', 'base', '0.2 0 0.8', '0 1 0', mimic), '</robot>')).replace(*change)
    return psdyn_ros.load(text, **{'actuated': LEADERS if mimic else JOINTS, **options})


def motion(m, rng, n=20):
    """Return (x, xd, xdd) of the leaders, and those of all joints in the order of JOINTS."""
    rows = [LEADERS.index(name) for name in m.coordinates]
    x, xd, xdd = rng.uniform(-0.7, 0.7, (3, n, 4))
    S, offset = np.zeros((7, 4)), np.zeros(7)
    S[[0, 1, 2, 5], range(4)] = 1.0
    S[3], S[4], S[6] = S[2], 0.5 * S[2], -0.25 * S[0]
    offset[4], offset[6] = 0.1, 0.02
    return (x[:, rows], xd[:, rows], xdd[:, rows]), (x @ S.T + offset, xd @ S.T, xdd @ S.T), S[:, rows]


def test_dynamics_are_those_of_the_tree_projected_by_the_ratios(rng):
    m, tree = crane(), crane(mimic=False)
    assert tree.coordinates == tree.actuators == tuple(tree.coordinates) and m.dof == 4
    order = [JOINTS.index(name) for name in tree.coordinates]
    motions, all_joints, S = motion(m, rng)
    S = S[order]
    for k in range(20):
        x, xd, xdd = (one[k] for one in motions)
        z, zd, zdd = (one[k][order] for one in all_joints)
        efforts = tree.inverse_dynamics(z, zd, zdd)
        drives = [m.coordinates.index(name) for name in m.actuators]
        expected = (S.T @ tree.inverse_dynamics(z, zd, zdd)[[tree.actuators.index(name) for name in tree.coordinates]])
        found = m.inverse_dynamics(x, xd, xdd)
        np.testing.assert_allclose(found, expected[drives], rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(m.mass_matrix(x), S.T @ tree.mass_matrix(z) @ S, rtol=1e-12)
        np.testing.assert_allclose(m.forward_dynamics(x, xd, found), xdd, atol=1e-9)
        assert efforts.shape == (7,)
        names, position, rate, _ = m.joint_state(x, xd)
        by_name = dict(zip(names, zip(position, rate)))
        for name, q, qd in zip(tree.coordinates, z, zd):
            assert by_name[name] == pytest.approx((q, qd), abs=1e-12)


def test_derivatives_agree_with_differences(rng):
    m = crane()
    (x, xd, xdd), _, _ = motion(m, rng, 1)
    x, xd, xdd = x[0], xd[0], xdd[0]
    found = m.inverse_dynamics_derivatives(x, xd, xdd)
    step = 1e-6
    for slope, row in zip(found, range(3)):
        for a in range(4):
            ends = []
            for sign in (1.0, -1.0):
                there = [x.copy(), xd.copy(), xdd.copy()]
                there[row][a] += sign * step
                ends.append(m.inverse_dynamics(*there))
            np.testing.assert_allclose(slope[:, a], (ends[0] - ends[1]) / (2 * step), rtol=1e-6, atol=1e-4)


def test_the_natural_orthogonal_complement_agrees_and_others_say_why_they_do_not_apply(rng):
    m = crane()
    (x, xd, xdd), _, _ = motion(m, rng, 1)
    mechanism = Mechanism(m.machine.description, m.coordinates, m.actuators, (0.0, 0.0, -9.81))
    names, position, _, _ = m.joint_state(x[0])
    posture = mechanism.posture(x[0], dict(zip(names, position)))
    noc, *others = call_witnesses(mechanism, posture)
    drives = [m.coordinates.index(name) for name in m.actuators]
    np.testing.assert_allclose(noc.dynamics.inverse(posture, xd[0], xdd[0], {})[drives],
                               m.inverse_dynamics(x[0], xd[0], xdd[0]), rtol=1e-9, atol=1e-6)
    assert others and all('follows another without a joint between them' in one.reason for one in others)


GEARED = '''<robot name="geared"><link name="base"/>{links}
<joint name="crank" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
<joint name="coupler" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0.3 0 0"/><axis xyz="0 0 1"/>
</joint>
<joint name="arm" type="continuous"><parent link="base"/><child link="c"/><origin xyz="1 0 0"/><axis xyz="0 0 1"/>
<mimic joint="crank" multiplier="-1.5" offset="2.0"/></joint>
<joint name="tip" type="continuous"><parent link="c"/><child link="d"/><origin xyz="0.4 0 0"/><axis xyz="0 0 1"/>
</joint>
<constraint name="pin" type="revolute"><parent link="b"/><parent_origin xyz="0.8 0 0"/><parent_axis xyz="0 0 1"/>
<child link="d"/><child_origin xyz="0.7 0 0"/><child_axis xyz="0 0 1"/></constraint></robot>'''


def test_a_geared_five_bar_closes_and_agrees_with_the_natural_orthogonal_complement(rng):
    """Its two cranks are geared: the loop and the gear leave one freedom of five bars."""
    m = psdyn_ros.load(GEARED.format(links=''.join(link(name, 3.0, 0.2) for name in 'abcd')), actuated=['crank'],
                       initial={'crank': 1.0, 'coupler': -0.4, 'tip': 1.2})
    assert m.coordinates == ('crank',)
    mechanism = Mechanism(m.machine.description, m.coordinates, m.actuators, (0.0, 0.0, -9.81))
    for x in 1.0 + rng.uniform(-0.5, 0.5, 10):
        names, position, _, _ = m.joint_state([x])
        by_name = dict(zip(names, position))
        assert by_name['arm'] == pytest.approx(2.0 - 1.5 * x, abs=1e-12)
        posture = mechanism.posture([x], by_name)
        noc = call_witnesses(mechanism, posture)[0].dynamics
        f = m.inverse_dynamics([x], [0.7], [0.4])
        assert f == pytest.approx(noc.inverse(posture, np.array([0.7]), np.array([0.4]), {}), rel=1e-9)
        assert m.forward_dynamics([x], [0.7], f) == pytest.approx([0.4], abs=1e-9)


def test_limits_of_what_follows_bound_the_leader_and_are_reported():
    limits = 'lower="-2" upper="2" velocity="1" effort="1e5"'
    m = crane(change=(f'<axis xyz="1 0.1 0"/><limit {limits}/>',
                      '<axis xyz="1 0.1 0"/><limit lower="-0.5" upper="0.6" velocity="0.3" effort="1"/>'))
    joints = m.machine.description.joints
    assert (joints['stage_1'].lower, joints['stage_1'].upper, joints['stage_1'].velocity) == (-0.5, 0.6, 0.3)
    assert (joints['stage_3'].lower, joints['stage_3'].upper) == pytest.approx((-0.15, 0.4))
    assert [w for w in m.machine.warnings if "joint 'stage_1'" in w and 'narrowed to -0.5 to 0.6' in w]


def test_initial_positions_follow_in_both_directions():
    assert crane(initial={'stage_3': 0.4}).initial_position[crane().coordinates.index('stage_1')] == pytest.approx(0.6)
    m = crane(initial={'slew': 0.8})
    names, position, _, _ = m.joint_state(m.initial_position)
    assert dict(zip(names, position))['rack'] == pytest.approx(-0.18)


@pytest.mark.parametrize('change, error, says', [
    (('joint="stage_1" multiplier', 'joint="stage_9" multiplier'), UnknownNameError,
     r"joint 'stage_2' \(line \d+\): <mimic> of 'stage_9': no such joint; did you mean"),
    (('joint="stage_1" multiplier', 'joint="stage_3" multiplier'), ModelError,
     "joints 'stage_2', 'stage_3' follow each other by <mimic> in a circle"),
    (('joint="stage_1" multiplier', 'joint="stage_2" multiplier'), ModelError, 'in a circle'),
    (('multiplier="0.5"', 'multiplier="0"'), ModelError, 'multiplier=0; expected one that moves the joint'),
    (('multiplier="0.5"', 'multiplier="nan"'), ModelError, 'is not 1 finite number'),
    (('<mimic joint="slew" ', '<mimic '), ModelError, r"joint 'rack' \(line \d+\): <mimic> has no attribute 'joint'"),
    (('offset="0.1"', 'offset="9"'), ModelError, "joint 'stage_2' .* and those of 'stage_3', .* leave no motion"),
    (('offset="0.1"', 'ofset="0.1"'), ModelError, "ofset"),
    (('offset="0.1"', 'offset="0.1" slack="0.01"'), ModelError,
     "<mimic> of 'stage_2': slack; expected joint, multiplier, offset alone: .* without slack"),
])
def test_bad_mimics_are_refused_with_joint_and_line(change, error, says):
    with pytest.raises(error, match=says):
        crane(change=change)


def test_a_joint_that_follows_takes_no_command():
    with pytest.raises(ActuationError, match=r"actuated joint 'stage_2' \(line \d+\) follows 'stage_1' by <mimic>"):
        crane(actuated=['slew', 'boom', 'stage_2', 'hook'])


@pytest.mark.parametrize('joint', ['<joint name="rack" mimic="true">',
                                   '<joint name="rack"><param name="mimic">slew</param>'])
def test_ros2_control_may_repeat_that_a_joint_follows(joint):
    control = (f'<ros2_control name="c" type="system"><joint name="slew"><command_interface name="effort"/></joint>'
               f'{joint}<state_interface name="position"/></joint></ros2_control></robot>')
    assert crane(change=('</robot>', control), actuated=None).actuators == ('slew',)


def test_initial_positions_that_contradict_each_other_are_refused():
    with pytest.raises(ModelError, match="initial position of 'stage_2' is 0.5; it follows 'stage_1'"):
        crane(initial={'stage_1': 0.2, 'stage_2': 0.5})


def test_a_gear_that_contradicts_a_loop_is_refused():
    """A crank of a four-bar cannot follow the other by a constant ratio."""
    text = GEARED.format(links=''.join(link(name, 3.0, 0.2) for name in 'abcd')).replace(
        '<joint name="tip" type="continuous">', '<joint name="tip" type="fixed">')
    with pytest.raises(ModelError, match='no freedom|does not close|singular'):
        psdyn_ros.load(text, actuated=['crank'], initial={'crank': 1.0})
