"""Loops that are no single triangle: grouped into clusters of joints that their closures couple."""
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...kernels.loops.records import CLUSTER_JOINT, DIRECTION, FRICTION_PIN, MIMIC, PIN, POSITION, ROW
from ..errors import LoopError, ModelError, NoTriangleError
from ..short_repr import short_repr
from .description import IDENTITY, SLIP_VELOCITY, Mimic, Pose
from .tree import Body
from .triangle import find_triangle

MIMIC_TOLERANCE = 1e-6      # of an initial position that follows another, as both are written with few digits [m, rad]


@dataclass(eq=False)
class Cluster:
    """Joints that closures, gears, racks and chains couple, on one base body."""

    base: Body
    closures: list
    mimics: list
    bodies: list                    # moved by the joints, parents first
    entries: dict                   # {joint name: (Joint, Pose of its frame in its parent body, Body)}
    owner: dict                     # {link name: Body}

    __repr__ = short_repr

    @property
    def name(self):
        return '+'.join(one.name for one in (*self.closures, *self.mimics))

    @property
    def lines(self):
        return [one.line for one in (*self.closures, *self.mimics)]

    @property
    def joints(self):
        return [body.joint for body in self.bodies]

    @cached_property
    def axes(self):
        """{body: (3, 3)} its kernel axes in its link axes: z is that of the joint that moves it."""
        return {self.base: np.eye(3)} | {body: frame_along(self.entries[body.joint][0].axis) for body in self.bodies}

    def ends(self, closure, first):
        """Return the two `End`s of a closure; first: row of CLUSTER_JOINT of the first joint."""
        ends = []
        for link, origin, axis in ((closure.parent, closure.parent_origin, closure.parent_axis),
                                   (closure.child, closure.child_origin, closure.child_axis)):
            body = self.owner[link]
            frame, turn = body.links[link] @ origin, self.axes[body].T
            axis = frame.rotation @ axis
            rotation = frame.rotation if closure.type in ('fixed', 'prismatic') else frame_along(axis)
            ends.append(End(body, self.row(body, first), Pose(turn @ rotation, turn @ frame.position), turn @ axis))
        return ends

    def row(self, body, first):
        """Return the row of CLUSTER_JOINT of the joint that moves a body, -1 for a body that none moves."""
        return first + self.bodies.index(body) if body in self.bodies else -1


class End(NamedTuple):
    """One end of a closure."""

    body: Body
    row: int                        # of CLUSTER_JOINT, -1: the base body
    frame: Pose                     # in the kernel axes of the body; z along the axis where orientation does not count
    axis: np.ndarray                # (3,) there


def sort_loops(entries, owner, description, actuators, coordinates=()):
    """Return ([Triangle], [Cluster]): closures that are triangles of their own, and the rest grouped."""
    closures, mimics = description.closures, [*description.mimics.values()]
    triangles, general = [], set()         # general: names of closures
    for closure in closures.values():
        if owner[closure.parent] is owner[closure.child]:
            raise LoopError(f"constraint '{closure.name}' (line {closure.line}): links '{closure.parent}' and "
                            f"'{closure.child}' are fixed to each other")
        try:
            triangle = find_triangle(entries, owner, closure)
        except NoTriangleError:
            general.add(closure.name)
            continue
        # a loop that another joint than its rod drives or describes has no closed form here
        others = {triangle.boom.name, triangle.barrel.name}
        closed_form = triangle.rod.name in actuators and not others.intersection((*actuators, *coordinates))
        if closed_form:
            triangles.append(triangle)
        else:
            general.add(closure.name)
    while True:
        clusters = _group([*(closures[name] for name in closures if name in general), *mimics], entries, owner)
        used = [joint for cluster in clusters for joint in cluster.joints]
        used += [name for triangle in triangles for name in triangle.joint_names]
        shared = [triangle for triangle in triangles if any(used.count(name) > 1 for name in triangle.joint_names)]
        if not shared:
            return triangles, clusters
        triangles = [triangle for triangle in triangles if triangle not in shared]
        general.update(triangle.name for triangle in shared)


