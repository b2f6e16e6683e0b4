"""
Named external forces of a machine, from YAML: what there is, what each parameter means, and what was asked for.

    external_forces:
      buoyancy: {type: constant_force, link: balloon, force: [0, 0, 156.96]}
      slider_spring: {type: joint_spring, joint: slider, stiffness: 50}
      wind: {type: drag, link: balloon, quadratic: 0.8, flow: [3, 0, 0]}

They may stand in a file of their own or below the `ros__parameters` of a ROS parameter file.  Any number of forces may
act on a link or a joint.  `python3 -m psdyn_ros.model.external_forces` prints the table of types and parameters.
"""
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

import yaml

from .errors import DuplicateNameError, ModelError, did_you_mean, shorten
from .xml_reader import read_text

MAX_BYTES = 1024 * 1024
DEEPEST = 4         # levels of a ROS parameter file above `external_forces`
SECTION, ROS = 'external_forces', 'ros__parameters'

NUMBER, VECTOR, CHOICE, FLAG, LINK, JOINT = 'number', 'vector', 'choice', 'flag', 'link', 'joint'


@dataclass(frozen=True)
class Parameter:
    """One parameter of a type of force; required where the default is None."""

    name: str
    kind: str
    description: str
    default: object = None
    low: float = -math.inf
    high: float = math.inf
    choices: tuple = ()


@dataclass(frozen=True)
class ForceType:
    """What a type of force does, and its parameters."""

    description: str
    parameters: tuple


@dataclass(frozen=True)
class ForceSpec:
    """One named force as it was asked for.

    where   file, line and name, for messages
    values  namespace of its parameters: numbers, tuples of three numbers, texts, flags
    """

    name: str
    type: str
    where: str
    values: SimpleNamespace


def _force(name, description, high=1e9):
    return Parameter(name, NUMBER, description, 0.0, 0.0, high)


_POINT = Parameter('point', VECTOR, 'm, where it acts, in link axes from its origin', (0.0,) * 3, -1e4, 1e4)
_ON = Parameter('link', LINK, 'the link it acts on')
_JOINT = Parameter('joint', JOINT, 'the joint it acts on, actuated or not')

TYPES = {
    'constant_force': ForceType('a force that never changes, at a point of a link: buoyancy, thrust, a weight', (
        _ON,
        Parameter('force', VECTOR, 'N', None, -1e9, 1e9),
        _POINT,
        Parameter('axes', CHOICE, 'whether the force is given in inertial axes or turns with the link', 'inertial',
                  choices=('inertial', 'link')),
    )),
    'joint_spring': ForceType('a linear spring along or about a joint: -stiffness (q - rest)', (
        _JOINT,
        Parameter('stiffness', NUMBER, 'N/m, or N m/rad', None, 0.0, 1e9),
        Parameter('rest', NUMBER, 'm or rad, the position of the joint at which it is slack', 0.0, -1e4, 1e4),
    )),
    'joint_damper': ForceType('a damper along or about a joint: -(linear + quadratic |qd|) qd', (
        _JOINT,
        _force('linear', 'N s/m, or N m s/rad'),
        _force('quadratic', 'N s^2/m^2, or N m s^2/rad^2'),
    )),
    'spring_damper': ForceType('a spring and damper between a point of a link and a point of another: a tie, a rope', (
        _ON,
        _POINT,
        Parameter('other_link', LINK, 'the link at its other end; the root of the machine stands for the ground'),
        Parameter('other_point', VECTOR, 'm, its other end, in axes of that link', (0.0,) * 3, -1e4, 1e4),
        Parameter('stiffness', NUMBER, 'N/m', None, 0.0, 1e9),
        Parameter('rest_length', NUMBER, 'm, at which it is slack', 0.0, 0.0, 1e4),
        _force('damping', 'N s/m, against the rate of its length'),
        Parameter('tension_only', FLAG, 'a rope: shorter than its rest length it does nothing', False),
    )),
    'drag': ForceType('resistance of a fluid, or of the ground: -(linear + quadratic |v|) v at a point of a link', (
        _ON,
        _POINT,
        _force('linear', 'N s/m'),
        _force('quadratic', 'N s^2/m^2, half of density x drag coefficient x area'),
        _force('angular', 'N m s/rad, against the angular velocity of the link'),
        Parameter('flow', VECTOR, 'm/s, velocity of the fluid in inertial axes', (0.0,) * 3, -1e3, 1e3),
    )),
}
TYPE = Parameter('type', CHOICE, 'what kind of force it is', choices=tuple(TYPES))


