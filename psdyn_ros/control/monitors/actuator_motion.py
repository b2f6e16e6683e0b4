"""Positions and rates of actuators, and commands near their end stops."""

import numpy as np

from ...kernels.control import plausibility as kernels
from .check import Check, Finding, When, warning


class ActuatorMotion:
    """Reads the motion of the actuators of a manipulator from that of its coordinates."""

    def __init__(self, manipulator):
        self._manipulator = manipulator
        self.columns = None     # of the actuators among the joints, where they are not the coordinates
        if manipulator.actuators != manipulator.coordinates:
            self.columns = [manipulator.joints.index(name) for name in manipulator.actuators]

    def read(self, x, xd):
        """Positions and rates, each (actuators,), at x, xd (dof,)."""
        if self.columns is None:
            return x, xd
        _, positions, rates, _ = self._manipulator.joint_state(x, xd)
        return positions[self.columns], rates[self.columns]

    def positions(self, x):
        """Positions (actuators,) at x (dof,)."""
        return x if self.columns is None else self._manipulator.joint_state(x)[1][self.columns]

    def rates(self, x, xd):
        """Rates (actuators,) at x, xd (dof,)."""
        return xd if self.columns is None else self._manipulator.joint_state(x, xd)[2][self.columns]


class CoordinateForces:
    """Commands of the actuators at force level as efforts on the coordinates, which each have an actuator.

    names, by_force   (dof,) of the coordinates; whether such actuators alone drive them
    actuators         (actuators,) whether they are at force level
    limit, friction   (dof,) largest efforts, and those that overcome friction [N, N m], at the initial position
    area              (dof,) m^2 of the piston where `of` gives a pressure, else 1
    """

    def __init__(self, config, law):
        m, self.actuators, self._law = config.machine, config.declaration.by_force, law
        self.names, self.mapped, self._map = m.coordinates, m.actuators != m.coordinates, m.actuator_map
        self.by_force, self.area, self.limit = self.actuators, law.area, config.declaration.command_limit
        self.friction = law.axes['coulomb'] + law.axes['stribeck']
        if self.mapped:
            A = np.abs(m.actuator_map(m.initial_position))
            self.by_force, self.area = ~(A[~self.actuators] > 0.0).any(axis=0), np.ones(m.dof)
            self.limit, self.friction = A.T @ (law.area * self.limit), A.T @ self.friction

    def of(self, command, x):
        """Efforts (dof,) of a command (actuators,) at x (dof,); where actuators are the coordinates, the command."""
        if not self.mapped:
            return command
        rows = self.actuators
        return self._map(x)[rows].T @ (self._law.area * command)[rows]

    def replace(self, command, x, efforts):
        """Let the command give these efforts (dof,) in place of others, as the law would share them."""
        rows = self.actuators
        command[rows] = (self._law.load.of_actuators(x, efforts) / self._law.area)[rows]


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
        actuators that are clamped there, or whose last command was beyond its limit, are held.
        """
        if self._clamps is None:
            self._clamps, self._clamped = gate.range_clamps, gate.clamped
        position = self._motion.positions(x)
        if self._motion.columns is not None:
            near = ((position < self._lower + self._margin) | (position > self._upper - self._margin)).any()
        self._softened = clamped = False
        if near:
            asked = command.copy()
            rate = self._motion.rates(x, xd)
            room = np.maximum(np.where(rate > 0.0, self._upper - position, position - self._lower), 0.0)
            most = np.where(rate * rate > 2.0 * self._deceleration * room, 0.0, self._most)
            self._softened = bool(kernels.clamp_outward(
                command, position, self._lower, self._upper, self._margin, self._law.holding(x), most, self._within))
            clamped = command != asked
        if self._softened or gate.clamped != self._clamped:
            clamps = gate.range_clamps
            frozen = np.array([count > last for count, last in zip(clamps, self._clamps)])
            self._law.freeze(frozen | clamped)
            self._clamps, self._clamped, self._frozen = clamps, gate.clamped, True
        elif self._frozen:
            self._law.freeze(False)
            self._frozen = False

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        return (Finding('end_stop', 'a command towards an end stop is clamped'),) if self._softened else ()
