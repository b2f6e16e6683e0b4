"""Judges each measured state by its stamp, its age and its distance from the one before."""

from enum import Enum

import numpy as np

JUMPS = 3       # states in a row that contradict the motion so far before the machine is taken to be elsewhere
SECOND = 1e-9   # of a nanosecond


class Verdict(Enum):
    """What became of a measured state; only ACCEPTED and RESTARTED ones may be acted upon."""

    ACCEPTED = 'accepted'
    RESTARTED = 'the first one, or the first after a gap or a lasting jump'
    UNSTAMPED = 'stamp is zero'
    STALE = 'stamp too old'
    FUTURE = 'stamp in the future'
    OUT_OF_ORDER = 'stamp not later than the one before'
    JUMPED = 'position jumped'


class StateMonitor:
    """Order, age and continuity of the measured states.

    After RESTARTED the old reference means nothing any more: the machine may stand anywhere. A single wild
    position is rejected; `JUMPS` of them in a row are where the machine is now.

    period    s between states that the machine publishes
    timeout   s after which a state is stale, and a silence a gap
    skew      s that a stamp may lie in the future
    max_jump  m or rad that a position may differ from the last one carried on at its velocity
    """

    def __init__(self, period, timeout, skew, max_jump):
        self._period, self._timeout, self._skew, self._max_jump = period, timeout, skew, max_jump
        self._stamp = self._arrival = self._x = self._xd = None
        self._jumps = 0
        self.missed = 0     # states that should have come between the accepted ones and did not

    def judge(self, stamp, now, arrival, x, xd):
        """The `Verdict` on the state x, xd (each (dof,)).

        stamp, now  ns on the clock of the stamps
        arrival     ns on a steady clock
        """
        verdict = self._verdict(stamp, now, arrival, x)
        self._jumps = self._jumps + 1 if verdict is Verdict.JUMPED else 0
        if self._jumps == JUMPS:
            self._jumps = 0
            verdict = Verdict.RESTARTED
        if verdict is Verdict.ACCEPTED:
            self.missed += max(0, round((stamp - self._stamp) * SECOND / self._period) - 1)
        if verdict in (Verdict.ACCEPTED, Verdict.RESTARTED):
            self._stamp, self._arrival, self._x, self._xd = stamp, arrival, x.copy(), xd.copy()
        return verdict

    def silent(self, steady):
        """Whether the last accepted state is older than the timeout at this ns of the steady clock, or none came."""
        return self._arrival is None or (steady - self._arrival) * SECOND > self._timeout

    def _verdict(self, stamp, now, arrival, x):
        if stamp == 0:
            return Verdict.UNSTAMPED
        if (now - stamp) * SECOND > self._timeout:
            return Verdict.STALE
        if (stamp - now) * SECOND > self._skew:
            return Verdict.FUTURE
        if self.silent(arrival):        # also after the clock of the stamps was set back
            return Verdict.RESTARTED
        if stamp <= self._stamp:
            return Verdict.OUT_OF_ORDER
        dt = (stamp - self._stamp) * SECOND
        if dt > self._timeout:
            return Verdict.RESTARTED
        if np.abs(x - self._x - dt * self._xd).max() > self._max_jump:
            return Verdict.JUMPED
        return Verdict.ACCEPTED
