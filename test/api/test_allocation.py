"""Efforts of redundant actuators against the pseudo-inverse and against every active set."""

import itertools

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from support.comparison import error

from psdyn_ros.api.allocation import Allocation
from psdyn_ros.kernels.control import allocation as kernels
from psdyn_ros.model.errors import (
    ActuationError,
    DuplicateNameError,
    NonFiniteError,
    ShapeError,
    StateError,
    UnknownNameError,
)

NAMES = ('left', 'right', 'rotor')
A3 = np.array(((1.0, 0.0), (1.0, 0.5), (0.0, 2.0)))


def allocate(A, weights, forces, lower=-np.inf, upper=np.inf, preload=0.0):
    """Return (status, efforts) of the kernel."""
    m, n = A.shape
    efforts = np.zeros(m)
    status = kernels.allocate(A, weights, np.full(m, preload), np.full(m, lower), np.full(m, upper), forces,
                                kernels.scratch(m, n), efforts)
    return status, efforts


def pseudo_inverse(A, weights, forces, preload):
    root = np.sqrt(weights)
    return preload + np.linalg.pinv((A / root[:, None]).T, rcond=1e-10) @ (forces - A.T @ preload) / root


def every_active_set(A, weights, forces, lower, upper, preload):
    """Return (residual, cost, efforts) of the best of all choices of efforts at their limits."""
    best = np.inf, np.inf, None
    small = 1e-9 * np.abs(forces).max()
    for sides in itertools.product((-1, 0, 1), repeat=len(A)):
        sides = np.array(sides)
        f = np.select((sides < 0, sides > 0), (lower, upper), preload)
        if not np.isfinite(f).all():
            continue
        free = sides == 0
        if free.any():
            f[free] = pseudo_inverse(A[free], weights[free], forces - A[~free].T @ f[~free], preload[free])
        slack = 1e-9 * (1 + np.abs(f).max())
        if (f >= lower - slack).all() and (f <= upper + slack).all():
            candidate = np.linalg.norm(A.T @ f - forces), weights @ (f - preload) ** 2, f
            if candidate[0] < best[0] - small or (candidate[0] < best[0] + small and candidate[1] < best[1]):
                best = candidate
    return best


def random_problem(rng):
    """Return A, weights, lower, upper, preload; some actuators act alike, some coordinates have none."""
    n = rng.integers(1, 4)
    m = n + rng.integers(0, 3)
    A = rng.normal(size=(m, n))
    kind = rng.integers(5)
    if kind < 2 and m > 1:
        A[1] = (1, -2)[kind] * A[0]
    if kind == 2 and n > 1:
        A[:, 1] = 3 * A[:, 0]
    upper = 10 ** rng.uniform(-1, 1, m)
    lower = -upper * rng.choice((0, 0.5, 1, np.inf), m)
    if rng.random() < 0.2:
        lower[-1] = upper[-1] = 0.3  # a stuck actuator
    return A, 10 ** rng.uniform(-2, 2, m), lower, upper, rng.choice((0, 1)) * rng.normal(size=m)


def test_least_norm_is_the_pseudo_inverse(rng):
    for _ in range(200):
        A, weights, _, _, preload = random_problem(rng)
        forces = rng.normal(size=A.shape[1])
        _, comp = allocate(A, weights, forces, preload=preload)
        ref = pseudo_inverse(A, weights, forces, preload)
        assert error(comp, ref) < 1e-10


def test_accuracy_at_a_large_condition_number(rng):
    """The normal equations would lose all of it: the square of this condition number is 1e16."""
    u, _, v = np.linalg.svd(rng.normal(size=(5, 3)), full_matrices=False)
    A = u @ np.diag((1.0, 1e-4, 1e-8)) @ v
    f = u @ rng.normal(size=3)  # in the range of A, hence of least norm
    _, comp = allocate(A, np.ones(5), A.T @ f)
    assert np.abs(comp - f).max() < 1e-6


