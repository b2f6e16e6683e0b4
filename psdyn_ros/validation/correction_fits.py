"""Fits of a few columns to the residual of a recording, from normal equations per bin of time.

A share is judged on parts of the recording that the fit has not seen, so more columns explain more only where they
have a reason to; it is negative where a fit says nothing.
"""

import numpy as np

from .bootstrap import FEWEST, bootstrap

BLOCK = 5.0                 # s that are drawn together, and that are held out together
FOLDS = 5
RESAMPLES = 299
RIDGE = 1e-9                # of the squares of each column, for what cannot be told from each other


class Equations:
    """Normal equations of all actuators, each weighted.

    products  (bins, actuators, 1 + K, 1 + K): of the residual, which comes first, and of K columns
    weights   (actuators,)
    width     s of a bin
    """

    def __init__(self, products, weights, width):
        # the last column is nothing: what does not act on an actuator
        self._products = np.pad(products * weights[:, None, None], ((0, 0), (0, 0), (0, 1), (0, 1)))
        bins = len(products)
        self.block = max(min(round(BLOCK / width), bins // FEWEST), 1)
        self._fold = np.arange(bins) // self.block % FOLDS

    def chosen(self, columns):
        """(bins, 1 + n, 1 + n) of some columns (actuators, n) of those by number, -1: none."""
        total = 0.0
        for actuator, own in enumerate(columns):
            index = np.concatenate(([0], np.where(own < 0, -1, own + 1)))
            total = total + self._products[:, actuator][:, index[:, None], index]
        return total

    def share(self, columns):
        """`Interval` of the share of the residual's squares that columns (actuators, n) explain."""
        return self._bootstrap(self._folded(columns), held_out_share)

    def gain(self, first, second):
        """`Interval` of how much larger the share of the second is than that of the first."""
        sums = [self._folded(columns) for columns in (first, second)]
        size = sums[0].shape[1]
        return self._bootstrap(np.concatenate(sums, axis=1), lambda totals: (
            held_out_share(totals[..., size:]) - held_out_share(totals[..., :size])))

    def of_rest(self, first, second):
        """`Interval` of the share that the second, fitted together with the first, explains of what that leaves."""
        among = np.arange(1 + first.shape[1])

        def statistic(totals):
            alone = held_out_share(totals, among)
            return (held_out_share(totals) - alone) / (1.0 - alone)
        return self._bootstrap(self._folded(np.concatenate((first, second), axis=1)), statistic)

    def effect(self, columns, theta):
        """(actuators,) weighted sum of squares of what columns (actuators, n) times theta (n,) add to each."""
        total, out = self._products.sum(axis=0), np.zeros(len(columns))
        for actuator, own in enumerate(columns):
            index = np.where(own < 0, -1, own + 1)
            out[actuator] = theta @ total[actuator][index[:, None], index] @ theta
        return out

    def _folded(self, columns):
        """(bins, FOLDS (1 + n)^2): each bin in the place of the part that it is held out with."""
        products = self.chosen(columns)
        out = np.zeros((len(products), FOLDS, *products.shape[1:]))
        out[np.arange(len(products)), self._fold] = products
        return out.reshape(len(products), -1)

    def _bootstrap(self, sums, statistic):
        return bootstrap(sums, statistic, block=self.block, resamples=RESAMPLES)

    def fit(self, columns):
        """(theta (n,), covariance (n, n)) of columns (actuators, n), by sums of blocks of bins.

        What is left of the residual is alike for a while, so its errors are those between blocks (Liang and Zeger,
        Biometrika 73 (1986) 13), not between rows.
        """
        products = self.chosen(columns)
        theta = solve(products.sum(axis=0))
        edges = np.arange(0, len(products), self.block)
        blocks = np.add.reduceat(products, edges, axis=0)
        scores = blocks[:, 1:, 0] - blocks[:, 1:, 1:] @ theta
        inverse = np.linalg.pinv(products.sum(axis=0)[1:, 1:], rcond=RIDGE, hermitian=True)
        count = len(blocks)
        more = count / (count - 1.0) if count > 1 else np.nan
        return theta, more * inverse @ (scores.T @ scores) @ inverse

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


def solve(products):
    """theta (..., n) of normal equations (..., 1 + n, 1 + n); of columns that are nothing, or alike, the smallest."""
    squares = np.diagonal(products, axis1=-2, axis2=-1)[..., 1:]
    scale = 1.0 / np.sqrt(np.where(squares > 0.0, squares, 1.0))
    inner = products[..., 1:, 1:] * scale[..., :, None] * scale[..., None, :]
    inner = inner + np.eye(squares.shape[-1]) * np.where(squares > 0.0, RIDGE, 1.0)[..., None, :]
    return scale * np.linalg.solve(inner, (products[..., 1:, 0] * scale)[..., None])[..., 0]


def held_out_share(totals, among=slice(None)):
    """Statistic of totals (..., FOLDS (1 + n)^2): the share that is explained of each part by a fit to the others.

    among  the residual and the columns that may be used, by number; else all
    """
    size = round((totals.shape[-1] / FOLDS) ** 0.5)
    parts = totals.reshape(*totals.shape[:-1], FOLDS, size, size)[..., among, :][..., among]
    theta = solve(parts.sum(axis=-3, keepdims=True) - parts)
    explained = (2.0 * (theta * parts[..., 1:, 0]).sum(axis=-1)
                 - np.einsum('...i,...ij,...j->...', theta, parts[..., 1:, 1:], theta))
    with np.errstate(invalid='ignore', divide='ignore'):
        return explained.sum(axis=-1) / parts[..., 0, 0].sum(axis=-1)
