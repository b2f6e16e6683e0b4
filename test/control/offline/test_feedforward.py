"""Efforts as feedforward: of actuators, and of joints in their place by virtual work."""

import numpy as np
import pytest
from conftest import thorough
from scipy.optimize import brentq
from support.machines import URDF

import psdyn_ros
from psdyn_ros.control.offline.feedforward import Feedforward

BOOMS = ('telescope', 'tilt_boom', 'slew', 'lift_boom')
MIX = ('slew', 'lift_boom', 'tilt_cylinder', 'telescope')
CASES = [('hiab_xs031', BOOMS), ('hiab_xs031', MIX), ('hiab_xs031', ('slew', 'lift_barrel', 'tilt_boom', 'telescope')),
         ('excavator', ('swing', 'boom', 'arm', 'bucket')), ('excavator', ('swing', 'boom', 'arm_cylinder', 'rocker')),
         ('five_bar', ('elbow_1', 'shoulder_1')), ('pkm_2pur2rpu', ('leg_4', 'slider_1', 'leg_3'))]
ROUGH = '<dynamics damping="300" friction="100"/><limit'


@pytest.fixture(scope='module')
def machines():
    names = {name for name, _ in CASES}
    return {name: psdyn_ros.load(URDF / f'{name}.urdf') for name in sorted(names)}


@pytest.fixture(scope='module')
def crane(machines):
    return machines['hiab_xs031']


@pytest.fixture(scope='module')
def rough():
    """The crane with friction in every joint."""
    return psdyn_ros.load((URDF / 'hiab_xs031.urdf').read_text().replace('<limit', ROUGH))


def motion(m, rng):
    return (m.initial_position + rng.uniform(-0.03, 0.03, m.dof), rng.uniform(-0.2, 0.2, m.dof),
            rng.uniform(-0.5, 0.5, m.dof))


# what an effort on a joint means


@pytest.mark.parametrize('name, joints', thorough(CASES, 2, several=True))
def test_efforts_on_joints_do_the_work_of_the_actuators_at_every_motion(machines, name, joints, rng):
    m = machines[name]
    feedforward, columns = Feedforward(m, joints), [m.joints.index(joint) for joint in joints]
    for _ in range(5):
        x, xd, xdd = motion(m, rng)
        found = feedforward.of(x, xd, xdd)
        assert found.beyond == ()
        for virtual in rng.uniform(-1.0, 1.0, (4, m.dof)):       # any motion, not only the one in progress
            rates = m.joint_state(x, virtual)[2][columns]
            power = found.actuators @ (m.actuator_map(x) @ virtual)
            assert found.joints @ rates == pytest.approx(power, rel=1e-9, abs=1e-9 * np.abs(found.actuators).max())


def test_the_effort_of_a_boom_is_the_torque_that_turns_it_as_its_cylinder_does(crane, rng):
    """By finite differences of the stroke, cylinder by cylinder."""
    x, xd, xdd = motion(crane, rng)
    found, step = Feedforward(crane, BOOMS).of(x, xd, xdd), 1e-6
    for joint, actuator in (('lift_boom', 'lift_cylinder'), ('tilt_boom', 'tilt_cylinder')):
        row, column = crane.actuators.index(actuator), crane.joints.index(joint)
        ahead, behind = (crane.joint_state(x + sign * step * np.eye(4)[row])[1][column] for sign in (1.0, -1.0))
        ratio = 2.0 * step / (ahead - behind)           # stroke for a unit turn
        assert found.joints[BOOMS.index(joint)] == pytest.approx(ratio * found.actuators[row], rel=1e-6)
    for joint in ('slew', 'telescope'):
        assert found.joints[BOOMS.index(joint)] == pytest.approx(found.actuators[crane.actuators.index(joint)])


def test_actuators_in_another_order_get_their_own_efforts(machines, rng):
    m = machines['excavator']
    joints = tuple(rng.permutation(m.actuators).tolist())
    x, xd, xdd = motion(m, rng)
    found = Feedforward(m, joints).of(x, xd, xdd)
    assert dict(zip(joints, found.joints)) == dict(zip(m.actuators, found.actuators))
    assert found.actuators == pytest.approx(m.inverse_dynamics(x, xd, xdd))


