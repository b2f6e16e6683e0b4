"""Messages written and read as bytes: the same as rclpy makes of them, whatever they look like."""

import math
import struct

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.nodes.controller import publishers
from psdyn_ros.nodes.messages import cdr_templates  # noqa: E402
from psdyn_ros.nodes.messages.cdr_templates import (
    LARGEST,
    ArrayBytes,
    BytesWriter,
    JointStateBytes,
    PointBytes,
    exact_bytes,
)
from psdyn_ros.nodes.messages.conversions import (
    SECOND,
    JointStateWriter,
    LabelledArrayWriter,
    MessageError,
    ReferenceWriter,
    stamp_to_ns,
)

NAMES = ['slew', 'lift_cylinder', 'x', 'Größe', '']
STAMP = 1_700_000_000 * SECOND + 987_654_321


def joint_state(names=NAMES, values=(1.0, -2.5, 3e300), stamp=STAMP, frame='', fields=(1, 1, 1)):
    """A JointState whose fields are multiples of `values`, repeated, or empty."""
    row = np.resize(np.array(values, dtype=float), len(names))
    msg = JointState(name=list(names), **{field: (row * (k + 1)).tolist() if has else [] for k, (field, has) in
                                          enumerate(zip(('position', 'velocity', 'effort'), fields))})
    msg.header.stamp.sec, msg.header.stamp.nanosec = divmod(stamp, SECOND)
    msg.header.frame_id = frame
    return msg


def said(reader):
    return (reader.stamp, list(reader.name), *(np.array(values).tolist() for values in (
        reader.position, reader.velocity, reader.effort)))


def expected(msg):
    return (stamp_to_ns(msg.header.stamp), list(msg.name), msg.position.tolist(), msg.velocity.tolist(),
            msg.effort.tolist())


# writing


@pytest.mark.parametrize('used', [('position',), ('effort', 'velocity'), ('position', 'velocity', 'effort')])
def test_what_is_written_in_place_is_what_rclpy_would_have_written(used):
    plain = JointStateWriter(NAMES, used)
    writer = BytesWriter(plain.message, [getattr(plain, field) for field in used], plain.message.header.stamp)
    for k in range(3):
        for field, values in zip(used, writer.values):
            values[:] = getattr(plain, field)[:] = np.arange(5.0) * (k + 1) - len(field)
        stamp = STAMP + 7 * k
        got = deserialize_message(writer.stamp(stamp), JointState)
        assert got == plain.stamp(stamp)


def test_a_writer_leaves_its_message_as_it_was_and_begins_with_it():
    plain = JointStateWriter(NAMES, ('effort',))
    plain.effort[:] = [math.pi, 0.0, 1.0, 2.0, 3.0]
    plain.stamp(0)
    writer = BytesWriter(plain.message, [plain.effort])
    assert plain.effort.tolist() == [math.pi, 0.0, 1.0, 2.0, 3.0]
    assert deserialize_message(writer.bytes(), JointState) == plain.message


def test_arrays_with_labels_and_trajectories_of_one_point():
    plain = LabelledArrayWriter(('a', 'b'), ('x', 'y', 'z'))
    writer = BytesWriter(plain.message, [plain.values])
    plain.values[:] = writer.values[0][:] = np.arange(6.0).reshape(2, 3) / 7.0
    assert deserialize_message(writer.bytes(), Float64MultiArray) == plain.message
    plain = ReferenceWriter(['a', 'b'])
    writer = BytesWriter(plain.message, [plain.position, plain.velocity, plain.acceleration],
                         plain.message.header.stamp)
    rows = np.arange(6.0).reshape(3, 2) + 0.1
    for values, row in zip(writer.values, rows):
        values[:] = row
    assert deserialize_message(writer.stamp(STAMP), JointTrajectory) == plain.fill(STAMP, *rows)


def test_bytes_that_were_given_away_do_not_change():
    plain = LabelledArrayWriter(('a',))
    writer = BytesWriter(plain.message, [plain.values])
    before = writer.bytes()
    writer.values[0][:] = 5.0
    assert before != writer.bytes() and deserialize_message(before, Float64MultiArray).data.tolist() == [0.0]


def test_where_numbers_are_not_found_it_is_said(monkeypatch):
    monkeypatch.setattr(cdr_templates, 'serialize_message', lambda msg: b'\x00\x01\x00\x00 as another one writes it')
    plain = LabelledArrayWriter(('a',))
    assert BytesWriter(plain.message, [plain.values]).values is None


# reading


@pytest.mark.parametrize('fields', [(1, 1, 1), (1, 1, 0), (1, 0, 0), (0, 0, 0), (0, 1, 1)])
@pytest.mark.parametrize('frame', ['', 'base', 'a_frame'])
def test_joint_states_are_read_in_place_once_one_like_them_came(fields, frame, monkeypatch):
    reader = JointStateBytes()
    first = joint_state(fields=fields, frame=frame)
    reader.read(serialize_message(first))
    assert said(reader) == expected(first)
    monkeypatch.setattr(cdr_templates, 'deserialize_message', None)       # is needed no more
    for k in range(1, 4):
        msg = joint_state(values=(k, math.inf, -0.0, k / 3), stamp=STAMP + 2_000_000 * k, fields=fields, frame=frame)
        reader.read(serialize_message(msg))
        assert said(reader) == expected(msg)


