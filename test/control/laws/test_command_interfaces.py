"""Output interfaces of the laws against the hydraulic plant, and the limit of the pump."""

from dataclasses import replace

import numpy as np
import pytest

import psdyn_ros
from psdyn_ros.control.core.assembly import ControllerConfig, assemble
from psdyn_ros.control.laws.base import checked_interfaces
from psdyn_ros.control.laws.computed_torque import ForceGains
from psdyn_ros.control.laws.registry import LAWS, make_law
from psdyn_ros.control.safety.fault_table import State
from psdyn_ros.model.locate import find_config
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.tools.studies.tracking_runs import PERIOD, REFERENCES, PlainSensors, closed_loop, crane, oil

EFFORT, PRESSURE, VALVE, VELOCITY = 'effort', 'pressure', 'valve', 'velocity'
START = np.array([0.0, 0.2, 0.2, 0.2])
STILL = np.zeros(4)
CHAMBERS = np.full((3, 2), 60e5)


@pytest.fixture(scope='module')
def compensated():
    """The crane's hydraulics with pressure-compensated valves."""
    cylinders = {name: replace(one, valve=replace(one.valve, compensated=True, compensator_margin=3.5e6))
                 for name, one in oil().cylinders.items()}
    return replace(oil(), cylinders=cylinders)


def plant_of(hydraulics, law):
    return HydraulicPlant(crane(), hydraulics, period=1e-3, ttl=0.02, position=START,
                          modes=dict(zip(law.manipulator.actuators, law.interfaces)))


def errors_of(name, interfaces, hydraulics, seconds=4.0, **options):
    """(4,) rms errors [mm, mrad] on the first seconds of the demonstration, which no check ends."""
    core = assemble(ControllerConfig.of_machine(
        crane(), hydraulics, safety=find_config('hiab_xs031_safety.yaml'), law=name, rate=1.0 / PERIOD,
        interfaces=dict(zip(crane().actuators, interfaces)), law_options=options))
    loop = closed_loop(core, plant_of(hydraulics, core.law))
    begin = loop.slot
    loop.send(REFERENCES['demonstration']())
    record = loop.run(seconds).recording()
    assert core.states.state is State.RUN and not core.law.saturations.any(), core.states.reasons
    errors = record.x[begin - 1:-1] - record.desired[begin:, 0]
    return 1e3 * np.sqrt(np.mean(errors**2, axis=0))


# every interface against the plant


@pytest.mark.slow
@pytest.mark.parametrize('name, interfaces, bound', [
    ('valve_computed_torque', (EFFORT, EFFORT, EFFORT, EFFORT), 0.15),
    ('valve_computed_torque', (EFFORT, PRESSURE, PRESSURE, PRESSURE), 0.6),
    ('valve_computed_torque', (EFFORT, VELOCITY, VELOCITY, VELOCITY), 0.8),
    ('valve_computed_torque', (EFFORT, VALVE, VALVE, VALVE), 0.15),
    ('valve_computed_torque', (EFFORT, VELOCITY, VALVE, PRESSURE), 1.5),
    ('valve_pid', (EFFORT, VELOCITY, VELOCITY, VELOCITY), 2.5),
    ('computed_torque', (EFFORT, EFFORT, EFFORT, EFFORT), 0.15),
    ('computed_torque', (EFFORT, PRESSURE, PRESSURE, PRESSURE), 0.9),
], ids=str)
def test_a_interface_follows_the_demonstration(compensated, name, interfaces, bound):
    assert (errors_of(name, interfaces, compensated) <= bound).all()


@pytest.mark.slow
@pytest.mark.parametrize('name, interface', [('computed_torque', EFFORT), ('valve_computed_torque', VALVE)])
def test_errors_may_be_taken_in_the_joints(name, interface):
    assert (errors_of(name, (EFFORT, interface, interface, interface), oil(), 2.5, space='joint') <= 0.15).all()


