"""Reads and validates a trajectory in slices between control cycles; the newest one counts."""

from ...control.reference.trajectory import TrajectoryError
from ...model.errors import PsdynError

SHARE = 0.2         # of a period that a slice may take


class TrajectoryValidation:
    """Reads and validates one trajectory at a time, and has the core execute it where it is valid.

    core  `ControlCore`
    rate  Hz of its cycles
    log   called with (level, text)

    `on_end` of a check is called with the error, or with None where the trajectory is followed.
    """

    def __init__(self, core, rate, log):
        self._core, self._budget, self._log = core, SHARE / rate, log
        self._reader = self._validated = self._waypoints = self._on_end = None

    @property
    def pending(self):
        """Whether a trajectory is being read or checked."""
        return self._reader is not None or self._validated is not None

    def read(self, reader, on_end):
        """Read this `SerializedTrajectory` from the next cycle on, then check it."""
        self._supersede(on_end)
        self._reader = reader

    def begin(self, waypoints, start, on_end):
        """Check these `Waypoints` from the next cycle on.  start: stamp in ns, None: now."""
        self._supersede(on_end)
        try:
            self._validate(waypoints, start)
        except PsdynError as error:
            self._end(error)

    def _supersede(self, on_end):
        if self.pending:
            self._end(TrajectoryError('another trajectory came before this one was checked'))
        self._on_end = on_end

    def _validate(self, waypoints, start):
        self._validated, self._waypoints = self._core.validate_trajectory(waypoints, start), waypoints

    def advance(self, now):
        """Read or check a slice; now: ns of the steady clock."""
        try:
            if self._reader is not None:
                if self._reader.advance(self._budget):
                    reader, self._reader = self._reader, None
                    self._validate(reader.waypoints, reader.start)
                return
            if not self._validated.advance(self._budget):
                return
            self._core.execute(self._validated, now)
        except PsdynError as error:
            self._end(error)
            return
        times = self._waypoints.times
        self._log('info', f'following {times.size} points over {times[-1]:.3g} s')
        self._end(None)

    def forget(self):
        """Drop the trajectory that is being checked."""
        if self.pending:
            self._end(TrajectoryError('the controller stops'))

    def _end(self, error):
        on_end, self._reader, self._validated, self._waypoints = self._on_end, None, None, None
        on_end(error)
