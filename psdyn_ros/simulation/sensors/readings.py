"""What is measured of a plant at one instant."""

from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .kinds import Truth, kinds_of, read_exact


class Readings(NamedTuple):
    """What sensors say of a plant: position and velocity of joints, effort of actuators, pressures of cylinders."""

    names: tuple
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    """Zero of joints that are no actuators."""
    pressures: np.ndarray
    """(cylinders, 2), A and B [Pa]."""
    mounted: MappingProxyType = MappingProxyType({})
    """{(kind, joint or link): values} of mounted sensors."""


def readings_of(found):
    """Return `Readings` of {kind: (names, values)}."""
    names, position = found.pop('position')
    actuators, effort = found.pop('effort')
    spread = np.zeros(len(names))
    spread[[names.index(name) for name in actuators]] = effort
    return Readings(names, position, found.pop('velocity')[1], spread, found.pop('pressure')[1],
                    {(kind, name): row for kind, (on, values) in found.items() for name, row in zip(on, values)})


def exact_readings(plant):
    """`Readings` without any error, of what is always there."""
    truth = Truth(plant)
    return readings_of({kind: (names, read_exact(truth, kind, names)) for kind, names in kinds_of(plant)})
