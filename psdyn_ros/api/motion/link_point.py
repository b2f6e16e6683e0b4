"""A point on a link as a record of the kernels, and its poses for rows of positions."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...kernels.motion.link import POINT, pose_rows
from ..arguments import Array, vector
from ..batch import run_chunks
from ..environment import find_link

if TYPE_CHECKING:
    from ..manipulator import Manipulator


def point_record(m: Manipulator, link: str, point: npt.ArrayLike) -> Array:
    """Return the POINT record (1,) of a point (3,) in link axes; raise UnknownNameError, ShapeError, NonFiniteError."""
    place, record = find_link(m.machine, link), np.zeros(1, POINT)
    turn = place.pose.rotation
    record[0] = place.module, place.body, turn.T, place.pose.position + turn @ vector('point', point, 3)
    return record


def poses(m: Manipulator, record: Any, x: Array) -> Array:
    """Return the poses (N, 3, 4) of a point in the base frame for x (N, nx); NaN where a loop does not close."""
    out, x = np.empty((len(x), 3, 4)), np.ascontiguousarray(x, dtype=float)
    run_chunks(m, m.handle(), len(x), {}, lambda copied, first, last: pose_rows(
        copied.tree, copied.loops, record, x, np.zeros(m.dof), out, first, last))
    return out
