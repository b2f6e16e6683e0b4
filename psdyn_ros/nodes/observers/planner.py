"""The node `planner`: poses of a link in, the fastest trajectory through them out.

    ~/goal            geometry_msgs/PoseStamped         in   of the link `link` in the root link of the machine; an
                                                             orientation of zeros: any
    ~/way             geometry_msgs/PoseArray           in   so too, one pose after the other
    joint_states      sensor_msgs/JointState            in   where the motion begins
    controller/joint_trajectory
                      trajectory_msgs/JointTrajectory   out  with efforts; or goals of FollowJointTrajectory
    /diagnostics      diagnostic_msgs/DiagnosticArray   out  the last plan, or why there is none

A goal waits until the machine rests and the controller listens; a newer one takes its place.  What cannot be planned is
refused with the reason, and a motion in progress goes on.  The controller checks each trajectory by its own rules.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped
from rclpy.clock import Clock, ClockType
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from ...api.orientation import rotation
from ...control.offline.planned_motion import plan_motion
from ...control.offline.time_optimal import check_plannable
from ...control.offline.way_file import check_link, reached
from ...control.planning_limits import SHARE, declared_limits
from ...control.reference.swing_shaper import KINDS, ZVD
from ...model.errors import PsdynError
from ...model.units import SECOND
from ..messages import conversions
from ..messages.action import action_modules
from ..runtime import deadlines, diagnostics, executor, parameters
from ..runtime.parameters import MACHINE, Parameter, ParameterError
from ..runtime.qos import ADJUSTABLE, RELIABLE, SENSOR_DATA
from ..runtime.rejection_log import Rejections, brief
from ..runtime.robot_description import load_machine

TOPIC, ACTION = 'topic', 'action'
POLL = 0.02                 # s between two looks at a plan in the making
UNIT = 1e-3                 # by which the length of a quaternion may differ from one
PARAMETERS = MACHINE + (
    Parameter('link', '', 'link that goals are poses of'),
    Parameter('hydraulics', '', 'YAML file of cylinders, valves and supply; empty: only limits of efforts count'),
    Parameter('safety', '', 'YAML file of accelerations and jerks; empty: none are limited'),
    Parameter('share', SHARE, 'of efforts, pressure, openings and flow that a plan uses', 0.01, 1.0),
    Parameter('straight', True, 'whether the link goes on straight lines from pose to pose'),
    Parameter('swing_shaper', ZVD, 'input shaper of the swing of a load that hangs', choices=KINDS),
    Parameter('max_speed', 0.01, 'm/s or rad/s up to which a machine counts as resting', 1e-6, 1.0),
    Parameter('state_timeout', 0.1, 's after which a state is stale', 0.001, 10.0),
    Parameter('closure_tolerance', 0.005, 'm or rad by which redundant joints may differ', 1e-9, 1.0),
    Parameter('output', TOPIC, 'how trajectories go to the controller; the action needs control_msgs',
              choices=(TOPIC, ACTION)),
    Parameter('action', 'controller/follow_joint_trajectory', 'name of that action'),
)


class PlannerNode:
    """Puts `plan_motion` on a node; plans are made beside it, so that it goes on listening."""

    def __init__(self, node):
        self._node = node
        p = self._p = parameters.declare(node, PARAMETERS)
        self._machine = m = load_machine(node, p)
        check_plannable(m)
        check_link(m, p.link, f"parameter link '{p.link}'")
        self._limits, self._jerk = declared_limits(m, p.hydraulics or None, p.safety or None, share=p.share)
        self._log = diagnostics.log_function(node)
        self._rejections = Rejections(node.get_logger().warning)
        self._now = deadlines.clock_of(node)
        self._states = conversions.StateReader(m.driven_machine, p.closure_tolerance, lambda names: None,
                                               m.passive_joints)
        self._state = None          # (ns on a steady clock, x, xd)
        self._goal = None           # poses that wait to be planned
        self._plan = None           # future of the plan in the making
        self._until = 0             # ns on the clock of the node, when the last motion is over
        self._planned, self._refused, self._last = 0, 0, 'no goal came'
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._send, self._listens = self._output()
        self._publish_diagnostics = diagnostics.publisher(node)
        on_state = self._rejections.checked('joint_states', self._on_state)
        for kind, topic, take, qos in ((PoseStamped, '~/goal', self._on_goal, RELIABLE),
                                       (PoseArray, '~/way', self._on_way, RELIABLE),
                                       (JointState, 'joint_states', on_state, SENSOR_DATA)):
            node.create_subscription(kind, topic, take, qos, **ADJUSTABLE)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(POLL, self._look, clock=steady)
        node.create_timer(1.0 / p.report_rate, self._report, clock=steady)
        node.get_logger().info(f"{m.name}: plans for poses of '{p.link}'")

    def end(self, failure):
        """Plan no more."""
        self._pool.shutdown(cancel_futures=True)

    def _output(self):
        """Return functions: one sends a JointTrajectory to the controller, one says whether that listens."""
        if self._p.output == TOPIC:
            publisher = self._node.create_publisher(JointTrajectory, 'controller/joint_trajectory', RELIABLE,
                                                    **ADJUSTABLE)
            return publisher.publish, publisher.get_subscription_count
        modules = action_modules()
        if modules is None:
            raise ParameterError("parameter output 'action' needs control_msgs, which is not installed; expected "
                                 f"'{TOPIC}'")
        module, kind = modules
        client = module.ActionClient(self._node, kind, self._p.action)
        return _Client(client, kind, self._said).send, client.server_is_ready

    def _said(self, text, refused):
        self._last, self._refused = text, self._refused + refused
        self._log('warning' if refused else 'info', text)

    def _on_state(self, msg):
        self._state = time.monotonic_ns(), *self._states.read(msg)

    def _on_goal(self, msg):
        self._take('goal', msg.header, [msg.pose])

    def _on_way(self, msg):
        self._take('way', msg.header, msg.poses)

    def _take(self, topic, header, poses):
        """Keep the poses of a message until they can be planned."""
        root = self._machine.links[0]
        try:
            if header.frame_id.removeprefix('/') not in ('', root):
                raise conversions.MessageError(f"frame_id is '{brief(header.frame_id)}'; expected the root link "
                                               f"'{root}', or nothing")
            if not poses:
                raise conversions.MessageError('it has no poses')
            goal = [_pose(number, pose) for number, pose in enumerate(poses)]
        except PsdynError as error:
            self._rejections.add(topic, error, time.monotonic_ns())
            self._last, self._refused = f'{topic} refused: {brief(error)}', self._refused + 1
            return
        self._goal, self._last = goal, 'a goal waits until the machine rests and the controller listens'

    def _look(self):
        """Send a plan that is ready, and begin one where a goal waits and nothing else has to be waited for."""
        if self._plan is not None:
            if not self._plan.done():
                return
            plan, self._plan = self._plan, None
            if self._goal is None:      # else a newer goal came meanwhile
                self._finish(plan)
        if self._goal is not None and self._rests() and self._listens():
            goal, self._goal, self._last = self._goal, None, 'a plan is being made'
            self._plan = self._pool.submit(self._make, self._state[1], goal)

    def _rests(self):
        if self._state is None or time.monotonic_ns() - self._state[0] > self._p.state_timeout * SECOND:
            return False
        return self._now() >= self._until and np.abs(self._state[2]).max() <= self._p.max_speed

    def _make(self, x, goal):
        """Return the `PlannedMotion` from x (dof,) through poses."""
        p, m = self._p, self._machine
        way = reached(m.driven_machine, p.link, x, goal, p.straight, 'goal')
        return plan_motion(m, way, self._limits, jerk=self._jerk, shaper=p.swing_shaper)

    def _finish(self, plan):
        try:
            motion = plan.result()
            if not self._listens():
                raise conversions.MessageError('the controller listens no longer')
        except PsdynError as error:
            self._said(f'refused: {brief(error)}', True)
            return
        message = conversions.trajectory_to_msg(motion.waypoints(self._machine))
        for point, effort in zip(message.points, motion.f):
            point.effort = effort.tolist()
        self._until = self._now() + round(motion.duration * SECOND)
        self._planned += 1
        self._said(f'a motion of {motion.duration:.3f} s', False)
        self._send(message)

    def _report(self):
        silent = self._state is None or time.monotonic_ns() - self._state[0] > self._p.state_timeout * SECOND
        text = 'no joint_states come' if silent else self._last
        level = 'warn' if silent or 'refused' in self._last else 'ok'
        self._publish_diagnostics(conversions.diagnostics_msg(
            self._now(), f'{self._node.get_name()}: plans', level, text, {
                'planned motions': self._planned, 'refused goals': self._refused, 'last': self._last,
                **self._rejections.values()}))


class _Client:
    """Sends trajectories as goals of FollowJointTrajectory; said: function of (text, whether it is a refusal)."""

    def __init__(self, client, kind, said):
        self._client, self._kind, self._said = client, kind, said

    def send(self, message):
        """Send a JointTrajectory."""
        goal = self._kind.Goal()
        goal.trajectory = message
        self._client.send_goal_async(goal).add_done_callback(self._answered)

    def _answered(self, future):
        handle = future.result()
        if not handle.accepted:
            self._said('goal refused by the controller', True)
            return
        handle.get_result_async().add_done_callback(self._ended)

    def _ended(self, future):
        result = future.result().result
        failed = result.error_code != self._kind.Result.SUCCESSFUL
        self._said(f'goal refused by the controller: {brief(result.error_string)}' if failed else 'the goal is reached',
                   failed)


def _pose(number, pose):
    """Return (position (3,), rotation (3, 3) or None, None) of a geometry_msgs/Pose."""
    p, q = pose.position, pose.orientation
    position, turn = np.array([p.x, p.y, p.z]), np.array([q.x, q.y, q.z, q.w])
    if not (np.isfinite(position).all() and np.isfinite(turn).all()):
        raise conversions.MessageError(f'pose {number} has numbers that are not finite')
    if not turn.any():
        return position, None, None
    length = np.linalg.norm(turn)
    if abs(length - 1.0) > UNIT:
        raise conversions.MessageError(f'pose {number} has a quaternion of length {length:.4g}; expected 1, or zeros '
                                       'for any orientation')
    return position, rotation(turn / length), None


def main(args=None):
    """Run the node; returns the exit code of the process."""
    return executor.run('planner', PlannerNode, args)


if __name__ == '__main__':
    sys.exit(main())
