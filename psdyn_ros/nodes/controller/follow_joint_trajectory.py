"""The action FollowJointTrajectory, by which MoveIt and others execute; where control_msgs is installed.

Nothing waits for the end of a goal: rclpy would ask a coroutine that does in every turn of its executor. What makes the
result is called when there is one; until then the status of a goal is ACCEPTED, and feedback says how far it is.
"""

import time
from typing import NamedTuple

from ...control.reference.goal import Goal, Result, Status, Tolerance, refusal, tolerances
from ...control.reference.trajectory import TrajectoryError
from ...control.safety.fault_table import State
from ...model.errors import PsdynError
from ...model.units import SECOND
from ..messages.conversions import stamp_to_ns, trajectory_from_msg

FEEDBACK = SECOND // 20     # ns between two messages of feedback


class TrajectoryAction:
    """Serves ~/follow_joint_trajectory; one goal at a time is followed, the newest that passed its checks.

    A goal that cannot be read is refused. One that does not pass its checks, which take some cycles, is aborted with
    the reason, and the motion in progress goes on with its goal.

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
        self._followed = self._checked = None   # _Running that the machine follows; that is being checked
        self._published = 0             # ns of the last feedback
        self._server = action.ActionServer(
            node, kind, '~/follow_joint_trajectory', execute_callback=self._result, goal_callback=self._judge,
            handle_accepted_callback=self._begin, cancel_callback=self._cancel)

    def destroy(self):
        """Serve no more."""
        self.abort('the controller ends')
        self._server.destroy()

    def preempt(self):
        """Another trajectory, or streamed points, have taken the place of the goal that is followed."""
        if self._followed is not None:
            self._followed.goal.preempt()
            self._finish(self._followed)

    def abort(self, reason):
        """No goal can go on."""
        checked = self._checked
        for running in (checked, self._followed):
            if running is not None:
                running.goal.abort(reason)
                self._finish(running)
        if checked is not None:
            self._validation.forget()

    def update(self, output):
        """Judge the goals by an `Output` of the core; to be called in every cycle."""
        self._end_canceled()
        core, running = self._core, self._followed
        if output.state in (State.STANDBY, State.STOPPING, State.SAFE):
            self.abort(self._reasons())
        elif running is not None and core.streaming:
            self.preempt()
        elif running is not None:
            if core.interrupted and running.goal.status is Status.EXECUTING:
                running.goal.abort(self._reasons())
            elif output.desired is not None:
                self._follow(running, output)
            if running.goal.ended:
                self._finish(running)

    def _reasons(self):
        states = self._core.states
        return '; '.join(states.reasons.values()) or f'the controller is in {states.state.name}'

    def _end_canceled(self):
        """End a goal that was cancelled before it was followed."""
        checked = self._checked
        if checked is not None and checked.goal.status is Status.CANCELING:
            checked.goal.rest('canceled before it was followed')
            self._finish(checked)

    def _follow(self, running, output):
        goal, inputs, reference = running.goal, self._core.inputs, self._core.law.reference
        t = inputs.time
        goal.update(t, output.desired, inputs.state_check.x, inputs.state_check.xd, reference.end)
        now = time.monotonic_ns()
        if reference.at_rest(t):
            goal.rest()
        if goal.code is Result.PATH_TOLERANCE_VIOLATED:
            self._core.cancel(now)
        if goal.feedback is not None and now - self._published > FEEDBACK:
            self._published = now
            running.handle.publish_feedback(self._feedback_of(goal.feedback))

    def _finish(self, running):
        if running is self._followed:
            self._followed = None
        else:
            self._checked = None
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
        checked, running = self._checked, self._followed
        if checked is not None and checked.handle is handle:
            checked.goal.cancel()       # `update` ends it: the server knows of it only when this returns
            self._validation.forget()
        elif running is not None and running.handle is handle:
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
        self._end_canceled()
        running = _Running(handle, goal)
        self._validation.begin(waypoints, start, lambda error: self._end_check(running, error))
        if not goal.ended:
            self._checked = running

    def _end_check(self, running, error):
        """The trajectory of a goal was checked; error: why it cannot be followed, or None."""
        goal = running.goal
        if error is None:
            self._checked = None
            self.preempt()
            self._followed = running
            goal.execute()
        elif goal.status is Status.ACCEPTED:
            goal.abort(error, refusal(error))
            self._finish(running)

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


class _Running(NamedTuple):
    """A goal on its way."""

    handle: object
    """Of the action server."""
    goal: Goal
