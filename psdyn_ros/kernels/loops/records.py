"""Flat records of loops that are no cylinder triangles; `Loops` has those of a machine as one argument."""
from typing import NamedTuple

import numpy as np

from ..runtime.buffer import FLOAT, indices, matrix, records, shapes_text, stack, views
from ..runtime.compiler import kernel

INDEX = np.dtype('i8')
POSITION, DIRECTION, MIMIC = 0, 1, 2    # kind of a row
# kind of a dyad: a and b turn on either side of the pin, one after the other on one side, b slides and a turns it, or a
# alone turns a side of a parallelogram
ACROSS, ALONG, SLIDING, PARALLEL = 0, 1, 2, 3
BEYOND_BRANCH_POINT = -2        # instead of a pose: the cell lies at or beyond a branch point
CLUSTER = np.dtype([
    ('first', 'i8'), ('joints', 'i8'),          # rows of CLUSTER_JOINT
    ('row', 'i8'), ('rows', 'i8'),              # rows of ROW
    ('pose', 'i8'), ('poses', 'i8'),            # rows of the table of closed poses
    ('cell', 'i8'),                             # first cell of the lattice that finds the pose next to given y
    ('freedom', 'i8'),                          # number n_y of independent joints
    ('planar', 'i8'),                           # 1: all moves in one plane; its pins are rows of PIN
    ('pin', 'i8'), ('pins', 'i8'),
    ('parallels', 'i8'),                        # opposite sides of parallelograms: last rows of its ROW, and of its PIN
    ('linear', 'i8'),                           # 1: G is constant, as in a parallelogram
    ('dyad', 'i8'), ('dyads', 'i8'),            # rows of DYAD that close it one after another; none: by iteration
    ('column', 'i8'),                           # in space: rows of COLUMN, one for each dependent joint
    ('orientation_check', 'i8'),                # rows of `orientation_checks`: u . w is positive in its assembly mode
    ('orientation_checks', 'i8'),
    ('gap', 'f8'),                              # residual up to which it counts as closed [m, 1]
    ('normal', 'f8', 3),                        # of a planar one
    ('head', 'i8'),                             # lowest module among its joints
], align=True)

CLUSTER_JOINT = np.dtype([
    ('module', 'i8'),                           # its row among the modules
    ('parent', 'i8'),                           # joint of the cluster that carries it, -1: the base body
    ('slides', 'i8'),                           # 1: prismatic
    ('turns', 'i8'),                            # 1: an independent joint that turns without limits
    ('independent', 'i8'),                      # column of G, -1: dependent
    ('coordinate', 'i8'),                       # row of xd when independent
    ('rotation', 'f8', 9), ('position', 'f8', 3),   # joint frame, z along its axis, in that of its parent
    ('column', 'i8'),                           # of the linear systems: dependent joints, -phi, independent joints
    ('pivot', 'i8'),                            # row of the linear systems in which a dependent joint is solved
    ('sign', 'f8'),                             # planar: of the turn about the normal, 0 for a slide
    ('d', 'f8', 2), ('s', 'f8', 2),             # planar: joint in its parent body, direction of a slide
], align=True)

ROW = np.dtype([
    ('kind', 'i8'), ('a', 'i8'), ('b', 'i8'),   # joints of the cluster that carry A and B, -1: the base body
    ('pa', 'f8', 3), ('pb', 'f8', 3), ('u', 'f8', 3), ('w', 'f8', 3),
    ('meet', 'i8'),                             # last joint that carries both A and B, -1: none
    ('repeats', 'i8'),                          # 1: a position row of the same points as the row before it
    ('ratio', 'f8'), ('offset', 'f8'),          # of a joint b that follows a joint a [1, m/rad, ...; m, rad]
], align=True)

COLUMN = np.dtype([
    ('row', 'i8'), ('rows', 'i8'),              # entries of `column_rows`: rows to eliminate it from, its pivot first
    ('near', 'i8'), ('far', 'i8'),              # its elimination changes columns j + 1 ... near - 1 and those from far
], align=True)

