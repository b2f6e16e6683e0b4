"""How well the coordinates followed their reference."""

from typing import NamedTuple

import numpy as np

from ..bags.recording import BagError

BOUNDS = {'m': 0.5e-3, 'rad': 1e-3}     # largest RMS error of a coordinate that moves straight, or turns
TRAVEL_SHARE = 0.02                     # of how far it goes; counts where it goes less far than that of a crane


class Error(NamedTuple):
    """Tracking error of one coordinate, in m or rad as `unit` says."""

    joint: str
    unit: str
    rms: float
    maximum: float
    bound: float

    @property
    def passed(self):
        """Whether the RMS error is within its bound."""
        return bool(self.rms <= self.bound)     # NaN is not


class Tracking(NamedTuple):
    """Reference and measurement of n coordinates at the N instants that have both.

    start      ns, the stamp of the first of them
    time       (N,) s from there
    reference  (N, n)
    measured   (N, n)
    errors     n times `Error`
    """

    start: int
    time: np.ndarray
    reference: np.ndarray
    measured: np.ndarray
    errors: tuple

    @property
    def passed(self):
        """Whether every coordinate is within its bound."""
        return all(error.passed for error in self.errors)


def units(manipulator, names=None):
    """name -> 'm' or 'rad' of coordinates or actuators; without names of all coordinates."""
    kinds = {module.name: module.joint.type for module in manipulator.machine.modules}
    return {name: 'm' if kinds[name] == 'prismatic' else 'rad'
            for name in (manipulator.coordinates if names is None else names)}


def track(recording, units, bounds=BOUNDS):
    """The `Tracking` of a recording.

    units   coordinate -> 'm' or 'rad', in the order of the result
    bounds  unit -> largest RMS error; the bound of a coordinate that goes less far is smaller

    Reference and state belong together when their stamps are equal: the controller stamps the reference with
    the state it answers. From the first instant of a moving reference on all of them count.
    """
    names = list(units)
    states, reference = recording.states.columns(names), recording.reference.columns(names)
    _, at_state, at_reference = np.intersect1d(states.stamps, reference.stamps, return_indices=True)
    moving = np.flatnonzero(np.any(reference['velocity'][at_reference] != 0.0, axis=1))
    if not moving.size:
        raise BagError('the reference in the recording never moves')
    at_state, at_reference = at_state[moving[0]:], at_reference[moving[0]:]
    stamps = states.stamps[at_state]
    wanted, measured = reference['position'][at_reference], states['position'][at_state]
    error = measured - wanted
    limits = [np.minimum(bounds[unit], TRAVEL_SHARE * travel)
              for unit, travel in zip(units.values(), np.ptp(reference['position'], axis=0))]
    return Tracking(int(stamps[0]), (stamps - stamps[0]) * 1e-9, wanted, measured, tuple(
        Error(name, unit, float(np.sqrt(np.mean(error[:, i]**2))), float(np.abs(error[:, i]).max()), float(limits[i]))
        for i, (name, unit) in enumerate(units.items())))
