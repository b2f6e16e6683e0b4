"""
An independent engine: the slow, obvious twin of the package, which it never imports.

Pinocchio carries the spanning tree on a free base. Loops are closed by Newton's method on the pin frames, and
the dynamics of the tree is projected to the actuators with G, taken numerically from the constraint Jacobian:
K qd = 0, qd = G yd, qdd = G ydd + g. Planar pins are redundant, hence least squares throughout.

Twist (v, w) and wrench (f, m) have the linear part first; a wrench acts on a link at its origin, in its axes.
`base` is (orientation x y z w, twist, classical acceleration) of the base link in its own axes.
"""

from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

RANK = 1e-7  # singular values below this fraction of the largest belong to the redundancy of planar pins
SPEED = 5e-3  # of the regularised Coulomb friction, m/s or rad/s
AT_REST = ((0.0, 0.0, 0.0, 1.0), np.zeros(6), np.zeros(6))


class Pin(NamedTuple):
    """A loop closure: two frames that share origin and z axis, and the losses of their relative rotation."""

    parent: int
    child: int
    losses: tuple


class Motion(NamedTuple):
    """The closed machine at one instant: qd = G yd, qdd = G ydd + g, and the pins turn at `pin_map yd`."""

    q: np.ndarray  # (nq,), the free base at identity
    G: np.ndarray  # (joints, actuators)
    g: np.ndarray  # (joints,)
    pin_map: np.ndarray  # (pins, actuators)


