"""The launch file that plays a bag against a model, as far as it can be looked at without ROS and rosbag2."""

import re
import runpy
import sys
import types
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_ros2_control_files import NAMES, Call, Launched

from psdyn_ros.validation.bags.simulated_bag import COMMANDS as COMMANDED
from psdyn_ros.validation.bags.simulated_bag import STATES, TELEMETRY
from psdyn_ros.validation.signals.topics import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
MORE = {'launch.actions': ['ExecuteProcess'], 'launch.conditions': ['UnlessCondition']}


class Replayed(Launched):
    """The same with the processes: `commands` of those that run."""

    def __init__(self, actions, given):
        super().__init__(actions, given)
        self.commands = []
        for action in actions:
            if type(action).__name__ == 'ExecuteProcess':
                condition = action.options['condition']
                wanted = 'true' if type(condition).__name__ == 'IfCondition' else 'false'
                if self.value(condition.arguments[0]) == wanted:
                    self.commands.append(self.value(action.options['cmd']))

    def value(self, thing):
        if type(thing).__name__ == 'PathJoinSubstitution':      # in which a list is one part
            (parts,) = thing.arguments
            return '/'.join(''.join(self.value(part)) for part in parts)
        return super().value(thing)


@pytest.fixture
def launch(monkeypatch):
    """Function of the launch arguments; launch itself is replaced by classes that only remember."""
    for module, classes in NAMES.items():
        fake = types.ModuleType(module)
        for name in (*classes, *MORE.get(module, ())):
            setattr(fake, name, type(name, (Call,), {}))
        monkeypatch.setitem(sys.modules, module, fake)
    make = runpy.run_path(str(ROOT / 'launch' / 'replay.launch.py'))['generate_launch_description']
    return lambda **given: Replayed(make().arguments[0], {'bag': '/tmp/bag', **given})


def test_the_bag_must_be_named_and_all_else_is_described(launch):
    declared = launch().declared
    assert 'default_value' not in declared.pop('bag')
    assert all('default_value' in options and options['description'] for options in declared.values())
    assert launch().variables == {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}


def test_the_validator_gets_machine_and_tolerances_and_lives_in_the_time_of_the_bag(launch):
    launched = launch(config='tolerances.yaml', joint_states='/crane/joint_states')
    (node,) = launched.nodes
    assert node['executable'] == 'validator' and node['remappings'] == [['joint_states', '/crane/joint_states']]
    description, simulated, rest = node['parameters']
    assert description == {'robot_description': f'cat {ROOT / "urdf" / "hiab_xs031.urdf"}'}
    assert simulated == {'use_sim_time': True} and rest['config'] == 'tolerances.yaml'
    assert Path(rest['hydraulics']).is_file()
    (node,) = launch(machine='five_bar', level='effort').nodes
    assert node['parameters'][2]['hydraulics'] == '' and 'five_bar.urdf' in node['parameters'][0]['robot_description']
    # as the node declares them
    parameters = pytest.importorskip('psdyn_ros.nodes.runtime.parameters', reason='the tables are part of the nodes',
                                     exc_type=ImportError)
    assert set(rest) <= {one.name for one in parameters.VALIDATOR}
    assert 'validator = psdyn_ros.nodes.observers.validator:main' in (ROOT / 'setup.py').read_text()


def test_one_player_plays_the_bag_with_its_clock(launch):
    (command,) = launch(rate='0.5').commands
    assert command[:6] == ['ros2', 'bag', 'play', '/tmp/bag', '--clock', '100'] and '--loop' not in command
    assert command[command.index('--rate') + 1] == '0.5'
    (command,) = launch(loop='true').commands
    assert command[-1] == '--loop'


def test_what_was_measured_is_played_and_no_command(launch):
    (command,) = launch().commands
    played = re.compile(command[command.index('--regex') + 1])
    for topic in (STATES, TELEMETRY, '/simulator/pressure/lift_cylinder/a'):
        assert played.search(topic) and played.fullmatch(topic)
    for topic in (COMMANDED, '/controller/joint_commands', '/clock', '/diagnostics', '/crane/joint_states'):
        assert not played.search(topic)
    assert COMMANDS.search(COMMANDED)


def test_rviz_sees_all_joints(launch):
    nodes = {node['executable']: node for node in launch(rviz='true').nodes}
    assert set(nodes) == {'validator', 'loop_state', 'robot_state_publisher', 'rviz2'}
    assert nodes['robot_state_publisher']['remappings'] == [['joint_states', 'joint_states_full']]
    assert all({'use_sim_time': True} in node['parameters'] for node in nodes.values())


def test_what_it_starts_is_declared():
    declared = {one.text for one in ElementTree.parse(ROOT / 'package.xml').getroot().findall('exec_depend')}
    assert {'ros2bag', 'rosbag2_storage_mcap', 'robot_state_publisher'} <= declared
