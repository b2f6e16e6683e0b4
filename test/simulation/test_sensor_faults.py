"""Faults of single channels of sensors, and every way to ask for them wrongly."""

import math
import re

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sensor_readings import ONE, PERIOD, bank_of, readings, wave

from psdyn_ros.model.errors import ModelError, UnknownNameError


def with_fault(kind, value=None, start=10, end=20, n=40, true=None, **sensor):
    """Readings of a channel that has a fault from one step up to another."""
    bank = bank_of(**sensor)
    rows = []
    for step, row in enumerate(wave(np.arange(n)) if true is None else true):
        if step == start:
            bank.set_fault(ONE[0], kind, value)
        if step == end:
            bank.clear_fault(ONE[0], kind)
        rows.append([array[0] for array in bank.sample(step, [row])])
    return tuple(np.array(column) for column in zip(*rows))


TRUTH, DURING = wave(np.arange(40)), slice(10, 20)
OUTSIDE = np.r_[0:10, 20:40]


def test_dropout_holds_value_and_stamp_and_is_not_fresh():
    values, stamps, fresh = with_fault('dropout')
    assert not fresh[DURING].any()
    assert fresh[OUTSIDE].all()
    np.testing.assert_array_equal(values[DURING], TRUTH[9])
    np.testing.assert_array_equal(stamps[DURING], 9)
    np.testing.assert_array_equal(values[OUTSIDE], TRUTH[OUTSIDE])
    np.testing.assert_array_equal(stamps[OUTSIDE], OUTSIDE)


def test_what_drops_out_before_it_ever_measured_has_no_value():
    values, stamps, fresh = with_fault('dropout', start=0)
    assert np.isnan(values[:20]).all()
    assert (stamps[:20] == -np.inf).all()
    assert not fresh[:20].any()
    np.testing.assert_array_equal(values[20:], TRUTH[20:])


def test_samples_of_a_slow_channel_are_lost_while_it_drops_out():
    _, stamps, fresh = with_fault('dropout', rate=200.0, start=13, end=17)
    assert np.flatnonzero(fresh).tolist() == [0, 5, 10, 20, 25, 30, 35]
    assert stamps[19] == 10


def test_freeze_keeps_the_value_and_looks_alive():
    values, stamps, fresh = with_fault('freeze')
    np.testing.assert_array_equal(values[DURING], TRUTH[9])
    np.testing.assert_array_equal(values[OUTSIDE], TRUTH[OUTSIDE])
    np.testing.assert_array_equal(stamps, np.arange(40))
    assert fresh.all()
    values = with_fault('freeze', start=0)[0]
    np.testing.assert_array_equal(values[:20], TRUTH[0])


def test_nan_is_no_number_as_long_as_it_lasts():
    values, stamps, fresh = with_fault('nan')
    assert np.isnan(values[DURING]).all()
    np.testing.assert_array_equal(values[OUTSIDE], TRUTH[OUTSIDE])
    assert fresh.all()
    np.testing.assert_array_equal(stamps, np.arange(40))


@pytest.mark.parametrize('kind, value, expected', [
    ('bias', 0.02, TRUTH + 0.02), ('gain', -0.5, -0.5 * TRUTH),
    ('drift', 3.0, TRUTH + 3.0 * PERIOD * np.arange(-9, 31)),
])
def test_what_is_added_or_scaled(kind, value, expected):
    values = with_fault(kind, value)[0]
    np.testing.assert_allclose(values[DURING], expected[DURING], rtol=1e-13)
    np.testing.assert_array_equal(values[OUTSIDE], TRUTH[OUTSIDE])


def test_a_drift_begins_at_zero_each_time_and_its_slope_may_change():
    bank = bank_of()
    bank.set_fault(ONE[0], 'drift', 2.0)
    readings(bank, np.zeros(100))
    bank.set_fault(ONE[0], 'drift', -1.0)
    np.testing.assert_allclose(readings(bank, np.zeros(50), 100)[0][-1, 0], 0.2 - 0.05, rtol=1e-12)
    bank.clear_fault(ONE[0], 'drift')
    bank.set_fault(ONE[0], 'drift', 2.0)
    np.testing.assert_allclose(bank.sample(150, [0.0])[0], 2e-3, rtol=1e-12)


def test_a_growing_delay_stops_the_flow_and_a_shrinking_one_makes_it_jump():
    values, stamps, fresh = with_fault('delay', 0.004)
    assert np.flatnonzero(~fresh).tolist() == [10, 11, 12, 13]
    np.testing.assert_array_equal(stamps[10:14], 9)
    np.testing.assert_array_equal(stamps[14:20], np.arange(10, 16))
    np.testing.assert_array_equal(stamps[20:], np.arange(20, 40))
    np.testing.assert_array_equal(values, TRUTH[stamps.astype(int)])
    assert (np.diff(stamps) >= 0).all(), 'values never come out of order'


