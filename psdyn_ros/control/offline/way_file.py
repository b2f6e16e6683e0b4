"""Way points of a motion in YAML files: positions of coordinates, or poses of a link.

    start: {slew: 0.0}          # where the motion begins; what is not named is as the machine starts
    points:                     # positions of coordinates, or
      - {slew: 0.5, telescope: 0.4}     # what is not named stays where it is
    link: tcp                   # a link of the machine and
    straight: true              # whether it goes on straight lines from pose to pose (false)
    poses:
      - {position: [2.5, 0.4, 1.0]}
      - {position: [2.5, 0.8, 1.0], orientation: [0, 0, 0, 1]}      # quaternion x y z w, where one is wanted
"""
from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from ...api.arguments import Array
from ...api.manipulator import Manipulator
from ...api.motion.inverse_kinematics import OutOfReachError
from ...api.orientation import rotation
from ...model.errors import ModelError, StateError, check_name, did_you_mean, shorten
from ...model.text_file import read_text
from ...model.yaml_file import plain_contents

MAX_BYTES = 1024 * 1024
MAX_POINTS = 1000
KEYS = 'start', 'points', 'link', 'straight', 'poses'
POSE = 'position', 'orientation'
SPACING = 0.1           # m at most between two points of a straight line


def read_way(path: str | PathLike[str], manipulator: Manipulator) -> Array:
    """Return the way points (k, nx) of a file, the start first.

    Raises ModelError that names file and entry; StateError of a pose that is out of reach, which says by how much.
    """
    where = f"way '{path}'"
    contents = _mapping(where, plain_contents(where, read_text(path, MAX_BYTES)), KEYS)
    if ('points' in contents) == ('poses' in contents):
        raise ModelError(f"{where}: expected either 'points' or 'poses'")
    m = manipulator
    start = _point(f'{where}: start', contents.get('start', {}), m, m.initial_position)
    what = 'points' if 'points' in contents else 'poses'
    entries = contents[what]
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_POINTS:
        raise ModelError(f"{where}: '{what}' is {shorten(repr(entries))}; expected a list of 1 to {MAX_POINTS}")
    if what == 'points':
        rows = [start]
        for k, entry in enumerate(entries):
            rows.append(_point(f'{where}: point {k}', entry, m, rows[-1]))
        return np.array(rows)
    link, straight = contents.get('link'), contents.get('straight', False)
    check_name(link, m.links, f"{where}: link '{link}': no link of '{m.name}'")
    if not isinstance(straight, bool):
        raise ModelError(f"{where}: 'straight' is {shorten(repr(straight))}; expected true or false")
    poses = [_pose(f'{where}: pose {k}', entry) for k, entry in enumerate(entries)]
    return _reached(m, link, start, poses, straight, where)


def _reached(m: Manipulator, link: str, start: Array, poses: list[Any], straight: bool, where: str) -> Array:
    """Return the positions (k, nx) at which a link goes through poses, on straight lines where it shall."""
    rows, place = [start], m.link_pose(start, link)[:3, 3]
    for k, (position, turn) in enumerate(poses):
        steps = max(int(np.ceil(np.linalg.norm(position - place) / SPACING)), 1) if straight else 1
        for n in range(1, steps + 1):
            target = place + (position - place) * n / steps
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


def _point(where: str, entry: Any, m: Manipulator, before: Array) -> Array:
    x = np.array(before, dtype=float)
    for name, value in _mapping(where, entry, m.coordinates).items():
        x[m.nx - len(m.coordinates) + m.coordinates.index(name)] = _numbers(f"{where}: '{name}'", [value], 1)[0]
    return x


def _pose(where: str, entry: Any) -> tuple[Array, Array | None]:
    entry = _mapping(where, entry, POSE)
    position = _numbers(f"{where}: 'position'", entry.get('position'), 3)
    if 'orientation' not in entry:
        return position, None
    q = _numbers(f"{where}: 'orientation'", entry['orientation'], 4)
    if abs(np.linalg.norm(q) - 1.0) > 1e-3:
        raise ModelError(f"{where}: 'orientation' has length {np.linalg.norm(q):.4g}; expected 1")
    return position, rotation(q / np.linalg.norm(q))


def _numbers(where: str, values: Any, count: int) -> Array:
    if not isinstance(values, list) or len(values) != count or not all(
            isinstance(value, (int, float)) and not isinstance(value, bool) and np.isfinite(value) for value in values):
        raise ModelError(f'{where} is {shorten(repr(values))}; expected {count} finite numbers')
    return np.array(values, dtype=float)


def _mapping(where: str, value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f'{where} is {shorten(repr(value))}; expected a mapping with {", ".join(keys)}')
    for key in value:
        if key not in keys:
            raise ModelError(f"{where}: '{shorten(str(key))}' is not known{did_you_mean(str(key), keys)}; there are: "
                             f'{", ".join(keys)}')
    return value
