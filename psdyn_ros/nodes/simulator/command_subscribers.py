"""Commands of a plant as they come on their topics: taken whole or refused, and kept until the plant takes them."""

import time

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from ...model.errors import PsdynError
from ...model.units import SECOND
from ..messages.commands import CommandReader
from ..messages.conversions import MessageError, stamp_to_ns
from ..runtime.qos import EACH_COMMAND, LATEST


class PlantInputs:
    """Subscribes to the commands of a plant.

    ~/joint_commands, ~/commands, and with hydraulics ~/valve_commands.  What stands in several messages between two
    steps is put together; the last one counts.  A topic with more than one publisher is refused as a whole: nobody can
    tell which of them is meant.

    node        to subscribe on
    plant       the machine
    modes       of its actuators
    clock       `SimulationClock`
    rejections  where what is refused is counted
    limits      (s that a stamp may be old, s that it may lie in the future)
    on_extra    called with names that are no actuators
    on_command  called after each message that was taken
    """

    def __init__(self, node, plant, modes, *, clock, rejections, limits, on_extra, on_command):
        self._node, self._clock, self._rejections, self._on_command = node, clock, rejections, on_command
        self._oldest, self._skew = (round(seconds * SECOND) for seconds in limits)
        self._pending = np.full(len(modes), np.nan)
        self._stamps = {}               # topic -> ns of the last message taken
        self.publishers = {}            # topic -> how many publish on it
        self.conflicting_publishers = {}                # of them those with more than one
        hydraulic = bool(plant.cylinders)
        reader = CommandReader(plant.actuators, modes, on_extra, partial=hydraulic)
        topics = {'joint_commands': (JointState, reader.named), 'commands': (Float64MultiArray, reader.ordered)}
        if hydraulic:
            topics['valve_commands'] = JointState, reader.valves
        qos = EACH_COMMAND if clock.lock_step else LATEST
        self._subscriptions = {name: node.create_subscription(kind, f'~/{name}', self._on(name, read), qos)
                               for name, (kind, read) in topics.items()}

    def _on(self, topic, read):
        return lambda msg: self._receive(topic, read, msg)

    def _receive(self, topic, read, msg):
        try:
            if topic in self.conflicting_publishers:
                raise MessageError(f'{self.conflicting_publishers[topic]} publishers; expected one')
            stamp = stamp_to_ns(msg.header.stamp) if hasattr(msg, 'header') else 0
            if stamp:
                self._check(topic, stamp)
            command = read(msg)
        except PsdynError as error:
            self._rejections.add(topic, error, time.monotonic_ns())
            return
        if stamp:
            self._stamps[topic] = stamp
        given = ~np.isnan(command)
        self._pending[given] = command[given]
        self._on_command()

    def _check(self, topic, stamp):
        """Refuse a stamp that is late, early or out of order.

        Answers are stamped as the state that they answer, and that may be somewhat beside the ROS clock.
        """
        now, simulated = self._clock.now(), self._clock.stamp
        earliest, latest = (now, now) if simulated is None else (min(now, simulated), max(now, simulated))
        if stamp > latest + self._skew:
            raise MessageError(f'stamp {(stamp - latest) * 1e-6:.1f} ms in the future')
        if stamp < earliest - self._oldest:
            raise MessageError(f'late: stamp {(earliest - stamp) * 1e-6:.1f} ms old, at most '
                               f'{self._oldest * 1e-6:g} allowed')
        last = self._stamps.get(topic)
        if last is None or last > latest + self._skew:
            return      # the clock was set back: what was before it says nothing
        if stamp < last:
            raise MessageError(f'out of order: stamped {(last - stamp) * 1e-6:.1f} ms before the last one')
        if stamp == last and self._clock.lock_step:
            raise MessageError('repeated: stamped as the last one')

    @property
    def topics(self):
        """Resolved names of the topics of commands."""
        return [subscription.topic_name for subscription in self._subscriptions.values()]

    @property
    def complete(self):
        """Whether every actuator has a command that the plant has not taken, or the present state was answered.

        An answer may leave out actuators; it takes every topic that has commanded and still has a publisher.
        """
        if not np.isnan(self._pending).any():
            return True
        stamps = [stamp for topic, stamp in self._stamps.items() if self.publishers.get(topic, 1)]
        return bool(stamps) and all(stamp == self._clock.stamp for stamp in stamps)

    def take(self):
        """Return the commands (actuators,) since the last call, NaN where there is none; None where there are none."""
        if np.isnan(self._pending).all():
            return None
        command = self._pending.copy()
        self._pending[:] = np.nan
        return command

    def clear(self):
        """Forget what the plant has not taken yet."""
        self._pending[:] = np.nan

    def count_publishers(self):
        """Look who publishes commands; to be called once a second."""
        self.publishers = {topic: self._node.count_publishers(subscription.topic_name)
                           for topic, subscription in self._subscriptions.items()}
        self.conflicting_publishers = {topic: count for topic, count in self.publishers.items() if count > 1}
