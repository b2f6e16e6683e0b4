"""Exact derivatives of inverse and forward dynamics of general machines: the tree's, taken through the loops.

With z the positions of all modules, tau(z, zd, zdd) the efforts on them, and dz = G dx (see `derivatives_loops`),

    f       = G' tau
    df/dx   = G' (tau_z G + tau_zd dzd/dx + tau_zdd dzdd/dx) + (dG/dx)' tau
    df/dxd  = G' (tau_zd G + tau_zdd dzdd/dxd)                 df/dxdd = M = G' tau_zdd G

Efforts that act on the joints are taken off tau first.  Forward dynamics is f = 0 with those of the actuators, so
that, with G_a the rows of G that are driven,

    dxdd/dx = -M^-1 df/dx    dxdd/dxd = -M^-1 df/dxd    dxdd/df_a = M^-1 G_a'

A floating base has the first six rows and columns: displacement and twist in its own axes.
"""
from .compiler import entry, kernel
from .derivatives import derive_inverse, factorise, solve_negative
from .derivatives_loops import coordinate_of, curve_cluster, differentiate_pin
from .entry import finite
from .general import spread, tree_accelerations
from .general_entry import checked_inputs, forward_general


@entry
def inverse_general_derivatives(mods, bodies, env, loops, slopes, x, xd, xdd, passive, f, f_x, f_xd, M):
    """Write f (dof,) on the coordinates and df/dx, df/dxd, df/dxdd = M (dof, dof); statuses as `inverse_general`.

    passive (3, modules): efforts that act on the joints besides, which are taken off f, and their derivatives by
    position and rate of the same joint.
    bodies: scratch (3 modules,) BODY.
    """
    status = checked_inputs(loops, x, xd, xdd)
    if status == 0:
        status = derive_general(mods, bodies, env, loops, slopes, x, xd, xdd, passive[0], passive, f, f_x, f_xd, M)
    return status if status != 0 else finite(f)


@entry
def forward_general_derivatives(mods, work, bodies, env, loops, slopes, base, x, xd, f, passive, xdd, xdd_x, xdd_xd,
                                xdd_f, M, rest):
    """Write xdd (dof,), dxdd/dx, dxdd/dxd (dof, dof) and dxdd/df (dof, actuators); arguments as `forward_general`.

    passive as above.  M (dof, dof), rest (dof,): scratch.
    """
    status = forward_general(mods, work, env, loops, base, x, xd, f, passive[0], xdd)
    if status != 0:
        return status
    # z[3] holds the efforts on the modules; the tree's own go elsewhere
    status = derive_general(mods, bodies, env, loops, slopes, x, xd, xdd, loops.z[3], passive, rest, xdd_x, xdd_xd, M)
    if status != 0:
        return status
    for i in range(f.shape[0]):
        row = loops.base + loops.driven[i]
        for c in range(xdd.shape[0]):
            xdd_f[c, i] = -slopes.z[0, row, c]
    for c in range(loops.base):
        if base[0, c] != 0.0:
            hold(c, M, xdd_x, xdd_xd, xdd_f)
    factorise(M)
    solve_negative(M, xdd_x)
    solve_negative(M, xdd_xd)
    solve_negative(M, xdd_f)
    return 0


@kernel
def hold(c, M, xdd_x, xdd_xd, xdd_f):
    """Make coordinate c one whose acceleration is given."""
    for i in range(M.shape[0]):
        M[c, i], M[i, c] = 0.0, 0.0
        xdd_x[c, i], xdd_xd[c, i] = 0.0, 0.0
    for i in range(xdd_f.shape[1]):
        xdd_f[c, i] = 0.0
    M[c, c] = 1.0


@entry
def derive_general(mods, bodies, env, loops, slopes, x, xd, xdd, held, passive, f, f_x, f_xd, M):
    """See `inverse_general_derivatives`; held (modules,): all efforts that act on the joints, passive ones too."""
    status = spread(loops, env, x, xd)
    if status != 0:
        return status
    lift, base = (env[1, 0], env[1, 1], env[1, 2]), loops.base
    tree_accelerations(loops, env, xdd)
    tree, effort, z = slopes.tree, slopes.effort, loops.z
    status = derive_inverse(mods, bodies, env, base, lift, z[0], z[1], z[2], effort, tree[0], tree[1], tree[2])
    if status != 0:
        return status
    for k in range(mods.shape[0]):
        row = base + k
        effort[row] -= held[k]
        tree[0, row, row] -= passive[1, k]
        tree[1, row, row] -= passive[2, k]

    n, Z = xd.shape[0], slopes.z
    Z[:] = 0.0
    for c in range(base):
        Z[0, c, c] = 1.0
    for k in range(mods.shape[0]):
        if loops.own[k] >= 0:
            Z[0, base + k, loops.own[k]] = 1.0
    for k in range(loops.clusters.shape[0]):
        curve_cluster(loops, slopes, k, xd)

    for i in range(n):
        f[i] = 0.0
        for r in range(effort.shape[0]):
            f[i] += Z[0, r, i] * effort[r]
    clear(slopes.product)
    add_product(tree[0], Z[0], slopes.product)
    add_product(tree[1], Z[1], slopes.product)
    add_product(tree[2], Z[2], slopes.product)
    project(Z[0], slopes.product, f_x)
    clear(slopes.product)
    add_product(tree[1], Z[0], slopes.product)
    add_product(tree[2], Z[3], slopes.product)
    project(Z[0], slopes.product, f_xd)
    clear(slopes.product)
    add_product(tree[2], Z[0], slopes.product)
    project(Z[0], slopes.product, M)
    for k in range(loops.clusters.shape[0]):
        bend(loops, slopes, k, f_x)
    for i in range(loops.losses.shape[0]):
        differentiate_pin(loops, slopes, loops.losses[i], xd, f, f_x, f_xd)
    return 0


@kernel
def bend(loops, slopes, n, f_x):
    """Add (dG/dx)' tau of cluster n."""
    c = loops.clusters[n]
    for a in range(c['freedom']):
        column = coordinate_of(loops.tied, c, a)
        for b in range(c['freedom']):
            total = 0.0
            for j in range(c['first'], c['first'] + c['joints']):
                total += slopes.curve[j, a, b] * slopes.effort[loops.base + loops.tied[j]['module']]
            f_x[coordinate_of(loops.tied, c, b), column] += total


@kernel
def clear(A):
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 0.0


@entry
def add_product(A, B, C):
    """Add A B to C."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            for j in range(B.shape[1]):
                C[i, j] += A[i, k] * B[k, j]


@entry
def project(A, B, C):
    """Write A' B into C."""
    clear(C)
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            for j in range(B.shape[1]):
                C[i, j] += A[k, i] * B[k, j]
