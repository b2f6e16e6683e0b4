"""
The independent engine: the slow, obvious twin of the package, which it never imports.

Pinocchio carries the spanning tree on a free base. Loops are closed by Newton's method on the frames of the closures,
which are revolute, spherical, universal, prismatic or fixed. The dynamics of the tree is projected to the independent
coordinates y, which may be any joints, with G, taken numerically from the constraint Jacobian: K qd = 0, qd = G yd,
qdd = G ydd + g. Planar pins are redundant, hence least squares throughout. Forces on the coordinates are f_y = G' tau;
actuators may be more or fewer than the degrees of freedom and act through A with (actuator rates) = A yd, f_y = A' f.

Twist (v, w) and wrench (f, m) have the linear part first; a wrench acts on a link at its origin, in its axes.
`base` is (orientation x y z w, twist, classical acceleration) of the base link in its own axes. A floating base is a
link under a root link without inertia, by a joint of type `floating`. Then x is (position, quaternion x y z w, joints),
xd (twist of the base in its own axes, joint rates), xdd the rate of xd.
"""

from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

RANK = 1e-7  # singular values below this fraction of the largest belong to the redundancy of planar pins
SPEED = 5e-3  # of the regularised Coulomb friction, m/s or rad/s
AT_REST = ((0.0, 0.0, 0.0, 1.0), np.zeros(6), np.zeros(6))
STEP = 0.05  # of the continuation from the start pose, m or rad
LOST = 0.3  # a correction of a dependent joint that only another branch explains, m or rad
OBLIQUE = ('prismatic', 'fixed')  # closures that compare all three axes of their frames


class Closure(NamedTuple):
    """Two frames that a closure ties, z along its axis, and the losses of its free rotation or slide."""

    name: str
    kind: str
    parent: int
    child: int
    losses: tuple


class Motion(NamedTuple):
    """The closed machine at one instant: v = G xd, a = G xdd + g, and closures turn or slide at `slip xd`."""

    q: np.ndarray  # (nq,), a base that does not float at identity
    G: np.ndarray  # (6 + joints, dof), the first rows are the base
    g: np.ndarray  # (6 + joints,)
    K: np.ndarray  # (rows, joints), the derivative of the gaps
    slip: np.ndarray  # (closures, dof)


