"""Loops that are no single triangle: grouped into clusters of joints that their closures couple."""
from dataclasses import dataclass

import numpy as np

from ...kernels.loops.records import CLUSTER_JOINT, DIRECTION, FRICTION_PIN, PIN, POSITION, ROW
from ..errors import LoopError, NoTriangleError
from .description import IDENTITY, Pose
from .tree import Body
from .triangle import find_triangle


@dataclass(eq=False)
class Cluster:
    """Joints that closures couple, on one base body."""

    base: Body
    closures: list
    bodies: list                    # moved by the joints, parents first
    entries: dict                   # {joint name: (Joint, Pose of its frame in its parent body, Body)}
    owner: dict                     # {link name: Body}

    @property
    def name(self):
        return '+'.join(closure.name for closure in self.closures)

    @property
    def joints(self):
        return [body.joint for body in self.bodies]


def sort_loops(entries, owner, closures, actuators, coordinates=()):
    """Return ([Triangle], [Cluster]): closures that are triangles of their own, and the rest grouped."""
    triangles, general = [], set()         # general: names of closures
    for closure in closures.values():
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
        clusters = _group([closures[name] for name in closures if name in general], entries, owner)
        used = [joint for cluster in clusters for joint in cluster.joints]
        used += [name for triangle in triangles for name in triangle.joint_names]
        shared = [triangle for triangle in triangles if any(used.count(name) > 1 for name in triangle.joint_names)]
        if not shared:
            return triangles, clusters
        triangles = [triangle for triangle in triangles if triangle not in shared]
        general.update(triangle.name for triangle in shared)


def _group(closures, entries, owner):
    """Return a cluster for each set of closures that share joints, directly or by others between."""
    clusters = [_cluster([closure], entries, owner) for closure in closures]
    merged = True
    while merged:
        merged = False
        for i, first in enumerate(clusters):
            for second in clusters[i + 1:]:
                if set(first.joints) & set(second.joints):
                    both = _cluster(first.closures + second.closures, entries, owner)
                    clusters = [both if other is first else other for other in clusters if other is not second]
                    merged = True
                    break
            if merged:
                break
    return clusters


def _cluster(closures, entries, owner):
    ends = [owner[link] for closure in closures for link in (closure.parent, closure.child)]
    for closure in closures:
        if owner[closure.parent] is owner[closure.child]:
            raise LoopError(f"constraint '{closure.name}' (line {closure.line}): links '{closure.parent}' and "
                            f"'{closure.child}' are fixed to each other")
        if closure.type != 'revolute' and (closure.damping or closure.friction):
            raise LoopError(f"constraint '{closure.name}' (line {closure.line}): <dynamics> on a closure of type "
                            f"'{closure.type}'; only one of type 'revolute', or a joint, has friction")
    paths = [body.path()[::-1] for body in ends]                # base first
    depth = 0
    while all(len(path) > depth + 1 for path in paths) and len({id(path[depth + 1]) for path in paths}) == 1:
        depth += 1
    bodies = []
    for path in paths:
        bodies += [body for body in path[depth + 1:] if body not in bodies]
    bodies.sort(key=lambda body: len(body.path()))
    for body in bodies:
        if entries[body.joint][0].type == 'floating':
            raise LoopError(f"loop '{'+'.join(closure.name for closure in closures)}' runs over the floating base "
                            f"'{body.link}' to '{body.parent.link}'; give that base joints instead")
    return Cluster(paths[0][depth], list(closures), bodies, entries, owner)


def cluster_joint_records(cluster, first, module_of):
    """Return the CLUSTER_JOINT records of a cluster whose first joint is row `first`; module_of: {joint: module}."""
    row, axes = {id(body): first + i for i, body in enumerate(cluster.bodies)}, _body_axes(cluster)
    records = np.zeros(len(cluster.bodies), CLUSTER_JOINT)
    for record, body in zip(records, cluster.bodies):
        joint, pose, _ = cluster.entries[body.joint]
        record['module'] = module_of[joint.name]
        record['parent'] = row.get(id(body.parent), -1)
        record['slides'] = joint.type == 'prismatic'
        parent = axes[id(body.parent)].T
        record['rotation'] = (parent @ pose.rotation @ axes[id(body)]).ravel()
        record['position'] = parent @ pose.position
        record['independent'] = -1
    return records


