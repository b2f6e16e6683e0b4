"""Quality of service of all topics: how much waits, and whether it may get lost."""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

SENSOR_DATA = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)     # the newest measurement only
LATEST = QoSProfile(depth=1)        # commands and references: reliable, since stock controllers subscribe reliably
RELIABLE = QoSProfile(depth=10)
EACH_COMMAND = QoSProfile(depth=100)        # in lock-step no command may be lost
# states that come, and predictions that leave together, while a block is computed
SENSOR_QUEUE = QoSProfile(depth=200, reliability=ReliabilityPolicy.BEST_EFFORT)
LONG_QUEUE = QoSProfile(depth=200)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
