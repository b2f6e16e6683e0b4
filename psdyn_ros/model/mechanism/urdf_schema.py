"""Elements and attributes of a URDF: misspelt ones are refused, misplaced or unknown ones reported.

Examined is what the mechanism and its interfaces are read from.  Visuals, collisions, Gazebo tags, transmissions and
other content for other tools may be anything.
"""
import difflib
from dataclasses import dataclass, field

from ..errors import ModelError, XmlError, did_you_mean, shorten

VERSIONS = ('1.0', '1.1', '1.2')


@dataclass(frozen=True)
class Rule:
    """Attributes of an element, and the rules of its children; None: content for other tools, not examined."""

    attributes: tuple = ()
    once: dict = field(default_factory=dict)        # {tag: Rule or None} of children that may occur once
    many: dict = field(default_factory=dict)

    @property
    def children(self):
        return {**self.once, **self.many}


POSE = ('xyz', 'rpy', 'quat_xyzw')
END = Rule(('link',))
AXIS = Rule(('xyz',))
DYNAMICS = Rule(('damping', 'friction'))
INERTIAL = Rule(once={
    'origin': Rule(POSE),
    'mass': Rule(('value',)),
    'inertia': Rule(('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')),
})
LINK = Rule(('name', 'type'), once={'inertial': INERTIAL}, many={'visual': None, 'collision': None})
JOINT = Rule(('name', 'type'), once={
    'origin': Rule(POSE),
    'parent': END,
    'child': END,
    'axis': AXIS,
    'limit': Rule(('lower', 'upper', 'effort', 'velocity', 'acceleration', 'deceleration', 'jerk')),
    'dynamics': DYNAMICS,
    'mimic': Rule(('joint', 'multiplier', 'offset')),
    'safety_controller': None,
    'calibration': None,
})
CONSTRAINT = Rule(('name', 'type'), once={
    'parent': END,
    'parent_origin': Rule(POSE),
    'parent_axis': AXIS,
    'child': END,
    'child_origin': Rule(POSE),
    'child_axis': AXIS,
    'dynamics': DYNAMICS,
})
LOOP_JOINT = Rule(('name', 'type'), once={'axis': AXIS, 'dynamics': DYNAMICS},
                  many={'link1': Rule(('link', *POSE)), 'link2': Rule(('link', *POSE))})
INTERFACE = Rule(('name', 'data_type', 'size'), many={'param': None, 'limits': None})
ROS2_CONTROL = Rule(('name', 'type', 'rw_rate', 'is_async', 'thread_priority'), many={
    'joint': Rule(('name', 'type', 'mimic'), many={
        'command_interface': INTERFACE, 'state_interface': INTERFACE, 'param': None, 'limits': None}),
    'hardware': None, 'sensor': None, 'gpio': None, 'transmission': None, 'properties': None, 'async': None,
})
ROBOT = Rule(('name', 'version'), many={
    'link': LINK, 'joint': JOINT, 'constraint': CONSTRAINT, 'loop_joint': LOOP_JOINT, 'ros2_control': ROS2_CONTROL,
    'transmission': None, 'gazebo': None, 'material': None, 'sensor': None,
})


def check_content(robot):
    """Return warnings (tuple of texts) on unknown and misplaced content of a <robot>.

    Raises a ModelError on misspelt content and on a second one of what may occur once; XmlError on xacro that is not
    expanded.
    """
    for element in robot.iter():
        if element.tag.startswith('xacro:'):
            raise _unexpanded(element, f'<{shorten(element.tag)}>')
    version = robot.get('version', '1.0')
    if version not in VERSIONS:
        raise ModelError(f"line {robot.line}: <robot> has version='{shorten(version)}'; there are: "
                         f"{', '.join(VERSIONS)}")
    checker = _Checker(quaternions=version != '1.0')
    checker.check(robot, ROBOT, '<robot>')
    return tuple(text + (f' (found {count} times)' if count > 1 else '') for text, count in checker.unknown.values())


