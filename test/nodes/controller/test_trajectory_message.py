"""A serialised JointTrajectory read in slices is what rclpy makes of it; what is none is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip('rclpy', reason='the messages come with ROS')

from rclpy.serialization import serialize_message  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.control.reference.trajectory import TrajectoryError  # noqa: E402
from psdyn_ros.nodes.controller import trajectory_message  # noqa: E402
from psdyn_ros.nodes.controller.trajectory_message import SerializedTrajectory  # noqa: E402
from psdyn_ros.nodes.messages.conversions import MessageError, trajectory_from_msg  # noqa: E402


def message(joints=3, points=20, fields=('positions', 'velocities', 'accelerations'), stamp=0, frame='base'):
    rng = np.random.default_rng(5)
    msg = JointTrajectory(joint_names=[f'joint_{"x" * k}' for k in range(joints)])
    msg.header.frame_id, msg.header.stamp.sec = frame, stamp
    for k in range(points):
        point = JointTrajectoryPoint(**{field: rng.normal(size=joints).tolist() for field in fields})
        if k == points - 1 and 'velocities' in fields:
            point.velocities = [0.0] * joints
        point.time_from_start.sec, point.time_from_start.nanosec = k + 1, 500_000_000
        msg.points.append(point)
    return msg


def read(data, slices=1.0):
    reader, turns = SerializedTrajectory(data), 1
    while not reader.advance(slices):
        turns += 1
    return reader, turns


@pytest.mark.parametrize('joints', [1, 2, 3, 4])
@pytest.mark.parametrize('fields', [('positions',), ('positions', 'velocities'), ('positions', 'effort'),
                                    ('positions', 'velocities', 'accelerations', 'effort')])
@pytest.mark.parametrize('frame', ['', 'a', 'abc', 'abcdefg'])
def test_it_reads_what_rclpy_reads(joints, fields, frame):
    msg = message(joints, 5, fields, 7, frame)
    expected, start = trajectory_from_msg(msg)
    reader, _ = read(serialize_message(msg))
    found = reader.waypoints
    assert reader.start == start == 7_000_000_000 and found.joints == expected.joints
    for field in ('times', 'positions', 'velocities', 'accelerations'):
        ours, theirs = getattr(found, field), getattr(expected, field)
        assert (ours is None and theirs is None) or (ours == theirs).all()


def test_it_reads_in_slices():
    reader, turns = read(serialize_message(message(4, 1000)), 0.0)
    assert turns == 1000 // trajectory_message.AT_ONCE and reader.waypoints.times.size == 1000
    assert reader.start is None


def spoilt(change):
    msg = message()
    change(msg)
    return msg


def shorten(field, k):
    def change(msg):
        setattr(msg.points[k], field, getattr(msg.points[k], field)[:2])
    return change


def empty(field, k):
    def change(msg):
        setattr(msg.points[k], field, [])
    return change


@pytest.mark.parametrize('change, words', [
    (shorten('velocities', 3), 'point 3 has 2 velocities for 3 joints'),
    (shorten('positions', 0), 'point 0 has 2 positions for 3 joints'),
    (empty('positions', 2), 'point 2 has no positions'),
    (empty('velocities', 2), 'some points have velocities and some have none'),
    (empty('velocities', 0), 'some points have velocities and some have none'),
    (lambda msg: setattr(msg.points[1], 'effort', [1.0]), 'point 1 has 1 efforts for 3 joints'),
    (lambda msg: msg.points.clear(), 'has no points'),
    (lambda msg: msg.joint_names.clear(), 'names no joints'),
    (lambda msg: msg.points.extend(msg.points[:1] * 10_000), 'has 10020 points, at most 10000'),
    (lambda msg: msg.joint_names.extend(['a'] * 1000), '1003 joint names, at most 1000'),
    (lambda msg: msg.joint_names.append('x' * 2**20), 'a name of 1048577 bytes, at most 1000 are read'),
    (lambda msg: msg.points[4].positions.__setitem__(1, float('nan')), 'point 4 has positions that are not finite'),
])
def test_what_is_no_trajectory_is_refused_and_the_reason_named(change, words):
    with pytest.raises((MessageError, TrajectoryError), match=words):
        read(serialize_message(spoilt(change)))


def test_a_large_message_is_not_looked_at():
    with pytest.raises(MessageError, match='bytes, at most'):
        SerializedTrajectory(bytes(trajectory_message.MAX_BYTES + 1))


@given(st.integers(0, 600), st.integers(0, 255), st.integers(0, 700))
def test_no_byte_that_is_wrong_does_more_than_refuse_it(place, value, length):
    data = bytearray(serialize_message(message(2, 6)))
    data[min(place, len(data) - 1)] = value
    try:
        read(bytes(data[:max(length, 4)]))
    except (MessageError, TrajectoryError):
        pass
