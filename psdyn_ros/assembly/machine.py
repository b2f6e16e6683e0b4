"""Draft to `Machine`: loops closed at the initial position, coordinates chosen, flat records complete."""
from dataclasses import dataclass, fields

import numpy as np

from ..kernels.loops.closure import close_machine
from ..kernels.rigid_body.entry import read_actuator_map
from ..kernels.rigid_body.mechanism import Handle, make_handle
from ..kernels.rigid_body.records import ENVIRONMENT
from ..kernels.runtime.status import OK
from ..model.errors import ActuationError, LoopClosureError, check_name
from ..model.mechanism.machine import Draft
from .clusters import ClusterBuilder
from .pose_table import pose_table


@dataclass(frozen=True, eq=False)
class Machine(Draft):
    """All that the API needs to know of a machine; complete, and never changed."""

    coordinates: tuple              # independent joints, in the order of x after a floating base
    start: np.ndarray               # (nx,) initial position
    handle: Handle                  # buffers for the kernels; copied by whoever calls them

    loops = property(lambda self: self.handle.arrays.loops, doc='`Loops`, None without clusters.')
    iterates = property(lambda self: bool(self.clusters), doc='Whether some loops are closed by iteration.')

    @property
    def triangles(self):
        """`Triangle`s: the loops of a cylinder and its boom."""
        return tuple(module.triangle for module in self.modules if getattr(module, 'triangle', None))

    def __repr__(self):
        return (f"<Machine '{self.name}': {len(self.modules)} modules, {len(self.clusters)} clusters, coordinates "
                f'{", ".join(self.coordinates)}>')

    def loop_joints(self, loop):
        """Return the names of the joints of a loop, by its name in `residuals`."""
        for one in self.triangles:
            if one.name == loop:
                return [joint.name for joint in (one.rod, one.boom, one.barrel)]
        return next(cluster.joints for cluster in self.clusters if cluster.name == loop)

    def module_of(self, joint):
        """Return the row of the module that moves a joint of `joints`."""
        return int(np.argwhere(self.records['joint'] == self.joints.index(joint))[0][0])


def assemble(draft, gravity, coordinates=None):
    """Return the `Machine` of a draft.

    gravity: (3,) in inertial axes.  coordinates: names of the independent joints, all of them, or None: the actuators
    first, then what is well conditioned.  Raises LoopError, LoopClosureError, ActuationError, UnknownNameError.
    """
    _check_names(draft, coordinates)
    builder = ClusterBuilder(draft)
    wanted = [*(coordinates or ()), *(name for name in draft.actuators if name not in (coordinates or ()))]
    starts = [builder.start(n, wanted) for n in range(len(draft.clusters))]
    builder.add_parallelograms(starts)
    names = builder.choose(starts, wanted)
    if coordinates is not None and list(coordinates) != names:
        raise ActuationError(f'coordinates={list(coordinates)}: expected {len(names)} independent joints; '
                             f'for instance {names}')
    loops = None
    if draft.clusters:
        loops = builder.finish([pose_table(builder, n, start) for n, start in enumerate(starts)])
    records = complete_records(draft, names, loops)
    shift = 1 if draft.floating else 0
    dof = len(names) + 6 * shift
    handle = make_handle((dof + shift, dof, len(draft.actuators)), records, _environment(draft, gravity), loops)
    start = _start(draft, records, loops, starts, dof + shift)
    warnings = (*draft.warnings, *builder.warnings, *_doubled_actuators(draft, names, handle, start))
    return Machine(**{field.name: getattr(draft, field.name) for field in fields(Draft)} | {
        'records': records, 'warnings': warnings}, coordinates=tuple(names), start=start, handle=handle)


def _check_names(draft, coordinates):
    for name in coordinates or ():
        check_name(name, draft.joints, f"coordinate '{name}': no such joint")
        if coordinates.count(name) > 1:
            raise ActuationError(f"coordinate '{name}' is listed twice")


def complete_records(draft, names, loops):
    """Return the MODULE records of a draft with the rows of its coordinates `names`."""
    records, shift = draft.records.copy(), 1 if draft.floating else 0
    records['position'] = records['coordinate'] = -1
    for k, module in enumerate(draft.modules):
        if k == 0 and shift:
            records['position'][k] = records['coordinate'][k] = 0
        elif module.name in names:
            records['coordinate'][k] = 6 * shift + names.index(module.name)
            records['position'][k] = records['coordinate'][k] + shift
    for n, cluster in enumerate(loops.clusters if loops else ()):
        for j in range(cluster['first'], cluster['first'] + cluster['joints']):
            k = loops.cluster_joints[j]['module']
            records['cluster'][k], records['cluster_joint'][k] = n, j
    return records


def _environment(draft, gravity):
    """Return the ENVIRONMENT of a base at rest."""
    environment = np.zeros((), ENVIRONMENT)
    # kernels take the frame of the floating joint for the inertial one
    environment['gravity'] = draft.floating.rotation.T @ gravity if draft.floating else gravity
    if not draft.floating:
        environment['acceleration'][:3] = -gravity
        environment['base'] = draft.base_inertia
    return environment


def _start(draft, records, loops, starts, size):
    start = np.zeros(size)
    if draft.floating:
        start[6] = 1.0
    for k, record in enumerate(records):
        if record['cluster'] < 0 and not (k == 0 and draft.floating):
            start[record['position']] = draft.initial[k]
    for cluster, q in zip(loops.clusters if loops else (), starts):
        for t, position in zip(loops.cluster_joints[cluster['first']:cluster['first'] + cluster['joints']], q):
            if t['independent'] >= 0:
                start[records['position'][t['module']]] = position
    return start


def _doubled_actuators(draft, names, handle, start):
    """Return a warning where some actuators follow from the others while a degree of freedom has none.

    Raises ActuationError where an actuator moves nothing.
    """
    if set(draft.actuators) <= set(names):
        return []
    A = np.empty((len(draft.actuators), int(handle.environment['dof'])))
    rest = np.zeros(A.shape[1])
    if close_machine(handle.tree, handle.loops, start, rest) != OK:
        raise LoopClosureError(f"'{draft.name}': its loops do not close at the initial position")
    read_actuator_map(handle.tree, handle.loops, A)
    A = A[:, A.shape[1] - len(names):]
    rank = np.linalg.matrix_rank(A, tol=1e-9) if A.size else 0
    if rank == min(A.shape):
        return []
    idle = [name for name, row in zip(draft.actuators, A) if abs(row).max() <= 1e-9]
    double = [name for row, name in enumerate(draft.actuators) if name not in idle
              and np.linalg.matrix_rank(np.delete(A, row, axis=0), tol=1e-9) == rank]
    text = (f"the {len(draft.actuators)} actuators of '{draft.name}' move only {rank} of its {A.shape[1]} degrees of "
            'freedom at the initial position; ')
    if idle:
        raise ActuationError(f'{text}{", ".join(idle)} moves nothing there')
    return [f'{text}{", ".join(double)} double one another']


def smallest_singular_values(machine, n, positions):
    """Return that of K of the dependent joints of cluster n for each of its joint positions (poses, joints)."""
    builder = ClusterBuilder(machine, machine.loops)
    builder.cluster_joints['independent'] = machine.loops.cluster_joints['independent']
    return np.array([np.linalg.svd(builder.dependent_columns(n, q), compute_uv=False)[-1] for q in positions])
