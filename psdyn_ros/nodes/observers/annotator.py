"""The node `annotator`: fills trajectories with the efforts that they need, for a stock joint_trajectory_controller.

    ~/trajectory_in   trajectory_msgs/JointTrajectory   in   in all actuators, or in as many independent joints as there
                                                             are degrees of freedom
    joint_states      sensor_msgs/JointState            in   where a trajectory begins that begins later than at time 0
    ~/payload         geometry_msgs/InertiaStamped      in   on the link `frame_id`; mass 0 takes it off
    ~/trajectory_out  trajectory_msgs/JointTrajectory   out  through the same points at the same times, with others
                                                             between them (`max_dt`), complete and with efforts
    /diagnostics      diagnostic_msgs/DiagnosticArray   out  passed and refused trajectories

A trajectory is refused whole, with the number of its first bad point, where the motion leaves the limits of the
machine, where no loop closes, where an actuator cannot do it, or where nobody listens to `~/trajectory_out`. The
controller then goes on with what it had. A load that hangs from passive joints rests at first and then swings freely;
points are at most 0.02 s apart then. A trajectory without points, which stops joint_trajectory_controller, passes as
it is.
"""

import sys
import time

import numpy as np
from geometry_msgs.msg import InertiaStamped
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ...control.offline.annotate import annotate
from ...control.offline.feedforward import Feedforward
from ...model.errors import PsdynError
from ...model.units import SECOND
from ..messages import conversions
from ..runtime import deadlines, diagnostics, executor, parameters
from ..runtime.parameters import MACHINE, Parameter
from ..runtime.qos import ADJUSTABLE, RELIABLE, SENSOR_DATA
from ..runtime.rejection_log import Rejections, brief
from ..runtime.robot_description import load_machine
from .feedforward_inputs import EFFORTS_OF, take_payload

PARAMETERS = MACHINE + EFFORTS_OF + (
    Parameter('max_dt', 0.02, 's from one point to the next at most', 1e-4, 10.0),
    Parameter('clamp', False, 'whether efforts beyond the limits of actuators are clamped; otherwise the trajectory is '
              'refused'),
    Parameter('from_state', True, 'whether a trajectory that begins later than at time 0 gets a first point where the '
              'machine rests'),
    Parameter('max_speed', 0.01, 'm/s or rad/s up to which a machine counts as resting', 1e-6, 1.0),
)


class AnnotatorNode:
    """Puts `annotate` on a node."""

    def __init__(self, node):
        self._node = node
        p = self._p = parameters.declare(node, PARAMETERS)
        machine = load_machine(node, p)
        self._loaded = Feedforward(machine)         # keeps the payloads
        self._rejections = Rejections(node.get_logger().warning)
        self._now = deadlines.clock_of(node)
        self._states = conversions.StateReader(machine.driven_machine, p.closure_tolerance, lambda names: None)
        self._state = None                          # (ns on a steady clock, x, xd)
        self._passed, self._last = 0, 'no trajectory came'
        self._output = node.create_publisher(JointTrajectory, '~/trajectory_out', RELIABLE, **ADJUSTABLE)
        self._publish_diagnostics = diagnostics.publisher(node)
        node.create_subscription(JointTrajectory, '~/trajectory_in', self._on_trajectory, RELIABLE, **ADJUSTABLE)
        if p.from_state:
            node.create_subscription(JointState, 'joint_states', self._on_state, SENSOR_DATA, **ADJUSTABLE)
        node.create_subscription(InertiaStamped, '~/payload', self._on_payload, RELIABLE)
        node.create_timer(1.0 / p.report_rate, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))
        node.get_logger().info(f'{machine.name}: trajectories with efforts at most {p.max_dt:g} s apart')

    def _on_state(self, msg):
        now = time.monotonic_ns()
        try:
            self._state = now, *self._states.read(msg)
        except PsdynError as error:
            self._rejections.add('joint_states', error, now)

    def _on_payload(self, msg):
        take_payload(self._loaded, msg, self._rejections, self._node.get_logger().info, time.monotonic_ns())

    def _on_trajectory(self, msg):
        began = time.monotonic_ns()
        if not msg.points:
            self._output.publish(msg)
            self._last = 'a trajectory without points'
            return
        try:
            if not self._output.get_subscription_count():
                topic = self._node.resolve_topic_name('~/trajectory_out')
                raise conversions.MessageError(f"nobody listens to '{topic}'; expected a controller")
            waypoints, _ = conversions.trajectory_from_msg(msg)
            feedforward = Feedforward(self._loaded.whole, waypoints.joints)
            feedforward.friction_scale = self._node.get_parameter('friction_scale').value
            start = self._start(feedforward, began) if waypoints.times[0] > 0.0 else None
            annotated = annotate(feedforward, waypoints, self._p.max_dt, start=start, clamp=self._p.clamp,
                                 tolerance=self._p.closure_tolerance)
        except PsdynError as error:
            self._rejections.add('trajectory_in', error, began)
            self._last = f'refused: {brief(error)}'
            return
        out = conversions.trajectory_to_msg(annotated.waypoints)
        out.header = msg.header
        for point, effort in zip(out.points, annotated.efforts):
            point.effort = effort.tolist()
        self._output.publish(out)
        self._passed += 1
        self._last = (f'{len(out.points)} points for {len(msg.points)} over {annotated.waypoints.times[-1]:.3g} s, '
                      f'in {(time.monotonic_ns() - began) / 1e6:.3g} ms')
        if annotated.clamped:
            self._last += f'; clamped at {annotated.clamped} of them'
        self._node.get_logger().info(self._last)

    def _start(self, feedforward, now):
        """Positions of the joints where the machine rests; None where that is not known, or where it moves."""
        if self._state is None or now - self._state[0] > self._p.state_timeout * SECOND:
            return None
        _, x, xd = self._state
        names, q, qd, _ = feedforward.manipulator.joint_state(x, xd)
        if np.abs(qd).max() > self._p.max_speed:
            return None
        return q[[names.index(name) for name in feedforward.joints]]

    def _report(self):
        refused = self._last.startswith('refused')
        payloads = [f'{payload[0]:g} kg on {link}' for link, payload in self._loaded.payloads.items()]
        self._publish_diagnostics(conversions.diagnostics_msg(
            self._now(), f'{self._node.get_name()}: trajectories', 'warn' if refused else 'ok', self._last, {
                'passed trajectories': self._passed,
                'payloads': ', '.join(payloads) or 'none',
                **self._rejections.values()}))


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('annotator', AnnotatorNode, args)


if __name__ == '__main__':
    sys.exit(main())
