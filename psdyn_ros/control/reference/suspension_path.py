"""A shaped motion whose point of suspension, and not only its joints, takes the shaped path.

A load swings by the acceleration of the point that it hangs from. Where that point p(q) is not linear in the joints q,
as of a crane that slews, the sum of delayed copies of q does not move it along the sum of delayed copies of its path,
and some swing is left. Here joints leave the sum of copies q_s by the smallest d with

    p(q_s(t) + d(t)) = sum_i share_i p(q(t - delay_i)),

found by Newton's method from d = 0 at each time. Axes count by how far they move p. Where they are too few for that,
the vertical counts a tenth: it hardly makes a load swing.
"""

import numpy as np
from scipy.linalg import solve_banded

from .segments import QUINTIC
from .swing_shaper import SOONEST, pieces, segments_at
from .trajectory import Curve, cubic_curve, quintic_curve, smooth_accelerations

STEP = 0.04             # s between times at which the joints are solved for, at most
FEWEST, MOST = 32, 1000         # steps of a motion
SLICE = 4               # of them that are solved for together
ITERATIONS = 6          # of Newton's method, at most; three do for a gap of a metre on a boom of ten
REACHED = 1e-9          # m of a gap that is none
VERTICAL = 0.1          # weight of vertical gaps
DETUNED = 0.9, 1.0, 1.1         # frequencies at which a motion has to cancel its swings, as shares of those believed
LEFT = np.array((0.25, 0.02, 0.25))     # share of the largest swing that it may leave there
WEAKEST = 1e-2          # directions that axes move less than this, as a share of the best, are given up


def follow_suspension(path, shaped_path, shaper, suspension):
    """Return (`Curve` of the coordinates, (segments,) which segment of the given path each begins in).

    A generator that pauses wherever the caller may want to do something else; `yield from` has the result.

    path, shaped_path   `Path`s before and after `shaped` with this `Shaper`
    suspension          function of x (N, n) that returns the points (N, k), k / 3 of them after each other, and their
                        Jacobian (N, k, n), and has the attribute `down`, the unit vector (3,) of gravity

    Raises PsdynError where loops do not close on the way.
    """
    end = shaped_path.curve.end
    start = shaped_path.curve.start
    times = np.linspace(start, end, int(np.clip((end - start) / STEP, FEWEST, MOST)) + 1)
    solver = _Solver(suspension, path.rest[None])
    offsets = np.zeros((times.size, path.rest.size))
    for k in range(1, times.size - 1, SLICE):
        yield
        part = times[k:min(k + SLICE, times.size - 1)]
        points = suspension(_positions(path, np.subtract.outer(part, shaper.delays).ravel()))[0]
        target = np.einsum('i,nik->nk', shaper.shares, points.reshape(len(part), len(shaper.shares), -1))
        offsets[k:k + len(part)] = yield from solver.offsets(_positions(shaped_path, part), target)
    yield
    rest = np.zeros_like(offsets)
    rates = rest.copy()
    rates[:-1] = cubic_curve(times, offsets, rest[0]).coefficients[:, 1]
    yield
    accelerations = smooth_accelerations(times, offsets, rates, rest[0])
    yield
    added = quintic_curve(times, offsets, rates, accelerations)
    yield
    knots = np.union1d(shaped_path.curve.times, times)
    knots = knots[np.concatenate(([True], np.diff(knots) > SOONEST))]
    knots[-1] = end
    base = np.empty((len(knots) - 1, 6, offsets.shape[1]))
    for k in range(0, len(base), SLICE):
        yield
        base[k:k + SLICE] = _quintics(shaped_path, knots[k:k + SLICE + 1])
    yield
    return Curve(knots, base + pieces(added, knots[:-1])), segments_at(path.curve, knots[:-1])