def test_a_slow_channel_goes_on_as_soon_as_its_delay_ends():
    _, stamps, fresh = with_fault('delay', 0.03, start=0, end=60, n=120, true=wave(np.arange(120)), rate=20.0)
    assert np.flatnonzero(fresh).tolist() == [0, 30, 60, 100]
    assert stamps[[0, 30, 60, 100]].tolist() == [-50, 0, 50, 100]


def test_more_noise_adds_in_squares():
    n = 20_000
    values = with_fault('noise', 4.0, start=0, end=n, n=n, true=np.zeros(n), noise=3.0)[0]
    assert abs(values.var() / 25.0 - 1.0) < 5 * math.sqrt(2 / n)


@pytest.mark.parametrize('sensor', [{}, {'rate': 100.0}])
def test_spikes_come_as_often_and_as_large_as_asked_for_both_ways(sensor):
    n, rate = 40_000, 20.0
    values, _, fresh = with_fault('spike', [0.5, rate], start=0, end=n, n=n, true=np.zeros(n), **sensor)
    values = values[fresh]
    probability = 1.0 - math.exp(-rate * n * PERIOD / len(values))
    spikes = values[values != 0.0]
    spread = math.sqrt(len(values) * probability)
    assert set(np.abs(spikes)) == {0.5}
    assert abs(len(spikes) - len(values) * probability) < 5 * spread
    assert abs((spikes > 0).sum() - 0.5 * len(spikes)) < 5 * 0.5 * math.sqrt(len(spikes))


def test_faults_of_all_kinds_add_up_and_end_alone():
    bank = bank_of()
    for kind, value in (('bias', 1.0), ('gain', 2.0), ('freeze', None)):
        bank.set_fault(ONE[0], kind, value)
    assert set(bank.faults) == {(ONE[0], 'bias'), (ONE[0], 'gain'), (ONE[0], 'freeze')}
    assert bank.sample(0, [3.0])[0][0] == 7.0
    assert bank.sample(1, [5.0])[0][0] == 7.0
    bank.clear_fault(ONE[0], 'freeze')
    assert bank.sample(2, [5.0])[0][0] == 11.0
    bank.clear_faults()
    assert bank.sample(3, [5.0])[0][0] == 5.0
    bank.clear_fault(ONE[0], 'bias')
    assert bank.faults == {}


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.sampled_from(['dropout', 'freeze', 'nan', 'bias', 'drift', 'gain', 'noise', 'delay',
                                           'spike']), st.integers(0, 39), st.integers(0, 39)), max_size=8),
       st.sampled_from([{}, {'delay': 0.0023}, {'rate': 300.0}, {'rate': 120.0, 'delay': 0.001, 'noise': 1e-4}]))
def test_whatever_happens_stamps_never_go_back_and_readings_end_up_healthy(faults, sensor):
    value = {'bias': 1.0, 'drift': 1.0, 'gain': 2.0, 'noise': 1.0, 'delay': 0.0043, 'spike': [1.0, 100.0]}
    bank, healthy = bank_of(**sensor), bank_of(**sensor)
    last = -math.inf
    for step in range(60):
        for kind, start, end in faults:
            if step == start:
                bank.set_fault(ONE[0], kind, value.get(kind))
            if step == max(start, end) + 1:
                bank.clear_fault(ONE[0], kind)
        (reading,), (stamp,), (fresh,) = (array.copy() for array in bank.sample(step, [wave(step)]))
        (sound,), (stamp_sound,), (fresh_sound,) = healthy.sample(step, [wave(step)])
        assert stamp > last if fresh else stamp == last
        assert stamp <= step
        last = stamp
    assert (reading, stamp, fresh) == (sound, stamp_sound, fresh_sound)


@pytest.mark.parametrize('channel, kind, value, error, message', [
    ('lift.positon', 'nan', None, UnknownNameError,
     "fault: 'nan' of 'lift.positon': no such channel of a sensor; did you mean 'lift.position'?"),
    ('lift.position', 'frezee', None, ModelError, "there is no kind of fault 'frezee'; did you mean 'freeze'?"),
    ('lift.position', 'spool_stuck', None, UnknownNameError, "'spool_stuck' of 'lift.position': no such cylinder"),
    ('lift.position', 'bias', None, ModelError, "'value' of 'bias' is None; expected bias (unit of the channel)"),
    ('lift.position', 'bias', math.nan, ModelError, "'value' of 'bias': 'bias' is nan; expected a finite number"),
    ('lift.position', 'delay', 2.0, ModelError, "'value' of 'delay': 'delay' is 2; expected 0 to 1"),
    ('lift.position', 'spike', [1, 2, 3], ModelError, "'value' of 'spike' is [1, 2, 3]; expected amplitude"),
    ('lift.position', 'freeze', 1.0, ModelError, "'value' of 'freeze' is 1.0; expected none"),
])
def test_bad_faults_are_refused(channel, kind, value, error, message):
    bank = bank_of()
    with pytest.raises(error, match=re.escape(message)):
        bank.set_fault(channel, kind, value)
    assert bank.faults == {}
