"""Pose, Jacobian and rate of the Jacobian of a point on a link, from a machine whose modules are placed.

    J   twist (v, w) of the point in link axes for unit rates of the coordinates
    B   acceleration of the point at xdd = 0 in link axes, a quadratic form of the rates
    T   rates of all joints of the tree for unit rates of the coordinates
"""
import numpy as np

from ..algebra.spatial import add, cross, dot, pair, turn_x, turn_z, vector
from ..loops.closure import close_machine
from ..rigid_body.cluster_joint import accelerate_clusters, in_cluster
from ..rigid_body.forward import place_machine
from ..rigid_body.joints import accelerate_joint, move
from ..rigid_body.measurement import joint_states
from ..rigid_body.mechanism import at_rest, bind
from ..rigid_body.records import LINK, ROD
from ..rigid_body.tree import attachment, parent_slide
from ..runtime.compiler import batch_entry, inner, kernel
from ..runtime.status import OK, TOGGLE, failure

POINT = np.dtype([
    ('module', 'i8'),           # module that carries the link, -1: the base
    ('body', 'i8'),             # LINK, BARREL or ROD of the module
    ('axes', 'f8', (3, 3)),     # rows: the link axes in the kernel frame of that body
    ('position', 'f8', 3),      # of the point in the kernel frame of the body, which is not displaced [m]
], align=True)


@kernel
def displaced(m, p):
    """Return the point in the kernel frame of its body, with the displacement of the body."""
    r = vector(p['position'])
    if p['module'] < 0:
        return r
    u = m.work[p['module']]
    if p['body'] == LINK:
        return (r[0], r[1], r[2] + u['slide'])
    return (r[0] + u['q'], r[1], r[2]) if p['body'] == ROD else r


@kernel
def in_axes(axes, a):
    return (dot(axes[0], a), dot(axes[1], a), dot(axes[2], a))


@kernel
def locate(m, p, J):
    """Return (axes of the link, position of the point) in the base frame of a machine whose modules are placed.

    J (6, dof) of zeros takes the Jacobian in link axes; None: it is not wanted.
    """
    axes = (vector(p['axes'][0]), vector(p['axes'][1]), vector(p['axes'][2]))
    r, k, body = displaced(m, p), p['module'], p['body']
    while k >= 0:
        b, u = m.modules[k], m.work[k]
        if body == LINK:
            c, s, rate, along_x, along_z = u['c'], u['s'], u['kappa'], 0.0, u['sigma']
        else:
            c, s, rate, along_x, along_z = u['c1'], u['s1'], u['k2'], (1.0 if body == ROD else 0.0), 0.0
        if J is not None:
            v = (along_x - rate * r[1], rate * r[0], along_z)
            add_columns(m, b, in_axes(axes, v), in_axes(axes, (0.0, 0.0, rate)), J)
        r = turn_z(r, c, s)
        if body != LINK:
            r = add(r, vector(b['pin']))
        r = turn_x(r, b['dh_alpha'][0], b['dh_alpha'][1])
        axes = turned_about_z(axes, c, s)
        axes = turned_about_x(axes, b['dh_alpha'][0], b['dh_alpha'][1])
        if b['turned']:
            r = turn_z(r, b['azimuth'][0], b['azimuth'][1])
            axes = turned_about_z(axes, b['azimuth'][0], b['azimuth'][1])
        r = add(r, attachment(b, parent_slide(b, m.work)))
        k, body = b['parent'], b['parent_body']
    return axes, r


@kernel
def turned_about_z(axes, c, s):
    return (turn_z(axes[0], c, s), turn_z(axes[1], c, s), turn_z(axes[2], c, s))


@kernel
def turned_about_x(axes, c, s):
    return (turn_x(axes[0], c, s), turn_x(axes[1], c, s), turn_x(axes[2], c, s))


@kernel
def add_columns(m, b, v, w, J):
    """Add the twist (v, w) for unit rate of module b's joint to the columns of the coordinates that move the joint."""
    if in_cluster(m.loops, b):
        add_cluster_columns(m.loops, b, v, w, J)
    else:
        add_column(J, b['coordinate'], 1.0, v, w)


@kernel
def add_cluster_columns(loops, b, v, w, J):
    if loops is not None:
        cluster = loops.clusters[b['cluster']]
        for i in range(cluster['first'], cluster['first'] + cluster['joints']):
            t = loops.cluster_joints[i]
            if t['independent'] >= 0:
                add_column(J, t['coordinate'], loops.G[b['cluster_joint'], t['independent']], v, w)


@kernel
def add_column(J, column, ratio, v, w):
    for i in range(3):
        J[i, column] += ratio * v[i]
        J[3 + i, column] += ratio * w[i]


