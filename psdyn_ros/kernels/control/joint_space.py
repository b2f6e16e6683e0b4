"""Motion of n joints in place of that of the n coordinates: q = gamma(x), qd = G xd."""
from typing import NamedTuple

import numpy as np

from ..algebra.linear import least_squares
from ..rigid_body.entry import close_and_place, read_joint_states
from ..runtime.buffer import FLOAT, matrix, pack, records
from ..runtime.compiler import kernel
from ..runtime.status import OK, SINGULAR

INT = np.dtype('i8')
MIN_RANK_RATIO = 1e-12        # of a diagonal of R against the largest: below it the joints do not fix the coordinates


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
