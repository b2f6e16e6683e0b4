"""Efforts of redundant actuators: least weighted norm, within limits, about a preload.

The actuators turn at A yd, so that efforts f are forces A' f on the coordinates.  Among the efforts with A' f = forces,
these are the ones of least sum w (f - preload)^2: only the part of the preload in the null space of A' remains.

Without limits: Wang, Belzile, Angeles, Li: dynamics of a redundantly actuated 2PUR-2RPU parallel machine by the
natural orthogonal complement, equations (35)-(36), a Householder QR of W^-1/2 A, here with column pivoting to see its
rank; the normal equations square the condition number and are not formed.  Where the actuators cannot give the forces,
the residual is least.

With limits: least distance programming, C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", chapter 23, in
the null space of A'.  Where the limits rule the forces out, bounded least squares.

Functions with loops of their own are entries, called rather than inlined: compiling them once is most of the cost.
"""
import math
from typing import NamedTuple

import numpy as np

from ..algebra.bounded_least_squares import STALLED, bounded_least_squares
from ..algebra.linear import column_norm, eliminate_column, least_squares, reflect
from ..runtime.compiler import entry, kernel

DEFICIENT, LIMITED = 1, 2   # the forces are not met: too few actuators; limits.  STALLED: no number or no end
MIN_RANK_RATIO = 1e-9               # diagonal of R over the first: below it the columns of A are dependent
RESIDUAL_TOLERANCE = 1e-9           # of A' f - forces against its terms
LIMIT_TOLERANCE = 1e-12             # excess over a limit that is rounding, against the largest effort
DUAL_RESIDUAL_TOLERANCE = 1e-8      # of least distance programming, against its terms: below it counts as zero
NORM_WEIGHT = 1e-5                  # of the norm beside the residual where both are minimised at once


class Scratch(NamedTuple):
    """Scratch of `allocate`; m actuators, n coordinates."""

    B: np.ndarray           # (m + 1, n + 1) W^-1/2 A, then the reflections and R of its QR; last column: z
    order: np.ndarray       # (n,) columns of A in the order of R
    L: np.ndarray           # (n + 1, n + 1) R' of dependent columns
    rest: np.ndarray        # (n,) forces less those of the preload and of efforts at a limit
    free: np.ndarray        # (m,) 1: to be solved for, 0: given
    efforts: np.ndarray     # (m,)
    Z: np.ndarray           # (m, m) null space of A' times W^-1/2, one vector a column
    J: np.ndarray           # (m + n + 1, 2 m), from here on for bounded least squares, see `bounded`
    b: np.ndarray           # (m + n + 1,)
    bounds: np.ndarray      # (2, 2 m)
    u: np.ndarray           # (2 m,)
    side: np.ndarray        # (2 m,)
    barred: np.ndarray      # (2 m,)
    work: np.ndarray        # (m + n + 2, 2 m + 1)


def scratch(actuators, dof):
    """Return fresh `Scratch` for A of shape (actuators, dof)."""
    m, n, rows, columns = actuators, dof, actuators + dof + 1, 2 * actuators
    return Scratch(
        np.zeros((m + 1, n + 1)), np.zeros(n, np.int64), np.zeros((n + 1, n + 1)), np.zeros(n), np.zeros(m, np.int64),
        np.zeros(m), np.zeros((m, m)), np.zeros((rows, columns)), np.zeros(rows), np.zeros((2, columns)),
        np.zeros(columns), np.zeros(columns, np.int64), np.zeros(columns, np.int64), np.zeros((rows + 1, columns + 1)))


@entry
def factorise(A, weights, s):
    """Factorise the rows of W^-1/2 A that are free, columns pivoted; return their rank."""
    m, n = A.shape
    for i in range(m):
        root = math.sqrt(weights[i])
        for j in range(n):
            s.B[i, j] = A[i, j] / root if s.free[i] else 0.0
    for j in range(n):
        s.order[j] = j
    for k in range(min(m, n)):
        pivot, norm = k, -1.0
        for j in range(k, n):
            length = column_norm(s.B, k, m, j)
            if length > norm:
                pivot, norm = j, length
        if not norm > MIN_RANK_RATIO * (abs(s.B[0, 0]) if k > 0 else 0.0):
            return k
        s.order[k], s.order[pivot] = s.order[pivot], s.order[k]
        for i in range(m):
            s.B[i, k], s.B[i, pivot] = s.B[i, pivot], s.B[i, k]
        eliminate_column(s.B, m, k, n)
    return min(m, n)


