"""A slip velocity other than the model's: friction that reaches its level at lower or at higher speed.

Fitted where an actuator has slid at however low a speed, so that neither law of friction has anything but its velocity
to go by, also where the model's own slip velocity leaves friction undetermined.
"""

import numpy as np

from ..metrics.prediction import SLIDES
from .cause_messages import of_slip
from .correction_fits import SHORT, Equations
from .products import Products
from .ranking import LEAST_EFFECT, LEAST_SHARE, Candidate, Fit

STEP = 2.0 ** 0.5           # between factors on the model's slip velocity, between which friction is interpolated
SAME = 8                    # number of the factor 1
FACTORS = STEP ** np.arange(-SAME, SAME + 1)
# columns: a constant, the friction of the model, the velocity, and what friction gains by each factor
CONSTANT, FREE, FIRST = 1, [1, 2, 3], 4
COUNT = FIRST - 1 + len(FACTORS)
LEAST_BINS = 5
LEAST_OF_REST = 0.2         # of what any offset, level and viscosity leave
CERTAIN = 3.0               # standard errors from the slip velocity of the model
AS_GOOD = 0.98              # of the squares that are explained by a slip velocity that may as well be
OTHER_LAWS = 0.02           # standard error, relative, by what other laws of friction make of the same machine


def slip_columns(predictor, prediction, rows):
    """Return (residual (n, actuators), columns (n, actuators, COUNT)) of some rows; both are 0 where the actuator has
    not slid or near a stop."""
    v, gains = prediction.v, [predictor.slip_change(prediction.v[rows], factor) for factor in FACTORS]
    columns = np.stack([np.ones_like(v[rows]), prediction.friction[rows], v[rows], *gains], axis=-1)
    e = (prediction.effort - prediction.effort_id)[rows]
    known = predictor.has_slid(prediction)[rows] & ~prediction.near_stop[rows]
    known &= np.isfinite(e) & np.isfinite(columns).all(axis=-1)
    return np.where(known, e, 0.0), np.where(known[..., None], columns, 0.0)


def slips(corrections, products, weights, scale, width):
    """Return [`Fit`] of slip velocities that are not those of the model, the largest share first.

    products  `Products` of a residual and of `slip_columns`; weights, scale (actuators,) and width as in `Diagnosis`
    """
    found = [_slip(corrections, axis, products, weights, scale[axis], width)
             for axis in np.flatnonzero(corrections.believed & (weights > 0.0)).tolist()]
    return sorted((one for one in found if one), key=lambda one: -one.share.estimate)


def _slip(corrections, axis, products, weights, scale, width):
    own = products.of(axis, np.arange(1 + COUNT))
    own = own[own[:, CONSTANT, CONSTANT] > 0.0]
    if len(own) < LEAST_BINS:
        return None
    blocks = np.add.reduceat(own, np.arange(0, len(own), max(round(SHORT / width), 1)), axis=0)
    total = own.sum(axis=0)
    if len(blocks) < 2:
        return None
    (place, *others), (largest, *_) = zip(*(_best(one) for one in (total, *(total - blocks))))
    bounded = place < SAME or place == len(FACTORS) - 1.0
    error = np.sqrt((len(blocks) - 1.0) * np.var(others))
    mixed = _mixed(place)
    # a softer law than that of dry friction is a matter of numbers, but where it hides what an actuator does
    if place < SAME and not SLIDES * corrections.slip[axis] > corrections.predictor.bounds.slow:
        return None
    few = _equations(Products.full((mixed.T @ own @ mixed)[:, None]), np.ones(1), width)
    of_rest = few.of_rest(np.array([[0, 1, 2]]), np.array([[3]]))
    if not (of_rest.estimate >= LEAST_OF_REST and of_rest.low > 0.0 and abs(place - SAME) > CERTAIN * error):
        return None
    both = products.made(mixed[:, [0, -1]])
    columns = np.full((len(weights), 1), -1)
    columns[axis] = 0
    share = _equations(both, weights, width).share(columns)
    effect = np.sqrt(both.of(axis, [1]).sum() / own[:, CONSTANT, CONSTANT].sum())
    if not (share.estimate >= LEAST_SHARE and share.low > 0.0 and effect >= LEAST_EFFECT * scale):
        return None
    place = largest if place < SAME else place
    # of one that is smaller the largest is stated that may be: near rest nothing tells them from each other
    value, name = corrections.slip[axis] * STEP ** (place - SAME), corrections.actuators[axis]
    error = np.nan if bounded else value * np.hypot(np.log(STEP) * error, OTHER_LAWS)
    return Fit(Candidate('slip_velocity', name, columns, axis), share,
               of_slip(name, value, error, corrections.slip[axis], corrections, axis))


def _equations(products, weights, width):
    """`Equations` of `Products` without noise."""
    return Equations(products, products.times(0.0), weights, width)


def _mixed(place):
    """(1 + COUNT, 5) that makes the residual, the free columns, and what friction gains at a place among `FACTORS`."""
    out = np.zeros((1 + COUNT, 5))
    out[[0, *FREE], range(4)] = 1.0
    first = min(int(place), len(FACTORS) - 2)
    out[FIRST + first, 4], out[FIRST + first + 1, 4] = 1.0 - (place - first), place - first
    return out


def _best(total):
    """(Place among `FACTORS`, between two of which friction is interpolated, at which it explains the most, number of
    the largest factor that explains nearly as much)."""
    rest = [0, *range(FIRST, FIRST + len(FACTORS))]
    own = total[CONSTANT, rest]
    left = total[np.ix_(rest, rest)] - np.outer(own, own) / total[CONSTANT, CONSTANT]
    e, C = left[0, 1:], left[1:, 1:]
    most, place = 0.0, float(SAME)
    at_factors = 2.0 * e - np.diagonal(C)
    for k in range(len(FACTORS) - 1):
        # of c = c_k + s d the squares 2 c e - c c
        d = C[k + 1, k + 1] - 2.0 * C[k, k + 1] + C[k, k]
        slope = e[k + 1] - e[k] - (C[k, k + 1] - C[k, k])
        s = min(max(slope / d, 0.0), 1.0) if d > 0.0 else 0.0
        gain = 2.0 * e[k] - C[k, k] + 2.0 * s * slope - s * s * d
        if gain > most:
            most, place = gain, k + s
    return place, np.flatnonzero(at_factors >= AS_GOOD * most).max(initial=0)
