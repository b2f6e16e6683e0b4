"""What the node `simulator` is made of, without processes: commands, clock, messages."""

import sys
import time
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from support.machines import URDF
from support.paths import CONFIG

import psdyn_ros

rclpy = pytest.importorskip('rclpy', reason='the nodes need rclpy')

from rclpy.parameter import Parameter  # noqa: E402
from rclpy.signals import SignalHandlerOptions  # noqa: E402
from rclpy.time import Time  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64MultiArray  # noqa: E402

from psdyn_ros.model.parameters.hydraulics import read_hydraulics  # noqa: E402
from psdyn_ros.model.parameters.sensors import read_sensors  # noqa: E402
from psdyn_ros.model.units import SECOND  # noqa: E402
from psdyn_ros.nodes.messages.commands import CommandReader  # noqa: E402
from psdyn_ros.nodes.messages.conversions import MessageError  # noqa: E402
from psdyn_ros.nodes.runtime.executor import plain_node  # noqa: E402
from psdyn_ros.nodes.runtime.parameters import ParameterError  # noqa: E402
from psdyn_ros.nodes.simulator import messages as plant_messages  # noqa: E402
from psdyn_ros.nodes.simulator.clock import SimulationClock  # noqa: E402
from psdyn_ros.nodes.simulator.node import Simulator  # noqa: E402
from psdyn_ros.nodes.simulator.parameters import PARAMETERS  # noqa: E402
from psdyn_ros.nodes.simulator.publishers import PlantOutputs  # noqa: E402
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant  # noqa: E402
from psdyn_ros.simulation.plant import Plant  # noqa: E402
from psdyn_ros.simulation.sensors.kinds import channels_of, mountable  # noqa: E402
from psdyn_ros.simulation.sensors.plant_sensors import PlantSensors  # noqa: E402

NAN, INF = float('nan'), float('inf')
ACTUATORS = ('slew', 'lift', 'tilt', 'telescope')
MODES = ('effort', 'valve', 'pressure', 'velocity')


@pytest.fixture
def extra():
    return []


@pytest.fixture
def reader(extra):
    return CommandReader(ACTUATORS, MODES, extra.append)


# commands


def test_each_actuator_is_commanded_by_the_field_of_its_mode(reader):
    msg = JointState(name=['telescope', 'lift', 'slew', 'tilt'], position=[9.0, 0.5, 9.0, 9.0],
                     velocity=[0.1, 9.0, 9.0, 9.0], effort=[9.0, 9.0, 100.0, 5e6])
    assert reader.named(msg).tolist() == [100.0, 0.5, 5e6, 0.1]


def test_any_subset_may_be_commanded_and_nan_is_no_command(reader, extra):
    command = reader.named(JointState(name=['lift', 'grapple'], position=[0.5, 1.0]))
    assert command[1] == 0.5 and np.isnan(command[[0, 2, 3]]).all() and extra == [['grapple']]
    command = reader.named(JointState(name=list(ACTUATORS), position=[NAN, -0.25, NAN, NAN], velocity=[NAN] * 4,
                                      effort=[50.0, NAN, NAN, NAN]))
    assert command[:2].tolist() == [50.0, -0.25] and np.isnan(command[2:]).all()


def test_valve_commands_are_positions_of_valve_driven_actuators(reader):
    command = reader.valves(JointState(name=['lift'], position=[-1.5]))
    assert command[1] == -1.5 and np.isnan(command[[0, 2, 3]]).all()


@pytest.mark.parametrize('msg, says', [
    (JointState(), 'missing'),
    (JointState(name=['lif'], position=[0.1]), "'lif' is no actuator; did you mean 'lift'"),
    (JointState(name=['lift', 'lift'], position=[0.1, 0.1]), 'more than once'),
    (JointState(name=['lift'], effort=[0.1]), 'position has 0 entries for 1'),
    (JointState(name=['lift', 'slew'], position=[0.1], effort=[1.0, 1.0]), 'position has 1 entries for 2'),
    (JointState(name=['lift'], position=[0.1], velocity=[0.1, 0.2]), 'velocity has 2 entries for 1'),
    (JointState(name=['lift'], position=[NAN]), 'all NaN'),
    (JointState(name=['lift'], position=[INF]), 'lift is inf, not finite'),
    (JointState(name=['slew', 'lift'], position=[NAN, 0.5], effort=[-INF, NAN]), 'slew is -inf'),
    (JointState(name=['lift'], position=[50.0]), 'absurd for valve'),
    (JointState(name=['slew'], effort=[1e12]), 'absurd for effort'),
    (JointState(name=['tilt'], effort=[1e10]), 'absurd for pressure'),
    (JointState(name=['telescope'], velocity=[1e3]), 'absurd for velocity'),
])
def test_a_bad_command_by_name_is_refused_whole(reader, msg, says):
    with pytest.raises(MessageError, match=says):
        reader.named(msg)


