"""What parameters make of a controller: the node is configured, with nothing else in its graph."""

import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

import rclpy  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.signals import SignalHandlerOptions  # noqa: E402

from psdyn_ros import ModelError  # noqa: E402
from psdyn_ros.model.locate import find_config  # noqa: E402
from psdyn_ros.nodes.controller.node import Controller  # noqa: E402
from psdyn_ros.nodes.runtime.lifecycle import ManagedNode  # noqa: E402
from psdyn_ros.nodes.runtime.parameters import ParameterError  # noqa: E402

CRANE = {'robot_description': 'hiab_xs031', 'safety': str(find_config('hiab_xs031_safety.yaml')),
         'emergency_stop': 'none'}


@pytest.fixture
def configured():
    """Function that returns a `Controller` of the crane that was configured with parameters."""
    context, nodes = rclpy.Context(), []
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)

    def make(configure=True, **parameters):
        nodes.append(ManagedNode(
            'controller', context=context, automatically_declare_parameters_from_overrides=True,
            parameter_overrides=[Parameter(key, value=value) for key, value in {**CRANE, **parameters}.items()]))
        controller = Controller(nodes[-1])
        controller.parameters = nodes[-1]
        if configure:
            controller.configure()
        return controller

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown(context=context)


def test_the_delay_of_streamed_points_is_a_parameter_below_their_timeout(configured):
    assert configured().core.law.reference.limits.stream_delay == 0.0
    assert configured(stream_delay=0.02).core.law.reference.limits.stream_delay == 0.02
    with pytest.raises(ModelError, match="stream_delay 0.15 s: expected 0 to less than the 0.1 s of 'timeouts"):
        configured(stream_delay=0.15)


@pytest.mark.parametrize('given, text', [(1, '1'), ([0, 1], '0,1'), ('0, 1', '0, 1')])
def test_processors_are_given_as_a_number_a_list_or_a_text(configured, given, text):
    assert configured(configure=False, cpus=given).parameters.get_parameter('cpus').value == text


def test_parameters_that_are_in_no_table_are_warnings_once_all_are_declared(configured, capfd):
    configured(**{'gains.slewx.p': 20.0, 'gains.slew.p': 200.0, 'output.slew': 'effort', 'hydrualics': 'foo.yaml'})
    said = capfd.readouterr().err
    assert said.count('passed over') == 2
    assert "did you mean 'gains.slew.p'?" in said and "did you mean 'hydraulics'?" in said


@pytest.mark.parametrize('options', [
    {'gains.telescope.i': 1e6}, {'law': 'valve_computed_torque', 'gains.telescope.integral': 1e5},
    {'law': 'valve_computed_torque', 'valve_bandwidth': 100.0}])
def test_gains_that_are_not_stable_are_refused_when_the_node_is_configured(configured, options):
    hydraulics = {'hydraulics': str(find_config('hiab_xs031_hydraulics.yaml'))} if 'law' in options else {}
    with pytest.raises(ParameterError, match=r'parameter gains\.[a-z_]*\.[a-z_]* .* is more than .*: at most '):
        configured(**options, **hydraulics)


def gain_of(controller):
    return controller.core.law.gains.p[3], controller.parameters.get_parameter('gains.telescope.p').value


def give(controller, name, value):
    assert controller.parameters.set_parameters([Parameter(name, value=value)])[0].successful


def test_a_parameter_set_before_and_after_it_was_configured_counts(configured):
    controller = configured(configure=False, **{'gains.telescope.p': 200.0})
    give(controller, 'gains.telescope.p', 250.0)
    controller.configure()
    assert gain_of(controller) == (250.0, 250.0)
    give(controller, 'gains.telescope.p', 240.0)
    controller.cleanup()
    give(controller, 'output.slew', 'effort')
    controller.configure()
    assert gain_of(controller) == (240.0, 240.0) and controller.core.law.gains.p[0] != 240.0


@pytest.mark.parametrize('wrong', [1e6, 1e9, 5, 'x'])
def test_a_parameter_that_was_refused_can_be_set_to_a_better_value(configured, wrong):
    controller = configured(configure=False, **{'gains.telescope.i': wrong})
    for _ in range(2):
        with pytest.raises(ParameterError, match='gains.telescope.i'):
            controller.configure()
    give(controller, 'gains.telescope.i', 500.0)
    controller.configure()
    assert controller.core.law.gains.i[3] == 500.0
