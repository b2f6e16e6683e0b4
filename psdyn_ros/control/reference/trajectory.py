"""Waypoints of a commanded motion, checked, and the piecewise polynomial through them.

Positions only give a C2 cubic spline; with velocities each segment is a quintic, with the accelerations of
the waypoints, or with estimates that make the jerk continuous. Everything here is in the joints of the
waypoints (actuators or any other joints alike); `reference.py` maps it to the coordinates.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_banded

from ...api.arguments import Array, names, numbers
from ...kernels.control.path import polynomials
from ...model.errors import PsdynError, ShapeError

MAX_WAYPOINTS = 10_000
LARGEST = 1e6           # s, m, rad and their rates: what is larger is a mistake, and overflows in a polynomial
NEAREST = 1e-9          # s between two waypoints


class TrajectoryError(PsdynError):
    """A commanded motion that cannot be followed; the motion in progress is left untouched.

    point      index of the first waypoint at fault, on the way to which or at which it is; None: none of them
    condition  of the fault table
    """

    condition = 'reference_rejected'

    def __init__(self, message: str, point: int | None = None) -> None:
        super().__init__(message)
        self.point = point


class UnreachableError(TrajectoryError):
    """A trajectory goes beyond limits, through a singularity, or where no loop closes."""

    condition = 'reference_unreachable'


class WaypointsError(TrajectoryError):
    """Waypoints of no motion at all: none, not finite, or not in the order of time."""

    condition = 'reference_malformed'


class TrajectoryOverError(WaypointsError):
    """One whose last point lies in the past."""


class TrajectoryStampError(TrajectoryError):
    """One stamped before the controller was enabled."""


class TrajectoryJointsError(WaypointsError):
    """One of joints that the machine cannot be led by."""


def number_array(what: str, values: Any) -> Array:
    """Return the values as an array of float64; WaypointsError where they are no numbers."""
    try:
        return np.asarray(numbers(what, values), dtype=float)
    except ShapeError as error:
        raise WaypointsError(str(error)) from None


@dataclass(frozen=True, init=False)
class Waypoints:
    """N waypoints of n joints.

    joints         n joint names
    times          (N,) s from the start of the motion, strictly increasing, not negative
    positions      (N, n) m or rad
    velocities     (N, n) m/s or rad/s, or None
    accelerations  (N, n) m/s^2 or rad/s^2, or None; only together with velocities
    """

    joints: tuple
    times: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray | None = None
    accelerations: np.ndarray | None = None

    def __init__(self, joints: Iterable[str], times: npt.ArrayLike, positions: npt.ArrayLike,
                 velocities: npt.ArrayLike | None = None, accelerations: npt.ArrayLike | None = None) -> None:
        if isinstance(joints, (str, set, frozenset)):       # a set has no order, in which columns could be
            raise TrajectoryJointsError(f'joints={joints!r:.80}: expected a list of joint names, in the order of the '
                                        'columns')
        object.__setattr__(self, 'joints', names('joints', joints, TrajectoryJointsError))
        for field, values in (('times', times), ('positions', positions), ('velocities', velocities),
                              ('accelerations', accelerations)):
            missing = values is None and field in ('velocities', 'accelerations')
            object.__setattr__(self, field, None if missing else number_array(field, values))
        self._check_sizes()
        self._check_values()

    def ordered(self, joints: tuple[str, ...]) -> Waypoints:
        """The same waypoints with the same joints in this order."""
        order = [self.joints.index(joint) for joint in joints]
        columns: list[Any] = [None if values is None else values[:, order]
                              for values in (self.positions, self.velocities, self.accelerations)]
        return Waypoints(joints, self.times, columns[0], columns[1], columns[2])

    def _check_sizes(self) -> None:
        joints, count = len(self.joints), self.times.size
        if joints == 0:
            raise TrajectoryJointsError('the trajectory names no joints')
        twice = sorted({name for name in self.joints if self.joints.count(name) > 1})
        if twice:
            raise TrajectoryJointsError(f'the trajectory names {", ".join(twice)} more than once')
        if self.times.ndim != 1:
            raise WaypointsError(f'times have shape {self.times.shape}, expected one number for each point')
        if count == 0:
            raise WaypointsError('the trajectory has no points')
        if count > MAX_WAYPOINTS:
            raise WaypointsError(f'the trajectory has {count} points, at most {MAX_WAYPOINTS} are taken')
        if self.accelerations is not None and self.velocities is None:
            raise WaypointsError('the trajectory has accelerations but no velocities')
        for field in ('positions', 'velocities', 'accelerations'):
            values = getattr(self, field)
            if values is not None and values.shape != (count, joints):
                raise WaypointsError(f'{field} have shape {values.shape}, expected {(count, joints)}')

    def _check_values(self) -> None:
        for field in ('times', 'positions', 'velocities', 'accelerations'):
            values = getattr(self, field)
            if values is None or (np.abs(values) <= LARGEST).all():
                continue
            point = int(np.argwhere(~(np.abs(values) <= LARGEST))[0][0])
            what = f'beyond {LARGEST:g}' if np.isfinite(values[point]).all() else 'that are not finite'
            raise WaypointsError(f'point {point} has {field} {what}', point)
        if self.times[0] < 0.0:
            raise WaypointsError(f'point 0 lies {-self.times[0]:g} s before the start of the trajectory', 0)
        late = np.flatnonzero(np.diff(self.times) < 0.5 * NEAREST)
        if late.size:
            point = int(late[0]) + 1
            raise WaypointsError(f'point {point} is not later than the point before it, by a nanosecond at least',
                                 point)
        if self.velocities is not None and np.any(self.velocities[-1] != 0.0):
            joint = self.joints[int(np.flatnonzero(self.velocities[-1])[0])]
            raise WaypointsError(f'the trajectory ends with {joint} in motion: the last velocities must be zero',
                                 self.times.size - 1)


class Curve:
    """Piecewise quintic of n joints over knots t_0 < ... < t_N; outside of them it stays at the nearest end.

    coefficients  (N, 6, n): position in segment k is sum_i coefficients[k, i] (t - t_k)^i

    `times` (N + 1,) and the list `knots` are both the knots.
    """

    def __init__(self, knots: Array, coefficients: Array) -> None:
        self.knots, self.times = knots.tolist(), np.array(knots, dtype=float)
        self.start, self.end = self.knots[0], self.knots[-1]
        self.coefficients = np.ascontiguousarray(coefficients, dtype=float)
        self._sample = np.empty((3, coefficients.shape[2]))

    def sample(self, t: float) -> Any:
        """(position, velocity, acceleration) at time t, rows of one array that the next call overwrites."""
        t = min(max(t, self.start), self.end)
        k = min(bisect_right(self.knots, t), len(self.knots) - 1) - 1
        polynomials(self.coefficients[k], t - self.knots[k], self._sample)
        return self._sample

    def rows(self, segments: Any, shares: Any) -> Any:
        """(3, M, n) positions, velocities and accelerations, each (M, n), at these shares (M,) of segments (M,)."""
        t = (shares * (self.times[segments + 1] - self.times[segments]))[:, None]
        c = self.coefficients[segments]
        value, rate, half = (np.zeros((len(segments), c.shape[2])) for _ in range(3))
        for i in range(c.shape[1] - 1, -1, -1):
            half = half * t + rate
            rate = rate * t + value
            value = value * t + c[:, i]
        return np.stack([value, rate, 2.0 * half])

    def jerks(self, segments: Any, shares: Any) -> Any:
        """(M, n) at these shares (M,) of segments (M,)."""
        t = (shares * (self.times[segments + 1] - self.times[segments]))[:, None]
        c = self.coefficients[segments]
        return 6.0 * c[:, 3] + t * (24.0 * c[:, 4] + t * 60.0 * c[:, 5])


def cubic_curve(knots: Array, positions: Array, start_velocity: Any) -> Curve:
    """The C2 cubic `Curve` through positions (N + 1, n): with the velocity given at its start, at rest at its end."""
    h = np.diff(knots)[:, None]
    slope = np.diff(positions, axis=0) / h
    ends = np.zeros_like(positions)
    ends[0] = start_velocity
    # acceleration at the end of a segment equals that at the start of the next
    v = _at_inner_knots(h, 1.0, 2.0, 3.0 * (slope[:-1] / h[:-1] + slope[1:] / h[1:]), ends)
    zero = np.zeros_like(slope)
    return Curve(knots, np.stack([positions[:-1], v[:-1],
                                  (3.0 * slope - 2.0 * v[:-1] - v[1:]) / h,
                                  (v[:-1] + v[1:] - 2.0 * slope) / h**2, zero, zero], axis=1))


def quintic_curve(knots: Array, positions: Array, velocities: Array, accelerations: Array) -> Curve:
    """The `Curve` that takes the positions, velocities and accelerations given, each (N + 1, n), at its knots."""
    h = np.diff(knots)[:, None]
    p0, v0, a0 = positions[:-1], velocities[:-1], accelerations[:-1]
    # what a segment of constant acceleration misses at its end, in units of h
    dp = positions[1:] - p0 - h * v0 - 0.5 * h**2 * a0
    dv = h * (velocities[1:] - v0 - h * a0)
    da = h**2 * (accelerations[1:] - a0)
    return Curve(knots, np.stack([p0, v0, 0.5 * a0,
                                  (10.0 * dp - 4.0 * dv + 0.5 * da) / h**3,
                                  (-15.0 * dp + 7.0 * dv - da) / h**4,
                                  (6.0 * dp - 3.0 * dv + 0.5 * da) / h**5], axis=1))


def smooth_accelerations(knots: Array, positions: Array, velocities: Array, start_acceleration: Any) -> Array:
    """(N + 1, n) accelerations with which the quintic through the waypoints has continuous jerk.

    They are given at the start, zero at the end, and zero at both ends of a segment in which a joint stands
    still: otherwise the smoothest curve would swing a little where the waypoints ask for rest.
    """
    h = np.diff(knots)[:, None]
    step = np.diff(positions, axis=0)
    still = (step == 0.0) & (velocities[:-1] == 0.0) & (velocities[1:] == 0.0)
    at_rest = np.zeros(positions.shape, dtype=bool)
    at_rest[:-1] |= still
    at_rest[1:] |= still
    ends = np.zeros_like(positions)
    ends[0] = np.where(at_rest[0], 0.0, start_acceleration)
    # jerk at both ends of the segments as far as positions and velocities make it
    leaving = 60.0 * step / h**3 - (36.0 * velocities[:-1] + 24.0 * velocities[1:]) / h**2
    arriving = 60.0 * step / h**3 - (24.0 * velocities[:-1] + 36.0 * velocities[1:]) / h**2
    return _at_inner_knots(h, -3.0, 9.0, leaving[1:] - arriving[:-1], ends, at_rest)


def _at_inner_knots(h: Array, beside: Any, diagonal: Any, right: Array, given: Any, fixed: Any = None) -> Array:
    """Solve beside (u[i-1] / h[i-1] + u[i+1] / h[i]) + diagonal (1 / h[i-1] + 1 / h[i]) u[i] = right[i] for u
    (N + 1, n).

    h (N, 1), right (N - 1, n); u is as given (N + 1, n) at both ends, and wherever `fixed` (N + 1, n) says
    so.
    """
    solution = given.copy()
    weight = 1.0 / h[:, 0]
    for j in range(given.shape[1]):
        free = np.arange(1, weight.size)
        if fixed is not None:
            free = free[~fixed[1:-1, j]]
        bands = np.zeros((3, weight.size + 1))
        bands[1] = 1.0
        bands[1, free] = diagonal * (weight[free - 1] + weight[free])
        bands[0, free + 1] = beside * weight[free]
        bands[2, free - 1] = beside * weight[free - 1]
        solution[free, j] = right[free - 1, j]
        solution[:, j] = solve_banded((1, 1), bands, solution[:, j])
    return solution
