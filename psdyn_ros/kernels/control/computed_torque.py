"""What a control cycle computes for one state; each call is one entry into compiled code."""
from ..hydraulics.friction import sliding_friction
from ..rigid_body.energy import coordinates
from ..rigid_body.entry import NON_FINITE
from ..rigid_body.inverse import inverse
from ..rigid_body.records import MODULE
from ..runtime.compiler import entry, kernel, matrix, vector
from ..runtime.places import FLOAT, INT, bound

OF_READERS = (MODULE, 1), (INT, 2), (FLOAT, 1)      # arrays that `measured_state` is given once


@entry
def measured_state(mods, rows, residual, q, qd, out):
    """Write x and xd, the first two rows of out (3, dof), from the joints of a message; see `coordinates`.

    rows (n, 3): where in q, qd (m,) the joints of each module stand, -1 where they are not measured; entries that no
    module wants may be anything.  residual (n,): scratch.
    Returns (status, largest disagreement of redundant joints [m]).
    """
    for k in range(rows.shape[0]):
        for i in range(3):
            j = rows[k, i]
            if j >= 0 and 0.0 * q[j] + 0.0 * qd[j] != 0.0:
                return NON_FINITE, 0.0
    status = coordinates(mods, rows, q, qd, qd, out[0], out[1], out[2], residual)
    largest = 0.0
    for k in range(residual.shape[0]):
        largest = max(largest, residual[k])
    return status, largest


def reader_of(*held):
    """`measured_state` of these arrays, its first three, as a function of q, qd and out."""
    return bound(measured_state_at, measured_state, OF_READERS, *held)


@entry
def measured_state_at(places, q, qd, out):
    """`measured_state` of the arrays at these places."""
    return measured_state(vector(places, 0, MODULE), matrix(places, 1, INT), vector(places, 2, FLOAT), q, qd, out)


@entry
def clamp(f, limit, clamped):
    """Keep f (dof,) within +-limit (dof,), counting in clamped (dof,) where it was not; NON_FINITE, or 0."""
    for i in range(f.shape[0]):
        if 0.0 * f[i] != 0.0:
            return NON_FINITE
    for i in range(f.shape[0]):
        if abs(f[i]) > limit[i]:
            f[i] = limit[i] if f[i] > 0.0 else -limit[i]
            clamped[i] += 1
    return 0


@entry
def polynomials(coefficients, t, out):
    """Write value, rate and acceleration, the rows of out (3, n), of n polynomials at t.

    coefficients (m, n), lowest power first.
    """
    evaluate(coefficients, t, out)


@kernel
def evaluate(coefficients, t, out):
    for j in range(coefficients.shape[1]):
        value, rate, half = 0.0, 0.0, 0.0
        for i in range(coefficients.shape[0] - 1, -1, -1):
            half = half * t + rate
            rate = rate * t + value
            value = value * t + coefficients[i, j]
        out[0, j], out[1, j], out[2, j] = value, rate, 2.0 * half


@kernel
def path_time(phases, t):
    """Return (path time, speed, rate of the speed) at time t of the clock.

    phases (m, 5): clock, path time, speed, its rate and its bend at the start of each; before the first one nothing is
    known but its speed.
    """
    k = phases.shape[0] - 1
    while k > 0 and phases[k, 0] > t:
        k -= 1
    dt, path, speed, rate, bend = t - phases[k, 0], phases[k, 1], phases[k, 2], phases[k, 3], phases[k, 4]
    if (bend == 0.0 and rate == 0.0) or dt < 0.0:
        return path + speed * dt, speed, 0.0
    return (path + dt * (speed + dt * (rate / 2.0 + dt * bend / 6.0)),
            speed + dt * (rate + dt * bend / 2.0), rate + dt * bend)


@entry
def path_samples(coefficients, knots, phases, offset, first, second, third, out):
    """Write position, velocity and acceleration along a path at three times of the clock into out (3, 3, n).

    coefficients (N, 6, n), knots (N + 1,) of its polynomials in path time; phases as in `path_time`, whose path time
    plus `offset` is that of the polynomials.  At rest after the last knot.
    """
    sample_path(coefficients, knots, phases, offset, first, second, third, out)


@kernel
def sample_path(coefficients, knots, phases, offset, first, second, third, out):
    last = knots.shape[0] - 1
    for row in range(3):
        path, speed, rate = path_time(phases, first if row == 0 else second if row == 1 else third)
        path += offset
        over = path >= knots[last]
        at = knots[last] if over else max(path, knots[0])
        low, high = 0, last - 1
        while low < high:
            middle = (low + high + 1) // 2
            if knots[middle] <= at:
                low = middle
            else:
                high = middle - 1
        motion = out[row]
        evaluate(coefficients[low], at - knots[low], motion)
        for j in range(motion.shape[1]):
            if over:
                motion[1, j] = motion[2, j] = 0.0
            elif speed != 1.0 or rate != 0.0:
                motion[2, j] = speed * speed * motion[2, j] + rate * motion[1, j]
                motion[1, j] *= speed


@entry
def computed_torque(mods, work, env, axes, gains, state, frozen, coefficients, knots, phases, offset, first, then,
                    motion, scale, measured, dt, area, limit, saturations, predicted, u):
    """Write the commands u (dof,): efforts over area (dof,), by inverse dynamics of what gains make of the errors.

    mods, work, env  of the machine without friction of its actuators; axes (dof,) with that friction
    gains     (3, dof) of an error, its rate and its integral
    state     (2, dof) integral of the error; sign of the last effort where it was clipped, else 0
    frozen    (dof,) where the integral stands still
    coefficients, knots, phases, offset, first, then  of the reference, as for `path_samples`; with no knots it is in
              `motion` already
    motion    (3, 3, dof) x, x', x'' of the reference: at the time of the measurement (first); where the command acts
              (then), twice, the second time with rates multiplied by scale here
    measured  (3, dof) x, x', and room for x''
    dt        s since the last sample
    limit, saturations, predicted  (dof,) largest effort; count of those clipped; the effort before that

    Returns 0, NON_FINITE, or 1 + the module that does not close: then state, saturations and predicted are as before.
    """
    if knots.shape[0] > 0:
        sample_path(coefficients, knots, phases, offset, first, then, then, motion)
    n, total, desired, ahead = mods.shape[0], 0.0, motion[0], motion[2]
    for i in range(n):
        for row in range(2):
            total += 0.0 * float(measured[row, i])
        for row in range(1, 3):
            ahead[row, i] *= scale
        measured[2, i] = ahead[2, i] + (gains[0, i] * (desired[0, i] - measured[0, i])
                                        + gains[1, i] * (desired[1, i] - measured[1, i]) + gains[2, i] * state[0, i])
        total += 0.0 * measured[2, i]
    if total != 0.0:
        return NON_FINITE
    status = inverse(mods, work, env, measured[0], measured[1], measured[2], u)
    if status != 0:
        return status
    for i in range(n):
        if axes[i]['coulomb'] != 0.0 or axes[i]['viscous'] != 0.0:
            u[i] += sliding_friction(axes[i], ahead[1, i])
        total += 0.0 * u[i]
    if total != 0.0:
        return NON_FINITE
    for i in range(n):
        predicted[i], error, clipped = u[i], desired[0, i] - measured[0, i], 0.0
        if abs(u[i]) > limit[i]:
            clipped = 1.0 if u[i] > 0.0 else -1.0
            u[i] = limit[i] * clipped
            saturations[i] += 1
        u[i] /= area[i]
        state[1, i] = clipped
        if not frozen[i] and not clipped * error > 0.0:
            state[0, i] += error * dt
    return 0
