"""What may be wrong where a model and a recording disagree: small corrections, ranked by what they would explain.

None of it is a fact.  A recording in which little moves cannot tell many of them from each other, and what is wrong
may be none of them.
"""

import math
from dataclasses import asdict, dataclass

import numpy as np

from .cause_words import describe
from .correction_fits import Equations, solve
from .corrections import (
    ENCODERS,
    FRICTION,
    GAIN_A,
    GAIN_B,
    OFFSET,
    PAYLOAD,
    RATE,
    TILT,
    TIME,
    Corrections,
)
from .metrics import LEAST_RANGE, capacities

MOST_BINS = 512
LEAST_SHARE = 0.05          # that a cause must explain
LEAST_EFFECT = 2e-3         # rms of it over the range of the effort, on some actuator
FLOOR = 1e-3                # of that range: a residual below it is not weighed any more for being small
ALIKE = 0.9                 # correlation from which two causes cannot be told apart
EQUAL = 0.02                # by which a share with fewer columns may be smaller, where that may be chance
MOST_NEXT = 2               # causes beside the first that are looked for in what it leaves
REACH = 20.0                # m from its link within which a payload is believed
MARGIN = 0.2                # s around a frozen encoder that suffer from it


@dataclass(frozen=True)
class Cause:
    """Something that would explain a part of the residual.

    kind      'payload', 'friction', 'area', 'sensor_offset', 'sensor_drift', 'delay', 'base_tilt', 'frozen_encoder' or
              'encoder_offset'
    about     link, actuator, topic, joint or 'base'
    share     of the mean square residual that it would explain alone, on parts of the recording that it was not fitted
              to; between low and high with 95 % confidence
    estimate  of how much is wrong, in `unit` (SI), and its standard error
    text      in words, with numbers
    """

    kind: str
    about: str
    share: float
    low: float
    high: float
    estimate: float
    error: float
    unit: str
    text: str

    def as_dict(self):
        """For JSON: what is not known is None."""
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in asdict(self).items()}


@dataclass(frozen=True)
class Candidate:
    """A cause to be looked at: columns (actuators, n) by number, -1 where it does not act on an actuator."""

    kind: str
    about: str
    columns: np.ndarray
    axis: int = -1
    port: str = ''


