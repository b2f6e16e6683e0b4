"""Keeps what goes over topics, undecoded, to be written into a bag afterwards."""

import math
import time
from collections import Counter

from rclpy.serialization import deserialize_message

from ...nodes.runtime.qos import RECORDED
from ...validation.bags.recording import write_bag


class Recorder:
    """Subscribes to topics and keeps every message in memory with the time of its receipt.

    topics  topic -> message class
    clock   function that gives ns of the receipt
    taps    topic -> function that gets each of its messages as bytes, before it is kept
    """

    def __init__(self, node, topics, clock=time.time_ns, taps=None):
        self._types, self._clock, self._taps = topics, clock, taps or {}
        self._messages = []         # (topic, ns, bytes)
        self._last = {}             # topic -> bytes
        for topic, kind in topics.items():
            node.create_subscription(kind, topic, self._keep(topic), RECORDED, raw=True)

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

    def between(self, topic, begin, end):
        """Yield (ns, message) of a topic, received from `begin` to `end` ns."""
        for name, received, data in self._messages:
            if name == topic and begin <= received <= end:
                yield received, deserialize_message(data, self._types[topic])

    def write(self, path, begin=0, end=math.inf, compressed=False, more=(), types=None):
        """Write an MCAP bag of what was received from `begin` to `end` ns into the new or empty folder `path`.

        more   further (topic, ns, serialised message)
        types  topic -> message type of these

        Returns {topic: number of messages}.
        """
        if path.exists():
            path.rmdir()
        messages = [message for message in self._messages if begin <= message[1] <= end]
        written = sorted([*messages, *more], key=lambda message: message[1]) if more else messages
        write_bag(path, written, {**{topic: _type_name(kind) for topic, kind in self._types.items()}, **(types or {})},
                  compressed)
        counts = Counter(topic for topic, _, _ in messages)
        return {topic: counts[topic] for topic in self._types}

    def _keep(self, topic):
        tap, clock, last, messages = self._taps.get(topic), self._clock, self._last, self._messages

        def keep(data):
            data = last[topic] = bytes(data)
            if tap is not None:
                tap(data)
            messages.append((topic, clock(), data))
        return keep


def _type_name(kind):
    """'sensor_msgs/msg/JointState' of the class."""
    package, folder, _ = kind.__module__.split('.', 2)
    return f'{package}/{folder}/{kind.__name__}'
