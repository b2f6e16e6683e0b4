"""
Random spatial mechanisms: the recursions of Saha & Schiehlen against dense virtual work.

The dense model knows trees of joints, Lagrange's equations and the null space of the closure; derivatives are complex
steps.
"""

import numpy as np
import pytest
from conftest import thorough
from scipy.integrate import solve_ivp
from support.comparison import error

from psdyn_ros.formulations import denoc, legs
from psdyn_ros.model.errors import LoopClosureError

STEP = 1e-30  # of the complex step, exact to rounding
WELL_CONDITIONED = 100.0

# joints of each leg and which of them is actuated (from 1; None: passive leg); '' random, the rest as it says
MECHANISMS = {
    '3-3-3 planar': ((3, 3, 3), 'planar'),
    '4-4': ((4, 4), ''),
    '3-5': ((3, 5), ''),
    '5-5-5': ((5, 5, 5), ''),
    '6-6-6-6-6-6': ((6,) * 6, ''),
    '4-5-6': ((4, 5, 6), ''),
    '4-3 passive': ((4, 3), 'last passive'),
    '7 grounded': ((7,), 'grounded'),
    '4 grounded planar': ((4,), 'grounded planar')}


def unit(rng):
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


def random_mechanism(rng, counts, kind):
    """Draw legs in any pose and hang the end effector of all at one place; returns them and that pose."""
    while True:
        normal = unit(rng) if 'planar' in kind else None
        E, axes = rng.uniform(-1, 1, 3), rotation(unit(rng), 2.0)
        drawn = [random_leg(rng, m, normal, E, axes) for m in counts]
        if 'passive' in kind:
            drawn[-1] = (legs.Leg(drawn[-1][0].links, None, drawn[-1][0].tip, drawn[-1][0].tip_axes), drawn[-1][1])
        end = None
        if 'grounded' in kind:
            end = np.eye(4)
            end[:3, :3], end[:3, 3] = axes, E
        mechanism = legs.Mechanism(tuple(leg for leg, _ in drawn), 9.81 * unit(rng), end)
        theta = tuple(position for _, position in drawn)
        if condition(mechanism, theta) < WELL_CONDITIONED:
            return mechanism, theta


def random_leg(rng, m, normal, E, axes):
    """A leg with at most one prismatic joint; `normal` makes it planar."""
    slider = rng.integers(0, 2 * m)
    links = []
    for i in range(m):
        axis = unit(rng) if normal is None else normal
        if i == slider and normal is not None:
            axis = np.cross(normal, unit(rng))
            axis /= np.linalg.norm(axis)
        B = rng.normal(size=(3, 3))
        links.append(legs.Link(rng.uniform(-1, 1, 3), axis, rng.uniform(1, 5), rng.uniform(-0.5, 0.5, 3),
                               B @ B.T + np.eye(3), i == slider))
    theta = rng.uniform(-1, 1, m)
    k = int(rng.integers(1, m + 1))
    pose = legs.leg_pose(legs.Leg(tuple(links), k, np.zeros(3), np.eye(3)), theta)
    R = pose.R[-1]
    return legs.Leg(tuple(links), k, R.T @ (E - pose.O[-1]), R.T @ axes), theta


def condition(mechanism, theta):
    dense = Dense(mechanism, theta)
    singular = np.linalg.svd(dense.K[:, dense.passive], compute_uv=False)[:len(dense.passive)]
    return singular[0] / singular[-1]


def rotation(axis, angle):
    K = np.array(((0, -axis[2], axis[1]), (axis[2], 0, -axis[0]), (-axis[1], axis[0], 0)))
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def bodies_of(leg, q):
    """Axes, mass centre, Jacobian of (centre, angle) (6, m) of each body, that of E, for real or complex q (m,)."""
    O, R = np.zeros(3), np.eye(3)
    joints, bodies = [], []

    def jacobian(point):
        columns = [np.concatenate((axis, np.zeros(3)) if slides else (np.cross(axis, point - origin), axis))
                   for origin, axis, slides in joints]
        return np.array(columns + [np.zeros(6)] * (len(q) - len(joints))).T

    for link, position in zip(leg.links, q):
        O = O + R @ (link.offset + (position * link.axis if link.prismatic else 0))
        R = R if link.prismatic else R @ rotation(link.axis, position)
        joints.append((O, R @ link.axis, link.prismatic))
        centre = O + R @ link.center
        bodies.append((R, centre, jacobian(centre), jacobian(O)))
    return bodies, jacobian(O + R @ leg.tip)


