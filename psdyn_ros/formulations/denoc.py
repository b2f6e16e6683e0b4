"""
Recursive kinematics and dynamics of closed loops by the decoupled natural orthogonal complement (DeNOC).

Conventions: twist t = (w, v), angular part first, v the velocity of the body origin O_i; wrench (n, f), moment about
O_i; all in the axes of the ground.  A_ij carries a twist from body j to body i.  Gravity is the acceleration
tdot_0 = (0, -g) of the ground.  Joint positions theta are a tuple of an array (m,) per leg; thetadot, thetadd and tau
are of the n actuated joints alone, in the order of the legs.  SI units.

The factor P_i = p~_i p~_i' / delta_i, which the printed N_c lacks, stands wherever it belongs: (16c), (22), (30)-(33).
In (30) the last term is Y^(i)' Abar^(j).  The accelerations of the passive joints, `accelerations`, are ours: the paper
says no more than "differentiate".

Source: S. K. Saha, W. Schiehlen, "Recursive kinematics and dynamics for parallel structured closed-loop multibody
systems".
"""
from typing import NamedTuple

import numpy as np

from ..model.errors import StateError
from .legs import actuated_positions, close, leg_pose
from .screws import hat

LOST = 1e-20       # delta_i, relative to the square of the joint's twist, below which nothing of it is left
WORST_CONDITION = 1e12  # of Phi_tot


class SingularPoseError(StateError):
    """A pose in which the actuated joints do not determine the passive ones."""


class LegProjection(NamedTuple):
    """A leg and its passive joints; entries i = k of p~ and P are zero, so that Psi_k = 1."""

    k: int | None
    """Index of the actuated joint, from 0."""
    p: np.ndarray
    """(m, 6) joint twists p_i."""
    A: np.ndarray
    """(m, 6, 6) A_{i,i-1}, from the body before."""
    A_e: np.ndarray
    """(m, 6, 6) A_{ei}, to the end effector."""
    p_t: np.ndarray
    """(m, 6) p~_i."""
    delta: np.ndarray
    """(m,)"""
    P: np.ndarray
    """(m, 6, 6) P_i = p_i p~_i' / delta_i."""
    A_t: np.ndarray
    """(m, 6, 6) A~_{i,i-1} = Psi_i A_{i,i-1}, Psi_i = 1 - P_i A_{ei}."""
    Phi: np.ndarray
    """(6, 6) projector that removes all passive joints, Phi_2."""
    M: np.ndarray
    """(m, 6, 6) mass matrices M_i."""
    pose: tuple
    """`LegPose`"""


class Configuration(NamedTuple):
    """A mechanism at joint positions theta, with all that depends on them."""

    mechanism: object
    legs: tuple
    """LegProjection of each leg."""
    Phi_tot_inverse: np.ndarray
    """(6, 6), zero where the legs end on the ground."""
    A_bar: tuple
    """Abar_ek (6, 6) of each leg with an actuated joint, Phi_tot^-1 Phi_2 A_ek."""
    J: np.ndarray
    """(6, n): t_e = J thetadot."""


class Rates(NamedTuple):
    """Velocities of all joints and bodies."""

    theta: tuple
    """Of all joints, an array (m,) per leg."""
    t: tuple
    """Twists, an array (m, 6) per leg."""
    t_e: np.ndarray
    """(6,)"""


class Factors(NamedTuple):
    """N = Nl Nc Nd: generalised twist t = N thetadot, bodies in the order t_1^(1)..t_1^(n), t_2^(1).."""

    N_l: np.ndarray
    N_c: np.ndarray
    N_d: np.ndarray
    order: tuple
    """(leg, body) of each block row, from 0."""


class Trajectory(NamedTuple):
    """A point of the trajectory (35)."""

    theta: np.ndarray
    thetadot: np.ndarray
    thetadd: np.ndarray


def transport(a):
    """Return A_ij (6, 6) = [[1, 0], [hat(a), 1]] from the vector a (3,) from O_i to O_j."""
    A = np.eye(6)
    A[3:, :3] = hat(a)
    return A


def mass_matrix(mass, d, I_C):
    """Return M_i (6, 6) about O_i: mass [kg], centre d (3,) [m] from O_i, I_C (3, 3) [kg m^2] about the centre."""
    M = np.zeros((6, 6))
    M[:3, :3], M[3:, 3:] = I_C - mass * hat(d) @ hat(d), mass * np.eye(3)
    M[:3, 3:], M[3:, :3] = mass * hat(d), -mass * hat(d)
    return M


