"""Positions of rest: where efforts, gravity, springs and wrenches leave the free coordinates of a machine at rest."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...model.errors import PsdynError, StateError, UnknownNameError, check_name
from ..arguments import Array, Efforts, Vector, Wrenches, coordinate_names
from ..arguments import names as checked_names
from ..environment import BaseDrive, BaseMotion
from ..inputs import base_drive, one_vector
from ..results.result import Axis, Result
from .derivatives import Slopes, generalized_forces_derivatives
from .linearization import WrenchSlopes, wrench_forces

if TYPE_CHECKING:
    from ..manipulator import Manipulator

EXTERNAL_ARGUMENTS = ('wrenches', 'joint_efforts', 'joint_slopes', 'wrench_slopes')
MAX_STEP = 0.3                  # step of a coordinate in one iteration [m, rad]
MIN_STEP = 1e-9                 # steps below it are not halved again [m, rad]
FLAT_STIFFNESS_SHARE = 1e-9     # squared frequencies below this share of the largest count as zero
DIFFERENCE_STEP = 1e-6          # finite differences of external forces whose slopes are not given [m, rad]


@dataclass(frozen=True, repr=False, eq=False)
class Equilibrium(Result):
    """A position of rest; n free coordinates."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'x': ('x',), 'f': ('f',), 'stiffness': ('free', 'free')}
    UNITS: ClassVar[Mapping[str, str]] = {'eigenvalues': '1/s', 'residual': 'N, N m'}

    x: Array
    """(nx,)"""
    f: Array
    """(actuators,) efforts there."""
    held: dict[str, float]
    """{coordinate: effort [N, N m]} that must hold each `fixed` coordinate in addition to f."""
    free: tuple[str, ...]
    """Names of the free coordinates."""
    stiffness: Array
    """(n, n) derivative of the efforts that hold the free coordinates, by their position [N/m, N m/rad]."""
    eigenvalues: Array
    """(2 n,) of small motions about it [1/s], the one of largest real part first."""
    stability: str
    """'stable', 'unstable', or 'neutral': a direction with neither stiffness nor drive away."""
    residual: float
    """Largest effort that is missing on a free coordinate [N, N m]."""
    iterations: int


class EquilibriumError(StateError):
    """No position of rest near the start; x is the best position that was reached, residual what is missing there."""

    def __init__(self, message: str, x: Array, residual: float) -> None:
        super().__init__(message)
        self.x, self.residual = x, residual


def equilibrium(manipulator: Manipulator, x: Vector, f: Vector | None = None, *, fixed: Iterable[str] = (),
                base: BaseMotion | BaseDrive | None = None, wrenches: Wrenches | None = None,
                joint_efforts: Efforts | None = None, joint_slopes: Slopes | None = None,
                wrench_slopes: WrenchSlopes | None = None, external: Callable[[Array, Array], Any] | None = None,
                settle: bool = False, tolerance: float = 1e-10, iterations: int = 200) -> Equilibrium:
    """Return the `Equilibrium` nearest to x (nx,) in the sense of Newton's method; it may be an unstable one.

    settle: follow the forces instead, as a machine in thick oil would, to a stable position of rest.

    f: efforts of the actuators (actuators,).  None asks for those that hold the machine: the actuated coordinates stay
    at x, all of them where the actuators drive every joint.  fixed: names of coordinates that stay at x, held by
    something else; base_x to base_rz are those of a floating base, 'base' all six.
    base, wrenches, joint_efforts: as `forward_dynamics`; joint_slopes, wrench_slopes: as `linearize`.  external:
    function of (x, xd), such as `ExternalForces`, that returns a mapping of any of these four; where it has no method
    `slopes` that returns them with their slopes, and returns none itself, differences serve for Newton's method and
    for `stiffness` and `eigenvalues`.
    tolerance: of the residual, against one plus the weight and the largest effort or force at x.  Limits of coordinates
    and actuators are kept, and so is the assembly mode.
    Raises EquilibriumError where there is none within reach, and what `forward_dynamics` raises at x.
    """
    m = manipulator
    x = one_vector(m, 'x', x)
    given = {'wrenches': wrenches, 'joint_efforts': joint_efforts, 'joint_slopes': joint_slopes,
             'wrench_slopes': wrench_slopes}
    statics = _Statics(m, f, fixed, base, given, external)
    return (_Settling if settle else _Search)(statics, tolerance).run(x, iterations)


