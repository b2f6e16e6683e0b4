"""The hydraulic plant: equilibrium start, safe outputs, modes, faults, snapshots, actuators under test."""

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from psdyn_ros.api.environment import BaseMotion
from psdyn_ros.kernels.hydraulics.records import PRESSURE_A, PRESSURE_B, QUANTITIES
from psdyn_ros.model.errors import ModelError, PsdynError, StateError
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant

MS = 1_000_000      # ns
NET, FRICTION = QUANTITIES.index('net_force'), QUANTITIES.index('friction_force')


@pytest.fixture
def plant(crane, hydraulics):
    return HydraulicPlant(crane, hydraulics, period=1e-3, ttl=0.02)


def only(plant, **commands):
    """A command for some of the actuators."""
    return np.array([commands.get(name, np.nan) for name in plant.actuators])


def fed(plant, seconds, **commands):
    """Run under a command that comes anew in every period."""
    for _ in range(round(seconds / plant.period)):
        plant.step(only(plant, **commands), plant.period)


def test_starts_in_static_equilibrium(plant):
    start = plant.x.copy()
    assert plant.state == 'held' and plant.held == plant.actuators
    for _ in range(1000):
        plant.step(None, 1e-3)
        assert abs(plant.x - start).max() < 1e-4 and abs(plant.xd).max() < 1e-3
    np.testing.assert_allclose(plant.force[1:], plant.manipulator.gravity_forces(start)[1:], rtol=1e-3, atol=5.0)


def test_whole_periods_at_once_are_the_same_as_one_by_one(crane, hydraulics):
    one, many = (HydraulicPlant(crane, hydraulics, period=1e-3, ttl=0.1) for _ in range(2))
    command = only(one, lift_cylinder=0.2, telescope=-0.1)
    one.step(command, 1e-3)
    many.step(command, 0.05)
    for _ in range(49):
        one.step(None, 1e-3)
    np.testing.assert_array_equal(one.x, many.x)
    np.testing.assert_array_equal(one.fluid, many.fluid)
    assert one.steps == many.steps == 50


@pytest.mark.parametrize('command, dt, message', [
    ([0.1], 1e-3, r'command has shape \(1,\); expected \(4,\)'), (np.zeros((1, 4)), 1e-3, r'shape \(1, 4\)'),
    (None, 1.5e-3, 'dt 0.0015 s; expected a whole number of periods of 0.001 s'), (None, -1e-3, 'dt -0.001 s'),
    (None, np.nan, 'dt nan s'), (None, np.inf, 'dt inf s')])
def test_a_step_refuses_other_shapes_and_times(crane, plant, command, dt, message):
    for each in (plant, Plant(crane, period=1e-3)):
        with pytest.raises(StateError, match=message):
            each.step(command, dt)
        assert each.time == 0.0 and len(each.held) == 4


def test_the_least_dead_volume_that_is_read_survives_its_stop(crane):
    text = open(find_config('hiab_xs031_hydraulics.yaml'), encoding='utf-8').read()
    smallest = read_hydraulics(text.replace('3.0e-3', '4.66e-5'), crane.actuators)
    with pytest.raises(ModelError, match='more than 4.65e-05'):
        read_hydraulics(text.replace('3.0e-3', '4.64e-5'), crane.actuators)
    high = crane.initial_position.copy()
    high[1] = 0.45
    plant = HydraulicPlant(crane, smallest, period=1e-3, ttl=0.02, position=high)
    fed(plant, 5.0, lift_cylinder=-1.0)
    assert not plant.fault and abs(plant.xd).max() < 1e-3
    assert -0.002 < plant.x[1] < 0.0


