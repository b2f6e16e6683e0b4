"""Computed torque on valves: the force that the motion needs, by the model, is followed by the force of the pistons.

What the valves must open for that is the inverse of their flow (`kernels/valve_inversion.py`). Oil makes the machine
stiff, if it is let: feedback acts on the flow as well as on the force (`kernels/valve_control.py`).
"""

from dataclasses import fields

from ..kernels import valve_control as kernels
from .valve_gains import default_bandwidth, torque_gains
from .valve_law import ValveLaw

BIAS_TIME = 0.1     # s over which the force of the pistons at rest is compared with the model


class ValveControl(ValveLaw):
    """Computed torque with valve inversion; arguments as `ValveLaw`, bandwidth w that of the force loop."""

    needs_pressures = True

    def __init__(self, manipulator, hydraulics, period, **options):
        super().__init__(manipulator, hydraulics, period, **options)
        self._bias_samples = round(BIAS_TIME / period)

    def _default_gains(self, period, bandwidth, effort_bandwidth):
        if bandwidth is None:
            bandwidth = default_bandwidth(self._modes(), self.lag + period)
        return torque_gains(self._mechanism, self.axes, bandwidth, effort_bandwidth)

    def set_gains(self, gains):
        """Use these `ValveGains` from the next update on."""
        self.gains = gains
        for field in fields(gains):
            self._law[field.name] = getattr(gains, field.name)

    @property
    def piston_forces(self):
        """(2, actuators): wanted and measured force of the pistons at the last update [N]; 0 of other axes."""
        return self._law['wanted'].copy(), self._law['force'].copy()

    def _command(self, dt, position, supply_pressure, command):
        supply = float(self.supply['pressure'][0]) if supply_pressure is None else supply_pressure
        return kernels.torque_commands(
            self.axes, self.cylinders, self.supply, supply, self._law, self._cylinder_of, dt, self._spacing,
            self._bias_samples, position, self._pressures, self._velocities(), self._force, self._limit,
            self.saturations, command)
