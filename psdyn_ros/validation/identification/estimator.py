"""Least squares with a belief, from triangles of `NormalEquations`: values, standard errors, what is off without them.

Unknowns eta are counted in standard deviations of what is believed, so before the recording each is N(0, 1).  Friction
and sensors enter linearly, bodies by `BodyModel`, so that no step leaves what a body can have.

Sensors may be off by as much as is believed of them.  Where the recording is likelier by far if they are exact, they
are taken to be (a choice of two models by their evidence): noise is then not mistaken for errors of sensors.  Shares in
between would fit better still, but then the estimate leans on sensors that are worse, and its errors are not covered.
Standard errors are those of the estimate that was chosen.  No recording sees errors of sensors that act as a parameter
does, however: what they would change, were they as large as believed, is stated apart.

The errors of equations are neither white nor independent of each other: noise of strokes passes filters, accelerations
and the inertia of the whole machine.  So their standard errors come from the recording itself, by leaving out one
stretch after the other (jackknife), to which the belief adds its own.
"""
from dataclasses import dataclass

import numpy as np

from .normal_equations import COULOMB, GAIN_A, GAIN_B, OFFSET, TERMS, VISCOUS, triangle
from .regressor import COUNT

STEPS, HALVINGS = 60, 30        # most Gauss-Newton steps, and halvings of one
CONVERGED = 1e-5                # standard deviations
FIRST_MASS = 0.01               # standard deviations, of a payload at the start
FAINTEST = 3e-4                 # of the efforts, below which no force is known
EXACTLY = 1e-3                  # of the efforts, to which a model at most describes a machine, its filter and sampling
WIDE = 1e3                      # factor of a scale that stands for no belief at all
PRESSURE_OFFSET = 5e4           # Pa, of a pressure sensor, and
SENSOR_GAIN = 5e-3              # relative, of any sensor of pressure or effort, both standard deviations
EFFORT_OFFSET = 5e-3            # of the efforts, where they are measured as such
AS_BELIEVED, EXACT = 1.0, 0.003     # share of their believed errors that sensors have
CERTAIN = 10.0                  # logarithm of the evidence for exact sensors against others, from which they are that
CORRELATED = 60.0            # equations that share a filter, or an error of the pose
# weight of equations of joints without an effort: they hold for any multiple of what hangs, and with noise of strokes a
# small multiple leaves least, so the others must say which
PASSIVE_WEIGHT = 1e-3
FEWEST_GROUPS = 8               # with less there are no standard errors


@dataclass(frozen=True)
class Unknowns:
    """What is to be found.

    bodies    `BodyModel` of each link of the regressor
    declared  (10 links,) parameters from which the equations count: of the links as declared; zero for a payload
    base      (P,) values of all columns before anything is known, those of the bodies zero
    scale     (P,) standard deviation of each column, unused for the bodies
    """

    bodies: tuple
    declared: np.ndarray
    base: np.ndarray
    scale: np.ndarray

    @property
    def starts(self):
        """(n, P) values of eta from which a minimum is looked for.

        Mass and centre of mass of a payload enter as a product, so there is a minimum on each side of zero mass.
        """
        signed = [COUNT * k for k, body in enumerate(self.bodies) if body.signed]
        starts = np.zeros((3, len(self.base)))
        starts[1, signed], starts[2, signed] = FIRST_MASS, -FIRST_MASS
        return starts if signed else starts[:1]

    def values(self, eta):
        """Return (P,) of the columns."""
        theta = self.base + self.scale * eta
        for k, body in enumerate(self.bodies):
            part = slice(COUNT * k, COUNT * (k + 1))
            theta[part] = body.parameters(eta[part]) - self.declared[part]
        return theta

    def jacobian(self, eta):
        """Return (P, P)."""
        J = np.diag(self.scale)
        for k, body in enumerate(self.bodies):
            part = slice(COUNT * k, COUNT * (k + 1))
            J[part, part] = body.jacobian(eta[part])
        return J