def test_limits_against_every_active_set(rng):
    seen = set()
    for _ in range(150):
        A, weights, lower, upper, preload = random_problem(rng)
        f = rng.uniform(np.maximum(lower, -1), np.minimum(upper, 1).clip(np.maximum(lower, -1)))
        forces = A.T @ f if rng.random() < 0.6 else rng.normal(size=A.shape[1]) * 10 ** rng.uniform(-1, 2)
        status, comp = allocate(A, weights, forces, lower, upper, preload)
        residual, cost, ref = every_active_set(A, weights, forces, lower, upper, preload)
        seen.add(status)
        size = np.abs(forces).max()
        assert (lower <= comp).all() and (comp <= upper).all()
        assert np.linalg.norm(A.T @ comp - forces) <= residual + 1e-9 * size
        assert (status == 0) == (residual < 1e-8 * size)
        if status == 0:
            assert error(comp, ref) < 1e-9
        else:
            assert weights @ (comp - preload) ** 2 <= cost * (1 + 1e-3) + 1e-9
    assert seen == {0, kernels.DEFICIENT, kernels.LIMITED}


def test_residual_against_scipy_for_many_alike(rng):
    """Vertices of the forces that can be reached, where many active sets meet."""
    for k in range(150):
        n = rng.integers(1, 6)
        m = n + rng.integers(0, 6)
        A = rng.normal(size=(m, n))
        A[n:] = A[rng.integers(0, n, m - n)] * rng.choice((-1, 1, 2), (m - n, 1))
        lower = -1.0 * (k % 2)
        forces = A.T @ rng.choice((lower, 0.5 + 0.5 * lower, 1), m) * rng.choice((1, 1, 1.5))
        status, comp = allocate(A, np.ones(m), forces, lower, 1.0)
        ref = lsq_linear(A.T, forces, (lower, 1.0), method='bvls', tol=1e-14)
        assert status in (0, kernels.LIMITED)
        assert np.linalg.norm(A.T @ comp - forces) < np.linalg.norm(ref.fun) + 1e-9
        assert comp @ comp < ref.x @ ref.x + 1e-6


def test_preload_acts_inside_only(rng):
    A, weights = rng.normal(size=(4, 2)), rng.uniform(0.1, 10, 4)
    forces, preload = rng.normal(size=2), rng.normal(size=4)
    _, plain = allocate(A, weights, forces)
    _, loaded = allocate(A, weights, forces, preload=preload)
    assert np.abs(A.T @ (loaded - plain)).max() < 1e-12
    # the rest of the preload is orthogonal, in the weights, to what was kept
    assert abs((loaded - plain) @ (weights * (preload - (loaded - plain)))) < 1e-12
    inside = np.linalg.svd(A.T)[2][2]
    _, kept = allocate(A, weights, 0 * forces, preload=inside)
    assert np.abs(kept - inside).max() < 1e-12


def test_scratch_carries_nothing_over(rng):
    m, n = 4, 2
    used, first, second = kernels.scratch(m, n), np.zeros(m), np.zeros(m)
    for _ in range(20):
        A, weights, limit = rng.normal(size=(m, n)), rng.uniform(0.1, 10, m), rng.uniform(0.1, 1, m)
        forces = A.T @ rng.uniform(-1.3, 1.3, m)
        for s, f in ((used, first), (kernels.scratch(m, n), second)):
            kernels.allocate(A, weights, np.zeros(m), -limit, limit, forces, s, f)
        assert (first == second).all()


@pytest.mark.parametrize('broken', ['A', 'forces', 'preload'])
def test_nan_is_never_met(broken):
    values = {'A': A3.copy(), 'forces': np.ones(2), 'preload': np.zeros(3)}
    values[broken].flat[0] = np.nan
    for limit in (np.inf, 0.1):
        assert allocate(values['A'], np.ones(3), values['forces'], -limit, limit, values['preload'])[0] != 0


def test_shares_by_strength():
    """Twin cylinders of unlike size carry in proportion to the square of what they can bear: w = 1 / limit^2."""
    twins = Allocation(('small', 'large'), {'small': 10.0, 'large': (-20.0, 30.0)})
    got = twins.share([[1.0], [1.0]], [5.0])
    assert got.efforts == pytest.approx((0.5, 4.5))
    assert got.met and got.at_limit == () and abs(got.residual).max() < 1e-12
    got = twins.share([[1.0], [1.0]], [-29.0])
    assert got.met and got.efforts == pytest.approx((-9.0, -20.0)) and got.at_limit == ('large',)
    got = twins.share([[1.0], [1.0]], [50.0])
    assert not got.met and got.at_limit == ('small', 'large') and got.residual == pytest.approx([-10.0])


