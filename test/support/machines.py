"""
Small test machines as URDF text: random chains and trees, the reference machines, long chains of loops.

Every loop is a triangle of barrel pin C, boom pin B and rod eye T, drawn in a plane that may lie anywhere on
the base body. `q` is the angle from C->B to B->T; its sign is the assembly mode.
"""

from itertools import count
from math import acos, asin, cos, pi, sqrt
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

import psdyn_ros
from psdyn_ros.assembly.clusters import ClusterBuilder
from psdyn_ros.model.errors import TogglePointError, UnreachableStrokeError

from . import urdf_text as urdf
from .paths import URDF
from .reference import reference

SINGULAR = asin(0.2)  # random states keep |sin q| >= 0.2

# inertias of one module of `loop_chain` at full size [kg m^2]
BARREL, ROD = np.diag((0.1, 0.8, 0.8)), np.diag((0.02, 0.3, 0.3))
BOOM = np.array(((1.0, 0.2, 0.1), (0.2, 8.0, 0.3), (0.1, 0.3, 8.0)))


class Machine(NamedTuple):
    """A machine and what a test has to know about it."""

    xml: str
    actuators: tuple  # joint names, in the order of <ros2_control>
    span: dict  # actuator -> (lowest, highest) position of random states
    initial: dict  # joint -> position; one pose in which all loops are closed
    gravity: tuple = (0.0, 0.0, -9.81)


class State(NamedTuple):
    """Actuator positions, velocities, accelerations and forces, each in the order of the actuators."""

    x: np.ndarray
    xd: np.ndarray
    xdd: np.ndarray
    f: np.ndarray


def load(machine, **options):
    return psdyn_ros.load(machine.xml, gravity=machine.gravity, **options)


def builder_of(m):
    """Return a `ClusterBuilder` with the coordinates and assembly modes of a machine."""
    loops = m.machine.loops
    builder = ClusterBuilder(m.machine, loops)
    builder.loops.orientation_checks[:] = loops.orientation_checks
    builder.choose([loops.poses[c['pose'], :c['joints']] for c in loops.clusters], m.coordinates)
    assert np.array_equal(builder.cluster_joints['independent'], loops.cluster_joints['independent'])
    return builder


def random_state(machine, rng):
    """Draw a state in which no loop is near its toggle points."""
    low, high = np.array([machine.span[name] for name in machine.actuators]).T
    xd, xdd, f = rng.uniform(-1, 1, (3, low.size)) * ((0.5,), (2,), (500,))
    return State(rng.uniform(low, high), xd, xdd, f)


def near_start(manipulator, rng, spread):
    """Draw a position with joints within `spread` (m, rad) of the initial one, nearer where its loops need it.

    A floating base is anywhere.
    """
    offset = rng.uniform(-spread, spread, manipulator.nx - 7 * manipulator.floating)
    while True:
        x = manipulator.initial_position
        x[7 * manipulator.floating:] += offset
        if manipulator.floating:
            x[:7] = rng.normal(size=7)
            x[3:7] /= np.linalg.norm(x[3:7])
        try:
            manipulator.joint_state(x)
        except (UnreachableStrokeError, TogglePointError):
            offset *= 0.3
        else:
            return x


def random_wrenches(manipulator, rng):
    """Draw forces [N] and moments [N m] on every link."""
    return {link: rng.normal(size=(2, 3)) * ((100,), (50,)) for link in manipulator.links}


def chain(seed, modules, **options):
    """
    Build a chain of modules, each on the moving link of the one before.

    modules: a word of R (revolute), P (prismatic) and L (loop), or a number of random letters.
    options: `friction` puts <dynamics> on every joint and pin; `assembly` says how the modes are declared,
    by 'initial' (initial_value of the state interfaces) or by 'limits' (of the boom joints).
    """
    builder = _Builder(seed, **options)
    link = 'base_link'
    for letter in builder.word(modules):
        link = builder.add(letter, link)
    return builder.machine()


def tree(seed, modules, cylinder_branches=False, **options):
    """Like `chain`, but a module sits on any earlier link; with `cylinder_branches` also on barrel or rod."""
    builder = _Builder(seed, **options)
    links = ['base_link']
    for letter in builder.word(modules):
        links.append(builder.add(letter, str(builder.rng.choice(links))))
        if cylinder_branches and letter == 'L':
            links += [builder.link_of['barrel'], builder.link_of['rod']]
    return builder.machine()


