"""What a plant does over a run, to be drawn: every so many instants, and the ranges of all of them."""

import numpy as np

from ..kernels.hydraulics.records import QUANTITIES
from ..model.units import BAR, SECOND, number_text
from ..view import Motion
from ..view.motion import frames, signals
from .bags.recording import Series

MAX_KEPT = 20_000       # instants; of more every second one is left out


class SimulatedStates:
    """States of a plant, taken by `add` at instants of its choice.

    time       (n,) s
    x          (n, nx)
    velocity   (n, actuators)
    effort     (n, actuators) on the mechanism [N, N m]
    command    (n, actuators), each in its mode
    telemetry  (n, cylinders, QUANTITIES)
    """

    def __init__(self, plant):
        self._plant, self._rows, self._stride, self._count = plant, [], 1, 0
        self._columns = [plant.manipulator.joints.index(name) for name in plant.manipulator.actuators]
        self._low, self._high = np.inf, -np.inf

    def add(self):
        """Take the state of the plant as it is now."""
        plant = self._plant
        _, position, velocity, _ = plant.manipulator.joint_state(plant.x, plant.xd)
        telemetry = np.array(getattr(plant, 'telemetry', np.zeros((0, len(QUANTITIES)))))
        pressures = np.full((len(self._columns), 2), np.nan)
        for name, row in zip(plant.cylinders, telemetry):
            pressures[plant.manipulator.actuators.index(name)] = row[:2]
        now = np.column_stack((position[self._columns], velocity[self._columns], plant.force, pressures / BAR))
        self._low, self._high = np.minimum(self._low, now), np.maximum(self._high, now)
        if self._count % self._stride == 0:
            self._rows.append((plant.time, plant.x.copy(), velocity[self._columns], np.array(plant.force),
                               np.array(getattr(plant, 'command', plant.force)), telemetry))
        self._count += 1
        if len(self._rows) > MAX_KEPT:
            self._rows, self._stride = self._rows[::2], 2 * self._stride

    def __getattr__(self, name):
        column = ('time', 'x', 'velocity', 'effort', 'command', 'telemetry').index(name)
        return np.array([row[column] for row in self._rows])

    def motion(self):
        """Return the `Motion` that was simulated, None where fewer than two instants were taken."""
        m, time, x = self._plant.manipulator, self.time, self.x
        if len(time) < 2:
            return None
        rows = frames(time)
        joints, effort, table = m.joint_state(x[rows])[1], self.effort[rows], self.telemetry[rows]
        pressures = {name: table[:, k, :2] for k, name in enumerate(self._plant.cylinders)} or None
        return Motion(time[rows], joints, base=x[rows, :7] if m.floating else None, effort=effort, pressures=pressures,
                      signals=signals(m, joints, effort=effort, pressures=pressures))

    def series(self):
        """Return the telemetry of the cylinders as a `Series`, None where there are none."""
        if not self._plant.cylinders:
            return None
        table = self.telemetry
        return Series(tuple(self._plant.cylinders), np.rint(self.time * SECOND).astype(np.int64),
                      {label: table[:, :, k] for k, label in enumerate(QUANTITIES)})

    def ranges(self):
        """Yield rows of text, the header first: lowest and highest of what the actuators did, of all instants."""
        yield 'actuator', 'position [m, rad]', 'velocity [m/s, rad/s]', 'force [N, N m]', 'p_a [bar]', 'p_b [bar]'
        for name, low, high in zip(self._plant.manipulator.actuators, self._low, self._high):
            yield (name, *(_range(a, b) if a == a else '' for a, b in zip(low, high)))


def _range(low, high):
    scale = max(abs(low), abs(high))
    return f'{number_text(low, scale)} to {number_text(high, scale)}'
