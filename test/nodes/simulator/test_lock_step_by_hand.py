"""Simulator and controller in lock-step, started by the command lines of the pages, and an operator beside them."""

import re
import signal
import time
from types import SimpleNamespace

import pytest
import yaml
from conftest import thorough
from support.machines import URDF
from support.nodes import children
from support.paths import ROOT

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from psdyn_ros import cli, load  # noqa: E402
from psdyn_ros.control.offline.trajectory_file import trajectory_text  # noqa: E402
from psdyn_ros.control.reference.trajectory import Waypoints  # noqa: E402
from psdyn_ros.nodes import EXECUTABLES  # noqa: E402
from psdyn_ros.tools.demo.demo_safety import WIDEST_TIMEOUTS, safety_text  # noqa: E402
from psdyn_ros.tools.demo.machine_run import PAUSE  # noqa: E402
from psdyn_ros.tools.demo.processes import NodeProcesses  # noqa: E402
from psdyn_ros.tools.demo.session import own_node  # noqa: E402
from psdyn_ros.tools.operator import session  # noqa: E402
from psdyn_ros.tools.operator.session import Operator  # noqa: E402
from psdyn_ros.tools.operator.status import joint_text  # noqa: E402
from psdyn_ros.validation.bags.recording import joint_series, read_messages  # noqa: E402

pytestmark = [pytest.mark.dds, pytest.mark.lockstep]

CRANE, CONFIG = URDF / 'hiab_xs031.urdf', ROOT / 'config'
SPACE = '/by_hand'
PLAIN = '--ros-args', '-r', f'__ns:={SPACE}', '-r', f'/clock:={SPACE}/clock'
START_UP = '90'         # s; a first run compiles


@pytest.fixture(scope='module')
def nodes(tmp_path_factory):
    """Both nodes on valves in lock-step; the safe output of the slew is a brake, which no command names."""
    folder = tmp_path_factory.mktemp('by_hand')
    declared = yaml.safe_load(safety_text(load(CRANE), CONFIG / 'hiab_xs031_safety.yaml', timeouts={
        **WIDEST_TIMEOUTS, 'simulated_pause': PAUSE}))
    declared['probation'] = 0.1
    safety = folder / 'safety.yaml'
    safety.write_text(yaml.safe_dump(declared))
    common = '-p', f'robot_description:={CRANE}', '-p', 'rate:=200.0', '-p', 'report_rate:=20.0', '-p', \
        f'hydraulics:={CONFIG / "hiab_xs031_hydraulics.yaml"}'
    with NodeProcesses(folder) as processes:
        def start_simulator():
            return processes.start(
                'simulator', EXECUTABLES['simulator'], *PLAIN, *common, '-p', 'step_on_command:=true', '-p',
                'publish_clock:=true', '-p', 'ttl:=0.1', '-r',
                f'{SPACE}/simulator/joint_commands:={SPACE}/controller/joint_commands')
        simulator = start_simulator()
        processes.start('controller', EXECUTABLES['controller'], *PLAIN, *common, '-p', f'safety:={safety}', '-p',
                        'law:=valve_computed_torque', '-p', 'use_sim_time:=true', '-p', 'autostart:=true', '-p',
                        'emergency_stop:=none', '-p', 'overrun_share:=1.0')
        yield simulator, start_simulator
        assert processes.ended() == []


@pytest.fixture
def psdyn(nodes, capfd):
    """Run a command beside the nodes; return (exit code, stdout, stderr)."""
    def run(command, *arguments, timeout='30'):
        capfd.readouterr()
        code = cli.main([command, *map(str, arguments), '--namespace', SPACE, '--timeout', timeout])
        out, errors = capfd.readouterr()
        assert 'Traceback' not in errors
        return code, out, errors
    return run


