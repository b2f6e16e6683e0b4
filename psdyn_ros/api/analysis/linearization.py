"""Linear systems about a state of a machine, by exact derivatives: of the motion and of measured outputs."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from ...model.errors import UnknownNameError, check_name
from ..arguments import BASE, Array, Efforts, Vector, Wrenches, coordinate_names, pair, vector
from ..environment import BaseDrive, BaseMotion
from ..inputs import base_drive, one_vector
from ..kinematics import transmission
from ..results.result import Axis, Result
from .derivatives import Slopes, forward_dynamics_derivatives, slopes_of_efforts

if TYPE_CHECKING:
    from ..manipulator import Manipulator

WrenchSlopes: TypeAlias = Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]]

QUANTITIES = ('position', 'velocity', 'acceleration')


@dataclass(frozen=True, repr=False, eq=False)
class Linearization(Result):
    """d/dt s = A s + B u, y = C s + D u for small deviations s, u, y from an operating point; n states.

    s is (dx, dxd): the displacement (6,) of a floating base in its own axes, then the coordinates, then their rates.
    Where the point is no equilibrium, s is the deviation from the motion through it, and A holds at that instant.
    """

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'A': ('states', 'states'), 'B': ('states', 'inputs'),
                                                     'C': ('outputs', 'states'), 'D': ('outputs', 'inputs'),
                                                     'xdd': ('xdd',)}

    A: Array
    """(n, n)"""
    B: Array
    """(n, actuators)"""
    C: Array
    """(outputs, n)"""
    D: Array
    """(outputs, actuators)"""
    states: tuple[str, ...]
    """Names, `<coordinate>/position` and `<coordinate>/velocity`; those of a floating base are base_x to base_rz."""
    inputs: tuple[str, ...]
    """Names, `<actuator>/effort`."""
    outputs: tuple[str, ...]
    """Names, `<joint>/position`, `/velocity` or `/acceleration`."""
    xdd: Array
    """(dof,) accelerations at the point; zero where it is an equilibrium."""

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues (n,) of A [1/s], the one of largest real part first."""
        values = np.linalg.eigvals(self.A)
        return values[np.lexsort((values.imag, -values.real))]


def linearize(manipulator: Manipulator, x: Vector, xd: Vector, f: Vector, *,
              base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None,
              joint_efforts: Efforts | None = None, joint_slopes: Slopes | None = None,
              wrench_slopes: WrenchSlopes | None = None, outputs: Iterable[str] | None = None) -> Linearization:
    """Return the `Linearization` about x (nx,), xd (dof,), f (actuators,); arguments as `forward_dynamics`.

    joint_slopes: {joint: (by position, by rate)} of the efforts that `joint_efforts` names.  wrench_slopes: {link: (by
    position (6, dof), by rate (6, dof))}, changes of what `wrenches` puts on a link, in link axes; other wrenches stay
    as they are in the axes of their links.
    outputs: names, of any joint `<joint>/position`, `/velocity`, `/acceleration` (not of the passive joints of a
    cylinder triangle), likewise of base_x to base_rz; by default the states.
    Raises as `forward_dynamics`: TogglePointError where a loop is singular; UnknownNameError for an output.
    """
    m = manipulator
    by_x, by_xd, by_f = forward_dynamics_derivatives(m, x, xd, f, base=base, wrenches=wrenches,
                                                     joint_efforts=joint_efforts, joint_slopes=joint_slopes)
    x, xd = one_vector(m, 'x', x), one_vector(m, 'xd', xd)
    xdd = m.forward_dynamics(x, xd, f, base=base, wrenches=wrenches, joint_efforts=joint_efforts)
    if wrench_slopes:
        change = np.array(wrench_forces(m, x, wrench_slopes, wrenches))
        by_x, by_xd = (by_x, by_xd) + _mobility(m, x, base) @ change
    n, names = m.dof, coordinate_names(m)
    A, B = np.zeros((2 * n, 2 * n)), np.vstack((np.zeros((n, by_f.shape[1])), by_f))
    A[:n, n:], A[n:, :n], A[n:, n:] = np.eye(n), by_x, by_xd
    if m.floating:
        A[:6, :6] = -_bracket(xd[:6])       # axes that move with the base: d/dt dx = dV - V x dx
    states = tuple(f'{name}/{quantity}' for quantity in QUANTITIES[:2] for name in names)
    if outputs is None:
        C, D, outputs = np.eye(2 * n), np.zeros((2 * n, len(m.actuators))), states
    else:
        outputs = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        C, D = _output_rows(m, x, xd, xdd, A[n:], by_f, outputs)
    inputs = tuple(f'{name}/effort' for name in m.actuators)
    axes = {key: Axis(each, ('',) * len(each)) for key, each in (('states', states), ('inputs', inputs),
                                                                 ('outputs', outputs))}
    return Linearization(A, B, C, D, states, inputs, outputs, xdd, axes={**axes, 'xdd': m.axes['xdd']})


