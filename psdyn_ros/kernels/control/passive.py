"""Passive coordinates beside driven ones: efforts of driven coordinates, motion of passive ones, damping of a swing.

Collocated partial feedback linearisation (M. W. Spong, "Partial feedback linearization of underactuated mechanical
systems", IROS 1994): the efforts that give the driven coordinates their accelerations while the passive ones move
freely are those of hybrid dynamics.  They depend on position and rate of the passive coordinates, which are measured or
estimated here, from the measured motion of the driven ones.  How driven axes deviate from their reference to damp a
swing: `control/reference/swing_damping.py`.
"""
import math
from typing import NamedTuple

import numpy as np

from ..algebra.linear import least_squares
from ..rigid_body.entry import finite, hybrid_checked, inverse_checked
from ..rigid_body.mass_matrix import mass_matrix
from ..runtime.buffer import FLOAT, matrix, pack, records
from ..runtime.compiler import entry, kernel
from ..runtime.status import NON_FINITE, OK, SINGULAR

INT = np.dtype('i8')
DIFFERENCE_STEP = 1e-5      # of a passive coordinate, for the stiffness of a hanging load [m, rad]
LONGEST_STEP = 0.3          # of a passive coordinate in one iteration towards rest [m, rad]
MIN_RANK_RATIO = 1e-12      # of a diagonal of R against the largest: below it a load does not hang
RETURN = 0.25           # rate of the return from a deviation, as a share of the lowest frequency of the swing
BEGINS, ENDS = 0.01, 0.003      # rad, m of the swing from which damping acts, and below which it rests again
RAMP = 0.2              # s in which it sets in
SHARE = 0.5             # of the acceleration that a reference may have
LOOK = 0.5              # s that the reference goes on as it does, in the distance from the limits
BRAKING = 0.5           # share of the acceleration with which a deviation ends before its bound
BRAKING_TIME = 0.05     # s
MARGIN = 0.95           # share of the declared deviation at which it ends
MIN_STEP_S = 1e-4       # s of a step, in its change of the acceleration
ENDED = 2e-5            # m, m/s, rad, rad/s of a deviation that is over
DEVIATION, ACCELERATION, JERK, SPEED, UPPER, LOWER = range(6)       # rows of the limits of a deviation
GAIN, FREQUENCY, SWING = range(3)       # of the state of a deviation


class Passive(NamedTuple):
    """A machine with n driven and p passive coordinates, the state of these, and scratch."""

    driven: np.ndarray      # (n + p,) 1 of driven coordinates, 0 of passive ones
    rows: np.ndarray        # (n,) rows of the driven coordinates
    free: np.ndarray        # (p,) rows of the passive coordinates
    state: np.ndarray       # (3, p) position, rate, acceleration of the passive coordinates, as of the last estimate
    motion: np.ndarray      # (4, n + p) scratch: x, xd, xdd, efforts
    rest: np.ndarray        # (n + p,) zeros
    system: np.ndarray      # (p + 1, p + 1) scratch
    inertia: np.ndarray     # (n + p, n + p) scratch: mass matrix


class Hanging(NamedTuple):
    """What kernels are given of a machine with passive coordinates."""

    tree: np.ndarray
    loops: np.ndarray | None
    passive: np.ndarray     # buffer of `Passive`


# types of the fields of `Passive`
TYPES = FLOAT, INT, INT, *(FLOAT,) * 5


def make_passive(driven):
    """Return the buffer of `Passive` for coordinates of which `driven` (n + p,) bool are driven."""
    driven = np.asarray(driven, dtype=bool)
    n, p = len(driven), int((~driven).sum())
    return pack([driven.astype(float), np.flatnonzero(driven), np.flatnonzero(~driven), np.zeros((3, p)),
                 np.zeros((4, n)), np.zeros(n), np.zeros((p + 1, p + 1)), np.zeros((len(driven), len(driven)))])


