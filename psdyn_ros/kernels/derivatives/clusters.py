"""Exact derivatives taken through the loops: of G, of qd and of qdd by the independent coordinates, and of the efforts.

A change of y_a displaces every body of a cluster by the twist G_a.  Along it, with G_b held or real rates,

    K dG_b/dy_a + d_a(phi_b) = 0       phi_b = K G_b, the rate of a constraint for unit rate of y_b
    dqd/dy_a  = sum_b dG_b/dy_a yd_b   dqdd/dyd_a = 2 dqd/dy_a, since g = sum_ab dG_b/dy_a yd_a yd_b
    K dqdd/dy_a + d_a(phi'') = 0       phi'' = K qdd - k, the second rate, with dqd/dy_a put in

d_a is the tangent of the recursion of twists and accelerations of the bodies: no third-order tensors.
All vectors are in the axes of the cluster's base body, about its origin. With z the positions of all modules,
tau(z, zd, zdd) the efforts on them, and dz = G dx,

    f       = G' tau
    df/dx   = G' (tau_z G + tau_zd dzd/dx + tau_zdd dzdd/dx) + (dG/dx)' tau
    df/dxd  = G' (tau_zd G + tau_zdd dzdd/dxd)                 df/dxdd = M = G' tau_zdd G
"""
from typing import NamedTuple

import numpy as np

from ..algebra.linear import least_squares
from ..algebra.spatial import add, cross, cross_motion, dot, null, pair, plus, store, sub, times
from ..loops.constraints import at_body, direction_of, linearise, place_joints
from ..loops.records import MIMIC, POSITION
from ..rigid_body.friction import friction_slope, joint_friction, pin_axis
from ..runtime.buffer import FLOAT, matrix, records, stack
from ..runtime.compiler import inner, kernel
from .joints import is_base

SHIFTED = np.dtype([
    ('shift', 'f8', 6),                                     # displacement of the body by a change of y_a
    ('velocity', 'f8', 6), ('velocity_shift', 'f8', 6),     # twist, and its change
    ('acceleration', 'f8', 6), ('acceleration_shift', 'f8', 6),
], align=True)


class Slopes(NamedTuple):
    """Scratch of the derivatives of a machine with clusters; m = 6 for a floating base + modules."""

    tree: np.ndarray            # (3, m, m) derivatives of the efforts on all modules by position, rate, acceleration
    effort: np.ndarray          # (m,)
    z: np.ndarray               # (4, m, dof) dz/dx, dzd/dx, dzdd/dx, dzdd/dxd of module positions z; dz/dx = dzd/dxd
    product: np.ndarray         # (m, dof)
    dG_dy: np.ndarray           # (cluster joints, largest freedom, largest freedom) dG_b/dy_a
    bodies: np.ndarray          # (cluster joints,) SHIFTED
    rates: np.ndarray           # (4, cluster joints) change of q, rate, change of the rate, acceleration
    A: np.ndarray               # (most rows + 1, most joints + 1 + largest freedom^2)
    pin: np.ndarray             # (largest freedom + 1, largest freedom) rates of a closing pin and their changes


SLOPES = (FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, SHIFTED, FLOAT, FLOAT, FLOAT)     # types of the fields of `Slopes`


def slope_arrays(loops, modules, dof):
    """Return the arrays of `Slopes` for the `Loops` of a machine; nothing where it is None."""
    if loops is None:
        return []
    m, cluster_joints = int(loops.base) + modules, len(loops.cluster_joints)
    freedom = int(loops.clusters['freedom'].max(initial=0))
    columns = int(loops.clusters['joints'].max(initial=0)) + 1 + freedom * freedom
    return [np.zeros((3, m, m)), np.zeros(m), np.zeros((4, m, dof)), np.zeros((m, dof)),
            np.zeros((cluster_joints, freedom, freedom)), np.zeros(cluster_joints, SHIFTED),
            np.zeros((4, cluster_joints)), np.zeros((int(loops.clusters['rows'].max(initial=0)) + 1, columns)),
            np.zeros((freedom + 1, freedom))]


@kernel
def bind_slopes(scratch, first, loops):
    """Return the `Slopes` in a buffer from array `first` on; None of a machine without clusters."""
    if loops is None:
        return None
    return Slopes(
        stack(scratch, first)[0], records(scratch, first + 1, FLOAT)[0], stack(scratch, first + 2)[0],
        matrix(scratch, first + 3)[0], stack(scratch, first + 4)[0], records(scratch, first + 5, SHIFTED)[0],
        matrix(scratch, first + 6)[0], matrix(scratch, first + 7)[0], matrix(scratch, first + 8)[0])


