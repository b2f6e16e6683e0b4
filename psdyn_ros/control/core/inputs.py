"""All that is measured, with the clocks that it is stamped by: accepted or rejected, kept, and judged by the checks.

`Inputs` takes measurements, `CheckInputs` is what a check may look at, `CheckRunner` evaluates the checks.
"""

from typing import NamedTuple

import numpy as np

from ...model.errors import PsdynError
from ..monitors.actuator_motion import ActuatorMotion
from ..monitors.check import Result, State, When
from ..monitors.clock import ClockCheck, EmergencyStopCheck
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
    runner   `CheckRunner` that reports what they find; its `CheckInputs` get what is accepted
    states   `SafetyStates`
    on_jump  called with the ns by which the clock of stamps jumped

    `state_check` is the `StateChecks`, with position and velocity of the last accepted state; `now` ns of the steady
    clock, `ros_now` of that of stamps and `clock` of that of ages, as of the last call with both times; `time` s on the
    clock of trajectories, of that state; `pressures` (cylinders, 2) and `supply` [Pa gauge] the last accepted ones,
    None: none.
    """

    def __init__(self, config, checks, runner, states, on_jump):
        self.state_check, self.pressure_check = checks[StateChecks], checks[PressureCheck]
        self._emergency_stop, self._clock_check = checks[EmergencyStopCheck], checks[ClockCheck]
        self._clocks, self._motion = self._clock_check.watch, ActuatorMotion(config.machine)
        self._runner, self._states, self._on_jump = runner, states, on_jump
        self.now = self.ros_now = self.clock = 0
        self.pressures = self.supply = None
        self.time = 0.0
        runner.inputs.encoder_steps = self.state_check.encoder_steps
        self._epoch = None          # ns: stamp from which the seconds of trajectories are counted

    @property
    def stamp(self):
        """ns, of the last accepted state; 0: none."""
        return self.state_check.input.stamp

    def seconds(self, stamp):
        """s on the clock of trajectories of a stamp."""
        return 1e-9 * (stamp - self._epoch)

    def at(self, now):
        """ns on the clock of ages at `now`."""
        return self._clocks.at(now)

    def begin_cycle(self, now, ros_now):
        """As `read_clocks`, once in a cycle."""
        return self.read_clocks(*self._clocks.begin_cycle(now, ros_now))

    def read_clocks(self, now, ros_now):
        """Take both times, shift stamps after a jump; return ns on the clock of ages."""
        jump = self._clocks.update(now, ros_now)
        check_inputs = self._runner.inputs
        self.now = check_inputs.now = self._clocks.steady(now)
        self.ros_now = ros_now
        self.clock = check_inputs.clock = self._clocks.clock
        check_inputs.state = self._states.state
        if jump:
            self._rebase(jump)
        return self.clock

    def _rebase(self, jump):
        """Treat earlier stamps as if the clock as it is now had given them."""
        self._runner.rebase(jump)
        if self._epoch is not None:
            self._epoch += jump
        check_inputs = self._runner.inputs
        check_inputs.stamp, check_inputs.pressure_stamp = self.stamp, self.pressure_check.input.stamp
        self._on_jump(jump)
        finding = self._clock_check.jumped(jump)
        if finding is not None:
            self._runner.report((finding,))

    def take_state(self, measured, ros_now, desired_rate, trusting):
        """As `StateChecks.take`, at the time of the last `read_clocks`; a position that no pose has is refused, too."""
        clock, stamp, runner, motion = self.clock, measured.stamp, self._runner, None
        x, xd = measured.x, measured.xd
        try:
            motion = self._motion.read(x, xd)
        except PsdynError as error:
            if np.isfinite(x).all() and np.isfinite(xd).all():      # else `StateChecks` says which one is not
                self._states.report(clock, 'state_malformed', Result.FAIL, str(error))
                return str(error)
        refused = self.state_check.take(measured, ros_now, clock, desired_rate, trusting)
        if refused:
            runner.report(self.state_check.findings)
            return refused
        self._states.state_accepted(clock)
        if self._epoch is None:
            self._epoch = stamp
        check_inputs = runner.inputs
        self.time = check_inputs.time = 1e-9 * (stamp - self._epoch)
        check_inputs.x, check_inputs.xd = x, xd
        check_inputs.positions, check_inputs.rates = motion
        check_inputs.estimated = self.state_check.estimate(check_inputs.desired)
        check_inputs.stamp, check_inputs.measured = stamp, clock - max(ros_now - stamp, 0)
        runner.run(When.STATE)
        return ''

    def take_pressures(self, stamp, ros_now, now, values, supply, trusting):
        """As `PressureCheck.take`; return '' or why they are rejected."""
        check_inputs = self._runner.inputs
        self.pressure_check.follow(check_inputs)
        finding = self.pressure_check.take(stamp, ros_now, self.read_clocks(now, ros_now), values, supply, trusting)
        if finding is not None:
            self._runner.report((finding,))
            return finding.text
        self.pressures, self.supply = check_inputs.pressures, check_inputs.supply = values, supply
        check_inputs.pressure_stamp = stamp
        self._runner.run(When.PRESSURES)
        return ''

    def take_emergency_stop(self, pressed, now):
        """Take a message of the emergency stop."""
        self._emergency_stop.take(pressed, self._clocks.steady(now), self.at(now), self._runner.inputs.publishing)

    def missing(self):
        """[why] there is no state, no pressures or no emergency stop to begin with."""
        found, pressures = [], self.pressure_check
        for required, one in ((True, self.state_check.input), (pressures.required, pressures.input)):
            if required and one.silent(self.clock):
                found.append(f'F18: {one.silence(self.clock)}')
        reason = self._emergency_stop.reason(self.now, self.clock)
        return [*found, f'F36: {reason}'] if reason else found


class CheckInputs:
    """Measurements, reference, outputs and sub-state, as of the moment at which a check is evaluated.

    Arrays are those of the controller: not to be written to, nor kept beyond the evaluation without a copy.

    machine, declaration, hydraulics  of the `ControllerConfig`; hydraulics None where nothing is driven by oil
    period          s
    law             `ControlLaw`
    now             ns of the steady clock
    clock           ns on the clock of ages: the steady one, or simulated time
    publishing      whether outputs are published: from activation to the end of deactivation

    Of the last accepted state:

    x, xd           (dof,) m and rad, m/s and rad/s; None before the first
    positions, rates  (actuators,) the same of the actuators
    estimated       (x, xd) on which a law may act: those measured, but for a position that is frozen
    encoder_steps   (dof,) m, rad; least change of each position so far, 0: none
    stamp           ns on the clock of stamps; 0 before the first
    measured        ns on the clock of ages
    time            s on the clock of trajectories

    Of the last accepted pressures:

    pressures       (cylinders, 2) Pa gauge of chambers A and B; None before the first
    supply          Pa gauge, of the pump; None where it is not measured
    pressure_stamp  ns; 0 before the first

    Of the reference and the outputs:

    under_law       whether the outputs are those of the law, and not of a ramp or the safe ones
    streaming       whether the reference is streamed
    desired         (3, dof) x, xd, xdd of the reference at the last update of the law; None where none is followed
    reference_rate  (dof,) velocity of the reference, zero where none is followed
    given           (actuators,) last output, in the unit of each interface; NaN: left out
    command         (actuators,) the one that the actuators obey now, as far as the law knows their delay
    clamped         how often outputs were beyond their limit or rate, since the start
    state           `State` as of the last cycle
    """

    def __init__(self, config, law):
        self.machine, self.declaration, self.hydraulics = config.machine, config.declaration, config.hydraulics
        self.period, self.law, self.state = config.period, law, State.STANDBY
        self.publishing = self.under_law = self.streaming = False
        self.now = self.clock = self.stamp = self.measured = self.pressure_stamp = self.clamped = 0
        self.time = 0.0
        self.x = self.xd = self.positions = self.rates = self.estimated = None
        self.pressures = self.supply = self.desired = None
        self.reference_rate = np.zeros(config.machine.dof)
        self.encoder_steps = np.zeros(config.machine.dof)
        self.given = self.command = np.full(len(config.machine.actuators), np.nan)
        self._oldest = config.declaration.timeouts.stopping_ns

    @property
    def age(self):
        """s since the last accepted state was measured, at most the timeout after which it is not used any more."""
        return 1e-9 * min(self.clock - self.measured, self._oldest)

    @property
    def predicted_efforts(self):
        """(actuators,) N, N m that the model expects of the reference at the last update, with friction."""
        return self.law.predicted_efforts

    @property
    def stream_age(self):
        """s since the last streamed point; 0 where none is streamed."""
        return self.law.reference.stream_age(self.time) if self.streaming else 0.0


class CheckRunner:
    """Evaluates the checks, and reports their findings.

    checks  `Check`s, in the order of their evaluation
    states  `SafetyStates`

    inputs  `CheckInputs`
    """

    def __init__(self, checks, states, inputs):
        self.inputs, self._states, self._checks = inputs, states, checks
        self._evaluations = [tuple((check.evaluate, frozenset(row.name for row in check.rows))
                                   for check in checks if check.required and check.when is when) for when in When]

    def run(self, when):
        """Evaluate the checks of a `When`, and report what they found."""
        inputs, states = self.inputs, self._states
        unsettled = states.unsettled        # else it changes nothing to report what passes
        for evaluate, names in self._evaluations[when]:
            findings = evaluate(inputs)
            if findings:
                self.report(findings)
            if unsettled and findings is not None:
                states.pass_others(inputs.clock, names, [finding.condition for finding in findings])

    def report(self, findings):
        """Report `Finding`s; conditions without one do not pass."""
        clock, report = self.inputs.clock, self._states.report
        for name, text, result, demand in findings:
            report(clock, name, result, text, demand)

    def restart(self):
        """As `Check.restart` of all of them."""
        for check in self._checks:
            check.restart()

    def rebase(self, jump):
        """As `Check.rebase` of all of them."""
        for check in self._checks:
            check.rebase(jump)
