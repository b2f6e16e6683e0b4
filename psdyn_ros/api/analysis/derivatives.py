"""Exact derivatives of dynamics: of accelerations and efforts by position, velocity, effort and acceleration.

A position of a floating base changes by a displacement (6,) in its own axes: (v, w) dt, not by its quaternion; its six
rows and columns come first.  Held while the state changes: `base`, wrenches in the axes of their links, and efforts on
joints up to the slopes that are given for them.
"""
from typing import NamedTuple

import numpy as np

from ...assembly.clusters import actuator_map
from ...kernels.derivatives import general as general
from ...kernels.derivatives import recursion as closed_form
from ...kernels.derivatives.body import BODY
from ...kernels.derivatives.clusters import slopes_of
from ...kernels.rigid_body.energy import joint_states
from ...kernels.rigid_body.general_entry import forward_general
from ...model.errors import ShapeError, UnknownNameError
from ..arguments import vector

FLOAT = np.dtype(float)


class ForwardDerivatives(NamedTuple):
    """Derivatives of `forward_dynamics`; f (actuators,)."""

    dxdd_dx: np.ndarray
    """(dof, dof)"""
    dxdd_dxd: np.ndarray
    """(dof, dof)"""
    dxdd_df: np.ndarray
    """(dof, actuators); M^-1 where the coordinates are the actuators."""


class InverseDerivatives(NamedTuple):
    """Derivatives of `inverse_dynamics` (actuators, dof), or of `generalized_forces` (dof, dof)."""

    df_dx: np.ndarray
    df_dxd: np.ndarray
    df_dxdd: np.ndarray


def forward_dynamics_derivatives(manipulator, x, xd, f, *, base=None, wrenches=None, joint_efforts=None,
                                 joint_slopes=None):
    """Return the `ForwardDerivatives` at one state; arguments and errors as `forward_dynamics`.

    joint_slopes: {joint: (by position, by rate)}, the derivatives of the efforts that `joint_efforts` names.
    """
    m = manipulator
    if m.machine.general:
        return _general_forward(m, x, xd, f, base, wrenches, joint_efforts, joint_slopes)
    n, (mods, work, env) = m.dof, m.records
    bodies, out, D = np.empty(3 * n, BODY), np.empty((2, n)), np.empty((3, n, n))
    alone = base is None and not (wrenches or joint_efforts or joint_slopes)
    # the short way: the kernel checks sizes and numbers, the long one below says what is wrong
    if alone and _plain(x, xd, f) and closed_form.forward_derivatives(
            mods, work, bodies, env, x, xd, f, out[0], D[0], D[1], D[2], out[1]) == 0:
        return ForwardDerivatives(D[0], D[1], D[2])
    x, xd, f = m._state(x=x, xd=xd, f=f)
    efforts, env = _triangle_efforts(m, x, xd, joint_efforts, joint_slopes), m._environment(x, base, wrenches)[0]
    m._check(closed_form.forward_derivatives(
        mods, work, bodies, env, x, xd, f + efforts[0], out[0], D[0], D[1], D[2], out[1]), x)
    D[0] += D[2] * efforts[1]
    D[1] += D[2] * efforts[2]
    return ForwardDerivatives(*D)


def inverse_dynamics_derivatives(manipulator, x, xd, xdd, *, base=None, wrenches=None, joint_efforts=None,
                                 joint_slopes=None):
    """Return the `InverseDerivatives` (actuators, dof) of the actuator efforts; see `forward_dynamics_derivatives`.

    With more actuators than joint coordinates they are those of the efforts that `allocation` chooses, where one at
    its limit stays there.  Coordinates of a floating base that a `BaseDrive` frees accelerate as they then do.
    """
    m = manipulator
    if not m.machine.general:
        return generalized_forces_derivatives(m, x, xd, xdd, base=base, wrenches=wrenches,
                                              joint_efforts=joint_efforts, joint_slopes=joint_slopes)
    f = m.inverse_dynamics(x, xd, xdd, base=base, wrenches=wrenches, joint_efforts=joint_efforts)
    D, loops, slopes = _general_inverse(m, x, xd, xdd, base, wrenches, joint_efforts, joint_slopes)
    allocation = m.allocation
    free = (allocation.lower < f) & (f < allocation.upper)
    return InverseDerivatives(*effort_derivatives(
        actuator_map(loops), _curvature(loops, slopes, m.dof), f, D[:, loops.base:], allocation.weights,
        allocation.preload, free))


