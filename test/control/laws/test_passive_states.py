"""Passive joints under control: their state, efforts of the driven joints, loops closed around a hanging load."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import thorough
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import psdyn_ros
from psdyn_ros.api.load import load
from psdyn_ros.control import ControllerConfig, Measurement, State, Waypoints, assemble, follow
from psdyn_ros.control.core.diagnostics import status
from psdyn_ros.control.laws.base import check_actuation
from psdyn_ros.control.laws.passive_states import SILENT, PassiveStates
from psdyn_ros.control.laws.payload_model import LoadModel
from psdyn_ros.model.errors import ActuationError, ModelError, StateError, UnknownNameError
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant

URDF = find_machine('loader_crane')
SAFETY = find_config('loader_crane_safety.yaml')
DRIVEN, PASSIVE = slice(0, 4), slice(4, 6)
SOURCES = 'measured', 'estimated', 'hanging'


@cache
def config(**options):
    c = ControllerConfig.from_files(URDF, safety=SAFETY)
    return replace(c, **{'swing_shaper': 'none', 'swing_damping': 0.0, **options})


@pytest.fixture(scope='module')
def crane():
    return config().machine


def states_of(m, rng, rest=False):
    """(x, xd) of all coordinates near the initial position."""
    x = m.initial_position + rng.uniform(-1.0, 1.0, m.dof) * (0.5, 0.1, 0.1, 0.2, 0.4, 0.4)
    return x, np.zeros(m.dof) if rest else rng.uniform(-1.0, 1.0, m.dof) * (0.5, 0.2, 0.2, 0.2, 1.0, 1.0)


def move(m, way=(0.4, 0.1, -0.1, 0.3), seconds=3.0):
    start, zero = m.initial_position[DRIVEN], np.zeros((2, 4))
    return Waypoints(m.coordinates[DRIVEN], [0.0, seconds], [start, start + way], zero, zero)


def closed_loop(swing=(0.0, 0.0), seconds=6.0, change=None, way=(0.4, 0.1, -0.1, 0.3), **options):
    c = config(**options)
    plant = Plant(c.machine, period=c.period, command_timeout=0.02)
    plant.x[PASSIVE] += swing
    core = assemble(c)
    return core, follow(core, plant, move(c.machine, way), seconds, change=change)


def errors(record):
    """RMS (4,) [m, rad] of the driven joints while a reference is followed."""
    followed = np.isfinite(record.desired[:, 0, 0])
    return np.sqrt(np.mean((record.desired[followed, 0] - record.x[followed, DRIVEN]) ** 2, axis=0))


def unmeasured(time, measured):
    """The passive joints have no sensors."""
    x, xd = measured.x.copy(), measured.xd.copy()
    x[PASSIVE] = xd[PASSIVE] = np.nan
    return Measurement(x, xd)


# the machine


def test_driven_machine_has_the_kinematics_of_the_driven_joints(crane):
    driven = crane.driven_machine
    assert crane.underactuated and crane.passive_joints == ('hook_pitch', 'hook_roll')
    assert driven.coordinates == crane.actuators and driven.driven_machine is driven
    x = states_of(crane, np.random.default_rng(0))[0]
    np.testing.assert_allclose(driven.link_pose(x[DRIVEN], 'tcp'), crane.link_pose(x, 'tcp'), atol=1e-12)
    x[PASSIVE] = crane.initial_position[PASSIVE]
    assert driven.total_mass == pytest.approx(crane.total_mass)
    np.testing.assert_allclose(driven.link_pose(x[DRIVEN], 'load'), crane.link_pose(x, 'load'), atol=1e-12)


def test_fixed_joints_leave_the_inertia_of_the_others(crane):
    x = states_of(crane, np.random.default_rng(1))[0]
    fixed = crane.with_fixed_joints({'hook_pitch': x[4], 'hook_roll': x[5]})
    np.testing.assert_allclose(fixed.mass_matrix(x[DRIVEN]), crane.mass_matrix(x)[DRIVEN, DRIVEN], rtol=1e-10)


@pytest.mark.parametrize('joint', ['lift_boom', 'no_joint'])
def test_only_joints_outside_loops_can_be_fixed(crane, joint):
    with pytest.raises(UnknownNameError, match=f"fixed joint '{joint}': no joint of 'loader_crane' outside all loops"):
        crane.with_fixed_joints({joint: 0.0})
    with pytest.raises(ActuationError, match="fixed joint 'slew': it is an actuator of 'loader_crane'"):
        crane.with_fixed_joints({'slew': 0.0})


def test_gravity_forces_hold_the_machine_where_the_load_hangs(crane):
    still = np.zeros(6)
    f = crane.gravity_forces(crane.equilibrium(crane.initial_position).x)
    x = crane.equilibrium(crane.initial_position).x
    assert np.abs(crane.forward_dynamics(x, still, f)).max() < 1e-6
    with pytest.raises(StateError, match="'loader_crane' does not rest at this x: passive joint 'hook_roll' lacks"):
        crane.gravity_forces(x + (0, 0, 0, 0, 0, 0.1))


def test_machine_with_too_few_driven_joints_is_refused():
    m = load(URDF, actuated=('slew', 'lift_cylinder', 'telescope'))
    assert not m.underactuated
    with pytest.raises(ActuationError, match='3 actuators .* for 6 degrees of freedom .* or passive joints outside'):
        check_actuation(m)


def test_passive_joint_with_a_command_interface_is_refused():
    begin, interface = '<joint name="hook_pitch">\n      ', '<command_interface name="effort"/>'
    text = Path(URDF).read_text().replace(f'{begin}<state', f'{begin}{interface}<state')
    assert interface in text.split(begin)[1][:100]
    with pytest.raises(ActuationError, match="actuator 'hook_pitch' of 'loader_crane' has the effort limit 0, .* "
                                             'or no command interface of a passive joint'):
        check_actuation(load(text))


def test_load_above_its_suspension_is_refused():
    m = load(URDF, initial={'hook_pitch': -2.4})
    with pytest.raises(ModelError, match="'loader_crane' does not hang from hook_pitch, hook_roll at its initial"):
        LoadModel(m)


# the law


def test_efforts_are_those_of_hybrid_dynamics(crane):
    rng, model = np.random.default_rng(2), LoadModel(crane, passive_states='measured')
    for t in range(5):
        x, xd = states_of(crane, rng)
        xdd = rng.uniform(-1.0, 1.0, 4)
        model.passive.observe(10.0 * t, *model.passive.split(x, xd))
        names = crane.coordinates
        expected = crane.hybrid_dynamics(x, xd, accelerations=dict(zip(names[DRIVEN], xdd)),
                                         efforts=dict.fromkeys(names[PASSIVE], 0.0)).efforts
        np.testing.assert_allclose(model.inverse_dynamics(x[DRIVEN], xd[DRIVEN], xdd), expected[DRIVEN], rtol=1e-9,
                                   atol=1e-7)
        forces, inertia = model.passive.effort_terms(x[DRIVEN], xd[DRIVEN])
        np.testing.assert_allclose(forces + inertia @ xdd, expected[DRIVEN], rtol=1e-9, atol=1e-6)
        assert np.linalg.eigvalsh(inertia)[0] > 0.0


def test_held_load_hangs_at_rest(crane):
    model, still = LoadModel(crane), np.zeros(6)
    x = states_of(crane, np.random.default_rng(3))[0]
    model.passive.observe(0.0, x[DRIVEN], still[DRIVEN], np.array(((0.3, 0.2), (1.0, 1.0))))
    whole = model.passive.resting(x[DRIVEN])
    assert np.abs(crane.forward_dynamics(whole, still, model.holding_efforts(x[DRIVEN]))).max() < 1e-6
    assert model.passive.rate.tolist() == [1.0, 1.0]        # the state in use is as before


def test_payload_is_part_of_the_hanging_load(crane):
    model, carried = LoadModel(crane), (100.0, (0.0, -0.5, 0.0), 4.0 * np.eye(3))
    x = crane.initial_position
    model.set_payload('load', *carried, x[DRIVEN])
    model.advance(1.0)
    expected = crane.with_payload('load', *carried)
    np.testing.assert_allclose(model.holding_efforts(x[DRIVEN]), expected.gravity_forces(expected.equilibrium(x).x),
                               rtol=1e-6, atol=1e-2)


# the estimate


def test_estimate_follows_the_equations_integrated_by_scipy(crane):
    """Along a prescribed motion of the driven joints: M_pp z'' = - generalized forces at z'' = 0."""
    way, seconds, period = np.array((0.4, 0.1, -0.1, 0.3)), 3.0, 0.002

    def driven(t):
        s = min(t / seconds, 1.0)
        shape = (10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / seconds,
                 (60 * s - 180 * s**2 + 120 * s**3) / seconds**2)
        return crane.initial_position[DRIVEN] + way * shape[0], way * shape[1], way * shape[2]

    def rates(t, state):
        x, xd, xdd = driven(t)
        z, zd = state.reshape(2, 2)
        whole, rate = np.concatenate((x, z)), np.concatenate((xd, zd))
        bias = crane.generalized_forces(whole, rate, np.concatenate((xdd, np.zeros(2))))[PASSIVE]
        return np.concatenate((zd, np.linalg.solve(crane.mass_matrix(whole)[PASSIVE, PASSIVE], -bias)))

    start = np.concatenate((crane.initial_position[PASSIVE], np.zeros(2)))
    times = np.arange(0.0, 6.0, period)
    swing = solve_ivp(rates, (0.0, 6.0), start, t_eval=times, rtol=1e-9, atol=1e-10).y[:2].T
    passive = LoadModel(crane).passive
    found = []
    for t in times:
        passive.observe(t, *driven(t)[:2])
        found.append(passive.position)
    assert np.ptp(swing, axis=0).min() > 0.1
    np.testing.assert_allclose(found, swing, atol=2e-4)


def test_estimate_of_a_released_swing_keeps_its_energy_but_for_damping(crane):
    """Driven joints at rest: kinetic and potential energy fall by the work of the declared damping, 25 N m s/rad."""
    passive, m = LoadModel(crane).passive, crane
    x, still = m.initial_position, np.zeros(4)
    passive.observe(0.0, x[DRIVEN], still, np.array((x[PASSIVE] + (0.3, 0.2), (0.0, 0.0))))
    energy, lost = [], 0.0
    for k in range(1, 3001):
        passive.observe(0.002 * k, x[DRIVEN], still)
        lost += 0.002 * 25.0 * passive.rate @ passive.rate
        energy.append(sum(m.energy(*passive.whole(x[DRIVEN], still))) + lost)
    assert lost > 40.0
    assert np.ptp(energy) < 0.02 * lost


def test_small_swing_is_that_of_a_pendulum(crane):
    """Closed form: 2 pi sqrt(I / (m g l)) of the load about its pin."""
    passive, x, still = LoadModel(crane).passive, crane.initial_position, np.zeros(4)
    mass, about, lever = 300.0, 0.939881 + 11.625 + 21 * 1.464286**2 + 279 * 1.9**2, 21 * 1.464286 + 279 * 1.9
    assert mass == 21 + 279
    passive.observe(0.0, x[DRIVEN], still, np.array((x[PASSIVE] + (0.0, 0.02), (0.0, 0.0))))
    rolls = []
    for k in range(1, 4000):
        passive.observe(0.002 * k, x[DRIVEN], still)
        rolls.append(passive.position[1])
    falling = np.flatnonzero((np.array(rolls[:-1]) > 0.0) & (np.array(rolls[1:]) <= 0.0))
    assert np.diff(falling).mean() * 0.002 == pytest.approx(2.0 * np.pi * np.sqrt(about / (9.81 * lever)), rel=2e-3)


def test_noise_of_measured_rates_does_not_add_up(crane):
    rng, x, still = np.random.default_rng(4), crane.initial_position[DRIVEN], np.zeros(4)
    passive = LoadModel(crane).passive
    start = passive.position
    for k in range(5000):
        passive.observe(0.002 * k, x, still + 1.4e-3 * rng.standard_normal(4))
    assert np.abs(passive.position - start).max() < 0.02


def test_jump_of_a_measurement_is_not_used(crane):
    passive, x, still = LoadModel(crane, passive_states='measured').passive, crane.initial_position, np.zeros(4)
    good = np.array((x[PASSIVE], (0.0, 0.0)))
    for k in range(5):
        passive.observe(0.002 * k, x[DRIVEN], still, good)
    passive.observe(0.010, x[DRIVEN], still, good + ((0.5, 0.0), (0.0, 0.0)))
    assert passive.rejected == 1 and np.abs(passive.position - x[PASSIVE]).max() < 1e-6
    for k in range(6, 12):
        passive.observe(0.002 * k, x[DRIVEN], still, good + ((0.5, 0.0), (0.0, 0.0)))
    assert passive.position[0] == pytest.approx(x[4] + 0.5)      # it stays there: that is where it is


def test_partly_measured_joints_are_estimated_beside(crane):
    passive, x, still = LoadModel(crane, passive_states='measured').passive, crane.initial_position, np.zeros(4)
    for k in range(100):
        passive.observe(0.002 * k, x[DRIVEN], still, np.array(((x[4], np.nan), (0.0, np.nan))))
    assert passive.silent(0.2) == ('hook_roll',) and np.abs(passive.position - x[PASSIVE]).max() < 1e-6
    assert passive.silent(0.2 + 1.1 * SILENT) == ('hook_pitch', 'hook_roll')


def test_unknown_source_names_those_that_exist(crane):
    handle = crane.handle()
    with pytest.raises(UnknownNameError, match="passive_states 'guessed'; there are: estimated, hanging, measured"):
        PassiveStates(crane, handle, 'guessed')


# the loop


@pytest.mark.parametrize('source', thorough(['measured', 'estimated'], 1))
def test_driven_joints_follow_exactly_while_the_load_swings(source):
    swing = (0.15, 0.1) if source == 'measured' else (0.0, 0.0)
    core, record = closed_loop(swing, change=None if source == 'measured' else unmeasured, passive_states=source)
    assert np.ptp(record.x[:, PASSIVE], axis=0).min() > 0.1
    assert errors(record).max() < 3e-4
    assert record.reasons == () and record.state[-1] == State.HOLD
    np.testing.assert_allclose(core.law.load.passive.position, record.x[-1, PASSIVE], atol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize('source', thorough(['estimated', 'hanging'], 1))
def test_swing_that_nobody_measures_is_survived(source):
    core, record = closed_loop((0.05, 0.035), change=unmeasured, passive_states=source, seconds=10.0)
    assert errors(record).max() < 3e-3
    assert record.reasons == () and record.state[-1] == State.HOLD
    if source == 'estimated':       # by the efforts of the driven joints
        np.testing.assert_allclose(core.law.load.passive.position, record.x[-1, PASSIVE], atol=2e-3)


def with_imu(turned=None, swing=(0.0, 0.0), seconds=7.0, **options):
    """(core, recording, estimated positions): an inertial sensor on the load at 100 Hz, mounted turned (3, 3)."""
    c, rng, found, turned = on_valves(**options), np.random.default_rng(1), [], np.eye(3) if turned is None else turned
    start = c.machine.initial_position.copy()
    start[PASSIVE] += swing
    plant, core = HydraulicPlant(c.machine, c.hydraulics, period=c.period, position=start), assemble(c)

    def seen(time, measured):
        found.append(core.law.load.passive.position - plant.x[PASSIVE])
        if len(found) % 5 == 0:
            twist, force = plant.manipulator.link_motion(plant.x, plant.xd, plant.xdd, 'load')
            core.take_imu('load', turned @ twist[3:] + 2e-3 * rng.standard_normal(3),
                          turned @ force + 0.05 * rng.standard_normal(3))
        free = unmeasured(time, measured)
        return measured._replace(x=free.x, xd=free.xd)

    here = start[DRIVEN]
    still = Waypoints(c.machine.coordinates[DRIVEN], [0.0, 1.5, 4.5], [here, here, here + (0.4, 0.1, -0.1, 0.3)],
                      *np.zeros((2, 3, 4)))
    return core, follow(core, plant, still, seconds, change=seen), np.abs(found).max(axis=1)


def test_inertial_sensor_on_the_load_finds_its_swing():
    core, record, off = with_imu(swing=(0.1, 0.05), passive_states='estimated')
    assert off[1000] < 0.02 and off[2500:].max() < 4e-3 and record.reasons == ()
    found = status(core)
    assert (found['inertial sensor'], found['passive joints measured']) == ('load', 'hook_pitch, hook_roll')
    with pytest.raises(ModelError, match="sensor on 'hanger': hook_pitch, hook_roll do not all turn it"):
        core.take_imu('hanger', np.zeros(3), np.zeros(3))
    with pytest.raises(UnknownNameError, match="inertial sensor on 'lode'"):
        core.take_imu('lode', np.zeros(3), np.zeros(3))


@pytest.mark.parametrize('axis, angle, says', [
    ((1, 0, 0), 0.5 * np.pi, r'specific force \(.*\) m/s\^2, expected about \(.*, 9.8, .*\) in axes of this link'),
    ((0, 1, 0), np.pi, 'beside the driven joints it turns by')])
def test_inertial_sensor_with_another_frame_is_named_and_not_used(axis, angle, says):
    turned = Rotation.from_rotvec(angle * np.array(axis)).as_matrix()
    core, record, off = with_imu(turned, passive_states='estimated')
    assert re.match(f"inertial sensor on 'load': {says}", status(core)['inertial sensor'])
    assert core.states.counts['passive_imu'] > 0 and record.state[-1] == State.HOLD
    assert off.max() < 4e-3 and errors(record).max() < 1.5e-4


def test_silence_of_passive_joints_degrades_and_lets_a_stop_end():
    def silent(time, measured):
        return measured if time < 1.0 else unmeasured(time, measured) if time < 2.0 else None

    _, record = closed_loop((0.1, 0.1), change=silent, passive_states='measured', seconds=4.0)
    assert record.state[(record.time > 1.12) & (record.time < 2.0)].tolist().count(State.DEGRADED) > 400
    assert any('F44: hook_pitch, hook_roll not measured: estimated' in reasons.get('passive_silent', '')
               for _, reasons in record.reasons)
    assert errors(record)[0] < 3e-4
    assert record.state[-1] in (State.SAFE, State.STANDBY)      # no states at all: ramped to rest as ever


def test_machine_without_passive_joints_has_none():
    m = load(find_machine('five_bar'))
    with pytest.raises(ModelError, match="inertial sensor on 'tool': 'five_bar' has no passive joints"):
        LoadModel(m).take_imu('tool', np.zeros(3), np.zeros(3))
    assert not m.underactuated and m.driven_machine is m and LoadModel(m).passive is None
    assert psdyn_ros.load is load


# valves


@cache
def on_valves(**options):
    c = ControllerConfig.from_files(URDF, find_config('loader_crane_hydraulics.yaml'), safety=SAFETY)
    return replace(c, swing_shaper='none', swing_damping=0.0, **options)


@pytest.mark.parametrize('source, slew_error', thorough(
    [('estimated', 1e-4), ('measured', 1e-4), ('hanging', 6e-4)], 1, several=True))
def test_hanging_load_on_valves_follows(source, slew_error):
    c = on_valves(passive_states=source)
    plant = HydraulicPlant(c.machine, c.hydraulics, period=c.period)

    def seen(time, measured):
        free = unmeasured(time, measured)
        return measured if source == 'measured' else measured._replace(x=free.x, xd=free.xd)

    record = follow(assemble(c), plant, move(c.machine), 6.0, change=seen)
    assert c.law == 'valve_computed_torque' and np.ptp(record.x[:, PASSIVE], axis=0).min() > 0.1
    found = errors(record)
    assert found[0] < slew_error and found[1:].max() < (1e-4 if source != 'hanging' else 3e-4)     # rad, m
    assert record.reasons == () and record.state[-1] == State.HOLD


def test_diagnostics_have_the_passive_joints():
    core, _ = closed_loop(change=unmeasured, seconds=0.5)
    found = status(core)
    assert (found['passive joints'], found['passive joints measured']) == ('estimated', 'none')
    assert found['hook_pitch [rad, m]'] == pytest.approx(0.925, abs=1e-2) and 'rate of hook_roll [rad/s, m/s]' in found
    core, _ = closed_loop(seconds=0.5, passive_states='measured')
    assert status(core)['passive joints measured'] == 'hook_pitch, hook_roll'
