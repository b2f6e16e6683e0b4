"""Recordings of a machine under control: written and read as bags, in memory as arrays."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...model.errors import ModelError, PsdynError, did_you_mean
from ...model.units import SECOND


class BagError(PsdynError):
    """A recording that cannot be read, or lacks what is needed."""


@dataclass(frozen=True)
class Series:
    """N messages about n joints.

    names   n joint names
    stamps  (N,) ns, as in the headers of the messages
    values  field of the message -> (N, n); fields that were empty are left out
    """

    names: tuple
    stamps: np.ndarray
    values: dict

    def __getitem__(self, field):
        return self.values[field]

    def columns(self, names):
        """This series with the joints in this order."""
        absent = [name for name in names if name not in self.names]
        if absent:
            raise BagError(f"no joint '{absent[0]}' in the recording{did_you_mean(absent[0], self.names)}")
        order = [self.names.index(name) for name in names]
        return Series(tuple(names), self.stamps, {field: rows[:, order] for field, rows in self.values.items()})


@dataclass(frozen=True)
class Recording:
    """What one run left behind.

    states      position, velocity, effort of the joints
    commands    effort of the actuators; on valves also position, which is that of the spool, NaN where there is none
    reference   position, velocity, acceleration of the actuators
    statistics  the last statistics of the controller, by label; empty where there are none
    telemetry   of cylinders, by the labels of `kernels/hydraulics/records.py`; None where there is none
    """

    states: Series
    commands: Series
    reference: Series
    statistics: dict
    telemetry: Series | None = None


@dataclass(frozen=True)
class FreeMotion:
    """What a machine without a controller left behind.

    states  position, velocity, effort of the joints
    base    (N, 13) of a floating base at the stamps of the states: position and quaternion x y z w in the root link,
            twist (v, w) in its axes; NaN where nothing was recorded at a stamp. None where the base stands
    """

    states: Series
    base: np.ndarray | None = None


@dataclass(frozen=True)
class Topics:
    """Where in a bag the parts of a `Recording` or `FreeMotion` are."""

    states: str = '/joint_states'
    commands: str = '/controller/joint_commands'
    reference: str = '/controller/reference'
    statistics: str = '/controller/statistics'
    telemetry: str = '/simulator/ground_truth/hydraulic_telemetry'
    base_pose: str = '/simulator/base_pose'
    base_twist: str = '/simulator/base_twist'


TOPICS = Topics()


def check_unused(output):
    """Raise ModelError where this path holds anything: nobody's recordings are overwritten."""
    if output.exists() and any(output.iterdir() if output.is_dir() else [output]):
        raise ModelError(f"output '{output}' exists and will not be overwritten; expected a new folder")


def write_bag(path, messages, types, compressed=False):
    """Write an MCAP bag into the new folder `path`.

    messages    (topic, ns when it was received, serialised message) in the order of the receipt
    types       topic -> message type, such as 'sensor_msgs/msg/JointState'
    compressed  whether its chunks are, by zstd
    """
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    with open_writer(path, compressed) as writer:
        connections = {topic: writer.add_connection(topic, kind, typestore=store) for topic, kind in types.items()}
        for topic, received, data in messages:
            writer.write(connections[topic], received, data)