class GeneralOracle:
    """
    Dynamics of a URDF with <constraint>s of any type.

    coordinates: names of the independent joints, in the order of x; by default actuators first, then what is missing.
    initial: joint positions that override those of <ros2_control>; they fix the assembly mode.
    """

    def __init__(self, xml, gravity=(0.0, 0.0, -9.81), initial=None, coordinates=None):
        root = ElementTree.fromstring(xml)
        self.actuators, declared = read_control(root)
        self.floating, self.root_pose = _take_floating_base(root)
        for joint in root.findall('joint'):
            if joint.get('type') == 'continuous':  # one number in x, not Pinocchio's cosine and sine
                joint.set('type', 'revolute')
                joint.append(ElementTree.Element('limit', lower='-1e9', upper='1e9', effort='0', velocity='0'))
        self.model = pin.buildModelFromXML(ElementTree.tostring(root, 'unicode'), pin.JointModelFreeFlyer())
        self.model.gravity.linear = np.array(gravity, float)
        self.joints = list(self.model.names)[2:]  # after 'universe' and the free base
        self.links = [frame.name for frame in self.model.frames if frame.type == pin.FrameType.BODY]
        self.losses = read_joint_losses(root, self.joints)
        self.closures = [self._add_closure(element) for element in root.findall('constraint')]
        self.data = self.model.createData()
        require_depth_first(self.model)

        given = np.array([{**declared, **(initial or {})}.get(name, 0.0) for name in self.joints])
        self.start = stack(pin.neutral(self.model)[:7], given)
        self._newton(self.start, list(range(len(self.joints))))
        free = self._choose_coordinates() if coordinates is None else list(coordinates)
        self.free = [self.joints.index(name) for name in free]
        self.tied = [k for k in range(len(self.joints)) if k not in self.free]
        self.coordinates = tuple(free)
        self.dof = len(self.free) + 6 * self.floating
        self._closed = None, None  # the last x and its q

    def start_position(self):
        """Return the x of the initial values; a floating base stands at its root."""
        return stack(self.start[:7 * self.floating], self.start[7:][self.free])

    def generalized_forces(self, x, xd, xdd, base=None, wrenches=None, efforts=None):
        """Return f_y (dof,), friction included; the first six of a floating base are its wrench."""
        motion, xd = self.motion(x, xd), np.asarray(xd, float)
        tau = self._tree_forces(motion, xd, xdd, base, wrenches)
        for name, effort in (efforts or {}).items():
            tau[6 + self.joints.index(name)] -= effort
        return motion.G.T @ tau + self._friction(motion, xd)

    def inverse_dynamics(self, x, xd, xdd, base=None, wrenches=None, efforts=None, weights=None):
        """
        Return the actuator efforts (actuators,) least in sum w f^2 among those with A' f = f_y.

        Where the actuators are too few, the residual is least instead; the wrench of a floating base is left out.
        """
        forces = self.generalized_forces(x, xd, xdd, base, wrenches, efforts)
        root = np.sqrt(np.ones(len(self.actuators)) if weights is None else np.asarray(weights, float))
        return solve(self.actuator_map(x).T / root, forces) / root

    def forward_dynamics(self, x, xd, f, base=None, wrenches=None, efforts=None, base_wrench=None):
        """Return xdd (dof,), refined with the residual of inverse dynamics; f (actuators,)."""
        push = self.actuator_map(x).T @ np.asarray(f, float)
        if base_wrench is not None:
            push[:6] += base_wrench
        mass, xdd = self.mass_matrix(x), np.zeros(self.dof)
        for _ in range(3):
            xdd = xdd + np.linalg.solve(
                mass, push - self.generalized_forces(x, xd, xdd, base, wrenches, efforts))
        return xdd

    def actuator_map(self, x):
        """Return A (actuators, dof), the actuator rates of unit coordinate rates."""
        return self.motion(x).G[[6 + self.joints.index(name) for name in self.actuators]]

    def mass_matrix(self, x):
        """Return M (dof, dof) of f_y = M xdd + bias."""
        motion = self.motion(x)
        upper = np.triu(pin.crba(self.model, self.data, motion.q))
        return motion.G.T @ (upper + np.triu(upper, 1).T) @ motion.G

    def bias_forces(self, x, xd):
        """Return velocity, gravity and friction terms (dof,)."""
        return self.generalized_forces(x, xd, np.zeros(self.dof))

    def gravity_forces(self, x):
        """Return the forces on the coordinates that hold the machine at rest, friction aside."""
        return self.bias_forces(x, np.zeros(self.dof))

    def friction_forces(self, x, xd):
        """Return the forces that overcome damping and regularised friction of joints and closures."""
        return self._friction(self.motion(x, xd), np.asarray(xd, float))

    def energy(self, x, xd):
        """Return kinetic and potential energy, the latter zero at the inertial origin."""
        motion = self.motion(x)
        kinetic = pin.computeKineticEnergy(self.model, self.data, motion.q, motion.G @ np.asarray(xd, float))
        return kinetic, pin.computePotentialEnergy(self.model, self.data, motion.q)

    def joint_state(self, x, xd=None, xdd=None):
        """Return names, positions, velocities and accelerations of all joints of the tree but the base's."""
        xd, xdd = (np.zeros(self.dof) if rate is None else np.asarray(rate, float) for rate in (xd, xdd))
        motion = self.motion(x, xd)
        return self.joints, motion.q[7:], (motion.G @ xd)[6:], (motion.G @ xdd + motion.g)[6:]

    def link_pose(self, x, link):
        """Return the 4 x 4 pose of a link in the base frame, in the world where the base floats."""
        pin.framesForwardKinematics(self.model, self.data, self.motion(x).q)
        return self.data.oMf[self.model.getFrameId(link)].homogeneous

    def base_wrench(self, x, xd, xdd, base=None, wrenches=None, efforts=None):
        """Return the wrench by the environment on the base, at its origin in its axes."""
        return self._tree_forces(self.motion(x, xd), np.asarray(xd, float), xdd, base, wrenches)[:6]

    def closure(self, x):
        """Return the largest gap of the closed loops [m, rad]."""
        return max(np.abs(self._gaps(self.motion(x).q)), default=0.0)

    def conditioning(self, x):
        """Return the smallest singular value of K of the dependent joints that is not redundancy (inf: no loops)."""
        K = self.motion(x).K[:, self.tied]
        return np.linalg.svd(K, compute_uv=False)[len(self.tied) - 1] if K.size else np.inf

    def motion(self, x, xd=None):
        """Close the loops at x on the branch of the start pose, and differentiate them."""
        x = np.asarray(x, float)
        xd = np.zeros(self.dof) if xd is None else np.asarray(xd, float)
        n, base = len(self.joints), 6 * self.floating
        q = self._close(x[base + self.floating:])
        K, slip = self._jacobian(q)
        G = np.zeros((6 + n, self.dof))
        G[:base, :base] = np.eye(base)
        free, tied = ([6 + k for k in joints] for joints in (self.free, self.tied))
        G[free, base:] = np.eye(len(free))
        G[tied, base:] = -solve(K[:, self.tied], K[:, self.free])
        g = np.zeros(6 + n)
        # the second rate of the gaps at zero acceleration, the base at rest: closures are blind to its motion
        v = stack(np.zeros(6), (G @ xd)[6:])
        pin.forwardKinematics(self.model, self.data, q, v, np.zeros(self.model.nv))
        pin.updateFramePlacements(self.model, self.data)
        g[tied] = -solve(K[:, self.tied], stack(*(self._acceleration_gap(c) for c in self.closures)))
        if self.floating:
            placed = self.root_pose * pin.XYZQUATToSE3(stack(x[:3], x[3:7] / np.linalg.norm(x[3:7])))
            q[:7] = pin.SE3ToXYZQUAT(placed)
        return Motion(q, G, g, K, slip @ G[6:])

    def _close(self, y):
        """Walk from the start pose to y in small steps, so that each loop keeps its assembly mode."""
        if self._closed[0] == y.tobytes():
            return self._closed[1].copy()
        q = self.start.copy()
        begin = q[7:][self.free]
        steps = 1 + int(np.abs(y - begin).max(initial=0.0) / STEP)
        for k in range(1, steps + 1):
            target = begin + (y - begin) * k / steps if k < steps else y
            K, _ = self._jacobian(q)
            q[7:][self.tied] -= solve(K[:, self.tied], K[:, self.free] @ (target - q[7:][self.free]))
            q[7:][self.free] = target
            predicted = q.copy()
            self._newton(q, self.tied)
            if np.abs(q - predicted).max(initial=0.0) > LOST:
                raise ValueError('loops change their assembly mode')
        self._closed = y.tobytes(), q.copy()
        return q

    def _newton(self, q, joints):
        """Close the loops by the joints given, in place, until rounding stops the progress."""
        best, kept = np.inf, q.copy()
        for _ in range(50):
            gaps = self._gaps(q)
            size = np.abs(gaps).max(initial=0.0)
            if size >= best and size < 1e-12:
                break
            if size < best:
                best, kept = size, q.copy()
            step = -solve(self._jacobian(q)[0][:, joints], gaps)
            q[7:][joints] += step * min(1.0, 0.3 / np.abs(step).max(initial=1e-30))
        q[:] = kept
        if best > 1e-12:
            raise ValueError(f'loops do not close: gap {best:.3g}')

    def _choose_coordinates(self):
        """Return joints whose rates fix all others: actuators first, each only where it adds something."""
        K, _ = self._jacobian(self.start)
        _, values, rows = np.linalg.svd(K) if len(K) else (0, np.zeros(0), np.eye(len(self.joints)))
        null = rows[np.sum(values > 1e-7 * values.max(initial=0.0)):].T
        chosen, basis = [], np.zeros((0, null.shape[1]))
        for name in [*self.actuators, *(name for name in self.joints if name not in self.actuators)]:
            tried = np.vstack((basis, null[self.joints.index(name)]))
            if len(tried) <= null.shape[1] and np.linalg.svd(tried, compute_uv=False)[-1] > 0.05:
                chosen, basis = [*chosen, name], tried
        if len(chosen) < null.shape[1]:
            raise ValueError('no well-conditioned independent joints')
        return chosen

    def _relative_jacobian(self, closure):
        """Return the map from joint rates to the twist of the child frame seen from the parent's, in its axes."""
        a, b = self.data.oMf[closure.parent], self.data.oMf[closure.child]
        of_parent, of_child = (
            pin.getFrameJacobian(self.model, self.data, frame, pin.LOCAL_WORLD_ALIGNED)[:, 6:]
            for frame in (closure.parent, closure.child))
        carried = of_parent[:3] - pin.skew(b.translation - a.translation) @ of_parent[3:]
        return a.rotation.T @ (of_child[:3] - carried), a.rotation.T @ (of_child[3:] - of_parent[3:])

    def _relative_motion(self, closure):
        """Return angular velocity, angular and linear acceleration of the child seen from the parent, in its axes."""
        a, b = self.data.oMf[closure.parent], self.data.oMf[closure.child]
        (va, wa, aa, ea), (vb, wb, ab, eb) = (
            (velocity.linear, velocity.angular, acceleration.linear, acceleration.angular)
            for velocity, acceleration in (
                (pin.getFrameVelocity(self.model, self.data, frame, pin.LOCAL_WORLD_ALIGNED),
                 pin.getFrameClassicalAcceleration(self.model, self.data, frame, pin.LOCAL_WORLD_ALIGNED))
                for frame in (closure.parent, closure.child)))
        r, to_parent = b.translation - a.translation, a.rotation.T
        slide = vb - va - np.cross(wa, r)
        linear = ab - aa - np.cross(ea, r) - np.cross(wa, np.cross(wa, r)) - 2 * np.cross(wa, slide)
        return to_parent @ (wb - wa), to_parent @ (eb - ea - np.cross(wa, wb)), to_parent @ linear

    def _gaps(self, q):
        """Return what each closure holds at zero [m, rad], seen from its parent frame."""
        pin.framesForwardKinematics(self.model, self.data, q)
        gaps = []
        for closure in self.closures:
            seen = self.data.oMf[closure.parent].inverse() * self.data.oMf[closure.child]
            gaps.append(seen.translation[:2] if closure.kind == 'prismatic' else seen.translation)
            if closure.kind in OBLIQUE:
                gaps.append(pin.log3(seen.rotation))
            else:
                gaps.append(seen.rotation[_held_axes(closure), 2])
        return stack(*gaps)

    def _jacobian(self, q):
        """Return the derivative K of `_gaps` by the joints, and the rates of free rotation or slide."""
        pin.computeJointJacobians(self.model, self.data, q)
        pin.updateFramePlacements(self.model, self.data)
        rows, slip = [np.zeros((0, len(self.joints)))], [np.zeros((0, len(self.joints)))]
        for closure in self.closures:
            linear, angular = self._relative_jacobian(closure)
            rotation = self.data.oMf[closure.parent].rotation.T @ self.data.oMf[closure.child].rotation
            rows.append(linear[:2] if closure.kind == 'prismatic' else linear)
            if closure.kind in OBLIQUE:
                rows.append(pin.Jlog3(rotation) @ rotation.T @ angular)
            else:
                rows.append(_tilts(closure, rotation[:, 2]) @ angular)
            slip.append((linear if closure.kind == 'prismatic' else angular)[2:])
        return np.vstack(rows), np.vstack(slip)

    def _acceleration_gap(self, closure):
        """Return the second derivative of the gaps of a closed closure at qdd = 0, from the motion in `data`."""
        w, wd, linear = self._relative_motion(closure)
        if closure.kind in OBLIQUE:  # w = 0
            return stack(linear[:2] if closure.kind == 'prismatic' else linear, wd)
        z = (self.data.oMf[closure.parent].rotation.T @ self.data.oMf[closure.child].rotation)[:, 2]
        return stack(linear, _tilts(closure, z) @ wd + _tilts(closure, np.cross(w, z)) @ w)

    def _tree_forces(self, motion, xd, xdd, base, wrenches):
        """Return base wrench and joint forces of the open tree that moves as the closed machine does."""
        q, v, a = motion.q.copy(), motion.G @ xd, motion.G @ np.asarray(xdd, float) + motion.g
        if not self.floating:
            q[3:7], twist, acceleration = AT_REST if base is None else base
            v[:6], a[:6] = twist, acceleration
            a[:3] -= np.cross(v[3:6], v[:3])  # classical -> spatial
        elif base is not None:
            raise ValueError('the motion of a floating base is part of the state')
        external = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for link, (f, m) in (wrenches or {}).items():
            frame = self.model.frames[self.model.getFrameId(link)]
            wrench = pin.Force(np.array(f, float), np.array(m, float))
            external[frame.parentJoint] += frame.placement.act(wrench)
        return pin.rnea(self.model, self.data, q, v, a, external).copy()

    def _friction(self, motion, xd):
        rates = np.vstack((motion.G[6:], motion.slip))
        damping, coulomb = np.array(self.losses + [closure.losses for closure in self.closures]).T
        v = rates @ xd
        return rates.T @ (damping * v + coulomb * np.tanh(v / SPEED))

    def _add_closure(self, element):
        name, kind, losses = element.get('name'), element.get('type'), read_losses(element)
        if kind in ('spherical', 'universal', 'fixed') and any(losses):
            raise ValueError(f"closure '{name}': no single rate for the losses of type '{kind}'")
        axes = [read_vector(element.find(f'{side}_axis'), 'xyz') for side in ('parent', 'child')]
        if kind in OBLIQUE:
            axes[1] = axes[0]  # in each frame, hence the same turn for both
        sides = [self._add_frame(f'{name}/{side}', element.find(side).get('link'),
                                 element.find(f'{side}_origin'), axis)
                 for side, axis in zip(('parent', 'child'), axes)]
        return Closure(name, kind, *sides, losses)

    def _add_frame(self, name, link, origin, axis):
        """Add a frame to a link, at `origin` with z turned to `axis`."""
        body = self.model.frames[self.model.getFrameId(link)]
        turn = pin.Quaternion.FromTwoVectors(np.array((0.0, 0.0, 1.0)), axis / np.linalg.norm(axis)).matrix()
        place = pin.SE3(pin.rpy.rpyToMatrix(read_vector(origin, 'rpy')) @ turn, read_vector(origin, 'xyz'))
        return self.model.addFrame(pin.Frame(
            name, body.parentJoint, body.parentFrame, body.placement * place, pin.FrameType.OP_FRAME))


