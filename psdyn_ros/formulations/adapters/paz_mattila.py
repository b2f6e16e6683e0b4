"""
A chain of triangles and serial joints as the modules of `formulations.paz_mattila`, frames and lengths of the paper.

Every moving link is the frame Bc of the module that stands on it; its inertia is that of B1 or B4.  The planes of the
pins may be anywhere, but the rod eye has to be on the line of the cylinder through the barrel pin.
"""
from typing import NamedTuple

import numpy as np

from ...model.mechanism.description import Pose
from .. import paz_mattila as paz
from ..screws import adjoint
from .mechanism import DoesNotApply

TOLERANCE = 1e-8    # [m or rad]


class Placed(NamedTuple):
    """A module and where its frames are on the bodies."""

    name: str
    """Of the actuated joint."""
    module: object
    frames: tuple
    """(body, frame in that body) of B0, B1, B3, B4 or of B0, B4."""


class ChainOfModules:
    """Inverse and forward dynamics of a `Mechanism`, which has to be a chain on a fixed base."""

    def __init__(self, mechanism, posture):
        m = self.mechanism = mechanism
        if m.floating is not None:
            raise DoesNotApply('the base floats')
        triangles = [_find(m, closure) for closure in m.closures]
        self.chain, body = [], 0
        for _ in m.bodies:
            standing = [t for t in triangles if m.bodies[t[0]].parent == body]
            inside = {i for t in triangles for i in t[:3]}
            serial = [i for i, one in enumerate(m.bodies) if one.parent == body and i not in inside]
            if len(standing) + len(serial) > 1:
                raise DoesNotApply(f"the chain branches at link '{m.bodies[body].link}'")
            if standing:
                self.chain.append(_loop(m, posture, body, standing[0]))
                body = standing[0][0]
            elif serial:
                self.chain.append(_serial(m, body, serial[0]))
                body = serial[0]
        covered = {i for placed in self.chain for i, _ in placed.frames}
        for i, one in enumerate(m.bodies):
            if one.parent >= 0 and i not in covered:
                raise DoesNotApply(f"joint '{one.joint.name}' stands on a cylinder")
        names = [placed.name for placed in self.chain]
        if sorted(names) != sorted(m.actuators) or sorted(names) != sorted(m.coordinates):
            raise DoesNotApply(f"the actuators are not {', '.join(names)}")
        self.modules = [placed.module for placed in self.chain]
        self.order = np.array([m.coordinates.index(name) for name in names])
        self.of_efforts = np.array([m.actuators.index(name) for name in names])

    def inverse(self, posture, xd, xdd, wrenches):
        """Return the force (dof,) on the coordinates."""
        return self._inverse(posture, xd, xdd, self._external(posture, wrenches), self.mechanism.gravity)

    def forward(self, posture, xd, f, wrenches):
        """Return xdd (dof,) under efforts f (actuators,), Algorithm 1."""
        xdd = np.zeros(len(self.order))
        xdd[self.order] = paz.forward_dynamics(
            self.modules, self._positions(posture), xd[self.order], f[self.of_efforts],
            np.append(-self.mechanism.gravity, np.zeros(3)), external=self._external(posture, wrenches)).xdd
        return xdd

    def mass_matrix(self, posture):
        """Return M (dof, dof), the forces that unit accelerations take at rest without gravity."""
        rest, units = np.zeros(len(self.order)), np.eye(len(self.order))
        return np.array([self._inverse(posture, rest, unit, None, np.zeros(3)) for unit in units]).T

    def _inverse(self, posture, xd, xdd, external, gravity):
        f = np.zeros(len(self.order))
        f[self.order] = paz.inverse_dynamics(self.modules, self._positions(posture), xd[self.order], xdd[self.order],
                                             np.append(-gravity, np.zeros(3)), external=external).f
        return f

    def _positions(self, posture):
        m = self.mechanism
        return posture.q[[m.joints.index(placed.name) for placed in self.chain]]

    def _external(self, posture, wrenches):
        """Return per module the wrenches (6,) on its bodies; a moving link counts as B1 or B4, not as the next Bc."""
        on_body = {}
        for link, (f, moment) in wrenches.items():
            body, pose = self.mechanism.links[link]
            on_body.setdefault(body, []).append((pose, np.concatenate((f, moment))))
        external = []
        for placed in self.chain:
            rows = [np.zeros(6)]
            for body, frame in placed.frames[1:]:
                # the link's pose in the frame of the module; Ad' takes the wrench there
                rows.append(sum((adjoint((frame.inverse() @ pose).matrix()).T @ F
                                 for pose, F in on_body.get(body, ())), np.zeros(6)))
            external.append(tuple(rows))
        return external


class _Triangle(NamedTuple):
    """Bodies by their index, and the ends of the closure."""

    boom: int
    barrel: int
    rod: int
    closure: object
    on_boom: object
    on_rod: object