def _body_axes(cluster):
    """Return {id(body): rotation}: the kernels describe a body in axes whose z is that of the joint that moves it."""
    axes = {id(cluster.base): np.eye(3)}
    for body in cluster.bodies:
        z = cluster.entries[body.joint][0].axis
        x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
        x /= np.linalg.norm(x)
        axes[id(body)] = np.column_stack((x, np.cross(z, x), z))
    return axes


def row_records(cluster, first):
    """Return (ROW, FRICTION_PIN) records of a cluster."""
    row, axes = {id(body): first + i for i, body in enumerate(cluster.bodies)}, _body_axes(cluster)
    rows, friction_pins = [], []
    for closure in cluster.closures:
        a, b = cluster.owner[closure.parent], cluster.owner[closure.child]
        at = row.get(id(a), -1), row.get(id(b), -1)
        frames = (_frame(a.links[closure.parent] @ closure.parent_origin, closure.parent_axis, closure.type),
                  _frame(b.links[closure.child] @ closure.child_origin, closure.child_axis, closure.type))
        ends = axes[id(a)].T, axes[id(b)].T
        rows += [_turned(record, *ends) for record in _rows(closure.type, at, *frames)]
        if closure.type != 'revolute' and (closure.damping or closure.friction):
            raise LoopError(f"constraint '{closure.name}' (line {closure.line}): <dynamics> of a closure of type "
                            f"'{closure.type}' is not computed; it counts for type 'revolute', and on joints")
        if closure.type == 'revolute' and (closure.damping or closure.friction):
            friction_pin = np.zeros((), FRICTION_PIN)
            friction_pin['a'], friction_pin['b'] = at
            friction_pin['axis'], friction_pin['slip'] = ends[0] @ frames[0][1], 5e-3
            friction_pin['damping'], friction_pin['friction'] = closure.damping, closure.friction
            friction_pins.append(friction_pin)
    return rows, friction_pins


def _turned(record, a, b):
    """Return a ROW whose vectors the rotations a, b take to the axes of its bodies."""
    record['pa'], record['u'] = a @ record['pa'], a @ record['u']
    record['pb'], record['w'] = b @ record['pb'], b @ record['w']
    return record


def _frame(placed, axis, kind):
    """Return the closure frame in its body: z along the axis, x as the origin has it where orientation counts."""
    z = placed.rotation @ axis
    if kind in ('fixed', 'prismatic'):
        return placed, z
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return Pose(np.column_stack((x, np.cross(z, x), z)), placed.position), z


def _rows(kind, at, first, second):
    """Return the ROW records of one closure between the bodies `at`, whose frames are `first` and `second`."""
    (a, axis), (b, other) = first, second
    x, y, z = a.rotation.T
    positions, directions = [x, y, z], []
    if kind == 'revolute':
        directions = [(x, other), (y, other)]
    elif kind == 'universal':
        directions = [(axis, other)]
    elif kind in ('fixed', 'prismatic'):
        bx, by, bz = b.rotation.T
        directions = [(x, by), (y, bz), (z, bx)]
        if kind == 'prismatic':
            across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
            across /= np.linalg.norm(across)
            positions = [across, np.cross(axis, across)]
    records = np.zeros(len(positions) + len(directions), ROW)
    records['a'], records['b'] = at
    records['pa'], records['pb'] = a.position, b.position
    for record, u in zip(records, positions):
        record['kind'], record['u'] = POSITION, u
    for record, (u, w) in zip(records[len(positions):], directions):
        record['kind'], record['u'], record['w'] = DIRECTION, u, w
    return list(records)


