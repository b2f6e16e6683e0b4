"""Simulator and controller as real processes over real DDS: what they do, and what they do not let happen to them."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import thorough
from support.machines import URDF

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray, String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from support.nodes.graph import START_UP, away, graph, trajectory  # noqa: E402
from support.nodes.still_machine import StillMachine  # noqa: E402
from test_conversions import BAD_STATES, taken  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from psdyn_ros.nodes.messages import conversions  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.lockstep]

CRANE = URDF / 'hiab_xs031.urdf'
MACHINE = ('-p', f'robot_description:={CRANE}')
NAN = float('nan')
OK, WARN, ERROR = b'\x00', b'\x01', b'\x02'


def stamp_of(msg):
    return conversions.stamp_to_ns(msg.header.stamp)


def rejected(graph, part, topic):
    return int(graph.report(part)[2].get(f'rejected {topic}', 0))


# the controller, with the test in the place of the machine


@pytest.fixture(scope='module')
def controlled(crane, tmp_path_factory):
    with graph(tmp_path_factory.mktemp('controller'), '/alone') as g, StillMachine(g, crane) as machine:
        g.start_controller()
        machine.held()
        g.until(lambda: g.reports and machine.trajectories.get_subscription_count())
        yield machine
        assert g.stop() == {'controller': 0}


def test_the_controller_answers_each_state_with_the_forces_that_hold_it(controlled, crane):
    command = controlled.held()
    assert tuple(command.name) == crane.actuators
    assert list(command.effort) == pytest.approx(crane.gravity_forces(crane.initial_position), rel=1e-9, abs=1e-6)
    # the array cannot leave anything out, as the safe output of this machine does
    assert not controlled.arrays


@pytest.mark.parametrize('abuse', sorted(BAD_STATES.keys() - {'contradiction'}))
def test_a_bad_state_is_rejected_counted_and_never_answered(controlled, abuse):
    g = controlled.graph
    controlled.held()
    before, stamps = rejected(g, 'controller: control', 'joint_states'), []

    def spoil():
        good = controlled.message()
        bad = BAD_STATES[abuse][0](taken(good, range(8)))
        bad.header = good.header
        stamps.append(stamp_of(bad))
        controlled.states.publish(bad)

    g.until(lambda: rejected(g, 'controller: control', 'joint_states') > before, each=spoil)
    assert not set(stamps) & {stamp_of(command) for command in controlled.commands}
    assert all(np.isfinite(command.effort).all() for command in controlled.commands)


def test_joints_that_contradict_each_other_stop_the_machine(controlled):
    g = controlled.graph
    controlled.held()
    g.provoke()

    def spoil():
        msg = controlled.message()
        controlled.states.publish(BAD_STATES['contradiction'][0](msg))

    g.until(lambda: 'F12: measured joints of a loop disagree' in g.report('controller: control')[1], each=spoil)
    assert g.report('controller: control')[0] == ERROR
    controlled.held()


@pytest.mark.parametrize('shift', [None, -10.0, 10.0])
def test_a_state_without_a_stamp_of_now_is_rejected(controlled, shift):
    g = controlled.graph
    controlled.held()
    before = rejected(g, 'controller: control', 'joint_states')

    def send():
        msg = controlled.message()
        conversions.ns_to_stamp(0 if shift is None else stamp_of(msg) + int(shift * 1e9), msg.header.stamp)
        controlled.states.publish(msg)

    g.until(lambda: rejected(g, 'controller: control', 'joint_states') > before, each=send)
    assert max(stamp_of(command) for command in controlled.commands) <= controlled.now()


def test_no_state_no_command_and_it_says_so(controlled):
    g = controlled.graph
    controlled.held()
    g.provoke()
    controlled.speaking.clear()
    g.until(lambda: g.report('controller: control')[1].startswith('SAFE; F01:'))
    assert g.report('controller: control')[0] == ERROR
    g.until_quiet(controlled.commands)
    del controlled.commands[:]
    before = rejected(g, 'controller: control', 'joint_trajectory')
    controlled.trajectories.publish(trajectory(['slew'], [0.0]))
    g.until(lambda: rejected(g, 'controller: control', 'joint_trajectory') > before)
    assert not controlled.commands
    # states alone lead out of nothing
    controlled.speaking.set()
    g.through(0.3)
    assert not controlled.commands
    controlled.held()
    g.until(lambda: g.report('controller: control')[:2] == (OK, 'HOLD'))


def test_gains_may_change_within_their_range(controlled, crane):
    def ask(value):
        parameter = Parameter(name='gains.slew.p', value=ParameterValue(
            type=ParameterType.PARAMETER_DOUBLE, double_value=value))
        request = SetParameters.Request(parameters=[parameter])
        return controlled.graph.call(SetParameters, 'controller/set_parameters', request).results[0].successful

    assert ask(100.0)
    assert not ask(NAN) and not ask(-1.0)
    assert not ask(1.0)         # the integral would make it unstable
    assert ask(225.0)


# the simulator alone


@pytest.fixture(scope='module')
def simulated(tmp_path_factory):
    with graph(tmp_path_factory.mktemp('simulator'), '/plant') as g:
        g.start('simulator', *MACHINE)
        g.states = g.listen(JointState, 'joint_states', qos=1000)
        g.named = g.publisher(JointState, 'simulator/joint_commands', 1)
        g.ordered = g.publisher(Float64MultiArray, 'simulator/commands', 1)
        g.until(lambda: g.states and g.reports, START_UP)
        yield g
        assert g.processes.stop() == {'simulator': 0}


def plant_is(graph, level, summary):
    return lambda: graph.report('simulator: plant')[:2] == (level, summary)


def test_the_plant_is_held_until_commands_come(simulated, crane):
    simulated.until(plant_is(simulated, WARN, 'held'))
    simulated.until(lambda: re.search(r'\[WARN\].*the plant: held', simulated.said('simulator')))
    msg = simulated.states[-1]
    assert tuple(msg.name) == crane.joints and len(msg.velocity) == len(msg.effort) == 8
    names, position, _, _ = crane.joint_state(crane.initial_position)
    assert list(msg.position) == pytest.approx(position) and not any(msg.velocity)
    effort = dict(zip(msg.name, msg.effort))
    assert [effort[name] for name in crane.actuators] == pytest.approx(crane.gravity_forces(crane.initial_position))


def test_states_come_at_the_rate_with_stamps_on_its_grid(simulated):
    states = simulated.states
    del states[:]

    def at_the_rate():
        """Of the last states; a busy computer may let some be left out."""
        if len(states) < 500:
            return False
        periods = (stamp_of(states[-1]) - stamp_of(states[-500])) / 2e6
        return periods == pytest.approx(500, rel=0.2)

    simulated.until(at_the_rate, 60.0)
    simulated.assert_on_grid(states, 0.002)


def assert_stays(graph, states):
    """The machine comes to rest at once, not slowly, and stays exactly where it is."""
    graph.until(lambda: not any(states[-1].velocity))
    del states[:-1]
    graph.until(lambda: len(states) > 50)
    assert {tuple(msg.position) for msg in states} == {tuple(states[0].position)}


BAD_COMMANDS = {
    'nothing': JointState(),
    'missing': JointState(name=['slew', 'lift_cylinder'], effort=[0.0, 0.0]),
    'wrong names': JointState(name=['a', 'b', 'c', 'd'], effort=[0.0] * 4),
    'duplicate': JointState(name=['slew', 'slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'], effort=[0.0] * 5),
    'short': JointState(name=['slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'], effort=[0.0] * 3),
    'no effort': JointState(name=['slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'], position=[0.0] * 4),
    'nan': JointState(name=['slew', 'lift_cylinder', 'tilt_cylinder', 'telescope'], effort=[0.0, NAN, 0.0, 0.0]),
    'array short': Float64MultiArray(data=[0.0] * 3),
    'array long': Float64MultiArray(data=[0.0] * 5),
    'array inf': Float64MultiArray(data=[0.0, 0.0, float('inf'), 0.0]),
}


@pytest.mark.parametrize('abuse', BAD_COMMANDS)
def test_a_bad_command_is_rejected_and_releases_nothing(simulated, crane, abuse):
    msg = BAD_COMMANDS[abuse]
    publisher, topic = ((simulated.named, 'joint_commands') if isinstance(msg, JointState)
                        else (simulated.ordered, 'commands'))
    simulated.until(plant_is(simulated, WARN, 'held'))
    simulated.until(publisher.get_subscription_count)
    before = rejected(simulated, 'simulator: plant', topic)
    publisher.publish(msg)
    simulated.until(lambda: rejected(simulated, 'simulator: plant', topic) == before + 1)
    assert plant_is(simulated, WARN, 'held')()


def test_a_good_command_moves_it_and_its_absence_stops_it(simulated, crane):
    force = crane.gravity_forces(crane.initial_position) + [1000.0, 0.0, 0.0, 0.0]
    order = [3, 1, 0, 2]
    named = JointState(name=[crane.actuators[i] for i in order], effort=force[order].tolist())
    simulated.until(lambda: simulated.states[-1].velocity[crane.joints.index('slew')] > 0.01,
                    each=lambda: simulated.named.publish(named))
    assert_stays(simulated, simulated.states)
    simulated.until(plant_is(simulated, WARN, 'held'))

    there = simulated.states[-1].position[crane.joints.index('slew')]
    ordered = Float64MultiArray(data=force.tolist())
    simulated.until(lambda: simulated.states[-1].position[crane.joints.index('slew')] > there + 1e-3,
                    each=lambda: simulated.ordered.publish(ordered))
    response = simulated.call(Trigger, 'simulator/reset', Trigger.Request())
    assert response.success
    names, position, _, _ = crane.joint_state(crane.initial_position)
    simulated.until(lambda: list(simulated.states[-1].position) == pytest.approx(position, abs=1e-12))


# both


@pytest.mark.parametrize('trigger', thorough(['state', 'timer'], 1))
def test_two_processes_move_the_crane_and_a_killed_controller_leaves_it_held(crane, tmp_path, trigger):
    target = crane.initial_position + [0.1, 0.03, 0.03, 0.06]
    with graph(tmp_path, f'/loop_{trigger}') as g:
        references = g.listen(JointTrajectory, 'controller/reference')
        trajectories = g.publisher(JointTrajectory, 'controller/joint_trajectory')
        states = g.simulate(*MACHINE, '-p', 'command_timeout:=0.2')
        controller = g.start_controller('-p', f'trigger:={trigger}')
        g.hold()
        g.until(lambda: states and references and trajectories.get_subscription_count(), START_UP)
        g.until(plant_is(g, OK, 'running'))

        boom = ('slew', 'lift_boom', 'tilt_cylinder', 'telescope')
        names, position, _, _ = crane.joint_state(target)
        trajectories.publish(trajectory(boom, [position[names.index(name)] for name in boom]))
        g.until(lambda: away(states[-1], crane.actuators, target) < 1e-4, 60.0)
        assert g.stops == 0

        os.kill(controller.pid, signal.SIGKILL)
        assert_stays(g, states)
        # the middleware notices the death some time later, and the summary says then that nobody commands the machine
        g.until(lambda: g.report('simulator: plant')[0] == WARN and g.report('simulator: plant')[1].startswith('held'))
        assert away(states[-1], crane.actuators, target) < 0.01     # it went on under the last force for a while
        assert g.processes.stop() == {'simulator': 0, 'controller': -signal.SIGKILL}


@pytest.mark.long
def test_two_machines_each_in_its_namespace_move_by_their_own_commands(crane, tmp_path):
    folders = [tmp_path / name for name in ('left', 'right')]
    for folder in folders:
        folder.mkdir()
    with graph(folders[0], '/left') as left, graph(folders[1], '/right') as right:
        states = {}
        for g in (left, right):
            states[g] = g.simulate(*MACHINE, '-p', 'ttl:=0.2')
            g.start_controller()
        for g, heard in states.items():
            g.until(heard.__len__, START_UP)
            g.hold()
        target = np.array(crane.initial_position) + (0.05, 0.01, 0.01, 0.02)
        wanted = dict.fromkeys((left, right), crane.initial_position)

        def off(g):
            return away(states[g][-1], crane.actuators, wanted[g])

        for moved, other in ((left, right), (right, left)):
            trajectories = moved.publisher(JointTrajectory, 'controller/joint_trajectory', 1)
            moved.until(trajectories.get_subscription_count)
            wanted[moved] = target
            trajectories.publish(trajectory(crane.actuators, target))
            moved.until(lambda moved=moved: off(moved) < 2e-3, 60.0)
            del states[other][:]
            other.until(lambda other=other: states[other])
            assert off(other) < 2e-3 and left.stops == right.stops == 0
        for g in (left, right):
            g.until(lambda g=g: {status.hardware_id for status in g.reports.values()} == {
                f'{g.namespace}/simulator', f'{g.namespace}/controller'})
            assert g.processes.stop() == {'controller': 0, 'simulator': 0}


# starting and ending


# the controller is unconfigured
@pytest.mark.parametrize('case', thorough([('simulator', signal.SIGINT), ('controller', signal.SIGTERM),
                                           ('simulator', signal.SIGTERM), ('controller', signal.SIGINT)], 1), ids=str)
def test_a_signal_ends_a_node_with_zero_and_without_a_traceback(tmp_path, case):
    name, number = case
    with graph(tmp_path, f'/signal_{name}_{int(number)}') as g:
        process = g.start(name, *MACHINE)
        g.until(lambda: g.reports, START_UP)
        process.send_signal(number)
        g.until(lambda: process.poll() is not None, 5.0)
        assert process.returncode == 0
        assert 'Traceback' not in g.said(name) and 'Error' not in g.said(name)


def test_a_signal_interrupts_a_controller_that_still_configures():
    script = ('import signal, sys; from psdyn_ros.nodes.controller import node; '
              'node.controller_setup.build = lambda *_: (signal.raise_signal(signal.SIGINT), print("it went on")); '
              'sys.exit(node.main(["--ros-args", "-p", "autostart:=true"]))')
    done = subprocess.run([sys.executable, '-c', script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert (done.returncode, done.stdout) == (0, '')


@pytest.mark.long
def test_a_controller_that_ends_after_its_simulator_in_simulated_time_reports_no_error(tmp_path):
    with graph(tmp_path, '/ctrl_c') as g:
        g.simulate(*MACHINE, '-p', 'ttl:=0.2')
        g.start_controller()
        g.hold()
        # as Ctrl-C in a terminal; time stands from then on
        assert g.stop('simulator', 'controller') == {'simulator': 0, 'controller': 0}
        # what is logged of cycles that a busy computer delays is another matter
        errors = [line for line in g.said('controller').splitlines() if 'ERROR' in line and 'F30' not in line]
        assert not errors


REFUSED = (
    ('controller', ('-p', 'robot_description_timeout:=0.2', '-p', 'autostart:=true'),
     '/robot_description within 0.2 s'),
    ('controller', (*MACHINE, '-p', 'autostart:=true'), 'parameter safety: empty'),
    ('simulator', ('-p', 'robot_description:=<robot'), 'not well-formed XML'),
    ('controller', (*MACHINE, '-p', 'bandwidth:=-1.0'), 'bandwidth'),
    ('controller', (*MACHINE, '-p', 'bandwidth:=.nan'), 'bandwidth'),
    ('controller', (*MACHINE, '-p', 'law:=computed_torqe'), "did you mean 'computed_torque'"),
    ('simulator', (*MACHINE, '-p', 'rate:=fast'), 'rate'),
    ('simulator', (*MACHINE, '-p', 'initial.telescope:=3.0'), 'initial.telescope'),
)


@pytest.fixture(scope='module')
def refused(request, tmp_path_factory):
    """{row: (exit code, what it said)} of those of `REFUSED` that are asked for, which start together."""
    rows = {item.callspec.params['row'] for item in request.session.items
            if item.path == request.path and 'refused' in item.fixturenames}
    with graph(tmp_path_factory.mktemp('refused'), '/refused') as g:
        processes = {row: g.start(f'{name}_{row}', *arguments, module=name)
                     for row, (name, arguments, _) in enumerate(REFUSED) if row in rows}
        g.until(lambda: all(process.poll() is not None for process in processes.values()), START_UP)
        yield {row: (process.returncode, g.said(f'{REFUSED[row][0]}_{row}')) for row, process in processes.items()}


@pytest.mark.parametrize('row', thorough(range(len(REFUSED)), (0, 6)), ids=[says for _, _, says in REFUSED])
def test_a_node_that_cannot_run_says_why_and_ends_with_two(refused, row):
    code, said = refused[row]
    assert code == 2, said
    assert REFUSED[row][2] in said and 'Traceback' not in said
    if 'robot_description' in REFUSED[row][2]:
        assert 'robot_description is empty: waiting for' in said.split(REFUSED[row][2])[0]


@pytest.mark.long
@pytest.mark.parametrize('case', thorough([('simulator', 500.0), ('controller', 5000.0)], 1), ids=str)
def test_without_numba_a_rate_that_cannot_be_held_is_refused_with_the_remedy(tmp_path, monkeypatch, case):
    name, rate = case
    monkeypatch.setenv('NUMBA_DISABLE_JIT', '1')
    with graph(tmp_path, '/slow') as g:
        process = (g.start_controller('-p', f'rate:={rate}') if name == 'controller'
                   else g.start(name, *MACHINE, '-p', f'rate:={rate}'))
        g.until(lambda: process.poll() is not None, START_UP)
        assert process.returncode == 2
        assert 'cannot be held' in g.said(name) and 'pip install numba' in g.said(name)


@pytest.mark.long
def test_the_machine_comes_from_the_latched_topic_too(tmp_path):
    with graph(tmp_path, '/latched') as g:
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        g.publisher(String, 'robot_description', latched).publish(String(data=CRANE.read_text()))
        g.start('simulator')
        states = g.listen(JointState, 'joint_states')
        g.until(lambda: states, START_UP)
        assert 'hiab_xs031: 4 actuators' in g.said('simulator')
