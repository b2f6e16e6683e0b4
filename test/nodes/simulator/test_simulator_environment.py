"""The simulator over real DDS at force level: details, sensors, faults, base, tool, other publishers, divergence."""

import numpy as np
import pytest
from support.machines import URDF

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from geometry_msgs.msg import AccelStamped, PoseStamped, TwistStamped, WrenchStamped  # noqa: E402
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402
from std_srvs.srv import SetBool, Trigger  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from psdyn_ros.api.environment import BaseMotion  # noqa: E402
from psdyn_ros.nodes.messages import conversions  # noqa: E402
from psdyn_ros.simulation import snapshot  # noqa: E402

pytestmark = pytest.mark.dds

CRANE = URDF / 'hiab_xs031.urdf'
OK, WARN, ERROR = b'\x00', b'\x01', b'\x02'
PART = 'simulator: plant'
G = 9.81


def stamp_of(msg):
    return conversions.stamp_to_ns(msg.header.stamp)


def vector(message, fields):
    return np.array([getattr(message, field) for field in fields])


def wrench_of(msg):
    return np.concatenate([vector(msg.wrench.force, 'xyz'), vector(msg.wrench.torque, 'xyz')])


@pytest.fixture(scope='module')
def plant(tmp_path_factory):
    with graph(tmp_path_factory.mktemp('ports'), '/ports') as g:
        g.start('simulator', '-p', f'robot_description:={CRANE}', '-p', 'tool_link:=tcp', '-p', 'seed:=3',
                '-p', 'measured_joints:=slew, lift_cylinder lift_boom,telescope')
        g.states = g.listen(JointState, 'joint_states')
        g.truth = g.listen(JointState, 'simulator/ground_truth')
        g.dynamics = g.listen(JointTrajectory, 'simulator/dynamics')
        g.wrenches = g.listen(WrenchStamped, 'simulator/base_wrench')
        g.tools = g.listen(PoseStamped, 'simulator/tool_pose')
        g.tool_twists = g.listen(TwistStamped, 'simulator/tool_twist')
        g.commands = g.publisher(JointState, 'simulator/joint_commands', 1)
        g.until(lambda: g.states and g.truth and g.dynamics and g.wrenches and g.tools and g.tool_twists and g.reports,
                START_UP)
        g.until(g.commands.get_subscription_count)
        yield g
        assert g.processes.stop() == {'simulator': 0}


@pytest.fixture
def fresh(plant):
    """The plant at its start, held, with nothing heard of it yet, and all messages in one list each."""
    assert plant.call(Trigger, 'simulator/clear_faults', Trigger.Request()).success
    assert plant.call(Trigger, 'simulator/reset', Trigger.Request()).success
    plant.until(lambda: plant.report(PART)[:2] == (WARN, 'held'))
    # messages of before the reset may come after its response
    heard, begin = (plant.states, plant.truth, plant.dynamics, plant.wrenches, plant.tools,
                    plant.tool_twists), plant.node.get_clock().now().nanoseconds
    plant.until(lambda: all(messages and stamp_of(messages[-1]) > begin for messages in heard))
    for messages in heard:
        del messages[:]
    return plant


def both(first, second):
    """The last pair of messages of two lists with one stamp."""
    stamps = {stamp_of(msg): msg for msg in first}
    return next(((stamps[stamp_of(msg)], msg) for msg in reversed(second) if stamp_of(msg) in stamps), None)


def push(g, crane, force):
    g.commands.publish(JointState(name=list(crane.actuators), effort=list(map(float, force))))


def set_fault(g, text):
    parameter = Parameter(name='inject_fault', value=ParameterValue(
        type=ParameterType.PARAMETER_STRING, string_value=text))
    return g.call(SetParameters, 'simulator/set_parameters', SetParameters.Request(parameters=[parameter])).results[0]


# out


def test_states_are_those_of_the_measured_joints_and_the_truth_is_of_all(fresh, crane):
    fresh.until(lambda: both(fresh.truth, fresh.states))
    truth, state = both(fresh.truth, fresh.states)
    assert tuple(state.name) == ('slew', 'lift_cylinder', 'lift_boom', 'telescope')
    assert tuple(truth.name) == crane.joints
    exact = dict(zip(truth.name, zip(truth.position, truth.velocity, truth.effort)))
    assert [exact[name] for name in state.name] == list(zip(state.position, state.velocity, state.effort))
    assert exact['lift_cylinder'][2] == pytest.approx(crane.gravity_forces(crane.initial_position)[1])


