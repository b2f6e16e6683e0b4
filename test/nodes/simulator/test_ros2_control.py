"""The simulator under stock ros2_control: a process that obeys the rules of its topic interface, over real DDS."""


import numpy as np
import pytest
from conftest import thorough
from support.machines import URDF
from support.paths import ROOT, TESTS

pytest.importorskip('rclpy', reason='the nodes need rclpy')

from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402
from support.nodes.graph import SIMULATED, SLOW_CLOCK, START_UP, away, graph, trajectory  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from psdyn_ros.nodes.runtime.executor import INTERNAL  # noqa: E402

pytestmark = pytest.mark.dds

CRANE = URDF / 'hiab_xs031.urdf'
VALVES = URDF / 'ros2_control' / 'hiab_xs031_valves.urdf'
HYDRAULICS = ROOT / 'config' / 'hiab_xs031_hydraulics.yaml'
CONTROLLERS = ROOT / 'config' / 'ros2_control' / 'hiab_xs031_controllers.yaml'
MACHINE = ('-p', f'robot_description:={CRANE}')
PERIOD = 0.002          # s


def holds_by_force(declaration):
    for actuator in declaration['actuators'].values():
        actuator['safe_output']['effort'] = 'gravity'


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A graph in the namespace that the blocks of the crane name."""
    monkeypatch.setenv('PYTHONPATH', str(TESTS))
    with graph(tmp_path, '/hiab_xs031') as g:
        yield g


def manage(g, active='', urdf=CRANE, fill='false', clock=()):
    """Start the process that stands for controller_manager, with these controllers, named with spaces between."""
    return g.processes.start('manager', 'support.nodes.tbh_process', '--ros-args', '-p', f'urdf:={urdf}',
                             *clock,
                             '-p', f'fill:={fill}', '-p', f'controllers_file:={CONTROLLERS}',
                             *(['-p', f'active:={active}'] if active else []))


def simulate(g, *arguments):
    """Start the simulator on the topics of launch/ros2_control.launch.py; the list of its states.

    Of a parameter given twice the last counts.
    """
    states = g.listen(JointState, 'joint_states', qos=1000)
    g.start('simulator', *MACHINE, *arguments, '-r', '~/joint_commands:=/hiab_xs031/joint_commands',
            '-r', '~/valve_commands:=/hiab_xs031/valve_commands')
    return states


def assert_complete(states, joints):
    """Every array of every message has an entry for every joint, and all of them are finite."""
    for msg in states:
        assert tuple(msg.name) == joints
        rows = np.array([msg.position, msg.velocity, msg.effort])
        assert rows.shape == (3, len(joints)) and np.isfinite(rows).all()


@pytest.mark.long
def test_states_begin_at_once_and_idle_commands_release_nothing(world, crane):
    states = simulate(world)
    world.until(lambda: states, START_UP)
    commands = world.listen(JointState, 'joint_commands')
    manage(world)
    world.until(lambda: len(commands) > 200, START_UP)
    assert np.isnan([msg.effort for msg in commands]).all()
    world.until(lambda: world.reports)
    assert world.report('simulator: plant')[1].startswith('held')
    assert_complete(states, crane.joints)
    world.assert_on_grid(states, PERIOD)
    names, position, _, _ = crane.joint_state(crane.initial_position)
    assert {tuple(msg.position) for msg in states} == {tuple(position)}
    assert world.processes.stop() == {'manager': 0, 'simulator': 0}


@pytest.mark.lockstep
@pytest.mark.parametrize('fill', thorough(['true', 'false'], 1))
def test_forwarded_efforts_hold_the_crane_and_move_it(world, crane, fill):
    target = crane.initial_position + [0.1, 0.03, 0.03, 0.06]
    states = simulate(world, *SLOW_CLOCK)
    references = world.listen(JointTrajectory, 'controller/reference')
    trajectories = world.publisher(JointTrajectory, 'controller/joint_trajectory')
    # a forward controller takes arrays, which leave nothing out: this one holds by force when it stops
    world.start_controller('-r', '~/commands:=/effort_controller/commands', change=holds_by_force)
    world.hold()
    manage(world, 'effort_controller', fill=fill, clock=(*SIMULATED[:3], '/clock:=/hiab_xs031/clock'))
    world.until(lambda: references and trajectories.get_subscription_count(), START_UP)
    world.until(lambda: world.report('simulator: plant')[1] == 'running', START_UP)

    world.through(0.5)
    assert away(states[-1], crane.actuators, crane.initial_position) < 1e-3
    trajectories.publish(trajectory(crane.actuators, target))
    world.until(lambda: away(states[-1], crane.actuators, target) < 1e-4, 60.0)
    assert world.stops == 0
    assert_complete(states, crane.joints)
    world.assert_on_grid(states, PERIOD)
    assert world.processes.stop() == {'manager': 0, 'controller': 0, 'simulator': 0}


@pytest.mark.long
@pytest.mark.parametrize('fill', thorough(['false', 'true'], 1))
def test_forwarded_spool_positions_move_the_crane_on_its_oil_and_neutral_holds_it(world, crane, fill):
    states = simulate(world, '-p', f'hydraulics:={HYDRAULICS}', '-p', 'ttl:=0.2', '-p', f'robot_description:={VALVES}')
    valves, slew = (world.node.create_publisher(Float64MultiArray, f'/{name}/commands', 1)
                    for name in ('valve_controller', 'slew_controller'))
    manage(world, 'valve_controller slew_controller', VALVES, fill)
    sent = {topic: world.listen(JointState, topic) for topic in ('joint_commands', 'valve_commands')}
    world.until(lambda: states and all(len(messages) > 100 for messages in sent.values()), START_UP)

    def stroke(name='lift_cylinder'):
        return dict(zip(states[-1].name, states[-1].position))[name]

    start = stroke()
    assert start == pytest.approx(crane.initial_position[1], abs=1e-4)
    assert np.isnan([msg.position for msg in sent['valve_commands']]).all()
    assert list(sent['valve_commands'][-1].name) == ['lift_cylinder', 'tilt_cylinder', 'telescope']
    assert list(sent['joint_commands'][-1].name) == ['slew']

    def command(lift):
        valves.publish(Float64MultiArray(data=[lift, 0.0, 0.0]))
        slew.publish(Float64MultiArray(data=[0.0]))

    world.until(lambda: world.report('simulator: plant')[1] == 'running', 20.0, lambda: command(0.0))
    world.until(lambda: stroke() > start + 0.03, 20.0, lambda: command(0.2))
    world.until(lambda: max(map(abs, states[-1].velocity)) < 1e-3, 20.0, lambda: command(0.0))
    there = stroke()
    world.through(0.5)
    # it swings on its oil, and does not sink
    assert stroke() == pytest.approx(there, abs=2e-3)
    # another joint from its own message
    world.until(lambda: abs(stroke('slew')) > 0.01, 20.0, lambda: slew.publish(Float64MultiArray(data=[2000.0])))
    assert_complete(states, crane.joints)
    world.assert_on_grid(states, PERIOD)
    assert world.processes.stop() == {'manager': 0, 'simulator': 0}


@pytest.mark.long
def test_arrays_of_a_block_with_joints_that_nothing_drives_are_refused(world, crane, tmp_path):
    """As released, names and efforts of such a block do not match: no guess is made."""
    text = CRANE.read_text()
    joints = text[text.index('    <joint name="lift_barrel">\n      <state'):text.rindex('  </ros2_control>')]
    mixed = tmp_path / 'mixed.urdf'
    mixed.write_text(text.replace('  </ros2_control>', joints + '  </ros2_control>', 1)
                     .replace(text[text.index('  <!-- The joints of the loops'):text.rindex('</robot>')], ''))
    simulate(world)
    manage(world, 'effort_controller', mixed)
    commands = world.listen(JointState, 'joint_commands')
    forces = world.node.create_publisher(Float64MultiArray, '/effort_controller/commands', 1)
    hold = Float64MultiArray(data=crane.gravity_forces(crane.initial_position).tolist())
    world.until(lambda: commands and np.isfinite(commands[-1].effort).all(), START_UP,
                lambda: forces.publish(hold))
    assert len(commands[-1].name) == 8 and list(commands[-1].effort) == list(hold.data)
    before = int(world.report('simulator: plant')[2].get('rejected joint_commands', 0))
    world.until(lambda: int(world.report('simulator: plant')[2].get('rejected joint_commands', 0)) > before + 100)
    assert world.report('simulator: plant')[1].startswith('held')


BAD_STATES = {
    'short array': (dict(name=['slew', 'lift_cylinder'], position=[0.0], velocity=[0.0, 0.0]), 'IndexError'),
    'no such interface': (dict(name=['tilt_boom'], effort=[0.0]), "joint 'tilt_boom' has no state interface 'effort'"),
}


@pytest.mark.long
@pytest.mark.lockstep
@pytest.mark.parametrize('abuse', BAD_STATES)
def test_the_process_ends_where_the_plugin_would(world, tmp_path, abuse):
    """Otherwise the tests above would show nothing."""
    fields, words = BAD_STATES[abuse]
    urdf = tmp_path / 'crane.urdf'
    head, effort, tail = CRANE.read_text().rpartition('<state_interface name="effort"/>')
    urdf.write_text(head + effort * (abuse == 'short array') + tail)
    process = manage(world, urdf=urdf)
    states = world.publisher(JointState, 'joint_states')
    world.until(lambda: process.poll() is not None, START_UP, lambda: states.publish(JointState(**fields)))
    assert process.returncode == INTERNAL and words in world.said('manager')
