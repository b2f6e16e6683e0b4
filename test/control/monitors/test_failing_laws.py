"""What the true machine does under a law that fails: its speed, its way and its time to rest."""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.control import SafetyError, State
from psdyn_ros.tools.fault_campaign.bench import FRICTION, PID, PLANTS, Bench, make_machine
from psdyn_ros.tools.fault_campaign.fault_trials import prepare, run_injection
from psdyn_ros.tools.fault_campaign.injections import INJECTIONS
from psdyn_ros.tools.fault_campaign.lies import cases
from psdyn_ros.tools.fault_campaign.motion_trials import (
    EXTRA_TRAVEL,
    REST,
    false_stops,
    healthy_speeds,
    run_motion,
    sound_runs,
    with_wrong_model,
)
from psdyn_ros.tools.studies.tracking_runs import CORNERS, EXACT, Mismatch

RATE = 200.0    # Hz
RUN, HOLD, STOPPING = State.RUN, State.HOLD, State.STOPPING


@cache
def usual(plant, state):
    machine = make_machine('valve', plant=plant, rate=RATE)
    return machine, healthy_speeds(machine, state, 0)


def failed(name, plant, state):
    """Return the `MotionTrial` of a failing law."""
    machine, speeds = usual(plant, state)
    lie = next(one for one, tried in cases('valve', f'law: {name}') if one.name == name and tried is state)
    return run_motion(machine, plant, lie, state, 0, speeds)


@pytest.mark.parametrize('plant', PLANTS)
@pytest.mark.parametrize(('name', 'state'), thorough([
    ('full, backwards', RUN), ('full', RUN), ('full', STOPPING), ('negated', RUN), ('negated', STOPPING)], 1,
    several=True))
def test_a_gross_failure_of_a_law_keeps_speed_way_and_time_within_bounds(name, state, plant):
    trial = failed(name, plant, state)
    assert trial.good, trial.text()


@pytest.mark.parametrize(('name', 'state', 'faster'), thorough([
    ('frozen', RUN, 1.1), ('50 ms late', RUN, 1.1), ('zero', RUN, 1.25), ('negated', HOLD, 1.2)], 1, several=True))
def test_a_subtle_failure_of_a_law_does_not_let_the_speed_build_up(name, state, faster):
    trial = failed(name, 'package', state)
    assert trial.speed <= faster * trial.allowed, trial.text()


@pytest.mark.parametrize('plant', PLANTS)
@pytest.mark.parametrize('level', ('valve', PID))
def test_a_stop_of_a_sound_machine_on_oil_ends_at_rest(level, plant):
    """With the whole deceleration at once the boom would swing on for 1.1 to 1.4 s."""
    bench = Bench(make_machine(level, plant=plant, rate=RATE), 0)
    prepare(bench, STOPPING)
    speed, x = np.abs(bench.plant.xd), bench.plant.x.copy()
    bench.turns(bench.declaration.stop_time)
    assert bench.core.states.state is State.STANDBY
    assert (np.abs(bench.plant.x - x) <= 0.5 * speed**2 / bench.declaration.deceleration + EXTRA_TRAVEL).all()
    for _ in range(round(0.5 / bench.period)):
        bench.turn()
        assert np.abs(bench.plant.xd).max() < REST


def test_a_sound_machine_is_not_stopped():
    assert false_stops(usual('package', RUN)[0], 0, 4.0) == []


@pytest.mark.parametrize(('refusals', 'reasons'), [(1, set()), (10**6, {'it moves'})])
def test_a_machine_that_swings_after_a_stop_is_enabled_later(refusals, reasons, monkeypatch):
    attempts, enable = Counter(), Bench.enable

    def enable_later(bench):
        attempts[bench] += 1
        if 1 < attempts[bench] <= 1 + refusals:        # the first one activates the machine
            raise SafetyError('it moves')
        enable(bench)

    monkeypatch.setattr(Bench, 'enable', enable_later)
    assert set(false_stops(usual('package', RUN)[0], 0, 10.0)) == reasons and max(attempts.values()) > 1


def test_a_stop_on_its_path_leaves_an_axis_the_speed_of_its_reference_F42():
    """All axes come to rest together, so that most slow down late: one that had stuck swings about such a reference."""
    assert false_stops(make_machine(PID, rate=RATE), 21, 16.5) == []


@pytest.mark.long
def test_an_axis_that_sticks_and_then_swings_in_a_stop_is_not_failing_F42():
    """PID leaves it behind its reference until friction lets it go, as the stop begins."""
    assert false_stops(make_machine(PID, plant='package', rate=100.0), 0, 180.0) == []


@pytest.mark.parametrize(('plant', 'level', 'off', 'seed', 'minutes'), thorough([
    ('package', 'effort', CORNERS[0], 11, 6.0),     # ever more force than that of a model that is lighter
    ('package', 'effort', EXACT, 5, 8.0),           # a stop that needs more than the largest force
    ('second', 'valve', CORNERS[5], 0, 4.0)],       # a bias of friction, in a stop
    1, several=True))
def test_an_exact_or_a_wrong_model_is_no_failing_law_F39(plant, level, off, seed, minutes):
    (_, found), = sound_runs(minutes, [seed], [plant], [100.0], [level], [off])
    assert found == []


def failing(kind, rate, fault, state, name=None):
    """The `MotionTrial` of a law that fails, or a sensor that lies, on the plant of the package."""
    machine = make_machine(kind, name, rate=rate)
    lie = next(one for one, where in cases(kind, fault) if where is state)
    return run_motion(machine, 'package', lie, state, 0, healthy_speeds(machine, state, 0))


