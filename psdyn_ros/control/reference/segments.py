"""What a reference consists of: standing still, a path that is followed in path time, axes that come to rest.

Path time runs slower than the clock where a motion has to. A ramp brings a value to a target with bounded rate and
bounded second rate: the speed of the path to its scale, and the velocity of an axis to rest. Seconds are those of any
one clock.
"""

from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from ...kernels.control.path import Spline, path_sample
from .trajectory import Curve

# coefficients of a quintic over a unit of time from position, velocity, acceleration at both of its ends
QUINTIC = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0, 0.0, 0.0],
                    [-10.0, -6.0, -1.5, 10.0, -4.0, 0.5], [15.0, 8.0, 1.5, -15.0, 7.0, -1.0],
                    [-6.0, -3.0, -0.5, 6.0, -3.0, 0.5]])
EXPONENTS = np.arange(6)
PEAK = 1.875                # peak speed of a quintic from rest to rest, in units of its mean speed
LOOKS = 10                  # samples of a bridge
SAME_INSTANT = 1e-9         # s


class Phase(NamedTuple):
    """For so long a rate that starts like this and bends so much."""

    duration: float
    rate: float
    bend: float


def ramp(value, rate, target, rate_limit, bend_limit):
    """The `Phase`s, at most three, that bring a value which changes at `rate` to rest at `target` soonest.

    rate_limit > 0 bounds the rate, bend_limit > 0 its rate; a rate beyond its limit is brought down first.
    """
    gap = target - (value + 0.5 * rate * abs(rate) / bend_limit)       # left over, were the rate ended at once
    sign = 1.0 if gap >= 0.0 else -1.0
    way, rate = sign * (target - value), sign * rate
    peak = sqrt(max(bend_limit * way + 0.5 * rate * rate, 0.0))
    held = 0.0
    if peak > rate_limit:
        peak = rate_limit
        turned = 0.5 * (rate + peak) * abs(peak - rate) + 0.5 * peak * peak
        held = max(way - turned / bend_limit, 0.0) / peak
    bend = sign * (bend_limit if peak >= rate else -bend_limit)
    phases = (Phase(abs(peak - rate) / bend_limit, sign * rate, bend), Phase(held, sign * peak, 0.0),
              Phase(peak / bend_limit, sign * peak, -sign * bend_limit))
    return [phase for phase in phases if phase.duration > 0.0]


def in_halves(phases, delay):
    """The `Phase`s of half of these changes now, and of the other half so many seconds later.

    Where that is half a period of a swing, what the two halves excite cancels: Singer and Seering, "Preshaping command
    inputs to reduce system vibration", Journal of Dynamic Systems, Measurement, and Control 112, 1990.
    """
    edges, end = [], 0.0
    for phase in phases:
        edges += [end, end + delay]
        end += phase.duration
    edges = sorted({*edges, end, end + delay})
    halves = []
    for begin, after in zip(edges, edges[1:]):
        (rate, bend), (later_rate, later_bend) = (rate_at(phases, begin - by) for by in (0.0, delay))
        halves.append(Phase(after - begin, 0.5 * (rate + later_rate), 0.5 * (bend + later_bend)))
    return halves


def rate_at(phases, t):
    """(rate, bend) of phases at t [s], right after it; zero before and after them."""
    for duration, rate, bend in phases:
        if 0.0 <= t < duration - SAME_INSTANT:
            return rate + t * bend, bend
        t = t - duration if t < duration - SAME_INSTANT else max(t - duration, 0.0)
    return 0.0, 0.0


