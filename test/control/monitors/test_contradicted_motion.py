"""Forces, openings and speeds that contradict each other, on a plant that is not the package's."""

from collections import deque
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import thorough
from scipy.signal import lfilter
from support.control.restraint import UNLOADED, restraint_of
from support.control.spoilt_measurements import FAULT_S, ever

from psdyn_ros.api.hydraulics.statics import equilibrium_state
from psdyn_ros.control import SafetyError, State
from psdyn_ros.control.monitors.momentum import MomentumCheck
from psdyn_ros.control.monitors.openings import OpeningCheck
from psdyn_ros.control.monitors.speed import SwingCheck
from psdyn_ros.kernels.control import error_range
from psdyn_ros.kernels.control.effort_range import evaluate_efforts
from psdyn_ros.kernels.control.valve_inversion import command_for
from psdyn_ros.kernels.hydraulics.records import PRESSURE_A, PRESSURE_B
from psdyn_ros.kernels.runtime.buffer import views
from psdyn_ros.model.units import SECOND
from psdyn_ros.tools.demo.demonstration import demonstration
from psdyn_ros.tools.fault_campaign.bench import Bench, make_machine
from psdyn_ros.tools.fault_campaign.fault_trials import prepare
from psdyn_ros.tools.studies.judgement import (
    FORCES,
    NAMES,
    PID,
    START,
    VALVES,
    closed_loop,
    configuration,
    point_to_point,
)

SLEW, LIFT, TILT = 0, 1, 2
WAY = 0.3, 0.2, -0.15, 0.5
RATES = 100.0, 500.0


def standing(law, change=None, **options):
    """A loop in STANDBY, of which a measurement is spoilt from the beginning on."""
    loop = closed_loop(law, **options)
    loop.core.disable(loop.now)
    loop.run(1.0)
    assert loop.core.states.state is State.STANDBY
    loop.change = change
    return loop.run(1.5)


def stuck(row):
    """A position that stays where it first was, with no velocity."""
    first = []

    def change(time, measured):
        first.append(measured.x[row])
        x, xd = measured.x.copy(), measured.xd.copy()
        x[row], xd[row] = first[0], 0.0
        return measured._replace(x=x, xd=xd)
    return change


def moving(law, rate=500.0):
    loop = closed_loop(law, rate=rate)
    loop.send(point_to_point(5.0, WAY))
    return loop.run(FAULT_S - loop.time)


def _delayed(seconds, period):
    """A law that is late: commands of so many seconds before."""
    queue = deque(maxlen=round(seconds / period) + 1)

    def late(command):
        queue.append(command)
        return queue[0].copy()
    return late


def conditions(record):
    return set().union(*(names for _, names in record.reasons))


# pressures before enabling


@pytest.mark.parametrize(('spoil', 'actuator'), [
    (lambda p, *_: p[:, ::-1].copy(), 'lift_cylinder'), (lambda p, *_: p[::-1].copy(), 'telescope'),
    (lambda p, *_: 1e-5 * p, 'lift_cylinder')], ids=['chambers swapped', 'cylinders swapped', 'in bar'])
def test_enabling_is_refused_where_pressures_do_not_hold_the_load(spoil, actuator):
    loop = standing(VALVES, ever('pressures', 0.0, spoil))
    with pytest.raises(SafetyError, match=f"F40: the piston of '{actuator}' pushes with .* kN by its pressures; "
                                          'expected .* kN, which holds the load, to within .* kN'):
        loop.core.enable(loop.now)
    assert loop.core.states.state is State.STANDBY


@pytest.mark.parametrize('law', thorough([FORCES, PID, VALVES], 1))
def test_a_sound_machine_is_enabled_again_after_a_motion(law):
    loop = moving(law)
    loop.core.disable(loop.now)
    loop.run(1.5)
    loop.core.enable(loop.now)
    assert loop.run(0.1).core.states.state is State.HOLD


