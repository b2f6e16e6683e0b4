"""A goal of a FollowJointTrajectory action: what it asks for, how far it has come, and how it ended. Without ROS.

Numbers and meanings are those of control_msgs/action/FollowJointTrajectory and action_msgs/msg/GoalStatus. Tolerances
behave as those of joint_trajectory_controller: 0 takes the default, a negative number is none; a time tolerance of 0
without a default waits for as long as it takes.
"""

from enum import IntEnum
from math import inf
from typing import NamedTuple

import numpy as np

from ...model.errors import MeasurementError, PsdynError, UnknownNameError, did_you_mean
from .trajectory import TrajectoryJointsError, TrajectoryOverError, TrajectoryStampError


class Result(IntEnum):
    """Codes of the result."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class Status(IntEnum):
    """Of a goal, as action_msgs/msg/GoalStatus."""

    ACCEPTED = 1
    EXECUTING = 2
    CANCELING = 3
    SUCCEEDED = 4
    CANCELED = 5
    ABORTED = 6


ENDED = (Status.SUCCEEDED, Status.CANCELED, Status.ABORTED)


class GoalError(PsdynError):
    """A goal that is refused; `code` is the `Result`."""

    def __init__(self, message, code=Result.INVALID_GOAL):
        super().__init__(message)
        self.code = code


class Tolerance(NamedTuple):
    """Of one joint, as control_msgs/msg/JointTolerance: 0 the default, negative none."""

    position: float = 0.0
    velocity: float = 0.0
    acceleration: float = 0.0


class Tolerances(NamedTuple):
    """Of all joints of a goal: rows position, velocity, acceleration (3, n), inf where there is none."""

    path: np.ndarray
    goal: np.ndarray
    goal_time: float        # s after the end of the trajectory until which the goal may be reached; inf: any time


def tolerances(joints, path=None, goal=None, goal_time=0.0, *, default_path=None, default_goal=None,
               default_goal_time=0.0):
    """`Tolerances` of a goal.

    path, goal                  {joint: `Tolerance`} as sent
    default_path, default_goal  {joint: m or rad} where nothing or 0 is sent; joints left out have none
    goal_time                   s as sent: 0 takes the default, negative any time; a default of 0 is any time
    Raises GoalError for joints that the trajectory does not name, and for numbers that are none.
    """
    if not np.isfinite([goal_time, default_goal_time]).all():
        raise GoalError(f'goal_time_tolerance = {goal_time!r}: expected a finite number')
    seconds = goal_time if goal_time != 0.0 else default_goal_time
    return Tolerances(_rows('path_tolerance', joints, path or {}, default_path or {}),
                      _rows('goal_tolerance', joints, goal or {}, default_goal or {}),
                      seconds if seconds > 0.0 else inf)


def _rows(what, joints, sent, defaults):
    rows = np.full((3, len(joints)), inf)
    rows[0] = [defaults.get(joint, inf) for joint in joints]
    for name, tolerance in sent.items():
        if name not in joints:
            raise GoalError(f"{what} of '{name}': no joint of the trajectory{did_you_mean(name, joints)}",
                            Result.INVALID_JOINTS)
        if not np.isfinite(tolerance).all():
            raise GoalError(f"{what} of '{name}' is {tuple(tolerance)}: expected finite numbers")
        for row, value in enumerate(tolerance):
            if value != 0.0:
                rows[row, joints.index(name)] = value if value > 0.0 else inf
    return rows


class Feedback(NamedTuple):
    """Rows position, velocity, acceleration (3, n) in the order of the joints of the goal."""

    joints: tuple
    desired: np.ndarray
    actual: np.ndarray
    error: np.ndarray


class Goal:
    """One goal, from its acceptance to its result.

    manipulator  whose joints the trajectory names
    joints       of the trajectory
    tolerance    `Tolerances`
    stamp        s of the trajectory clock at which it begins; earlier it is not judged

    `status`, and after the end `code` and `text`, are what the action server answers.
    """

    def __init__(self, manipulator, joints, tolerance, stamp=-inf):
        self.joints = tuple(joints)
        for name in self.joints:
            if name not in manipulator.joints:
                raise UnknownNameError(f"joint '{name}': no movable joint of '{manipulator.name}'"
                                       f'{did_you_mean(name, manipulator.joints)}')
        self._manipulator, self._tolerance, self._stamp = manipulator, tolerance, stamp
        self._columns = [manipulator.joints.index(name) for name in self.joints]
        self._plain = self.joints == tuple(manipulator.coordinates)
        self.status, self.code, self.text = Status.ACCEPTED, None, ''
        self.feedback = None        # `Feedback` of the last update

    @property
    def ended(self):
        """Whether there is a result."""
        return self.status in ENDED

    def execute(self):
        """It is the goal that the machine follows."""
        if self.status is Status.ACCEPTED:
            self.status = Status.EXECUTING

    def update(self, t, desired, x, xd, end):
        """Judge the state x, xd (dof,) at time t against `desired` (x, xd, xdd) of the reference; True: it has ended.

        end  time at which the reference comes to its end at its present speed
        """
        if self.ended:
            return True
        wanted, actual = self._in_joints(desired), self._in_joints((x, xd, desired[2]))
        actual[2] = np.nan          # nobody measures it
        error = wanted - actual
        self.feedback = Feedback(self.joints, wanted, actual, error)
        if self.status is not Status.EXECUTING or t < self._stamp:
            return False
        if t < end:
            broken = self._broken(error, self._tolerance.path)
            if broken:
                self._end(Status.ABORTED, Result.PATH_TOLERANCE_VIOLATED, f'path tolerance violated: {broken}')
            return self.ended
        broken = self._broken(error, self._tolerance.goal)
        if not broken:
            self._end(Status.SUCCEEDED, Result.SUCCESSFUL, 'goal reached')
        elif t > end + self._tolerance.goal_time:
            self._end(Status.ABORTED, Result.GOAL_TOLERANCE_VIOLATED,
                      f'{t - end:.3g} s after the end of the trajectory, goal tolerance violated: {broken}')
        return self.ended

    def cancel(self):
        """A cancellation was asked for and taken: the machine comes to rest."""
        if not self.ended:
            self.status = Status.CANCELING

    def rest(self, text='canceled: the machine stopped and holds its position'):
        """The machine has come to rest after a cancellation."""
        if self.status is Status.CANCELING:
            self._end(Status.CANCELED, Result.SUCCESSFUL, text)

    def preempt(self):
        """Another goal, or a trajectory from the topic, has taken its place."""
        if self.status is Status.CANCELING:
            self._end(Status.CANCELED, Result.SUCCESSFUL, 'canceled; another motion has taken its place')
        else:
            self.abort('another motion has taken its place')

    def abort(self, reason, code=Result.INVALID_GOAL):
        """The controller stopped for a reason of its own."""
        if not self.ended:
            self._end(Status.ABORTED, code, f'aborted: {reason}')

    def _end(self, status, code, text):
        self.status, self.code, self.text = status, code, text

    def _in_joints(self, state):
        if self._plain:
            return np.array(state, dtype=float)
        return np.array(self._manipulator.joint_state(*state)[1:])[:, self._columns]

    def _broken(self, error, tolerance):
        """Which tolerance is violated; empty: none. What is not known violates none."""
        beyond = np.abs(error) > tolerance
        if not beyond.any():
            return ''
        row, column = np.argwhere(beyond)[0]
        what = ('position', 'velocity', 'acceleration')[row]
        return (f'{what} of {self.joints[column]} is off by {error[row, column]:.4g}, tolerance '
                f'{tolerance[row, column]:.4g}')


def refusal(error):
    """`Result` of the PsdynError with which a goal or its trajectory was refused."""
    if isinstance(error, GoalError):
        return error.code
    if isinstance(error, (TrajectoryOverError, TrajectoryStampError)):
        return Result.OLD_HEADER_TIMESTAMP
    if isinstance(error, (TrajectoryJointsError, UnknownNameError, MeasurementError)):
        return Result.INVALID_JOINTS
    return Result.INVALID_GOAL
