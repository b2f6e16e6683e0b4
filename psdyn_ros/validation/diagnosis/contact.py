"""A force that pushed the outermost link for a while: what the machine touched, or carried then.

What is wrong all the time is fitted to the rest of the recording, and the force to what that leaves meanwhile.
"""

from typing import NamedTuple

import numpy as np

from ..metrics.bootstrap import Interval
from .cause_messages import of_force
from .correction_fits import solve
from .corrections import FORCE
from .ranking import LEAST_EFFECT, LEAST_SHARE, Candidate, Columns, Fit

LEAST_BINS = 3              # in which a force acts
MAX_SHARE = 0.5           # of the bins; what is wrong for longer is no matter of time
LEAST_WITHIN = 0.5          # of the residual meanwhile that a constant force must explain
SIGNIFICANT = 3.0           # standard errors from which some part of it is a force, and no chance


class Push(NamedTuple):
    """A force, when it acts, and what it explains."""

    fit: Fit                # with its share of what is left of the residual
    within: np.ndarray      # (bins,) bool
    gain: float             # squares of the residual
    left: float             # squares that all but the force leave

    @property
    def near(self):
        """(bins,) bool, when it may act: also at the beginning or the end of a bin beside."""
        return np.convolve(self.within, np.ones(3), 'same') > 0.0


def nothing(actuators):
    """Return the `Columns` of no cause."""
    return Columns(np.zeros((actuators, 0), dtype=int), np.zeros(0), np.zeros((0, 0)))


def pushed(corrections, equations, others, width, begins, excess, relative):
    """Return the `Push` by a force that is constant in the axes of the base for some bins; None of none that matters.

    equations      `Equations` of all bins
    others         `Columns` of what is wrong all the time
    width, begins  s of a bin; (bins,) s since the start of the bag at which each begins
    excess         function of (squares (bins,), within (bins,)) that returns the `Interval` of the share of squares
                   that some bins have above what is usual in the others
    relative       (actuators,) factor from a weighted sum of squares to a mean square over the square of the range
    """
    columns = np.tile(np.arange(FORCE.start, FORCE.stop), (len(others.columns), 1))
    force = np.arange(columns.shape[1])[None]
    left = equations.less(others[:2], columns)
    products = left.chosen(force)
    gain, within = _strongest_push(products)
    squares = products[:, 0, 0]
    if within is None or not gain >= LEAST_WITHIN * squares[within].sum():
        return None
    share = Interval(*(gain / squares[within].sum() * part for part in excess(squares, within)))
    if not (share.estimate >= LEAST_SHARE and share.low > 0.0):
        return None
    # in the bins at either end it acts for a part of the time
    whole = within.copy()
    if within.sum() > LEAST_BINS + 1:
        whole[np.flatnonzero(within)[[0, -1]]] = False
    theta, covariance = left.within(whole).fit(force)
    # what the others are off by is taken for a force
    both = equations.within(whole).chosen(np.concatenate((others.columns, columns), axis=1)).sum(axis=0)
    first = 1 + len(others.theta)
    moved = np.linalg.pinv(both[first:, first:]) @ both[first:, 1:first]
    covariance = covariance + moved @ others.covariance @ moved.T
    chance = (np.abs(theta) <= SIGNIFICANT * np.sqrt(np.diagonal(covariance))).all()
    effect = (relative * equations.within(whole).effect(columns, theta)).max() * len(within) / whole.sum()
    if chance or effect < LEAST_EFFECT ** 2:
        return None
    span = begins[within][0], begins[within][-1] + width
    fit = Fit(Candidate('contact_force', corrections.link, columns), share,
              of_force(corrections.link, theta, covariance, span))
    return Push(fit, within, gain, float(squares.sum()))


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
