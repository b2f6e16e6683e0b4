"""The motion through points that come one at a time."""

import numpy as np

from .motions import Free, bridge
from .path_time import Phase
from .reference_limits import DECELERATION
from .stop_motion import axes_curve, stopping_phases, way
from .trajectory import TrajectoryError

FIRST_INTERVAL = 0.25       # of the stream timeout: in which the first point is led over to
SHORTEST_INTERVAL = 0.002   # s
LOOKS = 8                   # samples of the way over to a point
HALVINGS = 20               # of the time that a point is carried on, to keep a limit


class StreamedPoint:
    """A checked point: `time` [s], `state` (3, dof)."""

    def __init__(self, time, state):
        self.time, self.state = time, state

    def carried_on(self, t):
        """(3, dof) at time t, with the acceleration of the point."""
        dt = t - self.time
        x, xd, xdd = self.state
        return np.array([x + dt * (xd + 0.5 * dt * xdd), xd + dt * xdd, xdd])


def streamed_point(manipulator, t, x, xd, xdd):
    """`StreamedPoint` of x, xd, xdd (dof,), the last two None for zero; raises TrajectoryError."""
    state = np.zeros((3, manipulator.dof))
    for row, what, values in zip(state, ('positions', 'velocities', 'accelerations'), (x, xd, xdd)):
        if values is None and row is not state[0]:
            continue
        values = np.asarray(values, dtype=float)
        if values.shape != row.shape:
            raise TrajectoryError(f'streamed point: {what} have shape {values.shape}, expected {row.shape} for '
                                  f'{", ".join(manipulator.coordinates)}')
        row[:] = values
    if not (np.isfinite(state).all() and np.isfinite(t)):
        raise TrajectoryError('streamed point: time, positions, velocities or accelerations are not finite')
    return StreamedPoint(float(t), state)


class Stream(Free):
    """From the present reference over to a point, on at its velocity, and to rest before the timeout of the stream.

    before   (3, dof) reference at time `now`
    earlier  the `Stream` that this point continues, or None
    """

    def __init__(self, point, before, now, earlier, checks):
        self.point, self.arrival, self._earlier, self._checks = point, now, earlier, checks
        self._before = before
        limits = checks.limits
        timeout = limits.stream_timeout
        interval = FIRST_INTERVAL * timeout if earlier is None else now - earlier.arrival
        self.interval = min(max(interval, SHORTEST_INTERVAL), 0.5 * timeout)
        meet = point.time if point.time >= now + SHORTEST_INTERVAL else now + self.interval
        self._over = bridge(now, meet, before, point.carried_on(meet))
        x, xd, _ = self._over.sample(meet)
        carried = max(max(point.time, now) + timeout - meet, 0.0)
        phases = [self._phases(i, float(x[i]), float(xd[i]), carried) for i in range(len(x))]
        super().__init__(self._over.then(axes_curve(meet, x, xd, phases)))

    def _phases(self, i, x, v, carried):
        """Phases of axis i from x, v: at its velocity for `carried` s, and to rest; earlier where a limit is near."""
        checks = self._checks
        deceleration = checks.deceleration[i] if np.isfinite(checks.deceleration[i]) else DECELERATION
        lower, upper = checks.soft_lower[i], checks.soft_upper[i]
        stop = stopping_phases(x + v * carried, v, 0.0, deceleration, lower, upper)
        if v == 0.0 or lower <= x + v * carried + way(v, stop) <= upper:
            return [Phase(carried, 0.0, 0.0), *stop] if carried > 0.0 else stop
        room = max(((upper - x) if v > 0.0 else (x - lower)) / abs(v) - way(abs(v), stopping_phases(
            0.0, abs(v), 0.0, deceleration, -np.inf, np.inf)) / abs(v), 0.0)
        carried = min(carried, room)
        stop = stopping_phases(x + v * carried, v, 0.0, deceleration, lower, upper)
        return [Phase(carried, 0.0, 0.0), *stop] if carried > 0.0 else stop

    def fault(self):
        """Why the point cannot be taken; empty where it can."""
        earlier, point, limits = self._earlier, self.point, self._checks.limits
        if point.time < self.arrival - limits.stream_timeout:
            return f'it is {self.arrival - point.time:.3g} s old, timeout {limits.stream_timeout:.3g} s'
        if point.time > self.arrival + limits.stream_timeout:
            return f'it lies {point.time - self.arrival:.3g} s ahead, more than {limits.stream_timeout:.3g} s'
        if earlier is not None and point.time <= earlier.point.time:
            return f'it is not later than the one before, by {earlier.point.time - point.time:.3g} s'
        if earlier is None:
            gap = np.abs(point.state[0] - self._before[0])
            if gap.max() > limits.start_tolerance:
                i = int(gap.argmax())
                return (f'the first one has {self._checks.names[i]} {gap[i]:.3g} away from its reference, start '
                        f'tolerance {limits.start_tolerance:.3g}')
        shares = np.arange(1, LOOKS + 1) / LOOKS
        motion = self._over.rows(np.zeros(LOOKS, dtype=int), shares)
        found = self._checks.fault(motion[0], self._checks.columns(*motion))
        return '' if found is None else f'the way to it {found[1]}'
