"""`Manipulator`: checked, documented calls over the kernels.  Signs, frames and shapes: docs/reference/api.md."""
from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy import empty

from ..assembly.machine import Machine, assemble
from ..kernels.derivatives.entry import make_scratch
from ..kernels.rigid_body import entry
from ..kernels.rigid_body.mechanism import Handle
from ..kernels.runtime.compiler import compiled
from ..kernels.runtime.status import OK
from ..model.errors import ActuationError, MeasurementError
from ..model.mechanism.description import Description
from . import hybrid
from .allocation import Allocation
from .analysis import derivatives as derivatives_of
from .analysis import equilibrium as rest
from .analysis import linearization, passive
from .arguments import Array, Efforts, Vector, Wrenches, coordinate_names, entry_names
from .arguments import names as checked_names
from .batch import inverse_efforts, map_at, run_batch
from .compilation import compiled_for
from .environment import BaseDrive, BaseMotion, base_rows, wrench_rows
from .errors_from_status import check, in_row
from .inputs import (
    environment_at,
    hint_of,
    one_vector,
    over_rows,
    position_of,
    readable,
    required_forces,
    rows_of_cluster_joints,
    states,
)
from .integrator import Integrator
from .joint_map import JointMap
from .kinematics import base_pose, placed
from .motion import inverse_kinematics as reaching
from .motion import jacobian as jacobians
from .motion import links as link_motions
from .motion import load_chart as load_charts
from .motion import samples
from .motion import workspace as workspaces
from .payload import checked_payload, combine
from .results.limits import Limits, axes_of_joints, limits_of
from .results.result import Axis

MAX_MAPS = 100          # kept; a sender that shuffles its names must not fill the memory


