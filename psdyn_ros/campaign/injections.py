"""Faults of the table as they are put on a `Bench`: one way or several for each condition, with what must come of it.

An injection is a generator function: what stands before its `yield` brings the fault about, what comes after takes it
away. `trials.py` measures from the turn after the first part.
"""

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

from ..control.fault_table import CONDITIONS, Result, State
from ..control.singularity import ToggleGauge
from ..model.errors import StateError

MS = 1_000_000              # ns
RUN, DEGRADED, HOLD, STOPPING, STANDBY = State.RUN, State.DEGRADED, State.HOLD, State.STOPPING, State.STANDBY
DRIVEN = RUN, HOLD, DEGRADED, STOPPING
UNDER_LAW = RUN, HOLD, DEGRADED
ALL = (*DRIVEN, STANDBY)
HOUR = 3600 * 1_000_000_000


class After(Enum):
    """How a fault goes on."""

    LASTS = 'until it is taken away'
    ONCE = 'an event: over when it has happened'


@dataclass(frozen=True)
class Injection:
    """A way in which a condition is brought about.

    bring    function of a Bench, a context manager
    states   in which it is tried
    after    `After`
    levels   of the bench
    amend    declaration for it, see `Bench`
    options  of the core
    onset    function of a Bench: whether the fault has its effect at the input by now; None: from the first turn on
    conforms function of a Bench: whether the output is what it should be; None: by the demand of the row
    lies     whether the machine is made to move by what is believed wrongly, or commanded by a law that was spoilt
    lingers  s for which it counts beyond the probation when it is gone
    """

    condition: str
    name: str
    bring: object
    states: tuple = DRIVEN
    after: After = After.LASTS
    levels: tuple = ('effort', 'valve')
    amend: object = None
    options: dict = field(default_factory=dict)
    onset: object = None
    conforms: object = None
    lies: bool = False
    lingers: float = 0.0

    @property
    def row(self):
        return CONDITIONS[self.condition]


INJECTIONS = []


def injection(condition, **how):
    """Register a generator function as an injection of this condition."""
    def register(function):
        INJECTIONS.append(Injection(condition, function.__name__.strip('_'), contextmanager(function), **how))
        return function
    return register


# joint state

@contextmanager
def _state(bench, spoil):
    with bench.spoilt(spoil_state=spoil):
        yield


def _only(count, spoil):
    """`spoil` for so many messages, then what comes as it is."""
    left = [count]

    def spoilt(msg):
        left[0] -= 1
        return spoil(msg) if left[0] >= 0 else msg
    return spoilt


@injection('state_missed', states=(RUN,), after=After.ONCE)
def _some_missed(bench):
    yield from _during(_state(bench, _only(int(bench.rng.integers(3, 9)), lambda msg: None)))


@injection('state_silent')
def _no_states(bench):
    yield from _during(_state(bench, lambda msg: None))


@injection('state_lost')
def _no_states_for_long(bench):
    yield from _during(_state(bench, lambda msg: None))


@injection('state_silent', states=UNDER_LAW)
def _every_state_refused(bench):
    """What is refused does not make the input younger: the ladder goes on."""
    yield from _during(_state(bench, lambda msg: replace(msg, x=msg.x * np.nan)))


def _told_state(condition, name, spoil, **how):
    """Register a state that is refused, and leads to F01 when it lasts."""
    def bring(bench):
        yield from _during(_state(bench, lambda msg: spoil(bench, msg)))
    bring.__name__ = name
    injection(condition, **{'states': (*UNDER_LAW, STANDBY), **how})(bring)


_told_state('state_stale', 'stamp_zero', lambda bench, msg: replace(msg, stamp=0))
_told_state('state_stale', 'stamp_old', lambda bench, msg: replace(msg, stamp=msg.stamp - 25 * MS))
_told_state('state_future', 'stamp_ahead', lambda bench, msg: replace(msg, stamp=msg.stamp + 8 * MS))
_told_state('state_future', 'stamp_an_hour_ahead', lambda bench, msg: replace(msg, stamp=msg.stamp + HOUR))


def _one_not_finite(bench, msg):
    value, i = bench.rng.choice([np.nan, np.inf, -np.inf]), bench.rng.integers(msg.x.size)
    which = bench.rng.choice(['x', 'xd'])
    spoilt = getattr(msg, which).copy()
    spoilt[i] = value
    return replace(msg, **{which: spoilt})


