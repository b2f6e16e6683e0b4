"""How the base of a machine moves, from what is measured of it now and then."""

import numpy as np

from ..api.environment import BaseMotion
from ..api.orientation import rotation
from ..model.errors import NonFiniteError, StateError

MAX_SPEED = 100.0           # m/s or rad/s; beyond it is no measurement of a base
MAX_ACCELERATION = 1000.0  # m/s^2 or rad/s^2
MAX_GAP = 0.2               # s between two messages over which a rate is still differentiated


class BaseTracker:
    """The motion of the base between its measurements, each of the origin of the base in its own axes.

    A twist is differentiated; accelerations that come beside it are preferred, and without a twist they are integrated.
    An inertial sensor gives all that dynamics needs. Where no orientation is measured, the angular velocity is
    integrated from upright. The linear velocity of a base has no effect on its machine.

    gravity  (3,) in inertial axes [m/s^2]
    """

    def __init__(self, gravity):
        self._gravity = np.array(gravity, dtype=float)
        self.reset()

    def reset(self):
        """Upright and at rest."""
        self._turn = np.array([0.0, 0.0, 0.0, 1.0])
        self.rest()

    def rest(self):
        """At rest, turned as it is."""
        self._twist, self._rate, self._specific = np.zeros(6), np.zeros(6), None
        self._last = self._accelerated = None       # (s, twist), s of the last acceleration

    def twist(self, time, twist):
        """Take the velocity [m/s] and angular velocity [rad/s] (6,) at a time [s]."""
        twist = _checked('twist of the base', twist, MAX_SPEED)
        if self._accelerated is None or time - self._accelerated > MAX_GAP:
            self._rate = self._differentiated(time, twist)
            # classical, from the rate of what is given in axes that turn
            self._rate[:3] += np.cross(twist[3:], twist[:3])
        self._last, self._twist, self._specific = (time, twist), twist, None

    def acceleration(self, time, acceleration):
        """Take the classical acceleration [m/s^2], gravity not in it, and the angular one [rad/s^2] (6,) at a time."""
        self._rate = _checked('acceleration of the base', acceleration, MAX_ACCELERATION)
        self._accelerated, self._specific = time, None

    def imu(self, time, rate, specific_force, orientation=None):
        """Take the angular velocity (3,), the specific force (3,) with gravity in it, a quaternion x y z w or None."""
        rate = _checked('angular velocity of the base', rate, MAX_SPEED)
        specific = _checked('specific force of the base', specific_force, MAX_ACCELERATION)
        if orientation is not None:
            turn = _checked('orientation of the base', orientation, 2.0)
            if not np.linalg.norm(turn) > 0.5:
                raise StateError(f'orientation of the base: {turn.tolist()} is no unit quaternion')
            self._turn = turn / np.linalg.norm(turn)
        twist = np.concatenate((np.zeros(3), rate))
        self._rate = self._differentiated(time, twist)
        self._last, self._twist, self._specific = (time, twist), twist, specific

    def _differentiated(self, time, twist):
        if self._last is None or not 0.0 < time - self._last[0] <= MAX_GAP:
            return np.zeros(6)
        return (twist - self._last[1]) / (time - self._last[0])

    def advance(self, dt):
        """Carry the orientation on by dt [s], and the twist where only accelerations are measured."""
        if self._last is None:
            v, w = self._twist[:3], self._twist[3:]
            self._twist = self._twist + dt * np.concatenate((self._rate[:3] - np.cross(w, v), self._rate[3:]))
        half = 0.5 * dt * self._twist[3:]
        angle = np.linalg.norm(half)
        x, y, z = half * np.sinc(angle / np.pi)
        w = np.cos(angle)
        # turn * (x, y, z, w): the new axes are given in the old ones
        a, b, c, d = self._turn
        self._turn = np.array([d * x + a * w + b * z - c * y, d * y - a * z + b * w + c * x,
                               d * z + a * y - b * x + c * w, d * w - a * x - b * y - c * z])
        self._turn /= np.linalg.norm(self._turn)

    def motion(self):
        """The `BaseMotion` of now."""
        acceleration = self._rate
        if self._specific is not None:
            acceleration = self._rate.copy()
            acceleration[:3] = self._specific + rotation(self._turn).T @ self._gravity
        return BaseMotion(tuple(self._turn), tuple(self._twist), tuple(acceleration))


def _checked(what, values, most):
    values = np.array(values, dtype=float)
    if not np.isfinite(values).all():
        raise NonFiniteError(f'{what}: {values.tolist()} is not finite')
    if (np.abs(values) > most).any():
        raise StateError(f'{what}: {values.tolist()}; expected at most {most:g}')
    return values
