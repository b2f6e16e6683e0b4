"""A machine of blocks as inputs and outputs: forward, inverse and mixed dynamics, rates for integrators."""
from typing import NamedTuple

import numpy as np

from ...model.errors import NonFiniteError, ShapeError, StateError, UnknownNameError, did_you_mean
from .checks import numbers
from .dual_vectors import dual_rotation, quaternion_rate, rotation_of, tau
from .errors import AlgebraicLoopError, NetworkError
from .records import AffineMap, Motion

SINGULAR = 1e-12  # smallest eigenvalue of the base's inertia, scaled to a diagonal of ones


class State(NamedTuple):
    """Where a machine is and how it moves; `System.pack` makes the vector of an integrator of it."""

    position: np.ndarray
    """IP (3,) [m] of the root's port P, in inertial axes."""
    quaternion: np.ndarray
    """x y z w (4,), from axes of the root to inertial axes; its length does not matter."""
    twist: np.ndarray
    """x'_P = (v_P, w) (6,) [m/s, rad/s], in axes of the root."""
    joint_positions: np.ndarray
    """theta or x (joints,) [rad or m]."""
    joint_rates: np.ndarray
    """(joints,) [rad/s or m/s]."""


class Solution(NamedTuple):
    """Every unknown of the algebraic loop."""

    base_acceleration: np.ndarray
    """x'dot_P (6,) of the root, the rate of the twist in axes of the root; gravity is not in it."""
    base_wrench: np.ndarray
    """(6,) [N, N m], by the drive of the base on the root at P; zero where the base is free."""
    joint_accelerations: np.ndarray
    """(joints,) [rad/s^2 or m/s^2]."""
    joint_forces: np.ndarray
    """C_m or F_m (joints,) [N m or N], by the drive on the child body."""
    wrenches: dict
    """Block -> W_A/B (6,) by the block on its parent, at the port of the parent in axes of the parent."""
    port_accelerations: dict
    """Exposed port -> x'dot_C (6,), in axes of its body."""


