"""The motion through points that come one at a time.

Every point corrects an estimate of the motion that is streamed (`stream_filter.py`). From then on the reference leads
over to that estimate, by a quintic that is much longer than the distance of two points: with a new one for each point
this is a linear third-order filter without lag in position, velocity and acceleration, whose jerk is bounded by what
the points disagree with each other. What a law has seen of the future already is not changed: the new quintic starts
where that ends.
"""

from bisect import bisect_left, bisect_right

import numpy as np

from ...kernels.control.path import Spline
from ...model.errors import PsdynError
from .reference_limits import EASE
from .segments import Hold, PathTime, Phase, bridge_coefficients, ramp
from .speed_limited_stream import too_far_behind, velocity_after_points, way_to_points
from .stop_motion import axes_curve, rest_positions, stopping_phases, way
from .stream_filter import FADE_TIME, UNKNOWN, StreamEstimate
from .trajectory import LARGEST, Curve, TrajectoryError, number_array

STANDSTILL = 1e-9           # m/s or rad/s
MIN_SEGMENT_S = 1e-3            # s
MAX_SEEN = 0.05             # s ahead that a law may have seen
CLOCK = PathTime().rows     # of a path that runs by the clock


class StreamedPoint:
    """A checked point: `time` [s], `state` (3, dof), NaN where velocity or acceleration are to be estimated."""

    def __init__(self, time, state):
        self.time, self.state = time, state


def streamed_point(manipulator, t, x, xd, xdd):
    """`StreamedPoint` of x, xd, xdd (dof,), the last two None where unknown; raises TrajectoryError."""
    state = np.full((3, manipulator.dof), UNKNOWN)
    if xd is None and xdd is not None:
        raise TrajectoryError('streamed point: it has accelerations but no velocities')
    given = 0
    for row, what, values in zip(state, ('positions', 'velocities', 'accelerations'), (x, xd, xdd)):
        if values is None and given:
            break
        values = number_array(f'streamed point: {what}', values)
        if values.shape != row.shape:
            raise TrajectoryError(f'streamed point: {what} have shape {values.shape}, expected {row.shape} for '
                                  f'{", ".join(manipulator.coordinates)}')
        row[:], given = values, given + 1
    if not ((np.abs(state[:given]) <= LARGEST).all() and np.isfinite(t)):
        raise TrajectoryError('streamed point: time, positions, velocities or accelerations are not finite, or beyond '
                              f'{LARGEST:g}')
    return StreamedPoint(float(t), state)


