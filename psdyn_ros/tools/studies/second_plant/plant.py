"""The second plant: commands in, motion and measurements out, in simulated time."""

import math
from typing import NamedTuple

import numpy as np
from scipy.integrate import odeint

from ....model.errors import ModelError, ShapeError, StateError
from ....model.mechanism.urdf import read
from ....model.parameters.hydraulics import Hydraulics, read_hydraulics
from .fluid import AXIS, CYLINDER, SUPPLY, rates
from .mechanism import TriangleTree, equations_of_motion
from .sensors import PERFECT, Readings

RELATIVE, POSITION, RATE, DEFLECTION, PRESSURE_PA, SPOOL = 1e-6, 1e-9, 1e-7, 1e-10, 10.0, 1e-7   # tolerances
MAX_STEPS = 5000                        # of the integrator in one period
BRISTLE_TIME_S = 1e-3                   # damping over stiffness of a bristle
STRIBECK_VELOCITY = 5e-3                # m/s, rad/s
STOP_STIFFNESS, STOP_DAMPING = 5e7, 5e5     # N/m, N s/m
BRAKE_STIFFNESS, BRAKE_DAMPING = 2e7, 4e5   # of machines without hydraulics
PUMP_LAG_S = 0.03
CHAMBER_B_SHARE = 0.25                  # of the pressure difference in chamber B at rest


class Deviations(NamedTuple):
    """How a plant differs from what its hydraulics say; None: as they say."""

    stiction: dict = None
    """{actuator: N or N m} above Coulomb friction at rest."""
    presliding: float = None
    """m or rad, deflection of the bristles at the Coulomb level."""
    pump_flow: float = None
    """m^3/s at most."""


