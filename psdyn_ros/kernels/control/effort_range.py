"""The efforts of axes at force level that the reference and the errors explain.

The model gives the efforts f = h + M a of accelerations a.  What is explained is a range of a, see `set_bounds`.  Of
axes that are not at force level only that range is known, so that their coupling moves and widens that of the others.
"""
from typing import NamedTuple

import numpy as np

from ..algebra.linear import factorise_symmetric, solve_negative
from ..hydraulics.friction import sliding_friction
from ..rigid_body.entry import finite
from ..runtime.compiler import entry, kernel
from ..runtime.status import OK

STRONGER = 2.0          # times the feedback by the gains, that an effort may give towards the reference
ROUNDING = 1e-6         # of the limit
GIVEN, ASKED, LOW, HIGH = range(4)      # rows of `found`


class EffortModel(NamedTuple):
    """Efforts of a machine whose actuators are its n coordinates, without acceleration; its inertia; its friction."""

    efforts: np.ndarray     # (n,) N, N m without friction
    inertia: np.ndarray     # (n, n)
    axes: np.ndarray        # (n,) AXIS
    area: np.ndarray        # (n,) m^2 of the piston where pressure is commanded, else 1


class Feedback(NamedTuple):
    """What a law feeds forward and back."""

    gains: np.ndarray       # (2, n) accelerations for an error and for its rate
    ahead: np.ndarray       # (n,) acceleration of the reference at the time at which the law looks ahead
    scale: float            # of the accelerations that are fed forward


class EffortRange(NamedTuple):
    """Limits and memory of the k axes at force level among n, and scratch."""

    rows: np.ndarray        # (n,) axes at force level, then the others
    limits: np.ndarray      # (2, n) accelerations given away from the reference; largest commands
    recent: np.ndarray      # (N, 4, n) accelerations: least and largest of the reference, of the error, of its rate
    count: np.ndarray       # (1,) cycles until now; the last N of them are in `recent`
    trim: np.ndarray        # (k,) efforts that the model lacks
    bounds: np.ndarray      # (2, n) scratch: least and largest acceleration
    found: np.ndarray       # (4, k) command given, acceleration that it causes, and the range of that
    system: np.ndarray      # (k, k) scratch: factors of the inertia
    coupling: np.ndarray    # (k, n - k) scratch
    right: np.ndarray       # (k, 1) scratch: right-hand side


@entry
def restrain_efforts(check, model, feedback, x, xd, desired, command, learning):
    """Take the efforts of a command (n,) into their range; return (axis at force level, how far it was beyond).

    The worst axis, and that distance as a share of the acceleration that may be given away; (-1, 0) where the command
    stays as it is, as one does that is not finite.

    check, model, feedback  `EffortRange`, `EffortModel`, `Feedback`
    x, xd     (n,) measured
    desired   (3, n) reference
    learning  share of what the model lacks that is learnt in this cycle
    """
    if finite(command) != OK:
        return -1, 0.0
    set_bounds(check, feedback, x, xd, desired)
    for i in range(command.shape[0]):
        model.efforts[i] += sliding_friction(model.axes[i], desired[1, i])
    couple(check, model)
    worst, off = find_accelerations(check, model, command)
    restrained = keep(check, model, command)
    learn(check, model, learning)
    return (worst, off) if restrained else (-1, 0.0)


@kernel
def set_bounds(check, feedback, x, xd, desired):
    """Set the least and the largest acceleration that a sound law asks for, by the last cycles.

    That of the reference, fed forward or not, some feedback towards the reference, and a little more.
    """
    room = check.recent.shape[0]
    now = check.recent[check.count[0] % room]
    check.count[0] += 1
    for i in range(x.shape[0]):
        low, high = np.inf, -np.inf
        for a in (feedback.ahead[i], desired[2, i]):
            low, high = min(low, min(a, feedback.scale * a)), max(high, max(a, feedback.scale * a))
        now[0, i], now[1, i] = low, high
        now[2, i] = STRONGER * feedback.gains[0, i] * (desired[0, i] - x[i])
        now[3, i] = STRONGER * feedback.gains[1, i] * (desired[1, i] - xd[i])
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
def couple(check, model):
    """Factorise the inertia of the axes at force level; add to their efforts and ranges what the others do to them."""
    count, n = check.trim.shape[0], check.rows.shape[0]
    for i in range(count):
        for j in range(count):
            check.system[i, j] = model.inertia[check.rows[i], check.rows[j]]
        for j in range(count, n):
            other = check.rows[j]
            coupling = model.inertia[check.rows[i], other]
            check.coupling[i, j - count] = coupling
            model.efforts[check.rows[i]] += 0.5 * coupling * (check.bounds[0, other] + check.bounds[1, other])
    factorise_symmetric(check.system)
    solve_negative(check.system, check.coupling)
    for i in range(count):
        spread = 0.0
        for j in range(count, n):
            other = check.rows[j]
            spread += 0.5 * abs(check.coupling[i, j - count]) * (check.bounds[1, other] - check.bounds[0, other])
        check.found[LOW, i] = check.bounds[0, check.rows[i]] - spread
        check.found[HIGH, i] = check.bounds[1, check.rows[i]] + spread


@kernel
def within(check, i, acceleration):
    """Return an acceleration of axis i at force level within its range."""
    return max(check.found[LOW, i], min(check.found[HIGH, i], acceleration))


@kernel
def find_accelerations(check, model, command):
    """Set the accelerations that the command causes; return the axis that is furthest beyond its range, and how far."""
    count = check.trim.shape[0]
    for i in range(count):
        row = check.rows[i]
        check.found[GIVEN, i] = command[row]
        check.right[i, 0] = model.efforts[row] + check.trim[i] - command[row] * model.area[row]
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
def keep(check, model, command):
    """Restrain the command to accelerations within their range; set `right` to what the model gives beyond it.

    Returns whether the command was changed by more than rounding, else it stays as it is.
    """
    count, changed = check.trim.shape[0], False
    for i in range(count):
        row = check.rows[i]
        effort, limit = model.efforts[row] + check.trim[i], check.limits[1, row]
        for j in range(count):
            effort += model.inertia[row, check.rows[j]] * within(check, j, check.found[ASKED, j])
        check.right[i, 0] = max(-limit, min(limit, effort / model.area[row]))
        changed = changed or not abs(command[row] - check.right[i, 0]) <= ROUNDING * limit
    for i in range(count):
        row = check.rows[i]
        if changed:
            command[row] = check.right[i, 0]
        check.right[i, 0] = model.efforts[row] - check.right[i, 0] * model.area[row]
    return changed


@kernel
def learn(check, model, share):
    """Take a share of what the model lacks, -`right`, into `trim`, as far as no acceleration explains it."""
    count = check.trim.shape[0]
    for i in range(count):
        check.trim[i] -= share * (check.right[i, 0] + check.trim[i])
    solve_negative(check.system, check.right)
    for i in range(count):
        for j in range(count):
            check.trim[i] -= (share * model.inertia[check.rows[i], check.rows[j]]
                              * within(check, j, check.right[j, 0]))
