"""Sensors that lie and laws that fail, on a plant that is not the package's: what is noticed, how soon, what moves."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import thorough
from support.control.restraint import UNLOADED, restraint_of
from support.control.spoilt_measurements import FAULT_S, drifting_state, ever, once, one_pressure

from psdyn_ros.api.load import load
from psdyn_ros.control import SafetyError, State
from psdyn_ros.control.laws.computed_torque import ComputedTorque, PdGravity
from psdyn_ros.control.monitors.speed import SpeedCheck
from psdyn_ros.control.monitors.tracking import EffortCheck
from psdyn_ros.tools.fault_campaign.bench import Bench, make_machine
from psdyn_ros.tools.fault_campaign.fault_trials import OPERATOR
from psdyn_ros.tools.studies.judgement import FORCES, START, URDF, VALVES, closed_loop, configuration, point_to_point
from psdyn_ros.tools.studies.second_plant import PERFECT

LIFT = 1            # row of the actuator; its cylinder is the first


@cache
def moving():
    """Speed (actuators,) [m/s, rad/s] at the time of the fault where there is none."""
    loop = run(None, seconds=0.1)
    record = loop.recording()
    return record.speed[record.time >= FAULT_S][0]


def run(change, law=VALVES, seconds=1.5, spoil_law=None, motion=True):
    """A loop with a fault in the middle of a move."""
    loop = closed_loop(law, change=change)
    if motion:
        loop.send(point_to_point(5.0, (0.3, 0.2, -0.15, 0.5)))
    loop.run(FAULT_S - loop.time)
    if spoil_law:
        update = loop.core.law.update
        loop.core.law.update = lambda *given, **named: spoil_law(update(*given, **named))
    loop.run(seconds)
    return loop


def after(loop):
    """(s to the stop, first reasons, largest speed of the cylinders [m/s], s of full spools) after the fault."""
    record = loop.recording()
    late = record.time >= FAULT_S
    stopped = record.time[late][record.state[late] >= State.STOPPING]
    names = [set(texts) for time, texts in record.reasons if time >= FAULT_S - 1e-9 and texts]
    return (stopped[0] - FAULT_S if stopped.size else None, set().union(*names) if names else set(),
            record.speed[late, 1:].max(), (np.abs(record.spool[late]) > 0.95).sum(axis=0).max(initial=0) * loop.period)


@pytest.mark.parametrize(('cylinder', 'chamber'), [(2, 0), *(pytest.param(k, port, marks=pytest.mark.long)
                                                             for k, port in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 1)))])
def test_an_impossible_pressure_that_stays_stops_the_machine_within_three_messages(cylinder, chamber):
    time, names, speed, full = after(run(ever('pressures', FAULT_S, one_pressure(-2.5e7, cylinder, chamber))))
    assert time <= 0.008 and 'pressure_impossible' in names
    assert speed <= 1.1 * moving()[1:].max() and full == 0.0


@pytest.mark.long
@pytest.mark.parametrize(('field', 'spoil'), [
    ('pressures', one_pressure(-2.5e7, 0, 0)), ('supply', lambda value, *_: 0.0)], ids=['chamber', 'supply'])
def test_an_impossible_pressure_that_comes_once_is_passed_over(field, spoil):
    time, names, speed, full = after(run(once(field, FAULT_S, spoil), seconds=0.5))
    assert time is None and not names and speed <= 1.01 * moving()[1:].max() and full == 0.0


def test_a_pressure_that_may_be_and_comes_once_moves_no_valve():
    """The valves of the excavator let oil take the pressure of a chamber off within 10 ms."""
    machine, speeds, of_arm = make_machine('valve', 'excavator', rate=100.0), [], one_pressure(0.0, 2, 0)
    for lies in (False, True):
        bench = Bench(machine, 0)
        bench.turns(OPERATOR)
        bench.activate()
        bench.enable()
        bench.turns(OPERATOR)
        bench.follow(bench.motion(2.0))
        bench.turns(0.8)
        with bench.spoilt(spoil_pressures=(lambda given: (of_arm(given[0]), given[1])) if lies else None):
            bench.turn()
        bench.turns(0.4)
        assert bench.core.states.counts['pressure_impossible'] == lies
        speeds.append([point.xd for point in bench.path])
        assert bench.core.states.state is State.RUN
    assert np.abs(np.diff(speeds, axis=0)).max() < 0.005


@pytest.mark.long
@pytest.mark.parametrize(('field', 'spoil'), [
    pytest.param('supply', lambda value, *_: 0.0, id='no supply', marks=pytest.mark.long),
    pytest.param('pressures', lambda p, *_: p[:, ::-1].copy(), id='swapped ports'),
    pytest.param('pressures', lambda p, *_: 1e-5 * p, id='in bar', marks=pytest.mark.long)])
def test_pressures_that_no_oil_follows_stop_the_machine(field, spoil):
    time, names, speed, full = after(run(ever(field, FAULT_S, spoil)))
    assert time <= 0.008 and 'pressure_impossible' in names
    assert speed <= 1.1 * moving()[1:].max() and full == 0.0


@pytest.mark.long
def test_a_stuck_pressure_is_noticed_where_the_other_one_of_its_cylinder_changes():
    held = []

    def stick(p, *_):
        held.append(p[0, 0])
        p[0, 0] = held[0]
        return p
    time, names, speed, _ = after(run(ever('pressures', FAULT_S, stick), seconds=2.5))
    assert 'pressure_frozen' in names and time <= 2.5 and speed <= 1.1 * moving()[1:].max()


@pytest.mark.parametrize('rate', thorough([0.04, -0.04], 1))
@pytest.mark.parametrize('motion', [True, pytest.param(False, marks=pytest.mark.long)], ids=['moving', 'holding'])
def test_an_encoder_that_drifts_by_40_mm_per_s_is_noticed_within_a_second_by_the_flow(motion, rate):
    time, names, speed, _ = after(run(drifting_state(rate, FAULT_S), motion=motion))
    assert time <= 1.0 and names & {'flow_residual', 'speed_error', 'not_standing'}
    assert speed <= (1.15 * moving()[1:].max() if motion else 0.04)      # it follows the drift until it is seen


@pytest.mark.parametrize(('name', 'spoil'), [
    pytest.param('backwards', lambda u: np.where(np.arange(4) == LIFT, -1.0, u), id='backwards'),
    pytest.param('negated', lambda u: np.r_[u[0], -u[1:]], id='negated', marks=pytest.mark.long),
    pytest.param('shut', lambda u: np.r_[u[0], 0.0, 0.0, 0.0], id='shut', marks=pytest.mark.long)])
def test_a_law_that_fails_is_stopped_within_60_ms_and_its_spool_is_never_full_for_20_ms(name, spoil):
    time, names, speed, full = after(run(None, spoil_law=spoil))
    assert time <= 0.06 and names & {'command_suspect', 'force_residual', 'speed_error', 'overspeed'}
    assert full < 0.02


@pytest.mark.parametrize('law', thorough([VALVES, FORCES], 1))
@pytest.mark.parametrize('motion', [True, pytest.param(False, marks=pytest.mark.long)], ids=['moving', 'holding'])
@pytest.mark.parametrize(('name', 'spoil'), thorough([
    ('full', lambda u: np.r_[3e4, u[1:]]), ('backwards', lambda u: np.r_[-3e4, u[1:]]),
    ('negated', lambda u: np.r_[-u[0], u[1:]])], 1, several=True),
    ids=lambda value: value if isinstance(value, str) else '')
def test_a_failing_effort_hardly_moves_the_slew(law, motion, name, spoil):
    loop = run(None, law, seconds=0.0, motion=motion)
    before = max(loop.recording().speed[-1, 0], 0.02)
    loop = run(None, law, spoil_law=spoil, motion=motion)
    record = loop.recording()
    late = record.time >= FAULT_S
    assert record.state[-1] == State.SAFE and {'effort_suspect', 'not_standing'} & after(loop)[1]
    # one that is negated differs from a sound one only when errors have grown
    assert record.speed[late, 0].max() <= (1.15 if name != 'negated' else 1.4 if motion else 3.0) * before


@pytest.mark.long
def test_a_sound_law_at_force_level_is_not_restrained():
    loop = closed_loop(FORCES)
    off = restraint_of(loop.core.checks[EffortCheck])
    loop.send(point_to_point(3.2, (0.5, 0.2, -0.15, 0.5)))
    loop.run(4.0)
    assert len(off) > 1500 and not np.any(off)


@pytest.mark.parametrize(('asked', 'kept'), [(0.9, 0.9), (1.5, 0.5), (3.0, 0.0)], ids=['within', 'beyond', 'far'])
@pytest.mark.parametrize('rate', thorough([0.01, 0.0, 0.03], 1))
def test_an_effort_counts_less_the_farther_its_acceleration_is_off(asked, kept, rate):
    """In shares of a quarter of the declared acceleration, of which less is left beyond the speed of the reference, and
    some is demanded back: that of the feedback by the gains."""
    loop = run(None, FORCES, seconds=0.0, motion=False)
    law, m, declared = loop.core.law, loop.core.manipulator, loop.core.declaration
    check, xd = loop.core.checks[EffortCheck], np.r_[rate, 0.0, 0.0, 0.0]
    check.restart()
    law.hold(START)
    law.update(loop.core.inputs.time, START, xd)
    away, left = 0.25 * declared.acceleration[0], max(1.0 - rate / declared.standstill_speed[0], 0.0)
    command = m.inverse_dynamics(START, xd, np.r_[asked * away, 0.0, 0.0, 0.0])
    check.restrain(command, SimpleNamespace(estimated=(START, xd), time=loop.core.inputs.time, state=State.RUN))
    if rate:
        back = -law.effort_gains[1, 0] * rate / away
        most = left + 0.25 * back
        off = asked - most
        kept = asked if off <= 0.0 else back + (most - back) * max(1.0 - off, 0.0)
    assert m.forward_dynamics(START, xd, command)[0] == pytest.approx(kept * away, rel=1e-6, abs=1e-6)


def test_an_effort_is_not_judged_for_a_law_without_the_model():
    manipulator = load(URDF)
    config = configuration(FORCES)
    law = PdGravity(manipulator, np.full(4, 400.0), np.full(4, 40.0))
    assert not EffortCheck(config, law).required and EffortCheck(config, ComputedTorque(
        manipulator, np.full(4, 400.0), np.full(4, 40.0))).required


@pytest.mark.long
def test_a_force_far_from_that_of_the_model_slows_the_machine_down():
    def add(p, since):
        p[0, 0] += 5.5e6 * min(since / 0.1, 1.0)
        return p
    loop = run(ever('pressures', FAULT_S, add), seconds=0.3)
    assert after(loop)[1] & {'force_suspect', 'force_residual', 'command_suspect'}


@pytest.mark.long
def test_a_stop_under_a_law_that_goes_on_becomes_a_ramp():
    loop = run(None, seconds=0.0)
    loop.core.disable(loop.now)
    loop.run(0.05)
    law, last = loop.core.law, loop.output.command.copy()
    update = law.update
    law.update = lambda *given, **named: 0.0 * update(*given, **named) + last
    loop.run(1.0)
    record = loop.recording()
    found = set().union(*(texts for _, texts in record.reasons))
    assert {'stop_failing', 'command_frozen', 'command_suspect', 'effort_suspect'} & found
    assert record.state[-1] == State.SAFE and record.speed[-1, 1:].max() < 0.1


@pytest.mark.long
def test_a_ramp_is_not_cut_off_where_states_stay_away():
    loop = run(None, seconds=0.0)
    core, begin = loop.core, loop.time
    loop.change = lambda time, measured: None
    loop.run(1.5)
    record = loop.recording()
    ramped = record.time[(record.time > begin) & (record.state == State.STOPPING)]
    assert ramped[-1] - ramped[0] > 0.3 and core.states.state is State.SAFE
    assert record.speed[record.time > begin + 1.0, 1:].max() < 0.02


@pytest.mark.long
def test_a_lasting_step_of_a_pressure_is_taken_while_nothing_commands_the_machine():
    loop = run(ever('pressures', FAULT_S, lambda p, *_: p + 0.0), seconds=0.0)
    core = loop.core
    core.disable(loop.now)
    loop.run(1.0)
    assert core.states.state is State.STANDBY

    one = core.law.cylinders[0]

    def step(p, *_):
        p[0] += 5e6 * np.array([1.0, one['area_a'] / one['area_b']])        # both hold the load as before
        return p
    loop.change = ever('pressures', loop.time, step)
    loop.run(1.5)
    try:
        core.enable(loop.now)
    except SafetyError as error:
        pytest.fail(str(error))


class Standing:
    """What the check of speeds looks at, with one rate of the slew and a reference that rests or moves."""

    def __init__(self, period):
        self.period, self.under_law, self.state = period, True, State.HOLD
        self.x, self.rates, self.reference_rate, self.command = START, np.zeros(4), np.zeros(4), np.zeros(4)


@pytest.mark.parametrize(('asked', 'states'), [(0.0, 20), (0.1, 60)])
def test_a_slip_that_no_opening_asks_for_is_no_motion_but_one_that_lasts_is(asked, states):
    """4 mm at 0.1 m/s, as far as the oil springs back; at rest 0.03 m/s are allowed."""
    for moving, stopped in ((4, asked > 0.0), (states, True)):
        check, seen = SpeedCheck(configuration(VALVES), UNLOADED), Standing(0.01)
        seen.command[3] = asked / 0.3
        assert not any(check.evaluate(seen) for _ in range(60))
        seen.rates = np.array([0.0, 0.0, 0.0, 0.1])
        found = [bool(check.evaluate(seen)) for _ in range(moving)]
        seen.rates = np.zeros(4)
        assert any(found + [bool(check.evaluate(seen)) for _ in range(20)]) is stopped


def test_a_machine_that_stood_stops_where_it_begins_to_move_but_not_while_it_swings():
    check, seen = SpeedCheck(configuration(FORCES), UNLOADED), Standing(0.01)
    for k in range(200):        # it swings from a motion: it does not stand yet
        seen.rates[0] = 0.03 * np.cos(2.0 * np.pi * 1.6 * 0.01 * k)
        assert not check.evaluate(seen)
    seen.rates[0] = 0.0
    assert not any(check.evaluate(seen) for _ in range(60))
    seen.rates[0] = 0.028          # less than 1.5 times the speed of standstill, 0.02 rad/s
    assert not any(check.evaluate(seen) for _ in range(60))
    seen.rates[0] = 0.05
    found = [bool(check.evaluate(seen)) for _ in range(10)]
    assert found.index(True) <= 6 and check.evaluate(seen)[0].condition == 'not_standing'
    seen.reference_rate = np.array([0.02, 0.0, 0.0, 0.0])
    assert not check.evaluate(seen)


@pytest.mark.parametrize('axis', [0, 3])
def test_a_noisy_position_that_freezes_at_rest_moves_no_axis_F09(rng, axis):
    """By the last of its noise an axis at force level would be accelerated for ever."""
    held = []

    def frozen(time, measured):
        x = measured.x + rng.normal(0.0, 2e-5, 4)
        if time > 1.5:
            held.append(x[axis])
            x[axis] = held[0]
        return measured._replace(x=x)
    loop = closed_loop(FORCES, change=frozen)
    record = loop.run(4.0 - loop.time).recording()
    when, reasons = record.reasons[0]
    assert 1.5 < when < 1.65 and set(reasons) == {'state_frozen'}
    assert record.speed.max() < 5e-3


def test_a_frozen_sensor_whose_noise_is_below_the_step_of_its_position_moves_no_axis_F09(rng):
    """Its velocity is that of the last noise, for ever: the telescope was driven at 0.1 m/s."""
    held = []

    def frozen(time, measured):
        x, xd = 1e-4 * np.round(measured.x / 1e-4), measured.xd + rng.normal(0.0, 5e-4, 4)
        if time > 1.5:
            held.append((x[3], xd[3]))
            x[3], xd[3] = held[0]
        return measured._replace(x=x, xd=xd)
    loop = closed_loop(FORCES, change=frozen)
    record = loop.run(4.0 - loop.time).recording()
    when, reasons = record.reasons[0]
    assert 1.5 < when < 1.65 and set(reasons) == {'state_frozen'}
    assert record.speed.max() < 5e-3


@pytest.mark.parametrize('lost', [0.0, 2e-3])
def test_a_velocity_that_is_zero_below_some_speed_is_not_frozen_F09(rng, lost):
    """As after a motion whose last creeping was noisy, of an encoder whose step is coarser."""
    def measure(time, measured):
        noise = rng.normal(0.0, 5e-4, 4) + (3e-3 if time < 2.0 else 0.0)
        xd = measured.xd + noise
        return measured._replace(x=1e-3 * np.round(measured.x / 1e-3), xd=np.where(np.abs(xd) < lost, 0.0, xd))
    loop = closed_loop(VALVES, sensors=PERFECT)
    loop.change = measure
    loop.run(3.0 - loop.time)
    assert not any('state_frozen' in reasons for _, reasons in loop.recording().reasons)


@pytest.mark.parametrize('noise', [0.0, 0.3])
@pytest.mark.parametrize('step', [1e-5, 1e-3])
def test_a_position_whose_noise_is_below_its_step_may_stay_the_same_F09(rng, step, noise):
    """As that of a machine that swings or creeps, and then stands, between two steps of its encoder."""
    def coarse(time, measured):
        swing = 2.0 * step * np.sin(30.0 * time) if time < 2.0 else 0.0
        flicker = rng.normal(0.0, noise * step, 4) if time < 2.0 else 0.0
        return measured._replace(x=step * np.round((measured.x + swing + flicker) / step))
    loop = closed_loop(VALVES, sensors=PERFECT)
    loop.change = coarse
    loop.run(2.5 - loop.time)
    assert not any('state_frozen' in reasons for _, reasons in loop.recording().reasons)
