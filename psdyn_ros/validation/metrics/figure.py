"""What a figure of validation is, and the figures of errors, delays and sensors.

`metrics.FIGURES` lists all: verdict, tables, JSON, comparison of recordings, fleet and the live validator iterate it.
"""

import math

import numpy as np
from scipy.ndimage import uniform_filter1d

from ...model.parameters.parameter_blocks import number
from .bootstrap import Interval, bootstrap, mean, rmse
from .prediction import REVERSING

FACTORS = {'%': 100.0, 'ms': 1e3, 'mm': 1e3}        # from SI to the unit in which a figure is shown
MACHINE = 'machine'
IDLE = 1.0 - 1e-9           # share of the least scale, below which an actuator did too little for delays to be seen
SMOOTHING = 0.2             # s over which rates are averaged twice, for delays
ALIKE = 0.7                 # least correlation of rates so smoothed, where the motion made them
LEAST = 0.002               # of the range of the effort: smaller changes are of no interest, however certain


class Figure:
    """One figure of an actuator, or, where `of_actuators` is False, of the machine or of its joints.

    name       in tolerances, checks and JSON
    unit       in which it is shown, a key of FACTORS, 's' or ''
    tolerance  parameter of the settings: the most; the least where `least` is set; infinite: not judged
    of_range   whether it is a share of the range of the effort
    warns      whether the live validator warns when it nears its tolerance
    column     its header in the table of actuators, '' for none
    text       function of `Metrics` that returns what stands there; None: the value that is judged
    change     smallest change between recordings that counts, of the range or in SI; None: it is not compared
    compared   its name there, where it is not a share of the range
    statistic  function of totals (..., 2) of `sums`; None: changes follow from the intervals of `value`
    metrics    `ErrorSums` of which it is a figure

    What it is `about` is an index of an actuator, or a name: `abouts` lists them.
    """

    name = unit = column = compared = ''
    tolerance = change = statistic = text = None
    of_actuators, of_range, least, warns = True, False, False, True

    def __init__(self, metrics):
        self.metrics = metrics

    def add(self, prediction, bins):
        """Take a `Prediction`; bins: those of its core rows.  Only for figures with sums of their own."""

    def abouts(self):
        """Return what it is known of: indices of actuators with known efforts, else names."""
        return self.metrics.measured()

    def value(self, about, drawn):
        """Return its `Interval`, None where it is not judged.  drawn: options of `bootstrap`."""
        raise NotImplementedError

    def passes(self, found, tolerance):
        """Whether an `Interval` is within a tolerance; what is not a number is within none."""
        return bool(found.estimate >= tolerance if self.least else found.estimate <= tolerance)

    def sums(self, about):
        """(bins, 2) samples and a sum, for `statistic`."""

    def cell(self, effort, judged):
        """Its text in the table of actuators.  effort: `Metrics`; judged: its value, None where it is not judged."""
        if self.text is not None:
            return self.text(effort)
        return '' if judged is None else f'{FACTORS.get(self.unit, 1.0) * judged:.2g}'

    def as_dict(self):
        """Figures of the machine: more than the value, for JSON; {} for none."""
        return {}


def estimate(value):
    """Return the `Interval` of a value that has none."""
    return Interval(float(value), math.nan, math.nan)


class ErrorOfRange(Figure):
    """An error over the range of the measured effort; of: field of `Metrics`, power: of the errors in `sums`."""

    unit, of_range, of, power = '%', True, '', 1

    def value(self, about, drawn):
        found = self.metrics.judged(about)
        return estimate(found.share(abs(getattr(found, self.of))))

    def sums(self, about):
        return self.metrics.errors(about, self.power)


