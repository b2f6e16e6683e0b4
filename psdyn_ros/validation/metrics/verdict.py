"""The verdict on a recording: what was judged, against which tolerance, and what it came to."""

import math
from dataclasses import asdict, dataclass, replace

from ...model.units import SECOND
from ..signals.quality import INVALID as INVALID_DATA
from . import EXIT_CODES, FAIL, INVALID, PARTIAL_PASS, PASS, UNDECIDED
from .figure import FACTORS, Closure, Frozen, Nrmse
from .metrics import BY_NAME, EFFORT
from .prediction import STATIC

CLEAR = 0.3                 # of the residual's squares that a cause explains with confidence, to be named beside a PASS
MAX_HELD = 0.5              # share of its time from which it is said that friction hides an actuator
STRAY = 1e-3                # share of messages out of order, or of spikes in a signal, that a whole recording may have
FEW_SPIKES = 3              # up to a quarter of its range, that a force or a pressure of a short one has: valves step


@dataclass(frozen=True)
class Check:
    """One figure against its tolerance.

    about      actuator, or 'machine'
    figure     which
    value      what it came to, and the interval of confidence, NaN where there is none
    tolerance  the most; the least of a figure that has a least
    unit       of them
    passed     whether it is within
    """

    about: str
    figure: str
    value: float
    low: float
    high: float
    tolerance: float
    unit: str
    passed: bool

    @property
    def text(self):
        """In words, with the numbers."""
        between = '' if math.isnan(self.low) else f' ({_shown(self.low, self.unit)} to {_shown(self.high, self.unit)})'
        bound = 'at least' if BY_NAME[self.figure].least else 'at most'
        return (f'{self.about}: {self.figure} {_shown(self.value, self.unit)}{between}, {bound} '
                f'{_shown(self.tolerance, self.unit)}')

    def as_dict(self):
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """What a recording says about a model.

    verdict   PASS, FAIL, INVALID, or UNDECIDED where too little moved to tell; a failure counts also where the input
              was partial
    checks    all `Check`s
    reasons   why it failed, or cannot be judged
    partial   why the input is only a part of what was recorded, or of what there is to judge
    left_out  what was recorded and is not judged, because no model predicts it
    but       what is wrong beside a PASS: other machines in the bag, units that look wrong, clocks that are set back or
              run apart, and the first cause where it is clear
    """

    verdict: str
    checks: tuple
    reasons: tuple
    partial: tuple
    left_out: tuple = ()
    but: tuple = ()

    @property
    def exit_code(self):
        """0 pass, 1 fail, 2 unusable, 3 pass on partial input or undecided."""
        return PARTIAL_PASS if self.verdict == PASS and self.partial else EXIT_CODES[self.verdict]

    @property
    def text(self):
        """One sentence."""
        if self.reasons:
            return f'{self.verdict}: {"; ".join(self.reasons)}'
        partial = ' (of a partial input)' if self.partial else ''
        if self.but:
            return f'{PASS}, but {"; ".join(self.but)}{partial}'
        return f'{PASS}: every figure is within its tolerance{partial}'

    def with_cause(self, causes, delays):
        """Return the verdict that names beside a PASS the first of some `Cause`s, where it is clear, and the topics of
        {topic: `TopicDelay`} whose clocks run apart from that of the states."""
        drifts = {}
        for topic, one in delays.items():
            if one.drifts:
                drifts.setdefault(one.drift_text, []).append(topic)
        clear = [f'{" and ".join(topics)}: {text}' for text, topics in drifts.items()]
        clear += [cause.text for cause in causes[:1] if cause.low >= CLEAR]
        return replace(self, but=(*self.but, *clear)) if self.verdict == PASS else self


def actuator_checks(metrics, axis, settings):
    """Yield the `Check`s of an actuator; metrics: `ErrorSums`, settings: `Settings`."""
    name = metrics.actuators[axis]
    for figure in metrics.figure.values():
        if figure.of_actuators and axis in figure.abouts():
            yield from _checked(figure, axis, name, settings.actuators[name], settings)


