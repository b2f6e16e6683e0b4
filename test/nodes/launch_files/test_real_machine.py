"""Launch file and parameters for a machine of somebody's own: what is to be filled in runs nothing as it is."""


import pytest
import yaml
from support.paths import ROOT

CRANE = ROOT / 'urdf' / 'hiab_xs031.urdf'
FILLED = {
    'loop_state': {'closure_tolerance': 0.005, 'effort_source': 'message'},
    'controller': {'safety': str(ROOT / 'config' / 'hiab_xs031_safety.yaml'), 'hydraulics': '', 'rate': 500.0,
                   'law': 'computed_torque', 'command_delay': 0.0, 'realtime': 'off'},
    'annotator': {'friction_scale': 1.0}}


def given():
    sections = yaml.safe_load((ROOT / 'config' / 'real_machine.yaml').read_text())
    return {name.rsplit('/', 1)[-1]: section['ros__parameters'] for name, section in sections.items()}


GAPS = [(node, name) for node, values in given().items() for name, value in values.items() if value == 'REPLACE']


@pytest.mark.parametrize('arguments, started', [
    ({}, {'loop_state', 'controller'}), ({'controller': 'false', 'annotator': 'true'}, {'loop_state', 'annotator'})])
def test_nodes_get_the_machine_their_parameters_and_their_topics(launch, arguments, started):
    launched = launch('real_machine', urdf=str(CRANE), joint_states='encoders', **arguments)
    ours = {node['executable']: node for node in launched.nodes if node['package'] == 'psdyn_ros'}
    assert set(ours) == started
    for node in ours.values():
        assert node['file'] == str(ROOT / 'config' / 'real_machine.yaml')
        assert node['parameters'] == {'robot_description': CRANE.read_text()}
        assert ('joint_states', 'encoders') in node['remappings']
    publisher = launched.node('robot_state_publisher')
    assert ('joint_states', 'joint_states_full') in publisher['remappings']
    last = launched.nodes[-1]['remappings'][-1]
    assert last == (('~/trajectory_out', 'joint_trajectory_controller/joint_trajectory') if 'annotator' in ours else
                    ('~/joint_commands', 'controller/joint_commands'))


def test_every_node_has_gaps_and_starts_no_motion_by_itself():
    assert {node for node, _ in GAPS} == set(given()) == set(FILLED)
    controller = given()['controller']
    assert controller['autostart'] is False and controller['emergency_stop'] == 'required'
    assert ('controller', 'safety') in GAPS


@pytest.fixture
def start():
    """Function that starts the work of a node on parameters, without a network; the managed one is configured too."""
    rclpy = pytest.importorskip('rclpy', reason='the nodes need rclpy')
    from rclpy.parameter import Parameter
    from rclpy.signals import SignalHandlerOptions

    from psdyn_ros.nodes.controller.node import Controller
    from psdyn_ros.nodes.observers.annotator import AnnotatorNode
    from psdyn_ros.nodes.observers.loop_state import LoopStateNode
    from psdyn_ros.nodes.runtime.lifecycle import ManagedNode

    kinds = {'loop_state': LoopStateNode, 'controller': Controller, 'annotator': AnnotatorNode}
    context, nodes = rclpy.Context(), []
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)

    def make(name, values):
        options = {'context': context, 'automatically_declare_parameters_from_overrides': True,
                   'parameter_overrides': [Parameter(key, value=value) for key, value in values.items()]}
        nodes.append(ManagedNode(name, **options) if name == 'controller' else rclpy.create_node(name, **options))
        work = kinds[name](nodes[-1])
        if name == 'controller':
            work.configure()

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown(context=context)


@pytest.mark.parametrize('node', FILLED)
def test_what_is_given_is_declared_and_fills_the_gaps(node):
    pytest.importorskip('rclpy', reason='the tables are part of the nodes')
    from psdyn_ros.nodes.parameter_tables import tables
    declared = {parameter.name: parameter for parameter in tables()[node]}
    for name, value in {**given()[node], **FILLED[node]}.items():
        parameter = declared[name]
        assert value == 'REPLACE' or type(value) is type(parameter.default), name
        assert not parameter.choices or value in parameter.choices, name
    assert set(FILLED[node]) >= {name for one, name in GAPS if one == node}


@pytest.mark.parametrize('node, name', GAPS)
def test_a_node_does_not_run_with_a_gap_that_is_left(start, node, name):
    from psdyn_ros.model.errors import PsdynError
    values = {**given()[node], **FILLED[node], 'robot_description': str(CRANE), name: 'REPLACE'}
    with pytest.raises(PsdynError, match='REPLACE|' + name):
        start(node, values)


@pytest.mark.parametrize('node', ['loop_state', 'annotator'])
def test_a_node_runs_when_its_gaps_are_filled(start, node):
    start(node, {**given()[node], **FILLED[node], 'robot_description': str(CRANE)})
