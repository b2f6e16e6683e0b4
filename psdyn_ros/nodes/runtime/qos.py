"""Quality of service of all topics: how much waits, and whether it may get lost."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

SENSOR_DATA = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)     # the newest measurement only
LATEST = QoSProfile(depth=1)        # commands and references: reliable, since stock controllers subscribe reliably
RELIABLE = QoSProfile(depth=10)
EACH_COMMAND = QoSProfile(depth=100)        # in lock-step no command may be lost
# states that come, and predictions that leave together, while a block is computed
SENSOR_QUEUE = QoSProfile(depth=200, reliability=ReliabilityPolicy.BEST_EFFORT)
LONG_QUEUE = QoSProfile(depth=200)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
RECORDED = QoSProfile(depth=1000)           # of a recording nothing may be lost while the computer is busy
# of a publisher or a subscription whose quality of service is a parameter
ADJUSTABLE = {'qos_overriding_options': QoSOverridingOptions.with_default_policies()}


def subscription_for(offered):
    """Return the `QoSProfile` of a subscription that fits every publisher; offered: the profiles of these."""
    reliable = all(one.reliability == ReliabilityPolicy.RELIABLE for one in offered)
    latched = all(one.durability == DurabilityPolicy.TRANSIENT_LOCAL for one in offered)
    return QoSProfile(
        depth=100, reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE)
