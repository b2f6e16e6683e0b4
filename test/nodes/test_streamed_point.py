"""One streamed point of a reference, in whatever joints it is given."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.model.errors import PsdynError  # noqa: E402
from psdyn_ros.nodes.messages.conversions import MessageError  # noqa: E402
from psdyn_ros.nodes.messages.streamed_point import PointReader  # noqa: E402


def point(names, positions, velocities=(), accelerations=(), count=1):
    rows = (np.array(row, dtype=float).tolist() for row in (positions, velocities, accelerations))
    fields = dict(zip(('positions', 'velocities', 'accelerations'), rows))
    return JointTrajectory(joint_names=list(names), points=count * [JointTrajectoryPoint(**fields)])


def test_coordinates_in_any_order_without_what_is_not_given(crane):
    reader, order = PointReader(crane), [2, 0, 3, 1]
    values = np.array([0.1, 0.2, 0.3, 0.4])
    message = point([crane.coordinates[k] for k in order], values[order], accelerations=5.0 * values[order])
    x, xd, xdd = reader.read(message)
    assert np.array_equal(x, values) and xd is None and np.array_equal(xdd, 5.0 * values)


def test_joints_that_fix_the_coordinates(crane):
    joints = crane.initial_position
    names, position, velocity, _ = crane.joint_state(joints, np.array([0.1, 0.02, -0.03, 0.04]))
    wanted = [name for name in names if name.endswith('boom') or name in ('slew', crane.coordinates[-1])]
    pick = [list(names).index(name) for name in wanted]
    x, xd, xdd = PointReader(crane).read(point(wanted, position[pick], velocity[pick]))
    np.testing.assert_allclose(x, joints, atol=1e-9)
    np.testing.assert_allclose(xd, [0.1, 0.02, -0.03, 0.04], atol=1e-9)
    assert xdd is None


@pytest.mark.parametrize('message, what', [
    (point(['slew'], [0.0]), 'do not fix'), (point(['slew'], [], count=0), '0 points; expected one'),
    (point(['slew', 'nothing'], [0.0, 0.0]), 'nothing'), (point(['slew', 'slew'], [0.0, 0.0]), 'more than once')])
def test_what_was_refused_for_its_names_is_refused_again_for_the_same_reason_without_a_search(crane, message, what,
                                                                                              monkeypatch):
    reader, said = PointReader(crane), []
    for _ in range(3):
        with pytest.raises(PsdynError, match=what) as caught:
            reader.read(message)
        said.append(str(caught.value))
        monkeypatch.setattr(reader, '_maps', None)
    assert len(set(said)) == 1
    good = point(crane.coordinates, crane.initial_position)
    monkeypatch.undo()
    assert np.array_equal(reader.read(good)[0], crane.initial_position)


@pytest.mark.parametrize('rows, what', [
    (([0.1, 0.2, 0.3],), '3 positions for 4 joints'), (([],), '0 positions for 4 joints'),
    (([0.1] * 4, [0.0]), '1 velocities for 4 joints'), (([0.1] * 4, [], [0.0] * 5), '5 accelerations for 4 joints'),
    (([0.1, 0.2, np.nan, 0.4],), 'not finite'), (([0.1] * 4, [np.inf] * 4), 'not finite')])
def test_points_that_say_too_little_or_no_numbers_are_refused(crane, rows, what):
    with pytest.raises(MessageError, match=what):
        PointReader(crane).read(point(crane.coordinates, *rows))
