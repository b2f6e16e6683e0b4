"""What the laws that command valves share: measured motion and pressures in, commands of valves and efforts out.

A law for cylinders acts through the flow of oil, so that it looks ahead by the lag of the valve, and acts on errors at
the time of their measurement. Axes of which effort or pressure is commanded get computed torque.
"""

import numpy as np

from ..kernels.control import valve_control as kernels
from ..model.errors import ActuationError, ModelError, NonFiniteError, ShapeError
from .law import EFFORT, PRESSURE, VALVE, VELOCITY, ControlLaw
from .pump_flow import PumpFlow
from .valve_gains import EFFORT_BANDWIDTH, modes_at_start

MEASURED, BEFORE, AFTER = 0, 1, 2       # rows of the motions for which the model is computed
PRESSURE_LAG = 1.0 / 60.0       # s that the electronics of a valve need for the load pressure that they are told
LONGEST_STEP = 2.0              # periods between two updates that count
FRESH_SAMPLES = 5               # that a bias counts for, as long as the payload of the model changes at rest
CODES = {EFFORT: kernels.EFFORT, PRESSURE: kernels.PRESSURE, VALVE: kernels.VALVE, VELOCITY: kernels.VELOCITY}
PID, OBSERVED, BIAS_SAMPLES, KNOWN = range(4)       # options of the kernel
STATES = ('error', 'slow', 'error_rate', 'sum', 'saturated', 'pressure_a', 'pressure_b', 'bias', 'samples')


