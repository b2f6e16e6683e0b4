"""The way to rest where the measured state cannot be used: the last command, ramped in time."""
import math

import numpy as np

from ...model.units import SECOND

EASE = 0.1              # s in which a ramp takes up its slope, and gives it up: a sudden stop swings on its oil
SWING_WAY = 0.007       # m or rad that a ramp may go farther so that the machine does not swing after it


class OutputRamp:
    """A way from the last command to that of rest, the same time for all actuators.

    It takes as long as the declared decelerations take from the speeds of the reference, and `EASE` more, in which the
    slope is taken up and given up; all together at most the stop time. No command changes faster than its declared
    rate.  What is measured does not enter.

    Half of each command follows half a period of the slowest mode of the machine on its oil later, so that what the two
    halves excite cancels: an input shaper (Singer and Seering, "Preshaping command inputs to reduce system vibration",
    Journal of Dynamic Systems, Measurement, and Control 112, 1990).  Fast machines, which would go farther than
    `SWING_WAY` meanwhile, wait less; their ramps are as long as that period anyway.

    declaration   `SafetyDeclaration`
    swing_period  s of that mode; 0: none
    """

    def __init__(self, declaration, swing_period=0.0):
        self._deceleration = declaration.deceleration.tolist()
        self._rate = declaration.command_rate.tolist()
        self._limit = declaration.command_limit.tolist()
        self._longest, self._stop_time = declaration.stop_time - EASE, declaration.stop_time_ns
        self._half_swing = 0.5 * swing_period
        self._by_oil = (~declaration.by_force).tolist()
        self._count = len(self._rate)
        self._from = self._to = [0.0] * self._count
        self._started = 0
        # ns: of the straight line, of its ease, until the second half follows, and of all together
        self._straight = self._ease = self._delay = self._duration = 0

    def start(self, command, velocity, target, now, elapsed=0):
        """Begin at `now` (ns of the steady clock).

        command (actuators,): the last output.  velocity (actuators,): of the reference [m/s, rad/s].  target
        (actuators,): command of rest, in the unit of the interface.  Both commands are taken within their limits; what
        is not finite is taken for rest: a command for the target, a target for zero, a velocity for none.  elapsed: ns
        for which the machine is slowing down already: the ramp goes on from there, since one that took up its slope
        anew would let it become faster again.
        """
        self._to = [_within(value, limit, 0.0) for value, limit in zip(np.asarray(target).tolist(), self._limit)]
        self._from = [_within(value, limit, rest)
                      for value, limit, rest in zip(np.asarray(command).tolist(), self._limit, self._to)]
        straight = slowest = fastest = 0.0
        for i, speed in enumerate(np.asarray(velocity).tolist()):
            speed = abs(speed) if math.isfinite(speed) else 0.0
            slowing, fastest = speed / self._deceleration[i], max(fastest, speed * self._by_oil[i])
            slowest = max(slowest, min(slowing, self._longest))
            straight = max(straight, slowest, abs(self._from[i] - self._to[i]) / self._rate[i])
        self._started, self._straight = now, math.ceil(straight * SECOND)
        self._ease = round(EASE * SECOND) if slowest > 0.0 else 0
        delay = min(self._half_swing, 2.0 * SWING_WAY / fastest) if slowest > 0.0 < fastest else 0.0
        self._delay = max(min(round(delay * SECOND), self._stop_time - self._straight - self._ease), 0)
        self._duration = self._straight + self._ease + self._delay
        elapsed = min(elapsed, self._ease, self._duration // 2)
        if elapsed > 0:
            self._go_on(elapsed)

    def _go_on(self, elapsed):
        """Let so many ns of the ramp be over already, on a ramp that has the same commands now."""
        self._started -= elapsed
        left = self._share(elapsed)
        self._from = [rest + (value - rest) / left for value, rest in zip(self._from, self._to)]

    def at(self, now):
        """Return the command (actuators,) at `now`."""
        if self.done(now):
            return np.array(self._to)
        left = self._share(now - self._started)
        return np.array([end + left * (begin - end) for begin, end in zip(self._from, self._to)])

    def _share(self, t):
        """Share of the way that is left t [ns] after the beginning."""
        return 0.5 * (self._left(t) + self._left(t - self._delay))

    def _left(self, t):
        """Share of the way that is left t [ns] after the beginning, without the second half."""
        if self._ease:
            return (self._integral(t) - self._integral(t - self._ease)) / self._ease
        return 1.0 - t / self._straight

    def _integral(self, t):
        """Integral of the straight line, 1 before it and 0 after it, from its end to t [ns]."""
        return min(t, 0) - 0.5 * self._straight * (1.0 - min(max(t / self._straight, 0.0), 1.0)) ** 2

    def done(self, now):
        """Return whether the ramp is at its end at `now`; before its start it is, too."""
        return not 0 <= now - self._started < self._duration


def _within(value, limit, rest):
    return min(max(value, -limit), limit) if math.isfinite(value) else rest
