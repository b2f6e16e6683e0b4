"""
Named external forces of a machine, from YAML: the types, their parameters, and the forces of a file.

    external_forces:
      buoyancy: {type: constant_force, link: balloon, force: [0, 0, 156.96]}
      slider_spring: {type: joint_spring, joint: slider, stiffness: 50}
      wind: {type: drag, link: balloon, quadratic: 0.8, flow: [3, 0, 0]}

They may stand in a file of their own or below the `ros__parameters` of a ROS parameter file.  Any number of forces may
act on a link or a joint.  `python3 -m psdyn_ros.model.parameters.external_forces` prints the types
and parameters.
"""
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace

from ..errors import ModelError, did_you_mean, shorten
from .parameter_file import CHOICE, FLAG, JOINT, LINK, NUMBER, VECTOR, Parameter, ParameterFile, checked, plain

SECTION = 'external_forces'


@dataclass(frozen=True)
class ForceType:
    """What a type of force does, and its parameters."""

    description: str
    parameters: tuple


@dataclass(frozen=True)
class ForceSpec:
    """One named force of a file.

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
    kind = checked(TYPE, *given['type'])
    parameters = {parameter.name: parameter for parameter in TYPES[kind].parameters}
    for key, (line, _) in given.items():
        if key != 'type' and key not in parameters:
            raise ModelError(f"{line}: '{shorten(key)}' is no parameter of a {kind}{did_you_mean(key, parameters)}")
    values = {}
    for key, parameter in parameters.items():
        if key in given:
            values[key] = checked(parameter, *given[key])
        elif parameter.default is None:
            raise ModelError(f"{where}: '{key}' is missing ({parameter.description})")
        else:
            values[key] = parameter.default
    return ForceSpec(name, kind, where, SimpleNamespace(**values))


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
    file = ParameterFile('external forces file', path)
    for key, node in file.mapping(file.section(SECTION)):
        given = {}
        for parameter, value in file.mapping(node):
            place = f"{file.where(parameter)}: external force '{shorten(key.value)}'"
            given[parameter.value] = place, plain(place, value)
        yield key.value, f"{file.where(key)}: external force '{shorten(key.value)}'", given


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
