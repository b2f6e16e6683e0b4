"""The sub-states of the controller: which state each fault leads to, what leads out of it, and what never does."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from safety_declarations import MS, PERIOD, T, declaration

from psdyn_ros import PsdynError, UnknownNameError
from psdyn_ros.control.fault_table import CONDITIONS, Demand, Result, State
from psdyn_ros.control.safety_states import LADDER, SafetyError, SafetyStates

STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
PASS, FAIL, STALE, ERROR = Result
DECLARATION = declaration()
REPORTED = sorted(CONDITIONS.keys() - set(LADDER))
STOP_TIME, PROBATION = 500 * MS, 1000 * MS


class Controller:
    """States with a clock, whose cycles have a fresh measured state unless they are told otherwise."""

    def __init__(self, *, state=STANDBY):
        self.s = SafetyStates(DECLARATION, PERIOD)
        self.now = 10**12
        self.cycle()
        if state >= STANDBY:
            self.s.activate(self.now)
        if state >= RUN:
            self.s.enable(self.now)
            self.cycle()
        if state in (RUN, DEGRADED):
            self.s.reference_accepted(self.now)
            self.cycle()

    def cycle(self, *failing, count=1, measured=True, passing=(), after=T, result=FAIL, demand=None):
        """Run cycles in which conditions fail or pass; return the state."""
        for _ in range(count):
            self.now += after
            if measured:
                self.s.state_accepted(self.now)
            for name in passing:
                self.s.report(self.now, name, PASS)
            for name in failing:
                self.s.report(self.now, name, result, f'{name} fails', demand)
            self.s.step(self.now)
        return self.s.state

    def wait(self, ns, **options):
        """Run cycles for some time; return the state."""
        return self.cycle(count=ns // T, **options)

    def refused(self, call):
        with pytest.raises(SafetyError) as error:
            call(self.now)
        return str(error.value)


def running():
    c = Controller(state=RUN)
    assert c.s.state is RUN
    return c


def holding():
    c = Controller(state=HOLD)
    assert c.s.state is HOLD
    return c


def safe(name='exception'):
    c = running()
    assert c.cycle(name) is SAFE
    return c


# the way to motion, and back

def test_the_way_to_motion():
    s = SafetyStates(DECLARATION, PERIOD)
    assert (s.state, s.active, s.enabled, s.trusted) == (STANDBY, False, False, True)
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


# the ladder of F01

@pytest.mark.parametrize('age, state, trusted, reasons', [
    (3 * T - 1, RUN, True, set()),
    (3 * T, DEGRADED, True, {'state_missed'}),
    (20 * MS, DEGRADED, True, {'state_missed'}),
    (20 * MS + 1, STOPPING, False, {'state_missed', 'state_silent'}),
    (100 * MS, STOPPING, False, {'state_missed', 'state_silent'}),
    (100 * MS + 1, SAFE, False, {'state_missed', 'state_silent', 'state_lost'}),
    (-1, SAFE, False, {'state_missed', 'state_silent', 'state_lost'}),
])
def test_F01_a_state_that_does_not_come(age, state, trusted, reasons):
    c = running()
    assert c.s.step(c.now + age) is state
    assert c.s.trusted is trusted
    assert set(c.s.reasons) == reasons
    assert {name for name, flag in c.s.flags.items() if flag} == reasons
    for name in reasons:
        assert c.s.reasons[name] == f'F01: the last state is {age / 1e6:.1f} ms old'
        assert c.s.results[name] is STALE
        assert c.s.counts[name] == 1


def test_F01_missed_states_in_cycles():
    c = running()
    states = [c.cycle(measured=False) for _ in range(60)]
    assert states == [RUN] * 2 + [DEGRADED] * 8 + [STOPPING] * 40 + [SAFE] * 10
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
    assert not c.s.trusted, 'once blind a stop stays blind'
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
        assert c.s.trusted is demand.trusted
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
    assert c.s.trusted
    c.s.report(c.now, 'overrun', FAIL, 'blind', Demand(STOPPING, False))
    assert c.cycle() is STOPPING
    assert not c.s.trusted
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


# STOPPING

def test_a_stop_ends_in_safe_when_the_machine_is_at_rest():
    c = running()
    c.s.at_rest(c.now)
    assert c.cycle('tracking') is STOPPING, 'the rest is that of this stop'
    assert (c.s.enabled, c.s.active) == (False, True)
    assert c.cycle() is STOPPING
    c.s.at_rest(c.now)
    assert c.cycle() is SAFE
    assert c.s.active


def test_a_stop_ends_in_safe_at_the_latest_after_the_stop_time():
    c = running()
    c.cycle('tracking')
    assert c.wait(STOP_TIME - T) is STOPPING
    assert c.cycle() is SAFE


def test_a_stop_ends_when_time_goes_back():
    c = running()
    c.cycle('tracking')
    assert c.cycle(after=-1) is SAFE


@pytest.mark.parametrize('change', [dict(after=0), dict(after=STOP_TIME - 1)])
def test_the_stop_time_to_the_nanosecond(change):
    c = running()
    c.cycle('tracking')
    assert c.cycle(**change) is STOPPING
    assert c.cycle(after=STOP_TIME) is SAFE


def test_a_further_fault_does_not_prolong_a_stop():
    c = running()
    c.cycle('tracking')
    assert c.wait(STOP_TIME - T, demand=Demand(STOPPING)) is STOPPING
    assert c.cycle('rival_commands') is SAFE


def test_a_stop_turns_blind_and_stays_so():
    c = running()
    c.cycle('tracking')
    assert c.s.trusted
    c.cycle('state_jump')
    assert not c.s.trusted
    c.cycle(passing=['state_jump'])
    assert not c.s.trusted
    c.wait(STOP_TIME)
    c.wait(PROBATION)
    c.s.reset(c.now)
    c.cycle()
    assert c.s.trusted


@pytest.mark.parametrize('names', [('state_jump', 'tracking'), ('tracking', 'state_jump')])
def test_one_fault_of_several_makes_a_stop_blind(names):
    c = running()
    assert c.cycle(*names) is STOPPING
    assert not c.s.trusted


def test_trust_returns_with_the_next_stop():
    c = running()
    c.cycle('state_jump')
    assert not c.s.trusted
    c.wait(STOP_TIME)
    c.wait(PROBATION)
    c.s.reset(c.now)
    c.s.enable(c.now)
    assert c.cycle('tracking') is STOPPING
    assert c.s.trusted


def test_nothing_begins_during_a_stop():
    c = running()
    c.cycle('tracking')
    for call in (c.s.activate, c.s.enable, c.s.reset):
        assert 'is refused: a stop is in progress' in c.refused(call)
    assert c.s.reference_accepted(c.now) is False
    assert c.cycle() is STOPPING


def test_a_stop_is_no_time_for_a_reset_even_without_a_fault():
    c = running()
    c.s.disable(c.now)
    assert c.refused(c.s.reset) == 'reset is refused: a stop is in progress'
    assert c.s.state is STOPPING


# disabling and deactivation

@pytest.mark.parametrize('start', [running, holding])
def test_disabling_stops_and_then_stands_by(start):
    c = start()
    c.s.disable(c.now)
    assert (c.s.state, c.s.enabled, c.s.trusted) == (STOPPING, False, True)
    assert c.cycle() is STOPPING
    c.s.at_rest(c.now)
    assert c.cycle() is STANDBY
    assert c.s.active
    assert not any(c.s.flags.values())
    c.s.enable(c.now)
    assert c.cycle() is HOLD, 'no reference is left of before'


def test_disabling_has_the_time_box_of_a_stop():
    c = running()
    c.s.disable(c.now)
    assert c.wait(STOP_TIME - T) is STOPPING
    assert c.cycle() is STANDBY


def test_disabling_twice_is_one_stop():
    c = running()
    c.s.disable(c.now)
    c.wait(STOP_TIME - T)
    c.s.disable(c.now)
    assert c.cycle() is STANDBY
    c.s.disable(c.now)
    assert c.cycle() is STANDBY


def test_disabling_does_not_forgive_the_fault_of_a_stop():
    c = running()
    c.cycle('tracking')
    c.s.disable(c.now)
    c.s.at_rest(c.now)
    assert c.cycle() is SAFE


def test_a_fault_while_disabling_ends_in_safe():
    c = running()
    c.s.disable(c.now)
    assert c.cycle('state_jump') is STOPPING
    assert not c.s.trusted
    c.s.at_rest(c.now)
    assert c.cycle() is SAFE
    assert c.s.reasons.keys() == {'state_jump'}


def test_a_lesser_fault_while_disabling_is_none():
    c = running()
    c.s.disable(c.now)
    assert c.cycle('overrun', 'singular') is STOPPING
    c.s.at_rest(c.now)
    assert c.cycle() is STANDBY


def test_deactivation_stops_first():
    c = running()
    c.s.deactivate(c.now)
    assert (c.s.state, c.s.active) == (STOPPING, True)
    assert c.cycle() is STOPPING
    assert c.s.active
    assert 'a stop is in progress' in c.refused(c.s.activate)
    c.s.at_rest(c.now)
    assert c.cycle() is STANDBY
    assert not c.s.active
    c.s.activate(c.now)
    c.s.enable(c.now)
    c.s.disable(c.now)
    c.s.at_rest(c.now)
    assert c.cycle() is STANDBY
    assert c.s.active, 'only the deactivation before was to end in inactivity'


def test_deactivation_at_rest_is_immediate():
    c = Controller()
    c.s.deactivate(c.now)
    assert not c.s.active
    assert c.cycle() is STANDBY


def test_deactivation_during_a_stop():
    c = running()
    c.cycle('tracking')
    c.s.deactivate(c.now)
    assert c.s.active
    c.s.at_rest(c.now)
    assert c.cycle() is SAFE
    assert not c.s.active


def test_safe_outlives_deactivation():
    c = safe()
    c.s.deactivate(c.now)
    assert not c.s.active
    assert c.cycle() is SAFE
    c.wait(PROBATION)
    said = c.refused(c.s.activate)
    assert said == 'activation is refused: the state is SAFE, which only a reset leaves; F29: exception fails'
    c.s.reset(c.now)
    assert (c.s.state, c.s.active) == (STANDBY, False)
    c.s.activate(c.now)


# SAFE and reset

@pytest.mark.parametrize('start', [Controller, running, holding])
def test_F36_emergency_stop_is_immediate_from_everywhere(start):
    c = start()
    assert c.cycle('emergency_stop') is SAFE
    assert not c.s.enabled


def test_F36_emergency_stop_during_a_stop():
    c = running()
    c.cycle('tracking')
    assert c.cycle('emergency_stop') is SAFE
    assert c.s.active


def test_safe_is_left_by_reset_only():
    c = safe()
    assert c.wait(2 * PROBATION, passing=REPORTED) is SAFE
    for call in (c.s.activate, c.s.enable):
        assert 'the state is SAFE, which only a reset leaves' in c.refused(call)
    c.s.disable(c.now)
    c.s.reference_ended(c.now)
    c.s.at_rest(c.now)
    assert c.s.reference_accepted(c.now) is False
    assert c.cycle() is SAFE
    c.s.reset(c.now)
    assert c.s.state is STANDBY
    assert c.s.reasons == {}


def test_reset_never_starts_motion():
    c = safe()
    c.wait(PROBATION)
    c.s.reset(c.now)
    assert c.wait(100 * MS) is STANDBY
    assert not c.s.enabled
    assert c.s.reference_accepted(c.now) is False
    c.s.enable(c.now)
    assert c.wait(100 * MS) is HOLD, 'a reference must be accepted after the reset'
    c.s.reference_accepted(c.now)
    assert c.cycle() is RUN


def test_reset_where_nothing_is_to_be_reset():
    for start, state in ((Controller, STANDBY), (running, RUN), (holding, HOLD)):
        c = start()
        c.s.reset(c.now)
        assert c.s.state is state
        assert c.cycle() is state


def test_reset_does_not_forgive_reduced_speed():
    c = running()
    c.cycle('overrun')
    c.s.reset(c.now)
    assert c.cycle() is DEGRADED


def test_reset_is_refused_while_a_cause_is_present():
    c = safe('emergency_stop')
    assert c.refused(c.s.reset) == 'reset is refused: F36: emergency_stop fails'
    assert c.s.state is SAFE
    c.cycle('branch_flip')
    c.s.report(c.now, 'emergency_stop', PASS)
    c.cycle()
    assert c.refused(c.s.reset) == 'reset is refused: F12: branch_flip fails', 'its probation lasts'
    c.wait(PROBATION - 2 * T)
    c.refused(c.s.reset)
    c.cycle()
    c.s.reset(c.now)
    assert c.s.state is STANDBY


def test_reset_does_not_wait_for_lesser_conditions():
    c = safe('emergency_stop')
    c.cycle('overrun', 'singular', passing=['emergency_stop'])
    c.s.reset(c.now)
    assert c.s.state is STANDBY
    assert c.s.flags['overrun']
    assert c.s.flags['singular']
    c.s.enable(c.now)
    c.s.reference_accepted(c.now)
    assert c.cycle() is DEGRADED


def test_refusals_name_every_reason():
    c = running()
    c.cycle('emergency_stop', 'tracking')
    c.wait(2 * T, measured=False)
    said = c.refused(c.s.enable)
    for part in ('the state is SAFE', 'F36: emergency_stop fails', 'F20: tracking fails'):
        assert part in said


# what is not driven

@pytest.mark.parametrize('active', [False, True])
def test_a_stop_is_not_latched_where_nothing_moves_but_nothing_begins_until_it_is_good(active):
    c = Controller(state=STANDBY if active else -1)
    assert c.cycle('rival_commands') is STANDBY
    call = c.s.enable if active else c.s.activate
    assert 'F32: rival_commands fails' in c.refused(call)
    assert 'F32: rival_commands fails' in c.refused(c.s.reset)
    c.cycle(passing=['rival_commands'])
    assert c.wait(PROBATION - T) is STANDBY
    c.refused(call)
    c.cycle()
    call(c.now)


def test_an_absent_emergency_stop_refuses_activation_but_needs_no_reset():
    c = Controller(state=-1)
    assert c.cycle('emergency_stop') is STANDBY
    assert 'F36: emergency_stop fails' in c.refused(c.s.activate)
    c.cycle(passing=['emergency_stop'])
    c.s.activate(c.now)
    assert c.s.active


def test_an_exception_is_latched_even_before_activation():
    c = Controller(state=-1)
    assert c.cycle('exception') is SAFE
    c.wait(PROBATION)
    assert 'the state is SAFE' in c.refused(c.s.activate)
    c.s.reset(c.now)
    c.s.activate(c.now)


def test_conditions_that_began_in_standby_do_not_stop_what_is_enabled_later():
    c = Controller()
    c.cycle('tracking')
    c.wait(PROBATION)
    c.s.enable(c.now)
    c.s.reference_accepted(c.now)
    assert c.wait(PROBATION) is RUN


# any order of everything

DEMANDS = st.none() | st.builds(Demand, st.sampled_from(State), st.booleans())


class AnyOrder(RuleBasedStateMachine):
    """Calls in any order, held against what must never happen."""

    def __init__(self):
        super().__init__()
        self.c = Controller(state=-1)
        self.s = self.c.s
        self.before = STANDBY
        self.was_reset = False
        self.enabled_since = self.accepted_since = False    # a reset
        self.must_be_safe = False
        self.faulty = False         # whether something that stops was reported while driven, and no reset came since
        self.stopping_since = None

    def note(self, reset=False):
        """Judge the change of state since the last call."""
        state, before = self.s.state, self.before
        if before is SAFE and state is not SAFE:
            assert reset, 'SAFE was left without a reset'
            assert state is STANDBY
        if before is STOPPING:
            assert state in (STOPPING, SAFE, STANDBY)
        if state is STOPPING and before is not STOPPING:
            self.stopping_since = self.c.now
        if state in (RUN, DEGRADED):
            assert self.accepted_since, 'moves without a reference accepted since it was enabled'
        if state in (RUN, DEGRADED, HOLD):
            assert self.enabled_since
            assert self.s.active
            assert self.s.enabled
        if not self.s.active:
            assert state in (STANDBY, SAFE)
        self.before = state

    @rule(name=st.sampled_from(REPORTED), result=st.sampled_from(Result), demand=DEMANDS)
    def report(self, name, result, demand):
        self.s.report(self.c.now, name, result, 'text', demand)
        wanted = demand or CONDITIONS[name].demand
        if result and wanted and wanted.state is SAFE and self.s.active:
            self.must_be_safe = True
        if result and wanted and wanted.state >= STOPPING and (self.s.enabled or self.s.state is STOPPING):
            self.faulty = True
        self.note()

    @rule(ns=st.sampled_from([0, 1, T, T, T, 7 * T, 30 * MS, STOP_TIME, PROBATION, -T, -PROBATION]),
          measured=st.booleans())
    def step(self, ns, measured):
        self.c.now += ns
        if measured:
            self.s.state_accepted(self.c.now)
        state = self.s.step(self.c.now)
        assert state is self.s.state
        if self.faulty:
            assert state in (STOPPING, SAFE)
        if self.must_be_safe:
            assert state is SAFE
            self.must_be_safe = False
        if state is STOPPING and self.before is STOPPING:
            assert 0 <= self.c.now - self.stopping_since < STOP_TIME
        if state is not STOPPING and state < STOPPING and not self.s.enabled:
            self.enabled_since = self.accepted_since = False
        self.note()

    def attempt(self, call):
        state, enabled, active = self.s.state, self.s.enabled, self.s.active
        try:
            call(self.c.now)
        except SafetyError as error:
            assert len(str(error)) > 20
            assert (self.s.state, self.s.enabled, self.s.active) == (state, enabled, active)
            return False
        return True

    @rule()
    def activate(self):
        self.attempt(self.s.activate)
        self.note()

    @rule()
    def deactivate(self):
        self.s.deactivate(self.c.now)
        assert not self.s.active or self.s.state is STOPPING
        self.note()

    @rule()
    def enable(self):
        if self.attempt(self.s.enable):
            assert self.s.enabled
            self.enabled_since = True
        self.note()

    @rule()
    def disable(self):
        self.s.disable(self.c.now)
        assert not self.s.enabled
        self.note()
        self.accepted_since = False

    @rule()
    def reset(self):
        before = self.s.state
        done = self.attempt(self.s.reset)
        assert self.s.state is (STANDBY if done and before is SAFE else before)
        if done and before is SAFE:
            assert not self.s.enabled
            self.faulty = False
            self.enabled_since = self.accepted_since = False
        self.note(reset=True)

    @rule()
    def accept(self):
        enabled = self.s.enabled
        assert self.s.reference_accepted(self.c.now) is enabled
        self.accepted_since = self.accepted_since or enabled
        self.note()

    @rule()
    def end(self):
        self.s.reference_ended(self.c.now)
        self.note()

    @precondition(lambda self: self.s.state is STOPPING)
    @rule()
    def rest(self):
        self.s.at_rest(self.c.now)
        self.note()

    @rule()
    def go(self):
        """The whole way to motion, which calls in any order seldom find."""
        self.step(T, True)
        for name in REPORTED:
            self.s.report(self.c.now, name, PASS)
        for ns in (T, PROBATION, PROBATION):
            self.step(ns, True)
        self.reset()
        self.activate()
        self.enable()
        self.accept()
        self.step(T, True)

    @invariant()
    def names_are_complete(self):
        assert self.s.flags.keys() == self.s.counts.keys() == CONDITIONS.keys()
        assert all(self.s.flags[name] for name in self.s.reasons)


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40)