@kernel
def bind_passive(buffer):
    """Return the `Passive` of a buffer."""
    return Passive(records(buffer, 0, FLOAT)[0], records(buffer, 1, INT)[0], records(buffer, 2, INT)[0],
                   matrix(buffer, 3)[0], matrix(buffer, 4)[0], records(buffer, 5, FLOAT)[0], matrix(buffer, 6)[0],
                   matrix(buffer, 7)[0])


@kernel
def required_efforts(tree, loops, hanging, x, xd, xdd, ahead, f):
    """Write the efforts f (n,) that driven coordinates need for x, xd, xdd (n,); return a status.

    tree, loops: of the driven coordinates.  hanging: `Hanging`; None where there are no passive coordinates.
    ahead [s]: by how much x, xd are later than the passive state.  With 0 the accelerations of that are kept.
    """
    if hanging is None:
        return inverse_checked(tree, loops, x, xd, xdd, f)
    p = bind_passive(hanging.passive)
    z, m = p.state, p.motion
    for j in range(p.free.shape[0]):
        i = p.free[j]
        m[0, i] = z[0, j] + ahead * (z[1, j] + 0.5 * ahead * z[2, j])
        m[1, i] = z[1, j] + ahead * z[2, j]
    status = hybrid_efforts(hanging, p, x, xd, xdd)
    if status != OK:
        return status
    for i in range(p.rows.shape[0]):
        f[i] = m[3, p.rows[i]]
    if ahead == 0.0:
        for j in range(p.free.shape[0]):
            z[2, j] = m[2, p.free[j]]
    return OK


@kernel
def hybrid_efforts(hanging, p, x, xd, xdd):
    """Do hybrid dynamics with the passive coordinates in rows 0 and 1 of `motion`; return a status."""
    m = p.motion
    for i in range(p.rows.shape[0]):
        m[0, p.rows[i]], m[1, p.rows[i]], m[2, p.rows[i]] = x[i], xd[i], xdd[i]
    for j in range(p.free.shape[0]):
        m[2, p.free[j]] = m[3, p.free[j]] = 0.0
    return hybrid_checked(hanging.tree, hanging.loops, p.driven, m[0], m[1], m[3], m[2])


@entry
def efforts_of_driven(hanging, x, xd, xdd, f):
    """Do `required_efforts` at the passive state as it is; return a status."""
    return required_efforts(hanging.tree, hanging.loops, hanging, x, xd, xdd, 0.0, f)


@entry
def effort_terms(hanging, x, xd, forces, inertia):
    """Write the forces (n,) without acceleration of driven coordinates, and their increase (n, n) with it; a status.

    Of the mass matrix of all coordinates the increase is M_dd - M_dp M_pp^-1 M_pd: the passive ones move freely.
    """
    p = bind_passive(hanging.passive)
    z, m, M, count = p.state, p.motion, p.inertia, p.rows.shape[0]
    for j in range(p.free.shape[0]):
        m[0, p.free[j]], m[1, p.free[j]] = z[0, j], z[1, j]
    status = hybrid_efforts(hanging, p, x, xd, p.rest[:count])
    if status == OK:
        status = mass_matrix(hanging.tree, hanging.loops, m[0], M)      # of the clusters as they were closed
    if status != OK:
        return status
    for j in range(M.shape[0]):
        if p.driven[j] == 0.0:
            if not M[j, j] > 0.0:
                return SINGULAR
            for i in range(M.shape[0]):
                share = M[i, j] / M[j, j] if i != j else 0.0
                for k in range(M.shape[0]):
                    M[i, k] -= share * M[j, k]
    for i in range(count):
        forces[i] = m[3, p.rows[i]]
        for k in range(count):
            inertia[i, k] = M[p.rows[i], p.rows[k]]
    return OK


