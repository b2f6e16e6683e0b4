"""Base parameters: the combinations of masses, moments and inertias that efforts of a machine can tell at all.

Which they are follows from its structure: columns of the regressor at random states that are zero, or depend on others,
are found by QR with column pivoting (M. Gautier, Numerical calculation of the base inertial parameters of robots,
J. Robotic Systems 8 (1991) 485).  How well a recording tells them is another matter, and their standard errors say it.
"""
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from ...model.errors import StateError

STATES = 60                 # random ones, and
TRIES = 20                  # times as many that are tried, since loops do not close everywhere
RANGE = 0.3                 # m, rad about the initial position, where a coordinate has no limits
RATES = 1.0                 # m/s, m/s^2 and rad of random motion
DEPENDENT = 1e-9            # of the largest pivot, below which a column depends on others
NOTHING = 1e-7              # coefficient of a combination that is arithmetic


@dataclass(frozen=True)
class BaseStructure:
    """Combinations beta = theta[independent] + coefficients theta[dependent] of the columns of a regressor.

    columns       names of all columns
    independent   columns that stand for the combinations
    dependent     the others that have any effect
    coefficients  (independent, dependent)
    norms         (independent,) RMS of each column in random motion [N or N m for one unit]
    """

    columns: tuple
    independent: np.ndarray
    dependent: np.ndarray
    coefficients: np.ndarray
    norms: np.ndarray

    @property
    def names(self):
        """Each combination in words."""
        out = []
        for row, number in enumerate(self.independent):
            parts = [self.columns[number]]
            for factor, other in zip(self.coefficients[row], self.dependent):
                if abs(factor) > NOTHING:
                    parts.append(f'{"-" if factor < 0 else "+"} {abs(factor):.4g} {self.columns[other]}')
            out.append(' '.join(parts))
        return tuple(out)

    def of(self, parameters):
        """Return beta of (10 links,) parameters."""
        return parameters[self.independent] + self.coefficients @ parameters[self.dependent]


def base_structure(regressor, seed=0):
    """Return the `BaseStructure` of a `Regressor`; StateError where no random state closes its loops."""
    rows = _random_rows(regressor, np.random.default_rng(seed))
    norms = np.sqrt(np.mean(rows ** 2, axis=0))
    there = np.flatnonzero(norms > DEPENDENT * norms.max())
    R, order = qr(rows[:, there] / norms[there], mode='r', pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int((pivots > DEPENDENT * pivots[0]).sum())
    chosen, rest = there[order[:rank]], there[order[rank:]]
    coefficients = solve_triangular(R[:rank, :rank], R[:rank, rank:])
    coefficients = coefficients * norms[rest] / norms[chosen][:, None]
    by_name, others = np.argsort(chosen), np.argsort(rest)
    coefficients = coefficients[by_name][:, others]
    coefficients[np.abs(coefficients) < NOTHING] = 0.0
    return BaseStructure(regressor.columns, chosen[by_name], rest[others], coefficients, norms[chosen[by_name]])


def _random_rows(regressor, rng):
    """(rows, 10 links) of the regressor in random motion."""
    manipulator = regressor.manipulator
    middle, limits = manipulator.initial_position, manipulator.coordinate_limits
    low, high = (np.where(np.isfinite(end), end, middle + way * RANGE)
                 for end, way in ((limits.lower, -1.0), (limits.upper, 1.0)))
    found = []
    for attempt in range(TRIES * STATES):
        # nearer to the initial position where few states close
        reach = 0.9 * 0.5 ** (attempt // (2 * STATES))
        x = middle + reach * (rng.uniform(low, high) - middle)
        xd, xdd = RATES * rng.standard_normal((2, manipulator.dof))
        try:
            found.append(regressor(x[None], xd[None], xdd[None])[0])
        except StateError:
            continue
        if len(found) == STATES:
            break
    if not found:
        raise StateError(f"'{manipulator.name}': no loop closes at random states about its initial position")
    return np.concatenate(found)


@dataclass(frozen=True)
class BaseUnknowns:
    """Unknowns of the estimator in which the columns of links are those of base parameters, with no belief about them.

    base   (P,) values of all columns where nothing is known
    scale  (P,) standard deviation of each, zero of columns that do not stand for a combination
    """

    base: np.ndarray
    scale: np.ndarray

    @property
    def starts(self):
        """(1, P) values of eta from which the minimum is looked for: all is linear."""
        return np.zeros((1, len(self.base)))

    def values(self, eta):
        """Return (P,) of the columns."""
        return self.base + self.scale * eta

    def jacobian(self, eta):
        """Return (P, P)."""
        return np.diag(self.scale)


def base_unknowns(structure, unknown, usual):
    """Return the `BaseUnknowns` with friction and sensors of other `Unknowns`; usual: N, order of the efforts."""
    count = len(structure.columns)
    scale = unknown.scale.copy()
    scale[:count] = 0.0
    scale[structure.independent] = 100.0 * usual / structure.norms
    return BaseUnknowns(unknown.base, scale)
