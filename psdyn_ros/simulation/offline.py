"""
The motion of a machine by an adaptive method of high order, for studies and as a witness of the simulator.

    result = simulate(manipulator, x, xd, np.linspace(0.0, 20.0, 401))

Independent coordinates are integrated and the closure gives all others, so that loops stay closed however long the run
is.  Joint limits are no stops here: the machine passes them, as far as its loops close.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.integrate

from ..api.arguments import Array, Vector, vector
from ..api.environment import BaseDrive, BaseMotion
from ..api.inputs import one_vector
from ..api.manipulator import Manipulator
from ..api.results.result import Axis, Result
from ..assembly.machine import smallest_singular_values
from ..kernels.rigid_body.floating_base import position_rate
from ..model.errors import PsdynError, ShapeError, StateError, UnknownNameError, did_you_mean

STALL_STEPS = 500           # that together are shorter than STALL_SHARE of the longest step: the motion does not go on
STALL_SHARE = 1e-6
METHODS = ('DOP853', 'RK45', 'RK23', 'Radau')       # they shorten a step whose rates are not finite
OUTSIDE = ('wrenches', 'joint_efforts')


@dataclass(frozen=True, repr=False, eq=False)
class Motion(Result):
    """N states of a machine in time."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'x': ('x',), 'xd': ('xd',), 'efforts': ('f',),
                                                     'closure': ('loops',)}
    UNITS: ClassVar[Mapping[str, str]] = {'times': 's', 'kinetic': 'J', 'potential': 'J'}
    INDEX: ClassVar[str] = 'times'

    times: np.ndarray
    """(N,) [s]"""
    x: np.ndarray
    """(N, nx)"""
    xd: np.ndarray
    """(N, dof)"""
    efforts: np.ndarray
    """(N, actuators) [N, N m]"""
    kinetic: np.ndarray
    """(N,) kinetic energy [J]."""
    potential: np.ndarray
    """(N,) potential energy [J] of gravity, and of the external forces where they tell theirs."""
    closure: np.ndarray
    """(N, loops) distance [m] of what each `<constraint>` holds together, and misalignment [rad] of its axes."""
    loops: tuple
    """Names of the loops, in the order of `closure`."""

    @property
    def energy(self) -> Array:
        """Kinetic and potential energy (N,) [J]."""
        return self.kinetic + self.potential


class SimulationError(StateError):
    """A motion that cannot be continued; `motion` is the `Motion` up to there, to the last state that was reached."""

    def __init__(self, message: str, motion: Motion) -> None:
        super().__init__(message)
        self.motion = motion


class Integrator(NamedTuple):
    """How a motion is integrated."""

    method: str = 'DOP853'
    """Of scipy's integrators DOP853, RK45, RK23, Radau."""
    rtol: float = 1e-11
    """Tolerances of x and xd in one step."""
    atol: float = 1e-12
    most_steps: int = 200_000
    """More steps are an error."""
    most_seconds: float = 600.0
    """More time [s] of this computer is an error."""


