"""When control cycles run: at absolute deadlines of the steady clock, or on request; the rest in between.

A loop shares its thread with the callbacks of the node. Whoever spins the executor calls `turn` between two callbacks
and waits for the next one no longer than the seconds that it returns:

    loop = ControlLoop(period, cycle)
    while running:
        executor.spin_once(timeout_sec=loop.turn())

so that at most one callback stands between a deadline and its cycle. Everything that is not control (diagnostics,
statistics, logs) is a chore: done between cycles where there is room for it, or where it has waited for too long.
"""

import time
from collections import deque

from ...model.units import SECOND
from .cycle_statistics import UNKNOWN, CycleRecords

DEADLINE_RESERVE = 0.1          # of the period, before a deadline: no callback is waited for any more
MAX_RESERVE_NS = 200_000        # ns
MAX_SILENCE_PERIODS = 1.5       # periods after which a cycle runs without a request
MAX_CALLBACKS = 64              # between two cycles
MAX_CHORE_DELAY_NS = 2_000_000_000     # ns, patience of most chores
CHORE_MARGIN = 1.5              # times the longest duration of a chore, which must be left before the next cycle
INITIAL_CHORE_NS = 200_000      # ns that a chore is assumed to take before it was done once
MAX_LOG_LINES = 64              # lines that a log keeps
NEVER = 1 << 62                 # ns
FOLD_PERIOD_S = 0.1             # s between two times that records are sorted in


class SteadyClock:
    """The clock of loops; those of tests are made of numbers."""

    now = staticmethod(time.monotonic_ns)
    spent = staticmethod(time.thread_time_ns)       # processor time: time taken by other processes is no work

    @staticmethod
    def sleep_until(deadline):
        """Sleep until the clock shows so many ns; an absolute deadline, as far as Python has one."""
        left = deadline - time.monotonic_ns()
        if left > 0:
            time.sleep(left * 1e-9)