def test_the_pressures_of_an_equilibrium_leave_no_force():
    core = closed_loop(VALVES).core
    law, m = core.law, core.manipulator
    fluid = equilibrium_state(m, law.hydraulics, law.axes.copy(), law.cylinders, law.supply, START)[0]
    pressures = fluid[:, [PRESSURE_A, PRESSURE_B]]
    assert law.force_residuals_at(START, pressures) == pytest.approx(0.0, abs=1.0)
    pressures[0, 0] += 1e5
    assert law.force_residuals_at(START, pressures)[LIFT] == pytest.approx(1e5 * law.cylinders['area_a'][0], abs=1.0)


# pressures that change


@pytest.mark.parametrize(('chamber', 'rate'), thorough([(1, 100.0), (0, 500.0), (1, 500.0)], 1, several=True))
@pytest.mark.parametrize('step', [6e6, -6e6])
def test_a_step_of_60_bar_that_no_oil_makes_is_not_followed(step, chamber, rate):
    loop = moving(VALVES, rate)
    before = loop.recording().speed[-1, 1:].max()

    def off(p, *_):
        p[TILT - 1, chamber] += step
        return p
    loop.change = ever('pressures', FAULT_S, off)
    record = loop.run(1.0).recording()
    assert record.state[-1] == State.SAFE and 'pressure_impossible' in conditions(record)
    assert record.speed[record.time >= FAULT_S, 1:].max() <= 1.15 * before


@pytest.mark.long
@pytest.mark.parametrize('rate', thorough(RATES, 1))
@pytest.mark.parametrize('options', [{}, {'stiction': dict.fromkeys(NAMES[1:], 3e3)}, {'pump_flow': 8e-4}],
                         ids=['sound', 'stiction', 'small pump'])
def test_pressures_of_a_fast_motion_and_of_a_sudden_stop_are_possible(options, rate):
    loop = closed_loop(VALVES, rate=rate, **options)
    loop.send(point_to_point(3.2, (0.5, 0.2, -0.15, 0.5)))
    loop.run(1.6)
    loop.core.fail(loop.now, 'injected')
    record = loop.run(1.0).recording()
    assert 'pressure_impossible' not in conditions(record) and 'exception' in conditions(record)


# shut valves


@pytest.mark.parametrize('rate', thorough(RATES, 1))
def test_an_emergency_stop_in_motion_shuts_the_valves_without_a_swing(rate):
    loop = moving(VALVES, rate)
    before = loop.recording().speed[-1, 1:].max()
    loop.core.take_emergency_stop(True, loop.now)
    loop.core.take_emergency_stop = lambda *given: None
    record = loop.run(1.5).recording()
    shut = np.abs(record.command[record.time > FAULT_S + 1e-9, 1:])
    assert record.state[record.time > FAULT_S + 1e-9][0] == State.SAFE
    assert (np.diff(shut, axis=0) <= 0.0).all() and 0.0 < shut[5].max() and not shut[-1].any()
    assert np.isnan(record.command[-1, SLEW])
    assert record.speed[record.time >= FAULT_S, 1:].max() <= 1.15 * before
    assert record.speed[record.time >= FAULT_S + 1.0, 1:].max() < 0.01


@pytest.mark.long
@pytest.mark.parametrize('rate', RATES)
def test_valves_of_an_accelerating_machine_begin_to_shut_without_a_jolt(rate):
    loop = closed_loop(VALVES, rate=rate)
    loop.send(point_to_point(5.0, WAY))
    loop.run(1.5)
    before = loop.output.command[1:].copy()
    loop.core.take_emergency_stop(True, loop.now)
    loop.core.take_emergency_stop = lambda *given: None
    shares = loop.cycle().command[1:] / before
    assert loop.output.state is State.SAFE and (shares <= 1.0).all() and (shares > 0.95).all()     # it was 0.86


def test_a_machine_that_stands_shuts_its_valves_at_once():
    loop = closed_loop(VALVES).run(0.5)
    loop.core.fail(loop.now, 'injected')
    assert loop.cycle().state is State.SAFE and not loop.output.command[1:].any()


