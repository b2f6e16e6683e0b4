"""What a joint or a loop adds to a derivative recursion: one more derivative of its transmission and its friction."""
import math

from ..algebra.spatial import add, scale, sub
from ..rigid_body.joints import triangle
from ..rigid_body.records import BARREL, LOOP, ROD
from ..runtime.compiler import kernel
from .body import in_axes, line, load_body, move_curved_body, place_body, times, turned


@kernel
def move_cylinder(b, bodies, k, X, Y, Z, p, V, A, turn, ratio, x, xd, xdd):
    """Place barrel and rod of a loop on the base frame X, Y, Z, p of its module, whose parent moves at V, A.

    turn: (cos, sin) of the stroke axis against C -> B; ratio: k2 and its first two derivatives by x.
    """
    k2, k2x, k2xx = ratio
    p = add(p, in_axes(X, Y, Z, b['pin']))
    X, Y = turned(X, Y, b['base_turn'][0], b['base_turn'][1])
    X, Y = turned(X, Y, turn[0], turn[1])
    pin = line(p, Z)
    J, slope, curve = times(k2, pin), times(k2x, pin), times(k2xx, pin)

    r = bodies[3 * k + BARREL]
    VB, AB = move_curved_body(r, V, A, J, slope, curve, xd, xdd)
    place_body(r, X, Y, Z, p)
    load_body(r, X, Y, Z, p, b['barrel'], VB, AB)

    # the rod slides along X, which turns towards Y by k2
    J = add(J[0], X), J[1]
    slope = add(slope[0], scale(k2, Y)), slope[1]
    curve = add(curve[0], sub(scale(k2x, Y), scale(k2 * k2, X))), curve[1]
    r = bodies[3 * k + ROD]
    VR, AR = move_curved_body(r, V, A, J, slope, curve, xd, xdd)
    p = add(p, scale(x, X))
    place_body(r, X, Y, Z, p)
    load_body(r, X, Y, Z, p, b['rod'], VR, AR)


@kernel
def triangle_curvature(b, x):
    """Return (cos q, sin q, cos q1, sin q1, k1, k1', k1'', k2, k2', k2''), ' the derivative by x; see `triangle`."""
    c, s, c1, s1, k1, k2, k1x, k2x = triangle(b, x, 1.0)
    if s == 0.0:
        return c, s, c1, s1, k1, k1x, 0.0, k2, k2x, 0.0
    L, L1, e = b['L'], b['L1'], b['e']
    rho = x + b['x0']
    inverse, ratio = 1.0 / (rho * rho + e * e), 1.0 / s
    cot, lean = c * ratio, k1 * ratio
    k1xx = k1 * (lean * lean - cot * (2.0 * k1x - 2.0 * b['half'] * ratio))
    # k2 = r k1 + e / s^2 with r = L1 (L1 + L c) / s^2 and r' = rho (1 - 2 r) / s^2
    skew = e * inverse
    r = L1 * (L1 + L * c) * inverse
    rx = rho * inverse * (1.0 - 2.0 * r)
    k2xx = ((1.0 - 2.0 * r - 4.0 * rho * rx) * k1 + (8.0 * rho * rho * inverse - 2.0) * skew) * inverse
    return c, s, c1, s1, k1, k1x, k1xx, k2, k2x, k2xx + 2.0 * rx * k1x + r * k1xx


@kernel
def friction_slopes(b, k1, k2, k1x, k2x, xd):
    """Return the force of `friction` and its derivatives by x and xd."""
    force, by_x, by_xd = joint_friction(b, 0, 1.0, 0.0, xd)
    if b['kind'] == LOOP:
        for joint in range(1, 4):
            if joint == 1:
                k, kx = k1, k1x
            elif joint == 2:
                k, kx = k2, k2x
            else:
                k, kx = k1 - k2, k1x - k2x
            more, more_by_x, more_by_xd = joint_friction(b, joint, k, kx, xd)
            force, by_x, by_xd = force + more, by_x + more_by_x, by_xd + more_by_xd
    return force, by_x, by_xd


@kernel
def joint_friction(b, joint, k, kx, xd):
    """Return the force -k (d k xd + F tanh(k xd / v_s)) of a joint that moves at k xd, and its derivatives."""
    d = b['damping'][joint]
    force, by_x, by_xd = -d * k * k * xd, -2.0 * d * k * kx * xd, -d * k * k
    if b['rubs'] == 2:
        rate, F = xd / b['slip'], b['friction'][joint]
        level = math.tanh(k * rate)
        steep = k * (1.0 - level * level)
        force -= F * k * level
        by_x -= F * kx * (level + steep * rate)
        by_xd -= F * k * steep / b['slip']
    return force, by_x, by_xd
