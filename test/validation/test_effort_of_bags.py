"""Bags of an exact model pass validation, at every level: effort has one meaning in simulator and validation."""

import numpy as np
import pytest

from psdyn_ros.api.hydraulics.statics import frictionless
from psdyn_ros.api.load import load
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.validation.bags.simulated_bag import TELEMETRY
from psdyn_ros.validation.metrics.verdict import PASS
from psdyn_ros.validation.simulated_run import simulate_into_bag
from psdyn_ros.validation.validate import validate

TORQUES = {'hiab_xs031': 2e3, 'excavator': 2e4}     # N m, of the slewing drive
DURATION = 12.0     # s


def write_commands(path, machine, hydraulics):
    """Sines for every actuator, in valve openings and torques."""
    t = np.arange(0.0, DURATION, 0.02)
    actuators = load(find_machine(machine)).actuators
    columns = [(0.35 if name in hydraulics.cylinders else TORQUES[machine]) * np.sin(2.0 * np.pi * t / (4.0 + number))
               for number, name in enumerate(actuators)]
    path.write_text('\n'.join([','.join(('time', *actuators)), *(','.join(f'{value:.6g}' for value in row)
                                                                 for row in zip(t, *columns))]) + '\n')
    return path


@pytest.mark.parametrize('machine', ['hiab_xs031', pytest.param('excavator', marks=pytest.mark.long)])
@pytest.mark.parametrize('pressures', [True, False])
def test_bag_of_exact_hydraulic_model_passes(tmp_path, machine, pressures):
    hydraulics = read_hydraulics(find_config(f'{machine}_hydraulics.yaml'), load(find_machine(machine)).actuators)
    commands = write_commands(tmp_path / 'commands.csv', machine, hydraulics)
    outcome = simulate_into_bag(machine, commands, tmp_path / 'bag', log_rate=500.0, duration=DURATION, quiet=True)
    assert not outcome.fault
    found = validate(tmp_path / 'bag', machine, topics=None if pressures else {'pressures': 'none'})
    assert found.verdict.verdict == PASS, found.verdict.text
    assert found.predictor.hydraulics is not None and found.channels.telemetry == (TELEMETRY if pressures else '')


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


def test_chambers_of_cylinder_in_mode_effort_give_its_effort():
    machine = load(find_machine('hiab_xs031'))
    hydraulics = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), machine.actuators)
    plant = HydraulicPlant(machine, hydraulics, period=1e-3, ttl=1.0,
                           modes=dict.fromkeys(hydraulics.cylinders, 'effort'))
    command = plant.effort + [500.0, 3e3, -2e3, 1e3]
    plant.step(command, 0.05)
    for row, record in zip(plant.telemetry, plant.cylinder_records):
        assert row[0] * record['area_a'] - row[1] * record['area_b'] == pytest.approx(command[record['axis']], rel=1e-9)


def test_bag_of_force_level_is_judged_without_hydraulics(tmp_path):
    machine = load(find_machine('hiab_xs031'))
    hold = machine.gravity_forces(machine.initial_position)
    commands = tmp_path / 'commands.csv'
    t = np.arange(0.0, 6.0, 0.01)
    swing = np.sin(2.0 * np.pi * t)[:, None] * [300.0, 1500.0, 800.0, 60.0]
    commands.write_text('\n'.join([','.join(('time', *machine.actuators)), *(
        ','.join(f'{value:.9g}' for value in (time, *row)) for time, row in zip(t, hold + swing))]) + '\n')
    outcome = simulate_into_bag('hiab_xs031', commands, tmp_path / 'bag', hydraulics='', log_rate=500.0, duration=6.0,
                                quiet=True)
    assert not outcome.fault
    found = validate(tmp_path / 'bag', 'hiab_xs031')
    assert found.predictor.hydraulics is None and not found.channels.hydraulic
    assert found.verdict.verdict == PASS, found.verdict.text
