"""What Python calls: the recursions with shape and finite checks inside, one state or a batch.

Statuses: 0 fine, k + 1 module k does not close, SHAPE, NON_FINITE.
"""
from ..runtime.compiler import batch_entry, entry, kernel
from .forward import forward
from .inverse import inverse

SHAPE, NON_FINITE = -1, -2


@kernel
def checked(n, a, b, c, out):
    """Return 0 when all arrays have n entries and the first three are finite."""
    if a.shape[0] != n or b.shape[0] != n or c.shape[0] != n or out.shape[0] != n:
        return SHAPE
    total = 0.0
    for i in range(n):
        # 0 unless something is NaN or infinite; float() keeps NumPy's warnings out of plain Python
        total += 0.0 * float(a[i]) + 0.0 * float(b[i]) + 0.0 * float(c[i])
    return 0 if total == 0.0 else NON_FINITE


@kernel
def finite(a):
    """Return 0, or NON_FINITE where finite inputs were too large to compute with."""
    total = 0.0
    for i in range(a.shape[0]):
        total += 0.0 * float(a[i])
    return 0 if total == 0.0 else NON_FINITE


@entry
def forward_checked(mods, work, env, x, xd, f, xdd):
    status = checked(mods.shape[0], x, xd, f, xdd)
    if status == 0:
        status = forward(mods, work, env, x, xd, f, xdd)
    return status if status != 0 else finite(xdd)


@entry
def inverse_checked(mods, work, env, x, xd, xdd, f):
    status = checked(mods.shape[0], x, xd, xdd, f)
    if status == 0:
        status = inverse(mods, work, env, x, xd, xdd, f)
    return status if status != 0 else finite(f)


@batch_entry
def forward_batch(mods, work, env, x, xd, f, xdd, first, last):
    """Forward dynamics of the rows first..last of finite (N, dof) arrays; return (status, row)."""
    for row in range(first, last):
        status = forward(mods, work, env, x[row], xd[row], f[row], xdd[row])
        if status == 0:
            status = finite(xdd[row])
        if status != 0:
            return status, row
    return 0, last


@batch_entry
def inverse_batch(mods, work, env, x, xd, xdd, f, first, last):
    """Inverse dynamics of the rows first..last of finite (N, dof) arrays; return (status, row)."""
    for row in range(first, last):
        status = inverse(mods, work, env, x[row], xd[row], xdd[row], f[row])
        if status == 0:
            status = finite(f[row])
        if status != 0:
            return status, row
    return 0, last
