"""The cylinder triangle: a boom that a cylinder turns, as a revolute joint with a ratio and a cylinder beside it.

Source: P. Paz and J. Mattila, analytic O(n) forward dynamics of linearly actuated parallel-serial manipulators (
equation numbers of the printed version); the closed forms of k4, k5 and the offset e are not in the paper.
"""
import math

from ..algebra.spatial import (
    add,
    articulated_add,
    articulated_plus_rigid,
    articulated_shift,
    articulated_times,
    articulated_turn_z,
    body_wrench,
    cross,
    inertia_at,
    pair,
    rigid,
    rigid_add,
    rigid_bias,
    rigid_shift,
    rigid_slide_x,
    rigid_times,
    rigid_turn_z,
    store,
    sub,
    turn_z,
    vector,
    zero_articulated,
)
from ..runtime.compiler import kernel, python_kernel
from ..runtime.status import AMBIGUOUS, OK, OTHER_BRANCH, UNREACHABLE
from .friction import joint_friction
from .records import BARREL, ROD

# sin^2 q below this is a toggle: the cylinder has no lever left
MIN_SQUARED_SINE = 1e-12


@python_kernel
def triangle(b, x, xd):
    """Close the triangle of a loop at stroke x and rate xd (2), (28).

    Returns (cos q, sin q, cos q1, sin q1, k1, k2, k4, k5) with q the angle of the boom side B -> T against C -> B,
    q1 that of the stroke axis, qd = k1 xd, q1d = k2 xd, qdd = k1 xdd + k4, q1dd = k2 xdd + k5.
    rho = x + x0, s^2 = rho^2 + e^2 = |C T|^2.  sin q = 0: the triangle does not close, or is at a toggle point.
    """
    L, L1, e = b['L'], b['L1'], b['e']
    rho = x + b['x0']
    ss = rho * rho + e * e
    half = b['half']
    c = (ss - (L * L + L1 * L1)) * half
    t = (1.0 - c) * (1.0 + c)
    if not (t > MIN_SQUARED_SINE and rho * b['side'] > 0.0):
        return c, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s = b['mode'] * math.sqrt(t)
    ratio = 1.0 / s
    inverse = 1.0 / ss
    ax, ay = (L + L1 * c) * inverse, L1 * s * inverse
    k = -2.0 * half * ratio
    k1 = k * rho
    r = L1 * (L1 + L * c) * inverse                                  # dq1/dq at e = 0
    skew = e * inverse
    xx = xd * xd
    k4 = xx * (k - k1 * k1 * c * ratio)
    k5 = xx * (rho * inverse * ((1.0 - 2.0 * r) * k1 - 2.0 * skew)) + r * k4
    return c, s, ax * rho + ay * e, ay * rho - ax * e, k1, r * k1 + skew, k4, k5


@kernel
def move_triangle(b, u, v, w):
    """Set joint numbers, bias and the barrel's velocity from the twist (v, w) at the base frame.

    Returns (cos q, sin q, (v, w) of the boom in base axes); sin q = 0: the triangle does not close.
    """
    xd = u['qd']
    cq, sq, c1, s1, k1, k2, k4, k5 = triangle(b, u['q'], xd)
    bc, bs = b['base_turn'][0], b['base_turn'][1]
    c1, s1 = bc * c1 - bs * s1, bs * c1 + bc * s1
    move_cylinder(b, u, v, w, c1, s1, k2, k5)
    qd = k1 * xd
    u['kappa'], u['sigma'], u['slide'] = k1, 0.0, 0.0
    store(u['bias'], (v[1] * qd, -v[0] * qd, 0.0), (w[1] * qd, -w[0] * qd, k4))
    return cq, sq, v, (w[0], w[1], w[2] + qd)


@kernel
def add_cylinder(m, k, M, F, T, P, Q):
    """Add barrel and rod to inertia, bias wrench and momentum P, Q of a boom; return also alpha and delta of all."""
    b, u = m.modules[k], m.work[k]
    alpha, delta = u['kappa'] * Q[2], u['kappa'] * T[2]
    if b['cylinder_has_children'] or m.environment[0]['loaded']:
        N, dF, dT, dP, dQ, da, dd = articulated_cylinder(m, k)
        M = articulated_add(M, N)
    else:
        B, dF, dT, dP, dQ, da, dd = cylinder(b, u)
        M = articulated_plus_rigid(M, B)
    return M, add(F, dF), add(T, dT), add(P, dP), add(Q, dQ), alpha + da, delta + dd