def test_what_the_dynamics_computed_is_the_forward_dynamics_of_the_true_state(fresh, crane):
    force = crane.gravity_forces(crane.initial_position) + [500.0, 4000.0, -2000.0, 400.0]
    rows = [crane.joints.index(name) for name in crane.actuators]
    fresh.until(lambda: fresh.truth and fresh.truth[-1].velocity[rows[1]] > 0.05,
                each=lambda: push(fresh, crane, force))
    fresh.until(lambda: both(fresh.truth, fresh.dynamics))
    truth, dynamics = both(fresh.truth, fresh.dynamics)
    point = dynamics.points[0]
    x, xd = (np.array(getattr(truth, what))[rows] for what in ('position', 'velocity'))
    expected = crane.joint_state(x, xd, crane.forward_dynamics(x, xd, np.array(truth.effort)[rows]))
    assert tuple(dynamics.joint_names) == crane.joints
    assert list(point.positions) == pytest.approx(expected[1]) and list(point.velocities) == pytest.approx(expected[2])
    assert list(point.accelerations) == pytest.approx(expected[3], rel=1e-6, abs=1e-6)
    assert list(point.effort) == list(truth.effort)


def test_details_come_with_the_stamps_of_states(fresh):
    fresh.until(lambda: all(len(messages) > 50 for messages in (
        fresh.states, fresh.truth, fresh.dynamics, fresh.wrenches, fresh.tools)))
    stamps = {stamp_of(msg) for msg in fresh.states}
    for messages in (fresh.truth, fresh.dynamics, fresh.wrenches, fresh.tools):
        assert sum(stamp_of(msg) in stamps for msg in messages) > 0.8 * len(messages)


def test_the_tool_is_where_the_links_are(fresh, crane):
    fresh.until(lambda: fresh.tools and fresh.tool_twists)
    msg = fresh.tools[-1]
    assert msg.header.frame_id == crane.machine.base_link
    assert vector(msg.pose.position, 'xyz') == pytest.approx(crane.link_pose(crane.initial_position, 'tcp')[:3, 3])
    assert fresh.tool_twists[-1].header.frame_id == 'tcp'
    assert vector(fresh.tool_twists[-1].twist.linear, 'xyz').tolist() == [0.0] * 3


# base and tool


def test_the_base_wrench_is_the_weight_at_rest_and_a_load_on_the_tool_adds_to_it(fresh, crane):
    fresh.until(lambda: fresh.wrenches)
    alone = wrench_of(fresh.wrenches[-1])
    assert fresh.wrenches[-1].header.frame_id == crane.machine.base_link
    assert alone[:3] == pytest.approx([0.0, 0.0, -crane.total_mass * G], rel=1e-9, abs=1e-6)
    turn = crane.link_pose(crane.initial_position, 'tcp')[:3, :3]
    wrenches = fresh.publisher(WrenchStamped, 'simulator/tool_wrench', 1)
    load = WrenchStamped()
    load.header.frame_id = 'tcp'
    load.wrench.force.x, load.wrench.force.y, load.wrench.force.z = (turn.T @ [0.0, 0.0, -981.0]).tolist()
    fresh.until(lambda: wrench_of(fresh.wrenches[-1])[:3] == pytest.approx(
        [0.0, 0.0, -crane.total_mass * G - 981.0], rel=1e-9, abs=1e-6), each=lambda: wrenches.publish(load))
    fresh.until(lambda: fresh.report(PART)[:2] == (WARN, 'held; tool wrench on tcp stale: zero'))
    fresh.until(lambda: wrench_of(fresh.wrenches[-1]) == pytest.approx(alone))
    for frame, force in (('tpc', 1.0), ('tcp', float('nan')), ('tcp', 1e9)):
        before = int(fresh.report(PART)[2].get('rejected tool_wrench', 0))
        load.header.frame_id, load.wrench.force.x = frame, force
        wrenches.publish(load)
        fresh.until(lambda before=before: int(fresh.report(PART)[2].get('rejected tool_wrench', 0)) == before + 1)
    fresh.node.destroy_publisher(wrenches)


