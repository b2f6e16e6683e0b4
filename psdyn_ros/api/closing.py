"""Tie the joints of clusters: closed initial position, independent coordinates, a table of closed poses."""
import itertools
import math
from dataclasses import replace

import numpy as np

from ..kernels import closure as kernels
from ..kernels.compiler import compiled
from ..kernels.loops import CLUSTER, LOSS, ROW, TIED, TIED_WORK, Loops
from ..model.cluster import row_records, tied_records
from ..model.errors import ActuationError, LoopClosureError, LoopError, UnknownNameError, did_you_mean

POSES = 350 if compiled else 60     # closed poses of a cluster that are tabulated, about
WELL_CONDITIONED = 1e-3             # smallest singular value of the rows of the null space of K that joints choose
RANK = 1e-7                         # of a singular value of K against the largest
GAP = 1e-9                          # within which an overconstrained loop counts as closed [m, 1]


def tie(machine, gravity, coordinates=None):
    """Return a general machine with its `Loops`, coordinates and initial position.

    coordinates: names of the independent joints, all of them, or None: the actuators first, then what is well
    conditioned.  Raises LoopError, LoopClosureError, ActuationError, UnknownNameError.
    """
    for name in coordinates or ():
        if name not in machine.joints:
            raise UnknownNameError(f"coordinate '{name}': no such joint{did_you_mean(name, machine.joints)}")
    tangle = Tangle(machine)
    starts = [tangle.start(n) for n in range(len(machine.clusters))]
    wanted = [*(coordinates or ()), *(name for name in machine.actuators if name not in (coordinates or ()))]
    names = tangle.choose(starts, wanted)
    if coordinates is not None and list(coordinates) != names:
        raise ActuationError(f'coordinates={list(coordinates)}: expected {len(names)} independent joints; '
                             f'for instance {names}')
    loops = tangle.loops(names, [tangle.table(n, start) for n, start in enumerate(starts)], gravity)
    shift = 1 if loops.base else 0
    initial = np.zeros(loops.base + shift + len(names))
    if loops.base:
        initial[6] = 1.0
    for k, row in enumerate(loops.own):
        if row >= 0:
            initial[row + shift] = machine.initial[k]
    for record, start in zip(tangle.clusters, starts):
        for i in range(record['joints']):
            t = tangle.tied[record['first'] + i]
            if t['independent'] >= 0:
                initial[t['coordinate'] + shift] = start[i]
    machine = replace(machine, loops=loops, coordinates=tuple(names), initial=initial)
    _check_actuators(machine)
    return machine


def _check_actuators(machine):
    """Refuse actuators of which some follow from the others while a degree of freedom has none."""
    loops = machine.loops
    A = actuator_map(at(loops, machine.initial))
    rank = np.linalg.matrix_rank(A, tol=1e-9) if A.size else 0
    if rank < min(A.shape):
        dependent = [name for row, name in enumerate(machine.actuators)
                     if np.linalg.matrix_rank(np.delete(A, row, axis=0), tol=1e-9) == rank]
        raise ActuationError(
            f"the {len(machine.actuators)} actuators of '{machine.name}' move only {rank} of its {A.shape[1]} degrees "
            f'of freedom at the initial position; {", ".join(dependent)} double one another')


def at(loops, x):
    """Close the loops at x (nx,) at rest and return them; their G and z are those of x."""
    status = kernels.close_all(loops, x, np.zeros(len(x) - (1 if loops.base else 0)))
    if status != 0:
        raise LoopClosureError(f'cluster {status // 8 - 1} does not close at its initial position')
    return loops


def actuator_map(loops):
    """Return A (actuators, joints of x) of the closed loops: rates of the actuators are A yd, and f_y = A' f."""
    columns = int((loops.own >= 0).sum() + (loops.tied['independent'] >= 0).sum())
    A = np.zeros((len(loops.driven), columns))
    for row, k in enumerate(loops.driven):
        if loops.own[k] >= 0:
            A[row, loops.own[k] - loops.base] = 1.0
            continue
        cluster = loops.clusters[loops.cluster_of[k]]
        for t in loops.tied[cluster['first']:cluster['first'] + cluster['joints']]:
            if t['independent'] >= 0:
                A[row, t['coordinate'] - loops.base] = loops.G[loops.member[k], t['independent']]
    return A


