"""Loops of any kind: position closure, G and g of the joints that implicit constraints tie together.

A *cluster* is a set of joints that closed loops couple, phi(q) = 0, K qd = 0, K qdd = k, with q = gamma(y), qd = G yd,
qdd = G ydd + g for its independent joints y.  Rows may be redundant: the dependent joints follow by least squares
through Householder reflections, never through the normal equations.  A cluster in which all moves in one plane has
rows of its own kind, two a pin, and positions in closed form where dyads close it.  Kernels keep no state: elsewhere
Newton's method starts from a table of closed poses, made by continuation when the machine was loaded, which holds the
assembly mode.  A caller's hint of where a cluster is closed replaces that start, never the answer: see `certain`.
"""
import math

from ..algebra.linear import (
    factorise,
    factorise_sparse,
    reflect_sparse,
    solve_factorised,
    substitute_back_sparse,
)
from ..algebra.spatial import dot
from ..runtime.compiler import entry, kernel
from .constraints import bias_motion, bias_of_rows, direction_of, linearise, place_joints
from .dyads import close_dyads
from .planar import bias_of_pin, bias_planar, linearise_planar, place_planar

SINGULAR, OPEN = 1, 2           # why a cluster has no answer: rank lost, no closed position found
RANK = 1e-6                     # of a diagonal of R against the largest: below it rank is lost
STEP = 3e-9                     # of Newton's method, after which the error is rounding [m, rad]
LAST = 1e-13                    # step up to which G may be that before it [m, rad]
SOON = 1e-10                    # expected step that may be the last [m, rad]
JUMP = 0.1                      # between predicted and closed position: farther may be another branch [m, rad]
WALK = 32                       # steps in which a doubtful position is approached from a tabulated pose


@kernel
def residuals(cluster, loops):
    """Place the bodies and write K of the dependent joints, -phi, and -K of the others into A.

    Returns (max |phi|, rows).
    """
    if cluster['planar']:
        place_planar(cluster, loops.tied, loops.work)
        return linearise_planar(cluster, loops.tied, loops.pins, loops.work, loops.A), 2 * cluster['pins']
    place_joints(cluster, loops.tied, loops.work)
    return linearise(cluster, loops.tied, loops.rows, loops.work, loops.A), cluster['rows']


