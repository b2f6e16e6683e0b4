"""The crane as hydraulic records, filled by hand from its data sheet, and states to start from."""
from math import pi, sqrt

import numpy as np

import psdyn_ros
from psdyn_ros.api.hydraulics.integrator import HydraulicIntegrator
from psdyn_ros.api.hydraulics.statics import frictionless, hydraulic_records
from psdyn_ros.kernels.hydraulics.records import AXIS, CYLINDER, FLUID, FORCE, QUANTITIES, SUPPLY, VALVE
from psdyn_ros.model.parameters.hydraulics import read_hydraulics

from ..machines import URDF

BAR = 1e5
# joint: bore, rod, stroke [m], dead volume [m^3], flow at 70 bar [l/min], mechanical stops [m]
CRANE = {'lift_cylinder': (0.080, 0.045, 0.59, 3e-3, 100.0, (0.0, 0.50)),
         'tilt_cylinder': (0.080, 0.045, 0.59, 4e-3, 100.0, (0.03, 0.58)),
         'telescope': (0.050, 0.030, 1.10, 5e-3, 40.0, (0.0, 1.10))}
START = (0.0, 0.20, 0.20, 0.20)
CONFIG = URDF.parent / 'config'


def plain_axes(count):
    """Axes without friction, stops or brake that give the force `effort`."""
    axes = np.zeros(count, AXIS)
    axes['cylinder'], axes['drive'] = -1, FORCE
    axes['slip'], axes['stribeck_velocity'] = 5e-3, 0.05
    axes['lower'], axes['upper'] = -np.inf, np.inf
    axes['stop_stiffness'], axes['stop_damping'] = 5e7, 1.0
    return axes


def plain_cylinder(axis, bore, rod, stroke, dead, litres):
    """A cylinder with a symmetric servo valve of `litres`/min at 70 bar an edge."""
    c = np.zeros(1, CYLINDER)[0]
    c['axis'], c['stroke'] = axis, stroke
    c['area_a'], c['area_b'] = pi / 4.0 * bore**2, pi / 4.0 * (bore**2 - rod**2)
    c['dead_a'] = c['dead_b'] = dead
    c['bulk'], c['polytropic'], c['wall'], c['hose'] = 800e6, 1.4, np.inf, np.inf
    c['gain'] = litres / 60e3 / sqrt(70.0 * BAR)
    c['linear'], c['margin'] = 2.0 * BAR, 10.0 * BAR
    c['omega'], c['zeta'], c['slew'] = 2.0 * pi * 30.0, 0.707, 100.0
    c['leak'], c['relief'], c['relief_gain'], c['suction'] = 1e-16, np.inf, 0.0, 2e-9
    c['holding_ratio'], c['holding_range'], c['holding_time'] = 4.0, 20.0 * BAR, 0.02
    c['holding_setting'], c['holding_gain'], c['cushion_gain'] = 250.0 * BAR, c['gain'][0], 0.05 * c['gain'][0]
    return c


def plain_supply():
    supply = np.zeros(1, SUPPLY)
    supply['pressure'], supply['return_pressure'] = 190.0 * BAR, 10.0 * BAR
    supply['flow'], supply['droop'], supply['capacity'] = 120.0 / 60e3, 10.0 * BAR, 2e-3 / 800e6
    return supply


class Rig:
    """A hydraulic machine, its integrator and one state."""

    def __init__(self, manipulator, axes, cylinders, supply, x, period=1e-3, substeps=2):
        self.manipulator, self.axes, self.cylinders, self.supply = manipulator, axes, cylinders, supply
        self.integrator = HydraulicIntegrator(manipulator, axes, cylinders, supply, period, substeps)
        n, m = manipulator.dof, len(manipulator.actuators)
        self.x, self.xd, self.xdd = np.array(x, dtype=float), np.zeros(n), np.zeros(n)
        self.fluid, self.bristles = np.zeros((len(cylinders), FLUID)), np.zeros(m)
        self.pressure = supply['pressure'].copy()
        self.force, self.telemetry = np.zeros(m), np.zeros((len(cylinders), len(QUANTITIES)))
        self.balance()

    state = property(lambda self: (self.x, self.xd, self.fluid, self.bristles, self.pressure))
    row = property(lambda self: self.integrator.pack(*self.state))

    def balance(self):
        """Set pressures that carry the machine at rest: a quarter of the supply in B, A from the force."""
        force = self.manipulator.gravity_forces(self.x)
        tank, pump = self.supply['return_pressure'][0], self.supply['pressure'][0]
        for c, fluid in zip(self.cylinders, self.fluid):
            i = c['axis']
            fluid[:] = 0.0
            fluid[1] = tank + 0.25 * (pump - tank)
            fluid[0] = (force[i] + fluid[1] * c['area_b']) / c['area_a']
            if fluid[0] < tank:
                fluid[0] = tank
                fluid[1] = (fluid[0] * c['area_a'] - force[i]) / c['area_b']
        for i, b in enumerate(self.axes):
            if b['cylinder'] < 0:
                b['effort'] = force[i]
        self.bristles[:] = 0.0
        self.pressure[:] = pump

    def take(self, row):
        """Set the state from one row."""
        for part, value in zip(self.state, self.integrator.unpack(row)):
            part[...] = value

    def run(self, steps, each=None):
        """Advance by a number of periods; each(k) is called before period k.  Return the rows (steps + 1, state)."""
        rows = [self.row]
        for k in range(steps):
            if each is not None:
                each(k)
            status = self.integrator.step(*self.state, self.xdd)
            if status:
                raise self.integrator.error(status, self.x)
            rows.append(self.row)
        return np.array(rows)

    def observe(self):
        """Return (xdd, force, telemetry) of the state."""
        status = self.integrator.observe(*self.state, self.xdd, self.force, self.telemetry)
        assert status == 0
        return self.xdd, self.force, self.telemetry


def crane(x=START, period=1e-3, substeps=2, change=None):
    """The HIAB XS 031 with its slew held by a stiff brake; change(rig) is called before it is balanced."""
    manipulator = frictionless(psdyn_ros.load(str(URDF / 'hiab_xs031.urdf')))
    axes = plain_axes(4)
    axes['braked'][0], axes['brake_stiffness'][0], axes['brake_damping'][0] = 1, 1e7, 1e6
    cylinders = np.zeros(3, CYLINDER)
    for k, (name, (*data, stops)) in enumerate(CRANE.items()):
        i = manipulator.actuators.index(name)
        cylinders[k] = plain_cylinder(i, *data)
        axes[i]['cylinder'], axes[i]['drive'] = k, VALVE
        axes[i]['coulomb'], axes[i]['viscous'] = 4000.0, 3000.0
        axes[i]['lower'], axes[i]['upper'] = stops
    rig = Rig(manipulator, axes, cylinders, plain_supply(), x, period, substeps)
    if change is not None:
        change(rig)
        rig.balance()
    return rig


def excavator(period=1e-3, substeps=2, change=None):
    """The excavator with its declared hydraulics, in equilibrium, its swing braked."""
    manipulator = psdyn_ros.load(URDF / 'excavator.urdf')
    hydraulics = read_hydraulics(CONFIG / 'excavator_hydraulics.yaml', manipulator.actuators)
    axes, cylinders, supply = hydraulic_records(manipulator, hydraulics)
    axes['braked'][0], axes['brake_stiffness'][0], axes['brake_damping'][0] = 1, 1e9, 1e8
    rig = Rig(manipulator, axes, cylinders, supply, manipulator.initial_position, period, substeps)
    if change is not None:
        change(rig)
        rig.balance()
    return rig
