"""Machines as pictures need them: those of the package, and a delta robot; each is loaded once."""

from functools import cache

from psdyn_ros.api.load import load

from .machines import URDF
from .parallel_robots import delta_robot


@cache
def machine(name):
    """Return the `Manipulator` of a machine of the package, or of 'delta'."""
    return load(delta_robot().xml if name == 'delta' else URDF / f'{name}.urdf', allow_unphysical=name == 'balloon')