def test_a_base_that_accelerates_leaves_the_boom_behind(fresh, crane):
    """Seen in joint_states: held against gravity by commands, a push of the base sideways turns the slew."""
    motions = fresh.publisher(AccelStamped, 'simulator/base_motion/acceleration', 1)
    fresh.until(motions.get_subscription_count)
    msg = AccelStamped()
    msg.header.frame_id = crane.machine.base_link
    com = crane.link_pose(crane.initial_position, 'tcp')[:3, 3]
    sideways = np.array([-com[1], com[0], 0.0]) / np.hypot(*com[:2])
    msg.accel.linear.x, msg.accel.linear.y, msg.accel.linear.z = (2.0 * sideways).tolist()
    gravity = crane.gravity_forces(crane.initial_position)
    expected = crane.forward_dynamics(crane.initial_position, np.zeros(4), gravity, base=BaseMotion(
        acceleration=(*(2.0 * sideways), 0.0, 0.0, 0.0)))[0]

    def act():
        motions.publish(msg)
        push(fresh, crane, gravity)

    fresh.until(lambda: fresh.states and abs(fresh.states[-1].velocity[0]) > 0.1, each=act)
    assert abs(expected) > 0.1 and fresh.states[-1].velocity[0] * expected > 0.0
    fresh.until(lambda: 'base motion stale: at rest' in fresh.report(PART)[1])
    fresh.node.destroy_publisher(motions)


def test_the_measured_motion_of_the_base_reaches_the_machine_by_every_kind_of_message(fresh, crane):
    weight = crane.total_mass * G
    kinds = {
        'acceleration': (AccelStamped, lambda m, t: setattr(m.accel.linear, 'z', 1.0), 1.0),
        'imu': (Imu, lambda m, t: (setattr(m.linear_acceleration, 'z', G + 2.0),
                                   m.orientation_covariance.__setitem__(0, -1.0)), 2.0),
        'twist': (TwistStamped, lambda m, t: setattr(m.twist.linear, 'z', 3.0 * t), 3.0)}
    for name, (kind, fill, heave) in kinds.items():
        publisher = fresh.publisher(kind, f'simulator/base_motion/{name}', 1)
        fresh.until(publisher.get_subscription_count)
        start = fresh.node.get_clock().now().nanoseconds

        def send(kind=kind, fill=fill, publisher=publisher, start=start):
            msg, now = kind(), fresh.node.get_clock().now().nanoseconds
            conversions.ns_to_stamp(now, msg.header.stamp)
            fill(msg, (now - start) * 1e-9)
            publisher.publish(msg)

        fresh.until(lambda heave=heave: fresh.wrenches and wrench_of(fresh.wrenches[-1])[2] == pytest.approx(
            -weight * (1.0 + heave / G), rel=1e-6), each=send)
        fresh.node.destroy_publisher(publisher)
        fresh.until(lambda: wrench_of(fresh.wrenches[-1])[2] == pytest.approx(-weight, rel=1e-9))


def test_a_motion_in_another_frame_is_refused(fresh):
    publisher = fresh.publisher(AccelStamped, 'simulator/base_motion/acceleration', 1)
    fresh.until(publisher.get_subscription_count)
    msg = AccelStamped()
    msg.header.frame_id = 'world'
    before = int(fresh.report(PART)[2].get('rejected base_motion/acceleration', 0))
    publisher.publish(msg)
    fresh.until(lambda: int(fresh.report(PART)[2].get('rejected base_motion/acceleration', 0)) == before + 1)
    fresh.node.destroy_publisher(publisher)


# faults and conflicting publishers


def test_a_fault_of_a_sensor_is_seen_on_the_wire_and_not_in_the_truth(fresh):
    assert set_fault(fresh, '{kind: bias, target: telescope.position, value: 0.01}').successful
    fresh.until(lambda: both(fresh.truth, fresh.states) and (
        lambda truth, state: state.position[3] - truth.position[truth.name.index('telescope')] > 0.005)(
            *both(fresh.truth, fresh.states)))
    truth, state = both(fresh.truth, fresh.states)
    assert state.position[3] - truth.position[truth.name.index('telescope')] == pytest.approx(0.01)
    assert set_fault(fresh, '{kind: nan, target: slew.velocity}').successful
    fresh.until(lambda: np.isnan(fresh.states[-1].velocity[0]))
    assert np.isfinite(fresh.states[-1].position).all()
    fresh.until(lambda: 'nan of slew.velocity' in fresh.report(PART)[2]['active faults'])
    assert fresh.report(PART)[0] == WARN
    assert fresh.call(Trigger, 'simulator/clear_faults', Trigger.Request()).success
    fresh.until(lambda: fresh.report(PART)[2]['active faults'] == '')
    del fresh.states[:]
    fresh.until(lambda: fresh.states)
    assert np.isfinite(fresh.states[-1].velocity).all()


