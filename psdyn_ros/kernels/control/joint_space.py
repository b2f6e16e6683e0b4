"""Motion of n joints in place of that of the n coordinates: q = gamma(x), qd = G xd; transmission of cylinders."""
import math
from typing import NamedTuple

import numpy as np

from ..algebra.linear import least_squares
from ..rigid_body.entry import close_and_place, read_joint_states
from ..runtime.buffer import FLOAT, matrix, pack, records
from ..runtime.compiler import entry, kernel
from ..runtime.status import OK, SINGULAR

INT = np.dtype('i8')
MIN_RANK_RATIO = 1e-12        # of a diagonal of R against the largest: below it the joints do not fix the coordinates

# A cylinder and the lever that it turns, see `control/monitors/singularity.py`.
TRIANGLE = np.dtype([
    ('row', 'i8'),              # of its stroke in x
    ('x0', 'f8'),               # length of the cylinder at stroke 0 [m]
    ('e', 'f8'),                # offset of its axis [m]
    ('L', 'f8'),                # from pin to pin [m]
    ('L1', 'f8'),               # lever [m]
    ('scale', 'f8'),            # 1 / longest lever arm [1/m]
], align=True)

MAX_LEVER_ARM_M = 1e6


class JointSpace(NamedTuple):
    """The n joints, and scratch."""

    columns: np.ndarray     # (n,) rows of these joints among all
    joints: np.ndarray      # (3, joints) position, rate, acceleration of all joints
    desired: np.ndarray     # (3, n) of these joints
    measured: np.ndarray    # (3, n)
    zero: np.ndarray        # (n,)
    unit: np.ndarray        # (n,) zeros between calls
    system: np.ndarray      # (n + 1, n + 1)


def make_joint_space(columns, joints):
    """Return the buffer of `JointSpace`: columns (n,) of so many joints."""
    n = len(columns)
    return pack([np.array(columns, INT), np.zeros((3, joints)), *np.zeros((2, 3, n)), *np.zeros((2, n)),
                 np.zeros((n + 1, n + 1))])


@kernel
def bind_joint_space(buffer):
    """Return the `JointSpace` of a buffer."""
    return JointSpace(records(buffer, 0, INT)[0], matrix(buffer, 1)[0], matrix(buffer, 2)[0], matrix(buffer, 3)[0],
                      records(buffer, 4, FLOAT)[0], records(buffer, 5, FLOAT)[0], matrix(buffer, 6)[0])


@kernel
def joint_motion(tree, loops, s, x, xd, xdd, out):
    """Write position, rate and acceleration of the joints into out (3, n); return a status."""
    status = close_and_place(tree, loops, x, xd, xdd)
    if status == OK:
        status = read_joint_states(tree, loops, s.joints)
    for i in range(s.columns.shape[0]):
        for row in range(3):
            out[row, i] = s.joints[row, s.columns[i]]
    return status


@kernel
def solve_rates(tree, loops, s, x, rates, xd):
    """Write the xd (n,) with G xd = rates (n,) at x; return a status."""
    n = s.columns.shape[0]
    for j in range(n):
        s.unit[j] = 1.0
        status = close_and_place(tree, loops, x, s.unit, s.zero)
        if status == OK:
            status = read_joint_states(tree, loops, s.joints)
        s.unit[j] = 0.0
        if status != OK:
            return status
        for i in range(n):
            s.system[i, j] = s.joints[1, s.columns[i]]
    for i in range(n):
        s.system[i, n] = rates[i]
    if not least_squares(s.system, n, n, n + 1) > MIN_RANK_RATIO:
        return SINGULAR
    for i in range(n):
        xd[i] = s.system[i, n]
    return OK


@entry
def lever_arm(b, stroke):
    """Return |dx/dq| [m] of a TRIANGLE; 0 where it does not close, and of a stroke that is no number."""
    rho, e, L, L1 = stroke + b['x0'], b['e'], b['L'], b['L1']
    cos = (rho * rho + e * e - L * L - L1 * L1) / (2.0 * L * L1)
    sin2 = (1.0 - cos) * (1.0 + cos)
    if not sin2 > 0.0:
        return 0.0
    # at rho = 0 the boom stands still however the stroke moves
    return L * L1 * math.sqrt(sin2) / abs(rho) if rho != 0.0 else MAX_LEVER_ARM_M


@kernel
def transmission(triangles, x):
    """Return (least lever arm of all triangles over the longest that it has, which it is); (1, -1): none is less."""
    measure, where = 1.0, -1
    for k in range(triangles.shape[0]):
        b = triangles[k]
        share = lever_arm(b, x[b['row']]) * b['scale']
        if share < measure:
            measure, where = share, k
    return measure, where


@entry
def least_transmission(triangles, x):
    """Do `transmission` of one position x (nx,)."""
    return transmission(triangles, x)


@entry
def worst_transmission(triangles, x, measures, where):
    """Write `transmission` of positions x (N, nx) into measures (N,) and where (N,)."""
    for row in range(x.shape[0]):
        measures[row], where[row] = transmission(triangles, x[row])
