"""Measured motion beside the forces that were given: what they push must move, and what they do not push must not."""

import numpy as np

from ...kernels.control import speed_plausibility as kernels
from ...kernels.runtime.buffer import views
from .check import AT_ONCE, SAFE_OPEN_LOOP, Check, Finding, Row, When

FRICTION = 0.5          # of the friction of the model, by which that of the machine may differ from it


class MomentumCheck(Check):
    """Compares the momentum of axes at force level with the forces given, as an observer of generalised momentum does.

    Forces beyond those that carry the load and overcome friction change the speed within 0.1 s. Where the measured
    speed does not follow, or changes without a force, the position is not that of the machine, or the force is not the
    one that was given: a stuck encoder gets ever more force from a law that sees no motion. What the model lacks is
    learnt in half a second. `hold_load` then gives what holds the load, since a receiver goes on with the last command
    until its time is over.
    """

    # a force without a position to correct it makes the axis faster: no ramp
    rows = (Row('F43', 'momentum_residual', SAFE_OPEN_LOOP, 'an axis moves otherwise than the force that it is given '
                'explains', AT_ONCE, 2, 0.1, event=True),)
    when = When.COMMAND

    def __init__(self, config, law):
        forces = config.declaration.by_force
        self.required = law.model_feedback and bool(forces.any())
        if not self.required:
            return
        self._law, self._names, self._rows = law, config.machine.actuators, np.flatnonzero(forces)
        declared, axes = config.declaration, law.axes[self._rows]
        self._buffer = kernels.make_momentum(self._rows, len(law.interfaces))
        self._memory = memory = kernels.Momentum(*views(self._buffer, kernels.TYPES))
        memory.area[:], memory.friction[:] = law.area[self._rows], FRICTION * (axes['coulomb'] + axes['stribeck'])
        memory.rest[:], memory.residual[0] = declared.standstill_speed, declared.plausibility.momentum_residual
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
        axis = kernels.judge_momentum(
            self._buffer, law.effort_model(x, xd), command, inputs.xd, inputs.reference_rate, law.unknown_accelerations,
            0.0 if last is None else inputs.time - last)
        if axis == kernels.NOT_JUDGED:
            return None
        self._failing = axis >= 0
        if axis < 0:
            return () if axis == kernels.EXPLAINED else None
        change, allowed = self._memory.found[:, axis]
        return (Finding('momentum_residual', f'{self._names[self._rows[axis]]} should have changed its speed by '
                        f'{change:.3g} per second more in {kernels.HORIZON_S:g} s, by its force; at most '
                        f'{allowed:.3g}'),)

    def hold_load(self, command, x, rate):
        """Give, in place of forces that the motion contradicts, those that hold the load at x (dof,).

        rate (dof,) of the reference: what overcame friction until now stays, since seals would throw an axis back.
        """
        if self.required and self._failing:
            command[self._rows] = (self._law.holding(x) + self._law.friction(rate))[self._rows]
