"""A cylinder on a rig in a process of its own, in the place of that of the simulator, over real DDS."""

import os
import signal

import pytest
from conftest import thorough
from support.machines import URDF

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.nodes.messages import conversions  # noqa: E402

pytestmark = pytest.mark.dds

CRANE = URDF / 'hiab_xs031.urdf'
HYDRAULICS = URDF.parent / 'config' / 'hiab_xs031_hydraulics.yaml'
CYLINDERS = ('lift_cylinder', 'tilt_cylinder', 'telescope')
MACHINE = ('-p', f'robot_description:={CRANE}', '-p', f'hydraulics:={HYDRAULICS}', '-p', 'ttl:=0.2')
OK, WARN, ERROR = b'\x00', b'\x01', b'\x02'


def start_rig(g, cylinder, *arguments):
    return g.start('rig', *MACHINE, '-p', f'cylinder:={cylinder}', *arguments)


@pytest.mark.parametrize('case', thorough([('telescope', 'pressures'), ('lift_cylinder', 'force')], 1), ids='-'.join)
def test_the_split_machine_follows_the_whole_one_and_freezes_without_its_rig(crane, tmp_path, case):
    cylinder, measures = case
    with graph(tmp_path, f'/split_{measures}') as g:
        topic = {'force': 'measured', 'pressures': 'measured_pressures'}[measures]
        common = ('-r', f'~/valve_commands:={g.namespace}/valve_commands')
        for name in ('whole', 'split'):
            g.start(name, *MACHINE, *common, '-r', f'__node:={name}',
                    '-r', f'joint_states:={g.namespace}/{name}/states', module='simulator')
        rig = start_rig(g, cylinder, '-p', f'measures:={measures}', *common,
                        '-r', f'~/load_motion:={g.namespace}/split/load_motion/{cylinder}',
                        '-r', f'~/{topic}:={g.namespace}/split/{topic}/{cylinder}')
        states = {name: g.listen(JointState, f'{name}/states') for name in ('whole', 'split')}
        commands = g.publisher(JointState, 'valve_commands', 1)
        report = f'rig: {cylinder}'

        def stroke(name, joint=cylinder):
            msg = states[name][-1]
            return msg.position[list(msg.name).index(joint)]

        def send(u):
            row = [u * (joint == cylinder) for joint in CYLINDERS]
            commands.publish(JointState(name=list(CYLINDERS), position=row))

        g.until(lambda: all(states.values()), START_UP)
        g.until(lambda: g.report(report)[:2] == (OK, 'following'), START_UP, lambda: send(0.0))
        start = stroke('whole')
        assert stroke('split') == pytest.approx(start, abs=5e-4)
        g.until(lambda: min(map(stroke, states)) > start + 0.05, 20.0, lambda: send(0.2))
        # how far they go then is a matter of when each hears of the command; test_rig_demo.py compares in lock-step
        g.until(lambda: all(max(map(abs, msgs[-1].velocity)) < 2e-3 for msgs in states.values())
                and cylinder not in g.report('split: plant')[1], 20.0, lambda: send(0.0))
        for joint in {*CYLINDERS} - {cylinder}:
            assert stroke('split', joint) == pytest.approx(stroke('whole', joint), abs=1e-2)

        os.kill(rig.pid, signal.SIGKILL)
        g.until(lambda: f'{cylinder} frozen: no measurement' in g.report('split: plant')[1], 10.0, lambda: send(0.0))
        there = stroke('split')
        g.until(lambda: abs(states['split'][-1].velocity[crane.joints.index(cylinder)]) < 1e-4, 20.0, lambda: send(0.0))
        assert stroke('split') == pytest.approx(there, abs=0.02)
        assert g.processes.stop() == {'rig': -signal.SIGKILL, 'split': 0, 'whole': 0}


