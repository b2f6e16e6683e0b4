"""A slip velocity that is not the model's, and none where friction is as the model says, by whatever law."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import thorough
from support.bags.diagnosis_cases import diagnosed, port_areas, recorded
from support.bags.recorded_motion import PERIOD, block_of, crane, oil, swinging

from psdyn_ros.validation.metrics.prediction import Predictor

LEVEL, SLIP = 4000.0, 5e-3      # N, m/s of the cylinders of the crane


def with_slip(name, velocity):
    cylinder = oil().cylinders[name]
    return replace(oil(), cylinders={**oil().cylinders, name: replace(
        cylinder, friction=replace(cylinder.friction, slip_velocity=velocity))})


def moved(hydraulics, change=None):
    """A block with noise of pressures, 0.5 bar, of a machine with these hydraulics; change: function of (v (n, 4),
    effort) in place."""
    t, x, xd, xdd = swinging(40.0)
    predictor = Predictor(crane(), hydraulics)
    bare = predictor.mechanism.inverse_dynamics(x, xd, xdd)
    effort = bare + predictor.friction(x, xd, xdd, xd, bare)
    if change is not None:
        change(xd, effort)
    areas, normal = port_areas(oil()), np.random.default_rng(4).standard_normal
    of_b = np.full((len(t), 3), 2e6)
    pressures = np.stack(((effort[:, 1:] - of_b * areas[:, 1]) / areas[:, 0], of_b), axis=-1)
    pressures += 5e4 * normal(pressures.shape)
    effort = np.column_stack((effort[:, 0] + 20.0 * normal(len(t)), (pressures * areas).sum(axis=2)))
    return block_of(t, x, xd, effort, pressures)


@pytest.mark.parametrize('name', thorough(['telescope', 'tilt_cylinder'], 1))
def test_larger_slip_velocity_is_named_with_its_size(name):
    (first, *_), diagnosis = diagnosed(moved(with_slip(name, 5.0 * SLIP)))
    assert (first.kind, first.about) == ('slip_velocity', name), diagnosis.text
    assert abs(first.estimate - 5.0 * SLIP) <= 3.0 * first.error < SLIP
    assert f'where the model has {1e3 * SLIP:g} mm/s' in first.text and 'slip_velocity' in first.next


def test_smaller_slip_velocity_is_named_with_a_bound():
    (first, *_), diagnosis = diagnosed(moved(oil()), hydraulics=with_slip('telescope', 5.0 * SLIP))
    assert (first.kind, first.about) == ('slip_velocity', 'telescope'), diagnosis.text
    assert SLIP <= first.estimate < 2.5 * SLIP and np.isnan(first.error) and 'at most' in first.text


def stick(v, effort):
    """Bristles in the place of the regularised law, in all cylinders: friction turns round over 0.5 mm of travel."""
    for axis in (1, 2, 3):
        friction = 0.0
        for k, speed in enumerate(v[:, axis]):
            friction += PERIOD * speed / 5e-4 * (LEVEL - friction * np.sign(speed))
            effort[k, axis] += friction - LEVEL * np.tanh(speed / SLIP)


@pytest.mark.parametrize('change', [None, stick])
def test_no_slip_velocity_is_named_where_friction_is_right(change):
    causes, _ = diagnosed(moved(oil(), change))
    assert 'slip_velocity' not in [one.kind for one in causes]


def test_more_friction_at_all_speeds_is_no_slip_velocity():
    causes, _ = diagnosed(recorded('friction'))
    assert causes[0].kind == 'friction' and 'slip_velocity' not in [one.kind for one in causes]
