"""Inverse kinematics: coordinates within their limits at which a point on a link comes nearest to a target.

Levenberg-Marquardt on |e|^2 with the limits as an active set, in coordinates z scaled by their ranges.  The rows of e
are the error of the position, the rotation vector of the error of the orientation times a length, and, weighted, by how
much actuators that are no coordinates are beyond their limits.  Where more than one position reaches the target,
steps along the null space of the Jacobian then lead to the one next to the start.
"""
import math
from typing import NamedTuple

import numpy as np

from ..algebra.linear import cholesky, solve_lower, solve_upper
from ..algebra.spatial import dot, scale, vector
from ..rigid_body.mass_matrix import actuator_map
from ..rigid_body.measurement import actuator_states
from ..rigid_body.mechanism import bind
from ..runtime.compiler import entry, inner, kernel
from ..runtime.status import OK
from .link import in_axes, locate, place_at

MAX_ITERATIONS = 60
MAX_NULL_STEPS = 30
LEAST_DAMPING, MOST_DAMPING, FIRST_DAMPING = 1e-11, 1e7, 1e-4   # against the largest squared length of a column
SMALL_GAIN = 1e-7           # relative decrease of |e|^2 in an iteration that counts as none
MOST_SMALL_GAINS = 3        # in a row, then the search ends
SMALL_APPROACH = 1e-9       # relative decrease of the squared distance to the start that counts as none
RANK = 1e-10                # squared singular values below this share of the largest count as zero
MAX_SCALED_STEP = 0.5       # largest step, in ranges of the coordinates
STOP_WEIGHT = 300.0         # of the way beyond a limit of an actuator that is no coordinate, against the position
REACHED, STOPPED, BLOCKED = 0, 1, 2     # outcomes: within the tolerance; nearest in its neighbourhood; no loop closes

TARGET = np.dtype([
    ('axes', 'f8', (3, 3)),     # rows: the axes that the link is to have, in the base frame
    ('position', 'f8', 3),      # of the point, in the base frame [m]
    ('length', 'f8'),           # error of the position that weighs as much as one radian [m]; 0: any orientation
    ('tolerance', 'f8', 2),     # [m, rad]
], align=True)


class Search(NamedTuple):
    """Bounds and scratch of a search; n joint coordinates, r rows of e."""

    lower: np.ndarray           # (n,) of the coordinates, equal where one is held
    upper: np.ndarray
    range: np.ndarray           # (n,) x = range * z
    start: np.ndarray           # (n,) where the nearest solution is to be
    stops: np.ndarray           # (2, actuators) limits of actuators that are no coordinates, else infinite; or (2, 0)
    e: np.ndarray               # (r,)
    J: np.ndarray               # (6, dof)
    E: np.ndarray               # (r, n) derivative of e by z
    H: np.ndarray               # (max(n, r), max(n, r))
    vectors: np.ndarray         # (5, max(n, r))
    active: np.ndarray          # (n,) 1: a coordinate at a limit
    A: np.ndarray               # (actuators, dof)
    actuators: np.ndarray       # (2, actuators)
    still: np.ndarray           # (dof,) zeros
    x: np.ndarray               # (2, nx) positions that are tried


@kernel
def rotation_vector(axes, wanted):
    """Return the rotation vector, in link axes, of the turn from the wanted axes to those of the link."""
    # rows of the turn, both sets of axes in the base frame
    a, b, c = in_axes(wanted, axes[0]), in_axes(wanted, axes[1]), in_axes(wanted, axes[2])
    # a[j]: component of link axis a along wanted axis j; the turn in wanted axes has columns a, b, c
    v = (0.5 * (b[2] - c[1]), 0.5 * (c[0] - a[2]), 0.5 * (a[1] - b[0]))
    sine, cosine = math.sqrt(dot(v, v)), 0.5 * (a[0] + b[1] + c[2] - 1.0)
    angle = math.atan2(sine, cosine)
    if sine > 1e-6:
        return scale(angle / sine, v)
    if cosine > 0.0:
        return v
    # half a turn: the axis is the longest column of the turn plus one
    p, q, s = (a[0] + 1.0, a[1], a[2]), (b[0], b[1] + 1.0, b[2]), (c[0], c[1], c[2] + 1.0)
    axis = p
    if dot(q, q) > dot(axis, axis):
        axis = q
    if dot(s, s) > dot(axis, axis):
        axis = s
    return scale(angle / math.sqrt(dot(axis, axis)), axis)


