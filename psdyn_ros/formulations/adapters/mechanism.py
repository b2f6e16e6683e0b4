"""
A URDF description as bodies, joints and closures, with what all formulations need of its kinematics.

Conventions: vectors in inertial axes and at the inertial origin unless something else is said.  u (nv,) are the rates
of the open tree: (v, w) of a floating base at its origin in its own axes, then the joints in the order of
`Mechanism.joints`.  Independent rates xd (dof,), u = G xd, du/dt = G xdd + Gdot xd.  SI units.

The closures are rows K u = 0 on the relative twist (w, v) of the two bodies at the closure point.  Functions of a
`Posture` accept complex numbers: rates along a motion are complex steps (`Mechanism.moved`), exact to rounding.
"""
from typing import NamedTuple

import numpy as np

from ...model.errors import LoopClosureError
from ...model.mechanism.description import IDENTITY, SLIP_VELOCITY, Pose
from ...model.mechanism.tree import build_tree
from ..screws import hat
from ..titop.dual_vectors import rotation_vector

STEP = 1e-30        # of the complex-step derivative
CLOSED = 1e-8       # gap [m and rad] that is left where Newton's method has converged
MAX_STEPS = 50
LONGEST_STEP = 0.2  # [m and rad]


class DoesNotApply(Exception):
    """A formulation does not cover a machine; the text says why."""


class Body(NamedTuple):
    """What moves as one, in the frame of `link`, the child link of `joint`."""

    link: str
    parent: int
    joint: object
    """`model.description.Joint`, None for the base."""
    place: Pose
    """Of the joint frame in the parent body."""
    mass: float
    center: np.ndarray
    """(3,) [m]"""
    inertia: np.ndarray
    """(3, 3) about the centre [kg m^2]."""


class End(NamedTuple):
    """One side of a closure: a frame and an axis on a body."""

    body: int
    frame: Pose
    axis: np.ndarray
    """(3,) in axes of the body."""


class Closure(NamedTuple):
    name: str
    kind: str
    a: End
    b: End
    damping: float
    friction: float


class Posture(NamedTuple):
    """A mechanism in a position."""

    base: Pose
    """Of the floating base; identity where the base is fixed."""
    q: np.ndarray
    """(joints,) [rad or m]."""
    R: np.ndarray
    """(bodies, 3, 3), axes of the bodies."""
    p: np.ndarray
    """(bodies, 3), their origins [m]."""
    columns: np.ndarray
    """(6, nv): what each rate adds to the twist (w, v) at the inertial origin of the bodies that it moves."""
    G: np.ndarray
    """(nv, dof)"""