def _group(couplings, entries, owner):
    """Return a cluster for each set of closures and mimics that share joints, directly or by others between."""
    clusters = []
    for coupling in couplings:
        new = _cluster([coupling], entries, owner)
        while touching := [cluster for cluster in clusters if set(cluster.joints) & set(new.joints)]:
            clusters = [cluster for cluster in clusters if cluster not in touching]
            joined = [one for cluster in (*touching, new) for one in (*cluster.closures, *cluster.mimics)]
            new = _cluster(sorted(joined, key=couplings.index), entries, owner)
        clusters.append(new)
    return sorted(clusters, key=lambda cluster: couplings.index((*cluster.closures, *cluster.mimics)[0]))


def _cluster(couplings, entries, owner):
    mimics = [one for one in couplings if isinstance(one, Mimic)]
    closures = [one for one in couplings if not isinstance(one, Mimic)]
    ends = [owner[link] for closure in closures for link in (closure.parent, closure.child)]
    # of a mimic both joints belong to the cluster: from the body that carries each to the body that it moves
    for joint, _, body in (entries[name] for mimic in mimics for name in (mimic.name, mimic.leader)):
        ends += [owner[joint.parent], body]
    for closure in closures:
        if closure.type != 'revolute' and (closure.damping or closure.friction):
            raise LoopError(f"constraint '{closure.name}' (line {closure.line}): <dynamics> on a closure of type "
                            f"'{closure.type}'; only one of type 'revolute', or a joint, has friction")
    paths = [body.path()[::-1] for body in ends]                # base first
    depth = 0
    while all(len(path) > depth + 1 for path in paths) and len({path[depth + 1] for path in paths}) == 1:
        depth += 1
    bodies = []
    for path in paths:
        bodies += [body for body in path[depth + 1:] if body not in bodies]
    bodies.sort(key=lambda body: len(body.path()))
    for body in bodies:
        if entries[body.joint][0].type == 'floating':
            raise LoopError(f"loop '{'+'.join(one.name for one in couplings)}' runs over the floating base "
                            f"'{body.link}' to '{body.parent.link}'; give that base joints instead")
    return Cluster(paths[0][depth], closures, mimics, bodies, entries, owner)


def follow(cluster, positions):
    """Add to {joint: position} what follows from them by the mimics of a cluster; where nothing does, leaders rest."""
    for mimic in reversed(cluster.mimics):
        if mimic.name in positions and mimic.leader not in positions:
            positions[mimic.leader] = (positions[mimic.name] - mimic.offset) / mimic.multiplier
    for mimic in cluster.mimics:
        joint = cluster.entries[mimic.leader][0]
        leads = positions.setdefault(mimic.leader, min(max(0.0, joint.lower), joint.upper))
        value = mimic.multiplier * leads + mimic.offset
        if abs(positions.setdefault(mimic.name, value) - value) > MIMIC_TOLERANCE:
            raise ModelError(f"initial position of '{mimic.name}' is {positions[mimic.name]:.9g}; it follows "
                             f"'{mimic.leader}' (line {mimic.line}), which starts at {leads:.9g}, so expected "
                             f'{value:.9g}')


def cluster_joint_records(cluster, first, module_of):
    """Return the CLUSTER_JOINT records of a cluster whose first joint is row `first`; module_of: {joint: module}."""
    records = np.zeros(len(cluster.bodies), CLUSTER_JOINT)
    for record, body in zip(records, cluster.bodies):
        joint, pose, _ = cluster.entries[body.joint]
        record['module'], record['parent'] = module_of[joint.name], cluster.row(body.parent, first)
        record['slides'] = joint.type == 'prismatic'
        parent = cluster.axes[body.parent].T
        record['rotation'] = (parent @ pose.rotation @ cluster.axes[body]).ravel()
        record['position'] = parent @ pose.position
        record['independent'] = -1
    return records


def row_records(cluster, first):
    """Return (ROW, FRICTION_PIN) records of a cluster."""
    rows, friction_pins = [], []
    for closure in cluster.closures:
        a, b = cluster.ends(closure, first)
        rows += _rows(closure.type, a, b)
        if closure.damping or closure.friction:
            friction_pin = np.zeros((), FRICTION_PIN)
            friction_pin['a'], friction_pin['b'] = a.row, b.row
            friction_pin['axis'], friction_pin['slip'] = a.axis, SLIP_VELOCITY
            friction_pin['damping'], friction_pin['friction'] = closure.damping, closure.friction
            friction_pins.append(friction_pin)
    for mimic in cluster.mimics:
        record = np.zeros((), ROW)
        record['kind'], record['ratio'], record['offset'] = MIMIC, mimic.multiplier, mimic.offset
        record['a'], record['b'] = (first + cluster.joints.index(name) for name in (mimic.leader, mimic.name))
        rows.append(record)
    return rows, friction_pins


