"""The table of closed poses from which kernels close a cluster: walked from the initial position, on its branch."""
import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np

from ..kernels.loops.records import BEYOND_BRANCH_POINT
from ..kernels.runtime.compiler import compiled
from .dyads import find_dyads

POSE_COUNT = 350 if compiled else 60    # of a cluster, about
MAX_CELLS = 129                         # along one independent joint
MAX_STEP_MOTION = 0.3                   # of a joint in one step of the continuation [m, rad]
MAX_SECOND_ORDER_TERM = 0.1             # at the end of the cell of a pose that is tried first [m, rad]
MIN_STEP = 1e-2                         # share of a cell; the loop cannot be followed in smaller steps
MIN_STEP_AT_BRANCH_POINT = 1e-8         # the same next to a branch point
MAX_STEPS = 1000                        # on the way to a node; a loop that needs more cannot be followed
CONSTANT_SLOPE_TOLERANCE = 1e-9         # change of G up to which G counts as constant


class PoseTable(NamedTuple):
    """Closed poses of a cluster on a lattice of its independent joints."""

    q: np.ndarray           # (poses, joints), that of the initial position first
    G: np.ndarray           # (poses, joints, freedom)
    curves: np.ndarray      # (poses, pairs a >= b of the freedom, joints) q by y_a y_b, to second order
    lattice: np.ndarray     # (freedom, 6), see `Loops`
    cells: np.ndarray       # (cells, 2) pose to start from in each cell, and one to try after it; -1: none, BEYOND
    linear: bool            # G is the same everywhere
    dyads: list             # DYAD records that close it in closed form


