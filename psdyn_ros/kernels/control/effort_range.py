"""The efforts of axes at force level that the reference and the errors explain.

The model gives the efforts f = h + M a of accelerations a.  What is explained is a range of a, see `set_bounds`.  Of
axes that are not at force level only that range is known, so that their coupling moves and widens that of the others.
"""
from typing import NamedTuple

import numpy as np

from ..algebra.linear import factorise_symmetric, solve_negative
from ..hydraulics.friction import sliding_friction
from ..rigid_body.entry import finite
from ..runtime.buffer import FLOAT, matrix, pack, records, stack
from ..runtime.compiler import entry, kernel
from ..runtime.status import OK
from .actuation import INT

STRONGER = 2.0          # times the feedback by the gains, that an effort may give towards the reference
ROUNDING = 1e-6         # of the limit
GIVEN, ASKED, LOW, HIGH = range(4)      # rows of `found`


class EffortRange(NamedTuple):
    """Limits and memory of the k axes at force level among n actuators that are the coordinates; model and scratch."""

    rows: np.ndarray        # (n,) axes at force level, then the others
    limits: np.ndarray      # (2, n) accelerations given away from the reference; largest commands
    area: np.ndarray        # (n,) m^2 of the piston where pressure is commanded, else 1
    learning: np.ndarray    # (1,) share of what the model lacks that is learnt in a cycle
    recent: np.ndarray      # (N, 4, n) accelerations: least and largest of the reference, of the error, of its rate
    count: np.ndarray       # (1,) cycles until now; the last N of them are in `recent`
    trim: np.ndarray        # (k,) efforts that the model lacks
    efforts: np.ndarray     # (n,) N, N m of the model without acceleration and friction
    inertia: np.ndarray     # (n, n)
    ahead: np.ndarray       # (n,) acceleration of the reference at the time at which the law looks ahead
    bounds: np.ndarray      # (2, n) scratch: least and largest acceleration
    found: np.ndarray       # (4, k) command given, acceleration that it causes, and the range of that
    system: np.ndarray      # (k, k) scratch: factors of the inertia
    coupling: np.ndarray    # (k, n - k) scratch
    right: np.ndarray       # (k, 1) scratch: right-hand side


# types of the fields of `EffortRange`
TYPES = INT, *(FLOAT,) * 4, INT, *(FLOAT,) * 9


def make_effort_range(rows, count, room):
    """Return the buffer of `EffortRange` over `room` cycles: of rows (n,) the first `count` are at force level."""
    n, k = len(rows), count
    return pack(EffortRange(
        rows=np.array(rows, INT), limits=np.zeros((2, n)), area=np.ones(n), learning=np.zeros(1),
        recent=np.zeros((room, 4, n)), count=np.zeros(1, INT), trim=np.zeros(k), efforts=np.zeros(n),
        inertia=np.zeros((n, n)), ahead=np.zeros(n), bounds=np.zeros((2, n)), found=np.zeros((4, k)),
        system=np.zeros((k, k)), coupling=np.zeros((k, n - k)), right=np.zeros((k, 1))))


@kernel
def bind_effort_range(buffer):
    """Return the `EffortRange` of a buffer."""
    return EffortRange(
        records(buffer, 0, INT)[0], matrix(buffer, 1)[0], records(buffer, 2, FLOAT)[0], records(buffer, 3, FLOAT)[0],
        stack(buffer, 4)[0], records(buffer, 5, INT)[0], records(buffer, 6, FLOAT)[0], records(buffer, 7, FLOAT)[0],
        matrix(buffer, 8)[0], records(buffer, 9, FLOAT)[0], matrix(buffer, 10)[0], matrix(buffer, 11)[0],
        matrix(buffer, 12)[0], matrix(buffer, 13)[0], matrix(buffer, 14)[0])


@entry
def restrain_efforts(buffer, axes, gains, scale, x, xd, desired, command):
    """Take the efforts of a command (n,) into their range; return (axis at force level, how far it was beyond).

    The worst axis, and that distance as a share of the acceleration that may be given away; (-1, 0) where the command
    stays as it is, as one does that is not finite.

    buffer   of `EffortRange`, with model and reference of this cycle
    axes     (n,) AXIS with the friction that the law compensates
    gains    (2, n) accelerations of the law for an error and for its rate
    scale    of the accelerations that the law feeds forward
    x, xd    (n,) measured
    desired  (3, n) reference
    """
    if finite(command) != OK:
        return -1, 0.0
    check = bind_effort_range(buffer)
    set_bounds(check, gains, scale, x, xd, desired)
    for i in range(command.shape[0]):
        check.efforts[i] += sliding_friction(axes[i], desired[1, i])
    couple(check)
    worst, off = find_accelerations(check, command)
    restrained = clamp_efforts(check, command)
    learn(check)
    return (worst, off) if restrained else (-1, 0.0)


