"""By how much one signal comes later than another: cross-correlation, in pieces, with an answer between samples."""

from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

MOST_DELAY = 0.5            # s that is looked for
LEAST_CORRELATION = 0.3     # below it the signals say nothing about each other
AROUND = 25                 # samples on either side of the smallest value that the parabola may use
NEAR_BOTTOM = 0.02          # of the share that is not explained, by which they may exceed it
ROUNDING = 1e-12


@dataclass(frozen=True)
class Delay:
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

    def __init__(self, period, most=MOST_DELAY):
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
        """The `Delay` over all pieces so far."""
        if not self._count:
            return Delay(np.nan, 0.0)
        power_a = self._a[1] - self._a[0] ** 2 / self._count
        power_b = self._b[1] - self._b[0] ** 2 / self._count
        power = power_a * power_b
        # sums of squares of what is constant leave rounding errors
        if not power_a > ROUNDING * self._a[1] or not (power_b > ROUNDING * self._b[1]).all():
            return Delay(np.nan, 0.0)
        shape = (self._b[2] - self._a[0] * self._b[0] / self._count) / np.sqrt(power)
        peak = int(np.argmax(shape))
        if shape[peak] < LEAST_CORRELATION or peak in (0, len(shape) - 1):
            return Delay(np.nan, float(shape[peak]))
        return Delay((peak + _vertex(1.0 - shape ** 2, peak) - self._lags) * self._period, float(shape[peak]))


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


def estimate_delay(a, b, period, most=MOST_DELAY):
    """Return the `Delay` by which b comes later than a; both (N,) at the same instants, `period` s apart."""
    estimator = DelayEstimator(period, min(most, len(np.atleast_1d(a)) * period / 4))
    estimator.add(a, b)
    return estimator.delay()


def topic_delays(blocks, channels, manipulator, hydraulics=None, most=MOST_DELAY):
    """Return {topic: `Delay`} of pressures and commands against the states, from some `Block`s.

    Pressures are compared with the efforts that the motion needs by the model, from positions differentiated over
    five samples; of commands it is that by which the motion follows, which has the machine's own lag in it.
    """
    pressures = channels.telemetry or next(iter(channels.ports.values()), '')
    found = {}
    cylinders = [list(manipulator.actuators).index(name) for name in hydraulics.cylinders] if hydraulics else []
    for block in blocks:
        needed = _needed(block, manipulator) if cylinders and pressures and block.pressures is not None else None
        if needed is not None:
            measured = block.effort
            for axis in cylinders:
                _of(found, pressures, axis, block, most).add(needed[:, axis], measured[:, axis])
        if channels.commands and block.command is not None:
            velocity = np.gradient(block.x, block.period, axis=0) if len(block.x) > 2 else None
            for axis in range(block.command.shape[1]):
                if velocity is not None:
                    _of(found, channels.commands, axis, block, most).add(block.command[:, axis], velocity[:, axis])
    return {topic: max((one.delay() for one in axes.values()), key=lambda delay: delay.correlation)
            for topic, axes in found.items()}


def _of(found, topic, axis, block, most):
    return found.setdefault(topic, {}).setdefault(axis, DelayEstimator(block.period, most))


def _needed(block, manipulator):
    """(N, actuators) efforts of the motion in a block, None where it is too short."""
    from scipy.signal import savgol_filter

    window = 2 * round(0.02 / block.period) + 5
    if len(block.x) <= window:
        return None
    x, xd, xdd = (savgol_filter(block.x, window, 3, deriv=order, delta=block.period, axis=0) for order in range(3))
    try:
        return manipulator.inverse_dynamics(x, xd, xdd)
    except ValueError:      # a state at which the machine has no solution
        return None
