"""
The natural orthogonal complement of a redundantly actuated 2PUR-2RPU machine, and torques of minimum norm.

Conventions: twist t = (w, cdot), angular part first, cdot the velocity of the mass centre; wrench (n, f) about the mass
centre; all in base axes (X, Y, Z).  Coordinates x = (alpha, beta, zeta) [rad, rad, m]: platform axes
R = Rx(alpha) Ry(beta), platform point P = zeta (0, -sin alpha, cos alpha).  Actuators q = (q1..q4) [m].  SI units.
Bodies are in the order of the twist-shaping matrices: sliders 1 and 2, links B1A1 to B4A4, platform.  The paper numbers
its masses otherwise: slider 1, link B1A1, slider 2, link B2A2, and so on.

The twist-shaping matrices are corrected: the signs of the angular rows of T3 (beta) and T4 (beta, zeta), the fourth row
of T4, and T7, whose printed linear part contradicts the inverse displacement (39).

Every function of x accepts complex numbers: the derivative along xd of f(x) is Im f(x + i h xd) / h, exact to rounding
because nothing is subtracted (`rate_along`).

Source: Wang, Belzile, Angeles, Li: dynamics of a redundantly actuated 2PUR-2RPU parallel machine by the natural
orthogonal complement.
"""
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..model.errors import LoopClosureError

STEP = 1e-30  # of the complex-step derivative


@dataclass(frozen=True, eq=False)
class Machine:
    """
    The machine of the case study; what the paper leaves out is marked as ours.

    masses (7,) [kg] and principal inertias (7, 3) [kg m^2] about the mass centres.  Principal axes (ours): links 1, 2
    have z along BA and y = (0, cos alpha, sin alpha), links 3, 4 have y along BA and x = X, the platform U, V, W.
    """

    l: float = 0.12
    """Length of the links of limbs 1 and 2 [m]."""
    l3: float = 0.08
    """Distance of the pivots B3, B4 from the XZ plane [m]."""
    f: float = 0.06
    """Distance of the joints A from the axes of the platform [m]."""
    d: float = 0.02
    """Height of B3, B4 [m]."""
    e: float = 0.0
    """A1, A2 are below P by this [m]."""
    h: float = 0.05748
    """Tool length along W [m], from the start pose (ours)."""
    l_c: float = 0.06
    """From B to the mass centre of links 1, 2 [m] (ours)."""
    q_c: float = 0.06
    """From A to the mass centre of links 3, 4 [m] (ours)."""
    gravity: tuple = (0.0, 0.0, -9.81)
    """[m/s^2] (ours)."""
    masses: tuple = (0.03261, 0.03261, 0.03300, 0.04200, 0.06082, 0.06082, 0.08200)
    inertias: tuple = ((4.855e-6, 12.742e-6, 12.795e-6), (4.855e-6, 12.742e-6, 12.795e-6),
                       (40.048e-6, 39.770e-6, 1.054e-6), (52.324e-6, 50.786e-6, 2.543e-6),
                       (109.396e-6, 3.349e-6, 110.827e-6), (109.396e-6, 3.349e-6, 110.827e-6),
                       (16.631e-6, 27.155e-6, 37.459e-6))


class Geometry(NamedTuple):
    """The abbreviations g and k of the paper at one pose."""

    q: np.ndarray
    """(4,) actuators [m]."""
    g: dict
    """'11' -> g11, ...; [m], g33 and g43 [m^2]."""
    k: dict
    """'11' -> k11, ...; [m]."""


