"""The verdict on a recording: what was judged, against which tolerance, and what it came to."""

import math
from dataclasses import asdict, dataclass

from ..signals.quality import INVALID as INVALID_DATA
from .figure import FACTORS
from .metrics import BY_NAME

PASS, FAIL, INVALID = 'PASS', 'FAIL', 'INVALID'
EXIT_CODES = {PASS: 0, FAIL: 1, INVALID: 2}
PARTIAL_PASS = 3
STRAY = 1e-3                # share of messages out of order, or of spikes in a signal, that a whole recording may have


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

    verdict   PASS, FAIL or INVALID; a failure counts also where the input was partial
    checks    all `Check`s
    reasons   why it failed, or cannot be judged
    partial   why the input is only a part of what was recorded, or of what there is to judge
    """

    verdict: str
    checks: tuple
    reasons: tuple
    partial: tuple

    @property
    def exit_code(self):
        """0 pass, 1 fail, 2 unusable, 3 pass on partial input."""
        return PARTIAL_PASS if self.verdict == PASS and self.partial else EXIT_CODES[self.verdict]

    @property
    def text(self):
        """One sentence."""
        if self.reasons:
            return f'{self.verdict}: {"; ".join(self.reasons)}'
        return f'{PASS}: every figure is within its tolerance' + (' (of a partial input)' if self.partial else '')


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
    if not judged and not unusable:
        unusable.append('no effort of any actuator was measured; there is nothing to compare with the model')
    checks = [check for axis in judged for check in actuator_checks(metrics, axis, settings)]
    checks += machine_checks(metrics, settings)
    partial = list(_partial(metrics, source, settings, judged, usable, skipped))
    failed = [check.text for check in checks if not check.passed]
    verdict, reasons = (INVALID, unusable) if unusable else (FAIL, failed) if failed else (PASS, [])
    return Verdict(verdict, tuple(checks), tuple(reasons), tuple(partial))


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
               f'absurd times, {source.bad} that cannot be decoded)')
    for topic, dropped in quality.late.items():
        if dropped > STRAY * quality.topics[topic].messages:
            yield f'{topic}: {dropped} messages are not later than those before, and were left out'
    for name, signal in {**quality.signals, **quality.rates}.items():
        if signal.spikes > STRAY * signal.samples:
            yield f'{name}: {signal.spikes} of {signal.samples} values stick out by up to {signal.largest_spike:.3g}'
    recorded = (source.end_ns - source.start_ns) * 1e-9
    if usable < coverage * recorded:
        yield (f'{usable:.4g} of {recorded:.4g} s recorded are usable, {usable / recorded:.0%}; expected '
               f'{coverage:.0%}')


def _partial(metrics, source, settings, judged, usable, skipped):
    yield from losses(source, metrics.quality, usable, settings.machine.coverage)
    if skipped * 50 > metrics.rows + skipped:
        yield f'{skipped} of {metrics.rows + skipped} instants cannot be followed by the model'
    for axis in judged:
        count = metrics.effort(axis).count
        if count < settings.machine.coverage * metrics.rows:
            yield f'{metrics.actuators[axis]}: its effort is known at {count / metrics.rows:.0%} of the instants only'


def _shown(value, unit):
    return f'{FACTORS.get(unit, 1.0) * value:.3g}{"" if unit == "%" else " "}{unit}'.rstrip()
