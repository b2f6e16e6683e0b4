"""Faults of a hydraulic machine itself: what is broken, worn, warm or other than its model says."""

import math

import numpy as np

from ..api.hydraulics.statics import oil_factors
from ..model.errors import ModelError, did_you_mean

# quantity -> (lowest, highest) value
CYLINDER_FAULTS = {'spool_stuck': (0.0, 1.0), 'spool_slow': (0.01, 1.0), 'spool_offset': (-1.0, 1.0),
                   'leakage': (0.0, 1e-8)}
OTHER_FAULTS = {'supply': {'pressure': (0.0, 2.0), 'flow': (0.0, 2.0), 'margin': (0.0, 2.0)},
                'oil': {'temperature': (-40.0, 120.0)},
                'model': {'inertia': (0.1, 10.0), 'areas': (0.5, 2.0), 'valves': (0.1, 10.0), 'friction': (0.0, 10.0)}}
MAX_PAYLOAD = 1e5       # kg
STEEL = 7850.0          # kg/m^3


class Disturbances:
    """What is different from the machine as it was declared; any number at a time, each undone by `clear`.

        cylinder  spool_stuck    1: the spool stays where it is
                  spool_slow     factor on its natural frequency and slew limit
                  spool_offset   of its zero, share of its travel
                  leakage        m^3/(s Pa) more across the piston
        supply    pressure, flow, margin (of load sensing) factors
        oil       temperature    deg C: viscosity scales leakage and viscous friction, and the bulk modulus changes
        payload   <link>         (mass kg, x, y, z m): a ball of steel there, in link axes
        model     inertia, areas, valves, friction    factors on the whole machine
    """

    def __init__(self, plant):
        self._plant = plant
        self._values = {}           # (target, quantity) -> value
        self._axes, self._cylinders, self._supply = (
            records.copy() for records in (plant.axes, plant.cylinder_records, plant.supply))

    def set(self, target, quantity, value):
        """Let one begin, or change its value; ModelError where there is none such, or the value makes no sense."""
        self._check(target, quantity, value)
        self._values[target, quantity] = value
        self._apply(target)

    def clear(self, target, quantity):
        """Let one end."""
        if self._values.pop((target, quantity), None) is not None:
            self._apply(target)

    def as_list(self):
        """[target, quantity, value] of each."""
        return [[*key, value] for key, value in self._values.items()]

    def restore(self, entries):
        """Have these, and no others."""
        self._values = {(target, quantity): value for target, quantity, value in entries}
        self._apply('payload')

    def _check(self, target, quantity, value):
        targets = {**dict.fromkeys(self._plant.cylinders, CYLINDER_FAULTS), **OTHER_FAULTS,
                   'payload': dict.fromkeys(self._plant.manipulator.links, (0.0, MAX_PAYLOAD))}
        if target not in targets:
            raise ModelError(f"fault of '{target}': nothing of that name{did_you_mean(str(target), targets)}")
        if quantity not in targets[target]:
            raise ModelError(f"fault '{quantity}' of '{target}': none such"
                             f'{did_you_mean(str(quantity), targets[target])}')
        if (target, quantity) == ('supply', 'margin') and not self._supply['sensing'][0]:
            raise ModelError("fault 'margin' of 'supply': it has no load sensing")
        low, high = targets[target][quantity]
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
        if numbers.shape != ((4,) if target == 'payload' else (1,)) or not np.isfinite(numbers).all():
            raise ModelError(f"fault '{quantity}' of '{target}' is {value!r:.80}; expected "
                             + ('mass, x, y, z' if target == 'payload' else 'a number'))
        if not low <= numbers[0] <= high:
            raise ModelError(f"fault '{quantity}' of '{target}' is {numbers[0]:g}; expected {low:g} to {high:g}")

    def _factor(self, target, quantity):
        return float(self._values.get((target, quantity), 1.0))

    def _apply(self, changed):
        plant = self._plant
        viscosity, bulk = oil_factors(plant.hydraulics.oil, self._values.get(('oil', 'temperature')))
        friction, areas, valves = (self._factor('model', what) for what in ('friction', 'areas', 'valves'))
        axes, cylinders, supply = plant.axes, plant.cylinder_records, plant.supply
        for field in ('coulomb', 'stribeck', 'bristle', 'bristle_damping'):
            axes[field] = friction * self._axes[field]
        oiled = self._axes['cylinder'] >= 0
        axes['viscous'] = friction * self._axes['viscous'] * np.where(oiled, viscosity, 1.0)
        for field in ('area_a', 'area_b'):
            cylinders[field] = areas * self._cylinders[field]
        cylinders['gain'] = valves * self._cylinders['gain']
        cylinders['bulk'] = bulk * self._cylinders['bulk']
        for row, name in enumerate(plant.cylinders):
            slow = self._factor(name, 'spool_slow')
            cylinders['omega'][row] = slow * self._cylinders['omega'][row]
            cylinders['slew'][row] = slow * self._cylinders['slew'][row]
            cylinders['stuck'][row] = self._values.get((name, 'spool_stuck'), 0) >= 0.5
            cylinders['offset'][row] = self._values.get((name, 'spool_offset'), 0.0)
            cylinders['leak'][row] = (self._cylinders['leak'][row] / viscosity
                                      + self._values.get((name, 'leakage'), 0.0))
        supply['pressure'] = self._factor('supply', 'pressure') * self._supply['pressure']
        supply['flow'] = self._factor('supply', 'flow') * self._supply['flow']
        supply['margin'] = self._factor('supply', 'margin') * self._supply['margin']
        if changed in ('payload', 'model'):
            self._load()

    def _load(self):
        """Give the plant a mechanism with these payloads and inertias."""
        manipulator = self._plant.manipulator
        for (target, link), value in self._values.items():
            if target == 'payload':
                mass, *com = value
                radius = (3.0 * mass / (4.0 * math.pi * STEEL)) ** (1.0 / 3.0)
                manipulator = manipulator.with_payload(link, mass, com, 0.4 * mass * radius**2 * np.eye(3))
        self._plant.carry(manipulator, self._factor('model', 'inertia'))
