"""Loops of any kind: position closure, G and g of the joints that implicit constraints couple.

A *cluster* is a set of joints that closed loops couple, phi(q) = 0, K qd = 0, K qdd = k, with q = gamma(y), qd = G yd,
qdd = G ydd + g for its independent joints y.  Rows may be redundant: the dependent joints follow by least squares
through Householder reflections, never through the normal equations.  A cluster in which all moves in one plane has
rows of its own kind, two a pin, and positions in closed form where dyads close it.  Kernels keep no state: elsewhere
Newton's method starts from a table of closed poses, made by continuation when the machine was loaded, which holds the
assembly mode.  A caller's hint of a closed position replaces that start, never the answer: see `provably_found`.
"""
import math

from ..algebra.linear import reflect_sparse
from ..algebra.spatial import dot
from ..runtime.compiler import entry, kernel
from ..runtime.status import BRANCH, OK, OPEN, SINGULAR, failure
from .constraints import bias_motion, bias_of_rows, direction_of, linearise, place_joints
from .dyads import close_dyads
from .newton import close_positions, rows_in_plane, solve, solve_slopes
from .planar import bias_of_pin, bias_planar, turn_joints
from .records import BEYOND_BRANCH_POINT, bind_loops

MAX_JUMP = 0.02                 # between predicted and closed position: farther may be another branch [m, rad]
MAX_CERTAIN_JUMP = 0.1          # the same where Newton's method provably finds the closed position [m, rad]
MAX_STEP_MOTION = 0.3           # of a joint in one step of `walk` [m, rad]
MAX_WALK_STEPS = 250            # of `walk` from a tabulated pose
MIN_STEP_SHARE = 1e-12          # of a step of `walk` in the whole way
MIN_STEP_COSINE = 0.95          # between the tangents at both ends of a step of `walk`
MIN_WAY_COSINE = 0.7            # between the tangents at both ends of the whole way
MAX_SINGULAR_REMAINDER = 1e-9   # share of the way that is left where it ends in the singular pose itself


@kernel
def coordinate_position(t, loops, x):
    """Return the position in x of a joint that is a coordinate; a floating base has one position more than rates."""
    return x[t['coordinate'] + (1 if loops.base else 0)]


@kernel
def cell_of(cluster, loops, x, n):
    """Return the cell of the table of closed poses for the coordinates x; -1 where they are no numbers."""
    first, freedom, cell = cluster['first'], cluster['freedom'], 0
    for a in range(freedom):
        low, size, cells, row, _, _ = loops.lattice[n, a]
        t = loops.cluster_joints[first + int(row)]
        position = coordinate_position(t, loops, x)
        if not abs(position) < 1e9:
            return -1
        step = step_from(t, position, loops.poses[cluster['pose'], int(row)])
        i = math.floor((step - low) / size + 0.5)
        cell = cell * int(cells) + int(min(max(i, 0.0), cells - 1.0))
    return cluster['cell'] + cell


@kernel
def is_beyond(cluster, loops, x, n):
    """Return whether the coordinates x lie beyond a branch point of an independent joint."""
    for a in range(cluster['freedom']):
        row = int(loops.lattice[n, a, 3])
        t = loops.cluster_joints[cluster['first'] + row]
        step = step_from(t, coordinate_position(t, loops, x), loops.poses[cluster['pose'], row])
        if step <= loops.lattice[n, a, 4] or step >= loops.lattice[n, a, 5]:
            return True
    return False


@kernel
def set_pose(cluster, loops, pose):
    """Set q of a cluster to a closed pose."""
    for j in range(cluster['joints']):
        loops.work[cluster['first'] + j]['q'] = loops.poses[pose, j]


@kernel
def set_independent(cluster, loops, x, n):
    """Set q of the independent joints of a cluster to the coordinates x."""
    for a in range(cluster['freedom']):
        j = cluster['first'] + int(loops.lattice[n, a, 3])
        loops.work[j]['q'] = coordinate_position(loops.cluster_joints[j], loops, x)


@kernel
def predict(cluster, loops, x, n, pose):
    """Predict q of a cluster at x from a closed pose, to second order; set q and `near` to the prediction."""
    first, joints, freedom, work = cluster['first'], cluster['joints'], cluster['freedom'], loops.work
    steps, q, pair = loops.drive[n], loops.A[0], 0
    for j in range(joints):
        q[j] = loops.poses[pose, j]
    for a in range(freedom):
        row = int(loops.lattice[n, a, 3])
        t = loops.cluster_joints[first + row]
        steps[a] = step_from(t, coordinate_position(t, loops, x), loops.poses[pose, row])
        for j in range(joints):
            q[j] += loops.slopes[pose, j, a] * steps[a]
        if not cluster['linear']:
            for b in range(a + 1):
                square, curve = steps[a] * steps[b], loops.curves[pose, pair]
                pair += 1
                for j in range(joints):
                    q[j] += square * curve[j]
    for j in range(joints):
        work[first + j]['q'] = q[j]
    set_independent(cluster, loops, x, n)
    for j in range(first, first + joints):
        work[j]['near'] = work[j]['q']


