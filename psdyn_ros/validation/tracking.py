"""How well the actuators followed their reference."""

from typing import NamedTuple

import numpy as np

from .bags import BagError

BOUNDS = {'m': 0.5e-3, 'rad': 1e-3}     # largest RMS error of an actuator that moves straight, or turns


class Error(NamedTuple):
    """Tracking error of one actuator, in m or rad as `unit` says."""

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
    """Reference and measurement of n actuators at the N instants that have both.

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
        """Whether every actuator is within its bound."""
        return all(error.passed for error in self.errors)


def units(manipulator):
    """actuator -> 'm' or 'rad'."""
    kinds = {module.name: module.joint.type for module in manipulator.machine.modules}
    return {name: 'm' if kinds[name] == 'prismatic' else 'rad' for name in manipulator.actuators}


def track(recording, units, bounds=BOUNDS):
    """The `Tracking` of a recording.

    units   actuator -> 'm' or 'rad', in the order of the result
    bounds  unit -> largest RMS error

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
    return Tracking(int(stamps[0]), (stamps - stamps[0]) * 1e-9, wanted, measured, tuple(
        Error(name, unit, float(np.sqrt(np.mean(error[:, i]**2))), float(np.abs(error[:, i]).max()), bounds[unit])
        for i, (name, unit) in enumerate(units.items())))
