"""Analytic O(n) dynamics and control of heavy-duty manipulators with cylinder-driven closed loops.

    manipulator = psdyn_ros.load('crane.urdf')
    xdd = manipulator.forward_dynamics(x, xd, f)
    f = manipulator.inverse_dynamics(x, xd, xdd)
"""
from importlib.metadata import PackageNotFoundError as _PackageNotFoundError
from importlib.metadata import version as _version

from .api.environment import BaseDrive, BaseMotion
from .api.hybrid import HybridDynamics
from .api.load import load
from .api.manipulator import Manipulator
from .api.motion.inverse_kinematics import OutOfReachError
from .api.results.limits import Limits
from .api.results.result import Result
from .kernels.runtime.compiler import compiled
from .model.errors import (
    ActuationError,
    AssemblyModeError,
    DuplicateNameError,
    InertiaError,
    LoopClosureError,
    LoopError,
    MeasurementError,
    ModelError,
    NonFiniteError,
    PsdynError,
    ShapeError,
    StateError,
    TogglePointError,
    TreeError,
    UnknownNameError,
    UnreachableStrokeError,
    XmlError,
)
from .validation.bag_arrays import Bag, read_bag

try:
    __version__ = _version('psdyn_ros')
except _PackageNotFoundError:       # a source tree that is not installed
    __version__ = '0+unknown'

__all__ = ['__version__', 'ActuationError', 'AssemblyModeError', 'Bag', 'BaseDrive', 'BaseMotion', 'compiled',
           'DuplicateNameError', 'HybridDynamics', 'InertiaError', 'Limits', 'load', 'LoopClosureError', 'LoopError',
           'Manipulator', 'MeasurementError', 'ModelError', 'NonFiniteError', 'OutOfReachError', 'PsdynError',
           'read_bag', 'Result', 'ShapeError', 'StateError', 'TogglePointError', 'TreeError', 'UnknownNameError',
           'UnreachableStrokeError', 'XmlError']
