"""Inverse dynamics: the recursion that matches `forward.py`, two sweeps, O(n).

    f = sum J_i' F_i     with F_i the wrench on body i and all it carries (Paz & Mattila, sec. 3.6)

The joints of a cluster carry the efforts tau of its tree, of which f_y = G' tau are those on its coordinates.
"""
from ..algebra.spatial import accumulate, body_wrench, pair, rigid, store
from ..loops.closure import close_machine
from ..runtime.compiler import inner, kernel
from ..runtime.status import OK, TOGGLE, failure
from .cluster_joint import accelerate_clusters, put_cluster_efforts, set_at_rest
from .joints import accelerate_joint, carry_wrench, move, put_actuator_effort, set_wrenches
from .mechanism import at_rest, bind
from .tree import wrench_at_parent


@kernel
def run_sweeps(m, x, xd, xdd):
    """Place and accelerate all bodies and set the effort that the motion needs on each joint; return a status.

    The clusters are closed.
    """
    accelerate_clusters(m.loops, m, xdd)
    for k in range(m.modules.shape[0]):
        if not move(m, k, x, xd):
            return failure(TOGGLE, k)
        accelerate_joint(m, k, xdd)
        set_wrenches(m, k)
    carry_wrenches(m)
    return OK


@kernel
def carry_wrenches(m):
    """Second sweep: wrenches tips to base, and the effort of every joint."""
    for k in range(m.modules.shape[0] - 1, -1, -1):
        carry_wrench(m, k)


@kernel
def put_efforts(m, f):
    """Write the efforts f (dof,) that actuators on the coordinates must give, from those that the motion needs."""
    for k in range(m.modules.shape[0]):
        put_actuator_effort(m, k, f)
    put_cluster_efforts(m.loops, m, f)


@inner
def wrenches_of_machine(tree, loops, resting, x, xd, xdd):
    """Do `run_sweeps` with the buffers of a machine; resting: at rest without gravity and external wrenches."""
    m = bind(tree, loops)
    if resting:
        set_at_rest(m.loops)
        m = at_rest(m)
    return run_sweeps(m, x, xd, xdd)


@kernel
def inverse_dynamics(tree, loops, x, xd, xdd, f):
    """Write the efforts f (dof,) on the coordinates for accelerations xdd; return a status.

    f: what actuators on the coordinates would need; first the wrench on a floating base.
    """
    status = close_machine(tree, loops, x, xd)
    if status == OK:
        status = wrenches_of_machine(tree, loops, False, x, xd, xdd)
    if status == OK:
        put_efforts(bind(tree, loops), f)
    return status


@kernel
def base_reaction(m, reaction):
    """After `inverse_dynamics`: write the wrench (6,) that a fixed base receives, at its origin in its axes (38)."""
    e = m.environment[0]
    f, t = body_wrench(rigid(e['base']), e['twist'], e['acceleration'])
    store(reaction, f, t)
    for k in range(m.modules.shape[0]):
        if m.modules[k]['parent'] < 0:
            F, T = pair(m.work[k]['root'])
            F, T = wrench_at_parent(m.modules[k], 0.0, F, T)
            accumulate(reaction, F, T)