def swings_cancel(path, suspension, modes):
    """Whether a motion leaves next to no swing at its end by itself, also where frequencies are a little off.

    A generator as `follow_suspension`, with its arguments.  modes: (frequencies [rad/s], damping ratios), (modes,)
    each.  Both to first order, as shares of the largest swing on the way: `LEFT` at these frequencies times `DETUNED`.
    """
    start, end = path.curve.start, path.curve.end
    times = np.linspace(start, end, int(np.clip((end - start) / STEP, FEWEST, MOST)) + 1)
    points = []
    for k in range(0, times.size, SLICE):
        yield
        points.append(suspension(_positions(path, times[k:k + SLICE]))[0])
    yield
    level = np.eye(3) - np.outer(suspension.down, suspension.down)
    moved = np.diff(np.concatenate(points), 2, axis=0)
    pushes = moved @ np.kron(np.eye(moved.shape[1] // 3), level)
    swings = np.array([[_swing(pushes, times[1] - start, share * frequency, ratio) for frequency, ratio in zip(*modes)]
                       for share in DETUNED])           # (detuned, modes, steps)
    return bool((swings[..., -1].max(axis=1) <= LEFT * swings.max(axis=(1, 2))).all())


def _swing(pushes, step, frequency, ratio):
    """Return the amplitude (N,) of a mode under accelerations (N, k) that are `step` [s] apart."""
    rows = np.ones((2, len(pushes)), complex)       # what is left of an amplitude after a step, and a push more
    rows[1] = -np.exp(-(ratio + 1j * np.sqrt(max(1.0 - ratio * ratio, 0.0))) * frequency * step)
    return np.linalg.norm(solve_banded((1, 0), rows, pushes), axis=1)


class _Solver:
    """Smallest offsets of axes that bring points to where they shall be; x (1, n): where axes are weighed."""

    def __init__(self, suspension, x):
        self._suspension = suspension
        J = suspension(x)[1][0]
        reach = np.linalg.norm(J, axis=0)
        self._weights = np.where(reach > 0.0, 1.0 / np.where(reach > 0.0, reach, 1.0), 0.0)
        one = np.eye(3) - (1.0 - VERTICAL) * np.outer(suspension.down, suspension.down)
        self._rows = np.kron(np.eye(len(J) // 3), one)

    def offsets(self, x, target):
        """Return them (N, n) for positions x (N, n) and points target (N, k); a generator as `follow_suspension`."""
        d = np.zeros_like(x)
        for _ in range(ITERATIONS):
            points, J = self._suspension(x + d)
            gap = np.einsum('ij,nj->ni', self._rows, target - points)
            if np.abs(gap).max() < REACHED:
                break
            yield
            J = self._rows @ J * self._weights
            # the smallest whole offset for the points to first order, and not the smallest step
            d = self._weights * np.einsum('nij,nj->ni', np.linalg.pinv(J, rcond=WEAKEST),
                                          gap + np.einsum('nij,nj->ni', J, self._unweighted(d)))
        return d

    def _unweighted(self, d):
        return np.divide(d, self._weights, out=np.zeros_like(d), where=self._weights > 0.0)


def _positions(path, times):
    """x (N, n) at times (N,) of a `Path`, at rest outside of it."""
    knots = path.curve.times
    t = np.clip(times, path.curve.start, path.curve.end)
    k = segments_at(path.curve, t)
    return path.rows(k, (t - knots[k]) / (knots[k + 1] - knots[k]))[0]


def _quintics(path, knots):
    """Coefficients (N, 6, n) between knots (N + 1,) of the coordinates of a `Path`, which has none at other times."""
    begins, h = knots[:-1], np.diff(knots)
    if path.plain:
        return pieces(path.curve, begins)
    k = segments_at(path.curve, begins)
    first, length = path.curve.times[k], np.diff(path.curve.times)[k]
    ends = [path.rows(k, np.clip((t - first) / length, 0.0, 1.0)) for t in (begins, knots[1:])]
    powers = h[:, None] ** np.arange(3)
    states = np.concatenate([np.moveaxis(np.asarray(end), 0, 1) * powers[:, :, None] for end in ends], axis=1)
    return np.einsum('ij,njd->nid', QUINTIC, states) / (h[:, None] ** np.arange(6))[:, :, None]