class Load:
    """Stands for the simulator: says how the load moves, hears what is measured."""

    def __init__(self, g, kind, topic):
        self.graph = g
        self.motions = g.publisher(JointTrajectory, 'rig/load_motion', 1)
        self.measured = g.listen(kind, f'rig/{topic}')

    def message(self, **fields):
        point = JointTrajectoryPoint(**{'positions': [0.2], 'velocities': [0.0], 'accelerations': [0.0], **fields})
        msg = JointTrajectory(joint_names=['lift_cylinder'], points=[point])
        conversions.ns_to_stamp(self.graph.node.get_clock().now().nanoseconds, msg.header.stamp)
        return msg

    def send(self):
        self.motions.publish(self.message())


@pytest.fixture(scope='module')
def load(tmp_path_factory):
    with graph(tmp_path_factory.mktemp('rig'), '/load') as g:
        start_rig(g, 'lift_cylinder')
        load = Load(g, JointState, 'measured')
        g.until(lambda: g.report('rig: lift_cylinder')[:2] == (WARN, 'waiting for a motion'), START_UP)
        yield load
        assert g.processes.stop() == {'rig': 0}


def test_it_measures_the_force_that_holds_the_machine_with_stamps_of_the_load(load, crane):
    load.graph.until(lambda: len(load.measured) > 50, 10.0, load.send)
    msg = load.measured[-1]
    assert list(msg.name) == ['lift_cylinder']
    assert msg.effort[0] == pytest.approx(crane.gravity_forces(crane.initial_position)[1], rel=1e-3)
    assert msg.position[0] == pytest.approx(0.2, abs=1e-6) and abs(msg.velocity[0]) < 1e-6
    load.graph.until(lambda: abs(conversions.stamp_to_ns(load.measured[-1].header.stamp)
                                 - load.graph.node.get_clock().now().nanoseconds) < 100e6, 10.0, load.send)


def test_without_motions_nothing_is_measured_and_it_goes_on_with_them(load):
    g = load.graph
    g.until(lambda: load.measured, 10.0, load.send)
    g.until_quiet(load.measured)
    g.until(lambda: g.report('rig: lift_cylinder')[:2] == (WARN, 'standing still: no motion'))
    g.until(lambda: g.report('rig: lift_cylinder')[:2] == (OK, 'following') and load.measured, 10.0, load.send)


def test_a_command_moves_the_force_and_its_absence_leaves_it(load):
    g = load.graph
    commands = g.publisher(JointState, 'rig/valve_commands', 1)
    g.until(lambda: load.measured, 10.0, load.send)
    before = load.measured[-1].effort[0]

    def push():
        load.send()
        commands.publish(JointState(name=['telescope', 'lift_cylinder'], position=[-1.0, 0.1]))

    def spool():
        return abs(float(g.report('rig: lift_cylinder')[2]['spool']))

    g.until(lambda: load.measured[-1].effort[0] > before + 5e3 and spool() > 0.05, 10.0, push)
    g.until(lambda: spool() < 1e-6, 10.0, load.send)
    assert g.call(Trigger, 'rig/reset', Trigger.Request()).success
    g.until(lambda: load.measured[-1].effort[0] == pytest.approx(before, abs=10.0), 10.0, load.send)


