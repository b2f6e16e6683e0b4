"""Nodes without a network: their messages are taken and given by hand."""

from contextlib import contextmanager
from types import SimpleNamespace

import rclpy
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.signals import SignalHandlerOptions

from ..machines import URDF

CRANE = URDF / 'hiab_xs031.urdf'


@contextmanager
def nodes_by_hand():
    """Give a function that puts work on a node without a network, and keeps what that publishes as `sent[topic]`.

    As many as `listeners[topic]` listen to it, else one.
    """
    context = rclpy.Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    nodes = []

    def build(kind, name='n', **values):
        values = {'robot_description': str(CRANE), **values}
        node = rclpy.create_node(name, context=context, automatically_declare_parameters_from_overrides=True,
                                 parameter_overrides=[Parameter(name, value=value) for name, value in values.items()])
        nodes.append(node)
        sent, listeners, subscribe, create = {}, {}, node.create_subscription, node.create_publisher

        def publisher(_, topic, *arguments, **options):
            create(_, topic, *arguments, **options)
            name = topic.removeprefix('~/')
            messages = sent.setdefault(name, [])
            return SimpleNamespace(publish=lambda msg: messages.append(copied(msg)),
                                   get_subscription_count=lambda: listeners.get(name, 1))

        def subscription(_, topic, callback, *arguments, **options):
            heard[topic.removeprefix('~/')] = lambda msg: callback(
                serialize_message(msg) if options.get('raw') else msg)
            return subscribe(_, topic, callback, *arguments, **options)

        heard = {}
        node.create_publisher, node.create_subscription = publisher, subscription
        work = kind(node)
        return SimpleNamespace(node=node, work=work, sent=sent, hear=heard, listeners=listeners)

    yield build
    for node in nodes:
        node.destroy_node()
    rclpy.try_shutdown(context=context)


def copied(msg):
    return deserialize_message(serialize_message(msg), type(msg))
