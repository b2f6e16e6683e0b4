"""A goal of a FollowJointTrajectory action, driven as a node would drive it."""

import numpy as np
import pytest
from test_reference_motion import BOOMS, at, reference_of

import psdyn_ros
from psdyn_ros.control.reference.goal import Goal, GoalError, Result, Status, Tolerance, refusal, tolerances
from psdyn_ros.control.reference.trajectory import TrajectoryError, Waypoints


def test_the_numbers_are_those_of_the_messages():
    assert [int(code) for code in Result] == [0, -1, -2, -3, -4, -5]
    assert [int(status) for status in Status] == [1, 2, 3, 4, 5, 6]
    interfaces = pytest.importorskip('control_msgs.action', reason='control_msgs is not installed')
    for code in Result:
        assert getattr(interfaces.FollowJointTrajectory.Result, code.name) == code


# tolerances


def test_zero_takes_the_default_and_a_negative_number_is_none():
    joints = ('a', 'b', 'c')
    t = tolerances(joints, {'a': Tolerance(0.1), 'b': Tolerance(-1.0, 0.5), 'c': Tolerance()},
                   {'c': Tolerance(0.02)}, 2.0, default_path={'b': 0.3, 'c': 0.4}, default_goal={'a': 0.01})
    assert t.path.tolist() == [[0.1, np.inf, 0.4], [np.inf, 0.5, np.inf], [np.inf] * 3]
    assert t.goal.tolist() == [[0.01, np.inf, 0.02], [np.inf] * 3, [np.inf] * 3]
    assert t.goal_time == 2.0


@pytest.mark.parametrize('sent, default, seconds', [(0.0, 0.0, np.inf), (0.0, 3.0, 3.0), (1.0, 3.0, 1.0),
                                                    (-1.0, 3.0, np.inf)])
def test_the_time_to_reach_the_goal(sent, default, seconds):
    assert tolerances(('a',), goal_time=sent, default_goal_time=default).goal_time == seconds


@pytest.mark.parametrize('sent, code, says', [
    ({'path': {'lift_bom': Tolerance(1.0)}}, Result.INVALID_JOINTS, "path_tolerance of 'lift_bom'.*did you mean"),
    ({'goal': {'slew': Tolerance(np.nan)}}, Result.INVALID_GOAL, "goal_tolerance of 'slew'"),
    ({'goal_time': np.inf}, Result.INVALID_GOAL, 'goal_time_tolerance'),
])
def test_tolerances_that_mean_nothing_are_named(sent, code, says):
    with pytest.raises(GoalError, match=says) as caught:
        tolerances(BOOMS, **sent)
    assert caught.value.code is code is refusal(caught.value)


# from acceptance to result


def goal_of(crane, joints=None, stamp=-np.inf, **sent):
    """A goal under way over 0.1 m in 2 s, and its reference."""
    joints = joints or crane.actuators
    reference = reference_of(crane)
    names, q, _, _ = crane.joint_state(crane.initial_position + 0.05)
    target = [q[names.index(name)] for name in joints]
    reference.follow(Waypoints(joints, [2.0], [target], [np.zeros(4)]), 0.0, None if stamp == -np.inf else stamp)
    goal = Goal(crane, joints, tolerances(joints, **sent), *([] if stamp == -np.inf else [stamp]))
    assert goal.status is Status.ACCEPTED
    goal.execute()
    return goal, reference


def drive(goal, reference, until, off=0.0, start=0.0):
    """Update the goal as a controller does, with the machine off its reference by (4,); time of its end, or None."""
    for t in np.arange(start, until, 0.01):
        desired = at(reference, t)
        if goal.update(t, desired, desired[0] + off, desired[1], reference.end):
            return t
    return None


@pytest.mark.parametrize('joints', [None, BOOMS])
def test_a_goal_is_reached_at_the_end_of_its_trajectory(crane, joints):
    goal, reference = goal_of(crane, joints, path={'slew': Tolerance(1e-6)}, goal={'slew': Tolerance(1e-6, 1e-6)})
    assert drive(goal, reference, 5.0) == pytest.approx(2.0)
    assert (goal.status, goal.code, goal.text) == (Status.SUCCEEDED, Result.SUCCESSFUL, 'goal reached')
    assert goal.ended and goal.update(9.0, at(reference, 9.0), np.zeros(4), np.zeros(4), 2.0)
    assert np.abs(goal.feedback.error[:2]).max() < 1e-12


def test_a_slower_path_ends_later(crane):
    goal, reference = goal_of(crane)
    reference.set_speed(0.5, 1.0)
    assert drive(goal, reference, 5.0) == pytest.approx(reference.end, abs=0.011)
    assert reference.end > 2.8


def test_off_the_path_it_is_aborted_by_name(crane):
    off = np.array([0.0, 0.0, -0.02, 0.0])
    goal, reference = goal_of(crane, path={'tilt_cylinder': Tolerance(0.01), 'slew': Tolerance(0.01)})
    assert drive(goal, reference, 5.0, off) == 0.0
    assert (goal.status, goal.code) == (Status.ABORTED, Result.PATH_TOLERANCE_VIOLATED)
    assert 'position of tilt_cylinder is off by 0.02, tolerance 0.01' in goal.text
    assert goal.feedback.error[0, 2] == pytest.approx(0.02)