@kernel
def apply_reflections(s, rank):
    """Replace the last column of B, z, by Q z."""
    m, n = s.B.shape[0] - 1, s.B.shape[1] - 1
    for k in range(rank - 1, -1, -1):
        reflect(s.B, m, k, n)


@entry
def least_norm(A, weights, s):
    """Set the free efforts to those of least weighted norm with A' f = rest, the others to zero; return the rank."""
    m, n = A.shape
    rank = factorise(A, weights, s)
    if rank == n:
        for j in range(n):                              # U' z = rest (36)
            total = s.rest[s.order[j]]
            for i in range(j):
                total -= s.B[i, j] * s.B[i, n]
            s.B[j, n] = total / s.B[j, j]
    elif rank > 0:
        for j in range(n):
            for i in range(rank):
                s.L[j, i] = s.B[i, j] if i <= j else 0.0
            s.L[j, rank] = s.rest[s.order[j]]
        least_squares(s.L, n, rank, rank + 1)
        for i in range(rank):
            s.B[i, n] = s.L[i, rank]
    for i in range(rank, m):
        s.B[i, n] = 0.0
    apply_reflections(s, rank)                          # Q_L z (35)
    for i in range(m):
        s.efforts[i] = s.B[i, n] / math.sqrt(weights[i]) if s.free[i] else 0.0
    return rank


@kernel
def excess(efforts, lower, upper):
    """Return how far efforts are beyond their limits, rounding apart."""
    worst, largest = 0.0, 0.0
    for i in range(efforts.shape[0]):
        worst = max(worst, lower[i] - efforts[i], efforts[i] - upper[i])
        largest = max(largest, abs(efforts[i]))
    return worst - LIMIT_TOLERANCE * largest


@kernel
def clip(efforts, lower, upper):
    for i in range(efforts.shape[0]):
        efforts[i] = min(max(efforts[i], lower[i]), upper[i])


@kernel
def residual(A, forces, efforts):
    """Return (max |A' f - forces|, size of the numbers in it)."""
    worst, size = 0.0, 0.0
    for j in range(A.shape[1]):
        total, terms = -forces[j], abs(forces[j])
        for i in range(A.shape[0]):
            total += A[i, j] * efforts[i]
            terms += abs(A[i, j] * efforts[i])
        if not abs(total) < math.inf:
            return math.inf, size
        worst, size = max(worst, abs(total)), max(size, terms)
    return worst, size


@kernel
def null_space(weights, rank, s):
    """Set Z to an orthonormal basis, in the weighted norm, of the null space of the factorised A'."""
    m, n = weights.shape[0], s.B.shape[1] - 1
    for c in range(m - rank):
        for i in range(m):
            s.B[i, n] = 1.0 if i == rank + c else 0.0
        apply_reflections(s, rank)
        for i in range(m):
            s.Z[i, c] = s.B[i, n] / math.sqrt(weights[i])


@kernel
def within_limits(weights, lower, upper, rank, s):
    """Move efforts, all free and factorised, within the limits along the null space of A'; False: they cannot.

    The shortest such move, in the weighted norm, is that of least distance programming.  On return `side` has the
    limits that hold it.
    """
    m = weights.shape[0]
    null = m - rank
    null_space(weights, rank, s)
    # rows of G z >= h: efforts + Z z above lower, below upper; each scaled by itself, h as a whole
    size = 0.0
    for k in range(2 * m):
        i, sign = k % m, 1.0 if k < m else -1.0
        limit = lower[i] if k < m else upper[i]
        norm = 0.0
        for c in range(null):
            norm += s.Z[i, c] * s.Z[i, c]
        norm = math.sqrt(norm)
        gap = sign * (limit - s.efforts[i])
        s.bounds[0, k], s.bounds[1, k] = 0.0, 0.0
        for c in range(null + 1):
            s.J[c, k] = 0.0
        if norm * math.sqrt(weights[i]) < MIN_RANK_RATIO:         # this effort is given
            if gap > LIMIT_TOLERANCE * abs(s.efforts[i]):
                return False
        elif not math.isinf(limit):
            for c in range(null):
                s.J[c, k] = sign * s.Z[i, c] / norm
            s.J[null, k] = gap / norm
            s.bounds[1, k] = math.inf
            size = max(size, abs(gap / norm))
    if size == 0.0:
        return False
    for k in range(2 * m):
        s.J[null, k] /= size
    for c in range(null):
        s.b[c] = 0.0
    s.b[null] = 1.0
    if bounded_least_squares(null + 1, 2 * m, s) != 0:
        return False
    # the dual residual r = J u - b gives z = -r / r_last
    terms = 0.0
    for c in range(null + 1):
        total, absolute = -s.b[c], s.b[c]
        for k in range(2 * m):
            total += s.J[c, k] * s.u[k]
            absolute += abs(s.J[c, k] * s.u[k])
        s.work[c, 0], terms = total, max(terms, absolute)
    if not -s.work[null, 0] > DUAL_RESIDUAL_TOLERANCE * terms:
        return False
    for i in range(m):
        for c in range(null):
            s.efforts[i] -= s.Z[i, c] * size * s.work[c, 0] / s.work[null, 0]
    for i in range(m):
        s.side[i] = 1 if s.u[m + i] > 0.0 else -1 if s.u[i] > 0.0 else 0
    return True


