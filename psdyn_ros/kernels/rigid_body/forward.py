"""Forward dynamics: Algorithm 1 of Paz & Mattila as an articulated-body recursion, O(n), one scalar division a
module.

Their xi, psi, alpha, delta (32), (34), (42)-(49) appear with J_i = xi_i in place of the K matrices, which is
identical for these rows and symmetric by construction:

    alpha = sum J_i' M_i J_i      psi = sum M_i J_i      delta = sum J_i' (M_i b_i + p_i)
    M^A = sum X_i' M_i X_i - psi psi' / alpha            p^A = sum X_i' (M_i b_i + p_i) + psi (f - delta) / alpha

The rigid barrel and rod are summed before they are turned; only the link carries an articulated inertia, handed
over by value from module k+1 to module k along a chain, through `work` at a branch.
"""
from ..algebra.spatial import (
    accumulate,
    add,
    articulated_add,
    articulated_less_dyad,
    articulated_plus_rigid,
    articulated_shift,
    articulated_times,
    articulated_turn_x,
    articulated_turn_z,
    cross,
    general_times,
    pair,
    rigid,
    rigid_add,
    rigid_bias,
    rigid_shift,
    rigid_slide_x,
    rigid_slide_z,
    rigid_times,
    rigid_turn_z,
    store,
    sub,
    symmetric_times,
    turn_z,
)
from ..runtime.compiler import kernel
from .joints import (
    accelerate,
    accelerate_cylinder,
    attachment,
    friction,
    motion_at_base,
    outward_velocities,
    parent_acceleration,
    parent_slide,
    wrench_at_parent,
)
from .records import BARREL, LINK, LOOP, PRISMATIC, ROD


@kernel
def forward(mods, work, env, x, xd, f, xdd):
    """Write the accelerations of the coordinates (dof,) into xdd; return 0 or 1 + the module that fails.

    env (2, 6): twist and spatial acceleration of the base (gravity in it) in base axes; further rows, if any,
    are external wrenches on the link, barrel and rod of each module in their frames.
    """
    status = outward_velocities(mods, work, env, x, xd)
    if status == 0:
        inward_inertias(mods, work, env, xd, f)
        outward_accelerations(mods, work, env, xdd)
    return status


@kernel
def zero_articulated():
    return ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))


@kernel
def inward_inertias(mods, work, env, xd, f):
    """Second sweep: articulated inertia M and bias wrench (F, T), tips to base; leaves psi/alpha and u."""
    M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(mods.shape[0] - 1, -1, -1):
        b, u = mods[k], work[k]
        if not b['chained']:
            M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        M, F, T = gather(b, u, env, k, M, F, T)
        M, F, T = eliminate(mods, work, env, k, xd, f, M, F, T)


@kernel
def gather(b, u, env, k, M, F, T):
    """Return the articulated inertia and bias wrench of module k's link and all it carries, at the base frame."""
    if b['branched']:
        M, F, T = with_children(u, LINK, M, F, T)
    M, F, T = with_link(b, u, M, F, T)
    if env.shape[0] > 2:
        F, T = less_external(env, k, LINK, F, T)
    c, s = u['c'], u['s']
    return articulated_turn_z(M, c, s), turn_z(F, c, s), turn_z(T, c, s)


@kernel
def eliminate(mods, work, env, k, xd, f, M, F, T):
    """Project on the coordinate of module k, leave psi/alpha and u, and hand M^A and p^A to the parent."""
    b, u = mods[k], work[k]
    # at the base frame: what the coordinate feels of the link
    kappa, sigma = u['kappa'], u['sigma']
    A, H, J = M
    cv, cw = pair(u['bias'])
    rate = xd[b['coordinate']]
    effort = f[b['coordinate']]
    if b['rubs']:
        effort += friction(b, u, rate)
    if b['kind'] == PRISMATIC:
        dF, dT = lateral_times(M, cv)
        F, T = add(F, dF), add(T, dT)
        P, Q = (A[2] * sigma, A[4] * sigma, A[5] * sigma), (H[6] * sigma, H[7] * sigma, H[8] * sigma)
        alpha, delta = sigma * P[2], sigma * F[2]
    else:
        dF, dT = lateral_times(M, cv)
        dF, dT = add(dF, general_times(H, cw)), add(dT, symmetric_times(J, cw))
        F, T = add(F, dF), add(T, dT)
        P, Q = (H[2] * kappa, H[5] * kappa, H[8] * kappa), (J[2] * kappa, J[4] * kappa, J[5] * kappa)
        alpha, delta = kappa * Q[2], kappa * T[2]
        if b['kind'] == LOOP:
            if b['laden'] or env.shape[0] > 2:
                N, dF, dT, dP, dQ, da, dd = laden_cylinder(b, u, env, k)
                M = articulated_add(M, N)
            else:
                B, dF, dT, dP, dQ, da, dd = cylinder(b, u)
                M = articulated_plus_rigid(M, B)
            F, T, P, Q = add(F, dF), add(T, dT), add(P, dP), add(Q, dQ)
            alpha += da
            delta += dd

    ratio = 1.0 / alpha
    drive = (effort - delta) * ratio
    u['u'] = drive
    u['psi'][0], u['psi'][1], u['psi'][2] = P[0] * ratio, P[1] * ratio, P[2] * ratio
    u['psi'][3], u['psi'][4], u['psi'][5] = Q[0] * ratio, Q[1] * ratio, Q[2] * ratio
    if b['parent'] >= 0:
        M = articulated_less_dyad(M, P, Q, ratio)
        F = (F[0] + drive * P[0], F[1] + drive * P[1], F[2] + drive * P[2])
        T = (T[0] + drive * Q[0], T[1] + drive * Q[1], T[2] + drive * Q[2])
        M, F, T = to_parent(b, work, M, F, T)
    return M, F, T


