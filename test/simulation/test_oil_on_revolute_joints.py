"""Motors and racks: torque, power, equilibrium start and motion, against the equations written out for each."""
import math

import numpy as np
import pytest
import yaml
from scipy.integrate import solve_ivp

from psdyn_ros.api.hydraulics.statics import natural_modes
from psdyn_ros.api.load import load
from psdyn_ros.kernels.hydraulics.records import FLUID, PRESSURE_A, PRESSURE_B, QUANTITIES, SPOOL, SPOOL_RATE
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant

SUPPLY, TANK, BULK = 19e6, 1e6, 8e8     # Pa
GRAVITY = 9.81
MASS, ARM, INERTIA = 200.0, 1.5, 40.0   # of the arm: kg, m from the axis, kg m^2 about its centre
NOMINAL_FLOW, NOMINAL_DROP, LINEAR = 5e-4, 7e6, 2e5
FREQUENCY, DAMPING = 30.0, 0.7
COULOMB, VISCOUS, SLIP = 150.0, 200.0, 5e-3
LEAKAGE, CASE_LEAKAGE = 2e-12, 1e-12
SHARED = {'dead_volume_a': 1e-3, 'dead_volume_b': 1.4e-3, 'leakage': LEAKAGE, 'safe_output': 'valve_neutral',
          'valve': {'nominal_flow': NOMINAL_FLOW, 'nominal_pressure_drop': NOMINAL_DROP, 'slew_limit': 1e4,
                    'natural_frequency': FREQUENCY, 'damping': DAMPING, 'linear_range': LINEAR},
          'friction': {'coulomb': COULOMB, 'viscous': VISCOUS, 'slip_velocity': SLIP}}
DISPLACEMENT, GEAR, MOTORS = 1e-4, 50.0, 2
BORE, ROD, RADIUS, STROKE, CENTRE, RACKS = 0.07, 0.02, 0.2, 1.0, 0.3, 2
DRIVES = {'motors': {'displacement': DISPLACEMENT, 'gear_ratio': GEAR, 'count': MOTORS, 'case_leakage': CASE_LEAKAGE},
          'racks': {'bore': BORE, 'rod': ROD, 'pinion_radius': RADIUS, 'stroke': STROKE, 'centre': CENTRE,
                    'count': RACKS}}
ARM_URDF = f'''
<robot name="arm">
  <link name="ground"/>
  <joint name="turn" type="{{type}}"><parent link="ground"/><child link="arm"/><axis xyz="{{axis}}"/>
    <limit {{limits}}effort="2e4" velocity="1"/></joint>
  <link name="arm"><inertial><origin xyz="{ARM} 0 0"/><mass value="{MASS}"/>
    <inertia ixx="1" iyy="{INERTIA}" izz="{INERTIA}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <ros2_control name="system" type="system">
    <joint name="turn"><command_interface name="effort"/></joint>
  </ros2_control>
</robot>'''


def arm(section, axis='0 1 0', **changes):
    """(manipulator, hydraulics) of an arm on a motor, without limits, or on racks; about y it falls with its angle."""
    kind, limits = ('continuous', '') if section == 'motors' else ('revolute', 'lower="-2" upper="2.5" ')
    m = load(ARM_URDF.format(type=kind, axis=axis, limits=limits))
    contents = {'supply': {'pressure': SUPPLY, 'return_pressure': TANK}, 'oil': {'bulk_modulus': BULK},
                section: {'turn': {**SHARED, **DRIVES[section], **changes}}}
    return m, read_hydraulics(yaml.safe_dump(contents), m.actuators)


def plant_of(section, axis='0 1 0', **changes):
    return HydraulicPlant(*arm(section, axis, **changes), period=1e-3, substeps=4, ttl=100.0)


def effective_areas(section):
    """m^3/rad of ports A and B, from the geometry."""
    if section == 'motors':
        per_radian = MOTORS * DISPLACEMENT / (2.0 * math.pi) * GEAR
        return per_radian, per_radian
    return tuple(RACKS * math.pi * (BORE ** 2 - rod ** 2) / 4.0 * RADIUS for rod in (0.0, ROD))


