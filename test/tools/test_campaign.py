"""The fault campaign: all conditions with one seed in process, two killed processes over DDS; and that it catches a
core or a judge that was sabotaged."""

import re
from collections import Counter
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import thorough
from support.nodes.unusable_states import UNUSABLE_STATES

from psdyn_ros.control.monitors.checks import CHECKS
from psdyn_ros.control.monitors.clock import EmergencyStopCheck
from psdyn_ros.control.safety.fault_table import CONDITIONS, DETECTORS, State
from psdyn_ros.control.safety.output_gate import OutputGate
from psdyn_ros.control.safety.state_machine import SafetyStates
from psdyn_ros.model.errors import ModelError
from psdyn_ros.tools.fault_campaign import (
    fault_report,
    fault_trials,
    in_process,
    injections,
    lies,
    motion_trials,
    process_trials,
    rejected_inputs,
)
from psdyn_ros.tools.fault_campaign.bench import PID, Bench, Point, make_machine
from psdyn_ros.tools.fault_campaign.judge import Cycle, Judge

PERIOD = 0.002
HOLDING = np.array([0.0, 5e4, 3e4, -5e3])
BY_PROCESS = {'run_deactivation': 'left_running', 'run_start': 'no_state_at_start', 'run_death': 'controller_dead',
              'run_clock_jump': 'clock_jump'}
# conditions with more than one injection, and how many
SEVERAL_WAYS = {'state_silent': 2, 'state_stale': 2, 'state_future': 2, 'stamp_order': 2,
                'state_jump': 2, 'closure_residual': 2, 'output_rejected': 6, 'emergency_stop': 2}


@pytest.fixture(scope='module')
def machine():
    return make_machine('effort')


@pytest.fixture(scope='module')
def on_valves():
    return make_machine('valve')


@pytest.fixture(scope='module')
def hanging():
    return make_machine('hanging')


def an_injection(name):
    (found,) = (one for one in injections.INJECTIONS if one.name == name)
    return found


# all of it


def cases(level):
    """One state of each way, in turn; the full campaign has all. At force level what valves have too is `long`."""
    for number, one in enumerate(injections.INJECTIONS):
        if level in one.levels:
            state = one.states[number % len(one.states)]
            yield pytest.param(one, state, marks=[pytest.mark.long] * (level == 'effort' and 'valve' in one.levels),
                               id=f'{level}-{one.condition}-{one.name}-{state.name}')


@pytest.mark.parametrize('injection, state', list(cases('effort')))
def test_a_fault_at_force_level(machine, injection, state):
    check(fault_trials.run_injection(machine, injection, state, 0))


@pytest.mark.parametrize('injection, state', list(cases('valve')))
def test_a_fault_on_valves(on_valves, injection, state):
    check(fault_trials.run_injection(on_valves, injection, state, 1))


@pytest.mark.parametrize('injection, state', list(cases('pid')))
def test_a_fault_of_a_law_without_pressures(injection, state):
    check(fault_trials.run_injection(make_machine('pid'), injection, state, 1))


@pytest.mark.parametrize('injection, state', list(cases('hanging')))
def test_a_fault_with_passive_joints(hanging, injection, state):
    check(fault_trials.run_injection(hanging, injection, state, 2))


@pytest.mark.parametrize('attempt', rejected_inputs.ATTEMPTS, ids=lambda one: f'{one.condition}-{one.name}')
def test_what_must_be_refused_leaves_the_motion_as_it_is(machine, attempt):
    check(rejected_inputs.run_attempt(machine, attempt, State.RUN, 0))


@pytest.mark.parametrize('description', rejected_inputs.DESCRIPTIONS, ids=lambda one: one[1])
def test_a_description_is_refused_in_time(description):
    check(rejected_inputs.run_description(*description, 0))


@pytest.mark.parametrize('function, place', [
    (function, place) for function, places, _ in process_trials.PROCESS_TRIALS for place in places[:2]])
def test_the_process_itself(on_valves, function, place):
    check(function(on_valves, place, 0))