@inner
def perturb_bodies(loops, slopes, c):
    """Set motion of the bodies of cluster c, and its change, from the rates of the joints in `slopes.rates`."""
    dq, qd, dqd, qdd = slopes.rates[0], slopes.rates[1], slopes.rates[2], slopes.rates[3]
    for j in range(c['first'], c['first'] + c['joints']):
        u, s = slopes.bodies[j], pair(loops.work[j]['screw'])
        e, V, dV, A, dA = null(), null(), null(), null(), null()
        if loops.cluster_joints[j]['parent'] >= 0:
            p = slopes.bodies[loops.cluster_joints[j]['parent']]
            e, V, dV = pair(p['shift']), pair(p['velocity']), pair(p['velocity_shift'])
            A, dA = pair(p['acceleration']), pair(p['acceleration_shift'])
        ds = cross_motion(e, s)
        # in the order in which the parent's V and dV are still needed
        dA = plus(dA, plus(times(qdd[j], ds), times(dqd[j], cross_motion(V, s))))
        dA = plus(dA, times(qd[j], plus(cross_motion(dV, s), cross_motion(V, ds))))
        A = plus(A, plus(times(qdd[j], s), times(qd[j], cross_motion(V, s))))
        dV = plus(dV, plus(times(qd[j], ds), times(dqd[j], s)))
        V, e = plus(V, times(qd[j], s)), plus(e, times(dq[j], s))
        store(u['shift'], e[0], e[1])
        store(u['velocity'], V[0], V[1])
        store(u['velocity_shift'], dV[0], dV[1])
        store(u['acceleration'], A[0], A[1])
        store(u['acceleration_shift'], dA[0], dA[1])


@kernel
def at_point(V, p):
    return add(V[0], cross(V[1], p))


@kernel
def turning(V):
    return (0.0, 0.0, 0.0), V[1]


@kernel
def perturb_point(bodies, j, p, is_point):
    """Return (dp, v, dv, a, da): change, rates and their changes of a point of body j at p, or of a direction p."""
    if j < 0:
        zero = (0.0, 0.0, 0.0)
        return zero, zero, zero, zero, zero
    u = bodies[j]
    e, V, dV = pair(u['shift']), pair(u['velocity']), pair(u['velocity_shift'])
    A, dA = pair(u['acceleration']), pair(u['acceleration_shift'])
    if not is_point:
        e, V, dV, A, dA = turning(e), turning(V), turning(dV), turning(A), turning(dA)
    dp, v = at_point(e, p), at_point(V, p)
    dv = add(at_point(dV, p), cross(V[1], dp))
    a = add(at_point(A, p), cross(V[1], v))
    da = add(add(at_point(dA, p), cross(A[1], dp)), add(cross(dV[1], v), cross(V[1], dv)))
    return dp, v, dv, a, da


@inner
def row_shift(loops, slopes, r):
    """Return the changes of the first and second rate of a constraint row at given rates of the joints."""
    if r['kind'] == MIMIC:
        return 0.0, 0.0
    u = direction_of(loops.work, r['a'], r['u'])
    du, ud, dud, udd, dudd = perturb_point(slopes.bodies, r['a'], u, False)
    if r['kind'] == POSITION:
        pa, pb = at_body(loops.work, r['a'], r['pa']), at_body(loops.work, r['b'], r['pb'])
        ea, va, dva, aa, daa = perturb_point(slopes.bodies, r['a'], pa, True)
        eb, vb, dvb, ab, dab = perturb_point(slopes.bodies, r['b'], pb, True)
        d, dd, v, dv, a, da = sub(pb, pa), sub(eb, ea), sub(vb, va), sub(dvb, dva), sub(ab, aa), sub(dab, daa)
    else:
        d = direction_of(loops.work, r['b'], r['w'])
        dd, v, dv, a, da = perturb_point(slopes.bodies, r['b'], d, False)
    first = dot(dud, d) + dot(ud, dd) + dot(du, v) + dot(u, dv)
    second = dot(dudd, d) + dot(udd, dd) + 2.0 * (dot(dud, v) + dot(ud, dv)) + dot(du, a) + dot(u, da)
    return first, second


@kernel
def set_rates(loops, slopes, c, a, b):
    """Set `slopes.rates` to the change of y_a, unit rate of y_b, and the known part of the change of that rate."""
    for j in range(c['first'], c['first'] + c['joints']):
        slopes.rates[0, j], slopes.rates[1, j] = loops.G[j, a], loops.G[j, b]
        slopes.rates[2, j], slopes.rates[3, j] = slopes.dG_dy[j, a, b], 0.0