def wrench_forces(manipulator: Manipulator, x: Array, wrench_slopes: WrenchSlopes, wrenches: Wrenches | None) -> Array:
    """Return the changes (2, dof, dof), by position and rate, of the efforts on the coordinates that wrenches make."""
    m = manipulator
    out = np.zeros((2, m.dof, m.dof))
    for link, slopes in wrench_slopes.items():
        if link not in (wrenches or {}):
            raise UnknownNameError(f"wrench_slopes of '{link}', on which wrenches has none")
        what, J = f"slopes of the wrench on '{link}'", link_jacobian(m, x, link)
        for change, by in zip(out, pair(what, slopes, 'by position, by rate')):
            change += J.T @ vector(what, by, (6, m.dof))
    return out


def link_jacobian(manipulator: Manipulator, x: Array, link: str) -> Array:
    """Return J (6, dof) with the twist J xd of a link's origin, in link axes; a base that does not float rests."""
    return np.array([manipulator.link_twist(x, unit, link) for unit in np.eye(manipulator.dof)]).T


def _mobility(m: Manipulator, x: Array, base: BaseMotion | BaseDrive | None) -> Array:
    """Return the accelerations (dof, dof) for unit efforts on the coordinates, none of which a `BaseDrive` holds."""
    free = np.ones(m.dof, dtype=bool)
    if m.floating and base is not None:
        free[:6] = base_drive(m, base)[0] == 0.0
    out = np.zeros((m.dof, m.dof))
    out[np.ix_(free, free)] = np.linalg.inv(m.mass_matrix(x)[np.ix_(free, free)])
    return out


def _bracket(V: Array) -> Array:
    """Return the matrix (6, 6) of V x for twists (v, w)."""
    v, w = (np.array(((0, -c, b), (c, 0, -a), (-b, a, 0))) for a, b, c in (V[:3], V[3:]))
    return np.block([[w, v], [np.zeros((3, 3)), w]])


def _output_rows(m: Manipulator, x: Array, xd: Array, xdd: Array, by_state: Array, by_input: Array,
                 outputs: tuple[str, ...]) -> tuple[Array, Array]:
    """Return the rows of C (outputs, 2 dof) and D (outputs, actuators) of outputs by name; UnknownNameError.

    by_state (dof, 2 dof), by_input (dof, actuators): derivatives of the accelerations.
    """
    _, handle, scratch = slopes_of_efforts(m, x, xd, xdd, None, None, None, None)
    if scratch.slopes is None:      # the joint of every module is a coordinate
        rows = np.flatnonzero(handle.modules['joint'][:, 0] >= 0)
        slopes = np.zeros((4, len(handle.modules), m.dof))
        slopes[0, rows, handle.modules['coordinate'][rows]] = 1.0
    else:
        slopes = scratch.slopes.z[:, m.dof - len(m.coordinates):]
    known, zero = {*coordinate_names(m), *m.joints}, np.zeros(m.dof)
    C, D = np.zeros((len(outputs), 2 * m.dof)), np.zeros((len(outputs), by_input.shape[1]))
    for row, output in enumerate(outputs):
        name, slash, quantity = str(output).rpartition('/')
        if not slash:
            raise UnknownNameError(f"output '{output}': expected <joint>/position, <joint>/velocity or "
                                   f'<joint>/acceleration of {", ".join(m.joints)}')
        check_name(name, known, f"output '{output}': no such joint '{name}'")
        check_name(quantity, QUANTITIES, f"output '{output}': no such quantity")
        if name in BASE and m.floating:
            z, rate, ratio, ratio_slope = np.zeros((4, m.dof)), 0.0, 1.0, 0.0
            z[0, BASE.index(name)] = 1.0
        else:
            k = m.machine.module_of(name)
            ratio, ratio_slope = transmission(m, k, name, handle.work['q'][k])
            z, rate = slopes[:, k], handle.work['qd'][k]
        if quantity == 'acceleration' and (ratio_slope or ratio != 1.0):
            raise UnknownNameError(f"output '{output}': '{name}' is turned by a cylinder; of such a joint there are "
                                   'position and velocity, and all three of the cylinder')
        by_x, by_xd, by_xdd = {'position': (ratio * z[0], zero, zero),
                               'velocity': (ratio * z[1] + ratio_slope * rate * z[0], ratio * z[0], zero),
                               'acceleration': (z[2], z[3], z[0])}[quantity]
        C[row] = np.concatenate((by_x, by_xd)) + by_xdd @ by_state
        D[row] = by_xdd @ by_input
    return C, D