def test_a_controller_in_lock_step_is_enabled_and_moves_the_machine(psdyn, nodes, tmp_path):
    code, out, errors = psdyn('enable', timeout=START_UP)
    assert (code, errors) == (0, '') and f'{SPACE}/controller: enabled' in out, (out, errors)
    code, out, errors = psdyn('move', 'telescope=0.4', 'slew=0.1', '--seconds', '2')
    assert (code, errors) == (0, '') and 'the machine is there' in out, (out, errors)
    code, out, _ = psdyn('status')
    position = dict(line.split() for line in out.splitlines() if line.startswith(('telescope', 'slew')))
    assert f'{SPACE}/controller: control: ' in out and f'{SPACE}/simulator: plant: ' in out
    assert code == 0 and 'active, in HOLD' in out and float(position['telescope']) == pytest.approx(0.4, abs=2e-3)
    assert float(position['slew']) == pytest.approx(0.1, abs=2e-3)
    crane = load(CRANE)
    file = tmp_path / 'motion.yaml'
    file.write_text(trajectory_text(Waypoints(crane.coordinates, [2.0], [crane.initial_position])))
    code, out, errors = psdyn('send', file)
    assert (code, errors) == (0, '') and 'followed to its end' in out, (out, errors)
    code, out, errors = psdyn('stop')
    assert (code, errors) == (0, '') and 'has stopped' in out, (out, errors)
    # time goes on by commands that leave out the brake
    code, out, errors = psdyn('enable')
    assert (code, errors) == (0, ''), errors


@pytest.mark.long
def test_what_the_controller_refuses_is_a_sentence_and_exit_code_one(psdyn):
    assert psdyn('enable')[0] == 0
    code, _, errors = psdyn('move', 'telescope=450')
    assert code == 1 and 'rejected the trajectory' in errors and '450 is beyond the limit of telescope' in errors
    assert 'in mm?' in errors and 'what to do: ' in errors
    code, _, errors = psdyn('move', 'telescop=0.3')
    assert code == 2 and "did you mean 'telescope'" in errors
    assert psdyn('stop')[0] == 0
    code, _, errors = psdyn('move', 'telescope=0.3')
    assert code == 1 and 'psdyn enable' in errors and 'STANDBY' in errors


def test_topics_are_recorded_and_printed(psdyn, tmp_path):
    bag = tmp_path / 'bag'
    assert psdyn('enable')[0] == 0
    code, out, errors = psdyn('record', bag, 'joint_states', 'controller/joint_commands', '--seconds', '2')
    assert (code, errors) == (0, '') and f'{SPACE}/joint_states' in out, (out, errors)
    states = joint_series(read_messages(bag, [f'{SPACE}/joint_states']), f'{SPACE}/joint_states')
    assert set(load(CRANE).coordinates) <= set(states.names) and len(states.stamps) > 10
    code, out, _ = psdyn('echo', 'joint_states', '--count', '2')
    messages = [one for one in yaml.safe_load_all(out) if one]
    assert code == 0 and len(messages) == 2 and 'telescope' in messages[0]['name']
    code, _, errors = psdyn('record', bag, '--seconds', '1')
    assert code == 2 and 'exists; expected the name of a new folder' in errors


@pytest.mark.long
@pytest.mark.parametrize('number', thorough([signal.SIGINT, signal.SIGTERM], 1))
def test_a_signal_ends_a_recording_and_leaves_a_whole_bag(psdyn, tmp_path, number):
    bag, topic = tmp_path / 'bag', f'{SPACE}/joint_states'
    assert psdyn('enable')[0] == 0
    process = children.start('psdyn_ros.cli', 'record', str(bag), 'joint_states', '--namespace', SPACE,
                             '--timeout', '30')
    children.wait_for_line(process, f'recording {topic}')
    time.sleep(1.0)
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and 'Traceback' not in said, said
    states = joint_series(read_messages(bag, [topic]), topic)
    assert re.search(rf'{len(states.stamps)}  {topic}', said), said


@pytest.mark.long
def test_after_a_stop_only_reset_lets_the_controller_be_enabled(psdyn):
    assert psdyn('enable')[0] == 0
    with own_node(name='rival') as (node, _):
        rival = node.create_publisher(JointState, f'{SPACE}/joint_states', 1)
        deadline = time.monotonic() + 60.0
        while 'in SAFE' not in psdyn('status')[1]:
            assert time.monotonic() < deadline
        node.destroy_publisher(rival)
    code, _, errors = psdyn('enable')
    assert code == 1 and 'F32' in errors, errors
    deadline = time.monotonic() + 60.0
    while psdyn('reset')[0] != 0:       # the middleware may still have the other publisher, or the probation lasts
        assert time.monotonic() < deadline
    code, out, errors = psdyn('enable')
    assert (code, errors) == (0, '') and 'enabled' in out, errors


