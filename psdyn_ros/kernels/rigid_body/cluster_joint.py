"""The joints of a cluster: each is a module of the recursion, all together are one joint of n_y coordinates.

    H, C  joint-space inertia and bias of the cluster's tree, with the articulated inertias of its children
    psi = F G,  alpha = G' H G,  delta = G' (C + H g)        F: wrench on the base body for unit qdd
    ydd = alpha^-1 (f_y - delta - psi' a)                     f_y = G' tau, a: acceleration of the base body
    M^A = M - psi alpha^-1 psi'                               p^A = p + F g + psi alpha^-1 (f_y - delta)

With loops None, for a machine without clusters, Numba prunes the bodies of these functions.
"""
from ..algebra.linear import cholesky, solve_lower, solve_upper
from ..algebra.spatial import (
    accumulate,
    articulated_less_dyad,
    dot,
    inertia_at,
    pair,
    put_inertia,
    scale,
    store,
    turn_z,
)
from ..runtime.compiler import kernel
from .friction import add_pin_friction, passive_force
from .tree import accelerate, hand_to_parent, motion_at_base, parent_acceleration, parent_slide, wrench_at_parent


@kernel
def in_cluster(loops, b):
    """Return whether the joint of module b belongs to a cluster."""
    if loops is None:
        return False
    return b['cluster'] >= 0


@kernel
def closed_joint(loops, b):
    """Return position, rate, and cos and sin of the position, of the joint of module b in a closed cluster."""
    if loops is None:
        return 0.0, 0.0, 1.0, 0.0
    v = loops.work[b['cluster_joint']]
    return v['q'], v['qd'], v['c'], v['s']


@kernel
def set_at_rest(loops):
    """Set rates, bias accelerations and passive forces of the joints of closed clusters to zero."""
    if loops is not None:
        for j in range(loops.cluster_joints.shape[0]):
            loops.work[j]['qd'], loops.work[j]['g'], loops.work[j]['tau'] = 0.0, 0.0, 0.0


@kernel
def accelerate_clusters(loops, m, xdd):
    """Set the accelerations of the joints of all clusters for those of the coordinates: qdd = G ydd + g."""
    if loops is None:
        return
    for n in range(loops.clusters.shape[0]):
        c = loops.clusters[n]
        for j in range(c['first'], c['first'] + c['joints']):
            total = loops.work[j]['g']
            for i in range(c['first'], c['first'] + c['joints']):
                t = loops.cluster_joints[i]
                if t['independent'] >= 0:
                    total += loops.G[j, t['independent']] * xdd[t['coordinate']]
            m.work[loops.cluster_joints[j]['module']]['qdd'] = total


@kernel
def put_cluster_efforts(loops, m, f):
    """Write G' (tau - passive forces) into the rows of f of all clusters."""
    if loops is None:
        return
    for j in range(loops.cluster_joints.shape[0]):
        loops.work[j]['tau'] = passive_force_of(m, loops.cluster_joints[j]['module'])
    add_pin_friction(loops)
    project_efforts(loops, m, f)


@kernel
def passive_force_of(m, k):
    """Return the passive forces on the joint of module k."""
    b = m.modules[k]
    return passive_force(b, m.work[k]) if b['passive'] else 0.0


@kernel
def project_efforts(loops, m, f):
    """Write G' (effort - tau) into the rows of f of all clusters."""
    if loops is None:
        return
    for n in range(loops.clusters.shape[0]):
        c = loops.clusters[n]
        for i in range(c['first'], c['first'] + c['joints']):
            t = loops.cluster_joints[i]
            if t['independent'] >= 0:
                total = 0.0
                for j in range(c['first'], c['first'] + c['joints']):
                    effort = m.work[loops.cluster_joints[j]['module']]['effort'] - loops.work[j]['tau']
                    total += loops.G[j, t['independent']] * effort
                f[t['coordinate']] = total