class _Checker:
    """Walks through the examined elements and collects what is unknown: {(where, name): [first message, count]}."""

    def __init__(self, quaternions):
        self.quaternions = quaternions
        self.unknown = {}

    def check(self, element, rule, place):
        """Check an element and its children; place: how messages call it, as "link 'boom'"."""
        for name, value in element.attrib.items():
            self._attribute(element, rule, name, value, place)
        first = {}
        for child in element:
            if child.tag not in rule.children:
                self._child(child, element, rule, place)
                continue
            if child.tag in rule.once and child.tag in first:
                raise ModelError(f'line {child.line}: a second <{child.tag}> in {place}; the first is in line '
                                 f'{first[child.tag]}')
            first[child.tag] = child.line
            if rule.children[child.tag] is not None:
                name = child.get('name')
                self.check(child, rule.children[child.tag],
                           f"{child.tag} '{shorten(name)}'" if name else f'<{child.tag}> of {place}')

    def _attribute(self, element, rule, name, value, place):
        if ':' in name or name == 'xmlns':
            return
        message = f"line {element.line}: attribute '{shorten(name)}' of {place}"
        if name in rule.attributes:
            if '${' in value or '$(' in value:
                raise _unexpanded(element, f"{name}='{shorten(value)}'")
            if name == 'quat_xyzw' and not self.quaternions:
                raise ModelError(f'{message} is of URDF 1.1, and ROS ignores it in older ones; declare <robot '
                                 'version="1.1">, or write rpy')
            return
        near = nearest(name, rule.attributes, element.attrib)
        if near:
            raise ModelError(f"{message} is not known; did you mean '{near}'?")
        self._report((element.tag, name), f'{message} is not known and not read{did_you_mean(name, rule.attributes)}')

    def _child(self, child, parent, rule, place):
        message = f'line {child.line}: <{shorten(child.tag)}> in {place}'
        if child.tag in HOMES:
            text = f"{message} is not read; it belongs in {' or '.join(HOMES[child.tag])}"
            # no other tool reads closures, so nothing in them is for one
            if parent.tag in ('constraint', 'loop_joint'):
                raise ModelError(text)
        elif ':' in child.tag:
            text = f'{message} is an extension that is not read'
        else:
            near = nearest(child.tag, [tag for tag, inner in rule.children.items() if inner is not None],
                           [one.tag for one in parent if one.tag in rule.once])
            if near:
                raise ModelError(f"{message} is not known; did you mean '{near}'?")
            text = f'{message} is not known and not read{did_you_mean(child.tag, rule.children)}'
        self._report((parent.tag, child.tag), text)

    def _report(self, key, message):
        self.unknown.setdefault(key, [message, 0])[1] += 1


def _unexpanded(element, what):
    return XmlError(f'line {element.line}: {what} is xacro that is not expanded; load the .xacro file, or what '
                    '`xacro FILE.xacro` prints')


def nearest(name, known, present):
    """Return the known name of which `name` is a misspelling, or None; what is present itself is not misspelt."""
    if len(name) > 100:         # comparing takes the square of the length
        return None
    ratios = {one: difflib.SequenceMatcher(None, name.lower(), one).ratio() for one in known if one not in present}
    # of a short name, one letter is a large share
    close = [one for one, ratio in ratios.items() if ratio >= (0.65 if max(len(one), len(name)) <= 4 else 0.75)]
    return max(close, key=lambda one: (sorted(one) == sorted(name.lower()), ratios[one]), default=None)


def _homes(tag, rule, found):
    """Return {examined tag: [elements it belongs in]} of a rule named `tag` and all rules below it."""
    for child, inner in rule.children.items():
        if inner is not None:
            homes = found.setdefault(child, [])
            if f'<{tag}>' not in homes:
                homes.append(f'<{tag}>')
            _homes(child, inner, found)
    return found


HOMES = _homes('robot', ROBOT, {})
