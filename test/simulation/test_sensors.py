"""Sensors of a plant: statistics of their errors, time, determinism; what they refuse."""

import math
import time
import tracemalloc

import numpy as np
import pytest
from support.sensor_readings import BEND, ONE, PERIOD, bank_of, readings, wave

from psdyn_ros.model.errors import DuplicateNameError, ModelError, ShapeError, StateError
from psdyn_ros.model.parameters.sensors import Sensor, SensorSettings, read_sensors
from psdyn_ros.simulation.sensors.bank import SensorBank

CHANNELS = ('lift.position', 'lift.velocity', 'lift.effort', 'lift.pressure_a', 'lift.pressure_b', 'tilt.position')


def test_without_settings_readings_are_the_truth():
    true = np.random.default_rng(1).normal(size=(50, len(CHANNELS)))
    values, stamps, fresh = readings(SensorBank(CHANNELS, None, PERIOD, 0), true)
    np.testing.assert_array_equal(values, true)
    np.testing.assert_array_equal(stamps, np.arange(50)[:, None] * np.ones(len(CHANNELS)))
    assert fresh.all()


@pytest.mark.parametrize('seed', [0, 1, 2**63 - 1])
def test_noise_is_white_gaussian_of_the_rms_asked_for(seed):
    n, rms = 20_000, 2e-5
    noise = readings(bank_of(seed, noise=rms), np.full(n, 0.4))[0][:, 0] - 0.4
    z = noise / rms
    # five standard errors of each estimate
    assert abs(z.mean()) < 5 / math.sqrt(n)
    assert abs(z.var() - 1.0) < 5 * math.sqrt(2 / n)
    assert abs((z**3).mean()) < 5 * math.sqrt(15 / n)
    assert abs((z**4).mean() - 3.0) < 5 * math.sqrt(96 / n)
    assert abs((z[1:] * z[:-1]).mean()) < 5 / math.sqrt(n)
    assert abs((z[64:] * z[:-64]).mean()) < 5 / math.sqrt(n), 'blocks of random numbers repeat'


def test_channels_are_independent_of_each_other():
    n = 20_000
    settings_ = SensorSettings(dict.fromkeys(CHANNELS, Sensor(noise=1.0)))
    values = readings(SensorBank(CHANNELS, settings_, PERIOD, 5), np.zeros((n, len(CHANNELS))))[0]
    correlation = np.corrcoef(values.T) - np.eye(len(CHANNELS))
    assert np.abs(correlation).max() < 5 / math.sqrt(n)


def test_quantum_rounds_to_the_nearest_multiple():
    true = np.linspace(-0.01, 0.01, 997)
    values = readings(bank_of(quantum=1e-4), true)[0][:, 0]
    np.testing.assert_allclose(values / 1e-4, np.rint(values / 1e-4), atol=1e-9)
    assert np.abs(values - true).max() <= 0.5e-4 * (1 + 1e-9)
    assert len(set(values)) == 201


def test_bias_and_gain_error_come_before_the_quantum():
    true = np.linspace(0.1, 0.5, 50)
    values = readings(bank_of(bias=3e-3, gain_error=-0.02), true)[0][:, 0]
    np.testing.assert_allclose(values, 0.98 * true + 3e-3, rtol=1e-15)
    rounded = readings(bank_of(bias=3e-3, gain_error=-0.02, quantum=0.01), true)[0][:, 0]
    np.testing.assert_allclose(rounded, np.rint(values / 0.01) * 0.01, rtol=1e-15)


def test_only_channels_with_a_quantum_are_rounded():
    settings_ = SensorSettings({'lift.position': Sensor(quantum=0.5), 'tilt.position': Sensor(noise=0.1)})
    values = SensorBank(('lift.position', 'tilt.position', 'lift.effort'), settings_, PERIOD, 0).sample(0, [0.7] * 3)[0]
    assert values[0] == 0.5
    assert values[1] not in (0.7, 0.5, 1.0)
    assert values[2] == 0.7


@pytest.mark.parametrize('delay', [0.0, 1.0, 2.0, 5.0, 0.25, 2.4, 999.9])
def test_a_delayed_value_is_that_of_its_stamp(delay):
    n = 60 if delay < 900 else 1500
    steps = np.arange(n)
    values, stamps, fresh = readings(bank_of(delay=delay * PERIOD), wave(steps))
    np.testing.assert_allclose(stamps[:, 0], steps - delay, atol=1e-9)
    assert fresh.all()
    late = steps - delay
    whole = np.floor(late)
    between = wave(whole) + (late - whole) * (wave(whole + 1) - wave(whole))
    np.testing.assert_allclose(values[late >= 0, 0], between[late >= 0], atol=1e-9)
    assert np.abs(values[late >= 0, 0] - wave(late[late >= 0])).max() < BEND
    np.testing.assert_array_equal(values[late <= 0, 0], wave(0), err_msg='it stood still before')


def test_whole_steps_of_delay_give_the_truth_to_the_last_bit():
    values = readings(bank_of(delay=0.002), wave(np.arange(40)))[0][:, 0]
    np.testing.assert_array_equal(values[2:], wave(np.arange(38)))


