"""How a module stands on its parent: places, motions and wrenches between the parent's body and its base frame."""
from ..algebra.spatial import (
    accumulate,
    add,
    add_inertia,
    articulated_shift,
    articulated_turn_x,
    articulated_turn_z,
    cross,
    pair,
    put_inertia,
    scale,
    store,
    turn_x,
    turn_z,
)
from ..runtime.compiler import kernel
from .records import ADD, BARREL, FIRST, LINK, ROD


@kernel
def attachment(b, slide):
    """Return the origin of module b's base frame on its parent body, displaced by the body's slide."""
    p = b['placement']
    if b['parent_body'] == ROD:
        return (p[0] + slide, p[1], p[2])
    return (p[0], p[1], p[2] + slide)


@kernel
def motion_at_base(b, slide, v, w):
    """Take a twist or acceleration of the parent body to the base frame of module b (6)."""
    v = add(v, cross(w, attachment(b, slide)))
    if b['turned']:
        c, s = b['azimuth'][0], -b['azimuth'][1]
        v, w = turn_z(v, c, s), turn_z(w, c, s)
    c, s = b['dh_alpha'][0], -b['dh_alpha'][1]
    return turn_x(v, c, s), turn_x(w, c, s)


@kernel
def wrench_at_parent(b, slide, F, T):
    """Take a wrench at the base frame of module b to its parent body."""
    c, s = b['dh_alpha'][0], b['dh_alpha'][1]
    F, T = turn_x(F, c, s), turn_x(T, c, s)
    if b['turned']:
        c, s = b['azimuth'][0], b['azimuth'][1]
        F, T = turn_z(F, c, s), turn_z(T, c, s)
    return F, add(T, cross(attachment(b, slide), F))


@kernel
def parent_slide(b, work):
    """Return the displacement of the parent body of module b in its kernel frame [m]."""
    if b['parent'] < 0 or b['parent_body'] == BARREL:
        return 0.0
    if b['parent_body'] == ROD:
        return work[b['parent']]['q']
    return work[b['parent']]['slide']


@kernel
def parent_velocity(m, b):
    """Return the twist of the parent body of module b."""
    parent = b['parent']
    if parent < 0:
        return pair(m.environment[0]['twist'])
    u = m.work[parent]
    if b['parent_body'] == LINK:
        return pair(u['velocity'])
    v, w = pair(u['cylinder_velocity'])
    if b['parent_body'] == ROD:
        return (v[0] + u['qd'], v[1], v[2]), w
    return v, w


@kernel
def parent_acceleration(m, b):
    """Return the spatial acceleration of the parent body of module b."""
    parent = b['parent']
    if parent < 0:
        return pair(m.environment[0]['acceleration'])
    u = m.work[parent]
    if b['parent_body'] == LINK:
        return pair(u['acceleration'])
    v, w = pair(u['cylinder_acceleration'])
    if b['parent_body'] == ROD:
        rate, wc = u['qd'], u['cylinder_velocity']
        return (v[0] + u['qdd'], v[1] + wc[5] * rate, v[2] - wc[4] * rate), w
    return v, w


@kernel
def velocity_at_base(m, k):
    """Return the twist (v, w) of the parent's body at the base frame of module k."""
    b = m.modules[k]
    v, w = parent_velocity(m, b)
    return motion_at_base(b, parent_slide(b, m.work), v, w)


@kernel
def acceleration_at_base(m, k):
    """Return the spatial acceleration (v, w) of the parent's body at the base frame of module k."""
    b = m.modules[k]
    v, w = parent_acceleration(m, b)
    return motion_at_base(b, parent_slide(b, m.work), v, w)


@kernel
def accelerate(b, u, v, w):
    """Set the link's acceleration from the one (v, w) at the base frame: a + S qdd + c, in link axes."""
    c = u['bias']
    v = (v[0] + c[0], v[1] + c[1], v[2] + c[2] + u['sigma'] * u['qdd'])
    w = (w[0] + c[3], w[1] + c[4], w[2] + c[5] + u['kappa'] * u['qdd'])
    store(u['acceleration'], turn_z(v, u['c'], -u['s']), turn_z(w, u['c'], -u['s']))


@kernel
def hand_to_parent(m, k, M, F, T):
    """Take M and (F, T) from the base frame of module k to its parent's body, and accumulate them there at a branch."""
    b = m.modules[k]
    if b['parent'] < 0:
        return M, F, T
    slide, parent, parent_body = parent_slide(b, m.work), m.work[b['parent']], b['parent_body']
    F, T = wrench_at_parent(b, slide, F, T)
    M = articulated_turn_x(M, b['dh_alpha'][0], b['dh_alpha'][1])
    if b['turned']:
        M = articulated_turn_z(M, b['azimuth'][0], b['azimuth'][1])
    M = articulated_shift(M, attachment(b, slide))
    if b['accumulate'] == FIRST:
        put_inertia(parent['inertia'][parent_body], M)
        store(parent['wrench'][parent_body], F, T)
    elif b['accumulate'] == ADD:
        add_inertia(parent['inertia'][parent_body], M)
        accumulate(parent['wrench'][parent_body], F, T)
    return M, F, T


@kernel
def wrench_to_parent(m, k, F, T):
    """Add a wrench at the base frame of module k to its parent's body; store it in `root` if that is the base."""
    b, u = m.modules[k], m.work[k]
    if b['parent'] < 0:
        store(u['root'], F, T)
        return
    F, T = wrench_at_parent(b, parent_slide(b, m.work), F, T)
    accumulate(m.work[b['parent']]['wrench'][b['parent_body']], F, T)


@kernel
def moment_at_parent(m, k, h, mass):
    """Take the first moment h of a mass from the base frame of module k to its parent's body."""
    b = m.modules[k]
    slide = parent_slide(b, m.work)
    # a first moment turns as a force does; the mass sits at the base frame's origin
    h, _ = wrench_at_parent(b, slide, h, (0.0, 0.0, 0.0))
    return add(h, scale(mass, attachment(b, slide)))
