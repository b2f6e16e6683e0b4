"""
Analytic forward and inverse dynamics of chains of linearly actuated loops, with the K matrices.

Conventions: twist nu = (v, w) and wrench F = (f, m), linear part first, in the local frame; `Ad` maps a twist from
base to moving frame, its transpose a wrench back; nudot is the rate of the body coordinates of nu.  Gravity is the
acceleration nudot_0 = (-g, 0) of the first base.  A force is positive when it lengthens x.  SI units.

Frames of a loop: Bc base, B1 moving link (joint q), B3 cylinder (q1), B4 rod (x), P rod tip in the axes of B4, E end
on the moving link, which is Bc of the next module.  Equation numbers are of the printed version; signs are corrected in
the last entry of row f4y of K4bar and in the last two right-hand sides of the 7 x 7 system.

Losses of joints and pins, and wrenches by the environment, are ours: the former by virtual power, so that the internal
wrenches do not have them, the latter in the biases p of the bodies.

Source: A. Paz, J. Mattila, "Analytical forward dynamics modeling of linearly actuated heavy-duty parallel-serial
manipulators", arXiv:2403.08524.
"""
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..model.errors import LoopClosureError
from ..model.mechanism.description import SLIP_VELOCITY
from .screws import AT_REST, S_X, S_Z, XI, ad, adjoint, displacement, hat, wrench_bias

NO_LOSS = (0.0, 0.0)


def spatial_inertia(m, c, I_c):
    """Return M (6, 6) at the origin of the body from mass [kg], centre (3,) [m], inertia (3, 3) about the centre."""
    M = np.zeros((6, 6))
    M[:3, :3], M[3:, 3:] = m * np.eye(3), I_c - m * hat(c) @ hat(c)
    M[:3, 3:], M[3:, :3] = -m * hat(c), m * hat(c)
    return M


class LoopKinematics(NamedTuple):
    """A loop module at x, xd; angles [rad], matrices (6, 6), twists and biases (6,) in the frame that they name."""

    angles: tuple
    """q, q1, q2, all in (-pi, 0)."""
    k: tuple
    """k1..k6: qd = k1 xd, q1d = k2 xd, q2d = k3 xd, qdd = k4 + k1 xdd, q1dd = k5 + k2 xdd, q2dd = k6 + k3 xdd."""
    K_bar: np.ndarray
    """(3, 9), K1bar, K3bar, K4bar side by side: (f4x, f4y, m4z) from (fx, fy, mz) of F~_B1, F^_B3, F^_B4."""
    K: tuple
    """K1, K3, K4 = Xi' Kbar_i Xi."""
    Ad: tuple
    """Ad_B1, Ad_B3, Ad_B4, from Bc."""
    Ad_34: np.ndarray
    Ad_E: np.ndarray
    nu_E: np.ndarray
    xi1: np.ndarray
    xi2: np.ndarray
    xi4: np.ndarray
    xi5: np.ndarray
    xi7: np.ndarray
    xi8: np.ndarray
    p_B0: np.ndarray
    p: tuple
    """p_B1, p_B3, p_B4."""
    p_E: np.ndarray
    friction: float
    """On the actuator [N]: what overcomes the losses of x, q, q1 and of the pin."""

    def loaded(self, F_B0, F_B1, F_B3, F_B4):
        """Return this under wrenches (6,) by the environment."""
        return self._replace(p_B0=self.p_B0 - F_B0, p=tuple(np.subtract(self.p, (F_B1, F_B3, F_B4))))


class LoopArticulated(NamedTuple):
    """What the backward sweep makes of a loop module."""

    M_tilde: np.ndarray
    """(6, 6), B1 and all it carries."""
    p_tilde: np.ndarray
    alpha: float
    psi: np.ndarray
    """(6,), force per acceleration of Bc: f = alpha xdd + psi nudot_Bc + delta."""
    delta: float
    M_A: np.ndarray
    """(6, 6), M_Bc^A: F_Bc = M_A nudot_Bc + p_A."""
    p_A: np.ndarray


class LoopWrenches(NamedTuple):
    """Wrenches (6,) that are transmitted to a body and all it carries, in the frame named."""

    f: float
    """Actuator force [N]."""
    F_Bc: np.ndarray
    """Exact in all six components."""
    F_B1: np.ndarray
    """By the pin at B1; like F_B3, F_B4 and F_P with fz = mx = my = 0 by assumption (56)."""
    F_B3: np.ndarray
    F_B4: np.ndarray
    F_P: np.ndarray
    """By the rod on the moving link, at the rod tip."""