def test_weights_and_preload_by_name():
    share = Allocation(('a', 'b'), weights={'b': 1.0, 'a': 3.0}, preload={'a': 2.0}).share
    assert share([[1], [1]], [4]).efforts == pytest.approx((2.5, 1.5))  # 3 (a - 2) = b
    assert Allocation(('a', 'b'), {'a': 5.0}).weights.tolist() == [1, 1]


def test_settings_are_replaced_as_a_whole():
    twins = Allocation(('a', 'b'), {'a': 1.0, 'b': 1.0}, preload={'a': 0.5})
    twins.set_limits({'b': 10.0})
    assert twins.share([[1], [1]], [8]).efforts == pytest.approx((4.25, 3.75))
    twins.set_preload(None)
    twins.set_weights({'a': 1.0, 'b': 3.0})
    assert twins.share([[1], [1]], [8]).efforts == pytest.approx((6, 2))
    for change in (lambda: twins.set_weights({'a': 1.0, 'b': -1.0}), lambda: twins.set_preload({'a': np.nan})):
        with pytest.raises((ActuationError, NonFiniteError)):
            change()
    assert twins.share([[1], [1]], [8]).efforts == pytest.approx((6, 2))


def test_forces_that_actuators_alike_cannot_give_are_left():
    three = Allocation(NAMES)
    alike = np.array(((1.0, 0.0), (-2.0, 0.0), (0.0, 0.0)))
    got = three.share(alike, [5.0, 1.0])
    assert not got.met and got.residual == pytest.approx((0.0, -1.0)) and got.efforts == pytest.approx((1, -2, 0))
    assert three.share(alike, [5.0, 0.0]).met


@pytest.mark.parametrize('error, message, options', [
    (DuplicateNameError, "actuator 'left' is named 2 times", {'actuators': ('left', 'left')}),
    (ActuationError, 'no actuators', {'actuators': ()}),
    (UnknownNameError, "limits: actuator 'rotr': no such actuator; did you mean 'rotor'", {'limits': {'rotr': 1}}),
    (UnknownNameError, "weights: actuator 'x'", {'weights': {'x': 1}}),
    (UnknownNameError, "preload: actuator 'x'", {'preload': {'x': 1}}),
    (ActuationError, 'weights: none for right, rotor', {'weights': {'left': 1}}),
    (ActuationError, 'expected positive', {'weights': {'left': 1, 'right': 0, 'rotor': 1}}),
    (ActuationError, "limit of 'left': lower=2 and upper=1 leave no effort", {'limits': {'left': (2, 1)}}),
    (ActuationError, "limit of 'left'", {'limits': {'left': -1}}),
    (ShapeError, "limit of 'left' has shape", {'limits': {'left': (1, 2, 3)}}),
    (NonFiniteError, "limit of 'left'", {'limits': {'left': np.nan}}),
    (NonFiniteError, "preload of 'left'", {'preload': {'left': np.inf}}),
    (ShapeError, "weight of 'left'", {'weights': {'left': 'x', 'right': 1, 'rotor': 1}})])
def test_wrong_options(error, message, options):
    with pytest.raises(error, match=message):
        Allocation(**({'actuators': NAMES} | options))


@pytest.mark.parametrize('error, message, A, forces', [
    (ShapeError, r'A has shape \(2, 2\); expected \(3, dof\), a row for each of left', A3[:2], (1, 1)),
    (ShapeError, r'A has shape \(3, 0\)', A3[:, :0], ()),
    (ShapeError, 'forces has shape', A3, (1, 1, 1)),
    (NonFiniteError, 'forces', A3, (1, np.inf)),
    (NonFiniteError, 'A = ', np.nan * A3, (1, 1))])
def test_wrong_arguments(error, message, A, forces):
    with pytest.raises(error, match=message):
        Allocation(NAMES).share(A, forces)


def test_no_convergence_is_an_error(monkeypatch):
    monkeypatch.setattr('psdyn_ros.api.allocation.kernels.allocate', lambda *_: kernels.STALLED)
    with pytest.raises(StateError, match='no allocation to left, right, rotor was found'):
        Allocation(NAMES).share(A3, (1, 1))
