"""The motion through points that come one at a time."""

import numpy as np

from ...model.errors import PsdynError
from .segments import Free, bridge, bridge_rows, sample_each
from .speed_limited_stream import too_far_behind, velocity_after_points, way_to_points
from .stop_motion import EASE, axes_curve, stopping_phases, way
from .time_scaling import Phase, ramp
from .trajectory import LARGEST, TrajectoryError

STANDSTILL = 1e-9           # m/s or rad/s
FIRST_INTERVAL = 0.25       # of the stream timeout: in which the first point is led over to
SHORTEST_LEAD = 0.01        # s in which the reference is led over to a point at least, so that jitter does no harm
LOOKS = 12                  # samples of the way that is not led over to the point


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
    if not ((np.abs(state) <= LARGEST).all() and np.isfinite(t)):
        raise TrajectoryError('streamed point: time, positions, velocities or accelerations are not finite, or beyond '
                              f'{LARGEST:g}')
    return StreamedPoint(float(t), state)


class Stream:
    """From the present reference over to a point, on at its velocity, and to rest before the timeout of the stream.

    before   (3, dof) reference at time `now`
    earlier  the `Stream` that this point continues, or None
    speed    share 0 to 1 of the rated speeds that the reference may have

    `behind` says whether it is not where the points are, since they were faster than it may be.
    """

    def __init__(self, point, before, now, earlier, checks, speed=1.0):
        self.point, self.arrival, self._checks = point, now, checks
        self._earlier = None if earlier is None else earlier.point.time         # s
        timeout = checks.limits.stream_timeout
        interval = FIRST_INTERVAL * timeout if earlier is None else now - earlier.arrival
        self._lead_time = min(max(interval, SHORTEST_LEAD), 0.5 * timeout)
        self._until = max(point.time, now) + timeout        # it is carried on
        self._lead_over(before, now, speed, earlier)

    def slowed(self, speed, t):
        """Let it go on with another share of the rated speeds, from time t on, as long as the point is carried on."""
        if t < self._until and (self.behind or speed < self._speed):
            self._lead_over(np.array(self.sample(t)), t, speed, self)

    def _lead_over(self, before, now, speed, earlier):
        point, self._speed = self.point, speed
        meet = point.time if point.time >= now + SHORTEST_LEAD else now + self._lead_time
        target, self._velocity = point.carried_on(meet), None
        self.behind, self._limited = False, speed < 1.0 or (earlier is not None and earlier.behind)
        if self._limited:
            planned = earlier.meet if earlier is not None and earlier.behind else meet
            found = way_to_points(point, before, now, meet, planned, self._checks, speed)
            self.behind = found is None or found[0] > meet
            if found is None:
                meet, target = now, before
                self._velocity = velocity_after_points(point, before, now, self._until - now - EASE, self._checks,
                                                       speed)
            else:
                meet, target = found
        self._before, self.start, self.meet, self._target = before, now, meet, target
        self._lead = None if self._velocity is not None else bridge(now, meet, before, target)
        self._carried = max(self._until - meet, 0.0)
        self._fade = min(self._lead_time, self._carried)
        # whether no limit is near, so that the velocity stays for all of `_carried`; None: nobody has looked
        self._open = None if self._velocity is None else False
        self._rest = None       # `Free` motion after the point, made where no other point comes before

    def sample(self, t):
        """(x, xd, xdd), each (dof,); valid until the next call."""
        if t < self.meet:
            return self._lead.sample(t)
        if t < self.meet + self._carried and self._rest is None:
            if self._open is None:
                self._open = self._far_from_limits()
            if self._open:
                return self._carried_on(t - self.meet)
        return self._after().sample(t)

    def samples(self, times, out):
        """Write samples at three times into out (3, 3, dof)."""
        sample_each(self, times, out)

    polynomials = Free.polynomials

    def _carried_on(self, dt):
        """What `_after` comes to as long as the point is carried on far from every limit."""
        x, v, a = self._target
        fade = self._fade
        if dt < fade:
            share = dt / fade
            return x + dt * (v + dt * (0.5 - share / 6.0) * a), v + dt * (1.0 - 0.5 * share) * a, (1.0 - share) * a
        speed = v + 0.5 * fade * a
        return x + fade * (v + fade / 3.0 * a) + (dt - fade) * speed, speed, np.zeros_like(x)

    def _far_from_limits(self):
        x, speed, _ = self._carried_on(self._carried)
        n, checks = len(x), self._checks
        reach = x + speed * (EASE + 0.5 * np.abs(speed) / checks.braking[:n])
        return bool(((reach >= checks.soft_lower[:n]) & (reach <= checks.soft_upper[:n])
                     & (x >= checks.soft_lower[:n]) & (x <= checks.soft_upper[:n])).all())

    @property
    def end(self):
        """Time at which it is at rest if no other point comes."""
        return self._after().end

    def over(self, t):
        """Whether it is at its end at time t."""
        return t >= self.meet + self._carried and t >= self.end

    def progress(self, t):
        """Of points that come one at a time there is no share."""
        return 1.0 if self.over(t) else 0.0

    def _after(self):
        if self._rest is None:
            phases = [self._phases(i, *axis) for i, axis in enumerate(self._target.T.tolist())]
            self._rest = Free(axes_curve(self.meet, *self._target[:2], phases))
        return self._rest

    def _phases(self, i, x, v, a):
        """Phases of axis i from x, v, a: its acceleration fades, or it takes up the velocity that is left to it; its
        velocity stays, and it comes to rest.

        The velocity stays less long where a limit is near.
        """
        checks = self._checks
        deceleration = checks.braking[i]
        lower, upper = checks.soft_lower[i], checks.soft_upper[i]
        if self._velocity is None:
            fade = self._fade
            fading = [Phase(fade, a, -a / fade)] if fade > 0.0 else []
            begin, speed = x + way(v, fading), v + 0.5 * a * fade
        else:
            speed, gentle = self._velocity[i], checks.gentle[i]
            fading = ramp(v, a, speed, gentle, gentle / EASE)
            begin, fade = x + way(v, fading), sum(phase.duration for phase in fading)
        carried = max(self._carried - fade, 0.0)
        if abs(speed) > STANDSTILL:
            stop = way(speed, stopping_phases(0.0, speed, 0.0, deceleration, -np.inf, np.inf))
            room = ((upper if speed > 0.0 else lower) - begin - stop) / speed
            carried = max(min(carried, room), 0.0)
        stop = stopping_phases(begin + speed * carried, speed, 0.0, deceleration, lower, upper)
        return [*fading, Phase(carried, 0.0, 0.0), *stop]

    def fault(self):
        """Why the point cannot be taken; empty where it can."""
        earlier, point, limits = self._earlier, self.point, self._checks.limits
        if point.time < self.arrival - limits.stream_timeout:
            return f'it is {self.arrival - point.time:.3g} s old, timeout {limits.stream_timeout:.3g} s'
        if point.time > self.arrival + limits.stream_timeout:
            return f'it lies {point.time - self.arrival:.3g} s ahead, more than {limits.stream_timeout:.3g} s'
        if earlier is not None and point.time <= earlier:
            return f'it is not later than the one before, by {earlier - point.time:.3g} s'
        if earlier is None:
            gap = np.abs(point.state[0] - self._before[0])
            if gap.max() > limits.start_tolerance:
                i = int(gap.argmax())
                return (f'the first one has {self._checks.names[i]} {gap[i]:.3g} away from its reference, start '
                        f'tolerance {limits.start_tolerance:.3g}')
        elif self._limited:
            far = too_far_behind(point, self._before, self.start, self._checks)
            if far:
                return far
        if self._velocity is None:
            faded = np.array(self._carried_on(self._fade))
            lead = bridge_rows(self.start, self.meet, self._before, self._target)
            motion = np.concatenate([lead, faded[:, None]], axis=1)
        else:       # all of it, until it would be at rest
            times = np.linspace(self.start, self.end, LOOKS)
            motion = np.array([np.array(self._after().sample(t)) for t in times]).swapaxes(0, 1)
        try:
            states = self._checks.columns(*motion)
        except PsdynError as error:
            return f'no way leads to it: {error}'
        found = self._checks.fault(motion[0, -1:], states, states[0, 0])
        if found is not None:
            return f'the way to it {found[1]}'
        return self._no_stop(*faded[:2]) if self._velocity is None else ''

    def _no_stop(self, x, speed):
        """Why there is no stop before the limits from x, speed (dof,); empty where there is one."""
        n, checks, start = len(x), self._checks, self._before[0]
        rest = x + 0.5 * speed * np.abs(speed) / checks.braking[:n]
        beyond = (rest < np.minimum(checks.lower[:n], start)) | (rest > np.maximum(checks.upper[:n], start))
        if not beyond.any():
            return ''
        i = int(beyond.argmax())
        return (f'at its velocity {checks.names[i]} can only stop at {rest[i]:.4g}, outside of '
                f'[{checks.lower[i]:.4g}, {checks.upper[i]:.4g}]')
