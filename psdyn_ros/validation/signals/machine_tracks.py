"""What is measured of a machine, topic by topic, and the uniform grid of time on which it is sampled."""

import numpy as np

from ...model.units import SECOND
from .resampling import BRIDGED

PATIENCE = 2 * SECOND       # ns that a topic may lag behind the states before it is missing


class MachineTracks:
    """Tracks that are filled by their readers, in ns of one clock, and the grid that has the states' first instant.

    joints      names of those measured
    actuators   names, in the order of efforts
    hydraulics  whose cylinders give efforts by their pressures, or None
    period      ns between instants
    patience    ns that a topic may lag behind the states before it is missing

    positions   [(track of positions and velocities of some joints, their places in `joints`)], that of the grid first
    effort      track (actuators,) or None
    pressures   [(track of gauge pressures [Pa], their columns: two for each cylinder)]
    command     track (actuators,) or None
    """

    def __init__(self, joints, actuators, hydraulics, period, patience=PATIENCE):
        self.joints, self.actuators, self.period = tuple(joints), tuple(actuators), period
        self.cylinders = tuple(hydraulics.cylinders) if hydraulics else ()
        self.positions, self.pressures = [], []
        self.effort = self.command = None
        self._by_pressure = set()       # cylinders whose pressures were measured
        self._areas = [(one.area_a, one.area_b) for one in hydraulics.cylinders.values()] if hydraulics else []
        self._patience, self._cursor = patience, None

    def tracks(self):
        """Yield every track."""
        yield from (track for track, _ in (*self.positions, *self.pressures))
        yield from (track for track in (self.effort, self.command) if track is not None)

    @property
    def main(self):
        """The track whose instants are those of the grid."""
        return self.positions[0][0]

    @property
    def waiting(self):
        """ns of the main track that were not sampled yet."""
        times = self.main.times
        if not len(times):
            return 0
        return int(times[-1]) - (int(times[0]) if self._cursor is None else self._cursor)

    @property
    def ready(self):
        """ns before which no topic is expected to say more."""
        latest = self.main.last
        others = [track.last for track in self.tracks() if track.last is not None]
        # the last interval waits for its fourth neighbour
        return max(min(others), latest - self._patience) - 2 * self.period

    def grid(self, until):
        """Yield (instants (n,) ns before a time, whether they go on where the last ended); forget what is before them.

        They begin again with the stamp after each gap.
        """
        times = self.main.times
        pieces = np.flatnonzero(np.diff(times) > BRIDGED * self.period) + 1
        for piece in np.split(times, pieces) if len(times) else ():
            first, last = int(piece[0]), min(int(piece[-1]), until - 1)
            begin = first if self._cursor is None or self._cursor < first else self._cursor
            if last >= begin:
                instants, connected = np.arange(begin, last + 1, self.period), begin == self._cursor
                self._cursor = int(instants[-1]) + self.period
                yield instants, connected
        if self._cursor is not None:
            for track in self.tracks():
                track.forget(self._cursor - 2 * self.period)

    def sample(self, instants):
        """{positions, velocities (n, joints), effort, pressures, command} at instants, None where there are none."""
        positions, velocities = np.full((2, len(instants), len(self.joints)), np.nan)
        for track, columns in self.positions:
            values = track.sample(instants)
            positions[:, columns], velocities[:, columns] = values[:, :len(columns)], values[:, len(columns):]
        effort = (np.full((len(instants), len(self.actuators)), np.nan) if self.effort is None
                  else self.effort.sample(instants))
        pressures = None
        if self.pressures:
            pressures = np.full((len(instants), 2 * len(self.cylinders)), np.nan)
            for track, columns in self.pressures:
                pressures[:, columns] = track.sample(instants)
            pressures = pressures.reshape(len(instants), -1, 2)
            for k, (name, (area_a, area_b)) in enumerate(zip(self.cylinders, self._areas)):
                force = area_a * pressures[:, k, 0] - area_b * pressures[:, k, 1]
                # a cylinder whose pressures nobody records is measured otherwise, or not at all
                if name in self._by_pressure or np.isfinite(force).any():
                    self._by_pressure.add(name)
                    effort[:, self.actuators.index(name)] = force
        command = None if self.command is None else self.command.sample(instants)
        return {'positions': positions, 'velocities': velocities, 'effort': effort, 'pressures': pressures,
                'command': command}
