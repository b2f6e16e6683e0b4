"""What a plant publishes: what its sensors say, what is true, and what its dynamics computed."""

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from sensor_msgs.msg import FluidPressure, JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from ...kernels.hydraulics.records import QUANTITIES
from ...model.parameters.sensors import KINDS
from ...model.units import SECOND
from ...simulation.sensors.kinds import PRESSURES
from ..messages.conversions import JointStateWriter, LabelledArrayWriter
from ..runtime.qos import ADJUSTABLE, RELIABLE
from .messages import (
    DynamicStateWriter,
    DynamicsWriter,
    LinkPoseWriter,
    LinkTwistWriter,
    PortPressureWriter,
    SensorWriter,
    WrenchWriter,
)

TELEMETRY = (*QUANTITIES, 'safe', 'stamp')
LOAD_MOTION = 'load_motion'


class PlantOutputs:
    """Publishes a plant: joint_states always, details only while somebody listens.

    node   to publish on
    setup  `setup.Setup`
    clock  `SimulationClock`
    p      parameters of the simulator
    """

    def __init__(self, node, setup, clock, p):
        plant, sensors = setup.plant, setup.sensors
        self._node, self._plant, self._sensors, self._clock = node, plant, sensors, clock
        self._machine = plant.manipulator
        self._joints = tuple(self._machine.joints)
        self._measured = MeasuredJoints(plant, sensors.channels, setup.measured)
        self._mounted = [MountedOutput(node, one, sensors.channels) for one in sensors.mounted]
        self._actuated = [self._joints.index(name) for name in self._machine.actuators]
        self._states = node.create_publisher(JointState, 'joint_states', RELIABLE, **ADJUSTABLE)
        self._base = None
        if self._machine.floating:
            self._base = tuple(make(self._machine, self._machine.machine.base_link)
                               for make in (LinkPoseWriter, LinkTwistWriter))
            self._poses = node.create_publisher(PoseStamped, '~/base_pose', RELIABLE)
            self._twists = node.create_publisher(TwistStamped, '~/base_twist', RELIABLE)
        self._details = []              # (publisher, function that publishes on it)
        self._wanted = []               # functions of those that somebody listens to
        self._divider, self._turn = p.details_divider, 0
        self._add_details(p)
        self.count_listeners()
        self.sample()

    def _add_details(self, p):
        m = self._machine
        self._truth = JointStateWriter(self._joints)
        self._detail(JointState, 'ground_truth', self._fill_truth)
        self._dynamics = DynamicsWriter(self._joints)
        self._detail(JointTrajectory, 'dynamics', self._fill_dynamics)
        if not m.floating:
            self._wrench = WrenchWriter(m.machine.base_link)
            # what the machine does to what carries it: minus what carries it does to the machine
            self._detail(WrenchStamped, 'base_wrench', lambda ns: self._wrench.fill(ns, -self._plant.base_wrench()))
        if p.tool_link:
            pose, twist = LinkPoseWriter(m, p.tool_link), LinkTwistWriter(m, p.tool_link)
            self._detail(PoseStamped, 'tool_pose', lambda ns: pose.fill(ns, self._plant.x))
            self._detail(TwistStamped, 'tool_twist', lambda ns: twist.fill(ns, self._plant.x, self._plant.xd))
        if not self._plant.cylinders:
            return
        for cylinder in self._plant.cylinders:
            self._detail(JointTrajectory, f'{LOAD_MOTION}/{cylinder}', self._load_motion(cylinder))
        if p.publish_telemetry:
            self._add_telemetry()
        if p.publish_fluid_pressure:
            for row, cylinder in enumerate(self._plant.cylinders):
                for column, port in enumerate('ab'):
                    self._detail(FluidPressure, f'pressure/{cylinder}/{port}',
                                 self._port(PortPressureWriter(cylinder), row, column))

    def _add_telemetry(self):
        cylinders = self._plant.cylinders
        self._telemetry, self._true_telemetry = (LabelledArrayWriter(cylinders, TELEMETRY) for _ in range(2))
        self._detail(Float64MultiArray, 'hydraulic_telemetry', self._fill_telemetry)
        self._detail(Float64MultiArray, 'ground_truth/hydraulic_telemetry', self._fill_true_telemetry)
        try:
            from control_msgs import msg as types
        except ImportError:
            return
        states = DynamicStateWriter(types, cylinders, QUANTITIES)
        self._detail(types.DynamicJointState, 'hydraulic_states',
                     lambda ns: states.fill(ns, self._spoilt(self._plant.telemetry.copy())))

    def _detail(self, kind, topic, fill):
        publisher = self._node.create_publisher(kind, f'~/{topic}', RELIABLE)
        self._details.append((publisher, lambda ns: publisher.publish(fill(ns))))

    def count_listeners(self):
        """Look who listens to details; to be called once a second."""
        self._wanted = [publish for publisher, publish in self._details if publisher.get_subscription_count()]

    def sample(self):
        """Let the sensors measure; after every period."""
        self._sample = self._sensors.sample(self._plant)

    def reset(self):
        """After the plant was reset."""
        self._sensors.reset()
        for one in (self._measured, *self._mounted):
            one.reset()
        self._turn = 0
        self.sample()

    def measured(self):
        """(stamp [ns], position, velocity, effort) of the measured joints, None if the sensors say nothing new."""
        return self._measured.read(self._sample, self._clock, self._plant.steps)

    def publish_states(self, messages):
        """Publish joint states as `measured` gave them, in this order."""
        for stamp, position, velocity, effort in messages:
            writer = self._measured.writer
            writer.position[:], writer.velocity[:], writer.effort[:] = position, velocity, effort
            self._states.publish(writer.stamp(stamp))

    def publish_details(self):
        """Publish all else about the present, and what mounted sensors have measured."""
        for one in self._mounted:
            one.publish(self._sample, self._clock, self._plant.steps)
        ns = self._clock.stamp
        if self._base:
            pose, twist = self._base
            self._poses.publish(pose.fill(ns, self._plant.x))
            self._twists.publish(twist.fill(ns, self._plant.x, self._plant.xd))
        if self._turn == 0:
            if self._clock.lock_step:
                # a second may be many periods, and who comes in time misses none
                self.count_listeners()
            for publish in self._wanted:
                publish(ns)
        self._turn = (self._turn + 1) % self._divider

    def repeat_details(self):
        """Publish all else about the present again, but for the motion that a rig answers by a period."""
        for publisher, publish in self._details:
            if LOAD_MOTION not in publisher.topic_name and publisher.get_subscription_count():
                publish(self._clock.stamp)

    def _fill_truth(self, ns):
        plant, truth = self._plant, self._truth
        _, truth.position[:], truth.velocity[:], _ = self._machine.joint_state(plant.x, plant.xd)
        truth.effort[self._actuated] = plant.effort
        return truth.stamp(ns)

    def _fill_dynamics(self, ns):
        plant, d = self._plant, self._dynamics
        _, d.position[:], d.velocity[:], d.acceleration[:] = self._machine.joint_state(plant.x, plant.xd, plant.xdd)
        d.effort[self._actuated] = plant.force
        return d.stamp(ns)

    def _load_motion(self, cylinder):
        writer = DynamicsWriter((cylinder,), effort=False)

        def fill(ns):
            writer.position[0], writer.velocity[0], writer.acceleration[0] = self._plant.load_motion(cylinder)
            return writer.stamp(ns)
        return fill

    def _spoilt(self, telemetry):
        """The telemetry with pressures as sensors measure them."""
        telemetry[:, PRESSURES] = self._sensors.readings().pressures
        return telemetry

    def _fill_telemetry(self, ns):
        self._telemetry.values[:, :-2] = self._plant.telemetry
        self._spoilt(self._telemetry.values)
        return self._stamped(self._telemetry, ns)

    def _fill_true_telemetry(self, ns):
        self._true_telemetry.values[:, :-2] = self._plant.telemetry
        return self._stamped(self._true_telemetry, ns)

    def _stamped(self, writer, ns):
        plant = self._plant
        writer.values[:, -2] = [plant.safe[plant.actuators.index(name)] for name in plant.cylinders]
        writer.values[:, -1] = ns / SECOND
        return writer.message

    def _port(self, writer, row, column):
        return lambda ns: writer.fill(ns, self._sensors.readings().pressures[row, column])


