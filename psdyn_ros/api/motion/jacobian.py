"""Jacobian of a point on a link and its rate, by the coordinates or by other joints, one state or rows."""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ...kernels.motion.link import jacobian_rows
from ...kernels.rigid_body.mechanism import Handle
from ...model.errors import ActuationError, DuplicateNameError, StateError, TogglePointError, check_name
from ..arguments import Array, Vector
from ..arguments import names as checked_names
from ..batch import run_chunks
from ..inputs import states
from ..kinematics import base_pose
from .link_point import point_record

if TYPE_CHECKING:
    from ..manipulator import Manipulator

MIN_SINGULAR_SHARE = 1e-10      # singular values of a map of joints below this share of the largest count as zero


def jacobian(manipulator: Manipulator, x: Vector, link: str, *, point: npt.ArrayLike = (0.0, 0.0, 0.0),
             joints: Iterable[str] | None = None, axes: Literal['base', 'link'] = 'base') -> Array:
    """Return J (6, dof) with the twist (v, w) = J xd of a point of a link, (N, 6, dof) for rows of positions.

    x (nx,) or (N, nx).  point (3,) in link axes [m].  joints: names of joints whose rates J is to take instead of those
    of the coordinates, such as `actuators`, or boom angles instead of strokes; those of a floating base stay first.
    Where they are more than the coordinates, J is for rates that the loops allow.
    axes: 'base', in which `link_pose` is (those of the world where the base floats), or 'link', those of `link_twist`.
    Raises UnknownNameError, TogglePointError where the joints do not fix the coordinates, and what `link_pose` raises.
    """
    return _jacobians(manipulator, x, None, link, point, joints, axes)[0]


def jacobian_rate(manipulator: Manipulator, x: Vector, xd: Vector, link: str, *,
                  point: npt.ArrayLike = (0.0, 0.0, 0.0), joints: Iterable[str] | None = None,
                  axes: Literal['base', 'link'] = 'base') -> Array:
    """Return dJ/dt (6, dof) of `jacobian` at x (nx,), xd (dof,), (N, 6, dof) for rows of states.

    d/dt (J xd) = J xdd + dJ/dt xd.  xd: rates of the coordinates, whichever `joints` are.  Arguments and errors as
    `jacobian`.
    """
    return _jacobians(manipulator, x, xd, link, point, joints, axes)[1]


def _jacobians(m: Manipulator, x: Vector, xd: Vector | None, link: str, point: npt.ArrayLike,
               joints: Iterable[str] | None, axes: str) -> tuple[Any, Any]:
    """Return J and its rate, which is None where xd is None."""
    if axes not in ('base', 'link'):
        raise StateError(f"axes = {axes!r}: expected 'base' or 'link'")
    rows = None if joints is None else _joint_rows(m, joints)
    record = point_record(m, link, point)
    arrays = states(m, batch=True, x=x) if xd is None else states(m, batch=True, x=x, xd=xd)
    single = arrays[0].ndim == 1
    x = np.atleast_2d(arrays[0])
    xd = np.zeros((len(x), m.dof)) if xd is None else np.atleast_2d(arrays[1])
    pose, J, Jd = _read(m, record, x, xd, rows is not None or len(arrays) > 1)
    T, Td = J[:, 6:, m.dof - len(m.coordinates):], Jd[:, 6:, m.dof - len(m.coordinates):]
    A, Ad = _reference_axes(m, record, x, xd, pose, J[:, :6], Jd[:, :6], axes)
    if rows is not None and joints is not None:
        A, Ad = _by_joints(m, A, Ad, T[:, rows], Td[:, rows], joints)
    rate = None if len(arrays) == 1 else Ad[0] if single else Ad
    return A[0] if single else A, rate


def _joint_rows(m: Manipulator, joints: Iterable[str]) -> list[int]:
    joints = checked_names('joints', joints)
    for name in joints:
        check_name(name, m.joints, f"joint '{name}': no movable joint of '{m.name}'")
        if joints.count(name) > 1:
            raise DuplicateNameError(f"joint '{name}' is named {joints.count(name)} times")
    if len(joints) < len(m.coordinates):
        raise ActuationError(f"the rates of {', '.join(joints)} do not fix those of the {len(m.coordinates)} "
                             f"coordinates of '{m.name}' ({', '.join(m.coordinates)})")
    return [m.joints.index(name) for name in joints]


