"""Fits of a few columns to the residual of a recording, from normal equations per bin of time.

A share is judged on parts of the recording that the fit has not seen, so more columns explain more only where they
have a reason to; it is negative where a fit says nothing.
"""

import numpy as np
from scipy.special import ndtri, stdtrit

from ..metrics.bootstrap import FEWEST, bootstrap, mean
from .products import Products

BLOCK = 5.0                 # s that are drawn together, and that are held out together
SHORT = 2.0                 # s that are left out together: longer than noise is alike, with many of them in a recording
FOLDS = 5
RESAMPLES = 299
MAX_NOISE = 0.5            # of the squares of any combination of columns, up to which noise is taken off
LEVEL = 0.95                # of the intervals that standard errors are for
RIDGE = 1e-9                # of the squares of each column, for what cannot be distinguished


class Equations:
    """Normal equations of all actuators, each weighted.

    products  `Products` of the residual, which comes first, and of K columns
    noise     likewise, what noise adds to the products: that of states is in the residual and in columns, and would
              look like a correlation of both
    weights   (actuators,)
    width     s of a bin
    """

    def __init__(self, products, noise, weights, width):
        self._products, self._noise, self._weights, self._width = products, noise, weights, width
        bins = len(products)
        self.block = max(min(round(BLOCK / width), bins // FEWEST), 1)
        self._short = max(min(round(SHORT / width), self.block), 1)
        self._fold = np.arange(bins) // self.block % FOLDS

    def chosen(self, columns):
        """(bins, 1 + n, 1 + n) of some columns (actuators, n) of those by number, -1: none."""
        return _of_columns(self._products, self._weights, columns)

    def less(self, taken, columns):
        """`Equations` of columns (actuators, n) of all actuators together, with the residual that others leave.

        taken  (columns (actuators, m), theta (m,)) of the others
        """
        first, theta = taken
        change = np.delete(np.eye(1 + first.shape[1] + columns.shape[1]), np.arange(1, 1 + len(theta)), axis=1)
        change[1:1 + len(theta), 0] = -theta
        both = np.concatenate((first, columns), axis=1)
        sums = (Products.full((change.T @ _of_columns(one, self._weights, both) @ change)[:, None])
                for one in (self._products, self._noise))
        return Equations(*sums, np.ones(1), self._width)

    def within(self, bins):
        """`Equations` of some bins (bins,)."""
        return Equations(self._products.within(bins), self._noise.within(bins), self._weights, self._width)

    def share(self, columns):
        """`Interval` of the share of the residual's squares that columns (actuators, n) explain."""
        explained, squares = self._held_out(columns)
        return self._bootstrap(explained, squares)

    def explained(self, columns):
        """The share of the residual's squares that columns (actuators, n) explain."""
        explained, squares = self._held_out(columns)
        return float(explained.sum() / squares.sum())

    def gain(self, first, second):
        """`Interval` of how much larger the share of the second is than that of the first."""
        (before, squares), (after, _) = self._held_out(first), self._held_out(second)
        return self._bootstrap(after - before, squares)

    def of_rest(self, first, second):
        """`Interval` of the share that the second, fitted together with the first, explains of what that leaves."""
        before, squares = self._held_out(first)
        after, _ = self._held_out(np.concatenate((first, second), axis=1))
        return self._bootstrap(after - before, squares - before)

    def effect(self, columns, theta):
        """(actuators,) weighted sum of squares of what columns (actuators, n) times theta (n,) add to each."""
        out = np.zeros(len(columns))
        for actuator, own in enumerate(columns):
            acts = np.where(own < 0, 0.0, theta)
            out[actuator] = self._weights[actuator] * (acts @ self._products.of(actuator, own + 1).sum(axis=0) @ acts)
        return out

    def fit(self, columns):
        """(theta (n,), covariance (n, n)) of columns (actuators, n), by leaving out one block of bins after the other.

        What noise adds to the products is taken off, where it is not most of what the columns are (least squares with
        errors in variables: Fuller, Measurement Error Models, Wiley 1987).
        What is left of the residual is alike for a while, so its errors are those between blocks, not between rows;
        few blocks are not taken for more than they are (jackknife: Cameron and Miller, J. Hum. Resour. 50 (2015) 317).
        Few say little of how far they scatter, too: intervals of `LEVEL` by the normal distribution of these errors are
        those of Student's t with the effective number of blocks less one (Carter, Schnepel and Steigerwald, Rev. Econ.
        Stat. 99 (2017) 698).
        """
        products = self._without_noise(columns)
        total = products.sum(axis=0)
        blocks = np.add.reduceat(products, np.arange(0, len(products), self._short), axis=0)
        theta = solve(total)
        others = (solve(total - blocks) - theta) * self._widening(columns)
        return theta, (len(blocks) - 1.0) / len(blocks) * others.T @ others

    def _widening(self, columns):
        """(n,) t over normal quantile of what blocks say of each of columns (actuators, n), were noise alike in all."""
        products = self.chosen(columns)[:, 1:, 1:]
        size = np.sqrt(np.maximum(np.diagonal(products.sum(axis=0)), np.finfo(float).tiny))
        blocks = np.add.reduceat(products / np.outer(size, size), np.arange(0, len(products), self._short), axis=0)
        inverse = np.linalg.pinv(blocks.sum(axis=0), rcond=RIDGE, hermitian=True)
        parts = np.einsum('ki,bij,kj->bk', inverse, blocks, inverse)
        squares = (parts ** 2).sum(axis=0)
        count = np.divide(parts.sum(axis=0) ** 2, squares, out=np.full(len(squares), 2.0), where=squares > 0.0)
        level = 0.5 * (1.0 + LEVEL)
        return stdtrit(np.maximum(count - 1.0, 1.0), level) / ndtri(level)

    def likeness(self, first, second):
        """How alike what two sets of columns say of the residual is, -1 to 1: a correlation."""
        both = self.chosen(np.concatenate((first, second), axis=1)).sum(axis=0)
        n = first.shape[1] + 1
        parts = [np.zeros(len(both) - 1) for _ in range(2)]
        parts[0][:n - 1] = solve(both[:n, :n])
        rest = np.concatenate(([0], np.arange(n, len(both))))
        parts[1][n - 1:] = solve(both[rest[:, None], rest])
        inner = both[1:, 1:]
        size = np.sqrt((parts[0] @ inner @ parts[0]) * (parts[1] @ inner @ parts[1]))
        return float(parts[0] @ inner @ parts[1] / size) if size > 0.0 else 0.0

    def _without_noise(self, columns):
        """(bins, 1 + n, 1 + n) of columns (actuators, n)."""
        products, noise = self.chosen(columns), _of_columns(self._noise, self._weights, columns)
        of_all, of_noise = (one.sum(axis=0)[1:, 1:] for one in (products, noise))
        size = np.sqrt(np.maximum(np.diagonal(of_all), np.finfo(float).tiny))
        scale = 1.0 / np.outer(size, size)
        left = of_all * scale + RIDGE * np.eye(len(size)) - of_noise * scale / MAX_NOISE
        return products - noise if np.linalg.eigvalsh(left)[0] >= 0.0 else products

    def _held_out(self, columns):
        """(bins,) squares of the residual that fits to all parts but that of the bin explain, and all of them."""
        products = self.chosen(columns)
        parts = np.zeros((FOLDS, *products.shape[1:]))
        np.add.at(parts, self._fold, products)
        theta = solve(parts.sum(axis=0) - parts)[self._fold]
        explained = (2.0 * (theta * products[:, 1:, 0]).sum(axis=-1)
                     - np.einsum('bi,bij,bj->b', theta, products[:, 1:, 1:], theta))
        return explained, products[:, 0, 0]

    def _bootstrap(self, part, whole):
        with np.errstate(invalid='ignore', divide='ignore'):        # of no residual there is no share
            return bootstrap(np.column_stack((whole, part)), mean, block=self.block, resamples=RESAMPLES)


def _of_columns(products, weights, columns):
    total = 0.0
    for actuator, own in enumerate(columns):
        index = np.concatenate(([0], own + 1))
        # a column below 0 is nothing: it does not act on the actuator
        acts = np.concatenate(([True], own >= 0))
        chosen = weights[actuator] * products.of(actuator, index)
        total = total + np.where(np.outer(acts, acts), chosen, 0.0)
    return total


def solve(products):
    """theta (..., n) of normal equations (..., 1 + n, 1 + n); of columns that are nothing, or alike, the smallest."""
    squares = np.diagonal(products, axis1=-2, axis2=-1)[..., 1:]
    scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))
    inner = products[..., 1:, 1:] * scale[..., :, None] * scale[..., None, :]
    inner = inner + np.eye(squares.shape[-1]) * np.where(squares > 0.0, RIDGE, 1.0)[..., None, :]
    return scale * np.linalg.solve(inner, (products[..., 1:, 0] * scale)[..., None])[..., 0]