def _enormous(bench, msg):
    return replace(msg, x=msg.x + bench.rng.choice([1e300, -1e300]))


_told_state('state_not_finite', 'one_value_not_finite', _one_not_finite)
_told_state('state_malformed', 'joints_missing',
            lambda bench, msg: replace(msg, unreadable=('state_malformed', 'joint missing')))
_told_state('state_malformed', 'arrays_too_short', lambda bench, msg: replace(msg, x=msg.x[:-1]))
_told_state('state_duplicate', 'joint_twice',
            lambda bench, msg: replace(msg, unreadable=('state_duplicate', 'joint twice')))
_told_state('velocity_missing', 'no_velocities',
            lambda bench, msg: replace(msg, unreadable=('velocity_missing', 'no velocities')))


@injection('stamp_order', states=UNDER_LAW)
def _stamps_repeat(bench):
    last = []

    def frozen(msg):
        last.append(msg.stamp)
        return replace(msg, stamp=last[0])
    yield from _during(_state(bench, frozen))


@injection('stamp_order', states=(RUN,), after=After.ONCE)
def _pairs_out_of_order(bench):
    """Messages overtake each other: three in a row are older than one that came before."""
    kept = []

    def disorder(msg):
        kept.append(msg)
        return None if len(kept) < 4 else [kept[3], *kept[:3]] if len(kept) == 4 else msg
    yield from _during(_state(bench, disorder))


@injection('state_jump', states=DRIVEN)
def _a_step_that_lasts(bench):
    i, size = bench.rng.integers(4), bench.rng.choice([-1.0, 1.0]) * bench.rng.uniform(0.05, 0.5)
    step = size * np.eye(4)[i]
    yield from _during(_state(bench, lambda msg: replace(msg, x=msg.x + step)))


@injection('state_jump', states=UNDER_LAW)
def _absurd_positions(bench):
    yield from _during(_state(bench, lambda msg: _enormous(bench, msg)))


def _moves(bench, factor):
    """Whether the reference of some coordinate is faster than freeze_speed times a factor."""
    return np.abs(bench.law.desired[1]).max() > factor * bench.declaration.plausibility.freeze_speed


@injection('state_frozen', states=(RUN,), lies=True, after=After.ONCE)
def _one_position_frozen(bench):
    i = int(np.argmax(np.abs(bench.law.desired[1])))
    frozen = []

    def freeze(msg):
        frozen.append(msg.x[i])
        x, xd = msg.x.copy(), msg.xd.copy()
        x[i] = frozen[0]
        xd[i] = 0.0
        return replace(msg, x=x, xd=xd)
    yield from _during(_state(bench, freeze))


def _velocity_bias(share):
    def bring(bench):
        i, sign = bench.rng.integers(4), bench.rng.choice([-1.0, 1.0])
        bias = np.eye(4)[i] * sign * share * bench.declaration.plausibility.velocity_residual
        yield from _during(_state(bench, lambda msg: replace(msg, xd=msg.xd + bias)))
    return bring


def _velocities_off(bench):
    yield from _velocity_bias(3.0)(bench)


def _velocities_a_little_off(bench):
    yield from _velocity_bias(0.75)(bench)


injection('velocity_residual', states=UNDER_LAW, lies=True)(_velocities_off)
injection('velocity_suspect', states=UNDER_LAW, lies=True)(_velocities_a_little_off)


def _residual(share):
    def bring(bench):
        residual = share * bench.declaration.plausibility.closure_tolerance
        yield from _during(_state(bench, lambda msg: replace(msg, residual=residual)))
    return bring


def _loops_disagree(bench):
    yield from _residual(1.5)(bench)


def _loops_disagree_a_little(bench):
    yield from _residual(0.75)(bench)


def _residual_not_finite(bench):
    yield from _residual(np.nan)(bench)


injection('closure_residual')(_loops_disagree)
injection('closure_residual', states=UNDER_LAW)(_residual_not_finite)
injection('closure_suspect', states=UNDER_LAW)(_loops_disagree_a_little)


@injection('branch_flip', states=UNDER_LAW)
def _another_assembly_mode(bench):
    m = bench.machine.manipulator
    joints = ('lift_boom', *m.coordinates)
    bench.core.inputs.checks.measure(joints)
    columns = [m.joints.index(name) for name in joints]

    def measured(msg):
        positions = m.joint_state(msg.x)[1][columns]
        positions[0] = np.pi - positions[0]
        return replace(msg, positions=positions)
    yield from _during(_state(bench, measured))


# pressures

