"""
Random machines with closed loops of any kind, as URDF text: planar and spatial, nested, overconstrained, redundant.

A machine is assembled in one random pose in which every body has its place in the base frame (4 x 4); joints and
closures are then read off that pose, so that the initial values close every loop to rounding. A loop is drawn again
until it has the mobility it should have, well clear of singular poses.
"""

from itertools import count
from typing import NamedTuple

import numpy as np

from . import urdf_text as urdf
from .loop_kinds import KINDS

CLEAR = 0.06  # smallest singular value of the constraints of a drawn loop, redundant ones apart
REACH = {'revolute': 0.8, 'prismatic': 0.4}  # limits of independent joints about the drawn pose, rad and m
WIDE = (-9.0, 9.0)


class GeneralMachine(NamedTuple):
    """A machine and what a test has to know about it; a floating base is in none of the names."""

    xml: str
    actuators: tuple  # joint names, in the order of <ros2_control>
    coordinates: tuple  # independent joints, well-conditioned at the initial pose
    initial: dict  # joint -> position; one pose in which all loops are closed
    gravity: tuple
    kinds: tuple  # of its modules, see loop_kinds.KINDS
    floating: bool

    @property
    def dof(self):
        return len(self.coordinates) + 6 * self.floating


class GeneralState(NamedTuple):
    """x (nx,), xd, xdd (dof,), f (actuators,)."""

    x: np.ndarray
    xd: np.ndarray
    xdd: np.ndarray
    f: np.ndarray


def general_machine(rng, kinds=2, friction=False, floating=False, redundant=False, under_actuated=False,
                    own_coordinates=False):
    """
    Return a GeneralMachine of the kinds of modules named (see loop_kinds), or of a number of random ones.

    Each module stands on a random link of those before. `friction` puts <dynamics> on joints and revolute closures;
    `floating` lets base_link float under a link 'world'; `redundant` adds up to two actuators on passive joints,
    `under_actuated` leaves one module without; with `own_coordinates` the independent joints need not be actuators.
    """
    if not isinstance(kinds, (tuple, list)):
        kinds = [str(kind) for kind in rng.choice(list(KINDS), kinds)]
    builder = _Builder(rng, friction, own_coordinates)
    for kind in kinds:
        builder.add(kind)
    return builder.machine(kinds, floating, redundant, under_actuated)


def general_state(machine, oracle, rng, reach=0.3):
    """
    Draw a state on the branch of the initial pose, at most `reach` (m, rad) from it and away from singular poses.

    oracle: a GeneralOracle with the coordinates of the machine.
    """
    start, base = oracle.start_position(), 7 * machine.floating
    clear = 0.5 * oracle.conditioning(start)
    for _ in range(100):
        offset = rng.uniform(-reach, reach, len(start) - base)
        try:
            if min(oracle.conditioning(_moved(start, base, share * offset)) for share in (0.25, 0.5, 0.75, 1)) >= clear:
                break
        except ValueError:  # out of reach
            pass
        reach *= 0.9
    else:
        raise ValueError('no well-conditioned state was found')
    x = _moved(start, base, offset)
    if machine.floating:
        orientation = rng.normal(size=4)
        x[:7] = *rng.uniform(-2, 2, 3), *orientation / np.linalg.norm(orientation)
    xd, xdd = rng.uniform(-1, 1, (2, machine.dof)) * ((0.5,), (2,))
    return GeneralState(x, xd, xdd, rng.uniform(-300, 300, len(machine.actuators)))


def _moved(start, base, offset):
    return np.concatenate((start[:base], start[base:] + offset))


class _Joint(NamedTuple):
    name: str
    kind: str
    parent: str
    child: str
    xyz: np.ndarray
    rpy: np.ndarray
    local_axis: np.ndarray
    position: float
    point: np.ndarray  # this and the axis in the base frame
    axis: np.ndarray


