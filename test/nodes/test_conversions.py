"""Messages to arrays and back, whole or not at all; and the small things that the nodes are made of."""

import array
import math
from types import SimpleNamespace

import numpy as np
import pytest

import psdyn_ros

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from builtin_interfaces.msg import Time  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.control.laws.registry import make_law
from psdyn_ros.model.locate import find_machine
from psdyn_ros.model.units import SECOND
from psdyn_ros.nodes import parameter_tables
from psdyn_ros.nodes.controller.parameters import gains
from psdyn_ros.nodes.messages import conversions
from psdyn_ros.nodes.messages.commands import CommandReader  # noqa: E402
from psdyn_ros.nodes.runtime import deadlines as pacing
from psdyn_ros.nodes.runtime import diagnostics, rejection_log
from psdyn_ros.nodes.simulator.parameters import initial_positions
from psdyn_ros.tools.demo import processes  # noqa: E402
from psdyn_ros.tools.demo.demonstration import demonstration  # noqa: E402

NAN, INF = float('nan'), float('inf')


@pytest.fixture
def state(crane, rng):
    """x, xd and the message that measures all joints of it."""
    x, xd = crane.initial_position + rng.uniform(-0.02, 0.02, 4), rng.uniform(-0.1, 0.1, 4)
    names, position, velocity, _ = crane.joint_state(x, xd)
    msg = JointState(name=list(names), position=position.tolist(), velocity=velocity.tolist(), effort=[0.0] * 8)
    return x, xd, msg


@pytest.fixture
def extra():
    return []


@pytest.fixture
def reader(crane, extra):
    return conversions.StateReader(crane, 0.005, extra.append)


def taken(msg, order):
    """The message with these of its joints, in this order."""
    rows = {field: [getattr(msg, field)[i] for i in order] for field in ('name', 'position', 'velocity', 'effort')}
    return JointState(**rows)


# states


def test_a_state_is_read_whatever_the_order_of_its_joints(reader, state, rng):
    x, xd, msg = state
    for _ in range(20):
        read = reader.read(taken(msg, rng.permutation(8)))
        assert read[0] == pytest.approx(x, abs=1e-13) and read[1] == pytest.approx(xd, abs=1e-12)


@pytest.mark.parametrize('names', [
    ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'),
    ('telescope', 'tilt_boom', 'lift_boom', 'slew'),
    ('lift_boom', 'slew', 'tilt_cylinder', 'telescope', 'lift_barrel'),
])
def test_any_joints_that_fix_every_loop_will_do(reader, state, names):
    x, xd, msg = state
    read = reader.read(taken(msg, [msg.name.index(name) for name in names]))
    assert read[0] == pytest.approx(x, abs=1e-12) and read[1] == pytest.approx(xd, abs=1e-12)


def test_joints_of_others_are_passed_over_and_said_once(reader, state, extra):
    x, _, msg = state
    for field, value in (('name', 'gripper'), ('position', NAN), ('velocity', NAN), ('effort', NAN)):
        values = list(getattr(msg, field))
        setattr(msg, field, [value, *values])
    for _ in range(3):
        assert reader.read(msg)[0] == pytest.approx(x, abs=1e-13)
    assert extra == [['gripper']]


def without(msg, name):
    return taken(msg, [i for i, present in enumerate(msg.name) if present != name])


def changed(msg, field, index, value):
    values = list(getattr(msg, field))
    values[index] = value
    setattr(msg, field, values)
    return msg


BAD_STATES = {
    'nothing': (lambda msg: JointState(), 'do not fix'),
    'missing joint': (lambda msg: without(msg, 'slew'), 'slew'),
    'misspelt joint': (lambda msg: changed(msg, 'name', msg.name.index('slew'), 'slow'), 'slew'),
    'duplicate joint': (lambda msg: taken(msg, [*range(8), 3]), 'more than once'),
    'duplicate stranger': (lambda msg: JointState(
        name=[*msg.name, 'a', 'a'], position=[*msg.position, 0.0, 0.0], velocity=[*msg.velocity, 0.0, 0.0]),
        'a named more than once'),
    'short position': (lambda msg: JointState(name=msg.name, position=msg.position[:-1], velocity=msg.velocity),
                       'position has 7 entries for 8'),
    'long position': (lambda msg: JointState(
        name=msg.name, position=array.array('d', [*msg.position, 0.0]), velocity=msg.velocity), 'position has 9'),
    'no velocity': (lambda msg: JointState(name=msg.name, position=msg.position), 'velocity has 0 entries'),
    'short effort': (lambda msg: JointState(
        name=msg.name, position=msg.position, velocity=msg.velocity, effort=msg.effort[:2]), 'effort has 2 entries'),
    'no names': (lambda msg: JointState(position=msg.position, velocity=msg.velocity), 'do not fix'),
    'nan position': (lambda msg: changed(msg, 'position', 2, NAN), 'position of'),
    'inf position': (lambda msg: changed(msg, 'position', 0, INF), 'position of'),
    'nan velocity': (lambda msg: changed(msg, 'velocity', 5, NAN), 'velocity of'),
    'absurd stroke': (lambda msg: changed(msg, 'position', msg.name.index('lift_cylinder'), 50.0), 'lift_cylinder'),
    'contradiction': (lambda msg: changed(
        msg, 'position', msg.name.index('lift_boom'), msg.position[msg.name.index('lift_boom')] + 0.1), 'contradict'),
}


