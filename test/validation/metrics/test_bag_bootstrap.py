"""The block bootstrap: what it says is right as often as it says, also where errors are alike for a while."""

import math

import numpy as np
import pytest

import psdyn_ros
from psdyn_ros.validation.metrics.bootstrap import bootstrap, difference, mean, rmse

SAMPLES = 500       # in a second


def seconds(rng, count, memory=0.0, level=1.0, bias=0.0):
    """(count, 2) samples and sums of squares of errors whose mean square wanders with a memory of some seconds."""
    return np.column_stack((np.full(count, SAMPLES), SAMPLES * (wander(rng, count, memory) * level + bias) ** 2))


def wander(rng, count, memory):
    """Unit variance; correlation `memory` from one second to the next."""
    noise, out = rng.standard_normal(count + 50), np.zeros(count + 50)
    for k in range(1, count + 50):
        out[k] = memory * out[k - 1] + math.sqrt(1.0 - memory ** 2) * noise[k]
    return out[50:]


def coverage(make, statistic, truth, trials, block):
    rng = np.random.default_rng(17)
    hits = 0
    for trial in range(trials):
        found = bootstrap(make(rng), statistic, block=block, resamples=299, seed=trial)
        hits += found.low <= truth <= found.high
    return hits / trials


@pytest.mark.parametrize('memory, count, block', [(0.0, 60, 5), (0.7, 300, 10), (0.8, 600, 20)])
def test_the_interval_of_an_rms_holds_the_truth_as_often_as_it_says(memory, count, block):
    share = coverage(lambda rng: seconds(rng, count, memory), rmse, 1.0, 250, block)
    assert 0.90 <= share <= 0.985


def test_seconds_drawn_by_themselves_would_be_too_sure():
    """Why blocks."""
    def made(rng):
        return np.column_stack((np.full(300, SAMPLES), SAMPLES * wander(rng, 300, 0.8)))
    alone, together = (coverage(made, mean, 0.0, 200, block) for block in (1, 20))
    assert alone < 0.75 and together >= 0.88


def test_the_interval_of_a_mean_is_that_of_the_normal_law():
    rng = np.random.default_rng(5)
    values = rng.normal(3.0, 2.0, 2000)
    found = bootstrap(np.column_stack((np.ones(2000), values)), mean, block=1, resamples=4000)
    assert found.estimate == pytest.approx(values.mean())
    half = 1.96 * values.std() / math.sqrt(2000)
    assert (found.high - found.estimate, found.estimate - found.low) == pytest.approx((half, half), rel=0.06)


def test_two_recordings_of_the_same_machine_do_not_differ_and_a_worse_one_does():
    rng = np.random.default_rng(6)
    false_alarms = sum(difference(seconds(rng, 120, 0.5), seconds(rng, 120, 0.5), rmse, resamples=199,
                                  seed=k).excludes_zero for k in range(150))
    assert false_alarms / 150 <= 0.09
    worse = difference(seconds(rng, 300, 0.5), seconds(rng, 300, 0.5, level=1.5), rmse)
    assert worse.excludes_zero and worse.low < 0.5 < worse.high
    same = seconds(rng, 100, 0.5)
    assert difference(same, same, rmse).estimate == 0.0 and not difference(same, same, rmse).excludes_zero


def test_the_same_seed_gives_the_same_interval_and_seconds_without_samples_count_for_nothing():
    rng = np.random.default_rng(7)
    sums = seconds(rng, 50)
    assert bootstrap(sums, rmse, seed=3) == bootstrap(sums.copy(), rmse, seed=3) != bootstrap(sums, rmse, seed=4)
    weighted = np.vstack((sums, 1e-9 * sums))
    assert bootstrap(weighted, rmse).estimate == pytest.approx(bootstrap(sums, rmse).estimate)


@pytest.mark.parametrize('count', [0, 1])
def test_of_one_second_nothing_is_said(count):
    found = bootstrap(np.ones((count, 2)), lambda totals: totals[..., 1])
    assert found.estimate == count and math.isnan(found.low) and math.isnan(found.high)
    assert not found.excludes_zero
    assert math.isnan(difference(np.ones((count, 2)), np.ones((9, 2)), mean if count else lambda t: t[..., 1]).low)


@pytest.mark.parametrize('options', [{'block': 0}, {'resamples': 0}, {'level': 1.0}])
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(psdyn_ros.PsdynError, match='expected'):
        bootstrap(np.ones((10, 2)), mean, **options)
    with pytest.raises(psdyn_ros.PsdynError, match='expected'):
        bootstrap(np.ones(10), mean)
