"""Banks of one sensor, and a motion for them to read."""

import numpy as np

from psdyn_ros.model.parameters.sensors import Sensor, SensorSettings
from psdyn_ros.simulation.sensors.bank import SensorBank

PERIOD = 1e-3
ONE = ('lift.position',)


def bank_of(seed=3, **sensor):
    """A bank of one channel."""
    return SensorBank(ONE, SensorSettings({ONE[0]: Sensor(**sensor)}), PERIOD, seed)


def readings(bank, true, start=0):
    """(values, stamps, fresh), each (steps, channels), of true values (steps,) or (steps, channels)."""
    true = np.asarray(true, dtype=float)
    true = true[:, None] if true.ndim == 1 else true
    rows = [[array.copy() for array in bank.sample(start + k, row)] for k, row in enumerate(true)]
    return tuple(np.array(columns) for columns in zip(*rows))


def wave(steps):
    """A smooth motion at steps that may be fractions."""
    time = np.asarray(steps) * PERIOD
    return 0.3 * np.sin(7.0 * time) + 0.05 * np.cos(31.0 * time)


BEND = (0.3 * 7.0**2 + 0.05 * 31.0**2) / 8 * PERIOD**2      # by which a straight line between two steps may miss it