@kernel
def lateral_times(M, v):
    """Return the wrench M (v, 0) for v without z component, as every bias acceleration is."""
    A, H, _ = M
    return ((A[0] * v[0] + A[1] * v[1], A[1] * v[0] + A[3] * v[1], A[2] * v[0] + A[4] * v[1]),
            (H[0] * v[0] + H[3] * v[1], H[1] * v[0] + H[4] * v[1], H[2] * v[0] + H[5] * v[1]))


@kernel
def with_link(b, u, M, F, T):
    """Add the link's own inertia and velocity wrench, in the link frame."""
    B = rigid(b['link'])
    if b['kind'] == PRISMATIC:
        B = rigid_slide_z(B, u['slide'])
    v, w = pair(u['velocity'])
    f, m = rigid_bias(B, v, w)
    return articulated_plus_rigid(M, B), add(F, f), add(T, m)


@kernel
def cylinder(b, u):
    """Return inertia, bias wrench, psi (base frame), alpha and delta of a barrel and rod that carry nothing."""
    xd, k2 = u['stroke_rate'], u['k2']
    R = rigid_slide_x(rigid(b['rod']), u['stroke'])
    C = rigid_add(rigid(b['barrel']), R)
    mr, hr, _ = R
    v, w = pair(u['cylinder_velocity'])
    qd = k2 * xd

    # velocity wrench: the rod moves at v + (xd, 0, 0)
    l, n = rigid_times(C, v, w)
    l = (l[0] + mr * xd, l[1], l[2])
    n = (n[0], n[1] + hr[2] * xd, n[2] - hr[1] * xd)
    vr = (v[0] + xd, v[1], v[2])
    lr = add((mr * vr[0], mr * vr[1], mr * vr[2]), cross(w, hr))
    F = cross(w, l)
    T = add(cross(w, n), cross(v, l))
    T = (T[0], T[1] - xd * lr[2], T[2] + xd * lr[1])
    rod = w[1] * lr[2] - w[2] * lr[1]

    # bias accelerations: c of the barrel, and (0, w2, -w1) xd more for the rod
    cv, cw = (v[1] * qd, -v[0] * qd, 0.0), (w[1] * qd, -w[0] * qd, u['k5'])
    gy, gz = w[2] * xd, -w[1] * xd
    f, m = rigid_times(C, cv, cw)
    F = add(F, (f[0], f[1] + mr * gy, f[2] + mr * gz))
    T = add(T, (m[0] + hr[1] * gz - hr[2] * gy, m[1] - hr[0] * gz, m[2] + hr[0] * gy))
    rod += mr * cv[0] + cw[1] * hr[2] - cw[2] * hr[1]

    # momenta for unit rate: barrel (0; 0, 0, k2), rod (1, 0, 0; 0, 0, k2)
    P = (mr - k2 * C[1][1], k2 * C[1][0], 0.0)
    Q = (k2 * C[2][2], k2 * C[2][4] + hr[2], k2 * C[2][5] - hr[1])
    alpha = k2 * Q[2] + mr - k2 * hr[1]
    delta = k2 * T[2] + rod

    c, s, p = u['c1'], u['s1'], (b['pin'][0], b['pin'][1], b['pin'][2])
    C = rigid_shift(rigid_turn_z(C, c, s), p)
    F, P = turn_z(F, c, s), turn_z(P, c, s)
    return C, F, add(turn_z(T, c, s), cross(p, F)), P, add(turn_z(Q, c, s), cross(p, P)), alpha, delta


