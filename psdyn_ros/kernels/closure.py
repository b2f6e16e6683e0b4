"""Loops of any kind: position closure, G and g of the joints that implicit constraints tie together.

A *cluster* is a set of joints that closed loops couple.  Its constraints are rows, each one scalar equation

    position      phi = u . (p_B - p_A)      u fixed in body A, p_A, p_B points of the bodies A and B
    direction     phi = u . w                u fixed in A, w fixed in B

with phi(q) = 0, K qd = 0, K qdd = k, and q = gamma(y), qd = G yd, qdd = G ydd + g for its independent joints y.
Rows may be redundant (a planar loop of 3-D pins has three such): the dependent joints follow by least squares
through Householder reflections, never through the normal equations.  All vectors are in the axes of the cluster's
base body, about its origin.
"""
import math

from .compiler import entry, kernel
from .loops import POSITION
from .spatial import add, cross, dot, pair, scale, store, sub

SINGULAR, OPEN = 1, 2           # why a cluster has no answer: rank lost, no closed position found
RANK = 1e-6                     # of a diagonal of R against the largest: below it rank is lost
CLOSED = 1e-12                  # residual at which Newton's method takes its last step [m, 1]


@kernel
def vector(a):
    return (a[0], a[1], a[2])


@kernel
def rotate(R, a):
    return (R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
            R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
            R[6] * a[0] + R[7] * a[1] + R[8] * a[2])


@kernel
def place_joints(cluster, tied, work):
    """Set pose and screw of every body of a cluster from its q."""
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        t, u = tied[j], work[j]
        axis, R0 = vector(t['axis']), t['rotation']
        # joint frame in the base body
        if t['parent'] < 0:
            x, y, z = (R0[0], R0[3], R0[6]), (R0[1], R0[4], R0[7]), (R0[2], R0[5], R0[8])
            p = vector(t['position'])
        else:
            v = work[t['parent']]
            R = v['rotation']
            x = rotate(R, (R0[0], R0[3], R0[6]))
            y = rotate(R, (R0[1], R0[4], R0[7]))
            z = rotate(R, (R0[2], R0[5], R0[8]))
            p = add(vector(v['place']), rotate(R, vector(t['position'])))
        along = add(add(scale(axis[0], x), scale(axis[1], y)), scale(axis[2], z))
        if t['slides']:
            p = add(p, scale(u['q'], along))
            store(u['screw'], along, (0.0, 0.0, 0.0))
        else:
            c, s = math.cos(u['q']), math.sin(u['q'])
            x, y, z = turn_about(along, x, c, s), turn_about(along, y, c, s), turn_about(along, z, c, s)
            store(u['screw'], cross(p, along), along)
        R = u['rotation']
        R[0], R[3], R[6] = x
        R[1], R[4], R[7] = y
        R[2], R[5], R[8] = z
        u['place'][0], u['place'][1], u['place'][2] = p


@kernel
def turn_about(axis, a, c, s):
    """Return a turned about a unit axis (Rodrigues)."""
    return add(add(scale(c, a), scale(s, cross(axis, a))), scale((1.0 - c) * dot(axis, a), axis))


@kernel
def at_body(work, j, point):
    """Return a point of body j (-1: base) about the base origin."""
    if j < 0:
        return vector(point)
    return add(vector(work[j]['place']), rotate(work[j]['rotation'], vector(point)))


@kernel
def direction_of(work, j, a):
    if j < 0:
        return vector(a)
    return rotate(work[j]['rotation'], vector(a))


@kernel
def constraint_row(r, work):
    """Return (phi, f, m): the residual of a row, and K as the wrench that B feels when the row is loaded."""
    u = direction_of(work, r['a'], r['u'])
    if r['kind'] == POSITION:
        pb = at_body(work, r['b'], r['pb'])
        return dot(u, sub(pb, at_body(work, r['a'], r['pa']))), u, cross(pb, u)
    w = direction_of(work, r['b'], r['w'])
    return dot(u, w), (0.0, 0.0, 0.0), cross(w, u)


@kernel
def linearise(cluster, tied, rows, work, A):
    """Write K of the dependent joints, then -K of the independent ones, then -phi, into A; return max |phi|."""
    first, dependent = cluster['first'], cluster['joints'] - cluster['freedom']
    worst = 0.0
    for i in range(cluster['rows']):
        r = rows[cluster['row'] + i]
        phi, f, m = constraint_row(r, work)
        for c in range(cluster['joints'] + 1):
            A[i, c] = 0.0
        A[i, cluster['joints']] = -phi
        worst = max(worst, abs(phi)) if abs(phi) < math.inf else math.inf
        for sign in (1.0, -1.0):
            j = r['b'] if sign > 0.0 else r['a']
            while j >= 0:
                v, w = pair(work[j]['screw'])
                k = sign * (dot(f, v) + dot(m, w))
                if tied[j]['independent'] < 0:
                    A[i, dependent_column(tied, first, j)] += k
                else:
                    A[i, dependent + tied[j]['independent']] -= k
                j = tied[j]['parent']
    return worst


