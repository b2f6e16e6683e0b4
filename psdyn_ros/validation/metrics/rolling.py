"""How far a model is from a machine lately: figures of the last seconds, which are forgotten bit by bit."""

import math
from dataclasses import dataclass

import numpy as np

from .bins import Window
from .metrics import BY_NAME, COUNT, EFFORT, E, ErrorSums, capacities
from .prediction import JUDGED_REGIMES, driven_efforts
from .verdict import actuator_checks, machine_checks

OK, WARN, ERROR = 'ok', 'warn', 'error'
LEVELS = OK, WARN, ERROR            # the worse the later
WINDOW = 10.0               # s
WARN_SHARE = 0.8            # of a tolerance
CREEP = 0.01                # m/s or rad/s at which friction is all there is of it at rest
EARLY_RANGE = 0.2           # of the capacity, before a window went by: what an actuator did so far tells little
MAX_RANGE = 2.0             # times the capacity: from pushing to pulling
FEW_RESAMPLES = 99
NOISE_HOPS = 100            # from which the noise of a mean error is taken
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


class RunningMetrics(ErrorSums):
    """Takes predictions one after the other, and knows the last `window` s of them.

    predictor  `Predictor` that makes them
    settings   `Settings`: tolerances, and how sure a delay must be
    window     s
    warn       share of a tolerance from which on there is a warning

    A standing actuator may be held by its friction, either way: only what is beyond that is judged.  In the first
    window errors are judged by at least a fifth of what the actuator can do.
    """

    live, JUDGED = True, EFFORT + 1

    def __init__(self, predictor, settings, window=WINDOW, warn=WARN_SHARE):
        manipulator = predictor.manipulator
        super().__init__(manipulator, predictor.mechanism, capacities(manipulator, predictor.hydraulics),
                         Window(window), self.JUDGED + 1)
        self._settings, self._warn = settings, warn
        self._friction, self._still = friction_at_rest(predictor), predictor.bounds.static
        count = len(self.actuators)
        self._standing = self.bins.column((count,))     # samples
        self._lowest, self._highest = np.full(count, np.inf), np.full(count, -np.inf)
        self._seen = np.zeros(count)                    # s since the beginning at which efforts were known

    def pairs(self, prediction):
        """See `ErrorSums`: the effort, and the same with friction that holds it."""
        measured, near, regime = prediction.effort, prediction.effort_near, prediction.regime.astype(np.int64)
        yield measured, prediction.effort_id, regime
        stands = (np.abs(prediction.v) < self._still) & ~prediction.undetermined
        held = np.clip(measured - near, -self._friction, self._friction)
        yield measured, near + np.where(stands, held, 0.0), regime

    def add(self, prediction):
        super().add(prediction)
        core = prediction.core
        known = np.isfinite(prediction.effort[core] - prediction.effort_id[core]) & ~prediction.near_stop[core]
        self._standing.rows[-1] = ((np.abs(prediction.v[core]) < self._still) & known).sum(axis=0)
        self._seen += known.sum(axis=0) * prediction.period
        low, high = (one.rows[-1, EFFORT, :len(self.actuators), JUDGED_REGIMES] for one in (self._low, self._high))
        self._lowest = np.minimum(self._lowest, low.min(axis=1))
        self._highest = np.maximum(self._highest, high.max(axis=1))

    def forget(self, now):
        """Forget what is older than the window at `now`, s on the clock of predictions."""
        self.bins.forget(now)

    @property
    def seconds(self):
        """s of the window at which the state was known."""
        return sum(end - begin for begin, end in self.bins.spans)

    @property
    def coverage(self):
        """Share of the window, or of what there was of it, at which the state was known; NaN where there was none."""
        if not self.bins.spans:
            return math.nan
        return min(self.seconds / max(self.bins.spans[-1][1] - self.bins.spans[0][0], self.period), 1.0)

    def scale(self, kind, channel):
        """Range since the beginning by which errors are normalised, see `ActuatorFigures`; NaN where none is known."""
        span, capacity = float(self._highest[channel] - self._lowest[channel]), float(self.capacity[channel])
        if span < 0.0:
            return math.nan
        if not math.isfinite(capacity):
            return span
        bounded = min(max(span, self.least_scale(channel)), MAX_RANGE * capacity)
        early = kind == self.JUDGED and self._seen[channel] < self.bins.length
        return max(bounded, EARLY_RANGE * capacity) if early else bounded

    def drawn(self, choice):
        hop = max(self.seconds / self.bins.count, self.period)
        return {'block': max(round(choice.block / hop), 1), 'resamples': min(choice.resamples, FEW_RESAMPLES),
                'level': choice.level, 'seed': choice.seed}

    def deviation(self):
        """(actuators,) one standard deviation of the mean error of a hop: by how it changes from hop to hop.

        Of an actuator that stands in the last hop, its friction is part of it.
        """
        means = self._means(NOISE_HOPS)
        scale = np.array([self.scale(EFFORT, axis) for axis in range(len(self.actuators))])
        least = np.fmax(DEVIATION * np.nan_to_num(scale), LEAST_NOISE)
        noise = np.zeros(len(self.actuators))
        if len(means) > 1:
            steps = np.diff(means, axis=0)
            pairs = np.maximum(np.isfinite(steps).sum(axis=0), 1)
            noise = np.sqrt(0.5 * np.nansum(steps * steps, axis=0) / pairs)
        count = self._totals(1)[-1, :, COUNT]
        held = np.where(self._standing.rows[-1] > 0.5 * count, self._friction / math.sqrt(3.0), 0.0)
        return np.sqrt(noise ** 2 + held ** 2 + least ** 2)

    def excess(self):
        """(actuators,) mean of measured - predicted effort over the last hop, NaN where unknown."""
        return self._means(1)[-1]

    def _totals(self, most):
        """(hops, actuators, SUMS) of the last hops, of the regimes that are judged."""
        return self._sums.rows[-most:, EFFORT, :len(self.actuators), JUDGED_REGIMES].sum(axis=2)

    def _means(self, most):
        """(hops, actuators) mean errors of the last hops, NaN where unknown."""
        totals = self._totals(most)
        return totals[..., E] / np.where(totals[..., COUNT] > 0.0, totals[..., COUNT], np.nan)

    # verdict

    def figures(self):
        """Return tuple of `ActuatorFigures`, in the order of the actuators."""
        if not self.bins.count:
            return tuple(ActuatorFigures(name, WARN, 'nothing is known yet', 0.0, *(math.nan,) * 6, ())
                         for name in self.actuators)
        return tuple(self._of(axis, name) for axis, name in enumerate(self.actuators))

    def machine_checks(self):
        """Return tuple of the `Check`s of the machine; () where nothing is known."""
        return tuple(machine_checks(self, self._settings)) if self.bins.count else ()

    def _of(self, axis, name):
        found = self.effort(axis)
        if not found.count and self.near_stop(axis) > 0.0:
            return ActuatorFigures(name, OK, 'not judged: it is near an end stop', 0.0, *(math.nan,) * 6, ())
        if not found.count:
            ever = math.isfinite(found.scale)
            text = 'not judged: its effort is not known' + (' any more' if ever else '')
            return ActuatorFigures(name, WARN if ever else OK, text, 0.0, *(math.nan,) * 6, ())
        seconds, checks = found.count * self.period, tuple(actuator_checks(self, axis, self._settings))
        enough = min(self._settings.machine.seconds, 0.5 * self.bins.length)
        if seconds < enough * (1.0 - 1e-9):
            level, text = WARN, f'not judged yet: {seconds:.2g} of {enough:.2g} s'
        else:
            level, text = self.level(checks)
        delay = next((check.value for check in checks if check.figure == 'delay'), math.nan)
        standing = float(self._standing.rows[:, axis].sum()) / found.count
        return ActuatorFigures(name, level, text, seconds, found.rmse, found.bias, found.nrmse, found.scale, delay,
                               standing, checks)

    def level(self, checks):
        """Return (level, words) of some `Check`s."""
        failed = [check for check in checks if not check.passed]
        if failed:
            return ERROR, '; '.join(_words(check) for check in failed)
        near = [check for check in checks if BY_NAME[check.figure].warns
                and check.value >= self._warn * check.tolerance]
        if near:
            return WARN, 'near its tolerance: ' + '; '.join(_words(check) for check in near)
        return OK, _words(checks[0])


def friction_at_rest(predictor):
    """(actuators,) N or N m with which friction may hold an actuator, at its initial position, by the model."""
    m = predictor.manipulator
    x, xd, none = m.initial_position[np.newaxis], np.full((1, m.dof), CREEP), np.zeros((1, m.dof))
    v = np.full((1, len(m.actuators)), CREEP)
    bare = driven_efforts(predictor.mechanism, x, xd, none)
    return np.abs(predictor.friction(x, xd, none, v, bare))[0]


def worst(levels):
    """The worst of some levels; OK of none."""
    return max(levels, key=LEVELS.index, default=OK)


def _words(check):
    return check.text.partition(': ')[2]
