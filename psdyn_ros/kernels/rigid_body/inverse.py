"""Inverse dynamics: the recursion that matches `forward`, two sweeps, O(n).

    f = sum J_i' F_i     with F_i the wrench on body i and all it carries (Paz & Mattila, sec. 3.6)
"""
from ..algebra.spatial import (
    accumulate,
    add,
    cross,
    pair,
    rigid,
    rigid_bias,
    rigid_slide_x,
    rigid_slide_z,
    rigid_times,
    store,
    turn_z,
)
from ..runtime.compiler import kernel
from .joints import (
    accelerate,
    accelerate_cylinder,
    friction,
    motion_at_base,
    move,
    parent_acceleration,
    parent_slide,
    parent_velocity,
    wrench_at_parent,
)
from .records import BARREL, LINK, LOOP, PRISMATIC, ROD


@kernel
def inverse(mods, work, env, x, xd, xdd, f):
    """Write the actuator efforts (dof,) into f; return 0 or 1 + the module that fails.  env as in `forward`."""
    status = outward(mods, work, env, x, xd, xdd)
    if status == 0:
        inward_wrenches(mods, work, xd, f)
    return status


@kernel
def outward(mods, work, env, x, xd, xdd):
    """First sweep: velocities, accelerations and the wrench each body needs, base to tips."""
    for k in range(mods.shape[0]):
        b, u = mods[k], work[k]
        i = b['coordinate']
        slide = parent_slide(b, work)
        v, w = parent_velocity(b, work, env)
        v, w = motion_at_base(b, slide, v, w)
        if not move(b, u, v, w, x[i], xd[i]):
            return k + 1
        v, w = parent_acceleration(b, work, env)
        v, w = motion_at_base(b, slide, v, w)
        accelerate(b, u, v, w, xdd[i])

        B = rigid(b['link'])
        if b['kind'] == PRISMATIC:
            B = rigid_slide_z(B, u['slide'])
        f, m = body_wrench(B, u['velocity'], u['acceleration'])
        store(u['wrench'][LINK], f, m)
        if b['kind'] == LOOP:
            accelerate_cylinder(b, u, v, w, xdd[i])
            cylinder_wrenches(b, u)
    if env.shape[0] > 2:
        for k in range(mods.shape[0]):
            for body in range(3):
                e = env[2 + 3 * k + body]
                for j in range(6):
                    work[k]['wrench'][body][j] -= e[j]
    return 0


@kernel
def body_wrench(B, velocity, acceleration):
    v, w = pair(velocity)
    a, d = pair(acceleration)
    f, m = rigid_times(B, a, d)
    fp, mp = rigid_bias(B, v, w)
    return add(f, fp), add(m, mp)


@kernel
def cylinder_wrenches(b, u):
    f, m = body_wrench(rigid(b['barrel']), u['cylinder_velocity'], u['cylinder_acceleration'])
    store(u['wrench'][BARREL], f, m)

    v, w = pair(u['cylinder_velocity'])
    a, d = pair(u['cylinder_acceleration'])
    rate = u['stroke_rate']
    a = (a[0] + u['stroke_acceleration'], a[1] + w[2] * rate, a[2] - w[1] * rate)
    R = rigid_slide_x(rigid(b['rod']), u['stroke'])
    f, m = rigid_times(R, a, d)
    fp, mp = rigid_bias(R, (v[0] + rate, v[1], v[2]), w)
    store(u['wrench'][ROD], add(f, fp), add(m, mp))


@kernel
def inward_wrenches(mods, work, xd, f):
    """Second sweep: wrenches tips to base, projected on the coordinates."""
    for k in range(mods.shape[0] - 1, -1, -1):
        b, u = mods[k], work[k]
        F, T = pair(u['wrench'][LINK])
        F, T = turn_z(F, u['c'], u['s']), turn_z(T, u['c'], u['s'])
        i = b['coordinate']
        effort = u['sigma'] * F[2] + u['kappa'] * T[2]
        if b['kind'] == LOOP:
            fr, mr = pair(u['wrench'][ROD])
            fc, mc = pair(u['wrench'][BARREL])
            fc, mc = add(fc, fr), add(mc, mr)
            effort += fr[0] + u['k2'] * mc[2]
            fc, mc = turn_z(fc, u['c1'], u['s1']), turn_z(mc, u['c1'], u['s1'])
            p = b['pin']
            F, T = add(F, fc), add(T, add(mc, cross((p[0], p[1], p[2]), fc)))
        f[i] = effort - friction(b, u, xd[i])
        if b['parent'] >= 0:
            F, T = wrench_at_parent(b, parent_slide(b, work), F, T)
            accumulate(work[b['parent']]['wrench'][b['on']], F, T)
        else:
            store(u['root'], F, T)


@kernel
def base_reaction(mods, work, env, base_inertia, reaction):
    """After `inverse`: write the wrench (6,) that the base must receive, at its origin in its axes (38)."""
    v, w = pair(env[0])
    a, d = pair(env[1])
    B = rigid(base_inertia)
    f, m = rigid_times(B, a, d)
    fp, mp = rigid_bias(B, v, w)
    store(reaction, add(f, fp), add(m, mp))
    for k in range(mods.shape[0]):
        if mods[k]['parent'] < 0:
            F, T = pair(work[k]['root'])
            F, T = wrench_at_parent(mods[k], 0.0, F, T)
            accumulate(reaction, F, T)
