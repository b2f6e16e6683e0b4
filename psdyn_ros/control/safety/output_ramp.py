"""The way to rest where the measured state cannot be used: the last command, ramped in time."""
import math

import numpy as np

from ...model.units import SECOND


class OutputRamp:
    """A straight line from the last command to that of rest, the same time for all actuators.

    It takes as long as the declared decelerations take from the speeds of the reference, at most the stop time, and no
    command changes faster than its declared rate.  What is measured does not enter.

    declaration  `SafetyDeclaration`
    """

    def __init__(self, declaration):
        self._deceleration = declaration.deceleration.tolist()
        self._rate = declaration.command_rate.tolist()
        self._limit = declaration.command_limit.tolist()
        self._longest = declaration.stop_time
        self._count = len(self._rate)
        self._from = self._to = [0.0] * self._count
        self._started = 0
        self._duration = 0      # ns

    def start(self, command, velocity, target, now):
        """Begin at `now` (ns of the steady clock).

        command (actuators,): the last output.  velocity (actuators,): of the reference [m/s, rad/s].  target
        (actuators,): command of rest, in the unit of the tier.  Both commands are taken within their limits; what is
        not finite is taken for rest: a command for the target, a target for zero, a velocity for none.
        """
        self._to = [_within(value, limit, 0.0) for value, limit in zip(np.asarray(target).tolist(), self._limit)]
        self._from = [_within(value, limit, rest)
                      for value, limit, rest in zip(np.asarray(command).tolist(), self._limit, self._to)]
        duration = 0.0
        for i, speed in enumerate(np.asarray(velocity).tolist()):
            slowing = abs(speed) / self._deceleration[i] if math.isfinite(speed) else 0.0
            duration = max(duration, min(slowing, self._longest), abs(self._from[i] - self._to[i]) / self._rate[i])
        self._started, self._duration = now, math.ceil(duration * SECOND)

    def at(self, now):
        """Return the command (actuators,) at `now`."""
        if self.done(now):
            return np.array(self._to)
        left = 1.0 - (now - self._started) / self._duration
        return np.array([end + left * (begin - end) for begin, end in zip(self._from, self._to)])

    def done(self, now):
        """Return whether the ramp is at its end at `now`; before its start it is, too."""
        return not 0 <= now - self._started < self._duration


def _within(value, limit, rest):
    return min(max(value, -limit), limit) if math.isfinite(value) else rest
