"""Entries for derivatives of inverse and forward dynamics."""
from typing import NamedTuple

import numpy as np

from ..algebra.linear import factorise_symmetric, solve_negative
from ..loops.closure import close_machine
from ..rigid_body.entry import check, check_efforts, finite
from ..rigid_body.forward import forward_dynamics, place_machine
from ..rigid_body.joints import set_accelerations
from ..rigid_body.mass_matrix import actuator_map
from ..rigid_body.mechanism import bind
from ..runtime.buffer import FLOAT, matrix, pack, records, views
from ..runtime.compiler import entry, kernel
from ..runtime.status import OK
from .body import BODY
from .clusters import SLOPES, Slopes, bind_slopes, project_through_loops, slope_arrays, subtract_actuator_slopes
from .recursion import derive_efforts


class Scratch(NamedTuple):
    """Scratch of the derivatives, besides that of a `Mechanism`."""

    bodies: np.ndarray          # (3 n,) BODY
    acting: np.ndarray          # (2, n) derivatives by position and rate of efforts that act on the joints: an input
    accelerations: np.ndarray   # (1, dof)
    efforts: np.ndarray         # (1, dof)
    slopes: Slopes | None


def make_scratch(handle):
    """Return the buffer of a `Scratch` for a `Handle`."""
    n, dof = len(handle.modules), int(handle.environment['dof'])
    return pack([np.zeros(3 * n, BODY), np.zeros((2, n)), np.zeros((1, dof)), np.zeros((1, dof)),
                 *slope_arrays(handle.arrays.loops, n, dof)])


def arrays_of(scratch, loops):
    """Return the `Scratch` of a buffer as Python sees it."""
    dtypes = (BODY, FLOAT, FLOAT, FLOAT)
    arrays = views(scratch, dtypes if loops is None else dtypes + SLOPES)
    return Scratch(*arrays[:len(dtypes)], None if loops is None else Slopes(*arrays[len(dtypes):]))


@kernel
def bind_scratch(scratch, loops):
    """Return the `Scratch` of a buffer."""
    return Scratch(records(scratch, 0, BODY)[0], matrix(scratch, 1)[0], matrix(scratch, 2)[0], matrix(scratch, 3)[0],
                   bind_slopes(scratch, 4, loops))


@kernel
def derive(m, s, xd, xdd, f, D):
    """Write efforts f (dof,) and derivatives D (3, dof, dof) of a machine that is placed."""
    set_accelerations(m, xdd)
    derive_placed(m, s, s.slopes, xd, f, D)


@kernel
def derive_placed(m, s, slopes, xd, f, D):
    """Do `derive` where the accelerations are set."""
    if slopes is None:
        derive_efforts(m, s.bodies, s.acting, f, D)
    else:
        derive_efforts(m, s.bodies, s.acting, slopes.effort, slopes.tree)
        project_through_loops(m, slopes, xd, f, D)


@entry
def inverse_derivatives(tree, loops, scratch, x, xd, xdd, f, D):
    """Write f (dof,) and D (3, dof, dof): df/dx, df/dxd and df/dxdd = M; return a status."""
    m, s = bind(tree, loops), bind_scratch(scratch, loops)
    status = check(m, x, xd, xdd)
    if status == OK:
        status = close_machine(tree, loops, x, xd)
    if status == OK:
        status = place_machine(tree, loops, x, xd)
    if status != OK:
        return status
    derive(m, s, xd, xdd, f, D)
    return finite(f)


@entry
def forward_derivatives(tree, loops, scratch, x, xd, f, D, by_f):
    """Write D[0] dxdd/dx, D[1] dxdd/dxd (dof, dof) and by_f dxdd/df (dof, actuators); return a status.

    At xdd = FD(x, xd, f):  dxdd/dx = -M^-1 (df_y/dx - (dA/dx)' f),  dxdd/dxd = -M^-1 df_y/dxd,  dxdd/df = M^-1 A'.
    """
    m, s = bind(tree, loops), bind_scratch(scratch, loops)
    xdd, efforts = s.accelerations[0], s.efforts[0]
    status = max(check(m, x, xd, xd), check_efforts(m, f))
    if status == OK:
        status = forward_dynamics(tree, loops, None, x, xd, f, xdd)
    if status != OK:
        return status
    derive(m, s, xd, xdd, efforts, D)
    subtract_actuator_slopes(m, s.slopes, f, D[0])
    put_actuators(m, by_f)
    factorise_symmetric(D[2])
    solve_negative(D[2], D[0])
    solve_negative(D[2], D[1])
    solve_negative(D[2], by_f)
    return finite(xdd)


@kernel
def put_actuators(m, by_f):
    """Write -A', the change of the missing efforts on the coordinates by those of the actuators."""
    A = by_f.T
    actuator_map(m, A)
    for i in range(by_f.shape[0]):
        for j in range(by_f.shape[1]):
            by_f[i, j] = -by_f[i, j]
