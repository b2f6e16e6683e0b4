"""The efforts of axes at force level that the reference and the errors explain.

The model gives the efforts f = h + M a of accelerations a (`EffortModel`).  What is explained is a range of a, see
`set_bounds`.  Of axes that are not at force level only that range is known, so that their coupling moves and widens
that of the others.
"""
import math
from typing import NamedTuple

import numpy as np

from ..algebra.linear import factorise_symmetric, solve_negative
from ..hydraulics.friction import sliding_friction
from ..rigid_body.entry import finite, inverse_checked, read_mass_matrix
from ..runtime.buffer import FLOAT, matrix, pack, records, stack
from ..runtime.compiler import entry, kernel
from ..runtime.status import OK
from .actuation import INT
from .error_range import STRONGER, set_bounds

ROUNDING = 1e-6         # of the limit
DEMANDED = 0.25         # of the feedback by the gains, that a law has to give towards its reference
GIVEN, ASKED, LOW, HIGH = range(4)      # rows of `found`


class EffortModel(NamedTuple):
    """What the model gives of n actuators that are the coordinates, at a measured state."""

    state: np.ndarray       # (2, n) positions and rates
    efforts: np.ndarray     # (n,) N, N m without acceleration, with friction at the rate of the reference
    inertia: np.ndarray     # (n, n)
    rest: np.ndarray        # (n,) zeros
    lack: np.ndarray        # (n,) N, N m that axes at force level need beyond that, see `judge_momentum`
    smooth: np.ndarray      # (2, n) the same, smoothed once and twice


# types of the fields of `EffortModel`
MODEL_TYPES = (FLOAT,) * 6


def make_effort_model(n):
    """Return the buffer of `EffortModel` of n actuators."""
    return pack(EffortModel(*map(np.zeros, ((2, n), n, (n, n), n, n, (2, n)))))


@kernel
def bind_effort_model(buffer):
    """Return the `EffortModel` of a buffer."""
    return EffortModel(matrix(buffer, 0)[0], records(buffer, 1, FLOAT)[0], matrix(buffer, 2)[0],
                       records(buffer, 3, FLOAT)[0], records(buffer, 4, FLOAT)[0], matrix(buffer, 5)[0])


@entry
def evaluate_efforts(tree, loops, buffer, axes, x, xd, rate):
    """Write the `EffortModel` at x, xd (n,) into its buffer; return a status.

    tree, loops  buffers of the machine; None: efforts without friction, and inertia, are there already
    axes         (n,) AXIS with the friction that the law compensates
    rate         (n,) of the reference
    """
    model, status = bind_effort_model(buffer), OK
    if tree is not None:
        status = inverse_checked(tree, loops, x, xd, model.rest, model.efforts)
        if status == OK:
            status = read_mass_matrix(tree, loops, x, model.inertia)    # clusters are closed at x
    for i in range(rate.shape[0]):
        model.state[0, i], model.state[1, i] = x[i], xd[i]
        model.efforts[i] += sliding_friction(axes[i], rate[i])
    return status


class EffortRange(NamedTuple):
    """Limits and memory of the k axes at force level among n actuators that are the coordinates; scratch."""

    rows: np.ndarray        # (n,) axes at force level, then the others
    limits: np.ndarray      # (3, n) accelerations given away from the reference; largest commands; speeds off the
                            # reference at which nothing more is given away
    area: np.ndarray        # (n,) m^2 of the piston where pressure is commanded, else 1
    recent: np.ndarray      # (N, 4, n) accelerations, see `set_bounds`
    count: np.ndarray       # (1,)
    efforts: np.ndarray     # (k,) scratch: of the model, what it lacks, and the coupling with axes that are not at
                            # force level
    ahead: np.ndarray       # (n,) acceleration of the reference at the time at which the law looks ahead, then with the
                            # feedback by the gains
    away: np.ndarray        # (n,) scratch: accelerations given away from the reference, unknown ones included
    bounds: np.ndarray      # (2, n) scratch: least and largest acceleration
    found: np.ndarray       # (4, k) command given, acceleration that it causes, and the range of that
    system: np.ndarray      # (k, k) scratch: factors of the inertia
    coupling: np.ndarray    # (k, n - k) scratch
    right: np.ndarray       # (k, 1) scratch: right-hand side


