"""The machine itself, in simulated time: forces of the actuators in, motion out."""

import math

import numpy as np

from ..model.errors import PsdynError
from .forced import ForcedIntegrator

RUNNING, HELD, FAULT = 'running', 'held', 'fault'
BRAKING = 10.0      # periods in which brakes take off what is left of a motion, where some coordinate has no actuator


class Plant:
    """A manipulator that moves under actuator forces, and is held by its brakes when nobody commands it.

    Zero force would drop the load, so it is never assumed: until the first command, and again when no command
    came for `command_timeout`, the load-holding brakes keep every actuator where it is, at rest, until the
    next command. A coordinate beyond all actuators, as of a floating base, goes on moving meanwhile; a machine
    without actuators is never held. A motion that cannot be integrated any further is a FAULT, in which the last
    good state is kept until `reset`.

    manipulator      of any kind
    period           s, the time of one step; forces of actuators are constant during it
    substeps         integration steps of the fourth-order Runge-Kutta method in a period
    command_timeout  s of simulated time
    position         (nx,) to start from; the initial position of the machine where it is None
    external_forces  `ExternalForces` on the machine, or None
    """

    def __init__(self, manipulator, *, period, substeps=2, command_timeout=0.5, position=None, external_forces=None):
        self.manipulator = manipulator
        self.period = period
        self.command_timeout = command_timeout
        self._integrator = (manipulator.integrator(period, substeps) if external_forces is None else
                            ForcedIntegrator(manipulator, external_forces, period, substeps))
        self._external_forces = external_forces
        self._passive = manipulator.floating or len(manipulator.actuators) < manipulator.dof
        self._start = np.array(manipulator.initial_position if position is None else position, dtype=float)
        self._limit = np.array(manipulator.limits.effort, dtype=float)
        self.x = self._start.copy()                         # (nx,) m or rad
        self.xd = np.zeros(manipulator.dof)                 # (dof,) m/s or rad/s
        self.force = np.zeros(len(manipulator.actuators))   # N or N m: of the actuators, or of the brakes while held
        self.saturations = 0                                # commands beyond what the actuators can give
        self.reset()

    def reset(self):
        """Back to the start, at rest and held."""
        self.steps = 0
        self.fault = ''
        self.x[:], self.xd[:] = self._start, 0.0
        self._hold()

    @property
    def state(self):
        """RUNNING, HELD or FAULT."""
        return FAULT if self.fault else HELD if self._held else RUNNING

    @property
    def time(self):
        """Simulated seconds since the start."""
        return self.steps * self.period

    def step(self, command, dt):
        """Advance by dt (a whole number of periods) under the forces `command` (actuators,), or the last if None."""
        if command is not None and not self.fault:
            self._take(command)
        for _ in range(round(dt / self.period)):
            self._advance()

    def _take(self, command):
        np.minimum(command, self._limit, out=self.force)
        np.maximum(self.force, -self._limit, out=self.force)
        self.saturations += bool((self.force != command).any())
        self._held = False
        self._age = 0.0

    def _advance(self):
        self.steps += 1
        if self.fault or (self._held and not self._passive):
            return
        x, xd = self.x.copy(), self.xd.copy()
        try:
            status = self._moved()
            failure = f'status {status}' if status else ''
        except PsdynError as error:
            failure = str(error)
        if failure or not math.isfinite(self.x @ self.x + self.xd @ self.xd):
            self.x[:], self.xd[:] = x, xd
            self.fault = f'the motion cannot be integrated beyond {self.time:.3f} s' + (failure and f': {failure}')

    def _moved(self):
        """Do one period, or apply the brakes; return the status of the integrator."""
        if self._held:
            self._brake()
        elif self.force.size:
            if self._age >= self.command_timeout:
                self._hold()
                return 0
            self._age += self.period
        return self._integrator.step(self.x, self.xd, self.force)

    def _hold(self):
        self._held = self.force.size > 0
        self._age = 0.0
        if not self._passive:
            self.xd[:] = 0.0
            self.force[:] = self.manipulator.inverse_dynamics(self.x, self.xd, self.xd, **self._applied())
        elif self._held:
            self._kept = self._actuators()[0]
            self._brake()

    def _brake(self):
        """Set the efforts that keep the actuators where they are while the other coordinates move."""
        m, x, xd = self.manipulator, self.x, self.xd
        applied = self._applied()
        free = m.forward_dynamics(x, xd, np.zeros(self.force.size), **applied)
        response = [m.forward_dynamics(x, xd, unit, **applied) - free for unit in np.eye(self.force.size)]
        position, velocity, acceleration = self._actuators(free)
        rate = 1.0 / (BRAKING * self.period)
        wanted = -2.0 * rate * velocity - rate**2 * (position - self._kept)
        response = m.actuator_map(x) @ np.transpose(response)
        self.force[:] = np.linalg.lstsq(response, wanted - acceleration, rcond=None)[0]

    def _actuators(self, xdd=None):
        """Position, velocity and acceleration (3, actuators) of the actuators for accelerations xdd (dof,)."""
        m = self.manipulator
        names, *rows = m.joint_state(self.x, self.xd, np.zeros(m.dof) if xdd is None else xdd)
        return np.array(rows)[:, [names.index(name) for name in m.actuators]]

    def _applied(self):
        return self._external_forces(self.x, self.xd)._asdict() if self._external_forces else {}