def test_lost_and_late_messages(fresh):
    def longest():
        return np.diff([stamp_of(msg) for msg in fresh.states]).max(initial=0) * 1e-9

    def dropped():
        """Seconds of which the truth came and the state did not."""
        told = {stamp_of(msg) for msg in fresh.states}
        return 0.002 * sum(min(told) < stamp_of(msg) < max(told) for msg in fresh.truth if stamp_of(msg) not in told)

    fresh.until(lambda: fresh.states)       # the gap begins after one
    assert set_fault(fresh, '{kind: dropout, target: joint_states, duration: 0.3}').successful
    # a busy computer may miss the reports of the fault, or hear of its end before the first state after the gap
    fresh.until(lambda: fresh.report(PART)[2]['active faults'] == '' and longest() > 0.24)
    # this process, too, may miss messages of a moment, of both topics
    assert dropped() < 0.36
    del fresh.states[:]
    assert set_fault(fresh, '{kind: out_of_order, target: joint_states, value: 0.5}').successful
    fresh.until(lambda: len(fresh.states) > 100)
    assert (np.diff([stamp_of(msg) for msg in fresh.states]) < 0).any()


@pytest.mark.parametrize('text, says', [
    ('{kind: biass, target: telescope.position, value: 0.01}', "did you mean 'bias'"),
    ('{kind: bias, target: telescop.position, value: 0.01}', "did you mean 'telescope.position'"),
    ('{kind: bias, target: telescope.position, value: much}', 'much'),
    ('{kind: spool_stuck, target: lift_cylinder}', 'no such cylinder'),
    ('[', 'YAML'),
])
def test_a_fault_that_cannot_be_is_refused_with_the_reason(plant, text, says):
    result = set_fault(plant, text)
    assert not result.successful and says in result.reason


def test_two_publishers_are_one_too_many(fresh, crane):
    rival = fresh.publisher(JointState, 'simulator/joint_commands', 1)
    fresh.until(lambda: fresh.report(PART)[0] == ERROR)
    assert '2 publishers on joint_commands' in fresh.report(PART)[1]
    before = int(fresh.report(PART)[2].get('rejected joint_commands', 0))
    force = crane.gravity_forces(crane.initial_position)
    fresh.until(lambda: int(fresh.report(PART)[2].get('rejected joint_commands', 0)) > before + 5,
                each=lambda: push(fresh, crane, force))
    assert fresh.report(PART)[2]['at safe output'] == ', '.join(crane.actuators)
    fresh.node.destroy_publisher(rival)
    fresh.until(lambda: fresh.report(PART)[:2] == (OK, 'running'), each=lambda: push(fresh, crane, force))


# stamps of commands


@pytest.mark.parametrize('shift', [-0.7, 0.2])
def test_a_command_that_is_late_or_from_the_future_is_never_obeyed(fresh, crane, shift):
    before = int(fresh.report(PART)[2].get('rejected joint_commands', 0))
    msg = JointState(name=list(crane.actuators), effort=[0.0] * 4)
    conversions.ns_to_stamp(fresh.node.get_clock().now().nanoseconds + round(shift * 1e9), msg.header.stamp)
    fresh.commands.publish(msg)
    fresh.until(lambda: int(fresh.report(PART)[2].get('rejected joint_commands', 0)) == before + 1)
    assert fresh.report(PART)[1] == 'held'


def test_a_command_out_of_order_is_not_obeyed(fresh, crane):
    force = crane.gravity_forces(crane.initial_position).tolist()
    before = int(fresh.report(PART)[2].get('rejected joint_commands', 0))
    now = fresh.node.get_clock().now().nanoseconds
    for shift in (0, -50_000_000):
        msg = JointState(name=list(crane.actuators), effort=force)
        conversions.ns_to_stamp(now + shift, msg.header.stamp)
        fresh.commands.publish(msg)
        fresh.until(lambda: fresh.report(PART)[1] == 'running')
    fresh.until(lambda: int(fresh.report(PART)[2].get('rejected joint_commands', 0)) == before + 1)