@pytest.mark.parametrize('msg, says', [
    (JointState(name=['slew'], position=[0.1]), "'slew' takes effort commands; valve commands are taken by lift"),
    (JointState(name=['lift'], position=[NAN]), 'not finite'),
    (JointState(name=['lift']), 'position has 0 entries'),
    (JointState(name=['boom'], position=[0.1]), "'boom' is no actuator"),
])
def test_a_bad_valve_command_is_refused(reader, msg, says):
    with pytest.raises(MessageError, match=says):
        reader.valves(msg)


def test_an_array_commands_all_of_them(reader):
    assert reader.ordered(Float64MultiArray(data=[10.0, 0.5, 1e6, 0.1])).tolist() == [10.0, 0.5, 1e6, 0.1]
    for data, says in (([10.0] * 3, '3 entries'), ([10.0, NAN, 1e6, 0.1], 'not finite'), ([1.0, 99.0, 0, 0], 'absurd')):
        with pytest.raises(MessageError, match=says):
            reader.ordered(Float64MultiArray(data=data))


# clock


class Node:
    """As much of a node as the parts ask for."""

    def __init__(self, use_sim_time=False, listeners=0):
        self.topics, self._use_sim_time, self._listeners = {}, use_sim_time, listeners

    def get_parameter(self, name):
        return SimpleNamespace(value=self._use_sim_time)

    def create_publisher(self, kind, topic, qos, **options):
        self.topics[topic] = kind, []
        return SimpleNamespace(publish=self.topics[topic][1].append, get_subscription_count=lambda: self._listeners)


def settings(**changed):
    return SimpleNamespace(**{p.name: p.default for p in PARAMETERS} | changed)


def test_stamps_keep_to_the_grid_until_somebody_sets_the_clock(monkeypatch):
    clock = SimulationClock(Node(), settings())
    now = 10**18
    monkeypatch.setattr(clock, '_ros', lambda: now)
    clock.advance()
    assert clock.stamp == now
    now += 2_300_000
    clock.advance()
    assert clock.stamp == 10**18 + 2_000_000
    now += 3600 * SECOND
    clock.advance()
    assert clock.stamp == now and clock.clock_jumps == 1
    assert clock.steps == 3 and clock.age_clock() is not None


def test_after_a_stall_stamps_are_neither_ahead_of_the_clock_nor_behind(monkeypatch):
    clock = SimulationClock(Node(), settings())
    instant, period = 10**12, clock.period
    monkeypatch.setattr('psdyn_ros.nodes.simulator.clock.time.monotonic_ns', lambda: instant)
    monkeypatch.setattr(clock, '_ros', lambda: 10**18 + instant)
    for wait, work in [(0, 0), (period, 0), (SECOND, 30_000_000), *[(period, 100_000)] * 40, (70_000_000, 0),
                       *[(period, 100_000)] * 40]:
        instant += wait
        for periods in clock.due(instant):
            instant += work
            clock.advance(periods)
            assert -period <= clock.stamp - (10**18 + instant) + work <= period // 2
    assert clock.slipped > 0.9 * SECOND and clock.clock_jumps == 2


def test_what_goes_by_between_the_readings_of_two_clocks_is_no_jump(monkeypatch):
    clock = SimulationClock(Node(), settings())
    instant, stalls = 10**12, [0, 0, 30_000_000, 0]

    def ros():
        nonlocal instant
        read = 10**18 + instant
        instant += stalls.pop(0) if stalls else 0
        return read

    monkeypatch.setattr('psdyn_ros.control.monitors.clock.time.monotonic_ns', lambda: instant)
    monkeypatch.setattr(clock, '_ros', ros)
    stamps = []
    for _ in range(20):
        instant += clock.period
        for periods in clock.due(instant):
            clock.advance(periods)
            stamps.append(clock.stamp)
    assert stalls == [] and clock.clock_jumps == 0
    assert (np.diff(stamps) > 0).all() and not (np.diff(stamps) % clock.period).any()