def _find(m, closure):
    """Return the `_Triangle` of a closure."""
    turning = ('revolute', 'continuous')
    for on_rod, on_boom in ((closure.a, closure.b), (closure.b, closure.a)):
        rod, boom = m.bodies[on_rod.body], m.bodies[on_boom.body]
        if rod.joint is None or boom.joint is None or rod.joint.type != 'prismatic' or boom.joint.type not in turning:
            continue
        barrel = m.bodies[rod.parent]
        if (closure.kind in ('revolute', 'spherical') and barrel.joint is not None and rod.parent != on_boom.body
                and barrel.joint.type in turning and barrel.parent == boom.parent):
            return _Triangle(on_boom.body, rod.parent, on_rod.body, closure, on_boom, on_rod)
    raise DoesNotApply(f"loop '{closure.name}' is no triangle of boom, barrel and rod")


def _loop(m, posture, base, triangle):
    boom_index, barrel_index, rod_index, closure, on_boom, on_rod = triangle
    boom, barrel, rod = (m.bodies[i] for i in triangle[:3])
    boom_axis = boom.place.rotation @ boom.joint.axis
    C, B = barrel.place.position, boom.place.position

    # sin q < 0 in the paper: z is turned so
    to_base = posture.R[base].T
    T = to_base @ (posture.p[on_boom.body] + posture.R[on_boom.body] @ on_boom.frame.position - posture.p[base])
    z = -boom_axis * np.sign(np.cross(B - C, T - B) @ boom_axis)
    sign = {'boom': np.sign(boom_axis @ z), 'barrel': np.sign(barrel.place.rotation @ barrel.joint.axis @ z)}
    height = z @ (B - C)
    side = B - C - height * z
    L = np.linalg.norm(side)
    x = side / L
    T_B3 = Pose(np.column_stack((x, np.cross(z, x), z)), C).matrix()
    T_B1 = T_B3.copy()
    T_B1[:3, 3] += L * x

    # B3 and B4 lie along the stroke
    stroke, z3 = rod.place.rotation @ rod.joint.axis, sign['barrel'] * barrel.joint.axis
    B3 = Pose(np.column_stack((stroke, np.cross(z3, stroke), z3)), np.zeros(3))
    rod_origin = B3.rotation.T @ rod.place.position
    eye = B3.rotation.T @ rod.place.apply(on_rod.frame.position)
    B4 = rod.place.inverse() @ Pose(B3.rotation, B3.rotation @ np.array((rod_origin[0], 0.0, 0.0)))
    if abs(stroke @ z3) > TOLERANCE or np.linalg.norm(np.cross(boom_axis, barrel.place.rotation @ barrel.joint.axis)
                                                      ) > TOLERANCE:
        raise DoesNotApply(f"loop '{closure.name}' is not planar")
    if abs(eye[1]) > TOLERANCE:
        raise DoesNotApply(f"loop '{closure.name}': the rod eye is {abs(eye[1]):.3g} m off the line of the cylinder "
                           'through the barrel pin')
    if not posture.q[m.joints.index(rod.joint.name)] + eye[0] > 0:
        raise DoesNotApply(f"loop '{closure.name}': the rod points away from its eye")

    # B1 has x towards the eye, in the plane of C
    z1 = sign['boom'] * boom.joint.axis
    arm = on_boom.frame.position - (z1 @ on_boom.frame.position) * z1
    L1 = np.linalg.norm(arm)
    B1 = Pose(np.column_stack((arm / L1, np.cross(z1, arm / L1), z1)), -height * z1)
    losses = (*((joint.damping, joint.friction) for joint in (rod.joint, boom.joint, barrel.joint)),
              (closure.damping, closure.friction))
    module = paz.LoopModule(L, L1, eye[0] - rod_origin[0], rod_origin[0], T_B1, T_B3, B1.inverse().matrix(),
                            np.zeros((6, 6)), _inertia(boom, B1), _inertia(barrel, B3), _inertia(rod, B4),
                            np.zeros((6, 6)), losses)
    return Placed(rod.joint.name, module, ((base, None), (boom_index, B1), (barrel_index, B3), (rod_index, B4)))


def _serial(m, base, index):
    body, none = m.bodies[index], np.zeros((6, 6))
    frame = Pose(np.eye(3), np.zeros(3))
    half = np.zeros(3)
    s = np.concatenate((body.joint.axis, half) if body.joint.type == 'prismatic' else (half, body.joint.axis))
    module = paz.SerialModule(s, body.place.matrix(), np.eye(4), none, _inertia(body, frame), none,
                              (body.joint.damping, body.joint.friction))
    return Placed(body.joint.name, module, ((base, None), (index, frame)))


def _inertia(body, frame):
    """Return M (6, 6) of a body in a frame on it."""
    R = frame.rotation
    return paz.spatial_inertia(body.mass, R.T @ (body.center - frame.position), R.T @ body.inertia @ R)