@pytest.mark.parametrize('abuse', BAD_STATES)
def test_a_bad_state_is_rejected_whole_and_the_next_good_one_is_read(reader, crane, state, abuse):
    x, xd, msg = state
    spoil, says = BAD_STATES[abuse]
    good = taken(msg, range(8))
    with pytest.raises(psdyn_ros.PsdynError, match=says):
        reader.read(spoil(msg))
    assert reader.read(good)[0] == pytest.approx(x, abs=1e-13)


def test_a_flood_of_orders_does_not_fill_the_memory(reader, state, rng):
    msg = state[2]
    for _ in range(100):
        reader.read(taken(msg, rng.permutation(8)))
    assert len(reader._maps._ready) <= conversions.REMEMBERED


# efforts


@pytest.fixture
def efforts(crane, extra):
    return CommandReader(crane.actuators, ['effort'] * 4, extra.append, partial=False)


def test_efforts_are_read_by_name_and_in_order(efforts, crane, extra):
    assert efforts.named(JointState(name=[*crane.actuators[::-1], 'gripper'], effort=[4.0, 3.0, 2.0, 1.0, NAN])
                         ).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert extra == [['gripper']]
    msg = conversions.LabelledArrayWriter(crane.actuators)
    msg.values[:] = 1.0, 2.0, 3.0, 4.0
    assert efforts.ordered(msg.message).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert efforts.ordered(Float64MultiArray(data=[5.0] * 4)).tolist() == [5.0] * 4


@pytest.mark.parametrize('names, values, says', [
    (('slew', 'lift_cylinder', 'tilt_cylinder'), [1.0] * 3, 'telescope missing'),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescop'), [1.0] * 4, "did you mean 'telescop'"),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope', 'slew'), [1.0] * 5, 'slew named more than once'),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'), [1.0] * 3, 'effort has 3 entries for 4'),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'), [], 'effort has 0 entries'),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'), [1.0, NAN, 1.0, 1.0], 'not finite'),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'), [1.0, INF, 1.0, -INF], 'not finite'),
    ((), [], 'missing'),
])
def test_bad_efforts_by_name_are_rejected(efforts, names, values, says):
    with pytest.raises(conversions.MessageError, match=says):
        efforts.named(JointState(name=list(names), effort=values))


@pytest.mark.parametrize('data, label, says', [
    ([1.0] * 3, '', '3 entries, expected 4'), ([1.0] * 5, '', '5 entries'), ([], '', '0 entries'),
    ([1.0, 1.0, NAN, 1.0], '', 'not finite'), ([1.0] * 4, 'a,b,c,d', "labelled 'a,b,c,d'"),
])
def test_bad_efforts_in_order_are_rejected(efforts, data, label, says):
    msg = Float64MultiArray(data=data)
    if label:
        msg = conversions.LabelledArrayWriter(label.split(',')).message
    with pytest.raises(conversions.MessageError, match=says):
        efforts.ordered(msg)


# trajectories


def test_a_trajectory_survives_the_way_there_and_back(crane):
    sent = demonstration(crane)
    received, start = conversions.trajectory_from_msg(conversions.trajectory_to_msg(sent))
    assert start is None and received.joints == crane.actuators
    assert received.times == pytest.approx(sent.times)
    for field in ('positions', 'velocities', 'accelerations'):
        assert getattr(received, field) == pytest.approx(getattr(sent, field))


def test_a_stamp_is_the_start():
    msg = JointTrajectory(joint_names=['a'], points=[JointTrajectoryPoint(positions=[1.0])])
    msg.header.stamp = Time(sec=7, nanosec=5)
    waypoints, start = conversions.trajectory_from_msg(msg)
    assert start == 7 * SECOND + 5
    assert waypoints.velocities is None and waypoints.accelerations is None