class _Statics:
    """The efforts that hold a machine at rest, and their slopes, with all that acts on it."""

    def __init__(self, m: Manipulator, f: Vector | None, fixed: Iterable[str], base: BaseMotion | BaseDrive | None,
                 given: Mapping[str, Any], external: Any) -> None:
        self.m, self._base, self._given, self._external = m, base, given, external
        self.names = coordinate_names(m)
        held = np.zeros(m.dof, dtype=bool)
        self._xdd = np.zeros(m.dof)
        for name in checked_names('fixed', fixed, UnknownNameError):
            if name == 'base' and m.floating:
                held[:6] = True
                continue
            check_name(name, self.names, f"fixed: no coordinate '{name}'")
            held[self.names.index(name)] = True
        if m.floating and base is not None:
            driven, acceleration = base_drive(m, base)
            held[:6] |= driven != 0.0
            self._xdd[:6] = driven * acceleration
            self._base = None
        self.finds_efforts = f is None
        self.f = np.zeros(len(m.actuators)) if self.finds_efforts else one_vector(m, 'f', f)
        if self.finds_efforts:
            every = m.coordinates if len(m.actuators) >= len(m.coordinates) else m.actuators
            held |= [name in every for name in self.names]
        self.held, self.free = held, ~held

    def external_arguments(self, x: Array, xd: Array, slopes: bool = False) -> dict[str, Any]:
        """Return external forces at a state as keywords of `forward_dynamics`, with slopes where they are given."""
        found = {key: dict(value or {}) for key, value in self._given.items()}
        if self._external is not None:
            call = self._external.slopes if slopes and hasattr(self._external, 'slopes') else self._external
            applied = call(x, xd)
            applied = applied._asdict() if hasattr(applied, '_asdict') else dict(applied)
            for key, value in applied.items():
                check_name(key, EXTERNAL_ARGUMENTS, f"external returns '{key}'")
                for name, one in (value or {}).items():
                    found[key][name] = _sum(found[key][name], one) if name in found[key] else one
        for name, effort in zip(self.m.actuators, self.f):
            found['joint_efforts'][name] = found['joint_efforts'].get(name, 0.0) + effort
        return found

    def needed(self, x: Array, acting: Mapping[str, Any] | None = None, xd: Array | None = None) -> Array:
        """Return the efforts (dof,) on the coordinates that are missing for rest at x."""
        xd = np.zeros(self.m.dof) if xd is None else xd
        acting = acting or self.external_arguments(x, xd)
        return self.m.generalized_forces(x, xd, self._xdd, base=self._base, wrenches=acting['wrenches'] or None,
                                         joint_efforts=acting['joint_efforts'] or None)

    def largest_force(self, x: Array) -> float:
        """Return the weight, plus the largest effort or component of a wrench at x, in N and N m alike."""
        acting = self.external_arguments(x, np.zeros(self.m.dof))
        others = [0.0, *acting['joint_efforts'].values(), *(
            part for wrench in acting['wrenches'].values() for half in wrench for part in half)]
        return self.m.total_mass * np.linalg.norm(self.m.gravity) + abs(np.array(others)).max()

    def slopes(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the derivatives (dof, dof) of `needed` by position and by rate, and M."""
        m, rest = self.m, np.zeros(self.m.dof)
        acting = self.external_arguments(x, rest, slopes=True)
        K, C, M = generalized_forces_derivatives(
            m, x, rest, self._xdd, base=self._base, wrenches=acting['wrenches'] or None,
            joint_efforts=acting['joint_efforts'], joint_slopes=acting['joint_slopes'])
        if acting['wrench_slopes']:
            by_x, by_xd = wrench_forces(m, x, acting['wrench_slopes'], acting['wrenches'])
            K, C = K - by_x, C - by_xd
        if self._external is not None and not hasattr(self._external, 'slopes') and not (
                acting['wrench_slopes'] or acting['joint_slopes']):
            by_x, by_xd = self._differences(x, rest)
            K, C = K + by_x, C + by_xd
        return K, C, M

    def _differences(self, x: Array, rest: Array) -> Array:
        """Return what the change of the external forces with the state adds to the slopes."""
        out = np.zeros((2, self.m.dof, self.m.dof))
        for k, step in enumerate(DIFFERENCE_STEP * np.eye(self.m.dof)):
            for sign in (1.0, -1.0):
                for row, state in enumerate(((displaced_position(self.m, x, sign * step), rest), (x, sign * step))):
                    out[row][:, k] += sign / (2.0 * DIFFERENCE_STEP) * self.needed(x, self.external_arguments(*state))
        return out

    def within_limits(self, x: Array) -> Array:
        """Return x with its free coordinates within their limits."""
        limits, shift = self.m.coordinate_limits, self.m.nx - len(self.m.coordinates)
        free = self.free[self.m.dof - len(self.m.coordinates):]
        x = x.copy()
        x[shift:][free] = np.clip(x[shift:], limits.lower, limits.upper)[free]
        return x

    def beyond(self, x: Array) -> dict[str, float]:
        """Return by how much the actuators that are no coordinates are beyond their limits, {name: m or rad}."""
        others = [row for row, name in enumerate(self.m.actuators) if name not in self.m.coordinates]
        if not others:
            return {}
        position = dict(zip(*self.m.joint_state(x)[:2]))
        limits = self.m.limits
        over = {self.m.actuators[row]: max(limits.lower[row] - position[self.m.actuators[row]],
                                           position[self.m.actuators[row]] - limits.upper[row]) for row in others}
        return {name: amount for name, amount in over.items() if amount > 0.0}

    def effort_that_holds(self, x: Array, needed: Array) -> tuple[Array, Array]:
        """Return (f, what it leaves of the needed efforts), of least norm where many do."""
        if not self.finds_efforts or not self.f.size:
            return self.f, needed
        m, joints = self.m, slice(self.m.dof - len(self.m.coordinates), None)
        if not self.free[joints].any() and len(m.actuators) >= len(m.coordinates):
            acting = self.external_arguments(x, np.zeros(m.dof))
            f = m.inverse_dynamics(x, np.zeros(m.dof), self._xdd, base=self._base, wrenches=acting['wrenches'] or None,
                                   joint_efforts=acting['joint_efforts'] or None)
            A = m.actuator_map(x)
        else:
            A = m.actuator_map(x)
            A_held = A[:, self.held]
            f = np.linalg.lstsq(A_held.T, needed[self.held], rcond=None)[0]
        return f, needed - A.T @ f


def _sum(one: Any, other: Any) -> Any:
    """Return the sum of two efforts, or of pairs of arrays."""
    if np.ndim(one) == 0:
        return one + other
    return tuple(np.asarray(a) + np.asarray(b) for a, b in zip(one, other))


def displaced_position(manipulator: Manipulator, x: Array, change: Array) -> Array:
    """Return x (nx,) after a displacement (dof,); that of a floating base is along and about its own axes."""
    if not manipulator.floating:
        return x + change
    out, turn = np.concatenate((x[:7], x[7:] + change[6:])), change[3:6]
    a, w = x[3:6] / np.linalg.norm(x[3:7]), x[6] / np.linalg.norm(x[3:7])
    v = change[:3]
    out[:3] += v + 2.0 * np.cross(a, np.cross(a, v) + w * v)
    # sin(angle / 2) / angle, also at zero
    angle = np.linalg.norm(turn)
    sine, cosine = 0.5 * np.sinc(angle / (2.0 * np.pi)) * turn, np.cos(0.5 * angle)
    out[3:6] = w * sine + cosine * a + np.cross(a, sine)
    out[6] = w * cosine - a @ sine
    return out


class _Search:
    """Levenberg-Marquardt on the missing efforts r, in the norm r' M^-1 r, which mixes units correctly."""

    def __init__(self, statics: _Statics, tolerance: float) -> None:
        self._statics, self._tolerance, self._damping = statics, tolerance, 0.0
        self._obstacle: PsdynError | None = None      # of the last trial beyond reach

    def run(self, x: Array, max_iterations: int) -> Equilibrium:
        """Return the `Equilibrium`, or raise EquilibriumError."""
        s, count = self._statics, 0
        self._enough = self._tolerance * (1.0 + s.largest_force(x))
        x, better = s.within_limits(x), bool(s.free.any())
        r = s.needed(x)[s.free]
        while better and count < max_iterations:
            count, before, self._obstacle = count + 1, abs(r).max(), None
            x, r, better = self._improved(x, r)
            # only rounding is left
            if before <= self._enough and 0.3 * before < abs(r).max() <= before:
                break
        self._check(x, r, count)
        return self._found(x, r, count)

    def _slopes(self, x: Array) -> tuple[Array, Array, Array]:
        """Return K, M^-1/2, M^1/2 of the free coordinates."""
        K, _, M = (matrix[np.ix_(self._statics.free, self._statics.free)] for matrix in self._statics.slopes(x))
        return K, *_roots(M)

    def _improved(self, x: Array, r: Array) -> tuple[Array, Array, bool]:
        """Return (x, r, whether x is a better one)."""
        K, weight, root = self._slopes(x)
        size, rate = np.linalg.norm(weight @ r), np.linalg.norm(weight @ K @ weight, 2)
        while self._damping < 1e6:
            rows = np.vstack((weight @ K, self._damping * rate * root))
            step = np.linalg.lstsq(rows, np.concatenate((-weight @ r, np.zeros(len(r)))), rcond=1e-13)[0]
            there, residual = self._try(x, _short(step))
            if residual is not None and np.linalg.norm(weight @ residual) < size:
                self._damping = 0.1 * self._damping if self._damping > 1e-6 else 0.0
                return there, residual, True
            self._damping = max(10.0 * self._damping, 1e-6)
        return x, r, False

    def _try(self, x: Array, step: Array) -> tuple[Array, Array | None]:
        """Return (x, r) after a step of the free coordinates; r is None where loops do not close, or beyond limits."""
        s, change = self._statics, np.zeros(self._statics.m.dof)
        change[s.free] = step
        there = s.within_limits(displaced_position(s.m, x, change))
        try:
            return there, None if s.beyond(there) else s.needed(there)[s.free]
        except PsdynError as error:
            self._obstacle = error
            return there, None

    def _check(self, x: Array, r: Array, count: int) -> None:
        s, worst = self._statics, abs(r).max(initial=0.0)
        if worst <= self._enough:
            return
        names = [name for name, free in zip(s.names, s.free) if free]
        limits, position = s.m.coordinate_limits, x[s.m.nx - len(s.m.coordinates):]
        stopped = [name for name, value, low, high in zip(s.m.coordinates, position, limits.lower, limits.upper)
                   if name in names and not low < value < high]
        at = ', '.join(f'{name} = {value:.6g}' for name, value in zip(s.m.coordinates, position))
        why = f', at the limit of {", ".join(stopped)}' if stopped else ''
        why += f'; further on, {self._obstacle}' if self._obstacle else ''
        raise EquilibriumError(
            f"no position of rest of '{s.m.name}' found in {count} iterations: {worst:.4g} N or N m are missing on "
            f"'{names[int(abs(r).argmax())]}' at {at}{why}", x, float(worst)) from self._obstacle

    def _found(self, x: Array, r: Array, count: int) -> Equilibrium:
        s = self._statics
        f, left = s.effort_that_holds(x, s.needed(x))
        s.f = f
        K, C, M = (matrix[np.ix_(s.free, s.free)] for matrix in s.slopes(x))
        n = len(M)
        values = np.linalg.eigvals(np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K),
                                                                            -np.linalg.solve(M, C)]]))
        held = {name: float(left[row]) for row, name in enumerate(s.names) if s.held[row]}
        free = Axis(*(tuple(text for text, moves in zip(texts, s.free) if moves) for texts in (
            s.names, (unit.replace('/s', '') for unit in s.m.axes['xd'].units))))
        return Equilibrium(x, f, held, free.names, K,
                           values[np.lexsort((values.imag, -values.real))], _stability(K, C, M, values),
                           float(abs(r).max(initial=0.0)), count, axes={**s.m.axes, 'free': free})


