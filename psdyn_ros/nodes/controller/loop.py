"""When control cycles happen: at absolute deadlines of the steady clock, or on request; the rest in between.

A loop shares its thread with the callbacks of the node. Whoever spins the executor calls `turn` between two callbacks
and waits for the next one no longer than the seconds that it returns:

    loop = ControlLoop(period, cycle)
    while running:
        executor.spin_once(timeout_sec=loop.turn())

so that at most one callback stands between a deadline and its cycle. Messages without haste may be left to `serve`,
which is called once after each cycle, when most time is left before the next one. Everything that is not control
(diagnostics, statistics, logs) is a chore: it is done between cycles, and only while the next one is further away than
it may take.

After a sleep the processor knows nothing of a cycle any more, and takes twice as long. A rehearsal just before the next
cycle, of the same code on other data, reminds it; parts of it are repeated until the cycle begins.
"""

import math
import time
from collections import deque
from itertools import cycle as endless

from .cycle_statistics import UNKNOWN, CycleRecords

RESERVE = 0.1                   # of the period, before a deadline: no callback is waited for any more
LONGEST_RESERVE = 200_000       # ns
REHEARSAL = 0.45                # of the period at most, before a deadline: for a rehearsal and to wake up for it
EARLY = 0.1                     # of the period, before a deadline or a request that is expected: a rehearsal is over
EARLIEST, LATEST = 200_000, 100_000     # ns, bounds of that; the more, the fewer have to be left out, as waits end late
WAKING = 200_000                # ns by which executors end their waits late: slept through before a rehearsal
LAST = 40_000                   # ns before a deadline, within which no part of a rehearsal begins
LATE = 100_000                  # ns that a request may come later than expected, while it is looked for
LEFT_OUT = 255                  # rehearsals, at most, after several in a row that made their cycles late
SPIN = 300_000                  # ns that are waited for a deadline without sleep, after a rehearsal
SILENCE = 1.5                   # periods after which a cycle comes without a request
CALLBACKS = 64                  # between two cycles
PATIENCE = 2_000_000_000        # ns after which a chore is done though there is no room for it
MARGIN = 1.5                    # times what a chore took at most, that must be left before the next cycle
FIRST = 200_000                 # ns that a chore is thought to take before it was done once
WAITING = 64                    # lines that a log keeps
FOLDING = 0.1                   # s between two times that records are sorted in
SECOND = 1_000_000_000


class SteadyClock:
    """The clock of loops; those of tests are made of numbers."""

    now = staticmethod(time.monotonic_ns)
    spent = staticmethod(time.thread_time_ns)       # of processor time; what others took away is no work

    @staticmethod
    def spin_until(deadline):
        """Wait until the clock shows so many ns without giving up the processor."""
        while time.monotonic_ns() < deadline:
            pass

    @staticmethod
    def sleep_until(deadline):
        """Sleep until the clock shows so many ns; an absolute deadline, as far as Python has one."""
        left = deadline - time.monotonic_ns()
        if left > 0:
            time.sleep(left * 1e-9)


