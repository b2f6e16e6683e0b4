"""A hydraulic machine in time: mechanism, cylinders, valves, friction and supply advance together."""
import numpy as np

from ...assembly.clusters import fresh
from ...kernels.hydraulics import entry as coupled_entry
from ...kernels.hydraulics import entry_general as coupled_general
from ...kernels.hydraulics.elimination import SLOPES
from ...kernels.hydraulics.equations import volumes
from ...kernels.hydraulics.records import AXIS, CYLINDER, FLUID, QUANTITIES, SUPPLY
from ...kernels.hydraulics.rosenbrock import EMPTY, OPPOSING, Coupled
from ...kernels.rigid_body.entry import NON_FINITE
from ...kernels.rigid_body.records import WORK
from ...model.errors import ActuationError, NonFiniteError, ShapeError, StateError
from ..arguments import vector
from ..compilation import HYDRAULIC, HYDRAULIC_GENERAL, Compilation
from ..failures import general_error, state_error
from ..integrator import checked_environment, checked_settings


class HydraulicIntegrator:
    """Advances the state of a hydraulic machine by one period at a time; allocates nothing a step.

    manipulator   whose actuated joints have no friction of their own: that is in `axes`
    axes          AXIS (actuators,), in the order of `manipulator.actuators`
    cylinders     CYLINDER (cylinders,)
    supply        SUPPLY (1,)
    period        [s], in `substeps` steps of the method (see `kernels.coupled`)

    The records are kept by reference: what is written into them counts from the next step on.  One instance serves
    one thread at a time.  Stops of joints that are neither actuated nor tied to actuators are not modelled.
    Raises ActuationError where the base floats, ShapeError for records that do not fit, StateError for settings.
    """

    def __init__(self, manipulator, axes, cylinders, supply, period, substeps=2):
        self.step_size, self.substeps, *_ = checked_settings(period, substeps, 0.0, 0.0)
        self.manipulator, self.axes, self.cylinders, self.supply = manipulator, axes, cylinders, supply
        self._check_records()
        n, m, c = manipulator.dof, len(manipulator.actuators), len(cylinders)
        self._shapes = {'x': (n,), 'xd': (n,), 'fluid': (c, FLUID), 'bristles': (m,), 'supply_pressure': (1,),
                        'xdd': (n,), 'force': (m,), 'telemetry': (c, len(QUANTITIES))}
        self._step_shapes = tuple(self._shapes.values())[:6]
        self.state_size = 2 * n + FLUID * c + m + 1
        self.coupled = Coupled(
            axes, cylinders, supply, np.zeros(m, OPPOSING), np.zeros(c, SLOPES), np.zeros((5, self.state_size)),
            np.zeros((7, m)), np.zeros((2, n)), np.zeros((2, n, n)))
        self._general = manipulator.machine.general
        mods = manipulator.records.mods
        self._machine = mods, np.zeros(len(mods), WORK)
        self._kernels = (coupled_entry.step_coupled, coupled_entry.rates_coupled, coupled_entry.observe_coupled)
        # what follows env: zeros of a base at rest, scratch
        self._beside = np.zeros((2, 6)), np.zeros((3, n))
        if self._general:
            self._kernels = (coupled_general.step_general, coupled_general.rates_general,
                             coupled_general.observe_general)
            self._beside = (np.zeros((2, 6)), fresh(manipulator.loops), np.zeros((2, 6)), np.zeros(len(mods)),
                            np.zeros((3, n)), np.zeros((m, n)))
        self.set_environment(manipulator.records.env)
        Compilation(HYDRAULIC_GENERAL if self._general else HYDRAULIC).finish(self)

    def _check_records(self):
        names = self.manipulator.actuators
        if self.manipulator.floating:
            raise ActuationError(f"'{self.manipulator.name}' has a floating base; a hydraulic machine stands on a base "
                                 'that rests, or moves as `set_environment` says')
        for what, records, dtype, count in (('axes', self.axes, AXIS, len(names)),
                                            ('cylinders', self.cylinders, CYLINDER, None),
                                            ('supply', self.supply, SUPPLY, 1)):
            if not isinstance(records, np.ndarray) or records.dtype != dtype or records.ndim != 1 \
                    or not records.flags.c_contiguous or not records.flags.writeable:
                raise ShapeError(f'{what}: expected a writeable, contiguous array of {what.upper()} records in one row')
            if count is not None and len(records) != count:
                raise ShapeError(f"{what} has {len(records)} records; '{self.manipulator.name}' needs {count}")
        for k, i in enumerate(self.cylinders['axis']):
            if not 0 <= i < len(names) or self.axes['cylinder'][i] != k:
                raise ShapeError(f'cylinder {k} is on axis {i}, which names another cylinder, or none')

    def set_environment(self, env):
        """Set base motion and external wrenches from the next step on: rows (2, 6) or (2 + 3 modules, 6), copied.

        As `kernels.forward.forward` takes them: twist and spatial acceleration of the base, then wrenches on the
        bodies in their kernel frames.
        """
        env = checked_environment(env, len(self._machine[0]))
        if not np.isfinite(env).all():
            raise NonFiniteError('env is not finite')
        self.arguments = (*self._machine, env, *self._beside, self.coupled)

    def step(self, x, xd, fluid, bristles, supply_pressure, xdd):
        """Advance a state in place by one period; return a status: 0, or what `error` tells of.

        x, xd, xdd (dof,); fluid (cylinders, FLUID) [Pa, 1, 1/s]; bristles (actuators,) [m]; supply_pressure (1,) [Pa]:
        writeable, contiguous arrays of float64.  xdd: mean acceleration of the last sub-step.  Where the status is not
        0 the state is that of the last good sub-step.
        """
        try:
            if (x.shape, xd.shape, fluid.shape, bristles.shape, supply_pressure.shape, xdd.shape) \
                    == self._step_shapes:
                return self._kernels[0](*self.arguments, x, xd, fluid, bristles, supply_pressure, xdd,
                                        self.step_size / self.substeps, self.substeps)
        except (AttributeError, TypeError):
            pass        # no arrays, or such as the compiled signature does not take
        raise self._shape_error()

    def observe(self, x, xd, fluid, bristles, supply_pressure, xdd, force, telemetry):
        """Write accelerations xdd (dof,), net forces (actuators,) and telemetry of a state; return a status.

        force: of drive, friction, stops and brake on the mechanism [N, N m].  telemetry (cylinders, QUANTITIES): flows
        through the ports into the chambers [m^3/s], spool position and clipped command, friction positive against
        positive motion.
        """
        shapes = tuple(np.shape(a) for a in (x, xd, fluid, bristles, supply_pressure, xdd, force, telemetry))
        if shapes == tuple(self._shapes.values()):
            try:
                return self._kernels[2](*self.arguments, x, xd, fluid, bristles, supply_pressure, xdd, force,
                                        telemetry)
            except TypeError:
                pass
        raise self._shape_error()

    def pack(self, x, xd, fluid, bristles, supply_pressure):
        """Return a state as one row: x, xd, fluid by cylinders, bristles, supply pressure."""
        state = np.concatenate([np.ravel(part) for part in (x, xd, fluid, bristles, supply_pressure)]).astype(float)
        if state.size != self.state_size:
            raise self._shape_error()
        return state

    def unpack(self, state):
        """Return (x, xd, fluid, bristles, supply_pressure), views of a state row or of rows (..., state)."""
        n, m, c = self._shapes['x'][0], self._shapes['bristles'][0], len(self.cylinders)
        x, xd, fluid, bristles, pressure = np.split(state, np.cumsum([n, n, FLUID * c, m]), axis=-1)
        return x, xd, fluid.reshape(*state.shape[:-1], c, FLUID), bristles, pressure

    def rates(self, state):
        """Return d/dt of a state row (see `pack`); raise what `error` returns where there is none."""
        state = vector('state', state, self.state_size).copy()
        out = np.zeros(self.state_size)
        status = self._kernels[1](*self.arguments, self.manipulator.dof, state, out)
        if status != 0:
            raise self.error(status, state[:self.manipulator.dof])
        return out

    def error(self, status, x):
        """Return the named error of a status that is not 0, at coordinates x."""
        m = self.manipulator
        if status == EMPTY:
            for c in self.cylinders:
                position = self._actuator_positions(x)[c['axis']]
                if not min(volumes(c, position)) > 0.0:
                    return StateError(f"cylinder '{m.actuators[c['axis']]}': a chamber has no volume left at "
                                      f"{position:.6g} m of its stroke of {c['stroke']:.6g} m")
        if status == NON_FINITE or status == EMPTY:
            return NonFiniteError(f"'{m.name}': rates, pressures or forces are not finite, or too large")
        if self._general:
            return general_error(m, status, {'x': x})
        return state_error(m.machine, status, x, {'x': x})

    def _actuator_positions(self, x):
        names, position, *_ = self.manipulator.joint_state(x)
        return [position[names.index(name)] for name in self.manipulator.actuators]

    def _shape_error(self):
        return ShapeError(f'expected writeable, contiguous float64 arrays of the shapes {self._shapes}')
