"""Did it get worse?  Two validations of one machine, and which differences between them are more than chance.

What is compared has an interval of its own difference, wider the more there is to compare: a comparison of a machine
with itself finds any difference as seldom as the level of confidence says.
"""

import math
from dataclasses import asdict, dataclass

from scipy.special import ndtri

from ...model.errors import ModelError
from .bootstrap import Interval, difference
from .figure import LEAST
from .metrics import EFFORT, FIGURES

COMPARED = {figure.compared: figure for figure in FIGURES if figure.change is not None}
SAME, WORSE, BETTER = 'same', 'worse', 'better'
DRAWS = 20                  # of a bootstrap beyond each end of an interval


@dataclass(frozen=True)
class Change:
    """One figure of one actuator in two recordings.

    actuator  or the joint of a sensor, or 'machine'
    figure    key of COMPARED: 'rmse' or 'bias' of measured - predicted efforts [N, N m], 'delay' of the efforts [s],
              'closure' of redundant joints [m, rms]; 'known', share of the time at which the effort is known, or
              'frozen', s that a position is, which have no interval
    first, second  what it was
    change    `Interval` of second - first
    verdict   SAME unless the interval excludes zero, or the figure passes in one recording and fails in the other, and
              the change is worth mentioning; WORSE where the size of the error grew, BETTER where it shrank
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
    checks = [{(check.about, check.figure): check for check in found.verdict.checks} for found in (first, second)]
    pairs = sorted(_pairs(one, other, *checks), key=lambda pair: not pair[1].of_range)
    # of many intervals at one level some miss by chance; all hold where each has its share of the risk
    drawn, risk = first.settings.bootstrap, (1.0 - first.settings.bootstrap.level) / max(len(pairs), 1)
    options = _options(drawn, max(one.width, other.width), risk)
    changes = []
    for about, figure in pairs:
        name = one.actuators[about] if figure.of_actuators else about
        scale = max(metrics.scale(EFFORT, about) for metrics in (one, other)) if figure.of_range else 1.0
        if figure.statistic is None:
            both = [of[name, figure.name] for of in checks]
            values, change = [check.value for check in both], _independent(*both, drawn.level, risk)
        else:
            rows = [metrics.figure[figure.name].sums(about) for metrics in (one, other)]
            rows = [sums[sums[:, 0] > 0.0] for sums in rows]
            values = [float(figure.statistic(sums.sum(axis=0))) for sums in rows]
            change = difference(*rows, figure.statistic, **options)
        one_fails = len({of[name, figure.name].passed for of in checks if (name, figure.name) in of}) == 2
        changes.append(_judged(name, figure.compared, values, change, one_fails,
                               scale * (least if figure.of_range else figure.change), scale))
    return (*changes, *_lost(first, second), *_frozen(first, second))


def _pairs(one, other, *checks):
    """Yield (about, figure) of all that is known of both recordings."""
    for axis in one.measured():
        yield from ((axis, figure) for figure in COMPARED.values()
                    if figure.of_actuators and axis in other.measured() and (
                        figure.statistic is not None
                        or all((one.actuators[axis], figure.name) in of for of in checks)))
    for figure in COMPARED.values():
        if not figure.of_actuators:
            both = (metrics.figure[figure.name].abouts() for metrics in (one, other))
            yield from ((about, figure) for about in next(both) if about in next(both))


def worst(changes):
    """WORSE where any change is, else BETTER where any is, else SAME."""
    found = {change.verdict for change in changes}
    return next((verdict for verdict in (WORSE, BETTER) if verdict in found), SAME)


def _options(drawn, width, risk):
    """How differences are drawn; bins of different widths hold different times: the wider says how many are a block."""
    return {'block': max(round(drawn.block / width), 1), 'seed': drawn.seed, 'level': 1.0 - risk,
            'resamples': max(drawn.resamples, math.ceil(2.0 * DRAWS / risk))}


def _independent(first, second, level, risk):
    """`Interval` of second - first, two `Check`s with intervals of their own of recordings that do not depend."""
    wider = ndtri(0.5 * risk) / ndtri(0.5 * (1.0 - level))
    down = math.hypot(second.value - second.low, first.high - first.value)
    up = math.hypot(second.high - second.value, first.value - first.low)
    change = second.value - first.value
    return Interval(change, change - wider * down, change + wider * up)


def _judged(about, figure, values, change, one_fails, least, scale):
    # of a short recording with a drift the interval of the change is wide, though one passes and the other fails
    if not (change.excludes_zero or one_fails) or abs(change.estimate) < least:
        verdict = SAME
    else:
        verdict = WORSE if abs(values[1]) > abs(values[0]) else BETTER
    return Change(about, figure, *values, change, verdict, least, scale)


def _lost(first, second):
    """Changes of the share of time at which efforts are known, where one is hardly known any longer."""
    least = 1.0 - min(first.settings.machine.coverage, second.settings.machine.coverage)
    for axis, name in enumerate(first.metrics.actuators):
        shares = [found.metrics.known(axis) / max(found.metrics.rows, 1) for found in (first, second)]
        if abs(shares[1] - shares[0]) > least:
            yield _certain(name, 'known', shares, WORSE if shares[1] < shares[0] else BETTER, least)


def _frozen(first, second):
    """Changes of how long positions are frozen, where that is tolerated in one of two recordings only."""
    least = first.settings.machine.frozen
    seconds = [found.metrics.figure['frozen'].seconds() for found in (first, second)]
    for name in (name for name in seconds[0] if name in seconds[1]):
        values = [one[name] for one in seconds]
        if (values[0] > least) != (values[1] > least):
            yield _certain(name, 'frozen', values, WORSE if values[1] > least else BETTER, least)


def _certain(about, figure, values, verdict, least):
    """A `Change` that is counted, not estimated."""
    return Change(about, figure, *values, Interval(values[1] - values[0], math.nan, math.nan), verdict, least)
