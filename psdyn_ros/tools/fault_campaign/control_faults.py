"""Injections into the law and its reference, the cycles, the clocks, and the emergency stop."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ...control.monitors.singularity import ToggleGauge
from ...model.errors import StateError
from ...model.units import MILLISECOND
from .injection import ALL, DEGRADED, HOLD, RUN, UNDER_LAW, After, during, injection

RISE = 0.15                 # s in which streamed points get to their velocity
STREAMED, SOUND_STREAM = 0.3, 1.5       # s of a stream that stops, and of one that goes on
COASTING = 0.005            # m or rad that a machine may still go which is at its safe output for a tenth of a second
GIVEN = 0.6                 # of what moves a machine with friction or oil, by a law that is clipped


# mechanism and actuators

def _clamped_outward(bench):
    """Whether no command of the last output pushes further into an end stop than what holds the load."""
    m = bench.machine.manipulator
    margin, x = bench.declaration.soft_margin, bench.plant.x
    excess = bench.output.command - bench.law.holding(x)
    slack = 1e-6 * bench.declaration.command_limit
    near_upper, near_lower = x > m.limits.upper - 0.5 * margin, x < m.limits.lower + 0.5 * margin
    return not ((excess > slack) & near_upper | (excess < -slack) & near_lower).any()


def _wide_margin(declaration, machine):
    """Soft margins of the end stops so wide that the machine starts within that of its telescope."""
    m, margin = machine.manipulator, declaration.soft_margin.copy()
    margin[-1] = m.initial_position[-1] - m.limits.lower[-1] + 0.05
    return replace(declaration, soft_margin=margin)


@injection('end_stop', states=(HOLD,), amend=_wide_margin, lies=True, conforms=_clamped_outward)
def _pushed_towards_an_end_stop(bench):
    outward = -0.05 * bench.declaration.command_limit * np.eye(bench.declaration.command_limit.size)[-1]
    yield from during(bench.law_spoilt(lambda command: command + outward))


@injection('clamped', states=UNDER_LAW, after=After.ONCE, lies=True)
def _a_command_too_large(bench):
    """Once: lasting, it would throw the machine about, and what is tested then are other conditions."""
    limit, left = bench.declaration.command_limit, [1]

    def too_large(command):
        left[0] -= 1
        return command + 3.0 * limit * np.sign(command + 1e-30) if left[0] >= 0 else command
    with bench.unrestrained():
        yield from during(bench.law_spoilt(too_large))


def _bad_output(name, spoil):
    def bring(bench):
        yield from during(bench.law_spoilt(lambda command: spoil(bench, command)))
    bring.__name__ = name
    # a ramp to rest does not ask the law: nothing bad comes out of it
    injection('output_rejected', states=UNDER_LAW)(bring)


def _with(value):
    def spoil(bench, command):
        command = command.copy()
        command[bench.fault_rng.integers(command.size)] = value
        return command
    return spoil


_bad_output('law_gives_nan', _with(np.nan))
_bad_output('law_gives_infinity', _with(-np.inf))
_bad_output('law_gives_too_few', lambda bench, command: command[:-1])
_bad_output('law_gives_a_scalar', lambda bench, command: np.float64(0.0))
_bad_output('law_gives_integers', lambda bench, command: command.astype(int))
_bad_output('law_gives_nothing', lambda bench, command: None)


@injection('saturated', states=(RUN,), lies=True, amend=lambda declaration, machine: replace(
    declaration, tracking_tolerance=np.full_like(declaration.tracking_tolerance, 0.02)))
def _clipped_while_the_error_grows(bench):
    """The law says that it is clipped, and gives less than it wants: the machine falls behind its reference."""
    def clipped(command):
        bench.law.saturations += 1
        holding = bench.law.holding(bench.plant.x)
        return holding + (GIVEN if bench.machine.hydraulics else 0.0) * (command - holding)
    with bench.unrestrained():      # the integral of a law that is not clipped by itself is another fault
        yield from during(bench.law_spoilt(clipped))


# reference

def _off(bench):
    """Whether the last state handed over was off its reference by more than is tolerated."""
    if bench.law.desired is None:
        return False
    off = bench.desired[0] - bench.actuators.positions(bench.core.inputs.state_check.x)
    return bool((np.abs(off) > bench.declaration.tracking_tolerance).any())


@injection('tracking', states=(RUN,), lies=True, onset=_off, after=After.ONCE)
def _the_machine_does_not_follow(bench):
    yield from during(bench.law_spoilt(lambda command: bench.law.holding(bench.plant.x)))


def _stream(bench, seconds):
    """Hand over a point each turn, that moves from where the reference is at a tenth of the rated speeds."""
    rated = bench.machine.manipulator.coordinate_limits.velocity
    velocity = 0.1 * rated * bench.fault_rng.choice([-1.0, 1.0], rated.size)
    core, start, began = bench.core, np.array(bench.law.desired[0]), bench.ros_now
    for _ in range(round(seconds / bench.period)):
        t = (bench.ros_now - began) * 1e-9
        s = min(t / RISE, 1.0)
        # smoothstep of the velocity, with its integral and its derivative
        way = RISE * (s**3 - 0.5 * s**4) + max(0.0, t - RISE)
        point = way * velocity, (3.0 * s**2 - 2.0 * s**3) * velocity, 6.0 * s * (1.0 - s) / RISE * velocity
        core.take_point(bench.ros_now, bench.now, start + point[0], *point[1:])
        bench.judge.took_reference()
        bench.turn()


@injection('stream_silent', states=(HOLD,), after=After.ONCE, sound=lambda bench: _stream(bench, SOUND_STREAM))
def _a_stream_that_stops(bench):
    _stream(bench, STREAMED)
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
    yield from during(_gauge_falls(bench))


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
        raise bench.fault_rng.choice([RuntimeError, ZeroDivisionError, KeyError])('injected')
    yield from during(bench.law_spoilt(fail))


@contextmanager
def _late(bench, turns):
    """So many turns without a cycle."""
    with bench.spoilt(core_runs=False):
        for _ in range(turns):
            bench.turn()
    yield


@injection('overrun', states=(RUN,), after=After.ONCE, lingers=1.0)
def _cycles_too_late(bench):
    yield from during(_late(bench, int(bench.fault_rng.integers(3, 9))))


@injection('output_late', states=UNDER_LAW, after=After.ONCE, lingers=1.0)
def _no_cycle_for_long(bench):
    yield from during(_late(bench, int(bench.fault_rng.integers(12, 30))))


@injection('output_lost', states=UNDER_LAW, after=After.ONCE, lingers=1.0)
def _no_cycle_for_longer(bench):
    """The receiver has brought the machine to rest by then, and no output may move it again."""
    with bench.spoilt(core_runs=False):
        bench.turns(bench.period * int(bench.fault_rng.integers(52, 300)))
    before = bench.plant.x.copy()
    yield
    moved = np.abs(bench.plant.x - before).max()
    if moved > COASTING:
        raise StateError(f'the machine moved by {moved:.3g} after it')


@injection('clock_paused', states=(RUN,), options={'simulated_time': True})
def _simulated_time_stands_still(bench):
    """As it does when a simulation is paused: states do not come either, and time goes on from where it stood."""
    began, stands = bench.now, bench.ros_now
    yield from during(bench.spoilt(clock_stands=stands, spoil_state=lambda msg: None))
    bench.ros_offset -= bench.now - began


@injection('clock_stands', states=UNDER_LAW)
def _steady_clock_stands_still(bench):
    yield from during(bench.spoilt(steady_stands=bench.now))


@injection('clock_reset', states=UNDER_LAW, options={'simulated_time': True}, after=After.ONCE)
def _simulated_time_goes_back(bench):
    bench.ros_offset -= int(bench.fault_rng.choice([50, 1000, 3_600_000])) * MILLISECOND
    yield


@injection('emergency_stop', states=ALL)
def _stop_pressed(bench):
    yield from during(bench.spoilt(emergency_stop=True))


@injection('emergency_stop', states=ALL)
def _stop_silent(bench):
    yield from during(bench.spoilt(emergency_stop=None))