class Chore:
    """Something to do between cycles, once in a period [ns], 0: a cycle; late by `patience` [ns] it needs no room."""

    def __init__(self, work, period, patience, now):
        self._work, self.period, self.patience = work, period, patience
        self.due, self.done_at = now + period, now - 1  # ns
        self.longest = INITIAL_CHORE_NS     # ns of processor time that it took at most; older durations fade

    def do(self, clock, forced):
        """Do it and measure it; forced: its estimate was too long for any gap between cycles, so it starts anew."""
        began = clock.spent()
        self._work()
        took = clock.spent() - began
        self.longest = took if forced else max(took, (self.longest + took) // 2)
        self.done_at = clock.now()
        self.due = max(self.due + self.period, self.done_at)

    def hasten(self, since):
        """Make it due after the next cycle, unless it was done less than so many ns ago."""
        self.due = min(self.due, since + self.done_at)

    def put_off(self):
        """There was no room: the estimate shrinks, so that it is tried again should it have become quicker."""
        self.longest -= self.longest >> 10


class ControlLoop:
    """Calls `cycle(now, dt)` when it is due: now in ns of the steady clock, dt in s since the last cycle.

    period   ns
    trigger  'timer': at absolute deadlines, a period apart; missed ones are skipped, the phase stays. 'state': within
             `request`, but half a period after the last one at the earliest, and without a request after 1.5 periods
    callbacks  at most, between two cycles: a flood of messages finds the loop on time
    """

    def __init__(self, period, cycle, trigger='timer', callbacks=MAX_CALLBACKS, clock=SteadyClock):
        self.period, self._cycle, self._clock, self._callbacks = period, cycle, clock, callbacks
        self._timer = trigger == 'timer'
        self._reserve = min(round(DEADLINE_RESERVE * period), MAX_RESERVE_NS) if self._timer else 0
        self.records = CycleRecords(period)
        self._chores, self._chores_due = [], 0      # ns before which none is due in this round
        self._due = self._last = self._requested = self._answered = None
        self._served = 0            # callbacks since the last cycle
        self._round = clock.now()   # ns from which on each chore is done once
        self._age = self._publishing = self._computation = UNKNOWN
        self._out = None            # ns at which the command was out
        self.chore(lambda: self.records.fold(), FOLD_PERIOD_S)

    def chore(self, work, seconds, patience=MAX_CHORE_DELAY_NS):
        """Call `work()` about every so many seconds, between cycles; returns the `Chore`, which has this patience."""
        chore = Chore(work, round(seconds * SECOND), patience, self._clock.now())
        self._chores.append(chore)
        self._chores_due = 0
        return chore

    def request(self, began):
        """With the trigger 'state': answer a state that came at so many ns; at once, or in a turn if it is early.

        To be called at the end of a callback, since a turn of the executor would delay the answer.
        """
        self._requested = began
        if self._last is None or began - self._last >= self.period // 2:
            self._answer(began)

    def published(self, age=UNKNOWN, publishing=UNKNOWN, computation=UNKNOWN):
        """To be called within a cycle, when the command is out: ns that its record shall hold, see `CycleRecords.add`.

        What the cycle does after that, such as publishing its state, is not part of its execution time.
        """
        self._out = self._clock.now()
        self._age, self._publishing, self._computation = age, publishing, computation

    def has_room(self, ns):
        """Whether so much time is left before the next cycle is due."""
        if self._timer:
            following = self._due
        elif self._last is None:
            following = None
        else:
            following = self._last + (self.period if self._requested is None else self.period // 2)
        return following is None or following - self._reserve - self._clock.now() > ns

    def restart(self):
        """Begin anew at the next turn: after a pause nothing was missed."""
        self._due = self._last = self._requested = self._answered = None
        self._round, self._chores_due = self._clock.now(), 0

    def turn(self):
        """Run the cycle that is due, then a chore; return the seconds that may be waited for a callback."""
        now = self._clock.now()
        if self._due is None:
            self._due = now + (0 if self._timer else round(MAX_SILENCE_PERIODS * self.period))
        self._served += 1
        if self._timer:
            self._turn_of_timer(now)
        else:
            self._turn_of_states(now)
        if self._do_chore():
            return 0.0          # there may be room for another one
        until = self._due - self._reserve
        if self._requested is not None:
            until = min(until, self._last + self.period // 2)
        return max(until - self._clock.now(), 0) / SECOND

    def _turn_of_timer(self, now):
        if now < self._due - self._reserve and self._served < self._callbacks:
            return
        self._clock.sleep_until(self._due)
        now = self._clock.now()
        lateness = max(now - self._due, 0)
        missed = lateness // self.period
        self._due += missed * self.period
        self._run(now, lateness, missed)

    def _turn_of_states(self, now):
        if self._requested is None:
            if now >= self._due:
                self._run(now, UNKNOWN, 0)
            return
        # more states than agreed: the newest one is answered, half a period after the last cycle
        earliest = self._requested if self._last is None else max(self._requested, self._last + self.period // 2)
        if now >= earliest:
            self._answer(earliest)

    def _answer(self, began):
        answered, self._requested, self._answered = self._answered, None, began
        missed = 0 if answered is None else (began - answered - self.period // 2) // self.period
        self._run(began, UNKNOWN, max(missed, 0))

    def _run(self, began, lateness, missed):
        self._served = 0
        self._age = self._publishing = self._computation = UNKNOWN
        self._out = None
        dt = self.period if self._last is None else began - self._last
        self._last, self._round, self._chores_due = began, began, 0
        self._cycle(began, dt / SECOND)
        end = self._clock.now()
        self.records.add((self._out or end) - began, lateness, missed, self._age, self._publishing, self._computation,
                         end - began)
        self._due = self._due + self.period if self._timer else end + round(MAX_SILENCE_PERIODS * self.period)

    def _do_chore(self):
        """Do the one that is due longest, if there is room before the next cycle; whether one was done.

        Each is done once between two cycles at most, so that a chore that is always due keeps no other from its turn.
        """
        now = self._clock.now()
        if now < self._chores_due:
            return False
        waiting = [chore for chore in self._chores if chore.done_at < self._round]
        due = [chore for chore in waiting if chore.due <= now]
        if not due:
            self._chores_due = min((chore.due for chore in waiting), default=NEVER)
        for chore in sorted(due, key=lambda chore: chore.due):
            forced = now - chore.due > chore.patience
            if forced or self.has_room(CHORE_MARGIN * chore.longest):
                chore.do(self._clock, forced)
                return True
            chore.put_off()
        return False


class DeferredLog:
    """Lines that are logged between cycles: a call costs an append; beyond MAX_LOG_LINES of them the oldest are lost,
    which is said in their place.

    write  function that logs a line; it gets what the call got: level, text
    """

    def __init__(self, write):
        self._write, self._lines = write, deque(maxlen=MAX_LOG_LINES)
        self.lost = 0

    def __call__(self, *line):
        """Keep a line."""
        self.lost += len(self._lines) == MAX_LOG_LINES
        self._lines.append(line)

    def flush(self):
        """Write the oldest line, or how many before it were lost; to be a chore."""
        if self.lost:
            self._write('warning', f'{self.lost} lines of the log are lost: too many at once')
            self.lost = 0
        elif self._lines:
            self._write(*self._lines.popleft())

    def flush_all(self):
        """Write all lines, when there is time."""
        while self._lines:
            self.flush()
