"""Time-optimal timing of a path of the coordinates within speeds, accelerations, efforts, valves and pump flow.

Along x(s) the squared path speed w = (ds/dt)^2 and the path acceleration u = d2s/dt2 enter everything linearly:

    xd^2 = x'^2 w,    xdd = x' u + x'' w,    f = a u + b w + c,    w_(i+1) = w_i + 2 h u_i

and so does the force that an open valve leaves to a cylinder, as the pressures that its edges take go with xd^2.

One backward pass finds the interval of w at each node from which the end can be reached at rest, one forward pass takes
the largest u that stays within these intervals: reachability analysis (H. Pham and Q.-C. Pham, IEEE Trans. Robotics,
2018).  Each step is a linear program in (u, w), solved by eliminating u.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline

from ...api.arguments import Array, vector
from ...api.batch import shares_of
from ...api.hydraulics.statics import frictionless, hydraulic_records
from ...api.manipulator import Manipulator
from ...api.motion.samples import beyond_stops, stops_of
from ...api.results.limits import check_able
from ...api.results.result import Axis, Result
from ...model.errors import ActuationError, ShapeError, StateError
from ...model.parameters.hydraulics import Cylinder, Hydraulics, Valve
from ...model.parameters.supply import LoadSensing, Supply
from ..laws import pump_flow
from .hanging_load import HangingLoad

FLOW_SHARE = 0.995 * pump_flow.SHARE     # of the pump's flow, just below that at which a controller slows down
LEAST_PRESSURE = 1e-3   # of the declared pressure of the pump, above which another one is believed
STOP_MARGIN = 1e-9      # m or rad by which a path may be beyond a limit, by rounding
SMALL = 1e-12           # coefficients of u below this share of the largest of their row count as zero


@dataclass(frozen=True, repr=False, eq=False)
class PathLimits(Result):
    """Limits along a path; infinite where there is none."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        'velocity': ('xd',), 'acceleration': ('xdd',), 'lower': ('f',), 'upper': ('f',), 'area_out': ('areas',),
        'area_in': ('areas',), 'loss_out': ('losses',), 'loss_in': ('losses',), 'rate': ('rates',)}
    UNITS: ClassVar[Mapping[str, str]] = {'flow': 'm^3/s'}

    velocity: np.ndarray
    """(dof,) of the coordinates [m/s, rad/s]."""
    acceleration: np.ndarray
    """(dof,) [m/s^2, rad/s^2]."""
    lower: np.ndarray
    """(actuators,) least effort [N, N m]."""
    upper: np.ndarray
    """(actuators,) largest effort."""
    area_out: np.ndarray
    """(actuators,) oil that an actuator takes from the pump per metre or radian in its positive direction [m^2]."""
    area_in: np.ndarray
    """(actuators,) in its negative direction."""
    loss_out: np.ndarray
    """(actuators,) force that the open valve takes per squared speed in the positive direction [N s^2/m^2]."""
    loss_in: np.ndarray
    """(actuators,) in the negative direction."""
    rate: np.ndarray
    """(actuators,) largest speed of each [m/s, rad/s]."""
    flow: float
    """Largest flow of the pump into all actuators together [m^3/s]."""


