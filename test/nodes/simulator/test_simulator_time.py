"""The simulator over real DDS in simulated time: lock-step to the bit, /clock, as fast as possible."""


import numpy as np
import pytest
from support.machines import URDF
from support.paths import CONFIG

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from std_srvs.srv import SetBool, Trigger  # noqa: E402
from support.nodes.graph import START_UP, graph  # noqa: E402

from psdyn_ros.nodes.messages.conversions import ns_to_stamp, stamp_to_ns  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.lockstep]

CRANE = URDF / 'hiab_xs031.urdf'
PERIOD = 2_000_000      # ns
OK, WARN, ERROR = b'\x00', b'\x01', b'\x02'
PART = 'simulator: plant'
HYDRAULICS = ('-p', f'hydraulics:={CONFIG / "hiab_xs031_hydraulics.yaml"}', '-p',
              f'sensors:={CONFIG / "hiab_xs031_sensors.yaml"}')


def stamp_of(msg):
    return stamp_to_ns(msg.header.stamp)


class Answering:
    """Answers each state once by a command that follows from it, as a controller in lock-step does."""

    def __init__(self, g, crane, most):
        self.graph, self.crane, self.most, self.states = g, crane, most, []
        self.publisher = g.publisher(JointState, 'simulator/joint_commands', 100)
        g.listen(JointState, 'joint_states', self.answer)

    def answer(self, msg):
        if self.states and stamp_of(msg) <= stamp_of(self.states[-1]):
            return      # a repetition
        self.states.append(msg)
        if len(self.states) < self.most:
            self.publisher.publish(self.command(msg))

    def command(self, msg):
        read = dict(zip(msg.name, zip(msg.position, msg.velocity)))
        t = stamp_of(msg) * 1e-9
        out = JointState(name=list(self.crane.actuators), position=[0.0] * 4, effort=[0.0] * 4)
        out.effort[0] = -2e4 * read['slew'][0] - 5e3 * read['slew'][1]
        for k, name in enumerate(('lift_cylinder', 'tilt_cylinder', 'telescope'), 1):
            out.position[k] = float(np.clip(0.2 * np.sin(3.0 * t + k) - 0.5 * read[name][1], -1.0, 1.0))
        out.header.stamp = msg.header.stamp
        return out

    def run(self):
        self.graph.until(lambda: len(self.states) >= self.most, START_UP)
        return [(stamp_of(msg), tuple(msg.position), tuple(msg.velocity), tuple(msg.effort)) for msg in self.states]


def lock_step(folder, namespace, crane, *arguments, most=250):
    """States of a run in lock-step, and the true telemetry that came with them."""
    with graph(folder, namespace) as g:
        answering = Answering(g, crane, most)
        telemetry = g.listen(Float64MultiArray, 'simulator/hydraulic_telemetry', qos=1000)
        g.start('simulator', '-p', f'robot_description:={CRANE}', *HYDRAULICS, '-p', 'step_on_command:=true',
                *arguments)
        states = answering.run()
        g.until(lambda: telemetry)
        assert g.processes.stop() == {'simulator': 0}
        return states, {tuple(msg.data) for msg in telemetry}


@pytest.fixture(scope='module')
def first(crane, tmp_path_factory):
    return lock_step(tmp_path_factory.mktemp('first'), '/first', crane, '-p', 'seed:=7', '-p',
                     'inject_fault:="{kind: spool_slow, target: tilt_cylinder, value: 0.5, start: 0.2}"')


@pytest.mark.long
def test_two_runs_with_one_seed_are_the_same_to_the_bit(first, crane, tmp_path):
    again = lock_step(tmp_path, '/again', crane, '-p', 'seed:=7', '-p',
                      'inject_fault:="{kind: spool_slow, target: tilt_cylinder, value: 0.5, start: 0.2}"')
    assert again[0] == first[0]
    common = min(len(again[1]), len(first[1]))
    assert len(again[1] & first[1]) >= 0.9 * common > 50
    moved = np.ptp([position for _, position, _, _ in first[0]], axis=0)
    assert moved.max() > 0.005


@pytest.mark.long
def test_another_seed_is_another_run(first, crane, tmp_path):
    other, _ = lock_step(tmp_path, '/other', crane, '-p', 'seed:=8', most=20)
    assert [row[0] for row in other] == [row[0] for row in first[0][:20]]
    assert other != first[0][:20]


@pytest.mark.long
def test_stamps_are_simulated_time_period_by_period(first):
    stamps = [row[0] for row in first[0]]
    assert stamps == [PERIOD * (k + 1) for k in range(len(stamps))]