@pytest.mark.parametrize('seed', range(5))
def test_pauses_resets_and_single_steps_never_stamp_backwards_and_are_no_jumps(monkeypatch, seed):
    clock, rng = SimulationClock(Node(), settings()), np.random.default_rng(seed)
    instant, period = 10**12, clock.period
    monkeypatch.setattr('psdyn_ros.nodes.simulator.clock.time.monotonic_ns', lambda: instant)
    monkeypatch.setattr(clock, '_ros', lambda: 10**18 + instant)
    stamps, paused, ahead = [], False, 0
    for action in rng.choice(['tick', 'pause', 'go on', 'reset', 'step', 'wait'], 2000):
        instant += int(rng.integers(period)) if action != 'wait' else 10 * SECOND
        if action in ('pause', 'go on', 'reset'):
            paused = {'pause': True, 'go on': False}.get(action, paused)
            clock.restart()
        elif action == 'step' and paused:
            clock.advance(single=True)
            stamps.append(clock.stamp)
            ahead = max(ahead, clock.stamp - 10**18 - instant)
        elif not paused:
            for periods in clock.due(instant):
                clock.advance(periods)
                stamps.append(clock.stamp)
                assert clock.stamp - 10**18 - instant <= period // 2
    assert ahead > period and len(stamps) > 500     # several steps within a period
    assert (np.diff(stamps) > 0).all()


def test_a_clock_that_was_set_back_while_time_stood_still_is_followed(monkeypatch):
    clock, now = SimulationClock(Node(), settings()), 10**18
    monkeypatch.setattr(clock, '_ros', lambda: now)
    clock.advance(single=True)
    clock.restart()
    now -= 3600 * SECOND
    clock.advance()
    assert now <= clock.stamp <= now + clock.period


def test_simulated_time_goes_on_by_periods_and_never_is_zero():
    clock = SimulationClock(Node(), settings(publish_clock=True))
    assert clock.stamp == clock.now() == 2_000_000
    clock.advance(3)
    assert clock.stamp == 8_000_000 and clock.age_clock() is None
    clock.restart()
    assert clock.stamp == 8_000_000
    clock.back_to_start()
    assert clock.stamp == 2_000_000


def test_a_real_time_factor_makes_periods_due_sooner():
    clock = SimulationClock(Node(), settings(publish_clock=True, real_time_factor=4.0))
    assert clock.turn == pytest.approx(0.0005)
    assert [list(clock.due(k * 1_000_000)) for k in range(3)] == [[1], [2], [2]]


def test_as_fast_as_possible_steps_until_the_turn_is_over(monkeypatch):
    clock = SimulationClock(Node(), settings(publish_clock=True, real_time_factor=0.0))
    import psdyn_ros.nodes.simulator.clock as module
    ticks = iter(range(0, 10**9, 100_000))
    monkeypatch.setattr(module.time, 'monotonic_ns', lambda: next(ticks))
    assert list(clock.due(0)) == [1] * 8


@pytest.mark.parametrize('changed, sim_time, says', [
    ({'real_time_factor': 2.0}, False, 'without publish_clock'),
    ({'publish_clock': True}, True, 'use_sim_time'),
    ({'step_on_command': True}, True, 'use_sim_time'),
])
def test_clocks_that_contradict_each_other_are_refused(changed, sim_time, says):
    with pytest.raises(ParameterError, match=says):
        SimulationClock(Node(sim_time), settings(**changed))


# what cannot be


@pytest.mark.jit        # without, no rate can be held, and that is said first
@pytest.mark.parametrize('arguments, says', [
    (['command_modes.lift_cylinder:=valves'], "did you mean 'valve'"),
    (['command_modes.lift_cylinder:=velocity'], 'no pressure compensator'),
    (['command_modes.slew:=valve'], 'command_modes.slew'),
    (['ttl:=0.5'], 'ttl'),
    (['seed:=-1'], 'seed'),
    (['measured_joints:=slew, lift_boomm'], "measured_joints: 'lift_boomm'.*did you mean 'lift_boom'"),
    (['tool_link:=tcpp'], "did you mean 'tcp'"),
    (['real_time_factor:=2.0'], 'without publish_clock'),
    (['publish_clock:=true', 'use_sim_time:=true'], 'use_sim_time'),
    (['external_forces.a.type:=joint_spring'], 'not with hydraulics'),
    (['hydraulics:=none.yaml'], 'none.yaml'),
    (['sensors:=none.yaml'], 'none.yaml'),
    ([f'sensors:={CONFIG / "hiab_xs031_sensors.yaml"}', 'sensor_set:=god'], "did you mean 'good'"),
    (['faults:=none.yaml'], 'none.yaml'),
    (['inject_fault:="{kind: nan, target: slew.speed}"'], "'slew.speed'"),
])
def test_a_simulator_that_cannot_run_says_why(arguments, says):
    with node_with(f'robot_description:={URDF / "hiab_xs031.urdf"}',
                   f'hydraulics:={CONFIG / "hiab_xs031_hydraulics.yaml"}', *arguments) as node:
        with pytest.raises(psdyn_ros.PsdynError, match=says):
            Simulator(node)