def test_any_change_beside_the_numbers_is_read_anew():
    reader = JointStateBytes()
    orders = [joint_state(), joint_state(NAMES[::-1]), joint_state(['Slew', *NAMES[1:]]), joint_state(frame='base'),
              joint_state(fields=(1, 0, 1)), joint_state(NAMES[:2]), joint_state([]), joint_state(fields=(1, 1, 0))]
    for msg in [*orders, *orders[::-1], *orders]:
        reader.read(serialize_message(msg))
        assert said(reader) == expected(msg)


def test_what_fills_gaps_may_be_anything(monkeypatch):
    reader = JointStateBytes()
    data = bytearray(serialize_message(joint_state()))
    reader.read(bytes(data))
    monkeypatch.setattr(cdr_templates, 'deserialize_message', None)
    assert data[16:17] == b'\0' and data[12:16] == b'\1\0\0\0'       # the empty frame; then three bytes up to the names
    data[17:20] = b'any'
    reader.read(bytes(data))
    assert said(reader) == expected(joint_state())


def test_arrays_are_read_in_place():
    reader = ArrayBytes()
    for rows, values in ((('a', 'b'), [1.0, 2.0]), (('a', 'b'), [math.nan, 4.0]), (('a', 'c'), [3.0, 4.0]),
                         (('c',), [5.0]), (('c',), [6.0])):
        writer = LabelledArrayWriter(rows)
        writer.values[:] = values
        reader.read(serialize_message(writer.message))
        assert reader.labels == (','.join(rows),) and np.array_equal(reader.data, values, equal_nan=True)


def test_a_message_without_anything_in_it():
    reader = ArrayBytes()
    for _ in range(2):
        reader.read(serialize_message(Float64MultiArray()))
        assert reader.labels == () and not len(reader.data)


@pytest.mark.parametrize('data', [b'', b'\x00\x01\x00\x00', b'\x00\x01\x00\x00' + b'\xff' * 40, bytes(LARGEST + 1)])
def test_bytes_that_are_no_message_are_refused(data):
    reader = JointStateBytes()
    with pytest.raises(MessageError):
        reader.read(data)
    msg = joint_state()
    reader.read(serialize_message(msg))
    with pytest.raises(MessageError):
        reader.read(data)
    reader.read(serialize_message(msg))
    assert said(reader) == expected(msg)


def test_the_other_order_of_bytes_is_left_to_rclpy():
    """Big-endian: an empty message, whose stamp tells the order."""
    data = b'\x00\x00\x00\x00' + struct.pack('>iII', 7, 9, 1) + bytes(4) + struct.pack('>IIII', 0, 0, 0, 0)
    reader = JointStateBytes()
    for _ in range(2):
        reader.read(data)
        assert said(reader) == (7 * SECOND + 9, [], [], [], [])


