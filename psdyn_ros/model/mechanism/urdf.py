"""URDF text to `Description`: tree, <constraint> and <loop_joint> closures, <ros2_control> interfaces."""
import math
import os

import numpy as np

from ..errors import DuplicateNameError, InertiaError, ModelError, UnknownNameError, did_you_mean, shorten
from .description import IDENTITY, Closure, Description, Inertial, Interface, Joint, Link, Pose
from .loops_file import read_loops
from .xml_reader import Element, parse, read_text

MAX_LINKS = 2000
JOINT_TYPES = ('revolute', 'continuous', 'prismatic', 'fixed', 'floating')
CLOSURE_TYPES = ('revolute', 'fixed', 'spherical', 'universal', 'prismatic')


def read(path_or_xml, loops_file=None):
    """Return the `Description` of a URDF file, or of a text that starts with '<'."""
    try:
        path = os.fspath(path_or_xml)
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise ModelError(f'expected a path or XML text, not {type(path_or_xml).__name__}')
    text = path.lstrip('\ufeff \t\r\n')
    robot = parse(text if text.startswith('<') else read_text(path))
    if robot.tag != 'robot':
        raise ModelError(f'line {robot.line}: the root element is <{shorten(robot.tag)}>; a URDF has <robot>')

    links = _named(robot, 'link', _link)
    if len(links) > MAX_LINKS:
        raise ModelError(f'{len(links)} links; at most {MAX_LINKS} are read')
    joints = _named(robot, 'joint', _joint)
    further = read_loops(loops_file) if loops_file is not None else []
    closures = _named([*robot, *further], ('constraint', 'loop_joint'), _closure)
    description = Description(robot.get('name') or 'robot', links, joints, closures, _interfaces(robot))
    _check_names(description)
    return description


def _named(elements, tags, build):
    tags = (tags,) if isinstance(tags, str) else tags
    found = {}
    for element in elements:
        if element.tag not in tags:
            continue
        name = element.get('name')
        if not name:
            raise ModelError(f'<{element.tag}> (line {element.line}) has no name')
        if name in found:
            raise DuplicateNameError(
                f"{element.tag} '{name}' (line {element.line}) was declared before (line {found[name].line})")
        found[name] = build(element, name)
    return found


def _numbers(element, attribute, count, default, where):
    text = element.get(attribute) if element is not None else None
    if text is None:
        if default is None:
            raise ModelError(f"{where}: attribute '{attribute}' is missing")
        return np.array(default, dtype=float)
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        raise ModelError(f"{where}: {attribute}='{shorten(text)}' is not {count} number(s)") from None
    if values.size != count or not np.isfinite(values).all():
        raise ModelError(f"{where}: {attribute}='{shorten(text)}' is not {count} finite number(s)")
    return values


def _number(element, attribute, default, where):
    return float(_numbers(element, attribute, 1, None if default is None else [default], where)[0])


