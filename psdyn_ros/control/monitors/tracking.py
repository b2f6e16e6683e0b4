"""Checks of a motion under a law: is the reference followed, are commands at their limits, do they bring it back, do
streamed points keep coming?
"""

import numpy as np

from ...kernels.control import effort_range, plausibility
from ...kernels.runtime.buffer import views
from .actuator_motion import ActuatorMotion, CoordinateForces
from .check import (
    BRAKED,
    DEGRADE,
    HOLD,
    RAMPED,
    REDUCED,
    STOP,
    STOP_OPEN_LOOP,
    Check,
    Finding,
    Result,
    Row,
    State,
    When,
    warning,
)

IN_A_ROW = 2            # cycles off the reference until it is a fault
CLIPPED = 200_000_000   # ns at a limit, while the error grows, until it is a fault
GROWTH = 0.05           # of the tracking tolerance, by which the error has to grow meanwhile

AWAY = 0.25             # of the declared acceleration, that an effort may give away from the reference
LEAD = 0.03             # s that laws look ahead
WINDOW = 0.025          # s of errors and accelerations, within which noise and filters may shift them
WRONG_EFFORTS = 0.018   # s beyond that range by as much as `AWAY` more
BRAKING = 0.95          # of the largest efforts, that may be used up when a stop begins
GENTLEST = 0.3          # of the declared deceleration, in a stop without a fault
REPEATED = 3            # commands in a row, of different states, that are the one before


class TrackingCheck(Check):
    """Compares the measured position with the reference of the same cycle, and counts clipped commands.

    `share` is the part of the tracking tolerance that the worst actuator is off, 1 at the limit; `clipped` whether a
    command was clipped in the last cycle. Commands at their limits slow the reference down (`govern`); they are
    a fault only where the error goes on growing.
    """

    rows = (
        warning('F15', 'clamped', 'a command beyond its limit or rate', 'is clamped'),
        Row('F15', 'saturated', DEGRADE,
            'clamped for longer than 200 ms while the error grows by a twentieth of its tolerance', REDUCED, 2, 1.0),
        Row('F20', 'tracking', STOP, 'farther from the reference than is tolerated', f'{BRAKED}; in a stop {RAMPED}', 2,
            event=True),
    )
    when = When.COMMAND

    def __init__(self, config, law):
        self._law, self._motion = law, ActuatorMotion(config.machine)
        self._names = config.machine.actuators
        # of arrays that may not be written the kernels would have to be compiled once more
        self._tolerance = np.array(config.declaration.tracking_tolerance)
        self._counted = None            # commands at their limits until the last cycle, of law and gate
        self._clipped_since = None      # ns; and with which error
        self._clipped_error = 0.0
        self.off = 0                    # cycles in a row off the reference
        self.share, self.clipped = 0.0, False

    def restart(self):
        """As `Check.restart`."""
        self.off, self.share, self.clipped, self._counted, self._clipped_since = 0, 0.0, False, None, None

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        position, desired = inputs.positions, self._motion.positions(self._law.desired[0])
        self.share, i, saturations = plausibility.worst_share(self._tolerance, self._law.saturations, position, desired)
        counted = saturations + inputs.clamped
        self.clipped = clipped = self._counted is not None and counted != self._counted
        self._counted = counted
        self.off = 0 if self.share <= 1.0 else self.off + 1
        if not clipped:
            self._clipped_since = None
            if self.off < IN_A_ROW:
                return ()
        findings = self._limits(inputs.clock) if clipped else []
        if self.off >= IN_A_ROW:
            # a stop that leaves its own reference is none
            findings.append(Finding('tracking', f'{self._names[i]} is {abs(desired[i] - position[i]):.3g} off its '
                                    f'reference, at most {self._tolerance[i]:g}',
                                    demand=STOP_OPEN_LOOP if inputs.state is State.STOPPING else None))
        return findings

    def _limits(self, clock):
        """Return the findings of a command that was clipped."""
        findings = [Finding('clamped')]
        if self._clipped_since is None:
            self._clipped_since, self._clipped_error = clock, self.share
        elif clock - self._clipped_since > CLIPPED and self.share > self._clipped_error + GROWTH:
            findings.append(Finding('saturated', 'commands are at their limits for '
                                    f'{(clock - self._clipped_since) / 1e6:.0f} ms'))
        return findings


class RepetitionCheck(Check):
    """Finds a law that goes on giving the same commands, bit by bit, though state and reference change."""

    rows = (Row('F39', 'command_frozen', STOP_OPEN_LOOP, 'the same commands again and again while the speed of the '
                'reference changes', RAMPED, REPEATED + 1, event=True),)
    when = When.COMMAND

    def __init__(self, config, law):
        self._law = law
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        self._repeated, self._time = 0, None        # in a row; s of the last state
        self._before = None, None, None             # command, speed of the reference, clipped commands at that state

    def restrain(self, command, inputs):
        """Compare the command of the law with that of the state before; as `Check.restrain`, it changes nothing."""
        if inputs.time == self._time:
            return
        law, (given, speed, clipped) = self._law, self._before
        self._time = inputs.time
        self._before = now = command.tolist(), law.desired[1].tolist(), law.saturations.tolist()
        # a command at its limit may well stay there
        repeated = now[0] == given and now[1] != speed and now[2] == clipped
        self._repeated = self._repeated + 1 if repeated else 0

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if self._repeated < REPEATED:
            return ()
        return (Finding('command_frozen', f'the law gives the same commands for {self._repeated + 1} states, in which '
                        'the speed of its reference changes'),)


