"""Exact derivatives of dynamics: of accelerations and efforts by position, velocity, effort and acceleration.

A position of a floating base changes by a displacement (6,) in its own axes: (v, w) dt, not by its quaternion; its six
rows and columns come first.  Held while the state changes: `base`, wrenches in the axes of their links, and efforts on
joints up to the slopes that are given for them.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from ...kernels.derivatives.entry import arrays_of, forward_derivatives, inverse_derivatives, make_scratch
from ...kernels.rigid_body.mechanism import Handle
from ...kernels.runtime.status import OK
from ...model.errors import UnknownNameError
from ..arguments import Array, Efforts, Vector, Wrenches, coordinate_names, vector
from ..environment import BaseDrive, BaseMotion
from ..errors_from_status import check
from ..hybrid import partition
from ..inputs import environment_at, named_efforts, one_state, plain
from ..kinematics import module_positions, transmission
from ..results.result import Result

if TYPE_CHECKING:
    from ..inputs import Environment
    from ..manipulator import Manipulator

Slopes: TypeAlias = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, repr=False, eq=False)
class ForwardDerivatives(Result):
    """Derivatives of `forward_dynamics`; f (actuators,)."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'dxdd_dx': ('xdd', 'xd'), 'dxdd_dxd': ('xdd', 'xd'),
                                                     'dxdd_df': ('xdd', 'f')}

    dxdd_dx: Array
    """(dof, dof)"""
    dxdd_dxd: Array
    """(dof, dof)"""
    dxdd_df: Array
    """(dof, actuators); M^-1 where the coordinates are the actuators."""