@dataclass(frozen=True, repr=False, eq=False)
class Plan(Result):
    """A timed path, N nodes."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'x': ('x',), 'xd': ('xd',), 'xdd': ('xdd',)}
    UNITS: ClassVar[Mapping[str, str]] = {'time': 's', 'speed': '1/s'}
    INDEX: ClassVar[str] = 'time'

    time: np.ndarray
    """(N,) [s]"""
    s: np.ndarray
    """(N,) share of the path, 0 to 1."""
    speed: np.ndarray
    """(N,) ds/dt [1/s]."""
    x: np.ndarray
    """(N, nx)"""
    xd: np.ndarray
    """(N, dof)"""
    xdd: np.ndarray
    """(N, dof), the one after the node; at the last node the one before it, within the limits there too."""


class Constraints(NamedTuple):
    """alpha u + beta w <= gamma, (N, rows) each, and 0 <= w <= largest (N,)."""

    alpha: np.ndarray
    beta: np.ndarray
    gamma: np.ndarray
    largest: np.ndarray


def limits_of(manipulator: Manipulator, hydraulics: Hydraulics | None = None, *,
              acceleration: npt.ArrayLike | None = None, pressure: float | None = None,
              share: float = 1.0) -> PathLimits:
    """Return the `PathLimits` that a machine declares.

    hydraulics: of `read_hydraulics`; forces of cylinders at the pressure of the supply, or `pressure` [Pa], less what
    the pump droops by when it gives all its flow, less their friction at the rated speed, and less what the valve takes
    when it is open; speeds that compensated valves allow; the flow that a controller asks of the pump without slowing
    down.  acceleration (dof,): none is declared; None: no limit.  share: of efforts, pressure, openings and flow, so
    that the rest is left to a controller.  ActuationError where an effort or velocity limit is zero.
    """
    m = manipulator.driven_machine
    none = np.full(m.dof, np.inf)
    acceleration = none if acceleration is None else vector('acceleration', acceleration, m.dof)
    if not 0.0 < share <= 1.0:
        raise StateError(f'share = {share:g}: expected more than 0, and at most 1')
    check_able(m, 'effort')
    check_able(m, 'velocity')
    upper = share * m.limits.effort
    lower, velocity, rate = -upper, m.coordinate_limits.velocity.copy(), m.limits.velocity.copy()
    areas, losses, flow = np.zeros((2, len(m.actuators))), np.zeros((2, len(m.actuators))), np.inf
    if hydraulics is not None:
        supply, flow = hydraulics.supply, min(share, FLOW_SHARE) * hydraulics.supply.max_flow
        pressure = supply.pressure if pressure is None else _pump_pressure(float(pressure), supply)
        sensing = supply.load_sensing
        pressure = share * (pressure - (supply.droop if np.isfinite(flow) and not sensing else 0.0))
        axes = hydraulic_records(m, hydraulics)[0]
        rated = np.where(np.isfinite(m.limits.velocity), m.limits.velocity, 0.0)
        friction = axes['coulomb'] + axes['stribeck'] + axes['viscous'] * rated
        for row, name in enumerate(m.actuators):
            cylinder = hydraulics.cylinders.get(name)
            if cylinder is not None:
                a, b, valve = cylinder.area_a, cylinder.area_b, cylinder.valve
                areas[:, row] = a - b if valve.regenerative else a, b
                margin = _margin(valve, sensing)
                left = pressure - (margin if np.isfinite(margin) else 0.0)
                push = left * (a - b) if valve.regenerative else left * a - supply.return_pressure * b
                upper[row] = min(upper[row], push)
                lower[row] = max(lower[row], supply.return_pressure * a - left * b)
                losses[:, row], fastest = _valve(cylinder, margin, share)
                rate[row] = min(rate[row], fastest)
        upper, lower = upper - friction, lower + friction
    turns = [m.machine.description.joints[name].type != 'prismatic' for name in m.actuators]
    named = {what: Axis(m.actuators, tuple(units[turn] for turn in turns)) for what, units in (
        ('areas', ('m^2', 'm^3/rad')), ('losses', ('N s^2/m^2', 'N m s^2/rad^2')),
        ('rates', ('m/s', 'rad/s')))}
    if m.actuators == m.coordinates:
        velocity = rate
    return PathLimits(velocity, acceleration, lower, upper, areas[0], areas[1], losses[0], losses[1], rate, flow,
                      axes={**m.axes, **named})


def _pump_pressure(pressure: float, supply: Supply) -> float:
    """Return a pressure [Pa] of the pump; raise StateError for one that drives nothing."""
    least = max(supply.return_pressure, LEAST_PRESSURE * supply.pressure)
    if not least < pressure < np.inf:
        raise StateError(f'pressure = {pressure:g} Pa: in bar? expected Pa, more than {least:g}')
    return pressure


def _margin(valve: Valve, sensing: LoadSensing | None) -> float:
    """Return the least [Pa] that a metering edge sees at most, of compensator and load sensing; inf: no limit."""
    return min(valve.compensator_margin if valve.compensated else np.inf, sensing.margin if sensing else np.inf)


def _valve(cylinder: Cylinder, margin: float, share: float) -> tuple[tuple[float, float], float]:
    """Return ((forces taken per squared speed extending, retracting), largest speed) of a valve open by a share.

    An edge with a margin [Pa] takes that at any speed, which is no part of these.
    """
    valve, a, b = cylinder.valve, cylinder.area_a, cylinder.area_b
    pa, at, pb, bt = (share * flow / np.sqrt(valve.nominal_pressure_drop) for flow in valve.nominal_flow)
    extending, retracting = b ** 3 / bt ** 2, a ** 3 / at ** 2
    fed = a - b if valve.regenerative else a
    if not np.isfinite(margin):
        return (extending + fed ** 3 / pa ** 2, retracting + b ** 3 / pb ** 2), np.inf
    return (extending, retracting), float(np.sqrt(margin) * min(pa / fed, pb / b))


def opening_loss(limits: PathLimits, xd: Array) -> tuple[Array, Array]:
    """Return what open valves take off the largest and the least force (N, actuators) at speeds xd (N, actuators)."""
    return (limits.loss_out * np.maximum(xd, 0.0) ** 2, limits.loss_in * np.maximum(-xd, 0.0) ** 2)


def plan(manipulator: Manipulator, path: npt.ArrayLike, limits: PathLimits, *, nodes: int = 200) -> Plan:
    """Return the fastest `Plan` from rest to rest along a path, at every node within `PathLimits`.

    path (k, nx): way points of the coordinates, two or more; a natural cubic spline goes through them, for two a
    straight line.  Efforts are those of inverse dynamics; friction counts with nothing and with what it is at the
    largest speed that limits of speed and flow allow, whichever is worse.
    Of a machine whose load hangs from passive joints, path and limits are those of its driven joints, and the load is
    at rest below its suspension all the way; the `Plan` has all coordinates.
    Raises ShapeError; StateError that names the place where no motion is within the limits, or where the path leaves
    those of the coordinates; what inverse dynamics raise where a loop does not close; ActuationError as
    `check_plannable`.
    """
    check_plannable(manipulator)
    curve = path_curve(manipulator.driven_machine, path)
    if manipulator.underactuated:
        hanging = HangingLoad(manipulator)
        curve, limits = hanging.curve(curve), of_all(limits, hanging.driven)
    return plan_along(manipulator, curve, limits, nodes)


def of_all(limits: PathLimits, driven: Array) -> PathLimits:
    """Return limits of the driven coordinates as those of all, of which driven (dof,) says which they are."""
    def filled(values: Array, other: float) -> Array:
        out = np.full(driven.size, other)
        out[driven] = values
        return out
    none = {'velocity': np.inf, 'acceleration': np.inf, 'lower': -np.inf, 'upper': np.inf, 'area_out': 0.0,
            'area_in': 0.0, 'loss_out': 0.0, 'loss_in': 0.0, 'rate': np.inf}
    return PathLimits(**{name: filled(getattr(limits, name), value) for name, value in none.items()}, flow=limits.flow,
                      axes={})


def plan_along(manipulator: Manipulator, curve: Callable[..., Array], limits: PathLimits, nodes: int) -> Plan:
    """Return the `Plan` along a curve x(s) of all coordinates, s from 0 to 1, within limits of all of them."""
    m = manipulator
    x, slope, bend = spline(curve, nodes)
    _check_stops(m, x)
    constraints = constraints_of(m, x, slope, bend, limits)
    w, u = fastest(constraints, 1.0 / (nodes - 1),
                   lambda node: _where(m, x, node) + _overload(m, constraints, limits, node))
    speed = np.sqrt(w)
    time = np.concatenate(([0.0], np.cumsum(2.0 / (nodes - 1) / (speed[:-1] + speed[1:]))))
    xdd = slope * u[:, None] + bend * w[:, None]
    return Plan(time, np.linspace(0.0, 1.0, nodes), speed, x, slope * speed[:, None], xdd, axes=m.axes)


def check_plannable(m: Manipulator) -> None:
    """Raise ActuationError for a floating base, and where actuators are too few or share what a load hangs from."""
    d = m.driven_machine
    if d.floating or len(d.actuators) < d.dof or (m.underactuated and d.actuators != d.coordinates):
        reason = 'its base floats' if d.floating else f'it has {len(d.actuators)} for {d.dof} that are driven'
        raise ActuationError(f"'{m.name}' cannot be planned: {reason}; expected a machine on a fixed base with an "
                             'actuator for each coordinate or more, where a load hangs as many')


def spline(curve: Callable[..., Array], nodes: int) -> tuple[Array, Array, Array]:
    """Return x, x' and x'' (nodes, nx) of a curve x(s), equally spaced in s."""
    s = np.linspace(0.0, 1.0, nodes)
    return np.ascontiguousarray(curve(s)), curve(s, 1), curve(s, 2)


