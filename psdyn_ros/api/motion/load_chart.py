"""Load chart: how much a machine holds at a point of a link, over reach and height."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...model.errors import ActuationError, ModelError, StateError
from ...model.parameters.hydraulics import Hydraulics
from ..arguments import Array, vector
from ..batch import shares_of
from ..inputs import states
from ..results.limits import check_able
from ..results.result import Result, import_pandas
from .inverse_kinematics import Search
from .jacobian import jacobian
from .link_point import point_record, poses
from .samples import sampled_poses
from .suspension import hanging_positions, link_above
from .workspace import reach_and_height, upright

if TYPE_CHECKING:
    import pandas

    from ..manipulator import Manipulator

SAMPLES = 4096
POSTURES = 4            # best samples of a cell that are moved onto its node
IDLE = 1e-9             # rates of reach and height for unit rate below this share of the largest count as zero
ON_NODE = 1e-6          # a posture may miss its node by so much [m]
NO_LEVER = 1e-12        # efforts per kg below this count as none [N/kg]


@dataclass(frozen=True, repr=False, eq=False)
class LoadChart(Result):
    """Largest mass that is held at rest, at nodes of reach and height in a vertical plane through the base's origin."""

    AXES: ClassVar[Mapping[str, tuple[str, ...]]] = {'x': ('x',), 'lower': ('f',), 'upper': ('f',)}
    UNITS: ClassVar[Mapping[str, str]] = {'reach': 'm', 'height': 'm', 'mass': 'kg'}

    reach: Array
    """(n,) distance from the vertical through the base's origin [m]."""
    height: Array
    """(k,) above the base's origin [m]."""
    mass: Array
    """(k, n) [kg]; NaN where the point does not come or the machine does not hold its own weight, inf where no actuator
    is ever at its limit."""
    x: Array
    """(k, n, nx) posture that holds it, the best one of those that were tried; NaN likewise."""
    limiting: Array
    """(k, n) row of the actuator that is at its limit, -1 where none is."""
    actuators: tuple[str, ...]
    """Their names."""
    lower: Array
    """(actuators,) least effort of each [N, N m]."""
    upper: Array
    """(actuators,) largest effort."""

    def capacity(self) -> Array:
        """Return (n,) the largest mass over all heights [kg], NaN where the reach is none."""
        known = ~np.isnan(self.mass).all(axis=0)
        out = np.full(len(self.reach), np.nan)
        out[known] = np.nanmax(self.mass[:, known], axis=0)
        return out

    def to_frame(self) -> pandas.DataFrame:
        """Return the masses [kg] as a pandas.DataFrame: a row per height, a column per reach [m]."""
        pandas = import_pandas()
        return pandas.DataFrame(self.mass, index=pandas.Index(self.height, name='height'),
                                columns=pandas.Index(self.reach, name='reach'))