def test_each_actuator_goes_to_its_own_safe_output_in_time(plant):
    fed(plant, 0.3, slew=3000.0, lift_cylinder=0.3, tilt_cylinder=-0.1, telescope=0.2)
    assert plant.state == 'running' and plant.held == ()
    for _ in range(20):
        plant.step(only(plant, slew=3000.0, tilt_cylinder=-0.1, telescope=0.2), 1e-3)
        assert plant.held == ()
    plant.step(only(plant, slew=3000.0, tilt_cylinder=-0.1, telescope=0.2), 1e-3)
    plant.step(only(plant, slew=3000.0, tilt_cylinder=-0.1, telescope=0.2), 1e-3)
    assert plant.held == ('lift_cylinder',)
    fed(plant, 1.0, slew=3000.0)
    assert plant.held == ('lift_cylinder', 'tilt_cylinder', 'telescope')
    spool = plant.telemetry[:, QUANTITIES.index('spool_position')]
    assert abs(spool).max() < 1e-6
    assert abs(plant.xd[1:]).max() < 5e-3      # oil holds them
    moving = plant.xd[0]
    assert abs(moving) > 0.05
    for _ in range(500):
        plant.step(None, 1e-3)
    assert plant.held == plant.actuators and abs(plant.xd[0]) < 1e-3     # the brake holds the slewing drive
    fed(plant, 0.01, slew=0.0, lift_cylinder=0.0, tilt_cylinder=0.0, telescope=0.0)
    assert plant.state == 'running'


def test_ages_are_those_of_the_clock_that_is_given(plant):
    plant.step(only(plant, lift_cylinder=0.1), 1e-3, now=1000 * MS)
    plant.step(None, 1e-3, now=1019 * MS)
    assert 'lift_cylinder' not in plant.held
    plant.step(None, 1e-3, now=1021 * MS)
    assert 'lift_cylinder' in plant.held


def test_commands_beyond_the_range_are_clipped_and_counted(plant):
    plant.step(only(plant, lift_cylinder=1.0), 1e-3)
    assert plant.saturations == 0
    plant.step(only(plant, lift_cylinder=-3.0, slew=1e9), 1e-3)
    assert plant.saturations == 1
    np.testing.assert_array_equal(plant.command[:2], [plant.manipulator.limits.effort[0], -1.0])


@pytest.mark.parametrize('load_pressure', [3e6, 9e6])
def test_pressure_mode_reaches_the_load_pressure(crane, hydraulics, load_pressure):
    plant = HydraulicPlant(crane, hydraulics, period=1e-3, ttl=0.1, modes={'telescope': 'pressure'})
    axis = plant.actuators.index('telescope')
    row = plant.cylinders.index('telescope')
    plant.axes['upper'][axis] = plant.x[axis]       # against a stop, so that it does not run away
    fed(plant, 1.5, telescope=load_pressure, lift_cylinder=0.0, tilt_cylinder=0.0, slew=0.0)
    c = plant.cylinder_records[row]
    reached = plant.fluid[row, PRESSURE_A] - plant.fluid[row, PRESSURE_B] * c['area_b'] / c['area_a']
    assert reached == pytest.approx(load_pressure, rel=0.03)


def test_velocity_mode_needs_a_compensated_valve(crane, hydraulics):
    with pytest.raises(PsdynError, match="'velocity' of 'telescope': its valve has no pressure compensator"):
        HydraulicPlant(crane, hydraulics, period=1e-3, modes={'telescope': 'velocity'})


def test_velocity_mode_moves_at_the_velocity_whatever_the_load(crane):
    text = open(find_config('hiab_xs031_hydraulics.yaml'), encoding='utf-8').read()
    text = text.replace('      slew_limit: 100.0 ', '      compensated: true\n      compensator_margin: 0.7e6\n'
                                                    '      slew_limit: 100.0 ')
    hydraulics = read_hydraulics(text, crane.actuators)
    for mass in (0.0, 150.0):
        plant = HydraulicPlant(crane, hydraulics, period=1e-3, ttl=0.1, modes={'lift_cylinder': 'velocity'})
        if mass:
            plant.disturb('payload', 'tcp', (mass, 0.0, 0.0, 0.0))
        fed(plant, 2.0, lift_cylinder=0.02, tilt_cylinder=0.0, telescope=0.0, slew=0.0)
        assert plant.xd[1] == pytest.approx(0.02, rel=0.1), mass