class Dense:
    """Full coordinates q, all joints of all legs; K qdot = 0; qdot = G thetadot."""

    def __init__(self, mechanism, theta):
        self.mechanism, self.q = mechanism, np.concatenate(theta)
        self.ends = np.cumsum([len(leg.links) for leg in mechanism.legs])[:-1]
        ks = np.concatenate([[i + 1 == leg.k for i in range(len(leg.links))] for leg in mechanism.legs])
        self.actuated, self.passive = np.flatnonzero(ks), np.flatnonzero(~ks)
        self.K = self.closure(self.q)
        self.G = np.zeros((len(self.q), len(self.actuated)))
        self.G[self.actuated] = np.eye(len(self.actuated))
        self.G[self.passive] = self.solve(-self.K[:, self.actuated])

    def split(self, values):
        return np.split(values, self.ends)

    def solve(self, right):
        solution, *_ = np.linalg.lstsq(self.K[:, self.passive], right, rcond=None)
        assert error(self.K[:, self.passive] @ solution, right) < 1e-9  # before `condition` has looked at it
        return solution

    def closure(self, q):
        J = [bodies_of(leg, part)[1] for leg, part in zip(self.mechanism.legs, self.split(q))]
        if self.mechanism.ground_end is not None:
            return J[0]
        rows = []
        for l in range(1, len(J)):
            row = [np.zeros_like(block) for block in J]
            row[0], row[l] = J[0], -J[l]
            rows.append(np.hstack(row))
        return np.vstack(rows)

    def inertia(self, q):
        """Of all joints, as if the legs were cut off the end effector."""
        H, start = np.zeros((len(q), len(q)), q.dtype), 0
        for leg, part in zip(self.mechanism.legs, self.split(q)):
            own = slice(start, start + len(part))
            start += len(part)
            for link, (R, _, J, _) in zip(leg.links, bodies_of(leg, part)[0]):
                H[own, own] += link.mass * J[:3].T @ J[:3] + J[3:].T @ R @ link.inertia @ R.T @ J[3:]
        return H

    def potential(self, q):
        return -sum(link.mass * self.mechanism.gravity @ centre
                    for leg, part in zip(self.mechanism.legs, self.split(q))
                    for link, (_, centre, _, _) in zip(leg.links, bodies_of(leg, part)[0]))

    def rate(self, function, direction):
        return function(self.q + 1j * STEP * direction).imag / STEP

    def rates(self, thetadot):
        return self.G @ thetadot

    def accelerations(self, thetadot, thetadd):
        qd, qdd = self.rates(thetadot), np.zeros(len(self.q))
        qdd[self.actuated] = thetadd
        products = self.rate(self.closure, qd) @ qd + self.K[:, self.actuated] @ thetadd
        qdd[self.passive] = self.solve(-products)
        return qdd

    def torques(self, thetadot, thetadd):
        """Lagrange's equations of the cut legs, projected by G."""
        qd, qdd = self.rates(thetadot), self.accelerations(thetadot, thetadd)

        def lagrangian(q):
            return 0.5 * qd @ self.inertia(q) @ qd - self.potential(q)

        slope = np.array([self.rate(lagrangian, one) for one in np.eye(len(qd))])
        return self.G.T @ (self.inertia(self.q) @ qdd + self.rate(self.inertia, qd) @ qd - slope)

    def twists(self, thetadot):
        """(w, v of O_i) of every body, leg by leg."""
        found = []
        for leg, part, rate in zip(self.mechanism.legs, self.split(self.q), self.split(self.rates(thetadot))):
            found.append([np.concatenate(((J @ rate)[3:], (J @ rate)[:3])) for *_, J in bodies_of(leg, part)[0]])
        return found


@pytest.fixture(params=thorough([(name, turn) for turn in range(4) for name in MECHANISMS], len(MECHANISMS)),
                ids=lambda case: f'{case[0]} #{case[1]}')
def case(request, rng):
    mechanism, theta = random_mechanism(rng, *MECHANISMS[request.param[0]])
    n = len(mechanism.actuated)
    return mechanism, theta, *rng.uniform(-1, 1, (2, n))


def test_rates_and_accelerations(case):
    mechanism, theta, thetadot, thetadd = case
    dense, configuration = Dense(mechanism, theta), denoc.configure(mechanism, theta)
    motion = denoc.rates(configuration, thetadot)
    joints, _ = denoc.accelerations(configuration, motion, thetadd)
    assert error(np.concatenate(motion.theta), dense.rates(thetadot)) < 1e-11
    assert error(np.vstack(motion.t), np.vstack(dense.twists(thetadot))) < 1e-11
    assert error(np.concatenate(joints), dense.accelerations(thetadot, thetadd)) < 1e-10


