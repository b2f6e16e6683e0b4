"""Dynamics of machines with loops of any kind: the recursions of `forward` and `inverse` through clusters.

Every joint of a cluster is a module of its own in the recursion (its `coordinate` is its row in z, the positions of
all modules), so velocities, accelerations and wrenches pass through a cluster as through a tree.  Inverse dynamics
then is the tree's, projected: f_y = G' tau.  Forward dynamics keeps the bodies of a cluster together:

    H, C  joint-space inertia and bias of its tree, with the articulated inertias of what stands on it
    psi = F G,  alpha = G' H G,  delta = G' (C + H g)        F: wrench on the base body for unit qdd
    ydd = alpha^-1 (f_y - delta - psi' a)
    M^A = M - psi alpha^-1 psi'                               p^A = p + F g + psi alpha^-1 (f_y - delta)

which is the module of `forward` with n_y coordinates.
"""
import math

from .closure import close
from .compiler import entry, kernel
from .entry import NON_FINITE, SHAPE
from .forward import eliminate, gather, lateral_times, put_inertia, to_parent, zero_articulated
from .inverse import inverse
from .motion import (
    accelerate,
    accelerate_cylinder,
    motion_at_base,
    outward_velocities,
    parent_acceleration,
    parent_slide,
    wrench_at_parent,
)
from .records import PRISMATIC
from .spatial import (
    add,
    articulated_less_dyad,
    dot,
    general_times,
    pair,
    store,
    symmetric_times,
    turn_z,
)


@kernel
def spread(loops, x, xd):
    """Close all clusters at x, xd; write positions and rates of all modules into z[0], z[1]; return a status."""
    status = close(loops.clusters, loops.tied, loops.rows, loops.poses, loops.work, x, xd, loops.A, loops.G)
    if status != 0:
        return status
    z = loops.z
    for k in range(loops.own.shape[0]):
        i = loops.own[k]
        if i >= 0:
            z[0, k], z[1, k] = x[i], xd[i]
    for j in range(loops.tied.shape[0]):
        k, u = loops.tied[j]['module'], loops.work[j]
        z[0, k], z[1, k] = u['q'], u['qd']
    return 0


@kernel
def tree_accelerations(loops, xdd):
    """Write the accelerations of all modules for those of the coordinates, qdd = G ydd + g, into z[2]."""
    z = loops.z
    for k in range(loops.own.shape[0]):
        if loops.own[k] >= 0:
            z[2, k] = xdd[loops.own[k]]
    for n in range(loops.clusters.shape[0]):
        c = loops.clusters[n]
        for j in range(c['first'], c['first'] + c['joints']):
            total = loops.work[j]['g']
            for i in range(c['first'], c['first'] + c['joints']):
                t = loops.tied[i]
                if t['independent'] >= 0:
                    total += loops.G[j, t['independent']] * xdd[t['coordinate']]
            z[2, loops.tied[j]['module']] = total


@kernel
def pin_losses(loops):
    """Add the friction of the pins that close loops to the torques tau of the joints they tie."""
    for i in range(loops.losses.shape[0]):
        b = loops.losses[i]
        rate = pin_rate(loops, b)
        torque = -(b['damping'] * rate + b['friction'] * math.tanh(rate / b['slip']))
        for sign in (1.0, -1.0):
            j = b['b'] if sign > 0.0 else b['a']
            while j >= 0:
                _, w = pair(loops.work[j]['screw'])
                n = pin_axis(loops, b)
                loops.work[j]['tau'] += sign * torque * (n[0] * w[0] + n[1] * w[1] + n[2] * w[2])
                j = loops.tied[j]['parent']


@kernel
def pin_axis(loops, b):
    a = b['axis']
    if b['a'] < 0:
        return (a[0], a[1], a[2])
    R = loops.work[b['a']]['rotation']
    return (R[0] * a[0] + R[1] * a[1] + R[2] * a[2],
            R[3] * a[0] + R[4] * a[1] + R[5] * a[2],
            R[6] * a[0] + R[7] * a[1] + R[8] * a[2])