class Mechanism:
    """
    A machine of a `Description`.

    coordinates: names of the independent joints in the order of x; actuators: names in the order of the efforts;
    gravity (3,) [m/s^2].  A floating base has the first six rates and the first seven numbers of x (position,
    quaternion x y z w, in the frame of its joint).
    """

    def __init__(self, description, coordinates, actuators, gravity):
        self.gravity = np.asarray(gravity, float)
        base, owner = build_tree(description)
        self.bodies, self.links, self.floating = [], {}, None
        index, todo = {}, [(base, -1, None, IDENTITY)]
        while todo:
            body, parent, joint, place = todo.pop(0)
            index[id(body)] = i = len(self.bodies)
            self.bodies.append(Body(body.link, parent, joint, place, *_inertial(description, body)))
            self.links |= {name: (i, pose) for name, pose in body.links.items()}
            if joint is not None and joint.type == 'floating':
                self.floating = i
            todo += [(child, i, joint, placed) for joint, placed, child in body.joints]
        hinges = [(i, body.joint) for i, body in enumerate(self.bodies)
                  if body.joint is not None and i != self.floating]
        self.joints = tuple(joint.name for _, joint in hinges)
        self.hinges = tuple(hinges)
        self.free = 0 if self.floating is None else 6
        self.nv = self.free + len(self.joints)
        self.coordinates = tuple(name for name in coordinates if name in self.joints)
        self.dof = self.free + len(self.coordinates)
        self.actuators = tuple(actuators)
        self.row = {name: self.free + j for j, name in enumerate(self.joints)}  # of u
        self.independent = np.array([*range(self.free), *(self.row[name] for name in self.coordinates)], int)
        self.dependent = np.setdiff1d(np.arange(self.nv), self.independent)
        self.driven = np.array([self.row[name] for name in self.actuators], int)
        self.moves = self._moves()
        self.closures = tuple(self._closure(closure) for closure in description.closures.values())
        self.mimics = tuple(description.mimics.values())
        self._mimic_rows = np.zeros((len(self.mimics), self.nv))
        for row, mimic in zip(self._mimic_rows, self.mimics):
            row[self.row[mimic.name]], row[self.row[mimic.leader]] = 1.0, -mimic.multiplier

    def _moves(self):
        """Return (bodies, nv): which rates move which bodies."""
        moves = np.zeros((len(self.bodies), self.nv), bool)
        column = {i: self.free + j for j, (i, _) in enumerate(self.hinges)}
        for i, body in enumerate(self.bodies):
            if body.parent >= 0:
                moves[i] = moves[body.parent]
            if i == self.floating:
                moves[i, :6] = True
            elif i in column:
                moves[i, column[i]] = True
        return moves

    def _closure(self, closure):
        ends = []
        for link, origin, axis in ((closure.parent, closure.parent_origin, closure.parent_axis),
                                   (closure.child, closure.child_origin, closure.child_axis)):
            body, pose = self.links[link]
            frame = pose @ origin
            ends.append(End(body, frame, frame.rotation @ axis))
        return Closure(closure.name, closure.type, *ends, closure.damping, closure.friction)

    # --- position

    def posture(self, x, guess):
        """
        Return the closed `Posture` at x, in the assembly mode of guess {joint: position} of all joints.

        Raises LoopClosureError where Newton's method in the dependent joints leaves a gap.
        """
        x = np.asarray(x, float)
        base = IDENTITY
        if self.free:
            base, x = self.bodies[self.floating].place @ _pose_of(x[:7]), x[7:]
        q = np.array([guess[name] for name in self.joints], float)
        q[self.independent[self.free:] - self.free] = x
        return self._posture(base, self._closed(base, q))

    def _closed(self, base, q):
        """Newton's method on all rows by least squares: those of planar loops are redundant."""
        depends = self.dependent
        best, smallest = q, np.inf
        for _ in range(MAX_STEPS if depends.size else 0):
            posture = self._place(base, q)
            gap = self.gaps(posture)
            if not np.abs(gap).max() < smallest:
                break
            best, smallest = q, np.abs(gap).max()
            step = np.linalg.lstsq(self.closure_rows(posture)[:, depends], -gap, rcond=1e-9)[0]
            q = q.copy()
            q[depends - self.free] += step * min(1.0, LONGEST_STEP / max(np.abs(step).max(), LONGEST_STEP))
        if depends.size and not smallest < CLOSED:
            # what the recursion projects, within its tolerance of rounded axes, is no loop for the formulations
            raise LoopClosureError(f'the loops close up to a gap of {smallest:.3g} (m or rad) only; expected '
                                   f'{CLOSED:g}, that is pin axes that are parallel to rounding')
        return best

    def placed(self, q):
        """Return the `Posture` at joint positions q (joints,), base at the origin, loops open: G is None."""
        return self._place(IDENTITY, q)

    def _posture(self, base, q):
        posture = self._place(base, q)
        return posture._replace(G=self.linkage(posture))

    def _place(self, base, q):
        """Return the `Posture` without G at any joint positions, complex ones too."""
        kind = np.result_type(base.position, base.rotation, q)
        n = len(self.bodies)
        R, p, columns = np.zeros((n, 3, 3), kind), np.zeros((n, 3), kind), np.zeros((6, self.nv), kind)
        R[0] = np.eye(3)
        if self.floating is not None:
            R[self.floating], p[self.floating] = base.rotation, base.position
            columns[3:, :3] = columns[:3, 3:6] = base.rotation
            columns[3:, 3:6] = np.cross(base.position, base.rotation, axisb=0).T
        for j, (i, joint) in enumerate(self.hinges):
            parent, place = self.bodies[i].parent, self.bodies[i].place
            R[i] = R[parent] @ place.rotation
            p[i] = p[parent] + R[parent] @ place.position
            axis = R[i] @ joint.axis
            if joint.type == 'prismatic':
                p[i] = p[i] + axis * q[j]
                columns[3:, self.free + j] = axis
            else:
                R[i] = R[i] @ turn(joint.axis, q[j])
                columns[:3, self.free + j] = axis
                columns[3:, self.free + j] = np.cross(p[i], axis)
        return Posture(base, q, R, p, columns, None)

    def moved(self, posture, u):
        """Return the `Posture` a complex step along u (nv,): Im of a function of it, over `STEP`, is its rate."""
        w, turned = posture.base, posture.base.rotation
        base = w if not self.free else Pose(turned @ (np.eye(3) + 1j * STEP * hat(u[3:6])),
                                            w.position + 1j * STEP * turned @ u[:3])
        return self._posture(base, posture.q + 1j * STEP * u[self.free:])

    # --- closures

    def _rows(self, closure, posture):
        """Return point (3,), angular (k, 3) and linear (l, 3) directions in which the relative twist is none."""
        a, b = closure.a, closure.b
        point = posture.p[b.body] + posture.R[b.body] @ b.frame.position
        frame, other = posture.R[a.body] @ a.frame.rotation, posture.R[b.body] @ b.axis
        axes = across(a.axis) @ posture.R[a.body].T             # two that are normal to the axis of a
        none = np.zeros((0, 3))
        # d/dt of (e . z) is the relative angular velocity times (z x e)
        angular, linear = {'revolute': (np.cross(other, axes), frame.T), 'spherical': (none, frame.T),
                           'universal': (np.cross(other, posture.R[a.body] @ a.axis)[None], frame.T),
                           'prismatic': (frame.T, axes), 'fixed': (frame.T, frame.T)}[closure.kind]
        return point, angular, linear

    def twist_map(self, posture, body, point):
        """Return (6, nv): u to the twist (w, v) of a body at a point (3,)."""
        part = posture.columns * self.moves[body]
        return np.vstack((part[:3], part[3:] + np.cross(part[:3], point, axisa=0).T))

    def closure_rows(self, posture):
        """Return K (rows, nv)."""
        rows = [np.zeros((0, self.nv))]
        for closure in self.closures:
            point, angular, linear = self._rows(closure, posture)
            relative = self.relative_twist(closure, posture, point)
            rows += [angular @ relative[:3], linear @ relative[3:]]
        return np.vstack((*rows, self._mimic_rows))

    def relative_twist(self, closure, posture, point):
        """Return (6, nv): u to the twist (w, v) of b relative to a at a point."""
        return (self.twist_map(posture, closure.b.body, point) - self.twist_map(posture, closure.a.body, point))

    def closure_wrenches(self, posture):
        """Return (closure, point, W (6, rows)) of each closure: wrenches (m, f) by a on b that do no work."""
        wrenches = []
        for closure in self.closures:
            point, angular, linear = self._rows(closure, posture)
            W = np.zeros((6, len(angular) + len(linear)))
            W[:3, :len(angular)], W[3:, len(angular):] = angular.T, linear.T
            wrenches.append((closure, point, W))
        return wrenches

    def gaps(self, posture):
        """Return (rows,), what the rows of K are the rates of."""
        gaps = [np.zeros(0)]
        for closure in self.closures:
            a, b = closure.a, closure.b
            point, _, linear = self._rows(closure, posture)
            frame = posture.R[a.body] @ a.frame.rotation
            axis, other = posture.R[a.body] @ a.axis, posture.R[b.body] @ b.axis
            if closure.kind == 'revolute':
                gaps.append(across(a.axis) @ posture.R[a.body].T @ other)
            elif closure.kind == 'universal':
                gaps.append([axis @ other])
            elif closure.kind in ('prismatic', 'fixed'):
                # its sine would be none at half a turn too
                gaps.append(rotation_vector(frame.T @ posture.R[b.body] @ b.frame.rotation))
            gaps.append(linear @ (point - posture.p[a.body] - posture.R[a.body] @ a.frame.position))
        gaps.append(self._mimic_rows[:, self.free:] @ posture.q - [mimic.offset for mimic in self.mimics])
        return np.concatenate(gaps)

    def senses(self, posture):
        """Return for each revolute closure whether its axes are parallel (1.0) or opposed (-1.0)."""
        return np.array([np.sign((posture.R[closure.a.body] @ closure.a.axis)
                                 @ (posture.R[closure.b.body] @ closure.b.axis))
                         for closure in self.closures if closure.kind == 'revolute'])

    def linkage(self, posture):
        """Return G (nv, dof) from as many rows of K as there are dependent rates."""
        G = np.zeros((self.nv, self.dof), posture.columns.dtype)
        G[self.independent, range(self.dof)] = 1.0
        if self.dependent.size:
            K = self.closure_rows(posture)
            rows = independent_rows(K[:, self.dependent].real, self.dependent.size)
            G[self.dependent] = -np.linalg.solve(K[np.ix_(rows, self.dependent)], K[np.ix_(rows, self.independent)])
        return G

    def bias_acceleration(self, posture, xd):
        """Return Gdot xd (nv,)."""
        return self.moved(posture, posture.G @ xd).G.imag @ xd / STEP

    def regularity(self, posture):
        """Return the smallest singular value of K for the dependent rates, relative to the largest; 1 without loops."""
        if not self.dependent.size:
            return 1.0
        values = np.linalg.svd(self.closure_rows(posture)[:, self.dependent], compute_uv=False)
        return values[self.dependent.size - 1] / values[0]

    # --- forces

    def actuation(self, posture):
        """Return A (actuators, dof): rates of the actuators over xd; efforts f give A' f on the coordinates."""
        return posture.G[self.driven]

    def losses(self, posture):
        """Return [(L (k, nv), damping, friction)]: slip rates L u that lose energy, of joints and of closing pins."""
        found = [(np.eye(self.nv)[self.row[joint.name]][None], joint.damping, joint.friction)
                 for _, joint in self.hinges]
        for closure in self.closures:
            if closure.kind in ('revolute', 'spherical'):
                point, _, _ = self._rows(closure, posture)
                spin = self.relative_twist(closure, posture, point)[:3]
                axis = posture.R[closure.a.body] @ closure.a.axis
                found.append((axis[None] @ spin if closure.kind == 'revolute' else spin, closure.damping,
                              closure.friction))
        return [loss for loss in found if loss[1] or loss[2]]

    def friction(self, posture, u):
        """Return Q (nv,): the efforts on the rates that overcome damping and regularised Coulomb friction."""
        total = np.zeros(self.nv)
        for L, damping, coulomb in self.losses(posture):
            total += L.T @ friction_effort(L @ u, damping, coulomb)
        return total

    def external(self, posture, wrenches):
        """Return Q (nv,): the power of wrenches {link: (f, m)}, at the link's origin in its axes, over u."""
        total = np.zeros(self.nv)
        for link, (f, m) in wrenches.items():
            body, pose = self.links[link]
            R = posture.R[body]
            J = self.twist_map(posture, body, posture.p[body] + R @ pose.position)
            total += np.concatenate((R @ pose.rotation @ m, R @ pose.rotation @ f)) @ J
        return total


