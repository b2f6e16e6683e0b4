"""Control laws at force level: measured state of the actuators in, actuator forces out.

    computed torque        f = ID(x, xd, xdd_ref + Kd ed + Kp e)
    PD, constant gravity   f = f_g(x0) + diag(M(x0)) (Kp e + Kd ed)      with x0 the position held first

e = x_ref - x and ed = xd_ref - xd. With an exact model the first makes the error of every actuator a
decoupled second-order system; the second is the baseline it is compared with, and a weak one: the diagonal of
M overstates the mass that a coupled actuator feels.
"""

import numpy as np

from ..kernels import control
from ..model.errors import NonFiniteError
from .reference import ReferenceMotion


class ControlLaw:
    """What both laws share: the reference, the gains, and the limits of the actuators.

    manipulator   with n = dof actuators
    stiffness     (n,) Kp, 1/s^2
    damping       (n,) Kd, 1/s
    """

    def __init__(self, manipulator, stiffness, damping):
        self.manipulator = manipulator
        self.reference = ReferenceMotion(manipulator)
        self.desired = None         # (x, xd, xdd) of the reference at the last update
        self.saturations = np.zeros(manipulator.dof, dtype=np.int64)    # cycles in which a force was clamped
        self.set_gains(stiffness, damping)
        self._limit = np.array(manipulator.limits.effort, dtype=float)
        self._records = manipulator.records

    def set_gains(self, stiffness, damping):
        """Kp (n,) and Kd (n,) from the next update on."""
        self._kp, self._kd = np.array(stiffness, dtype=float), np.array(damping, dtype=float)

    def update(self, t, x, xd):
        """Forces f (n,) for the state x (n,), xd (n,) measured at time t.

        Without a reference the first position measured is held. Forces are clamped to the limits of the actuators.
        """
        if not self.reference.started:
            self.reference.hold(x)
        self.desired = self.reference.sample(t)
        return self._force(x, xd, *self.desired)

    def _force(self, x, xd, x_ref, xd_ref, xdd_ref):
        """Forces (n,), clamped."""
        raise NotImplementedError


class ComputedTorque(ControlLaw):
    """Inverse dynamics of the reference acceleration plus the feedback."""

    def _force(self, x, xd, x_ref, xd_ref, xdd_ref):
        xdd, force = np.empty(x.size), np.empty(x.size)
        status = control.computed_torque(*self._records, x, xd, x_ref, xd_ref, xdd_ref, self._kp, self._kd,
                                         self._limit, self.saturations, xdd, force)
        if status != 0:
            self.manipulator.inverse_dynamics(x, xd, xdd)       # raises, and says why
            raise NonFiniteError(f'computed torque gives forces that are not finite: {force.tolist()}')
        return force


class PdGravity(ControlLaw):
    """PD feedback scaled by the diagonal of the mass matrix, plus gravity, both frozen at the first position."""

    def __init__(self, manipulator, stiffness, damping):
        super().__init__(manipulator, stiffness, damping)
        self._gravity = self._mass = None

    def _force(self, x, xd, x_ref, xd_ref, xdd_ref):
        if self._gravity is None:
            self._gravity = self.manipulator.gravity_forces(x)
            self._mass = np.diag(self.manipulator.mass_matrix(x)).copy()
        force = self._gravity + self._mass * (self._kp * (x_ref - x) + self._kd * (xd_ref - xd))
        if control.clamp(force, self._limit, self.saturations) != 0:
            raise NonFiniteError(f'PD with constant gravity gives forces that are not finite: {force.tolist()}')
        return force


LAWS = {'computed_torque': ComputedTorque, 'pd_gravity': PdGravity}