@pytest.mark.parametrize('points, says', [
    ([], 'no points'),
    ([{}], 'point 0 has no positions'),
    ([{'positions': [0.0]}], 'point 0 has 1 positions for 2 joints'),
    ([{'positions': [0.0, 0.0], 'velocities': [0.0]}], '1 velocities'),
    ([{'positions': [0.0, 0.0], 'effort': [0.0]}], '1 efforts'),
    ([{'positions': [0.0, 0.0], 'velocities': [0.0, 0.0]}, {'positions': [0.0, 0.0]}], 'some points have velocities'),
    ([{'positions': [0.0, NAN]}], 'point 0 has positions that are not finite'),
    ([{'positions': [0.0, 0.0]}, {'positions': [0.0, 0.0]}], 'not later'),
])
def test_a_bad_trajectory_is_rejected(points, says):
    msg = JointTrajectory(joint_names=['a', 'b'], points=[JointTrajectoryPoint(**point) for point in points])
    with pytest.raises(psdyn_ros.PsdynError, match=says):
        conversions.trajectory_from_msg(msg)


# writers


def test_writers_fill_one_message_again_and_again(crane):
    writer = conversions.JointStateWriter(crane.actuators, ('effort',))
    writer.effort[:] = 1.0, 2.0, 3.0, 4.0
    message = writer.stamp(12 * SECOND + 34)
    assert message is writer.message and list(message.name) == list(crane.actuators)
    assert list(message.effort) == [1.0, 2.0, 3.0, 4.0] and not message.position
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (12, 34)
    assert conversions.stamp_to_ns(message.header.stamp) == 12 * SECOND + 34


def test_arrays_say_what_they_hold():
    writer = conversions.LabelledArrayWriter(('a', 'b'), ('force', 'speed', 'power'))
    writer.values[1, 2] = 7.0
    dims = writer.message.layout.dim
    assert [(dim.label, dim.size, dim.stride) for dim in dims] == [('a,b', 2, 6), ('force,speed,power', 3, 3)]
    assert list(writer.message.data) == [0.0] * 5 + [7.0]
    flat = conversions.LabelledArrayWriter(('a', 'b')).message.layout.dim
    assert [(dim.label, dim.size, dim.stride) for dim in flat] == [('a,b', 2, 2)]


def test_diagnostics_carry_level_and_values():
    status = conversions.diagnostics_msg(SECOND, 'plant', 'warn', 'held', {'a': 1, 'b': 0.25}).status[0]
    assert (status.name, status.message, status.level) == ('plant', 'held', b'\x01')
    assert {pair.key: pair.value for pair in status.values} == {'a': '1', 'b': '0.25'}


@pytest.mark.parametrize('prefix', ['', 'left/', 'site/left/'])
def test_diagnostics_of_two_machines_have_names_of_their_own(prefix):
    sent = []
    node = SimpleNamespace(
        get_name=lambda: 'controller', get_fully_qualified_name=lambda: f'/{prefix}controller',
        create_publisher=lambda kind, topic, qos: SimpleNamespace(publish=sent.append))
    diagnostics.publisher(node)(conversions.diagnostics_msg(SECOND, 'controller: control', 'ok', 'HOLD', {}))
    (status,) = sent[0].status
    assert (status.name, status.hardware_id) == (f'{prefix}controller: control', f'/{prefix}controller')


# what else the nodes are made of


def test_every_parameter_has_a_description_and_numbers_have_a_range(crane):
    table = [*(one for table in parameter_tables.tables().values() for one in table),
             *gains(make_law('computed_torque', crane)), *initial_positions(crane)]
    for p in table:
        descriptor = p.descriptor()
        assert descriptor.description
        if isinstance(p.default, float) and not math.isnan(p.default):     # nan: computed where it is not given
            (span,) = descriptor.floating_point_range
            assert span.from_value <= p.default <= span.to_value
        elif isinstance(p.default, int) and not isinstance(p.default, bool):
            (span,) = descriptor.integer_range
            assert span.from_value <= p.default <= span.to_value
        assert descriptor.read_only == (not p.live)
    law = make_law('computed_torque', crane)
    assert {p.name for p in gains(law)} >= {'gains.slew.p', 'gains.telescope.d'}


