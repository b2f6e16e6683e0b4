"""By how much topics of efforts come later than the states: found before a recording is judged, and taken off.

The efforts that a motion needs follow from the states by the model; a topic of pressures or efforts that is late by tau
gives them shifted.  So tau is the shift at which the model explains what was measured best.  What the model may have
wrong - payload, friction, one area of a cylinder, offsets and drift of sensors, a tilted base - is fitted along with
it, freely for each actuator, since an error of friction looks like a delay where a machine moves slowly.

Only a part of the recording is read, up to where there was enough motion; what is kept of it does not grow.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.ndimage import maximum_filter1d
from scipy.special import ndtri

from ..bags.recording import BagError
from ..metrics.metrics import known_numbers
from ..metrics.prediction import Predictor
from ..signals.blocks import blocks
from ..signals.filters import SavitzkyGolay, merged_rates
from .corrections import GAIN_B, OFFSET, PAYLOAD, TILT, TIME, Corrections
from .delay_equations import Normal, Sums
from .whitening import Whitening

MOST = 0.5                  # s, the largest delay that is looked for, either way
COARSE = 0.02               # s from one shift to the next, while looking for the best
STEPS = 8                   # of Gauss and Newton from there
SETTLED = 1e-6              # s
ROWS = 4096                 # of a block
WINDOW = 0.3                # s of the filter
STRETCH = 2.0               # s that are alike
MOVING = 5e-3               # m/s or rad/s that some actuator reaches in a stretch that says something
ENOUGH = 90.0               # s of such stretches
FURTHEST = 600.0            # s of recording that are looked at
FEWEST = 5                  # stretches for any answer
LEVEL = 0.95
OWN_LEVEL = 0.99            # for a topic to have another delay than its group: that is rare
SURE = 3e-3                 # s, half the width of the interval of a delay that is certain
LEAST = 0.1                 # periods of the states below which a delay is not worth taking off
LEAST_CORRELATION = 0.7     # of measured and explained efforts
LEAST_DRIFT = 3e-5          # s/s, of clocks that nobody synchronises; below it no recording of minutes suffers
SIGNS = 2.0                 # half widths from zero for a delay not to be chance
DRIFT_SIGNS = 1.75          # likewise for a drift, of which nothing is taken off
RIVAL = 1.05                # residual at the next best shift / at the best, both mean square, for one to be certain
APART = 0.06                # s from the best at which another is no longer the same
NEGLIGIBLE = 1e-9           # of the largest singular value
LEAST_OWN = 0.2             # of what one area beside the other does, that does not follow the force
DIFFERENT = 2e-3            # s by which a topic of a group must differ from it, to have a delay of its own
FLOOR = 5e-5                # s, half the width of an interval without noise: what friction of the model lacks
TURNING_FLOOR = 2e-3        # s, likewise, where reversals count: seals give way before they slide


@dataclass(frozen=True)
class TopicDelay:
    """By how much a topic comes later than the states.

    seconds      NaN where that is not known
    low, high    between which it lies with 95 % confidence, by how stretches of the recording agree
    correlation  of what was measured and what the model explains of it at that delay
    stretches    of 2 s that it was found from
    certain      whether it is known, be it that there is none
    taken        s that were taken off: `seconds` where it is certain and worth it, else 0
    reason       why nothing was taken off; '' where something was
    drift        s/s by which it grows, about the middle of what was looked at: clocks run apart; NaN where unknown
    drift_width  half the width of the interval of that with 95 % confidence
    """

    seconds: float
    low: float
    high: float
    correlation: float
    stretches: int
    certain: bool
    taken: float
    reason: str
    drift: float = math.nan
    drift_width: float = math.nan

    @property
    def error(self):
        """Standard error [s], of which the interval is one of the normal distribution."""
        return 0.5 * (self.high - self.low) / float(ndtri(0.5 * (1.0 + LEVEL)))

    @property
    def drifts(self):
        """Whether the delay grows or shrinks for certain, by more than clocks of computers do."""
        return abs(self.drift) > max(DRIFT_SIGNS * self.drift_width, LEAST_DRIFT)

    @property
    def text(self):
        """In words."""
        if not math.isfinite(self.seconds):
            return f'not known: {self.reason}'
        between = (f'{1e3 * self.seconds:.2f} ms ({1e3 * self.low:.2f} to {1e3 * self.high:.2f} ms) later than the '
                   'states')
        said = f'{between}, taken off' if self.taken else f'{between}, not taken off: {self.reason}'
        return f'{said}; {self.drift_text}, and what is taken off is right in the middle only' if self.drifts else said

    @property
    def drift_text(self):
        """How fast the clocks of the topic and of the states run apart, in words."""
        return (f'the delay changes by {1e6 * self.drift:.0f} +- {1e6 * self.drift_width:.0f} us/s: the clocks of the '
                'efforts and of the states run apart')

    def as_dict(self):
        """For JSON: what is not known is None."""
        return known_numbers(self)


def topic_delays(source, channels, predictor, delays=None):
    """Return {topic: `TopicDelay`} of the topics of a `BagSource` that efforts are measured by.

    channels   `Channels` of the bag
    predictor  `Predictor` that the recording is judged with
    delays     {topic: s} known otherwise, which are taken off and not looked for

    Efforts of the topic of the states share their stamps, so there is nothing to look for.
    """
    known = dict(delays or {})
    looked_for = [topic for topic in _topics(channels, predictor)
                  if topic not in known and topic not in channels.states]
    if not looked_for:
        return {}
    evidence = _Evidence(channels, predictor, looked_for)
    try:
        for block in blocks(source, channels, predictor.manipulator, predictor.hydraulics, rows=ROWS,
                            overlap_s=MOST + WINDOW, delays=known):
            evidence.add(block)
            if evidence.seconds >= ENOUGH or block.t[-1] >= FURTHEST:
                break
    except BagError:
        # the pass over all of it says why
        return {}
    return evidence.delays(channels.period)


def delay_of(delays, channels, actuator):
    """The largest `TopicDelay` of the topics that the effort of an actuator is measured by; None where none is known.

    delays  as `topic_delays` returns them
    """
    topics = [topic for (name, _), topic in channels.ports.items() if name == actuator]
    labels = channels.labels.get(channels.telemetry, ())
    if not topics and labels and actuator in labels[0].split(','):
        topics = [channels.telemetry]
    found = [delays[topic] for topic in topics or [channels.efforts] if topic in delays]
    return max(found, key=lambda delay: np.nan_to_num(abs(delay.seconds), nan=-1.0), default=None)


def _topics(channels, predictor):
    found = [channels.efforts] if channels.efforts else []
    if predictor.hydraulics:
        found += [channels.telemetry, *channels.ports.values()]
    return tuple(dict.fromkeys(topic for topic in found if topic))


class _Piece:
    """Instants of one actuator in a block.

    t        (n,) s
    number   (n,) of the stretch
    target   (n,) effort that the model needs
    columns  (n, k) of what may be wrong, areas the last
    signals  {topic: function of t and order of the derivative}: what it contributes to the measured effort
    """

    def __init__(self, t, target, columns, signals):
        self.t, self.target, self.columns, self.signals = t, target, columns, signals
        self.number = np.floor(t / STRETCH).astype(np.int64)


class _Evidence:
    """What some blocks say of delays."""

    def __init__(self, channels, predictor, topics):
        self._channels, self._topics = channels, topics
        # its own: what it skips is none of the pass over everything, and noise counts for more than fast changes
        self._predictor = Predictor(predictor.manipulator, predictor.hydraulics,
                                    SavitzkyGolay(channels.period, WINDOW), predictor.bounds)
        self._corrections = Corrections(self._predictor)
        self._actuators = self._corrections.actuators
        self._cylinders = tuple(predictor.hydraulics.cylinders.items()) if predictor.hydraulics else ()
        # without instants near reversals, and with them
        self._clear, self._whole = ([[] for _ in self._actuators] for _ in range(2))
        self._stretches = set()

    @property
    def seconds(self):
        """s of motion so far."""
        return STRETCH * len(self._stretches)

    def add(self, block):
        """Take a `Block`."""
        if block.xd is not None:
            block = replace(block, xd=merged_rates(block.x, block.xd, block.period))
        prediction = self._predictor.predict(block)
        if prediction is None:
            return
        rows, _, columns = self._corrections(block, prediction)
        # a shift must not reach beyond the block
        half = self._predictor.filter.half
        reach = round(MOST / block.period) + half
        inner = (rows >= reach) & (rows < len(block.t) - reach)
        number = np.floor(prediction.t[rows] / STRETCH).astype(np.int64)
        fast = np.abs(prediction.v[rows]).max(axis=1) >= MOVING
        moving = inner & np.isin(number, number[fast & inner])
        if not moving.any():
            return
        self._stretches.update(number[moving].tolist())
        unclear = prediction.near_stop | self._predictor.turning(prediction)
        for axis in range(len(self._actuators)):
            parts = self._parts(block, axis)
            if not set(parts) & set(self._topics):
                continue
            unknown = np.any([~np.isfinite(values) for values in parts.values()], axis=0)
            # what is bridged is not compared
            near = maximum_filter1d(unknown, 2 * (half + round(APART / block.period)) + 1)
            signals = None
            for pieces, masked in ((self._clear, unclear), (self._whole, prediction.near_stop)):
                chosen = moving & ~near[rows] & ~masked[rows, axis]
                if not chosen.any():
                    continue
                if signals is None:
                    whole = slice(half, len(block.t) - half)
                    signals = {topic: CubicSpline(block.t[whole], self._smooth(values)[whole])
                               for topic, values in parts.items()}
                used, own = rows[chosen], columns[chosen, axis]
                target = prediction.effort_id[used, axis]
                # one area beside the other: A + B, with A by the model, since its own noise would hold delays at none
                areas = (target - 2.0 * own[:, GAIN_B]) * self._corrections.by_pressure[axis]
                wrong = np.column_stack((own[:, OFFSET], own[:, TIME], own[:, PAYLOAD], own[:, TILT],
                                         prediction.friction[used, axis], prediction.v[used, axis], areas))
                pieces[axis].append(_Piece(prediction.t[used], target, wrong, signals))

    def _smooth(self, values):
        """(N,) filtered, gaps bridged."""
        rows, known = np.arange(len(values)), np.isfinite(values)
        return self._predictor.filter(np.interp(rows, rows[known], values[known]))

    def _parts(self, block, axis):
        """{topic: (N,)}: what the topics say of the effort of an actuator, NaN where they say nothing."""
        parts = {}
        name = self._actuators[axis]
        for row, (cylinder, one) in enumerate(self._cylinders):
            if cylinder == name and block.pressures is not None and np.isfinite(block.pressures[:, row]).any():
                for column, (port, area) in enumerate((('a', one.area_a), ('b', -one.area_b))):
                    topic = self._channels.ports.get((name, port), self._channels.telemetry)
                    parts[topic] = parts.get(topic, 0.0) + area * block.pressures[:, row, column]
        if not parts:
            parts = {self._channels.efforts: block.effort[:, axis]}
        return parts

    def delays(self, period):
        """{topic: `TopicDelay`}.

        Friction near a reversal is not what the model says. Where too little is left without it, it counts, and the
        interval is as wide as it may shift a delay.
        """
        found = self._searched(self._clear, period, FLOOR)
        if not all(one.certain for one in found.values()):
            whole = self._searched(self._whole, period, TURNING_FLOOR)
            found = {topic: one if one.certain else whole[topic] for topic, one in found.items()}
        return found

    def _searched(self, pieces, period, floor):
        fits = [_Fit(of_axis) for of_axis in pieces if of_axis]
        topics = [topic for topic in self._topics if any(topic in fit.topics for fit in fits)]
        nothing = TopicDelay(*(math.nan,) * 4, 0, False, 0.0, 'nothing moves where it is known')
        return {**dict.fromkeys(self._topics, nothing),
                **(_Search(fits, topics, floor).delays(period) if topics else {})}


class _Fit:
    """One actuator: what the model and its corrections leave of the measured effort, at delays of its topics.

    whiten  `Whitening` of the rows that are fitted; None: they count as they are
    """

    def __init__(self, pieces, whiten=None):
        self._pieces, self._whiten = pieces, whiten or (lambda values: values)
        self.topics = tuple(dict.fromkeys(topic for piece in pieces for topic in piece.signals))
        columns = np.vstack([piece.columns for piece in pieces])
        # a pressure that follows the force would explain any delay
        effort = np.column_stack((np.ones(len(columns)), self.measured({})))
        own = columns[:, -1] - effort @ np.linalg.lstsq(effort, columns[:, -1])[0]
        columns[:, -1] *= own.std() >= LEAST_OWN * columns[:, -1].std()
        columns = self._whiten(columns)
        scale = np.linalg.norm(columns, axis=0)
        u, s, _ = np.linalg.svd(columns[:, scale > 0.0] / scale[scale > 0.0], full_matrices=False)
        self._basis = u[:, s > NEGLIGIBLE * s[0]]
        plain = np.column_stack((np.ones(len(columns)), np.concatenate([piece.t for piece in pieces])))
        self._plain, _ = np.linalg.qr(plain)
        self.t = plain[:, [1]]
        self._target = np.concatenate([piece.target for piece in pieces])
        self.number = np.concatenate([piece.number for piece in pieces])

    def whitened(self, delays):
        """The `_Fit` in which what is left at delays of topics {topic: s} is white."""
        return _Fit(self._pieces, Whitening(self.t[:, 0], self.number, self.left(delays)))

    def measured(self, delays):
        """(n,) effort, of topics {topic: s} late."""
        return sum(self._sampled(topic, delays.get(topic, 0.0), 0) for topic in self.topics)

    def left(self, delays):
        """(n,) residual."""
        return self._rest(self._excess(delays))

    def sums(self, topics, delays, middle):
        """The `Sums` at delays of some topics; drifts are about `middle` [s]."""
        since = self.t - middle
        excess, nothing = self._excess(delays), np.zeros(len(self.number))
        left = self._rest(excess)[:, None]
        slopes, curves = (np.column_stack([self._sampled(topic, delays[topic], order) if topic in self.topics
                                           else nothing for topic in topics]) for order in (1, 2))
        # the second term takes off what noise of the signals adds to the squares of their slopes
        curves = [self._whiten(since ** power * curves) * left for power in range(3)]
        rows = np.column_stack((self._basis, excess, self._whiten(slopes), self._whiten(since * slopes)))
        by_stretch, first = {}, rows.shape[1] - 2 * len(topics)
        for number in np.unique(self.number).tolist():
            here = self.number == number
            by_stretch[number] = rows[here].T @ rows[here]
            bends = [np.diag(curve[here].sum(axis=0)) for curve in curves]
            by_stretch[number][first:, first:] += np.block([bends[:2], bends[1:]])
        return Sums(1.0 / max(float(np.mean(left ** 2)), 1e-300), self._basis.shape[1], by_stretch)

    def varied(self, delays):
        """Sum of squares of the measured effort about a line."""
        effort = self.measured(delays)
        effort = effort - self._plain @ (self._plain.T @ effort)
        return float(effort @ effort)

    def _sampled(self, topic, delay, order):
        return np.concatenate([piece.signals[topic](piece.t + delay, order) for piece in self._pieces])

    def _excess(self, delays):
        return self._whiten(self.measured(delays) - self._target)

    def _rest(self, values):
        return values - self._basis @ (self._basis.T @ values)


class _Search:
    """Delays that leave the least residual over all actuators, each weighed by what is left of it at best, and whitened
    once the best is nearly known.

    floor  s, half the width of an interval without noise
    """

    def __init__(self, fits, topics, floor):
        self._fits, self._topics, self._floor = fits, topics, floor
        self._white = fits
        self._middle = float(np.mean([fit.t.mean() for fit in fits]))

    def delays(self, period):
        """{topic: `TopicDelay`}."""
        found, profiles = self._coarse()
        # a delay that is left looks like noise that is alike for long
        nearly, _ = self._refined(found, _together(found))
        self._white = [fit.whitened(nearly) for fit in self._fits]
        at, widths, stretches, drifts = self._grouped(found)
        out = {}
        for topic in self._topics:
            concerned = [fit for fit in self._fits if topic in fit.topics]
            left = sum(float(np.sum(fit.left(at) ** 2)) / max(fit.varied(at), 1e-300) for fit in concerned)
            correlation = math.sqrt(max(1.0 - left / len(concerned), 0.0))
            seconds, width = at[topic], widths[topic]
            doubt = _doubt(width, correlation, stretches, _rival(*profiles[topic], seconds))
            if doubt:
                out[topic] = TopicDelay(math.nan, math.nan, math.nan, correlation, stretches, False, 0.0, doubt)
                continue
            nothing = abs(seconds) <= max(SIGNS * width, LEAST * period)
            reason = 'it may as well be none' if nothing else ''
            out[topic] = TopicDelay(seconds, seconds - width, seconds + width, correlation, stretches, True,
                                    0.0 if nothing else seconds, reason, *drifts[topic])
        return out

    def _coarse(self):
        """({topic: s}, {topic: (shifts, cost)}): all topics together, then each for itself."""
        shifts = np.arange(-MOST + COARSE, MOST - COARSE / 2, COARSE)
        cost = np.array([self._cost(dict.fromkeys(self._topics, shift)) for shift in shifts])
        found = dict.fromkeys(self._topics, float(shifts[np.argmin(cost)]))
        profiles = dict.fromkeys(self._topics, (shifts, cost))
        if len(self._topics) > 1:
            for topic in self._topics:
                cost = np.array([self._cost({**found, topic: shift}, topic) for shift in shifts])
                profiles[topic] = shifts, cost
                # one of its own only where that leaves clearly less
                if cost[np.searchsorted(shifts, found[topic])] - cost.min() > math.log(RIVAL):
                    found[topic] = float(shifts[np.argmin(cost)])
        return found, profiles

    def _cost(self, delays, topic=None):
        """Mean of the logarithms of the mean square residuals."""
        logarithms = [math.log(max(float(np.mean(fit.left(delays) ** 2)), 1e-300))
                      for fit in self._fits if topic is None or topic in fit.topics]
        return sum(logarithms) / len(logarithms)

    def _grouped(self, found):
        """({topic: s}, {topic: half the width of its interval}, stretches, {topic: (drift, half the width of its
        interval)}) of topics in groups of one delay each.

        Topics of one driver are late together, and one of two ports alone may say little: a topic has a delay of its
        own where it is another one than that of its group with confidence.
        """
        groups = _together(found)
        at, normal = self._refined(found, groups)
        while (like := self._like_first(groups, at, normal)) is not None:
            # the next best shift of what says little is no delay of its own
            found = {**found, **dict.fromkeys(like, found[groups[0][0]])}
            groups = [[*groups[0], *like], *(group for group in groups[1:] if group is not like)]
            at, normal = self._refined(found, groups)
        while (apart := self._apart(groups, normal)) is not None:
            groups = [[topic for topic in group if topic != apart] for group in groups] + [[apart]]
            at, normal = self._refined(found, groups)
        members = _membership(self._topics, groups)
        widths = normal.widths(members, LEVEL)
        wide = {topic: math.hypot(width, self._floor) for group, width in zip(groups, widths) for topic in group}
        both = np.kron(np.eye(2), members)
        drifts = [one[len(groups):].tolist() for one in (normal.step(both), normal.widths(both, LEVEL))]
        return at, wide, len(normal.numbers), {topic: pair for group, *pair in zip(groups, *drifts) for topic in group}

    def _like_first(self, groups, at, normal):
        """Of all groups but the first, one that does not differ from it with confidence; None of none."""
        first, *others = groups
        widths = normal.widths(_membership(self._topics, groups), self._each())
        for group, width in zip(others, widths[1:]):
            if not abs(at[group[0]] - at[first[0]]) > math.hypot(width, widths[0]):
                return group
        return None

    def _each(self):
        """Level of the interval of each topic with which all of them are right as often as OWN_LEVEL says."""
        return 1.0 - (1.0 - OWN_LEVEL) / len(self._topics)

    def _apart(self, groups, normal):
        """The topic that differs most from its group with confidence, None of none."""
        worst, most = None, 1.0
        level = self._each()
        for group in groups:
            for topic in group if len(group) > 1 else ():
                members = _membership(self._topics, [*groups, [topic]])
                step, width = normal.step(members)[-1], normal.widths(members, level)[-1]
                if abs(step) > max(most * width, DIFFERENT):
                    worst, most = topic, abs(step) / width
        return worst

    def _refined(self, found, groups):
        """({topic: s}, `Normal` there) with one delay for each group, by Newton's method."""
        at, members = dict(found), _membership(self._topics, groups)
        for _ in range(STEPS):
            normal = self._normal(at)
            step = members @ normal.step(members)
            # no further than to the next shift that was looked at
            at = {topic: float(np.clip(at[topic] + one, found[topic] - COARSE, found[topic] + COARSE))
                  for topic, one in zip(self._topics, step)}
            if np.abs(step).max() < SETTLED:
                break
        return at, self._normal(at)

    def _normal(self, at):
        """The `Normal` equations at {topic: s}."""
        return Normal([fit.sums(self._topics, at, self._middle) for fit in self._white])


def _together(found):
    """[[topic]] of those at the same shift of {topic: s}, the largest group first."""
    groups = {}
    for topic, shift in found.items():
        groups.setdefault(shift, []).append(topic)
    return sorted(groups.values(), key=len, reverse=True)


def _membership(topics, groups):
    """(topics, groups) 1 where a topic is in a group; in several it is one of the last that differs from them."""
    return np.array([[float(topic in group) for group in groups] for topic in topics])


def _rival(shifts, cost, at):
    """Mean square residual at the best shift that is another one, over that at the best."""
    far = np.abs(shifts - at) >= APART
    return math.exp(cost[far].min() - cost.min()) if far.any() else math.inf


def _doubt(width, correlation, stretches, rival):
    """Why a delay is not certain, '' where it is; then its interval says nothing either."""
    if correlation < LEAST_CORRELATION:
        return f'the model explains too little of what was measured (correlation {correlation:.2f})'
    if rival < RIVAL:
        return 'another delay would explain as much'
    if stretches < FEWEST:
        return f'there are {stretches} stretches of {STRETCH:g} s with motion; {FEWEST} are needed'
    if not width <= SURE:
        return f'it is not certain to {1e3 * SURE:g} ms'
    return ''
