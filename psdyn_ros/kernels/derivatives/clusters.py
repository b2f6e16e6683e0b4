"""Exact derivatives of the joints that loops tie: of G, of qd and of qdd by the independent coordinates.

A change of y_a displaces every body of a cluster by the twist G_a.  Along it, with G_b held or real rates,

    K dG_b/dy_a + d_a(phi_b) = 0       phi_b = K G_b, the rate of a constraint for unit rate of y_b
    dqd/dy_a  = sum_b dG_b/dy_a yd_b   dqdd/dyd_a = 2 dqd/dy_a, since g = sum_ab dG_b/dy_a yd_a yd_b
    K dqdd/dy_a + d_a(phi'') = 0       phi'' = K qdd - k, the second rate, with dqd/dy_a put in

d_a is the tangent of the recursion of twists and accelerations of the bodies: no third-order tensors.
All vectors are in the axes of the cluster's base body, about its origin.
"""
import math
from typing import NamedTuple

import numpy as np

from ..algebra.linear import least_squares
from ..algebra.spatial import add, cross, dot, pair, store, sub
from ..loops.constraints import at_body, direction_of, linearise, place_joints
from ..loops.records import POSITION
from ..rigid_body.general import pin_axis
from ..runtime.compiler import entry, kernel
from .body import cross_motion, null, plus, times

SHIFTED = np.dtype([
    ('shift', 'f8', 6),                                     # displacement of the body by a change of y_a
    ('velocity', 'f8', 6), ('velocity_shift', 'f8', 6),     # twist, and its change
    ('acceleration', 'f8', 6), ('acceleration_shift', 'f8', 6),
], align=True)


class Slopes(NamedTuple):
    """Scratch of the derivatives of a general machine; m = 6 for a floating base + modules."""

    tree: np.ndarray            # (3, m, m) derivatives of the efforts on all modules by position, rate, acceleration
    effort: np.ndarray          # (m,)
    z: np.ndarray               # (4, m, dof) dz/dx, dzd/dx, dzdd/dx, dzdd/dxd; dz/dx = dzd/dxd
    product: np.ndarray         # (m, dof)
    curve: np.ndarray           # (tied, largest freedom, largest freedom) dG_b/dy_a
    bodies: np.ndarray          # (tied,) SHIFTED
    rates: np.ndarray           # (4, tied) change of q, rate, change of the rate, acceleration
    A: np.ndarray               # (most rows, most joints + 1 + largest freedom^2)
    pin: np.ndarray             # (largest freedom + 1, largest freedom) rates of a closing pin and their changes


def slopes_of(loops, modules, dof):
    """Return `Slopes` for the `Loops` of a machine."""
    m, tied = loops.base + modules, len(loops.tied)
    freedom = int(loops.clusters['freedom'].max(initial=0))
    columns = int(loops.clusters['joints'].max(initial=0)) + 1 + freedom * freedom
    return Slopes(np.zeros((3, m, m)), np.zeros(m), np.zeros((4, m, dof)), np.zeros((m, dof)),
                  np.zeros((tied, freedom, freedom)), np.zeros(tied, SHIFTED), np.zeros((4, tied)),
                  np.zeros((int(loops.clusters['rows'].max(initial=0)), columns)), np.zeros((freedom + 1, freedom)))


@entry
def displace(loops, slopes, c):
    """Set motion of the bodies of cluster c, and its change, from the rates of the joints in `slopes.rates`."""
    dq, qd, dqd, qdd = slopes.rates[0], slopes.rates[1], slopes.rates[2], slopes.rates[3]
    for j in range(c['first'], c['first'] + c['joints']):
        u, s = slopes.bodies[j], pair(loops.work[j]['screw'])
        e, V, dV, A, dA = null(), null(), null(), null(), null()
        if loops.tied[j]['parent'] >= 0:
            p = slopes.bodies[loops.tied[j]['parent']]
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
def moving(bodies, j, p, is_point):
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


@entry
def row_shift(loops, slopes, r):
    """Return the changes of the first and second rate of a constraint row."""
    u = direction_of(loops.work, r['a'], r['u'])
    du, ud, dud, udd, dudd = moving(slopes.bodies, r['a'], u, False)
    if r['kind'] == POSITION:
        pa, pb = at_body(loops.work, r['a'], r['pa']), at_body(loops.work, r['b'], r['pb'])
        ea, va, dva, aa, daa = moving(slopes.bodies, r['a'], pa, True)
        eb, vb, dvb, ab, dab = moving(slopes.bodies, r['b'], pb, True)
        d, dd, v, dv, a, da = sub(pb, pa), sub(eb, ea), sub(vb, va), sub(dvb, dva), sub(ab, aa), sub(dab, daa)
    else:
        d = direction_of(loops.work, r['b'], r['w'])
        dd, v, dv, a, da = moving(slopes.bodies, r['b'], d, False)
    first = dot(dud, d) + dot(ud, dd) + dot(du, v) + dot(u, dv)
    second = dot(dudd, d) + dot(udd, dd) + 2.0 * (dot(dud, v) + dot(ud, dv)) + dot(du, a) + dot(u, da)
    return first, second


@kernel
def set_rates(loops, slopes, c, a, b):
    """Let `displace` see the change of y_a, unit rate of y_b, and the change of that rate as far as it is known."""
    for j in range(c['first'], c['first'] + c['joints']):
        slopes.rates[0, j], slopes.rates[1, j] = loops.G[j, a], loops.G[j, b]
        slopes.rates[2, j], slopes.rates[3, j] = slopes.curve[j, a, b], 0.0


