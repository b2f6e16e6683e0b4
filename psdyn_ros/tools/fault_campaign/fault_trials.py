"""One fault in one state with one seed: how soon the output conformed, what was unsafe, and how it came back."""

import math
from typing import NamedTuple

import numpy as np

from ...control.safety.fault_table import REJECTED, Result, State
from ...control.safety.state_machine import SafetyError
from ...model.errors import PsdynError
from .bench import PROBATION, Bench
from .injections import After

STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
PATIENCE = 30               # turns beyond the bound that a reaction is waited for
MOMENT = 0.04               # s at most from the beginning of a state to its fault, less than the probation
SETTLING = 0.05             # s of standing still that are looked at after enabling
OPERATOR = 0.2              # s until an operator goes on where nothing moves


class Trial(NamedTuple):
    """What came of one trial."""

    condition: str
    way: str
    level: str
    state: str
    seed: int
    reaction: int | None
    """Cycles from the first effect at the input to the first output that conforms; None: none did in time."""
    bound: int      # cycles that are allowed
    cycles: int      # that were judged
    unsafe: int      # outputs with something wrong in them
    fastest: float      # share of the rated speed that the machine reached when it was not to move any more
    findings: dict      # {what was unsafe: (how often, first text)}
    failures: tuple      # texts: other things that should have gone otherwise

    @property
    def late(self):
        return self.reaction is None or self.reaction > self.bound

    @property
    def good(self):
        return not (self.late or self.unsafe or self.failures)


def run_injection(machine, injection, state, seed):
    """Return the `Trial` of an injection in a `State`."""
    bench = Bench(machine, seed, injection.amend, **injection.options)
    failures = []
    row = injection.row
    bound = round(row.bound(bench.declaration, bench.period) / bench.period)
    reaction = None
    try:
        prepare(bench, state)
        bench.judge.lied_to = injection.lies
        with injection.bring(bench):
            reaction = _reaction(bench, injection, state, bound)
            _go_on(bench, injection, state, failures)
        _come_back(bench, injection, state, failures)
    except PsdynError as error:
        failures.append(f'{type(error).__name__}: {error}')
    judge = bench.judge
    return Trial(injection.condition, injection.name, machine.level, state.name, seed, reaction, bound, judge.cycles,
                 judge.unsafe, judge.fastest, judge.summary(), tuple(failures))


def prepare(bench, state):
    """Bring a new bench into a `State`; PsdynError where that fails."""
    rng = bench.rng
    bench.turns(0.03)
    bench.activate()
    bench.turns(rng.uniform(0.01, 0.05))
    if state is SAFE:
        with bench.spoilt(emergency_stop=True):
            bench.turns(0.1)
        bench.turns(0.05)
    if state in (STANDBY, SAFE):
        return _require(bench, state)
    bench.enable()
    bench.turns(rng.uniform(0.02, 0.1))
    if state is HOLD and rng.random() < 0.5:
        return _require(bench, state)
    bench.follow(bench.motion())
    bench.turns(rng.uniform(0.3, 0.9))
    if state is HOLD:
        bench.core.cancel(bench.now)
        bench.turns(0.8)
    elif state is DEGRADED:
        # a few missed states would be a stop at once where they are longer than its timeout
        for _ in range(rng.integers(4, 8)):
            bench.core.report(bench.now, 'overrun', Result.FAIL, 'injected')
            bench.turn()
        bench.turns(max(bench.period, rng.uniform(0.0, MOMENT)))
    elif state is STOPPING:
        bench.core.disable(bench.now)
        bench.turns(max(bench.period, rng.uniform(0.0, MOMENT)))
    return _require(bench, state)


def _require(bench, state):
    if bench.core.states.state is not state:
        raise PsdynError(f'expected {state.name} to begin with, it is {bench.core.states.state.name}: '
                         f'{"; ".join(bench.core.states.reasons.values())}')


def _reaction(bench, injection, state, bound):
    """Turn until the output conforms; the cycles that took from the first effect, None where it did not."""
    counted, begun = bench.core.states.counts[injection.condition], 0
    effective = injection.onset is None
    for turn in range(10 * bound + PATIENCE + (2000 if injection.onset else 0)):
        bench.turn()
        if not effective:
            begun, effective = turn, injection.onset(bench)
        if _conforms(bench, injection, state, counted):
            return turn - begun
    return None


def _conforms(bench, injection, state, counted):
    if injection.conforms:
        return injection.conforms(bench)
    demand, output = injection.row.demand, bench.output
    if demand is None:
        return bench.core.states.counts[injection.condition] > counted
    if state is STANDBY and demand.state < SAFE:
        return output is not None and output.state in (STANDBY, SAFE)
    return output is not None and output.state >= demand.state


