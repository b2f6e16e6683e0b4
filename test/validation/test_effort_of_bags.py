"""Bags of an exact model pass validation, at every level: effort has one meaning in simulator and validation."""

import numpy as np
import pytest
from conftest import thorough
from support.bags.recorded_motion import write_demonstration

from psdyn_ros.api.hydraulics.statics import frictionless
from psdyn_ros.api.load import load
from psdyn_ros.model.locate import find_config, find_machine, machine_names
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.simulation.sensors.readings import exact_readings
from psdyn_ros.validation.bags.simulated_bag import SimulatedBag
from psdyn_ros.validation.metrics import PASS, UNDECIDED
from psdyn_ros.validation.metrics.metrics import EFFORT
from psdyn_ros.validation.metrics.prediction import NEAR_STOP
from psdyn_ros.validation.simulated_run import Run, simulate_into_bag
from psdyn_ros.validation.validate import validate


@pytest.mark.parametrize('topics', thorough([{}, {'pressures': 'none'}], 1))
def test_bag_of_exact_hydraulic_model_passes(tmp_path, topics):
    found = validate(write_demonstration(tmp_path / 'bag'), 'hiab_xs031', topics=topics)
    assert found.predictor.hydraulics is not None and bool(found.channels.telemetry) != bool(topics)
    assert found.verdict.verdict == PASS, found.verdict.text


def test_effort_of_plant_is_net_force_and_friction():
    machine = load(find_machine('excavator'))
    hydraulics = read_hydraulics(find_config('excavator_hydraulics.yaml'), machine.actuators)
    plant = HydraulicPlant(machine, hydraulics, period=1e-3, ttl=1.0)
    command = np.where([name in hydraulics.cylinders for name in machine.actuators], 0.4, 2e4)
    plant.step(command, 0.3)
    bare = frictionless(machine, hydraulics)
    friction = plant.effort - plant.force
    assert np.abs(bare.forward_dynamics(plant.x, plant.xd, plant.effort - friction) - plant.xdd).max() < 1e-6
    speed = plant.actuator_motion()[1]
    assert (friction * speed > 0.0).all()
    swing = hydraulics.axes['swing'].friction
    axis = machine.actuators.index('swing')
    assert plant.effort[axis] == 2e4
    assert friction[axis] == pytest.approx(
        swing.coulomb * np.tanh(speed[axis] / swing.slip_velocity) + swing.viscous * speed[axis])


@pytest.mark.parametrize('telescope', [1e3, -9e3, -20e3])
def test_chambers_of_cylinder_in_mode_effort_give_its_effort(telescope):
    machine = load(find_machine('hiab_xs031'))
    hydraulics = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), machine.actuators)
    plant = HydraulicPlant(machine, hydraulics, period=1e-3, ttl=1.0,
                           modes=dict.fromkeys(hydraulics.cylinders, 'effort'))
    command = plant.effort + [500.0, 3e3, -2e3, telescope]
    plant.step(command, 0.05)
    for row, record in zip(plant.telemetry, plant.cylinder_records):
        assert row[0] * record['area_a'] - row[1] * record['area_b'] == pytest.approx(command[record['axis']], rel=1e-9)


@pytest.mark.parametrize(('name', 'travel'), thorough([
    ('hiab_xs031', (0.1, 0.03, 0.03, 0.1)), ('four_bar', (0.3,)), ('hiab_xs031_lift', (0.1,)),
    ('excavator', (0.2, 0.1, 0.1, 0.1)), ('five_bar', (0.3, -0.2)),
    ('pkm_2pur2rpu', (0.01, 0.01, 0.01, 0.01))], 1, several=True))
def test_controlled_bag_of_force_level_passes_without_hydraulics(tmp_path, name, travel):
    machine = load(find_machine(name))
    plant, middle, travel = Plant(machine, period=2e-3), machine.initial_position, np.array(travel[:machine.dof])
    with SimulatedBag(tmp_path / 'bag') as bag:
        for k in range(4000):
            wave = np.pi * 2e-3 * k
            x, xd, xdd = middle + travel * (1.0 - np.cos(wave)) / 2.0, travel * np.sin(wave), travel * np.cos(wave)
            xd, xdd = np.pi / 2.0 * xd, np.pi ** 2 / 2.0 * xdd
            plant.step(machine.inverse_dynamics(
                plant.x, plant.xd, xdd + 100.0 * (x - plant.x) + 20.0 * (xd - plant.xd)), 2e-3)
            exact = exact_readings(plant)
            bag.write(plant, exact, exact)
    found = validate(tmp_path / 'bag', name)
    assert found.predictor.hydraulics is None and not found.channels.hydraulic
    assert found.verdict.text == f'{PASS}: every figure is within its tolerance'


def write_commands(path, machine, bias, amplitude, hold):
    """Write six commands, `hold` s each: the bias, then steps to and fro around it."""
    sign = (0.0, 0.5, -1.0, 1.0, -1.0, 0.5)
    rows = [','.join(('time', *machine.actuators))]
    rows += [','.join(f'{value:.17g}' for value in (hold * k, *(bias + one * amplitude))) for k, one in enumerate(sign)]
    path.write_text('\n'.join(rows) + '\n')
    return path


