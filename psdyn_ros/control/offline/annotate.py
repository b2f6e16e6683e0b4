"""Fills a trajectory with the efforts that it needs, before it is executed.

`joint_trajectory_controller` adds the efforts of a trajectory to its feedback. With a trajectory that is dense and has
efforts in it, it thereby does computed torque without anybody computing in real time.
"""

from typing import NamedTuple

import numpy as np

from ...model.errors import PsdynError
from ..reference.reference_limits import ReferenceChecks, ReferenceLimits
from ..reference.trajectory import (
    MAX_WAYPOINTS,
    TrajectoryError,
    Waypoints,
    cubic_curve,
    quintic_curve,
    smooth_accelerations,
)
from .feedforward import Feedforward

SWING_STEP = 0.02       # s from point to point at most where a load hangs, which swings along the motion


class Annotated(NamedTuple):
    """A dense trajectory with efforts."""

    waypoints: Waypoints        # complete: positions, velocities, accelerations
    efforts: np.ndarray         # (N, joints) N, N m, of the joints of the waypoints
    clamped: int                # points at which an actuator was at its limit


def annotate(manipulator, waypoints, max_dt, *, start=None, clamp=False, tolerance=0.005):
    """The `Annotated` trajectory through the waypoints, at most `max_dt` [s] from point to point.

    The waypoints stay among the points, at their times; between them runs a cubic spline, or with velocities a
    quintic. Their joints are all actuators, or as many independent joints as degrees of freedom; efforts of joints
    that are no actuators are those that do the same work.  A load that hangs rests at first, and then swings freely;
    points are then at most `SWING_STEP` apart.

    manipulator  Manipulator, or a `Feedforward` of these joints, with payloads and a share of friction
    start        (joints,) positions where the machine rests at time 0, for waypoints that begin later than that
    clamp        whether efforts beyond the limits of the actuators are clamped instead of refused
    tolerance    m or rad by which more joints than degrees of freedom may contradict each other

    Raises TrajectoryError that names the first point, or the points around the first place, where the motion leaves
    the limits, where no loop closes, or where an actuator cannot do it.
    """
    if not 0.0 < max_dt < np.inf:
        raise TrajectoryError(f'max_dt = {max_dt} s; expected more than zero')
    feedforward = manipulator if isinstance(manipulator, Feedforward) else Feedforward(manipulator, waypoints.joints)
    if feedforward.joints != waypoints.joints:
        raise TrajectoryError(f'the trajectory is in {list(waypoints.joints)}, the feedforward in '
                              f'{list(feedforward.joints)}')
    if feedforward.whole.underactuated:
        max_dt = min(max_dt, SWING_STEP)
    whole = _from_start(waypoints, start)
    times, places = _dense(whole.times, max_dt)
    samples = _samples(whole, times)
    added = whole.times.size - waypoints.times.size
    motion = _Motion(feedforward, waypoints.joints, tolerance, clamp, samples[0, 0] if added else None)
    efforts = np.empty((times.size, len(waypoints.joints)))
    for k, (position, velocity, acceleration) in enumerate(samples):
        try:
            efforts[k] = motion.efforts(times[k], position, velocity, acceleration)
        except PsdynError as error:
            raise TrajectoryError(f'{_where(places[k] - added, times[k])}: {error}') from error
    return Annotated(Waypoints(waypoints.joints, times, *samples.transpose(1, 0, 2)), efforts, motion.clamped)


def _from_start(waypoints, start):
    """The waypoints, with the one of rest at time 0 before them if they begin later and it is known."""
    if start is None or waypoints.times[0] == 0.0:
        return waypoints
    rest = np.zeros(len(waypoints.joints))
    first = np.asarray(start, dtype=float)
    if first.shape != rest.shape:
        raise TrajectoryError(f'start has shape {first.shape}; expected {rest.shape}')
    rows = [None if values is None else np.vstack([row, values]) for row, values in
            ((first, waypoints.positions), (rest, waypoints.velocities), (rest, waypoints.accelerations))]
    return Waypoints(waypoints.joints, np.concatenate([[0.0], waypoints.times]), *rows)