def check(trial):
    assert not trial.unsafe, trial.findings
    assert not trial.failures
    assert trial.reaction is not None and trial.reaction <= trial.bound


def test_every_condition_has_one_detector_and_is_tried_in_one_place():
    attacks = pytest.importorskip('psdyn_ros.tools.fault_campaign.over_dds.attacks', reason='the nodes need rclpy')
    over_dds = {condition for condition, _, counted in attacks.ATTACKS if counted}
    places = ({one.condition for one in injections.INJECTIONS}, {one.condition for one in rejected_inputs.ATTEMPTS},
              {condition for condition, _, _ in rejected_inputs.DESCRIPTIONS}, set(BY_PROCESS.values()),
              over_dds, set(UNUSABLE_STATES))
    assert Counter(condition for place in places for condition in place) == dict.fromkeys(CONDITIONS, 1)
    assert Counter(row.name for rows in DETECTORS.values() for row in rows) == dict.fromkeys(CONDITIONS, 1)
    # what only a node detects is tried on a node; references are refused by the core, which a node counts
    references = {'reference_rejected', 'reference_unreachable', 'reference_malformed'}
    assert over_dds | set(UNUSABLE_STATES) == {row.name for row in DETECTORS['node']} - references
    assert {condition for condition, _, _ in attacks.CLOCK_ATTACKS} <= places[0]
    assert {function.__name__ for function, _, _ in process_trials.PROCESS_TRIALS} == BY_PROCESS.keys()
    of_checks = {row.name for check in CHECKS for row in check.rows}
    assert of_checks - places[0] - places[1] == {'clock_jump'}


def test_no_trial_reports_its_own_condition():
    folder = Path(fault_trials.__file__).parent
    reported = re.findall(r'core\.(?:report|reject_state|fail)\(.*', ''.join(
        path.read_text() for path in folder.rglob('*.py')))
    assert reported == ["core.report(bench.now, 'overrun', Result.FAIL, 'injected')"]     # the way to DEGRADED


def test_every_condition_is_injected_in_exactly_one_way_but_for_those_with_several():
    ways = Counter(one.condition for one in injections.INJECTIONS)
    assert {condition: count for condition, count in ways.items() if count > 1} == SEVERAL_WAYS
    assert len({one.name for one in injections.INJECTIONS}) == len(injections.INJECTIONS)


# motion after a fault


@pytest.fixture(scope='module', params=thorough([('second', 100.0), ('package', 500.0)], 1), ids=lambda one: one[0])
def moved(request):
    """(plant, `Machine`) on valves."""
    plant, rate = request.param
    return plant, make_machine('valve', plant=plant, rate=rate)


def motion_of(moved, injection, state, seed=0):
    plant, machine = moved
    return motion_trials.run_motion(machine, plant, injection, state, seed,
                                    motion_trials.healthy_speeds(machine, state, seed))


NO_FAULT = lies.Lie('none', 'nothing', lambda bench: nullcontext())


@pytest.mark.parametrize('state', thorough(list(State), [State.HOLD, State.RUN]))
def test_without_a_fault_no_motion_is_missed_and_nothing_stops(moved, state):
    trial = motion_of(moved, NO_FAULT, state)
    assert trial.good and trial.reason == '' and trial.full == 0.0
    assert (trial.rest is None) is (state is not State.STOPPING)


def test_an_excavator_under_pid_is_not_stopped():
    machine = make_machine(PID, 'excavator', rate=100.0)
    assert motion_trials.false_stops(machine, 3, 30.0) == []


def a_lie(name):
    (found,) = (one for one in lies.LIES if one.name == name)
    return found


def test_a_full_valve_under_a_law_that_nobody_watches_is_missed(monkeypatch, moved):
    for check in CHECKS:
        monkeypatch.setattr(check, 'evaluate', lambda check, inputs: ())
        if hasattr(check, 'restrain'):
            monkeypatch.setattr(check, 'restrain', lambda *given: None)
    trial = motion_of(moved, replace(a_lie('full'), bring=opened), State.HOLD)
    texts = '; '.join(trial.missed)
    assert 'speed' in texts and 'full spool against the reference' in texts and trial.spool > 0.95
    assert trial.speed > 2.0 * trial.allowed and trial.distance > 0.015


