"""Normal equations of delays of topics and of their drifts; intervals by leaving out stretches of the recording."""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

SINGULAR = 1e-12        # of the largest singular value, what counts as none


class Sums(NamedTuple):
    """Of one actuator: products of columns that are fitted freely, of the residual, and of its derivatives by n delays
    and by their drifts.

    weight      of its squares
    free        k, columns that are fitted freely; they come first
    by_stretch  {number: (k + 1 + 2 n, k + 1 + 2 n)}
    """

    weight: float
    free: int
    by_stretch: dict

    def reduced(self, without=None):
        """(1 + 2 n, 1 + 2 n) weighted products of what the free columns leave, of all stretches but one."""
        total = sum(products for number, products in self.by_stretch.items() if number != without)
        if not np.ndim(total):
            return 0.0
        inner, mixed = total[:self.free, :self.free], total[:self.free, self.free:]
        return self.weight * (total[self.free:, self.free:]
                              - mixed.T @ np.linalg.pinv(inner, rcond=SINGULAR, hermitian=True) @ mixed)


class Normal:
    """Normal equations of the delays of n topics and of their drifts, about some delays; [`Sums`] of all actuators.

    products  (1 + 2 n, 1 + 2 n): first the slopes of half the weighted squares, then their second derivatives
    """

    def __init__(self, sums):
        self._sums = sums
        self.products = sum(one.reduced() for one in sums)
        self.numbers = sorted(set().union(*(one.by_stretch for one in sums)))

    @cached_property
    def _without(self):
        """[products without one stretch]."""
        return [sum(one.reduced(number) for one in self._sums) for number in self.numbers]

    def step(self, members):
        """(groups,) s to the least squares; members (n, groups): which delays change with which; (2 n, groups) with
        drifts."""
        return _step(self.products, members)

    def widths(self, members, level):
        """(groups,) half the widths of the intervals of such steps [s]; infinite where they are not known.

        By leaving out one stretch after the other: instants are alike, and a stretch has its part in what is fitted
        freely, so that residuals alone say too little (jackknife, as in `Equations.fit`).
        """
        count, square = len(self.numbers), _square(self.products, members)
        if count < 2 or not (np.linalg.eigvalsh(square) > 0.0).all():
            return np.full(len(square), np.inf)
        steps = np.array([_step(products, members) for products in self._without])
        steps -= steps.mean(axis=0)
        return stdtrit(count - 1, 0.5 + 0.5 * level) * np.sqrt((count - 1.0) / count * np.sum(steps ** 2, axis=0))


def _step(products, members):
    """(groups,) s to the least squares of products as of `Normal`."""
    return -np.linalg.pinv(_square(products, members), rcond=SINGULAR) @ members.T @ products[1:1 + len(members), 0]


def _square(products, members):
    chosen = products[1:1 + len(members), 1:1 + len(members)]
    return members.T @ chosen @ members
