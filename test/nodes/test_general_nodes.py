"""The nodes on machines with any loops, redundant actuators, a floating base; as processes where marked dds."""

import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import thorough
from support.machines import URDF
from support.paths import ROOT

import psdyn_ros
from psdyn_ros.cli import main as psdyn

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from geometry_msgs.msg import PoseStamped, TwistStamped  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_srvs.srv import SetBool, Trigger  # noqa: E402
from support.nodes.graph import START_UP, graph, trajectory  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from psdyn_ros.api.orientation import rotation  # noqa: E402
from psdyn_ros.control.laws.registry import make_law  # noqa: E402
from psdyn_ros.model.joint_positions import joint_positions  # noqa: E402
from psdyn_ros.nodes.controller.parameters import gains  # noqa: E402
from psdyn_ros.nodes.messages import conversions
from psdyn_ros.nodes.messages.commands import CommandReader  # noqa: E402
from psdyn_ros.nodes.simulator.messages import LinkPoseWriter, LinkTwistWriter  # noqa: E402
from psdyn_ros.nodes.simulator.parameters import initial_positions  # noqa: E402
from psdyn_ros.tools.demo.parameter_file import read_parameters  # noqa: E402

LOW = {'elbow_1': -1.1504558472410755, 'elbow_2': -2.6118557488308576}


@pytest.fixture(scope='module')
def excavator():
    return psdyn_ros.load(URDF / 'excavator.urdf')


def state_of(m, x, xd, names):
    joints, q, qd, _ = m.joint_state(x, xd)
    rows = [joints.index(name) for name in names]
    return JointState(name=list(names), position=q[rows].tolist(), velocity=qd[rows].tolist())


# conversions and parameters


@pytest.mark.parametrize('initial', [{}, LOW])
@pytest.mark.parametrize('names', thorough([('elbow_1', 'shoulder_1'), ('shoulder_1', 'shoulder_2'), None], 1))
def test_the_state_follows_from_any_joints_that_fix_the_loop(names, initial, rng):
    m = psdyn_ros.load(URDF / 'five_bar.urdf', initial=initial)
    reader = conversions.StateReader(m, 1e-6, lambda extra: None)
    x, xd = m.initial_position + rng.uniform(-0.05, 0.05, 2), rng.uniform(-0.5, 0.5, 2)
    names = rng.permutation(names or m.joints).tolist()
    found, rate = reader.read(state_of(m, x, xd, names))
    assert found == pytest.approx(x, abs=1e-8) and rate == pytest.approx(xd, abs=1e-7)


def test_the_state_of_a_redundant_machine_is_that_of_its_coordinates(excavator, rng):
    m = excavator
    x, xd = m.initial_position + rng.uniform(-0.05, 0.05, 4), rng.uniform(-0.2, 0.2, 4)
    found, rate = conversions.StateReader(m, 1e-6, print).read(state_of(m, x, xd, m.joints))
    assert found == pytest.approx(x, abs=1e-9) and rate == pytest.approx(xd, abs=1e-9)


def test_redundant_joints_that_contradict_each_other_are_rejected(excavator):
    msg = state_of(excavator, excavator.initial_position, np.zeros(4), excavator.joints)
    msg.position[list(msg.name).index('boom_cylinder_right')] += 0.01
    with pytest.raises(conversions.MessageError, match='contradict each other by 0.01'):
        conversions.StateReader(excavator, 0.005, print).read(msg)


def test_joints_that_do_not_fix_a_loop_are_rejected_by_name(excavator):
    names = [name for name in excavator.joints if not name.startswith(('boom', 'arm', 'rocker'))]
    with pytest.raises(psdyn_ros.MeasurementError, match='do not fix'):
        conversions.StateReader(excavator, 0.005, print).read(
            state_of(excavator, excavator.initial_position, np.zeros(4), names))


def test_gains_and_starts_are_of_coordinates_and_efforts_of_actuators(excavator):
    assert [p.name for p in gains(make_law('computed_torque', excavator))][::3] == [
        f'gains.{name}.p' for name in excavator.coordinates]
    assert [p.default for p in initial_positions(excavator)] == excavator.initial_position.tolist()
    balloon = psdyn_ros.load(URDF / 'balloon.urdf', allow_unphysical=True)
    assert [(p.name, p.default) for p in initial_positions(balloon)] == [
        (f'initial.{name}', x) for name, x in zip(balloon.coordinates, balloon.initial_position[7:])]
    reader = CommandReader(excavator.actuators, ['effort'] * 5, print, partial=False)
    assert reader.ordered(conversions.Float64MultiArray(data=[1.0, 2.0, 3.0, 4.0, 5.0])).tolist() == [1, 2, 3, 4, 5]


