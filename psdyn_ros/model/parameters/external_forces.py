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
import os
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import ModelError, shorten
from ..yaml_file import YamlFile, plain
from .parameter_blocks import (
    CHOICE,
    Parameter,
    checked,
    checked_block,
    choice,
    flag,
    joint_name,
    link_name,
    markdown,
    number,
    vector,
)

SECTION = 'external_forces'


@dataclass(frozen=True)
class ForceSpec:
    """One named force of a file.

    where   file, line and name, for messages
    values  instance of the class of its type in TYPES
    """

    name: str
    type: str
    where: str
    values: object


def _on():
    return link_name('the link it acts on')


def _point():
    return vector('m, where it acts, in link axes from its origin', (0.0,) * 3, low=-1e4, high=1e4)


def _coefficient(description):
    return number(description, 0.0, low=0.0, high=1e9)


@dataclass(frozen=True, kw_only=True)
class ConstantForce:
    """A force that never changes, at a point of a link: buoyancy, thrust, a weight."""

    link: str = _on()
    force: tuple = vector('N', low=-1e9, high=1e9)
    point: tuple = _point()
    axes: str = choice('whether the force is given in inertial axes or turns with the link', ('inertial', 'link'),
                       'inertial')


@dataclass(frozen=True, kw_only=True)
class JointSpring:
    """A linear spring along or about a joint: -stiffness (q - rest)."""

    joint: str = joint_name('the joint it acts on, actuated or not')
    stiffness: float = number('N/m, or N m/rad', low=0.0, high=1e9)
    rest: float = number('m or rad, the position of the joint at which it is slack', 0.0, low=-1e4, high=1e4)


@dataclass(frozen=True, kw_only=True)
class JointDamper:
    """A damper along or about a joint: -(linear + quadratic |qd|) qd."""

    joint: str = joint_name('the joint it acts on, actuated or not')
    linear: float = _coefficient('N s/m, or N m s/rad')
    quadratic: float = _coefficient('N s^2/m^2, or N m s^2/rad^2')


@dataclass(frozen=True, kw_only=True)
class SpringDamper:
    """A spring and damper between a point of a link and a point of another: a tie, a rope."""

    link: str = _on()
    point: tuple = _point()
    other_link: str = link_name('the link at its other end; the root of the machine stands for the ground')
    other_point: tuple = vector('m, its other end, in axes of that link', (0.0,) * 3, low=-1e4, high=1e4)
    stiffness: float = number('N/m', low=0.0, high=1e9)
    rest_length: float = number('m, at which it is slack', 0.0, low=0.0, high=1e4)
    damping: float = _coefficient('N s/m, against the rate of its length')
    tension_only: bool = flag('a rope: shorter than its rest length it does nothing', False)


@dataclass(frozen=True, kw_only=True)
class Drag:
    """Resistance of a fluid, or of the ground: -(linear + quadratic |v|) v at a point of a link."""

    link: str = _on()
    point: tuple = _point()
    linear: float = _coefficient('N s/m')
    quadratic: float = _coefficient('N s^2/m^2, half of density x drag coefficient x area')
    angular: float = _coefficient('N m s/rad, against the angular velocity of the link')
    flow: tuple = vector('m/s, velocity of the fluid in inertial axes', (0.0,) * 3, low=-1e3, high=1e3)


TYPES = {'constant_force': ConstantForce, 'joint_spring': JointSpring, 'joint_damper': JointDamper,
         'spring_damper': SpringDamper, 'drag': Drag}
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
    kind = checked(TYPE, *given.pop('type'))
    return ForceSpec(name, kind, where, checked_block(TYPES[kind], where, given))


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
    file = YamlFile('external forces file', path)
    for key, node in file.mapping(file.section(SECTION)):
        given = {}
        for parameter, value in file.mapping(node):
            place = f"{file.where(parameter)}: external force '{shorten(key.value)}'"
            given[parameter.value] = place, plain(place, value)
        yield key.value, f"{file.where(key)}: external force '{shorten(key.value)}'", given


def tables():
    """Yield the types of forces as Markdown."""
    for name, cls in TYPES.items():
        yield from markdown(name, cls)


if __name__ == '__main__':
    print('\n'.join(tables()))