def generalized_forces_derivatives(manipulator, x, xd, xdd, *, base=None, wrenches=None, joint_efforts=None,
                                   joint_slopes=None):
    """Return the `InverseDerivatives` (dof, dof) of M xdd + bias; see `forward_dynamics_derivatives`."""
    m = manipulator
    if m.machine.general:
        return InverseDerivatives(
            *_general_inverse(m, x, xd, xdd, base, wrenches, joint_efforts, joint_slopes)[0])
    n, (mods, _, env) = m.dof, m.records
    bodies, f, D = np.empty(3 * n, BODY), np.empty(n), np.empty((3, n, n))
    alone = base is None and not (wrenches or joint_efforts or joint_slopes)
    if alone and _plain(x, xd, xdd) and closed_form.inverse_derivatives(
            mods, bodies, env, x, xd, xdd, f, D[0], D[1], D[2]) == 0:
        return InverseDerivatives(D[0], D[1], D[2])
    x, xd, xdd = m._state(x=x, xd=xd, xdd=xdd)
    efforts, env = _triangle_efforts(m, x, xd, joint_efforts, joint_slopes), m._environment(x, base, wrenches)[0]
    m._check(closed_form.inverse_derivatives(mods, bodies, env, x, xd, xdd, f, D[0], D[1], D[2]), x)
    D[0] -= np.diag(efforts[1])
    D[1] -= np.diag(efforts[2])
    return InverseDerivatives(*D)


def _plain(*arrays):
    """Return True for the vectors that kernels are compiled for; others would make Numba compile again."""
    return all(type(array) is np.ndarray and array.dtype is FLOAT and array.ndim == 1 and array.flags.carray
               for array in arrays)


def _general_forward(m, x, xd, f, base, wrenches, joint_efforts, joint_slopes):
    x, xd, f = _one_state(m, x=x, xd=xd, f=f)
    env, drive = m._surroundings(x, base, wrenches)
    acting = _module_efforts(m, x, xd, joint_efforts, joint_slopes)
    n, (mods, work, _), loops = m.dof, m.records, m.loops
    xdd, D, by_f, slopes = np.empty(n), np.empty((3, n, n)), np.empty((n, len(f))), slopes_of(loops, len(mods), n)
    m._check_all(forward_general(mods, work, env, loops, drive, x, xd, f, acting[0], xdd), x=x, xd=xd, f=f)
    np.add.at(acting[0], loops.driven, f)
    status = general.general_derivatives(
        mods, np.empty(3 * len(mods), BODY), env, loops, slopes, x, xd, xdd, acting, np.empty(n), *D)
    m._check_all(status, x=x, xd=xd, f=f)
    general.accelerations(loops, slopes, drive, D[0], D[1], by_f, D[2])
    return ForwardDerivatives(D[0], D[1], by_f)


def _general_inverse(m, x, xd, xdd, base, wrenches, joint_efforts, joint_slopes):
    """Return (derivatives (3, dof, dof) of the efforts on the coordinates, closed loops, their slopes)."""
    x, xd, xdd = _one_state(m, x=x, xd=xd, xdd=xdd)
    env, drive = m._surroundings(x, base, wrenches)
    acting = _module_efforts(m, x, xd, joint_efforts, joint_slopes)
    free = np.flatnonzero(drive[0] == 0.0) if m.floating and base is not None else np.zeros(0, int)
    if free.size:
        xdd = m._with_free_base(x, xd, xdd, drive, wrenches, joint_efforts)
    n, mods = m.dof, m.records.mods
    # what stays in this scratch is read below
    loops, slopes, f, D = m._closed(x, xd, xdd)[0], slopes_of(m.loops, len(mods), n), np.empty(n), np.empty((3, n, n))
    status = general.general_derivatives(
        mods, np.empty(3 * len(mods), BODY), env, loops, slopes, x, xd, xdd, acting, f, *D)
    m._check_all(status, x=x, xd=xd, xdd=xdd)
    if free.size:
        coupling = np.linalg.solve(D[2][np.ix_(free, free)], D[:, free])
        D -= D[2][:, free].copy() @ coupling
    return D, loops, slopes


def _one_state(m, **values):
    for label, value in values.items():
        if np.ndim(value) != 1:
            raise ShapeError(f'{label} has shape {np.shape(value)}; derivatives are taken at one state')
    return m._arrays(**values)