@contextmanager
def opened(bench):
    """The law opens the valve of the lift cylinder, whatever its error."""
    with bench.law_spoilt(lambda command: np.where([False, True, False, False], 1.0, command)):
        yield


@pytest.mark.parametrize('rate', [100.0, 200.0])
def test_an_emergency_stop_in_motion_neither_speeds_up_nor_swings(rate):
    trial = motion_of(('package', make_machine('valve', rate=rate)), an_injection('stop_pressed'), State.RUN)
    assert trial.good, trial.missed
    assert trial.rest < 0.75        # at 200 Hz it was 1.16 s


def test_a_stop_that_takes_too_long_and_too_far_is_missed(moved):
    _, machine = moved
    bench = Bench(machine, 0)
    speed, n = 0.1, round(1.4 * machine.rate)
    for k in range(n):
        time = k / machine.rate
        bench.path.append(Point(time, np.full(4, speed * time), np.full(4, speed), np.zeros(3), np.full((2, 4), np.nan),
                                int(State.STOPPING)))
    where = 'law', 'none', 'package', 'valve', machine.rate, 'STOPPING', 0
    trial = motion_trials._verdict(bench, 0, [], where, np.full((1, 4), speed))
    assert len(trial.missed) == 2 and 'at rest after 1.40 s' in trial.missed[0] and 'v^2 / (2 a)' in trial.missed[1]
    hardest = machine.declaration.deceleration.max()
    assert trial.travel == pytest.approx(speed * (n - 1) / machine.rate - 0.5 * speed**2 / hardest, abs=1e-9)


def test_every_sensor_and_the_law_lie_in_every_state_on_both_plants():
    assert {one.group for one in lies.LIES} == {'pressures', 'supply', 'encoder', 'law'}
    assert all(one.states == tuple(State) for one in lies.LIES)
    assert len({one.name for one in lies.LIES}) == len(lies.LIES) > 50
    tried = list(motion_trials.cases('valve'))
    for one in (*lies.LIES, *injections.INJECTIONS):
        assert 'valve' not in one.levels or all((one, state) in tried for state in one.states)


@pytest.mark.long
def test_a_trial_repeats_itself(moved):
    lie = a_lie('an encoder drifts')
    assert motion_of(moved, lie, State.RUN) == motion_of(moved, lie, State.RUN)


# what it catches


def sabotaged(machine, name, state, seed=0):
    """The trial of an injection after a sabotage, which must be bad."""
    trial = fault_trials.run_injection(machine, an_injection(name), state, seed)
    assert not trial.good
    return trial


def test_it_catches_a_core_without_its_gate(monkeypatch, machine):
    monkeypatch.setattr(OutputGate, 'filter_command', lambda gate, command, stamp, now, dt: command)
    assert 'not finite' in sabotaged(machine, 'law_gives_nan', State.RUN).findings
    assert {'out of range', 'too fast a change'} <= sabotaged(
        machine, 'a_command_too_large', State.RUN).findings.keys()


def test_it_catches_a_ladder_that_is_twice_as_long(monkeypatch, machine):
    longer = replace(machine.declaration.timeouts, stopping=0.04, safe=0.2)
    real = SafetyStates.__init__

    def doubled(states, declaration, *given):
        real(states, replace(declaration, timeouts=longer), *given)
    monkeypatch.setattr(SafetyStates, '__init__', doubled)
    assert sabotaged(machine, 'no_states', State.RUN).late


def test_it_catches_a_reset_that_is_granted_too_soon(monkeypatch, machine):
    def reset(states, now, others=()):
        states._unsettled.clear()
        states.state = State.STANDBY
    monkeypatch.setattr(SafetyStates, 'reset', reset)
    failures = sabotaged(machine, 'stop_pressed', State.RUN).failures
    assert 'reset was granted while the fault was present' in failures


