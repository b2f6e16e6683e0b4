"""A hydraulic machine in time: mechanism, cylinders, valves, friction and supply advance together."""
import numpy as np

from ...kernels.hydraulics import entry as kernels
from ...kernels.hydraulics.elimination import SLOPES
from ...kernels.hydraulics.entry import State
from ...kernels.hydraulics.records import AXIS, CYLINDER, FLUID, QUANTITIES, SUPPLY
from ...kernels.hydraulics.rosenbrock import OPPOSING, Coupled
from ...kernels.runtime.status import EMPTY, NON_FINITE, decode
from ...model.errors import ActuationError, NonFiniteError, ShapeError, StateError
from ..arguments import vector
from ..compilation import HYDRAULIC, HYDRAULIC_LOOPS, Compilation
from ..environment import set_rows
from ..errors_from_status import status_error
from ..integrator import checked_environment, checked_settings

FLOAT = np.dtype(float)


class HydraulicIntegrator:
    """Advances the state of a hydraulic machine by one period at a time; allocates nothing a step.

    manipulator   whose actuated joints have no friction of their own: that is in `axes`
    axes          AXIS (actuators,), in the order of `manipulator.actuators`
    cylinders     CYLINDER (cylinders,)
    supply        SUPPLY (1,)
    period        [s], in `substeps` steps of the method (see `kernels/hydraulics/rosenbrock.py`)

    The records are kept by reference: what is written into them counts from the next step on.  One instance serves
    one thread at a time.  Stops of joints that are neither actuated nor coupled to actuators are not modelled.
    Raises ActuationError where the base floats, ShapeError for records that do not fit, StateError for settings.
    """

    def __init__(self, manipulator, axes, cylinders, supply, period, substeps=2):
        self.step_size, self.substeps, *_ = checked_settings(period, substeps, 0.0, 0.0)
        self.manipulator, self.axes, self.cylinders, self.supply = manipulator, axes, cylinders, supply
        self._check_records()
        n, m, c = manipulator.dof, len(manipulator.actuators), len(cylinders)
        self._shapes = {'x': (n,), 'xd': (n,), 'fluid': (c, FLUID), 'bristles': (m,), 'supply_pressure': (1,),
                        'xdd': (n,), 'force': (m,), 'telemetry': (c, len(QUANTITIES))}
        self.state_size = 2 * n + FLUID * c + m + 1
        self.coupled = Coupled(
            axes, cylinders, supply, np.zeros(m, OPPOSING), np.zeros(c, SLOPES), np.zeros((5, self.state_size)),
            np.zeros((7, m)), np.zeros((2, n)), np.zeros((2, n, n)), np.zeros((m, n)))
        self._handle = manipulator.handle()
        self._handle.start_from_last()
        self.arguments = self._handle.tree, self._handle.loops, self.coupled
        with Compilation(HYDRAULIC if self._handle.loops is None else HYDRAULIC_LOOPS) as compilation:
            compilation.finish(self)

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

        As `Manipulator.environment` returns them: twist and spatial acceleration of the base, then wrenches on the
        bodies in their kernel frames.
        """
        env = checked_environment(env, len(self._handle.modules))
        if not np.isfinite(env).all():
            raise NonFiniteError('env is not finite')
        set_rows(self._handle, env)

    def step(self, x, xd, fluid, bristles, supply_pressure, xdd):
        """Advance a state in place by one period; return a status, see `error`.

        x, xd, xdd (dof,); fluid (cylinders, FLUID) [Pa, 1, 1/s]; bristles (actuators,) [m]; supply_pressure (1,) [Pa]:
        writeable, contiguous arrays of float64.  xdd: mean acceleration of the last sub-step.  Where the status is not
        0 the state is that of the last good sub-step.
        """
        arrays = x, xd, fluid, bristles, supply_pressure, xdd
        self._check(arrays)
        return kernels.step(*self.arguments, State(*arrays[:5]), xdd, self.step_size / self.substeps, self.substeps)

    def observe(self, x, xd, fluid, bristles, supply_pressure, xdd, force, telemetry):
        """Write accelerations xdd (dof,), net forces (actuators,) and telemetry of a state; return a status.

        force: of drive, friction, stops and brake on the mechanism [N, N m].  telemetry (cylinders, QUANTITIES): flows
        through the ports into the chambers [m^3/s], spool position and clipped command, friction positive against
        positive motion.
        """
        arrays = x, xd, fluid, bristles, supply_pressure, xdd, force, telemetry
        self._check(arrays)
        return kernels.observe(*self.arguments, State(*arrays[:5]), xdd, force, telemetry)

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
        status = kernels.rates_of(*self.arguments, self.manipulator.dof, state, out)
        if status != 0:
            raise self.error(status, state[:self.manipulator.dof])
        return out

    def error(self, status, x):
        """Return the named error of a status that is not 0, at coordinates x."""
        m, (code, k) = self.manipulator, decode(status)
        if code == EMPTY:
            c = self.cylinders[k]
            name, position = m.actuators[c['axis']], self._actuator_positions(x)[c['axis']]
            unit = 'm' if m.machine.description.joints[name].type == 'prismatic' else 'rad'
            return StateError(f"'{name}': a chamber has no volume left at {position:.6g} {unit}, with a stroke from "
                              f"{c['start']:.6g} to {c['start'] + c['stroke']:.6g} {unit}")
        if code == NON_FINITE:
            return NonFiniteError(f"'{m.name}': rates, pressures or forces are not finite, or too large")
        return status_error(m, status, {'x': x})

    def _actuator_positions(self, x):
        names, position, *_ = self.manipulator.joint_state(x)
        return [position[names.index(name)] for name in self.manipulator.actuators]

    def _check(self, arrays):
        """Raise ShapeError for arrays that kernels are not compiled for; they are the first of `_shapes`."""
        for array, shape in zip(arrays, self._shapes.values()):
            if type(array) is not np.ndarray or array.dtype is not FLOAT or not array.flags.carray \
                    or array.shape != shape:
                raise self._shape_error()

    def _shape_error(self):
        return ShapeError(f'expected writeable, contiguous float64 arrays of the shapes {self._shapes}')
