"""Kernel statuses to named errors: which loop, by how much, and what would be expected."""
import math

import numpy as np

from ..assembly.clusters import smallest_singular_values
from ..kernels.loops.closure import BRANCH, OPEN, close_all
from ..kernels.rigid_body.energy import AMBIGUOUS, NO_LEVER, OTHER_BRANCH
from ..kernels.rigid_body.entry import NON_FINITE, SHAPE
from ..model.errors import (
    MeasurementError,
    NonFiniteError,
    ShapeError,
    StateError,
    TogglePointError,
    UnreachableStrokeError,
)


def state_error(machine, status, x, arrays, row=None):
    """Return the error for a status of `entry`: x (dof,) the state at fault, in a row of a batch; {name: array}."""
    if status == SHAPE:
        wrong = {name: np.shape(array) for name, array in arrays.items()}
        return ShapeError(f"'{machine.name}' has {len(machine.modules)} coordinates ({', '.join(machine.actuators)}); "
                          f'got shapes {wrong}')
    if status == NON_FINITE:
        return non_finite(machine, arrays)
    return closure_error(machine, status - 1, x, row)


def general_error(manipulator, status, arrays, row=None):
    """Return the error for a status of `general_entry`; {name: array} of its inputs, of one state or a batch."""
    machine, loops = manipulator.machine, manipulator.loops
    if status == SHAPE:
        wrong = {name: np.shape(array) for name, array in arrays.items()}
        return ShapeError(
            f"'{machine.name}' has {manipulator.nx} numbers in x, {manipulator.dof} in xd and xdd "
            f"({'base, ' if manipulator.floating else ''}{', '.join(machine.coordinates)}) and "
            f"{len(machine.actuators)} in f ({', '.join(machine.actuators)}); got shapes {wrong}")
    if status == NON_FINITE:
        if manipulator.floating and 'x' in arrays and np.isfinite(arrays['x']).all() \
                and not np.linalg.norm(arrays['x'][..., 3:7], axis=-1).all():
            return StateError('the quaternion x[3:7] of the base is zero; expected x y z w of a rotation')
        base = [f'base {i}' for i in range(7)] if manipulator.floating else []
        return non_finite(machine, arrays, {'x': (*base, *machine.coordinates), 'f': machine.actuators},
                          (*base[:6], *machine.coordinates))
    where = '' if row is None else f' in row {row}'
    if status > 0:
        module = machine.modules[status - 1]
        if module.triangle is not None:
            z = np.zeros(len(machine.modules))
            z[status - 1] = arrays['x'][loops.own[status - 1] + (1 if loops.base else 0)]
            return closure_error(machine, status - 1, z, row)
        return NonFiniteError(f"the acceleration of '{module.name}'{where} is not finite")
    cluster, reason = machine.clusters[-status // 8 - 1], -status % 8
    record = loops.clusters[-status // 8 - 1]
    part = loops.tied[record['first']:record['first'] + record['joints']]
    shift = 1 if loops.base else 0
    values = ', '.join(f"{name} = {arrays['x'][t['coordinate'] + shift]:.6g}"
                       for name, t in zip(cluster.joints, part) if t['independent'] >= 0)
    if reason == OPEN:
        return UnreachableStrokeError(f"loop '{cluster.name}'{where}: does not close at {values}")
    if reason == BRANCH:
        return TogglePointError(f"loop '{cluster.name}'{where}: {values} is at or beyond a point where two branches of "
                                f'its closure meet{branch_limits(loops, -status // 8 - 1, cluster)}')
    # the scratch at hand may be another's: that of the state is found again
    close_all(loops, arrays['x'], np.zeros(len(arrays['x']) - shift))
    smallest, = smallest_singular_values(machine, -status // 8 - 1, [loops.work['q'][
        record['first']:record['first'] + record['joints']]])
    return TogglePointError(f"loop '{cluster.name}'{where}: is singular at {values}; the other joints do not follow "
                            f'from these (smallest singular value {smallest:.2g})')


def branch_limits(loops, n, cluster):
    """Return the end of a message: between which branch points a cluster is followed; '' where that is no interval."""
    record, texts = loops.clusters[n], []
    for _, _, _, row, low, high in loops.lattice[n, :record['freedom']]:
        start = loops.poses[record['pose'], int(row)]
        ends = [f'{word} {start + end:.6g}' for word, end in (('above', low), ('below', high)) if math.isfinite(end)]
        if ends:
            texts.append(f'{cluster.joints[int(row)]} {" and ".join(ends)}')
    return f'; it is followed for {", ".join(texts)}' if texts else ''


def non_finite(machine, arrays, names=None, others=None):
    """Return the error on the first number that is not finite; names: of the entries of each array."""
    for name, array in arrays.items():
        for index in np.argwhere(~np.isfinite(array)):
            joint = (names or {}).get(name, others or machine.actuators)[index[-1]]
            row = f' in row {index[0]}' if len(index) > 1 else ''
            return NonFiniteError(f"{name} of '{joint}'{row} is {array[tuple(index)]}; expected a finite number")
    # finite numbers whose sum overflows
    return NonFiniteError(f"{', '.join(arrays)} are too large to compute with")


def closure_error(machine, k, x, row=None):
    """Return why the loop of module k does not close at its stroke, and by how much."""
    module = machine.modules[k]
    stroke = float(x[machine.records['coordinate'][k]])
    low, high = module.assembly.reach
    where = f"loop '{module.triangle.name}': stroke {module.name} = {stroke:.6g} m"
    if row is not None:
        where += f' in row {row}'
    margin = min(stroke - low, high - stroke)
    if margin < -1e-9 * (high - low):
        return UnreachableStrokeError(
            f'{where} is out of reach by {-margin:.6g} m; the loop closes between {low:.6g} and {high:.6g} m')
    q = float(module.triangle.angles(stroke, module.assembly.mode)[0])
    return TogglePointError(
        f'{where} is {margin:.2g} m from its toggle point at {low if stroke - low < high - stroke else high:.6g} m, '
        f'|sin q| = {abs(math.sin(q)):.2g}: the cylinder has no lever')


def measurement_error(machine, status, names, rows, position):
    """Return why measured joints do not fix a loop; status as `coordinates` gives it, rows (n, 3) into names."""
    k, reason = status // 8 - 1, status % 8
    module = machine.modules[k]
    measured = [names[row] for row in rows[k] if row >= 0]
    values = ', '.join(f'{name} = {position[names.index(name)]:.6g}' for name in measured)
    where = f"loop '{module.triangle.name}' with {values}"
    if reason == OTHER_BRANCH:
        return MeasurementError(f'{where}: the boom stands on the other assembly branch')
    if reason == NO_LEVER:
        return TogglePointError(f'{where}: the measured joint does not move with the stroke here')
    if reason == AMBIGUOUS:
        return MeasurementError(f'{where}: two strokes fit within the limits of {module.name}; '
                                'measure the stroke or the boom')
    if rows[k][0] >= 0:
        x = np.zeros(len(machine.modules))
        x[machine.records['coordinate'][k]] = position[rows[k][0]]
        return closure_error(machine, k, x)
    low, high = module.assembly.reach
    return UnreachableStrokeError(f'{where}: no stroke between {low:.6g} and {high:.6g} m closes it')
