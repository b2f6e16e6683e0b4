"""The sub-states of the controller: which state each fault leads to, and what leads to motion."""

import pytest
from support.control.safety_controller import (
    DECLARATION,
    DEGRADED,
    ERROR,
    FAIL,
    HOLD,
    PASS,
    PROBATION,
    REPORTED,
    RUN,
    SAFE,
    STALE,
    STANDBY,
    STOP_TIME,
    STOPPING,
    Controller,
    holding,
    running,
    safe,
)
from support.control.safety_declarations import MS, PERIOD, T

from psdyn_ros import PsdynError, UnknownNameError
from psdyn_ros.control.safety.fault_table import CONDITIONS, Demand
from psdyn_ros.control.safety.state_machine import SafetyError, SafetyStates

# the way to motion, and back

def test_the_way_to_motion():
    s = SafetyStates(DECLARATION, PERIOD)
    assert (s.state, s.active, s.enabled, s.state_valid) == (STANDBY, False, False, True)
    s.state_accepted(0)
    s.activate(0)
    assert (s.step(0), s.active, s.enabled) == (STANDBY, True, False)
    s.enable(0)
    assert (s.step(0), s.enabled) == (HOLD, True)
    assert s.step(0) is HOLD
    assert s.reference_accepted(0) is True
    assert s.step(0) is RUN
    s.reference_ended(0)
    assert s.step(0) is HOLD
    assert s.reference_accepted(0) is True
    assert s.step(0) is RUN


def test_a_fault_of_input_is_an_error_of_the_package():
    assert issubclass(SafetyError, PsdynError)


@pytest.mark.parametrize('age, refused', [(0, False), (20 * MS, False), (20 * MS + 1, True), (-1, True)])
def test_F18_nothing_begins_without_a_fresh_state(age, refused):
    for what in ('activate', 'enable'):
        s = SafetyStates(DECLARATION, PERIOD)
        s.state_accepted(10**9)
        if what == 'enable':
            s.activate(10**9)
        if refused:
            with pytest.raises(SafetyError, match=f'F18: the last state is {age / 1e6:.1f} ms old'):
                getattr(s, what)(10**9 + age)
        else:
            getattr(s, what)(10**9 + age)
        assert (s.active, s.enabled) == ((what == 'enable' or not refused), what == 'enable' and not refused)


def test_F18_nothing_begins_before_the_first_state():
    s = SafetyStates(DECLARATION, PERIOD)
    assert s.step(0) is STANDBY
    with pytest.raises(SafetyError, match='^activation is refused: F18: no state was accepted yet$'):
        s.activate(0)
    assert not s.active
    assert not any(s.flags.values())


def test_enabling_takes_an_active_controller():
    c = Controller(state=-1)
    assert c.refused(c.s.enable) == 'enabling is refused: the controller is not active'
    assert not c.s.enabled
    assert c.cycle() is STANDBY


def test_activation_and_enabling_may_be_repeated():
    c = running()
    c.s.activate(c.now)
    c.s.enable(c.now)
    assert c.cycle() is RUN


def test_a_reference_counts_only_while_enabled():
    c = Controller()
    assert c.s.reference_accepted(c.now) is False
    assert c.cycle() is STANDBY
    c.s.enable(c.now)
    assert c.cycle() is HOLD, 'the reference accepted before moves nothing'


# the timeouts of F01

