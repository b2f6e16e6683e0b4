"""Rows of states over all cores: a thread pool over kernels that release the GIL, one scratch each."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..kernels.rigid_body.entry import actuator_rows, read_actuator_map
from ..kernels.rigid_body.mechanism import Handle
from ..kernels.runtime.compiler import compiled
from ..kernels.runtime.status import OK
from ..model.errors import ActuationError
from .arguments import Array, Vector, by_name
from .errors_from_status import status_error
from .inputs import contiguous
from .kinematics import placed

if TYPE_CHECKING:
    from .allocation import Allocation
    from .manipulator import Manipulator

MIN_CHUNK_ROWS = 256        # below this a thread costs more than it saves


def cores() -> int:
    return len(os.sched_getaffinity(0))


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    # keyed by the process, since threads do not survive a fork
    return ThreadPoolExecutor(max(1, cores() - 1), thread_name_prefix='psdyn_batch')


def run_batch(m: Manipulator, kernel: Any, handle: Handle, arrays: Mapping[str, Array]) -> Array:
    """Return (N, dof): what `kernel` writes for the rows of three arrays {name: (N, ...)}.

    handle: model and environment; every chunk of rows gets a copy.  Raises the error of the first row that fails.
    """
    out = np.empty((len(arrays['x']), m.dof))
    run_chunks(m, handle, len(out), arrays, lambda copied, first, last: kernel(
        copied.tree, copied.loops, *arrays.values(), out, first, last))
    return out


def run_chunks(m: Manipulator, handle: Handle, rows: int, arrays: Mapping[str, Array],
               run: Callable[[Handle, int, int], tuple[int, int]]) -> None:
    """Call `run(copy of the handle, first, last)` for chunks of rows on all cores; it returns (status, row).

    Loops of a row are closed from where they were in the row before, where that is nearer than the tabulated pose.
    arrays: {name: (N, ...)} for the error of the first row that fails, which is raised.
    """
    count = max(1, min(4 * cores(), rows // MIN_CHUNK_ROWS)) if compiled else 1
    ends = [rows * i // count for i in range(count + 1)]
    chunks, results = iter(list(zip(ends, ends[1:]))), []

    def work() -> None:
        for first, last in chunks:      # threads share the iterator: each takes the next chunk
            copied = handle.copy()
            copied.start_from_last()
            results.append(run(copied, first, last))

    helpers = [_pool(os.getpid()).submit(work) for _ in range(min(cores(), count) - 1)]
    try:
        work()
    finally:
        # no thread may still write when the results are handed back
        for helper in helpers:
            if not helper.cancel():
                helper.result()
    for status, row in sorted(results, key=itemgetter(1)):
        if status != OK:
            raise status_error(m, status, {name: array[row] for name, array in arrays.items()}, row)


def actuator_states(m: Manipulator, x: Array, xd: Array) -> tuple[Array, Array, Array]:
    """Return positions and rates (N, actuators) of the actuators, and maps A (N, actuators, dof), rates = A xd.

    x (N, nx), xd (N, dof).  Rows at which a loop does not close are NaN.
    """
    x, xd = contiguous('x', x), contiguous('xd', xd)
    count, handle = len(m.actuators), m.handle()
    positions, rates = np.full((2, len(x), count), np.nan)
    maps = np.full((len(x), count, m.dof), np.nan)
    handle.start_from_last()
    actuator_rows(handle.tree, handle.loops, x, xd, positions, rates, maps)
    return positions, rates, maps


class Shares(NamedTuple):
    """How actuators drive the coordinates at rows of positions, and share efforts on them."""

    rates: Array
    """(N, actuators, n) rates of the actuators for unit rates of the coordinates."""
    efforts: Array
    """(N, actuators, n) efforts for unit efforts on the coordinates."""
    kept: Array
    """(N, actuators) efforts of the preload that act inside the mechanism only."""

    def rates_of(self, xd: Array) -> Array:
        """Return the rates (N, actuators) for rates xd (N, n) of the coordinates."""
        return np.einsum('nij,nj->ni', self.rates, xd)

    def efforts_for(self, forces: Array) -> Array:
        """Return the efforts (N, actuators) for efforts (N, n) on the coordinates."""
        return self.kept + np.einsum('nij,nj->ni', self.efforts, forces)


def shares_of(m: Manipulator, x: Array) -> Shares:
    """Return the `Shares` at positions x (N, nx), as `allocation` has them without limits.

    Of a machine with passive joints each coordinate counts as an actuator.
    """
    n = len(m.coordinates)
    if m.actuators == m.coordinates or m.underactuated:
        every = np.broadcast_to(np.eye(n), (len(x), n, n))
        return Shares(every, every, np.zeros((len(x), n)))
    A = actuator_states(m, x, np.zeros((len(x), m.dof)))[2][:, :, m.dof - n:]
    weighted, preload = A / m.allocation.weights[:, None], m.allocation.preload
    efforts = weighted @ np.linalg.inv(A.transpose(0, 2, 1) @ weighted)
    return Shares(A, efforts, preload - np.einsum('nij,nj->ni', efforts, preload @ A))


def map_at(m: Manipulator, x: Array) -> Array:
    """Return A (actuators, dof) with the rates A xd of the actuators at a checked x."""
    A, rest = np.empty((len(m.actuators), m.dof)), np.zeros(m.dof)
    handle = placed(m, x, rest, rest)
    read_actuator_map(handle.tree, handle.loops, A)
    return A


def inverse_efforts(m: Manipulator, allocation: Allocation, motion: Sequence[Vector], **around: Any) -> Array:
    """Return the actuator efforts that `allocation` chooses for a motion (x, xd, xdd), one state or rows.

    around: arguments of `Manipulator.inverse_dynamics` by name.  Raises as that does.
    """
    first = m.dof - len(m.coordinates)
    needed = m.generalized_forces(*motion, **around)[..., first:]
    if needed.ndim == 1:
        A = np.ascontiguousarray(map_at(m, contiguous('x', by_name(m, 'x', motion[0])))[:, first:])
        efforts = allocation.efforts(A, needed)
        return share_efforts(m, allocation, A, needed) if efforts is None else efforts
    maps = actuator_states(m, *(by_name(m, *labelled) for labelled in zip(('x', 'xd'), motion)))[2][:, :, first:]
    efforts = allocation.share_rows(maps, needed)
    for row in np.flatnonzero(np.isnan(efforts).any(axis=1)):      # says why
        efforts[row] = share_efforts(m, allocation, maps[row], needed[row])
    return efforts


def share_efforts(m: Manipulator, allocation: Allocation, A: Array, needed: Array) -> Array:
    """Return the actuator efforts that act as `needed` on the coordinates; raise ActuationError where none do."""
    shared = allocation.share(A, needed)
    if not shared.met:
        limited = f" within the limits of {', '.join(shared.at_limit)}" if shared.at_limit else ''
        worst = m.coordinates[int(abs(shared.residual).argmax())]
        raise ActuationError(f"the actuators of '{m.name}' do not reach the effort on '{worst}'{limited}: "
                             f'{abs(shared.residual).max():.4g} N or N m are missing')
    return shared.efforts
