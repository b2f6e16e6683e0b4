"""Zero-phase filters of uniform samples: positions in, positions, velocities and accelerations out, none of them late.

Their cut-off frequencies are those at which half the power of what is estimated is left, of each derivative for itself:
found from the frequency response, not from a rule of thumb.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import legendre
from scipy.ndimage import correlate1d
from scipy.signal import butter, freqz, sosfiltfilt, sosfreqz

from ...model.errors import ModelError, UnknownNameError, did_you_mean

WINDOW = 0.2                # s of a polynomial; encoders of 0.1 mm on a heavy machine need that much
DEGREE = 4
SECOND_DERIVATIVE = 2
CUTOFF = 8.0                # Hz at which Butterworth's filter, run both ways, leaves half the power
ORDER = 4
SETTLED = 0.5               # periods of the cut-off, for each order, after which an end of the record is forgotten
FREQUENCIES = 2048          # at which a response is looked at
HALF_POWER = math.sqrt(0.5)
SLOWEST_MERGED = 10.0       # rad/s up to which rates are always those of the positions, which have no offset
PADDING = 200               # rows that an end is continued by
DIFFERENCES = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0      # first derivative, of order 4


@dataclass(frozen=True)
class SavitzkyGolay:
    """Polynomials of `degree` fitted to `window` s around each sample, `period` s apart.

    Unweighted polynomials smooth each derivative differently, and efforts that were measured then seem to come earlier
    than those of the same motion. So only second derivatives are plain ones of Savitzky and Golay; first derivatives
    and values are those of polynomials of one and two degrees less, weighted by (1 - s^2) and (1 - s^2)^2 over the
    window, -1 < s < 1. The kernel of each derivative is then the derivative of the kernel before (Rodrigues' formula;
    H.-G. Mueller, Ann. Statist. 12 (1984) 766), and all three have one bandwidth.

    Raises ModelError where the polynomial has no second derivative, or the window has no length.
    """

    period: float
    window: float = WINDOW
    degree: int = DEGREE
    name = 'Savitzky-Golay'

    def __post_init__(self):
        _check_period(self.period)
        if not (2 <= self.degree <= 9 and self.window > 0.0 and math.isfinite(self.window)):
            raise ModelError(f'Savitzky-Golay filter of degree {self.degree} over {self.window:g} s; expected 2 to 9, '
                             'and more than 0 s')

    @cached_property
    def _weights(self):
        """{derivative: (taps, what `_polynomial_weights` returns)}."""
        return {}

    def _taps(self, derivative):
        """(2 half + 1,) weights of the samples around one for its derivative."""
        less = max(SECOND_DERIVATIVE - derivative, 0)
        # of all ends of the window, half a sample beyond the last one makes the bandwidths most alike
        s = np.arange(-self.half, self.half + 1) / (self.half + 0.5)
        return _polynomial_weights(self.half, self.degree - less, derivative, self.period,
                                   (1.0 - s ** 2) ** less)[self.half]

    @property
    def half(self):
        """Samples on either side that an estimate depends on."""
        # at least one more sample than the polynomial has coefficients, or nothing is smoothed
        return max(round(0.5 * self.window / self.period), self.degree // 2 + 1)

    def __call__(self, values, derivative=0):
        """Return a derivative (N, ...) of uniform samples, along the first axis; N must be 2 half + 1 or more."""
        half, width = self.half, 2 * self.half + 1
        _check_length(values, width, self.name)
        values = np.asarray(values, dtype=float)
        if derivative not in self._weights:
            self._weights[derivative] = (self._taps(derivative),
                                         _polynomial_weights(half, self.degree, derivative, self.period))
        taps, weights = self._weights[derivative]
        out = correlate1d(values, taps, axis=0, mode='constant')
        # at the ends the values of the polynomial through the first and the last window
        out[:half] = np.tensordot(weights[:half], values[:width], 1)
        out[-half:] = np.tensordot(weights[half + 1:], values[-width:], 1)
        return out

    def cutoff(self, derivative=0):
        """Hz at which the power of an estimated derivative is half of the true one's."""
        w, response = freqz(self._taps(derivative), worN=FREQUENCIES)
        return _half_power(w, np.abs(response), derivative, self.period)

    def text(self):
        """What it does, for a report."""
        return (f'{self.name}, degree {self.degree} over {1e3 * 2 * self.half * self.period:.3g} ms; cut-off '
                f'{self.cutoff(0):.3g} Hz of values, {self.cutoff(1):.3g} Hz of first and {self.cutoff(2):.3g} Hz of '
                'second derivatives')


