"""A bag as pieces on a uniform grid of time: what the machine did and what it was measured to give."""

from dataclasses import dataclass

import numpy as np

from ...model.errors import StateError
from ...model.units import SECOND
from ..bags.recording import BagError
from .topic_readers import ChannelStreams

ROWS = 16384
OVERLAP = 0.5               # s
MIN_ROWS = 8                # rows of a block; shorter stretches between gaps are left out


@dataclass(frozen=True)
class Block:
    """N instants of a recording, `period` s apart, without a gap.

    t          (N,) s since the start of the bag
    x          (N, dof) coordinates of the machine
    xd         (N, dof) as recorded; None where velocities were not, or contradict their positions
    residual   (N,) largest disagreement of redundant joints at a rod eye [m]
    effort     (N, actuators) measured: JointState.effort, or p_A A_A - p_B A_B; NaN where unknown, or zero all along
    pressures  (N, cylinders, 2) gauge [Pa], in the order of the hydraulics; None where there are none
    command    (N, actuators) as recorded, NaN where unknown; None where there is none
    core       the rows that no other block has; the others overlap, for filters
    joints     names of the joints measured
    positions  (N, joints) of them, as recorded, on the grid
    period     s
    """

    t: np.ndarray
    x: np.ndarray
    xd: np.ndarray
    residual: np.ndarray
    effort: np.ndarray
    pressures: np.ndarray
    command: np.ndarray
    core: slice
    joints: tuple
    positions: np.ndarray
    period: float


def blocks(source, channels, manipulator, hydraulics=None, *, rows=ROWS, overlap_s=OVERLAP, quality=None, delays=None):
    """Yield the `Block`s of a `BagSource`, in the order of time.

    The grid has the median period of the topic of states.  Gaps of more than three periods, and instants at which the
    joints measured fix no state, end a block; nothing is bridged beyond that.

    channels    `Channels` of `find_topics`
    hydraulics  of the model; None: efforts are those of JointState, pressures are not used
    rows        of the core of a block
    overlap_s   s by which blocks overlap on either side, where there is no gap
    quality     `Quality` that sees what goes by, or None
    delays      {topic: s by which it is late}, taken off

    Raises BagError where there is not one block, with the reason.
    """
    if manipulator.floating:
        raise BagError(f"'{manipulator.name}' has a floating base, whose state is not in joints")
    streams = ChannelStreams(source, channels, manipulator, hydraulics, quality, delays or {})
    overlap = round(overlap_s * SECOND / streams.period)
    cutter = Cutter(manipulator, channels.joints, streams, rows, overlap, quality)
    for instants, connected in streams.grids():
        yield from cutter.add(instants, connected)
    yield from cutter.end()
    if not cutter.count:
        doubts = ''.join(f'{about}: {text} ' for about, text in quality.units.findings()) if quality is not None else ''
        raise BagError(f"{doubts}bag '{source.path}' has no stretch of {MIN_ROWS} instants at which its state is "
                       f'known: {cutter.why()}')


class Cutter:
    """Collects rows of the grid and cuts them into blocks.

    joints   names of those measured
    streams  has their `period` [ns], and a `sample` of instants as `MachineTracks`
    rows     of the core of a block
    overlap  rows by which blocks overlap on either side
    quality  `Quality` that sees what goes by, or None; velocities that it contradicts are left out, and it takes note
             of loops that disagree

    `count` blocks were cut so far.
    """

    def __init__(self, manipulator, joints, streams, rows, overlap, quality=None):
        self._map, self._joints, self._streams = manipulator.joint_map(joints), joints, streams
        self._rows, self._overlap, self._quality = rows, overlap, quality
        self.count, self._failed = 0, None      # blocks so far, positions that fix no state
        self._columns, self._before = None, 0   # what waits, and how many of its rows were in a core already

    def add(self, instants, connected):
        """Yield the blocks that are complete with these instants; not connected: there is a gap before them."""
        if not connected:
            yield from self.end()
        sampled = self._streams.sample(instants)
        x, xd, residual = _states(self._map, sampled.pop('positions'), sampled.pop('velocities'), sampled)
        if self._quality is not None and np.isfinite(residual).any():
            worst = int(np.nanargmax(residual))
            self._quality.disagree(float(residual[worst]), lambda: self._map.residuals(sampled['positions'][worst]))
        columns = {'t': instants / SECOND, 'x': x, 'xd': xd, 'residual': residual, **sampled}
        good = np.isfinite(x).all(axis=1)
        if self._failed is None and not good.all():
            lacking = np.flatnonzero(~good)
            measured = lacking[np.isfinite(columns['positions'][lacking]).all(axis=1)]
            self._failed = columns['positions'][(measured if len(measured) else lacking)[0]]
        edges = np.flatnonzero(np.diff(np.concatenate(([False], good, [False]))))
        for first, last in edges.reshape(-1, 2):
            if first > 0:
                yield from self.end()
            self._append({name: None if values is None else values[first:last] for name, values in columns.items()})
            yield from self._full()
            if last < len(good):
                yield from self.end()

    def why(self):
        """Why there is no state at the first instant that has none."""
        if self._failed is None:
            return 'it is too short, or has too many gaps'
        try:
            self._map.state(self._failed)
        except StateError as error:
            return str(error)
        return 'its joints are measured together too rarely'

    def _append(self, columns):
        self._columns = columns if self._columns is None else {
            name: None if values is None else np.concatenate((values, columns[name]))
            for name, values in self._columns.items()}

    def _full(self):
        while len(self._columns['t']) >= self._before + self._rows + self._overlap:
            core = slice(self._before, self._before + self._rows)
            yield self._block(core, core.stop + self._overlap)
            first = max(core.stop - self._overlap, 0)
            self._columns = {name: None if values is None else values[first:] for name, values in self._columns.items()}
            self._before = core.stop - first

    def end(self):
        """Yield what waits."""
        if self._columns is not None:
            count = len(self._columns['t'])
            if count > self._before and count >= MIN_ROWS:
                yield self._block(slice(self._before, count), count)
        self._columns, self._before = None, 0

    def _block(self, core, last):
        self.count += 1
        cut = {name: None if values is None else values[:last].copy() for name, values in self._columns.items()}
        xd = cut['xd']
        # drivers that know no velocity say that it is zero
        if xd is None or not np.isfinite(xd).all() or not xd.any() and np.ptp(cut['x'], axis=0).any():
            cut['xd'] = None
        if self._quality is not None and self._quality.units.contradicted():
            cut['xd'] = None
        # nor of an effort that they do not measure
        cut['effort'][:, ~cut['effort'].any(axis=0)] = np.nan
        return Block(core=core, joints=self._joints, period=self._streams.period / SECOND, **cut)


def _states(joint_map, positions, velocities, sampled):
    """(x, xd, residual) of rows, NaN where they fix no state; notes the positions in `sampled`."""
    sampled['positions'] = positions
    if velocities is not None and not np.isfinite(velocities).any():
        velocities = None
    # a velocity that is missing must not take the position with it
    rates = None if velocities is None else np.nan_to_num(velocities)
    x, xd, residual = joint_map.states(positions, rates)
    if xd is not None:
        xd[~np.isfinite(velocities).all(axis=1)] = np.nan
    return x, np.full_like(x, np.nan) if xd is None else xd, residual
