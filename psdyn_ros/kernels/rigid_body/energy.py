"""What else follows from the state: mass matrix, energy, joint states, and the way back from measured joints."""
import math

from ..algebra.spatial import add, dot, pair, rigid, rigid_slide_x, rigid_slide_z, rigid_times, turn_z
from ..runtime.compiler import entry, kernel
from .inverse import inverse
from .joints import outward_velocities, parent_slide, triangle, wrench_at_parent
from .records import BARREL, LINK, LOOP, PRISMATIC, ROD

UNREACHABLE, OTHER_BRANCH, NO_LEVER, AMBIGUOUS = 1, 2, 3, 4     # why a measured joint does not fix its loop


@entry
def mass_matrix(mods, work, still, x, zero, unit, column, M):
    """Write M (dof, dof): column j is the effort for unit acceleration of coordinate j at rest without gravity.

    still: env (2, 6) of zeros; zero, unit, column: scratch (dof,), the first two of zeros.
    """
    n = M.shape[0]
    for j in range(n):
        unit[j] = 1.0
        status = inverse(mods, work, still, x, zero, unit, column)
        unit[j] = 0.0
        if status != 0:
            return status
        for i in range(j, n):
            M[i, j] = column[i]
            M[j, i] = column[i]
    return 0


@entry
def energy(mods, work, env, x, xd, out):
    """Write kinetic energy [J] and first moment of mass about the base origin, base axes [kg m], into out (4,)."""
    status = outward_velocities(mods, work, env, x, xd)
    if status != 0:
        return status
    kinetic = 0.0
    # wrench rows carry (m c, m) of each body and what stands on it, tips to base
    for k in range(mods.shape[0]):
        b, u = mods[k], work[k]
        B = rigid(b['link'])
        if b['kind'] == PRISMATIC:
            B = rigid_slide_z(B, u['slide'])
        v, w = pair(u['velocity'])
        kinetic += kinetic_energy(B, v, w)
        put_moment(u['wrench'][LINK], B)
        if b['kind'] == LOOP:
            v, w = pair(u['cylinder_velocity'])
            B, R = rigid(b['barrel']), rigid_slide_x(rigid(b['rod']), u['stroke'])
            kinetic += kinetic_energy(B, v, w) + kinetic_energy(R, (v[0] + u['stroke_rate'], v[1], v[2]), w)
            put_moment(u['wrench'][BARREL], B)
            put_moment(u['wrench'][ROD], R)
    out[0], out[1], out[2], out[3] = kinetic, 0.0, 0.0, 0.0
    for k in range(mods.shape[0] - 1, -1, -1):
        b, u = mods[k], work[k]
        h, m = turn_z(moment(u['wrench'][LINK]), u['c'], u['s']), u['wrench'][LINK][3]
        if b['kind'] == LOOP:
            rod, barrel = u['wrench'][ROD], u['wrench'][BARREL]
            mass, p = rod[3] + barrel[3], b['pin']
            h = add(h, turn_z(add(moment(rod), moment(barrel)), u['c1'], u['s1']))
            h = (h[0] + mass * p[0], h[1] + mass * p[1], h[2] + mass * p[2])
            m += mass
        h = moment_at_parent(b, parent_slide(b, work), h, m)
        if b['parent'] >= 0:
            a = work[b['parent']]['wrench'][b['on']]
            a[3] += m
            a[0] += h[0]
            a[1] += h[1]
            a[2] += h[2]
        else:
            out[1] += h[0]
            out[2] += h[1]
            out[3] += h[2]
    return 0


@kernel
def kinetic_energy(B, v, w):
    f, m = rigid_times(B, v, w)
    return 0.5 * (dot(v, f) + dot(w, m))


@kernel
def put_moment(a, B):
    a[0], a[1], a[2] = B[1]
    a[3] = B[0]


@kernel
def moment(a):
    return (a[0], a[1], a[2])


@kernel
def moment_at_parent(b, slide, h, m):
    # a first moment turns as a force does; the mass sits at the base frame's origin
    p, s = b['placement'], slide
    h, _ = wrench_at_parent(b, slide, h, (0.0, 0.0, 0.0))
    if b['on'] == ROD:
        return (h[0] + m * (p[0] + s), h[1] + m * p[1], h[2] + m * p[2])
    return (h[0] + m * p[0], h[1] + m * p[1], h[2] + m * (p[2] + s))


@entry
def joint_states(mods, x, xd, xdd, q, qd, qdd):
    """Write position, velocity and acceleration of every joint of the tree (q = gamma, qd = G xd, G xdd + g)."""
    for k in range(mods.shape[0]):
        b = mods[k]
        i, row = b['coordinate'], b['joint']
        if row[0] < 0:
            continue            # a floating base
        q[row[0]], qd[row[0]], qdd[row[0]] = x[i], xd[i], xdd[i]
        if b['kind'] == LOOP:
            cq, sq, _, _, k1, k2, k4, k5 = triangle(b, x[i], xd[i])
            if sq == 0.0:
                return k + 1
            sign = b['sign'][2]
            q[row[1]] = math.atan2(sq, cq) + b['zero'][1]
            qd[row[1]] = k1 * xd[i]
            qdd[row[1]] = k1 * xdd[i] + k4
            q[row[2]] = sign * cylinder_angle(b, x[i], cq, sq) + b['zero'][2]
            qd[row[2]] = sign * k2 * xd[i]
            qdd[row[2]] = sign * (k2 * xdd[i] + k5)
    return 0


