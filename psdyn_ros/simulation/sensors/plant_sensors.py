"""The sensors of a plant, by the table of `kinds.py`."""

import math

import numpy as np

from .bank import SensorBank
from .kinds import Truth, channels_of, kinds_of, mounted_on, read_exact, shape_of
from .readings import readings_of


class PlantSensors:
    """A `SensorBank` on a plant; `bank` takes the faults of single channels.

    mounted  tuple of `Mounted`
    """

    def __init__(self, plant, settings, seed):
        on = settings.mounted if settings is not None else {}
        self._kinds = tuple(kinds_of(plant, on))
        self.mounted = mounted_on(plant, on)
        self.channels = channels_of(plant, on)
        self.bank = SensorBank(self.channels, settings, plant.period, seed)
        self.sample(plant)

    def sample(self, plant):
        """Measure the plant as it is; returns (values, stamps in periods, fresh), each (channels,)."""
        truth = Truth(plant)
        true = np.concatenate([read_exact(truth, kind, names).ravel() for kind, names in self._kinds])
        self._last = self.bank.sample(plant.steps, true)
        return self._last

    def reset(self):
        """Begin the very same sequence of errors anew."""
        self.bank.reset()

    def readings(self):
        """The last values measured, as `Readings`."""
        values, first, found = self._last[0], 0, {}
        for kind, names in self._kinds:
            shape = shape_of(kind, names)
            last = first + math.prod(shape)
            found[kind] = names, values[first:last].reshape(shape).copy()
            first = last
        return readings_of(found)
