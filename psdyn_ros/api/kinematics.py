"""Where links are and how fast they move, from the scratch of a handle that was placed."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.loops.closure import close_machine
from ..kernels.rigid_body.entry import place_checked
from ..kernels.rigid_body.mechanism import Handle
from ..kernels.rigid_body.records import BARREL, LINK, ROD
from ..kernels.rigid_body.triangle import triangle
from ..model.mechanism.frames import about_x, about_z
from ..model.mechanism.machine import Place
from .arguments import Array
from .errors_from_status import check, closure_error
from .orientation import rotation

if TYPE_CHECKING:
    from .manipulator import Manipulator


def place(handle: Handle, x: Array, xd: Array, xdd: Array) -> int:
    """Give all modules of a handle the positions, rates and accelerations of a state; return a status."""
    return (close_machine(handle.tree, handle.loops, x, xd)
            or place_checked(handle.tree, handle.loops, x, xd, xdd))


def placed(m: Manipulator, x: Array, xd: Array, xdd: Array) -> Handle:
    """Return a handle of its own, after `place`; raise the error of a status."""
    handle = m.handle()
    check(m, place(handle, x, xd, xdd), x=x, xd=xd, xdd=xdd)
    return handle


def module_positions(m: Manipulator, x: Array) -> Array:
    """Return the positions (modules,) of the joints of all modules."""
    zero = np.zeros(m.dof)
    return placed(m, x, zero, zero).work['q']


def transmission(m: Manipulator, k: int, joint: str, position: float) -> tuple[float, float]:
    """Return (dq/dz, d2q/dz2) of a joint q of module k at the position z of the module.

    Raises UnreachableStrokeError, TogglePointError.
    """
    module = m.machine.modules[k]
    if joint == module.name:
        return 1.0, 0.0
    record = m.machine.records[k]
    _, sine, _, _, k1, k2, k4, k5 = triangle(record, position, 1.0)
    if sine == 0.0:
        raise closure_error(m.machine, k, position)
    sign = record['sign'][2]
    return (k1, k4) if joint == module.triangle.boom.name else (sign * k2, sign * k5)


def displacement(work: Any, place: Place) -> Array:
    """Return by how much a link's body is displaced (3,) in its kernel frame: a slide along z, a stroke along x."""
    if place.module < 0:
        return np.zeros(3)
    return _slide(work[place.module], place.body)


def pose_in_base(handle: Handle, place: Place) -> tuple[Array, Array]:
    """Return (rotation, position) of a link in the base frame."""
    modules, work = handle.modules, handle.work
    rotation, position = place.pose.rotation, place.pose.position + displacement(work, place)
    k, body = place.module, place.body
    while k >= 0:
        b, u = modules[k], work[k]
        if body == LINK:
            turn, origin = about_z(u['c'], u['s']), np.zeros(3)
        else:
            turn, origin = about_z(u['c1'], u['s1']), b['pin']
        standing = about_x(*b['dh_alpha'])
        if b['turned']:
            standing = about_z(*b['azimuth']) @ standing
        rotation = standing @ turn @ rotation
        position = standing @ (turn @ position + origin) + b['placement']
        body, k = int(b['parent_body']), int(b['parent'])
        if k >= 0:
            position = position + _slide(work[k], body)
    return rotation, position


def _slide(u: Any, body: int) -> Array:
    if body == LINK:
        return np.array([0.0, 0.0, u['slide']])
    return np.array([0.0 if body == BARREL else u['q'], 0.0, 0.0])


def base_pose(m: Manipulator, x: Array) -> tuple[Array, Array]:
    """Return (rotation, position) of the base in the world; identity where it does not float."""
    frame = m.machine.floating
    if frame is None:
        return np.eye(3), np.zeros(3)
    return frame.rotation @ rotation(x[3:7]), frame.apply(x[:3])


def twist_of_link(handle: Handle, place: Place) -> Array:
    """Return the twist (v, w) (6,) of a link's origin in link axes."""
    if place.module < 0:
        v, w = handle.environment['twist'][:3], handle.environment['twist'][3:]
    else:
        u = handle.work[place.module]
        twist = u['velocity'] if place.body == LINK else u['cylinder_velocity']
        v, w = twist[:3].copy(), twist[3:]
        if place.body == ROD:
            v[0] += u['qd']
    origin = place.pose.position + displacement(handle.work, place)
    return np.concatenate((place.pose.rotation.T @ (v + np.cross(w, origin)), place.pose.rotation.T @ w))


def specific_force_of_link(handle: Handle, place: Place) -> Array:
    """Return the acceleration less gravity (3,) of a link's origin in link axes, after inverse dynamics."""
    if place.module < 0:
        a, velocity = handle.environment['acceleration'], handle.environment['twist']
    else:
        u = handle.work[place.module]
        names = ('acceleration', 'velocity') if place.body == LINK else ('cylinder_acceleration', 'cylinder_velocity')
        a, velocity = (u[name].copy() for name in names)
        if place.body == ROD:
            w = velocity[3:]
            a[:3] += u['qdd'], w[2] * u['qd'], -w[1] * u['qd']
            velocity[0] += u['qd']
    origin = place.pose.position + displacement(handle.work, place)
    v, w = velocity[:3] + np.cross(velocity[3:], origin), velocity[3:]
    # a is spatial: the rate of v in body axes
    return place.pose.rotation.T @ (a[:3] + np.cross(a[3:], origin) + np.cross(w, v))


def wrench_on_link(handle: Handle, place: Place) -> Array:
    """Return the wrench (f, m) (6,) that a serial joint transmits to its link, at its origin in link axes, after
    inverse dynamics."""
    wrench = handle.work[place.module]['wrench'][LINK]
    origin = place.pose.position + displacement(handle.work, place)
    moment = wrench[3:] - np.cross(origin, wrench[:3])
    return np.concatenate((place.pose.rotation.T @ wrench[:3], place.pose.rotation.T @ moment))
