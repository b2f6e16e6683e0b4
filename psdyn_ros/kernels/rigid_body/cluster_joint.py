"""A cluster as one module of the articulated-body recursion: its n_y coordinates are eliminated at once."""
import math

from ..algebra.linear import cholesky, solve_lower, solve_upper
from ..algebra.spatial import add, articulated_less_dyad, dot, general_times, pair, store, symmetric_times, turn_z
from ..runtime.compiler import kernel
from .forward import lateral_times, put_inertia
from .joints import parent_slide, wrench_at_parent
from .records import PRISMATIC


@kernel
def keep(mods, work, loops, k, M, F, T):
    """Note what a cluster's joint and its ancestors feel of its body; return M, F, T at its base frame."""
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
def release(loops, n, v, w, xdd):
    """Give the joints of cluster n their accelerations: its base body's is (v, w)."""
    c = loops.clusters[n]
    freedom, alpha, drive, psi = c['freedom'], loops.alpha[n], loops.drive[n], loops.psi[n]
    for a in range(freedom):
        drive[a] -= (psi[a, 0] * v[0] + psi[a, 1] * v[1] + psi[a, 2] * v[2]
                     + psi[a, 3] * w[0] + psi[a, 4] * w[1] + psi[a, 5] * w[2])
    solve_upper(alpha, freedom, drive)
    for j in range(c['first'], c['first'] + c['joints']):
        t, total = loops.tied[j], loops.work[j]['g']
        for a in range(freedom):
            total += loops.G[j, a] * drive[a]
        loops.z[2, t['module']] = total
        if t['independent'] >= 0:
            xdd[t['coordinate']] = drive[t['independent']]
