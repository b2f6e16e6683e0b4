"""
Blocks of one rigid body: `Body`, `Weld`, `Revolute`, `Prismatic`.

A block A has a port P, where its parent B moves it and is answered with a wrench, and any number of ports C, each
named and at a point of A, where children do the same to A.  A joint at P belongs to the child block.  In axes a,
with phi = (0, r) or (t, 0), the printed equations of all four blocks are

    x'_P    = X x'_B + phi qd
    x'dot_P = X x'dot_B + phi qdd + c
    W_A/B,P = sum tau_CP' W_./A,C - D_P (x'dot_P - (g, 0)) - C(x'_P) D_P x'_P
    C_m     = phi' W_B/A,P = -phi' W_A/B,P

with X = tau_PP0 diag(P_ab', P_ab'), which takes the motion of the parent's port P0 in axes b.  They are solved here
with every child replaced by its affine map W_./A,C = w0_C - D_C x'dot_C, so that the denominator of qdd is the
inertia of the body with all it carries, and a joint on a body without inertia of its own is no special case.

Source: D. Alazard, F. Sanfedino, E. Kassarian, non-linear TITOP model of rigid multibody systems: blocks of body, weld,
revolute and prismatic joint (the twist of the weld is the one of A).
"""
from typing import NamedTuple

import numpy as np

from .checks import block_name, inertia_matrix, nonnegative, numbers, port_points, rotation_matrix, unit_vector
from .dual_vectors import cross, dual_rotation, gyroscopic, inertia_at, tau, turn
from .errors import AlgebraicLoopError
from .records import AffineMap, Motion, Response

PARALLEL = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
SINGULAR = 1e-12  # inertia that a joint feels, relative to what the same body has in all directions


class Placement(NamedTuple):
    """A rigid block at a joint position and rate."""

    motion: Motion
    """Of P, in axes a."""
    X: np.ndarray
    """(6, 6), from the twist of the parent's port in axes b to the one of P in axes a at a locked joint."""
    c: np.ndarray
    """(6,), what the joint rate adds to x'dot_P, in axes a."""
    ports: dict
    """Port C -> Motion."""


class Reduction(NamedTuple):
    """A rigid block with the affine maps of its children inserted, ready to be accelerated."""

    on_parent: AffineMap
    """W_A/B = w0 - D x'dot_B, at the parent's port in axes b."""
    at_P: AffineMap
    """W_A/B,P = w0 - D x'dot_P, at P in axes a: the joint is not eliminated yet."""
    J: float
    """phi' D phi [kg m^2 or kg]."""
    force: float
    """C_m or F_m [N m or N], by the drive on the body."""
    acceleration: float
    """qdd [rad/s^2 or m/s^2] of a driven joint, NaN of one moved by its force."""


