"""
A parallel mechanism as the legs of `formulations.denoc`.

The end effector E is a body that every closure ends on; its own joints are one leg, every other leg ends with the
passive joints of its closure.  At most one joint of a leg is actuated.  The closures' joints are at zero in the pose at
hand, so that the legs are made anew for each.
"""
import numpy as np

from ...model.errors import StateError
from ...model.mechanism.description import Pose
from .. import denoc
from ..legs import Leg, Link, Mechanism
from .mechanism import DoesNotApply, across


class Legs:
    """Inverse and forward dynamics of a `Mechanism`, which has to be legs between a fixed base and one body."""

    def __init__(self, mechanism, posture):
        m = self.mechanism = mechanism
        if m.floating is not None:
            raise DoesNotApply('the base floats')
        if sorted(m.actuators) != sorted(m.coordinates):
            raise DoesNotApply(f'{len(m.actuators)} actuators for {m.dof} independent joints; expected the same joints')
        self.end, paths = self._legs()
        # a leg without joints holds E on the ground
        self.paths = [(path, closure) for path, closure in paths
                      if path or closure is None or closure.kind != 'fixed']
        self.grounded = len(self.paths) < len(paths)
        self.actuated = [self._actuated_joint(path) for path, _ in self.paths]
        names = [m.bodies[path[k]].joint.name for (path, _), k in zip(self.paths, self.actuated) if k is not None]
        self.order = np.array([m.coordinates.index(name) for name in names], int)
        self.of_efforts = np.array([m.actuators.index(name) for name in names], int)
        # what the formulation needs of frames is the axes at zero, parallel to those of the ground
        self.zero = m.placed(np.zeros(len(m.joints))).R
        try:
            self._configuration(posture)
        except StateError as error:
            raise DoesNotApply(str(error)) from None

    def inverse(self, posture, xd, xdd, wrenches):
        """Return the force (dof,) on the coordinates."""
        configuration = self._configuration(posture)
        f = np.zeros(len(self.order))
        f[self.order] = denoc.inverse_dynamics(configuration, xd[self.order], xdd[self.order])
        return f + self._loads(configuration, posture, xd, wrenches)

    def forward(self, posture, xd, f, wrenches):
        """Return xdd (dof,) under efforts f (actuators,)."""
        configuration = self._configuration(posture)
        tau = f[self.of_efforts] - self._loads(configuration, posture, xd, wrenches)[self.order]
        xdd = np.zeros(len(self.order))
        xdd[self.order] = denoc.forward_dynamics(configuration, xd[self.order], tau)
        return xdd

    def mass_matrix(self, posture):
        """Return I (dof, dof)."""
        M = np.zeros((len(self.order),) * 2)
        M[np.ix_(self.order, self.order)] = denoc.generalized_inertia(self._configuration(posture))
        return M

    def _loads(self, configuration, posture, xd, wrenches):
        """Return the forces (dof,) of losses less those of external wrenches, by the rates of the formulation."""
        m, G = self.mechanism, np.zeros((self.mechanism.nv, len(self.order)))
        for column, unit in zip(self.order, np.eye(len(self.order))):
            for (path, _), rates in zip(self.paths, denoc.rates(configuration, unit).theta):
                G[[m.row[m.bodies[i].joint.name] for i in path], column] = rates[:len(path)]
        return G.T @ (m.friction(posture, G @ xd) - m.external(posture, wrenches))

    # --- legs

    def _legs(self):
        """Return E and [(bodies of a leg, closure that ends it or None)]."""
        m = self.mechanism
        ends = set.intersection(*({c.a.body, c.b.body} for c in m.closures))
        for end in sorted(ends - {0}):
            others = [(self._path(c.b.body if c.a.body == end else c.a.body), c) for c in m.closures]
            paths = [(self._path(end), None), *others]
            bodies = [i for path, _ in paths for i in path]
            if sorted(bodies) == list(range(1, len(m.bodies))):
                return end, paths
        raise DoesNotApply('no body that all loops share, with nothing but legs between it and the base')

    def _path(self, body):
        path = []
        while body > 0:
            path.insert(0, body)
            body = self.mechanism.bodies[body].parent
        return path

    def _actuated_joint(self, path):
        m = self.mechanism
        found = [k for k, i in enumerate(path) if m.bodies[i].joint.name in m.actuators]
        if len(found) > 1:
            raise DoesNotApply(f"{len(found)} actuated joints in the leg of '{m.bodies[path[-1]].link}'; "
                               'expected one at most')
        return found[0] if found else None

    def _configuration(self, posture):
        m, legs, theta = self.mechanism, [], []
        for (path, closure), k in zip(self.paths, self.actuated):
            links = [self._link(i) for i in path]
            passive = [] if closure is None else self._closing_links(posture, path[-1] if path else 0, closure)
            tip, axes = self._tip(posture, path[-1] if path else 0, closure, passive)
            legs.append(Leg((*links, *passive), None if k is None else k + 1, tip, axes))
            at = [m.row[m.bodies[i].joint.name] for i in path]
            theta.append(np.append(posture.q[at], np.zeros(len(passive))))
        held = None
        if self.grounded:
            held = Pose(self._axes(posture, self.end), posture.p[self.end]).matrix()
        return denoc.configure(Mechanism(tuple(legs), m.gravity, held), tuple(theta))

    def _link(self, i):
        body, R = self.mechanism.bodies[i], self.zero[i]
        return Link(self.zero[body.parent] @ body.place.position, R @ body.joint.axis, body.mass, R @ body.center,
                    R @ body.inertia @ R.T, body.joint.type == 'prismatic')

    def _closing_links(self, posture, last, closure):
        """Return the passive joints, without mass, between the last body of a leg and E."""
        here, there = (closure.b, closure.a) if closure.a.body == self.end else (closure.a, closure.b)
        from_end = self._axes(posture, last).T @ posture.R[self.end]     # axes of E in those of the last body
        axis = self.zero[last] @ here.axis
        axes = {'revolute': [axis], 'spherical': [axis, *across(axis)], 'universal': [axis, from_end @ there.axis],
                'prismatic': [self._axes(posture, last).T @ posture.R[closure.a.body] @ closure.a.axis],
                'fixed': []}[closure.kind]
        offsets = [self.zero[last] @ here.frame.position, *np.zeros((2, 3))]
        return [Link(offset, along, 0.0, np.zeros(3), np.zeros((3, 3)), closure.kind == 'prismatic')
                for offset, along in zip(offsets, axes)]

    def _tip(self, posture, last, closure, passive):
        if closure is None:
            return np.zeros(3), np.eye(3)
        here = closure.b if closure.a.body == self.end else closure.a
        origin = posture.p[last]
        if passive:
            origin = origin + posture.R[last] @ here.frame.position
        axes = self._axes(posture, last)
        return axes.T @ (posture.p[self.end] - origin), axes.T @ self._axes(posture, self.end)

    def _axes(self, posture, i):
        """Return the axes of body i that are parallel to the ground's at zero."""
        return posture.R[i] @ self.zero[i].T