def test_a_rate_below_that_of_the_steps_holds_values():
    n = 100
    values, stamps, fresh = readings(bank_of(rate=200.0), wave(np.arange(n)))
    np.testing.assert_array_equal(fresh[:, 0], np.arange(n) % 5 == 0)
    np.testing.assert_array_equal(stamps[:, 0], np.arange(n) // 5 * 5)
    np.testing.assert_array_equal(values[:, 0], wave(np.arange(n) // 5 * 5))


@pytest.mark.parametrize('rate', [300.0, 700.0, 144.0, 999.0])
@pytest.mark.parametrize('delay', [0.0, 0.0025])
def test_any_rate_is_kept_in_the_mean_and_in_its_instants(rate, delay):
    n, interval = 3000, 1.0 / (rate * PERIOD)
    values, stamps, fresh = readings(bank_of(rate=rate, delay=delay), wave(np.arange(n)))
    taken = stamps[fresh]
    multiples = taken / interval
    np.testing.assert_allclose(multiples, np.rint(multiples), atol=1e-6)
    np.testing.assert_array_equal(np.diff(np.rint(multiples)), 1, err_msg='one was left out, or came twice')
    age = np.flatnonzero(fresh[:, 0]) - taken
    assert age.min() >= delay / PERIOD - 1e-6
    assert age[1:].max() < delay / PERIOD + 1.0, 'the first is of before the start'
    known = stamps[:, 0] >= 0
    assert np.abs(values[known, 0] - wave(stamps[known, 0])).max() < BEND


@pytest.mark.parametrize('period', [1e-3, 2e-3, 5e-4, 1.0 / 3000.0])
def test_rounding_of_a_rate_does_not_shift_its_samples(period):
    intervals = np.arange(2, 60)
    names = tuple(f'joint_{k}.position' for k in intervals)
    rates = SensorSettings({name: Sensor(rate=1.0 / (k * period)) for name, k in zip(names, intervals)})
    bank = SensorBank(names, rates, period, 0)
    for step in range(400):
        values, stamps, fresh = bank.sample(step, np.full(len(names), 10.0 * step))
        np.testing.assert_array_equal(fresh, step % intervals == 0)
        assert (stamps <= step).all()
        np.testing.assert_allclose(stamps, step // intervals * intervals, atol=1e-9)
        np.testing.assert_allclose(values, 10.0 * stamps, atol=1e-6)


def test_a_rate_above_that_of_the_steps_is_each_step():
    values, stamps, fresh = readings(bank_of(rate=1e4), wave(np.arange(20)))
    np.testing.assert_array_equal(values[:, 0], wave(np.arange(20)))
    assert fresh.all()


def test_the_noise_of_a_held_value_is_held():
    values, _, fresh = readings(bank_of(rate=100.0, noise=1.0), np.zeros(100))
    assert len(set(values[:, 0])) == fresh.sum() == 10


def test_steps_that_were_left_out_lie_on_a_straight_line():
    bank = bank_of(delay=0.003)
    bank.sample(0, [1.0])
    values, stamps, _ = bank.sample(10, [2.0])
    assert stamps[0] == 7.0
    np.testing.assert_allclose(values[0], 1.7, rtol=1e-14)
    assert bank.sample(12, [2.0])[0][0] == pytest.approx(1.9, rel=1e-14)
    assert bank.sample(10**6, [5.0])[0][0] == pytest.approx(5.0, abs=1e-4)


def test_after_a_long_gap_a_slow_channel_says_truly_when_its_value_was_taken():
    bank = bank_of(rate=0.1)
    bank.sample(0, [0.0])
    values, stamps, fresh = bank.sample(19_999, [19_999.0])
    assert fresh[0]
    np.testing.assert_allclose(values, stamps, rtol=1e-12)
    assert stamps[0] == 19_999 - 1000, 'as far back as it remembers'
    values, stamps, fresh = bank.sample(20_001, [20_001.0])
    assert fresh[0]
    assert stamps[0] == 20_000.0 == values[0]
    assert not bank.sample(29_999, [29_999.0])[2][0]
    values, stamps, fresh = bank.sample(30_000, [30_000.0])
    assert stamps[0] == 30_000.0 == values[0]


def test_the_same_step_again_has_nothing_new():
    bank = bank_of(noise=1.0)
    first = bank.sample(4, [0.0])[0].copy()
    values, stamps, fresh = bank.sample(4, [9.0])
    assert not fresh.any()
    assert (values, stamps) == (first, 4)
    assert bank.sample(5, [0.0])[2].all()


SETTINGS = SensorSettings({
    'lift.position': Sensor(noise=2e-5, quantum=1e-6, delay=0.0017), 'lift.velocity': Sensor(noise=1e-3, rate=333.0),
    'lift.effort': Sensor(noise=300.0, bias=5.0), 'lift.pressure_a': Sensor(noise=5e4, quantum=6e3, gain_error=0.01),
    'tilt.position': Sensor(noise=2e-5)})


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    true = np.random.default_rng(2).normal(size=(300, len(CHANNELS)))
    first = readings(SensorBank(CHANNELS, SETTINGS, PERIOD, 8), true)
    again = readings(SensorBank(CHANNELS, SETTINGS, PERIOD, 8), true)
    other = readings(SensorBank(CHANNELS, SETTINGS, PERIOD, 9), true)
    for a, b in zip(first, again):
        np.testing.assert_array_equal(a, b)
    noisy = [i for i, name in enumerate(CHANNELS) if name in SETTINGS.sensors]
    assert (first[0] != other[0])[:, noisy].any(axis=0).all()


@pytest.mark.parametrize('steps', [1, 63, 64, 200])
def test_a_reset_goes_back_to_the_very_same_sequence(steps):
    true = np.random.default_rng(2).normal(size=(steps, len(CHANNELS)))
    bank = SensorBank(CHANNELS, SETTINGS, PERIOD, 8)
    bank.set_fault('tilt.position', 'spike', [1.0, 200.0])
    bank.set_fault('lift.effort', 'drift', 100.0)
    first = readings(bank, true)
    bank.reset()
    for a, b in zip(first, readings(bank, true)):
        np.testing.assert_array_equal(a, b)


def test_more_channels_in_another_order_change_no_noise():
    true = np.zeros((200, len(CHANNELS)))
    all_ = readings(SensorBank(CHANNELS, SETTINGS, PERIOD, 8), true)[0]
    fewer = tuple(reversed(CHANNELS[1::2]))
    some = readings(SensorBank(fewer, SETTINGS, PERIOD, 8), true[:, :len(fewer)])[0]
    for column, name in enumerate(fewer):
        np.testing.assert_array_equal(some[:, column], all_[:, CHANNELS.index(name)])


def test_a_fault_of_one_channel_changes_no_other():
    true = np.random.default_rng(2).normal(size=(200, len(CHANNELS)))
    healthy = readings(SensorBank(CHANNELS, SETTINGS, PERIOD, 8), true)[0]
    bank = SensorBank(CHANNELS, SETTINGS, PERIOD, 8)
    for kind, value in (('spike', [1.0, 300.0]), ('noise', 3.0), ('delay', 0.01), ('bias', 2.0), ('nan', None)):
        bank.set_fault('lift.effort', kind, value)
    faulty = readings(bank, true)[0]
    others = [i for i, name in enumerate(CHANNELS) if name != 'lift.effort']
    np.testing.assert_array_equal(faulty[:, others], healthy[:, others])
    assert np.isnan(faulty[:, CHANNELS.index('lift.effort')]).all()


def test_memory_stays_what_it_is():
    bank = SensorBank(CHANNELS, SETTINGS, PERIOD, 0)
    bank.set_fault('tilt.position', 'spike', [1.0, 200.0])
    true = np.zeros(len(CHANNELS))
    for step in range(2000):
        bank.sample(step, true)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for step in (*range(2000, 4000), *range(4000, 1_000_000, 500)):
            bank.sample(step, true)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 4096


@pytest.mark.jit
def test_a_sample_of_twenty_channels_is_cheap():
    channels = tuple(f'joint_{i}.{kind}' for i in range(10) for kind in ('position', 'pressure_a'))
    settings_ = read_sensors('default:\n  position: {quantum: 1e-4, noise: 2e-5, delay: 0.0021}\n'
                             '  pressure: {quantum: 6e3, noise: 5e4}\n', channels)
    bank, true = SensorBank(channels, settings_, PERIOD, 0), np.zeros(20)
    best, unit, step = math.inf, math.inf, 0
    for _ in range(40):
        start = time.thread_time()
        for _ in range(256):
            bank.sample(step, true)
            step += 1
        middle = time.thread_time()
        for _ in range(256):
            np.multiply(true, true, out=true)
        best, unit = min(best, middle - start), min(unit, time.thread_time() - middle)
    # about 30, 10 us, where nothing else runs; one by one the channels would take hundreds
    assert best < 100 * unit


def test_bad_banks_are_refused():
    with pytest.raises(DuplicateNameError, match="sensors: channel 'a.position' is there twice"):
        SensorBank(['a.position', 'a.position'], None, PERIOD, 0)
    for period in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ModelError, match='sensors: period is .*; expected seconds above 0'):
            SensorBank(ONE, None, period, 0)
    for seed in (-1, 2**63, 1.5, None, True, 'x', math.nan):
        with pytest.raises(ModelError, match='seed is .*; expected a whole number from 0 to'):
            SensorBank(ONE, None, PERIOD, seed)


def test_bad_samples_are_refused_and_leave_the_bank_as_it_was():
    bank = bank_of(delay=0.001)
    bank.sample(5, [1.0])
    with pytest.raises(ShapeError, match=r'sensors: true values have shape \(2,\); expected \(1,\)'):
        bank.sample(6, [1.0, 2.0])
    with pytest.raises(StateError, match='sensors: step 4 after step 5; expected a later one, or a reset before'):
        bank.sample(4, [1.0])
    assert bank.sample(6, [2.0])[0][0] == 1.0
    bank.reset()
    assert bank.sample(0, [3.0])[0][0] == 3.0
