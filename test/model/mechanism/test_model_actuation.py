"""Actuators, coordinates and gravity that do not fit the machine."""

import re

import numpy as np
import pytest
from support.machines import chain, hiab
from support.one_loop import edit, one_loop

import psdyn_ros
from psdyn_ros import ActuationError, ModelError, NonFiniteError, PsdynError, ShapeError, UnknownNameError
from psdyn_ros.control.laws.base import check_actuation
from psdyn_ros.control.offline.time_optimal import limits_of
from psdyn_ros.simulation.plant import Plant

XML = one_loop().xml
CRANE = hiab().xml
CRANE_ACTUATORS = ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
STATE = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, -0.2, 0.3, 0.1], [1.0, 2.0, 3.0, 4.0]])


def test_actuators_are_those_with_a_command_interface_in_their_order():
    machine = chain(7, 'RLP')
    manipulator = psdyn_ros.load(machine.xml)
    assert manipulator.actuators == manipulator.coordinates == machine.actuators
    assert psdyn_ros.load(CRANE).actuators == CRANE_ACTUATORS


def test_actuated_overrules_order():
    m, other = psdyn_ros.load(CRANE), psdyn_ros.load(CRANE, actuated=CRANE_ACTUATORS[::-1])
    assert other.actuators == CRANE_ACTUATORS[::-1]
    x, xd, xdd = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, -0.2, 0.3, 0.1], [1, 2, 3, 4]])
    assert (other.inverse_dynamics(x[::-1], xd[::-1], xdd[::-1]) == m.inverse_dynamics(x, xd, xdd)[::-1]).all()
    assert (other.initial_position == m.initial_position[::-1]).all()
    assert (other.limits.effort == m.limits.effort[::-1]).all()


def test_actuated_without_a_ros2_control_tag():
    bare = XML[:XML.index('<ros2_control')] + '</robot>'
    words = r"'one_loop' has no joint with a command interface in <ros2_control>; name the actuated joints by load\("
    with pytest.raises(ActuationError, match=words):
        psdyn_ros.load(bare)
    assert psdyn_ros.load(bare, actuated='cylinder', initial={'boom': -1}).actuators == ('cylinder',)


@pytest.mark.parametrize('actuated', [
    CRANE_ACTUATORS[1:], CRANE_ACTUATORS[:3], CRANE_ACTUATORS[::2], (),
    ('slew', 'lift_boom', 'tilt_cylinder', 'telescope'), ('telescope', 'lift_barrel', 'tilt_boom', 'slew'),
    (*CRANE_ACTUATORS, 'lift_boom'), (*CRANE_ACTUATORS, 'tilt_barrel', 'lift_boom')], ids='-'.join)
def test_any_actuators_drive_the_same_machine(actuated):
    """Too few, too many, or others than the rods: the machine is the one of the closed form all the same."""
    m, ref = psdyn_ros.load(CRANE, actuated=list(actuated), coordinates=CRANE_ACTUATORS), psdyn_ros.load(CRANE)
    assert m.actuators == actuated and m.coordinates == CRANE_ACTUATORS and m.dof == 4
    needed = ref.inverse_dynamics(*STATE)
    assert m.generalized_forces(*STATE) == pytest.approx(needed, rel=1e-12)
    if len(actuated) >= 4:
        assert m.actuator_map(STATE[0]).T @ m.inverse_dynamics(*STATE) == pytest.approx(needed, rel=1e-12)
        return
    words = (rf"'hiab_xs031' has {len(actuated)} actuators for 4 joint coordinates \({', '.join(CRANE_ACTUATORS)}\); "
             'generalized_forces gives the efforts on these')
    with pytest.raises(ActuationError, match=words):
        m.inverse_dynamics(*STATE)


@pytest.mark.parametrize('actuated, words', [
    ((*CRANE_ACTUATORS, 'tcp_mount'), "actuated joint 'tcp_mount' is fixed"),
    ((*CRANE_ACTUATORS, 'slew'), "actuated joint 'slew' is listed twice"),
])
def test_actuators_that_do_not_fit(actuated, words):
    with pytest.raises(ActuationError, match=words):
        psdyn_ros.load(CRANE, actuated=list(actuated))


