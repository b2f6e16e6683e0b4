"""
Any mechanism by the natural orthogonal complement: equations of `formulations.noc` with T_i from the closures.

T_i = J_i G is the twist (w, cdot) of body i about its mass centre over the independent rates; its rate is a complex
step along the motion of the mechanism.
"""
import numpy as np

from .. import noc
from .mechanism import STEP


class NaturalOrthogonalComplement:
    """Inverse and forward dynamics of a `Mechanism`; it applies to every machine."""

    def __init__(self, mechanism, posture):
        self.mechanism = mechanism
        self.massive = [i for i, body in enumerate(mechanism.bodies) if body.mass or body.inertia.any()]
        self.masses = np.array([mechanism.bodies[i].mass for i in self.massive])

    def inverse(self, posture, xd, xdd, wrenches):
        """Return the force (dof,) on the coordinates: I xdd + C xd - gamma, plus losses, less external wrenches."""
        return self.mass_matrix(posture) @ xdd + self._bias(posture, xd, wrenches)

    def forward(self, posture, xd, f, wrenches):
        """Return xdd (dof,) under efforts f (actuators,)."""
        force = self.mechanism.actuation(posture).T @ f - self._bias(posture, xd, wrenches)
        return np.linalg.solve(self.mass_matrix(posture), force)

    def distribute(self, posture, force, weights=None):
        """Return the efforts (actuators,) of smallest weighted norm that act as the joints' part of force (dof,)."""
        free = self.mechanism.free
        return noc.minimum_norm(self.mechanism.actuation(posture)[:, free:], force[free:], weights)

    def mass_matrix(self, posture):
        """Return I (dof, dof)."""
        return noc.project_inertia(self._twist_shaping_matrices(posture), self._mass_matrices(posture))

    def _bias(self, posture, xd, wrenches):
        m, u = self.mechanism, posture.G @ xd
        T = self._twist_shaping_matrices(posture)
        T_dot = self._twist_shaping_matrices(m.moved(posture, u)).imag / STEP
        C = noc.project_coriolis(T, T_dot, self._mass_matrices(posture), xd)
        return (C @ xd - noc.project_weight(T, self.masses, m.gravity)
                + posture.G.T @ (m.friction(posture, u) - m.external(posture, wrenches)))

    def _twist_shaping_matrices(self, posture):
        m = self.mechanism
        return np.array([m.twist_map(posture, i, posture.p[i] + posture.R[i] @ m.bodies[i].center) @ posture.G
                         for i in self.massive])

    def _mass_matrices(self, posture):
        M = np.zeros((len(self.massive), 6, 6))
        for M_i, i in zip(M, self.massive):
            M_i[:3, :3] = posture.R[i] @ self.mechanism.bodies[i].inertia @ posture.R[i].T
            M_i[3:, 3:] = self.mechanism.bodies[i].mass * np.eye(3)
        return M