def test_pose_and_twist_of_a_floating_base_are_those_of_its_link(rng):
    m = psdyn_ros.load(URDF / 'balloon.urdf', allow_unphysical=True)
    x, xd = m.initial_position, rng.uniform(-1, 1, 9)
    x[:3], x[3:7] = rng.uniform(-1, 1, 3), rng.normal(size=4)
    x[3:7] /= np.linalg.norm(x[3:7])
    pose = LinkPoseWriter(m, 'balloon').fill(5 * conversions.SECOND, x)
    twist = LinkTwistWriter(m, 'balloon').fill(5 * conversions.SECOND, x, xd)
    assert (pose.header.frame_id, twist.header.frame_id, pose.header.stamp.sec) == ('world', 'balloon', 5)
    expected, place, turn = m.link_pose(x, 'balloon'), pose.pose.position, pose.pose.orientation
    assert [place.x, place.y, place.z] == pytest.approx(expected[:3, 3])
    assert rotation([turn.x, turn.y, turn.z, turn.w]) == pytest.approx(expected[:3, :3], abs=1e-12)
    v, w = twist.twist.linear, twist.twist.angular
    assert [v.x, v.y, v.z, w.x, w.y, w.z] == pytest.approx(m.link_twist(x, xd, 'balloon'), abs=1e-12)


def test_joint_positions_of_a_parameter_are_read_or_named():
    assert joint_positions('elbow_1=-1.5, elbow_2=2', 'assembly') == {'elbow_1': -1.5, 'elbow_2': 2.0}
    assert joint_positions('', 'assembly') == {}
    with pytest.raises(psdyn_ros.ModelError, match="parameter assembly 'elbow_1': expected JOINT=POSITION"):
        joint_positions('elbow_1', 'parameter assembly')


def test_parameter_files_are_read_for_each_node(tmp_path):
    path = tmp_path / 'p.yaml'
    path.write_text('/**:\n  ros__parameters: {rate: 100.0}\n/**/simulator:\n  ros__parameters: {substeps: 3}\n'
                    'ns:\n  controller:\n    ros__parameters: {rate: 200.0}\n')
    assert read_parameters(path, ('simulator', 'controller')) == {
        'simulator': {'rate': 100.0, 'substeps': 3}, 'controller': {'rate': 200.0}}


@pytest.mark.parametrize('text, says', [
    ('a: [', 'not YAML'), ('- 1', 'expected a mapping'), ('simulator: 3', 'simulator'),
    ('simulator: {ros__parameters: 3}', 'expected a mapping')])
def test_a_parameter_file_that_is_none_is_named(tmp_path, text, says):
    path = tmp_path / 'odd.yaml'
    path.write_text(text)
    with pytest.raises(psdyn_ros.ModelError, match=f'odd.yaml.*{says}'):
        read_parameters(path, ('simulator',))


