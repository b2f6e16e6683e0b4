"""How far a prediction is from what was measured: sums per bin of time, and the figures that follow from them."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from ..signals.spectrum import ResidualSpectrum
from .bins import Bins
from .energy import EnergyBalance
from .figure import R2, Bias, Closure, Delay, Frozen, Maximum, Nrmse
from .prediction import HELD, JUDGED_REGIMES, NEAR_STOP, REGIME_NAMES, REGIMES

# every figure that is judged; a new one takes its place here
FIGURES = (Nrmse, Bias, Maximum, R2, Delay, Closure, Frozen, EnergyBalance)
BY_NAME = {figure.name: figure for figure in FIGURES}

KINDS = EFFORT, FRICTIONLESS, ACCELERATION = range(3)
KIND_NAMES = ('effort', 'effort_frictionless', 'acceleration')
# columns of sums: e = measured - predicted, a = measured
COUNT, E, E2, ABS_E, A, A2 = range(6)
SUMS = 6
MOST_NOISE = 0.5                    # of the squares of an error
STILL = 1e-3                        # m or rad by which what stands moves at most, as a filter sees it
LEAST_RANGE = 0.05                  # of the capacity: an actuator that did less is judged by this much of it


@dataclass(frozen=True)
class Metrics:
    """What is said of one quantity of one actuator; in N, N m, m/s^2 or rad/s^2.

    count    samples
    rmse, mae, bias, maximum   of measured - predicted; bias is its mean, maximum the largest size
    nrmse    rmse / scale
    r2       share of the variance of the measured that the prediction explains, 1 - sum e^2 / sum (a - mean a)^2
    scale    range of the measured over all regimes that are judged, at least 5 % of what the actuator can do
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

    def share(self, value):
        """Return value / scale, NaN where there is no scale."""
        return value / self.scale if self.scale > 0.0 else math.nan

    def as_dict(self):
        """For JSON: what is not known is None."""
        return known_numbers(self)


