"""The joint operations of the recursions, for every kind of joint; only this file and its imports depend on kinds.

A module is a screw about and along z with the motion subspace S = (0, 0, sigma; 0, 0, kappa): revolute (0, 1),
prismatic (1, 0), cylinder triangle (0, k1), which has a cylinder beside it. A joint of a cluster moves as such a screw
too, but its coordinates belong to the cluster. A floating base has six coordinates, its twist in its own axes.

    move             joint numbers, bias c and velocity            accelerate       acceleration a + S qdd + c
    eliminate_joint  inertia and wrench without the joint's share  back_substitute  acceleration, given the parent's
    set_wrenches     wrenches for the motion of the bodies         carry_wrench     share of them on the joint
"""
import math

from ..algebra.spatial import (
    add,
    articulated_less_dyad,
    articulated_plus_rigid,
    articulated_turn_z,
    body_wrench,
    general_times,
    kinetic_energy,
    lateral_times,
    pair,
    rigid,
    rigid_bias,
    rigid_slide_x,
    rigid_slide_z,
    scale,
    store,
    symmetric_times,
    turn_z,
    vector,
)
from ..runtime.compiler import kernel
from .cluster_joint import accelerate_clusters, back_substitute_cluster, closed_joint, in_cluster, project_cluster_joint
from .floating_base import accelerate_base, effort_of_base, move_base, solve_base
from .friction import passive_force
from .records import BARREL, FREE, LINK, LOOP, PRISMATIC, REVOLUTE, ROD
from .tree import accelerate, acceleration_at_base, hand_to_parent, velocity_at_base, wrench_to_parent
from .triangle import (
    accelerate_cylinder,
    add_children,
    add_cylinder,
    cylinder_angle,
    cylinder_wrenches,
    friction_of_triangle,
    move_triangle,
    subtract_external,
    triangle,
    wrench_of_cylinder,
)


@kernel
def move(m, k, x, xd):
    """Set position, rate, joint numbers, bias and velocity of module k; return False where its loop does not close."""
    b, u = m.modules[k], m.work[k]
    kind = b['kind']
    if kind == FREE:
        move_base(m, x, xd)
        return True
    c, s = 1.0, 0.0
    if in_cluster(m.loops, b):
        u['q'], u['qd'], c, s = closed_joint(m.loops, b)
    else:
        u['q'], u['qd'] = x[b['position']], xd[b['coordinate']]
        if kind == REVOLUTE:
            c, s = math.cos(u['q']), math.sin(u['q'])
    v, w = velocity_at_base(m, k)
    qd = u['qd']
    if kind == PRISMATIC:
        u['kappa'], u['sigma'], u['slide'] = 0.0, 1.0, u['q']
        # c = ad_nu s_z qd with s_z along the slide: only the turning axis matters
        store(u['bias'], (w[1] * qd, -w[0] * qd, 0.0), (0.0, 0.0, 0.0))
        v = (v[0], v[1], v[2] + qd)
    elif kind == LOOP:
        c, s, v, w = move_triangle(b, u, v, w)
        if s == 0.0:
            return False
    else:
        u['kappa'], u['sigma'], u['slide'] = 1.0, 0.0, 0.0
        store(u['bias'], (v[1] * qd, -v[0] * qd, 0.0), (w[1] * qd, -w[0] * qd, 0.0))
        w = (w[0], w[1], w[2] + qd)
    c, s = b['turn'][0] * c - b['turn'][1] * s, b['turn'][1] * c + b['turn'][0] * s
    u['c'], u['s'] = c, s
    store(u['velocity'], turn_z(v, c, -s), turn_z(w, c, -s))
    return True


@kernel
def passive_force_of_module(b, u):
    """Return the passive force on the coordinate of a module; in a triangle that of all four joints."""
    force = passive_force(b, u)
    if b['kind'] == LOOP:
        force += friction_of_triangle(b, u)
    return force


@kernel
def effort_on(m, k, f):
    """Return the effort on the coordinate of module k: that of its actuator, if any, and passive forces."""
    b = m.modules[k]
    effort = 0.0
    if b['actuator'] >= 0:
        effort = f[b['actuator']]
    if b['passive']:
        effort += passive_force_of_module(b, m.work[k])
    return effort


@kernel
def link_inertia(b, u):
    """Return the rigid inertia of a module's link in axes that turn with the joint and do not slide with it."""
    B = rigid(b['link'])
    return rigid_slide_z(B, u['slide']) if b['kind'] == PRISMATIC else B


@kernel
def gather(m, k, M, F, T):
    """Return the articulated inertia and bias wrench of module k's link and all it carries, at the base frame.

    M, F, T: of module k + 1 where that is handed over by value.
    """
    b, u = m.modules[k], m.work[k]
    if b['link_accumulates']:
        M, F, T = add_children(u, LINK, M, F, T)
    B = link_inertia(b, u)
    v, w = pair(u['velocity'])
    f, t = rigid_bias(B, v, w)
    M, F, T = articulated_plus_rigid(M, B), add(F, f), add(T, t)
    if m.environment[0]['loaded']:
        F, T = subtract_external(m, k, LINK, F, T)
    c, s = u['c'], u['s']
    return articulated_turn_z(M, c, s), turn_z(F, c, s), turn_z(T, c, s)


