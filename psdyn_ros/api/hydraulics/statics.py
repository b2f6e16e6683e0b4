"""Hydraulics of a machine: the flat records for the kernels, static equilibrium, natural frequencies, stored energy.

Functions of a state take (manipulator, hydraulics, axes, cylinders, supply, x), where the records are those that
`hydraulic_records` makes, as they are at that moment, and x (nx,) as everywhere.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...kernels.hydraulics.equations import bulk_modulus, holding_demand, pilot_share, volumes
from ...kernels.hydraulics.records import (
    AXIS,
    CYLINDER,
    FLUID,
    FORCE,
    HOLDING_A,
    HOLDING_B,
    PRESSURE_A,
    PRESSURE_B,
    SUPPLY,
    VALVE,
)
from ...model.errors import StateError
from ...model.parameters.hydraulics import EFFORT, LUGRE, Hydraulics
from ..analysis.derivatives import generalized_forces_derivatives
from ..arguments import vector
from ..results.result import Axis, Result
from .checks import check_hydraulics, friction_of

if TYPE_CHECKING:
    from ..manipulator import Manipulator

UNLIMITED_FLOW = 1.0                # m^3/s of a load-sensing pump without `max_flow`
CHAMBER_B_PRESSURE_SHARE = 0.25     # of the supply's pressure in chamber B at rest, where the load allows it


def oil_factors(oil, temperature=None, reference=None):
    """Return (viscosity, bulk modulus) at a temperature against those at `reference` [deg C].

    oil: `Oil`.  None: its own temperature, for which `hydraulic_records` makes its records.
    """
    change = ((oil.temperature if temperature is None else temperature)
              - (oil.temperature if reference is None else reference))
    return math.exp(-oil.viscosity_coefficient * change), math.exp(-oil.bulk_coefficient * change)


def hydraulic_records(manipulator, hydraulics):
    """Return (axes (actuators,), cylinders (cylinders,), supply (1,)), records of `kernels/hydraulics/records.py`.

    Axes are in the order of the actuators, and so are cylinders.  Valves are neutral, efforts zero, brakes released.
    Raises what `check_hydraulics` raises.
    """
    check_hydraulics(manipulator, hydraulics)
    axes = np.zeros(len(manipulator.actuators), AXIS)
    cylinders = np.zeros(len(hydraulics.cylinders), CYLINDER)
    supply = np.zeros(1, SUPPLY)
    viscosity, bulk = oil_factors(hydraulics.oil, reference=hydraulics.oil.reference_temperature)
    bulk *= hydraulics.oil.bulk_modulus
    _fill_supply(supply, hydraulics.supply, bulk)
    lower, upper = manipulator.limits.lower, manipulator.limits.upper
    row = 0
    for number, name in enumerate(manipulator.actuators):
        axis, cylinder = axes[number], hydraulics.cylinders.get(name)
        axis['cylinder'], axis['drive'], axis['lower'], axis['upper'] = -1, FORCE, lower[number], upper[number]
        _fill_axis(axis, cylinder or hydraulics.axes[name], friction_of(manipulator, hydraulics, name))
        if cylinder:
            axis['cylinder'], axis['drive'] = row, FORCE if cylinder.command_mode == EFFORT else VALVE
            axis['viscous'] *= viscosity
            low, high = cylinder.reach
            axis['lower'] = max(axis['lower'], low) if cylinder.end_stop.stiffness else -math.inf
            axis['upper'] = min(axis['upper'], high) if cylinder.end_stop.stiffness else math.inf
            _fill_cylinder(cylinders[row], number, cylinder, hydraulics.oil, bulk, viscosity)
            _fill_compensation(cylinders[row], cylinder.valve, hydraulics.supply)
            row += 1
    return axes, cylinders, supply


def _fill_supply(record, supply, bulk):
    sensing = supply.load_sensing
    limited = math.isfinite(supply.max_flow) or sensing is not None
    record['pressure'], record['return_pressure'] = supply.pressure, supply.return_pressure
    record['limited'], record['flow'] = limited, min(supply.max_flow, UNLIMITED_FLOW) if limited else 0.0
    record['droop'], record['capacity'] = supply.droop, supply.line_volume / bulk
    record['sensing'], record['sensed'] = sensing is not None, supply.return_pressure
    record['margin'], record['lag'] = (sensing.margin, sensing.time_constant) if sensing else (0.0, 1.0)


def _fill_axis(record, declared, friction):
    record['coulomb'], record['viscous'], record['slip'] = friction.coulomb, friction.viscous, friction.slip_velocity
    record['stribeck'], record['stribeck_velocity'] = friction.stribeck, friction.stribeck_velocity
    if friction.model == LUGRE:
        record['bristle'] = (friction.coulomb + friction.stribeck) / friction.presliding
        record['bristle_damping'] = friction.bristle_damping
    record['stop_stiffness'], record['stop_damping'] = declared.end_stop.stiffness, declared.end_stop.damping
    if not declared.end_stop.stiffness:
        record['lower'], record['upper'] = -math.inf, math.inf
    if declared.brake:
        record['brake_stiffness'], record['brake_damping'] = declared.brake.stiffness, declared.brake.damping


def _fill_cylinder(record, axis, cylinder, oil, bulk, viscosity):
    count, valve, relief = cylinder.count, cylinder.valve, cylinder.relief
    low, high = cylinder.reach
    record['axis'], record['motor'] = axis, math.isinf(high)
    if not record['motor']:
        record['start'], record['stroke'] = low, high - low
    record['area_a'], record['area_b'] = cylinder.area_a, cylinder.area_b
    record['dead_a'], record['dead_b'] = count * cylinder.dead_volume_a, count * cylinder.dead_volume_b
    record['hose_a'], record['hose_b'] = count * cylinder.hose_volume_a, count * cylinder.hose_volume_b
    record['bulk'], record['air'], record['polytropic'] = bulk, oil.air_content, oil.polytropic_exponent
    record['wall'], record['hose'] = cylinder.wall_modulus, cylinder.hose_modulus
    record['gain'] = np.array(valve.nominal_flow) / math.sqrt(valve.nominal_pressure_drop)
    record['linear'] = valve.linear_range
    record['omega'], record['zeta'] = 2.0 * math.pi * valve.natural_frequency, valve.damping
    record['slew'] = valve.slew_limit
    record['overlap_up'], record['overlap_down'] = valve.dead_band
    record['jump'] = valve.dead_band_compensation
    record['leak'], record['drain'] = count * cylinder.leakage / viscosity, count * cylinder.case_leakage / viscosity
    record['relief'], record['relief_gain'] = (relief.pressure, relief.gain) if relief else (math.inf, 0.0)
    record['suction'] = cylinder.anti_cavitation
    # absent valves and cushions get 1, so that no formula divides by zero
    for field in ('holding_range', 'holding_time', 'holding_gain', 'cushion_gain'):
        record[field] = 1.0
    if cylinder.load_holding:
        holding = cylinder.load_holding
        record['holding'] = holding.ports in ('a', 'both'), holding.ports in ('b', 'both')
        record['holding_setting'], record['holding_ratio'] = holding.setting, holding.pilot_ratio
        record['holding_range'], record['holding_time'] = holding.range, holding.time_constant
        record['holding_gain'] = holding.gain
    if cylinder.cushion:
        record['cushion_a'] = cylinder.cushion.length_a / cylinder.lever
        record['cushion_b'] = cylinder.cushion.length_b / cylinder.lever
        record['cushion_gain'] = cylinder.cushion.gain


def _fill_compensation(record, valve, supply):
    sensing = supply.load_sensing
    record['compensated'], record['sharing'] = valve.compensated, valve.flow_sharing
    record['margin'] = sensing.margin if valve.flow_sharing else valve.compensator_margin
    record['check'], record['sensed'] = sensing is not None, supply.return_pressure
    record['regenerative'] = valve.regenerative


def resting_line(supply):
    """Return the pressure [Pa] of the line of a SUPPLY record while all valves are shut."""
    standby = supply['return_pressure'] + supply['margin'] if supply['sensing'] else supply['pressure']
    return float(min(standby, supply['pressure']))


def pump_areas(cylinders):
    """Return (2, cylinders) oil that CYLINDER records take from the supply per unit of travel, out and in."""
    back = np.where(cylinders['regenerative'] != 0, cylinders['area_b'], 0.0)
    return np.array([cylinders['area_a'] - back, cylinders['area_b']])


def metering_margin(cylinder, supply):
    """Return the most [Pa] that the metering edges of a CYLINDER record see under the highest load; inf: no limit."""
    margins = [cylinder['margin']] if cylinder['compensated'] or cylinder['sharing'] else []
    if supply['sensing']:
        margins.append(supply['margin'])
    return float(min(margins, default=math.inf))


def frictionless(manipulator: Manipulator, hydraulics: Hydraulics | None = None) -> Manipulator:
    """Return a new Manipulator without friction on the joints that `hydraulics` moves: theirs is in the records.

    Pins and other joints keep theirs.  hydraulics None: on all actuators.
    """
    description = manipulator.machine.description
    joints = dict(description.joints)
    for name in manipulator.actuators if hydraulics is None else (*hydraulics.cylinders, *hydraulics.axes):
        joints[name] = replace(joints[name], damping=0.0, friction=0.0)
    return manipulator.rebuilt(replace(description, joints=joints))


def equilibrium_state(manipulator, hydraulics, axes, cylinders, supply, x, *, base=None, wrenches=None):
    """Return (fluid (cylinders, FLUID), bristles (actuators,), supply pressure (1,)) at which the machine stands still.

    Chamber B has a quarter of the pressure difference of the supply, or the nearest to it with which chamber A, by the
    balance of forces, is between return and supply pressure, or as much less as closes its load-holding valves.  Spools
    are neutral, bristles relaxed: friction carries nothing.  A stop that is touched carries its part.  What a braked
    cylinder cannot carry, and all of the load of another braked axis, is written into `axes` as the force and position
    of its brake.
    base, wrenches: as `forward_dynamics`.  Raises StateError where a load cannot be held.
    """
    x = vector('x', x, manipulator.nx)
    position = actuator_positions(manipulator, x)
    needed = holding_efforts(manipulator, x, base, wrenches) - _stops(axes, position)
    fluid, bristles = np.zeros((len(cylinders), FLUID)), np.zeros(len(axes))
    high, low = float(supply['pressure'][0]), float(supply['return_pressure'][0])
    held = np.zeros(len(axes))
    for row, cylinder in enumerate(cylinders):
        number = cylinder['axis']
        name, declared = manipulator.actuators[number], hydraulics.cylinders[manipulator.actuators[number]]
        area_a, area_b = cylinder['area_a'], cylinder['area_b']
        (start, end), unit, effort = declared.reach, declared.unit, declared.effort_unit
        if not start <= position[number] <= end:
            raise StateError(f"'{name}' = {position[number]:.6g} {unit} is not within its stroke, {start:g} to {end:g} "
                             f'{unit}')
        pull, push = low * area_a - high * area_b, high * area_a - low * area_b
        force = min(max(needed[number], pull), push) if axes['braked'][number] else needed[number]
        if not pull <= force <= push:
            raise StateError(f'{declared.where}: the load at {name} = {position[number]:.6g} {unit} needs {force:.6g} '
                             f'{effort}; the {declared.kind} gives {pull:.6g} to {push:.6g} {effort} between {low:g} '
                             f'and {high:g} Pa')
        b = max(min(low + CHAMBER_B_PRESSURE_SHARE * (high - low), _closing_pressure(cylinder, force, low)), low)
        # such that low <= (force + b area_b) / area_a <= high
        b = min(max(b, (low * area_a - force) / area_b), (high * area_a - force) / area_b)
        a = (force + b * area_b) / area_a
        fluid[row, PRESSURE_A], fluid[row, PRESSURE_B] = a, b
        if cylinder['holding'][0]:
            fluid[row, HOLDING_A] = holding_demand(cylinder, 0, a, b, low, pilot_share(cylinder, 0, 0.0))[0]
        if cylinder['holding'][1]:
            fluid[row, HOLDING_B] = holding_demand(cylinder, 1, b, a, low, pilot_share(cylinder, 1, 0.0))[0]
        held[number] = force
    braked = axes['braked'] != 0
    axes['brake_position'][braked] = position[braked]
    axes['brake_force'][braked] = (needed - held)[braked]
    return fluid, bristles, np.array([resting_line(supply[0])])


def _closing_pressure(cylinder, force, low):
    """Return the pressure of chamber B up to which the load-holding valves of a cylinder under `force` are closed."""
    lowest = math.inf
    for port in (0, 1):
        if cylinder['holding'][port]:
            share = pilot_share(cylinder, port, 0.0)
            # load and pilot pressure for pressure b in chamber B, which are constant + slope b
            opening = [pressures[port] + cylinder['holding_ratio'] * (low + share * (pressures[1 - port] - low))
                       for pressures in ((force / cylinder['area_a'], 0.0),
                                         ((force + 1e6 * cylinder['area_b']) / cylinder['area_a'], 1e6))]
            slope = (opening[1] - opening[0]) / 1e6
            lowest = min(lowest, (cylinder['holding_setting'] - opening[0]) / slope)
    return lowest


def actuator_positions(manipulator, x):
    """Return the positions (actuators,) of the actuators [m, rad]."""
    names, position = manipulator.joint_state(x)[:2]
    return position[[names.index(name) for name in manipulator.actuators]]


def holding_efforts(manipulator, x, base=None, wrenches=None):
    """Return the efforts (actuators,) that hold the machine at rest: of least norm where many do.

    Coordinates that no actuator drives are not held.
    """
    rest = np.zeros(manipulator.dof)
    if len(manipulator.actuators) >= len(manipulator.coordinates):
        return manipulator.inverse_dynamics(x, rest, rest, base=base, wrenches=wrenches)
    needed = manipulator.generalized_forces(x, rest, rest, base=base, wrenches=wrenches)
    joints = slice(manipulator.dof - len(manipulator.coordinates), None)
    return np.linalg.lstsq(manipulator.actuator_map(x)[:, joints].T, needed[joints], rcond=None)[0]


def _stops(axes, position):
    """Return the forces (actuators,) of the end stops at rest."""
    depth = np.maximum(axes['lower'] - position, 0.0) - np.maximum(position - axes['upper'], 0.0)
    return axes['stop_stiffness'] * depth


@dataclass(frozen=True, repr=False, eq=False)
class NaturalModes(Result):
    """Small motions of the machine on its oil."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'stiffness': ('f',)}
    UNITS: ClassVar[Mapping[str, str]] = {'frequencies': 'Hz'}

    frequencies: np.ndarray
    """(n,) [Hz], the lowest first; negative where the machine falls away instead."""
    modes: np.ndarray
    """(dof, n) rates of the coordinates in each, of unit kinetic energy."""
    stiffness: np.ndarray
    """(actuators,) [N/m, N m/rad] of oil and brakes; infinite where an axis is locked."""