@kernel
def dependent_column(tied, first, j):
    column = 0
    for i in range(first, j):
        if tied[i]['independent'] < 0:
            column += 1
    return column


@kernel
def least_squares(A, rows, unknowns, columns):
    """Solve A[:, :unknowns] X = A[:, unknowns:columns] in place by Householder reflections.

    X comes in the first `unknowns` rows of the right-hand columns.  Returns min |R_jj| / max |R_jj|.
    """
    small, large = math.inf, 0.0
    for j in range(unknowns):
        norm = 0.0
        for i in range(j, rows):
            norm += A[i, j] * A[i, j]
        norm = math.sqrt(norm)
        small, large = min(small, norm), max(large, norm)
        if norm == 0.0:
            return 0.0
        head = A[j, j] + norm if A[j, j] > 0.0 else A[j, j] - norm
        beta = 1.0 / (norm * abs(head))
        A[j, j] = head
        for c in range(j + 1, columns):
            total = 0.0
            for i in range(j, rows):
                total += A[i, j] * A[i, c]
            total *= beta
            for i in range(j, rows):
                A[i, c] -= total * A[i, j]
        A[j, j] = -norm if head > 0.0 else norm
    for c in range(unknowns, columns):
        for j in range(unknowns - 1, -1, -1):
            total = A[j, c]
            for i in range(j + 1, unknowns):
                total -= A[j, i] * A[i, c]
            A[j, c] = total / A[j, j]
    return small / large if unknowns > 0 else 1.0


@kernel
def close_positions(cluster, tied, rows, work, A):
    """Newton's method on phi(q) = 0 from the q in work, the independent ones held; 0, SINGULAR or OPEN."""
    first, joints = cluster['first'], cluster['joints']
    dependent = joints - cluster['freedom']
    last = False
    for _ in range(40):
        place_joints(cluster, tied, work)
        worst = linearise(cluster, tied, rows, work, A)
        if last:
            return 0
        if not worst < math.inf:
            return OPEN
        last = worst < CLOSED
        # the column of -phi stands right behind the dependent ones
        for i in range(cluster['rows']):
            A[i, dependent] = A[i, joints]
        if not least_squares(A, cluster['rows'], dependent, dependent + 1) > RANK:
            return SINGULAR if worst < 1e-6 else OPEN
        largest = 0.0
        for d in range(dependent):
            largest = max(largest, abs(A[d, dependent]))
        damping = 1.0 if largest < 0.5 else 0.5 / largest
        d = 0
        for j in range(first, first + joints):
            if tied[j]['independent'] < 0:
                work[j]['q'] += damping * A[d, dependent]
                d += 1
    return OPEN


@kernel
def close_cluster(cluster, loops, x):
    """Set q of a cluster for the coordinates x: from the nearest of its closed poses, by Newton's method."""
    first, joints, tied, work = cluster['first'], cluster['joints'], loops.tied, loops.work
    shift = 1 if loops.base else 0
    best, nearest = math.inf, cluster['pose']
    for i in range(cluster['pose'], cluster['pose'] + cluster['poses']):
        distance = 0.0
        for j in range(joints):
            t = tied[first + j]
            if t['independent'] >= 0:
                step = step_from(t, x[t['coordinate'] + shift], loops.poses[i, j])
                distance += step * step
        if distance < best:
            best, nearest = distance, i
    if not best < math.inf:
        return OPEN
    for j in range(joints):
        work[first + j]['q'] = loops.poses[nearest, j]
    for j in range(joints):
        t = tied[first + j]
        if t['independent'] >= 0:
            position = x[t['coordinate'] + shift]
            step = step_from(t, position, loops.poses[nearest, j])
            for i in range(joints):
                if tied[first + i]['independent'] < 0:
                    work[first + i]['q'] += loops.slopes[nearest, i, t['independent']] * step
            work[first + j]['q'] = position
    return close_positions(cluster, tied, loops.rows, work, loops.A)


@kernel
def step_from(t, position, pose):
    """Return how far a position is from that of a tabulated pose; whole turns do not count."""
    step = position - pose
    if t['turns']:
        step -= 2.0 * math.pi * math.floor(step / (2.0 * math.pi) + 0.5)
    return step