@pytest.mark.slow
def test_when_flow_runs_out_all_cylinders_slow_down_together():
    hydraulics = replace(oil(), supply=replace(oil().supply, max_flow=45.0 / 6e4))
    worst, slowest = {}, 1.0
    for slowed in (False, True):
        law = make_law('valve_computed_torque', crane(), hydraulics, None, PERIOD)
        plant, sensors, off = plant_of(hydraulics, law), PlainSensors(), []
        law.hold(START)
        law.reference.follow(REFERENCES['demonstration'](), 0.0)
        measured = sensors.read(plant)
        for k in range(2250):
            t = k * PERIOD
            command = law.update(t, *measured, supply_pressure=float(plant.supply_pressure[0]))
            if slowed:
                law.reference.set_speed(law.speed_scaling, t)
                slowest = min(slowest, law.speed_scaling)
            plant.step(command, PERIOD)
            measured = sensors.read(plant)
            off.append(plant.x - law.reference.ahead(t + PERIOD)[0])
        worst[slowed] = 1e3 * np.abs(off)[:, 1:].max(axis=0)
    assert (worst[True] <= 1.0).all() and worst[False].max() >= 20.0
    assert 0.4 <= slowest <= 0.7


def test_the_flow_that_a_reference_needs_is_that_of_its_areas_and_directions():
    hydraulics = replace(oil(), supply=replace(oil().supply, max_flow=1e-3))
    law = make_law('valve_pid', crane(), hydraulics, None, PERIOD)
    cylinders = law.cylinders
    flow = law._pump.needed(START, np.array([5.0, 0.1, -0.1, 0.2]))
    assert flow == pytest.approx(0.1 * cylinders['area_a'][0] + 0.1 * cylinders['area_b'][1]
                                 + 0.2 * cylinders['area_a'][2])
    assert make_law('valve_pid', crane(), oil(), None, PERIOD)._pump is None      # it gives what is asked


def limited_to(litres_per_minute):
    """A law on the crane with a small pump."""
    hydraulics = replace(oil(), supply=replace(oil().supply, max_flow=litres_per_minute / 6e4))
    law = make_law('valve_pid', crane(), hydraulics, None, PERIOD)
    law.hold(START)
    return law


@pytest.mark.parametrize('speed', [1.0, 0.5])
def test_the_scale_falls_before_the_flow_is_needed_and_comes_back_when_it_is_not(speed):
    law, most = limited_to(45.0), 0.9 * 45.0 / 6e4
    law.reference.set_speed(speed, 0.0)
    law.reference.follow(REFERENCES['demonstration'](), 0.0)
    end, asked = law.reference.end, []
    for k in range(round((end + 2.0) / PERIOD)):
        t = k * PERIOD
        scale = law._pump.scale(t, PERIOD)
        x, xd, _ = law.reference.ahead(t)
        at_full_speed = law._pump.needed(x, xd) / speed
        assert scale * at_full_speed <= 1.01 * most
        asked.append(scale)
    assert asked[0] == asked[-1] == 1.0 and 0.4 <= min(asked) <= 0.7


def test_points_that_are_streamed_do_not_make_the_scale_fall_further_and_further():
    law = limited_to(200.0)
    law.reference.set_speed(0.3, 0.0)
    for k in range(1000):
        t = k * PERIOD
        law.reference.stream(t, START + 0.05 * np.array([0.0, t, t, t]), np.array([0.0, 0.05, 0.05, 0.05]), now=t)
        assert law._pump.scale(t, PERIOD) == 1.0


# units, limits and refusals


@pytest.mark.parametrize('interfaces, expected', [
    (None, (EFFORT, VALVE, VALVE, VALVE)),
    ({'telescope': 'pressure'}, (EFFORT, VALVE, VALVE, PRESSURE)),
    ([EFFORT, EFFORT, PRESSURE, VALVE], (EFFORT, EFFORT, PRESSURE, VALVE)),
])
def test_interfaces_come_from_what_is_given_and_else_from_the_hydraulics(interfaces, expected):
    assert checked_interfaces(crane(), oil(), interfaces) == expected


