"""Inputs of the calls of `Manipulator`: arrays of one state or a batch, and what acts on the machine from outside."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray

from ..kernels.rigid_body.entry import hybrid_checked, inverse_checked
from ..kernels.rigid_body.mechanism import Handle
from ..kernels.rigid_body.records import APPLIED
from ..kernels.runtime.status import NON_FINITE, SHAPE
from ..model.errors import ShapeError, check_name
from .arguments import Array, Efforts, Wrenches, by_name, entry_names, numbers, vector
from .environment import BaseDrive, BaseMotion, base_rows, wrench_rows
from .errors_from_status import check, in_row, status_error
from .kinematics import module_positions, transmission

if TYPE_CHECKING:
    from .manipulator import Manipulator

FLOAT = np.dtype(float)
CONTIGUOUS = (FLOAT.itemsize,)      # strides of a vector
MAX_HINTS = 100         # sets of names kept; a caller that shuffles them must not fill the memory


def readable(a: Any, b: Any, c: Any) -> bool:
    """Return True for three vectors that the code of `compiled_for` may read: contiguous, of float64, not empty."""
    return (type(a) is type(b) is type(c) is ndarray and a.dtype is b.dtype is c.dtype is FLOAT
            and a.strides == b.strides == c.strides == CONTIGUOUS)


def plain(a: Any, b: Any, c: Any) -> bool:
    """Return True for three vectors that Numba takes without a new compilation: contiguous, writeable, of float64."""
    return (type(a) is type(b) is type(c) is ndarray and a.dtype is b.dtype is c.dtype is FLOAT
            and a.ndim == b.ndim == c.ndim == 1 and a.flags.carray and b.flags.carray and c.flags.carray)


def contiguous(label: str, value: Any) -> Array:
    """Return a contiguous, writeable array of float64."""
    array = np.ascontiguousarray(numbers(label, value), dtype=float)
    return array if array.flags.writeable else array.copy()


def states(m: Manipulator, *, batch: bool = False, **values: Any) -> tuple[Array, ...]:
    """Return the finite arrays x (nx,), f (actuators,), others (dof,); or rows of them where `batch` allows that.

    A value may be {name: number}.  Raises ShapeError, NonFiniteError, StateError, UnknownNameError.
    """
    arrays = {label: contiguous(label, by_name(m, label, value)) for label, value in values.items()}
    sizes = {'x': m.nx, 'f': len(m.actuators)}
    rows = {array.shape[:-1] for array in arrays.values()}
    if len(rows) != 1 or len(next(iter(rows))) > 1 or (not batch and rows != {()}) or any(
            array.shape[-1:] != (sizes.get(label, m.dof),) for label, array in arrays.items()):
        raise status_error(m, SHAPE, arrays)
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise status_error(m, NON_FINITE, arrays)
    return tuple(arrays.values())


def one_state(m: Manipulator, **values: Any) -> tuple[Array, ...]:
    """Return the arrays of `states` of one state; raise ShapeError where there are rows."""
    values = {label: by_name(m, label, value) for label, value in values.items()}
    for label, value in values.items():
        if np.ndim(value) != 1:
            raise ShapeError(f'{label} has shape {np.shape(value)}; derivatives are taken at one state')
    return states(m, **values)


def over_rows(call: Callable[..., Any], shape: tuple[int, ...], *arrays: Any) -> Array:
    """Return what `call` returns for the rows of arrays (N, ...), (N, *shape); an error names its row."""
    out = np.empty((len(arrays[0]), *shape))
    for k, row in enumerate(zip(*arrays)):
        with in_row(k):
            out[k] = call(*row)
    return out


def position_of(m: Manipulator, x: Any) -> Array:
    """Return x (nx,) or (N, nx) of `states`; the quick way for an array of float64, whose numbers kernels check."""
    return x if plain(x, x, x) and len(x) == m.nx else states(m, batch=True, x=x)[0]


def one_vector(m: Manipulator, label: str, value: Any) -> Array:
    """Return one finite vector x (nx,), f (actuators,) or rates (dof,), of an array or {name: number}."""
    return vector(label, by_name(m, label, value), len(entry_names(m, label)))


class Environment(NamedTuple):
    """External actions on a machine, in a handle of its own."""

    handle: Handle
    driven: np.ndarray | None       # (dof,) 1: coordinates of a floating base whose acceleration is given
    acceleration: np.ndarray        # (6,) of a floating base
    on_base: np.ndarray             # (6,) external wrench on a base that does not float


def environment_at(m: Manipulator, x: Any, base: BaseMotion | BaseDrive | None = None,
                   wrenches: Wrenches | None = None, joint_efforts: Efforts | None = None,
                   positions: Any = None) -> Environment:
    """Return the `Environment` at x (nx,), with arguments as in `Manipulator.forward_dynamics`.

    Raises ShapeError, StateError, UnknownNameError, NonFiniteError.
    """
    handle, driven, acceleration, on_base = m.handle(), None, np.zeros(6), np.zeros(6)
    if m.floating and base is not None:
        flags, acceleration = base_drive(m, base)
        driven = np.zeros(m.dof)
        driven[:6] = flags
    elif isinstance(base, BaseDrive):
        raise ShapeError(f"base={base!r:.80}: '{m.name}' stands on a fixed base; expected a BaseMotion")
    elif base is not None:
        handle.environment['twist'], handle.environment['acceleration'] = base_rows(m.gravity, base)
    if wrenches:
        rows, on_base = wrench_rows(m, x, wrenches)
        handle.modules['external'] = rows.reshape(-1, 3, 6)
        handle.environment['loaded'] = 1
    if joint_efforts:
        apply_efforts(m, handle, x, joint_efforts)
    if positions is not None:
        close_from(m, handle, positions)
    return Environment(handle, driven, acceleration, on_base)


def required_forces(m: Manipulator, x: Array, xd: Array, xdd: Array, around: Environment) -> Array:
    """Return `generalized_forces` of one checked state in an `Environment`."""
    f, buffers = np.zeros(m.dof), (around.handle.tree, around.handle.loops)
    if around.driven is None:
        status = inverse_checked(*buffers, x, xd, xdd, f)
    else:
        around.handle.let_efforts_act_on_coordinates()
        around.driven[6:], xdd = 1.0, xdd.copy()
        status = hybrid_checked(*buffers, around.driven, x, xd, f, xdd)
        f[:6][around.driven[:6] == 0.0] = 0.0
    check(m, status, x=x, xd=xd, xdd=xdd)
    return f


def base_drive(m: Manipulator, base: Any) -> tuple[Array, Array]:
    """Return (flags, accelerations), each (6,), of a `BaseDrive`."""
    if isinstance(base, BaseMotion):
        raise ShapeError(f"base={base!r:.80}: the base of '{m.name}' floats, its motion is in x, xd; expected a "
                         'BaseDrive(driven, acceleration)')
    try:
        base = BaseDrive(*base)
    except TypeError:
        raise ShapeError(f'base={base!r:.80}: expected a BaseDrive(driven, acceleration)') from None
    return ((vector('base.driven', base.driven, 6) != 0.0).astype(float),
            vector('base.acceleration', base.acceleration, 6))


def named_efforts(m: Manipulator, efforts: Any) -> Iterator[tuple[str, float]]:
    """Yield (joint, effort) of {joint: effort}; raise ShapeError, NonFiniteError, UnknownNameError."""
    return _named_numbers(m, efforts, 'joint_efforts', 'effort on')


def _named_numbers(m: Manipulator, values: Any, argument: str, label: str) -> Iterator[tuple[str, float]]:
    if not isinstance(values, dict):
        raise ShapeError(f'{argument}={values!r:.80}: expected {{joint: {label.split()[0]}}}')
    for joint, value in values.items():
        check_name(joint, m.joints, f"joint '{joint}': no movable joint of '{m.name}'")
        yield joint, float(vector(f"{label} '{joint}'", [value], 1)[0])


def hint_of(m: Manipulator, positions: Any) -> tuple[Array, Array]:
    """Return (rows, values) for `set_hint` of `positions`, those of all joints in their order, or {joint: position}.

    A dict has all joints of a cluster or none.  Positions of all joints, or of names that were given before, are not
    checked to be finite; the kernels check that.  Raises ShapeError, NonFiniteError, UnknownNameError.
    """
    if (type(positions) is ndarray and positions.dtype is FLOAT and positions.ndim == 1
            and len(positions) == len(m.joints) and positions.flags.carray):
        return m.cluster_joint_rows, positions
    rows = m.hint_rows.get(tuple(positions)) if isinstance(positions, dict) else None
    if rows is not None:
        try:
            values = np.array([*positions.values()])
        except ValueError:              # ragged
            values = None
        if values is not None and values.dtype is FLOAT and values.ndim == 1:
            return rows, values
    given = _finite_positions(m, positions)
    if rows is None:
        if len(m.hint_rows) >= MAX_HINTS:
            m.hint_rows.clear()
        rows = m.hint_rows[tuple(given)] = rows_of_cluster_joints(m, tuple(given))
    return rows, np.array([*given.values()])


def _finite_positions(m: Manipulator, positions: Any) -> dict[str, float]:
    if not isinstance(positions, dict):
        positions = dict(zip(m.joints, vector('positions', positions, len(m.joints))))
    return dict(_named_numbers(m, positions, 'positions', 'position of'))


def rows_of_cluster_joints(m: Manipulator, names: tuple[str, ...]) -> Array:
    """Return the row in `names` of each cluster joint, -1 where its cluster is not named."""
    row_of, rows = {name: row for row, name in enumerate(names)}, []
    for cluster in m.machine.clusters:
        missing = [name for name in cluster.joints if name not in row_of]
        if 0 < len(missing) < len(cluster.joints):
            raise ShapeError(f"positions of loop '{cluster.name}' without {', '.join(missing)}; expected all of its "
                             'joints, or none')
        rows += [row_of.get(name, -1) for name in cluster.joints]
    return np.array(rows, dtype=np.int64)


def close_from(m: Manipulator, handle: Handle, positions: Any) -> None:
    """Let the clusters of a handle be closed from `positions`; arguments and errors as `hint_of`."""
    rows, values = hint_of(m, positions)
    if not np.isfinite(values).all():
        _finite_positions(m, positions)     # raises
    handle.start_from(np.append(values, np.nan)[rows])


def apply_efforts(m: Manipulator, handle: Handle, x: Array, efforts: Any) -> None:
    """Let {joint: effort} act on the modules of a handle; through the ratio of its triangle on boom and barrel."""
    positions = None
    for joint, effort in named_efforts(m, efforts):
        k = m.machine.module_of(joint)
        if joint != m.machine.modules[k].name:
            positions = module_positions(m, x) if positions is None else positions
            effort *= transmission(m, k, joint, positions[k])[0]
        handle.modules['applied'][k] += effort
        handle.modules['passive'][k] |= APPLIED
