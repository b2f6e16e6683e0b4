"""URDF text to `Description`: tree, <constraint> and <loop_joint> closures, <ros2_control> interfaces."""
import math
import os
import re
from dataclasses import replace

import numpy as np

from ..errors import DuplicateNameError, InertiaError, ModelError, XmlError, check_name, shorten
from ..locate import find_machine
from ..text_file import read_text
from .description import IDENTITY, Closure, Description, Inertial, Interface, Joint, Link, Mimic, Pose
from .loops_file import read_loops
from .triangle import AXIS_TOLERANCE
from .urdf_schema import check_content, nearest
from .xml_reader import Element, parse

MAX_LINKS = 2000
JOINT_TYPES = ('revolute', 'continuous', 'prismatic', 'fixed', 'floating')
CLOSURE_TYPES = ('revolute', 'fixed', 'spherical', 'universal', 'prismatic')
MAX_MASS = 1e9              # [kg]
MAX_LENGTH = 1e6            # [m]
INTERFACES = ('position', 'velocity', 'effort')
MIMIC = ('joint', 'multiplier', 'offset')       # attributes of a <mimic>
MAX_RATIO = 1e6             # of a <mimic>, and its inverse
LIMIT_MARGIN = 1e-6         # share of a range by which limits may differ for the digits that they are written with
MAX_NUMBER = 1e15           # of products of five, double precision reaches far more
# float() takes more than XML Schema's double does: 1_0 and the digits of every script
NUMBER = re.compile(r'[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan)', re.IGNORECASE)


def read(path_or_xml, loops_file=None):
    """Return the `Description` of a URDF file, of a machine of the package, or of a text that starts with '<'."""
    try:
        path = os.fspath(path_or_xml)
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise ModelError(f'expected a path or XML text, not {type(path_or_xml).__name__}')
    text = path.lstrip('\ufeff \t\r\n')
    file = '' if text.startswith('<') else find_machine(path)
    text = read_text(file) if file else text
    try:
        robot = parse(text)
    except XmlError as error:
        raise XmlError(f"'{file}': {error}" if file else str(error)) from error
    if robot.tag != 'robot':
        raise ModelError(f'line {robot.line}: the root element is <{shorten(robot.tag)}>; a URDF has <robot>')

    warnings = check_content(robot)
    links = _named(robot, ('link',), _link)
    if len(links) > MAX_LINKS:
        raise ModelError(f'{len(links)} links; at most {MAX_LINKS} are read')
    joints = _named(robot, ('joint',), _joint)
    further = read_loops(loops_file) if loops_file is not None else []
    closures = _named([*robot, *further], ('constraint', 'loop_joint'), _closure)
    mimics = _mimics(robot, joints)
    more = [*_share_limits(joints, mimics), *filter(None, (one.unit_doubt for one in joints.values())),
            *_misspelt_interfaces(robot)]
    description = Description(robot.get('name') or 'robot', links, joints, closures, _interfaces(robot, mimics),
                              (*warnings, *more), text, file, mimics)
    _check_names(description)
    return description


def _named(elements, tags, build):
    """Return {name: build(element, name, where)} of the elements with one of the tags, each name once."""
    found = {}
    for element in elements:
        if element.tag not in tags:
            continue
        name = element.get('name')
        if not name:
            raise ModelError(f'<{element.tag}> (line {element.line}) has no name')
        where = f"{element.tag} '{name}' (line {element.line})"
        if name in found:
            raise DuplicateNameError(f'{where} was declared before (line {found[name].line})')
        found[name] = build(element, name, where)
    return found


def _numbers(element, attribute, count, default, where, most=MAX_NUMBER):
    """Return `count` numbers of an attribute, each at most `most` in size; where there are none, the default."""
    text = element.get(attribute) if element is not None else None
    if text is None:
        if default is None:
            raise ModelError(f"{where}: attribute '{attribute}' of <{element.tag}> is missing")
        return np.array(default, dtype=float)
    words = text.split()
    if not all(map(NUMBER.fullmatch, words)):
        raise ModelError(f"{where}: {attribute}='{shorten(text)}' is not {count} number(s)")
    values = np.array([float(word) for word in words])
    if values.size != count or not np.isfinite(values).all():
        raise ModelError(f"{where}: {attribute}='{shorten(text)}' is not {count} finite number(s)")
    if (np.abs(values) > most).any():
        raise ModelError(f"{where}: {attribute}='{shorten(text)}' is beyond {most:g}, the largest that is computed")
    return values