def test_after_a_new_start_of_the_simulator_the_advice_leads_back_to_hold(nodes, psdyn):
    simulator, start_simulator = nodes
    assert psdyn('enable')[0] == 0 and psdyn('move', 'telescope=0.45', '--seconds', '2')[0] == 0
    simulator.kill()
    simulator.wait()
    start_simulator()
    deadline = time.monotonic() + 60.0
    while psdyn('reset')[0] != 0 or 'jumped from' not in (errors := psdyn('enable')[2]):
        assert time.monotonic() < deadline, errors
    assert 'psdyn enable --again' in errors.split('what to do: ')[-1]
    code, out, errors = psdyn('enable', '--again')
    assert (code, errors) == (0, '') and 'deactivated' in out and 'enabled' in out, (out, errors)
    assert psdyn('move', 'telescope=0.4', '--seconds', '2')[0] == 0


@pytest.mark.long
@pytest.mark.parametrize('command', thorough(['status', 'move', 'enable', 'reset', 'stop', 'send'], 1))
def test_without_a_controller_the_error_says_who_is_there(nodes, command, capfd, tmp_path):
    crane = load(CRANE)
    file = tmp_path / 'motion.yaml'
    file.write_text(trajectory_text(Waypoints(crane.coordinates, [2.0], [crane.initial_position])))
    more = {'move': ['slew=0.1'], 'send': [str(file)]}.get(command, [])
    code = cli.main([command, *more, '--namespace', 'elsewhere', '--timeout', '2'])
    errors = capfd.readouterr().err
    assert code == 2 and 'no controller /elsewhere/controller' in errors
    # one of another test, which has ended, may not be forgotten yet, and is named as well, or first
    assert re.search('; found /.*controller: choose by --namespace', errors) and 'ROS_DOMAIN_ID' in errors


@pytest.mark.parametrize('namespace, kept', [
    ('/', ['/crane/simulator: plant', '/simulator: plant', '/digger/simulator: plant', 'pump']),
    ('/crane', ['/crane/simulator: plant', 'pump']), ('/cra', ['pump'])])
def test_diagnostics_of_another_namespace_are_left_out(namespace, kept):
    operator = object.__new__(Operator)
    operator.node = SimpleNamespace(get_namespace=lambda: namespace)
    operator.controller, operator.statuses, operator.reports = f'{namespace.rstrip("/")}/controller', {}, 0
    operator._keep_diagnostics(DiagnosticArray(status=[
        DiagnosticStatus(name=name, hardware_id=node) for node, name in (
            ('/crane/simulator', 'crane/simulator: plant'), ('/simulator', 'simulator: plant'),
            ('/digger/simulator', 'digger/simulator: plant'), ('', 'pump'))]))
    assert list(operator.statuses) == kept and operator.reports == 0
    operator._keep_diagnostics(DiagnosticArray(status=[
        DiagnosticStatus(name=f'{operator.controller[1:]}: control', hardware_id=operator.controller)]))
    assert operator.reports == 1


def test_a_node_that_is_found_late_is_waited_for(monkeypatch):
    now, publishers = [0.0], {'/diagnostics': (2.0, 2.4), 'joint_states': (2.2,)}     # s in which they are found
    monkeypatch.setattr(session.time, 'monotonic', lambda: now[0])
    node = SimpleNamespace(
        get_node_names_and_namespaces=lambda: [('simulator', '/crane')] if now[0] > 2.1 else [],
        count_publishers=lambda topic: sum(now[0] > found for found in publishers[topic]))
    operator = Operator.__new__(Operator)
    operator.node, operator.timeout = node, 10.0
    operator._spin_once = lambda timeout_sec: now.__setitem__(0, now[0] + timeout_sec)
    operator.wait_for_graph()
    assert now[0] == pytest.approx(2.4 + session.REPORT, abs=2 * session.TURN)


def test_rounding_of_a_position_prints_as_zero():
    assert joint_text('slew', 1.3e-19) == 'slew  0' and joint_text('slew', -0.0) == 'slew  0'
    assert joint_text('slew', -1.5e-6) == 'slew  -1.5e-06'
