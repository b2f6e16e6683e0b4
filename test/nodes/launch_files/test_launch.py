"""Launch files and parameter files, as far as they can be looked at without a ROS installation."""

import types
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from conftest import thorough
from support.machines import URDF
from support.nodes.launch_files import RANGE
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.nodes import EXECUTABLES

CONFIG = ROOT / 'config'
# of all nodes, as psdyn_ros/nodes/runtime/transport.py says
LOOPBACK = {RANGE: 'SYSTEM_DEFAULT', 'FASTRTPS_DEFAULT_PROFILES_FILE': str(CONFIG / 'fastdds_loopback.xml')}

URDF_TEXT = (URDF / 'hiab_xs031.urdf').read_text()
MUST = {'replay': {'bag': 'bag'}, 'real_machine': {'urdf': str(URDF / 'hiab_xs031.urdf')}}
FILES = sorted(path.name.split('.')[0] for path in (ROOT / 'launch').glob('*.launch.py'))
STARTED = {'rviz': 'true', 'annotator': 'true'}
PARAMETER_FILES = [path for path in sorted(CONFIG.glob('*.yaml')) if (URDF / f'{path.stem}.urdf').is_file()]


@pytest.mark.parametrize('name', FILES)
def test_every_launch_argument_has_a_default_and_a_description(launch, name):
    must = MUST.get(name, {})
    declared = launch(name, **must).declared
    assert set(declared) >= {'namespace', 'use_sim_time', 'params_file', 'urdf', 'log_level', 'discovery_range'}
    assert {argument for argument, options in declared.items() if 'default_value' not in options} == set(must)
    for argument, options in declared.items():
        default, choices = options.get('default_value'), options['choices']
        assert options['description'] and isinstance(default, str | None)
        assert default != '' or 'empty: ' in options['description'] or argument == 'namespace'
        assert choices is None or default in choices


@pytest.mark.parametrize('name', FILES)
def test_what_is_started_is_installed_declared_and_needed(launch, name):
    manifest = {depend.text for depend in ElementTree.parse(ROOT / 'package.xml').getroot().findall('exec_depend')}
    assert manifest >= {'launch', 'launch_ros', 'ros2cli', 'ros2launch'}
    launched, setup = launch(name, **MUST.get(name, {}), **STARTED), (ROOT / 'setup.py').read_text()
    ours = [node['package'] == 'psdyn_ros' for node in launched.nodes]
    assert ours == sorted(ours)     # where a package is missing, launch leaves behind what it has started before
    for node in launched.nodes:
        assert node['package'] in manifest | {'psdyn_ros'}
        assert bool(node['on_exit']) == (node['executable'] not in ('rviz2', 'spawner'))
        if node['package'] == 'psdyn_ros':
            assert f"{node['executable']} = {EXECUTABLES[node['executable']]}:main" in setup
            assert node['parameters']['robot_description'] == URDF_TEXT and node['name'] == node['executable']


@pytest.mark.parametrize('name', FILES)
def test_all_names_are_of_the_namespace(launch, name):
    launched = launch(name, **MUST.get(name, {}), **STARTED, namespace='left')
    for node in launched.nodes:
        if name != 'ros2_control':      # whose topics are those of the blocks of the URDF
            assert node['namespace'] == 'left'
        absolute = {target for _, target in node['remappings'] if target.startswith('/')}
        assert not absolute


@pytest.mark.parametrize('name', FILES)
@pytest.mark.parametrize('exported, given, found', [
    ({}, {}, LOOPBACK), ({RANGE: 'SUBNET'}, {}, {RANGE: 'SUBNET', 'FASTDDS_BUILTIN_TRANSPORTS': 'UDPv4'}),
    ({RANGE: 'SUBNET'}, {'discovery_range': 'LOCALHOST'}, LOOPBACK),
    ({'FASTDDS_BUILTIN_TRANSPORTS': 'DEFAULT'}, {}, {RANGE: 'LOCALHOST'})])
def test_the_range_is_what_is_given_else_what_is_exported_else_this_computer(launch, name, exported, given, found):
    launched = launch(name, exported, **MUST.get(name, {}), **given)
    assert launched.nodes and all(node['additional_env'] == found for node in launched.nodes)


@pytest.mark.parametrize('name, least', [
    ('hil', {'level', 'controller', 'autostart', 'emergency_stop', 'rviz', 'use_sim_time', 'discovery_range'}),
    ('replay', {'level', 'rviz', 'loop'}), ('real_machine', {'controller', 'annotator', 'use_sim_time'}),
    ('ros2_control', {'level', 'annotator', 'loop_state', 'use_sim_time'})])
def test_arguments_with_few_values_refuse_others(launch, name, least):
    declared = launch(name, **MUST.get(name, {})).declared
    assert {argument for argument, options in declared.items() if options['choices']} >= least