def test_doubled_actuators_beside_a_free_joint_are_warned_of():
    """Forward dynamics is well defined; inverse dynamics names the joint that no actuator moves."""
    m = psdyn_ros.load(CRANE, actuated=['lift_cylinder', 'lift_boom', 'slew', 'telescope'])
    assert any("the 4 actuators of 'hiab_xs031' move only 3 of its 4 degrees of freedom at the initial position; "
               'lift_cylinder, lift_boom double one another' in warning for warning in m.machine.warnings)
    x, xd, f = m.initial_position, np.zeros(m.dof), np.array([1e4, 2e3, 30.0, 400.0])
    xdd = m.forward_dynamics(x, xd, f)
    assert m.generalized_forces(x, xd, xdd) == pytest.approx(m.actuator_map(x).T @ f, rel=1e-9, abs=1e-6)
    with pytest.raises(ActuationError, match="do not reach the effort on 'tilt"):
        m.inverse_dynamics(x, xd, np.zeros(m.dof))


def test_actuators_that_do_not_exist():
    with pytest.raises(UnknownNameError, match="actuated joint 'telescop': no such joint; did you mean 'telescope'"):
        psdyn_ros.load(CRANE, actuated=[*CRANE_ACTUATORS[:3], 'telescop'])


@pytest.mark.parametrize('old, new, actuators', [
    ('<joint name="boom"><state', '<joint name="boom"><command_interface name="effort"/><state', ('cylinder', 'boom')),
    ('<command_interface name="effort"/>', '', ()),
])
def test_command_interfaces_count_whatever_their_number(old, new, actuators):
    m = psdyn_ros.load(edit(XML, (old, new)))
    assert m.actuators == actuators and m.dof == 1


def test_interfaces_of_fixed_joints_are_warned_of():
    interface = '<joint name="tcp_mount"><state_interface name="position"/></joint></ros2_control>'
    manipulator = psdyn_ros.load(edit(CRANE, ('</ros2_control>', interface)))
    assert any("joint 'tcp_mount' in <ros2_control>" in warning for warning in manipulator.machine.warnings)


def test_coordinates_are_the_actuators():
    assert psdyn_ros.load(CRANE, coordinates=CRANE_ACTUATORS).coordinates == CRANE_ACTUATORS
    assert psdyn_ros.load(XML, coordinates='cylinder').coordinates == ('cylinder',)


def test_coordinates_in_another_order_than_the_actuators():
    m, reference = psdyn_ros.load(CRANE, coordinates=CRANE_ACTUATORS[::-1]), psdyn_ros.load(CRANE)
    assert m.coordinates == CRANE_ACTUATORS[::-1] and m.actuators == CRANE_ACTUATORS
    x, xd, xdd = (np.asarray(each) for each in STATE)
    found = m.inverse_dynamics(x[::-1], xd[::-1], xdd[::-1])
    assert found == pytest.approx(reference.inverse_dynamics(x, xd, xdd))


@pytest.mark.parametrize('coordinates', [CRANE_ACTUATORS[:3], ()])
def test_coordinates_that_are_too_few(coordinates):
    with pytest.raises(ActuationError, match=r'coordinates=.*: expected 4 independent joints; for instance'):
        psdyn_ros.load(CRANE, coordinates=list(coordinates))


def test_coordinates_that_do_not_exist():
    with pytest.raises(UnknownNameError, match="coordinate 'nobody': no such joint"):
        psdyn_ros.load(CRANE, coordinates=['slew', 'nobody'])


def test_coordinates_may_be_other_joints_of_the_loops():
    coordinates = ('slew', 'lift_boom', 'tilt_barrel', 'telescope')
    m, ref = psdyn_ros.load(CRANE, coordinates=coordinates), psdyn_ros.load(CRANE)
    assert m.coordinates == coordinates and m.actuators == CRANE_ACTUATORS
    names, *told = ref.joint_state(*STATE)
    state = [values[[names.index(name) for name in coordinates]] for values in told]
    assert m.inverse_dynamics(*state) == pytest.approx(ref.inverse_dynamics(*STATE), rel=1e-11)


