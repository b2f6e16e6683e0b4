"""A load that hangs and swings, where the model has it fixed: told from a payload by the motion of a pendulum.

The load is by u off from below the tool, with u'' + 2 d w u' + w^2 u = -a for the acceleration a of the tool across
gravity, and pulls the tool by m w^2 u and by its weight.  What is rigid there, in the model or on the machine, is
fitted freely.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.signal import cont2discrete, lfilter

from .cause_messages import of_swing
from .correction_fits import SHORT, Equations, solve
from .products import Products
from .ranking import LEAST_EFFECT, LEAST_SHARE, Candidate, Fit

EVERY = 2                   # rows of `Corrections`; a pendulum is slower than these
MAX_ROWS = 5_000            # that are kept, some minutes: a swing needs no more
LEAST_SECONDS = 10.0        # of a stretch without gaps in which a pendulum is looked for
PERIODS = np.geomspace(0.8, 6.0, 202)       # s, so close that `DAMPING` makes neighbours alike
DAMPING = 0.01              # of the critical one; loads of cranes have less
LEAST_OF_REST = 0.2         # of what a rigid payload leaves that the pendulum must explain
SINGULAR = 1e-2             # of the largest singular value of the map of forces, above which it has an inverse
WIDTH = 1.0                 # s of a bin


class Rows(NamedTuple):
    """What a pendulum is fitted to: t (n,) [s], residual (n, actuators), and columns (n, actuators, k) of a rigid body
    (10) and of forces (3)."""

    t: np.ndarray
    e: np.ndarray
    rigid: np.ndarray
    forces: np.ndarray


class HangingLoad:
    """Looks for a load that hangs from a link; memory does not grow beyond `MAX_ROWS`.

    link     name of it
    gravity  (3,) m/s^2 in base axes
    """

    def __init__(self, link, gravity):
        self._link, self._gravity, self._parts, self._count = link, gravity, [], 0

    def add(self, rows):
        """Take `Rows`, 0 in what is not known."""
        if self._count < MAX_ROWS:
            self._parts.append(Rows(*(one[::EVERY].copy() for one in rows)))
            self._count += len(self._parts[-1].t)

    def fit(self, weights, scale):
        """Return the `Fit` of a load that swings, None where there is none.

        weights, scale  (actuators,) of squares of the residual, and of efforts [N, N m], both of `Diagnosis`
        """
        rows = self._longest()
        if rows is None or not self._gravity.any() or not _reaches_everywhere(rows.forces):
            return None
        # a mass is felt by its acceleration less gravity
        felt = -(np.linalg.pinv(rows.forces) @ rows.rigid[..., :1])[..., 0]

        def columns(period):
            return np.concatenate((rows.rigid, rows.forces @ _pull(rows.t, felt, self._gravity, period)), axis=-1)
        period, error = _best_period(lambda period: _products(rows, columns(period), weights))
        if not math.isfinite(error):
            return None
        found = columns(period)
        products = Products.full(_products(rows, found, weights)[:, None])
        equations = Equations(products, products.times(0.0), np.ones(1), WIDTH)
        rigid = np.arange(rows.rigid.shape[-1])[None]
        swing = np.arange(rigid.size, found.shape[-1])[None]
        share = equations.share(np.concatenate((rigid, swing), axis=1))
        of_rest = equations.of_rest(rigid, swing)
        theta, covariance = equations.fit(np.concatenate((rigid, swing), axis=1))
        mass, of_mass = theta[rigid.size], math.sqrt(covariance[rigid.size, rigid.size])
        effect = np.sqrt(np.mean((found[..., rigid.size:] @ theta[rigid.size:]) ** 2, axis=0))
        if not (share.estimate >= LEAST_SHARE and of_rest.estimate >= LEAST_OF_REST and of_rest.low > 0.0
                and mass > 0.0 and (effect >= LEAST_EFFECT * scale).any()):
            return None
        columns = np.full((len(weights), 1), -1)
        return Fit(Candidate('hanging_load', self._link, columns), share,
                   of_swing(self._link, (mass, of_mass), (period, error), float(np.linalg.norm(self._gravity))))

    def _longest(self):
        """`Rows` between two gaps, None of too few."""
        if not self._parts:
            return None
        rows = Rows(*map(np.concatenate, zip(*self._parts)))
        step = np.diff(rows.t)
        ends = np.concatenate(([0], 1 + np.flatnonzero(step > 1.5 * np.median(step)), [len(rows.t)]))
        longest = int(np.diff(ends).argmax())
        found = Rows(*(one[ends[longest]:ends[longest + 1]] for one in rows))
        return found if found.t[-1] - found.t[0] >= LEAST_SECONDS else None


def _reaches_everywhere(forces):
    """Whether the map of forces (n, actuators, 3) on the link has an inverse in all rows."""
    if forces.shape[1] < 3:
        return False
    sizes = np.linalg.svd(forces, compute_uv=False)
    return bool((sizes[:, 2] > SINGULAR * sizes[:, 0]).all())


def _pull(t, felt, gravity, period):
    """(n, 3, 5) forces on the tool: of a pendulum of 1 kg that begins at rest, and of how it swings by itself.

    felt  (n, 3) m/s^2, acceleration of the tool less gravity
    """
    along = np.outer(gravity, gravity) / (gravity @ gravity)
    sides = np.linalg.svd(np.eye(3) - along)[0][:, :2]
    w, step = 2.0 * math.pi / period, (t[-1] - t[0]) / (len(t) - 1)
    system = cont2discrete(([-1.0], [1.0, 2.0 * DAMPING * w, w * w]), step, 'foh')
    forced = w * w * lfilter(system[0].ravel(), system[1], felt @ sides, axis=0)
    ringing = np.exp((1j - DAMPING) * w * (t - t[0]))[:, None, None] * sides
    return np.concatenate(((forced @ sides.T - felt @ along)[..., None], ringing.real, ringing.imag), axis=-1)


def _products(rows, columns, weights):
    """(bins, 1 + k, 1 + k) weighted products of the residual, which comes first, and columns (n, actuators, k)."""
    joined = np.concatenate((rows.e[..., None], columns), axis=-1) * np.sqrt(weights)[:, None]
    joined[rows.e == 0.0] = 0.0
    starts = np.flatnonzero(np.diff(((rows.t - rows.t[0]) / WIDTH).astype(int), prepend=-1)).tolist()
    parts = (joined[first:last].reshape(-1, joined.shape[-1])
             for first, last in zip(starts, [*starts[1:], len(joined)]))
    return np.array([one.T @ one for one in parts])


def _best_period(products):
    """(s at which the residual is explained best, its standard error by leaving out one block after the other); the
    error is infinite at the ends of `PERIODS`."""
    explained = []
    for period in PERIODS:
        blocks = np.add.reduceat(one := products(period), np.arange(0, len(one), round(SHORT / WIDTH)), axis=0)
        totals = np.concatenate((one.sum(axis=0)[None], one.sum(axis=0) - blocks))
        explained.append((solve(totals) * totals[:, 1:, 0]).sum(axis=1))
    explained = np.array(explained)
    best = explained.argmax(axis=0)
    if not (0 < best[0] < len(PERIODS) - 1):
        return 0.0, math.inf
    best, each = best.clip(1, len(PERIODS) - 2), np.arange(len(best))
    before, at, after = (explained[best + k, each] for k in (-1, 0, 1))
    apart = 2.0 * at - before - after
    shift = np.divide(0.5 * (after - before), apart, out=np.zeros_like(apart), where=apart > 0.0).clip(-1.0, 1.0)
    found = PERIODS[best] * (PERIODS[1] / PERIODS[0]) ** shift
    count = len(found) - 1
    return float(found[0]), math.sqrt((count - 1.0) / count * float(np.sum((found[1:] - found[1:].mean()) ** 2)))
