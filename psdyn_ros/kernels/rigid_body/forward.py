"""Forward and hybrid dynamics: Algorithm 1 of Paz & Mattila as an articulated-body recursion, O(n).

Their xi, psi, alpha, delta (32), (34), (42)-(49) appear with J_i = xi_i in place of the K matrices, which is
identical for these rows and symmetric by construction:

    alpha = sum J_i' M_i J_i      psi = sum M_i J_i      delta = sum J_i' (M_i b_i + p_i)
    M^A = sum X_i' M_i X_i - psi psi' / alpha            p^A = sum X_i' (M_i b_i + p_i) + psi (f - delta) / alpha

A coordinate whose acceleration is given hands M^A = sum X_i' M_i X_i and p^A = sum X_i' (M_i b_i + p_i) + psi xdd on
(R. Featherstone, Rigid Body Dynamics Algorithms, 2008, section 9.2); its effort follows from the wrenches afterwards.
"""
from ..algebra.spatial import zero_articulated
from ..loops.closure import close_machine
from ..runtime.compiler import inner, kernel
from ..runtime.status import INFINITE, OK, TOGGLE, failure
from .cluster_joint import prepare_clusters
from .inverse import carry_wrenches, put_efforts
from .joints import back_substitute, eliminate_joint, gather, move, set_wrenches, settle_cylinder
from .mechanism import bind


@kernel
def place(m, x, xd):
    """Set joint numbers, bias accelerations and twists of all modules, base to tips; return a status.

    The clusters are closed.
    """
    for k in range(m.modules.shape[0]):
        if not move(m, k, x, xd):
            return failure(TOGGLE, k)
    return OK


@kernel
def solve(m, driven, f, xdd):
    """Write the accelerations xdd (dof,) of the coordinates that are not `driven` (dof,); return a status.

    The modules are placed.  driven None: no acceleration is given.
    """
    prepare_clusters(m.loops, m, f)
    M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(m.modules.shape[0] - 1, -1, -1):
        if not m.modules[k]['child_by_value']:
            M, F, T = zero_articulated(), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        M, F, T = gather(m, k, M, F, T)
        M, F, T = eliminate_joint(m, k, driven, f, xdd, M, F, T)
    for k in range(m.modules.shape[0]):
        if not back_substitute(m, k, driven, xdd):
            return failure(INFINITE, k)
    return OK


@kernel
def efforts_of_motion(m, f):
    """Write the efforts f (dof,) on the coordinates of a machine that `solve` has set in motion."""
    for k in range(m.modules.shape[0]):
        settle_cylinder(m, k)
        set_wrenches(m, k)
    carry_wrenches(m)
    put_efforts(m, f)


# Each sweep compiled once, for callers that would take minutes to compile with all of them inlined.


@inner
def place_machine(tree, loops, x, xd):
    """Do `place` with the buffers of a machine."""
    return place(bind(tree, loops), x, xd)


@inner
def solve_machine(tree, loops, driven, f, xdd):
    """Do `solve` with the buffers of a machine."""
    return solve(bind(tree, loops), driven, f, xdd)


@kernel
def forward_dynamics(tree, loops, driven, x, xd, f, xdd):
    """Write the accelerations xdd (dof,) for efforts f (actuators,) where `driven` gives none; return a status.

    driven: as in `solve`.
    """
    status = close_machine(tree, loops, x, xd)
    if status == OK:
        status = place_machine(tree, loops, x, xd)
    return status if status != OK else solve_machine(tree, loops, driven, f, xdd)


@kernel
def hybrid_dynamics(tree, loops, driven, x, xd, f, xdd):
    """Complete xdd (dof,) where coordinates are free and f (dof,) where they are driven; return a status.

    driven (dof,): not 0 where xdd is given, else f is. The modules' `actuator` is their coordinate.
    """
    status = forward_dynamics(tree, loops, driven, x, xd, f, xdd)
    if status == OK:
        efforts_of_motion(bind(tree, loops), f)
    return status
