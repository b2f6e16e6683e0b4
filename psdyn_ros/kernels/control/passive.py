"""Passive coordinates beside driven ones: the efforts of driven coordinates, and the motion of the passive ones.

Collocated partial feedback linearisation (M. W. Spong, "Partial feedback linearization of underactuated mechanical
systems", IROS 1994): the efforts that give the driven coordinates their accelerations while the passive ones move
freely are those of hybrid dynamics.  They depend on position and rate of the passive coordinates, which are measured or
estimated here, from the measured motion of the driven ones.
"""
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