def _rows(kind, a, b):
    """Return the ROW records of one closure between two `End`s."""
    (x, y, z), (bx, by, bz) = a.frame.rotation.T, b.frame.rotation.T
    aligned = [(x, by), (y, bz), (z, bx)]
    directions = {'revolute': [(x, b.axis), (y, b.axis)], 'universal': [(a.axis, b.axis)], 'spherical': [],
                  'fixed': aligned, 'prismatic': aligned}[kind]
    positions = plane_across(a.axis) if kind == 'prismatic' else (x, y, z)
    records = np.zeros(len(positions) + len(directions), ROW)
    records['a'], records['b'] = a.row, b.row
    records['pa'], records['pb'] = a.frame.position, b.frame.position
    for record, u in zip(records, positions):
        record['kind'], record['u'] = POSITION, u
    for record, (u, w) in zip(records[len(positions):], directions):
        record['kind'], record['u'], record['w'] = DIRECTION, u, w
    return list(records)


def orientation_check_records(cluster, first):
    """Return ROW records of directions that closures hold alike, where their equations would also hold turned over."""
    checks = []
    for closure in cluster.closures:
        a, b = cluster.ends(closure, first)
        pairs = []
        if closure.type == 'revolute':
            pairs = [(a.axis, b.axis)]
        elif closure.type in ('fixed', 'prismatic'):
            pairs = zip(a.frame.rotation.T[:2], b.frame.rotation.T[:2])
        for u, w in pairs:
            record = np.zeros((), ROW)
            record['kind'], record['u'], record['w'], record['a'], record['b'] = DIRECTION, u, w, a.row, b.row
            checks.append((closure, record))
    return checks


def frame_along(z):
    """Return a rotation (3, 3) whose third column is the unit vector z."""
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return np.column_stack((x, np.cross(z, x), z))


def plane_across(normal):
    """Return two unit vectors (2, 3) that make a right-handed frame with a normal."""
    return frame_along(normal).T[:2]


def planar_records(cluster, cluster_joints, first, friction_pins):
    """Return (normal, [PIN]) of a cluster that moves in one plane, else None.

    Completes its CLUSTER_JOINT records and those of its friction pins.
    """
    if cluster.mimics or any(closure.type not in ('revolute', 'spherical') for closure in cluster.closures):
        return None
    rest = {cluster.base: IDENTITY}             # poses in the base body at joint positions zero
    axes = []
    for body in cluster.bodies:
        joint, pose, _ = cluster.entries[body.joint]
        rest[body] = rest[body.parent] @ pose
        axes.append((joint.type != 'prismatic', rest[body].rotation @ joint.axis))
    normal = next((axis for turns, axis in axes if turns), None)
    if normal is None or any(abs(abs(axis @ normal) - turns) > 1e-9 or
                             (turns and np.linalg.norm(np.cross(axis, normal)) > 1e-9) for turns, axis in axes):
        return None
    plane = plane_across(normal)
    for record, body, (turns, axis) in zip(cluster_joints, cluster.bodies, axes):
        record['d'] = plane @ (rest[body].position - rest[body.parent].position)
        record['sign'], record['s'] = (np.sign(axis @ normal), (0.0, 0.0)) if turns else (0.0, plane @ axis)
    pins = []
    for closure in cluster.closures:
        pin = np.zeros((), PIN)
        for name, end in zip('ab', cluster.ends(closure, first)):
            pin[name] = end.row
            pin[f'p{name}'] = plane @ rest[end.body].rotation @ cluster.axes[end.body] @ end.frame.position
        pins.append(pin)
    for friction_pin in friction_pins:
        body = cluster.bodies[friction_pin['a'] - first] if friction_pin['a'] >= 0 else cluster.base
        friction_pin['axis'] = rest[body].rotation @ cluster.axes[body] @ friction_pin['axis']
        friction_pin['planar'] = 1
    return normal, pins
