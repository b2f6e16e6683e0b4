"""What blocks hand to each other."""
from typing import NamedTuple

import numpy as np


class Motion(NamedTuple):
    """Motion of a port P without its acceleration."""

    position: np.ndarray
    """IP (3,) [m], from the inertial origin, in inertial axes."""
    rotation: np.ndarray
    """P_ib (3, 3): the axes of the body in inertial axes as columns; takes the place of Euler angles."""
    twist: np.ndarray
    """x'_P = (v_P, w) (6,) [m/s, rad/s], in body axes."""


class AffineMap(NamedTuple):
    """A wrench that answers an acceleration: W = w0 - D x'dot, all at one port in the axes of one body."""

    w0: np.ndarray
    """(6,) [N, N m], the wrench at zero acceleration."""
    D: np.ndarray
    """(6, 6), symmetric: the inertia that the port feels."""

    def plus(self, other):
        return AffineMap(self.w0 + other.w0, self.D + other.D)

    def seen_through(self, X):
        """Return the map at another place whose acceleration x'dot makes X x'dot (X (6, 6)) here."""
        return AffineMap(X.T @ self.w0, X.T @ self.D @ X)


class Response(NamedTuple):
    """What a block answers to the acceleration at its port P."""

    wrench: np.ndarray
    """W_A/B (6,) [N, N m], by the block A on its parent B, at the port of B in axes of B."""
    ports: dict
    """Port C -> x'dot_C (6,) [m/s^2, rad/s^2], in axes of the body that carries the port."""
    joint_accelerations: np.ndarray
    """(number of joints,) [rad/s^2 or m/s^2]."""
    joint_forces: np.ndarray
    """C_m or F_m (number of joints,) [N m or N], by the drive on the child body."""
    wrenches: dict
    """Name of a block inside -> W_A/B of that block; '' is the block itself."""