# what is in it


def test_all_of_it_is_inverse_dynamics(crane, rough, rng):
    for m in (crane, rough):
        x, xd, xdd = motion(m, rng)
        found = Feedforward(m).of(x, xd, xdd)
        np.testing.assert_allclose(found.actuators, m.inverse_dynamics(x, xd, xdd), rtol=1e-12)
        assert found.joints.tolist() == found.actuators.tolist()


@pytest.mark.parametrize('scale', [0.0, 0.4, 1.0])
def test_terms_add_up_and_are_what_they_are_called(rough, scale, rng):
    m, feedforward = rough, Feedforward(rough)
    feedforward.friction_scale = scale
    x, xd, xdd = motion(m, rng)
    terms, smooth = feedforward.terms(x, xd, xdd), psdyn_ros.load(URDF / 'hiab_xs031.urdf')
    assert sum(terms) == pytest.approx(feedforward.of(x, xd, xdd).actuators)
    assert terms.inertia == pytest.approx(m.mass_matrix(x) @ xdd)
    assert terms.gravity == pytest.approx(smooth.gravity_forces(x))
    assert terms.coriolis == pytest.approx(smooth.bias_forces(x, xd) - smooth.gravity_forces(x), abs=1e-8)
    assert terms.friction == pytest.approx(scale * (m.bias_forces(x, xd) - smooth.bias_forces(x, xd)), abs=1e-8)
    assert np.abs(terms.friction).max() >= 50.0 * scale


def test_compensation_is_gravity_and_friction_whatever_the_motion(rough, rng):
    feedforward = Feedforward(rough, MIX)
    feedforward.friction_scale = 0.7
    x, xd, xdd = motion(rough, rng)
    terms, found = feedforward.terms(x, xd), feedforward.at(x, xd)
    assert found.actuators == pytest.approx(sum(feedforward.terms(x, xd, xdd)[2:]))
    assert found.actuators == pytest.approx(sum(terms))
    assert not terms.inertia.any() and not terms.coriolis.any()
    feedforward.friction_scale = 0.0
    assert feedforward.at(x, xd).actuators == pytest.approx(rough.gravity_forces(x))


def test_payloads_come_are_replaced_and_go(crane, rng):
    feedforward, (x, xd, xdd) = Feedforward(crane, BOOMS), motion(crane, rng)
    bare = feedforward.of(x, xd, xdd)
    for mass in (200.0, 80.0):
        feedforward.set_payload('tcp', mass, (0.0, 0.1, 0.0), 3.0 * np.eye(3))
        loaded = crane.with_payload('tcp', mass, (0.0, 0.1, 0.0), 3.0 * np.eye(3))
        assert feedforward.of(x, xd, xdd).actuators == pytest.approx(loaded.inverse_dynamics(x, xd, xdd))
        assert set(feedforward.payloads) == {'tcp'}
    for wrong in (('tpc', 1.0), ('tcp', -1.0), ('tcp', np.nan)):
        with pytest.raises(psdyn_ros.PsdynError):
            feedforward.set_payload(*wrong, np.zeros(3), np.eye(3))
    assert feedforward.of(x, xd, xdd).actuators == pytest.approx(loaded.inverse_dynamics(x, xd, xdd))
    feedforward.set_payload('tcp', 0.0, np.zeros(3), np.zeros((3, 3)))
    assert feedforward.payloads == {}
    for found, expected in zip(feedforward.of(x, xd, xdd), bare):
        assert list(found) == pytest.approx(list(expected))


# limits and what cannot be


def test_efforts_are_clamped_to_the_limits_and_joints_get_what_is_left(crane):
    feedforward, still = Feedforward(crane, MIX), np.zeros(4)
    x = crane.initial_position
    feedforward.set_payload('tcp', 2000.0, np.zeros(3), np.eye(3))
    found, needed = feedforward.at(x, still), feedforward.manipulator.gravity_forces(x)
    limit = crane.limits.effort
    over = [name for name, one in zip(crane.actuators, np.abs(needed) > limit) if one]
    assert over and found.beyond == tuple(over)
    assert found.actuators == pytest.approx(np.clip(needed, -limit, limit))
    lift = crane.joint_state(x, np.array([0.0, 1.0, 0.0, 0.0]))[2][crane.joints.index('lift_boom')]
    assert found.joints[MIX.index('lift_boom')] == pytest.approx(found.actuators[1] / lift)