def test_a_machine_of_the_package_is_found_by_its_name():
    with node_with('robot_description:=four_bar') as node:
        assert Simulator(node)._plant.manipulator.name == 'four_bar'


@pytest.mark.jit
def test_without_a_time_on_the_clock_no_state_is_stamped_and_it_says_why():
    with node_with(f'robot_description:={URDF / "hiab_xs031.urdf"}', 'use_sim_time:=true') as node:
        simulator, ros = Simulator(node), node.get_clock()
        clock, report = simulator._clock, simulator._report
        simulator._tick()
        simulator.pause(True)
        assert simulator.step(1) == 'use_sim_time, but no time came on /clock' and clock.steps == 0
        level, summary = report._state(False)
        assert level == 'warn' and 'use_sim_time, but no time came on /clock' in summary
        simulator.pause(False)
        ros.set_ros_time_override(Time(nanoseconds=1, clock_type=ros.clock_type))
        simulator._tick()
        assert clock.steps == 1 and clock.stamp >= 1 and '/clock' not in report._state(False)[1]


@pytest.mark.jit
def test_in_lock_step_it_says_how_long_it_waits_for_an_answer(monkeypatch):
    with node_with(f'robot_description:={URDF / "hiab_xs031.urdf"}', 'step_on_command:=true') as node:
        simulator, now, said = Simulator(node), time.monotonic_ns(), []
        monkeypatch.setattr('psdyn_ros.nodes.simulator.diagnostics.time.monotonic_ns', lambda: now)
        simulator._report._publish = lambda message: said.append(message.status[0].message)
        simulator._run(1)
        for seconds, paused in ((0.5, False), (1.0, False), (1.0, True), (0.5, False), (1.0, False)):
            now += int(seconds * SECOND)
            simulator._report.publish(paused)
        assert [text.partition('it waits for the answer to its state')[2] for text in said] == [
            '', ' for 1.5 s', '', '', ' for 1.5 s']


@pytest.mark.parametrize('given', ['true', 'false'])
def test_the_clock_of_a_node_is_not_changed_while_it_runs(given):
    with node_with(f'use_sim_time:={given}', make=plain_node) as node:
        for value in (True, False):
            (result,) = node.set_parameters([Parameter('use_sim_time', value=value)])
            same = value is (given == 'true')
            assert result.successful is same and ('only when the node starts' in result.reason) is not same
            assert node.get_clock().ros_time_is_active is (given == 'true')


@contextmanager
def node_with(*pairs, make=rclpy.create_node):
    """Give a node with these parameters."""
    context = rclpy.Context()
    rclpy.init(args=['--ros-args', *(part for pair in pairs for part in ('-p', pair))], context=context,
               signal_handler_options=SignalHandlerOptions.NO)
    node = make('simulator', context=context, automatically_declare_parameters_from_overrides=True)
    try:
        yield node
    finally:
        node.destroy_node()
        rclpy.try_shutdown(context=context)


# messages


class Value:
    def __init__(self, interface_names):
        self.interface_names, self.values = interface_names, None


class State:
    def __init__(self, joint_names, interface_values):
        self.joint_names, self.interface_values = joint_names, interface_values
        self.header = SimpleNamespace(stamp=SimpleNamespace(sec=0, nanosec=0))


def test_hydraulic_states_name_each_quantity_of_each_cylinder():
    types = SimpleNamespace(InterfaceValue=Value, DynamicJointState=State)
    writer = plant_messages.DynamicStateWriter(types, ('lift', 'tilt'), ('pressure_a', 'pressure_b'))
    msg = writer.fill(3 * SECOND, [[1.0, 2.0], [3.0, 4.0]])
    assert msg.joint_names == ['lift', 'tilt'] and msg.header.stamp.sec == 3
    assert [list(value.values) for value in msg.interface_values] == [[1.0, 2.0], [3.0, 4.0]]
    assert msg.interface_values[1].interface_names == ['pressure_a', 'pressure_b']


