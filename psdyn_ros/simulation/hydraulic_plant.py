"""A machine driven by cylinders, in simulated time: commands of valves, pressures, speeds or efforts in, motion out.

Mechanism, chambers, spools and supply advance together (`api/hydraulics/integrator.py`).  Every actuator has the safe
output that its machine declares, and takes it whenever it has no fresh command: until the first one, and again when the
last one is older than `ttl`.  Force is never just taken away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..api.arguments import Array, Wrenches
from ..api.environment import BaseMotion
from ..api.hydraulics.integrator import HydraulicIntegrator
from ..api.hydraulics.statics import (
    CHAMBER_B_PRESSURE_SHARE,
    equilibrium_state,
    frictionless,
    holding_efforts,
    hydraulic_records,
    resting_line,
)
from ..api.manipulator import Manipulator
from ..api.results.limits import check_able
from ..kernels.control.valve_inversion import pressure_command, velocity_command
from ..kernels.hydraulics.records import (
    FLUID,
    FORCE,
    MEASURED_PRESSURE,
    PRESSURE_A,
    PRESSURE_B,
    QUANTITIES,
    SPOOL,
    SPOOL_RATE,
    VALVE,
)
from ..model.errors import ModelError, PsdynError, StateError, did_you_mean
from ..model.parameters.hydraulics import BRAKE, MODES, Hydraulics
from ..model.units import SECOND
from .disturbances import Disturbances
from .measured_cylinders import MeasuredCylinders
from .plant import FAULT, HELD, RUNNING, check_step
from .watchdog import Watchdog

PRESSURE_BANDWIDTH = 60.0   # rad/s of the pressure loop in a valve's own electronics


class HydraulicPlant:
    """The hydraulic plant; `position` and `command` are in the order of the machine's actuators.

    manipulator  whose base stands or is moved
    hydraulics   `Hydraulics` of this machine
    period       s, the time of one step; commands are constant during it
    substeps     of the solver in a period
    ttl          s after which a command is no longer obeyed
    position     (nx,) to start from in static equilibrium; the initial position of the machine where it is None
    modes        {actuator: one of MODES}, where they are to be others than `hydraulics` says
    seed         kept in snapshots, for what is random around the plant
    """

    def __init__(self, manipulator: Manipulator, hydraulics: Hydraulics, *, period: float, substeps: int = 2,
                 ttl: float = 0.02, position: npt.ArrayLike | None = None, modes: Mapping[str, str] | None = None,
                 seed: int = 0) -> None:
        self.manipulator, self.hydraulics = manipulator, hydraulics
        self.period, self.substeps, self.ttl, self.seed = period, substeps, ttl, seed
        self.actuators = tuple(manipulator.actuators)
        self._joint_rows = [manipulator.joints.index(name) for name in self.actuators]
        self.modes = self._checked_modes(modes)
        check_able(manipulator, 'effort', [name for name, mode in zip(self.actuators, self.modes) if mode == 'effort'])
        self.axes, self.cylinder_records, self.supply = hydraulic_records(manipulator, hydraulics)
        self.cylinders = tuple(self.actuators[axis] for axis in self.cylinder_records['axis'])
        self._rows = {name: row for row, name in enumerate(self.cylinders)}
        self.declared_axes, self._declared_supply = self.axes.copy(), self.supply.copy()
        self._base: BaseMotion | None = None
        self._wrenches: Wrenches | None = None
        self._start = np.array(manipulator.initial_position if position is None else position, dtype=float)
        self.x = self._start.copy()
        self._disturbances = Disturbances(self)
        self._measured = MeasuredCylinders(self)
        self._watchdog = Watchdog(self.actuators, ttl)
        self.carry(manipulator, 1.0)
        n, count = manipulator.dof, len(self.actuators)
        self.xd, self.xdd = np.zeros(n), np.zeros(n)
        self.fluid = np.zeros((len(self.cylinders), FLUID))
        self.bristles, self.supply_pressure = np.zeros(count), np.zeros(1)
        self.force = np.zeros(count)                # N or N m on the mechanism: effort less friction, with end stops
        self.telemetry = np.zeros((len(self.cylinders), len(QUANTITIES)))
        self.command = np.zeros(count)              # the last one taken of each actuator, in its mode
        self.safe = np.ones(count, dtype=bool)      # at the safe output
        self.saturations = 0
        most = {'valve': 1.0, 'pressure': float(self.supply['pressure'][0]), 'velocity': math.inf}
        self._bounds = np.array([most.get(mode, effort) for mode, effort in
                                 zip(self.modes, manipulator.limits.effort)])
        self.reset()
        if self.fault:
            raise StateError(f"'{manipulator.name}': {self.fault}")

    def __repr__(self) -> str:
        return f'<HydraulicPlant of {self.manipulator!r}: {self.state}, {self.time:g} s>'

    def _checked_modes(self, given: Mapping[str, str] | None) -> tuple[str, ...]:
        modes = dict(self.hydraulics.command_modes)
        for name, mode in (given or {}).items():
            if name not in modes:
                raise ModelError(f"command mode of '{name}': no such actuator{did_you_mean(name, modes)}")
            allowed = MODES if name in self.hydraulics.cylinders else ('effort',)
            if mode not in allowed:
                raise ModelError(f"command mode '{mode}' of '{name}': expected one of {', '.join(allowed)}"
                                 f'{did_you_mean(mode, allowed)}')
            modes[name] = mode
        for name, cylinder in self.hydraulics.cylinders.items():
            if modes[name] == 'velocity' and not cylinder.valve.load_independent:
                raise ModelError(f"command mode 'velocity' of '{name}': its valve has no pressure compensator, so its "
                                 'flow depends on the load; expected `compensated: true`, `flow_sharing: true` or '
                                 'another mode')
        return tuple(modes[name] for name in self.actuators)

    def carry(self, manipulator: Manipulator, inertia: float) -> None:
        """Go on with the mechanism of this manipulator, its masses and inertias multiplied by a factor."""
        self._mechanism = _scaled(frictionless(manipulator, self.hydraulics), inertia)
        self._integrators: dict[int, HydraulicIntegrator] = {}
        self.set_environment(self._base, self._wrenches)

    def _integrator(self, periods: int = 1) -> HydraulicIntegrator:
        """The solver for so many periods in one call."""
        if periods not in self._integrators:
            made = HydraulicIntegrator(self._mechanism, self.axes, self.cylinder_records, self.supply,
                                       periods * self.period, periods * self.substeps)
            made.set_environment(self._env)
            self._integrators[periods] = made
        return self._integrators[periods]

    def reset(self) -> None:
        """Back to the start: static equilibrium, every actuator at its safe output; disturbances stay.

        The pressures are those of the supply as it was declared.  What it cannot hold is a fault.
        """
        self.steps, self.fault, self._last = 0, '', 0
        self._watchdog.reset()
        self._measured.reset()
        self.x[:], self.xd[:], self.command[:] = self._start, 0.0, 0.0
        self.axes['drive'], self.axes['effort'] = FORCE, 0.0
        self.axes['drive'][self.cylinder_records['axis']] = VALVE
        self.axes['braked'] = [self.hydraulics.safe_outputs[name] == BRAKE for name in self.actuators]
        for field in ('brake_stiffness', 'brake_damping'):
            self.axes[field] = self.declared_axes[field]
        self.cylinder_records['command'] = 0.0
        self.safe[:] = True
        self.set_environment(self._base, self._wrenches)
        try:
            self.fluid[:], self.bristles[:], _ = equilibrium_state(
                self._mechanism, self.hydraulics, self.axes, self.cylinder_records, self._declared_supply, self.x,
                base=self._base, wrenches=self._wrenches)
        except StateError as error:
            self.fault = f'it cannot stand still at its start: {error}'
            return
        self.supply_pressure[:] = resting_line(self.supply[0])
        self._observe()

    @property
    def state(self) -> str:
        """RUNNING, HELD while any actuator is at its safe output, or FAULT."""
        return FAULT if self.fault else HELD if self.safe.any() else RUNNING

    @property
    def time(self) -> float:
        """Simulated seconds since the start."""
        return self.steps * self.period

    @property
    def held(self) -> tuple[str, ...]:
        """Names of the actuators at their safe outputs."""
        return tuple(name for name, safe in zip(self.actuators, self.safe) if safe)

    @property
    def frozen(self) -> dict[str, str]:
        """{cylinder under test: why it is frozen}."""
        return self._measured.frozen

    def set_environment(self, base: BaseMotion | None = None, wrenches: Wrenches | None = None) -> None:
        """The motion of the base (`BaseMotion`) and wrenches {link: (force, moment)} on links, until changed."""
        self._env = self.manipulator.environment(self.x, base=base, wrenches=wrenches)      # raises for odd ones
        self._base, self._wrenches = base, wrenches
        for integrator in self._integrators.values():
            integrator.set_environment(self._env)

    def step(self, command: npt.ArrayLike | None, dt: float, now: int | None = None) -> None:
        """Advance by dt, a whole number of periods.

        command  (actuators,) each in its mode: -1 to 1, Pa, m/s, N or N m; NaN where there is none, None for none
        now      ns on the clock of the ages, a steady one; None: simulated time
        Raises ShapeError, NonFiniteError, StateError for other shapes, values and times.
        """
        taken, left = check_step(command, dt, self.actuators, self.period)
        if taken is not None and not self.fault:
            self._take(taken, self._now(now))
        while left:
            periods = left if self._undisturbed(left, now) else 1
            self._advance(periods, now)
            left -= periods

    def _undisturbed(self, periods: int, now: int | None) -> bool:
        """Whether nothing but the solver has anything to do for so many periods."""
        if periods == 1 or self._wrenches or self._measured.any or self._loops_in_valves(~self.safe):
            return False
        then = self._now(now) + (0 if now is not None else round((periods - 1) * self.period * SECOND))
        return not (self._watchdog.expires_by(then) & ~self.safe).any()

    def _loops_in_valves(self, obeying: Array) -> bool:
        return any(mode in ('pressure', 'velocity') and obeys for mode, obeys in zip(self.modes, obeying))

    def _now(self, now: int | None) -> int:
        return round(self.time * SECOND) if now is None else now

    def _take(self, command: Array, now: int | None) -> None:
        given = ~np.isnan(command)
        value = np.where(given, command, self.command)
        bounded = np.minimum(np.maximum(value, -self._bounds), self._bounds)
        self.saturations += bool((bounded[given] != value[given]).any())
        self.command[:] = bounded
        self._watchdog.feed(given, now)
        for axis in np.flatnonzero(given & self.safe):
            self._release(axis)

    def _release(self, axis: Any) -> None:
        """Obey commands from here on."""
        self.safe[axis] = False
        if self._measured.drives(axis):
            return
        record = self.axes[axis]
        record['braked'] = 0
        if self.modes[axis] == 'effort':
            record['drive'] = FORCE

    def _make_safe(self, axis: Any, hold: Array) -> None:
        """Take the declared safe output; hold (actuators,) are efforts that keep the machine at rest."""
        self.safe[axis] = True
        if self._measured.drives(axis):     # a real cylinder's valve is its own
            return
        name, record = self.actuators[axis], self.axes[axis]
        row = self._rows.get(name)
        if row is not None:
            self.cylinder_records['command'][row] = 0.0
            record['drive'] = VALVE
        record['effort'] = 0.0
        if self.hydraulics.safe_outputs[name] == BRAKE:
            self.engage_brake(axis, 0.0 if row is not None else hold[axis])

    def engage_brake(self, axis: Any, force: float) -> None:
        """Hold an actuator where it is by its brake, which gives `force` there."""
        position, record = self.actuator_motion()[0], self.axes[axis]
        record['braked'], record['brake_position'], record['brake_force'] = 1, position[axis], force

    def _close_chambers(self, row: Any, force: float) -> None:
        """Set the pressures with which closed chambers give a force."""
        cylinder, supply = self.cylinder_records[row], self.supply[0]
        low, high = supply['return_pressure'], supply['pressure']
        # no lower than with the return pressure in chamber A
        b = max(low + CHAMBER_B_PRESSURE_SHARE * (high - low), (low * cylinder['area_a'] - force) / cylinder['area_b'])
        self.fluid[row, PRESSURE_B] = b
        self.fluid[row, PRESSURE_A] = (force + b * cylinder['area_b']) / cylinder['area_a']
        self.fluid[row, (SPOOL, SPOOL_RATE)] = 0.0

    @property
    def effort(self) -> Array:
        """(actuators,) N, N m: of the drives, p_a A_a - p_b A_b of cylinders, and of brakes; friction not taken off."""
        axes = self.axes
        effort = axes['effort'].copy()
        for record, fluid in zip(self.cylinder_records, self.fluid):
            if axes['drive'][record['axis']] in (VALVE, MEASURED_PRESSURE):
                effort[record['axis']] = (record['area_a'] * fluid[PRESSURE_A] - record['area_b'] * fluid[PRESSURE_B])
        if not axes['braked'].any():
            return effort
        position, velocity, _ = self.actuator_motion()
        return effort + np.where(axes['braked'], axes['brake_force'] - axes['brake_damping'] * velocity
                                 - axes['brake_stiffness'] * (position - axes['brake_position']), 0.0)

    @property
    def spool(self) -> Array:
        """(cylinders,) openings of the valves, -1 to 1."""
        return self.fluid[:, SPOOL].copy()

    def measure(self) -> tuple[Array, Array, Array, float]:
        """Return (x, xd, pressures (cylinders, 2), supply) without errors."""
        pressures = self.fluid[:, (PRESSURE_A, PRESSURE_B)]
        return self.x.copy(), self.xd.copy(), pressures.copy(), float(self.supply_pressure[0])

    def holding_efforts(self) -> Array:
        """Efforts (actuators,) that keep the machine at rest where it is."""
        return holding_efforts(self._mechanism, self.x, self._base, self._wrenches)

    def actuator_motion(self) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration of the actuators, three arrays (actuators,)."""
        _, *rows = self.manipulator.joint_state(self.x, self.xd, self.xdd)
        position, velocity, acceleration = (np.asarray(row)[self._joint_rows] for row in rows)
        return position, velocity, acceleration

    def _advance(self, periods: int, given: int | None) -> None:
        now = self._last = self._now(given)     # ages are judged at the beginning of a period
        if self.fault:
            return
        self.steps += periods
        late = self._watchdog.expired(now) > self.safe
        if late.any():
            hold = self.holding_efforts()
            for axis in np.flatnonzero(late):
                self._make_safe(axis, hold)
        self._measured.update(now)
        self._drive()
        if self._wrenches:
            self.set_environment(self._base, self._wrenches)     # where a wrench acts moves with the machine
        before = [array.copy() for array in self._states()]
        try:
            status = self._integrator(periods).step(self.x, self.xd, self.fluid, self.bristles, self.supply_pressure,
                                                    self.xdd)
            failure = str(self._integrator().error(status, self.x)) if status else ''
        except PsdynError as error:
            failure = str(error)
        if not failure:
            self._measured.finish_step()
            failure = self._observe()
        if failure:
            for array, last in zip(self._states(), before):
                array[:] = last
            self.steps -= periods
            if periods > 1:     # one of them fails, and the others are done
                for _ in range(periods):
                    self._advance(1, given)
                return
            self.fault = f'the motion cannot be integrated beyond {self.time:.3f} s: {failure}'

    def _states(self) -> tuple[Array, ...]:
        return self.x, self.xd, self.fluid, self.bristles, self.supply_pressure

    def _drive(self) -> None:
        """Put the commands into the records that the solver reads."""
        motion = None
        for axis, mode in enumerate(self.modes):
            if self.safe[axis] or self._measured.drives(axis):
                continue
            value, record = self.command[axis], self.axes[axis]
            if mode == 'effort':
                record['effort'] = value
                continue
            row = self._rows[self.actuators[axis]]
            if mode == 'valve':
                self.cylinder_records['command'][row] = value
                continue
            if motion is None:
                motion = self.actuator_motion()
            cylinder = self.cylinder_records[row:row + 1]
            if mode == 'pressure':
                u = pressure_command(cylinder, self.supply, self.supply_pressure[0],
                                     (self.fluid[row, PRESSURE_A], self.fluid[row, PRESSURE_B]), motion[0][axis],
                                     motion[1][axis], value, PRESSURE_BANDWIDTH)
            else:
                u = velocity_command(cylinder, value)
            self.cylinder_records['command'][row] = u

    def _observe(self) -> str:
        """Fill xdd, force and telemetry; what failed, or ''."""
        status = self._integrator().observe(self.x, self.xd, self.fluid, self.bristles, self.supply_pressure, self.xdd,
                                            self.force, self.telemetry)
        if status:
            return str(self._integrator().error(status, self.x))
        # chambers that the solver leaves out have the pressures of the force that their cylinder gives
        drives = self.axes['drive'][self.cylinder_records['axis']]
        left_out = np.flatnonzero((drives != VALVE) & (drives != MEASURED_PRESSURE))
        if left_out.size:
            effort = self.effort
            for row in left_out:
                self._close_chambers(row, effort[self.cylinder_records['axis'][row]])
            self.telemetry[left_out, :2] = self.fluid[left_out][:, (PRESSURE_A, PRESSURE_B)]
        return ''

    def base_wrench(self) -> Array:
        """Wrench (f, m) (6,) that the environment applies on the base, at its origin in its axes."""
        return self._mechanism.base_wrench(self.x, self.xd, self.xdd, **self.environment())

    def environment(self) -> dict[str, Any]:
        """Return what moves the base and acts on links now, as keywords of `Manipulator.base_wrench`."""
        return {'base': self._base, 'wrenches': self._wrenches}

    def measure_cylinder(self, cylinder: str, *, force: float | None = None, pressures: npt.ArrayLike | None = None,
                         now: int | None = None, stamp: float | None = None) -> None:
        """Let a real cylinder move the load: its force [N], friction in it, or its two pressures [Pa].

        now    ns when the measurement came, on the clock of `step`
        stamp  s of simulated time whose load motion it answers; None: that of now
        Raises ModelError where the machine has no such cylinder.
        """
        if cylinder not in self._rows:
            raise ModelError(f"cylinder '{cylinder}': no such cylinder{did_you_mean(str(cylinder), self.cylinders)}")
        self._measured.take(cylinder, force, pressures, self._now(now), stamp)

    def load_motion(self, cylinder: str) -> tuple[float, float, float]:
        """Position, velocity, acceleration (m, m/s, m/s^2) that a rig must impose on the rod of this cylinder."""
        axis = self.actuators.index(cylinder)
        position, velocity, acceleration = (float(row[axis]) for row in self.actuator_motion())
        return position, velocity, acceleration

    def disturb(self, target: str, quantity: str, value: float) -> None:
        """Let a fault of the machine begin, see `Disturbances`."""
        self._disturbances.set(target, quantity, value)

    def undisturb(self, target: str, quantity: str) -> None:
        """Let it end."""
        self._disturbances.clear(target, quantity)

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs to go on from here, as a dictionary of arrays and numbers."""
        return {'steps': self.steps, 'seed': self.seed, 'period': self.period, 'substeps': self.substeps,
                'ttl': self.ttl, 'modes': list(self.modes), 'actuators': list(self.actuators), 'fault': self.fault,
                'disturbances': self._disturbances.as_list(), 'command': self.command.copy(), 'safe': self.safe.copy(),
                'ages': self._watchdog.ages(self._last), 'x': self.x.copy(), 'xd': self.xd.copy(),
                'fluid': self.fluid.copy(), 'bristles': self.bristles.copy(),
                'supply_pressure': self.supply_pressure.copy(), 'axes': self.axes.copy(),
                'cylinders': self.cylinder_records.copy(), 'supply': self.supply.copy()}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot of a plant of the same machine; a fault is no longer one."""
        if list(snapshot['actuators']) != list(self.actuators):
            raise ModelError(f"snapshot of a machine with actuators {', '.join(snapshot['actuators'])}; this one has "
                             f'{", ".join(self.actuators)}')
        self.reset()
        self._disturbances.restore(snapshot['disturbances'])
        self.steps = int(snapshot['steps'])
        for array, name in ((self.x, 'x'), (self.xd, 'xd'), (self.fluid, 'fluid'), (self.bristles, 'bristles'),
                            (self.supply_pressure, 'supply_pressure'), (self.command, 'command'), (self.safe, 'safe'),
                            (self.axes, 'axes'), (self.cylinder_records, 'cylinders'), (self.supply, 'supply')):
            array[...] = snapshot[name]
        self._last = max(0, self.steps - 1) * round(self.period * SECOND)
        for axis, age in enumerate(snapshot['ages']):
            if age >= 0:
                self._watchdog.feed(np.arange(self.safe.size) == axis, self._last - int(age))
        self._observe()


def _scaled(manipulator: Manipulator, factor: float) -> Manipulator:
    """Return a new Manipulator with all masses and inertias multiplied by a factor."""
    description = manipulator.machine.description
    links = dict(description.links)
    for name, link in links.items():
        if link.inertial is not None:
            inertial = link.inertial
            links[name] = replace(link, inertial=replace(inertial, mass=factor * inertial.mass,
                                                         inertia=factor * inertial.inertia))
    return manipulator.rebuilt(replace(description, links=links))