@kernel
def decompose(cluster, loops, rows, end):
    """Factorise the system of `residuals` so that `solve` can solve its columns before `end`; return its rank test."""
    dependent = cluster['joints'] - cluster['freedom']
    if cluster['planar']:
        return factorise(loops.A, rows, dependent)
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

    Returns (0, SINGULAR or OPEN; the rank test).
    """
    first, joints, tied, work, A = cluster['first'], cluster['joints'], loops.tied, loops.work, loops.A
    dependent, before, expected = joints - cluster['freedom'], 1.0, math.inf
    for _ in range(40):
        worst, rows = residuals(cluster, loops)
        if not worst < math.inf:
            return OPEN, 0.0
        with_slopes = expected < SOON or worst < SOON
        rank = decompose(cluster, loops, rows, joints + 1 if with_slopes else dependent + 1)
        if not rank > RANK:
            return SINGULAR if worst < 1e-6 else OPEN, rank
        solve(cluster, loops, rows, dependent, dependent + 1)
        largest = 0.0
        for j in range(first, first + joints):
            if tied[j]['independent'] < 0:
                largest = max(largest, abs(A[tied[j]['pivot'], dependent]))
        damping = 1.0 if largest < 0.5 else 0.5 / largest
        for j in range(first, first + joints):
            if tied[j]['independent'] < 0:
                work[j]['q'] += damping * A[tied[j]['pivot'], dependent]
        # a small step that is no longer much smaller than the one before is rounding
        if with_slopes and (largest < LAST or 0.1 * before < largest < STEP):
            solve(cluster, loops, rows, dependent + 1, joints + 1)
            return 0 if worst < cluster['gap'] else OPEN, rank
        # steps shrink quadratically: the next one will be about c largest^2 with c = largest / before^2
        expected = 0.0 if largest < STEP else largest * largest * max(1.0, largest / (before * before))
        before = largest
    return OPEN, 0.0


@kernel
def cell_of(cluster, loops, x, n):
    """Return the cell of the table of closed poses for the coordinates x; -1 where they are no numbers."""
    first, freedom, shift, cell = cluster['first'], cluster['freedom'], 1 if loops.base else 0, 0
    for a in range(freedom):
        low, size, cells, row = loops.lattice[n, a]
        t = loops.tied[first + int(row)]
        position = x[t['coordinate'] + shift]
        if not abs(position) < 1e9:
            return -1
        step = step_from(t, position, loops.poses[cluster['pose'], int(row)])
        i = math.floor((step - low) / size + 0.5)
        cell = cell * int(cells) + int(min(max(i, 0.0), cells - 1.0))
    return cluster['cell'] + cell


@kernel
def take_pose(cluster, loops, pose):
    """Set q of a cluster to a closed pose."""
    for j in range(cluster['joints']):
        loops.work[cluster['first'] + j]['q'] = loops.poses[pose, j]


@kernel
def set_independent(cluster, loops, x, n):
    """Set q of the independent joints of a cluster to the coordinates x."""
    for a in range(cluster['freedom']):
        j = cluster['first'] + int(loops.lattice[n, a, 3])
        loops.work[j]['q'] = x[loops.tied[j]['coordinate'] + (1 if loops.base else 0)]


@kernel
def predict(cluster, loops, x, n, pose):
    """Set q of a cluster for the coordinates x to second order from a closed pose, and `near` to the same."""
    first, joints, freedom, work = cluster['first'], cluster['joints'], cluster['freedom'], loops.work
    steps, q, shift, pair_of = loops.drive[n], loops.A[0], 1 if loops.base else 0, 0
    for j in range(joints):
        q[j] = loops.poses[pose, j]
    for a in range(freedom):
        row = int(loops.lattice[n, a, 3])
        t = loops.tied[first + row]
        steps[a] = step_from(t, x[t['coordinate'] + shift], loops.poses[pose, row])
        for j in range(joints):
            q[j] += loops.slopes[pose, j, a] * steps[a]
        if not cluster['linear']:
            for b in range(a + 1):
                square, curve = steps[a] * steps[b], loops.curves[pose, pair_of]
                pair_of += 1
                for j in range(joints):
                    q[j] += square * curve[j]
    for j in range(joints):
        work[first + j]['q'] = q[j]
    set_independent(cluster, loops, x, n)
    for j in range(first, first + joints):
        work[j]['near'] = work[j]['q']


@kernel
def take_hint(cluster, loops, x, n):
    """Set q of a cluster for the coordinates x to first order from the hint; return whether that is near `near`."""
    first, joints, hint, own = cluster['first'], cluster['joints'], loops.hint, True
    for j in range(first, first + joints):
        loops.work[j]['q'] = hint[0, j]
        own = own and hint[0, j] == hint[1, j]
    if own:
        for a in range(cluster['freedom']):
            i = first + int(loops.lattice[n, a, 3])
            t = loops.tied[i]
            step = step_from(t, x[t['coordinate'] + (1 if loops.base else 0)], hint[0, i])
            for j in range(first, first + joints):
                loops.work[j]['q'] += loops.G[j, a] * step
    set_independent(cluster, loops, x, n)
    for j in range(first, first + joints):
        if not abs(loops.work[j]['q'] - loops.work[j]['near']) < JUMP:
            return False
    return True


@kernel
def certain(cluster, loops, pose, rank):
    """Return whether Newton's method from `near`, predicted from a tabulated pose, provably finds the q in work too.

    It does from within 2 / (3 w) of a solution, w a Lipschitz constant of K there times the norm of the inverse of K.
    `trust` is 1 / (4 w) at the pose over the rank test there: w grows as the rank test at q falls.
    """
    square = 0.0
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        away = loops.work[j]['q'] - loops.work[j]['near']
        square += away * away
    return math.sqrt(square) < loops.trust[pose] * rank


@kernel
def on_branch(cluster, loops, jump):
    """Return whether a closed position, its bodies placed, is in the assembly mode and next to what was predicted."""
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        if not abs(loops.work[j]['q'] - loops.work[j]['near']) < jump:
            return False
    for i in range(cluster['sense'], cluster['sense'] + cluster['senses']):
        r = loops.senses[i]
        if not dot(direction_of(loops.work, r['a'], r['u']), direction_of(loops.work, r['b'], r['w'])) > 0.0:
            return False
    return True


@entry
def walk(cluster, loops, x, n, pose):
    """Close a cluster by small steps from a closed pose to the coordinates x; 0, SINGULAR or OPEN."""
    first, joints, freedom, tied, work = (cluster['first'], cluster['joints'], cluster['freedom'], loops.tied,
                                          loops.work)
    slope, shift = joints - freedom + 1, 1 if loops.base else 0
    take_pose(cluster, loops, pose)
    for i in range(WALK):
        for a in range(freedom):
            row = int(loops.lattice[n, a, 3])
            t = tied[first + row]
            step = step_from(t, x[t['coordinate'] + shift], loops.poses[pose, row]) / WALK
            work[first + row]['q'] += step
            for j in range(first, first + joints):
                if tied[j]['independent'] < 0:
                    work[j]['q'] += step * (loops.slopes[pose, j - first, a] if i == 0
                                            else loops.A[tied[j]['pivot'], slope + a])
        if i == WALK - 1:
            set_independent(cluster, loops, x, n)
        for j in range(first, first + joints):
            work[j]['near'] = work[j]['q']
        status, _ = close_positions(cluster, loops)
        if status != 0:
            return status
        if not on_branch(cluster, loops, JUMP):
            return OPEN
    return 0


@kernel
def close_cluster(cluster, loops, x, n):
    """Set q of a cluster at the coordinates x, on the branch of the table of closed poses, and solve G into A.

    Returns 0, SINGULAR or OPEN.
    """
    cell, status = cell_of(cluster, loops, x, n), OPEN
    if cell < 0:
        return OPEN
    for candidate in range(2):
        pose = loops.cells[cell, candidate]
        if pose < 0:
            return status
        if cluster['dyads'] > 0:
            # which turn of a joint is meant says the pose itself: next to a singular one a prediction is far off
            take_pose(cluster, loops, pose)
            set_independent(cluster, loops, x, n)
            return solve_slopes(cluster, loops) if close_dyads(cluster, loops) else OPEN
        predict(cluster, loops, x, n, pose)
        if cluster['linear']:
            return solve_slopes(cluster, loops)
        # the pose of another cell: near a singular pose it may lead to the other of two solutions
        doubtful = candidate == 0 and loops.cells[cell, 1] >= 0 and loops.trust[pose] > 0.0
        for hinted in (True, False):
            if hinted and not (loops.hinted[0] and candidate == 0 and loops.trust[pose] > 0.0
                               and take_hint(cluster, loops, x, n)):
                continue
            if not hinted:
                for j in range(cluster['first'], cluster['first'] + cluster['joints']):
                    loops.work[j]['q'] = loops.work[j]['near']
            status, rank = close_positions(cluster, loops)
            if status == 0 and on_branch(cluster, loops, JUMP) and (
                    not hinted and not doubtful or certain(cluster, loops, pose, rank)):
                return 0
        status = walk(cluster, loops, x, n, pose)
        if status == 0:
            return 0
    return status


@kernel
def step_from(t, position, pose):
    """Return how far a position is from that of a tabulated pose; whole turns do not count."""
    step = position - pose
    if t['turns']:
        step -= 2.0 * math.pi * math.floor(step / (2.0 * math.pi) + 0.5)
    return step


@kernel
def solve_slopes(cluster, loops):
    """Solve G into A at the q in work; return 0, SINGULAR, or OPEN where they do not close the cluster."""
    worst, rows = residuals(cluster, loops)
    if not worst < cluster['gap']:
        return OPEN
    if not cluster['linear']:
        if not decompose(cluster, loops, rows, cluster['joints'] + 1) > RANK:
            return SINGULAR
        solve(cluster, loops, rows, cluster['joints'] - cluster['freedom'] + 1, cluster['joints'] + 1)
    return 0


@kernel
def differentiate(cluster, loops, xd):
    """Set G, g and qd of a cluster that is closed, its G solved in A."""
    first, joints, freedom = cluster['first'], cluster['joints'], cluster['freedom']
    tied, work, A, G = loops.tied, loops.work, loops.A, loops.G
    slope = joints - freedom + 1
    for j in range(first, first + joints):
        t, u = tied[j], work[j]
        u['qd'], u['g'] = 0.0, 0.0
        for a in range(freedom):
            if t['independent'] >= 0:
                G[j, a] = 1.0 if a == t['independent'] else 0.0
            elif cluster['linear']:
                G[j, a] = loops.slopes[cluster['pose'], j - first, a]
            else:
                G[j, a] = A[t['pivot'], slope + a]
    for i in range(first, first + joints):
        if tied[i]['independent'] >= 0:
            rate = xd[tied[i]['coordinate']]
            for j in range(first, first + joints):
                work[j]['qd'] += G[j, tied[i]['independent']] * rate
    if cluster['planar']:
        bias_planar(cluster, tied, work)
    else:
        bias_motion(cluster, tied, work)
    if not cluster['linear']:
        accelerations_at_rest(cluster, loops)


@kernel
def accelerations_at_rest(cluster, loops):
    """Set g, the accelerations of the joints at ydd = 0, of a cluster whose system is decomposed in A."""
    A, dependent = loops.A, cluster['joints'] - cluster['freedom']
    if cluster['planar']:
        for i in range(cluster['pins']):
            x, y = bias_of_pin(loops.pins[cluster['pin'] + i], loops.work)
            A[2 * i, dependent], A[2 * i + 1, dependent] = -x, -y
        solve(cluster, loops, 2 * cluster['pins'], dependent, dependent + 1)
    else:
        bias_of_rows(cluster, loops.rows, loops.work, A, dependent)
        reflect_sparse(A, cluster['rows'], loops.columns, loops.column_rows, cluster['column'], dependent, dependent)
        solve(cluster, loops, cluster['rows'], dependent, dependent + 1)
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        if loops.tied[j]['independent'] < 0:
            loops.work[j]['g'] = A[loops.tied[j]['pivot'], dependent]


@kernel
def keep_hint(cluster, loops):
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        loops.hint[0, j], loops.hint[1, j] = loops.work[j]['q'], loops.work[j]['q']


@kernel
def close(loops, x, xd):
    """Close every cluster at x (nx,), xd (dof,); return 0, or 8 (cluster + 1) + reason."""
    for k in range(loops.clusters.shape[0]):
        cluster = loops.clusters[k]
        status = close_cluster(cluster, loops, x, k)
        if status != 0:
            return 8 * (k + 1) + status
        differentiate(cluster, loops, xd)
        if loops.hinted[0]:
            keep_hint(cluster, loops)
    return 0


@entry
def close_all(loops, x, xd):
    """`close` for calls from Python."""
    return close(loops, x, xd)


@entry
def close_from(loops, k, xd):
    """Close cluster k from the q in work, the independent ones held; set G and, for the rates xd, g."""
    cluster = loops.clusters[k]
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        loops.work[j]['near'] = loops.work[j]['q']
    status, _ = close_positions(cluster, loops)
    if status == 0 and not on_branch(cluster, loops, math.inf):
        status = OPEN
    if status == 0:
        differentiate(cluster, loops, xd)
    return status


@entry
def linearise_at(loops, k):
    """Write K of cluster k at the q in work, in space, and -phi into A; see `linearise`."""
    place_joints(loops.clusters[k], loops.tied, loops.work)
    return linearise(loops.clusters[k], loops.tied, loops.rows, loops.work, loops.A)