class Oracle:
    """Dynamics of a URDF with revolute <constraint>s, actuated as its <ros2_control> says."""

    def __init__(self, xml, gravity=(0.0, 0.0, -9.81), initial=None):
        root = ElementTree.fromstring(xml)
        self.model = pin.buildModelFromXML(xml, pin.JointModelFreeFlyer())
        self.model.gravity.linear = np.array(gravity, float)
        self.actuators, declared = read_control(root)
        self.joints = list(self.model.names)[2:]  # after 'universe' and the free base
        self.links = [frame.name for frame in self.model.frames if frame.type == pin.FrameType.BODY]
        self.actuated = [self.joints.index(name) for name in self.actuators]
        self.passive = [k for k in range(len(self.joints)) if k not in self.actuated]
        self.losses = read_joint_losses(root, self.joints)
        self.pins = [self._add_pin(element) for element in root.findall('constraint')]
        self.data = self.model.createData()
        self.start = np.array([{**declared, **(initial or {})}.get(name, 0.0) for name in self.joints])
        require_depth_first(self.model)

    def inverse_dynamics(self, x, xd, xdd, base=None, wrenches=None):
        """Return the actuator forces."""
        motion = self.motion(x, xd)
        tau = self._tree_forces(motion, xd, xdd, base, wrenches)[6:]
        return motion.G.T @ tau + self._friction(motion, xd)

    def forward_dynamics(self, x, xd, f, base=None, wrenches=None):
        """Return the actuator accelerations, refined once with the residual of inverse dynamics."""
        mass = self.mass_matrix(x)
        xdd = np.zeros(len(self.actuators))
        for _ in range(3):
            xdd = xdd + np.linalg.solve(mass, f - self.inverse_dynamics(x, xd, xdd, base, wrenches))
        return xdd

    def mass_matrix(self, x):
        """Return M of f = M xdd + bias."""
        motion = self.motion(x)
        upper = np.triu(pin.crba(self.model, self.data, motion.q))
        tree = (upper + np.triu(upper, 1).T)[6:, 6:]
        return motion.G.T @ tree @ motion.G

    def bias_forces(self, x, xd):
        """Return velocity, gravity and friction terms."""
        return self.inverse_dynamics(x, xd, np.zeros(len(self.actuators)))

    def gravity_forces(self, x):
        """Return the forces that hold the machine at rest, friction aside."""
        return self.bias_forces(x, np.zeros(len(self.actuators)))

    def friction_forces(self, x, xd):
        """Return the forces that overcome damping and regularised friction of joints and pins."""
        return self._friction(self.motion(x, xd), xd)

    def energy(self, x, xd):
        """Return kinetic and potential energy, the latter zero at the inertial origin."""
        motion, xd = self.motion(x, xd), np.asarray(xd, float)
        v = stack(np.zeros(6), motion.G @ xd)
        kinetic = pin.computeKineticEnergy(self.model, self.data, motion.q, v)
        return kinetic, pin.computePotentialEnergy(self.model, self.data, motion.q)

    def joint_state(self, x, xd=None, xdd=None):
        """Return names, positions, velocities and accelerations of all joints of the tree."""
        n = len(self.actuators)
        xd = np.zeros(n) if xd is None else np.asarray(xd, float)
        xdd = np.zeros(n) if xdd is None else np.asarray(xdd, float)
        motion = self.motion(x, xd)
        return self.joints, motion.q[7:], motion.G @ xd, motion.G @ xdd + motion.g

    def link_pose(self, x, link):
        """Return the 4 x 4 pose of a link in the base frame."""
        pin.framesForwardKinematics(self.model, self.data, self.motion(x).q)
        return self.data.oMf[self.model.getFrameId(link)].homogeneous

    def base_wrench(self, x, xd, xdd, base=None, wrenches=None):
        """Return the wrench by the environment on the base, at its origin in its axes."""
        return self._tree_forces(self.motion(x, xd), xd, xdd, base, wrenches)[:6]

    def closure(self, x):
        """Return the largest gap of the closed loops [m, rad]."""
        return max(np.abs(self._gaps(self.motion(x).q)), default=0.0)

    def motion(self, x, xd=None):
        """Close the loops at x on the branch of the start pose, and differentiate them."""
        x = np.asarray(x, float)
        xd = np.zeros_like(x) if xd is None else np.asarray(xd, float)
        q = self._close(x)
        model, data = self.model, self.data
        n = len(self.joints)
        # rates first, with the accelerations that qdd = 0 leaves at the pins
        K = self._jacobian(q)
        G = np.zeros((n, len(x)))
        G[self.actuated] = np.eye(len(x))
        G[self.passive] = -solve(K[:, self.passive], K[:, self.actuated])
        pin.forwardKinematics(model, data, q, stack(np.zeros(6), G @ xd), np.zeros(model.nv))
        pin.updateFramePlacements(model, data)
        g = np.zeros(n)
        g[self.passive] = -solve(K[:, self.passive], self._acceleration_gaps())
        return Motion(q, G, g, self._pin_rates(q) @ G)

    def _close(self, x):
        """Walk from the start pose to x in small steps, so that each loop keeps its assembly mode."""
        q = stack(pin.neutral(self.model)[:7], self.start)
        begin = self.start[self.actuated]
        steps = 1 + int(np.abs(x - begin).max(initial=0.0) / 0.1)
        for k in range(1, steps + 1):
            q[7:][self.actuated] = begin + (x - begin) * k / steps if k < steps else x
            self._newton(q)
        return q

    def _newton(self, q):
        """Close the loops by the passive joints, in place, until rounding stops the progress."""
        best, kept = np.inf, q.copy()
        for _ in range(50):
            gaps = self._gaps(q)
            size = np.abs(gaps).max(initial=0.0)
            if size >= best and size < 1e-12:
                break
            if size < best:
                best, kept = size, q.copy()
            step = -solve(self._jacobian(q)[:, self.passive], gaps)
            q[7:][self.passive] += step * min(1.0, 0.3 / np.abs(step).max(initial=1e-30))
        q[:] = kept
        if best > 1e-12:
            raise ValueError(f'loops do not close: gap {best:.3g}')

    def _gaps(self, q):
        """Return, for each pin, the distance of the frame origins and the tilt of the child's axis."""
        pin.framesForwardKinematics(self.model, self.data, q)
        gaps = []
        for parent, child, _ in self.pins:
            a, b = self.data.oMf[parent], self.data.oMf[child]
            gaps += [b.translation - a.translation, a.rotation[:, :2].T @ b.rotation[:, 2]]
        return stack(*gaps)

    def _jacobian(self, q):
        """Return the derivative of `_gaps` by the joints of the tree, the base held."""
        pin.computeJointJacobians(self.model, self.data, q)
        pin.updateFramePlacements(self.model, self.data)
        rows = [np.zeros((0, len(self.joints)))]
        for parent, child, _ in self.pins:
            relative = self._frame_jacobian(child) - self._frame_jacobian(parent)
            rows += [relative[:3], _tilt_directions(self.data, parent, child).T @ relative[3:]]
        return np.vstack(rows)

    def _acceleration_gaps(self):
        """Return the second derivative of `_gaps` at qdd = 0, from the accelerations in `data`."""
        world = pin.LOCAL_WORLD_ALIGNED
        gaps = []
        for parent, child, _ in self.pins:
            (wa, aa), (wb, ab) = (
                (pin.getFrameVelocity(self.model, self.data, frame, world).angular,
                 pin.getFrameClassicalAcceleration(self.model, self.data, frame, world))
                for frame in (parent, child))
            x, y = self.data.oMf[parent].rotation[:, :2].T
            z = self.data.oMf[child].rotation[:, 2]
            # d/dt of (wb - wa) . (z x e), where e turns with the parent and z with the child
            tilt = [(ab.angular - aa.angular) @ np.cross(z, e)
                    + (wb - wa) @ (np.cross(np.cross(wb, z), e) + np.cross(z, np.cross(wa, e)))
                    for e in (x, y)]
            gaps += [ab.linear - aa.linear, tilt]
        return stack(*gaps)

    def _pin_rates(self, q):
        """Return the map from joint rates to the rotation rates of the pins."""
        rows = [np.zeros((0, len(self.joints)))]
        for parent, child, _ in self.pins:
            relative = self._frame_jacobian(child) - self._frame_jacobian(parent)
            rows.append(self.data.oMf[parent].rotation[:, 2:].T @ relative[3:])
        return np.vstack(rows)

    def _frame_jacobian(self, frame):
        return pin.getFrameJacobian(self.model, self.data, frame, pin.LOCAL_WORLD_ALIGNED)[:, 6:]

    def _tree_forces(self, motion, xd, xdd, base, wrenches):
        """Return base wrench and joint forces of the open tree that moves as the closed machine does."""
        orientation, twist, acceleration = AT_REST if base is None else base
        twist, acceleration = np.array(twist, float), np.array(acceleration, float)
        acceleration[:3] -= np.cross(twist[3:], twist[:3])  # classical -> spatial
        q = motion.q.copy()
        q[3:7] = orientation
        v = stack(twist, motion.G @ np.asarray(xd, float))
        a = stack(acceleration, motion.G @ np.asarray(xdd, float) + motion.g)
        external = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for link, (f, m) in (wrenches or {}).items():
            frame = self.model.frames[self.model.getFrameId(link)]
            wrench = pin.Force(np.array(f, float), np.array(m, float))
            external[frame.parentJoint] += frame.placement.act(wrench)
        return pin.rnea(self.model, self.data, q, v, a, external)

    def _friction(self, motion, xd):
        rates = np.vstack((motion.G, motion.pin_map))
        damping, coulomb = np.array(self.losses + [p.losses for p in self.pins]).T
        v = rates @ np.asarray(xd, float)
        return rates.T @ (damping * v + coulomb * np.tanh(v / SPEED))

    def _add_pin(self, element):
        sides = [self._add_frame(f'{element.get("name")}/{side}', element.find(side).get('link'),
                                 element.find(f'{side}_origin'), element.find(f'{side}_axis'))
                 for side in ('parent', 'child')]
        return Pin(*sides, read_losses(element))

    def _add_frame(self, name, link, origin, axis):
        """Add a frame to a link, at `origin` with z along `axis`."""
        body = self.model.frames[self.model.getFrameId(link)]
        z = read_vector(axis, 'xyz')
        turn = pin.Quaternion.FromTwoVectors(np.array((0.0, 0.0, 1.0)), z / np.linalg.norm(z)).matrix()
        place = pin.SE3(pin.rpy.rpyToMatrix(read_vector(origin, 'rpy')) @ turn, read_vector(origin, 'xyz'))
        kind = pin.FrameType.OP_FRAME
        return self.model.addFrame(
            pin.Frame(name, body.parentJoint, body.parentFrame, body.placement * place, kind))


def _tilt_directions(data, parent, child):
    """Return the two axes about which a relative rotation tilts the child's z away from the parent's."""
    z = data.oMf[child].rotation[:, 2]
    return np.cross(z, data.oMf[parent].rotation[:, :2].T).T


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
