"""A force that pushed the outermost link for a while: what the machine touched, or carried then."""

import numpy as np

from ..metrics.bootstrap import Interval
from .cause_messages import of_force
from .correction_fits import Equations, solve
from .corrections import FORCE
from .ranking import LEAST_SHARE, Candidate, Fit

LEAST_BINS = 3              # in which a force acts
MAX_SHARE = 0.5           # of the bins; what is wrong for longer is no matter of time
LEAST_WITHIN = 0.5          # of the residual meanwhile that a constant force must explain


def pushed(corrections, products, noise, weights, width, begins, excess):
    """Return the `Fit` of a force that is constant in the axes of the base for some bins, None where there is none.

    products, noise  of `Diagnosis` (bins, actuators, 1 + K, 1 + K); weights (actuators,)
    width, begins    s of a bin; (bins,) s since the start of the bag at which each begins
    excess           function of (squares (bins,), within (bins,)) that returns the `Interval` of the share of squares
                     that some bins have above what is usual in the others
    """
    columns = np.tile(np.arange(FORCE.start, FORCE.stop), (len(weights), 1))
    chosen = Equations(products, noise, weights, width).chosen(columns)
    gain, within = _strongest_push(chosen)
    squares = chosen[:, 0, 0]
    if within is None or not gain >= LEAST_WITHIN * squares[within].sum():
        return None
    share = Interval(*(gain / squares[within].sum() * part for part in excess(squares, within)))
    if not (share.estimate >= LEAST_SHARE and share.low > 0.0):
        return None
    theta, covariance = Equations(products[within], noise[within], weights, width).fit(columns)
    span = begins[within][0], begins[within][-1] + width
    return Fit(Candidate('contact_force', corrections.link, columns), share,
               of_force(corrections.link, theta, covariance, span))


def _strongest_push(products):
    """(squares that a constant force explains, (bins,) whether it acts) where it explains the most of products (bins,
    4, 4) of a residual and of three columns; (0, None) of too few bins."""
    sums = np.concatenate((np.zeros((1, *products.shape[1:])), np.cumsum(products, axis=0)))
    most, within = 0.0, None
    for count in range(LEAST_BINS, int(MAX_SHARE * len(products)) + 1):
        some = sums[count:] - sums[:-count]
        gains = (solve(some) * some[:, 1:, 0]).sum(axis=1)
        first = int(gains.argmax())
        if gains[first] > most:
            most, within = float(gains[first]), np.zeros(len(products), dtype=bool)
            within[first:first + count] = True
    return most, within
