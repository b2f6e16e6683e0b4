"""Interleaved timing: A B C A B C ..., so that a drifting machine slows all; ratios are taken per round."""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np


@dataclass(frozen=True)
class Case:
    """Something to time: `run()` evaluates `states` states."""

    name: str
    run: Callable[[], object]
    states: int


@dataclass(frozen=True)
class Times:
    """Microseconds per state, one entry a round."""

    rounds: np.ndarray

    @property
    def median(self):
        return float(np.median(self.rounds))

    @property
    def best(self):
        return float(self.rounds.min())

    def ratio_to(self, other):
        """How many times longer this took than `other`: the median of the ratios of each round."""
        return float(np.median(self.rounds / other.rounds))


def each_state(function, *arrays):
    """A run that calls `function` once for each row, as a program in Python does."""
    rows = [list(array) for array in arrays]

    def run():
        for row in zip(*rows):
            function(*row)

    return run


def interleave(cases, rounds, slot):
    """Time the cases in turn, `slot` seconds each, `rounds` times; returns {name: Times}."""
    repeats = {case.name: _repeats(case, slot) for case in cases}
    measured = {case.name: [] for case in cases}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for case in cases:
                start = perf_counter()
                for _ in range(repeats[case.name]):
                    case.run()
                seconds = perf_counter() - start
                measured[case.name].append(1e6 * seconds / (repeats[case.name] * case.states))
    finally:
        if collecting:
            gc.enable()
    return {name: Times(np.array(values)) for name, values in measured.items()}


def _repeats(case, slot):
    case.run()  # warms caches and compiles whatever is still to be compiled
    start = perf_counter()
    case.run()
    return max(1, round(slot / (perf_counter() - start)))
