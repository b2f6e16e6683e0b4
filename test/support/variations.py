"""Exact derivatives without a formula: the kernels' own text in complex steps, or in differences of 80-bit numbers.

A complex step (W. Squire, G. Trapp, SIAM Review 40, 1998) has no rounding to trade against truncation, but wants
analytic functions: the closed-form kernels are. Newton's method and least squares are not, so general machines are
differenced: fourth order in 80 bits leaves about 1e-13.
"""

import numpy as np

from psdyn_ros.kernels.rigid_body import forward, general, inverse
from psdyn_ros.kernels.rigid_body.records import LOOP, PRISMATIC, ROD, WORK

from .extended import interpreted, widened

_CLOSED_FORM = {'forward': interpreted(forward)['forward'], 'inverse': interpreted(inverse)['inverse']}
_GENERAL_INVERSE = interpreted(general)['general_inverse']
TINY = np.longdouble(1e-40)


def complex_step(kernel, mods, env, state, argument):
    """Return the derivative (dof, dof) of 'forward' or 'inverse' dynamics by state[argument] (x, xd, or f or xdd)."""
    columns = []
    for k in range(len(mods)):
        moved, surroundings = [np.array(array, np.clongdouble) for array in state], np.array(env, np.clongdouble)
        moved[argument][k] += 1j * TINY
        if argument == 0:
            _carry_wrenches(mods, surroundings, k)
        columns.append(_evaluate(kernel, mods, surroundings, moved)[0].imag / TINY)
    return np.array(columns, float).T


def complex_step_of_base(mods, env, lift, state):
    """Return the derivatives of (wrench on the base, efforts) by displacement, twist and acceleration of the base.

    lift: minus gravity in base axes, of which env[1] is the sum with the acceleration.
    """
    by = np.zeros((3, 6 + len(mods), 6))
    for argument, c in np.ndindex(3, 6):
        moved, unit = np.array(env, np.clongdouble), np.eye(6)[c]
        if argument == 0:
            moved[1, :3] += 1j * TINY * np.cross(lift, unit[3:])
        else:
            moved[argument - 1] += 1j * TINY * unit
        f, root = _evaluate('inverse', mods, moved, [np.array(array, np.clongdouble) for array in state])
        by[argument, :, c] = (np.concatenate((root, f)).imag / TINY).astype(float)
    return by


def complex_step_on_base(mods, env, state, argument):
    """Return the derivatives of the wrench on the base, (6, dof), as `complex_step`."""
    columns = []
    for k in range(len(mods)):
        moved, surroundings = [np.array(array, np.clongdouble) for array in state], np.array(env, np.clongdouble)
        moved[argument][k] += 1j * TINY
        if argument == 0:
            _carry_wrenches(mods, surroundings, k)
        columns.append(_evaluate('inverse', mods, surroundings, moved)[1].imag / TINY)
    return np.array(columns, float).T


def _evaluate(kernel, mods, env, state):
    """Return (efforts or accelerations, wrench that module 0 asks of the base)."""
    wide = _cast(mods, np.clongdouble)
    work, out = np.zeros(len(mods), widened(WORK, np.clongdouble)), np.zeros(len(mods), np.clongdouble)
    assert _CLOSED_FORM[kernel](wide, work, env, *state, out) == 0
    return out, work['root'][0]


def _carry_wrenches(mods, env, coordinate):
    """Let external wrenches move with bodies that slide: env has them about where the body is at zero."""
    if len(env) == 2:
        return
    k = int(np.flatnonzero(mods['coordinate'] == coordinate)[0])
    for kind, body, axis in ((PRISMATIC, 0, (0, 0, 1)), (LOOP, ROD, (1, 0, 0))):
        if mods['kind'][k] == kind:
            row = env[2 + 3 * k + body]
            row[3:] += 1j * TINY * np.cross(axis, row[:3])


def general_forces_extended(manipulator, x, xd, xdd):
    """Return `generalized_forces` (dof,) of a general machine as longdouble."""
    m = manipulator
    mods, _, env = (_cast(array, np.longdouble) for array in m.records)
    wide = m.loops._replace(**{name: _cast(value, np.longdouble) for name, value in m.loops._asdict().items()
                               if isinstance(value, np.ndarray)})
    out = np.zeros(m.dof, np.longdouble)
    assert _GENERAL_INVERSE(mods, np.zeros(len(mods), widened(WORK)), env, wide, x, xd, xdd, out) == 0
    return out


def displaced(manipulator, x, change):
    """Return x (nx,) after a displacement (dof,): of a floating base in its own axes, after its rotation vector."""
    if not manipulator.floating:
        return x + change
    out, turn = np.concatenate((x[:7], x[7:] + change[6:])), change[3:6]
    (a, w), angle = np.split(x[3:7], [3]), np.sqrt((turn ** 2).sum())
    sine = 0.5 * turn if angle == 0 else np.sin(angle / 2) / angle * turn
    cosine = np.cos(angle / 2)
    out[3:7] = *(w * sine + cosine * a + np.cross(a, sine)), *(w * cosine - a @ sine)
    # change[:3] would move the base along its own axes; nothing depends on where it is
    return out


def differences(function, n, step):
    """Return the derivative (values, n) of function(change) by change (n,), of fourth order in the step."""
    columns = []
    for unit in np.eye(n) * type(step)(1):
        near, far = (function(s * step * unit) - function(-s * step * unit) for s in (1, 2))
        columns.append((8 * near - far) / (12 * step))
    return np.array(columns, float).reshape(n, -1).T


def _cast(array, number):
    """Return records or numbers with every float as `number`."""
    if array.dtype.names is None:
        return array.astype(number) if array.dtype.kind == 'f' else array
    out = np.zeros(array.shape, widened(array.dtype, number))
    for name in array.dtype.names:
        out[name] = array[name]
    return out
