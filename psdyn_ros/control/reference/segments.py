"""What a reference consists of: standing still, a path that is followed in path time, axes that come to rest."""

from math import inf

import numpy as np

from ...kernels.control.path import Spline, path_samples
from .trajectory import Curve

# coefficients of a quintic over a unit of time from position, velocity, acceleration at both of its ends
QUINTIC = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0, 0.0, 0.0],
                    [-10.0, -6.0, -1.5, 10.0, -4.0, 0.5], [15.0, 8.0, 1.5, -15.0, 7.0, -1.0],
                    [-6.0, -3.0, -0.5, 6.0, -3.0, 0.5]])
EXPONENTS = np.arange(6)
LOOKS = 10                  # samples of a bridge


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

    def samples(self, times, out):
        """Write samples at three times into out (3, 3, dof)."""
        out[:] = self._rest

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
    """

    def __init__(self, curve, joint_map, joints):
        self.curve, self.joints, self.map = curve, joints, joint_map
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
        self.speed_rate = inf       # 1/s that its speed may change by
        self.pace = pace
        self._offset = path.curve.start - pace.at(start)[0]

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
        path_time, speed, rate = self.pace.at(t)
        path_time += self._offset
        return (self.entry if path_time < self._joined else self.path).at(path_time, speed, rate)

    def samples(self, times, out):
        """Write samples at three times, of which the first is the earliest, into out (3, 3, dof)."""
        path = self.polynomials(times)
        if path is None:
            sample_each(self, times, out)
        else:
            path_samples(path, times, out)

    def polynomials(self, times):
        """The `Spline` of these times, of which the first is the earliest; None where it takes more."""
        path = self.path
        if path.plain and (self.entry is None or self.path_time(times[0]) >= self._joined):
            curve = path.curve
            return Spline(curve.coefficients, curve.times, self.pace.rows, self._offset)
        return None

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

    def samples(self, times, out):
        """Write samples at three times into out (3, 3, dof)."""
        sample_each(self, times, out)

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


def sample_each(motion, times, out):
    """Write samples of a motion at these times into out (len(times), 3, dof), one after the other."""
    for row, t in zip(out, times):
        row[:] = motion.sample(t)


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
