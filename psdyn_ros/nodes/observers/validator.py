"""The node `validator`: does the model tell the truth about the machine that runs, or about a bag that is played?

    joint_states                sensor_msgs/JointState           in   joints that fix the others, and efforts; those of
                                                                      the first message count
    pressures                   see `pressures.py`               in   of all chambers, where there are hydraulics
    ~/predicted                 sensor_msgs/JointState           out  efforts that the motion needs by the model
    ~/residual                  sensor_msgs/JointState           out  efforts, measured - predicted; NaN where unknown
    ~/external_force            geometry_msgs/WrenchStamped      out  that would explain the residual, on a link
    ~/external_force_deviation  geometry_msgs/WrenchStamped      out  one standard deviation of it; inf: does not show
    /diagnostics                diagnostic_msgs/DiagnosticArray  out  one status of the machine, one of each actuator

Stamps of outputs are the instants that they are about, a fraction of a second ago: filters look both ways. Levels
are those of the tolerances of `psdyn validate`, over a window that moves along.
"""

import sys
import time

from geometry_msgs.msg import WrenchStamped
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import JointState

from ...model.errors import PsdynError, did_you_mean
from ...model.parameters.hydraulics import read_hydraulics
from ...model.units import SECOND
from ...validation.live import LiveValidator
from ...validation.metrics.tolerances import read_settings
from ...validation.signals.stream_clock import RepeatedStampError
from ..messages import conversions
from ..messages.pressures import TOPICS, PressureInputs
from ..runtime import deadlines, diagnostics, executor, parameters
from ..runtime.parameters import MACHINE, PRESSURE_TOPICS, Parameter, ParameterError
from ..runtime.qos import ADJUSTABLE, LONG_QUEUE, RELIABLE, SENSOR_QUEUE
from ..runtime.rejection_log import Rejections, brief
from ..runtime.robot_description import load_machine
from .validator_diagnostics import ValidatorReport

READY = 'validator: ready'

PARAMETERS = MACHINE + (
    Parameter('config', '', 'YAML file of tolerances, filter and delays, as of `psdyn validate --config`; empty: '
              'defaults'),
    Parameter('hydraulics', '', 'YAML file of the cylinders, for efforts from pressures and their friction; empty: '
              'friction is that of the URDF'),
    Parameter('effort_source', 'auto', 'efforts of cylinders: those of joint_states, or the force of their pressures; '
              'auto: of the pressures, where there are hydraulics', choices=('auto', 'message', 'pressures')),
    *PRESSURE_TOPICS,
    Parameter('contact_link', '', 'link on which a force from outside is estimated; empty: the outermost'),
    Parameter('period', 0.0, 's between the instants that are predicted; 0: the median between states', 0.0, 10.0),
    Parameter('hop', 0.1, 's from one piece that is predicted to the next', 0.02, 10.0),
    Parameter('window', 10.0, 's that figures and levels are about', 1.0, 600.0),
    Parameter('warn_share', 0.8, 'of a tolerance from which on diagnostics warn', 0.0, 1.0),
    Parameter('output_rate', 50.0, 'Hz of ~/predicted and ~/residual, in whole periods; 0: every period', 0.0, 5000.0),
    Parameter('state_timeout', 1.0, 's of ROS time without a state after which diagnostics are stale', 0.01, 3600.0),
)


