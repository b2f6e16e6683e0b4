"""A trajectory is checked in slices between control cycles; the newest one counts."""

import time

from ..control.trajectory import TrajectoryError
from ..model.errors import PsdynError

SHARE = 0.2         # of a period that a slice may take


class TrajectoryChecks:
    """Lets a core consider one trajectory at a time, and accept it when it has passed.

    core    `ControlCore`
    rate    Hz of its cycles
    refuse  called with the error of a trajectory that cannot be followed
    say     called with (level, text)
    """

    def __init__(self, core, rate, refuse, say):
        self._core, self._budget, self._refuse, self._say = core, SHARE / rate, refuse, say
        self._candidate = self._waypoints = None

    @property
    def pending(self):
        """Whether a trajectory is being checked."""
        return self._candidate is not None

    def begin(self, waypoints, start):
        """Check these `Waypoints` from the next cycle on; start: stamp in ns, None: now."""
        if self.pending:
            self._refuse(TrajectoryError('another trajectory came before it was checked'))
        self.forget()
        try:
            self._candidate, self._waypoints = self._core.consider(waypoints, start), waypoints
        except PsdynError as error:
            self._refuse(error)

    def advance(self):
        """Check a slice, where there is one to check."""
        if not self.pending:
            return
        try:
            if not self._candidate.advance(self._budget):
                return
            self._core.accept(self._candidate, time.monotonic_ns())
        except PsdynError as error:
            self.forget()
            self._refuse(error)
            return
        times = self._waypoints.times
        self.forget()
        self._say('info', f'following {times.size} points over {times[-1]:.3g} s')

    def forget(self):
        """Drop the trajectory that is being checked."""
        self._candidate = self._waypoints = None
