"""
Errors, delays and rates of the sensors of a machine, from YAML.

    default:                                    # of each kind of channel
      position: {quantum: 1.0e-4, noise: 2.0e-5}
      pressure: {noise: 5.0e4}
    joints:                                     # differences of single joints
      telescope:
        position: {bias: 1.0e-3}
    sets:                                       # others, chosen by name: each stands alone
      exact: {}

Channels are named `<joint>.<kind>`: position, velocity, effort, and pressure_a and pressure_b, which are of the kind
pressure.  `python3 -m psdyn_ros.model.parameters.sensors` prints the table of parameters.
"""
from dataclasses import dataclass, field, replace

from ..errors import ModelError, UnknownNameError, check_name, did_you_mean, shorten
from ..yaml_file import open_declaration
from .parameter_blocks import markdown, number, read_block

KINDS = {'position': 'm or rad', 'velocity': 'm/s or rad/s', 'effort': 'N or N m', 'pressure': 'Pa'}
KIND_OF = {'position': 'position', 'velocity': 'velocity', 'effort': 'effort', 'pressure_a': 'pressure',
           'pressure_b': 'pressure'}
DEFAULT, JOINTS, SETS = 'default', 'joints', 'sets'
MAX_DELAY_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Sensor:
    """One channel: reads round((true (1 + gain_error) + bias + noise) / quantum) quantum."""

    noise: float = number('rms of Gaussian noise, independent in each sample, in the unit of the channel', 0.0,
                          low=0.0, high=1e9)
    quantum: float = number('resolution, in the unit of the channel; 0: continuous', 0.0, low=0.0, high=1e9)
    bias: float = number('constant error, in the unit of the channel', 0.0, low=-1e9, high=1e9)
    gain_error: float = number('relative: 0.01 reads 1 % too much', 0.0, low=-0.5, high=0.5)
    delay: float = number('s from when a value is taken until it is there', 0.0, low=0.0, high=MAX_DELAY_S)
    rate: float = number('Hz at which values are taken, from the start; 0, or more than steps come: at each step', 0.0,
                         low=0.0, high=1e6)


@dataclass(frozen=True)
class SensorSettings:
    """The `Sensor` of each channel; one that is not there is exact."""

    sensors: dict = field(default_factory=dict)

    def of(self, channel):
        """Return the `Sensor` of a channel."""
        return self.sensors.get(channel, Sensor())


def kind_of(channel):
    """Return the kind of a channel such as 'lift_cylinder.pressure_a', for which KINDS has the unit."""
    joint, _, quantity = str(channel).rpartition('.')
    if not joint or quantity not in KIND_OF:
        raise ModelError(f"channel '{shorten(str(channel))}': expected <joint>.<one of {', '.join(KIND_OF)}>")
    return KIND_OF[quantity]


def read_sensors(source, channels, chosen=''):
    """Return the `SensorSettings` of these channels from a YAML file, or from YAML text, which has more than one line.

    chosen: name of one of the `sets` of the file; empty: what stands at its top.  Raises ModelError, UnknownNameError
    or DuplicateNameError that name the file, its line, the joint and the parameter.
    """
    kinds = {channel: kind_of(channel) for channel in channels}
    joints = {channel.rpartition('.')[0] for channel in kinds}
    file = open_declaration('sensors', source)
    top = file.parts(file.root, (), (DEFAULT, JOINTS, SETS))
    sets = {'': _read_set(file, top, joints)}
    if SETS in top:
        for key, node in file.mapping(top[SETS][1]):
            sets[key.value] = _read_set(file, file.parts(node, (), (DEFAULT, JOINTS)), joints)
    if chosen not in sets:
        raise UnknownNameError(f"{file}: no set '{shorten(str(chosen))}'"
                               f'{did_you_mean(chosen, sets.keys() - {""})}')
    default, by_joint = sets[chosen]
    return SensorSettings({channel: replace(default.get(kind, Sensor()),
                                            **by_joint.get((channel.rpartition('.')[0], kind), {}))
                           for channel, kind in kinds.items()})


def _read_set(file, sections, joints):
    """Return ({kind: Sensor}, {(joint, kind): {parameter: value}})."""
    default, by_joint = {}, {}
    if DEFAULT in sections:
        for kind, (sensor, _) in _read_kinds(file, sections[DEFAULT][1], DEFAULT):
            default[kind] = sensor
    if JOINTS in sections:
        for key, node in file.mapping(sections[JOINTS][1]):
            check_name(key.value, joints, f"{file.where(key)}: no joint '{shorten(key.value)}' is measured")
            for kind, (sensor, places) in _read_kinds(file, node, f"joint '{shorten(key.value)}'"):
                by_joint[key.value, kind] = {name: getattr(sensor, name) for name in places if name}
    return default, by_joint


def _read_kinds(file, node, what):
    """Yield (kind, (Sensor, where each parameter was given)) of a mapping of kinds."""
    for kind, (key, block) in file.parts(node, (), KINDS).items():
        yield kind, read_block(Sensor, file, key, block, f'{what}: {kind}')


def tables():
    """Yield the parameters of sensors as Markdown."""
    yield from markdown('A channel', Sensor)
    yield '| kind of channel | unit |'
    yield '|---|---|'
    yield from (f'| `{kind}` | {unit} |' for kind, unit in KINDS.items())


if __name__ == '__main__':
    print('\n'.join(tables()))
