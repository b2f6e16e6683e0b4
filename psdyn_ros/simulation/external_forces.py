"""
The named external forces of a machine at a state, for `forward_dynamics` and `inverse_dynamics`.

    forces = ExternalForces(manipulator, 'balloon.yaml')
    xdd = manipulator.forward_dynamics(x, xd, f, **forces(x, xd)._asdict())

Types of forces and their parameters are in `model/parameters/external_forces`.  Inertial axes are those of the root
link, which rests; where the base floats it is the world.
"""
from typing import NamedTuple

import numpy as np

from ..model.errors import UnknownNameError, did_you_mean
from ..model.parameters.external_forces import read_external_forces
from ..model.parameters.parameter_blocks import JOINT, LINK, declared
from .external_slopes import AppliedSlopes, TangentScene

TOUCHING = 1e-12    # m between the ends of a spring, below which it has no direction


class Applied(NamedTuple):
    """What acts on the machine, named as the keywords of `forward_dynamics`."""

    wrenches: dict
    """{link: (force (3,) [N], moment (3,) [N m])} on the link, at its origin in its axes."""
    joint_efforts: dict
    """{joint: effort [N, N m]}, positive along the axis of the joint."""


class ExternalForces:
    """
    The forces that a YAML file, or a mapping {name: {parameter: value}}, puts on a manipulator.

    Raises ModelError, UnknownNameError or DuplicateNameError, which name the file, its line and the key.
    """

    def __init__(self, manipulator, source):
        self._manipulator = manipulator
        specs = read_external_forces(source)
        for spec in specs:
            _check_names(spec, manipulator)
        self._forces = [_KINDS[spec.type](spec.values) for spec in specs]
        self.names = tuple(spec.name for spec in specs)

    def __call__(self, x, xd):
        """Return what is `Applied` at the state x (nx,), xd (dof,)."""
        scene = _Scene(self._manipulator, x, xd)
        for force in self._forces:
            force.act(scene)
        wrenches = {link: (wrench[:3], wrench[3:]) for link, wrench in scene.wrenches.items()}
        return Applied(wrenches, scene.efforts)

    def slopes(self, x, xd):
        """Return what is `Applied` at x (nx,), xd (dof,) with its exact derivatives, as `AppliedSlopes`."""
        scene = TangentScene(self._manipulator, np.asarray(x, dtype=float), np.asarray(xd, dtype=float))
        for force in self._forces:
            force.differentiate(scene)
        return AppliedSlopes(*self(x, xd), scene.joint_slopes, scene.wrench_slopes)

    def energy(self, x):
        """
        Return the potential energy [J] at x (nx,) of the conservative forces: springs, and constant inertial forces.

        A constant force has none where its point is at the inertial origin, a spring where it is slack.
        """
        scene = _Scene(self._manipulator, x, np.zeros(self._manipulator.dof))
        return float(sum(force.energy(scene) for force in self._forces))

    def power(self, x, xd):
        """Return the power [W] that all forces together put into the machine at x (nx,), xd (dof,)."""
        wrenches, efforts = self(x, xd)
        m = self._manipulator
        total = sum(np.concatenate(wrench) @ m.link_twist(x, xd, link) for link, wrench in wrenches.items())
        names, _, qd, _ = m.joint_state(x, xd)
        return float(total + sum(effort * qd[names.index(joint)] for joint, effort in efforts.items()))


def _check_names(spec, manipulator):
    for key, parameter in declared(type(spec.values)).items():
        existing = {LINK: manipulator.links, JOINT: manipulator.joints}.get(parameter.kind)
        name = getattr(spec.values, key)
        if existing is not None and name not in existing:
            raise UnknownNameError(f"{spec.where}: no such {parameter.kind} '{name}' in '{manipulator.name}'"
                                   f'{did_you_mean(name, existing)}')


class _Scene:
    """The machine at one state: where its points are, and what was put on them."""

    def __init__(self, manipulator, x, xd):
        self._manipulator, self._x, self._xd = manipulator, x, xd
        self._poses, self._twists, self._joints = {}, {}, None
        self.wrenches, self.efforts = {}, {}

    def pose(self, link):
        """Return (rotation (3, 3), position (3,)) of a link in inertial axes."""
        if link not in self._poses:
            pose = self._manipulator.link_pose(self._x, link)
            self._poses[link] = pose[:3, :3], pose[:3, 3]
        return self._poses[link]

    def position(self, link, point):
        """Return where a point of a link is (3,), in inertial axes."""
        rotation, origin = self.pose(link)
        return origin + rotation @ point

    def velocity(self, link, point):
        """Return the velocity (3,) of a point of a link, in inertial axes."""
        twist = self._twist(link)
        return self.pose(link)[0] @ (twist[:3] + np.cross(twist[3:], point))

    def spin(self, link):
        """Return the angular velocity (3,) of a link, in its axes."""
        return self._twist(link)[3:]

    def _twist(self, link):
        if link not in self._twists:
            self._twists[link] = self._manipulator.link_twist(self._x, self._xd, link)
        return self._twists[link]

    def joint(self, name):
        """Return (position, velocity) of a joint."""
        if self._joints is None:
            names, q, qd, _ = self._manipulator.joint_state(self._x, self._xd)
            self._joints = dict(zip(names, zip(q, qd)))
        return self._joints[name]

    def push(self, link, point, force, moment=None):
        """Put a force (3,) in inertial axes on a point of a link, and a moment (3,) in link axes."""
        force = self.pose(link)[0].T @ force
        wrench = self.wrenches.setdefault(link, np.zeros(6))
        wrench[:3] += force
        wrench[3:] += np.cross(point, force)
        if moment is not None:
            wrench[3:] += moment

    def drive(self, joint, effort):
        """Put an effort on a joint."""
        self.efforts[joint] = self.efforts.get(joint, 0.0) + float(effort)


