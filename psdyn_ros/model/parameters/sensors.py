"""
Errors, delays and rates of the sensors of a machine, from YAML.

    default:                                    # of each kind of channel
      position: {quantum: 1.0e-4, noise: 2.0e-5}
      pressure: {noise: 5.0e4}
    joints:                                     # differences of single joints
      telescope:
        position: {bias: 1.0e-3}
    mounted:                                    # sensors that are there only where they are named
      imu: [telescope_link]
      load_pin: [hook]
    links:
      telescope_link:
        acceleration: {noise: 0.02}
    sets:                                       # others, chosen by name: each stands alone
      exact: {}

Channels are named `<joint or link>.<kind>`, followed by `_a` and `_b` of ports and `_x`, `_y`, `_z` of vectors, such as
lift_cylinder.pressure_a.  `python3 -m psdyn_ros.model.parameters.sensors` prints the table of parameters.
"""
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..errors import DuplicateNameError, ModelError, UnknownNameError, check_name, did_you_mean, shorten
from ..yaml_file import open_declaration, plain
from .parameter_blocks import markdown, number, read_block


class ChannelKind(NamedTuple):
    """What channels of a kind measure."""

    unit: str
    parts: str = ''
    """Suffixes of its channels, one letter each; empty: a single channel without any."""
    sensor: str = ''
    """What it belongs to, which is mounted by name; empty: it is always there."""
    link: bool = False
    """Whether it is on links; else on joints."""

    def channels(self, kind, name):
        """Return the channels of this kind on a joint or link."""
        return tuple(f'{name}.{kind}_{part}' for part in self.parts) or (f'{name}.{kind}',)


KINDS = {
    'position': ChannelKind('m or rad'),
    'velocity': ChannelKind('m/s or rad/s'),
    'effort': ChannelKind('N or N m'),
    'pressure': ChannelKind('Pa', 'ab'),
    'angular_velocity': ChannelKind('rad/s', 'xyz', 'imu', link=True),
    'acceleration': ChannelKind('m/s^2', 'xyz', 'imu', link=True),
    'pin_force': ChannelKind('N', 'xyz', 'load_pin'),
}
SENSORS = tuple(dict.fromkeys(kind.sensor for kind in KINDS.values() if kind.sensor))
KIND_OF = {channel[1:]: kind for kind, row in KINDS.items() for channel in row.channels(kind, '')}
DEFAULT, JOINTS, LINKS, MOUNTED, SETS = SECTIONS = 'default', 'joints', 'links', 'mounted', 'sets'
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
    """The `Sensor` of each channel; one that is not there is exact.

    mounted  {sensor of SENSORS: names of joints or links}
    """

    sensors: dict = field(default_factory=dict)
    mounted: dict = field(default_factory=dict)

    def of(self, channel):
        """Return the `Sensor` of a channel."""
        return self.sensors.get(channel, Sensor())


def kind_of(channel):
    """Return the kind of a channel such as 'lift_cylinder.pressure_a', for which KINDS has the unit."""
    name, _, quantity = str(channel).rpartition('.')
    if not name or quantity not in KIND_OF:
        raise ModelError(f"channel '{shorten(str(channel))}': expected <joint or link>.<one of {', '.join(KIND_OF)}>")
    return KIND_OF[quantity]


def read_sensors(source, channels, chosen='', mountable=None):
    """Return the `SensorSettings` of these channels from a YAML file, or from YAML text, which has more than one line.

    chosen     name of one of the `sets` of the file; empty: what stands at its top
    mountable  {sensor of SENSORS: joints or links on which it may be mounted}
    Raises ModelError, UnknownNameError or DuplicateNameError that name the file, its line, the joint and the parameter.
    """
    kinds = {channel: kind_of(channel) for channel in channels}
    joints = {channel.rpartition('.')[0] for channel in kinds}
    mountable = mountable or {}
    file = open_declaration('sensors', source)
    top = file.parts(file.root, (), SECTIONS)
    sets = {'': _read_set(file, top, joints, mountable)}
    if SETS in top:
        for key, node in file.mapping(top[SETS][1]):
            sets[key.value] = _read_set(file, file.parts(node, (), SECTIONS[:-1]), joints, mountable)
    if chosen not in sets:
        raise UnknownNameError(f"{file}: no set '{shorten(str(chosen))}'"
                               f'{did_you_mean(chosen, sets.keys() - {""})}')
    default, by_name, mounted = sets[chosen]
    kinds.update((channel, kind) for kind, row in KINDS.items() for name in mounted.get(row.sensor, ())
                 for channel in row.channels(kind, name))
    return SensorSettings({channel: replace(default.get(kind, Sensor()),
                                            **by_name.get((channel.rpartition('.')[0], kind), {}))
                           for channel, kind in kinds.items()}, mounted)


def _read_set(file, sections, joints, mountable):
    """Return ({kind: Sensor}, {(joint or link, kind): {parameter: value}}, {sensor: joints or links})."""
    default, by_name, mounted = {}, {}, {}
    if DEFAULT in sections:
        for kind, (sensor, _) in _read_kinds(file, sections[DEFAULT][1], DEFAULT, KINDS):
            default[kind] = sensor
    if MOUNTED in sections:
        for sensor, (_, node) in file.parts(sections[MOUNTED][1], (), SENSORS).items():
            mounted[sensor] = _names(file, node, sensor, mountable.get(sensor, ()))
    known = {JOINTS: set(joints), LINKS: set()}
    for kind in KINDS.values():
        known[LINKS if kind.link else JOINTS].update(mounted.get(kind.sensor, ()))
    for section, names in known.items():
        kinds = {kind for kind, row in KINDS.items() if row.link == (section == LINKS)}
        for key, node in file.mapping(sections[section][1]) if section in sections else ():
            check_name(key.value, names, f"{file.where(key)}: no {section[:-1]} '{shorten(key.value)}' is measured")
            for kind, (sensor, places) in _read_kinds(file, node, f"{section[:-1]} '{shorten(key.value)}'", kinds):
                by_name[key.value, kind] = {name: getattr(sensor, name) for name in places if name}
    return default, by_name, mounted


def _names(file, node, sensor, known):
    """Return the tuple of names in a list of joints or links on which a sensor may be."""
    names = plain(file.where(node), node)
    if not isinstance(names, list):
        raise ModelError(f"{file.where(node)}: '{sensor}' is {names!r:.80}; expected a list of names")
    for name in names:
        if name not in known:
            raise UnknownNameError(f"{file.where(node)}: no {sensor} can be on '{shorten(str(name))}'"
                                   f'{did_you_mean(str(name), known)}')
        if names.count(name) > 1:
            raise DuplicateNameError(f"{file.where(node)}: '{shorten(name)}' has the {sensor} twice")
    return tuple(names)


def _read_kinds(file, node, what, kinds):
    """Yield (kind, (Sensor, where each parameter was given)) of a mapping of kinds."""
    for kind, (key, block) in file.parts(node, (), kinds).items():
        yield kind, read_block(Sensor, file, key, block, f'{what}: {kind}')


def tables():
    """Yield the parameters of sensors as Markdown."""
    yield from markdown('A channel', Sensor)
    yield '| kind of channel | unit | channels | sensor |'
    yield '|---|---|---|---|'
    for kind, row in KINDS.items():
        channels = ', '.join(f'`{channel}`' for channel in row.channels(kind, '<link>' if row.link else '<joint>'))
        yield f'| `{kind}` | {row.unit} | {channels} | {f"`{row.sensor}`, where mounted" if row.sensor else "always"} |'


if __name__ == '__main__':
    print('\n'.join(tables()))