def test_it_catches_a_safe_state_that_is_left_by_itself(monkeypatch, machine):
    real = SafetyStates.step

    def step(states, now):
        state = real(states, now)
        if state is State.SAFE and not any(one.open for one in states._unsettled.values()):
            states._unsettled.clear()
            states.state = State.STANDBY
        return states.state
    monkeypatch.setattr(SafetyStates, 'step', step)
    trial = sabotaged(machine, 'stop_pressed', State.RUN)
    assert 'SAFE left without a reset' in trial.findings


def test_it_catches_a_wrong_safe_output(monkeypatch, on_valves):
    monkeypatch.setattr(OutputGate, 'safe', lambda gate, holding=None: np.array([np.nan, 0.0, 0.01, 0.0]))
    assert 'wrong safe output' in sabotaged(on_valves, 'stop_pressed', State.HOLD).findings


def test_it_catches_an_emergency_stop_that_nobody_looks_at(monkeypatch, machine):
    monkeypatch.setattr(EmergencyStopCheck, 'reason', lambda self, now, clock: '')
    assert sabotaged(machine, 'stop_silent', State.RUN).late


def test_it_catches_an_enabling_that_moves(monkeypatch, machine):
    real = SafetyStates.enable

    def enable(states, now):
        real(states, now)
        states._moving = True
    monkeypatch.setattr(SafetyStates, 'enable', enable)
    trial = process_trials.run_death(machine, State.RUN, 0)
    assert 'moves without a reference' in trial.findings and trial.unsafe


def test_it_catches_a_motion_that_is_disturbed(monkeypatch, machine):
    (attempt,) = (one for one in rejected_inputs.ATTEMPTS if one.name == 'nan_in_a_point')

    def act(bench, rng):
        problem = attempt.act(bench, rng)
        bench.law.reference.set_speed(0.9)
        return problem
    (failure,) = rejected_inputs.run_attempt(machine, attempt._replace(act=act), State.RUN, 0).failures
    assert 'differ' in failure


# the judge by itself


def cycle(now=0, command=HOLDING, state=State.HOLD, **more):
    zero = np.zeros(4)
    given = {'stamp': now, 'expected_stamp': now, 'valid': state in (State.RUN, State.DEGRADED, State.HOLD,
                                                                     State.STOPPING),
             'position': zero, 'speed': zero, 'holding': HOLDING, **more}
    return Cycle(now, command, state=state, **given)


@pytest.fixture
def judge(machine):
    judge = Judge(machine.declaration, machine.rated, PERIOD)
    judge.was_activated()
    judge.was_enabled()
    assert not judge.look(cycle())
    return judge


STEP = 2_000_000
NAN = float('nan')
BAD = {
    'nothing published': cycle(STEP, None),
    'not finite': cycle(STEP, np.array([0.0, NAN, 3e4, -5e3])),
    'wrong length': cycle(STEP, HOLDING[:3]),
    'out of range': cycle(STEP, np.array([1e9, 5e4, 3e4, -5e3])),
    'too fast a change': cycle(STEP, HOLDING + [0.0, 1.1e4, 0.0, 0.0]),
    'stamp of another cycle': cycle(STEP, stamp=STEP - 30_000_000),
    'wrong safe output': cycle(STEP, HOLDING, State.SAFE),
    'valid at the safe output': cycle(STEP, np.full(4, NAN), State.SAFE, valid=True),
    'moves without a reference': cycle(STEP, state=State.RUN),
}


@pytest.mark.parametrize('kind', BAD)
def test_the_judge_finds(judge, kind):
    assert judge.look(BAD[kind]) and kind in judge.findings and judge.unsafe == 1


def test_the_judge_finds_what_was_enabled_by_nobody(machine):
    judge = Judge(machine.declaration, machine.rated, PERIOD)
    judge.was_activated()
    assert judge.look(cycle()) and 'enabled by nobody' in judge.findings