@inner
def evaluate(tree, loops, p, target, s, x):
    """Write e and, in link axes, J at x; return (|e|^2, error of the position, of the orientation).

    Infinite where a loop does not close.
    """
    if place_at(tree, loops, x, s.still) != OK:
        return math.inf, math.inf, math.inf
    m = bind(tree, loops)
    s.J[:, :] = 0.0
    axes, r = locate(m, p, s.J)
    goal = vector(target['position'])
    gap = in_axes(axes, (r[0] - goal[0], r[1] - goal[1], r[2] - goal[2]))
    for i in range(3):
        s.e[i] = gap[i]
    away, turned, rows = math.sqrt(dot(gap, gap)), 0.0, 3
    if target['length'] > 0.0:
        wanted = (vector(target['axes'][0]), vector(target['axes'][1]), vector(target['axes'][2]))
        turn = rotation_vector(axes, wanted)
        turned, rows = math.sqrt(dot(turn, turn)), 6
        for i in range(3):
            s.e[3 + i] = target['length'] * turn[i]
    if s.stops.shape[1] > 0:
        actuator_states(m, s.actuators[0], s.actuators[1])
        for i in range(s.stops.shape[1]):
            q = s.actuators[0, i]
            s.e[rows + i] = STOP_WEIGHT * (min(q - s.stops[0, i], 0.0) + max(q - s.stops[1, i], 0.0))
    total = 0.0
    for i in range(s.e.shape[0]):
        total += s.e[i] * s.e[i]
    return total, away, turned


@kernel
def set_slopes(tree, loops, target, s):
    """Write E, the derivative of e by z, after `evaluate`.

    The rows of the rotation vector are those of the angular velocity: this leaves J' e exact, and E at e = 0.
    """
    n, dof = s.range.shape[0], s.J.shape[1]
    rows = 6 if target['length'] > 0.0 else 3
    for j in range(n):
        for i in range(rows):
            weight = 1.0 if i < 3 else target['length']
            s.E[i, j] = weight * s.J[i, dof - n + j] * s.range[j]
    if s.stops.shape[1] > 0:
        actuator_map(bind(tree, loops), s.A)
        for i in range(s.stops.shape[1]):
            for j in range(n):
                weight = STOP_WEIGHT if s.e[rows + i] != 0.0 else 0.0
                s.E[rows + i, j] = weight * s.A[i, dof - n + j] * s.range[j]


@kernel
def solve_damped(s, g, damping, step):
    """Write the step d (n,) of (E'E + damping) d = -g among the coordinates that are not `active`."""
    n, r = s.range.shape[0], s.e.shape[0]
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            if s.active[i] == 0.0 and s.active[j] == 0.0:
                for k in range(r):
                    total += s.E[k, i] * s.E[k, j]
            s.H[i, j] = total
        s.H[i, i] += damping
        step[i] = -g[i] if s.active[i] == 0.0 else 0.0
    cholesky(s.H, n)
    solve_lower(s.H, n, step)
    solve_upper(s.H, n, step)


@kernel
def activate(s, x, step):
    """Make coordinates active that are at a limit which the step leaves; return whether there are any new ones."""
    n, found = s.range.shape[0], False
    first = x.shape[0] - n
    for j in range(n):
        if s.active[j] == 0.0 and (step[j] < 0.0 and x[first + j] <= s.lower[j]
                                   or step[j] > 0.0 and x[first + j] >= s.upper[j]):
            s.active[j], found = 1.0, True
    return found


@kernel
def move_along(s, x, step, share, there):
    """Write x + share * step, within the limits, into `there`; return the largest step in ranges of coordinates."""
    n, largest = s.range.shape[0], 0.0
    first = x.shape[0] - n
    for j in range(n):
        largest = max(largest, abs(share * step[j]))
    short = share * min(1.0, MAX_SCALED_STEP / max(largest, 1e-300))
    for i in range(first):
        there[i] = x[i]
    for j in range(n):
        moved = x[first + j] + short * step[j] * s.range[j]
        there[first + j] = min(max(moved, s.lower[j]), s.upper[j])
    return largest


@kernel
def move_to(x, there):
    for i in range(x.shape[0]):
        x[i] = there[i]


