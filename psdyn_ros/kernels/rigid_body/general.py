"""Dynamics of machines with loops of any kind, a floating base, or actuators that are not the coordinates.

Every joint of a cluster is a module of its own in the recursion (its `coordinate` is its row in z, the positions of
all modules), so velocities, accelerations and wrenches pass through a cluster as through a tree.  Inverse dynamics
then is the tree's, projected: f_y = G' tau.  Forward dynamics keeps the bodies of a cluster together:

    H, C  joint-space inertia and bias of its tree, with the articulated inertias of what stands on it
    psi = F G,  alpha = G' H G,  delta = G' (C + H g)        F: wrench on the base body for unit qdd
    ydd = alpha^-1 (f_y - delta - psi' a)
    M^A = M - psi alpha^-1 psi'                               p^A = p + F g + psi alpha^-1 (f_y - delta)

which is the module of `forward` with n_y coordinates.  A floating base is module 0: a body whose twist is the first
six coordinates of xd.

Statuses: 0 fine, SHAPE, NON_FINITE, k + 1 module k, -8 (n + 1) - reason cluster n.
"""
import math

from ..algebra.linear import cholesky, solve_lower, solve_upper
from ..algebra.spatial import cross, pair, store
from ..loops.closure import close
from ..runtime.compiler import entry, kernel
from .cluster_joint import keep, reduce, release
from .forward import eliminate, gather, to_parent, zero_articulated
from .inverse import inverse
from .joints import (
    accelerate,
    accelerate_cylinder,
    motion_at_base,
    outward_velocities,
    parent_acceleration,
    parent_slide,
)
from .time_step import stop_force


@entry
def spread(loops, env, x, xd):
    """Close all clusters at x, xd; write positions and rates of all modules into z[0], z[1]; return a status."""
    status = close(loops, x, xd)
    if status != 0:
        return -status
    z, shift = loops.z, 0
    if loops.base:
        shift = 1
        z[0, 0], z[1, 0] = 0.0, 0.0
        for i in range(6):
            env[0, i] = xd[i]
            env[1, i] = 0.0
        env[1, 0], env[1, 1], env[1, 2] = gravity_in_base(loops, x)
    for k in range(loops.own.shape[0]):
        i = loops.own[k]
        if i >= 0:
            z[0, k], z[1, k] = x[i + shift], xd[i]
    for j in range(loops.tied.shape[0]):
        k, u = loops.tied[j]['module'], loops.work[j]
        z[0, k], z[1, k] = u['q'], u['qd']
    return 0


@kernel
def gravity_in_base(loops, x):
    """Return minus gravity in the axes of a floating base whose orientation x[3:7] is a quaternion x y z w."""
    g, n = loops.gravity, math.sqrt(x[3] * x[3] + x[4] * x[4] + x[5] * x[5] + x[6] * x[6])
    # back-rotation: minus the vector part
    w, p = x[6] / n, (-x[3] / n, -x[4] / n, -x[5] / n)
    a = (-g[0], -g[1], -g[2])
    t = cross(p, a)
    t = (2.0 * t[0], 2.0 * t[1], 2.0 * t[2])
    u = cross(p, t)
    return (a[0] + w * t[0] + u[0], a[1] + w * t[1] + u[1], a[2] + w * t[2] + u[2])


@kernel
def tree_accelerations(loops, env, xdd):
    """Write the accelerations of all modules for those of the coordinates, qdd = G ydd + g, into z[2]."""
    z = loops.z
    if loops.base:
        z[2, 0] = 0.0
        for i in range(6):
            env[1, i] += xdd[i]
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
    if b['a'] < 0 or b['planar']:
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
def general_inverse(mods, work, env, loops, x, xd, xdd, f_y):
    """Write the efforts f_y (dof,) on the coordinates, the base's wrench first; leaves the modules' in z[3].

    f_y = G' tau: what actuators on the independent joints would need.
    """
    status = spread(loops, env, x, xd)
    if status != 0:
        return status
    tree_accelerations(loops, env, xdd)
    z = loops.z
    status = inverse(mods, work, env, z[0], z[1], z[2], z[3])
    if status == 0:
        project(work, loops, f_y)
    return status


@kernel
def project(work, loops, f_y):
    """Write f_y = G' tau from the efforts z[3] of all modules, less the friction of closing pins."""
    if loops.base:
        for i in range(6):
            f_y[i] = work[0]['root'][i]
    for j in range(loops.tied.shape[0]):
        loops.work[j]['tau'] = 0.0
    pin_losses(loops)
    project_joints(loops, f_y)


