"""A tree of rigid bodies with cylinder triangles, by virtual power (Kane) in joint space.

The coordinates are joint angles: y (dof,) of booms and serial joints. Every joint of the tree depends on one of them;
barrel and rod of a triangle follow its boom by the law of cosines. Vectors are in base axes. Letters:

    y, yd, ydd  coordinates [rad, m], in the order of the actuators
    q, G, c     of a tree joint: position, slope dq/dy and curvature d2q/dy2 over its coordinate
    R, p        axes and origin of a body
    V, W        partial velocities (3, dof) of its origin, and partial angular velocities
    w, a, e     angular velocity; acceleration of the origin and angular acceleration where ydd = 0
"""

import math

import numpy as np

from ....model.errors import ModelError
from ....model.mechanism.description import IDENTITY
from .compiled import compiled

JOINT = np.dtype([('parent', 'i8'), ('coordinate', 'i8'), ('slides', 'i8'), ('rotation', 'f8', (3, 3)),
                  ('origin', 'f8', 3), ('axis', 'f8', 3), ('mass', 'f8'), ('com', 'f8', 3), ('inertia', 'f8', (3, 3))])
# in the plane of a triangle, axes of the link that carries boom and barrel; 0: the pin of the boom
TRIANGLE = np.dtype([('boom', 'i8'), ('barrel', 'i8'), ('rod', 'i8'), ('pin', 'f8', 3), ('rotation', 'f8', (3, 3)),
                     ('axis', 'f8', 3), ('boom_axis', 'f8', 3), ('eye', 'f8', 3), ('barrel_pin', 'f8', 3),
                     ('barrel_rotation', 'f8', (3, 3)), ('base', 'f8', 3), ('slide', 'f8', 3)])
GRAVITY = 9.81      # m/s^2
ALIGNED = 1e-9
BISECTIONS = 200