def twin_rates(section, state, command):
    """d/dt of (angle, rate, p_a, p_b, spool, its rate) of the arm about y, in flows of the drive itself."""
    angle, rate, p_a, p_b, spool, spool_rate = state

    def root(z):
        return z / (z * z + LINEAR ** 2) ** 0.25

    gain = abs(spool) * NOMINAL_FLOW / math.sqrt(NOMINAL_DROP)
    q_a = gain * root((SUPPLY if spool > 0.0 else TANK) - p_a)
    q_b = gain * root((TANK if spool > 0.0 else SUPPLY) - p_b)
    q_a, q_b = (q + 2e-9 * max(TANK - p, 0.0) ** 2 / (max(TANK - p, 0.0) + 1e5) for q, p in ((q_a, p_a), (q_b, p_b)))
    if section == 'motors':
        shaft = GEAR * rate     # rad/s of each motor
        swallowed = [MOTORS * DISPLACEMENT / (2.0 * math.pi) * shaft] * 2
        torque = GEAR * MOTORS * DISPLACEMENT / (2.0 * math.pi) * (p_a - p_b)
        volumes = MOTORS * 1e-3, MOTORS * 1.4e-3
        q_a, q_b = q_a - MOTORS * CASE_LEAKAGE * (p_a - TANK), q_b - MOTORS * CASE_LEAKAGE * (p_b - TANK)
        leak = MOTORS * LEAKAGE * (p_a - p_b)
    else:
        way, speed = RADIUS * (angle - CENTRE) + 0.5 * STROKE, RADIUS * rate     # of the racks [m], [m/s]
        piston, ring = math.pi / 4.0 * BORE ** 2, math.pi / 4.0 * (BORE ** 2 - ROD ** 2)
        swallowed = RACKS * piston * speed, RACKS * ring * speed
        torque = RADIUS * RACKS * (p_a * piston - p_b * ring)
        volumes = RACKS * (1e-3 + piston * way), RACKS * (1.4e-3 + ring * (STROKE - way))
        leak = RACKS * LEAKAGE * (p_a - p_b)
    friction = COULOMB * math.tanh(rate / SLIP) + VISCOUS * rate
    # about y gravity turns the arm with the angle: z of the centre is -ARM sin(angle)
    acceleration = (torque - friction + MASS * GRAVITY * ARM * math.cos(angle)) / (INERTIA + MASS * ARM ** 2)
    omega = 2.0 * math.pi * FREQUENCY
    return [rate, acceleration, BULK / volumes[0] * (q_a - leak - swallowed[0]),
            BULK / volumes[1] * (q_b + leak + swallowed[1]), spool_rate,
            omega ** 2 * (command - spool) - 2.0 * DAMPING * omega * spool_rate]


@pytest.mark.parametrize('section', DRIVES)
def test_arm_moves_as_its_slow_twin(section):
    plant = plant_of(section)
    start = [*plant.x, 0.0, *plant.fluid[0, [PRESSURE_A, PRESSURE_B, SPOOL, SPOOL_RATE]]]
    commands, way, state = (0.3, -0.25, 0.0), [], np.array(start)
    for command in commands:
        solution = solve_ivp(lambda t, u, command=command: twin_rates(section, u, command), (0.0, 0.5), state,
                             'Radau', rtol=1e-8, atol=[1e-9, 1e-8, 1.0, 1.0, 1e-9, 1e-6])
        assert solution.success
        state = solution.y[:, -1]
        plant.step([command], 0.5)
        way.append(plant.x[0])
        assert plant.x[0] == pytest.approx(state[0], abs=5e-5) and plant.xd[0] == pytest.approx(state[1], abs=1e-3)
        np.testing.assert_allclose(plant.fluid[0, [PRESSURE_A, PRESSURE_B]], state[2:4], atol=2e-3 * SUPPLY)
    assert np.ptp(way) > 0.03 and not plant.fault


@pytest.mark.parametrize('section', DRIVES)
def test_pressures_times_effective_areas_are_the_torque_on_the_joint(section):
    plant, areas = plant_of(section), effective_areas(section)
    declared = plant.hydraulics.cylinders['turn']
    assert (declared.area_a, declared.area_b) == pytest.approx(areas, rel=1e-12)
    for command in (0.4, -0.3, 0.1):
        plant.step([command], 0.1)
        friction = COULOMB * np.tanh(plant.xd[0] / SLIP) + VISCOUS * plant.xd[0]
        p_a, p_b = plant.fluid[0, [PRESSURE_A, PRESSURE_B]]
        needed = plant.manipulator.inverse_dynamics(plant.x, plant.xd, plant.xdd)[0]
        assert p_a * areas[0] - p_b * areas[1] - friction == pytest.approx(needed, rel=1e-9)
        assert plant.effort[0] == pytest.approx(needed + friction, rel=1e-9)