def test_effort_mode_hands_the_load_to_closed_chambers(crane, hydraulics):
    plant = HydraulicPlant(crane, hydraulics, period=1e-3, ttl=0.02, modes={'lift_cylinder': 'effort'})
    hold = crane.gravity_forces(plant.x)[1]
    fed(plant, 0.5, lift_cylinder=hold, tilt_cylinder=0.0, telescope=0.0, slew=0.0)
    before = plant.x[1]
    for _ in range(500):
        plant.step(None, 1e-3)
    assert 'lift_cylinder' in plant.held and abs(plant.x[1] - before) < 1e-3
    assert plant.fluid[0, PRESSURE_A] * plant.cylinder_records[0]['area_a'] \
        - plant.fluid[0, PRESSURE_B] * plant.cylinder_records[0]['area_b'] == pytest.approx(hold, rel=0.05)


@pytest.mark.parametrize('modes, message', [
    ({'lift_cylindr': 'valve'}, "'lift_cylindr': no such actuator; did you mean 'lift_cylinder'?"),
    ({'slew': 'valve'}, "'valve' of 'slew': expected one of effort"),
    ({'telescope': 'valves'}, "did you mean 'valve'?"),
])
def test_bad_modes_are_named(crane, hydraulics, modes, message):
    with pytest.raises(PsdynError) as caught:
        HydraulicPlant(crane, hydraulics, period=1e-3, modes=modes)
    assert message in str(caught.value)


def test_snapshots_go_on_as_if_nothing_had_been(plant):
    fed(plant, 0.2, slew=500.0, lift_cylinder=0.2, tilt_cylinder=0.1, telescope=-0.1)
    plant.disturb('telescope', 'spool_offset', 0.05)
    kept = plant.snapshot()
    fed(plant, 0.1, slew=500.0, lift_cylinder=0.2)
    after = plant.x.copy(), plant.fluid.copy(), plant.held, plant.steps
    plant.reset()
    plant.restore(kept)
    fed(plant, 0.1, slew=500.0, lift_cylinder=0.2)
    np.testing.assert_array_equal(plant.x, after[0])
    np.testing.assert_array_equal(plant.fluid, after[1])
    assert (plant.held, plant.steps) == after[2:]


def test_divergence_stops_and_keeps_the_last_finite_state(plant):
    fed(plant, 0.05, lift_cylinder=0.2)
    before = plant.x.copy()
    plant.cylinder_records['gain'][0] = np.nan
    plant.step(only(plant, lift_cylinder=0.2), 1e-3)
    assert plant.state == 'fault' and 'cannot be integrated beyond 0.050 s' in plant.fault
    np.testing.assert_array_equal(plant.x, before)
    assert np.isfinite(plant.fluid).all()
    plant.step(only(plant, lift_cylinder=0.2), 0.01)
    np.testing.assert_array_equal(plant.x, before)      # no step any more
    assert plant.state == 'fault'


def test_a_payload_dropped_lets_the_boom_up(plant):
    plant.disturb('payload', 'tcp', (100.0, 0.0, 0.0, 0.0))
    plant.reset()
    fed(plant, 0.2)
    loaded = plant.x[1]
    assert plant.force[1] > 1.05 * plant.manipulator.gravity_forces(plant.x)[1]
    plant.undisturb('payload', 'tcp')
    fed(plant, 2.0)
    assert plant.x[1] - loaded > 2e-4       # oil expands
    np.testing.assert_allclose(plant.force[1:3], plant.manipulator.gravity_forces(plant.x)[1:3], rtol=0.02)


@pytest.mark.parametrize('target, quantity, value, field, row, expected', [
    ('lift_cylinder', 'spool_stuck', 1, 'stuck', 0, 1),
    ('tilt_cylinder', 'spool_offset', -0.1, 'offset', 1, -0.1),
    ('telescope', 'leakage', 1e-12, 'leak', 2, 1e-12),
    ('model', 'areas', 1.1, 'area_a', 0, 1.1 * np.pi / 4 * 0.08**2),
])
def test_faults_of_the_machine_come_and_go(plant, target, quantity, value, field, row, expected):
    before = plant.cylinder_records.copy()
    plant.disturb(target, quantity, value)
    assert plant.cylinder_records[field][row] == pytest.approx(expected, rel=1e-3)
    plant.undisturb(target, quantity)
    np.testing.assert_array_equal(plant.cylinder_records, before)