@kernel
def hint_is_nearer(cluster, loops, x, n):
    """Return whether a hint is nearer to x than the tabulated pose from which `predict` began; False for NaN."""
    from_hint, from_pose = 0.0, 0.0
    for a in range(cluster['freedom']):
        i = cluster['first'] + int(loops.lattice[n, a, 3])
        t = loops.cluster_joints[i]
        from_hint += step_from(t, coordinate_position(t, loops, x), loops.hint[0, i]) ** 2
        from_pose += loops.drive[n, a] ** 2
    return from_hint <= from_pose


@kernel
def predict_from_hint(cluster, loops, x, n):
    """Predict q of a cluster at x from the hint, to first order; return whether it is close to `near`."""
    first, joints, hint, has_slopes = cluster['first'], cluster['joints'], loops.hint, True
    for j in range(first, first + joints):
        loops.work[j]['q'] = hint[0, j]
        has_slopes = has_slopes and hint[0, j] == hint[1, j]
    if has_slopes:
        for a in range(cluster['freedom']):
            i = first + int(loops.lattice[n, a, 3])
            t = loops.cluster_joints[i]
            step = step_from(t, coordinate_position(t, loops, x), hint[0, i])
            for j in range(first, first + joints):
                loops.work[j]['q'] += loops.G[j, a] * step
    set_independent(cluster, loops, x, n)
    for j in range(first, first + joints):
        if not abs(loops.work[j]['q'] - loops.work[j]['near']) < MAX_CERTAIN_JUMP:
            return False
    return True


@kernel
def provably_found(cluster, loops, pose, rank):
    """Return whether Newton's method from `near`, predicted from a tabulated pose, provably finds the q in work too.

    It converges from within 2 / (3 w) of a solution, w a Lipschitz constant of K there times the norm of the inverse of
    K.  `trust` is 1 / (4 w) at the pose over the rank test there: w grows as the rank test at q falls.
    """
    square = 0.0
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        away = loops.work[j]['q'] - loops.work[j]['near']
        square += away * away
    return math.sqrt(square) < loops.trust[pose] * rank


@kernel
def on_branch(cluster, loops, jump):
    """Return whether a closed position, its bodies placed, is in the assembly mode and within `jump` of `near`."""
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        if not abs(loops.work[j]['q'] - loops.work[j]['near']) < jump:
            return False
    for i in range(cluster['orientation_check'], cluster['orientation_check'] + cluster['orientation_checks']):
        r = loops.orientation_checks[i]
        if not dot(direction_of(loops.work, r['a'], r['u']), direction_of(loops.work, r['b'], r['w'])) > 0.0:
            return False
    return True


@entry
def walk(cluster, loops, x, n, pose):
    """Close a cluster along the straight way from a closed pose to the coordinates x; 0, SINGULAR or OPEN.

    Steps along the tangent are halved until the tangent hardly turns in one.  So they get short as a dead point comes
    near, where the joints go with the root of the distance, and do not lead to its far side, where the tangent has
    turned round.
    """
    first, joints, work = cluster['first'], cluster['joints'], loops.work
    left, part, grows = 1.0, 0.25, False
    set_pose(cluster, loops, pose)
    moved = set_tangent(cluster, loops, x, n, pose, True)
    # `C` is the last closed position and `tau` the tangent there
    for j in range(first, first + joints):
        work[j]['C'], work[j]['tau'] = work[j]['q'], work[j]['g']
    for _ in range(MAX_WALK_STEPS):
        if part < MIN_STEP_SHARE:
            break
        part = min(part, left)
        for j in range(first, first + joints):
            work[j]['q'] = work[j]['C'] + part * work[j]['tau']
        if part == left:
            set_independent(cluster, loops, x, n)
        for j in range(first, first + joints):
            work[j]['near'] = work[j]['q']
        followed = False
        if part * moved < MAX_STEP_MOTION:
            status, _ = close_positions(cluster, loops)
            followed = status == OK and on_branch(cluster, loops, 0.3 * part * moved + 1e-9)
        if followed:
            largest = set_tangent(cluster, loops, x, n, pose, False)
            along, before, after = 0.0, 0.0, 0.0
            for j in range(first, first + joints):
                along += work[j]['tau'] * work[j]['g']
                before += work[j]['tau'] * work[j]['tau']
                after += work[j]['g'] * work[j]['g']
            followed = along > MIN_STEP_COSINE * math.sqrt(before * after)
        if followed:
            if part == left:
                return 0
            left -= part
            part *= 2.0 if grows else 1.0
            grows, moved = True, largest
            for j in range(first, first + joints):
                work[j]['C'], work[j]['tau'] = work[j]['q'], work[j]['g']
        else:
            part *= 0.5
            grows = False
    return SINGULAR if left < MAX_SINGULAR_REMAINDER else OPEN