@kernel
def pin_rate(loops, b):
    n, rate = pin_axis(loops, b), 0.0
    for sign in (1.0, -1.0):
        j = b['b'] if sign > 0.0 else b['a']
        if j >= 0:
            _, w = pair(loops.work[j]['velocity'])
            rate += sign * (n[0] * w[0] + n[1] * w[1] + n[2] * w[2])
    return rate


@entry
def inverse_general(mods, work, env, loops, x, xd, xdd, f_y):
    """Write the efforts f_y (dof,) on the coordinates; return 0, a status of `inverse`, or -8 (cluster + 1) - reason.

    f_y = G' tau, the efforts that actuators on the independent joints would need.
    """
    status = checked_inputs(x, xd, xdd)
    if status != 0:
        return status
    status = spread(loops, x, xd)
    if status != 0:
        return -status
    tree_accelerations(loops, xdd)
    z = loops.z
    status = inverse(mods, work, env, z[0], z[1], z[2], z[3])
    if status != 0:
        return status
    project(loops, f_y)
    return 0


@kernel
def project(loops, f_y):
    """Write f_y = G' tau from the efforts z[3] of all modules, less the friction of closing pins."""
    z = loops.z
    for j in range(loops.tied.shape[0]):
        loops.work[j]['tau'] = 0.0
    pin_losses(loops)
    for k in range(loops.own.shape[0]):
        if loops.own[k] >= 0:
            f_y[loops.own[k]] = z[3, k]
    for n in range(loops.clusters.shape[0]):
        c = loops.clusters[n]
        for i in range(c['first'], c['first'] + c['joints']):
            t = loops.tied[i]
            if t['independent'] >= 0:
                total = 0.0
                for j in range(c['first'], c['first'] + c['joints']):
                    effort = z[3, loops.tied[j]['module']] - loops.work[j]['tau']
                    total += loops.G[j, t['independent']] * effort
                f_y[t['coordinate']] = total


@kernel
def checked_inputs(a, b, c):
    if a.shape[0] != b.shape[0] or a.shape[0] != c.shape[0]:
        return SHAPE
    total = 0.0
    for i in range(a.shape[0]):
        total += 0.0 * a[i] + 0.0 * b[i] + 0.0 * c[i]
    return 0 if total == 0.0 else NON_FINITE


@entry
def forward_general(mods, work, env, loops, x, xd, tau, xdd):
    """Write xdd (dof,) for the efforts tau (modules,) on the joints; statuses as `inverse_general`."""
    status = checked_inputs(x, xd, x)
    if status != 0:
        return status
    status = spread(loops, x, xd)
    if status != 0:
        return -status
    z = loops.z
    status = outward_velocities(mods, work, env, z[0], z[1])
    if status != 0:
        return status
    for j in range(loops.tied.shape[0]):
        loops.work[j]['tau'] = tau[loops.tied[j]['module']]
    pin_losses(loops)
    bias_accelerations(mods, work, loops)
    inward(mods, work, env, loops, tau)
    return outward(mods, work, env, loops, xdd)


@kernel
def bias_accelerations(mods, work, loops):
    """Set beta of every joint of a cluster: the acceleration at its base frame for zero qdd on a base at rest."""
    for k in range(mods.shape[0]):
        n = loops.cluster_of[k]
        if n < 0:
            continue
        b, u = mods[k], work[k]
        v, w = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if b['parent'] >= 0 and loops.cluster_of[b['parent']] == n:
            v, w = pair(work[b['parent']]['acceleration'])
        v, w = motion_at_base(b, parent_slide(b, work), v, w)
        store(loops.work[loops.member[k]]['beta'], v, w)
        accelerate(b, u, v, w, 0.0)


