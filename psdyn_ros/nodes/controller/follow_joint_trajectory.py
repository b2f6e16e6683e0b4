"""The action FollowJointTrajectory, by which MoveIt and others execute; where control_msgs is installed.

Nothing waits for the end of a goal: rclpy would ask a coroutine that does in every turn of its executor. What makes the
result is called when there is one; until then the status of a goal is ACCEPTED, and feedback says how far it is.
"""

import time

from ...control.reference.goal import Goal, Status, Tolerance, refusal, tolerances
from ...control.reference.trajectory import TrajectoryError
from ...control.safety.fault_table import State
from ...model.errors import PsdynError
from ...model.units import SECOND
from ..messages.conversions import stamp_to_ns, trajectory_from_msg

FEEDBACK = SECOND // 20     # ns between two messages of feedback


class TrajectoryAction:
    """Serves ~/follow_joint_trajectory; one goal at a time, the newest.

    A goal that cannot be read is refused. One that does not pass its checks, which take some cycles, is aborted with
    the reason, and the motion in progress goes on, though its end is reported to nobody any more.

    node        `rclpy.node.Node`
    core        `ControlCore`
    validation  `TrajectoryValidation`
    rejections  where goals that are refused are counted
    action      module rclpy.action
    kind        class of the action
    """

    def __init__(self, node, core, validation, rejections, action, kind):
        self._node, self._core, self._validation, self._action, self._kind = node, core, validation, action, kind
        self._rejections = rejections
        self._active = None             # _Running that the machine follows, or is being checked
        self._published = 0             # ns of the last feedback
        self._server = action.ActionServer(
            node, kind, '~/follow_joint_trajectory', execute_callback=self._result, goal_callback=self._judge,
            handle_accepted_callback=self._begin, cancel_callback=self._cancel)

    def destroy(self):
        """Serve no more."""
        self.abort('the controller ends')
        self._server.destroy()

    def preempt(self):
        """Another motion is about to take the place of the goal in progress."""
        if self._active is not None:
            self._active.goal.preempt()
            self._finish()

    def abort(self, reason):
        """The goal in progress cannot go on."""
        if self._active is not None:
            self._active.goal.abort(reason)
            self._finish()

    def update(self, output):
        """Judge the goal in progress by an `Output` of the core; to be called in every cycle."""
        running = self._active
        if running is None:
            return
        goal, core, state = running.goal, self._core, output.state
        if state in (State.STANDBY, State.STOPPING, State.SAFE) or (
                core.interrupted and goal.status is Status.EXECUTING):
            goal.abort('; '.join(core.states.reasons.values()) or f'the controller is in {state.name}')
        elif output.desired is not None:
            self._follow(goal, output)
        if goal.ended:
            self._finish()

    def _follow(self, goal, output):
        inputs, reference = self._core.inputs, self._core.law.reference
        t = inputs.time
        goal.update(t, output.desired, inputs.state_check.x, inputs.state_check.xd, reference.end)
        if reference.at_rest(t):
            goal.rest()
        now = time.monotonic_ns()
        if goal.feedback is not None and now - self._published > FEEDBACK:
            self._published = now
            self._active.handle.publish_feedback(self._feedback_of(goal.feedback))

    def _finish(self):
        running, self._active = self._active, None
        self._validation.forget()
        running.handle.execute(lambda handle: self._result(handle, running.goal))

    # what the action server asks

    def _judge(self, request):
        """Whether a goal can be read, and may come now."""
        responses = self._action.GoalResponse
        try:
            self._read(request)
        except PsdynError as error:
            self._rejections.add('follow_joint_trajectory', error, time.monotonic_ns())
            return responses.REJECT
        return responses.ACCEPT

    def _cancel(self, handle):
        running = self._active
        if running is not None and running.handle is handle:
            running.goal.cancel()
            self._core.cancel(time.monotonic_ns())
        return self._action.CancelResponse.ACCEPT

    def _begin(self, handle):
        """Let a goal that was accepted be checked, then followed."""
        try:
            waypoints, start, goal = self._read(handle.request)
        except PsdynError as error:     # since it was accepted
            reason = self._kind.Result(error_code=int(refusal(error)), error_string=str(error))
            handle.execute(lambda handle: self._aborted(handle, reason))
            return
        self.preempt()
        running = self._active = _Running(handle, goal)
        self._validation.begin(waypoints, start, running.checked)
        if goal.ended:
            self._finish()

    @staticmethod
    def _aborted(handle, result):
        handle.abort()
        return result

    def _result(self, handle, goal):
        """The result of a goal that has ended."""
        if goal.status is Status.SUCCEEDED:
            handle.succeed()
        elif goal.status is Status.CANCELED:
            handle.canceled()
        else:
            handle.abort()
        return self._kind.Result(error_code=int(goal.code), error_string=goal.text)

    def _read(self, request):
        """(waypoints, start in ns or None, `Goal`) of a request."""
        core = self._core
        if not core.states.enabled:
            raise TrajectoryError(f'the controller is in {core.states.state.name} and not enabled')
        waypoints, start = trajectory_from_msg(request.trajectory)
        sent = {field: {one.name: Tolerance(one.position, one.velocity, one.acceleration)
                        for one in getattr(request, f'{field}_tolerance')} for field in ('path', 'goal')}
        tolerance = tolerances(waypoints.joints, sent['path'], sent['goal'],
                               stamp_to_ns(request.goal_time_tolerance) / SECOND)
        stamp = core.inputs.time if start is None else core.inputs.seconds(start)
        return waypoints, start, Goal(core.manipulator, waypoints.joints, tolerance, stamp)

    def _feedback_of(self, feedback):
        message = self._kind.Feedback()
        message.joint_names = list(feedback.joints)
        message.header.stamp = self._node.get_clock().now().to_msg()
        for field in ('desired', 'actual', 'error'):
            point, rows = getattr(message, field), getattr(feedback, field)
            point.positions, point.velocities = rows[0].tolist(), rows[1].tolist()
        return message


class _Running:
    """A goal on its way.

    handle  of the action server
    goal    `Goal`
    """

    def __init__(self, handle, goal):
        self.handle, self.goal = handle, goal

    def checked(self, error):
        """The trajectory was checked; error: why it cannot be followed, or None."""
        if error is None:
            self.goal.execute()
        elif self.goal.status is not Status.CANCELING:
            self.goal.abort(error, refusal(error))