@kernel
def nearest(A, weights, preload, lower, upper, forces, s):
    """Set efforts within the limits to those of least |A' f - forces|, and `side`; return 0 or STALLED."""
    m, n = A.shape
    size = 1e-300
    for j in range(n):
        total = 0.0
        for i in range(m):
            total += A[i, j] * A[i, j] / weights[i]
        size = max(size, math.sqrt(total))
    for j in range(n):
        total = forces[j]
        for i in range(m):
            s.J[j, i] = A[i, j] / math.sqrt(weights[i]) / size
            total -= A[i, j] * preload[i]
        s.b[j] = total / size
    for i in range(m):
        for j in range(m):
            s.J[n + i, j] = NORM_WEIGHT if i == j else 0.0
        s.b[n + i] = 0.0
        s.bounds[0, i] = (lower[i] - preload[i]) * math.sqrt(weights[i])
        s.bounds[1, i] = (upper[i] - preload[i]) * math.sqrt(weights[i])
    status = bounded_least_squares(n + m, m, s)
    for i in range(m):
        s.efforts[i] = preload[i] + s.u[i] / math.sqrt(weights[i])
    return status


@kernel
def polish(A, weights, preload, lower, upper, forces, s, efforts):
    """Solve once more with the efforts of `side` at their limits, the others free; kept where that is within them."""
    m, n = A.shape
    for j in range(n):
        s.rest[j] = forces[j]
    for i in range(m):
        s.free[i] = 1 if s.side[i] == 0 else 0
        efforts[i] = preload[i] if s.side[i] == 0 else lower[i] if s.side[i] < 0 else upper[i]
        for j in range(n):
            s.rest[j] -= A[i, j] * efforts[i]
        s.u[i] = s.efforts[i]
    least_norm(A, weights, s)
    for i in range(m):
        efforts[i] += s.efforts[i]
    before, _ = residual(A, forces, s.u)
    after, size = residual(A, forces, efforts)
    if excess(efforts, lower, upper) > 0.0 or after > before + RESIDUAL_TOLERANCE * size:
        for i in range(m):
            efforts[i] = s.u[i]


@entry
def allocate(A, weights, preload, lower, upper, forces, s, efforts):
    """Set efforts (m,); A (m, n), limits may be infinite, lower <= upper; return 0 or why the forces are not met."""
    m, n = A.shape
    if math.isinf(residual(A, forces, preload)[0]):
        for i in range(m):
            efforts[i] = math.nan
        return STALLED
    for j in range(n):
        s.rest[j] = forces[j]
        for i in range(m):
            s.rest[j] -= A[i, j] * preload[i]
    for i in range(m):
        s.free[i] = 1
    rank = least_norm(A, weights, s)
    for i in range(m):
        s.efforts[i] += preload[i]
        efforts[i] = s.efforts[i]
    status = 0
    if excess(efforts, lower, upper) > 0.0:
        if not within_limits(weights, lower, upper, rank, s):
            status = nearest(A, weights, preload, lower, upper, forces, s)
        polish(A, weights, preload, lower, upper, forces, s, efforts)
    clip(efforts, lower, upper)
    worst, size = residual(A, forces, efforts)
    if status != 0:
        return status
    if worst <= RESIDUAL_TOLERANCE * size:
        return 0
    return DEFICIENT if rank < n else LIMITED
