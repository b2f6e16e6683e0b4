"""Forward and hybrid dynamics: Algorithm 1 of Paz & Mattila as an articulated-body recursion, O(n).

Their xi, psi, alpha, delta (32), (34), (42)-(49) appear with J_i = xi_i in place of the K matrices, which is
identical for these rows and symmetric by construction:

    alpha = sum J_i' M_i J_i      psi = sum M_i J_i      delta = sum J_i' (M_i b_i + p_i)
    M^A = sum X_i' M_i X_i - psi psi' / alpha            p^A = sum X_i' (M_i b_i + p_i) + psi (f - delta) / alpha

A coordinate whose acceleration is given hands M^A = sum X_i' M_i X_i and p^A = sum X_i' (M_i b_i + p_i) + psi xdd on
(R. Featherstone, Rigid Body Dynamics Algorithms, 2008, section 9.2); what drives it follows from the wrenches at last.
"""
from ..algebra.spatial import zero_articulated
from ..runtime.compiler import kernel
from ..runtime.status import INFINITE, OK, TOGGLE, failure
from .cluster_joint import close_loops, prepare_clusters
from .inverse import carry_wrenches, put_efforts
from .joints import absorb, gather, move, release, set_wrenches, settle_cylinder


@kernel
def place(m, x, xd):
    """Set joint numbers, bias accelerations and twists of all modules, base to tips; return a status."""
    status = close_loops(m.loops, m, x, xd)
    if status != OK:
        return status
    return move_all(m, x, xd)


@kernel
def move_all(m, x, xd):
    """Do `place` of a machine whose clusters are closed."""
    for k in range(m.modules.shape[0]):
        if not move(m, k, x, xd):
            return failure(TOGGLE, k)
    return OK


@kernel
def forward(m, x, xd, f, xdd):
    """Write the accelerations xdd (dof,) of the coordinates for efforts f (actuators,); return a status."""
    return forward_where(m, None, x, xd, f, xdd)


@kernel
def forward_where(m, driven, x, xd, f, xdd):
    """Write the accelerations xdd (dof,) of the coordinates that are not `driven` (dof,); None: none is."""
    status = place(m, x, xd)
    if status == OK:
        status = accelerations(m, driven, f, xdd)
    return status


@kernel
def accelerations(m, driven, f, xdd):
    """Do `forward_where` of a machine that `place` has placed."""
    prepare_clusters(m.loops, m, f)
    M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(m.modules.shape[0] - 1, -1, -1):
        if not m.modules[k]['chained']:
            M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        M, F, T = gather(m, k, M, F, T)
        M, F, T = absorb(m, k, driven, f, xdd, M, F, T)
    for k in range(m.modules.shape[0]):
        if not release(m, k, driven, xdd):
            return failure(INFINITE, k)
    return OK


@kernel
def hybrid(m, driven, x, xd, f, xdd):
    """Complete xdd (dof,) where coordinates are free and f (dof,) where they are driven; return a status.

    driven (dof,): not 0 where xdd is given, else f is. The modules' `actuator` is their coordinate.
    """
    status = forward_where(m, driven, x, xd, f, xdd)
    if status != OK:
        return status
    for k in range(m.modules.shape[0]):
        settle_cylinder(m, k)
        set_wrenches(m, k)
    carry_wrenches(m)
    put_efforts(m, f)
    return OK