def unknowns(evidence, bodies, declared):
    """Return the `Unknowns` of `NormalEquations` whose regressor is about these bodies."""
    base, scale = np.zeros(evidence.size), np.zeros(evidence.size)
    power = sum(group.power for group in evidence.groups.values())
    rows = sum(group.rows for group in evidence.groups.values())
    usual = float(np.sqrt(np.max(power / np.maximum(rows, 1))))
    for number, name in enumerate(evidence.actuators):
        coulomb, viscous = evidence.friction[number]
        column = {term: evidence.column(number, term) for term in range(TERMS)}
        level = max(coulomb, 0.1 * usual, 1e-6)
        base[column[COULOMB]], base[column[VISCOUS]] = coulomb, viscous
        scale[column[COULOMB]] = WIDE * level
        scale[column[VISCOUS]] = WIDE * max(viscous, level / (100.0 * evidence.slip[number]))
        scale[column[GAIN_A]] = SENSOR_GAIN
        if evidence.by_pressure[number]:
            cylinder = evidence.hydraulics.cylinders[name]
            scale[column[OFFSET]] = PRESSURE_OFFSET * float(np.hypot(cylinder.area_a, cylinder.area_b))
            scale[column[GAIN_B]] = SENSOR_GAIN
        else:
            scale[column[OFFSET]] = EFFORT_OFFSET * usual
            scale[column[GAIN_B]] = 1e-12       # an effort is one number: its gain is the other column
    return Unknowns(tuple(bodies), declared, base, scale)


@dataclass(frozen=True)
class Estimate:
    """What came of it.

    eta         (P,)
    values      (P,) of the columns
    covariance  (P, P) of eta; infinite where the recording is too short for standard errors
    systematic  (P, P) likewise, what errors of sensors would add that are as large as believed
    identified        (P,) share of the belief about eta that the recording has replaced, 0 to 1
    sigma       (dof,) standard deviation of what is left in the equations of each coordinate [N, N m]
    share       of what is believed of the errors of sensors, that the recording shows
    """

    eta: np.ndarray
    values: np.ndarray
    covariance: np.ndarray
    systematic: np.ndarray
    identified: np.ndarray
    sigma: np.ndarray
    share: float


