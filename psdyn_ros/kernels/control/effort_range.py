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
from .actuation import INT, beyond_rest
from .error_range import STRONGER, set_bounds

ROUNDING = 1e-6         # of the limit
DEMANDED = 0.25         # of the feedback by the gains, that a law has to give towards its reference
RESTING = 0.5           # of the speed of standstill, that an axis may be given while the reference rests
SETTLING_S = 0.5        # from which on it does
HELD = 0.12             # of the friction of seals that holds an axis at rest even where it is known badly
GROSS = 4.0             # times what may be given away, which count as so many times that
STOP_ERROR = 0.0005     # m or rad, error that a stop may add to that with which it begins
FORGET_S = 300.0        # in which errors are forgotten that an integral may have gathered
LONGEST_STEP = 0.1      # s between two states
GIVEN, ASKED, LOW, HIGH = range(4)      # rows of `found`
TIME, RESTED_S, WRONG_S, STOPPING = range(4)        # of the memory


class EffortModel(NamedTuple):
    """What the model gives of n coordinates that have an actuator each, at a measured state."""

    state: np.ndarray       # (2, n) positions and rates
    efforts: np.ndarray     # (n,) N, N m without acceleration, with friction at the rate of the reference
    inertia: np.ndarray     # (n, n)
    rest: np.ndarray        # (n,) zeros
    lack: np.ndarray        # (n,) N, N m that axes at force level need beyond that, see `judge_momentum`
    smooth: np.ndarray      # (2, n) the same, smoothed once and twice
    dry: np.ndarray         # (n,) N, N m of the efforts that overcome dry friction


# types of the fields of `EffortModel`
MODEL_TYPES = (FLOAT,) * 7


def make_effort_model(n):
    """Return the buffer of `EffortModel` of n coordinates."""
    return pack(EffortModel(*map(np.zeros, ((2, n), n, (n, n), n, n, (2, n), n))))


@kernel
def bind_effort_model(buffer):
    """Return the `EffortModel` of a buffer."""
    return EffortModel(matrix(buffer, 0)[0], records(buffer, 1, FLOAT)[0], matrix(buffer, 2)[0],
                       records(buffer, 3, FLOAT)[0], records(buffer, 4, FLOAT)[0], matrix(buffer, 5)[0],
                       records(buffer, 6, FLOAT)[0])


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
        friction = sliding_friction(axes[i], rate[i])
        model.efforts[i] += friction
        model.dry[i] = friction - axes[i]['viscous'] * rate[i]
    return status


class EffortRange(NamedTuple):
    """Limits and memory of the k axes at force level among n coordinates; scratch."""

    rows: np.ndarray        # (n,) axes at force level, then the others
    limits: np.ndarray      # (3, n) accelerations given away from the reference; largest commands; speeds off the
                            # reference at which nothing more is given away
    standstill: np.ndarray  # (n,) those speeds in motion
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
    memory: np.ndarray      # (4,) s of the last state; for which the reference rests; for which the command is out of
                            # its range; whether it is a stop
    sum: np.ndarray         # (n,) m s, rad s: integrals of the errors, not those of the law, which may be wrong
    errors: np.ndarray      # (n,) m, rad when the stop began
    measured: np.ndarray    # (2, n) scratch: as of `restrain_efforts`
    desired: np.ndarray     # (3, n) scratch: the same
    others: np.ndarray      # (2, n) scratch: the same
    friction: np.ndarray    # (n,) N, N m with which seals hold an axis at rest


# types of the fields of `EffortRange`
TYPES = INT, *(FLOAT,) * 4, INT, *(FLOAT,) * 15


def make_effort_range(rows, count, room):
    """Return the buffer of `EffortRange` over `room` cycles: of rows (n,) the first `count` are at force level."""
    n, k = len(rows), count
    return pack(EffortRange(
        rows=np.array(rows, INT), limits=np.zeros((3, n)), standstill=np.zeros(n), area=np.ones(n),
        recent=np.zeros((room, 4, n)), count=np.zeros(1, INT), efforts=np.zeros(k), ahead=np.zeros(n),
        away=np.zeros(n), bounds=np.zeros((2, n)), found=np.zeros((4, k)), system=np.zeros((k, k)),
        coupling=np.zeros((k, n - k)), right=np.zeros((k, 1)), memory=np.zeros(4), sum=np.zeros(n),
        errors=np.zeros(n), measured=np.zeros((2, n)), desired=np.zeros((3, n)), others=np.zeros((2, n)),
        friction=np.zeros(n)))


