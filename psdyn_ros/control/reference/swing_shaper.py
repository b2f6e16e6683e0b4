"""Input shapers: a motion as a sum of delayed copies of itself, whose swings cancel each other.

ZV and ZVD: N. C. Singer and W. P. Seering, "Preshaping command inputs to reduce system vibration", J. Dyn. Sys., Meas.,
Control 112 (1990); EI: W. Singhose, W. Seering and N. Singer, "Residual vibration reduction using vector diagrams to
generate shaped inputs", J. Mech. Des. 116 (1994).  The copies have positive shares that add up to one: limits of
position, speed and acceleration that a motion keeps, its shaped motion keeps too.
"""
from math import comb, exp, pi, sqrt
from typing import NamedTuple

import numpy as np

from ...model.errors import check_name
from .trajectory import Curve

KINDS = NONE, ZV, ZVD, EI = 'none', 'zv', 'zvd', 'ei'
TOLERATED = 0.05            # share of the swing that EI leaves at the frequency that it is made for
ALIKE = 0.05                # share by which two frequencies may differ that one shaper takes away
SOONEST = 1e-6              # s between two knots
OVERDAMPED = 0.7            # ratio from which nothing swings


class Shaper(NamedTuple):
    """Copies of a motion."""

    shares: np.ndarray
    """(copies,) positive, 1 in all."""
    delays: np.ndarray
    """(copies,) s, the first 0."""


def shaper(kind, frequency, damping=0.0):
    """Return the `Shaper` of a mode: undamped frequency [rad/s], ratio of its damping to the critical one.

    kind: 'zv', 'zvd' or 'ei'.  EI takes the shares of an undamped mode, weighted by its decay.
    """
    check_name(kind, KINDS[1:], f"shaper '{kind}'")
    root = sqrt(1.0 - damping**2)
    decay, half = exp(-damping * pi / root), pi / (frequency * root)
    shares = {ZV: (1.0, 1.0), ZVD: (1.0, 2.0, 1.0), EI: (1.0 + TOLERATED, 2.0 - 2.0 * TOLERATED, 1.0 + TOLERATED)}[kind]
    shares = np.array(shares) * decay ** np.arange(len(shares))
    return Shaper(shares / shares.sum(), half * np.arange(len(shares)))


def combined(first, second):
    """Return the `Shaper` of two, one after the other."""
    delays = np.add.outer(first.delays, second.delays).ravel()
    order = np.argsort(delays, kind='stable')
    return Shaper(np.outer(first.shares, second.shares).ravel()[order], delays[order])


class SwingShaping:
    """The shaper of a motion from the modes of what hangs at its end.

    modes       function of x (dof,) that returns (frequencies [rad/s], damping ratios), each (modes,)
    kind        of `KINDS`
    suspension  of the points that loads hang from, as of `follow_suspension`; None: only joints are shaped
    """

    def __init__(self, modes, kind=ZVD, suspension=None):
        check_name(kind, KINDS, f"swing_shaper '{kind}'")
        self.modes, self.kind, self.suspension = modes, kind, suspension

    @property
    def none(self):
        """Why there is no shaper, as text, where there is none."""
        return f"nothing: the shaper is '{self.kind}', or no mode swings"

    def __call__(self, x):
        """Return the `Shaper` of a motion that ends at x (dof,), or None where there is nothing to shape."""
        if self.kind == NONE:
            return None
        frequencies, ratios = self.modes(x)
        found = None
        for group in _alike(frequencies, ratios):
            one = shaper(self.kind, *group)
            found = one if found is None else combined(found, one)
        return found


def _alike(frequencies, ratios):
    """Yield (frequency, ratio) of each group of modes that swing alike."""
    modes = sorted((frequency, ratio) for frequency, ratio in zip(frequencies, ratios) if ratio < OVERDAMPED)
    while modes:
        group = [mode for mode in modes if mode[0] <= modes[0][0] * (1.0 + ALIKE)]
        modes = modes[len(group):]
        yield tuple(np.mean(group, axis=0))


def shaped(curve, shaper):
    """Return (the shaped `Curve`, (segments,) which segment of the given one each begins in)."""
    knots = np.sort(np.add.outer(curve.times, shaper.delays).ravel())
    knots = knots[np.concatenate(([True], np.diff(knots) > SOONEST))]
    begins, total = knots[:-1], 0.0
    for share, delay in zip(shaper.shares, shaper.delays):
        total = total + share * pieces(curve, begins - delay)
    return Curve(knots, total), segments_at(curve, begins)


def segments_at(curve, times):
    """Return which segment of a `Curve` begins at each of the times or before; the first and last outside of it."""
    return np.clip(np.searchsorted(curve.times, times + 0.5 * SOONEST, side='right') - 1, 0, len(curve.times) - 2)


def pieces(curve, begins):
    """Return the coefficients (M, 6, n) of a `Curve` from each of the times on; at rest outside of it."""
    before = begins < curve.start - 0.5 * SOONEST
    after = begins > curve.end - 0.5 * SOONEST
    k = segments_at(curve, begins)
    c = curve.coefficients[k]
    h = np.where(before | after, 0.0, begins - curve.times[k])[:, None]
    out = np.stack([sum(comb(j, i) * h**(j - i) * c[:, j] for j in range(i, c.shape[1]))
                    for i in range(c.shape[1])], axis=1)
    out[before | after] = 0.0
    out[before, 0], out[after, 0] = curve.coefficients[0, 0], curve.sample(curve.end)[0]
    return out
