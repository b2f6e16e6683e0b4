"""Time integration of the mechanism at constant actuator effort, for the force-level simulator."""
import math

from ..runtime.compiler import inner, kernel
from ..runtime.status import NON_FINITE, OK
from .floating_base import position_rate
from .forward import forward_dynamics


@kernel
def runge_kutta(tree, loops, x, xd, f, step, substeps, scratch):
    """Advance x (nx,), xd (dof,) in place by `step` [s] in `substeps` classical Runge-Kutta steps; return a status.

    f (actuators,) is held.  scratch (7, nx).  On failure x, xd keep the last good sub-step.
    """
    h, n, dof = step / substeps, x.shape[0], xd.shape[0]
    x_new, v_new = scratch[4], scratch[5]
    for _ in range(substeps):
        status = advance(tree, loops, x, xd, f, h, scratch)
        if status != OK:
            return status
        for i in range(n):
            x[i] = x_new[i]
        for i in range(dof):
            xd[i] = v_new[i]
    return OK


@inner
def advance(tree, loops, x, xd, f, h, scratch):
    """Write the state after one Runge-Kutta step of h [s] into scratch[4] and scratch[5]; return a status."""
    n, dof = x.shape[0], xd.shape[0]
    xs, vs, a, rate, x_new, v_new = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5]
    for i in range(n):
        xs[i], x_new[i] = x[i], x[i]
    for i in range(dof):
        vs[i], v_new[i] = xd[i], xd[i]
    for stage in range(4):
        status = forward_dynamics(tree, loops, xs, vs[:dof], f, a[:dof])
        if status != OK:
            return status
        weight = h / 6.0 if stage == 0 or stage == 3 else h / 3.0
        ahead = h if stage == 2 else 0.5 * h
        position_rate(xs, vs[:dof], rate)
        for i in range(n):
            x_new[i] += weight * rate[i]
            xs[i] = x[i] + ahead * rate[i]
        for i in range(dof):
            v_new[i] += weight * a[i]
            vs[i] = xd[i] + ahead * a[i]
    total = 0.0
    for i in range(n):
        total += 0.0 * float(x_new[i])
    for i in range(dof):
        total += 0.0 * float(v_new[i])
    if total != 0.0:
        return NON_FINITE
    if n > dof:
        norm = math.sqrt(x_new[3] ** 2 + x_new[4] ** 2 + x_new[5] ** 2 + x_new[6] ** 2)
        for i in range(3, 7):
            x_new[i] /= norm
    return OK
