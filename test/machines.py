"""Small test machines as URDF text: random chains and trees, the reference machines, long chains of loops.

Every loop is a triangle of barrel pin C, boom pin B and rod eye T, drawn in a plane that may lie anywhere on the
base body. `q` is the angle from C->B to B->T; its sign is the assembly mode.
"""

from itertools import count
import json
from math import acos, asin, atan2, cos, hypot, pi, sin, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np

URDF = Path(__file__).resolve().parent.parent / 'urdf'
DATA = Path(__file__).resolve().parent / 'data'
SINGULAR = asin(0.2)  # random states keep |sin q| >= 0.2


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


def random_state(machine, rng):
    """Draw a state in which no loop is near its toggle points."""
    low, high = np.array([machine.span[name] for name in machine.actuators]).T
    n = len(machine.actuators)
    return State(rng.uniform(low, high), rng.uniform(-1, 1, n), rng.uniform(-2, 2, n), rng.uniform(-500, 500, n))


# ------------------------------------------------------------------------------------------------- random machines

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
    """Like `chain`, but each module sits on any earlier link; with `cylinder_branches` on barrels and rods too."""
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
        control = _control(self.name, actuators, self.passive, declared)
        xml = _robot(self.name, self.elements + [control])
        return Machine(xml, tuple(actuators), self.span, self.initial, tuple(gravity.tolist()))

    def serial(self, name, parent, letter):
        joint, link = (f'{name}_turn' if letter == 'R' else f'{name}_slide'), f'{name}_link'
        axis = self.rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        kind, reach = ('revolute', 3.0) if letter == 'R' else ('prismatic', 0.5)
        xyz, rpy = self.short(0.5), self.short(3)
        self.elements.append(_joint(joint, kind, parent, link, xyz, rpy, axis, (-reach, reach), self.losses()))
        self.link(link)
        self.span[joint], self.initial[joint] = (-reach, reach), float(self.short(0.4, 1)[0])
        return link

    def loop(self, name, parent):
        """Draw a closed triangle in some pose, hang barrel, rod and boom on it, and read the pins off."""
        rng = self.rng
        base, boom_side = rng.uniform(0.8, 1.3), rng.uniform(0.3, 0.6)
        q, heading = rng.choice((-1, 1)) * rng.uniform(1.0, 2.1), rng.uniform(-pi, pi)
        plane = _pose(self.short(0.4), self.short(3))  # on the parent link
        c = rng.uniform(-0.3, 0.3, 2)
        b = c + base * _direction(heading)
        t = b + boom_side * _direction(heading + q)
        pin_c, pin_b, pin_t = (_apply(plane, (*p, rng.uniform(-0.2, 0.2))) for p in (c, b, t))
        axis, stroke_axis = plane[:3, 2], plane[:3, :3] @ (*(t - c) / np.linalg.norm(t - c), 0.0)

        names = {part: f'{name}_{part}' for part in ('barrel', 'cylinder', 'boom')}
        self.link_of = {part: f'{name}_{part}_link' for part in ('barrel', 'rod', 'boom')}
        links = self.link_of
        mount, frame = self.mount(f'{name}_barrel_bracket', parent)
        barrel = self.pin(names['barrel'], mount, links['barrel'], frame, pin_c, axis)
        reach = [sqrt(base**2 + boom_side**2 + 2 * base * boom_side * cos(a)) for a in (pi - SINGULAR, SINGULAR)]
        rod = self.slide(names['cylinder'], links['barrel'], links['rod'], barrel, stroke_axis,
                         reach - np.linalg.norm(t - c))
        mount, frame = self.mount(f'{name}_boom_bracket', parent)
        ends = np.sign(q) * np.array((SINGULAR - 0.05, pi - SINGULAR + 0.05)) - q
        boom = self.pin(names['boom'], mount, links['boom'], frame, pin_b, axis, ends)

        eyes = []
        for pose in (rod, boom):
            xyz, rpy = _apply(_inverse(pose), pin_t), self.short(3)
            eyes.append((xyz, rpy, rng.choice((-1, 1)) * (pose[:3, :3] @ _rotation(rpy)).T @ axis))
        self.elements.append(_constraint(f'{name}_eye', links['rod'], eyes[0], links['boom'], eyes[1], self.losses()))
        self.passive += [names['barrel'], names['boom']]
        return links['boom']

    def mount(self, bracket, parent):
        """Return the link that carries a pin and its pose on the base body: the body itself, or a link fixed to it."""
        if self.rng.random() < 0.5:
            return parent, np.eye(4)
        xyz, rpy = self.short(0.3), self.short(3)
        self.elements.append(_joint(f'{bracket}_mount', 'fixed', parent, bracket, xyz, rpy))
        self.link(bracket)
        return bracket, _pose(xyz, rpy)

    def pin(self, name, parent, child, frame, point, axis, ends=(-7.0, 7.0)):
        """Add a passive revolute joint; `ends` is its range about the drawn pose, used where limits declare the mode."""
        sign, rpy, position = self.rng.choice((-1, 1)), self.short(3), float(self.short(1.5, 1)[0])
        xyz = _apply(_inverse(frame), point)
        local = sign * (frame[:3, :3] @ _rotation(rpy)).T @ axis
        limit = sorted(position + sign * np.asarray(ends)) if self.assembly == 'limits' else (-7.0, 7.0)
        self.elements.append(_joint(name, 'revolute', parent, child, xyz, rpy, local, limit, self.losses()))
        self.link(child)
        self.initial[name] = position
        return frame @ _pose(xyz, rpy) @ _turn(local, position)

    def slide(self, name, parent, child, frame, axis, reach):
        """
        Add the rod, whose stroke may change by `reach`.

        Its joint frame need not lie on the line of the cylinder, only the rod eye does.
        """
        xyz, rpy, position = self.short(0.3), self.short(3), float(self.short(0.5, 1)[0])
        local = (frame[:3, :3] @ _rotation(rpy)).T @ axis
        self.span[name], self.initial[name] = tuple((position + reach).tolist()), position
        limit = position + reach + (-0.01, 0.01)
        self.elements.append(_joint(name, 'prismatic', parent, child, xyz, rpy, local, limit, self.losses()))
        self.link(child)
        return frame @ _pose(xyz, rpy) @ _pose(local * position, (0, 0, 0))

    def link(self, name):
        """Add a link whose inertia is that of some real body: principal moments are sums of two positive numbers."""
        mass = round(self.rng.uniform(5, 50), 3)
        a, b, c = np.round(mass * self.rng.uniform(0.01, 0.1, 3), 4)
        inertia = np.diag((b + c, a + c, a + b))
        rotation = _rotation(self.short(3))
        self.elements.append(_link(name, mass, self.short(0.4), rotation @ inertia @ rotation.T, self.short(3)))

    def losses(self):
        return tuple(np.round(self.rng.uniform(1, 50, 2), 2)) if self.friction else None

    def short(self, size, n=3):
        """Draw n numbers of few digits: the URDF stays readable, and only what closes a loop has 17 of them."""
        return np.round(self.rng.uniform(-size, size, n), 3)