@kernel
def set_tangent(cluster, loops, x, n, pose, at_pose):
    """Set g to the derivative of q along the straight way from a tabulated pose to x; return max |g|.

    at_pose: q is that pose, else it has just been closed and G is solved in A.
    """
    first, joints, freedom = cluster['first'], cluster['joints'], cluster['freedom']
    cluster_joints, work = loops.cluster_joints, loops.work
    slope = joints - freedom + 1
    for j in range(first, first + joints):
        work[j]['g'] = 0.0
    for a in range(freedom):
        row = int(loops.lattice[n, a, 3])
        t = cluster_joints[first + row]
        step = step_from(t, coordinate_position(t, loops, x), loops.poses[pose, row])
        work[first + row]['g'] = step
        for j in range(first, first + joints):
            if cluster_joints[j]['independent'] < 0:
                work[j]['g'] += step * (loops.slopes[pose, j - first, a] if at_pose
                                        else loops.A[cluster_joints[j]['pivot'], slope + a])
    largest = 0.0
    for j in range(first, first + joints):
        largest = max(largest, abs(work[j]['g']))
    return largest


@kernel
def keeps_direction(cluster, loops, x, n, pose):
    """Return whether a cluster that is closed at x moves in about the direction in which it left a tabulated pose.

    On the far side of a dead point, which Newton's method may reach from a prediction, it moves back.
    """
    set_tangent(cluster, loops, x, n, pose, False)
    along, before, after = 0.0, 0.0, 0.0
    for j in range(cluster['joints']):
        slope = 0.0
        for a in range(cluster['freedom']):
            row = int(loops.lattice[n, a, 3])
            t = loops.cluster_joints[cluster['first'] + row]
            slope += loops.slopes[pose, j, a] * step_from(
                t, coordinate_position(t, loops, x), loops.poses[pose, row])
        u = loops.work[cluster['first'] + j]
        along += slope * u['g']
        before += slope * slope
        after += u['g'] * u['g']
    return along >= MIN_WAY_COSINE * math.sqrt(before * after)


@kernel
def close_cluster(cluster, loops, x, n):
    """Set q of a cluster at the coordinates x, on the branch of the table of closed poses, and cos and sin of it.

    Where it iterates it leaves G solved in A.  Returns 0, SINGULAR, OPEN or BRANCH.
    """
    if is_beyond(cluster, loops, x, n):
        return BRANCH
    cell, status = cell_of(cluster, loops, x, n), OPEN
    if cell < 0:
        return OPEN
    for candidate in range(2):
        pose = loops.cells[cell, candidate]
        if pose < 0:
            return BRANCH if pose == BEYOND_BRANCH_POINT else status
        if cluster['dyads'] > 0:
            # the pose gives the number of turns of each joint: next to a singular pose a prediction is far off
            set_pose(cluster, loops, pose)
            set_independent(cluster, loops, x, n)
            return 0 if close_dyads(cluster, loops) else OPEN
        predict(cluster, loops, x, n, pose)
        if cluster['linear']:
            turn_joints(cluster, loops.cluster_joints, loops.work)
            return 0
        for hinted in (True, False):
            if hinted and not (loops.hinted[0] and candidate == 0 and loops.trust[pose] > 0.0
                               and hint_is_nearer(cluster, loops, x, n) and predict_from_hint(cluster, loops, x, n)):
                continue
            if not hinted:
                for j in range(cluster['first'], cluster['first'] + cluster['joints']):
                    loops.work[j]['q'] = loops.work[j]['near']
            status, rank = close_positions(cluster, loops)
            # use a hint only where the prediction leads to the same position
            if status == 0 and keeps_direction(cluster, loops, x, n, pose) and (
                    not hinted and on_branch(cluster, loops, MAX_JUMP)
                    or provably_found(cluster, loops, pose, rank) and on_branch(cluster, loops, MAX_CERTAIN_JUMP)):
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
def differentiate(cluster, loops, xd):
    """Set G, g and qd of a cluster that `close_cluster` has closed; keep its q as a hint; return a code."""
    if cluster['dyads'] > 0 or cluster['linear']:
        status = solve_slopes(cluster, loops)
        if status != OK:
            return status
    first, joints, freedom = cluster['first'], cluster['joints'], cluster['freedom']
    cluster_joints, work, A, G = loops.cluster_joints, loops.work, loops.A, loops.G
    slope = joints - freedom + 1
    for j in range(first, first + joints):
        t, u = cluster_joints[j], work[j]
        u['qd'], u['g'] = 0.0, 0.0
        for a in range(freedom):
            if t['independent'] >= 0:
                G[j, a] = 1.0 if a == t['independent'] else 0.0
            elif cluster['linear']:
                G[j, a] = loops.slopes[cluster['pose'], j - first, a]
            else:
                G[j, a] = A[t['pivot'], slope + a]
    for i in range(first, first + joints):
        if cluster_joints[i]['independent'] >= 0:
            rate = xd[cluster_joints[i]['coordinate']]
            for j in range(first, first + joints):
                work[j]['qd'] += G[j, cluster_joints[i]['independent']] * rate
    if cluster['planar']:
        bias_planar(cluster, cluster_joints, work)
    else:
        bias_motion(cluster, cluster_joints, work)
    if not cluster['linear']:
        accelerations_at_rest(cluster, loops)
    if loops.hinted[0]:
        for j in range(first, first + joints):
            loops.hint[0, j], loops.hint[1, j] = work[j]['q'], work[j]['q']
    return OK


