"""`Manipulator`: checked, documented calls over the kernels.  Signs, frames and shapes as in the README."""
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..kernels.rigid_body import energy as quantities
from ..kernels.rigid_body import entry
from ..kernels.rigid_body.inverse import base_reaction
from ..kernels.rigid_body.joints import outward_velocities
from ..kernels.rigid_body.records import LOOP, WORK
from ..kernels.runtime.compiler import compiled
from ..model.errors import InertiaError, MeasurementError, ShapeError, UnknownNameError, did_you_mean
from ..model.mechanism.description import IDENTITY, Inertial
from ..model.mechanism.tree import inertia_problem, rigid_parameters
from .analysis.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
from .analysis.equilibrium import equilibrium
from .analysis.linearization import linearize
from .arguments import names as checked_names
from .arguments import numbers, vector
from .batch import run_batch
from .environment import base_rows, find_link, wrench_rows
from .failures import non_finite, state_error
from .integrator import Integrator
from .joint_map import JointMap
from .kinematics import pose_in_base, twist_of_link

MOST_MAPS = 100         # kept; a sender that shuffles its names must not fill the memory

CONTIGUOUS = (8,)       # strides of a vector of doubles


class Limits(NamedTuple):
    """Declared limits (dof,) in actuator order; infinite where nothing is declared."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class Records(NamedTuple):
    """What the kernels take first: model records, scratch records, environment rows of a base at rest."""

    mods: np.ndarray
    work: np.ndarray
    env: np.ndarray


class Manipulator:
    """A machine ready to compute with; `load` makes it.

    Coordinates x are the actuated joints in the order of `actuators`: strokes [m] and angles [rad]; efforts f are
    [N] and [N m], positive in the direction of x.  One instance serves one thread at a time without Numba, and any
    number with it.
    """

    def __init__(self, machine, gravity, rebuild):
        self._machine = machine
        self._gravity = gravity
        self._rebuild = rebuild                         # Description -> Machine with the options of `load`
        n = len(machine.modules)
        self._mods = machine.records
        self._work = np.zeros(n, WORK)
        self._env = base_rows(gravity, None)
        self._maps = {}
        self.dof = n

        self.nx = n
        self.floating = False

    name = property(lambda self: self._machine.name)
    actuators = property(lambda self: self._machine.actuators, doc='Actuated joints, in the order of f.')
    coordinates = property(lambda self: self._machine.actuators, doc='Independent joints, in the order of x.')
    joints = property(lambda self: self._machine.joints, doc='Every movable joint of the tree, depth first.')
    links = property(lambda self: tuple(self._machine.places), doc='Every link, by name.')
    total_mass = property(lambda self: self._machine.total_mass, doc='Mass of all links [kg].')
    machine = property(lambda self: self._machine, doc='The model: modules, loops, warnings.')
    records = property(lambda self: Records(self._mods, self._work, self._env), doc='The kernels\' first arguments.')
    gravity = property(lambda self: self._gravity.copy(), doc='Gravity (3,) in inertial axes [m/s^2].')

    @property
    def initial_position(self):
        """Coordinates (dof,) of the declared initial position."""
        return self._machine.initial.copy()

    @property
    def limits(self):
        """`Limits` of the actuated joints."""
        joints = {module.name: module.joint for module in self._machine.modules}
        return Limits(*(np.array([getattr(joints[name], what) for name in self.actuators])
                        for what in ('lower', 'upper', 'velocity', 'effort')))

    coordinate_limits = property(lambda self: self.limits, doc='`Limits` of the coordinates, which are the actuators.')

    def forward_dynamics(self, x, xd, f, *, base=None, wrenches=None, joint_efforts=None):
        """Return the accelerations xdd for efforts f (Paz & Mattila, Algorithm 1).

        x, xd, f: (dof,), or (N, dof) for a batch.  base: `BaseMotion`.  wrenches: {link: (force, moment)} applied by
        the environment on the link, at its origin in its axes.  joint_efforts: {joint: effort} that springs and the
        like apply on any joint, positive along its axis.
        Raises ShapeError, NonFiniteError, UnreachableStrokeError, TogglePointError.
        """
        if joint_efforts:
            f = self._array('f', f) + self._joint_efforts(x, joint_efforts)
        if base is None and wrenches is None and compiled:
            try:
                # the compiled signature refuses lists, batches and other strides itself, but in a millisecond
                if x.strides == xd.strides == f.strides == CONTIGUOUS:
                    xdd = np.empty(self.dof)
                    if entry.forward_checked(self._mods, self._work, self._env, x, xd, f, xdd) == 0:
                        return xdd
            except Exception:       # whatever Numba says of odd inputs: the checked way below decides
                pass
        return self._general(entry.forward_checked, entry.forward_batch, ('x', 'xd', 'f'), (x, xd, f), base, wrenches)

    def inverse_dynamics(self, x, xd, xdd, *, base=None, wrenches=None, joint_efforts=None):
        """Return the efforts f for accelerations xdd; arguments and errors as `forward_dynamics`."""
        if joint_efforts:
            return (self.inverse_dynamics(x, xd, xdd, base=base, wrenches=wrenches)
                    - self._joint_efforts(x, joint_efforts))
        if base is None and wrenches is None and compiled:
            try:
                if x.strides == xd.strides == xdd.strides == CONTIGUOUS:
                    f = np.empty(self.dof)
                    if entry.inverse_checked(self._mods, self._work, self._env, x, xd, xdd, f) == 0:
                        return f
            except Exception:       # whatever Numba says of odd inputs: the checked way below decides
                pass
        return self._general(entry.inverse_checked, entry.inverse_batch, ('x', 'xd', 'xdd'), (x, xd, xdd), base,
                             wrenches)

    def generalized_forces(self, x, xd, xdd, *, base=None, wrenches=None, joint_efforts=None):
        """Return M xdd + bias; here, where the coordinates are the actuators, the same as `inverse_dynamics`."""
        return self.inverse_dynamics(x, xd, xdd, base=base, wrenches=wrenches, joint_efforts=joint_efforts)

    def _joint_efforts(self, x, efforts):
        """Return the efforts on the coordinates (dof,), or (N, dof) for rows of x, of {joint: effort}."""
        x = self._array('x', x)
        if x.ndim == 2:
            return np.array([self._joint_efforts(row, efforts) for row in x])
        x, = self._state(x=x)
        out = np.zeros(self.dof)
        for joint, effort in self._named_efforts(efforts):
            if joint in self.actuators:
                out[self.actuators.index(joint)] += effort
            else:
                k, rate = self._triangle_rate(x, joint)
                out[self._mods[k]['coordinate']] += rate * effort
        return out

    def _named_efforts(self, efforts):
        if not isinstance(efforts, dict):
            raise ShapeError(f'joint_efforts={efforts!r:.80}: expected {{joint: effort}}')
        for joint, effort in efforts.items():
            if joint not in self.joints:
                raise UnknownNameError(f"joint '{joint}': no movable joint of '{self.name}'"
                                       f'{did_you_mean(str(joint), self.joints)}')
            yield joint, float(vector(f"effort on '{joint}'", [effort], 1)[0])

    def _triangle_rate(self, z, joint):
        """Return (module, rate of a boom or barrel joint for unit rate of its stroke)."""
        row = self.joints.index(joint)
        k = int(np.argwhere(self._mods['joint'] == row)[0][0])
        q = np.zeros((3, len(self.joints)))
        part = self._mods[k:k + 1]
        self._check(quantities.joint_states(part, z, np.ones(len(z)), np.zeros(len(z)), q[0], q[1], q[2]), z)
        return k, q[1, row]

    def _general(self, single, batch, labels, values, base, wrenches):
        arrays = {label: self._array(label, value) for label, value in zip(labels, values)}
        inputs = tuple(arrays.values())
        if len({array.shape for array in inputs}) > 1 or inputs[0].ndim not in (1, 2) \
                or inputs[0].shape[-1] != self.dof:
            raise state_error(self._machine, entry.SHAPE, None, arrays)
        if inputs[0].ndim == 1:
            return self._single(single, labels, inputs, self._environment(inputs[0], base, wrenches)[0])
        if not all(np.isfinite(array).all() for array in inputs):
            raise non_finite(self._machine, arrays)
        out = np.empty(inputs[0].shape)
        if wrenches is not None:
            # where a wrench acts depends on the state, so each row has an environment of its own
            for row, state in enumerate(zip(*inputs)):
                out[row] = self._single(single, labels, state, self._environment(state[0], base, wrenches)[0], row)
            return out
        status, row = run_batch(batch, self._mods, self._environment(None, base, None)[0], inputs, out)
        if status != 0:
            raise state_error(self._machine, status, inputs[0][row], arrays, row)
        return out

    def _single(self, kernel, labels, inputs, env, row=None):
        out = np.empty(self.dof)
        status = kernel(self._mods, self._work, env, *inputs, out)
        if status != 0:
            raise state_error(self._machine, status, inputs[0], dict(zip(labels, inputs)), row)
        return out

    def _environment(self, x, base, wrenches):
        rows = self._env if base is None else base_rows(self._gravity, base)
        if not wrenches:
            return rows, np.zeros(6)
        bodies, on_base = wrench_rows(self._machine, x, wrenches)
        return np.ascontiguousarray(np.vstack((rows, bodies))), on_base

    def environment(self, x, *, base=None, wrenches=None):
        """Return the rows that `Integrator.set_environment` takes: (2, 6), or (2 + 3 modules, 6) with wrenches.

        base: `BaseMotion`.  wrenches as in `forward_dynamics`; where they act on barrels and rods depends on x (nx,).
        """
        return self._environment(np.asarray(x, dtype=float), base, wrenches)[0]

    def _array(self, label, value):
        array = np.ascontiguousarray(numbers(label, value), dtype=float)
        # the compiled signature is for writeable arrays
        return array if array.flags.writeable else array.copy()

    def _state(self, **values):
        arrays = {label: self._array(label, value) for label, value in values.items()}
        if any(array.shape != (self.dof,) for array in arrays.values()):
            raise state_error(self._machine, entry.SHAPE, None, arrays)
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise state_error(self._machine, entry.NON_FINITE, None, arrays)
        return tuple(arrays.values())

    def _check(self, status, x):
        if status != 0:
            raise state_error(self._machine, status, x, {'x': x})

    def actuator_map(self, x):
        """Return A (actuators, dof) with the rates A xd of the actuators; here they are the coordinates."""
        self._state(x=x)
        return np.eye(self.dof)

    def mass_matrix(self, x):
        """Return M (dof, dof) with f = M xdd + bias; symmetric positive definite."""
        x, = self._state(x=x)
        M, scratch = np.empty((self.dof, self.dof)), np.zeros((3, self.dof))
        still = np.zeros((2, 6))
        self._check(quantities.mass_matrix(self._mods, self._work, still, x, scratch[0], scratch[1], scratch[2], M), x)
        return M

    def bias_forces(self, x, xd):
        """Return f (dof,) at xdd = 0: velocity, gravity and friction terms."""
        x, xd = self._state(x=x, xd=xd)
        return self.inverse_dynamics(x, xd, np.zeros(self.dof))

    def gravity_forces(self, x):
        """Return f (dof,) that holds the machine at rest."""
        x, = self._state(x=x)
        return self.inverse_dynamics(x, np.zeros(self.dof), np.zeros(self.dof))

    def energy(self, x, xd):
        """Return (kinetic, potential) energy [J] of a machine whose base rests at the inertial origin."""
        x, xd = self._state(x=x, xd=xd)
        out, still = np.empty(4), np.zeros((2, 6))
        self._check(quantities.energy(self._mods, self._work, still, x, xd, out), x)
        moment = out[1:] + self._machine.base_inertia[1:4]
        return float(out[0]), float(-self._gravity @ moment)

    def joint_state(self, x, xd=None, xdd=None):
        """Return (names, position, velocity, acceleration) of every joint of the tree (q = gamma, G xd, G xdd + g).

        velocity and acceleration are None where xd or xdd is not given.
        """
        zero = np.zeros(self.dof)
        states = self._state(x=x, xd=zero if xd is None else xd, xdd=zero if xdd is None else xdd)
        out = np.empty((3, len(self.joints)))
        self._check(quantities.joint_states(self._mods, *states, out[0], out[1], out[2]), states[0])
        return (self.joints, out[0], None if xd is None else out[1],
                None if xd is None or xdd is None else out[2])

    def joint_map(self, names):
        """Return the `JointMap` of a sufficient set of joints: strokes, boom angles, barrel angles, or a mix."""
        names = checked_names('names', names, MeasurementError)
        if names not in self._maps:
            if len(self._maps) >= MOST_MAPS:
                self._maps.clear()
            self._maps[names] = self._make_map(names)
        return self._maps[names]

    def _make_map(self, names):
        return JointMap(self._machine, names)

    def actuator_state(self, names, position, velocity=None):
        """Return (x, xd, residual) from measured joints; residual [m] is their largest disagreement at a rod eye.

        Raises MeasurementError when the joints do not fix every loop, UnreachableStrokeError when none closes it.
        """
        return self.joint_map(names).state(position, velocity)

    def link_pose(self, x, link):
        """Return the pose (4, 4) of a link in the base frame."""
        x, = self._state(x=x)
        place = find_link(self._machine, link)
        # other threads may use the shared scratch between the sweep and our reading of it
        work = np.zeros(self.dof, WORK)
        self._check(outward_velocities(self._mods, work, self._env, x, np.zeros(self.dof)), x)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = pose_in_base(self._mods, work, place, x)
        return pose

    def link_twist(self, x, xd, link):
        """Return the twist (v, w) (6,) of a link's origin in link axes, of a machine whose base rests."""
        x, xd = self._state(x=x, xd=xd)
        place = find_link(self._machine, link)
        work = np.zeros(self.dof, WORK)
        self._check(outward_velocities(self._mods, work, self._env, x, xd), x)
        return twist_of_link(self._mods, work, self._env, place, x)

    def base_wrench(self, x, xd, xdd, *, base=None, wrenches=None):
        """Return the wrench (f, m) (6,) that the environment applies on the base, at its origin in its axes."""
        x, xd, xdd = self._state(x=x, xd=xd, xdd=xdd)
        env, on_base = self._environment(x, base, wrenches)
        f, reaction, work = np.empty(self.dof), np.empty(6), np.zeros(self.dof, WORK)
        self._check(entry.inverse_checked(self._mods, work, env, x, xd, xdd, f), x)
        base_reaction(self._mods, work, env, self._machine.base_inertia, reaction)
        return reaction - on_base

    forward_dynamics_derivatives = forward_dynamics_derivatives
    inverse_dynamics_derivatives = inverse_dynamics_derivatives
    linearize = linearize
    equilibrium = equilibrium

    def with_payload(self, link, mass, com, inertia):
        """Return a new Manipulator with a payload on a link.

        com (3,) in link axes from the link origin [m]; inertia (3, 3) about the payload's centre of mass, link axes.
        """
        payload = checked_payload(self._machine, link, mass, com, inertia)
        links = dict(self._machine.description.links)
        links[link] = replace(links[link], inertial=combine(links[link].inertial, payload))
        return self._rebuilt(replace(self._machine.description, links=links))

    def _rebuilt(self, description):
        return Manipulator(self._rebuild(description), self._gravity, self._rebuild)

    def integrator(self, step, substeps=1, *, stiffness=5e7, damping=1.0):
        """Return an `Integrator` that advances (x, xd) by `step` [s] in `substeps` parts at constant effort.

        stiffness [N/m, N m/rad] and damping [s/m, s/rad] are those of the stops at the joint limits.
        """
        return Integrator(self._machine, self._env, step, substeps, stiffness, damping)

    def __repr__(self):
        loops = int((self._mods['kind'] == LOOP).sum())
        return f"<Manipulator '{self.name}': {self.dof} DoF, {loops} loops, {self.total_mass:.2f} kg>"


