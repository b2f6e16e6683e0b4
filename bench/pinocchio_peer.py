"""Pinocchio on the same machine: called from Python, and in a C++ loop of ours."""

import math
from dataclasses import fields

import numpy as np
import pinocchio as pin

from bench import machines, native

ITERATIONS, MU = 2, 1e-10
LCABA_ITERATIONS, LCABA_MU = 4, 1e-4  # 1/mu is added to inertias here: a smaller mu loses digits
RANK = 1e-9  # singular values of K below that, relative to the largest, are rows which others contain
FEW_LOOPS = 8  # up to here numpy costs more than it saves


class FromPython:
    """One call of each algorithm as a user of the Python module writes it."""

    def __init__(self, machine):
        self.machine = machine
        self.tree = machine.tree
        self.pins = pin.StdVec_RigidConstraintModel()
        for each in machine.pins:
            self.pins.append(pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, self.tree,
                each.joint1, each.placement1, each.joint2, each.placement2))
        self.data = self.tree.createData()
        self.pin_data = _constraint_data(self.pins)
        pin.initConstraintDynamics(self.tree, self.data, self.pins, self.pin_data)
        self.proximal = pin.ProximalSettings(0.0, 0.0, MU, ITERATIONS)
        self.lcaba_data = self.tree.createData()
        self.lcaba_pin_data = _constraint_data(self.pins)
        pin.computeJointMinimalOrdering(self.tree, self.lcaba_data, self.pins)
        self.lcaba_proximal = pin.ProximalSettings(0.0, 0.0, LCABA_MU, LCABA_ITERATIONS)
        self.q, self.v, self.a, self.G = (np.ones(self.tree.nv) for _ in range(4))
        self.triangles = _triangles(machine)

    def constraint_dynamics(self, q, v, tau):
        return pin.constraintDynamics(
            self.tree, self.data, q, v, tau, self.pins, self.pin_data, self.proximal)

    def lcaba(self, q, v, tau):
        return pin.lcaba(
            self.tree, self.lcaba_data, q, v, tau, self.pins, self.lcaba_pin_data, self.lcaba_proximal)

    def inverse(self, x, xd, xdd):
        """Closure, RNEA, projection; a few loops are closed with floats, many together with arrays."""
        q, v, a, G = self.q, self.v, self.a, self.G
        on = self.machine.actuated
        q[on], v[on], a[on] = x, xd, xdd
        for t, sqrt, atan2 in self.triangles:
            boom, barrel = machines.triangle_motion(t, q[t.rod] + t.x0, v[t.rod], a[t.rod], sqrt, atan2)
            q[t.boom], v[t.boom], a[t.boom], G[t.boom] = boom
            q[t.barrel], v[t.barrel], a[t.barrel], G[t.barrel] = barrel
        tau = pin.rnea(self.tree, self.data, q, v, a)
        return np.bincount(self.machine.owner, G * tau)


    def constraint_derivatives(self, q, v, tau):
        self.constraint_dynamics(q, v, tau)
        return pin.computeConstraintDynamicsDerivatives(
            self.tree, self.data, self.pins, self.pin_data, self.proximal)[:3]

    def aba_derivatives(self, q, v, tau):
        return pin.computeABADerivatives(self.tree, self.data, q, v, tau)


def _triangles(machine):
    if len(machine.triangles) <= FEW_LOOPS:
        return [(t, math.sqrt, math.atan2) for t in machine.triangles]
    together = machines.Triangle(*(
        np.array([getattr(t, field.name) for t in machine.triangles]) for field in fields(machines.Triangle)))
    return [(together, np.sqrt, np.arctan2)]


def _constraint_data(pins):
    data = pin.StdVec_RigidConstraintData()
    for each in pins:
        data.append(each.createData())
    return data


def reference(machine, states):
    """Forward and inverse answers in dense numpy, by which ours and the native rows are verified.

    (G' M G) xdd = f - G' (M g + bias), and M g + bias is an inverse dynamics with the accelerations g.
    """
    tree, data = machine.tree, machine.tree.createData()
    drift = machines.close(machine, states.x, states.xd, np.zeros_like(states.xd))[2]
    forward, inverse = np.empty_like(states.x), np.empty_like(states.x)
    for k, (q, v, a) in enumerate(zip(states.q, states.v, states.a)):
        G = np.zeros((tree.nv, machine.dof))
        G[np.arange(tree.nv), machine.owner] = states.G[k]
        M = np.triu(pin.crba(tree, data, q))
        M = M + np.triu(M, 1).T
        forward[k] = np.linalg.solve(G.T @ M @ G, states.f[k] - G.T @ pin.rnea(tree, data, q, v, drift[k]))
        inverse[k] = G.T @ pin.rnea(tree, data, q, v, a)
    return {'forward': forward, 'inverse': inverse}


