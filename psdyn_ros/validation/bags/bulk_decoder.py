"""Serialised messages into arrays: many at once where they have the same layout, else one by one by rosbags.

Messages of one topic mostly differ in a stamp and some float64 only.  Where these stand is found by serialising the
first message again with other numbers.  A message belongs to a layout if all its other bytes are those of the first.
"""

from dataclasses import fields, is_dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from ...model.units import SECOND
from .mcap_chunks import gather
from .mcap_recovery import UNREADABLE

JOINT_STATE, TRAJECTORY, PRESSURE, ARRAY = (
    'sensor_msgs/msg/JointState', 'trajectory_msgs/msg/JointTrajectory', 'sensor_msgs/msg/FluidPressure',
    'std_msgs/msg/Float64MultiArray')
MAX_LAYOUTS = 16            # of one topic
MAX_NAMES = 4096
MOST = 1e15                 # beyond it no number is meant: it counts as one that is not finite
LITTLE_ENDIAN = b'\x00\x01'
# type -> {field of Rows: where it is in the message}; the first name is that of the names
FIELDS = {
    JOINT_STATE: {'position': ('position',), 'velocity': ('velocity',), 'effort': ('effort',)},
    TRAJECTORY: {'position': ('points', 0, 'positions'), 'velocity': ('points', 0, 'velocities'),
                 'acceleration': ('points', 0, 'accelerations'), 'effort': ('points', 0, 'effort')},
    PRESSURE: {'pressure': ('fluid_pressure',), 'variance': ('variance',)},
    ARRAY: {'data': ('data',)},
}
STAMP = ('header', 'stamp')


class Rows(NamedTuple):
    """Messages of one topic about the same things.

    names     of joints; of FluidPressure its frame; of arrays the labels of their dimensions
    places    (n,) where they stand in their packet: several may have been received at the same time
    received  (n,) ns
    stamps    (n,) ns as in their headers, None where they have none
    values    field -> (n, m); fields that were empty are left out
    """

    names: tuple
    places: np.ndarray
    received: np.ndarray
    stamps: np.ndarray
    values: dict


class Malformed(ValueError):
    """A message that contradicts itself."""


@cache
def type_store():
    """The types of messages of ROS 2 jazzy."""
    from rosbags.typesys import Stores, get_typestore

    return get_typestore(Stores.ROS2_JAZZY)


def readable(channel):
    """Why messages of a `mcap_recovery.Channel` cannot be decoded: '' where they can.

    Their definition in the bag, where it is there, must be that of ROS, by its hash.
    """
    if channel.dialect == UNREADABLE:
        return 'it is not serialised as CDR'
    if channel.msgtype not in FIELDS:
        return f'its type is none of {", ".join(FIELDS)}'
    if channel.schema.strip():
        try:
            fits = _schema_hash(channel.msgtype, channel.schema, channel.dialect) == type_store().hash_rihs01(
                channel.msgtype)
        # the parser of rosbags fails in as many ways as there are
        except Exception as error:
            return f'the definition of its messages in the bag cannot be read ({type(error).__name__})'
        if not fits:
            return f'the definition of its messages in the bag is not that of {channel.msgtype}'
    return ''


@cache
def _schema_hash(msgtype, text, dialect):
    from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_idl(text) if dialect == 'ros2idl' else get_types_from_msg(text, msgtype))
    return store.hash_rihs01(msgtype)


class _Layout:
    """Where the numbers of messages like one stand.

    names   as in `Rows`
    stamp   byte of the stamp, None where there is none
    places  field -> (byte, how many float64)
    """

    def __init__(self, raw, message, msgtype):
        self.names = _names(message, msgtype)
        check_lengths(message, msgtype, self.names)
        self._size, self._first = len(raw), np.frombuffer(raw, dtype=np.uint8)
        fixed = np.ones(self._size, dtype=bool)
        self.stamp, self.places = None, {}
        if hasattr(message, 'header'):
            self.stamp, _ = _differs(raw, message, STAMP)
            fixed[self.stamp:self.stamp + 8] = False
        for field, path in FIELDS[msgtype].items():
            count = np.size(_at(message, path))
            if count:
                place, size = _differs(raw, message, path)
                if size != 8 * count:
                    raise Malformed(f'{field} does not stand in one piece')
                self.places[field] = place, count
                fixed[place:place + size] = False
        # runs of bytes that must be equal
        edges = np.flatnonzero(np.diff(np.concatenate(([False], fixed, [False]))))
        self._runs = [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]

    def fits(self, matrix):
        """(n,) whether messages, the rows of a matrix of bytes, have this layout."""
        good = np.ones(len(matrix), dtype=bool)
        for first, last in self._runs:
            good &= (matrix[:, first:last] == self._first[first:last]).all(axis=1)
        return good

    def read(self, matrix, places, received):
        """The `Rows` of messages of this layout."""
        stamps = None
        if self.stamp is not None:
            time = np.ascontiguousarray(matrix[:, self.stamp:self.stamp + 8]).view('<u4').astype(np.int64)
            # seconds are signed
            stamps = np.where(time[:, 0] >= 1 << 31, time[:, 0] - (1 << 32), time[:, 0]) * SECOND + time[:, 1]
        values = {field: _meant(np.ascontiguousarray(matrix[:, place:place + 8 * count]).view('<f8'))
                  for field, (place, count) in self.places.items()}
        return Rows(self.names, places, received, stamps, values)


