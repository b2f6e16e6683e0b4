"""All that is measured, with the clocks that it is stamped by: accepted or rejected, kept, and judged by the checks."""

from typing import NamedTuple

import numpy as np

from ..monitors.check import When
from ..monitors.clock import ClockCheck
from ..monitors.emergency_stop import EmergencyStopCheck
from ..monitors.pressures import PressureCheck
from ..monitors.state import StateChecks


class MeasuredState(NamedTuple):
    """A measured state of the coordinates; the arrays are kept."""

    stamp: int
    """ns on the clock of stamps."""
    x: np.ndarray
    """(dof,) float64, m and rad; of the driven coordinates."""
    xd: np.ndarray
    """(dof,) float64, m/s and rad/s."""
    residual: float = 0.0
    """m, by which redundant joints disagree."""
    positions: np.ndarray | None = None
    """(m,) of the joints given to `StateChecks.measure`, where they are more than needed."""
    passive: np.ndarray | None = None
    """(2, passive) positions and rates of the passive joints, NaN where not measured; None: of none of them."""


class Inputs:
    """The last accepted state, pressures and emergency stop.

    config   `ControllerConfig`
    checks   {class of a check: `Check`}
    runner   `CheckRunner` that reports what they find
    states   `SafetyStates`
    on_jump  called with the ns by which the clock of stamps jumped

    `checks` is the `StateChecks`; `now` ns of the steady clock and `clock` ns on the clock of ages, as of the last call
    with both times; `pressures` (cylinders, 2) and `supply` [Pa gauge] the last accepted ones, None: none.
    """

    def __init__(self, config, checks, runner, states, on_jump):
        self.checks, self.pressure_check = checks[StateChecks], checks[PressureCheck]
        self._emergency_stop, self._clock_check = checks[EmergencyStopCheck], checks[ClockCheck]
        self._clocks = self._clock_check.watch
        self._runner, self._states, self._on_jump = runner, states, on_jump
        self._oldest = config.declaration.timeouts.stopping_ns
        self.now = self.clock = 0
        self.pressures = self.supply = None
        self._epoch = None          # ns: stamp from which the seconds of trajectories are counted

    @property
    def stamp(self):
        """ns, of the last accepted state; 0: none."""
        return self.checks.input.stamp

    @property
    def time(self):
        """s on the clock of trajectories, of the last accepted state."""
        return 1e-9 * (self.checks.input.stamp - self._epoch)

    @property
    def age(self):
        """s since the last accepted state was measured, at most the timeout after which it is not used any more."""
        return 1e-9 * min(self.checks.input.age(self.clock), self._oldest)

    def seconds(self, stamp):
        """s on the clock of trajectories of a stamp."""
        return 1e-9 * (stamp - self._epoch)

    def at(self, now):
        """ns on the clock of ages at `now`."""
        return self._clocks.at(now)

    def read_clocks(self, now, ros_now):
        """Take both times, shift stamps after a jump; return ns on the clock of ages."""
        jump = self._clocks.update(now, ros_now)
        seen = self._runner.inputs
        self.now = seen.now = now
        self.clock = seen.clock = self._clocks.clock
        if jump:
            self._rebase(jump)
        return self.clock

    def _rebase(self, jump):
        """Treat earlier stamps as if the clock as it is now had given them."""
        self._runner.rebase(jump)
        if self._epoch is not None:
            self._epoch += jump
        self._on_jump(jump)
        finding = self._clock_check.jumped(jump)
        if finding is not None:
            self._runner.report((finding,))

    def take_state(self, measured, ros_now, desired_rate, trusting):
        """As `StateChecks.take`, at the time of the last `read_clocks`."""
        refused = self.checks.take(measured, ros_now, self.clock, desired_rate, trusting)
        if refused:
            self._runner.report(self.checks.findings)
            return refused
        self._states.state_accepted(self.clock)
        if self._epoch is None:
            self._epoch = measured.stamp
        self._runner.run(When.STATE)
        return ''

    def take_pressures(self, stamp, ros_now, now, values, supply, trusting):
        """As `PressureCheck.take`; return '' or why they are rejected."""
        finding = self.pressure_check.take(stamp, ros_now, self.read_clocks(now, ros_now), values, supply, trusting)
        if finding is not None:
            self._runner.report((finding,))
            return finding.text
        self.pressures, self.supply = values, supply
        self._runner.run(When.PRESSURES)
        return ''

    def take_emergency_stop(self, pressed, now):
        """Take a message of the emergency stop."""
        self._emergency_stop.take(pressed, now, self.at(now))

    def missing(self):
        """[why] there is no state, no pressures or no emergency stop to begin with."""
        found, pressures, stop = [], self.pressure_check, self._emergency_stop
        for required, one in ((True, self.checks.input), (pressures.required, pressures.input)):
            if required and one.silent(self.clock):
                found.append(f'F18: {one.silence(self.clock)}')
        reason = stop.reason(self.now, self.clock) if stop.required else ''
        return [*found, f'F36: {reason}'] if reason else found
