"""When a plant is due to step, and what time that is on the stamps of its messages.

Three ways: in real time, with stamps on the ROS clock; in simulated time that `/clock` tells everybody, at a multiple
of real time or as fast as the computer allows; in lock-step, one period for each command.
"""

import time

from rosgraph_msgs.msg import Clock

from ...control.monitors.clock import both_clocks
from ...model.units import SECOND
from ..messages.conversions import ns_to_stamp
from ..runtime import deadlines
from ..runtime.parameters import ParameterError
from ..runtime.qos import RELIABLE

CLOCK_JUMP = 5_000_000      # ns between simulated and ROS time beyond which time was lost, or the clock set
TURN = 0.001                # s between two turns of a simulation that goes as fast as it can
SHARE = 0.8                 # of a turn that it steps; the rest is for what others say


class SimulationClock:
    """Periods due and their stamps.

    node  publishes `/clock` where parameters say so
    p     parameters of the simulator
    """

    def __init__(self, node, p):
        self.period = round(SECOND / p.rate)        # ns
        self.lock_step = p.step_on_command
        self.simulated = p.step_on_command or p.publish_clock
        self._free = p.real_time_factor == 0.0 and not self.lock_step
        _check(node, p)
        self._ros = deadlines.clock_of(node)
        pace = p.real_time_factor or 1.0
        self._deadlines = deadlines.Deadlines(round(self.period / pace), round(p.max_catch_up * SECOND / pace))
        self.turn = TURN if self._free else self._deadlines.period / SECOND     # s between calls of `due`
        self.steps = 0              # periods since the node started; a reset of the plant changes nothing
        self.clock_jumps = 0
        self.stamp = None           # ns of the simulated instant
        self._last = 0              # ns, the last stamp of real time
        self._free_from = 0         # ns, steady: from then on a stamp of the clock is a period after the last one
        self._publisher = node.create_publisher(Clock, '/clock', RELIABLE) if p.publish_clock else None
        self._message = Clock()
        if self.simulated:
            self.stamp = self.period        # zero would mean: not stamped

    overruns = property(lambda self: self._deadlines.overruns, doc='Calls of `due` that came a period or more late.')
    slipped = property(lambda self: self._deadlines.slipped, doc='ns that were lost for good.')

    @property
    def waits(self):
        """Whether the ROS clock is that of `/clock`, on which no time came yet: nothing can be stamped."""
        return not self.simulated and self._ros() == 0

    def now(self):
        """ns on the clock that stamps what comes in: the ROS clock, or simulated time."""
        return self.stamp if self.simulated else self._ros()

    def wall(self):
        """ns on the ROS clock of this node."""
        return self._ros()

    def age_clock(self):
        """ns for ages of commands, as `step` of a plant takes them: steady, or None for simulated time."""
        return None if self.simulated else time.monotonic_ns()

    def due(self, now):
        """Yield, for every batch of periods due by now (ns, steady), how many it has; they are one message."""
        if self.waits:
            self.restart()
            return
        if not self._free:
            if self.stamp is None and now < self._free_from:
                return      # single steps have used the stamps up to then
            periods = self._deadlines.due(now)
            if periods:
                yield periods
            return
        until = now + round(SHARE * TURN * SECOND)
        while time.monotonic_ns() < until:
            yield 1

    def restart(self):
        """Begin anew at the next call of `due`: after a pause there is nothing to make up."""
        self._deadlines.restart()
        if not self.simulated:
            self.stamp = None

    def advance(self, periods=1, single=False):
        """Let so many periods go by; single: by somebody who steps while time stands still.

        In real time stamps keep to the grid of periods, as long as nobody sets the clock and no time was lost.  They
        say when a period was due, not when it was done: late stamps would stay ahead of the clock for good.
        """
        self.steps += periods
        if self.simulated:
            self.stamp += periods * self.period
            return
        steady, now = both_clocks(self._ros)
        late = self._deadlines.lateness(steady)
        steady, now = steady - late, max(1, now - late)
        if single or self.stamp is None:
            # as far ahead of the clock as steps have gone; what is further is a clock that was set back
            ahead = min(self._last + self.period - now, max(0, self._free_from - steady))
            stamp = now + max(0, ahead) + (periods - 1) * self.period
        else:
            stamp = self.stamp + periods * self.period
            if abs(now - stamp) > CLOCK_JUMP:
                self.clock_jumps += 1
                stamp = now
        self.stamp = self._last = stamp
        self._free_from = steady + stamp - now + self.period

    def back_to_start(self):
        """Let simulated time begin again."""
        if self.simulated:
            self.stamp = self.period

    def publish(self):
        """Tell everybody what time it is, where that is our task."""
        if self._publisher is not None:
            ns_to_stamp(self.stamp, self._message.clock)
            self._publisher.publish(self._message)


def _check(node, p):
    if p.real_time_factor != 1.0 and not (p.publish_clock or p.step_on_command):
        raise ParameterError(f'parameter real_time_factor: {p.real_time_factor:g} without publish_clock: the other '
                             'nodes would not know what time it is; set publish_clock too')
    if (p.publish_clock or p.step_on_command) and node.get_parameter('use_sim_time').value:
        raise ParameterError('parameter use_sim_time: this node makes simulated time (publish_clock, step_on_command) '
                             'and runs on wall time itself; set it false here and true in the other nodes')