@pytest.mark.parametrize('coordinates, error, words', [
    (('slew', 'lift_boom', 'tilt_boom'), ActuationError,
     r"expected 4 independent joints; for instance \['slew', 'lift_boom', 'tilt_boom', 'telescope'\]"),
    (('slew', 'lift_boom', 'lift_cylinder', 'tilt_boom', 'telescope'), ActuationError, 'expected 4 independent joints'),
    (('slew', 'lift_boom', 'lift_barrel', 'telescope'), ActuationError, 'expected 4 independent joints'),
    (('slew', 'lift_boom', 'tilt_boom', 'slew'), ActuationError, "coordinate 'slew' is listed twice"),
    (('slew', 'lift_boom', 'tilt_boom', 'telescop'), UnknownNameError, "'telescop': no such joint; did you mean 'tel"),
    (('slew', 'lift_boom', 'tilt_boom', 'tcp_mount'), UnknownNameError, "coordinate 'tcp_mount': no such joint"),
])
def test_coordinates_that_do_not_fit(coordinates, error, words):
    with pytest.raises(error, match=words):
        psdyn_ros.load(CRANE, coordinates=list(coordinates))


@pytest.mark.parametrize('coordinates', [5, [5], [CRANE_ACTUATORS]])
def test_coordinates_that_are_no_names(coordinates):
    with pytest.raises(ModelError, match='coordinates=.*expected a list of joint names'):
        psdyn_ros.load(CRANE, coordinates=coordinates)


@pytest.mark.parametrize('gravity, error, words', [
    ((0, -9.81), ShapeError, r'gravity has shape \(2,\); expected \(3,\)'),
    (9.81, ShapeError, r'gravity has shape \(\); expected \(3,\)'),
    ([[0, 0, -9.81]], ShapeError, r'gravity has shape \(1, 3\)'),
    ((0, 0, float('nan')), NonFiniteError, 'gravity = .* is not finite'),
    ((0, 0, float('-inf')), NonFiniteError, 'gravity = .* is not finite'),
    (('0', '0', 'down'), ShapeError, 'gravity is not an array of numbers'),
    (None, PsdynError, 'gravity is not an array of numbers: None'),
    ((0, 0, [1, 2]), ShapeError, 'gravity is not an array of numbers'),
    ((0, 0, 1j), ShapeError, 'gravity is not an array of numbers'),
])
def test_gravity(gravity, error, words):
    with pytest.raises(error, match=words):
        psdyn_ros.load(XML, gravity=gravity)


def test_arguments_are_copied():
    gravity, initial, actuated = np.array([0.0, 0.0, -9.81]), {'cylinder': 0.1}, ['cylinder']
    manipulator = psdyn_ros.load(XML, gravity=gravity, initial=initial, actuated=actuated)
    force = manipulator.gravity_forces([0.2])
    gravity[:], initial['cylinder'] = 0.0, 99.0
    actuated.clear()
    manipulator.gravity[:] = 0.0
    assert manipulator.gravity_forces([0.2]) == force
    # `with_payload` builds the machine again
    again = manipulator.with_payload('base_link', 1.0, [0, 0, 0], np.eye(3))
    assert again.initial_position == [0.1] and again.gravity_forces([0.2]) == force


def slide(velocity='1', effort='9'):
    """Return the `Manipulator` of a slide of 5 kg with these limits."""
    return psdyn_ros.load(f'''<robot name="slide"><link name="base"/><link name="a"><inertial><mass value="5"/>
      <inertia ixx="1" iyy="1" izz="1.2" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="prismatic">
      <parent link="base"/><child link="a"/><axis xyz="1 0 1"/><limit lower="-1" upper="1" velocity="{velocity}"
      effort="{effort}"/></joint></robot>''', actuated=['j'])


@pytest.mark.parametrize('call, what', [
    (limits_of, 'effort'), (limits_of, 'velocity'), (lambda m: m.load_chart('a', nodes=(2, 2)), 'effort'),
    (lambda m: Plant(m, period=0.01), 'effort'), (check_actuation, 'effort')])
def test_actuator_with_a_limit_of_zero_is_named_where_it_is_needed(call, what):
    m = slide(**{what: '0'})
    warning, = m.machine.warnings
    assert re.match(rf"joint 'j' \(line 2\): an actuator with the {what} limit 0 does nothing", warning)
    with pytest.raises(ActuationError, match=f"actuator 'j' of 'slide' has the {what} limit 0, .* no {what} in its"):
        call(m)
    assert not slide().machine.warnings
    call(slide(effort='99'))