PIN = np.dtype([
    ('a', 'i8'), ('b', 'i8'),                   # joints of a planar cluster that carry A and B, -1: the base body
    ('pa', 'f8', 2), ('pb', 'f8', 2),           # where the pin is in A and B; of parallel sides: their directions
], align=True)

DYAD = np.dtype([
    ('pin', 'i8'), ('a', 'i8'), ('b', 'i8'),    # row of PIN; the two joints that it fixes
    ('kind', 'i8'),                             # ACROSS, ALONG, SLIDING or PARALLEL, which has no joint b
    ('mode', 'f8'),                             # side on which the triangle of the two lies
], align=True)

FRICTION_PIN = np.dtype([
    ('a', 'i8'), ('b', 'i8'), ('axis', 'f8', 3),    # pin between A and B, axis fixed in A
    ('planar', 'i8'),                               # 1: axis in the base body instead
    ('damping', 'f8'), ('friction', 'f8'), ('slip', 'f8'),
], align=True)

CLUSTER_JOINT_WORK = np.dtype([
    ('near', 'f8'),                             # q before Newton's method
    ('q', 'f8'), ('qd', 'f8'), ('g', 'f8'),
    ('c', 'f8'), ('s', 'f8'),                   # cos, sin of q; 1, 0 where it slides
    ('rotation', 'f8', 9), ('place', 'f8', 3),  # of the body in the base body
    ('screw', 'f8', 6),                         # twist for unit rate, about the base origin
    ('velocity', 'f8', 6), ('bias', 'f8', 6),   # twist; acceleration at qdd = 0
    ('F', 'f8', 6), ('beta', 'f8', 6), ('C', 'f8'), ('tau', 'f8'),
    ('cos', 'f8'), ('sin', 'f8'), ('rate', 'f8'),           # planar: angle and angular velocity of the body
    ('x', 'f8'), ('y', 'f8'), ('ax', 'f8'), ('ay', 'f8'),   # joint, and its acceleration at qdd = 0
], align=True)


class Loops(NamedTuple):
    """All clusters of a machine and their scratch."""

    clusters: np.ndarray        # CLUSTER
    cluster_joints: np.ndarray  # CLUSTER_JOINT, the joints of all clusters
    rows: np.ndarray            # ROW
    orientation_checks: np.ndarray          # ROW
    friction_pins: np.ndarray   # FRICTION_PIN
    pins: np.ndarray            # PIN
    dyads: np.ndarray           # DYAD
    columns: np.ndarray         # COLUMN, in the order of elimination
    column_rows: np.ndarray     # rows of A
    poses: np.ndarray           # closed poses, one a row, in the order of a cluster's joints
    slopes: np.ndarray          # (poses, most joints, largest freedom) G at each of them
    curves: np.ndarray          # (poses, pairs a >= b of freedom, most joints) q by y_a y_b to second order
    trust: np.ndarray           # (poses,) see `closure.provably_found` [m, rad]
    lattice: np.ndarray         # (clusters, largest freedom, 6) of each independent joint: first cell from the initial
                                # position, size, cells, row among the joints, and branch points below and above
    cells: np.ndarray           # (cells, 2) pose to start from in each cell, and another to try then; -1: none, or
                                # BEYOND_BRANCH_POINT
    base: int                   # number of coordinates of the base: 6 when it floats, as module 0, else 0
    work: np.ndarray            # CLUSTER_JOINT_WORK
    A: np.ndarray               # (most rows, most joints + 1) scratch of the linear systems
    G: np.ndarray               # (cluster joints, largest freedom)
    H: np.ndarray               # (cluster joints, most joints)
    alpha: np.ndarray           # (clusters, largest freedom, largest freedom)
    psi: np.ndarray             # (clusters, largest freedom, 6)
    drive: np.ndarray           # (clusters, largest freedom)
    hint: np.ndarray            # (2, cluster joints) q from which closing starts; q at which the stored G was computed
    hinted: np.ndarray          # (1,) 1: closing starts from `hint` and stores q there; 0: it starts from the table

    def __repr__(self):
        return f'<Loops: {len(self.clusters)} clusters of {len(self.cluster_joints)} joints, {len(self.poses)} poses>'


