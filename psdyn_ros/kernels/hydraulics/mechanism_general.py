"""The six functions of `mechanism` for machines with loops of any kind, or actuators that are not the coordinates.

The base does not float.  `inertia` keeps the map A (actuators, dof) of its state, for both stages of a step.
"""
from ..rigid_body.entry import finite
from ..rigid_body.general import forward_closed, project_joints, spread, tree_accelerations
from ..rigid_body.inverse import inverse
from ..runtime.compiler import kernel


@kernel
def place(machine, x, xd, q, qd):
    """Close all loops; write positions and rates of the actuators; return a status."""
    _, _, env, _, loops, _, _, _, _ = machine
    status = spread(loops, env, x, xd)
    if status == 0:
        for i in range(q.shape[0]):
            k = loops.driven[i]
            q[i], qd[i] = loops.z[0, k], loops.z[1, k]
    return status


@kernel
def accelerate(machine, x, xd, force, xdd):
    """Write the accelerations of the coordinates at the state last placed; return a status."""
    mods, work, env, _, loops, free, passive, _, _ = machine
    status = forward_closed(mods, work, env, loops, free, force, passive, 0.0, 0.0, xdd)
    return status if status != 0 else finite(xdd)


@kernel
def inertia(machine, x, M):
    """Write the mass matrix and the map A at the state last placed; return a status."""
    mods, work, _, still, loops, _, _, rows, A = machine
    z, unit, column, n = loops.z, rows[0], rows[1], M.shape[0]
    for k in range(mods.shape[0]):
        z[1, k] = 0.0
    for j in range(loops.tied.shape[0]):
        loops.work[j]['g'], loops.work[j]['tau'] = 0.0, 0.0
    for j in range(n):
        unit[j] = 1.0
        tree_accelerations(loops, still, unit)
        unit[j] = 0.0
        status = inverse(mods, work, still, z[0], z[1], z[2], z[3])
        if status != 0:
            return status
        project_joints(loops, column)
        for i in range(j, n):
            M[i, j] = column[i]
            M[j, i] = column[i]
    for i in range(A.shape[0]):
        for j in range(n):
            A[i, j] = 0.0
        k = loops.driven[i]
        if loops.own[k] >= 0:
            A[i, loops.own[k]] = 1.0
        else:
            c = loops.clusters[loops.cluster_of[k]]
            for j in range(c['first'], c['first'] + c['joints']):
                t = loops.tied[j]
                if t['independent'] >= 0:
                    A[i, t['coordinate']] = loops.G[loops.member[k], t['independent']]
    return 0


@kernel
def along(machine, xd, qd):
    """Write the rates A xd of the actuators."""
    A = machine[8]
    for i in range(A.shape[0]):
        total = 0.0
        for j in range(A.shape[1]):
            total += A[i, j] * xd[j]
        qd[i] = total


@kernel
def onto(machine, f, rhs):
    """Add A' f to the right-hand side."""
    A = machine[8]
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            rhs[j] += A[i, j] * f[i]


@kernel
def laden(machine, e, M):
    """Add A' diag(e) A to the lower triangle of M."""
    A = machine[8]
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            scaled = e[k] * A[k, i]
            for j in range(i + 1):
                M[i, j] += scaled * A[k, j]
