"""What a control cycle computes for one state; each call is one entry into compiled code."""
from .compiler import entry
from .entry import NON_FINITE
from .quantities import coordinates


@entry
def measured_state(mods, rows, q, qd, out, residual):
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
def deviation(x, x_last, xd_last, dt):
    """Return the distance of x (dof,) from where x_last goes in time dt at the rate xd_last."""
    total = 0.0
    for i in range(x.shape[0]):
        step = x[i] - x_last[i] - dt * xd_last[i]
        total += step * step
    return total ** 0.5


@entry
def polynomials(coefficients, t, out):
    """Write value, rate and acceleration, the rows of out (3, n), of n polynomials at t.

    coefficients (m, n), lowest power first.
    """
    for j in range(coefficients.shape[1]):
        value, rate, half = 0.0, 0.0, 0.0
        for i in range(coefficients.shape[0] - 1, -1, -1):
            half = half * t + rate
            rate = rate * t + value
            value = value * t + coefficients[i, j]
        out[0, j], out[1, j], out[2, j] = value, rate, 2.0 * half
