"""What Python calls: the recursions with shape and finite checks inside, one state or a batch.

tree, loops: the buffers of a `Handle`.  x (nx,), xd and xdd (dof,), f (actuators,) unless said.
"""
from ..loops.closure import close_machine, set_hint
from ..runtime.compiler import batch_entry, entry, kernel
from ..runtime.status import NON_FINITE, OK, SHAPE
from .energy import energy
from .forward import forward_dynamics, hybrid_dynamics, place_machine
from .inverse import base_reaction, inverse_dynamics
from .joints import set_accelerations
from .mass_matrix import actuator_map, mass_matrix
from .measurement import actuator_states, joint_states
from .mechanism import bind
from .time_step import runge_kutta


@kernel
def finite(a):
    """Return OK, or NON_FINITE where `a` holds NaN or infinity."""
    total = 0.0
    for i in range(a.shape[0]):
        # 0 unless something is NaN or infinite; float() keeps NumPy's warnings out of plain Python
        total += 0.0 * float(a[i])
    return OK if total == 0.0 else NON_FINITE


@kernel
def check(m, x, a, b):
    """Return OK where x is a position, a and b have one entry a coordinate, and all are finite."""
    e = m.environment[0]
    if x.shape[0] != e['nx'] or a.shape[0] != e['dof'] or b.shape[0] != e['dof']:
        return SHAPE
    if x.shape[0] > a.shape[0]:
        # the quaternion of a floating base
        if not x[3] * x[3] + x[4] * x[4] + x[5] * x[5] + x[6] * x[6] > 1e-12:
            return NON_FINITE
    return max(finite(x), max(finite(a), finite(b)))


@kernel
def check_efforts(m, f):
    """Return OK where f (actuators,) is finite."""
    return finite(f) if f.shape[0] == m.environment[0]['actuators'] else SHAPE


@entry
def forward_checked(tree, loops, x, xd, f, xdd):
    """Write the accelerations xdd for efforts f; return a status."""
    m = bind(tree, loops)
    status = SHAPE if xdd.shape[0] != m.environment[0]['dof'] else max(check(m, x, xd, xd), check_efforts(m, f))
    if status == OK:
        status = forward_dynamics(tree, loops, None, x, xd, f, xdd)
    return status if status != OK else finite(xdd)


@entry
def forward_driven(tree, loops, driven, x, xd, f, xdd):
    """Do `forward_checked` where the accelerations of the coordinates `driven` (dof,) are given in xdd."""
    m = bind(tree, loops)
    status = max(check(m, x, xd, xdd), check_efforts(m, f))
    if status == OK:
        status = forward_dynamics(tree, loops, driven, x, xd, f, xdd)
    return status if status != OK else finite(xdd)


@entry
def hybrid_checked(tree, loops, driven, x, xd, f, xdd):
    """Complete xdd and f (dof,), see `hybrid_dynamics`; return a status."""
    m = bind(tree, loops)
    status = max(check(m, x, xd, xdd), check(m, x, f, f))
    if status == OK:
        status = hybrid_dynamics(tree, loops, driven, x, xd, f, xdd)
    return status if status != OK else max(finite(xdd), finite(f))


@entry
def inverse_checked(tree, loops, x, xd, xdd, f):
    """Write the efforts f (dof,) on the coordinates for accelerations xdd; return a status."""
    m = bind(tree, loops)
    status = SHAPE if f.shape[0] != m.environment[0]['dof'] else check(m, x, xd, xdd)
    if status == OK:
        status = inverse_dynamics(tree, loops, x, xd, xdd, f)
    return status if status != OK else finite(f)


@entry
def forward_hinted(tree, loops, rows, positions, x, xd, f, xdd):
    """Do `forward_checked` with the hint of `set_hint`, in buffers of a handle that starts from the last positions."""
    set_hint(tree, loops, rows, positions)
    status = finite(positions)
    return status if status != OK else forward_checked(tree, loops, x, xd, f, xdd)


