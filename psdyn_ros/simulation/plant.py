"""The machine itself, in simulated time: forces of the actuators in, motion out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from ..api.arguments import Array, Wrenches
from ..api.manipulator import Manipulator
from ..api.results.limits import check_able
from ..model.errors import ModelError, NonFiniteError, PsdynError, ShapeError, StateError
from .forced import ForcedIntegrator

RUNNING, HELD, FAULT = 'running', 'held', 'fault'
BRAKING = 10.0      # periods in which brakes take off what is left of a motion, where some coordinate is not braked


def check_step(command: npt.ArrayLike | None, dt: float, actuators: tuple[str, ...], period: float
               ) -> tuple[Array | None, int]:
    """Return (command (actuators,) or None, periods of dt [s]); raise what `step` raises."""
    if command is not None:
        given = np.asarray(command, dtype=object)      # as it was given: numbers beside text would become text
        if given.shape != (len(actuators),):
            raise ShapeError(f'command has shape {given.shape}; expected ({len(actuators)},), one entry an actuator')
        for name, value in zip(actuators, given.tolist()):
            if not isinstance(value, Real) or math.isinf(value):
                kind = NonFiniteError if isinstance(value, Real) else ShapeError
                raise kind(f"command of '{name}' is {value!r:.80}; expected a number, or NaN for none")
        command = given.astype(float)
    periods = dt / period
    if not (0.0 <= periods < math.inf and abs(periods - round(periods)) < 1e-6 * max(1.0, periods)):
        raise StateError(f'dt {dt:g} s; expected a whole number of periods of {period:g} s')
    return command, round(periods)


class Plant:
    """A manipulator that moves under actuator forces, and is held by its brakes when nobody commands it.

    Zero force would drop the load, so it is never assumed: until its first command, and again when none came for
    `command_timeout`, the load-holding brake of an actuator keeps it where it is, at rest, until its next command.
    A coordinate beyond all actuators, as of a floating base, goes on moving meanwhile; a machine without actuators is
    never held. A motion that cannot be integrated any further is a FAULT, in which the last
    good state is kept until `reset`.

    manipulator      of any kind
    period           s, the time of one step; forces of actuators are constant during it
    substeps         integration steps of the fourth-order Runge-Kutta method in a period
    command_timeout  s of simulated time
    position         (nx,) to start from; the initial position of the machine where it is None
    external_forces  `ExternalForces` on the machine, or None
    """

    cylinders = ()      # none of them is driven by one that the plant knows

    def __init__(self, manipulator: Manipulator, *, period: float, substeps: int = 2, command_timeout: float = 0.5,
                 position: npt.ArrayLike | None = None, external_forces: Any = None) -> None:
        check_able(manipulator, 'effort')
        self.manipulator = manipulator
        self.period = period
        self.command_timeout = command_timeout
        self.substeps = substeps
        self.actuators = tuple(manipulator.actuators)
        self._equations = ForcedIntegrator(manipulator, external_forces, period, substeps)
        self._integrator: Any = self._equations         # which raises what it meets, and returns no status
        if external_forces is None:
            self._integrator = manipulator.integrator(period, substeps)
        self._external_forces = external_forces
        self._base: Any = None
        self._wrenches: Wrenches | None = None
        self._passive = manipulator.floating or len(manipulator.actuators) < manipulator.dof
        self._start = np.array(manipulator.initial_position if position is None else position, dtype=float)
        self._limit = np.array(manipulator.limits.effort, dtype=float)
        self.x = self._start.copy()                         # (nx,) m or rad
        self.xd = np.zeros(manipulator.dof)                 # (dof,) m/s or rad/s
        self.force = np.zeros(len(manipulator.actuators))   # N or N m: of the actuators, or of the brakes while held
        self._kept = np.zeros(len(self.actuators))          # where brakes keep the actuators
        self._held = np.ones(len(self.actuators), dtype=bool)
        self._age = np.zeros(len(self.actuators))           # s since the last command of each
        self.saturations = 0                                # commands beyond what the actuators can give
        self.reset()

    def __repr__(self) -> str:
        return f'<Plant of {self.manipulator!r}: {self.state}, {self.time:g} s>'

    def reset(self) -> None:
        """Back to the start, at rest and held."""
        self.steps = 0
        self.fault = ''
        self.x[:], self.xd[:] = self._start, 0.0
        self._hold(np.ones_like(self._held))

    @property
    def state(self) -> str:
        """RUNNING, HELD while the brake of any actuator holds it, or FAULT."""
        return FAULT if self.fault else HELD if self._held.any() else RUNNING

    @property
    def time(self) -> float:
        """Simulated seconds since the start."""
        return self.steps * self.period

    @property
    def safe(self) -> Array:
        """Which actuators (actuators,) are held by their brakes."""
        return self._held.copy()

    @property
    def held(self) -> tuple[str, ...]:
        """Names of the actuators that are held by their brakes."""
        return tuple(name for name, held in zip(self.actuators, self._held) if held)

    @property
    def _stands(self) -> bool:
        """Whether brakes leave nothing that moves."""
        return not self._passive and bool(self._held.all())

    @property
    def effort(self) -> Array:
        """(actuators,) N, N m: of the actuators or their brakes, before the friction that the mechanism has."""
        return self.force

    @property
    def xdd(self) -> Array:
        """Accelerations (dof,) by forces, environment and stops; zero while all actuators are held."""
        if self._stands:
            return np.zeros(self.xd.size)
        return self._equations.rates(self.x, self.xd, self.force)[1]

    def measure(self) -> tuple[Array, Array, None, None]:
        """Return (x, xd, pressures, supply) without errors; there are no pressures."""
        return self.x.copy(), self.xd.copy(), None, None

    def base_wrench(self) -> Array:
        """Wrench (f, m) (6,) that the environment applies on the base, at its origin in its axes."""
        return self.manipulator.base_wrench(self.x, self.xd, self.xdd, **self.environment())

    def environment(self) -> dict[str, Any]:
        """Return what moves the base and acts on links now, as keywords of `Manipulator.base_wrench`."""
        return {'base': self._base, 'wrenches': self._equations.applied(self.x, self.xd)[0] or None}

    def set_environment(self, base: Any = None, wrenches: Wrenches | None = None) -> None:
        """Set the motion of the base and wrenches on links, until the next call.

        base      `BaseMotion`, constant over each step; None: at rest
        wrenches  {link: (force, moment)} applied by the environment, at the origin of the link in its axes; None: none
        Raises StateError where the base floats, or external forces are given in the axes of one at rest.
        """
        if base is not None and (self.manipulator.floating or self._external_forces):
            raise StateError(f"the base of '{self.manipulator.name}' cannot be moved: " + (
                'it floats' if self.manipulator.floating else 'its external forces are those of a base at rest'))
        env = self.manipulator.environment(self.x, base=base, wrenches=wrenches)      # raises for odd ones
        self._base, self._wrenches = base, wrenches
        self._equations.set_environment(base, wrenches)
        if self._integrator is not self._equations:
            self._integrator.set_environment(env)
        if self._stands:
            self._support()

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs to go on from here, as a dictionary of arrays and numbers."""
        return {'steps': self.steps, 'period': self.period, 'substeps': self.substeps,
                'command_timeout': self.command_timeout, 'actuators': list(self.actuators), 'fault': self.fault,
                'held': self._held.copy(), 'age': self._age.copy(), 'x': self.x.copy(), 'xd': self.xd.copy(),
                'command': self.force.copy(), 'kept': self._kept.copy()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot of a plant of the same machine; a fault is no longer one."""
        if list(snapshot['actuators']) != list(self.actuators):
            raise ModelError(f"snapshot of a machine with actuators {', '.join(snapshot['actuators'])}; this one has "
                             f'{", ".join(self.actuators)}')
        self.fault, self.steps = '', int(snapshot['steps'])
        self.x[:], self.xd[:] = snapshot['x'], snapshot['xd']
        self._held[:], self._age[:] = snapshot['held'], snapshot['age']
        self.force[:], self._kept[:] = snapshot['command'], snapshot['kept']

    def step(self, command: npt.ArrayLike | None, dt: float, now: int | None = None) -> None:
        """Advance by dt, a whole number of periods.

        command (actuators,): efforts [N, N m], NaN where there is none, None for none; the last ones last until
        `command_timeout`.  now is for plants whose commands age on another clock; these age in simulated time.
        Raises ShapeError, NonFiniteError, StateError for other shapes, values and times.
        """
        taken, periods = check_step(command, dt, self.actuators, self.period)
        if taken is not None and not self.fault:
            self._take(taken)
        for _ in range(periods):
            self._advance()

    def _take(self, command: Array) -> None:
        given = ~np.isnan(command)
        bounded = np.minimum(np.maximum(command, -self._limit), self._limit)[given]
        self.saturations += bool((bounded != command[given]).any())
        self.force[given], self._held[given], self._age[given] = bounded, False, 0.0

    def _advance(self) -> None:
        if self.fault:
            return
        self.steps += 1
        if self._stands:
            return
        if self._wrenches:
            self.set_environment(self._base, self._wrenches)    # where a wrench acts moves with the machine
        x, xd = self.x.copy(), self.xd.copy()
        try:
            status = self._moved()
            failure = str(self._integrator.error(status, x)) if status else ''
        except PsdynError as error:
            failure = str(error)
        if not failure and not math.isfinite(self.x @ self.x + self.xd @ self.xd):
            failure = 'its positions or rates are not finite, or too large'
        if failure:
            self.x[:], self.xd[:] = x, xd
            self.steps -= 1
            self.fault = f'the motion cannot be integrated beyond {self.time:.3f} s: {failure}'

    def _moved(self) -> Any:
        """Do one period, with brakes on what has no fresh command; return the status of the integrator."""
        late = ~self._held & (self._age >= self.command_timeout)
        if late.any():
            self._hold(late)
            if self._stands:
                return 0
        self._age += self.period
        if self._held.any():
            self._brake()
        return self._integrator.step(self.x, self.xd, self.force)

    def _hold(self, late: Array) -> None:
        """Apply the brakes of actuators late (actuators,) where they are."""
        self._held |= late
        if self._stands:
            self.xd[:] = 0.0
            self._support()
        self._kept[late] = self._actuators()[0][late]
        if late.any() and not self._stands:
            self._brake()

    def _support(self) -> None:
        """Set the efforts that keep the machine at rest where it is."""
        self.force[:] = self.manipulator.inverse_dynamics(self.x, self.xd, self.xd, **self._applied())

    def _brake(self) -> None:
        """Set the efforts that keep the held actuators where they are while the other coordinates move."""
        m, x, xd, held = self.manipulator, self.x, self.xd, self._held
        applied, force = self._applied(), np.where(held, 0.0, self.force)
        free = m.forward_dynamics(x, xd, force, **applied)
        response = [m.forward_dynamics(x, xd, force + unit, **applied) - free for unit in np.eye(force.size)[held]]
        position, velocity, acceleration = self._actuators(free)[:, held]
        rate = 1.0 / (BRAKING * self.period)
        wanted = -2.0 * rate * velocity - rate**2 * (position - self._kept[held])
        response = m.actuator_map(x)[held] @ np.transpose(response)
        self.force[held] = np.linalg.lstsq(response, wanted - acceleration, rcond=None)[0]

    def _actuators(self, xdd: Array | None = None) -> Any:
        """Position, velocity and acceleration (3, actuators) of the actuators for accelerations xdd (dof,)."""
        m = self.manipulator
        names, *rows = m.joint_state(self.x, self.xd, np.zeros(m.dof) if xdd is None else xdd)
        return np.array(rows)[:, [names.index(name) for name in m.actuators]]

    def _applied(self) -> Any:
        """What acts on the machine besides its actuators, as keywords of `forward_dynamics`."""
        wrenches, efforts = self._equations.applied(self.x, self.xd)
        return {'base': self._base, 'wrenches': wrenches or None, 'joint_efforts': efforts or None}
