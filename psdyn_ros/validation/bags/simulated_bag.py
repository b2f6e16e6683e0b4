"""A bag of a simulated machine, written while it runs: the topics of the node `simulator`, without ROS."""

import struct
from functools import partial
from operator import attrgetter
from pathlib import Path

import numpy as np

from ...kernels.hydraulics.records import QUANTITIES
from ...model.units import SECOND
from ...simulation.sensors.kinds import PRESSURES

STATES, TRUTH, DYNAMICS, COMMANDS, TELEMETRY = (
    '/joint_states', '/simulator/ground_truth', '/simulator/dynamics', '/simulator/joint_commands',
    '/simulator/hydraulic_telemetry')
LABELS = (*QUANTITIES, 'safe', 'stamp')
FIELDS = {'valve': 0, 'velocity': 1, 'effort': 2, 'pressure': 2}     # of a JointState: position, velocity, effort
ENCAPSULATION = 4           # bytes before the first field of a serialised message


class SimulatedBag:
    """Writes an MCAP bag into the new folder `path`, message by message; to be used in a `with` statement.

    Stamps are simulated time, from zero.

    cylinders  names of those whose telemetry is written
    mounted    tuple of `Mounted` sensors
    """

    def __init__(self, path, cylinders=(), mounted=()):
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore

        self._store = get_typestore(Stores.ROS2_JAZZY)
        self._types = self._store.types
        self._writer = Writer(Path(path), version=9, storage_plugin=StoragePlugin.MCAP)
        self._cylinders, self._mounted = tuple(cylinders), {f'/simulator/{one.topic}': one for one in mounted}
        self._layouts = {}
        self.messages = 0

    def __enter__(self):
        self._writer.open()
        kinds = {STATES: 'sensor_msgs/msg/JointState', TRUTH: 'sensor_msgs/msg/JointState',
                 DYNAMICS: 'trajectory_msgs/msg/JointTrajectory', COMMANDS: 'sensor_msgs/msg/JointState'}
        if self._cylinders:
            kinds[TELEMETRY] = 'std_msgs/msg/Float64MultiArray'
        kinds.update((topic, one.message.type) for topic, one in self._mounted.items())
        self._connections = {topic: self._writer.add_connection(topic, kind, typestore=self._store)
                             for topic, kind in kinds.items()}
        return self

    def __exit__(self, *_):
        self._writer.close()

    def write(self, plant, measured, exact):
        """Write what `measured` and `exact` (`Readings`) say of the plant now, and the commands it obeys."""
        ns = round(plant.time * SECOND)
        if not self._layouts:
            self._lay_out(plant, exact)
        self._put(STATES, ns, measured.position, measured.velocity, measured.effort)
        self._put(TRUTH, ns, exact.position, exact.velocity, exact.effort)
        names, *rows = plant.manipulator.joint_state(plant.x, plant.xd, plant.xdd)
        self._put(DYNAMICS, ns, *(row[self._columns] for row in rows), plant.force)
        commands = np.full((3, len(self._columns)), np.nan)
        commands[self._fields, range(len(self._columns))] = getattr(plant, 'command', plant.force)
        self._put(COMMANDS, ns, *commands)
        if self._cylinders:
            rows = np.column_stack((plant.telemetry, plant.safe[plant.cylinder_records['axis']],
                                    np.full(len(self._cylinders), plant.time)))
            rows[:, PRESSURES] = measured.pressures
            self._put(TELEMETRY, ns, rows.ravel())
        for topic, one in self._mounted.items():
            self._put(topic, ns, *(measured.mounted[kind, one.name] for kind in one.fields))

    def _put(self, topic, ns, *arrays):
        self._writer.write(self._connections[topic], ns, self._layouts[topic].filled(ns, arrays))
        self.messages += 1

    def _lay_out(self, plant, readings):
        """Serialise one message of each topic; from then on only its numbers change."""
        t, actuators = self._types, list(plant.manipulator.actuators)
        self._columns = [readings.names.index(name) for name in actuators]
        modes = getattr(plant, 'modes', ('effort',) * len(actuators))
        self._fields = [FIELDS[mode] for mode in modes]
        header = t['std_msgs/msg/Header'](stamp=t['builtin_interfaces/msg/Time'](sec=0, nanosec=0), frame_id='')
        joint_state = t['sensor_msgs/msg/JointState']

        def states(names):
            return lambda position, velocity, effort: joint_state(
                header=header, name=list(names), position=position, velocity=velocity, effort=effort)

        def dynamics(positions, velocities, accelerations, effort):
            point = t['trajectory_msgs/msg/JointTrajectoryPoint'](
                positions=positions, velocities=velocities, accelerations=accelerations, effort=effort,
                time_from_start=t['builtin_interfaces/msg/Duration'](sec=0, nanosec=0))
            return t['trajectory_msgs/msg/JointTrajectory'](header=header, joint_names=actuators, points=[point])

        n, m = len(readings.names), len(actuators)
        makers = {STATES: (states(readings.names), (n,) * 3), TRUTH: (states(readings.names), (n,) * 3),
                  DYNAMICS: (dynamics, (m,) * 4), COMMANDS: (states(actuators), (m,) * 3)}
        if self._cylinders:
            makers[TELEMETRY] = self._telemetry, (len(self._cylinders) * len(LABELS),)
        makers.update((topic, (partial(self._sensor, one), (3,) * len(one.fields)))
                      for topic, one in self._mounted.items())
        self._layouts = {topic: _Layout(self._store, make, sizes, stamped=topic != TELEMETRY)
                         for topic, (make, sizes) in makers.items()}

    def _sensor(self, mounted, *vectors):
        message = self._blank(mounted.message.type)
        message.header.frame_id = mounted.frame
        if mounted.message.unknown:
            getattr(message, mounted.message.unknown)[0] = -1.0
        for field, values in zip(mounted.fields.values(), vectors):
            vector = attrgetter(field)(message)
            vector.x, vector.y, vector.z = values.tolist()
        return message

    def _blank(self, kind):
        """A message of zeros, of a type that has no sequences."""
        from rosbags.interfaces import Nodetype

        def zero(what, detail):
            if what == Nodetype.NAME:
                return self._blank(detail)
            if what == Nodetype.ARRAY:
                return np.zeros(detail[1])
            return '' if detail[0] == 'string' else 0

        return self._types[kind](**{name: zero(*field) for name, field in self._store.fielddefs[kind][1]})

    def _telemetry(self, data):
        dimension = self._types['std_msgs/msg/MultiArrayDimension']
        return self._types['std_msgs/msg/Float64MultiArray'](
            layout=self._types['std_msgs/msg/MultiArrayLayout'](
                dim=[dimension(label=','.join(self._cylinders), size=len(self._cylinders), stride=data.size),
                     dimension(label=','.join(LABELS), size=len(LABELS), stride=len(LABELS))], data_offset=0),
            data=data)


class _Layout:
    """A serialised message whose arrays of float64 are refilled in place, ten times faster than making it anew.

    make     function of the arrays that returns the message
    sizes    of the arrays
    stamped  whether it begins with a header
    """

    def __init__(self, store, make, sizes, stamped):
        # numbers that no other bytes of the message look like, to see where the arrays are
        marks = [np.full(size, 1.0 + np.pi * 1e100 * (k + 1)) for k, size in enumerate(sizes)]
        message = make(*marks)
        self._bytes = bytearray(store.serialize_cdr(message, message.__msgtype__))
        self._places = [(bytes(self._bytes).index(mark.tobytes()), 8 * mark.size) for mark in marks]
        self._stamped = stamped

    def filled(self, ns, arrays):
        """The message with this stamp and these arrays."""
        if self._stamped:
            struct.pack_into('<iI', self._bytes, ENCAPSULATION, ns // SECOND, ns % SECOND)
        for (first, size), array in zip(self._places, arrays, strict=True):
            self._bytes[first:first + size] = np.ascontiguousarray(array, dtype='<f8').data.cast('B')
        return bytes(self._bytes)
