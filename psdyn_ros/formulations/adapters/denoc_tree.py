"""
An open tree by the decoupled natural orthogonal complement: t = N_l N_d thetadot, no joint is passive.

Conventions of `formulations.denoc`: twist (w, v) of the body origin, wrench (n, f), axes of the ground.  N_l has the
block A_ij where body j carries body i, N_d the joint twists p_i on its diagonal.
"""
import numpy as np

from ..denoc import mass_matrix, transport
from ..screws import hat
from .mechanism import DoesNotApply


class Tree:
    """Inverse and forward dynamics of a `Mechanism` on a fixed base without closures."""

    def __init__(self, mechanism, posture):
        m = self.mechanism = mechanism
        if m.floating is not None:
            raise DoesNotApply('the base floats')
        # joint j carries body `carried[j]`; coordinates may come in another order than joints
        self.carried = [i for i, _ in m.hinges]
        self.order = m.independent

    def inverse(self, posture, xd, xdd, wrenches):
        """Return the force (dof,) on the coordinates, N_d' N_l' (M tdot + W M E t) and losses less wrenches."""
        m, (N_l, N_d, M) = self.mechanism, self._factors(posture)
        u, acceleration = np.zeros(m.nv), np.zeros(m.nv)
        u[self.order], acceleration[self.order] = xd, xdd
        t = (N_l @ N_d @ u).reshape(-1, 6)
        tdot = (N_l @ (N_d @ acceleration + self._velocity_products(posture, N_d, t, u))).reshape(-1, 6)
        gravity = np.concatenate((np.zeros(3), m.gravity))
        wrench = np.zeros_like(t)
        for w, M_i, t_i, tdot_i in zip(wrench, M, t, tdot):
            spin, momentum = hat(t_i[:3]), M_i[:, :3] @ t_i[:3]
            w[:] = M_i @ (tdot_i - gravity) + np.concatenate((spin @ momentum[:3], spin @ momentum[3:]))
        force = N_d.T @ N_l.T @ wrench.ravel() + m.friction(posture, u) - m.external(posture, wrenches)
        return force[self.order]

    def forward(self, posture, xd, f, wrenches):
        """Return xdd (dof,) under efforts f (actuators,)."""
        force = self.mechanism.actuation(posture).T @ f
        return np.linalg.solve(self.mass_matrix(posture), force - self.inverse(posture, xd, 0 * xd, wrenches))

    def mass_matrix(self, posture):
        """Return the generalised inertia matrix N' M N (dof, dof)."""
        N_l, N_d, M = self._factors(posture)
        N = N_l @ N_d
        blocks = N.reshape(len(M), 6, -1)
        return np.einsum('iak,iab,ibl->kl', blocks, M, blocks)[np.ix_(self.order, self.order)]

    def _factors(self, posture):
        """Return N_l (6 n, 6 n), N_d (6 n, n) and M (n, 6, 6) of the bodies in the order of the joints."""
        m, n = self.mechanism, len(self.carried)
        N_l, N_d, M = np.eye(6 * n), np.zeros((6 * n, n)), np.zeros((n, 6, 6))
        for row, (i, joint) in enumerate(m.hinges):
            body, R = m.bodies[i], posture.R[i]
            M[row] = mass_matrix(body.mass, R @ body.center, R @ body.inertia @ R.T)
            N_d[6 * row + 3 * (joint.type == 'prismatic'):][:3, row] = R @ joint.axis
            if body.parent > 0:
                above = self.carried.index(body.parent)
                A = transport(posture.p[body.parent] - posture.p[i])
                N_l[6 * row:6 * row + 6, :6 * row] = A @ N_l[6 * above:6 * above + 6, :6 * row]
        return N_l, N_d, M

    def _velocity_products(self, posture, N_d, t, u):
        """Return Adot t_parent + pdot thetadot (6 n,)."""
        products = np.zeros_like(t)
        for row, (i, _) in enumerate(self.mechanism.hinges):
            p, parent = N_d[6 * row:6 * row + 6, row], self.mechanism.bodies[i].parent
            before = t[self.carried.index(parent)] if parent > 0 else np.zeros(6)
            spin = hat(t[row][:3])
            products[row] = np.concatenate((spin @ p[:3], spin @ p[3:])) * u[row]
            products[row, 3:] += hat(before[3:] - t[row][3:]) @ before[:3]
        return products.ravel()
