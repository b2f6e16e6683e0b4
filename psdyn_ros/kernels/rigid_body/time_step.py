"""Time integration of the mechanism at constant actuator effort, for the force-level simulator."""
from ..runtime.compiler import entry, kernel
from .entry import checked
from .forward import forward


@entry
def runge_kutta(mods, work, env, x, xd, f, step, substeps, stiffness, damping, scratch):
    """Advance x, xd (dof,) in place by `step` [s] in `substeps` classical Runge-Kutta steps.

    f (dof,) is held.  At its limits a coordinate meets a Hunt-Crossley stop of the given stiffness [N/m, N m/rad]
    and damping [s/m, s/rad]; it never pulls.  scratch (7, dof).  On failure x, xd keep the last good sub-step.
    Returns 0, 1 + the module that does not close, or NON_FINITE.
    """
    h = step / substeps
    xs, vs, a, force, x_new, v_new, v_old = (scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5],
                                             scratch[6])
    n = x.shape[0]
    for _ in range(substeps):
        for i in range(n):
            xs[i], vs[i], x_new[i], v_new[i] = x[i], xd[i], x[i], xd[i]
        for stage in range(4):
            status = acceleration(mods, work, env, xs, vs, f, stiffness, damping, force, a)
            if status != 0:
                return status
            weight = h / 6.0 if stage == 0 or stage == 3 else h / 3.0
            ahead = h if stage == 2 else 0.5 * h
            for i in range(n):
                x_new[i] += weight * vs[i]
                v_new[i] += weight * a[i]
                v_old[i] = vs[i]
            if stage < 3:
                for i in range(n):
                    vs[i] = xd[i] + ahead * a[i]
                    xs[i] = x[i] + ahead * v_old[i]
        status = checked(n, x_new, v_new, v_new, x_new)
        if status != 0:
            return status
        for i in range(n):
            x[i], xd[i] = x_new[i], v_new[i]
    return 0


@kernel
def acceleration(mods, work, env, x, xd, f, stiffness, damping, force, xdd):
    for k in range(mods.shape[0]):
        b = mods[k]
        i = b['coordinate']
        force[i] = f[i] + stop_force(b['lower'] - x[i], -xd[i], stiffness, damping)
        force[i] -= stop_force(x[i] - b['upper'], xd[i], stiffness, damping)
    return forward(mods, work, env, x, xd, force, xdd)


@kernel
def stop_force(depth, rate, stiffness, damping):
    """Return the pushing force of a Hunt-Crossley contact, k d (1 + c d'), zero outside and never pulling."""
    if depth <= 0.0:
        return 0.0
    return max(0.0, stiffness * depth * (1.0 + damping * rate))
