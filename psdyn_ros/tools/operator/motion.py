"""A trajectory for a running controller: sent, accepted or rejected, followed to its end."""

import time
from contextlib import contextmanager

from trajectory_msgs.msg import JointTrajectory

from ...control.reference.trajectory import Waypoints
from ...control.safety.fault_table import State
from ...model.errors import UnknownNameError, did_you_mean
from ...nodes.messages.conversions import trajectory_to_msg
from .session import ENABLED, REPORT, OperatorError, RefusedError

MOVING = State.RUN, State.DEGRADED
REJECTED = 'joint_trajectory'
ARRIVED = 1e-3          # m or rad from the end of a motion to the reference that is held


def target(operator, positions, seconds):
    """Return `Waypoints` to {coordinate: m or rad} in so many seconds; other coordinates stay where they are.

    Raises UnknownNameError for a joint that is no coordinate, RefusedError where the controller takes no reference,
    OperatorError where it publishes none.
    """
    operator.require_enabled()
    with _references(operator) as references:
        if not operator.until(lambda: references):
            raise OperatorError(f'nothing came on {operator.controller}/reference within {operator.timeout:g} s')
    names = references[-1].joint_names
    for name in positions:
        if name not in names:
            raise UnknownNameError(f"'{name}' is no coordinate of the machine{did_you_mean(name, names)}; expected "
                                   f'some of {", ".join(names)}')
    now = dict(zip(names, references[-1].points[0].positions))
    return Waypoints(tuple(names), [seconds], [[positions.get(name, now[name]) for name in names]])


def follow(operator, waypoints, wait=True):
    """Let the controller follow `Waypoints`; return s until it holds their end, or until it accepts them.

    Raises RefusedError with the controller's reason where it rejects them, stops the machine or holds it elsewhere,
    OperatorError where it does not answer.
    """
    operator.require_enabled()
    operator.report()
    rejected = operator.values().get(f'rejected {REJECTED}', '0')
    publisher = operator.node.create_publisher(JointTrajectory, f'{operator.controller}/joint_trajectory', 1)
    if not operator.until(publisher.get_subscription_count):
        raise OperatorError(f'{operator.controller}/joint_trajectory has no subscriber')
    was_moving, reports = operator.state in MOVING, operator.reports
    operator.states_seen.clear()
    began = time.monotonic()
    publisher.publish(trajectory_to_msg(waypoints))

    def answered():
        values = operator.values()
        if values.get(f'rejected {REJECTED}', '0') != rejected:
            raise RefusedError(f'{operator.controller} rejected the trajectory: '
                               f'{values.get(f"last rejected {REJECTED}", "its log says why")}')
        _require_no_stop(operator)
        # of a controller that moved before, its second report after the message tells
        return operator.reports > reports + 1 if was_moving else operator.states_seen & set(MOVING)

    if not operator.until(answered):
        raise OperatorError(f'{operator.controller} did not begin to move within {operator.timeout:g} s: '
                            f'{operator.report()}')
    if wait:
        _wait_for_end(operator, waypoints)
    return time.monotonic() - began


def _wait_for_end(operator, waypoints):
    """Serve the node until the machine is held; the end of joints that are no coordinates is not compared."""
    end = dict(zip(waypoints.joints, waypoints.positions[-1]))
    with _references(operator) as references:
        while operator.state in MOVING:
            operator.until(lambda: operator.state not in MOVING, 1.0)
            if time.monotonic() - operator.state_time > operator.timeout:
                raise OperatorError(f'{operator.controller} reported nothing for {operator.timeout:g} s')
        _require_no_stop(operator)

        def left():
            return [name for held in references for name, position in zip(held.joint_names, held.points[0].positions)
                    if abs(position - end.get(name, position)) > ARRIVED]

        if not operator.until(lambda: references and not left(), REPORT):
            raise RefusedError(f'{operator.controller} does not hold the end of the motion ({", ".join(left())}): '
                               f'{operator.report()}')


@contextmanager
def _references(operator):
    """Yield a list of the last message with a reference, empty before the first one."""
    references = []

    def keep(message):
        references[:] = [message]

    subscription = operator.node.create_subscription(JointTrajectory, f'{operator.controller}/reference', keep, 1)
    try:
        yield references
    finally:
        operator.node.destroy_subscription(subscription)


def _require_no_stop(operator):
    if operator.state not in ENABLED:
        raise RefusedError(f'{operator.controller} stopped the machine: {operator.report()}')


def stop(operator):
    """Stop the machine and wait until it stands by; return a sentence, RefusedError where it does not come to that."""
    operator.disable()
    if not operator.until(lambda: operator.state in (State.STANDBY, State.SAFE)):
        raise RefusedError(f'{operator.controller} did not come to rest within {operator.timeout:g} s: '
                           f'{operator.report()}')
    if operator.state is State.SAFE:
        raise RefusedError(f'{operator.controller}: {operator.report()}')
    return 'the machine has stopped; safe output (STANDBY)'
