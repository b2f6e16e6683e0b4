"""
The loop closure: a body A cut at C into A_l and A_r, held together by stiffness and damping.

    W_Ar/Al,C = K dx + D dx',    W_Al/Ar,C = -W_Ar/Al,C,    dm = m_C^Ar - m_C^Al projected on axes of A_l

It approximates the rigid loop with an error proportional to 1 / K, and makes the machine stiff to integrate.

Source: D. Alazard, F. Sanfedino, E. Kassarian, non-linear TITOP model of rigid multibody systems, block of loop closure
(with the sign that attracts).
"""
from typing import NamedTuple

import numpy as np

from .checks import block_name, dual_matrix, rotation_matrix
from .dual_vectors import dual_rotation, rotation_vector, tau
from .rigid_blocks import PARALLEL


class Gap(NamedTuple):
    """Motion of A_r relative to A_l, in axes of A_l, both taken at the point C of A_r."""

    position: np.ndarray
    """dx (6,): from C of A_l to C of A_r [m], and the rotation vector from the axes of A_l to those of A_r."""
    rate: np.ndarray
    """dx' (6,) [m/s, rad/s]; its linear part is the rate of dx."""
    X: np.ndarray
    """(6, 6), twist of A_l at its C to the point C of A_r, in axes of A_l."""
    P: np.ndarray
    """P_rl (3, 3), the axes of A_r in those of A_l."""


class LoopClosure:
    """
    A compliant weld between port C of two bodies, connected to its ports 'l' and 'r'.

    stiffness K and damping D (6, 6): from (m, rad) and their rates to (N, N m), in axes of A_l; symmetric;
    orientation: the axes of A_r in those of A_l (3, 3) where the closure is relaxed.

    Both wrenches act at one point, the C of A_r, so that the pair is internal however far the gap opens: it
    changes neither momentum nor, with D = 0 and a rotational K = k 1, energy.
    """

    ports = ('l', 'r')

    def __init__(self, name, stiffness, damping, orientation=PARALLEL):
        self.name = block_name(name)
        self.K = dual_matrix(f"stiffness of '{name}'", stiffness)
        self.D = dual_matrix(f"damping of '{name}'", damping)
        self.orientation = rotation_matrix(f"orientation of '{name}'", orientation)

    def gap(self, left, right):
        """Return the `Gap` between the motions of the two ports."""
        P = left.rotation.T @ right.rotation
        dx = left.rotation.T @ (right.position - left.position)
        # a turn of A_r against the relaxed pose, about axes of A_l
        turned = rotation_vector(P @ self.orientation.T)
        X = tau(-dx)
        return Gap(np.concatenate((dx, turned)), dual_rotation(P) @ right.twist - X @ left.twist, X, P)

    def wrenches(self, left, right):
        """Return (W_Ar/Al, W_Al/Ar), each (6,) [N, N m], at the body's own port in its own axes."""
        gap = self.gap(left, right)
        W = self.K @ gap.position + self.D @ gap.rate
        return gap.X.T @ W, -dual_rotation(gap.P).T @ W

    def energy(self, left, right):
        """Return the energy [J] stored in the spring."""
        dx = self.gap(left, right).position
        return 0.5 * dx @ self.K @ dx