def test_warm_oil_is_thin_and_soft(plant):
    before, viscous = plant.cylinder_records.copy(), plant.axes['viscous'].copy()
    plant.disturb('oil', 'temperature', 70.0)
    assert (plant.cylinder_records['leak'] > before['leak']).all()
    assert (plant.cylinder_records['bulk'] < before['bulk']).all()
    assert (plant.axes['viscous'][1:] < viscous[1:]).all() and plant.axes['viscous'][0] == viscous[0]


def test_a_supply_that_drops_cannot_lift(plant):
    plant.disturb('supply', 'pressure', 0.3)
    start = plant.x[1]
    fed(plant, 1.0, lift_cylinder=0.3)
    assert plant.x[1] < start
    assert (plant.telemetry[:, QUANTITIES.index('supply_pressure')] == pytest.approx(0.3 * 19e6))


@pytest.mark.parametrize('target, quantity, value, message', [
    ('lift_cylindr', 'leakage', 0.0, "'lift_cylindr': nothing of that name; did you mean 'lift_cylinder'?"),
    ('lift_cylinder', 'leakge', 0.0, "'leakge' of 'lift_cylinder': none such; did you mean 'leakage'?"),
    ('supply', 'pressure', 7.0, 'is 7; expected 0 to 2'),
    ('supply', 'pressure', float('nan'), 'expected a number'),
    ('payload', 'tcp', 100.0, 'expected mass, x, y, z'),
    ('payload', 'tpc', (1, 0, 0, 0), "did you mean 'tcp'?"),
])
def test_bad_faults_are_named_and_change_nothing(plant, target, quantity, value, message):
    before = plant.cylinder_records.copy(), plant.supply.copy()
    with pytest.raises(PsdynError) as caught:
        plant.disturb(target, quantity, value)
    assert message in str(caught.value)
    np.testing.assert_array_equal(plant.cylinder_records, before[0])
    np.testing.assert_array_equal(plant.supply, before[1])


def test_a_moving_base_and_a_wrench_at_the_tool_act(plant):
    fed(plant, 0.2)
    weight = plant.manipulator.total_mass * 9.81
    assert plant.base_wrench()[2] == pytest.approx(weight, rel=1e-3)
    plant.set_environment(base=BaseMotion(acceleration=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0)))
    fed(plant, 1.5)
    assert plant.base_wrench()[2] == pytest.approx(weight * (1.0 + 1.0 / 9.81), rel=0.02)
    plant.set_environment(wrenches={'base_link': ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
                                    'tcp': ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))})
    fed(plant, 1.5)
    assert plant.base_wrench()[2] == pytest.approx(weight, rel=0.02)


def test_a_measured_cylinder_that_answers_as_its_model_moves_as_it(crane, hydraulics):
    whole, split, model = (HydraulicPlant(crane, hydraulics, period=1e-3, ttl=0.1) for _ in range(3))
    worst = 0.0
    for k in range(1000):
        command = only(whole, slew=0.0, tilt_cylinder=0.0, telescope=0.0, lift_cylinder=0.15 * np.sin(2e-3 * np.pi * k))
        whole.step(command, 1e-3)
        # the rig: a cylinder like the model's, whose net force is what the whole machine's lift cylinder gives
        split.measure_cylinder('lift_cylinder', force=whole.telemetry[0, NET])
        split.step(command, 1e-3)
        worst = max(worst, abs(split.x - whole.x).max())
    assert 'lift_cylinder' not in split.frozen
    assert np.ptp([model.x[1], whole.x[1]]) < 0.1
    assert worst < 1e-3


@pytest.mark.parametrize('measurement, message', [
    ({'force': float('nan')}, 'force nan'), ({'force': 1e6}, 'force 1e+06 N; expected'), ({}, 'force None'),
    ({'pressures': (float('inf'), 0.0)}, 'pressures inf'), ({'pressures': (1e8, 0.0)}, 'pressures 1e+08'),
])
def test_an_absurd_measurement_freezes_its_cylinder_and_says_so(plant, measurement, message):
    hold = plant.force[1]
    for _ in range(10):
        plant.measure_cylinder('lift_cylinder', force=hold)
        plant.step(only(plant, slew=0.0), 1e-3)
    plant.measure_cylinder('lift_cylinder', **measurement)
    assert message in plant.frozen['lift_cylinder']
    where = plant.x[1]
    for _ in range(500):
        plant.step(only(plant, slew=0.0), 1e-3)
    assert abs(plant.x[1] - where) < 1e-3 and plant.state != 'fault'


