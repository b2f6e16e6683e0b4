"""Measured motion beside the forces that were given: what they push must move, and what they do not push must not."""

import math

import numpy as np

from ...kernels.hydraulics.friction import sliding_friction
from ...model.parameters.safety import EFFORT, PRESSURE
from .check import AT_ONCE, SAFE_OPEN_LOOP, Check, Finding, Row, When

HORIZON = 0.1           # s over which forces and speeds are compared
STEP = 0.01             # s between two comparisons
LEARNING = 0.5          # s in which what the model lacks is learnt, where reference and machine stand
FORGETTING = 2.0        # s of the same in motion
FRICTION = 0.5          # of the friction of the model, by which that of the machine may differ from it
LONGEST_STEP = 0.1      # s between two cycles, else the comparison begins again


class MomentumCheck(Check):
    """Compares the momentum of axes at force level with the forces given, as an observer of generalised momentum does.

    Forces beyond those that carry the load and overcome friction change the speed within `HORIZON`. Where the measured
    speed does not follow, or changes without a force, the position is not that of the machine, or the force is not the
    one that was given: a stuck encoder gets ever more force from a law that sees no motion. What the model lacks is
    learnt where reference and machine stand, and slowly in motion. `hold_load` then gives what holds the load, since a
    receiver goes on with the last command until its time is over.
    """

    # a force without a position to correct it makes the axis faster: no ramp
    rows = (Row('F43', 'momentum_residual', SAFE_OPEN_LOOP, 'an axis moves otherwise than the force that it is given '
                'explains', AT_ONCE, 2, 0.1, event=True),)
    when = When.COMMAND

    def __init__(self, config, law):
        forces = np.isin(law.tiers, (EFFORT, PRESSURE))
        self.required = law.model_feedback and bool(forces.any())
        if not self.required:
            return
        self._law, self._names, self._rows = law, config.machine.actuators, np.flatnonzero(forces)
        self._own, self._places = np.ix_(self._rows, self._rows), self._rows.tolist()
        declared = config.declaration
        self._residual = declared.plausibility.momentum_residual
        self._rest = np.array(declared.standstill_speed)
        axes = law.axes[self._rows]
        self._friction = FRICTION * (axes['coulomb'] + axes['stribeck'])
        self._area, n = law.area[self._rows], len(law.tiers)
        self._efforts, self._inertia = np.zeros(n), np.zeros((n, n))
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        if not self.required:
            return
        self._failing = False                   # whether the last comparison failed
        self._last = None                       # ns of the last cycle
        self._waited = 0.0                      # s since the last comparison
        self._impulse = [0.0] * len(self._places)       # command times s since then
        self._speed = self._model = None        # (dof,) and forces (rows,) of the model at the last comparison
        self._off = self._lack = None           # forces beyond what moved, smoothed over `HORIZON`; and learnt

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        dt = 0.0 if self._last is None else 1e-9 * (inputs.clock - self._last)
        command = inputs.command.tolist()       # of so few numbers quicker than NumPy
        given = [command[row] for row in self._places]
        if not 0.0 <= dt <= LONGEST_STEP or not math.isfinite(sum(given)):
            self.restart()
            dt = 0.0
        self._last = inputs.clock
        if dt:
            self._waited += dt
            self._impulse = [impulse + dt * force for impulse, force in zip(self._impulse, given)]
        if self._waited < STEP:
            return None
        excess, self._waited, waited = np.array(self._impulse) / self._waited, 0.0, self._waited
        self._impulse = [0.0] * len(given)
        return self._compare(inputs, excess, waited)

    def hold_load(self, command, x):
        """Give, in place of forces that the motion contradicts, those that hold the load at x (dof,)."""
        if self.required and self._failing:
            command[self._rows] = self._law.holding(x)[self._rows]

    def _compare(self, inputs, given, dt):
        """Return the findings of the forces (rows,) that were given for dt [s] until now."""
        law, inertia = self._law, self._inertia
        law.effort_model(inputs.x, inputs.xd, self._efforts, inertia)
        friction = [sliding_friction(*each) for each in zip(law.axes, law.desired[1])]
        model, speed = (self._efforts + friction)[self._rows], inputs.xd.copy()
        if self._speed is None:
            self._speed, self._model = speed, model
            self._off = given * self._area - model
            self._lack = self._off.copy()
        # forces of the model change on the way
        excess = given * self._area - 0.5 * (self._model + model) - inertia[self._rows] @ (speed - self._speed) / dt
        self._speed, self._model = speed, model
        self._off += min(dt / HORIZON, 1.0) * (excess - self._off)
        off = self._off
        stands = not inputs.reference_rate.any() and (np.abs(speed) < self._rest).all()
        self._lack += min(dt / (LEARNING if stands else FORGETTING), 1.0) * (off - self._lack)
        own = inertia[self._own]
        unexplained = HORIZON * np.linalg.solve(own, off - self._lack)
        allowed = self._residual + HORIZON * (self._friction / np.diag(own) + law.unknown_accelerations[self._rows])
        i = int((np.abs(unexplained) / allowed).argmax())
        self._failing = not abs(unexplained[i]) <= allowed[i]
        if not self._failing:
            return ()
        return (Finding('momentum_residual', f'{self._names[self._rows[i]]} should have changed its speed by '
                        f'{unexplained[i]:.3g} per second more in {HORIZON:g} s, by its force; at most '
                        f'{allowed[i]:.3g}'),)
