"""Ramps with bounded rate and bend, and the path time that they make."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from psdyn_ros.control.reference.segments import PathTime, in_halves, ramp

SHARE = st.floats(0.0, 1.0)


def run(value, rate, phases):
    """Values, rates (N,) at the ends of fine steps through the phases, and where they end."""
    values, rates = [value], [rate]
    for duration, start, bend in phases:
        dt = np.linspace(0.0, duration, 50)
        values += list(value + dt * (start + 0.5 * dt * bend))
        rates += list(start + dt * bend)
        value, rate = values[-1], rates[-1]
    return np.array(values), np.array(rates)


@given(value=st.floats(-2, 2), rate=st.floats(-1, 1), target=st.floats(-2, 2), limit=st.floats(0.1, 3),
       bend=st.floats(0.5, 50))
def test_a_ramp_ends_at_its_target_at_rest_within_its_limits(value, rate, target, limit, bend):
    values, rates = run(value, rate, ramp(value, rate, target, limit, bend))
    assert values[-1] == pytest.approx(target, abs=1e-7)
    assert rates[-1] == pytest.approx(0.0, abs=1e-6)
    assert np.abs(rates).max() <= max(limit, abs(rate)) + 1e-9
    phases = ramp(value, rate, target, limit, bend)
    assert len(phases) <= 3 and all(abs(phase.bend) <= bend for phase in phases)
    if phases:
        assert phases[0].rate == pytest.approx(rate, abs=1e-6)         # no jump of the rate


def test_a_ramp_of_nothing_is_empty():
    assert ramp(1.0, 0.0, 1.0, 1.0, 1.0) == []


def test_a_ramp_takes_no_longer_than_a_trapezium():
    durations = [phase.duration for phase in ramp(0.0, 0.0, 1.0, 2.0, 20.0)]
    assert durations == pytest.approx([0.1, 0.4, 0.1])


@given(value=st.floats(-2, 2), target=st.floats(-2, 2), limit=st.floats(0.1, 3), bend=st.floats(0.5, 50),
       delay=st.floats(0.01, 2.0))
def test_halves_of_a_ramp_make_the_same_change_no_faster(value, target, limit, bend, delay):
    phases = ramp(value, 0.0, target, limit, bend)
    values, rates = run(value, 0.0, in_halves(phases, delay))
    assert values[-1] == pytest.approx(target, abs=1e-6) and rates[-1] == pytest.approx(0.0, abs=1e-6)
    assert np.abs(rates).max() <= limit + 1e-6
    assert sum(phase.duration for phase in in_halves(phases, delay)) == pytest.approx(
        sum(phase.duration for phase in phases) + delay)


def test_halves_half_a_period_apart_excite_no_swing():
    """An undamped oscillator that hangs on an axis which is brought to rest."""
    def swing(phases, period=0.63, dt=1e-4):
        off = rate = 0.0
        for duration, begin, bend in phases:
            for k in range(round(duration / dt)):
                rate -= dt * ((2.0 * np.pi / period)**2 * off + begin + k * dt * bend)
                off += dt * rate
        return np.hypot(rate, 2.0 * np.pi / period * off)
    phases = ramp(0.05, 0.0, 0.0, 0.5, 10.0)
    assert swing(phases) > 0.04 and swing(in_halves(phases, 0.315)) < 0.001


def test_path_time_runs_with_the_clock_at_first():
    pace = PathTime()
    for t in (-3.0, 0.0, 12.5, 1e9):
        assert pace.at(t) == (t, 1.0, 0.0)
        assert pace.when(t) == t


@given(st.lists(st.tuples(SHARE, st.floats(0.0, 0.7)), max_size=6))
def test_speed_stays_in_its_range_and_never_jumps_however_often_it_is_aimed_anew(aims):
    pace, t, rate, bend = PathTime(), 0.0, 4.0, 40.0
    for speed, wait in aims:
        before = pace.at(t)
        pace.aim(speed, t, rate, bend)
        assert pace.at(t) == pytest.approx(before, abs=1e-9)
        times = np.linspace(t, t + wait, 40)
        path, speeds, rates = np.array([pace.at(s) for s in times]).T
        assert (speeds >= -1e-9).all() and (speeds <= 1.0 + 1e-9).all()
        assert (np.abs(rates) <= rate + 1e-9).all()
        assert (np.diff(path) >= -1e-12).all()
        t += wait
    assert pace.at(t + 5.0)[1] == pytest.approx(aims[-1][0] if aims else 1.0)


def test_rates_are_those_of_what_they_belong_to():
    pace = PathTime()
    pace.aim(0.3, 1.0, 2.0, 10.0)
    pace.aim(0.9, 1.2, 2.0, 10.0)
    h = 1e-6
    for t in np.linspace(1.21, 2.0, 37):
        before, here, after = (pace.at(s) for s in (t - h, t, t + h))
        assert (after[0] - before[0]) / (2 * h) == pytest.approx(here[1], abs=1e-8)
        assert (after[1] - before[1]) / (2 * h) == pytest.approx(here[2], abs=1e-4)


@given(speed=st.just(0.0) | st.floats(1e-3, 1.0), path=st.floats(0.0, 5.0))
def test_when_is_the_inverse_of_at(speed, path):
    pace = PathTime()
    pace.aim(speed, 1.0, 3.0, 30.0)
    t = pace.when(path)
    if np.isfinite(t):
        assert pace.at(t)[0] == pytest.approx(path, abs=1e-9)
    else:
        assert speed == 0.0 and pace.at(100.0)[0] < path


def test_before_a_ramp_the_speed_was_its_first():
    pace = PathTime()
    pace.aim(0.0, 2.0, 1.0, 10.0)
    assert pace.at(1.5) == (1.5, 1.0, 0.0)
    assert pace.when(1.5) == 1.5


def test_a_restart_takes_its_speed_at_once_and_a_copy_goes_on_alone():
    pace = PathTime()
    pace.aim(0.5, 0.0, 1.0, 10.0)
    other = pace.copy()
    path = pace.at(0.2)[0]
    pace.restart(0.25, 0.2)
    assert pace.at(0.2) == (path, 0.25, 0.0) and pace.settled == 0.2
    assert other.target == 0.5 and other.settled > 0.2 and other.at(0.2)[1] > 0.8
