"""What is measured of a plant at one instant."""

from typing import NamedTuple

import numpy as np


class Readings(NamedTuple):
    """What sensors say of a plant: position and velocity of joints, effort of actuators, pressures of cylinders."""

    names: tuple
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    pressures: np.ndarray
    """(cylinders, 2), A and B [Pa]."""


def exact_readings(plant):
    """`Readings` without any error; effort of the actuators, zero of other joints."""
    names, position, velocity, _ = plant.manipulator.joint_state(plant.x, plant.xd)
    effort = np.zeros(len(names))
    effort[[names.index(name) for name in plant.manipulator.actuators]] = plant.force
    telemetry = getattr(plant, 'telemetry', np.zeros((0, 2)))
    return Readings(tuple(names), position, velocity, effort, telemetry[:, :2].copy())