@dataclass(frozen=True, eq=False)
class LoopModule:
    """
    A triangle: base side L, moving side L1, actuator side x + Lc + Lc0 [m].

    T_B1, T_B3: poses (4, 4) of B1 and B3 in Bc at zero angle (T_B1 = T_B3 translated by (L, 0, 0)); T_E: pose of E
    in B1; M_B0..M_E: inertias (6, 6) at the frame they name; losses: (damping, Coulomb friction) of x, q, q1 and of
    the pin between rod and moving link, which turns by q2.
    """

    L: float
    L1: float
    Lc: float
    Lc0: float
    T_B1: np.ndarray
    T_B3: np.ndarray
    T_E: np.ndarray
    M_B0: np.ndarray
    M_B1: np.ndarray
    M_B3: np.ndarray
    M_B4: np.ndarray
    M_E: np.ndarray
    losses: tuple = (NO_LOSS,) * 4

    def angles(self, x):
        """Return q, q1, q2 [rad] at the stroke x [m]."""
        L, L1, s = self.L, self.L1, x + self.Lc + self.Lc0
        if not abs(L - L1) < s < L + L1:
            raise LoopClosureError(f'A loop with sides {L} and {L1} m does not close at an actuator length of {s} m.')
        return (-np.arccos((s * s - L * L - L1 * L1) / (2 * L * L1)),      # (2a)
                -np.arccos((s * s + L * L - L1 * L1) / (2 * s * L)),       # (2b)
                -np.arccos((s * s + L1 * L1 - L * L) / (2 * s * L1)))      # (2c)

    def ratios(self, x, xd):
        """Return k1..k6, (3)-(7) and their rates: m, m/s in, rad out."""
        L, L1, s = self.L, self.L1, x + self.Lc + self.Lc0
        q, q1, q2 = self.angles(x)
        k1 = -s / (L * L1 * np.sin(q))
        k2 = -(s - L * np.cos(q1)) / (s * L * np.sin(q1))
        k3 = -(s - L1 * np.cos(q2)) / (s * L1 * np.sin(q2))
        k4 = xd**2 * (k1 / s - k1**2 / np.tan(q))
        k5, k6 = (-xd**2 * ((1 + side * np.sin(angle) * k) / (s * side * np.sin(angle))
                            + k * (np.sin(angle) + s * np.cos(angle) * k) / (s * np.sin(angle)))
                  for side, angle, k in ((L, q1, k2), (L1, q2, k3)))
        return k1, k2, k3, k4, k5, k6

    def statics_matrix(self, x):
        """Return A (7, 7) of the unknowns [fPx fPy f4x f4y m4z f3x f3y], (57)-(60)."""
        q2 = self.angles(x)[2]
        A = np.zeros((7, 7))
        A[0, :2] = -self.L1 * np.sin(q2), self.L1 * np.cos(q2)
        A[1, [0, 2]] = A[2, [1, 3]] = 1.0, -1.0
        A[3, [1, 4]] = self.Lc, -1.0
        A[4, [3, 4]] = x + self.Lc0, 1.0
        A[5, [2, 5]] = A[6, [3, 6]] = 1.0, -1.0
        return A

    def K_bar(self, x):
        """Return K1bar, K3bar, K4bar side by side (3, 9), (61)-(65)."""
        q2 = self.angles(x)[2]
        ka, kb, kc = x + self.Lc0, -self.L1 * np.sin(q2), self.L1 * np.cos(q2)
        ke = ka + self.Lc
        kf, kg = kc / (kb * ke), self.Lc / ke
        return np.array(((0, 0, 1 / kb, 0, 0, kf, 1, ka * kf, kf),
                         (0, 0, 0, 0, 0, -1 / ke, 0, kg, -1 / ke),
                         (0, 0, 0, 0, 0, -kg, 0, -ka * kg, ka / ke)))

    def kinematics(self, x, xd, nu_Bc):
        """Return `LoopKinematics` at stroke and rate x, xd under the base twist nu_Bc (6,): sweep 1."""
        q, q1, _ = angles = self.angles(x)
        k1, k2, _, k4, k5, _ = k = self.ratios(x, xd)
        Ad_B1 = adjoint(self.T_B1 @ displacement(S_Z, q))
        Ad_B3 = adjoint(self.T_B3 @ displacement(S_Z, q1))
        Ad_34 = adjoint(displacement(S_X, x + self.Lc0))
        Ad_E = adjoint(self.T_E)
        nu_B1 = Ad_B1 @ nu_Bc + S_Z * k1 * xd                              # (6)
        nu_B3 = Ad_B3 @ nu_Bc + S_Z * k2 * xd
        nu_B4 = Ad_34 @ nu_B3 + S_X * xd
        nu_E = Ad_E @ nu_B1
        xi1, xi2 = S_Z * k1, S_Z * k4 + ad(nu_B1) @ S_Z * k1 * xd          # (29)-(30)
        xi4, xi5 = S_Z * k2, S_Z * k5 + ad(nu_B3) @ S_Z * k2 * xd
        xi7, xi8 = Ad_34 @ xi4 + S_X, Ad_34 @ xi5 + ad(nu_B4) @ S_X * xd
        K_bar = self.K_bar(x)
        slips = ((1.0, xd), *((ratio, ratio * xd) for ratio in k[:3]))
        return LoopKinematics(
            angles, k, K_bar, tuple(XI.T @ K @ XI for K in np.hsplit(K_bar, 3)),
            (Ad_B1, Ad_B3, Ad_34 @ Ad_B3), Ad_34, Ad_E, nu_E, xi1, xi2, xi4, xi5, xi7, xi8,
            wrench_bias(self.M_B0, nu_Bc),
            (wrench_bias(self.M_B1, nu_B1), wrench_bias(self.M_B3, nu_B3), wrench_bias(self.M_B4, nu_B4)),
            wrench_bias(self.M_E, nu_E),
            sum(ratio * friction(rate, *loss) for (ratio, rate), loss in zip(slips, self.losses)))

    def articulate(self, kin, f, M_next, p_next):
        """Return `LoopArticulated` from f [N] and M_Bc^A (6, 6), p_Bc^A (6,) of the next module: sweep 2."""
        p_B1, p_B3, p_B4 = kin.p
        M_tilde = self.M_B1 + kin.Ad_E.T @ (self.M_E + M_next) @ kin.Ad_E  # (23)-(26)
        p_tilde = p_B1 + kin.Ad_E.T @ (kin.p_E + p_next)
        bodies = list(zip(kin.K, (M_tilde, self.M_B3, self.M_B4), (p_tilde, p_B3, p_B4), kin.Ad,
                          (kin.xi1, kin.xi4, kin.xi7), (kin.xi2, kin.xi5, kin.xi8)))
        alpha = S_X @ sum(K @ M @ J for K, M, _, _, J, _ in bodies)        # (42)-(45)
        psi = S_X @ sum(K @ M @ Ad for K, M, _, Ad, _, _ in bodies)
        delta = S_X @ sum(K @ (M @ b + p) for K, M, p, _, _, b in bodies)
        M_A, p_A = self.M_B0, kin.p_B0                                     # (46)-(49)
        for _, M, p, Ad, J, b in bodies:
            Psi = Ad - np.outer(J, psi) / alpha
            xi_B = J * (f - delta) / alpha + b
            M_A = M_A + Ad.T @ M @ Psi
            p_A = p_A + Ad.T @ (M @ xi_B + p)
        return LoopArticulated(M_tilde, p_tilde, alpha, psi, delta, M_A, p_A)

    def acceleration(self, kin, art, f, nudot_Bc):
        """Return xdd [m/s^2] from f [N] and nudot_Bc (6,): sweep 3, (46)."""
        return (f - art.psi @ nudot_Bc - art.delta) / art.alpha

    def accelerations(self, kin, xdd, nudot_Bc):
        """Return nudot_B1, nudot_B3, nudot_B4, nudot_E (6,)."""
        Ad_B1, Ad_B3, Ad_B4 = kin.Ad
        nudot_B1 = Ad_B1 @ nudot_Bc + kin.xi1 * xdd + kin.xi2
        return (nudot_B1, Ad_B3 @ nudot_Bc + kin.xi4 * xdd + kin.xi5, Ad_B4 @ nudot_Bc + kin.xi7 * xdd + kin.xi8,
                kin.Ad_E @ nudot_B1)

    def wrenches(self, kin, x, xdd, nudot_Bc, F_next):
        """Return `LoopWrenches`; F_next (6,) is F_Bc of the next module, (13)-(16), (55)-(65)."""
        nudot_B1, nudot_B3, nudot_B4, nudot_E = self.accelerations(kin, xdd, nudot_Bc)
        (K1, K3, K4), (Ad_B1, Ad_B3, Ad_B4), (p_B1, p_B3, p_B4) = kin.K, kin.Ad, kin.p
        F1 = self.M_B1 @ nudot_B1 + p_B1 + kin.Ad_E.T @ (self.M_E @ nudot_E + kin.p_E + F_next)  # F~_B1
        F3 = self.M_B3 @ nudot_B3 + p_B3                                   # F^_B3
        F4 = self.M_B4 @ nudot_B4 + p_B4                                   # F^_B4
        F_B4 = K1 @ F1 + K3 @ F3 + K4 @ F4                                 # (62)
        Ad_4P = adjoint(displacement(S_X, self.Lc))
        Ad_1P = adjoint(displacement(S_X, self.L1) @ displacement(S_Z, -kin.angles[2]))
        planar = XI.T @ XI                                                 # (56)
        F_P = planar @ np.linalg.solve(Ad_4P.T, F_B4 - F4)
        F_B1, F_B3 = planar @ (F1 - Ad_1P.T @ F_P), planar @ (F3 + kin.Ad_34.T @ F_B4)
        F_B0 = self.M_B0 @ nudot_Bc + kin.p_B0
        F_Bc = F_B0 + Ad_B1.T @ F1 + Ad_B3.T @ F3 + Ad_B4.T @ F4           # (38)
        return LoopWrenches(S_X @ F_B4 + kin.friction, F_Bc, F_B1, F_B3, F_B4, F_P)