def smallest_singular_value(machine, n, q):
    """Return that of K of the dependent joints of cluster n at joint positions q, redundant rows aside."""
    tangle = Tangle(machine)
    record = machine.loops.clusters[n]
    held = machine.loops.tied['independent'][record['first']:record['first'] + record['joints']] >= 0
    return float(np.linalg.svd(tangle.jacobian(n, q)[1][:, ~held], compute_uv=False)[-1])


class Tangle:
    """The clusters of a machine in Python's hands: scratch of its own around the kernels of `closure`."""

    def __init__(self, machine):
        self.machine = machine
        module_of = {module.name: k for k, module in enumerate(machine.modules)}
        tied, rows, losses, records = [np.zeros(0, TIED)], [], [], []
        for cluster in machine.clusters:
            record = np.zeros((), CLUSTER)
            record['first'], record['joints'] = sum(map(len, tied)), len(cluster.bodies)
            record['row'] = len(rows)
            tied.append(tied_records(cluster, int(record['first']), module_of))
            more, pins = row_records(cluster, int(record['first']))
            rows += more
            losses += pins
            record['rows'] = len(more)
            record['head'] = tied[-1]['module'].min()
            records.append(record)
        self.tied = np.concatenate(tied)
        self.rows = np.array(rows, ROW) if rows else np.zeros(0, ROW)
        self.losses = np.array(losses, LOSS) if losses else np.zeros(0, LOSS)
        self.clusters = np.array(records, CLUSTER) if records else np.zeros(0, CLUSTER)
        self._work = np.zeros(len(self.tied), TIED_WORK)
        self._A = self._scratch()

    def _scratch(self):
        most = int(self.clusters['joints'].max(initial=0))
        return np.zeros((int(self.clusters['rows'].max(initial=0)) + most, most + 1))

    def slice(self, n):
        record = self.clusters[n]
        return slice(int(record['first']), int(record['first'] + record['joints']))

    def close(self, n, q):
        """Return (status, q) after Newton's method from q, the independent joints held."""
        self._work['q'][self.slice(n)] = q
        status = kernels.close_from(self.clusters, self.tied, self.rows, n, self._work, self._A)
        return status, self._work['q'][self.slice(n)].copy()

    def jacobian(self, n, q):
        """Return (phi, K) of all joints of a cluster at q."""
        part = self.slice(n)
        kept, freedom = self.tied['independent'][part].copy(), int(self.clusters[n]['freedom'])
        self.tied['independent'][part], self.clusters[n]['freedom'] = -1, 0
        self._work['q'][part] = q
        kernels.linearise_at(self.clusters, self.tied, self.rows, n, self._work, self._A)
        self.tied['independent'][part], self.clusters[n]['freedom'] = kept, freedom
        m, joints = int(self.clusters[n]['rows']), int(self.clusters[n]['joints'])
        return -self._A[:m, joints], self._A[:m, :joints].copy()

    def slopes(self, n, q):
        """Return G (joints, freedom) at a closed position."""
        independent = self.tied['independent'][self.slice(n)]
        K = self.jacobian(n, q)[1]
        G = np.zeros((len(q), int(self.clusters[n]['freedom'])))
        rows = np.flatnonzero(independent >= 0)
        G[rows, independent[rows]] = 1.0
        held = K[:, rows[np.argsort(independent[rows])]]
        G[independent < 0] = -np.linalg.lstsq(K[:, independent < 0], held, rcond=RANK)[0]
        return G

    def start(self, n):
        """Return a closed position: the hints where they close, else the nearest that Newton's method finds."""
        cluster, q = self.machine.clusters[n], []
        for name in cluster.joints:
            joint = cluster.entries[name][0]
            value = next((source[name] for source in self.machine.hints if name in source), None)
            q.append(min(max(0.0, joint.lower), joint.upper) if value is None else value)
        q = np.array(q, dtype=float)
        for _ in range(60):
            phi, K = self.jacobian(n, q)
            step = np.linalg.lstsq(K, -phi, rcond=RANK)[0]
            step *= min(1.0, 0.3 / max(abs(step).max(), 1e-300))
            q += step
            if abs(step).max() < 1e-15 or (abs(phi).max() < 1e-13 and abs(step).max() < 1e-12):
                break
        phi, _ = self.jacobian(n, q)
        if abs(phi).max() > GAP:
            raise LoopClosureError(f"loop '{cluster.name}': does not close near its initial position; the smallest "
                                   f'residual found is {abs(phi).max():.3g} (m or 1)')
        return q

    def choose(self, starts, wanted):
        """Set the independent joints, `wanted` first; return the names of all coordinates in their order."""
        tied_modules = set(self.tied['module'].tolist())
        names = [module.name for k, module in enumerate(self.machine.modules)
                 if k not in tied_modules and not (k == 0 and self.machine.floating)]
        for n, start in enumerate(starts):
            names += self._choose(n, start, wanted)
        names = [*(name for name in wanted if name in names), *(name for name in names if name not in wanted)]
        base = 6 if self.machine.floating else 0
        for record, cluster in zip(self.clusters, self.machine.clusters):
            for i, joint in enumerate(cluster.joints):
                t = self.tied[record['first'] + i]
                if t['independent'] >= 0:
                    t['coordinate'] = base + names.index(joint)
        return names

    def _choose(self, n, q, wanted):
        cluster = self.machine.clusters[n]
        _, K = self.jacobian(n, q)
        _, values, rows = np.linalg.svd(K)
        rank = int((values > RANK * values[0]).sum())
        null = rows[rank:].T                                    # (joints, freedom)
        freedom = null.shape[1]
        if freedom == 0:
            raise LoopError(f"loop '{cluster.name}' leaves its {len(cluster.joints)} joints no freedom")
        self._check_regular(n, q, null, rank)
        chosen, joints = [], cluster.joints
        first = [joints.index(name) for name in wanted if name in joints]
        # wanted joints in their order as far as they serve, others by how well they serve
        for i in first:
            if len(chosen) < freedom and self._serve(null, [*chosen, i]) > WELL_CONDITIONED:
                chosen.append(i)
        while len(chosen) < freedom:
            rest = [i for i in range(len(joints)) if i not in chosen]
            best = max(rest, key=lambda i: self._serve(null, [*chosen, i]))
            if self._serve(null, [*chosen, best]) <= WELL_CONDITIONED:
                raise LoopError(f"loop '{cluster.name}': no {freedom} of its joints fix the others at the initial "
                                'position')
            chosen.append(best)
        self.clusters[n]['freedom'] = freedom
        self.tied['independent'][self.slice(n)] = -1
        for column, i in enumerate(chosen):
            self.tied[self.slice(n)]['independent'][i] = column
        return [joints[i] for i in chosen]

    @staticmethod
    def _serve(null, rows):
        return np.linalg.svd(null[rows], compute_uv=False)[-1]

    def _check_regular(self, n, q, null, rank):
        """Refuse a start at which the rank of K is lower than nearby."""
        for direction in null.T:
            near = q + 1e-3 * direction
            for _ in range(5):
                phi, K = self.jacobian(n, near)
                near += np.linalg.lstsq(K, -phi, rcond=RANK)[0]
            values = np.linalg.svd(self.jacobian(n, near)[1], compute_uv=False)
            if int((values > RANK * values[0]).sum()) > rank:
                raise LoopError(f"loop '{self.machine.clusters[n].name}': the initial position is singular; "
                                'start elsewhere')

    def table(self, n, start):
        """Return closed poses (poses, joints) over the range of the independent joints, by continuation from start."""
        cluster, independent = self.machine.clusters[n], self.tied['independent'][self.slice(n)]
        columns = [int(np.flatnonzero(independent == i)[0]) for i in range(int(self.clusters[n]['freedom']))]
        count = min(max(3, round(POSES ** (1 / len(columns))) // 2 * 2 + 1), 129) if len(columns) < 6 else 1
        ranges = []
        for i in columns:
            joint, t = cluster.entries[cluster.joints[i]][0], self.tied[self.slice(n)][i]
            width = joint.upper - joint.lower
            t['turns'] = joint.type != 'prismatic' and width > 2.0 * math.pi - 1e-9
            if t['turns']:
                ranges.append((-math.pi, math.pi))
            elif math.isfinite(width):
                ranges.append((joint.lower - start[i], joint.upper - start[i]))
            else:
                ranges.append((-1.0, 1.0))
        sizes = [max((high - low) / count, 1e-9) for low, high in ranges]
        origin = (0,) * len(columns)
        poses, todo = {origin: start}, [origin]
        while todo and len(poses) < 2 * POSES:
            node = todo.pop(0)
            for axis, sign in itertools.product(range(len(columns)), (1, -1)):
                near = tuple(value + sign * (k == axis) for k, value in enumerate(node))
                offset = near[axis] * sizes[axis]
                if near in poses or not ranges[axis][0] - 1e-9 <= offset <= ranges[axis][1] + 1e-9:
                    continue
                closed = self._walk(n, poses[node], columns[axis], sign * sizes[axis])
                if closed is not None:
                    poses[near] = closed
                    todo.append(near)
        return np.array(list(poses.values()))

    def _walk(self, n, q, column, step):
        """Close one step further, along the tangent; None where the loop does not follow."""
        for _ in range(2):
            slopes = self.slopes(n, q)[:, self.tied['independent'][self.slice(n)][column]]
            if abs(slopes).max() > 1e4:
                return None
            predicted = q + 0.5 * step * slopes
            status, closed = self.close(n, predicted)
            # another assembly mode is far from the tangent
            if status != 0 or abs(closed - predicted).max() > 0.2 + 0.5 * abs(predicted - q).max():
                return None
            q = closed
        return q

    def loops(self, names, tables, gravity):
        """Return the `Loops` of coordinates `names` and tables of closed poses, with scratch of their own."""
        machine, records, tied = self.machine, self.clusters, self.tied
        base, modules = 6 if machine.floating else 0, len(machine.modules)
        own, member, cluster_of = (np.full(modules, -1) for _ in range(3))
        for n, record in enumerate(records):
            for j in range(record['first'], record['first'] + record['joints']):
                member[tied[j]['module']], cluster_of[tied[j]['module']] = j, n
        rows = {module.name: k for k, module in enumerate(machine.modules)}
        for k, module in enumerate(machine.modules):
            if cluster_of[k] < 0 and module.name in names:
                own[k] = base + names.index(module.name)
        most, freedom = int(records['joints'].max(initial=0)), int(records['freedom'].max(initial=0))
        poses = np.zeros((sum(map(len, tables)), most))
        slopes = np.zeros((len(poses), most, freedom))
        row = 0
        for n, table in enumerate(tables):
            records[n]['pose'], records[n]['poses'] = row, len(table)
            for q in table:
                G = self.slopes(n, q)
                poses[row, :len(q)], slopes[row, :len(q), :G.shape[1]] = q, G
                row += 1
        driven = np.array([rows[name] for name in machine.actuators], dtype=np.int64)
        stopped = np.zeros(modules, dtype=np.int64)
        stopped[driven] = 1
        stopped[[rows[name] for name in names]] = 1
        return Loops(
            records.copy(), tied.copy(), self.rows, self.losses, poses, slopes, base, np.array(gravity, dtype=float),
            driven, stopped, own, member, cluster_of, np.zeros(len(tied), TIED_WORK), self._scratch(),
            np.zeros((len(tied), freedom)), np.zeros((len(tied), most)), np.zeros((len(records), freedom, freedom)),
            np.zeros((len(records), freedom, 6)), np.zeros((len(records), freedom)), np.zeros((7, 6)),
            np.zeros((4, modules)))