class Diagnosis:
    """Takes the blocks of a recording and their predictions, one after the other; memory does not grow.

    predictor  `Predictor` that makes the predictions
    channels   `Channels` of the recording, which know its topics; None: there is one

    text  what came of `causes` in words, or why there are none
    """

    def __init__(self, predictor, channels=None):
        self.corrections = Corrections(predictor)
        self._channels, self._hydraulics = channels, predictor.hydraulics
        self._actuators = self.corrections.actuators
        size = 1 + self.corrections.count
        self._products = np.zeros((0, len(self._actuators), size, size))
        self._rows = np.zeros((0, len(self._actuators)))
        self._range = np.tile([[np.inf], [-np.inf]], len(self._actuators))
        self._capacity = capacities(predictor.manipulator, predictor.hydraulics)
        self.width, self.text = 1.0, ''

    def add(self, block, prediction):
        """Take a `Block` and its `Prediction`; core rows count.  None for the prediction: there is none."""
        if prediction is None:
            return
        rows, e, columns = self.corrections(block, prediction)
        if rows is None:
            return
        effort = prediction.effort[rows]
        self._range[0] = np.fmin(self._range[0], np.fmin.reduce(effort))
        self._range[1] = np.fmax(self._range[1], np.fmax.reduce(effort))
        bins = self._bins(prediction.t[rows])
        known = np.isfinite(e)
        joined = np.where(known[..., None], np.concatenate((np.nan_to_num(e)[..., None], columns), axis=-1), 0.0)
        starts = np.flatnonzero(np.diff(bins, prepend=-1))
        for first, last in zip(starts, [*starts[1:], len(bins)]):
            part = np.swapaxes(joined[first:last], 0, 1)
            self._products[bins[first]] += np.swapaxes(part, 1, 2) @ part
            self._rows[bins[first]] += known[first:last].sum(axis=0)

    def _bins(self, t):
        """(n,) bins of instants; makes room for them, and pairs of bins one where there are too many."""
        while t[-1] / self.width >= MOST_BINS:
            if len(self._rows) % 2:
                self._grow(1)
            self._products, self._rows = (sums[::2] + sums[1::2] for sums in (self._products, self._rows))
            self.width *= 2.0
        bins = np.maximum((t / self.width).astype(np.int64), 0)
        self._grow(max(int(bins[-1]) + 1 - len(self._rows), 0))
        return bins

    def _grow(self, count):
        self._products, self._rows = (np.concatenate((sums, np.zeros((count, *sums.shape[1:]))))
                                      for sums in (self._products, self._rows))

    def causes(self, quality=None, delays=None):
        """Return the `Cause`s that are more than chance, the likeliest first.

        quality  `Quality` of the recording, which knows frozen encoders, or None
        delays   {topic: s} that were taken off the blocks; they count as a cause
        """
        used = self._rows.any(axis=1)
        if used.sum() < 2 or not self._products[..., 0, 0].any():
            self.text = 'there is too little to say what may be wrong'
            return ()
        products, scale = self._prepared(used, delays or {}), self._scale()
        equations = Equations(products, self._weights(products, self._rows[used].sum(axis=0), scale), self.width)
        found = []
        for candidate in self._candidates():
            cause = self._judge(equations, candidate, products, used, scale)
            if cause is not None:
                found.append((candidate, cause))
        found += self._frozen(equations, quality, used)
        found.sort(key=lambda pair: -pair[1].share)
        self.text = '; '.join(cause.text for _, cause in found) or 'nothing that was looked for would explain it'
        return tuple(cause for _, cause in found)

    def _scale(self):
        """(actuators,) range of the measured efforts, at least 5 % of what they can give."""
        span = np.maximum(self._range[1] - self._range[0], 0.0)
        return np.fmax(span, LEAST_RANGE * np.where(np.isfinite(self._capacity), self._capacity, 0.0))

    def _prepared(self, used, delays):
        """Products of the bins used, with the residual as it was before delays were taken off, and a payload of four
        columns."""
        products = self._products[used]
        for axis in range(len(self._actuators)):
            taken = [delays[topic] for topic in self._topics(axis) if topic in delays]
            if taken:
                # the column of the delay is - rate, which is what being late by 1 s adds, to first order
                change = np.eye(products.shape[-1])
                change[1 + RATE, 0] = np.mean(taken)
                products[:, axis] = change.T @ products[:, axis] @ change
        return products

    def _weights(self, products, rows, scale):
        """(actuators,) 1 / (mean square that not even all corrections together explain)."""
        total = products.sum(axis=0)
        rows = np.maximum(rows, 1.0)
        theta = solve(total)
        left = total[:, 0, 0] - (theta * total[:, 1:, 0]).sum(axis=-1)
        return 1.0 / np.maximum(left / rows, np.maximum((FLOOR * scale) ** 2, 1e-12))

    def _topics(self, axis):
        """Topics that the effort of an actuator is measured by."""
        if self._channels is None:
            return ('pressures' if self.corrections.by_pressure[axis] else 'efforts',)
        if not self.corrections.by_pressure[axis]:
            return (self._channels.efforts,)
        ports = tuple(topic for (name, _), topic in self._channels.ports.items() if name == self._actuators[axis])
        return ports or (self._channels.telemetry,)

    def _candidates(self):
        count = len(self._actuators)
        known = self._rows.any(axis=0)
        everywhere = np.ones((count, 1), dtype=int)

        def only(axis, *columns):
            out = np.full((count, len(columns)), -1)
            out[axis] = columns
            return out
        yield Candidate('payload', self.corrections.link, everywhere * np.arange(PAYLOAD.start, PAYLOAD.start + 4))
        yield Candidate('base_tilt', 'base', everywhere * np.arange(TILT.start, TILT.stop))
        for k, joint in (self.corrections.encoders or {}).items():
            yield Candidate('encoder_offset', joint, everywhere * (ENCODERS + k), k)
        topics = {}
        for axis in np.flatnonzero(known):
            topics.setdefault(self._topics(axis), []).append(axis)
        for names, axes in topics.items():
            out = np.full((count, 1), -1)
            out[axes] = RATE
            yield Candidate('delay', names[0], out, axes[0])
        for axis in np.flatnonzero(known):
            name = self._actuators[axis]
            yield Candidate('friction', name, only(axis, FRICTION), axis)
            yield Candidate('sensor_offset', name, only(axis, OFFSET), axis)
            yield Candidate('sensor_drift', name, only(axis, TIME, OFFSET), axis)
            yield Candidate('area', name, only(axis, GAIN_A), axis, 'a')
            if self.corrections.by_pressure[axis]:
                yield Candidate('area', name, only(axis, GAIN_B), axis, 'b')

    def _judge(self, equations, candidate, products, used, scale):
        share = equations.share(candidate.columns)
        if not (share.estimate >= LEAST_SHARE and share.low > 0.0):
            return None
        theta, covariance = equations.fit(candidate.columns)
        estimate, error, unit, text = describe(candidate, theta, covariance, self.corrections, self._hydraulics)
        return Cause(candidate.kind, candidate.about, share.estimate, share.low, min(share.high, 1.0), estimate, error,
                     unit, f'{text} would explain {_percent(share)} of the residual')

    def _frozen(self, equations, quality, used):
        return []


def _percent(share):
    return f'{share.estimate:.0%} ({max(share.low, 0.0):.0%} to {min(share.high, 1.0):.0%})'