# forces beside the motion


@pytest.mark.long
@pytest.mark.parametrize('rate', thorough(RATES, 1))
def test_an_encoder_stuck_before_enabling_does_not_throw_the_machine(rate):
    loop = standing(FORCES, stuck(TILT), rate=rate)
    loop.core.enable(loop.now)
    begin = loop.run(0.2).time
    loop.send(point_to_point(3.5, WAY))
    record = loop.run(2.0).recording()
    assert record.state[-1] == State.SAFE and conditions(record) & {'momentum_residual', 'effort_suspect'}
    assert record.speed[record.time >= begin].max() < 0.15       # it was 2.5 m/s


@pytest.mark.parametrize('law', thorough([VALVES, FORCES], 1))
def test_a_frozen_slew_is_stopped_near_the_speed_that_it_had(law):
    loop = moving(law)
    before = loop.recording().speed[-1, SLEW]
    loop.change = stuck(SLEW)
    record = loop.run(1.0).recording()
    assert record.state[-1] == State.SAFE and conditions(record) & {'momentum_residual', 'state_jump'}
    assert record.speed[record.time >= FAULT_S, SLEW].max() <= 1.5 * before + 0.02


@pytest.mark.long
@pytest.mark.parametrize('rate', RATES)
def test_the_momentum_of_a_sound_machine_is_explained(rate):
    loop = closed_loop(FORCES, rate=rate)
    loop.send(point_to_point(3.2, (0.5, 0.2, -0.15, 0.5)))
    record = loop.run(4.0).recording()
    assert record.state[-1] == State.HOLD and 'momentum_residual' not in conditions(record)


@pytest.mark.parametrize('rate', RATES)
def test_an_axis_that_accelerates_by_no_force_is_found_right_after_enabling(rate):
    bench = Bench(make_machine('effort', rate=rate), 0)
    bench.turns(0.03)
    bench.activate()
    bench.turns(0.05)
    bench.enable()
    bench.turns(0.02)
    began, slew = bench.now, np.eye(len(NAMES))[SLEW]

    def accelerated(measured):
        t = 1e-9 * (bench.now - began)
        return measured._replace(x=measured.x + 0.5 * t * t * slew, xd=measured.xd + t * slew)
    with bench.spoilt(spoil_state=accelerated):
        bench.turns(0.1)
    assert bench.core.states.state is State.SAFE and 'momentum_residual' in bench.core.states.reasons