class Nrmse(ErrorOfRange):
    """Root mean square error over the range of the measured effort.

    Noise of sensors is no error of a model, and is taken off what is judged: see `ErrorSums.share_without_noise`.
    Not judged of what stands, where noise is most of it: see `ErrorSums.only_noise`.
    """

    name, column, compared, of, power = 'nrmse', 'NRMSE [%]', 'rmse', 'rmse', 2
    change, statistic, text = LEAST, staticmethod(rmse), staticmethod(lambda effort: f'{100.0 * effort.nrmse:.3g}')
    tolerance = number('1, root mean square error without noise of sensors / range of the measured effort (at least '
                       '5 % of what the actuator can give)', 0.05, low=0.0, high=1e3)

    def value(self, about, drawn):
        found = super().value(about, drawn)
        if self.metrics.live:
            return found
        if self.metrics.only_noise(about):
            return None
        share = self.metrics.share_without_noise(about)
        return Interval(*(share * value for value in (found.estimate, *self.interval(about, **drawn)[1:])))

    def interval(self, axis, **options):
        """Return the `Interval` of an actuator; options: of `bootstrap`."""
        sums, scale = self.sums(axis), self.metrics.scale(self.metrics.JUDGED, axis)
        found = bootstrap(sums[sums[:, 0] > 0.0], rmse, **options)
        return Interval(*(value / scale if scale > 0.0 else math.nan for value in found))


class Bias(ErrorOfRange):
    """Size of the mean error over the range of the measured effort."""

    name = compared = column = of = 'bias'
    change, statistic, text = LEAST, staticmethod(mean), staticmethod(lambda effort: f'{effort.bias:+.4g}')
    tolerance = number('1, size of the mean error / that range', 0.03, low=0.0, high=1e3)


class Maximum(ErrorOfRange):
    """Largest error over the range of the measured effort."""

    name = column = of = 'maximum'
    text = staticmethod(lambda effort: f'{effort.maximum:.4g}')
    tolerance = number('1, largest error / that range; none: not judged', math.inf, low=0.0, high=1e6)


class R2(Figure):
    """Share of the variance of the measured effort that is explained; not judged where that is constant."""

    name, column, least, warns = 'r2', 'R2', True, False
    text = staticmethod(lambda effort: f'{effort.r2:.5f}')
    tolerance = number('1, the least share of variance that is explained; none: not judged', -math.inf, low=-1e6,
                       high=1.0)

    def value(self, about, drawn):
        found = self.metrics.effort(about).r2
        return None if math.isnan(found) else estimate(found)


class Delay(Figure):
    """s by which measured efforts are later than predicted ones; not judged where too little moved to tell.

    From how errors go with the rate of the effort, to first order, which needs less of a recording than a correlation
    where sensors are noisy; a model that is wrong shows here, too.  The rate is smoothed until the motion is left: a
    controller makes forces of what its sensors' noise says of velocities, and this noise is in the errors, too.
    Reversals of friction, and what is near a stop, do not count.  Half a period of the states is no failure: a step of
    an effort between two samples may be seen that much before or after.
    """

    name = compared = 'delay'
    unit, column, change, warns = 'ms', 'delay [ms]', 1e-3, False
    tolerance = number('s, between measured and predicted efforts, beyond which its whole interval must not be', 0.004,
                       low=0.0, high=10.0)

    def __init__(self, metrics):
        super().__init__(metrics)
        # samples, e, smooth rate of the measured, e rate; of the predicted rate and of this smoothed: sum, product with
        # that of the measured; squares of both smooth rates
        self._sums = metrics.bins.column((len(metrics.actuators), 10))

    def add(self, prediction, bins):
        core, period = prediction.core, prediction.period
        # two rates whose noises are independent: the square of one would count its noise, and shrink the delay
        needed = np.gradient(prediction.effort_id, period, axis=0)
        # friction that turns round is not where the model and the filter put it, which looks like a lead
        unusable = prediction.unclear | ((prediction.regime == REVERSING) & (prediction.friction != 0.0))
        signals = (prediction.effort - prediction.effort_id, _smooth(prediction.effort_rate, period), needed,
                   _smooth(needed, period))
        for axis in range(needed.shape[1]):
            rows = np.array([signal[core, axis] for signal in signals])
            known = np.isfinite(rows).all(axis=0) & ~unusable[core, axis]
            at, (e, rate, other, smooth) = bins[known], rows[:, known]
            for column, weights in enumerate((np.ones(len(e)), e, rate, e * rate, other, rate * other, smooth,
                                              rate * smooth, rate * rate, smooth * smooth)):
                found = np.bincount(at, weights)
                self._sums.rows[:len(found), axis, column] += found

    def value(self, about, drawn):
        effort = self.metrics.effort(about)
        if not effort.high - effort.low >= IDLE * self.metrics.least_scale(about) or effort.high == effort.low:
            return None
        topic = self.metrics.delays.get(self.metrics.actuators[about])
        if topic is not None and topic.certain:
            # unlike what is seen in the residual, it does not depend on the model being right
            return Interval(topic.seconds, topic.low, topic.high)
        taken = 0.0 if topic is None else topic.taken
        found = self.lag(about, **drawn)
        return None if math.isnan(found.estimate) else Interval(*(taken + value for value in found))

    def passes(self, found, tolerance):
        """Whether it may as well be within: it is beyond where its whole interval is."""
        most = tolerance + 0.5 * self.metrics.period
        return not (found.low > most or found.high < -most)

    def lag(self, axis, **options):
        """Return the `Interval` of s by which the efforts are later than those predicted of the aligned topics.

        NaN where the model does not explain how they changed: then noise made the rates.
        """
        sums = self._sums.rows[:, axis]
        if not _likeness(sums.sum(axis=0)) >= ALIKE:
            return Interval(math.nan, math.nan, math.nan)
        return bootstrap(sums[sums[:, 0] > 0.0], _slope_lag, **options)