class _Force:
    def __init__(self, values):
        self.p = values

    def energy(self, scene):
        return 0.0


class _ConstantForce(_Force):
    def act(self, scene):
        force = np.array(self.p.force)
        if self.p.axes == 'link':
            force = scene.pose(self.p.link)[0] @ force
        scene.push(self.p.link, self.p.point, force)

    def differentiate(self, scene):
        fixed = scene.direction(self.p.link, self.p.force) if self.p.axes == 'link' else scene.constant(self.p.force)
        scene.push(self.p.link, self.p.point, fixed)

    def energy(self, scene):
        return 0.0 if self.p.axes == 'link' else -np.dot(self.p.force, scene.position(self.p.link, self.p.point))


class _JointSpring(_Force):
    def act(self, scene):
        scene.drive(self.p.joint, -self.p.stiffness * (scene.joint(self.p.joint)[0] - self.p.rest))

    def differentiate(self, scene):
        scene.drive(self.p.joint, -self.p.stiffness, 0.0)

    def energy(self, scene):
        return 0.5 * self.p.stiffness * (scene.joint(self.p.joint)[0] - self.p.rest) ** 2


class _JointDamper(_Force):
    def act(self, scene):
        rate = scene.joint(self.p.joint)[1]
        scene.drive(self.p.joint, -(self.p.linear + self.p.quadratic * abs(rate)) * rate)

    def differentiate(self, scene):
        rate = scene.joints[self.p.joint][1]
        scene.drive(self.p.joint, 0.0, -(self.p.linear + 2.0 * self.p.quadratic * abs(rate)))


class _SpringDamper(_Force):
    def _stretched(self, scene):
        """Return (vector from the point to the other one, its length, by how much it is stretched or None if slack)."""
        p = self.p
        reach = scene.position(p.other_link, p.other_point) - scene.position(p.link, p.point)
        length = np.linalg.norm(reach)
        slack = p.tension_only and length <= p.rest_length
        return reach, length, None if slack else length - p.rest_length

    def act(self, scene):
        p = self.p
        reach, length, stretch = self._stretched(scene)
        if stretch is None or length < TOUCHING:
            return
        tension = p.stiffness * stretch
        if p.damping:
            rate = scene.velocity(p.other_link, p.other_point) - scene.velocity(p.link, p.point)
            tension += p.damping * (rate @ reach) / length
        if p.tension_only:
            tension = max(tension, 0.0)     # a rope does not push, however fast it is let go
        force = tension * reach / length
        scene.push(p.link, p.point, force)
        scene.push(p.other_link, p.other_point, -force)

    def differentiate(self, scene):
        p = self.p
        reach = scene.position(p.other_link, p.other_point) - scene.position(p.link, p.point)
        length = np.linalg.norm(reach.value)
        if length < TOUCHING or (p.tension_only and length <= p.rest_length):
            return
        by_x, by_xd = reach.value @ reach.by_x / length, reach.value @ reach.by_xd / length
        along = reach.times((1.0 / length, -by_x / length**2, -by_xd / length**2))
        rate = scene.velocity(p.other_link, p.other_point) - scene.velocity(p.link, p.point)
        speed, speed_by_x, speed_by_xd = rate.dot(along)
        tension = p.stiffness * (length - p.rest_length) + p.damping * speed
        if p.tension_only and tension <= 0.0:
            return
        force = along.times((tension, p.stiffness * by_x + p.damping * speed_by_x,
                             p.stiffness * by_xd + p.damping * speed_by_xd))
        scene.push(p.link, p.point, force)
        scene.push(p.other_link, p.other_point, force.times((-1.0, np.zeros(scene.dof), np.zeros(scene.dof))))

    def energy(self, scene):
        stretch = self._stretched(scene)[2]
        return 0.0 if stretch is None else 0.5 * self.p.stiffness * stretch ** 2


class _Drag(_Force):
    def act(self, scene):
        p = self.p
        v = scene.velocity(p.link, p.point) - p.flow
        scene.push(p.link, p.point, -(p.linear + p.quadratic * np.linalg.norm(v)) * v, -p.angular * scene.spin(p.link))

    def differentiate(self, scene):
        p = self.p
        v = scene.velocity(p.link, p.point) - scene.constant(p.flow)
        speed, still = np.linalg.norm(v.value), np.zeros(scene.dof)
        # the direction of a velocity that is zero does not matter
        along = v.value / speed if speed else np.zeros(3)
        force = v.times((-(p.linear + p.quadratic * speed), -p.quadratic * along @ v.by_x,
                         -p.quadratic * along @ v.by_xd))
        scene.push(p.link, p.point, force, scene.spin(p.link).times((-p.angular, still, still)))


_KINDS = {'constant_force': _ConstantForce, 'joint_spring': _JointSpring, 'joint_damper': _JointDamper,
          'spring_damper': _SpringDamper, 'drag': _Drag}