@kernel
def inward(mods, work, env, loops, tau):
    """Second sweep, tips to base; a cluster is reduced when its lowest module has been reached."""
    z = loops.z
    M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(mods.shape[0] - 1, -1, -1):
        b, u = mods[k], work[k]
        if not b['chained']:
            M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        M, F, T = gather(b, u, env, k, M, F, T)
        if loops.own[k] >= 0:
            M, F, T = eliminate(mods, work, env, k, z[1], tau, M, F, T)
        else:
            M, F, T = keep(mods, work, loops, k, M, F, T)


@kernel
def keep(mods, work, loops, k, M, F, T):
    """Hand the composite inertia of a cluster's body on, note what its joint and its ancestors feel of it."""
    b, u, j = mods[k], work[k], loops.member[k]
    kappa, sigma = u['kappa'], u['sigma']
    A, H, J = M
    cv, cw = pair(u['bias'])
    dF, dT = lateral_times(M, cv)
    if b['kind'] == PRISMATIC:
        P, Q = (A[2] * sigma, A[4] * sigma, A[5] * sigma), (H[6] * sigma, H[7] * sigma, H[8] * sigma)
    else:
        dF, dT = add(dF, general_times(H, cw)), add(dT, symmetric_times(J, cw))
        P, Q = (H[2] * kappa, H[5] * kappa, H[8] * kappa), (J[2] * kappa, J[4] * kappa, J[5] * kappa)
    F, T = add(F, dF), add(T, dT)
    v = loops.work[j]
    bv, bw = pair(v['beta'])
    v['C'] = sigma * F[2] + kappa * T[2] + dot(P, bv) + dot(Q, bw)
    if b['rubs']:
        v['tau'] += joint_friction(b, loops.z[1, k])
    spread_column(mods, work, loops, k, j, P, Q)
    if b['parent'] >= 0:
        M, F, T = to_parent(b, work, M, F, T)
    n = loops.cluster_of[k]
    if loops.clusters[n]['head'] == k:
        reduce(mods, work, loops, n)
    return M, F, T


@kernel
def joint_friction(b, rate):
    return -b['damping'][0] * rate - b['friction'][0] * math.tanh(rate / b['slip'])


@kernel
def spread_column(mods, work, loops, k, j, P, Q):
    """Take the momentum (P, Q) of joint j down to the base body: one column of H, and psi of the joint."""
    first = loops.clusters[loops.cluster_of[k]]['first']
    u = work[k]
    loops.H[j, j - first] = u['sigma'] * P[2] + u['kappa'] * Q[2]
    row = k
    while True:
        b = mods[row]
        P, Q = wrench_at_parent(b, parent_slide(b, work), P, Q)
        row = b['parent']
        if row < 0 or loops.cluster_of[row] != loops.cluster_of[k]:
            break
        u, i = work[row], loops.member[row]
        P, Q = turn_z(P, u['c'], u['s']), turn_z(Q, u['c'], u['s'])
        value = u['sigma'] * P[2] + u['kappa'] * Q[2]
        loops.H[i, j - first] = value
        loops.H[j, i - first] = value
    store(loops.work[j]['psi'], P, Q)