def sense_records(cluster, first):
    """Return ROW records of directions that closures hold alike, where their equations would also hold turned over."""
    row, axes = {id(body): first + i for i, body in enumerate(cluster.bodies)}, _body_axes(cluster)
    senses = []
    for closure in cluster.closures:
        a, b = cluster.owner[closure.parent], cluster.owner[closure.child]
        frames = ((a.links[closure.parent] @ closure.parent_origin).rotation,
                  (b.links[closure.child] @ closure.child_origin).rotation)
        if closure.type == 'revolute':
            pairs = [(frames[0] @ closure.parent_axis, frames[1] @ closure.child_axis)]
        elif closure.type in ('fixed', 'prismatic'):
            pairs = list(zip(frames[0].T[:2], frames[1].T[:2]))
        else:
            continue
        for u, w in pairs:
            record = np.zeros((), ROW)
            record['kind'], record['u'], record['w'] = DIRECTION, u, w
            record['a'], record['b'] = row.get(id(a), -1), row.get(id(b), -1)
            senses.append((closure, _turned(record, axes[id(a)].T, axes[id(b)].T)))
    return senses


def closed_pins(cluster, first):
    """Yield (name, a, b, point, axis) of each closure about a point: joints that move its bodies, place in body A.

    axis is None where the closure leaves more turns free than one.
    """
    row, axes = {id(body): first + i for i, body in enumerate(cluster.bodies)}, _body_axes(cluster)
    for closure in cluster.closures:
        if closure.type in ('revolute', 'spherical', 'universal'):
            a, b = cluster.owner[closure.parent], cluster.owner[closure.child]
            frame = a.links[closure.parent] @ closure.parent_origin
            to_body = axes[id(a)].T
            axis = to_body @ frame.rotation @ closure.parent_axis if closure.type == 'revolute' else None
            yield closure.name, row.get(id(a), -1), row.get(id(b), -1), to_body @ frame.position, axis


def plane_across(normal):
    """Return two unit vectors (2, 3) that make a right-handed frame with a normal."""
    x = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(normal, x)])


def planar_records(cluster, cluster_joints, first, friction_pins):
    """Return (normal, [PIN]) of a cluster that moves in one plane, else None.

    Completes its CLUSTER_JOINT records and those of its friction pins.
    """
    if any(closure.type not in ('revolute', 'spherical') for closure in cluster.closures):
        return None
    rest = {id(cluster.base): IDENTITY}             # poses in the base body at joint positions zero
    axes = []
    for body in cluster.bodies:
        joint, pose, _ = cluster.entries[body.joint]
        rest[id(body)] = rest[id(body.parent)] @ pose
        axes.append((joint.type != 'prismatic', rest[id(body)].rotation @ joint.axis))
    normal = next((axis for turns, axis in axes if turns), None)
    if normal is None or any(abs(abs(axis @ normal) - turns) > 1e-9 or
                             (turns and np.linalg.norm(np.cross(axis, normal)) > 1e-9) for turns, axis in axes):
        return None
    plane = plane_across(normal)
    for record, body, (turns, axis) in zip(cluster_joints, cluster.bodies, axes):
        record['d'] = plane @ (rest[id(body)].position - rest[id(body.parent)].position)
        record['sign'], record['s'] = (np.sign(axis @ normal), (0.0, 0.0)) if turns else (0.0, plane @ axis)
    row = {id(body): first + i for i, body in enumerate(cluster.bodies)}
    pins = []
    for closure in cluster.closures:
        pin = np.zeros((), PIN)
        for end, link, origin in (('a', closure.parent, closure.parent_origin),
                                  ('b', closure.child, closure.child_origin)):
            body = cluster.owner[link]
            place = rest[id(body)]
            pin[end] = row.get(id(body), -1)
            pin[f'p{end}'] = plane @ ((place @ body.links[link] @ origin).position - place.position)
        pins.append(pin)
    for friction_pin in friction_pins:
        body = next((body for body in cluster.bodies if row[id(body)] == friction_pin['a']), cluster.base)
        friction_pin['axis'] = rest[id(body)].rotation @ _body_axes(cluster)[id(body)] @ friction_pin['axis']
        friction_pin['planar'] = 1
    return normal, pins