def load_chart(manipulator: Manipulator, link: str, *, point: npt.ArrayLike = (0.0, 0.0, 0.0),
               hydraulics: Hydraulics | None = None, pressure: float | None = None,
               nodes: tuple[int, int] = (24, 24)) -> LoadChart:
    """Return the `LoadChart` of a point mass that hangs at a point of a link while the machine is at rest.

    Actuators keep within the effort limits of the URDF and, where `hydraulics` (of `read_hydraulics`) are given, their
    cylinders within what a pump pressure [Pa] on one side and the return pressure on the other give, or the pump
    pressure on both while a regenerative valve extends them; pressure None: that of the supply.  Friction helps nobody.
    How far the machine stands from tipping over is not part of it.
    point (3,) in link axes [m].  nodes: numbers of reaches and heights.  Coordinates that change neither, as a slew,
    and a floating base stay at the initial position.  What hangs from passive joints hangs at rest and is held beside
    the mass; the link is one that actuators move, and x are the driven coordinates.
    Redundant actuators share the efforts as in `inverse_dynamics`, up to where the first one is at its limit.
    Raises ActuationError where there are fewer actuators than coordinates, or none has a limit or one that of zero;
    ModelError for a link
    that hangs, StateError.
    """
    whole, m = manipulator, manipulator.driven_machine
    above = link_above(whole, link)
    if above:
        raise ModelError(f"'{link}' hangs from passive joints; expected '{above}', or another link that actuators move")
    lower, upper = _effort_limits(m, hydraulics, pressure)
    columns, rows = (int(number) for number in vector('nodes', nodes, 2))
    if min(columns, rows) < 2:
        raise StateError(f'nodes = {nodes}: expected two or more reaches and heights')
    record, up, start = point_record(m, link, point), upright(m), m.initial_position
    held = _idle(m, link, point, record, up)
    x, pose = sampled_poses(m, record, start, held, SAMPLES)
    r, z = reach_and_height(pose[:, :, 3], up)
    mass, _ = capacities(whole, x, link, point, lower, upper)
    reach, height = np.linspace(r.min(), r.max(), columns), np.linspace(z.min(), z.max(), rows)
    steps = reach[1] - reach[0], height[1] - height[0]
    chart = LoadChart(reach, height, np.full((rows, columns), np.nan), np.full((rows, columns, m.nx), np.nan),
                      np.full((rows, columns), -1), m.actuators, lower, upper, axes=m.axes)
    # an idle coordinate turns the point into the plane
    search = Search(m, link, point, start, np.zeros_like(held))
    for i, j in np.ndindex(rows, columns):
        away = np.maximum(abs(r - reach[j]) / max(steps[0], 1e-9), abs(z - height[i]) / max(steps[1], 1e-9))
        near = np.flatnonzero(away < 1.0)
        near = near[np.argsort(-np.nan_to_num(mass[near], nan=-1.0))][:POSTURES]
        found = [search.nearest(_on_node(pose[k, :, 3], up, reach[j], height[i]), x[k]) for k in near]
        _enter_best(whole, chart, (i, j), np.array(found).reshape(-1, m.nx), record, up, (link, point))
    return chart


def _enter_best(m: Manipulator, chart: LoadChart, node: tuple[int, int], x: Array, record: Any, up: Array,
                where: tuple[str, Any]) -> None:
    """Enter the posture of x (k, nx) that holds most at a node, of those that are there."""
    if not len(x):
        return
    r, z = reach_and_height(poses(m.driven_machine, record, x)[:, :, 3], up)
    i, j = node
    x = x[(abs(r - chart.reach[j]) < ON_NODE) & (abs(z - chart.height[i]) < ON_NODE)]
    if not len(x):
        return
    mass, limiting = capacities(m, x, *where, chart.lower, chart.upper)
    if not np.isnan(mass).all():
        best = int(np.nanargmax(mass))
        chart.mass[node], chart.x[node], chart.limiting[node] = mass[best], x[best], limiting[best]


def _on_node(position: Array, up: Array, reach: Any, height: Any) -> Array:
    """Return the position (3,) of a node in the vertical plane of a position."""
    flat = position - up * (up @ position)
    size = np.linalg.norm(flat)
    if size < 1e-9:
        flat = np.cross(up, (0.0, 1.0, 0.0) if abs(up[1]) < 0.9 else (1.0, 0.0, 0.0))
        size = np.linalg.norm(flat)
    return reach * flat / size + height * up


def _idle(m: Manipulator, link: str, point: npt.ArrayLike, record: Any, up: Array) -> Array:
    """Return (n,) bool: coordinates that change neither reach nor height."""
    free = np.zeros(len(m.coordinates), dtype=bool)
    x, pose = sampled_poses(m, record, m.initial_position, free, 256)
    J = jacobian(m, x, link, point=point)[:, :3, m.dof - len(m.coordinates):]
    if m.floating:
        J = m.link_pose(m.initial_position, m.machine.base_link)[:3, :3].T @ J
    flat = pose[:, :, 3] - np.multiply.outer(pose[:, :, 3] @ up, up)
    outward = flat / np.maximum(np.linalg.norm(flat, axis=1), 1e-9)[:, None]
    rates = np.maximum(abs(np.einsum('ni,nij->nj', outward, J)), abs(np.einsum('i,nij->nj', up, J))).max(axis=0)
    return rates < IDLE * max(rates.max(initial=0.0), 1e-300)


