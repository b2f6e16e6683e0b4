"""The kernels' own text evaluated in extended precision (80 bit), to tell rounding from the other engine's error.

Records are copied with every 'f8' widened, and the compiled functions are replaced by the Python functions that
they were made of.
"""

import inspect
import math

import numpy as np

from psdyn_ros.kernels import compiler, inverse, motion, spatial
from psdyn_ros.kernels.records import MODULE, WORK


class _Functions:
    """`math` for any floating type."""

    sqrt, cos, sin, tanh, floor = map(staticmethod, (np.sqrt, np.cos, np.sin, np.tanh, np.floor))
    pi, inf, nan = math.pi, math.inf, math.nan


def widened(dtype, number=np.longdouble):
    """Return a dtype of records with every 'f8' replaced by `number`."""
    wide = {np.dtype('f8'): number}
    return np.dtype([(name, wide.get(field.base, field.base), field.shape)
                     for name, (field, *_) in ((name, dtype.fields[name]) for name in dtype.names)])


def interpreted(*modules):
    """Return one namespace with the plain Python functions of kernel modules, calling each other."""
    space = {}
    for module in modules:
        for name, value in vars(module).items():
            if name.startswith('__'):
                continue
            function = getattr(value, 'py_func', value)
            if inspect.isfunction(function):
                space[name] = type(function)(function.__code__, space, name, function.__defaults__)
            else:
                space.setdefault(name, value)
    space['math'] = _Functions
    return space


_KERNELS = interpreted(compiler, spatial, motion, inverse)


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
