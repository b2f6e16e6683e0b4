"""How far `psdyn validate`, `identify` and `compare` can be trusted: on bags of the second plant, as an instrument is
calibrated.

    python3 -m psdyn_ros.tools.studies.calibration_study [--output DIR] [--short] [--processes N] [--motions DIR]

writes DIR/calibration.md and its pictures, and prints the same tables; exit code 1 where a bound is missed.
"""

import math
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...validation.validate import validate
from .calibration_runs import CASES, HEALTHY, Layout, Motion, crane, machine_text, oil, run_motion, write

SECONDS = 30.0              # of a bag


class Task(NamedTuple):
    """One bag: number of the motion, of the noise, `Layout`, name of the case, s."""

    motion: int
    seed: int
    layout: Layout
    case: str = HEALTHY
    seconds: float = SECONDS


class Outcome(NamedTuple):
    """What `validate` said of a bag."""

    task: Task
    verdict: str
    text: str
    delays: dict
    """{topic: (seconds, low, high, taken)}."""
    causes: tuple
    """((kind, about, share, estimate, error, text), ...), the likeliest first."""

    @property
    def named(self):
        """Whether the first cause is the right one."""
        case = CASES[self.task.case]
        return bool(self.causes) and self.causes[0][0] == case.kind and case.about in self.causes[0][1]

    @property
    def deviation(self):
        """Standard errors by which the estimate of the first cause is off, where it is the right one; else NaN."""
        if not self.named:
            return math.nan
        _, _, _, estimate, error, _ = self.causes[0]
        return (estimate - CASES[self.task.case].size) / error


def motion_of(folder, seed, seconds):
    """The `Motion` kept in a folder; it is run where it is not there."""
    path = Path(folder) / f'motion_{seed}_{seconds:g}.npz'
    if not path.exists():
        part = path.with_suffix('.part.npz')
        np.savez(part, **run_motion(seed, seconds)._asdict())
        part.rename(path)
    with np.load(path) as kept:
        return Motion(**kept)


def validated(bag, case):
    """The `Validation` of a bag against the model of a case."""
    text, hydraulics = CASES[case].model() if CASES[case].model else (machine_text(), oil())
    return validate(bag, crane(text), hydraulics=hydraulics)


def outcome_of(task, folder, seconds):
    """The `Outcome` of a task; folder: where motions of `seconds` are kept."""
    with tempfile.TemporaryDirectory(prefix='psdyn_calibration_') as place:
        bag = write(Path(place) / 'bag', motion_of(folder, task.motion, seconds), task.layout, CASES[task.case],
                    task.seed, task.seconds)
        found = validated(bag, task.case)
    return Outcome(task, found.verdict.verdict, found.verdict.text,
                   {topic: (one.seconds, one.low, one.high, one.taken) for topic, one in found.delays.items()},
                   tuple((one.kind, one.about, one.share, one.estimate, one.error, one.text) for one in found.causes))
