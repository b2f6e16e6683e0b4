"""Between ROS messages and arrays, both ways.

Readers take a message whole or raise `MessageError`; nothing of a rejected message is ever used. Joints are
matched by name: a reordered message is read like any other, names that the machine does not have are passed
over. Writers fill one message again and again through views made once: a new message costs more than filling
an old one.
"""

import array
import math
from collections import Counter

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from ...control.reference.trajectory import Waypoints
from ...model.errors import PsdynError
from ...model.units import SECOND

REMEMBERED = 8              # orders of names that a reader keeps ready
MAX_MESSAGE_BYTES = 256 * 1024


class MessageError(PsdynError):
    """A message that cannot be used; it is rejected whole."""


class OversizeError(MessageError):
    """A message with more bytes than are read."""


class RepeatedNameError(MessageError):
    """A message that names something more than once."""


def read_message(data, kind, limit=MAX_MESSAGE_BYTES):
    """Return the message of this type in the bytes of a raw subscription.

    A typed subscription would make Python objects of a message of any size. Raises OversizeError beyond `limit` bytes,
    MessageError where the bytes are no such message.
    """
    if len(data) > limit:
        raise OversizeError(f'a message of {len(data)} bytes, at most {limit} are read')
    try:
        return deserialize_message(data, kind)
    except Exception as error:          # rclpy has no name for what it cannot read
        raise MessageError(f'the message cannot be read: {error}') from None


def stamp_to_ns(stamp):
    """Nanoseconds of a builtin_interfaces/Time or Duration."""
    return stamp.sec * SECOND + stamp.nanosec


def ns_to_stamp(ns, stamp):
    """Set a builtin_interfaces/Time or Duration to nanoseconds."""
    stamp.sec, stamp.nanosec = divmod(ns, SECOND)


class NameMaps:
    """What to do with a list of names, made once for each order of names that comes in.

    make    function of the tuple of names; it may raise
    """

    def __init__(self, make):
        self._make = make
        self._ready = {}
        self._last = None, None

    def __getitem__(self, names):
        last, made = self._last
        if names == last:
            return made
        key = tuple(names)
        made = self._ready.get(key)
        if made is None:
            twice = [name for name, count in Counter(key).items() if count > 1]
            if twice:
                raise RepeatedNameError(f'{", ".join(twice)} named more than once')
            made = self._make(key)
            if len(self._ready) == REMEMBERED:
                self._ready.clear()
            self._ready[key] = made
        self._last = names, made
        return made


class StateReader:
    """JointState to the state of the coordinates, from whatever sufficient set of joints the message measures.

    manipulator  the machine
    tolerance    m or rad: how far redundant measurements may contradict each other
    on_extra     called with the names that the machine does not have, once for each order of names
    passive      names of passive joints, which the machine does not have, and which may be in the message

    `passive` (2, passive) are positions and rates of these at the last message, NaN where it has none.
    `residual` [m or rad] is the largest contradiction of redundant measurements in the last message; `positions` (m,)
    are those of its `joints` that the machine has, where they are more than needed, else None.
    """

    def __init__(self, manipulator, tolerance, on_extra, passive=()):
        self.residual = 0.0
        self._passive, self.passive = passive, np.full((2, len(passive)), np.nan)
        self.joints, self.positions = (), None
        self._manipulator, self._tolerance, self._on_extra = manipulator, tolerance, on_extra
        self._maps = NameMaps(self._map)

    def read(self, msg):
        """(x, xd), each (dof,), in m and rad, m/s and rad/s."""
        names, position, velocity = msg.name, msg.position, msg.velocity
        columns, bound, free = self._maps[names]
        if not len(position) == len(velocity) == len(names) or len(msg.effort) not in (0, len(names)):
            check_lengths(msg, ('position', 'velocity'))        # raises, and says which
        measured = bound.measured
        for row, values in zip(measured, (position, velocity)):
            np.frombuffer(values).take(columns, out=row, mode='clip')       # quicker than an index; columns are valid
        if self._passive:
            rows, free = free
            self.passive = np.full((2, len(self._passive)), np.nan)
            self.passive[0, rows], self.passive[1, rows] = np.frombuffer(position)[free], np.frombuffer(velocity)[free]
        self.joints = bound.names
        self.positions = measured[0].copy() if len(columns) > self._manipulator.dof else None
        x, xd, self.residual = bound.state()
        if not self.residual <= self._tolerance:
            raise MessageError(f'the joints contradict each other by {self.residual:.3g}, '
                               f'at most {self._tolerance:g} allowed')
        return x, xd

    def _map(self, names):
        """(columns of the message that have joints of the machine, `BoundMap` of these joints, (rows, columns) of the
        passive joints in it)."""
        joints = self._manipulator.joints
        # coordinates first: what is measured of them needs no detour through other joints of their loop
        known = tuple(dict.fromkeys(name for name in (*self._manipulator.coordinates, *joints) if name in names))
        extra = [name for name in names if name not in known and name not in self._passive]
        free = [(row, names.index(name)) for row, name in enumerate(self._passive) if name in names]
        bound = self._manipulator.joint_map(known).bind()
        if extra:
            self._on_extra(extra)
        columns = np.array([names.index(name) for name in known], dtype=np.intp)
        return columns, bound, tuple(np.array(free, dtype=np.intp).reshape(-1, 2).T)