# ---------------------------------------------------------------------------------------------- reference machines

def hiab(lift_only=False):
    """Return the crane of the package, or its lift loop; spans are the joint limits."""
    span = {'lift_cylinder': (0.0, 0.5)}
    initial = {'lift_cylinder': 0.2, **_hiab_triangle('lift', 0.2, 1.0071227324212, 0.37610632101293)}
    if lift_only:
        return Machine((URDF / 'hiab_xs031_lift.urdf').read_text(), tuple(span), span, initial)
    span = {'slew': (-3.0, 3.0), **span, 'tilt_cylinder': (0.03, 0.58), 'telescope': (0.0, 1.1)}
    initial |= {'slew': 0.0, 'tilt_cylinder': 0.3, 'telescope': 0.3}
    initial |= _hiab_triangle('tilt', 0.3, 1.132185817991, 0.30901132665325)
    return Machine((URDF / 'hiab_xs031.urdf').read_text(), tuple(span), span, initial)


def _hiab_triangle(loop, stroke, base, boom_side):
    boom, barrel = _angles(stroke + 0.83, base, boom_side)
    return {f'{loop}_boom': boom, f'{loop}_barrel': barrel}


def paz_machine(name):
    """Return the machine of a JSON file in test/data: 'paz_one_loop_415kg' or 'paz_four_dof_1063kg'."""
    data = json.loads((DATA / f'{name}.json').read_text())
    first = data['trajectory_inverse_dynamics'][0]
    loops = iter(first['q_q1_q2'])
    elements, passive, span, initial = [_link('base_link')], [], {}, {}
    end = 'base_link'
    for k, (module, position) in enumerate(zip(data['parameters'], first['x']), 1):
        x, base, moving = f'x{k}', f'base{k}', f'moving{k}'
        elements += [_fixed(end, base, module['T_in']), _link_6x6(base, module['M0'])]
        initial[x] = position
        if module['type'] == 'ser':
            axis = np.array(module['s'][:3]) + module['s'][3:]
            kind = 'revolute' if any(module['s'][3:]) else 'prismatic'
            span[x] = (-3.0, 3.0)
            elements += [_joint(x, kind, base, moving, *_xyz_rpy(module['TJ']), axis, span[x]),
                         _link_6x6(moving, module['M4'])]
        else:
            q, barrel, rod, z = f'q{k}', f'barrel{k}', f'rod{k}', (0, 0, 1)
            long, short, least = module['L'], module['L1'], module['Lc'] + module['Lc0']
            span[x] = tuple(sqrt(long**2 + short**2 + 2 * long * short * cos(a)) - least
                            for a in (pi - SINGULAR, SINGULAR))
            initial[q], initial[f'{q}_barrel'], _ = next(loops)
            elements += [_joint(f'{q}_barrel', 'revolute', base, barrel, *_xyz_rpy(module['TB3']), z, (-pi, 0)),
                         _link_6x6(barrel, module['M3']),
                         _joint(x, 'prismatic', barrel, rod, (module['Lc0'], 0, 0), (0, 0, 0), (1, 0, 0), span[x]),
                         _link_6x6(rod, module['M4']),
                         _joint(q, 'revolute', base, moving, *_xyz_rpy(module['TB1']), z, (-pi, 0)),
                         _link_6x6(moving, module['M1']),
                         _constraint(f'eye{k}', rod, ((module['Lc'], 0, 0), (0, 0, 0), z),
                                     moving, ((short, 0, 0), (0, 0, 0), z))]
            passive += [f'{q}_barrel', q]
        end = f'end{k}'
        elements += [_fixed(moving, end, module['TE']), _link_6x6(end, module['ME'])]
    gravity = (-9.81, 0.0, 0.0) if 'one_loop' in name else (0.0, 0.0, -9.81)
    xml = _robot(name, elements + [_control(name, list(span), passive, initial)])
    return Machine(xml, tuple(span), span, initial, gravity)


