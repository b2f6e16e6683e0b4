"""Limits of joints, with their names and units."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...model.errors import ActuationError, check_name
from .result import Axis, Result


@dataclass(frozen=True, repr=False, eq=False)
class Limits(Result):
    """Declared limits, in the order of their joints; infinite where nothing is declared.

    `limits.of('slew')` has those of one joint, `limits.to_dict()` those of all by name.
    """

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'lower': ('x',), 'upper': ('x',), 'velocity': ('xd',),
                                                     'effort': ('f',)}

    lower: np.ndarray
    """(n,) [m, rad]"""
    upper: np.ndarray
    """(n,) [m, rad]"""
    velocity: np.ndarray
    """(n,) [m/s, rad/s]"""
    effort: np.ndarray
    """(n,) [N, N m]"""

    def of(self, joint: str) -> dict[str, float]:
        """Return {'lower', 'upper', 'velocity', 'effort': number} of one joint; UnknownNameError."""
        names = self.axes['x'].names
        check_name(joint, names, f"limits of '{joint}': no such joint")
        return {field: float(values[names.index(joint)]) for field, values in zip(self.AXES, self)}


def limits_of(joints: Mapping[str, Any], names: tuple[str, ...]) -> Limits:
    """Return the `Limits` of joints by name, of {name: joint of the description}."""
    return Limits(*(np.array([getattr(joints[name], what) for name in names], dtype=float)
                    for what in ('lower', 'upper', 'velocity', 'effort')), axes=axes_of_joints(joints, names))


def check_able(manipulator: Any, what: str, actuators: Iterable[str] | None = None) -> None:
    """Raise ActuationError where the limit of `what`, 'effort' or 'velocity', of an actuator is zero; None: of any."""
    m = manipulator
    for name, limit in zip(m.actuators, getattr(m.limits, what)):
        if limit == 0.0 and name in (m.actuators if actuators is None else actuators):
            raise ActuationError(f"actuator '{name}' of '{m.name}' has the {what} limit 0, so that it does nothing; "
                                 f'expected a limit above zero, no {what} in its <limit> where none is known, or no '
                                 'command interface of a passive joint')


def axes_of_joints(joints: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Axis]:
    """Return the `Axis` of positions 'x', rates 'xd', accelerations 'xdd' and efforts 'f' of joints by name."""
    slides = [joints[name].type == 'prismatic' for name in names]
    length = [('m', 'm/s', 'm/s^2', 'N') if slide else ('rad', 'rad/s', 'rad/s^2', 'N m') for slide in slides]
    return {key: Axis(names, tuple(units[k] for units in length)) for k, key in enumerate(('x', 'xd', 'xdd', 'f'))}
