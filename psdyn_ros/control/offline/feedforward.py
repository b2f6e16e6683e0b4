"""Inverse dynamics as feedforward: what a motion asks of the actuators, and of any independent joints in their place.

Where a load hangs from passive joints, the motion is that of the driven ones and the dynamics are hybrid: the load
moves freely, from rest at the first instant on, as `advance` follows the motion.

The effort of a joint is defined by virtual work: the efforts tau on `joints` do at every motion the work of the efforts
f on the actuators, tau' J = f' A with J and A the rates of joints and actuators for unit rates of the coordinates.
Thus the effort of a boom joint is the torque about its pin that does what its cylinder does, f ds/dq.
"""

from typing import NamedTuple

import numpy as np

from ...api.allocation import Allocation
from ...api.arguments import names as checked_names
from ...api.batch import share_efforts
from ...model.errors import ActuationError, StateError, TogglePointError, UnknownNameError, did_you_mean
from ..laws.computed_torque import check_actuation
from ..laws.passive_states import PassiveStates

REGULAR = 1e-6      # smallest singular value with which joints count as independent, of unit rates of all joints


class Efforts(NamedTuple):
    """Efforts of one motion, within the limits of the actuators."""

    actuators: np.ndarray   # (actuators,) N, N m
    joints: np.ndarray      # (joints,) the same on the joints
    beyond: tuple           # names of the actuators that would need more than their limit
    needed: np.ndarray      # (actuators,) the efforts without limits


class Terms(NamedTuple):
    """Parts of the generalised forces, each (dof,) on the coordinates; friction as scaled. Their sum is the whole.

    A load that hangs counts as at rest in `gravity`; what its swing adds is in `coriolis`.
    """

    inertia: np.ndarray
    coriolis: np.ndarray
    gravity: np.ndarray
    friction: np.ndarray