@pytest.mark.parametrize('age, state, state_valid, reasons', [
    (3 * T - 1, RUN, True, set()),
    (3 * T, DEGRADED, True, {'state_missed'}),
    (20 * MS, DEGRADED, True, {'state_missed'}),
    (20 * MS + 1, STOPPING, False, {'state_missed', 'state_silent'}),
    (100 * MS, STOPPING, False, {'state_missed', 'state_silent'}),
    (100 * MS + 1, SAFE, False, {'state_missed', 'state_silent', 'state_lost'}),
    (-1, SAFE, False, {'state_missed', 'state_silent', 'state_lost'}),
])
def test_F01_a_state_that_does_not_come(age, state, state_valid, reasons):
    c = running()
    assert c.s.step(c.now + age) is state
    assert c.s.state_valid is state_valid
    assert set(c.s.reasons) == reasons
    assert {name for name, flag in c.s.flags.items() if flag} == reasons
    assert c.s.unsettled is bool(reasons)
    for name in reasons:
        assert c.s.reasons[name] == f'F01: the last state is {age / 1e6:.1f} ms old'
        assert c.s.results[name] is STALE
        assert c.s.counts[name] == 1


def test_F01_missed_states_in_cycles():
    c = running()
    states = [c.cycle(measured=False) for _ in range(60)]
    assert states == [RUN] * 2 + [DEGRADED] * 8 + [STOPPING] * 50
    assert (c.s.counts['state_missed'], c.s.counts['state_silent'], c.s.counts['state_lost']) == (58, 50, 10)


def test_F01_missed_states_are_forgiven_after_the_probation():
    c = running()
    assert c.cycle(count=3, measured=False) is DEGRADED
    assert c.cycle() is DEGRADED
    assert c.s.results['state_missed'] is PASS
    good = c.now
    assert c.wait(PROBATION - T) is DEGRADED
    assert c.now == good + PROBATION - T
    assert c.cycle() is RUN
    assert c.s.reasons == {}