class Chore:
    """Something to do between cycles, once in a period [ns]; 0: as often as there is room."""

    def __init__(self, work, period, now):
        self._work, self.period = work, period
        self.due, self._done = now + period, now
        self.longest = FIRST        # ns of processor time that it took at most, forgotten by and by
        self.forced = 0             # times it was done without room

    def done(self, clock, forced=False):
        """Do it and learn how long it takes; forced: it was known too long, which it may not be any more."""
        began = clock.spent()
        self._work()
        took = clock.spent() - began
        self.longest = took if forced else max(took, (self.longest + took) // 2)
        self.forced += forced
        self._done = clock.now()
        self.due = max(self.due + self.period, self._done)

    def hasten(self, since):
        """Let it be due at once, unless it was done less than so many ns ago."""
        self.due = min(self.due, self._done + since)

    def put_off(self):
        """There was no room: in the long run it is tried all the same, should it have become quicker."""
        self.longest -= self.longest >> 10


class ControlLoop:
    """Calls `cycle(now, dt)` when it is due: now in ns of the steady clock, dt in s since the last cycle.

    period   ns
    trigger  'timer': at absolute deadlines, a period apart; missed ones are skipped, the phase stays. 'state': within
             `request`, but half a period after the last one at the earliest, and without a request after 1.5 periods
    callbacks  at most, between two cycles: a flood of messages finds the loop on time
    rehearse   called before cycles where there is room for it, returns whether there was anything to rehearse; None:
               nothing is
    parts      of a rehearsal, which are repeated by turns from its end until the cycle begins
    look       with the trigger 'state', called meanwhile: looks for the message of which the callback requests a cycle,
               so that the thread need not sleep until it comes; None: it has to
    serve      called after each cycle, as late as that may be
    """

    def __init__(self, period, cycle, trigger='timer', callbacks=CALLBACKS, clock=SteadyClock, rehearse=None,
                 parts=(), look=None, serve=lambda: None):
        self.period, self._cycle, self._clock, self._callbacks = period, cycle, clock, callbacks
        self._timer, self._serve = trigger == 'timer', serve
        self._rehearse, self._rehearsed = rehearse, True    # the latter: since the last cycle, or there is no use
        self._early = min(max(round(EARLY * period), LATEST), EARLIEST)
        self._parts, self._look = endless(parts) if parts else None, look
        self._rehearsal = FIRST     # ns that three of four take at most
        self._setback = self._left_out = 0      # how many are left out after the next late one; how many still are
        self.records = CycleRecords(period)
        self._chores = []
        self._due = self._last = self._requested = self._answered = None
        self._served = 0            # callbacks since the last cycle
        self.crowded = 0            # times that the callbacks were as many as are allowed
        self._age = self._publishing = self._computation = self._mathematics = UNKNOWN
        self._out = None            # ns at which the command was out
        self.chore(lambda: self.records.fold(), FOLDING)

    def chore(self, work, seconds):
        """Call `work()` about every so many seconds, between cycles; returns the `Chore`."""
        chore = Chore(work, round(seconds * SECOND), self._clock.now())
        self._chores.append(chore)
        return chore

    @property
    def forced_chores(self):
        """Chores that were done though there was no room for them, since they had waited too long."""
        return sum(chore.forced for chore in self._chores)

    @property
    def _reserve(self):
        """ns before a deadline in which no callback is waited for."""
        if not self._timer:
            return 0
        if self._rehearse is None:
            return min(round(RESERVE * self.period), LONGEST_RESERVE)
        return min(round(REHEARSAL * self.period), WAKING + self._rehearsal + self._early)

    def request(self, began):
        """With the trigger 'state': answer what began to be read at so many ns; at once, or in a turn if it is early.

        To be called at the end of a callback: back to the executor, and from there to its turn, is a long way.
        """
        self._requested = began
        if self._last is None or began - self._last >= self.period // 2:
            self._answer(began)

    def published(self, age=UNKNOWN, publishing=UNKNOWN, computation=UNKNOWN):
        """To be called within a cycle, when the command is out: ns that its record shall hold, see `CycleRecords.add`.

        What the cycle does after that, such as telling others about it, is not part of its execution time.
        """
        self._out = self._clock.now()
        self._age, self._publishing, self._computation = age, publishing, computation

    def computed(self, ns):
        """To be called within a cycle: so much of it was mathematics, see `CycleRecords.add`."""
        self._mathematics = max(self._mathematics, 0) + ns

    def has_room(self, ns):
        """Whether so much time is left before the next cycle is due."""
        following = self._due if self._timer or self._last is None else self._last + self.period
        return following is None or following - self._reserve - self._clock.now() > ns

    def restart(self):
        """Begin anew at the next turn: after a pause nothing was missed."""
        self._due = self._last = self._requested = self._answered = None
        self._rehearsed = True

    def turn(self):
        """Do what is due; the seconds that may be waited for a callback."""
        clock = self._clock
        now = clock.now()
        if self._due is None:
            self._due = now + (0 if self._timer else round(SILENCE * self.period))
        self._served += 1
        crowded = self._served >= self._callbacks
        if not self._timer:
            early = 0 if self._requested is None or self._last is None else self._last + self.period // 2 - now
            if early > 0:       # more messages than agreed: the newest one is answered, when it is time
                self._requested = now + early
                return early / SECOND
            if self._requested is not None:
                self._answer(min(self._requested, now))
            elif now >= self._due:
                self._run(now, UNKNOWN, 0)
        elif now >= self._due - self._reserve or crowded:
            self.crowded += crowded
            if not self._rehearsed:
                clock.sleep_until(self._due - self._early - self._rehearsal)
                if self._remind(self._due) and self._parts:
                    while LAST < self._due - clock.now() <= SPIN:
                        next(self._parts)()
                if self._due - clock.now() <= SPIN:
                    clock.spin_until(self._due)
            clock.sleep_until(self._due)
            now = clock.now()
            lateness = max(now - self._due, 0)
            missed = lateness // self.period
            self._due += missed * self.period
            self._run(now, lateness, missed)
        self._do_chores()
        if not self._timer and clock.now() >= self._next_rehearsal() - WAKING:
            expected = self._last + self.period
            clock.sleep_until(self._next_rehearsal())
            if self._remind(expected):
                self._await(expected)
        until = self._due - self._reserve if self._timer else min(self._due, self._next_rehearsal() - WAKING)
        return max(until - clock.now(), 0) / SECOND

    def _next_rehearsal(self):
        """ns at which to rehearse for the next request, if they come as they did; infinite where nothing is to be."""
        return math.inf if self._rehearsed else self._last + self.period - self._early - self._rehearsal

    def _await(self, expected):
        """Look for the request that is expected, and keep a cycle at hand, until it has come or is late."""
        if self._parts and self._look:
            # a cycle takes note that it was not rehearsed yet
            while self._rehearsed and self._clock.now() < expected + LATE:
                self._look()
                if self._rehearsed:
                    next(self._parts)()

    def _remind(self, deadline):
        """Rehearse, where that is over before the deadline, once for each cycle; whether it was."""
        if self._rehearsed:
            return False
        self._rehearsed = True
        if self._left_out:
            self._left_out -= 1
            return False
        began = self._clock.now()
        step = self._rehearsal >> 5
        if began + self._rehearsal > deadline:
            self._rehearsal -= step
            return False
        if not self._rehearse():
            return False
        self.records.rehearsals += 1
        end = self._clock.now()
        # a quantile: one that was held up says little of the others
        self._rehearsal += step if end - began > self._rehearsal else -(step // 3)
        if end <= deadline:
            self._setback = 0
            return True
        self._left_out, self._setback = self._setback, min(2 * self._setback + 1, LEFT_OUT)
        return False

    def _answer(self, began):
        answered, self._requested, self._answered = self._answered, None, began
        missed = 0 if answered is None else (began - answered - self.period // 2) // self.period
        self._run(began, UNKNOWN, max(missed, 0))

    def _run(self, began, lateness, missed):
        self._served, self._rehearsed = 0, self._rehearse is None
        self._age = self._publishing = self._computation = self._mathematics = UNKNOWN
        self._out = None
        dt = self.period if self._last is None else began - self._last
        self._last = began
        self._cycle(began, dt / SECOND)
        end = self._clock.now()
        self.records.add((self._out or end) - began, lateness, missed, self._age, self._publishing, self._computation,
                         self._mathematics, end - began)
        self._due = self._due + self.period if self._timer else end + round(SILENCE * self.period)
        self._serve()

    def _do_chores(self):
        """At most one, if there is room for it before the next cycle."""
        now = self._clock.now()
        for chore in self._chores:
            if chore.due <= now:
                forced = now - chore.due > PATIENCE
                if forced or self.has_room(MARGIN * chore.longest):
                    chore.done(self._clock, forced)
                    return
                chore.put_off()


class DeferredLog:
    """Lines that are logged between cycles: a call costs an append; beyond WAITING of them the oldest are lost.

    write  function that logs a line; it gets what the call got
    """

    def __init__(self, write):
        self._write, self._lines = write, deque(maxlen=WAITING)
        self.lost = 0

    def __call__(self, *line):
        """Keep a line."""
        self.lost += len(self._lines) == WAITING
        self._lines.append(line)

    def flush(self):
        """Write the oldest line; to be a chore."""
        if self._lines:
            self._write(*self._lines.popleft())

    def flush_all(self):
        """Write all lines, when there is time."""
        while self._lines:
            self.flush()
