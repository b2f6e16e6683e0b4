"""Clusters while a machine is loaded: closed initial position, independent coordinates, records for the kernels."""
import numpy as np

from ..kernels.loops import closure as kernels
from ..kernels.loops.records import (
    CLUSTER,
    CLUSTER_JOINT,
    CLUSTER_JOINT_WORK,
    COLUMN,
    DYAD,
    FRICTION_PIN,
    INDEX,
    PIN,
    ROW,
    Loops,
)
from ..kernels.rigid_body.mechanism import make_handle
from ..kernels.rigid_body.records import ENVIRONMENT
from ..model.errors import LoopClosureError, LoopError
from ..model.mechanism.cluster import (
    cluster_joint_records,
    follow,
    orientation_check_records,
    planar_records,
    row_records,
)
from .elimination import order_elimination, relate
from .parallelograms import parallel_sides
from .trust import convergence_distances

MIN_SINGULAR_VALUE = 1e-3           # of the rows of the null space of K that the independent joints select
RANK_TOLERANCE = 1e-7               # of a singular value of K against the largest
ROUGH_RANK_TOLERANCE = 1e-3         # the same where rounded numbers make dependent rows of K differ
MAX_GAP = 1e-9                      # residual up to which an overconstrained loop counts as closed [m, 1]
MAX_GAP_WITH_WARNING = 1e-4         # the same with a warning: numbers of a URDF are often rounded
MAX_MOVE = 1e-6                     # of a declared position of an actuator or coordinate, without a warning [m, rad]
MAX_MOVE_OF_PASSIVE = 0.01          # of another joint, whose positions are often written with few digits [m, rad]
START_RANGE = np.pi                 # starts of joints without limits lie within +- this [m, rad]
IDLE_ROW_TOLERANCE = 1e-9           # a row of K below this share of the largest at all poses constrains nothing