def _dense(knots, max_dt):
    """(times, places): the knots with equal steps of at most max_dt between them; place k + 0.5 is after knot k."""
    counts = np.maximum(np.ceil(np.diff(knots) / max_dt - 1e-9), 1.0)
    if counts.sum() >= MAX_WAYPOINTS:
        raise TrajectoryError(f'{counts.sum() + 1:.0f} points with max_dt = {max_dt:g} s over '
                              f'{knots[-1] - knots[0]:g} s; expected at most {MAX_WAYPOINTS}')
    times, places = [], []
    for k, count in enumerate(counts.astype(int)):
        times.append(knots[k] + (knots[k + 1] - knots[k]) * np.arange(count) / count)
        places.append(np.where(np.arange(count) == 0, k, k + 0.5))
    return np.concatenate([*times, knots[-1:]]), np.concatenate([*places, [knots.size - 1.0]])


def _samples(waypoints, times):
    """(N, 3, joints) positions, velocities and accelerations at the times."""
    positions, velocities, accelerations = waypoints.positions, waypoints.velocities, waypoints.accelerations
    rest = np.zeros(positions.shape[1])
    if waypoints.times.size == 1:       # a place to stay at
        return np.stack([positions, np.zeros((1, rest.size)), np.zeros((1, rest.size))], axis=1)
    if velocities is None:
        curve = cubic_curve(waypoints.times, positions, rest)
    else:
        if accelerations is None:
            accelerations = smooth_accelerations(waypoints.times, positions, velocities, rest)
        curve = quintic_curve(waypoints.times, positions, velocities, accelerations)
    samples = np.array([curve.sample(t).copy() for t in times])
    samples[-1, :2] = positions[-1], rest       # the polynomial comes there within rounding only
    return samples


def _where(place, time):
    if place < 0:
        return f'before point 0 (at {time:.4g} s)'
    if place == int(place):
        return f'point {int(place)} ({time:.4g} s)'
    return f'between points {int(place)} and {int(place) + 1} (at {time:.4g} s)'


class _Motion:
    """Checks one state of a motion after the other and finds its efforts.

    A motion that begins where the machine was measured, at `start` (joints,), may come back into its limits from there.
    """

    def __init__(self, feedforward, joints, tolerance, clamp, start):
        self._feedforward, self._tolerance, self._clamp = feedforward, tolerance, clamp
        m = self._manipulator = feedforward.manipulator
        self._map = m.joint_map(joints)
        self._redundant = len(joints) > m.dof
        self._checks = ReferenceChecks(m, ReferenceLimits())
        self._start = self._checks.lower
        if start is not None:
            still = np.zeros(m.dof)
            self._start = self._checks.columns(self._map.state(start)[0], still, still)[0]
        self.clamped = 0

    def efforts(self, t, position, velocity, acceleration):
        """Efforts (joints,) of positions, velocities and accelerations of the joints; PsdynError says what is wrong.

        t [s]: later than that of the call before.
        """
        x, xd, xdd = self._map.motion(position, velocity, acceleration)
        if self._redundant:
            residual = self._map.state(position)[2]
            if residual > self._tolerance:
                raise TrajectoryError(f'its joints contradict each other by {residual:.3g}, at most '
                                      f'{self._tolerance:g} allowed')
        fault = self._checks.fault(x[None], self._checks.columns(x[None], xd[None], xdd[None]), self._start)
        if fault:
            raise TrajectoryError(f'it {fault[1]}')
        self._feedforward.advance(t, x, xd)
        efforts = self._feedforward.of(x, xd, xdd)
        if efforts.beyond:
            if not self._clamp:
                m = self._manipulator
                raise TrajectoryError('; '.join(
                    f'{name} needs {needed:.4g} N or N m, limit {limit:.4g}'
                    for name, needed, limit in zip(m.actuators, efforts.needed, m.limits.effort)
                    if name in efforts.beyond))
            self.clamped += 1
        return efforts.joints