class _Builder:
    """Draws modules one after another and collects their XML; poses in this class are 4 x 4 matrices."""

    def __init__(self, seed, friction=False, assembly='initial'):
        self.rng = np.random.default_rng(seed)
        self.name = f'machine_{seed}'
        self.friction, self.assembly = friction, assembly
        self.numbers = count(1)
        self.elements = []
        self.link_of = {}
        self.passive, self.span, self.initial = [], {}, {}
        self.link('base_link')

    def word(self, modules):
        return modules if isinstance(modules, str) else ''.join(self.rng.choice(list('RPLL'), modules))

    def add(self, letter, parent):
        """Put a module on a link and return the name of its moving link."""
        name = f'm{next(self.numbers)}'
        return self.loop(name, parent) if letter == 'L' else self.serial(name, parent, letter)

    def machine(self):
        gravity = self.rng.normal(size=3)
        gravity *= 9.81 / np.linalg.norm(gravity)
        actuators = [str(name) for name in self.rng.permutation(list(self.span))]
        declared = {} if self.assembly == 'limits' else self.initial
        control = urdf.control(self.name, actuators, self.passive, declared)
        xml = urdf.robot(self.name, self.elements + [control])
        return Machine(xml, tuple(actuators), self.span, self.initial, tuple(gravity.tolist()))

    def serial(self, name, parent, letter):
        kind, joint, reach = ('revolute', 'turn', 3.0) if letter == 'R' else ('prismatic', 'slide', 0.5)
        axis = self.rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        joint, link, span = f'{name}_{joint}', f'{name}_link', (-reach, reach)
        self.joint(joint, kind, parent, link, self.short(0.5), self.short(3), axis, span)
        self.span[joint], self.initial[joint] = span, float(self.short(0.4, 1)[0])
        return link

    def loop(self, name, parent):
        """Draw a closed triangle in some pose, hang barrel, rod and boom on it, and read the pins off."""
        rng = self.rng
        base, boom_side = rng.uniform(0.8, 1.3), rng.uniform(0.3, 0.6)
        q, heading = rng.choice((-1, 1)) * rng.uniform(1.0, 2.1), rng.uniform(-pi, pi)
        c = rng.uniform(-0.3, 0.3, 2)
        b = c + base * urdf.direction(heading)
        t = b + boom_side * urdf.direction(heading + q)
        s = np.linalg.norm(t - c)
        plane = urdf.pose(self.short(0.4), self.short(3))  # on the parent link
        pin_c, pin_b, pin_t = (urdf.apply(plane, (*p, rng.uniform(-0.2, 0.2))) for p in (c, b, t))
        axis, stroke_axis = plane[:3, 2], plane[:3, :3] @ (*(t - c) / s, 0.0)

        self.link_of = links = {part: f'{name}_{part}_link' for part in ('barrel', 'rod', 'boom')}
        mount, frame = self.mount(f'{name}_barrel_bracket', parent)
        barrel = self.pin(f'{name}_barrel', mount, links['barrel'], frame, pin_c, axis)
        reach = np.array(_reach(base, boom_side)) - s
        rod = self.slide(f'{name}_cylinder', links['barrel'], links['rod'], barrel, stroke_axis, reach)
        mount, frame = self.mount(f'{name}_boom_bracket', parent)
        ends = np.sign(q) * np.array((SINGULAR - 0.05, pi - SINGULAR + 0.05)) - q
        boom = self.pin(f'{name}_boom', mount, links['boom'], frame, pin_b, axis, ends)

        eyes = []
        for link, pose in ((links['rod'], rod), (links['boom'], boom)):
            rpy = self.short(3)
            eye_axis = rng.choice((-1, 1)) * (pose[:3, :3] @ urdf.rotation(rpy)).T @ axis
            eyes.append((link, urdf.apply(urdf.inverse(pose), pin_t), rpy, eye_axis))
        self.elements.append(urdf.constraint(f'{name}_eye', *eyes, self.losses()))
        self.passive += [f'{name}_barrel', f'{name}_boom']
        return links['boom']

    def mount(self, bracket, parent):
        """Return a link that carries a pin, the body or a link fixed to it, and its pose on the body."""
        if self.rng.random() < 0.5:
            return parent, np.eye(4)
        xyz, rpy = self.short(0.3), self.short(3)
        self.elements.append(urdf.joint(f'{bracket}_mount', 'fixed', parent, bracket, xyz, rpy))
        self.link(bracket)
        return bracket, urdf.pose(xyz, rpy)

    def pin(self, name, parent, child, frame, point, axis, ends=(-7.0, 7.0)):
        """Add a passive joint; `ends` is its range about the drawn pose, where limits declare the mode."""
        sign, rpy, position = self.rng.choice((-1, 1)), self.short(3), float(self.short(1.5, 1)[0])
        xyz = urdf.apply(urdf.inverse(frame), point)
        local = sign * (frame[:3, :3] @ urdf.rotation(rpy)).T @ axis
        limit = sorted(position + sign * np.asarray(ends)) if self.assembly == 'limits' else (-7.0, 7.0)
        self.joint(name, 'revolute', parent, child, xyz, rpy, local, limit)
        self.initial[name] = position
        return frame @ urdf.pose(xyz, rpy) @ urdf.turn(local, position)

    def slide(self, name, parent, child, frame, axis, reach):
        """Add a rod that may move by `reach`; its joint frame need not lie on the line of the cylinder."""
        xyz, rpy, position = self.short(0.3), self.short(3), float(self.short(0.5, 1)[0])
        local = (frame[:3, :3] @ urdf.rotation(rpy)).T @ axis
        self.joint(name, 'prismatic', parent, child, xyz, rpy, local, position + reach + (-0.01, 0.01))
        self.span[name], self.initial[name] = tuple((position + reach).tolist()), position
        return frame @ urdf.pose(xyz, rpy) @ urdf.pose(local * position, (0, 0, 0))

    def joint(self, name, kind, parent, child, *geometry):
        self.elements.append(urdf.joint(name, kind, parent, child, *geometry, self.losses()))
        self.link(child)

    def link(self, name):
        self.elements.append(urdf.random_link(name, self.rng, (5, 50), 0.4))

    def losses(self):
        return tuple(np.round(self.rng.uniform(1, 50, 2), 2)) if self.friction else None

    def short(self, size, n=3):
        return urdf.few_digits(self.rng, size, n)


