"""The mechanism in time, at constant effort between two calls."""
import numpy as np

from ..kernels.entry import NON_FINITE
from ..kernels.records import WORK
from ..kernels.simulate import runge_kutta
from ..model.errors import NonFiniteError, ShapeError, StateError
from .arguments import vector
from .failures import state_error


class Integrator:
    """Advances a state by one step; owns its scratch memory, allocates nothing a step."""

    def __init__(self, machine, env, step, substeps, stiffness, damping):
        self._machine, self._env = machine, env
        self.step_size, self._stiffness, self._damping = (
            float(vector(what, [value], 1)[0])
            for what, value in (('step', step), ('stiffness', stiffness), ('damping', damping)))
        if self.step_size <= 0.0 or self._stiffness < 0.0 or self._damping < 0.0:
            raise StateError(f'step = {step} must be positive, stiffness = {stiffness} and damping = {damping} '
                             'must not be negative')
        if substeps != int(vector('substeps', [substeps], 1)[0]) or substeps < 1:
            raise StateError(f'substeps = {substeps}: expected a whole number from 1 on')
        self._substeps = int(substeps)
        n = len(machine.modules)
        self._work, self._scratch, self._shape = np.zeros(n, WORK), np.zeros((7, n)), (n,)

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
