"""A motion that a machine can execute: the fastest timing of a path, with limited jerk, efforts and pump flow.

The timing of `time_optimal.plan` switches accelerations at once, which no valve follows.  Its path position s(t) is
therefore averaged over a window: the geometry stays, speeds stay below those before, accelerations become ramps as long
as the window, and the motion takes one window longer.  What the average moves beyond a limit of acceleration, force or
flow is taken back by slowing the whole motion down.

Where a load hangs, the motion is then shaped as a controller shapes trajectories, so that the load rests in the end,
and takes as much longer as the shaper does; efforts are those that it takes while the load swings.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.interpolate import PPoly

from ...api.arguments import Array, vector
from ...api.batch import shares_of
from ...api.manipulator import Manipulator
from ...api.results.result import Axis, Result
from ...model.errors import StateError
from ..reference.swing_shaper import ZVD
from ..reference.trajectory import Curve, Waypoints, quintic_curve
from .hanging_load import HangingLoad
from .time_optimal import PathLimits, Plan, opening_loss, path_curve, plan

WINDOW = 0.1            # s where no jerk is limited
STEP = 0.01             # s between two instants
SLOWER = 100            # times that a motion is slowed down
LOOKS = np.linspace(0.0, 1.0, 9)    # between two instants, where a controller has a quintic
MARGIN = 1.001          # by which a motion is slowed down more than its worst limit asks for


@dataclass(frozen=True, repr=False, eq=False)
class PlannedMotion(Result):
    """A motion of the driven joints from rest to rest, N instants."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'x': ('x',), 'xd': ('xd',), 'xdd': ('xdd',), 'f': ('f',),
                                                     'rate': ('rates',), 'use': ('limits',), 'passive': ('passive',),
                                                     'swing_left': ('passive',)}
    UNITS: ClassVar[Mapping[str, str]] = {'time': 's', 'flow': 'm^3/s'}
    INDEX: ClassVar[str] = 'time'

    time: np.ndarray
    """(N,) [s]"""
    x: np.ndarray
    """(N, nx)"""
    xd: np.ndarray
    """(N, dof)"""
    xdd: np.ndarray
    """(N, dof)"""
    f: np.ndarray
    """(N, actuators) efforts of inverse dynamics, or of hybrid dynamics where a load hangs."""
    rate: np.ndarray
    """(N, actuators) speeds of the actuators."""
    flow: np.ndarray
    """(N,) of the pump into all actuators [m^3/s]."""
    use: np.ndarray
    """(N, 5) share of each limit that is used by whatever uses most of it: `LIMITS`."""
    passive: np.ndarray
    """(N, passive) positions of passive joints."""
    swing_left: np.ndarray
    """(passive,) largest amplitude of their swing after the motion."""

    @property
    def duration(self) -> float:
        """s."""
        return float(self.time[-1])

    def waypoints(self, manipulator: Manipulator) -> Waypoints:
        """Return the `Waypoints` that a controller follows."""
        return Waypoints(manipulator.driven_machine.coordinates, self.time, self.x, self.xd, self.xdd)


LIMITS = 'speed', 'acceleration', 'jerk', 'effort', 'flow'


def plan_motion(manipulator: Manipulator, path: npt.ArrayLike, limits: PathLimits, *, jerk: npt.ArrayLike | None = None,
                nodes: int = 300, step: float = STEP, shaper: str = ZVD) -> PlannedMotion:
    """Return the `PlannedMotion` along way points of the driven coordinates (k, nx), as `time_optimal.plan` takes them.

    jerk (dof,): [m/s^3, rad/s^3]; None: none is limited, and accelerations change within `WINDOW`.  step: s.
    shaper: of the swing of a load that hangs, as the parameter `swing_shaper` of a controller.
    Raises as `plan`, and StateError where the averaged timing does not come within the limits.
    """
    m = manipulator.driven_machine
    jerk = np.full(m.dof, np.inf) if jerk is None else vector('jerk', jerk, m.dof)
    fastest, curve = plan(manipulator, path, limits, nodes=nodes), path_curve(m, path)
    hanging = HangingLoad(manipulator, shaper) if manipulator.underactuated else None
    xdd = fastest.xdd if hanging is None else fastest.xdd[:, hanging.driven]
    steps = np.abs(np.diff(xdd, axis=0, prepend=0.0, append=0.0)).max(axis=0)
    with np.errstate(invalid='ignore'):
        window = max(WINDOW, float(np.nanmax(np.where(np.isfinite(jerk), steps / jerk, 0.0))))
    slow = 1.0
    for _ in range(SLOWER):
        rows = _sampled(_averaged(fastest, window), curve, slow, step)
        found = _motion(m, rows, limits, jerk) if hanging is None else _shaped(manipulator, hanging, rows, limits, jerk)
        worst = found.use.max(axis=0)
        if (worst <= 1.0).all():
            return found
        # time stretched by k: speed and flow 1 / k, acceleration 1 / k^2, jerk 1 / k^3; an effort has its weight too
        needed = max(worst[0], worst[4], worst[1] ** 0.5, worst[2] ** (1.0 / 3.0), min(worst[3] ** 0.5, 1.01))
        slow *= needed * MARGIN
    name, value = LIMITS[int(worst.argmax())], worst.max()
    raise StateError(f'the motion uses {value:.1%} of its limit of {name} however slow it is')


