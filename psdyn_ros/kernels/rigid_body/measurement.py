"""Joints of the tree from coordinates, and the way back from measured joints of triangles and serial joints."""
import math

from ..runtime.compiler import entry, kernel
from ..runtime.status import NO_LEVER, OK, TOGGLE, UNREACHABLE, failure
from .joints import put_joint_states
from .triangle import cylinder_angle, stroke_from_barrel, stroke_from_boom, triangle


@kernel
def joint_states(m, out):
    """Write position, velocity and acceleration of every joint of the tree into out (3, joints); return a status.

    q = gamma(x), qd = G xd, qdd = G xdd + g, of a machine that is placed, its accelerations set.
    """
    for k in range(m.modules.shape[0]):
        if not put_joint_states(m, k, out[0], out[1], out[2]):
            return failure(TOGGLE, k)
    return OK


@kernel
def actuator_states(m, position, rate):
    """Write position and rate (actuators,) of a machine that is placed."""
    for k in range(m.modules.shape[0]):
        i = m.modules[k]['actuator']
        if i >= 0:
            position[i], rate[i] = m.work[k]['q'], m.work[k]['qd']


@kernel
def measured_coordinates(modules, rows, measured, out):
    """Do `coordinates_of_modules`."""
    for k in range(modules.shape[0]):
        status = coordinate_of_module(modules[k], rows[k], measured, out[:, k])
        if status != OK:
            return failure(status, k)
    return OK


@entry
def coordinates_of_modules(modules, rows, measured, out):
    """Write position, rate and acceleration of modules from measured joints; the inverse of `joint_states`.

    rows (n, 3): where in measured (3, m) the actuated joint, the boom and the barrel of each module stand, -1 where
    they are not measured.  out (4, n): the last row is the disagreement of redundant joints at the rod eye [m].
    Returns a status: the reason why module k is not determined.
    """
    return measured_coordinates(modules, rows, measured, out)


@entry
def coordinates_of_samples(modules, rows, measured, out, statuses):
    """Do `coordinates_of_modules` of N samples: measured (N, 3, m), out (N, 4, n); write the statuses (N,)."""
    for i in range(measured.shape[0]):
        statuses[i] = measured_coordinates(modules, rows, measured[i], out[i])


@kernel
def coordinate_of_module(b, row, measured, out):
    """Do `coordinates_of_modules` for one module; return a code."""
    q, qd, qdd = measured[0], measured[1], measured[2]
    j, boom, barrel = row[0], row[1], row[2]
    out[3] = 0.0
    status = OK
    if j >= 0:
        out[0], out[1], out[2] = q[j], qd[j], qdd[j]
        if b['joint'][1] < 0:
            return OK
    elif boom >= 0:
        status, out[0] = stroke_from_boom(b, q[boom] - b['zero'][1])
    else:
        status, out[0] = stroke_from_barrel(b, b['sign'][2] * (q[barrel] - b['zero'][2]))
    if status != OK:
        return status
    x = out[0]
    cq, sq, _, _, k1, k2, k4, k5 = triangle(b, x, 1.0)
    if sq == 0.0:
        return UNREACHABLE
    if j < 0:
        ratio, rate, acceleration, ratio_slope = k1, 0.0, 0.0, k4
        if boom >= 0:
            rate, acceleration = qd[boom], qdd[boom]
        else:
            sign = b['sign'][2]
            ratio, rate, acceleration, ratio_slope = k2, sign * qd[barrel], sign * qdd[barrel], k5
        if abs(ratio) < 1e-6:
            return NO_LEVER
        out[1] = rate / ratio
        out[2] = (acceleration - ratio_slope * out[1] * out[1]) / ratio
    gap = 0.0
    if boom >= 0:
        gap = 2.0 * b['L1'] * abs(math.sin(0.5 * (q[boom] - b['zero'][1] - math.atan2(sq, cq))))
    if barrel >= 0:
        turn = b['sign'][2] * (q[barrel] - b['zero'][2]) - cylinder_angle(b, x, cq, sq)
        rho = x + b['x0']
        gap = max(gap, 2.0 * math.sqrt(rho * rho + b['e'] * b['e']) * abs(math.sin(0.5 * turn)))
    out[3] = gap
    return OK
