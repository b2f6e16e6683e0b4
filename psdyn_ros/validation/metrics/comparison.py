"""Did it get worse?  Two validations of one machine, and which differences between them are more than chance.

What is compared has an interval of its own difference, wider the more there is to compare: a comparison of a machine
with itself finds any difference as seldom as the level of confidence says.
"""

import math
from dataclasses import asdict, dataclass

from scipy.stats import norm

from ...model.errors import ModelError
from .bootstrap import Interval, difference, mean, rmse
from .metrics import COUNT, E2, EFFORT, E

EFFORT_FIGURES = {'rmse': (E2, rmse), 'bias': (E, mean)}
SAME, WORSE, BETTER = 'same', 'worse', 'better'
# smaller differences are of no interest, however certain
LEAST = 0.002               # of the range of the effort
LEAST_DELAY = 1e-3          # s
LEAST_CLOSURE = 1e-4        # m
MACHINE = 'machine'
DRAWS = 20                  # of a bootstrap beyond each end of an interval


@dataclass(frozen=True)
class Change:
    """One figure of one actuator in two recordings.

    actuator  or the joint of a sensor, or MACHINE
    figure    'rmse' or 'bias' of measured - predicted efforts [N, N m], 'delay' of the efforts [s], 'closure' of
              redundant joints [m, rms]; 'known', share of the time at which the effort is known, or 'frozen', s that a
              position is, which have no interval
    first, second  what it was
    change    `Interval` of second - first
    verdict   SAME unless the interval excludes zero and the change is worth mentioning; WORSE where the size of
              the error grew, BETTER where it shrank
    least     from which size a change counts
    scale     range of the effort, in the unit of the figure; 1 for others
    """

    actuator: str
    figure: str
    first: float
    second: float
    change: Interval
    verdict: str
    least: float
    scale: float = 1.0

    @property
    def text(self):
        """In words, with the numbers."""
        between = '' if math.isnan(self.change.low) else f' ({self.change.low:+.3g} to {self.change.high:+.3g})'
        return (f'{self.actuator}: {self.figure} {self.first:.4g} -> {self.second:.4g}, a change of '
                f'{self.change.estimate:+.3g}{between}: {self.verdict}')

    def as_dict(self):
        """For JSON."""
        return {**asdict(self), 'change': self.change._asdict()}


def compare(first, second, least=LEAST):
    """Return the `Change`s from one `Validation` to another.

    least  share of the larger range of the measured effort from which a change of efforts counts
    Raises ModelError where the actuators are others.
    """
    one, other = first.metrics, second.metrics
    if one.actuators != other.actuators:
        raise ModelError(f"'{first.bag}' is of a machine with {', '.join(one.actuators)}, '{second.bag}' of one with "
                         f'{", ".join(other.actuators)}; expected the same actuators')
    known = [[metrics.metrics(EFFORT, axis).count for axis in range(len(one.actuators))] for metrics in (one, other)]
    both = [axis for axis, counts in enumerate(zip(*known)) if all(counts)]
    delays = [{check.about: check for check in found.verdict.checks if check.figure == 'delay'}
              for found in (first, second)]
    late = [name for name in one.actuators if all(name in checks for checks in delays)]
    closure = all(metrics.closure_residual()[0] for metrics in (one, other))
    # of many intervals at one level some miss by chance; all hold where each has its share of the risk
    risk = (1.0 - first.settings.bootstrap.level) / max(len(EFFORT_FIGURES) * len(both) + len(late) + closure, 1)
    options = _options(first.settings.bootstrap, max(one.width, other.width), risk)
    changes = [change for axis in both for change in _efforts(one, other, axis, least, options)]
    changes += [_delay(name, *(checks[name] for checks in delays), first.settings.bootstrap.level, risk)
                for name in late]
    if closure:
        rows = [metrics.closure_sums for metrics in (one, other)]
        changes.append(_difference(MACHINE, 'closure', rows, rmse, LEAST_CLOSURE, options))
    return (*changes, *_lost(first, second, known), *_frozen(first, second))


def worst(changes):
    """WORSE where any change is, else BETTER where any is, else SAME."""
    found = {change.verdict for change in changes}
    return next((verdict for verdict in (WORSE, BETTER) if verdict in found), SAME)


def _options(drawn, width, risk):
    """How differences are drawn; bins of different widths hold different times: the wider says how many are a block."""
    return {'block': max(round(drawn.block / width), 1), 'seed': drawn.seed, 'level': 1.0 - risk,
            'resamples': max(drawn.resamples, math.ceil(2.0 * DRAWS / risk))}


def _efforts(one, other, axis, least, options):
    scale = max(one.scale(EFFORT, axis), other.scale(EFFORT, axis))
    for figure, (column, statistic) in EFFORT_FIGURES.items():
        rows = [metrics.sums[:, EFFORT, axis].sum(axis=1)[:, (COUNT, column)] for metrics in (one, other)]
        yield _difference(one.actuators[axis], figure, rows, statistic, least * scale, options, scale)


def _difference(about, figure, rows, statistic, least, options, scale=1.0):
    """The `Change` of a statistic of two times (bins, 2) samples and a sum."""
    rows = [one[one[:, 0] > 0.0] for one in rows]
    values = [float(statistic(one.sum(axis=0))) for one in rows]
    return _judged(about, figure, values, difference(*rows, statistic, **options), least, scale)


def _delay(about, first, second, level, risk):
    """The `Change` of delays, each with an interval of its own; the two recordings do not depend on each other."""
    wider = norm.ppf(0.5 * risk) / norm.ppf(0.5 * (1.0 - level))
    down = math.hypot(second.value - second.low, first.high - first.value)
    up = math.hypot(second.high - second.value, first.value - first.low)
    change = second.value - first.value
    return _judged(about, 'delay', (first.value, second.value),
                   Interval(change, change - wider * down, change + wider * up), LEAST_DELAY)


def _judged(about, figure, values, change, least, scale=1.0):
    if not change.excludes_zero or abs(change.estimate) < least:
        verdict = SAME
    else:
        verdict = WORSE if abs(values[1]) > abs(values[0]) else BETTER
    return Change(about, figure, *values, change, verdict, least, scale)


def _lost(first, second, known):
    """Changes of the share of time at which efforts are known, where one is hardly known any longer."""
    least = 1.0 - min(first.settings.machine.coverage, second.settings.machine.coverage)
    for axis, name in enumerate(first.metrics.actuators):
        shares = [counts[axis] / max(found.metrics.rows, 1) for found, counts in zip((first, second), known)]
        if abs(shares[1] - shares[0]) > least:
            yield _certain(name, 'known', shares, WORSE if shares[1] < shares[0] else BETTER, least)


def _frozen(first, second):
    """Changes of how long positions are frozen, where that is tolerated in one of two recordings only."""
    least = first.settings.machine.frozen
    seconds = [{name.removesuffix('.position'): sum(span.end - span.start for span in signal.frozen)
                for name, signal in found.quality.signals.items() if name.endswith('.position')}
               for found in (first, second)]
    for name in (name for name in seconds[0] if name in seconds[1]):
        values = [one[name] for one in seconds]
        if (values[0] > least) != (values[1] > least):
            yield _certain(name, 'frozen', values, WORSE if values[1] > least else BETTER, least)


def _certain(about, figure, values, verdict, least):
    """A `Change` that is counted, not estimated."""
    return Change(about, figure, *values, Interval(values[1] - values[0], math.nan, math.nan), verdict, least)
