"""Exact derivatives of inverse and forward dynamics by x, xd and xdd or f, in two sweeps over the bodies.

With I, B, F the sums of `derivatives_body` over a body and all it carries, and J, r, a of each body of a module:

    f_k        = sum J' F                                       over the bodies of module k
    p, q       = sum I J, sum (2 B)' J                          momentum for unit rate
    phi, psi   = sum J x* F + I a + 2 B r, sum 2 (I r + B J)    dF/dx_k and dF/dxd_k of module k and all it carries

    df_i/dx_k = J_i . phi_k     df_i/dxd_k = J_i . psi_k        i carries k, J_i of the body of i that does
    df_k/dx_i = p_k . a_i + q_k . r_i                           (the terms J x F cancel in axes that move along)
    df_k/dxd_i = 2 p_k . r_i + q_k . J_i                        M_ik = J_i . p_k

and for i = k the sum over its bodies of J . phi + J' . F and of J . psi.  Then, at xdd = FD(x, xd, f),

    dxdd/dx = -M^-1 df/dx      dxdd/dxd = -M^-1 df/dxd      dxdd/df = M^-1

A floating base is module 0, at rest in the frame of its body.  Its six rows are those of the wrench F on it, its six
columns belong to a displacement and to a twist e of it in its own axes, where gravity g and the twist V_0 are those
of the base: dA_0/dx = (w x g, 0), and as the rates of a change in axes that move along

    dF/dx_0 = I (w x g, 0)      dF/dxd_0 = 2 B e + I (V_0 x e)
"""
import math

from ..algebra.spatial import add, cross, dot, pair, rigid_times, scale, store, sub
from ..rigid_body.entry import checked, finite, forward_checked
from ..rigid_body.records import LINK, LOOP, PRISMATIC, ROD
from ..runtime.compiler import entry, kernel
from .body import (
    carry,
    coriolis_times,
    coriolis_transposed,
    cross_motion,
    cross_wrench,
    in_axes,
    line,
    load_body,
    move_body,
    move_curved_body,
    null,
    place_body,
    plus,
    product,
    sums,
    times,
    turned,
    vector,
)
from .triangle import friction_slopes, move_cylinder, triangle_curvature


@entry
def inverse_derivatives(mods, bodies, env, x, xd, xdd, f, f_x, f_xd, M):
    """Write f (dof,), df/dx, df/dxd and df/dxdd = M (dof, dof); return a status as `inverse_checked`.

    bodies: scratch (3 modules,) BODY.  env as in `forward`; external wrenches turn and move with their bodies.
    """
    status = checked(mods.shape[0], x, xd, xdd, f)
    if status == 0:
        status = derive_inverse(mods, bodies, env, 0, (0.0, 0.0, 0.0), x, xd, xdd, f, f_x, f_xd, M)
    return status if status != 0 else finite(f)


@entry
def forward_derivatives(mods, work, bodies, env, x, xd, f, xdd, xdd_x, xdd_xd, xdd_f, effort):
    """Write xdd (dof,), dxdd/dx, dxdd/dxd and dxdd/df = M^-1 (dof, dof); return a status as `forward_checked`.

    effort: scratch (dof,).
    """
    status = forward_checked(mods, work, env, x, xd, f, xdd)
    if status == 0:
        status = derive_inverse(mods, bodies, env, 0, (0.0, 0.0, 0.0), x, xd, xdd, effort, xdd_x, xdd_xd, xdd_f)
    if status == 0:
        factorise(xdd_f)
        solve_negative(xdd_f, xdd_x)
        solve_negative(xdd_f, xdd_xd)
        invert(xdd_f)
    return status


@entry
def derive_inverse(mods, bodies, env, base, lift, x, xd, xdd, f, f_x, f_xd, M):
    """See `inverse_derivatives`; with base = 6 the base floats, and its rows and columns stand before the modules'.

    lift (x, y, z): minus gravity in the axes of a floating base.
    """
    n = f_x.shape[0]
    for i in range(n):
        for j in range(n):
            f_x[i, j] = 0.0
            f_xd[i, j] = 0.0
            M[i, j] = 0.0
    status = outward(mods, bodies, env, base, x, xd, xdd, f, f_x, f_xd)
    if status == 0:
        inward(mods, bodies, env, base, lift, f, f_x, f_xd, M)
    return status


