"""More messages than a controller needs: one of each topic is read in a cycle, the rest is dropped or counted."""

from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from rclpy.serialization import serialize_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.nodes.controller.subscribers import MAX_JOINTS, ControllerInputs  # noqa: E402
from psdyn_ros.nodes.controller.trajectory_message import MAX_BYTES  # noqa: E402
from psdyn_ros.nodes.messages import conversions  # noqa: E402
from psdyn_ros.nodes.messages.streamed_point import PointReader  # noqa: E402


class Inputs:
    """The inputs of a controller without a node, and what they did."""

    def __init__(self, crane):
        self.points, self.states, self.rejected, self.reports = [], [], [], []
        core = SimpleNamespace(
            take_point=lambda stamp, now, *motion: self.points.append((stamp, *motion)),
            report=lambda now, name, result, text: self.reports.append((name, text)),
            reject_state=lambda now, name, text: self.reports.append((name, text)),
            inputs=SimpleNamespace(state_check=SimpleNamespace(measure=lambda joints: None)))
        inputs = self.inputs = object.__new__(ControllerInputs)
        inputs._core, inputs._now, inputs._points = core, lambda: 7, PointReader(crane)
        inputs._point, inputs._point_read, inputs._overtaken, inputs._simulated = None, False, 0, False
        inputs._rejections = SimpleNamespace(add=lambda topic, error, now: self.rejected.append((topic, str(error))))
        inputs._reader, inputs._joints = conversions.StateReader(crane, float('inf'), lambda names: None), ()
        inputs._on_state = lambda measured, began: self.states.append(measured)


def point(crane, slew):
    return serialize_message(JointTrajectory(joint_names=list(crane.actuators), points=[
        JointTrajectoryPoint(positions=[slew, 0.2, 0.3, 0.3])]))


def test_of_a_flood_of_points_one_is_read_in_each_cycle(crane):
    found = Inputs(crane)
    found.inputs.take_point()
    assert not found.points
    for k in range(1000):
        found.inputs._on_point(point(crane, 0.001 * k))
    found.inputs.take_point()
    assert [(stamp, x[0]) for stamp, x, *_ in found.points] == [(7, 0.0)]     # when it came
    found.inputs.take_point()
    found.inputs.take_point()
    assert [(stamp, x[0]) for stamp, x, *_ in found.points] == [(7, 0.0), (7, 0.999)] and not found.rejected
    assert found.reports == [('flood', '998 points were overtaken by another in the same cycle')]


def test_one_point_in_each_cycle_is_no_flood(crane):
    found = Inputs(crane)
    for k in range(10):
        found.inputs._on_point(point(crane, 0.001 * k))
        found.inputs.take_point()
    assert len(found.points) == 10 and not found.reports


def test_points_that_are_nonsense_are_counted(crane):
    found = Inputs(crane)
    for data in (b'', b'\x00\x01', b'\x00\x01\x00\x00' + b'\xff' * 60, b'x' * 70_000,
                 serialize_message(JointTrajectory())):
        found.inputs._on_point(data)
        found.inputs.take_point()
    assert not found.points and [topic for topic, _ in found.rejected] == 5 * ['point']
    assert [row for row, _ in found.reports] == 3 * ['reference_malformed'] + ['flood', 'reference_rejected']


def test_a_trajectory_that_is_too_large_is_a_flood(crane):
    found = Inputs(crane)
    for data in (b'', bytes(MAX_BYTES + 1)):
        found.inputs._trajectory(data)
    assert [row for row, _ in found.reports] == ['reference_malformed', 'flood']


@pytest.mark.parametrize('data, row', [
    (b'', 'state_malformed'), (b'\x00\x01\x00\x00' + b'\xff' * 60, 'state_malformed'), (bytes(300_000), 'flood'),
    (serialize_message(JointState(name=[str(k) for k in range(MAX_JOINTS + 1)])), 'flood'),
    (serialize_message(JointState(name=['slew', 'slew'], position=[0.0, 0.0], velocity=[0.0, 0.0])),
     'state_duplicate')],
    ids=('empty', 'wrong sizes', 'too long', 'too many joints', 'one joint twice'))
def test_states_that_cannot_be_read_are_reported_as_what_they_are(crane, data, row):
    found = Inputs(crane)
    found.inputs._state(data)
    assert not found.states and [name for name, _ in found.reports] == [row]
    assert [topic for topic, _ in found.rejected] == ['joint_states']