@dataclass(frozen=True, repr=False, eq=False)
class InverseDerivatives(Result):
    """Derivatives of `inverse_dynamics` (actuators, dof), or of `generalized_forces` (dof, dof)."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'df_dx': ('f', 'xd'), 'df_dxd': ('f', 'xd'),
                                                     'df_dxdd': ('f', 'xdd')}

    df_dx: Array
    df_dxd: Array
    df_dxdd: Array


@dataclass(frozen=True, repr=False, eq=False)
class HybridDerivatives(Result):
    """Derivatives of `hybrid_dynamics`, each (dof, dof): rows of what follows, zero in the rows of what is given.

    given: the effort of a free coordinate, the acceleration of a driven one.
    """

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **dict.fromkeys(('dxdd_dx', 'dxdd_dxd', 'dxdd_dgiven'), ('xdd', 'xd')),
        **dict.fromkeys(('df_dx', 'df_dxd', 'df_dgiven'), ('forces', 'xd'))}

    dxdd_dx: Array
    dxdd_dxd: Array
    dxdd_dgiven: Array
    """A driven coordinate follows its own given acceleration: one on the diagonal."""
    df_dx: Array
    df_dxd: Array
    df_dgiven: Array
    """A free coordinate has its own given effort: one on the diagonal."""


def forward_dynamics_derivatives(manipulator: Manipulator, x: Vector, xd: Vector, f: Vector, *,
                                 base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None,
                                 joint_efforts: Efforts | None = None, joint_slopes: Slopes | None = None
                                 ) -> ForwardDerivatives:
    """Return the `ForwardDerivatives` at one state; arguments and errors as `forward_dynamics`.

    joint_slopes: {joint: (by position, by rate)}, the derivatives of the efforts that `joint_efforts` names.
    """
    m = manipulator
    D, by_f = np.empty((3, m.dof, m.dof)), np.empty((m.dof, len(m.actuators)))
    undisturbed = base is None and not (wrenches or joint_efforts or joint_slopes)
    if undisturbed and plain(x, xd, f) and forward_derivatives(*m.derivative_buffers, x, xd, f, D, by_f) == OK:
        return ForwardDerivatives(D[0], D[1], by_f, axes=m.axes)
    x, xd, f = one_state(m, x=x, xd=xd, f=f)
    around, scratch = _environment_with_scratch(m, x, xd, base, wrenches, joint_efforts, joint_slopes)
    buffers = around.handle.tree, around.handle.loops, scratch
    if around.driven is None:
        check(m, forward_derivatives(*buffers, x, xd, f, D, by_f), x=x, xd=xd, f=f)
        return ForwardDerivatives(D[0], D[1], by_f, axes=m.axes)
    xdd = m.forward_dynamics(x, xd, f, base=base, wrenches=wrenches, joint_efforts=joint_efforts)
    check(m, inverse_derivatives(*buffers, x, xd, xdd, np.empty(m.dof), D), x=x, xd=xd, f=f)
    D[0, m.dof - len(m.coordinates):] -= np.einsum(
        'ijx,i->jx', _curvature(m, around.handle, arrays_of(scratch, around.handle.loops)), f)
    by_x, by_xd, by_effort, *_ = _hybrid(D, around.driven)
    free = around.driven == 0.0
    return ForwardDerivatives(by_x, by_xd, by_effort[:, free] @ m.actuator_map(x).T[free], axes=m.axes)


def inverse_dynamics_derivatives(manipulator: Manipulator, x: Vector, xd: Vector, xdd: Vector, *,
                                 base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None,
                                 joint_efforts: Efforts | None = None, joint_slopes: Slopes | None = None
                                 ) -> InverseDerivatives:
    """Return the `InverseDerivatives` (actuators, dof) of the actuator efforts; see `forward_dynamics_derivatives`.

    With other actuators than coordinates they are those of the efforts that `allocation` chooses, where one at
    its limit stays there.  Coordinates of a floating base that a `BaseDrive` frees accelerate as they then do.
    """
    m, first = manipulator, manipulator.dof - len(manipulator.coordinates)
    allocation = m.allocation
    if m.actuators == m.coordinates and not allocation.limited:
        whole = generalized_forces_derivatives(m, x, xd, xdd, base=base, wrenches=wrenches,
                                               joint_efforts=joint_efforts, joint_slopes=joint_slopes)
        return whole if first == 0 else InverseDerivatives(*(each[first:] for each in whole), axes=m.axes)
    f = m.inverse_dynamics(x, xd, xdd, base=base, wrenches=wrenches, joint_efforts=joint_efforts)
    D, handle, slopes = slopes_of_efforts(m, x, xd, xdd, base, wrenches, joint_efforts, joint_slopes)
    free = (allocation.lower < f) & (f < allocation.upper)
    return InverseDerivatives(*effort_derivatives(
        m.actuator_map(x)[:, first:], _curvature(m, handle, slopes), f, D[:, first:], allocation.weights,
        allocation.preload, free), axes=m.axes)


def generalized_forces_derivatives(manipulator: Manipulator, x: Vector, xd: Vector, xdd: Vector, *,
                                   base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None,
                                   joint_efforts: Efforts | None = None, joint_slopes: Slopes | None = None
                                   ) -> InverseDerivatives:
    """Return the `InverseDerivatives` (dof, dof) of M xdd + bias; see `forward_dynamics_derivatives`."""
    m = manipulator
    undisturbed = base is None and not (wrenches or joint_efforts or joint_slopes)
    if undisturbed and plain(x, xd, xdd):
        f, D = np.empty(m.dof), np.empty((3, m.dof, m.dof))
        if inverse_derivatives(*m.derivative_buffers, x, xd, xdd, f, D) == OK:
            return InverseDerivatives(*D, axes={**m.axes, 'f': m.axes['forces']})
    slopes = slopes_of_efforts(m, x, xd, xdd, base, wrenches, joint_efforts, joint_slopes)[0]
    return InverseDerivatives(*slopes, axes={**m.axes, 'f': m.axes['forces']})


def hybrid_dynamics_derivatives(manipulator: Manipulator, x: Vector, xd: Vector, *,
                                accelerations: Mapping[str, npt.ArrayLike] | None = None,
                                efforts: Mapping[str, npt.ArrayLike] | None = None,
                                base: BaseMotion | None = None, wrenches: Wrenches | None = None,
                                joint_efforts: Efforts | None = None, joint_slopes: Slopes | None = None
                                ) -> HybridDerivatives:
    """Return the `HybridDerivatives` at one state; arguments and errors as `hybrid_dynamics`."""
    m = manipulator
    x, xd = one_state(m, x=x, xd=xd)
    driven, *_ = partition(m, (), accelerations or {}, efforts or {})
    xdd, _ = m.hybrid_dynamics(x, xd, accelerations=accelerations, efforts=efforts, base=base, wrenches=wrenches,
                               joint_efforts=joint_efforts)
    around, scratch = _environment_with_scratch(m, x, xd, base, wrenches, joint_efforts, joint_slopes)
    D = np.empty((3, m.dof, m.dof))
    check(m, inverse_derivatives(around.handle.tree, around.handle.loops, scratch, x, xd, xdd, np.empty(m.dof), D),
          x=x, xd=xd, xdd=xdd)
    return HybridDerivatives(*_hybrid(D, driven), axes=m.axes)


def _hybrid(D: Array, driven: Array) -> Array:
    """Return (6, dof, dof): `HybridDerivatives` from D (3, dof, dof), those of f = ID(x, xd, xdd).

    With D what is driven and U what is free, and M = df/dxdd:
    dxdd_U = M_UU^-1 (df_U - f_U,s ds - M_UD dxdd_D),    df_D = f_D,s ds + M_DU dxdd_U + M_DD dxdd_D,    s: x or xd.
    """
    held, free, M = np.flatnonzero(driven), np.flatnonzero(driven == 0.0), D[2]
    by = np.zeros((6, *M.shape))
    by[2][held, held] = by[5][free, free] = 1.0
    by[:2, free], given = -D[:2, free], np.eye(len(M))[free]
    given[:, held] = -M[np.ix_(free, held)]
    by[2, free] = given
    by[:3, free] = np.linalg.solve(M[np.ix_(free, free)], by[:3, free])
    by[3:5, held] = D[:2, held]
    by[3:, held] += M[held] @ by[:3]
    return by


def slopes_of_efforts(m: Manipulator, x: Any, xd: Any, xdd: Any, base: BaseMotion | BaseDrive | None,
                      wrenches: Wrenches | None, joint_efforts: Efforts | None, joint_slopes: Any
                      ) -> tuple[Array, Handle, Any]:
    """Return (derivatives (3, dof, dof) of the efforts on the coordinates, handle, `Scratch`) at one state."""
    x, xd, xdd = one_state(m, x=x, xd=xd, xdd=xdd)
    around, scratch = _environment_with_scratch(m, x, xd, base, wrenches, joint_efforts, joint_slopes)
    free = np.zeros(0, int)
    if around.driven is not None:
        free = np.flatnonzero(around.driven[:6] == 0.0)
        names = coordinate_names(m)
        xdd, _ = m.hybrid_dynamics(
            x, xd, efforts={names[k]: 0.0 for k in free}, wrenches=wrenches, joint_efforts=joint_efforts,
            accelerations={name: value for k, (name, value) in enumerate(zip(names, xdd)) if k not in free})
    handle, D = around.handle, np.empty((3, m.dof, m.dof))
    check(m, inverse_derivatives(handle.tree, handle.loops, scratch, x, xd, xdd, np.empty(m.dof), D),
          x=x, xd=xd, xdd=xdd)
    if free.size:
        coupling = np.linalg.solve(D[2][np.ix_(free, free)], D[:, free])
        D -= D[2][:, free].copy() @ coupling
    return D, handle, arrays_of(scratch, handle.loops)


def _environment_with_scratch(m: Manipulator, x: Array, xd: Array, base: BaseMotion | BaseDrive | None,
                              wrenches: Wrenches | None, joint_efforts: Efforts | None,
                              joint_slopes: Any) -> tuple[Environment, Any]:
    """Return (`Environment`, scratch buffer) with the efforts on joints and their slopes."""
    around = environment_at(m, x, base, wrenches, joint_efforts)
    scratch = make_scratch(around.handle)
    efforts, slopes = dict(named_efforts(m, joint_efforts or {})), joint_slopes or {}
    positions = None
    acting = arrays_of(scratch, around.handle.loops).acting
    # an effort through the changing ratio of a triangle has a slope, even where it is constant itself
    for joint in {**efforts, **slopes}:
        if joint not in efforts:
            raise UnknownNameError(f"joint_slopes of '{joint}', on which joint_efforts has no effort")
        by_position, by_rate = vector(f"slopes of the effort on '{joint}'", slopes.get(joint, (0.0, 0.0)), 2)
        k = m.machine.module_of(joint)
        if joint == m.machine.modules[k].name:
            acting[:, k] += by_position, by_rate
            continue
        positions = module_positions(m, x) if positions is None else positions
        ratio, ratio_slope = transmission(m, k, joint, positions[k])
        rate = xd[m.machine.records['coordinate'][k]]
        acting[0, k] += ratio_slope * efforts[joint] + ratio * (by_position * ratio + by_rate * ratio_slope * rate)
        acting[1, k] += ratio * ratio * by_rate
    return around, scratch


def effort_derivatives(A: Array, curvature: Array, f: Array, needed: Array, weights: Array, preload: Array,
                       free: Array) -> Array:
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


def _curvature(m: Manipulator, handle: Handle, scratch: Any) -> Array:
    """Return dA/dx (actuators, joint coordinates, dof)."""
    first, loops = m.dof - len(m.coordinates), handle.arrays.loops
    out = np.zeros((len(m.actuators), len(m.coordinates), m.dof))
    for k in np.flatnonzero((handle.modules['actuator'] >= 0) & (handle.modules['cluster'] >= 0)):
        b = handle.modules[k]
        cluster = loops.clusters[b['cluster']]
        part = loops.cluster_joints[cluster['first']:cluster['first'] + cluster['joints']]
        part = part[part['independent'] >= 0]
        dG_dy = scratch.slopes.dG_dy[b['cluster_joint']]
        out[np.ix_([b['actuator']], part['coordinate'] - first, part['coordinate'])] = dG_dy[
            np.ix_(part['independent'], part['independent'])]
    return out
