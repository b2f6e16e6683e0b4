"""Inertias that a body can have, as ten numbers without bounds about what was believed of it.

The pseudo-inertia of a body, J = sum dm (r, 1) (r, 1)', is positive definite; J = m U U' with an upper triangular U of
which the last entry is one.  With U = U_0 V, ten numbers say the mass and V, and J is that of a body whatever they are
(C. Rucker and P. M. Wensing, Smooth parameterization of rigid-body inertia, IEEE RA-L 7 (2022) 2771, in which U is
exponential; our mass stands apart).  They are counted in standard deviations of the belief, so each is N(0, 1) before
anything is measured.
"""
from dataclasses import dataclass

import numpy as np

from ...model.mechanism.description import Inertial
from .regressor import COLUMNS, COUNT, ROWS

THINNEST = 5e-3             # m and,
SLIMMEST = 1e-3             # of the largest, what a radius of gyration is taken for at least
DIAGONAL = np.arange(3)
STEP = 1e-30                # of a complex step, whose derivative has no cancellation
DEVIATION = 0.3             # of mass, of radii of gyration, and of the centre of mass in such radii
# m, 1, m of a payload of which nothing is said: radii of gyration about this, standard deviation of their logarithm,
# and that of its centre of mass about where it is believed
RADIUS, SPREAD, REACH = 0.2, 0.8, 1.0


@dataclass(frozen=True)
class BodyModel:
    """What is believed of a body: ten numbers eta, all zero where it is as believed.

    mass       kg
    com        (3,) m, in axes of its link
    root       (3, 3) upper triangular, root root' are the second moments about the centre of mass for 1 kg [m^2]
    deviation  (10,) that one of eta means: of the mass, relative or, where `signed`, in kg; of the centre of mass in
               columns of the root; of the logarithms of the diagonal of V; of its entries above
    signed     whether the mass may be anything, as that of what a machine carries less than was believed
    """

    mass: float
    com: np.ndarray
    root: np.ndarray
    deviation: np.ndarray
    signed: bool = False

    def parts(self, eta):
        """Return (mass, com (3,), second moments about the centre of mass for 1 kg (3, 3)); of rows, rows of them."""
        change = self.deviation * eta
        mass = self.mass + change[..., 0] if self.signed else self.mass * np.exp(change[..., 0])
        V = np.zeros((*change.shape[:-1], 3, 3), change.dtype)
        V[..., DIAGONAL, DIAGONAL] = np.exp(change[..., 4:7])
        V[..., [0, 0, 1], [1, 2, 2]] = change[..., 7:]
        W = self.root @ V
        return mass, self.com + change[..., 1:4] @ self.root.T, W @ np.swapaxes(W, -1, -2)

    def parameters(self, eta):
        """Return the ten parameters of the regressor."""
        mass, com, second = self.parts(eta)
        moments = _inertia(second + com[..., :, None] * com[..., None, :])
        one = np.ones((*com.shape[:-1], 1))
        return mass[..., None] * np.concatenate((one, com, moments[..., ROWS, COLUMNS]), axis=-1)

    def quantities(self, eta):
        """Return (10,): mass, com x y z, inertia xx xy xz yy yz zz about the centre of mass."""
        mass, com, second = self.parts(eta)
        moments = mass[..., None] * _inertia(second)[..., ROWS, COLUMNS]
        return np.concatenate((mass[..., None], com, moments), axis=-1)

    def jacobian(self, eta):
        """Return the derivatives (10, 10) of the parameters by eta."""
        return _derivatives(self.parameters, eta)

    def slopes(self, eta):
        """Return the derivatives (10, 10) of the quantities by eta."""
        return _derivatives(self.quantities, eta)

    def inertial(self, eta):
        """Return the `Inertial`, its inertia about the centre of mass."""
        mass, com, second = self.parts(np.asarray(eta, dtype=float))
        return Inertial(float(mass), com, mass * _inertia(second))


def _inertia(second):
    """Inertia of second moments (..., 3, 3) for 1 kg."""
    return np.trace(second, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - second


def _derivatives(function, eta):
    return function(eta + 1j * STEP * np.eye(COUNT)).imag.T / STEP


def declared_body(inertial, deviation=DEVIATION):
    """Return the `BodyModel` of a link as declared, by the nearest body where no body can have that inertia."""
    moments = inertial.inertia / inertial.mass
    second = 0.5 * np.trace(moments) * np.eye(3) - moments
    return BodyModel(float(inertial.mass), inertial.com, _root(second), np.full(COUNT, deviation))


def unknown_body(com, heaviest, reach=REACH, radius=RADIUS):
    """Return the `BodyModel` of a payload.

    com       (3,) m, where it is believed to be
    heaviest  kg, order of the most that it may be
    reach     m, standard deviation of its centre of mass about that
    radius    m, about which its radii of gyration are
    """
    root = radius * np.eye(3)
    deviation = np.concatenate(([heaviest], np.full(3, reach / radius), np.full(6, SPREAD)))
    return BodyModel(0.0, np.asarray(com, dtype=float), root, deviation, signed=True)


def _root(second):
    """Return the upper triangular root of second moments, made positive definite."""
    values, vectors = np.linalg.eigh(second)
    least = max(THINNEST, SLIMMEST * np.sqrt(max(values[-1], 0.0)))
    second = (vectors * np.maximum(values, least ** 2)) @ vectors.T
    # Cholesky gives a lower triangle; reversed in both axes it is an upper one
    return np.linalg.cholesky(second[::-1, ::-1])[::-1, ::-1]


def is_physical(inertial):
    """Return whether a body can have this `Inertial`: mass above zero, no negative second moment."""
    second = 0.5 * np.trace(inertial.inertia) * np.eye(3) - inertial.inertia
    return bool(inertial.mass > 0.0 and np.linalg.eigvalsh(second)[0] >= -1e-9 * np.abs(second).max())
