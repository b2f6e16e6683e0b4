"""The second plant against formulations, the package's plant, and hand calculation."""

import math

import numpy as np
import pytest

from psdyn_ros.formulations.adapters import Mechanism
from psdyn_ros.formulations.adapters.noc import NaturalOrthogonalComplement
from psdyn_ros.model.errors import ModelError, ShapeError, StateError
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.model.mechanism.urdf import read
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.tools.studies.second_plant import PERFECT, SecondPlant, Sensors
from psdyn_ros.tools.studies.second_plant.fluid import edge_flow
from psdyn_ros.tools.studies.second_plant.mechanism import equations_of_motion, solve_joints

URDF, HYDRAULICS = find_machine('hiab_xs031'), find_config('hiab_xs031_hydraulics.yaml')
NAMES = ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
STEP = 0.002
LIFT, TILT, TELESCOPE = 1, 2, 3


def on_valves(**options):
    return SecondPlant(URDF, HYDRAULICS, **options)


def declared(old, new):
    """Text of the hydraulics with one change."""
    with open(HYDRAULICS) as file:
        text = file.read()
    assert old in text
    return text.replace(old, new, 1)


def steps(plant, command, seconds):
    for _ in range(round(seconds / STEP)):
        plant.step(command, STEP)
    return plant


def random_position(rng):
    return rng.uniform((-1.0, 0.05, 0.08, 0.1), (1.0, 0.45, 0.5, 1.0))


# mechanism


def test_accelerations_are_those_of_the_natural_orthogonal_complement():
    plant, rng = SecondPlant(URDF), np.random.default_rng(2)
    tree = plant.tree
    mechanism = Mechanism(read(URDF), NAMES, NAMES, np.array([0.0, 0.0, -9.81]))
    for _ in range(5):
        x, xd, f = random_position(rng), rng.uniform(-0.3, 0.3, 4), rng.uniform(-2e4, 2e4, 4)
        y = tree.coordinates(x)
        q, G, c = solve_joints(tree.joints, tree.triangles, y)
        posture = mechanism.posture(x, dict(zip(tree.names, q)))
        witness = NaturalOrthogonalComplement(mechanism, posture)
        slope, curvature = G[tree.rows], c[tree.rows]
        yd = xd / slope
        M, h, *_ = equations_of_motion(tree.joints, tree.triangles, y, yd)
        xdd = slope * np.linalg.solve(M, slope * f - h) + curvature * yd**2
        expected = witness.forward(posture, xd, f, {})
        assert np.abs(xdd - expected).max() < 1e-9 * (1.0 + np.abs(expected).max())


def test_strokes_are_recovered_from_boom_angles():
    tree, rng = SecondPlant(URDF).tree, np.random.default_rng(3)
    for _ in range(10):
        x = random_position(rng)
        assert np.abs(tree.strokes(tree.coordinates(x))[0] - x).max() < 1e-12


def test_free_fall_agrees_with_the_packages_plant_and_keeps_its_energy(crane):
    ours, theirs = Plant(crane, period=STEP, substeps=4), SecondPlant(URDF)
    energy = theirs.energy
    for _ in range(100):
        ours.step(np.zeros(4), STEP)
        theirs.step(np.zeros(4), STEP)
    assert np.abs(theirs.xd).max() > 0.3        # it does fall
    assert np.abs(theirs.x - ours.x).max() < 1e-5
    assert theirs.energy == pytest.approx(energy, abs=0.01)


def test_energy_grows_by_the_work_of_the_efforts():
    plant = SecondPlant(URDF, position={'lift_cylinder': 0.1})
    hold, energy, work = plant.holding_efforts(), plant.energy, 0.0
    effort = hold + (2000.0, 1500.0, -800.0, 300.0)
    for _ in range(150):
        before = plant.x
        plant.step(effort, STEP)
        work += effort @ (plant.x - before)
    assert abs(work) > 100.0
    assert plant.energy - energy == pytest.approx(work, rel=1e-4)


