"""Computed torque on valves: the force that the motion needs, by the model, is followed by the force of the pistons.

What the valves must open for that is the inverse of their flow (`kernels/control/valve_inversion.py`). Oil makes the
machine stiff, if it is let: feedback acts on the flow as well as on the force (`kernels/control/valve_control.py`).
"""

from dataclasses import fields, replace

import numpy as np

from ...kernels.control.valve_control import BIAS_SAMPLES, PRESSURE
from ...kernels.control.valve_control import VALVE as VALVE_INTERFACE
from .base import VALVE
from .gains import check_gains, rejection
from .passive_states import RESTING
from .valve_gains import ValveGains, default_bandwidth, force_bounds, own_modes, torque_bounds, torque_gains
from .valve_law import ValveLaw

STIFF_MODE = 3.0    # times the bandwidth, own mode from which an axis is held that stiffly against an unknown swing
BIAS_TIME = 0.1     # s over which the force of the pistons at rest is compared with the model


class ValveControl(ValveLaw):
    """Computed torque with valve inversion; arguments as `ValveLaw`, bandwidth w that of the force loop.

    Pressures are needed where a valve is commanded; velocities do without, but then have no force loop.
    """

    Gains = ValveGains

    def __init__(self, manipulator, hydraulics, period, **options):
        super().__init__(manipulator, hydraulics, period, **options)
        self._options[BIAS_SAMPLES] = round(BIAS_TIME / period)
        self.needs_pressures = VALVE in self.interfaces

    def _default_gains(self, bandwidth, effort_bandwidth):
        modes = self._modes()
        if bandwidth is None:
            bandwidth = default_bandwidth(modes, self._loop_lag)
        gains = torque_gains(self._inertia, self._law['interface'], modes, bandwidth, effort_bandwidth)
        if self.load.passive is None or self.load.passive.source != RESTING:
            return gains
        stiff = own_modes(self._inertia, modes) > STIFF_MODE * bandwidth
        return replace(gains, flow_stiffness=np.where(stiff, bandwidth, gains.flow_stiffness),
                       flow_integral=np.where(stiff, bandwidth**2, gains.flow_integral))

    def set_gains(self, gains):
        """Go over to these `ValveGains` on a ramp; raises ModelError where they cannot be."""
        check_gains(gains, len(self._law))
        self.gains = gains
        self._use_gains({field.name: getattr(gains, field.name) for field in fields(gains)})

    def gains_rejection(self, gains):
        """As `ControlLaw.gains_rejection`: within what lag and mode leave, see `torque_bounds` and `force_bounds`."""
        by_flow = self._law['interface'] > PRESSURE
        return rejection(self.manipulator.actuators, gains, self.gains, [
            *torque_bounds(gains, self._stable, by_flow),
            *force_bounds(('stiffness', 'damping', 'integral'), gains.stiffness, gains.damping, gains.error_filter,
                          self._force_lag, ~by_flow)])

    def force_residuals_at(self, x, pressures):
        """As `ControlLaw.force_residuals_at`."""
        c, residuals = self.cylinders, np.zeros(len(self._law))
        forces = c['area_a'] * pressures[:, 0] - c['area_b'] * pressures[:, 1]
        residuals[c['axis']] = forces - self.load.holding_efforts(x)[c['axis']]
        return np.where(self._law['interface'] == VALVE_INTERFACE, residuals, 0.0)
