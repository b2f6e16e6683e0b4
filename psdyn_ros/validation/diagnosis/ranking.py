"""Which corrections explain a residual, and how they compare: alone, against each other, and one after the other."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..metrics.bootstrap import Interval
from .cause_messages import Wording, word
from .corrections import BORE, ENCODERS, FRICTION, GAIN_A, GAIN_B, OFFSET, PAYLOAD, PORTS, RATE, TILT, TIME

LEAST_SHARE = 0.05          # of the residual's squares that a cause must explain
LEAST_EFFECT = 2e-3         # rms of it over the range of the effort, on some actuator
EQUAL = 0.02                # by which a share with fewer columns may be smaller, where that may be chance
LEAST_GAIN = 0.005         # of the residual's squares by which one cause explains more than another
ALIKE = 0.9                 # correlation from which two causes may be taken for each other
MOST_NEXT = 2               # causes beside the first that are looked for in what it leaves


@dataclass(frozen=True)
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
             Candidate('center_of_mass', corrections.link, on(measured, *range(PAYLOAD.start + 1, PAYLOAD.start + 4))),
             Candidate('base_tilt', 'base', on(measured, *range(TILT.start, TILT.stop)))]
    found += [Candidate('encoder_offset', joint, on(measured, ENCODERS + k), k)
              for k, joint in corrections.encoders.items()]
    found += [Candidate('encoder_scale', joint, on(measured, corrections.scales + k), k)
              for k, joint in corrections.encoders.items()]
    found += [Candidate('delay', name, on(axes, RATE), axes[0]) for name, axes in topics.items()]
    found += [Candidate('exchanged', "' and '".join(corrections.actuators[axis] for axis in pair),
                        on(list(pair), corrections.first_pair + k), pair[0])
              for k, pair in enumerate(corrections.pairs)
              if known[list(pair)].all() and len(set(corrections.by_pressure[list(pair)])) == 1]
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


class Ranking:
    """Holds candidates against the `Equations` of a recording.

    relative  (actuators,) factor from a weighted sum of squares to a mean square over the square of the range
    """

    def __init__(self, equations, relative, corrections, hydraulics):
        self._equations, self._relative = equations, relative
        self._corrections, self._hydraulics = corrections, hydraulics

    def alone(self, candidate, certain=False):
        """Return the `Fit` of a candidate, None where it is no explanation; certain: it may be as small as it is."""
        return self._fit(candidate, np.zeros((len(candidate.columns), 0), dtype=int),
                         self._equations.share(candidate.columns), certain)

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
        return [other for other in others if other is not first
                and abs(self._equations.likeness(mine, other.candidate.columns)) > ALIKE
                and not self._better(other.candidate.columns, mine)]

    def further(self, first, others):
        """Return the `Fit`s that explain the most of what is left, one after the other; of shares of what is left.

        first   `Candidate` that is taken for granted
        others  `Candidate`s
        """
        found, taken, left = [], first.columns, [one for one in others if one is not first]
        while len(found) < MOST_NEXT:
            fits = [fit for candidate in left if (fit := self._fit(
                candidate, taken, self._equations.of_rest(taken, candidate.columns))) is not None]
            if not fits:
                break
            best = max(fits, key=lambda one: one.share.estimate)
            found.append(best)
            taken = np.concatenate((taken, best.candidate.columns), axis=1)
            left = [one for one in left if one is not best.candidate]
        return found

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
        return word(candidate.kind, candidate.about, theta, covariance, corrections=self._corrections,
                    hydraulics=self._hydraulics, axis=candidate.axis, port=candidate.port)