def rotation_from_rpy(rpy):
    """Return the rotation of URDF's fixed-axis roll, pitch, yaw (REP 103)."""
    cr, cp, cy = (math.cos(angle) for angle in rpy)
    sr, sp, sy = (math.sin(angle) for angle in rpy)
    return np.array([[cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                     [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                     [-sp, cp * sr, cp * cr]])


def _pose(element, where):
    if element is None:
        return IDENTITY
    return Pose(rotation_from_rpy(_numbers(element, 'rpy', 3, (0, 0, 0), where)),
                _numbers(element, 'xyz', 3, (0, 0, 0), where))


def _axis(element, where):
    axis = _numbers(element, 'xyz', 3, (1, 0, 0), where)
    norm = np.linalg.norm(axis)
    if norm < 1e-6:
        raise ModelError(f'{where}: the axis has no direction')
    return axis / norm


def _link(element, name):
    inertial = element.find('inertial')
    if inertial is None:
        return Link(name, None, element.line)
    where = f"link '{name}' (line {element.line})"
    mass = _number(inertial.find('mass'), 'value', None, where)
    if mass < 0.0:
        raise InertiaError(f'{where}: mass {mass:g} kg is negative')
    tensor = inertial.find('inertia')
    xx, yy, zz, xy, xz, yz = (
        _number(tensor, key, 0.0, where) for key in ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'))
    pose = _pose(inertial.find('origin'), where)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    inertia = pose.rotation @ inertia @ pose.rotation.T
    return Link(name, Inertial(mass, pose.position, 0.5 * (inertia + inertia.T)), element.line)


def _joint(element, name):
    where = f"joint '{name}' (line {element.line})"
    kind = element.get('type')
    if kind not in JOINT_TYPES:
        raise ModelError(f"{where}: type '{kind}' is not supported; there are: {', '.join(JOINT_TYPES)}")
    if element.find('mimic') is not None:
        raise ModelError(f'{where}: <mimic> is a linear relation and not a mechanism; declare the loop by '
                         '<constraint>')
    limit, dynamics = element.find('limit'), element.find('dynamics')
    # A limit that names neither end speaks of effort and velocity only.
    bounded = kind in ('revolute', 'prismatic') and (_says(limit, 'lower') or _says(limit, 'upper'))
    lower = _number(limit, 'lower', 0.0, where) if bounded else -math.inf
    upper = _number(limit, 'upper', 0.0, where) if bounded else math.inf
    if lower > upper:
        raise ModelError(f'{where}: limit lower={lower:g} is above upper={upper:g}')
    damping, friction = _dynamics(dynamics, where)
    return Joint(
        name, kind, _reference(element, 'parent', where), _reference(element, 'child', where),
        _pose(element.find('origin'), where), _axis(element.find('axis'), where), lower, upper,
        _number(limit, 'velocity', math.inf, where) if _says(limit, 'velocity') else math.inf,
        _number(limit, 'effort', math.inf, where) if _says(limit, 'effort') else math.inf,
        damping, friction, element.line)


def _says(element, attribute):
    return element is not None and element.get(attribute) is not None


def _dynamics(element, where):
    damping, friction = _number(element, 'damping', 0.0, where), _number(element, 'friction', 0.0, where)
    if damping < 0.0 or friction < 0.0:
        raise ModelError(f'{where}: <dynamics> damping={damping:g} friction={friction:g} must not be negative')
    return damping, friction


def _reference(element, tag, where):
    child = element.find(tag)
    name = child.get('link') if child is not None else None
    if not name:
        raise ModelError(f'{where}: <{tag} link="..."/> is missing')
    return name


def _closure(element, name):
    where = f"{element.tag} '{name}' (line {element.line})"
    kind = element.get('type', 'revolute')
    if kind not in CLOSURE_TYPES:
        raise ModelError(f"{where}: type '{kind}' is not known; there are: {', '.join(CLOSURE_TYPES)}")
    damping, friction = _dynamics(element.find('dynamics'), where)
    if element.tag == 'constraint':
        ends = [(_reference(element, side, where), _pose(element.find(f'{side}_origin'), where),
                 _axis(element.find(f'{side}_axis'), where)) for side in ('parent', 'child')]
    else:
        ends = _loop_joint_ends(element, where)
    return Closure(name, kind, *ends[0], *ends[1], damping, friction, element.line)


def _loop_joint_ends(element, where):
    # Exporters write <link1/><link2/>, and sometimes <link1/> twice.
    sides = [child for child in element if child.tag in ('link1', 'link2')]
    if len(sides) != 2 or not all(side.get('link') for side in sides):
        raise ModelError(f'{where}: expected <link1 link="..."/> and <link2 link="..."/>')
    axis = _axis(element.find('axis'), where)
    return [(side.get('link'), _pose(side, where), axis) for side in sides]


def _interfaces(robot):
    found = {}
    for control in robot.findall('ros2_control'):
        for element in control.findall('joint'):
            name = element.get('name')
            where = f"<ros2_control> joint '{name}' (line {element.line})"
            if not name:
                raise ModelError(f'<ros2_control> (line {control.line}): a joint has no name')
            if name in found:
                raise DuplicateNameError(f'{where} was declared before (line {found[name].line})')
            initial = None
            for state in element.findall('state_interface'):
                if state.get('name') == 'position':
                    initial = _initial_value(state, where)
            found[name] = Interface(name, element.find('command_interface') is not None, initial, element.line)
    return found


def _initial_value(state, where):
    for param in state.findall('param'):
        if param.get('name') == 'initial_value':
            value = Element('param', {'initial_value': param.text or ''})
            return _number(value, 'initial_value', None, where)
    return None


def _check_names(description):
    for kind, things in (('joint', description.joints), ('constraint', description.closures)):
        for thing in things.values():
            for side in (thing.parent, thing.child):
                if side not in description.links:
                    raise UnknownNameError(f"link '{side}' in {kind} '{thing.name}' (line {thing.line}): no such "
                                           f'link{did_you_mean(side, description.links)}')
    for interface in description.interfaces.values():
        if interface.name not in description.joints:
            raise UnknownNameError(
                f"joint '{interface.name}' in <ros2_control> (line {interface.line}): no such "
                f'joint{did_you_mean(interface.name, description.joints)}')
