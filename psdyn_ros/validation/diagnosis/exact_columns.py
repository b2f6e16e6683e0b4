"""Columns that are exact for what fits best, where what they stand for is not linear.

A payload is a body without extent, whose inertia follows from its mass and its place; a centre of mass takes the
inertia of its body along; encoders and tilts have their second order; and a payload weighs on a tilted base as that is
tilted.
"""

from functools import partial

import numpy as np

from .cause_messages import MAX_SHIFT, REACH
from .correction_fits import Equations
from .corrections import CENTER, ENCODERS, PAYLOAD, TILT, TILTED, WEIGHT, moved_center, point_mass

REFINED = 3                 # times that columns are taken from what fits best
SECOND_ORDER = 0.3          # of the first, up to which what an encoder adds to the residual is a series


class ExactColumns:
    """Makes `Equations` of the sums of a recording.

    corrections      `Corrections` that the sums are of
    products, noise  `Products`, weights (actuators,) and width as `Equations` takes them
    """

    def __init__(self, corrections, products, noise, weights, width):
        self._sums, self._weights, self._width = (products, noise), weights, width
        inertia = range(PAYLOAD.start + 4, PAYLOAD.stop)
        # columns, others that go with them, and how much of these by what was fitted; None where nothing is like that
        self._parts = [(range(PAYLOAD.start, PAYLOAD.start + 4), inertia, _payload),
                       (range(TILT.start, TILT.stop), range(WEIGHT, WEIGHT + 1), _tilt)]
        if corrections.body is not None:
            self._parts.append((range(CENTER.start, CENTER.stop), inertia, partial(_center, corrections.body)))
        for first in range(ENCODERS, corrections.second):
            second = first + corrections.second - ENCODERS
            squares, of_second = (products.squares(1 + k).sum(axis=0) @ weights for k in (first, second))
            most = SECOND_ORDER * np.sqrt(squares / of_second) if of_second > 0.0 else 0.0
            self._parts.append((range(first, first + 1), range(second, second + 1), partial(_encoder, most)))

    def equations(self, found):
        """Return the `Equations` in which each is exact for what fits best alone, but some for what was found of them
        with others.

        found  {number of the first column: (columns,) what was found}
        """
        sums = self._sums
        for columns, others, added in self._parts:
            if columns.start in found:
                more = added(found[columns.start])
            else:
                more = self._best(columns, others, added)
            if more is not None:
                sums = [one.added(_numbers(columns), _numbers(others), more) for one in sums]
        if TILT.start in found:
            load = found.get(PAYLOAD.start, np.array([0.0, *found.get(CENTER.start, np.zeros(3))]))
            tilt, tilted = (_numbers(range(part.start, part.stop)) for part in (TILT, TILTED))
            sums = [one.added(tilt, tilted, np.kron(np.eye(2), load[:, None])) for one in sums]
        return Equations(*sums, self._weights, self._width)

    def _best(self, columns, others, added):
        """(others, columns) how much of the others goes with columns that are fitted alone, None of nothing."""
        index = np.concatenate(([0], _numbers(columns), _numbers(others)))
        few = [one.some(index) for one in self._sums]
        own, rest = slice(1, 1 + len(columns)), slice(1 + len(columns), None)
        of_all = np.tile(np.arange(len(columns)), (len(self._weights), 1))
        more, reduced = None, few
        for _ in range(REFINED):
            found = added(Equations(*reduced, self._weights, self._width).fit(of_all)[0])
            if found is None:
                break
            more, reduced = found, [one.added(own, rest, found) for one in few]
        return more


def _payload(found):
    mass, moments = found[0], found[1:]
    return point_mass(mass, moments) if np.linalg.norm(moments) <= REACH * abs(mass) else None


def _center(body, found):
    return moved_center(body, found) if np.linalg.norm(found) <= MAX_SHIFT * body.mass else None


def _tilt(found):
    # of the weight cos(tilt) is left along what the model takes for the vertical
    return -0.5 * found[None]


def _encoder(most, found):
    # a series whose second term is not small says nothing of the third
    return found[None] if abs(found[0]) <= most else None


def _numbers(columns):
    """(n,) of columns in sums, of which the first is the residual."""
    return np.arange(1 + columns.start, 1 + columns.stop)
