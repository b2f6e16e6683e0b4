"""What the laws that command valves share: measured strokes and pressures in, commands of valves and efforts out.

A law for cylinders acts through the flow of oil, so that it looks ahead by the lag of the valve, and acts on errors at
the time of their measurement. Axes without a cylinder get computed torque.
"""

import numpy as np

from ..kernels import valve_control as kernels
from ..kernels.entry import inverse_batch
from ..model.errors import ActuationError, NonFiniteError, ShapeError
from .law import ControlLaw
from .valve_gains import EFFORT_BANDWIDTH, modes_at_start

MEASURED, BEFORE, AFTER = 0, 1, 2       # rows of the motions for which the model is computed


class ValveLaw(ControlLaw):
    """The records, the errors, and the model on the reference; further arguments as `ControlLaw`.

    delay        s from a command to the valve that obeys it
    bandwidth    rad/s from which gains follow (`valve_gains`); None: as far as the machine lets it go
    effort_bandwidth  rad/s of axes at force level

    `axes`, `cylinders`, `supply` are the records that the law believes in: fields may be changed at any time.
    """

    def __init__(self, manipulator, hydraulics, period, *, delay=0.0, bandwidth=None,
                 effort_bandwidth=EFFORT_BANDWIDTH, **options):
        super().__init__(manipulator, hydraulics, period, **options)
        count, n = len(manipulator.actuators), manipulator.dof
        self.lag = float((2.0 * self.cylinders['zeta'] / self.cylinders['omega']).max(initial=0.0))   # s, of the spools
        self._lead = self.lag + 0.5 * period + delay
        self._spacing = period
        self._mechanism = self.load.mechanism
        self._records = self.load.records
        self._cylinder_of = self.axes['cylinder'].astype(np.int64)
        self._law = np.zeros(count, kernels.AXIS_LAW)
        self._last = None           # time of the last update
        self._motion = np.zeros((3, 3, n))                  # x, xd, xdd of MEASURED, BEFORE, AFTER
        self._position = self._motion[0, MEASURED]          # of the actuators, where they are the coordinates
        self._pressures = np.zeros((len(self.cylinders), 2))
        self._force = np.zeros((3, count))
        self._feedback = np.zeros(count)
        self._frozen = np.zeros(count, dtype=bool)
        self._limit = self._effort_limit
        self._columns = [manipulator.joints.index(name) for name in manipulator.actuators]
        self._spread = self._spread_of_feedback()
        self.set_gains(self._default_gains(period, bandwidth, effort_bandwidth))

    def _spread_of_feedback(self):
        """(dof, actuators) matrix that gives the coordinates the feedback of actuators without cylinders; None: one."""
        m = self.manipulator
        if m.actuators == m.coordinates:
            return None
        spread = np.zeros((m.dof, len(m.actuators)))
        for row in np.flatnonzero(self._cylinder_of < 0):
            name = m.actuators[row]
            if name not in m.coordinates:
                raise ActuationError(f"'{name}' has no cylinder and is no coordinate of '{m.name}': computed torque of "
                                     f'it needs it among them ({", ".join(m.coordinates)})')
            spread[m.coordinates.index(name), row] = 1.0
        return spread

    def _forget(self):
        self._last = None
        for name in ('slow', 'error_rate', 'sum', 'saturated', 'pressure_a', 'pressure_b', 'bias', 'samples'):
            self._law[name] = 0

    def freeze(self, mask):
        """As `ControlLaw.freeze`."""
        self._frozen[:] = mask

    @property
    def predicted_efforts(self):
        """As `ControlLaw.predicted_efforts`."""
        return 0.5 * (self._force[BEFORE] + self._force[AFTER])

    def set_gains(self, gains):
        """Use these gains from the next update on: a dataclass of (actuators,) like `gains`."""
        raise NotImplementedError

    @property
    def error_integrals(self):
        """(actuators,) integrals of the errors [m s, rad s]; they do not grow while a command is clipped."""
        return self._law['sum'].copy()

    def _default_gains(self, period, bandwidth, effort_bandwidth):
        """The gains of this machine."""
        raise NotImplementedError

    def update(self, t, x, xd, pressures=None, age=0.0, supply_pressure=None):
        """Commands (actuators,): -1 to 1 of valves, N and N m of axes without a cylinder.

        t                s, when x (dof,), xd (dof,) were measured
        pressures        (cylinders, 2) of chambers A, B, the last ones measured [Pa gauge]
        age              s from t to this command
        supply_pressure  Pa gauge, measured; None: that of the record

        Without a reference the first position measured is held. Raises ShapeError, NonFiniteError, and what the
        inverse dynamics raise.
        """
        motion, position = self._motion, self._position
        self._take(x, xd, pressures)
        if not self.reference.started:
            self.hold(x)
        self.desired = self._desired(t)
        reference = self.desired[0]
        if self._general:
            position, reference = self._of_actuators(motion[0, MEASURED]), self._of_actuators(reference)
        dt = -1.0 if self._last is None else t - self._last
        self._refuse(kernels.observe(self._law, self._cylinder_of, dt, position, reference, self._feedback))
        self._look_ahead(t + age + self._lead)
        command = np.empty(len(self._law))
        self._refuse(self._command(dt, position, supply_pressure, command))
        self._last = t
        return command

    def _take(self, x, xd, pressures):
        """Keep what was measured, in arrays of the only kind that the kernels are compiled for."""
        if pressures is None and not self.needs_pressures:
            pressures = self._pressures
        x, xd, pressures = np.asarray(x, float), np.asarray(xd, float), np.asarray(pressures, float)
        n, count = self.manipulator.dof, len(self.cylinders)
        if x.shape != (n,) or xd.shape != (n,) or pressures.shape != (count, 2):
            raise ShapeError(f'x {x.shape}, xd {xd.shape}, pressures {pressures.shape}: expected {(n,)}, {(n,)}, '
                             f'{(count, 2)}')
        self._motion[0, MEASURED], self._motion[1, MEASURED], self._pressures[:] = x, xd, pressures

    def _modes(self):
        """`NaturalModes` of the machine on its oil."""
        return modes_at_start(self._mechanism, self.hydraulics, self.axes, self.cylinders, self.supply)

    def _command(self, dt, position, supply_pressure, command):
        """Write the commands; a status."""
        raise NotImplementedError

    def _desired(self, t):
        desired = np.empty((3, self.manipulator.dof))
        desired[:] = self.reference.sample(t)
        return desired

    def _look_ahead(self, t):
        """Fill motions and forces of the model: at the measured state, and before and after time t."""
        motion = self._motion
        motion[2, MEASURED] = self.desired[2] + (self._feedback if self._spread is None
                                                 else self._spread @ self._feedback)
        motion[:, BEFORE] = self.reference.ahead(t - 0.5 * self._spacing)
        motion[:, AFTER] = self.reference.ahead(t + 0.5 * self._spacing)
        if self._general:
            for row in range(3):
                self._force[row] = self._mechanism.inverse_dynamics(*motion[:, row])
            return
        status, row = inverse_batch(*self._records, motion[0], motion[1], motion[2], self._force, 0, 3)
        if status != 0:
            self._mechanism.inverse_dynamics(*motion[:, row])       # raises, and says why

    def _velocities(self):
        """(2, actuators) of the reference before and after the time aimed at."""
        motion = self._motion
        if not self._general:
            return motion[1, BEFORE:]
        joint_state = self._mechanism.joint_state
        return np.array([joint_state(motion[0, row], motion[1, row])[2][self._columns] for row in (BEFORE, AFTER)])

    def _of_actuators(self, x):
        return self._mechanism.joint_state(x)[1][self._columns]

    def _refuse(self, status):
        if status != 0:
            raise NonFiniteError('measured state, pressures or the commands that follow from them are not finite')
