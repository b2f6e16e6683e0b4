"""Reference motion, control laws, checks and safety of a controller, without ROS: the names that users type."""

from ..model.parameters.hydraulics import read_hydraulics
from ..model.parameters.safety import read_safety
from .closed_loop import ClosedLoop, Measurement, PointStream, Recording, follow
from .core.assembly import ControllerConfig, assemble, command_interfaces
from .core.core import ControlCore, Output
from .core.inputs import MeasuredState
from .offline.planned_motion import PlannedMotion, plan_motion
from .offline.time_optimal import PathLimits, Plan, limits_of, plan
from .reference.trajectory import TrajectoryError, Waypoints
from .safety.fault_table import State
from .safety.state_machine import SafetyError

__all__ = ['assemble', 'ClosedLoop', 'command_interfaces', 'ControlCore', 'ControllerConfig', 'follow', 'limits_of',
           'MeasuredState', 'Measurement', 'Output', 'PathLimits', 'Plan', 'plan', 'plan_motion', 'PlannedMotion',
           'PointStream', 'read_hydraulics', 'read_safety', 'Recording', 'SafetyError', 'State', 'TrajectoryError',
           'Waypoints']