def geometry(machine, x):
    """Return the `Geometry` at x (3,), inverse displacement (39)."""
    a, b, z = x
    f, d, e, l, l3, qc = machine.f, machine.d, machine.e, machine.l, machine.l3, machine.q_c
    sa, ca, sb, cb = np.sin(a), np.cos(a), np.sin(b), np.cos(b)
    g12, g22 = z - f * sb - e * cb, z + f * sb - e * cb
    if not max(abs(g12), abs(g22)) < l:
        raise LoopClosureError(f'Links of {l} m do not reach from the X axis to A1 and A2 at x = {np.real(x)}.')
    g31, g32 = z * ca - f * sa - d, l3 - f * ca - z * sa
    g41, g42 = z * ca + f * sa - d, -l3 + f * ca - z * sa
    g = {'11': np.sqrt(l * l - g12 * g12), '12': g12, '21': np.sqrt(l * l - g22 * g22), '22': g22,
         '31': g31, '32': g32, '33': g31 * g31 + g32 * g32, '41': g41, '42': g42, '43': g41 * g41 + g42 * g42}
    q = np.array((-g['11'] + f * cb - e * sb, g['21'] - f * cb - e * sb, np.sqrt(g['33']), np.sqrt(g['43'])))
    k = {'11': f * cb - e * sb, '12': e * cb + f * sb, '21': f * cb + e * sb, '22': f * sb - e * cb,
         '31': z * sa + f * ca, '32': z * ca - f * sa, '33': qc * g31 / q[2], '34': qc * g32 / q[2],
         '41': f * ca - z * sa, '42': f * sa + z * ca, '43': qc * g41 / q[3], '44': qc * g42 / q[3]}
    return Geometry(q, g, k)


def actuator_positions(machine, x):
    """Return q (4,) [m] at x (3,), (39)."""
    return geometry(machine, x).q


def actuator_jacobian(machine, x):
    """Return A (4, 3) at x (3,): qdot = A xdot."""
    q, g, k = geometry(machine, x)
    sa, ca = np.sin(x[0]), np.cos(x[0])
    return np.array((
        (0, -k['11'] * g['12'] / g['11'] - k['12'], g['12'] / g['11']),
        (0, k['22'] - k['21'] * g['22'] / g['21'], -g['22'] / g['21']),
        (-(g['31'] * k['31'] + g['32'] * k['32']) / q[2], 0, (g['31'] * ca - g['32'] * sa) / q[2]),
        ((g['41'] * k['41'] - g['42'] * k['42']) / q[3], 0, (g['41'] * ca - g['42'] * sa) / q[3])))


def twist_shaping_matrices(machine, x):
    """Return T (7, 6, 3) at x (3,): t_i = T_i xdot."""
    _, g, k = geometry(machine, x)
    sa, ca, z = np.sin(x[0]), np.cos(x[0]), x[2]
    l, lc = machine.l, machine.l_c
    g11, g12, g21, g22, g31, g32, g33, g41, g42, g43 = g.values()
    k11, k12, k21, k22, k31, k32, k33, k34, k41, k42, k43, k44 = k.values()
    c3, z3 = (g31 * k32 - g32 * k31) / g33, (g31 * sa + g32 * ca) / g33
    c4, z4 = (g42 * k41 + g41 * k42) / g43, (g42 * ca + g41 * sa) / g43
    none = (0, 0, 0, 0, 0, 0)
    columns = np.array((  # body, then alpha, beta, zeta
        (none,
         (0, 0, 0, -k11 * g12 / g11 - k12, 0, 0),
         (0, 0, 0, g12 / g11, 0, 0)),
        (none,
         (0, 0, 0, k22 - k21 * g22 / g21, 0, 0),
         (0, 0, 0, -g22 / g21, 0, 0)),
        ((1, 0, 0, 0, -lc * g12 * ca / l, -lc * g12 * sa / l),
         (0, k11 * ca / g11, k11 * sa / g11,
          (lc / l - 1) * k11 * g12 / g11 - k12, lc * k11 * sa / l, -lc * k11 * ca / l),
         (0, -ca / g11, -sa / g11, (1 - lc / l) * g12 / g11, -lc * sa / l, lc * ca / l)),
        ((1, 0, 0, 0, -lc * g22 * ca / l, -lc * g22 * sa / l),
         (0, k21 * ca / g21, k21 * sa / g21,
          (lc / l - 1) * k21 * g22 / g21 + k22, -lc * k21 * sa / l, lc * k21 * ca / l),
         (0, ca / g21, sa / g21, (lc / l - 1) * g22 / g21, -lc * sa / l, lc * ca / l)),
        ((c3, 0, 0, 0, k33 * c3 - k32, -k34 * c3 - k31),
         none,
         (z3, 0, 0, 0, k33 * z3 - sa, ca - k34 * z3)),
        ((c4, 0, 0, 0, k43 * c4 - k42, -k44 * c4 + k41),
         none,
         (z4, 0, 0, 0, k43 * z4 - sa, ca - k44 * z4)),
        ((1, 0, 0, 0, -z * ca, -z * sa),
         (0, ca, sa, 0, 0, 0),
         (0, 0, 0, 0, -sa, ca))))
    return columns.transpose(0, 2, 1)


