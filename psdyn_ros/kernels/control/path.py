"""A path of polynomials that is followed in path time: position, velocity and acceleration at times of the clock."""
from typing import NamedTuple

import numpy as np

from ..runtime.compiler import entry, kernel


class Spline(NamedTuple):
    """A path of n coordinates in N segments, and how its time goes on.  Without segments it is no path."""

    coefficients: np.ndarray    # (N, 6, n) of the polynomial of each segment, lowest power first
    knots: np.ndarray           # (N + 1,) path time of their ends
    phases: np.ndarray          # (m, 5) see `path_time`
    offset: float               # path time of the knots less that of the phases


def no_path(n):
    """Return a `Spline` without segments, for callers that have the samples already."""
    return Spline(np.empty((0, 6, n)), np.empty(0), np.empty((0, 5)), 0.0)


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

    phases (m, 5): clock, path time, speed, its rate and its second rate (jerk) at the start of each; before the first
    only its speed is known.
    """
    k = phases.shape[0] - 1
    while k > 0 and phases[k, 0] > t:
        k -= 1
    dt, path, speed, rate, jerk = t - phases[k, 0], phases[k, 1], phases[k, 2], phases[k, 3], phases[k, 4]
    if (jerk == 0.0 and rate == 0.0) or dt < 0.0:
        return path + speed * dt, speed, 0.0
    return (path + dt * (speed + dt * (rate / 2.0 + dt * jerk / 6.0)),
            speed + dt * (rate + dt * jerk / 2.0), rate + dt * jerk)


@entry
def path_sample(coefficients, knots, phases, offset, t, out):
    """Write position, velocity and acceleration at time t of the clock into out (3, n); the others as of `Spline`.

    In fields of its own, since Numba takes a microsecond longer to unpack a named tuple.
    """
    sample_at(Spline(coefficients, knots, phases, offset), t, out)


@kernel
def sample_path(path, times, out):
    """Write samples along a `Spline` at three times of the clock into out (3, 3, n)."""
    for row in range(3):
        sample_at(path, times[row], out[row])


@kernel
def sample_at(path, t, out):
    """Do `path_sample` along a `Spline`; at rest after the last knot."""
    knots = path.knots
    last = knots.shape[0] - 1
    at, speed, rate = path_time(path.phases, t)
    at += path.offset
    over = at >= knots[last]
    at = knots[last] if over else max(at, knots[0])
    low, high = 0, last - 1
    while low < high:
        middle = (low + high + 1) // 2
        if knots[middle] <= at:
            low = middle
        else:
            high = middle - 1
    evaluate(path.coefficients[low], at - knots[low], out)
    for j in range(out.shape[1]):
        if over:
            out[1, j] = out[2, j] = 0.0
        elif speed != 1.0 or rate != 0.0:
            out[2, j] = speed * speed * out[2, j] + rate * out[1, j]
            out[1, j] *= speed
