"""Streamed points as sums of delayed copies of the motion that they belong to, so that a load does not swing.

Between two points positions are a cubic by velocities, those given or differences of the positions around; velocities
and accelerations are on straight lines, so that stamps which are a little off do no harm. Before the first point the
machine was at rest there.
"""

from bisect import bisect_right

import numpy as np

from .stream import StreamedPoint
from .swing_shaper import SOONEST


class StreamShaper:
    """Shapes one point after the other; shaper: `Shaper`, first: the `StreamedPoint` that begins the stream."""

    def __init__(self, shaper, first):
        self._shaper = shaper
        self._times, self._states = [], []
        self.take(first)

    def take(self, point):
        """Take a checked point, later than the `last` one, and forget what no later one needs."""
        self.last = point
        self._times.append(point.time)
        self._states.append(point.state)
        needed = bisect_right(self._times, point.time - self._shaper.delays[-1]) - 2
        if needed > 0:
            del self._times[:needed], self._states[:needed]

    def shaped(self, point):
        """Return the shaped `StreamedPoint` of one that is to be taken; NaN where that has NaN."""
        state = self._shaper.shares[0] * point.state
        for share, delay in zip(self._shaper.shares[1:], self._shaper.delays[1:]):
            state = state + share * self._at(point.time - delay)
        return StreamedPoint(point.time, state)

    def _at(self, t):
        """Position, velocity and acceleration (3, dof) of the motion at a time before the last point."""
        k = bisect_right(self._times, t) - 1
        if k < 0:
            rest = np.zeros_like(self._states[0])
            rest[0] = self._states[0][0]
            return rest
        if k == len(self._times) - 1:
            return self._states[k]
        h = max(self._times[k + 1] - self._times[k], SOONEST)
        u = (t - self._times[k]) / h
        p, q = self._states[k][0], self._states[k + 1][0]
        v, w = h * self._velocity(k), h * self._velocity(k + 1)
        state = (1.0 - u) * self._states[k] + u * self._states[k + 1]
        state[0] = p + u * (v + u * (3.0 * (q - p) - 2.0 * v - w + u * (v + w - 2.0 * (q - p))))
        return state

    def _velocity(self, k):
        """Velocity (dof,) at point k: the one given, or that of the parabola through it and its neighbours."""
        given = self._states[k][1]
        if not np.isnan(given).any():
            return given
        before, after = max(k - 1, 0), min(k + 1, len(self._times) - 1)
        if before == after:
            return np.zeros_like(given)
        slope = (self._states[after][0] - self._states[before][0]) / (self._times[after] - self._times[before])
        if before == k or after == k:
            return slope
        first = (self._states[k][0] - self._states[before][0]) / (self._times[k] - self._times[before])
        second = (self._states[after][0] - self._states[k][0]) / (self._times[after] - self._times[k])
        share = (self._times[k] - self._times[before]) / (self._times[after] - self._times[before])
        return (1.0 - share) * first + share * second