class SerialKinematics(NamedTuple):
    """A serial module at x, xd; matrices (6, 6), twists and biases (6,) in the frame that they name."""

    Ad_B4: np.ndarray
    Ad_E: np.ndarray
    nu_E: np.ndarray
    c_B4: np.ndarray
    p_B0: np.ndarray
    p_B4: np.ndarray
    p_E: np.ndarray
    friction: float
    """On the actuator [N or N m]."""

    def loaded(self, F_B0, F_B4):
        """Return this under wrenches (6,) by the environment."""
        return self._replace(p_B0=self.p_B0 - F_B0, p_B4=self.p_B4 - F_B4)


class SerialArticulated(NamedTuple):
    """What the backward sweep makes of a serial module."""

    alpha: float
    psi: np.ndarray
    """(6,)"""
    u: float
    M_A: np.ndarray
    """(6, 6), M_Bc^A: F_Bc = M_A nudot_Bc + p_A."""
    p_A: np.ndarray


class SerialWrenches(NamedTuple):
    """Wrenches (6,) that are transmitted to a body and all it carries, in the frame named."""

    f: float
    """Actuator force or torque [N or N m]."""
    F_Bc: np.ndarray
    F_B4: np.ndarray


@dataclass(frozen=True, eq=False)
class SerialModule:
    """
    An actuated joint with the unit screw s (6,), (axis, 0) prismatic or (0, axis) revolute.

    T_B4: pose (4, 4) of B4 in Bc at x = 0; T_E: pose of E in B4; M_B0, M_B4, M_E: inertias (6, 6) at the frame they
    name; loss: damping and Coulomb friction of x.
    """

    s: np.ndarray
    T_B4: np.ndarray
    T_E: np.ndarray
    M_B0: np.ndarray
    M_B4: np.ndarray
    M_E: np.ndarray
    loss: tuple = NO_LOSS

    def kinematics(self, x, xd, nu_Bc):
        """Return `SerialKinematics` at x, xd under the base twist nu_Bc (6,): sweep 1."""
        Ad_B4 = adjoint(self.T_B4 @ displacement(self.s, x))
        Ad_E = adjoint(self.T_E)
        nu_B4 = Ad_B4 @ nu_Bc + self.s * xd
        nu_E = Ad_E @ nu_B4
        return SerialKinematics(Ad_B4, Ad_E, nu_E, ad(nu_B4) @ self.s * xd, wrench_bias(self.M_B0, nu_Bc),
                                wrench_bias(self.M_B4, nu_B4), wrench_bias(self.M_E, nu_E),
                                friction(xd, *self.loss))

    def articulate(self, kin, f, M_next, p_next):
        """Return `SerialArticulated` from f and M_Bc^A (6, 6), p_Bc^A (6,) of the next module: sweep 2."""
        M_A = self.M_B4 + kin.Ad_E.T @ (self.M_E + M_next) @ kin.Ad_E      # (50)
        p_A = kin.p_B4 + kin.Ad_E.T @ (kin.p_E + p_next)
        psi = self.s @ M_A                                                 # (51)
        alpha = psi @ self.s
        u = f - self.s @ p_A
        M_a = M_A - np.outer(psi, psi) / alpha                             # (52)
        p_a = p_A + M_a @ kin.c_B4 + u / alpha * psi
        return SerialArticulated(alpha, psi, u, self.M_B0 + kin.Ad_B4.T @ M_a @ kin.Ad_B4,
                                 kin.p_B0 + kin.Ad_B4.T @ p_a)

    def acceleration(self, kin, art, f, nudot_Bc):
        """Return xdd from nudot_Bc (6,): sweep 3; f is in art.u already."""
        nudot_a = kin.Ad_B4 @ nudot_Bc + kin.c_B4
        return (art.u - art.psi @ nudot_a) / art.alpha

    def accelerations(self, kin, xdd, nudot_Bc):
        """Return nudot_B4, nudot_E (6,)."""
        nudot_B4 = kin.Ad_B4 @ nudot_Bc + kin.c_B4 + self.s * xdd
        return nudot_B4, kin.Ad_E @ nudot_B4

    def wrenches(self, kin, x, xdd, nudot_Bc, F_next):
        """Return `SerialWrenches`; F_next (6,) is F_Bc of the next module."""
        nudot_B4, nudot_E = self.accelerations(kin, xdd, nudot_Bc)
        F_B4 = self.M_B4 @ nudot_B4 + kin.p_B4 + kin.Ad_E.T @ (self.M_E @ nudot_E + kin.p_E + F_next)
        return SerialWrenches(self.s @ F_B4 + kin.friction, self.M_B0 @ nudot_Bc + kin.p_B0 + kin.Ad_B4.T @ F_B4, F_B4)