def body_axes(machine, x):
    """Return the principal axes of the bodies in base axes, R (7, 3, 3) at x (3,)."""
    q, g, _ = geometry(machine, x)
    sa, ca, sb, cb = np.sin(x[0]), np.cos(x[0]), np.sin(x[1]), np.cos(x[1])

    def inclined(s, c):  # Rx(alpha) Ry(theta)
        return (c, 0, s), (sa * s, ca, -sa * c), (-ca * s, sa, ca * c)

    def about_x(s, c):  # Rx(theta)
        return (1, 0, 0), (0, c, -s), (0, s, c)

    return np.array((
        np.eye(3), np.eye(3),
        inclined(g['11'] / machine.l, g['12'] / machine.l),    # sin, cos of theta_1
        inclined(-g['21'] / machine.l, g['22'] / machine.l),
        about_x(g['31'] / q[2], g['32'] / q[2]),
        about_x(g['41'] / q[3], g['42'] / q[3]),
        inclined(sb, cb)))


def mass_matrices(machine, x):
    """Return M (7, 6, 6) = diag(I_C, m 1) at x (3,), I_C = R I_body R'."""
    R = body_axes(machine, x)
    M = np.zeros((7, 6, 6), R.dtype)
    M[:, :3, :3] = (R * np.array(machine.inertias)[:, None]) @ R.transpose(0, 2, 1)
    M[:, 3:, 3:] = np.array(machine.masses)[:, None, None] * np.eye(3)
    return M


# --- any machine: T (bodies, 6, p), M (bodies, 6, 6) = diag(I_C, m 1)


def project_inertia(T, M):
    """Return I (p, p) = sum T_i' M_i T_i."""
    return (T.transpose(0, 2, 1) @ M @ T).sum(axis=0)


def project_coriolis(T, T_dot, M, xd):
    """Return C (p, p) = sum T_i' (M_i Tdot_i + W_i M_i T_i) with W_i = diag(hat(w_i), 0), t_i = T_i xdot."""
    W = np.zeros((len(T), 6, 6))
    for W_i, (wx, wy, wz, *_) in zip(W, T @ xd):
        W_i[:3, :3] = (0, -wz, wy), (wz, 0, -wx), (-wy, wx, 0)
    return (T.transpose(0, 2, 1) @ (M @ T_dot + W @ M @ T)).sum(axis=0)


def project_weight(T, masses, gravity):
    """Return gamma (p,) = sum T_i' w_i with w_i = (0, m_i g)."""
    return np.einsum('ijk,ij->k', T[:, 3:], np.outer(masses, gravity))


def minimum_norm(A, tau, weights=None):
    """
    Return the actuator forces tau_a0 (r,) of smallest norm with A' tau_a0 = tau (p,), (35)-(36).

    A (r, p), r >= p, of full rank: qdot = A xdot.  A = Q_L U by Householder reflections, tau_a0 = Q_L U^-T tau; A'A,
    whose condition number is the square of A's, is never formed.
    weights (r,), positive: the sum of weights tau_a0^2 is smallest, for actuators of different kinds or sizes (ours).
    """
    scale = np.ones(len(A)) if weights is None else 1 / np.sqrt(weights)
    Q_L, U = np.linalg.qr(scale[:, None] * A)
    return scale * (Q_L @ np.linalg.solve(U.T, tau))


# --- the machine of the case study


def rate_along(function, machine, x, xd):
    """Return the derivative of function(machine, x) along xd (3,)."""
    return function(machine, np.asarray(x) + 1j * STEP * np.asarray(xd)).imag / STEP


def generalized_inertia(machine, x):
    """Return I (3, 3) at x (3,), I = sum T_i' M_i T_i."""
    return project_inertia(twist_shaping_matrices(machine, x), mass_matrices(machine, x))


def coriolis_matrix(machine, x, xd):
    """Return C (3, 3) at x, xd (3,), C = sum T_i' (M_i Tdot_i + W_i M_i T_i); Idot - 2 C is skew-symmetric."""
    T_dot = rate_along(twist_shaping_matrices, machine, x, xd)
    return project_coriolis(twist_shaping_matrices(machine, x), T_dot, mass_matrices(machine, x), xd)


