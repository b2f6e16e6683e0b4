"""The study that judges the controller on the second plant, and measurements that tests spoil there."""

import numpy as np
import pytest
from support.control.spoilt_measurements import drifting_state, ever, once, one_pressure

from psdyn_ros.control import Measurement
from psdyn_ros.tools.studies import judgement


def measured():
    return Measurement(np.zeros(4), np.zeros(4), np.full((3, 2), 5e6), 19e6)


def test_a_fault_of_one_reading_is_there_once():
    change = once('pressures', 1.0, one_pressure(-2.5e7, 1, 0))
    before, fault, after = (change(time, measured()).pressures for time in (0.9, 1.0, 1.1))
    assert (before == 5e6).all() and (after == 5e6).all()
    assert fault[1, 0] == -2.5e7 and (np.delete(fault.ravel(), 2) == 5e6).all()


def test_a_lasting_fault_leaves_the_measurement_of_the_plant_alone():
    change, reading = ever('supply', 1.0, lambda value, *_: 0.0), measured()
    assert change(0.9, reading).supply == 19e6
    assert change(1.0, reading).supply == change(5.0, reading).supply == 0.0
    drift = drifting_state(0.04, 1.0)(3.0, reading)
    assert drift.x[1] == pytest.approx(0.08) and drift.xd[1] == 0.04
    assert (reading.x == 0.0).all() and (reading.xd == 0.0).all()


def test_velocities_and_accelerations_of_the_multi_sine_are_its_derivatives():
    step = 1e-5
    for t in (0.4, 1.9, 7.0, 18.5, 19.6):
        before, (x, xd, xdd), after = (judgement.multi_sine(time) for time in (t - step, t, t + step))
        assert np.abs((after[0] - before[0]) / (2 * step) - xd).max() < 1e-6
        assert np.abs((after[1] - before[1]) / (2 * step) - xdd).max() < 1e-6
    for t in (0.0, judgement.SECONDS):
        assert np.abs(np.array(judgement.multi_sine(t)) - [judgement.START, np.zeros(4), np.zeros(4)]).max() < 1e-12


@pytest.mark.long
def test_a_row_has_the_errors_of_a_trajectory_that_nothing_stopped(capsys):
    judgement.main(['valve_computed_torque, point to point in 4 s'])
    row, = (line for line in capsys.readouterr().out.splitlines() if 'in 4 s' in line)
    assert row.endswith('no stop') and max(float(pair.split('/')[0]) for pair in row.split() if '/' in pair) < 1.0
