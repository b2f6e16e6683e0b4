"""Way points of a motion in YAML files: positions of driven coordinates, or poses of a link that they move.

    start: {slew: 0.0}          # where the motion begins; what is not named is as the machine starts
    points:                     # positions of coordinates, or
      - {slew: 0.5, telescope: 0.4}     # what is not named stays where it is
    link: tcp                   # a link of the machine and
    straight: true              # whether it goes on straight lines from pose to pose (false)
    poses:
      - {position: [2.5, 0.4, 1.0]}
      - {position: [2.5, 0.8, 1.0], orientation: [0, 0, 0, 1]}      # quaternion x y z w, where one is wanted
      - {position: [2.9, 0.8, 1.0], via: [2.7, 0.8, 1.2]}           # on an arc of a circle through `via`
"""
from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from ...api.arguments import Array
from ...api.manipulator import Manipulator
from ...api.motion.inverse_kinematics import OutOfReachError
from ...api.motion.suspension import link_above
from ...api.orientation import rotation
from ...model.errors import ModelError, StateError, check_name, shorten
from ...model.text_file import read_text
from ...model.yaml_file import plain_contents
from .time_optimal import STOP_MARGIN
from .trajectory_file import mapping_of

MAX_BYTES = 1024 * 1024
MAX_POINTS = 1000
KEYS = 'start', 'points', 'link', 'straight', 'poses'
POSE = 'position', 'orientation', 'via'
SPACING = 0.1           # m at most between two points of a straight line or an arc
ARC_STEP = 0.2          # rad at most between two points of an arc: the spline through them stays within r (1e-4)
FLATTEST = 1e-6         # sine of the angle at the start of an arc, below which its three points are on one line


def read_way(path: str | PathLike[str], manipulator: Manipulator) -> Array:
    """Return the way points (k, nx) of the `driven_machine` in a file, the start first.

    Raises ModelError that names file and entry; StateError of a pose that is out of reach, which says by how much.
    """
    where = f"way '{path}'"
    contents = mapping_of(where, plain_contents(where, read_text(path, MAX_BYTES)), KEYS)
    if ('points' in contents) == ('poses' in contents):
        raise ModelError(f"{where}: expected either 'points' or 'poses'")
    m = manipulator.driven_machine
    start = _point(f'{where}: start', contents.get('start', {}), m, m.initial_position)
    what = 'points' if 'points' in contents else 'poses'
    entries = contents[what]
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_POINTS:
        raise ModelError(f"{where}: '{what}' is {shorten(repr(entries))}; expected a list of 1 to {MAX_POINTS}")
    if what == 'points':
        rows = [start]
        for k, entry in enumerate(entries):
            rows.append(_point(f'{where}: point {k}', entry, m, rows[-1]))
            if (rows[-1] == rows[-2]).all():
                before = f'point {k - 1}' if k else 'the start'
                raise ModelError(f'{where}: point {k} is where {before} is; expected another one, or none')
        return np.array(rows)
    if 'link' not in contents:
        raise ModelError(f"{where}: 'link' is missing; expected the link that goes through the poses")
    link, straight = contents.get('link'), contents.get('straight', False)
    check_link(manipulator, link, f"{where}: link '{link}'")
    if not isinstance(straight, bool):
        raise ModelError(f"{where}: 'straight' is {shorten(repr(straight))}; expected true or false")
    poses = [_pose(f'{where}: pose {k}', entry) for k, entry in enumerate(entries)]
    return reached(m, link, start, poses, straight, where)


def check_link(manipulator: Manipulator, link: str, what: str) -> None:
    """Raise ModelError, whose text begins with `what`, for a link that actuators do not move, or that is none."""
    m = manipulator
    check_name(link, m.links, f"{what}: no link of '{m.name}'")
    above = link_above(m, link)
    if above:
        raise ModelError(f"{what} hangs from passive joints, which are not planned; expected '{above}', or another "
                         'link that actuators move')