def pose_table(builder, n, start):
    """As `pose_table_in_steps`, all of it at once."""
    steps = pose_table_in_steps(builder, n, start)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def pose_table_in_steps(builder, n, start):
    """Return the `PoseTable` of cluster n by continuation from `start`; marks joints that turn without limits.

    A generator that pauses after each step of the continuation, of 0.1 to 0.3 ms: a table may take a second.

    Poses are followed on straight ways from the start, others around what ends these.  The table ends at branch points,
    where a loop may go on in two ways; those within limits become warnings of the builder.
    """
    cluster, cluster_joints = builder.machine.clusters[n], builder.cluster_joints[builder.slice(n)]
    freedom = int(builder.clusters[n]['freedom'])
    columns = [int(np.flatnonzero(cluster_joints['independent'] == a)[0]) for a in range(freedom)]
    cells = min(max(3, round(POSE_COUNT ** (1 / freedom)) // 2 * 2 + 1), MAX_CELLS) if freedom < 6 else 1
    ranges = [_range(cluster.entries[cluster.joints[i]][0], cluster_joints[i:i + 1], start[i], bool(cluster.mimics))
              for i in columns]
    sizes = [max((high - low) / cells, 1e-9) for low, high in ranges]
    found, straight_on, branch_points = yield from _continue(builder, n, start, ranges, np.array(sizes), True)
    q, G = (np.array(each) for each in zip(*found.values()))
    linear = len(q) > 2 and bool(abs(G - G[0]).max() < CONSTANT_SLOPE_TOLERANCE)
    if not linear and np.isnan(branch_points).any():
        found, straight_on, branch_points = yield from _continue(builder, n, start, ranges, np.array(sizes), False)
        q, G = (np.array(each) for each in zip(*found.values()))
    branch_points = [point for point in branch_points if np.isfinite(point).all()]
    nodes = np.array(list(found))
    dyads = [] if linear else find_dyads(builder, n, start)
    clear = None
    if linear:
        q, G, nodes, straight_on = q[:1], G[:1], nodes[:1], [True]
    elif freedom > 1 and not dyads:
        clear = yield from _clear(builder, n, found, straight_on, ranges, np.array(sizes))
    curves = np.zeros((len(q), freedom * (freedom + 1) // 2, q.shape[1]))
    if compiled and not linear:
        for row, pose in enumerate(q):
            yield
            curves[row] = _curves(builder, n, pose, freedom)
    yield
    pairs = [sizes[a] * sizes[b] / 4 for a in range(freedom) for b in range(a + 1)]
    smooth = np.einsum('p,npj->nj', pairs, abs(curves)).max(axis=1) < MAX_SECOND_ORDER_TERM
    lattice, cells = yield from _lattice(nodes, np.array(straight_on), clear, smooth, sizes, columns, branch_points)
    builder.warnings += _warnings(cluster, columns, start, ranges, branch_points)
    return PoseTable(q, G, curves, lattice, cells, linear, dyads)


def _continue(builder, n, start, ranges, sizes, through):
    """Return ({node: (q, G)}, whether each is straight on from the start, branch points as offsets from the start).

    through: pass branch points at which G stays the same; the offset is then NaN.
    """
    _, q, G, _ = builder.close(n, start)
    origin = (0,) * len(sizes)
    found, branch_points, count = {origin: (q, G)}, [], itertools.count()

    def follow(node, there):
        way = (np.array(there) - node) * sizes
        closed, passed = yield from _walk(builder, n, *found[node], way, through)
        if passed is not None:
            branch_points.append(np.array(node) * sizes + passed * way)
        return closed

    for node in itertools.islice(_nodes(ranges, sizes), 2 * POSE_COUNT):
        parts = math.gcd(*node)
        # the node before on the same way
        before = tuple(value // parts * (parts - 1) for value in node)
        closed = (yield from follow(before, node)) if before in found else None
        if closed is not None:
            found[node] = closed
    straight = len(found)
    todo = [(1, next(count), node) for node in found]
    while todo and len(found) < 2 * POSE_COUNT and len(sizes) > 1:
        detours, _, node = heapq.heappop(todo)
        for near in _neighbours(node, ranges, sizes):
            closed = (yield from follow(node, near)) if near not in found else None
            if closed is not None:
                found[near] = closed
                heapq.heappush(todo, (detours + 1, next(count), near))
    return found, [True] * straight + [False] * (len(found) - straight), branch_points


def _nodes(ranges, sizes):
    """Yield the nodes of the lattice but the start, those nearest to it first."""
    if len(sizes) >= 6:
        yield from _neighbours((0,) * len(sizes), ranges, sizes)
        return
    # half a cell beyond the range, so that its ends have poses on both sides
    spans = [range(math.ceil(low / size - 1.0), math.floor(high / size + 1.0) + 1)
             for (low, high), size in zip(ranges, sizes)]
    yield from sorted(filter(any, itertools.product(*spans)), key=lambda node: sum(value * value for value in node))


def _neighbours(node, ranges, sizes):
    for axis, sign in itertools.product(range(len(sizes)), (1, -1)):
        near = tuple(value + sign * (a == axis) for a, value in enumerate(node))
        low, high = ranges[axis]
        if low - sizes[axis] <= near[axis] * sizes[axis] <= high + sizes[axis]:
            yield near


def _clear(builder, n, found, straight, ranges, sizes):
    """Return whether each node is next to such only as the loop comes to on the straight way from it, too.

    Elsewhere ways from the start pass a dead point on different sides, and the next pose may be on another branch.
    """
    straight, same = dict(zip(found, straight)), {}

    def agree(node, near):
        if not (straight[node] and straight.get(near)):
            return False
        if (near, node) not in same:
            closed, _ = yield from _walk(builder, n, *found[node], (np.array(near) - node) * sizes, True)
            same[node, near] = closed is not None and bool(abs(closed[0] - found[near][0]).max() < 1e-6)
        return same.get((near, node), same.get((node, near)))

    clear = []
    for node in found:
        clear.append(True)
        for near in _neighbours(node, ranges, sizes):
            if not (yield from agree(node, near)):
                clear[-1] = False
                break
    return clear


def _range(joint, cluster_joints, start, geared):
    """Return how far an independent joint goes below and above its start.

    geared: another joint follows it by a ratio, and need not be back where it was after a whole turn.
    """
    width = joint.upper - joint.lower
    cluster_joints['turns'] = joint.type != 'prismatic' and width > 2.0 * math.pi - 1e-9 and not geared
    if cluster_joints['turns'][0]:
        return -math.pi, math.pi
    return (joint.lower - start, joint.upper - start) if math.isfinite(width) else (-1.0, 1.0)


def _walk(builder, n, q, G, way, through):
    """Follow a loop from a closed pose by `way` (freedom,) of its independent joints, in steps as small as it takes.

    Returns ((q, G), None); (None, None) where the loop does not follow; (None, share of the way to the branch point)
    where it follows in two ways; ((q, G), NaN) where `through` lets it pass such a point.
    """
    left, part, passed, beyond = 1.0, 0.5, None, math.inf
    K = builder.dependent_columns(n, q)
    for _ in range(MAX_STEPS):
        if not left > 0.0:
            return (q, G), passed
        yield
        part = min(part, left)
        step = part * (G @ way)
        moved = abs(step).max()
        followed = False
        if moved < MAX_STEP_MOTION:
            status, closed, slopes, _ = builder.close(n, q + step)
            # another assembly mode is far from the tangent
            followed = status == 0 and abs(closed - q - step).max() < 0.3 * moved + 1e-9
        if followed:
            K_there = builder.dependent_columns(n, closed)
            if _loses_rank_between(K, K_there):
                if through and abs(slopes - G).max() < CONSTANT_SLOPE_TOLERANCE:
                    passed = math.nan
                else:
                    # how far it is at most to the branch point
                    followed, beyond = False, part
        if followed:
            beyond = beyond - part if beyond > part else math.inf
            q, G, K, left, part = closed, slopes, K_there, left - part, 2.0 * part
        elif part < (MIN_STEP_AT_BRANCH_POINT if beyond < MIN_STEP else MIN_STEP):
            break
        else:
            part *= 0.5
    return None, 1.0 - left if beyond < MIN_STEP else None


def _loses_rank_between(K, K_there):
    """Return whether a singular value of K goes through zero on the short way from one pose to another.

    Its direction then comes back with the other sign, which the rest of K hardly does in a short step.
    """
    change = np.linalg.lstsq(K, K_there - K, rcond=None)[0]
    if np.linalg.norm(change) < 1.0:
        return False
    values = 1.0 + np.linalg.eigvals(change)
    return bool(((values.real < 0.0) & (abs(values.imag) < 1e-6 * abs(values.real))).any())


def _curves(builder, n, q, freedom):
    """Return the coefficients of y_a y_b, b <= a, in q to second order (pairs, joints): g is twice their form in yd."""
    unit = np.eye(freedom)
    square = [builder.close(n, q, rate)[3] for rate in unit]
    curves = []
    for a in range(freedom):
        for b in range(a):
            curves.append(0.5 * (builder.close(n, q, unit[a] + unit[b])[3] - square[a] - square[b]))
        curves.append(0.5 * square[a])
    return curves


def _lattice(nodes, straight, clear, smooth, sizes, columns, branch_points):
    """Return (lattice, cells (cells, 2)) that find the pose to start from for given independent joints.

    It is that of the cell, and in gaps the nearest.  clear: whether each node is surrounded by its own branch; where
    it is not, the way is from the initial position.  None: that is not asked.  smooth: whether predictions from a node
    serve its cell; where they do not, a neighbour comes first.  Branch points that share the position of a joint bound
    that joint; the cells about others, and those beyond, are closed.
    """
    low, high = nodes.min(axis=0), nodes.max(axis=0)
    shape = high - low + 1
    bounds = np.tile((-np.inf, np.inf), (len(sizes), 1))
    slanted = []
    for point in branch_points:
        shared = [_is_shared([other[a] for other in branch_points], point[a], 1e-4 * sizes[a])
                  for a in range(len(sizes))]
        for a in np.flatnonzero(shared):
            side = int(point[a] > 0.0)
            bounds[a, side] = min(bounds[a, side], point[a], key=abs)
        if not any(shared):
            slanted.append(point / sizes)
    pose_at = np.full(shape, -1)
    pose_at[tuple((nodes - low).T)] = np.arange(len(nodes))
    cells = np.empty((pose_at.size, 2), dtype=np.int64)
    for row, cell in enumerate(np.ndindex(*shape)):
        yield
        pose = pose_at[cell]
        node = low + cell
        if slanted and node.any() and (pose < 0 or not straight[pose] or any(
                abs(node - point).max() < 1.0 for point in slanted)):
            cells[row] = BEYOND_BRANCH_POINT
            continue
        if pose >= 0 and straight[pose]:
            cells[row] = (pose, -1) if clear is None else (pose, 0) if clear[pose] else (0, pose)
            if clear is not None and clear[pose] and not smooth[pose]:
                away = np.where(straight & clear & smooth, abs(nodes - node).max(axis=1), np.inf)
                if away.min() <= 1:
                    cells[row] = int(away.argmin()), pose
            continue
        away = abs(nodes - node)
        near = np.where(straight & (away.max(axis=1) <= 1), away.sum(axis=1), np.inf)
        first = int(near.argmin()) if np.isfinite(near.min()) else -1
        second = pose if pose >= 0 else int(away.sum(axis=1).argmin())
        if clear is not None:
            cells[row] = 0, second
        else:
            cells[row] = (second, -1) if first < 0 or first == second else (first, second)
    return np.column_stack((low * sizes, sizes, shape, columns, bounds)), cells


def _is_shared(values, value, near):
    """Return whether the branch points on one side of the start have one position of a joint, or a few."""
    beside = np.array([other for other in values if other * value > 0.0])
    same = np.sum(abs(beside - value) < near)
    return len(beside) > 0 and (same == len(beside) or same > max(1, len(beside) / 3))


def _warnings(cluster, columns, start, ranges, branch_points):
    """Return a warning of the branch points within the limits of the independent joints: where the nearest is."""
    within = [point for point in branch_points
              if all(low <= value <= high for value, (low, high) in zip(point, ranges))]
    sides = [within]
    if len(columns) == 1:
        sides = [[point for point in within if sign * point[0] > 0.0] for sign in (-1, 1)]
    warnings = []
    for points in filter(None, sides):
        nearest = min(points, key=np.linalg.norm)
        at = ', '.join(f'{cluster.joints[i]} = {start[i] + value:.6g}' for i, value in zip(columns, nearest))
        warnings.append(f"loop '{cluster.name}': two branches of its closure meet at {at}, "
                        f'{np.linalg.norm(nearest):.3g} from the initial position; positions from there on are refused')
    return warnings
