"""The node `feedforward`: a motion in, the efforts that it needs out, for controllers that know no dynamics.

    ~/reference             trajectory_msgs/JointTrajectory  in   its first point: the motion of now; what it does not
                                                                  give of velocities and accelerations is zero
    ~/controller_state      control_msgs/JointTrajectoryControllerState  in   its `reference`, where control_msgs is
                                                                  installed
    joint_states            sensor_msgs/JointState           in   measured: gravity and friction only
    ~/payload               geometry_msgs/InertiaStamped     in   on the link `frame_id`; mass 0 takes it off
    ~/feedforward           sensor_msgs/JointState           out  efforts of `joints`
    ~/actuator_feedforward  sensor_msgs/JointState           out  efforts of the actuators
    ~/commands              std_msgs/Float64MultiArray       out  those of `joints`, in their order
    ~/terms                 std_msgs/Float64MultiArray       out  if `publish_terms`: coordinates x `TERMS`, unscaled
    /diagnostics            diagnostic_msgs/DiagnosticArray  out  source, refused and clamped messages

Every message of the source in use is answered at once, with its stamp; efforts are within the limits of the actuators.
Of the inputs the first that is connected and has spoken is the source. When it falls silent nothing is published:
another takes over only when it is disconnected. The effort of a joint that is no actuator does the same work as the
actuators do (`control/offline/feedforward.py`). A load that hangs from passive joints counts as at rest at the first
message, after a gap of 0.05 s, and in answers to `joint_states`; along references it swings freely.
"""

import sys
import time

import numpy as np
from geometry_msgs.msg import InertiaStamped
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from ...control.offline.feedforward import Feedforward, Terms
from ...model.errors import PsdynError
from ...model.units import SECOND
from ..messages import conversions
from ..messages.conversions import MessageError
from ..runtime import deadlines, diagnostics, executor, parameters
from ..runtime.parameters import MACHINE, Parameter, ParameterError
from ..runtime.qos import ADJUSTABLE, LATEST, RELIABLE, SENSOR_DATA
from ..runtime.rejection_log import Rejections, brief
from ..runtime.robot_description import load_machine
from .feedforward_inputs import EFFORTS_OF, MotionReader, Sources, take_payload

TERMS = Terms._fields
REFERENCE, CONTROLLER_STATE, JOINT_STATES = SOURCES = 'reference', 'controller_state', 'joint_states'
POLL = 0.2          # s between two looks at who is connected


def trajectory_controller_state():
    """The class control_msgs/JointTrajectoryControllerState, or None where it is not installed or older than jazzy."""
    try:
        from control_msgs.msg import JointTrajectoryControllerState
    except ImportError:
        return None
    return JointTrajectoryControllerState if hasattr(JointTrajectoryControllerState, 'reference') else None


PARAMETERS = MACHINE + EFFORTS_OF + (
    Parameter('joints', '', 'names of the joints of ~/feedforward and ~/commands, in their order: all actuators, or as '
              'many independent joints as degrees of freedom; empty: the actuators'),
    Parameter('source', 'auto', 'what is answered; auto: the first of these that is connected and has spoken',
              choices=('auto', *SOURCES)),
    Parameter('scale', 1.0, 'share of all efforts that is published', 0.0, 1.0, live=True),
    Parameter('publish_terms', False, 'whether ~/terms tells inertia, Coriolis, gravity and friction apart'),
)


