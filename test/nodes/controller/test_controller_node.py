"""The managed controller over real DDS: its lifecycle, what refuses it, what stops it, and how it ends."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from support.machines import URDF

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from geometry_msgs.msg import InertiaStamped  # noqa: E402
from lifecycle_msgs.msg import Transition  # noqa: E402
from lifecycle_msgs.srv import ChangeState, GetState  # noqa: E402
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Bool, Float64MultiArray, String  # noqa: E402
from std_srvs.srv import SetBool, Trigger  # noqa: E402
from support.nodes import still_machine  # noqa: E402
from support.nodes.graph import START_UP, graph, trajectory  # noqa: E402
from support.nodes.still_machine import StillMachine  # noqa: E402
from support.nodes.unusable_states import UNUSABLE_STATES  # noqa: E402
from support.paths import ROOT  # noqa: E402
from test_valve_nodes import ON_VALVES, oil_at_rest, telemetry  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from psdyn_ros.control.safety.fault_table import State  # noqa: E402
from psdyn_ros.model.locate import find_config  # noqa: E402
from psdyn_ros.model.parameters.hydraulics import read_hydraulics  # noqa: E402
from psdyn_ros.nodes.runtime import executor  # noqa: E402

CRANE = URDF / 'hiab_xs031.urdf'
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
WARN, ERROR = b'\x01', b'\x02'


class Managed(StillMachine):
    """The crane on its oil, and the services of its controller."""

    def __init__(self, g, crane, name='controller'):
        hydraulics = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), crane.actuators)
        super().__init__(g, crane, oil_at_rest(crane, hydraulics), telemetry)
        self.crane, self.sub_states = crane, g.listen(Float64MultiArray, 'controller/state')

    def change(self, transition):
        """Whether a transition was done."""
        request = ChangeState.Request(transition=Transition(label=transition))
        return self.graph.call(ChangeState, 'controller/change_state', request).success

    @property
    def lifecycle(self):
        return self.graph.call(GetState, 'controller/get_state', GetState.Request()).current_state.label

    def set(self, name, kind, **value):
        """(whether a parameter was set, why not)."""
        parameter = Parameter(name=name, value=ParameterValue(type=kind, **value))
        (result,) = self.graph.call(SetParameters, 'controller/set_parameters',
                                    SetParameters.Request(parameters=[parameter])).results
        return result.successful, result.reason

    def enabled(self, data=True):
        response = self.graph.call(SetBool, 'controller/enable', SetBool.Request(data=data))
        return response.success, response.message

    def reset(self):
        response = self.graph.call(Trigger, 'controller/reset', Trigger.Request())
        return response.success, response.message

    def held(self):
        """As that of `StillMachine`, from wherever the node is."""
        self.pressed = False
        self.speaking.set()
        if self.lifecycle == 'unconfigured':
            self.set('safety', ParameterType.PARAMETER_STRING, string_value=str(self.graph.declare_safety()))
            assert self.change('configure')
        if self.lifecycle == 'inactive':
            self.graph.until(lambda: self.change('activate'), 20.0)     # states have to come first
        return super().held()

    @property
    def summary(self):
        return self.graph.report('controller: control')[1]

    def counted(self, condition):
        """How often the controller has reported a condition of the fault table."""
        return int(self.graph.report('controller: control')[2].get(f'count: {condition}', 0))

    def becomes(self, *states):
        self.graph.until(lambda: self.sub_states and self.sub_states[-1].data[0] in states)

    def moves(self):
        self.becomes(State.RUN, State.DEGRADED)     # the latter where the computer is busy

    def follow(self, names, positions, seconds):
        self.trajectories.publish(trajectory(names, positions, seconds))


@pytest.fixture(scope='module')
def managed(crane, tmp_path_factory):
    with graph(tmp_path_factory.mktemp('managed'), '/managed') as g, Managed(g, crane) as machine:
        machine.speaking.clear()
        machine.process = g.start_simulated(*ON_VALVES, '-p', f'robot_description:={CRANE}',
                                            '-r', 'robot_description:=description')
        g.until(lambda: g.reports, START_UP)
        yield machine
        if machine.process.poll() is None:
            assert g.stop() == {'controller': 0}


# the first four one after the other: each takes the node from where the one before left it


@pytest.mark.dds
@pytest.mark.lockstep
def test_without_a_safety_declaration_it_stays_unconfigured_and_says_why(managed):
    m = managed
    assert m.lifecycle == 'unconfigured' and not m.change('configure')
    m.graph.until(lambda: 'parameter safety: empty' in m.summary)
    assert m.lifecycle == 'unconfigured' and 'parameter safety: empty' in m.graph.said('controller')
    assert not m.change('activate')         # there is no such transition from here; the node lives on
    path = str(m.graph.declare_safety())
    assert m.set('safety', ParameterType.PARAMETER_STRING, string_value=path) == (True, '')
    assert m.set('law', ParameterType.PARAMETER_STRING, string_value='valve_pidd')[1].endswith(
        "did you mean 'valve_pid'?")
    assert m.change('configure') and m.lifecycle == 'inactive'


@pytest.mark.dds
@pytest.mark.lockstep
def test_inactive_it_publishes_nothing_and_its_parameters_stay_as_they_are(managed):
    m = managed
    ok, reason = m.set('rate', ParameterType.PARAMETER_DOUBLE, double_value=100.0)
    assert not ok and 'only while the node is unconfigured; it is inactive' in reason
    assert not m.set('use_sim_time', ParameterType.PARAMETER_BOOL, bool_value=False)[0]
    m.speaking.set()
    m.graph.through(0.3)
    assert not m.commands and not m.sub_states
    assert not m.enabled()[0] and 'inactive' in m.enabled()[1]
    m.speaking.clear()


@pytest.mark.dds
@pytest.mark.lockstep
def test_activation_is_refused_with_every_reason(managed):
    m = managed
    rival = m.graph.publisher(JointState, 'controller/joint_commands', 1)
    m.graph.until(lambda: m.graph.node.count_publishers('/managed/controller/joint_commands') == 2)
    # without an emergency stop it is refused in any case
    reasons = 'activation', 'F18', 'F36', 'F32: 2 publishers on /managed/controller/joint_commands, also /witness'
    m.graph.until(lambda: not m.change('activate') and all(reason in m.summary for reason in reasons))
    assert m.lifecycle == 'inactive'
    m.graph.node.destroy_publisher(rival)
    m.pressed = False
    m.speaking.set()
    m.graph.until(lambda: m.change('activate'), 20.0)
    assert m.lifecycle == 'active'


@pytest.mark.dds
@pytest.mark.lockstep
def test_active_it_gives_the_safe_output_until_it_is_enabled(managed):
    m = managed
    m.becomes(State.STANDBY)
    m.graph.until(lambda: m.commands)
    # neutral of valves, brake of the drive: left out
    assert tuple(m.commands[-1].name) == m.crane.actuators[1:] and list(m.commands[-1].position) == [0.0] * 3
    assert not m.arrays and list(m.sub_states[-1].data[1:3]) == [0.0, 0.0]
    m.follow(m.crane.actuators, m.crane.initial_position.tolist(), 5)
    m.graph.until(lambda: 'not enabled' in m.graph.said('controller'))
    assert m.enabled() == (True, 'enabled')
    m.becomes(State.HOLD)
    m.graph.until(lambda: tuple(m.commands[-1].name) == m.crane.actuators)


@pytest.mark.dds
@pytest.mark.lockstep
@pytest.mark.parametrize('what', ['pressed', 'tapped', 'silent'])
def test_the_emergency_stop_stops_and_only_reset_enable_and_a_reference_lead_back(managed, what):
    m = managed
    m.held()
    m.graph.provoke()
    if what == 'tapped':        # both messages wait when the node looks for them
        m.process.send_signal(signal.SIGSTOP)
        m.stops.publish(Bool(data=True))
        m.stops.publish(Bool(data=False))
        m.process.send_signal(signal.SIGCONT)
    else:
        m.pressed = True if what == 'pressed' else None
    m.becomes(State.SAFE)
    m.graph.until(lambda: 'F36' in m.summary)
    assert ('is pressed' in m.summary) is (what != 'silent')
    assert m.graph.report('controller: control')[0] == ERROR
    assert not m.enabled()[0]
    if what != 'tapped':
        ok, reason = m.reset()
        assert not ok and 'F36' in reason
    m.pressed = False
    m.graph.until(lambda: m.reset()[0])
    m.becomes(State.STANDBY)
    assert m.enabled()[0]
    m.becomes(State.HOLD)


@pytest.mark.dds
@pytest.mark.lockstep
def test_active_its_clock_and_its_description_cannot_be_changed(managed):
    m = managed
    m.held()
    ok, reason = m.set('use_sim_time', ParameterType.PARAMETER_BOOL, bool_value=False)
    assert not ok and 'it is active' in reason
    topic = m.graph.publisher(String, 'description', LATCHED)
    topic.publish(String(data=CRANE.read_text()))
    m.graph.until(topic.get_subscription_count)
    m.graph.through(0.2)
    topic.publish(String(data='<robot name="another"/>'))
    m.graph.until(lambda: 'another robot_description is passed over' in m.graph.said('controller'))
    m.becomes(State.HOLD)


@pytest.mark.dds
@pytest.mark.lockstep
def test_a_trajectory_that_cannot_be_followed_is_refused_with_its_bad_point_and_the_motion_goes_on(managed):
    m = managed
    m.held()
    still = m.crane.initial_position
    m.follow(m.crane.actuators, still.tolist(), 60)
    m.moves()
    before = m.rejected('joint_trajectory')
    m.follow(m.crane.actuators, (still + [0.0, 0.0, 0.0, 2.0]).tolist(), 60)
    m.graph.until(lambda: m.rejected('joint_trajectory') == before + 1)
    m.graph.until(lambda: 'is beyond the limit of telescope' in m.graph.report('controller: control')[2]
                  ['last rejected joint_trajectory'])
    m.graph.through(0.2)
    m.moves()
    assert list(m.references[-1].points[0].positions) == pytest.approx(still)
    m.graph.provoke()
    assert m.enabled(False)[0]
    m.becomes(State.STANDBY)


@pytest.mark.dds
@pytest.mark.lockstep
@pytest.mark.parametrize('condition, off', [
    ('reference_malformed', (0.0, np.nan)), ('reference_unreachable', (0.0, 100.0)),
    ('reference_rejected', (0.3, 0.0))])
def test_a_refused_trajectory_is_counted_as_what_is_wrong_with_it(managed, condition, off):
    m = managed
    m.held()
    still, before = m.crane.initial_position, m.counted(condition)
    first, last = (JointTrajectoryPoint(positions=(still + one).tolist()) for one in off)
    last.time_from_start.sec = 60
    m.trajectories.publish(JointTrajectory(joint_names=list(m.crane.actuators), points=[first, last]))
    m.graph.until(lambda: m.counted(condition) == before + 1)
    m.becomes(State.HOLD)


@pytest.mark.dds
@pytest.mark.lockstep
@pytest.mark.parametrize('condition', UNUSABLE_STATES)
def test_a_state_that_cannot_be_used_is_counted_and_the_machine_stays_held(managed, condition):
    m = managed
    m.held()
    before = m.counted(condition)

    def publish():
        message = m.message()
        UNUSABLE_STATES[condition](message)
        m.states.publish(message)
    m.graph.until(lambda: m.counted(condition) > before, each=publish)
    m.becomes(State.HOLD)


@pytest.mark.dds
@pytest.mark.lockstep
def test_points_may_be_streamed_and_hold_when_they_stop(managed):
    m = managed
    m.held()
    points = m.graph.publisher(JointTrajectory, 'controller/point', 1)
    m.graph.until(points.get_subscription_count)
    there = m.crane.initial_position + [0.0, 0.0, 0.0, 0.0002]     # this machine stands: no valve opens far
    message = JointTrajectory(joint_names=list(m.crane.actuators), points=[
        JointTrajectoryPoint(positions=there.tolist(), velocities=[0.0] * 4)])
    m.graph.until(lambda: m.references[-1].points[0].positions[3] == pytest.approx(there[3], abs=1e-5)
                  and m.sub_states[-1].data[0] in (State.RUN, State.DEGRADED), each=lambda: points.publish(message))
    m.becomes(State.HOLD)
    m.graph.until(lambda: 'F19: no point came for' in m.graph.said('controller'))


@pytest.mark.dds
@pytest.mark.lockstep
def test_a_payload_is_taken_and_one_that_cannot_be_is_not(managed):
    m = managed
    m.held()
    payloads = m.graph.publisher(InertiaStamped, 'controller/payload', 1)
    m.graph.until(payloads.get_subscription_count)
    message = InertiaStamped()
    message.header.frame_id = 'no_such_link'
    message.inertia.m, message.inertia.ixx, message.inertia.iyy, message.inertia.izz = 100.0, 1.0, 1.0, 1.0
    before = m.rejected('payload')
    payloads.publish(message)
    m.graph.until(lambda: m.rejected('payload') == before + 1)
    message.header.frame_id = m.crane.links[-1]
    payloads.publish(message)
    m.graph.until(lambda: 'carries 100 kg' in m.graph.said('controller'))
    message.inertia.m = message.inertia.ixx = message.inertia.iyy = message.inertia.izz = 0.0
    payloads.publish(message)
    m.graph.until(lambda: 'carries 0 kg' in m.graph.said('controller'))


def assert_ended_safely(m):
    """The last outputs are the declared safe one, three of them at least; then there are none."""
    # commands have a depth of one: of several in a row a busy receiver sees the last
    m.graph.until(lambda: [state.data[1] for state in m.sub_states[-3:]] == [0.0] * 3)
    m.graph.until(lambda: list(m.commands[-1].position) == [0.0] * 3)
    assert tuple(m.commands[-1].name) == m.crane.actuators[1:]
    m.graph.until_quiet(m.commands, m.sub_states)
    assert list(m.commands[-1].position) == [0.0] * 3 and m.sub_states[-1].data[1] == 0.0


@pytest.mark.dds
@pytest.mark.lockstep
def test_a_second_publisher_of_commands_stops_it(managed):
    m = managed
    m.held()
    m.graph.provoke()
    rival = m.graph.publisher(JointState, 'controller/joint_commands', 1)
    m.graph.until(lambda: m.summary.startswith(('STOPPING', 'SAFE')) and 'F32' in m.summary)
    m.becomes(State.SAFE)
    m.graph.node.destroy_publisher(rival)
    m.held()


@pytest.mark.dds
@pytest.mark.lockstep
def test_a_second_publisher_of_states_stops_it_and_keeps_it_from_being_enabled(managed):
    m = managed
    m.held()
    m.graph.provoke()
    rival = m.graph.publisher(JointState, 'joint_states')
    m.graph.until(lambda: m.summary.startswith(('STOPPING', 'SAFE'))
                  and 'F32: 2 publishers on /managed/joint_states' in m.summary)
    m.becomes(State.SAFE)
    refused = m.graph.call(Trigger, 'controller/reset', Trigger.Request())
    assert not refused.success and 'F32' in refused.message
    m.graph.node.destroy_publisher(rival)
    m.held()


@pytest.mark.dds
@pytest.mark.lockstep
def test_commands_that_nobody_receives_are_a_warning_that_names_the_topics(managed):
    m, topics = managed, ('/managed/controller/joint_commands', '/managed/controller/commands')
    for subscription in list(m.graph.node.subscriptions):
        if subscription.topic_name in topics:
            m.graph.node.destroy_subscription(subscription)
    warned = f'nobody receives the commands: no subscriber on {" or ".join(topics)}'
    m.graph.until(lambda: warned in m.summary and m.graph.report('controller: control')[0] == WARN)
    assert m.graph.said('controller').count(warned) == 1
    m.commands, m.arrays = (m.graph.listen(kind, f'controller/{name}') for kind, name in (
        (JointState, 'joint_commands'), (Float64MultiArray, 'commands')))
    m.graph.until(lambda: warned not in m.summary)
    m.graph.until(lambda: m.commands)


# a stop takes as long as simulated time does
@pytest.mark.dds
@pytest.mark.lockstep
@pytest.mark.parametrize('pause', [still_machine.PAUSE, pytest.param(0.01, marks=pytest.mark.long)])
def test_deactivation_in_motion_ends_in_the_safe_output_then_in_silence(managed, monkeypatch, pause):
    m = managed
    m.held()
    m.follow(m.crane.actuators, (m.crane.initial_position + [0.0, 0.0, 0.0, 0.01]).tolist(), 2)
    m.moves()
    m.graph.provoke()
    monkeypatch.setattr(still_machine, 'PAUSE', pause)
    assert m.change('deactivate') and m.lifecycle == 'inactive'
    assert 'did not come to its end' not in m.graph.said('controller')
    assert_ended_safely(m)
    # states go on coming, some of them while the node forgets what it listened with
    for _ in range(3):
        assert m.change('cleanup') and m.lifecycle == 'unconfigured'
        assert m.change('configure') and m.lifecycle == 'inactive'


@pytest.mark.dds
@pytest.mark.lockstep
def test_sigterm_ends_it_in_the_safe_output(managed):
    m = managed
    m.held()
    m.graph.provoke()
    m.process.send_signal(signal.SIGTERM)
    m.graph.until(lambda: m.process.poll() is not None, 5.0)
    assert m.process.returncode == 0
    assert_ended_safely(m)


@pytest.mark.dds
@pytest.mark.lockstep
def test_an_exception_ends_it_in_the_safe_output_and_with_its_code(crane, tmp_path):
    with graph(tmp_path, '/failing') as g, Managed(g, crane) as m:
        safety = g.declare_safety()
        process = g.start_simulated('-p', 'autostart:=true', '-p', f'safety:={safety}', '-p', 'emergency_stop:=none',
                                    '-p', f'robot_description:={CRANE}', *ON_VALVES,
                                    module='support.nodes.failing_controller')
        g.until(lambda: m.sub_states, START_UP)
        m.enabled()
        g.provoke()
        g.until(lambda: process.poll() is not None)
        assert process.returncode == executor.INTERNAL and 'as the test wants it' in g.said('controller')
        assert_ended_safely(m)


@pytest.mark.long
@pytest.mark.dds
@pytest.mark.lockstep
def test_parameter_services_can_be_left_out(tmp_path):
    with graph(tmp_path, '/closed') as g:
        g.start('controller', '-p', 'parameter_services:=false')

        def services():     # a report may come before discovery has told of them
            return {name for name, _ in g.node.get_service_names_and_types() if name.startswith('/closed/controller/')}

        g.until(lambda: g.reports and {f'/closed/controller/{name}' for name in ('change_state', 'get_state')}
                <= services(), START_UP)
        assert not any('parameter' in name for name in services())


INTERRUPTED = """
import os, signal, sys
from types import SimpleNamespace
from psdyn_ros.nodes.runtime.executor import run