def loop_chain(n):
    """
    Return a chain of n loop modules, for cost and bench: all alike, tapering to a quarter of the size at the tip.

    Successive planes are turned by a right angle about the boom, so that the chain bends in space; written with text
    alone, since n may be 600.
    """
    x, base, boom_side, offset = 0.3, 1.1, 0.45, 0.9
    q, barrel = _angles(x + offset, base, boom_side)
    z, none = (0, 0, 1), (0, 0, 0)
    elements, passive, span, initial = [_link('base_link')], [], {}, {}
    parent, heel = 'base_link', 0.0
    for k in range(1, n + 1):
        scale = 0.25 ** ((k - 1) / n)
        parts = [f'{part}{k}' for part in ('barrel', 'rod', 'boom')]
        heading = (pi / 2, 0, 0) if k > 1 else none
        elements += [
            _joint(f'q{k}_barrel', 'revolute', parent, parts[0], (heel, 0, 0), heading, z, (-pi, 0)),
            _link(parts[0], 25 * scale**3, (0.3 * scale, 0, 0.01 * scale), np.diag((0.1, 0.8, 0.8)) * scale**5),
            _joint(f'x{k}', 'prismatic', parts[0], parts[1], (0.5 * scale, 0, 0), none, (1, 0, 0),
                   (-0.2 * scale, 0.6 * scale)),
            _link(parts[1], 12 * scale**3, (0.1 * scale, 0, 0), np.diag((0.02, 0.3, 0.3)) * scale**5),
            _joint(f'q{k}', 'revolute', parent, parts[2], (heel + base * scale, 0, 0), heading, z, (-pi, 0)),
            _link(parts[2], 60 * scale**3, (0.4 * scale, 0.05 * scale, -0.02 * scale),
                  np.array(((1, 0.2, 0.1), (0.2, 8, 0.3), (0.1, 0.3, 8))) * scale**5),
            _constraint(f'eye{k}', parts[1], ((0.4 * scale, 0, 0), none, z),
                        parts[2], ((boom_side * scale, 0, 0), none, z))]
        passive += [f'q{k}_barrel', f'q{k}']
        span[f'x{k}'] = (-0.15 * scale, 0.55 * scale)
        initial |= {f'x{k}': x * scale, f'q{k}_barrel': barrel, f'q{k}': q}
        parent, heel = parts[2], 0.8 * scale
    name = f'loop_chain_{n}'
    xml = _robot(name, elements + [_control(name, list(span), passive, initial)])
    return Machine(xml, tuple(span), span, initial)


def _angles(s, base, boom_side):
    """Return boom and barrel angle of the triangle with sides s, base and boom_side, on the branch q < 0."""
    return (-acos((s * s - base**2 - boom_side**2) / (2 * base * boom_side)),
            -acos((s * s + base**2 - boom_side**2) / (2 * s * base)))


# ------------------------------------------------------------------------------------------------------------ text

def _robot(name, elements):
    return f'<robot name="{name}">\n' + '\n'.join(elements) + '\n</robot>\n'


def _numbers(values):
    return ' '.join(repr(float(value)) for value in values)


