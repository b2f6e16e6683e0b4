"""Measurements of one topic over time, sampled at other instants."""

import numpy as np

from ...model.units import SECOND

BRIDGED = 3.0               # periods without a measurement that are interpolated over
TOUCHING = 0.01             # periods by which an instant may miss a measurement at the end of a stretch
CLOSEST, FURTHEST = 0.3, 3.0    # periods between neighbours, for a cubic through four of them
OLDEST = SECOND             # ns that a value which is held may be old


class Track:
    """Values of several columns, added in pieces and forgotten in pieces.

    period  ns between them, about
    held    whether a value stands until the next one, as commands do
    late    rows that were not after the ones before, which are dropped
    """

    def __init__(self, columns, period, held=False):
        self.period, self.held = period, held
        self.times, self.values = np.empty(0, dtype=np.int64), np.empty((0, columns))
        self.late = 0

    @property
    def last(self):
        """ns of the last row, None where there is none."""
        return int(self.times[-1]) if len(self.times) else None

    def add(self, times, values):
        """Add rows (n,) ns, (n, columns); what is not later than all before is dropped.

        What is held may be said again for the same instant: the last word counts. Of what is measured parts that come
        in several messages of one instant are put together.
        """
        if not self.held and len(times):
            times, values = _together(np.concatenate((self.times[-1:], times)),
                                      np.concatenate((self.values[-1:], values)))
            self.times, self.values = self.times[:-1], self.values[:-1]
        before = self.times[-1] if len(self.times) else np.iinfo(np.int64).min
        latest = np.maximum.accumulate(np.concatenate(([before], times)))[:-1]
        later = times >= latest if self.held else times > latest
        if not later.all():
            self.late += int(len(later) - later.sum())
            times, values = times[later], values[later]
        self.times = np.concatenate((self.times, times))
        self.values = np.concatenate((self.values, values))

    def forget(self, before):
        """Drop rows that sampling after a time does not need."""
        first = max(int(np.searchsorted(self.times, before, side='right')) - 3, 0)
        if first:
            self.times, self.values = self.times[first:].copy(), self.values[first:].copy()

    def sample(self, instants):
        """(n, columns) at (n,) ns; NaN where nothing is near enough."""
        out = np.full((len(instants), self.values.shape[1]), np.nan)
        known = np.isfinite(self.values)
        pick = _held if self.held else _interpolated
        if known.all():
            return pick(self.times, self.values, instants, self.period, out)
        whole = known.all(axis=0)
        if whole.any():
            out[:, whole] = pick(self.times, self.values[:, whole], instants, self.period, out[:, whole])
        for column in np.flatnonzero(~whole):
            there = known[:, column]
            if there.any():
                out[:, [column]] = pick(self.times[there], self.values[there][:, [column]], instants, self.period,
                                        out[:, [column]])
        return out


def _together(times, values):
    """Return rows (n,), (n, columns) in which neighbours of one time are one, where no column is in both."""
    while True:
        same = np.flatnonzero(times[1:] == times[:-1]) + 1
        known = np.isfinite(values)
        same = same[~(known[same] & known[same - 1]).any(axis=1)]
        same = same[np.diff(same, prepend=-2) > 1]      # of three of them the first two
        if not len(same):
            return times, values
        values = np.array(values)
        values[same - 1] = np.where(known[same], values[same], values[same - 1])
        times, values = np.delete(times, same), np.delete(values, same, axis=0)


def _held(times, values, instants, period, out):
    place = np.searchsorted(times, instants, side='right') - 1
    fresh = (place >= 0) & (instants - times[np.maximum(place, 0)] <= max(BRIDGED * period, OLDEST))
    out[fresh] = values[place[fresh]]
    return out


def _interpolated(times, values, instants, period, out):
    """A cubic through four neighbours where they are evenly spread, else a line through two."""
    if len(times) < 2:
        if len(times):
            out[instants == times[0]] = values[0]
        return out
    place = np.clip(np.searchsorted(times, instants, side='right') - 1, 0, len(times) - 2)
    step = np.diff(times).astype(float)
    since = (instants - times[place]).astype(float)
    before, after = np.abs(since) <= TOUCHING * period, np.abs(since - step[place]) <= TOUCHING * period
    near = ((step[place] <= BRIDGED * period) & (since >= 0) & (since <= step[place])) | before | after
    share = np.clip(since / step[place], 0.0, 1.0)
    out[near] = (values[place] + share[:, np.newaxis] * (values[place + 1] - values[place]))[near]
    even = (step >= CLOSEST * period) & (step <= FURTHEST * period)
    inner = np.clip(place, 1, max(len(times) - 3, 1))
    cubic = near & (place == inner) & (len(times) >= 4) & (since > 0) & (since < step[place])
    if cubic.any():
        k = place[cubic]
        cubic_rows = np.flatnonzero(cubic)[even[k - 1] & even[k] & even[k + 1]]
        k = place[cubic_rows]
        if len(k):
            out[cubic_rows] = _cubic(times, values, k, instants[cubic_rows])
    return out


def _cubic(times, values, k, instants):
    """Lagrange's polynomial through rows k - 1 to k + 2."""
    nodes = [(times[k + j] - times[k]).astype(float) for j in (-1, 0, 1, 2)]
    at = (instants - times[k]).astype(float)
    total = 0.0
    for i in range(4):
        weight = np.ones(len(k))
        for j in range(4):
            if j != i:
                weight *= (at - nodes[j]) / (nodes[i] - nodes[j])
        total = total + weight[:, np.newaxis] * values[k + i - 1]
    return total