@kernel
def set_bounds(check, gains, scale, x, xd, desired):
    """Set the least and the largest acceleration that a sound law asks for, by the last cycles.

    That of the reference, fed forward or not, some feedback towards the reference, and a little more.
    """
    room = check.recent.shape[0]
    now = check.recent[check.count[0] % room]
    check.count[0] += 1
    for i in range(x.shape[0]):
        low, high = np.inf, -np.inf
        for a in (check.ahead[i], desired[2, i]):
            low, high = min(low, min(a, scale * a)), max(high, max(a, scale * a))
        now[0, i], now[1, i] = low, high
        now[2, i] = STRONGER * gains[0, i] * (desired[0, i] - x[i])
        now[3, i] = STRONGER * gains[1, i] * (desired[1, i] - xd[i])
    for i in range(x.shape[0]):
        low, high = now[0, i], now[1, i]
        back, forth = min(now[2, i], 0.0), max(now[2, i], 0.0)
        slower, faster = min(now[3, i], 0.0), max(now[3, i], 0.0)
        for k in range(min(check.count[0], room)):
            then = check.recent[k]
            low, high = min(low, then[0, i]), max(high, then[1, i])
            back, forth = min(back, then[2, i]), max(forth, then[2, i])
            slower, faster = min(slower, then[3, i]), max(faster, then[3, i])
        check.bounds[0, i] = low + back + slower - check.limits[0, i]
        check.bounds[1, i] = high + forth + faster + check.limits[0, i]


@kernel
def couple(check):
    """Factorise the inertia of the axes at force level; add to their efforts and ranges what the others do to them."""
    count, n = check.trim.shape[0], check.rows.shape[0]
    for i in range(count):
        for j in range(count):
            check.system[i, j] = check.inertia[check.rows[i], check.rows[j]]
        for j in range(count, n):
            other = check.rows[j]
            coupling = check.inertia[check.rows[i], other]
            check.coupling[i, j - count] = coupling
            check.efforts[check.rows[i]] += 0.5 * coupling * (check.bounds[0, other] + check.bounds[1, other])
    factorise_symmetric(check.system)
    solve_negative(check.system, check.coupling)
    for i in range(count):
        widening = 0.0
        for j in range(count, n):
            other = check.rows[j]
            widening += 0.5 * abs(check.coupling[i, j - count]) * (check.bounds[1, other] - check.bounds[0, other])
        check.found[LOW, i] = check.bounds[0, check.rows[i]] - widening
        check.found[HIGH, i] = check.bounds[1, check.rows[i]] + widening


@kernel
def explained(check, i, acceleration):
    """Return an acceleration of axis i at force level within its range."""
    return max(check.found[LOW, i], min(check.found[HIGH, i], acceleration))


@kernel
def find_accelerations(check, command):
    """Set the accelerations that the command causes; return the axis that is furthest beyond its range, and how far."""
    count = check.trim.shape[0]
    for i in range(count):
        row = check.rows[i]
        check.found[GIVEN, i] = command[row]
        check.right[i, 0] = check.efforts[row] + check.trim[i] - command[row] * check.area[row]
    solve_negative(check.system, check.right)
    worst, most = 0, -np.inf
    for i in range(count):
        asked = check.right[i, 0]
        check.found[ASKED, i] = asked
        off = max(asked - check.found[HIGH, i], check.found[LOW, i] - asked) / check.limits[0, check.rows[i]]
        if off > most:
            worst, most = i, off
    return worst, most


@kernel
def clamp_efforts(check, command):
    """Restrain the command to accelerations within their range; set `right` to what the model gives beyond it.

    Returns whether the command was changed by more than rounding, else it stays as it is.
    """
    count, changed = check.trim.shape[0], False
    for i in range(count):
        row = check.rows[i]
        effort, limit = check.efforts[row] + check.trim[i], check.limits[1, row]
        for j in range(count):
            effort += check.inertia[row, check.rows[j]] * explained(check, j, check.found[ASKED, j])
        check.right[i, 0] = max(-limit, min(limit, effort / check.area[row]))
        changed = changed or not abs(command[row] - check.right[i, 0]) <= ROUNDING * limit
    for i in range(count):
        row = check.rows[i]
        if changed:
            command[row] = check.right[i, 0]
        check.right[i, 0] = check.efforts[row] - check.right[i, 0] * check.area[row]
    return changed


@kernel
def learn(check):
    """Take a share of what the model lacks, -`right`, into `trim`, as far as no acceleration explains it."""
    count, share = check.trim.shape[0], check.learning[0]
    for i in range(count):
        check.trim[i] -= share * (check.right[i, 0] + check.trim[i])
    solve_negative(check.system, check.right)
    for i in range(count):
        for j in range(count):
            check.trim[i] -= (share * check.inertia[check.rows[i], check.rows[j]]
                              * explained(check, j, check.right[j, 0]))
