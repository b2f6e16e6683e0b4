"""What the laws that command valves share: measured motion and pressures in, commands of valves and efforts out.

A law for cylinders acts through the flow of oil, so that it looks ahead by the lag of the valve, and acts on errors at
the time of their measurement. Axes of which effort or pressure is commanded get computed torque.
"""

import numpy as np

from ...api.results.limits import check_able
from ...kernels.control import valve_control as kernels
from ...kernels.control.valve_control import KNOWN
from ...kernels.runtime.buffer import pack, views
from ...kernels.runtime.status import NON_FINITE
from ...model.errors import ActuationError, ModelError, ShapeError
from ..monitors.actuator_motion import ActuatorMotion
from .base import EFFORT, PRESSURE, VALVE, VELOCITY, ControlLaw, GainRamp
from .computed_torque import PRESSURE_LAG
from .pump_flow import PumpFlow
from .valve_gains import default_effort_bandwidth, driven_inertia, modes_at_start, stable_limits

BEFORE, MEASURED = 1, 3         # rows of the motions, from there on, for which the model is computed
LONGEST_STEP = 2.0              # periods between two updates that count
FRESH_SAMPLES = 5               # that a bias counts for, as long as the payload of the model changes at rest
CODES = {EFFORT: kernels.EFFORT, PRESSURE: kernels.PRESSURE, VALVE: kernels.VALVE, VELOCITY: kernels.VELOCITY}
STATES = ('error', 'slow', 'error_rate', 'sum', 'resting', 'stood', 'anchor', 'side', 'jumped', 'saturated',
          'pressure_a', 'pressure_b', 'bias', 'samples')


