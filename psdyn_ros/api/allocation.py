"""Efforts of named, possibly redundant actuators: checked inputs in front of `kernels.allocation`."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..kernels.control import allocation as kernels
from ..model.errors import ActuationError, DuplicateNameError, NonFiniteError, ShapeError, StateError, check_name
from . import arguments
from .arguments import Array
from .results.result import Axis, Result


@dataclass(frozen=True, repr=False, eq=False)
class Allocated(Result):
    """Efforts (actuators,) [N, N m] within the limits, and what they leave of the forces wanted."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'efforts': ('f',)}
    UNITS: ClassVar[Mapping[str, str]] = {'residual': 'N, N m'}

    efforts: Array
    residual: Array         # (dof,) A' f - forces
    met: bool               # the residual is rounding
    at_limit: tuple[str, ...]    # names of actuators at a limit


class Allocation:
    """
    Shares forces on the coordinates among actuators that are as many as these or more.

    Of the efforts f with A' f = forces it takes those of least sum w (f - preload)^2 within the limits.  With weights
    1 / limit^2 rotary and linear actuators may be mixed: each is loaded in proportion to what it can bear.
    Householder QR, never the normal equations: Wang et al., equations (35)-(36); see `kernels.allocation`.

    actuators: names, the order of every array of efforts.
    limits: {actuator: bound} for |f| <= bound or {actuator: (lower, upper)} [N, N m]; without one there is no limit.
    weights: {actuator: w}, all of them, positive; by default 1 / limit^2 where all limits are finite, else one.
    preload: {actuator: effort}; what of it acts inside the mechanism only (A' f = 0) is kept, as against backlash.
    Raises UnknownNameError, DuplicateNameError, ActuationError, ShapeError, NonFiniteError.
    """

    def __init__(self, actuators: Iterable[str], limits: Mapping[str, Any] | None = None,
                 weights: Mapping[str, float] | None = None, preload: Mapping[str, float] | None = None) -> None:
        self.actuators = arguments.names('actuators', actuators)
        for name in self.actuators:
            if self.actuators.count(name) > 1:
                raise DuplicateNameError(f"actuator '{name}' is named {self.actuators.count(name)} times")
        if not self.actuators:
            raise ActuationError('no actuators; expected at least one name')
        self.set_limits(limits)
        self.set_weights(weights)
        self.set_preload(preload)
        self._scratch = kernels.scratch(len(self.actuators), 0)

    def __repr__(self) -> str:
        return f'<Allocation to {", ".join(self.actuators)}: {"with" if self.limited else "without"} limits>'

    def set_limits(self, limits: Mapping[str, Any] | None) -> None:
        """Replace all limits; see the class.  Default weights stay those of the limits before."""
        self.lower, self.upper = np.full((2, len(self.actuators)), ((-np.inf,), (np.inf,)))
        for name, value in self._named('limits', limits):
            self.lower[self.actuators.index(name)], self.upper[self.actuators.index(name)] = _limit(name, value)
        self.limited = bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    def set_weights(self, weights: Mapping[str, float] | None) -> None:
        """Replace all weights; None: the default of the class."""
        if weights is None:
            largest = np.maximum(np.abs(self.lower), np.abs(self.upper))
            bounded = np.isfinite(largest).all() and largest.min() > 0.0
            self.weights = largest**-2.0 if bounded else np.ones(len(self.actuators))
            return
        given = dict(self._named('weights', weights))
        missing = [name for name in self.actuators if name not in given]
        if missing:
            raise ActuationError(f'weights: none for {", ".join(missing)}; expected one for every actuator or none '
                                 'at all')
        numbers = self._vector('weight', given)
        if not (numbers > 0.0).all():
            raise ActuationError(f'weights={weights}: expected positive numbers')
        self.weights = numbers

    def set_preload(self, preload: Mapping[str, float] | None) -> None:
        """Replace all of the preload; actuators that are not named get none."""
        self.preload = self._vector('preload', dict(self._named('preload', preload)))

    def share(self, A: npt.ArrayLike, forces: npt.ArrayLike) -> Allocated:
        """
        Return the `Allocated` efforts for A (actuators, dof), the actuator rates of unit coordinate rates.

        forces: (dof,) generalised forces on the coordinates, as from inverse dynamics.  Where the limits, or too few
        actuators, rule them out, the residual is as small as they allow and `met` is False.
        """
        A, forces = self._map(A), arguments.vector('forces', forces, np.shape(A)[1])
        status, efforts = self._allocate(A, forces)
        if status == kernels.STALLED:
            raise StateError(f'forces = {forces.tolist()}: no allocation to {", ".join(self.actuators)} was found')
        at_limit = tuple(name for name, f, low, high in zip(self.actuators, efforts, self.lower, self.upper)
                         if f <= low or f >= high)
        return Allocated(efforts, A.T @ efforts - forces, status == 0, at_limit,
                         axes={'f': Axis(self.actuators, ('',) * len(self.actuators))})

    def efforts(self, A: Array, forces: Array) -> Array | None:
        """Return the efforts of `share` for contiguous arrays, None where the forces are not met."""
        status, efforts = self._allocate(A, forces)
        return efforts if status == 0 else None

    def share_rows(self, A: npt.ArrayLike, forces: npt.ArrayLike) -> Array:
        """Return efforts (N, actuators) for A (N, actuators, dof) and forces (N, dof); NaN where they are not met."""
        A, forces = (np.ascontiguousarray(rows, dtype=float) for rows in (A, forces))
        efforts = np.full(A.shape[:2], np.nan)
        for k in np.flatnonzero(np.isfinite(A).all(axis=(1, 2))).tolist():
            status, found = self._allocate(A[k], forces[k])
            if status == 0:
                efforts[k] = found
        return efforts

    def _allocate(self, A: Array, forces: Array) -> tuple[int, Array]:
        """Return (status of `kernels.allocate`, efforts) for contiguous arrays."""
        if len(self._scratch.rest) != A.shape[1]:
            self._scratch = kernels.scratch(*A.shape)
        efforts = np.zeros(len(self.actuators))
        return kernels.allocate(A, self.weights, self.preload, self.lower, self.upper, forces, self._scratch,
                                efforts), efforts

    def _map(self, A: Any) -> Array:
        A = arguments.numbers('A', A)
        if A.ndim != 2 or A.shape[0] != len(self.actuators) or not A.size:
            raise ShapeError(f'A has shape {A.shape}; expected ({len(self.actuators)}, dof), a row for each of '
                             f'{", ".join(self.actuators)}')
        return np.ascontiguousarray(arguments.vector('A', A, A.shape))

    def _named(self, what: str, values: Any) -> Iterator[tuple[str, Any]]:
        for name, value in (values or {}).items():
            check_name(name, self.actuators, f"{what}: actuator '{name}': no such actuator")
            yield name, value

    def _vector(self, what: str, values: Any) -> Array:
        return np.array([float(arguments.vector(f"{what} of '{name}'", values.get(name, 0.0), ()))
                         for name in self.actuators])


def _limit(name: str, value: Any) -> tuple[Any, Any]:
    value = arguments.numbers(f"limit of '{name}'", value)
    if value.shape not in ((), (2,)):
        raise ShapeError(f"limit of '{name}' has shape {value.shape}; expected a bound or (lower, upper)")
    lower, upper = (-value, value) if value.shape == () else value
    if np.isnan(value).any():
        raise NonFiniteError(f"limit of '{name}' = {value.tolist()} is not a number")
    if not lower <= upper or lower == np.inf or upper == -np.inf:
        raise ActuationError(f"limit of '{name}': lower={lower:g} and upper={upper:g} leave no effort")
    return lower, upper
