"""Control laws at force level: measured state of the coordinates in, actuator forces (or load pressures) out.

    computed torque        f = ID(x, xd, xdd_ref + Kd ed + Kp e + Ki int e) + friction(xd_ref)
    PD, constant gravity   f = f_g(x0) + diag(M(x0)) (Kp e + Kd ed) + friction(xd_ref)

with x0 the position held first; e = x_ref - x and ed = xd_ref - xd, of the coordinates or of the joints that the loops
move. With an exact model the first makes every error a decoupled second-order system; the second is the baseline it is
compared with, and a weak one: the diagonal of M overstates the mass that a coupled actuator feels. Where there are more
actuators than coordinates, the efforts are those of least norm among the ones that do the same to the coordinates.

What the model does not know is left to the integral. On the crane at w = 20 rad/s (Kp = w^2, Kd = 2 w), inertia and
friction off by a tenth, it takes 14 mm rms of the telescope down to 2.4, and costs nothing where the model is exact; a
disturbance observer would have to differentiate the measured rate, and the noise of that is kilonewtons on the tonnes
that the cylinders carry. Ki = w^3 / 4 is an eighth of what would be unstable. The integral does not grow while the
force of an actuator is clipped, unless it then shrinks, and not while it is told to stand still (`freeze`).

Friction follows the rate of the reference: that of a late and noisy measurement around rest is a limit cycle.
"""

import numpy as np

from ..api.allocation import Allocation
from ..kernels.control import computed_torque as control
from ..model.errors import ModelError, NonFiniteError
from .law import EFFORT, PRESSURE, ControlLaw, check_actuation

__all__ = ['LAWS', 'ComputedTorque', 'ForceLaw', 'PdGravity', 'check_actuation']

PRESSURE_LAG = 1.0 / 60.0       # s that the electronics of a valve need for the load pressure that they are told
LONGEST_STEP = 2.0              # periods between two updates that count for an integral


class ForceLaw(ControlLaw):
    """What both laws share: gains, integral and limits; further arguments as `ControlLaw`.

    stiffness     (dof,) Kp, 1/s^2
    damping       (dof,) Kd, 1/s
    integral      (dof,) Ki, 1/s^3; None: none
    delay         s from a command to the actuator that obeys it
    pressure_lag  s of the electronics of valves that are told a load pressure
    """

    allowed = (EFFORT, PRESSURE)

    def __init__(self, manipulator, stiffness, damping, integral=None, *, hydraulics=None, period=None, delay=0.0,
                 pressure_lag=PRESSURE_LAG, **options):
        super().__init__(manipulator, hydraulics, period, **options)
        m = manipulator
        self._state = np.zeros((2, m.dof))
        self._sum, self._clipped = self._state      # integral; sign of the effort where it was clipped, else 0
        self._frozen = np.zeros(m.dof, dtype=bool)
        self._last = None           # time of the last update
        self.set_gains(stiffness, damping, integral)
        self._lead = delay + 0.5 * (period or 0.0) + (pressure_lag if PRESSURE in self.tiers else 0.0)
        self._limit = np.minimum(self._effort_limit, self._area * self._highest_pressure())
        self._predicted = np.zeros(len(m.actuators))
        self._motion = np.zeros((3, 3, m.dof))      # reference at the time of the measurement, and where commands act
        self._measured = np.zeros((3, m.dof))       # x, xd; the last row is room for the kernel
        self._sharing = None        # of the load among redundant actuators of which one is at its limit
        if len(m.actuators) > m.dof:
            self._sharing = Allocation(m.actuators, dict(zip(m.actuators, self._limit)),
                                       dict(zip(m.actuators, m.allocation.weights)))

    def _highest_pressure(self):
        return np.inf if self.hydraulics is None else np.where(np.array(self.tiers) == PRESSURE,
                                                               self.supply['pressure'][0], np.inf)

    def set_gains(self, stiffness, damping, integral=None):
        """Kp, Kd, Ki (dof,), each finite and not negative, from the next update on; None: no integral.

        Raises ModelError.
        """
        gains = [np.zeros(self.manipulator.dof) if gain is None else np.array(gain, dtype=float)
                 for gain in (stiffness, damping, integral)]
        for name, gain in zip(('stiffness', 'damping', 'integral'), gains):
            if gain.shape != (self.manipulator.dof,) or not (np.isfinite(gain) & (gain >= 0.0)).all():
                raise ModelError(f'gains {name} = {gain.tolist()!s:.120}: expected {self.manipulator.dof} finite '
                                 'numbers, none of them negative')
        self._gains = np.array(gains)
        self._kp, self._kd, self._ki = self._gains

    def _forget(self):
        self._sum[:], self._clipped[:], self._last = 0.0, 0.0, None

    def freeze(self, mask):
        """As `ControlLaw.freeze`; coordinates stand still that a masked actuator drives."""
        mask = np.broadcast_to(np.asarray(mask, dtype=bool), (len(self.manipulator.actuators),))
        self._frozen[:] = self._of_coordinates(mask) != 0.0

    def _of_coordinates(self, flags):
        """(dof,) how much actuators that are flagged (actuators,) have a part in the coordinates."""
        if not self._general or not np.any(flags):
            return np.array(flags, dtype=float)
        return np.abs(self.manipulator.actuator_map(self._held())).T @ np.abs(np.asarray(flags, dtype=float))

    def _held(self):
        return self.manipulator.initial_position if self.desired is None else self.desired[0]

    def update(self, t, x, xd, pressures=None, age=0.0, supply_pressure=None):
        """As `ControlLaw.update`; neither pressures nor the supply are looked at."""
        if not self.reference.started:
            self.hold(x)
        dt = 0.0 if self._last is None else min(max(t - self._last, 0.0), LONGEST_STEP * (self.period or np.inf))
        self.load.advance(dt)
        then = t + age + self._lead
        times = t, then, then
        command = self._at_once(x, xd, times, dt)
        if command is None:
            self.reference.samples(times, self._motion)
            desired = self._motion[0].copy()
            command = self._step_by_step(x, xd, desired, dt)
        else:
            desired = self._motion[0].copy()
        self.desired, self._last = desired, t
        return command

    def _at_once(self, x, xd, times, dt):
        """The commands (actuators,) by one call of compiled code; None where this law has none, or where it fails."""
        return None

    def _step_by_step(self, x, xd, desired, dt):
        ahead = self.feedforward_scale * self._motion[1, 1:]    # rate and acceleration where the command will act
        error = self._error(x, desired)
        force = self._force(x, xd, desired, ahead, error)
        force += self._friction(desired[0], ahead[0])
        self._predicted[:] = force
        command = self._within_limits(x, force) / self._area
        free = ~self._frozen & ~(self._clipped * error > 0.0)
        self._sum[free] += error[free] * dt
        return command

    def _error(self, x, desired):
        """Position error (dof,) in the space of the law."""
        if self._space is None:
            return desired[0] - x
        return self._space.motion(desired[0], desired[1])[0] - self._space.motion(x, desired[1])[0]

    def _feedback(self, x, xd, desired, error):
        """(dof,) of what the gains make of the errors, in the space of the law."""
        if self._space is None:
            rate = desired[1] - xd
        else:
            rate = self._space.motion(desired[0], desired[1])[1] - self._space.motion(x, xd)[1]
        return self._kp * error + self._kd * rate + self._ki * self._sum

    def _friction(self, x, rate):
        """Friction (actuators,) of the actuators for the rate (dof,) of the reference at x."""
        a = self.axes
        if not (a['coulomb'].any() or a['viscous'].any()):
            return 0.0
        v = rate if not self._general else self.manipulator.actuator_map(x) @ rate
        fading = np.exp(-(v / np.where(a['stribeck_velocity'] > 0.0, a['stribeck_velocity'], np.inf))**2)
        return (a['coulomb'] + a['stribeck'] * fading) * np.tanh(v / a['slip']) + a['viscous'] * v

    def _force(self, x, xd, desired, ahead, error):
        """Forces (actuators,) of the load, not clamped."""
        raise NotImplementedError

    def _within_limits(self, x, force):
        """The force (actuators,), or what within the limits comes nearest to doing the same to the coordinates."""
        self._clipped[:] = 0.0
        if not np.isfinite(force).all():
            raise NonFiniteError(f'the control law gives forces that are not finite: {force.tolist()}')
        beyond = np.abs(force) > self._limit
        if not beyond.any():
            return force
        self._clipped[:] = np.sign(self._of_coordinates(beyond)) * np.sign(self._coordinate_force(x, force))
        if self._sharing:
            A = self.manipulator.actuator_map(x)
            shared = self._sharing.share(A, A.T @ force)
            self.saturations += [name in shared.at_limit for name in self.manipulator.actuators]
            return shared.efforts
        control.clamp(force, self._limit, self.saturations)
        return force

    def _coordinate_force(self, x, force):
        return self.manipulator.actuator_map(x).T @ force if self._general else force

    @property
    def predicted_efforts(self):
        """Efforts (actuators,) [N, N m] asked for at the last update, before they were clamped."""
        return self._predicted.copy()