def machine_checks(metrics, settings):
    """Yield the `Check`s of the machine and of its joints."""
    for figure in metrics.figure.values():
        if not figure.of_actuators:
            for about in figure.abouts():
                yield from _checked(figure, about, about, settings.machine, settings)


def _checked(figure, about, name, tolerances, settings):
    """Yield the `Check` of a figure, where it is judged."""
    tolerance = getattr(tolerances, figure.name)
    if math.isfinite(tolerance):
        found = figure.value(about, figure.metrics.drawn(settings.bootstrap))
        if found is not None:
            yield Check(name, figure.name, *found, tolerance, figure.unit, figure.passes(found, tolerance))


def judge(metrics, source, settings, *, skipped=0):
    """Return the `Verdict` on what a `MetricsAccumulator` and its `Quality` have seen of a `BagSource`.

    skipped  instants that the model cannot follow
    """
    unusable = [f'{one.about}: {one.text}' for one in metrics.quality.findings() if one.severity == INVALID_DATA]
    usable = metrics.rows * metrics.period if metrics.rows else 0.0
    if usable < settings.machine.seconds:
        unusable.append(f'{usable:.3g} s of the recording are usable; at least {settings.machine.seconds:g} s are '
                        'needed')
    judged = metrics.measured()
    held = any(metrics.held(axis) > 0.0 for axis in range(len(metrics.actuators)))
    # the rest of an actuator that friction holds nearly all the time is its starts and stops
    judged = [axis for axis in judged if not metrics.held(axis) > 0.0
              or metrics.effort(axis).count * metrics.period >= settings.machine.seconds]
    if not judged and not held and not unusable:
        near = any(metrics.known(axis) for axis in range(len(metrics.actuators)))
        unusable.append('every actuator is near an end stop all the time; there is nothing to judge the model by'
                        if near else
                        'no effort of any actuator was measured; there is nothing to compare with the model')
    checks = [check for axis in judged for check in actuator_checks(metrics, axis, settings)]
    checks += machine_checks(metrics, settings)
    partial = list(_partial(metrics, source, settings, judged, usable, skipped))
    left_out = *_left_out(metrics, settings), *_noisy(metrics, checks)
    loop = f', most of it in the loop of {metrics.quality.loop}' if metrics.quality.loop else ''
    frozen, failed = ([check.text + loop * (check.figure == Closure.name) for check in checks
                       if not check.passed and (check.figure == Frozen.name) == first] for first in (True, False))
    units = [f'{about}: {text}' for about, text in metrics.quality.units.findings()]
    still = [] if units else list(_too_still(metrics, settings, judged))
    # a frozen position comes first: units look wrong because of it, and so does what the model makes of it
    verdict, reasons = ((INVALID, units + unusable) if unusable else (UNDECIDED, still) if still else
                        (FAIL, frozen + units + failed) if frozen + failed else (PASS, []))
    machines = [metrics.quality.channels.others_text] if metrics.quality.channels.others else []
    clocks = [f'{about}: {text}' for about, text in metrics.quality.clocks_set()]
    return Verdict(verdict, tuple(checks), tuple(reasons), (*machines, *partial), left_out,
                   (*machines, *units, *clocks) if verdict == PASS else ())


def _too_still(metrics, settings, judged):
    """Yield why a recording cannot tell whether the model is right."""
    moved = max((metrics.effort(axis).count - metrics.metrics(EFFORT, axis, STATIC).count for axis in judged
                 if not metrics.stands(axis)), default=0) * metrics.period
    if moved < settings.machine.motion:
        yield (f'this recording cannot tell: no actuator whose effort is known moves for more than {moved:.3g} s; at '
               f'least {settings.machine.motion:g} s are needed')


