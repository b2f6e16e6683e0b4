"""Plausibility of measured speeds of actuators: beside the rated one, those of reference and stop, and forces.

Forces beyond those that carry the load and overcome friction change the speed: what is off by the momentum of an axis
is smoothed over a time, and compared with what was learnt.
"""
import math
from typing import NamedTuple

import numpy as np

from ..algebra.linear import factorise_symmetric, solve_negative
from ..runtime.buffer import FLOAT, matrix, pack, records
from ..runtime.compiler import entry, kernel
from .actuation import INT
from .effort_range import bind_effort_model
from .plausibility import largest, median

SOUND, TOO_FAST, APART, NOT_STANDING = range(4)
FAST_STATES, APART_STATES, RESTED_S = range(3)      # of the memory
IN_A_ROW = 3                # states
APART_S = 0.05              # s off the speed of the reference: static friction lets go in less
RESTING_S = 0.5             # s of rest of machine and reference, from which on both have to rest
SMOOTHING_S = 0.05          # s over which the speed at rest, and that of a stop, is smoothed
SLIP_S = 0.2                # s of the same at rest, of a speed that no command asks for: a slip is over sooner
SETTLING_S = 0.5            # of rest of the reference, in which the largest swing is that of the motion before
GROWTH = 1.25               # times that, from which it grows
GROWTH_OF_SWING = 1.5       # times the half swing to the same side before, both to this side and to the other one
LONGEST_HALF_SWING_S = 0.25     # what is slower may be that of a reference
TURNED = 0.15               # of the speed of `limits`, beyond which a swing has turned: noise turns more often
SIDE, LASTED_S, PEAK, ONE_BEFORE, TWO_BEFORE, THREE_BEFORE, SMOOTH = range(7)    # rows of the half swings
SWING_S = 0.02              # over which the speed of a swing is smoothed
REST = 0.5                  # of the speed that is allowed at rest, at which the machine rests

# of forces and the momentum of axes
NOT_JUDGED, BEGUN, EXPLAINED = -3, -2, -1
WAITED_S, COMPARED_S = range(2)         # of the memory
OFF, LACK, MODEL, USUAL, IMPULSE, LAST, SECOND_LAST, NOISE, INTEGRAL = range(9)    # rows of the forces
UNEXPLAINED, ALLOWED = range(2)         # rows of `found`
HORIZON_S = 0.1             # over which forces and speeds are compared
STEP_S = 0.01               # between two comparisons
ONE_SPEED_S = 1e-12         # of comparisons, where there was one speed only
LEARNING_S = 0.5            # in which what the model lacks is learnt
INACCURACY = 0.1            # of the change of the forces of the model meanwhile
LONGEST_STEP_S = 0.1        # between two cycles, else the comparison begins again
NOISE_S = 2.0               # over which the mean square of what is not explained is learnt, the noise of velocities
NOISE_SHARE = 5.0           # of its root, that is allowed where it is more than the declared residual, and
NOISE_MOST = 2.0            # of that, at most


@kernel
def smoothed(speed, rate, limit, asked, command, period):
    """Return the smoothed speed of an axis whose reference rests, with its next rate.

    A machine that static friction lets go slips as far as the oil springs back, faster than `limit` [m/s or rad/s],
    which is allowed at rest; asked: speed that a command of 1 asks for, which would go on.
    """
    slips = asked * abs(command) < limit
    return speed + min(period / (SLIP_S if slips else SMOOTHING_S), 1.0) * (rate - speed)


@entry
def judge_speeds(limits, smooth, memory, rates, desired, command, period, stopping):
    """Return (SOUND or what is wrong, actuator) of rates (n,) beside those of the reference (n,).

    limits    (4, n) m/s, rad/s: fastest, off the reference, at rest; asked for by a command of 1, inf: by any
    smooth    (n,) rates in the meantime
    memory    (3,) states in a row too fast, and apart; s at rest in a row, since what swings after a motion is no fault
    command   (n,) that is given
    period    s since the state before
    stopping  whether the machine is brought to rest: it may then be slower than its reference
    """
    apart, most = 0, -1.0
    for i in range(rates.shape[0]):
        off = abs(rates[i] - desired[i]) / limits[1, i]
        if off > most:
            apart, most = i, off
    fast, share = largest(rates, limits[0])
    memory[FAST_STATES] = memory[FAST_STATES] + 1.0 if share > 1.0 else 0.0
    memory[APART_STATES] = memory[APART_STATES] + 1.0 if most > 1.0 else 0.0
    if memory[FAST_STATES] >= IN_A_ROW:
        return TOO_FAST, fast
    if memory[APART_STATES] * period >= APART_S and not stopping:
        return APART, apart
    moves = False
    for i in range(rates.shape[0]):
        smooth[i] = smoothed(smooth[i], rates[i], limits[2, i], limits[3, i], command[i], period)
        moves = moves or desired[i] != 0.0
    row, share = largest(smooth, limits[2])
    if moves:
        memory[RESTED_S] = 0.0
    elif memory[RESTED_S] < RESTING_S:
        memory[RESTED_S] = memory[RESTED_S] + period if share < REST else 0.0
    if memory[RESTED_S] < RESTING_S or share <= 1.0:
        return SOUND, -1
    return NOT_STANDING, row


