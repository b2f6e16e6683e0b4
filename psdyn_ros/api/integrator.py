"""The mechanism in time, at constant effort between two calls."""
import numpy as np

from ..kernels.records import WORK
from ..kernels.simulate import runge_kutta
from .failures import state_error


class Integrator:
    """Advances a state by one step; owns its scratch memory, allocates nothing a step."""

    def __init__(self, machine, env, step, substeps, stiffness, damping):
        self._machine, self._env = machine, env
        self.step_size, self._substeps = float(step), int(substeps)
        self._stiffness, self._damping = float(stiffness), float(damping)
        n = len(machine.modules)
        self._work, self._scratch = np.zeros(n, WORK), np.zeros((7, n))

    def step(self, x, xd, f):
        """Advance x, xd (dof,) in place under efforts f; return a status, see `error`.

        Runge-Kutta of order 4; Hunt-Crossley stops at the joint limits.
        """
        return runge_kutta(self._machine.records, self._work, self._env, x, xd, f, self.step_size, self._substeps,
                           self._stiffness, self._damping, self._scratch)

    def error(self, status, x):
        """Return the named error of a status that is not 0."""
        return state_error(self._machine, status, x, {'x': x})
