"""Blocks, controllers and launch file for stock ros2_control, as far as they can be looked at without it."""

import runpy
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.simulation.plant import Plant

CRANE = ROOT / 'urdf' / 'hiab_xs031.urdf'
VALVES = ROOT / 'urdf' / 'ros2_control' / 'hiab_xs031_valves.urdf'
CONTROLLERS = ROOT / 'config' / 'ros2_control' / 'hiab_xs031_controllers.yaml'
SCRIPT = ROOT / 'scripts' / 'valve_urdf.py'
LEVELS = {'effort': CRANE, 'valve': VALVES}


@pytest.fixture(scope='module')
def controllers():
    return yaml.safe_load(CONTROLLERS.read_text())


def blocks(path):
    return ElementTree.parse(path).getroot().findall('ros2_control')


# --- the blocks


def test_the_crane_with_valves_is_what_the_script_writes():
    script = runpy.run_path(str(SCRIPT))
    assert script['with_valves'](CRANE.read_text()) == VALVES.read_text()
    assert script['VALVES'] == VALVES


def test_the_crane_with_valves_differs_in_its_blocks_only():
    ours, theirs = (ElementTree.parse(path).getroot() for path in (CRANE, VALVES))
    for root in (ours, theirs):
        for block in root.findall('ros2_control'):
            root.remove(block)
    assert ElementTree.canonicalize(ElementTree.tostring(ours), strip_text=True) == \
        ElementTree.canonicalize(ElementTree.tostring(theirs), strip_text=True)


@pytest.mark.parametrize('path', LEVELS.values(), ids=LEVELS)
def test_the_reader_takes_all_blocks(path, crane):
    machine = psdyn_ros.load(path)
    assert machine.actuators == crane.actuators and machine.joints == crane.joints
    np.testing.assert_array_equal(machine.initial_position, crane.initial_position)


@pytest.mark.parametrize('path', LEVELS.values(), ids=LEVELS)
def test_names_and_commands_of_a_block_are_one_for_one(path, crane):
    """The plugin sends one name for each joint and one entry for each command interface."""
    commands, joints, topics = [], [], []
    for block in blocks(path):
        topic = {param.get('name'): param.text for param in block.findall('hardware/param')}
        assert topic['joint_states_topic'] == '/hiab_xs031/joint_states'
        topics.append(topic['joint_commands_topic'])
        each = [[command.get('name') for command in joint.findall('command_interface')]
                for joint in block.findall('joint')]
        assert len({tuple(names) for names in each}) == 1 and len(each[0]) <= 1
        # without commands the sum of differences is zero, which only a threshold of -1 lets through
        assert topic.get('trigger_joint_command_threshold') == ('-1' if each[0] else None)
        commands += sum(each, [])
        joints += [joint.get('name') for joint in block.findall('joint')]
    assert len(set(topics)) == len(topics)
    assert sorted(joints) == sorted(crane.joints)
    assert sorted(commands) == {CRANE: ['effort'] * 4, VALVES: ['effort', 'position', 'position', 'position']}[path]


@pytest.mark.parametrize('path', LEVELS.values(), ids=LEVELS)
def test_every_joint_has_the_states_that_a_message_brings(path):
    for joint in ElementTree.parse(path).getroot().findall('ros2_control/joint'):
        names = [state.get('name') for state in joint.findall('state_interface')]
        assert names == ['position', 'velocity', 'effort'], joint.get('name')


def test_joint_limits_do_not_hold_for_spool_positions():
    for joint in ElementTree.parse(VALVES).getroot().findall('ros2_control/joint'):
        positions = [command for command in joint.findall('command_interface') if command.get('name') == 'position']
        assert bool(positions) == (joint.find('limits') is not None and joint.find('limits').get('enable') == 'false')


# --- the controllers


def test_controllers_command_interfaces_of_their_blocks(controllers):
    interfaces = {level: {(joint.get('name'), command.get('name')) for block in blocks(path)
                          for joint in block.findall('joint') for command in joint.findall('command_interface')}
                  for level, path in LEVELS.items()}
    listed = dict(controllers['controller_manager']['ros__parameters'])
    assert listed.pop('update_rate') == 500
    assert all(entry['type'].endswith(('Controller', 'Broadcaster')) for entry in listed.values())
    levels = {'joint_trajectory_controller': 'effort', 'effort_controller': 'effort', 'slew_controller': 'valve',
              'valve_controller': 'valve'}
    assert {'joint_state_broadcaster', *levels} == set(listed)
    claimed = {level: set() for level in LEVELS}
    for name, level in levels.items():
        given = controllers[name]['ros__parameters']
        (kind,) = given.get('command_interfaces', [given.get('interface_name')])
        mine = {(joint, kind) for joint in given['joints']}
        assert mine <= interfaces[level], name
        claimed[level] |= mine
    assert claimed == interfaces


def test_the_trajectory_controller_has_gains_and_goals_of_its_joints(controllers, crane):
    given = controllers['joint_trajectory_controller']['ros__parameters']
    assert tuple(given['joints']) == crane.actuators
    assert given['state_interfaces'] == ['position', 'velocity']
    assert tuple(given['gains']) == crane.actuators and set(given['constraints']) > set(crane.actuators)
    for name, limit in zip(crane.actuators, crane.limits.effort, strict=True):
        gains = given['gains'][name]
        # a parameter of the wrong type is refused when the controller is loaded
        assert all(type(value) is float for value in gains.values())
        assert gains['i_clamp_max'] == -gains['i_clamp_min'] <= limit


