"""Exact derivatives of efforts by positions, rates and accelerations, in two sweeps over the bodies.

With I, B, F the sums of `body` over a body and all it carries, and J, r, a of each body of a module:

    f_k        = sum J' F                                       over the bodies of module k
    p, q       = sum I J, sum (2 B)' J                          momentum for unit rate
    dF_dx      = sum J x* F + I a + 2 B r                       dF/dx_k of module k and all it carries
    dF_dxd     = sum 2 (I r + B J)                              dF/dxd_k of the same

    df_i/dx_k  = J_i . dF_dx     df_i/dxd_k = J_i . dF_dxd      i carries k, J_i of the body of i that does
    df_k/dx_i  = p_k . a_i + q_k . r_i                          (the terms J x F cancel in axes that move along)
    df_k/dxd_i = 2 p_k . r_i + q_k . J_i                        M_ik = J_i . p_k

and for i = k the sum over its bodies of J . dF_dx + J' . F and of J . dF_dxd. Rows and columns are those of the
coordinates where a machine has no clusters, else of all its modules; `clusters` takes the latter through the loops.

A floating base is module 0, at rest in the frame of its body.  Its six rows are those of the wrench F on it, its six
columns belong to a displacement and to a twist e of it in its own axes, where gravity g and the twist V_0 are those
of the base: dA_0/dx = (w x g, 0), and as the rates of a change in axes that move along

    dF/dx_0 = I (w x g, 0)      dF/dxd_0 = 2 B e + I (V_0 x e)
"""
from ..algebra.spatial import (
    add,
    cross,
    cross_motion,
    cross_wrench,
    dot,
    null,
    pair,
    plus,
    product,
    rigid_times,
    store,
    times,
)
from ..rigid_body.records import LINK
from ..runtime.compiler import kernel
from .body import carry, coriolis_times, coriolis_transposed, sums
from .joints import bodies_of, is_base, move_module, resistance_slopes


@kernel
def row_of(loops, m, k):
    """Return the row of module k in the derivatives."""
    if loops is None:
        return m.modules[k]['coordinate']
    return loops.base + k


@kernel
def derive_efforts(m, bodies, acting, f, D):
    """Write the efforts f and their derivatives D[0] by position, D[1] by rate, D[2] by acceleration.

    The machine is placed, its accelerations are set.  bodies: scratch (3 modules,) BODY.  acting (2, modules):
    derivatives by position and rate of the efforts that act on the joints besides friction.
    """
    for part in range(3):
        for i in range(f.shape[0]):
            for j in range(f.shape[0]):
                D[part, i, j] = 0.0
    for k in range(m.modules.shape[0]):
        ratios, b = move_module(m, bodies, k), m.modules[k]
        if is_base(b):
            continue
        row = row_of(m.loops, m, k)
        f[row], D[0, row, row], D[1, row, row] = 0.0, -acting[0, k], -acting[1, k]
        if b['passive']:
            force, by_x, by_xd = resistance_slopes(b, ratios, m.work[k]['qd'])
            f[row] -= force
            D[0, row, row] -= by_x
            D[1, row, row] -= by_xd
    inward(m, bodies, f, D)


