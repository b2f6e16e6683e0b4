"""Passive joints: serial joints that nothing drives, as those that a load hangs from."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...model.errors import ActuationError, StateError, check_name
from ...model.mechanism.description import Pose
from ..arguments import Array, vector
from ..orientation import rotation

if TYPE_CHECKING:
    from ..manipulator import Manipulator

REST_TOLERANCE = 1e-6       # of the weight: efforts that passive joints may lack at rest


def passive_joints(manipulator: Manipulator) -> tuple[str, ...]:
    """Names of the `serial_joints` that no actuator drives, in the order of the coordinates."""
    serial = manipulator.serial_joints
    return tuple(name for name in manipulator.coordinates if name in serial and name not in manipulator.actuators)


def underactuated(manipulator: Manipulator) -> bool:
    """Whether actuators drive every coordinate but the `passive_joints`, of which there are some."""
    m, count = manipulator, len(manipulator.passive_joints)
    return not m.floating and 0 < count and 0 < m.dof - count <= len(m.actuators)


def driven_machine(manipulator: Manipulator) -> Manipulator:
    """The Manipulator of the driven coordinates: the passive joints fixed at the initial position.

    The machine itself where it is not `underactuated`.
    """
    m = manipulator
    if not m.underactuated:
        return m
    position = dict(zip(m.coordinates, m.initial_position))
    return with_fixed_joints(m, {name: position[name] for name in m.passive_joints})


def with_fixed_joints(manipulator: Manipulator, positions: Mapping[str, float]) -> Manipulator:
    """Return a new Manipulator in which `positions` {joint: position} of serial joints are fixed [m, rad].

    The fixed joints are none of its joints, and links that they carried are part of their parents.  Raises
    UnknownNameError for a joint that is none of `serial_joints`, ActuationError for an actuator.
    """
    m, description = manipulator, manipulator.machine.description
    joints, interfaces = dict(description.joints), dict(description.interfaces)
    for name, position in positions.items():
        check_name(name, m.serial_joints, f"fixed joint '{name}': no joint of '{m.name}' outside all loops")
        if name in m.actuators:
            raise ActuationError(f"fixed joint '{name}': it is an actuator of '{m.name}'; expected one that is none")
        q = float(vector(f"position of '{name}'", [position], 1)[0])
        joint = joints[name]
        turned = rotation((*np.sin(0.5 * q) * joint.axis, np.cos(0.5 * q)))
        moved = Pose(np.eye(3), q * joint.axis) if joint.type == 'prismatic' else Pose(turned, np.zeros(3))
        joints[name] = replace(joint, type='fixed', origin=joint.origin @ moved)
        interfaces.pop(name, None)
    coordinates = tuple(name for name in m.coordinates if name not in positions)
    return m.rebuilt(replace(description, joints=joints, interfaces=interfaces), coordinates)


def resting_efforts(manipulator: Manipulator, x: Array) -> Array:
    """Return the actuator efforts (actuators,) that hold a machine with passive joints at rest at x (nx,), or of rows.

    Raises StateError where x is no position of rest: passive joints would move.
    """
    m = manipulator
    if x.ndim == 2:
        return np.array([resting_efforts(m, row) for row in x]).reshape(len(x), len(m.actuators))
    rest = np.zeros(m.dof)
    needed = m.generalized_forces(x, rest, rest)
    lacking = {name: float(needed[m.coordinates.index(name)]) for name in m.passive_joints}
    worst = max(lacking, key=lambda name: abs(lacking[name]))
    if abs(lacking[worst]) > REST_TOLERANCE * (1.0 + m.total_mass * np.linalg.norm(m.gravity)):
        raise StateError(f"'{m.name}' does not rest at this x: passive joint '{worst}' lacks {lacking[worst]:.4g} N or "
                         'N m; expected a position of rest, as `equilibrium(x)` finds it')
    return np.linalg.lstsq(m.actuator_map(x).T, needed, rcond=None)[0]