def test_inverse_and_forward_dynamics(case):
    mechanism, theta, thetadot, thetadd = case
    configuration = denoc.configure(mechanism, theta)
    ref = Dense(mechanism, theta).torques(thetadot, thetadd)
    assert error(denoc.inverse_dynamics(configuration, thetadot, thetadd), ref) < 1e-10
    inertia = denoc.generalized_inertia(configuration)
    sensitivity = np.linalg.norm(np.linalg.inv(inertia), 2) * (1 + np.abs(ref).max()) + np.linalg.cond(inertia)
    off = denoc.forward_dynamics(configuration, thetadot, ref) - thetadd
    assert np.abs(off).max() < 1e-12 * sensitivity  # large torques cancel in a small acceleration


def test_factors_and_inertia(case):
    mechanism, theta, thetadot, _ = case
    dense, configuration = Dense(mechanism, theta), denoc.configure(mechanism, theta)
    N_l, N_c, N_d, order = denoc.denoc_factors(configuration)
    N = N_l @ N_c @ N_d
    twists = dense.twists(thetadot)
    assert error((N @ thetadot).reshape(-1, 6), [twists[l][i] for l, i in order]) < 1e-11
    assert list(order) == sorted(order, key=lambda block: block[::-1])
    assert np.array_equal(N_l, np.tril(N_l)) and np.array_equal(np.diag(N_l), np.ones(len(N_l)))

    inertia = denoc.generalized_inertia(configuration)
    M = np.zeros((len(N), len(N)))
    for row, (l, i) in enumerate(order):
        M[6 * row:6 * row + 6, 6 * row:6 * row + 6] = configuration.legs[l].M[i]
    assert error(inertia, N.T @ M @ N) < 1e-11
    assert error(inertia, dense.G.T @ dense.inertia(dense.q) @ dense.G) < 1e-11
    assert error(inertia, inertia.T) < 1e-12
    assert np.linalg.eigvalsh(0.5 * (inertia + inertia.T)).min() > 0


def test_projectors_remove_the_passive_joints(case):
    mechanism, theta, *_ = case
    for leg in denoc.configure(mechanism, theta).legs:
        assert error(leg.Phi @ leg.Phi, leg.Phi) < 1e-11
        assert error(leg.Phi, leg.Phi.T) < 1e-15
        for i in range(len(leg.p)):
            if i != leg.k:
                assert np.abs(leg.Phi @ leg.A_e[i] @ leg.p[i]).max() < 1e-11


@pytest.mark.long
@pytest.mark.parametrize('name', MECHANISMS)
def test_legs_close_again_after_a_motion(name, rng):
    for attempt in range(5):
        mechanism, theta = random_mechanism(rng, *MECHANISMS[name])
        start = legs.actuated_positions(mechanism, theta)
        try:
            moved = legs.close(mechanism, theta, start + rng.uniform(-0.02, 0.02, len(start)))
        except LoopClosureError:
            # drawn at the edge of its reach, where there is nothing to move to
            assert attempt < 4
        else:
            break
    ends = [legs.leg_pose(leg, position) for leg, position in zip(mechanism.legs, moved)]
    for end in ends[1:]:
        assert error(end.E, ends[0].E) < 1e-13
        assert error(end.R_E, ends[0].R_E) < 1e-13
    assert error(np.concatenate(legs.close(mechanism, moved, start)), np.concatenate(theta)) < 1e-11


@pytest.mark.parametrize('name', ['4-4', '7 grounded'])
def test_free_motion_keeps_its_energy(name, rng):
    mechanism, theta = random_mechanism(rng, *MECHANISMS[name])
    n = len(mechanism.actuated)

    def energy(y):
        dense = Dense(mechanism, legs.close(mechanism, np.split(y[:-n], Dense(mechanism, theta).ends)))
        qd = dense.rates(y[-n:])
        return 0.5 * qd @ dense.inertia(dense.q) @ qd + dense.potential(dense.q)

    start = np.concatenate((*theta, rng.uniform(-0.5, 0.5, n)))
    run = solve_ivp(lambda t, y: denoc.state_rate(mechanism, y, lambda _, position, rate: np.zeros(n)), (0, 0.1), start,
                    method='DOP853', rtol=1e-11, atol=1e-11)
    before, after = energy(start), energy(run.y[:, -1])
    assert after == pytest.approx(before, rel=1e-9, abs=1e-8)
    assert error(run.y[:, -1], start) > 1e-3
