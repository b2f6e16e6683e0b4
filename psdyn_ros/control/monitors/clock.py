"""Jumps, pauses and resets of the clock that stamps are on, beside a steady one."""

import time

from .check import HOLD, RAMPED, STOP_OPEN_LOOP, Check, Finding, Row, warning

STEP = 5_000_000        # ns from one look to the next that are no drift: stamps have to be shifted
JUMP = 50_000_000       # ns that are reported
PAUSE = 200_000_000     # ns of steady time in which simulated time stands still, where nothing else is declared
READINGS = 10           # of two clocks, until one is good enough
MOMENT = 1_000_000      # ns that it may take


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

    simulated  whether the clock of stamps is that of a simulation
    pause      ns of steady time that it may stand still
    """

    def __init__(self, simulated, pause=PAUSE):
        self.simulated, self._pause = simulated, pause
        self.clock = 0          # ns, never goes back; in simulated time it counts from the first look
        self.jumps = 0          # of the wall clock
        self.paused = False
        self.resets = 0         # of simulated time
        self._offset = self._last = self._moved = None

    def look(self, now, ros_now):
        """Take both times, ns; return by how many ns the stamps have to be shifted, 0 but after a jump or a reset."""
        return self._simulated(now, ros_now) if self.simulated else self._wall(now, ros_now)

    def at(self, now):
        """Return the ns on the clock of ages at `now`, where only that is known."""
        return self.clock if self.simulated else now

    def _wall(self, now, ros_now):
        self.clock = now
        offset = ros_now - now
        jump = 0 if self._offset is None else offset - self._offset
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
            self.resets += 1
            self._last, self._moved = ros_now, now
        self.paused = now - self._moved > self._pause
        return shift


class ClockCheck(Check):
    """The `ClockWatch` of a controller; `jumped` is the finding of a jump, `evaluate` that of a pause."""

    rows = (
        warning('F31', 'clock_jump', 'the clock of stamps jumped', 'stamps are taken from there; no change of motion',
                bound_cycles=0),
        Row('F31', 'clock_paused', HOLD, 'simulated time stands still', 'stops and holds', 1, 0.2, 'simulated_pause',
            probation=False),
        Row('F31', 'clock_reset', STOP_OPEN_LOOP, 'simulated time went back', RAMPED, event=True),
    )

    def __init__(self, config, law):
        self.watch = ClockWatch(config.simulated_time, config.declaration.timeouts.simulated_pause_ns)
        self.required = config.simulated_time

    def jumped(self, jump):
        """Return the `Finding` of a jump [ns]; None of one too small to be reported."""
        text = f'the clock of stamps jumped by {jump / 1e6:.1f} ms'
        if self.watch.simulated:
            return Finding('clock_reset', text)
        return Finding('clock_jump', text) if abs(jump) > JUMP else None

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        return (Finding('clock_paused', 'simulated time stands still'),) if self.watch.paused else ()
