"""Keeps what goes over topics, undecoded, to be written into a bag afterwards."""

import time

from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from ..validation.bags import write_bag

DEPTH = QoSProfile(depth=1000)


class Recorder:
    """Subscribes to topics and keeps every message in memory with the time of its receipt.

    topics  topic -> message class
    """

    def __init__(self, node, topics):
        self._types = topics
        self._messages = []         # (topic, ns, bytes)
        self._last = {}             # topic -> bytes
        for topic, kind in topics.items():
            node.create_subscription(kind, topic, self._keep(topic), DEPTH, raw=True)

    def heard(self, *topics):
        """Whether something came on each of the topics."""
        return all(topic in self._last for topic in topics)

    def last(self, topic):
        """The newest message of a topic, or None."""
        data = self._last.get(topic)
        return None if data is None else deserialize_message(data, self._types[topic])

    def clear(self):
        """Forget what was recorded so far."""
        self._messages.clear()
        self._last.clear()

    def write(self, path):
        """Write an MCAP bag into the new folder `path`."""
        write_bag(path, self._messages, {topic: _type_name(kind) for topic, kind in self._types.items()})

    def _keep(self, topic):
        def keep(data):
            data = bytes(data)
            self._last[topic] = data
            self._messages.append((topic, time.time_ns(), data))
        return keep


def _type_name(kind):
    """'sensor_msgs/msg/JointState' of the class."""
    package, folder, _ = kind.__module__.split('.', 2)
    return f'{package}/{folder}/{kind.__name__}'