@pytest.mark.parametrize('section', DRIVES)
def test_power_of_the_oil_is_that_of_the_joint_and_of_the_losses(section):
    """About a vertical axis at constant speed no oil is compressed, but in the chambers of racks as they move."""
    plant = plant_of(section, '0 0 1', dead_volume_a=2e-2, dead_volume_b=2e-2)
    plant.step([0.3], 2.0)
    before = plant.fluid.copy()
    plant.step([0.3], 1e-3)
    p_a, p_b, q_a, q_b = plant.telemetry[0, :4]
    compressing = 0.0
    for port, (area, sign) in enumerate(zip(effective_areas(section), (1.0, -1.0))):
        volume = plant.cylinder_records[0][('dead_a', 'dead_b')[port]]
        if section == 'racks':
            end = CENTRE - sign * 0.5 * STROKE / RADIUS
            volume += area * sign * (plant.x[0] - end)
        compressing += volume / BULK * plant.fluid[0, port] * (plant.fluid[0, port] - before[0, port]) / 1e-3
    # telemetry has what goes through the ports less what leaves through the case of a motor
    drained = [MOTORS * CASE_LEAKAGE * (p - TANK) if section == 'motors' else 0.0 for p in (p_a, p_b)]
    into = p_a * (q_a + drained[0]) + p_b * (q_b + drained[1])
    torque = p_a * effective_areas(section)[0] - p_b * effective_areas(section)[1]
    losses = 2 * LEAKAGE * (p_a - p_b) ** 2 + p_a * drained[0] + p_b * drained[1]
    assert plant.xd[0] > 0.05 and losses > (20.0 if section == 'motors' else 0.0)
    assert into == pytest.approx(torque * plant.xd[0] + losses + compressing, rel=2e-3)
    assert torque == pytest.approx(plant.force[0] + COULOMB * np.tanh(plant.xd[0] / SLIP) + VISCOUS * plant.xd[0])


@pytest.mark.parametrize('section', DRIVES)
def test_start_is_in_static_equilibrium(section):
    plant = plant_of(section, leakage=0.0, **({'case_leakage': 0.0} if section == 'motors' else {}))
    weight = -MASS * GRAVITY * ARM * math.cos(plant.x[0])
    p_a, p_b = plant.fluid[0, [PRESSURE_A, PRESSURE_B]]
    areas = effective_areas(section)
    assert p_a * areas[0] - p_b * areas[1] == pytest.approx(weight, rel=1e-9) and min(p_a, p_b) >= TANK
    start = plant.x.copy()
    plant.step(None, 1.0)
    assert abs(plant.x - start)[0] < 1e-6 and plant.held == ('turn',)


@pytest.mark.parametrize('section', DRIVES)
def test_closed_valve_holds_the_arm_on_its_oil(section):
    """The mode is that of K_a A_a^2 / V_a + K_b A_b^2 / V_b on the inertia."""
    plant, (area_a, area_b) = plant_of(section, '0 0 1'), effective_areas(section)
    volumes = np.array([2e-3, 2.8e-3])
    if section == 'racks':
        volumes += [area_a * (0.5 * STROKE / RADIUS - CENTRE), area_b * (0.5 * STROKE / RADIUS + CENTRE)]
    stiffness = BULK * (area_a ** 2 / volumes[0] + area_b ** 2 / volumes[1])
    records = plant.axes, plant.cylinder_records, plant.supply
    found = natural_modes(plant.manipulator, plant.hydraulics, records, [0.0])
    expected = math.sqrt(stiffness / (INERTIA + MASS * ARM ** 2)) / (2.0 * math.pi)
    assert found.frequencies == pytest.approx([expected], rel=1e-9)
    assert found.stiffness == pytest.approx([stiffness], rel=1e-12)


def test_motor_turns_on_and_on():
    plant = plant_of('motors', '0 0 1')
    plant.step([1.0], 40.0)
    assert plant.x[0] > 4.0 * math.pi and not plant.fault
    assert plant.fluid.shape == (1, FLUID) and QUANTITIES[0] == 'pressure_a'


def test_racks_stop_at_the_ends_of_their_stroke():
    _, hydraulics = arm('racks')
    free = load(ARM_URDF.format(type='continuous', axis='0 0 1', limits=''))
    plant = HydraulicPlant(free, hydraulics, period=1e-3, ttl=100.0)
    for command, end in ((1.0, CENTRE + 0.5 * STROKE / RADIUS), (-1.0, CENTRE - 0.5 * STROKE / RADIUS)):
        plant.step([command], 30.0)
        assert plant.x[0] == pytest.approx(end, abs=2e-3) and abs(plant.xd[0]) < 1e-3 and not plant.fault