class PathTime:
    """Seconds of path time over those of the clock: their ratio, the speed, follows `aim` without a jump.

    Until the first `aim` the speed is what it was made with. `rows` (m, 5) are its phases: clock, path time, speed, its
    rate and its bend at the start of each.
    """

    def __init__(self, speed=1.0):
        self.target = speed
        self._keep([(0.0, 0.0, speed, 0.0, 0.0)], -inf)

    def _keep(self, phases, begins):
        self._phases, self._begins = phases, begins     # the latter of the last one
        self.rows = np.array(phases)

    def at(self, t):
        """(path time, speed, rate of the speed) at time t of the clock."""
        phase = self._phases[-1] if t >= self._begins else self._phase(t)
        begin, path, speed, rate, bend = phase
        dt = t - begin
        if bend == rate == 0.0 or dt < 0.0:         # before the ramp nothing is known but its first speed
            return path + speed * dt, speed, 0.0
        return (path + dt * (speed + dt * (rate / 2.0 + dt * bend / 6.0)),
                speed + dt * (rate + dt * bend / 2.0), rate + dt * bend)

    def aim(self, speed, t, rate, bend):
        """From time t on, go over to another speed with at most this rate [1/s] and bend [1/s^2]."""
        self.change(speed, t, ramp(*self.at(t)[1:], speed, rate, bend))

    def change(self, speed, t, phases):
        """From time t on, go over to another speed through these `Phase`s."""
        path, present, _ = self.at(t)
        self.target, rows = speed, []
        for duration, rate, bend in phases:
            rows.append((t, path, present, rate, bend))
            path += duration * (present + duration * (rate / 2.0 + duration * bend / 6.0))
            present += duration * (rate + duration * bend / 2.0)
            t += duration
        self._keep([*rows, (t, path, speed, 0.0, 0.0)], t)

    def restart(self, speed, t):
        """At time t, take a speed at once, as where what moves by path time stands still."""
        path = self.at(t)[0]
        self.target = speed
        self._keep([(t, path, speed, 0.0, 0.0)], t)

    def copy(self):
        """One that goes on like this."""
        other = PathTime()
        other.target = self.target
        other._keep(list(self._phases), self._begins)
        return other

    @property
    def settled(self):
        """Time from which the speed stays what it is; -inf where it always was."""
        return self._begins

    def when(self, path):
        """Time at which the path time comes to `path`; inf where it never does."""
        begin, reached, speed, _, _ = self._phases[-1]
        if path >= reached:
            return begin + (path - reached) / speed if speed > 0.0 else begin if path == reached else inf
        low, first, speed, _, _ = self._phases[0]
        high = begin
        if path <= first:
            return low - (first - path) / speed if speed > 0.0 else low
        for _ in range(60):             # path time never runs back
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.at(middle)[0] < path else (low, middle)
        return high

    def _phase(self, t):
        found = self._phases[0]
        for phase in self._phases:
            if phase[0] > t:
                break
            found = phase
        return found


class Hold:
    """Standing still at x (dof,)."""

    start = end = -inf

    def __init__(self, x):
        self._rest = np.zeros((3, len(x)))
        self._rest[0] = x
        self.x = self._rest[0]

    def sample(self, t):
        """(x, xd, xdd), each (dof,)."""
        return self._rest

    def polynomials(self, times):
        """None, as of all that do not follow a path."""

    def over(self, t):
        """Whether it is at its end at time t."""
        return True

    def progress(self, t):
        """Share of the motion that is over."""
        return 1.0


class Path:
    """A curve in the joints of a trajectory, mapped to the coordinates; at rest after its end.

    joint_map  with `motion(position, velocity, acceleration)`, a JointMap or `SAME`
    joints     names of the columns of the curve
    shaped     whether the swing that it causes cancels itself
    """

    def __init__(self, curve, joint_map, joints, shaped=False):
        self.curve, self.joints, self.map, self.shaped = curve, joints, joint_map, shaped
        self.plain = joint_map is SAME      # its joints are the coordinates
        position = curve.sample(curve.end)[0]
        zero = np.zeros_like(position)
        self._rest = Hold(joint_map.motion(position, zero, zero)[0]).sample(curve.end)

    @property
    def rest(self):
        """x (dof,) at its end."""
        return self._rest[0]

    def at(self, path, speed=1.0, rate=0.0):
        """(x, xd, xdd) at this path time when it runs at `speed`, which changes at `rate`."""
        if path >= self.curve.end:
            return self._rest
        q = self.curve.sample(path)
        if speed != 1.0 or rate != 0.0:
            q[2] = speed * speed * q[2] + rate * q[1]
            q[1] *= speed
        return self.map.motion(*q)

    def rows(self, segments, shares):
        """(x, xd, xdd), each (M, dof), at these shares (M,) of segments (M,) of the curve."""
        joints = self.curve.rows(segments, shares)
        if self.plain:
            return joints
        return np.array([self.map.motion(*joints[:, i]) for i in range(joints.shape[1])]).swapaxes(0, 1)


class Same:
    """In the place of a JointMap where the joints of a trajectory are the coordinates."""

    building = ()

    @staticmethod
    def motion(position, velocity, acceleration):
        return position, velocity, acceleration


SAME = Same()