def _held_axes(closure):
    """Return the axes of the parent frame to which the child's axis stays perpendicular."""
    return {'revolute': [0, 1], 'spherical': [], 'universal': [2]}[closure.kind]


def _tilts(closure, z):
    """Return the map from a relative angular velocity to the rates at which z leaves the held axes' planes."""
    return np.cross(z, np.eye(3)[_held_axes(closure)])


def _take_floating_base(root):
    """Remove a root link that floats its child; return whether there is one, and the pose of its joint."""
    for joint in root.findall('joint'):
        if joint.get('type') == 'floating':
            parent, origin = joint.find('parent').get('link'), joint.find('origin')
            root.remove(joint)
            root.remove(root.find(f"link[@name='{parent}']"))
            return True, pin.SE3(pin.rpy.rpyToMatrix(read_vector(origin, 'rpy')), read_vector(origin, 'xyz'))
    return False, pin.SE3.Identity()


def solve(matrix, right):
    """Solve by least squares, leaving the redundant directions alone."""
    if not matrix.size:
        return np.zeros((matrix.shape[1],) + right.shape[1:])
    return np.linalg.lstsq(matrix, right, rcond=RANK)[0]


def stack(*parts):
    return np.concatenate([np.zeros(0), *parts])


def require_depth_first(model):
    """Pinocchio's mass matrix is silently wrong where the joints of a subtree are not consecutive."""
    for subtree in model.subtrees:
        joints = list(subtree)
        if joints != list(range(joints[0], joints[0] + len(joints))):
            raise ValueError('joints of the tree are not in depth-first order')


def read_control(root):
    """Return the joints with a command interface, and the initial positions of all joints."""
    actuators, initial = [], {}
    for joint in root.findall('ros2_control/joint'):
        if joint.find('command_interface') is not None:
            actuators.append(joint.get('name'))
        value = joint.find('state_interface[@name="position"]/param[@name="initial_value"]')
        if value is not None:
            initial[joint.get('name')] = float(value.text)
    return actuators, initial


def read_joint_losses(root, joints):
    losses = {joint.get('name'): read_losses(joint) for joint in root.findall('joint')}
    return [losses[name] for name in joints]


def read_losses(element):
    dynamics = element.find('dynamics')
    if dynamics is None:
        return (0.0, 0.0)
    return float(dynamics.get('damping', 0)), float(dynamics.get('friction', 0))


def read_vector(element, key):
    text = None if element is None else element.get(key)
    return np.array([float(number) for number in (text or '0 0 0').split()])
