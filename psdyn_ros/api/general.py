"""`GeneralManipulator`: the calls of `Manipulator` for any loops, a floating base, and any number of actuators."""
from copy import copy
from typing import NamedTuple

import numpy as np

from ..assembly.clusters import actuator_map, fresh, tie
from ..kernels.rigid_body import general_entry as kernels
from ..kernels.rigid_body.entry import NON_FINITE, SHAPE
from ..kernels.rigid_body.inverse import base_reaction
from ..kernels.rigid_body.records import WORK
from ..kernels.runtime.compiler import compiled
from ..model.errors import ActuationError, ShapeError
from .allocation import Allocation
from .arguments import vector
from .environment import BaseMotion, base_rows, find_link, wrench_rows
from .failures import general_error
from .general_map import GeneralJointMap
from .general_rows import shared_efforts
from .integrator import GeneralIntegrator
from .kinematics import pose_in_base, twist_of_link
from .manipulator import CONTIGUOUS, Limits, Manipulator
from .orientation import rotation

FREE = np.zeros((2, 6))


class BaseDrive(NamedTuple):
    """What drives a floating base: the coordinates of its twist (v, w) that are given a rate; the others are free."""

    driven: tuple = (True,) * 6
    acceleration: tuple = (0.0,) * 6
    """Rate of the twist in base axes [m/s^2, rad/s^2]."""