def project_leg(leg, theta):
    """Return the `LegProjection` of a leg at theta (m,): the recursion (9)-(12) over its passive joints."""
    pose, m = leg_pose(leg, theta), len(leg.links)
    k = None if leg.k is None else leg.k - 1
    p, A, A_e, M, P, A_t = np.zeros((m, 6)), *np.zeros((5, m, 6, 6))
    p_t, delta, Phi = np.zeros((m, 6)), np.ones(m), np.eye(6)
    before = np.vstack((np.zeros(3), pose.O[:-1]))
    for i, link in enumerate(leg.links):
        p[i, slice(3, 6) if link.prismatic else slice(0, 3)] = pose.e[i]
        A[i] = transport(before[i] - pose.O[i])
        A_e[i] = transport(pose.O[i] - pose.E)
        R = pose.R[i]
        M[i] = mass_matrix(link.mass, R @ link.center, R @ link.inertia @ R.T)
    for i in reversed(range(m)):
        if i == k:
            continue
        at_e = A_e[i] @ p[i]
        p_t[i] = Phi @ at_e
        delta[i] = p_t[i] @ p_t[i]
        if not delta[i] > LOST * (at_e @ at_e):
            raise SingularPoseError(f'Joint {i + 1} moves the end effector as the passive joints after it do.')
        Phi = Phi - np.outer(p_t[i], p_t[i]) / delta[i]
    for i in range(m):
        P[i] = np.outer(p[i], p_t[i]) / delta[i]
        A_t[i] = A[i] - P[i] @ A_e[i] @ A[i]
    return LegProjection(k, p, A, A_e, p_t, delta, P, A_t, Phi, M, pose)


def configure(mechanism, theta):
    """Return the `Configuration` of a mechanism in a closed pose theta, (14b)."""
    legs = tuple(project_leg(leg, position) for leg, position in zip(mechanism.legs, theta))
    inverse = np.zeros((6, 6))  # the end effector on the ground: t_e = 0
    if mechanism.ground_end is None:
        Phi_tot = sum(leg.Phi for leg in legs)
        if not np.linalg.cond(Phi_tot) < WORST_CONDITION:
            raise SingularPoseError('The end effector moves while all actuated joints stand still.')
        inverse = np.linalg.inv(Phi_tot)
    A_bar = tuple(inverse @ legs[l].Phi @ legs[l].A_e[legs[l].k] for l in mechanism.actuated)
    J = np.array([A @ legs[l].p[legs[l].k] for l, A in zip(mechanism.actuated, A_bar)]).T
    return Configuration(mechanism, legs, inverse, A_bar, J)


def rates(configuration, thetadot):
    """Return the `Rates` of all joints at actuated rates thetadot (n,), (11)-(12) from the base outwards."""
    t_e = configuration.J @ thetadot
    of_joints, twists = [], []
    for leg, rate_k in zip(configuration.legs, _of_legs(configuration, thetadot)):
        theta, t, t_before, A_e_before = [], [], np.zeros(6), np.eye(6)
        for i in range(len(leg.p)):
            t_e_i = t_e - leg.A_e[leg.k] @ leg.p[leg.k] * rate_k if _inside(leg, i) else t_e
            rate = leg.p_t[i] @ (t_e_i - A_e_before @ t_before) / leg.delta[i]          # (11b), (12b)
            theta.append(rate_k if i == leg.k else rate)
            t_before, A_e_before = leg.A[i] @ t_before + leg.p[i] * theta[-1], leg.A_e[i]
            t.append(t_before)
        of_joints.append(np.array(theta))
        twists.append(np.array(t))
    return Rates(tuple(of_joints), tuple(twists), t_e)


def accelerations(configuration, motion, thetadd):
    """
    Return accelerations of all joints, an array (m,) per leg, and of all bodies tdot, an array (m, 6) per leg.

    motion: `Rates`; thetadd (n,).  beta is what the rates alone give: with thetadd = 0 in all joints body i has beta_i.
    """
    bodies = list(zip(configuration.legs, motion.t, motion.theta))
    beta_e, biases = [], []
    for leg, t, theta in bodies:
        biases.append(_velocity_products(leg, t, theta))
        beta = np.zeros(6)
        for A, bias in zip(leg.A, biases[-1]):
            beta = A @ beta + bias
        w = hat(t[-1][:3])
        beta_e.append(leg.A_e[-1] @ beta + np.concatenate((np.zeros(3), w @ w @ (leg.pose.E - leg.pose.O[-1]))))
    tdot_e = configuration.J @ thetadd + configuration.Phi_tot_inverse @ sum(
        leg.Phi @ beta for leg, beta in zip(configuration.legs, beta_e))
    of_joints, of_bodies = [], []
    for leg, beta, bias, acceleration_k in zip(configuration.legs, beta_e, biases, _of_legs(configuration, thetadd)):
        theta, tdot, before, moved = [], [], np.zeros(6), np.zeros(6)
        for i in range(len(leg.p)):
            ahead = leg.A_e[leg.k] @ leg.p[leg.k] * acceleration_k if _inside(leg, i) else 0.0
            passive = leg.p_t[i] @ (tdot_e - beta - moved - ahead) / leg.delta[i]
            theta.append(acceleration_k if i == leg.k else passive)
            moved = moved + leg.A_e[i] @ leg.p[i] * theta[-1]
            before = leg.A[i] @ before + leg.p[i] * theta[-1] + bias[i]
            tdot.append(before)
        of_joints.append(np.array(theta))
        of_bodies.append(np.array(tdot))
    return tuple(of_joints), tuple(of_bodies)


