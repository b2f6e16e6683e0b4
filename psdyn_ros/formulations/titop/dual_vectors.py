"""
Dual vectors: linear part first, twist x' = (v_P, w) and wrench W = (F, T_P), in axes and at a point that are given.

`P_ab` has the axes of a, seen in b, as columns: [v]_b = P_ab [v]_a.  SI units.
Source: D. Alazard, F. Sanfedino, E. Kassarian, non-linear TITOP model of rigid multibody systems, notation.
"""
import numpy as np


def cross_matrix(v):
    """Return (*v) (3, 3), the matrix of the cross product: (*v) u = v x u."""
    x, y, z = v
    return np.array(((0.0, -z, y), (z, 0.0, -x), (-y, x, 0.0)))


def cross(a, b):
    """Return a x b (3,)."""
    return np.array((a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]))


def tau(PB):
    """
    Return tau_PB (6, 6) = [[1, (*PB)], [0, 1]] from the vector P to B (3,) [m].

    It carries the twist of a body from B to P, x'_P = tau_PB x'_B; its transpose a wrench from P to B.
    """
    matrix = np.eye(6)
    matrix[:3, 3:] = cross_matrix(PB)
    return matrix


def dual_rotation(P_ab):
    """Return diag(P_ab, P_ab) (6, 6): dual vectors in axes a become dual vectors in axes b."""
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = matrix[3:, 3:] = P_ab
    return matrix


def inertia_at(mass, I_B, BP):
    """
    Return D_P = tau_BP' D_B tau_BP (6, 6) with D_B = diag(m 1, I_B).

    mass [kg]; I_B (3, 3) [kg m^2] about the centre of mass B; BP (3,) [m] from B to P; all in body axes.
    """
    D_B = np.zeros((6, 6))
    D_B[:3, :3], D_B[3:, 3:] = mass * np.eye(3), I_B
    return tau(BP).T @ D_B @ tau(BP)


def gyroscopic(twist):
    """Return C(x') (6, 6) = [[(*w), 0], [(*v), (*w)]]; C(x') D_P x' is what moving axes add to D_P x'dot."""
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = matrix[3:, 3:] = cross_matrix(twist[3:])
    matrix[3:, :3] = cross_matrix(twist[:3])
    return matrix


def turn(axis, angle):
    """Return exp(angle (*axis)) (3, 3), a turn by an angle [rad] about a unit axis (3,) (Rodrigues)."""
    c, s = np.cos(angle), np.sin(angle)
    return c * np.eye(3) + s * cross_matrix(axis) + (1 - c) * np.outer(axis, axis)


def rotation_vector(rotation):
    """Return the vector (3,) [rad] about which and by whose length a rotation (3, 3) turns; at most pi long."""
    sine = 0.5 * np.array((rotation[2, 1] - rotation[1, 2], rotation[0, 2] - rotation[2, 0],
                           rotation[1, 0] - rotation[0, 1]))
    s, c = np.linalg.norm(sine), 0.5 * (np.trace(rotation) - 1)
    if c >= 0:
        return sine * (np.arctan2(s, c) / s if s else 1.0)
    # beyond a right angle the sine loses the axis, the symmetric part (1 - c) n n' + c 1 has it
    outer = 0.5 * (rotation + rotation.T) - c * np.eye(3)
    column = outer[:, np.argmax(np.diag(outer))]
    axis = column / np.linalg.norm(column)
    return np.arctan2(s, c) * (axis if axis @ sine >= 0 else -axis)


def rotation_of(quaternion):
    """Return P_ib (3, 3) of a quaternion x y z w (4,) of any length but zero, from body to inertial axes."""
    x, y, z, w = quaternion
    U = cross_matrix((x, y, z))
    return np.eye(3) + 2 / (x * x + y * y + z * z + w * w) * (w * U + U @ U)


def quaternion_rate(quaternion, omega):
    """Return the rate (4,) of a quaternion x y z w under the angular velocity omega (3,) [rad/s] in body axes."""
    u, w = quaternion[:3], quaternion[3]
    return 0.5 * np.append(w * omega + cross(u, omega), -u @ omega)