@inner
def descend(tree, loops, p, target, s, x):
    """Move x to where |e|^2 is least in its neighbourhood; return (outcome, |e|^2, errors of position, orientation)."""
    g, step, there = s.vectors[0], s.vectors[1], s.x[0]
    n, r = s.range.shape[0], s.e.shape[0]
    damping, small, stuck = FIRST_DAMPING, 0, False
    total, away, turned = evaluate(tree, loops, p, target, s, x)
    if not total < math.inf:
        return BLOCKED, total, away, turned
    for _ in range(MAX_ITERATIONS):
        beyond = 0.0
        for i in range(r - s.stops.shape[1], r):
            beyond = max(beyond, abs(s.e[i]))
        if away <= target['tolerance'][0] and turned <= target['tolerance'][1] and beyond <= target['tolerance'][0]:
            return REACHED, total, away, turned
        if small >= MOST_SMALL_GAINS or stuck:
            return STOPPED, total, away, turned
        set_slopes(tree, loops, target, s)
        largest = 1e-300
        for j in range(n):
            g[j], square = 0.0, 0.0
            for k in range(r):
                g[j] += s.E[k, j] * s.e[k]
                square += s.E[k, j] * s.E[k, j]
            largest = max(largest, square)
        better = False
        while not better and damping <= MOST_DAMPING:
            for j in range(n):
                s.active[j] = 1.0 if s.lower[j] == s.upper[j] else 0.0
            solve_damped(s, g, damping * largest, step)
            while activate(s, x, step):
                solve_damped(s, g, damping * largest, step)
            move_along(s, x, step, 1.0, there)
            after, near, turn = evaluate(tree, loops, p, target, s, there)
            better = after < total
            damping = max(0.1 * damping, LEAST_DAMPING) if better else 10.0 * damping
        if better:
            small = small + 1 if after > (1.0 - SMALL_GAIN) * total else 0
            total, away, turned = after, near, turn
            move_to(x, there)
        else:
            stuck = True
    return STOPPED, total, away, turned


@kernel
def distance_to_start(s, x):
    """Return the squared distance from the start, in ranges of the coordinates."""
    n, total = s.range.shape[0], 0.0
    first = x.shape[0] - n
    for j in range(n):
        step = (x[first + j] - s.start[j]) / s.range[j]
        total += step * step
    return total


@kernel
def project_to_null_space(s, d, y):
    """Take off d (n,) what changes e, among the coordinates that are not `active`."""
    n, r = s.range.shape[0], s.e.shape[0]
    largest = 0.0
    for i in range(r):
        y[i] = 0.0
        for j in range(n):
            y[i] += s.E[i, j] * d[j]
        for k in range(i + 1):
            total = 0.0
            for j in range(n):
                if s.active[j] == 0.0:
                    total += s.E[i, j] * s.E[k, j]
            s.H[i, k] = total
        largest = max(largest, s.H[i, i])
    for i in range(r):
        s.H[i, i] += RANK * largest + 1e-300
    cholesky(s.H, r)
    solve_lower(s.H, r, y)
    solve_upper(s.H, r, y)
    for j in range(n):
        for i in range(r):
            if s.active[j] == 0.0:
                d[j] -= s.E[i, j] * y[i]


@kernel
def direction_to_start(s, x, d, y):
    """Write the step d along the null space of E that leads towards the start, at limits along these."""
    n = s.range.shape[0]
    first = x.shape[0] - n
    for j in range(n):
        s.active[j] = 1.0 if s.lower[j] == s.upper[j] else 0.0
    for _ in range(n + 1):
        for j in range(n):
            d[j] = (s.start[j] - x[first + j]) / s.range[j] if s.active[j] == 0.0 else 0.0
        project_to_null_space(s, d, y)
        if not activate(s, x, d):
            break


@kernel
def approach_start(tree, loops, p, target, s, x):
    """Move x, at which the target is reached, next to the start along the positions that reach it."""
    d, y, there = s.vectors[2], s.vectors[3], s.x[1]
    n, share, distance = s.range.shape[0], 1.0, distance_to_start(s, x)
    for _ in range(MAX_NULL_STEPS):
        evaluate(tree, loops, p, target, s, x)
        set_slopes(tree, loops, target, s)
        direction_to_start(s, x, d, y)
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(d[j]))
        if largest < 1e-9:
            return
        nearer = False
        while not nearer and share > 1e-3:
            move_along(s, x, d, share, there)
            outcome, _, _, _ = descend(tree, loops, p, target, s, there)
            after = distance_to_start(s, there)
            nearer = outcome == REACHED and after < (1.0 - SMALL_APPROACH) * distance
            share = min(1.0, 2.0 * share) if nearer else 0.5 * share
        if not nearer:
            return
        move_to(x, there)
        distance = after


@entry
def reach(tree, loops, point, target, s, approach, x, errors):
    """Move x (nx,) to where the point comes nearest to the target; return REACHED, STOPPED or BLOCKED.

    point: POINT (1,).  target: TARGET (1,).  approach: then go to the solution next to the start.  errors (3,): of the
    position, the orientation, and the squared distance to the start in ranges of the coordinates.
    """
    outcome, _, away, turned = descend(tree, loops, point[0], target[0], s, x)
    if outcome == REACHED and approach:
        approach_start(tree, loops, point[0], target[0], s, x)
        _, away, turned = evaluate(tree, loops, point[0], target[0], s, x)
    errors[0], errors[1], errors[2] = away, turned, distance_to_start(s, x)
    return outcome