def read_external_forces(source):
    """
    Return the `ForceSpec`s of a YAML file, or of a mapping {name: {parameter: value}}.

    A mapping may also have dotted names, {'buoyancy.type': ...}, as ROS parameters have.  Raises ModelError,
    UnknownNameError or DuplicateNameError that name the file, its line and the key.
    """
    if isinstance(source, Mapping):
        entries = _from_mapping(source)
    elif isinstance(source, (str, os.PathLike)):
        entries = _from_file(source)
    else:
        raise ModelError(f'external forces {source!r:.80}: expected a YAML file or a mapping {{name: parameters}}')
    return [_spec(name, where, given) for name, where, given in entries]


def _spec(name, where, given):
    """Return the `ForceSpec` of {parameter: (where, value)}."""
    if 'type' not in given:
        raise ModelError(f"{where}: 'type' is missing; there are: {', '.join(TYPES)}")
    kind = _value(TYPE, *given['type'])
    parameters = {parameter.name: parameter for parameter in TYPES[kind].parameters}
    for key, (line, _) in given.items():
        if key != 'type' and key not in parameters:
            raise ModelError(f"{line}: '{shorten(key)}' is no parameter of a {kind}{did_you_mean(key, parameters)}")
    values = {}
    for key, parameter in parameters.items():
        if key in given:
            values[key] = _value(parameter, *given[key])
        elif parameter.default is None:
            raise ModelError(f"{where}: '{key}' is missing ({parameter.description})")
        else:
            values[key] = parameter.default
    return ForceSpec(name, kind, where, SimpleNamespace(**values))


def _value(parameter, where, value):
    """Return the checked value of one parameter, of YAML texts or of Python values."""
    where = f"{where}: '{parameter.name}'"
    if parameter.kind == NUMBER:
        return _number(parameter, where, value)
    if parameter.kind == VECTOR:
        if isinstance(value, (str, Mapping)) or not hasattr(value, '__len__') or len(value) != 3:
            raise ModelError(f'{where} is {value!r:.80}; expected a list of three numbers ({parameter.description})')
        return tuple(_number(parameter, where, one) for one in value)
    if parameter.kind == FLAG:
        flags = {'true': True, 'false': False}
        if str(value).lower() not in flags:
            raise ModelError(f'{where} is {value!r:.80}; expected true or false')
        return flags[str(value).lower()]
    if not isinstance(value, str) or not value:
        raise ModelError(f'{where} is {value!r:.80}; expected a name ({parameter.description})')
    if parameter.choices and value not in parameter.choices:
        raise ModelError(f"{where}: there is no '{shorten(value)}'{did_you_mean(value, parameter.choices)}")
    return value


def _number(parameter, where, value):
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ModelError(f'{where} is {value!r:.80}; expected a finite number ({parameter.description})')
    if not parameter.low <= number <= parameter.high:
        raise ModelError(f'{where} is {number:g}; expected {parameter.low:g} to {parameter.high:g} '
                         f'({parameter.description})')
    return number


def _from_mapping(source):
    """Yield (name, where, {parameter: (where, value)}) of Python values."""
    nested = {}
    for key, value in source.items():
        name, dot, parameter = str(key).partition('.')
        if dot:
            nested.setdefault(name, {})[parameter] = value
        elif isinstance(value, Mapping):
            nested.setdefault(name, {}).update(value)
        else:
            raise ModelError(f"external force '{shorten(name)}' is {value!r:.80}; expected a mapping of its parameters")
    for name, values in nested.items():
        where = f"external force '{shorten(name)}'"
        yield name, where, {str(key): (where, value) for key, value in values.items()}