def command(*arguments):
    process = subprocess.run([sys.executable, '-m', 'psdyn_ros.cli', 'demo', *arguments], cwd=ROOT, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
    return process.returncode, process.stdout


@pytest.mark.parametrize('arguments, says', [
    (('--machine', 'five_bars'), "did you mean 'five_bar'"),
    (('--machine', 'no'), 'there are: balloon'),
    (('--machine', 'five_bar', '--initial', 'elbow_1'), 'expected JOINT=POSITION'),
    (('--machine', 'five_bar', '--config', 'none.yaml'), 'none.yaml'),
])
def test_a_demonstration_of_what_there_is_not_ends_with_two_and_says_so(tmp_path, capfd, arguments, says):
    assert psdyn(['demo', '--output', str(tmp_path), *arguments]) == 2
    said = capfd.readouterr().err
    assert says in said and 'Traceback' not in said


# processes


@pytest.fixture(scope='module')
def balloon(tmp_path_factory):
    with graph(tmp_path_factory.mktemp('balloon'), '/balloon') as g:
        g.states = g.listen(JointState, 'joint_states')
        g.poses = g.listen(PoseStamped, 'simulator/base_pose')
        g.twists = g.listen(TwistStamped, 'simulator/base_twist')
        # as everybody starts it: with the parameter file of the machine
        g.start('simulator', '--params-file', str(ROOT / 'config' / 'balloon.yaml'),
                '-p', f'robot_description:={URDF / "balloon.urdf"}')
        g.until(lambda: g.states and g.poses and g.twists and g.reports, START_UP)
        yield g
        assert g.processes.stop() == {'simulator': 0}


@pytest.mark.long
@pytest.mark.dds
@pytest.mark.lockstep
def test_a_balloon_flies_from_its_parameter_file_with_its_external_forces(balloon):
    g = balloon
    assert 'buoyancy, slider_spring' in g.said('simulator')
    assert g.report('simulator: plant')[1] == 'running'
    assert g.call(SetBool, 'simulator/pause', SetBool.Request(data=True)).success
    assert g.call(Trigger, 'simulator/reset', Trigger.Request()).success
    for messages in (g.states, g.poses, g.twists):
        del messages[:]
    assert g.call(SetBool, 'simulator/pause', SetBool.Request(data=False)).success
    g.until(lambda: len(g.poses) > 150 and len(g.states) > 150)
    stamps = [{conversions.stamp_to_ns(msg.header.stamp) for msg in messages} for messages in (g.states, g.poses)]
    assert len(stamps[0] & stamps[1]) > 100
    # buoyancy carries the weight, so that the balloon stays near where a fall would have taken it metres down
    heights = [msg.pose.position.z for msg in g.poses]
    assert max(np.abs(heights)) > 0.01 and min(heights) > -0.5


@pytest.mark.long
@pytest.mark.dds
@pytest.mark.lockstep
@pytest.mark.parametrize('case', thorough([
    (('-p', f'robot_description:={URDF / "balloon.urdf"}', '-p', 'allow_unphysical:=true'), 'its base floats'),
    (('-p', f'robot_description:={URDF / "five_bar.urdf"}', '-p', 'assembly:=elbow_1'), 'expected JOINT=POSITION'),
], 1), ids=lambda case: case[1])
def test_the_controller_refuses_with_two_what_it_cannot_control(tmp_path, case):
    arguments, says = case
    with graph(tmp_path, '/refused') as g:
        process = g.start('controller', *arguments, '-p', 'autostart:=true')
        g.until(lambda: process.poll() is not None, START_UP)
        assert process.poll() == 2
        assert says in g.said('controller') and 'Traceback' not in g.said('controller')


@pytest.mark.long
@pytest.mark.dds
@pytest.mark.lockstep
def test_two_processes_move_the_other_assembly_of_the_five_bar(tmp_path):
    m = psdyn_ros.load(URDF / 'five_bar.urdf', initial=LOW)
    assembly = '-p', 'assembly:=' + ' '.join(f'{name}={value}' for name, value in LOW.items())
    machine = ('-p', f'robot_description:={URDF / "five_bar.urdf"}', *assembly)
    with graph(tmp_path, '/low') as g:
        commands = g.listen(JointState, 'controller/joint_commands')
        trajectories = g.publisher(JointTrajectory, 'controller/joint_trajectory')
        states = g.simulate(*machine)
        g.start_controller(*assembly, machine='five_bar')
        g.hold()
        g.until(lambda: states and commands and trajectories.get_subscription_count(), START_UP)
        target = m.initial_position + [0.2, -0.1]
        names, q, _, _ = m.joint_state(target)
        joints = ['elbow_1', 'shoulder_1']
        trajectories.publish(trajectory(joints, [q[names.index(name)] for name in joints]))
        g.until(lambda: g.stops or list(states[-1].position) == pytest.approx(q, abs=2e-3), START_UP)
        assert g.stops == 0
        assert g.processes.stop() == {'simulator': 0, 'controller': 0}


@pytest.mark.long
@pytest.mark.dds
@pytest.mark.lockstep
def test_a_machine_that_cannot_be_controlled_shows_its_free_response(tmp_path):
    code, said = command('--machine', 'balloon', '--duration', '2', '--output', str(tmp_path))
    assert code == 0, said
    assert 'its base floats' in said and 'PASS: the motion is that of an integration of order 8' in said
    page = re.sub('srcdoc="[^"]*"', '', (tmp_path / 'report.html').read_text())   # without the playback's comments
    assert 'PASS' in page and 'buoyancy' in page and '://' not in page
    for name in ('motion.png', 'response.png', 'energy.png'):
        assert (tmp_path / name).read_bytes().startswith(b'\x89PNG')
