"""What happens to the control process itself: it begins without a state, is deactivated, dies, starts again; or its
clock is set."""


from ...control.safety.fault_table import CONDITIONS, State
from ...control.safety.state_machine import SafetyError
from ...model.errors import PsdynError
from .bench import PROBATION, TTL, Bench
from .fault_trials import Trial, begin_anew, enable_at_rest, prepare

STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
DRIVEN = RUN, DEGRADED, HOLD, STOPPING
JUMPS = tuple(sign * seconds for seconds in (0.06, 1.0, 3600.0) for sign in (1.0, -1.0))       # s
SAFE_OUTPUTS = 3            # at least, after a deactivation
AFTER_A_START = 0.1         # s in which nothing may move


def _trial(bench, condition, name, state, seed, reaction, failures, bound=None):
    judge = bench.judge
    bound = round(CONDITIONS[condition].bound(bench.declaration, bench.period) / bench.period) if bound is None \
        else bound
    return Trial(condition, name, bench.machine.level, state.name, seed, reaction, bound, judge.cycles, judge.unsafe,
                 judge.fastest, judge.summary(), tuple(failures))


def run_deactivation(machine, state, seed):
    """Deactivation, as SIGINT and SIGTERM bring it about: a stop, at least three safe outputs, then none."""
    bench, failures = Bench(machine, seed), []
    prepare(bench, state)
    bench.deactivate()
    reaction, safe = None, 0
    for turn in range(round((bench.declaration.stop_time + 0.1) / bench.period)):
        output = bench.core.step(bench.now, bench.ros_now) if bench.core.finished else bench.turn()
        if output is None:
            break
        if reaction is None and output.state in (STOPPING, STANDBY, SAFE):
            reaction = turn
        safe += not output.valid
        if bench.core.finished:
            bench.judge.was_activated(False)
    if not bench.core.finished or output is not None:
        failures.append('not finished when the time of the stop is over')
    if safe < SAFE_OUTPUTS:
        failures.append(f'{safe} safe outputs after the deactivation; expected {SAFE_OUTPUTS}')
    _start_again(bench, failures)
    return _trial(bench, 'left_running', 'deactivated', state, seed, reaction, failures)


def run_death(machine, state, seed):
    """The process ends without a word: the receiver acts when commands are older than their ttl; a new one starts."""
    bench, failures = Bench(machine, seed), []
    prepare(bench, state)
    bench.judge.was_activated(False)
    bound = round(TTL / bench.period) + CONDITIONS['controller_dead'].bound_cycles
    with bench.spoilt(core_runs=False):
        reaction = _turns_until(bench, lambda: bench.plant.safe.all(), 10 * bound)
        bench.turns(bench.rng.uniform(0.0, 0.3))
    bench.start_core()
    bench.turns(0.02)
    if bench.output is not None:
        failures.append('a new process gives outputs without an activation')
    _start_again(bench, failures)
    return _trial(bench, 'controller_dead', 'killed', state, seed, reaction, failures, bound)


def _turns_until(bench, condition, most):
    for turn in range(most):
        bench.turn()
        if condition():
            return turn
    return None


def _start_again(bench, failures):
    """Nothing moves before somebody enables, and then nothing but a new reference moves the machine."""
    bench.turns(0.05)
    at_rest = bench.plant.x.copy()
    try:
        _activate(bench)
        bench.turns(AFTER_A_START)
        refusal = enable_at_rest(bench)
        if refusal:
            failures.append(refusal)
            return
        bench.turns(AFTER_A_START)
        begin_anew(bench, at_rest, failures)
    except PsdynError as error:
        failures.append(f'{type(error).__name__}: {error}')


def _activate(bench):
    """Activate; what was missing counts as present when two attempts a probation apart find it there."""
    try:
        bench.activate()
    except SafetyError:
        bench.turns(PROBATION + 0.01)
        bench.activate()


def run_start(machine, name, seed):
    """Activation, or enabling, without what has to be there is refused; then the same with it is granted."""
    bench, failures = Bench(machine, seed), []
    if name == 'no_state':
        spoilt = {'spoil_state': lambda msg: None}
    elif name == 'no_emergency_stop':
        spoilt = {'emergency_stop': None}
    else:
        spoilt = {'spoil_pressures': lambda pressures: None}
    with bench.spoilt(**spoilt):
        bench.turns(0.05)
        for act in (bench.activate, bench.enable):
            try:
                act()
                failures.append(f'{act.__name__} was granted')
            except SafetyError:
                pass
        if bench.turn() is not None:
            failures.append('outputs before an activation')
    bench.judge.was_activated(False)
    bench.turns(0.2)
    _start_again(bench, failures)
    return _trial(bench, 'no_state_at_start', name, STANDBY, seed, None if failures else 0, failures)


def run_clock_jump(machine, state, seed):
    """The clock of the stamps is set, forward or back: no change of motion, no cycle without an output."""
    bench, failures = Bench(machine, seed), []
    prepare(bench, state)
    counted = bench.core.states.counts['clock_jump']
    jump = JUMPS[seed % len(JUMPS)]
    bench.ros_offset += round(jump * 1e9)
    states = set()
    for _ in range(60):
        output = bench.turn()
        states.add(None if output is None else output.state)
    if bench.core.states.counts['clock_jump'] != counted + 1:
        failures.append(f'a jump by {jump:g} s was told {bench.core.states.counts["clock_jump"] - counted} times')
    expected = {state} if state is not DEGRADED else {DEGRADED, RUN}
    if not states <= expected:
        failures.append(f'{", ".join(str(one) for one in states - expected)} after a jump by {jump:g} s')
    return _trial(bench, 'clock_jump', 'clock_set', state, seed, 0, failures)


# (function, what it is tried in, levels)
PROCESS_TRIALS = (
    (run_deactivation, DRIVEN, ('effort', 'valve')), (run_death, DRIVEN, ('effort', 'valve')),
    (run_clock_jump, (RUN, HOLD, DEGRADED), ('effort', 'valve')),
    (run_start, ('no_state', 'no_emergency_stop'), ('effort', 'valve')), (run_start, ('no_pressures',), ('valve',)))