@kernel
def project(m, k, M, F, T):
    """Return (M, F, T, P, Q, alpha, delta) of module k at its base frame.

    F, T: with M c added.  P, Q = M S.  alpha = S' M S, delta = S' (F, T), those of barrel and rod included.
    """
    b, u = m.modules[k], m.work[k]
    kappa, sigma = u['kappa'], u['sigma']
    A, H, J = M
    cv, cw = pair(u['bias'])
    dF, dT = lateral_times(M, cv)
    if b['kind'] == PRISMATIC:
        F, T = add(F, dF), add(T, dT)
        P, Q = (A[2] * sigma, A[4] * sigma, A[5] * sigma), (H[6] * sigma, H[7] * sigma, H[8] * sigma)
        return M, F, T, P, Q, sigma * P[2], sigma * F[2]
    F, T = add(F, add(dF, general_times(H, cw))), add(T, add(dT, symmetric_times(J, cw)))
    P, Q = (H[2] * kappa, H[5] * kappa, H[8] * kappa), (J[2] * kappa, J[4] * kappa, J[5] * kappa)
    if b['kind'] == LOOP:
        return add_cylinder(m, k, M, F, T, P, Q)
    return M, F, T, P, Q, kappa * Q[2], kappa * T[2]


@kernel
def is_driven(driven, coordinate):
    """Return whether the acceleration of a coordinate is given; see `eliminate_joint`."""
    if driven is None:
        return False
    return driven[coordinate] != 0


@kernel
def eliminate_joint(m, k, driven, f, xdd, M, F, T):
    """Eliminate the joint of module k and hand the remaining inertia and wrench to its parent; return (M^A, p^A).

    driven: (dof,) 1 where the acceleration in xdd is given instead of the effort, or None: nowhere.
    """
    b, u = m.modules[k], m.work[k]
    if b['kind'] == FREE:
        solve_base(m, driven, f, xdd, M, F, T)
        return M, F, T
    M, F, T, P, Q, alpha, delta = project(m, k, M, F, T)
    if in_cluster(m.loops, b):
        return project_cluster_joint(m.loops, m, k, driven, xdd, M, (F, T), (P, Q))
    if is_driven(driven, b['coordinate']):
        rate = xdd[b['coordinate']]
        F, T = add(F, scale(rate, P)), add(T, scale(rate, Q))
        return hand_to_parent(m, k, M, F, T)
    ratio = 1.0 / alpha
    drive = (effort_on(m, k, f) - delta) * ratio
    u['drive'] = drive
    store(u['psi'], scale(ratio, P), scale(ratio, Q))
    if b['parent'] >= 0:
        M = articulated_less_dyad(M, P, Q, ratio)
        F, T = add(F, scale(drive, P)), add(T, scale(drive, Q))
    return hand_to_parent(m, k, M, F, T)


@kernel
def back_substitute(m, k, driven, xdd):
    """Set the accelerations of module k, its coordinate's in xdd included; return False where it is not finite."""
    b, u = m.modules[k], m.work[k]
    if b['kind'] == FREE:
        return True
    v, w = acceleration_at_base(m, k)
    if in_cluster(m.loops, b):
        back_substitute_cluster(m.loops, m, k, xdd)
    elif is_driven(driven, b['coordinate']):
        u['qdd'] = xdd[b['coordinate']]
    else:
        psi = u['psi']
        u['qdd'] = u['drive'] - (psi[0] * v[0] + psi[1] * v[1] + psi[2] * v[2]
                                 + psi[3] * w[0] + psi[4] * w[1] + psi[5] * w[2])
        xdd[b['coordinate']] = u['qdd']
    accelerate(b, u, v, w)
    if b['cylinder_has_children']:
        accelerate_cylinder(b, u, v, w)
    return abs(u['qdd']) < math.inf


@kernel
def set_acceleration(m, k, xdd):
    """Set the acceleration of the joint of module k, or of a floating base; skip cluster joints."""
    b = m.modules[k]
    if b['kind'] == FREE:
        accelerate_base(m, xdd)
    elif not in_cluster(m.loops, b):
        m.work[k]['qdd'] = xdd[b['coordinate']]


@kernel
def set_accelerations(m, xdd):
    """Set the accelerations of the joints of all modules."""
    accelerate_clusters(m.loops, m, xdd)
    for k in range(m.modules.shape[0]):
        set_acceleration(m, k, xdd)


@kernel
def accelerate_joint(m, k, xdd):
    """Set the accelerations of module k's bodies, its coordinate's as in xdd."""
    b, u = m.modules[k], m.work[k]
    set_acceleration(m, k, xdd)
    if b['kind'] == FREE:
        return
    v, w = acceleration_at_base(m, k)
    accelerate(b, u, v, w)
    if b['kind'] == LOOP:
        accelerate_cylinder(b, u, v, w)


