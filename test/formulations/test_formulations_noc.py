"""The 2PUR-2RPU machine: reference numbers, twists against the poses of the bodies, and identities of the dynamics."""

import numpy as np
import pytest
from conftest import thorough
from support.comparison import error
from support.reference import reference

from psdyn_ros.formulations import noc
from psdyn_ros.model.errors import LoopClosureError

STEP = 1e-30  # of the complex step, exact to rounding
MACHINE = noc.Machine()
REFERENCE = reference('pkm_2pur2rpu')['rows']


def relative(comp, ref):
    return np.abs(np.asarray(comp) - ref).max() / np.abs(ref).max()


@pytest.fixture(params=thorough(range(10), 2))
def state(rng):
    x = rng.uniform((-0.3, -0.3, 0.06), (0.3, 0.3, 0.095))
    return x, *rng.normal(size=(2, 3))


@pytest.fixture
def machine(rng):
    """The case study with everything that is zero or symmetric in it made general."""
    return noc.Machine(e=0.007, l_c=0.05, q_c=0.04, gravity=tuple(rng.normal(size=3)),
                       masses=tuple(rng.uniform(0.02, 0.1, 7)), inertias=tuple(rng.uniform(1e-5, 1e-4, (7, 3))))


# --- reference numbers


@pytest.mark.parametrize('ref', REFERENCE, ids=lambda ref: f't={ref["t"]}')
def test_reference_rows(ref):
    path = noc.trajectory(MACHINE, ref['t'])
    assert error(path.tool, ref['tool']) < 1e-15
    assert error(path.x, ref['x']) < 1e-15
    assert error(path.xd, ref['xd']) < 1e-12
    assert error(path.xdd, ref['xdd']) < 2e-8  # the file's are differences
    x, xd, xdd = (np.array(ref[key]) for key in ('x', 'xd', 'xdd'))
    A, A_dot = noc.actuator_jacobian(MACHINE, x), noc.rate_along(noc.actuator_jacobian, MACHINE, x, xd)
    assert error(noc.actuator_positions(MACHINE, x), ref['q']) < 1e-15
    assert error(A @ xd, ref['qd']) < 1e-12
    assert error(A @ xdd + A_dot @ xd, ref['qdd']) < 2e-8
    assert relative(noc.generalized_inertia(MACHINE, x), ref['inertia']) < 1e-14
    assert error(noc.generalized_force(MACHINE, x, xd, xdd), ref['tau']) < 1e-13
    assert error(noc.inverse_dynamics(MACHINE, x, xd, xdd), ref['tau_a0']) < 1e-13


# --- law (B-1)


# --- twist-shaping matrices against the geometry of the machine, by points and directions alone


def platform(x):
    a, b, z = x
    sa, ca, sb, cb = np.sin(a), np.cos(a), np.sin(b), np.cos(b)
    Rx = np.array(((1, 0, 0), (0, ca, -sa), (0, sa, ca)))
    Ry = np.array(((cb, 0, sb), (0, 1, 0), (-sb, 0, cb)))
    return z * Rx[:, 2], Rx @ Ry


def poses(machine, x):
    """Mass centres (7, 3) and axes (7, 3, 3) of the bodies; the actuator positions."""
    P, R = platform(x)
    U, V, W = R.T
    f, e = machine.f, machine.e
    A = P + f * U - e * W, P - f * U - e * W, P - f * V, P + f * V
    X, Y, Z = np.eye(3)
    q, centres, axes = [], [], []
    for side, A_i in zip((-1, 1), A[:2]):
        across = np.sqrt(machine.l**2 - A_i[1]**2 - A_i[2]**2)
        q.append(A_i[0] + side * across)
        centres.append(q[-1] * X)
        axes.append(np.eye(3))
    for q_i, A_i in zip(tuple(q), A[:2]):
        z = (A_i - q_i * X) / machine.l
        centres.append(q_i * X + machine.l_c * z)
        axes.append(np.array((np.cross(V, z), V, z)).T)
    for side, A_i in zip((-1, 1), A[2:]):
        link = A_i - side * machine.l3 * Y - machine.d * Z
        q.append(np.sqrt(link @ link))
        y = link / q[-1]
        centres.append(A_i - machine.q_c * y)
        axes.append(np.array((X, y, np.cross(X, y))).T)
    return np.array((*centres, P)), np.array((*axes, R)), np.array(q)


def test_inverse_displacement_is_that_of_the_geometry(machine, state):
    x = state[0]
    centres, axes, q = poses(machine, x)
    assert error(noc.actuator_positions(machine, x), q) < 1e-14
    assert error(noc.body_axes(machine, x), axes) < 1e-14


