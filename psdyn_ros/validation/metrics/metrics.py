"""How far a prediction is from what was measured: sums per second of the bag, and the figures that follow from them.

A row is reduced to sums as it goes by; what is kept does not grow with the bag: where there are too many seconds, pairs
of them become one, and so on.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np

from .alignment import DelayEstimator
from .bootstrap import Interval, bootstrap, rmse
from .energy import EnergyBalance
from .prediction import REGIME_NAMES, REGIMES
from .spectrum import ResidualSpectrum

KINDS = EFFORT, FRICTIONLESS, ACCELERATION = range(3)
KIND_NAMES = ('effort', 'effort_frictionless', 'acceleration')
# columns of sums: e = measured - predicted, a = measured
COUNT, E, E2, ABS_E, A, A2 = range(6)
SUMS = 6
LAG_SUMS = 5                        # samples, e, rate of a, e rate, rate^2
LARGEST, LOW, HIGH = range(3)       # extremes: of |e|, of a
MOST_BINS = 2048
LEAST_RANGE = 0.05                  # of the capacity: an actuator that did less is judged by this much of it


@dataclass(frozen=True)
class Metrics:
    """What is said of one quantity of one actuator; in N, N m, m/s^2 or rad/s^2.

    count    samples
    rmse, mae, bias, maximum   of measured - predicted; bias is its mean, maximum the largest size
    nrmse    rmse / scale
    r2       share of the variance of the measured that the prediction explains, 1 - sum e^2 / sum (a - mean a)^2
    scale    range of the measured over all regimes, but at least 5 % of what the actuator can do
    low, high  of the measured
    """

    count: int
    rmse: float
    mae: float
    bias: float
    maximum: float
    nrmse: float
    r2: float
    scale: float
    low: float
    high: float

    def as_dict(self):
        """For JSON: what is not known is None."""
        return known_numbers(self)


def known_numbers(record):
    """Return the fields of a dataclass as JSON takes them: None where a number is not known."""
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(record).items()}


class MetricsAccumulator:
    """Takes predictions, one after the other, and gives `Metrics`.

    manipulator, mechanism  the model, with and without friction of its actuators
    capacity  (actuators,) the largest efforts, NaN or infinite where unknown; of a healthy actuator that did next to
              nothing the error is not worth a verdict

    width     s that a bin of the sums has, 1 until the bag is longer than 2048 s
    sums      (bins, kinds, channels, regimes, SUMS), channels are actuators, of accelerations coordinates
    """

    def __init__(self, manipulator, mechanism, capacity=None):
        self.actuators, self.coordinates = tuple(manipulator.actuators), tuple(manipulator.coordinates)
        self.channels = max(len(self.actuators), manipulator.dof)
        self.capacity = np.full(len(self.actuators), np.nan) if capacity is None else np.asarray(capacity, dtype=float)
        self.width, self.rows = 1.0, 0
        shape = len(KINDS), self.channels, len(REGIMES)
        self._sums = np.zeros((0, *shape, SUMS))
        self._extremes = np.zeros((0, *shape, 3))
        self._lags = np.zeros((0, len(self.actuators), LAG_SUMS))
        self._closure = np.zeros((0, 3))        # rows, sum of squares, largest
        self.energy = EnergyBalance(mechanism)
        self.spectrum = ResidualSpectrum(len(self.actuators))
        self._delays = None

    @property
    def sums(self):
        """The sums so far."""
        return self._sums

    @property
    def closure_sums(self):
        """(bins, 2) rows, and sum of squares of the disagreement of redundant joints [m^2]."""
        return self._closure[:, :2]

    @property
    def seconds(self):
        """(bins,) s since the start of the bag, the middle of each bin."""
        return (np.arange(len(self._sums)) + 0.5) * self.width

    def add(self, prediction):
        """Take a `Prediction`; its core rows count."""
        core = prediction.core
        if self._delays is None:
            self._delays = [DelayEstimator(prediction.period) for _ in self.actuators]
        self.rows += core.stop - core.start
        bins = self._bins(prediction.t[core])
        regime = prediction.regime[core].astype(np.int64)
        pairs = ((prediction.effort, prediction.effort_id), (prediction.effort, prediction.effort_id_frictionless),
                 (prediction.xdd, prediction.xdd_fd))
        same = len(self.actuators) == prediction.xdd.shape[1]
        for kind, (measured, predicted) in zip(KINDS, pairs):
            for channel in range(measured.shape[1]):
                # where coordinates are not the actuators, the regime is that of whatever is most in motion
                of = regime[:, channel] if kind != ACCELERATION or same else regime.max(axis=1)
                self._reduce(kind, channel, bins, of, measured[core, channel], predicted[core, channel])
        for axis, estimator in enumerate(self._delays):
            estimator.add(prediction.effort_id[core, axis], prediction.effort[core, axis])
            self._add_lag(axis, bins, *(rows[core, axis] for rows in (prediction.effort, prediction.effort_id,
                                                                      prediction.effort_rate)))
        self._add_closure(bins, prediction.residual[core])
        self.energy.add(prediction)
        self.spectrum.add(prediction)

    def _bins(self, t):
        """(n,) bins of instants; makes room for them."""
        while t[-1] / self.width >= MOST_BINS:
            self._halve()
        bins = np.maximum((t / self.width).astype(np.int64), 0)
        missing = int(bins[-1]) + 1 - len(self._sums)
        if missing > 0:
            missing = max(missing, min(len(self._sums) // 2, MOST_BINS - len(self._sums)))
            self._grow(missing)
        return bins

    def _grow(self, count):
        """Append empty bins."""
        for name in ('_sums', '_extremes', '_lags', '_closure'):
            bins = getattr(self, name)
            setattr(self, name, np.concatenate((bins, np.zeros((count, *bins.shape[1:])))))
        self._extremes[-count:, ..., LOW], self._extremes[-count:, ..., HIGH] = np.inf, -np.inf

    def _halve(self):
        """Make pairs of bins one."""
        if len(self._sums) % 2:
            self._grow(1)
        self._sums, self._lags = (bins[::2] + bins[1::2] for bins in (self._sums, self._lags))
        first, second = self._extremes[::2], self._extremes[1::2]
        low = np.minimum(first, second)[..., LOW]
        self._extremes = np.maximum(first, second)
        self._extremes[..., LOW] = low
        first, second = self._closure[::2], self._closure[1::2]
        largest = np.maximum(first, second)[:, 2]
        self._closure = first + second
        self._closure[:, 2] = largest
        self.width *= 2.0

    def _reduce(self, kind, channel, bins, regime, measured, predicted):
        known = np.isfinite(measured) & np.isfinite(predicted)
        if not known.any():
            return
        if not known.all():
            bins, regime, measured, predicted = bins[known], regime[known], measured[known], predicted[known]
        e, first = measured - predicted, bins[0]
        cells, size = (bins - first) * len(REGIMES) + regime, (bins[-1] - first + 1) * len(REGIMES)
        place = slice(first, bins[-1] + 1), kind, channel
        for column, weights in ((COUNT, None), (E, e), (E2, e * e), (ABS_E, np.abs(e)), (A, measured),
                                (A2, measured * measured)):
            self._sums[(*place, slice(None), column)] += np.bincount(cells, weights, size).reshape(-1, len(REGIMES))
        # extremes of runs of one cell: rows are in order of time, so runs are long
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        at = bins[starts], regime[starts]
        extremes = self._extremes[:, kind, channel]
        np.maximum.at(extremes[..., LARGEST], at, np.maximum.reduceat(np.abs(e), starts))
        np.minimum.at(extremes[..., LOW], at, np.minimum.reduceat(measured, starts))
        np.maximum.at(extremes[..., HIGH], at, np.maximum.reduceat(measured, starts))

    def _add_lag(self, axis, bins, measured, predicted, rate):
        e = measured - predicted
        known = np.isfinite(e) & np.isfinite(rate)
        bins, e, rate = bins[known], e[known], rate[known]
        for column, weights in enumerate((np.ones(len(e)), e, rate, e * rate, rate * rate)):
            found = np.bincount(bins, weights)
            self._lags[:len(found), axis, column] += found

    def _add_closure(self, bins, residual):
        known = np.isfinite(residual)
        bins, residual = bins[known], residual[known]
        np.add.at(self._closure, (bins, 0), 1.0)
        np.add.at(self._closure, (bins, 1), residual ** 2)
        np.maximum.at(self._closure[:, 2], bins, residual)

    def scale(self, kind, channel):
        """Range by which errors are normalised, see `Metrics`."""
        low = self._extremes[:, kind, channel, :, LOW].min(initial=math.inf)
        high = self._extremes[:, kind, channel, :, HIGH].max(initial=-math.inf)
        span = high - low if high >= low else math.nan
        capacity = self.capacity[channel] if kind != ACCELERATION else math.nan
        return float(max(span, LEAST_RANGE * capacity) if math.isfinite(capacity) else span)

    def metrics(self, kind, channel, regime=None):
        """Return the `Metrics` of a kind (EFFORT, FRICTIONLESS, ACCELERATION), of one regime or of all."""
        regimes = slice(None) if regime is None else slice(regime, regime + 1)
        total = self._sums[:, kind, channel, regimes].sum(axis=(0, 1)).tolist()
        extremes = self._extremes[:, kind, channel, regimes]
        scale = self.scale(kind, channel)
        if not total[COUNT]:
            return Metrics(0, *(math.nan,) * 6, scale, math.nan, math.nan)
        rmse, spread = math.sqrt(total[E2] / total[COUNT]), total[A2] - total[A] ** 2 / total[COUNT]
        known = spread > 1e-12 * total[A2]      # else the measured is constant but for rounding
        return Metrics(
            count=int(total[COUNT]), rmse=rmse, mae=total[ABS_E] / total[COUNT], bias=total[E] / total[COUNT],
            maximum=float(extremes[..., LARGEST].max()), nrmse=rmse / scale if scale > 0.0 else math.nan,
            r2=1.0 - total[E2] / spread if known else math.nan, scale=scale,
            low=float(extremes[..., LOW].min()), high=float(extremes[..., HIGH].max()))

    def delay(self, actuator):
        """The `Delay` by which the measured effort of an actuator is later than the predicted one."""
        return self._delays[actuator].delay() if self._delays else None

    def lag(self, actuator, **options):
        """Return the `Interval` of s by which the measured effort is later than the predicted one.

        From how its errors go with its rate, to first order, which needs less of a recording than `delay` where
        sensors are noisy; a model that is wrong shows here, too.  options: of `bootstrap`.
        """
        sums = self._lags[:, actuator]
        return bootstrap(sums[sums[:, 0] > 0.0], slope_lag, **options)

    def closure_residual(self):
        """(rows, rms, largest [m]) of the disagreement of redundant joints at rod eyes, and over time:
        (bins,) largest."""
        bins = self._closure
        count = bins[:, 0].sum()
        rms = math.sqrt(bins[:, 1].sum() / count) if count else math.nan
        return int(count), rms, float(bins[:, 2].max(initial=0.0)), bins[:, 2].copy()

    def interval(self, actuator, kind=EFFORT, **options):
        """Return the `Interval` of rmse / scale of a kind; options: of `bootstrap`."""
        sums = self._sums[:, kind, actuator].sum(axis=1)[:, (COUNT, E2)]
        found = bootstrap(sums[sums[:, 0] > 0.0], rmse, **options)
        scale = self.scale(kind, actuator)
        return Interval(*(value / scale if scale > 0.0 else math.nan for value in found))

    def per_bin(self, kind, channel):
        """(bins, 3) rmse, bias and samples of each bin, NaN where there are none: errors over time."""
        total = self._sums[:, kind, channel].sum(axis=1)
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.column_stack((np.sqrt(total[:, E2] / total[:, COUNT]), total[:, E] / total[:, COUNT],
                                    total[:, COUNT]))

    def table(self, kind):
        """Yield (channel, name, {regime name or 'all': Metrics})."""
        names = self.coordinates if kind == ACCELERATION else self.actuators
        for channel, name in enumerate(names):
            parts = {'all': self.metrics(kind, channel)}
            parts.update({label: self.metrics(kind, channel, regime) for regime, label in enumerate(REGIME_NAMES)})
            yield channel, name, parts


def slope_lag(totals):
    """Statistic of (..., LAG_SUMS) totals: s by which the measured is late, - the slope of e over its rate."""
    count, e, rate, product, square = np.moveaxis(totals, -1, 0)
    with np.errstate(invalid='ignore', divide='ignore'):
        return -(product - e * rate / count) / (square - rate ** 2 / count)


def capacities(manipulator, hydraulics=None):
    """(actuators,) the largest efforts: area times supply pressure of cylinders, else the limit of the joint."""
    limits = np.asarray(manipulator.limits.effort, dtype=float).copy()
    limits[limits <= 0.0] = np.nan
    for axis, name in enumerate(manipulator.actuators):
        if hydraulics is not None and name in hydraulics.cylinders:
            cylinder = hydraulics.cylinders[name]
            limits[axis] = hydraulics.supply.pressure * cylinder.area_a - hydraulics.supply.return_pressure \
                * cylinder.area_b
    return limits