def simulate(manipulator: Manipulator, x: Vector, xd: Vector, times: npt.ArrayLike, *,
             effort: Vector | Callable[[float, Array, Array], npt.ArrayLike] | None = None,
             external: Callable[[Array, Array], Any] | None = None,
             base: BaseMotion | BaseDrive | Callable[[float], BaseMotion | BaseDrive] | None = None,
             **integrator: Any) -> Motion:
    """
    Return the `Motion` at the given times from x (nx,), xd (dof,) at the first of them.

    effort: of the actuators (actuators,), constant or a function of (t, x, xd); none where it is None.
    external: `ExternalForces`, or a function of (x, xd) that returns a mapping with 'wrenches', 'joint_efforts' or
    both, as `forward_dynamics` takes them.
    base: `BaseMotion`, or `BaseDrive` where the base floats, constant or a function of t.  integrator: fields
    of `Integrator`.
    Raises SimulationError, which has the motion until then, where it comes to a pose at which a loop is singular or
    does not close, where steps get so short that it stalls there, or most_steps or most_seconds do not suffice;
    ShapeError, NonFiniteError, StateError, and what `forward_dynamics` raises at the first state.
    """
    times, settings = _checked_times(times), Integrator(**integrator)
    method = settings.method
    if method not in METHODS:
        raise StateError(f"method='{method}'{did_you_mean(method, METHODS)}")
    equations = _Equations(manipulator, effort, external, base)
    start = np.concatenate((one_vector(manipulator, 'x', x), one_vector(manipulator, 'xd', xd)))
    equations.rates(times[0], start)        # errors of the first state are its own
    states, failure = [start], None
    if len(times) > 1:
        with np.errstate(invalid='ignore'):
            solver = getattr(scipy.integrate, method)(equations.rates_or_nan, times[0], start, times[-1],
                                                      rtol=settings.rtol, atol=settings.atol)
            failure = _advance(solver, times, states, equations, settings)
    if failure is None:
        return equations.motion(times, states)
    reached = times[:len(states)]
    if solver.t > reached[-1]:
        reached, states = np.append(reached, solver.t), [*states, solver.y]
    reason = equations.failure or f'{failure}{_nearly_singular(manipulator, equations.split(solver.y)[0])}'
    raise SimulationError(f"the motion of '{manipulator.name}' ends at t = {solver.t:.9g} s: {reason}",
                          equations.motion(reached, states)) from equations.failure


def _advance(solver: Any, times: Array, states: list[Array], equations: _Equations,
             settings: Integrator) -> str | None:
    """Run a solver to its end and append the states at all times but the first; return why it stopped, or None."""
    longest, since, count, deadline = 0.0, solver.t, 0, time.monotonic() + settings.most_seconds
    while solver.status == 'running':
        if count == settings.most_steps:
            return f'{count} steps of the integrator did not lead further'
        if time.monotonic() > deadline:
            return f'{count} steps of the integrator took {settings.most_seconds:g} s, the longest time that is allowed'
        if count % STALL_STEPS == 0:
            if 0.0 < solver.t - since < STALL_SHARE * longest:
                return f'it stalls: {STALL_STEPS} steps of the integrator lead on by {solver.t - since:.2g} s'
            # a failure of long ago is not the reason
            since, equations.failure = solver.t, None
        try:
            message = solver.step()
        except ValueError as error:
            # Radau's linear algebra refuses rates that are not finite
            if equations.failure is None:
                raise
            return str(error)
        if solver.status == 'failed':
            return message
        count, longest = count + 1, max(longest, solver.step_size)
        last = np.searchsorted(times, solver.t, side='right')
        if last > len(states):
            between = solver.dense_output()
            states.extend(solver.y if t == solver.t else between(t) for t in times[len(states):last])
    return None


def _nearly_singular(manipulator: Manipulator, x: Array) -> str:
    """Return the end of a message: which cluster of loops is nearest to a singular pose; '' without clusters."""
    clusters, names = manipulator.machine.clusters, manipulator.machine.coordinates
    if not clusters:
        return ''
    position = dict(zip(*manipulator.joint_state(x)[:2]))
    smallest = [smallest_singular_values(manipulator.machine, n, [[position[joint] for joint in cluster.joints]])[0]
                for n, cluster in enumerate(clusters)]
    worst = clusters[int(np.argmin(smallest))]
    at = ', '.join(f'{name} = {position[name]:.6g}' for name in names if name in worst.joints)
    return f"; loop '{worst.name}' is nearest to a singular pose, at {at} (smallest singular value {min(smallest):.2g})"


def _checked_times(times: npt.ArrayLike) -> Array:
    times = np.asarray(times, dtype=float)
    if times.ndim != 1 or not times.size:
        raise ShapeError(f'times has shape {times.shape}; expected at least one, in one row')
    if not np.isfinite(times).all() or (np.diff(times) <= 0.0).any():
        raise StateError('times do not increase, or are not finite')
    return times


