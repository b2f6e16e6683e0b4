"""The machine itself, in simulated time: forces of the actuators in, motion out."""

import math

import numpy as np

RUNNING, HELD, FAULT = 'running', 'held', 'fault'


class Plant:
    """A manipulator that moves under actuator forces, and is held by its brakes when nobody commands it.

    Zero force would drop the load, so it is never assumed: until the first command, and again when no command
    came for `command_timeout`, the load-holding brakes keep every actuator where it is, at rest, until the
    next command. A motion that cannot be integrated any further is a FAULT, in which the last good state is
    kept until `reset`.

    manipulator      with n = dof actuators
    period           s, the time of one step; forces are constant during it
    substeps         integration steps of the fourth-order Runge-Kutta method in a period
    command_timeout  s of simulated time
    position         (n,) to start from; the initial position of the machine where it is None
    """

    def __init__(self, manipulator, *, period, substeps=2, command_timeout=0.5, position=None):
        self.manipulator = manipulator
        self.period = period
        self.command_timeout = command_timeout
        self._integrator = manipulator.integrator(period, substeps)
        self._start = np.array(manipulator.initial_position if position is None else position, dtype=float)
        self._limit = np.array(manipulator.limits.effort, dtype=float)
        self.x = self._start.copy()                 # (n,) m or rad
        self.xd = np.zeros(manipulator.dof)         # (n,) m/s or rad/s
        self.force = np.empty(manipulator.dof)      # (n,) N or N m: of the actuators, or of the brakes while held
        self.saturations = 0                        # commands beyond what the actuators can give
        self.reset()

    def reset(self):
        """Back to the start, at rest and held."""
        self.steps = 0
        self.fault = ''
        self.x[:] = self._start
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
        """Advance by dt (a whole number of periods) under the forces `command` (n,), or under the last one if None."""
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
        if self._held or self.fault:
            return
        if self._age >= self.command_timeout:
            self._hold()
            return
        self._age += self.period
        x, xd = self.x.copy(), self.xd.copy()
        status = self._integrator.step(self.x, self.xd, self.force)
        if status or not math.isfinite(self.x @ self.x + self.xd @ self.xd):
            self.x[:], self.xd[:] = x, xd
            self.fault = f'the motion cannot be integrated beyond {self.time:.3f} s (status {status})'

    def _hold(self):
        self._held = True
        self._age = 0.0
        self.xd[:] = 0.0
        self.force[:] = self.manipulator.gravity_forces(self.x)