def test_the_judge_finds_a_machine_that_gets_faster_once_it_is_to_stop(judge):
    assert not judge.look(cycle(STEP, state=State.STOPPING))
    faster = cycle(2 * STEP, state=State.STOPPING, speed=np.array([0.0, 0.2, 0.0, 0.0]))
    assert judge.look(faster) and 'speeds up' in judge.findings
    judge.lied_to = True
    assert not judge.look(faster._replace(now=3 * STEP, stamp=3 * STEP, expected_stamp=3 * STEP))


def test_the_judge_finds_a_machine_that_does_not_come_to_rest(judge):
    moving = np.array([0.0, 0.2, 0.0, 0.0])
    for k in range(1, 900):
        judge.look(cycle(k * STEP, np.full(4, NAN), State.SAFE, speed=moving))
    assert 'does not stand still' in judge.findings


def test_the_judge_is_content_with_what_is_as_it_must_be(judge):
    judge.took_reference()
    assert not judge.look(cycle(STEP, HOLDING + [0.0, 9e3, 0.0, 0.0], State.RUN, speed=np.full(4, 0.1)))
    assert not judge.look(cycle(2 * STEP, np.full(4, NAN), State.SAFE, speed=np.full(4, 0.1)))
    judge.was_reset()
    assert not judge.look(cycle(3 * STEP, np.full(4, NAN), State.STANDBY))


# report


def a_trial(**changed):
    good = fault_trials.Trial('state_silent', 'no_states', 'effort', 'RUN', 0, 9, 11, 800, 0, 0.2, {}, ())
    return good._replace(**changed)


def test_the_report_says_what_failed(tmp_path):
    bad = a_trial(seed=1, reaction=None, failures=('reset was granted',))
    good, wrong = in_process.summarize([a_trial()]), in_process.summarize([a_trial(), bad])
    assert fault_report.is_good(good, [], []) and not fault_report.is_good(wrong, [], [])
    assert good[0].rate_below == 3.0 and wrong[0].rate_below is None and wrong[0].late == 1
    path = fault_report.write(tmp_path / 'page.md', wrong, [], [], {'kernel': 'one'}, {}, 0.1)
    text = path.read_text()
    assert 'FAILED' in text and 'reset was granted' in text and '| kernel | one |' in text
    assert (tmp_path / 'images' / 'faults.png').stat().st_size > 10_000


def a_motion(**changed):
    good = motion_trials.MotionTrial('F01', 'no_states', 'second', 'pid', 100.0, 'RUN', 0, 0.05, 0.05, 0.06, 0.3, 0.0,
                                     0.2, -0.001, 0.01, 0.02, 'SAFE', '', ())
    return good._replace(**changed)


def test_motions_replace_their_part_of_a_report_and_nothing_else(tmp_path):
    page = fault_report.write(tmp_path / 'page.md', in_process.summarize([a_trial()]), [], [], {'kernel': 'one'}, {},
                              0.1, [a_motion()])
    before = page.read_text()
    assert '**PASSED.** 1 trials, 0 missed; seeds 0.' in before and '* **PASSED.** In process: ' in before
    assert '* **PASSED.** Motion after a fault, plant second: 1 trials, 0 beyond a bound.' in before
    possible = len(list(lies.cases('pid')))
    assert f'| second | pid | {possible} | 1, missed 0 of 1 trials | not run | not run |' in before
    bad = a_motion(group='law', name='full', speed=0.08, missed=('speed 0.08, at most 0.06',))
    fault_report.write_motions(page, [a_motion(), bad])
    text = page.read_text()
    assert '* **FAILED.** Motion after a fault, plant second: 2 trials, 1 beyond a bound.' in text
    assert text.count('Motion after a fault, plant') == 1 and '* **PASSED.** In process: ' in text
    assert '**FAILED.** 2 trials, 1 missed' in text and '| law | second | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 1 |' in text
    assert '* 1 of 1: law: full, second, pid, 100 Hz' in text and text.count('## The motion after a fault') == 1
    fault_report.write_motions(page, [a_motion()])
    assert page.read_text() == before