def _velocity_products(leg, t, theta):
    """Adot_{i,i-1} t_{i-1} + pdot_i thetadot_i, (m, 6)."""
    bias, before = np.zeros((len(t), 6)), np.zeros(6)
    for i, rate in enumerate(theta):
        w = hat(t[i][:3])
        bias[i] = np.concatenate((w @ leg.p[i][:3], w @ leg.p[i][3:])) * rate
        bias[i, 3:] += hat(before[3:] - t[i][3:]) @ before[:3]
        before = t[i]
    return bias


def denoc_factors(configuration):
    """Return the `Factors` N_l, N_c, N_d, (16)."""
    legs, actuated = configuration.legs, configuration.mechanism.actuated
    order = tuple((l, i) for i in range(max(len(leg.p) for leg in legs)) for l, leg in enumerate(legs)
                  if i < len(leg.p))
    N_l = np.eye(6 * len(order))
    N_c, N_d = np.zeros((6 * len(order), 6 * len(actuated))), np.zeros((6 * len(actuated), len(actuated)))
    for row, (l, i) in enumerate(order):
        leg = legs[l]
        if i > 0:
            above = order.index((l, i - 1))
            N_l[_six(row), :6 * row] = leg.A_t[i] @ N_l[_six(above), :6 * row]
        for column, j in enumerate(actuated):
            if i == leg.k:
                N_c[_six(row), _six(column)] = np.eye(6) * (l == j)
            else:
                A_ek = leg.A_e[leg.k] if _inside(leg, i) and l == j else np.zeros((6, 6))
                N_c[_six(row), _six(column)] = leg.P[i] @ (configuration.A_bar[column] - A_ek)   # P_i corrected
    for column, l in enumerate(actuated):
        N_d[_six(column), column] = legs[l].p[legs[l].k]
    return Factors(N_l, N_c, N_d, order)


def inverse_dynamics(configuration, thetadot, thetadd):
    """Return tau (n,) [N m or N] at thetadot, thetadd (n,): recursions (18)-(24), linear in the number of joints."""
    legs, actuated = configuration.legs, configuration.mechanism.actuated
    motion = rates(configuration, thetadot)
    _, tdots = accelerations(configuration, motion, thetadd)
    w_t, S = [], np.zeros(6)
    for leg, t, tdot in zip(legs, motion.t, tdots):
        below, A_below = np.zeros(6), np.eye(6)
        w_t.append(np.zeros((len(t), 6)))
        for i in reversed(range(len(t))):
            below = w_t[-1][i] = _wrench(leg.M[i], t[i], tdot[i], configuration.mechanism.gravity) + A_below.T @ below
            A_below = leg.A_t[i]
            S += leg.P[i].T @ below
    tau = []
    for l, A_bar in zip(actuated, configuration.A_bar):
        leg = legs[l]
        inner = sum((leg.P[i].T @ w_t[l][i] for i in range(leg.k)), np.zeros(6))
        w_bar = w_t[l][leg.k] + A_bar.T @ S - leg.A_e[leg.k].T @ inner                   # (22)
        tau.append(leg.p[leg.k] @ w_bar)                                                 # (24)
    return np.array(tau)


def _wrench(M, t, tdot, gravity):
    """w_i = M_i tdot_i + W_i M_i E_i t_i, with gravity as an acceleration of the ground, (18)."""
    w = hat(t[:3])
    momentum = M[:, :3] @ t[:3]
    return (M @ (tdot - np.concatenate((np.zeros(3), gravity)))
            + np.concatenate((w @ momentum[:3], w @ momentum[3:])))