# types of the fields of `EffortRange`
TYPES = INT, *(FLOAT,) * 3, INT, *(FLOAT,) * 8


def make_effort_range(rows, count, room):
    """Return the buffer of `EffortRange` over `room` cycles: of rows (n,) the first `count` are at force level."""
    n, k = len(rows), count
    return pack(EffortRange(
        rows=np.array(rows, INT), limits=np.zeros((3, n)), area=np.ones(n), recent=np.zeros((room, 4, n)),
        count=np.zeros(1, INT), efforts=np.zeros(k), ahead=np.zeros(n), away=np.zeros(n), bounds=np.zeros((2, n)),
        found=np.zeros((4, k)), system=np.zeros((k, k)), coupling=np.zeros((k, n - k)), right=np.zeros((k, 1))))


@kernel
def bind_effort_range(buffer):
    """Return the `EffortRange` of a buffer."""
    return EffortRange(
        records(buffer, 0, INT)[0], matrix(buffer, 1)[0], records(buffer, 2, FLOAT)[0], stack(buffer, 3)[0],
        records(buffer, 4, INT)[0], records(buffer, 5, FLOAT)[0], records(buffer, 6, FLOAT)[0],
        records(buffer, 7, FLOAT)[0], matrix(buffer, 8)[0], matrix(buffer, 9)[0], matrix(buffer, 10)[0],
        matrix(buffer, 11)[0], matrix(buffer, 12)[0])


@entry
def restrain_efforts(buffer, model, gains, scale, measured, desired, others, command):
    """Take the efforts of a command (n,) into their range; return (axis at force level, how far it was beyond).

    The worst axis, and that distance as a share of the acceleration that may be given away; (-1, 0) where the command
    stays as it is, as one does that is not finite.

    buffer   of `EffortRange`, with the reference of this cycle
    model    buffer of `EffortModel` at the measured state
    gains    (2, n) accelerations of the law for an error and for its rate
    scale    of the accelerations that the law feeds forward
    measured (2, n) positions and rates, of which errors are explained
    desired  (3, n) reference
    others   (2, n) accelerations that may come from a motion that is not measured, and from integrals of the law
    """
    if finite(command) != OK:
        return -1, 0.0
    check, m = bind_effort_range(buffer), bind_effort_model(model)
    set_bounds(check, gains, scale, measured, desired, check.ahead, desired[2])
    for i in range(command.shape[0]):
        given, faster = check.limits[0, i], (m.state[1, i] - desired[1, i]) / check.limits[2, i]
        unknown = others[0, i]
        check.away[i] = given + unknown
        # an axis that is off the speed of its reference already is not driven farther away from it, but back
        back = DEMANDED * least_feedback(check, i)
        check.bounds[0, i] += max(back, 0.0) - given * max(0.0, min(1.0 + faster, 1.0)) - unknown
        check.bounds[1, i] += min(back, 0.0) + given * max(0.0, min(1.0 - faster, 1.0)) + unknown
        check.ahead[i] += feedback(gains, i, desired, measured)
    couple(check, m)
    explain_integrals(check, m.lack, others[1])
    worst, off = find_accelerations(check, command)
    changed = clamp_efforts(check, m.inertia, command)
    return (worst, off) if changed else (-1, 0.0)


@kernel
def feedback(gains, i, desired, measured):
    """Return the acceleration of axis i towards its reference, by the gains."""
    return gains[0, i] * (desired[0, i] - measured[0, i]) + gains[1, i] * (desired[1, i] - measured[1, i])


@kernel
def least_feedback(check, i):
    """Return the least acceleration of axis i by the gains within the last cycles; 0 where its sign changed."""
    low, high = np.inf, -np.inf
    for k in range(min(check.count[0], check.recent.shape[0])):
        given = (check.recent[k, 2, i] + check.recent[k, 3, i]) / STRONGER
        low, high = min(low, given), max(high, given)
    return max(low, 0.0) + min(high, 0.0)


