"""From any sufficient set of measured or commanded joints to the coordinates of a machine with general loops."""
import numpy as np

from ..assembly.clusters import Tangle, fresh
from ..assembly.pose_table import pose_table
from ..kernels.loops.closure import BRANCH, OPEN, close_all
from ..kernels.rigid_body.energy import coordinates
from ..model.errors import LoopError, MeasurementError, TogglePointError
from .failures import measurement_error
from .joint_map import checked_batch, checked_rows, measured_rows


class GeneralJointMap:
    """A fixed tuple of joint names and how each loop follows from them.

    Positions of a cluster follow from as many of its measured joints as it has coordinates; further ones only tell how
    far the measurement contradicts itself.  The state of a floating base is not in joints: it comes out as given.
    """

    def __init__(self, manipulator, names):
        self.names = tuple(names)
        self._manipulator, self._machine = manipulator, manipulator.machine
        self._own = np.flatnonzero(manipulator.loops.own >= 0)
        self._mods = self._machine.records[self._own]
        self._rows = measured_rows(self._machine, self.names, self._own)
        self._tie()

    def _preferred(self):
        """Return the names of the measured joints, those first from which the others follow best."""
        machine, loops = self._machine, self._manipulator.loops
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

    def _tie(self):
        """Tie the clusters once more, their independent joints among the measured ones."""
        machine, loops = self._machine, self._manipulator.loops
        tangle = Tangle(machine)
        for record, cluster in zip(tangle.clusters, loops.clusters):
            record['gap'] = cluster['gap']
        tangle.draft = tangle.draft._replace(senses=loops.senses)
        starts = [loops.poses[record['pose'], :record['joints']] for record in loops.clusters]
        try:
            chosen = tangle.choose(starts, self._preferred())
        except LoopError as error:
            raise MeasurementError(f'the joints {list(self.names)} do not fix the loops: {error}') from None
        for cluster in machine.clusters:
            free = [name for name in chosen if name in cluster.joints and name not in self.names]
            if free:
                raise MeasurementError(f"the joints {list(self.names)} do not fix loop '{cluster.name}'; measure "
                                       f'{free} too, or others of {cluster.joints}')
        self._loops = tangle.finish(chosen, [pose_table(tangle, n, start) for n, start in enumerate(starts)],
                                    loops.gravity)
        self._chosen = chosen
        self._redundant = [(row, int(t['module'])) for row, name in enumerate(self.names)
                           for t in loops.tied if machine.modules[t['module']].name == name and name not in chosen]

    def state(self, position, velocity=None, base=None):
        """Return (x, xd, residual) for positions and velocities (m,) in the order of `names`.

        residual [m, rad]: largest disagreement of redundant joints; xd is zero without velocities.  base: (x, xd) of a
        floating base, (7,) and (6,); by default at rest at the origin.
        """
        x, xd, _, gaps = self._run(position, velocity, None, base)
        return x, xd, max(gaps.values(), default=0.0)

    def motion(self, position, velocity, acceleration, base=None):
        """Return (x, xd, xdd) for positions, velocities and accelerations (m,) in the order of `names`."""
        return self._run(position, velocity, acceleration, base)[:3]

    def states(self, position, velocity=None):
        """Return (x (N, nx), xd (N, dof), residual (N,)) of N rows of positions and velocities (N, m), as `state` does.

        Rows that fix nothing, being not finite or of a loop that does not close, come out as NaN; xd is None without
        velocities.  A floating base is at rest at the origin.
        """
        q, qd = checked_batch(self.names, position, velocity)
        good = np.isfinite(q).all(axis=1)
        z, residual = self._spread(q, qd, good)
        for row, k in self._redundant:
            residual = np.maximum(residual, np.abs(q[:, row] - z[0, :, k]))
        to, of = self._coordinates()
        shift = 1 if self._loops.base else 0
        x, xd = (np.zeros((len(q), self._manipulator.dof + extra)) for extra in (shift, 0))
        if shift:
            x[:, 6] = 1.0
        x[:, to + shift], xd[:, to] = z[0][:, of], z[1][:, of]
        x[~good], xd[~good], residual[~good] = np.nan, np.nan, np.nan
        return x, None if velocity is None else xd, residual

    def _spread(self, q, qd, good):
        """z (2, N, modules) of positions and rates of rows that are `good`, and their residual (N,) within triangles;
        rows that fix nothing are good no more."""
        loops = fresh(self._loops)
        work, mods, rows, tied = loops.work, self._mods, self._rows, loops.tied['module']
        z, residual = np.zeros((2, len(q), len(self._machine.modules))), np.zeros(len(q))
        one, gaps, still = np.zeros((3, z.shape[2])), np.zeros(len(self._own)), np.zeros(len(self.names))
        x, xd, to, of = self._measured_coordinates()
        for k in np.flatnonzero(good).tolist():
            if len(gaps):
                if coordinates(mods, rows, q[k], qd[k], still, one[0], one[1], one[2], gaps) != 0:
                    good[k] = False
                    continue
                z[0, k], z[1, k], residual[k] = one[0], one[1], gaps.max()
            if len(tied):
                x[to + len(x) - len(xd)], xd[to] = q[k, of], qd[k, of]
                if close_all(loops, x, xd) != 0:
                    good[k] = False
                    continue
                z[0, k, tied], z[1, k, tied] = work['q'], work['qd']
        return z, residual

    def _coordinates(self):
        """(rows of xd, the modules whose they are), of the coordinates of the machine but a floating base."""
        true, pairs = self._manipulator.loops, []
        for k in range(len(self._machine.modules)):
            row = true.own[k]
            if row < 0 and true.member[k] >= 0 and true.tied[true.member[k]]['independent'] >= 0:
                row = true.tied[true.member[k]]['coordinate']
            if row >= 0:
                pairs.append((row, k))
        return np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def _measured_coordinates(self):
        """(x, xd) of the map's own loops, zeros, the rows of xd that are measured, and where in `names` they stand."""
        base = self._loops.base
        pairs = [(base + i, self.names.index(name)) for i, name in enumerate(self._chosen) if name in self.names]
        x, xd = (np.zeros(base + extra + len(self._chosen)) for extra in (1 if base else 0, 0))
        return x, xd, *np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    def residuals(self, position):
        """Return {loop name: disagreement of its measured joints [m, rad]}."""
        return self._run(position, None, None, None)[3]

    def _run(self, position, velocity, acceleration, base):
        q, qd, qdd = rates = checked_rows(self.names, position, velocity, acceleration)
        machine, shift = self._machine, 1 if self._loops.base else 0
        loops = fresh(self._loops)
        z, residual = np.zeros((3, len(machine.modules))), np.zeros(len(self._own))
        status = coordinates(self._mods, self._rows, *rates, *z, residual)
        if status != 0:
            k = int(self._own[status // 8 - 1])
            rows = np.full((len(machine.modules), 3), -1)
            rows[self._own] = self._rows
            raise measurement_error(machine, 8 * (k + 1) + status % 8, self.names, rows, q)
        gaps = {machine.modules[k].triangle.name: float(gap) for k, gap in zip(self._own, residual)
                if machine.modules[k].triangle}
        self._close(loops, z, q, qd, qdd)
        for row, k in self._redundant:
            name = machine.clusters[loops.cluster_of[k]].name
            gaps[name] = max(gaps.get(name, 0.0), abs(float(q[row] - z[0, k])))
        x, xd, xdd = (np.zeros(self._manipulator.dof + extra) for extra in (shift, 0, 0))
        if shift:
            x[6] = 1.0
            if base is not None:
                x[:7], xd[:6] = base
        to, of = self._coordinates()
        x[to + shift], xd[to], xdd[to] = z[:, of]
        return x, xd, xdd, gaps

    def _close(self, loops, z, q, qd, qdd):
        """Fill in z (3, modules) of the joints of clusters from the measured ones."""
        if not len(loops.clusters):
            return
        x, xd, to, of = self._measured_coordinates()
        xdd = np.zeros(len(xd))
        x[to + len(x) - len(xd)], xd[to], xdd[to] = q[of], qd[of], qdd[of]
        status = close_all(loops, x, xd)
        if status != 0:
            cluster = self._machine.clusters[status // 8 - 1]
            values = ', '.join(f'{name} = {q[row]:.6g}' for row, name in enumerate(self.names)
                               if name in cluster.joints)
            if status % 8 == OPEN:
                raise MeasurementError(f"loop '{cluster.name}' with {values}: no position closes it on the assembly "
                                       'branch of the initial one')
            if status % 8 == BRANCH:
                raise TogglePointError(f"loop '{cluster.name}' with {values}: is at or beyond a point where two "
                                       'branches of its closure meet')
            raise TogglePointError(f"loop '{cluster.name}' with {values}: is singular; the measured joints do not fix "
                                   'it here')
        for j, t in enumerate(loops.tied):
            cluster, u = loops.clusters[loops.cluster_of[t['module']]], loops.work[j]
            acceleration = u['g']
            for i in loops.tied[cluster['first']:cluster['first'] + cluster['joints']]:
                if i['independent'] >= 0:
                    acceleration += loops.G[j, i['independent']] * xdd[i['coordinate']]
            z[:, t['module']] = u['q'], u['qd'], acceleration