def effort_derivatives(A, curvature, f, needed, weights, preload, free):
    """Return the derivatives (3, actuators, dof) of efforts f with A' f = `needed`, of least weighted norm.

    A: (actuators, n), rates of the actuators for those of the joint coordinates.  curvature: dA/dx (actuators, n, dof).
    needed: (3, n, dof) derivatives of the forces by x, xd, xdd.  weights, preload, free: (actuators,); an effort that
    is not free stays at its limit.

    Free efforts are f = preload + W^-1 A mu, so that with the QR factors of W^-1/2 A, and u = W^-1/2 dA mu,

        W^1/2 df = u - Q Q' u + Q R^-T (d needed - dA' f)
    """
    scale = 1.0 / np.sqrt(weights[free])
    Q, R = np.linalg.qr(scale[:, None] * A[free])
    mu = np.linalg.solve(R, Q.T @ ((f - preload)[free] / scale))
    out = np.zeros((3, len(A), needed.shape[2]))
    out[:, free] = scale[:, None] * (Q @ np.linalg.solve(R.T, needed))
    u = scale[:, None] * np.einsum('ijx,j->ix', curvature[free], mu)
    change = u - Q @ (Q.T @ u) - Q @ np.linalg.solve(R.T, np.einsum('ijx,i->jx', curvature, f))
    out[0, free] += scale[:, None] * change
    return out


def _curvature(loops, slopes, dof):
    """Return dA/dx (actuators, joint coordinates, dof)."""
    out = np.zeros((len(loops.driven), dof - loops.base, dof))
    for row, k in enumerate(loops.driven):
        if loops.own[k] >= 0:
            continue
        cluster = loops.clusters[loops.cluster_of[k]]
        part = loops.tied[cluster['first']:cluster['first'] + cluster['joints']]
        part = part[part['independent'] >= 0]
        curve = slopes.curve[loops.member[k]]
        out[np.ix_([row], part['coordinate'] - loops.base, part['coordinate'])] = curve[
            np.ix_(part['independent'], part['independent'])]
    return out


def _slopes(m, joint_efforts, joint_slopes):
    """Return {joint: (effort, by position, by rate)}."""
    efforts = dict(m._named_efforts(joint_efforts or {}))
    slopes = {joint: tuple(vector(f"slopes of the effort on '{joint}'", value, 2))
              for joint, value in (joint_slopes or {}).items()}
    for joint in slopes:
        if joint not in efforts:
            raise UnknownNameError(f"joint_slopes of '{joint}', on which joint_efforts has no effort")
    return {joint: (effort, *slopes.get(joint, (0.0, 0.0))) for joint, effort in efforts.items()}


def _triangle_efforts(m, x, xd, joint_efforts, joint_slopes):
    """Return efforts on the coordinates, and their derivatives by x and by xd, (3, dof)."""
    out = np.zeros((3, m.dof))
    for joint, effort in _slopes(m, joint_efforts, joint_slopes).items():
        k = _module_of(m, joint)
        i = m.records.mods['coordinate'][k]
        out[:, i] += _through_transmission(m, k, joint, x, xd[i], *effort)
    return out


def _module_efforts(m, x, xd, joint_efforts, joint_slopes):
    """Return efforts on the modules, and their derivatives by position and rate of the module, (3, modules)."""
    out = np.zeros((3, len(m.records.mods)))
    named = _slopes(m, joint_efforts, joint_slopes)
    if named:
        z = m._closed(x, xd, np.zeros(m.dof))[0].z
        for joint, effort in named.items():
            k = _module_of(m, joint)
            out[:, k] += _through_transmission(m, k, joint, z[0], z[1, k], *effort)
    return out


def _module_of(m, joint):
    return int(np.argwhere(m.records.mods['joint'] == m.joints.index(joint))[0][0])


def _through_transmission(m, k, joint, z, zd, effort, by_position, by_rate):
    """Return the effort on module k, and its derivatives, of an effort on one of its joints.

    q = q(z) with rate k and slope k' = dk/dz: k tau(q, k zd).
    """
    q = np.zeros((3, len(m.joints)))
    m._check(joint_states(m.records.mods[k:k + 1], z, np.ones(len(z)), np.zeros(len(z)), q[0], q[1], q[2]), z)
    rate, slope = q[1:, m.joints.index(joint)]
    return rate * effort, slope * effort + rate * (by_position * rate + by_rate * slope * zd), rate * rate * by_rate
