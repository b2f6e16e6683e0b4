"""The joint operations of the derivative recursion, for every kind of joint; see `rigid_body.joints`.

The modules are placed: turns of links and cylinders, and ratios of triangles, are in `work`.
"""
from ..algebra.spatial import add, cross, in_axes, line, pair, scale, store, sub, times, turned, vector
from ..rigid_body.friction import friction_slope, joint_friction
from ..rigid_body.records import APPLIED, BARREL, FREE, LINK, LOOP, PRISMATIC, ROD
from ..rigid_body.triangle import triangle
from ..runtime.compiler import kernel
from .body import load_body, move_body, move_curved_body, place_body


@kernel
def bodies_of(b):
    """Return the number of bodies of a module, rows of `bodies` from 3 k on."""
    return 3 if b['kind'] == LOOP else 1


@kernel
def is_base(b):
    """Return whether a module is a floating base, whose rows are not those of one coordinate."""
    return b['kind'] == FREE


@kernel
def move_module(m, bodies, k):
    """Place the bodies of module k and set their motion; return (ratios of its triangle, their slopes)."""
    b, u = m.modules[k], m.work[k]
    if b['kind'] == FREE:
        return rest_base(m, bodies)
    V, A = pair(m.environment[0]['twist']), pair(m.environment[0]['acceleration'])
    X, Y, Z, p = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
    if b['parent'] >= 0:
        r = bodies[3 * b['parent'] + b['parent_body']]
        V, A = pair(r['velocity']), pair(r['acceleration'])
        X, Y, Z, p = vector(r['x']), vector(r['y']), vector(r['z']), vector(r['origin'])
    p = add(p, in_axes(X, Y, Z, b['placement']))
    if b['turned']:
        X, Y = turned(X, Y, b['azimuth'][0], b['azimuth'][1])
    Y, Z = turned(Y, Z, b['dh_alpha'][0], b['dh_alpha'][1])

    r, ratios = bodies[3 * k + LINK], (1.0, 0.0, 0.0, 0.0)
    if b['kind'] == LOOP:
        k1, k1x, k1xx, k2, k2x, k2xx = triangle_curvature(b, u['q'])
        ratios = k1, k2, k1x, k2x
        move_cylinder(m, bodies, k, (X, Y, Z, p), V, A, (k2, k2x, k2xx))
        screw = line(p, Z)
        V, A = move_curved_body(
            r, V, A, times(k1, screw), times(k1x, screw), times(k1xx, screw), u['qd'], u['qdd'])
    elif b['kind'] == PRISMATIC:
        V, A = move_body(r, V, A, (Z, (0.0, 0.0, 0.0)), u['qd'], u['qdd'])
        p = add(p, scale(u['q'], Z))
    else:
        V, A = move_body(r, V, A, line(p, Z), u['qd'], u['qdd'])
    X, Y = turned(X, Y, u['c'], u['s'])
    place_body(r, X, Y, Z, p)
    load_body(r, X, Y, Z, p, b['link'], V, A)
    if m.environment[0]['loaded']:
        subtract_external_wrenches(m, bodies, k)
    return ratios


@kernel
def rest_base(m, bodies):
    """Place a floating base at rest in its own axes, moving at its twist; return ratios as `move_module`."""
    r, u, zero = bodies[LINK], m.work[0], (0.0, 0.0, 0.0)
    X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    V, A = pair(u['velocity']), pair(u['acceleration'])
    store(r['velocity'], V[0], V[1])
    store(r['acceleration'], A[0], A[1])
    place_body(r, X, Y, Z, zero)
    load_body(r, X, Y, Z, zero, m.modules[0]['link'], V, A)
    if m.environment[0]['loaded']:
        subtract_external_wrenches(m, bodies, 0)
    return 1.0, 0.0, 0.0, 0.0