def generalized_inertia(configuration):
    """Return the generalised inertia matrix I (n, n), I = N' M N leg by leg, (26)-(34)."""
    legs, actuated = configuration.legs, configuration.mechanism.actuated
    X, Y, Z = np.zeros((6, 6)), {}, {}
    for l, leg in enumerate(legs):
        m, k = len(leg.p), leg.k
        M = _composite(leg)                                                              # (27)-(28)
        passive = [i for i in range(m) if i != k]
        X += sum(leg.P[r].T @ M[r, c] @ leg.P[c] for r in passive for c in passive)      # (31)
        if k is None:
            continue
        A_ek, none = leg.A_e[k], np.zeros((6, 6))
        ahead = sum((M[:, c] @ leg.P[c] @ A_ek for c in range(k)), np.zeros((m, 6, 6)))
        Y[l] = sum((leg.P[r].T @ (M[r, k] - ahead[r]) for r in passive), none)           # (32)
        inner = sum((A_ek.T @ leg.P[r].T @ ahead[r] for r in range(k)), none)
        Z[l] = M[k, k] - ahead[k] - ahead[k].T + inner                                   # (33)
    I = np.zeros((len(actuated), len(actuated)))
    for row, (i, A_i) in enumerate(zip(actuated, configuration.A_bar)):
        for column, (j, A_j) in enumerate(zip(actuated, configuration.A_bar)):
            M_bar = (i == j) * Z[i] + A_i.T @ X @ A_j + A_i.T @ Y[j] + Y[i].T @ A_j      # (30)
            I[row, column] = legs[i].p[legs[i].k] @ M_bar @ legs[j].p[legs[j].k]         # (34)
    return I


def _composite(leg):
    """M~_ij (m, m, 6, 6): M~_i = M_i + A~_{i+1,i}' M~_{i+1} A~_{i+1,i}, M~_ij = M~_i A~_ij for i >= j."""
    m = len(leg.p)
    M = np.zeros((m, m, 6, 6))
    for i in reversed(range(m)):
        M[i, i] = leg.M[i] if i == m - 1 else leg.M[i] + leg.A_t[i + 1].T @ M[i + 1, i + 1] @ leg.A_t[i + 1]
        for j in reversed(range(i)):
            M[i, j] = M[i, j + 1] @ leg.A_t[j + 1]
            M[j, i] = M[i, j].T
    return M


def bias(configuration, thetadot):
    """Return C thetadot (n,), gravity included."""
    return inverse_dynamics(configuration, thetadot, np.zeros_like(thetadot))


def forward_dynamics(configuration, thetadot, tau):
    """Return thetadd (n,) = I^-1 (tau - C thetadot) at thetadot, tau (n,)."""
    return np.linalg.solve(generalized_inertia(configuration), tau - bias(configuration, thetadot))


def trajectory(t, T, theta_0, theta_T):
    """Return the `Trajectory` at time t of T [s] from theta_0 to theta_T (n,), at rest at both ends, (35)."""
    theta_0, way = np.asarray(theta_0, float), np.subtract(theta_T, theta_0)
    phase = 2 * np.pi * t / T
    return Trajectory(theta_0 + way * (phase - np.sin(phase)) / (2 * np.pi), way / T * (1 - np.cos(phase)),
                      way * 2 * np.pi / T**2 * np.sin(phase))


def feedback(configuration, theta, thetadot, desired, rate=1.0):
    """Return tau (n,) that leads theta, thetadot (n,) to the desired `Trajectory` at lambda = rate [1/s], (37)."""
    effective = (desired.thetadd - 2 * rate * (thetadot - desired.thetadot) - rate**2 * (theta - desired.theta))
    return generalized_inertia(configuration) @ effective + bias(configuration, thetadot)


def state_rate(mechanism, y, control):
    """
    Return the rate of the state y = (theta of all joints, leg by leg, thetadot of the actuated), for any integrator.

    control(configuration, theta, thetadot) gives tau (n,) from the positions and rates of the actuated joints.  The
    passive joints in y tell the assembly mode; the legs are closed before anything is computed.
    """
    ends = np.cumsum([len(leg.links) for leg in mechanism.legs])
    *theta, thetadot = np.split(y, ends)
    theta = close(mechanism, theta)
    configuration = configure(mechanism, theta)
    tau = control(configuration, actuated_positions(mechanism, theta), thetadot)
    thetadd = forward_dynamics(configuration, thetadot, tau)
    return np.concatenate((*rates(configuration, thetadot).theta, thetadd))


def _inside(leg, i):
    """Tell whether joint i is between the ground and the actuated joint."""
    return leg.k is not None and i < leg.k


def _of_legs(configuration, values):
    """Values (n,) of actuated joints for every leg, 0 where a leg has none."""
    given = dict(zip(configuration.mechanism.actuated, values))
    return [given.get(l, 0.0) for l in range(len(configuration.legs))]


def _six(i):
    return slice(6 * i, 6 * i + 6)