def _from_file(path):
    """Yield (name, where, {parameter: (where, value)}) of a YAML file, its values still texts or lists of texts."""
    text = read_text(path, MAX_BYTES)
    try:
        # nodes rather than values: each knows its line, and an alias of an alias of ... is never expanded
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ModelError(f"external forces file '{path}' is not YAML: {error}") from error
    sections = list(_sections(path, root, DEEPEST))
    if len(sections) != 1:
        where = ' and '.join(f'line {_line(section)}' for section in sections)
        raise ModelError(f"external forces file '{path}' has " + (
            f"'{SECTION}' more than once: {where}" if sections else
            f"no '{SECTION}', neither at the top nor below '{ROS}'{_hint(path, root)}"))
    for key, node in _mapping(path, sections[0]):
        where = f"{_where(path, key)}: external force '{shorten(key.value)}'"
        given = {}
        for parameter, value in _mapping(path, node):
            place = f"{_where(path, parameter)}: external force '{shorten(key.value)}'"
            given[parameter.value] = place, _plain(place, value)
        yield key.value, where, given


def _sections(path, node, levels):
    """Yield the nodes of `external_forces`: at the top of a file, or below the parameters of ROS nodes."""
    if levels == 0 or not isinstance(node, yaml.MappingNode):
        return
    keys = _mapping(path, node)
    for key, value in keys:
        if key.value == SECTION:
            yield value
    if levels == DEEPEST and any(key.value == SECTION for key, _ in keys):
        for key, _ in keys:
            if key.value != SECTION:
                raise ModelError(f"{_where(path, key)}: '{shorten(key.value)}' is not known beside '{SECTION}'"
                                 f'{did_you_mean(key.value, (SECTION,))}')
        return
    for key, value in keys:
        if key.value == ROS:
            yield from (node for name, node in _mapping(path, value) if name.value == SECTION)
        else:
            yield from _sections(path, value, levels - 1)


def _hint(path, root):
    keys = [key.value for key, _ in _mapping(path, root)] if isinstance(root, yaml.MappingNode) else []
    return did_you_mean(SECTION, keys) if keys else '; the file is empty or no mapping'


def _mapping(path, node):
    """Return [(key node, value node)] of a mapping whose keys are texts, each once."""
    if not isinstance(node, yaml.MappingNode):
        raise ModelError(f'{_where(path, node)}: expected a mapping')
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ModelError(f'{_where(path, key)}: expected a name')
        if key.value in seen:
            raise DuplicateNameError(f"{_where(path, key)}: '{shorten(key.value)}' is there twice")
        seen.add(key.value)
    return node.value


def _plain(where, node):
    if isinstance(node, yaml.ScalarNode):
        return node.value
    if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
        return [item.value for item in node.value]
    raise ModelError(f'{where} (line {_line(node)}): expected a text, a number, or a list of numbers')


def _where(path, node):
    return f"external forces file '{path}' (line {_line(node)})"


def _line(node):
    return node.start_mark.line + 1 if node else 1


def _markdown():
    for name, kind in TYPES.items():
        yield f'### {name}\n\n{kind.description}\n'
        yield '| parameter | kind | default | range | meaning |'
        yield '|---|---|---|---|---|'
        for p in kind.parameters:
            allowed = ', '.join(p.choices) if p.choices else f'{p.low:g} to {p.high:g}' if p.high < math.inf else ''
            default = 'required' if p.default is None else f'`{list(p.default) if p.kind == VECTOR else p.default}`'
            yield f'| `{p.name}` | {p.kind} | {default} | {allowed} | {p.description} |'
        yield ''


def main():
    """Print the types of forces as Markdown."""
    print('\n'.join(_markdown()))
    return 0


if __name__ == '__main__':
    sys.exit(main())
