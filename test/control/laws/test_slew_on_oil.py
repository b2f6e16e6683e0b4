"""The loader crane with its slew on racks: tracking on valves, and a stop on a fault."""

from dataclasses import replace
from functools import cache

import numpy as np

from psdyn_ros.control import ControllerConfig, State, assemble, follow
from psdyn_ros.model.locate import find_config, find_machine
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.tools.demo.demonstration import demonstration

TRAVEL = {'slew': 0.4, 'lift_cylinder': 0.1, 'tilt_cylinder': 0.1, 'telescope': 0.3}


@cache
def config():
    found = ControllerConfig.from_files(find_machine('loader_crane'), find_config('loader_crane_hydraulics.yaml'),
                                        safety=find_config('loader_crane_safety.yaml'))
    return replace(found, swing_shaper='none')


def run(seconds, change=None):
    c = config()
    plant = HydraulicPlant(c.machine, c.hydraulics, period=c.period)
    return plant, follow(assemble(c), plant, demonstration(c.machine, 8.0, TRAVEL), seconds, change=change)


def test_slew_on_racks_follows_within_the_bound_of_cylinders():
    plant, record = run(9.0)
    c, rows = config(), np.isfinite(record.desired[:, 0, 0])
    assert c.law == 'valve_computed_torque' and c.hydraulics.cylinders['slew'].kind == 'rack' and not c.hydraulics.axes
    rms = np.sqrt(np.mean((record.desired[rows, 0] - record.x[rows, :4]) ** 2, axis=0))
    tips = np.array([c.machine.link_pose(x, 'tcp')[:2, 3] for x in record.x[::50]])
    reach = np.linalg.norm(tips, axis=1).max()
    assert np.ptp(record.x[:, 0]) > 0.39 and reach > 3.0 and not plant.fault
    assert rms[0] * reach < 3e-4 and rms[1:].max() < 3e-4      # m
    assert record.reasons == ()


def test_slew_on_racks_stops_when_its_pressure_sensor_fails():
    def broken(time, measured):
        if time < 2.0:
            return measured
        pressures = measured.pressures.copy()
        pressures[0, 0] = 9e7
        return measured._replace(pressures=pressures)

    plant, record = run(4.0, broken)
    assert record.state[-1] in (State.SAFE, State.STANDBY) and 'F37' in str(record.reasons)
    before, at_rest = record.time < 2.0, record.time > 3.5
    assert np.abs(record.xd[before, 0]).max() > 0.1     # it was turning
    assert np.abs(record.xd[at_rest, 0]).max() < 0.02 and not plant.fault
    assert abs(plant.spool).max() < 1e-3