@kernel
def bind_effort_range(buffer):
    """Return the `EffortRange` of a buffer."""
    return EffortRange(
        records(buffer, 0, INT)[0], matrix(buffer, 1)[0], records(buffer, 2, FLOAT)[0], records(buffer, 3, FLOAT)[0],
        stack(buffer, 4)[0], records(buffer, 5, INT)[0], records(buffer, 6, FLOAT)[0], records(buffer, 7, FLOAT)[0],
        records(buffer, 8, FLOAT)[0], matrix(buffer, 9)[0], matrix(buffer, 10)[0], matrix(buffer, 11)[0],
        matrix(buffer, 12)[0], matrix(buffer, 13)[0], records(buffer, 14, FLOAT)[0], records(buffer, 15, FLOAT)[0],
        records(buffer, 16, FLOAT)[0], matrix(buffer, 17)[0], matrix(buffer, 18)[0], matrix(buffer, 19)[0],
        records(buffer, 20, FLOAT)[0])


class Motion(NamedTuple):
    """A measured state of n axes under a law."""

    time: float             # s
    period: float           # s of the controller
    x: np.ndarray           # (n,) measured
    xd: np.ndarray          # (n,) measured
    desired: np.ndarray     # (3, n) reference
    ahead: np.ndarray       # (n,) acceleration of the reference at the time at which the law looks ahead
    unknown: np.ndarray     # (n,) accelerations that may come from a motion that is not measured
    stopping: bool          # whether it is a stop


@entry
def restrain_law(buffer, model, gains, integral_gains, scale, motion, command):
    """As `restrain_efforts`, of a command at a measured state, after those before; return the axis.

    integral_gains   (n,) accelerations of the law for an integral of errors
    motion           `Motion`
    The memory of `buffer` counts for how long the command is out of its range.
    """
    check, t, n = bind_effort_range(buffer), motion.time, command.shape[0]
    memory, fresh = check.memory, t != check.memory[TIME]
    dt = min(max(t - memory[TIME], 0.0), LONGEST_STEP) if memory[TIME] == memory[TIME] else 0.0
    rests = True
    for i in range(n):
        for row in range(3):
            check.desired[row, i] = motion.desired[row, i]
        check.measured[0, i], check.measured[1, i] = motion.x[i], motion.xd[i]
        error = check.desired[0, i] - motion.x[i]
        if check.friction[i] > 0.0 and check.desired[1, i] == 0.0:
            check.sum[i] += dt * beyond_rest(error)         # as the integral of the law, which rests
        else:
            check.sum[i] += dt * (error - check.sum[i] / FORGET_S)
        rests = rests and check.desired[1, i] == 0.0
    memory[RESTED_S] = memory[RESTED_S] + dt if rests else 0.0
    rests = memory[RESTED_S] > SETTLING_S
    for i in range(n):
        # at rest a law that is late would swing up to that speed, and beyond
        check.limits[2, i] = check.standstill[i] * (RESTING if rests else 1.0)
        check.ahead[i], check.others[0, i] = motion.ahead[i], motion.unknown[i]
        check.others[1, i] = (1.0 if rests else STRONGER) * integral_gains[i] * check.sum[i]
    limit_errors(check, motion.stopping)
    worst, off = restrain_efforts(buffer, model, gains, scale, check.measured, check.desired, check.others, command)
    if worst < 0 or off <= 0.0:
        memory[WRONG_S] = 0.0
    elif fresh:
        memory[WRONG_S] += motion.period * min(off, GROSS)      # a repeated state is no further evidence
    memory[TIME] = t
    return worst


@kernel
def limit_errors(check, stopping):
    """Let the errors of positions count in a stop only as far as they were there when it began."""
    for i in range(check.sum.shape[0]):
        error = check.desired[0, i] - check.measured[0, i]
        if check.memory[STOPPING] == 0.0:
            check.errors[i] = error
        if stopping:
            most = abs(check.errors[i]) + STOP_ERROR
            check.desired[0, i] = check.measured[0, i] + min(max(error, -most), most)
    check.memory[STOPPING] = 1.0 if stopping else 0.0


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
    explain_seals(check, m.dry, measured[1], desired[1])
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
def explain_seals(check, dry, measured, desired):
    """Widen the range by what the seals of axes hold that rest, as measured rates (n,) and those desired (n,) say.

    dry (n,) of their friction is overcome already; of what is left the share `HELD` counts.
    """
    count = check.efforts.shape[0]
    for j in range(count):
        row = check.rows[j]
        rest = HELD * (1.0 - max(abs(measured[row]), abs(desired[row])) / check.standstill[row])
        if check.friction[row] == 0.0 or rest <= 0.0:
            continue
        for i in range(count):
            check.right[i, 0] = -1.0 if i == j else 0.0
        solve_negative(check.system, check.right)
        up, down = rest * (check.friction[row] - dry[row]), rest * (check.friction[row] + dry[row])
        for i in range(count):
            moved = check.right[i, 0]       # acceleration of a force on axis j
            check.found[LOW, i] -= max(moved * down, -moved * up)
            check.found[HIGH, i] += max(moved * up, -moved * down)


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