class AnyLoops:
    """Loops of any kind in numpy: K qd = 0 holds the pins together; positions of the tree close the loops already."""

    def __init__(self, machine):
        self.tree, self.pins, self.coordinates = machine.tree, machine.pins, machine.coordinates
        self.data = self.tree.createData()
        self.dependent = np.setdiff1d(np.arange(self.tree.nv), self.coordinates)
        self.G = np.zeros((self.tree.nv, machine.dof))
        self.G[self.coordinates, np.arange(machine.dof)] = 1.0

    def inverse(self, q, xd, xdd):
        """G' tau for the rates and accelerations that the loops ask for."""
        G, v, g = self.close(q, xd)
        return G.T @ pin.rnea(self.tree, self.data, q, v, G @ xdd + g)

    def forward(self, q, xd, tau):
        """(G' M G) xdd = G' (tau - M g - bias)."""
        G, v, g = self.close(q, xd)
        rest = tau - pin.rnea(self.tree, self.data, q, v, g)
        M = np.triu(pin.crba(self.tree, self.data, q))
        M = M + np.triu(M, 1).T
        return np.linalg.solve(G.T @ M @ G, G.T @ rest)

    def close(self, q, xd):
        """G, v = G xd and drift g, by least squares: pins of plane loops hold their plane more often than needed."""
        G, g = self.G, np.zeros(self.tree.nv)
        pin.computeJointJacobians(self.tree, self.data, q)
        K = np.vstack([self._point_jacobian(each) for each in self.pins])
        tied = K[:, self.dependent]
        G[self.dependent] = -np.linalg.lstsq(tied, K[:, self.coordinates], RANK)[0]
        v = G @ xd
        pin.forwardKinematics(self.tree, self.data, q, v, g)
        drift = np.concatenate([self._drift(each) for each in self.pins])
        g[self.dependent] = -np.linalg.lstsq(tied, drift, RANK)[0]
        return G, v, g

    def _point_jacobian(self, each):
        one, two = (pin.getJointJacobian(self.tree, self.data, joint, pin.WORLD)
                    for joint in (each.joint1, each.joint2))
        return (one - two)[:3] - pin.skew(self._point(each)) @ (one - two)[3:]

    def _drift(self, each):
        p = self._point(each)
        return self._acceleration(each.joint1, p) - self._acceleration(each.joint2, p)

    def _point(self, each):
        return self.data.oMi[each.joint1].act(each.placement1.translation)

    def _acceleration(self, joint, p):
        pose = self.data.oMi[joint]
        v, a = pose.act(self.data.v[joint]), pose.act(self.data.a[joint])
        turning = v.linear + np.cross(v.angular, p)
        return a.linear + np.cross(a.angular, p) + np.cross(v.angular, turning)


class Native:
    """The same algorithms over many states in one call; answers land in the arrays given."""

    def __init__(self, machine):
        self.library = native.pinocchio_library()
        self.handle = self.library.machine_open(describe(machine).encode())
        if not self.handle:
            raise RuntimeError(self.library.machine_error().decode())

    def __getattr__(self, algorithm):
        """Return a function of arrays, the last of which takes the answers: an algorithm of the library."""
        function = getattr(self.library, algorithm)
        return lambda *arrays: function(self.handle, len(arrays[0]), *(each.ctypes.data for each in arrays))


def describe(machine):
    """The machine as the text that pinocchio_loop.cpp reads."""
    tree = machine.tree
    lines = ['gravity ' + _numbers(tree.gravity.linear),
             f'proximal {ITERATIONS} {MU!r} {LCABA_ITERATIONS} {LCABA_MU!r}']
    for j in range(1, tree.njoints):
        inertia = tree.inertias[j]
        lines.append(' '.join([
            f'joint {tree.parents[j]} {tree.joints[j].shortname()}', _numbers(machines.axis(tree, j)),
            _pose(tree.jointPlacements[j]), _numbers([inertia.mass]), _numbers(inertia.lever),
            _numbers(inertia.inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]])]))
    for each in machine.pins:
        lines.append(f'pin {each.joint1} {_pose(each.placement1)} {each.joint2} {_pose(each.placement2)}')
    for t in machine.triangles:
        lines.append(f'triangle {t.boom} {t.barrel} {t.rod} {machine.owner[t.rod]} ' + _numbers(
            [t.L, t.L1, t.x0, t.sigma, t.boom_zero, t.barrel_zero, t.turn]))
    lines += [f'actuator {index}' for index in machine.actuated]
    lines += [f'coordinate {index}' for index in getattr(machine, 'coordinates', ())]
    return '\n'.join(lines)


def _numbers(values):
    return ' '.join(repr(float(value)) for value in values)


def _pose(pose):
    return _numbers([*pose.rotation.ravel(), *pose.translation])