@kernel
def move_cylinder(b, u, v, w, c1, s1, k2, k5):
    """Set the barrel's velocity; (c1, s1): turn of the cylinder frame in the base frame."""
    v = add(v, cross(w, vector(b['pin'])))
    v, w = turn_z(v, c1, -s1), turn_z(w, c1, -s1)
    u['c1'], u['s1'], u['k2'], u['k5'] = c1, s1, k2, k5
    store(u['cylinder_velocity'], v, (w[0], w[1], w[2] + k2 * u['qd']))


@kernel
def accelerate_cylinder(b, u, v, w):
    """Set the barrel's acceleration from the one (v, w) at the base frame (30)."""
    v = add(v, cross(w, vector(b['pin'])))
    v, w = turn_z(v, u['c1'], -u['s1']), turn_z(w, u['c1'], -u['s1'])
    t, qd = u['cylinder_velocity'], u['k2'] * u['qd']
    store(u['cylinder_acceleration'],
          (v[0] + t[1] * qd, v[1] - t[0] * qd, v[2]),
          (w[0] + t[4] * qd, w[1] - t[3] * qd, w[2] + u['k5'] + u['k2'] * u['qdd']))


@kernel
def cylinder(b, u):
    """Return inertia, bias wrench, psi (base frame), alpha and delta of a barrel and rod that carry nothing."""
    xd, k2 = u['qd'], u['k2']
    R = rigid_slide_x(rigid(b['rod']), u['q'])
    C = rigid_add(rigid(b['barrel']), R)
    mass, hr, _ = R             # of the rod
    v, w = pair(u['cylinder_velocity'])
    qd = k2 * xd

    # velocity wrench: the rod moves at v + (xd, 0, 0)
    l, n = rigid_times(C, v, w)
    l = (l[0] + mass * xd, l[1], l[2])
    n = (n[0], n[1] + hr[2] * xd, n[2] - hr[1] * xd)
    vr = (v[0] + xd, v[1], v[2])
    lr = add((mass * vr[0], mass * vr[1], mass * vr[2]), cross(w, hr))
    F = cross(w, l)
    T = add(cross(w, n), cross(v, l))
    T = (T[0], T[1] - xd * lr[2], T[2] + xd * lr[1])
    rod = w[1] * lr[2] - w[2] * lr[1]

    # bias accelerations: c of the barrel, and (0, w2, -w1) xd more for the rod
    cv, cw = (v[1] * qd, -v[0] * qd, 0.0), (w[1] * qd, -w[0] * qd, u['k5'])
    gy, gz = w[2] * xd, -w[1] * xd
    f, t = rigid_times(C, cv, cw)
    F = add(F, (f[0], f[1] + mass * gy, f[2] + mass * gz))
    T = add(T, (t[0] + hr[1] * gz - hr[2] * gy, t[1] - hr[0] * gz, t[2] + hr[0] * gy))
    rod += mass * cv[0] + cw[1] * hr[2] - cw[2] * hr[1]

    # momenta for unit rate: barrel (0; 0, 0, k2), rod (1, 0, 0; 0, 0, k2)
    P = (mass - k2 * C[1][1], k2 * C[1][0], 0.0)
    Q = (k2 * C[2][2], k2 * C[2][4] + hr[2], k2 * C[2][5] - hr[1])
    alpha = k2 * Q[2] + mass - k2 * hr[1]
    delta = k2 * T[2] + rod

    c, s, p = u['c1'], u['s1'], vector(b['pin'])
    C = rigid_shift(rigid_turn_z(C, c, s), p)
    F, P = turn_z(F, c, s), turn_z(P, c, s)
    return C, F, add(turn_z(T, c, s), cross(p, F)), P, add(turn_z(Q, c, s), cross(p, P)), alpha, delta


