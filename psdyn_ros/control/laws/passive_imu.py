"""Rates of passive joints by an inertial sensor (IMU) on what they carry, and whether its axes can be those declared.

What swings freely feels its specific force along what it hangs from, wherever it is: an accelerometer says nothing of
the angle of a swing, but which way is up in the axes of the link.  About that axis the sensor is compared with the
swing that the model predicts when the driven joints begin to move.
"""

from math import exp

import numpy as np
from numpy.linalg import lstsq, matrix_rank, norm

from ...model.errors import ModelError, check_name

FORCE_TIME = 1.0        # s over which the specific force is filtered
TILT = 0.6              # rad by which it may be off, as a load swings that is not a point
GRAVITIES = 0.7, 1.5    # times gravity that it may be
QUIET, QUIET_TIME = 0.03, 1.0       # rad/s of a swing, and s, after which the sensor is compared with the next swing
SWINGS = 0.06           # rad/s of the swing of which it is compared
UNEXPLAINED = 0.5       # times that swing, by which what is measured may differ from it


class PassiveImu:
    """An inertial sensor on a link.

    manipulator  the whole machine
    link         in whose axes it measures
    rest         (nx,) where the machine hangs at rest

    `problem` says why its measurements cannot be those of this link; '' where they can.  Raises UnknownNameError, and
    ModelError for a link that some passive joint does not turn.
    """

    def __init__(self, manipulator, link, rest):
        m = self._machine = manipulator
        check_name(link, m.links, f"inertial sensor on '{link}'")
        self.link, self._tilted, self._turned = link, '', ''
        self._free = np.array([name in m.passive_joints for name in m.coordinates])
        if matrix_rank(self._jacobian(rest)[:, self._free]) < self._free.sum():
            raise ModelError(f"inertial sensor on '{link}': {', '.join(m.passive_joints)} do not all turn it; expected "
                             'one on what hangs from them')
        self._up = -m.link_pose(rest, link)[:3, :3].T @ m.gravity
        self._force, self._last, self._quiet = None, None, 0.0

    @property
    def problem(self):
        """Why its axes cannot be those of its link; '' where they can."""
        wrong = self._tilted or self._turned
        return wrong and f"inertial sensor on '{self.link}': {wrong}; is it mounted another way?"

    def _jacobian(self, x):
        return self._machine.jacobian(x, self.link, axes='link')[3:]

    def rates(self, t, x, xd, turning, force):
        """Return the rates (passive,) at t [s], NaN where there is a `problem`.

        x, xd        whole machine, with the state of the passive joints in use
        turning      (3,) rad/s, measured angular velocity
        force        (3,) m/s^2, measured acceleration less gravity
        """
        J = self._jacobian(x)
        free = J[:, self._free]
        own, expected = turning - J[:, ~self._free] @ xd[~self._free], free @ xd[self._free]
        dt = 0.0 if self._last is None else max(t - self._last, 0.0)
        self._last = t
        self._judge_force(dt, force)
        compared = self._judge_turning(dt, own, expected)
        if self.problem:
            return np.full(free.shape[1], np.nan)
        return lstsq(free, expected if compared else own, rcond=None)[0]

    def _judge_force(self, dt, force):
        self._force = force if self._force is None else force + exp(-dt / FORCE_TIME) * (self._force - force)
        size, gravity = norm(self._force), norm(self._up)
        fits = (GRAVITIES[0] * gravity <= size <= GRAVITIES[1] * gravity
                and self._force @ self._up >= np.cos(TILT) * size * gravity)
        self._tilted = '' if fits else (f'specific force {_vector(self._force)} m/s^2, expected about '
                                        f'{_vector(self._up)} in axes of this link')

    def _judge_turning(self, dt, own, expected):
        """Return whether the model predicts the swing alone, as it begins, to be compared with what is measured."""
        if self._quiet < QUIET_TIME:
            self._quiet = self._quiet + dt if max(norm(own), norm(expected)) < QUIET else 0.0
            return False
        if norm(expected) > SWINGS:
            self._turned = '' if norm(own - expected) < UNEXPLAINED * norm(expected) else (
                f'beside the driven joints it turns by {_vector(own)} rad/s, the swing that their motion begins by '
                f'{_vector(expected)} in axes of this link')
            self._quiet = 0.0
        elif norm(own) > SWINGS and norm(expected) < QUIET:       # something else touched the load
            self._quiet = 0.0
        return self._quiet > 0.0


def _vector(values):
    return f'({", ".join(f"{one:.2g}" for one in values)})'
