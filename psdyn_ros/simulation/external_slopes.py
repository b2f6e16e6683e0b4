"""
Exact derivatives of external forces by the state, for `linearize` and `equilibrium`.

A vector fixed in a link turns, and a point of it moves, with the Jacobian J of the link's twist (v, w) in its own axes;
how J itself changes follows from the derivatives of the efforts that unit wrenches on the link ask for.
"""
from typing import NamedTuple

import numpy as np

from ..api.analysis.derivatives import generalized_forces_derivatives
from ..api.analysis.linearization import link_jacobian


class AppliedSlopes(NamedTuple):
    """What acts on the machine and how it changes, named as the keywords of `linearize`."""

    wrenches: dict
    joint_efforts: dict
    joint_slopes: dict
    """{joint: (by its position, by its rate)}"""
    wrench_slopes: dict
    """{link: (by position (6, dof), by rate (6, dof))} in link axes."""


class Vector(NamedTuple):
    """A vector (3,) and its derivatives (3, dof) by position and rate."""

    value: np.ndarray
    by_x: np.ndarray
    by_xd: np.ndarray

    def __add__(self, other):
        return Vector(*(a + b for a, b in zip(self, other)))

    def __sub__(self, other):
        return Vector(*(a - b for a, b in zip(self, other)))

    def through(self, matrix):
        """Return matrix (3, 3) times the vector."""
        return Vector(*(matrix @ part for part in self))

    def dot(self, other):
        """Return the scalar product as (value, by x (dof,), by xd (dof,))."""
        return (self.value @ other.value, self.value @ other.by_x + other.value @ self.by_x,
                self.value @ other.by_xd + other.value @ self.by_xd)

    def times(self, number):
        """Return the vector times a number (value, by x, by xd)."""
        value, by_x, by_xd = number
        return Vector(value * self.value, value * self.by_x + np.outer(self.value, by_x),
                      value * self.by_xd + np.outer(self.value, by_xd))


def skew(a):
    return np.array(((0.0, -a[2], a[1]), (a[2], 0.0, -a[0]), (-a[1], a[0], 0.0)))


class TangentScene:
    """The machine at one state, each of its points with derivatives; and the derivatives of what was put on them."""

    def __init__(self, manipulator, x, xd):
        self._manipulator, self._x, self._xd = manipulator, x, xd
        self._links = {}
        names, q, qd, _ = manipulator.joint_state(x, xd)
        self.joints = dict(zip(names, zip(q, qd)))
        self.joint_slopes, self.wrench_slopes = {}, {}
        self.dof = manipulator.dof

    def link(self, link):
        """Return (rotation, origin, Jacobian (6, dof), twist (6,), its derivative by position (6, dof))."""
        if link not in self._links:
            m, x, xd = self._manipulator, self._x, self._xd
            pose = m.link_pose(x, link)
            bend = np.zeros((6, self.dof))
            if xd.any():
                bend = _jacobian_rate(m, x, xd, link)
            self._links[link] = (pose[:3, :3], pose[:3, 3], link_jacobian(m, x, link), m.link_twist(x, xd, link), bend)
        return self._links[link]

    def constant(self, value):
        """Return a vector that does not change."""
        return Vector(np.asarray(value, dtype=float), np.zeros((3, self.dof)), np.zeros((3, self.dof)))

    def direction(self, link, value):
        """Return a vector that is fixed in a link, in inertial axes."""
        rotation, _, J, _, _ = self.link(link)
        return Vector(rotation @ value, -rotation @ skew(value) @ J[3:], np.zeros((3, self.dof)))

    def position(self, link, point):
        """Return where a point of a link is, in inertial axes."""
        rotation, origin, J, _, _ = self.link(link)
        by_x = rotation @ (J[:3] - skew(point) @ J[3:])
        return Vector(origin + rotation @ point, by_x, np.zeros((3, self.dof)))

    def velocity(self, link, point):
        """Return the velocity of a point of a link, in inertial axes."""
        rotation, _, J, V, bend = self.link(link)
        u = V[:3] + np.cross(V[3:], point)
        return Vector(u, bend[:3] - skew(point) @ bend[3:] - skew(u) @ J[3:],
                      J[:3] - skew(point) @ J[3:]).through(rotation)

    def spin(self, link):
        """Return the angular velocity of a link, in its axes."""
        _, _, J, V, bend = self.link(link)
        return Vector(V[3:], bend[3:], J[3:])

    def push(self, link, point, force, moment=None):
        """Put a force in inertial axes on a point of a link, and a moment in link axes."""
        rotation, _, J, _, _ = self.link(link)
        force = force.through(rotation.T)
        force = Vector(force.value, force.by_x + skew(force.value) @ J[3:], force.by_xd)
        torque = force.through(skew(point))
        if moment is not None:
            torque += moment
        old = self.wrench_slopes.get(link, (0.0, 0.0))
        self.wrench_slopes[link] = (old[0] + np.vstack((force.by_x, torque.by_x)),
                                    old[1] + np.vstack((force.by_xd, torque.by_xd)))

    def drive(self, joint, by_position, by_rate):
        """Let the effort on a joint change with its position and rate."""
        old = self.joint_slopes.get(joint, (0.0, 0.0))
        self.joint_slopes[joint] = old[0] + by_position, old[1] + by_rate


def _jacobian_rate(m, x, xd, link):
    """Return the derivative (6, dof) of a link's twist by position: that of J' w for unit wrenches w, against xd."""
    rest = np.zeros(m.dof)
    plain = generalized_forces_derivatives(m, x, rest, rest).df_dx
    rows = []
    for unit in np.eye(6):
        loaded = generalized_forces_derivatives(m, x, rest, rest, wrenches={link: (unit[:3], unit[3:])}).df_dx
        rows.append(xd @ (plain - loaded))
    return np.array(rows)
