"""Control laws at force level: measured state of the coordinates in, actuator forces out.

    computed torque        f = ID(x, xd, xdd_ref + Kd ed + Kp e)
    PD, constant gravity   f = f_g(x0) + diag(M(x0)) (Kp e + Kd ed)      with x0 the position held first

e = x_ref - x and ed = xd_ref - xd. With an exact model the first makes the error of every coordinate a
decoupled second-order system; the second is the baseline it is compared with, and a weak one: the diagonal of
M overstates the mass that a coupled actuator feels. Where there are more actuators than coordinates, the efforts
are those of least norm among the ones that do the same to the coordinates.
"""

import numpy as np

from ..api.allocation import Allocation
from ..kernels import control
from ..model.errors import ActuationError, NonFiniteError
from .reference import ReferenceMotion


class ControlLaw:
    """What both laws share: the reference, the gains, and the limits of the actuators.

    manipulator   with at least as many actuators as coordinates; ActuationError where it has fewer
    stiffness     (dof,) Kp, 1/s^2
    damping       (dof,) Kd, 1/s
    """

    def __init__(self, manipulator, stiffness, damping):
        check_actuation(manipulator)
        self.manipulator = manipulator
        self.reference = ReferenceMotion(manipulator)
        self.desired = None         # (x, xd, xdd) of the reference at the last update
        # (actuators,) cycles in which a force was clamped
        self.saturations = np.zeros(len(manipulator.actuators), dtype=np.int64)
        self.set_gains(stiffness, damping)
        self._limit = np.array(manipulator.limits.effort, dtype=float)
        self._records = manipulator.records
        self._general = manipulator.machine.general
        self._sharing = None        # of the load among redundant actuators of which one is at its limit
        if len(manipulator.actuators) > manipulator.dof:
            self._sharing = Allocation(manipulator.actuators, dict(zip(manipulator.actuators, self._limit)),
                                       dict(zip(manipulator.actuators, manipulator.allocation.weights)))

    def hold(self, x):
        """Hold the position x (dof,) from here on and forget every trajectory."""
        self.reference.hold(x)

    def set_gains(self, stiffness, damping):
        """Kp (dof,) and Kd (dof,) from the next update on."""
        self._kp, self._kd = np.array(stiffness, dtype=float), np.array(damping, dtype=float)

    def update(self, t, x, xd):
        """Forces f (actuators,) for the state x (dof,), xd (dof,) measured at time t.

        Without a reference the first position measured is held. Forces are clamped to the limits of the actuators.
        """
        if not self.reference.started:
            self.reference.hold(x)
        self.desired = self.reference.sample(t)
        return self._force(x, xd, *self.desired)

    def _force(self, x, xd, x_ref, xd_ref, xdd_ref):
        """Forces (actuators,), clamped."""
        raise NotImplementedError

    def _within_limits(self, x, force):
        """The force (actuators,), or what within the limits comes nearest to doing the same to the coordinates."""
        if self._sharing and np.isfinite(force).all() and (np.abs(force) > self._limit).any():
            A = self.manipulator.actuator_map(x)
            shared = self._sharing.share(A, A.T @ force)
            self.saturations += [name in shared.at_limit for name in self.manipulator.actuators]
            return shared.efforts
        if control.clamp(force, self._limit, self.saturations) != 0:
            raise NonFiniteError(f'the control law gives forces that are not finite: {force.tolist()}')
        return force


class ComputedTorque(ControlLaw):
    """Inverse dynamics of the reference acceleration plus the feedback."""

    def _force(self, x, xd, x_ref, xd_ref, xdd_ref):
        if self._general:
            wanted = xdd_ref + self._kd * (xd_ref - xd) + self._kp * (x_ref - x)
            return self._within_limits(x, self.manipulator.inverse_dynamics(x, xd, wanted))
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
            still = np.zeros(x.size)
            self._gravity = self.manipulator.generalized_forces(x, still, still)
            self._mass = np.diag(self.manipulator.mass_matrix(x)).copy()
        force = self._gravity + self._mass * (self._kp * (x_ref - x) + self._kd * (xd_ref - xd))
        if self._general:
            force = self.manipulator.allocation.share(self.manipulator.actuator_map(x), force).efforts
        return self._within_limits(x, force)


LAWS = {'computed_torque': ComputedTorque, 'pd_gravity': PdGravity}


def check_actuation(manipulator):
    """Raise ActuationError where some coordinate of a machine is beyond its actuators."""
    m = manipulator
    if m.floating:
        raise ActuationError(f"'{m.name}' cannot be controlled: its base floats and nothing drives it; expected a "
                             'machine that stands on its root link')
    if len(m.actuators) < m.dof:
        raise ActuationError(
            f"'{m.name}' cannot be controlled: it has {len(m.actuators)} actuators "
            f"({', '.join(m.actuators) or 'none'}) "
            f"for {m.dof} degrees of freedom ({', '.join(m.coordinates)}); expected at least {m.dof}, joints with a "
            'command interface in <ros2_control>')