def test_twists_against_the_rates_of_the_poses(machine, state):
    x, xd, _ = state
    centres, axes, q = poses(machine, x + 1j * STEP * xd)
    R, R_dot = axes.real, axes.imag / STEP
    spin = R_dot @ R.transpose(0, 2, 1)
    w = np.array((spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0])).T
    assert error(noc.twist_shaping_matrices(machine, x) @ xd, np.hstack((w, centres.imag / STEP))) < 1e-13
    assert error(noc.actuator_jacobian(machine, x) @ xd, q.imag / STEP) < 1e-13


def test_rates_of_the_twist_shaping_matrices_against_differences(machine, state):
    x, xd, _ = state
    h = 1e-6
    up, down = (noc.twist_shaping_matrices(machine, x + step * xd) for step in (h, -h))
    assert error(noc.rate_along(noc.twist_shaping_matrices, machine, x, xd), (up - down) / (2 * h)) < 1e-6


@pytest.mark.parametrize('x', [(0, 0, 0.12), (0, 0.5, 0.1), (0, -0.5, 0.1), (0, 0, 0.2)])
def test_pose_out_of_reach_is_refused(x):
    with pytest.raises(LoopClosureError, match='do not reach'):
        noc.actuator_positions(MACHINE, x)


# --- dynamics


def test_rate_of_inertia_less_twice_C_is_skew(machine, state):
    x, xd, _ = state
    I_dot = noc.rate_along(noc.generalized_inertia, machine, x, xd)
    C = noc.coriolis_matrix(machine, x, xd)
    skew = I_dot - 2 * C
    assert np.abs(skew + skew.T).max() < 1e-13 * np.abs(C).max()


def test_inertia_is_positive_definite(machine, state):
    inertia = noc.generalized_inertia(machine, state[0])
    assert relative(inertia.T, inertia) < 1e-15
    assert np.linalg.eigvalsh(inertia).min() > 0


def test_force_is_that_of_lagrange(machine, state):
    """The inertia, tested by the energy of the poses below, and the potential differentiated by complex steps."""
    x, xd, xdd = state

    def lagrangian(y):
        weight = np.array(machine.masses) @ poses(machine, y)[0] @ machine.gravity
        return 0.5 * xd @ noc.generalized_inertia(machine, y) @ xd + weight

    I_dot = noc.rate_along(noc.generalized_inertia, machine, x, xd)
    slope = [lagrangian(x + 1j * STEP * unit).imag / STEP for unit in np.eye(3)]
    ref = noc.generalized_inertia(machine, x) @ xdd + I_dot @ xd - slope
    assert relative(noc.generalized_force(machine, x, xd, xdd), ref) < 1e-12


def test_power_is_the_rate_of_the_energy(machine, state):
    x, xd, xdd = state
    centres, axes, _ = poses(machine, x + 1j * STEP * xd)
    spin = (axes.imag / STEP).transpose(0, 2, 1) @ axes.real
    w = np.array((spin[:, 1, 2], spin[:, 2, 0], spin[:, 0, 1])).T  # in body axes
    energy = 0.5 * (np.sum(machine.inertias * w**2) + np.array(machine.masses) @ np.sum((centres.imag / STEP)**2, 1))
    assert energy == pytest.approx(0.5 * xd @ noc.generalized_inertia(machine, x) @ xd, rel=1e-12)
    rate = (xd @ noc.generalized_inertia(machine, x) @ xdd
            + 0.5 * xd @ noc.rate_along(noc.generalized_inertia, machine, x, xd) @ xd
            - np.array(machine.masses) @ (centres.imag / STEP) @ machine.gravity)
    assert noc.generalized_force(machine, x, xd, xdd) @ xd == pytest.approx(rate, rel=1e-11, abs=1e-14)


def test_forward_dynamics_of_inverse_dynamics(machine, state):
    x, xd, xdd = state
    tau_a = noc.inverse_dynamics(machine, x, xd, xdd)
    assert error(noc.forward_dynamics(machine, x, xd, tau_a), xdd) < 1e-11


# --- distribution


def test_minimum_norm_does_not_square_the_condition_number(rng):
    """With a condition number of 1e9 the normal equations would have no digit left."""
    Q, _ = np.linalg.qr(rng.normal(size=(4, 3)))
    V, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    A = Q * (1.0, 1e-4, 1e-9) @ V.T
    ref = Q @ rng.normal(size=3)
    assert relative(noc.minimum_norm(A, A.T @ ref), ref) < 1e-5
