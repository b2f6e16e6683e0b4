"""What is measured of the second plant: encoders of the booms, rates and pressures, late, noisy and in steps."""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sensors:
    """Errors of all sensors; zero is none."""

    angle_quantum: float = 2.0 * math.pi / 2**14
    """rad of the encoders of booms and turning joints."""
    length_quantum: float = 1e-4
    """m of those of sliding joints."""
    angle_noise: float = 7e-5
    """rad, standard deviation, before the encoder's step."""
    length_noise: float = 2e-5
    """m."""
    angle_rate_noise: float = 4e-3
    """rad/s."""
    length_rate_noise: float = 1e-3
    """m/s."""
    pressure_quantum: float = 6e3
    """Pa."""
    pressure_noise: float = 5e4
    """Pa."""
    pressure_range: tuple = (-1e5, 40e6)
    """Pa: a transducer ends there."""
    delay: float = 0.0
    """s from what is measured to its message."""
    seed: int = 1


PERFECT = Sensors(angle_quantum=0.0, length_quantum=0.0, angle_noise=0.0, length_noise=0.0, angle_rate_noise=0.0,
                  length_rate_noise=0.0, pressure_quantum=0.0, pressure_noise=0.0, pressure_range=(-math.inf, math.inf))


class Readings:
    """Sensors of a machine at work.

    sensors  `Sensors`
    slides   (dof,) whether a coordinate is a length
    """

    def __init__(self, sensors, slides):
        self._sensors, self._slides = sensors, np.asarray(slides, dtype=bool)
        self._rng = np.random.default_rng(sensors.seed)
        self._sent = deque()

    def sample(self, time, y, yd, pressures, supply):
        """Read the true values at a time [s]."""
        s, normal = self._sensors, self._rng.standard_normal
        quantum, noise, rate_noise = (np.where(self._slides, length, angle) for length, angle in (
            (s.length_quantum, s.angle_quantum), (s.length_noise, s.angle_noise),
            (s.length_rate_noise, s.angle_rate_noise)))
        y = _in_steps(y + noise * normal(y.size), quantum)
        yd = yd + rate_noise * normal(yd.size)
        values = np.append(pressures.ravel(), supply)
        values = _in_steps(values + s.pressure_noise * normal(values.size), s.pressure_quantum)
        values = np.clip(values, *s.pressure_range)
        self._sent.append((time, y, yd, values[:-1].reshape(pressures.shape), float(values[-1])))

    def newest(self, time):
        """Return (time of the sample, y, yd, pressures, supply), the newest that has arrived at a time [s]."""
        while len(self._sent) > 1 and self._sent[1][0] <= time - self._sensors.delay + 1e-9:
            self._sent.popleft()
        return self._sent[0]


def _in_steps(values, quantum):
    step = np.where(quantum > 0.0, quantum, 1.0)
    return np.where(quantum > 0.0, np.round(values / step) * step, values)
