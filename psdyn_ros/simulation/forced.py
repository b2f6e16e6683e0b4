"""The mechanism in time under external forces that follow its state."""

import numpy as np

from ..api.integrator import checked_settings, stop_stiffness
from ..kernels.rigid_body.floating_base import position_rate
from ..kernels.rigid_body.friction import stop_force


class ForcedIntegrator:
    """Advances a state by one step at constant effort of the actuators, the external forces new at every evaluation.

    Springs and dampers held constant over a step would put energy into the machine; here they are part of its
    differential equation, at the price that steps are Python and not one compiled call.

    manipulator         the machine
    external_forces     `ExternalForces`, or None
    step, substeps      s, and the parts that it is done in
    stiffness, damping  of the stops at the limits of actuators and coordinates, as those of `Manipulator.integrator`
    """

    def __init__(self, manipulator, external_forces, step, substeps=1, *, stiffness=5e7, damping=1.0):
        self._manipulator, self._external_forces = manipulator, external_forces
        self.step_size, self._substeps, stiffness, self._damping = checked_settings(step, substeps, stiffness, damping)
        self._stops = list(_limited(manipulator, stop_stiffness(manipulator, stiffness, step / substeps)))
        self._base, self._wrenches = None, {}

    def set_environment(self, base=None, wrenches=None):
        """Set the motion of the base (`BaseMotion`) and wrenches {link: (force, moment)} of all further steps."""
        self._base, self._wrenches = base, dict(wrenches or {})

    def step(self, x, xd, f):
        """Advance x (nx,), xd (dof,) in place under efforts f (actuators,), by Runge-Kutta of order 4; return 0.

        Raises what `Manipulator.forward_dynamics` raises, x and xd then anywhere on the way.
        """
        h = self.step_size / self._substeps
        for _ in range(self._substeps):
            self._advance(x, xd, f, h)
        return 0

    def _advance(self, x, xd, f, h):
        x_sum, xd_sum = np.zeros(x.size), np.zeros(xd.size)
        x_now, xd_now = x, xd
        for weight, ahead in ((1.0, 0.5), (2.0, 0.5), (2.0, 1.0), (1.0, 0.0)):
            rate, xdd = self.rates(x_now, xd_now, f)
            x_sum += weight * rate
            xd_sum += weight * xdd
            x_now, xd_now = x + ahead * h * rate, xd + ahead * h * xdd
        x += h / 6.0 * x_sum
        xd += h / 6.0 * xd_sum
        if self._manipulator.floating:
            x[3:7] /= np.linalg.norm(x[3:7])

    def rates(self, x, xd, f):
        """Return (dx/dt (nx,), xdd (dof,)) at a state, its external forces and stops included."""
        m = self._manipulator
        wrenches, efforts = self.applied(x, xd)
        self._stop(x, xd, efforts)
        xdd = m.forward_dynamics(x, xd, f, base=self._base, wrenches=wrenches or None, joint_efforts=efforts or None)
        rate = np.empty(m.nx)
        position_rate(x, xd, rate)
        return rate, xdd

    def applied(self, x, xd):
        """Return ({link: (force, moment)}, {joint: effort}) of environment and external forces, without stops."""
        if self._external_forces is None:
            return dict(self._wrenches), {}
        wrenches, efforts = self._external_forces(x, xd)
        for link, wrench in self._wrenches.items():
            there = wrenches.get(link, np.zeros((2, 3)))
            wrenches[link] = tuple(np.add(there, wrench))
        return wrenches, efforts

    def _stop(self, x, xd, efforts):
        """Add to the efforts {joint: effort} those of the stops beyond limits."""
        if not self._stops:
            return
        names, q, qd, _ = self._manipulator.joint_state(x, xd)
        for row, lower, upper, stiffness in self._stops:
            push = (stop_force(lower - q[row], -qd[row], stiffness, self._damping)
                    - stop_force(q[row] - upper, qd[row], stiffness, self._damping))
            if push:
                efforts[names[row]] = efforts.get(names[row], 0.0) + push


def _limited(manipulator, stiffness):
    """Yield (row in the joints, lower, upper, stiffness of stops) of every coordinate and actuator that has a limit.

    stiffness: {joint: N/m, N m/rad}
    """
    m = manipulator
    seen = set()
    for names, limits in ((m.coordinates, m.coordinate_limits), (m.actuators, m.limits)):
        for name, lower, upper in zip(names, limits.lower, limits.upper):
            if name not in seen and (np.isfinite(lower) or np.isfinite(upper)):
                seen.add(name)
                yield m.joints.index(name), float(lower), float(upper), stiffness[name]