@kernel
def couple(check, m):
    """Factorise the inertia of the axes at force level; add to their efforts and ranges what the others do to them."""
    count, n = check.efforts.shape[0], check.rows.shape[0]
    for i in range(count):
        row = check.rows[i]
        check.efforts[i] = m.efforts[row] + m.lack[row]
        for j in range(count):
            check.system[i, j] = m.inertia[row, check.rows[j]]
        for j in range(count, n):
            other = check.rows[j]
            coupling = m.inertia[row, other]
            check.coupling[i, j - count] = coupling
            check.efforts[i] += 0.5 * coupling * (check.bounds[0, other] + check.bounds[1, other])
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
def explain_integrals(check, lack, integrals):
    """Widen the range by what integrals of a law, none up to these (n,), and the observer of lack (n,) differ in.

    Both gather what the model lacks, each in its own time.
    """
    count = check.efforts.shape[0]
    for i in range(count):
        check.right[i, 0] = lack[check.rows[i]]
    solve_negative(check.system, check.right)
    for i in range(count):
        integral, without = integrals[check.rows[i]], check.right[i, 0]
        check.found[LOW, i] += min(without + min(integral, 0.0), 0.0)
        check.found[HIGH, i] += max(without + max(integral, 0.0), 0.0)


@kernel
def explained(check, i, acceleration):
    """Return an acceleration of axis i at force level within its range."""
    return max(check.found[LOW, i], min(check.found[HIGH, i], acceleration))


@kernel
def restrained(check, i):
    """Return the acceleration that replaces what is asked of axis i.

    The farther it is beyond its range the less it counts: beyond it by what may be given away that of the reference
    takes its place, with the feedback by the gains.
    """
    row, asked = check.rows[i], check.found[ASKED, i]
    kept, fed = explained(check, i, asked), explained(check, i, check.ahead[row])
    return fed + max(1.0 - abs(asked - kept) / check.away[row], 0.0) * (kept - fed) if asked != kept else kept


@kernel
def find_accelerations(check, command):
    """Set the accelerations that the command causes; return the axis that is furthest beyond its range, and how far."""
    count = check.efforts.shape[0]
    for i in range(count):
        row = check.rows[i]
        check.found[GIVEN, i] = command[row]
        check.right[i, 0] = check.efforts[i] - command[row] * check.area[row]
    solve_negative(check.system, check.right)
    worst, most = 0, -np.inf
    for i in range(count):
        asked = check.right[i, 0]
        check.found[ASKED, i] = asked
        off = max(asked - check.found[HIGH, i], check.found[LOW, i] - asked) / check.away[check.rows[i]]
        if off > most:
            worst, most = i, off
    return worst, most


@kernel
def clamp_efforts(check, inertia, command):
    """Restrain the command to accelerations within their range.

    Where an effort is at its limit all accelerations are reduced alike: axes are coupled.
    Returns whether the command was changed by more than rounding, else it stays as it is.
    """
    count, changed, share = check.efforts.shape[0], False, 1.0
    for i in range(count):
        row = check.rows[i]
        inertial, limit = 0.0, check.limits[1, row] * check.area[row]
        for j in range(count):
            inertial += inertia[row, check.rows[j]] * restrained(check, j)
        rest = max(-limit, min(limit, check.efforts[i]))
        if abs(rest + inertial) > limit:
            share = min(share, (limit - math.copysign(rest, rest * inertial)) / abs(inertial))
        check.right[i, 0] = inertial
    for i in range(count):
        row = check.rows[i]
        limit = check.limits[1, row]
        effort = (check.efforts[i] + share * check.right[i, 0]) / check.area[row]
        # what is not a number is for the output gate to reject
        check.right[i, 0] = max(-limit, min(limit, effort)) if math.isfinite(effort) else effort
        changed = changed or not abs(command[row] - check.right[i, 0]) <= ROUNDING * limit
    for i in range(count):
        row = check.rows[i]
        if changed:
            command[row] = check.right[i, 0]
    return changed
