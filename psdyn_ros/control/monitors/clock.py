"""The clock that stamps are on, beside a steady one; stamps and ages of inputs, and of the emergency stop; control
cycles that come too late.
"""

import time
from collections import deque

import numpy as np

from ...model.errors import ModelError
from ...model.units import SECOND
from .check import (
    AT_ONCE,
    BRAKED,
    DEGRADE,
    HOLD,
    RAMPED,
    REDUCED,
    SAFE,
    SAFE_OPEN_LOOP,
    STOP,
    STOP_OPEN_LOOP,
    Check,
    Finding,
    Row,
    warning,
)

JUMP = 50_000_000       # ns that are reported
PAUSE = 200_000_000     # ns of steady time in which simulated time stands still, where nothing else is declared
READINGS = 10           # of two clocks, until one is good enough
MOMENT = 1_000_000      # ns that it may take
STEP = MOMENT           # ns from one reading to the next that are no drift: stamps have to be shifted
LATEST = 1 << 63        # ns; no clock shows as much
IN_A_ROW = 3            # slots without a cycle, and cycles in which the steady clock stands
SHARE = 0.01            # of the slots of a second
UNSTAMPED, OLD, FUTURE, ORDER = 'unstamped', 'old', 'future', 'order'


def both_clocks(clock):
    """(ns of the steady clock, ns of `clock()`) at one moment.

    A process that loses the processor between the two would take what went by for a jump of the clock.
    """
    for _ in range(READINGS):
        now, stamp = time.monotonic_ns(), clock()
        if time.monotonic_ns() - now < MOMENT:
            break
    return now, stamp


class ClockWatch:
    """The clock of stamps beside a steady clock, and the clock on which ages are counted.

    That is the steady clock; where time is simulated it is what simulated time went forward, so that ages stand still
    with the simulation.

    Where the steady clock stands still in several cycles in a row, or says no time, it is taken to go on by a period in
    each cycle, so that what is timed, such as a stop, comes to its end.

    simulated  whether the clock of stamps is that of a simulation
    pause      ns of steady time that it may stand still
    period     ns
    """

    def __init__(self, simulated, pause=PAUSE, period=0):
        self.simulated, self._pause, self._period = simulated, pause, period
        self.stands = ''        # why the steady clock is not believed
        self._cycle = None      # both times of the last cycle
        self._stood = 0         # cycles in a row
        self._added = 0         # ns that the steady clock is taken to be ahead of what it says
        self.clock = 0          # ns, never goes back; in simulated time it counts from the first reading
        self.jumps = 0          # of the wall clock
        self.paused = False
        self._offset = self._last = self._moved = None

    def begin_cycle(self, now, ros_now):
        """Return both times of a cycle, those of the one before where they are none; ModelError if there was none."""
        before, self.stands = self._cycle, ''
        try:
            known = abs(now) < LATEST and abs(ros_now) < LATEST
        except TypeError:
            known = False
        if not known:
            self.stands = f'now={now!r:.40}, ros_now={ros_now!r:.40}: expected two times in ns'
            if before is None:
                raise ModelError(self.stands)
            now, ros_now = before
        self._stood = self._stood + 1 if before is not None and now <= before[0] else 0
        if self._stood >= IN_A_ROW:
            self.stands = self.stands or f'the steady clock stands at {now * 1e-9:.3f} s'
        self._added += self._period if self.stands else 0
        self._cycle = now, ros_now
        return now, ros_now

    def update(self, now, ros_now):
        """Take both times, ns; return by how many ns the stamps have to be shifted, 0 but after a jump or a reset."""
        now = self.steady(now)
        return self._simulated(now, ros_now) if self.simulated else self._wall(now, ros_now)

    def steady(self, now):
        """Return the ns on the steady clock where it says `now`."""
        return now + self._added

    def at(self, now):
        """Return the ns on the clock of ages at `now`, where only that is known."""
        return self.clock if self.simulated else self.steady(now)

    def _wall(self, now, ros_now):
        self.clock = now
        offset = ros_now - now
        jump = 0 if self._offset is None or self.stands else offset - self._offset
        self._offset = offset
        if -STEP <= jump <= STEP:
            return 0
        self.jumps += 1
        return jump

    def _simulated(self, now, ros_now):
        if self._last is None:
            self._last, self._moved = ros_now, now
        elif ros_now > self._last:
            self.clock += ros_now - self._last
            self._last, self._moved = ros_now, now
        shift = min(0, ros_now - self._last)
        if shift:
            self._last, self._moved = ros_now, now
        self.paused = now - self._moved > self._pause
        return shift


class ClockCheck(Check):
    """The `ClockWatch` of a controller; `jumped` is the finding of a jump, `evaluate` that of clocks that stand."""

    rows = (
        warning('F31', 'clock_jump', 'the clock of stamps jumped', 'stamps are taken from there; no change of motion',
                bound_cycles=0),
        Row('F31', 'clock_paused', HOLD, 'simulated time stands still', 'stops and holds', 1, 0.2, 'simulated_pause',
            probation=False),
        Row('F31', 'clock_reset', STOP_OPEN_LOOP, 'simulated time went back', RAMPED, event=True),
        # nothing that is computed with time can be believed
        Row('F31', 'clock_stands', STOP_OPEN_LOOP, 'the steady clock stands still in three cycles in a row', RAMPED,
            IN_A_ROW, event=True),
    )

    def __init__(self, config, law):
        self.watch = ClockWatch(config.simulated_time, config.declaration.timeouts.simulated_pause_ns,
                                round(config.period * SECOND))

    def jumped(self, jump):
        """Return the `Finding` of a jump [ns]; None of one too small to be reported."""
        text = f'the clock of stamps jumped by {jump / 1e6:.1f} ms'
        if self.watch.simulated:
            return Finding('clock_reset', text)
        return Finding('clock_jump', text) if abs(jump) > JUMP else None

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if self.watch.stands:
            return (Finding('clock_stands', self.watch.stands),)
        return (Finding('clock_paused', 'simulated time stands still'),) if self.watch.paused else ()