class GeneralManipulator(Manipulator):
    """A machine with loops that are no cylinder triangles, a floating base, or actuators that are not its coordinates.

    x (nx,) are the `coordinates`; where the base floats, its position, quaternion x y z w and then they.  xd, xdd
    (dof,) are their rates, with the base's twist (v, w) in its own axes first, and its rate.  f (actuators,).
    """

    def __init__(self, machine, gravity, rebuild):
        super().__init__(machine, gravity, rebuild)
        self._loops = machine.loops
        self.floating = bool(self._loops.base)
        self.dof = self._loops.base + len(machine.coordinates)
        self.nx = self.dof + self.floating
        self._passive = np.zeros(len(machine.modules))
        self._rows = {module.name: k for k, module in enumerate(machine.modules)}
        self._allocation = self._make_allocation()
        # efforts on the coordinates are those of the actuators
        self._direct = self.actuators == self.coordinates and self._allocation is not None

    coordinates = property(lambda self: self._machine.coordinates, doc='Independent joints, in the order of x.')
    loops = property(lambda self: self._loops, doc='Records of the loops, for the kernels of `general_entry`.')

    @property
    def limits(self):
        """`Limits` of the actuators."""
        return self._limits(self.actuators)

    @property
    def coordinate_limits(self):
        """`Limits` of the independent joints."""
        return self._limits(self.coordinates)

    def _limits(self, names):
        joints = [self._machine.modules[self._rows[name]].joint for name in names]
        return Limits(*(np.array([getattr(joint, what) for joint in joints], dtype=float)
                        for what in ('lower', 'upper', 'velocity', 'effort')))

    def forward_dynamics(self, x, xd, f, *, base=None, wrenches=None, joint_efforts=None):
        """Return the accelerations xdd (dof,) for actuator efforts f, or (N, dof) for a batch.

        base: `BaseMotion`, or `BaseDrive` where the base floats.  wrenches as in `Manipulator`.  joint_efforts:
        {joint: effort} that springs and the like apply on any joint, positive along its axis.
        Raises ShapeError, NonFiniteError, UnreachableStrokeError, TogglePointError.
        """
        if base is None and wrenches is None and joint_efforts is None and compiled:
            try:
                # the compiled signature refuses lists, batches and other strides itself, but in a millisecond
                if x.strides == xd.strides == f.strides == CONTIGUOUS:
                    xdd = np.empty(self.dof)
                    if kernels.forward_general(self._mods, self._work, self._env, self._loops, FREE, x, xd, f,
                                               self._passive, xdd) == 0:
                        return xdd
            except Exception:       # whatever Numba says of odd inputs: the checked way below decides
                pass
        arrays = self._arrays(True, x=x, xd=xd, f=f)
        if arrays[0].ndim == 2:
            return self._batch('forward', arrays, base, wrenches, joint_efforts)
        env, drive = self._surroundings(arrays[0], base, wrenches)
        passive, xdd = self._joint_efforts(arrays[0], joint_efforts), np.empty(self.dof)
        status = kernels.forward_general(self._mods, self._work, env, self._loops, drive, *arrays, passive, xdd)
        self._check_all(status, x=arrays[0], xd=arrays[1], f=arrays[2])
        return xdd

    def generalized_forces(self, x, xd, xdd, *, base=None, wrenches=None, joint_efforts=None):
        """Return M xdd + bias (dof,): efforts on the coordinates, after the wrench on a floating base in its axes."""
        if base is None and wrenches is None and joint_efforts is None and compiled:
            try:
                if x.strides == xd.strides == xdd.strides == CONTIGUOUS:
                    out = np.empty(self.dof)
                    if kernels.inverse_general(self._mods, self._work, self._env, self._loops, x, xd, xdd, out) == 0:
                        return out
            except Exception:       # whatever Numba says of odd inputs: the checked way below decides
                pass
        arrays = self._arrays(True, x=x, xd=xd, xdd=xdd)
        if arrays[0].ndim == 2:
            return self._batch('inverse', arrays, base, wrenches, joint_efforts)
        return self._required(*arrays, base, wrenches, joint_efforts)[0]

    def _required(self, x, xd, xdd, base, wrenches, joint_efforts, loops=None):
        loops = loops or fresh(self._loops)
        env, drive = self._surroundings(x, base, wrenches)
        out = np.empty(self.dof)
        if self.floating and base is not None and not drive[0].all():
            xdd = self._with_free_base(x, xd, xdd, drive, wrenches, joint_efforts)
        status = kernels.inverse_general(self._mods, self._work, env, loops, x, xd, xdd, out)
        self._check_all(status, x=x, xd=xd, xdd=xdd)
        if joint_efforts:
            out -= self._projected(loops, self._joint_efforts(x, joint_efforts))
        return out, loops

    def _with_free_base(self, x, xd, xdd, drive, wrenches, joint_efforts):
        """Return xdd with the accelerations that the free coordinates of the base then have."""
        free, xdd = np.flatnonzero(drive[0] == 0.0), xdd.copy()
        xdd[free] = 0.0
        needed = self._required(x, xd, xdd, None, wrenches, joint_efforts)[0]
        M = self.mass_matrix(x)
        xdd[free] = -np.linalg.solve(M[np.ix_(free, free)], needed[free])
        return xdd

    def _projected(self, loops, efforts):
        """Return the efforts on the coordinates (dof,) of efforts on all modules; the loops are closed."""
        out = np.zeros(self.dof)
        for k, row in enumerate(loops.own):
            if row >= 0:
                out[row] = efforts[k]
        for j, t in enumerate(loops.tied):
            cluster = loops.clusters[loops.cluster_of[t['module']]]
            for i in loops.tied[cluster['first']:cluster['first'] + cluster['joints']]:
                if i['independent'] >= 0:
                    out[i['coordinate']] += loops.G[j, i['independent']] * efforts[t['module']]
        return out

    def inverse_dynamics(self, x, xd, xdd, *, base=None, wrenches=None, joint_efforts=None):
        """Return the actuator efforts f for accelerations xdd, of least weighted norm where there are many such.

        The base of a floating machine is driven as xdd says (`base_wrench` tells by what), unless a `BaseDrive` frees
        some of its coordinates.  Raises ActuationError where the actuators cannot drive every joint.
        """
        allocation = self.allocation
        if self._direct and np.isinf(allocation.upper).all() and np.isinf(allocation.lower).all():
            return self.generalized_forces(x, xd, xdd, base=base, wrenches=wrenches, joint_efforts=joint_efforts)[
                ..., self._loops.base:]
        arrays = self._arrays(True, x=x, xd=xd, xdd=xdd)
        if arrays[0].ndim == 2:
            if wrenches is None and joint_efforts is None and (base is None or not self.floating):
                efforts = shared_efforts(self, *arrays[:2], self.generalized_forces(*arrays, base=base))
                for row in np.flatnonzero(np.isnan(efforts).any(axis=1)).tolist():      # which says why
                    efforts[row] = self._distributed(allocation, *(rows[row] for rows in arrays), base, None, None)
                return efforts
            return np.array([self._distributed(allocation, *row, base, wrenches, joint_efforts)
                             for row in zip(*arrays)]).reshape(len(arrays[0]), len(self.actuators))
        return self._distributed(allocation, *arrays, base, wrenches, joint_efforts)

    def _distributed(self, allocation, x, xd, xdd, base, wrenches, joint_efforts):
        needed, loops = self._required(x, xd, xdd, base, wrenches, joint_efforts)
        shared = allocation.share(actuator_map(loops), needed[loops.base:])
        if not shared.met:
            limited = f" within the limits of {', '.join(shared.at_limit)}" if shared.at_limit else ''
            worst = self.coordinates[int(abs(shared.residual).argmax())]
            raise ActuationError(f"the actuators of '{self.name}' do not reach the effort on '{worst}'{limited}: "
                                 f'{abs(shared.residual).max():.4g} N or N m are missing')
        return shared.efforts

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
        slides = {self._machine.modules[self._rows[name]].joint.type == 'prismatic' for name in self.actuators}
        if len(slides) > 1 and len(self.actuators) > len(self.coordinates) and (0.0 < effort).all() \
                and np.isfinite(effort).all():
            allocation.set_weights(dict(zip(self.actuators, effort ** -2.0)))
        return allocation

    def actuator_map(self, x):
        """Return A (actuators, dof) with the rates A xd of the actuators; f on them act as A' f."""
        x, = self._arrays(x=x)
        loops = self._closed(x, np.zeros(self.dof), np.zeros(self.dof))[0]
        return np.hstack((np.zeros((len(self.actuators), loops.base)), actuator_map(loops)))

    def mass_matrix(self, x):
        """Return M (dof, dof) with generalized_forces = M xdd + bias; symmetric positive definite."""
        x, = self._arrays(x=x)
        M, zero = np.empty((self.dof, self.dof)), np.zeros(self.dof)
        loops = self._loops._replace(gravity=np.zeros(3))
        for row, unit in zip(M, np.eye(self.dof)):
            status = kernels.inverse_general(self._mods, self._work, np.zeros((2, 6)), loops, x, zero, unit, row)
            self._check_all(status, x=x)
        return 0.5 * (M + M.T)

    def bias_forces(self, x, xd):
        """Return `generalized_forces` at xdd = 0: velocity, gravity and friction terms."""
        return self.generalized_forces(x, xd, np.zeros(self.dof))

    def gravity_forces(self, x):
        """Return the actuator efforts (actuators,) that hold the machine at rest."""
        return self.inverse_dynamics(x, np.zeros(self.dof), np.zeros(self.dof))

    def energy(self, x, xd):
        """Return (kinetic, potential) energy [J]; a base that does not float rests at the inertial origin."""
        x, xd = self._arrays(x=x, xd=xd)
        out = np.empty(4)
        status = kernels.energy_general(self._mods, self._work, np.zeros((2, 6)), self._loops, x, xd, out)
        self._check_all(status, x=x, xd=xd)
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
        states = self._arrays(x=x, xd=zero if xd is None else xd, xdd=zero if xdd is None else xdd)
        out = np.empty((3, len(self.joints)))
        status = kernels.joint_states_general(self._mods, self._work, np.zeros((2, 6)), self._loops, *states, *out)
        self._check_all(status, x=states[0], xd=states[1], xdd=states[2])
        return (self.joints, out[0], None if xd is None else out[1],
                None if xd is None or xdd is None else out[2])

    def _closed(self, x, xd, xdd):
        """Return (loops, work, env) of their own after closing at x, xd."""
        loops, work, env = fresh(self._loops), np.zeros(len(self._mods), WORK), np.zeros((2, 6))
        self._check_all(kernels.closed_general(self._mods, work, env, loops, x, xd, xdd), x=x, xd=xd, xdd=xdd)
        return loops, work, env

    def _make_map(self, names):
        return GeneralJointMap(self, names)

    def link_pose(self, x, link):
        """Return the pose (4, 4) of a link in the base frame, in the world where the base floats."""
        x, = self._arrays(x=x)
        place, zero = find_link(self._machine, link), np.zeros(self.dof)
        loops, work, _ = self._closed(x, zero, zero)
        turn, position = pose_in_base(self._mods, work, place, loops.z[0])
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = turn, position
        if self.floating and place.module >= 0:
            base, origin = self._base_pose(x)
            pose[:3, :3], pose[:3, 3] = base @ turn, base @ position + origin
        return pose

    def link_twist(self, x, xd, link):
        """Return the twist (v, w) (6,) of a link's origin in link axes; in inertial space where the base floats."""
        x, xd = self._arrays(x=x, xd=xd)
        place = find_link(self._machine, link)
        if self.floating and place.module < 0:
            return np.zeros(6)
        loops, work, env = self._closed(x, xd, np.zeros(self.dof))
        return twist_of_link(self._mods, work, env, place, loops.z[0])

    def base_wrench(self, x, xd, xdd, *, base=None, wrenches=None):
        """Return the wrench (f, m) (6,) that the environment applies on the base, at its origin in its axes."""
        x, xd, xdd = self._arrays(x=x, xd=xd, xdd=xdd)
        if self.floating:
            return self._required(x, xd, xdd, base, wrenches, None)[0][:6]
        env, on_base = self._environment(x, base, wrenches)
        work, out, reaction = np.zeros(len(self._mods), WORK), np.empty(self.dof), np.empty(6)
        status = kernels.inverse_general(self._mods, work, env, self._loops, x, xd, xdd, out)
        self._check_all(status, x=x, xd=xd, xdd=xdd)
        base_reaction(self._mods, work, env, self._machine.base_inertia, reaction)
        return reaction - on_base

    def integrator(self, step, substeps=1, *, stiffness=5e7, damping=1.0):
        """Return an integrator that advances (x, xd) by `step` [s] in `substeps` parts at constant effort.

        stiffness [N/m, N m/rad] and damping [s/m, s/rad] are those of the stops at the limits of actuators and
        coordinates.
        """
        return GeneralIntegrator(self, step, substeps, stiffness, damping)

    def _rebuilt(self, description):
        machine = tie(self._rebuild(description), self._gravity, self.coordinates)
        rebuilt = GeneralManipulator(machine, self._gravity, self._rebuild)
        rebuilt._allocation = copy(self._allocation)       # weights, limits and preload were set by the user
        return rebuilt

    def _batch(self, what, arrays, base, wrenches, joint_efforts):
        if wrenches is None and joint_efforts is None and (base is None or not self.floating):
            env, drive = self._surroundings(None, base, None)
            out = np.empty((len(arrays[0]), self.dof))
            if what == 'forward':
                status, row = kernels.forward_general_rows(
                    self._mods, self._work, env, self._loops, drive, *arrays, self._passive, out)
            else:
                status, row = kernels.inverse_general_rows(self._mods, self._work, env, self._loops, *arrays, out)
            if status != 0:
                raise general_error(self, status, {'x': arrays[0][row]}, row)
            return out
        call = self.forward_dynamics if what == 'forward' else self.generalized_forces
        return np.array([call(*row, base=base, wrenches=wrenches, joint_efforts=joint_efforts)
                         for row in zip(*arrays)]).reshape(len(arrays[0]), self.dof)

    def _surroundings(self, x, base, wrenches):
        """Return (env rows, (2, 6) drive of a floating base)."""
        drive = FREE
        if self.floating:
            if base is not None:
                drive, base = self._drive(base), None
        elif isinstance(base, BaseDrive):
            raise ShapeError(f"base={base!r:.80}: '{self.name}' stands on a fixed base; expected a BaseMotion")
        return self._environment(x, base, wrenches)[0], drive

    def _drive(self, base):
        if isinstance(base, BaseMotion):
            raise ShapeError(f"base={base!r:.80}: the base of '{self.name}' floats, its motion is in x, xd; expected a "
                             'BaseDrive(driven, acceleration)')
        try:
            base = BaseDrive(*base)
        except TypeError:
            raise ShapeError(f'base={base!r:.80}: expected a BaseDrive(driven, acceleration)') from None
        return np.array([vector('base.driven', base.driven, 6) != 0.0,
                         vector('base.acceleration', base.acceleration, 6)], dtype=float)

    def _environment(self, x, base, wrenches):
        rows = base_rows(self._gravity, base)       # fresh: a floating base has its motion written there
        if not wrenches:
            return rows, np.zeros(6)
        z = self._closed(x, np.zeros(self.dof), np.zeros(self.dof))[0].z[0]
        bodies, on_base = wrench_rows(self._machine, z, wrenches)
        return np.ascontiguousarray(np.vstack((rows, bodies))), on_base

    def _joint_efforts(self, x, efforts):
        """Return efforts on all modules (modules,) of {joint: effort}."""
        if not efforts:
            return self._passive
        out, others = np.zeros(len(self._mods)), {}
        for joint, effort in self._named_efforts(efforts):
            if joint in self._rows:
                out[self._rows[joint]] += effort
            else:
                others[joint] = effort
        if others:
            loops = self._closed(x, np.zeros(self.dof), np.zeros(self.dof))[0]
            for joint, effort in others.items():
                k, rate = self._triangle_rate(loops.z[0], joint)
                out[k] += rate * effort
        return out

    def _arrays(self, batch=False, **values):
        arrays = {label: self._array(label, value) for label, value in values.items()}
        length = {'x': self.nx, 'f': len(self.actuators)}
        rows = {array.shape[:-1] for array in arrays.values()}
        if len(rows) != 1 or len(rows.copy().pop()) > 1 or (not batch and rows != {()}) or any(
                array.shape[-1:] != (length.get(label, self.dof),) for label, array in arrays.items()):
            raise general_error(self, SHAPE, arrays)
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise general_error(self, NON_FINITE, arrays)
        return tuple(arrays.values())

    def _check_all(self, status, **arrays):
        if status != 0:
            raise general_error(self, status, arrays)

    def __repr__(self):
        return (f"<GeneralManipulator '{self.name}': {self.dof} DoF, {len(self.actuators)} actuators, "
                f'{len(self._machine.description.closures)} loops, {self.total_mass:.2f} kg>')
