"""The machines of the benchmark and what the other engines need to know about them.

The competitors get the same URDF as we do. Pinocchio's parser gives the spanning tree (fixed joints merged);
the `<constraint>` pins and the actuators, which no parser reads, are taken from the XML here. For the
projection rows the loops are also described as plane triangles, independently of psdyn_ros:

    s = x + x0,   A = sigma acos((s^2 - L^2 - L1^2) / (2 L L1)),   B = atan2(L1 sin A, L + L1 cos A)
    boom angle = A - boom_zero,   barrel angle = turn (B - barrel_zero)
"""

import importlib
import math
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin

ROOT = Path(__file__).resolve().parent.parent
CRANE = ROOT / 'urdf' / 'hiab_xs031.urdf'


@dataclass(frozen=True)
class Pin:
    """One closing pin: the same point, given on two joints of the tree."""

    joint1: int
    placement1: pin.SE3
    joint2: int
    placement2: pin.SE3


@dataclass(frozen=True)
class Triangle:
    """A linear actuator triangle; boom, barrel and rod are velocity indices of the tree."""

    boom: int
    barrel: int
    rod: int
    L: float
    L1: float
    x0: float
    sigma: float
    boom_zero: float
    barrel_zero: float
    turn: float


@dataclass(frozen=True)
class Machine:
    name: str
    xml: str
    tree: pin.Model
    pins: tuple
    triangles: tuple
    actuated: np.ndarray  # velocity indices of the actuators, in the order of <ros2_control>

    owner: np.ndarray  # (nv,): the actuator, counted as above, that moves each coordinate of the tree

    @property
    def dof(self):
        return len(self.actuated)

    def project(self, tau, G):
        """G' tau, row by row."""
        out = np.zeros((len(tau), self.dof))
        for k in range(self.tree.nv):
            out[:, self.owner[k]] += G[:, k] * tau[:, k]
        return out


@dataclass(frozen=True)
class States:
    """The same states for everybody: coordinates (N, dof), actuators (N, actuators), spanning tree (N, nv).

    a and G are None where loops are of any kind.
    """

    x: np.ndarray
    xd: np.ndarray
    xdd: np.ndarray
    f: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    G: np.ndarray
    tau: np.ndarray


def crane():
    return read('crane', CRANE.read_text())


def chain(loops):
    return read(f'chain{loops}', test_helper('machines').loop_chain(loops).xml)


def test_helper(name):
    """A module of generators of the tests, which are no part of the package."""
    folder = str(ROOT / 'test')
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(f'support.{name}')


def read(name, xml):
    tree = pin.buildModelFromXML(xml)
    if tree.nq != tree.nv:
        raise ValueError(f'{name}: only joints with one coordinate are understood here')
    robot = ElementTree.fromstring(xml)
    pins = tuple(closing_pin(tree, tag) for tag in robot.findall('constraint'))
    actuated = actuated_joints(tree, robot)
    hints = _initial_values(robot)
    triangles = tuple(_triangle(tree, each, hints) for each in pins)
    owner = np.zeros(tree.nv, int)
    owner[actuated] = np.arange(len(actuated))
    for t in triangles:
        owner[[t.boom, t.barrel]] = owner[t.rod]
    return Machine(name, xml, tree, pins, triangles, actuated, owner)


def actuated_joints(tree, robot):
    """Velocity indices of the joints with a command interface."""
    return np.array([
        tree.joints[tree.getJointId(joint.get('name'))].idx_v
        for joint in robot.findall('ros2_control/joint')
        if joint.find('command_interface') is not None
    ])


def closing_pin(tree, tag):
    """The `Pin` of a <constraint> element."""
    def end(side):
        frame = tree.frames[tree.getFrameId(tag.find(side).get('link'))]
        origin = tag.find('parent_origin' if side == 'parent' else 'child_origin')
        xyz, rpy = (np.array(origin.get(key, '0 0 0').split(), float) for key in ('xyz', 'rpy'))
        return frame.parentJoint, frame.placement * pin.SE3(pin.rpy.rpyToMatrix(rpy), xyz)

    return Pin(*end('parent'), *end('child'))


def _initial_values(robot):
    """`initial_value` of position interfaces: they tell the assembly mode when the limits do not."""
    values = {}
    for joint in robot.findall('ros2_control/joint'):
        for interface in joint.findall('state_interface'):
            value = interface.find("param[@name='initial_value']")
            if interface.get('name') == 'position' and value is not None:
                values[joint.get('name')] = float(value.text)
    return values


def axis(tree, joint):
    """Unit axis of a one-coordinate joint, in joint axes."""
    data = tree.joints[joint].createData()
    tree.joints[joint].calc(data, np.zeros(tree.nq), np.zeros(tree.nv))
    column = np.asarray(data.S).reshape(6)
    return column[:3] + column[3:]