class MeasuredInput:
    """Which measurements of one stream are in order, and how old the last good one is.

    One that is refused does not make the input younger.

    what      it is called in texts, 'state'
    timeouts  of a `SafetyDeclaration`
    skew      ns that a stamp may lie in the future
    period    s between measurements
    """

    def __init__(self, what, timeouts, skew, period):
        self._what, self._skew = what, skew
        self._stale = timeouts.stopping_ns
        self._period = round(period * SECOND)
        self.stamp = 0          # ns, of the last accepted one; 0: none
        self._arrival = None    # ns on the clock of ages
        self._late = 0          # ns from its stamp to its arrival
        self.missed = 0         # measurements that should have come and did not
        self.in_disorder = 0    # in a row

    def forget(self):
        """Restart: nothing was measured."""
        self.stamp, self._arrival, self.in_disorder = 0, None, 0

    def rebase(self, jump):
        """The clock of the stamps jumped by so many ns."""
        if self.stamp:
            self.stamp += jump

    def refuse(self, stamp, ros_now):
        """(kind, text) why a measurement with this stamp cannot be used; None where it can."""
        if stamp == 0:
            return UNSTAMPED, f'the {self._what} is not stamped'
        age = ros_now - stamp
        if age > self._stale:
            return OLD, f'the stamp of the {self._what} is {age / 1e6:.1f} ms old, at most {self._stale / 1e6:g} ms'
        if -age > self._skew:
            return FUTURE, (f'the stamp of the {self._what} lies {-age / 1e6:.1f} ms in the future, '
                            f'at most {self._skew / 1e6:g} ms')
        if stamp <= self.stamp:
            self.in_disorder += 1
            same = 'repeats' if stamp == self.stamp else f'is {(self.stamp - stamp) / 1e6:.3g} ms before'
            return ORDER, f'the stamp of the {self._what} {same} the one before'
        return None

    def accept(self, stamp, ros_now, clock):
        """Take note of a measurement that is used; clock: ns on the clock of ages."""
        if self.stamp:
            self.missed += max(0, (stamp - self.stamp + self._period // 2) // self._period - 1)
        self.stamp, self._arrival = stamp, clock
        self._late = max(0, ros_now - stamp)
        self.in_disorder = 0

    def age(self, clock):
        """ns since the last accepted one was measured; None where there is none."""
        return None if self._arrival is None else clock - self._arrival + self._late

    def silent(self, clock):
        """Whether nothing was accepted for the timeout after which the machine is stopped."""
        return self._arrival is None or clock - self._arrival > self._stale

    def silence(self, clock):
        """Text on how long nothing came."""
        if self._arrival is None:
            return f'no {self._what} came'
        return f'no {self._what} came for {(clock - self._arrival) / 1e6:.1f} ms'


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
            'no output for the longer timeout, or for the timeout and no valid state', AT_ONCE, 1, 0.100, 'safe',
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
        reason, findings = watch.overrun if watch.recent else '', ()
        if reason:
            findings = (Finding('overrun', reason),)
        if watch.gap > self._stopping:
            name = 'output_lost' if watch.gap > self._safe else 'output_late'
            findings += (Finding(name, f'no output for {watch.gap / 1e6:.1f} ms'),)
        return findings


class EmergencyStopCheck(Check):
    """Whether an operator can stop the machine, and does not; its silence counts only where one is required."""

    rows = (
        Row('F36', 'emergency_stop', SAFE, 'the emergency stop is pressed, absent, or too old', AT_ONCE, 1, 0.1,
            'emergency_stop', probation=False),)

    def __init__(self, config, law):
        self._excused = not config.emergency_stop
        self._timeout = config.declaration.timeouts.emergency_stop_ns
        self._pressed, self._arrival = False, None      # (steady clock, clock of ages)
        self._unseen = False        # it was pressed since it was last evaluated

    def take(self, pressed, now, clock, publishing):
        """Record a message of the emergency stop, pressed unless it is a False.

        now: ns of the steady clock, clock: ns on the clock of ages, publishing: whether a press must not be missed.
        """
        self._pressed = not isinstance(pressed, (bool, np.bool_)) or bool(pressed)
        self._unseen = self._pressed or (self._unseen and publishing)
        self._arrival = now, clock

    def reason(self, now, clock):
        """Return why the emergency stop stops the machine; '' where it does not."""
        if self._pressed or self._unseen:
            return 'the emergency stop is pressed'
        if self._excused:
            return ''
        if self._arrival is None:
            return 'the emergency stop says nothing'
        # a simulation may be slower than its operator, or faster
        age = min(now - self._arrival[0], clock - self._arrival[1])
        return '' if age <= self._timeout else f'the emergency stop said nothing for {age / 1e6:.0f} ms'

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        reason = self.reason(inputs.now, inputs.clock)
        self._unseen = False
        return (Finding('emergency_stop', reason),) if reason else ()
