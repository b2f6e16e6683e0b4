"""Launch file and parameter files, as far as they can be looked at without a ROS installation."""

import runpy
import sys
import types
from pathlib import Path

import pytest
import yaml
from machines import URDF

import psdyn_ros

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / 'config'


class Call:
    """Stands for any class of launch and launch_ros: remembers what it was made with."""

    def __init__(self, *arguments, **options):
        self.arguments, self.options = arguments, options


@pytest.fixture
def launched(monkeypatch):
    """The actions of hil.launch.py, made with a launch module that only remembers."""
    names = {
        'launch': ['LaunchDescription'], 'launch.actions': ['DeclareLaunchArgument'],
        'launch.conditions': ['IfCondition'], 'launch_ros': [], 'launch_ros.actions': ['Node'],
        'launch.substitutions': ['Command', 'LaunchConfiguration', 'PathJoinSubstitution'],
        'launch_ros.parameter_descriptions': ['ParameterValue'], 'launch_ros.substitutions': ['FindPackageShare']}
    for module, classes in names.items():
        fake = types.ModuleType(module)
        for name in classes:
            setattr(fake, name, type(name, (Call,), {}))
        monkeypatch.setitem(sys.modules, module, fake)
    (actions,) = runpy.run_path(str(ROOT / 'launch' / 'hil.launch.py'))['generate_launch_description']().arguments
    return actions


def test_every_launch_argument_has_a_default_and_a_description(launched):
    arguments = [action for action in launched if type(action).__name__ == 'DeclareLaunchArgument']
    assert {action.arguments[0] for action in arguments} >= {'urdf', 'params_file', 'rviz', 'log_level'}
    for action in arguments:
        assert action.options['default_value'] and action.options['description']


def test_the_nodes_are_installed_and_meet_on_one_topic(launched):
    nodes = {action.options['executable']: action.options for action in launched if type(action).__name__ == 'Node'}
    ours = {name for name, options in nodes.items() if options.get('package') == 'psdyn_ros'}
    assert ours == {'simulator', 'controller'} and 'robot_state_publisher' in nodes
    setup = (ROOT / 'setup.py').read_text()
    assert all(f'{name} = psdyn_ros.nodes.{name}:main' in setup for name in ours)
    assert nodes['simulator']['remappings'] == [('~/joint_commands', '/controller/joint_commands')]
    assert 'condition' in nodes['rviz2']


def test_files_named_as_defaults_exist(launched):
    for action in launched:
        default = action.options.get('default_value')
        if isinstance(default, Call):
            (parts,) = default.arguments
            assert ROOT.joinpath(*parts[1:]).is_file()


def test_every_parameter_in_a_file_is_declared_and_in_its_range():
    pytest.importorskip('rclpy', reason='the tables are part of the nodes')
    from psdyn_ros.nodes import parameters

    crane = psdyn_ros.load(URDF / 'hiab_xs031.urdf')
    tables = {'simulator': parameters.SIMULATOR + parameters.initial_positions(crane),
              'controller': parameters.CONTROLLER + parameters.gains(crane, 15.0)}
    files = sorted(CONFIG.glob('hiab_xs031.yaml'))
    assert files
    for path in files:
        for key, contents in yaml.safe_load(path.read_text()).items():
            declared = {p.name: p for p in tables[key.rsplit('/', 1)[-1]]}
            for name, value in contents['ros__parameters'].items():
                p = declared[name]
                assert type(value) is type(p.default)
                assert p.low is None or p.low <= value <= p.high
                assert not p.choices or value in p.choices


def test_the_view_of_rviz_is_yaml_with_the_robot_in_it():
    displays = yaml.safe_load((CONFIG / 'hiab_xs031.rviz').read_text())['Visualization Manager']['Displays']
    assert any(display['Class'] == 'rviz_default_plugins/RobotModel' for display in displays)