def friction_effort(rate, damping, coulomb):
    """Return the effort (k,) along a slip rate (k,): damping v + coulomb tanh(|v| / v_s) v / |v|."""
    speed = np.linalg.norm(rate)
    return rate * (damping + (coulomb * np.tanh(speed / SLIP_VELOCITY) / speed if speed else 0.0))


def independent_rows(K, count):
    """Return the indices of `count` rows of K, largest first after projection on what is left (Gram-Schmidt)."""
    left, rows = K.copy(), []
    for _ in range(count):
        size = np.linalg.norm(left, axis=1)
        row = int(np.argmax(size))
        if not size[row] > 1e-9 * np.abs(K).max():
            raise LoopClosureError(f'the closures fix {len(rows)} of {count} dependent joints')
        direction = left[row] / size[row]
        left = left - np.outer(left @ direction, direction)
        rows.append(row)
    return rows


def turn(axis, angle):
    """Return the rotation (3, 3) by an angle [rad] about a unit axis (3,)."""
    K = hat(axis)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def across(axis):
    """Return two unit vectors (2, 3) normal to an axis and to each other."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first = first / np.linalg.norm(first)
    return np.array((first, np.cross(axis, first)))


def _pose_of(seven):
    x, y, z, w = seven[3:] / np.linalg.norm(seven[3:])
    U = hat((x, y, z))
    return Pose(np.eye(3) + 2 * (w * U + U @ U), seven[:3])


def _inertial(description, body):
    """Return mass, centre and inertia about it of all links of a body (Steiner)."""
    parts = [(pose, description.links[link].inertial) for link, pose in body.links.items()
             if description.links[link].inertial is not None]
    mass = sum(inertial.mass for _, inertial in parts)
    center, inertia = np.zeros(3), np.zeros((3, 3))
    if mass:
        center = sum(inertial.mass * pose.apply(inertial.com) for pose, inertial in parts) / mass
    for pose, inertial in parts:
        d = hat(pose.apply(inertial.com) - center)
        inertia += pose.rotation @ inertial.inertia @ pose.rotation.T - inertial.mass * d @ d
    return mass, center, inertia
