"""Parallelograms in clusters: rings of four bodies and four pins whose opposite sides stay equal and parallel.

The pins alone lose rank where all sides are in line, and may leave from there as an antiparallelogram.  That opposite
sides stay parallel is linear in the joints, and added to the pins it keeps the rank, and all derivatives, there too.
"""
import itertools
from typing import NamedTuple

import numpy as np

from ..kernels.loops.records import DIRECTION, PIN, ROW
from ..model.mechanism.cluster import plane_across

PARALLEL_TOLERANCE = 1e-4   # difference of opposite sides over their length: numbers of a URDF are often rounded
MIN_CORNER_SINE = 1e-3      # sine between neighbouring sides: below it an antiparallelogram looks the same


class Edge(NamedTuple):
    """A pin between the bodies that joints a and b move, -1: the base body."""

    a: int
    b: int
    point: np.ndarray           # in the base body
    axis: np.ndarray | None     # None of a closure that leaves more turns free
    name: str


def parallel_sides(builder, n, q):
    """Return ([ROW], [PIN], names) of the sides that stay parallel in cluster n, for its closed position q (joints,).

    PIN records are those of a planar cluster, none where it moves in space; names: the pins of each parallelogram.
    """
    builder.jacobian(n, q)       # places the bodies
    work, gradients, rows, pins, names = builder.loops.work, [], [], [], []
    rotations = {-1: np.eye(3), **{j: work['rotation'][j].reshape(3, 3).copy() for j in range(len(work))}}
    for ring in _rings(_edges(builder, n, rotations)):
        sides = _sides(ring)
        if sides is None:
            continue
        normal, bodies, directions = sides
        before = len(rows)
        for i in range(2):
            (a, b), (u, w) = (bodies[i], bodies[i + 2]), (directions[i], directions[i + 2])
            gradients.append(_gradient(builder, n, rotations, a, b, normal))
            if np.linalg.matrix_rank(gradients, tol=PARALLEL_TOLERANCE) < len(gradients):
                gradients.pop()
                continue
            row = np.zeros((), ROW)
            row['kind'], row['a'], row['b'] = DIRECTION, a, b
            row['u'], row['w'] = rotations[a].T @ u, rotations[b].T @ np.cross(normal, w)
            rows.append(row)
            if builder.clusters[n]['planar']:
                pin, plane = np.zeros((), PIN), plane_across(builder.clusters[n]['normal'])
                pin['a'], pin['b'] = a, b
                pin['pa'], pin['pb'] = (_turned(plane @ side, -_angle(builder, n, q, body))
                                        for side, body in ((u, a), (w, b)))
                pins.append(pin)
        if len(rows) > before:
            names.append(', '.join(edge.name for edge in ring))
    return rows, pins, names


def _edges(builder, n, rotations):
    cluster, part, work = builder.machine.clusters[n], builder.slice(n), builder.loops.work
    edges = [Edge(int(builder.cluster_joints[j]['parent']), j, work['place'][j].copy(), rotations[j][:, 2], name)
             for j, name in zip(range(part.start, part.stop), cluster.joints)
             if not builder.cluster_joints[j]['slides']]
    for closure in cluster.closures:
        if closure.type in ('revolute', 'spherical', 'universal'):
            a, b = cluster.ends(closure, part.start)
            origin = work['place'][a.row] if a.row >= 0 else np.zeros(3)
            axis = rotations[a.row] @ a.axis if closure.type == 'revolute' else None
            edges.append(Edge(a.row, b.row, origin + rotations[a.row] @ a.frame.position, axis, closure.name))
    return edges


def _rings(edges):
    """Yield four edges each that join four bodies in a ring, every ring once."""
    beside = {}
    for edge in edges:
        beside.setdefault(edge.a, []).append((edge.b, edge))
        beside.setdefault(edge.b, []).append((edge.a, edge))
    for first in sorted(beside):
        ways = {}       # {opposite body: [(body between, edges there)]}
        for middle, one in beside[first]:
            for last, other in beside[middle]:
                if first < middle and first < last != middle:
                    ways.setdefault(last, []).append((middle, one, other))
        for paths in ways.values():
            for (x, *there), (y, *back) in itertools.combinations(paths, 2):
                if x != y:
                    yield *there, *back[::-1]


def _sides(ring):
    """Return (normal, bodies, directions) of a parallelogram, opposite ones two apart; None where it is none."""
    axes = [edge.axis for edge in ring if edge.axis is not None]
    if len(axes) < 3 or any(np.linalg.norm(np.cross(axes[0], axis)) > PARALLEL_TOLERANCE for axis in axes[1:]):
        return None
    normal = axes[0]
    points = [edge.point - (edge.point @ normal) * normal for edge in ring]
    sides = [points[i] - points[i - 1] for i in range(4)]       # between edges i - 1 and i, on the body that has both
    lengths = [np.linalg.norm(side) for side in sides]
    shortest = min(lengths)
    if not shortest > 0.0 or np.linalg.norm(sides[0] + sides[2]) > PARALLEL_TOLERANCE * shortest \
            or abs(np.cross(sides[0], sides[1]) @ normal) < MIN_CORNER_SINE * lengths[0] * lengths[1]:
        return None
    bodies = [next(iter({ring[i - 1].a, ring[i - 1].b} & {ring[i].a, ring[i].b})) for i in range(4)]
    return normal, bodies, [sign * side / length for sign, side, length in zip((1, 1, -1, -1), sides, lengths)]


def _path(builder, j):
    while j >= 0:
        yield j
        j = int(builder.cluster_joints[j]['parent'])


def _gradient(builder, n, rotations, a, b, normal):
    """Return the turn (joints,) of body b against body a about the normal, for unit rate of each joint."""
    part = builder.slice(n)
    turns = np.zeros(part.stop - part.start)
    for sign, end in ((1.0, b), (-1.0, a)):
        for j in _path(builder, end):
            if not builder.cluster_joints[j]['slides']:
                turns[j - part.start] += sign * (rotations[j][:, 2] @ normal)
    return turns


def _angle(builder, n, q, body):
    first = builder.slice(n).start
    return sum(builder.cluster_joints[j]['sign'] * q[j - first] for j in _path(builder, body))


def _turned(v, angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array((c * v[0] - s * v[1], s * v[0] + c * v[1]))