def _triangle(tree, closing, hints):
    ends = {closing.joint1: closing.placement1, closing.joint2: closing.placement2}
    rod = next(j for j in ends if 'JointModelP' in tree.joints[j].shortname())
    boom = next(j for j in ends if j != rod)
    barrel = tree.parents[rod]
    if tree.parents[barrel] != tree.parents[boom]:
        raise ValueError(f'{tree.names[boom]} and {tree.names[barrel]} do not hang on the same body')
    on_boom, on_barrel, on_rod = (tree.jointPlacements[j] for j in (boom, barrel, rod))

    # Plane axes u, w on the base body: u from the barrel pin to the boom pin, angles about the boom axis.
    normal = on_boom.rotation @ axis(tree, boom)
    base = on_boom.translation - on_barrel.translation
    base = base - normal * (normal @ base)
    L = np.linalg.norm(base)
    u = base / L
    w = np.cross(normal, u)

    def angle(vector):
        return math.atan2(vector @ w, vector @ u)

    eye = on_boom.rotation @ ends[boom].translation
    slide = on_rod.rotation @ axis(tree, rod)
    start = on_rod.act(ends[rod].translation)
    barrel_axis = axis(tree, barrel)
    aside = start - slide * (slide @ start)
    if np.linalg.norm(np.cross(aside, barrel_axis)) > 1e-9:
        raise ValueError(f'{tree.names[rod]}: the rod does not slide through its barrel pin')
    boom_zero = angle(eye)
    return Triangle(
        boom=tree.joints[boom].idx_v,
        barrel=tree.joints[barrel].idx_v,
        rod=tree.joints[rod].idx_v,
        L=L,
        L1=np.linalg.norm(eye - normal * (normal @ eye)),
        x0=slide @ start,
        sigma=_assembly_mode(tree, boom, boom_zero, hints),
        boom_zero=boom_zero,
        barrel_zero=angle(on_barrel.rotation @ slide),
        turn=math.copysign(1.0, normal @ (on_barrel.rotation @ barrel_axis)),
    )


def _assembly_mode(tree, boom, boom_zero, hints):
    index = tree.joints[boom].idx_q
    middle = 0.5 * (tree.lowerPositionLimit[index] + tree.upperPositionLimit[index])
    return math.copysign(1.0, math.sin(hints.get(tree.names[boom], middle) + boom_zero))


def random_states(machine, count, seed=1):
    """Consistent states in the inner 90 % of the limits, at the speeds and loads of a crane."""
    random = np.random.default_rng(seed)
    tree, on = machine.tree, machine.actuated
    low, high = tree.lowerPositionLimit[on], tree.upperPositionLimit[on]
    x = low + (high - low) * random.uniform(0.05, 0.95, (count, machine.dof))
    xd = random.uniform(-0.2, 0.2, x.shape)
    xdd = random.uniform(-0.5, 0.5, x.shape)
    f = random.uniform(-1e4, 1e4, x.shape)
    q, v, a, G = close(machine, x, xd, xdd)
    tau = np.zeros_like(q)
    tau[:, on] = f
    return States(x, xd, xdd, f, q, v, a, G, tau)


def triangle_motion(t, s, sd, sdd, sqrt=np.sqrt, atan2=np.arctan2):
    """Position, velocity, acceleration and dq/dx of boom and barrel for a pin distance s and its rates."""
    cos = (s * s - t.L * t.L - t.L1 * t.L1) / (2 * t.L * t.L1)
    sin = t.sigma * sqrt((1 - cos) * (1 + cos))
    k1 = -s / (t.L * t.L1 * sin)
    r = t.L1 * (t.L1 + t.L * cos) / (s * s)
    k2 = t.turn * r * k1
    k4 = sd * sd * (k1 / s - k1 * k1 * cos / sin)
    k5 = t.turn * (sd / s * (1 - 2 * r) * k1 * sd + r * k4)
    boom = atan2(sin, cos) - t.boom_zero
    barrel = t.turn * (atan2(t.L1 * sin, t.L + t.L1 * cos) - t.barrel_zero)
    return (boom, k1 * sd, k4 + k1 * sdd, k1), (barrel, k2 * sd, k5 + k2 * sdd, k2)


def close(machine, x, xd, xdd):
    """gamma, G, g for many states: positions, velocities and accelerations of the tree, and G as (N, nv).

    Each coordinate of the tree moves with one actuator (`machine.owner`), so G is one number for each.
    """
    q, v, a, G = (np.zeros((len(x), machine.tree.nv)) for _ in range(4))
    on = machine.actuated
    q[:, on], v[:, on], a[:, on], G[:, on] = x, xd, xdd, 1.0
    for t in machine.triangles:
        motions = triangle_motion(t, q[:, t.rod] + t.x0, v[:, t.rod], a[:, t.rod])
        for joint, motion in zip((t.boom, t.barrel), motions):
            q[:, joint], v[:, joint], a[:, joint], G[:, joint] = motion
    return q, v, a, G


def closing_error(machine, q):
    """Largest distance between the two sides of any pin, over all states, by Pinocchio's kinematics [m]."""
    data = machine.tree.createData()
    worst = 0.0
    for row in q:
        pin.forwardKinematics(machine.tree, data, row)
        for each in machine.pins:
            one, two = data.oMi[each.joint1] * each.placement1, data.oMi[each.joint2] * each.placement2
            worst = max(worst, np.abs(one.translation - two.translation).max())
    return worst