# cylinders


def test_equilibrium_is_that_of_the_packages_plant(crane):
    ours = HydraulicPlant(crane, read_hydraulics(HYDRAULICS, crane.actuators), period=STEP)
    theirs = on_valves()
    assert np.abs(theirs.holding_efforts() - ours.holding_efforts()).max() < 1e-6 * 6e4
    assert np.abs(theirs.pressures - ours.fluid[:, :2]).max() < 10.0
    for plant in (steps(theirs, None, 1.0), ours):
        plant.step(None, STEP)
        assert np.abs(plant.x - crane.initial_position).max() < 1e-6


def test_slow_motion_agrees_with_the_packages_plant(crane):
    ours = HydraulicPlant(crane, read_hydraulics(HYDRAULICS, crane.actuators), period=STEP)
    theirs = on_valves()
    start = theirs.x
    for k in range(1000):
        command = np.sin(math.pi * k / 1000) * np.array([0.0, 0.15, -0.12, 0.2])
        ours.step(command, STEP)
        theirs.step(command, STEP)
    travel = np.abs(theirs.x - start)[1:]
    assert (travel > 0.05).all()
    assert (np.abs(theirs.x - ours.x)[1:] < 0.02 * travel).all()
    assert np.abs(theirs.pressures - ours.fluid[:, :2]).max() < 5e5


def test_steady_flow_is_that_of_the_orifice_equation_by_hand():
    plant = steps(on_valves(), [0.0, 0.0, 0.0, 0.4], 1.0)
    cylinder = read_hydraulics(HYDRAULICS, NAMES).cylinders['telescope']
    gain = cylinder.valve.nominal_flow[0] / math.sqrt(cylinder.valve.nominal_pressure_drop)
    flows, speeds = [], []
    for _ in range(300):
        p_a, p_b = steps(plant, [0.0, 0.0, 0.0, 0.4], STEP).pressures[2]
        flows.append(0.4 * gain * np.sqrt([19e6 - p_a, p_b - 1e6]))
        speeds.append(plant.xd[TELESCOPE])
    assert min(speeds) > 0.1
    expected = np.mean(speeds) * np.array([cylinder.area_a, cylinder.area_b])
    assert np.mean(flows, axis=0) == pytest.approx(expected, rel=0.01)


def test_edge_flow_is_smooth_and_odd_at_the_transition():
    d, e = 2e5, 1.0
    assert edge_flow(2.0, 0.5, 4 * d, d) == pytest.approx(math.sqrt(4 * d))
    below, at, above = (edge_flow(1.0, 1.0, d + shift, d) for shift in (-e, 0.0, e))
    assert above - at == pytest.approx(at - below, rel=1e-4)
    assert at == pytest.approx(math.sqrt(d))
    assert edge_flow(1.0, 1.0, -0.3 * d, d) == -edge_flow(1.0, 1.0, 0.3 * d, d) != 0.0


def test_overlap_of_the_valve_opens_nothing():
    text = declared('slew_limit: 100.0 ', 'slew_limit: 100.0\n      dead_band: [0.1, 0.1] ')
    plant = SecondPlant(URDF, text)
    start = plant.x
    assert np.abs(steps(plant, [0.0, 0.09, -0.09, 0.0], 0.5).x - start).max() < 1e-6
    assert steps(plant, [0.0, 0.2, 0.0, 0.0], 0.5).x[LIFT] > start[LIFT] + 0.01


def test_spool_lags_and_keeps_to_its_rate():
    text = declared('slew_limit: 100.0 ', 'slew_limit: 5.0 ')
    plant = SecondPlant(URDF, text)
    spools = []
    for _ in range(50):
        plant.step([0.0, 0.5, 0.0, 0.5], STEP)
        spools.append(plant.spool)
    rates = np.diff(spools, axis=0) / STEP
    assert rates[:, 0].max() == pytest.approx(5.0, rel=1e-3)
    assert 20.0 < rates[:, 2].max() < 100.0
    assert 0.1 < spools[4][2] < 0.45 and spools[-1][2] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.long