def natural_modes(manipulator, hydraulics, records, x, *, fluid=None, geometric=True, mass=None):
    """Return the `NaturalModes` at rest at x with closed valves: the generalised eigenproblem of stiffness and mass.

    records: of `hydraulic_records`.  fluid: its pressures matter where there is air in the oil; by default those of
    static equilibrium.  geometric: with the change of gravity and of levers under the forces that hold the machine.
    mass (dof, dof): inertia of the coordinates, by default the mass matrix at x.  Friction, leakage and end stops are
    left out.
    An axis that neither oil nor an engaged brake holds is locked.
    """
    x = vector('x', x, manipulator.nx)
    axes, cylinders, supply = records
    if fluid is None:
        fluid = equilibrium_state(manipulator, hydraulics, axes.copy(), cylinders, supply, x)[0]
    position = actuator_positions(manipulator, x)
    stiffness = np.where(axes['braked'] != 0, axes['brake_stiffness'], 0.0)
    for cylinder, pressures in zip(cylinders, fluid):
        stiffness[cylinder['axis']] += oil_stiffness(cylinder, position[cylinder['axis']], pressures[PRESSURE_A],
                                                     pressures[PRESSURE_B])
    A, locked = manipulator.actuator_map(x), stiffness == 0.0
    K = A.T @ (stiffness[:, None] * A)
    if geometric:
        rest = np.zeros(manipulator.dof)
        forces = dict(zip(manipulator.actuators, holding_efforts(manipulator, x)))
        slopes = generalized_forces_derivatives(manipulator, x, rest, rest, joint_efforts=forces).df_dx
        K += 0.5 * (slopes + slopes.T)
    free = _null_space(A[locked])
    root = np.linalg.cholesky(free.T @ (manipulator.mass_matrix(x) if mass is None else mass) @ free)
    half = np.linalg.solve(root, free.T @ K @ free)
    squares, modes = np.linalg.eigh(np.linalg.solve(root, half.T))
    stiffness[locked] = math.inf
    return NaturalModes(np.copysign(np.sqrt(np.abs(squares)), squares) / (2.0 * math.pi),
                        free @ np.linalg.solve(root.T, modes), stiffness, axes=_axes_of_modes(manipulator))