class Feedforward:
    """Efforts that a motion needs, of the actuators and of joints.

    manipulator  standing on its root, with actuators for all its coordinates but passive joints
    joints       all actuators in any order (default), or as many independent joints as degrees of freedom

    `friction_scale` (0 to 1) is the share of the modelled friction that is compensated, `payloads` are those attached,
    `whole` is the machine with them, `manipulator` its `driven_machine`; x, xd, xdd and dof are of this.
    Raises ActuationError, UnknownNameError, MeasurementError for joints that do not fix the machine.
    """

    def __init__(self, manipulator, joints=None):
        check_actuation(manipulator)
        self.joints = manipulator.actuators if joints is None else checked_names('joints', joints)
        self.friction_scale = 1.0
        self.payloads = {}
        self._bare = manipulator
        self._check_joints(manipulator.driven_machine)
        self._use(manipulator)

    def _check_joints(self, m):
        for name in self.joints:
            if name not in m.joints:
                raise UnknownNameError(f"joint '{name}': no movable joint of '{m.name}'{did_you_mean(name, m.joints)}")
        if len(self.joints) == len(m.actuators) and set(self.joints) == set(m.actuators):
            return
        if len(self.joints) != m.dof:
            raise ActuationError(
                f"joints {list(self.joints)}: expected all actuators of '{m.name}' ({', '.join(m.actuators)}), or "
                f'{m.dof} independent joints, one for each degree of freedom')
        m.joint_map(self.joints)        # raises where they do not fix the machine

    def _use(self, whole):
        self.whole, m = whole, whole.driven_machine
        self.manipulator, self._forces, self._passive = m, m.generalized_forces, None
        if whole.underactuated:
            handle = whole.handle()
            handle.start_from_last()
            handle.let_efforts_act_on_coordinates()
            self._passive = PassiveStates(whole, handle)
            self._forces = self._passive.efforts
        self._order = None
        if set(self.joints) == set(m.actuators):
            self._order = [m.actuators.index(name) for name in self.joints]
        self._columns = [m.joints.index(name) for name in self.joints]
        self._limit = np.array(m.limits.effort, dtype=float)
        self._direct = m.actuators == m.coordinates
        self._limited = None
        if len(m.actuators) > m.dof:
            self._limited = Allocation(m.actuators, dict(zip(m.actuators, self._limit)),
                                       dict(zip(m.actuators, m.allocation.weights)))

    def set_payload(self, link, mass, com, inertia):
        """Attach a payload to a link in place of the one before; mass 0 takes it off. Arguments as `with_payload`.

        Raises UnknownNameError or InertiaError and changes nothing.
        """
        payloads = {**self.payloads, link: (mass, com, inertia)}
        manipulator = self._bare
        for where, payload in payloads.items():
            manipulator = manipulator.with_payload(where, *payload)
        self.payloads = {where: payload for where, payload in payloads.items() if payload[0] > 0.0}
        self._use(manipulator)

    def advance(self, t, x, xd):
        """Let a load that hangs swing along the motion until it is at x, xd, each (dof,), at t [s].

        The load rests at first, and after a step of more than 0.05 s or back. Raises StateError where it cannot hang.
        """
        if self._passive is not None:
            self._passive.observe(t, x, xd)
            if self._passive.problem:
                raise StateError(f'{", ".join(self._passive.joints)}: {self._passive.problem}')

    def of(self, x, xd, xdd):
        """`Efforts` of the motion x, xd, xdd, each (dof,).

        Raises a StateError where no loop closes, ActuationError where the actuators do not reach a coordinate.
        """
        needed = self._forces(x, xd, xdd)
        if self.friction_scale != 1.0:
            needed = needed - (1.0 - self.friction_scale) * self._friction(x, xd)
        return self._shared(x, needed)

    def at(self, x, xd):
        """`Efforts` of gravity at x and of friction at xd, each (dof,), whatever the acceleration is."""
        needed = self._gravity(x)
        if self.friction_scale != 0.0:
            needed = needed + self.friction_scale * self._friction(x, xd)
        return self._shared(x, needed)

    def terms(self, x, xd, xdd=None):
        """`Terms` of the motion x, xd, xdd, each (dof,); without xdd of `at`: gravity and friction only."""
        still = np.zeros(self.manipulator.dof)
        gravity, friction = self._gravity(x), self._friction(x, xd)
        scaled = self.friction_scale * friction
        if xdd is None:
            return Terms(still, still, gravity, scaled)
        bias = self._forces(x, xd, still)
        return Terms(self._forces(x, xd, xdd) - bias, bias - friction - gravity, gravity, scaled)

    def _gravity(self, x):
        if self._passive is not None:
            return self._passive.resting_efforts(x)
        still = np.zeros(self.manipulator.dof)
        return self.manipulator.generalized_forces(x, still, still)

    def _friction(self, x, xd):
        # of the terms of velocity, friction is odd in it and all else is even
        still = np.zeros(self.manipulator.dof)
        return 0.5 * (self.manipulator.generalized_forces(x, xd, still)
                      - self.manipulator.generalized_forces(x, -np.asarray(xd, float), still))

    def _shared(self, x, needed):
        m = self.manipulator
        A = None if self._direct else m.actuator_map(x)
        force = asked = needed.copy() if A is None else share_efforts(m, m.allocation, A, needed)
        beyond = np.abs(force) > self._limit
        over = tuple(name for name, one in zip(m.actuators, beyond) if one)
        if over:
            force = (np.clip(force, -self._limit, self._limit) if self._limited is None
                     else self._limited.share(A, needed).efforts)
            needed = force if A is None else A.T @ force
        joints = force[self._order] if self._order is not None else self._on_joints(x, needed)
        return Efforts(force, joints, over, asked)

    def _on_joints(self, x, needed):
        m = self.manipulator
        rates = np.array([m.joint_state(x, unit)[2] for unit in np.eye(m.dof)])
        J = rates[:, self._columns]         # transposed
        _, values, directions = np.linalg.svd(J / np.linalg.norm(rates, axis=1)[:, None])
        if values[-1] < REGULAR:
            worst = self.joints[int(np.abs(directions[-1]).argmax())]
            raise TogglePointError(f"'{worst}' stands still here however the machine moves: no effort on it does the "
                                   'work of the actuators')
        return np.linalg.solve(J, needed)