@kernel
def outward(mods, bodies, env, base, x, xd, xdd, f, f_x, f_xd):
    """First sweep, base to tips: motion and own sums of every body; the friction opens f and the diagonals."""
    for k in range(mods.shape[0]):
        b, i = mods[k], mods[k]['coordinate']
        V, A = pair(env[0]), pair(env[1])
        X, Y, Z, p = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
        if b['parent'] >= 0:
            r = bodies[3 * b['parent'] + b['on']]
            V, A = pair(r['velocity']), pair(r['acceleration'])
            X, Y, Z, p = vector(r['x']), vector(r['y']), vector(r['z']), vector(r['origin'])
        p = add(p, in_axes(X, Y, Z, b['placement']))
        if b['turned']:
            X, Y = turned(X, Y, b['azimuth'][0], b['azimuth'][1])
        Y, Z = turned(Y, Z, b['twist'][0], b['twist'][1])

        r, k1, k2, k1x, k2x = bodies[3 * k + LINK], 1.0, 0.0, 0.0, 0.0
        if b['kind'] == LOOP:
            t = triangle_curvature(b, x[i])
            if t[1] == 0.0:
                return k + 1
            c, s, c1, s1, k1, k1x, k1xx, k2, k2x, k2xx = t
            move_cylinder(b, bodies, k, X, Y, Z, p, V, A, (c1, s1), (k2, k2x, k2xx), x[i], xd[i], xdd[i])
            screw = line(p, Z)
            V, A = move_curved_body(
                r, V, A, times(k1, screw), times(k1x, screw), times(k1xx, screw), xd[i], xdd[i])
            c, s = b['turn'][0] * c - b['turn'][1] * s, b['turn'][1] * c + b['turn'][0] * s
        elif b['kind'] == PRISMATIC:
            V, A = move_body(r, V, A, (Z, (0.0, 0.0, 0.0)), xd[i], xdd[i])
            c, s, p = b['turn'][0], b['turn'][1], add(p, scale(x[i], Z))
        else:
            V, A = move_body(r, V, A, line(p, Z), xd[i], xdd[i])
            angle = x[i] + b['offset']
            c, s = math.cos(angle), math.sin(angle)
        X, Y = turned(X, Y, c, s)
        place_body(r, X, Y, Z, p)
        load_body(r, X, Y, Z, p, b['link'], V, A)
        if b['rubs']:
            force, by_x, by_xd = friction_slopes(b, k1, k2, k1x, k2x, xd[i])
            row = base + i
            f[row], f_x[row, row], f_xd[row, row] = -force, -by_x, -by_xd
        else:
            f[base + i] = 0.0
        if env.shape[0] > 2:
            less_external(b, bodies, env, k, x[i])
    return 0


@kernel
def less_external(b, bodies, env, k, x):
    """Take the external wrenches off the bodies of module k; env has them about the points where x = 0 would be."""
    for body in range(3 if b['kind'] == LOOP else 1):
        r, e = bodies[3 * k + body], env[2 + 3 * k + body]
        X, Y, Z, p = vector(r['x']), vector(r['y']), vector(r['z']), vector(r['origin'])
        if body == ROD:
            p = sub(p, scale(x, X))
        elif b['kind'] == PRISMATIC:
            p = sub(p, scale(x, Z))
        f, m = pair(e)
        F, T = pair(r['wrench'])
        f = in_axes(X, Y, Z, f)
        store(r['wrench'], sub(F, f), sub(T, add(in_axes(X, Y, Z, m), cross(p, f))))


@kernel
def inward(mods, bodies, env, base, lift, f, f_x, f_xd, M):
    """Second sweep, tips to base: sums over what each body carries, and the rows and columns of its module."""
    first = 1 if base else 0
    for k in range(mods.shape[0] - 1, first - 1, -1):
        b, i = mods[k], base + mods[k]['coordinate']
        p, q, phi, psi = null(), (0.0, 0.0, 0.0), null(), null()
        for body in range(3 if b['kind'] == LOOP else 1):
            r = bodies[3 * k + body]
            B, l, theta, F = sums(r)
            J, rate, a = pair(r['J']), pair(r['rate']), pair(r['a'])
            pr = rigid_times(B, J[0], J[1])
            phi_r = plus(cross_wrench(J, F), plus(rigid_times(B, a[0], a[1]), coriolis_times(l, theta, rate[1])))
            psi_r = plus(times(2.0, rigid_times(B, rate[0], rate[1])), coriolis_times(l, theta, J[1]))
            f[i] += product(J, F)
            f_x[i, i] += product(J, phi_r)
            f_xd[i, i] += product(J, psi_r)
            M[i, i] += product(J, pr)
            if b['kind'] == LOOP:
                f_x[i, i] += product(pair(r['slope']), F)
            p, q, phi, psi = plus(p, pr), add(q, coriolis_transposed(l, theta, J)), plus(phi, phi_r), plus(psi, psi_r)
            if b['parent'] >= 0:
                carry(bodies[3 * b['parent'] + b['on']], r)

        row, on = b['parent'], b['on']
        if base:
            couple_base(env, lift, i, p, q, phi, psi, f_x, f_xd, M)
        while row >= first:
            r, j = bodies[3 * row + on], base + mods[row]['coordinate']
            J, rate, a = pair(r['J']), pair(r['rate']), pair(r['a'])
            f_x[j, i], f_xd[j, i] = product(J, phi), product(J, psi)
            f_x[i, j] = product(p, a) + dot(q, rate[1])
            f_xd[i, j] = 2.0 * product(p, rate) + dot(q, J[1])
            M[i, j] = product(p, J)
            M[j, i] = M[i, j]
            row, on = mods[row]['parent'], mods[row]['on']
    if base:
        float_base(bodies[LINK], env, lift, f, f_x, f_xd, M)