class _Builder:
    """Draws modules one after another; points, axes and poses are in the base frame unless said otherwise."""

    def __init__(self, rng, friction, own_coordinates):
        self.rng, self.friction, self.own = rng, friction, own_coordinates
        self.numbers = count(1)
        self.pose = {'base_link': np.eye(4)}
        self.joints, self.closures, self.rows = [], [], []  # rows: (parent, child, point, directions, turns)
        self.joint_of = {}  # link -> the joint that carries it
        self.coordinates, self.actuators, self.spare = [], [], []

    def add(self, kind):
        """Draw a module until it is well-conditioned."""
        name = f'm{next(self.numbers)}_{kind}'
        marks = len(self.joints), len(self.closures)
        links = list(self.pose)
        for _ in range(1000):
            freedom, drive = KINDS[kind](self, name, str(self.rng.choice(links)))
            joints = self.joints[marks[0]:]
            null = self._null_space(joints, marks[1])
            if null is not None and null.shape[1] == freedom:
                names = [joint.name for joint in joints]
                free, driven = self._independent(null), [names.index(end) for end in drive]
                if free and not driven:
                    driven = self._independent(null) if self.own else free
                elif len(driven) == freedom and not self.own:
                    free = driven
                if free and driven and _clear(null[free]) and _clear(null[driven]):
                    self.coordinates += [names[k] for k in free]
                    self.actuators += [names[k] for k in driven]
                    self.spare += [names[k] for k in range(len(names))
                                   if k not in driven and np.linalg.norm(null[k]) > 0.2]
                    return
            del self.joints[marks[0]:], self.closures[marks[1]:], self.rows[marks[1]:]
            self.pose = {link: self.pose[link] for link in links}
        raise ValueError(f'no well-conditioned {kind} was found')

    def machine(self, kinds, floating, redundant, under_actuated):
        rng = self.rng
        gravity = rng.normal(size=3)
        gravity *= 9.81 / np.linalg.norm(gravity)
        if redundant and self.spare:
            self.actuators += list(rng.choice(self.spare, min(2, len(self.spare)), replace=False))
        if under_actuated and self.actuators:
            idle = rng.choice(self.actuators).split('_')[0]
            self.actuators = [name for name in self.actuators if name.split('_')[0] != idle]
        actuators = [str(name) for name in rng.permutation(self.actuators)]
        coordinates = [str(name) for name in rng.permutation(self.coordinates)]
        if sorted(actuators) == sorted(coordinates):
            coordinates = actuators
        elements = []
        if floating:
            elements = [urdf.link('world'), urdf.joint('float', 'floating', 'world', 'base_link', (0, 0, 0), (0, 0, 0))]
        elements += [urdf.random_link(link, rng, (2, 20), 0.3) for link in self.pose]
        for joint in self.joints:
            reach = REACH.get(joint.kind, 0.0)
            limit = (joint.position - reach, joint.position + reach) if joint.name in coordinates else WIDE
            elements.append(urdf.joint(*joint[:7], limit, self._losses()))
        initial = {joint.name: joint.position for joint in self.joints}
        passive = [name for name in initial if name not in actuators]
        elements += [*self.closures, urdf.control('machine', actuators, passive, initial)]
        return GeneralMachine(urdf.robot('machine', elements), tuple(actuators), tuple(coordinates), initial,
                              tuple(gravity.tolist()), tuple(kinds), floating)

    # Parts

    def joint(self, name, kind, parent, point, axis):
        """Add a joint and its link at a random position of that joint; return the link."""
        rpy, child = self.short(3), f'{name}_link'
        position = float(self.short(0.3 if kind == 'prismatic' else 1.5, 1)[0])
        xyz = urdf.apply(urdf.inverse(self.pose[parent]), point)
        frame = self.pose[parent] @ urdf.pose(xyz, rpy)
        axis = axis / np.linalg.norm(axis)
        local = frame[:3, :3].T @ axis
        local /= np.linalg.norm(local)
        moved = urdf.pose(local * position, (0, 0, 0)) if kind == 'prismatic' else urdf.turn(local, position)
        self.pose[child] = frame @ moved
        joint = _Joint(name, kind, parent, child, xyz, rpy, local, position, point, axis)
        self.joints.append(joint)
        self.joint_of[child] = joint
        return child

    def close(self, name, kind, a, b, point, axis):
        """Tie two links, in random order, where they are; a universal closure gets a random second axis."""
        if self.rng.random() < 0.5:
            a, b = b, a
        axis = axis / np.linalg.norm(axis)
        across = np.cross(axis, self.unit())
        across /= np.linalg.norm(across)
        other = across if kind == 'universal' else axis
        points = [point, point]
        if kind == 'prismatic':  # the child may be anywhere on the line
            points[1] = point + self.rng.uniform(-0.4, 0.4) * axis
        turn = urdf.pose((0, 0, 0), self.short(3))[:3, :3]  # of the frames that both sides share
        sides = []
        for link, end, along in zip((a, b), points, (axis, other)):
            to_link = urdf.inverse(self.pose[link])
            placed = np.eye(4)
            placed[:3, :3] = to_link[:3, :3] @ turn
            if kind in ('prismatic', 'fixed'):
                local = turn.T @ axis
            else:  # frames of their own
                placed[:3, :3] = urdf.rotation(self.short(3))
                local = placed[:3, :3].T @ to_link[:3, :3] @ along
            rpy = urdf.xyz_rpy(placed)[1]
            sides.append((link, urdf.apply(to_link, end), rpy, local / np.linalg.norm(local)))
        text = urdf.constraint(name, *sides, self._losses() if kind == 'revolute' else None)
        self.closures.append(text.replace('type="revolute"', f'type="{kind}"', 1))
        frame = np.array((across, np.cross(axis, across), axis))
        shifts = frame[:2] if kind == 'prismatic' else frame
        turns = {'revolute': frame[:2], 'spherical': frame[:0], 'universal': frame[1:2]}.get(kind, frame)
        self.rows.append((a, b, points[1], shifts, turns))

    def _null_space(self, joints, first):
        """Return orthonormal rates of the joints that the closures from `first` on allow, None near a singularity."""
        columns = {joint.name: k for k, joint in enumerate(joints)}
        K = np.zeros((0, len(joints)))
        for a, b, point, shifts, turns in self.rows[first:]:
            block = np.zeros((len(shifts) + len(turns), len(joints)))
            for sign, link in ((-1, a), (1, b)):
                while link in self.joint_of and self.joint_of[link].name in columns:
                    joint = self.joint_of[link]
                    slides = joint.kind == 'prismatic'
                    v = joint.axis if slides else np.cross(joint.axis, point - joint.point)
                    w = np.zeros(3) if slides else joint.axis
                    block[:, columns[joint.name]] += sign * np.concatenate((shifts @ v, turns @ w))
                    link = joint.parent
            K = np.vstack((K, block))
        _, values, rows = np.linalg.svd(K) if len(K) else (0, np.zeros(0), np.eye(len(joints)))
        if ((values > 1e-9) & (values < CLEAR)).any():
            return None
        return rows[np.sum(values > 1e-9):].T

    def _independent(self, null):
        """Return random rows of the null space that are well-conditioned coordinates, None if none was found."""
        for _ in range(20):
            chosen = self.rng.choice(len(null), null.shape[1], replace=False)
            if _clear(null[chosen]):
                return [int(k) for k in chosen]
        return None

    def _losses(self):
        return tuple(np.round(self.rng.uniform(1, 20, 2), 2)) if self.friction else None

    def short(self, size, n=3):
        return urdf.few_digits(self.rng, size, n)

    def unit(self):
        axis = self.rng.normal(size=3)
        return axis / np.linalg.norm(axis)

    def near(self, link, size=0.5):
        """Draw a point near a link."""
        return self.pose[link][:3, 3] + self.rng.uniform(-size, size, 3)

    def turning(self):
        return 'continuous' if self.rng.random() < 0.15 else 'revolute'


def _clear(rows):
    return np.linalg.svd(rows, compute_uv=False).min() > 0.2