def test_every_rejection_is_counted_and_one_a_second_is_logged():
    lines = []
    rejected = rejection_log.Rejections(lines.append)
    for k in range(500):
        rejected.add('commands', 'bad', k * SECOND // 100)
    rejected.add('joint_states', 'worse', 5 * SECOND)
    assert rejected.counts == {'commands': 500, 'joint_states': 1} and rejected.total == 501
    assert len(lines) == 6
    assert lines[0] == 'commands: rejected, bad' and '99 more' in lines[1]


def test_checked_callback_rejects_what_its_reader_refuses_and_nothing_else():
    lines, taken = [], []

    def read(message):
        if message < 0:
            raise conversions.MessageError('negative')
        taken.append(1 / message)

    rejected = rejection_log.Rejections(lines.append)
    receive = rejected.checked('numbers', read)
    receive(2)
    receive(-1)
    assert taken == [0.5] and rejected.counts == {'numbers': 1} and lines == ['numbers: rejected, negative']
    with pytest.raises(ZeroDivisionError):      # a defect is no bad message
        receive(0)


def test_what_others_send_does_not_make_the_log_long():
    lines = []
    rejection_log.Rejections(lines.append).add('joint_states', 'x' * 100_000, 0)
    assert len(lines[0]) < 500


def test_deadlines_keep_their_phase_and_make_up_for_a_stall():
    deadlines = pacing.Deadlines(2_000_000, 10_000_000)
    start = 123_456_789
    jitter = [0, 300_000, -200_000, 900_000]
    assert [deadlines.due(start + 2_000_000 * k + jitter[k % 4]) for k in range(40)] == [1] * 40
    assert deadlines.overruns == 0 and deadlines.slipped == 0
    assert deadlines.due(start + 2_000_000 * 43) == 4               # 40 to 43
    assert deadlines.due(start + 2_000_000 * 43 + 100_000) == 0
    assert (deadlines.overruns, deadlines.missed, deadlines.slipped) == (1, 3, 0)


def test_a_long_stall_loses_time_instead_of_bursting():
    deadlines = pacing.Deadlines(2_000_000, 10_000_000)
    deadlines.due(0)
    assert deadlines.due(1_000_000_000) == 5
    assert deadlines.slipped == 495 * 2_000_000
    assert deadlines.due(1_002_000_000) == 1
    deadlines.restart()
    assert deadlines.due(9_000_000_000) == 1


def test_a_rate_that_cannot_be_held_is_refused_with_the_remedy(monkeypatch):
    def work():
        deadline = pacing.time.perf_counter() + 0.004
        while pacing.time.perf_counter() < deadline:
            pass

    pacing.require_rate(10.0, work, 'this')
    monkeypatch.setattr(pacing, 'compiled', True)
    with pytest.raises(pacing.RateError, match='500 Hz cannot be held: this takes .* ms') as caught:
        pacing.require_rate(500.0, work, 'this')
    assert 'pip' not in str(caught.value)
    monkeypatch.setattr(pacing, 'compiled', False)
    with pytest.raises(pacing.RateError, match='pip install numba'):
        pacing.require_rate(500.0, work, 'this')


def test_a_domain_in_use_is_not_taken():
    import socket
    domain = processes.free_domain()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(('', 7400 + 250 * domain + 10 + 2 * 3))     # of a fourth participant
        assert processes.free_domain() != domain


def test_the_environment_is_as_it_was_afterwards(monkeypatch):
    monkeypatch.setenv('PSDYN_TEST_A', 'before')
    with processes.exported({'PSDYN_TEST_A': 'within', 'PSDYN_TEST_B': 'within'}):
        assert processes.os.environ['PSDYN_TEST_A'] == processes.os.environ['PSDYN_TEST_B'] == 'within'
    assert processes.os.environ['PSDYN_TEST_A'] == 'before' and 'PSDYN_TEST_B' not in processes.os.environ


def test_passive_joints_are_read_beside_the_state(extra):
    whole = psdyn_ros.load(find_machine('loader_crane'))
    reader = conversions.StateReader(whole.driven_machine, 0.005, extra.append, whole.passive_joints)
    x = whole.initial_position
    names = ['hook_roll', *whole.actuators]
    msg = JointState(name=names, position=[0.25, *x[:4]], velocity=[0.5, 0.0, 0.0, 0.0, 0.0])
    read = reader.read(msg)
    assert read[0] == pytest.approx(x[:4]) and extra == []
    np.testing.assert_array_equal(reader.passive, ((NAN, 0.25), (NAN, 0.5)))
    msg = JointState(name=names[1:], position=x[:4].tolist(), velocity=4 * [0.0])
    assert reader.read(msg)[0] == pytest.approx(x[:4])
    assert np.isnan(reader.passive).all()
