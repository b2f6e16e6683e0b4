"""The heart of the controller, without ROS: measured states, references and switches in, one output per cycle out.

    step                                          -> takes a measured state and gives the output: of the law, of a
                                                     ramp to rest, or safe (`OutputSelector`)
    take_pressures, take_emergency_stop           -> the other measurements, checked and kept (`Inputs`)
    validate_trajectory, execute, take_point,
    cancel                                        -> the reference
    activate, enable, disable, reset, deactivate  -> the sub-states (`SafetyStates`)

Times are ns: `now` of a steady clock, `ros_now` and stamps of the clock of stamps. Where that is a simulated one, ages
count simulated time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...api.arguments import numbers
from ...model.errors import ModelError, PsdynError, ShapeError
from ..monitors.check import When
from ..monitors.checks import CHECKS
from ..monitors.clock import JUMP, OverrunCheck
from ..monitors.oil_flow import ForceCheck
from ..reference.reference_limits import ReferenceLimits
from ..reference.trajectory import TrajectoryError, TrajectoryStampError
from ..safety.fault_table import ROWS, Result, State
from ..safety.output_gate import GateError
from ..safety.state_machine import SafetyError, SafetyStates
from .inputs import CheckInputs, CheckRunner, Inputs, MeasuredState
from .output_selector import AT_SAFE, UNDER_LAW, OutputSelector
from .preconditions import (
    activation_blockers,
    displacement_blockers,
    force_blockers,
    load_blockers,
    motion_blockers,
    supply_blockers,
)

if TYPE_CHECKING:
    from ..reference.trajectory import Waypoints
    from .assembly import ControllerConfig

PASS, FAIL, STALE, ERROR = Result
STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
DEGRADED_SPEED = 0.5
SAFE_OUTPUTS = 3                # after a deactivation
OVERDUE = 1.5                   # periods of simulated time after a state, from which on the next one is late
# conditions whose reasons `activation_blockers` gives
LISTED = ('emergency_stop', 'pressures_silent', 'closure_residual', 'velocity_residual')


class Output(NamedTuple):
    """What leaves in one cycle."""

    command: np.ndarray
    """(actuators,) in the unit of each interface, NaN: left out."""
    stamp: int
    """ns on the clock of stamps, never before that of the output before."""
    state: State
    valid: bool
    """Whether it is a command to move or hold, and not the safe output."""
    desired: np.ndarray | None
    """(3, dof) x, xd, xdd of the reference that it follows; None where it follows none."""


class ControlCore:
    """One law, with everything between it and a machine; made by `assembly.assemble`.

    config  `ControllerConfig`, its machine without passive joints: that of the law
    law     `ControlLaw`; its reference gets the declared limits
    log     called with (level, text), level 'info', 'warning' or 'error', of events that are worth a line
    """

    def __init__(self, config: ControllerConfig, law: Any, log: Callable[[str, str], None] | None = None) -> None:
        declaration = config.declaration
        self.manipulator, self.declaration, self.law = config.machine, declaration, law
        law.reference.limits = ReferenceLimits.declared(declaration, config.stream_delay, law)
        self.checks = {kind: kind(config, law) for kind in (*CHECKS, *config.checks)}
        self.states = SafetyStates(declaration, config.period, fault_table(config.checks), config.simulated_time)
        self._check_inputs = CheckInputs(config, law)
        self._runner = CheckRunner(tuple(self.checks.values()), self.states, self._check_inputs)
        self.inputs = Inputs(config, self.checks, self._runner, self.states, on_jump=self._rebase)
        self.selector = OutputSelector(config, law, self.inputs, self.checks, self._runner)
        self.gate = self.selector.gate
        self._overruns = self.checks[OverrunCheck]
        self.finished = False           # whether a deactivation is complete
        self.refused = ''               # why the last measured state was not used; '' where it was
        self._log = log or (lambda level, text: None)
        self._simulated, self._overdue = config.simulated_time, 1e9 * OVERDUE * config.period
        self._deactivating, self._safe_outputs = False, 0
        self._state, self._state_valid = STANDBY, True
        self._reference_ended = False   # whether HOLD is due to the end of a reference
        self._last_cycle: int | None = None     # ns
        self._braked = 0                # ns at which the last stop under the law began
        self._answered_stamp = 0        # of the state of the last output
        self._output_stamp = 0          # of the last output
        self._enabled_stamp = 0         # of the state at which it was enabled
        self._validated = None         # the `ValidatedTrajectory` that may be executed

    # what was measured

    def take_state(self, measured: MeasuredState, now: int, ros_now: int) -> str:
        """Take a `MeasuredState` between two steps; return '' or why it is not used."""
        self.inputs.read_clocks(now, ros_now)
        self._take_state(measured, ros_now)
        return self.refused

    def _take_state(self, measured: MeasuredState, ros_now: int) -> None:
        self._believe()
        x, xd = (np.ascontiguousarray(one, dtype=float) for one in (measured.x, measured.xd))
        measured = measured._replace(x=x, xd=xd)
        self.refused = self.inputs.take_state(measured, ros_now, self.selector.rate, self.selector.mode is AT_SAFE)
        if self.refused:
            self.states.state_rejected(self.refused)
        else:
            command = self._check_inputs.command if self.selector.mode is UNDER_LAW else None
            self.law.observe(self.inputs.time, x, xd, measured.passive, command)

    def split(self, x: Any, xd: Any) -> tuple[Any, Any, Any]:
        """Return (x, xd, passive) for a `MeasuredState`, of x, xd of all coordinates of the machine."""
        passive = self.law.load.passive
        return (x, xd, None) if passive is None else passive.split(x, xd)

    def reject_state(self, now: int, row: str, reason: Any) -> None:
        """Note that a message of the state could not be read; row: condition of the fault table, `state_malformed`."""
        self.states.state_rejected(str(reason))
        self.states.report(self.inputs.at(now), row, FAIL, str(reason))

    def take_pressures(self, stamp: int, ros_now: int, now: int, values: npt.ArrayLike,
                       supply: float | None = None) -> str:
        """Take pressures (cylinders, 2) and that of the supply [Pa gauge]; return '' or why they are not used."""
        try:
            values = np.ascontiguousarray(numbers('pressures', values), dtype=float)
            if supply is not None and type(supply) is not float:
                supply = float(numbers('supply', supply))
        except (ShapeError, TypeError) as error:
            cylinders = getattr(self._check_inputs.hydraulics, 'cylinders', ())
            text = f'{error}; expected {len(cylinders), 2} and a number, in Pa gauge'
            self.report(now, 'pressures_not_finite', FAIL, text)
            return text
        return self.inputs.take_pressures(stamp, ros_now, now, values, supply, self.selector.mode is AT_SAFE)

    def take_emergency_stop(self, pressed: bool, now: int) -> None:
        """Take what the emergency stop says: pressed unless it is a False; a press counts though a release follows."""
        self.inputs.take_emergency_stop(pressed, now)

    def set_payload(self, link: str, mass: float, com: npt.ArrayLike, inertia: npt.ArrayLike) -> None:
        """As `law.set_payload` where the machine is; what is refused is counted, and raised."""
        self._pass_on(self.law.set_payload, link, mass, com, inertia, self.inputs.state_check.x)

    def set_base(self, base: Any) -> None:
        """As `law.set_base`; what is refused is counted, and raised."""
        self._pass_on(self.law.set_base, base)

    def take_imu(self, link: str, turning: npt.ArrayLike, force: npt.ArrayLike) -> None:
        """As `LoadModel.take_imu`; what is refused is counted, and raised."""
        self._pass_on(self.law.load.take_imu, link, turning, force)

    def _believe(self) -> None:
        """Take a load in at once where no command of the law would step by it."""
        if self.law.load.changing and self.selector.mode is AT_SAFE:
            self.law.load.advance(math.inf)

    def _pass_on(self, take: Callable[..., Any], *values: Any) -> None:
        try:
            take(*values)
        except PsdynError as error:
            self.states.report(self.inputs.clock, 'load_rejected', FAIL, str(error))
            raise

    # references

    def validate_trajectory(self, waypoints: Waypoints, start_stamp: int | None = None) -> Any:
        """Return the `ValidatedTrajectory` of a trajectory that starts at a stamp, now where it is None.

        Raises TrajectoryError; nothing changes until `execute`.
        """
        self._refuse_reference(start_stamp)
        start = None if start_stamp is None else self.inputs.seconds(start_stamp)
        self._validated = self.law.reference.validate_trajectory(waypoints, self.inputs.time, start,
                                                                state=self.inputs.state_check.x)
        return self._validated

    def execute(self, validated: Any, now: int) -> None:
        """Follow a trajectory that was checked to its end; TrajectoryError where it may no longer be."""
        self._refuse_reference()
        if validated is not self._validated:
            raise TrajectoryError('the machine was stopped, or another reference came, since this one was checked')
        self.law.reference.execute(validated, self.inputs.time)
        self._discard_references()
        self._reference_accepted()

    def take_point(self, stamp: int, now: int, x: Any, xd: Any = None, xdd: Any = None) -> None:
        """Take a streamed point of the reference, x, xd, xdd (dof,) at a stamp, 0: now.

        Raises TrajectoryError, and goes on as before, where it may not be.
        """
        self._refuse_reference(stamp)
        t = self.inputs.seconds(stamp) if stamp else self.inputs.time
        self.law.reference.stream(t, x, xd, xdd, self.inputs.time)
        self._validated, self._check_inputs.streaming = None, True
        self._reference_accepted()

    def cancel(self, now: int) -> None:
        """Come to rest from the reference, and hold; a trajectory that is being checked will not be followed."""
        if self.selector.mode is UNDER_LAW and self._state is not STOPPING:
            self._discard_references()
            if self.law.reference.moving(self.inputs.time):
                self.selector.brake(fault=False)
                self._end_reference()

    @property
    def streaming(self) -> bool:
        """Whether streamed points are followed."""
        return self._check_inputs.streaming

    @property
    def interrupted(self) -> bool:
        """Whether the machine holds its position though its reference had not come to its end."""
        return self._state is HOLD and not self._reference_ended

    def _refuse_reference(self, stamp: int | None = None) -> None:
        if not self.states.enabled or self.selector.mode is not UNDER_LAW:
            raise TrajectoryError(f'the controller is in {self.states.state.name} and not enabled: no reference is '
                                  'taken')
        if stamp and stamp < self._enabled_stamp:
            raise TrajectoryStampError(f'the reference is stamped {(self._enabled_stamp - stamp) * 1e-9:.3g} s before '
                                       'the controller was enabled')

    def _reference_accepted(self) -> None:
        self._reference_ended = False
        self.states.reference_accepted(self.inputs.clock)

    def _end_reference(self) -> None:
        self._reference_ended, self._check_inputs.streaming = True, False
        self.states.reference_ended(self.inputs.clock)

    def _discard_references(self) -> None:
        """Discard the validated trajectory; points are not streamed any more."""
        self._validated, self._check_inputs.streaming = None, False

    # switches

    def activate(self, now: int, ros_now: int) -> None:
        """Begin to give outputs, the safe one at first; SafetyError with every reason against it."""
        clock = self.inputs.read_clocks(now, ros_now)
        # before the checks: what has not come yet would open a condition, whose probation needs simulated time to pass
        self._refuse('activation')
        self._runner.run(When.CYCLE)
        self.states.step(clock)
        self._refuse('activation')
        self.states.activate(clock)
        self.inputs.state_check.accept_position()
        self._overruns.watch.forget()
        self._last_cycle = None
        self._check_inputs.publishing, self._deactivating, self.finished, self._safe_outputs = True, False, False, 0

    def deactivate(self, now: int) -> None:
        """Stop, give the safe output at least three times, then none: `finished` says when."""
        if self._check_inputs.publishing and not self._deactivating:
            self._deactivating, self._safe_outputs = True, 0
            self.states.deactivate(self.inputs.at(now))
        self.finished = not self._check_inputs.publishing

    def enable(self, now: int) -> None:
        """Hold the machine under the law where it is; SafetyError with every reason against it."""
        if self.states.enabled:
            return
        self._believe()
        clock = self.inputs.at(now)
        self._refuse('enabling', [*self._moving(), *displacement_blockers(self.inputs),
                                  *load_blockers(self.law, self.inputs),
                                  *force_blockers(self.checks[ForceCheck], self.inputs),
                                  *supply_blockers(self.law, self.inputs)])
        self.states.enable(clock)
        self._discard_references()
        self.selector.begin(clock)
        self._enabled_stamp, self._reference_ended = self.inputs.stamp, True

    def _moving(self) -> Any:
        return motion_blockers(self.manipulator, self.declaration, self.inputs)

    def _refuse(self, what: str, moving: Any = ()) -> None:
        """Raise SafetyError where something measured or declared speaks against it."""
        reasons = [*activation_blockers(self.manipulator, self.declaration, self.inputs), *moving]
        if reasons:
            more = [reason for name, reason in self.states.reasons.items() if name not in LISTED]
            raise SafetyError(f'{what} is refused: {"; ".join([*reasons, *more])}')

    def disable(self, now: int) -> None:
        """Stop, then stand by."""
        self.states.disable(self.inputs.at(now))

    def reset(self, now: int) -> None:
        """Forget the faults that are gone; SafetyError that names those that are not, or what still moves."""
        self.states.reset(self.inputs.at(now), self._moving())

    def report(self, now: int, name: str, result: Any, text: str = '') -> None:
        """Report the result of a check that only the caller can do, as of conflicting publishers."""
        self.states.report(self.inputs.at(now), name, result, text)

    def fail(self, now: int, text: str) -> None:
        """Something went wrong that should not: SAFE."""
        self.states.report(self.inputs.at(now), 'exception', ERROR, text)

    # the cycle

    def step(self, now: int, ros_now: int, measured: MeasuredState | None = None) -> Output | None:
        """Take a `MeasuredState`, None where none came since the last cycle, and return the `Output` of this cycle.

        None where nothing is to be published. `refused` says why the state was not used. Never raises.
        """
        try:
            clock = self.inputs.begin_cycle(now, ros_now)
            if measured is not None:
                self._take_state(measured, self.inputs.ros_now)
            if self._check_inputs.publishing:
                return self._cycle(clock)
            self._idle(clock)
            return None
        except GateError as error:
            return self._failed('output_rejected', FAIL, str(error))
        except Exception as error:      # whatever it is, the machine is made safe
            return self._failed('exception', ERROR, f'{type(error).__name__}: {error}')

    def _idle(self, clock: int) -> None:
        """Let faults that are over pass their probation, so that they do not speak against activation or reset."""
        if self.states.reasons:
            self._runner.run(When.CYCLE)
            self.states.step(clock)

    def _cycle(self, clock: int) -> Any:
        dt, self._last_cycle = 0.0 if self._last_cycle is None else 1e-9 * (clock - self._last_cycle), clock
        self._runner.run(When.CYCLE)
        if self._state is STOPPING and self.selector.stopped(clock):
            self.states.at_rest(clock)
        if self.selector.mode is UNDER_LAW:
            self._update_reference()
        state, valid = self.states.step(clock), self.states.state_valid
        if state is STOPPING and not valid and self._overruns.late:
            # the receiver has given up the last command, and there is nothing else to stop from
            self.states.report(clock, 'output_lost', FAIL, f'no output for {self._overruns.watch.gap / 1e6:.1f} ms, '
                                                           'and a measured state that is not valid')
            state = self.states.step(clock)
        self._check_inputs.state = state
        if state is not self._state or valid is not self._state_valid:
            self._change_state(state, valid, clock)
        if self.selector.mode is AT_SAFE:
            return self._safe()
        return Output(self.selector.command(clock, dt), self._stamp(), state, True, self.selector.desired)

    def _update_reference(self) -> None:
        """Report the end of the reference, and set its speed scaling."""
        t, reference = self.inputs.time, self.law.reference
        if not self._check_inputs.streaming and self._state in (RUN, DEGRADED) and not reference.moving(t):
            self._end_reference()
        self.selector.set_speed(DEGRADED_SPEED if self._state is DEGRADED else 1.0)

    def _change_state(self, state: Any, valid: bool, clock: int) -> None:
        """Go over to another sub-state; valid: whether the measured state may be used for a stop."""
        before, self._state, self._state_valid = self._state, state, valid
        if state is not before:
            self._log_change(before, state)
        selector = self.selector
        if state in (STANDBY, SAFE):
            self._discard_references()
            # a receiver that gave up the last command has shut its valves: no ramp opens them again; and by a clock
            # that is behind the cycles none would end
            selector.rest(clock if state is SAFE and not (self._overruns.late or self.states.outrun) else None)
        elif selector.mode is not UNDER_LAW:
            return
        elif state is STOPPING:
            self._discard_references()
            if not valid:
                selector.ramp(clock, self._braked if before is STOPPING else clock)
            elif before is not STOPPING:
                self._braked = clock
                selector.brake(fault=bool(self.states.demanding(STOPPING)))
                selector.end_deviation()
        elif state is HOLD and before in (RUN, DEGRADED) and not self._reference_ended:
            self._discard_references()
            # where only the stream has ended, nothing is wrong with what it was heading for
            selector.brake(fault=self.states.reasons.keys() != {'stream_silent'})

    def _log_change(self, before: Any, state: Any) -> None:
        reasons = '; '.join(self.states.demanding(state)) if state > RUN else ''
        why = f': {reasons}' if reasons else ' as asked' if state is STOPPING else ''
        with suppress(Exception):       # of a logger
            self._log('error' if state >= STOPPING and reasons else 'info', f'{before.name} to {state.name}{why}')

    def _failed(self, name: str, result: Any, text: str) -> Any:
        """The safe output, in the cycle in which something went wrong."""
        clock = self.inputs.clock
        self.states.report(clock, name, result, text)
        self._change_state(self.states.step(clock), self.states.state_valid, clock)
        return self._safe() if self._check_inputs.publishing else None

    def _safe(self) -> Output:
        """The safe output; those after a deactivation are counted."""
        output = self.selector.safe(self._state is STANDBY, self.inputs.clock)
        if self._deactivating and not self.selector.closing:
            self._safe_outputs += 1
            if self._safe_outputs >= SAFE_OUTPUTS:
                self.finished, self._check_inputs.publishing, self._deactivating = True, False, False
        return Output(output, self._stamp(), self._state, False, None)

    def _stamp(self) -> int:
        """Return the stamp of the state which is answered, or of this moment where that was answered before."""
        # simulated time may be ahead of the next state: a plant in lock-step would take its stamp for the answer
        stamp, ros_now = self._check_inputs.stamp, self.inputs.ros_now
        answers = stamp != self._answered_stamp or self._simulated and ros_now - stamp < self._overdue
        self._answered_stamp = stamp
        self._output_stamp = max(self._output_stamp, stamp if answers else ros_now)
        return self._output_stamp

    def _rebase(self, jump: int) -> None:
        """The clock of stamps jumped by so many ns."""
        self._answered_stamp += jump
        self._output_stamp += jump
        self._enabled_stamp += jump
        if abs(jump) > JUMP:
            with suppress(Exception):       # of a logger
                self._log('warning', f'the clock of stamps jumped by {jump / 1e6:.1f} ms: stamps are taken from there')


def fault_table(checks: Any) -> Any:
    """Return the rows of the fault table and of further checks; ModelError where a condition has two."""
    rows = (*ROWS, *(row for check in checks for row in check.rows))
    names = [row.name for row in rows]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ModelError(f"condition '{twice[0]}': it has a row in the fault table already; expected another name")
    return rows
