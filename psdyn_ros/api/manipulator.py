"""`Manipulator`: checked, documented calls over the kernels.  Signs, frames and shapes as in the README."""
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy import empty

from ..assembly.machine import assemble
from ..kernels.derivatives.entry import make_scratch
from ..kernels.rigid_body import entry
from ..kernels.runtime.compiler import compiled
from ..kernels.runtime.status import OK
from ..model.errors import ActuationError, MeasurementError, UnknownNameError, did_you_mean, shorten
from .allocation import Allocation
from .analysis.derivatives import (
    forward_dynamics_derivatives,
    hybrid_dynamics_derivatives,
    inverse_dynamics_derivatives,
)
from .analysis.equilibrium import equilibrium
from .analysis.linearization import linearize
from .analysis.passive import passive_joints, resting_efforts, with_fixed_joints
from .arguments import names as checked_names
from .batch import inverse_efforts, map_at, run_batch
from .compilation import compiled_for
from .environment import base_rows, find_link, wrench_rows
from .errors_from_status import check, in_row
from .hybrid import hybrid_dynamics
from .inputs import environment_at, hint_of, plain, rows_of_cluster_joints, states
from .integrator import Integrator
from .joint_map import JointMap
from .kinematics import placed, pose_in_base, specific_force_of_link, twist_of_link, wrench_on_link
from .motion.inverse_kinematics import inverse_kinematics
from .motion.jacobian import jacobian, jacobian_rate
from .motion.load_chart import load_chart
from .motion.workspace import workspace
from .orientation import rotation
from .payload import checked_payload, combine

MOST_MAPS = 100         # kept; a sender that shuffles its names must not fill the memory