@kernel
def curve_cluster(m, slopes, n, xd):
    """Set dG/dy of cluster n in `slopes.dG_dy`, and the rows of its modules in `slopes.z`."""
    loops, c = m.loops, m.loops.clusters[n]
    first, joints, freedom = c['first'], c['joints'], c['freedom']
    cluster_joints, z = loops.cluster_joints, slopes.z
    slopes.dG_dy[first:first + joints] = 0.0
    # closing sets poses and screws of bodies in space only
    place_joints(c, cluster_joints, loops.work)
    if not c['linear']:
        set_curvature(loops, slopes, c)
    for a in range(freedom):
        y = coordinate_of(cluster_joints, c, a)
        for j in range(first, first + joints):
            row, rate = loops.base + cluster_joints[j]['module'], 0.0
            for b in range(freedom):
                rate += slopes.dG_dy[j, a, b] * xd[coordinate_of(cluster_joints, c, b)]
            z[0, row, y], z[1, row, y], z[3, row, y] = loops.G[j, a], rate, 2.0 * rate
    if not c['linear']:
        differentiate_accelerations(m, slopes, c)


@kernel
def set_curvature(loops, slopes, c):
    """Set dG/dy of the dependent joints of cluster c."""
    dependent, A, column = c['joints'] - c['freedom'], slopes.A, c['joints'] - c['freedom']
    linearise(c, loops.cluster_joints, loops.rows, loops.work, A)
    for a in range(c['freedom']):
        for b in range(a, c['freedom']):
            set_rates(loops, slopes, c, a, b)
            perturb_bodies(loops, slopes, c)
            for i in range(c['rows']):
                A[i, column] = -row_shift(loops, slopes, loops.rows[c['row'] + i])[0]
            column += 1
    least_squares(A, c['rows'], dependent, column)
    for j in range(c['first'], c['first'] + c['joints']):
        t, column = loops.cluster_joints[j], dependent
        if t['independent'] < 0:
            for a in range(c['freedom']):
                for b in range(a, c['freedom']):
                    slopes.dG_dy[j, a, b] = A[t['column'], column]
                    slopes.dG_dy[j, b, a] = A[t['column'], column]
                    column += 1


@kernel
def differentiate_accelerations(m, slopes, c):
    """Set dzdd/dx of the dependent joints of cluster c, given dz/dx and dzd/dx."""
    loops, first, joints, dependent = m.loops, c['first'], c['joints'], c['joints'] - c['freedom']
    A, z = slopes.A, slopes.z
    linearise(c, loops.cluster_joints, loops.rows, loops.work, A)
    for a in range(c['freedom']):
        y = coordinate_of(loops.cluster_joints, c, a)
        for j in range(first, first + joints):
            k = loops.cluster_joints[j]['module']
            slopes.rates[0, j], slopes.rates[1, j] = z[0, loops.base + k, y], m.work[k]['qd']
            slopes.rates[2, j], slopes.rates[3, j] = z[1, loops.base + k, y], m.work[k]['qdd']
        perturb_bodies(loops, slopes, c)
        for i in range(c['rows']):
            A[i, dependent + a] = -row_shift(loops, slopes, loops.rows[c['row'] + i])[1]
    least_squares(A, c['rows'], dependent, joints)
    for j in range(first, first + joints):
        t = loops.cluster_joints[j]
        if t['independent'] < 0:
            for a in range(c['freedom']):
                y = coordinate_of(loops.cluster_joints, c, a)
                z[2, loops.base + t['module'], y] = A[t['column'], dependent + a]


@kernel
def coordinate_of(cluster_joints, c, a):
    """Return the row of xd of the independent joint a of cluster c."""
    for j in range(c['first'], c['first'] + c['joints']):
        if cluster_joints[j]['independent'] == a:
            return cluster_joints[j]['coordinate']
    return -1