def test_probation_begins_anew_with_each_miss():
    c = running()
    c.cycle(count=3, measured=False)
    c.wait(PROBATION // 2)
    c.cycle(count=3, measured=False)
    assert c.wait(PROBATION) is DEGRADED
    assert c.cycle() is RUN


def test_states_that_come_again_do_not_end_a_stop():
    c = running()
    assert c.cycle(count=11, measured=False) is STOPPING
    assert c.wait(STOP_TIME - T) is STOPPING
    assert not c.s.state_valid, 'once blind a stop stays blind'
    assert c.cycle() is SAFE


def test_before_the_first_state_there_is_no_ladder():
    s = SafetyStates(DECLARATION, PERIOD)
    assert s.step(10**15) is STANDBY
    assert not any(s.counts.values())


def test_silence_before_activation_is_no_fault_but_refuses_it_through_the_probation():
    c = Controller(state=-1)
    assert c.wait(200 * MS, measured=False) is STANDBY
    assert 'F01: the last state is' in c.refused(c.s.activate)
    c.cycle()
    assert 'F01' in c.refused(c.s.activate)
    c.wait(PROBATION)
    c.s.activate(c.now)
    assert c.s.active


# the table

@pytest.mark.parametrize('result', [FAIL, STALE, ERROR])
@pytest.mark.parametrize('name', REPORTED)
def test_each_condition_leads_to_what_the_table_says(name, result):
    demand = CONDITIONS[name].demand or Demand(RUN)
    for c in (running(), holding()):
        before = c.s.state
        assert c.cycle(name, result=result) is max(demand.state, before)
        assert c.s.state_valid is demand.state_valid
        assert c.s.results[name] is result
        assert c.s.flags == {each: each == name for each in CONDITIONS}
        assert c.s.counts == {each: int(each == name) for each in CONDITIONS}
        told = f'{CONDITIONS[name].id}: {name} fails'
        assert c.s.reasons == ({} if demand.state is RUN else {name: told})


@pytest.mark.parametrize('first', [None, 'overrun', 'clock_paused', 'tracking', 'exception'])
@pytest.mark.parametrize('second', ['overrun', 'clock_paused', 'tracking', 'exception'])
def test_the_worst_demand_wins(first, second):
    worst = max(CONDITIONS[name].demand.state for name in (first, second) if name)
    assert running().cycle(*filter(None, (first, second))) is worst
    c = running()
    c.cycle(*filter(None, (first,)))
    assert c.cycle(second) is worst


def test_a_condition_without_a_text_says_what_it_detects():
    c = running()
    c.s.report(c.now, 'overrun', FAIL)
    c.cycle()
    assert c.s.reasons == {'overrun': f'F30: {CONDITIONS["overrun"].detects}'}


def test_the_first_text_is_kept_and_every_report_is_counted():
    c = running()
    for text in ('first', 'second', 'third'):
        c.s.report(c.now, 'tracking', FAIL, text)
    c.cycle()
    c.s.report(c.now, 'tracking', FAIL, 'later')
    c.cycle()
    assert c.s.reasons['tracking'] == 'F20: first'
    assert c.s.counts['tracking'] == 4
    c.wait(PROBATION)
    assert not c.s.reset(c.now)
    c.s.report(c.now, 'tracking', FAIL, 'anew')
    assert c.s.reasons['tracking'] == 'F20: anew'


def test_the_first_text_of_a_latched_fault_outlives_its_probation():
    c = running()
    c.cycle('tracking')
    c.wait(2 * PROBATION)
    c.s.report(c.now, 'tracking', FAIL, 'later')
    assert c.s.reasons['tracking'] == 'F20: tracking fails'


def test_a_demand_may_differ_from_the_table_and_only_grows():
    c = running()
    assert c.cycle('overrun', demand=Demand(RUN)) is RUN
    assert c.s.reasons == {}
    assert c.s.flags['overrun']
    c.s.report(c.now, 'overrun', FAIL, 'more', Demand(DEGRADED))
    assert c.cycle() is DEGRADED
    assert c.s.reasons == {'overrun': 'F30: more'}
    c.s.report(c.now, 'overrun', FAIL, 'less', Demand(RUN))
    assert c.cycle() is DEGRADED
    assert c.s.reasons == {'overrun': 'F30: more'}
    c.s.report(c.now, 'overrun', FAIL, 'stop', Demand(STOPPING))
    assert c.cycle() is STOPPING
    assert c.s.state_valid
    c.s.report(c.now, 'overrun', FAIL, 'blind', Demand(STOPPING, False))
    assert c.cycle() is STOPPING
    assert not c.s.state_valid
    assert c.s.reasons == {'overrun': 'F30: blind'}


@pytest.mark.parametrize('name', ['no_such', 'state_lost', 'trackin'])
def test_what_is_not_in_the_table_is_not_reported(name):
    c = running()
    with pytest.raises(UnknownNameError, match=f"condition '{name}': none that is reported"):
        c.s.report(c.now, name, FAIL)
    assert c.cycle() is RUN
    if name == 'trackin':
        with pytest.raises(UnknownNameError, match="did you mean 'tracking'"):
            c.s.report(c.now, name, PASS)


def test_passing_checks_leave_no_trace():
    c = running()
    assert c.cycle(passing=REPORTED) is RUN
    assert not any(c.s.flags.values())
    assert not any(c.s.counts.values())
    assert set(c.s.results.values()) == {PASS}


# DEGRADED

def test_reduced_speed_lasts_until_the_condition_was_good_for_the_probation():
    c = running()
    c.cycle('overrun', count=3)
    assert c.wait(2 * PROBATION) is DEGRADED, 'a condition lasts until its check passes'
    c.cycle(passing=['overrun'])
    assert c.wait(PROBATION - T, passing=['overrun']) is DEGRADED
    assert c.s.flags['overrun']
    assert c.cycle() is RUN
    assert not c.s.flags['overrun']


def test_time_that_goes_back_prolongs_a_probation():
    c = running()
    c.cycle('overrun')
    c.cycle(passing=['overrun'])
    c.now -= 10 * PROBATION
    c.cycle()
    assert c.wait(PROBATION - T) is DEGRADED
    assert c.cycle() is RUN


def test_what_was_good_for_its_probation_stays_good_when_time_goes_back():
    c = safe()
    c.wait(PROBATION)
    c.now -= 10 * PROBATION
    c.cycle()
    c.s.reset(c.now)
    assert c.s.state is STANDBY


def test_an_event_is_over_once_it_was_told():
    c = running()
    assert c.cycle('stamp_order') is DEGRADED
    told = c.now
    assert c.wait(PROBATION - T) is DEGRADED
    assert c.cycle() is RUN
    assert c.now == told + PROBATION
    assert c.s.results['stamp_order'] is FAIL


def test_an_event_told_again_begins_its_probation_anew():
    c = running()
    c.cycle('stamp_order')
    c.wait(PROBATION // 2)
    c.cycle('stamp_order')
    assert c.wait(PROBATION - T) is DEGRADED
    assert c.cycle() is RUN


def test_reduced_speed_lasts_while_one_of_several_reasons_does():
    c = running()
    c.cycle('overrun')
    c.cycle('stamp_order')
    assert {c.cycle() for _ in range(PROBATION // T + 5)} == {DEGRADED}
    assert c.s.reasons.keys() == {'overrun'}


def test_reduced_speed_and_hold():
    c = running()
    assert c.cycle('overrun') is DEGRADED
    c.s.reference_ended(c.now)
    assert c.cycle() is HOLD
    c.s.reference_accepted(c.now)
    assert c.cycle() is DEGRADED


# HOLD

def test_a_demand_to_hold_fires_once_and_a_fresh_reference_leads_on():
    c = running()
    assert c.cycle('singular') is HOLD
    assert c.cycle('singular', count=5) is HOLD
    c.s.reference_accepted(c.now)
    assert c.cycle('singular') is RUN, 'away from the singularity'
    assert c.cycle(passing=['singular']) is RUN
    assert c.cycle('singular') is HOLD, 'it was armed again'


def test_good_news_alone_does_not_end_a_hold():
    c = running()
    c.cycle('stream_silent')
    assert c.wait(2 * PROBATION, passing=['stream_silent']) is HOLD
    c.s.reference_accepted(c.now)
    assert c.cycle() is RUN


def test_another_demand_to_hold_fires_beside_an_acknowledged_one():
    c = running()
    c.cycle('singular')
    c.s.reference_accepted(c.now)
    assert c.cycle('singular') is RUN
    assert c.cycle('singular', 'clock_paused') is HOLD


def test_a_demand_to_hold_that_fires_again_beside_an_acknowledged_one():
    c = running()
    c.cycle('stamp_order', 'singular', demand=Demand(HOLD))
    c.s.reference_accepted(c.now)
    assert c.cycle('singular') is RUN
    assert c.cycle('stamp_order', 'singular', demand=Demand(HOLD)) is HOLD


def test_a_demand_to_hold_fires_even_if_it_is_withdrawn_in_the_same_cycle():
    c = running()
    c.s.report(c.now, 'singular', FAIL)
    assert c.cycle(passing=['singular']) is HOLD
    assert c.s.reasons == {}


def test_a_demand_to_hold_needs_no_probation():
    c = running()
    c.cycle('stream_silent')
    assert c.cycle(passing=['stream_silent']) is HOLD
    assert c.s.reasons == {}


def test_a_hold_in_its_probation_holds_nothing():
    c = running()
    assert c.cycle('stamp_order', demand=Demand(HOLD)) is HOLD
    c.s.reference_accepted(c.now)
    assert c.cycle() is RUN
    assert c.cycle('stamp_order', demand=Demand(HOLD)) is HOLD


def test_of_a_check_passes_what_is_unsettled_and_not_found():
    c = Controller(state=HOLD)
    c.cycle('overrun', 'saturated', 'clock_paused')
    c.s.pass_others(c.now, {'overrun', 'saturated', 'stream_silent'}, ['saturated'])
    results = c.s.results
    assert (results['overrun'], results['saturated'], results['clock_paused']) == (PASS, FAIL, FAIL)
    assert c.s.flags['overrun'] and not c.s.flags['stream_silent']