def test_stiction_holds_without_creeping_and_breaks_away():
    plant = on_valves(stiction={'telescope': 3000.0})
    breakaway = plant.axes[TELESCOPE]['coulomb'] + 3000.0
    plant._fluid()[2, 0] += 0.5 * breakaway / plant.cylinder_records[2]['area_a']
    start = steps(plant, None, 1.0).x[TELESCOPE]
    assert abs(steps(plant, None, 5.0).x[TELESCOPE] - start) < 2e-6
    speeds = []
    for _ in range(1500):
        plant.step([0.0, 0.0, 0.0, 0.05], STEP)
        speeds.append(plant.xd[TELESCOPE])
    assert max(speeds) > 2.0 * np.median(speeds[1000:]) > 0.0      # it slips when it breaks away


def test_limited_pump_shares_its_flow():
    free, limited = on_valves(), on_valves(pump_flow=4e-4)
    for plant in (free, limited):
        steps(plant, [0.0, 0.0, 0.0, 0.8], 1.0)
    record = limited.cylinder_records[2]
    assert free.xd[TELESCOPE] > 1.3 * limited.xd[TELESCOPE]
    assert limited.xd[TELESCOPE] * record['area_a'] == pytest.approx(4e-4, rel=0.05)
    assert limited.supply < 18e6 < free.supply == 19e6


def test_relief_valve_limits_the_pressure_of_a_falling_load():
    plant = steps(on_valves(position={'telescope': 0.7}), [0.0, -1.0, 0.0, 0.0], 0.3)
    highest = 0.0
    for _ in range(300):
        plant.step([0.0, 0.0, 0.0, 0.0], STEP)
        highest = max(highest, plant.pressures[0, 0])
    assert 15e6 < highest < 26e6


