"""Launch file and parameter files, as far as they can be looked at without a ROS installation."""

import runpy
import sys
import types
from pathlib import Path

import pytest
import yaml
from support.machines import URDF

import psdyn_ros
from psdyn_ros.nodes import EXECUTABLES

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
        'launch': ['LaunchDescription'], 'launch.actions': ['DeclareLaunchArgument', 'SetEnvironmentVariable'],
        'launch.conditions': ['IfCondition'], 'launch_ros': [], 'launch_ros.actions': ['Node'],
        'launch.substitutions': ['Command', 'EqualsSubstitution', 'IfElseSubstitution', 'LaunchConfiguration',
                                 'PathJoinSubstitution'],
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
    assert all(f'{name} = {EXECUTABLES[name]}:main' in setup for name in ours)
    given = {name: value for part in nodes['controller']['parameters'] if isinstance(part, dict)
             for name, value in part.items()}
    # nobody is there to manage it, nor to hold a button
    assert given['autostart'] is True and {'safety', 'emergency_stop'} <= set(given)
    assert nodes['simulator']['remappings'] == [('~/joint_commands', '/controller/joint_commands')]
    assert 'condition' in nodes['rviz2']


def test_files_named_as_defaults_exist(launched):
    (machine,) = (action.options['default_value'] for action in launched if action.arguments[:1] == ('machine',))
    for action in launched:
        default = action.options.get('default_value')
        if type(default).__name__ == 'IfElseSubstitution':
            default = default.arguments[1]      # of the level of valves
        if isinstance(default, Call):
            (parts,) = default.arguments
            # a list is joined, and in it LaunchConfiguration('machine') stands for the name
            names = [''.join(machine if isinstance(piece, Call) else piece for piece in part) for part in parts[1:]]
            assert ROOT.joinpath(*names).is_file()


def test_every_parameter_in_a_file_is_declared_and_in_its_range():
    pytest.importorskip('rclpy', reason='the tables are part of the nodes')
    from psdyn_ros.nodes.runtime import parameters
    from psdyn_ros.simulation.external_forces import ExternalForces
    from psdyn_ros.tools.demo.demo import SETTINGS

    files = [path for path in sorted(CONFIG.glob('*.yaml')) if (URDF / f'{path.stem}.urdf').is_file()]
    assert {path.stem for path in files} >= {
        'hiab_xs031', 'four_bar', 'five_bar', 'pkm_2pur2rpu', 'excavator', 'balloon'}
    for path in files:
        machine = psdyn_ros.load(URDF / f'{path.stem}.urdf', allow_unphysical=True)
        tables = {'simulator': parameters.SIMULATOR + parameters.initial_positions(machine),
                  'controller': parameters.CONTROLLER + parameters.gains(machine, 15.0)}
        for key, contents in yaml.safe_load(path.read_text()).items():
            node, given = key.rsplit('/', 1)[-1], contents['ros__parameters']
            if node == 'demo':
                assert set(given) <= set(SETTINGS)
                continue
            if 'external_forces' in given:
                assert ExternalForces(machine, given.pop('external_forces')).names
            declared = {p.name: p for p in tables[node]}
            for name, value in given.items():
                p = declared[name]
                assert type(value) is type(p.default)
                assert p.low is None or p.low <= value <= p.high
                assert not p.choices or value in p.choices


def test_the_view_of_rviz_is_yaml_with_the_robot_in_it():
    displays = yaml.safe_load((CONFIG / 'hiab_xs031.rviz').read_text())['Visualization Manager']['Displays']
    assert any(display['Class'] == 'rviz_default_plugins/RobotModel' for display in displays)