@entry
def judge_stop(limits, stop, rates, asked, elapsed, period):
    """Return the actuator that is furthest beyond the speed that a stop leaves it; -1: none is beyond.

    limits   (3, n) deceleration that is demanded; speed that a stop may add, and ends with; speed of standstill
    stop     (3, n) |rates| at the beginning of the stop, smoothed rates, and speed that is left, which is set
    rates    (n,) measured; a speed counts that is beyond by itself and smoothed
    asked    (n,) of the reference: on a path all axes come to rest together, so that most may slow down later
    elapsed  s in which the deceleration must have acted
    """
    begin, smooth, left = stop[0], stop[1], stop[2]
    worst, most = -1, 1.0
    for i in range(rates.shape[0]):
        smooth[i] += min(period / SMOOTHING_S, 1.0) * (rates[i] - smooth[i])
        slowed = elapsed * limits[0, i]
        begin[i] = max(begin[i], abs(asked[i]) + slowed)
        left[i] = max(begin[i] - slowed + limits[1, i], limits[2, i])
        share = min(abs(smooth[i]), abs(rates[i])) / left[i]        # an axis that slows down is slower than its mean
        if share > most:
            worst, most = i, share
    return worst


@entry
def judge_swing(limits, swing, rested, halves, rates, desired, command, period):
    """Return the actuators (at rest, in motion) that swing most beyond what they may: while their reference rests, and
    about its speed; -1: none does.

    limits   (3, n) speed that a machine may have anyway at rest; that a command of 1 asks for, inf: any; and about the
             speed of the reference
    swing    (3, n) smoothed rates, their largest speeds as the reference came to rest, and the speed that is allowed
    rested   (1,) s for which the reference rests
    halves   (7, n) of the present half swing its side, for how many s it lasts, and its largest speed, as of the three
             before; no number: they lasted too long; and the smoothed speed
    rates    (n,)
    desired  (n,) rates of the reference
    command  (n,) that is given
    period   s since the state before
    """
    moves, settling = False, rested[0] < SETTLING_S
    in_motion, most = -1, 1.0
    for i in range(rates.shape[0]):
        moves = moves or desired[i] != 0.0
        share = growth_of_swing(halves[:, i], rates[i] - desired[i], limits[2, i], period)
        if share > most:
            in_motion, most = i, share
        swing[0, i] = smoothed(swing[0, i], rates[i], limits[0, i], limits[1, i], command[i], period)
    for i in range(rates.shape[0]):
        if moves:
            swing[1, i] = abs(swing[0, i])
        elif settling:
            swing[1, i] = max(swing[1, i], abs(swing[0, i]))
        swing[2, i] = max(GROWTH * swing[1, i], limits[0, i])
    if moves:
        rested[0] = 0.0
    elif settling:
        rested[0] += period
    if moves or settling:
        return -1, in_motion
    row, share = largest(swing[0], swing[2])
    return row if share > 1.0 else -1, in_motion


@kernel
def growth_of_swing(half, off, anyway, period):
    """Return the speed of a half swing as a share of that with which the swing grows; 0 where it does not.

    half    (7,) as `judge_swing`
    off     speed off that of the reference
    anyway  that it may be off in any case
    """
    half[SMOOTH] += min(period / SWING_S, 1.0) * (off - half[SMOOTH])
    off = half[SMOOTH]
    half[LASTED_S] += period
    if abs(off) > TURNED * anyway and off * half[SIDE] <= 0.0:
        follows = half[SIDE] != 0.0 and half[LASTED_S] <= LONGEST_HALF_SWING_S
        half[THREE_BEFORE] = half[TWO_BEFORE] if follows else np.nan
        half[TWO_BEFORE] = half[ONE_BEFORE] if follows else np.nan
        half[ONE_BEFORE] = half[PEAK] if follows else np.nan
        half[SIDE], half[LASTED_S], half[PEAK] = math.copysign(1.0, off), 0.0, 0.0
    half[PEAK] = max(half[PEAK], off * half[SIDE])
    if half[LASTED_S] > LONGEST_HALF_SWING_S or not half[ONE_BEFORE] > GROWTH_OF_SWING * half[THREE_BEFORE]:
        return 0.0
    return half[PEAK] / max(GROWTH_OF_SWING * half[TWO_BEFORE], anyway)


