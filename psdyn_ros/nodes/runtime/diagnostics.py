"""Diagnostics of a node, distinguished from those of the same node of another machine."""

from diagnostic_msgs.msg import DiagnosticArray

from .qos import RELIABLE


def publisher(node):
    """Return a function that publishes a DiagnosticArray whose statuses have names that begin with that of the node.

    It puts the namespace before these names, and the full name of the node in `hardware_id`.
    """
    publish = node.create_publisher(DiagnosticArray, '/diagnostics', RELIABLE).publish
    name = node.get_fully_qualified_name()
    namespace = name[1:].removesuffix(node.get_name())

    def send(message):
        for status in message.status:
            status.name, status.hardware_id = namespace + status.name, name
        publish(message)

    return send


def log_function(node):
    """Return a function of a severity, 'info', 'warning' or 'error', and a text, which logs this."""
    log = node.get_logger()

    def write(level, text):
        # rclpy wants one severity for each line of code that logs
        if level == 'error':
            log.error(text)
        elif level == 'warning':
            log.warning(text)
        else:
            log.info(text)
    return write
