"""The crane on a load-sensing pump, on flow-sharing and regenerative valves: tracking in lock-step, use of the pump."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from psdyn_ros.api.hydraulics.statics import pump_areas
from psdyn_ros.control import ControllerConfig, assemble, follow
from psdyn_ros.control.laws.pump_flow import PumpFlow
from psdyn_ros.control.offline.time_optimal import limits_of
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.model.parameters.supply import LoadSensing
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.tools.demo.demonstration import demonstration

NAMES = ('lift_cylinder', 'tilt_cylinder', 'telescope')
MARGIN, LAG = 2e6, 0.05
LITRES = np.array([200.0, 50.0, 200.0, 50.0]) / 60e3      # wide metering edges, narrow ones to the return line
SUPPLIES = {'servo': {}, 'flow sharing': dict(flow_sharing=True, nominal_flow=tuple(LITRES)),
            'regenerative': dict(regenerative=True)}
BOUND = {'servo': 0.1, 'flow sharing': 0.3, 'regenerative': 0.3}       # mm


@cache
def config(kind, max_flow=2e-3):
    """The crane; regeneration is that of the telescope, on constant pressure."""
    found = ControllerConfig.from_files(find_machine('hiab_xs031'), find_config('hiab_xs031_hydraulics.yaml'),
                                        safety=find_config('hiab_xs031_safety.yaml'))
    declared = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), found.machine.actuators)
    changed = NAMES[2:] if kind == 'regenerative' else NAMES
    drives = {name: replace(one, valve=replace(one.valve, **SUPPLIES[kind])) if name in changed else one
              for name, one in declared.cylinders.items()}
    supply = declared.supply if kind == 'regenerative' else replace(
        declared.supply, max_flow=max_flow, load_sensing=LoadSensing(margin=MARGIN, time_constant=LAG))
    return replace(found, hydraulics=replace(declared, supply=supply, cylinders=drives))


def run(kind, seconds=10.0, **options):
    c = config(kind, **options)
    plant = HydraulicPlant(c.machine, c.hydraulics, period=c.period)
    record = follow(assemble(c), plant, demonstration(c.machine, seconds), seconds)
    rows = np.isfinite(record.desired[:, 0, 0])
    assert not plant.fault and record.reasons == ()
    return plant, record, 1e3 * (record.desired[rows, 0] - record.x[rows])


@pytest.mark.parametrize('kind', SUPPLIES)
def test_cylinders_follow_within_the_bounds_of_constant_pressure(kind):
    _, record, error = run(kind)
    assert np.ptp(record.x[:, 3]) > 0.1
    assert np.sqrt(np.mean(error[:, 1:] ** 2, axis=0)).max() < BOUND[kind]


def test_the_pump_of_a_load_that_is_sensed_stands_by_at_rest_and_follows_in_motion():
    c = config('flow sharing')
    plant = HydraulicPlant(c.machine, c.hydraulics, period=0.001)
    standby = c.hydraulics.supply.return_pressure + MARGIN
    assert plant.supply_pressure[0] == pytest.approx(standby)
    command, line = np.array([0.0, 0.2, 0.0, 0.0]), standby
    for k in range(1000):
        margin = MARGIN if k < 600 else 0.5 * MARGIN
        if k == 600:
            plant.disturb('supply', 'margin', 0.5)
        before = plant.telemetry[0, 9]
        plant.step(command, 0.001)
        load = 0.5 * (before + plant.telemetry[0, 9])
        line += (1.0 - np.exp(-0.001 / LAG)) * (load + margin - line)
        assert plant.telemetry[0, 8] == pytest.approx(line, abs=5e4)
    assert plant.telemetry[0, 9] > 3e6
    plant.undisturb('supply', 'margin')
    plant.reset()
    assert plant.supply_pressure[0] == pytest.approx(standby)


def test_a_line_that_is_not_measured_is_what_the_commands_make_of_it():
    c = config('flow sharing')
    law = assemble(c).law
    x, rest = c.machine.initial_position, np.zeros(4)
    pressures = np.full((3, 2), 8e6)
    law.hold(x)
    commands = {}
    for line in (None, 1e6 + MARGIN):       # it stands by
        law._forget()
        commands[line] = law.update(0.0, x - [0, 1e-3, 0, 0], rest, pressures, supply_pressure=line)
    assert np.isfinite(commands[None]).all() and commands[None] == pytest.approx(commands[1e6 + MARGIN])


def test_a_pump_that_is_too_small_slows_the_motion_down_on_its_path():
    _, record, error = run('flow sharing', 14.0, max_flow=5e-4)
    _, full, _ = run('flow sharing', 14.0)
    assert np.sqrt(np.mean(error[:, 1:] ** 2, axis=0)).max() < 1.0
    assert abs(record.xd[:, 1]).max() < abs(full.xd[:, 1]).max()


def test_law_and_planner_count_the_flow_that_a_regenerative_valve_takes():
    c = config('regenerative')
    law = assemble(c).law
    telescope = c.hydraulics.cylinders['telescope']
    rod = telescope.area_a - telescope.area_b
    assert pump_areas(law.cylinders)[:, 2] == pytest.approx((rod, telescope.area_b))
    assert PumpFlow(law).needed(c.machine.initial_position, np.array([0.0, 0.0, 0.0, 0.1])) == pytest.approx(0.1 * rod)
    limits, plain = limits_of(c.machine, c.hydraulics), limits_of(c.machine, config('servo').hydraulics)
    assert limits.area_out[3] == pytest.approx(rod) and plain.area_out[3] == pytest.approx(telescope.area_a)
    friction = 4000.0 + 3000.0 * c.machine.limits.velocity[3]
    assert limits.upper[3] == pytest.approx(min(19e6 * rod, c.machine.limits.effort[3]) - friction)
