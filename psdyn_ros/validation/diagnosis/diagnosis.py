"""What may be wrong where a model and a recording disagree: small corrections, ranked by what they would explain.

None of it is a fact.  A recording in which little moves cannot tell many of them from each other, and what is wrong
may be none of them.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..metrics.bootstrap import Interval, bootstrap
from ..metrics.figure import IDLE
from ..metrics.metrics import LEAST_RANGE, capacities, known_numbers
from ..signals.filters import SECOND_DERIVATIVE
from .cause_messages import CHECK_EFFORT, CHECK_NEXT, OF_EFFORT, briefly
from .contact import nothing, pushed
from .correction_fits import RESAMPLES, Equations
from .corrections import FORCE, PAYLOAD, RATE, Corrections
from .exact_columns import ExactColumns
from .hanging import HangingLoad, Rows
from .products import Products, triangle
from .ranking import EQUAL, LEAST_SHARE, Ranking, candidates
from .slip import COUNT as SLIP_COUNT
from .slip import slip_columns, slips

MAX_BINS = 512
FEWEST_BINS = 5
MAX_CAUSES, SHOWN_SHARE = 6, 5e-3    # share of the residual, less of which is shown as none
LAG = 0.1                   # s of second differences, in which noise is left and what causes do is not
FLOOR = 1e-3                # of the range of an effort: noise below it does not make its residual weigh more
LARGEST = 1e30              # from which a number is nonsense
SUMS = '_products', '_noise', '_rows', '_jumps', '_closure', '_slips'       # whose bins are merged
MARGIN = 0.2                # s around a frozen encoder that suffer from it


@dataclass(frozen=True)
class Cause:
    """Something that would explain a part of the residual.

    kind      'payload', 'center_of_mass', 'friction', 'area', 'bore', 'ports', 'exchanged', 'sensor_offset',
              'sensor_drift', 'delay', 'base_tilt', 'contact_force', 'hanging_load', 'slip_velocity',
              'frozen_encoder', 'encoder_offset' or 'encoder_scale'
    about     link, actuator, topic, joint or 'base'
    share     of the mean square residual that it would explain alone, on parts of the recording that it was not fitted
              to; between low and high with 95 % confidence.  Of actuators each counts by the noise of its effort.  Of a
              frozen encoder on which no effort depends, the share of the disagreement of redundant joints
    estimate  of how much is wrong, in `unit` (SI), and its standard error; NaN where there is none.  The first and
              those that explain what it leaves, which follow it, are fitted together
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

    @property
    def next(self):
        """What to check next, in one line."""
        known = CHECK_NEXT | CHECK_EFFORT if OF_EFFORT in self.text else CHECK_NEXT
        return known[self.kind].format(self.about, self.about)

    def as_dict(self):
        """For JSON: what is not known is None."""
        return {**known_numbers(self), 'next': self.next}


class _Known(NamedTuple):
    """What causes are looked for in."""

    products: Products
    noise: Products
    weights: np.ndarray     # (actuators,)
    relative: np.ndarray    # (actuators,) factor from a weighted sum of squares to a mean square over that of the range
    listed: list            # of `Candidate`s
    delays: dict            # {topic: `TopicDelay`}
    found: dict             # {topic: (s, standard error)} of the delay of a group
    frozen: list            # of `Cause`s


class _Explained(NamedTuple):
    """What explains a residual."""

    share: float            # of its squares
    leading: list           # of `Cause`s
    fits: list              # of all candidates alone
    ranking: Ranking
    chosen: list            # of `Fit`s of which the causes are, but those of a frozen encoder

    @property
    def taken(self):
        """[`Candidate`] of these."""
        return [one.candidate for one in self.chosen]


