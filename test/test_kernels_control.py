"""The kernels of a control cycle: clamps, distances, and polynomials that know their derivatives."""

import numpy as np
import pytest
from machines import URDF

import psdyn_ros
from psdyn_ros.kernels import control
from psdyn_ros.kernels.entry import NON_FINITE


@pytest.fixture(scope='module')
def crane():
    return psdyn_ros.load(URDF / 'hiab_xs031.urdf')


@pytest.fixture
def count():
    return np.zeros(4, dtype=np.int64)


def test_clamp_keeps_the_sign_and_counts(count):
    f = np.array([5.0, -7.0, 1.0, -3.0])
    assert control.clamp(f, np.array([2.0, 3.0, 2.0, np.inf]), count) == 0
    assert f.tolist() == [2.0, -3.0, 1.0, -3.0]
    assert count.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_clamp_refuses_what_is_not_finite_and_changes_nothing(bad):
    f, count = np.array([5.0, bad]), np.zeros(2, dtype=np.int64)
    assert control.clamp(f, np.array([2.0, 2.0]), count) == NON_FINITE
    assert f[0] == 5.0 and not count.any()


def test_deviation_is_the_distance_from_uniform_motion(rng):
    x_last, xd_last, off = rng.normal(size=(3, 5))
    assert control.deviation(x_last + 0.3 * xd_last, x_last, xd_last, 0.3) <= 1e-15
    assert control.deviation(x_last + 0.3 * xd_last + off, x_last, xd_last, 0.3) == pytest.approx(np.linalg.norm(off))


def test_polynomials_and_their_derivatives_agree_with_numpy(rng):
    coefficients, out = rng.normal(size=(6, 3)), np.empty((3, 3))
    for t in (0.0, -0.7, 1.3):
        control.polynomials(coefficients, t, out)
        for j in range(3):
            p = np.polynomial.Polynomial(coefficients[:, j])
            assert out[:, j] == pytest.approx([p(t), p.deriv()(t), p.deriv(2)(t)], rel=1e-13, abs=1e-13)


def test_the_state_is_read_from_the_columns_wanted_and_no_others(crane, rng):
    x, xd = crane.initial_position + rng.uniform(-0.02, 0.02, 4), rng.uniform(-0.1, 0.1, 4)
    _, position, velocity, _ = crane.joint_state(x, xd)
    order = rng.permutation(8)
    column = {joint: 1 + int(np.flatnonzero(order == joint)[0]) for joint in range(8)} | {-1: -1}
    rows = np.array([[column[int(joint)] for joint in module] for module in crane.records.mods['joint']])
    q, qd = np.concatenate([[np.nan], position[order]]), np.concatenate([[np.nan], velocity[order]])
    out, residual = np.empty((3, 4)), np.empty(4)
    status, gap = control.measured_state(crane.records.mods, rows, q, qd, out, residual)
    assert status == 0 and gap <= 1e-12
    assert out[0] == pytest.approx(x, abs=1e-14) and out[1] == pytest.approx(xd, abs=1e-14)
    q[column[crane.joints.index('lift_boom')]] += 0.01
    assert control.measured_state(crane.records.mods, rows, q, qd, out, residual)[1] > 1e-3
    q[column[crane.joints.index('slew')]] = np.inf
    assert control.measured_state(crane.records.mods, rows, q, qd, out, residual)[0] == NON_FINITE
