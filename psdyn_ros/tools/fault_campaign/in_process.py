"""All trials in this process: every condition of the fault table, the ways in which it comes about, states, seeds."""

from typing import NamedTuple

from ...control.safety.fault_table import CONDITIONS
from .bench import HANGING, LEVELS, PID, make_machine
from .fault_trials import run_injection
from .injections import INJECTIONS
from .process_trials import PROCESS_TRIALS
from .rejected_inputs import ATTEMPTS, DESCRIPTIONS, run_attempt, run_description

CONFIDENCE = 3.0            # rule of three: with no failure in N trials the rate is below 3/N, with 95 %


class Summary(NamedTuple):
    """All trials of one condition."""

    row: object      # `Row` of the fault table
    states: tuple      # names of the states in which it was tried
    ways: tuple
    trials: int
    worst: float | None      # cycles, or ms of descriptions; None: some output never conformed
    bound: int
    unsafe: int
    fastest: float      # share of the rated speed, worst
    bad: tuple      # `Trial`s that are late, unsafe or failed otherwise

    @property
    def unit(self):
        return 'ms' if self.states == ('ms',) else 'cycles'

    @property
    def late(self):
        return sum(trial.late for trial in self.bad)

    @property
    def rate_below(self):
        """Upper bound of the rate of bad trials where none was bad; None where some were."""
        return None if self.bad else CONFIDENCE / self.trials


def cases(level):
    """Yield (condition, function of (machine, seed) -> `Trial`) of a level."""
    for one in INJECTIONS:
        if level in one.levels:
            for state in one.states:
                yield one.condition, lambda machine, seed, one=one, state=state: run_injection(
                    machine, one, state, seed)
    for one in ATTEMPTS if level != HANGING else ():
        for state in one.states:
            yield one.condition, lambda machine, seed, one=one, state=state: run_attempt(machine, one, state, seed)
    for function, where, levels in PROCESS_TRIALS:
        if level in levels:
            for place in where:
                yield function.__name__, lambda machine, seed, function=function, place=place: function(
                    machine, place, seed)


def run(seeds, *, levels=(*LEVELS, PID), first=0, progress=lambda text: None):
    """Yield every `Trial`.

    seeds     how many of each, from `first` on
    progress  called with a line now and then
    """
    for condition, name, spoil in DESCRIPTIONS:
        for seed in range(first, first + seeds):
            yield run_description(condition, name, spoil, seed)
    for level in levels:
        machine = make_machine(level)
        for condition, trial in cases(level):
            progress(f'{level}: {condition}')
            for seed in range(first, first + seeds):
                yield trial(machine, seed)


def summarize(trials):
    """Return [`Summary`] in the order of the fault table."""
    by_condition = {}
    for trial in trials:
        by_condition.setdefault(trial.condition, []).append(trial)
    return [_summary(row, by_condition[name]) for name, row in CONDITIONS.items() if name in by_condition]


def _summary(row, trials):
    reactions = [trial.reaction for trial in trials]
    return Summary(
        row=row, states=tuple(dict.fromkeys(trial.state for trial in trials)),
        ways=tuple(dict.fromkeys(trial.way for trial in trials)), trials=len(trials),
        worst=None if None in reactions else max(reactions), bound=max(trial.bound for trial in trials),
        unsafe=sum(trial.unsafe for trial in trials), fastest=max(trial.fastest for trial in trials),
        bad=tuple(trial for trial in trials if not trial.good))
