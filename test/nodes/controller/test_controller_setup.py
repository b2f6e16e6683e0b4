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

    def make(**parameters):
        nodes.append(ManagedNode(
            'controller', context=context, automatically_declare_parameters_from_overrides=True,
            parameter_overrides=[Parameter(key, value=value) for key, value in {**CRANE, **parameters}.items()]))
        controller = Controller(nodes[-1])
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


@pytest.mark.parametrize('options', [
    {'gains.telescope.i': 1e6}, {'law': 'valve_computed_torque', 'gains.telescope.integral': 1e5},
    {'law': 'valve_computed_torque', 'valve_bandwidth': 100.0}])
def test_gains_that_are_not_stable_are_refused_when_the_node_is_configured(configured, options):
    hydraulics = {'hydraulics': str(find_config('hiab_xs031_hydraulics.yaml'))} if 'law' in options else {}
    with pytest.raises(ParameterError, match=r'parameter gains\.[a-z_]*\.[a-z_]* .* is more than .*: at most '):
        configured(**options, **hydraulics)
