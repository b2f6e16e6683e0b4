"""Where links are, how fast they move and what acts between them: one state, or rows of states."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...kernels.rigid_body import entry
from ...model.errors import UnknownNameError, did_you_mean, shorten
from ..arguments import Array, Vector, Wrenches
from ..environment import BaseDrive, BaseMotion, find_link
from ..errors_from_status import in_row
from ..inputs import environment_at, over_rows, required_forces, states
from ..kinematics import base_pose, placed, pose_in_base, specific_force_of_link, twist_of_link, wrench_on_link
from .link_point import point_record, poses

if TYPE_CHECKING:
    from ..manipulator import Manipulator

ORIGIN = (0.0, 0.0, 0.0)


def link_pose(manipulator: Manipulator, x: Vector, link: str) -> Array:
    """Return the pose (4, 4) of a link in the base frame, in the world where the base floats; (N, 4, 4) for rows.

    x (nx,) or (N, nx).  Raises UnknownNameError, ShapeError, NonFiniteError, UnreachableStrokeError, TogglePointError.
    """
    m = manipulator
    x, = states(m, batch=True, x=x)
    place = find_link(m.machine, link)
    if x.ndim == 2:
        return _poses(m, x, link)
    zero, pose = np.zeros(m.dof), np.eye(4)
    turn, position = pose_in_base(placed(m, x, zero, zero), place)
    pose[:3, :3], pose[:3, 3] = turn, position
    if m.floating and place.module >= 0:
        base, origin = base_pose(m, x)
        pose[:3, :3], pose[:3, 3] = base @ turn, base @ position + origin
    return pose


def _poses(m: Manipulator, x: Array, link: str) -> Array:
    out = np.tile(np.eye(4), (len(x), 1, 1))
    out[:, :3] = poses(m, point_record(m, link, ORIGIN), x)
    for row in np.flatnonzero(np.isnan(out[:, 0, 0])):
        with in_row(row):
            out[row] = link_pose(m, x[row], link)       # raises, and says why
    if m.floating and m.machine.places[link].module >= 0:
        frames = np.tile(np.eye(4), (len(x), 1, 1))
        for frame, row in zip(frames, x):
            frame[:3, :3], frame[:3, 3] = base_pose(m, row)
        out = frames @ out
    return out


def link_twist(manipulator: Manipulator, x: Vector, xd: Vector, link: str) -> Array:
    """Return the twist (v, w) (6,) of a link's origin in link axes, (N, 6) for rows of states.

    In inertial space where the base floats.  Errors as `link_pose`.
    """
    m = manipulator
    x, xd = states(m, batch=True, x=x, xd=xd)
    if x.ndim == 2:
        return over_rows(lambda *row: link_twist(m, row[0], row[1], link), (6,), x, xd)
    return twist_of_link(placed(m, x, xd, np.zeros(m.dof)), find_link(m.machine, link))


def link_motion(manipulator: Manipulator, x: Vector, xd: Vector, xdd: Vector, link: str, *,
                base: BaseMotion | None = None) -> tuple[Array, Array]:
    """Return the twist (v, w) (6,) of a link's origin, and its acceleration less gravity (3,), in link axes.

    base: `BaseMotion`; its twist counts.  In inertial space: what an inertial measurement unit on the link senses.
    (N, 6) and (N, 3) for rows of states.
    """
    m = manipulator
    x, xd, xdd = states(m, batch=True, x=x, xd=xd, xdd=xdd)
    if x.ndim == 2:
        out = over_rows(lambda *row: np.concatenate(link_motion(m, row[0], row[1], row[2], link, base=base)), (9,),
                        x, xd, xdd)
        return out[:, :6], out[:, 6:]
    around, place = environment_at(m, x, base), find_link(m.machine, link)
    required_forces(m, x, xd, xdd, around)
    return twist_of_link(around.handle, place), specific_force_of_link(around.handle, place)


def joint_wrench(manipulator: Manipulator, x: Vector, xd: Vector, xdd: Vector, joint: str, *,
                 base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None) -> Array:
    """Return the wrench (f, m) (6,) by which a joint moves its child link, at its origin in its axes; (N, 6) for rows.

    Effort of the actuator and friction are part of it.  base, wrenches: as in `forward_dynamics`.  Raises
    UnknownNameError for a joint that is none of `serial_joints`.
    """
    m = manipulator
    if joint not in m.serial_joints:
        raise UnknownNameError(f"joint '{shorten(str(joint))}': no joint of '{m.name}' that carries its load "
                               f'alone, without a closed loop{did_you_mean(str(joint), m.serial_joints)}')
    x, xd, xdd = states(m, batch=True, x=x, xd=xd, xdd=xdd)
    if x.ndim == 2:
        return over_rows(lambda *row: joint_wrench(m, row[0], row[1], row[2], joint, base=base, wrenches=wrenches),
                         (6,), x, xd, xdd)
    around = environment_at(m, x, base, wrenches)
    required_forces(m, x, xd, xdd, around)
    return wrench_on_link(around.handle, m.machine.places[m.machine.description.joints[joint].child])


def base_wrench(manipulator: Manipulator, x: Vector, xd: Vector, xdd: Vector, *,
                base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None) -> Array:
    """Return the wrench (f, m) (6,) of the environment on the base, at its origin in its axes; (N, 6) for rows.

    Arguments and errors as `forward_dynamics`.
    """
    m = manipulator
    x, xd, xdd = states(m, batch=True, x=x, xd=xd, xdd=xdd)
    if x.ndim == 2:
        return over_rows(lambda *row: base_wrench(m, row[0], row[1], row[2], base=base, wrenches=wrenches), (6,), x, xd,
                         xdd)
    around = environment_at(m, x, base, wrenches)
    f, reaction = required_forces(m, x, xd, xdd, around), np.empty(6)
    if m.floating:
        return f[:6]
    entry.read_base_reaction(around.handle.tree, around.handle.loops, reaction)
    return reaction - around.on_base
