"""Inverse kinematics: the coordinates at which a point of a link is where it is wanted, or why there are none."""
from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...kernels.motion import reach as kernels
from ...model.errors import ShapeError, StateError, UnknownNameError, check_name
from ..arguments import Array, Vector, by_name, numbers, vector
from ..arguments import names as checked_names
from ..kinematics import base_pose
from ..orientation import quaternion
from .jacobian import jacobian
from .link_point import point_record
from .samples import ranges, sampled_poses, stops_of

if TYPE_CHECKING:
    from ..manipulator import Manipulator

MAX_STARTS = 32             # searches from sampled positions, after the one from the start
SAMPLES = 4096
ORTHOGONAL = 1e-6           # a rotation may miss R'R = 1 by so much
AT_LIMIT_SHARE = 1e-9       # of the range of a coordinate


class OutOfReachError(StateError):
    """A target that no position within the limits reaches.

    x (nx,) is the nearest position found, distance [m] and angle [rad] are what is missing there, at_limit has the
    names of joints whose limits keep it from being nearer.
    """

    def __init__(self, message: str, x: Array, distance: float, angle: float, at_limit: tuple[str, ...]) -> None:
        super().__init__(message)
        self.x, self.distance, self.angle, self.at_limit = x, distance, angle, at_limit


def inverse_kinematics(manipulator: Manipulator, link: str, target: npt.ArrayLike, *, start: Vector | None = None,
                       free: Iterable[str] | None = None, point: npt.ArrayLike = (0.0, 0.0, 0.0),
                       length: float = 1.0, tolerance: float = 1e-8) -> Array:
    """Return x (nx,) within all limits at which a point of a link is at a target.

    target: position (3,) or pose (4, 4) in the frame of `link_pose`: base axes, or the world where the base floats.
    start (nx,): position from which the search starts, by default the initial one.  Where more than one position
    reaches the target, as of a machine with more coordinates than the target has, x is next to the start, where every
    coordinate is measured by its range.  free: names of the coordinates that may move, by default all; the others, and
    a floating base, stay at the start.  point (3,) in link axes [m].
    length: error of the position [m] that weighs as much as one radian where a pose is out of reach.
    tolerance: of the position [m] and the orientation [rad].
    Raises OutOfReachError with the nearest position, by how much it misses and which limits are in the way;
    UnknownNameError, ShapeError, NonFiniteError, StateError.
    """
    m = manipulator
    start = m.initial_position if start is None else vector('start', by_name(m, 'x', start), m.nx)
    search = Search(m, link, point, start, _held(m, free), _checked(length, tolerance))
    return search.run(*_target(m, target, start))


def _checked(length: float, tolerance: float) -> tuple[float, float]:
    length, tolerance = (float(vector(what, [value], 1)[0]) for what, value in (
        ('length', length), ('tolerance', tolerance)))
    if length <= 0.0 or tolerance <= 0.0:
        raise StateError(f'length = {length:g} and tolerance = {tolerance:g} must be positive')
    return length, tolerance


def _held(m: Manipulator, free: Iterable[str] | None) -> Array:
    """Return (n,) bool: joint coordinates that do not move."""
    if free is None:
        return np.zeros(len(m.coordinates), dtype=bool)
    free = checked_names('free', free, UnknownNameError)
    for name in free:
        check_name(name, m.coordinates, f"free: no coordinate '{name}' of '{m.name}'")
    return np.array([name not in free for name in m.coordinates], dtype=bool)


