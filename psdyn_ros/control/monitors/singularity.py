"""How near a machine is to a position in which its loops lose their grip.

Of a cylinder triangle the measure is the lever arm of the cylinder, |dx/dq| = L L1 |sin q| / |x + x0|, over the
longest that it has within the limits of its stroke: 0 at the toggle point, 1 where the transmission is best. Of loops
of other kinds it is the smallest singular value of the closure Jacobian of their dependent joints (rows in m and 1),
over the largest that this takes among the closed positions tabulated when the machine was loaded. Servo's condition
numbers 17 and 30 are about 0.06 and 0.03 on this scale; 0.15 to slow down and 0.05 to stop leave room for the braking.
"""

from operator import itemgetter
from weakref import WeakKeyDictionary, proxy

import numpy as np

from ...assembly.clusters import ClusterBuilder
from ...kernels.control import joint_space as kernels
from ...model.errors import StateError
from .check import HOLD, Check, Finding, Row, warning

SAMPLES = 200               # of a stroke, to find the longest lever
MAX_POSES = 60              # of a cluster, to find its best
SLOWEST = 0.1               # share of the speed of a reference near a singularity
AHEAD = 0.02                # s, by how much the reference is looked at in advance

_GAUGES = WeakKeyDictionary()


def toggle_measure(manipulator, x):
    """(measure, actuator) at x (nx,): the smallest of all loops, 0 singular, 1 best, and the joint that it concerns.

    (1.0, '') of a machine without loops; 0 where a loop does not close.
    """
    return toggle_gauge(manipulator)(x)


def toggle_gauge(manipulator):
    """The `ToggleGauge` of a machine, made once; for those who ask in every cycle."""
    gauge = _GAUGES.get(manipulator)
    if gauge is None:
        gauge = _GAUGES[manipulator] = ToggleGauge(manipulator)
    return gauge


class ToggleGauge:
    """What does not change with the state: the triangles as numbers, and the clusters with their best positions."""

    def __init__(self, manipulator):
        m = manipulator
        machine, records = m.machine, m.machine.records
        triangles, self._names = [], []
        for k, module in enumerate(machine.modules):
            b = records[k]
            if module.triangle is None:
                continue
            triangle = np.array((b['position'], b['x0'], b['e'], b['L'], b['L1'], 0.0), kernels.TRIANGLE)
            triangle['scale'] = 1.0 / max(kernels.lever_arm(triangle[()], stroke)
                                          for stroke in np.linspace(*_strokes(module), SAMPLES + 1))
            triangles.append(triangle)
            self._names.append(module.name)
        self._names.append('')      # of none
        self._triangles = np.array(triangles, kernels.TRIANGLE)
        self._clusters = _Clusters(m) if machine.clusters else None

    def __call__(self, x):
        """As `toggle_measure`."""
        x = np.ascontiguousarray(x, dtype=float)
        measure, k = kernels.least_transmission(self._triangles, x)
        found = measure, self._names[k]
        return found if self._clusters is None else min(found, self._clusters(x), key=itemgetter(0))

    def rows(self, x):
        """((N,) measures, N names) of positions x (N, nx)."""
        x = np.ascontiguousarray(x, dtype=float)
        measures, where = np.empty(len(x)), np.empty(len(x), np.int64)
        kernels.worst_transmission(self._triangles, x, measures, where)
        names = [self._names[k] for k in where]
        if self._clusters is not None:
            for k, row in enumerate(x):
                measure, joint = self._clusters(row)
                if measure < measures[k]:
                    measures[k], names[k] = measure, joint
        return measures, names


def _strokes(module):
    """Lowest and highest stroke at which a triangle closes within the limits of its joint."""
    low, high = module.assembly.reach
    lower, upper = max(low, module.joint.lower), min(high, module.joint.upper)
    return (lower, upper) if lower < upper else (low, high)


class _Clusters:
    """The closure Jacobians of loops that are no triangles."""

    def __init__(self, manipulator):
        m = manipulator
        machine, loops = m.machine, m.machine.loops
        self._manipulator = proxy(m)        # which owns this
        self._builder = ClusterBuilder(machine, loops)
        self._parts = []
        for n, (cluster, record) in enumerate(zip(machine.clusters, loops.clusters)):
            cluster_joints = loops.cluster_joints[record['first']:record['first'] + record['joints']]
            free = cluster_joints['independent'] >= 0
            if free.all() or record['linear']:
                continue            # a parallelogram transmits alike everywhere
            columns = [m.joints.index(name) for name in cluster.joints]
            actuated = [name for name in cluster.joints if name in m.actuators]
            poses = loops.poses[record['pose']:record['pose'] + record['poses'], :record['joints']]
            step = max(len(poses) // MAX_POSES, 1)
            best = max(self._smallest(n, ~free, q) for q in poses[::step])
            self._parts.append((n, columns, ~free, (actuated or cluster.joints)[0], 1.0 / best))

    def __call__(self, x):
        try:
            q = self._manipulator.joint_state(x)[1]
        except StateError:
            return 0.0, self._parts[0][3] if self._parts else ''
        found = [(min(self._smallest(n, dependent, q[columns]) * scale, 1.0), name)
                 for n, columns, dependent, name, scale in self._parts]
        return min(found, default=(1.0, ''))

    def _smallest(self, n, dependent, q):
        return np.linalg.svd(self._builder.jacobian(n, q)[1][:, dependent], compute_uv=False)[-1]


class SingularityCheck(Check):
    """How near the machine is to a singularity, and the speed that the reference may have there.

    `measure` is the distance, 1 best and 0 singular; `speed` the share of its speed that the reference may have.
    """

    rows = (
        warning('F13', 'singular_near', 'a transmission ratio below the first threshold',
                'the reference is slowed down'),
        Row('F13', 'singular', HOLD, 'a transmission ratio below the second threshold',
            'stops and holds; a reference that leads away is followed', probation=False),
    )

    def __init__(self, config, law):
        p = config.declaration.plausibility
        self._slow, self._stop = p.sigma_slow, p.sigma_stop
        self._gauge = toggle_gauge(config.machine)
        self.measure = self.speed = 1.0

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if not inputs.under_law:
            return None
        x = inputs.x
        self.measure, joint = self._gauge(x)
        self.speed = 1.0
        if self.measure >= self._slow:
            return ()
        text = f'{joint} is at {self.measure:.3g} of its best transmission'
        near = Finding('singular_near', text)
        if not self._gauge(x + AHEAD * inputs.reference_rate)[0] < self.measure:
            return (near,)
        self.speed = max(SLOWEST, (self.measure - self._stop) / (self._slow - self._stop))
        return (near, Finding('singular', text)) if self.measure < self._stop else (near,)
