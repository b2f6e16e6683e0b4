"""Mechanisms whose rods end in balls, as URDF text: delta robot, Stewart platform 6-UPS, spatial four-bar RSSR.

The spanning tree carries the platform of a robot on the first leg, by a ball of three crossed pins; spherical closures
tie the other legs to it. All joints are at zero in the initial pose, in which the platform is level.
"""

from math import pi

import numpy as np

from . import urdf_text as urdf
from .general_machines import GeneralMachine

GRAVITY = (0.0, 0.0, -9.81)
WIDE = (-3.0, 3.0)


def delta_robot(reach=0.5):
    """Return a delta robot: three arms, driven within `reach` [rad], and two rods from each arm to the platform.

    A rod stands on its arm by a universal joint, so that it cannot spin: 18 joints, 15 equations, three coordinates.
    """
    platform_at = np.array((0.03, -0.02, -0.65))        # off the axis of symmetry
    elements, legs, names = [urdf.link('base_link', 20, (0, 0, 0), np.diag((1, 1, 2)))], [], []
    for k, turn in enumerate((0.0, 2 * pi / 3, 4 * pi / 3)):
        outward, across = np.array((*urdf.direction(turn), 0)), np.array((*urdf.direction(turn + pi / 2), 0))
        hip, elbow = 0.2 * outward, 0.2 * outward + 0.3 * (0.9 * outward - (0, 0, 0.19 ** 0.5))
        name = f'arm_{k + 1}'
        names.append(name)
        elements += [urdf.joint(name, 'revolute', 'base_link', f'{name}_link', hip, (0, 0, 0), across, (-reach, reach)),
                     urdf.link(f'{name}_link', 0.8, 0.5 * (elbow - hip), np.diag((4e-3, 4e-3, 6e-3)))]
        for side in (-0.05, 0.05):
            legs.append((f'{name}_link', elbow - hip + side * across, elbow + side * across,
                         platform_at + 0.06 * outward + side * across))
    for k, (link, point, start, end) in enumerate(legs):
        elements += _universal(f'rod_{k + 1}', link, point, end - start, WIDE)
        length = np.linalg.norm(end - start)
        elements.append(urdf.link(f'rod_{k + 1}', 0.15, (0, 0, length / 2), np.diag((4e-3, 4e-3, 2e-5))))
        elements += _ball(f'rod_{k + 1}', (0, 0, length), end - start, end - platform_at, k == 0)
    elements.append(urdf.link('platform', 0.6, (0.01, 0.0, -0.02), np.diag((8e-4, 9e-4, 1.5e-3))))
    return _machine('delta', elements, names)


def stewart_platform(reach=0.2):
    """Return a Stewart platform 6-UPS: six cylinders of 2 kg and more, driven within `reach` [m] of their length.

    21 joints, 15 equations, six coordinates.
    """
    platform_at = np.array((0.05, -0.03, 1.0))
    elements, names = [urdf.link('base_link', 50, (0, 0, 0), np.diag((3, 3, 6)))], []
    for k in range(6):
        pair, side = k // 2 * 2 * pi / 3, 2 * (k % 2) - 1
        start = 0.9 * np.array((*urdf.direction(pair + 0.25 * side), 0))
        end = platform_at + 0.5 * np.array((*urdf.direction(pair + 0.8 * side), 0.02 * k))
        length, name = np.linalg.norm(end - start), f'leg_{k + 1}'
        names.append(name)
        elements += _universal(f'barrel_{k + 1}', 'base_link', start, end - start, WIDE)
        elements += [urdf.link(f'barrel_{k + 1}', 4, (0, 0, 0.3), np.diag((0.12, 0.12, 0.005))),
                     urdf.joint(name, 'prismatic', f'barrel_{k + 1}', f'rod_{k + 1}', (0, 0, 0.4), (0, 0, 0), (0, 0, 1),
                                (-reach, reach)),
                     urdf.link(f'rod_{k + 1}', 2, (0, 0, 0.3), np.diag((0.06, 0.06, 0.001)))]
        elements += _ball(f'rod_{k + 1}', (0, 0, length - 0.4), end - start, end - platform_at, k == 0)
    elements.append(urdf.link('platform', 30, (0.02, 0.01, 0.1), np.diag((1.5, 1.6, 2.5))))
    return _machine('stewart', elements, names)