class Follow:
    """A `Path` in progress.

    pace    `PathTime` that it runs by
    start   time of the clock at which the curve starts
    entry   `Path` that leads into it, from before until it has come to the time of the curve where that ends; or None
    """

    def __init__(self, path, pace, start, entry=None):
        self.path, self.entry, self.start = path, entry, start
        self._joined = -inf if entry is None else entry.curve.end
        self._always_spline = path.plain and entry is None
        self.speed_rate = inf       # 1/s that its speed may change by
        self.pace = pace
        self._offset = path.curve.start - pace.at(start)[0]
        self._sampled = np.zeros((3, len(path.joints)))

    def bind(self, pace, t, path_time):
        """Run by `pace`, at this time of the path at time t of the clock."""
        self.pace, self._offset = pace, path_time - pace.at(t)[0]

    def path_time(self, t):
        """That of the curve at time t of the clock."""
        return self.pace.at(t)[0] + self._offset

    def at(self, path_time, speed=1.0, rate=0.0):
        """(x, xd, xdd) at a time of the path."""
        part = self.entry if path_time < self._joined else self.path
        return part.at(path_time, speed, rate)

    def sample(self, t):
        """(x, xd, xdd), each (dof,); valid until the next call."""
        if not (self._always_spline or self._is_spline(t)):
            path_time, speed, rate = self.pace.at(t)
            return self.at(path_time + self._offset, speed, rate)
        curve = self.path.curve
        path_sample(curve.coefficients, curve.times, self.pace.rows, self._offset, float(t), self._sampled)
        return self._sampled

    def polynomials(self, times):
        """The `Spline` of these times, of which the first is the earliest; None where it takes more."""
        if not (self._always_spline or self._is_spline(times[0])):
            return None
        curve = self.path.curve
        return Spline(curve.coefficients, curve.times, self.pace.rows, self._offset)

    def _is_spline(self, t):
        """Whether the reference is that of the curve from time t on: joints are coordinates, and its entry is over."""
        return self.path.plain and self.path_time(t) >= self._joined

    @property
    def end(self):
        """Time of the clock at which it ends if the speed stays what it is meant to be; inf where that is zero."""
        return self.pace.when(self.path.curve.end - self._offset)

    def over(self, t):
        """Whether it is at its end at time t."""
        return self.pace.at(t)[0] + self._offset >= self.path.curve.end

    def progress(self, t):
        """Share of the path that is over."""
        curve = self.path.curve
        return min(max((self.path_time(t) - curve.start) / (curve.end - curve.start), 0.0), 1.0)


class Halt(Follow):
    """A path on which path time comes to a stop: all axes come to rest together, and none leaves the path."""

    def __init__(self, follow, pace):
        super().__init__(follow.path, pace, follow.start, follow.entry)
        self._offset = follow._offset

    @property
    def end(self):
        """Time of the clock at which it is at rest."""
        return min(self.pace.settled, super().end)

    def over(self, t):
        """Whether it is at its end at time t."""
        return t >= self.pace.settled or super().over(t)


class Free:
    """A curve of the coordinates themselves in the time of the clock, at rest after its end."""

    def __init__(self, curve):
        self._curve, self.start, self.end = curve, curve.start, curve.end
        self._rest = Hold(curve.sample(curve.end)[0]).sample(curve.end)

    def sample(self, t):
        """(x, xd, xdd), each (dof,); valid until the next call."""
        return self._rest if t >= self.end else self._curve.sample(t)

    polynomials = Hold.polynomials

    def over(self, t):
        """Whether it is at its end at time t."""
        return t >= self.end

    def progress(self, t):
        """Share of the motion that is over."""
        return min(max((t - self.start) / (self.end - self.start), 0.0), 1.0) if self.end > self.start else 1.0


def in_path_time(motion, t):
    """(3, dof) of a motion at time t, with its rates by path time where it runs by that."""
    if isinstance(motion, Follow) and not isinstance(motion, Halt):
        return np.array(motion.at(motion.path_time(t)))
    return np.array(motion.sample(t))


def bridge(start, end, before, after):
    """Quintic `Curve` of one segment between two states (3, n), times start and end."""
    return Curve(np.array([start, end]), bridge_coefficients(start, end, before, after)[None])


def bridge_coefficients(start, end, before, after):
    """(6, n) of the same, lowest power first."""
    h = end - start
    return (QUINTIC @ _scaled(h, before, after)) / (h ** EXPONENTS)[:, None]


def bridge_rows(start, end, before, after, looks=None):
    """(4, N, n) positions, velocities, accelerations and jerks of the `bridge` at times equally spaced.

    looks  from `looks_at`; None: at LOOKS
    """
    h = end - start
    rows = (LOOK if looks is None else looks) @ _scaled(h, before, after)
    rows = rows.reshape(4, len(rows) // 4, -1)
    for order in range(1, 4):
        rows[order] /= h**order
    return rows


def _scaled(h, before, after):
    powers = np.array([[1.0], [h], [h * h]])
    return np.concatenate([before * powers, after * powers])


def looks_at(count):
    """(4 count, 6) from the scaled states at the ends of a bridge to so many samples of it."""
    shares = np.linspace(0.0, 1.0, count)[:, None]
    rates = [np.concatenate([np.zeros(order), [np.prod(range(k, k - order, -1)) for k in range(order, 6)]])
             for order in range(4)]
    powers = [shares ** np.maximum(EXPONENTS - order, 0) * rate for order, rate in enumerate(rates)]
    return np.concatenate(powers) @ QUINTIC


LOOK = looks_at(LOOKS)
