"""The table of closed poses from which kernels close a cluster: walked from the initial position, on its branch."""
import heapq
import itertools
import math
from typing import NamedTuple

import numpy as np

from ..kernels.runtime.compiler import compiled
from .dyads import find_dyads

POSES = 350 if compiled else 60     # of a cluster, about
MOST_CELLS = 129                    # along one independent joint
MOST_MOVED = 0.3                    # in one step of the continuation [m, rad]
MOST_BENT = 0.1                     # second-order term at the end of a cell of a pose that serves it first [m, rad]
SMALLEST = 1e-2                     # step, of a cell, before the loop counts as not to be followed


class PoseTable(NamedTuple):
    """Closed poses of a cluster on a lattice of its independent joints."""

    q: np.ndarray           # (poses, joints), that of the initial position first
    G: np.ndarray           # (poses, joints, freedom)
    curves: np.ndarray      # (poses, pairs a >= b of the freedom, joints) q by y_a y_b, to second order
    lattice: np.ndarray     # (freedom, 4) first cell from the initial position, size, cells, joint
    cells: np.ndarray       # (cells, 2) pose next to each cell, and one to try when that does not serve, -1: none
    linear: bool            # G is the same everywhere
    dyads: list             # DYAD records that close it in closed form


def pose_table(tangle, n, start):
    """Return the `PoseTable` of cluster n by continuation from `start`; marks joints that turn without limits."""
    cluster, tied = tangle.machine.clusters[n], tangle.tied[tangle.slice(n)]
    freedom = int(tangle.clusters[n]['freedom'])
    columns = [int(np.flatnonzero(tied['independent'] == a)[0]) for a in range(freedom)]
    cells = min(max(3, round(POSES ** (1 / freedom)) // 2 * 2 + 1), MOST_CELLS) if freedom < 6 else 1
    ranges = [_range(cluster.entries[cluster.joints[i]][0], tied[i:i + 1], start[i]) for i in columns]
    sizes = [max((high - low) / cells, 1e-9) for low, high in ranges]
    _, q, G, _ = tangle.close(n, start)
    # Where several ways lead to a pose, around a singular one, the straight one from the start counts.
    found, straight_on, count = {}, [], itertools.count()
    todo = [(0, next(count), (0,) * freedom, q, G)]
    while todo and len(found) < 2 * POSES:
        detours, _, node, q, G = heapq.heappop(todo)
        if node in found:
            continue
        found[node] = q, G
        straight_on.append(detours == 0)
        for axis, sign in itertools.product(range(freedom), (1, -1)):
            near = tuple(value + sign * (a == axis) for a, value in enumerate(node))
            low, high = ranges[axis]
            # half a cell beyond the range, so that its ends have poses on both sides
            if near in found or not low - sizes[axis] <= near[axis] * sizes[axis] <= high + sizes[axis]:
                continue
            closed = _walk(tangle, n, q, G, axis, sign * sizes[axis])
            if closed is not None:
                straight = axis == int(np.argmax(np.abs(near))) and near[axis] * sign > 0
                heapq.heappush(todo, (detours + (not straight), next(count), near, *closed))
    q, G = (np.array(each) for each in zip(*found.values()))
    linear = len(q) > 2 and bool(abs(G - G[0]).max() < 1e-9)
    if linear:
        q, G, found, straight_on = q[:1], G[:1], {(0,) * freedom: None}, [True]
    curves = np.zeros((len(q), freedom * (freedom + 1) // 2, q.shape[1]))
    if compiled and not linear:
        curves = np.array([_curves(tangle, n, pose, freedom) for pose in q])
    pairs = [sizes[a] * sizes[b] / 4 for a in range(freedom) for b in range(a + 1)]
    bent = np.einsum('p,npj->nj', pairs, abs(curves)).max(axis=1)
    lattice, cells = _lattice(np.array(list(found)), np.array(straight_on) & (bent < MOST_BENT), sizes, columns)
    return PoseTable(q, G, curves, lattice, cells, linear, [] if linear else find_dyads(tangle, n, start))


def _range(joint, tied, start):
    """Return how far an independent joint goes below and above its start."""
    width = joint.upper - joint.lower
    tied['turns'] = joint.type != 'prismatic' and width > 2.0 * math.pi - 1e-9
    if tied['turns'][0]:
        return -math.pi, math.pi
    return (joint.lower - start, joint.upper - start) if math.isfinite(width) else (-1.0, 1.0)


def _walk(tangle, n, q, G, axis, step):
    """Close one cell further along the tangent, in steps as small as it takes; None where the loop does not follow."""
    part = 0.5 * step
    left = step
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
            q, G, left, part = closed, slopes, left - part, 2.0 * part
        elif abs(part) < SMALLEST * abs(step):
            return None
        else:
            part *= 0.5
    return q, G


def _curves(tangle, n, q, freedom):
    """Return the coefficients of y_a y_b, b <= a, in q to second order (pairs, joints): g is twice their form in yd."""
    unit = np.eye(freedom)
    square = [tangle.close(n, q, rate)[3] for rate in unit]
    curves = []
    for a in range(freedom):
        for b in range(a):
            curves.append(0.5 * (tangle.close(n, q, unit[a] + unit[b])[3] - square[a] - square[b]))
        curves.append(0.5 * square[a])
    return curves


def _lattice(nodes, straight, sizes, columns):
    """Return (lattice, cells (cells, 2)) that find the pose next to given independent joints; gaps take the nearest.

    A pose that only a detour reached, or that is next to a singular one, comes second, after a straight one in a
    neighbouring cell.
    """
    low, high = nodes.min(axis=0), nodes.max(axis=0)
    shape = high - low + 1
    own = np.full(shape, -1)
    own[tuple((nodes - low).T)] = np.arange(len(nodes))
    cells = np.empty((own.size, 2), dtype=np.int64)
    for row, cell in enumerate(np.ndindex(*shape)):
        pose = own[cell]
        if pose >= 0 and straight[pose]:
            cells[row] = pose, -1
            continue
        away = abs(nodes - low - cell)
        near = np.where(straight & (away.max(axis=1) <= 1), away.sum(axis=1), np.inf)
        first = int(near.argmin()) if np.isfinite(near.min()) else -1
        second = pose if pose >= 0 else int(away.sum(axis=1).argmin())
        cells[row] = (second, -1) if first < 0 or first == second else (first, second)
    return np.column_stack((low * sizes, sizes, shape, columns)), cells
