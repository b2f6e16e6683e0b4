"""Where what is on passive joints hangs, and the link that it hangs from."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arguments import Array

if TYPE_CHECKING:
    from ..manipulator import Manipulator

REST_TOLERANCE = 1e-6       # of the weight: efforts that passive joints may lack at rest
MAX_STEP = 0.3              # of a passive joint in one iteration [m, rad]
MIN_STEP = 1e-9             # where all steps are below it, passive joints rest [m, rad]
ITERATIONS = 50
DIFFERENCE_STEP = 1e-5      # of finite differences [m, rad]


def hanging_positions(manipulator: Manipulator, driven: Array) -> tuple[Array, Array]:
    """Return positions (N, nx) at which passive joints hang, for driven joints (N, driven), and whether (N,) they do.

    They do not where their limits are in the way.
    """
    m = manipulator
    free = np.array([name in m.passive_joints for name in m.coordinates])
    x, rest = np.tile(m.initial_position, (len(driven), 1)), np.zeros((len(driven), m.dof))
    x[:, ~free] = driven

    def lacking(x: Array) -> Array:
        return m.generalized_forces(x, rest, rest)[:, free]
    for _ in range(ITERATIONS):
        stiffness = np.stack([lacking(x + one) - lacking(x - one) for one in DIFFERENCE_STEP * np.eye(m.nx)[free]],
                             axis=2) / (2.0 * DIFFERENCE_STEP)
        value, modes = np.linalg.eigh(0.5 * (stiffness + stiffness.transpose(0, 2, 1)))
        # by the amount of the stiffness: where it is negative, away from standing upright
        share = np.einsum('nji,nj->ni', modes, lacking(x)) / np.maximum(abs(value), 1e-12)
        step = np.clip(-np.einsum('nij,nj->ni', modes, share), -MAX_STEP, MAX_STEP)
        x[:, free] += step
        if abs(step).max(initial=0.0) < MIN_STEP:
            break
    limits, weight = m.coordinate_limits, m.total_mass * np.linalg.norm(m.gravity)
    within = ((x >= limits.lower) & (x <= limits.upper))[:, free].all(axis=1)
    return x, within & (abs(lacking(x)) <= REST_TOLERANCE * (1.0 + weight)).all(axis=1)


def link_above(manipulator: Manipulator, link: str) -> str:
    """Return the link that carries the first passive joint on the way to a link; empty where there is none."""
    m, above = manipulator, ''
    joints = m.machine.description.joints
    parents = {joint.child: name for name, joint in joints.items()}
    while link in parents:
        name = parents[link]
        link = joints[name].parent
        above = link if name in m.passive_joints else above
    return above