class ValveLaw(ControlLaw):
    """The records, the errors, and the model on the reference; further arguments as `ControlLaw`.

    delay         s from a command to the valve that obeys it
    bandwidth     rad/s from which gains follow (`valve_gains`); None: as far as the machine lets it go
    effort_bandwidth  rad/s of axes at force level
    pressure_lag  s of the electronics of valves that are told a load pressure

    Tiers may be mixed.  But where a cylinder at force level stands beside one that oil holds, and they move the same
    mass, its bandwidth must be well below the mode of the machine on its oil: to it the other is not rigid.

    `axes`, `cylinders`, `supply` are the records that the law believes in: fields may be changed at any time.
    """

    def __init__(self, manipulator, hydraulics, period, *, delay=0.0, bandwidth=None,
                 effort_bandwidth=EFFORT_BANDWIDTH, pressure_lag=PRESSURE_LAG, **options):
        super().__init__(manipulator, hydraulics, period, **options)
        count, n = len(manipulator.actuators), manipulator.dof
        self._row_of = self.axes['cylinder']
        on_valve = np.isin(self.tiers, (VALVE, VELOCITY))
        spools = self.cylinders[[row for row, valve in zip(self._row_of, on_valve) if valve]]
        self.lag = float((2.0 * spools['zeta'] / spools['omega']).max(initial=0.0))     # s, of the spools
        self._act = 0.5 * period + delay        # s until a command acts, but for the lag
        self._law = np.zeros(count, kernels.AXIS_LAW)
        self._law['tier'] = [CODES[tier] for tier in self.tiers]
        self._law['area'] = self._area
        self._law['lag'] = np.where(np.array(self.tiers) == PRESSURE, pressure_lag, 0.0)
        self._law['limit'] = self._limits()
        self._options = np.zeros(4, dtype=np.int64)
        self._options[OBSERVED] = self._stepwise = self._general or self._space is not None
        self._last = None           # time of the last update
        # x, xd, xdd: reference at the time of the measurement, before, after; measured, with room for the kernel
        self._motions = np.zeros((4, 3, n))
        self._motion, self._measured = self._motions[:3], self._motions[3]
        self._pressures = np.full((len(self.cylinders), 2), 0.5 * float(self.supply['pressure'][0]))
        self._actuators = np.zeros((6, count))  # of the kernel: position, velocities, forces
        self._position, self._velocity, self._force = self._actuators[0], self._actuators[1:3], self._actuators[3:]
        self._feedback = np.zeros(count)
        self._command = np.empty(count)
        self.kernel = kernels.cycle_of(
            *self.load.records, self.axes, self.cylinders, self.supply, self._law, self._options, self._motions,
            self._actuators, self._pressures, self.saturations, self._command)
        self._columns = [manipulator.joints.index(name) for name in manipulator.actuators]
        self._spread = self._spread_of_feedback()
        self._pump = PumpFlow(self) if self.supply['limited'][0] else None
        self.set_gains(self._default_gains(period, bandwidth, effort_bandwidth))

    def _limits(self):
        """(actuators,) largest command of each, in the unit of its tier."""
        velocity = np.where(self.manipulator.limits.velocity > 0.0, self.manipulator.limits.velocity, np.inf)
        pressure = np.minimum(self._effort_limit / self._area, self.supply['pressure'][0])
        most = {EFFORT: self._effort_limit, PRESSURE: pressure, VALVE: np.ones(len(self.tiers)), VELOCITY: velocity}
        return np.array([most[tier][row] for row, tier in enumerate(self.tiers)])

    def _spread_of_feedback(self):
        """(dof, actuators) matrix that gives the coordinates the feedback of axes at force level; None: one."""
        m = self.manipulator
        if m.actuators == m.coordinates:
            return None
        spread = np.zeros((m.dof, len(m.actuators)))
        for row in np.flatnonzero(self._law['tier'] <= kernels.PRESSURE):
            name = m.actuators[row]
            if name not in m.coordinates:
                raise ActuationError(f"'{name}' is commanded {self.tiers[row]} and is no coordinate of '{m.name}': "
                                     f'computed torque of it needs it among them ({", ".join(m.coordinates)})')
            spread[m.coordinates.index(name), row] = 1.0
        return spread

    def _forget(self):
        self._last = None
        for name in STATES:
            self._law[name] = 0

    def freeze(self, mask):
        """As `ControlLaw.freeze`."""
        self._law['frozen'] = np.asarray(mask, dtype=bool)

    def set_gains(self, gains):
        """Use these gains from the next update on: a dataclass of (actuators,) like `gains`; raises ModelError."""
        raise NotImplementedError

    @property
    def error_integrals(self):
        """(actuators,) integrals of the errors [m s, rad s]; they do not grow while a command is clipped."""
        return self._law['sum'].copy()

    @property
    def predicted_efforts(self):
        """As `ControlLaw.predicted_efforts`, at the time that the last commands aim at."""
        return self._law['predicted'].copy()

    def _default_gains(self, period, bandwidth, effort_bandwidth):
        """The gains of this machine."""
        raise NotImplementedError

    def update(self, t, x, xd, pressures=None, age=0.0, supply_pressure=None):
        """As `ControlLaw.update`; `desired` is valid until the next."""
        reference = self.reference
        self._take(x, xd, pressures)
        if not reference.started:
            self.hold(self._measured[0])
        dt = -1.0
        if self._last is not None:
            dt = min(max(t - self._last, 0.0), LONGEST_STEP * self.period)
            if self.load.loading:       # what is told now may hang there since before the bias was taken
                np.minimum(self._law['samples'], FRESH_SAMPLES, out=self._law['samples'])
            self.load.advance(dt)
        aim, half = t + age + self._act + self.lag, 0.5 * self.period
        times = t, aim - half, aim + half
        share = (age + self._act) / (age + self._act + self.lag)
        if self._stepwise:
            path = self._no_path
            reference.samples(times, self._motion)
            self._step_by_step(dt, share)
        else:
            path = reference.path(times, self._motion) or self._no_path
        self.desired = self._motion[0]
        supply = float(self.supply['pressure'][0]) if supply_pressure is None else supply_pressure
        status = self.kernel(supply, dt, self.period, share, self.feedforward_scale, *path, *times)
        if status != 0:
            self._refuse(status)
        if self._pump:
            self.flow_scale = self._pump.scale(t, max(dt, 0.0))
        self._last = t
        return self._command.copy()

    def _take(self, x, xd, pressures):
        """Keep what was measured, in arrays of the only kind that the kernels are compiled for."""
        try:
            self._measured[0], self._measured[1] = x, xd
            if pressures is not None:
                self._pressures[:] = pressures
        except (ValueError, TypeError):
            self._refuse_shapes(x, xd, pressures)
        if len(x) != self._measured.shape[1] or len(xd) != self._measured.shape[1]:
            self._refuse_shapes(x, xd, pressures)       # NumPy would have repeated a single number
        if pressures is None:
            if self.needs_pressures:
                raise ModelError('pressures are None: expected those of the chambers, as a valve is commanded')
            self._options[KNOWN] = 0
        else:
            self._options[KNOWN] = 1

    def _refuse_shapes(self, *given):
        shapes = [np.shape(value) for value in given]
        n = self._measured.shape[1]
        raise ShapeError(f'x {shapes[0]}, xd {shapes[1]}, pressures {shapes[2]}: expected {(n,)}, {(n,)}, '
                         f'{self._pressures.shape}') from None

    def _modes(self):
        """`NaturalModes` of the machine on its oil."""
        return modes_at_start(self.load.mechanism, self.hydraulics, self.axes, self.cylinders, self.supply)

    def _step_by_step(self, dt, share):
        """Fill positions, velocities and forces where loops are closed by iteration, or errors are of joints."""
        motion, (x, xd, xdd) = self._motion, self._measured
        self._check_finite()
        self._position[:] = position = self._of_actuators(x)
        reference = self._of_actuators(motion[0, 0])
        if self._space is not None:
            zero = np.zeros_like(x)
            off = self._space.motion(motion[0, 0], zero)[0] - self._space.motion(x, zero)[0]
            reference = position + self.actuator_rates(x, self._space.rates(x, off))
        status = kernels.observe(self._law, dt, position, reference, self._feedback)
        if status != 0:
            self._refuse(status)
        motion[1:, 1:] *= self.feedforward_scale
        feedback = self._feedback if self._spread is None else self._spread @ self._feedback
        xdd[:] = ((1.0 - share) * self.feedforward_scale * motion[0, 2] + share * 0.5 * (motion[1, 2] + motion[2, 2])
                  + feedback)
        self._force[MEASURED] = self.load.inverse_dynamics(x, xd, xdd)
        for row in (BEFORE, AFTER):
            self._force[row] = self.load.inverse_dynamics(*motion[row])
            self._velocity[row - 1] = self.actuator_rates(motion[row, 0], motion[row, 1])

    def _check_finite(self):
        if not (np.isfinite(self._measured[:2]).all() and np.isfinite(self._pressures).all()):
            self._refuse(kernels.NON_FINITE)

    def _of_actuators(self, x):
        return self.manipulator.joint_state(x)[1][self._columns] if self._general else x

    def actuator_rates(self, x, xd):
        """Rates (actuators,) for the motion x, xd (dof,) of the coordinates."""
        return self.manipulator.joint_state(x, xd)[2][self._columns] if self._general else xd

    def _refuse(self, status):
        if status > 0:
            for row in (self._measured, *self._motion[BEFORE:]):        # one of them raises, and says why
                self.load.inverse_dynamics(row[0].copy(), row[1].copy(), row[2].copy())
        raise NonFiniteError('measured state, pressures or the commands that follow from them are not finite')