def test_a_late_law_swings_no_faster_than_allowed():
    trial = failing('effort', RATE, 'law: 50 ms late', HOLD)
    assert trial.good, trial.text()


def test_a_late_law_that_swings_the_slew_ever_more_in_motion_stops_F41():
    trial = failing(PID, 100.0, 'law: 50 ms late', State.SAFE)      # reset, enabled, and sent on a way
    assert 'swings about the speed of its reference' in trial.reason and trial.end == 'SAFE'
    assert trial.speed < 0.16 and trial.travel <= 0.02, trial.text()        # 0.31 rad/s before it was found


def test_a_blind_stop_gives_nothing_that_the_machine_did_not_get_before():
    """Errors and integrals of a law whose commands do not reach the machine grow: all at once they would be a blow."""
    trial = failing(PID, 100.0, 'law: frozen', HOLD)
    assert trial.good and trial.reason, trial.text()


@pytest.mark.parametrize(('name', 'level', 'fault', 'state'), [
    ('excavator', 'effort', 'law: full, backwards', HOLD), ('excavator', 'effort', 'the_law_gives_a_full_effort', RUN),
    ('pkm_2pur2rpu', 'effort', 'law: full', RUN)])
def test_efforts_of_more_actuators_than_coordinates_are_judged_F39(name, level, fault, state):
    """By what they do to the coordinates: several actuators may drive one."""
    trial = failing(level, RATE, fault, state, name)
    assert not any('speed' in bound for bound in trial.missed) and 'F39' in trial.reason, trial.text()


@pytest.mark.parametrize(('rate', 'lie', 'state', 'fault'), [
    (500.0, 'encoder: an encoder drifts, its velocity too', HOLD, 'F38'),
    (100.0, 'supply: the supply half', RUN, 'F37')], ids=['drift soon after enabling', 'supply at 100 Hz'])
def test_a_lie_is_found_before_a_rod_is_too_fast(rate, lie, state, fault):
    trial = failing('valve', rate, lie, state)
    assert trial.good and fault in trial.reason, trial.text()


def test_a_ramp_opens_no_valve_farther_than_it_was():
    """That of a machine which is braked would else be opened for the speed of its reference."""
    bench = Bench(usual('package', RUN)[0], 0)
    prepare(bench, RUN)
    with bench.law_spoilt(lambda command: 0.8 * command):
        bench.turns(0.05)
    valves, last = bench.law.cylinders['axis'], np.abs(bench.output.command)
    assert last[valves].min() > 0.02
    bench.emergency_stop = True
    while bench.core.states.state is not State.SAFE:
        opening = np.abs(bench.turn().command)
        assert (opening[valves] <= last[valves] + 1e-12).all()
        last = opening


def test_a_blind_stop_of_forces_does_not_accelerate_anew_as_in_the_states_that_are_missing():
    trial = of_forces('effort', 'F01: no_states', RATE)
    assert trial.good, trial.text()


@pytest.mark.parametrize(('kind', 'rate', 'off'), [
    (FRICTION, 200.0, EXACT), (FRICTION, 100.0, Mismatch(friction=1.1)), (FRICTION, 200.0, Mismatch(inertia=1.1)),
    ('effort', 200.0, Mismatch(inertia=0.9))], ids=['exact', 'friction', 'inertia', 'unknown load'])
def test_a_blind_stop_of_forces_keeps_what_the_law_had_learnt(kind, rate, off):
    """Seals that hold a light axis at once give its momentum to the others; integrals carry what is not modelled."""
    trial = of_forces(kind, 'F01: no_states', rate, off)
    assert trial.good, trial.text()


def test_a_blind_stop_of_forces_hardly_follows_an_encoder_that_drifts():
    """What the law asked for its error drives the machine away."""
    trial = failing(FRICTION, RATE, 'encoder: an encoder drifts', State.DEGRADED)
    assert trial.good and 'F11' in trial.reason, trial.text()


@pytest.mark.parametrize('fault', ['F01: no_states', 'F09: one_position_frozen'], ids=['ramp', 'held'])
def test_friction_does_not_throw_an_axis_back(fault):
    """What overcame 4 kN of friction must not be gone in one step."""
    trial = of_forces(FRICTION, fault, 500.0)
    assert trial.good, trial.text()


def test_forces_that_the_motion_contradicts_leave_what_the_law_had_learnt_F43():
    """Those of the model, for the position of an encoder that has drifted, would throw the light telescope."""
    trial = failing('effort', RATE, 'encoder: an encoder drifts, its velocity too', State.DEGRADED)
    assert trial.good and 'F43' in trial.reason, trial.text()


def test_velocities_that_begin_to_lie_throw_no_axis():
    trial = of_forces(FRICTION, 'encoder: two velocities swapped', 100.0)
    assert trial.speed < 1.3 * trial.allowed, trial.text()      # it was 19 times


def of_forces(kind, fault, rate, off=EXACT):
    """Return the `MotionTrial` of a fault in RUN at force level, on the second plant; off: `Mismatch` of the model."""
    machine = with_wrong_model(make_machine(kind, plant='second', rate=rate), off)
    injection = next(one for one, state in cases(kind, fault) if state is RUN)
    return run_motion(machine, 'second', injection, RUN, 0, healthy_speeds(machine, RUN, 0))


def test_valves_that_a_lie_has_opened_at_rest_shut_on_a_ramp():
    """The law follows an encoder that drifts; valves that shut at once would let the tilt swing on its oil."""
    drift = next(one for one in INJECTIONS if one.name == 'an_encoder_drifts')
    trial = run_injection(make_machine('valve'), drift, HOLD, 5)
    assert trial.good, trial
