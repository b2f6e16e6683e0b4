"""The table of closed poses from which kernels close a cluster: walked from the initial position, on its branch."""
import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np

from ..kernels.loops.records import BEYOND
from ..kernels.runtime.compiler import compiled
from .dyads import find_dyads

POSES = 350 if compiled else 60     # of a cluster, about
MOST_CELLS = 129                    # along one independent joint
MOST_MOVED = 0.3                    # in one step of the continuation [m, rad]
SMALLEST = 1e-2                     # step, of a cell, before the loop counts as not to be followed
NARROW = 1e-8                       # the same, next to a branch point
CONSTANT = 1e-9                     # change of G up to which it counts as the same


class PoseTable(NamedTuple):
    """Closed poses of a cluster on a lattice of its independent joints."""

    q: np.ndarray           # (poses, joints), that of the initial position first
    G: np.ndarray           # (poses, joints, freedom)
    curves: np.ndarray      # (poses, joints, freedom, freedom) second derivatives, halved
    lattice: np.ndarray     # (freedom, 6), see `Loops`
    cells: np.ndarray       # (cells, 2) pose next to each cell, and one to try when that does not serve; -1: none
    linear: bool            # G is the same everywhere
    dyads: list             # DYAD records that close it in closed form


class BranchPoint(NamedTuple):
    """Where the way along one independent joint comes to a pose at which the loop may go on in two ways."""

    node: tuple             # of the lattice, from which the way led there
    axis: int
    sign: int
    offset: float           # of the joint from the initial position [m, rad]


