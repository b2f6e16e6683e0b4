"""Machines whose loops come to change points, branch points and dead points, as URDF text."""

import numpy as np

from . import urdf_text as urdf

GRAVITY = (0.0, -9.81, 0.0)  # in the plane of the linkages
BODY = np.diag((0.1, 0.2, 0.2))
EYE, CYLINDER = 0.3, np.array((0.0, -1.2))  # eye on the crank from its pivot, pin of the barrel
ALIGNED = float(np.hypot(EYE, CYLINDER[1]))  # stroke at which the crank lies on the ground line


def linkage(sides, crank=0.6, mode=1.0, closure='revolute', eye='crank'):
    """
    Return (xml, initial) of a four-bar whose crank, or coupler, a cylinder drives; its loops share their joints.

    sides: of crank, coupler, follower and ground. mode: side of the coupler pin on which the follower is, seen along
    the line to its pivot. closure: type of the pin between coupler and follower. eye: link on which the cylinder acts.
    """
    a, b, c, d = sides
    elbow = a * urdf.direction(crank)
    line = np.array((d, 0.0)) - elbow
    length = np.linalg.norm(line)
    along = (b**2 - c**2 + length**2) / (2.0 * length)
    corner = elbow + (along * line + mode * np.sqrt(b**2 - along**2) * np.array((-line[1], line[0]))) / length
    coupler, follower = (np.arctan2(*(corner - end)[::-1]) for end in (elbow, np.array((d, 0.0))))
    place = EYE * urdf.direction(crank) if eye == 'crank' else elbow + EYE * urdf.direction(coupler)
    rod = place - CYLINDER
    initial = {'crank': crank, 'coupler': coupler - crank, 'follower': follower, 'barrel': np.arctan2(*rod[::-1]),
               'rod': np.linalg.norm(rod)}
    z, zero = (0, 0, 1), (0, 0, 0)

    def turn(name, parent, x, mass, com):
        return [urdf.joint(name, 'revolute', parent, f'{name}_link', x, zero, z, (-7, 7)),
                urdf.link(f'{name}_link', mass, com, BODY)]

    pin = urdf.constraint('pin', ('coupler_link', (b, 0, 0), zero, z), ('follower_link', (c, 0, 0), zero, (1, 0, 0)
                                                                       if closure == 'universal' else z))
    elements = [
        urdf.link('base_link'), *turn('crank', 'base_link', zero, 20.0, (a / 2, 0, 0)),
        *turn('coupler', 'crank_link', (a, 0, 0), 30.0, (b / 2, 0.1, 0)),
        *turn('follower', 'base_link', (d, 0, 0), 20.0, (c / 2, 0, 0)),
        *turn('barrel', 'base_link', (*CYLINDER, 0), 5.0, (0.2, 0, 0)),
        urdf.joint('rod', 'prismatic', 'barrel_link', 'rod_link', zero, zero, (1, 0, 0),
                    (0.95, max(1.49, initial['rod'] + 0.05))),
        urdf.link('rod_link', 5.0, (-0.1, 0, 0), BODY),
        pin.replace('type="revolute"', f'type="{closure}"', 1),
        urdf.constraint('eye', ('rod_link', zero, zero, z), (f'{eye}_link', (EYE, 0, 0), zero, z)),
        urdf.control('linkage', ['rod'], ['crank', 'coupler', 'follower', 'barrel'], initial)]
    return urdf.robot('linkage', elements), initial


def with_arm(xml, initial):
    """Return (xml, initial) of a linkage with an arm on its follower, on which a second cylinder acts."""
    z, zero, foot, angle = (0, 0, 1), (0, 0, 0), np.array((1.5, -1.0)), -1.2
    tip = np.array((0.7, 0.0)) + 0.6 * urdf.direction(initial['follower'])
    rod = tip + 0.4 * urdf.direction(initial['follower'] + angle) - foot
    length = np.linalg.norm(rod)
    added = [
        urdf.joint('arm', 'revolute', 'follower_link', 'arm_link', (0.6, 0, 0), zero, z, (-7, 7)),
        urdf.link('arm_link', 10.0, (0.3, 0, 0), BODY),
        urdf.joint('barrel2', 'revolute', 'base_link', 'barrel2_link', (*foot, 0), zero, z, (-7, 7)),
        urdf.link('barrel2_link', 5.0, (0.2, 0, 0), BODY),
        urdf.joint('rod2', 'prismatic', 'barrel2_link', 'rod2_link', zero, zero, (1, 0, 0),
                   (length - 0.15, length + 0.15)),
        urdf.link('rod2_link', 5.0, (-0.1, 0, 0), BODY),
        urdf.constraint('eye2', ('rod2_link', zero, zero, z), ('arm_link', (0.4, 0, 0), zero, z))]
    initial = {**initial, 'arm': angle, 'barrel2': np.arctan2(*rod[::-1]), 'rod2': length}
    control = urdf.control('linkage', ['rod', 'rod2'], ['crank', 'coupler', 'follower', 'barrel', 'arm', 'barrel2'],
                           initial)
    return xml[:xml.index('<ros2_control')] + '\n'.join([*added, control, '</robot>']), initial


def spherical_platform():
    """Return a platform on three legs of three pins each, 3-RRR: all axes meet in the origin."""
    elements, motors, others = [urdf.link('base_link')], [], []
    first, second = np.pi / 3, np.pi / 2  # angles between the axes of a leg
    turned, zero = urdf.rotation((0.1, -0.15, 0.5)), (0, 0, 0)
    for k in range(3):
        around = np.append(urdf.direction(2.0 * np.pi * k / 3.0), 0.0)
        motor = np.sin(0.9) * around - np.cos(0.9) * np.array((0.0, 0.0, 1.0))
        wrist = turned @ (np.sin(0.7) * around + np.cos(0.7) * np.array((0.0, 0.0, 1.0)))
        c, normal = motor @ wrist, np.cross(motor, wrist)
        a, b = np.linalg.solve(((1.0, c), (c, 1.0)), np.cos((first, second)))
        elbow = a * motor + b * wrist + np.sqrt((1.0 - a * a - b * b - 2.0 * a * b * c) / (normal @ normal)) * normal
        for name, parent, axis in ((f'motor{k}', 'base_link', motor), (f'elbow{k}', f'motor{k}_link', elbow)):
            elements += [urdf.joint(name, 'continuous', parent, f'{name}_link', zero, zero, axis, (0, 0)),
                         urdf.link(f'{name}_link', 1.0, 0.2 * axis, 0.1 * BODY)]
        if k == 0:
            elements += [urdf.joint('wrist', 'continuous', 'elbow0_link', 'platform', zero, zero, wrist, (0, 0)),
                         urdf.link('platform', 2.0, (0, 0, 0.3), 0.1 * BODY)]
        else:
            elements.append(urdf.constraint(f'wrist{k}', (f'elbow{k}_link', zero, zero, wrist),
                                            ('platform', zero, zero, wrist)))
        motors.append(f'motor{k}')
        others.append(f'elbow{k}')
    others.append('wrist')
    elements.append(urdf.control('platform', motors, others, dict.fromkeys(motors + others, 0.0)))
    return urdf.robot('spherical_platform', elements)