def test_pressure_never_falls_below_vacuum():
    plant, lowest = on_valves(), math.inf
    for k in range(500):
        plant.step([0.0, *((1.0, -1.0, 1.0) if k // 50 % 2 else (-1.0, 1.0, -1.0))], STEP)
        lowest = min(lowest, plant.pressures.min())
    assert -1e5 < lowest < 1e6


@pytest.mark.long
def test_end_stop_holds_a_cylinder_under_full_pressure():
    plant = steps(on_valves(), [0.0, 0.0, 0.0, 1.0], 4.0)
    assert 1.1 <= plant.x[TELESCOPE] < 1.102
    assert abs(plant.xd[TELESCOPE]) < 1e-3


# commands


def test_commands_older_than_ttl_close_the_valve_and_set_the_brake():
    plant = on_valves(ttl=0.02)
    steps(plant, [1000.0, 0.3, 0.0, 0.0], 0.1)
    assert not plant.safe.any() and plant.spool[0] > 0.25
    steps(plant, [math.nan, math.nan, 0.1, math.nan], 0.02)
    assert plant.spool[0] > 0.25 and not plant.safe.any()
    steps(plant, [math.nan, math.nan, 0.1, math.nan], 0.1)
    assert list(plant.safe) == [True, True, False, True]
    assert abs(plant.spool[0]) < 1e-3 and plant.spool[1] == pytest.approx(0.1, abs=1e-3)
    steps(plant, None, 1.0)
    assert plant.safe.all() and abs(plant.xd[0]) < 1e-4


def test_commands_are_limited_to_their_range():
    plant = steps(on_valves(), [0.0, 7.0, 0.0, -3.0], 0.1)
    assert plant.spool.max() <= 1.0 and plant.spool.min() >= -1.0
    assert steps(SecondPlant(URDF), [9e9, 0.0, 0.0, 0.0], STEP).axes['effort'][0] == 30000.0


def test_reset_gives_the_same_motion_again():
    plant = on_valves(sensors=Sensors(seed=4))
    first = [steps(plant, [0.0, 0.2, 0.1, 0.1], 0.2).x, *plant.measure()]
    plant.reset()
    again = [steps(plant, [0.0, 0.2, 0.1, 0.1], 0.2).x, *plant.measure()]
    assert all(np.array_equal(one, two) for one, two in zip(first, again))


# sensors


def test_perfect_sensors_give_the_true_values():
    plant = steps(on_valves(), [0.0, 0.2, 0.1, 0.1], 0.2)
    x, xd, pressures, supply, age = plant.measure()
    assert np.abs(x - plant.x).max() < 1e-12 and np.array_equal(xd, plant.xd)
    assert np.array_equal(pressures, plant.pressures) and supply == 19e6 and age == 0.0


def test_sensors_have_steps_noise_and_range():
    plant = on_valves(sensors=Sensors(pressure_range=(0.0, 10e6)))
    samples = [steps(plant, None, STEP).measure() for _ in range(200)]
    x, xd, pressures = (np.array([sample[k] for sample in samples]) for k in range(3))
    assert np.abs(np.round(x[:, TELESCOPE] / 1e-4) * 1e-4 - x[:, TELESCOPE]).max() < 1e-12
    assert 0.0 < np.ptp(x[:, LIFT]) < 3e-4 and np.abs(x - plant.x).max() < 1e-3
    assert xd[:, TELESCOPE].std() == pytest.approx(1e-3, rel=0.2)
    assert pressures[:, 0, 0].max() <= 10e6 < plant.pressures[0, 0]
    assert pressures[:, 1, 1].std() == pytest.approx(5e4, rel=0.2)


def test_late_sensors_say_how_late_they_are():
    plant, true = on_valves(sensors=Sensors(**{**vars(PERFECT), 'delay': 0.006})), []
    for _ in range(50):
        steps(plant, [0.0, 0.2, 0.1, 0.1], STEP)
        true.append(plant.x)
    x, *_, age = plant.measure()
    assert age == pytest.approx(0.006)
    assert np.abs(x - true[-4]).max() < 1e-12


# refusals


@pytest.mark.parametrize('old, new, match', [
    ('    safe_output: valve_neutral', '    cushion: {length_a: 0.02, gain: 1.0e-7}\n    safe_output: valve_neutral',
     'does not model cushion of lift_cylinder'),
    ('bulk_modulus: 800.0e6 ', 'bulk_modulus: 800.0e6\n  air_content: 0.01 ', 'air or another temperature'),
])
def test_hydraulics_that_are_not_modelled_are_refused(old, new, match):
    with pytest.raises(ModelError, match=match):
        SecondPlant(URDF, declared(old, new))


def test_loops_that_are_no_triangles_are_refused():
    with pytest.raises(ModelError, match="closure '.*' is no triangle"):
        SecondPlant(find_machine('four_bar'))


def test_unknown_names_and_unreachable_starts_are_refused():
    with pytest.raises(ModelError, match="stiction of 'boom'; expected one of slew"):
        on_valves(stiction={'boom': 1.0})
    with pytest.raises(ModelError, match="no boom angle within its limits for 'lift_cylinder' at 0.7"):
        on_valves(position={'lift_cylinder': 0.7})
    with pytest.raises(StateError, match="'lift_cylinder' needs .* Pa at its start; the supply has 3e"):
        SecondPlant(URDF, declared('pressure: 19.0e6', 'pressure: 3.0e6'))


def test_command_of_another_length_is_refused():
    with pytest.raises(ShapeError, match=r'command \(3,\); expected \(4,\)'):
        on_valves().step(np.zeros(3), STEP)


def test_motion_that_cannot_be_integrated_is_an_error():
    plant = SecondPlant(URDF)
    plant._state[4] = np.nan
    with pytest.raises(StateError, match='no motion beyond 0.0000 s'):
        plant.step(np.zeros(4), STEP)
