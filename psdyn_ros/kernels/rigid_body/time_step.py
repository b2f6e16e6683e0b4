"""Time integration of the mechanism at constant actuator effort, for the force-level simulator."""
import math

from ..runtime.compiler import kernel
from ..runtime.status import NON_FINITE, OK
from .floating_base import position_rate
from .forward import forward_dynamics


@kernel
def runge_kutta(tree, loops, x, xd, f, step, substeps, scratch):
    """Advance x (nx,), xd (dof,) in place by `step` [s] in `substeps` classical Runge-Kutta steps; return a status.

    f (actuators,) is held.  scratch (7, nx).  On failure x, xd keep the last good sub-step.
    """
    h, dof = step / substeps, xd.shape[0]
    xs, vs, a, rate = scratch[0], scratch[1][:dof], scratch[2][:dof], scratch[3]
    for _ in range(substeps):
        begin(x, xd, scratch)
        for stage in range(4):
            status = forward_dynamics(tree, loops, None, xs, vs, f, a)
            if status != OK:
                return status
            position_rate(xs, vs, rate)
            accumulate_stage(stage, h, x, xd, scratch)
        if not end(x, xd, scratch):
            return NON_FINITE
    return OK


@kernel
def begin(x, xd, scratch):
    """Start the first stage, and the sums of all stages, at x, xd."""
    xs, vs, x_new, v_new = scratch[0], scratch[1], scratch[4], scratch[5]
    for i in range(x.shape[0]):
        xs[i], x_new[i] = x[i], x[i]
    for i in range(xd.shape[0]):
        vs[i], v_new[i] = xd[i], xd[i]


@kernel
def accumulate_stage(stage, h, x, xd, scratch):
    """Add the rates of a stage to the sums, and set the state of the next one."""
    xs, vs, a, rate, x_new, v_new = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5]
    weight = h / 6.0 if stage == 0 or stage == 3 else h / 3.0
    ahead = h if stage == 2 else 0.5 * h
    for i in range(x.shape[0]):
        x_new[i] += weight * rate[i]
        xs[i] = x[i] + ahead * rate[i]
    for i in range(xd.shape[0]):
        v_new[i] += weight * a[i]
        vs[i] = xd[i] + ahead * a[i]


@kernel
def end(x, xd, scratch):
    """Take the state after a step from the sums, its quaternion of unit length; return False where it is not finite."""
    x_new, v_new, total = scratch[4], scratch[5], 0.0
    for i in range(x.shape[0]):
        total += 0.0 * float(x_new[i])
    for i in range(xd.shape[0]):
        total += 0.0 * float(v_new[i])
    if total != 0.0:
        return False
    if x.shape[0] > xd.shape[0]:
        norm = math.sqrt(x_new[3] ** 2 + x_new[4] ** 2 + x_new[5] ** 2 + x_new[6] ** 2)
        for i in range(3, 7):
            x_new[i] /= norm
    for i in range(x.shape[0]):
        x[i] = x_new[i]
    for i in range(xd.shape[0]):
        xd[i] = v_new[i]
    return True