@kernel
def differentiate_pin(m, slopes, friction_pin, xd, f, D):
    """Add the efforts on the coordinates by the friction of a closing pin, and their derivatives."""
    loops, end = m.loops, friction_pin['b'] if friction_pin['b'] >= 0 else friction_pin['a']
    c = loops.clusters[m.modules[loops.cluster_joints[end]['module']]['cluster']]
    freedom, pin, rate = c['freedom'], slopes.pin, 0.0
    # pin[a, b]: change with y_a of the pin's rate for unit rate of y_b; the last row is that rate
    for a in range(freedom):
        for b in range(freedom):
            set_rates(loops, slopes, c, a, b)
            perturb_bodies(loops, slopes, c)
            n, dn = pin_axis(loops, friction_pin), (0.0, 0.0, 0.0)
            if friction_pin['a'] >= 0:
                dn = cross(pair(slopes.bodies[friction_pin['a']]['shift'])[1], n)
            pin[a, b], pin[freedom, b] = 0.0, 0.0
            for sign in (1.0, -1.0):
                j = friction_pin['b'] if sign > 0.0 else friction_pin['a']
                if j >= 0:
                    _, w = pair(slopes.bodies[j]['velocity'])
                    _, dw = pair(slopes.bodies[j]['velocity_shift'])
                    pin[freedom, b] += sign * dot(n, w)
                    pin[a, b] += sign * (dot(dn, w) + dot(n, dw))
    for b in range(freedom):
        rate += pin[freedom, b] * xd[coordinate_of(loops.cluster_joints, c, b)]
    torque = -joint_friction(friction_pin['damping'], friction_pin['friction'], friction_pin['slip'], rate)
    slope = -friction_slope(friction_pin['damping'], friction_pin['friction'], friction_pin['slip'], rate)
    for a in range(freedom):
        change, column = 0.0, coordinate_of(loops.cluster_joints, c, a)
        for b in range(freedom):
            change += pin[a, b] * xd[coordinate_of(loops.cluster_joints, c, b)]
        for b in range(freedom):
            row = coordinate_of(loops.cluster_joints, c, b)
            D[0, row, column] += slope * change * pin[freedom, b] + torque * pin[a, b]
            D[1, row, column] += slope * pin[freedom, a] * pin[freedom, b]
    for b in range(freedom):
        f[coordinate_of(loops.cluster_joints, c, b)] += torque * pin[freedom, b]


@kernel
def set_motion(m, slopes, xd):
    """Set dz/dx, dzd/dx, dzdd/dx and dzdd/dxd of all modules."""
    slopes.z[:] = 0.0
    for c in range(m.loops.base):
        slopes.z[0, c, c] = 1.0
    for k in range(m.modules.shape[0]):
        b = m.modules[k]
        if b['cluster'] < 0 and not is_base(b):
            slopes.z[0, m.loops.base + k, b['coordinate']] = 1.0
    for n in range(m.loops.clusters.shape[0]):
        curve_cluster(m, slopes, n, xd)


@kernel
def project_through_loops(m, slopes, xd, f, D):
    """Write the efforts f (dof,) on the coordinates and their derivatives D (3, dof, dof) from those of the tree."""
    set_motion(m, slopes, xd)
    project_tree(slopes, f, D)
    for n in range(m.loops.clusters.shape[0]):
        add_curvature(m.loops, slopes, n, D[0])
    for i in range(m.loops.friction_pins.shape[0]):
        differentiate_pin(m, slopes, m.loops.friction_pins[i], xd, f, D)


@kernel
def project_tree(slopes, f, D):
    """Write G' tau and G' dtau."""
    tau, tree, z, product = slopes.effort, slopes.tree, slopes.z, slopes.product
    for i in range(f.shape[0]):
        f[i] = 0.0
        for r in range(tau.shape[0]):
            f[i] += z[0, r, i] * tau[r]
    clear(product)
    add_product(tree[0], z[0], product)
    add_product(tree[1], z[1], product)
    add_product(tree[2], z[2], product)
    project(z[0], product, D[0])
    clear(product)
    add_product(tree[1], z[0], product)
    add_product(tree[2], z[3], product)
    project(z[0], product, D[1])
    clear(product)
    add_product(tree[2], z[0], product)
    project(z[0], product, D[2])


@kernel
def add_curvature(loops, slopes, n, f_x):
    """Add (dG/dx)' tau of cluster n."""
    c = loops.clusters[n]
    for a in range(c['freedom']):
        column = coordinate_of(loops.cluster_joints, c, a)
        for b in range(c['freedom']):
            total = 0.0
            for j in range(c['first'], c['first'] + c['joints']):
                total += slopes.dG_dy[j, a, b] * slopes.effort[loops.base + loops.cluster_joints[j]['module']]
            f_x[coordinate_of(loops.cluster_joints, c, b), column] += total


@kernel
def subtract_actuator_slopes(m, slopes, f, f_x):
    """Subtract (dA/dx)' f of the actuators in clusters from df/dx; slopes: None for a machine without clusters."""
    if slopes is None:
        return
    for j in range(m.loops.cluster_joints.shape[0]):
        b = m.modules[m.loops.cluster_joints[j]['module']]
        if b['actuator'] < 0:
            continue
        c, effort = m.loops.clusters[b['cluster']], f[b['actuator']]
        for a in range(c['freedom']):
            column = coordinate_of(m.loops.cluster_joints, c, a)
            for d in range(c['freedom']):
                f_x[coordinate_of(m.loops.cluster_joints, c, d), column] -= slopes.dG_dy[j, a, d] * effort


@kernel
def clear(A):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 0.0


@inner
def add_product(A, B, C):
    """Add A B to C."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@inner
def project(A, B, C):
    """Write A' B into C."""
    clear(C)
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            for j in range(B.shape[1]):
                C[i, j] += A[k, i] * B[k, j]