def plain(value):
    """A value as JSON can hold it: NaN and infinities are None."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def known_numbers(record):
    """Return the fields of a dataclass as JSON takes them: None where a number is not known."""
    return plain(asdict(record))


class ErrorSums:
    """Sums of measured - predicted in bins of time, and the figures that follow from them.

    manipulator, mechanism  the model, with and without friction of its actuators
    capacity  (actuators,) the largest efforts, NaN or infinite where unknown; of a healthy actuator that did next to
              nothing the error is not worth a verdict
    bins      `Bins`
    kinds     how many pairs of measured and predicted values there are, see `pairs`
    quality   `Quality` of the data, or None
    delays    {actuator: `TopicDelay` of its efforts}, where one was looked for
    noise     function of an actuator's index: rms [N, N m] of its errors that is noise of sensors

    figure    {name: `Figure`} of all FIGURES
    live      whether it is about the last seconds of a machine that runs: then there are no intervals of shares
    JUDGED    kind of the errors that are judged
    rows      instants that were added
    """

    live, JUDGED = False, EFFORT

    def __init__(self, manipulator, mechanism, capacity, bins, kinds, *, quality=None, delays=None,
                 noise=lambda axis: 0.0):
        self.actuators, self.coordinates = tuple(manipulator.actuators), tuple(manipulator.coordinates)
        self.mechanism, self.bins, self.quality, self.delays, self.noise = mechanism, bins, quality, delays or {}, noise
        self.capacity = np.full(len(self.actuators), np.nan) if capacity is None else np.asarray(capacity, dtype=float)
        self.rows, self.period = 0, math.nan
        shape = kinds, max(len(self.actuators), manipulator.dof), len(REGIMES)
        self._sums, self._largest = bins.column((*shape, SUMS)), bins.column(shape, np.maximum)
        self._low, self._high = bins.column(shape, np.minimum, np.inf), bins.column(shape, np.maximum, -np.inf)
        self.figure = {name: figure(self) for name, figure in BY_NAME.items()}

    def pairs(self, prediction):
        """Yield (measured, predicted, regime) of each kind, (N, channels) of all rows of a `Prediction`."""
        raise NotImplementedError

    def add(self, prediction):
        """Take a `Prediction`; its core rows count."""
        core = prediction.core
        bins = self.bins.place(prediction.t[core], prediction.period)
        self.period = prediction.period
        self.rows += core.stop - core.start
        for kind, (measured, predicted, regime) in enumerate(self.pairs(prediction)):
            for channel in range(measured.shape[1]):
                self._reduce(kind, channel, bins, *(one[core, channel] for one in (regime, measured, predicted)))
        for figure in self.figure.values():
            figure.add(prediction, bins)

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
            found = np.bincount(cells, weights, size).reshape(-1, len(REGIMES))
            self._sums.rows[(*place, slice(None), column)] += found
        # extremes of runs of one cell: rows are in order of time, so runs are long
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        at = bins[starts], regime[starts]
        for column, values in ((self._largest, np.abs(e)), (self._low, measured), (self._high, measured)):
            column.combine.at(column.rows[:, kind, channel], at, column.combine.reduceat(values, starts))

    def measured(self):
        """Return the indices of actuators with known efforts that are judged."""
        return [axis for axis in range(len(self.actuators)) if self.effort(axis).count]

    def near_stop(self, axis):
        """Return the share of the instants with known effort at which an actuator is near an end stop; NaN of none."""
        known = self.known(axis)
        return self.metrics(EFFORT, axis, NEAR_STOP).count / known if known else math.nan

    def held(self, axis):
        """Return the share of the instants with known effort at which friction that may be anything explains it."""
        known = self.known(axis)
        return self.metrics(EFFORT, axis, HELD).count / known if known else math.nan

    def stands(self, axis):
        """Return whether an actuator stands all the time: on its brake it moves by no more than the noise says."""
        return False

    def only_noise(self, axis):
        """Return whether an actuator stands, and its error is mostly noise of sensors, which moves it in the model."""
        return self.stands(axis) and self.noise(axis) ** 2 > MOST_NOISE * self.judged(axis).rmse ** 2

    def known(self, axis):
        """Return the number of instants at which the effort of an actuator is known, judged or not."""
        return int(self._sums.rows[:, EFFORT, axis, :, COUNT].sum())

    def least_scale(self, axis):
        """The least by which errors of an effort are normalised."""
        return float(LEAST_RANGE * self.capacity[axis]) if math.isfinite(self.capacity[axis]) else 0.0

    def scale(self, kind, channel):
        """Range by which errors are normalised, see `Metrics`."""
        low, high = (extreme.rows[:, kind, channel, JUDGED_REGIMES] for extreme in (self._low, self._high))
        span = float(high.max(initial=-math.inf) - low.min(initial=math.inf))
        if span < 0.0:
            return math.nan
        return span if kind == ACCELERATION else max(span, self.least_scale(channel))

    def metrics(self, kind, channel, regime=None):
        """Return the `Metrics` of a kind of errors, of one regime or of all that are judged."""
        regimes = JUDGED_REGIMES if regime is None else slice(regime, regime + 1)
        total = self._sums.rows[:, kind, channel, regimes].sum(axis=(0, 1)).tolist()
        scale = self.scale(kind, channel)
        if not total[COUNT]:
            return Metrics(0, *(math.nan,) * 6, scale, math.nan, math.nan)
        rmse, spread = math.sqrt(total[E2] / total[COUNT]), total[A2] - total[A] * total[A] / total[COUNT]
        known = spread > 1e-12 * total[A2]      # else the measured is constant but for rounding
        largest, low, high = (extreme.rows[:, kind, channel, regimes]
                              for extreme in (self._largest, self._low, self._high))
        return Metrics(
            count=int(total[COUNT]), rmse=rmse, mae=total[ABS_E] / total[COUNT], bias=total[E] / total[COUNT],
            maximum=float(largest.max()), nrmse=rmse / scale if scale > 0.0 else math.nan,
            r2=1.0 - total[E2] / spread if known else math.nan, scale=scale, low=float(low.min()),
            high=float(high.max()))

    def effort(self, axis):
        """Return the `Metrics` of the effort of an actuator."""
        return self.metrics(EFFORT, axis)

    def judged(self, axis):
        """Return the `Metrics` of an actuator that are judged."""
        return self.metrics(self.JUDGED, axis)

    def share_without_noise(self, axis):
        """Return the share of the root mean square error of an effort that is no noise of sensors.

        At most half of the squares count as noise, since a model may be wrong in what noise hides.
        """
        rmse = self.judged(axis).rmse
        return math.sqrt(1.0 - min((self.noise(axis) / rmse) ** 2, MOST_NOISE)) if rmse > 0.0 else 1.0

    def errors(self, axis, power):
        """(bins, 2) samples, and sums of errors, or of their squares, of the effort of an actuator; power: 1 or 2.

        Of the regimes that are judged.
        """
        return self._sums.rows[:, EFFORT, axis, JUDGED_REGIMES].sum(axis=1)[:, (COUNT, (E, E2)[power - 1])]

    def drawn(self, choice):
        """Return the options of `bootstrap` for a `BootstrapChoice`."""
        return {'block': max(round(choice.block / self.bins.width), 1), 'resamples': choice.resamples,
                'level': choice.level, 'seed': choice.seed}


class MetricsAccumulator(ErrorSums):
    """Takes the predictions of a recording, one after the other, and gives `Metrics` of the kinds KIND_NAMES."""

    def __init__(self, manipulator, mechanism, capacity=None, **options):
        super().__init__(manipulator, mechanism, capacity, Bins(), len(KINDS), **options)
        self.spectrum = ResidualSpectrum(len(self.actuators))
        self._reach = np.array([[np.inf], [-np.inf]]) * np.ones(len(self.coordinates))   # of the coordinates
        self._needed = np.zeros(len(self.actuators))        # largest efforts of the model

    @property
    def sums(self):
        """(bins, kinds, channels, regimes, SUMS) so far; channels are actuators, of accelerations coordinates."""
        return self._sums.rows

    @property
    def width(self):
        """s of a bin of the sums: 1 until the bag is longer than 2048 s."""
        return self.bins.width

    @property
    def seconds(self):
        """(bins,) s since the start of the bag, the middle of each bin."""
        return (np.arange(self.bins.count) + 0.5) * self.width

    def pairs(self, prediction):
        """See `ErrorSums`: of KINDS."""
        regime = np.where(prediction.held, HELD, prediction.regime.astype(np.int64))
        for predicted in (prediction.effort_near, prediction.effort_id_frictionless):
            yield prediction.effort, predicted, regime
        if regime.shape != prediction.xdd.shape:
            # where coordinates are not the actuators, the regime is that of whatever is most in motion
            regime = np.broadcast_to(regime.max(axis=1)[:, np.newaxis], prediction.xdd.shape)
        yield prediction.xdd, prediction.xdd_fd, regime

    def add(self, prediction):
        super().add(prediction)
        self.spectrum.add(prediction)
        x, needed = prediction.x[prediction.core], np.abs(prediction.effort_id[prediction.core])
        self._needed = np.fmax(self._needed, needed.max(axis=0))
        self._reach = np.array([np.minimum(self._reach[0], x.min(axis=0)), np.maximum(self._reach[1], x.max(axis=0))])

    def unmeasured(self):
        """Yield the names of actuators with a place for efforts in the recording that says nothing of them.

        All zero says nothing where the model needs more than the least by which errors are normalised.
        """
        for axis, name in enumerate(self.actuators):
            signal = self.quality.signals.get(f'{name}.effort')
            if signal is not None and not self.known(axis) and (
                    signal.missing == signal.samples or self._needed[axis] > self.least_scale(axis)):
                yield name

    def stands(self, axis):
        if self.actuators[axis] not in self.coordinates:
            return False
        low, high = self._reach[:, self.coordinates.index(self.actuators[axis])]
        return bool(high - low <= STILL)

    def per_bin(self, kind, channel):
        """(bins, 3) rmse, bias and samples of each bin, NaN where there are none: errors over time that are judged."""
        total = self.sums[:, kind, channel, JUDGED_REGIMES].sum(axis=1)
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
