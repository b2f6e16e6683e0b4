"""The kernels' own text in extended precision (80 bit) or complex numbers: rounding, and derivatives without a formula.

Records are copied with every 'f8' widened, and the compiled functions are replaced by the Python functions that they
were made of.

A complex step (W. Squire, G. Trapp, SIAM Review 40, 1998) has no rounding to trade against truncation, but wants
analytic functions: joints and triangles in closed form are. Newton's method and least squares are not, so machines with
clusters are differenced: fourth order in 80 bits leaves about 1e-13.
"""

import inspect
import math
import sys

import numpy as np

from psdyn_ros.kernels.loops import closure
from psdyn_ros.kernels.rigid_body import forward, inverse
from psdyn_ros.kernels.rigid_body.mechanism import Mechanism
from psdyn_ros.kernels.rigid_body.records import LINK, LOOP, PRISMATIC, ROD

WIDE, COMPLEX = np.longdouble, np.clongdouble
TINY = WIDE(1e-40)
STEP = WIDE(2e-6)           # of differences in 80 bits


class _Functions:
    """`math` for any floating type."""

    sqrt, cos, sin, tanh, atan2, isinf = map(staticmethod, (
        np.sqrt, np.cos, np.sin, np.tanh, np.arctan2, np.isinf))
    pi, inf, nan = math.pi, math.inf, math.nan

    @staticmethod
    def floor(value):
        return int(np.floor(value))


def interpreted(module):
    """Return the namespace of a kernel module with plain Python functions, which call the plain ones of others."""
    if module.__name__ in _SPACES:
        return _SPACES[module.__name__]
    space = _SPACES[module.__name__] = {}
    for name, value in vars(module).items():
        function = getattr(value, 'py_func', value)
        home = getattr(function, '__module__', '')
        if name.startswith('__'):
            continue
        if not inspect.isfunction(function) or not home.startswith('psdyn_ros.kernels') or home.endswith('.compiler'):
            space[name] = value
        elif home == module.__name__:
            space[name] = type(function)(function.__code__, space, name, function.__defaults__)
        else:
            space[name] = interpreted(sys.modules[home])[function.__name__]
    if 'math' in space:
        space['math'] = _Functions
    return space


_SPACES = {}
_CLOSURE, _FORWARD, _INVERSE = map(interpreted, (closure, forward, inverse))


def widened(dtype, number):
    """Return a dtype of records with every 'f8' replaced by `number`."""
    wide = {np.dtype('f8'): number}
    return np.dtype([(name, wide.get(field.base, field.base), field.shape)
                     for name, (field, *_) in ((name, dtype.fields[name]) for name in dtype.names)])


def cast(array, number):
    """Return records or numbers with every float as `number`."""
    if array.dtype.names is None:
        return array.astype(number) if array.dtype.kind == 'f' else array
    out = np.zeros(array.shape, widened(array.dtype, number))
    for name in array.dtype.names:
        out[name] = array[name]
    return out


def widened_mechanism(handle, number=WIDE):
    """Return the `Mechanism` of a `Handle` with every float as `number`."""
    *arrays, loops = handle.arrays
    if loops is not None:
        loops = loops._replace(**{name: cast(value, number) for name, value in loops._asdict().items()
                                  if isinstance(value, np.ndarray)})
    return Mechanism(*(cast(array, number) for array in arrays), loops)


def close(loops, x, xd):
    """Close the clusters of a mechanism."""
    for k, cluster in enumerate(() if loops is None else loops.clusters):
        assert _CLOSURE['close_cluster'](cluster, loops, x, k) == 0
        assert _CLOSURE['differentiate'](cluster, loops, xd) == 0


def forward_dynamics(mechanism, x, xd, f):
    """Return the accelerations (dof,) for arguments of the type of the mechanism."""
    xdd = np.zeros_like(xd)
    close(mechanism.loops, x, xd)
    assert _FORWARD['place'](mechanism, x, xd) == 0
    assert _FORWARD['solve'](mechanism, None, f, xdd) == 0
    return xdd


def inverse_dynamics(mechanism, x, xd, xdd):
    """Return the efforts (dof,) on the coordinates."""
    f = np.zeros_like(xd)
    close(mechanism.loops, x, xd)
    assert _INVERSE['run_sweeps'](mechanism, x, xd, xdd) == 0
    _INVERSE['put_efforts'](mechanism, f)
    return f


def hybrid_dynamics(driven, mechanism, x, xd, given):
    """Return accelerations and efforts (2 dof,); given (dof,): accelerations of `driven` (dof,), efforts elsewhere."""
    xdd, f = np.where(driven, given, 0), np.where(driven, 0, given)
    close(mechanism.loops, x, xd)
    assert _FORWARD['place'](mechanism, x, xd) == 0
    assert _FORWARD['solve'](mechanism, driven.astype(float), f, xdd) == 0
    _FORWARD['efforts_of_motion'](mechanism, f)
    # given efforts come back through the recursion, rounded
    return np.concatenate((xdd, np.where(driven, f, given)))


def inverse_dynamics_extended(manipulator, x, xd, xdd):
    """Return `generalized_forces` (dof,) as longdouble."""
    return inverse_dynamics(widened_mechanism(manipulator.handle()), *(np.asarray(a, WIDE) for a in (x, xd, xdd)))


def derivative(function, handle, state, argument):
    """Return the derivative (values, n) of function(mechanism, *state) by state[argument], where 0 is that by x.

    By complex steps; by differences in 80 bits where the machine has clusters. A floating base is displaced in its own
    axes. External wrenches move with the links.
    """
    floating = len(state[0]) > len(state[1])
    number = COMPLEX if handle.loops is None else WIDE
    mechanism, state = widened_mechanism(handle, number), [np.array(array, number) for array in state]
    external = mechanism.modules['external'].copy()

    def moved(change):
        there = list(state)
        there[argument] = there[argument] + change if argument else displaced(state[0], change, floating)
        if argument == 0:
            mechanism.modules['external'] = _carried(mechanism.modules, external, change)
        return function(mechanism, *there)

    count = len(state[1]) if argument == 0 else len(state[argument])
    if number is WIDE:
        return differences(moved, count, STEP)
    return np.array([moved(1j * TINY * unit).imag / TINY for unit in np.eye(count)], float).T


def _carried(modules, external, change):
    """Return external wrenches that move with bodies that slide: records have them about where the body is at zero."""
    out = external.copy()
    for b, wrenches in zip(modules, out):
        for kind, body, axis in ((PRISMATIC, LINK, (0, 0, 1)), (LOOP, ROD, (1, 0, 0))):
            if b['kind'] == kind and b['coordinate'] >= 0:
                wrenches[body, 3:] += change[b['coordinate']] * np.cross(axis, wrenches[body, :3])
    return out


def displaced(x, change, floating):
    """Return x (nx,) after a displacement (dof,): of a floating base in its own axes, after its rotation vector."""
    if not floating:
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
