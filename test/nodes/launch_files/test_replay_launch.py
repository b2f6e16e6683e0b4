"""The launch file that plays a bag against a model, as far as it can be looked at without ROS and rosbag2."""

import re
import types
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.paths import ROOT

from psdyn_ros.validation.bags.simulated_bag import COMMANDS as COMMANDED
from psdyn_ros.validation.bags.simulated_bag import STATES, TELEMETRY
from psdyn_ros.validation.signals.topics import COMMANDS

BAG, READY = 'a bag', 'validator: ready'       # which the node prints


def command(launched):
    """The words with which the bag is played, once the validator is ready."""
    (handler,) = (action.arguments[0].options for action in launched.actions)
    assert handler['target_action'].options['executable'] == 'validator'
    begin, event = handler['on_stdout'], types.SimpleNamespace
    assert begin(event(text=b'compiling')) is None
    (play,) = begin(event(text=f'[INFO] anything\n{READY}\n'.encode()))
    assert begin(event(text=READY.encode())) is None
    assert play.options['on_exit'] is handler['target_action'].options['on_exit']      # the launch ends with the bag
    return play.options['cmd']


def test_the_validator_gets_machine_and_tolerances_and_lives_in_the_time_of_the_bag(launch):
    launched = launch('replay', bag=BAG, config='tolerances.yaml', joint_states='/crane/joint_states')
    (node,) = launched.nodes
    assert node['executable'] == 'validator' and node['remappings'] == [('joint_states', '/crane/joint_states')]
    assert node['defaults']['use_sim_time'] is True and node['given']['config'] == 'tolerances.yaml'
    assert Path(node['parameters']['hydraulics']).is_file()
    (node,) = launch('replay', bag=BAG, machine='five_bar', level='effort', pressures='/p').nodes
    assert node['parameters']['hydraulics'] == '' and 'five' in node['parameters']['robot_description']
    # as the node declares them
    validator = pytest.importorskip('psdyn_ros.nodes.observers.validator', reason='the table is part of the node',
                                    exc_type=ImportError)
    assert set(node['parameters']) <= {one.name for one in validator.PARAMETERS} | {'use_sim_time'}


def test_one_player_plays_the_bag_with_its_clock(launch):
    words = command(launch('replay', bag=BAG, rate='0.5'))
    assert words[:6] == ['ros2', 'bag', 'play', BAG, '--clock', '100'] and '--loop' not in words
    assert words[words.index('--rate') + 1] == '0.5' and float(words[words.index('--delay') + 1]) > 0.0
    assert command(launch('replay', bag=BAG, loop='true'))[-1] == '--loop'


@pytest.mark.parametrize('namespace', ['', 'crane', '/fleet/crane/'])
def test_what_was_measured_is_played_and_no_command(launch, namespace):
    words = command(launch('replay', bag=BAG, namespace=namespace))
    played, own = re.compile(words[words.index('--regex') + 1]), f'/{namespace.strip("/")}'.rstrip('/')
    for topic in (own + STATES, own + TELEMETRY, f'{own}/simulator/pressure/lift_cylinder/a', '/tf_static'):
        assert played.search(topic) and played.fullmatch(topic)
    for topic in (COMMANDED, '/controller/joint_commands', '/clock', '/diagnostics', '/other/joint_states'):
        assert not played.search(own + topic) and not played.search(topic)
    assert COMMANDS.search(COMMANDED)


def test_rviz_sees_all_joints(launch):
    nodes = {node['executable']: node for node in launch('replay', bag=BAG, rviz='true').nodes}
    assert set(nodes) == {'validator', 'loop_state', 'robot_state_publisher', 'rviz2'}
    assert ('joint_states', 'joint_states_full') in nodes['robot_state_publisher']['remappings']
    assert all(node['parameters']['use_sim_time'] is True for node in nodes.values())


def test_what_it_starts_is_declared():
    declared = {one.text for one in ElementTree.parse(ROOT / 'package.xml').getroot().findall('exec_depend')}
    assert {'ros2bag', 'rosbag2_storage_mcap', 'robot_state_publisher'} <= declared