def hiab(lift_only=False):
    """Return the crane of the package, or its lift loop; spans are the joint limits."""
    lift = {'lift_cylinder': (0.0, 0.5)}
    span = lift if lift_only else {
        'slew': (-3.0, 3.0), **lift, 'tilt_cylinder': (0.03, 0.58), 'telescope': (0.0, 1.1)}
    xml = (URDF / f'hiab_xs031{"_lift" * lift_only}.urdf').read_text()
    initial = {joint.get('name'): float(joint.find('*/param').text)
               for joint in ElementTree.fromstring(xml).findall('ros2_control/joint')}
    return Machine(xml, tuple(span), span, initial)


def paz_machine(name):
    """Return the machine of reference numbers: 'paz_one_loop_415kg' or 'paz_four_dof_1063kg'."""
    data = reference(name)
    first = data['trajectory_inverse_dynamics'][0]
    angles = iter(first['q_q1_q2'])
    elements, passive, span, initial = [urdf.link('base_link')], [], {}, {}
    end = 'base_link'
    for k, (module, position) in enumerate(zip(data['parameters'], first['x']), 1):
        base, moving = f'base{k}', f'moving{k}'
        elements += [urdf.fixed(end, base, module['T_in']), urdf.link_6x6(base, module['M0'])]
        if module['type'] == 'ser':
            span[f'x{k}'] = (-3.0, 3.0)
            elements += _paz_serial(k, module)
        else:
            span[f'x{k}'] = tuple(s - module['Lc'] - module['Lc0'] for s in _reach(module['L'], module['L1']))
            elements += _paz_loop(k, module, span[f'x{k}'])
            initial[f'boom{k}'], initial[f'barrel{k}'], _ = next(angles)
            passive += [f'barrel{k}', f'boom{k}']
        initial[f'x{k}'] = position
        end = f'end{k}'
        elements += [urdf.fixed(moving, end, module['TE']), urdf.link_6x6(end, module['ME'])]
    gravity = (-9.81, 0.0, 0.0) if 'one_loop' in name else (0.0, 0.0, -9.81)
    xml = urdf.robot(name, elements + [urdf.control(name, list(span), passive, initial)])
    return Machine(xml, tuple(span), span, initial, gravity)