def capacities(whole: Manipulator, x: Array, link: str, point: npt.ArrayLike, lower: Array, upper: Array) \
        -> tuple[Array, Array]:
    """Return (largest masses (N,), rows of the actuators at their limit) at postures x (N, nx) of the driven machine.

    Efforts are linear in the mass: those without it, and the weight of one kilogram by the Jacobian.  Redundant
    actuators share them as `allocation` does without limits.  A mass is NaN where the efforts without it are beyond a
    limit, and where what is on passive joints does not hang.
    """
    m = whole.driven_machine
    x, = states(m, batch=True, x=x)
    first = m.dof - len(m.coordinates)
    unloaded = _unloaded(whole, x)
    J = jacobian(m, x, link, point=point)[:, :3, first:]
    per_mass = -np.einsum('nij,i->nj', J, m.gravity)
    shares = shares_of(m, x)
    unloaded, per_mass = shares.efforts_for(unloaded), np.einsum('nij,nj->ni', shares.efforts, per_mass)
    with np.errstate(divide='ignore', invalid='ignore'):
        room = np.where(per_mass > NO_LEVER, (upper - unloaded) / per_mass,
                        np.where(per_mass < -NO_LEVER, (lower - unloaded) / per_mass, math.inf))
    limiting = np.argmin(room, axis=1)
    mass = room[np.arange(len(x)), limiting]
    limiting[np.isinf(mass)] = -1
    mass[((unloaded > upper) | (unloaded < lower)).any(axis=1)] = np.nan
    return mass, limiting


def _unloaded(whole: Manipulator, x: Array) -> Array:
    """Return the forces (N, coordinates) of rest at postures x (N, nx) of the driven machine; NaN where it has none."""
    m = whole.driven_machine
    if m is whole:
        rest = np.zeros((len(x), m.dof))
        return m.generalized_forces(x, rest, rest)[:, m.dof - len(m.coordinates):]
    position, hangs = hanging_positions(whole, x)
    rest = np.zeros((len(x), whole.dof))
    forces = whole.generalized_forces(position, rest, rest)[:, [name in m.coordinates for name in whole.coordinates]]
    forces[~hangs] = np.nan
    return forces


def _effort_limits(m: Manipulator, hydraulics: Hydraulics | None, pressure: float | None) -> tuple[Array, Array]:
    """Return the least and the largest effort (actuators,) of each actuator."""
    if len(m.actuators) < len(m.coordinates):
        raise ActuationError(f"'{m.name}' has {len(m.actuators)} actuators for {len(m.coordinates)} joint coordinates; "
                             'a load chart needs one for each, since a joint that nothing holds carries no mass')
    check_able(m, 'effort')
    upper, lower = m.limits.effort.copy(), -m.limits.effort
    if hydraulics is None and pressure is not None:
        raise StateError(f'pressure = {pressure!r}: areas of the cylinders are not known; give the hydraulics too')
    if hydraulics is not None:
        supply = hydraulics.supply
        pressure = supply.pressure if pressure is None else float(vector('pressure', [pressure], 1)[0])
        if not pressure > supply.return_pressure:
            raise StateError(f'pressure = {pressure:g} Pa: expected more than the return pressure, '
                             f'{supply.return_pressure:g} Pa')
        for row, name in enumerate(m.actuators):
            cylinder = hydraulics.cylinders.get(name)
            if cylinder is not None:
                push, pull = supply.largest_forces(cylinder, pressure)
                upper[row], lower[row] = min(upper[row], push), max(lower[row], -pull)
    if not (np.isfinite(upper).any() or np.isfinite(lower).any()):
        raise ActuationError(f"no actuator of '{m.name}' has an effort limit ({', '.join(m.actuators)})")
    return lower, upper
