"""A load that swings, where the model has none or a rigid one."""

import numpy as np
import pytest
from support.bags.bag_cases import state_messages, write
from support.bags.diagnosis_cases import diagnosed
from support.bags.recorded_motion import PERIOD, block_of, crane, swinging

from psdyn_ros.validation.identify import IdentificationError, identify_bag

MASS, LENGTH, RELEASED = 100.0, 1.5, 0.2        # kg, m, rad


def pendulum(acceleration, gravity, length):
    """(n, 3) m/s^2: pull on its pin, per kg, of a spherical pendulum that is let off aslant; Runge-Kutta."""
    def rates(state, a):
        r, v = state
        felt = gravity - a
        return np.array([v, felt - (v @ v + r @ felt) / length ** 2 * r])
    aslant = length * np.array([0.0, np.sin(RELEASED), -np.cos(RELEASED)])
    state, pull = np.array([aslant, np.zeros(3)]), np.empty_like(acceleration)
    for k, a in enumerate(acceleration):
        r, v = state
        pull[k] = (v @ v + r @ (gravity - a)) / length ** 2 * r
        middle = 0.5 * (a + acceleration[min(k + 1, len(acceleration) - 1)])
        first = rates(state, a)
        second = rates(state + 0.5 * PERIOD * first, middle)
        third = rates(state + 0.5 * PERIOD * second, middle)
        last = rates(state + PERIOD * third, 2.0 * middle - a)
        state = state + PERIOD / 6.0 * (first + 2.0 * second + 2.0 * third + last)
    return pull


def carried(pull):
    """(t, x, xd, effort) of the crane whose tool is pulled; pull: function of the acceleration of the tool (n, 3),
    gravity."""
    machine, noise = crane(), np.random.default_rng(5)
    t, x, xd, xdd = swinging(40.0, quicker=0.5)
    tool = np.array([machine.link_pose(one, 'tcp')[:3, 3] for one in x])
    acceleration = np.gradient(np.gradient(tool, PERIOD, axis=0), PERIOD, axis=0)
    forces = pull(acceleration, machine.gravity)
    more = np.array([machine.jacobian(one, 'tcp')[:3].T @ force for one, force in zip(x, forces)])
    effort = machine.inverse_dynamics(x, xd, xdd) - more
    return t, x, xd, effort + [20.0, 300.0, 300.0, 100.0] * noise.standard_normal(effort.shape)


def swung():
    """`carried` of a load that swings."""
    return carried(lambda a, g: MASS * pendulum(a, g, LENGTH))


def test_load_that_swings_is_named_with_its_period():
    causes, diagnosis = diagnosed(block_of(*swung()), hydraulics='')
    first, period = causes[0], 2.0 * np.pi * np.sqrt(LENGTH / 9.81)
    assert (first.kind, first.about, first.unit) == ('hanging_load', 'tcp', 's'), diagnosis.text
    assert first.estimate == pytest.approx(period, abs=3.0 * first.error, rel=5e-3)
    assert 'swings' in first.text and 'passive joints' in first.next


def test_rigid_load_is_a_payload():
    causes, _ = diagnosed(block_of(*carried(lambda a, g: MASS * (g - a))), hydraulics='')
    assert causes[0].kind == 'payload' and causes[0].estimate == pytest.approx(MASS, rel=0.01)
    assert 'hanging_load' not in [one.kind for one in causes]


@pytest.mark.long
def test_load_that_swings_is_identified_from_only_with_passive_joints(tmp_path):
    t, x, xd, effort = swung()
    bag = write(tmp_path / 'bag.mcap', state_messages(crane(), t, x, xd, effort, names=crane().coordinates))
    with pytest.raises(IdentificationError, match="that hangs from 'tcp' and swings"):
        identify_bag(bag, 'hiab_xs031', payload_link='tcp')