@kernel
def laden_cylinder(b, u, env, k):
    """The same when other modules or external wrenches act on the barrel or the rod: articulated inertias."""
    xd, k2 = u['stroke_rate'], u['k2']
    v, w = pair(u['cylinder_velocity'])
    vr, qd = (v[0] + xd, v[1], v[2]), u['k2'] * xd
    B, R = rigid(b['barrel']), rigid_slide_x(rigid(b['rod']), u['stroke'])
    zero = (0.0, 0.0, 0.0)
    MB, MR = articulated_plus_rigid(zero_articulated(), B), articulated_plus_rigid(zero_articulated(), R)
    F, T = rigid_bias(B, v, w)
    FR, TR = rigid_bias(R, vr, w)
    if b['laden'] & 1:
        MB, F, T = with_children(u, BARREL, MB, F, T)
    if b['laden'] & 2:
        MR, FR, TR = with_children(u, ROD, MR, FR, TR)
    if env.shape[0] > 2:
        F, T = less_external(env, k, BARREL, F, T)
        FR, TR = less_external(env, k, ROD, FR, TR)

    cv, cw = (v[1] * qd, -v[0] * qd, 0.0), (w[1] * qd, -w[0] * qd, u['k5'])
    f, m = articulated_times(MB, cv, cw)
    fr, mr = articulated_times(MR, (cv[0], cv[1] + w[2] * xd, cv[2] - w[1] * xd), cw)
    FR, TR = add(FR, fr), add(TR, mr)
    F, T = add(add(F, f), FR), add(add(T, m), TR)

    P, Q = articulated_times(MB, zero, (0.0, 0.0, k2))
    PR, QR = articulated_times(MR, (1.0, 0.0, 0.0), (0.0, 0.0, k2))
    P, Q = add(P, PR), add(Q, QR)
    alpha, delta = k2 * Q[2] + PR[0], k2 * T[2] + FR[0]

    c, s, p = u['c1'], u['s1'], (b['pin'][0], b['pin'][1], b['pin'][2])
    C = articulated_shift(articulated_turn_z(articulated_add(MB, MR), c, s), p)
    F, P = turn_z(F, c, s), turn_z(P, c, s)
    return C, F, add(turn_z(T, c, s), cross(p, F)), P, add(turn_z(Q, c, s), cross(p, P)), alpha, delta


@kernel
def less_external(env, k, body, F, T):
    f, m = pair(env[2 + 3 * k + body])
    return sub(F, f), sub(T, m)


@kernel
def with_children(u, body, M, F, T):
    a = u['inertia'][body]
    N = ((a[0], a[1], a[2], a[3], a[4], a[5]), (a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14]),
         (a[15], a[16], a[17], a[18], a[19], a[20]))
    f, m = pair(u['wrench'][body])
    return articulated_add(M, N), add(F, f), add(T, m)


@kernel
def to_parent(b, work, M, F, T):
    """Take M and (F, T) from the base frame to the parent's body, and leave them there at a branch."""
    slide, parent, on = parent_slide(b, work), work[b['parent']], b['on']
    F, T = wrench_at_parent(b, slide, F, T)
    M = articulated_turn_x(M, b['twist'][0], b['twist'][1])
    if b['turned']:
        M = articulated_turn_z(M, b['azimuth'][0], b['azimuth'][1])
    M = articulated_shift(M, attachment(b, slide))
    if b['opens'] == 1:
        put_inertia(parent['inertia'][on], M)
        store(parent['wrench'][on], F, T)
    elif b['opens'] == 0:
        add_inertia(parent['inertia'][on], M)
        accumulate(parent['wrench'][on], F, T)
    return M, F, T


@kernel
def put_inertia(a, M):
    A, H, J = M
    a[0], a[1], a[2], a[3], a[4], a[5] = A
    a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14] = H
    a[15], a[16], a[17], a[18], a[19], a[20] = J


@kernel
def add_inertia(a, M):
    N = ((a[0], a[1], a[2], a[3], a[4], a[5]), (a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14]),
         (a[15], a[16], a[17], a[18], a[19], a[20]))
    put_inertia(a, articulated_add(M, N))


@kernel
def outward_accelerations(mods, work, env, xdd):
    """Third sweep: xdd = u - (psi/alpha) . a, and the acceleration handed on."""
    for k in range(mods.shape[0]):
        b, u = mods[k], work[k]
        v, w = parent_acceleration(b, work, env)
        v, w = motion_at_base(b, parent_slide(b, work), v, w)
        P = u['psi']
        rate = u['u'] - (P[0] * v[0] + P[1] * v[1] + P[2] * v[2] + P[3] * w[0] + P[4] * w[1] + P[5] * w[2])
        xdd[b['coordinate']] = rate
        accelerate(b, u, v, w, rate)
        if b['laden']:
            accelerate_cylinder(b, u, v, w, rate)