@kernel
def accelerations_at_rest(cluster, loops):
    """Set g, the accelerations of the joints at ydd = 0, of a cluster whose system is decomposed in A."""
    A, dependent = loops.A, cluster['joints'] - cluster['freedom']
    if cluster['planar']:
        rows = rows_in_plane(cluster)
        for i in range(2 * cluster['pins'], rows):
            A[i, dependent] = 0.0
        for i in range(cluster['pins']):
            x, y = bias_of_pin(loops.pins[cluster['pin'] + i], loops.work)
            A[2 * i, dependent], A[2 * i + 1, dependent] = -x, -y
        solve(cluster, loops, rows, dependent, dependent + 1)
    else:
        bias_of_rows(cluster, loops.rows, loops.work, A, dependent)
        reflect_sparse(A, cluster['rows'], loops.columns, loops.column_rows, cluster['column'], dependent, dependent)
        solve(cluster, loops, cluster['rows'], dependent, dependent + 1)
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        if loops.cluster_joints[j]['independent'] < 0:
            loops.work[j]['g'] = A[loops.cluster_joints[j]['pivot'], dependent]


@entry
def close_machine(tree, loops, x, xd):
    """Close every cluster at x (nx,), xd (dof,); return a status: OPEN, SINGULAR or BRANCH with the cluster.

    tree, loops: the buffers of a machine.
    """
    if loops is None:
        return OK
    m = bind_loops(tree, loops)
    for k in range(m.clusters.shape[0]):
        status = close_cluster(m.clusters[k], m, x, k)
        if status == OK:
            status = differentiate(m.clusters[k], m, xd)
        if status != OK:
            return failure(status, k)
    return OK


@kernel
def set_hint(tree, loops, rows, positions):
    """Let the clusters start from `positions`, of which joint j has row rows[j]; -1: its cluster has no hint."""
    hint = bind_loops(tree, loops).hint
    for j in range(rows.shape[0]):
        hint[0, j] = positions[rows[j]] if rows[j] >= 0 else math.nan


@entry
def close_from(tree, loops, k, xd):
    """Close cluster k from the q in work, the independent ones held; set G and, for the rates xd, g; return a code."""
    loops = bind_loops(tree, loops)
    cluster = loops.clusters[k]
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        loops.work[j]['near'] = loops.work[j]['q']
    status, _ = close_positions(cluster, loops)
    if status == 0 and not on_branch(cluster, loops, math.inf):
        status = OPEN
    return differentiate(cluster, loops, xd) if status == 0 else status


@entry
def linearise_at(tree, loops, k):
    """Write K of cluster k at the q in work, in space, and -phi into A; see `linearise`."""
    loops = bind_loops(tree, loops)
    turn_joints(loops.clusters[k], loops.cluster_joints, loops.work)
    place_joints(loops.clusters[k], loops.cluster_joints, loops.work)
    return linearise(loops.clusters[k], loops.cluster_joints, loops.rows, loops.work, loops.A)