@kernel
def reduce(mods, work, loops, n):
    """Form alpha, delta and psi of cluster n, and take what its coordinates absorb off the base body."""
    c = loops.clusters[n]
    first, last, freedom = c['first'], c['first'] + c['joints'], c['freedom']
    G, H, alpha, drive, psi = loops.G, loops.H, loops.alpha[n], loops.drive[n], loops.psi[n]
    for a in range(freedom):
        for d in range(freedom):
            alpha[a, d] = 0.0
        for i in range(6):
            psi[a, i] = 0.0
        drive[a] = 0.0
    for j in range(first, last):
        v = loops.work[j]
        # bodies on different branches do not meet in H: those entries are never written, and stay zero
        Hg = 0.0
        for i in range(first, last):
            Hg += H[j, i - first] * loops.work[i]['g']
        rest = v['tau'] - v['C'] - Hg
        for a in range(freedom):
            drive[a] += G[j, a] * rest
            for i in range(6):
                psi[a, i] += G[j, a] * v['psi'][i]
            HG = 0.0
            for i in range(first, last):
                HG += H[j, i - first] * G[i, a]
            for d in range(freedom):
                alpha[d, a] += G[j, d] * HG
    cholesky(alpha, freedom)
    solve_lower(alpha, freedom, drive)
    for i in range(6):
        for a in range(freedom):
            total = psi[a, i]
            for d in range(a):
                total -= alpha[a, d] * psi[d, i]
            psi[a, i] = total / alpha[a, a]
    # now psi is L^-1 psi' and drive L^-1 (f - delta), with alpha = L L'
    row = mods[c['head']]['parent']
    if row < 0:
        return
    on = mods[c['head']]['on']
    inertia, wrench = work[row]['inertia'][on], work[row]['wrench'][on]
    for a in range(freedom):
        P, Q = pair(psi[a])
        less_dyad(inertia, P, Q)
        for i in range(6):
            wrench[i] += psi[a, i] * drive[a]
    for j in range(first, last):
        for i in range(6):
            wrench[i] += loops.work[j]['psi'][i] * loops.work[j]['g']


@kernel
def less_dyad(a, P, Q):
    M = ((a[0], a[1], a[2], a[3], a[4], a[5]), (a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14]),
         (a[15], a[16], a[17], a[18], a[19], a[20]))
    put_inertia(a, articulated_less_dyad(M, P, Q, 1.0))


@kernel
def cholesky(A, n):
    """Replace the lower triangle of A by L with A = L L'."""
    for j in range(n):
        for i in range(j, n):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = math.sqrt(total) if i == j else total / A[j, j]


@kernel
def solve_lower(L, n, b):
    for i in range(n):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]


@kernel
def outward(mods, work, env, loops, xdd):
    """Third sweep: accelerations of coordinates and bodies, base to tips.  Returns 0, or 1 + the module at fault."""
    z = loops.z
    for k in range(mods.shape[0]):
        b, u = mods[k], work[k]
        v, w = parent_acceleration(b, work, env)
        n = loops.cluster_of[k]
        if n >= 0 and loops.clusters[n]['head'] == k:
            release(loops, n, v, w, xdd)
        v, w = motion_at_base(b, parent_slide(b, work), v, w)
        if n >= 0:
            rate = z[2, k]
        else:
            P = u['psi']
            rate = u['u'] - (P[0] * v[0] + P[1] * v[1] + P[2] * v[2] + P[3] * w[0] + P[4] * w[1] + P[5] * w[2])
            xdd[loops.own[k]] = rate
        if not abs(rate) < math.inf:
            return k + 1
        accelerate(b, u, v, w, rate)
        if b['laden']:
            accelerate_cylinder(b, u, v, w, rate)
    return 0


@kernel
def release(loops, n, v, w, xdd):
    """Give the joints of cluster n their accelerations: its base body's is (v, w)."""
    c = loops.clusters[n]
    freedom, alpha, drive, psi = c['freedom'], loops.alpha[n], loops.drive[n], loops.psi[n]
    for a in range(freedom):
        drive[a] -= (psi[a, 0] * v[0] + psi[a, 1] * v[1] + psi[a, 2] * v[2]
                     + psi[a, 3] * w[0] + psi[a, 4] * w[1] + psi[a, 5] * w[2])
    for a in range(freedom - 1, -1, -1):
        for d in range(a + 1, freedom):
            drive[a] -= alpha[d, a] * drive[d]
        drive[a] /= alpha[a, a]
    for j in range(c['first'], c['first'] + c['joints']):
        t, total = loops.tied[j], loops.work[j]['g']
        for a in range(freedom):
            total += loops.G[j, a] * drive[a]
        loops.z[2, t['module']] = total
        if t['independent'] >= 0:
            xdd[t['coordinate']] = drive[t['independent']]
