"""Tie the joints of clusters: closed initial position, independent coordinates, a table of closed poses."""
import itertools
import math
from dataclasses import replace

import numpy as np

from ..kernels import closure as kernels
from ..kernels.closure import CLUSTER, LOSS, ROW, TIED, TIED_WORK, Loops
from .cluster import row_records, tied_records
from .errors import ActuationError, LoopClosureError, LoopError, UnknownNameError, did_you_mean

POSES = 1000            # closed poses of a cluster that are tabulated
WELL_CONDITIONED = 1e-3
GAP = 1e-9              # [m, 1] within which an overconstrained loop counts as closed


def tie(machine, clusters, entries, owner, hints, coordinates):
    """Return the machine with its `Loops`, coordinates and initial position."""
    module_of = {module.name: k for k, module in enumerate(machine.modules)}
    for k, module in enumerate(machine.modules):
        if module.triangle is None:
            module_of[module.joint.name] = k
    tied, rows, losses, records = [], [], [], []
    for cluster in clusters:
        record = np.zeros((), CLUSTER)
        record['first'], record['joints'] = sum(map(len, tied)), len(cluster.bodies)
        record['row'] = len(rows)
        tied.append(tied_records(cluster, entries, int(record['first']), module_of))
        more, pins = row_records(cluster, owner, int(record['first']))
        rows += more
        losses += pins
        record['rows'] = len(more)
        record['head'] = tied[-1]['module'].min()
        records.append(record)
    tied = np.concatenate([np.zeros(0, TIED), *tied])
    rows = np.array(rows, ROW) if rows else np.zeros(0, ROW)
    losses = np.array(losses, LOSS) if losses else np.zeros(0, LOSS)
    records = np.array(records, CLUSTER) if records else np.zeros(0, CLUSTER)
    closer = _Closer(records, tied, rows)

    wanted = _wanted(machine, coordinates, module_of)
    starts, names = [], []
    for n, cluster in enumerate(clusters):
        start = closer.start(n, cluster, entries, hints)
        names += closer.choose(n, cluster, start, wanted)
        starts.append(start)
    own_names = [module.name for k, module in enumerate(machine.modules) if k not in tied['module']]
    free = own_names + names
    order = [name for name in wanted if name in free] + [name for name in free if name not in wanted]
    if coordinates is not None and list(coordinates) != order:
        raise ActuationError(f'coordinates={list(coordinates)}: the machine has {len(free)} degrees of freedom; independent '
                             f'joints are for instance {order}')
    own = np.full(len(machine.modules), -1)
    for k, module in enumerate(machine.modules):
        if module.name in own_names:
            own[k] = order.index(module.name)
    for record, cluster in zip(records, clusters):
        for i, joint in enumerate(cluster.joints):
            t = tied[record['first'] + i]
            if t['independent'] >= 0:
                t['coordinate'] = order.index(joint)
    poses = []
    for n, cluster in enumerate(clusters):
        records[n]['pose'] = sum(map(len, poses))
        poses.append(closer.table(n, cluster, entries, starts[n]))
        records[n]['poses'] = len(poses[-1])
    most = int(records['joints'].max(initial=0))
    freedom = int(records['freedom'].max(initial=0))
    member, cluster_of = np.full(len(machine.modules), -1), np.full(len(machine.modules), -1)
    for n, record in enumerate(records):
        for j in range(record['first'], record['first'] + record['joints']):
            member[tied[j]['module']], cluster_of[tied[j]['module']] = j, n
    width = max((len(table[0]) for table in poses), default=0)
    table = np.zeros((sum(map(len, poses)), width))
    row = 0
    for part in poses:
        table[row:row + len(part), :part.shape[1]] = part
        row += len(part)
    loops = Loops(records, tied, rows, losses, table, own, member, cluster_of, np.zeros(len(tied), TIED_WORK),
                  np.zeros((int(records['rows'].max(initial=0)) + most, most + 1)), np.zeros((len(tied), freedom)),
                  np.zeros((len(tied), most)), np.zeros((len(records), freedom, freedom)),
                  np.zeros((len(records), freedom, 6)), np.zeros((len(records), freedom)),
                  np.zeros((4, len(machine.modules))))
    initial = np.zeros(len(order))
    for k in range(len(machine.modules)):
        if own[k] >= 0:
            initial[own[k]] = machine.initial[k]
    for record, start in zip(records, starts):
        for i in range(record['joints']):
            t = tied[record['first'] + i]
            if t['independent'] >= 0:
                initial[t['coordinate']] = start[i]
    return replace(machine, loops=loops, coordinates=tuple(order), initial=initial, clusters=tuple(clusters))