class Momentum(NamedTuple):
    """Memory and limits of the k axes at force level among n coordinates; scratch."""

    rows: np.ndarray        # (k,) coordinates
    area: np.ndarray        # (k,) m^2 of the piston where pressure is commanded, else 1
    friction: np.ndarray    # (k,) N, N m by which that of the machine may differ from that of the model
    rest: np.ndarray        # (n,) speeds at which the machine stands
    residual: np.ndarray    # (1,) change of a speed within `HORIZON_S` that is allowed beyond that
    memory: np.ndarray      # (2,) s since the last comparison, and of comparisons; 0: there was none
    speed: np.ndarray       # (3, n) at the last comparison, and smoothed over `HORIZON_S`; difference of them, learnt
    forces: np.ndarray      # (9, k) beyond what moved, smoothed, and of it learnt; of the model at the last comparison,
                            # and of it learnt; commands times s since the last comparison; beyond what moved between
                            # the last two, and the two before; mean square of `found`; accelerations by the integral of
                            # the law, which are set before the first comparison
    found: np.ndarray       # (2, k) changes of the speed that are not explained, and that are allowed
    system: np.ndarray      # (k, k) scratch: factors of the inertia
    right: np.ndarray       # (k, 1) scratch: right-hand side


# types of the fields of `Momentum`
TYPES = INT, *(FLOAT,) * 10


def make_momentum(rows, n):
    """Return the buffer of `Momentum` of n coordinates; rows (k,): those at force level."""
    k = len(rows)
    return pack(Momentum(
        rows=np.array(rows, INT), area=np.ones(k), friction=np.zeros(k), rest=np.zeros(n), residual=np.zeros(1),
        memory=np.zeros(2), speed=np.zeros((3, n)), forces=np.zeros((9, k)), found=np.zeros((2, k)),
        system=np.zeros((k, k)), right=np.zeros((k, 1))))


@kernel
def bind_momentum(buffer):
    """Return the `Momentum` of a buffer."""
    return Momentum(
        records(buffer, 0, INT)[0], records(buffer, 1, FLOAT)[0], records(buffer, 2, FLOAT)[0],
        records(buffer, 3, FLOAT)[0], records(buffer, 4, FLOAT)[0], records(buffer, 5, FLOAT)[0],
        matrix(buffer, 6)[0], matrix(buffer, 7)[0], matrix(buffer, 8)[0], matrix(buffer, 9)[0], matrix(buffer, 10)[0])


@entry
def judge_momentum(buffer, model, command, speed, desired, unknown, dt):
    """Return the axis at force level whose motion its force does not explain; EXPLAINED: none.

    NOT_JUDGED: it is not time yet. BEGUN: the comparison begins again, after too long a time or without a command.

    buffer   of `Momentum`
    model    buffer of `EffortModel` at the measured position, whose lack is set
    command  (n,) since the last cycle, NaN: left out
    speed    (n,) measured
    desired  (n,) rates of the reference
    unknown  (n,) accelerations that may come from a motion that is not measured
    dt       s since the last cycle
    """
    s = bind_momentum(buffer)
    memory, count = s.memory, s.rows.shape[0]
    if memory[COMPARED_S] == 0.0:
        for i in range(count):
            s.forces[OFF, i], s.forces[LACK, i], s.forces[USUAL, i] = 0.0, 0.0, 0.0
            s.forces[LAST, i], s.forces[SECOND_LAST, i] = 0.0, 0.0
    given = 0.0
    for i in range(count):
        given += command[s.rows[i]]
    if not (0.0 <= dt <= LONGEST_STEP_S and math.isfinite(given)):
        memory[WAITED_S], memory[COMPARED_S] = 0.0, 0.0
        for i in range(count):
            s.forces[IMPULSE, i] = 0.0
        return BEGUN
    memory[WAITED_S] += dt
    for i in range(count):
        s.forces[IMPULSE, i] += dt * command[s.rows[i]]
    if memory[WAITED_S] < STEP_S:
        return NOT_JUDGED
    m = bind_effort_model(model)
    compare_momentum(s, m, speed, memory[WAITED_S], rests(s, speed, desired))
    return largest_change(s, unknown)


@kernel
def rests(s, speed, desired):
    """Return whether machine and reference stand."""
    stands = True
    for i in range(desired.shape[0]):
        stands = stands and desired[i] == 0.0 and abs(speed[i]) < s.rest[i]
    return stands