def _smooth(rates, period):
    """(N, actuators) rates, averaged; NaN where they are unknown."""
    known = np.isfinite(rates)
    smooth = np.where(known, rates, 0.0)
    for _ in range(2):
        smooth = uniform_filter1d(smooth, max(round(SMOOTHING / period), 1), axis=0, mode='nearest')
    return np.where(known, smooth, np.nan)


def _slope_lag(totals):
    """Statistic of totals of `Delay`: s by which the measured is late, - the slope of e over the rate of the effort."""
    count, e, rate, product, needed, square = np.moveaxis(totals, -1, 0)[:6]
    with np.errstate(invalid='ignore', divide='ignore'):
        return -(product - e * rate / count) / (square - needed * rate / count)


def _likeness(totals):
    """Correlation of the smooth rates in totals of `Delay`; NaN of none."""
    count, _, rate, *_, other, product, square, other_square = totals
    with np.errstate(invalid='ignore', divide='ignore'):
        spread = (square - rate ** 2 / count) * (other_square - other ** 2 / count)
        return (product - rate * other / count) / np.sqrt(spread)


class Closure(Figure):
    """Disagreement of redundant joints at rod eyes [m], rms."""

    name = compared = 'closure'
    unit, of_actuators, change, statistic = 'mm', False, 1e-4, staticmethod(rmse)
    tolerance = number('m, rms disagreement of redundant joints at a rod eye', 0.005, low=0.0, high=10.0)

    def __init__(self, metrics):
        super().__init__(metrics)
        self._sums, self._largest = metrics.bins.column((2,)), metrics.bins.column((), np.maximum)

    def add(self, prediction, bins):
        residual = prediction.residual[prediction.core]
        known = np.isfinite(residual)
        bins, residual = bins[known], residual[known]
        np.add.at(self._sums.rows, bins, np.column_stack((np.ones(len(residual)), residual ** 2)))
        np.maximum.at(self._largest.rows, bins, residual)

    def abouts(self):
        return (MACHINE,) if self._sums.rows[:, 0].any() else ()

    def value(self, about, drawn):
        return estimate(self.as_dict()['rms'])

    def sums(self, about):
        return self._sums.rows

    def largest(self):
        """(bins,) largest disagreement [m]."""
        return self._largest.rows

    def as_dict(self):
        totals = self._sums.rows.sum(axis=0)
        return {'rows': int(totals[0]), 'rms': float(rmse(totals)), 'largest': float(self.largest().max(initial=0.0))}


class Frozen(Figure):
    """s that the position of a joint is frozen while it should move, by the `Quality` of the data."""

    name, unit, of_actuators = 'frozen', 's', False
    tolerance = number('s that positions may be frozen while they should move', 0.5, low=0.0, high=1e9)

    def abouts(self):
        return [name for name, seconds in self.seconds().items() if seconds]

    def value(self, about, drawn):
        return estimate(self.seconds()[about])

    def seconds(self):
        """{joint: s} of all joints whose positions are measured."""
        signals = self.metrics.quality.signals if self.metrics.quality is not None else {}
        return {name.removesuffix('.position'): sum(span.end - span.start for span in signal.frozen)
                for name, signal in signals.items() if name.endswith('.position')}
