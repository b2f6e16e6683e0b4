"""The sensors of a plant: position and velocity of every joint, effort of actuators, pressures of cylinders."""

import numpy as np

from .bank import SensorBank
from .readings import Readings


def channels_of(plant):
    """Names of everything that can be measured, such as 'lift_cylinder.position', in the order of `PlantSensors`."""
    m = plant.manipulator
    return (*(f'{joint}.position' for joint in m.joints), *(f'{joint}.velocity' for joint in m.joints),
            *(f'{actuator}.effort' for actuator in m.actuators),
            *(f'{cylinder}.pressure_{port}' for cylinder in getattr(plant, 'cylinders', ()) for port in 'ab'))


class PlantSensors:
    """A `SensorBank` on a plant; `bank` takes the faults of single channels."""

    def __init__(self, plant, settings, seed):
        m = plant.manipulator
        self._joints, self._actuators = tuple(m.joints), len(m.actuators)
        self._rows = np.array([self._joints.index(name) for name in m.actuators], dtype=np.intp)
        self.channels = channels_of(plant)
        self.bank = SensorBank(self.channels, settings, plant.period, seed)
        self._true = np.zeros(len(self.channels))
        self.sample(plant)

    def sample(self, plant):
        """Measure the plant as it is; returns (values, stamps in periods, fresh), each (channels,)."""
        n, true = len(self._joints), self._true
        _, true[:n], true[n:2 * n], _ = plant.manipulator.joint_state(plant.x, plant.xd)
        true[2 * n:2 * n + self._actuators] = plant.force
        if true.size > 2 * n + self._actuators:
            true[2 * n + self._actuators:] = plant.telemetry[:, :2].ravel()
        self._last = self.bank.sample(plant.steps, true)
        return self._last

    def reset(self):
        """Begin the very same sequence of errors anew."""
        self.bank.reset()

    def readings(self):
        """The last values measured, as `Readings`."""
        values, n = self._last[0], len(self._joints)
        effort = np.zeros(n)
        effort[self._rows] = values[2 * n:2 * n + self._actuators]
        return Readings(self._joints, values[:n].copy(), values[n:2 * n].copy(), effort,
                        values[2 * n + self._actuators:].reshape(-1, 2).copy())
