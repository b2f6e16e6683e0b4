"""Bags of an exact model pass validation, at every level: effort has one meaning in simulator and validation."""

import numpy as np
import pytest
from support.bags.recorded_motion import write_demonstration

from psdyn_ros.api.hydraulics.statics import frictionless
from psdyn_ros.api.load import load
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.simulation.sensors.readings import exact_readings
from psdyn_ros.validation.bags.simulated_bag import SimulatedBag
from psdyn_ros.validation.metrics.verdict import PASS
from psdyn_ros.validation.validate import validate


@pytest.mark.parametrize('topics', [{}, {'pressures': 'none'}])
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
    plant, middle = Plant(machine, period=2e-3), machine.initial_position
    travel = np.array([0.1, 0.03, 0.03, 0.1])
    with SimulatedBag(tmp_path / 'bag') as bag:
        for k in range(4000):
            wave = np.pi * 2e-3 * k
            x, xd, xdd = middle + travel * (1.0 - np.cos(wave)) / 2.0, travel * np.sin(wave), travel * np.cos(wave)
            xd, xdd = np.pi / 2.0 * xd, np.pi ** 2 / 2.0 * xdd
            plant.step(machine.inverse_dynamics(
                plant.x, plant.xd, xdd + 100.0 * (x - plant.x) + 20.0 * (xd - plant.xd)), 2e-3)
            exact = exact_readings(plant)
            bag.write(plant, exact, exact)
    found = validate(tmp_path / 'bag', 'hiab_xs031')
    assert found.predictor.hydraulics is None and not found.channels.hydraulic
    assert found.verdict.verdict == PASS, found.verdict.text
