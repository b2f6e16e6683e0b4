"""Time on a node: which periods are due, and whether a rate can be held at all."""

import time

from ...kernels.runtime.compiler import compiled
from ...model.errors import PsdynError

TRIALS = 15         # calls timed before a rate is accepted
SHARE = 0.5         # of the period that the computation may take; the rest is for messages


class RateError(PsdynError):
    """A rate that the node cannot hold on this computer."""


class Deadlines:
    """Periods due at absolute times on a steady clock.

    period   ns
    catch_up ns that may be made up at once after a stall; what exceeds them is slipped
    """

    def __init__(self, period, catch_up):
        self.period = period
        self._most = max(1, round(catch_up / period))
        self._next = None
        self.overruns = 0       # calls that came a period or more late
        self.missed = 0         # periods that had no call of their own
        self.slipped = 0        # ns lost for good

    def restart(self):
        """Begin anew at the next call: after a pause there is nothing to make up."""
        self._next = None

    def lateness(self, now):
        """ns by which now is past the instant at which the last period reported became due; 0 after a restart."""
        return 0 if self._next is None else now - (self._next - self.period)

    def due(self, now):
        """How many periods have become due by now (ns) and were not reported yet; one at the first call.

        Half a period of jitter either way changes nothing.
        """
        if self._next is None:
            self._next = now
        periods = (now - self._next + self.period // 2) // self.period + 1
        if periods <= 0:
            return 0
        self.overruns += periods > 1
        self.missed += periods - 1
        granted = min(periods, self._most)
        self.slipped += (periods - granted) * self.period
        self._next += periods * self.period
        return granted


def clock_of(node):
    """A function for ns on the clock of the node; the system clock is asked directly, which is ten times faster."""
    if node.get_parameter('use_sim_time').value:
        clock = node.get_clock()
        return lambda: clock.now().nanoseconds
    return time.time_ns


def require_rate(rate, work, what):
    """Raise RateError unless `work()` leaves room in a period of the rate (Hz)."""
    work()      # the first call may compile
    # the best of them: in the others this process may have lost the processor, which says nothing of the computer
    seconds = min(_timed(work) for _ in range(TRIALS))
    if seconds * rate <= SHARE:
        return
    remedy = '' if compiled else '; Numba is missing and would make it fast: pip install numba'
    raise RateError(f'{rate:g} Hz cannot be held: {what} takes {seconds * 1e3:.2g} ms, '
                    f'which allows {SHARE / seconds:.0f} Hz at most{remedy}')


def _timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
