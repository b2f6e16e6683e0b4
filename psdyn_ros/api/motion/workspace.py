"""Where a point of a link can be within all limits."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...model.errors import StateError
from ..arguments import Array
from ..results.result import Axis, Result
from .inverse_kinematics import Search
from .link_point import point_record, poses
from .samples import sampled_poses

if TYPE_CHECKING:
    from ..manipulator import Manipulator

PULLS = 30              # steps of the search for an extreme position
SMALL_PULL = 1e-7       # advance [m] at which that search ends
XYZ = Axis(('x', 'y', 'z'), ('m', 'm', 'm'))


@dataclass(frozen=True, repr=False, eq=False)
class Workspace(Result):
    """Positions of a point within all limits, in base axes; N of them cover it.

    The distance from the vertical through the base's origin is the reach, the component against gravity the height.
    """

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'positions': ('xyz',), 'x': ('x',), 'lower': ('xyz',),
                                                     'upper': ('xyz',)}
    UNITS: ClassVar[Mapping[str, str]] = {'reach': 'm', 'height': 'm'}

    positions: Array
    """(N, 3) [m]"""
    x: Array
    """(N, nx) where they are taken."""
    lower: Array
    """(3,) least coordinates of the point, found by a search from the samples [m]."""
    upper: Array
    """(3,) largest ones."""
    reach: tuple[float, float]
    """Least of the samples, largest one by a search [m]."""
    height: tuple[float, float]
    """Least and largest one by a search [m]."""


def upright(m: Manipulator) -> Array:
    """Return the direction against gravity (3,) in the axes of the base at its initial position."""
    size = np.linalg.norm(m.gravity)
    up = -m.gravity / size if size > 0.0 else np.array([0.0, 0.0, 1.0])
    return m.link_pose(m.initial_position, m.machine.base_link)[:3, :3].T @ up if m.floating else up


def reach_and_height(positions: Array, up: Array) -> tuple[Array, Array]:
    """Return (distances from the vertical through the origin, heights) of positions (N, 3)."""
    height = positions @ up
    return np.linalg.norm(positions - np.multiply.outer(height, up), axis=-1), height


def workspace(manipulator: Manipulator, link: str, *, point: npt.ArrayLike = (0.0, 0.0, 0.0),
              samples: int = 4096) -> Workspace:
    """Return the `Workspace` of a point of a link, over positions of all coordinates within the limits.

    point (3,) in link axes [m].  samples: how many positions are tried; those at which a loop does not close or a
    joint is beyond its limit are left out.  A floating base stays where it is initially; coordinates without limits
    move by half a turn or a metre to both sides.  Raises UnknownNameError, ShapeError, NonFiniteError,
    StateError where no sample is within all limits.
    """
    m, up = manipulator, upright(manipulator)
    if not (isinstance(samples, (int, np.integer)) and samples >= 1):
        raise StateError(f'samples = {samples!r:.80}: expected how many positions are tried, a whole number from 1 on')
    record, held = point_record(m, link, point), np.zeros(len(m.coordinates), dtype=bool)
    x, pose = sampled_poses(m, record, m.initial_position, held, int(samples))
    if not len(x):
        raise StateError(f"at none of {samples} positions of '{m.name}' are all loops closed and all joints within "
                         'their limits; expected more samples')
    positions = pose[:, :, 3].copy()
    search = Search(m, link, point, m.initial_position, held)

    def extreme(direction: Any) -> Array:
        """Return the position farthest along what `direction` (3,) of a position returns."""
        best = int(np.argmax(np.einsum('ni,ni->n', positions, np.array([direction(p) for p in positions]))))
        return pulled(m, record, search, x[best], direction)

    def outward(position: Array) -> Array:
        flat = position - up * (up @ position)
        return flat / max(np.linalg.norm(flat), 1e-9)

    axes = np.eye(3)
    lower = np.array([extreme(lambda _, axis=axis: -axis)[row] for row, axis in enumerate(axes)])
    upper = np.array([extreme(lambda _, axis=axis: axis)[row] for row, axis in enumerate(axes)])
    reach, _ = reach_and_height(positions, up)
    farthest = reach_and_height(extreme(outward), up)[0]
    low, high = (extreme(lambda _, sign=sign: sign * up) @ up for sign in (-1.0, 1.0))
    return Workspace(positions, x.copy(), lower, upper, (float(reach.min()), float(farthest)),
                     (float(low), float(high)), axes={**m.axes, 'xyz': XYZ})


def pulled(m: Manipulator, record: Any, search: Search, x: Array, direction: Any) -> Array:
    """Return the position (3,) at which pulling the point along a direction ends.

    Each step goes to the position nearest to a point ahead of the last one: the proximal-point method, whose fixed
    points are those farthest along the direction.
    """
    position = poses(m, record, x[None])[0, :, 3]
    ahead = 0.5 * max(float(np.linalg.norm(position)), 0.1)
    for _ in range(PULLS):
        along = direction(position)
        x = search.nearest(position + ahead * along, x)
        moved, position = position, poses(m, record, x[None])[0, :, 3]
        if along @ (position - moved) < SMALL_PULL:
            break
    return position
