"""A bag of a simulated machine, written while it runs: the topics of the node `simulator`, without ROS."""

from pathlib import Path

import numpy as np

from ..kernels.hydraulic_records import QUANTITIES

SECOND = 1_000_000_000      # ns
STATES, TRUTH, DYNAMICS, COMMANDS, TELEMETRY = (
    '/joint_states', '/simulator/ground_truth', '/simulator/dynamics', '/simulator/joint_commands',
    '/simulator/hydraulic_telemetry')


class SimulatedBag:
    """Writes an MCAP bag into the new folder `path`, message by message; to be used in a `with` statement.

    Stamps are simulated time, from zero.
    """

    def __init__(self, path, manipulator, cylinders=()):
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore

        self._store = get_typestore(Stores.ROS2_JAZZY)
        self._types = self._store.types
        self._writer = Writer(Path(path), version=9, storage_plugin=StoragePlugin.MCAP)
        self._manipulator, self._cylinders = manipulator, tuple(cylinders)
        self.messages = 0

    def __enter__(self):
        self._writer.open()
        kinds = {STATES: 'sensor_msgs/msg/JointState', TRUTH: 'sensor_msgs/msg/JointState',
                 DYNAMICS: 'trajectory_msgs/msg/JointTrajectory', COMMANDS: 'sensor_msgs/msg/JointState'}
        if self._cylinders:
            kinds[TELEMETRY] = 'std_msgs/msg/Float64MultiArray'
        self._connections = {topic: self._writer.add_connection(topic, kind, typestore=self._store)
                             for topic, kind in kinds.items()}
        return self

    def __exit__(self, *_):
        self._writer.close()

    def write(self, plant, measured, exact, modes):
        """Write what `measured` and `exact` (`Readings`) say of the plant now, and the commands it obeys."""
        ns = round(plant.time * SECOND)
        self._put(STATES, ns, self._joint_state(ns, measured))
        self._put(TRUTH, ns, self._joint_state(ns, exact))
        self._put(DYNAMICS, ns, self._dynamics(ns, plant))
        self._put(COMMANDS, ns, self._commands(ns, plant, modes))
        if self._cylinders:
            self._put(TELEMETRY, ns, self._telemetry(plant, measured))

    def _put(self, topic, ns, message):
        self._writer.write(self._connections[topic], ns, self._store.serialize_cdr(message, message.__msgtype__))
        self.messages += 1

    def _header(self, ns):
        stamp = self._types['builtin_interfaces/msg/Time'](sec=ns // SECOND, nanosec=ns % SECOND)
        return self._types['std_msgs/msg/Header'](stamp=stamp, frame_id='')

    def _joint_state(self, ns, readings):
        return self._types['sensor_msgs/msg/JointState'](
            header=self._header(ns), name=list(readings.names), position=readings.position,
            velocity=readings.velocity, effort=readings.effort)

    def _dynamics(self, ns, plant):
        names, *rows = plant.manipulator.joint_state(plant.x, plant.xd, plant.xdd)
        columns = [names.index(name) for name in plant.manipulator.actuators]
        position, velocity, acceleration = (np.ascontiguousarray(row[columns]) for row in rows)
        now = self._types['builtin_interfaces/msg/Duration'](sec=0, nanosec=0)
        point = self._types['trajectory_msgs/msg/JointTrajectoryPoint'](
            positions=position, velocities=velocity, accelerations=acceleration, effort=plant.force.copy(),
            time_from_start=now)
        return self._types['trajectory_msgs/msg/JointTrajectory'](
            header=self._header(ns), joint_names=list(plant.manipulator.actuators), points=[point])

    def _commands(self, ns, plant, modes):
        fields = {'valve': 'position', 'velocity': 'velocity', 'effort': 'effort', 'pressure': 'effort'}
        names = plant.manipulator.actuators
        values = {field: np.full(len(names), np.nan) for field in ('position', 'velocity', 'effort')}
        for i, mode in enumerate(modes):
            values[fields[mode]][i] = plant.command[i]
        return self._types['sensor_msgs/msg/JointState'](header=self._header(ns), name=list(names), **values)

    def _telemetry(self, plant, measured):
        rows = np.column_stack((plant.telemetry, plant.safe[plant.cylinder_records['axis']],
                                np.full(len(self._cylinders), plant.time)))
        rows[:, :2] = measured.pressures
        labels = (','.join(self._cylinders), ','.join((*QUANTITIES, 'safe', 'stamp')))
        dimension = self._types['std_msgs/msg/MultiArrayDimension']
        layout = self._types['std_msgs/msg/MultiArrayLayout'](
            dim=[dimension(label=labels[0], size=rows.shape[0], stride=rows.size),
                 dimension(label=labels[1], size=rows.shape[1], stride=rows.shape[1])], data_offset=0)
        return self._types['std_msgs/msg/Float64MultiArray'](layout=layout, data=rows.ravel())