def _paz_serial(k, module):
    linear, angular = np.split(np.array(module['s']), 2)
    kind = 'revolute' if angular.any() else 'prismatic'
    place = urdf.xyz_rpy(module['TJ'])
    return [urdf.joint(f'x{k}', kind, f'base{k}', f'moving{k}', *place, linear + angular, (-3.0, 3.0)),
            urdf.link_6x6(f'moving{k}', module['M4'])]


def _paz_loop(k, module, span):
    base, boom, barrel, rod = f'base{k}', f'moving{k}', f'barrel{k}_link', f'rod{k}'
    z, none, negative = (0, 0, 1), (0, 0, 0), (-pi, 0)
    return [urdf.joint(f'barrel{k}', 'revolute', base, barrel, *urdf.xyz_rpy(module['TB3']), z, negative),
            urdf.link_6x6(barrel, module['M3']),
            urdf.joint(f'x{k}', 'prismatic', barrel, rod, (module['Lc0'], 0, 0), none, (1, 0, 0), span),
            urdf.link_6x6(rod, module['M4']),
            urdf.joint(f'boom{k}', 'revolute', base, boom, *urdf.xyz_rpy(module['TB1']), z, negative),
            urdf.link_6x6(boom, module['M1']),
            urdf.constraint(f'eye{k}', (rod, (module['Lc'], 0, 0), none, z),
                            (boom, (module['L1'], 0, 0), none, z))]


def loop_chain(n):
    """
    Return a chain of n loop modules for cost and bench, all alike, tapering to a quarter of the size.

    Successive planes differ by a right angle about the boom, so that the chain bends in space.
    """
    s, base, boom_side = 1.2, 1.1, 0.45
    q, q1 = (-acos((s**2 - base**2 - boom_side**2) / (2 * base * boom_side)),
             -acos((s**2 + base**2 - boom_side**2) / (2 * s * base)))
    z, none = (0, 0, 1), (0, 0, 0)
    elements, passive, span, initial = [urdf.link('base_link')], [], {}, {}
    parent, heel, turned = 'base_link', 0.0, none
    for k in range(1, n + 1):
        size = 0.25 ** ((k - 1) / n)
        mass, moment = size**3, size**5
        barrel, rod, boom = (f'{part}{k}_link' for part in ('barrel', 'rod', 'boom'))
        span[f'x{k}'], limit = (-0.15 * size, 0.55 * size), (-0.2 * size, 0.6 * size)
        elements += [
            urdf.joint(f'barrel{k}', 'revolute', parent, barrel, (heel, 0, 0), turned, z, (-pi, 0)),
            urdf.link(barrel, 25 * mass, (0.3 * size, 0, 0.01 * size), moment * BARREL),
            urdf.joint(f'x{k}', 'prismatic', barrel, rod, (0.5 * size, 0, 0), none, (1, 0, 0), limit),
            urdf.link(rod, 12 * mass, (0.1 * size, 0, 0), moment * ROD),
            urdf.joint(f'boom{k}', 'revolute', parent, boom, (heel + base * size, 0, 0), turned, z, (-pi, 0)),
            urdf.link(boom, 60 * mass, (0.4 * size, 0.05 * size, -0.02 * size), moment * BOOM),
            urdf.constraint(f'eye{k}', (rod, (0.4 * size, 0, 0), none, z),
                            (boom, (boom_side * size, 0, 0), none, z))]
        passive += [f'barrel{k}', f'boom{k}']
        initial |= {f'x{k}': (s - 0.9) * size, f'barrel{k}': q1, f'boom{k}': q}
        parent, heel, turned = boom, 0.8 * size, (pi / 2, 0, 0)
    name = f'loop_chain_{n}'
    xml = urdf.robot(name, elements + [urdf.control(name, list(span), passive, initial)])
    return Machine(xml, tuple(span), span, initial)


def _reach(base, boom_side):
    """Return the shortest and the longest pin distance of a cylinder with |sin q| >= 0.2."""
    return tuple(sqrt(base**2 + boom_side**2 + 2 * base * boom_side * cos(q))
                 for q in (pi - SINGULAR, SINGULAR))


def moving(m, rng):
    """(x, xd, position, velocity) of all joints near the initial position."""
    x, xd = m.initial_position + rng.uniform(-0.02, 0.02, m.dof), rng.uniform(-0.1, 0.1, m.dof)
    _, q, qd, _ = m.joint_state(x, xd)
    return x, xd, q, qd


def columns(m, names):
    return [m.joints.index(name) for name in names]
