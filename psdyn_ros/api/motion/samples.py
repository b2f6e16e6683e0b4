"""Positions that cover the ranges of the coordinates, and the poses of a point there."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...kernels.rigid_body.entry import actuator_rows
from ...kernels.rigid_body.mechanism import Handle
from ...model.errors import StateError
from ..arguments import Array
from ..batch import actuator_states
from ..inputs import contiguous
from .link_point import poses

if TYPE_CHECKING:
    from ..manipulator import Manipulator

BEYOND_SHARE = 0.12         # of a range: samples so far beyond a limit are moved onto it, which covers the limits
UNLIMITED_RANGE = 2.0       # of a slide without limits, about its initial position [m]
MAX_SETS = 20               # kept per machine
ROWS_AT_ONCE = 64           # random positions that are drawn at once, or as many as are wanted
MAX_DRAWS = 1000            # times as many random positions as are wanted


class Ranges(NamedTuple):
    """Ranges (n,) of the joint coordinates; those without limits turn or slide about the initial position."""

    lower: np.ndarray
    upper: np.ndarray
    width: np.ndarray       # positive
    turns: np.ndarray       # bool: a joint that turns without limits


def ranges(m: Manipulator) -> Ranges:
    """Return the `Ranges` of a machine."""
    limits, types = m.coordinate_limits, {module.name: module.joint.type for module in m.machine.modules}
    turning = np.array([types[name] != 'prismatic' for name in m.coordinates], dtype=bool)
    half = np.where(turning, math.pi, 0.5 * UNLIMITED_RANGE)
    start = m.initial_position[m.nx - len(m.coordinates):]
    bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    lower = np.where(bounded, limits.lower, np.maximum(limits.lower, start - half))
    upper = np.where(bounded, limits.upper, np.minimum(limits.upper, start + half))
    return Ranges(lower, upper, np.where(upper > lower, upper - lower, 1.0), turning & ~bounded)


def cover(lower: Array, upper: Array, count: int) -> Array:
    """Return positions (count, n) that cover a box evenly, its faces included: a sequence of low discrepancy."""
    n = len(lower)
    # the root of g^(n + 1) = g + 1 generalises the golden ratio to n dimensions
    g = 1.5
    for _ in range(60):
        g = (1.0 + g) ** (1.0 / (n + 1.0))
    share = (0.5 + np.outer(np.arange(count), g ** -np.arange(1.0, n + 1.0))) % 1.0
    share = np.clip((1.0 + 2.0 * BEYOND_SHARE) * share - BEYOND_SHARE, 0.0, 1.0)
    return lower + share * (upper - lower)


def random_positions(m: Manipulator, n: int, rng: np.random.Generator | int | None = None) -> Array:
    """Return positions (n, nx), see `Manipulator.random_positions`."""
    if not (isinstance(n, (int, np.integer)) and n >= 0):
        raise StateError(f'n = {n!r:.80}: expected how many positions, a whole number from 0 on')
    try:
        generator = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise StateError(f'rng = {rng!r:.80}: expected a generator, a seed from 0 on, or None') from None
    box, first = ranges(m), m.nx - len(m.coordinates)
    found, drawn = np.empty((0, m.nx)), 0
    while (got := len(found)) < n:
        if drawn >= MAX_DRAWS * max(n, ROWS_AT_ONCE):
            raise StateError(f"{got} of {drawn} random positions of '{m.name}' are within its limits with all loops "
                             f'closed; expected {n}')
        x = np.tile(m.initial_position, (max(n - got, ROWS_AT_ONCE), 1))
        x[:, first:] = generator.uniform(box.lower, box.upper, (len(x), len(m.coordinates)))
        x = x[np.isfinite(actuator_states(m, x, np.zeros((len(x), m.dof)))[0]).all(axis=1)]
        drawn, found = drawn + max(n - got, ROWS_AT_ONCE), np.concatenate((found, x[within_stops(m, x)]))
    return found[:n]


def sampled_poses(m: Manipulator, record: Any, base: Array, held: Array, count: int) -> tuple[Array, Array]:
    """Return (x (N, nx), poses (N, 3, 4)) at which all loops close and all joints are within their limits.

    base (nx,): where coordinates `held` (n,) stay.  The sets used last are kept.
    """
    key = record.tobytes(), base[held_columns(m, held)].tobytes(), held.tobytes(), count
    if key not in m.samples:
        box, first = ranges(m), m.nx - len(m.coordinates)
        lower, upper = (np.where(held, base[first:], end) for end in (box.lower, box.upper))
        x = np.tile(base, (count, 1))
        x[:, first:] = cover(lower, upper, count)
        pose = poses(m, record, x)
        closed = np.isfinite(pose[:, 0, 0])
        x, pose = x[closed], pose[closed]
        inside = within_stops(m, x)
        while len(m.samples) >= MAX_SETS:
            m.samples.pop(next(iter(m.samples)))
        m.samples[key] = x[inside], pose[inside]
    return m.samples[key]


def held_columns(m: Manipulator, held: Array) -> Array:
    """Return which entries (nx,) of x stay where they are: coordinates `held` and a floating base."""
    return np.concatenate((np.ones(m.nx - len(m.coordinates), dtype=bool), held))


class Stops(NamedTuple):
    """Limits (n,) of the joints that are no coordinates, and a `Handle` of which these are the actuators."""

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    handle: Handle


def stops_of(m: Manipulator) -> Stops:
    """Return the `Stops` of a machine; the limits of boom and barrel of a triangle are in those of its stroke."""
    handle = m.handle()
    handle.modules['actuator'] = -1
    rows = [row for row, module in enumerate(m.machine.modules) if handle.modules['coordinate'][row] < 0
            and (math.isfinite(module.joint.lower) or math.isfinite(module.joint.upper))]
    handle.modules['actuator'][rows] = np.arange(len(rows))
    joints = [m.machine.modules[row].joint for row in rows]
    return Stops(tuple(joint.name for joint in joints), np.array([joint.lower for joint in joints], dtype=float),
                 np.array([joint.upper for joint in joints], dtype=float), handle)


def beyond_stops(m: Manipulator, x: Array) -> Array:
    """Return by how much (N, stops) joints that are no coordinates are beyond their limits at rows x (N, nx).

    NaN where loops do not close.
    """
    stops = stops_of(m)
    count, rest = len(stops.names), np.zeros((len(x), m.dof))
    if not count:
        return np.zeros((len(x), 0))
    positions, rates = np.full((2, len(x), count), np.nan)
    stops.handle.start_from_last()
    actuator_rows(stops.handle.tree, stops.handle.loops, contiguous('x', x), rest, positions, rates,
                  np.zeros((len(x), count, m.dof)))
    return np.maximum(np.maximum(stops.lower - positions, positions - stops.upper), 0.0)


def within_stops(m: Manipulator, x: Array) -> Array:
    """Return whether joints that are no coordinates are within their limits at rows x (N, nx) that close."""
    return np.asarray((beyond_stops(m, x) <= 0.0).all(axis=1))
