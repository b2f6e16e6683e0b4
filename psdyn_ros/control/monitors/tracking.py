"""Checks of a reference: is it followed, do commands stay at their limits, do streamed points keep coming?"""

import numpy as np

from ...kernels.control import plausibility as kernels
from .actuator_motion import ActuatorMotion
from .check import BRAKED, DEGRADE, HOLD, REDUCED, STOP, Check, Finding, Result, Row, When, warning

IN_A_ROW = 2            # cycles off the reference until it is a fault
CLIPPED = 200_000_000   # ns at a limit, while the error grows, until it is a fault
GROWTH = 0.05           # of the tracking tolerance, by which the error has to grow meanwhile


class TrackingCheck(Check):
    """Compares the measured position with the reference of the same cycle, and counts clipped commands.

    `share` is the part of the tracking tolerance that the worst actuator is off, 1 at the limit; `clipped` whether a
    command was clipped in the last cycle. Commands at their limits slow the reference down (`SpeedGovernor`); they are
    a fault only where the error goes on growing.
    """

    rows = (
        warning('F15', 'clamped', 'a command beyond its limit or rate', 'is clamped'),
        Row('F15', 'saturated', DEGRADE,
            'clamped for longer than 200 ms while the error grows by a twentieth of its tolerance', REDUCED, 2, 1.0),
        Row('F20', 'tracking', STOP, 'farther from the reference than is tolerated', BRAKED, 2, event=True),
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
        position, desired = self._motion.positions(inputs.x), self._motion.positions(self._law.desired[0])
        self.share, i, saturations = kernels.worst_share(self._tolerance, self._law.saturations, position, desired)
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
            findings.append(Finding('tracking', f'{self._names[i]} is {abs(desired[i] - position[i]):.3g} off its '
                                    f'reference, at most {self._tolerance[i]:g}'))
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