@compiled
def cross(a, b):
    """Return a x b."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


@compiled
def dot(a, b):
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@compiled
def turned(axis, angle, v):
    """Return a vector turned about an axis (Rodrigues)."""
    cosine, sine = math.cos(angle), math.sin(angle)
    return cosine * v + sine * cross(axis, v) + (1.0 - cosine) * dot(axis, v) * axis


@compiled
def apply(matrix, v):
    """Return matrix @ v of (3, 3) and (3,)."""
    out = np.empty(3)
    for i in range(3):
        out[i] = matrix[i, 0] * v[0] + matrix[i, 1] * v[1] + matrix[i, 2] * v[2]
    return out


@compiled
def product(A, B):
    """Return A @ B of (3, 3) each."""
    out = np.empty((3, 3))
    for i in range(3):
        for k in range(3):
            out[i, k] = A[i, 0] * B[0, k] + A[i, 1] * B[1, k] + A[i, 2] * B[2, k]
    return out


@compiled
def solve_triangle(t, angle):
    """Return stroke and barrel angle of a triangle at a boom angle: (s, s', s'', b, b', b''), primes by the angle.

    With r from the pin of the barrel to the eye, and r' = dr/d(angle): |r|^2 = (l + s)^2 + h^2 where l, h are the
    parts of `base` along and across the slide.
    """
    axis = t['axis']
    arm = apply(t['rotation'], turned(t['boom_axis'], angle, t['eye']))
    arm = arm - dot(arm, axis) * axis
    r = t['pin'] + arm - t['barrel_pin']
    r = r - dot(r, axis) * axis
    r1, r2 = cross(axis, arm), -arm
    along = dot(t['base'], t['slide'])
    across = dot(t['base'], t['base']) - along * along
    length = math.sqrt(dot(r, r) - across)
    s = length - along
    s1 = dot(r, r1) / length
    s2 = (dot(r1, r1) + dot(r, r2) - s1 * s1) / length
    zero = apply(t['barrel_rotation'], t['base'] + s * t['slide'])
    zero = zero - dot(zero, axis) * axis
    b = math.atan2(dot(axis, cross(zero, r)), dot(zero, r))
    u = turned(axis, b, apply(t['barrel_rotation'], t['slide']))
    square = dot(r, r)
    b1 = dot(axis, cross(r, r1 - s1 * u)) / square
    b2 = dot(axis, cross(r, r2 - b1 * cross(axis, r1) - s2 * u - s1 * b1 * cross(axis, u))) / square
    return s, s1, s2, b, b1, b2


@compiled
def solve_joints(joints, triangles, y):
    """Return q, G, c (joints,) of the tree."""
    n = joints.shape[0]
    q, G, c = np.empty(n), np.ones(n), np.zeros(n)
    for j in range(n):
        q[j] = y[joints[j]['coordinate']]
    for i in range(triangles.shape[0]):
        t = triangles[i]
        s, s1, s2, b, b1, b2 = solve_triangle(t, q[t['boom']])
        j = t['rod']
        q[j], G[j], c[j] = s, s1, s2
        j = t['barrel']
        q[j], G[j], c[j] = b, b1, b2
    return q, G, c


@compiled
def equations_of_motion(joints, triangles, y, yd):
    """Return M (dof, dof), h (dof,), potential energy, and q, G of the joints: M ydd + h = efforts on y."""
    n, dof = joints.shape[0], y.shape[0]
    q, G, c = solve_joints(joints, triangles, y)
    R, p = np.empty((n + 1, 3, 3)), np.zeros((n + 1, 3))
    R[n] = np.eye(3)
    V, W = np.zeros((n + 1, dof, 3)), np.zeros((n + 1, dof, 3))
    w, a, e = np.zeros((n + 1, 3)), np.zeros((n + 1, 3)), np.zeros((n + 1, 3))
    M, h, potential = np.zeros((dof, dof)), np.zeros(dof), 0.0
    partial, moment = np.empty((dof, 3)), np.empty((dof, 3))
    for j in range(n):
        joint = joints[j]
        k, of = joint['parent'], joint['coordinate']
        rate, bias = G[j] * yd[of], c[j] * yd[of] * yd[of]
        R0 = product(R[k], joint['rotation'])
        axis = apply(R0, joint['axis'])
        r = apply(R[k], joint['origin'])
        if joint['slides']:
            r = r + q[j] * axis
            R[j] = R0
        else:
            for column in range(3):
                R[j, :, column] = turned(axis, q[j], R0[:, column])
        p[j] = p[k] + r
        a[j] = a[k] + cross(e[k], r) + cross(w[k], cross(w[k], r))
        w[j], e[j], W[j] = w[k], e[k], W[k]
        for i in range(dof):
            V[j, i] = V[k, i] + cross(W[k, i], r)
        if joint['slides']:
            V[j, of] += G[j] * axis
            a[j] += 2.0 * rate * cross(w[k], axis) + bias * axis
        else:
            W[j, of] += G[j] * axis
            w[j] += rate * axis
            e[j] += rate * cross(w[k], axis) + bias * axis
        mass = joint['mass']
        com = apply(R[j], joint['com'])
        acceleration = a[j] + cross(e[j], com) + cross(w[j], cross(w[j], com))
        acceleration[2] += GRAVITY
        inertia = product(product(R[j], joint['inertia']), R[j].T)
        torque = apply(inertia, e[j]) + cross(w[j], apply(inertia, w[j]))
        potential += mass * GRAVITY * (p[j, 2] + com[2])
        for i in range(dof):
            partial[i] = V[j, i] + cross(W[j, i], com)
            moment[i] = apply(inertia, W[j, i])
            h[i] += mass * dot(partial[i], acceleration) + dot(W[j, i], torque)
        for i in range(dof):
            for l in range(dof):
                M[i, l] += mass * dot(partial[i], partial[l]) + dot(W[j, i], moment[l])
    return M, h, potential, q, G


class TriangleTree:
    """The records of a machine: joints in depth-first order, and triangles.

    description  `Description` of a machine on a base at rest, whose loops are all cylinder triangles
    actuators    names of the actuated joints, in the order of y and of the strokes

    `rows` (dof,) are the rows of the actuators among the joints. Raises ModelError for other machines.
    """

    def __init__(self, description, actuators):
        self.actuators = tuple(actuators)
        self.names = _depth_first(description)
        row = {name: i for i, name in enumerate(self.names)}
        child = {joint.child: joint.name for joint in description.joints.values()}
        self.joints = np.zeros(len(self.names), JOINT)
        frames, carrier = _moving_frames(description)
        triangles = [_triangle(description, closure, child) for closure in description.closures.values()]
        boom_of = {}
        self.triangles = np.zeros(len(triangles), TRIANGLE)
        for record, (boom, barrel, rod, closure) in zip(self.triangles, triangles):
            boom_of.update({barrel: boom, rod: boom, boom: boom})
            _fill_triangle(record, description, [row[name] for name in (boom, barrel, rod)], (boom, barrel, rod),
                           closure)
        moved = [boom_of.get(name, name) for name in self.actuators]
        for record, name in zip(self.joints, self.names):
            joint = description.joints[name]
            if boom_of.get(name, name) not in moved:
                raise ModelError(f"second plant: nothing drives joint '{name}'; expected triangles and driven joints")
            if joint.damping or joint.friction:
                raise ModelError(f"second plant: joint '{name}' has friction; expected it in the hydraulics")
            frame = frames[joint.parent] @ joint.origin
            record['parent'] = row[carrier[joint.parent]] if carrier[joint.parent] else len(self.names)
            record['coordinate'] = moved.index(boom_of.get(name, name))
            record['slides'] = joint.type == 'prismatic'
            record['rotation'], record['origin'], record['axis'] = frame.rotation, frame.position, joint.axis
        for link in description.links.values():
            if link.inertial and carrier[link.name]:
                _add_inertia(self.joints[row[carrier[link.name]]], link.inertial, frames[link.name])
        self.rows = np.array([row[name] for name in self.actuators])
        self.limits = [(description.joints[name].lower, description.joints[name].upper) for name in moved]
        self.stroke_limits = np.array([(description.joints[name].lower, description.joints[name].upper)
                                       for name in self.actuators])
        self.effort_limits = np.array([description.joints[name].effort for name in self.actuators])

    def strokes(self, y):
        """Return positions (dof,) of the actuators, and their slopes (dof,) by y."""
        q, G, _ = solve_joints(self.joints, self.triangles, y)
        return q[self.rows], G[self.rows]

    def coordinates(self, x):
        """Return y (dof,) of positions x of the actuators, by bisection within the limits of the booms."""
        y = np.array(x, dtype=float)
        for t in self.triangles:
            k = self.joints[t['boom']]['coordinate']
            low, high = self.limits[k]
            sign = math.copysign(1.0, solve_triangle(t, high)[0] - solve_triangle(t, low)[0])
            for _ in range(BISECTIONS):
                middle = 0.5 * (low + high)
                if sign * (solve_triangle(t, middle)[0] - x[k]) < 0.0:
                    low = middle
                else:
                    high = middle
            if abs(solve_triangle(t, low)[0] - x[k]) > 1e-9:
                raise ModelError(f"second plant: no boom angle within its limits for '{self.actuators[k]}' at {x[k]:g}")
            y[k] = low
        return y


def _depth_first(description):
    """Return names of all moving joints, parents first and branch by branch."""
    names = []
    children = {}
    for joint in description.joints.values():
        children.setdefault(joint.parent, []).append(joint)
    child_links = {joint.child for joint in description.joints.values()}

    def visit(link):
        for joint in children.get(link, ()):
            if joint.type not in ('revolute', 'continuous', 'prismatic', 'fixed'):
                raise ModelError(f"second plant: joint '{joint.name}' is {joint.type}; expected a base at rest")
            if joint.type != 'fixed':
                names.append(joint.name)
            visit(joint.child)

    visit(next(link for link in description.links if link not in child_links))
    return names


def _moving_frames(description):
    """Return {link: its pose in the frame of the moving joint that carries it} and {link: that joint, '' for base}."""
    child = {joint.child: joint for joint in description.joints.values()}
    frames, carrier = {}, {}

    def resolve(link):
        if link not in frames:
            joint = child.get(link)
            if joint is None:
                frames[link], carrier[link] = IDENTITY, ''
            elif joint.type != 'fixed':
                frames[link], carrier[link] = IDENTITY, joint.name
            else:
                resolve(joint.parent)
                frames[link], carrier[link] = frames[joint.parent] @ joint.origin, carrier[joint.parent]

    for link in description.links:
        resolve(link)
    return frames, carrier


def _triangle(description, closure, child):
    """Return (boom, barrel, rod, closure) joint names of a pin between a rod and a boom on the same link."""
    for rod_link, boom_link in ((closure.parent, closure.child), (closure.child, closure.parent)):
        rod, boom = (description.joints.get(child.get(link)) for link in (rod_link, boom_link))
        barrel = description.joints.get(child.get(rod.parent)) if rod else None
        if boom and barrel and barrel.parent == boom.parent and (closure.type, rod.type, boom.type, barrel.type) == (
                'revolute', 'prismatic', 'revolute', 'revolute'):
            return boom.name, barrel.name, rod.name, closure
    raise ModelError(f"second plant: closure '{closure.name}' is no triangle of boom, barrel and rod on one link")


def _fill_triangle(record, description, rows, names, closure):
    boom, barrel, rod = (description.joints[name] for name in names)
    on_rod, on_boom = closure.parent_origin, closure.child_origin
    if closure.parent != rod.child:
        on_rod, on_boom = on_boom, on_rod
    axis = boom.origin.rotation @ boom.axis
    if np.abs(axis - barrel.origin.rotation @ barrel.axis).max() > ALIGNED:
        raise ModelError(f"second plant: the axes of '{boom.name}' and '{barrel.name}' differ; expected a plane")
    record['boom'], record['barrel'], record['rod'] = rows
    record['pin'], record['rotation'], record['axis'] = boom.origin.position, boom.origin.rotation, axis
    record['boom_axis'], record['eye'] = boom.axis, on_boom.position
    record['barrel_pin'], record['barrel_rotation'] = barrel.origin.position, barrel.origin.rotation
    record['base'] = rod.origin.apply(on_rod.position)
    record['slide'] = rod.origin.rotation @ rod.axis


def _add_inertia(record, inertial, frame):
    """Add a link to the body of its joint."""
    com = frame.apply(inertial.com)
    inertia = frame.rotation @ inertial.inertia @ frame.rotation.T
    mass = record['mass'] + inertial.mass
    center = (record['mass'] * record['com'] + inertial.mass * com) / mass if mass else record['com']
    total = record['inertia'] + inertia
    for part, point in ((record['mass'], record['com']), (inertial.mass, com)):
        d = point - center
        total = total + part * (d @ d * np.eye(3) - np.outer(d, d))
    record['mass'], record['com'], record['inertia'] = mass, center, total
