"""Small linear systems, in place: symmetric ones by Cholesky, least squares by Householder.

The `sparse` ones eliminate each column j only from the rows that it, or fill, has reached: row `rows` of A takes the
diagonal of R, row `rows` + 1 is scratch.  `columns` from `first` on: COLUMN of `loops.records`, see there.
"""
import math

from ..runtime.compiler import kernel


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


@kernel
def column_norm(A, first, rows, j):
    """Return the length of A[first:rows, j]."""
    square = 0.0
    for i in range(first, rows):
        square += A[i, j] * A[i, j]
    return math.sqrt(square)


@kernel
def eliminate_column(A, rows, j, columns):
    """Eliminate column j below its diagonal by a Householder reflection, which the columns after it get as well.

    Row `rows` of A takes what the diagonal has no room for.  Returns |R_jj|; at 0 nothing was done.
    """
    norm = column_norm(A, j, rows, j)
    if norm > 0.0:
        A[rows, j] = A[j, j] + norm if A[j, j] > 0.0 else A[j, j] - norm
        A[j, j] = -norm if A[rows, j] > 0.0 else norm
        for c in range(j + 1, columns):
            reflect(A, rows, j, c)
    return norm


@kernel
def substitute_back(A, unknowns, c):
    """Replace column c by the solution of R x = c."""
    for j in range(unknowns - 1, -1, -1):
        total = A[j, c]
        for i in range(j + 1, unknowns):
            total -= A[j, i] * A[i, c]
        A[j, c] = total / A[j, j]


@kernel
def least_squares(A, rows, unknowns, columns):
    """Solve A[:rows, :unknowns] X = A[:rows, unknowns:columns] in place by Householder reflections.

    X comes in the first `unknowns` rows of the right-hand columns; row `rows` is scratch.  Returns as `factorise`.
    """
    rank = factorise(A, rows, unknowns, columns)
    if rank > 0.0:
        for c in range(unknowns, columns):
            substitute_back(A, unknowns, c)
    return rank


@kernel
def factorise(A, rows, unknowns, columns):
    """Factorise A[:rows, :unknowns] in place, the reflections applied to `columns`; return min |R_jj| / max |R_jj|."""
    small, large = math.inf, 0.0
    for j in range(unknowns):
        norm = eliminate_column(A, rows, j, columns)
        small, large = min(small, norm), max(large, norm)
        if not norm > 0.0:
            return 0.0
    return small / large if unknowns > 0 else 1.0


@kernel
def reflect(A, rows, j, c):
    """Apply the reflection of column j to column c."""
    head = A[rows, j]
    total = head * A[j, c]
    for i in range(j + 1, rows):
        total += A[i, j] * A[i, c]
    total /= abs(head * A[j, j])
    A[j, c] -= total * head
    for i in range(j + 1, rows):
        A[i, c] -= total * A[i, j]


@kernel
def solve_factorised(A, rows, unknowns, c):
    """Replace the first `unknowns` entries of column c by the least-squares solution for that right-hand side."""
    for j in range(unknowns):
        reflect(A, rows, j, c)
    substitute_back(A, unknowns, c)


@kernel
def factorise_sparse(A, rows, columns, column_rows, first, unknowns, end):
    """Factorise the first `unknowns` columns of A by Householder reflections, and apply these to those before `end`.

    Returns min |R_jj| / max |R_jj|.
    """
    small, large, products = math.inf, 0.0, A[rows + 1]
    for j in range(unknowns):
        column = columns[first + j]
        near, far, start, stop = column['near'], column['far'], column['row'], column['row'] + column['rows']
        norm = 0.0
        for i in range(start, stop):
            norm += A[column_rows[i], j] * A[column_rows[i], j]
        norm = math.sqrt(norm)
        small, large = min(small, norm), max(large, norm)
        if norm == 0.0:
            return 0.0
        pivot = A[column_rows[start]]
        head = pivot[j] + norm if pivot[j] > 0.0 else pivot[j] - norm
        scale = 1.0 / (norm * abs(head))
        pivot[j] = head
        A[rows, j] = -norm if head > 0.0 else norm
        for c in range(j + 1, near):
            products[c] = 0.0
        for c in range(far, end):
            products[c] = 0.0
        for i in range(start, stop):
            row = A[column_rows[i]]
            factor = scale * row[j]
            for c in range(j + 1, near):
                products[c] += factor * row[c]
            for c in range(far, end):
                products[c] += factor * row[c]
        for i in range(start, stop):
            row = A[column_rows[i]]
            factor = row[j]
            for c in range(j + 1, near):
                row[c] -= factor * products[c]
            for c in range(far, end):
                row[c] -= factor * products[c]
    return small / large if unknowns > 0 else 1.0


@kernel
def reflect_sparse(A, rows, columns, column_rows, first, unknowns, c):
    """Apply the reflections of `factorise_sparse` to column c."""
    for j in range(unknowns):
        start, stop = columns[first + j]['row'], columns[first + j]['row'] + columns[first + j]['rows']
        total = 0.0
        for i in range(start, stop):
            total += A[column_rows[i], j] * A[column_rows[i], c]
        total /= abs(A[column_rows[start], j] * A[rows, j])
        for i in range(start, stop):
            A[column_rows[i], c] -= total * A[column_rows[i], j]


@kernel
def substitute_back_sparse(A, rows, columns, column_rows, first, unknowns, start, end):
    """Replace columns start ... end - 1 by the solutions of R x = c, each unknown in its pivot row."""
    for j in range(unknowns - 1, -1, -1):
        column = columns[first + j]
        row = A[column_rows[column['row']]]
        for i in range(j + 1, unknowns):
            if i < column['near'] or i >= column['far']:
                known, factor = A[column_rows[columns[first + i]['row']]], row[i]
                for c in range(start, end):
                    row[c] -= factor * known[c]
        scale = 1.0 / A[rows, j]
        for c in range(start, end):
            row[c] *= scale


@kernel
def factorise_symmetric(M):
    """Replace M by L D L': L in the upper triangle as L', the reciprocals of D on the diagonal.

    Without roots: M may be indefinite for declared inertias that no body can have.
    """
    n = M.shape[0]
    for j in range(n):
        for i in range(j, n):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[k, j]
            M[i, j] = total
        M[j, j] = 1.0 / M[j, j]
        for i in range(j + 1, n):
            M[j, i] = M[i, j] * M[j, j]


@kernel
def solve_negative(L, B):
    """Replace B by -M^-1 B; L from `factorise_symmetric`."""
    n, columns = B.shape
    for i in range(n):
        for k in range(i):
            for c in range(columns):
                B[i, c] -= L[k, i] * B[k, c]
    for i in range(n - 1, -1, -1):
        for c in range(columns):
            B[i, c] *= -L[i, i]
        for k in range(i + 1, n):
            for c in range(columns):
                B[i, c] -= L[i, k] * B[k, c]