def _averaged(fastest: Plan, window: float) -> Any:
    """Return the piecewise polynomial s(t) of a plan, averaged over a window [s] that ends at t."""
    time, speed = fastest.time, fastest.speed
    rate = 0.5 * np.diff(speed) / np.diff(time)
    knots = np.concatenate(([time[0] - 2.0 * window], time, [time[-1] + 2.0 * window]))
    c = np.zeros((3, len(knots) - 1))
    c[:, 1:-1] = rate, speed[:-1], fastest.s[:-1]
    c[2, -1] = fastest.s[-1]
    s = PPoly(c, knots)
    whole, rates = s.antiderivative(), s.derivative()
    end = time[-1] + window

    def averaged(t: Array) -> tuple[Array, Array, Array]:
        before = t - window
        return ((whole(t) - whole(before)) / window, (s(t) - s(before)) / window, (rates(t) - rates(before)) / window)
    return averaged, end


def _sampled(timing: Any, curve: Any, slow: float, step: float) -> tuple[Array, Array, Array, Array]:
    """Return (time, x, xd, xdd) of a timing (function of t, its end [s]) that is `slow` times as slow."""
    averaged, end = timing
    time = np.linspace(0.0, slow * end, max(int(np.ceil(slow * end / step)), 2) + 1)
    s, rate, bend = averaged(time / slow)
    rate, bend = rate / slow, bend / slow ** 2
    rate[[0, -1]] = bend[[0, -1]] = 0.0
    s = np.clip(s, 0.0, 1.0)
    x, slope = np.ascontiguousarray(curve(s)), curve(s, 1)
    xd = slope * rate[:, None]
    return time, x, xd, slope * bend[:, None] + curve(s, 2) * rate[:, None] ** 2


def _shaped(m: Manipulator, hanging: HangingLoad, rows: tuple[Array, ...], limits: PathLimits,
            jerk: Array) -> PlannedMotion:
    """Return the motion of (time, x, xd, xdd) of the driven joints with what hangs from them, shaped."""
    time, states, middle = hanging.motion(hanging.shaped(*rows), float(rows[0][1]))
    d, (x, xd, *_) = hanging.driven, states
    *driven, f = np.ascontiguousarray(states[:, :, d])
    found = _motion(m.driven_machine, (time, *driven), limits, jerk, (f, middle[1][:, d], middle[3][:, d]))
    names = tuple(np.array(m.coordinates)[~d])
    units = tuple(np.array(m.axes['x'].units)[~d])
    return replace(found, passive=x[:, ~d], swing_left=hanging.swing_left(x[-1], xd[-1]),
                   axes={**found.axes, 'passive': Axis(names, units)})


def _largest(curve: Curve) -> Array:
    """Return the largest speed, acceleration and jerk (3, N, dof) on the way to each knot of a curve."""
    segments, rows = np.arange(len(curve.times) - 1), []
    for share in LOOKS:
        shares = np.full(len(segments), share)
        rows.append(np.abs([*curve.rows(segments, shares)[1:], curve.jerks(segments, shares)]))
    found = np.max(rows, axis=0)
    return np.concatenate((found[:, :1], found), axis=1)


def _drive(limits: PathLimits, xd: Array, f: Array) -> tuple[Array, Array]:
    """Return the share of the efforts (N,) that f at rates xd (N, actuators) use, and the flow (N,) [m^3/s]."""
    flow = np.maximum(xd, 0.0) @ limits.area_out + np.maximum(-xd, 0.0) @ limits.area_in
    lost_up, lost_down = opening_loss(limits, xd)
    upper, lower = limits.upper - lost_up, limits.lower + lost_down
    with np.errstate(invalid='ignore', divide='ignore'):
        middle = 0.5 * (upper + lower)
        half = np.where(np.isfinite(upper - lower), upper - middle, np.inf)
        used = np.where(np.isfinite(half), np.abs(f - np.where(np.isfinite(middle), middle, 0.0)) / half, 0.0)
    return np.where((half > 0.0).all(axis=1), used.max(axis=1), np.inf), flow


def _motion(m: Manipulator, rows: tuple[Array, ...], limits: PathLimits, jerk: Array,
            efforts: tuple[Array, Array, Array] | None = None) -> PlannedMotion:
    """Return the motion of (time, x, xd, xdd), with efforts, flow and their limits also looked at half way.

    efforts: f (N, actuators), xd and f half way to the next instant (N - 1, actuators); None: by inverse dynamics.
    """
    time, x, xd, xdd = rows
    curve, shares = quintic_curve(time, x, xd, xdd), shares_of(m, x)
    rate = shares.rates_of(xd)
    if efforts is None:
        middle = curve.rows(np.arange(len(time) - 1), np.full(len(time) - 1, 0.5))
        x_m, xd_m, xdd_m = (np.ascontiguousarray(one) for one in middle)
        between = shares_of(m, x_m)
        efforts = (shares.efforts_for(m.generalized_forces(x, xd, xdd)), between.rates_of(xd_m),
                   between.efforts_for(m.generalized_forces(x_m, xd_m, xdd_m)))
    f, rate_m, f_m = efforts
    effort, flow = _drive(limits, rate, f)
    used, given = _drive(limits, rate_m, f_m)
    effort[1:], flow[1:] = np.maximum(effort[1:], used), np.maximum(flow[1:], given)
    with np.errstate(invalid='ignore', divide='ignore'):
        speed, acceleration, third = _largest(curve)
        use = np.column_stack([np.maximum((speed / limits.velocity).max(axis=1), abs(rate / limits.rate).max(axis=1)),
                               (acceleration / limits.acceleration).max(axis=1), (third / jerk).max(axis=1),
                               effort, flow / limits.flow])
    return PlannedMotion(time, x, xd, xdd, f, rate, flow, use, np.empty((len(time), 0)), np.empty(0), axes={
        **m.axes, 'limits': Axis(LIMITS, ('',) * len(LIMITS)), 'rates': limits.axes['rates'], 'passive': Axis((), ())})
