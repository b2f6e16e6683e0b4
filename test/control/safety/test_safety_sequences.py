"""The sub-states, called in any order: what must never happen."""

from conftest import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
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
)
from support.control.safety_declarations import MS, T

from psdyn_ros.control.safety.fault_table import CONDITIONS, Demand, Result, State
from psdyn_ros.control.safety.state_machine import SafetyError

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
TestAnyOrder.settings = settings(max_examples=examples(60), stateful_step_count=40)