@kernel
def move_cylinder(m, bodies, k, frame, V, A, ratio):
    """Place barrel and rod of a triangle on the base frame (X, Y, Z, p) of module k, whose parent moves at V, A.

    ratio: k2 and its first two derivatives by x.
    """
    (X, Y, Z, p), (k2, k2x, k2xx) = frame, ratio
    b, u = m.modules[k], m.work[k]
    x, xd, xdd = u['q'], u['qd'], u['qdd']
    p = add(p, in_axes(X, Y, Z, b['pin']))
    X, Y = turned(X, Y, u['c1'], u['s1'])
    pin = line(p, Z)
    J, slope, curvature = times(k2, pin), times(k2x, pin), times(k2xx, pin)

    r = bodies[3 * k + BARREL]
    VB, AB = move_curved_body(r, V, A, J, slope, curvature, xd, xdd)
    place_body(r, X, Y, Z, p)
    load_body(r, X, Y, Z, p, b['barrel'], VB, AB)

    # the rod slides along X, which turns towards Y by k2
    J = add(J[0], X), J[1]
    slope = add(slope[0], scale(k2, Y)), slope[1]
    curvature = add(curvature[0], sub(scale(k2x, Y), scale(k2 * k2, X))), curvature[1]
    r = bodies[3 * k + ROD]
    VR, AR = move_curved_body(r, V, A, J, slope, curvature, xd, xdd)
    p = add(p, scale(x, X))
    place_body(r, X, Y, Z, p)
    load_body(r, X, Y, Z, p, b['rod'], VR, AR)


@kernel
def triangle_curvature(b, x):
    """Return (k1, k1', k1'', k2, k2', k2'') of a triangle that closes, ' the derivative by x; see `triangle`."""
    c, s, _, _, k1, k2, k1x, k2x = triangle(b, x, 1.0)
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
    return k1, k1x, k1xx, k2, k2x, k2xx + 2.0 * rx * k1x + r * k1xx


@kernel
def resistance_slopes(b, ratios, xd):
    """Return the passive force on a coordinate without that of stops, and its derivatives by x and xd.

    ratios: (k1, k2) of a triangle and their derivatives by x.
    """
    force, by_x, by_xd = friction_through(b, 0, 1.0, 0.0, xd)
    if b['kind'] == LOOP:
        k1, k2, k1x, k2x = ratios
        for joint in range(1, 4):
            if joint == 1:
                k, kx = k1, k1x
            elif joint == 2:
                k, kx = k2, k2x
            else:
                k, kx = k1 - k2, k1x - k2x
            more, more_by_x, more_by_xd = friction_through(b, joint, k, kx, xd)
            force, by_x, by_xd = force + more, by_x + more_by_x, by_xd + more_by_xd
    if b['passive'] & APPLIED:
        force += b['applied']
    return force, by_x, by_xd


@kernel
def friction_through(b, joint, k, kx, xd):
    """Return the force of friction on the coordinate by a joint that moves at k(x) xd, and its derivatives."""
    d, F, slip, rate = b['damping'][joint], b['friction'][joint], b['slip'], k * xd
    force, slope = joint_friction(d, F, slip, rate), friction_slope(d, F, slip, rate)
    return k * force, kx * (force + slope * rate), k * k * slope


@kernel
def subtract_external_wrenches(m, bodies, k):
    """Take the external wrenches off the bodies of module k; those are about points where q = 0 would be."""
    b, x = m.modules[k], m.work[k]['q']
    for body in range(bodies_of(b)):
        r, e = bodies[3 * k + body], b['external'][body]
        X, Y, Z, p = vector(r['x']), vector(r['y']), vector(r['z']), vector(r['origin'])
        if body == ROD:
            p = sub(p, scale(x, X))
        elif b['kind'] == PRISMATIC:
            p = sub(p, scale(x, Z))
        f, t = pair(e)
        F, T = pair(r['wrench'])
        f = in_axes(X, Y, Z, f)
        store(r['wrench'], sub(F, f), sub(T, add(in_axes(X, Y, Z, t), cross(p, f))))