def _number(element, attribute, default, where, most=MAX_NUMBER):
    return float(_numbers(element, attribute, 1, None if default is None else [default], where, most)[0])


def rotation_from_rpy(rpy):
    """Return the rotation of URDF's fixed-axis roll, pitch, yaw (REP 103)."""
    cr, cp, cy = (math.cos(angle) for angle in rpy)
    sr, sp, sy = (math.sin(angle) for angle in rpy)
    return np.array([[cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                     [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                     [-sp, cp * sr, cp * cr]])


def rotation_from_quaternion(quaternion):
    """Return the rotation of a quaternion x, y, z, w of any length but zero."""
    x, y, z, w = quaternion / np.linalg.norm(quaternion)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def _pose(element, where):
    if element is None:
        return IDENTITY
    position = _numbers(element, 'xyz', 3, (0, 0, 0), where, MAX_LENGTH)
    if element.get('quat_xyzw') is None:
        return Pose(rotation_from_rpy(_numbers(element, 'rpy', 3, (0, 0, 0), where)), position)
    if element.get('rpy') is not None:
        raise ModelError(f'{where}: <{element.tag}> has rpy and quat_xyzw; expected one of them')
    quaternion = _numbers(element, 'quat_xyzw', 4, None, where)
    if np.linalg.norm(quaternion) < 1e-6:
        raise ModelError(f"{where}: quat_xyzw='{shorten(element.get('quat_xyzw'))}' is zero, which is no orientation")
    # urdfdom normalises too; it takes a zero quaternion as no rotation
    return Pose(rotation_from_quaternion(quaternion), position)


def _axis(element, where):
    axis = _numbers(element, 'xyz', 3, (1, 0, 0) if element is None else None, where)
    norm = np.linalg.norm(axis)
    if norm < 1e-6:
        raise ModelError(f'{where}: the axis has no direction')
    return axis / norm


def _link(element, name, where):
    inertial = element.find('inertial')
    if inertial is None:
        return Link(name, None, element.line)
    mass, tensor = inertial.find('mass'), inertial.find('inertia')
    for tag, child in (('mass', mass), ('inertia', tensor)):
        if child is None:
            raise ModelError(f'{where}: <inertial> has no <{tag}>')
    mass = _number(mass, 'value', None, where, MAX_MASS)
    if mass < 0.0:
        raise InertiaError(f'{where}: mass {mass:g} kg is negative')
    xx, yy, zz, xy, xz, yz = (
        _number(tensor, key, None, where) for key in ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'))
    pose = _pose(inertial.find('origin'), where)
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    inertia = pose.rotation @ inertia @ pose.rotation.T
    return Link(name, Inertial(mass, pose.position, 0.5 * (inertia + inertia.T)), element.line)


def _joint(element, name, where):
    kind = element.get('type')
    if kind not in JOINT_TYPES:
        raise ModelError(f"{where}: type '{kind}' is not supported; there are: {', '.join(JOINT_TYPES)}")
    damping, friction = _dynamics(element.find('dynamics'), where)
    # exporters give fixed joints the axis 0 0 0
    axis = element.find('axis') if kind not in ('fixed', 'floating') else None
    return Joint(
        name, kind, _reference(element, 'parent', where), _reference(element, 'child', where),
        _pose(element.find('origin'), where), _axis(axis, where),
        *_limits(element.find('limit'), kind in ('revolute', 'prismatic'), where), damping, friction, element.line)


def _limits(limit, bounded, where):
    """Return (lower, upper, velocity, effort); infinite where the <limit> does not name them."""
    # unbounded in size: exporters write 1e308 where there is no limit
    lower, upper, velocity, effort = (_number(limit, key, 0.0, where, math.inf) if _says(limit, key) else None
                                      for key in ('lower', 'upper', 'velocity', 'effort'))
    for key, value in (('velocity', velocity), ('effort', effort)):
        if value is not None and value < 0.0:
            raise ModelError(f'{where}: limit {key}={value:g} must not be negative')
    if lower is None and upper is None:
        lower, upper = -math.inf, math.inf
    # the end that is left out is zero by the specification
    lower, upper = lower or 0.0, upper or 0.0
    if lower > upper:
        raise ModelError(f'{where}: limit lower={lower:g} is above upper={upper:g}')
    if not bounded:
        lower, upper = -math.inf, math.inf
    return lower, upper, math.inf if velocity is None else velocity, math.inf if effort is None else effort


def _mimics(robot, joints):
    """Return {joint: Mimic} of the <mimic> elements, leaders that follow others themselves first."""
    found = {}
    for element in robot.findall('joint'):
        mimic, name = element.find('mimic'), element.get('name')
        if mimic is None:
            continue
        where = f"joint '{name}' (line {element.line}): <mimic>"
        leader = mimic.get('joint')
        if not leader:
            raise ModelError(f"{where} has no attribute 'joint'")
        check_name(leader, joints, f"{where} of '{leader}': no such joint")
        if further := [key for key in mimic.keys() if key not in MIMIC]:
            raise ModelError(f"{where} of '{leader}': {', '.join(further)}; expected {', '.join(MIMIC)} alone: joints "
                             'are coupled exactly, without slack or elasticity')
        for one in (name, leader):
            if joints[one].type in ('fixed', 'floating'):
                raise ModelError(f"{where} of '{leader}': joint '{one}' is {joints[one].type}; expected joints that "
                                 'turn or slide')
        multiplier = _number(mimic, 'multiplier', 1.0, where, MAX_RATIO)
        if abs(multiplier) < 1.0 / MAX_RATIO:
            raise ModelError(f"{where} of '{leader}': multiplier={multiplier:g}; expected one that moves the joint")
        found[name] = Mimic(name, leader, multiplier, _number(mimic, 'offset', 0.0, where), mimic.line)
    ordered = {}
    while len(ordered) < len(found):
        ready = [name for name, mimic in found.items() if name not in ordered
                 and (mimic.leader not in found or mimic.leader in ordered)]
        if not ready:
            names = ', '.join(f"'{name}'" for name in found if name not in ordered)
            raise ModelError(f'joints {names} follow each other by <mimic> in a circle; expected one that leads')
        ordered |= {name: found[name] for name in ready}
    return ordered


def _share_limits(joints, mimics):
    """Narrow in `joints` the limits of leaders to what those that follow them reach, and those of these; warn."""
    warnings = []
    for mimic in reversed(mimics.values()):
        leader, follower = joints[mimic.leader], joints[mimic.name]
        ends = sorted((end - mimic.offset) / mimic.multiplier for end in (follower.lower, follower.upper))
        lower, upper = max(leader.lower, ends[0]), min(leader.upper, ends[1])
        where = f"joint '{leader.name}' (line {leader.line})"
        if not lower < upper:
            raise ModelError(f"{where}: its limits {leader.lower:.6g} to {leader.upper:.6g} and those of "
                             f"'{follower.name}', which follows it (line {mimic.line}) and so allows {ends[0]:.6g} to "
                             f'{ends[1]:.6g}, leave no motion')
        margin = LIMIT_MARGIN * (upper - lower)
        if lower > leader.lower + margin or upper < leader.upper - margin:
            warnings.append(f"{where}: its limits {leader.lower:.6g} to {leader.upper:.6g} are narrowed to {lower:.6g} "
                            f"to {upper:.6g} by those of '{follower.name}', which follows it")
        joints[leader.name] = replace(leader, lower=lower, upper=upper, velocity=min(
            leader.velocity, follower.velocity / abs(mimic.multiplier)))
    for mimic in mimics.values():
        leader = joints[mimic.leader]
        lower, upper = sorted(mimic.multiplier * end + mimic.offset for end in (leader.lower, leader.upper))
        joints[mimic.name] = replace(joints[mimic.name], lower=lower, upper=upper)
    return warnings


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


def _closure(element, name, where):
    kind = element.get('type', 'revolute')
    if kind not in CLOSURE_TYPES:
        raise ModelError(f"{where}: type '{kind}' is not known; there are: {', '.join(CLOSURE_TYPES)}")
    damping, friction = _dynamics(element.find('dynamics'), where)
    if element.tag == 'constraint':
        ends = [(_reference(element, side, where), _pose(element.find(f'{side}_origin'), where),
                 _axis(element.find(f'{side}_axis'), where)) for side in ('parent', 'child')]
    else:
        ends = _loop_joint_ends(element, where)
    if kind in ('prismatic', 'fixed'):
        ends = _aligned(element, ends, where)
    return Closure(name, kind, *ends[0], *ends[1], damping, friction, element.line)


def _aligned(element, ends, where):
    """Return the ends of a closure that aligns the frames of both, so that its axis is one and the same in them."""
    (parent, parent_origin, parent_axis), (child, child_origin, child_axis) = ends
    if element.tag == 'constraint':
        if element.find('child_axis') is None:
            child_axis = parent_axis
        elif element.find('parent_axis') is None:
            parent_axis = child_axis
    if np.linalg.norm(parent_axis - child_axis) > AXIS_TOLERANCE:
        shown = (' '.join(f'{number:.6g}' for number in axis) for axis in (parent_axis, child_axis))
        raise ModelError("{}: parent_axis {} and child_axis {} differ; a '{}' closure aligns parent_origin with "
                         'child_origin, so both have the same axis'.format(where, *shown, element.get('type')))
    return (parent, parent_origin, parent_axis), (child, child_origin, child_axis)


def _loop_joint_ends(element, where):
    # Exporters write <link1/><link2/>, and sometimes <link1/> twice.
    sides = [child for child in element if child.tag in ('link1', 'link2')]
    if len(sides) != 2 or not all(side.get('link') for side in sides):
        raise ModelError(f'{where}: expected <link1 link="..."/> and <link2 link="..."/>')
    axis = _axis(element.find('axis'), where)
    return [(side.get('link'), _pose(side, where), axis) for side in sides]


def _interfaces(robot, mimics):
    found = {}
    for control in robot.findall('ros2_control'):
        for element in control.findall('joint'):
            name = element.get('name')
            where = f"<ros2_control> joint '{name}' (line {element.line})"
            if not name:
                raise ModelError(f'<ros2_control> (line {control.line}): a joint has no name')
            if name in found:
                raise DuplicateNameError(f'{where} was declared before (line {found[name].line})')
            leader, follows = _parameter(element, 'mimic'), element.get('mimic', 'false').lower() != 'false'
            followed = mimics[name].leader if name in mimics else None
            if follows and followed is None or leader not in (None, followed):
                raise ModelError(f'{where}: mimic without the same <mimic> in its <joint>, which says the ratio')
            initial = None
            for state in element.findall('state_interface'):
                if state.get('name') == 'position':
                    initial = _initial_value(state, where)
            found[name] = Interface(name, element.find('command_interface') is not None, initial, element.line)
    return found


def _misspelt_interfaces(robot):
    """Return a warning for each interface whose name is nearly that of one that is read; drivers may have others."""
    for element in robot.iterfind('ros2_control/joint/*'):
        name = element.get('name', '')
        near = None if name in INTERFACES else nearest(name, INTERFACES, ())
        if near and element.tag in ('command_interface', 'state_interface'):
            yield f"line {element.line}: <{element.tag} name=\"{name}\"> is not known; did you mean '{near}'?"


def _initial_value(state, where):
    text = _parameter(state, 'initial_value')
    for param in state.findall('param'):
        if nearest(param.get('name', ''), ('initial_value',), ('initial_value',) if text else ()):
            raise ModelError(f"{where}: <param name='{param.get('name')}'> is not known; did you mean 'initial_value'?")
    if text is None:
        return None
    return _number(Element('param', {'initial_value': text}), 'initial_value', None, where)


def _parameter(element, name):
    """Return the text of the <param> of that name, or None."""
    return next((param.text or '' for param in element.findall('param') if param.get('name') == name), None)


def _check_names(description):
    for kind, things in (('joint', description.joints), ('constraint', description.closures)):
        for thing in things.values():
            for side in (thing.parent, thing.child):
                check_name(side, description.links,
                           f"link '{side}' in {kind} '{thing.name}' (line {thing.line}): no such link")
    for interface in description.interfaces.values():
        check_name(interface.name, description.joints,
                   f"joint '{interface.name}' in <ros2_control> (line {interface.line}): no such joint")
