"""Sums of products of columns: what they say of some bins and columns, and what they take of memory."""

import tracemalloc

import numpy as np
import pytest

from psdyn_ros.validation.diagnosis.correction_fits import Equations
from psdyn_ros.validation.diagnosis.products import Products

BINS, ACTUATORS = 256, 4


@pytest.fixture
def rows(rng):
    """(bins, actuators, rows, columns)."""
    return rng.standard_normal((BINS, ACTUATORS, 7, 40))


def test_products_of_some_bins_and_of_columns_made_of_others_are_those_of_the_rows(rows, rng):
    bins, factors, more = np.array([3, 4, 250]), rng.random((3, ACTUATORS)), rng.standard_normal((ACTUATORS, 3, 2))
    found = Products.full(of(rows)).within(bins).times(factors).added([7, 1], [0, 9, 8], more).some([1, 2, 7])
    made = rows[bins]
    made[..., [7, 1]] += made[..., [0, 9, 8]] @ more
    expected = factors[..., None, None] * of(made[..., [1, 2, 7]])
    assert len(found) == 3
    assert found.of(2, [2, 0, 0]) == pytest.approx(expected[:, 2][:, [[2], [0], [0]], [2, 0, 0]], rel=1e-12, abs=1e-12)
    mixed = rng.standard_normal((3, 2))
    assert found.made(mixed).of(2, [0, 1]) == pytest.approx(mixed.T @ expected[:, 2] @ mixed, rel=1e-9, abs=1e-9)
    assert found.squares(1) == pytest.approx(expected[..., 1, 1], rel=1e-12)


def test_equations_of_a_long_recording_are_not_copied(rows):
    packed = Products.full(of(rows))
    tracemalloc.start()
    changed = packed.times(0.5).added([1], [2], np.ones((1, 1)))
    equations = Equations(changed, changed.within(np.arange(BINS)), np.ones(ACTUATORS), 1.0)
    equations.share(np.array([[0, 1], [0, -1], [2, 3], [-1, -1]]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * packed.of(0, np.arange(40)).nbytes


def of(rows):
    return np.swapaxes(rows, -1, -2) @ rows
