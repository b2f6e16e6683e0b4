"""How far a model is from a machine lately: figures of the last seconds, which are forgotten bit by bit."""

import math
from collections import deque
from dataclasses import dataclass
from itertools import islice

import numpy as np

from .bootstrap import bootstrap
from .metrics import LEAST_RANGE, capacities, slope_lag
from .verdict import IDLE, Check

OK, WARN, ERROR = 'ok', 'warn', 'error'
LEVELS = OK, WARN, ERROR            # the worse the later
WINDOW = 10.0               # s
WARN_SHARE = 0.8            # of a tolerance
CREEP = 0.01                # m/s or rad/s at which friction is all there is of it at rest
EARLY_RANGE = 0.2           # of the capacity, before a window went by: what an actuator did so far tells little
MOST_RANGE = 2.0            # times the capacity: from pushing to pulling
FEW_RESAMPLES = 99
NOISE_HOPS = 100            # from which the noise of a mean error is taken
# sums of a hop, for each actuator; e = measured - predicted, of standing actuators beyond their friction
COUNT, E, E2, JUDGED, JUDGED2, A, A2, LAG_COUNT, LAG_E, RATE, E_RATE, RATE2, STANDING = range(13)
SUMS = 13
LAG = slice(LAG_COUNT, RATE2 + 1)
LARGEST, LOW, HIGH = range(3)       # of |e| judged, of the measured
DEVIATION = 1e-3            # of the scale of an effort, the least that counts as noise
LEAST_NOISE = 1e-6          # N or N m, of efforts that have no scale


@dataclass(frozen=True)
class ActuatorFigures:
    """What the last seconds say of an actuator; N or N m.

    name      of it
    level     OK, WARN from a share of a tolerance on, ERROR beyond one
    summary   why, in words with numbers
    seconds   s at which its effort was known
    rms, bias of measured - predicted effort
    nrmse     rms / scale
    scale     range of the measured effort since the beginning, at least 5 % of what the actuator can do, at most what
              it can push and pull
    delay     s by which the measured effort is later, NaN where too little moved
    standing  share of the time at which it stood
    checks    tuple of `Check`
    """

    name: str
    level: str
    summary: str
    seconds: float
    rms: float
    bias: float
    nrmse: float
    scale: float
    delay: float
    standing: float
    checks: tuple