@pytest.fixture(scope='module')
def stepped(crane, tmp_path_factory):
    with graph(tmp_path_factory.mktemp('stepped'), '/stepped') as g:
        g.states = g.listen(JointState, 'joint_states')
        g.clocks = g.listen(Clock, 'clock')
        g.commands = g.publisher(JointState, 'simulator/joint_commands', 100)
        g.start('simulator', '-p', f'robot_description:={CRANE}', *HYDRAULICS, '-p', 'step_on_command:=true',
                '-p', 'publish_clock:=true', '-r', '/clock:=/stepped/clock', '-p', 'ttl:=0.02')
        g.until(lambda: g.states and g.reports, START_UP)
        g.until(g.commands.get_subscription_count)
        yield g
        assert g.processes.stop() == {'simulator': 0}


def command(crane, stamp, names=None):
    names = list(names or crane.actuators)
    msg = JointState(name=names, position=[0.0] * len(names), effort=[0.0] * len(names))
    ns_to_stamp(stamp, msg.header.stamp)
    return msg


def rejected(g):
    return int(g.report(PART)[2].get('rejected joint_commands', 0))


def test_a_state_is_repeated_until_it_is_answered_and_each_complete_command_is_one_period(stepped, crane):
    g = stepped
    assert g.call(Trigger, 'simulator/reset', Trigger.Request()).success
    del g.states[:]
    g.until(lambda: len(g.states) >= 4)
    start = stamp_of(g.states[-1])
    assert {tuple(msg.position) for msg in g.states} == {tuple(g.states[-1].position)}
    # half a command is none
    g.commands.publish(command(crane, 0, crane.actuators[:2]))
    del g.states[:]
    g.through(0.3)
    assert {stamp_of(msg) for msg in g.states} == {start}
    g.commands.publish(command(crane, 0, crane.actuators[2:]))
    g.until(lambda: stamp_of(g.states[-1]) == start + PERIOD)
    # time waits for the answer; the state is repeated, since it may have been lost on the way
    count = len(g.states)
    g.until(lambda: len(g.states) >= count + 2)
    assert {stamp_of(msg) for msg in g.states[count:]} == {start + PERIOD}
    assert stamp_to_ns(g.clocks[-1].clock) == start + PERIOD
    for k in range(2, 6):
        g.commands.publish(command(crane, start + (k - 1) * PERIOD))
        g.until(lambda k=k: stamp_of(g.states[-1]) == start + k * PERIOD)
    before = rejected(g)
    g.commands.publish(command(crane, start + 4 * PERIOD))      # the answer to an answered state
    g.until(lambda: rejected(g) == before + 1)
    assert stamp_of(g.states[-1]) == start + 5 * PERIOD


def test_time_goes_on_without_a_publisher_that_has_left(stepped, crane):
    g = stepped
    assert g.call(Trigger, 'simulator/reset', Trigger.Request()).success
    del g.states[:]
    g.until(lambda: g.states)
    start, valves = stamp_of(g.states[-1]), g.publisher(JointState, 'simulator/valve_commands')
    g.until(valves.get_subscription_count)
    valves.publish(command(crane, start, crane.actuators[1:2]))
    g.commands.publish(command(crane, start, crane.actuators[:1]))
    g.until(lambda: stamp_of(g.states[-1]) == start + PERIOD)
    g.node.destroy_publisher(valves)
    g.commands.publish(command(crane, start + PERIOD, crane.actuators[:1]))
    g.until(lambda: stamp_of(g.states[-1]) == start + 2 * PERIOD)


def test_ages_are_those_of_simulated_time(stepped, crane):
    """However long nobody says anything; but a stamp is late by the time that was simulated since."""
    g = stepped
    assert g.call(Trigger, 'simulator/reset', Trigger.Request()).success
    g.until(lambda: g.states)
    for _ in range(12):
        last = stamp_of(g.states[-1])
        g.commands.publish(command(crane, last))
        g.until(lambda last=last: stamp_of(g.states[-1]) > last)
    g.until(lambda: g.report(PART)[2]['at safe output'] == '')
    g.through(0.3)
    assert g.report(PART)[2]['at safe output'] == ''
    before, last = rejected(g), stamp_of(g.states[-1])
    g.commands.publish(command(crane, last - 11 * PERIOD))      # 22 ms
    g.until(lambda: rejected(g) == before + 1)
    g.commands.publish(command(crane, last + 10 * PERIOD))
    g.until(lambda: rejected(g) == before + 2)
    assert stamp_of(g.states[-1]) == last


