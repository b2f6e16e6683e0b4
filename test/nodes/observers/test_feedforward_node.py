"""The nodes `feedforward` and `annotator`: messages in, messages out, sources, what is refused."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from support.machines import URDF

import psdyn_ros

rclpy = pytest.importorskip('rclpy', reason='the nodes need rclpy')

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from geometry_msgs.msg import InertiaStamped  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from support.nodes.by_hand import nodes_by_hand  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.model.locate import find_machine  # noqa: E402
from psdyn_ros.model.units import SECOND  # noqa: E402
from psdyn_ros.nodes.messages import conversions  # noqa: E402
from psdyn_ros.nodes.observers import feedforward  # noqa: E402
from psdyn_ros.nodes.observers.annotator import AnnotatorNode  # noqa: E402
from psdyn_ros.nodes.observers.feedforward_inputs import Sources  # noqa: E402
from psdyn_ros.nodes.runtime.parameters import ParameterError  # noqa: E402

CRANE = URDF / 'hiab_xs031.urdf'
BOOMS = ('slew', 'lift_boom', 'tilt_boom', 'telescope')
OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
NAN = float('nan')


@pytest.fixture
def make():
    with nodes_by_hand() as build:
        yield build


def point(position, velocity=(), acceleration=(), seconds=0.0):
    made = JointTrajectoryPoint(positions=list(position), velocities=list(velocity), accelerations=list(acceleration))
    conversions.ns_to_stamp(round(seconds * 1e9), made.time_from_start)
    return made


def trajectory(names, *points, stamp=7):
    msg = JointTrajectory(joint_names=list(names), points=list(points))
    conversions.ns_to_stamp(stamp, msg.header.stamp)
    return msg


def report(made):
    made.work._report()
    status = made.sent['/diagnostics'][-1].status[0]
    return status.level, status.message, {pair.key: pair.value for pair in status.values}


def some_motion(crane, rng):
    # slow enough that no effort is at its limit
    x, xd = crane.initial_position + rng.uniform(-0.02, 0.02, 4), rng.uniform(-0.1, 0.1, 4)
    xdd = rng.uniform(-0.3, 0.3, 4)
    assert (np.abs(crane.inverse_dynamics(x, xd, xdd)) < crane.limits.effort).all()
    return (x, xd, xdd), crane.joint_state(x, xd, xdd)[1:]


# feedforward


def test_a_reference_is_answered_by_its_efforts(make, crane, rng):
    made = make(feedforward.FeedforwardNode, joints=', '.join(BOOMS), publish_terms=True)
    motion, joints = some_motion(crane, rng)
    names = rng.permutation(crane.joints).tolist()
    rows = [crane.joints.index(name) for name in names]
    made.hear['reference'](trajectory(names, point(*(row[rows] for row in joints)), point([0.0])))
    efforts, actuators, commands, terms = (made.sent[topic][-1] for topic in (
        'feedforward', 'actuator_feedforward', 'commands', 'terms'))
    assert efforts.name == list(BOOMS) and actuators.name == list(crane.actuators)
    assert efforts.header.stamp.nanosec == actuators.header.stamp.nanosec == 7
    assert list(actuators.effort) == pytest.approx(crane.inverse_dynamics(*motion))
    rates = crane.joint_state(motion[0], motion[1])[2][[crane.joints.index(name) for name in BOOMS]]
    assert np.dot(efforts.effort, rates) == pytest.approx(np.dot(actuators.effort, motion[1]))
    assert list(commands.data) == list(efforts.effort) and commands.layout.dim[0].label == ','.join(BOOMS)
    table = np.reshape(terms.data, (4, 4))
    assert [dim.label for dim in terms.layout.dim] == [','.join(crane.coordinates),
                                                       'inertia,coriolis,gravity,friction']
    assert table.sum(axis=1) == pytest.approx(crane.inverse_dynamics(*motion))
    assert report(made)[:2] == (OK, 'from reference')


def test_what_a_reference_does_not_say_is_zero(make, crane):
    made, x = make(feedforward.FeedforwardNode), crane.initial_position
    made.hear['reference'](trajectory(crane.actuators, point(x), stamp=0))
    assert list(made.sent['commands'][-1].data) == pytest.approx(crane.gravity_forces(x))
    assert made.sent['feedforward'][-1].header.stamp.sec > 0        # that of its arrival


@pytest.mark.parametrize('names, given, says', [
    (BOOMS, point([NAN, 0.4, 0.3, 0.1]), 'nan'), (BOOMS, point([0.0] * 3), 'positions has 3 entries for 4 joints'),
    (BOOMS, point([0.0] * 4, [0.0]), 'velocities has 1 entries'), (BOOMS[:2], point([0.0, 0.4]), 'do not fix'),
    (('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'), point([0.0, 9.0, 0.3, 0.1]), 'out of reach'),
    (('slew',) * 4, point([0.0] * 4), 'more than once'), (BOOMS, None, 'no points'),
    (('slew', 'lift_cylinder', 'lift_boom', 'tilt_cylinder', 'telescope'), point([0.0, 0.2, 0.9, 0.3, 0.1]),
     'contradict each other')])
def test_references_that_cannot_be_are_refused_and_counted(make, names, given, says):
    made = make(feedforward.FeedforwardNode)
    lines = []
    made.work._rejections._warn = lines.append
    made.hear['reference'](trajectory(names, *([given] if given else [])))
    assert not made.sent['commands'] and not made.sent['feedforward']
    level, summary, values = report(made)
    assert level == ERROR and values['rejected reference'] == '1' and 'nobody speaks' in summary
    assert says in lines[0]


def test_efforts_are_clamped_scaled_and_carry_payloads(make, crane):
    made, x = make(feedforward.FeedforwardNode), crane.initial_position
    payload = InertiaStamped()
    payload.header.frame_id, payload.inertia.m, payload.inertia.com.z = 'tcp', 150.0, 0.1
    payload.inertia.ixx = payload.inertia.iyy = payload.inertia.izz = 4.0
    made.hear['payload'](payload)
    made.hear['reference'](trajectory(crane.actuators, point(x)))
    loaded = crane.with_payload('tcp', 150.0, (0.0, 0.0, 0.1), 4.0 * np.eye(3)).gravity_forces(x)
    assert list(made.sent['commands'][-1].data) == pytest.approx(loaded)
    assert report(made)[2]['payloads'] == '150 kg on tcp'
    made.node.set_parameters([Parameter('scale', value=0.5)])
    made.hear['reference'](trajectory(crane.actuators, point(x)))
    assert list(made.sent['actuator_feedforward'][-1].effort) == pytest.approx(0.5 * loaded)
    payload.inertia.m = 5000.0
    made.hear['payload'](payload)
    made.hear['reference'](trajectory(crane.actuators, point(x)))
    assert made.sent['commands'][-1].data[1] == pytest.approx(0.5 * crane.limits.effort[1])
    level, summary, values = report(made)
    assert level == WARN and 'at its limit: lift_cylinder' in summary and values['clamped messages'] == '1'
    payload.header.frame_id = 'tpc'
    made.hear['payload'](payload)
    payload.header.frame_id = ''
    made.hear['payload'](payload)
    assert report(made)[2]['rejected payload'] == '2'


def test_measured_states_alone_give_gravity_and_friction(make):
    rough = CRANE.read_text().replace('<limit', '<dynamics damping="300" friction="100"/><limit')
    m = psdyn_ros.load(rough)
    made = make(feedforward.FeedforwardNode, robot_description=rough, friction_scale=0.5)
    x, xd = m.initial_position, np.array([0.2, 0.1, -0.1, 0.1])
    made.hear['joint_states'](JointState(name=list(m.actuators), position=x.tolist(), velocity=xd.tolist()))
    friction = 0.5 * (m.bias_forces(x, xd) - m.bias_forces(x, -xd))
    assert list(made.sent['commands'][-1].data) == pytest.approx(m.gravity_forces(x) + 0.5 * friction)
    made.node.set_parameters([Parameter('friction_scale', value=0.0)])
    made.hear['joint_states'](JointState(name=list(m.actuators), position=x.tolist(), velocity=xd.tolist()))
    assert list(made.sent['commands'][-1].data) == pytest.approx(m.gravity_forces(x))


def control_msgs(monkeypatch, state):
    package = ModuleType('control_msgs')
    package.msg = ModuleType('control_msgs.msg')
    package.msg.JointTrajectoryControllerState = state
    monkeypatch.setitem(sys.modules, 'control_msgs', package)
    monkeypatch.setitem(sys.modules, 'control_msgs.msg', package.msg)


def test_the_reference_of_a_trajectory_controller_is_answered(make, crane, monkeypatch, rng):
    """With control_msgs as if it were installed: a class that rclpy takes, with the field that counts."""
    class State(JointTrajectory):
        reference = None

    control_msgs(monkeypatch, State)
    made = make(feedforward.FeedforwardNode)
    motion, joints = some_motion(crane, rng)
    rows = [crane.joints.index(name) for name in crane.actuators]
    msg = SimpleNamespace(header=trajectory(()).header, joint_names=list(crane.actuators),
                          reference=point(*(row[rows] for row in joints)))
    made.hear['controller_state'](msg)
    assert list(made.sent['commands'][-1].data) == pytest.approx(crane.inverse_dynamics(*motion))
    # what counts more takes over as soon as it speaks, and what counts less is not answered
    made.hear['joint_states'](JointState(name=list(crane.actuators), position=crane.initial_position.tolist(),
                                         velocity=[0.0] * 4))
    assert len(made.sent['commands']) == 1 and report(made)[1] == 'from controller_state'
    made.hear['reference'](trajectory(crane.actuators, point(crane.initial_position)))
    made.hear['controller_state'](msg)
    assert len(made.sent['commands']) == 2 and report(made)[1] == 'from reference'
    msg.reference = point([])
    made.hear['controller_state'](msg)
    assert report(made)[2]['rejected controller_state'] == '1'


def test_without_a_state_that_has_a_reference_there_is_no_such_source(make, monkeypatch):
    with pytest.raises(ParameterError, match='controller_state needs control_msgs'):
        control_msgs(monkeypatch, type('Old', (), {'desired': None}))
        make(feedforward.FeedforwardNode, source='controller_state')
    made = make(feedforward.FeedforwardNode)
    assert set(made.hear) == {'reference', 'joint_states', 'payload'}
    only = make(feedforward.FeedforwardNode, source='joint_states')
    assert set(only.hear) == {'joint_states', 'payload'}
    with pytest.raises(ParameterError, match="'tilt_bom': no such joint; did you mean 'tilt_boom'"):
        make(feedforward.FeedforwardNode, joints='slew tilt_bom')


def test_a_source_that_falls_silent_is_waited_for_until_it_is_disconnected():
    connected = {'/r': 1, '/j': 1}
    sources = Sources({'reference': '/r', 'joint_states': '/j'}, connected.get, 100)
    assert not sources.fresh(0)
    sources.look()
    assert sources.spoke('joint_states', 10) and sources.fresh(110) and not sources.fresh(111)
    assert sources.spoke('reference', 120) and not sources.spoke('joint_states', 130)
    sources.look()
    assert not sources.spoke('joint_states', 500) and not sources.fresh(500)      # silent, but still there
    connected['/r'] = 0
    sources.look()
    assert sources.chosen == 'joint_states' and sources.spoke('joint_states', 510) and sources.fresh(510)
    connected['/j'] = 0
    sources.look()
    assert sources.chosen is None


# annotator


def test_a_trajectory_comes_back_with_efforts_and_its_own_points_and_stamp(make, crane):
    made, x = make(AnnotatorNode, max_dt=0.05), crane.initial_position
    msg = trajectory(crane.actuators, point(x), point(x + 0.05, seconds=1.7), point(x, seconds=3.0), stamp=10**12 + 5)
    msg.header.frame_id = 'somewhere'
    made.hear['trajectory_in'](msg)
    (out,) = made.sent['trajectory_out']
    assert out.header == msg.header and out.joint_names == msg.joint_names
    times = [conversions.stamp_to_ns(one.time_from_start) for one in out.points]
    assert {0, 1_700_000_000, 3_000_000_000} <= set(times) and max(np.diff(times)) <= 50_000_000
    for one in out.points:
        expected = crane.inverse_dynamics(*map(np.array, (one.positions, one.velocities, one.accelerations)))
        assert list(one.effort) == pytest.approx(expected)
    level, summary, values = report(made)
    assert level == OK and f'{len(times)} points for 3 over 3 s' in summary and values['passed trajectories'] == '1'


def test_trajectories_that_cannot_be_are_refused_whole_and_those_without_points_pass(make, crane):
    made, x = make(AnnotatorNode), crane.initial_position
    assert report(made)[:2] == (OK, 'no trajectory came')
    for msg, says in ((trajectory(crane.actuators, point(x), point(x + 9.0, seconds=100.0)), 'between points 0 and 1'),
                      (trajectory(crane.actuators, point(x), point(x)), 'point 1 is not later'),
                      (trajectory(crane.actuators, point(x + NAN)), 'point 0 has positions that are not finite'),
                      (trajectory(crane.actuators[:2], point(x[:2])), 'expected all actuators')):
        made.hear['trajectory_in'](msg)
        level, summary, _ = report(made)
        assert level == WARN and summary.startswith('refused: ') and says in summary
    assert not made.sent['trajectory_out'] and report(made)[2]['rejected trajectory_in'] == '4'
    made.hear['trajectory_in'](trajectory(()))
    assert made.sent['trajectory_out'] == [trajectory(())] and report(made)[0] == OK


def test_trajectory_that_nobody_would_receive_is_refused(make, crane):
    made = make(AnnotatorNode)
    made.listeners['trajectory_out'] = 0
    made.hear['trajectory_in'](trajectory(crane.actuators, point(crane.initial_position)))
    assert report(made)[:2] == (WARN, "refused: nobody listens to '/n/trajectory_out'; expected a controller")
    made.listeners['trajectory_out'] = 1
    made.hear['trajectory_in'](trajectory(crane.actuators, point(crane.initial_position)))
    assert report(made)[0] == OK and len(made.sent['trajectory_out']) == 1


def test_a_late_beginning_is_filled_in_from_where_the_machine_rests(make, crane):
    made, x = make(AnnotatorNode, state_timeout=10.0), crane.initial_position
    late = trajectory(BOOMS, point(crane.joint_state(x)[1][[crane.joints.index(name) for name in BOOMS]], seconds=1.0))
    made.hear['trajectory_in'](late)
    here = (x + 0.01).tolist()
    for velocity in (0.05, 0.001):      # moving, then resting
        made.hear['joint_states'](JointState(name=list(crane.actuators), position=here, velocity=[velocity] * 4))
        made.hear['trajectory_in'](late)
    made.work._state = 0, *made.work._state[1:]         # long ago
    made.hear['trajectory_in'](late)
    made.hear['joint_states'](JointState(name=['slew']))
    first = [out.points[0].time_from_start.sec for out in made.sent['trajectory_out']]
    assert first == [1, 1, 0, 1] and report(made)[2]['rejected joint_states'] == '1'
    begun = made.sent['trajectory_out'][2].points[0]
    q = crane.joint_state(x + 0.01)[1]
    assert list(begun.positions) == pytest.approx([q[crane.joints.index(name)] for name in BOOMS])
    assert 'joint_states' not in make(AnnotatorNode, from_state=False).hear


def test_payload_share_of_friction_and_clamping_reach_the_annotator(make, crane):
    made, x = make(AnnotatorNode, clamp=True), crane.initial_position
    payload = InertiaStamped()
    payload.header.frame_id, payload.inertia.m = 'tcp', 3000.0
    payload.inertia.ixx = payload.inertia.iyy = payload.inertia.izz = 4.0
    made.hear['payload'](payload)
    made.hear['trajectory_in'](trajectory(crane.actuators, point(x)))
    (out,) = made.sent['trajectory_out']
    assert out.points[0].effort[1] == pytest.approx(crane.limits.effort[1])
    assert 'clamped at 1 of them' in report(made)[1] and report(made)[2]['payloads'] == '3000 kg on tcp'


# processes


def test_both_nodes_give_a_hanging_load_the_same_swing(make):
    machine = find_machine('loader_crane')
    m = psdyn_ros.load(machine).driven_machine
    made, start = make(AnnotatorNode, robot_description=machine), m.initial_position
    ends = [point(start, 4 * [0.0]), point(start + (0.3, 0.0, 0.0, 0.1), 4 * [0.0], seconds=2.0)]
    made.hear['trajectory_in'](trajectory(m.actuators, *ends))
    annotated, = made.sent['trajectory_out']
    streamed = make(feedforward.FeedforwardNode, robot_description=machine)
    for one in annotated.points:
        stamp = SECOND + conversions.stamp_to_ns(one.time_from_start)
        streamed.hear['reference'](trajectory(m.actuators, one, stamp=stamp))
    found = np.array([msg.data for msg in streamed.sent['commands']])
    np.testing.assert_allclose(found, [one.effort for one in annotated.points], rtol=1e-9, atol=1e-6)
    still = feedforward.Feedforward(psdyn_ros.load(machine)).at(annotated.points[-1].positions, np.zeros(4)).joints
    assert abs(found[-1, 0] - still[0]) > 100.0         # N m: the load swings in the end


@pytest.mark.dds
@pytest.mark.lockstep
def test_two_processes_answer_states_then_a_reference_and_annotate(tmp_path, crane):
    with graph(tmp_path, '/ff') as g:
        commands = g.listen(Float64MultiArray, 'feedforward/commands')
        annotated = g.listen(JointTrajectory, 'annotator/trajectory_out')
        states = g.publisher(JointState, 'joint_states')
        incoming = g.publisher(JointTrajectory, 'annotator/trajectory_in')
        machine = ('-p', f'robot_description:={CRANE}')
        g.start('feedforward', *machine, '-p', 'state_timeout:=0.5')
        g.start('annotator', *machine)
        g.until(lambda: len(g.reports) > 1 and states.get_subscription_count() > 1
                and incoming.get_subscription_count(), START_UP)
        assert 'nobody speaks' in g.report('feedforward: efforts')[1]
        x = crane.initial_position
        state = JointState(name=list(crane.actuators), position=x.tolist(), velocity=[0.0] * 4)
        g.until(lambda: commands, each=lambda: states.publish(state))
        gravity = pytest.approx(crane.gravity_forces(x))
        assert list(commands[-1].data) == gravity
        g.until(lambda: g.report('feedforward: efforts')[1] == 'from joint_states', each=lambda: states.publish(state))

        reference = g.publisher(JointTrajectory, 'feedforward/reference')
        push = trajectory(crane.actuators, point(x, [0.0] * 4, [0.1] * 4))
        expected = pytest.approx(crane.inverse_dynamics(x, np.zeros(4), np.full(4, 0.1)))
        g.until(lambda: list(commands[-1].data) == expected, each=lambda: reference.publish(push))
        # it falls silent: states go on, and are not answered
        g.until(lambda: 'reference fell silent' in g.report('feedforward: efforts')[1],
                each=lambda: states.publish(state))
        del commands[:]
        tries = iter(range(20))
        g.until(lambda: next(tries, None) is None, each=lambda: states.publish(state))
        assert not commands
        g.node.destroy_publisher(reference)
        g.until(lambda: commands, each=lambda: states.publish(state))
        assert list(commands[-1].data) == pytest.approx(crane.gravity_forces(x))

        g.until(lambda: annotated, each=lambda: incoming.publish(trajectory(crane.actuators, point(x))))
        assert list(annotated[-1].points[0].effort) == pytest.approx(crane.gravity_forces(x))
        assert g.processes.stop() == {'feedforward': 0, 'annotator': 0}
