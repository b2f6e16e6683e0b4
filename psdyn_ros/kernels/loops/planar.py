"""Joints of a cluster that all move in one plane: a turn about its normal or a slide in it, closed by pins.

A body has the angle and the origin of its joint in the plane of the cluster's base body; at joint position zero all
bodies stand parallel.  The pin between A and B at a in A and b in B closes two rows, phi = p_B + R_B b - p_A - R_A a.
Opposite sides a of A and b of B of a parallelogram add one, phi = (R_A a) x (R_B b): the pins alone lose rank where all
sides are in line, and may leave from there as an antiparallelogram.
"""
import math

from ..runtime.compiler import kernel, python_kernel


@kernel
def set_position(t, u, q):
    """Set the position of a joint, and cos and sin of it where it turns."""
    u['q'], u['c'], u['s'] = q, 1.0, 0.0
    if not t['slides']:
        u['c'], u['s'] = math.cos(q), math.sin(q)


@python_kernel
def turn_joints(cluster, cluster_joints, work):
    """Set cos and sin of the q of every joint of a cluster."""
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        set_position(cluster_joints[j], work[j], work[j]['q'])


@python_kernel
def place_planar(cluster, cluster_joints, work):
    """Set angle and origin of every body of a planar cluster from its q, cos and sin of which are set."""
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        t, u = cluster_joints[j], work[j]
        c, s, x, y = 1.0, 0.0, 0.0, 0.0
        if t['parent'] >= 0:
            v = work[t['parent']]
            c, s, x, y = v['cos'], v['sin'], v['x'], v['y']
        dx, dy = t['d'][0], t['d'][1]
        if t['slides']:
            dx += u['q'] * t['s'][0]
            dy += u['q'] * t['s'][1]
        a, b = u['c'], t['sign'] * u['s']
        u['cos'], u['sin'] = c * a - s * b, s * a + c * b
        u['x'], u['y'] = x + c * dx - s * dy, y + s * dx + c * dy


@python_kernel
def pin_of(work, j, p):
    """Return the place of a point of body j, -1: of the base body."""
    if j < 0:
        return p[0], p[1]
    u = work[j]
    return u['x'] + u['cos'] * p[0] - u['sin'] * p[1], u['y'] + u['sin'] * p[0] + u['cos'] * p[1]


@kernel
def side_of(work, j, p):
    """Return a direction of body j, -1: of the base body."""
    if j < 0:
        return p[0], p[1]
    u = work[j]
    return u['cos'] * p[0] - u['sin'] * p[1], u['sin'] * p[0] + u['cos'] * p[1]


@kernel
def linearise_planar(cluster, cluster_joints, pins, work, A):
    """Write the system of `linearise` with two rows a pin and one a pair of sides into A; return max |phi|."""
    worst, joints, residual = 0.0, cluster['joints'], cluster['joints'] - cluster['freedom']
    for i in range(cluster['pins']):
        r, row = pins[cluster['pin'] + i], 2 * i
        for c in range(joints + 1):
            A[row, c] = 0.0
            A[row + 1, c] = 0.0
        ax, ay = pin_of(work, r['a'], r['pa'])
        bx, by = pin_of(work, r['b'], r['pb'])
        A[row, residual], A[row + 1, residual] = ax - bx, ay - by
        gap = abs(ax - bx) + abs(ay - by)
        worst = max(worst, gap) if gap < math.inf else math.inf
        j, sign, x, y = r['b'], 1.0, bx, by
        for _ in range(2):
            while j >= 0:
                t, u = cluster_joints[j], work[j]
                if t['slides']:
                    kx, ky = u['cos'] * t['s'][0] - u['sin'] * t['s'][1], u['sin'] * t['s'][0] + u['cos'] * t['s'][1]
                else:
                    kx, ky = -t['sign'] * (y - u['y']), t['sign'] * (x - u['x'])
                k = sign if t['independent'] < 0 else -sign
                A[row, t['column']] += k * kx
                A[row + 1, t['column']] += k * ky
                j = t['parent']
            j, sign, x, y = r['a'], -1.0, ax, ay
    for i in range(cluster['parallels']):
        r, row = pins[cluster['pin'] + cluster['pins'] + i], 2 * cluster['pins'] + i
        for c in range(joints + 1):
            A[row, c] = 0.0
        ax, ay = side_of(work, r['a'], r['pa'])
        bx, by = side_of(work, r['b'], r['pb'])
        along, across = ax * bx + ay * by, ax * by - ay * bx
        A[row, residual] = -across
        worst = max(worst, abs(across)) if abs(across) < math.inf else math.inf
        j = r['b']
        for sign in (along, -along):
            while j >= 0:
                t = cluster_joints[j]
                A[row, t['column']] += t['sign'] * (sign if t['independent'] < 0 else -sign)
                j = t['parent']
            j = r['a']
    return worst


@kernel
def bias_planar(cluster, cluster_joints, work):
    """Set angular velocity and, at qdd = 0, the acceleration of the origin of every body."""
    n = cluster['normal']
    for j in range(cluster['first'], cluster['first'] + cluster['joints']):
        t, u = cluster_joints[j], work[j]
        rate, x, y, ax, ay = 0.0, 0.0, 0.0, 0.0, 0.0
        if t['parent'] >= 0:
            v = work[t['parent']]
            rate, x, y, ax, ay = v['rate'], v['x'], v['y'], v['ax'], v['ay']
        square = rate * rate
        ax -= square * (u['x'] - x)
        ay -= square * (u['y'] - y)
        if t['slides']:
            twice = 2.0 * rate * u['qd']
            ax -= twice * (u['sin'] * t['s'][0] + u['cos'] * t['s'][1])
            ay += twice * (u['cos'] * t['s'][0] - u['sin'] * t['s'][1])
        else:
            rate += t['sign'] * u['qd']
        u['rate'], u['ax'], u['ay'] = rate, ax, ay
        # the friction of pins needs twists and screws
        u['velocity'][3], u['velocity'][4], u['velocity'][5] = rate * n[0], rate * n[1], rate * n[2]
        for i in range(3):
            u['screw'][3 + i] = t['sign'] * n[i]


@kernel
def bias_of_pin(r, work):
    """Return the second rate of the rows of a pin at qdd = 0."""
    ax, ay = acceleration_of(work, r['a'], r['pa'])
    bx, by = acceleration_of(work, r['b'], r['pb'])
    return bx - ax, by - ay


@kernel
def acceleration_of(work, j, p):
    if j < 0:
        return 0.0, 0.0
    u = work[j]
    square = u['rate'] * u['rate']
    return (u['ax'] - square * (u['cos'] * p[0] - u['sin'] * p[1]),
            u['ay'] - square * (u['sin'] * p[0] + u['cos'] * p[1]))