@dataclass(frozen=True)
class Butterworth:
    """A low-pass of `order`, run forth and back, half of the power left at `frequency` [Hz]; then differences.

    Raises ModelError where the frequency is beyond what the samples show.
    """

    period: float
    frequency: float = CUTOFF
    order: int = ORDER
    name = 'Butterworth'

    def __post_init__(self):
        _check_period(self.period)
        if not (1 <= self.order <= 8 and 0.0 < self.frequency < 0.4 / self.period):
            raise ModelError(f'Butterworth filter of order {self.order} at {self.frequency:g} Hz; expected 1 to 8, and '
                             f'less than {0.4 / self.period:g} Hz for samples every {self.period:g} s')

    @cached_property
    def _sections(self):
        # run twice, each pass may take half of what is to be lost
        wider = self.frequency / (math.sqrt(2.0) - 1.0) ** (0.5 / self.order)
        return butter(self.order, min(wider, 0.49 / self.period), fs=1.0 / self.period, output='sos')

    @property
    def half(self):
        """Samples on either side that an estimate depends on to any extent worth mentioning."""
        return math.ceil(SETTLED * self.order / (self.frequency * self.period))

    def __call__(self, values, derivative=0):
        """Return a derivative (N, ...) of uniform samples, along the first axis; N must be 2 half + 1 or more."""
        _check_length(values, 2 * self.half + 1, self.name)
        values = sosfiltfilt(self._sections, values, axis=0, padlen=self.half)
        for _ in range(derivative):
            values = _difference(values, self.period)
        return values

    def cutoff(self, derivative=0):
        """Hz at which the power of an estimated derivative is half of the true one's."""
        w, response = sosfreqz(self._sections, worN=FREQUENCIES)
        w, differences = freqz(DIFFERENCES / self.period, worN=FREQUENCIES)
        return _half_power(w, np.abs(response) ** 2 * np.abs(differences) ** derivative, derivative, self.period)

    def text(self):
        """What it does, for a report."""
        return (f'{self.name}, order {self.order} forth and back; cut-off {self.cutoff(0):.3g} Hz of values, '
                f'{self.cutoff(1):.3g} Hz of first and {self.cutoff(2):.3g} Hz of second derivatives')


FILTERS = {'savitzky_golay': SavitzkyGolay, 'butterworth': Butterworth}


def make_filter(name, period, **options):
    """Return a filter by its name, one of `FILTERS`, for samples `period` s apart; options as its class takes them."""
    if name not in FILTERS:
        raise UnknownNameError(f"filter '{name}': expected one of {', '.join(FILTERS)}{did_you_mean(name, FILTERS)}")
    return FILTERS[name](period, **{key: value for key, value in options.items() if value is not None})


def through_gaps(function, values):
    """Apply a filter to (N, n) with NaN in it: gaps are bridged by straight lines, and are NaN afterwards."""
    known = np.isfinite(values)
    if known.all():
        return function(values)
    bridged, rows = values.copy(), np.arange(len(values))
    for column, there in zip(bridged.T, known.T):
        column[:] = np.interp(rows, rows[there], column[there]) if there.any() else 0.0
    out = function(bridged)
    out[~known] = np.nan
    return out


def merged_rates(x, xd, period):
    """Return rates (N, n) of positions (N, n) and of rates (N, n) that were measured too, with the least noise.

    Noise of differences of positions grows with the frequency, that of rates does not; so slow changes are those of the
    positions, fast ones those of the rates. Where both have the same noise follows from what samples differ from their
    neighbours by. The filter is first-order, run forth and back (complementary filter: Brown and Hwang, Introduction to
    Random Signals and Applied Kalman Filtering, Wiley 2012, 8.12).
    """
    slopes = _difference(x, period)
    position_noise, rate_noise = (np.sqrt(np.mean(np.diff(one, 3, axis=0) ** 2, axis=0)) for one in (x, xd))
    out = np.empty_like(slopes)
    for k in range(out.shape[1]):
        # rad/s at which both are alike, no slower than what the samples show
        frequency = rate_noise[k] / max(position_noise[k], np.finfo(float).tiny)
        pole = math.exp(-min(max(frequency, SLOWEST_MERGED), 1.0 / period) * period)
        section = np.array([[1.0 - pole, 0.0, 0.0, 1.0, -pole, 0.0]])
        out[:, k] = xd[:, k] + sosfiltfilt(section, slopes[:, k] - xd[:, k], padlen=min(len(x) - 1, PADDING))
    return out


def _polynomial_weights(half, degree, derivative, period, weights=1.0):
    """(2 half + 1, 2 half + 1) by which a window of samples gives a derivative of its polynomial at each of them.

    weights  of the samples (2 half + 1,) in the fit
    """
    t = np.linspace(-1.0, 1.0, 2 * half + 1)
    basis = legendre.legvander(t, degree)
    slopes = legendre.legvander(t, max(degree - derivative, 0)) @ legendre.legder(np.eye(degree + 1), derivative)
    root = np.broadcast_to(np.sqrt(weights), t.shape)
    return slopes @ np.linalg.pinv(basis * root[:, None]) * root / (half * period) ** derivative


def _difference(values, period):
    """First derivative along the first axis, of order 4, of order 2 at the ends."""
    out = np.gradient(values, period, axis=0, edge_order=2)
    out[2:-2] = (8.0 * (values[3:-1] - values[1:-3]) - (values[4:] - values[:-4])) / (12.0 * period)
    return out


def _half_power(w, size, derivative, period):
    """Hz where a response falls below half of the power of an exact derivative."""
    exact = (w / period) ** derivative
    share = np.divide(size, exact, out=np.ones_like(size), where=exact > 0.0)
    below = np.flatnonzero(share < HALF_POWER)
    if not below.size:
        return 0.5 / period
    k = below[0]
    between = (share[k - 1] - HALF_POWER) / (share[k - 1] - share[k])
    return float(w[k - 1] + between * (w[k] - w[k - 1])) / (2.0 * math.pi * period)


def _check_period(period):
    if not 0.0 < period < math.inf:
        raise ModelError(f'a filter of samples {period:g} s apart; expected more than 0 s')


def _check_length(values, least, name):
    if len(values) < least:
        raise ModelError(f'{len(values)} samples; the {name} filter needs {least} or more')