def checked_payload(machine, link, mass, com, inertia):
    """Return the `Inertial` of a payload on a link, arguments as `Manipulator.with_payload`.

    Raises UnknownNameError, InertiaError.
    """
    find_link(machine, link)
    where = f"payload on '{link}'"
    mass, com = float(vector(f'{where}: mass', [mass], 1)[0]), vector(f'{where}: com', com, 3)
    inertia = vector(f'{where}: inertia', inertia, (3, 3))
    if np.abs(inertia - inertia.T).max() > 1e-6 * np.abs(inertia).max():
        raise InertiaError(f'{where}: the inertia is not symmetric')
    payload = Inertial(mass, com, 0.5 * (inertia + inertia.T))
    problem = inertia_problem(payload) if mass >= 0.0 else f'mass {mass:g} kg is negative'
    if problem:
        raise InertiaError(f'{where}: {problem}')
    return payload


def combine(first, second):
    """Return the `Inertial` of two bodies that are fixed to each other, in the same axes."""
    if first is None or second.mass == 0.0:
        return first if second.mass == 0.0 else second
    total = rigid_parameters(IDENTITY, first) + rigid_parameters(IDENTITY, second)
    mass, com = total[0], total[1:4] / total[0]
    xx, xy, xz, yy, yz, zz = total[4:]
    about_origin = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return Inertial(mass, com, about_origin - mass * (com @ com * np.eye(3) - np.outer(com, com)))

