"""Joints of a cluster in space: its bodies placed, its constraints differentiated once and twice.

Each constraint row is one scalar equation

    position      phi = u . (p_B - p_A)      u fixed in body A, p_A, p_B points of the bodies A and B
    direction     phi = u . w                u fixed in A, w fixed in B
    mimic         phi = q_B - ratio q_A - offset     q_A, q_B of the joints that carry A and B

All vectors are in the axes of the cluster's base body, about its origin.
"""
import math

from ..algebra.spatial import add, cross, dot, general_times, pair, scale, store, sub, vector
from ..runtime.compiler import kernel
from .records import MIMIC, POSITION


@kernel
def place_joints(cluster, cluster_joints, work):
    """Set pose and screw of every body of a cluster from its q, cos and sin of which are set."""
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        t, u = cluster_joints[j], work[j]
        R0 = t['rotation']
        # joint frame in the base body
        if t['parent'] < 0:
            x, y, z = (R0[0], R0[3], R0[6]), (R0[1], R0[4], R0[7]), (R0[2], R0[5], R0[8])
            p = vector(t['position'])
        else:
            v = work[t['parent']]
            R = v['rotation']
            x = general_times(R, (R0[0], R0[3], R0[6]))
            y = general_times(R, (R0[1], R0[4], R0[7]))
            z = general_times(R, (R0[2], R0[5], R0[8]))
            p = add(vector(v['place']), general_times(R, vector(t['position'])))
        if t['slides']:
            p = add(p, scale(u['q'], z))
            store(u['screw'], z, (0.0, 0.0, 0.0))
        else:
            c, s = u['c'], u['s']
            x, y = add(scale(c, x), scale(s, y)), sub(scale(c, y), scale(s, x))
            store(u['screw'], cross(p, z), z)
        R = u['rotation']
        R[0], R[3], R[6] = x
        R[1], R[4], R[7] = y
        R[2], R[5], R[8] = z
        u['place'][0], u['place'][1], u['place'][2] = p


@kernel
def at_body(work, j, point):
    """Return a point of body j (-1: base) about the base origin."""
    if j < 0:
        return vector(point)
    return add(vector(work[j]['place']), general_times(work[j]['rotation'], vector(point)))


@kernel
def direction_of(work, j, a):
    if j < 0:
        return vector(a)
    return general_times(work[j]['rotation'], vector(a))


@kernel
def linearise(cluster, cluster_joints, rows, work, A):
    """Write K of the dependent joints, then -phi, then -K of the independent joints, into A; return max |phi|."""
    worst, joints, residual = 0.0, cluster['joints'], cluster['joints'] - cluster['freedom']
    pb, gap = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for i in range(cluster['rows']):
        r, row = rows[cluster['row'] + i], A[i]
        for c in range(joints + 1):
            row[c] = 0.0
        if r['kind'] == MIMIC:
            phi = work[r['b']]['q'] - r['ratio'] * work[r['a']]['q'] - r['offset']
            row[residual] = -phi
            worst = max(worst, abs(phi)) if abs(phi) < math.inf else math.inf
            row[cluster_joints[r['b']]['column']] = 1.0 if cluster_joints[r['b']]['independent'] < 0 else -1.0
            row[cluster_joints[r['a']]['column']] = (
                -r['ratio'] if cluster_joints[r['a']]['independent'] < 0 else r['ratio'])
            continue
        # (f, m): wrench of the row on B for a unit multiplier
        u = direction_of(work, r['a'], r['u'])
        if r['kind'] == POSITION:
            if not r['repeats']:
                pb = at_body(work, r['b'], r['pb'])
                gap = sub(pb, at_body(work, r['a'], r['pa']))
            phi, f, m = dot(u, gap), u, cross(pb, u)
        else:
            w = direction_of(work, r['b'], r['w'])
            phi, f, m = dot(u, w), (0.0, 0.0, 0.0), cross(w, u)
        row[residual] = -phi
        worst = max(worst, abs(phi)) if abs(phi) < math.inf else math.inf
        for sign in (1.0, -1.0):
            j = r['b'] if sign > 0.0 else r['a']
            while j != r['meet']:
                v, w = pair(work[j]['screw'])
                k = sign * (dot(f, v) + dot(m, w))
                row[cluster_joints[j]['column']] = k if cluster_joints[j]['independent'] < 0 else -k
                j = cluster_joints[j]['parent']
    return worst


@kernel
def bias_motion(cluster, cluster_joints, work):
    """Set twist and, at qdd = 0, spatial acceleration of every body, about the base origin at rest."""
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        t, u = cluster_joints[j], work[j]
        sv, sw = pair(u['screw'])
        sv, sw = scale(u['qd'], sv), scale(u['qd'], sw)
        v, w, bv, bw = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if t['parent'] >= 0:
            v, w = pair(work[t['parent']]['velocity'])
            bv, bw = pair(work[t['parent']]['bias'])
        store(u['bias'], add(bv, add(cross(w, sv), cross(v, sw))), add(bw, cross(w, sw)))
        store(u['velocity'], add(v, sv), add(w, sw))


@kernel
def point_motion(work, j, p):
    """Return velocity and acceleration, at qdd = 0, of the point of body j that is at p."""
    zero = (0.0, 0.0, 0.0)
    if j < 0:
        return zero, zero
    v, w = pair(work[j]['velocity'])
    bv, bw = pair(work[j]['bias'])
    rate = add(v, cross(w, p))
    return rate, add(add(bv, cross(bw, p)), cross(w, rate))


@kernel
def direction_motion(work, j, a):
    """Return rate and second rate, at qdd = 0, of a direction a fixed in body j."""
    zero = (0.0, 0.0, 0.0)
    if j < 0:
        return zero, zero
    _, w = pair(work[j]['velocity'])
    _, bw = pair(work[j]['bias'])
    rate = cross(w, a)
    return rate, add(cross(bw, a), cross(w, rate))


@kernel
def bias_of_rows(cluster, rows, work, A, column):
    """Write minus the second rate of phi at qdd = 0 of every row into a column of A."""
    gap, rate, acceleration = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for i in range(cluster['rows']):
        r = rows[cluster['row'] + i]
        if r['kind'] == MIMIC:
            A[i, column] = 0.0
            continue
        a, b = r['a'], r['b']
        u = direction_of(work, a, r['u'])
        du, ddu = direction_motion(work, a, u)
        if r['kind'] == POSITION:
            if not r['repeats']:
                pa, pb = at_body(work, a, r['pa']), at_body(work, b, r['pb'])
                va, aa = point_motion(work, a, pa)
                vb, ab = point_motion(work, b, pb)
                gap, rate, acceleration = sub(pb, pa), sub(vb, va), sub(ab, aa)
            A[i, column] = -(dot(ddu, gap) + 2.0 * dot(du, rate) + dot(u, acceleration))
        else:
            w = direction_of(work, b, r['w'])
            dw, ddw = direction_motion(work, b, w)
            A[i, column] = -(dot(ddu, w) + 2.0 * dot(du, dw) + dot(u, ddw))