def mangled(sound, rng):
    """The bytes with one to three of them changed, sometimes cut short."""
    data = bytearray(sound)
    for place in rng.integers(0, len(data), rng.integers(1, 4)):
        data[place] = rng.integers(256)
    return bytes(data[:rng.integers(len(data) // 2, len(data) + 1)]) if rng.random() < 0.3 else bytes(data)


def test_bytes_cut_short_or_changed_anywhere_are_what_rclpy_says_of_them(rng):
    """Whatever a stranger sends, reading in place never says more than reading would."""
    sound = serialize_message(joint_state())
    for _ in range(300):
        data = mangled(sound, rng)
        reader = JointStateBytes()
        reader.read(sound)
        try:
            wanted = deserialize_message(data, JointState)
        except Exception:
            with pytest.raises(MessageError):
                reader.read(data)
            continue
        reader.read(data)
        assert np.array_equal(np.concatenate([reader.position, reader.velocity, reader.effort]), np.concatenate(
            [wanted.position, wanted.velocity, wanted.effort]), equal_nan=True)
        assert list(reader.name) == list(wanted.name) and reader.stamp == stamp_to_ns(wanted.header.stamp)


def points(names=('a', 'bc'), values=(1.0, -2.5), fields=(1, 1, 1, 0), count=1, stamp=STAMP, seconds=3):
    """A JointTrajectory of so many points, like `joint_state`."""
    row = np.resize(np.array(values, dtype=float), len(names))
    point = JointTrajectoryPoint(**{field: (row * (k + 1)).tolist() for k, (field, has) in enumerate(zip(
        ('positions', 'velocities', 'accelerations', 'effort'), fields)) if has})
    point.time_from_start.sec = seconds
    msg = JointTrajectory(joint_names=list(names), points=count * [point])
    msg.header.stamp.sec, msg.header.stamp.nanosec = divmod(stamp, SECOND)
    return msg


def assert_says(reader, msg):
    assert (reader.stamp, list(reader.names), reader.points) == (
        stamp_to_ns(msg.header.stamp), list(msg.joint_names), len(msg.points))
    if len(msg.points) == 1:
        point, = msg.points
        for row, wanted in zip(reader.rows, (point.positions, point.velocities, point.accelerations)):
            assert np.array_equal(row, wanted, equal_nan=True)
    else:
        assert reader.rows is None


@pytest.mark.parametrize('fields', [(1, 1, 1, 1), (1, 1, 1, 0), (1, 0, 0, 0), (1, 0, 1, 0), (0, 0, 0, 0)])
def test_a_streamed_point_is_read_in_place_once_one_like_it_came(fields, monkeypatch):
    reader = PointBytes()
    reader.read(serialize_message(points(fields=fields)))
    assert_says(reader, points(fields=fields))
    monkeypatch.setattr(cdr_templates, 'deserialize_message', None)       # is needed no more
    for k in range(1, 4):
        msg = points(values=(k, math.inf), stamp=STAMP + k, seconds=k, fields=fields)
        reader.read(serialize_message(msg))
        assert_says(reader, msg)


def test_points_laid_out_otherwise_are_read_anew():
    reader = PointBytes()
    orders = [points(), points(('bc', 'a')), points(fields=(1, 0, 0, 0)), points(count=0), points(count=2),
              points(()), points(('a', 'b', 'c'))]
    for msg in [*orders, *orders[::-1], *orders]:
        reader.read(serialize_message(msg))
        assert_says(reader, msg)


def test_bytes_of_a_point_changed_anywhere_are_what_rclpy_says_of_them(rng):
    sound = serialize_message(points())
    read = 0
    for _ in range(300):
        data = mangled(sound, rng)
        reader = PointBytes()
        reader.read(sound)
        try:
            wanted = deserialize_message(data, JointTrajectory)
        except Exception:
            with pytest.raises(MessageError):
                reader.read(data)
            continue
        reader.read(data)
        assert_says(reader, wanted)
        read += 1
    assert 50 < read < 300


# what a controller writes


@pytest.mark.parametrize('known', [True, False], ids=['in place', 'by rclpy'])
def test_what_a_controller_publishes_is_the_same_either_way(known, monkeypatch):
    """Commands in the field of their tier, NaN in others; arrays; the reference."""
    if not known:
        monkeypatch.setattr(cdr_templates, 'serialize_message',
                            lambda msg: b'\x00\x01\x00\x00 as another one writes it')

    def read(made, kind):
        assert isinstance(made, bytes if known else kind)
        return deserialize_message(made, kind) if known else made

    command = np.array([0.5, 2e6, -3e4])
    writer = publishers._CommandWriter(('a', 'b', 'c'), ('valve', 'pressure', 'effort'), np.ones(3, dtype=bool))
    msg = read(writer.fill(command, STAMP), JointState)
    assert list(msg.name) == ['a', 'b', 'c'] and stamp_to_ns(msg.header.stamp) == STAMP and not len(msg.velocity)
    assert np.array_equal(msg.position, [0.5, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(msg.effort, [np.nan, 2e6, -3e4], equal_nan=True)
    writer = publishers._CommandWriter(('a', 'b', 'c'), ('effort',) * 3, np.array([True, False, True]))
    msg = read(writer.fill(command, STAMP + 1), JointState)
    assert list(msg.name) == ['a', 'c'] and msg.effort.tolist() == [0.5, -3e4]
    assert publishers._CommandWriter(('a',), ('effort',), np.array([False])).names == []
    msg = read(publishers._ArrayWriter(('a', 'b'), ('x',)).fill([[1.0], [2.0]]), Float64MultiArray)
    assert msg.data.tolist() == [1.0, 2.0] and [dim.label for dim in msg.layout.dim] == ['a,b', 'x']
    msg = read(publishers._ReferenceWriter(['a', 'b']).fill(STAMP, np.arange(6.0).reshape(3, 2)),
               JointTrajectory)
    assert stamp_to_ns(msg.header.stamp) == STAMP and list(msg.joint_names) == ['a', 'b']
    point, = msg.points
    assert [list(point.positions), list(point.velocities), list(point.accelerations)] == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize('message', [
    JointState(name=['a', 'long_name'], position=[1.0, math.nan], effort=[2.0, 3.0]), JointState(),
    Float64MultiArray(data=[1.0]), Float64MultiArray(),
    JointTrajectory(joint_names=['a'], points=[JointTrajectoryPoint(positions=[1.0], velocities=[0.0])])])
def test_exact_bytes_end_where_the_message_does(message):
    """As readers of recordings want it; rclpy serialises to more bytes than travel."""
    from rosbags.typesys import Stores, get_typestore
    store, data = get_typestore(Stores.ROS2_JAZZY), exact_bytes(message)
    module = type(message).__module__.split('.')
    kind = f'{module[0]}/{module[1]}/{type(message).__name__}'
    assert len(data) <= len(serialize_message(message))
    assert len(store.serialize_cdr(store.deserialize_cdr(data, kind), kind)) == len(data)
    assert repr(deserialize_message(data, type(message))) == repr(message)
