"""Names of coordinates, and checks of arguments: arrays of numbers and lists of names; errors name the argument."""
import numpy as np

from ..model.errors import ModelError, NonFiniteError, ShapeError

BASE = ('base_x', 'base_y', 'base_z', 'base_rx', 'base_ry', 'base_rz')


def coordinate_names(manipulator):
    """Return names (dof,) of the entries of xd; base_x to base_rz are along and about the axes of a floating base."""
    return (*(BASE if manipulator.floating else ()), *manipulator.coordinates)


def vector(what, values, shape):
    """Return a fresh array of finite numbers of a shape (or length); else raise, naming `what`."""
    array = np.array(numbers(what, values), dtype=float)
    shape = shape if isinstance(shape, tuple) else (shape,)
    if array.shape != shape:
        raise ShapeError(f'{what} has shape {array.shape}; expected {shape}')
    if not np.isfinite(array).all():
        raise NonFiniteError(f'{what} = {array.tolist()} is not finite')
    return array


def numbers(what, values):
    """Return the values as an array of real numbers of any type; text, complex and ragged ones are refused."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):         # ragged
        array = None
    if array is None or array.dtype.kind not in 'fiub':
        raise ShapeError(f'{what} is not an array of numbers: {values!r:.80}')
    return array


def pair(what, value, expected):
    """Return the two parts of a value; else raise ShapeError, naming `what` and what is expected."""
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ShapeError(f'{what}: expected a pair ({expected})') from None
    return first, second


def names(what, values, error=ModelError):
    """Return names as a tuple of str; one name alone counts as a list of one."""
    try:
        found = (values,) if isinstance(values, str) else tuple(values)
    except TypeError:
        found = (None,)
    if not all(isinstance(name, str) for name in found):
        raise error(f'{what}={values!r:.80}: expected a list of joint names')
    return found
