"""The sensors of a plant, by the table of `kinds.py`."""

import math

import numpy as np

from .bank import SensorBank
from .kinds import KINDS, Truth, channels_of, kinds_of, mounted_on, shape_of
from .readings import readings_of


class PlantSensors:
    """A `SensorBank` on a plant; `bank` takes the faults of single channels.

    mounted  tuple of `Mounted`
    """

    def __init__(self, plant, settings, seed):
        on = settings.mounted if settings is not None else {}
        self.mounted = mounted_on(plant, on)
        self.channels = channels_of(plant, on)
        self.bank = SensorBank(self.channels, settings, plant.period, seed)
        self._true = np.zeros(len(self.channels))
        self._parts, first = [], 0          # (kind, names, where its values are, their shape, view of what is true)
        for kind, names in kinds_of(plant, on):
            shape = shape_of(kind, names)
            place = slice(first, first + math.prod(shape))
            self._parts.append((kind, names, place, shape, self._true[place].reshape(shape)))
            first = place.stop
        self.sample(plant)

    def sample(self, plant):
        """Measure the plant as it is; returns (values, stamps in periods, fresh), each (channels,)."""
        truth = Truth(plant)
        for kind, names, _, _, true in self._parts:
            if names:
                true[...] = KINDS[kind].read(truth, names)
        self._last = self.bank.sample(plant.steps, self._true)
        return self._last

    def reset(self):
        """Begin the very same sequence of errors again."""
        self.bank.reset()

    def readings(self):
        """The last values measured, as `Readings`."""
        values = self._last[0].copy()
        return readings_of({kind: (names, values[place].reshape(shape))
                            for kind, names, place, shape, _ in self._parts})
