"""
Twists and wrenches of Paz & Mattila: nu = (v, w), F = (f, m), linear part first, in the local frame.

`adjoint` maps a twist from base to moving frame, its transpose a wrench back.
"""
import numpy as np

S_X = np.array((1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
S_Z = np.array((0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
XI = np.eye(6)[[0, 1, 5]]  # (3, 6), selects (fx, fy, mz)
AT_REST = np.zeros(6)


def hat(a):
    """Return the matrix (3, 3) of the cross product a x."""
    return np.array(((0.0, -a[2], a[1]), (a[2], 0.0, -a[0]), (-a[1], a[0], 0.0)))


def adjoint(T):
    """Return Ad (6, 6), which maps a twist to a frame whose pose in the present one is T (4, 4)."""
    R, r = T[:3, :3], T[:3, 3]
    Ad = np.zeros((6, 6))
    Ad[:3, :3] = Ad[3:, 3:] = R.T
    Ad[:3, 3:] = -R.T @ hat(r)
    return Ad


def ad(nu):
    """Return ad_nu (6, 6) = [[hat(w), hat(v)], [0, hat(w)]]."""
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = matrix[3:, 3:] = hat(nu[3:])
    matrix[:3, 3:] = hat(nu[:3])
    return matrix


def wrench_bias(M, nu):
    """Return p (6,) = -ad*_nu M nu."""
    return -ad(nu).T @ M @ nu


def displacement(s, x):
    """Return the pose (4, 4) after a motion x on the unit screw s (6,): (axis, 0) prismatic, (0, axis) revolute."""
    axis = hat(s[3:])
    T = np.eye(4)
    T[:3, :3] += np.sin(x) * axis + (1 - np.cos(x)) * axis @ axis
    T[:3, 3] = x * np.asarray(s[:3])
    return T