# a linkage that leaves its equilibrium without a controller runs away until nothing can be integrated
SHIPPED = (('hiab_xs031', 'effort', 0.02), ('hiab_xs031', 'valve', 0.3), ('hiab_xs031_lift', 'effort', 0.1),
           ('excavator', 'effort', 0.1), ('excavator', 'valve', 0.3), ('four_bar', 'effort', 0.0),
           ('five_bar', 'effort', 0.0), ('pkm_2pur2rpu', 'effort', 0.0))


@pytest.mark.parametrize(('name', 'level', 'share'), thorough(
    SHIPPED, [SHIPPED[1]], several=True))
def test_simulated_bag_of_shipped_machine_has_nothing_wrong(tmp_path, name, level, share):
    machine = load(find_machine(name))
    still = np.zeros(machine.dof)
    bias, hold = machine.inverse_dynamics(machine.initial_position, still, still), 1.0
    amplitude = share * np.abs(bias)
    if level == 'valve':
        cylinders = read_hydraulics(find_config(f'{name}_hydraulics.yaml'), machine.actuators).cylinders
        bias = np.zeros(len(bias))
        amplitude = np.array([share if one in cylinders else 5e3 for one in machine.actuators])
    outcome = simulate_into_bag(name, write_commands(tmp_path / 'commands.csv', machine, bias, amplitude, hold),
                                tmp_path / 'bag', Run(hydraulics='' if level == 'effort' else None), quiet=True)
    assert not outcome.fault
    found = validate(tmp_path / 'bag', name)
    # what runs into its stops, or stays where it is, cannot tell
    assert found.verdict.verdict in (PASS, UNDECIDED) and not found.verdict.but, found.verdict.text
    assert all(check.passed for check in found.verdict.checks)
    assert level == 'effort' or found.verdict.verdict == PASS
    assert not [cause.text for cause in found.causes if cause.kind == 'delay']


def test_every_shipped_machine_with_actuators_is_simulated_here():
    machines = {name: load(find_machine(name), allow_unphysical=True) for name in machine_names()}
    # validation does not know passive joints
    driven = {name for name, m in machines.items() if m.actuators and not m.passive_joints}
    with_oil = {name for name in driven if find_config(f'{name}_hydraulics.yaml')}
    assert {name for name, level, _ in SHIPPED if level == 'effort'} == driven
    assert {name for name, level, _ in SHIPPED if level == 'valve'} == with_oil


@pytest.mark.long
def test_bag_of_boom_that_hits_its_stop_passes_and_says_so(tmp_path):
    machine = load(find_machine('hiab_xs031_lift'))
    still = np.zeros(machine.dof)
    bias = machine.inverse_dynamics(machine.initial_position, still, still)
    path = tmp_path / 'commands.csv'
    rows = [f'{4 * k},{factor * bias[0]}' for k, factor in enumerate((1.1, 0.9))]
    path.write_text('\n'.join((f'time,{machine.actuators[0]}', *rows, '')))
    outcome = simulate_into_bag('hiab_xs031_lift', path, tmp_path / 'bag', Run(duration=8.0), quiet=True)
    assert not outcome.fault
    # it moves for 2.6 s between its stops
    found = validate(tmp_path / 'bag', 'hiab_xs031_lift', output=tmp_path / 'page',
                     config='machine:\n  motion: 1.0\n')
    near = found.metrics.metrics(EFFORT, 0, NEAR_STOP)
    assert near.count and near.rmse > found.settings.actuators['lift_cylinder'].nrmse * found.metrics.scale(EFFORT, 0)
    assert found.verdict.verdict == PASS, found.verdict.text
    assert found.verdict.left_out == (
        f'lift_cylinder: {found.metrics.near_stop(0):.0%} of its time is not judged: it is near an end stop, whose '
        'force no model knows, or shaken by another actuator that hits one',)
    assert found.verdict.left_out[0] in (tmp_path / 'page' / 'report.html').read_text()


def test_actuator_at_its_stop_all_the_time_makes_bag_partial(tmp_path):
    machine = load(find_machine('hiab_xs031'), initial={'telescope': 0.0})
    plant = Plant(machine, period=2e-3)
    with SimulatedBag(tmp_path / 'bag') as bag:
        for k in range(3000):
            swing = 0.05 * np.array([1.0, 0.3, 0.3, 0.0])
            x = machine.initial_position + swing * (1.0 - np.cos(np.pi * 2e-3 * k))
            xd, xdd = swing * np.pi * np.sin(np.pi * 2e-3 * k), swing * np.pi ** 2 * np.cos(np.pi * 2e-3 * k)
            plant.x[:], plant.xd[:] = x, xd
            plant.force[:] = machine.inverse_dynamics(x, xd, xdd) + [0.0, 0.0, 0.0, -2e4]
            plant.steps = k
            exact = exact_readings(plant)
            bag.write(plant, exact, exact)
    verdict = validate(tmp_path / 'bag', machine).verdict
    assert verdict.verdict == PASS and verdict.exit_code == 3
    assert verdict.partial == ('telescope: it is away from its end stops for 0 s; at least 2 s are needed to judge it',)
