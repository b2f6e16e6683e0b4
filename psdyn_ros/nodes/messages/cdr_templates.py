"""Messages of which only numbers change, written and read as the bytes that travel.

To make Python objects of the bytes of a message, or the other way round, takes rclpy longer than a controller computes.
A writer knows where in the bytes of its message the numbers are, and writes there; a reader takes the numbers out of
messages that are, but for them, like the last one that rclpy read for it. What does not fit goes the usual way.

Layout (CDR): 4 bytes of encapsulation, from behind which alignment counts; then the fields in order, numbers in the
order of bytes of this computer. What fills gaps may be anything.
"""

import struct
import sys

import numpy as np
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from .conversions import SECOND, MessageError, ns_to_stamp, stamp_to_ns

OURS = b'\x00\x01' if sys.byteorder == 'little' else b'\x00\x00'        # encapsulation: plain CDR
HEAD = 4                # bytes of encapsulation
LARGEST = 256 * 1024    # bytes of a message that is read
MARK = 1_234_567_891    # s, and half as many ns, of a stamp by which its place is found

_count = struct.Struct('=I').unpack_from
_time = struct.Struct('=iI')


def exact_bytes(message):
    """The message as it travels: what rclpy serialises it to has some more bytes, with anything in them.

    Published as they are they would get into recordings, where other readers refuse them.
    """
    data, text = serialize_message(message), repr(message)
    end = len(data)
    while _says(data[:end - 1], type(message), text):
        end -= 1
    return data[:end]


def _says(data, kind, text):
    try:
        return repr(deserialize_message(data, kind)) == text
    except Exception:       # what rclpy raises for too few bytes has no public name
        return False