@kernel
def settle_cylinder(m, k):
    """Set the acceleration of a barrel, which `back_substitute` leaves out where the cylinder has no children."""
    b = m.modules[k]
    if b['kind'] == LOOP:
        v, w = acceleration_at_base(m, k)
        accelerate_cylinder(b, m.work[k], v, w)


@kernel
def set_wrenches(m, k):
    """Set the wrenches that the bodies of module k need for their motion, external ones taken off."""
    b, u = m.modules[k], m.work[k]
    B = link_inertia(b, u)
    f, t = body_wrench(B, u['velocity'], u['acceleration'])
    store(u['wrench'][LINK], f, t)
    if b['kind'] == LOOP:
        cylinder_wrenches(b, u)
    if m.environment[0]['loaded']:
        for body in range(3):
            for j in range(6):
                u['wrench'][body][j] -= b['external'][body][j]


@kernel
def carry_wrench(m, k):
    """Set the effort that module k's joint must carry, and hand the wrench at its base frame to its parent."""
    b, u = m.modules[k], m.work[k]
    F, T = pair(u['wrench'][LINK])
    F, T = turn_z(F, u['c'], u['s']), turn_z(T, u['c'], u['s'])
    u['effort'] = u['sigma'] * F[2] + u['kappa'] * T[2]
    if b['kind'] == LOOP:
        effort, dF, dT = wrench_of_cylinder(b, u)
        u['effort'] += effort
        F, T = add(F, dF), add(T, dT)
    wrench_to_parent(m, k, F, T)


@kernel
def put_joint_effort(m, k, f):
    """Write into f (dof,) the effort that the motion needs on the coordinate of module k; skip cluster joints."""
    b, u = m.modules[k], m.work[k]
    if b['kind'] == FREE:
        effort_of_base(u, f)
    elif not in_cluster(m.loops, b):
        f[b['coordinate']] = u['effort']


@kernel
def put_actuator_effort(m, k, f):
    """Write into f (dof,) what an actuator on the coordinate of module k must give: that less the passive force."""
    b = m.modules[k]
    put_joint_effort(m, k, f)
    if b['passive'] and not in_cluster(m.loops, b):
        f[b['coordinate']] -= passive_force_of_module(b, m.work[k])


@kernel
def kinetic_energy_of(m, k):
    """Return the kinetic energy of module k's bodies, and store (m c, m) of each in its row of wrenches."""
    b, u = m.modules[k], m.work[k]
    B = link_inertia(b, u)
    v, w = pair(u['velocity'])
    kinetic = kinetic_energy(B, v, w)
    put_moment(u['wrench'][LINK], B)
    if b['kind'] == LOOP:
        v, w = pair(u['cylinder_velocity'])
        B, R = rigid(b['barrel']), rigid_slide_x(rigid(b['rod']), u['q'])
        kinetic += kinetic_energy(B, v, w) + kinetic_energy(R, (v[0] + u['qd'], v[1], v[2]), w)
        put_moment(u['wrench'][BARREL], B)
        put_moment(u['wrench'][ROD], R)
    return kinetic


@kernel
def put_moment(a, B):
    a[0], a[1], a[2] = B[1]
    a[3] = B[0]


@kernel
def moment_of(m, k):
    """Return (first moment of mass, mass) of module k's bodies and all they carry, at its base frame."""
    b, u = m.modules[k], m.work[k]
    link = u['wrench'][LINK]
    h, mass = turn_z(vector(link), u['c'], u['s']), link[3]
    if b['kind'] == LOOP:
        rod, barrel = u['wrench'][ROD], u['wrench'][BARREL]
        cylinder = rod[3] + barrel[3]
        h = add(h, turn_z(add(vector(rod), vector(barrel)), u['c1'], u['s1']))
        h, mass = add(h, scale(cylinder, vector(b['pin']))), mass + cylinder
    return h, mass


@kernel
def put_joint_states(m, k, q, qd, qdd):
    """Write position, velocity and acceleration of the joints of module k; return False where it does not close."""
    b, u = m.modules[k], m.work[k]
    row = b['joint']
    if row[0] < 0:
        return True             # a floating base
    q[row[0]], qd[row[0]], qdd[row[0]] = u['q'], u['qd'], u['qdd']
    if b['kind'] == LOOP:
        cq, sq, _, _, k1, k2, k4, k5 = triangle(b, u['q'], u['qd'])
        sign = b['sign'][2]
        q[row[1]] = math.atan2(sq, cq) + b['zero'][1]
        qd[row[1]] = k1 * u['qd']
        qdd[row[1]] = k1 * u['qdd'] + k4
        q[row[2]] = sign * cylinder_angle(b, u['q'], cq, sq) + b['zero'][2]
        qd[row[2]] = sign * k2 * u['qd']
        qdd[row[2]] = sign * (k2 * u['qdd'] + k5)
        return sq != 0.0
    return True