def test_off_the_goal_it_is_waited_for_so_long_and_no_longer(crane):
    off = np.array([0.0, 0.005, 0.0, 0.0])
    goal, reference = goal_of(crane, goal={'lift_cylinder': Tolerance(0.001)}, goal_time=0.5)
    assert drive(goal, reference, 2.4, off) is None
    assert goal.status is Status.EXECUTING
    assert drive(goal, reference, 5.0, off, 2.4) == pytest.approx(2.51)
    assert (goal.status, goal.code) == (Status.ABORTED, Result.GOAL_TOLERANCE_VIOLATED)
    assert 'after the end' in goal.text and 'lift_cylinder' in goal.text
    goal, reference = goal_of(crane, goal={'lift_cylinder': Tolerance(0.001)}, goal_time=0.5)
    assert drive(goal, reference, 2.3, off) is None
    assert drive(goal, reference, 5.0, 0.0, 2.3) == pytest.approx(2.3)
    assert goal.status is Status.SUCCEEDED


def test_before_its_start_a_goal_is_not_judged(crane):
    goal, reference = goal_of(crane, stamp=1.0, path={'slew': Tolerance(0.001)})
    off = np.array([0.01, 0.0, 0.0, 0.0])
    assert drive(goal, reference, 0.99, off) is None
    assert drive(goal, reference, 5.0, off, 0.99) == pytest.approx(1.0)
    assert goal.code is Result.PATH_TOLERANCE_VIOLATED


def test_feedback_is_in_the_joints_of_the_goal(crane):
    goal, reference = goal_of(crane, BOOMS)
    desired = at(reference, 1.0)
    x = desired[0] - 0.01
    goal.update(1.0, desired, x, desired[1], reference.end)
    names, q, qd, _ = crane.joint_state(x, desired[1])
    columns = [names.index(name) for name in BOOMS]
    assert goal.feedback.joints == BOOMS
    assert goal.feedback.actual[0] == pytest.approx(q[columns])
    assert goal.feedback.actual[1] == pytest.approx(qd[columns])
    assert goal.feedback.error[0] == pytest.approx(goal.feedback.desired[0] - q[columns])
    assert goal.feedback.desired[0, 1] == pytest.approx(crane.joint_state(desired[0])[1][columns[1]])


def test_a_canceled_goal_ends_when_the_machine_rests(crane):
    goal, reference = goal_of(crane)
    drive(goal, reference, 1.0)
    reference.stop(1.0)
    goal.cancel()
    assert goal.status is Status.CANCELING
    assert drive(goal, reference, 3.0, start=1.0) is None       # the end of a stop is not the goal
    assert reference.at_rest(3.0)
    goal.rest()
    assert (goal.status, goal.code) == (Status.CANCELED, Result.SUCCESSFUL) and 'canceled' in goal.text


def test_rest_without_a_cancellation_ends_nothing(crane):
    goal, _ = goal_of(crane)
    goal.rest()
    assert goal.status is Status.EXECUTING


def test_another_motion_ends_a_goal(crane):
    goal, _ = goal_of(crane)
    goal.preempt()
    assert (goal.status, goal.code) == (Status.ABORTED, Result.INVALID_GOAL) and 'another motion' in goal.text
    goal, _ = goal_of(crane)
    goal.cancel()
    goal.preempt()
    assert (goal.status, goal.code) == (Status.CANCELED, Result.SUCCESSFUL)


def test_what_has_ended_does_not_change_any_more(crane):
    goal, _ = goal_of(crane)
    goal.abort('HOLD: F19: the stream stopped', Result.INVALID_GOAL)
    text = goal.text
    assert 'F19' in text and goal.status is Status.ABORTED
    goal.preempt()
    goal.cancel()
    goal.rest()
    goal.execute()
    assert goal.status is Status.ABORTED and goal.text == text


@pytest.mark.parametrize('make, code', [
    (lambda m: Waypoints(m.actuators, [1.0], [np.full(4, np.nan)]), Result.INVALID_GOAL),
    (lambda m: Waypoints((*m.actuators, 'slew'), [1.0], [np.zeros(5)]), Result.INVALID_JOINTS),
    (lambda m: reference_of(m).follow(Waypoints(m.actuators, [1.0], [m.initial_position]), 10.0, 5.0),
     Result.OLD_HEADER_TIMESTAMP),
    (lambda m: reference_of(m).follow(Waypoints(('slew', 'a', 'b', 'c'), [1.0], [np.zeros(4)]), 0.0),
     Result.INVALID_JOINTS),
    (lambda m: reference_of(m).follow(Waypoints(('slew', 'lift_boom'), [1.0], [np.zeros(2)]), 0.0),
     Result.INVALID_JOINTS),
    (lambda m: reference_of(m).follow(Waypoints(m.actuators, [0.01], [m.initial_position + 0.1]), 0.0),
     Result.INVALID_GOAL),
])
def test_refused_trajectories_have_the_code_of_their_reason(crane, make, code):
    with pytest.raises(psdyn_ros.PsdynError) as caught:
        make(crane)
    assert refusal(caught.value) is code


def test_a_goal_of_joints_that_do_not_exist(crane):
    with pytest.raises(psdyn_ros.UnknownNameError, match="'lift_bom'.*did you mean"):
        Goal(crane, ('lift_bom',), tolerances(('lift_bom',)))
    assert isinstance(TrajectoryError('x'), psdyn_ros.PsdynError)