@kernel
def inward(m, bodies, f, D):
    """Second sweep, tips to base: sums over what each body carries, and the rows and columns of its module."""
    floats = is_base(m.modules[0])
    for k in range(m.modules.shape[0] - 1, -1, -1):
        b, i = m.modules[k], row_of(m.loops, m, k)
        if is_base(b):
            continue
        p, q, dF_dx, dF_dxd = null(), (0.0, 0.0, 0.0), null(), null()
        for body in range(bodies_of(b)):
            r = bodies[3 * k + body]
            B, l, theta, F = sums(r)
            J, rate, a = pair(r['J']), pair(r['rate']), pair(r['a'])
            pr = rigid_times(B, J[0], J[1])
            by_x = plus(cross_wrench(J, F), plus(rigid_times(B, a[0], a[1]), coriolis_times(l, theta, rate[1])))
            by_xd = plus(times(2.0, rigid_times(B, rate[0], rate[1])), coriolis_times(l, theta, J[1]))
            f[i] += product(J, F)
            D[0, i, i] += product(J, by_x)
            D[1, i, i] += product(J, by_xd)
            D[2, i, i] += product(J, pr)
            if bodies_of(b) > 1:
                D[0, i, i] += product(pair(r['slope']), F)
            p, q = plus(p, pr), add(q, coriolis_transposed(l, theta, J))
            dF_dx, dF_dxd = plus(dF_dx, by_x), plus(dF_dxd, by_xd)
            if b['parent'] >= 0:
                carry(bodies[3 * b['parent'] + b['parent_body']], r)
        if floats:
            couple_base(m, i, (p, q, dF_dx, dF_dxd), D)
        couple_ancestors(m, bodies, k, (p, q, dF_dx, dF_dxd), D)
    if floats:
        float_base(m, bodies[LINK], f, D)


@kernel
def couple_ancestors(m, bodies, k, carried, D):
    """Write the entries of row and column of module k with those of its ancestors, given the sums of `inward`."""
    (p, q, dF_dx, dF_dxd), i = carried, row_of(m.loops, m, k)
    row, parent_body = m.modules[k]['parent'], m.modules[k]['parent_body']
    while row >= 0 and not is_base(m.modules[row]):
        r, j = bodies[3 * row + parent_body], row_of(m.loops, m, row)
        J, rate, a = pair(r['J']), pair(r['rate']), pair(r['a'])
        D[0, j, i], D[1, j, i] = product(J, dF_dx), product(J, dF_dxd)
        D[0, i, j] = product(p, a) + dot(q, rate[1])
        D[1, i, j] = 2.0 * product(p, rate) + dot(q, J[1])
        D[2, i, j] = product(p, J)
        D[2, j, i] = D[2, i, j]
        row, parent_body = m.modules[row]['parent'], m.modules[row]['parent_body']


@kernel
def couple_base(m, i, carried, D):
    """Write the entries of row and column i with those of a floating base, given the sums of `inward`."""
    (p, q, dF_dx, dF_dxd), V = carried, pair(m.work[0]['velocity'])
    lift, _ = pair(m.work[0]['bias'])
    turn = cross(p[0], lift)
    rate = cross(p[0], V[1]), add(q, add(cross(p[0], V[0]), cross(p[1], V[1])))
    for c in range(3):
        D[0, i, 3 + c] = turn[c]
        D[1, i, c], D[1, i, 3 + c] = rate[0][c], rate[1][c]
        D[2, i, c], D[2, i, 3 + c] = p[0][c], p[1][c]
        D[0, c, i], D[0, 3 + c, i] = dF_dx[0][c], dF_dx[1][c]
        D[1, c, i], D[1, 3 + c, i] = dF_dxd[0][c], dF_dxd[1][c]
        D[2, c, i], D[2, 3 + c, i] = p[0][c], p[1][c]


@kernel
def float_base(m, r, f, D):
    """Write the rows of a floating base for its own motion; its body r carries everything."""
    B, l, theta, F = sums(r)
    V, (lift, _), zero = pair(m.work[0]['velocity']), pair(m.work[0]['bias']), (0.0, 0.0, 0.0)
    store(f, F[0], F[1])
    for c in range(6):
        e = (1.0 * (c % 3 == 0), 1.0 * (c % 3 == 1), 1.0 * (c % 3 == 2))
        E = (e, zero) if c < 3 else (zero, e)
        column(D[2], c, rigid_times(B, E[0], E[1]))
        V_e = cross_motion(V, E)
        column(D[1], c, plus(rigid_times(B, V_e[0], V_e[1]), coriolis_times(l, theta, E[1])))
        if c >= 3:
            column(D[0], c, rigid_times(B, cross(lift, e), zero))


@kernel
def column(a, c, F):
    a[0, c], a[1, c], a[2, c] = F[0]
    a[3, c], a[4, c], a[5, c] = F[1]
