"""Maps between coordinates and actuators: positions, rates, and efforts of equal effect on the coordinates.

The actuators turn at A xd, so that efforts f on them act as A' f on the coordinates.  With actuation None, for a
machine whose actuators are the coordinates, Numba prunes the bodies of these functions.
"""
import math
from typing import NamedTuple

import numpy as np

from ..rigid_body.entry import close_and_place, read_actuator_map
from ..rigid_body.measurement import actuator_states
from ..rigid_body.mechanism import bind
from ..runtime.buffer import FLOAT, matrix, pack, records
from ..runtime.compiler import kernel, python_kernel
from ..runtime.status import OK, UNMET
from .allocation import STALLED, Scratch, allocate, scratch

INT = np.dtype('i8')
REST_BAND = 5e-4        # m, rad that an axis may be off its reference at rest, before what gathers errors goes on


class Actuation(NamedTuple):
    """Allocation of efforts to m actuators of a machine with n coordinates, and its scratch."""

    weights: np.ndarray     # (m,)
    preload: np.ndarray     # (m,) [N, N m]
    lower: np.ndarray       # (m,) [N, N m]
    upper: np.ndarray       # (m,)
    none: np.ndarray        # (m,) zeros
    bounds: np.ndarray      # (2, m) scratch: lower and upper limits
    forces: np.ndarray      # (n,) scratch: forces on the coordinates
    A: np.ndarray           # (m, n) scratch
    scratch: Scratch


def make_actuation(allocation, actuators, dof):
    """Return the buffer of `Actuation`.  allocation: with weights, preload, lower and upper (actuators,)."""
    m = actuators
    return pack([allocation.weights, allocation.preload, allocation.lower, allocation.upper, np.zeros(m),
                 np.zeros((2, m)), np.zeros(dof), np.zeros((m, dof)), *scratch(m, dof)])


@kernel
def bind_actuation(buffer):
    """Return the `Actuation` of a buffer."""
    return Actuation(
        records(buffer, 0, FLOAT)[0], records(buffer, 1, FLOAT)[0], records(buffer, 2, FLOAT)[0],
        records(buffer, 3, FLOAT)[0], records(buffer, 4, FLOAT)[0], matrix(buffer, 5)[0], records(buffer, 6, FLOAT)[0],
        matrix(buffer, 7)[0], Scratch(
            matrix(buffer, 8)[0], records(buffer, 9, INT)[0], matrix(buffer, 10)[0], records(buffer, 11, FLOAT)[0],
            records(buffer, 12, INT)[0], records(buffer, 13, FLOAT)[0], matrix(buffer, 14)[0], matrix(buffer, 15)[0],
            records(buffer, 16, FLOAT)[0], matrix(buffer, 17)[0], records(buffer, 18, FLOAT)[0],
            records(buffer, 19, INT)[0], records(buffer, 20, INT)[0], matrix(buffer, 21)[0]))


@kernel
def beyond_rest(error):
    """Return by how much an error is beyond what it may be at rest."""
    return math.copysign(max(abs(error) - REST_BAND, 0.0), error)


@kernel
def actuator_motion(tree, loops, actuation, x, xd, position, rate):
    """Write position and rate (actuators,) at x, xd (dof,); return a status."""
    if actuation is None:
        for i in range(position.shape[0]):
            position[i], rate[i] = x[i], xd[i]
        return OK
    status = close_and_place(tree, loops, x, xd, xd)
    if status == OK:
        actuator_states(bind(tree, loops), position, rate)
    return status


@kernel
def share(tree, loops, actuation, needed, f):
    """Write the efforts f (actuators,) that act as `needed` (dof,) on the coordinates; return a status.

    After `close_machine` or what contains it.
    """
    if actuation is None:
        for i in range(f.shape[0]):
            f[i] = needed[i]
        return OK
    a = bind_actuation(actuation)
    read_actuator_map(tree, loops, a.A)
    if allocate(a.A, a.weights, a.preload, a.lower, a.upper, needed, a.scratch, f) != 0:
        return UNMET
    return OK


@kernel
def limit_efforts(actuation, limit, clipped, saturations, f):
    """Limit efforts f (actuators,) to +-limit with the least change of their forces on the coordinates.

    clipped (dof,): sign of the force on each coordinate to which an effort beyond its limit contributes, else 0.
    saturations (actuators,) counts the efforts at their limit.  After `share`; returns a status.
    """
    for j in range(clipped.shape[0]):
        clipped[j] = 0.0
    worst = 0.0
    for i in range(f.shape[0]):
        worst = max(worst, abs(f[i]) - limit[i])
    if not worst > 0.0:
        return OK
    if actuation is None:
        for i in range(f.shape[0]):
            if abs(f[i]) > limit[i]:
                clipped[i] = 1.0 if f[i] > 0.0 else -1.0
        clamp(f, limit, saturations)
        return OK
    a = bind_actuation(actuation)
    for j in range(clipped.shape[0]):
        total, part = 0.0, 0.0
        for i in range(f.shape[0]):
            total += a.A[i, j] * f[i]
            if abs(f[i]) > limit[i]:
                part += abs(a.A[i, j])
        a.forces[j] = total
        if part > 0.0 and total != 0.0:
            clipped[j] = 1.0 if total > 0.0 else -1.0
    if f.shape[0] == clipped.shape[0]:
        clamp(f, limit, saturations)
        return OK
    for i in range(f.shape[0]):
        a.bounds[0, i], a.bounds[1, i] = -limit[i], limit[i]
    status = allocate(a.A, a.weights, a.none, a.bounds[0], a.bounds[1], a.forces, a.scratch, f)
    if status == STALLED:
        return UNMET
    for i in range(f.shape[0]):
        if abs(f[i]) >= limit[i]:
            saturations[i] += 1
    return OK


@python_kernel
def clamp(f, limit, saturations):
    """Clamp f (n,) to +-limit (n,); saturations (n,) count the clamped entries."""
    for i in range(f.shape[0]):
        if abs(f[i]) > limit[i]:
            f[i] = limit[i] if f[i] > 0.0 else -limit[i]
            saturations[i] += 1