def test_redundant_actuators_take_over_what_one_of_them_cannot_bear(machines):
    m = machines['excavator']
    text = (URDF / 'excavator.urdf').read_text()
    feedforward, still = Feedforward(m), np.zeros(m.dof)
    row, other = (m.actuators.index(f'boom_cylinder_{side}') for side in ('left', 'right'))
    whole = feedforward.at(m.initial_position, still).actuators
    weak = 0.6 * whole[row]
    start = text.index('name="boom_cylinder_left"')
    place = text.index('effort="', start) + len('effort="')
    limited = psdyn_ros.load(text[:place] + f'{weak:.6f}' + text[text.index('"', place):])
    found = Feedforward(limited).at(m.initial_position, still)
    assert np.abs(found.actuators[row]) <= weak * (1.0 + 1e-9)
    assert found.actuators[row] + found.actuators[other] == pytest.approx(2.0 * whole[row], rel=1e-6)


def test_what_has_no_inverse_dynamics_is_refused(machines):
    with pytest.raises(psdyn_ros.ActuationError, match='its base floats'):
        Feedforward(psdyn_ros.load(URDF / 'balloon.urdf', allow_unphysical=True))
    with pytest.raises(psdyn_ros.ActuationError, match='expected at least 4'):
        Feedforward(psdyn_ros.load(URDF / 'excavator.urdf', actuated=['swing', 'arm_cylinder']))


def test_what_the_actuators_do_not_reach_is_named():
    m = psdyn_ros.load(URDF / 'excavator.urdf')
    m.allocation.set_limits({'bucket_cylinder': 1.0})
    with pytest.raises(psdyn_ros.ActuationError, match="on 'bucket_cylinder' within the limits of bucket_cylinder"):
        Feedforward(m).at(m.initial_position, np.zeros(4))


@pytest.mark.parametrize('joints, says', [
    (('slew', 'lift_boom'), 'expected all actuators'), (('slew',) * 4, 'slew'),
    (('slew', 'lift_boom', 'lift_barrel', 'telescope'), "do not fix 'tilt_cylinder'"),
    (('slew', 'lift_bom', 'tilt_boom', 'telescope'), "did you mean 'lift_boom'")])
def test_joints_that_cannot_stand_for_the_actuators_are_refused(crane, joints, says):
    with pytest.raises(psdyn_ros.PsdynError, match=says):
        Feedforward(crane, joints)


def test_a_joint_that_stands_still_however_the_machine_moves_is_named(crane):
    """A barrel swings one way and then the other while its cylinder extends."""
    feedforward, column = Feedforward(crane, ('slew', 'lift_barrel', 'tilt_boom', 'telescope')), 3
    assert crane.joints[column] == 'lift_barrel'
    x, lift = crane.initial_position, np.array([0.0, 1.0, 0.0, 0.0])

    def rate(stroke):
        x[1] = stroke
        return crane.joint_state(x, lift)[2][column]

    x[1] = brentq(rate, 0.07, 0.14, xtol=1e-15)
    with pytest.raises(psdyn_ros.TogglePointError, match="'lift_barrel' stands still here"):
        feedforward.at(x, np.zeros(4))
    x[1] += 1e-4
    assert feedforward.at(x, np.zeros(4)).beyond == ()


def test_a_motion_beyond_all_numbers_is_refused(crane):
    with pytest.raises(psdyn_ros.NonFiniteError):
        Feedforward(crane).of(crane.initial_position, np.full(4, 1e200), np.zeros(4))
    rough = psdyn_ros.load((URDF / 'hiab_xs031.urdf').read_text().replace('<limit', ROUGH))
    with pytest.raises(psdyn_ros.NonFiniteError):
        Feedforward(rough).of(rough.initial_position, np.full(4, 1e307), np.full(4, 1e307))
    with pytest.raises(psdyn_ros.UnreachableStrokeError):
        Feedforward(crane).of(crane.initial_position + 9.0, np.zeros(4), np.zeros(4))