@kernel
def compare_momentum(s, m, speed, dt, stands):
    """Smooth the forces beyond those of the model m that changed no speed within dt [s], and learn of them.

    All is learnt in the beginning: over `HORIZON_S`, since a motion may accelerate; at rest what the integral of a law
    gives, as the rest may answer the steps of a coarse encoder: until more is learnt, the weight of the model is as
    inaccurate as its changes are later. `lack`, of that integral, begins at 0 where that does.
    Leaves the inertia of these axes in `system`, and what was not learnt yet in `right`.
    """
    forces, count = s.forces, s.rows.shape[0]
    compared = s.memory[COMPARED_S]
    new, learnt = min(dt / HORIZON_S, 1.0), min(dt / LEARNING_S, 1.0)
    if compared < HORIZON_S:
        new, learnt = dt / (compared + dt), 1.0
    for i in range(count):
        row = s.rows[i]
        given, model = forces[IMPULSE, i] / dt * s.area[i], m.efforts[row]
        excess = given - model
        if compared > 0.0:
            # forces of the model change on the way
            excess += 0.5 * (model - forces[MODEL, i])
            for j in range(speed.shape[0]):
                excess -= m.inertia[row, j] * (speed[j] - s.speed[0, j]) / dt
            share = min(dt / HORIZON_S, 1.0)
            # a velocity that begins to lie is a jump of the momentum, and the lightest of coupled axes is thrown by it
            middle = median(excess, forces[LAST, i], forces[SECOND_LAST, i])
            forces[LAST, i], forces[SECOND_LAST, i] = excess, forces[LAST, i]
            m.smooth[0, row] += share * (middle - m.smooth[0, row])
            m.smooth[1, row] += share * (m.smooth[0, row] - m.smooth[1, row])
            # without the lag of one that grows evenly, which moves the lightest of coupled axes most
            m.lack[row] = 2.0 * m.smooth[0, row] - m.smooth[1, row]
        elif stands:
            excess = 0.0
            for j in range(count):
                excess += m.inertia[row, s.rows[j]] * forces[INTEGRAL, j]
        forces[OFF, i] += new * (excess - forces[OFF, i])
        forces[LACK, i] += learnt * (forces[OFF, i] - forces[LACK, i])
        if compared > 0.0 or not stands:
            forces[USUAL, i] += learnt * (model - forces[USUAL, i])
        forces[MODEL, i], forces[IMPULSE, i] = model, 0.0
        s.right[i, 0] = forces[LACK, i] - forces[OFF, i]
        for j in range(count):
            s.system[i, j] = m.inertia[row, s.rows[j]]
    for j in range(speed.shape[0]):
        s.speed[0, j] = speed[j]
        s.speed[1, j] += (new if compared > 0.0 else 1.0) * (speed[j] - s.speed[1, j])
        s.speed[2, j] += learnt * (speed[j] - s.speed[1, j] - s.speed[2, j])
    s.memory[WAITED_S] = 0.0
    if compared == 0.0:
        s.memory[COMPARED_S] = HORIZON_S if stands else ONE_SPEED_S
    else:
        s.memory[COMPARED_S] += dt


@kernel
def largest_change(s, unknown):
    """Set `found`, and return the axis that is furthest beyond what is allowed; EXPLAINED: none is."""
    forces, found, count = s.forces, s.found, s.rows.shape[0]
    for i in range(count):
        noise = min(NOISE_SHARE * math.sqrt(forces[NOISE, i]), NOISE_MOST * s.residual[0])
        found[ALLOWED, i] = max(noise, s.residual[0]) + HORIZON_S * unknown[s.rows[i]]
        row = s.rows[i]     # the inertia is as inaccurate as the forces
        found[ALLOWED, i] += INACCURACY * abs(s.speed[0, row] - s.speed[1, row] - s.speed[2, row])
    factorise_symmetric(s.system)
    solve_negative(s.system, s.right)
    for i in range(count):
        found[UNEXPLAINED, i] = HORIZON_S * s.right[i, 0]
        s.right[i, 0] = INACCURACY * (forces[USUAL, i] - forces[MODEL, i])
    solve_negative(s.system, s.right)
    for i in range(count):
        found[ALLOWED, i] += HORIZON_S * abs(s.right[i, 0])
    for j in range(count):          # friction of one axis moves those that are coupled with it
        if s.friction[j] == 0.0:
            continue
        for i in range(count):
            s.right[i, 0] = s.friction[j] if i == j else 0.0
        solve_negative(s.system, s.right)
        for i in range(count):
            found[ALLOWED, i] += HORIZON_S * abs(s.right[i, 0])
    worst, most = 0, 0.0
    for i in range(count):
        share, usual = abs(found[UNEXPLAINED, i]) / found[ALLOWED, i], min(s.residual[0], abs(found[UNEXPLAINED, i]))
        forces[NOISE, i] += STEP_S / NOISE_S * (usual * usual - forces[NOISE, i])
        if not share <= most and most < np.inf:
            worst, most = i, share if share < np.inf else np.inf
    return EXPLAINED if most <= 1.0 else worst
