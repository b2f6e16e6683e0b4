"""The heart of the controller, without ROS: measured states, references and switches in, one output per cycle out.

    step                                          -> takes a measured state and gives the output: of the law, of a
                                                     ramp to rest, or safe (`OutputSelector`)
    take_pressures, take_emergency_stop           -> the other measurements, checked and kept (`Inputs`)
    consider, accept, take_point, cancel          -> the reference
    activate, enable, disable, reset, deactivate  -> the sub-states (`SafetyStates`)

Times are ns: `now` of a steady clock, `ros_now` and stamps of the clock of stamps. Where that is a simulated one, ages
count simulated time.
"""

from contextlib import suppress
from typing import NamedTuple

import numpy as np

from ...model.errors import PsdynError
from ..monitors.clock import JUMP
from ..monitors.overruns import CycleWatch
from ..reference.reference_limits import ReferenceLimits
from ..reference.trajectory import TrajectoryError
from ..safety.fault_table import Result, State
from ..safety.output_gate import GateError
from ..safety.state_machine import SafetyError, SafetyStates
from .inputs import Inputs
from .output_selector import AT_SAFE, UNDER_LAW, OutputSelector
from .preconditions import activation_blockers

PASS, FAIL, STALE, ERROR = Result
STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
DEGRADED_SPEED = 0.5
SAFE_OUTPUTS = 3                # after a deactivation
# what `activation_blockers` tells of
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
    """One law, with everything between it and a machine; made by `assembly.assemble`.

    config  `ControllerConfig`
    law     `ControlLaw`; its reference gets the declared limits
    log     called with (level, text), level 'info', 'warning' or 'error', of events that are worth a line
    """

    def __init__(self, config, law, log=None):
        declaration = config.declaration
        self.manipulator, self.declaration, self.law = config.machine, declaration, law
        law.reference.limits = ReferenceLimits.declared(declaration, config.stream_delay)
        self.states = SafetyStates(declaration, config.period)
        self.inputs = Inputs(config, self.states, law.needs_pressures, on_jump=self._rebase)
        self.selector = OutputSelector(config, law, self.inputs, self.states)
        self.gate = self.selector.gate
        self.cycles = CycleWatch(config.period, config.overrun_share)
        self.finished = False           # whether a deactivation is complete
        self.refused = ''               # why the last measured state was not used; '' where it was
        self._latest, self._lost = declaration.timeouts.stopping_ns, declaration.timeouts.safe_ns
        self._log = log or (lambda level, text: None)
        self._giving = False            # outputs, from activation to the end of deactivation
        self._leaving, self._safe_outputs = False, 0
        self._state, self._trusted = STANDBY, True
        self._ended = False             # whether HOLD is due to the end of a reference
        self._last = None               # ns of the cycle before
        self._answered = 0              # stamp of the state of the last output
        self._stamp = 0                 # of the last output
        self._enabled_stamp = 0         # of the state at which it was enabled
        self._considered = None         # the `Candidate` that may be accepted
        self._streaming = False

    # what was measured

    def take_state(self, measured, now, ros_now):
        """Take a `MeasuredState` between two steps; return '' or why it is not used."""
        self.inputs.look(now, ros_now)
        self._take_state(measured, ros_now)
        return self.refused

    def _take_state(self, measured, ros_now):
        self.refused = self.inputs.take_state(measured, ros_now, self.selector.rate, self.selector.mode is AT_SAFE)

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
        self._refuse_reference(start_stamp)
        start = None if start_stamp is None else self.inputs.seconds(start_stamp)
        self._considered = self.law.reference.consider(waypoints, self.inputs.time, start, state=self.inputs.checks.x)
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
        """Take a streamed point of the reference, x, xd, xdd (dof,) at a stamp, 0: now.

        Raises TrajectoryError, and goes on as before, where it may not be.
        """
        self._refuse_reference(stamp)
        t = self.inputs.seconds(stamp) if stamp else self.inputs.time
        self.law.reference.stream(t, x, xd, xdd, self.inputs.time)
        self._considered, self._streaming = None, True
        self._follow()

    def cancel(self, now):
        """Come to rest from the reference, and hold."""
        if self.selector.mode is UNDER_LAW and self._state in (RUN, DEGRADED):
            self._void()
            self.selector.brake(fault=False)
            self._end_reference()

    def _refuse_reference(self, stamp=None):
        if not self.states.enabled or self.selector.mode is not UNDER_LAW:
            raise TrajectoryError(f'the controller is in {self.states.state.name} and not enabled: no reference is '
                                  'taken')
        if stamp and stamp < self._enabled_stamp:
            raise TrajectoryError(f'the reference is stamped {(self._enabled_stamp - stamp) * 1e-9:.3g} s before the '
                                  'controller was enabled')

    def _follow(self):
        self._ended = False
        self.states.reference_accepted(self.inputs.clock)

    def _end_reference(self):
        self._ended, self._streaming = True, False
        self.states.reference_ended(self.inputs.clock)

    def _void(self):
        """Forget what was considered, and that points are streamed."""
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
        self.finished = not self._giving

    def enable(self, now):
        """Hold the machine under the law where it is; SafetyError with every reason against it."""
        if self.states.enabled:
            return
        clock = self.inputs.at(now)
        self._refuse('enabling')
        self.states.enable(clock)
        self._void()
        self.selector.begin(clock)
        self._enabled_stamp, self._ended = self.inputs.stamp, True

    def _refuse(self, what):
        """Raise SafetyError where something measured or declared speaks against it."""
        reasons = activation_blockers(self.manipulator, self.declaration, self.inputs)
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

    def step(self, now, ros_now, measured=None):
        """Take a `MeasuredState`, None where none came since the last cycle, and return the `Output` of this cycle.

        None where nothing is to be published. `refused` says why the state was not used. Never raises.
        """
        try:
            clock = self.inputs.look(now, ros_now)
            if measured is not None:
                self._take_state(measured, ros_now)
            return self._cycle(clock, ros_now) if self._giving else self._idle(clock)
        except GateError as error:
            return self._failed('output_rejected', FAIL, str(error), ros_now)
        except Exception as error:      # whatever it is, the machine is made safe
            return self._failed('exception', ERROR, f'{type(error).__name__}: {error}', ros_now)

    def _idle(self, clock):
        """Let faults that are over pass their probation, so that they do not speak against activation or reset."""
        if self.states.reasons:
            self.inputs.watch()
            self.states.step(clock)

    def _cycle(self, clock, ros_now):
        dt, self._last = 0.0 if self._last is None else 1e-9 * (clock - self._last), clock
        self._watch(clock)
        state, trusted = self.states.step(clock), self.states.trusted
        if state is STOPPING and not trusted and self.cycles.gap > self._latest:
            # what was commanded last is in force no more, and there is nothing else to stop from
            self.states.report(clock, 'output_lost', FAIL, f'no output for {self.cycles.gap / 1e6:.1f} ms, and a '
                                                           'measured state that cannot be trusted')
            state = self.states.step(clock)
        if state is not self._state or trusted is not self._trusted:
            self._turn(state, trusted, clock)
        if self.selector.mode is AT_SAFE:
            return self._safe(ros_now)
        return Output(self.selector.command(clock, dt), self._output_stamp(ros_now), state, True, self.selector.desired)

    def _watch(self, clock):
        """Report the checks of every cycle."""
        report = self.states.report
        self.cycles.look(clock)
        late = self.cycles.overrun
        if late or self.states.unsettled:
            report(clock, 'overrun', FAIL if late else PASS, late)
        if self.cycles.gap > self._latest:
            name = 'output_lost' if self.cycles.gap > self._lost else 'output_late'
            report(clock, name, FAIL, f'no output for {self.cycles.gap / 1e6:.1f} ms')
        self.inputs.watch()
        if self._state is STOPPING and self.selector.stopped(clock):
            self.states.at_rest(clock)
        if self.selector.mode is UNDER_LAW:
            self._watch_reference(clock)
            self.selector.adjust(clock, DEGRADED_SPEED if self._state is DEGRADED else 1.0)

    def _watch_reference(self, clock):
        """Notice the end of a reference, and that of a stream."""
        t, reference = self.inputs.time, self.law.reference
        age = reference.stream_age(t) if self._streaming else 0.0
        if age > self.declaration.timeouts.stream:
            self.states.report(clock, 'stream_silent', STALE, f'no point came for {age * 1e3:.0f} ms')
            return
        if self.states.unsettled:
            self.states.report(clock, 'stream_silent', PASS)
        if not self._streaming and self._state in (RUN, DEGRADED) and not reference.moving(t):
            self._end_reference()

    def _turn(self, state, trusted, clock):
        """Go over to another sub-state."""
        before, self._state, self._trusted = self._state, state, trusted
        if state is not before:
            self._tell(before, state)
        selector = self.selector
        if state in (STANDBY, SAFE):
            self._void()
            selector.rest()
        elif selector.mode is not UNDER_LAW:
            return
        elif state is STOPPING:
            self._void()
            if not trusted:
                selector.ramp(clock)
            elif before is not STOPPING:
                selector.brake(self.states.reasons)
        elif state is HOLD and before in (RUN, DEGRADED) and not self._ended:
            self._void()
            selector.brake(fault=True)

    def _tell(self, before, state):
        reasons = '; '.join(self.states.reasons.values())
        with suppress(Exception):       # of a logger
            self._log('error' if state >= STOPPING and reasons else 'info',
                      f'{before.name} to {state.name}' + (f': {reasons}' if reasons else ''))

    def _failed(self, name, result, text, ros_now):
        """The safe output, in the cycle in which something went wrong."""
        clock = self.inputs.clock
        self.states.report(clock, name, result, text)
        self._turn(self.states.step(clock), self.states.trusted, clock)
        return self._safe(ros_now) if self._giving else None

    def _safe(self, ros_now):
        """The safe output; those after a deactivation are counted."""
        if self._leaving:
            self._safe_outputs += 1
            if self._safe_outputs >= SAFE_OUTPUTS:
                self.finished, self._giving, self._leaving = True, False, False
        return Output(self.selector.safe(self._state is STANDBY), self._output_stamp(ros_now), self._state, False, None)

    def _output_stamp(self, ros_now):
        """That of the state which is answered, of this moment where that was answered before."""
        stamp = self.inputs.stamp
        fresh = stamp != self._answered
        self._answered = stamp
        self._stamp = max(self._stamp, stamp if fresh else ros_now)
        return self._stamp

    def _rebase(self, jump):
        """The clock of stamps jumped by so many ns."""
        self._answered += jump
        self._stamp += jump
        self._enabled_stamp += jump
        if abs(jump) > JUMP:
            with suppress(Exception):       # of a logger
                self._log('warning', f'the clock of stamps jumped by {jump / 1e6:.1f} ms: stamps are taken from there')
