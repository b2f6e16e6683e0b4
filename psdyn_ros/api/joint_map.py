"""From any sufficient set of measured or commanded joints to the coordinates of the machine."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..assembly.clusters import ClusterBuilder
from ..assembly.machine import Machine, complete_records
from ..assembly.pose_table import pose_table_in_steps
from ..kernels.rigid_body.measurement import coordinates_of_modules, coordinates_of_samples
from ..kernels.rigid_body.mechanism import Handle, make_handle
from ..kernels.runtime.status import BRANCH, OK, OPEN, SINGULAR, decode, failure
from ..model.errors import (
    LoopError,
    MeasurementError,
    NonFiniteError,
    PsdynError,
    ShapeError,
    TogglePointError,
    check_name,
)
from .arguments import Array, numbers
from .errors_from_status import measurement_error
from .kinematics import place

if TYPE_CHECKING:
    from .manipulator import Manipulator


class JointMap:
    """Maps a fixed tuple of measured joints to the state: a triangle from its stroke, else boom, else barrel.

    Positions of a cluster follow from as many of its measured joints as it has coordinates; further ones only show by
    how much the measurement contradicts itself.  The state of a floating base is no joint: it is returned as given.

    tabulate  False: the poses of clusters are not tabulated yet, which may take a second; `building` does it
    `building` is an iterator that pauses every 0.3 ms or so; once it has ended, the map can be used.
    Raises MeasurementError at once where the joints do not fix every loop.
    """

    def __init__(self, manipulator: Manipulator, names: Iterable[str], tabulate: bool = True) -> None:
        self.names = tuple(names)
        self._manipulator, self._machine = manipulator, manipulator.machine
        records = self._machine.records
        self._outside_clusters = np.flatnonzero((records['cluster'] < 0) & (records['joint'][:, 0] >= 0))
        self._rows = measured_rows(self._machine, self.names, self._outside_clusters)
        self._records = np.ascontiguousarray(records[self._outside_clusters])
        coordinates = np.flatnonzero((records['coordinate'] >= 0) & (records['joint'][:, 0] >= 0))
        self._coordinates = coordinates, records['position'][coordinates], records['coordinate'][coordinates]
        self._handle: Handle | None = None
        self._redundant: list[tuple[int, int]] = []
        self.building = self._close_by_measured_joints() if self._machine.clusters else iter(())
        if tabulate:
            for _ in self.building:
                pass

    def __getstate__(self) -> dict[str, Any]:
        for _ in self.building:     # half a map cannot be sent
            pass
        return {**self.__dict__, 'building': iter(())}

    def __repr__(self) -> str:
        return f'<JointMap from {", ".join(self.names)} to the state of {self._manipulator!r}>'

    def _preferred(self) -> list[str]:
        """Return the names of the measured joints, those first from which the others follow best."""
        machine, loops = self._machine, self._machine.loops
        # no state is ambiguous in the coordinates themselves
        chosen = [name for name in machine.coordinates if name in self.names]
        for cluster, record in zip(machine.clusters, loops.clusters):
            G = dict(zip(cluster.joints, loops.slopes[record['pose'], :, :record['freedom']]))
            rows = [G[name] for name in chosen if name in G]
            rest = [name for name in self.names if name in G and name not in chosen]
            while rest and len(rows) < record['freedom']:
                best = max(rest, key=lambda name: np.linalg.svd([*rows, G[name]], compute_uv=False)[-1])
                rest.remove(best)
                rows.append(G[best])
                chosen.append(best)
        return [*chosen, *(name for name in self.names if name not in chosen)]

    def _close_by_measured_joints(self) -> Iterator[None]:
        """Choose independent joints among the measured ones; return the generator that tabulates the clusters."""
        machine, loops = self._machine, self._machine.loops
        builder = ClusterBuilder(machine, loops)
        for record, cluster in zip(builder.clusters, loops.clusters):
            record['gap'] = cluster['gap']
        builder.loops.orientation_checks[:] = loops.orientation_checks
        starts = [loops.poses[record['pose'], :record['joints']] for record in loops.clusters]
        try:
            chosen = builder.choose(starts, self._preferred())
        except LoopError as error:
            raise MeasurementError(f'the joints {list(self.names)} do not fix the loops: {error}') from None
        for cluster in machine.clusters:
            free = [name for name in chosen if name in cluster.joints and name not in self.names]
            if free:
                raise MeasurementError(f"the joints {list(self.names)} do not fix loop '{cluster.name}'; measure "
                                       f'{free} too, or others of {cluster.joints}')
        return self._tabulate(builder, chosen, starts)

    def _tabulate(self, builder: ClusterBuilder, chosen: list[str], starts: list[Array]) -> Iterator[None]:
        machine, tables = self._machine, []
        for n, start in enumerate(starts):
            tables.append((yield from pose_table_in_steps(builder, n, start)))
        yield
        loops = builder.finish(tables)
        records, sizes = complete_records(machine, chosen, loops), (self._manipulator.nx, self._manipulator.dof, 0)
        self._handle = make_handle(sizes, records, machine.handle.environment, loops)
        rows = {module.name: k for k, module in enumerate(machine.modules)}
        self._measured = np.array([(rows[name], self.names.index(name)) for name in chosen
                                   if records['cluster'][rows[name]] >= 0]).reshape(-1, 2).T
        self._redundant = [(row, rows[name]) for row, name in enumerate(self.names)
                           if name in rows and records['cluster'][rows[name]] >= 0 and name not in chosen]

    def state(self, position: npt.ArrayLike, velocity: npt.ArrayLike | None = None,
              base: tuple[npt.ArrayLike, npt.ArrayLike] | None = None) -> tuple[Array, Array, float]:
        """Return (x, xd, residual) for positions and velocities (m,) in the order of `names`.

        residual [m, rad]: largest disagreement of redundant joints, at a rod eye of cylinder triangles; xd is zero
        without velocities.  base: (x, xd) of a floating base, (7,) and (6,); by default at rest at the origin.
        """
        x, xd, _, gaps = self._run(position, velocity, None, base)
        return x, xd, max(gaps.values(), default=0.0)

    def motion(self, position: npt.ArrayLike, velocity: npt.ArrayLike | None, acceleration: npt.ArrayLike | None,
               base: tuple[npt.ArrayLike, npt.ArrayLike] | None = None) -> tuple[Array, Array, Array]:
        """Return (x, xd, xdd) for positions, velocities and accelerations (m,) in the order of `names`."""
        return self._run(position, velocity, acceleration, base)[:3]

    def states(self, position: npt.ArrayLike, velocity: npt.ArrayLike | None = None) -> tuple[Array, Array | None,
               Array]:
        """Return (x (N, nx), xd (N, dof), residual (N,)) of N rows of positions and velocities (N, m), as `state` does.

        Rows that are not finite, or at which a loop does not close, are NaN; xd is NaN where velocities are not finite,
        and None without velocities.  A floating base is at rest at the origin.
        """
        q, qd = checked_batch(self.names, position, velocity)
        m = self._manipulator
        x, xd, residual = np.full((len(q), m.nx), np.nan), np.full((len(q), m.dof), np.nan), np.full(len(q), np.nan)
        finite = np.flatnonzero(np.isfinite(q).all(axis=1))
        if self._handle is None:
            self._states_of_triangles(q, qd, finite, (x, xd, residual))
        else:
            self._states_of_clusters(self._handle.copy(), q, qd, finite, (x, xd, residual))
        return x, None if velocity is None else xd, residual

    def _states_of_triangles(self, q: Array, qd: Array, finite: Array, out: tuple[Array, Array, Array]) -> None:
        """Write the finite rows of x, xd, residual, all at once."""
        measured, found = np.zeros((len(finite), 3, len(self.names))), np.zeros((len(finite), 4, len(self._rows)))
        statuses = np.empty(len(finite), dtype=np.int64)
        measured[:, 0], measured[:, 1] = q[finite], qd[finite]
        coordinates_of_samples(self._records, self._rows, measured, found, statuses)
        found, good = found[statuses == OK], finite[statuses == OK]
        x, xd, residual = out
        if self._manipulator.floating:
            x[good], xd[good] = np.eye(len(x.T))[6], 0.0
        rows, positions, coordinates = self._coordinates
        rows = np.searchsorted(self._outside_clusters, rows)
        x[np.ix_(good, positions)], xd[np.ix_(good, coordinates)] = found[:, 0, rows], found[:, 1, rows]
        residual[good] = found[:, 3].max(axis=1, initial=0.0)

    def _states_of_clusters(self, handle: Handle, q: Array, qd: Array, finite: Array,
                            out: tuple[Array, Array, Array]) -> None:
        """Write the finite rows of x, xd, residual, one after the other: each begins where the last one was closed."""
        (x, xd, residual), measured = out, np.zeros((3, len(self.names)))
        for row in finite.tolist():
            # kernels that close loops take finite rates only
            known = np.isfinite(qd[row]).all()
            measured[0], measured[1] = q[row], qd[row] if known else 0.0
            status, z, gaps = self._solve(measured, handle)
            if status == OK:
                x[row], rates, _ = self._read(z)
                if known:
                    xd[row] = rates
                residual[row] = max(gaps.max(initial=0.0), *(self._disagreements(measured, z) or (0.0,)))

    def residuals(self, position: npt.ArrayLike) -> dict[str, float]:
        """Return {loop name: disagreement of its measured joints [m, rad]}."""
        return self._run(position, None, None, None)[3]

    def bind(self) -> BoundMap:
        """Return a `BoundMap` of these joints, for one thread."""
        return BoundMap(self)

    def _run(self, position: npt.ArrayLike, velocity: npt.ArrayLike | None, acceleration: npt.ArrayLike | None,
             base: tuple[npt.ArrayLike, npt.ArrayLike] | None) -> tuple[Array, Array, Array, dict[str, float]]:
        measured, machine = checked_rows(self.names, position, velocity, acceleration), self._machine
        # scratch of its own: threads share this map
        status, z, gaps = self._solve(measured, self._handle and self._handle.copy())
        if status != OK:
            raise self._error(status, measured)
        named = {machine.modules[k].triangle.name: float(gap) for k, gap in zip(self._outside_clusters, gaps)
                 if machine.modules[k].triangle}
        for (_, k), gap in zip(self._redundant, self._disagreements(measured, z)):
            name = machine.clusters[machine.records['cluster'][k]].name
            named[name] = max(named.get(name, 0.0), gap)
        x, xd, xdd = self._read(z)
        if base is not None and self._manipulator.floating:
            x[:7], xd[:6] = base
        return x, xd, xdd, named

    def _solve(self, measured: Array, handle: Handle | None) -> tuple[int, Array, Array]:
        """Return (status, positions, rates and accelerations (3, modules) of all modules, gaps of triangles)."""
        z, found = np.zeros((3, len(self._machine.modules))), np.empty((4, len(self._outside_clusters)))
        status = coordinates_of_modules(self._records, self._rows, measured, found)
        if status != OK:
            code, k = decode(status)
            return failure(code, int(self._outside_clusters[k])), z, found[3]
        z[:, self._outside_clusters] = found[:3]
        if handle is not None:
            z[:, self._measured[0]] = measured[:, self._measured[1]]
            status = place(handle, *self._as_state(z, handle.modules))
            z = np.array([handle.work[what] for what in ('q', 'qd', 'qdd')])
        return status, z, found[3]

    def _as_state(self, z: Array, records: Array) -> tuple[Array, Array, Array]:
        """Return (x, xd, xdd) of modules at z, in the coordinates of `records`; a floating base rests at the origin."""
        rows = np.flatnonzero((records['coordinate'] >= 0) & (records['joint'][:, 0] >= 0))
        return self._state_of(z, rows, records['position'][rows], records['coordinate'][rows])

    def _read(self, z: Array) -> tuple[Array, Array, Array]:
        return self._state_of(z, *self._coordinates)

    def _state_of(self, z: Array, rows: Array, positions: Array, coordinates: Array) -> tuple[Array, Array, Array]:
        x, xd, xdd = np.zeros(self._manipulator.nx), *np.zeros((2, self._manipulator.dof))
        if self._manipulator.floating:
            x[6] = 1.0
        x[positions], xd[coordinates], xdd[coordinates] = z[:, rows]
        return x, xd, xdd

    def _disagreements(self, measured: Array, z: Array) -> list[float]:
        return [abs(float(measured[0, row] - z[0, k])) for row, k in self._redundant]

    def _error(self, status: Any, measured: Array) -> PsdynError:
        code, k = decode(status)
        if code not in (BRANCH, OPEN, SINGULAR):
            rows = np.full((len(self._machine.modules), 3), -1)
            rows[self._outside_clusters] = self._rows
            return measurement_error(self._machine, status, self.names, rows, measured[0])
        cluster = self._machine.clusters[k]
        values = ', '.join(f'{name} = {measured[0, row]:.6g}' for row, name in enumerate(self.names)
                           if name in cluster.joints)
        if code == OPEN:
            return MeasurementError(f"loop '{cluster.name}' with {values}: no position closes it on the assembly "
                                    'branch of the initial one')
        if code == BRANCH:
            return TogglePointError(f"loop '{cluster.name}' with {values}: is at or beyond a point where two branches "
                                    'of its closure meet')
        return TogglePointError(f"loop '{cluster.name}' with {values}: is singular; the measured joints do not fix "
                                'it here')


class BoundMap:
    """A `JointMap` on arrays of its own, for one thread that reads a state in every cycle.

    measured  (3, m) positions, velocities and accelerations in the order of `names`, to be written before `state`
    """

    def __init__(self, joint_map: JointMap) -> None:
        self.names, self._map = joint_map.names, joint_map
        self.measured = np.zeros((3, len(joint_map.names)))
        self._positions_and_rates = self.measured[:2].reshape(-1)       # a view
        self._handle = joint_map._handle and joint_map._handle.copy()
        self._found = np.empty((4, len(joint_map._outside_clusters)))
        rows, positions, _ = joint_map._coordinates
        self._base = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]) if joint_map._manipulator.floating else None
        rows = rows[np.argsort(positions)]      # a floating base comes first, joints after it without a gap
        self._rows = rows if self._handle is not None else np.searchsorted(joint_map._outside_clusters, rows)

    def __repr__(self) -> str:
        return f'<BoundMap of {self._map!r}>'

    def state(self) -> tuple[Array, Array, float]:
        """Return (x, xd, residual) of `measured` as `JointMap.state` does, with its errors; x and xd are new arrays."""
        joint_map, measured = self._map, self.measured
        if not math.isfinite(sum(self._positions_and_rates.tolist())):     # of so few numbers quicker than NumPy
            return self._checked_state()
        if self._handle is None:
            z, gaps = self._found, self._found[3]
            status = coordinates_of_modules(joint_map._records, joint_map._rows, measured, z)
        else:
            status, z, gaps = joint_map._solve(measured, self._handle)
        if status != OK:
            return self._checked_state()        # raises, and says why
        x, xd = z[0][self._rows], z[1][self._rows]
        if self._base is not None:      # it floats, at rest at the origin
            x, xd = np.concatenate((self._base, x)), np.concatenate((np.zeros(6), xd))
        residual = max(gaps.tolist(), default=0.0)
        if joint_map._redundant:
            residual = max(residual, *joint_map._disagreements(measured, z))
        return x, xd, residual

    def _checked_state(self) -> tuple[Array, Array, float]:
        return self._map.state(self.measured[0], self.measured[1])


def measured_rows(machine: Machine, names: tuple[str, ...], modules: Iterable[int]) -> Array:
    """Return (modules, 3) where in `names` the joints of modules stand that fix them alone, -1: not measured.

    Raises MeasurementError where one is not fixed, or a joint listed twice; UnknownNameError.
    """
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise MeasurementError(f"joint '{repeated[0]}' is listed {len(repeated)} times")
    for name in names:
        check_name(name, machine.joints, f"joint '{name}': no movable joint of '{machine.name}'")
    places = {machine.joints.index(name): row for row, name in enumerate(names)}
    joints = machine.records['joint'][list(modules)]
    rows = np.array([[places.get(int(j), -1) for j in row] for row in joints], dtype=np.int64).reshape(-1, 3)
    # -1 marks "no such joint" in the records as well as "not measured" here
    rows[joints < 0] = -1
    for k, row in zip(modules, rows):
        if (row < 0).all():
            _refuse(machine, names, k)
    return rows


def _refuse(machine: Machine, names: tuple[str, ...], k: int) -> None:
    module, others = machine.modules[k], ''
    triangle = module.triangle
    if triangle is not None:
        others = f" (or '{triangle.boom.name}', or '{triangle.barrel.name}') of loop '{triangle.name}'"
    raise MeasurementError(f"the joints {list(names)} do not fix '{module.name}'{others}; name it too")


def checked_rows(names: tuple[str, ...], position: npt.ArrayLike, velocity: npt.ArrayLike | None,
                 acceleration: npt.ArrayLike | None) -> Array:
    """Return (3, m) finite positions, velocities and accelerations of named joints; zeros for None."""
    rates = np.zeros((3, len(names)))
    for row, values in enumerate((position, velocity, acceleration)):
        if values is None and row > 0:
            continue
        what = ('position', 'velocity', 'acceleration')[row]
        values = numbers(what, values)
        if values.shape != (len(names),):
            raise ShapeError(f'{what} has shape {values.shape} for {len(names)} joints {list(names)}')
        rates[row] = values
    if not np.isfinite(rates).all():
        row, column = np.argwhere(~np.isfinite(rates))[0]
        what = ('position', 'velocity', 'acceleration')[row]
        raise NonFiniteError(f"{what} of '{names[column]}' is {rates[row, column]}; expected a finite number")
    return rates


def checked_batch(names: tuple[str, ...], position: npt.ArrayLike, velocity: npt.ArrayLike | None) -> tuple[Array,
                  Array]:
    """Return positions and velocities (N, m) of named joints, which need not be finite; zeros for no velocities."""
    q = numbers('position', position)
    qd = np.zeros_like(q) if velocity is None else numbers('velocity', velocity)
    for what, rows in (('position', q), ('velocity', qd)):
        if rows.shape != (len(q), len(names)):
            raise ShapeError(f'{what} has shape {rows.shape}; expected (N, {len(names)})')
    # kernels take rows without strides
    return np.ascontiguousarray(q), np.ascontiguousarray(qd)