def _target(m: Manipulator, target: Any, start: Array) -> tuple[Array, Array | None]:
    """Return (position (3,), rotation (3, 3) or None) of a target in the base frame."""
    array = numbers('target', target)
    if array.shape not in ((3,), (4, 4)):
        raise ShapeError(f'target has shape {array.shape}; expected a position (3,) or a pose (4, 4)')
    array = vector('target', array, array.shape)
    if array.shape == (3,):
        position, turn = array, None
    else:
        position, turn = array[:3, 3], array[:3, :3]
        if abs(turn.T @ turn - np.eye(3)).max() > ORTHOGONAL or np.linalg.det(turn) < 0.0 \
                or abs(array[3] - (0.0, 0.0, 0.0, 1.0)).max() > ORTHOGONAL:
            raise StateError(f'target = {array.tolist()} is no pose; expected a rotation, a position and a last row '
                             '0 0 0 1')
    if m.floating:
        base, origin = base_pose(m, start)
        position = base.T @ (position - origin)
        turn = None if turn is None else base.T @ turn
    return position, turn


class Search:
    """Searches of a point of a link from one position after another.

    held (n,) bool: joint coordinates that stay at start (nx,).  settings: (length, tolerance) of `inverse_kinematics`.
    Targets are in the base frame.
    """

    def __init__(self, m: Manipulator, link: str, point: npt.ArrayLike, start: Array, held: Array,
                 settings: tuple[float, float] = (1.0, 1e-8)) -> None:
        self._m, self._link, self._point, self._start, self._held = m, link, point, start, held
        self._record, (self._length, self._tolerance) = point_record(m, link, point), settings
        self._ranges, self._first = ranges(m), m.nx - len(m.coordinates)
        limits = m.coordinate_limits
        stays = start[self._first:]
        self._lower, self._upper = np.where(held, stays, limits.lower), np.where(held, stays, limits.upper)
        self._stops = stops_of(m)

    def run(self, position: Array, turn: Array | None) -> Array:
        """Return x, or raise OutOfReachError."""
        target, scratch = self._record_of(position, turn), self._scratch(6 if turn is not None else 3, self._start)
        inside = self._start.copy()
        inside[self._first:] = np.clip(inside[self._first:], self._lower, self._upper)
        outcome, x, errors = self._from(inside, target, scratch)
        if outcome == kernels.REACHED:
            return x
        best = (np.inf if outcome == kernels.BLOCKED else self._miss(errors, turn)), x, errors
        for first in self._other_starts(position, turn):
            outcome, x, errors = self._from(first, target, scratch)
            if outcome == kernels.REACHED:
                return x
            if outcome == kernels.STOPPED and self._miss(errors, turn) < best[0]:
                best = self._miss(errors, turn), x, errors
        raise self._error(position, turn, *best[1:])

    def nearest(self, position: Array, x: Array) -> Array:
        """Return the position (nx,) next to x at which the point is nearest to a position (3,)."""
        return self._from(x, self._record_of(position, None), self._scratch(3, x))[1]

    def _record_of(self, position: Array, turn: Array | None) -> Array:
        target = np.zeros(1, kernels.TARGET)
        target[0] = (np.eye(3) if turn is None else turn.T, position, 0.0 if turn is None else self._length,
                     self._tolerance)
        return target

    def _from(self, x: Array, target: Any, scratch: Any) -> tuple[int, Array, Array]:
        """Return (outcome, x, errors (3,)) of a search from x."""
        x, errors = x.copy(), np.zeros(3)
        handle = self._stops.handle
        outcome = kernels.reach(handle.tree, handle.loops, self._record, target, scratch, True, x, errors)
        return outcome, x, errors

    def _miss(self, errors: Array, turn: Array | None) -> float:
        return errors[0] + (0.0 if turn is None else self._length * errors[1])

    def _scratch(self, rows: int, start: Array) -> Any:
        m, n = self._m, len(self._m.coordinates)
        stops = np.array([self._stops.lower, self._stops.upper])
        rows += stops.shape[1]
        size = max(n, rows)
        return kernels.Search(
            self._lower, self._upper, self._ranges.width, start[self._first:].copy(), stops, np.zeros(rows),
            np.zeros((6, m.dof)), np.zeros((rows, n)), np.zeros((size, size)), np.zeros((4, size)), np.zeros(n),
            np.zeros((stops.shape[1], m.dof)), np.zeros((2, stops.shape[1])), np.zeros(m.dof), np.zeros((2, m.nx)))

    def _other_starts(self, position: Array, turn: Array | None) -> Array:
        """Return sampled positions (k, nx) whose poses are nearest to the target, those next to the start first."""
        x, pose = sampled_poses(self._m, self._record, self._start, self._held, SAMPLES)
        miss = np.linalg.norm(pose[:, :, 3] - position, axis=1)
        if turn is not None:
            cosine = 0.5 * (np.einsum('nij,ij->n', pose[:, :, :3], turn) - 1.0)
            miss = miss + self._length * np.arccos(np.clip(cosine, -1.0, 1.0))
        near = np.argsort(miss)[:MAX_STARTS]
        x, start = x[near].copy(), self._start[self._first:]
        # of turns without limits the one next to the start
        away = x[:, self._first:] - start
        x[:, self._first:] -= 2.0 * np.pi * np.round(away / (2.0 * np.pi)) * self._ranges.turns
        away = (x[:, self._first:] - start) / self._ranges.width
        return x[np.argsort((away ** 2).sum(axis=1))]

    def _error(self, position: Array, turn: Array | None, x: Array, errors: Array) -> OutOfReachError:
        m = self._m
        angle = 0.0 if turn is None else float(errors[1])
        at_limit = self._limits_in_the_way(position, turn, x)
        goal = ', '.join(f'{value:.6g}' for value in position)
        by = f'{errors[0]:.6g} m' + ('' if turn is None else f' and {angle:.6g} rad')
        where = ', '.join(f'{name} = {value:.6g}' for name, value in zip(m.coordinates, x[self._first:]))
        why = f'at the limit of {", ".join(at_limit)}' if at_limit else 'with no limit in the way'
        held = [name for name, stays in zip(m.coordinates, self._held) if stays]
        stays = f', {", ".join(held)} held' if held else ''
        return OutOfReachError(f"link '{self._link}' of '{m.name}' does not reach {goal}{stays}: the nearest position "
                               f'found, {where}, misses it by {by}, {why}', x, float(errors[0]), angle, at_limit)

    def _limits_in_the_way(self, position: Array, turn: Array | None, x: Array) -> tuple[str, ...]:
        """Return the names of joints at a limit beyond which the target would be nearer."""
        m, box = self._m, self._ranges
        try:
            pose = m.link_pose(x, self._link)
        except StateError:
            return ()
        if m.floating:
            base, origin = base_pose(m, x)
            position = base @ position + origin
            turn = None if turn is None else base @ turn
        J = jacobian(m, x, self._link, point=self._point)[:, m.dof - len(m.coordinates):]
        gap = pose[:3, :3] @ np.asarray(self._point, dtype=float) + pose[:3, 3] - position
        slope = gap @ J[:3]
        if turn is not None:
            slope = slope + self._length ** 2 * _rotation_vector(pose[:3, :3] @ turn.T) @ J[3:]
        there, slack = x[self._first:], AT_LIMIT_SHARE * box.width
        blocked = ~self._held & ((there <= self._lower + slack) & (slope > 0.0)
                                 | (there >= self._upper - slack) & (slope < 0.0))
        found = [name for name, flag in zip(m.coordinates, blocked) if flag]
        return tuple(found + self._stops_at(x))

    def _stops_at(self, x: Array) -> list[str]:
        """Return the names of joints that are no coordinates and are at or beyond a limit."""
        stops, position = self._stops, dict(zip(*self._m.joint_state(x)[:2]))
        return [name for name, low, high in zip(stops.names, stops.lower, stops.upper)
                if not low + 1e-6 < position[name] < high - 1e-6]


def _rotation_vector(turn: Array) -> Array:
    """Return the rotation vector (3,) of a rotation (3, 3)."""
    # the real part of a quaternion may have either sign
    q = quaternion(turn)
    q = q if q[3] >= 0.0 else -q
    size = np.linalg.norm(q[:3])
    return 2.0 * np.arctan2(size, q[3]) * q[:3] / size if size > 0.0 else np.zeros(3)
