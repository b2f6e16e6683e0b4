"""A bag as arrays, without a model: joints, pressures, commands and reference over time, by name.

    bag = psdyn_ros.read_bag('run_17')
    bag.joints.position[:, bag.joints.names.index('slew')]
    bag.to_frame().plot()
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..api.results.result import Axis, Result, import_pandas
from ..model.errors import check_name
from ..model.units import ATMOSPHERE, SECOND
from .bags.bulk_decoder import ARRAY, JOINT_STATE, PRESSURE, TRAJECTORY, Decoder, Rows, readable
from .bags.recording import BagError
from .bags.source import BagSource, open_bag
from .signals.topics import (
    COMMANDS,
    PRESSURES,
    REFERENCES,
    SAME_CLOCK,
    UNMEASURED,
    USUAL,
    array_columns,
    array_pressures,
    pressure_port,
    rows_stamps,
)

if TYPE_CHECKING:
    import pandas

PARTS = ('joints', 'pressures', 'commands', 'reference')


@dataclass(frozen=True, repr=False, eq=False)
class JointTrack(Result):
    """N messages about joints; NaN where a message does not have a joint or a quantity."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ('position', 'velocity', 'acceleration', 'effort'), ('joints',))
    UNITS: ClassVar[Mapping[str, str]] = {'time': 's'}
    INDEX: ClassVar[str] = 'time'

    topic: str
    names: tuple[str, ...]
    """Joints, in the order of the columns."""
    time: np.ndarray
    """(N,) s since the first message of the bag."""
    position: np.ndarray | None
    """(N, joints) [m, rad], or a spool; None where nothing was recorded, here and below."""
    velocity: np.ndarray | None
    """(N, joints) [m/s, rad/s]"""
    acceleration: np.ndarray | None
    """(N, joints) [m/s^2, rad/s^2]"""
    effort: np.ndarray | None
    """(N, joints) [N, N m]"""