class ClusterBuilder:
    """Builds the clusters of a machine when it is loaded.

    Its `loops` have no pose tables yet; they can be closed and differentiated.
    """

    def __init__(self, machine, loops=None):
        """Start from a draft of a machine; loops: those of a machine that was assembled before, or None."""
        self.machine, self.warnings, self.handle = machine, [], None
        module_of = {module.name: k for k, module in enumerate(machine.modules)}
        clusters = np.zeros(len(machine.clusters), CLUSTER)
        cluster_joints, rows, friction_pins, pins, checks = [], [], [], [], []
        for record, cluster in zip(clusters, machine.clusters):
            first = sum(map(len, cluster_joints))
            cluster_joints.append(cluster_joint_records(cluster, first, module_of))
            record['head'] = cluster_joints[-1]['module'].min()
            more, of_pins = row_records(cluster, first)
            flat = planar_records(cluster, cluster_joints[-1], first, of_pins)
            if flat is not None:
                record['planar'], record['normal'] = 1, flat[0]
            pins.append(() if flat is None else flat[1])
            checks.append(() if flat is not None else orientation_check_records(cluster, first))
            rows.append(more)
            friction_pins += of_pins
        clusters['gap'] = MAX_GAP
        self._closures = [closure for found in checks for closure, _ in found]        # of each orientation check
        self._replace(
            clusters=clusters, cluster_joints=_pack(clusters, 'first', 'joints', cluster_joints, CLUSTER_JOINT),
            rows=_pack(clusters, 'row', 'rows', rows, ROW), pins=_pack(clusters, 'pin', 'pins', pins, PIN),
            orientation_checks=_pack(clusters, 'orientation_check', 'orientation_checks',
                                     [[check for _, check in found] for found in checks], ROW),
            friction_pins=np.array(friction_pins, FRICTION_PIN), columns=np.zeros(0, COLUMN),
            column_rows=np.zeros(0, INDEX))
        self.parallelograms = [()] * len(clusters)      # of each cluster, the names of their pins
        self._add_parallel_sides([] if loops is None else [
            loops.poses[record['pose'], :record['joints']] for record in loops.clusters])

    loops = property(lambda self: self.handle.arrays.loops, doc='`Loops`: views of the buffers of the kernels.')

    def _replace(self, **records):
        """Put records into buffers for the kernels, beside those that were there."""
        names = ('clusters', 'cluster_joints', 'rows', 'orientation_checks', 'friction_pins', 'pins', 'columns',
                 'column_rows')
        records = {name: getattr(self.loops, name) for name in names if self.handle} | records
        clusters, cluster_joints = records['clusters'], records['cluster_joints']
        relate(records['rows'], cluster_joints)
        most, dof = int(clusters['joints'].max(initial=0)), len(self.machine.modules) + 6
        width, n = int(clusters['rows'].max(initial=0)) + most, len(clusters)
        loops = Loops(
            **records, dyads=np.zeros(0, DYAD), poses=np.zeros((0, most)),
            slopes=np.zeros((0, most, most)), curves=np.zeros((0, most, most)), trust=np.zeros(0),
            lattice=np.zeros((0, most, 6)), cells=np.zeros((0, 2), INDEX), base=6 if self.machine.floating else 0,
            A=np.zeros((width, most + 1)), **_scratch(n, len(cluster_joints), most, most))
        self.handle = make_handle((dof + 1, dof, 0), self.machine.records, np.zeros((), ENVIRONMENT), loops)
        self.clusters, self.cluster_joints = self.loops.clusters, self.loops.cluster_joints

    def add_parallelograms(self, starts):
        """Add rows that keep opposite sides of parallelograms parallel; close `starts` again where they then do not."""
        self._add_parallel_sides(starts)
        for n, q in enumerate(starts):
            if self.parallelograms[n] and abs(self.jacobian(n, q)[0]).max() > MAX_GAP:
                starts[n], gap = self._close_nearby(n, q, ROUGH_RANK_TOLERANCE, slice(None))
                self._count_gap(n, gap)

    def _add_parallel_sides(self, starts):
        found = [parallel_sides(self, n, q) for n, q in enumerate(starts)]
        if not any(names for *_, names in found):
            return
        self.parallelograms = [names for *_, names in found]
        clusters = self.clusters.copy()
        rows = [[*self._rows(n), *more] for n, (more, _, _) in enumerate(found)]
        # the pins of parallel sides follow those of the closures, and do not count among them
        counts = clusters['pins'].copy()
        pins = [[*self.loops.pins[record['pin']:record['pin'] + record['pins']], *more]
                for record, (_, more, _) in zip(clusters, found)]
        records = {'rows': _pack(clusters, 'row', 'rows', rows, ROW), 'pins': _pack(clusters, 'pin', 'pins', pins, PIN)}
        clusters['pins'], clusters['parallels'] = counts, [len(more) for more, _, _ in found]
        self._replace(clusters=clusters, **records)

    def _rows(self, n):
        """Return the ROW records of cluster n."""
        return self.loops.rows[self.clusters[n]['row']:][:self.clusters[n]['rows']]

    def slice(self, n):
        record = self.clusters[n]
        return slice(int(record['first']), int(record['first'] + record['joints']))

    def close(self, n, q, rates=()):
        """Return (status, q, G, g) after Newton's method from q, the independent joints held and at `rates`."""
        part, freedom = self.slice(n), int(self.clusters[n]['freedom'])
        self.loops.work['q'][part] = q
        xd = np.zeros(len(self.machine.modules) + 6)
        for t in self.cluster_joints[part]:
            if len(rates) and t['independent'] >= 0:
                xd[t['coordinate']] = rates[t['independent']]
        status = kernels.close_from(self.handle.tree, self.handle.loops, n, xd)
        work = self.loops.work[part]
        return status, work['q'].copy(), self.loops.G[part, :freedom].copy(), work['g'].copy()

    def jacobian(self, n, q):
        """Return (phi, K) of all joints of a cluster at q, in space."""
        system, = self._systems(n, [q])
        return -system[:, -1], system[:, :-1]

    def jacobians(self, n, positions):
        """Return K (positions, rows, joints) of all joints of a cluster at joint positions (positions, joints)."""
        return self._systems(n, positions)[..., :-1]

    def _systems(self, n, positions):
        part, m, joints = self.slice(n), int(self.clusters[n]['rows']), int(self.clusters[n]['joints'])
        kept, freedom = self.cluster_joints[part].copy(), int(self.clusters[n]['freedom'])
        self.cluster_joints['independent'][part], self.clusters[n]['freedom'] = -1, 0
        self.cluster_joints['column'][part] = range(joints)
        systems = np.empty((len(positions), m, joints + 1))
        for system, q in zip(systems, positions):
            self.loops.work['q'][part] = q
            kernels.linearise_at(self.handle.tree, self.handle.loops, n)
            system[:] = self.loops.A[:m, :joints + 1]
        self.cluster_joints[part], self.clusters[n]['freedom'] = kept, freedom
        return systems

    def dependent_columns(self, n, q):
        """Return K of the dependent joints of a cluster at q."""
        return self.jacobian(n, q)[1][:, self.cluster_joints['independent'][self.slice(n)] < 0]

    def start(self, n, wanted):
        """Return a closed position of cluster n that holds declared positions as far as they close.

        wanted: actuators and coordinates, which hold their positions where passive joints declare others.
        """
        cluster, given = self.machine.clusters[n], {}
        for source in reversed(self.machine.hints):
            given |= {name: source[name] for name in cluster.joints if name in source}
        declared = dict(given)
        follow(cluster, given)
        limits = [(joint.lower, joint.upper) for joint, *_ in map(cluster.entries.get, cluster.joints)]
        begin = np.array([given.get(name, min(max(0.0, low), high))
                          for name, (low, high) in zip(cluster.joints, limits)])
        q, gap = self._close_well(n, begin, slice(None))
        if abs(q - begin)[[name in declared for name in cluster.joints]].max(initial=0.0) > MAX_GAP:
            q, gap = self._close_holding(n, begin, (q, gap), (declared, set(declared).intersection(wanted)))
        if gap > MAX_GAP_WITH_WARNING:
            raise LoopClosureError(f"loop '{cluster.name}': does not close near its initial position; the smallest "
                                   f'residual found is {gap:.3g} (m or 1)')
        self._orient_checks(n, q)
        self._count_gap(n, gap)
        self._warn_of_moved(cluster, dict(zip(cluster.joints, q)), declared, wanted)
        return q

    def _close_holding(self, n, begin, nearest, holds):
        """Return (q, gap) from `begin` with the first of `holds` at which cluster n closes, else `nearest`.

        holds: sets of names of joints that keep their positions.  The first position found with all joints within
        their limits is taken, else the first found.
        """
        cluster = self.machine.clusters[n]
        joints = [cluster.entries[name][0] for name in cluster.joints]
        lower, upper = (np.array([getattr(joint, side) for joint in joints]) for side in ('lower', 'upper'))
        low, high = np.where(np.isfinite(lower - upper), (lower, upper), ((-START_RANGE,), (START_RANGE,)))
        drawn = np.random.default_rng(0).uniform(low, high, (16, len(joints)))
        starts = [begin, nearest[0], 0.5 * (low + high), *drawn]
        closed = max(MAX_GAP, 2.0 * nearest[1] if nearest[1] < MAX_GAP_WITH_WARNING else 0.0)
        for held in holds:
            free, found = np.array([name not in held for name in cluster.joints]), []
            for start in starts if held and free.any() else ():
                q, gap = self._close_well(n, np.where(free, start, begin), free)
                if gap <= closed:
                    found.append((q, gap))
                    if ((q > lower - MAX_GAP) & (q < upper + MAX_GAP))[free].all():
                        return q, gap
            if found:
                return found[0]
        return nearest

    def _warn_of_moved(self, cluster, taken, declared, wanted):
        """Warn of declared positions that do not close.

        Beside actuators or coordinates, passive joints of the URDF only choose the mode, as those of a triangle do.
        """
        named = {*wanted, *self.machine.hints[0]} if set(declared).intersection(wanted) else declared
        moved = [f'{name} = {taken[name]:.6g}, not {value:.6g}' for name, value in declared.items()
                 if name in named and abs(taken[name] - value) > (MAX_MOVE if name in wanted else MAX_MOVE_OF_PASSIVE)]
        if moved:
            self.warnings.append(f"loop '{cluster.name}': no closed position was found at the initial positions "
                                 f'declared; it starts at {", ".join(moved)}')

    def _count_gap(self, n, gap):
        """Accept the residual of rounded numbers as closed, with a warning."""
        if gap <= max(MAX_GAP, self.clusters[n]['gap'] / 50.0):
            return
        self.clusters[n]['gap'] = 50.0 * gap
        self.warnings.append(f"loop '{self.machine.clusters[n].name}': closes only to {gap:.2g} (m or 1), as rounded "
                             'numbers do; it is closed by least squares')

    def _close_well(self, n, q, free):
        """Return (q, largest residual) of Newton's method; rows that rounded numbers make differ count once."""
        q, gap = self._close_nearby(n, q, ROUGH_RANK_TOLERANCE, free)
        refined, rest = self._close_nearby(n, q, RANK_TOLERANCE, free)
        return (refined, rest) if rest < MAX_GAP or gap > MAX_GAP_WITH_WARNING else (q, gap)

    def _close_nearby(self, n, q, rank, free):
        """Return (q, largest residual) of Newton's method on `free` joints; singular values below `rank` stay out."""
        q = q.copy()
        for _ in range(60):
            phi, K = self.jacobian(n, q)
            step = np.linalg.lstsq(K[:, free], -phi, rcond=rank)[0]
            step *= min(1.0, 0.3 / max(abs(step).max(), 1e-300))
            q[free] += step
            if abs(step).max() < 1e-13:
                break
        return q, float(abs(self.jacobian(n, q)[0]).max())

    def rank(self, n, values):
        """Return the rank of a K of cluster n from its singular values; those within rounding do not count."""
        return int((values > max(RANK_TOLERANCE * values[0], self.clusters[n]['gap'])).sum())

    def _orient_checks(self, n, q):
        """Set the signs of the orientation checks of cluster n at its start q; refuse frames not aligned there."""
        self.jacobian(n, q)             # puts the joints there
        record, work = self.clusters[n], self.loops.work
        for i in range(record['orientation_check'], record['orientation_check'] + record['orientation_checks']):
            check, closure = self.loops.orientation_checks[i], self._closures[i]
            u, w = (direction if j < 0 else work[j]['rotation'].reshape(3, 3) @ direction
                    for j, direction in ((check['a'], check['u']), (check['b'], check['w'])))
            if closure.type == 'revolute':
                check['w'] *= np.sign(u @ w)
            elif u @ w < 0.5:
                raise LoopClosureError(f"constraint '{closure.name}' (line {closure.line}): its frames are turned over "
                                       'against each other at the position found; start nearer to where they agree')

    def choose(self, starts, wanted):
        """Set the independent joints, `wanted` first; return the names of all coordinates in their order."""
        clustered_modules = set(self.cluster_joints['module'].tolist())
        names = [module.name for k, module in enumerate(self.machine.modules)
                 if k not in clustered_modules and not (k == 0 and self.machine.floating)]
        for n, start in enumerate(starts):
            names += self._choose(n, start, wanted)
        names = [*(name for name in wanted if name in names), *(name for name in names if name not in wanted)]
        columns, column_rows = order_elimination(self.clusters, self.cluster_joints, self.loops.rows)
        self._replace(columns=columns, column_rows=column_rows)
        base = 6 if self.machine.floating else 0
        for record, cluster in zip(self.clusters, self.machine.clusters):
            for i, joint in enumerate(cluster.joints):
                t = self.cluster_joints[record['first'] + i]
                if t['independent'] >= 0:
                    t['coordinate'] = base + names.index(joint)
        return names

    def _choose(self, n, q, wanted):
        cluster = self.machine.clusters[n]
        _, K = self.jacobian(n, q)
        _, values, rows = np.linalg.svd(K)
        rank = self.rank(n, values)
        null = rows[rank:].T                                    # (joints, freedom)
        freedom = null.shape[1]
        if freedom == 0:
            raise LoopError(f"loop '{cluster.name}' leaves its {len(cluster.joints)} joints no freedom")
        self._check_regular(n, q, null, rank)
        chosen, joints = [], cluster.joints
        first = [joints.index(name) for name in wanted if name in joints]
        # wanted joints first, in their order, where well conditioned; then the best conditioned of the others
        for i in first:
            if len(chosen) < freedom and self._smallest_singular_value(null, [*chosen, i]) > MIN_SINGULAR_VALUE:
                chosen.append(i)
        while len(chosen) < freedom:
            rest = [i for i in range(len(joints)) if i not in chosen]
            best = max(rest, key=lambda i: self._smallest_singular_value(null, [*chosen, i]))
            if self._smallest_singular_value(null, [*chosen, best]) <= MIN_SINGULAR_VALUE:
                raise LoopError(f"loop '{cluster.name}': no {freedom} of its joints fix the others at the initial "
                                'position')
            chosen.append(best)
        self.clusters[n]['freedom'] = freedom
        cluster_joints = self.cluster_joints[self.slice(n)]
        dependent = [i for i in range(len(joints)) if i not in chosen]
        cluster_joints['independent'] = -1
        for column, i in enumerate(dependent):
            cluster_joints['column'][i] = cluster_joints['pivot'][i] = column
        for column, i in enumerate(chosen):
            cluster_joints['independent'][i], cluster_joints['column'][i] = column, len(dependent) + 1 + column
        return [joints[i] for i in chosen]

    @staticmethod
    def _smallest_singular_value(null, rows):
        return np.linalg.svd(null[rows], compute_uv=False)[-1]

    def _check_regular(self, n, q, null, rank):
        """Refuse a start at which the rank of K is lower than nearby."""
        for direction in null.T:
            near = q + 1e-3 * direction
            for _ in range(5):
                phi, K = self.jacobian(n, near)
                near += np.linalg.lstsq(K, -phi, rcond=RANK_TOLERANCE)[0]
            values = np.linalg.svd(self.jacobian(n, near)[1], compute_uv=False)
            if self.rank(n, values) > rank:
                raise LoopError(f"loop '{self.machine.clusters[n].name}': the initial position is singular; "
                                'start elsewhere')

    def finish(self, tables):
        """Return the `Loops` with the tables of closed poses, and with scratch of their own."""
        loops, records, cluster_joints = self.loops, self.clusters.copy(), self.cluster_joints.copy()
        most, freedom = int(records['joints'].max(initial=0)), int(records['freedom'].max(initial=0))
        records['linear'] = [table.linear for table in tables]
        poses = _pack(records, 'pose', 'poses', [_padded(table.q, most) for table in tables], float)
        dyads = _pack(records, 'dyad', 'dyads', [table.dyads for table in tables], DYAD)
        cells = [np.where(table.cells < 0, table.cells, table.cells + record['pose'])
                 for record, table in zip(records, tables)]
        records['cell'] = np.cumsum([0, *map(len, cells)])[:-1]
        slopes = np.concatenate([_padded(table.G, most, freedom) for table in tables])
        curves = np.concatenate([_padded(table.curves, freedom * (freedom + 1) // 2, most) for table in tables])
        lattice = np.array([_padded(table.lattice[None], freedom, 6)[0] for table in tables])
        rows = self._without_idle_rows(records, tables)
        columns, column_rows = order_elimination(records, cluster_joints, rows)
        trust = np.concatenate([np.zeros(0), *(
            convergence_distances(self, n, table, cluster_joints) for n, table in enumerate(tables))])
        return loops._replace(
            clusters=records, cluster_joints=cluster_joints, rows=rows,
            dyads=dyads, columns=columns, column_rows=column_rows,
            poses=poses, slopes=slopes, curves=curves, trust=trust, lattice=lattice, cells=np.concatenate(cells),
            A=loops.A.copy(), **_scratch(len(records), len(cluster_joints), most, freedom))

    def _without_idle_rows(self, records, tables):
        """Return the constraint rows without those that constrain nothing at any pose, as planar loops have."""
        kept = []
        for n, table in enumerate(tables):
            sizes = abs(self.jacobians(n, table.q)).max(axis=(0, 2))
            kept.append(self._rows(n)[sizes > IDLE_ROW_TOLERANCE * sizes.max()])
        rows = _pack(records, 'row', 'rows', kept, ROW)
        relate(rows, self.cluster_joints)
        return rows


def _pack(clusters, first, count, parts, kind):
    """Return the records of all clusters in one array; set in CLUSTER records where each starts and how many it has."""
    clusters[count] = [len(part) for part in parts]
    clusters[first] = np.cumsum(clusters[count]) - clusters[count]
    return np.concatenate([np.array(list(part), kind) for part in parts]) if len(parts) else np.zeros(0, kind)


def _padded(array, *shape):
    """Return an array with zeros behind its last axes, which then have a shape."""
    return np.pad(array, [(0, 0), *((0, size - had) for size, had in zip(shape, array.shape[1:]))])


def _scratch(clusters, cluster_joints, most, freedom):
    """Return the fields of `Loops` that the kernels write, but for A.

    clusters, cluster_joints: their number.  most, freedom: largest number of joints and of independent joints of one.
    """
    return {'work': np.zeros(cluster_joints, CLUSTER_JOINT_WORK), 'G': np.zeros((cluster_joints, freedom)),
            'H': np.zeros((cluster_joints, most)),
            'alpha': np.zeros((clusters, freedom, freedom)), 'psi': np.zeros((clusters, freedom, 6)),
            'drive': np.zeros((clusters, freedom)), 'hint': np.full((2, cluster_joints), np.nan),
            'hinted': np.zeros(1, INDEX)}
