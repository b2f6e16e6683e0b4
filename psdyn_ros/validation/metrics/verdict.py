"""The verdict on a recording: what was judged, against which tolerance, and what it came to."""

import math
from dataclasses import asdict, dataclass

from ..signals.quality import INVALID as INVALID_DATA
from .bootstrap import Interval
from .metrics import COUNT, EFFORT

PASS, FAIL, INVALID = 'PASS', 'FAIL', 'INVALID'
EXIT_CODES = {PASS: 0, FAIL: 1, INVALID: 2}
PARTIAL_PASS = 3
STRAY = 1e-3                # share of messages out of order, or of spikes in a signal, that a whole recording may have
IDLE = 1.0 - 1e-9           # share of the scale below which an actuator did too little for delays to be seen


@dataclass(frozen=True)
class Check:
    """One figure against its tolerance.

    about      actuator, or 'machine'
    figure     which
    value      what it came to, and the interval of confidence, NaN where there is none
    tolerance  the most, of r2 the least
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
        bound = 'at least' if self.figure == 'r2' else 'at most'
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


def judge(metrics, quality, source, settings, *, period, skipped=0, delays=None):
    """Return the `Verdict` on what a `MetricsAccumulator` and `Quality` have seen of a `BagSource`.

    delays  {actuator: `TopicDelay` of its efforts}, where one was looked for
    """
    unusable = [f'{one.about}: {one.text}' for one in quality.findings() if one.severity == INVALID_DATA]
    usable = metrics.rows * period
    if usable < settings.machine.seconds:
        unusable.append(f'{usable:.3g} s of the recording are usable; at least {settings.machine.seconds:g} s are '
                        'needed')
    judged = [axis for axis in range(len(metrics.actuators)) if metrics.sums[:, EFFORT, axis, :, COUNT].any()]
    if not judged and not unusable:
        unusable.append('no effort of any actuator was measured; there is nothing to compare with the model')
    checks = [check for axis in judged for check in _actuator(metrics, axis, settings, delays or {})]
    checks += _machine(metrics, quality, settings)
    partial = list(_partial(metrics, quality, source, settings, judged, usable, skipped))
    failed = [check.text for check in checks if not check.passed]
    verdict, reasons = (INVALID, unusable) if unusable else (FAIL, failed) if failed else (PASS, [])
    return Verdict(verdict, tuple(checks), tuple(reasons), tuple(partial))


def _actuator(metrics, axis, settings, delays):
    name, tolerance = metrics.actuators[axis], settings.actuators[metrics.actuators[axis]]
    found, drawn = metrics.metrics(EFFORT, axis), settings.bootstrap
    options = {'block': max(round(drawn.block / metrics.width), 1), 'resamples': drawn.resamples, 'level': drawn.level,
               'seed': drawn.seed}
    nrmse = metrics.interval(axis, **options)
    yield _check(name, 'nrmse', found.nrmse, tolerance.nrmse, '%', nrmse[1:])
    yield _check(name, 'bias', _share(abs(found.bias), found.scale), tolerance.bias, '%')
    if math.isfinite(tolerance.maximum):
        yield _check(name, 'maximum', _share(found.maximum, found.scale), tolerance.maximum, '%')
    if math.isfinite(tolerance.r2):
        yield Check(name, 'r2', found.r2, math.nan, math.nan, tolerance.r2, '', found.r2 >= tolerance.r2)
    if found.high - found.low >= IDLE * found.scale:
        lag = _lag(metrics, axis, options, delays.get(name))
        # what may as well be nothing is no delay
        passed = abs(lag.estimate) <= tolerance.delay or not lag.excludes_zero
        yield Check(name, 'delay', *lag, tolerance.delay, 'ms', passed)


def _lag(metrics, axis, options, delay):
    """`Interval` of s by which the efforts of an actuator are late: what was taken off, and what is left."""
    if delay is None:
        return metrics.lag(axis, **options)
    if delay.certain:
        # unlike what is seen in the residual, it does not depend on the model being right
        return Interval(delay.seconds, delay.low, delay.high)
    return Interval(*(delay.taken + value for value in metrics.lag(axis, **options)))


def _machine(metrics, quality, settings):
    tolerance = settings.machine
    rows, rms, _, _ = metrics.closure_residual()
    if rows:
        yield _check('machine', 'closure', rms, tolerance.closure, 'mm')
    for name, signal in quality.signals.items():
        if name.endswith('.position'):
            frozen = sum(span.end - span.start for span in signal.frozen)
            if frozen:
                yield _check(name.removesuffix('.position'), 'frozen', frozen, tolerance.frozen, 's')
    if math.isfinite(tolerance.energy):
        yield _check('machine', 'energy', metrics.energy.balance().mismatch, tolerance.energy, '%')


def _check(about, figure, value, tolerance, unit, between=(math.nan, math.nan)):
    # what is not a number is within no tolerance
    return Check(about, figure, float(value), *between, tolerance, unit, bool(value <= tolerance))


def _share(value, scale):
    return value / scale if scale > 0.0 else math.nan


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


def _partial(metrics, quality, source, settings, judged, usable, skipped):
    yield from losses(source, quality, usable, settings.machine.coverage)
    if skipped * 50 > metrics.rows + skipped:
        yield f'{skipped} of {metrics.rows + skipped} instants cannot be followed by the model'
    for axis in judged:
        count = metrics.metrics(EFFORT, axis).count
        if count < settings.machine.coverage * metrics.rows:
            yield f'{metrics.actuators[axis]}: its effort is known at {count / metrics.rows:.0%} of the instants only'


def _shown(value, unit):
    factor = {'%': 100.0, 'ms': 1e3, 'mm': 1e3}.get(unit, 1.0)
    return f'{factor * value:.3g}{"" if unit == "%" else " "}{unit}'.rstrip()