class System:
    """
    A two-port whose P is the base; `Network.assemble` makes it.

    Causality is chosen in each call.  The base is free, wrench in and motion out, unless `base_acceleration` is given;
    a joint takes its force (zero unless given) and answers with its acceleration, unless its acceleration is given.

    Inputs of `solve`, `affine_map` and `state_derivative`:
    forces: (joints,), or {joint: number or function of (t, position, rate)}, or a function of (t, State) to (joints,);
    accelerations: (joints,), or {joint: number or function of t}, of driven joints;
    wrenches: {port: (6,) or function of (t, Motion)}, by the environment on an exposed port or on '<root>.P', at
    the port in axes of its body; base_acceleration: x'dot_P (6,) or function of t.
    """

    def __init__(self, two_port, gravity):
        self._block = two_port
        self.gravity = gravity
        self.joints = two_port.joints
        self.base_port = f'{two_port.blocks[0].name}.P'
        self.ports = (self.base_port, *two_port.ports)

    def state(self, position=(0, 0, 0), quaternion=(0, 0, 0, 1), twist=(0, 0, 0, 0, 0, 0), joint_positions=None,
              joint_rates=None):
        """Return a checked `State`; joints are arrays (joints,) or {joint: value}, zero where not given."""
        state = State(numbers('position', position, (3,)), numbers('quaternion', quaternion, (4,)),
                      numbers('twist', twist, (6,)), self._by_joint('joint_positions', joint_positions),
                      self._by_joint('joint_rates', joint_rates))
        if np.linalg.norm(state.quaternion) < 1e-6:
            raise StateError(f'quaternion = {quaternion!r:.80} is no rotation; expected x y z w')
        return state

    def pack(self, state):
        """Return y (13 + 2 joints,) of a `State`, its fields in their order."""
        return np.concatenate(state)

    def unpack(self, y):
        """Return the `State` of y (13 + 2 joints,)."""
        n = len(self.joints)
        if np.shape(y) != (13 + 2 * n,):
            raise ShapeError(f'y has shape {np.shape(y)}; expected {(13 + 2 * n,)}')
        return State(y[:3], y[3:7], y[7:13], y[13:13 + n], y[13 + n:])

    def solve(self, state, t=0.0, forces=None, wrenches=None, accelerations=None, base_acceleration=None):
        """Return the `Solution` of the algebraic loop: tips to root, 6 x 6 at the base, root to tips."""
        placed, reduced, on_base = self._reduced(state, t, forces, wrenches, accelerations)
        w0, D = reduced.on_parent.w0 + on_base, reduced.on_parent.D
        if base_acceleration is None:
            # the root hangs on nothing: 0 = w0 - D x'dot
            acceleration, base_wrench = self._solve_base(w0, D), np.zeros(6)
        else:
            acceleration = numbers('base_acceleration', _at(base_acceleration, t), (6,))
            base_wrench = D @ acceleration - w0
        answer = self._block.respond(placed, reduced, acceleration)
        wrenches = {name: wrench for name, wrench in answer.wrenches.items() if name}
        return Solution(acceleration, base_wrench, answer.joint_accelerations, answer.joint_forces, wrenches,
                        answer.ports)

    def affine_map(self, state, t=0.0, forces=None, wrenches=None, accelerations=None):
        """Return w0 (6,) and D (6, 6) of the wrench by the machine on a base that moves it, W = w0 - D x'dot_P."""
        _, reduced, on_base = self._reduced(state, t, forces, wrenches, accelerations)
        return AffineMap(reduced.on_parent.w0 + on_base, reduced.on_parent.D)

    def state_derivative(self, t, y, forces=None, wrenches=None, accelerations=None, base_acceleration=None):
        """Return the rate of y; scipy's integrators pass the inputs on from `args`."""
        state = self.unpack(np.asarray(y, float))
        solution = self.solve(state, t, forces, wrenches, accelerations, base_acceleration)
        return np.concatenate((rotation_of(state.quaternion) @ state.twist[:3],
                               quaternion_rate(state.quaternion, state.twist[3:]), solution.base_acceleration,
                               state.joint_rates, solution.joint_accelerations))

    def motions(self, state):
        """Return {port: `Motion`} of the base and of every exposed port."""
        base = self._base(state)
        return {self.base_port: base, **self._place(state, base).ports}

    def energy(self, state):
        """Return kinetic and potential energy [J]; the latter of gravity, zero at the origin, and of loop closures."""
        placed = self._place(state, self._base(state))
        kinetic = potential = 0.0
        for block, motion in self._block.bodies(placed):
            kinetic += 0.5 * motion.twist @ block.D_P @ motion.twist
            potential -= block.mass * self.gravity @ _center(block, motion)
        return kinetic, potential + self._block.elastic_energy(placed)

    def momentum(self, state):
        """Return (6,): linear [N s] and, about the inertial origin, angular momentum [N m s], in inertial axes."""
        total = np.zeros(6)
        for block, motion in self._block.bodies(self._place(state, self._base(state))):
            on_axes = dual_rotation(motion.rotation) @ block.D_P @ motion.twist
            total += tau(-motion.position).T @ on_axes
        return total

    def center_of_mass(self, state):
        """Return (3,) [m], from the inertial origin in inertial axes."""
        bodies = list(self._block.bodies(self._place(state, self._base(state))))
        return (sum(block.mass * _center(block, motion) for block, motion in bodies)
                / sum(block.mass for block, _ in bodies))

    def _base(self, state):
        return Motion(state.position, rotation_of(state.quaternion), state.twist)

    def _place(self, state, base):
        if not all(np.isfinite(field).all() for field in state):
            raise NonFiniteError('the state has NaN or infinity; expected finite numbers')
        return self._block.place(base, state.joint_positions, state.joint_rates)

    def _reduced(self, state, t, forces, wrenches, accelerations):
        """Return what the tree was placed and reduced to, and the external wrench (6,) on the base."""
        base = self._base(state)
        placed = self._place(state, base)
        driven = self._accelerations(accelerations, t)
        on_ports = self._wrenches(wrenches, t, {self.base_port: base, **placed.ports})
        on_base = on_ports.pop(self.base_port, np.zeros(6))
        children = {port: AffineMap(wrench, np.zeros((6, 6))) for port, wrench in on_ports.items()}
        reduced = self._block.reduce(placed, self.gravity, self._forces(forces, t, state, driven), driven, children)
        return placed, reduced, on_base

    def _solve_base(self, w0, D):
        """Return x'dot (6,) with D x'dot = w0."""
        size = np.sqrt(np.clip(np.diag(D), 0, None))
        if size.min() > 0:
            scaled = D / np.outer(size, size)
            if np.linalg.eigvalsh(scaled)[0] > SINGULAR:
                return np.linalg.solve(scaled, w0 / size) / size
        raise AlgebraicLoopError(f"base '{self.base_port}': its inertia, children included, is singular; no "
                                 'acceleration solves the algebraic loop. Expected mass that resists in all six '
                                 'directions, or a given base_acceleration')

    def _forces(self, forces, t, state, driven):
        if forces is None:
            return np.zeros(len(self.joints))
        if isinstance(forces, dict):
            rows = np.zeros(len(self.joints))
            for joint, force in forces.items():
                i = self._index(joint)
                if not np.isnan(driven[i]):
                    raise NetworkError(f"joint '{joint}' has a given force and a given acceleration; expected one")
                rows[i] = numbers(f"force of '{joint}'",
                                  _at(force, t, state.joint_positions[i], state.joint_rates[i]), ())
            return rows
        if not np.isnan(driven).all():
            raise NetworkError('forces of all joints are given and accelerations of some; '
                               'expected forces={joint: force} for the others')
        return numbers('forces', _at(forces, t, state), (len(self.joints),))

    def _accelerations(self, accelerations, t):
        """Return (joints,), NaN for a joint that its force moves."""
        rows = np.full(len(self.joints), np.nan)
        if isinstance(accelerations, dict):
            for joint, value in accelerations.items():
                rows[self._index(joint)] = numbers(f"acceleration of '{joint}'", _at(value, t), ())
        elif accelerations is not None:
            rows[:] = numbers('accelerations', _at(accelerations, t), rows.shape)
        return rows

    def _wrenches(self, wrenches, t, motions):
        rows = {}
        for port, wrench in (wrenches or {}).items():
            if port not in motions:
                raise UnknownNameError(f"wrench on '{port}': no such exposed port{did_you_mean(port, motions)}")
            rows[port] = numbers(f"wrench on '{port}'", _at(wrench, t, motions[port]), (6,))
        return rows

    def _by_joint(self, label, values):
        if not isinstance(values, dict):
            return numbers(label, np.zeros(len(self.joints)) if values is None else values, (len(self.joints),))
        rows = np.zeros(len(self.joints))
        for joint, value in values.items():
            rows[self._index(joint)] = numbers(f"{label} of '{joint}'", value, ())
        return rows

    def _index(self, joint):
        if joint not in self.joints:
            raise UnknownNameError(f"joint '{joint}': no such joint{did_you_mean(joint, self.joints)}")
        return self.joints.index(joint)


def _at(value, *arguments):
    """Return an input now: a number or array as it is, a function called."""
    return value(*arguments) if callable(value) else value


def _center(block, motion):
    return motion.position + motion.rotation @ block.center