def _wanted(machine, coordinates, module_of):
    for name in coordinates or ():
        if name not in machine.joints:
            raise UnknownNameError(f"coordinate '{name}': no such joint{did_you_mean(name, machine.joints)}")
    return [*(coordinates or ()), *(name for name in machine.actuators if name not in (coordinates or ()))]


class _Closer:
    """Closes clusters in Python's hands: scratch of its own around the kernels of `closure`."""

    def __init__(self, clusters, tied, rows):
        self.clusters, self.tied, self.rows = clusters, tied, rows
        self.work = np.zeros(len(tied), TIED_WORK)
        most = int(clusters['joints'].max(initial=0))
        self.A = np.zeros((int(clusters['rows'].max(initial=0)) + most, most + 1))

    def slice(self, n):
        record = self.clusters[n]
        return slice(int(record['first']), int(record['first'] + record['joints']))

    def close(self, n, q):
        """Return (status, q) after Newton's method from q, the independent joints held."""
        self.work['q'][self.slice(n)] = q
        status = kernels.close_from(self.clusters, self.tied, self.rows, n, self.work, self.A)
        return status, self.work['q'][self.slice(n)].copy()

    def jacobian(self, n, q):
        """Return (phi, K) at q."""
        kept = self.tied['independent'].copy()
        freedom = int(self.clusters[n]['freedom'])
        self.tied['independent'][self.slice(n)] = -1
        self.clusters[n]['freedom'] = 0
        self.work['q'][self.slice(n)] = q
        kernels.linearise_at(self.clusters, self.tied, self.rows, n, self.work, self.A)
        self.tied['independent'] = kept
        self.clusters[n]['freedom'] = freedom
        m, joints = int(self.clusters[n]['rows']), int(self.clusters[n]['joints'])
        return -self.A[:m, joints].copy(), self.A[:m, :joints].copy()

    def start(self, n, cluster, entries, hints):
        """Return a closed position: the hints where they close, else the nearest that Newton's method finds."""
        q, given = [], []
        for name in cluster.joints:
            joint = entries[name][0]
            value = next((source[name] for source in hints if name in source), None)
            given.append(value is not None)
            if value is None:
                value = min(max(0.0, joint.lower), joint.upper)
            q.append(value)
        q = np.array(q, dtype=float)
        for _ in range(60):
            phi, K = self.jacobian(n, q)
            step = np.linalg.lstsq(K, -phi, rcond=1e-8)[0]
            step *= min(1.0, 0.3 / max(abs(step).max(), 1e-300))
            q += step
            if abs(step).max() < 1e-15 or (abs(phi).max() < 1e-13 and abs(step).max() < 1e-12):
                break
        phi, _ = self.jacobian(n, q)
        if abs(phi).max() > GAP:
            raise LoopClosureError(f"loop '{cluster.name}': does not close near its initial position; the smallest "
                                   f'residual found is {abs(phi).max():.3g} (m or 1)')
        return q

    def choose(self, n, cluster, q, wanted):
        """Set the independent joints of a cluster, `wanted` first; return their names."""
        _, K = self.jacobian(n, q)
        _, values, rows = np.linalg.svd(K)
        rank = int((values > 1e-7 * values[0]).sum())
        null = rows[rank:].T                                    # (joints, freedom)
        freedom = null.shape[1]
        if freedom == 0:
            raise LoopError(f"loop '{cluster.name}' leaves its {len(cluster.joints)} joints no freedom")
        self._check_regular(n, cluster, q, null, rank)
        chosen = []
        candidates = [cluster.joints.index(name) for name in wanted if name in cluster.joints]
        rest = [i for i in range(len(cluster.joints)) if i not in candidates]
        for pool in (candidates, rest):
            pool = list(pool)
            while pool and len(chosen) < freedom:
                scores = [np.linalg.svd(null[[*chosen, i]], compute_uv=False)[-1] for i in pool]
                # declared joints in their order as far as they serve, others by how well they serve
                best = int(np.argmax(scores)) if pool[0] in rest else 0
                if scores[best] > WELL_CONDITIONED:
                    chosen.append(pool[best])
                pool.pop(best)
        if len(chosen) < freedom:
            raise LoopError(f"loop '{cluster.name}': no {freedom} of its joints fix the others at the initial position")
        first = int(self.clusters[n]['first'])
        self.clusters[n]['freedom'] = freedom
        for column, i in enumerate(chosen):
            self.tied[first + i]['independent'] = column
        return [cluster.joints[i] for i in chosen]

    def _check_regular(self, n, cluster, q, null, rank):
        """Refuse a start at which the rank of K is lower than nearby."""
        for direction in null.T:
            near = q + 1e-3 * direction
            for _ in range(5):
                phi, K = self.jacobian(n, near)
                near += np.linalg.lstsq(K, -phi, rcond=1e-8)[0]
            values = np.linalg.svd(self.jacobian(n, near)[1], compute_uv=False)
            if int((values > 1e-7 * values[0]).sum()) > rank:
                raise LoopError(f"loop '{cluster.name}': the initial position is singular; start elsewhere")

    def table(self, n, cluster, entries, start):
        """Return closed poses (poses, joints) over the range of the independent joints, by continuation from start."""
        first, joints = int(self.clusters[n]['first']), [entries[name][0] for name in cluster.joints]
        independent = sorted((int(self.tied[first + i]['independent']), i) for i in range(len(joints))
                             if self.tied[first + i]['independent'] >= 0)
        columns = [i for _, i in independent]
        count = max(3, int(POSES ** (1 / len(columns))) // 2 * 2 + 1) if len(columns) < 6 else 1
        count = min(count, 129)
        steps = []
        for i in columns:
            joint, t = joints[i], self.tied[first + i]
            if math.isfinite(joint.lower) and math.isfinite(joint.upper):
                steps.append((joint.lower - start[i], joint.upper - start[i]))
            else:
                t['turns'] = joint.type != 'prismatic'
                reach = math.pi if t['turns'] else 1.0
                steps.append((-reach, reach))
        sizes = [max((high - low) / count, 1e-9) for low, high in steps]
        origin = (0,) * len(columns)
        poses, todo = {origin: start}, [origin]
        while todo and len(poses) < 2 * POSES:
            node = todo.pop(0)
            for axis, sign in itertools.product(range(len(columns)), (1, -1)):
                near = tuple(value + sign * (k == axis) for k, value in enumerate(node))
                offset = near[axis] * sizes[axis]
                if near in poses or not steps[axis][0] - 1e-9 <= offset <= steps[axis][1] + 1e-9:
                    continue
                closed = self._walk(n, poses[node], columns, axis, sign * sizes[axis])
                if closed is not None:
                    poses[near] = closed
                    todo.append(near)
        return np.array(list(poses.values()))

    def _walk(self, n, q, columns, axis, step):
        """Close one step further, in two halves; None where the loop does not follow."""
        for _ in range(2):
            moved = q.copy()
            moved[columns[axis]] += 0.5 * step
            status, closed = self.close(n, moved)
            if status != 0 or abs(closed - q).max() > 0.6:
                return None
            q = closed
        return q
