"""When a model was wrong about the efforts of a recording: in which seconds, and in which regimes of motion."""

from typing import NamedTuple

import numpy as np

from ..metrics.metrics import E2, EFFORT, JUDGED_REGIMES
from ..metrics.prediction import REGIME_NAMES

MAX_SPANS = 4           # of an actuator that are named
MERGED = 2.0            # s between two spans that count as one


class When(NamedTuple):
    """When the effort of an actuator was wrong by more than its tolerances of rms and bias, for seconds each by itself.

    actuator  name
    spans     ((begin, end), ...) s since the start of the bag, the worst first
    seconds   how many s are beyond, and how many were judged
    regimes   {name: share of the squared error in it}, the largest first
    text      in words
    """

    actuator: str
    spans: tuple
    seconds: tuple
    regimes: dict
    text: str


def when_wrong(found):
    """[`When`] of the actuators of a `Validation` that were beyond a tolerance in some second."""
    return [one for axis in range(len(found.metrics.actuators)) if (one := _of(found, axis))]


def _of(found, axis):
    metrics = found.metrics
    name = metrics.actuators[axis]
    rmse, bias, samples = np.nan_to_num(metrics.per_bin(EFFORT, axis)).T
    most, scale = found.settings.actuators[name], metrics.scale(EFFORT, axis)
    errors = metrics.share_without_noise(axis) * rmse
    beyond = np.flatnonzero((errors > most.nrmse * scale) | (np.abs(bias) > most.bias * scale))
    if not len(beyond):
        return None
    cuts = np.flatnonzero(np.diff(beyond) * metrics.width > MERGED) + 1
    groups = sorted(np.split(beyond, cuts), key=lambda group: -float(np.sum(rmse[group] ** 2)))
    spans = tuple((float(group[0] * metrics.width), float((group[-1] + 1) * metrics.width)) for group in groups)
    squares = metrics.sums[:, EFFORT, axis, JUDGED_REGIMES, E2].sum(axis=0)
    shares = dict(zip(REGIME_NAMES[JUDGED_REGIMES], (squares / squares.sum()).tolist()))
    regimes = dict(sorted(shares.items(), key=lambda pair: -pair[1]))
    seconds = len(beyond) * metrics.width, int((samples > 0).sum()) * metrics.width
    return When(name, spans, seconds, regimes, _text(name, spans, seconds, regimes))


def _text(name, spans, seconds, regimes):
    shown = sorted(spans[:MAX_SPANS])
    where = ', '.join(f'{begin:g} to {end:g} s' for begin, end in shown)
    more = len(spans) - len(shown)
    if more:
        where += f', the worst of {len(spans)} spans'
    worst, share = next(iter(regimes.items()))
    return (f'{name}: wrong by more than its tolerances in {seconds[0]:g} of {seconds[1]:g} s, {where}; '
            f'{100.0 * share:.0f} % of the squared error while {worst.replace("_", " ")}')