@entry
def predict_passive(hanging, before, after, dt):
    """Advance the passive state by dt [s] along a measured motion of the driven coordinates; return a status.

    before, after: (3, n) position and rate at begin and end, and room for accelerations.  Midpoint rule; the state at
    the midpoint is that of the acceleration before, so that hybrid dynamics is done once.  The driven coordinates
    accelerate by the change of their measured rate: its noise enters the rate of the passive ones once, and does not
    add up.  Where the status is not OK the state is as before, but for NON_FINITE accelerations.
    """
    p = bind_passive(hanging.passive)
    z, m = p.state, p.motion
    if not dt > 0.0:
        return OK
    status = max(max(finite(before[0]), finite(before[1])), max(finite(after[0]), finite(after[1])))
    if status != OK:
        return status
    half = 0.5 * dt
    for i in range(before.shape[1]):
        before[2, i] = (after[1, i] - before[1, i]) / dt
        before[0, i], before[1, i] = 0.5 * (before[0, i] + after[0, i]), 0.5 * (before[1, i] + after[1, i])
    for j in range(p.free.shape[0]):
        i = p.free[j]
        m[1, i] = z[1, j] + half * z[2, j]
        m[0, i] = z[0, j] + half * (z[1, j] + 0.5 * half * z[2, j])
    status = hybrid_efforts(hanging, p, before[0], before[1], before[2])
    if status != OK:
        return status
    for j in range(p.free.shape[0]):
        i = p.free[j]
        z[0, j] += dt * m[1, i]
        z[1, j] += dt * m[2, i]
        z[2, j] = m[2, i]
    return finite(z[1])


@entry
def correct_by_efforts(hanging, efforts, reading, gain, most):
    """Correct the passive positions by the efforts (n,) that the driven coordinates took since the last prediction.

    reading (p, n): error of the position by that of the efforts.  gain: share of it that is taken in; most: of a
    single error.  Efforts that are not finite change nothing.
    """
    if finite(efforts) != OK:
        return
    p = bind_passive(hanging.passive)
    for j in range(p.free.shape[0]):
        off = 0.0
        for i in range(p.rows.shape[0]):
            off += reading[j, i] * (efforts[i] - p.motion[3, p.rows[i]])
        p.state[0, j] += gain * min(max(off, -most), most)


@entry
def correct_passive(hanging, measured, share, rate_gain):
    """Correct the passive state by what is measured of it.

    measured: (2, p) positions and rates, NaN where there are none.  share: of a difference that is taken in.
    rate_gain [1/s]: change of the rate by a difference in position where no rate is measured.
    """
    z = bind_passive(hanging.passive).state
    for j in range(z.shape[1]):
        off = measured[0, j] - z[0, j]
        if off == off:
            z[0, j] += share * off
        if measured[1, j] == measured[1, j]:
            z[1, j] += share * (measured[1, j] - z[1, j])
        elif off == off:
            z[1, j] += rate_gain * off


@entry
def settle_passive(hanging, x, iterations):
    """Move the passive coordinates towards rest at x (n,) of the driven ones, by Newton's method; return a status.

    SINGULAR where they do not hang: the stiffness of some coordinate is not positive.
    """
    p = bind_passive(hanging.passive)
    z, m, count = p.state, p.motion, p.free.shape[0]
    for i in range(p.rest.shape[0]):
        m[2, i] = 0.0
    for i in range(p.rows.shape[0]):
        m[0, p.rows[i]] = x[i]
    for j in range(count):
        z[1, j] = z[2, j] = 0.0
    for _ in range(iterations):
        for column in range(count + 1):
            # the last column is that of the efforts at rest
            for j in range(count):
                m[0, p.free[j]] = z[0, j] + (DIFFERENCE_STEP if j == column else 0.0)
            status = inverse_checked(hanging.tree, hanging.loops, m[0], p.rest, m[2], m[3])
            if status != OK:
                return status
            for j in range(count):
                p.system[j, column] = m[3, p.free[j]]
        for column in range(count):
            for j in range(count):
                p.system[j, column] = (p.system[j, column] - p.system[j, count]) / DIFFERENCE_STEP
            if not p.system[column, column] > 0.0:
                return SINGULAR
        if not least_squares(p.system, count, count, count + 1) > MIN_RANK_RATIO:
            return SINGULAR
        for j in range(count):
            step = p.system[j, count]
            if not abs(step) < 1e300:
                return NON_FINITE
            z[0, j] -= min(max(step, -LONGEST_STEP), LONGEST_STEP)
    return OK