def reached(m: Manipulator, link: str, start: Array, poses: list[Any], straight: bool, where: str) -> Array:
    """Return the positions (k, nx) at which a link goes through poses, on straight lines and arcs where it shall.

    poses: (position (3,), rotation (3, 3) or None, point (3,) on the arc to it or None) of each.
    Raises StateError of a pose out of reach, which says by how much; ModelError of an arc that is none.
    """
    rows, place = [start], m.link_pose(start, link)[:3, 3]
    for k, (position, turn, via) in enumerate(poses):
        stretch = _stretch(f'{where}: pose {k}', place, position, via, straight)
        steps = len(stretch)
        for n, target in enumerate(stretch, 1):
            last = n == steps
            if turn is not None and last:
                target = np.block([[turn, target[:, None]], [np.zeros(3), 1.0]])
            try:
                rows.append(m.inverse_kinematics(link, target, start=rows[-1]))
            except OutOfReachError as error:
                on_the_way = '' if last else f', {n / steps:.0%} of the way to it'
                raise StateError(f'{where}: pose {k}{on_the_way}: {error}') from error
        place = position
    return np.array(rows)


def _stretch(where: str, begin: Array, end: Array, via: Array | None, straight: bool) -> Array:
    """Return the points (n, 3) of a line or an arc from `begin`, which is left out, to `end`."""
    if via is None:
        steps = max(int(np.ceil(np.linalg.norm(end - begin) / SPACING)), 1) if straight else 1
        return begin + (end - begin) * np.arange(1, steps + 1)[:, None] / steps
    u, v = via - begin, end - begin
    normal = np.cross(u, v)
    if not np.linalg.norm(normal) > FLATTEST * np.linalg.norm(u) * np.linalg.norm(v):
        raise ModelError(f"{where}: 'via' {via.tolist()} is on one line with the position before and this one, "
                         f'{begin.round(4).tolist()} and {end.tolist()}; expected three points of a circle')
    centre = begin + np.cross((u @ u) * v - (v @ v) * u, normal) / (2.0 * normal @ normal)
    spoke = begin - centre
    side = np.cross(normal / np.linalg.norm(normal), spoke)
    angle = np.arctan2((end - centre) @ side, (end - centre) @ spoke) % (2.0 * np.pi)
    steps = int(np.ceil(max(angle / ARC_STEP, angle * np.linalg.norm(spoke) / SPACING)))
    angles = angle * np.arange(1, steps + 1)[:, None] / steps
    points = centre + np.cos(angles) * spoke + np.sin(angles) * side
    points[-1] = end
    return points


def _point(where: str, entry: Any, m: Manipulator, before: Array) -> Array:
    x = np.array(before, dtype=float)
    for name, value in mapping_of(where, entry, m.coordinates).items():
        column = m.coordinates.index(name)
        lower, upper = m.coordinate_limits.lower[column], m.coordinate_limits.upper[column]
        position, = _numbers(f"{where}: '{name}'", [value], 1)
        if not lower - STOP_MARGIN <= position <= upper + STOP_MARGIN:
            raise ModelError(f'{where}: {position:g} is beyond the limit of {name}; expected {lower:g} to {upper:g}')
        x[m.nx - len(m.coordinates) + column] = position
    return x


def _pose(where: str, entry: Any) -> tuple[Array, Array | None, Array | None]:
    entry = mapping_of(where, entry, POSE)
    position = _numbers(f"{where}: 'position'", entry.get('position'), 3)
    via = _numbers(f"{where}: 'via'", entry['via'], 3) if 'via' in entry else None
    if 'orientation' not in entry:
        return position, None, via
    q = _numbers(f"{where}: 'orientation'", entry['orientation'], 4)
    if abs(np.linalg.norm(q) - 1.0) > 1e-3:
        raise ModelError(f"{where}: 'orientation' has length {np.linalg.norm(q):.4g}; expected 1")
    return position, rotation(q / np.linalg.norm(q)), via


def _numbers(where: str, values: Any, count: int) -> Array:
    if not isinstance(values, list) or len(values) != count or not all(
            isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value) for value in values):
        raise ModelError(f'{where} is {shorten(repr(values))}; expected {count} finite numbers')
    return np.array(values, dtype=float)