class Body:
    """
    A rigid body, the base of a machine; connected at P it sits on its parent in the parent's axes.

    mass [kg]; inertia (3, 3) [kg m^2] about the centre of mass B; center: PB (3,) [m]; ports: {name: PC (3,) [m]};
    all in axes of the body.  The inertia must be positive semidefinite and may break the triangle inequality.
    """

    joints = ()
    phi = None

    def __init__(self, name, mass, inertia, center=(0.0, 0.0, 0.0), ports=None):
        self.name = block_name(name)
        self.mass = nonnegative(f"mass of '{name}'", mass)
        self.I_B = inertia_matrix(f"inertia of '{name}'", inertia)
        self.center = numbers(f"center of '{name}'", center, (3,))
        self.PC = port_points(name, ports or {})
        self.D_P = inertia_at(self.mass, self.I_B, -self.center)
        self.tau_CP = {port: tau(-PC) for port, PC in self.PC.items()}

    ports = property(lambda self: tuple(self.PC), doc='Names of the ports C.')

    def P_ab(self, q):
        """Return the axes of the body in those of the parent (3, 3) at joint position q."""
        return np.eye(3)

    def P0P(self, q):
        """Return the vector (3,) [m] from the parent's port P0 to P at joint position q, in axes a."""
        return np.zeros(3)

    def c(self, twist_B, qd):
        """Return (6,), what the joint rate qd adds to x'dot_P; twist_B (6,) is that of the parent at P in axes a."""
        return np.zeros(6)

    def place(self, parent, q, qd):
        """Return the `Placement` under the parent's port (a `Motion`) at joint position and rate (0,) or (1,)."""
        q, qd = (q[0], qd[0]) if self.joints else (0.0, 0.0)
        P_ab, P0P = self.P_ab(q), self.P0P(q)
        X = tau(-P0P) @ dual_rotation(P_ab.T)
        twist_B = X @ parent.twist
        twist = twist_B + self.phi * qd if self.joints else twist_B
        rotation = parent.rotation @ P_ab
        motion = Motion(parent.position + rotation @ P0P, rotation, twist)
        # transport P -> C on one body: IC = IP + PC, x'_C = tau_CP x'_P
        ports = {port: Motion(motion.position + rotation @ PC, rotation, self.tau_CP[port] @ twist)
                 for port, PC in self.PC.items()}
        return Placement(motion, X, self.c(twist_B, qd), ports)

    def reduce(self, placed, gravity, force, acceleration, children):
        """
        Return the `Reduction` of a placed block.

        gravity (3,) [m/s^2] in inertial axes; force and acceleration (0,) or (1,) of the joint, the latter NaN where
        it is an unknown; children: {port C: AffineMap of the wrench on this body}, ports without one left out.
        """
        twist = placed.motion.twist
        g = np.zeros(6)
        g[:3] = placed.motion.rotation.T @ gravity
        at_P = AffineMap(self.D_P @ g - gyroscopic(twist) @ self.D_P @ twist, self.D_P)
        for port, child in children.items():
            at_P = at_P.plus(child.seen_through(self.tau_CP[port]))
        w0, D = at_P
        if not self.joints:
            return Reduction(at_P.seen_through(placed.X), at_P, np.nan, np.nan, np.nan)
        (force,), (acceleration,) = force, acceleration
        phi, c, J = self.phi, placed.c, self.phi @ D @ self.phi
        if np.isnan(acceleration):
            self._check_inertia(J, D)
            # x'dot_P = X x'dot_B + c + phi qdd with J qdd = force + phi' (w0 - D (X x'dot_B + c))
            D_phi = D @ phi
            w = w0 - D @ c
            reduced = AffineMap(w - D_phi * ((force + phi @ w) / J), D - np.outer(D_phi, D_phi) / J)
        else:
            reduced = AffineMap(w0 - D @ (c + phi * acceleration), D)
        return Reduction(reduced.seen_through(placed.X), at_P, J, force, acceleration)

    def respond(self, placed, reduced, acceleration_B):
        """Return the `Response` to x'dot_B (6,) of the parent's port in axes b."""
        w0, D = reduced.at_P
        acceleration = placed.X @ acceleration_B + placed.c
        qdd, force = np.zeros(0), np.zeros(0)
        if self.joints:
            driven = not np.isnan(reduced.acceleration)
            thetaddot = (reduced.acceleration if driven
                         else (reduced.force + self.phi @ (w0 - D @ acceleration)) / reduced.J)
            acceleration = acceleration + self.phi * thetaddot
            qdd = np.array([thetaddot])
            force = np.array([-self.phi @ (w0 - D @ acceleration) if driven else reduced.force])
        wrench = placed.X.T @ (w0 - D @ acceleration)
        ports = {port: tau_CP @ acceleration for port, tau_CP in self.tau_CP.items()}
        return Response(wrench, ports, qdd, force, {'': wrench})

    def bodies(self, placed):
        """Yield (block, Motion of its P) of every rigid body inside."""
        yield self, placed.motion

    def elastic_energy(self, placed):
        """Return the energy [J] stored inside by loop closures."""
        return 0.0

    def _check_inertia(self, J, D):
        part = D[3:, 3:] if self.phi[3:].any() else D[:3, :3]
        if not J > SINGULAR * np.trace(part):
            raise AlgebraicLoopError(f"joint '{self.name}': nothing resists it (inertia about its axis, children "
                                     f'included: {J:.3g}); no acceleration solves the algebraic loop. '
                                     'Expected mass off the axis on this body or beyond it, or a given acceleration')


class Weld(Body):
    """A body fixed to its parent; orientation: P_ab (3, 3), its axes in those of the parent.  Else as `Body`."""

    def __init__(self, name, mass, inertia, center=(0.0, 0.0, 0.0), ports=None, orientation=PARALLEL):
        super().__init__(name, mass, inertia, center, ports)
        self.orientation = rotation_matrix(f"orientation of '{name}'", orientation)

    def P_ab(self, q):
        return self.orientation


class _Joint(Weld):
    """A body on a joint of one degree of freedom about or along a unit axis in its own axes."""

    joints = ('',)

    def __init__(self, name, axis, mass, inertia, center=(0.0, 0.0, 0.0), ports=None, orientation=PARALLEL):
        super().__init__(name, mass, inertia, center, ports, orientation)
        self.axis = unit_vector(f"axis of '{name}'", axis)


class Revolute(_Joint):
    """
    A body that turns about an axis through P by q = theta [rad]; the drive gives the torque C_m [N m].

    axis: r (3,), of any length, in axes of the body; orientation: P_a0b (3, 3) at theta = 0.  Else as `Body`.
    """

    def __init__(self, name, axis, *args, **kwargs):
        super().__init__(name, axis, *args, **kwargs)
        self.phi = np.concatenate((np.zeros(3), self.axis))

    def P_ab(self, q):
        return self.orientation @ turn(self.axis, q)

    def c(self, twist_B, qd):
        r = self.axis
        return -qd * np.concatenate((cross(r, twist_B[:3]), cross(r, twist_B[3:])))


class Prismatic(_Joint):
    """
    A body that slides along an axis by q = x [m], P0P = x t; the drive gives the force F_m [N].

    axis: t (3,), of any length, in axes of the body; orientation: P_ab (3, 3), constant.  Else as `Body`.
    """

    def __init__(self, name, axis, *args, **kwargs):
        super().__init__(name, axis, *args, **kwargs)
        self.phi = np.concatenate((self.axis, np.zeros(3)))

    def P0P(self, q):
        return q * self.axis

    def c(self, twist_B, qd):
        return np.concatenate((-qd * cross(self.axis, twist_B[3:]), np.zeros(3)))