class ValveLaw(ControlLaw):
    """The records, the errors, and the model on the reference; further arguments as `ControlLaw`.

    delay         s from a command to the valve that obeys it
    bandwidth     rad/s from which gains follow (`valve_gains`); None or 0: as far as the machine lets it go
    effort_bandwidth  rad/s of axes at force level

    Interfaces may be mixed.  But where a cylinder at force level stands beside one that oil holds, and they move one
    mass, its bandwidth must be well below the mode of the machine on its oil: to it the other is not rigid.

    `axes`, `cylinders`, `supply` are the records of the law's model: fields may be changed at any time.
    """

    needs = ('hydraulics', 'period')
    parameters = {'command_delay': 'delay', 'valve_bandwidth': 'bandwidth', 'bandwidth': 'effort_bandwidth',
                  'error_space': 'space'}

    def __init__(self, manipulator, hydraulics, period, *, delay=0.0, bandwidth=None,
                 effort_bandwidth=None, **options):
        super().__init__(manipulator, hydraulics, period, **options)
        if self.load.passive is not None:
            m = self.manipulator
            self.load.passive.on_oil(np.abs(m.actuator_map(m.initial_position).T)
                                     @ (self.axes['coulomb'] + self.axes['stribeck']))
        on_valve = np.isin(self.interfaces, (VALVE, VELOCITY))
        spools = self.cylinders[[row for row, valve in zip(self.axes['cylinder'], on_valve) if valve]]
        self.lag = float((2.0 * spools['zeta'] / spools['omega']).max(initial=0.0))     # s, of the spools
        self.delay = delay
        self._act = 0.5 * period + delay        # s until a command acts, but for the lag
        self._loop_lag = self.lag + period + delay
        self._make_buffer()
        self._force_lag = self._law['lag'] + self._act + 0.5 * period   # s, of the feedback at force level
        self.effort_gains, self.flow_gains = np.zeros((2, self.manipulator.dof)), np.zeros((2, len(self.interfaces)))
        self._last = None           # time of the last update
        self._ramp = GainRamp()
        self.kernel = kernels.valve_cycle
        self._actuators = ActuatorMotion(self.manipulator)
        self._pump = PumpFlow(self) if self.supply['limited'][0] else None
        self._mass = self.load.inertia(self.load.mechanism.initial_position)
        self._inertia = driven_inertia(self.load.mechanism, self._mass)
        modes = self._modes()
        self._stable = stable_limits(self._inertia, modes, self._loop_lag)
        standing = modes.frequencies[modes.frequencies > 0.0]
        self._swing_period = 1.0 / float(standing.min()) if on_valve.any() and standing.size else 0.0
        self.set_gains(self._default_gains(bandwidth or None,
                                           effort_bandwidth or default_effort_bandwidth(period + delay)))

    def _make_buffer(self):
        count, n = len(self.interfaces), self.manipulator.dof
        law = np.zeros(count, kernels.AXIS_LAW)
        law['interface'] = [CODES[interface] for interface in self.interfaces]
        law['area'], law['limit'] = self.area, self._limits()
        law['lag'] = np.where(np.array(self.interfaces) == PRESSURE, PRESSURE_LAG, 0.0)
        self._buffer = pack(kernels.ValveLaw(
            axes=self.axes, cylinders=self.cylinders, supply=self.supply, law=law, options=np.zeros(3, np.int64),
            coordinate=self._coordinates_of_feedback(), motion=np.zeros((4, 3, n)), needed=np.zeros(n),
            position=np.zeros((2, count)), velocity=np.zeros((3, count)), force=np.zeros((3, count)),
            pressures=np.full((len(self.cylinders), 2), 0.5 * float(self.supply['pressure'][0])),
            saturations=self.saturations, command=np.zeros(count), residual=np.zeros(count)))
        arrays = kernels.ValveLaw(*views(self._buffer, kernels.TYPES))
        self.axes, self.cylinders, self.supply = arrays.axes, arrays.cylinders, arrays.supply
        self.saturations, self._law, self._options = arrays.saturations, arrays.law, arrays.options
        self._motion, self._samples, self._reference = arrays.motion, arrays.motion[:MEASURED], arrays.motion[0]
        self._x, self._xd, _ = arrays.motion[MEASURED]
        self._pressures, self._command, self.force_residuals = arrays.pressures, arrays.command, arrays.residual
        self._predicted, self._velocity = arrays.law['predicted'], arrays.velocity

    def _limits(self):
        """(actuators,) largest command of each, in the unit of its interface."""
        m = self.manipulator
        check_able(m, 'velocity', [name for name, one in zip(m.actuators, self.interfaces) if one == VELOCITY])
        pressure = np.minimum(self._effort_limit / self.area, self.supply['pressure'][0])
        most = {EFFORT: self._effort_limit, PRESSURE: pressure, VALVE: np.ones(len(self.interfaces)),
                VELOCITY: m.limits.velocity}
        return np.array([most[interface][row] for row, interface in enumerate(self.interfaces)])

    def _coordinates_of_feedback(self):
        """(actuators,) coordinate that each axis at force level is, -1 of others."""
        m, rows = self.manipulator, np.full(len(self.interfaces), -1)
        for row, (name, interface) in enumerate(zip(m.actuators, self.interfaces)):
            if interface not in (EFFORT, PRESSURE):
                continue
            if name not in m.coordinates:
                raise ActuationError(f"'{name}' is commanded {interface} and is no coordinate of '{m.name}': "
                                     f'computed torque of it needs it among them ({", ".join(m.coordinates)})')
            rows[row] = m.coordinates.index(name)
        return rows

    def _use_gains(self, fields):
        """Use gains {field of the record: (actuators,)}: at once before the first update, else on a ramp."""
        self._ramp.start([self._law[name] for name in fields], fields.values())
        if self._last is None:
            self._ramp.end()
            self._gains_changed()

    def _gains_changed(self):
        law = self._law[self.rows]
        self.effort_gains[:] = law['stiffness'], law['damping']
        # of the rate of a filter of second order with equal poles, at its largest
        self.step_gains = law['damping'] * law['error_filter'] / np.e
        self.flow_gains[:] = self._law['flow_stiffness'], -self._law['flow_decoupling']

    def _forget(self):
        self._ramp.end()
        self._gains_changed()
        self._last = None
        for name in STATES:
            self._law[name] = 0

    def freeze(self, mask):
        """As `ControlLaw.freeze`."""
        self._law['frozen'] = np.asarray(mask, dtype=bool)

    @property
    def swing_period(self):
        """As `ControlLaw.swing_period`."""
        return self._swing_period

    @property
    def speed_change_time(self):
        """As `ControlLaw.speed_change_time`: a deceleration over a period of a mode leaves it at rest."""
        return self.swing_period

    @property
    def predicted_efforts(self):
        """As `ControlLaw.predicted_efforts`, at the time that the last commands aim at."""
        return self._predicted.copy()

    @property
    def integral_gains(self):
        """As `ControlLaw.integral_gains`."""
        return self._law['integral'][self.rows]

    @property
    def corrections(self):
        """As `ControlLaw.corrections`."""
        if not self.model_feedback:
            return super().corrections
        law, forces = self._law[self.rows], np.isin(self.interfaces, (EFFORT, PRESSURE))[self.rows]
        return np.array((law['stiffness'] * law['error'], law['integral'] * law['sum'])) * forces

    @property
    def asked_commands(self):
        """As `ControlLaw.asked_commands`."""
        return self._law['wish'].copy()

    @property
    def _aimed_rate(self):
        return 0.5 * (self._velocity[0] + self._velocity[1])

    @property
    def _pressure_lead(self):
        return self._law['lead']

    @property
    def model_feedback(self):
        """As `ControlLaw.model_feedback`."""
        return self._gains_of_coordinates

    def _default_gains(self, period, bandwidth, effort_bandwidth):
        """The gains of this machine."""
        raise NotImplementedError

    def update(self, t, x, xd, pressures=None, age=0.0, supply_pressure=None):
        """As `ControlLaw.update`; `desired` is valid until the next."""
        self._take(x, xd, pressures)
        if not self.reference.started:
            self.hold(self._x)
        dt = -1.0
        if self._last is not None:
            dt = min(max(t - self._last, 0.0), LONGEST_STEP * self.period)
            if self.load.changing:
                if self.load.loading:       # a load that is set now may hang there since before the bias was taken
                    np.minimum(self._law['samples'], FRESH_SAMPLES, out=self._law['samples'])
                self.load.advance(dt)
            if self._ramp.running:
                self._ramp.advance(dt)
                self._gains_changed()
        act, half = age + self._act, 0.5 * self.period
        aim = t + age + self._act + self.lag
        times = float(t), float(aim - half), float(aim + half)
        self.desired = self._reference
        if supply_pressure is None:
            supply = self.supply[0]
            follows = supply['sensed'] + supply['margin'] if supply['sensing'] else supply['pressure']
            supply_pressure = min(follows, supply['pressure'])
        self._cycle(self._buffer, self._samples, times, kernels.Step(
            times, float(dt), float(self.period), float(act / (act + self.lag)), float(self.feedforward_scale),
            float(supply_pressure)))
        if self._pump:
            self.speed_scaling = self._pump.scale(t, max(dt, 0.0))
        self._last = t
        return self._command.copy()

    def applied_efforts(self, command, x, xd):
        """As `ControlLaw.applied_efforts`, by the pressures of the last update; None where some axis has none."""
        if not self._options[KNOWN] or not (self._law['interface'] > kernels.PRESSURE).all():
            return None
        A = np.eye(len(x)) if self._actuation is None else self.manipulator.actuator_map(x)
        rate = A @ xd
        friction = self.axes['coulomb'] * np.tanh(rate / self.axes['slip']) + self.axes['viscous'] * rate
        return A.T @ (self._law['force'] - self._law['bias'] - friction)

    def _take(self, x, xd, pressures):
        """Keep what was measured, in arrays of the only kind that the kernels are compiled for."""
        try:
            self._x[:], self._xd[:] = x, xd
            if pressures is not None:
                self._pressures[:] = pressures
        except (ValueError, TypeError):
            self._refuse_shapes(x, xd, pressures)
        if not len(x) == len(xd) == len(self._x):
            self._refuse_shapes(x, xd, pressures)       # NumPy would have repeated a single number
        if pressures is None:
            if self.needs_pressures:
                raise ModelError('pressures are None: expected those of the chambers, as a valve is commanded')
            self._options[KNOWN] = 0
        else:
            self._options[KNOWN] = 1

    def _refuse_shapes(self, *given):
        shapes = [np.shape(value) for value in given]
        n = len(self._x)
        raise ShapeError(f'x {shapes[0]}, xd {shapes[1]}, pressures {shapes[2]}: expected {(n,)}, {(n,)}, '
                         f'{self._pressures.shape}') from None

    def _modes(self):
        """`NaturalModes` of the machine on its oil."""
        return modes_at_start(self.load.mechanism, self.hydraulics, self.axes, self.cylinders, self.supply, self._mass)

    def actuator_rates(self, x, xd):
        """Rates (actuators,) for the motion x, xd (dof,) of the coordinates."""
        return self._actuators.rates(x, xd)

    def _raise(self, status):
        self._raise_of(self._motion[BEFORE:] if status != NON_FINITE else (),
                       'measured state, pressures or the commands that follow from them are not finite')
