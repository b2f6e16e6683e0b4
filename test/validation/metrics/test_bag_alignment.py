"""Delays between signals."""

import numpy as np
import pytest

from psdyn_ros.validation.metrics.alignment import MAX_DELAY, DelayEstimator

PERIOD = 0.002


def estimate_delay(a, b):
    estimator = DelayEstimator(PERIOD, min(MAX_DELAY, len(a) * PERIOD / 4))
    estimator.add(a, b)
    return estimator.delay()


def signal(t):
    return sum(np.sin(2 * np.pi * f * t + p) / f for f, p in ((0.3, 0), (0.7, 1), (1.9, 2), (3.1, 3), (5.3, 4)))


@pytest.mark.parametrize('delay', [0.0, 0.008, 0.0083, -0.0131, 0.2007, 0.0005])
def test_a_delay_is_found_between_samples(rng, delay):
    t = np.arange(0.0, 20.0, PERIOD)
    assert estimate_delay(signal(t), 3.0 * signal(t - delay) + 7.0).seconds == pytest.approx(delay, abs=5e-6)
    noise = 0.002 * rng.standard_normal((2, len(t)))
    noisy = estimate_delay(signal(t) + noise[0], 3.0 * signal(t - delay) + noise[1])
    assert noisy.seconds == pytest.approx(delay, abs=2e-4) and noisy.correlation > 0.9


def test_pieces_give_the_delay_of_the_whole():
    t, estimator = np.arange(0.0, 60.0, PERIOD), DelayEstimator(PERIOD, 0.1)
    for piece in np.split(t, 6):
        estimator.add(signal(piece), signal(piece - 0.0121))
    estimator.add(np.full(1000, np.nan), np.zeros(1000))
    assert estimator.delay().seconds == pytest.approx(0.0121, abs=1e-5)


def test_of_signals_without_anything_in_common_no_delay_is_said(rng):
    a, b = rng.standard_normal((2, 5000))
    assert np.isnan(estimate_delay(a, b).seconds)
    assert np.isnan(estimate_delay(np.ones(5000), b).seconds)
    assert np.isnan(estimate_delay(a[:3], b[:3]).seconds)
