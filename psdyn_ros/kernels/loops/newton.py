"""Newton's method on the closure of a cluster, and the linear system that it shares with the joint rates.

A of `Loops` holds, row by row, K of the dependent joints, -phi, and -K of the independent joints.  The dependent joints
follow by least squares; see `closure`.
"""
import math

from ..algebra.linear import factorise, factorise_sparse, solve_factorised, substitute_back_sparse
from ..runtime.compiler import kernel
from ..runtime.status import OK, OPEN, SINGULAR
from .constraints import linearise, place_joints
from .planar import linearise_planar, place_planar, set_position, turn_joints

MIN_RANK_RATIO = 1e-6           # diagonal of R over the largest: below it rank is lost
MAX_ROUNDING_STEP = 3e-9        # step after which the error is rounding [m, rad]
MAX_LAST_STEP = 1e-13           # step up to which the G before it is still exact [m, rad]
MAX_STEP_WITH_SLOPES = 1e-10    # expected step that may be the last: G is solved with it [m, rad]


@kernel
def rows_in_plane(cluster):
    return 2 * cluster['pins'] + cluster['parallels']


@kernel
def residuals(cluster, loops):
    """Place the bodies and write K of the dependent joints, -phi, and -K of the others into A.

    cos and sin of all q are set.  Returns (max |phi|, rows).
    """
    if cluster['planar']:
        place_planar(cluster, loops.cluster_joints, loops.work)
        return linearise_planar(cluster, loops.cluster_joints, loops.pins, loops.work, loops.A), rows_in_plane(cluster)
    place_joints(cluster, loops.cluster_joints, loops.work)
    return linearise(cluster, loops.cluster_joints, loops.rows, loops.work, loops.A), cluster['rows']


@kernel
def decompose(cluster, loops, rows, end):
    """Factorise the system of `residuals` so that `solve` can solve its columns before `end`; return its rank test."""
    dependent = cluster['joints'] - cluster['freedom']
    if cluster['planar']:
        return factorise(loops.A, rows, dependent, dependent)
    return factorise_sparse(loops.A, rows, loops.columns, loops.column_rows, cluster['column'], dependent, end)


@kernel
def solve(cluster, loops, rows, start, end):
    """Solve the columns start ... end - 1 of the decomposed system; that of joint j stands in its row 'pivot'."""
    dependent = cluster['joints'] - cluster['freedom']
    if cluster['planar']:
        for c in range(start, end):
            solve_factorised(loops.A, rows, dependent, c)
    else:
        substitute_back_sparse(loops.A, rows, loops.columns, loops.column_rows, cluster['column'], dependent, start,
                               end)


@kernel
def close_positions(cluster, loops):
    """Newton's method on phi(q) = 0 from the q in work, the independent ones held; leaves G solved in A.

    Sets cos and sin of all q.

    Returns (OK, SINGULAR or OPEN; the rank test).
    """
    first, joints, A = cluster['first'], cluster['joints'], loops.A
    cluster_joints, work = loops.cluster_joints, loops.work
    dependent, before, expected = joints - cluster['freedom'], 1.0, math.inf
    turn_joints(cluster, cluster_joints, work)
    for _ in range(40):
        worst, rows = residuals(cluster, loops)
        if not worst < math.inf:
            return OPEN, 0.0
        with_slopes = expected < MAX_STEP_WITH_SLOPES or worst < MAX_STEP_WITH_SLOPES
        rank = decompose(cluster, loops, rows, joints + 1 if with_slopes else dependent + 1)
        if not rank > MIN_RANK_RATIO:
            return SINGULAR if worst < 1e-6 else OPEN, rank
        solve(cluster, loops, rows, dependent, dependent + 1)
        largest = 0.0
        for j in range(first, first + joints):
            if cluster_joints[j]['independent'] < 0:
                largest = max(largest, abs(A[cluster_joints[j]['pivot'], dependent]))
        damping = 1.0 if largest < 0.5 else 0.5 / largest
        for j in range(first, first + joints):
            if cluster_joints[j]['independent'] < 0:
                t = cluster_joints[j]
                set_position(t, work[j], work[j]['q'] + damping * A[t['pivot'], dependent])
        # a small step that is no longer much smaller than the one before is rounding
        if with_slopes and (largest < MAX_LAST_STEP or 0.1 * before < largest < MAX_ROUNDING_STEP):
            solve(cluster, loops, rows, dependent + 1, joints + 1)
            return OK if worst < cluster['gap'] else OPEN, rank
        # steps shrink quadratically: the next one will be about c largest^2 with c = largest / before^2
        expected = 0.0 if largest < MAX_ROUNDING_STEP else largest * largest * max(1.0, largest / (before * before))
        before = largest
    return OPEN, 0.0


@kernel
def solve_slopes(cluster, loops):
    """Solve G into A at the q in work, cos and sin of which are set.

    Returns OK, SINGULAR, or OPEN where they do not close the cluster.
    """
    worst, rows = residuals(cluster, loops)
    if not worst < cluster['gap']:
        return OPEN
    if not cluster['linear']:
        if not decompose(cluster, loops, rows, cluster['joints'] + 1) > MIN_RANK_RATIO:
            return SINGULAR
        solve(cluster, loops, rows, cluster['joints'] - cluster['freedom'] + 1, cluster['joints'] + 1)
    return OK