@kernel
def acceleration_of_point(m, p):
    """Return (acceleration, angular acceleration, angular velocity) of the point in link axes, after `sweep`.

    The acceleration is classical, the second derivative of the position.
    """
    axes = (vector(p['axes'][0]), vector(p['axes'][1]), vector(p['axes'][2]))
    if p['module'] < 0:
        zero = (0.0, 0.0, 0.0)
        return zero, zero, zero
    u = m.work[p['module']]
    if p['body'] == LINK:
        v, w = pair(u['velocity'])
        a, rate = pair(u['acceleration'])
    else:
        v, w = pair(u['cylinder_velocity'])
        a, rate = pair(u['cylinder_acceleration'])
        if p['body'] == ROD:
            a = (a[0] + u['qdd'], a[1] + w[2] * u['qd'], a[2] - w[1] * u['qd'])
            v = (v[0] + u['qd'], v[1], v[2])
    r = displaced(m, p)
    a = add(add(a, cross(rate, r)), cross(w, add(v, cross(w, r))))
    return in_axes(axes, a), in_axes(axes, rate), in_axes(axes, w)


@inner
def sweep(tree, loops, x, xd, still):
    """Set velocities and accelerations of all bodies at xdd = 0 over a base at rest, without gravity.

    still (dof,): zeros.  Returns a status.
    """
    status = close_machine(tree, loops, x, xd)
    if status != OK:
        return status
    m = at_rest(bind(tree, loops))
    accelerate_clusters(m.loops, m, still)
    for k in range(m.modules.shape[0]):
        if not move(m, k, x, xd):
            return failure(TOGGLE, k)
        accelerate_joint(m, k, still)
    return OK


@inner
def sweep_to(tree, loops, p, x, xd, scratch):
    """Do `sweep`, and write B and the accelerations of all joints into a row of scratch; return (status, w)."""
    still, out, states = scratch
    status = sweep(tree, loops, x, xd, still)
    m = bind(tree, loops)
    a, rate, w = acceleration_of_point(m, p)
    if status == OK:
        status = joint_states(m, states)
    for i in range(3):
        out[i], out[3 + i] = a[i], rate[i]
    for j in range(states.shape[1]):
        out[6 + j] = states[2, j]
    return status, w


@kernel
def jacobian_and_rate(tree, loops, p, motion, scratch, J, Jd):
    """Write rows of J from the seventh on, T, and Jd (6 + joints, dof) at motion (nx + dof,); return a status.

    B and the accelerations of joints at xdd = 0 are quadratic in the rates: the rate of column a is half of
    B(xd + e_a) - B(xd) - B(e_a).  Angular velocity is no rate of coordinates; half of w(xd) x w(e_a) comes on top.
    """
    still, rates, outs, states = scratch
    dof = still.shape[0]
    nx = motion.shape[0] - dof
    x, xd = motion[:nx], motion[nx:]
    status, w = sweep_to(tree, loops, p, x, xd, (still, outs[0], states))
    for a in range(dof):
        if status != OK:
            return status
        rates[:] = 0.0
        rates[a] = 1.0
        status, w_a = sweep_to(tree, loops, p, x, rates, (still, outs[1], states))
        for j in range(states.shape[1]):
            J[6 + j, a] = states[1, j]
        if status == OK:
            for i in range(dof):
                rates[i] = xd[i] + (1.0 if i == a else 0.0)
            status, _ = sweep_to(tree, loops, p, x, rates, (still, outs[2], states))
        turn = cross(w, w_a)
        for i in range(Jd.shape[0]):
            Jd[i, a] = 0.5 * (outs[2, i] - outs[1, i] - outs[0, i])
        for i in range(3):
            Jd[3 + i, a] += 0.5 * turn[i]
    return status


@kernel
def put_pose(axes, r, pose):
    """Write axes and position into pose (3, 4)."""
    for i in range(3):
        for j in range(3):
            pose[j, i] = axes[i][j]
        pose[i, 3] = r[i]


@batch_entry
def jacobian_rows(tree, loops, point, motion, scratch, out, first, last):
    """Write pose (3, 4), J (6 + joints, dof) and its rate for the rows first..last of motion (N, nx + dof).

    out: arrays pose, J, Jd (N, ...); where Jd has no rows, T and the rates are left out.  J and Jd are in link axes.
    scratch: arrays (dof,) of zeros, (dof,), (3, 6 + joints), (3, joints).  A floating base is at rest.
    Returns (status, row).
    """
    pose, J, Jd = out
    p, nx = point[0], motion.shape[1] - scratch[0].shape[0]
    for row in range(first, last):
        status = place_at(tree, loops, motion[row, :nx], scratch[0])
        if status == OK:
            J[row, :, :] = 0.0
            axes, r = locate(bind(tree, loops), p, J[row])
            put_pose(axes, r, pose[row])
            if Jd.shape[0] > 0:
                status = jacobian_and_rate(tree, loops, p, motion[row], scratch, J[row], Jd[row])
        if status != OK:
            return status, row
    return OK, last


@inner
def place_at(tree, loops, x, still):
    """Close the clusters and place the modules at rest at x; return a status."""
    status = close_machine(tree, loops, x, still)
    return status if status != OK else place_machine(tree, loops, x, still)


@batch_entry
def pose_rows(tree, loops, point, x, still, pose, first, last):
    """Write the pose (N, 3, 4) of a point for the rows first..last of x (N, nx); NaN where a loop does not close."""
    for row in range(first, last):
        if place_at(tree, loops, x[row], still) == OK:
            axes, r = locate(bind(tree, loops), point[0], None)
            put_pose(axes, r, pose[row])
        else:
            pose[row, :, :] = np.nan
    return OK, last
