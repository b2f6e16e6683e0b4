"""Planar loops in closed form: a pin that fixes two joints is a triangle with two sides known and a known base.

A four-bar is one such dyad, a five-bar one beyond two cranks, a cylinder that drives a rocker on a coupler two.
Opposite sides of a parallelogram turn alike: they fix one joint each, without a root, also where all are in line.
"""
import math

from ..runtime.compiler import kernel, python_kernel
from .planar import pin_of, place_planar, set_position, side_of
from .records import ALONG, PARALLEL, SLIDING


@kernel
def close_dyads(cluster, loops):
    """Set the dependent q of a planar cluster one dyad after another, each within half a turn of the q in work.

    Sets cos and sin of all q.  Returns False where a triangle does not close.
    """
    cluster_joints, work = loops.cluster_joints, loops.work
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        if cluster_joints[j]['independent'] >= 0:
            set_position(cluster_joints[j], work[j], work[j]['q'])
    for k in range(cluster['dyad'], cluster['dyad'] + cluster['dyads']):
        d = loops.dyads[k]
        a, b, u, v = cluster_joints[d['a']], cluster_joints[d['b']], work[d['a']], work[d['b']]
        near, beside = u['q'], v['q']
        for joint in (u, v):
            joint['q'], joint['c'], joint['s'] = 0.0, 1.0, 0.0
        place_planar(cluster, cluster_joints, work)
        if d['kind'] == PARALLEL:
            turn = turn_parallel(d, loops.pins[d['pin']], cluster_joints, work)
            set_position(a, u, next_to(near, a['sign'] * turn))
            continue
        turn, second = dyad(d, loops.pins[d['pin']], cluster_joints, work)
        if not abs(turn) < math.inf:
            return False
        set_position(a, u, next_to(near, a['sign'] * turn))
        set_position(b, v, second if b['slides'] else next_to(beside, b['sign'] * second))
    return True


@kernel
def next_to(near, angle):
    """Return the angle at the number of turns at which it is next to another."""
    return angle + 2.0 * math.pi * math.floor((near - angle) / (2.0 * math.pi) + 0.5)


@kernel
def turn_parallel(d, pin, cluster_joints, work):
    """Return the turn of joint a, from its position zero, that makes two sides of a parallelogram parallel."""
    ax, ay = side_of(work, pin['a'], pin['pa'])
    bx, by = side_of(work, pin['b'], pin['pb'])
    return angle_between(ax, ay, bx, by) if carries(cluster_joints, d['a'], pin['a']) else angle_between(bx, by, ax, ay)


@kernel
def dyad(d, pin, cluster_joints, work):
    """Return the turn of joint a, and the turn or slide of joint b, from position zero of both; NaN: none closes."""
    u, v = work[d['a']], work[d['b']]
    ax, ay = pin_of(work, pin['a'], pin['pa'])
    bx, by = pin_of(work, pin['b'], pin['pb'])
    # p: the pin on the side of joint a, t: on the other side
    on_a = carries(cluster_joints, d['a'], pin['a'])
    px, py, tx, ty = (ax, ay, bx, by) if on_a else (bx, by, ax, ay)
    if d['kind'] == SLIDING:
        rx, ry, x, y = px - u['x'], py - u['y'], tx - u['x'], ty - u['y']
        s = cluster_joints[d['b']]['s']
        sx, sy = v['cos'] * s[0] - v['sin'] * s[1], v['sin'] * s[0] + v['cos'] * s[1]
        half = rx * sx + ry * sy
        root = half * half - rx * rx - ry * ry + x * x + y * y
        if not root >= 0.0:
            return math.nan, math.nan
        slide = d['mode'] * math.sqrt(root) - half
        return angle_between(rx + slide * sx, ry + slide * sy, x, y), slide
    if d['kind'] == ALONG:
        # sides a -> b and b -> pin, base a -> t
        rx, ry, x, y = v['x'] - u['x'], v['y'] - u['y'], tx - u['x'], ty - u['y']
        ex, ey = px - v['x'], py - v['y']
    else:
        # sides a -> pin and b -> pin, base a -> b
        rx, ry, x, y = px - u['x'], py - u['y'], v['x'] - u['x'], v['y'] - u['y']
        ex, ey = tx - v['x'], ty - v['y']
    square, first = x * x + y * y, rx * rx + ry * ry
    along = 0.5 * (square + first - ex * ex - ey * ey) / square
    height = first / square - along * along
    if not height >= 0.0:
        return math.nan, math.nan
    across = d['mode'] * math.sqrt(height)
    cx, cy = along * x - across * y, along * y + across * x         # the corner, seen from a
    turn = angle_between(rx, ry, cx, cy)
    if d['kind'] == ALONG:
        c, s = math.cos(turn), math.sin(turn)
        return turn, angle_between(c * ex - s * ey, s * ex + c * ey, x - cx, y - cy)
    return turn, angle_between(ex, ey, cx - x, cy - y)


@python_kernel
def carries(cluster_joints, joint, body):
    """Return True where a body is moved by a joint."""
    while body >= 0:
        if body == joint:
            return True
        body = cluster_joints[body]['parent']
    return False


@kernel
def angle_between(ax, ay, bx, by):
    return math.atan2(ax * by - ay * bx, ax * bx + ay * by)