def path_curve(m: Manipulator, path: npt.ArrayLike) -> CubicSpline:
    """Return the spline x(s), s from 0 to 1, through way points (k, nx)."""
    path = np.asarray(path, dtype=float)
    if path.ndim != 2 or path.shape[0] < 2 or path.shape[1] != m.nx:
        raise ShapeError(f'path has shape {path.shape}; expected two or more rows of {m.nx} positions')
    width = m.coordinate_limits.upper - m.coordinate_limits.lower
    width = np.where(np.isfinite(width) & (width > 0.0), width, 1.0)
    steps = np.linalg.norm(np.diff(path, axis=0) / width, axis=1)
    if not (steps > 0.0).all():
        raise StateError(f'path: points {int(np.argmin(steps))} and {int(np.argmin(steps)) + 1} are the same')
    s = np.concatenate(([0.0], np.cumsum(steps / steps.sum())))
    s[-1] = 1.0
    return CubicSpline(s, path, bc_type='natural')


def _check_stops(m: Manipulator, x: Array) -> None:
    """Raise StateError where rows of x (N, nx) are beyond the limits of a joint."""
    away = np.nan_to_num(beyond_stops(m, x))        # where loops do not close inverse dynamics say so
    if away.max(initial=0.0) > STOP_MARGIN:
        node, row = np.unravel_index(int(np.argmax(away)), away.shape)
        raise StateError(f'the path takes {stops_of(m).names[row]} {away[node, row]:.3g} beyond its limit at '
                         f'{_where(m, x, int(node))}')
    limits = m.coordinate_limits
    beyond = np.maximum(x - limits.upper, limits.lower - x)
    node, column = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
    if beyond[node, column] > STOP_MARGIN:
        raise StateError(f'the path goes {beyond[node, column]:.3g} beyond the limit of {m.coordinates[column]} at '
                         f'{_where(m, x, int(node))}; expected {limits.lower[column]:g} to {limits.upper[column]:g}')