@injection('pressures_silent', levels=('valve',))
def _no_pressures(bench):
    yield from _during(bench.spoilt(spoil_pressures=lambda pressures: None))


@injection('pressures_not_finite', levels=('valve',), states=(*UNDER_LAW, STANDBY))
def _a_pressure_not_finite(bench):
    def spoil(pressures):
        values = pressures[0].copy()
        values.flat[bench.rng.integers(values.size)] = bench.rng.choice([np.nan, np.inf])
        return values, pressures[1]
    yield from _during(bench.spoilt(spoil_pressures=spoil))


# mechanism and actuators

def _clamped_outward(bench):
    """Whether no command of the last output pushes further into an end stop than what holds the load."""
    m = bench.machine.manipulator
    margin, x = bench.declaration.soft_margin, bench.plant.x
    excess = bench.output.command - bench.law.holding(x)
    slack = 1e-6 * bench.declaration.command_limit
    near_upper, near_lower = x > m.limits.upper - 0.5 * margin, x < m.limits.lower + 0.5 * margin
    return not ((excess > slack) & near_upper | (excess < -slack) & near_lower).any()


@contextmanager
def _law(bench, update):
    with bench.law_spoilt(update):
        yield


def _wide_margin(declaration, machine):
    """Soft margins of the end stops so wide that the machine starts within that of its telescope."""
    m, margin = machine.manipulator, declaration.soft_margin.copy()
    margin[-1] = m.initial_position[-1] - m.limits.lower[-1] + 0.05
    return replace(declaration, soft_margin=margin)


@injection('end_stop', states=(HOLD,), amend=_wide_margin, lies=True, conforms=_clamped_outward)
def _pushed_towards_an_end_stop(bench):
    outward = -0.2 * bench.declaration.command_limit * np.eye(4)[-1]
    yield from _during(_law(bench, lambda command: command + outward))


@injection('clamped', states=UNDER_LAW, after=After.ONCE, lies=True)
def _a_command_too_large(bench):
    """Once: lasting, it would throw the machine about, and what is tested then are other conditions."""
    limit, left = bench.declaration.command_limit, [1]

    def too_large(command):
        left[0] -= 1
        return command + 3.0 * limit * np.sign(command + 1e-30) if left[0] >= 0 else command
    yield from _during(_law(bench, too_large))


def _bad_output(name, spoil):
    def bring(bench):
        yield from _during(_law(bench, lambda command: spoil(bench, command)))
    bring.__name__ = name
    # a ramp to rest does not ask the law: nothing bad comes out of it
    injection('output_rejected', states=UNDER_LAW)(bring)


def _with(value):
    def spoil(bench, command):
        command = command.copy()
        command[bench.rng.integers(command.size)] = value
        return command
    return spoil


_bad_output('law_gives_nan', _with(np.nan))
_bad_output('law_gives_infinity', _with(-np.inf))
_bad_output('law_gives_too_few', lambda bench, command: command[:-1])
_bad_output('law_gives_a_scalar', lambda bench, command: np.float64(0.0))
_bad_output('law_gives_integers', lambda bench, command: command.astype(int))
_bad_output('law_gives_nothing', lambda bench, command: None)


@injection('saturated', states=(RUN,), lies=True, amend=lambda declaration, machine: replace(
    declaration, tracking_tolerance=np.full(4, 0.5)))
def _clipped_while_the_error_grows(bench):
    """The law says that it is clipped, and gives what holds: the machine falls behind its reference."""
    def clipped(command):
        bench.law.saturations += 1
        return 0.5 * command + 0.5 * bench.law.holding(bench.plant.x)
    yield from _during(_law(bench, clipped))


# reference

def _off(bench):
    """Whether the last state handed over was off its reference by more than is tolerated."""
    desired = bench.law.desired
    return desired is not None and bool(
        (np.abs(desired[0] - bench.core.inputs.checks.x) > bench.declaration.tracking_tolerance).any())


@injection('tracking', states=(RUN,), lies=True, onset=_off, after=After.ONCE)
def _the_machine_does_not_follow(bench):
    yield from _during(_law(bench, lambda command: bench.law.holding(bench.plant.x)))


def _stream(bench, seconds, velocity, until=lambda bench: False):
    """Hand over a point each turn, that moves from where the reference is at a velocity (dof,) reached smoothly."""
    core, position = bench.core, np.array(bench.law.desired[0])
    rate = np.zeros_like(position)
    for _ in range(round(seconds / bench.period)):
        if until(bench):
            break
        rate += 0.02 * (velocity - rate)
        position = position + rate * bench.period
        core.take_point(bench.ros_now, bench.now, position, rate)
        bench.judge.took_reference()
        bench.turn()