def losses(source, quality, usable, coverage):
    """Yield what a `BagSource`, read to its end, lacks of what was recorded, and what of it cannot be right.

    quality   `Quality` of what was read
    usable    s of it that could be used
    coverage  share of the recorded time that must be
    """
    if source.lost:
        yield f'the bag is not whole: {source.lost.text}'
    if source.absurd or source.bad:
        yield (f'{source.absurd + source.bad} of {source.received} messages are unusable ({source.absurd} received at '
               f'absurd times, {source.bad} without a usable stamp or content)')
    for topic, dropped in quality.late.items():
        if dropped > STRAY * quality.topics[topic].messages:
            yield f'{topic}: {dropped} messages are not later than those before, and were left out'
    for name, signal in {**quality.signals, **quality.rates}.items():
        motion = name.endswith(('.position', '.velocity'))
        few = 0 if motion or 4.0 * signal.largest_spike > signal.high - signal.low else FEW_SPIKES
        if signal.spikes > max(STRAY * signal.samples, few):
            yield f'{name}: {signal.spikes} of {signal.samples} values stick out by up to {signal.largest_spike:.3g}'
    recorded = (source.end_ns - source.start_ns) / SECOND
    simulated = [topic for topic in quality.topics.values() if topic.own_clock]
    if simulated:   # on a busy computer it takes longer to receive it
        times = max(topic.last for topic in simulated) - min(topic.first for topic in simulated)
        recorded = min(recorded, times / SECOND)
    if usable < coverage * recorded:
        yield '; '.join((f'{usable:.4g} of {recorded:.4g} s recorded are usable, {usable / recorded:.0%}; expected '
                         f'{coverage:.0%}', *quality.incomplete()))


def _partial(metrics, source, settings, judged, usable, skipped):
    yield from losses(source, metrics.quality, usable, settings.machine.coverage)
    if skipped * 50 > metrics.rows + skipped:
        yield f'{skipped} of {metrics.rows + skipped} instants cannot be followed by the model'
    for axis, name in enumerate(metrics.actuators):
        seconds = metrics.effort(axis).count * metrics.period
        if metrics.near_stop(axis) > 0.0 and seconds < settings.machine.seconds:
            yield (f'{name}: it is away from its end stops for {seconds:.3g} s; at least '
                   f'{settings.machine.seconds:g} s are needed to judge it')
    yield from (f'{name}: its effort is not measured' for name in metrics.unmeasured())
    for axis in judged:
        count = metrics.known(axis)
        if count < settings.machine.coverage * metrics.rows:
            yield f'{metrics.actuators[axis]}: its effort is known at {count / metrics.rows:.0%} of the instants only'


def _left_out(metrics, settings):
    """Yield what is not judged of each actuator, because no model predicts it."""
    for axis, name in enumerate(metrics.actuators):
        share = metrics.near_stop(axis)
        if share > 0.0:
            yield (f'{name}: {share:.0%} of its time is not judged: it is near an end stop, whose force no model '
                   'knows, or shaken by another actuator that hits one')
        if metrics.only_noise(axis) and metrics.judged(axis).nrmse > settings.actuators[name].nrmse:
            yield (f'{name}: it stands all the time, and noise of sensors makes most of its error, of which only the '
                   'mean is judged')
    for axis, name in enumerate(metrics.actuators):
        share = metrics.held(axis)
        if share > MAX_HELD:
            yield (f'{name}: {share:.0%} of its time is not judged: it stands, creeps or turns round, and its friction '
                   'may be anything up to its level')


def _noisy(metrics, checks):
    """Yield what noise of sensors alone would let fail."""
    for check in checks:
        if check.figure == Nrmse.name and check.passed:
            whole = metrics.judged(metrics.actuators.index(check.about))
            if whole.nrmse > check.tolerance:
                noise = whole.share(metrics.noise(metrics.actuators.index(check.about)))
                yield (f'{check.about}: noise of sensors, {_shown(noise, check.unit)} of the range; its nrmse is '
                       f'{_shown(check.value, check.unit)} without, {_shown(whole.nrmse, check.unit)} with it')


def _shown(value, unit):
    return f'{FACTORS.get(unit, 1.0) * value:.3g}{"" if unit == "%" else " "}{unit}'.rstrip()