def constraints_of(m: Manipulator, x: Array, slope: Array, bend: Array, limits: PathLimits) -> Constraints:
    """Return the `Constraints` at the nodes of a path: positions, first and second derivatives by s (N, dof)."""
    rest, shares = np.zeros_like(x), shares_of(m, x)
    moved = shares.rates_of(slope)
    with np.errstate(divide='ignore', over='ignore'):
        largest = ((limits.velocity / abs(slope)) ** 2).min(axis=1)
        largest = np.minimum(largest, ((limits.rate / abs(moved)) ** 2).min(axis=1))
        demand = np.where(moved > 0.0, moved * limits.area_out, -moved * limits.area_in).sum(axis=1)
        largest = np.minimum(largest, (limits.flow / demand) ** 2)
    smooth = frictionless(m)
    c = shares.efforts_for(smooth.generalized_forces(x, rest, rest))
    a = shares.efforts_for(smooth.generalized_forces(x, rest, slope)) - c
    b = shares.efforts_for(smooth.generalized_forces(x, slope, bend)) - c
    top = slope * np.sqrt(np.where(np.isfinite(largest), largest, 1.0))[:, None]
    friction = shares.efforts_for(m.generalized_forces(x, top, rest) - smooth.generalized_forces(x, top, rest))
    friction = friction - shares.kept
    upper = limits.upper - c - np.maximum(friction, 0.0)
    lower = limits.lower - c - np.minimum(friction, 0.0)
    bound = np.broadcast_to(limits.acceleration, slope.shape)
    lost = [loss * np.maximum(way * moved, 0.0) ** 2 for loss, way in ((limits.loss_out, 1.0), (limits.loss_in, -1.0))]
    alpha = np.concatenate((a, -a, slope, -slope), axis=1)
    beta = np.concatenate((b + lost[0], -b + lost[1], bend, -bend), axis=1)
    gamma = np.concatenate((upper, -lower, bound, bound), axis=1)
    return Constraints(alpha, beta, gamma, largest)


