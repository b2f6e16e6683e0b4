"""How a module moves: its joint numbers, its velocity and its acceleration, given those of its parent.

Types of joint live here and nowhere else.  A module is a screw about and along z with the motion subspace
S = (0, 0, sigma; 0, 0, kappa): revolute (0, 1), prismatic (1, 0), loop (0, k1).  A loop is a revolute joint
with a transmission ratio and a cylinder beside it.

Source: P. Paz and J. Mattila, analytic O(n) forward dynamics of linearly actuated parallel-serial
manipulators (equation numbers of the printed version); closed forms of k4, k5 and the offset e are ours.
"""
import math

from ..algebra.spatial import add, cross, pair, store, turn_x, turn_z
from ..runtime.compiler import kernel
from .records import BARREL, LINK, LOOP, PRISMATIC, ROD

# sin^2 q below this is a toggle: the cylinder has no lever left
TOGGLE = 1e-12


@kernel
def triangle(b, x, xd):
    """Close the triangle of a loop at stroke x and rate xd (2), (28).

    Returns (cos q, sin q, cos q1, sin q1, k1, k2, k4, k5) with q the angle of the boom side B -> T against C -> B,
    q1 that of the stroke axis, qd = k1 xd, q1d = k2 xd, qdd = k1 xdd + k4, q1dd = k2 xdd + k5.
    rho = x + x0, s^2 = rho^2 + e^2 = |C T|^2.  sin q = 0 says that the triangle does not close, or toggles.
    """
    L, L1, e = b['L'], b['L1'], b['e']
    rho = x + b['x0']
    ss = rho * rho + e * e
    half = b['half']
    c = (ss - (L * L + L1 * L1)) * half
    t = (1.0 - c) * (1.0 + c)
    if not (t > TOGGLE and rho * b['side'] > 0.0):
        return c, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0
    s = b['mode'] * math.sqrt(t)
    ratio = 1.0 / s
    inverse = 1.0 / ss
    ax, ay = (L + L1 * c) * inverse, L1 * s * inverse
    k = -2.0 * half * ratio
    k1 = k * rho
    r = L1 * (L1 + L * c) * inverse                                  # dq1/dq at e = 0
    skew = e * inverse
    xx = xd * xd
    k4 = xx * (k - k1 * k1 * c * ratio)
    k5 = xx * (rho * inverse * ((1.0 - 2.0 * r) * k1 - 2.0 * skew)) + r * k4
    return c, s, ax * rho + ay * e, ay * rho - ax * e, k1, r * k1 + skew, k4, k5


@kernel
def attachment(b, slide):
    """Return the origin of module b's base frame on its parent body, displaced by the body's slide."""
    p = b['placement']
    if b['on'] == ROD:
        return (p[0] + slide, p[1], p[2])
    return (p[0], p[1], p[2] + slide)


@kernel
def motion_at_base(b, slide, v, w):
    """Take a twist or acceleration of the parent body to the base frame of module b (6)."""
    v = add(v, cross(w, attachment(b, slide)))
    if b['turned']:
        c, s = b['azimuth'][0], -b['azimuth'][1]
        v, w = turn_z(v, c, s), turn_z(w, c, s)
    c, s = b['twist'][0], -b['twist'][1]
    return turn_x(v, c, s), turn_x(w, c, s)


@kernel
def wrench_at_parent(b, slide, F, T):
    """Take a wrench at the base frame of module b to its parent body."""
    c, s = b['twist'][0], b['twist'][1]
    F, T = turn_x(F, c, s), turn_x(T, c, s)
    if b['turned']:
        c, s = b['azimuth'][0], b['azimuth'][1]
        F, T = turn_z(F, c, s), turn_z(T, c, s)
    return F, add(T, cross(attachment(b, slide), F))


@kernel
def parent_slide(b, work):
    """Return how far the body that module b stands on is displaced in its kernel frame."""
    if b['parent'] < 0 or b['on'] == BARREL:
        return 0.0
    if b['on'] == ROD:
        return work[b['parent']]['stroke']
    return work[b['parent']]['slide']


@kernel
def parent_velocity(b, work, env):
    """Return the twist of the body that module b stands on."""
    parent = b['parent']
    if parent < 0:
        return pair(env[0])
    u = work[parent]
    if b['on'] == LINK:
        return pair(u['velocity'])
    v, w = pair(u['cylinder_velocity'])
    if b['on'] == ROD:
        return (v[0] + u['stroke_rate'], v[1], v[2]), w
    return v, w


@kernel
def parent_acceleration(b, work, env):
    """Return the spatial acceleration of the body that module b stands on."""
    parent = b['parent']
    if parent < 0:
        return pair(env[1])
    u = work[parent]
    if b['on'] == LINK:
        return pair(u['acceleration'])
    v, w = pair(u['cylinder_acceleration'])
    if b['on'] == ROD:
        rate, wc = u['stroke_rate'], u['cylinder_velocity']
        return (v[0] + u['stroke_acceleration'], v[1] + wc[5] * rate, v[2] - wc[4] * rate), w
    return v, w