class Manipulator:
    """A machine ready to compute with; `load` makes it.

    x (nx,) are the positions of the `coordinates`, strokes [m] and angles [rad]; where the base floats, its position
    and quaternion x y z w come first.  xd, xdd (dof,) are their rates and accelerations, first the base's twist (v, w)
    in its own axes and the rate of that.  f (actuators,) are efforts of the `actuators` [N, N m], positive in the
    direction of the joint.  One instance serves one thread at a time without Numba, any number with it, and is pickled.
    """

    def __init__(self, machine: Machine, gravity: Array, rebuild: Callable[[Description], Any],
                 allocation: Allocation | None = None) -> None:
        self._machine, self._gravity = machine, gravity
        self._rebuild = rebuild                         # Description -> Draft with the options of `load`
        self._handle = machine.handle.copy()
        self._tree, self._loops = self._handle.tree, self._handle.loops
        self._maps: dict[tuple[str, ...], JointMap] = {}
        self.hint_rows: dict[tuple[str, ...], Array] = {}       # {names: `rows_of_cluster_joints`}
        self.samples: dict[Any, tuple[Array, Array]] = {}       # of `motion.samples`
        self.nx: int = int(self._handle.environment['nx'])
        """Entries of x: the coordinates, and 7 of a floating base."""
        self.dof: int = int(self._handle.environment['dof'])
        """Entries of xd: the coordinates, and 6 of a floating base."""
        self.floating: bool = machine.floating is not None
        """Whether the base moves freely."""
        self._direct = self.actuators == self.coordinates       # efforts on the coordinates are those of the actuators
        self._allocation = copy(allocation) or self._make_allocation()   # of the user, if any

    @property
    def name(self) -> str:
        """Name of the machine in its URDF."""
        return self._machine.name

    @property
    def actuators(self) -> tuple[str, ...]:
        """Actuated joints, in the order of f."""
        return self._machine.actuators

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Independent joints, in the order of x."""
        return self._machine.coordinates

    @property
    def joints(self) -> tuple[str, ...]:
        """Every movable joint of the tree, depth first."""
        return self._machine.joints

    @property
    def links(self) -> tuple[str, ...]:
        """Every link, by name."""
        return tuple(self._machine.places)

    @property
    def loops(self) -> tuple[str, ...]:
        """Every closed loop, by name."""
        return tuple(closure.name for closure in self._machine.description.closures.values())

    @property
    def total_mass(self) -> float:
        """Mass of all links [kg]."""
        return self._machine.total_mass

    @property
    def machine(self) -> Machine:
        """The model: modules, loops, warnings."""
        return self._machine

    @property
    def gravity(self) -> Array:
        """Gravity (3,) in inertial axes [m/s^2]."""
        return self._gravity.copy()

    @property
    def initial_position(self) -> Array:
        """The position x (nx,) as declared."""
        return self._machine.start.copy()

    @property
    def limits(self) -> Limits:
        """`Limits` of the actuators."""
        return limits_of(self._joint_of_name, self.actuators)

    @property
    def coordinate_limits(self) -> Limits:
        """`Limits` of the coordinates."""
        return limits_of(self._joint_of_name, self.coordinates)

    @cached_property
    def _joint_of_name(self) -> dict[str, Any]:
        return {module.name: module.joint for module in self._machine.modules}

    @cached_property
    def axes(self) -> dict[str, Axis]:
        """{'x', 'xd', 'xdd', 'f', 'forces': `Axis`}: names and units of positions, rates, accelerations, efforts.

        'forces' are efforts on the coordinates, after the wrench on a floating base.
        """
        of_coordinates = axes_of_joints(self._joint_of_name, self.coordinates)
        base = {'x': ('m',) * 3 + ('',) * 4, 'xd': ('m/s',) * 3 + ('rad/s',) * 3,
                'xdd': ('m/s^2',) * 3 + ('rad/s^2',) * 3, 'f': ('N',) * 3 + ('N m',) * 3}
        found = {key: Axis(entry_names(self, 'x') if key == 'x' else coordinate_names(self),
                           (base[key] if self.floating else ()) + axis.units) for key, axis in of_coordinates.items()}
        return {**found, 'forces': found['f'], 'f': axes_of_joints(self._joint_of_name, self.actuators)['f']}

    @cached_property
    def derivative_buffers(self) -> tuple[Any, ...]:
        """Arguments of the kernels of derivatives: tree, loops, scratch."""
        return self._tree, self._loops, make_scratch(self._handle)

    @cached_property
    def on_coordinates(self) -> Handle:
        """`Handle` with efforts on the coordinates and a base at rest; calls that keep the GIL share it."""
        handle = self.handle()
        handle.let_efforts_act_on_coordinates()
        return handle

    # kernel, buffers, entries of its result: one attribute instead of four, which take a tenth of the kernel's time
    _forward = cached_property(lambda self: (self._single(entry.forward_checked), self._tree, self._loops, self.dof))
    _inverse = cached_property(lambda self: (self._single(entry.inverse_checked), self._tree, self._loops, self.dof))
    _forward_hinted = cached_property(lambda self: self._single(entry.forward_hinted, self.cluster_joint_rows))
    _inverse_hinted = cached_property(lambda self: self._single(entry.inverse_hinted, self.cluster_joint_rows))

    def _single(self, kernel: Any, *rows: Any) -> Any:
        """Return a kernel of one state compiled for `readable` arrays, after the rows of a hint and its positions."""
        vector = np.empty(0)
        return compiled_for(kernel, self._tree, self._loops, *((*rows, vector) if rows else ()), *4 * (vector,))

    @cached_property
    def _hinted(self) -> Any:
        """Buffer of a tree whose clusters start from a hint."""
        handle = self.handle()
        handle.start_from_last()
        return handle.tree

    @cached_property
    def cluster_joint_rows(self) -> Array:
        """Row among `joints` of each joint of the clusters."""
        return rows_of_cluster_joints(self, self.joints)

    def handle(self) -> Handle:
        """Return a `Handle` of its own: model, scratch and a base at rest, for calls of kernels."""
        return self._machine.handle.copy()

    def forward_dynamics(self, x: Vector, xd: Vector, f: Vector, *,
                         base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None,
                         joint_efforts: Efforts | None = None, positions: Vector | None = None) -> Array:
        """Return the accelerations xdd (dof,) for efforts f (Paz & Mattila, Algorithm 1), (N, dof) for rows of states.

        x, xd, f, and all other vectors of this class, are arrays in the order of their names, or {name: number}; where
        numbers are arrays (N,) they are rows.  'base' stands for all entries of a floating base.
        base: `BaseMotion`, or `BaseDrive` where the base floats.  wrenches: {link: (force, moment)} applied by the
        environment on the link, at its origin in its axes.  joint_efforts: {joint: effort} that springs and the like
        apply on any joint, positive along its axis.  positions: where loops are closed near x, as positions of all
        `joints` (`joint_state` has them) or {joint: position} of all joints of a loop: finding the loops closed takes
        less time from there, least from an array of float64, and the answer is the same.
        Raises ShapeError, NonFiniteError, UnknownNameError, UnreachableStrokeError, TogglePointError.
        """
        if base is wrenches is joint_efforts is None and compiled and readable(x, xd, f):
            forward, tree, loops, dof = self._forward
            xdd = empty(dof)
            hint = None if positions is None else hint_of(self, positions)
            if hint is None or loops is None:
                status = forward(tree, loops, x, xd, f, xdd)
            else:
                status = self._forward_hinted(self._hinted, loops, *hint, x, xd, f, xdd)
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

    def generalized_forces(self, x: Vector, xd: Vector, xdd: Vector, *,
                           base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None,
                           joint_efforts: Efforts | None = None, positions: Vector | None = None) -> Array:
        """Return M xdd + bias (dof,): efforts on the coordinates, after the wrench on a floating base in its axes.

        Arguments and errors as `forward_dynamics`; coordinates of a floating base that a `BaseDrive` frees accelerate
        as they then do.
        """
        if base is wrenches is joint_efforts is None and compiled and readable(x, xd, xdd):
            inverse, tree, loops, dof = self._inverse
            f = empty(dof)
            hint = None if positions is None else hint_of(self, positions)
            if hint is None or loops is None:
                status = inverse(tree, loops, x, xd, xdd, f)
            else:
                status = self._inverse_hinted(self._hinted, loops, *hint, x, xd, xdd, f)
            if status == OK:
                return f
        arrays = states(self, batch=True, x=x, xd=xd, xdd=xdd)
        if arrays[0].ndim == 2:
            return self._rows(entry.inverse_rows, self.generalized_forces, dict(zip(('x', 'xd', 'xdd'), arrays)),
                              base=base, wrenches=wrenches, joint_efforts=joint_efforts, positions=positions)
        x, xd, xdd = arrays
        return required_forces(self, x, xd, xdd, environment_at(self, x, base, wrenches, joint_efforts, positions))

    def _rows(self, kernel: Any, call: Callable[..., Array], arrays: Mapping[str, Array], *, base: Any,
              positions: Any, **actions: Any) -> Array:
        """Return (N, dof) for rows of states: by a kernel on all cores, or by a `call` a row where actions need it."""
        if not any(actions.values()) and (base is None or not self.floating):
            return run_batch(self, kernel, environment_at(self, None, base, positions=positions).handle, arrays)
        out = np.empty((len(arrays['x']), self.dof))
        for k, row in enumerate(zip(*arrays.values())):
            with in_row(k):
                out[k] = call(*row, base=base, positions=positions, **actions)
        return out

    def inverse_dynamics(self, x: Vector, xd: Vector, xdd: Vector, *,
                         base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None,
                         joint_efforts: Efforts | None = None, positions: Vector | None = None) -> Array:
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

    hybrid_dynamics = hybrid.hybrid_dynamics

    @property
    def allocation(self) -> Allocation:
        """The `Allocation` of efforts to the actuators; weights, limits and preload may be set on it.

        Weights are 1 / limit^2 where linear and rotary actuators are mixed and all declare a limit, else one.
        """
        if self._allocation is None:
            raise ActuationError(
                f"'{self.name}' has {len(self.actuators)} actuators for {len(self.coordinates)} joint coordinates "
                f"({', '.join(self.coordinates)}); generalized_forces gives the efforts on these")
        return self._allocation

    def _make_allocation(self) -> Allocation | None:
        if len(self.actuators) < len(self.coordinates) or not self.actuators:
            return None
        allocation, effort = Allocation(self.actuators), self.limits.effort
        joints = self._joint_of_name
        slides = {joints[name].type == 'prismatic' for name in self.actuators}
        if len(slides) > 1 and len(self.actuators) > len(self.coordinates) and (0.0 < effort).all() \
                and np.isfinite(effort).all():
            allocation.set_weights(dict(zip(self.actuators, effort ** -2.0)))
        return allocation

    def environment(self, x: Vector, *, base: BaseMotion | None = None, wrenches: Wrenches | None = None) -> Array:
        """Return the rows that `Integrator.set_environment` takes: (2, 6), or (2 + 3 modules, 6) with wrenches.

        base: `BaseMotion`.  wrenches as in `forward_dynamics`; where they act on barrels and rods depends on x (nx,).
        """
        rows = base_rows(self._gravity, base)
        if not wrenches:
            return rows
        return np.ascontiguousarray(np.vstack((rows, wrench_rows(self, one_vector(self, 'x', x), wrenches)[0])))

    def actuator_map(self, x: Vector) -> Array:
        """Return A (actuators, dof) with the rates A xd of the actuators, (N, actuators, dof) for rows.

        Efforts f on the actuators act as A' f on the coordinates.
        """
        x, = states(self, batch=True, x=x)
        if x.ndim == 2:
            return over_rows(self.actuator_map, (len(self.actuators), self.dof), x)
        return map_at(self, x)

    def mass_matrix(self, x: Vector) -> Array:
        """Return M (dof, dof), for rows (N, dof, dof): generalized_forces = M xdd + bias; positive definite."""
        x, = states(self, batch=True, x=x)
        if x.ndim == 2:
            return over_rows(self.mass_matrix, (self.dof, self.dof), x)
        M, at_rest = np.empty((self.dof, self.dof)), np.zeros(self.dof)
        handle = placed(self, x, at_rest, at_rest)
        check(self, entry.read_mass_matrix(handle.tree, handle.loops, x, M), x=x)
        return M

    def bias_forces(self, x: Vector, xd: Vector) -> Array:
        """Return `generalized_forces` (dof,) at xdd = 0: velocity, gravity and friction terms; (N, dof) for rows."""
        x, xd = states(self, batch=True, x=x, xd=xd)
        return self.generalized_forces(x, xd, np.zeros(xd.shape))

    def gravity_forces(self, x: Vector) -> Array:
        """Return the actuator efforts (actuators,) that hold the machine at rest, (N, actuators) for rows.

        Where passive joints are free, x has to be a position of rest, as `equilibrium` finds it; StateError.
        """
        position = position_of(self, x)
        if self.underactuated:
            return passive.resting_efforts(self, position)
        at_rest = np.zeros((*position.shape[:-1], self.dof))
        return self.inverse_dynamics(position, at_rest, at_rest)

    def energy(self, x: Vector, xd: Vector) -> tuple[float, float] | tuple[Array, Array]:
        """Return (kinetic, potential) energy [J], of rows two arrays (N,).

        A base that does not float rests at the inertial origin.
        """
        x, xd = states(self, batch=True, x=x, xd=xd)
        if x.ndim == 2:
            kinetic, potential = over_rows(self.energy, (2,), x, xd).T
            return kinetic.copy(), potential.copy()
        out, handle = np.empty(4), placed(self, x, xd, xd)
        entry.read_energy(handle.tree, handle.loops, out)
        moment = out[1:] + self._machine.base_inertia[1:4]
        turn, position = base_pose(self, x)
        return float(out[0]), float(-self._gravity @ (turn @ moment + self.total_mass * position))

    def joint_state(self, x: Vector, xd: Vector | None = None, xdd: Vector | None = None
                    ) -> tuple[tuple[str, ...], Array, Array | None, Array | None]:
        """Return (names, position, velocity, acceleration) of every joint of the tree (q = gamma, G xd, G xdd + g).

        Each is (joints,), or (N, joints) for rows.  velocity and acceleration are None where xd or xdd is not given.
        """
        given = {'x': x, **{label: rates for label, rates in (('xd', xd), ('xdd', xdd)) if rates is not None}}
        arrays = dict(zip(given, states(self, batch=True, **given)))
        rows = arrays['x'].shape[:-1]
        state = tuple(arrays.get(label, np.zeros((*rows, self.dof))) for label in ('x', 'xd', 'xdd'))
        out = over_rows(self._joint_rows, (3, len(self.joints)), *state).swapaxes(0, 1) if rows else \
            self._joint_rows(*state)
        return (self.joints, out[0], None if xd is None else out[1],
                None if xd is None or xdd is None else out[2])

    def _joint_rows(self, x: Array, xd: Array, xdd: Array) -> Array:
        out, handle = np.empty((3, len(self.joints))), placed(self, x, xd, xdd)
        check(self, entry.read_joint_states(handle.tree, handle.loops, out), x=x)
        return out

    def joint_map(self, names: Iterable[str], tabulate: bool = True) -> JointMap:
        """Return the `JointMap` of a sufficient set of joints: strokes, boom angles, barrel angles, or a mix.

        tabulate  False: `JointMap.building` remains to be exhausted before it is used, where it was not made before
        """
        names = checked_names('names', names, MeasurementError)
        if names not in self._maps:
            if not tabulate:
                return JointMap(self, names, tabulate=False)
            if len(self._maps) >= MAX_MAPS:
                self._maps.clear()
            self._maps[names] = JointMap(self, names)
        return self._maps[names]

    def actuator_state(self, names: Iterable[str], position: npt.ArrayLike, velocity: npt.ArrayLike | None = None
                       ) -> tuple[Array, Array, float]:
        """Return (x, xd, residual) from measured joints; residual [m, rad] is their largest disagreement.

        Raises MeasurementError when the joints do not fix every loop, UnreachableStrokeError when none closes it.
        """
        return self.joint_map(names).state(position, velocity)

    def random_positions(self, n: int, rng: np.random.Generator | int | None = None) -> Array:
        """Return positions (n, nx) within all limits at which every loop closes, uniform over the coordinates.

        rng: generator or seed; None: another draw in every call.  A floating base stays at its initial position,
        coordinates without limits move by half a turn or a metre to both sides of it.  Raises StateError where
        hardly any position closes the loops.
        """
        return samples.random_positions(self, n, rng)

    passive_joints = cached_property(passive.passive_joints)
    underactuated = cached_property(passive.underactuated)
    driven_machine = cached_property(passive.driven_machine)
    with_fixed_joints = passive.with_fixed_joints

    @property
    def serial_joints(self) -> tuple[str, ...]:
        """Names of the joints whose load no closed loop shares."""
        return tuple(module.name for module, record in zip(self._machine.modules, self._machine.records)
                     if record['joint'][0] >= 0 and record['joint'][1] < 0 and record['cluster'] < 0)

    link_pose = link_motions.link_pose
    link_twist = link_motions.link_twist
    link_motion = link_motions.link_motion
    joint_wrench = link_motions.joint_wrench
    base_wrench = link_motions.base_wrench
    jacobian = jacobians.jacobian
    jacobian_rate = jacobians.jacobian_rate
    inverse_kinematics = reaching.inverse_kinematics
    workspace = workspaces.workspace
    load_chart = load_charts.load_chart
    forward_dynamics_derivatives = derivatives_of.forward_dynamics_derivatives
    inverse_dynamics_derivatives = derivatives_of.inverse_dynamics_derivatives
    hybrid_dynamics_derivatives = derivatives_of.hybrid_dynamics_derivatives
    linearize = linearization.linearize
    equilibrium = rest.equilibrium

    def with_payload(self, link: str, mass: float, com: npt.ArrayLike = (0.0, 0.0, 0.0),
                     inertia: npt.ArrayLike | None = None) -> Manipulator:
        """Return a new Manipulator with a payload on a link.

        mass [kg].  com (3,) in link axes from the link origin [m].  inertia (3, 3) about the payload's centre of mass,
        link axes [kg m^2]; None: a point mass.  Raises UnknownNameError, InertiaError, ShapeError, NonFiniteError.
        """
        payload = checked_payload(self._machine, link, mass, com, np.zeros((3, 3)) if inertia is None else inertia)
        links = dict(self._machine.description.links)
        links[link] = replace(links[link], inertial=combine(links[link].inertial, payload))
        return self.rebuilt(replace(self._machine.description, links=links))

    def rebuilt(self, description: Description, coordinates: Iterable[str] | None = None) -> Manipulator:
        """Return the Manipulator of another `Description` with options, allocation and coordinates, or those given."""
        machine = assemble(self._rebuild(description), self._gravity, tuple(coordinates or self.coordinates))
        return Manipulator(machine, self._gravity, self._rebuild, self._allocation)

    def integrator(self, step: float, substeps: int = 1, *, stiffness: float = 5e7, damping: float = 1.0
                   ) -> Integrator:
        """Return an `Integrator` that advances (x, xd) by `step` [s] in `substeps` parts at constant effort.

        stiffness [N/m, N m/rad] and damping [s/m, s/rad] are those of the stops at the limits of actuators and
        coordinates; those of a light joint are softer, as far as a step follows them.
        """
        return Integrator(self, step, substeps, stiffness, damping)

    def show(self, x: Vector | None = None, path: str | PathLike[str] | None = None) -> Any:
        """Show the machine at x (nx,), or at its initial position, in the browser; return the path of its page.

        The page has sliders for the coordinates.  path: file to write instead; no browser is opened then.
        """
        from ..view.page import show  # a page is rarely asked for

        return show(self, None if x is None else states(self, x=x)[0], path)

    def __repr__(self) -> str:
        return (f"<Manipulator '{self.name}': {self.dof} DoF, {len(self.actuators)} actuators, "
                f'{len(self.loops)} loops, {self.total_mass:.2f} kg>')


copyreg.pickle(Manipulator, lambda one: (Manipulator, (one._machine, one._gravity, one._rebuild, one._allocation)))