class FeedforwardNode:
    """Puts a `Feedforward` on a node."""

    def __init__(self, node):
        self._node = node
        p = self._p = parameters.declare(node, PARAMETERS)
        whole = load_machine(node, p)
        machine = whole.driven_machine
        joints = parameters.joint_names(p.joints, 'parameter joints', machine.joints) if p.joints else None
        self._feedforward = Feedforward(whole, joints)
        self._rejections = Rejections(node.get_logger().warning)
        self._now = deadlines.clock_of(node)
        self._timeout = round(p.state_timeout * SECOND)
        self._reader = MotionReader(lambda: self._feedforward.manipulator, p.closure_tolerance)
        self._states = conversions.StateReader(machine, p.closure_tolerance, self._warn_extra, whole.passive_joints)
        self._answered = self._clamped = 0
        self._over = ()
        joints = self._feedforward.joints
        self._efforts = conversions.JointStateWriter(joints, ('effort',))
        self._actuators = conversions.JointStateWriter(machine.actuators, ('effort',))
        self._commands = conversions.LabelledArrayWriter(joints)
        self._terms = conversions.LabelledArrayWriter(machine.coordinates, TERMS)
        self._take_scales()
        self._connect(p)
        node.get_logger().info(f'{machine.name}: efforts of {", ".join(joints)} from '
                               + (', '.join(self._sources.topics) if p.source == 'auto' else p.source))

    def _connect(self, p):
        node, steady = self._node, Clock(clock_type=ClockType.STEADY_TIME)
        self._publish_efforts = node.create_publisher(JointState, '~/feedforward', RELIABLE).publish
        self._publish_actuators = node.create_publisher(JointState, '~/actuator_feedforward', RELIABLE).publish
        self._publish_commands = node.create_publisher(Float64MultiArray, '~/commands', LATEST, **ADJUSTABLE).publish
        self._publish_terms = node.create_publisher(Float64MultiArray, '~/terms', RELIABLE).publish \
            if p.publish_terms else None
        self._publish_diagnostics = diagnostics.publisher(node)
        inputs = {REFERENCE: (JointTrajectory, '~/reference', self._first_point, SENSOR_DATA),
                  CONTROLLER_STATE: (trajectory_controller_state(), '~/controller_state', self._reference, SENSOR_DATA),
                  JOINT_STATES: (JointState, 'joint_states', self._states.read, SENSOR_DATA)}
        wanted = SOURCES if p.source == 'auto' else (p.source,)
        if p.source == CONTROLLER_STATE and inputs[CONTROLLER_STATE][0] is None:
            raise ParameterError('parameter source: controller_state needs control_msgs with a '
                                 'JointTrajectoryControllerState that has a reference; it is not installed')
        topics = {}
        for source in wanted:
            kind, topic, read, qos = inputs[source]
            if kind is not None:
                subscription = node.create_subscription(kind, topic, self._on(source, read), qos, **ADJUSTABLE)
                topics[source] = subscription.topic_name
        self._sources = Sources(topics, node.count_publishers, self._timeout)
        node.create_subscription(InertiaStamped, '~/payload', self._on_payload, RELIABLE)
        node.create_timer(POLL, self._sources.look, clock=steady)
        node.create_timer(1.0 / p.report_rate, self._report, clock=steady)
        node.add_post_set_parameters_callback(lambda _: self._take_scales())

    def _take_scales(self):
        self._scale = self._node.get_parameter('scale').value
        self._feedforward.friction_scale = self._node.get_parameter('friction_scale').value

    # one message

    def _on(self, source, read):
        def receive(msg):
            now = time.monotonic_ns()
            try:
                motion = read(msg)
                if self._sources.spoke(source, now):
                    self._answer(msg.header.stamp, motion)
            except PsdynError as error:
                self._rejections.add(source, error, now)
        return receive

    def _first_point(self, msg):
        if not msg.points:
            raise MessageError('it has no points')
        return self._reader.read(msg.joint_names, msg.points[0])

    def _reference(self, msg):
        return self._reader.read(msg.joint_names, msg.reference)

    def _answer(self, stamp, motion):
        """Publish the efforts of a motion: (x, xd, xdd), or (x, xd) measured."""
        ns = conversions.stamp_to_ns(stamp) or self._now()
        self._feedforward.advance(1e-9 * ns, *motion[:2])
        efforts = self._feedforward.of(*motion) if len(motion) == 3 else self._feedforward.at(*motion)
        self._clamped += bool(efforts.beyond)
        self._over = efforts.beyond
        self._efforts.effort[:] = self._commands.values[:] = self._scale * efforts.joints
        self._actuators.effort[:] = self._scale * efforts.actuators
        self._publish_commands(self._commands.message)
        self._publish_efforts(self._efforts.stamp(ns))
        self._publish_actuators(self._actuators.stamp(ns))
        self._answered += 1
        if self._publish_terms is not None:
            self._terms.values[:] = np.transpose(self._feedforward.terms(*motion))
            self._publish_terms(self._terms.message)

    def _on_payload(self, msg):
        take_payload(self._feedforward, msg, self._rejections, self._node.get_logger().info, time.monotonic_ns())

    def _warn_extra(self, names):
        self._node.get_logger().warning(
            f'states of {brief(", ".join(names))} are passed over: no joint of this machine', throttle_duration_sec=1.0)

    def _report(self):
        rejected, sources = self._rejections, self._sources
        fresh = sources.fresh(time.monotonic_ns())
        if sources.chosen is None:
            level, summary = 'error', f'nobody speaks on {", ".join(sources.topics.values())}'
        elif not fresh:
            level, summary = 'error', f'{sources.topics[sources.chosen]} fell silent: nothing is published'
        elif self._over:
            level, summary = 'warn', f'from {sources.chosen}; at its limit: {", ".join(self._over)}'
        else:
            level, summary = 'ok', f'from {sources.chosen}'
        payloads = [f'{payload[0]:g} kg on {link}' for link, payload in self._feedforward.payloads.items()]
        self._publish_diagnostics(conversions.diagnostics_msg(
            self._now(), f'{self._node.get_name()}: efforts', level, summary, {
                'source': sources.chosen or 'none',
                'answered messages': self._answered,
                'clamped messages': self._clamped,
                'payloads': ', '.join(payloads) or 'none',
                **rejected.values()}))


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('feedforward', FeedforwardNode, args)


if __name__ == '__main__':
    sys.exit(main())