@kernel
def curve_cluster(loops, slopes, n, xd):
    """Set dG/dy of cluster n in `slopes.curve`, and the rows of its modules in `slopes.z`."""
    c = loops.clusters[n]
    first, joints, freedom = c['first'], c['joints'], c['freedom']
    tied, z = loops.tied, slopes.z
    slopes.curve[first:first + joints] = 0.0
    # poses and screws of all bodies: rates know them for bodies in space only
    place_joints(c, tied, loops.work)
    if not c['linear']:
        bend_joints(loops, slopes, c)
    for a in range(freedom):
        y = coordinate_of(tied, c, a)
        for j in range(first, first + joints):
            row, rate = loops.base + tied[j]['module'], 0.0
            for b in range(freedom):
                rate += slopes.curve[j, a, b] * xd[coordinate_of(tied, c, b)]
            z[0, row, y], z[1, row, y], z[3, row, y] = loops.G[j, a], rate, 2.0 * rate
    if not c['linear']:
        bend_accelerations(loops, slopes, c)


@kernel
def bend_joints(loops, slopes, c):
    """Set dG/dy of the dependent joints of cluster c."""
    dependent, A, column = c['joints'] - c['freedom'], slopes.A, c['joints'] - c['freedom']
    linearise(c, loops.tied, loops.rows, loops.work, A)
    for a in range(c['freedom']):
        for b in range(a, c['freedom']):
            set_rates(loops, slopes, c, a, b)
            displace(loops, slopes, c)
            for i in range(c['rows']):
                A[i, column] = -row_shift(loops, slopes, loops.rows[c['row'] + i])[0]
            column += 1
    least_squares(A, c['rows'], dependent, column)
    for j in range(c['first'], c['first'] + c['joints']):
        t, column = loops.tied[j], dependent
        if t['independent'] < 0:
            for a in range(c['freedom']):
                for b in range(a, c['freedom']):
                    slopes.curve[j, a, b] = A[t['column'], column]
                    slopes.curve[j, b, a] = A[t['column'], column]
                    column += 1


@kernel
def bend_accelerations(loops, slopes, c):
    """Set dzdd/dx of the dependent joints of cluster c, given dz/dx and dzd/dx."""
    first, joints, dependent, A, z = c['first'], c['joints'], c['joints'] - c['freedom'], slopes.A, slopes.z
    linearise(c, loops.tied, loops.rows, loops.work, A)
    for a in range(c['freedom']):
        y = coordinate_of(loops.tied, c, a)
        for j in range(first, first + joints):
            k = loops.tied[j]['module']
            slopes.rates[0, j], slopes.rates[1, j] = z[0, loops.base + k, y], loops.z[1, k]
            slopes.rates[2, j], slopes.rates[3, j] = z[1, loops.base + k, y], loops.z[2, k]
        displace(loops, slopes, c)
        for i in range(c['rows']):
            A[i, dependent + a] = -row_shift(loops, slopes, loops.rows[c['row'] + i])[1]
    least_squares(A, c['rows'], dependent, joints)
    for j in range(first, first + joints):
        t = loops.tied[j]
        if t['independent'] < 0:
            for a in range(c['freedom']):
                z[2, loops.base + t['module'], coordinate_of(loops.tied, c, a)] = A[t['column'], dependent + a]


@kernel
def coordinate_of(tied, c, a):
    """Return the row of xd of the independent joint a of cluster c."""
    for j in range(c['first'], c['first'] + c['joints']):
        if tied[j]['independent'] == a:
            return tied[j]['coordinate']
    return -1


@kernel
def differentiate_pin(loops, slopes, loss, xd, f_y, f_x, f_xd):
    """Add what the friction of a pin that closes a loop asks of the coordinates, and its derivatives."""
    end = loss['b'] if loss['b'] >= 0 else loss['a']
    c = loops.clusters[loops.cluster_of[loops.tied[end]['module']]]
    freedom, pin, rate = c['freedom'], slopes.pin, 0.0
    # pin[a, b]: change with y_a of the pin's rate for unit rate of y_b; the last row is that rate
    for a in range(freedom):
        for b in range(freedom):
            set_rates(loops, slopes, c, a, b)
            displace(loops, slopes, c)
            n, dn = pin_axis(loops, loss), (0.0, 0.0, 0.0)
            if loss['a'] >= 0:
                dn = cross(pair(slopes.bodies[loss['a']]['shift'])[1], n)
            pin[a, b], pin[freedom, b] = 0.0, 0.0
            for sign in (1.0, -1.0):
                j = loss['b'] if sign > 0.0 else loss['a']
                if j >= 0:
                    _, w = pair(slopes.bodies[j]['velocity'])
                    _, dw = pair(slopes.bodies[j]['velocity_shift'])
                    pin[freedom, b] += sign * dot(n, w)
                    pin[a, b] += sign * (dot(dn, w) + dot(n, dw))
    for b in range(freedom):
        rate += pin[freedom, b] * xd[coordinate_of(loops.tied, c, b)]
    level = math.tanh(rate / loss['slip'])
    torque = loss['damping'] * rate + loss['friction'] * level
    slope = loss['damping'] + loss['friction'] * (1.0 - level * level) / loss['slip']
    for a in range(freedom):
        change, column = 0.0, coordinate_of(loops.tied, c, a)
        for b in range(freedom):
            change += pin[a, b] * xd[coordinate_of(loops.tied, c, b)]
        for b in range(freedom):
            row = coordinate_of(loops.tied, c, b)
            f_x[row, column] += slope * change * pin[freedom, b] + torque * pin[a, b]
            f_xd[row, column] += slope * pin[freedom, a] * pin[freedom, b]
    for b in range(freedom):
        f_y[coordinate_of(loops.tied, c, b)] += torque * pin[freedom, b]
