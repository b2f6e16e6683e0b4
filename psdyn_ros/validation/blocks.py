"""A bag as pieces on a uniform grid of time: what the machine did and what it was measured to give."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Block:
    """N instants of a recording, `period` s apart, without a gap.

    t          (N,) s since the start of the bag
    x          (N, dof) coordinates of the machine
    xd         (N, dof) as recorded; None where velocities were not
    residual   (N,) largest disagreement of redundant joints at a rod eye [m]
    effort     (N, actuators) measured: JointState.effort, or p_A A_A - p_B A_B; NaN where unknown
    pressures  (N, cylinders, 2) gauge [Pa], in the order of the hydraulics; None where there are none
    command    (N, actuators) as recorded, NaN where unknown; None where there is none
    core       the rows that no other block has; the others overlap, for filters
    joints     names of the joints measured
    positions  (N, joints) of them, as recorded, on the grid
    period     s
    """

    t: np.ndarray
    x: np.ndarray
    xd: np.ndarray
    residual: np.ndarray
    effort: np.ndarray
    pressures: np.ndarray
    command: np.ndarray
    core: slice
    joints: tuple
    positions: np.ndarray
    period: float