def _meant(values):
    wild = ~(np.abs(values) <= MOST)
    if wild.any():
        values = np.where(wild, np.nan, values)
    return values


def _names(message, msgtype):
    if msgtype == JOINT_STATE:
        names = tuple(message.name)
    elif msgtype == TRAJECTORY:
        names = tuple(message.joint_names)
    elif msgtype == PRESSURE:
        return (message.header.frame_id,)
    else:
        return tuple(dim.label for dim in message.layout.dim)
    if len(names) > MAX_NAMES or len(set(names)) != len(names):
        raise Malformed('a joint is named twice, or there are too many')
    return names


def check_lengths(message, msgtype, names):
    """Raise Malformed where arrays do not fit the names of a message."""
    if msgtype == TRAJECTORY and len(message.points) != 1:
        raise Malformed('expected one point')
    if msgtype in (JOINT_STATE, TRAJECTORY):
        for field, path in FIELDS[msgtype].items():
            if np.size(_at(message, path)) not in (0, len(names)):
                raise Malformed(f'{field} has {np.size(_at(message, path))} entries for {len(names)} joints')


def _at(message, path):
    for step in path:
        message = message[step] if isinstance(step, int) else getattr(message, step)
    return message


def _differs(raw, message, path):
    """(first byte, how many) of the bytes that change with what stands at a path, all of them at once."""
    changed = np.frombuffer(bytes(type_store().serialize_cdr(_turned(message, path), message.__msgtype__)), np.uint8)
    places = np.flatnonzero(changed != np.frombuffer(raw, dtype=np.uint8)[:len(changed)])
    if len(places) != places[-1] - places[0] + 1:
        raise Malformed('numbers that do not stand in one piece')
    return int(places[0]), len(places)


def _turned(value, path=()):
    """A copy of a message in which every bit at a path is turned."""
    if path:
        step, rest = path[0], path[1:]
        if isinstance(step, int):
            return [_turned(one, rest) if k == step else one for k, one in enumerate(value)]
        return _changed(value, **{step: _turned(getattr(value, step), rest)})
    if is_dataclass(value):
        return _changed(value, sec=~value.sec, nanosec=value.nanosec ^ 0xffffffff)
    if isinstance(value, np.ndarray):
        return (~value.view(np.uint8)).view(value.dtype)
    return float((~np.array([value]).view(np.uint8)).view(np.float64)[0])


def _changed(message, **changes):
    return type(message)(**{**{field.name: getattr(message, field.name) for field in fields(message)
                               if field.init}, **changes})


class Decoder:
    """Messages of one topic, of one of the types of FIELDS, into `Rows`.

    bad  messages that could not be decoded so far
    """

    def __init__(self, msgtype):
        self._msgtype, self._layouts, self.bad = msgtype, {}, 0

    def decode(self, packet):
        """Yield the `Rows` of a packet of this topic, in the order of the packet where the names do not change."""
        sizes = np.unique(packet.size)
        if len(sizes) == 1:
            yield from self._decode(packet, np.arange(len(packet)), int(sizes[0]))
            return
        for size in sizes.tolist():
            places = np.flatnonzero(packet.size == size)
            yield from self._decode(packet.rows(places), places, size)

    def _decode(self, packet, places, size):
        matrix = gather(packet.data, packet.start, size)
        rest = np.arange(len(packet))
        layouts = self._layouts.setdefault(size, []) if size in self._layouts or len(self._layouts) < 256 else []
        tried = 0
        while len(rest):
            if tried == len(layouts):
                rows = self._first(matrix[rest[0]].tobytes(), places[rest[0]], int(packet.received[rest[0]]), layouts)
                if rows is not None:
                    yield rows
                if tried == len(layouts):       # it made no layout: read alone, or bad
                    rest = rest[1:]
                    continue
                rest = rest[1:]
            layout = layouts[tried]
            tried += 1
            fits = layout.fits(matrix[rest])
            if fits.any():
                chosen = rest[fits]
                yield layout.read(matrix[chosen] if len(chosen) < len(matrix) else matrix, places[chosen],
                                  packet.received[chosen])
                rest = rest[~fits]

    def _first(self, raw, place, received, layouts):
        """The `Rows` of one message that fits no layout, of which one is made; None where it is bad."""
        try:
            message = type_store().deserialize_cdr(raw, self._msgtype)
            rows = alone(message, self._msgtype, place, received)
        # rosbags fails in as many ways as bytes can be wrong
        except Exception:
            self.bad += 1
            return None
        if raw[:2] == LITTLE_ENDIAN and sum(map(len, self._layouts.values())) < MAX_LAYOUTS:
            try:
                again = bytes(type_store().serialize_cdr(message, self._msgtype))
                if raw.startswith(again):
                    layouts.append(_Layout(raw, message, self._msgtype))
            except Exception:       # read alone then
                pass
        return rows


def alone(message, msgtype, place, received):
    """The `Rows` of one message; Malformed."""
    names = _names(message, msgtype)
    check_lengths(message, msgtype, names)
    values = {field: _meant(np.array(_at(message, path), dtype=np.float64).reshape(1, -1))
              for field, path in FIELDS[msgtype].items() if np.size(_at(message, path))}
    stamp = getattr(message, 'header', None)
    stamps = None if stamp is None else np.array([stamp.stamp.sec * SECOND + stamp.stamp.nanosec], dtype=np.int64)
    return Rows(names, np.array([place]), np.array([received], dtype=np.int64), stamps, values)
