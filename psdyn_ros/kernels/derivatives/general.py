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
from ..rigid_body.entry import finite
from ..rigid_body.general import spread, tree_accelerations
from ..rigid_body.general_entry import checked_inputs
from ..runtime.compiler import entry, kernel
from .clusters import coordinate_of, curve_cluster, differentiate_pin
from .recursion import derive_inverse, factorise, solve_negative


@entry
def general_derivatives(mods, bodies, env, loops, slopes, x, xd, xdd, acting, f, f_x, f_xd, M):
    """Write f (dof,) on the coordinates and df/dx, df/dxd, df/dxdd = M (dof, dof); statuses as `inverse_general`.

    acting (3, modules): efforts that act on the joints, which are taken off f, and their derivatives by position and
    rate of the same joint.
    bodies: scratch (3 modules,) BODY.
    """
    status = checked_inputs(loops, x, xd, xdd)
    if status == 0:
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
        effort[row] -= acting[0, k]
        tree[0, row, row] -= acting[1, k]
        tree[1, row, row] -= acting[2, k]

    set_motion(loops, slopes, xd)
    take_through(slopes, f, f_x, f_xd, M)
    for k in range(loops.clusters.shape[0]):
        bend(loops, slopes, k, f_x)
    for i in range(loops.losses.shape[0]):
        differentiate_pin(loops, slopes, loops.losses[i], xd, f, f_x, f_xd)
    return finite(f)


@kernel
def set_motion(loops, slopes, xd):
    """Set dz/dx, dzd/dx, dzdd/dx and dzdd/dxd of all modules."""
    slopes.z[:] = 0.0
    for c in range(loops.base):
        slopes.z[0, c, c] = 1.0
    for k in range(loops.own.shape[0]):
        if loops.own[k] >= 0:
            slopes.z[0, loops.base + k, loops.own[k]] = 1.0
    for k in range(loops.clusters.shape[0]):
        curve_cluster(loops, slopes, k, xd)


@kernel
def take_through(slopes, f, f_x, f_xd, M):
    """Write G' tau and G' dtau."""
    tau, tree, z, product = slopes.effort, slopes.tree, slopes.z, slopes.product
    for i in range(f.shape[0]):
        f[i] = 0.0
        for r in range(tau.shape[0]):
            f[i] += z[0, r, i] * tau[r]
    clear(product)
    add_product(tree[0], z[0], product)
    add_product(tree[1], z[1], product)
    add_product(tree[2], z[2], product)
    project(z[0], product, f_x)
    clear(product)
    add_product(tree[1], z[0], product)
    add_product(tree[2], z[3], product)
    project(z[0], product, f_xd)
    clear(product)
    add_product(tree[2], z[0], product)
    project(z[0], product, M)


@entry
def accelerations(loops, slopes, base, xdd_x, xdd_xd, xdd_f, M):
    """Replace df/dx, df/dxd and M of `general_derivatives` at f = 0, base as in `forward_general`.

    xdd_x, xdd_xd (dof, dof), xdd_f (dof, actuators) become the derivatives of xdd.
    """
    for i in range(xdd_f.shape[1]):
        row = loops.base + loops.driven[i]
        for c in range(xdd_f.shape[0]):
            xdd_f[c, i] = -slopes.z[0, row, c]
    for c in range(loops.base):
        if base[0, c] != 0.0:
            hold(c, M, xdd_x, xdd_xd, xdd_f)
    factorise(M)
    solve_negative(M, xdd_x)
    solve_negative(M, xdd_xd)
    solve_negative(M, xdd_f)


@kernel
def hold(c, M, xdd_x, xdd_xd, xdd_f):
    """Make coordinate c one whose acceleration is given."""
    for i in range(M.shape[0]):
        M[c, i], M[i, c] = 0.0, 0.0
        xdd_x[c, i], xdd_xd[c, i] = 0.0, 0.0
    for i in range(xdd_f.shape[1]):
        xdd_f[c, i] = 0.0
    M[c, c] = 1.0


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
