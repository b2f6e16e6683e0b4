"""Where the work of the actuators went: into motion and height, into friction, or nowhere that the model knows of."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from ...model.parameters.parameter_blocks import number
from .figure import MACHINE, Figure, estimate

SPAN = 1.0                  # s over which a balance is drawn up


@dataclass(frozen=True)
class Balance:
    """Energies [J] over all spans of a recording in which every effort is known and no actuator near a stop.

    actuators    work of each, as measured
    friction     of each, taken by the model's friction
    mechanical   change of kinetic and potential energy by the model
    unexplained  work - friction - mechanical
    turnover     sum over spans of the sizes of works, frictions and changes: what the unexplained is to be compared
                 with, since works of a motion that returns cancel each other
    mismatch     root mean square of what is unexplained in a span / root mean square of works in a span
    spans        how many
    """

    actuators: tuple
    friction: tuple
    mechanical: float
    unexplained: float
    turnover: float
    mismatch: float
    spans: int

    def as_dict(self):
        """For JSON."""
        return {name: None if value != value else value for name, value in asdict(self).items()}


class EnergyBalance(Figure):
    """Draws up the balance of predictions, span by span of about a second.

    metrics  has the `mechanism`, the model without friction of its actuators
    """

    name, unit, of_actuators = 'energy', '%', False
    tolerance = number('1, unexplained work in a second / work of the actuators, both rms; none: not judged',
                       math.inf, low=0.0, high=1e6)

    def __init__(self, metrics):
        super().__init__(metrics)
        self._mechanism, count = metrics.mechanism, len(metrics.mechanism.actuators)
        self._work, self._friction = np.zeros((2, count))
        self._mechanical = self._turnover = self._squares = self._work_squares = 0.0
        self._spans = 0

    def abouts(self):
        return () if self.metrics.live else (MACHINE,)

    def value(self, about, drawn):
        return estimate(self.balance().mismatch)

    def as_dict(self):
        return self.balance().as_dict()

    def add(self, prediction, bins=None):
        first, last = prediction.core.start, min(prediction.core.stop, len(prediction.t) - 1)
        step = max(round(SPAN / prediction.period), 1)
        edges = np.arange(first, last + 1, step)
        if len(edges) < 2:
            return
        rows = slice(edges[0], edges[-1] + 1)
        v = prediction.v[rows]
        measured = np.where(prediction.near_stop, np.nan, prediction.effort)
        works, losses = (_integrals(power[rows] * v, edges - edges[0], prediction.period)
                         for power in (measured, prediction.friction))
        stored = np.diff([sum(self._mechanism.energy(prediction.x[row], prediction.xd[row])) for row in edges])
        known = np.isfinite(works).all(axis=1)
        works, losses, stored = works[known], losses[known], stored[known]
        rest = works.sum(axis=1) - losses.sum(axis=1) - stored
        self._work += works.sum(axis=0)
        self._friction += losses.sum(axis=0)
        self._mechanical += float(stored.sum())
        self._turnover += float(np.abs(works).sum() + np.abs(losses).sum() + np.abs(stored).sum())
        self._squares += float(rest @ rest)
        self._work_squares += float((works ** 2).sum())
        self._spans += len(works)

    def balance(self):
        """The `Balance` so far."""
        unexplained = float(self._work.sum() - self._friction.sum() - self._mechanical)
        mismatch = float(np.sqrt(self._squares / self._work_squares)) if self._work_squares > 0.0 else float('nan')
        return Balance(tuple(self._work.tolist()), tuple(self._friction.tolist()), self._mechanical, unexplained,
                       self._turnover, mismatch, self._spans)


def _integrals(power, edges, period):
    """(spans, n) integrals of power (rows, n) between edges, by the trapezoidal rule."""
    sums = np.concatenate((np.zeros((1, power.shape[1])), np.cumsum(0.5 * (power[1:] + power[:-1]), axis=0)))
    return period * np.diff(sums[edges], axis=0)
