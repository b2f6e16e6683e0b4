"""A floating base: module 0 of its machine, a body whose twist in its own axes is the first six coordinates of xd.

x has its position and its quaternion x y z w first. Its acceleration is the rate of the twist, gravity not in it.
"""
import math

from ..algebra.linear import cholesky, solve_lower, solve_upper
from ..algebra.spatial import add, cross, scale, store
from ..runtime.compiler import kernel, python_kernel


@kernel
def move_base(m, x, xd):
    """Set twist and joint numbers of a floating base; its bias is minus gravity in its axes."""
    u = m.work[0]
    u['kappa'], u['sigma'], u['slide'], u['c'], u['s'] = 0.0, 0.0, 0.0, 1.0, 0.0
    u['q'], u['qd'], u['qdd'] = 0.0, 0.0, 0.0
    for i in range(6):
        u['velocity'][i] = xd[i]
    store(u['bias'], gravity_in_base(m, x), (0.0, 0.0, 0.0))


@kernel
def gravity_in_base(m, x):
    """Return minus gravity in the axes of a floating base whose orientation x[3:7] is a quaternion x y z w."""
    g, n = m.environment[0]['gravity'], math.sqrt(x[3] * x[3] + x[4] * x[4] + x[5] * x[5] + x[6] * x[6])
    # back-rotation: minus the vector part
    w, p = x[6] / n, (-x[3] / n, -x[4] / n, -x[5] / n)
    a = (-g[0], -g[1], -g[2])
    t = scale(2.0, cross(p, a))
    return add(add(a, scale(w, t)), cross(p, t))


@kernel
def accelerate_base(m, xdd):
    """Set the spatial acceleration of a floating base: the rate of its twist, and minus gravity."""
    u = m.work[0]
    for i in range(6):
        u['acceleration'][i] = u['bias'][i] + xdd[i]


@kernel
def effort_of_base(u, f):
    """Write the wrench that a floating base needs into the first six rows of f."""
    for i in range(6):
        f[i] = u['root'][i]


@kernel
def solve_base(m, driven, f, xdd, M, F, T):
    """Solve M a + (F, T) = f for the acceleration a of a floating base, driven coordinates given; set a and xdd.

    f: rows from the base's `actuator` on; no wrench acts on it where that is -1.
    """
    u, first = m.work[0], m.modules[0]['actuator']
    A, H, J = M
    B = m.environment[0]['system']
    a = B[6]
    B[0, 0], B[0, 1], B[0, 2], B[1, 1], B[1, 2], B[2, 2] = A
    B[3, 3], B[3, 4], B[3, 5], B[4, 4], B[4, 5], B[5, 5] = J
    B[0, 3], B[0, 4], B[0, 5], B[1, 3], B[1, 4], B[1, 5], B[2, 3], B[2, 4], B[2, 5] = H
    a[0], a[1], a[2] = -F[0], -F[1], -F[2]
    a[3], a[4], a[5] = -T[0], -T[1], -T[2]
    for i in range(6):
        if first >= 0:
            a[i] += f[first + i]
        for j in range(i):
            B[i, j] = B[j, i]
    if driven is not None:
        for i in range(6):
            if driven[i] != 0:
                prescribe(B, a, i, u['bias'][i] + xdd[i])
    cholesky(B, 6)
    solve_lower(B, 6, a)
    solve_upper(B, 6, a)
    for i in range(6):
        u['acceleration'][i] = a[i]
        xdd[i] = a[i] - u['bias'][i]


@kernel
def prescribe(B, a, i, value):
    """Make the solution of B a = rhs, in place in a, have a given entry i."""
    for j in range(6):
        if j != i:
            a[j] -= B[j, i] * value
        B[i, j], B[j, i] = 0.0, 0.0
    B[i, i], a[i] = 1.0, value


@python_kernel
def position_rate(x, xd, rate):
    """Write the rate of x (nx,) for xd (dof,): of a floating base R v and q (0, w) / 2, else xd itself."""
    if x.shape[0] == xd.shape[0]:
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