@kernel
def articulated_cylinder(m, k):
    """Return the same as `cylinder` with children or external wrenches on barrel or rod: articulated inertias."""
    b, u = m.modules[k], m.work[k]
    xd, k2 = u['qd'], u['k2']
    v, w = pair(u['cylinder_velocity'])
    vr, qd = (v[0] + xd, v[1], v[2]), u['k2'] * xd
    B, R = rigid(b['barrel']), rigid_slide_x(rigid(b['rod']), u['q'])
    zero = (0.0, 0.0, 0.0)
    MB, MR = articulated_plus_rigid(zero_articulated(), B), articulated_plus_rigid(zero_articulated(), R)
    F, T = rigid_bias(B, v, w)
    FR, TR = rigid_bias(R, vr, w)
    if b['cylinder_has_children'] & 1:
        MB, F, T = add_children(u, BARREL, MB, F, T)
    if b['cylinder_has_children'] & 2:
        MR, FR, TR = add_children(u, ROD, MR, FR, TR)
    if m.environment[0]['loaded']:
        F, T = subtract_external(m, k, BARREL, F, T)
        FR, TR = subtract_external(m, k, ROD, FR, TR)

    cv, cw = (v[1] * qd, -v[0] * qd, 0.0), (w[1] * qd, -w[0] * qd, u['k5'])
    f, t = articulated_times(MB, cv, cw)
    fr, tr = articulated_times(MR, (cv[0], cv[1] + w[2] * xd, cv[2] - w[1] * xd), cw)
    FR, TR = add(FR, fr), add(TR, tr)
    F, T = add(add(F, f), FR), add(add(T, t), TR)

    P, Q = articulated_times(MB, zero, (0.0, 0.0, k2))
    PR, QR = articulated_times(MR, (1.0, 0.0, 0.0), (0.0, 0.0, k2))
    P, Q = add(P, PR), add(Q, QR)
    alpha, delta = k2 * Q[2] + PR[0], k2 * T[2] + FR[0]

    c, s, p = u['c1'], u['s1'], vector(b['pin'])
    C = articulated_shift(articulated_turn_z(articulated_add(MB, MR), c, s), p)
    F, P = turn_z(F, c, s), turn_z(P, c, s)
    return C, F, add(turn_z(T, c, s), cross(p, F)), P, add(turn_z(Q, c, s), cross(p, P)), alpha, delta


@kernel
def subtract_external(m, k, body, F, T):
    """Subtract the external wrench on a body of module k from (F, T)."""
    f, t = pair(m.modules[k]['external'][body])
    return sub(F, f), sub(T, t)


@kernel
def add_children(u, body, M, F, T):
    """Add inertia and wrench that the children of a body have accumulated there."""
    f, t = pair(u['wrench'][body])
    return articulated_add(M, inertia_at(u['inertia'][body])), add(F, f), add(T, t)


@kernel
def cylinder_wrenches(b, u):
    """Set the wrenches that barrel and rod need for their motion."""
    f, t = body_wrench(rigid(b['barrel']), u['cylinder_velocity'], u['cylinder_acceleration'])
    store(u['wrench'][BARREL], f, t)

    v, w = pair(u['cylinder_velocity'])
    a, d = pair(u['cylinder_acceleration'])
    rate = u['qd']
    a = (a[0] + u['qdd'], a[1] + w[2] * rate, a[2] - w[1] * rate)
    R = rigid_slide_x(rigid(b['rod']), u['q'])
    f, t = rigid_times(R, a, d)
    fp, tp = rigid_bias(R, (v[0] + rate, v[1], v[2]), w)
    store(u['wrench'][ROD], add(f, fp), add(t, tp))


@kernel
def cylinder_angle(b, x, c, s):
    """Return the angle of the stroke axis, from barrel to eye, against C -> B; continuous over the whole stroke."""
    return (math.atan2(b['L1'] * s, b['L'] + b['L1'] * c)
            - math.atan2(b['side'] * b['e'], b['side'] * (x + b['x0'])))


@kernel
def stroke_from_boom(b, q):
    """Return (status, x) of the triangle whose boom stands at q against C -> B."""
    if math.sin(q) * b['mode'] <= 0.0:
        return OTHER_BRANCH, 0.0
    rho2 = b['L'] * b['L'] + b['L1'] * b['L1'] + 2.0 * b['L'] * b['L1'] * math.cos(q) - b['e'] * b['e']
    if not rho2 > 0.0:
        return UNREACHABLE, 0.0
    return OK, b['side'] * math.sqrt(rho2) - b['x0']


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
        return OK, x
    return (UNREACHABLE, 0.0) if found == 0 else (AMBIGUOUS, 0.0)


@kernel
def wrench_of_cylinder(b, u):
    """Return (effort on the stroke, wrench at the base frame) of the wrenches on barrel and rod."""
    fr, tr = pair(u['wrench'][ROD])
    fc, tc = pair(u['wrench'][BARREL])
    fc, tc = add(fc, fr), add(tc, tr)
    effort = fr[0] + u['k2'] * tc[2]
    fc, tc = turn_z(fc, u['c1'], u['s1']), turn_z(tc, u['c1'], u['s1'])
    return effort, fc, add(tc, cross(vector(b['pin']), fc))


@kernel
def friction_of_triangle(b, u):
    """Return the force on the stroke by the friction of boom pin, barrel pin and rod eye."""
    d, F, slip, rate = b['damping'], b['friction'], b['slip'], u['qd']
    k1, k2 = u['kappa'], u['k2']
    k3 = k1 - k2
    return (k1 * joint_friction(d[1], F[1], slip, k1 * rate) + k2 * joint_friction(d[2], F[2], slip, k2 * rate)
            + k3 * joint_friction(d[3], F[3], slip, k3 * rate))