def test_simulator_and_controller_meet_on_one_topic(launch):
    launched = launch('hil')
    assert {node['executable'] for node in launched.nodes} == {'simulator', 'controller', 'robot_state_publisher'}
    controller = launched.node('controller')['parameters']
    # nobody is there to manage it, nor to hold a button
    assert controller['autostart'] is True and controller['emergency_stop'] == 'none'
    assert Path(controller['safety']).is_file() and controller['law'] == 'computed_torque'
    assert launched.node('simulator')['remappings'] == [('~/joint_commands', 'controller/joint_commands')]
    assert 'controller' not in {node['executable'] for node in launch('hil', controller='false').nodes}


def test_what_was_not_given_overrules_no_parameter_file(launch):
    launched = launch('hil', params_file='mine.yaml')
    for node in launched.nodes:
        assert node['file'] == 'mine.yaml' and set(node['given']) == {'robot_description'}
    assert launched.node('simulator')['defaults'] == {'ttl': 0.1, 'hydraulics': ''}
    arguments = {'law': 'pd_gravity', 'autostart': 'false', 'emergency_stop': 'required', 'hydraulics': 'h.yaml'}
    given = launch('hil', params_file='mine.yaml', use_sim_time='true', **arguments).node('controller')['given']
    assert given.items() >= {**arguments, 'autostart': False, 'use_sim_time': True}.items()


def test_one_simulator_makes_the_time_of_all_others(launch):
    launched = launch('hil', use_sim_time='true', rviz='true')
    assert launched.node('simulator')['given']['publish_clock'] is True
    assert {node['executable'] for node in launched.nodes if node['given'].get('use_sim_time')} == {
        'controller', 'robot_state_publisher', 'rviz2'}


@pytest.mark.parametrize('machine', ['hiab_xs031', 'excavator'])
def test_files_of_a_machine_are_those_of_the_package_unless_its_urdf_is_given(launch, machine):
    controller = launch('hil', machine=machine, level='valve').node('controller')
    assert controller['defaults']['law'] == 'valve_computed_torque'
    for path in (controller['file'], controller['defaults']['safety'], controller['defaults']['hydraulics']):
        assert Path(path).is_file() and Path(path).name.startswith(machine)
    controller = launch('hil', urdf=str(URDF / f'{machine}.urdf'), level='valve').node('controller')
    assert controller['file'] is None and controller['defaults']['safety'] == controller['defaults']['hydraulics'] == ''


def test_a_urdf_may_have_spaces_in_its_path(launch, tmp_path):
    path = tmp_path / 'a machine of mine.urdf'
    path.write_text(URDF_TEXT)
    assert launch('hil', urdf=str(path)).node('robot_state_publisher')['parameters']['robot_description'] == URDF_TEXT


def test_a_process_that_ends_ends_the_launch_with_its_error(launch):
    end = launch('hil').node('controller')['on_exit']
    context, over = types.SimpleNamespace(is_shutdown=False), types.SimpleNamespace(is_shutdown=True)

    def after(code):
        (timer,) = end(types.SimpleNamespace(returncode=code, process_name='controller-2'), context)
        (action,) = timer.options['actions']
        return action.options['function'](context)

    assert type(after(0)[0]).__name__ == 'Shutdown'
    with pytest.raises(RuntimeError, match='controller-2 ended with exit code 2'):
        after(2)
    assert end(types.SimpleNamespace(returncode=-2), over) is None


@pytest.mark.parametrize('path', thorough(
    PARAMETER_FILES, [path for path in PARAMETER_FILES if path.stem in ('hiab_xs031', 'balloon', 'five_bar')]),
    ids=lambda path: path.stem)
def test_every_parameter_in_a_file_is_declared_and_in_its_range(path):
    pytest.importorskip('rclpy', reason='the tables are part of the nodes')
    from psdyn_ros.control.laws.registry import make_law
    from psdyn_ros.nodes.controller import parameters as controller
    from psdyn_ros.nodes.simulator import parameters as simulator
    from psdyn_ros.simulation.external_forces import ExternalForces
    from psdyn_ros.tools.demo.demo import SETTINGS

    machine = psdyn_ros.load(URDF / f'{path.stem}.urdf', allow_unphysical=True)
    tables = {'simulator': simulator.PARAMETERS + simulator.initial_positions(machine),
              'controller': controller.PARAMETERS + (() if machine.floating else controller.gains(
                  make_law('computed_torque', machine)))}
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


def test_every_machine_has_a_parameter_file():
    assert {path.stem for path in PARAMETER_FILES} >= {
        'hiab_xs031', 'four_bar', 'five_bar', 'pkm_2pur2rpu', 'excavator', 'balloon'}


def test_the_view_of_rviz_is_yaml_with_the_robot_in_it():
    displays = yaml.safe_load((CONFIG / 'hiab_xs031.rviz').read_text())['Visualization Manager']['Displays']
    assert any(display['Class'] == 'rviz_default_plugins/RobotModel' for display in displays)
