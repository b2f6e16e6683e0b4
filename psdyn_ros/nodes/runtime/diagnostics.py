"""Diagnostics of a node, distinguished from those of the same node of another machine."""

from diagnostic_msgs.msg import DiagnosticArray

from .qos import RELIABLE


def publisher(node):
    """Return a function that publishes a DiagnosticArray with the full name of the node as `hardware_id`."""
    publish = node.create_publisher(DiagnosticArray, '/diagnostics', RELIABLE).publish
    name = node.get_fully_qualified_name()

    def send(message):
        for status in message.status:
            status.hardware_id = name
        publish(message)

    return send
