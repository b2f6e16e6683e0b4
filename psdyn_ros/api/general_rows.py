"""Rows of states of machines with general loops: where their actuators are, and efforts shared among these."""
import numpy as np

from ..assembly.clusters import fresh
from ..kernels.loops.closure import close_all


def actuator_states(manipulator, x, xd):
    """Return positions and rates (N, actuators) of the actuated joints, and maps A (N, actuators, dof), rates = A xd.

    manipulator  a `GeneralManipulator`; x (N, nx), xd (N, dof)
    Rows at which a loop does not close are NaN.
    """
    loops = fresh(manipulator.loops)
    x, xd = (np.ascontiguousarray(rows, dtype=float) for rows in (x, xd))
    count, shift = len(loops.driven), 1 if loops.base else 0
    positions, rates = np.full((2, len(x), count), np.nan)
    maps = np.full((len(x), count, xd.shape[1]), np.nan)
    own = np.array([row for row, k in enumerate(loops.driven) if loops.own[k] >= 0], dtype=np.int64)
    tied = np.array([row for row, k in enumerate(loops.driven) if loops.own[k] < 0], dtype=np.int64)
    columns, members = loops.own[loops.driven[own]], loops.member[loops.driven[tied]]
    places = np.array(list(_places(loops, tied)), dtype=np.int64).reshape(-1, 4).T
    still = np.zeros((count, xd.shape[1]))
    still[own, columns] = 1.0
    work = loops.work
    for k in range(len(x)):
        if not np.isfinite(x[k]).all() or close_all(loops, x[k], xd[k]) != 0:
            continue
        positions[k, own], positions[k, tied] = x[k, columns + shift], work['q'][members]
        rates[k, own], rates[k, tied] = xd[k, columns], work['qd'][members]
        maps[k] = still
        maps[k, places[0], places[1]] = loops.G[places[2], places[3]]
    return positions, rates, maps


def _places(loops, tied):
    """Yield (row, column of A, row, column of G) of every entry of A that changes."""
    for row in tied:
        k = loops.driven[row]
        cluster = loops.clusters[loops.cluster_of[k]]
        for t in loops.tied[cluster['first']:cluster['first'] + cluster['joints']]:
            if t['independent'] >= 0:
                yield row, t['coordinate'], loops.member[k], t['independent']


def shared_efforts(manipulator, x, xd, needed):
    """Return efforts (N, actuators) that give `needed` (N, dof) on the coordinates; NaN where they do not.

    As `Allocation.share` has them for each row.
    """
    base = manipulator.loops.base
    maps = actuator_states(manipulator, x, xd)[2][:, :, base:]
    return manipulator.allocation.share_rows(maps, needed[:, base:])
