"""The heart of the controller, without ROS: measured states, references and switches in, one output per cycle out.

    take_state, take_pressures, take_emergency_stop -> what was measured, checked and kept
    consider, accept, take_point, cancel            -> the reference
    activate, enable, disable, reset, deactivate    -> the sub-states, `SafetyStates`
    cycle                                           -> the output: of the law, of a ramp to rest, or the safe one

Every path ends in the output gate. Times are ns: `now` of a steady clock, `ros_now` and stamps of the clock of stamps.
Where that is a simulated one, ages count simulated time.
"""

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ..model.errors import PsdynError
from .activation import against_control
from .cycle_watch import SHARE, CycleWatch
from .fault_table import Result, State
from .inputs import Inputs
from .motion_watch import MotionWatch
from .output_gate import GateError, OutputGate
from .output_ramp import OutputRamp
from .reference_limits import ReferenceLimits
from .safety_states import SafetyError, SafetyStates
from .trajectory import TrajectoryError

PASS, FAIL, STALE, ERROR = Result
STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
DEGRADED_SPEED = 0.5
SAFE_OUTPUTS = 3                # after a deactivation
SPEED_STEP = 0.01               # by which the speed of the reference changes at least
UNDER_LAW, RAMPED, AT_SAFE = 'law', 'ramp', 'safe'
# what `against_control` tells of
LISTED = ('emergency_stop', 'pressures_silent', 'closure_residual', 'velocity_residual')


class Output(NamedTuple):
    """What leaves in one cycle."""

    command: np.ndarray
    """(actuators,) in the unit of each tier, NaN: left out."""
    stamp: int
    """ns on the clock of stamps, never before that of the output before."""
    state: State
    valid: bool
    """Whether it is a command to move or hold, and not the safe output."""
    desired: np.ndarray | None
    """(3, dof) x, xd, xdd of the reference that it follows; None where it follows none."""


