"""Whether a machine whose reference rests swings more and more."""

import numpy as np

from .actuator_motion import ActuatorMotion
from .check import RAMPED, STOP_OPEN_LOOP, Check, Finding, Row, When

SETTLING = 0.5          # s of rest of the reference, in which the largest swing is that of the motion before
GROWTH = 1.25           # times that, from which it grows
LEAST = 1.5             # times the speed of standstill that a machine may have anyway
SMOOTHING = 0.05        # s


class SwingCheck(Check):
    """Stops a machine that swings more than it did when its reference came to rest, as under a law that is late."""

    rows = (Row('F41', 'swing_growing', STOP_OPEN_LOOP, 'while its reference rests, faster than in its first half '
                'second, and than 1.5 times the speed of standstill', RAMPED, 4, 0.05, event=True),)
    when = When.STATE

    def __init__(self, config, law):
        self._motion, self._names = ActuatorMotion(config.machine), config.machine.actuators
        self._least = LEAST * np.array(config.declaration.standstill_speed)
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        self._rested = 0.0                          # s for which the reference rests
        self._smooth = np.zeros(self._least.shape)  # rates
        self._largest = np.zeros(self._least.shape)

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if not inputs.under_law:
            return ()
        self._smooth += min(inputs.period / SMOOTHING, 1.0) * (self._motion.rates(inputs.x, inputs.xd) - self._smooth)
        speed = np.abs(self._smooth)
        if inputs.reference_rate.any():
            self._rested, self._largest = 0.0, speed
            return ()
        if self._rested < SETTLING:
            self._rested, self._largest = self._rested + inputs.period, np.maximum(self._largest, speed)
            return ()
        most = np.maximum(GROWTH * self._largest, self._least)
        i = int((speed / most).argmax())
        if speed[i] <= most[i]:
            return ()
        return (Finding('swing_growing', f'{self._names[i]} swings at {speed[i]:.3g} per second while its reference '
                        f'rests; at most {most[i]:.3g}'),)
