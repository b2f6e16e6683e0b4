"""Motions near the initial position, and columns of joints."""


def moving(m, rng):
    """(x, xd, position, velocity) of all joints near the initial position."""
    x, xd = m.initial_position + rng.uniform(-0.02, 0.02, m.dof), rng.uniform(-0.1, 0.1, m.dof)
    _, q, qd, _ = m.joint_state(x, xd)
    return x, xd, q, qd


def columns(m, names):
    return [m.joints.index(name) for name in names]
