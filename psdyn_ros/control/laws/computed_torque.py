"""Control laws at force level: measured state of the coordinates in, actuator forces (or load pressures) out.

    computed torque        f = ID(x, xd, xdd_ref + Kd ed + Kp e + Ki int e) + friction(xd_ref + e / T)
    PD, constant gravity   f = f_g(x0) + diag(M(x0)) (Kp e + Kd ed) + friction(xd_ref + e / T)

with x0 the position held first, T = `APPROACH_S`, e = x_ref - x and ed = xd_ref - xd, of the coordinates or of the
joints that the loops move. With an exact model the first makes every error a decoupled second-order system; the second
is the baseline, and a weak one: the diagonal of M overstates the mass that a coupled actuator feels. Where there are
more actuators than coordinates, the efforts are those of least norm that do the same to the coordinates.

What the model does not know is left to the integral. On the crane at w = 20 rad/s (Kp = w^2, Kd = 2 w), inertia and
friction off by a tenth, it takes 14 mm rms of the telescope down to 2.4, and costs nothing where the model is exact; a
disturbance observer would have to differentiate the measured rate, and the noise of that is kilonewtons on the tonnes
that the cylinders carry. Ki = w^3 / 4 is an eighth of what would be unstable. The integral does not grow while the
force of an actuator is clipped, unless it then shrinks, and not while it is frozen (`freeze`).

Friction is overcome at the rate of the reference, and of an approach to it by what an axis is off beyond `REST_BAND`:
the measured rate, late and noisy, would make a limit cycle around rest, and an integral that has to gather the whole
friction throws a light axis. The integral rests within that band of a reference at rest, where seals hold the axis.
"""

import math
from dataclasses import dataclass

import numpy as np

from ...api.inputs import states
from ...kernels.control import computed_torque as kernels
from ...kernels.runtime.buffer import pack, views
from ...model.errors import ModelError
from .base import EFFORT, PRESSURE, ControlLaw, GainRamp, check_actuation
from .gains import COORDINATES, error_limits, gain, rejection
from .valve_gains import INTEGRAL_SHARE, default_effort_bandwidth

__all__ = ['ComputedTorque', 'ForceLaw', 'PdGravity', 'check_actuation']

PRESSURE_LAG = 1.0 / 60.0       # s that the electronics of a valve need for a commanded load pressure
LONGEST_STEP = 2.0              # periods between two updates that count for an integral


@dataclass(frozen=True)
class ForceGains:
    """Gains of laws at force level, each (dof,)."""

    p: np.ndarray = gain('1/s^2', 'stiffness', COORDINATES, 1e5)
    d: np.ndarray = gain('1/s', 'damping', COORDINATES, 1e3)
    i: np.ndarray = gain('1/s^3', 'integral action, below p d, or unstable', COORDINATES, 1e7)