class Deviation(NamedTuple):
    """Deviation of n driven axes that damps the swing of p passive joints, linearised at rest."""

    motion: np.ndarray      # (3, n) position, rate and acceleration of the deviation
    limits: np.ndarray      # (6, n) of it, and of reference and deviation together
    x: np.ndarray           # (n,) position of the driven joints that the swing is linearised at
    rest: np.ndarray        # (p,) position of the passive joints there
    slope: np.ndarray       # (p, n) by which rest moves with the driven joints
    coupling: np.ndarray    # (p, n) of the accelerations of the driven joints in the swing
    feedback: np.ndarray    # (n, p) accelerations of the deviation by rates of the swing
    rate: np.ndarray        # (p,) scratch: of the swing
    asked: np.ndarray       # (4, n) scratch: accelerations, least and largest of them, coupled rates of the swing
    state: np.ndarray       # (3,) share of the feedback in use; lowest frequency [rad/s] and size [rad, m] of the swing


# types of the fields of `Deviation`
DEVIATION_TYPES = (FLOAT,) * 10


def make_deviation(n, p):
    """Return the buffer of `Deviation` of n axes and p passive joints."""
    return pack(Deviation(np.zeros((3, n)), np.zeros((6, n)), np.zeros(n), np.zeros(p), np.zeros((p, n)),
                          np.zeros((p, n)), np.zeros((n, p)), np.zeros(p), np.zeros((4, n)), np.array((0.0, 1.0, 0.0))))


@kernel
def bind_deviation(buffer):
    """Return the `Deviation` of a buffer."""
    return Deviation(matrix(buffer, 0)[0], matrix(buffer, 1)[0], records(buffer, 2, FLOAT)[0],
                     records(buffer, 3, FLOAT)[0], matrix(buffer, 4)[0], matrix(buffer, 5)[0], matrix(buffer, 6)[0],
                     records(buffer, 7, FLOAT)[0], matrix(buffer, 8)[0], records(buffer, 9, FLOAT)[0])


@entry
def add_deviation(deviation, h, sample):
    """Add the deviation, h [s] after its last step, to position, velocity and acceleration of a sample (3, n)."""
    d = bind_deviation(deviation).motion
    for i in range(sample.shape[1]):
        sample[0, i] += d[0, i] + h * (d[1, i] + 0.5 * h * d[2, i])
        sample[1, i] += d[1, i] + h * d[2, i]
        sample[2, i] += d[2, i]


@entry
def damp_swing(deviation, dt, driven, passive, nominal, damps, allowed):
    """Take a step of the deviation, dt [s] after the last one; return whether there is a deviation.

    driven, passive  position and rate, or more rows, of the n driven and p passive joints
    nominal          (3, n) reference without a deviation
    damps            whether it is to act on the swing
    allowed          whether there may be a deviation; otherwise its motion ends soon, wherever it is
    """
    d = bind_deviation(deviation)
    s = d.state
    s[SWING] = swing_size(d, driven, passive)
    acts = damps and s[SWING] > (ENDS if s[GAIN] > 0.0 else BEGINS)
    s[GAIN] = min(1.0, s[GAIN] + dt / RAMP) if acts else 0.0
    if s[GAIN] == 0.0 and not largest(d.motion) > 0.0:
        return False
    ask_damping(d, nominal)
    for i in range(d.motion.shape[1]):
        move_deviation(d, i, dt, nominal, allowed)
    if s[GAIN] == 0.0 and largest(d.motion) < ENDED:
        for row in range(3):
            for i in range(d.motion.shape[1]):
                d.motion[row, i] = 0.0
        return False
    return True


@kernel
def largest(motion):
    """Return the largest magnitude in an array of two dimensions."""
    most = 0.0
    for row in range(motion.shape[0]):
        for i in range(motion.shape[1]):
            most = max(most, abs(motion[row, i]))
    return most


