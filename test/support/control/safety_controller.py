"""Sub-states of a controller with a clock of their own, for tests."""

import pytest

from psdyn_ros.control.safety.fault_table import CONDITIONS, Result, State
from psdyn_ros.control.safety.state_machine import LADDER, SafetyError, SafetyStates

from .safety_declarations import MS, PERIOD, T, declaration

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
