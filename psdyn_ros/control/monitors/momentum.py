"""Measured motion beside the forces that were given: what they push must move, and what they do not push must not."""

import numpy as np

from ...kernels.control import speed_plausibility as kernels
from ...kernels.runtime.buffer import views
from .actuator_motion import ActuatorMotion, CoordinateForces
from .check import AT_ONCE, SAFE_OPEN_LOOP, Check, Finding, Row, When

FRICTION = 0.5          # of the friction of the model, by which that of the machine may differ from it


class MomentumCheck(Check):
    """Compares the momentum of axes at force level with the forces given, as an observer of generalised momentum does.

    Forces beyond those that carry the load and overcome friction change the speed within 0.1 s. Where the measured
    speed does not follow, or changes without a force, the position is not that of the machine, or the force is not the
    one that was given: a stuck encoder gets ever more force from a law that sees no motion. What the model lacks is
    learnt in half a second. `hold_load` then gives what holds the load, for the ttl of a receiver.
    """

    # a force without a position to correct it makes the axis faster: no ramp
    rows = (Row('F43', 'momentum_residual', SAFE_OPEN_LOOP, 'an axis moves otherwise than the force that it is given '
                'explains', AT_ONCE, 2, 0.1, event=True),)
    when = When.COMMAND

    def __init__(self, config, law):
        declared, self._law, self._motion = config.declaration, law, ActuatorMotion(config.machine)
        self._efforts = efforts = CoordinateForces(config, law)
        self.required = law.model_feedback and bool(efforts.by_force.any())
        if not self.required:
            return
        self._rows = np.flatnonzero(efforts.by_force)
        self._buffer = kernels.make_momentum(self._rows, len(efforts.names))
        self._memory = memory = kernels.Momentum(*views(self._buffer, kernels.TYPES))
        memory.area[:], memory.friction[:] = efforts.area[self._rows], FRICTION * efforts.friction[self._rows]
        memory.rest[:] = declared.standstill_speed[law.rows]
        memory.residual[0] = declared.plausibility.momentum_residual
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        if not self.required:
            return
        self._failing = False                   # whether the last comparison failed
        self._last = None                       # s of the last state
        self._given, self._cycles = 0.0, 0      # sum of the commands in cycles without a new one, and their number
        self._memory.memory[:], self._memory.forces[kernels.IMPULSE] = 0.0, 0.0

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        # from state to state: a cycle may come late, and the next state without delay
        law, last = self._law, self._last
        command = inputs.command
        if inputs.time == last:
            self._given, self._cycles = self._given + command, self._cycles + 1
            return None
        if self._cycles:
            command = (self._given + command) / (self._cycles + 1)
            self._given, self._cycles = 0.0, 0
        self._last = inputs.time
        x, xd = inputs.estimated
        if x is not inputs.x:       # one that goes on for the law was not measured
            x, xd = inputs.x, inputs.xd
        if self._memory.memory[kernels.COMPARED_S] == 0.0:
            self._memory.forces[kernels.INTEGRAL] = law.corrections[1, self._rows]
        axis = kernels.judge_momentum(
            self._buffer, law.effort_model(x, xd), self._efforts.of(command, x), inputs.xd, inputs.reference_rate,
            law.unknown_accelerations, 0.0 if last is None else inputs.time - last)
        if axis == kernels.NOT_JUDGED:
            return None
        self._failing = axis >= 0
        if axis < 0:
            return () if axis == kernels.EXPLAINED else None
        change, allowed = self._memory.found[:, axis]
        name = self._efforts.names[self._rows[axis]]
        return (Finding('momentum_residual', f'{name} should have changed its speed by {change:.3g} per second more in '
                        f'{kernels.HORIZON_S:g} s, by its force; at most {allowed:.3g}'),)

    def hold_load(self, command, x, rate):
        """Give, in place of forces that the motion contradicts, those that hold the load at x (dof,).

        rate (dof,) of the reference: what overcame friction until now stays, since seals would throw an axis back. So
        does what integrals of the law have learnt: it carries what the model lacks, also at a position that is wrong.
        """
        if self.required and self._failing:
            holding = self._law.carrying(x, np.zeros_like(x), self._law.corrections[1])
            holding += self._law.friction(self._motion.rates(x, rate))
            command[self._efforts.actuators] = holding[self._efforts.actuators]
