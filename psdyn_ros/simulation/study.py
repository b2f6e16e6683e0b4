"""A plant run by itself under commands that are known beforehand, as fast as the computer allows."""

import math

import numpy as np

from ..model.errors import PsdynError, StateError
from .sensors.readings import exact_readings


class Study:
    """Runs a plant under a `CommandTable`.

    plant     `HydraulicPlant` or `Plant`
    commands  of its actuators; where one is NaN its actuator goes to its safe output
    sensors   `PlantSensors`, or None for exact readings
    faults    `FaultInjector`, or None
    """

    def __init__(self, plant, commands, *, sensors=None, faults=None):
        self.plant, self.commands = plant, commands
        self._sensors, self._faults = sensors, faults
        self._each = sensors is not None or faults is not None     # they have something to do in every period

    def run(self, duration, interval):
        """Yield `Readings` every `interval` s of the simulated `duration` s, the start included; ends at a fault.

        Both are rounded to whole periods of the plant.
        """
        period = self.plant.period
        steps, every = round(duration / period), round(interval / period)
        if steps < 1 or every < 1:
            raise StateError(f'duration {duration:g} s and interval {interval:g} s; expected a period of the plant, '
                             f'{period:g} s, or more')
        if self._faults is not None:
            self._faults.update(self.plant.time)
        yield self.readings()
        done = 0
        while done < steps and not self.plant.fault:
            until = min(steps, done + every)
            while done < until and not self.plant.fault:
                done += self._advance(done, until)
            try:
                readings = self.readings()
            except PsdynError as error:     # the last step has ended where loops do not close
                self.plant.fault = self.plant.fault or (
                    f'the state at {self.plant.time:.3f} s cannot be measured: {error}')
                return
            yield readings

    def _advance(self, done, until):
        """Step to the next instant at which anything changes; how many periods that took."""
        period = self.plant.period
        change = self.commands.next_change(done * period)
        ahead = until if math.isinf(change) else min(until, max(done + 1, math.ceil(change / period - 1e-9)))
        count = 1 if self._each else ahead - done
        command = self.commands.at(done * period)
        # fed again in every period of the ages, as a controller would
        count = min(count, max(1, math.floor(0.5 * self._patience() / period)))
        self.plant.step(command if np.isfinite(command).any() else None, count * period)
        if self._faults is not None:
            self._faults.update(self.plant.time)
        if self._sensors is not None:
            self._sensors.sample(self.plant)
        return count

    def _patience(self):
        """s for which a command counts."""
        return getattr(self.plant, 'ttl', None) or self.plant.command_timeout

    def readings(self):
        """What is measured now."""
        if self._sensors is not None:
            return self._sensors.readings()
        return exact_readings(self.plant)