@kernel
def cylinder_angle(b, x, c, s):
    """Return the angle of the stroke axis, from barrel to eye, against C -> B; continuous over the whole stroke."""
    return (math.atan2(b['L1'] * s, b['L'] + b['L1'] * c)
            - math.atan2(b['side'] * b['e'], b['side'] * (x + b['x0'])))


@entry
def coordinates(mods, rows, q, qd, qdd, x, xd, xdd, residual):
    """Write the coordinates and their rates from measured joints; the inverse of `joint_states`.

    rows (n, 3): where in q the actuated joint, the boom and the barrel of each module stand, -1 where they are
    not measured.  residual (n,): by how far redundant joints of a loop disagree at the rod eye [m].
    Returns 0, or 8 (k + 1) + the reason why module k is not fixed.
    """
    for k in range(mods.shape[0]):
        b = mods[k]
        i = b['coordinate']
        j, boom, barrel = rows[k][0], rows[k][1], rows[k][2]
        residual[k] = 0.0
        if j >= 0:
            x[i], xd[i], xdd[i] = q[j], qd[j], qdd[j]
            if b['kind'] != LOOP:
                continue
        elif boom >= 0:
            status, x[i] = stroke_from_boom(b, q[boom] - b['zero'][1])
            if status != 0:
                return 8 * (k + 1) + status
        else:
            status, x[i] = stroke_from_barrel(b, b['sign'][2] * (q[barrel] - b['zero'][2]))
            if status != 0:
                return 8 * (k + 1) + status
        cq, sq, _, _, k1, k2, k4, k5 = triangle(b, x[i], 1.0)
        if sq == 0.0:
            return 8 * (k + 1) + UNREACHABLE
        if j < 0:
            ratio, rate, acceleration, curve = k1, 0.0, 0.0, k4
            if boom >= 0:
                rate, acceleration = qd[boom], qdd[boom]
            else:
                sign = b['sign'][2]
                ratio, rate, acceleration, curve = k2, sign * qd[barrel], sign * qdd[barrel], k5
            if abs(ratio) < 1e-6:
                return 8 * (k + 1) + NO_LEVER
            xd[i] = rate / ratio
            xdd[i] = (acceleration - curve * xd[i] * xd[i]) / ratio
        gap = 0.0
        if boom >= 0:
            gap = 2.0 * b['L1'] * abs(math.sin(0.5 * (q[boom] - b['zero'][1] - math.atan2(sq, cq))))
        if barrel >= 0:
            turn = b['sign'][2] * (q[barrel] - b['zero'][2]) - cylinder_angle(b, x[i], cq, sq)
            rho = x[i] + b['x0']
            gap = max(gap, 2.0 * math.sqrt(rho * rho + b['e'] * b['e']) * abs(math.sin(0.5 * turn)))
        residual[k] = gap
    return 0


@kernel
def stroke_from_boom(b, q):
    """Return (status, x) of the triangle whose boom stands at q against C -> B."""
    if math.sin(q) * b['mode'] <= 0.0:
        return OTHER_BRANCH, 0.0
    rho2 = b['L'] * b['L'] + b['L1'] * b['L1'] + 2.0 * b['L'] * b['L1'] * math.cos(q) - b['e'] * b['e']
    if not rho2 > 0.0:
        return UNREACHABLE, 0.0
    return 0, b['side'] * math.sqrt(rho2) - b['x0']


@kernel
def stroke_from_barrel(b, q1):
    """Return (status, x) of the triangle whose stroke axis, from barrel to eye, stands at q1: |rho u + e n - L| = L1.

    Of the two solutions the one inside the stroke limits and on the assembly branch counts; two are ambiguous.
    """
    L, L1, e = b['L'], b['L1'], b['e']
    c, s = b['side'] * math.cos(q1), b['side'] * math.sin(q1)
    # in the form (L1 - h)(L1 + h), h the distance of B from the stroke axis
    h = L * s + e
    t = (L1 - h) * (L1 + h)
    if not t >= 0.0:
        return UNREACHABLE, 0.0
    root, found, x = math.sqrt(t), 0, 0.0
    for sign in (-1.0, 1.0):
        rho = L * c + sign * root
        candidate = rho - b['x0']
        if (rho * b['side'] > 0.0 and (rho * s + e * c) * b['mode'] > 0.0
                and b['lower'] - 1e-6 <= candidate <= b['upper'] + 1e-6):
            found += 1
            x = candidate
    if found == 1:
        return 0, x
    return (UNREACHABLE, 0.0) if found == 0 else (AMBIGUOUS, 0.0)