class Limits(NamedTuple):
    """Declared limits, in the order of their joints; infinite where nothing is declared."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class Manipulator:
    """A machine ready to compute with; `load` makes it.

    x (nx,) are the positions of the `coordinates`, strokes [m] and angles [rad]; where the base floats, its position
    and quaternion x y z w come first.  xd, xdd (dof,) are their rates and accelerations, first the base's twist (v, w)
    in its own axes and the rate of that.  f (actuators,) are efforts of the `actuators` [N, N m], positive in the
    direction of the joint.  One instance serves one thread at a time without Numba, and any number with it.
    """

    def __init__(self, machine, gravity, rebuild):
        self._machine = machine
        self._gravity = gravity
        self._rebuild = rebuild                         # Description -> Draft with the options of `load`
        self._handle = machine.handle.copy()
        self._tree, self._loops = self._handle.tree, self._handle.loops
        self._maps = {}
        self.hint_rows = {}             # {names: `rows_of_cluster_joints`}
        self.samples = {}               # of `motion.samples`
        self.nx, self.dof = (int(self._handle.environment[size]) for size in ('nx', 'dof'))
        self.floating = machine.floating is not None
        # efforts on the coordinates are those of the actuators
        self._direct = self.actuators == self.coordinates
        self._allocation = self._make_allocation()

    name = property(lambda self: self._machine.name)
    actuators = property(lambda self: self._machine.actuators, doc='Actuated joints, in the order of f.')
    coordinates = property(lambda self: self._machine.coordinates, doc='Independent joints, in the order of x.')
    joints = property(lambda self: self._machine.joints, doc='Every movable joint of the tree, depth first.')
    links = property(lambda self: tuple(self._machine.places), doc='Every link, by name.')
    total_mass = property(lambda self: self._machine.total_mass, doc='Mass of all links [kg].')
    machine = property(lambda self: self._machine, doc='The model: modules, loops, warnings.')
    gravity = property(lambda self: self._gravity.copy(), doc='Gravity (3,) in inertial axes [m/s^2].')
    initial_position = property(lambda self: self._machine.start.copy(), doc='x (nx,) as declared.')
    limits = property(lambda self: self._limits(self.actuators), doc='`Limits` of the actuators.')
    coordinate_limits = property(lambda self: self._limits(self.coordinates), doc='`Limits` of the coordinates.')

    def _limits(self, names):
        joints = {module.name: module.joint for module in self._machine.modules}
        return Limits(*(np.array([getattr(joints[name], what) for name in names], dtype=float)
                        for what in ('lower', 'upper', 'velocity', 'effort')))

    @cached_property
    def derivative_buffers(self):
        """Arguments of the kernels of derivatives: tree, loops, scratch."""
        return self._tree, self._loops, make_scratch(self._handle)

    @cached_property
    def on_coordinates(self):
        """`Handle` with efforts on the coordinates and a base at rest; calls that keep the GIL share it."""
        handle = self.handle()
        handle.let_efforts_act_on_coordinates()
        return handle

    _forward = cached_property(lambda self: self._single(entry.forward_checked))
    _inverse = cached_property(lambda self: self._single(entry.inverse_checked))
    _forward_hinted = cached_property(lambda self: self._single(entry.forward_hinted, self.cluster_joint_rows))
    _inverse_hinted = cached_property(lambda self: self._single(entry.inverse_hinted, self.cluster_joint_rows))

    def _single(self, kernel, *rows):
        """Return a kernel of one state compiled for `plain` arrays, after the rows of a hint and its positions."""
        vector = np.empty(0)
        return compiled_for(kernel, self._tree, self._loops, *((*rows, vector) if rows else ()), *4 * (vector,))

    @cached_property
    def _hinted(self):
        """Buffer of a tree whose clusters start from a hint."""
        handle = self.handle()
        handle.start_from_last()
        return handle.tree

    @cached_property
    def cluster_joint_rows(self):
        """Row among `joints` of each joint of the clusters."""
        return rows_of_cluster_joints(self, self.joints)

    def handle(self):
        """Return a `Handle` of its own: model, scratch and a base at rest, for calls of kernels."""
        return self._machine.handle.copy()

    def forward_dynamics(self, x, xd, f, *, base=None, wrenches=None, joint_efforts=None, positions=None):
        """Return the accelerations xdd (dof,) for efforts f (Paz & Mattila, Algorithm 1), (N, dof) for rows of states.

        base: `BaseMotion`, or `BaseDrive` where the base floats.  wrenches: {link: (force, moment)} applied by the
        environment on the link, at its origin in its axes.  joint_efforts: {joint: effort} that springs and the like
        apply on any joint, positive along its axis.  positions: where loops are closed near x, as positions of all
        `joints` (`joint_state` has them) or {joint: position} of all joints of a loop: finding the loops closed takes
        less time from there, least from an array of float64, and the answer is the same.
        Raises ShapeError, NonFiniteError, UnknownNameError, UnreachableStrokeError, TogglePointError.
        """
        if base is wrenches is joint_efforts is None and compiled and plain(x, xd, f):
            xdd = empty(self.dof)
            if positions is None or self._loops is None:
                status = self._forward(self._tree, self._loops, x, xd, f, xdd)
            else:
                status = self._forward_hinted(self._hinted, self._loops, *hint_of(self, positions), x, xd, f, xdd)
            if status == OK:
                return xdd
        arrays = states(self, batch=True, x=x, xd=xd, f=f)
        if arrays[0].ndim == 2:
            return self._rows(entry.forward_rows, self.forward_dynamics, dict(zip(('x', 'xd', 'f'), arrays)), base=base,
                              wrenches=wrenches, joint_efforts=joint_efforts, positions=positions)
        around, xdd = environment_at(self, arrays[0], base, wrenches, joint_efforts, positions), np.zeros(self.dof)
        buffers = around.handle.tree, around.handle.loops
        if around.driven is None:
            status = entry.forward_checked(*buffers, *arrays, xdd)
        else:
            xdd[:6] = around.acceleration
            status = entry.forward_driven(*buffers, around.driven, *arrays, xdd)
        check(self, status, x=arrays[0], xd=arrays[1], f=arrays[2])
        return xdd

    def generalized_forces(self, x, xd, xdd, *, base=None, wrenches=None, joint_efforts=None, positions=None):
        """Return M xdd + bias (dof,): efforts on the coordinates, after the wrench on a floating base in its axes.

        Arguments and errors as `forward_dynamics`; coordinates of a floating base that a `BaseDrive` frees accelerate
        as they then do.
        """
        if base is wrenches is joint_efforts is None and compiled and plain(x, xd, xdd):
            f = empty(self.dof)
            if positions is None or self._loops is None:
                status = self._inverse(self._tree, self._loops, x, xd, xdd, f)
            else:
                status = self._inverse_hinted(self._hinted, self._loops, *hint_of(self, positions), x, xd, xdd, f)
            if status == OK:
                return f
        arrays = states(self, batch=True, x=x, xd=xd, xdd=xdd)
        if arrays[0].ndim == 2:
            return self._rows(entry.inverse_rows, self.generalized_forces, dict(zip(('x', 'xd', 'xdd'), arrays)),
                              base=base, wrenches=wrenches, joint_efforts=joint_efforts, positions=positions)
        return self._required(*arrays, environment_at(self, arrays[0], base, wrenches, joint_efforts, positions))

    def _rows(self, kernel, call, arrays, *, base, positions, **actions):
        """Return (N, dof) for rows of states: by a kernel on all cores, or by a `call` a row where actions need it."""
        if not any(actions.values()) and (base is None or not self.floating):
            return run_batch(self, kernel, environment_at(self, None, base, positions=positions).handle, arrays)
        out = np.empty((len(arrays['x']), self.dof))
        for k, row in enumerate(zip(*arrays.values())):
            with in_row(k):
                out[k] = call(*row, base=base, positions=positions, **actions)
        return out

    def _required(self, x, xd, xdd, around):
        """Return `generalized_forces` of one checked state in an `Environment`."""
        f, buffers = np.zeros(self.dof), (around.handle.tree, around.handle.loops)
        if around.driven is None:
            status = entry.inverse_checked(*buffers, x, xd, xdd, f)
        else:
            around.handle.let_efforts_act_on_coordinates()
            around.driven[6:], xdd = 1.0, xdd.copy()
            status = entry.hybrid_checked(*buffers, around.driven, x, xd, f, xdd)
            f[:6][around.driven[:6] == 0.0] = 0.0
        check(self, status, x=x, xd=xd, xdd=xdd)
        return f

    def inverse_dynamics(self, x, xd, xdd, *, base=None, wrenches=None, joint_efforts=None, positions=None):
        """Return the actuator efforts f for accelerations xdd, of least weighted norm where there are many such.

        The base of a floating machine is driven as xdd says (by `base_wrench`), unless a `BaseDrive` frees
        some of its coordinates.  Arguments and errors as `forward_dynamics`; ActuationError where the actuators cannot
        drive every joint.
        """
        allocation = self.allocation
        if self._direct and not allocation.limited:
            f = self.generalized_forces(x, xd, xdd, base=base, wrenches=wrenches, joint_efforts=joint_efforts,
                                        positions=positions)
            return f[..., 6:] if self.floating else f
        return inverse_efforts(self, allocation, (x, xd, xdd), base=base, wrenches=wrenches,
                               joint_efforts=joint_efforts, positions=positions)

    hybrid_dynamics = hybrid_dynamics

    @property
    def allocation(self):
        """The `Allocation` of efforts to the actuators; weights, limits and preload may be set on it.

        Weights are 1 / limit^2 where linear and rotary actuators are mixed and all declare a limit, else one.
        """
        if self._allocation is None:
            raise ActuationError(
                f"'{self.name}' has {len(self.actuators)} actuators for {len(self.coordinates)} joint coordinates "
                f"({', '.join(self.coordinates)}); generalized_forces gives the efforts on these")
        return self._allocation

    def _make_allocation(self):
        if len(self.actuators) < len(self.coordinates) or not self.actuators:
            return None
        allocation, effort = Allocation(self.actuators), self.limits.effort
        joints = {module.name: module.joint for module in self._machine.modules}
        slides = {joints[name].type == 'prismatic' for name in self.actuators}
        if len(slides) > 1 and len(self.actuators) > len(self.coordinates) and (0.0 < effort).all() \
                and np.isfinite(effort).all():
            allocation.set_weights(dict(zip(self.actuators, effort ** -2.0)))
        return allocation

    def environment(self, x, *, base=None, wrenches=None):
        """Return the rows that `Integrator.set_environment` takes: (2, 6), or (2 + 3 modules, 6) with wrenches.

        base: `BaseMotion`.  wrenches as in `forward_dynamics`; where they act on barrels and rods depends on x (nx,).
        """
        rows = base_rows(self._gravity, base)
        if not wrenches:
            return rows
        return np.ascontiguousarray(np.vstack((rows, wrench_rows(self, np.asarray(x, dtype=float), wrenches)[0])))

    def actuator_map(self, x):
        """Return A (actuators, dof) with the rates A xd of the actuators; f on them act as A' f."""
        x, = states(self, x=x)
        return map_at(self, x)

    def mass_matrix(self, x):
        """Return M (dof, dof) with generalized_forces = M xdd + bias; symmetric positive definite."""
        x, = states(self, x=x)
        M, rest = np.empty((self.dof, self.dof)), np.zeros(self.dof)
        handle = placed(self, x, rest, rest)
        check(self, entry.read_mass_matrix(handle.tree, handle.loops, x, M), x=x)
        return M

    def bias_forces(self, x, xd):
        """Return `generalized_forces` at xdd = 0: velocity, gravity and friction terms."""
        return self.generalized_forces(x, xd, np.zeros(self.dof))

    def gravity_forces(self, x):
        """Return the actuator efforts (actuators,) that hold the machine at rest.

        Where passive joints are free, x has to be a position of rest, as `equilibrium` finds it; StateError.
        """
        if self.underactuated:
            x, = states(self, x=x)
            return resting_efforts(self, x)
        return self.inverse_dynamics(x, np.zeros(self.dof), np.zeros(self.dof))

    def energy(self, x, xd):
        """Return (kinetic, potential) energy [J]; a base that does not float rests at the inertial origin."""
        x, xd = states(self, x=x, xd=xd)
        out, handle = np.empty(4), placed(self, x, xd, xd)
        entry.read_energy(handle.tree, handle.loops, out)
        moment = out[1:] + self._machine.base_inertia[1:4]
        turn, position = self._base_pose(x)
        return float(out[0]), float(-self._gravity @ (turn @ moment + self.total_mass * position))

    def _base_pose(self, x):
        """Return (rotation, position) of the base in the world; identity where it does not float."""
        if not self.floating:
            return np.eye(3), np.zeros(3)
        frame = self._machine.floating
        return frame.rotation @ rotation(x[3:7]), frame.apply(x[:3])

    def joint_state(self, x, xd=None, xdd=None):
        """Return (names, position, velocity, acceleration) of every joint of the tree (q = gamma, G xd, G xdd + g).

        velocity and acceleration are None where xd or xdd is not given.
        """
        zero = np.zeros(self.dof)
        state = states(self, x=x, xd=zero if xd is None else xd, xdd=zero if xdd is None else xdd)
        out, handle = np.empty((3, len(self.joints))), placed(self, *state)
        check(self, entry.read_joint_states(handle.tree, handle.loops, out), x=state[0])
        return (self.joints, out[0], None if xd is None else out[1],
                None if xd is None or xdd is None else out[2])

    def joint_map(self, names, tabulate=True):
        """Return the `JointMap` of a sufficient set of joints: strokes, boom angles, barrel angles, or a mix.

        tabulate  False: `JointMap.building` remains to be exhausted before it is used, where it was not made before
        """
        names = checked_names('names', names, MeasurementError)
        if names not in self._maps:
            if not tabulate:
                return JointMap(self, names, tabulate=False)
            if len(self._maps) >= MOST_MAPS:
                self._maps.clear()
            self._maps[names] = JointMap(self, names)
        return self._maps[names]

    def actuator_state(self, names, position, velocity=None):
        """Return (x, xd, residual) from measured joints; residual [m, rad] is their largest disagreement.

        Raises MeasurementError when the joints do not fix every loop, UnreachableStrokeError when none closes it.
        """
        return self.joint_map(names).state(position, velocity)

    def link_pose(self, x, link):
        """Return the pose (4, 4) of a link in the base frame, in the world where the base floats."""
        x, = states(self, x=x)
        place, zero = find_link(self._machine, link), np.zeros(self.dof)
        turn, position = pose_in_base(placed(self, x, zero, zero), place)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = turn, position
        if self.floating and place.module >= 0:
            base, origin = self._base_pose(x)
            pose[:3, :3], pose[:3, 3] = base @ turn, base @ position + origin
        return pose

    def link_twist(self, x, xd, link):
        """Return the twist (v, w) (6,) of a link's origin in link axes; in inertial space where the base floats."""
        x, xd = states(self, x=x, xd=xd)
        return twist_of_link(placed(self, x, xd, np.zeros(self.dof)), find_link(self._machine, link))

    jacobian = jacobian
    jacobian_rate = jacobian_rate
    inverse_kinematics = inverse_kinematics
    workspace = workspace
    load_chart = load_chart

    def base_wrench(self, x, xd, xdd, *, base=None, wrenches=None):
        """Return the wrench (f, m) (6,) that the environment applies on the base, at its origin in its axes."""
        x, xd, xdd = states(self, x=x, xd=xd, xdd=xdd)
        around = environment_at(self, x, base, wrenches)
        f, reaction = self._required(x, xd, xdd, around), np.empty(6)
        if self.floating:
            return f[:6]
        entry.read_base_reaction(around.handle.tree, around.handle.loops, reaction)
        return reaction - around.on_base

    def link_motion(self, x, xd, xdd, link, *, base=None):
        """Return the twist (v, w) (6,) of a link's origin, and its acceleration less gravity (3,), in link axes.

        base: `BaseMotion`; its twist counts.  In inertial space: what an inertial measurement unit on the link senses.
        """
        x, xd, xdd = states(self, x=x, xd=xd, xdd=xdd)
        around, place = environment_at(self, x, base), find_link(self._machine, link)
        self._required(x, xd, xdd, around)
        return twist_of_link(around.handle, place), specific_force_of_link(around.handle, place)

    passive_joints = cached_property(passive_joints)
    with_fixed_joints = with_fixed_joints

    @property
    def underactuated(self):
        """Whether actuators drive every coordinate but the `passive_joints`, of which there are some."""
        count = len(self.passive_joints)
        return not self.floating and 0 < count and 0 < self.dof - count <= len(self.actuators)

    @cached_property
    def driven_machine(self):
        """The Manipulator of the driven coordinates: the passive joints fixed at the initial position.

        This one where it is not `underactuated`.
        """
        if not self.underactuated:
            return self
        position = dict(zip(self.coordinates, self.initial_position))
        return self.with_fixed_joints({name: position[name] for name in self.passive_joints})

    @property
    def serial_joints(self):
        """Names of the joints whose load no closed loop shares."""
        return tuple(module.name for module, record in zip(self._machine.modules, self._machine.records)
                     if record['joint'][0] >= 0 and record['joint'][1] < 0 and record['cluster'] < 0)

    def joint_wrench(self, x, xd, xdd, joint, *, base=None, wrenches=None):
        """Return the wrench (f, m) (6,) by which a joint moves its child link, at its origin in its axes.

        Effort of the actuator and friction are part of it.  base, wrenches: as in `forward_dynamics`.  Raises
        UnknownNameError for a joint that is none of `serial_joints`.
        """
        if joint not in self.serial_joints:
            raise UnknownNameError(f"joint '{shorten(str(joint))}': no joint of '{self.name}' that carries its load "
                                   f'alone, without a closed loop{did_you_mean(str(joint), self.serial_joints)}')
        x, xd, xdd = states(self, x=x, xd=xd, xdd=xdd)
        around = environment_at(self, x, base, wrenches)
        self._required(x, xd, xdd, around)
        return wrench_on_link(around.handle, self._machine.places[self._machine.description.joints[joint].child])

    forward_dynamics_derivatives = forward_dynamics_derivatives
    inverse_dynamics_derivatives = inverse_dynamics_derivatives
    hybrid_dynamics_derivatives = hybrid_dynamics_derivatives
    linearize = linearize
    equilibrium = equilibrium

    def with_payload(self, link, mass, com, inertia):
        """Return a new Manipulator with a payload on a link.

        com (3,) in link axes from the link origin [m]; inertia (3, 3) about the payload's centre of mass, link axes.
        """
        payload = checked_payload(self._machine, link, mass, com, inertia)
        links = dict(self._machine.description.links)
        links[link] = replace(links[link], inertial=combine(links[link].inertial, payload))
        return self.rebuilt(replace(self._machine.description, links=links))

    def rebuilt(self, description, coordinates=None):
        """Return the Manipulator of another `Description` with the options, coordinates and allocation of this one.

        coordinates: names, where they are to be others.
        """
        machine = assemble(self._rebuild(description), self._gravity, coordinates or self.coordinates)
        rebuilt = Manipulator(machine, self._gravity, self._rebuild)
        if self._allocation is not None:        # weights, limits and preload were set by the user
            rebuilt._allocation = copy(self._allocation)
        return rebuilt

    def integrator(self, step, substeps=1, *, stiffness=5e7, damping=1.0):
        """Return an `Integrator` that advances (x, xd) by `step` [s] in `substeps` parts at constant effort.

        stiffness [N/m, N m/rad] and damping [s/m, s/rad] are those of the stops at the limits of actuators and
        coordinates.
        """
        return Integrator(self, step, substeps, stiffness, damping)

    def show(self, x=None, path=None):
        """Show the machine at x (nx,), or at its initial position, in the browser; return the path of its page.

        The page has sliders for the coordinates.  path: file to write instead; no browser is opened then.
        """
        from ..view.page import show  # a page is rarely asked for

        return show(self, None if x is None else states(self, x=x)[0], path)

    def __repr__(self):
        return (f"<Manipulator '{self.name}': {self.dof} DoF, {len(self.actuators)} actuators, "
                f'{len(self._machine.description.closures)} loops, {self.total_mass:.2f} kg>')
