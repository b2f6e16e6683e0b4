"""Which corrections explain a residual, and how they compare: alone, against each other, and one after the other."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..metrics.bootstrap import Interval
from .cause_messages import Wording, word
from .corrections import BORE, CENTER, ENCODERS, FRICTION, GAIN_A, GAIN_B, OFFSET, PAYLOAD, PORTS, RATE, TILT, TIME
from .exact_columns import REFINED

LEAST_SHARE = 0.05          # of the residual's squares that a cause must explain
LEAST_EFFECT = 2e-3         # rms of it over the range of the effort, on some actuator
EQUAL = 0.02                # by which a share with fewer columns may be smaller, where that may be chance
LEAST_GAIN = 0.005         # of the residual's squares by which one cause explains more than another
ALIKE = 0.9                 # correlation from which two causes may be taken for each other
SAME_DELAY = 3.0            # standard errors between delays that are the same
MAX_NEXT = 2               # causes beside the first that are looked for in what it leaves
MAX_EXCHANGES = 4
OF_ONE_MASS = {'payload', 'center_of_mass'}     # which have the same columns but for inertia


@dataclass(frozen=True, eq=False)
class Candidate:
    """A cause to be looked at.

    kind, about  as of a `Cause`
    columns      (actuators, n) of `Corrections` by number, -1 where it does not act on an actuator
    axis         number of the actuator, or of the coordinate of an encoder
    port         'a' or 'b' of an area
    """

    kind: str
    about: str
    columns: np.ndarray
    axis: int = -1
    port: str = ''


class Fit(NamedTuple):
    """A candidate, its share with its interval, and what it comes to."""

    candidate: Candidate
    share: Interval
    wording: Wording


class Columns(NamedTuple):
    """Columns (actuators, n), what is found of them (n,), and its covariance (n, n)."""

    columns: np.ndarray
    theta: np.ndarray
    covariance: np.ndarray


def candidates(corrections, known, topics):
    """Return the `Candidate`s of `Corrections`.

    known   (actuators,) whether the effort was measured
    topics  {topic: numbers of the actuators whose efforts it says}
    """
    count, measured = len(known), np.flatnonzero(known).tolist()

    def on(axes, *columns):
        out = np.full((count, len(columns)), -1)
        out[axes] = columns
        return out
    found = [Candidate('payload', corrections.link, on(measured, *range(PAYLOAD.start, PAYLOAD.start + 4))),
             Candidate('base_tilt', 'base', on(measured, *range(TILT.start, TILT.stop)))]
    if corrections.body is not None:
        found.append(Candidate('center_of_mass', corrections.link, on(measured, *range(CENTER.start, CENTER.stop))))
    found += [Candidate('encoder_offset', joint, on(measured, ENCODERS + k), k)
              for k, joint in corrections.encoders.items()]
    found += [Candidate('encoder_scale', joint, on(measured, corrections.scales + k), k)
              for k, joint in corrections.encoders.items()]
    found += [Candidate('delay', name, on(axes, RATE), axes[0]) for name, axes in topics.items()]
    found += [Candidate('exchanged', "' and '".join(corrections.actuators[axis] for axis in pair),
                        on(list(pair), corrections.first_pair + k), pair[0])
              for k, pair in enumerate(corrections.pairs)
              if known[list(pair)].all() and len(set(corrections.by_pressure[list(pair)])) == 1]
    by_pressure = [axis for axis in measured if corrections.by_pressure[axis]]
    if len(by_pressure) > 1:
        found.append(Candidate('ports', "' and '".join(corrections.actuators[axis] for axis in by_pressure),
                               on(by_pressure, PORTS)))
    for axis in measured:
        name = corrections.actuators[axis]
        found += [Candidate('friction', name, on(axis, FRICTION), axis),
                  Candidate('sensor_offset', name, on(axis, OFFSET), axis),
                  Candidate('sensor_drift', name, on(axis, TIME, OFFSET), axis),
                  Candidate('area', name, on(axis, GAIN_A), axis, 'a')]
        if corrections.by_pressure[axis]:
            found += [Candidate('area', name, on(axis, GAIN_B), axis, 'b'),
                      Candidate('bore', name, on(axis, BORE), axis),
                      Candidate('ports', name, on(axis, PORTS), axis)]
    return found


def _columns(chosen):
    """(actuators, n) of some candidates."""
    return np.concatenate([one.columns for one in chosen], axis=1)


def _found(chosen, theta):
    ends = np.cumsum([one.columns.shape[1] for one in chosen])
    parts = [theta[end - one.columns.shape[1]:end] for end, one in zip(ends, chosen)]
    return {int(one.columns.max(axis=0)[0]): part for one, part in zip(chosen, parts)}


class Ranking:
    """Holds candidates against the `Equations` of a recording.

    exact     `ExactColumns` that make them
    relative  (actuators,) factor from a weighted sum of squares to a mean square over the square of the range
    delays    {topic: (s, standard error)} that were found before, with all that may be wrong fitted freely
    """

    def __init__(self, exact, relative, corrections, hydraulics, delays):
        self._exact, self._equations, self._relative = exact, exact.equations({}), relative
        self._corrections, self._hydraulics, self._delays = corrections, hydraulics, delays

    def alone(self, candidate, certain=False):
        """Return the `Fit` of a candidate, None where it is no explanation; certain: it may be as small as it is."""
        return self._fit(candidate, np.zeros((len(candidate.columns), 0), dtype=int), self.share(candidate), certain)

    def share(self, candidate):
        """Return the `Interval` of the share of the residual's squares that a candidate explains alone."""
        return self._equations.share(candidate.columns)

    def explained(self, chosen):
        """Return the share of the residual's squares that candidates explain together."""
        return self._equations.explained(_columns(chosen)) if chosen else 0.0

    def simplest(self, fits):
        """Of what explains the most, and what may as well, the `Fit` that is not far-fetched, and has the fewest
        columns; None of none."""
        if not fits:
            return None
        best = max(fits, key=lambda one: one.share.estimate)
        equal = [one for one in fits if one is best or one.share.estimate >= best.share.estimate - EQUAL
                 and not self._better(one.candidate.columns, best.candidate.columns)]
        return min(equal, key=lambda one: (not one.wording.likely, one.candidate.columns.shape[1], -one.share.estimate))

    def like(self, first, others):
        """Those of the others that the recording does not tell from the first."""
        mine = first.candidate.columns
        return [other for other in others if other.candidate is not first.candidate
                and abs(self._equations.likeness(mine, other.candidate.columns)) > ALIKE
                and not self._better(other.candidate.columns, mine)]

    def together(self, first, others):
        """Return the `Fit`s of the first and of what explains the most of what is left, one after the other, all
        fitted together; shares of the others are of what those before them leave.

        first   `Fit`
        others  `Candidate`s

        Stepwise regression by held-out shares with exchanges: what was taken first need not be among those that explain
        the most together (A. Miller, Subset Selection in Regression, Chapman and Hall 2002, 3.6).
        """
        chosen, alone = [first.candidate], self._equations
        while len(chosen) <= MAX_NEXT:
            more = self._next(chosen, others)
            if more is None:
                break
            chosen = self._with_exchanges([*chosen, more], others)
        if len(chosen) == 1:
            return [first]

        def without(one):
            return self._equations.explained(_columns([other for other in chosen if other is not one]))
        # what would be missed most comes first
        chosen = sorted(chosen, key=without)
        shares = [self._equations.share(chosen[0].columns)]
        shares += [self._equations.of_rest(_columns(chosen[:k]), one.columns) for k, one in enumerate(chosen) if k]
        found = [Fit(*parts) for parts in zip(chosen, shares, self._words(chosen))]
        self._equations = alone
        return found

    def _next(self, chosen, others):
        """The `Candidate` that explains the most of what some leave, None of none."""
        taken = _columns(chosen)
        fits = [fit for one in others if one not in chosen and (fit := self._fit(
            one, taken, self._equations.of_rest(taken, one.columns))) is not None]
        for fit in sorted(fits, key=lambda one: -one.share.estimate):
            if self._can_be([*chosen, fit.candidate]):
                return fit.candidate
        return None

    def _with_exchanges(self, chosen, others):
        """Candidates in which one after the other was exchanged for what explains more with the rest of them."""
        for _ in range(MAX_EXCHANGES):
            self._refine(chosen)
            swapped = [[*chosen[:k], one, *chosen[k + 1:]] for k in range(len(chosen)) for one in others
                       if one not in chosen and one.kind != 'sensor_drift']
            swapped = sorted(filter(self._can_be, swapped), key=lambda some: self._equations.explained(_columns(some)))
            if not swapped or not self._better(_columns(chosen), _columns(swapped[-1])):
                break
            chosen = swapped[-1]
        self._refine(chosen)
        return chosen

    def _refine(self, chosen):
        """Take columns that are exact for what is found of candidates together."""
        for _ in range(REFINED):
            found = _found(chosen, self._equations.fit(_columns(chosen))[0])
            self._equations = self._exact.equations(found)

    def fitted(self, chosen):
        """Return (`Equations` that are exact for candidates together, {number of the first column: (columns,)} found
        of these, for `ExactColumns`, and their `Columns`)."""
        alone = self._equations
        self._refine(chosen)
        columns, exact = _columns(chosen), self._equations
        fit, self._equations = Columns(columns, *exact.fit(columns)), alone
        return exact, _found(chosen, fit.theta), fit

    def _can_be(self, chosen):
        """Whether candidates that are fitted together are all possible, not far-fetched, and not the same twice."""
        return not OF_ONE_MASS <= {one.kind for one in chosen} and all(
            wording.possible and wording.likely for wording in self._words(chosen))

    def _words(self, chosen):
        """[`Wording`] of candidates that are fitted together."""
        theta, covariance = self._equations.fit(_columns(chosen))
        ends = np.cumsum([one.columns.shape[1] for one in chosen])
        parts = [slice(end - one.columns.shape[1], end) for end, one in zip(ends, chosen)]
        return [self._word(one, theta[part], covariance[part, part]) for one, part in zip(chosen, parts)]

    def _fit(self, candidate, taken, share, certain=False):
        """The `Fit` of a candidate whose share is known, together with columns that are taken for granted, or None."""
        if not (share.estimate >= LEAST_SHARE and share.low > 0.0):
            return None
        columns = np.concatenate((taken, candidate.columns), axis=1)
        # of a drift it may be the offset in it that explains
        if candidate.kind == 'sensor_drift' and not self._better(np.delete(columns, taken.shape[1], axis=1), columns):
            return None
        theta, covariance = self._equations.fit(columns)
        theta, covariance = theta[taken.shape[1]:], covariance[taken.shape[1]:, taken.shape[1]:]
        wording = self._word(candidate, theta, covariance)
        if not wording.possible or not (certain or self._matters(candidate.columns, theta)):
            return None
        return Fit(candidate, share, wording)

    def _better(self, first, second):
        """Whether the second explains more than the first, enough to be worth a word, and not by chance."""
        gain = self._equations.gain(first, second)
        return gain.low > 0.0 and gain.estimate > LEAST_GAIN

    def _matters(self, columns, theta):
        return bool((self._relative * self._equations.effect(columns, theta)).max() >= LEAST_EFFECT ** 2)

    def _word(self, candidate, theta, covariance):
        if candidate.kind == 'delay' and candidate.about in self._delays:
            seconds, error = self._delays[candidate.about]
            # of clocks that run apart all of the recording says another one than its beginning
            if abs(theta[0] - seconds) <= SAME_DELAY * np.sqrt(covariance[0, 0]):
                theta, covariance = np.array([seconds]), np.array([[error ** 2]])
        return word(candidate.kind, candidate.about, theta, covariance, corrections=self._corrections,
                    hydraulics=self._hydraulics, axis=candidate.axis, port=candidate.port)
