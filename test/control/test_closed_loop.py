"""The names of `psdyn_ros.control`, the loop that closes a controller around any plant, and the page that shows it."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import psdyn_ros.control
from psdyn_ros import BaseMotion
from psdyn_ros.control import (
    ClosedLoop,
    ControllerConfig,
    MeasuredState,
    PointStream,
    SafetyError,
    State,
    TrajectoryError,
    Waypoints,
    assemble,
    follow,
)
from psdyn_ros.control.safety.proposal import proposed_safety
from psdyn_ros.model.errors import ModelError, StateError, UnknownNameError
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.tools.studies.second_plant import SecondPlant

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'how-to' / 'own_plant.md'
URDF = find_machine('hiab_xs031')
HYDRAULICS, SAFETY = (find_config(f'hiab_xs031_{name}.yaml') for name in ('hydraulics', 'safety'))


@pytest.fixture(scope='module')
def on_valves():
    return ControllerConfig.from_files(URDF, HYDRAULICS, safety=SAFETY)


@pytest.fixture(scope='module')
def on_efforts():
    return ControllerConfig.from_files(URDF, safety=SAFETY)


def second_plant(**options):
    return SecondPlant(URDF, HYDRAULICS, **options)


def move(config, x, way=(0.1, 0.05, -0.05, 0.1), seconds=2.0):
    zero = np.zeros((2, 4))
    return Waypoints(config.machine.coordinates, [0.0, seconds], [x, x + way], zero, zero)


# configuration


def test_files_make_the_configuration_that_a_node_makes(on_valves, on_efforts):
    assert (on_valves.law, on_efforts.law) == ('valve_computed_torque', 'computed_torque')
    assert on_valves.declaration.interfaces == ('effort', 'valve', 'valve', 'valve')
    assert on_efforts.hydraulics is None and set(on_efforts.declaration.interfaces) == {'effort'}
    pid = ControllerConfig.from_files(URDF, HYDRAULICS, safety=SAFETY, law='valve_pid', rate=100.0,
                                      emergency_stop=False)
    assert (pid.law, pid.rate, pid.period, pid.emergency_stop) == ('valve_pid', 100.0, 0.01, False)


def test_unknown_law_names_the_nearest_one():
    with pytest.raises(UnknownNameError, match="law 'valve_pdi': expected one of .*; did you mean 'valve_pid'"):
        ControllerConfig.from_files(URDF, HYDRAULICS, safety=SAFETY, law='valve_pdi')


def test_unsafe_declaration_is_refused():
    text = Path(SAFETY).read_text().replace('effort: brake', 'effort: 0.0')
    with pytest.raises(ModelError, match='lift_cylinder'):
        ControllerConfig.from_files(URDF, safety=text)


def test_every_exported_name_exists():
    assert all(hasattr(psdyn_ros.control, name) for name in psdyn_ros.control.__all__)


# the loop


@pytest.mark.parametrize('of_package', [True, False])
def test_a_move_on_valves_ends_in_its_goal(on_valves, of_package):
    plant = (HydraulicPlant(on_valves.machine, on_valves.hydraulics, period=on_valves.period) if of_package
             else second_plant())
    waypoints = move(on_valves, plant.x)
    record = follow(assemble(on_valves), plant, waypoints, 3.0)
    assert np.abs(record.x[-1] - waypoints.positions[-1]).max() < 2e-3
    assert {State.RUN, State.HOLD} <= set(record.state.tolist()) <= {State.STANDBY, State.RUN, State.HOLD}
    assert record.time[-1] == pytest.approx(record.time.size * on_valves.period)
    assert record.reasons == record.rejected == ()
    assert record.spool.shape == (record.time.size, 3) and 0.02 < np.abs(record.spool).max() < 1.0
    moving = record.state == State.RUN
    assert np.abs(record.desired[moving, 0] - record.x[moving]).max() < 5e-3
    assert record.speed.max() == np.abs(record.xd).max()


def test_a_move_on_efforts_ends_in_its_goal(on_efforts):
    plant = Plant(on_efforts.machine, period=on_efforts.period, command_timeout=0.02)
    waypoints = move(on_efforts, plant.x)
    record = follow(assemble(on_efforts), plant, waypoints, 3.0)
    assert np.abs(record.x[-1] - waypoints.positions[-1]).max() < 1e-3
    assert record.spool.shape == (record.time.size, 0)


def test_nothing_to_follow_holds(on_valves):
    plant = second_plant()
    start = plant.x
    record = follow(assemble(on_valves), plant, None, 0.5)
    assert record.state[-1] == State.HOLD and np.abs(record.x - start).max() < 5e-4


def test_lost_states_stop_the_machine(on_valves):
    def lost(time, measured):
        return measured if time < 0.5 else None

    plant = second_plant()
    record = follow(assemble(on_valves), plant, move(on_valves, plant.x), 2.0, change=lost)
    stopped = record.time[record.state >= State.STOPPING][0]
    assert 0.5 < stopped < 0.54
    assert record.reasons[0][0] <= stopped and record.state[-1] in (State.SAFE, State.STANDBY)


@pytest.mark.parametrize('absurd', (1e308, 1e300, -50.0))
def test_positions_that_no_pose_has_are_refused(absurd):
    config = ControllerConfig.from_files(find_machine('excavator'), safety=find_config('excavator_safety.yaml'))
    column = config.machine.coordinates.index('boom_cylinder_left')

    def lie(time, measured):
        x = measured.x.copy()
        x[column] = absurd if time > 0.2 else x[column]
        return measured._replace(x=x)

    core = assemble(config)
    record = follow(core, Plant(config.machine, period=config.period), None, 0.6, change=lie)
    assert record.state[-1] == State.SAFE and re.search('does not close at boom_cylinder_left|not finite', core.refused)
    assert not any('exception' in reasons for _, reasons in record.reasons)
    assert any('state_lost' in reasons for _, reasons in record.reasons)
    assert record.speed.max() < 1e-3


def test_stream_is_followed_and_wrong_points_are_recorded(on_valves):
    plant = second_plant()
    start = plant.x

    def motion(t):
        x = start + (0.0, 0.0, 0.0, 9.0 if 0.295 < t < 0.335 else 0.02 * t)
        return x, np.array([0.0, 0.0, 0.0, 0.02]), np.zeros(4)

    record = follow(assemble(on_valves), plant, PointStream(motion, 100.0, ahead=0.03), 1.0)
    assert np.abs(record.x[-1] - motion(1.0)[0]).max() < 2e-3
    assert len(record.rejected) == 4
    assert all(0.27 < time < 0.32 and 'telescope' in text for time, text in record.rejected)


def test_stream_has_the_declared_jitter_and_losses():
    points = np.array(list(PointStream(None, 100.0, 0.03, jitter=0.3, loss=0.02, seed=1).points(100.0)))
    assert 9700 < len(points) < 9900
    assert np.abs(points[:, 1] - points[:, 0] - 0.03).max() < 1e-12
    off = points[1:, 0] * 100.0 - np.round(points[1:, 0] * 100.0)
    assert 0.29 < np.abs(off).max() <= 0.3
    assert np.array_equal(points, list(PointStream(None, 100.0, 0.03, 0.3, 0.02, 1).points(100.0)))


class Listener:
    """A plant that stays where it is and notes its commands."""

    def __init__(self, config):
        self.x, self.xd, self.commands = config.machine.initial_position, np.zeros(4), []

    def step(self, command, dt):
        self.commands.append(command)

    def measure(self):
        return self.x, self.xd, None, None


def test_expired_commands_are_withheld_from_a_plant_without_a_watchdog(on_efforts):
    plant = Listener(on_efforts)
    loop = ClosedLoop(assemble(on_efforts), plant, ttl=0.02).start()
    loop.run(0.1)
    assert np.isfinite(plant.commands[-1]).all()
    loop.core.step = lambda *_: None        # the controller hangs
    del plant.commands[:]
    loop.run(0.1)
    held = [command is not None for command in plant.commands]
    assert 10 <= held.index(False) <= 12 and not any(held[held.index(False):])


def test_plant_with_its_own_watchdog_gets_each_command_once(on_efforts):
    plant = Listener(on_efforts)
    loop = ClosedLoop(assemble(on_efforts), plant).start()
    loop.core.step = lambda *_: None
    loop.run(0.01)
    assert [command is not None for command in plant.commands[-4:]] == [False] * 4


def test_refusals_reach_the_caller(on_efforts):
    plant = Listener(on_efforts)
    beyond = move(on_efforts, plant.x, (0.0, 5.0, 0.0, 0.0))
    with pytest.raises(TrajectoryError, match='lift_cylinder'):
        follow(assemble(on_efforts), plant, beyond, 1.0)
    with pytest.raises(SafetyError, match='F18'):
        follow(assemble(on_efforts), plant, None, 1.0, change=lambda time, measured: None)


@pytest.mark.parametrize('spoil', [lambda p: p[:2], lambda p: np.vstack([p, p]), np.ravel, lambda p: None])
def test_pressures_of_another_shape_are_refused_with_that_expected(on_valves, spoil):
    plant = HydraulicPlant(on_valves.machine, on_valves.hydraulics, period=on_valves.period)
    loop = ClosedLoop(assemble(on_valves), plant).start()
    loop.slot += 1
    now = loop.ros_now, loop.ros_now, loop.now
    assert 'expected (3, 2)' in loop.core.take_pressures(*now, spoil(plant.measure()[2]))
    assert loop.core.take_pressures(*now, plant.measure()[2].tolist()) == ''


@pytest.mark.parametrize('spoil, why', [
    (list, ''), (np.float32, ''), (lambda x: x[:2], r'expected \(4,\)'), (lambda x: None, r'expected \(4,\)')])
def test_states_of_another_type_are_read_and_of_another_shape_refused(on_efforts, spoil, why):
    plant = Plant(on_efforts.machine, period=on_efforts.period)
    loop = ClosedLoop(assemble(on_efforts), plant).start()
    loop.slot += 1
    output = loop.core.step(loop.now, loop.ros_now, MeasuredState(loop.ros_now, spoil(plant.x), spoil(plant.xd)))
    assert output.state is State.HOLD and re.search(why, loop.core.refused)
    assert bool(why) == bool(loop.core.refused)


# what an operator does


@pytest.mark.parametrize('level', ['effort', 'valve'])
def test_a_load_that_is_declared_while_the_machine_stands_by_is_carried_from_the_first_command(
        on_valves, on_efforts, level):
    config = on_valves if level == 'valve' else on_efforts
    load = 'tcp', 400.0, np.zeros(3), np.eye(3)
    loaded, period = config.machine.with_payload(*load), config.period
    plant = HydraulicPlant(loaded, config.hydraulics, period=period, ttl=0.02) if level == 'valve' else Plant(
        loaded, period=period, command_timeout=0.02)
    loop = ClosedLoop(assemble(config), plant)
    loop.core.set_payload(*load)
    record = loop.start().run(0.5).recording()
    assert loop.core.states.state is State.HOLD and record.speed.max() < 1e-4


@pytest.mark.parametrize('state', ['stands by', 'holds', 'moves'])
@pytest.mark.parametrize(('mass', 'com', 'inertia', 'why'), [
    (30.0, 0.8, 0.3, 'would need .* N or N m to hold the machine here'), (0.5, 400.0, 1e-3, 'centre of mass is 400 m'),
    (1.0, 0.2, 100.0, 'radius of gyration 10 m')])
def test_a_payload_that_the_machine_cannot_carry_is_refused_and_moves_nothing(state, mass, com, inertia, why):
    """As one in other units: it threw an arm of 11 kg that carried none, at 10 times its rated speed."""
    config, loop = two_links(*LIGHT)
    if state == 'stands by':
        loop.cycle()
    else:
        loop.start()
    if state == 'moves':
        loop.send(Waypoints(config.machine.coordinates, [1.5], [loop.plant.x + (0.6, -0.6)], np.zeros((1, 2))))
        loop.run(0.7)
    with pytest.raises(ModelError, match=why):
        loop.core.set_payload('link_2', mass, np.array([com, 0.0, 0.0]), inertia * np.eye(3))
    if state == 'stands by':
        loop.start()
    record = loop.run(1.5).recording()
    assert loop.core.states.state is State.HOLD
    assert record.speed.max() < (0.01 if state != 'moves' else 1.0)


def test_a_machine_that_cannot_hold_its_declared_load_is_not_enabled():
    """The payload was declared before the first state came."""
    _, loop = two_links(*LIGHT)
    loop.core.set_payload('link_2', 30.0, np.array([0.8, 0.0, 0.0]), 0.3 * np.eye(3))
    with pytest.raises(SafetyError, match='would need .* to hold the machine here'):
        loop.start()


def test_a_base_that_moves_as_none_does_is_not_believed():
    _, loop = two_links(*LIGHT)
    loop.start()
    for acceleration in (0.0, 0.0, 0.0, 0.0, 0.0, 1e6), (50.0, 0.0, 0.0, 0.0, 0.0, 0.0):
        with pytest.raises(StateError, match='expected at most'):
            loop.core.set_base(BaseMotion((0.0, 0.0, 0.0, 1.0), np.zeros(6), np.array(acceleration)))
    loop.core.set_base(((0.0, 0.0, 0.0, 1.0), np.zeros(6), np.zeros(6)))       # as a plain tuple
    assert loop.run(0.5).recording().speed.max() < 1e-3


def test_a_machine_is_held_under_constant_gravity_where_it_was_enabled_last():
    config = ControllerConfig.from_files(URDF, safety=SAFETY, law='pd_gravity')
    loop = ClosedLoop(assemble(config), Plant(config.machine, period=config.period, command_timeout=0.02)).start()
    loop.send(move(config, loop.plant.x, (0.0, 0.05, 0.0, 0.1), 3.0))
    loop.run(4.0).core.disable(loop.now)
    loop.run(2.0).core.enable(loop.now)
    assert loop.core.states.state is State.STANDBY
    at = loop.plant.x.copy()
    loop.run(0.5)
    assert loop.core.states.state is State.HOLD
    np.testing.assert_allclose(loop.plant.x, at, atol=1e-3)


@pytest.mark.parametrize('short, seconds, beyond', [
    (0.005, 2.28, 2.0), (0.0, 2.28, 1.0), (0.002, 2.1, 1.0), (0.005, 2.0, 2.0), (0.05, 1.9, 2.0)])
def test_a_fast_move_with_a_saturated_valve_ends_in_its_goal(on_valves, short, seconds, beyond):
    """To the end of the stroke or short of it; what was lost while the valve was saturated does not wind up."""
    plant = HydraulicPlant(on_valves.machine, on_valves.hydraulics, period=on_valves.period)
    loop = ClosedLoop(assemble(on_valves), plant).start()
    goal = on_valves.machine.initial_position.copy()
    goal[1] = on_valves.machine.coordinate_limits.upper[1] - short
    loop.send(move(on_valves, plant.x, goal - plant.x, seconds))
    record = loop.run(6.0).recording()
    assert not (record.state >= State.STOPPING).any()
    assert np.nanmax(record.command[:, 1]) > 0.999
    assert 1e3 * (record.x[:, 1] - goal[1]).max() < beyond
    np.testing.assert_allclose(plant.x, goal, atol=5e-4)


@pytest.mark.parametrize('law', ['valve_computed_torque', 'valve_pid'])
def test_a_valve_that_is_open_entirely_is_not_opened_too_little_F39(law):
    """The lift cannot follow by far, which is for the check of its error to say."""
    text = Path(HYDRAULICS).read_text().replace('1.6666666666666667e-3', '0.55e-3')
    config = ControllerConfig.from_files(URDF, text, safety=SAFETY, law=law)
    loop = ClosedLoop(assemble(config), HydraulicPlant(config.machine, config.hydraulics, period=config.period)).start()
    loop.send(move(config, loop.plant.x, (0.0, 0.25, 0.0, 0.0), 1.6))
    while loop.core.states.state < State.STOPPING:
        loop.cycle()
    assert set(loop.core.states.reasons) - {'saturated'} == {'tracking'}
    assert loop.output.command[1] > 0.9


def link(number, length, mass, begins):
    return f'''
  <link name="link_{number}"><inertial><origin xyz="{length / 2} 0 0"/><mass value="{mass}"/>
    <inertia ixx="{0.01 * mass}" iyy="{mass * length ** 2 / 11}" izz="{mass * length ** 2 / 11}"
             ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="joint_{number}" type="revolute"><parent link="link_{number - 1}"/><child link="link_{number}"/>
    <origin xyz="{begins} 0 0"/><axis xyz="0 1 0"/>'''


def two_links(masses, rated, efforts, safety=None):
    """A loop of a controller with the proposed safety file, or this one, around an arm of two links of 0.8 m."""
    interfaces = ''.join(f'<joint name="joint_{k}"><command_interface name="effort"/></joint>' for k in (1, 2))
    ends = (f'<limit lower="{-low}" upper="{low}" velocity="{speed}" effort="{most}"/></joint>'
            for low, speed, most in zip((2, 2.5), rated, efforts))
    joints = ''.join(link(k, 0.8, mass, begins) + next(ends) for k, mass, begins in zip((1, 2), masses, (0.3, 0.8)))
    urdf = (f'<robot name="arm"><link name="link_0"/>{joints}<ros2_control name="arm" type="system">{interfaces}'
            '</ros2_control></robot>')
    machine = psdyn_ros.load(urdf)
    config = ControllerConfig.from_files(urdf, safety=safety or proposed_safety(machine))
    return config, ClosedLoop(assemble(config), Plant(machine, period=config.period, command_timeout=0.02))


@pytest.mark.parametrize('most', [104.0, 107.0, 108.0, 109.0])
def test_an_effort_at_its_limit_does_not_let_a_stop_throw_the_other_axis(most):
    """The elbow needs 98 N m to hold its link, and more to follow the motion that is asked for."""
    proposed = yaml.safe_load(proposed_safety(two_links((40, 25), (1, 1.5), (1500, most))[0].machine))
    proposed['actuators']['joint_2'] |= {'acceleration': 5.0, 'jerk': 50.0}
    config, loop = two_links((40, 25), (1, 1.5), (1500, most), yaml.safe_dump(proposed))
    loop.start().send(Waypoints(config.machine.coordinates, [1.6], [loop.plant.x - (0.5, 0.8)], np.zeros((1, 2))))
    record = loop.run(4.0).recording()
    assert record.speed.max(axis=0).max() < 1.5 and record.speed[:, 0].max() < 1.0


LIGHT = (6, 3), (2.5, 3.0), (200, 80)


@pytest.mark.parametrize('heavier', [0.9, 1.1])
def test_a_light_arm_of_another_weight_is_held_and_moved(heavier):
    """It falls much faster than a crane where its weight is wrong."""
    config, loop = two_links(*LIGHT)
    _, other = two_links([heavier * mass for mass in LIGHT[0]], *LIGHT[1:])
    loop.plant = other.plant
    loop.start().run(1.0)
    goal = loop.core.law.desired[0] + (0.9, -1.0)
    loop.send(Waypoints(config.machine.coordinates, [0.85], [goal], np.zeros((1, 2))))
    record = loop.run(3.0).recording()
    assert record.reasons == () and np.abs(loop.plant.x - goal).max() < 1e-3


@pytest.mark.parametrize('mass', [0.2, 0.5])
@pytest.mark.parametrize('moves', [False, True])
def test_a_load_that_is_declared_as_it_is_picked_up_is_no_fault(mass, moves):
    config, loop = two_links(*LIGHT)
    load = 'link_2', mass, np.array([0.8, 0.0, 0.0]), 0.01 * mass * np.eye(3)
    if moves:
        goal = loop.start().plant.x + (0.6, -0.6)
        loop.send(Waypoints(config.machine.coordinates, [1.5], [goal], np.zeros((1, 2))))
    else:
        loop.start()
    loop.run(0.7)
    heavier = Plant(config.machine.with_payload(*load), period=config.period, command_timeout=0.02)
    heavier.step(loop.output.command, config.period)
    heavier.x[:], heavier.xd[:] = loop.plant.x, loop.plant.xd
    loop.plant = heavier
    loop.core.set_payload(*load)
    record = loop.run(3.0).recording()
    assert record.reasons == ()
    assert record.speed[-1].max() < 1e-3


def test_a_trajectory_to_where_an_actuator_cannot_hold_the_machine_is_refused(on_efforts):
    machine, load, way = on_efforts.machine, ('tcp', 400.0, np.zeros(3), np.eye(3)), np.zeros(4)
    way[2] = machine.coordinate_limits.upper[2] - machine.initial_position[2]
    empty, loaded = (ClosedLoop(assemble(on_efforts), Plant(one, period=on_efforts.period))
                     for one in (machine, machine.with_payload(*load)))
    loaded.core.set_payload(*load)
    empty.start().send(move(on_efforts, machine.initial_position, 0.8 * way))
    for loop, share, what in (empty, 1.0, 'tilt_cylinder would need 1.05'), (loaded.start(), 0.8, 'lift_cylinder'):
        with pytest.raises(TrajectoryError, match=f'to where {what}.* of its largest effort to carry'):
            loop.send(move(on_efforts, machine.initial_position, share * way))


def test_a_trajectory_to_where_the_supply_cannot_lift_the_machine_is_refused(on_valves):
    machine, way = on_valves.machine, np.zeros(4)
    way[2] = machine.coordinate_limits.upper[2] - machine.initial_position[2]
    loop = ClosedLoop(assemble(on_valves), HydraulicPlant(machine, on_valves.hydraulics, period=on_valves.period))
    with pytest.raises(TrajectoryError, match='to where tilt_cylinder would need 1.05 of its largest effort'):
        loop.start().send(move(on_valves, machine.initial_position, way, 3.0))
    way[2] -= 0.01
    loop.send(move(on_valves, machine.initial_position, way, 3.0))


def test_a_regenerative_valve_lifts_with_the_difference_of_the_areas():
    text = Path(HYDRAULICS).read_text().replace('slew_limit: 100.0 ', 'regenerative: true\n      slew_limit: 100.0 ', 1)
    config = ControllerConfig.from_files(URDF, text, safety=SAFETY)
    lift, x = config.hydraulics.cylinders['lift_cylinder'], config.machine.initial_position
    assert lift.valve.regenerative
    name, share = assemble(config).law.reference.limits.carrying(x)
    most = config.hydraulics.supply.pressure * (lift.area_a - lift.area_b)
    assert name == 'lift_cylinder' and share == pytest.approx(config.machine.gravity_forces(x)[1] / most)


class ClockOff(ClosedLoop):
    """A loop whose clock of stamps is set by `off` ns."""

    off = 0

    @property
    def ros_now(self):
        return super().ros_now + self.off


@pytest.mark.parametrize('step', [-4.5e-3, 2e-3, 4.5e-3])
def test_a_small_step_of_the_clock_does_not_stop_a_fast_axis(on_valves, step):
    plant = HydraulicPlant(on_valves.machine, on_valves.hydraulics, period=on_valves.period)
    loop = ClockOff(assemble(on_valves), plant).start()
    loop.send(move(on_valves, plant.x, (0.7, 0.0, 0.0, 0.0), 2.5))
    loop.run(1.25)
    assert plant.xd[0] > 0.5
    loop.off = round(step * 1e9)
    assert loop.run(2.0).core.states.state is State.HOLD
    assert loop.recording().reasons == ()


# the page


def test_the_example_of_the_page_runs(capsys):
    example, = re.findall(r'```python\n(.*?)```', PAGE.read_text(), re.DOTALL)
    exec(compile(example, PAGE.name, 'exec'), {})
    assert 'largest speed' in capsys.readouterr().out


def test_the_page_names_only_what_exists():
    for name in re.findall(r'`(take_\w+|step|activate|enable|reset|validate_trajectory|execute)\b', PAGE.read_text()):
        assert hasattr(psdyn_ros.control.ControlCore, name), name
