"""A controller of the crane under a streamed multi-sine: errors, jerk and no stop, whatever the rate and the stamps."""

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.tools.studies.stream_study import AHEAD, LATE, NOMINAL, NOW, START, Case, main, motion, run

EXACT = 0.5e-3      # m rms, beyond the delay
TIMING = 1e-3       # m rms, of stamps that are off by a third of 20 ms
SPEED = 0.21        # m/s, largest of the motion
MEAN_SPEED = 0.07   # m/s rms


def of_age(rate):
    """m rms by which a motion goes on while the newest point gets old."""
    return 0.5 * MEAN_SPEED / rate


def test_the_motion_streamed_is_smooth_and_begins_at_rest():
    times = np.arange(0.0, 8.0, 1e-3)
    x, v, a = np.array([motion(t) for t in times]).swapaxes(0, 1)
    assert x[0] == pytest.approx(START) and not v[0].any() and not a[0].any()
    assert np.gradient(x, 1e-3, axis=0)[1:-1] == pytest.approx(v[1:-1], abs=1e-5)
    assert np.gradient(v, 1e-3, axis=0)[1:-1] == pytest.approx(a[1:-1], abs=1e-4)
    assert 0.15 < np.abs(v[:, 1:]).max() < SPEED + 0.01


@pytest.mark.parametrize('rate, stamps, rows, bound', thorough([
    (50.0, NOW, 1, EXACT), (50.0, AHEAD, 3, 1.9e-4), (200.0, LATE, 2, EXACT), (50.0, NOW, 3, EXACT),
    (500.0, NOW, 2, EXACT), (50.0, NOMINAL, 2, EXACT)], 2, several=True))
def test_points_with_jitter_and_losses_are_tracked(rate, stamps, rows, bound):
    found = run(Case(rate, stamps, rows, 6.0))
    assert found.stopped == np.inf and not found.refused, found.said
    assert found.rms < bound and found.jerk < 40.0


@pytest.mark.parametrize('rate, seconds', thorough(
    [(50.0, 5.0), (500.0, 5.0), (10.0, 20.0), (100.0, 20.0), (50.0, 60.0), (500.0, 60.0)], 2, several=True))
def test_the_second_plant_follows_points_stamped_now_without_a_stop(rate, seconds):
    found = run(Case(rate, seconds=seconds, timeout=0.2 if rate < 20.0 else 0.1, second=True))
    assert found.stopped == np.inf and not found.refused, found.said
    assert found.rms < EXACT + of_age(rate)


def test_a_declared_delay_of_one_period_delays_the_motion_by_it():
    found = run(Case(50.0, NOW, 3, 6.0, delay=0.02))
    assert found.stopped == np.inf and found.rms < 1.9e-4


@pytest.mark.long
@pytest.mark.parametrize('rate', [50.0, 100.0, 200.0, 500.0])
@pytest.mark.parametrize('rows', [1, 2, 3])
def test_points_at_every_rate_need_no_stop_and_are_tracked(rate, rows):
    for stamps, bound in ((NOW, EXACT), (AHEAD, EXACT if rows == 1 else 1.9e-4), (NOMINAL, EXACT + TIMING)):
        found = run(Case(rate, stamps, rows, 6.0))
        assert found.stopped == np.inf and not found.refused, found.said
        assert found.rms < bound, stamps


@pytest.mark.parametrize('seconds', thorough([17.5, 60.0], 1))
def test_positions_whose_stamps_are_off_open_no_valve_so_fast_that_the_machine_shakes(seconds):
    found = run(Case(200.0, NOMINAL, 1, seconds))
    assert found.stopped == np.inf and not found.refused, found.said
    assert found.rms < EXACT + 0.25 * TIMING


@pytest.mark.long
def test_the_study_prints_a_row_for_each_case(capsys):
    assert main(['--seconds', '0.4', '--rates', '100']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 5 and all(line.count('|') == 6 for line in lines)
