"""The mechanism in time, at constant effort between two calls."""
import numpy as np

from ..kernels.loops.records import SCRATCH
from ..kernels.rigid_body.entry import NON_FINITE
from ..kernels.rigid_body.general_entry import runge_kutta_general
from ..kernels.rigid_body.records import WORK
from ..kernels.rigid_body.time_step import runge_kutta
from ..model.errors import NonFiniteError, ShapeError, StateError
from .arguments import vector
from .failures import general_error, state_error


def checked_settings(step, substeps, stiffness, damping):
    """Return (step, substeps, stiffness, damping) as numbers; raise StateError where one makes no sense."""
    step_size, hard, loss = (float(vector(what, [value], 1)[0]) for what, value in (
        ('step', step), ('stiffness', stiffness), ('damping', damping)))
    if step_size <= 0.0 or hard < 0.0 or loss < 0.0:
        raise StateError(f'step = {step} must be positive, stiffness = {stiffness} and damping = {damping} '
                         'must not be negative')
    if substeps != int(vector('substeps', [substeps], 1)[0]) or substeps < 1:
        raise StateError(f'substeps = {substeps}: expected a whole number from 1 on')
    return step_size, int(substeps), hard, loss


def checked_environment(env, modules):
    """Return a copy of the rows of base motion and wrenches; raise ShapeError where they are not of this machine."""
    env = np.array(env, dtype=float, order='C')
    if env.shape not in ((2, 6), (2 + 3 * modules, 6)):
        raise ShapeError(f'env has shape {env.shape}; expected (2, 6) or ({2 + 3 * modules}, 6)')
    return env


class Integrator:
    """Advances a state by one step; owns its scratch memory, allocates nothing a step."""

    def __init__(self, machine, env, step, substeps, stiffness, damping):
        self._machine, self._env = machine, env
        self.step_size, self._substeps, self._stiffness, self._damping = checked_settings(
            step, substeps, stiffness, damping)
        n = len(machine.modules)
        self._work, self._scratch, self._shape = np.zeros(n, WORK), np.zeros((7, n)), (n,)

    def set_environment(self, env):
        """Set the base motion and external wrenches of all further steps, constant over each.

        env (2, 6): twist and spatial acceleration of the base with gravity in it, in base axes; or (2 + 3 modules, 6)
        with wrenches on the link, barrel and rod of each module in their kernel frames.
        """
        self._env = checked_environment(env, self._shape[0])

    def step(self, x, xd, f):
        """Advance x, xd (dof,) in place under efforts f, contiguous arrays of float64; return a status, see `error`.

        Runge-Kutta of order 4; Hunt-Crossley stops at the joint limits.
        """
        try:
            if x.shape == xd.shape == f.shape == self._shape:
                return runge_kutta(self._machine.records, self._work, self._env, x, xd, f, self.step_size,
                                   self._substeps, self._stiffness, self._damping, self._scratch)
        except (AttributeError, TypeError):
            pass        # no arrays, or such as the compiled signature does not take
        raise ShapeError(f'x, xd and f must be writeable, contiguous float64 arrays of shape {self._shape}')

    def error(self, status, x):
        """Return the named error of a status that is not 0."""
        if status == NON_FINITE:
            return NonFiniteError(f"'{self._machine.name}': efforts or rates are not finite, or too large")
        return state_error(self._machine, status, x, {'x': x})


class GeneralIntegrator:
    """The same for a general machine: x (nx,), xd (dof,), f (actuators,), efforts on passive joints (modules,)."""

    def __init__(self, manipulator, step, substeps, stiffness, damping):
        self._manipulator = manipulator
        self.step_size, self._substeps, self._stiffness, self._damping = checked_settings(
            step, substeps, stiffness, damping)
        loops = manipulator.loops
        self._loops = loops._replace(**{name: getattr(loops, name).copy() for name in SCRATCH})
        n = len(manipulator.records.mods)
        self._modules = n
        self._mods, self._env = manipulator.records.mods, manipulator.records.env.copy()
        self._work, self._scratch = np.zeros(n, WORK), np.zeros((7, manipulator.nx))
        self._free, self._passive = np.zeros((2, 6)), np.zeros(n)
        self._shapes = (manipulator.nx,), (manipulator.dof,), (len(manipulator.actuators),)

    def set_environment(self, env):
        """Set the base motion and external wrenches of all further steps, as `Integrator.set_environment`."""
        self._env = checked_environment(env, self._modules)

    def step(self, x, xd, f):
        """Advance x, xd in place under efforts f, contiguous arrays of float64; return a status, see `error`."""
        try:
            if (x.shape, xd.shape, f.shape) == self._shapes:
                return runge_kutta_general(
                    self._mods, self._work, self._env, self._loops, self._free, x, xd, f, self._passive,
                    self.step_size, self._substeps, self._stiffness, self._damping, self._scratch)
        except (AttributeError, TypeError):
            pass        # no arrays, or such as the compiled signature does not take
        raise ShapeError(f'x, xd and f must be writeable, contiguous float64 arrays of shapes {self._shapes}')

    def error(self, status, x):
        """Return the named error of a status that is not 0."""
        if status == NON_FINITE:
            return NonFiniteError(f"'{self._manipulator.name}': efforts or rates are not finite, or too large")
        return general_error(self._manipulator, status, {'x': x})