def gravity_force(machine, x):
    """Return gamma (3,) at x (3,), gamma = sum T_i' w_i with w_i = (0, m_i g)."""
    return project_weight(twist_shaping_matrices(machine, x), machine.masses, machine.gravity)


def generalized_force(machine, x, xd, xdd):
    """Return tau (3,) [N m, N m, N] at x, xd, xdd (3,), (25) without dissipation."""
    return (generalized_inertia(machine, x) @ xdd + coriolis_matrix(machine, x, xd) @ xd
            - gravity_force(machine, x))


def inverse_dynamics(machine, x, xd, xdd):
    """Return the actuator forces tau_a0 (4,) [N] of smallest norm at x, xd, xdd (3,)."""
    return minimum_norm(actuator_jacobian(machine, x), generalized_force(machine, x, xd, xdd))


def forward_dynamics(machine, x, xd, tau_a):
    """Return xdd (3,) at x, xd (3,) under actuator forces tau_a (4,) [N]."""
    force = actuator_jacobian(machine, x).T @ tau_a + gravity_force(machine, x)
    return np.linalg.solve(generalized_inertia(machine, x), force - coriolis_matrix(machine, x, xd) @ xd)


class Trajectory(NamedTuple):
    """A point of the case study's trajectory."""

    tool: np.ndarray
    """(3,) tool tip [m]."""
    x: np.ndarray
    """(3,), and its rates."""
    xd: np.ndarray
    xdd: np.ndarray


def progress(t, T):
    """Return phi [rad] and its two rates at time t of T [s], law (B-1): from 0 to 2 pi without a coasting phase."""
    if t > T / 2:  # point symmetric about T/2
        phi, phid, phidd = progress(T - t, T)
        return 2 * np.pi - phi, phid, -phidd
    c, w = 2 * np.pi / (2 + np.pi), 4 * np.pi / T
    top = 2 * c * w / T
    if t < T / 8:
        return c * (2 * t / T - np.sin(w * t) / (2 * np.pi)), c * 2 / T * (1 - np.cos(w * t)), top * np.sin(w * t)
    if t < 3 * T / 8:
        u = t - T / 8
        return c * (0.25 - 0.5 / np.pi + 2 * u / T) + top * u * u / 2, 2 * c / T + top * u, top
    u = t - 3 * T / 8
    phi = 0.75 + np.pi / 4 - 0.5 / np.pi + 2 * (1 + np.pi) * u / T + (1 + np.sin(w * t)) / (2 * np.pi)
    return c * phi, 2 * c / T * (1 + np.pi + np.cos(w * t)), -top * np.sin(w * t)


def trajectory(machine, t, T=10.0, r=0.005, z0=0.12748, h0=0.02):
    """Return the `Trajectory` at time t of T [s]: a helix of the tool tip, radius r, from height z0 up by h0 [m]."""
    phi, phid, phidd = progress(t, T)
    s, c, climb, h = np.sin(phi), np.cos(phi), h0 / (2 * np.pi), machine.h
    X, Xd, Xdd = r * c - r, -r * s * phid, -r * (c * phid**2 + s * phidd)
    Y, Yd, Ydd = r * s, r * c * phid, r * (c * phidd - s * phid**2)
    Z, Zd, Zdd = z0 + climb * phi, climb * phid, climb * phidd
    # alpha = atan(-Y / Z)
    N, D = Y * Zd - Yd * Z, Y * Y + Z * Z
    a, ad = np.arctan2(-Y, Z), N / D
    add = (Y * Zdd - Ydd * Z) / D - 2 * N * (Y * Yd + Z * Zd) / D**2
    # beta = asin(X / h)
    b = np.arcsin(X / h)
    bd = Xd / (h * np.cos(b))
    bdd = (Xdd / h + np.sin(b) * bd**2) / np.cos(b)
    # zeta = Z / cos(alpha) - h cos(beta)
    k, tan = 1 / np.cos(a), np.tan(a)
    kd, kdd = k * tan * ad, k * tan * add + (k * tan**2 + k**3) * ad**2
    z, zd = Z * k - h * np.cos(b), Zd * k + Z * kd + h * np.sin(b) * bd
    zdd = Zdd * k + 2 * Zd * kd + Z * kdd + h * (np.cos(b) * bd**2 + np.sin(b) * bdd)
    return Trajectory(np.array((X, Y, Z)), np.array((a, b, z)), np.array((ad, bd, zd)), np.array((add, bdd, zdd)))