def pose_table(tangle, n, start):
    """Return the `PoseTable` of cluster n by continuation from `start`; marks joints that turn without limits.

    The table ends at branch points; those within limits become warnings of the tangle.
    """
    cluster, tied = tangle.machine.clusters[n], tangle.tied[tangle.slice(n)]
    freedom = int(tangle.clusters[n]['freedom'])
    columns = [int(np.flatnonzero(tied['independent'] == a)[0]) for a in range(freedom)]
    cells = min(max(3, round(POSES ** (1 / freedom)) // 2 * 2 + 1), MOST_CELLS) if freedom < 6 else 1
    ranges = [_range(cluster.entries[cluster.joints[i]][0], tied[i:i + 1], start[i]) for i in columns]
    sizes = [max((high - low) / cells, 1e-9) for low, high in ranges]
    found, straight_on, branch_points = _continue(tangle, n, start, ranges, sizes, True)
    q, G = (np.array(each) for each in zip(*found.values()))
    linear = len(q) > 2 and bool(abs(G - G[0]).max() < CONSTANT)
    if not linear and any(np.isnan(point.offset) for point in branch_points):
        found, straight_on, branch_points = _continue(tangle, n, start, ranges, sizes, False)
        q, G = (np.array(each) for each in zip(*found.values()))
    branch_points = [point for point in branch_points if not np.isnan(point.offset)]
    nodes = np.array(list(found))
    if linear:
        q, G, nodes, straight_on = q[:1], G[:1], nodes[:1], [True]
    lattice, cells = _lattice(nodes, np.array(straight_on), sizes, columns, branch_points)
    tangle.warnings += _warnings(cluster, columns, start, ranges, branch_points)
    curves = np.zeros((*G.shape, freedom))
    if compiled and not linear:
        curves = np.array([_curves(tangle, n, pose, freedom) for pose in q])
    return PoseTable(q, G, curves, lattice, cells, linear, [] if linear else find_dyads(tangle, n, start))


def _continue(tangle, n, start, ranges, sizes, through):
    """Return ({node: (q, G)}, whether each is straight on from the start, [BranchPoint]).

    through: pass branch points at which G stays the same, as BranchPoints without an offset.
    """
    _, q, G, _ = tangle.close(n, start)
    # Where several ways lead to a pose, around a singular one, the straight one from the start counts.
    found, straight_on, branch_points, count = {}, [], [], itertools.count()
    todo = [(0, next(count), (0,) * len(sizes), q, G)]
    while todo and len(found) < 2 * POSES:
        detours, _, node, q, G = heapq.heappop(todo)
        if node in found:
            continue
        found[node] = q, G
        straight_on.append(detours == 0)
        for axis, sign in itertools.product(range(len(sizes)), (1, -1)):
            near = tuple(value + sign * (a == axis) for a, value in enumerate(node))
            low, high = ranges[axis]
            # half a cell beyond the range, so that its ends have poses on both sides
            if near in found or not low - sizes[axis] <= near[axis] * sizes[axis] <= high + sizes[axis]:
                continue
            closed, passed = _walk(tangle, n, q, G, axis, sign * sizes[axis], through)
            if passed is not None:
                offset = node[axis] * sizes[axis] + passed
                branch_points.append(BranchPoint(node, axis, sign, offset))
            if closed is not None:
                straight = axis == int(np.argmax(np.abs(near))) and near[axis] * sign > 0
                heapq.heappush(todo, (detours + (not straight), next(count), near, *closed))
    return found, straight_on, branch_points


def _range(joint, tied, start):
    """Return how far an independent joint goes below and above its start."""
    width = joint.upper - joint.lower
    tied['turns'] = joint.type != 'prismatic' and width > 2.0 * math.pi - 1e-9
    if tied['turns'][0]:
        return -math.pi, math.pi
    return (joint.lower - start, joint.upper - start) if math.isfinite(width) else (-1.0, 1.0)


def _walk(tangle, n, q, G, axis, step, through):
    """Close one cell further along the tangent, in steps as small as it takes.

    Returns ((q, G), None); (None, None) where the loop does not follow; (None, how far it is to the branch point) where
    it follows in two ways; ((q, G), NaN) where `through` lets it pass such a point.
    """
    part, left, passed, beyond = 0.5 * step, step, None, math.inf
    K = tangle.dependent_columns(n, q)
    while left != 0.0:
        part = min(part, left, key=abs)
        predicted = q + part * G[:, axis]
        moved = abs(predicted - q).max()
        followed = False
        if moved < MOST_MOVED:
            status, closed, slopes, _ = tangle.close(n, predicted)
            # another assembly mode is far from the tangent
            followed = status == 0 and abs(closed - predicted).max() < 0.3 * moved + 1e-9
        if followed:
            K_there = tangle.dependent_columns(n, closed)
            if _loses_rank_between(K, K_there):
                if through and abs(slopes - G).max() < CONSTANT:
                    passed = math.nan
                else:
                    # how far it is at most to the branch point
                    followed, beyond = False, abs(part)
        if followed:
            q, G, K, left, part, beyond = closed, slopes, K_there, left - part, 2.0 * part, beyond - abs(part)
        elif abs(part) < (NARROW if beyond < SMALLEST * abs(step) else SMALLEST) * abs(step):
            return None, step - left if beyond < SMALLEST * abs(step) else None
        else:
            part *= 0.5
    return (q, G), passed


def _loses_rank_between(K, K_there):
    """Return whether a singular value of K goes through zero on the short way from one pose to another.

    Its direction then comes back with the other sign, which the rest of K hardly does in a short step.
    """
    values = np.linalg.eigvals(np.linalg.lstsq(K, K_there, rcond=None)[0])
    return bool(((values.real < 0.0) & (abs(values.imag) < 1e-6 * abs(values.real))).any())


def _curves(tangle, n, q, freedom):
    """Return half the second derivatives (joints, freedom, freedom) of q by y: g is their quadratic form in yd."""
    unit = np.eye(freedom)
    square = [tangle.close(n, q, rate)[3] for rate in unit]
    curves = np.empty((len(q), freedom, freedom))
    for a in range(freedom):
        curves[:, a, a] = 0.5 * square[a]
        for b in range(a):
            both = tangle.close(n, q, unit[a] + unit[b])[3]
            curves[:, a, b] = curves[:, b, a] = 0.25 * (both - square[a] - square[b])
    return curves


def _lattice(nodes, straight, sizes, columns, branch_points):
    """Return (lattice, cells (cells, 2)) that find the pose next to given independent joints; gaps take the nearest.

    A pose that only a detour reached comes second, after a straight one in a neighbouring cell.  Where the branch
    points of a joint are at one position that bounds it; else the cells about them, and those beyond, are closed.
    """
    low, high = nodes.min(axis=0), nodes.max(axis=0)
    shape = high - low + 1
    bounds = np.tile((-np.inf, np.inf), (len(sizes), 1))
    slanted = []
    for axis, sign in sorted({(point.axis, point.sign) for point in branch_points}):
        points = [point for point in branch_points if (point.axis, point.sign) == (axis, sign)]
        offsets = [point.offset for point in points]
        if np.ptp(offsets) < NARROW * sizes[axis]:
            bounds[axis, 1 if sign > 0 else 0] = min(offsets, key=abs)
        else:
            slanted += points
    about = [np.array(point.node) + shift * point.sign * (np.arange(len(sizes)) == point.axis)
             for point in slanted for shift in (0, 1)]
    own = np.full(shape, -1)
    own[tuple((nodes - low).T)] = np.arange(len(nodes))
    cells = np.empty((own.size, 2), dtype=np.int64)
    for row, cell in enumerate(np.ndindex(*shape)):
        pose = own[cell]
        node = low + cell
        if slanted and node.any() and (pose < 0 or not straight[pose] or any((node == other).all() for other in about)):
            cells[row] = BEYOND
            continue
        if pose >= 0 and straight[pose]:
            cells[row] = pose, -1
            continue
        away = abs(nodes - node)
        near = np.where(straight & (away.max(axis=1) <= 1), away.sum(axis=1), np.inf)
        first = int(near.argmin()) if np.isfinite(near.min()) else -1
        second = pose if pose >= 0 else int(away.sum(axis=1).argmin())
        cells[row] = (second, -1) if first < 0 or first == second else (first, second)
    return np.column_stack((low * sizes, sizes, shape, columns, bounds)), cells


def _warnings(cluster, columns, start, ranges, branch_points):
    """Return a warning for each joint and sense with branch points within its limits: of the nearest to the start."""
    warnings = []
    for axis, sign in sorted({(point.axis, point.sign) for point in branch_points}):
        low, high = ranges[axis]
        offsets = [point.offset for point in branch_points
                   if (point.axis, point.sign) == (axis, sign) and low <= point.offset <= high]
        if offsets:
            offset, name = min(offsets, key=abs), cluster.joints[columns[axis]]
            warnings.append(
                f"loop '{cluster.name}': at {name} = {start[columns[axis]] + offset:.6g}, {abs(offset):.3g} from the "
                'initial position, two branches of its closure meet; positions from there on are refused')
    return warnings