@kernel
def prepare_clusters(loops, m, f):
    """Set tau, the efforts on the joints of all clusters, and beta, the acceleration at the base frame of each of them
    for zero qdd on a base body at rest."""
    if loops is None:
        return
    for j in range(loops.cluster_joints.shape[0]):
        k = loops.cluster_joints[j]['module']
        loops.work[j]['tau'] = passive_force_of(m, k)
        if m.modules[k]['actuator'] >= 0:
            loops.work[j]['tau'] += f[m.modules[k]['actuator']]
    add_pin_friction(loops)
    for k in range(m.modules.shape[0]):
        b, u = m.modules[k], m.work[k]
        if b['cluster'] < 0:
            continue
        v, w = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        if b['parent'] >= 0 and m.modules[b['parent']]['cluster'] == b['cluster']:
            v, w = pair(m.work[b['parent']]['acceleration'])
        v, w = motion_at_base(b, parent_slide(b, m.work), v, w)
        store(loops.work[b['cluster_joint']]['beta'], v, w)
        u['qdd'] = 0.0
        accelerate(b, u, v, w)


@kernel
def project_cluster_joint(loops, m, k, driven, xdd, M, wrench, momentum):
    """Store column j of H and the bias force C_j of the joint of module k; eliminate the cluster with its last joint.

    wrench: (F, T) and momentum: (P, Q) of `joints.project`.  Returns (M, F, T) at the parent's body.
    """
    if loops is None:
        return M, wrench[0], wrench[1]
    (F, T), (P, Q) = wrench, momentum
    b, u = m.modules[k], m.work[k]
    v = loops.work[b['cluster_joint']]
    bv, bw = pair(v['beta'])
    v['C'] = u['sigma'] * F[2] + u['kappa'] * T[2] + dot(P, bv) + dot(Q, bw)
    store_column(loops, m, k, P, Q)
    M, F, T = hand_to_parent(m, k, M, F, T)
    if loops.clusters[b['cluster']]['head'] == k:
        eliminate_cluster(loops, m, b['cluster'], driven, xdd)
    return M, F, T


@kernel
def store_column(loops, m, k, P, Q):
    """Store column j of H and of F, from its momentum (P, Q) at the base frame of module k."""
    j, cluster = m.modules[k]['cluster_joint'], m.modules[k]['cluster']
    first, u = loops.clusters[cluster]['first'], m.work[k]
    loops.H[j, j - first] = u['sigma'] * P[2] + u['kappa'] * Q[2]
    row = k
    while True:
        b = m.modules[row]
        P, Q = wrench_at_parent(b, parent_slide(b, m.work), P, Q)
        row = b['parent']
        if row < 0 or m.modules[row]['cluster'] != cluster:
            break
        u, i = m.work[row], m.modules[row]['cluster_joint']
        P, Q = turn_z(P, u['c'], u['s']), turn_z(Q, u['c'], u['s'])
        value = u['sigma'] * P[2] + u['kappa'] * Q[2]
        loops.H[i, j - first] = value
        loops.H[j, i - first] = value
    store(loops.work[j]['F'], P, Q)


@kernel
def eliminate_cluster(loops, m, n, driven, xdd):
    """Form alpha, delta and psi of cluster n; subtract their share from inertia and wrench of its base.

    Leaves L^-1 psi' in psi and L^-1 (f - delta) in drive, with alpha = L L'. Driven coordinates have unit rows in L.
    """
    c = loops.clusters[n]
    first, last, freedom = c['first'], c['first'] + c['joints'], c['freedom']
    alpha, drive, psi = loops.alpha[n], loops.drive[n], loops.psi[n]
    form_system(loops, c, alpha, drive, psi)
    row = m.modules[c['head']]['parent']
    if driven is not None:
        for j in range(first, last):
            t = loops.cluster_joints[j]
            if t['independent'] >= 0 and driven[t['coordinate']] != 0:
                a, rate = t['independent'], xdd[t['coordinate']]
                if row >= 0:
                    P, Q = pair(psi[a])
                    body = m.modules[c['head']]['parent_body']
                    accumulate(m.work[row]['wrench'][body], scale(rate, P), scale(rate, Q))
                prescribe(alpha, drive, psi, freedom, a, rate)
    cholesky(alpha, freedom)
    solve_lower(alpha, freedom, drive)
    for i in range(6):
        for a in range(freedom):
            total = psi[a, i]
            for d in range(a):
                total -= alpha[a, d] * psi[d, i]
            psi[a, i] = total / alpha[a, a]
    if row < 0:
        return
    parent_body = m.modules[c['head']]['parent_body']
    inertia, wrench = m.work[row]['inertia'][parent_body], m.work[row]['wrench'][parent_body]
    for a in range(freedom):
        P, Q = pair(psi[a])
        put_inertia(inertia, articulated_less_dyad(inertia_at(inertia), P, Q, 1.0))
        for i in range(6):
            wrench[i] += psi[a, i] * drive[a]
    for j in range(first, last):
        for i in range(6):
            wrench[i] += loops.work[j]['F'][i] * loops.work[j]['g']


