"""Jacobian of a point on a link and its rate: against differences, Pinocchio, and twists by the recursion."""

import numpy as np
import pinocchio as pin
import pytest
from conftest import thorough
from support.cases import along, made
from support.comparison import error

from psdyn_ros import ActuationError, DuplicateNameError, ShapeError, StateError, TogglePointError, UnknownNameError

NAMES = ('crane', 'tree', 'floating crane', 'four_bar', 'five_bar', 'excavator', 'pkm_2pur2rpu')
QUICK = 'crane', 'floating crane'
POINT = np.array((0.1, -0.2, 0.3))
STEP = 1e-5


def position(m, x, link):
    return (m.link_pose(x, link) @ (*POINT, 1.0))[:3]


@pytest.mark.parametrize('name', thorough(NAMES, QUICK))
def test_jacobian_in_link_axes_gives_the_twist_of_the_recursion(name, rng):
    case = made(name)
    s, m = case.state(rng), case.m
    for link in m.links:
        if m.floating and link == 'world':
            continue
        assert error(m.jacobian(s.x, link, axes='link') @ s.xd, m.link_twist(s.x, s.xd, link)) < 1e-12


@pytest.mark.parametrize('name', thorough(NAMES, QUICK))
def test_jacobian_is_the_difference_of_positions(name, rng):
    case = made(name)
    s, m = case.state(rng), case.m
    link = m.links[-1]
    s = s._replace(xdd=np.zeros(m.dof))
    before, after = (along(s, sign * STEP)[0] for sign in (-1.0, 1.0))
    velocity = (position(m, after, link) - position(m, before, link)) / (2.0 * STEP)
    assert error(m.jacobian(s.x, link, point=POINT)[:3] @ s.xd, velocity) < 1e-7
    turn = m.link_pose(after, link)[:3, :3] @ m.link_pose(before, link)[:3, :3].T
    assert error(m.jacobian(s.x, link)[3:] @ s.xd, pin.log3(turn) / (2.0 * STEP)) < 1e-7


@pytest.mark.parametrize('axes', ['base', 'link'])
@pytest.mark.parametrize('name', thorough(NAMES, QUICK))
def test_rate_is_the_difference_of_jacobians(name, axes, rng):
    case = made(name)
    s, m = case.state(rng), case.m
    s, link = s._replace(xdd=np.zeros(m.dof)), m.links[-1]
    before, after = (m.jacobian(along(s, sign * STEP)[0], link, point=POINT, axes=axes) for sign in (-1.0, 1.0))
    rate = m.jacobian_rate(s.x, s.xd, link, point=POINT, axes=axes)
    assert error(rate, (after - before) / (2.0 * STEP)) < 1e-6


@pytest.mark.parametrize('name', thorough([name for name in NAMES if not name.startswith('floating')], QUICK))
def test_jacobian_and_acceleration_against_pinocchio(name, rng):
    case = made(name)
    s, m, oracle = case.state(rng), case.m, case.oracle
    motion, link = oracle.motion(s.x, s.xd), m.links[-1]
    model, data = oracle.model, oracle.model.createData()
    frame = model.getFrameId(link)
    v = motion.G @ s.xd
    pin.computeJointJacobiansTimeVariation(model, data, motion.q, v)
    pin.updateFramePlacements(model, data)
    J, Jd = (of(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
             for of in (pin.getFrameJacobian, pin.getFrameJacobianTimeVariation))
    assert error(m.jacobian(s.x, link), J @ motion.G) < 1e-9
    assert error(m.jacobian_rate(s.x, s.xd, link) @ s.xd, Jd @ v + J @ motion.g) < 1e-8


@pytest.mark.parametrize('name, joints', thorough([
    ('crane', ('slew', 'lift_boom', 'tilt_boom', 'telescope')), ('pkm_2pur2rpu', None), ('five_bar', None)], 2,
    several=True))
def test_jacobian_by_joints_takes_their_rates(name, joints, rng):
    """Boom angles instead of strokes; the actuators; more actuators than coordinates."""
    case = made(name)
    s, m = case.state(rng), case.m
    joints, link = joints or m.actuators, m.links[-1]
    names, _, rates, _ = m.joint_state(s.x, s.xd)
    J = m.jacobian(s.x, link, joints=joints)
    assert J.shape == (6, len(joints))
    assert error(J @ rates[[names.index(name) for name in joints]], m.jacobian(s.x, link) @ s.xd) < 1e-10


@pytest.mark.parametrize('name, joints', [
    ('crane', ('slew', 'lift_boom', 'tilt_boom', 'telescope')), ('floating crane', None), ('pkm_2pur2rpu', None)])
def test_rate_by_joints_is_the_difference_of_jacobians(name, joints, rng):
    case = made(name)
    s, m = case.state(rng), case.m
    s, options = s._replace(xdd=np.zeros(m.dof)), {'joints': joints or m.actuators, 'point': POINT}
    before, after = (m.jacobian(along(s, sign * STEP)[0], m.links[-1], **options) for sign in (-1.0, 1.0))
    rate = m.jacobian_rate(s.x, s.xd, m.links[-1], **options)
    assert error(rate, (after - before) / (2.0 * STEP)) < 1e-5


@pytest.mark.parametrize('name', ['crane', 'floating crane', 'excavator'])
def test_rows_are_the_single_states(name, rng):
    case = made(name)
    drawn, m = [case.state(rng) for _ in range(3)], case.m
    x, xd = (np.array([getattr(s, what) for s in drawn]) for what in ('x', 'xd'))
    link = m.links[-1]
    assert np.array_equal(m.jacobian(x, link), [m.jacobian(row, link) for row in x])
    rates = [m.jacobian_rate(*rows, link, joints=m.actuators) for rows in zip(x, xd)]
    assert error(m.jacobian_rate(x, xd, link, joints=m.actuators), np.array(rates)) < 1e-12


@pytest.mark.parametrize('options, kind, message', [
    ({'link': 'tpc'}, UnknownNameError, "did you mean 'tcp'"), ({'axes': 'world'}, StateError, "'base' or 'link'"),
    ({'joints': ('slew', 'lift_boom')}, ActuationError, '4 coordinates'),
    ({'joints': ('slew', 'lift_boom', 'lift_boom', 'telescope')}, DuplicateNameError, 'named 2 times'),
    ({'joints': ('slew', 'lift', 'tilt_boom', 'telescope')}, UnknownNameError, "joint 'lift'"),
    ({'joints': ('slew', 'lift_boom', 'lift_cylinder', 'telescope')}, TogglePointError, 'do not fix'),
    ({'point': (1, 2)}, ShapeError, 'point'), ({'x': (0, 0, 0)}, ShapeError, '4 numbers in x')])
def test_what_does_not_fit_is_named(options, kind, message):
    m = made('crane').m
    options = {'x': m.initial_position, 'link': 'tcp', **options}
    with pytest.raises(kind, match=message):
        m.jacobian(**options)