class ValidatorNode:
    """Puts a `LiveValidator` on a node."""

    def __init__(self, node):
        self._node = node
        p = self._p = parameters.declare(node, PARAMETERS)
        machine = load_machine(node, p)
        hydraulics = read_hydraulics(p.hydraulics, machine.actuators) if p.hydraulics else None
        settings = read_settings(p.config or None, machine.actuators)
        if p.effort_source == 'pressures' and hydraulics is None:
            raise ParameterError("parameter effort_source: 'pressures' needs the parameter hydraulics")
        self._by_pressures = hydraulics is not None and p.effort_source != 'message'
        self._live = LiveValidator(machine, hydraulics, settings, period=p.period or None, hop=p.hop, window=p.window,
                                   warn=p.warn_share, contact_link=p.contact_link, by_pressures=self._by_pressures)
        self._now = deadlines.clock_of(node)
        self._rejections = Rejections(node.get_logger().warning)
        self._joints = ()
        self._predicted, self._residual = (conversions.JointStateWriter(machine.actuators, ('effort',))
                                           for _ in range(2))
        self._force, self._deviation = WrenchStamped(), WrenchStamped()
        for message in (self._force, self._deviation):
            message.header.frame_id = self._live.contact.link
        self._connect(p, hydraulics, settings)
        node.get_logger().info(
            f'{machine.name}: efforts of {", ".join(machine.actuators)} and the force on {self._live.contact.link}, '
            f'judged by the {settings.where}')
        if settings.topics:
            node.get_logger().info('topics of that file are those of a bag; here they are remapped')
        print(READY, flush=True)    # at any level of the log: replay.launch.py waits for it

    def _connect(self, p, hydraulics, settings):
        node = self._node
        self._publish_predicted, self._publish_residual = (
            node.create_publisher(JointState, f'~/{name}', LONG_QUEUE, **ADJUSTABLE).publish
            for name in ('predicted', 'residual'))
        self._publish_force, self._publish_deviation = (
            node.create_publisher(WrenchStamped, f'~/{name}', RELIABLE).publish
            for name in ('external_force', 'external_force_deviation'))
        publish = diagnostics.publisher(node)
        states = node.create_subscription(JointState, 'joint_states', self._on_state, SENSOR_QUEUE,
                                          **ADJUSTABLE, raw=True).topic_name
        pressures = ''
        if self._by_pressures:
            PressureInputs(node, tuple(hydraulics.cylinders), p.pressure_source, p.pressure_topic,
                           take=self._on_pressures, reject=self._reject('pressures'), qos=SENSOR_QUEUE)
            pressures = node.resolve_topic_name(p.pressure_topic or TOPICS[p.pressure_source])
        self._delays = _delays(settings, states, pressures)
        self._report = ValidatorReport(node.get_name(), self._live, self._rejections, (states, pressures),
                                       self._p.state_timeout, node.get_logger())
        self._simulated = node.get_parameter('use_sim_time').value
        node.create_timer(1.0 / p.report_rate, lambda: publish(self._report.message(self._now(), self._simulated)),
                          clock=Clock(clock_type=ClockType.STEADY_TIME))

    # in

    def _on_state(self, serialized):
        try:
            message = conversions.read_message(serialized, JointState)
            stamp = conversions.stamp_to_ns(message.header.stamp)
            self._live.state(stamp - self._delays[0] if stamp else 0, message.name,
                             message.position, message.velocity, message.effort)
        except PsdynError as error:
            self._reject('joint_states')(error)
            return
        if self._live.joints is not self._joints:
            self._say_joints(message.name)
        self._report.came(self._now())
        try:
            steps = self._live.advance()
        except PsdynError as error:     # states that come too rarely for the filter
            self._reject('joint_states')(error)
            return
        for step in steps:
            self._publish(step)

    def _say_joints(self, names):
        """Tell which joints of a message count, and which the machine does not have."""
        self._joints, log = self._live.joints, self._node.get_logger()
        log.info(f'measured: {", ".join(self._joints)}')
        extra = [name for name in names if name not in self._joints]
        if extra:
            log.warning(f'states of {brief(", ".join(extra))} are passed over: no joint of this machine'
                        f'{did_you_mean(extra[0], self._live.manipulator.joints)}')

    def _on_pressures(self, stamp, values, supply):
        try:
            self._live.pressures(stamp - self._delays[1], values)
        except PsdynError as error:
            self._reject('pressures')(error)

    def _reject(self, topic):
        def reject(error):
            if self._simulated and isinstance(error, RepeatedStampError):
                return
            self._rejections.add(topic, error, time.monotonic_ns())
            self._report.refused(topic, error)
        return reject

    # out

    def _publish(self, step):
        prediction, core = step.prediction, step.prediction.core
        every = max(round(1.0 / (self._p.output_rate * prediction.period)), 1) if self._p.output_rate else 1
        # counted from the beginning, so that pieces go on from each other
        first = -round(prediction.t[core.start] / prediction.period) % every
        delay = self._delays[0]
        for k in range(first, core.stop - core.start, every):
            row, ns = core.start + k, int(step.stamps[k]) + delay
            self._predicted.effort[:] = prediction.effort_id[row]
            self._residual.effort[:] = prediction.effort[row] - prediction.effort_id[row]
            self._publish_predicted(self._predicted.stamp(ns))
            self._publish_residual(self._residual.stamp(ns))
        if step.force is None:
            return
        middle = int(step.stamps[len(step.stamps) // 2]) + delay
        for message, values, publish in ((self._force, step.force.force, self._publish_force),
                                         (self._deviation, step.force.deviation, self._publish_deviation)):
            vector = message.wrench.force
            vector.x, vector.y, vector.z = values.tolist()
            conversions.ns_to_stamp(middle, message.header.stamp)
            publish(message)


def _delays(settings, states, pressures):
    """(of states, of pressures) in ns by which they are late, by the topics of the settings."""
    ours = [topic for topic in (states, pressures) if topic]
    for topic in settings.delays:
        if topic not in ours:
            raise ParameterError(f"{settings.where}: delay of '{topic}': expected {' or '.join(ours)}"
                                 f'{did_you_mean(topic, ours)}')
    return tuple(round(settings.delays.get(topic, 0.0) * SECOND) for topic in (states, pressures))


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('validator', ValidatorNode, args)


if __name__ == '__main__':
    sys.exit(main())