def test_all_details_of_a_plant_in_lock_step(crane, monkeypatch):
    """With control_msgs, as if it were installed."""
    package = ModuleType('control_msgs')
    package.msg = SimpleNamespace(InterfaceValue=Value, DynamicJointState=State)
    monkeypatch.setitem(sys.modules, 'control_msgs', package)
    hydraulics = read_hydraulics(CONFIG / 'hiab_xs031_hydraulics.yaml', crane.actuators)
    plant, node = HydraulicPlant(crane, hydraulics, period=0.002), Node(listeners=1)
    setup = SimpleNamespace(plant=plant, sensors=PlantSensors(plant, None, 0), measured=crane.joints)
    p = settings(step_on_command=True, publish_fluid_pressure=True, tool_link='tcp')
    outputs = PlantOutputs(node, setup, SimulationClock(node, p), p)
    outputs.publish_details()
    assert set(node.topics) == {
        'joint_states', *(f'~/{topic}' for topic in (
            'ground_truth', 'dynamics', 'base_wrench', 'tool_pose', 'tool_twist', 'hydraulic_telemetry',
            'ground_truth/hydraulic_telemetry', 'hydraulic_states')),
        *(f'~/load_motion/{name}' for name in plant.cylinders),
        *(f'~/pressure/{name}/{port}' for name in plant.cylinders for port in 'ab')}
    assert all(len(messages) == 1 for topic, (_, messages) in node.topics.items() if topic != 'joint_states')
    states = node.topics['~/hydraulic_states'][1][0]
    assert states.joint_names == list(plant.cylinders)
    assert [list(value.values) for value in states.interface_values] == plant.telemetry.tolist()


def test_mounted_sensors_publish_what_they_measured_with_its_stamp(crane):
    plant, node = Plant(crane, period=0.002), Node(listeners=0)
    text = ('mounted: {imu: [telescope_link], load_pin: [telescope]}\n'
            'default: {acceleration: {rate: 250}, angular_velocity: {rate: 250}, pin_force: {delay: 0.004, bias: 7}}\n')
    sensors = PlantSensors(plant, read_sensors(text, channels_of(plant), mountable=mountable(plant)), 0)
    p = settings(step_on_command=True)
    clock = SimulationClock(node, p)
    outputs = PlantOutputs(node, SimpleNamespace(plant=plant, sensors=sensors, measured=crane.joints), clock, p)
    for _ in range(8):
        plant.step(None, plant.period)
        clock.advance(1)
        outputs.sample()
        outputs.publish_details()
    (_, imu), (_, pins) = node.topics['~/imu/telescope_link'], node.topics['~/load_pin/telescope']
    assert len(imu) == 5 and len(pins) == 8         # the first was taken at the start
    assert imu[-1].header.frame_id == pins[-1].header.frame_id == 'telescope_link'
    assert imu[-1].orientation_covariance[0] == -1.0
    a, f = imu[-1].linear_acceleration, pins[-1].wrench.force
    assert np.linalg.norm([a.x, a.y, a.z]) == pytest.approx(np.linalg.norm(crane.gravity))
    zero = np.zeros(crane.dof)
    assert np.array([f.x, f.y, f.z]) == pytest.approx(crane.joint_wrench(plant.x, zero, zero, 'telescope')[:3] + 7.0)
    stamps = [one.header.stamp.sec * SECOND + one.header.stamp.nanosec for one in (imu[-1], pins[-1])]
    assert stamps == [clock.stamp, clock.stamp - 4_000_000]


def test_details_come_as_often_as_they_are_asked_for(crane):
    plant, node = Plant(crane, period=0.002), Node(listeners=1)
    setup = SimpleNamespace(plant=plant, sensors=PlantSensors(plant, None, 0), measured=crane.joints)
    p = settings(step_on_command=True, details_divider=5)
    outputs = PlantOutputs(node, setup, SimulationClock(node, p), p)
    for _ in range(11):
        outputs.publish_details()
    assert len(node.topics['~/ground_truth'][1]) == 3


def test_pressures_of_ports_are_absolute():
    msg = plant_messages.PortPressureWriter('lift').fill(SECOND, 1e6)
    assert msg.fluid_pressure == 1101325.0 and msg.header.frame_id == 'lift'
