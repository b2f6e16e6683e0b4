"""Write URDF text from numbers at full precision, and the little geometry that needs."""

from math import atan2, cos, hypot, sin

import numpy as np


def robot(name, elements):
    return f'<robot name="{name}">\n' + '\n'.join(elements) + '\n</robot>\n'


def _numbers(values):
    return ' '.join(repr(float(value)) for value in values)


def link(name, mass=0.0, com=(0, 0, 0), inertia=None, rpy=(0, 0, 0)):
    if not mass:
        return f'<link name="{name}"/>'
    entries = zip(('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'), (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2))
    moments = ' '.join(f'{key}="{float(inertia[i, j])!r}"' for key, i, j in entries)
    return (f'<link name="{name}"><inertial>{_origin("origin", com, rpy)}<mass value="{float(mass)!r}"/>'
            f'<inertia {moments}/></inertial></link>')


def random_link(name, rng, masses, far):
    """Write a link with the inertia of some real body: each principal moment is a sum of two numbers."""
    mass = round(rng.uniform(*masses), 3)
    a, b, c = np.round(mass * rng.uniform(0.01, 0.1, 3), 4)
    turned = rotation(few_digits(rng, 3))
    inertia = turned @ np.diag((b + c, a + c, a + b)) @ turned.T
    return link(name, mass, few_digits(rng, far), inertia, few_digits(rng, 3))


def few_digits(rng, size, n=3):
    """Draw n numbers of few digits, so that only what closes a loop has all of them."""
    return np.round(rng.uniform(-size, size, n), 3)


def link_6x6(name, spatial):
    """Write a link whose spatial inertia (linear part first) is given at its own origin."""
    m = np.array(spatial)
    mass = m[0, 0]
    if not mass:
        return link(name)
    com = np.array((m[5, 1], m[3, 2], m[4, 0])) / mass
    return link(name, mass, com, m[3:, 3:] - mass * (com @ com * np.eye(3) - np.outer(com, com)))


def joint(name, kind, parent, child, xyz, rpy, axis=None, limit=None, losses=None):
    parts = [f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>',
             _origin('origin', xyz, rpy)]
    if axis is not None:
        lower, upper = (float(end) for end in limit)
        parts += [f'<axis xyz="{_numbers(axis)}"/>',
                  f'<limit lower="{lower!r}" upper="{upper!r}" effort="1e6" velocity="10"/>']
    return ''.join(parts) + _dynamics(losses) + '</joint>'


def fixed(parent, child, pose):
    return joint(f'{child}_mount', 'fixed', parent, child, *xyz_rpy(pose))


def constraint(name, parent, child, losses=None):
    """Write a pin; each side is (link, xyz, rpy, axis), the axis in the frame placed by xyz and rpy."""
    parts = [f'<constraint name="{name}" type="revolute">']
    for side, (link_name, xyz, rpy, axis) in (('parent', parent), ('child', child)):
        parts += [f'<{side} link="{link_name}"/>', _origin(f'{side}_origin', xyz, rpy),
                  f'<{side}_axis xyz="{_numbers(axis)}"/>']
    return ''.join(parts) + _dynamics(losses) + '</constraint>'


def _origin(tag, xyz, rpy):
    return f'<{tag} xyz="{_numbers(xyz)}" rpy="{_numbers(rpy)}"/>'


def _dynamics(losses):
    return f'<dynamics damping="{float(losses[0])!r}" friction="{float(losses[1])!r}"/>' if losses else ''


def control(name, actuators, passive, initial):
    """Write <ros2_control>; joints that `initial` does not name get no initial_value."""
    lines = [f'<ros2_control name="{name}" type="system">',
             '<hardware><plugin>mock_components/GenericSystem</plugin></hardware>']
    for joint_name in actuators + passive:
        value = ''
        if joint_name in initial:
            value = f'<param name="initial_value">{float(initial[joint_name])!r}</param>'
        command = '<command_interface name="effort"/>' if joint_name in actuators else ''
        lines.append(f'<joint name="{joint_name}">{command}<state_interface name="position">{value}'
                     '</state_interface><state_interface name="velocity"/></joint>')
    return '\n'.join(lines + ['</ros2_control>'])


def direction(angle):
    return np.array((cos(angle), sin(angle)))


def rotation(rpy):
    (cr, sr), (cp, sp), (cy, sy) = ((cos(a), sin(a)) for a in rpy)
    return np.array(((cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr),
                     (sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr),
                     (-sp, cp * sr, cp * cr)))


def pose(xyz, rpy):
    placed = np.eye(4)
    placed[:3, :3], placed[:3, 3] = rotation(rpy), xyz
    return placed


def turn(axis, angle):
    """Return the pose of a body turned about an axis through the origin (Rodrigues)."""
    x, y, z = axis
    cross = np.array(((0, -z, y), (z, 0, -x), (-y, x, 0)))
    turned = np.eye(4)
    turned[:3, :3] += sin(angle) * cross + (1 - cos(angle)) * cross @ cross
    return turned


def inverse(pose):
    back = np.eye(4)
    back[:3, :3], back[:3, 3] = pose[:3, :3].T, -pose[:3, :3].T @ pose[:3, 3]
    return back


def apply(pose, point):
    return pose[:3, :3] @ point + pose[:3, 3]


def xyz_rpy(pose):
    """Return the URDF origin of a pose; at pitch +-90 degrees the yaw is chosen as zero."""
    p = np.array(pose)
    pitch = atan2(-p[2, 0], hypot(p[0, 0], p[1, 0]))
    if hypot(p[0, 0], p[1, 0]) < 1e-9:
        return p[:3, 3], (atan2(-p[1, 2], p[1, 1]), pitch, 0.0)
    return p[:3, 3], (atan2(p[2, 1], p[2, 2]), pitch, atan2(p[1, 0], p[0, 0]))