def _go_on(bench, injection, state, failures):
    """What must come of it while the fault lasts."""
    row, states = injection.row, bench.core.states
    lasts = injection.after is After.LASTS
    if row.demand is None:
        escalates = row.output == REJECTED and lasts and not (state is STANDBY and row.name.startswith('pressures'))
        if escalates and not _until(bench, SAFE, bench.declaration.stop_time + 0.2):
            failures.append('lasting, it does not lead to SAFE')
        elif not escalates:
            bench.turns(0.02)
        return
    if row.demand.state is DEGRADED:
        bench.turn()
        if states.state is DEGRADED and bench.law.reference.speed_target > 0.5:
            failures.append(f'DEGRADED at speed {bench.law.reference.speed_target:g}')
    elif row.demand.state is HOLD:
        bench.turns(0.02)
    elif state is not STANDBY:
        if not _until(bench, SAFE, bench.declaration.stop_time + 2.0 * bench.period):
            failures.append('not SAFE after the time of the stop')
        if lasts and not _refused(bench.reset):
            failures.append('reset was granted while the fault was present')
    else:
        bench.turns(0.03)
    if state is STANDBY and lasts and row.demand.state >= STOPPING and not _refused(bench.enable):
        failures.append('enabling was granted while the fault was present')


def _come_back(bench, injection, state, failures):
    """The fault is gone: what goes on by itself, and what an operator has to do before anything moves."""
    core = bench.core
    latched = core.states.state
    bench.turns(2.0 * bench.period)
    if latched is SAFE and core.states.state is not SAFE:
        failures.append(f'SAFE was left for {core.states.state.name} when the fault went away')
    healthy = PROBATION + bench.declaration.plausibility.velocity_window + injection.lingers + 0.02
    bench.turns(healthy)
    if injection.row.demand is not None and injection.row.demand.state in (DEGRADED, HOLD) and state is not STANDBY:
        _go_on_by_itself(bench, injection, state, failures)
        return
    if core.states.state is STOPPING:
        _until(bench, STANDBY, bench.declaration.stop_time)
        bench.turns(healthy)
    if core.states.state is SAFE:
        if not _refused(bench.enable):
            failures.append('enabling was granted in SAFE')
        _let_it_come_to_rest(bench)
        bench.turns(PROBATION)      # of what was found on the way
        bench.reset()
    if core.states.state is STANDBY or core.states.state is SAFE:
        _start_again(bench, failures)


def _go_on_by_itself(bench, injection, state, failures):
    core = bench.core
    if state in (RUN, DEGRADED) and core.states.state is HOLD:
        if injection.row.demand.state is not HOLD and core.law.reference.moving(core.inputs.time):
            failures.append('HOLD while a reference is in progress')
        bench.turns(0.8)
        bench.follow(bench.motion(0.5, 0.3))
        bench.turns(2.0 * bench.period)
    if state in (RUN, DEGRADED) and core.states.state is not RUN:
        failures.append(f'{core.states.state.name} after the fault was gone for the probation')


def _let_it_come_to_rest(bench):
    """Wait as an operator does, for no longer than a stop may take: what swings on its oil is not reset."""
    allowed = bench.declaration.standstill_speed
    for _ in range(round(bench.declaration.stop_time / bench.period)):
        if (np.abs(bench.plant.xd) < 0.5 * allowed).all():
            return
        bench.turn()


def _start_again(bench, failures):
    """Reset does not start motion, nor does enabling; a reference accepted after them does."""
    core, before = bench.core, bench.plant.x.copy()
    bench.turns(0.02)
    if core.states.state is not STANDBY:
        failures.append(f'{core.states.state.name} after a reset')
        return
    bench.enable()
    bench.turns(SETTLING)
    # what asked for half the speed before may be in its probation still
    begin_anew(bench, before, failures, (RUN, DEGRADED))


def begin_anew(bench, before, failures, moving=(RUN,)):
    """A machine that was just enabled holds where it was `before`; a new reference moves it."""
    state, moved = bench.core.states.state, np.abs(bench.plant.x - before).max()
    if state is not HOLD or moved > 0.5 * bench.declaration.tracking_tolerance.min():
        failures.append(f'{state.name}, moved by {moved:.3g} without a new reference')
    bench.follow(bench.motion(0.5, 0.3))
    bench.turns(2.0 * bench.period)
    if bench.core.states.state not in moving:
        failures.append(f'{bench.core.states.state.name} with a new reference')


def enable_at_rest(bench):
    """Enable a machine that may still swing after a stop; return why it is refused when another stop is over, or ''."""
    for _ in range(math.ceil(bench.declaration.stop_time / OPERATOR)):
        bench.turns(OPERATOR)
        try:
            bench.enable()
            return ''
        except SafetyError as error:
            refusal = str(error)
    return refusal


def _refused(act):
    try:
        act()
    except SafetyError:
        return True
    return False


def _until(bench, state, seconds):
    """Turn until the core is in this state; whether it was in time."""
    for _ in range(round(seconds / bench.period) + 1):
        if bench.core.states.state is state:
            return True
        bench.turn()
    return bench.core.states.state is state