class _Equations:
    """dy/dt of y = (x, xd) with all that acts on the machine, and what is reported of a state afterwards."""

    def __init__(self, manipulator: Manipulator,
                 effort: Vector | Callable[[float, Array, Array], npt.ArrayLike] | None,
                 external: Callable[[Array, Array], Any] | None,
                 base: BaseMotion | BaseDrive | Callable[[float], BaseMotion | BaseDrive] | None) -> None:
        self._manipulator, self._external, self._base = manipulator, external, base
        count = len(manipulator.actuators)
        self._effort = effort if callable(effort) else np.zeros(count) if effort is None else one_vector(
            manipulator, 'f', effort)
        self.failure: PsdynError | None = None      # of the last evaluation that failed

    def split(self, y: Array) -> tuple[Array, Array]:
        """Return x, xd; the quaternion of a floating base has norm one again."""
        m = self._manipulator
        x, xd = y[:m.nx].copy(), y[m.nx:].copy()
        if m.floating:
            x[3:7] /= np.linalg.norm(x[3:7])
        return x, xd

    def effort(self, t: float, x: Array, xd: Array) -> Array:
        """Return the efforts of the actuators."""
        if not callable(self._effort):
            return self._effort
        return vector(f'effort at t = {t:.6g} s', self._effort(t, x, xd), len(self._manipulator.actuators))

    def rates(self, t: float, y: Array) -> Array:
        """Return dy/dt; raise what `forward_dynamics` raises."""
        m = self._manipulator
        x, xd = self.split(y)
        base = self._base(t) if callable(self._base) else self._base
        xdd = m.forward_dynamics(x, xd, self.effort(t, x, xd), base=base, **self._outside(x, xd))
        rate = np.empty(m.nx)
        position_rate(x, xd, rate)
        return np.concatenate((rate, xdd))

    def rates_or_nan(self, t: float, y: Array) -> Array:
        """Return dy/dt, or NaN where there is none: the solver then takes a shorter step."""
        try:
            return self.rates(t, y)
        except PsdynError as error:
            if np.isfinite(y).all():        # else a stage after one that failed
                self.failure = error
            return np.full(y.shape, np.nan)

    def _outside(self, x: Array, xd: Array) -> dict[str, Any]:
        if self._external is None:
            return {}
        applied = self._external(x, xd)
        applied = applied._asdict() if hasattr(applied, '_asdict') else dict(applied)
        for key in applied:
            if key not in OUTSIDE:
                raise UnknownNameError(f"external returns '{key}'{did_you_mean(key, OUTSIDE)}")
        return {key: value or None for key, value in applied.items()}

    def motion(self, times: Iterable[float], states: Iterable[Array]) -> Motion:
        """Return the `Motion` of states y."""
        m = self._manipulator
        rows = [self.split(y) for y in states]
        energy = np.array([m.energy(*row) for row in rows])
        stored = getattr(self._external, 'energy', None)
        if stored is not None:
            energy[:, 1] += [stored(x) for x, _ in rows]
        closures = m.machine.description.closures.values()
        x, xd = (np.array(column) for column in zip(*rows))
        efforts = np.array([self.effort(t, *row) for t, row in zip(times, rows)])
        closure = np.array([[gap(m, position, closure) for closure in closures] for position, _ in rows])
        return Motion(np.array(times), x, xd, efforts, energy[:, 0], energy[:, 1], closure, m.loops,
                      axes={**m.axes, 'loops': Axis(m.loops, ('',) * len(m.loops))})


def gap(manipulator: Manipulator, x: Array, closure: Any) -> float:
    """Return by how far [m, rad] the frames of a `Closure` are from what its type asks, from the poses of its links."""
    frames = [manipulator.link_pose(x, link) @ origin.matrix() for link, origin in (
        (closure.parent, closure.parent_origin), (closure.child, closure.child_origin))]
    (a, p), (b, q) = ((frame[:3, :3], frame[:3, 3]) for frame in frames)
    a_axis, b_axis = a @ closure.parent_axis, b @ closure.child_axis
    if closure.type == 'prismatic':
        return max(float(np.linalg.norm(np.cross(a_axis, q - p))), _turn(a, b))
    tilt = {'revolute': np.linalg.norm(np.cross(a_axis, b_axis)), 'universal': abs(a_axis @ b_axis),
            'fixed': _turn(a, b)}.get(closure.type, 0.0)
    return max(np.linalg.norm(q - p), tilt)


def _turn(a: Array, b: Array) -> float:
    """Return the angle [rad] between two rotations, where it is small."""
    return np.linalg.norm(a - b) / np.sqrt(2.0)
