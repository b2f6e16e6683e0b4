"""What Python calls on general machines: the recursions of `general` with shape and finite checks inside.

x (nx,) has one number more than xd (dof,) where the base floats: position, quaternion x y z w, joints.  Where a kernel
takes `env` of a floating base it overwrites the first two rows.  Statuses as in `general`.
"""
import math

from ..runtime.compiler import entry, kernel
from .energy import energy, joint_states
from .entry import NON_FINITE, SHAPE, finite
from .general import general_forward, general_inverse, spread, tree_accelerations
from .joints import outward_velocities


@kernel
def checked_inputs(loops, x, a, b):
    """Return 0 when x is a position, a and b have one entry a coordinate, and all are finite."""
    n = x.shape[0] - 1 if loops.base else x.shape[0]
    if a.shape[0] != n or b.shape[0] != n:
        return SHAPE
    total = 0.0
    for i in range(n):
        total += 0.0 * float(a[i]) + 0.0 * float(b[i])
    for i in range(x.shape[0]):
        total += 0.0 * float(x[i])
    if loops.base and not x[3] * x[3] + x[4] * x[4] + x[5] * x[5] + x[6] * x[6] > 1e-12:
        return NON_FINITE
    return 0 if total == 0.0 else NON_FINITE


@entry
def inverse_general(mods, work, env, loops, x, xd, xdd, f_y):
    """Write the efforts f_y (dof,) on the coordinates for accelerations xdd; leaves the modules' own in z[3]."""
    status = checked_inputs(loops, x, xd, xdd)
    if status == 0:
        status = general_inverse(mods, work, env, loops, x, xd, xdd, f_y)
    return status if status != 0 else finite(f_y)


@entry
def forward_general(mods, work, env, loops, base, x, xd, f, passive, xdd):
    """Write the accelerations xdd (dof,) for actuator efforts f; passive (modules,): further efforts on joints."""
    status = checked_inputs(loops, x, xd, xd)
    if status == 0 and f.shape[0] != loops.driven.shape[0]:
        status = SHAPE
    if status == 0:
        status = finite(f)
    if status == 0:
        status = general_forward(mods, work, env, loops, base, x, xd, f, passive, 0.0, 0.0, xdd)
    return status if status != 0 else finite(xdd)


@entry
def closed_general(mods, work, env, loops, x, xd, xdd):
    """Write position, rate and acceleration of every module into z[0] to z[2], and velocities into work."""
    status = checked_inputs(loops, x, xd, xdd)
    if status == 0:
        status = spread(loops, env, x, xd)
    if status != 0:
        return status
    tree_accelerations(loops, env, xdd)
    return outward_velocities(mods, work, env, loops.z[0], loops.z[1])


@entry
def joint_states_general(mods, work, env, loops, x, xd, xdd, q, qd, qdd):
    """Write position, velocity and acceleration of every joint of the tree; see `joint_states`."""
    status = closed_general(mods, work, env, loops, x, xd, xdd)
    if status != 0:
        return status
    return joint_states(mods, loops.z[0], loops.z[1], loops.z[2], q, qd, qdd)


@entry
def energy_general(mods, work, env, loops, x, xd, out):
    """Write kinetic energy and first mass moment, in base axes; see `energy`."""
    status = checked_inputs(loops, x, xd, xd)
    if status == 0:
        status = spread(loops, env, x, xd)
    if status == 0:
        status = energy(mods, work, env, loops.z[0], loops.z[1], out)
    return status


@entry
def runge_kutta_general(mods, work, env, loops, base, x, xd, f, passive, step, substeps, stiffness, damping, scratch):
    """Advance x (nx,), xd (dof,) in place by `step` [s]; as `runge_kutta`, with scratch (7, nx)."""
    h, n, m = step / substeps, x.shape[0], xd.shape[0]
    xs, vs, a, rate, x_new, v_new = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5]
    status = checked_inputs(loops, x, xd, xd)
    if status == 0:
        status = finite(f)
    if status != 0:
        return status
    for _ in range(substeps):
        for i in range(n):
            xs[i], x_new[i] = x[i], x[i]
        for i in range(m):
            vs[i], v_new[i] = xd[i], xd[i]
        for stage in range(4):
            status = general_forward(mods, work, env, loops, base, xs, vs, f, passive, stiffness, damping, a)
            if status != 0:
                return status
            weight = h / 6.0 if stage == 0 or stage == 3 else h / 3.0
            ahead = h if stage == 2 else 0.5 * h
            position_rate(loops, xs, vs, rate)
            for i in range(n):
                x_new[i] += weight * rate[i]
                xs[i] = x[i] + ahead * rate[i]
            for i in range(m):
                v_new[i] += weight * a[i]
                vs[i] = xd[i] + ahead * a[i]
        total = 0.0
        for i in range(n):
            total += 0.0 * x_new[i]
        for i in range(m):
            total += 0.0 * v_new[i]
        if total != 0.0:
            return NON_FINITE
        if loops.base:
            norm = math.sqrt(x_new[3] ** 2 + x_new[4] ** 2 + x_new[5] ** 2 + x_new[6] ** 2)
            for i in range(3, 7):
                x_new[i] /= norm
        for i in range(n):
            x[i] = x_new[i]
        for i in range(m):
            xd[i] = v_new[i]
    return 0


@entry
def position_rate(loops, x, xd, rate):
    """Write the rate of x (nx,) for xd (dof,): of a floating base R v and q (0, w) / 2, else xd itself."""
    if loops.base == 0:
        for i in range(x.shape[0]):
            rate[i] = xd[i]
        return
    a, b, c, w = x[3], x[4], x[5], x[6]
    n = 1.0 / (a * a + b * b + c * c + w * w)
    p, q, r = xd[0], xd[1], xd[2]
    # R v = v + 2 u x (u x v + w v), u the vector part
    tx, ty, tz = b * r - c * q + w * p, c * p - a * r + w * q, a * q - b * p + w * r
    rate[0] = p + 2.0 * n * (b * tz - c * ty)
    rate[1] = q + 2.0 * n * (c * tx - a * tz)
    rate[2] = r + 2.0 * n * (a * ty - b * tx)
    p, q, r = 0.5 * xd[3], 0.5 * xd[4], 0.5 * xd[5]
    rate[3] = w * p + b * r - c * q
    rate[4] = w * q + c * p - a * r
    rate[5] = w * r + a * q - b * p
    rate[6] = -(a * p + b * q + c * r)
    for i in range(6, x.shape[0] - 1):
        rate[i + 1] = xd[i]


@entry
def inverse_general_rows(mods, work, env, loops, x, xd, xdd, f_y):
    """Inverse dynamics of the rows of finite (N, nx), (N, dof) arrays; return (status, row)."""
    for row in range(x.shape[0]):
        status = general_inverse(mods, work, env, loops, x[row], xd[row], xdd[row], f_y[row])
        if status == 0:
            status = finite(f_y[row])
        if status != 0:
            return status, row
    return 0, x.shape[0]


@entry
def forward_general_rows(mods, work, env, loops, base, x, xd, f, passive, xdd):
    """Forward dynamics of the rows of finite (N, nx), (N, dof) arrays; return (status, row)."""
    for row in range(x.shape[0]):
        status = general_forward(mods, work, env, loops, base, x[row], xd[row], f[row], passive, 0.0, 0.0, xdd[row])
        if status == 0:
            status = finite(xdd[row])
        if status != 0:
            return status, row
    return 0, x.shape[0]