@pytest.mark.parametrize('name, interfaces, message', [
    ('valve_pid', {'telescop': 'effort'}, "interface of 'telescop': no such actuator; did you mean 'telescope'"),
    ('valve_pid', {'telescope': 'presure'},
     "interface 'presure' of 'telescope': expected one of .*did you mean 'pressure'"),
    ('valve_pid', {'telescope': 'velocity'}, 'no pressure compensator'),
    ('valve_pid', {'slew': 'pressure'}, 'no cylinder of the hydraulics drives it'),
    ('valve_pid', ('effort', 'valve'), 'for each of slew'),
    ('valve_pid', 'effort', 'for each of slew'),
    ('computed_torque', {'telescope': 'valve'}, 'this law commands effort or pressure'),
])
def test_interfaces_that_cannot_be_are_refused_by_name(name, interfaces, message):
    with pytest.raises(psdyn_ros.PsdynError, match=message):
        make_law(name, crane(), oil(), interfaces, PERIOD)


def test_laws_are_made_by_name_and_say_what_they_lack():
    assert {type(make_law(name, crane(), oil(), None, PERIOD)) for name in LAWS} == set(LAWS.values())
    with pytest.raises(psdyn_ros.UnknownNameError, match="law 'valve_pd'.*did you mean 'valve_pid'"):
        make_law('valve_pd', crane())
    with pytest.raises(psdyn_ros.ModelError, match="law 'valve_pid': it needs hydraulics"):
        make_law('valve_pid', crane(), None, None, PERIOD)
    with pytest.raises(psdyn_ros.ModelError, match="law 'valve_pid': it needs period"):
        make_law('valve_pid', crane(), oil())


@pytest.mark.parametrize('bad', [np.full(4, -1.0), np.full(4, np.nan), np.ones(3)])
def test_gains_of_wrong_sign_or_size_are_refused(bad):
    law = make_law('computed_torque', crane())
    before = law._law.gains.copy()
    with pytest.raises(psdyn_ros.ModelError, match='gains damping = .*expected 4 finite numbers'):
        law.set_gains(ForceGains(np.ones(4), bad, np.zeros(4)))
    assert (law._law.gains == before).all()


@pytest.mark.parametrize('name, gain', [('valve_computed_torque', 'force_gain'), ('valve_pid', 'proportional')])
@pytest.mark.parametrize('bad', [np.full(4, -1.0), np.full(4, np.nan), np.ones(3), np.full(4, 1e9)])
def test_gains_on_valves_of_wrong_sign_or_size_are_refused(name, gain, bad):
    law = make_law(name, crane(), oil(), None, PERIOD)
    before = law.gains
    with pytest.raises(psdyn_ros.ModelError, match=f'gains {gain} = .*expected 4 numbers from 0 to 10000'):
        law.set_gains(replace(law.gains, **{gain: bad}))
    assert law.gains is before


def test_holding_commands_hold_the_load_in_the_unit_of_each_interface(compensated):
    law = make_law('valve_computed_torque', crane(), compensated, (EFFORT, EFFORT, PRESSURE, VELOCITY), PERIOD)
    force, area = crane().gravity_forces(START), compensated.cylinders['tilt_cylinder'].area_a
    assert law.holding(START) == pytest.approx([force[0], force[1], force[2] / area, 0.0])


def test_pressures_are_asked_for_where_a_valve_is_commanded(compensated):
    law = make_law('valve_computed_torque', crane(), compensated, None, PERIOD)
    assert law.needs_pressures
    with pytest.raises(psdyn_ros.ModelError, match='pressures are None'):
        law.update(0.0, START, STILL)
    for name, interface in (('valve_computed_torque', VELOCITY), ('valve_pid', VALVE)):
        law = make_law(name, crane(), compensated, (EFFORT, interface, interface, interface), PERIOD)
        assert not law.needs_pressures and np.isfinite(law.update(0.0, START, STILL)).all()


def test_commands_of_every_interface_are_clipped_to_what_there_is(compensated):
    law = make_law('valve_computed_torque', crane(), compensated, (EFFORT, PRESSURE, VELOCITY, VALVE), PERIOD)
    law.hold(START + [5.0, 0.3, 0.3, 0.8])
    for k in range(3):
        command = law.update(k * PERIOD, START, STILL, CHAMBERS)
    limits = crane().limits
    pressure = min(19e6, limits.effort[1] / compensated.cylinders['lift_cylinder'].area_a)
    assert command == pytest.approx([limits.effort[0], pressure, limits.velocity[2], 1.0], rel=1e-9)
    assert (law.saturations > 0).all()