def interrupt(*_, kill=os.kill, process=os.getpid(), number=signal.SIGINT):
    kill(process, number)

class Last:
    __del__ = interrupt

last = Last()       # of what the interpreter forgets
sys.exit(run('n', interrupt, make=lambda name, **options: SimpleNamespace(destroy_node=interrupt)))
"""


def test_further_signals_do_not_disturb_the_end_of_a_node():
    ended = subprocess.run([sys.executable, '-c', INTERRUPTED], cwd=ROOT, capture_output=True, text=True,
                           check=False)
    assert (ended.returncode, ended.stderr) == (0, '')


MISSPELT = """
import os, signal, sys
from types import SimpleNamespace
from psdyn_ros.nodes.runtime import executor, parameters

def build(node):
    parameters.declare(node, parameters.MACHINE)
    return SimpleNamespace(turn=lambda: os.kill(os.getpid(), signal.SIGINT) or 0.0)

given = 'robot_descripton', 'external_forces.a.type', 'report_rate', 'qos_overrides./a.publisher.depth', 'use_sim_time'
arguments = [word for name, value in zip(given, ('x', 'y', '2.0', '3', 'false')) for word in ('-p', f'{name}:={value}')]
sys.exit(executor.run('n', build, ['n', '--ros-args', *arguments]))
"""


@pytest.mark.dds
def test_a_parameter_that_is_in_no_table_is_a_warning():
    said = subprocess.run([sys.executable, '-c', MISSPELT], cwd=ROOT, capture_output=True, text=True, check=True).stderr
    assert said.count('passed over') == 1
    assert "'robot_descripton' is passed over: this node does not have it; did you mean 'robot_description'?" in said


# without processes


def test_whatever_ends_the_serving_of_a_node_its_work_is_told(monkeypatch):
    told = []
    work = SimpleNamespace(end=told.append, turn=lambda: 0.1)

    def fail(node, stopped, turn):
        raise RuntimeError('in a callback')

    monkeypatch.setattr(executor, 'spin', fail)
    with pytest.raises(RuntimeError):
        executor._serve(None, work, None)
    monkeypatch.setattr(executor, 'spin', lambda node, stopped, turn: None)
    executor._serve(None, work, None)
    assert [str(one) for one in told] == ['in a callback', 'None']
    assert np.isfinite(work.turn())