class _Settling(_Search):
    """Newton's method on the stiffness made positive, which goes down the potential where forces have one."""

    def _improved(self, x: Array, r: Array) -> tuple[Array, Array, bool]:
        K, weight, _ = self._slopes(x)
        squares = weight @ K @ weight
        values, modes = np.linalg.eigh(0.5 * (squares + squares.T))
        floor = FLAT_STIFFNESS_SHARE * abs(values).max() + 1e-300
        pull = modes.T @ (weight @ r)
        if abs(r).max() <= self._enough and values[0] < -floor:
            # on top of a hill: off to a side
            step = _short(1e6 * weight @ modes[:, 0], 0.1)
            there, residual = self._try(x, step)
            return (x, r, False) if residual is None else (there, residual, True)
        step = _short(-weight @ (modes @ (pull / np.maximum(abs(values), floor))))
        whole = step
        while step is whole or abs(step).max() > MIN_STEP:
            there, residual = self._try(x, step)
            # not past the bottom, or hardly
            if residual is not None and residual @ step < 0.5 * abs(r @ step):
                return there, residual, True
            step = 0.5 * step
        return x, r, False


def _short(step: Array, longest: float = MAX_STEP) -> Array:
    return step * min(1.0, longest / max(abs(step).max(), 1e-300))


