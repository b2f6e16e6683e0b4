"""The limits within which a motion is planned, from the files of a machine."""
from __future__ import annotations

from os import PathLike

from ..api.arguments import Array
from ..api.manipulator import Manipulator
from ..model.parameters.hydraulics import read_hydraulics
from .core.assembly import ControllerConfig
from .offline.time_optimal import PathLimits, limits_of

SHARE = 0.9             # of efforts, pressure, openings and flow; the rest is left to the controller


def declared_limits(manipulator: Manipulator, hydraulics: str | PathLike[str] | None = None,
                    safety: str | PathLike[str] | None = None, *, pressure: float | None = None,
                    share: float = SHARE) -> tuple[PathLimits, Array | None]:
    """Return (`PathLimits`, jerk (dof,) or None) of a machine with these YAML files, None: none.

    Accelerations and jerks are those of the safety file.  pressure: of the pump [Pa], by default that of the supply.
    share: of efforts, pressure, openings and flow.  Raises what the files are refused with.
    """
    oil = None if hydraulics is None else read_hydraulics(hydraulics, manipulator.actuators)
    acceleration = jerk = None
    if safety is not None:
        declared = ControllerConfig.of_machine(manipulator, oil, safety=safety).declaration
        acceleration, jerk = (declared.of_coordinates(manipulator.driven_machine.coordinates, values)
                              for values in (declared.acceleration, declared.jerk))
    return limits_of(manipulator, oil, acceleration=acceleration, pressure=pressure, share=share), jerk