def fastest(constraints: Constraints, h: float, where: Callable[[int], str] = str) -> tuple[Array, Array]:
    """Return w and u (N,) of the fastest motion from rest to rest; where: text of a node for errors."""
    nodes = len(constraints.largest)
    low, high = np.zeros(nodes), np.zeros(nodes)
    for i in range(nodes - 2, -1, -1):
        low[i], high[i] = _interval(constraints, i, h, low[i + 1], high[i + 1])
        if not low[i] <= high[i]:
            raise StateError(f'no motion along the path is within the limits at {where(i)}')
    if low[0] > 0.0:
        raise StateError(f'the limits admit no start from rest at {where(0)}')
    w, u = np.zeros(nodes), np.zeros(nodes)
    for i in range(nodes - 1):
        u[i] = _largest_u(constraints, i, h, w[i], low[i + 1], high[i + 1])
        w[i + 1] = min(max(w[i] + 2.0 * h * u[i], low[i + 1]), high[i + 1])
        if not w[i] + w[i + 1] > 0.0:       # a path that turns back may stop at one node
            raise StateError(f'the limits admit no motion at {where(i + 1)}')
    u[-1] = u[-2]
    return w, u


def _rows(constraints: Constraints, i: int, h: float, low: float, high: float) -> tuple[Array, Array, Array]:
    """Return (alpha, beta, gamma) of node i with low <= w + 2 h u <= high; the last u holds at the last node too."""
    alpha, _, gamma, _ = (rows[i + 1:] if i == len(rows) - 2 else rows[:0] for rows in constraints)     # at rest there
    return (np.concatenate((constraints.alpha[i], alpha.ravel(), (2.0 * h, -2.0 * h))),
            np.concatenate((constraints.beta[i], np.zeros(alpha.size), (1.0, -1.0))),
            np.concatenate((constraints.gamma[i], gamma.ravel(), (high, -low))))


def _interval(constraints: Constraints, i: int, h: float, low: float, high: float) -> tuple[float, float]:
    """Return the least and the largest w at node i from which some u leads to w within low..high at the next node."""
    alpha, beta, gamma = _rows(constraints, i, h, low, high)
    finite = np.isfinite(gamma)
    alpha, beta, gamma = alpha[finite], beta[finite], gamma[finite]
    flat = abs(alpha) <= SMALL * np.maximum(abs(beta), 1e-300)
    up, down = (alpha > 0.0) & ~flat, (alpha < 0.0) & ~flat
    # u <= (gamma - beta w) / alpha above, >= below: every pair leaves a bound of w
    slope, offset = -beta / np.where(flat, 1.0, alpha), gamma / np.where(flat, 1.0, alpha)
    p = np.concatenate((np.subtract.outer(slope[down], slope[up]).ravel(), beta[flat], [1.0, -1.0]))
    q = np.concatenate((-np.subtract.outer(offset[down], offset[up]).ravel(), gamma[flat],
                        [constraints.largest[i], 0.0]))
    with np.errstate(divide='ignore', invalid='ignore'):
        above, below = np.where(p > 0.0, q / p, np.inf), np.where(p < 0.0, q / p, -np.inf)
    if ((p == 0.0) & (q < 0.0)).any():
        return 1.0, 0.0
    return max(float(below.max()), 0.0), float(above.min())


def _largest_u(constraints: Constraints, i: int, h: float, w: float, low: float, high: float) -> float:
    """Return the largest u at node i at w."""
    alpha, beta, gamma = _rows(constraints, i, h, low, high)
    up = alpha > SMALL * np.maximum(abs(beta), 1e-300)
    return float(((gamma[up] - beta[up] * w) / alpha[up]).min())


def _where(m: Manipulator, x: Array, node: int) -> str:
    place = ', '.join(f'{name} = {value:.6g}' for name, value in zip(m.coordinates, x[node]))
    return f'{100.0 * node / (len(x) - 1):.3g} % of the path, {place}'


def _overload(m: Manipulator, constraints: Constraints, limits: PathLimits, node: int) -> str:
    """Return which effort is beyond its limit while the machine stands still at a node; empty where none is."""
    n, names = len(limits.upper), m.coordinates if m.underactuated else m.actuators
    room = constraints.gamma[node, :2 * n]
    row = int(np.argmin(room))
    if room[row] >= 0.0:
        return ''
    limit, sign = (limits.upper[row], 1.0) if row < n else (limits.lower[row - n], -1.0)
    return (f"; at rest there '{names[row % n]}' needs {limit - sign * room[row]:.4g} N or N m with friction, "
            f'and its limit is {limit:.4g}')