@kernel
def move(b, u, v, w, x, xd):
    """Set joint numbers, bias and velocities of one module from the twist (v, w) at its base frame.

    Returns False when the loop does not close.
    """
    kind = b['kind']
    if kind == PRISMATIC:
        c, s = b['turn'][0], b['turn'][1]
        u['kappa'], u['sigma'], u['slide'] = 0.0, 1.0, x
        # c = ad_nu s_z xd with s_z along the slide: only the turning axis matters
        store(u['bias'], (w[1] * xd, -w[0] * xd, 0.0), (0.0, 0.0, 0.0))
        v = (v[0], v[1], v[2] + xd)
    elif kind == LOOP:
        cq, sq, c1, s1, k1, k2, k4, k5 = triangle(b, x, xd)
        if sq == 0.0:
            return False
        bc, bs = b['base_turn'][0], b['base_turn'][1]
        c1, s1 = bc * c1 - bs * s1, bs * c1 + bc * s1
        move_cylinder(b, u, v, w, x, xd, c1, s1, k2, k5)
        c, s = b['turn'][0] * cq - b['turn'][1] * sq, b['turn'][1] * cq + b['turn'][0] * sq
        qd = k1 * xd
        u['kappa'], u['sigma'], u['slide'], u['k4'] = k1, 0.0, 0.0, k4
        store(u['bias'], (v[1] * qd, -v[0] * qd, 0.0), (w[1] * qd, -w[0] * qd, k4))
        w = (w[0], w[1], w[2] + qd)
    else:
        angle = x + b['offset']
        c, s = math.cos(angle), math.sin(angle)
        u['kappa'], u['sigma'], u['slide'] = 1.0, 0.0, 0.0
        store(u['bias'], (v[1] * xd, -v[0] * xd, 0.0), (w[1] * xd, -w[0] * xd, 0.0))
        w = (w[0], w[1], w[2] + xd)
    u['c'], u['s'] = c, s
    store(u['velocity'], turn_z(v, c, -s), turn_z(w, c, -s))
    return True


@kernel
def move_cylinder(b, u, v, w, x, xd, c1, s1, k2, k5):
    p = b['pin']
    v = add(v, cross(w, (p[0], p[1], p[2])))
    v, w = turn_z(v, c1, -s1), turn_z(w, c1, -s1)
    u['c1'], u['s1'], u['k2'], u['k5'] = c1, s1, k2, k5
    u['stroke'], u['stroke_rate'] = x, xd
    store(u['cylinder_velocity'], v, (w[0], w[1], w[2] + k2 * xd))


@kernel
def outward_velocities(mods, work, env, x, xd):
    """First sweep: joint numbers and twists, base to tips.  Returns 0, or 1 + the module that does not close."""
    for k in range(mods.shape[0]):
        b, u = mods[k], work[k]
        v, w = parent_velocity(b, work, env)
        v, w = motion_at_base(b, parent_slide(b, work), v, w)
        i = b['coordinate']
        if not move(b, u, v, w, x[i], xd[i]):
            return k + 1
    return 0


@kernel
def accelerate(b, u, v, w, xdd):
    """Set the link's acceleration from the one (v, w) at the base frame: a + S xdd + c, in link axes."""
    c = u['bias']
    v = (v[0] + c[0], v[1] + c[1], v[2] + c[2] + u['sigma'] * xdd)
    w = (w[0] + c[3], w[1] + c[4], w[2] + c[5] + u['kappa'] * xdd)
    store(u['acceleration'], turn_z(v, u['c'], -u['s']), turn_z(w, u['c'], -u['s']))


@kernel
def accelerate_cylinder(b, u, v, w, xdd):
    """Set the barrel's acceleration from the one (v, w) at the base frame (30)."""
    p, xd = b['pin'], u['stroke_rate']
    v = add(v, cross(w, (p[0], p[1], p[2])))
    v, w = turn_z(v, u['c1'], -u['s1']), turn_z(w, u['c1'], -u['s1'])
    t, qd = u['cylinder_velocity'], u['k2'] * xd
    u['stroke_acceleration'] = xdd
    store(u['cylinder_acceleration'],
          (v[0] + t[1] * qd, v[1] - t[0] * qd, v[2]),
          (w[0] + t[4] * qd, w[1] - t[3] * qd, w[2] + u['k5'] + u['k2'] * xdd))


@kernel
def friction(b, u, xd):
    """Return the force on the coordinate by damping and Coulomb friction of the module's joints.

    -(d v + F tanh(v / v_s)) of each joint, passive ones through their rates (Paz & Mattila, limits of (56)).
    """
    if b['rubs'] == 0:
        return 0.0
    d = b['damping']
    if b['kind'] != LOOP:
        force = -d[0] * xd
        if b['rubs'] == 2:
            force -= b['friction'][0] * math.tanh(xd / b['slip'])
        return force
    k1, k2 = u['kappa'], u['k2']
    k3 = k1 - k2
    force = -(d[0] + d[1] * k1 * k1 + d[2] * k2 * k2 + d[3] * k3 * k3) * xd
    if b['rubs'] == 2:
        F, rate = b['friction'], xd / b['slip']
        force -= (F[0] * math.tanh(rate) + F[1] * k1 * math.tanh(k1 * rate)
                  + F[2] * k2 * math.tanh(k2 * rate) + F[3] * k3 * math.tanh(k3 * rate))
    return force
