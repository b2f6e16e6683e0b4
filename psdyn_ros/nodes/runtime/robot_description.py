"""Where a node gets its machine from: the parameter `robot_description`, else the latched topic of that name."""

import time

from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from ...api.load import load
from ...model.errors import ModelError
from .parameters import joint_positions
from .take_message import newest

TOPIC = 'robot_description'        # of the namespace
POLL = 0.02             # s between two looks at the topic
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def find_description(node, parameters):
    """The URDF of the node, as text or as the path of a file; parameters as declared from `parameters.MACHINE`."""
    return parameters.robot_description or _from_topic(node, parameters.robot_description_timeout)


def load_machine(node, parameters, description=None):
    """The Manipulator of the node, of a description that was found already, or is to be."""
    return load(description or find_description(node, parameters),
                loops_file=parameters.loops_file or None, allow_unphysical=parameters.allow_unphysical,
                initial=joint_positions(parameters.assembly, 'parameter assembly'))


def _from_topic(node, timeout):
    # by hand: this may be in a callback of the executor that serves the node
    subscription = node.create_subscription(String, TOPIC, _nothing, LATCHED)
    topic = subscription.topic_name
    node.get_logger().info(f'the parameter robot_description is empty: waiting for {topic}')
    deadline = time.monotonic() + timeout
    try:
        while (taken := newest(subscription)) is None and time.monotonic() < deadline:
            time.sleep(POLL)
    finally:
        node.destroy_subscription(subscription)
    if taken is None:
        raise ModelError(f'no machine: the parameter robot_description is empty and nothing came on {topic} '
                         f'within {timeout:g} s')
    return taken[0].data


def _nothing(msg):
    pass