class ForwardDynamics(NamedTuple):
    """Result of `forward_dynamics`; per module from base to tip."""

    xdd: np.ndarray
    """(n,) [m/s^2 or rad/s^2]"""
    kinematics: tuple
    articulated: tuple


class InverseDynamics(NamedTuple):
    """Result of `inverse_dynamics`; per module from base to tip."""

    f: np.ndarray
    """(n,) [N or N m]"""
    F_0: np.ndarray
    """(6,), by the ground on the first base, in its frame."""
    kinematics: tuple
    wrenches: tuple


def friction(rate, damping, coulomb):
    """Return damping v + coulomb tanh(v / v_s) at a rate v."""
    return damping * rate + coulomb * np.tanh(rate / SLIP_VELOCITY)


def forward_dynamics(modules, x, xd, f, nudot_0, nu_0=AT_REST, external=None):
    """
    Return `ForwardDynamics` of a chain of modules by Algorithm 1.

    x, xd, f (n,): positions, rates and forces of the actuators; nudot_0 (6,): acceleration of the first Bc less
    gravity; nu_0 (6,): its twist; external: per module the wrenches (6,) by the environment on B0, B1, B3, B4 of a
    loop, on B0, B4 of a serial module, each in the frame of the body.
    """
    kinematics = _sweep(modules, x, xd, nu_0, external)
    f = [force - kin.friction for force, kin in zip(f, kinematics)]
    M, p, articulated = np.zeros((6, 6)), np.zeros(6), []
    for module, kin, force in reversed(list(zip(modules, kinematics, f))):
        articulated.insert(0, module.articulate(kin, force, M, p))
        M, p = articulated[0].M_A, articulated[0].p_A
    xdd, nudot = [], np.asarray(nudot_0, float)
    for module, kin, art, force in zip(modules, kinematics, articulated, f):
        xdd.append(module.acceleration(kin, art, force, nudot))
        nudot = module.accelerations(kin, xdd[-1], nudot)[-1]
    return ForwardDynamics(np.array(xdd), kinematics, tuple(articulated))


def inverse_dynamics(modules, x, xd, xdd, nudot_0, nu_0=AT_REST, external=None):
    """Return `InverseDynamics` of a chain of modules at accelerations xdd (n,), the rest as in `forward_dynamics`."""
    kinematics = _sweep(modules, x, xd, nu_0, external)
    nudots = [np.asarray(nudot_0, float)]
    for module, kin, acceleration in zip(modules, kinematics, xdd):
        nudots.append(module.accelerations(kin, acceleration, nudots[-1])[-1])
    F, wrenches = np.zeros(6), []
    for module, kin, position, acceleration, nudot in reversed(list(zip(modules, kinematics, x, xdd, nudots))):
        wrenches.insert(0, module.wrenches(kin, position, acceleration, nudot, F))
        F = wrenches[0].F_Bc
    return InverseDynamics(np.array([w.f for w in wrenches]), F, kinematics, tuple(wrenches))


def _sweep(modules, x, xd, nu_0, external):
    kinematics, nu = [], nu_0
    for module, position, rate in zip(modules, x, xd):
        kinematics.append(module.kinematics(position, rate, nu))
        nu = kinematics[-1].nu_E
    return tuple(kinematics if external is None else (kin.loaded(*F) for kin, F in zip(kinematics, external)))