class EffortCheck(Check):
    """Restrains efforts that the errors do not explain, and stops a law that goes on with them.

    A sound law gives the force of the model for the acceleration of its reference, what the motion so far needed beyond
    that (`MomentumCheck`), and feedback towards the reference. `restrain` takes the accelerations that efforts would
    cause into that range, which ends a quarter of the declared acceleration away from the reference, and at that of the
    reference where the axis is off its speed already, by that of standstill: at force level one wrong command is a
    jerk. A law that makes the rate of an error from positions may answer each step of an encoder. In a stop errors of
    the position count only as far as they were there when it began: a position that drifts would keep the axis moving
    against its measured speed.
    """

    rows = (Row('F39', 'effort_suspect', STOP_OPEN_LOOP, 'a force that drives away from the reference', RAMPED, 4, 0.02,
                event=True),)
    when = When.COMMAND

    def __init__(self, config, law):
        self._law, self._period, self._efforts = law, config.period, CoordinateForces(config, law)
        efforts = self._efforts
        self.required = law.model_feedback and bool(efforts.by_force.any())
        if not self.required:
            return
        rows = np.argsort(~efforts.by_force, kind='stable')
        self._buffer = effort_range.make_effort_range(
            rows, int(efforts.by_force.sum()), max(round(WINDOW / config.period), 2) + 1)
        self._range = effort_range.EffortRange(*views(self._buffer, effort_range.TYPES))
        declared = config.declaration
        self._range.standstill[:] = declared.standstill_speed[law.rows]
        self._range.limits[:2] = AWAY * np.array(declared.acceleration)[law.rows], efforts.limit
        self._range.area[:], self._range.friction[:] = efforts.area, efforts.friction
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        if not self.required:
            return
        self._range.count[0], self._range.memory[:], self._range.sum[:] = 0, 0.0, 0.0
        self._range.memory[effort_range.TIME] = np.nan
        self._worst = -1            # axis at force level that is furthest out of range
        self._saturated = self._law.saturations.tolist()    # how often the law clipped each effort, until that state

    def restrain(self, command, inputs):
        """As `Check.restrain`: efforts to the range that reference and errors explain."""
        law, t, (x, xd), unknown = self._law, inputs.time, inputs.estimated, self._law.unknown_accelerations
        self._unclip(command)
        if law.step_gains is not None:
            unknown = unknown + law.step_gains * inputs.encoder_steps
        motion = effort_range.Motion(t, self._period, x, xd, law.desired, law.reference.ahead(t + LEAD)[2], unknown,
                                     inputs.state is State.STOPPING)
        efforts = self._efforts.of(command, x)
        self._worst = effort_range.restrain_law(
            self._buffer, law.effort_model(x, xd), law.effort_gains, law.integral_gains, law.feedforward_scale, motion,
            efforts)
        if self._efforts.mapped and self._worst >= 0:
            self._efforts.replace(command, x, efforts)

    def _unclip(self, command):
        """Put into a command (actuators,) what the law asked for where it has clipped an effort at its limit.

        That says whether the law is sound: one effort that is clipped accelerates other axes otherwise than it wants.
        """
        saturated = self._law.saturations.tolist()
        if saturated != self._saturated:
            asked = self._law.asked_commands
            beyond = (np.not_equal(saturated, self._saturated) & self._efforts.actuators
                      & (asked * np.sign(command) > np.abs(command)))
            command[beyond] = asked[beyond]
        self._saturated = saturated

    def braking_share(self, deceleration):
        """Return the share of a deceleration (actuators,) at which efforts stay below their limits in a stop from the
        reference, in which all axes slow down together."""
        if not self.required or self._law.desired is None:
            return 1.0
        x, xd, _ = self._law.desired
        model = effort_range.EffortModel(*views(self._law.effort_model(x, xd), effort_range.MODEL_TYPES))
        rate = min(deceleration[self._law.rows] / np.maximum(np.abs(xd), 1e-9))
        change, efforts = -rate * (model.inertia @ xd), model.efforts + model.lack
        room = BRAKING * self._range.limits[1] * self._range.area - efforts * np.sign(change)
        moved = self._efforts.by_force & (change != 0.0)
        shares = np.divide(room, np.abs(change), out=np.ones_like(room), where=moved)
        return float(np.clip(shares.min(), GENTLEST, 1.0))

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if self._range.memory[effort_range.WRONG_S] < WRONG_EFFORTS:
            return ()
        given, asked, low, high = self._range.found[:, self._worst]
        name = self._efforts.names[self._range.rows[self._worst]]
        return (Finding('effort_suspect', f'{name} is given {given:.4g}, which accelerates it by {asked:.3g}; expected '
                        f'{low:.3g} to {high:.3g} by reference and errors'),)


class StreamCheck(Check):
    """The age of the newest streamed point, while points are streamed."""

    rows = (
        Row('F19', 'stream_silent', HOLD, 'no streamed point for the timeout', 'stops and holds', 1, 0.1, 'stream',
            probation=False),)

    def __init__(self, config, law):
        self._timeout = config.declaration.timeouts.stream

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if not inputs.under_law:
            return None
        if not inputs.streaming:
            return ()
        age = inputs.stream_age
        if age > self._timeout:
            return (Finding('stream_silent', f'no point came for {age * 1e3:.0f} ms', Result.STALE),)
        return ()