def test_in_lock_step_commands_act_from_their_instant_on_also_those_that_come_after_the_motion(tmp_path):
    def forces(g, late):
        """Of some periods in which the valve opens, and how often a motion was there before the commands for it."""
        stamp, waited, out, heard = 10**9, 0, [], len(load.measured)
        for k in range(8):
            msg = load.message()
            conversions.ns_to_stamp(stamp + k * 2_000_000, msg.header.stamp)
            load.motions.publish(msg)
            if k > 1 and late:
                for _ in range(2):      # then the rig has served its motion
                    before = g.reports['rig: lift_cylinder']
                    g.until(lambda before=before: g.reports['rig: lift_cylinder'] is not before)
                waited += len(load.measured) == heard
                command(stamp + (k - 1) * 2_000_000, 0.02 * k)
            g.until(lambda heard=heard: len(load.measured) > heard)
            heard = len(load.measured)
            out.append(load.measured[-1].effort[0])
            if not late or k == 0:
                command(stamp + k * 2_000_000, 0.02 * (k + 1))
        return out, waited

    with graph(tmp_path, '/lockstep') as g:
        start_rig(g, 'lift_cylinder', '-p', 'ttl:=10.0', '-p', 'step_on_motion:=true', '-p', 'report_rate:=50.0')
        load, commands = Load(g, JointState, 'measured'), g.publisher(JointState, 'rig/valve_commands', 1)

        def command(stamp, opening):
            msg = JointState(name=['lift_cylinder'], position=[opening])
            conversions.ns_to_stamp(stamp, msg.header.stamp)
            commands.publish(msg)
        g.until(lambda: g.report('rig: lift_cylinder')[:2] == (WARN, 'waiting for a motion'), START_UP)
        early, _ = forces(g, False)
        assert g.call(Trigger, 'rig/reset', Trigger.Request()).success
        late, waited = forces(g, True)
        assert waited == 6 and late == early and early[-1] > early[0] + 100.0
        assert g.processes.stop() == {'rig': 0}


BAD_MOTIONS = {
    'other joint': lambda msg: setattr(msg, 'joint_names', ['telescope']),
    'no point': lambda msg: setattr(msg, 'points', []),
    'no acceleration': lambda msg: setattr(msg.points[0], 'accelerations', []),
    'nan': lambda msg: setattr(msg.points[0], 'positions', [float('nan')]),
    'beyond the stroke': lambda msg: setattr(msg.points[0], 'positions', [2.0]),
    'no stamp': lambda msg: conversions.ns_to_stamp(0, msg.header.stamp),
}


@pytest.mark.parametrize('abuse', BAD_MOTIONS)
def test_a_bad_motion_is_rejected_and_counted(load, abuse):
    g = load.graph
    g.until(lambda: load.measured, 10.0, load.send)

    def count():
        return int(g.report('rig: lift_cylinder')[2].get('rejected load_motion', 0))

    def spoil():
        msg = load.message()
        BAD_MOTIONS[abuse](msg)
        load.motions.publish(msg)

    before = count()
    g.until(lambda: count() > before, 10.0, spoil)
    g.until(lambda: g.report('rig: lift_cylinder')[:2] == (OK, 'following'), 10.0, load.send)


@pytest.mark.long
def test_pressures_are_measured_instead(tmp_path):
    with graph(tmp_path, '/pressures') as g:
        start_rig(g, 'lift_cylinder', '-p', 'measures:=pressures', '-p', 'initial_force:=20000.0')
        load = Load(g, Float64MultiArray, 'measured_pressures')
        g.until(lambda: load.measured, START_UP, load.send)
        a, b = load.measured[-1].data
        assert 5.0265e-3 * a - 3.4361e-3 * b == pytest.approx(20e3, rel=1e-3)
        assert load.measured[-1].layout.dim[0].label == 'pressure_a,pressure_b'
        assert g.processes.stop() == {'rig': 0}


@pytest.mark.long
@pytest.mark.parametrize('case', thorough([
    ((*MACHINE[:2], '-p', 'cylinder:=lift_cylinder'), "parameter 'hydraulics' is empty"),
    ((*MACHINE, '-p', 'cylinder:=lift'), "'lift': no such cylinder; there are: lift_cylinder"),
    ((*MACHINE, '-p', 'cylinder:=telescope', '-p', 'bandwidth:=900.0'), 'at most 250 rad/s'),
    ((*MACHINE, '-p', 'cylinder:=telescope', '-p', 'measures:=forces'), "did you mean 'force'"),
], 1), ids=lambda case: case[1])
def test_a_rig_that_cannot_run_says_why_and_ends_with_two(tmp_path, case):
    arguments, says = case
    with graph(tmp_path, '/refused') as g:
        process = g.start('rig', *arguments)
        g.until(lambda: process.poll() is not None, START_UP)
        assert process.returncode == 2
        assert says in g.said('rig') and 'Traceback' not in g.said('rig')
