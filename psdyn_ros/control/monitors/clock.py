"""Jumps, pauses and resets of the clock that stamps are on, beside a steady one."""

STEP = 5_000_000        # ns from one look to the next that are no drift: stamps have to be shifted
JUMP = 50_000_000       # ns that are worth telling
PAUSE = 200_000_000     # ns of steady time in which simulated time stands still


class ClockWatch:
    """The clock of stamps beside a steady clock, and the clock on which ages are counted.

    That is the steady clock; where time is simulated it is what simulated time went forward, so that ages stand still
    with the simulation.

    simulated  whether the clock of stamps is that of a simulation
    """

    def __init__(self, simulated):
        self.simulated = simulated
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
        self.paused = now - self._moved > PAUSE
        return shift
