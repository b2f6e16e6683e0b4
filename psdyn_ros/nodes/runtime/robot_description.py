"""Where a node gets its machine from: the parameter `robot_description`, else the latched topic of that name."""

import time

from rclpy.wait_for_message import wait_for_message
from std_msgs.msg import String

from ...api.load import load
from ...model.errors import ModelError
from ...model.joint_positions import joint_positions
from .qos import LATCHED

TOPIC = 'robot_description'        # of the namespace
WAIT = 0.5              # s of one wait for the topic: a signal ends the node after it at the latest


def find_description(node, parameters):
    """The URDF of the node, as text or as the path of a file; parameters as declared from `MACHINE`."""
    return parameters.robot_description or description_from_topic(node, parameters.robot_description_timeout)


def load_machine(node, parameters, description=None):
    """The Manipulator of the node, of a description that was found already, or is to be."""
    return load(description or find_description(node, parameters),
                loops_file=parameters.loops_file or None, allow_unphysical=parameters.allow_unphysical,
                initial=joint_positions(parameters.assembly, 'parameter assembly'))


def description_from_topic(node, timeout):
    """The URDF on the latched topic; ModelError where none comes within `timeout` [s]."""
    topic, deadline = node.resolve_topic_name(TOPIC), time.monotonic() + timeout
    node.get_logger().info(f'the parameter robot_description is empty: waiting for {topic}')
    while (left := deadline - time.monotonic()) > 0.0:
        found, message = wait_for_message(String, node, TOPIC, qos_profile=LATCHED, time_to_wait=min(left, WAIT))
        if found:
            return message.data
    raise ModelError(f'no machine: the parameter robot_description is empty and nothing came on {topic} '
                     f'within {timeout:g} s; name a machine or a URDF file, or start what publishes the topic')
