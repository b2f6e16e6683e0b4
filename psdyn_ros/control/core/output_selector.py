"""Where commands come from: the law, a ramp to rest that looks at nothing measured, or the declared safe output."""

import math
from collections import deque
from contextlib import suppress

import numpy as np

from ...kernels.control.speed_governor import AT_REST, govern
from ...model.parameters.safety import GRAVITY, HOLDS, NEUTRAL
from ..monitors.actuator_motion import ActuatorMotion, EndStopCheck
from ..monitors.check import Check, When
from ..monitors.momentum import MomentumCheck
from ..monitors.singularity import SingularityCheck
from ..monitors.speed import asked_speed
from ..monitors.tracking import EffortCheck, TrackingCheck
from ..safety.open_loop_stop import OpenLoopStop
from ..safety.output_gate import OutputGate
from ..safety.output_ramp import OutputRamp

UNDER_LAW, RAMPED, AT_SAFE = 'law', 'ramp', 'safe'
RECENT = 0.1            # s
SPEED_STEP = 0.01       # by which the speed of the reference changes at least


class OutputSelector:
    """One law, one open-loop stop and one safe output, all through one gate.

    config  `ControllerConfig`
    law     `ControlLaw`
    inputs  `Inputs`
    checks  {class of a check: `Check`}
    runner  `CheckRunner`

    `mode` is UNDER_LAW, RAMPED or AT_SAFE; `desired` (3, dof) x, xd, xdd of the reference at the last update of the
    law, None where none is followed, and `rate` (dof,) its velocity, then zero.
    """

    def __init__(self, config, law, inputs, checks, runner):
        manipulator, declaration = config.machine, config.declaration
        self.law, self._check_inputs = law, runner.inputs
        self.gate = OutputGate(declaration, manipulator.limits, config.period)
        self.speed = 1.0                # share of its speed that the reference was given
        self._inputs, self._runner = inputs, runner
        self._end_stops, self._singularity = checks[EndStopCheck], checks[SingularityCheck]
        self._tracking, self._governor, self._governed = checks[TrackingCheck], np.array(AT_REST), None
        self._supply_setting = law.supply_setting
        self._restraints = [check for check in checks.values()
                            if check.required and type(check).restrain is not Check.restrain]
        self._momentum, self._efforts = checks[MomentumCheck], checks[EffortCheck]
        self._motion = ActuatorMotion(manipulator)
        self._open_loop = OpenLoopStop(declaration, law)
        self._closing = OutputRamp(declaration, law.swing_period)
        self._valves = np.array([interface in HOLDS and kind == NEUTRAL
                                 for interface, kind in zip(declaration.interfaces, declaration.safe_kind)])
        self._by_speed = np.flatnonzero(~declaration.by_force).tolist()
        self.closing = False            # whether valves are on their way to the safe output
        self._deceleration = np.array(declaration.deceleration)
        self._standstill, self._asked = np.array(declaration.standstill_speed), asked_speed(config)
        self._feedforward_ramp, self._began = round(config.feedforward_ramp * 1e9), 0
        self._has_gravity = GRAVITY in declaration.safe_kind
        self._holding = None            # (actuators,) commands that held the load at the last valid position
        self._still, self._neutral = np.zeros(manipulator.dof), np.zeros(len(manipulator.actuators))
        self._enter(AT_SAFE)
        self._recent = deque(maxlen=max(round(RECENT / config.period), 1))      # outputs of the law
        self._late = deque(maxlen=1 + round(law.delay / config.period))         # outputs until they act

    def _enter(self, mode):
        self.mode, self._check_inputs.under_law = mode, mode is UNDER_LAW
        self._follow(None)

    def _follow(self, desired):
        """Take note of the reference (3, dof) of an update of the law; None: none is followed."""
        self.desired = self._check_inputs.desired = desired
        self.rate = self._check_inputs.reference_rate = self._still if desired is None else desired[1]

    def begin(self, clock):
        """Hold the machine where it is, under the law."""
        law, inputs = self.law, self._inputs
        law.hold(inputs.state_check.x)
        law.feedforward_scale = 0.0 if self._feedforward_ramp else 1.0
        self._began, self.closing = clock, False
        self._enter(UNDER_LAW)
        self._runner.restart()
        self._recent.clear()
        self.speed = 1.0
        self._governor[:] = AT_REST
        law.reference.set_speed(1.0, inputs.time)

    def brake(self, fault):
        """Slow the reference down: from what was measured on a fault, from where it is otherwise, and then only as far
        as efforts at their limits can."""
        reference, t = self.law.reference, self._inputs.time
        if fault:
            reference.stop_from(t, *self._check_inputs.estimated, self._deceleration)
        else:
            reference.stop(t, self._efforts.braking_share(self._deceleration) * self._deceleration)

    def end_deviation(self):
        """Let the reference deviate no further from itself to damp a swing."""
        damping = self.law.reference.damping
        if damping is not None:
            damping.stay()

    def ramp(self, clock, began):
        """Go from the last command to that of rest, without another look at what is measured.

        began  ns at which the law began to slow the reference down, at most `clock`
        """
        x = self._inputs.state_check.x
        self._holding = self._held(x)
        target = np.zeros(len(self.gate.actuators)) if self._holding is None else self._holding
        now = self._inputs.time + self._check_inputs.age        # the reference went on without states
        self._open_loop.start(*self._present_motion(x), target, clock, now, clock - began)
        self._enter(RAMPED)

    def rest(self, clock=None):
        """Give the safe output from here on; never raises.

        clock  ns, at which valves of a moving machine begin to shut on a ramp: those that shut at once let it swing on
               its oil, faster than it was; None: they shut at once
        """
        if self.mode is UNDER_LAW:
            x = self._inputs.state_check.x
            self._holding = self._held(x)
            if clock is not None and self._valves.any():
                with suppress(Exception):       # whatever failed: they shut at once
                    command, rates = self._present_motion(x)
                    if rates.any():
                        self._closing.start(command, rates, self._neutral, clock)
                        self.closing = True
        if clock is None:
            self.closing = False
        self._enter(AT_SAFE)
        with suppress(Exception):       # of a check after an exception
            self._runner.restart()

    def set_speed(self, degraded):
        """Give the reference the speed that singularities, oil, saturation and a degraded state leave it."""
        t, supply = self._check_inputs.time, self._check_inputs.supply
        setting, tracking = self._supply_setting, self._tracking
        supply = math.nan if supply is None or setting is None else supply / setting
        dt = 0.0 if self._governed is None else t - self._governed
        self._governed = t
        saturation = govern(self._governor, tracking.share, tracking.clipped, supply, dt)
        speed = min(self._singularity.speed, float(self.law.speed_scaling), degraded, saturation)
        if abs(speed - self.speed) > SPEED_STEP or speed == 1.0 != self.speed:
            self.speed = speed
            self.law.reference.set_speed(speed, t)

    def stopped(self, clock):
        """Whether a stop has come to its end: under the law, with reference and machine at rest."""
        if self.mode is RAMPED:
            return self._open_loop.done(clock)
        reference, state = self.law.reference, self._inputs.state_check
        deviates = reference.damping is not None and reference.damping.moves
        stands = (np.abs(self._motion.rates(state.x, state.xd)) <= self._standstill).all()
        return bool(stands) and reference.at_rest(self._inputs.time) and not deviates

    def command(self, clock, dt):
        """The output (actuators,) of law or ramp, dt [s] after the one before; raises GateError and what laws raise."""
        under_law = self.mode is UNDER_LAW
        command = self._of_law(clock) if under_law else self._open_loop.at(clock)
        output = self.gate.filter_command(command, clock, self._check_inputs.clock, dt)
        self._give(output)
        self._check_inputs.clamped = self.gate.clamped
        if under_law:
            self._recent.append((output, self._motion.rates(self._check_inputs.x, self.rate).copy()))
        return output

    def _present_motion(self, x):
        """Return the command (actuators,) from which a ramp starts, and the rates (actuators,) at which x moves by it.

        Rates are those of the reference. Of valves and velocities the command is that rate times the median of command
        over rate in the last `RECENT` seconds: the last command may be what made the stop necessary, and that of a
        machine that is braked or accelerated is not for its speed. It is 0 where the reference was not half as fast in
        that direction, and never more than the last one: a machine that is braked would else be accelerated to the
        speed of its reference, and swing on its oil. Where the reference rests, the command is the least of them, with
        the rate that it asks for, unless the machine stands by it: a law that is lied to moves what is to rest.
        """
        last, now = self.gate.last, self._motion.rates(x, self.rate)
        command = last.copy()
        if not self._recent:
            return command, now
        outputs, rates = (np.array(given) for given in zip(*self._recent))
        for i in self._by_speed:
            fast = rates[:, i] * now[i] >= 0.5 * now[i]**2
            if now[i] == 0.0:
                command[i] = max(outputs[:, i].min(), 0.0) + min(outputs[:, i].max(), 0.0)
                if command[i] and abs(command[i]) * self._asked[i] <= self._standstill[i]:
                    command[i] = 0.0
            else:
                command[i] = max(np.median(outputs[fast, i] / rates[fast, i]), 0.0) * now[i] if fast.any() else 0.0
            command[i] = np.clip(command[i], min(last[i], 0.0), max(last[i], 0.0))
            if now[i] == 0.0 != command[i]:
                now[i] = command[i] * self._asked[i]
        return command, now

    def safe(self, standby, clock):
        """The safe output (actuators,) at `clock` [ns], NaN: left out. Never raises.

        In standby the load is where it is measured; valves that were under a law may be on their way to it.
        """
        if standby and self._has_gravity:
            self._holding = self._held(self._inputs.state_check.x)
        self.closing = self.closing and not self._closing.done(clock)
        if self.closing:
            output = self.gate.safe(self._holding, np.where(self._valves, self._closing.at(clock), 0.0))
        else:
            output = self.gate.safe(self._holding)
        self._give(output)
        return output

    def _give(self, output):
        """Take note of an output, and of the one that the actuators obey now."""
        self._late.append(output)
        self._check_inputs.given, self._check_inputs.command = output, self._late[0]

    def _of_law(self, clock):
        """The command (actuators,) of the law for the last accepted state."""
        law, check_inputs = self.law, self._check_inputs
        if law.feedforward_scale < 1.0:
            law.feedforward_scale = min(1.0, (clock - self._began) / self._feedforward_ramp)
        x, xd = check_inputs.x, check_inputs.xd
        command = law.update(check_inputs.time, *check_inputs.estimated, check_inputs.pressures, check_inputs.age,
                             check_inputs.supply)
        self._follow(law.desired)
        if self.gate.is_array(command):         # else it does not pass
            command = command.copy()
            for check in self._restraints:
                check.restrain(command, check_inputs)
        self._end_stops.soften(self.gate, command, x, xd, self._inputs.state_check.at_stop)
        self._runner.run(When.COMMAND)
        self._momentum.hold_load(command, x, self.rate)
        return command

    def _held(self, x):
        """Commands (actuators,) that hold the load at x; None where the model cannot be computed."""
        with suppress(Exception):
            return None if x is None else np.asarray(self.law.holding(x), dtype=float)