class BytesWriter:
    """The bytes of a message, refilled, to be published as they are.

    message  whose other fields stay as they are
    fields   views (n, ...) of its arrays, n > 0, see `conversions.view`
    stamp    its stamp, None where it has none

    `values` are the same arrays within the bytes; None where they were not found, as in a format of another middleware.
    """

    def __init__(self, message, fields, stamp=None):
        before = [field.copy() for field in fields]
        first = 1
        for field in fields:
            field.flat[:] = 1.2345e-67 * np.arange(first, first + field.size)
            first += field.size
        patterns = [field.tobytes() for field in fields]
        if stamp is not None:
            ns_to_stamp(MARK * SECOND + MARK // 2, stamp)
            patterns.append(_time.pack(MARK, MARK // 2))
        self._buffer = bytearray(exact_bytes(message))
        for field, values in zip(fields, before):
            field[:] = values
        places = [self._buffer.find(pattern) for pattern in patterns]
        self._place = places[-1]        # of the stamp
        self.values = None
        if min(places) >= HEAD:
            self.values = [np.frombuffer(self._buffer, np.float64, field.size, place).reshape(field.shape)
                           for field, place in zip(fields, places)]
            for field, values in zip(self.values, before):
                field[:] = values

    def stamp(self, ns):
        """The bytes with this stamp."""
        seconds, ns = divmod(ns, SECOND)
        _time.pack_into(self._buffer, self._place, seconds, ns)
        return bytes(self._buffer)

    def bytes(self):
        """The bytes of a message without a stamp."""
        return bytes(self._buffer)


class JointStateBytes:
    """Reads the bytes of a JointState: `name`, `position`, `velocity`, `effort`, and `stamp` in ns."""

    kind = JointState

    def __init__(self):
        self._layout = None
        self.name, self.stamp = [], 0
        self.position = self.velocity = self.effort = ()

    def read(self, data):
        """Take what the bytes say, valid until the next call; MessageError where they are no such message."""
        layout = self._layout
        if layout is not None and layout.take(data):
            self.stamp = _stamp(data)
            return
        message, self._layout = _usual(data, self.kind), None
        self.name, self.stamp = message.name, stamp_to_ns(message.header.stamp)
        self.position, self.velocity, self.effort = message.position, message.velocity, message.effort
        layout = _Layout(data)
        with layout:
            layout.head()
            fields = [layout.doubles() for _ in range(3)]
        if layout.fits and all(map(_same, fields, (message.position, message.velocity, message.effort))):
            self._layout = layout
            self.position, self.velocity, self.effort = fields


class ArrayBytes:
    """Reads the bytes of a Float64MultiArray: `labels` of its dimensions, and `data`."""

    kind = Float64MultiArray

    def __init__(self):
        self._layout = None
        self.labels, self.data = (), ()

    def read(self, data):
        """Take what the bytes say, valid until the next call; MessageError where they are no such message."""
        layout = self._layout
        if layout is not None and layout.take(data):
            return
        message, self._layout = _usual(data, self.kind), None
        self.labels, self.data = tuple(dim.label for dim in message.layout.dim), message.data
        layout = _Layout(data)
        with layout:
            for _ in range(layout.number()):
                layout.text()
                layout.number()         # size
                layout.number()         # stride
            layout.number()             # offset
            values = layout.doubles()
        if layout.fits and _same(values, message.data):
            self._layout, self.data = layout, values


class PointBytes:
    """Reads the bytes of a JointTrajectory of one point: `names`, `rows`, and `stamp` in ns.

    `rows` are its positions, velocities and accelerations, each of any length; None where there is not one `point`.
    """

    kind = JointTrajectory

    def __init__(self):
        self._layout = None
        self.names, self.stamp, self.points, self.rows = [], 0, 0, None

    def read(self, data):
        """Take what the bytes say, valid until the next call; MessageError where they are no such message."""
        layout = self._layout
        if layout is not None and layout.take(data):
            self.stamp = _stamp(data)
            return
        message, self._layout = _usual(data, self.kind), None
        self.names, self.stamp = message.joint_names, stamp_to_ns(message.header.stamp)
        self.points, self.rows = len(message.points), None
        if self.points != 1:
            return
        point, = message.points
        self.rows = point.positions, point.velocities, point.accelerations
        layout = _Layout(data)
        with layout:
            layout.head()
            layout.number()     # points
            fields = [layout.doubles() for _ in range(4)][:3]
            layout.time()       # from the start
        if layout.fits and all(map(_same, fields, self.rows)):
            self._layout, self.rows = layout, fields


def _stamp(data):
    """ns, of a message that begins with a header."""
    seconds, ns = _time.unpack_from(data, HEAD)
    return seconds * SECOND + ns


def _usual(data, kind):
    """The message, by way of rclpy."""
    if len(data) > LARGEST:
        raise MessageError(f'{len(data)} bytes, at most {LARGEST} are read')
    try:
        return deserialize_message(data, kind)
    except Exception as error:          # rclpy has no name for what it cannot read
        raise MessageError(f'the message cannot be read: {error}') from None


def _same(values, expected):
    return values.tobytes() == expected.tobytes()


class _Layout:
    """Where the numbers of a message are: to be told field by field, in order, within a `with`.

    `fits` says whether that came out right.
    """

    def __init__(self, data):
        self._data, self._place = data, HEAD
        self._fixed = bytearray(len(data))              # 255 where bytes have to be what they are
        self._room = bytearray(HEAD + len(data))        # what is aligned in the message is aligned in here
        self._copy = memoryview(self._room)[HEAD:]
        self.fits = False

    def __enter__(self):
        self._fixed[:HEAD] = b'\xff' * HEAD

    def __exit__(self, kind, error, traceback):
        data = self._data
        self._mask = int.from_bytes(self._fixed, 'little')
        self._expected = int.from_bytes(data, 'little') & self._mask
        self._copy[:] = data
        self.fits = kind is None and data[:2] == OURS and self._place <= len(data)
        return isinstance(error, (struct.error, ValueError))        # laid out otherwise

    def take(self, data):
        """Whether these are the bytes of such a message; then what `doubles` gave are its numbers."""
        if len(data) != len(self._copy) or int.from_bytes(data, 'little') & self._mask != self._expected:
            return False
        self._copy[:] = data
        return True

    def head(self):
        """A header, whose stamp may be any, and a list of names."""
        self.time()
        self.text()         # the frame
        for _ in range(self.number()):
            self.text()

    def number(self):
        place = self._aligned(4)
        self._fix(place, 4)
        return _count(self._data, place)[0]

    def text(self):
        size = self.number()
        self._fix(self._place, size)

    def doubles(self):
        """(n,) array in which the numbers are, whatever they are."""
        count = self.number()
        if not count:
            return np.empty(0)
        place = self._aligned(8)
        self._place = place + 8 * count
        return np.frombuffer(self._room, np.float64, count, HEAD + place)

    def time(self):
        """A time or duration that may be any."""
        self._place = self._aligned(4) + _time.size

    def _aligned(self, size):
        return HEAD + -(-(self._place - HEAD) // size) * size

    def _fix(self, place, size):
        self._place = place + size
        if self._place > len(self._data):
            raise ValueError('beyond the end')
        self._fixed[place:place + size] = b'\xff' * size
