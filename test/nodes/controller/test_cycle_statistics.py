"""Histograms of durations, and what they say of cycles: nothing is left out because it came late."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psdyn_ros.nodes.controller.cycle_statistics import (
    BITS,
    BUCKETS,
    EDGES,
    PENDING,
    QUANTITIES,
    STATISTICS,
    CycleRecords,
    Histogram,
    bucket_of,
)

MS = 1_000_000


@given(st.lists(st.integers(0, (1 << BITS) - 1), min_size=1, max_size=50))
def test_a_duration_is_in_the_bucket_that_holds_it_and_buckets_are_narrow(durations):
    ns = np.array(durations)
    bucket = bucket_of(ns)
    low, high = EDGES[bucket], EDGES[bucket + 1]
    assert (low <= ns).all() and (ns < high).all()
    assert (high - low <= np.maximum(low / 64, 1)).all()


def test_buckets_leave_no_gap_and_the_last_one_takes_all_that_is_longer():
    assert EDGES[0] == 0 and EDGES[-1] == 1 << BITS and (np.diff(EDGES) > 0).all() and EDGES.size == BUCKETS + 1
    assert bucket_of(np.array([1 << 50])).tolist() == [BUCKETS - 1]


def test_percentiles_are_those_of_all_durations_and_never_less(rng):
    ns = (rng.lognormal(11.0, 1.5, 50_000)).astype(np.int64)
    histogram = Histogram()
    for part in np.array_split(ns, 7):
        histogram.add(part)
    which = (0.0, 1.0, 50.0, 99.0, 99.9, 99.99, 100.0)
    exact = np.percentile(ns, which, method='inverted_cdf') * 1e-9
    found = histogram.percentiles(*which)
    assert (found >= exact - 1e-15).all() and (found <= exact * (1.0 + 1 / 64) + 1e-9).all()
    assert histogram.summary() == (*histogram.percentiles(50.0, 99.0, 99.9, 99.99), ns.max() * 1e-9)
    assert histogram.count == ns.size


def test_an_empty_histogram_and_durations_below_zero():
    histogram = Histogram()
    assert histogram.percentiles(50.0, 99.0).tolist() == [0.0, 0.0] and histogram.count == 0
    histogram.add(np.array([], dtype=np.int64))
    histogram.add(np.array([-5]))
    assert histogram.count == 1 and histogram.summary() == (0.0,) * 5


@given(st.integers(0, 10**9), st.integers(1, 10**7), st.integers(1, 400))
def test_a_ramp_is_the_sum_of_its_terms(first, step, count):
    ramp, terms = Histogram(), Histogram()
    ramp.add_ramp(first, step, count)
    terms.add(first - step * np.arange(count))
    assert (ramp.counts == terms.counts).all() and ramp.greatest == terms.greatest


def test_histograms_come_back_from_json_and_merge(rng):
    ns = rng.integers(0, 10**7, 1000)
    one, both = Histogram(), Histogram()
    one.add(ns[:500])
    both.add(ns)
    back = Histogram.from_dict(json.loads(json.dumps(one.as_dict())))
    other = Histogram()
    other.add(ns[500:])
    back.merge(other)
    assert (back.counts == both.counts).all() and back.greatest == both.greatest


def test_statistics_have_the_five_columns_first_that_others_read():
    assert STATISTICS[:5] == ('cycles', 'missed', 'p50', 'p99', 'p99.9')
    records = CycleRecords(2 * MS)
    assert records.statistics() == (0.0,) * len(STATISTICS)
    for k in range(1000):
        records.add(100_000 + k, lateness=20_000, age=300_000, publishing=30_000, computation=50_000)
    told = dict(zip(STATISTICS, records.statistics(), strict=True))
    assert told['cycles'] == 1000 and told['missed'] == told['overruns'] == 0
    assert told['p50'] == pytest.approx(100.5e-6, rel=0.02) and told['max'] == pytest.approx(100.999e-6)
    assert [told[f'{quantity}_max'] for quantity in QUANTITIES[1:]] == pytest.approx(
        [20e-6, 300e-6, 30e-6, 50e-6])


def test_what_was_not_measured_is_in_no_histogram():
    records = CycleRecords(2 * MS)
    for k in range(PENDING + 10):
        records.add(100_000, age=k)
    records.fold()
    counts = {name: histogram.count for name, histogram in records.histograms.items()}
    assert counts == {name: PENDING + 10 if name in ('execution', 'age') else 0 for name in QUANTITIES}
    assert records.histograms['age'].greatest == PENDING + 9


def test_a_stall_of_ten_slots_is_ten_late_slots():
    """No coordinated omission: 990 punctual cycles and one stall of 10 slots are 1 % of late slots, not 1 in 991."""
    records = CycleRecords(MS)
    for _ in range(990):
        records.add(1000, lateness=10_000)
    records.add(1000, lateness=10 * MS + 500_000, missed=10)
    assert (records.cycles, records.missed, records.stalls, records.longest_missed) == (991, 10, 1, 10)
    records.fold()
    lateness = records.histograms['lateness']
    assert lateness.count == 1001
    assert lateness.percentiles(98.0)[0] < 12e-6
    # one slot late by each of 0.5, 1.5, ... 10.5 ms
    beyond = [int(lateness.counts[EDGES[:-1] >= ms * MS].sum()) for ms in range(12)]
    assert beyond == [0 if ms == 11 else 11 - ms if ms else 1001 for ms in range(12)]


def test_overruns_end_after_the_next_cycle_is_due():
    records = CycleRecords(MS)
    records.add(900_000, lateness=50_000)
    assert records.overruns == 0
    records.add(900_000, lateness=150_000)
    records.add(1_100_000)
    records.add(1000, lateness=MS + 10, missed=1)
    records.add(900_000, total=MS + 1)
    assert records.overruns == 4


def test_records_come_back_from_json_and_merge():
    one, other, both = (CycleRecords(MS) for _ in range(3))
    for records in (one, both):
        records.add(1000, lateness=3 * MS + 5, missed=3, age=7)
    for records in (other, both):
        records.add(2000, lateness=MS + 5, missed=1, age=8)
    merged = CycleRecords(MS)
    for records in (one, other):
        merged.merge(json.loads(json.dumps(records.as_dict())))
    assert merged.as_dict() == both.as_dict()
    assert (merged.longest_missed, merged.stalls, merged.missed) == (3, 2, 4)
