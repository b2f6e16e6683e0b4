"""Statuses of kernels: one integer for a pair (code, index), 0 where all went well.

index is the module, cluster or chamber at fault, 0 where the code needs none.
"""
from typing import NamedTuple

from .compiler import python_kernel

OK = 0
SHAPE, NON_FINITE = 1, 2        # arrays of other sizes; NaN, infinite or too large
TOGGLE = 3                      # index: module whose triangle does not close at its stroke, or has no lever there
OPEN, SINGULAR = 4, 5           # index: cluster that no position closes; whose joints do not follow from the others
INFINITE = 6                    # index: module whose acceleration is not finite
UNREACHABLE, OTHER_BRANCH, NO_LEVER, AMBIGUOUS = 7, 8, 9, 10    # index: why measured joints do not fix a module
BRANCH = 11                     # index: cluster at or beyond a point where two branches of its closure meet
EMPTY = 12                      # index: cylinder of which a chamber has no volume left
UNMET = 13                      # the actuators do not give the efforts that the coordinates need

CODES = 16


class Status(NamedTuple):
    """Outcome of a kernel call."""

    code: int
    index: int


@python_kernel
def failure(code, index):
    """Return the status of a code and an index."""
    return code + CODES * index


def decode(status):
    """Return the `Status` of the integer that a kernel returned."""
    return Status(status % CODES, status // CODES)