class RunningMetrics:
    """Takes predictions one after the other, and knows the last `window` s of them.

    predictor  `Predictor` that makes them
    settings   `Settings`: tolerances, and how sure a delay must be
    window     s
    warn       share of a tolerance from which on there is a warning

    A standing actuator may be held by its friction, either way: only what is beyond that is judged.  In the first
    window errors are judged by at least a fifth of what the actuator can do.
    """

    def __init__(self, predictor, settings, window=WINDOW, warn=WARN_SHARE):
        manipulator = predictor.manipulator
        self.actuators, self._settings, self._window, self._warn = manipulator.actuators, settings, window, warn
        self._capacity = capacities(manipulator, predictor.hydraulics)
        self._still, self._standing = friction_at_rest(predictor), predictor.bounds.static
        self._hops = deque()        # (begin, end [s], sums, extremes, closure (rows, sum of squares))
        self._low, self._high = np.full(len(self.actuators), np.inf), np.full(len(self.actuators), -np.inf)
        self._seen = np.zeros(len(self.actuators))      # s since the beginning at which efforts were known
        self.period = math.nan

    def add(self, prediction):
        """Take the core of a `Prediction`."""
        core = prediction.core
        measured, rate = prediction.effort[core], prediction.effort_rate[core]
        e = measured - prediction.effort_id[core]
        stands = np.abs(prediction.v[core]) < self._standing
        judged = np.where(stands, np.sign(e) * np.maximum(np.abs(e) - self._still, 0.0), e)
        known = np.isfinite(e)
        lagged = known & np.isfinite(rate)
        columns = (known, e, e * e, judged, judged * judged, measured, measured * measured, lagged,
                   *(np.where(lagged, part, np.nan) for part in (e, rate, e * rate, rate * rate)), stands & known)
        sums = np.stack([np.nansum(column, axis=0) for column in columns], axis=1)
        extremes = np.stack([np.where(known, part, bare).max(axis=0) for part, bare in (
            (np.abs(judged), 0.0), (-measured, -np.inf), (measured, -np.inf))], axis=1)
        extremes[:, LOW] *= -1.0
        self._low = np.minimum(self._low, extremes[:, LOW])
        self._high = np.maximum(self._high, extremes[:, HIGH])
        self._seen += known.sum(axis=0) * prediction.period
        residual = prediction.residual[core]
        residual = residual[np.isfinite(residual)]
        self.period = prediction.period
        end = float(prediction.t[core][-1]) + prediction.period
        self._hops.append((float(prediction.t[core][0]), end, sums, extremes,
                           np.array([len(residual), residual @ residual])))
        self.forget(end)

    def forget(self, now):
        """Forget what is older than the window at `now`, s on the clock of predictions."""
        while self._hops and self._hops[0][1] <= now - self._window:
            self._hops.popleft()

    @property
    def seconds(self):
        """s of the window at which the state was known."""
        return sum(end - begin for begin, end, *_ in self._hops)

    @property
    def coverage(self):
        """Share of the window, or of what there was of it, at which the state was known; NaN where there was none."""
        if not self._hops:
            return math.nan
        return min(self.seconds / max(self._hops[-1][1] - self._hops[0][0], self.period), 1.0)

    @property
    def closure(self):
        """rms disagreement of redundant joints at rod eyes [m], NaN where none is known."""
        count, squares = sum((hop[4] for hop in self._hops), np.zeros(2))
        return math.sqrt(squares / count) if count else math.nan

    def scale(self):
        """(actuators,) by which errors are normalised, see `ActuatorFigures`; NaN where nothing is known."""
        span = np.where(self._high >= self._low, self._high - self._low, np.nan)
        bounded = np.fmin(np.fmax(span, LEAST_RANGE * self._capacity), MOST_RANGE * self._capacity)
        return np.where(np.isnan(span), np.nan, np.where(np.isfinite(self._capacity), bounded, span))

    def deviation(self):
        """(actuators,) one standard deviation of the mean error of a hop: by how it changes from hop to hop.

        Of an actuator that stands in the last hop, its friction is part of it.
        """
        means = self._means(NOISE_HOPS)
        least = np.fmax(DEVIATION * np.nan_to_num(self.scale()), LEAST_NOISE)
        noise = np.zeros(len(self.actuators))
        if len(means) > 1:
            steps = np.diff(means, axis=0)
            pairs = np.maximum(np.isfinite(steps).sum(axis=0), 1)
            noise = np.sqrt(0.5 * np.nansum(steps * steps, axis=0) / pairs)
        last = self._hops[-1][2]
        held = np.where(last[:, STANDING] > 0.5 * last[:, COUNT], self._still / math.sqrt(3.0), 0.0)
        return np.sqrt(noise ** 2 + held ** 2 + least ** 2)

    def excess(self):
        """(actuators,) mean of measured - predicted effort over the last hop, NaN where unknown."""
        return self._means(1)[-1]

    def _means(self, most):
        """(hops, actuators) mean errors of the last hops, NaN where unknown."""
        sums = np.stack([hop[2] for hop in islice(reversed(self._hops), most)])[::-1]
        return sums[:, :, E] / np.where(sums[:, :, COUNT] > 0.0, sums[:, :, COUNT], np.nan)

    # verdict

    def figures(self):
        """Return tuple of `ActuatorFigures`, in the order of the actuators."""
        if not self._hops:
            return tuple(ActuatorFigures(name, WARN, 'nothing is known yet', 0.0, *(math.nan,) * 6, ())
                         for name in self.actuators)
        sums = np.stack([hop[2] for hop in self._hops])
        extremes = np.stack([hop[3] for hop in self._hops])
        return tuple(self._of(axis, sums[:, axis], extremes[:, axis], float(scale))
                     for axis, scale in enumerate(self.scale()))

    def _of(self, axis, sums, extremes, scale):
        name, total = self.actuators[axis], sums.sum(axis=0).tolist()
        count, seconds = total[COUNT], total[COUNT] * self.period
        if not count:
            text = 'not judged: its effort is not known' + (' any more' if math.isfinite(scale) else '')
            return ActuatorFigures(name, WARN if math.isfinite(scale) else OK, text, 0.0, *(math.nan,) * 6, ())
        rms, bias = math.sqrt(total[E2] / count), total[E] / count
        early = EARLY_RANGE * self._capacity[axis] if self._seen[axis] < self._window else 0.0
        checks, delay = self._checks(name, axis, sums, extremes, total, float(np.fmax(scale, early)))
        enough = min(self._settings.machine.seconds, 0.5 * self._window)
        if seconds < enough * (1.0 - 1e-9):
            level, text = WARN, f'not judged yet: {seconds:.2g} of {enough:.2g} s'
        else:
            level, text = self._verdict(checks)
        return ActuatorFigures(name, level, text, seconds, rms, bias, rms / scale if scale > 0.0 else math.nan, scale,
                               delay, total[STANDING] / count, tuple(checks))

    def _checks(self, name, axis, sums, extremes, total, scale):
        """(checks, delay) of an actuator."""
        tolerance, nothing = self._settings.actuators[name], (math.nan, math.nan)
        count = total[COUNT]

        def share(value):
            return value / scale if scale > 0.0 else math.nan

        figures = [('nrmse', share(math.sqrt(total[JUDGED2] / count)), tolerance.nrmse),
                   ('bias', share(abs(total[JUDGED] / count)), tolerance.bias)]
        if math.isfinite(tolerance.maximum):
            figures.append(('maximum', share(float(extremes[:, LARGEST].max())), tolerance.maximum))
        checks = [Check(name, figure, value, *nothing, most, '%', bool(value <= most))
                  for figure, value, most in figures]
        if math.isfinite(tolerance.r2):
            spread = total[A2] - total[A] ** 2 / count
            r2 = 1.0 - total[E2] / spread if spread > 1e-12 * total[A2] else math.nan
            checks.append(Check(name, 'r2', r2, *nothing, tolerance.r2, '', not r2 < tolerance.r2))
        moved = float(extremes[:, HIGH].max() - extremes[:, LOW].min())
        if not (moved > 0.0 and moved >= IDLE * LEAST_RANGE * np.nan_to_num(self._capacity[axis])):
            return checks, math.nan
        drawn = self._settings.bootstrap
        lags = sums[sums[:, LAG_COUNT] > 0.0][:, LAG]
        hop = max(sum(end - begin for begin, end, *_ in self._hops) / len(self._hops), self.period)
        lag = bootstrap(lags, slope_lag, block=max(round(drawn.block / hop), 1),
                        resamples=min(drawn.resamples, FEW_RESAMPLES), seed=drawn.seed, level=drawn.level)
        # of so few seconds an interval is narrow by chance now and then: all of it must be beyond
        beyond = lag.low > tolerance.delay or lag.high < -tolerance.delay
        checks.append(Check(name, 'delay', *lag, tolerance.delay, 'ms', not beyond))
        return checks, lag.estimate

    def _verdict(self, checks):
        """(level, words) of the checks of an actuator."""
        failed = [check for check in checks if not check.passed]
        if failed:
            return ERROR, '; '.join(_words(check) for check in failed)
        near = [check for check in checks if check.figure in ('nrmse', 'bias', 'maximum')
                and check.value >= self._warn * check.tolerance]
        if near:
            return WARN, 'near its tolerance: ' + '; '.join(_words(check) for check in near)
        return OK, _words(checks[0])


def friction_at_rest(predictor):
    """(actuators,) N or N m with which friction may hold an actuator, at its initial position, by the model."""
    m = predictor.manipulator
    x, xd, none = m.initial_position[np.newaxis], np.full((1, m.dof), CREEP), np.zeros((1, m.dof))
    v = np.full((1, len(m.actuators)), CREEP)
    bare = predictor.mechanism.inverse_dynamics(x, xd, none)
    return np.abs(predictor.friction(x, xd, none, v, bare))[0]


def worst(levels):
    """The worst of some levels; OK of none."""
    return max(levels, key=LEVELS.index, default=OK)


def _words(check):
    return check.text.partition(': ')[2]
