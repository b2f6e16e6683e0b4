"""By how much one signal comes later than another: cross-correlation, in pieces, with an answer between samples."""

from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

MAX_DELAY = 0.5             # s that is looked for
LEAST_CORRELATION = 0.3     # below it the signals say nothing about each other
AROUND = 25                 # samples on either side of the smallest value that the parabola may use
NEAR_BOTTOM = 0.02          # of the share that is not explained, by which they may exceed it
ROUNDING = 1e-12


@dataclass(frozen=True)
class CorrelationDelay:
    """What a cross-correlation says.

    seconds      by which the second signal is later; NaN where the two have too little in common
    correlation  at that delay, -1 to 1
    """

    seconds: float
    correlation: float


class DelayEstimator:
    """The delay of b against a, over many pieces: sums at all lags, which do not grow.

    Signals are differenced first: a delay is seen where they change, and offsets and slow drift say nothing.  At each
    lag b is fitted by a; how little that leaves is smallest, and smooth, at the delay, whatever the record begins and
    ends with.

    period  s between samples
    most    s, the largest delay looked for, either way
    """

    def __init__(self, period, most=MAX_DELAY):
        self._period, self._lags = period, max(int(round(most / period)), 2)
        self._count = 0
        self._a = np.zeros(2)                           # sums of a and a^2
        self._b = np.zeros((3, 2 * self._lags + 1))     # at each lag sums of b, b^2 and a b

    def add(self, a, b):
        """Add a piece (N,) of both, without gaps; between values that are not finite, what is long enough is used."""
        a, b = (np.diff(np.asarray(signal, dtype=float)) for signal in (a, b))
        good = np.isfinite(a) & np.isfinite(b)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], good, [False]))))
        for first, last in edges.reshape(-1, 2).tolist():
            self._add(a[first:last], b[first:last])

    def _add(self, a, b):
        # only the inner part of a is compared, so that every lag sees as many samples
        inner = a[self._lags:len(a) - self._lags]
        if len(inner) < self._lags:
            return
        size = next_fast_len(len(a) + len(inner), real=True)
        products = irfft(rfft(b, size) * np.conj(rfft(inner, size)), size)[:2 * self._lags + 1]
        self._b += [_windows(b, len(inner)), _windows(b * b, len(inner)), products]
        self._a += inner.sum(), inner @ inner
        self._count += len(inner)

    def delay(self):
        """The `CorrelationDelay` over all pieces so far."""
        if not self._count:
            return CorrelationDelay(np.nan, 0.0)
        power_a = self._a[1] - self._a[0] ** 2 / self._count
        power_b = self._b[1] - self._b[0] ** 2 / self._count
        power = power_a * power_b
        # sums of squares of what is constant leave rounding errors
        if not power_a > ROUNDING * self._a[1] or not (power_b > ROUNDING * self._b[1]).all():
            return CorrelationDelay(np.nan, 0.0)
        shape = (self._b[2] - self._a[0] * self._b[0] / self._count) / np.sqrt(power)
        peak = int(np.argmax(shape))
        if shape[peak] < LEAST_CORRELATION or peak in (0, len(shape) - 1):
            return CorrelationDelay(np.nan, float(shape[peak]))
        lag = peak + _vertex(1.0 - shape ** 2, peak) - self._lags
        return CorrelationDelay(lag * self._period, float(shape[peak]))


def _windows(signal, size):
    """Sums of a signal over all windows of a size."""
    sums = np.concatenate(([0.0], np.cumsum(signal)))
    return sums[size:] - sums[:-size]


def _vertex(rest, bottom):
    """Where between the neighbours of its smallest value a curve is smallest, in samples: by a parabola.

    Through three samples alone noise would decide, where signals are smooth and the curve is flat.
    """
    near = 1
    while near < AROUND and near < min(bottom, len(rest) - 1 - bottom) \
            and max(rest[bottom - near - 1], rest[bottom + near + 1]) - rest[bottom] < NEAR_BOTTOM:
        near += 1
    places = np.arange(-near, near + 1)
    bend, slope, _ = np.polyfit(places, rest[bottom - near:bottom + near + 1], 2)
    return float(np.clip(-0.5 * slope / bend, -1.0, 1.0)) if bend > 0.0 else 0.0