class Diagnosis:
    """Takes the blocks of a recording and their predictions, one after the other; memory does not grow.

    predictor  `Predictor` that makes the predictions
    channels   `Channels` of the recording, which know its topics; None: it has one of efforts and one of pressures

    text  what came of `causes` in words, or why there are none
    """

    def __init__(self, predictor, channels=None):
        self.corrections = Corrections(predictor)
        self._channels, self._hydraulics = channels, predictor.hydraulics
        self._actuators = self.corrections.actuators
        count, size = len(self._actuators), 1 + self.corrections.count
        # room for all bins: what none was written to takes no memory
        shape = MAX_BINS, count
        self._products = np.zeros((*shape, size * (size + 1) // 2))     # of the residual, the first, and all columns
        self._noise = np.zeros_like(self._products)         # likewise of their second differences
        self._rows = np.zeros(shape)
        self._jumps = np.zeros(shape)                       # second differences
        self._closure = np.zeros(MAX_BINS)                  # sum of squares of the disagreement of redundant joints
        self._slips = np.zeros((*shape, (1 + SLIP_COUNT) * (2 + SLIP_COUNT) // 2))  # of a residual, `slip_columns`
        self._range = np.tile([[np.inf], [-np.inf]], count)
        self._capacity = capacities(predictor.manipulator, predictor.hydraulics)
        self.width, self.text = 1.0, ''
        self._power = None                                  # of noise in a second difference, over its own
        self._begin = None                                  # s, of the first bin
        self._hanging = HangingLoad(self.corrections.link, predictor.manipulator.gravity)

    def add(self, block, prediction):
        """Take a `Block` and its `Prediction`, whose core rows count; None where there is none."""
        if prediction is None:
            return
        rows, e, columns = self.corrections(block, prediction)
        if not len(rows):
            return
        with np.errstate(invalid='ignore'):
            sound = np.abs(columns) < LARGEST
            known = (np.abs(e) < LARGEST) & sound.all(axis=-1)
        e[~known] = 0.0
        columns[~sound] = 0.0
        if not self.corrections.predictor.manipulator.passive_joints:       # else a load swings in the model, too
            self._hanging.add(Rows(prediction.t[rows], e, columns[..., PAYLOAD], columns[..., FORCE]))
        effort = np.where(known, prediction.effort[rows], np.nan)
        self._range[0] = np.fmin(self._range[0], np.fmin.reduce(effort))
        self._range[1] = np.fmax(self._range[1], np.fmax.reduce(effort))
        every = int(rows[1] - rows[0]) if len(rows) > 1 else 1
        lag = max(round(LAG / (every * prediction.period)), 1)
        if self._power is None:
            order = SECOND_DERIVATIVE if block.xd is None else 1
            self._power = second_difference_power(self.corrections.predictor.filter, order, every * lag)
        closure = prediction.residual[rows]
        closure = np.where(closure < LARGEST, closure, 0.0) ** 2
        if self._begin is None:
            self._begin = float(prediction.t[rows[0]])
        bins = self._bins(prediction.t[rows] - self._begin)
        np.add.at(self._rows, bins, known)
        np.add.at(self._closure, bins, closure)
        slip_e, slip = slip_columns(self.corrections.predictor, prediction, rows)
        # one actuator after the other: columns are many
        for axis in range(len(self._actuators)):
            joined = np.column_stack((e[:, axis], columns[:, axis]))
            joined[~known[:, axis]] = np.nan
            apart = _second_differences(joined, lag)
            there = np.isfinite(apart).all(axis=1)
            joined[~known[:, axis]] = 0.0
            apart[~there] = 0.0
            np.add.at(self._jumps[:, axis], bins, there)
            slow = np.column_stack((slip_e[:, axis], slip[:, axis]))
            for place, first, last in _runs(bins):
                for sums, values in ((self._products, joined), (self._noise, apart), (self._slips, slow)):
                    sums[place, axis] += triangle(values[first:last].T @ values[first:last])

    def _bins(self, t):
        """(n,) bins of instants (n,) s since the first; makes pairs of bins one where there are too many."""
        while t[-1] / self.width >= MAX_BINS:
            for sums in (getattr(self, name) for name in SUMS):
                # in place, one after the other: they are large
                for k in range(MAX_BINS // 2):
                    sums[k] = sums[2 * k] + sums[2 * k + 1]
                sums[MAX_BINS // 2:] = 0.0
            self.width *= 2.0
        return np.maximum((t / self.width).astype(np.int64), 0)

    def causes(self, quality=None, delays=None):
        """Return the `Cause`s that are more than chance, the likeliest first.

        quality  `Quality` of the recording, which knows frozen encoders, or None
        delays   {topic: `TopicDelay`} that were taken off the blocks; they count as a cause
        """
        used = np.flatnonzero(self._rows.any(axis=1))
        if len(used) < FEWEST_BINS:
            self.text = 'too little is known of the efforts to say what may be wrong'
            return ()
        delays = delays or {}
        scale = self._scale()
        weights = self._weights(scale)
        # what rows have of noise, by those of which there are second differences
        share = np.divide(self._rows[used], self._power * self._jumps[used], out=np.zeros_like(self._jumps[used]),
                          where=self._jumps[used] > 0.0)
        products, noise = (self._before(Products(sums, used), delays) for sums in (self._products, self._noise))
        # from a weighted sum of squares to a mean square over the square of the range
        size = weights * np.maximum(self._rows.sum(axis=0), 1.0) * scale ** 2
        relative = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0)
        groups = self._groups()
        known = _Known(products, noise.times(share), weights, relative,
                       candidates(self.corrections, self._rows.any(axis=0), self._in_use(groups, scale)), delays,
                       self._known(groups, delays),
                       self._frozen(quality, products.squares(0) @ weights, used))
        found = self._explained(known, self._begin + used * self.width)
        share, leading, taken, fits = found.share, found.leading, found.taken, found.fits
        for fit in (self._hanging.fit(weights, scale),
                    *slips(self.corrections, Products(self._slips, used), weights, scale, self.width)):
            if fit and fit.share.estimate > share:
                share, leading, taken = fit.share.estimate, [_cause(fit)], ()
        others = [_cause(fit) for fit in fits if fit.candidate not in taken]
        others += [cause for cause in known.frozen if cause not in leading]
        found = [cause for cause in (*leading, *sorted(others, key=lambda cause: -cause.share))
                 if cause.share >= SHOWN_SHARE][:MAX_CAUSES]
        self.text = (f'likeliest of what was looked for: {found[0].text}' if found else
                     'nothing that was looked for would explain more of the residual than noise does')
        return tuple(found)

    def _explained(self, known, begins):
        """`_Explained` by what is wrong all the time, and by a force for a while where that explains more.

        begins  (bins,) s since the start of the bag
        """
        best, sums = self._always(known), (known.products, known.noise, known.weights, self.width)

        def push(beside, partly=True):
            equations, others = Equations(*sums), nothing(len(known.weights))
            if beside.taken:
                equations, found, others = beside.ranking.fitted(beside.taken)
                if partly:
                    equations = ExactColumns(self.corrections, *sums).equations(found)
            return pushed(self.corrections, equations, others, self.width, begins, _excess, known.relative)
        total = float((known.products.squares(0) @ known.weights).sum())
        tried = []
        for start in (best._replace(chosen=[]), best):
            found = push(start, partly=False)
            while found and not any((found.within == one).all() for one in tried):
                tried.append(found.within)
                rest = self._always(known, found)
                found = push(rest)
                if found and 1.0 - (found.left - found.gain) / total > best.share + LEAST_SHARE * (1.0 - best.share):
                    best = self._beside(rest, found, total)
        return best

    def _always(self, known, push=None):
        """`_Explained` by what is wrong all the time, of what was recorded without a `Push`."""
        sums = known.products, known.noise
        if push:
            sums = tuple(one.times(~push.near[:, None]) for one in sums)
        ranking = Ranking(ExactColumns(self.corrections, *sums, known.weights, self.width), known.relative,
                          self.corrections, self._hydraulics, known.found)
        fits = [fit for fit in (ranking.alone(one, one.about in known.delays) for one in known.listed)
                if fit is not None]
        first = ranking.simplest(fits)
        if first is None or any(cause.share >= first.share.estimate - EQUAL for cause in known.frozen):
            leading, chosen = list(known.frozen), []
        else:
            chosen = ranking.together(first, known.listed)
            leading = _together(ranking, chosen, fits)
        share = max([ranking.explained([one.candidate for one in chosen]), *(cause.share for cause in leading)])
        return _Explained(share, leading, fits, ranking, chosen)

    def _beside(self, rest, push, total):
        """`_Explained` by a `Push`, and by what was found beside it; total: squares of the residual."""
        fit, chosen = push.fit, rest.chosen
        if push.gain > total - push.left:
            chosen = [fit._replace(share=_times(fit.share, push.left / total)), *chosen]
        else:
            chosen = [chosen[0]._replace(share=_times(chosen[0].share, 1.0 - push.gain / total)), *chosen[1:], fit]
        return rest._replace(share=1.0 - (push.left - push.gain) / total, leading=_together(rest.ranking, chosen, ()),
                             chosen=chosen)

    def _scale(self):
        """(actuators,) range of the measured efforts, at least 5 % of what they can give."""
        span = np.maximum(self._range[1] - self._range[0], 0.0)
        return np.fmax(span, LEAST_RANGE * np.where(np.isfinite(self._capacity), self._capacity, 0.0))

    def _weights(self, scale):
        """(actuators,) 1 / (mean square of the noise in the residual), by what changes within `LAG`; 0 of none."""
        count, squares = self._jumps, self._noise[..., 0]
        noise = np.zeros(len(scale))
        for axis in np.flatnonzero(count.any(axis=0)):
            there = count[:, axis] > 0.0
            # in most bins nothing happens but noise
            noise[axis] = np.median(squares[there, axis] / count[there, axis]) / self._power
        noise = np.maximum(noise, (FLOOR * scale) ** 2)
        return np.divide(1.0, noise, out=np.zeros_like(noise), where=noise > 0.0)

    def _before(self, products, delays):
        """`Products` with the residual as it was before delays were taken off."""
        late = np.zeros((len(self._actuators), 1, 1))
        for axis in range(len(late)):
            taken = [delays[topic].taken for topic in self._topics(axis) if topic in delays]
            if taken:
                late[axis] = np.mean(taken)
        # the column of the delay is - rate, which is what being late by 1 s adds, to first order
        return products.added([0], [1 + RATE], late)

    def _topics(self, axis):
        """Topics that the effort of an actuator is measured by."""
        by_pressure = self.corrections.by_pressure[axis]
        if self._channels is None:
            return ('pressures' if by_pressure else 'efforts',)
        if not by_pressure:
            return (self._channels.efforts,)
        ports = tuple(topic for (name, _), topic in self._channels.ports.items() if name == self._actuators[axis])
        return ports or (self._channels.telemetry,)

    def _groups(self):
        """{topic: numbers of the actuators whose efforts it says}, and those of all ports together."""
        groups = {}
        for axis in np.flatnonzero(self._rows.any(axis=0)).tolist():
            groups.setdefault(self._topics(axis), []).append(axis)
        found = {topics[0]: axes for topics, axes in groups.items()}
        of_ports = [axes for topics, axes in groups.items() if len(topics) > 1]
        if len(of_ports) > 1:
            found['chamber pressures'] = [axis for axes in of_ports for axis in axes]
        return found

    def _in_use(self, groups, scale):
        """Those groups of which an actuator does enough for delays to be seen: else its rates are made of noise."""
        span = self._range[1] - self._range[0]
        return {topic: axes for topic, axes in groups.items() if (span[axes] >= IDLE * scale[axes]).any()}

    def _known(self, groups, delays):
        """{topic: (s, standard error)} of groups of actuators that one delay was taken off of."""
        taken = {name: {delays.get(topic) and (delays[topic].taken, delays[topic].error)
                        for axis in axes for topic in self._topics(axis)} for name, axes in groups.items()}
        return {name: one for name, (one, *others) in taken.items() if one and not others}

    def _frozen(self, quality, squares, used):
        """`Cause`s of encoders that were frozen; squares (bins,) of the residual in the bins used."""
        found, begins = [], self._begin + used * self.width
        for name, signal in quality.signals.items() if quality is not None else ():
            joint, _, what = name.rpartition('.')
            spans = signal.frozen if what == 'position' else ()
            within = np.any([(begins < span.end + MARGIN) & (begins + self.width > span.start - MARGIN)
                             for span in spans], axis=0)
            if not spans or not within.any() or within.all():
                continue
            # a joint that is redundant is seen where it disagrees, and not in the efforts
            shares = [(share, of) for sums, of in ((squares, 'the residual'),
                                                   (self._closure[used], 'the disagreement of redundant joints'))
                      if (share := _excess(sums, within)).estimate >= LEAST_SHARE and share.low > 0.0]
            if shares:
                seconds = sum(span.end - span.start for span in spans)
                explained = ' and '.join(f'{_percent(share)} of {of}' for share, of in shares)
                found.append(Cause('frozen_encoder', joint, *shares[0][0], seconds, math.nan, 's',
                                   f"an encoder of '{joint}' that is frozen for {seconds:.3g} s would explain "
                                   f'{explained}'))
        return sorted(found, key=lambda cause: -cause.share)


def _excess(squares, within):
    """`Interval` of the share of squares (bins,) that some bins (bins,) have above what is usual in the others."""
    total, count = squares[within].sum(), int(within.sum())
    if not total:
        return Interval(0.0, 0.0, 0.0)
    others = squares[~within]

    def share(totals):
        usual = totals[..., 1] / totals[..., 0]
        return (total - count * usual) / (total + len(others) * usual)
    # what is frozen is no sample of anything; how large the residual is otherwise, is
    return bootstrap(np.column_stack((np.ones(len(others)), others)), share, block=1, resamples=RESAMPLES)


def second_difference_power(smooth, order, lag):
    """Return the mean square of e(t + lag) - 2 e(t) + e(t - lag) over that of e, of accelerations e from white noise.

    smooth  filter that they come from, as a derivative of `order`
    lag     in samples

    Noise of accelerations outweighs all other in the efforts of a heavy machine.  It is alike as far as the filter
    reaches, and half a window apart it has the other sign: 6 times its power, as of white noise, would be too little.
    """
    impulse = np.zeros(2 * (smooth.half + lag) + 1 + 2 * smooth.half)
    impulse[len(impulse) // 2] = 1.0
    response = smooth(impulse, order)
    alike = [float(response[k:] @ response[:len(response) - k]) for k in (0, lag, 2 * lag)]
    return (6.0 * alike[0] - 8.0 * alike[1] + 2.0 * alike[2]) / alike[0]


def _runs(bins):
    """Yield (bin, first row, row after the last) of ascending bins (n,) of rows."""
    starts = np.flatnonzero(np.diff(bins, prepend=-1)).tolist()
    for first, last in zip(starts, [*starts[1:], len(bins)]):
        yield bins[first], first, last


def _second_differences(e, lag):
    """(n, ...) of rows in a row, `lag` rows apart; NaN at either end."""
    out = np.full_like(e, np.nan)
    out[lag:-lag] = e[2 * lag:] - 2.0 * e[lag:-lag] + e[:-2 * lag]
    return out


def _times(share, factor):
    return Interval(*(factor * part for part in share))


def _together(ranking, chosen, fits):
    """[`Cause`] of `Fit`s: of what comes first and of what explains what it leaves."""
    first, *further = chosen
    causes = [_cause(first, ranking.like(first, fits), further)]
    for one in further:
        alone = one if one.candidate.kind == 'contact_force' else one._replace(share=ranking.share(one.candidate))
        causes.append(replace(_cause(alone), text=f'{one.wording.text} would explain {_percent(one.share)} of what is '
                              'left with what comes first'))
    return causes


def _cause(fit, alike=(), further=()):
    """The `Cause` of a `Fit`; of the first, also those that look alike, and those that explain what it leaves."""
    wording = fit.wording
    text = f'{wording.text} would explain {_percent(fit.share)} of the residual'
    if alike:
        others = list(dict.fromkeys(briefly(one.candidate.kind, one.candidate.about) for one in alike))
        text += f'; this recording does not tell it from {" or ".join(others)}'
    for one in further:
        text += f'; with that, {one.wording.text} would explain {_percent(one.share)} of what is left'
    return Cause(fit.candidate.kind, fit.candidate.about, fit.share.estimate, fit.share.low, fit.share.high,
                 wording.estimate, wording.error, wording.unit, text)


def _percent(share):
    return f'{share.estimate:.0%} ({max(share.low, 0.0):.0%} to {min(share.high, 1.0):.0%})'
