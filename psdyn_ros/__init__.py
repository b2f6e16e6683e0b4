"""Analytic O(n) dynamics and control of heavy-duty manipulators with cylinder-driven closed loops.

    manipulator = psdyn_ros.load('crane.urdf')
    xdd = manipulator.forward_dynamics(x, xd, f)
    f = manipulator.inverse_dynamics(x, xd, xdd)
"""
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

__all__ = ['ActuationError', 'AssemblyModeError', 'BaseDrive', 'BaseMotion', 'compiled', 'DuplicateNameError',
           'HybridDynamics', 'InertiaError', 'Limits', 'load', 'LoopClosureError', 'LoopError', 'Manipulator',
           'MeasurementError', 'ModelError', 'NonFiniteError', 'OutOfReachError', 'PsdynError', 'Result', 'ShapeError',
           'StateError', 'TogglePointError', 'TreeError', 'UnknownNameError', 'UnreachableStrokeError', 'XmlError']