class ControlCore:
    """One law, with everything between it and a machine.

    manipulator         whose base stands or is moved
    declaration         `SafetyDeclaration` for these actuators
    law                 `ControlLaw`
    rate                Hz of the cycles and of the states
    emergency_stop      whether there must be an emergency stop that says it is not pressed
    feedforward_ramp    s from enabling until all of the feedforward is given
    simulated_time      whether `ros_now` and stamps are of a simulated clock
    overrun_share       of the cycles of a second that may come too late
    log                 called with (level, text), level 'info', 'warning' or 'error', of what is worth a line
    """

    def __init__(self, manipulator, declaration, law, *, rate, emergency_stop=True, feedforward_ramp=0.5,
                 simulated_time=False, overrun_share=SHARE, log=None):
        period = 1.0 / rate
        self.manipulator, self.declaration, self.law, self.period = manipulator, declaration, law, period
        self.states = SafetyStates(declaration, period)
        law.reference.limits = ReferenceLimits.declared(declaration)
        self.inputs = Inputs(manipulator, declaration, self.states, period, needs_pressures=law.needs_pressures,
                             emergency_stop=emergency_stop, simulated_time=simulated_time, on_jump=self._rebase)
        self.checks = self.inputs.checks
        self.watch = MotionWatch(manipulator, declaration, law, self.states)
        self.cycles = CycleWatch(period, overrun_share)
        self.gate = OutputGate(declaration, manipulator.limits, period)
        self.finished = False           # whether a deactivation is complete
        self.speed = 1.0                # share of its speed that the reference was given
        self._ramp = OutputRamp(declaration)
        self._latest = declaration.timeouts.stopping_ns
        self._feedforward_ramp, self._enabled_at = round(feedforward_ramp * 1e9), 0
        self._log = log or (lambda level, text: None)
        self._giving = False            # outputs, from activation to the end of deactivation
        self._leaving, self._safe_outputs = False, 0
        self._state, self._trusted, self._mode = STANDBY, True, AT_SAFE
        self._ended = False             # whether HOLD is due to the end of a reference
        self._last = None               # ns of the cycle before
        self._answered = 0              # stamp of the state of the last output
        self._stamp = 0                 # of the last output
        self._considered = None         # the `Candidate` that may be accepted
        self._streaming = False
        self._holding = None            # (actuators,) commands that held the load at the last trusted position
        self._still = np.zeros(manipulator.dof)

    # what was measured

    def take_state(self, stamp, ros_now, now, x, xd, residual=0.0, positions=None):
        """Take a measured state, x and xd (dof,) float64, which are kept; return '' or why it is not used.

        residual   m, by which redundant joints disagree
        positions  (m,) of the joints named to `checks.measure`, where there are more than needed
        """
        under_law, desired = self._mode is UNDER_LAW, self.law.desired
        return self.inputs.take_state(stamp, ros_now, now, x, xd, residual,
                                      desired[1] if under_law and desired is not None else self._still,
                                      self._mode is AT_SAFE, positions)

    def reject_state(self, now, row, reason):
        """Note that a message of the state could not be read; row: condition of the fault table, `state_malformed`."""
        self.states.report(self.inputs.at(now), row, FAIL, str(reason))

    def take_pressures(self, stamp, ros_now, now, values, supply=None):
        """Take pressures (cylinders, 2) and that of the supply [Pa gauge]; return '' or why they are not used."""
        return self.inputs.take_pressures(stamp, ros_now, now, values, supply)

    def take_emergency_stop(self, pressed, now):
        """Take what the emergency stop says."""
        self.inputs.take_emergency_stop(pressed, now)

    def set_payload(self, link, mass, com, inertia):
        """As `law.set_payload`; what is refused is counted, and raised."""
        self._pass_on(self.law.set_payload, link, mass, com, inertia)

    def set_base(self, base):
        """As `law.set_base`; what is refused is counted, and raised."""
        self._pass_on(self.law.set_base, base)

    def _pass_on(self, take, *values):
        try:
            take(*values)
        except PsdynError as error:
            self.states.report(self.inputs.clock, 'load_rejected', FAIL, str(error))
            raise

    # references

    def consider(self, waypoints, start_stamp=None):
        """Return the `Candidate` of a trajectory that starts at a stamp, now where it is None.

        Raises TrajectoryError; nothing changes until `accept`.
        """
        self._refuse_reference()
        start = None if start_stamp is None else self.inputs.seconds(start_stamp)
        self._considered = self.law.reference.consider(waypoints, self.inputs.time, start,
                                                            state=self.checks.x)
        return self._considered

    def accept(self, candidate, now):
        """Follow a candidate that was checked to its end; TrajectoryError where it may no longer be."""
        self._refuse_reference()
        if candidate is not self._considered:
            raise TrajectoryError('the machine was stopped, or another reference came, since this one was checked')
        self.law.reference.accept(candidate, self.inputs.time)
        self._void()
        self._follow()

    def take_point(self, stamp, now, x, xd=None, xdd=None):
        """Take a streamed point of the reference, x, xd, xdd (dof,) at a stamp; TrajectoryError where it may not be."""
        self._refuse_reference()
        t = self.inputs.seconds(stamp) if stamp else self.inputs.time
        self.law.reference.stream(t, x, xd, xdd, self.inputs.time)
        self._considered, self._streaming = None, True
        self._follow()

    def cancel(self, now):
        """Come to rest from the reference, and hold."""
        if self._mode is UNDER_LAW and self._state in (RUN, DEGRADED):
            self._void()
            self.law.reference.stop(self.inputs.time, self.declaration.deceleration)
            self._end_reference()

    def _refuse_reference(self):
        if not self.states.enabled or self._mode is not UNDER_LAW:
            raise TrajectoryError(f'the controller is in {self.states.state.name} and not enabled: no reference is '
                                  'taken')

    def _follow(self):
        self._ended = False
        self.states.reference_accepted(self.inputs.clock)

    def _end_reference(self):
        self._ended, self._streaming = True, False
        self.states.reference_ended(self.inputs.clock)

    def _void(self):
        """Forget what was considered."""
        self._considered, self._streaming = None, False

    # switches

    def activate(self, now, ros_now):
        """Begin to give outputs, the safe one at first; SafetyError with every reason against it."""
        clock = self.inputs.look(now, ros_now)
        self.inputs.watch()
        self.states.step(clock)
        self._refuse('activation')
        self.states.activate(clock)
        self.cycles.forget()
        self._last = None
        self._giving, self._leaving, self.finished, self._safe_outputs = True, False, False, 0

    def deactivate(self, now):
        """Stop, give the safe output at least three times, then none: `finished` says when."""
        if self._giving and not self._leaving:
            self._leaving, self._safe_outputs = True, 0
            self.states.deactivate(self.inputs.at(now))

    def enable(self, now):
        """Hold the machine under the law where it is; SafetyError with every reason against it."""
        if self.states.enabled:
            return
        clock = self.inputs.at(now)
        self._refuse('enabling')
        self.states.enable(clock)
        self._void()
        self.law.hold(self.checks.x)
        self.law.feedforward_scale = 0.0 if self._feedforward_ramp else 1.0
        self.watch.forget()
        self._enabled_at, self._mode, self._ended, self.speed, self._trusted = clock, UNDER_LAW, True, 1.0, True

    def _refuse(self, what):
        """Raise SafetyError where something measured or declared speaks against it."""
        reasons = against_control(self.manipulator, self.declaration, self.inputs)
        if reasons:
            more = [reason for name, reason in self.states.reasons.items() if name not in LISTED]
            raise SafetyError(f'{what} is refused: {"; ".join([*reasons, *more])}')

    def disable(self, now):
        """Stop, then stand by."""
        self.states.disable(self.inputs.at(now))

    def reset(self, now):
        """Forget the faults that are gone; SafetyError that names those that are not."""
        self.states.reset(self.inputs.at(now))

    def report(self, now, name, result, text=''):
        """Tell the result of a check that only the caller can do, as of rival publishers."""
        self.states.report(self.inputs.at(now), name, result, text)

    def fail(self, now, text):
        """Something went wrong that should not: SAFE."""
        self.states.report(self.inputs.at(now), 'exception', ERROR, text)

    # the cycle

    def cycle(self, now, ros_now):
        """Return the `Output` of this cycle, None where nothing is to be published. Never raises."""
        if not self._giving:
            return None
        try:
            return self._cycle(now, ros_now)
        except Exception as error:      # whatever it is, the machine is made safe
            self.states.report(self.inputs.clock, 'exception', ERROR, f'{type(error).__name__}: {error}')
            self._log('error', f'{type(error).__name__}: {error}')
            return self._made_safe(ros_now)

    def _cycle(self, now, ros_now):
        clock = self.inputs.look(now, ros_now)
        dt, self._last = 0.0 if self._last is None else 1e-9 * (clock - self._last), clock
        self._watch(clock)
        state, trusted = self.states.step(clock), self.states.trusted
        if state is not self._state or trusted is not self._trusted:
            self._turn(state, trusted, clock)
        if self._mode is UNDER_LAW:
            command = self._of_law(clock)
        elif self._mode is RAMPED:
            command = self._ramp.at(clock)
            if self._ramp.done(clock):
                self.states.at_rest(clock)
        else:
            return self._safe(ros_now)
        try:
            command = self.gate.pass_(command, clock, self.inputs.clock, dt)
        except GateError as error:
            self.states.report(clock, 'output_rejected', FAIL, str(error))
            return self._made_safe(ros_now)
        desired = self.law.desired if self._mode is UNDER_LAW else None
        return Output(command, self._output_stamp(ros_now), state, True, desired)

    def _watch(self, clock):
        """Report the checks of every cycle."""
        report = self.states.report
        self.cycles.look(clock)
        late = self.cycles.overrun
        report(clock, 'overrun', FAIL if late else PASS, late)
        if self.cycles.gap > self._latest:
            report(clock, 'output_late', FAIL, f'no output for {self.cycles.gap / 1e6:.1f} ms')
        self.inputs.watch()
        if self._mode is UNDER_LAW:
            self._watch_reference(clock)

    def _watch_reference(self, clock):
        """Notice the end of a reference, or of a stream; give it its speed."""
        t, reference = self.inputs.time, self.law.reference
        silent = self._streaming and reference.stream_age(t) > self.declaration.timeouts.stream
        self.states.report(clock, 'stream_silent', STALE if silent else PASS,
                           f'no point came for {reference.stream_age(t) * 1e3:.0f} ms' if silent else '')
        if self._streaming:
            pass
        elif self._state in (RUN, DEGRADED) and not reference.moving(t):
            self._end_reference()
        elif self._state is STOPPING and reference.at_rest(t):
            self.states.at_rest(clock)
        desired = self.law.desired
        speed = self.watch.speed(clock, self.checks.x, self._still if desired is None else desired[1])
        speed = min(speed, float(self.law.flow_scale), DEGRADED_SPEED if self._state is DEGRADED else 1.0)
        if abs(speed - self.speed) > SPEED_STEP or (speed == 1.0 != self.speed):
            self.speed = speed
            reference.set_speed(speed, t)

    def _turn(self, state, trusted, clock):
        """Go over to another sub-state."""
        before, self._state, self._trusted = self._state, state, trusted
        if state is not before:
            reasons = '; '.join(self.states.reasons.values())
            self._log('error' if state >= STOPPING and reasons else 'info',
                      f'{before.name} to {state.name}' + (f': {reasons}' if reasons else ''))
        if state in (STANDBY, SAFE):
            self._rest()
        elif self._mode is not UNDER_LAW:
            return
        elif state is STOPPING:
            self._void()
            if not trusted:
                self._begin_ramp(clock)
            elif before is not STOPPING:
                self._brake(self.states.reasons)
        elif state is HOLD and before in (RUN, DEGRADED) and not self._ended:
            self._void()
            self._brake(True)

    def _brake(self, fault):
        """Slow the reference down: from what was measured on a fault, from where it is otherwise."""
        reference, t, deceleration = self.law.reference, self.inputs.time, self.declaration.deceleration
        if fault:
            reference.stop_from(t, self.checks.x, self.checks.xd, deceleration)
        else:
            reference.stop(t, deceleration)

    def _begin_ramp(self, clock):
        """Go from the last command to that of rest, without another look at what is measured."""
        x, desired = self.checks.x, self.law.desired
        self._holding = self._held(x)
        rate = self._still if desired is None else desired[1]
        self._ramp.start(self.gate.last, self.watch.velocities(x, rate),
                         np.zeros(len(self.gate.actuators)) if self._holding is None else self._holding, clock)
        self._mode = RAMPED

    def _rest(self):
        """Give the safe output from here on."""
        self._void()
        if self._mode is UNDER_LAW:
            self._holding = self._held(self.checks.x)
        self._mode = AT_SAFE
        with suppress(Exception):       # of a law that has just failed, perhaps
            self.watch.forget()

    def _held(self, x):
        """Commands (actuators,) that hold the load at x; None where that cannot be told."""
        with suppress(Exception):
            return None if x is None else np.asarray(self.law.holding(x), dtype=float)

    def _of_law(self, clock):
        """The command (actuators,) of the law for the last state believed."""
        law, inputs = self.law, self.inputs
        if law.feedforward_scale < 1.0:
            law.feedforward_scale = min(1.0, (clock - self._enabled_at) / self._feedforward_ramp)
        x = self.checks.x
        command = law.update(inputs.time, x, self.checks.xd, inputs.pressures, inputs.age, inputs.supply)
        self.watch.soften(clock, command, x, self.checks.at_stop)
        self.watch.look(clock, x)
        return command

    def _made_safe(self, ros_now):
        """The safe output, in the cycle in which something went wrong."""
        self._turn(self.states.step(self.inputs.clock), self.states.trusted, self.inputs.clock)
        return self._safe(ros_now)

    def _safe(self, ros_now):
        """The safe output; those after a deactivation are counted."""
        if self._leaving and self._state in (STANDBY, SAFE):
            self._safe_outputs += 1
            if self._safe_outputs >= SAFE_OUTPUTS:
                self.finished, self._giving, self._leaving = True, False, False
        return Output(self.gate.safe(self._holding), self._output_stamp(ros_now), self._state, False, None)

    def _output_stamp(self, ros_now):
        """That of the state which is answered, of this moment where that was answered before."""
        stamp = self.inputs.stamp
        fresh = stamp and stamp != self._answered
        self._answered = stamp
        self._stamp = max(self._stamp, stamp if fresh else ros_now)
        return self._stamp

    def _rebase(self, jump):
        """The clock of stamps jumped by so many ns."""
        self._answered += jump
        self._stamp += jump
        self._log('warning', f'the clock of stamps jumped by {jump / 1e6:.1f} ms')
