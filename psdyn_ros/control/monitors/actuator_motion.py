"""Positions and rates of actuators: commands near end stops, overspeed, and stops that do not slow down."""

import numpy as np

from ...kernels.control import plausibility as kernels
from .check import AT_ONCE, RAMPED, SAFE_OPEN_LOOP, STOP_OPEN_LOOP, Check, Finding, Row, State, When, warning

IN_A_ROW = 3                # states
APART = 0.05                # s off the speed of the reference: static friction lets go in less
STANDS = 0.1                # share of the rated speed that a stop may add, and ends with
SMOOTHING = 0.05            # s of the speed of a stop: the machine swings on its oil
FASTER = 1.1                # times the speed at its beginning that a stop may have
REACTION = 0.1              # s until a stop slows down
SLOWING = 0.5               # of the declared deceleration that is demanded on the average


class ActuatorMotion:
    """Reads the motion of the actuators of a manipulator from that of its coordinates."""

    def __init__(self, manipulator):
        self._manipulator = manipulator
        self.columns = None     # of the actuators among the joints, where they are not the coordinates
        if manipulator.actuators != manipulator.coordinates:
            self.columns = [manipulator.joints.index(name) for name in manipulator.actuators]

    def positions(self, x):
        """Positions (actuators,) at x (dof,)."""
        return x if self.columns is None else self._manipulator.joint_state(x)[1][self.columns]

    def rates(self, x, xd):
        """Rates (actuators,) at x, xd (dof,)."""
        return xd if self.columns is None else self._manipulator.joint_state(x, xd)[2][self.columns]


class EndStopCheck(Check):
    """Clamps commands in place by `soften`, and reports that it did."""

    rows = (warning('F14', 'end_stop', 'a position in the soft margin of its limits', 'commands outward are clamped'),)
    when = When.COMMAND

    def __init__(self, config, law):
        declaration, limits = config.declaration, config.machine.limits
        self._law, self._motion = law, ActuatorMotion(config.machine)
        self._lower, self._upper = np.array(limits.lower, float), np.array(limits.upper, float)
        self._margin = np.maximum(declaration.soft_margin, 1e-9)
        # of arrays that may not be written the kernels would have to be compiled once more
        self._most, self._deceleration = np.array(declaration.command_limit), np.array(declaration.deceleration)
        self._within = np.zeros(len(config.machine.actuators), dtype=np.int64)
        self._frozen = False            # whether integrals of the law are held
        self._clamps, self._clamped = None, 0       # of the gate until the last cycle: of each actuator, and of all
        self._softened = False

    def restart(self):
        """As `Check.restart`."""
        self._clamps = None
        if self._frozen:
            self._law.freeze(False)
            self._frozen = False

    def soften(self, gate, command, x, xd, near):
        """Clamp in place what of a command (actuators,) pushes outward near an end stop; near: whether x may be.

        gate: the `OutputGate` that the commands pass. Outward goes what the share of the margin that is left allows,
        and nothing where the declared deceleration can no longer stop the actuator before its limit. The integrals of
        actuators that are there, or whose last command was beyond its limit, are held.
        """
        if self._clamps is None:
            self._clamps, self._clamped = gate.range_clamps, gate.clamped
        position = self._motion.positions(x)
        if self._motion.columns is not None:
            near = ((position < self._lower + self._margin) | (position > self._upper - self._margin)).any()
        self._softened = False
        if near:
            rate = self._motion.rates(x, xd)
            room = np.maximum(np.where(rate > 0.0, self._upper - position, position - self._lower), 0.0)
            most = np.where(rate * rate > 2.0 * self._deceleration * room, 0.0, self._most)
            self._softened = bool(kernels.clamp_outward(
                command, position, self._lower, self._upper, self._margin, self._law.holding(x), most, self._within))
            near = bool(self._within.any())
        if near or gate.clamped != self._clamped:
            clamps = gate.range_clamps
            frozen = np.array([count > last for count, last in zip(clamps, self._clamps)])
            self._law.freeze(frozen | (self._within > 0) if near else frozen)
            self._clamps, self._clamped, self._frozen = clamps, gate.clamped, True
        elif self._frozen:
            self._law.freeze(False)
            self._frozen = False

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        return (Finding('end_stop', 'a command towards an end stop is clamped'),) if self._softened else ()


class SpeedCheck(Check):
    """Stops an actuator that moves faster than it is rated for, or off the speed of its reference."""

    rows = (
        Row('F41', 'overspeed', STOP_OPEN_LOOP, 'faster than the declared share of the rated speed', RAMPED, 4,
            event=True),
        Row('F41', 'speed_error', STOP_OPEN_LOOP, 'farther from the speed of the reference than is declared, for 50 ms',
            RAMPED, 2, 0.05, event=True),
    )
    when = When.STATE

    def __init__(self, config, law):
        declared, m = config.declaration.plausibility, config.machine
        self._motion, self._names = ActuatorMotion(m), m.actuators
        rated = np.array(m.limits.velocity, dtype=float)
        self._fastest = declared.overspeed * np.where(rated > 0.0, rated, np.inf)
        self._off = declared.speed_share * np.where(rated > 0.0, rated, np.inf)
        self._fast = self._wrong = 0            # states in a row

    def restart(self):
        """As `Check.restart`."""
        self._fast = self._wrong = 0

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
        return ()


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
