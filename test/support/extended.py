"""The kernels' own text evaluated in extended precision (80 bit), to tell rounding from the other engine's error.

Records are copied with every 'f8' widened, and the compiled functions are replaced by the Python functions that
they were made of.
"""

import inspect
import math
import sys

import numpy as np

from psdyn_ros.kernels.rigid_body import inverse
from psdyn_ros.kernels.rigid_body.records import MODULE, WORK


class _Functions:
    """`math` for any floating type."""

    sqrt, cos, sin, tanh, atan2, floor, isinf = map(staticmethod, (
        np.sqrt, np.cos, np.sin, np.tanh, np.arctan2, np.floor, np.isinf))
    pi, inf, nan = math.pi, math.inf, math.nan


def widened(dtype, number=np.longdouble):
    """Return a dtype of records with every 'f8' replaced by `number`."""
    wide = {np.dtype('f8'): number}
    return np.dtype([(name, wide.get(field.base, field.base), field.shape)
                     for name, (field, *_) in ((name, dtype.fields[name]) for name in dtype.names)])


def interpreted(module):
    """Return the namespace of a kernel module with plain Python functions, which call the plain ones of others."""
    if module.__name__ in _SPACES:
        return _SPACES[module.__name__]
    space = _SPACES[module.__name__] = {}
    for name, value in vars(module).items():
        function = getattr(value, 'py_func', value)
        if name.startswith('__'):
            continue
        if not inspect.isfunction(function) or not function.__module__.startswith('psdyn_ros.kernels'):
            space[name] = value
        elif function.__module__ == module.__name__:
            space[name] = type(function)(function.__code__, space, name, function.__defaults__)
        else:
            space[name] = interpreted(sys.modules[function.__module__])[function.__name__]
    space['math'] = _Functions
    return space


_SPACES = {}
_KERNELS = interpreted(inverse)


def inverse_dynamics_extended(manipulator, x, xd, xdd):
    """Return inverse dynamics (dof,) as longdouble."""
    mods, _, env = manipulator.records
    wide = np.zeros(len(mods), widened(MODULE))
    for name in MODULE.names:
        wide[name] = mods[name]
    work, f = np.zeros(len(mods), widened(WORK)), np.zeros(len(mods), np.longdouble)
    status = _KERNELS['inverse'](wide, work, *(np.asarray(a, np.longdouble) for a in (env, x, xd, xdd)), f)
    assert status == 0
    return f