class ComputedTorque(ForceLaw):
    """Inverse dynamics of the reference acceleration plus the feedback."""

    def __init__(self, manipulator, stiffness, damping, integral=None, **options):
        super().__init__(manipulator, stiffness, damping, integral, **options)
        self.kernel = control.computed_torque

    def _at_once(self, x, xd, times, dt):
        measured, motion = self._measured, self._motion
        if self._general or self._space is not None or not np.shape(x) == np.shape(xd) == measured[0].shape:
            return None
        measured[0], measured[1] = x, xd
        command = np.empty(len(measured[0]))
        path = self.reference.path(times, motion) or self._no_path
        status = self.kernel(
            *self.load.records, self.axes, self._gains, self._state, self._frozen, *path, times[0], times[1], motion,
            self.feedforward_scale, measured, dt, self._area, self._limit, self.saturations, self._predicted, command)
        return command if status == 0 else None

    def _force(self, x, xd, desired, ahead, error):
        feedback = self._feedback(x, xd, desired, error)
        if self._space is None:
            return self.load.inverse_dynamics(x, xd, ahead[1] + feedback)
        wanted = self._space.motion(desired[0], desired[1], ahead[1])[2] + feedback
        return self.load.inverse_dynamics(x, xd, self._space.accelerations(x, xd, wanted))


class PdGravity(ForceLaw):
    """PD feedback scaled by the diagonal of the mass matrix, plus gravity, both frozen at the first position."""

    def __init__(self, manipulator, stiffness, damping, integral=None, **options):
        super().__init__(manipulator, stiffness, damping, integral, **options)
        if self._space is not None:
            raise ModelError("space 'joint': PD with constant gravity has its gains on the coordinates; expected "
                             "'actuator', or the law computed_torque")
        self._first = self._mass = None

    def _force(self, x, xd, desired, ahead, error):
        still = np.zeros(x.size)
        if self._first is None:
            self._first = np.array(x, dtype=float)
            self._mass = np.diag(self.manipulator.mass_matrix(x)).copy()
        force = (self.load.generalized_forces(self._first, still, still)
                 + self._mass * self._feedback(x, xd, desired, error))
        if self._general:
            force = self.manipulator.allocation.share(self.manipulator.actuator_map(x), force).efforts
        return force


LAWS = {'computed_torque': ComputedTorque, 'pd_gravity': PdGravity}
