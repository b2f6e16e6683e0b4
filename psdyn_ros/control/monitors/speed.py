"""Measured speed beside the rated one and that of the reference; and whether a stop slows down."""

import numpy as np

from .actuator_motion import ActuatorMotion
from .check import AT_ONCE, RAMPED, SAFE_OPEN_LOOP, STOP_OPEN_LOOP, Check, Finding, Row, State, When

IN_A_ROW = 3                # states
APART = 0.05                # s off the speed of the reference: static friction lets go in less
RESTING = 0.5               # s of rest of machine and reference, from which on both have to rest
AT_REST = 1.5               # times the speed of standstill that the machine may have then, as where static friction
                            # lets go; half of that is rest
STANDING = 0.05             # s over which that speed is smoothed
STANDS = 0.1                # share of the rated speed that a stop may add, and ends with
SMOOTHING = 0.05            # s of the speed of a stop: the machine swings on its oil
FASTER = 1.1                # times the speed at its beginning that a stop may have
REACTION = 0.1              # s until a stop slows down
SLOWING = 0.5               # of the declared deceleration that is demanded on the average


class SpeedCheck(Check):
    """Stops an actuator that moves faster than it is rated for, or off the speed of its reference."""

    rows = (
        Row('F41', 'overspeed', STOP_OPEN_LOOP, 'faster than the declared share of the rated speed', RAMPED, 4,
            event=True),
        Row('F41', 'speed_error', STOP_OPEN_LOOP, 'farther from the speed of the reference than is declared, for 50 ms',
            RAMPED, 2, 0.05, event=True),
        Row('F41', 'not_standing', STOP_OPEN_LOOP, 'faster than 1.5 times the speed of standstill, after machine and '
            'reference were at rest for half a second', RAMPED, 4, 0.05, event=True),
    )
    when = When.STATE

    def __init__(self, config, law):
        declared, m = config.declaration.plausibility, config.machine
        self._motion, self._names = ActuatorMotion(m), m.actuators
        rated = np.array(m.limits.velocity, dtype=float)
        self._fastest = declared.overspeed * np.where(rated > 0.0, rated, np.inf)
        self._off = declared.speed_share * np.where(rated > 0.0, rated, np.inf)
        self._standing = AT_REST * np.array(config.declaration.standstill_speed)
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        self._fast = self._wrong = 0            # states in a row
        self._rested = 0.0                      # s at rest in a row; what swings after a motion does not count
        self._smooth = np.zeros(self._off.shape)        # rates in the meantime

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if not inputs.under_law:
            return ()
        rates, desired = self._motion.rates(inputs.x, inputs.xd), self._motion.rates(inputs.x, inputs.reference_rate)
        off = np.abs(rates - desired) / self._off
        i, k = int((np.abs(rates) / self._fastest).argmax()), int(off.argmax())
        self._fast = self._fast + 1 if abs(rates[i]) > self._fastest[i] else 0
        self._wrong = self._wrong + 1 if off[k] > 1.0 else 0
        if self._fast >= IN_A_ROW:
            return (Finding('overspeed', f'{self._names[i]} moves at {rates[i]:.3g} per second, at most '
                            f'{self._fastest[i]:.3g}'),)
        if self._wrong * inputs.period >= APART and inputs.state is not State.STOPPING:
            return (Finding('speed_error', f'{self._names[k]} moves at {rates[k]:.3g} per second, its reference at '
                            f'{desired[k]:.3g}; at most {self._off[k]:.3g} apart'),)
        return self._stands(inputs, rates, desired)

    def _stands(self, inputs, rates, desired):
        """Return the `Finding` of an actuator that moves while its reference rests."""
        self._smooth += min(inputs.period / STANDING, 1.0) * (rates - self._smooth)
        share = np.abs(self._smooth) / self._standing
        i = int(share.argmax())
        if desired.any():
            self._rested = 0.0
        elif self._rested < RESTING:
            self._rested = self._rested + inputs.period if share[i] < 0.5 else 0.0
        if self._rested < RESTING or share[i] <= 1.0:
            return ()
        return (Finding('not_standing', f'{self._names[i]} moves at {self._smooth[i]:.3g} per second while its '
                        f'reference rests; at most {self._standing[i]:.3g}'),)


class StopCheck(Check):
    """Watches a stop: under a law that does not slow down it becomes a ramp, and a ramp that does not is cut off.

    A ramp is judged only where it began for that reason: else the measured state cannot be trusted.
    """

    rows = (
        Row('F42', 'stop_failing', STOP_OPEN_LOOP, 'a stop under the law that does not slow down as declared', RAMPED,
            2, 0.1, event=True),
        Row('F42', 'ramp_failing', SAFE_OPEN_LOOP, 'a ramp, after such a stop, that does not slow down', AT_ONCE, 2,
            0.5, event=True),
    )
    when = When.STATE

    def __init__(self, config, law):
        m = config.machine
        self._motion, self._names = ActuatorMotion(m), m.actuators
        self._deceleration = SLOWING * np.array(config.declaration.deceleration)
        self._stands = STANDS * np.array(m.limits.velocity, dtype=float)
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        self._began = None          # ns of the stop; and |speed| (actuators,) then
        self._speed = self._rates = None        # the latter smoothed
        self._failing = False       # whether the law has failed to stop
        self._off = 0               # states in a row

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if inputs.state is not State.STOPPING or not (inputs.under_law or self._failing):
            self._began = None
            return ()
        rates = self._motion.rates(inputs.x, inputs.xd)
        if self._began is None:
            self._began, self._speed, self._rates = inputs.clock, np.abs(rates), np.array(rates)
        self._rates += min(inputs.period / SMOOTHING, 1.0) * (rates - self._rates)
        speed = np.abs(self._rates)
        slowing = max(1e-9 * (inputs.clock - self._began) - REACTION, 0.0) * self._deceleration
        most = np.maximum(np.maximum(FASTER * self._speed, self._speed + self._stands) - slowing, self._stands)
        i = int((speed / most).argmax())
        self._off = self._off + 1 if speed[i] > most[i] else 0
        if self._off < IN_A_ROW:
            return ()
        name = 'ramp_failing' if self._failing else 'stop_failing'
        self._failing, self._began, self._off = True, None, 0
        return (Finding(name, f'{self._names[i]} moves at {speed[i]:.3g} per second, {self._speed[i]:.3g} at the '
                        f'beginning of the stop; expected {most[i]:.3g} by now'),)
