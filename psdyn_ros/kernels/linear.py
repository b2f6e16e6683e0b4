"""Small symmetric systems, in place."""
import math

from .compiler import kernel


@kernel
def cholesky(A, n):
    """Replace the lower triangle of A by L with A = L L'; NaN where A is not positive definite."""
    for j in range(n):
        for i in range(j, n):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            if i > j:
                A[i, j] = total / A[j, j]
            else:
                A[i, j] = math.sqrt(total) if total > 0.0 else math.nan


@kernel
def solve_lower(L, n, b):
    """Replace b by the solution of L x = b."""
    for i in range(n):
        for k in range(i):
            b[i] -= L[i, k] * b[k]
        b[i] /= L[i, i]


@kernel
def solve_upper(L, n, b):
    """Replace b by the solution of L' x = b."""
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            b[i] -= L[k, i] * b[k]
        b[i] /= L[i, i]
