"""Did it get worse?  Two validations of one machine, and which differences between them are more than chance."""

import math
from dataclasses import dataclass

from ..model.errors import ModelError
from .bootstrap import Interval, difference, mean, rmse
from .metrics import COUNT, E2, EFFORT, E

FIGURES = {'rmse': (E2, rmse), 'bias': (E, mean)}
SAME, WORSE, BETTER = 'same', 'worse', 'better'
LEAST = 0.002               # of the range of the effort: smaller differences are of no interest, however certain


@dataclass(frozen=True)
class Change:
    """One figure of one actuator in two recordings; N or N m.

    actuator, figure  'rmse' or 'bias' of measured - predicted efforts
    first, second     what it was
    change            `Interval` of second - first
    verdict           SAME unless the interval excludes zero and the change is worth mentioning; WORSE where the size of
                      the error grew, BETTER where it shrank
    """

    actuator: str
    figure: str
    first: float
    second: float
    change: Interval
    verdict: str

    @property
    def text(self):
        """In words, with the numbers."""
        return (f'{self.actuator}: {self.figure} {self.first:.4g} -> {self.second:.4g}, a change of '
                f'{self.change.estimate:+.3g} ({self.change.low:+.3g} to {self.change.high:+.3g}): {self.verdict}')


def compare(first, second, least=LEAST):
    """Return the `Change`s from one `Validation` to another, of every actuator that both measured.

    least  share of the larger range of the measured effort from which a change counts
    Raises ModelError where the actuators are others.
    """
    one, other = first.metrics, second.metrics
    if one.actuators != other.actuators:
        raise ModelError(f"'{first.bag}' is of a machine with {', '.join(one.actuators)}, '{second.bag}' of one with "
                         f'{", ".join(other.actuators)}; expected the same actuators')
    drawn = first.settings.bootstrap
    # bins of different widths hold different times; the wider one says how many make a block
    block = max(round(drawn.block / max(one.width, other.width)), 1)
    options = {'block': block, 'resamples': drawn.resamples, 'seed': drawn.seed, 'level': drawn.level}
    changes = []
    for axis, name in enumerate(one.actuators):
        if not (one.metrics(EFFORT, axis).count and other.metrics(EFFORT, axis).count):
            continue
        scale = max(one.scale(EFFORT, axis), other.scale(EFFORT, axis))
        for figure, (column, statistic) in FIGURES.items():
            sums = [_sums(metrics, axis, column) for metrics in (one, other)]
            values = [float(statistic(rows.sum(axis=0))) for rows in sums]
            found = difference(*sums, statistic, **options)
            changes.append(Change(name, figure, *values, found, _verdict(found, values, least * scale)))
    return tuple(changes)


def _sums(metrics, axis, column):
    """(bins, 2) samples and a sum of the efforts of an actuator, over all regimes."""
    sums = metrics.sums[:, EFFORT, axis].sum(axis=1)[:, (COUNT, column)]
    return sums[sums[:, 0] > 0.0]


def _verdict(found, values, least):
    if not found.excludes_zero or math.isnan(found.estimate) or abs(found.estimate) < least:
        return SAME
    return WORSE if abs(values[1]) > abs(values[0]) else BETTER
