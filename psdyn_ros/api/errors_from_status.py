"""Statuses of kernels to named errors: which loop, by how much, and what would be expected."""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..assembly.machine import Machine, smallest_singular_values
from ..kernels.loops.closure import close_machine
from ..kernels.runtime.status import (
    AMBIGUOUS,
    BRANCH,
    INFINITE,
    NO_LEVER,
    NON_FINITE,
    OK,
    OPEN,
    OTHER_BRANCH,
    SHAPE,
    TOGGLE,
    decode,
)
from ..model.errors import (
    MeasurementError,
    NonFiniteError,
    PsdynError,
    ShapeError,
    StateError,
    TogglePointError,
    UnreachableStrokeError,
)
from .arguments import Array, entry_names

if TYPE_CHECKING:
    from .manipulator import Manipulator


def check(manipulator: Manipulator, status: int, **arrays: Array) -> None:
    """Raise the error of a status that is not OK; arrays: inputs of the kernel by name."""
    if status != OK:
        raise status_error(manipulator, status, arrays)


@contextmanager
def in_row(row: Any) -> Iterator[None]:
    """Name the row of a batch in the errors that a state raises."""
    try:
        yield
    except StateError as error:
        raise type(error)(f'row {row}: {error}') from None


def status_error(manipulator: Manipulator, status: Any, arrays: Mapping[str, Array],
                 row: int | None = None) -> PsdynError:
    """Return the error for a status of a kernel; arrays: {name: array} of its inputs, row: of a batch."""
    m, (code, k) = manipulator, decode(status)
    if code == SHAPE:
        return _shape_error(m, arrays)
    if code == NON_FINITE:
        return _non_finite(m, arrays)
    where = '' if row is None else f' in row {row}'
    if code == TOGGLE:
        return closure_error(m.machine, k, arrays['x'][m.machine.records['position'][k]], where)
    if code == INFINITE:
        return NonFiniteError(f"the acceleration of '{m.machine.modules[k].name}'{where} is not finite")
    return _cluster_error(m, code, k, arrays['x'], where)


def _shape_error(m: Manipulator, arrays: Mapping[str, Array]) -> ShapeError:
    shapes = {name: np.shape(array) for name, array in arrays.items()}
    return ShapeError(
        f"'{m.name}' has {m.nx} numbers in x, {m.dof} in xd and xdd ({'base, ' if m.floating else ''}"
        f"{', '.join(m.coordinates)}) and {len(m.actuators)} in f ({', '.join(m.actuators)}); got shapes {shapes}")


def _non_finite(m: Manipulator, arrays: Mapping[str, Array]) -> PsdynError:
    """Return the error on the first number that is not finite."""
    if m.floating and 'x' in arrays and np.isfinite(arrays['x']).all() \
            and not np.linalg.norm(arrays['x'][..., 3:7], axis=-1).all():
        return StateError('the quaternion x[3:7] of the base is zero; expected x y z w of a rotation')
    for name, array in arrays.items():
        for index in np.argwhere(~np.isfinite(array)):
            joint = entry_names(m, name)[index[-1]]
            row = f' in row {index[0]}' if len(index) > 1 else ''
            return NonFiniteError(f"{name} of '{joint}'{row} is {array[tuple(index)]}; expected a finite number")
    # finite numbers whose sum overflows
    return NonFiniteError(f"{', '.join(arrays)} are too large to compute with")


def _cluster_error(m: Manipulator, code: int, n: int, x: Array, where: str) -> PsdynError:
    """Return why cluster n has no answer at x."""
    cluster, record = m.machine.clusters[n], m.machine.loops.clusters[n]
    part = slice(record['first'], record['first'] + record['joints'])
    positions = m.machine.records['position'][m.machine.loops.cluster_joints['module'][part]]
    values = ', '.join(f'{name} = {x[position]:.6g}' for name, position in zip(cluster.joints, positions)
                       if position >= 0)
    if code == OPEN:
        return UnreachableStrokeError(f"loop '{cluster.name}'{where}: does not close at {values}")
    if code == BRANCH:
        return TogglePointError(f"loop '{cluster.name}'{where}: {values} is at or beyond a point where two branches of "
                                f'its closure meet{_branch_limits(m.machine.loops, n, cluster)}')
    handle = m.handle()
    close_machine(handle.tree, handle.loops, x, np.zeros(m.dof))
    smallest, = smallest_singular_values(m.machine, n, [handle.arrays.loops.work['q'][part]])
    return TogglePointError(f"loop '{cluster.name}'{where}: is singular at {values}; the other joints do not follow "
                            f'from these (smallest singular value {smallest:.2g})')


def _branch_limits(loops: Any, n: int, cluster: Any) -> str:
    """Return the end of a message: between which branch points a cluster is followed; '' where that is no interval."""
    record, texts = loops.clusters[n], []
    for _, _, _, row, low, high in loops.lattice[n, :record['freedom']]:
        start = loops.poses[record['pose'], int(row)]
        ends = [f'{word} {start + end:.6g}' for word, end in (('above', low), ('below', high)) if math.isfinite(end)]
        if ends:
            texts.append(f'{cluster.joints[int(row)]} {" and ".join(ends)}')
    return f'; it is followed for {", ".join(texts)}' if texts else ''


def closure_error(machine: Machine, k: int, stroke: float, where: str = '') -> PsdynError:
    """Return why the loop of module k does not close at its stroke, and by how much."""
    module, stroke = machine.modules[k], float(stroke)
    low, high = module.assembly.reach
    where = f"loop '{module.triangle.name}': stroke {module.name} = {stroke:.6g} m{where}"
    margin = min(stroke - low, high - stroke)
    if margin < -1e-9 * (high - low):
        return UnreachableStrokeError(
            f'{where} is out of reach by {-margin:.6g} m; the loop closes between {low:.6g} and {high:.6g} m')
    q = float(module.triangle.angles(stroke, module.assembly.mode)[0])
    return TogglePointError(
        f'{where} is {margin:.2g} m from its toggle point at {low if stroke - low < high - stroke else high:.6g} m, '
        f'|sin q| = {abs(math.sin(q)):.2g}: the cylinder has no lever')


def measurement_error(machine: Machine, status: Any, names: tuple[str, ...], rows: Array,
                      position: Array) -> PsdynError:
    """Return why measured joints do not fix a loop; rows (modules, 3): where in names the joints of a module stand."""
    reason, k = decode(status)
    module = machine.modules[k]
    values = ', '.join(f'{names[row]} = {position[row]:.6g}' for row in rows[k] if row >= 0)
    where = f"loop '{module.triangle.name}' with {values}"
    if reason == OTHER_BRANCH:
        return MeasurementError(f'{where}: the boom stands on the other assembly branch')
    if reason == NO_LEVER:
        return TogglePointError(f'{where}: the measured joint does not move with the stroke here')
    if reason == AMBIGUOUS:
        return MeasurementError(f'{where}: two strokes fit within the limits of {module.name}; '
                                'measure the stroke or the boom')
    if rows[k][0] >= 0:
        return closure_error(machine, k, position[rows[k][0]])
    low, high = module.assembly.reach
    return UnreachableStrokeError(f'{where}: no stroke between {low:.6g} and {high:.6g} m closes it')