def open_writer(path, compressed=False):
    """Return a `rosbags.rosbag2.Writer` of an MCAP bag in the new folder `path`, not open yet."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    writer = Writer(Path(path), version=9, storage_plugin=StoragePlugin.MCAP)
    if compressed:
        writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
    return writer


def read_bag(path, topics=TOPICS):
    """The `Recording` in a bag."""
    messages = read_messages(path, (topics.states, topics.commands, topics.reference, topics.statistics,
                                topics.telemetry))
    return Recording(
        states=joint_series(messages, topics.states),
        commands=joint_series(messages, topics.commands),
        reference=_joint_series(messages, topics.reference, 'joint_names', _from_trajectory),
        statistics=_last_statistics(messages[topics.statistics]),
        telemetry=telemetry_series(messages[topics.telemetry]))


def read_free_motion(path, floating, topics=TOPICS):
    """The `FreeMotion` in a bag, of a machine whose base floats or stands."""
    messages = read_messages(path, (topics.states, topics.base_pose, topics.base_twist))
    states = joint_series(messages, topics.states)
    if not floating:
        return FreeMotion(states)
    base = np.full((states.stamps.size, 13), np.nan)
    for topic, columns, values_of in ((topics.base_pose, slice(0, 7), _from_pose),
                                      (topics.base_twist, slice(7, 13), _from_twist)):
        if not messages[topic]:
            raise BagError(f'nothing was recorded on {topic}')
        stamps = np.array([_stamp(message) for message in messages[topic]])
        rows = np.array([values_of(message) for message in messages[topic]])
        _, at_state, at_base = np.intersect1d(states.stamps, stamps, return_indices=True)
        base[at_state, columns] = rows[at_base]
    return FreeMotion(states, base)


def read_messages(path, topics):
    """topic -> messages, for the topics named."""
    from rosbags.rosbag2 import Reader, ReaderError
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    messages = {topic: [] for topic in topics}
    try:
        with Reader(Path(path)) as reader:
            wanted = [connection for connection in reader.connections if connection.topic in messages]
            for connection, _, data in reader.messages(connections=wanted):
                messages[connection.topic].append(store.deserialize_cdr(data, connection.msgtype))
    except (ReaderError, OSError) as error:
        raise BagError(f'{path}: {error}') from error
    return messages


def joint_series(messages, topic):
    """The `Series` of the joint states of a topic; BagError where there are none."""
    return _joint_series(messages, topic, 'name', _from_joint_state)


def _joint_series(messages, topic, names_field, values_of):
    """The `Series` of a topic, every message sorted by the names of the first."""
    if not messages[topic]:
        raise BagError(f'nothing was recorded on {topic}')
    names = tuple(getattr(messages[topic][0], names_field))
    stamps = np.empty(len(messages[topic]), dtype=np.int64)
    rows = {}
    for k, message in enumerate(messages[topic]):
        stamps[k] = _stamp(message)
        present = list(getattr(message, names_field))
        if sorted(present) != sorted(names):
            raise BagError(f'{topic}: message {k} is about other joints than the first')
        order = [present.index(name) for name in names]
        for field, values in values_of(message).items():
            if len(values) == len(names):
                rows.setdefault(field, []).append(np.asarray(values)[order])
    complete = {field: np.array(values) for field, values in rows.items() if len(values) == stamps.size}
    return Series(names, stamps, complete)


def _stamp(message):
    return message.header.stamp.sec * SECOND + message.header.stamp.nanosec


def _from_pose(message):
    place, turn = message.pose.position, message.pose.orientation
    return place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w


def _from_twist(message):
    v, w = message.twist.linear, message.twist.angular
    return v.x, v.y, v.z, w.x, w.y, w.z


def _from_joint_state(message):
    return {'position': message.position, 'velocity': message.velocity, 'effort': message.effort}


def _from_trajectory(message):
    point = message.points[0]
    return {'position': point.positions, 'velocity': point.velocities, 'acceleration': point.accelerations}


def telemetry_series(messages):
    """The `Series` of labelled arrays (cylinders, quantities), whose column `stamp` says when in s; None for none."""
    if not messages:
        return None
    names, labels = (tuple(dim.label.split(',')) for dim in messages[0].layout.dim)
    rows = np.array([message.data for message in messages]).reshape(-1, len(names), len(labels))
    stamps = np.rint(rows[:, 0, labels.index('stamp')] * SECOND).astype(np.int64)
    return Series(names, stamps, {label: rows[:, :, i] for i, label in enumerate(labels) if label != 'stamp'})


def _last_statistics(messages):
    if not messages:
        return {}
    last = messages[-1]
    return dict(zip(last.layout.dim[-1].label.split(','), last.data.tolist(), strict=True))