class ForceLaw(ControlLaw):
    """What both laws share: gains, integral and limits; further arguments as `ControlLaw`.

    stiffness     (dof,) Kp, 1/s^2
    damping       (dof,) Kd, 1/s
    integral      (dof,) Ki, 1/s^3; None: none
    delay         s from a command to the actuator that obeys it
    """

    allowed = (EFFORT, PRESSURE)
    Gains = ForceGains
    parameters = {'command_delay': 'delay', 'bandwidth': 'bandwidth', 'error_space': 'space'}
    integral_share = 0.0        # of w^3, by default where a period is given

    def __init__(self, manipulator, stiffness, damping, integral=None, *, hydraulics=None, period=None, delay=0.0,
                 **options):
        super().__init__(manipulator, hydraulics, period, **options)
        self._last = None           # time of the last update
        self.delay = delay
        self._lead = delay + 0.5 * (period or 0.0) + (PRESSURE_LAG if PRESSURE in self.interfaces else 0.0)
        self._lag = self._lead + 0.5 * (period or 0.0)      # s, of the feedback: a command is held for a period
        self._make_buffer()
        self._sum, self._clipped = self._law.state      # integral; sign of the effort where it was clipped, else 0
        self._law.dry[:] = self._moved_by(self.axes['coulomb'] + self.axes['stribeck'] != 0.0)
        self._viscous = self.axes['viscous'].copy()
        self.kernel, self._ramp = kernels.force_cycle, GainRamp()
        self.set_gains(ForceGains(stiffness, damping, np.zeros(self.manipulator.dof) if integral is None else integral))

    @classmethod
    def make(cls, manipulator, hydraulics, period, *, bandwidth=None, stiffness=None, damping=None,
             integral=None, **options):
        """Return the law with the gains of a bandwidth w [rad/s], w^2, 2 w and a share of w^3, or those given.

        None or 0: as far as a delay of commands and the period let it.
        """
        full = np.ones(manipulator.driven_machine.dof)
        w = bandwidth or default_effort_bandwidth(options.get('delay', 0.0) + (period or 0.0))
        stiffness = w**2 * full if stiffness is None else stiffness
        damping = 2.0 * w * full if damping is None else damping
        if integral is None and period:
            integral = cls.integral_share * w**3 * full
        return cls(manipulator, stiffness, damping, integral, hydraulics=hydraulics, period=period, **options)

    def _make_buffer(self):
        count, n = len(self.manipulator.actuators), self.manipulator.dof
        limit = np.minimum(self._effort_limit, self.area * self._highest_pressure())
        self._buffer = pack(kernels.ForceLaw(
            axes=self.axes, constant=np.zeros(1, np.int64), gains=np.zeros((3, n)), start=np.zeros((3, n)),
            mass=np.zeros(n), state=np.zeros((2, n)), frozen=np.zeros(n, np.int64), motion=np.zeros((3, 3, n)),
            measured=np.zeros((3, n)), error=np.zeros(n), needed=np.zeros(n), area=self.area, limit=limit,
            saturations=self.saturations, predicted=np.zeros(count), command=np.zeros(count), effort=np.zeros(count),
            position=np.zeros(count), rate=np.zeros(count), wanted=np.zeros(n), dry=np.zeros(n, np.int64)))
        self._law = kernels.ForceLaw(*views(self._buffer, kernels.TYPES))
        self.axes, self.saturations = self._law.axes, self._law.saturations

    def _highest_pressure(self):
        return np.inf if self.hydraulics is None else np.where(np.array(self.interfaces) == PRESSURE,
                                                               self.supply['pressure'][0], np.inf)

    def set_gains(self, gains):
        """Go over to these `ForceGains` on a ramp; ModelError unless each is finite and not negative."""
        rows = [np.array(row, dtype=float) for row in (gains.p, gains.d, gains.i)]
        for name, row in zip(('stiffness', 'damping', 'integral'), rows):
            if row.shape != (self.manipulator.dof,) or not (np.isfinite(row) & (row >= 0.0)).all():
                raise ModelError(f'gains {name} = {row.tolist()!s:.120}: expected {self.manipulator.dof} finite '
                                 'numbers, none of them negative')
        self.gains = ForceGains(*rows)
        self._ramp.start([self._law.gains], [rows])
        if self._last is None:
            self._ramp.end()

    def gains_rejection(self, gains):
        """As `ControlLaw.gains_rejection`, by `error_limits`."""
        names = self.manipulator.coordinates
        all_of, none = np.ones(len(names), dtype=bool), np.zeros(len(names))
        limits = error_limits(gains.p, gains.d, self._lag)
        return rejection(names, gains, self.gains,
                         [(one, all_of, none, np.broadcast_to(most, len(names))) for one, most in zip('pdi', limits)])

    def _forget(self):
        self._ramp.end()
        self._sum[:], self._clipped[:], self._last = 0.0, 0.0, None

    def freeze(self, mask):
        """As `ControlLaw.freeze`, of the coordinates that a masked actuator drives."""
        mask = np.broadcast_to(np.asarray(mask, dtype=bool), (len(self.manipulator.actuators),))
        self._law.frozen[:] = self._moved_by(mask)

    def _moved_by(self, mask):
        """(dof,) bool: whether actuators in mask (actuators,) move a coordinate."""
        x = self.manipulator.initial_position if self.desired is None else self.desired[0]
        return mask @ np.abs(self.manipulator.actuator_map(x)) != 0.0

    def update(self, t, x, xd, pressures=None, age=0.0, supply_pressure=None):
        """As `ControlLaw.update`; neither pressures nor the supply are looked at."""
        measured, motion = self._law.measured, self._law.motion
        self._take(x, xd)
        if not self.reference.started:
            self.hold(measured[0])
        dt = 0.0 if self._last is None else min(max(t - self._last, 0.0), LONGEST_STEP * (self.period or np.inf))
        if self.load.changing:
            self.load.advance(dt)
        self._ramp.advance(dt)
        then = t + age + self._lead
        times = float(t), float(then), float(then)
        self._cycle(self._buffer, motion, times, kernels.Step(times, float(dt), float(self.feedforward_scale)))
        self.desired, self._last = motion[0].copy(), t
        return self._law.command.copy()

    def applied_efforts(self, command, x, xd):
        """As `ControlLaw.applied_efforts`; not known under dry friction, which is whatever holds an axis at rest."""
        if self._law.dry.any():
            return None
        if self._actuation is None:         # they are the coordinates
            return command * self.area - self._viscous * xd
        A = self.manipulator.actuator_map(x)
        return A.T @ (command * self.area - self._viscous * (A @ xd))

    def _take(self, x, xd):
        """Keep what was measured; `states` says why it cannot be."""
        measured = self._law.measured[:2]
        try:
            measured[0], measured[1] = x, xd
            usable = len(x) == len(xd) == measured.shape[1]     # NumPy would repeat a single number
        except (ValueError, TypeError):
            states(self.manipulator, x=x, xd=xd)
            raise
        if not (usable and math.isfinite(sum(measured.ravel().tolist()))):
            states(self.manipulator, x=x, xd=xd)

    def _raise(self, status):
        efforts = self._law.effort.tolist()
        self._raise_of((self._law.measured, self._law.motion[0]),
                       f'the control law gives forces that are not finite: {efforts}')

    @property
    def _aimed_rate(self):
        return self._law.rate

    @property
    def predicted_efforts(self):
        """Efforts (actuators,) [N, N m] asked for at the last update, before they were clamped."""
        return self._law.predicted.copy()