def test_lock_step_can_be_paused_stepped_and_go_on(stepped, crane):
    g = stepped
    assert g.call(SetBool, 'simulator/pause', SetBool.Request(data=True)).success
    last = stamp_of(g.states[-1])
    g.commands.publish(command(crane, last))
    g.until(lambda: g.report(PART)[1] == 'paused')
    g.through(0.1)
    assert stamp_of(g.states[-1]) == last
    assert g.call(Trigger, 'simulator/step', Trigger.Request()).success
    g.until(lambda: stamp_of(g.states[-1]) == last + PERIOD)
    assert g.call(SetBool, 'simulator/pause', SetBool.Request(data=False)).success
    g.commands.publish(command(crane, last + PERIOD))
    g.until(lambda: stamp_of(g.states[-1]) == last + 2 * PERIOD)


@pytest.mark.long
def test_a_state_that_a_fault_swallows_is_answered_by_time_itself(tmp_path, crane):
    with graph(tmp_path, '/lossy') as g:
        answering = Answering(g, crane, 60)
        faults = tmp_path / 'faults.yaml'
        faults.write_text('faults:\n  - {kind: dropout, target: joint_states, start: 0.02, duration: 0.05}\n')
        g.start('simulator', '-p', f'robot_description:={CRANE}', *HYDRAULICS, '-p', 'step_on_command:=true', '-p',
                f'faults:={faults}')
        stamps = [row[0] for row in answering.run()]
        assert np.diff(stamps).max() == pytest.approx(0.05e9, abs=2 * PERIOD)
        assert g.processes.stop() == {'simulator': 0}


# /clock


def test_the_clock_goes_with_simulated_time_and_stands_still_when_paused(tmp_path, crane):
    with graph(tmp_path, '/clocked') as g:
        clocks = g.listen(Clock, 'clock', qos=1000)
        states = g.listen(JointState, 'joint_states', qos=1000)
        g.start('simulator', '-p', f'robot_description:={CRANE}', '-p', 'publish_clock:=true', '-p',
                'real_time_factor:=2.0', '-r', '/clock:=/clocked/clock')
        g.until(lambda: len(states) > 100, START_UP)
        g.until(lambda: float(g.report(PART)[2]['real-time factor']) == pytest.approx(2.0, rel=0.3), 60.0)
        assert g.call(SetBool, 'simulator/pause', SetBool.Request(data=True)).success
        g.until(lambda: g.report(PART)[1] == 'paused')
        g.until_quiet(clocks, states)
        times = [stamp_to_ns(msg.clock) for msg in clocks]
        assert (np.diff(times) > 0).all() and not (np.diff(times) % PERIOD).any()
        assert {stamp_of(msg) for msg in states} <= set(times) and times[-1] == stamp_of(states[-1])
        g.through(0.2)
        assert stamp_to_ns(clocks[-1].clock) == times[-1]
        assert g.call(SetBool, 'simulator/pause', SetBool.Request(data=False)).success
        g.until(lambda: stamp_to_ns(clocks[-1].clock) > times[-1])
        assert g.processes.stop() == {'simulator': 0}


@pytest.mark.long
def test_a_machine_that_nobody_commands_is_a_warning_that_names_the_topics(tmp_path):
    with graph(tmp_path, '/alone') as g:
        g.start('simulator', '-p', f'robot_description:={CRANE}')
        said = ('held; nobody commands the machine: no publisher on /alone/simulator/joint_commands or '
                '/alone/simulator/commands')
        g.until(lambda: g.report(PART)[:2] == (WARN, said), START_UP)
        g.publisher(JointState, 'simulator/joint_commands', 1)
        g.until(lambda: g.report(PART)[:2] == (WARN, 'held'))
        assert g.said('simulator').count('nobody commands the machine') == 1
        assert g.processes.stop() == {'simulator': 0}


@pytest.mark.long
def test_as_fast_as_possible_is_faster_than_real_time(tmp_path):
    with graph(tmp_path, '/fast') as g:
        g.start('simulator', '-p', f'robot_description:={CRANE}', '-p', 'publish_clock:=true', '-p',
                'real_time_factor:=0.0', '-r', '/clock:=/fast/clock')
        g.until(lambda: PART in g.reports and float(g.report(PART)[2]['real-time factor']) > 2.0, START_UP)
        assert g.call(Trigger, 'simulator/reset', Trigger.Request()).success
        assert g.processes.stop() == {'simulator': 0}