def test_a_state_that_comes_late_is_compared_with_all_that_was_given_until_then():
    core, acceleration = closed_loop(FORCES).core, np.array([0.0, 0.0, 0.0, 1.0])
    check, x = core.checks[MomentumCheck], core.inputs.state_check.x
    check.restart()
    stamp, findings = 0, []
    for now in range(0, SECOND // 2, SECOND // 500):
        # no state comes for 80 ms, twice
        stamp = stamp if now % (SECOND // 5) > 3 * SECOND // 25 else now
        xd = 1e-9 * stamp * acceleration
        findings.append(check.evaluate(SimpleNamespace(
            x=x, xd=xd, estimated=(x, xd), time=1e-9 * stamp, reference_rate=1e-9 * now * acceleration,
            command=core.manipulator.inverse_dynamics(x, xd, acceleration))))
    assert () in findings and set(findings) <= {(), None}


def test_a_contradicted_force_becomes_that_which_holds_the_load():
    core = moving(FORCES).core
    check, x = core.checks[MomentumCheck], core.inputs.state_check.x
    command = np.full(4, 1e3)
    check.hold_load(command, x, np.zeros(4))
    assert (command == 1e3).all()
    check._failing, core.law._law.state[0] = True, [0.0, 0.01, 0.0, -0.02]
    learnt = core.law.integral_gains * core.law._law.state[0]
    check.hold_load(command, x, np.zeros(4))
    assert command == pytest.approx(core.manipulator.inverse_dynamics(x, np.zeros(4), learnt)) and learnt.any()
    check.restart()
    assert not check._failing


def test_checks_of_efforts_share_one_evaluation_of_the_model(monkeypatch):
    loop, calls = closed_loop(FORCES), []
    monkeypatch.setattr('psdyn_ros.control.laws.base.evaluate_efforts',
                        lambda *given: calls.append(given) or evaluate_efforts(*given))
    core = loop.run(0.1).core
    assert len(calls) == 50
    x, xd = core.inputs.state_check.x, core.inputs.state_check.xd
    model = core.law.effort_model(x, xd)
    assert len(calls) == 50 and core.law.effort_model(x.copy(), xd) is model and len(calls) == 51
    core.law.effort_model(x, xd)
    core.law.update(core.inputs.time, x, xd)        # with it the load of the model may change
    core.law.effort_model(x, xd)
    assert len(calls) == 53


# swings


@pytest.mark.long
@pytest.mark.parametrize('level', ['effort', 'valve'])
def test_a_late_law_does_not_swing_the_machine_up(level):
    machine = make_machine(level, plant='second', rate=100.0)
    bench = Bench(machine, 0)
    prepare(bench, State.HOLD)
    with bench.law_spoilt(_delayed(0.05, bench.period)):
        bench.turns(8.0)        # on valves it grows slowly
    assert bench.core.states.state is State.SAFE
    assert {'swing_growing', 'not_standing', 'effort_suspect'} & bench.core.states.reasons.keys()
    assert max(np.abs(point.xd).max() for point in bench.path) < 0.04      # it was 0.3 rad/s


class _Resting:
    """What the check of swings looks at: one rate of the slew, a reference that rests or moves."""

    def __init__(self, period):
        self.period, self.under_law = period, True
        self.x, self.rates, self.reference_rate, self.command = np.zeros((4, 4))


@pytest.mark.parametrize('growth', [1.0, 1.35])
def test_a_swing_is_found_where_it_grows_and_not_where_it_lasts(growth):
    check, seen = SwingCheck(configuration(VALVES), UNLOADED), _Resting(0.01)
    found = []
    for k in range(400):
        t = 0.01 * k
        seen.rates[0] = 0.08 * growth ** max(t - 1.0, 0.0) * np.sin(2.0 * np.pi * 1.5 * t)
        found.append(bool(check.evaluate(seen)))
    assert any(found) is (growth > 1.0)
    seen.reference_rate = np.array([0.1, 0.0, 0.0, 0.0])
    assert not check.evaluate(seen)


def half_swings(off, turned):
    """[(first sample, largest |off| until each sample)] of the half swings of a signal."""
    found, side = [], 0.0
    for k, value in enumerate(off):
        if abs(value) > turned and value * side <= 0.0:
            side = np.sign(value)
            found.append((k, []))
        if found:
            found[-1][1].append(max([0.0, *found[-1][1][-1:], value * side]))
    return found


@pytest.mark.parametrize(('growth', 'hertz'), [(1.0, 4.0), (1.2, 4.0), (1.5, 4.0), (2.0, 4.0), (2.0, 1.5)])
def test_a_swing_about_the_speed_of_the_reference_is_found_where_it_grows_and_is_fast(growth, hertz, rng):
    check, seen, period, limit = SwingCheck(configuration(VALVES), UNLOADED), _Resting(0.01), 0.01, 0.05
    seen.reference_rate[:] = 0.05, -0.02, 0.0, 0.01
    time = period * np.arange(300)
    off = 0.01 * growth ** (2.0 * hertz * time) * np.sin(2.0 * np.pi * hertz * time) + rng.uniform(-1e-3, 1e-3, 300)
    off = np.clip(off, -0.15, 0.15)
    found = []
    for value in off:
        seen.rates = seen.reference_rate + np.r_[value, 0.0, 0.0, 0.0]
        found.append('swing_in_motion' in [one.condition for one in check.evaluate(seen)])
    first = found.index(True) if any(found) else None
    wanted, halves = None, half_swings(lfilter([0.5], [1.0, -0.5], off), 0.15 * limit)       # over 20 ms at 100 Hz
    for j in range(3, len(halves)):
        begins, most = [one for one, _ in halves[j - 3:j + 1]], [one[-1] for _, one in halves[j - 3:j]]
        if max(np.diff(begins)) * period <= 0.25 + 1e-9 and most[2] > 1.5 * most[0]:
            limit_now = max(1.5 * most[1], limit)
            beyond = [k for k, now in enumerate(halves[j][1]) if now > limit_now and k * period <= 0.25]
            if beyond and wanted is None:
                wanted = begins[3] + beyond[0]
    assert first == wanted
    assert (first is not None) is (growth > 1.3 and hertz > 2.0)


# openings without pressures


def test_ways_of_rods_are_compared_with_those_of_their_valves(rng):
    buffer = error_range.make_opening_range([1, 2], 3, 4)
    check = error_range.OpeningRange(*views(buffer, error_range.TYPES))
    check.slack[:] = 0.02
    steps = rng.choice([0.0, 0.005, 0.02], 200)
    steps[120] = 0.11           # after which it begins again
    measured = rng.uniform(-0.06, 0.08, (200, 3)) + np.array([0.0, -0.06, 0.03])
    speeds = rng.uniform(-0.02, 0.03, (200, 3))
    verdicts = []
    for k, dt in enumerate(steps):
        check.motion[error_range.MEASURED_RATE], check.speeds[:] = measured[k], speeds[k]
        found = error_range.compare_ways(buffer, dt)
        since = slice(121 if k >= 120 else 0, k + 1)
        ago = np.cumsum(steps)[k] - np.cumsum(steps)[since]
        off, way = (np.exp(-ago / 0.4) * steps[since] @ one[since] for one in (measured - speeds, np.abs(speeds)))
        allowed = 0.004 + 1.5 * way
        assert check.ways[:, 1:] == pytest.approx(np.array([off, way, allowed])[:, 1:], abs=1e-12)
        share = (np.abs(off) / allowed)[1:]
        assert found == (1 + share.argmax() if share.max() > 1.0 else -1)
        verdicts.append(found)
    assert set(verdicts) == {-1, 1, 2}


@pytest.mark.long
@pytest.mark.parametrize('rate', thorough(RATES, 1))
@pytest.mark.parametrize(('spoil', 'most'), [
    (lambda u: np.r_[u[:LIFT], 1.0, u[LIFT + 1:]], 1.3), (lambda u: np.r_[u[0], -u[1:]], 1.3),
    (lambda u: np.r_[u[0], 2.0 * u[1:]], 1.7)], ids=['full', 'negated', 'double'])
def test_openings_of_a_failing_pid_are_restrained_and_stop_it(spoil, most, rate):
    loop = moving(PID, rate)
    before = loop.recording().speed[-1, 1:].max()
    update = loop.core.law.update
    loop.core.law.update = lambda *given, **named: spoil(update(*given, **named))
    record = loop.run(1.5).recording()
    after = record.time >= FAULT_S
    assert record.state[-1] == State.SAFE and 'opening_suspect' in conditions(record)
    assert record.speed[after, 1:].max() <= most * before and np.abs(record.spool[after]).max() < 0.95


@pytest.mark.long
@pytest.mark.parametrize('rate', thorough(RATES, 1))
def test_openings_of_a_sound_pid_are_not_restrained(rate):
    loop = closed_loop(PID, rate=rate, stiction=dict.fromkeys(NAMES[1:], 2e3))
    off = restraint_of(loop.core.checks[OpeningCheck])
    loop.send(point_to_point(3.2, (0.5, 0.2, -0.15, 0.5)))
    loop.run(4.0)
    assert len(off) > 3.5 * rate and not np.any(off)


def test_openings_of_a_pid_are_those_of_its_kernel():
    law = closed_loop(PID).core.law
    for speed in (-0.2, -0.01, -1e-4, 0.0, 2e-4, 0.03, 0.25):
        command = law.openings(np.full(4, speed))
        for c in law.cylinders:
            i = c['axis']
            full = law._law['speed_out' if speed > 0.0 else 'speed_in'][i]
            assert command[i] == pytest.approx(np.clip(command_for(c, speed / full, law._law['blend'][i]), -1.0, 1.0))
        within = np.abs(command) < 1.0
        within[SLEW] = False
        assert law.rod_speeds(command)[within] == pytest.approx(speed)
    assert law.openings(np.ones(4))[SLEW] == law.rod_speeds(np.ones(4))[SLEW] == 0.0


def test_openings_are_not_judged_for_a_law_that_opens_by_forces():
    config = closed_loop(VALVES).core
    assert not config.checks[OpeningCheck].required and closed_loop(PID).core.checks[OpeningCheck].required


def test_the_bound_of_the_momentum_is_that_of_the_declaration():
    core = closed_loop(FORCES).core
    declared = core.declaration.plausibility
    assert core.checks[MomentumCheck]._memory.residual[0] == declared.momentum_residual == 0.05
    assert replace(declared, momentum_residual=0.2).momentum_residual == 0.2


@pytest.mark.long
def test_all_axes_at_once_at_force_level_contradict_nothing():
    loop = closed_loop(FORCES)
    loop.run(FAULT_S)
    m = loop.core.manipulator
    way = demonstration(m, 4.0, declaration=loop.core.declaration)
    loop.send(replace(way, positions=way.positions + START - m.initial_position))
    loop.run(4.5)
    record = loop.recording()
    assert loop.core.states.state is State.HOLD and np.ptp(record.x, axis=0).min() > 0.02
    assert not any('momentum_residual' in texts for _, texts in record.reasons)


# positions that jump while nothing moves the machine


def _off_at(row, way, until=np.inf):
    """A position that is off by way [m, rad] until a time [s]."""
    def change(time, measured):
        return measured._replace(x=measured.x + way * (np.arange(4) == row)) if time < until else measured
    return change


def _swapped(time, measured):
    order = [SLEW, LIFT, 3, TILT]
    return measured._replace(x=measured.x[order], xd=measured.xd[order])


@pytest.mark.parametrize('law', thorough([VALVES, FORCES, PID], 1))
@pytest.mark.parametrize('change, name', [(_off_at(3, 0.05), 'telescope'), (_swapped, 'tilt_cylinder')],
                         ids=['off', 'swapped'])
def test_enabling_is_refused_after_a_position_has_jumped_at_rest(law, change, name):
    loop = standing(law, change)
    with pytest.raises(SafetyError, match=f"F08: '{name}' jumped from .* to .* while nothing moved the machine"):
        loop.core.enable(loop.now)
    assert loop.core.states.state is State.STANDBY


@pytest.mark.long
def test_activating_the_controller_again_accepts_a_position_that_has_jumped():
    loop = standing(FORCES, _off_at(SLEW, 0.1))
    loop.core.deactivate(loop.now)
    loop.run(0.1)
    loop.core.activate(loop.now, loop.now)
    loop.run(0.1)
    loop.core.enable(loop.now)
    assert loop.run(0.1).core.states.state is State.HOLD


@pytest.mark.parametrize('moves', thorough([True, False], 1))
def test_a_position_that_comes_back_is_the_same_machine(moves):
    loop = moving(FORCES) if moves else standing(FORCES)
    loop.change = _off_at(SLEW, 0.3, loop.time + 0.5)
    loop.run(2.0)
    if moves:
        assert loop.core.states.state is State.SAFE
        loop.core.reset(loop.now)
        loop.run(0.05)
    loop.core.enable(loop.now)
    assert loop.run(0.1).core.states.state is State.HOLD
