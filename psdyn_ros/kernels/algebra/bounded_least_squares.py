"""Least squares with bounds on the unknowns: min |J u - b|, bounds[0] <= u <= bounds[1], which may be infinite.

P. B. Stark, R. L. Parker, "Bounded-variable least-squares", Computational Statistics 10 (1995) 129-141: an active set,
its systems solved by Householder reflections.  Bounds of zero and infinity make it the non-negative least squares of
C. L. Lawson, R. J. Hanson, "Solving Least Squares Problems", chapter 23.  Columns that depend on each other are fine
where each has a finite bound.

`s` has at least as many rows and columns as are used in J, b, bounds (2, columns), u, work (rows + 1, columns + 1), and
integers `side` (-1, 1: at the lower, upper bound; 0: free) and `barred` (1: rounding alone would free it).
"""
import math

from ..runtime.compiler import entry, kernel
from .linear import least_squares

STALLED = 3                 # no end within the steps that are allowed
MIN_GRADIENT_SHARE = 1e-14  # of the gradient in its terms: below it the step gains nothing


@entry
def bounded_least_squares(rows, columns, s):
    """Minimise |J u - b| with bounds on u, from a start at the bounds; return 0 or STALLED."""
    for j in range(columns):
        low, high = s.bounds[0, j], s.bounds[1, j]
        s.side[j] = 0 if math.isinf(low) and math.isinf(high) else -1 if abs(low) <= abs(high) else 1
        s.u[j] = 0.0 if s.side[j] == 0 else low if s.side[j] < 0 else high
        s.barred[j] = 0
    freed, left = -1, 0                                 # the variable freed last, and the side that it left
    for _ in range(20 * (columns + 1)):
        unknowns = trial(rows, columns, s)
        if freed >= 0 and s.work[trial_row(freed, s), unknowns] * left >= s.bounds[(left + 1) // 2, freed] * left:
            s.side[freed], s.barred[freed] = left, 1
            freed = -1
        else:
            freed = -1
            if not step(columns, unknowns, s):
                continue
            for j in range(columns):
                s.barred[j] = 0
        best, steepest = -1, 0.0
        for j in range(columns):
            if s.side[j] == 0 or s.barred[j] or s.bounds[0, j] == s.bounds[1, j]:
                continue
            gradient, size = slope(rows, columns, j, s)
            gain = -s.side[j] * gradient                # of moving away from the bound
            if gain > MIN_GRADIENT_SHARE * size and gain > steepest:
                best, steepest = j, gain
        if best < 0 or unknowns >= rows:
            return 0
        freed, left = best, s.side[best]
        s.side[best] = 0
    return STALLED


@kernel
def trial(rows, columns, s):
    """Solve for the free variables, the others at their bounds; return their number, the column of the solution."""
    unknowns = 0
    for j in range(columns):
        if s.side[j] == 0:
            for i in range(rows):
                s.work[i, unknowns] = s.J[i, j]
            unknowns += 1
    for i in range(rows):
        total = s.b[i]
        for j in range(columns):
            if s.side[j] != 0:
                total -= s.J[i, j] * s.u[j]
        s.work[i, unknowns] = total
    least_squares(s.work, rows, unknowns, unknowns + 1)
    return unknowns


@kernel
def trial_row(j, s):
    row = 0
    for i in range(j):
        if s.side[i] == 0:
            row += 1
    return row


@kernel
def step(columns, unknowns, s):
    """Move the free variables to the trial, at most to the first bound, which then holds; True: the whole way."""
    share, blocked, row = 1.0, -1, 0
    for j in range(columns):
        if s.side[j] == 0:
            goal = s.work[row, unknowns]
            for k in range(2):
                beyond = goal < s.bounds[0, j] if k == 0 else goal > s.bounds[1, j]
                if beyond and (s.bounds[k, j] - s.u[j]) / (goal - s.u[j]) < share:
                    share, blocked = (s.bounds[k, j] - s.u[j]) / (goal - s.u[j]), j
            row += 1
    row = 0
    for j in range(columns):
        if s.side[j] == 0:
            goal = s.work[row, unknowns]
            s.u[j] += share * (goal - s.u[j])
            if j == blocked:
                s.side[j] = -1 if goal < s.bounds[0, j] else 1
                s.u[j] = s.bounds[(s.side[j] + 1) // 2, j]
            row += 1
    return blocked < 0


@kernel
def slope(rows, columns, j, s):
    """Return how fast |b - J u|^2 / 2 falls with u_j, and the size of the numbers in it."""
    total, size = 0.0, 0.0
    for i in range(rows):
        if s.J[i, j] != 0.0:
            rest, terms = s.b[i], abs(s.b[i])
            for c in range(columns):
                rest -= s.J[i, c] * s.u[c]
                terms += abs(s.J[i, c] * s.u[c])
            total += s.J[i, j] * rest
            size += abs(s.J[i, j]) * terms
    return total, size