class ClusterArrays(NamedTuple):
    """Those fields of `Loops` that the recursions use; a function compiles faster the fewer arrays it is given."""

    clusters: np.ndarray
    cluster_joints: np.ndarray
    rows: np.ndarray
    friction_pins: np.ndarray
    base: int
    work: np.ndarray
    G: np.ndarray
    H: np.ndarray
    alpha: np.ndarray
    psi: np.ndarray
    drive: np.ndarray

    __repr__ = shapes_text


# types of the fields of `Loops`: constants in the buffer of loops; scratch in that of a tree, from FIRST_SCRATCH on
CONSTANTS = (CLUSTER, CLUSTER_JOINT, ROW, ROW, FRICTION_PIN, PIN, DYAD, COLUMN, INDEX, FLOAT, FLOAT, FLOAT, FLOAT,
             FLOAT, INDEX, INDEX)
SCRATCH = (CLUSTER_JOINT_WORK, FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, FLOAT, INDEX)
FIRST_SCRATCH = 4
HINT, HINTED = FIRST_SCRATCH + 7, FIRST_SCRATCH + 8


@kernel
def bind_loops(tree, loops):
    """Return the `Loops` of two buffers, see `Mechanism`."""
    return Loops(
        records(loops, 0, CLUSTER)[0], records(loops, 1, CLUSTER_JOINT)[0], records(loops, 2, ROW)[0],
        records(loops, 3, ROW)[0], records(loops, 4, FRICTION_PIN)[0], records(loops, 5, PIN)[0],
        records(loops, 6, DYAD)[0], records(loops, 7, COLUMN)[0], records(loops, 8, INDEX)[0], matrix(loops, 9)[0],
        stack(loops, 10)[0], stack(loops, 11)[0], records(loops, 12, FLOAT)[0], stack(loops, 13)[0],
        indices(loops, 14)[0], records(loops, 15, INDEX)[0][0],
        records(tree, FIRST_SCRATCH, CLUSTER_JOINT_WORK)[0], matrix(tree, FIRST_SCRATCH + 1)[0],
        matrix(tree, FIRST_SCRATCH + 2)[0], matrix(tree, FIRST_SCRATCH + 3)[0], stack(tree, FIRST_SCRATCH + 4)[0],
        stack(tree, FIRST_SCRATCH + 5)[0], matrix(tree, FIRST_SCRATCH + 6)[0], matrix(tree, HINT)[0],
        records(tree, HINTED, INDEX)[0])


@kernel
def bind_clusters(tree, loops):
    """Return the `ClusterArrays` of two buffers; None of a machine without clusters."""
    if loops is None:
        return None
    return ClusterArrays(
        records(loops, 0, CLUSTER)[0], records(loops, 1, CLUSTER_JOINT)[0], records(loops, 2, ROW)[0],
        records(loops, 4, FRICTION_PIN)[0], records(loops, 15, INDEX)[0][0],
        records(tree, FIRST_SCRATCH, CLUSTER_JOINT_WORK)[0], matrix(tree, FIRST_SCRATCH + 2)[0],
        matrix(tree, FIRST_SCRATCH + 3)[0], stack(tree, FIRST_SCRATCH + 4)[0], stack(tree, FIRST_SCRATCH + 5)[0],
        matrix(tree, FIRST_SCRATCH + 6)[0])


def loop_arrays(loops):
    """Return (scratch, constants): the arrays of `Loops` for the buffers of a machine; nothing where it is None."""
    if loops is None:
        return [], []
    arrays = [np.atleast_1d(array) for array in loops]
    return arrays[len(CONSTANTS):], arrays[:len(CONSTANTS)]


def loops_of(loops, scratch):
    """Return the `Loops` of a buffer and the views of its scratch as Python sees them; None of None."""
    if loops is None:
        return None
    *constants, base = views(loops, CONSTANTS)
    return Loops(*constants, int(base[0]), *scratch)
