"""Path time, which runs slower than the clock where a motion has to, and the smooth ramps that it changes by.

A ramp brings a value to a target with bounded rate and bounded second rate: the speed of the path to its scale, and
the velocity of an axis to rest. Seconds are those of any one clock.
"""

from math import inf, sqrt
from typing import NamedTuple

import numpy as np


class Phase(NamedTuple):
    """For so long a rate that starts like this and bends so much."""

    duration: float
    rate: float
    bend: float


def ramp(value, rate, target, rate_limit, bend_limit):
    """The `Phase`s, at most three, that bring a value which changes at `rate` to rest at `target` soonest.

    rate_limit > 0 bounds the rate, bend_limit > 0 its rate; a rate beyond its limit is brought down first.
    """
    gap = target - (value + 0.5 * rate * abs(rate) / bend_limit)       # left over, were the rate ended at once
    sign = 1.0 if gap >= 0.0 else -1.0
    way, rate = sign * (target - value), sign * rate
    peak = sqrt(max(bend_limit * way + 0.5 * rate * rate, 0.0))
    held = 0.0
    if peak > rate_limit:
        peak = rate_limit
        turned = 0.5 * (rate + peak) * abs(peak - rate) + 0.5 * peak * peak
        held = max(way - turned / bend_limit, 0.0) / peak
    bend = sign * (bend_limit if peak >= rate else -bend_limit)
    phases = (Phase(abs(peak - rate) / bend_limit, sign * rate, bend), Phase(held, sign * peak, 0.0),
              Phase(peak / bend_limit, sign * peak, -sign * bend_limit))
    return [phase for phase in phases if phase.duration > 0.0]


class PathTime:
    """Seconds of path time over those of the clock: their ratio, the speed, follows `aim` without a jump.

    Until the first `aim` the speed is what it was made with. `rows` (m, 5) are its phases: clock, path time, speed, its
    rate and its bend at the start of each.
    """

    def __init__(self, speed=1.0):
        self.target = speed
        self._keep([(0.0, 0.0, speed, 0.0, 0.0)], -inf)

    def _keep(self, phases, begins):
        self._phases, self._begins = phases, begins     # the latter of the last one
        self.rows = np.array(phases)

    def at(self, t):
        """(path time, speed, rate of the speed) at time t of the clock."""
        phase = self._phases[-1] if t >= self._begins else self._phase(t)
        begin, path, speed, rate, bend = phase
        dt = t - begin
        if bend == rate == 0.0 or dt < 0.0:         # before the ramp nothing is known but its first speed
            return path + speed * dt, speed, 0.0
        return (path + dt * (speed + dt * (rate / 2.0 + dt * bend / 6.0)),
                speed + dt * (rate + dt * bend / 2.0), rate + dt * bend)

    def aim(self, speed, t, rate, bend):
        """From time t on, go over to another speed with at most this rate [1/s] and bend [1/s^2]."""
        path, present, present_rate = self.at(t)
        self.target, phases = speed, []
        for phase in ramp(present, present_rate, speed, rate, bend):
            phases.append((t, path, present, phase.rate, phase.bend))
            dt = phase.duration
            path += dt * (present + dt * (phase.rate / 2.0 + dt * phase.bend / 6.0))
            present += dt * (phase.rate + dt * phase.bend / 2.0)
            t += dt
        self._keep([*phases, (t, path, speed, 0.0, 0.0)], t)

    def restart(self, speed, t):
        """At time t, take a speed at once, as where what moves by path time stands still."""
        path = self.at(t)[0]
        self.target = speed
        self._keep([(t, path, speed, 0.0, 0.0)], t)

    def copy(self):
        """One that goes on like this."""
        other = PathTime()
        other.target = self.target
        other._keep(list(self._phases), self._begins)
        return other

    @property
    def settled(self):
        """Time from which the speed stays what it is; -inf where it always was."""
        return self._begins

    def when(self, path):
        """Time at which the path time comes to `path`; inf where it never does."""
        begin, reached, speed, _, _ = self._phases[-1]
        if path >= reached:
            return begin + (path - reached) / speed if speed > 0.0 else begin if path == reached else inf
        low, first, speed, _, _ = self._phases[0]
        high = begin
        if path <= first:
            return low - (first - path) / speed if speed > 0.0 else low
        for _ in range(60):             # path time never runs back
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.at(middle)[0] < path else (low, middle)
        return high

    def _phase(self, t):
        found = self._phases[0]
        for phase in self._phases:
            if phase[0] > t:
                break
            found = phase
        return found
