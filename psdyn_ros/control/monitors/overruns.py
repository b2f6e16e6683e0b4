"""Whether the control cycles come in time."""

from collections import deque

from ...model.units import SECOND
from .check import AT_ONCE, BRAKED, DEGRADE, REDUCED, SAFE_OPEN_LOOP, STOP, Check, Finding, Row

IN_A_ROW = 3                # slots without a cycle
SHARE = 0.01                # of the slots of a second


class CycleWatch:
    """Slots of the period in which there was no cycle.

    period  s
    share   of the slots of a second that may be missed
    """

    def __init__(self, period, share=SHARE):
        self._period = round(period * SECOND)
        self._most = share / period
        self._last = None
        self._missed = deque()      # (ns, slots) of the last second
        self.missed = 0             # in all
        self.run = 0                # in a row, until the present cycle
        self.recent = 0             # in the last second
        self.gap = 0                # ns between the last two cycles

    def forget(self):
        """Restart with the next cycle."""
        self._last, self.gap, self.run, self.recent = None, 0, 0, 0
        self._missed.clear()

    def update(self, clock):
        """Take note of a cycle at `clock` (ns); slots are missed where it came 3/4 of a period late, or more."""
        last, self._last = self._last, clock
        if last is None:
            return
        self.gap = gap = clock - last
        slots = (gap + self._period // 4) // self._period - 1
        if slots > 0:
            self.run += slots
            self.missed += slots
            self.recent += slots
            self._missed.append((clock, slots))
        else:
            self.run = 0
        while self._missed and clock - self._missed[0][0] > SECOND:
            self.recent -= self._missed.popleft()[1]

    @property
    def overrun(self):
        """Why the cycles come too late; '' where they do not."""
        if self.run >= IN_A_ROW:
            return f'{self.run} cycles in a row came too late'
        if self.recent > self._most:
            return f'{self.recent} cycles of the last second came too late'
        return ''


class OverrunCheck(Check):
    """The `CycleWatch` of a controller, and what is due when the output stayed away."""

    rows = (
        Row('F30', 'overrun', DEGRADE, 'three cycles in a row, or more than 1 % of a second, too late', REDUCED),
        Row('F30', 'output_late', STOP, 'no output for the timeout', BRAKED, 1, 0.020, 'stopping', event=True),
        # by then the receiver gives its own safe output: a ramp of the last command would move the machine again
        Row('F30', 'output_lost', SAFE_OPEN_LOOP,
            'no output for the longer timeout, or for the timeout and no trusted state', AT_ONCE, 1, 0.100, 'safe',
            event=True),
    )

    def __init__(self, config, law):
        timeouts = config.declaration.timeouts
        self.watch = CycleWatch(config.period, config.overrun_share)
        self._stopping, self._safe = timeouts.stopping_ns, timeouts.safe_ns

    @property
    def late(self):
        """Whether the last output was so late that the receiver may have given up."""
        return self.watch.gap > self._stopping

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if not inputs.publishing:
            return None
        watch = self.watch
        watch.update(inputs.clock)
        reason, findings = watch.overrun, ()
        if reason:
            findings = (Finding('overrun', reason),)
        if watch.gap > self._stopping:
            name = 'output_lost' if watch.gap > self._safe else 'output_late'
            findings += (Finding(name, f'no output for {watch.gap / 1e6:.1f} ms'),)
        return findings