@pytest.mark.parametrize('delay', [1, 3], ids=['2 ms', '6 ms'])
@pytest.mark.parametrize('feedforward', [False, True])
def test_the_gains_of_the_trajectory_controller_move_the_crane(controllers, crane, feedforward, delay):
    """Its law, u = ff + p e + d e' + integral of i e within clamps, on the plant at force level."""
    gains = controllers['joint_trajectory_controller']['ros__parameters']['gains'].values()
    p, i, d, clamp = np.array([[g['p'], g['i'], g['d'], g['i_clamp_max']] for g in gains]).T
    plant = Plant(crane, period=0.002)
    start, integral, sent, errors = plant.x.copy(), np.zeros(4), [], []
    travel, duration = np.array([0.3, 0.08, 0.08, 0.2]), 3.0
    for k in range(6000):
        s = np.clip((0.002 * k - 2.0) / duration, 0.0, 1.0)
        position = start + travel * s**3 * (10 - 15 * s + 6 * s**2)
        velocity = travel * 30 * s**2 * (1 - s)**2 / duration
        error = position - plant.x
        integral = np.clip(integral + 0.002 * i * error, -clamp, clamp)
        sent.append(p * error + d * (velocity - plant.xd) + integral
                    + feedforward * crane.gravity_forces(position))
        plant.step(sent[k - delay] if k >= delay else None, 0.002)
        errors.append(np.abs(error))
    assert not plant.fault
    sag, last = np.max(errors[:1000], axis=0), np.max(errors[-500:], axis=0)
    assert (last < 2e-3).all()
    if feedforward:
        assert (np.max(errors, axis=0) < 0.03).all()
    else:
        # from zero force: docs/how-to/ros2_control.md says by how much it sinks
        assert 0.02 < sag[1] < 0.04 and 0.02 < sag[2] < 0.04 and 0.05 < sag[3] < 0.11


# --- the launch file


@pytest.mark.parametrize('level, hydraulics, controllers', [
    ('effort', '', ['joint_state_broadcaster', 'joint_trajectory_controller']),
    ('valve', str(ROOT / 'config' / 'hiab_xs031_hydraulics.yaml'),
     ['joint_state_broadcaster', 'valve_controller', 'slew_controller'])])
def test_each_level_starts_its_machine_and_its_controllers(launch, level, hydraulics, controllers):
    launched = launch('ros2_control', level=level)
    simulator = launched.node('simulator')
    assert Path(simulator['file']).is_file()
    assert simulator['parameters'] == {'robot_description': LEVELS[level].read_text(), 'hydraulics': hydraulics}
    assert launched.node('robot_state_publisher')['parameters'] == {'robot_description': LEVELS[level].read_text()}
    assert launched.node('ros2_control_node')['file'] == str(CONTROLLERS)
    spawners = [node['arguments'] for node in launched.nodes if node['executable'] == 'spawner']
    assert [arguments[0] for arguments in spawners] == controllers
    assert all(arguments[1:3] == ['--param-file', str(CONTROLLERS)] for arguments in spawners)


@pytest.mark.parametrize('given, annotated, states', [
    ({}, 'joint_trajectory_controller/joint_trajectory', 'joint_states_full'),
    ({'controller': 'other'}, 'other/joint_trajectory', 'joint_states_full'),
    ({'level': 'valve'}, None, 'joint_states_full'),
    ({'annotator': 'false', 'loop_state': 'false'}, None, 'joint_states')])
def test_trajectories_come_annotated_and_states_completed(launch, given, annotated, states):
    launched = launch('ros2_control', **given)
    ours = {node['executable']: node for node in launched.nodes if node['package'] == 'psdyn_ros'}
    assert set(ours) == {'simulator'} | ({'annotator'} if annotated else set()) | (
        {'loop_state'} if states == 'joint_states_full' else set())
    assert ('joint_states', states) in launched.node('robot_state_publisher')['remappings']
    if annotated:
        assert ours['annotator']['remappings'] == [('~/trajectory_out', annotated)]


@pytest.mark.parametrize('level', LEVELS)
def test_the_topics_of_the_simulator_are_those_of_the_blocks(launch, level):
    simulator = launch('ros2_control', level=level).node('simulator')
    remapped = {f"/{simulator['namespace']}/{topic}" for _, topic in simulator['remappings']}
    for block in blocks(LEVELS[level]):
        topic = {param.get('name'): param.text for param in block.findall('hardware/param')}
        assert topic['joint_states_topic'] == f"/{simulator['namespace']}/joint_states"
        assert block.find('joint/command_interface') is None or topic['joint_commands_topic'] in remapped


def test_what_is_started_is_declared():
    manifest = {depend.text for depend in ElementTree.parse(ROOT / 'package.xml').getroot().findall('exec_depend')}
    assert manifest >= {'controller_manager', 'joint_state_topic_hardware_interface', 'joint_state_broadcaster',
                        'joint_trajectory_controller', 'forward_command_controller', 'robot_state_publisher'}
