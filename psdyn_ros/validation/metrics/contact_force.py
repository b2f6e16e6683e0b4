"""What pushes a link from outside, by what the actuators give beyond what the model needs.

Efforts e beyond the model and a force w on a link do no work together at any motion: A' e + J' w = 0, with A and J the
rates of the actuators and of the link's origin for unit rates of the coordinates.  A force, no moment: few machines
have the degrees of freedom, and none of the actuators, to tell both apart.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

from ...api.environment import find_link

WEAK = 1e-3         # share of the best known direction's weight below which a direction is left out
EXACT = 1e-9        # share of the largest variance that an equation without noise has
MOVED = 1e-9        # rates below it are none


@dataclass(frozen=True)
class ForceEstimate:
    """A force by the environment on a link, at its origin in its axes.

    force         (3,) N; nothing along directions that do not show in the actuators
    deviation     (3,) N, one standard deviation by the noise of the efforts, not by errors of the model; infinite of
                  what does not show
    unobservable  (k, 3) unit vectors of what does not show in the actuators, in link axes
    """

    force: np.ndarray
    deviation: np.ndarray
    unobservable: np.ndarray


class ContactForce:
    """Estimates the force on one link of a machine on a fixed base.

    capacity  (actuators,) the largest efforts, by which a direction is judged to show in them at all; NaN or infinite
              where unknown

    Raises UnknownNameError where there is no such link.
    """

    def __init__(self, manipulator, link, capacity):
        find_link(manipulator.machine, link)
        self.link, self._manipulator = link, manipulator
        known = np.isfinite(capacity) & (capacity > 0.0)
        self._capacity = np.where(known, capacity, np.median(capacity[known]) if known.any() else 1.0)

    def estimate(self, x, excess, deviation):
        """Return the `ForceEstimate` at x (dof,); None where no actuator's effort is known.

        excess     (actuators,) measured - predicted effort, NaN where unknown
        deviation  (actuators,) one standard deviation of it, more than zero

        By least squares, weighted by the deviations.  Raises a StateError where no loop closes.
        """
        known = np.isfinite(excess) & np.isfinite(deviation)
        if not known.any():
            return None
        A, J = self._manipulator.actuator_map(x), self._jacobian(x)
        # motions at which the actuators of unknown effort do no work
        free = np.eye(J.shape[1]) if known.all() else null_space(A[~known])
        if not free.shape[1]:
            return None
        rates, lever = A[known] @ free, free.T @ J.T
        _, s, V = np.linalg.svd(_whitened(rates, self._capacity[known], lever))
        seen = int((s > WEAK * s[0]).sum()) if s[0] > 0.0 else 0
        directions, hidden = V[:seen], V[seen:]
        weighted = _whitened(rates, deviation[known], np.column_stack((lever @ directions.T, -rates.T @ excess[known])))
        inverse = np.linalg.pinv(weighted[:, :seen])
        force, spread = directions.T @ (inverse @ weighted[:, seen]), directions.T @ inverse
        spread = np.sqrt((spread ** 2).sum(axis=1))
        spread[(hidden ** 2).sum(axis=0) > WEAK ** 2] = np.inf
        return ForceEstimate(force, spread, hidden)

    def _jacobian(self, x):
        """(3, dof) velocity of the link's origin in link axes for unit rates of the coordinates."""
        twist = self._manipulator.link_twist
        return np.column_stack([twist(x, unit, self.link)[:3] for unit in np.eye(self._manipulator.dof)])


def _whitened(rates, deviation, equations):
    """Equations (m, ...), of motions with these rates (actuators, m), each then as uncertain as the others."""
    variance = rates.T @ (deviation[:, np.newaxis] ** 2 * rates)
    variance += EXACT * variance.diagonal().max() * np.eye(len(variance))
    return np.linalg.solve(np.linalg.cholesky(variance), equations)


def outermost_link(manipulator):
    """Equations (m, ...) of motions with these rates (actuators, m), each as uncertain as the others."""
    x, units = manipulator.initial_position, np.eye(manipulator.dof)

    def place(link):
        twists = [manipulator.link_twist(x, unit, link) for unit in units]
        return (sum(np.abs(twist[:3]).max() > MOVED for twist in twists),
                float(np.linalg.norm(manipulator.link_pose(x, link)[:3, 3])))
    return max(manipulator.links, key=place)
