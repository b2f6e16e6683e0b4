"""How sure a figure is that comes from one recording: the moving-block bootstrap of sums per second.

Seconds next to each other are alike, so blocks of them are drawn (Kuensch, Ann. Statist. 17 (1989) 1217; circular:
Politis and Romano 1992).  With few blocks percentiles are too narrow, by the share that Student's t and n / (n - 1)
say; levels are widened accordingly (Hesterberg, Am. Statist. 69 (2015) 371).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, stdtrit

from ...model.errors import ModelError

BLOCK = 10                  # bins that are drawn together
FEWEST = 5                  # blocks that a recording should have
RESAMPLES = 999
LEVEL = 0.95


class Interval(NamedTuple):
    """A figure, and between what it lies with the confidence asked for; NaN where too little is known."""

    estimate: float
    low: float
    high: float

    @property
    def excludes_zero(self):
        """Whether zero is outside."""
        return self.low > 0.0 or self.high < 0.0


def bootstrap(sums, statistic, block=BLOCK, resamples=RESAMPLES, seed=0, level=LEVEL):
    """Return the `Interval` of a statistic of sums per bin.

    sums       (bins, k), additive; bins without samples are left out beforehand
    statistic  function of (..., k) totals that returns (...)
    block      bins that are drawn together: longer than what errors are alike over; less where there are few bins
    """
    sums = _checked(sums, block, resamples, level)
    estimate = float(statistic(sums.sum(axis=0)))
    drawn, blocks = _resampled(sums, statistic, block, resamples, seed)
    if drawn is None:
        return Interval(estimate, math.nan, math.nan)
    return Interval(estimate, *_percentiles(drawn, blocks, level))


def difference(first, second, statistic, block=BLOCK, resamples=RESAMPLES, seed=0, level=LEVEL):
    """Return the `Interval` of statistic(second) - statistic(first), two recordings as `bootstrap` takes them."""
    first, second = (_checked(sums, block, resamples, level) for sums in (first, second))
    estimate = float(statistic(second.sum(axis=0)) - statistic(first.sum(axis=0)))
    # other draws for the second, or the same bag twice would differ by nothing for certain
    (a, blocks_a), (b, blocks_b) = (_resampled(sums, statistic, block, resamples, (seed, k))
                                    for k, sums in enumerate((first, second)))
    if a is None or b is None:
        return Interval(estimate, math.nan, math.nan)
    change, blocks, tail = b - a, min(blocks_a, blocks_b), 0.5 * (1.0 - level)
    low, high = _percentiles(change, blocks, level)
    # of few blocks no draw is as far out as the level asks for
    reach = math.sqrt(blocks / (blocks - 1.0)) * stdtrit(blocks - 1, 1.0 - tail) * float(change.std())
    return Interval(estimate, min(low, estimate - reach), max(high, estimate + reach))


def rmse(totals):
    """Statistic of totals (..., 2): samples, sum of squares."""
    with np.errstate(invalid='ignore'):     # of no samples nothing is known
        return np.sqrt(totals[..., 1] / totals[..., 0])


def mean(totals):
    """Statistic of totals (..., 2): samples, sum."""
    return totals[..., 1] / totals[..., 0]


def _checked(sums, block, resamples, level):
    sums = np.asarray(sums, dtype=float)
    if sums.ndim != 2 or block < 1 or resamples < 1 or not 0.0 < level < 1.0:
        raise ModelError(f'bootstrap of {sums.ndim}-dimensional sums, blocks of {block}, {resamples} times, at level '
                         f'{level}; expected (bins, k), 1 or more, and a level between 0 and 1')
    return sums


def _resampled(sums, statistic, block, resamples, seed):
    """(the statistic (resamples,) of draws, how many blocks each has); None where there are too few bins."""
    bins = len(sums)
    if bins < 2:
        return None, 0
    size = max(min(block, bins // FEWEST), 1)
    around = np.concatenate((np.zeros((1, sums.shape[1])), np.cumsum(np.vstack((sums, sums[:size - 1])), axis=0)))
    of_blocks = around[size:] - around[:-size]          # (bins, k): what begins at each bin
    count = max(round(bins / size), 2)
    rng = np.random.default_rng(seed)
    drawn = np.empty(resamples)
    # draws in parts, so that memory does not grow with their number
    for first in range(0, resamples, 64):
        rows = rng.integers(0, bins, (min(64, resamples - first), count))
        drawn[first:first + 64] = statistic(of_blocks[rows].sum(axis=1))
    return drawn, count


def _percentiles(drawn, blocks, level):
    tail = 0.5 * (1.0 - level)
    wide = ndtr(-math.sqrt(blocks / (blocks - 1.0)) * stdtrit(blocks - 1, 1.0 - tail))
    return float(np.quantile(drawn, wide)), float(np.quantile(drawn, 1.0 - wide))