class MeasuredJoints:
    """The joints in joint_states, and where sensors have their values.

    plant     the machine
    channels  of the sensors
    names     of the joints
    """

    def __init__(self, plant, channels, names):
        self.writer = JointStateWriter(names)
        index = {channel: row for row, channel in enumerate(channels)}
        self._position, self._velocity = (np.array([index[f'{name}.{what}'] for name in names], dtype=np.intp)
                                          for what in ('position', 'velocity'))
        actuated = [name for name in names if name in plant.actuators]
        self._effort = np.array([index[f'{name}.effort'] for name in actuated], dtype=np.intp)
        self._actuated = np.array([names.index(name) for name in actuated], dtype=np.intp)
        self.reset()

    def reset(self):
        """The next sample is a new one, whenever it was taken."""
        self._last = -np.inf

    def read(self, sample, clock, steps):
        """(stamp [ns], position, velocity, effort) of a sample at a step; None where it has no new position."""
        values, stamps, _ = sample
        taken = stamps[self._position].max()
        if taken == self._last or not np.isfinite(taken):
            return None
        self._last = taken      # step of the last message
        effort = np.zeros(self._position.size)
        effort[self._actuated] = values[self._effort]
        return (clock.stamp - round((steps - taken) * clock.period), values[self._position], values[self._velocity],
                effort)


class MountedOutput:
    """Publishes a mounted sensor whenever it has measured.

    node      to publish on
    mounted   `Mounted`
    channels  of all sensors
    """

    def __init__(self, node, mounted, channels):
        self._writer = SensorWriter(mounted)
        self._publisher = node.create_publisher(self._writer.type, f'~/{mounted.topic}', RELIABLE)
        self._rows = {kind: np.array([channels.index(channel) for channel in KINDS[kind].channels(kind, mounted.name)])
                      for kind in mounted.fields}
        self.reset()

    def reset(self):
        """The next sample is a new one, whenever it was taken."""
        self._last = -np.inf

    def publish(self, sample, clock, steps):
        """Publish a sample at a step, where it has anything new."""
        values, stamps, _ = sample
        taken = max(stamps[rows].max() for rows in self._rows.values())
        if taken == self._last or not np.isfinite(taken):
            return
        self._last = taken
        self._publisher.publish(self._writer.fill(clock.stamp - round((steps - taken) * clock.period),
                                                  {kind: values[rows] for kind, rows in self._rows.items()}))
