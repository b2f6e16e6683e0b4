"""All that is measured, with the clocks that it is stamped by: checked, kept, and told to the safety states."""

import math
from typing import NamedTuple

import numpy as np

from ...model.errors import PsdynError
from ..monitors.clock import JUMP, ClockWatch
from ..monitors.state import IN_A_ROW, StateChecks
from ..monitors.timestamps import ORDER, MeasuredInput
from ..safety.fault_table import Demand, Result, State

PASS, FAIL, STALE = Result.PASS, Result.FAIL, Result.STALE
TOLD = Demand(State.RUN)        # counts, but asks for nothing
SETTLED = ('stamp_order', 'velocity_residual', 'closure_residual', 'branch_flip')     # by a state without them


class MeasuredState(NamedTuple):
    """A measured state of the coordinates; the arrays are kept."""

    stamp: int
    """ns on the clock of stamps."""
    x: np.ndarray
    """(dof,) float64, m and rad."""
    xd: np.ndarray
    """(dof,) float64, m/s and rad/s."""
    residual: float = 0.0
    """m, by which redundant joints disagree."""
    positions: np.ndarray | None = None
    """(m,) of the joints given to `StateChecks.measure`, where they are more than needed."""


class Inputs:
    """The last state, pressures and emergency stop that may be believed.

    config           `ControllerConfig`
    states           `SafetyStates`, to which results are reported
    needs_pressures  whether there must be pressures
    on_jump          called with the ns by which the clock of stamps jumped

    `checks` is the `StateChecks`; `clock` ns on the clock of ages, as of the last call with both times.
    """

    def __init__(self, config, states, needs_pressures, on_jump):
        declaration, period = config.declaration, config.period
        self.checks = StateChecks(config.machine, declaration, period)
        self.clock = 0
        self.pressures = self.supply = None
        self.needs_pressures, self.needs_emergency_stop = needs_pressures, config.emergency_stop
        self.simulated_time = config.simulated_time
        self._states, self._dof, self._on_jump = states, config.machine.dof, on_jump
        timeouts = declaration.timeouts
        self.pressure_input = MeasuredInput('pressures', timeouts, declaration.plausibility.clock_skew_ns, period)
        self._oldest, self._stop_age = timeouts.stopping_ns, timeouts.emergency_stop_ns
        self._stop_pressed, self._stop_arrival = False, None
        self._steady = 0            # ns, of the last look
        self._clocks = ClockWatch(config.simulated_time)
        self._epoch = None          # ns: stamp from which the seconds of trajectories are counted

    @property
    def stamp(self):
        """ns, of the last state believed; 0: none."""
        return self.checks.input.stamp

    @property
    def time(self):
        """s on the clock of trajectories, of the last state believed."""
        return 1e-9 * (self.checks.input.stamp - self._epoch)

    @property
    def age(self):
        """s since the last state believed was measured, at most the timeout after which it is not used any more."""
        return 1e-9 * min(self.checks.input.age(self.clock), self._oldest)

    def seconds(self, stamp):
        """s on the clock of trajectories of a stamp."""
        return 1e-9 * (stamp - self._epoch)

    def at(self, now):
        """ns on the clock of ages at `now`."""
        return self._clocks.at(now)

    def look(self, now, ros_now):
        """Look at the clocks; return ns on the clock of ages."""
        jump = self._clocks.look(now, ros_now)
        self.clock, self._steady = self._clocks.clock, now
        if jump:
            self._rebase(jump)
        return self.clock

    def _rebase(self, jump):
        """What was stamped before counts as if it had been stamped by the clock as it is."""
        self.checks.rebase(jump)
        self.pressure_input.rebase(jump)
        if self._epoch is not None:
            self._epoch += jump
        self._on_jump(jump)
        if self.simulated_time or abs(jump) > JUMP:
            self._states.report(self.clock, 'clock_reset' if self.simulated_time else 'clock_jump', FAIL,
                                f'the clock of stamps jumped by {jump / 1e6:.1f} ms')

    def take_state(self, measured, ros_now, desired_rate, trusting):
        """As `StateChecks.take`, at the time of the last `look`."""
        clock, report, checks = self.clock, self._states.report, self.checks
        stamp, x, xd, residual, positions = measured
        if x.shape != (self._dof,) or xd.shape != (self._dof,):
            refused = f'x {x.shape}, xd {xd.shape}: expected {(self._dof,)} of both'
            report(clock, 'state_malformed', FAIL, refused)
            return refused
        try:
            refused = checks.take(stamp, ros_now, clock, x, xd, residual, desired_rate, trusting, positions)
        except PsdynError as error:     # joints that fit no position of the machine
            report(clock, 'closure_residual', FAIL, str(error))
            return str(error)
        for name, fault, text in checks.findings:
            report(clock, name, FAIL, text, None if fault else TOLD)
        if refused:
            return refused
        self._states.state_accepted(clock)
        if self._epoch is None:
            self._epoch = stamp
        if self._states.unsettled:
            found = [finding[0] for finding in checks.findings]
            for name in SETTLED:
                if name not in found:
                    report(clock, name, PASS)
        return ''

    def take_pressures(self, stamp, ros_now, now, values, supply):
        """Take pressures (cylinders, 2) and that of the supply [Pa gauge]; return '' or why they are not used."""
        clock, report = self.look(now, ros_now), self._states.report
        refused = self.pressure_input.refuse(stamp, ros_now)
        if refused:
            kind, text = refused
            if kind is not ORDER:
                report(clock, 'state_stale', FAIL, text)
            else:
                report(clock, 'stamp_order', FAIL, text, None if self.pressure_input.in_disorder >= IN_A_ROW else TOLD)
            return text
        if not math.isfinite(sum(values.ravel().tolist()) + (0.0 if supply is None else supply)):
            report(clock, 'pressures_not_finite', FAIL, 'a pressure is not finite')
            return 'a pressure is not finite'
        self.pressure_input.accept(stamp, ros_now, clock)
        self.pressures, self.supply = values, supply
        return ''

    def take_emergency_stop(self, pressed, now):
        """Take what the emergency stop says."""
        self._stop_pressed, self._stop_arrival = bool(pressed), (now, self.at(now))

    def watch(self):
        """Report what has to be there in every cycle."""
        clock, report, unsettled = self.clock, self._states.report, self._states.unsettled
        if self.needs_emergency_stop:
            missing = self.emergency_stop()
            if missing or unsettled:
                report(clock, 'emergency_stop', FAIL if missing else PASS, missing)
        if self.needs_pressures:
            silent = self.pressure_input.silent(clock)
            if silent or unsettled:
                report(clock, 'pressures_silent', STALE if silent else PASS,
                       self.pressure_input.silence(clock) if silent else '')
        if self.simulated_time:
            report(clock, 'clock_paused', FAIL if self._clocks.paused else PASS, 'simulated time stands still')

    def emergency_stop(self):
        """Why the emergency stop stops; '' where it does not."""
        if self._stop_pressed:
            return 'the emergency stop is pressed'
        if self._stop_arrival is None:
            return 'the emergency stop says nothing'
        # a simulation may be slower than its operator, or faster
        steady, clock = self._stop_arrival
        age = min(self._steady - steady, self.clock - clock)
        return '' if age <= self._stop_age else f'the emergency stop said nothing for {age / 1e6:.0f} ms'

    def missing(self):
        """[why] there is no state, no pressures or no emergency stop to begin with."""
        found = []
        for needed, one in ((True, self.checks.input), (self.needs_pressures, self.pressure_input)):
            if needed and one.silent(self.clock):
                found.append(f'F18: {one.silence(self.clock)}')
        if self.needs_emergency_stop and self.emergency_stop():
            found.append(f'F36: {self.emergency_stop()}')
        return found
