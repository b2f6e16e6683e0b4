"""Hybrid dynamics: some coordinates driven, the others free (Featherstone, Rigid Body Dynamics Algorithms, 9.2)."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..kernels.rigid_body.entry import hybrid_checked, hybrid_rows
from ..model.errors import ActuationError, NonFiniteError, ShapeError
from .arguments import BASE, Array, Efforts, Vector, Wrenches, coordinate_names, numbers, unknown_entry
from .batch import run_chunks
from .environment import BaseDrive, BaseMotion
from .errors_from_status import check, in_row
from .inputs import environment_at, states
from .results.result import Result

if TYPE_CHECKING:
    from .manipulator import Manipulator


@dataclass(frozen=True, repr=False, eq=False)
class HybridDynamics(Result):
    """Accelerations and efforts of all coordinates, given and computed."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'accelerations': ('xdd',), 'efforts': ('forces',)}

    accelerations: Array
    """(dof,), or (N, dof) for rows of states."""
    efforts: Array
    """(dof,) on the coordinates, as `generalized_forces` has them; or (N, dof)."""


def hybrid_dynamics(manipulator: Manipulator, x: Vector, xd: Vector, *,
                    accelerations: Mapping[str, npt.ArrayLike] | None = None,
                    efforts: Mapping[str, npt.ArrayLike] | None = None, base: BaseMotion | None = None,
                    wrenches: Wrenches | None = None, joint_efforts: Efforts | None = None,
                    positions: Vector | None = None) -> HybridDynamics:
    """Return the `HybridDynamics` at x (nx,), xd (dof,), or at rows of states (N, ...).

    accelerations, efforts: {coordinate: value}; every coordinate is in one of them: driven at an acceleration
    [m/s^2, rad/s^2], or free under an effort [N, N m].  Of a floating base base_x, base_y, base_z are the rate of v
    and the force, base_rx, base_ry, base_rz the rate of w and the moment, in its axes; 'base' is all six of them.
    A value may be one number for all rows, or (N,); of 'base' (6,) or (N, 6).
    base: `BaseMotion` of a base that does not float.  wrenches, joint_efforts, positions: as in `forward_dynamics`.
    Raises UnknownNameError for what is no coordinate, ActuationError for one that is in both or in neither, ShapeError,
    NonFiniteError, UnreachableStrokeError, TogglePointError.
    """
    m = manipulator
    x, xd = states(m, batch=True, x=x, xd=xd)
    if m.floating and base is not None:
        raise ShapeError(f"base={base!r:.80}: the base of '{m.name}' floats; what drives it goes into accelerations "
                         f'and efforts ({", ".join(BASE)})')
    driven, xdd, f = partition(m, x.shape[:-1], accelerations or {}, efforts or {})
    given, free = (xdd.copy(), f.copy()), driven == 0.0
    _solve(m, driven, (x, xd, xdd, f), base, wrenches, joint_efforts, positions)
    # given values are returned exactly: the recursion rounds them
    return HybridDynamics(np.where(free, xdd, given[0]), np.where(free, given[1], f), axes=m.axes)


def _solve(m: Manipulator, driven: Array, arrays: tuple[Array, ...], base: BaseMotion | BaseDrive | None,
           wrenches: Wrenches | None, joint_efforts: Efforts | None, positions: Any) -> None:
    """Complete xdd and f of arrays (x, xd, xdd, f), one state or rows."""
    x, xd, xdd, f = arrays
    if x.ndim == 1:
        handle = m.on_coordinates
        if any(action is not None for action in (base, wrenches, joint_efforts, positions)):
            handle = environment_at(m, x, base, wrenches, joint_efforts, positions).handle
            handle.let_efforts_act_on_coordinates()
        check(m, hybrid_checked(handle.tree, handle.loops, driven, x, xd, f, xdd), x=x, xd=xd, f=f, xdd=xdd)
        return
    if wrenches or joint_efforts:
        for row in range(len(x)):
            with in_row(row):
                _solve(m, driven, (x[row], xd[row], xdd[row], f[row]), base, wrenches, joint_efforts, positions)
        return
    handle = environment_at(m, None, base, positions=positions).handle
    handle.let_efforts_act_on_coordinates()
    motion = np.concatenate((x, xd), axis=1)
    run_chunks(m, handle, len(x), {'x': x, 'xd': xd, 'f': f, 'xdd': xdd}, lambda copied, first, last: hybrid_rows(
        copied.tree, copied.loops, driven, motion, f, xdd, first, last))


def partition(m: Manipulator, rows: tuple[int, ...], accelerations: Mapping[str, Any],
              efforts: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Return (driven (dof,), xdd, f), the last two (*rows, dof) with what is given in them.

    rows: () of one state, (N,) of a batch.  Raises as `hybrid_dynamics`.
    """
    names = coordinate_names(m)
    driven, xdd, f = np.full(len(names), -1.0), np.zeros((*rows, len(names))), np.zeros((*rows, len(names)))
    for what, given, out, flag in (('accelerations', accelerations, xdd, 1.0), ('efforts', efforts, f, 0.0)):
        if not isinstance(given, dict):
            raise ShapeError(f'{what}={given!r:.80}: expected {{coordinate: value}}')
        for name, value in given.items():
            columns = _columns(m, names, what, name)
            taken = [names[column] for column in columns if driven[column] >= 0.0]
            if taken:
                raise ActuationError(f"{what} of '{name}': '{taken[0]}' is given already; each coordinate is driven at "
                                     'an acceleration or free under an effort')
            driven[columns] = flag
            out[..., columns] = _values(f"{what} of '{name}'", value, rows, len(columns), name == 'base')
    missing = [name for name, flag in zip(names, driven) if flag < 0.0]
    if missing:
        raise ActuationError(f"hybrid dynamics of '{m.name}': neither an acceleration nor an effort of "
                             f'{", ".join(missing)}')
    return driven, xdd, f


def _columns(m: Manipulator, names: tuple[str, ...], what: str, name: str) -> list[int]:
    if name == 'base' and m.floating:
        return list(range(6))
    if name in names:
        return [names.index(name)]
    raise unknown_entry(m, f"{what} of '{name}'", name, names)


def _values(what: str, value: Any, rows: tuple[int, ...], count: int, base: bool) -> Array:
    """Return the values of `count` coordinates that may stand at the end of (*rows, count)."""
    array = np.array(numbers(what, value), dtype=float)
    shapes = [(6,), (*rows, 6)] if base else [(), rows]
    if array.shape not in shapes:
        of = ' of the base: rates of (v, w) [m/s^2, rad/s^2], or force and moment [N, N m]' if base else ''
        raise ShapeError(f'{what} has shape {array.shape}; expected {" or ".join(map(str, dict.fromkeys(shapes)))}{of}')
    finite = np.isfinite(array)
    if not finite.all():
        index = np.argwhere(~finite)[0]
        row = f' in row {index[0]}' if array.ndim > base else ''
        raise NonFiniteError(f'{what}{row} is {array[tuple(index)]}; expected a finite number')
    return array if base else array[..., None]