@kernel
def differentiate(cluster, tied, rows, work, xd, A, G):
    """Set G, g and qd of a closed cluster; return 0 or SINGULAR.

    G (joints of all clusters, largest freedom).  g is the acceleration of the joints at ydd = 0.
    """
    first, joints, freedom = cluster['first'], cluster['joints'], cluster['freedom']
    dependent = joints - freedom
    linearise(cluster, tied, rows, work, A)
    if not least_squares(A, cluster['rows'], dependent, joints) > RANK:
        return SINGULAR
    d = 0
    for j in range(first, first + joints):
        t, u = tied[j], work[j]
        u['qd'] = 0.0
        if t['independent'] >= 0:
            for c in range(freedom):
                G[j, c] = 1.0 if c == t['independent'] else 0.0
            u['qd'] = xd[t['coordinate']]
        else:
            for c in range(freedom):
                G[j, c] = A[d, dependent + c]
            d += 1
    for j in range(first, first + joints):
        t = tied[j]
        if t['independent'] >= 0:
            for i in range(first, first + joints):
                if tied[i]['independent'] < 0:
                    work[i]['qd'] += G[i, t['independent']] * work[j]['qd']
    bias_motion(cluster, tied, work)
    linearise(cluster, tied, rows, work, A)
    for i in range(cluster['rows']):
        A[i, dependent] = -bias_of_row(rows[cluster['row'] + i], work)
    least_squares(A, cluster['rows'], dependent, dependent + 1)
    d = 0
    for j in range(first, first + joints):
        work[j]['g'] = 0.0
        if tied[j]['independent'] < 0:
            work[j]['g'] = A[d, dependent]
            d += 1
    return 0


@kernel
def bias_motion(cluster, tied, work):
    """Set twist and, at qdd = 0, spatial acceleration of every body, about the base origin at rest."""
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        t, u = tied[j], work[j]
        sv, sw = pair(u['screw'])
        sv, sw = scale(u['qd'], sv), scale(u['qd'], sw)
        v, w, bv, bw = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if t['parent'] >= 0:
            v, w = pair(work[t['parent']]['velocity'])
            bv, bw = pair(work[t['parent']]['bias'])
        store(u['bias'], add(bv, add(cross(w, sv), cross(v, sw))), add(bw, cross(w, sw)))
        store(u['velocity'], add(v, sv), add(w, sw))


@kernel
def moving_point(work, j, p):
    """Return velocity and acceleration, at qdd = 0, of the point of body j that is at p."""
    zero = (0.0, 0.0, 0.0)
    if j < 0:
        return zero, zero
    v, w = pair(work[j]['velocity'])
    bv, bw = pair(work[j]['bias'])
    rate = add(v, cross(w, p))
    return rate, add(add(bv, cross(bw, p)), cross(w, rate))


@kernel
def moving_direction(work, j, a):
    """Return rate and second rate, at qdd = 0, of a direction a fixed in body j."""
    zero = (0.0, 0.0, 0.0)
    if j < 0:
        return zero, zero
    _, w = pair(work[j]['velocity'])
    _, bw = pair(work[j]['bias'])
    rate = cross(w, a)
    return rate, add(cross(bw, a), cross(w, rate))


@kernel
def bias_of_row(r, work):
    """Return the second rate of phi at qdd = 0."""
    a, b = r['a'], r['b']
    u = direction_of(work, a, r['u'])
    du, ddu = moving_direction(work, a, u)
    if r['kind'] == POSITION:
        pa, pb = at_body(work, a, r['pa']), at_body(work, b, r['pb'])
        va, aa = moving_point(work, a, pa)
        vb, ab = moving_point(work, b, pb)
        return dot(ddu, sub(pb, pa)) + 2.0 * dot(du, sub(vb, va)) + dot(u, sub(ab, aa))
    w = direction_of(work, b, r['w'])
    dw, ddw = moving_direction(work, b, w)
    return dot(ddu, w) + 2.0 * dot(du, dw) + dot(u, ddw)


@kernel
def close(loops, x, xd):
    """Close every cluster at x (nx,), xd (dof,); return 0, or 8 (cluster + 1) + reason."""
    for k in range(loops.clusters.shape[0]):
        cluster = loops.clusters[k]
        status = close_cluster(cluster, loops, x)
        if status == 0:
            status = differentiate(cluster, loops.tied, loops.rows, loops.work, xd, loops.A, loops.G)
        if status != 0:
            return 8 * (k + 1) + status
    return 0


@entry
def close_all(loops, x, xd):
    """`close` for calls from Python."""
    return close(loops, x, xd)


@entry
def close_from(clusters, tied, rows, k, work, A):
    """Close cluster k from the q in work, the independent ones held; return 0, SINGULAR or OPEN."""
    return close_positions(clusters[k], tied, rows, work, A)


@entry
def linearise_at(clusters, tied, rows, k, work, A):
    """Write K and -phi of cluster k at the q in work into A; see `linearise`."""
    place_joints(clusters[k], tied, work)
    return linearise(clusters[k], tied, rows, work, A)
