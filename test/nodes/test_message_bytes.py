"""Messages out of raw subscriptions, bounded in size, and the messages that a controller publishes."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from psdyn_ros.nodes.controller import publishers  # noqa: E402
from psdyn_ros.nodes.messages.conversions import (  # noqa: E402
    MAX_MESSAGE_BYTES,
    SECOND,
    MessageError,
    OversizeError,
    read_message,
    stamp_to_ns,
)

STAMP = 1_700_000_000 * SECOND + 987_654_321


def joint_state():
    msg = JointState(name=['slew', 'Größe', ''], position=[1.0, -2.5, 3e300], velocity=[0.0, 1.0, -0.0],
                     effort=[np.inf, np.nan, 1.0])
    msg.header.stamp.sec, msg.header.stamp.nanosec = divmod(STAMP, SECOND)
    return msg


def test_a_message_is_read_as_it_was_sent():
    assert repr(read_message(serialize_message(joint_state()), JointState)) == repr(joint_state())


@pytest.mark.parametrize('kind', [JointState, Float64MultiArray, JointTrajectory])
@pytest.mark.parametrize('data', [b'', b'\x00\x01', b'\x00\x01\x00\x00', b'\x00\x01\x00\x00' + b'\xff' * 60])
def test_bytes_that_are_no_message_are_refused(data, kind):
    with pytest.raises(MessageError, match='the message cannot be read'):
        read_message(data, kind)


def test_more_bytes_than_agreed_are_refused_unread():
    with pytest.raises(OversizeError, match=f'a message of {MAX_MESSAGE_BYTES + 1} bytes, at most {MAX_MESSAGE_BYTES}'):
        read_message(bytes(MAX_MESSAGE_BYTES + 1), JointState)
    with pytest.raises(OversizeError, match='at most 10 are read'):
        read_message(serialize_message(joint_state()), JointState, 10)


def test_bytes_changed_anywhere_are_read_or_refused(rng):
    """Nothing but `MessageError` leaves the reader, whatever a stranger sends."""
    sound, read = serialize_message(joint_state()), 0
    for _ in range(300):
        data = bytearray(sound)
        for place in rng.integers(0, len(data), rng.integers(1, 4)):
            data[place] = rng.integers(256)
        if rng.random() < 0.3:
            data = data[:rng.integers(len(data) // 2, len(data) + 1)]
        try:
            read_message(bytes(data), JointState)
            read += 1
        except MessageError:
            pass
    assert 50 < read < 300


def sent(message):
    """The message as it is received."""
    return deserialize_message(serialize_message(message), type(message))


def test_commands_are_in_the_field_of_their_interface_and_nan_in_others():
    command = np.array([0.5, 2e6, -3e4])
    writer = publishers._CommandWriter(('a', 'b', 'c'), ('valve', 'pressure', 'effort'), np.ones(3, dtype=bool))
    msg = sent(writer.fill(command, STAMP))
    assert list(msg.name) == ['a', 'b', 'c'] and stamp_to_ns(msg.header.stamp) == STAMP and not len(msg.velocity)
    assert np.array_equal(msg.position, [0.5, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(msg.effort, [np.nan, 2e6, -3e4], equal_nan=True)


def test_commands_that_are_left_out_are_not_named():
    writer = publishers._CommandWriter(('a', 'b', 'c'), ('effort',) * 3, np.array([True, False, True]))
    msg = sent(writer.fill(np.array([0.5, 2e6, -3e4]), STAMP + 1))
    assert list(msg.name) == ['a', 'c'] and msg.effort.tolist() == [0.5, -3e4]
    assert publishers._CommandWriter(('a',), ('effort',), np.array([False])).names == []