def rssr(reach=0.6):
    """Return the spatial four-bar: a crank, driven within `reach` [rad], a rod, and a rocker about another axis.

    The rod stands on the crank by a universal joint, so that it cannot spin: 4 joints, 3 equations, one coordinate.
    """
    crank_end, rocker_at, rocker_end = np.array((0.25, 0.0, 0.1)), np.array((0.8, 0.3, 0.0)), np.array((0.0, 0.1, 0.5))
    rod = rocker_at + rocker_end - crank_end
    length = np.linalg.norm(rod)
    elements = [
        urdf.link('base_link', 20, (0, 0, 0), np.diag((1, 1, 2))),
        urdf.joint('crank', 'revolute', 'base_link', 'crank_link', (0, 0, 0), (0, 0, 0), (0, 0.6, 0.8),
                   (-reach, reach)),
        urdf.link('crank_link', 3, 0.5 * crank_end, np.diag((0.01, 0.03, 0.03))),
        *_universal('rod', 'crank_link', crank_end, rod, WIDE),
        urdf.link('rod', 2, (0, 0, length / 2), np.diag((0.08, 0.08, 0.001))),
        urdf.joint('rocker', 'revolute', 'base_link', 'rocker_link', rocker_at, (0, 0, 0), (1, 0, 0), WIDE),
        urdf.link('rocker_link', 4, 0.5 * rocker_end, np.diag((0.09, 0.09, 0.01))),
        _spherical('ball', 'rod', (0, 0, length), 'rocker_link', rocker_end)]
    return _machine('rssr', elements, ['crank'])


def _universal(name, parent, point, direction, limit):
    """Write a universal joint on a link whose axes are the base's, to a link `name` whose z is `direction`."""
    rotation = _along(direction)
    placed = np.eye(4)
    placed[:3, :3], placed[:3, 3] = rotation, point
    return [urdf.joint(f'{name}_x', 'revolute', parent, f'{name}_cross', *urdf.xyz_rpy(placed), (1, 0, 0), limit),
            urdf.link(f'{name}_cross'),
            urdf.joint(f'{name}_y', 'revolute', f'{name}_cross', name, (0, 0, 0), (0, 0, 0), (0, 1, 0), limit)]


def _ball(link, point, direction, on_platform, carries):
    """Write the ball between a link, whose z is `direction`, and a point of the platform, whose axes are the base's."""
    if not carries:
        return [_spherical(f'{link}_ball', link, point, 'platform', on_platform)]
    placed = np.eye(4)
    placed[:3, :3], placed[:3, 3] = _along(direction).T, point
    to_centre = np.eye(4)
    to_centre[:3, 3] = -on_platform
    frame, parts = placed, []
    for axis, child in zip(np.eye(3), ('ball_x', 'ball_y', 'ball')):
        parts += [urdf.joint(f'{child}_joint', 'revolute', link, child, *urdf.xyz_rpy(frame), axis, WIDE),
                  urdf.link(child)]
        link, frame = child, np.eye(4)
    return [*parts, urdf.fixed('ball', 'platform', to_centre)]


def _spherical(name, link, point, other, other_point):
    ends = (link, point, (0, 0, 0), (0, 0, 1)), (other, other_point, (0, 0, 0), (0, 0, 1))
    return urdf.constraint(name, *ends).replace('type="revolute"', 'type="spherical"', 1)


def _along(direction):
    """Return a rotation whose z is `direction`."""
    z = direction / np.linalg.norm(direction)
    x = np.cross((0.0, 1.0, 0.0), z)
    x /= np.linalg.norm(x)
    return np.column_stack((x, np.cross(z, x), z))


def _machine(name, elements, actuators):
    joints = [part.split('"')[1] for part in elements if part.startswith('<joint') and 'type="fixed"' not in part]
    passive = [joint for joint in joints if joint not in actuators]
    initial = dict.fromkeys(joints, 0.0)
    xml = urdf.robot(name, [*elements, urdf.control(name, actuators, passive, initial)])
    return GeneralMachine(xml, tuple(actuators), tuple(actuators), initial, GRAVITY, (name,), False)