@kernel
def couple_base(env, lift, i, p, q, phi, psi, f_x, f_xd, M):
    """Write what row i and its column have with a floating base, given the sums of `inward`."""
    V = pair(env[0])
    turn = cross(p[0], lift)
    rate = cross(p[0], V[1]), add(q, add(cross(p[0], V[0]), cross(p[1], V[1])))
    for c in range(3):
        f_x[i, 3 + c] = turn[c]
        f_xd[i, c], f_xd[i, 3 + c] = rate[0][c], rate[1][c]
        M[i, c], M[i, 3 + c] = p[0][c], p[1][c]
        f_x[c, i], f_x[3 + c, i] = phi[0][c], phi[1][c]
        f_xd[c, i], f_xd[3 + c, i] = psi[0][c], psi[1][c]
        M[c, i], M[3 + c, i] = p[0][c], p[1][c]


@kernel
def float_base(r, env, lift, f, f_x, f_xd, M):
    """Write the rows of a floating base for its own motion; body r carries everything."""
    B, l, theta, F = sums(r)
    V, zero = pair(env[0]), (0.0, 0.0, 0.0)
    store(f, F[0], F[1])
    for c in range(6):
        e = (1.0 * (c % 3 == 0), 1.0 * (c % 3 == 1), 1.0 * (c % 3 == 2))
        E = (e, zero) if c < 3 else (zero, e)
        column(M, c, rigid_times(B, E[0], E[1]))
        V_e = cross_motion(V, E)
        column(f_xd, c, plus(rigid_times(B, V_e[0], V_e[1]), coriolis_times(l, theta, E[1])))
        if c >= 3:
            column(f_x, c, rigid_times(B, cross(lift, e), zero))


@kernel
def column(a, c, F):
    a[0, c], a[1, c], a[2, c] = F[0]
    a[3, c], a[4, c], a[5, c] = F[1]


@entry
def factorise(M):
    """Replace M by L D L': L in the upper triangle as L', the reciprocals of D on the diagonal.

    Without roots: a body may be declared that makes M indefinite.
    """
    n = M.shape[0]
    for j in range(n):
        for i in range(j, n):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[k, j]
            M[i, j] = total
        M[j, j] = 1.0 / M[j, j]
        for i in range(j + 1, n):
            M[j, i] = M[i, j] * M[j, j]


@entry
def solve_negative(L, B):
    """Replace B by -M^-1 B; L from `factorise`."""
    n, columns = B.shape
    for i in range(n):
        for k in range(i):
            for c in range(columns):
                B[i, c] -= L[k, i] * B[k, c]
    for i in range(n - 1, -1, -1):
        for c in range(columns):
            B[i, c] *= -L[i, i]
        for k in range(i + 1, n):
            for c in range(columns):
                B[i, c] -= L[i, k] * B[k, c]


@entry
def invert(L):
    """Replace L from `factorise` by M^-1 = W' D^-1 W with W = L^-1, exactly symmetric."""
    n = L.shape[0]
    for j in range(n):
        for i in range(j + 1, n):
            total = L[j, i]
            for k in range(j + 1, i):
                total += L[k, i] * L[k, j]
            L[i, j] = -total
    for i in range(n):
        for j in range(i + 1):
            total = L[i, i] * L[i, j] if j < i else L[i, i]
            for k in range(i + 1, n):
                total += L[k, i] * L[k, k] * L[k, j]
            L[i, j] = total
            L[j, i] = total