def test_motions_are_refused_by_a_page_that_is_no_report(tmp_path):
    page = tmp_path / 'page.md'
    page.write_text('# Something else')
    with pytest.raises(ModelError, match=r'The motion after a fault.*expected a report of the campaign'):
        fault_report.write_motions(page, [a_motion()])


def test_the_report_takes_no_motions_of_another_machine(tmp_path, capsys):
    with pytest.raises(SystemExit):
        motion_trials.main(['--machine', 'excavator', '--output', str(tmp_path / 'report.md')])
    assert 'the report is that of hiab_xs031' in capsys.readouterr().err


def test_a_run_whose_time_is_over_begins_no_trial():
    assert not list(motion_trials.run(motion_trials.jobs([0]), seconds=0.0))


def test_what_time_allows_is_spread_over_all_plants_levels_and_rates(monkeypatch):
    begun = []
    monkeypatch.setattr(motion_trials, '_run_part', lambda job, until: begun.append(job) or [])
    assert not list(motion_trials.run(motion_trials.jobs(range(2))))
    cells = [job[1:4] for job in begun[:18]]
    assert len(set(cells)) == 18 and {job[1:6] for job in begun[:18]} == {(*cell, 0, 0) for cell in cells}
    assert len(begun) == 2 * 24 * motion_trials.PARTS


def test_the_short_form_has_every_fault_once_and_all_states():
    short = list(motion_trials.cases('pid', short=True))
    assert {one.name for one, _ in short} > {one.name for one, _ in motion_trials.cases('valve')}
    assert len(short) == len({(one.group, one.name) for one, _ in short})
    assert {state for _, state in short} == set(State)


def test_the_report_says_what_processes_did_that_went_on(tmp_path):
    dds_kills = pytest.importorskip('psdyn_ros.tools.fault_campaign.over_dds.kills', reason='the nodes need rclpy')
    killed = dds_kills.Kill(dds_kills.KILLED, 0.1, 0.001, '', 0, None)
    held_up = killed._replace(way=dds_kills.HELD_UP, refused=1, first='SAFE')
    kills = [killed, held_up, held_up._replace(first='STOPPING')]
    text = fault_report.write(tmp_path / 'page.md', [], kills, [], {}, {}, 0.1).read_text()
    assert f'| {dds_kills.HELD_UP} | 2 | SAFE 1, STOPPING 1 | 2 |' in text and 'PASSED' in text
    assert fault_report.wrong_kill(killed._replace(seconds=None))
    assert fault_report.wrong_kill(held_up._replace(moved_by='it'))
    assert fault_report.wrong_kill(held_up._replace(first='RUN'))
    assert not fault_report.is_good([], [held_up._replace(first='RUN')], [])


def test_the_report_has_the_null_loop_beside_a_flood(tmp_path):
    wire_attacks = pytest.importorskip('psdyn_ros.tools.fault_campaign.over_dds.attacks', reason='the nodes need rclpy')
    flood = wire_attacks.Attack('small', 100, ('RUN',), None, None, 7, '', (0.001, 0.025, 0.002, 0.02), 'F33', 'flood')
    plain = wire_attacks.Attack('jump', 1, (), 0.2, 0.5, 0, '', row='F31')
    text = fault_report.write(tmp_path / 'page.md', [], [], [flood, plain], {}, {}, 0.1).read_text()
    assert '| F33 | small | flood | 100 |' in text and '| 7 | 0.1 %, 2.5 % | 0.2 %, 2.0 % | none |' in text
    assert '| 0.20 s | 0.5 s | 0 |  |  | none |' in text


@pytest.mark.parametrize('changed', [{'reaction': 12}, {'reaction': None}, {'unsafe': 1}, {'failures': ('x',)}])
def test_one_bad_trial_is_enough(changed):
    assert not fault_report.is_good(in_process.summarize([a_trial(), a_trial(**changed)]), [], [])


def test_the_bench_repeats_itself(machine):
    runs = []
    for _ in range(2):
        bench = Bench(machine, 5)
        fault_trials.prepare(bench, State.RUN)
        runs.append(bench.output.command)
    assert np.array_equal(*runs)
