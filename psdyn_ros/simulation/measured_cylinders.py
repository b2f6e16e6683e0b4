"""Actuators under test: real cylinders on rigs, whose measured force moves the simulated load.

A measurement answers the load motion of some milliseconds ago, and the rod has moved on since then.  Oil is stiff, so
without more the delay tau acts as the damping -k tau, and the loop of rig and load sings.  Therefore the force is
carried on along the hydraulic stiffness k of the cylinder:  F(t) = F_measured - k (x(t) - x(t_measured)).
"""

import math
from dataclasses import dataclass

import numpy as np

from ..api.hydraulics import oil_stiffness
from ..kernels.hydraulic_records import MEASURED_FORCE, MEASURED_PRESSURE, PRESSURE_A, PRESSURE_B

HISTORY = 256           # periods of load motion that are remembered
PROBATION = 1.0         # s of good measurements after which a frozen cylinder moves again
EXCESS = 1.5            # times what pressure and area can give: what exceeds it is no measurement
SECOND = 1_000_000_000  # ns


@dataclass
class _Rig:
    came: int               # ns of the last good measurement
    good_since: int         # ns since when they have been good
    force: float = 0.0
    pressures: tuple = None
    position: float = 0.0   # of the rod at the instant that was measured
    reason: str = ''        # why it is frozen


class MeasuredCylinders:
    """Those of a `HydraulicPlant`; none until the first measurement of one comes."""

    def __init__(self, plant):
        self._plant = plant
        self._positions = np.zeros((HISTORY, len(plant.actuators)))
        self.reset()

    def reset(self):
        """Forget all of them: their models move the load again."""
        self._rigs = {}

    @property
    def frozen(self):
        """{cylinder: why}."""
        return {name: rig.reason for name, rig in self._rigs.items() if rig.reason}

    any = property(lambda self: bool(self._rigs), doc='Whether any cylinder was measured since the start.')

    def drives(self, axis):
        """Whether a real cylinder moves this axis, or is frozen."""
        return self.any and self._plant.actuators[axis] in self._rigs

    def take(self, name, force, pressures, now, stamp):
        """Keep a measurement; an absurd one freezes the cylinder."""
        plant = self._plant
        rig = self._rigs.setdefault(name, _Rig(came=now, good_since=now))
        problem = self._problem(name, force, pressures)
        if problem:
            rig.good_since = now
            self._freeze(name, rig, problem)
            return
        if rig.reason and now - rig.came > round(plant.ttl * SECOND):
            rig.good_since = now
        rig.came, rig.force, rig.pressures = now, force, pressures
        age = 0 if stamp is None else max(0, round((plant.time - stamp) / plant.period))
        axis = plant.actuators.index(name)
        rig.position = (self._positions[(plant.steps - age) % HISTORY, axis] if 0 < age < min(HISTORY, plant.steps)
                        else plant.actuator_motion()[0][axis])

    def _problem(self, name, force, pressures):
        cylinder = self._plant.cylinder_records[self._plant.cylinders.index(name)]
        most = EXCESS * self._plant.supply['pressure'][0]
        if pressures is not None:
            if not all(math.isfinite(p) and -2e5 <= p <= most for p in pressures):
                return f'pressures {pressures[0]:.3g} and {pressures[1]:.3g} Pa; expected -2e5 to {most:.3g}'
        elif force is None or not math.isfinite(force):
            return f'force {force}; expected a finite number'
        elif not -most * cylinder['area_b'] <= force <= most * cylinder['area_a']:
            return f'force {force:.3g} N; expected {-most * cylinder["area_b"]:.3g} to {most * cylinder["area_a"]:.3g}'
        return ''

    def update(self, now):
        """Before a step: let measurements move their axes, and freeze what has become stale."""
        plant = self._plant
        positions = plant.actuator_motion()[0]
        self._positions[plant.steps % HISTORY] = positions
        for name, rig in self._rigs.items():
            if now - rig.came > round(plant.ttl * SECOND):
                if not rig.reason:
                    self._freeze(name, rig, f'no measurement for {(now - rig.came) * 1e-6:.0f} ms')
            elif rig.reason and now - rig.good_since >= PROBATION * SECOND:
                rig.reason = ''
            if not rig.reason:
                self._move(name, rig)

    def _move(self, name, rig):
        plant = self._plant
        row, axis = plant.cylinders.index(name), plant.actuators.index(name)
        cylinder, record, x = plant.cylinder_records[row], plant.axes[axis], plant.actuator_motion()[0][axis]
        force = rig.force
        record['drive'] = MEASURED_FORCE
        if rig.pressures is not None:
            a, b = rig.pressures
            plant.fluid[row, PRESSURE_A], plant.fluid[row, PRESSURE_B] = a, b
            force = 0.0         # the solver takes it from the pressures
            record['drive'] = MEASURED_PRESSURE
        # the law of a brake is that of the stiffness to be carried on along, and implicit in the solver
        record['effort'], record['braked'] = 0.0, 1
        record['brake_position'], record['brake_force'] = rig.position, force
        record['brake_stiffness'], record['brake_damping'] = oil_stiffness(cylinder, x), 0.0

    def _freeze(self, name, rig, reason):
        """Hold the rod where it is, with the force that keeps the machine at rest."""
        plant = self._plant
        if not rig.reason:
            axis = plant.actuators.index(name)
            record, declared = plant.axes[axis], plant.declared_axes[axis]
            record['drive'], record['effort'] = MEASURED_FORCE, 0.0
            record['brake_stiffness'], record['brake_damping'] = declared['brake_stiffness'], declared['brake_damping']
            plant.engage_brake(axis, plant.holding_efforts()[axis])
        rig.reason = reason