def trajectory_from_msg(msg):
    """(Waypoints, start) of a JointTrajectory; start in ns, None where the stamp is zero and means now."""
    count = len(msg.joint_names)
    rows = {'positions': [], 'velocities': [], 'accelerations': []}
    for i, point in enumerate(msg.points):
        for field, values in rows.items():
            row = getattr(point, field)
            if len(row) not in (0, count):
                raise MessageError(f'point {i} has {len(row)} {field} for {count} joints')
            if len(row):
                values.append(row)
        if len(point.effort) not in (0, count):
            raise MessageError(f'point {i} has {len(point.effort)} efforts for {count} joints')
        if not len(point.positions):
            raise MessageError(f'point {i} has no positions')
    for field, values in rows.items():
        if values and len(values) < len(msg.points):
            raise MessageError(f'some points have {field} and some have none')
    times = [stamp_to_ns(point.time_from_start) / SECOND for point in msg.points]
    start = stamp_to_ns(msg.header.stamp) or None
    return Waypoints(tuple(msg.joint_names), times, rows['positions'], rows['velocities'] or None,
                     rows['accelerations'] or None), start


def trajectory_to_msg(waypoints):
    """A JointTrajectory that starts when it is received."""
    msg = JointTrajectory(joint_names=list(waypoints.joints))
    for k, seconds in enumerate(waypoints.times):
        point = JointTrajectoryPoint(positions=waypoints.positions[k].tolist())
        if waypoints.velocities is not None:
            point.velocities = waypoints.velocities[k].tolist()
        if waypoints.accelerations is not None:
            point.accelerations = waypoints.accelerations[k].tolist()
        ns_to_stamp(round(seconds * SECOND), point.time_from_start)
        msg.points.append(point)
    return msg


def payload_from_msg(msg):
    """(link, mass, com (3,), inertia (3, 3)) of an InertiaStamped: on the link `frame_id`, about the com."""
    if not msg.header.frame_id:
        raise MessageError('frame_id is empty; expected the link that carries the payload')
    i = msg.inertia
    inertia = np.array([[i.ixx, i.ixy, i.ixz], [i.ixy, i.iyy, i.iyz], [i.ixz, i.iyz, i.izz]])
    return msg.header.frame_id, i.m, np.array([i.com.x, i.com.y, i.com.z]), inertia


class JointStateWriter:
    """A JointState of n joints, refilled: `position`, `velocity`, `effort` are (n,) views of `message`."""

    def __init__(self, names, fields=('position', 'velocity', 'effort')):
        self.message = JointState(name=list(names))
        self._stamp = self.message.header.stamp
        for field in fields:
            setattr(self, field, view(self.message, field, len(names)))

    def stamp(self, ns):
        """The message with this stamp."""
        ns_to_stamp(ns, self._stamp)
        return self.message


class LabelledArrayWriter:
    """A Float64MultiArray, refilled through `values`: one row for each name of `rows`, or just one of the `columns`."""

    def __init__(self, rows, columns=()):
        self.message = Float64MultiArray()
        shape = (len(rows), len(columns)) if columns else (len(rows),)
        for names, size, stride in zip((rows, columns), shape, np.cumprod(shape[::-1])[::-1], strict=False):
            self.message.layout.dim.append(MultiArrayDimension(label=','.join(names), size=size, stride=int(stride)))
        self.values = view(self.message, 'data', math.prod(shape)).reshape(shape)


class ReferenceWriter:
    """A JointTrajectory of one point, refilled: the reference of the coordinates at the time of its stamp."""

    def __init__(self, coordinates):
        count, point = len(coordinates), JointTrajectoryPoint()
        self.position = view(point, 'positions', count)
        self.velocity = view(point, 'velocities', count)
        self.acceleration = view(point, 'accelerations', count)
        self.message = JointTrajectory(joint_names=list(coordinates), points=[point])

    def fill(self, ns, position, velocity, acceleration):
        """The message with this stamp and reference."""
        self.position[:], self.velocity[:], self.acceleration[:] = position, velocity, acceleration
        ns_to_stamp(ns, self.message.header.stamp)
        return self.message


def diagnostics_msg(stamp, name, level, summary, values):
    """A DiagnosticArray of one status, arguments as of `diagnostic_status`."""
    return diagnostics_of(stamp, [diagnostic_status(name, level, summary, values)])


def diagnostics_of(stamp, statuses):
    """A DiagnosticArray of these statuses; stamp in ns."""
    msg = DiagnosticArray(status=statuses)
    ns_to_stamp(stamp, msg.header.stamp)
    return msg


def diagnostic_status(name, level, summary, values):
    """A DiagnosticStatus; values is a dictionary, level a key of `LEVELS`."""
    status = DiagnosticStatus(level=LEVELS[level], name=name, message=summary, hardware_id='')
    status.values = [KeyValue(key=key, value=f'{value:.6g}' if isinstance(value, float) else str(value))
                     for key, value in values.items()]
    return status


LEVELS = {'ok': DiagnosticStatus.OK, 'warn': DiagnosticStatus.WARN, 'error': DiagnosticStatus.ERROR,
          'stale': DiagnosticStatus.STALE}


def view(message, field, count):
    """Zeros (count,) that are the array field of the message; the field must never be set again."""
    setattr(message, field, array.array('d', bytes(8 * count)))
    return np.frombuffer(getattr(message, field))


def check_lengths(msg, needed):
    """Raise MessageError where a needed field of a JointState, or another that is not empty, does not fit its names."""
    count = len(msg.name)
    for field in ('position', 'velocity', 'effort'):
        length = len(getattr(msg, field))
        if length != count and (length or field in needed):
            raise MessageError(f'{field} has {length} entries for {count} names')
