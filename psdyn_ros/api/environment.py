"""External actions on a machine as kernel rows: prescribed base motion, gravity, external wrenches."""
from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..assembly.machine import Machine
from ..kernels.rigid_body.mechanism import Handle
from ..model.errors import ShapeError, StateError, UnknownNameError, did_you_mean
from ..model.mechanism.machine import Place
from .arguments import Array, Wrenches, pair, vector
from .kinematics import displacement, placed
from .orientation import rotation

if TYPE_CHECKING:
    from .manipulator import Manipulator


class BaseMotion(NamedTuple):
    """Prescribed motion of `base_link`'s origin, in its own axes."""

    orientation: tuple = (0.0, 0.0, 0.0, 1.0)
    """Quaternion x y z w, base axes to inertial axes."""
    twist: tuple = (0.0,) * 6
    """(v, w): velocity of the origin [m/s] and angular velocity [rad/s]."""
    acceleration: tuple = (0.0,) * 6
    """Classical: rate of the inertial velocity [m/s^2], angular acceleration [rad/s^2]; gravity not in it."""


def base_rows(gravity: Array, base: BaseMotion | BaseDrive | None) -> Array:
    """Return (2, 6): twist of the base, and its spatial acceleration with gravity in it, in base axes."""
    rows = np.zeros((2, 6))
    if base is None:
        rows[1, :3] = -gravity
        return rows
    try:
        base = BaseMotion(*base)
    except TypeError:
        raise ShapeError(f'base={base!r:.80}: expected a BaseMotion(orientation, twist, acceleration)') from None
    orientation = vector('base.orientation', base.orientation, 4)
    rows[0] = vector('base.twist', base.twist, 6)
    rows[1] = vector('base.acceleration', base.acceleration, 6)
    if np.linalg.norm(orientation) < 1e-6:
        raise StateError(f'base.orientation = {orientation.tolist()} is no rotation; expected a quaternion x y z w')
    # the spatial acceleration is the rate in body coordinates: without w x v (Paz & Mattila, sec. 2)
    rows[1, :3] -= np.cross(rows[0, 3:], rows[0, :3]) + rotation(orientation).T @ gravity
    return rows


class BaseDrive(NamedTuple):
    """Prescribed motion of a floating base: driven coordinates of its twist (v, w); the others are free."""

    driven: tuple = (True,) * 6
    acceleration: tuple = (0.0,) * 6
    """Rate of the twist in base axes [m/s^2, rad/s^2]."""


def wrench_rows(m: Manipulator, x: Array, wrenches: Wrenches) -> tuple[Array, Array]:
    """Return ((3 n, 6) wrenches on link, barrel and rod of each module in their kernel frames, (6,) on the base)."""
    machine, work = m.machine, None
    rows, on_base = np.zeros((len(machine.modules), 3, 6)), np.zeros(6)
    if not isinstance(wrenches, dict):
        raise ShapeError(f'wrenches={wrenches!r:.80}: expected {{link: (force, moment)}}')
    for link, wrench in wrenches.items():
        place = find_link(machine, link)
        force, moment = pair(f"wrench on '{link}'", wrench, 'force, moment')
        force = place.pose.rotation @ vector(f"force on '{link}'", force, 3)
        moment = place.pose.rotation @ vector(f"moment on '{link}'", moment, 3)
        if work is None:
            work = placed(m, x, np.zeros(m.dof), np.zeros(m.dof)).work
        origin = place.pose.position + displacement(work, place)
        row = on_base if place.module < 0 else rows[place.module, place.body]
        row[:3] += force
        row[3:] += moment + np.cross(origin, force)
    return rows.reshape(-1, 6), on_base


def find_link(machine: Machine, link: str) -> Place:
    """Return the `Place` of a link; UnknownNameError suggests the nearest name."""
    try:
        return machine.places[link]
    except (KeyError, TypeError):
        raise UnknownNameError(f"link '{link}': no such link in '{machine.name}'"
                               f'{did_you_mean(str(link), machine.places)}') from None


def set_rows(handle: Handle, rows: Array) -> None:
    """Set base motion and wrenches of a handle: rows (2, 6), or (2 + 3 modules, 6), of `Manipulator.environment`."""
    handle.environment['twist'], handle.environment['acceleration'] = rows[:2]
    handle.environment['loaded'] = len(rows) > 2
    if len(rows) > 2:
        handle.modules['external'] = rows[2:].reshape(-1, 3, 6)
