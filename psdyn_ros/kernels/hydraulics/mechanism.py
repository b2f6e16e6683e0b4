"""What the coupled step asks of a machine, for one whose coordinates are its actuators: six functions of a tuple.

    place       positions and rates of the actuators             accelerate  forward dynamics
    inertia     mass matrix, and the map A of actuator rates     along       A xd
    onto        rhs + A' f                                       laden       M + A' diag(e) A
"""
from ..rigid_body.energy import mass_matrix
from ..rigid_body.entry import forward_checked
from ..runtime.compiler import kernel


@kernel
def place(machine, x, xd, q, qd):
    """Write positions and rates of the actuators; return a status."""
    for i in range(x.shape[0]):
        q[i], qd[i] = x[i], xd[i]
    return 0


@kernel
def accelerate(machine, x, xd, force, xdd):
    """Write the accelerations of the coordinates at the state last placed; return a status."""
    mods, work, env, _, _ = machine
    return forward_checked(mods, work, env, x, xd, force, xdd)


@kernel
def inertia(machine, x, M):
    """Write the mass matrix at the state last placed; return a status."""
    mods, work, _, still, rows = machine
    return mass_matrix(mods, work, still, x, rows[0], rows[1], rows[2], M)


@kernel
def along(machine, xd, qd):
    """Write the rates A xd of the actuators."""
    for i in range(xd.shape[0]):
        qd[i] = xd[i]


@kernel
def onto(machine, f, rhs):
    """Add A' f to the right-hand side."""
    for i in range(f.shape[0]):
        rhs[i] += f[i]


@kernel
def laden(machine, e, M):
    """Add A' diag(e) A to the lower triangle of M."""
    for i in range(e.shape[0]):
        M[i, i] += e[i]
