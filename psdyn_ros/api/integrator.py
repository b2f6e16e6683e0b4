"""The mechanism in time, at constant effort between two calls."""
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..kernels.rigid_body.entry import runge_kutta_checked
from ..kernels.rigid_body.records import STOPS
from ..kernels.runtime.status import NON_FINITE, decode
from ..model.errors import NonFiniteError, PsdynError, ShapeError, StateError
from .arguments import Array, vector
from .environment import set_rows
from .errors_from_status import status_error
from .inputs import plain

if TYPE_CHECKING:
    from .manipulator import Manipulator


def checked_settings(step: float, substeps: int, stiffness: float, damping: float) -> tuple[float, int, float, float]:
    """Return (step, substeps, stiffness, damping) as numbers; raise StateError where one makes no sense."""
    step_size, hard, damping_factor = (float(vector(what, [value], 1)[0]) for what, value in (
        ('step', step), ('stiffness', stiffness), ('damping', damping)))
    if step_size <= 0.0 or hard < 0.0 or damping_factor < 0.0:
        raise StateError(f'step = {step} must be positive, stiffness = {stiffness} and damping = {damping} '
                         'must not be negative')
    if substeps != int(vector('substeps', [substeps], 1)[0]) or substeps < 1:
        raise StateError(f'substeps = {substeps}: expected a whole number from 1 on')
    return step_size, int(substeps), hard, damping_factor


def checked_environment(env: npt.ArrayLike, modules: int) -> Array:
    """Return a copy of the rows of base motion and wrenches; raise ShapeError where they are not of this machine."""
    env = np.array(env, dtype=float, order='C')
    if env.shape not in ((2, 6), (2 + 3 * modules, 6)):
        raise ShapeError(f'env has shape {env.shape}; expected (2, 6) or ({2 + 3 * modules}, 6)')
    return env


def stop_stiffness(manipulator: Manipulator, most: float, step: float) -> dict[str, float]:
    """Return {joint: N/m, N m/rad} of the stops of coordinates and actuators, at most `most`.

    One on which the inertia at the initial position swings in less than 2 pi steps [s] would throw a joint back faster
    than it came.
    """
    m, x = manipulator, manipulator.initial_position
    mobility, A = np.linalg.inv(m.mass_matrix(x)), m.actuator_map(x)
    free = m.dof - len(m.coordinates)       # coordinates of a floating base
    of_joints = zip((*m.coordinates, *m.actuators),
                    (*np.diag(mobility)[free:], *np.einsum('ij,jk,ik->i', A, mobility, A)))
    return {name: min(most, 1.0 / (step**2 * float(one))) if one > 0.0 else most for name, one in of_joints}


class Integrator:
    """Advances a state by one step; owns its scratch memory, allocates nothing a step."""

    def __init__(self, manipulator: Manipulator, step: float, substeps: int, stiffness: float, damping: float) -> None:
        self._manipulator, self._handle = manipulator, manipulator.handle()
        self.step_size, self._substeps, stiffness, damping = checked_settings(step, substeps, stiffness, damping)
        self._handle.start_from_last()
        modules = self._handle.modules
        stopped = (modules['coordinate'] >= 0) | (modules['actuator'] >= 0)
        m, stops = manipulator, stop_stiffness(manipulator, stiffness, self.step_size / self._substeps)
        joints = (m.dof - len(m.coordinates)) * ('',) + tuple(m.coordinates)
        for row in np.flatnonzero(stopped):
            coordinate, actuator = modules[['coordinate', 'actuator']][row]
            name = joints[coordinate] if coordinate >= 0 else m.actuators[actuator]
            modules['stop_stiffness'][row] = stops.get(name, stiffness)
        modules['stop_damping'] = damping
        modules['passive'] |= np.where(stopped & (modules['joint'][:, 0] >= 0) & (stiffness > 0.0), STOPS, 0)
        self._scratch = np.zeros((7, manipulator.nx))
        self._shapes = (manipulator.nx,), (manipulator.dof,), (len(manipulator.actuators),)
        # compiles where nobody waits for a step
        self.step(manipulator.initial_position, *map(np.zeros, self._shapes[1:]))

    def __repr__(self) -> str:
        return f'<Integrator of {self._manipulator!r}: steps of {self.step_size:g} s>'

    def set_environment(self, env: npt.ArrayLike) -> None:
        """Set the base motion and external wrenches of all further steps, constant over each.

        env (2, 6): twist and spatial acceleration of the base with gravity in it, in base axes; or (2 + 3 modules, 6)
        with wrenches on the link, barrel and rod of each module in their kernel frames.  Of a machine whose base floats
        the first two rows do not count.
        """
        set_rows(self._handle, checked_environment(env, len(self._handle.modules)))

    def step(self, x: Array, xd: Array, f: Array) -> int:
        """Advance x (nx,), xd (dof,) in place under efforts f (actuators,); return a status, see `error`.

        Contiguous arrays of float64.  Runge-Kutta of order 4; Hunt-Crossley stops at the joint limits.
        """
        if not plain(x, xd, f) or (x.shape, xd.shape, f.shape) != self._shapes:
            raise ShapeError(f'x, xd and f must be writeable, contiguous float64 arrays of shapes {self._shapes}')
        return runge_kutta_checked(self._handle.tree, self._handle.loops, x, xd, f, self.step_size, self._substeps,
                                   self._scratch)

    def error(self, status: int, x: Array) -> PsdynError:
        """Return the named error of a status that is not 0."""
        if decode(status).code == NON_FINITE:
            return NonFiniteError(f"'{self._manipulator.name}': efforts or rates are not finite, or too large")
        return status_error(self._manipulator, status, {'x': x})
