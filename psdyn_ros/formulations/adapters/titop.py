"""
Any mechanism as a TITOP block network, its loops closed exactly.

Loops are cut at the closures; both sides are ports C of the network.  Forward causality: joint accelerations are
affine in the wrenches through the cuts, which follow from K du/dt = -Kdot u; the compliance of `LoopClosure` is not
needed.  Inverse causality: the tree is driven with du/dt = G xdd + Gdot xd and its drives are projected by G.
"""
import numpy as np

from ..titop import AlgebraicLoopError, Body, Network, Prismatic, Revolute
from .mechanism import STEP, friction_effort, independent_rows


class TwoPorts:
    """Inverse and forward dynamics of a `Mechanism`; it applies to every machine."""

    def __init__(self, mechanism, posture):
        self.mechanism = mechanism
        self.ports = {}         # link -> port at its origin, in axes of its body
        self.of_body = {}       # body -> one of its ports, and the point of it
        network = self._network()
        self.system, self.weightless = network.assemble(mechanism.gravity), network.assemble((0, 0, 0))
        self.columns = [mechanism.row[mechanism.bodies[int(name)].joint.name] for name in self.system.joints]

    def inverse(self, posture, xd, xdd, wrenches):
        """Return the force (dof,) on the coordinates."""
        return self._inverse(self.system, posture, xd, xdd, wrenches)

    def mass_matrix(self, posture):
        """Return M (dof, dof), the forces that unit accelerations take at rest without gravity."""
        rest, units = np.zeros(self.mechanism.dof), np.eye(self.mechanism.dof)
        return np.array([self._inverse(self.weightless, posture, rest, unit, {}) for unit in units]).T

    def forward(self, posture, xd, f, wrenches):
        """Return xdd (dof,) under efforts f (actuators,)."""
        m, u = self.mechanism, posture.G @ xd
        state, forces = self._state(posture, u), np.zeros(m.nv)
        forces[m.driven] = f
        forces[m.free:] -= self._joint_friction(u)
        loads = self._loads(posture, u, wrenches)
        K = m.closure_rows(posture)
        rows = independent_rows(K[:, m.dependent], m.dependent.size)
        bias = -(m.closure_rows(m.moved(posture, u)).imag @ u / STEP)[rows]
        try:
            # the second round takes off what rounding left of the first: the cuts may carry far more than f
            acceleration, cut = self._response(state, forces, loads), np.zeros(len(K))
            units = self._cut_wrenches(posture)
            rest = self._state(posture, 0 * u)
            compliance = np.array([self._response(rest, 0 * u, units[row], gravity=False)
                                   for row in rows]).reshape(len(rows), m.nv).T
            for _ in range(2 if rows else 0):
                cut[rows] += np.linalg.solve(K[rows] @ compliance, bias - K[rows] @ acceleration)
                acceleration = self._response(state, forces, self._summed(
                    [(loads, 1.0), *((units[row], cut[row]) for row in rows)]))
            return acceleration[m.independent]
        except AlgebraicLoopError:
            # a joint that only its loop gives inertia has no forward causality in the open tree
            force = m.actuation(posture).T @ f - self.inverse(posture, xd, 0 * xd, wrenches)
            return np.linalg.solve(self.mass_matrix(posture), force)

    # --- the network

    def _network(self):
        """Return the blocks of the tree, each named by the number of its body, with a port at every link."""
        m, network, root = self.mechanism, Network(), self.mechanism.floating or 0
        bodies = list(enumerate(m.bodies))[root:]
        points = {i: {} for i, _ in bodies}
        for number, (link, (i, pose)) in enumerate(m.links.items()):
            if i in points:
                points[i][f'link{number}'] = pose.position
                self.ports[link] = f'{i}.link{number}'
                self.of_body.setdefault(i, (f'{i}.link{number}', pose.position))
        for i, body in bodies[1:]:
            points[body.parent][f'joint{i}'] = body.place.position
        for i, body in bodies:
            numbers = body.mass, body.inertia, body.center, points[i]
            if i == root:
                network.add(Body(str(i), *numbers))
            else:
                kind = Prismatic if body.joint.type == 'prismatic' else Revolute
                network.add(kind(str(i), body.joint.axis, *numbers, orientation=body.place.rotation))
        for i, body in bodies[1:]:
            network.connect(f'{i}.P', f'{body.parent}.joint{i}')
        for port in self.ports.values():
            network.expose(port)
        return network

    def _state(self, posture, u):
        m = self.mechanism
        rates = np.zeros(6) if m.floating is None else u[:6]
        at = [column - m.free for column in self.columns]
        return self.system.state(posture.base.position, _quaternion(posture.base.rotation), rates, posture.q[at],
                                 u[self.columns])

    def _response(self, state, forces, loads, gravity=True):
        """Return du/dt (nv,) of the open tree under efforts on its rates (nv,) and wrenches at ports."""
        m, system = self.mechanism, self.system if gravity else self.weightless
        base = np.zeros(6) if m.floating is None else None
        acceleration = np.zeros(m.nv)
        solution = system.solve(state, forces=forces[self.columns], wrenches=loads, base_acceleration=base)
        acceleration[:m.free] = solution.base_acceleration[:m.free]
        acceleration[self.columns] = solution.joint_accelerations
        return acceleration

    def _inverse(self, system, posture, xd, xdd, wrenches):
        m, u = self.mechanism, posture.G @ xd
        acceleration = posture.G @ xdd + (m.bias_acceleration(posture, xd) if xd.any() else 0.0)
        base = np.zeros(6) if m.floating is None else acceleration[:6]
        solution = system.solve(self._state(posture, u), wrenches=self._loads(posture, u, wrenches),
                                accelerations=acceleration[self.columns], base_acceleration=base)
        drives = np.zeros(m.nv)
        drives[:m.free] = solution.base_wrench[:m.free]
        drives[self.columns] = solution.joint_forces
        drives[m.free:] += self._joint_friction(u)
        return posture.G.T @ drives

    # --- wrenches at ports

    def _joint_friction(self, u):
        m = self.mechanism
        return np.array([friction_effort(u[m.free + j:m.free + j + 1], joint.damping, joint.friction)[0]
                         for j, (_, joint) in enumerate(m.hinges)])

    def _loads(self, posture, u, wrenches):
        """Return {port: (f, m)} of external wrenches and of the friction of closing pins."""
        m, parts = self.mechanism, []
        for link, (f, moment) in wrenches.items():
            if link in self.ports:
                turned = m.links[link][1].rotation
                parts.append(({self.ports[link]: np.concatenate((turned @ f, turned @ moment))}, 1.0))
        for closure, point, _ in m.closure_wrenches(posture):
            if (closure.damping or closure.friction) and closure.kind in ('revolute', 'spherical'):
                spin = (m.relative_twist(closure, posture, point) @ u)[:3]
                if closure.kind == 'revolute':
                    axis = posture.R[closure.a.body] @ closure.a.axis
                    spin = axis * (axis @ spin)
                torque = friction_effort(spin, closure.damping, closure.friction)
                parts.append((self._pair(posture, closure, point, np.concatenate((-torque, np.zeros(3)))), 1.0))
        return self._summed(parts)

    def _cut_wrenches(self, posture):
        """Return [{port: (f, m)}], the pair of unit wrenches of every row of K."""
        return [self._pair(posture, closure, point, wrench)
                for closure, point, W in self.mechanism.closure_wrenches(posture) for wrench in W.T]

    def _pair(self, posture, closure, point, wrench):
        """Return {port: (f, m)} of a wrench (m, f) at a point, by body a on body b and back."""
        pair = {}
        for end, sign in ((closure.b, 1.0), (closure.a, -1.0)):
            if end.body in self.of_body:        # not the world of a floating machine
                port, place = self.of_body[end.body]
                R = posture.R[end.body]
                moment = wrench[:3] + np.cross(point - posture.p[end.body] - R @ place, wrench[3:])
                pair[port] = sign * np.concatenate((R.T @ wrench[3:], R.T @ moment))
        return pair

    def _summed(self, parts):
        total = {}
        for loads, factor in parts:
            for port, wrench in loads.items():
                total[port] = total.get(port, 0.0) + factor * wrench
        return total


def _quaternion(R):
    """Return x y z w (4,) of a rotation (3, 3)."""
    # the largest of the four squares has the others as its row
    square = np.array(((1 + R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[2, 1] - R[1, 2]),
                       (R[0, 1] + R[1, 0], 1 - R[0, 0] + R[1, 1] - R[2, 2], R[1, 2] + R[2, 1], R[0, 2] - R[2, 0]),
                       (R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], 1 - R[0, 0] - R[1, 1] + R[2, 2], R[1, 0] - R[0, 1]),
                       (R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 1 + np.trace(R))))
    row = square[np.argmax(np.diag(square))]
    return row / np.linalg.norm(row)