@kernel
def form_system(loops, c, alpha, drive, psi):
    """Write alpha = G' H G, drive = f_y - delta and psi of cluster c."""
    first, last, freedom, G, H = c['first'], c['first'] + c['joints'], c['freedom'], loops.G, loops.H
    for a in range(freedom):
        drive[a] = 0.0
        for d in range(freedom):
            alpha[a, d] = 0.0
        for i in range(6):
            psi[a, i] = 0.0
    for j in range(first, last):
        v = loops.work[j]
        # bodies on different branches do not meet in H: those entries are never written, and stay zero
        Hg = 0.0
        for i in range(first, last):
            Hg += H[j, i - first] * loops.work[i]['g']
        remainder = v['tau'] - v['C'] - Hg
        for a in range(freedom):
            drive[a] += G[j, a] * remainder
            for i in range(6):
                psi[a, i] += G[j, a] * v['F'][i]
            HG = 0.0
            for i in range(first, last):
                HG += H[j, i - first] * G[i, a]
            for d in range(freedom):
                alpha[d, a] += G[j, d] * HG


@kernel
def prescribe(alpha, drive, psi, freedom, a, rate):
    """Prescribe the acceleration `rate` of coordinate a in the system of a cluster, and remove a from psi."""
    for d in range(freedom):
        if d != a:
            drive[d] -= alpha[d, a] * rate
        alpha[a, d], alpha[d, a] = 0.0, 0.0
    alpha[a, a], drive[a] = 1.0, rate
    for i in range(6):
        psi[a, i] = 0.0


@kernel
def back_substitute_cluster(loops, m, k, xdd):
    """Set the accelerations of the joints of a cluster if module k is its lowest; its base body's is known by then."""
    if loops is None:
        return
    n = m.modules[k]['cluster']
    c = loops.clusters[n]
    if c['head'] != k:
        return
    v, w = parent_acceleration(m, m.modules[k])
    freedom, alpha, drive, psi = c['freedom'], loops.alpha[n], loops.drive[n], loops.psi[n]
    for a in range(freedom):
        drive[a] -= (psi[a, 0] * v[0] + psi[a, 1] * v[1] + psi[a, 2] * v[2]
                     + psi[a, 3] * w[0] + psi[a, 4] * w[1] + psi[a, 5] * w[2])
    solve_upper(alpha, freedom, drive)
    for j in range(c['first'], c['first'] + c['joints']):
        t, total = loops.cluster_joints[j], loops.work[j]['g']
        for a in range(freedom):
            total += loops.G[j, a] * drive[a]
        m.work[t['module']]['qdd'] = total
        if t['independent'] >= 0:
            xdd[t['coordinate']] = drive[t['independent']]


@kernel
def map_actuators(loops, m, A):
    """Write the rows of A of actuators in clusters; see `mass_matrix.actuator_map`."""
    if loops is None:
        return
    for j in range(loops.cluster_joints.shape[0]):
        b = m.modules[loops.cluster_joints[j]['module']]
        if b['actuator'] < 0:
            continue
        c = loops.clusters[b['cluster']]
        for i in range(c['first'], c['first'] + c['joints']):
            t = loops.cluster_joints[i]
            if t['independent'] >= 0:
                A[b['actuator'], t['coordinate']] = loops.G[j, t['independent']]