@kernel
def swing_size(d, driven, passive):
    """Write the rates of the swing; return its size [rad, m], the largest of a joint as its energy has it."""
    most = 0.0
    for j in range(d.rest.shape[0]):
        off, rate = passive[0, j] - d.rest[j], passive[1, j]
        for i in range(d.x.shape[0]):
            off -= d.slope[j, i] * (driven[0, i] - d.x[i])
            rate -= d.slope[j, i] * driven[1, i]
        d.rate[j] = rate
        most = max(most, off * off + (rate / d.state[FREQUENCY])**2)
    return math.sqrt(most)


@kernel
def ask_damping(d, nominal):
    """Write the accelerations that damp the swing, and their bounds, into `asked`."""
    u, low, high, coupled = d.asked[0], d.asked[1], d.asked[2], d.asked[3]
    for i in range(u.shape[0]):
        acceleration, most = d.limits[ACCELERATION, i], largest_acceleration(d, i)
        low[i] = -min(max(acceleration + nominal[2, i], 0.0), most)
        high[i] = min(max(acceleration - nominal[2, i], 0.0), most)
        u[i] = coupled[i] = 0.0
        # without a gain rates may be unknown
        for j in range(d.rate.shape[0] if d.state[GAIN] > 0.0 else 0):
            u[i] += d.state[GAIN] * d.feedback[i, j] * d.rate[j]
            coupled[i] += d.coupling[j, i] * d.rate[j]
    bound_feedback(u, low, high, coupled)


@kernel
def largest_acceleration(d, i):
    """Return the largest acceleration of the deviation of axis i."""
    return min(SHARE * d.limits[ACCELERATION, i], d.limits[DEVIATION, i] * d.state[FREQUENCY]**2)


@kernel
def bound_feedback(u, low, high, coupled):
    """Move u (n,) within bounds that have zero between them; the power u . coupled stays not negative.

    Axes that take out the energy of others, which are at their bound, are left out.
    """
    power = 0.0
    for i in range(u.shape[0]):
        u[i] = min(max(u[i], low[i]), high[i])
        power += u[i] * coupled[i]
    if power < 0.0:
        for i in range(u.shape[0]):
            if u[i] * coupled[i] < 0.0:
                u[i] = 0.0


@kernel
def move_deviation(d, i, dt, nominal, allowed):
    """Take a step of the deviation of axis i: by what is asked, with a return, within its limits."""
    x, v, a, most = d.motion[0, i], d.motion[1, i], d.motion[2, i], largest_acceleration(d, i)
    if allowed:
        w = RETURN * d.state[FREQUENCY]
        wish = min(max(d.asked[0, i] - w * (2.0 * v + w * x), d.asked[1, i]), d.asked[2, i])
    else:
        wish = -v / BRAKING_TIME
    ahead, room = nominal[0, i] + LOOK * nominal[1, i], MARGIN * d.limits[DEVIATION, i]
    above = min(max(d.limits[UPPER, i] - max(ahead, nominal[0, i]), 0.0), room)
    below = min(max(min(ahead, nominal[0, i]) - d.limits[LOWER, i], 0.0), room)
    brake, speed = 2.0 * BRAKING * most, d.limits[SPEED, i]
    fastest = min(math.sqrt(brake * max(above - x, 0.0)), max(speed - nominal[1, i], 0.0))
    slowest = -min(math.sqrt(brake * max(below + x, 0.0)), max(speed + nominal[1, i], 0.0))
    wish = min(max(wish, (slowest - v) / BRAKING_TIME), (fastest - v) / BRAKING_TIME)
    wish = min(max(wish, -most), most)
    step = d.limits[JERK, i] * max(dt, MIN_STEP_S)
    a += min(max(wish - a, -step), step)
    d.motion[0, i] = x + dt * (v + 0.5 * dt * a)
    d.motion[1, i] = v + dt * a
    d.motion[2, i] = a
