"""The door of the blocks: numbers, names and properties, each refused with what was expected."""
import numpy as np

from ...model.errors import InertiaError, NonFiniteError, ShapeError
from .errors import NetworkError


def numbers(label, value, shape):
    """Return a float array of a shape, a copy; ShapeError or NonFiniteError otherwise."""
    try:
        array = np.array(value, float)
    except (TypeError, ValueError):
        raise ShapeError(f'{label} = {value!r:.80}: expected numbers of shape {shape}') from None
    if array.shape != shape:
        raise ShapeError(f'{label} has shape {array.shape}; expected {shape}')
    if not np.isfinite(array).all():
        raise NonFiniteError(f'{label} = {value!r:.80} has NaN or infinity; expected finite numbers')
    return array


def nonnegative(label, value):
    """Return a mass."""
    number = float(numbers(label, value, ()))
    if number < 0:
        raise InertiaError(f'{label} = {number:g}; expected zero or more')
    return number


def inertia_matrix(label, value):
    """Return a symmetric positive semidefinite (3, 3)."""
    return _semidefinite(label, numbers(label, value, (3, 3)), InertiaError)


def dual_matrix(label, value):
    """Return a symmetric positive semidefinite (6, 6) of a stiffness or damping."""
    return _semidefinite(label, numbers(label, value, (6, 6)), NetworkError)


def _semidefinite(label, matrix, error):
    scale = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > 1e-9 * scale:
        raise error(f'{label} is not symmetric')
    if np.linalg.eigvalsh(matrix).min() < -1e-9 * scale:
        raise error(f'{label} is not positive semidefinite')
    return 0.5 * (matrix + matrix.T)


def rotation_matrix(label, value):
    """Return a rotation (3, 3)."""
    matrix = numbers(label, value, (3, 3))
    if np.abs(matrix.T @ matrix - np.eye(3)).max() > 1e-9 or np.linalg.det(matrix) < 0:
        raise NetworkError(f'{label} is no rotation; expected a proper orthogonal matrix')
    return matrix


def unit_vector(label, value):
    """Return the direction (3,) of a vector."""
    vector = numbers(label, value, (3,))
    length = np.linalg.norm(vector)
    if length < 1e-9:
        raise NetworkError(f'{label} has length {length:g}; expected a direction')
    return vector / length


def block_name(name):
    """Return a name that can stand before the dot of 'block.port'."""
    if not isinstance(name, str) or not name or '.' in name:
        raise NetworkError(f"block name {name!r:.80}: expected a text without '.', which divides block and port")
    return name


def port_points(block, ports):
    """Return {port C: PC (3,)}; 'P' is every block's port to its parent."""
    if not isinstance(ports, dict):
        raise ShapeError(f"ports of '{block}' = {ports!r:.80}: expected {{name: point}}")
    for port in ports:
        if not isinstance(port, str) or not port or '.' in port or port == 'P':
            raise NetworkError(f"block '{block}': port name {port!r:.80}; expected a text without '.', not 'P', "
                               'which is the port to the parent')
    return {port: numbers(f"port '{block}.{port}'", PC, (3,)) for port, PC in ports.items()}
