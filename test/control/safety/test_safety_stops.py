"""How the sub-states stop: in a box of time, for good where it was a fault, and SAFE until a reset."""

import pytest
from support.control.safety_controller import (
    DEGRADED,
    HOLD,
    PASS,
    PROBATION,
    REPORTED,
    RUN,
    SAFE,
    STANDBY,
    STOP_TIME,
    STOPPING,
    Controller,
    holding,
    running,
    safe,
)
from support.control.safety_declarations import MS, T

from psdyn_ros.control.safety.fault_table import Demand

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
    assert c.cycle('conflicting_commands') is SAFE


def test_a_stop_turns_blind_and_stays_so():
    c = running()
    c.cycle('tracking')
    assert c.s.state_valid
    c.cycle('state_jump')
    assert not c.s.state_valid
    c.cycle(passing=['state_jump'])
    assert not c.s.state_valid
    c.wait(STOP_TIME)
    c.wait(PROBATION)
    c.s.reset(c.now)
    c.cycle()
    assert c.s.state_valid


@pytest.mark.parametrize('names', [('state_jump', 'tracking'), ('tracking', 'state_jump')])
def test_one_fault_of_several_makes_a_stop_blind(names):
    c = running()
    assert c.cycle(*names) is STOPPING
    assert not c.s.state_valid


def test_trust_returns_with_the_next_stop():
    c = running()
    c.cycle('state_jump')
    assert not c.s.state_valid
    c.wait(STOP_TIME)
    c.wait(PROBATION)
    c.s.reset(c.now)
    c.s.enable(c.now)
    assert c.cycle('tracking') is STOPPING
    assert c.s.state_valid


@pytest.mark.parametrize('stop, end', [('tracking', SAFE), ('state_jump', STOPPING)])
def test_a_gap_of_states_ends_a_stop_that_needs_them(stop, end):
    c = running()
    assert c.cycle(stop) is STOPPING
    assert c.cycle(after=150 * MS, measured=False) is end


def test_states_that_are_lost_in_safe_count_until_the_reset():
    c = running()
    assert c.cycle('branch_flip') is SAFE and not c.s.state_valid
    c.cycle(after=150 * MS, measured=False)
    c.wait(2 * PROBATION)
    assert c.s.reasons.keys() == {'branch_flip', 'state_lost'}


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
    assert (c.s.state, c.s.enabled, c.s.state_valid) == (STOPPING, False, True)
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
    assert not c.s.state_valid
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
    assert c.cycle('conflicting_commands') is STANDBY
    call = c.s.enable if active else c.s.activate
    assert 'F32: conflicting_commands fails' in c.refused(call)
    assert 'F32: conflicting_commands fails' in c.refused(c.s.reset)
    c.cycle(passing=['conflicting_commands'])
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