class SecondPlant:
    """A machine of cylinder triangles and serial joints on valves, or on efforts without hydraulics.

    urdf        path or text
    hydraulics  path, text or `Hydraulics`; commands to its axes are efforts [N, N m] of actuators with friction; None:
                efforts of all actuators, without friction
    actuators   names in the order of commands and of x; None: those commanded in the URDF
    position    {actuator: m or rad} to start at rest; those left out at the initial values of the URDF
    sensors     `Sensors`
    ttl         s after which a command is no longer obeyed
    deviations  fields of `Deviations`

    `x`, `xd` (dof,) strokes and joint positions with their rates, `pressures` (cylinders, 2) [Pa gauge], `spool`
    (cylinders,), `supply` [Pa], `time` [s] and `energy` [J] are the true values.
    Raises ModelError for machines and hydraulics that it does not model.
    """

    def __init__(self, urdf, hydraulics=None, *, actuators=None, position=None, sensors=PERFECT, ttl=0.02,
                 **deviations):
        description = read(urdf)
        commanded = [name for name, one in description.interfaces.items() if one.commanded]
        self.actuators = tuple(actuators or commanded)
        self.tree = TriangleTree(description, self.actuators)
        declared = hydraulics is None or isinstance(hydraulics, Hydraulics)
        self.hydraulics = hydraulics if declared else read_hydraulics(hydraulics, self.actuators)
        self.ttl, self._sensors = ttl, sensors
        cylinders = self.hydraulics.cylinders if self.hydraulics else {}
        self.cylinders = tuple(cylinders)
        self._rows = [self.actuators.index(name) for name in self.cylinders]
        start = {name: description.interfaces[name].initial or 0.0 for name in self.actuators}
        self._start = self.tree.coordinates([{**start, **(position or {})}[name] for name in self.actuators])
        self.axes = np.zeros(len(self.actuators), AXIS)
        self.cylinder_records = np.zeros(len(cylinders), CYLINDER)
        self._supply = np.zeros(1, SUPPLY)
        self._fill(Deviations(**deviations))
        self._bounds = np.array([1.0 if name in cylinders else limit for name, limit in
                                 zip(self.actuators, self.tree.effort_limits)])
        n, count = len(self.actuators), len(cylinders)
        self._tolerances = np.array([*n * [POSITION], *n * [RATE], *n * [DEFLECTION],
                                     *count * [PRESSURE_PA, PRESSURE_PA, SPOOL, SPOOL], PRESSURE_PA, SPOOL])
        self.reset()

    # parameters

    def _fill(self, deviations):
        stiction = deviations.stiction or {}
        for name in stiction:
            if name not in self.actuators:
                raise ModelError(f"second plant: stiction of '{name}'; expected one of {', '.join(self.actuators)}")
        axes, hydraulics = self.axes, self.hydraulics
        axes['lower'], axes['upper'] = self.tree.stroke_limits.T
        axes['stop_stiffness'], axes['stop_damping'] = STOP_STIFFNESS, STOP_DAMPING
        axes['brake_stiffness'], axes['brake_damping'] = BRAKE_STIFFNESS, BRAKE_DAMPING
        axes['stribeck_velocity'] = STRIBECK_VELOCITY
        supply = self._supply
        supply['flow'] = math.inf
        if hydraulics is None:
            return
        _refuse(hydraulics)
        declared = hydraulics.supply
        flow = declared.max_flow if deviations.pump_flow is None else deviations.pump_flow
        supply[0] = (declared.pressure, declared.return_pressure, flow, declared.droop, declared.line_volume,
                     hydraulics.oil.bulk_modulus, PUMP_LAG_S)
        for i, name in enumerate(self.actuators):
            one = hydraulics.cylinders.get(name) or hydraulics.axes[name]
            axis = axes[i]
            if one.brake:
                axis['brake_stiffness'], axis['brake_damping'] = one.brake.stiffness, one.brake.damping
            if one.friction:
                axis['coulomb'], axis['viscous'] = one.friction.coulomb, one.friction.viscous
                axis['stiction'] = one.friction.stribeck
                axis['bristle'] = axis['coulomb'] / (deviations.presliding or one.friction.presliding)
            axis['stiction'] += stiction.get(name, 0.0)
            axis['bristle_damping'] = BRISTLE_TIME_S * axis['bristle']
        for row, name in enumerate(self.cylinders):
            self._fill_cylinder(self.cylinder_records[row], hydraulics.cylinders[name], self.actuators.index(name))

    def _fill_cylinder(self, record, one, axis):
        valve, count = one.valve, one.count
        record['axis'] = axis
        record['gain'] = np.array(valve.nominal_flow) / math.sqrt(valve.nominal_pressure_drop)
        low, high = one.reach
        record['area_a'], record['area_b'], record['stroke'] = one.area_a, one.area_b, high
        # chamber A at position zero of the joint
        record['dead_a'], record['dead_b'] = count * one.dead_volume_a - one.area_a * low, count * one.dead_volume_b
        record['transition'] = valve.linear_range
        record['overlap_up'], record['overlap_down'] = valve.dead_band
        record['lag'] = valve.damping / (2.0 * math.pi * valve.natural_frequency)
        record['slew'], record['leakage'] = valve.slew_limit, count * one.leakage
        record['relief'] = one.relief.pressure if one.relief else math.inf
        record['relief_gain'] = one.relief.gain if one.relief else 0.0
        record['suction'], record['bulk'] = one.anti_cavitation, self.hydraulics.oil.bulk_modulus

    # state

    def reset(self):
        """Go back to the start: static equilibrium, every actuator at its safe output."""
        n, count = len(self.actuators), len(self.cylinders)
        self.steps, self.time = 0, 0.0
        self._state = np.zeros(3 * n + 4 * count + 2)
        self._state[:n] = self._start
        self._given = np.full(n, -math.inf)     # s, of the last command of each
        self.safe = np.ones(n, dtype=bool)
        self.command = np.zeros(n)
        hold, x = self.holding_efforts(), self.x
        supply = self._supply[0]
        self.axes['effort'], self.axes['braked'], self.cylinder_records['command'] = 0.0, 0.0, 0.0
        for i in range(n):
            self._engage(i, hold[i], x[i])
        for row, record in enumerate(self.cylinder_records):
            low = supply['return_pressure']
            b = low + CHAMBER_B_SHARE * (supply['pressure'] - low)
            a = (hold[record['axis']] + b * record['area_b']) / record['area_a']
            if a < low:
                a, b = low, (low * record['area_a'] - hold[record['axis']]) / record['area_b']
            if max(a, b) > supply['pressure']:
                raise StateError(f"second plant: '{self.cylinders[row]}' needs {max(a, b):.4g} Pa at its start; the "
                                 f"supply has {supply['pressure']:.4g} Pa")
            at = 3 * n + 4 * row
            self._state[at], self._state[at + 1] = a, b
        self._state[-2] = supply['pressure']
        self._readings = Readings(self._sensors, self.tree.joints['slides'][[
            self.tree.names.index(self._coordinate(name)) for name in self.actuators]])
        self._observe()

    def _coordinate(self, name):
        """Return the joint whose position is the coordinate of an actuator."""
        row = self.tree.names.index(name)
        booms = {int(t['rod']): int(t['boom']) for t in self.tree.triangles}
        return self.tree.names[booms.get(row, row)]

    def _engage(self, i, force, position):
        """Set the safe output of an actuator: a closed valve, or the brake."""
        self.safe[i] = True
        axis = self.axes[i]
        axis['effort'] = 0.0
        if self.actuators[i] in self.cylinders:
            self.cylinder_records['command'][self.cylinders.index(self.actuators[i])] = 0.0
        elif not axis['braked']:
            axis['braked'], axis['brake_force'], axis['brake_position'] = 1.0, force, position

    def _motion(self):
        n = len(self.actuators)
        return self._state[:n], self._state[n:2 * n]

    @property
    def x(self):
        """(dof,) positions of the actuators [m, rad]."""
        return self.tree.strokes(self._motion()[0])[0]

    @property
    def xd(self):
        """(dof,) their rates [m/s, rad/s]."""
        y, yd = self._motion()
        return self.tree.strokes(y)[1] * yd

    @property
    def pressures(self):
        """(cylinders, 2) of chambers A and B [Pa gauge]."""
        return self._fluid()[:, :2].copy()

    @property
    def spool(self):
        """(cylinders,) -1 to 1."""
        return self._fluid()[:, 3].copy()

    @property
    def supply(self):
        """Pressure of the pump line [Pa]."""
        return float(self._state[-2])

    @property
    def energy(self):
        """Kinetic and potential energy [J] of the mechanism."""
        y, yd = self._motion()
        M, _, potential, _, _ = equations_of_motion(self.tree.joints, self.tree.triangles, y, yd)
        return float(0.5 * yd @ M @ yd + potential)

    def _fluid(self):
        n = len(self.actuators)
        return self._state[3 * n:-2].reshape(-1, 4)

    def holding_efforts(self):
        """Return efforts (actuators,) [N, N m] that hold the machine at rest where it is."""
        y, _ = self._motion()
        _, h, _, _, G = equations_of_motion(self.tree.joints, self.tree.triangles, y, np.zeros(y.size))
        return h / G[self.tree.rows]

    # motion

    def step(self, command, dt):
        """Advance by dt [s].

        command  (actuators,): -1 to 1 of a cylinder's valve, else N or N m; NaN where there is none, None for none
        Raises ShapeError for other shapes, StateError where the motion cannot be integrated.
        """
        if command is not None:
            command = np.asarray(command, dtype=float)
            if command.shape != self.safe.shape:
                raise ShapeError(f'command {command.shape}; expected {self.safe.shape}')
            given = np.isfinite(command)
            self.command = np.where(given, np.clip(command, -self._bounds, self._bounds), self.command)
            self._given[given] = self.time
        fresh = self.time - self._given <= self.ttl + 1e-9
        if (fresh == self.safe).any():
            x, hold = self.x, self.holding_efforts()
            for i in np.flatnonzero(~fresh & ~self.safe):
                self._engage(i, hold[i], x[i])
            self.safe[fresh] = False
            self.axes['braked'][fresh] = 0.0
        self.axes['effort'] = np.where(fresh, self.command, 0.0)
        for row, i in enumerate(self._rows):
            self.axes['effort'][i] = 0.0
            self.cylinder_records['command'][row] = self.command[i] if fresh[i] else 0.0
        self._integrate(dt)
        self.steps += 1
        self.time += dt
        self._observe()

    def _integrate(self, dt):
        tree = self.tree.joints, self.tree.triangles, self.tree.rows
        try:
            found, report = odeint(rates, self._state, (0.0, dt),
                                   (tree, self.axes, self.cylinder_records, self._supply[0]), tfirst=True,
                                   rtol=RELATIVE, atol=self._tolerances, mxstep=MAX_STEPS, full_output=True)
            failure = '' if report['message'] == 'Integration successful.' else report['message']
        except np.linalg.LinAlgError as error:      # where the state is not finite
            failure = str(error)
        if failure or not np.isfinite(found[-1]).all():
            raise StateError(f'second plant: no motion beyond {self.time:.4f} s: {failure}')
        self._state = found[-1].copy()

    # measurements

    def _observe(self):
        self._readings.sample(self.time, *self._motion(), self.pressures, self.supply)

    def measure(self):
        """Return (x, xd, pressures, supply, age [s]) as the sensors give them now; pressures None without valves."""
        time, y, yd, pressures, supply = self._readings.newest(self.time)
        x, slope = self.tree.strokes(y)
        if not self.cylinders:
            pressures, supply = None, None
        return x, slope * yd, pressures, supply, self.time - time


def _refuse(hydraulics):
    """Raise ModelError where the hydraulics have what is not modelled here."""
    oil, found = hydraulics.oil, ['load sensing'] if hydraulics.supply.load_sensing else []
    if oil.air_content or oil.temperature != oil.reference_temperature:
        found.append('air or another temperature of the oil')
    for name, one in hydraulics.cylinders.items():
        parts = {'load_holding': one.load_holding, 'cushion': one.cushion, 'compensated': one.valve.compensated,
                 'regenerative': one.valve.regenerative,
                 'dead_band_compensation': one.valve.dead_band_compensation, 'brake': one.brake,
                 'hoses or walls': math.isfinite(one.hose_modulus) or math.isfinite(one.wall_modulus)}
        found += [f'{part} of {name}' for part, there in parts.items() if there]
        if one.kind == 'motor':
            found.append(f'the motor of {name}')
    if found:
        raise ModelError(f"{hydraulics.where}: the second plant does not model {', '.join(found)}")
