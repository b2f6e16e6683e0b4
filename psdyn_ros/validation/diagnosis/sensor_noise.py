"""How much of the errors of efforts is noise of sensors: what even and odd samples of one motion disagree by.

Both halves have the same motion, the same model and the same errors of it; their noises are independent. With e and o
the errors by even and by odd samples alone, through a filter as long as that of all samples, white noise leaves of all

    variance = mean (e - o)^2 / 4

Noise that neighbours share, as of slow topics brought to a faster grid, cancels and counts as an error.
"""

import math
from dataclasses import fields, replace

import numpy as np

from ...model.errors import ModelError
from ..metrics.prediction import NEAR_STOP, Predictor

EVERY = 4           # of so many blocks one is looked at: two halves take as long as the prediction that is judged


class SensorNoise:
    """Takes `Block`s of a recording.

    predictor  the `Predictor` whose errors are judged
    """

    def __init__(self, predictor):
        self._predictor, self._halves, self._blocks = predictor, None, 0
        self._sums = np.zeros((len(predictor.manipulator.actuators), 2))    # instants, squares

    def add(self, block, prediction):
        """Take a `Block` and its `Prediction`, which does not matter; one of `EVERY` is looked at, the first too."""
        self._blocks += 1
        if self._blocks % EVERY != 1:
            return
        if self._halves is None:
            self._halves = _predictor_of_halves(self._predictor)
        halves = [self._halves and self._halves.predict(_half(block, first)) for first in (0, 1)]
        if None in halves:
            return
        (even, known_even), (odd, known_odd) = (_errors(half) for half in halves)
        rows = min(len(even), len(odd))
        # odd samples are half way between even ones
        apart = even[1:rows] - 0.5 * (odd[:rows - 1] + odd[1:rows])
        known = known_even[1:rows] & known_odd[:rows - 1] & known_odd[1:rows]
        squares = np.where(known, apart, 0.0) ** 2
        whole = slice(self._halves.filter.half, rows - 1 - self._halves.filter.half)
        self._sums += np.column_stack((known[whole].sum(axis=0), squares[whole].sum(axis=0)))

    def rms(self, axis):
        """N or N m of an actuator; 0 where nothing is known."""
        count, squares = self._sums[axis]
        return math.sqrt(0.25 * squares / count) if count else 0.0


def _predictor_of_halves(predictor):
    """Return a `Predictor` of every other sample; None where its filter needs more of them."""
    try:
        slower = replace(predictor.filter, period=2.0 * predictor.filter.period)
    except ModelError:
        return None
    return Predictor(predictor.manipulator, predictor.hydraulics, slower, predictor.bounds)


def _half(block, first):
    """Return a `Block` of every other row of one, all of them its core."""
    rows = {field.name: value[first::2] for field in fields(block)
            if isinstance(value := getattr(block, field.name), np.ndarray)}
    return replace(block, **rows, core=slice(0, len(rows['t'])), period=2.0 * block.period)


def _errors(prediction):
    """(errors, whether they are judged) (N, actuators)."""
    errors = prediction.effort - prediction.effort_near
    return errors, np.isfinite(errors) & ~prediction.held & (prediction.regime != NEAR_STOP)
