"""Write bags many messages at a time: messages of one topic have the same layout, only their numbers differ.

A message is serialised once with numbers that no other bytes look like; the numbers of each further message go where
these were found, so the messages of many instants are the rows of one array of bytes.
"""

import shutil
from pathlib import Path

import numpy as np

from ...model.units import SECOND
from .bulk_decoder import type_store
from .files import METADATA
from .recording import open_writer

ENCAPSULATION = 4           # bytes before the first field of a serialised message
STEM = 'recording'


class Template:
    """Serialises messages of one topic.

    make     function of arrays of float64 that returns the message, of the types of `type_store`
    sizes    of the arrays
    stamped  whether the message begins with a header, whose stamp is the time of the message
    """

    def __init__(self, make, sizes, stamped=True):
        marks = [np.full(size, 1.0 + np.pi * 1e100 * (k + 1)) for k, size in enumerate(sizes)]
        message = make(*marks)
        self.msgtype, self._stamped = message.__msgtype__, stamped
        data = bytes(type_store().serialize_cdr(message, self.msgtype))
        self._places = [data.index(mark.tobytes()) if mark.size else 0 for mark in marks]
        self._data = np.frombuffer(data, dtype=np.uint8)

    def rows(self, ns, arrays):
        """Return serialised messages (n, bytes) at (n,) ns, with arrays (n, size) each."""
        out = np.tile(self._data, (len(ns), 1))
        if self._stamped:
            stamp = np.column_stack((ns // SECOND, ns % SECOND)).astype('<u4')
            out[:, ENCAPSULATION:ENCAPSULATION + 8] = stamp.view(np.uint8)
        for first, array in zip(self._places, arrays, strict=True):
            array = np.ascontiguousarray(array, dtype='<f8')
            out[:, first:first + 8 * array.shape[1]] = array.view(np.uint8)
        return out


class RowBag:
    """Writes an MCAP bag into the folder `path`, in place of the last one there; to be used in a `with` statement.

    topics    {topic: `Template`}
    compress  whether chunks are compressed
    count     messages so far

    A bag whose `with` statement ends with an exception is removed.
    """

    def __init__(self, path, topics, compress=True):
        self.path, self.count = Path(path), 0
        self._topics, self._compress = dict(topics), compress

    def __enter__(self):
        for name in (METADATA, f'{STEM}.mcap'):
            (self.path / name).unlink(missing_ok=True)
        # rosbags writes new folders only
        self._folder = self.path / STEM
        self._writer = open_writer(self._folder, self._compress)
        self._writer.open()
        self._connections = {topic: self._writer.add_connection(topic, template.msgtype, typestore=type_store())
                             for topic, template in self._topics.items()}
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self._writer.close()
                for file in self._folder.iterdir():
                    file.replace(self.path / file.name)
            else:
                self._writer.abort()
        finally:
            shutil.rmtree(self._folder)

    def write(self, ns, values):
        """Write messages of all topics at (n,) ns, later than all before: {topic: arrays (n, size)}."""
        ns = np.asarray(ns, dtype=np.int64)
        topics = [(self._connections[topic], template.rows(ns, values[topic]))
                  for topic, template in self._topics.items()]
        for k, now in enumerate(ns.tolist()):
            for connection, rows in topics:
                self._writer.write(connection, now, rows[k].tobytes())
        self.count += len(ns) * len(topics)


def joint_states(names):
    """Return a `Template` of sensor_msgs/msg/JointState with position, velocity and effort of joints."""
    types = type_store().types

    def make(position, velocity, effort):
        return types['sensor_msgs/msg/JointState'](header=_header(types), name=list(names), position=position,
                                                   velocity=velocity, effort=effort)
    return Template(make, (len(names),) * 3)


def accelerations(names):
    """Return a `Template` of trajectory_msgs/msg/JointTrajectory of one point with accelerations."""
    nothing = np.zeros(0)
    return Template(lambda acceleration: _trajectory(names, nothing, nothing, acceleration, nothing), (len(names),))


def trajectory_points(names):
    """Return a `Template` of trajectory_msgs/msg/JointTrajectory of one point with all four fields."""
    return Template(lambda *fields: _trajectory(names, *fields), (len(names),) * 4)


def labelled_array(rows, columns):
    """Return a `Template` of std_msgs/msg/Float64MultiArray of things x quantities, with their labels."""
    types, count = type_store().types, len(rows) * len(columns)
    dimension = types['std_msgs/msg/MultiArrayDimension']

    def make(data):
        layout = types['std_msgs/msg/MultiArrayLayout'](data_offset=0, dim=[
            dimension(label=','.join(rows), size=len(rows), stride=count),
            dimension(label=','.join(columns), size=len(columns), stride=len(columns))])
        return types['std_msgs/msg/Float64MultiArray'](layout=layout, data=data)
    return Template(make, (count,), stamped=False)


def fluid_pressure():
    """Return a `Template` of sensor_msgs/msg/FluidPressure, whose array has one number."""
    types = type_store().types
    return Template(lambda value: types['sensor_msgs/msg/FluidPressure'](
        header=_header(types), fluid_pressure=float(value[0]), variance=0.0), (1,))


def _trajectory(names, positions, velocities, accelerations, effort):
    types = type_store().types
    point = types['trajectory_msgs/msg/JointTrajectoryPoint'](
        positions=positions, velocities=velocities, accelerations=accelerations, effort=effort,
        time_from_start=types['builtin_interfaces/msg/Duration'](sec=0, nanosec=0))
    return types['trajectory_msgs/msg/JointTrajectory'](header=_header(types), joint_names=list(names), points=[point])


def _header(types):
    return types['std_msgs/msg/Header'](stamp=types['builtin_interfaces/msg/Time'](sec=0, nanosec=0), frame_id='')