class Stream:
    """From the present reference over to the streamed motion, on at its velocity, and to rest before the timeout.

    before   (3, dof) reference at time `now`
    seen     time until which the reference was looked at already
    earlier  the `Stream` that this point continues, or None
    speed    share 0 to 1 of the rated speeds that the reference may have

    `behind` says whether it is not where the points are, since they were faster than it may be.
    """

    def __init__(self, point, before, now, seen, earlier, checks, speed=1.0):
        self.point, self.arrival, self._checks = point, now, checks
        in_order = earlier is not None and point.time > earlier.point.time
        self.estimate = earlier.estimate.updated(point) if in_order else StreamEstimate.first(
            point, before, checks.streaming_jerk[:before.shape[1]])
        self._until = max(point.time, now) + checks.limits.stream_timeout       # it is carried on
        start = now if earlier is None else min(max(seen, now), now + MAX_SEEN)
        self._lead_over(before, now, start, speed, earlier)

    def slowed(self, speed, t, seen):
        """Let it go on with another share of the rated speeds, from time t on, as long as the point is carried on."""
        if t < self._until and (self.behind or speed < self._speed):
            self._lead_over(np.array(self.sample(t)), t, min(max(seen, t), t + MAX_SEEN), speed, self)

    def _lead_over(self, before, now, start, speed, earlier):
        checks, point, self._speed, self._rest = self._checks, self.point, speed, None
        kept = earlier.pieces(now, start) if start > now else None
        if kept:
            start, before = kept[0][-1], np.array(earlier.sample(kept[0][-1]))
        soonest = max(start + self.estimate.lead, point.time)
        slowed = speed < 1.0 or (earlier is not None and earlier.behind)
        planned = earlier.meet if slowed and earlier is not None and earlier.behind else soonest
        found = way_to_points(self.estimate, before, start, soonest, planned, checks, speed, slowed)
        self.behind = found is None or found[0] > soonest
        self._before, self.start, self._velocity = before, start, None
        if found is None:
            self.meet = start
            self._velocity = velocity_after_points(self.estimate, before, start, self._until - start - EASE, checks,
                                                   speed)
            tail = axes_curve(start, *before[:2], [self._phases(i, *axis) for i, axis in enumerate(before.T.tolist())])
            knots, coefficients = tail.times, tail.coefficients
            self._rest = Hold(tail.sample(tail.end)[0]).sample(0.0)
        else:
            self.meet, target = found
            knots = np.array([start, max(min(self.meet, self._until), start + MIN_SEGMENT_S)])
            coefficients = bridge_coefficients(start, self.meet, before, target)[None]
        self._curve = joined(kept, knots, coefficients)

    def pieces(self, begin, end):
        """(knots, coefficients) of the curve from time `begin` to `end`, or its end; None where that is none."""
        if end > self._curve.end:
            self._extend()
        curve = self._curve
        end = min(end, curve.end)
        if end <= begin:
            return None
        first = max(bisect_right(curve.knots, begin) - 1, 0)
        last = bisect_left(curve.knots, end)
        return np.append(curve.times[first:last], end), curve.coefficients[first:last]

    def _extend(self):
        """Add what follows where no other point comes."""
        if self._rest is None:
            curve = self._curve
            x, v, a = state = curve.sample(curve.end).copy()
            tail = axes_curve(curve.end, x, v, [self._phases(i, *axis) for i, axis in enumerate(state.T.tolist())])
            self._curve = joined((curve.times, curve.coefficients), tail.times, tail.coefficients)
            self._rest = Hold(tail.sample(tail.end)[0]).sample(0.0)

    def sample(self, t):
        """(x, xd, xdd), each (dof,); valid until the next call."""
        if t >= self._curve.end:
            self._extend()
            if t >= self._curve.end:
                return self._rest
        return self._curve.sample(t)

    def polynomials(self, times):
        """`Spline` of these times; None where it takes more."""
        curve = self._curve
        return Spline(curve.coefficients, curve.times, CLOCK, 0.0) if times[-1] < curve.end else None

    @property
    def end(self):
        """Time at which it is at rest if no other point comes."""
        self._extend()
        return self._curve.end

    def over(self, t):
        """Whether it is at its end at time t."""
        return t >= self._until and t >= self.end

    def progress(self, t):
        """Of points that come one at a time there is no share."""
        return 1.0 if self.over(t) else 0.0

    def _phases(self, i, x, v, a):
        """Phases of axis i from x, v, a to rest.

        Until the point is too old its acceleration fades, or it takes up the velocity that is left to it, and its
        velocity stays; less long where a limit is near.
        """
        checks = self._checks
        deceleration = checks.braking[i]
        jerk = min(max(deceleration, abs(a)) / EASE, checks.jerk[i])
        lower, upper = checks.soft_lower[i], checks.soft_upper[i]
        left = self._until - (self.meet if self._velocity is None else self.start)
        soonest = stopping_phases(x, v, a, deceleration, jerk, lower, upper)
        if left <= 0.0:
            return soonest
        if self._velocity is None:
            fade = max(FADE_TIME, abs(a) / checks.jerk[i])
            fading, speed = [Phase(fade, a, -a / fade)], v + 0.5 * a * fade
        else:
            speed = self._velocity[i]
            fading = ramp(v, a, speed, checks.gentle[i], min(max(checks.gentle[i], abs(a)) / EASE, checks.jerk[i]))
        begin, carried = x + way(v, fading), max(left - sum(phase.duration for phase in fading), 0.0)
        if abs(speed) > STANDSTILL:
            stop = way(speed, stopping_phases(0.0, speed, 0.0, deceleration, jerk, -np.inf, np.inf))
            room = ((upper if speed > 0.0 else lower) - begin - stop) / speed
            carried = max(min(carried, room), 0.0)
        stop = stopping_phases(begin + speed * carried, speed, 0.0, deceleration, jerk, lower, upper)
        phases = [*fading, Phase(carried, 0.0, 0.0), *stop]
        return phases if lower <= x + way(v, phases) <= upper else soonest

    def fault(self, earlier):
        """Why the point cannot be taken after the `Stream` before, or None; empty where it can."""
        point, checks = self.point, self._checks
        limits = checks.limits
        if point.time < self.arrival - limits.stream_timeout:
            return f'it is {self.arrival - point.time:.3g} s old, timeout {limits.stream_timeout:.3g} s'
        if point.time > self.arrival + limits.stream_timeout:
            return f'it lies {point.time - self.arrival:.3g} s ahead, more than {limits.stream_timeout:.3g} s'
        position = point.state[0]
        if earlier is None:
            gap, most = np.abs(position - self._before[0]), limits.start_tolerance
            if gap.max() > most:
                i = int(gap.argmax())
                return (f'the first one has {checks.names[i]} {gap[i]:.3g} away from its reference, start tolerance '
                        f'{most:.3g}')
        else:
            jump = fault_after(point, earlier.point, checks)
            if jump:
                return jump
            far = too_far_behind(self.estimate, self._before, self.start, checks)
            if far:
                return far
        return fault_of(point, self._before, checks) or self._no_stop(self.estimate.state)

    def _no_stop(self, state):
        """Why there is no stop before the limits from a state (3, dof); empty where there is one."""
        checks, start = self._checks, self._before[0]
        n, rest = len(start), rest_positions(state[:, None], checks)[0]
        beyond = (rest < np.minimum(checks.lower[:n], start)) | (rest > np.maximum(checks.upper[:n], start))
        if not beyond.any():
            return ''
        i = int(beyond.argmax())
        return (f'at its velocity {checks.names[i]} can only stop at {rest[i]:.4g}, outside of '
                f'[{checks.lower[i]:.4g}, {checks.upper[i]:.4g}]')


