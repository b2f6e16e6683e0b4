"""PID on valves with velocity feedforward and dead-band compensation: what a good engineer does without a model.

The feedforward divides by the speed that the open valve gives under the load of the initial position, in each
direction; neither pressures nor the dynamics of the machine are looked at.
"""

import numpy as np

from ...api.hydraulics.statics import metering_margin
from ...kernels.control.valve_control import PID, PRESSURE, rod_speeds
from ...kernels.hydraulics.records import AT, BT, PA, PB
from .gains import check_gains, rejection
from .valve_gains import PidGains, force_bounds, pid_bandwidth, pid_derivative, pid_gains
from .valve_law import ValveLaw

LEAST_SPEED = 1e-3      # m/s, of a cylinder that its load overwhelms


class ValvePid(ValveLaw):
    """PID on valves; arguments as `ValveLaw`, bandwidth that of the position loop of every axis."""

    Gains = PidGains
    opens_by_speed = True

    def __init__(self, manipulator, hydraulics, period, **options):
        super().__init__(manipulator, hydraulics, period, **options)
        self._options[PID] = 1
        self._law['speed_out'], self._law['speed_in'] = self._open_speeds()

    def _default_gains(self, bandwidth, effort_bandwidth):
        axes = self._inertia, self._modes(), self._loop_lag
        bandwidth = pid_bandwidth(*axes) if bandwidth is None else bandwidth
        return pid_gains(self._law['interface'], bandwidth, pid_derivative(*axes), effort_bandwidth)

    def set_gains(self, gains):
        """Go over to these `PidGains` on a ramp; raises ModelError where they cannot be."""
        check_gains(gains, len(self._law))
        self.gains = gains
        self._use_gains({
            'flow_stiffness': gains.proportional, 'flow_integral': gains.integral,
            'flow_decoupling': -gains.derivative, 'integral': gains.force_integral,
            **{name: getattr(gains, name) for name in ('stiffness', 'damping', 'error_filter', 'blend')}})

    def gains_rejection(self, gains):
        """As `ControlLaw.gains_rejection`: within what lag and mode leave, see `StableLimits` and `force_bounds`."""
        by_flow = self._law['interface'] > PRESSURE
        none = np.zeros(len(by_flow))
        return rejection(self.manipulator.actuators, gains, self.gains, [
            ('proportional', by_flow, none, self._stable.position),
            ('integral', by_flow, none, gains.proportional**2),
            *force_bounds(('stiffness', 'damping', 'force_integral'), gains.stiffness, gains.damping,
                          gains.error_filter, self._force_lag, ~by_flow)])

    def rod_speeds(self, command):
        """As `ControlLaw.rod_speeds`."""
        return self._by_valves(command, False)

    def openings(self, speeds):
        """As `ControlLaw.openings`."""
        return self._by_valves(speeds, True)

    def _by_valves(self, given, inverse):
        found = np.empty(len(self._law))
        rod_speeds(self._buffer, given, inverse, found)
        return found

    def _open_speeds(self):
        """(2, actuators) m/s out and in that fully open valves give under the load at the initial position."""
        speed = np.ones((2, len(self._law)))
        load = self.load.holding_efforts(self.manipulator.initial_position)
        high, low = float(self.supply['pressure'][0]), float(self.supply['return_pressure'][0])
        for c in self.cylinders:
            i, a, b, gain = c['axis'], c['area_a'], c['area_b'], c['gain']
            margin = metering_margin(c, self.supply[0])
            for row, feed, fed, drained, other, force in ((0, PA, a, b, BT, load[i]), (1, PB, b, a, AT, -load[i])):
                # pressure drops (area v / gain)^2 at both edges leave this force
                against = low * drained
                if c['regenerative'] and row == 0:
                    fed, against = fed - drained, 0.0
                taken = fed**3 / gain[feed]**2 + drained**3 / gain[other]**2
                square = (high * fed - against - force) / taken
                most = np.sqrt(margin) * gain[feed] / fed
                speed[row, i] = max(min(np.sqrt(max(square, 0.0)), most), LEAST_SPEED)
        return speed