def _link(name, mass=0.0, com=(0, 0, 0), inertia=None, rpy=(0, 0, 0)):
    if not mass:
        return f'<link name="{name}"/>'
    entries = zip(('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'), (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2))
    moments = ' '.join(f'{key}="{float(inertia[i, j])!r}"' for key, i, j in entries)
    return (f'<link name="{name}"><inertial>{_origin("origin", com, rpy)}<mass value="{float(mass)!r}"/>'
            f'<inertia {moments}/></inertial></link>')


def _link_6x6(name, spatial):
    """Write a link whose spatial inertia (linear part first) is given at its own origin."""
    m = np.array(spatial)
    mass = m[0, 0]
    if not mass:
        return _link(name)
    com = np.array((m[5, 1], m[3, 2], m[4, 0])) / mass
    return _link(name, mass, com, m[3:, 3:] - mass * (com @ com * np.eye(3) - np.outer(com, com)))


def _joint(name, kind, parent, child, xyz, rpy, axis=None, limit=None, losses=None):
    parts = [f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>',
             _origin('origin', xyz, rpy)]
    if axis is not None:
        parts += [f'<axis xyz="{_numbers(axis)}"/>',
                  f'<limit lower="{float(limit[0])!r}" upper="{float(limit[1])!r}" effort="1e6" velocity="10"/>']
    return ''.join(parts) + _dynamics(losses) + '</joint>'


def _fixed(parent, child, pose):
    return _joint(f'{child}_mount', 'fixed', parent, child, *_xyz_rpy(pose))


def _constraint(name, parent, parent_pin, child, child_pin, losses=None):
    """Write a pin; each side is (xyz, rpy, axis), the axis in the frame that xyz and rpy place on the link."""
    sides = [f'<{side} link="{link}"/>{_origin(side + "_origin", xyz, rpy)}<{side}_axis xyz="{_numbers(axis)}"/>'
             for side, link, (xyz, rpy, axis) in (('parent', parent, parent_pin), ('child', child, child_pin))]
    return f'<constraint name="{name}" type="revolute">' + ''.join(sides) + _dynamics(losses) + '</constraint>'


def _origin(tag, xyz, rpy):
    return f'<{tag} xyz="{_numbers(xyz)}" rpy="{_numbers(rpy)}"/>'


def _dynamics(losses):
    return f'<dynamics damping="{float(losses[0])!r}" friction="{float(losses[1])!r}"/>' if losses else ''


def _control(name, actuators, passive, initial):
    """Write <ros2_control>; joints that `initial` does not name get no initial_value."""
    lines = [f'<ros2_control name="{name}" type="system"><hardware><plugin>mock_components/GenericSystem</plugin>'
             '</hardware>']
    for joint in actuators + passive:
        value = f'<param name="initial_value">{float(initial[joint])!r}</param>' if joint in initial else ''
        command = '<command_interface name="effort"/>' if joint in actuators else ''
        lines.append(f'<joint name="{joint}">{command}<state_interface name="position">{value}</state_interface>'
                     '<state_interface name="velocity"/></joint>')
    return '\n'.join(lines) + '\n</ros2_control>'


# -------------------------------------------------------------------------------------------------------- geometry

def _direction(angle):
    return np.array((cos(angle), sin(angle)))


def _rotation(rpy):
    (cr, sr), (cp, sp), (cy, sy) = ((cos(a), sin(a)) for a in rpy)
    return np.array(((cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
                     (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
                     (-sp, cp * sr, cp * cr)))


def _pose(xyz, rpy):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = _rotation(rpy), xyz
    return pose


def _turn(axis, angle):
    """Return the pose of a body turned about an axis through the origin (Rodrigues)."""
    x, y, z = axis
    cross = np.array(((0, -z, y), (z, 0, -x), (-y, x, 0)))
    pose = np.eye(4)
    pose[:3, :3] += sin(angle) * cross + (1 - cos(angle)) * cross @ cross
    return pose


def _inverse(pose):
    inverse = np.eye(4)
    inverse[:3, :3], inverse[:3, 3] = pose[:3, :3].T, -pose[:3, :3].T @ pose[:3, 3]
    return inverse


def _apply(pose, point):
    return pose[:3, :3] @ point + pose[:3, 3]


def _xyz_rpy(pose):
    """Return the URDF origin of a pose; at pitch +-90 degrees the yaw is chosen as zero."""
    p = np.array(pose)
    pitch = atan2(-p[2, 0], hypot(p[0, 0], p[1, 0]))
    if hypot(p[0, 0], p[1, 0]) < 1e-9:
        return p[:3, 3], (atan2(-p[1, 2], p[1, 1]), pitch, 0.0)
    return p[:3, 3], (atan2(p[2, 1], p[2, 2]), pitch, atan2(p[1, 0], p[0, 0]))
