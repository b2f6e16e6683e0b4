"""Names of the entries of x, xd, xdd, f, vectors by name, and checks of arguments; errors name the argument."""
from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..model.errors import ModelError, NonFiniteError, PsdynError, ShapeError, UnknownNameError, did_you_mean

if TYPE_CHECKING:
    from .manipulator import Manipulator

Array: TypeAlias = npt.NDArray[Any]
Vector: TypeAlias = npt.ArrayLike | Mapping[str, npt.ArrayLike]
"""Numbers in the order of their names, or {name: number}."""
Wrenches: TypeAlias = Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]
"""{link: (force (3,), moment (3,))} by the environment on the link, at its origin in its axes."""
Efforts: TypeAlias = Mapping[str, float]
"""{joint: effort [N, N m]}."""

BASE = ('base_x', 'base_y', 'base_z', 'base_rx', 'base_ry', 'base_rz')
BASE_POSE = (*BASE[:3], 'base_qx', 'base_qy', 'base_qz', 'base_qw')


def coordinate_names(manipulator: Manipulator) -> tuple[str, ...]:
    """Return names (dof,) of the entries of xd; base_x to base_rz are along and about the axes of a floating base."""
    return (*(BASE if manipulator.floating else ()), *manipulator.coordinates)


def entry_names(manipulator: Manipulator, label: str) -> tuple[str, ...]:
    """Return names of the entries of 'x', 'f' or of rates such as 'xd'."""
    if label == 'f':
        return manipulator.actuators
    if label == 'x':
        return (*(BASE_POSE if manipulator.floating else ()), *manipulator.coordinates)
    return coordinate_names(manipulator)


def by_name(manipulator: Manipulator, label: str, value: Any) -> Any:
    """Return the array of a vector {name: number}, as `entry_names` orders it; anything else as it is.

    Where the numbers are arrays (N,) the result is (N, n).  'base' stands for all entries of a floating base.  Raises
    UnknownNameError, ShapeError that lists missing names.
    """
    if not isinstance(value, Mapping):
        return value
    names = entry_names(manipulator, label)
    columns: dict[str, Array] = {}
    for name, given in value.items():
        numbers_given = numbers(f"{label} of '{name}'", given)
        if name == 'base' and manipulator.floating and label != 'f':
            base = names[:len(names) - len(manipulator.coordinates)]
            if numbers_given.shape[-1:] != (len(base),):
                raise ShapeError(f"{label} of 'base' has shape {numbers_given.shape}; expected {(len(base),)}: "
                                 f'{", ".join(base)}')
            columns.update(zip(base, np.moveaxis(numbers_given, -1, 0)))
        elif name in names:
            columns[name] = numbers_given
        else:
            raise unknown_entry(manipulator, f"{label} of '{name}'", name, names,
                                'actuator' if label == 'f' else 'coordinate')
    missing = [name for name in names if name not in columns]
    if missing:
        raise ShapeError(f"{label} of '{manipulator.name}' has no value for {', '.join(missing)}; expected "
                         f'{", ".join(names)}')
    try:
        return np.stack(np.broadcast_arrays(*(columns[name] for name in names)), axis=-1) if names else np.zeros(0)
    except ValueError:
        shapes = {name: column.shape for name, column in columns.items()}
        raise ShapeError(f'{label} has values of shapes {shapes}; expected numbers, or arrays of one length') from None


def unknown_entry(manipulator: Manipulator, what: str, name: Any, names: tuple[str, ...],
                  kind: str = 'coordinate') -> PsdynError:
    """Return the error on a name that is none of `names`, of coordinates or actuators."""
    if name in manipulator.joints:
        follows = ' but follows from them' if kind == 'coordinate' else ''
        return UnknownNameError(f"{what}: it is no {kind} of '{manipulator.name}'{follows}; expected some of "
                                f'{", ".join(names)}')
    return UnknownNameError(f"{what}: no such {kind} of '{manipulator.name}'{did_you_mean(str(name), names)}")


def vector(what: str, values: Any, shape: int | tuple[int, ...]) -> Array:
    """Return a fresh array of finite numbers of a shape (or length); else raise, naming `what`."""
    array = np.array(numbers(what, values), dtype=float)
    shape = shape if isinstance(shape, tuple) else (shape,)
    if array.shape != shape:
        raise ShapeError(f'{what} has shape {array.shape}; expected {shape}')
    if not np.isfinite(array).all():
        raise NonFiniteError(f'{what} = {array.tolist()} is not finite')
    return array


def numbers(what: str, values: Any) -> Array:
    """Return the values as an array of real numbers of any type; text, complex, ragged and masked ones are refused."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):         # ragged
        array = None
    masked = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)      # what is masked is no number
    if array is None or array.dtype.kind not in 'fiub' or masked:
        raise ShapeError(f'{what} is not an array of numbers: {values!r:.80}')
    return array


def pair(what: str, value: Any, expected: str) -> tuple[Any, Any]:
    """Return the two parts of a value; else raise ShapeError, naming `what` and what is expected."""
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ShapeError(f'{what}: expected a pair ({expected})') from None
    return first, second


def names(what: str, values: Any, error: type[PsdynError] = ModelError) -> tuple[str, ...]:
    """Return names as a tuple of str; one name alone counts as a list of one."""
    try:
        found = (values,) if isinstance(values, str) else tuple(values)
    except TypeError:
        found = (None,)
    if not all(isinstance(name, str) for name in found):
        raise error(f'{what}={values!r:.80}: expected a list of joint names')
    return found