@injection('stream_silent', states=(HOLD,), after=After.ONCE)
def _a_stream_that_stops(bench):
    _stream(bench, 0.3, 0.1 * bench.machine.rated * bench.rng.choice([-1.0, 1.0], bench.machine.rated.size))
    yield


@contextmanager
def _gauge_falls(bench):
    """Let the distance from a singularity be right below its second threshold, and fall the way the reference goes."""
    stop, begin = bench.declaration.plausibility.sigma_stop, bench.plant.x.copy()
    rate = bench.law.desired[1] / np.linalg.norm(bench.law.desired[1])
    measure = ToggleGauge.__call__
    ToggleGauge.__call__ = lambda gauge, x: (0.99 * stop - 0.1 * float(rate @ (x - begin)), 'injected')
    try:
        yield
    finally:
        ToggleGauge.__call__ = measure


@injection('singular', states=(RUN, DEGRADED))
def _near_a_singularity(bench):
    yield from _during(_gauge_falls(bench))


@injection('singular_near', states=(RUN,))
def _towards_a_singularity(bench):
    """The reference is slowed down, to a tenth of its speed at the second threshold."""
    with _gauge_falls(bench):
        at_stop = ToggleGauge.__call__
        gap = bench.declaration.plausibility.sigma_slow - bench.declaration.plausibility.sigma_stop
        ToggleGauge.__call__ = lambda gauge, x: (at_stop(gauge, x)[0] + 0.5 * gap, 'injected')
        yield
        if not bench.law.reference.speed_target < 0.9:
            raise StateError(f'the reference goes at {bench.law.reference.speed_target:g} of its speed')


# run time

@injection('exception', states=UNDER_LAW, after=After.ONCE)
def _an_exception_in_the_law(bench):
    def fail(command):
        raise bench.rng.choice([RuntimeError, ZeroDivisionError, KeyError])('injected')
    yield from _during(_law(bench, fail))


@injection('exception', after=After.ONCE)
def _an_exception_in_a_callback(bench):
    bench.core.fail(bench.now, 'injected')
    yield


@contextmanager
def _late(bench, turns):
    """So many turns without a cycle."""
    with bench.spoilt(core_runs=False):
        for _ in range(turns):
            bench.turn()
    yield


@injection('overrun', states=(RUN,), after=After.ONCE, lingers=1.0)
def _cycles_too_late(bench):
    yield from _during(_late(bench, int(bench.rng.integers(3, 9))))


@injection('output_late', states=UNDER_LAW, after=After.ONCE, lingers=1.0)
def _no_cycle_for_long(bench):
    yield from _during(_late(bench, int(bench.rng.integers(12, 30))))


@injection('clock_paused', states=(RUN,), options={'simulated_time': True})
def _simulated_time_stands_still(bench):
    """As it does when a simulation is paused: states do not come either, and time goes on from where it stood."""
    began, stands = bench.now, bench.ros_now
    yield from _during(bench.spoilt(clock_stands=stands, spoil_state=lambda msg: None))
    bench.ros_offset -= bench.now - began


@injection('clock_reset', states=UNDER_LAW, options={'simulated_time': True}, after=After.ONCE)
def _simulated_time_goes_back(bench):
    bench.ros_offset -= int(bench.rng.choice([50, 1000, 3_600_000])) * MS
    yield


@injection('rival_commands', after=After.LASTS)
def _another_publisher_of_commands(bench):
    yield from _during(_reported(bench, 'rival_commands'))


@contextmanager
def _reported(bench, condition):
    """A condition that only the node can see, told before every turn."""
    def tell(msg):
        bench.core.report(bench.now, condition, Result.FAIL, 'injected')
        return msg
    with bench.spoilt(spoil_state=tell):
        yield
    bench.core.report(bench.now, condition, Result.PASS)


@injection('emergency_stop', states=ALL)
def _stop_pressed(bench):
    yield from _during(bench.spoilt(emergency_stop=True))


@injection('emergency_stop', states=ALL)
def _stop_silent(bench):
    yield from _during(bench.spoilt(emergency_stop=None))


def _during(context):
    """The context as a generator: entered before the yield, left after it."""
    with ExitStack() as stack:
        stack.enter_context(context)
        yield