def _axes_of_modes(manipulator):
    return {'f': Axis(manipulator.actuators, tuple('N/m' if unit == 'N' else 'N m/rad'
                                                   for unit in manipulator.axes['f'].units))}


def _null_space(A):
    """Return an orthonormal basis (n, free) of the rates that leave A (rows, n) at rest."""
    if not len(A):
        return np.eye(A.shape[1])
    _, sizes, rows = np.linalg.svd(A)
    return rows[int((sizes > 1e-12 * sizes[0]).sum()):].T


def oil_stiffness(cylinder, stroke, pressure_a=0.0, pressure_b=0.0):
    """Return the stiffness [N/m, N m/rad] of a CYLINDER record, ports closed: K_a A_a^2 / V_a + K_b A_b^2 / V_b.

    Pressures [Pa] matter where there is air in the oil.
    """
    total = 0.0
    for (area, volume, hose), pressure in zip(_chambers(cylinder, stroke), (pressure_a, pressure_b)):
        total += area ** 2 / (volume * _softness(cylinder, pressure) + _hose_excess(cylinder, hose))
    return float(total)


def _chambers(cylinder, stroke):
    """Return ((area, volume, volume of the hose) of chamber A, of chamber B)."""
    c, (volume_a, volume_b) = cylinder, volumes(cylinder, stroke)
    return (c['area_a'], volume_a, c['hose_a']), (c['area_b'], volume_b, c['hose_b'])


def _softness(cylinder, pressure):
    """Return the compressibility [1/Pa] of oil, its air and the cylinder's wall; as `equations.py` has it."""
    return 1.0 / float(bulk_modulus(cylinder, pressure, 1.0, 0.0))


def _hose_excess(cylinder, hose):
    """Return by how much [m^3/Pa] a hose gives more than so much of the cylinder's wall."""
    return hose / cylinder['hose'] - hose / cylinder['wall']