def fault_after(point, earlier, checks):
    """Why a `StreamedPoint` cannot come after another one, as the end of a sentence; empty where it can."""
    dt = point.time - earlier.time
    if dt <= 0.0:
        return f'it is not later than the one before, by {-dt:.3g} s'
    gap = np.abs(point.state[0] - earlier.state[0])
    most = checks.speed[:gap.size] * dt + checks.limits.start_tolerance
    if (gap <= most).all():
        return ''
    i = int((gap - most).argmax())
    return (f'it jumps: {checks.names[i]} is {gap[i]:.3g} away from the one before, rated speed and start tolerance '
            f'allow {most[i]:.3g}')


def fault_of(point, before, checks):
    """Which limit a `StreamedPoint` is beyond, from the reference before (3, dof); empty: none."""
    position, velocity = point.state[0], np.nan_to_num(point.state[1])
    try:
        states = checks.columns(position[None], velocity[None], np.zeros((1, position.size)))
    except PsdynError as error:
        return f'no way leads to it: {error}'
    found = checks.fault(position[None], states, checks.columns(*before)[0])
    return '' if found is None else f'it {found[1]}'


def joined(kept, knots, coefficients):
    """`Curve` of the pieces kept, (knots, coefficients) or None, and of more from their end on."""
    if kept:
        knots, coefficients = np.append(kept[0], knots[1:]), np.concatenate([kept[1], coefficients])
    return Curve(knots, coefficients)