def _read(m: Manipulator, record: Any, x: Array, xd: Array, rates: bool) -> tuple[Array, Array, Array]:
    """Return poses, J and Jd (N, 6 + joints, dof) over a base at rest, the first six rows in base axes."""
    joints = len(m.joints) if rates else 0
    pose, J = np.empty((len(x), 3, 4)), np.empty((len(x), 6 + joints, m.dof))
    Jd = np.zeros(J.shape if rates else (0, *J.shape[1:]))
    motion = np.concatenate((x, xd), axis=1)
    if m.floating:
        motion[:, m.nx:m.nx + 6] = 0.0

    def run(copied: Handle, first: int, last: int) -> tuple[int, int]:
        scratch = np.zeros(m.dof), np.zeros(m.dof), np.zeros((3, 6 + joints)), np.zeros((3, joints))
        return jacobian_rows(copied.tree, copied.loops, record, motion, scratch, (pose, J, Jd), first, last)

    run_chunks(m, m.handle(), len(x), {'x': x, 'xd': xd}, run)
    if not rates:
        Jd = np.zeros_like(J)
    for half in (slice(0, 3), slice(3, 6)):
        for matrix in (J, Jd):
            matrix[:, half] = pose[:, :, :3] @ matrix[:, half]
    return pose, J, Jd


def _reference_axes(m: Manipulator, record: Any, x: Array, xd: Array, pose: Array, J: Array, Jd: Array,
                    axes: str) -> tuple[Array, Array]:
    """Return J (N, 6, dof) and its rate in the axes asked for, those of a floating base included."""
    first = m.dof - len(m.coordinates)
    J, Jd = J.copy(), Jd.copy()
    relative = np.einsum('nij,nj->ni', J[:, :, first:], xd[:, first:])
    moved = m.floating and record[0]['module'] >= 0
    if moved:
        for half in range(2):
            J[:, 3 * half:3 * half + 3, 3 * half:3 * half + 3] = np.eye(3)
        J[:, :3, 3:6], Jd[:, :3, 3:6] = -_cross_matrix(pose[:, :, 3]), -_cross_matrix(relative[:, :3])
    if axes == 'link':
        turn, spin = pose[:, :, :3].transpose(0, 2, 1), -_cross_matrix(relative[:, 3:])
    elif moved:
        turn = np.array([base_pose(m, row)[0] for row in x])
        spin = _cross_matrix(xd[:, 3:6])
    else:
        return J, Jd
    for rows in (slice(0, 3), slice(3, 6)):
        Jd[:, rows] = turn @ (Jd[:, rows] + spin @ J[:, rows])
        J[:, rows] = turn @ J[:, rows]
    return J, Jd


def _cross_matrix(a: Array) -> Array:
    """Return matrices (N, 3, 3) with matrix @ b = a x b, for a (N, 3)."""
    out = np.zeros((len(a), 3, 3))
    out[:, 2, 1], out[:, 0, 2], out[:, 1, 0] = a.T
    out[:, 1, 2], out[:, 2, 0], out[:, 0, 1] = -a.T
    return out


def _by_joints(m: Manipulator, J: Array, Jd: Array, T: Array, Td: Array, joints: Iterable[str]) -> tuple[Array, Array]:
    """Return J and its rate for the rates T xd of joints: J T^+."""
    first = m.dof - len(m.coordinates)
    values = np.linalg.svd(T, compute_uv=False)
    bad = np.flatnonzero(~(values[:, -1] > MIN_SINGULAR_SHARE * values[:, 0]))
    if bad.size:
        raise TogglePointError(f"row {bad[0]}: the rates of {', '.join(joints)} do not fix those of the coordinates of "
                               f"'{m.name}' here (smallest singular value {values[bad[0], -1]:.2g})")
    P = np.linalg.pinv(T)
    # of a left inverse (T'T)^-1 T'
    G = P @ P.transpose(0, 2, 1)
    Pd = -P @ Td @ P + G @ Td.transpose(0, 2, 1) @ (np.eye(T.shape[1]) - T @ P)
    return (np.concatenate((J[:, :, :first], J[:, :, first:] @ P), axis=2),
            np.concatenate((Jd[:, :, :first], Jd[:, :, first:] @ P + J[:, :, first:] @ Pd), axis=2))
