"""Where a node gets its machine from: the parameter `robot_description`, else the latched topic of that name."""

import time

import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from ..api.load import load
from ..model.errors import ModelError
from .parameters import joint_positions

TOPIC = '/robot_description'
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
    texts = []
    subscription = node.create_subscription(String, TOPIC, lambda msg: texts.append(msg.data), LATCHED)
    deadline = time.monotonic() + timeout
    while not texts and time.monotonic() < deadline:
        rclpy.spin_once(node, timeout_sec=0.1)
    node.destroy_subscription(subscription)
    if not texts:
        raise ModelError(f'no machine: the parameter robot_description is empty and nothing came on {TOPIC} '
                         f'within {timeout:g} s')
    return texts[0]