# time


def test_single_steps_while_paused(fresh):
    assert not fresh.call(Trigger, 'simulator/step', Trigger.Request()).success
    assert fresh.call(SetBool, 'simulator/pause', SetBool.Request(data=True)).success
    fresh.until(lambda: fresh.report(PART)[1] == 'paused')
    time = float(fresh.report(PART)[2]['simulated time [s]'])
    fresh.until_quiet(fresh.states)
    del fresh.states[:]
    for count in (1, 2, 3):
        assert fresh.call(Trigger, 'simulator/step', Trigger.Request()).success
        fresh.until(lambda count=count: len(fresh.states) == count)
    fresh.until(lambda: float(fresh.report(PART)[2]['simulated time [s]']) == pytest.approx(time + 0.006))
    assert fresh.call(SetBool, 'simulator/pause', SetBool.Request(data=False)).success
    fresh.until(lambda: len(fresh.states) > 20)


def test_a_storm_of_pauses_and_resets_leaves_it_whole(fresh, crane):
    clients = [(fresh.node.create_client(SetBool, '/ports/simulator/pause'), SetBool.Request(data=True)),
               (fresh.node.create_client(SetBool, '/ports/simulator/pause'), SetBool.Request(data=False)),
               (fresh.node.create_client(Trigger, '/ports/simulator/reset'), Trigger.Request()),
               (fresh.node.create_client(Trigger, '/ports/simulator/step'), Trigger.Request())]
    force = crane.gravity_forces(crane.initial_position)
    futures = []
    for k in range(200):
        client, request = clients[k * 7 % 4]
        fresh.until(client.service_is_ready)
        futures.append(client.call_async(request))
        push(fresh, crane, force)
        if k >= 5:
            fresh.until(futures[k - 5].done)     # the queue of a service is short
    fresh.until(lambda: all(future.done() for future in futures))
    assert fresh.call(SetBool, 'simulator/pause', SetBool.Request(data=False)).success
    fresh.until(lambda: fresh.report(PART)[:2] == (OK, 'running'), each=lambda: push(fresh, crane, force))
    stamps = np.array([stamp_of(msg) for msg in fresh.states])
    assert (np.diff(stamps) > 0).all()


def test_diagnostics_tell_the_pace_and_that_loops_are_closed(plant):
    values = plant.report(PART)[2]
    plant.until(lambda: 0.5 < float(plant.report(PART)[2]['real-time factor']) < 1.5)
    assert 0.0 <= float(values['closure residual [m or rad]']) < 1e-9
    assert {'worst step [ms]', 'overruns', 'lost time [s]', 'at safe output', 'saturated commands'} <= values.keys()


# divergence


@pytest.mark.long
def test_what_cannot_go_on_stops_and_says_so_and_can_be_replayed(tmp_path):
    with graph(tmp_path, '/broken') as g:
        g.start('simulator', '-p', f'robot_description:={URDF / "five_bar.urdf"}',
                '-p', f'snapshot_folder:={tmp_path / "faults"}')
        states = g.listen(JointState, 'joint_states')
        commands = g.publisher(JointState, 'simulator/joint_commands', 1)
        drive = JointState(name=['shoulder_1', 'shoulder_2'], effort=[40.0, -40.0])
        g.until(lambda: states, START_UP)
        g.until(lambda: g.report(PART)[0] == ERROR, 30.0, lambda: commands.publish(drive))
        level, summary, values = g.report(PART)
        assert summary.startswith('FAULT: the motion cannot be integrated beyond')
        g.until_quiet(states)
        last = states[-1]
        assert np.isfinite([last.position, last.velocity]).all()
        plant = snapshot.replay(values['snapshot'])
        assert plant.fault and f'FAULT: {plant.fault}' == summary
        g.through(0.2)
        assert states[-1] is last and g.report(PART)[2]['simulated time [s]'] == values['simulated time [s]']
        assert not g.call(Trigger, 'simulator/step', Trigger.Request()).success
        assert g.call(Trigger, 'simulator/reset', Trigger.Request()).success
        g.until(lambda: g.report(PART)[:2] == (WARN, 'held'))
        g.until(lambda: states[-1] is not last)
        assert g.processes.stop() == {'simulator': 0}