@kernel
def project_joints(loops, f_y):
    """Write G' (z[3] - tau): the efforts of all modules, less those that are in the work of clusters."""
    z = loops.z
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


@entry
def general_forward(mods, work, env, loops, base, x, xd, f, passive, stiffness, damping, xdd):
    """Write the accelerations xdd (dof,) for actuator efforts f and efforts `passive` (modules,) of any joint.

    base (2, 6): where its first row is not zero a floating base is driven, at the rate in the second.
    stiffness, damping: of the stops of joints at their limits, see `runge_kutta`.
    """
    status = spread(loops, env, x, xd)
    if status == 0:
        status = forward_closed(mods, work, env, loops, base, f, passive, stiffness, damping, xdd)
    return status


@entry
def forward_closed(mods, work, env, loops, base, f, passive, stiffness, damping, xdd):
    """Do `general_forward` of a machine that `spread` has closed at its state."""
    z = loops.z
    status = outward_velocities(mods, work, env, z[0], z[1])
    if status != 0:
        return status
    for k in range(mods.shape[0]):
        z[3, k] = passive[k]
    for i in range(loops.driven.shape[0]):
        z[3, loops.driven[i]] += f[i]
    if stiffness > 0.0:
        for k in range(mods.shape[0]):
            if loops.stopped[k]:
                b = mods[k]
                z[3, k] += stop_force(b['lower'] - z[0, k], -z[1, k], stiffness, damping)
                z[3, k] -= stop_force(z[0, k] - b['upper'], z[1, k], stiffness, damping)
    for j in range(loops.tied.shape[0]):
        loops.work[j]['tau'] = z[3, loops.tied[j]['module']]
    pin_losses(loops)
    bias_accelerations(mods, work, loops)
    inward(mods, work, env, loops, base, xdd)
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
def inward(mods, work, env, loops, base, xdd):
    """Second sweep, tips to base; a cluster is reduced when its lowest module has been reached."""
    z = loops.z
    M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(mods.shape[0] - 1, -1, -1):
        b, u = mods[k], work[k]
        if not b['chained']:
            M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        M, F, T = gather(b, u, env, k, M, F, T)
        if loops.own[k] >= 0:
            M, F, T = eliminate(mods, work, env, k, z[1], z[3], M, F, T)
        elif loops.cluster_of[k] >= 0:
            M, F, T = keep(mods, work, loops, k, M, F, T)
            if b['parent'] >= 0:
                M, F, T = to_parent(b, work, M, F, T)
            n = loops.cluster_of[k]
            if loops.clusters[n]['head'] == k:
                reduce(mods, work, loops, n)
        else:
            free_base(env, loops, base, M, F, T, xdd)


@kernel
def free_base(env, loops, base, M, F, T, xdd):
    """Solve M a + p = 0 for the acceleration a of a floating base, its driven coordinates given; a into env[1]."""
    A, H, J = M
    B, a = loops.base_system, loops.base_system[6]
    B[0, 0], B[0, 1], B[0, 2], B[1, 1], B[1, 2], B[2, 2] = A
    B[3, 3], B[3, 4], B[3, 5], B[4, 4], B[4, 5], B[5, 5] = J
    B[0, 3], B[0, 4], B[0, 5], B[1, 3], B[1, 4], B[1, 5], B[2, 3], B[2, 4], B[2, 5] = H
    a[0], a[1], a[2] = -F[0], -F[1], -F[2]
    a[3], a[4], a[5] = -T[0], -T[1], -T[2]
    for i in range(6):
        for j in range(i):
            B[i, j] = B[j, i]
    for i in range(6):
        if base[0, i] != 0.0:
            given = base[1, i] + env[1, i]
            for j in range(6):
                a[j] -= B[j, i] * given
    for i in range(6):
        if base[0, i] != 0.0:
            for j in range(6):
                B[i, j], B[j, i] = 0.0, 0.0
            B[i, i], a[i] = 1.0, base[1, i] + env[1, i]
    cholesky(B, 6)
    solve_lower(B, 6, a)
    solve_upper(B, 6, a)
    for i in range(6):
        xdd[i] = a[i] - env[1, i]
        env[1, i] = a[i]


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
        elif loops.own[k] >= 0:
            P = u['psi']
            rate = u['u'] - (P[0] * v[0] + P[1] * v[1] + P[2] * v[2] + P[3] * w[0] + P[4] * w[1] + P[5] * w[2])
            xdd[loops.own[k]] = rate
        else:
            rate = 0.0
        if not abs(rate) < math.inf:
            return k + 1
        accelerate(b, u, v, w, rate)
        if b['laden']:
            accelerate_cylinder(b, u, v, w, rate)
    return 0