class ComputedTorque(ForceLaw):
    """Inverse dynamics of the reference acceleration plus the feedback."""

    integral_share = INTEGRAL_SHARE

    @property
    def model_feedback(self):
        """As `ControlLaw.model_feedback`."""
        return self._gains_of_coordinates

    @property
    def effort_gains(self):
        """As `ControlLaw.effort_gains`."""
        return self._law.gains[:2]

    @property
    def integral_gains(self):
        """As `ControlLaw.integral_gains`."""
        return self._law.gains[2]

    @property
    def corrections(self):
        """As `ControlLaw.corrections`."""
        law = self._law
        return np.array((law.gains[0] * law.error, law.gains[2] * law.state[0])) * self.model_feedback


class PdGravity(ForceLaw):
    """PD feedback scaled by the diagonal of the mass matrix at the first position, plus gravity where it last began to
    hold."""

    def __init__(self, manipulator, stiffness, damping, integral=None, **options):
        super().__init__(manipulator, stiffness, damping, integral, **options)
        if self._joints:
            raise ModelError("space 'joint': PD with constant gravity has its gains on the coordinates; expected "
                             "'actuator', or the law computed_torque")

    def hold(self, x):
        """As `ControlLaw.hold`; gravity stays that of this position, and inertia that of the first one."""
        super().hold(x)
        self._law.start[0] = x
        if not self._law.constant[0]:
            self._law.mass[:] = np.diag(self.manipulator.mass_matrix(x))
            self._law.constant[0] = 1
