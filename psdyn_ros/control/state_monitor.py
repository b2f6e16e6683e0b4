"""Judges each measured state by its stamp, its age and its distance from the one before."""

from enum import Enum

from ..kernels.control import deviation

JUMPS = 3       # states in a row that contradict the motion so far before the machine is taken to be elsewhere
SECOND = 1_000_000_000      # ns


class Verdict(Enum):
    """What became of a measured state; only ACCEPTED and RESTARTED ones may be acted upon."""

    ACCEPTED = 'accepted'
    RESTARTED = 'the first one, or the first after a gap or a lasting jump'
    UNSTAMPED = 'stamp is zero'
    STALE = 'stamp too old'
    FUTURE = 'stamp in the future'
    OUT_OF_ORDER = 'stamp not later than the one before'
    JUMPED = 'position jumped'


ACCEPTED = Verdict.ACCEPTED


class StateMonitor:
    """Order, age and continuity of the measured states.

    After RESTARTED the old reference means nothing any more: the machine may stand anywhere. A single wild
    position is rejected; `JUMPS` of them in a row are where the machine is now.

    period    s between states that the machine publishes
    timeout   s after which a state is stale, and a silence a gap
    skew      s that a stamp may lie in the future
    max_jump  m or rad, norm over the actuators: how far a position may be from the last one carried on at its
    velocity
    """

    def __init__(self, period, timeout, skew, max_jump):
        self._period, self._timeout, self._skew = round(period * SECOND), round(timeout * SECOND), round(skew * SECOND)
        self._max_jump = max_jump
        self._stamp = self._arrival = self._x = self._xd = None
        self._jumps = 0
        self.missed = 0     # states that should have come between the accepted ones and did not

    def judge(self, stamp, now, arrival, x, xd):
        """The `Verdict` on the state x, xd (each (dof,), kept until the next one).

        stamp, now  ns on the clock of the stamps
        arrival     ns on a steady clock
        """
        verdict = self._verdict(stamp, now, arrival, x)
        if verdict is ACCEPTED:
            self.missed += max(0, (stamp - self._stamp + self._period // 2) // self._period - 1)
        elif verdict is Verdict.JUMPED and self._jumps + 1 < JUMPS:
            self._jumps += 1
            return verdict
        elif verdict is Verdict.JUMPED or verdict is Verdict.RESTARTED:
            verdict = Verdict.RESTARTED
        else:
            return verdict
        self._jumps = 0
        self._stamp, self._arrival, self._x, self._xd = stamp, arrival, x, xd
        return verdict

    def silent(self, steady):
        """Whether the last accepted state is older than the timeout at this ns of the steady clock, or none came."""
        return self._arrival is None or steady - self._arrival > self._timeout

    def _verdict(self, stamp, now, arrival, x):
        if stamp == 0:
            return Verdict.UNSTAMPED
        if now - stamp > self._timeout:
            return Verdict.STALE
        if stamp - now > self._skew:
            return Verdict.FUTURE
        if self.silent(arrival):        # also after the clock of the stamps was set back
            return Verdict.RESTARTED
        elapsed = stamp - self._stamp
        if elapsed <= 0:
            return Verdict.OUT_OF_ORDER
        if elapsed > self._timeout:
            return Verdict.RESTARTED
        jump = deviation(x, self._x, self._xd, elapsed / SECOND)
        return Verdict.JUMPED if jump > self._max_jump else ACCEPTED