def test_a_stale_measurement_freezes_and_good_ones_release_after_probation(plant):
    hold = plant.force[1]

    def measured(seconds):
        for _ in range(round(seconds / 1e-3)):
            plant.measure_cylinder('lift_cylinder', force=hold)
            plant.step(None, 1e-3)

    measured(0.05)
    assert not plant.frozen
    for _ in range(25):
        plant.step(None, 1e-3)
    assert 'no measurement for' in plant.frozen['lift_cylinder']
    measured(0.9)
    assert plant.frozen
    measured(0.2)
    assert not plant.frozen


def test_commands_that_come_and_go_do_not_loosen_a_frozen_cylinder(plant):
    hold = plant.force[1]
    plant.measure_cylinder('lift_cylinder', force=hold)
    plant.step(only(plant, lift_cylinder=0.0), 1e-3)
    plant.measure_cylinder('lift_cylinder', force=float('nan'))
    where = plant.x[1]
    for _ in range(3):
        fed(plant, 0.1)                         # beyond ttl
        assert 'lift_cylinder' in plant.held and plant.frozen
        fed(plant, 0.1, lift_cylinder=0.5)
        assert 'lift_cylinder' not in plant.held and plant.frozen
        assert abs(plant.x[1] - where) < 1e-3
    plant.reset()
    assert not plant.frozen
    fed(plant, 0.3, lift_cylinder=0.3)
    assert plant.x[1] > where + 2e-3            # its model moves it again


def test_an_unknown_cylinder_is_named(plant):
    with pytest.raises(PsdynError, match="cylinder 'lift': no such cylinder"):
        plant.measure_cylinder('lift', force=0.0)


@given(st.lists(st.tuples(st.sampled_from(['command', 'nothing', 'partial', 'reset', 'wild']),
                          st.integers(0, 2**31)), max_size=25))
@settings(max_examples=examples(25), deadline=None)
def test_whatever_comes_the_state_stays_finite(crane, hydraulics, story):
    plant = HydraulicPlant(crane, hydraulics, period=1e-3, ttl=0.005)
    for what, seed in story:
        random = np.random.default_rng(seed)
        if what == 'reset':
            plant.reset()
            continue
        command = random.uniform(-1.0, 1.0, len(plant.actuators)) * (1.0 if what != 'wild' else 1e12)
        if what == 'partial':
            command[random.random(command.size) < 0.5] = np.nan
        plant.step(None if what == 'nothing' else command, 1e-3 * random.integers(1, 20))
    for array in (plant.x, plant.xd, plant.fluid, plant.force, plant.telemetry):
        assert np.isfinite(array).all()


def test_a_reset_without_supply_holds_the_load_by_closed_valves(plant):
    plant.disturb('supply', 'pressure', 0.0)
    plant.reset()
    assert plant.state == 'held' and plant.supply_pressure[0] == 0.0
    start = plant.x.copy()
    fed(plant, 0.5)
    assert abs(plant.x - start).max() < 1e-4


def test_a_load_beyond_the_machine_is_a_fault_at_reset_and_goes_with_the_load(plant):
    plant.disturb('payload', 'tcp', (5e4, 0.0, 0.0, 0.0))
    plant.reset()
    assert plant.state == 'fault' and 'cannot stand still at its start' in plant.fault
    assert np.isfinite(plant.x).all()
    plant.step(only(plant, lift_cylinder=0.1), 1e-2)
    plant.undisturb('payload', 'tcp')
    plant.reset()
    assert plant.state == 'held'


def test_a_start_that_the_supply_cannot_hold_is_refused(crane):
    text = open(find_config('hiab_xs031_hydraulics.yaml'), encoding='utf-8').read()
    weak = read_hydraulics(text.replace('pressure: 19.0e6', 'pressure: 9.0e6'), crane.actuators)
    with pytest.raises(PsdynError, match='lift_cylinder.*needs'):
        HydraulicPlant(crane, weak, period=1e-3)
