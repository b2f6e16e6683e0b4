"""Noise of sensors in the errors of efforts: its size is found, and it is not taken for an error of the model."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bags.recorded_motion import PERIOD, crane, exact_block, oil

from psdyn_ros.validation.diagnosis.sensor_noise import SensorNoise
from psdyn_ros.validation.metrics.metrics import MOST_NOISE, MetricsAccumulator, capacities
from psdyn_ros.validation.metrics.prediction import Predictor
from psdyn_ros.validation.signals.filters import Butterworth, SavitzkyGolay

TELESCOPE = crane().actuators.index('telescope')


def noisy(rng, size=1.0, seconds=10.0, heavier=0.0, recorded_velocity=True):
    """A swinging crane: noise of its encoders, tachometers and load cells, and a load that the model does not know."""
    block = exact_block(seconds, recorded_velocity=recorded_velocity)
    x = block.x + size * 2e-5 * rng.standard_normal(block.x.shape)
    xd = block.xd if block.xd is None else block.xd + size * 1.4e-3 * rng.standard_normal(x.shape)
    effort = block.effort + size * 300.0 * rng.standard_normal(x.shape)
    if heavier:
        bare = (crane().with_payload('tcp', heavier).gravity_forces(block.x) - crane().gravity_forces(block.x))
        effort += bare
    return replace(block, x=x, xd=xd, effort=effort)


def judged(block, filter=None, hydraulics=None):
    """(`MetricsAccumulator`, `SensorNoise`) of one block."""
    predictor = Predictor(crane(), hydraulics, filter or SavitzkyGolay(PERIOD))
    noise = SensorNoise(predictor)
    metrics = MetricsAccumulator(crane(), predictor.mechanism, capacities(crane(), hydraulics), noise=noise.rms)
    prediction = predictor.predict(block)
    metrics.add(prediction)
    noise.add(block, prediction)
    return metrics, noise


@pytest.mark.parametrize('recorded_velocity', [True, False])
@pytest.mark.parametrize('filter', [SavitzkyGolay(PERIOD), Butterworth(PERIOD)], ids=['polynomial', 'Butterworth'])
def test_noise_is_all_of_the_error_of_an_exact_model(rng, filter, recorded_velocity):
    metrics, noise = judged(noisy(rng, seconds=40.0, recorded_velocity=recorded_velocity), filter, oil())
    for axis in metrics.measured():
        assert noise.rms(axis) == pytest.approx(metrics.effort(axis).rmse, rel=0.15), crane().actuators[axis]
        assert metrics.share_without_noise(axis) == pytest.approx(np.sqrt(1.0 - MOST_NOISE))


def test_exact_sensors_have_none(rng):
    metrics, noise = judged(noisy(rng, size=0.0), hydraulics=oil())
    for axis in metrics.measured():
        assert noise.rms(axis) < 0.05 * metrics.effort(axis).rmse
        assert metrics.share_without_noise(axis) > 0.998


@given(st.floats(50.0, 400.0), st.integers(0, 2**31))
def test_an_error_of_the_model_is_none(heavier, seed):
    """What the model does not know is in even and in odd samples alike, beside any noise."""
    rng = np.random.default_rng(seed)
    metrics, noise = judged(noisy(rng, heavier=heavier), hydraulics=oil())
    alone, its_noise = judged(noisy(rng), hydraulics=oil())
    for axis in metrics.measured():
        error = metrics.share_without_noise(axis) * metrics.effort(axis).rmse
        assert noise.rms(axis) == pytest.approx(its_noise.rms(axis), rel=0.4)
        assert error > 0.9 * np.sqrt(max(metrics.effort(axis).rmse ** 2 - alone.effort(axis).rmse ** 2, 0.0))


def test_noise_that_neighbours_share_counts_as_an_error(rng):
    """A slow topic on a faster grid: its noise is no longer white, and nothing is taken off for it."""
    block = exact_block(20.0)
    slow = 300.0 * rng.standard_normal(block.effort.shape).repeat(10, axis=0)[:len(block.t)]
    metrics, noise = judged(replace(block, effort=block.effort + slow), hydraulics=oil())
    for axis in metrics.measured():
        assert noise.rms(axis) < 0.3 * metrics.effort(axis).rmse


def test_a_filter_that_needs_every_sample_leaves_noise_unknown(rng):
    block = noisy(rng, seconds=20.0)
    few = replace(block, **{name: getattr(block, name)[::20] for name in ('t', 'x', 'xd', 'residual', 'effort',
                                                                         'positions')},
                  core=slice(0, len(block.t[::20])), period=20 * PERIOD)
    metrics, noise = judged(few, Butterworth(20 * PERIOD), oil())
    assert noise.rms(TELESCOPE) == 0.0 and metrics.share_without_noise(TELESCOPE) == 1.0


@pytest.mark.parametrize('heavier', [0.0, 400.0])
def test_what_stands_is_judged_by_its_mean_where_noise_moves_it_in_the_model(rng, heavier):
    """Slew and lift on their brakes; the load that the model does not know is still seen at the lift."""
    block = exact_block(20.0)
    moves = np.array([False, False, True, True])
    phase = np.linspace(0.0, 20.0, len(block.t))[:, np.newaxis] * np.array([0.0, 0.0, 1.3, 0.9])
    x = crane().initial_position + 0.05 * np.sin(phase)
    xd = np.gradient(x, block.period, axis=0)
    loaded = crane().with_payload('tcp', heavier) if heavier else crane()
    effort = loaded.inverse_dynamics(x, xd, np.gradient(xd, block.period, axis=0))
    xd[:, ~moves] += 0.02 * rng.standard_normal((len(x), 2))
    metrics, _ = judged(replace(block, x=x, xd=xd, effort=effort))
    nrmse, bias = ([metrics.figure[name].value(axis, {}) for axis in (0, 1)] for name in ('nrmse', 'bias'))
    assert metrics.effort(0).nrmse > 0.05 and nrmse[0] is None
    assert (bias[1].estimate > 0.03) == bool(heavier)
    assert [metrics.stands(axis) for axis in range(4)] == list(~moves)