def _roots(M: Array) -> tuple[Array, Array]:
    """Return M^-1/2 and M^1/2; a mass matrix of unphysical bodies need not be positive."""
    values, vectors = np.linalg.eigh(M)
    values = np.sqrt(np.abs(values))
    return (vectors / values) @ vectors.T, (vectors * values) @ vectors.T


def _stability(K: Array, C: Array, M: Array, eigenvalues: Array) -> str:
    """By the least stiffness where forces have a potential or dissipate (Dirichlet), else by the eigenvalues."""
    if not K.size:
        return 'stable'
    weight, _ = _roots(M)
    squares, dissipation = weight @ K @ weight, weight @ C @ weight
    scale = np.linalg.norm(squares, 2)
    least_dissipation = -FLAT_STIFFNESS_SHARE * np.sqrt(scale)
    if _symmetric(squares) and _symmetric(dissipation) and np.linalg.eigvalsh(dissipation)[0] >= least_dissipation:
        least, bound = np.linalg.eigvalsh(squares)[0], FLAT_STIFFNESS_SHARE * scale
    else:
        least, bound = -eigenvalues.real.max(), np.sqrt(FLAT_STIFFNESS_SHARE * scale)
    return 'stable' if least > bound else 'unstable' if least < -bound else 'neutral'


def _symmetric(A: Array) -> bool:
    return np.linalg.norm(A - A.T, 2) <= FLAT_STIFFNESS_SHARE * np.linalg.norm(A, 2)