@entry
def inverse_hinted(tree, loops, rows, positions, x, xd, xdd, f):
    """Do `inverse_checked` with the hint of `set_hint`, in buffers of a handle that starts from the last positions."""
    set_hint(tree, loops, rows, positions)
    status = finite(positions)
    return status if status != OK else inverse_checked(tree, loops, x, xd, xdd, f)


@entry
def place_checked(tree, loops, x, xd, xdd):
    """After `close_machine`: set positions, rates and accelerations of all joints, and velocities of bodies, in `work`.

    Returns a status.
    """
    m = bind(tree, loops)
    status = check(m, x, xd, xdd)
    if status == OK:
        status = place_machine(tree, loops, x, xd)
    if status == OK:
        set_accelerations(m, xdd)
    return status


@entry
def read_joint_states(tree, loops, out):
    """After `place_checked`: write position, velocity and acceleration of every joint of the tree into out (3, joints).

    Returns a status.
    """
    return joint_states(bind(tree, loops), out)


@entry
def read_mass_matrix(tree, loops, x, M):
    """After `place_checked` at x: write M (dof, dof); return a status."""
    return mass_matrix(tree, loops, x, M)


@entry
def read_actuator_map(tree, loops, A):
    """After `place_checked`: write A (actuators, dof) with the rates A xd of the actuators."""
    actuator_map(bind(tree, loops), A)


@entry
def read_energy(tree, loops, out):
    """After `place_checked`: write kinetic energy and first moment of mass into out (4,), see `energy`."""
    energy(bind(tree, loops), out)


@entry
def read_base_reaction(tree, loops, reaction):
    """After `inverse_checked`: write the wrench (6,) that a fixed base must receive."""
    base_reaction(bind(tree, loops), reaction)


@entry
def runge_kutta_checked(tree, loops, x, xd, f, step, substeps, scratch):
    """Advance x, xd in place, see `runge_kutta`; return a status."""
    m = bind(tree, loops)
    status = max(check(m, x, xd, xd), check_efforts(m, f))
    return status if status != OK else runge_kutta(tree, loops, x, xd, f, step, substeps, scratch)


@kernel
def close_and_place(tree, loops, x, xd, xdd):
    """Do `close_machine` and `place_checked`; return a status."""
    status = close_machine(tree, loops, x, xd)
    return status if status != OK else place_checked(tree, loops, x, xd, xdd)


@batch_entry
def forward_rows(tree, loops, x, xd, f, xdd, first, last):
    """Forward dynamics of the rows first..last of finite arrays (N, ...); return (status, row)."""
    for row in range(first, last):
        status = forward_dynamics(tree, loops, None, x[row], xd[row], f[row], xdd[row])
        if status == OK:
            status = finite(xdd[row])
        if status != OK:
            return status, row
    return OK, last


@batch_entry
def inverse_rows(tree, loops, x, xd, xdd, f, first, last):
    """Inverse dynamics of the rows first..last of finite arrays (N, ...), f (N, dof); return (status, row)."""
    for row in range(first, last):
        status = inverse_dynamics(tree, loops, x[row], xd[row], xdd[row], f[row])
        if status == OK:
            status = finite(f[row])
        if status != OK:
            return status, row
    return OK, last


@batch_entry
def hybrid_rows(tree, loops, driven, motion, f, xdd, first, last):
    """Hybrid dynamics of the rows first..last of finite arrays: motion (N, nx + dof) x and xd; return (status, row)."""
    nx = bind(tree, loops).environment[0]['nx']
    for row in range(first, last):
        status = hybrid_dynamics(tree, loops, driven, motion[row, :nx], motion[row, nx:], f[row], xdd[row])
        if status == OK:
            status = max(finite(xdd[row]), finite(f[row]))
        if status != OK:
            return status, row
    return OK, last


@entry
def actuator_rows(tree, loops, x, xd, position, rate, maps):
    """Write positions and rates (N, actuators) and maps A (N, actuators, dof) of rows of states that loops close."""
    m = bind(tree, loops)
    for row in range(x.shape[0]):
        if max(finite(x[row]), finite(xd[row])) == OK and close_and_place(tree, loops, x[row], xd[row], xd[row]) == OK:
            actuator_states(m, position[row], rate[row])
            actuator_map(m, maps[row])
