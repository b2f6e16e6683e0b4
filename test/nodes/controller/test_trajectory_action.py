"""The action FollowJointTrajectory against a stand-in of its server: its real modules do not come from PyPI."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the node is one of ROS')

from builtin_interfaces.msg import Duration, Time  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402
from std_msgs.msg import Header  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.control.reference.goal import Result  # noqa: E402
from psdyn_ros.control.reference.trajectory import TrajectoryError  # noqa: E402
from psdyn_ros.control.safety.fault_table import State  # noqa: E402
from psdyn_ros.nodes.controller.follow_joint_trajectory import TrajectoryAction  # noqa: E402
from psdyn_ros.nodes.controller.node import Controller  # noqa: E402
from psdyn_ros.nodes.controller.trajectory_message import SerializedTrajectory  # noqa: E402
from psdyn_ros.nodes.controller.trajectory_validation import TrajectoryValidation  # noqa: E402
from psdyn_ros.nodes.runtime.rejection_log import Rejections  # noqa: E402

JOINTS = ('a', 'b')


class Server:
    """Stands for rclpy.action.ActionServer: keeps what it was made with."""

    def __init__(self, node, kind, name, **callbacks):
        self.node, self.name, self.callbacks, self.destroyed = node, name, callbacks, False

    def destroy(self):
        self.destroyed = True


class Handle:
    """Stands for a ServerGoalHandle: `execute` makes the result at once."""

    def __init__(self, request):
        self.request, self.ended, self.result, self.feedback = request, '', None, []
        for how in ('succeed', 'canceled', 'abort'):
            setattr(self, how, lambda how=how: setattr(self, 'ended', how))

    def execute(self, make):
        assert self.result is None
        self.result = make(self)

    def publish_feedback(self, message):
        self.feedback.append(message)


def feedback():
    return SimpleNamespace(joint_names=[], header=Header(), desired=JointTrajectoryPoint(),
                           actual=JointTrajectoryPoint(), error=JointTrajectoryPoint())


KIND = SimpleNamespace(Result=SimpleNamespace, Feedback=feedback)
ACTION = SimpleNamespace(ActionServer=Server, GoalResponse=SimpleNamespace(ACCEPT='accept', REJECT='reject'),
                         CancelResponse=SimpleNamespace(ACCEPT='accept', REJECT='reject'))


class Core:
    """What a `ControlCore` shows: a reference that ends at 2 s, and where the machine is."""

    def __init__(self):
        self.states = SimpleNamespace(enabled=True, state=State.HOLD, reasons={})
        self.manipulator = SimpleNamespace(coordinates=JOINTS, joints=JOINTS, name='machine')
        self.inputs = SimpleNamespace(time=0.0, seconds=lambda stamp: stamp * 1e-9,
                                      state_check=SimpleNamespace(x=np.zeros(2), xd=np.zeros(2)))
        self.law = SimpleNamespace(reference=SimpleNamespace(end=2.0, at_rest=lambda t: t >= 2.0))
        self.cancelled, self.interrupted, self.streaming, self.wrong = 0, False, False, None

    def cancel(self, now):
        self.cancelled += 1
        self.law.reference.at_rest = lambda t: t >= 1.0

    def validate_trajectory(self, waypoints, start):
        return SimpleNamespace(advance=lambda seconds: True)

    def execute(self, validated, now):
        if self.wrong is not None:
            raise self.wrong


@pytest.fixture
def served():
    clock = SimpleNamespace(now=lambda: SimpleNamespace(to_msg=Time))
    node = SimpleNamespace(get_clock=lambda: clock)
    core, rejections = Core(), Rejections(lambda text: None)
    checks = TrajectoryValidation(core, 500.0, lambda level, text: None)
    action = TrajectoryAction(node, core, checks, rejections, ACTION, KIND)
    return SimpleNamespace(action=action, core=core, checks=checks, rejections=rejections, server=action._server,
                           callbacks=action._server.callbacks)


def request(joints=JOINTS, seconds=2, tolerance=()):
    point = JointTrajectoryPoint(positions=[0.0] * len(joints), time_from_start=Duration(sec=seconds))
    return SimpleNamespace(
        trajectory=JointTrajectory(joint_names=list(joints), points=[point]), path_tolerance=list(tolerance),
        goal_tolerance=[], goal_time_tolerance=Duration())


def begun(served, passed=True, **given):
    handle = Handle(request(**given))
    assert served.callbacks['goal_callback'](handle.request) == 'accept'
    served.callbacks['handle_accepted_callback'](handle)
    if passed:
        served.checks.advance(0)
    return handle


def cycle(served, t, state=State.RUN, x=(0.0, 0.0)):
    served.core.inputs.time, served.core.inputs.state_check.x = t, np.array(x)
    desired = None if state in (State.STANDBY, State.SAFE) else np.zeros((3, 2))
    served.action.update(SimpleNamespace(state=state, desired=desired))


def test_a_goal_is_followed_to_its_end_with_feedback(served):
    assert served.server.name == '~/follow_joint_trajectory'
    handle = begun(served)
    cycle(served, 1.0, x=(0.1, 0.0))
    assert not handle.ended
    (message,) = handle.feedback
    assert message.joint_names == list(JOINTS)
    assert list(message.actual.positions) == [0.1, 0.0] and list(message.error.positions) == [-0.1, 0.0]
    cycle(served, 2.1, State.HOLD)
    assert handle.ended == 'succeed'
    assert handle.result.error_code == Result.SUCCESSFUL
    cycle(served, 2.2, State.HOLD)      # nothing is left to be judged


@pytest.mark.parametrize('spoil, enabled', [
    (lambda request: request.trajectory.points.clear(), True),
    (lambda request: request.trajectory.joint_names.append('c'), True),
    (lambda request: None, False),
])
def test_a_goal_that_cannot_be_read_or_comes_too_early_is_refused(served, spoil, enabled):
    wrong = request()
    spoil(wrong)
    served.core.states.enabled = enabled
    assert served.callbacks['goal_callback'](wrong) == 'reject'
    assert served.rejections.counts == {'follow_joint_trajectory': 1}


def test_a_goal_that_does_not_pass_its_checks_is_aborted_with_the_reason(served):
    served.core.wrong = TrajectoryError('point 3: it leaves the limits', 3)
    handle = begun(served)
    cycle(served, 0.1)
    assert handle.ended == 'abort' and 'point 3: it leaves the limits' in handle.result.error_string
    assert handle.result.error_code == Result.INVALID_GOAL


def test_a_tolerance_of_the_goal_ends_it_and_stops_the_machine(served):
    handle = begun(served, tolerance=[SimpleNamespace(name='a', position=0.05, velocity=0.0, acceleration=0.0)])
    cycle(served, 1.0, x=(0.1, 0.0))
    assert handle.ended == 'abort' and handle.result.error_code == Result.PATH_TOLERANCE_VIOLATED
    assert served.core.cancelled == 1


def test_streamed_points_take_the_place_of_a_goal(served):
    handle = begun(served)
    cycle(served, 0.5)
    served.core.streaming = True
    cycle(served, 0.6)
    assert handle.ended == 'abort' and 'another motion has taken its place' in handle.result.error_string


def test_a_cancellation_stops_the_machine_and_ends_when_it_rests(served):
    handle = begun(served)
    cycle(served, 0.5)
    assert served.callbacks['cancel_callback'](handle) == 'accept' and served.core.cancelled == 1
    cycle(served, 0.6)
    assert not handle.ended
    cycle(served, 1.1, State.HOLD)
    assert handle.ended == 'canceled'


@pytest.mark.parametrize('state', [State.HOLD, State.RUN])
def test_a_cancellation_while_it_is_checked_leaves_the_motion_in_progress_alone(served, state):
    first = begun(served)
    second = begun(served, passed=False)
    assert served.callbacks['cancel_callback'](second) == 'accept' and not second.ended
    cycle(served, 1.1, state)
    assert second.ended == 'canceled' and not served.checks.pending
    assert not first.ended and not served.core.cancelled


def test_reduced_speed_aborts_no_goal_neither_before_nor_at_its_end(served):
    served.core.states.reasons = {'state_missed': 'F01: the last state is 6 ms old'}
    handle = begun(served, passed=False)
    served.core.interrupted = True      # by what ended the motion before
    cycle(served, 0.1, State.HOLD)
    assert not handle.ended and served.checks.pending
    served.core.interrupted = False
    served.checks.advance(0)
    cycle(served, 2.1, State.HOLD)
    assert handle.ended == 'succeed'


def test_another_goal_takes_its_place_when_it_was_checked(served):
    first = begun(served)
    second = begun(served, passed=False)
    assert not first.ended
    served.checks.advance(0)
    assert first.ended == 'abort' and 'another motion' in first.result.error_string
    cycle(served, 2.1, State.HOLD)
    assert second.ended == 'succeed'


def from_topic(served, points=()):
    """Give a trajectory of the topic to the controller; without points it is unusable."""
    controller = object.__new__(Controller)
    controller._action, controller._validation = served.action, served.checks
    controller._inputs = SimpleNamespace(reject=lambda *reason: None)
    controller._read_trajectory(SerializedTrajectory(serialize_message(
        JointTrajectory(joint_names=JOINTS, points=points))))
    served.checks.advance(0)


@pytest.mark.parametrize('give', [begun, from_topic])
def test_what_cannot_be_followed_leaves_the_goal_in_progress_with_its_motion(served, give):
    first = begun(served)
    served.core.wrong = TrajectoryError('point 3: it leaves the limits', 3)
    give(served)
    cycle(served, 1.0)
    assert not first.ended and not served.checks.pending
    served.callbacks['cancel_callback'](first)
    assert served.core.cancelled == 1
    cycle(served, 1.1, State.HOLD)
    assert first.ended == 'canceled'


def test_a_trajectory_of_the_topic_takes_its_place_when_it_was_checked(served):
    first = begun(served)
    from_topic(served, request().trajectory.points)
    assert not first.ended
    served.checks.advance(0)
    assert first.ended == 'abort' and 'another motion' in first.result.error_string


@pytest.mark.parametrize('state, reasons', [
    (State.SAFE, {'emergency_stop': 'F36: the emergency stop is pressed'}),
    (State.STOPPING, {'tracking': 'F20: off'}), (State.HOLD, {'singular': 'F13: near'}), (State.STANDBY, {}),
])
def test_what_stops_the_machine_aborts_the_goal(served, state, reasons):
    handle = begun(served)
    served.core.states.reasons, served.core.interrupted = reasons, state is State.HOLD
    cycle(served, 0.5, state)
    assert handle.ended == 'abort'
    assert all(reason in handle.result.error_string for reason in reasons.values())


def test_a_goal_that_was_accepted_may_yet_be_too_late(served):
    handle = Handle(request())
    assert served.callbacks['goal_callback'](handle.request) == 'accept'
    served.core.states.enabled = False
    served.callbacks['handle_accepted_callback'](handle)
    assert handle.ended == 'abort' and 'not enabled' in handle.result.error_string


def test_with_the_node_the_goal_ends_too(served):
    handle = begun(served)
    served.action.destroy()
    assert handle.ended == 'abort' and served.server.destroyed