@dataclass(frozen=True, repr=False, eq=False)
class PressureTrack(Result):
    """N measurements of chamber pressures; NaN where a cylinder is not in one."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'a': ('cylinders',), 'b': ('cylinders',)}
    UNITS: ClassVar[Mapping[str, str]] = {'time': 's'}
    INDEX: ClassVar[str] = 'time'

    topic: str
    """Of the labelled array; the folder of the topics where each port has its own."""
    names: tuple[str, ...]
    """Cylinders, in the order of the columns."""
    time: np.ndarray
    """(N,) s since the first message of the bag."""
    a: np.ndarray
    """(N, cylinders) [Pa gauge] of the chambers that extend the cylinders."""
    b: np.ndarray
    """(N, cylinders) [Pa gauge]"""


@dataclass(frozen=True, repr=False, eq=False)
class Bag(Result):
    """What was recorded of a machine; a part is None where the bag has none."""

    path: str
    duration: float
    """s from the first message to the last."""
    joints: JointTrack
    pressures: PressureTrack | None
    commands: JointTrack | None
    reference: JointTrack | None
    damage: str
    """What could not be read of the bag; '' where it is whole."""

    def __repr__(self) -> str:
        lines = [f'Bag {self.path}: {self.duration:.3f} s']
        for part in PARTS:
            track = getattr(self, part)
            if track is not None:
                shown = ', '.join(track.names[:8]) + (', ...' if len(track.names) > 8 else '')
                lines.append(f'  {part}: {len(track.time)} messages on {track.topic}: {shown}')
        return '\n'.join(lines + [f'  damage: {self.damage}'] * bool(self.damage))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain dictionaries, vectors by the names of joints and cylinders."""
        return {name: value.to_dict() if isinstance(value, Result) else value for name, value in self._fields()}

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas.DataFrame: a row per message of the joints, columns <part>/<quantity>/<joint>.

        Other parts have the value of their last message until then, NaN before their first.
        """
        frames = []
        for part in PARTS:
            track = getattr(self, part)
            if track is not None:
                frame = track.to_frame().add_prefix(f'{part}/')
                frames.append(frame if part == 'joints' else frame.reindex(self.joints.time, method='ffill'))
        return import_pandas().concat(frames, axis=1)


def read_bag(path: str | PathLike[str], *, topics: Mapping[str, str] | None = None) -> Bag:
    """Return the `Bag` in a folder, or in one MCAP or SQLite file.

    topics: {'joints', 'pressures', 'commands', 'reference': topic} where a bag has more than one, or one of an unusual
    name; by default joints are on /joint_states or the topic with most messages, commands, reference and pressures
    are found by types and names of topics.
    Raises BagError where the bag cannot be read, has no joints, or has no such topic.
    """
    given = dict(topics or {})
    for part in given:
        check_name(part, PARTS, f"topics: no part '{part}' of a bag", BagError)
    with open_bag(fspath(path)) as source:
        chosen = _choose(source, given)
        rows = _decoded(source, {topic for found in chosen.values() for topic in found})
        clock = _Clock(source, rows)
        joints, commands, reference = (
            _joint_track(chosen[part][0], rows[chosen[part][0]], clock) if chosen[part] else None
            for part in ('joints', 'commands', 'reference'))
        if joints is None:
            raise BagError(f"bag '{source.path}' has no topic with measured joints ({JOINT_STATE} with positions); it "
                           f'has:\n{source.listing()}')
        pressures = _pressure_track({topic: rows[topic] for topic in chosen['pressures']}, joints.names, clock)
        if pressures is None and 'pressures' in given:
            raise BagError(f"topic '{given['pressures']}' has no labels {', '.join(PRESSURES)} of cylinders")
        damage = '; '.join(filter(None, (source.lost.text if source.lost else '', source.invalid)))
        return Bag(str(source.path), (source.end_ns - source.start_ns) / SECOND, joints, pressures, commands, reference,
                   damage)


def _choose(source: BagSource, given: Mapping[str, str]) -> dict[str, list[str]]:
    """Return {part: its topics}; several only of pressures."""
    usable = {topic.name: topic for topic in source.topics
              if topic.count and topic.msgtype and not readable(source.schemas[topic.name])}
    of_type = {kind: [name for name, topic in usable.items() if topic.msgtype == kind]
               for kind in (JOINT_STATE, TRAJECTORY, ARRAY, PRESSURE)}

    def largest(names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: (name != USUAL, not name.endswith(USUAL), -usable[name].count, name))[:1]

    chosen = {
        'joints': largest(name for name in of_type[JOINT_STATE] if not UNMEASURED.search(name)),
        'commands': largest(name for name in of_type[JOINT_STATE] if COMMANDS.search(name)),
        'reference': largest(name for name in (*of_type[TRAJECTORY], *of_type[JOINT_STATE]) if REFERENCES.search(name)),
        'pressures': [name for name in (*of_type[ARRAY], *of_type[PRESSURE]) if not UNMEASURED.search(name)]}
    kinds = {'joints': (JOINT_STATE,), 'commands': (JOINT_STATE,), 'reference': (TRAJECTORY, JOINT_STATE),
             'pressures': (ARRAY, PRESSURE)}
    for part, topic in given.items():
        source.number(topic)        # raises where there is none
        if topic not in usable or usable[topic].msgtype not in kinds[part]:
            kind = source.topics[source.number(topic)].msgtype or 'a type that cannot be read'
            raise BagError(f"topic '{topic}' for {part} is of {kind}, or empty; expected messages of "
                           f'{" or ".join(kinds[part])}')
        chosen[part] = [topic]
    return chosen


def _decoded(source: BagSource, topics: set[str]) -> dict[str, list[Rows]]:
    rows: dict[str, list[Rows]] = {topic: [] for topic in topics}
    decoders = {source.number(topic): (topic, Decoder(source.topics[source.number(topic)].msgtype)) for topic in topics}
    for packet in source.packets(sorted(topics)):
        for number in np.unique(packet.topic).tolist():
            topic, decoder = decoders[number]
            rows[topic] += decoder.decode(packet.rows(packet.topic == number))
    return rows


class _Clock:
    """Times of messages: their stamps where all topics are stamped by one clock, else when they were received."""

    def __init__(self, source: BagSource, rows: Mapping[str, list[Rows]]) -> None:
        self._start = source.start_ns
        offsets = []
        for parts in rows.values():
            pairs = [(part.received, rows_stamps(part)) for part in parts]
            if any(stamps is None for _, stamps in pairs):
                offsets.append(np.nan)
            elif pairs:
                offsets.append(float(np.median(np.concatenate([received - stamps for received, stamps in pairs]))))
        self._by_stamp = bool(offsets) and max(offsets) - min(offsets) <= SAME_CLOCK
        self._offset = round(min(offsets)) if self._by_stamp else 0

    def seconds(self, rows: Rows) -> np.ndarray:
        """Return (n,) s since the first message of the bag."""
        when = rows_stamps(rows) + self._offset if self._by_stamp else rows.received
        return (when - self._start) / SECOND


def _joint_track(topic: str, parts: list[Rows], clock: _Clock) -> JointTrack | None:
    names = tuple(dict.fromkeys(name for rows in parts for name in rows.names))
    if not names:
        return None
    time = np.concatenate([clock.seconds(rows) for rows in parts])
    order, columns = np.argsort(time, kind='stable'), {}
    for field in ('position', 'velocity', 'acceleration', 'effort'):
        if any(field in rows.values for rows in parts):
            columns[field] = np.concatenate([_placed(rows, rows.values.get(field), names) for rows in parts])[order]
    return JointTrack(topic, names, time[order], columns.get('position'), columns.get('velocity'),
                      columns.get('acceleration'), columns.get('effort'),
                      axes={'joints': Axis(names, ('',) * len(names))})


def _placed(rows: Rows, values: np.ndarray | None, names: tuple[str, ...]) -> np.ndarray:
    out = np.full((len(rows.received), len(names)), np.nan)
    if values is not None:
        out[:, [names.index(name) for name in rows.names]] = values
    return out


def _pressure_track(topics: Mapping[str, list[Rows]], joints: tuple[str, ...], clock: _Clock) -> PressureTrack | None:
    """Return the pressures of the labelled array with most cylinders, or of single ports; None without any."""
    arrays = {topic: parts for topic, parts in topics.items()
              if parts and set(PRESSURES) <= array_columns(parts[0].names).keys()}
    samples: list[tuple[np.ndarray, str, str, np.ndarray]] = []     # time, cylinder, port, gauge pressure
    where = ''
    if arrays:
        where = max(arrays, key=lambda topic: len(arrays[topic][0].names[0].split(',')))
        for rows in arrays[where]:
            samples += [(clock.seconds(rows), name, label[-1], values) for name, label, values in array_pressures(rows)]
    else:
        for topic, parts in topics.items():
            for rows in parts:
                port = pressure_port(_Named(topic, rows.names), joints) if 'pressure' in rows.values else None
                if port:
                    where = topic.rpartition('/')[0]
                    samples.append((clock.seconds(rows), *port, rows.values['pressure'][:, 0] - ATMOSPHERE))
    names = tuple(dict.fromkeys(name for _, name, _, _ in samples))
    if not names:
        return None
    time = np.unique(np.concatenate([times for times, *_ in samples]))
    values = {'a': np.full((len(time), len(names)), np.nan), 'b': np.full((len(time), len(names)), np.nan)}
    for times, name, side, pressure in samples:
        values[side][np.searchsorted(time, times), names.index(name)] = pressure
    return PressureTrack(where, names, time, values['a'], values['b'],
                         axes={'cylinders': Axis(names, ('Pa',) * len(names))})


@dataclass(frozen=True)
class _Named:
    """A topic as `pressure_port` takes it."""

    name: str
    names: tuple[str, ...]
