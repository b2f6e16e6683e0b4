"""A JointTrajectory out of its serialised message, in slices: rclpy would take a tenth of a second for 1000 points.

Layout (CDR, little endian): 4 bytes of encapsulation; stamp, frame, joint names; points, each four sequences of
doubles, aligned at 8 bytes where they are not empty, and its time.
"""

import struct
import time

import numpy as np

from ...control.reference.trajectory import MAX_WAYPOINTS, Waypoints
from ...model.units import SECOND
from ..messages.conversions import MessageError, OversizeError

LITTLE_ENDIAN = b'\x00\x01'
MAX_BYTES = 8 * 1024 * 1024
MAX_NAMES = 1000
LONGEST_NAME = 1000     # bytes, of the frame too
FIELDS = ('positions', 'velocities', 'accelerations', 'effort')
HEAD = 4                # bytes of encapsulation, from where alignment counts
AT_ONCE = 8             # points between two looks at the clock

_count = struct.Struct('<I').unpack_from
_time = struct.Struct('<iI').unpack_from


class SerializedTrajectory:
    """Reads a message point by point; MessageError where it is none, or no trajectory.

    data  of the message, as a raw subscription has it

    When `advance` has said that it is done, `waypoints` and `start` (ns, None where the stamp is zero and means now)
    are there.
    """

    def __init__(self, data):
        data = bytes(data)
        if len(data) > MAX_BYTES:
            raise OversizeError(f'{len(data)} bytes, at most {MAX_BYTES} are read')
        if data[:2] != LITTLE_ENDIAN:
            raise MessageError(f'encapsulation {data[:2].hex()}: expected little-endian CDR')
        self._data = memoryview(data)[HEAD:]
        self.waypoints = self.start = None
        try:
            self._read_head()
        except (struct.error, UnicodeDecodeError) as error:
            raise MessageError(f'the message cannot be read: {error}') from None
        self._point = 0

    def _read_head(self):
        seconds, nanoseconds = _time(self._data)
        self.start = (seconds * SECOND + nanoseconds) or None
        self._place = 8
        self._text()        # the frame
        count = self._number()
        if count > MAX_NAMES:
            raise OversizeError(f'{count} joint names, at most {MAX_NAMES} are read')
        self._names = tuple(self._text() for _ in range(count))
        self._points = self._number()
        if self._points > MAX_WAYPOINTS:
            raise OversizeError(f'the trajectory has {self._points} points, at most {MAX_WAYPOINTS} are taken')
        if not 0 < count <= MAX_NAMES or not self._points:
            self._columns = {}
            return
        self._doubles = struct.Struct(f'<{count}d').unpack_from
        self._times = np.empty(self._points)
        self._columns = {field: np.empty((self._points, count)) for field in FIELDS[:3]}

    def _number(self):
        place = (self._place + 3) & ~3
        self._place = place + 4
        return _count(self._data, place)[0]

    def _text(self):
        length = self._number()
        if length > LONGEST_NAME:
            raise OversizeError(f'a name of {length} bytes, at most {LONGEST_NAME} are read')
        text = bytes(self._data[self._place:self._place + length])
        if len(text) != length:
            raise struct.error('it ends within a name')
        self._place += length
        return text.rstrip(b'\0').decode()

    def advance(self, seconds):
        """Read on for so many seconds, and a few points; whether all is read."""
        deadline = time.perf_counter() + seconds
        while self._point < self._points and self._columns:
            try:
                for _ in range(min(AT_ONCE, self._points - self._point)):
                    self._read_point()
            except struct.error as error:
                raise MessageError(f'point {self._point} cannot be read: {error}') from None
            if time.perf_counter() > deadline and self._point < self._points:
                return False
        self._finish()
        return True

    def _read_point(self):
        i, count = self._point, len(self._names)
        for field in FIELDS:
            length = self._number()
            if length == count:
                place = (self._place + 7) & ~7
                row = self._doubles(self._data, place)
                self._place = place + 8 * count
                if field in self._columns:
                    self._columns[field][i] = row
                elif field != 'effort':
                    raise MessageError(f'some points have {field} and some have none')
            elif length:
                what = field if field != 'effort' else 'efforts'
                raise MessageError(f'point {i} has {length} {what} for {count} joints')
            elif field == 'positions':
                raise MessageError(f'point {i} has no positions')
            elif i == 0:
                self._columns.pop(field, None)
            elif field in self._columns:
                raise MessageError(f'some points have {field} and some have none')
        place = (self._place + 3) & ~3
        whole, part = _time(self._data, place)
        self._times[i] = whole + part / SECOND
        self._place = place + 8
        self._point += 1

    def _finish(self):
        if not self._columns:
            self.waypoints = Waypoints(self._names, np.empty(0), np.empty((0, len(self._names))))    # raises
            return
        columns = self._columns
        self.waypoints = Waypoints(self._names, self._times, columns['positions'], columns.get('velocities'),
                                   columns.get('accelerations'))