class System:
    """Normal equations of some groups of `NormalEquations`, each coordinate by the scatter of its own equations."""

    def __init__(self, groups, evidence):
        groups = list(groups)
        rows, power = (np.sum([getattr(group, what) for group in groups], axis=0) for what in ('rows', 'power'))
        count = groups[0].triangles.shape[2] - 1
        # what no values of inertias and friction explain; those of gains, without a belief, would explain anything
        real = np.ones(count + 1, dtype=bool)
        for number in range(len(evidence.actuators)):
            real[evidence.column(number, OFFSET):evidence.column(number, GAIN_B) + 1] = False
        self.sensors = ~real
        self.sigma = np.array([
            _left(np.vstack([group.triangles[coordinate][:, real] for group in groups]), many, force)
            for coordinate, (many, force) in enumerate(zip(rows, power))])
        manipulator = evidence.regressor.manipulator
        counts = np.where(np.isin(manipulator.coordinates, manipulator.passive_joints), PASSIVE_WEIGHT, 1.0)
        self.weights = np.where(rows > 0, counts / (self.sigma ** 2 * CORRELATED), 0.0)
        self.parts = np.array([np.einsum('c,cpq->pq', self.weights, _grams(group)) for group in groups])
        self.parts = self.parts.reshape(len(groups), count + 1, count + 1)
        self.total = self.parts.sum(axis=0)

    def solve(self, unknown, share=None):
        """Return the `Estimate` of `Unknowns`; share: of the believed errors of sensors, None: what evidence says."""
        if share is not None:
            return self._estimate(unknown, self._fit(unknown, share, None)[0], share)
        believed, evidence = self._fit(unknown, AS_BELIEVED, None)
        exact, better = self._fit(unknown, EXACT, believed)
        if better - evidence > CERTAIN:
            return self._estimate(unknown, exact, EXACT)
        return self._estimate(unknown, believed, AS_BELIEVED)

    def _fit(self, unknown, share, start):
        """(eta, logarithm of the evidence) where sensors have this share of their believed errors."""
        belief = self._belief(share)
        starts = unknown.starts if start is None else [start]
        eta, cost = min((self._minimum(unknown, belief, one) for one in starts), key=lambda found: found[1])
        J = unknown.jacobian(eta)
        A = J.T @ self.total[:-1, :-1] @ J + np.diag(belief)
        return eta, -cost - 0.5 * np.linalg.slogdet(A / np.sqrt(np.outer(belief, belief)))[1]

    def _belief(self, share):
        """(P,) weight of eta, of sensors that have a share of their believed errors."""
        return np.where(self.sensors[:-1], share ** -2.0, 1.0)

    def _minimum(self, unknown, belief, start):
        """(eta, cost) by Gauss and Newton's steps from a start, halved where they go too far."""
        H, g = self.total[:-1, :-1], self.total[:-1, -1]

        def cost(eta):
            theta = unknown.values(eta)
            return 0.5 * theta @ H @ theta - g @ theta + 0.5 * eta @ (belief * eta)

        eta = np.array(start)
        now = cost(eta)
        for _ in range(STEPS):
            J = unknown.jacobian(eta)
            A = J.T @ H @ J + np.diag(belief)
            step = -np.linalg.solve(A, J.T @ (H @ unknown.values(eta) - g) + belief * eta)
            for _ in range(HALVINGS):
                ahead = cost(eta + step)
                if ahead <= now:
                    break
                step = 0.5 * step
            else:
                break
            eta, now = eta + step, ahead
            if np.abs(step).max() < CONVERGED:
                break
        return eta, now

    def _estimate(self, unknown, eta, share):
        J, theta = unknown.jacobian(eta), unknown.values(eta)
        H, belief = J.T @ self.total[:-1, :-1] @ J, self._belief(share)
        A = H + np.diag(belief)
        inverse = np.linalg.inv(A)
        covariance = inverse * belief @ inverse         # of the belief
        loose = np.linalg.inv(H + np.eye(len(eta)))
        systematic = loose[:, self.sensors[:-1]] @ loose[self.sensors[:-1]]
        many = len(self.parts)
        if many >= FEWEST_GROUPS:
            moves = np.empty((many, len(eta)))
            for number, part in enumerate(self.parts):
                left = J.T @ (part[:-1, :-1] @ theta - part[:-1, -1])
                moves[number] = np.linalg.solve(A - J.T @ part[:-1, :-1] @ J, left)
            covariance = covariance + (many - 1) / many * moves.T @ moves
        else:
            covariance = np.full_like(covariance, np.inf)
        identified = 1.0 - np.clip(belief * np.diag(inverse), 0.0, 1.0)
        return Estimate(eta, theta, covariance, systematic, identified, self.sigma, share)


def squares(groups, values):
    """Return (groups, dof) sums of squares that these values of the columns leave in the equations."""
    vector = np.append(-values, 1.0)
    return np.array([((group.triangles @ vector) ** 2).sum(axis=1) for group in groups])


def _grams(group):
    return np.einsum('cki,ckj->cij', group.triangles, group.triangles)


def _left(stack, rows, power):
    """Standard deviation of equations about their best fit."""
    if not rows:
        return 1.0
    R = triangle(stack)
    scale = np.maximum(np.linalg.norm(R, axis=0), 1e-300)[:-1]
    best, _, rank, _ = np.linalg.lstsq(R[:, :-1] / scale, R[:, -1], rcond=1e-10)
    left = np.linalg.norm(R[:, -1] - R[:, :-1] / scale @ best)
    free = max(rows - rank, 1)
    return max(float(left / np.sqrt(free)), EXACTLY * float(np.sqrt(power / rows)), 1e-9)
