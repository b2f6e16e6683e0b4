"""Predictions of recorded motion, against the machine that moved, formulas, and plain slow twins."""

from dataclasses import replace
from math import exp, tanh

import numpy as np
import pytest
from support.bags.recorded_motion import PERIOD, block_of, crane, demonstration, exact_block, oil, swinging
from support.machines import URDF

import psdyn_ros
from psdyn_ros.kernels.hydraulics.friction import sliding_friction as one_friction
from psdyn_ros.kernels.hydraulics.records import AXIS
from psdyn_ros.validation.metrics.prediction import (
    FAST,
    NEAR_STOP,
    REVERSING,
    SLOW,
    STATIC,
    Predictor,
    reversals,
    slid,
    sliding_friction,
)
from psdyn_ros.validation.signals.filters import Butterworth, SavitzkyGolay, make_filter, merged_rates, through_gaps

COULOMB = 4000.0            # N of the seals of the crane
FILTERS = [SavitzkyGolay(PERIOD), SavitzkyGolay(PERIOD, 0.05, 3), Butterworth(PERIOD), Butterworth(PERIOD, 15.0, 2)]


def predict(block, machine, hydraulics=None):
    return Predictor(machine, hydraulics).predict(block)


def relative(errors, values):
    return np.sqrt(np.mean(errors ** 2, axis=0)) / np.ptp(values, axis=0)


# filters


@pytest.mark.parametrize('smooth', FILTERS, ids=lambda one: one.text())
def test_derivatives_are_not_late_and_what_is_slow_passes(smooth):
    t = PERIOD * np.arange(4000)
    w = 2.0 * np.pi * 0.5
    inner = slice(smooth.half, -smooth.half)
    for order, truth in enumerate((np.sin(w * t), w * np.cos(w * t), -w ** 2 * np.sin(w * t))):
        assert np.abs(smooth(np.sin(w * t), order) - truth)[inner].max() <= 2e-3 * w ** order


@pytest.mark.parametrize('order', range(3))
@pytest.mark.parametrize('smooth', FILTERS, ids=lambda one: one.text())
def test_the_cutoff_is_where_half_of_the_power_is_left(smooth, order):
    """Measured on a sine of that frequency."""
    t = PERIOD * np.arange(20000)
    w = 2.0 * np.pi * smooth.cutoff(order)
    out = smooth(np.sin(w * t), order)[5000:15000]
    assert np.std(out) / (w ** order * np.std(np.sin(w * t[5000:15000]))) == pytest.approx(0.5 ** 0.5, rel=0.02)


@pytest.mark.parametrize('smooth', [*FILTERS, SavitzkyGolay(0.005), SavitzkyGolay(PERIOD, 0.3, 5)],
                         ids=lambda one: one.text())
def test_derivatives_of_a_filter_are_those_of_its_values(smooth):
    """Else efforts that follow from accelerations seem to come earlier than those that were measured."""
    t = smooth.period * np.arange(4000)
    w = np.pi * smooth.cutoff()
    inner = slice(1000, 3000)
    values = smooth(np.sin(w * t))
    for order in (1, 2):
        # each derivative of a sine is a quarter of a period ahead
        derivative = smooth(np.sin(w * t - 0.5 * np.pi * order), order)
        np.testing.assert_allclose(derivative[inner], w ** order * values[inner], atol=2e-3 * w ** order)


def test_rates_of_positions_and_of_rates_have_less_noise_than_either():
    rng, t = np.random.default_rng(2), PERIOD * np.arange(10000)
    w, smooth = 2.0 * np.pi * 0.7, SavitzkyGolay(PERIOD, 0.3)
    x = np.sin(w * t)[:, None] + 3e-5 * rng.standard_normal((len(t), 1))
    xd = w * np.cos(w * t)[:, None] + 1.4e-3 * rng.standard_normal((len(t), 1))
    merged, inner = merged_rates(x, xd, PERIOD), slice(500, -500)
    exact = -w ** 2 * np.sin(w * t)[:, None]
    errors = [np.std((found - exact)[inner]) for found in (smooth(merged, 1), smooth(xd, 1), smooth(x, 2))]
    assert errors[0] < 0.95 * min(errors[1:])
    # rates that are late do not make it late, where positions know better
    late = np.roll(xd, 4, axis=0)
    assert np.abs(smooth(merged_rates(x, late, PERIOD) - merged, 0)[inner]).max() < 0.1 * np.abs(
        smooth(late - xd, 0)[inner]).max()


def test_the_cutoff_of_butterworths_filter_is_that_which_was_asked_for():
    assert Butterworth(PERIOD, 8.0).cutoff() == pytest.approx(8.0, rel=1e-3)
    assert f'{Butterworth(PERIOD, 8.0).cutoff():.3g} Hz' in Butterworth(PERIOD, 8.0).text()


def test_polynomials_of_its_degree_pass_a_savitzky_golay_filter():
    t = PERIOD * np.arange(400)
    smooth = SavitzkyGolay(PERIOD, 0.1, 4)
    assert smooth(t ** 4, 2) == pytest.approx(12.0 * t ** 2, abs=1e-8)


def test_gaps_stay_gaps_and_touch_nothing_else():
    values = np.random.default_rng(1).standard_normal((500, 2)).cumsum(axis=0)
    with_gap = values.copy()
    with_gap[200:210, 0] = np.nan
    smooth = SavitzkyGolay(PERIOD, 0.05)
    out = through_gaps(smooth, with_gap)
    assert np.isnan(out[200:210, 0]).all() and np.isfinite(out).sum() == out.size - 10
    assert np.array_equal(out[:, 1], smooth(values)[:, 1])
    assert np.array_equal(out[230:, 0], smooth(values)[230:, 0])


@pytest.mark.parametrize('name, options', [('savitzky', {}), ('butterworth', {'frequency': 300.0}),
                                           ('butterworth', {'order': 0}), ('savitzky_golay', {'window': -1.0})])
def test_filters_that_make_no_sense_are_refused(name, options):
    with pytest.raises(psdyn_ros.PsdynError, match='expected'):
        make_filter(name, PERIOD, **options)
    with pytest.raises(psdyn_ros.PsdynError, match='samples'):
        SavitzkyGolay(PERIOD)(np.zeros(20))


# predictions


def test_viscous_friction_is_filtered_as_often_as_the_velocity():
    """Filtered twice, it is damped, and a measured effort of little else seems to come late."""
    smooth_seals = replace(oil(), cylinders={name: replace(one, friction=replace(one.friction, coulomb=0.0))
                                             for name, one in oil().cylinders.items()})
    found = Predictor(crane(), smooth_seals).predict(exact_block(2.0))
    viscous = [0.0, *(one.friction.viscous for one in oil().cylinders.values())]
    np.testing.assert_allclose(found.friction[found.core], (viscous * found.v)[found.core], atol=1e-6)


@pytest.mark.parametrize('velocity', [True, False])
@pytest.mark.parametrize('hydraulics', [True, False])
def test_the_model_of_a_motion_that_follows_it_predicts_it(velocity, hydraulics):
    block = exact_block(6.0, recorded_velocity=velocity, hydraulics=hydraulics)
    found = Predictor(crane(), oil() if hydraulics else None).predict(block)
    core = found.core
    assert (relative((found.effort - found.effort_id)[core], found.effort[core]) <= 2e-3).all()
    rubbing = np.abs(found.friction[core]).max(axis=0)
    assert ((rubbing[1:] > 3900.0) if hydraulics else (rubbing < 1e-9)).all()


def test_accelerations_follow_from_measured_efforts_and_unknown_ones_are_those_that_are_needed():
    """Friction turns round faster than the filter lets through, so only between reversals."""
    block = exact_block(6.0)
    effort = block.effort.copy()
    effort[:, 0] = np.nan
    for one in (block, replace(block, effort=effort)):
        found = predict(one, crane(), oil())
        fast = (found.regime == FAST).all(axis=1)
        fast[:found.core.start] = fast[found.core.stop:] = False
        assert fast.sum() > 200
        assert np.abs(found.xdd_fd - found.xdd)[fast].max() <= 0.01
    assert np.isnan(found.effort[:, 0]).all() and np.isfinite(found.effort[:, 1:]).all()
    nothing = predict(replace(block, effort=np.full_like(effort, np.nan)), crane(), oil())
    assert np.isnan(nothing.xdd_fd).all() and np.isfinite(nothing.effort_id).all()


def test_an_exact_model_and_exact_sensors_agree_within_one_percent():
    block = demonstration()
    for one in (block, replace(block, xd=None)):
        found = predict(one, crane(), oil())
        assert (relative((found.effort - found.effort_id)[found.core], found.effort[found.core])[1:] <= 0.01).all()


def test_blocks_that_are_too_short_are_counted_and_ends_of_a_record_do_not_count():
    predictor = Predictor(crane(), oil())
    block = exact_block(1.0)
    found = predictor.predict(block)
    half = predictor.filter.half
    assert (found.core.start, found.core.stop) == (half, 500 - half) and predictor.skipped == 0
    assert predictor.predict(replace(block, core=slice(200, 300))).core == slice(200, 300)
    short = block_of(*(part[:2 * half] for part in (block.t, block.x, block.xd, block.effort)))
    assert predictor.predict(short) is None and predictor.skipped == 2 * half


def test_what_the_machine_cannot_reach_is_left_out_and_counted():
    block = exact_block(1.0)
    predictor = Predictor(crane(), oil())
    assert predictor.predict(replace(block, x=block.x + 5.0)) is None
    assert predictor.skipped == 500 - 2 * predictor.filter.half


def test_cutting_a_recording_into_overlapping_blocks_changes_nothing():
    block = exact_block(4.0, recorded_velocity=False)
    whole = predict(block, crane(), oil())
    rows = slice(600, 1500)
    part = replace(block, **{name: getattr(block, name)[rows] for name in ('t', 'x', 'residual', 'effort')},
                   core=slice(200, 700))
    piece = predict(part, crane(), oil())
    for name in ('xdd', 'effort', 'effort_id', 'xdd_fd', 'regime'):
        assert getattr(piece, name)[200:700] == pytest.approx(getattr(whole, name)[800:1300], rel=1e-9, abs=1e-9), name


def test_a_machine_with_other_loops_is_predicted_too():
    machine = psdyn_ros.load(URDF / 'five_bar.urdf')
    t = PERIOD * np.arange(600)
    x = machine.initial_position + 0.1 * np.sin(4.0 * t)[:, None] * np.array([1.0, -0.5])
    xd, xdd = np.gradient(x, PERIOD, axis=0, edge_order=2), -16.0 * (x - machine.initial_position)
    effort = machine.inverse_dynamics(x, 0.4 * np.cos(4.0 * t)[:, None] * np.array([1.0, -0.5]), xdd)
    block = replace(block_of(t, x, xd, effort), joints=machine.actuators)
    found = predict(block, machine)
    assert (relative((found.effort - found.effort_id)[found.core], found.effort[found.core]) <= 0.01).all()


# the swing, the boom by two cylinders, arm and bucket
@pytest.mark.parametrize('known, added, left', [
    ((True,) * 5, (0.0, 2e4, -2e4, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
    ((True,) * 5, (3e3, 2e4, 0.0, 0.0, 0.0), (3e3, 1e4, 1e4, 0.0, 0.0)),
    ((False, True, True, True, True), (0.0, 2e4, -2e4, 0.0, 5e3), (0.0, 0.0, 0.0, 0.0, 5e3)),
    # of one alone nobody knows what the other does
    ((True, True, False, True, True), (0.0, 2e4, 0.0, 0.0, 0.0), (0.0, 2e4, 0.0, 0.0, 0.0))])
def test_what_redundant_actuators_do_against_each_other_is_not_judged(known, added, left):
    machine = psdyn_ros.load(URDF / 'excavator.urdf')
    t = PERIOD * np.arange(600)
    way = np.array([0.2, 0.1, 0.1, 0.1])
    x = machine.initial_position + 0.5 * way * np.sin(2.0 * t)[:, None]
    xd, xdd = np.cos(2.0 * t)[:, None] * way, -2.0 * np.sin(2.0 * t)[:, None] * way
    effort = np.where(known, machine.inverse_dynamics(x, xd, xdd) + added, np.nan)
    found = predict(replace(block_of(t, x, xd, effort), joints=machine.coordinates), machine)
    plain = predict(replace(block_of(t, x, xd, effort - added), joints=machine.coordinates), machine)
    off, without = ((one.effort - one.effort_near)[one.core][:, known] for one in (found, plain))
    clear = ~(found.undetermined | plain.undetermined)[found.core][:, known]
    assert clear.any(axis=0).all()
    expected = np.broadcast_to(np.array(left)[list(known)], off.shape)
    assert (off - without)[clear] == pytest.approx(expected[clear], abs=1e-3)


# friction and regimes, against plain twins


def test_friction_of_rows_is_that_of_the_kernel():
    axes = np.zeros(3, AXIS)
    axes['coulomb'], axes['viscous'], axes['slip'] = (4000.0, 10.0, 0.0), (3000.0, 0.0, 7.0), (5e-3, 1e-3, 1e-2)
    axes['stribeck'], axes['stribeck_velocity'] = (1500.0, 0.0, 200.0), (0.02, 0.0, 0.1)
    v = np.random.default_rng(2).normal(0.0, 0.03, (50, 3))
    expected = [[one_friction(axis, speed) for axis, speed in zip(axes, row)] for row in v]
    assert sliding_friction(axes, v) == pytest.approx(np.array(expected), rel=1e-12)
    assert sliding_friction(axes, v[:1])[0, 0] == pytest.approx(
        (4000.0 + 1500.0 * exp(-(v[0, 0] / 0.02) ** 2)) * tanh(v[0, 0] / 5e-3) + 3000.0 * v[0, 0])


def slow_reversals(v, still, reach):
    """Row by row what `reversals` says."""
    out = np.zeros(v.shape, dtype=bool)
    for column in range(v.shape[1]):
        last = None
        for row, speed in enumerate(v[:, column]):
            if abs(speed) < still:
                continue
            if last is not None and speed * v[last, column] < 0.0 and row - last <= 2 * reach:
                middle = (row + last) // 2
                for near in range(max(middle - reach, 0), min(middle + reach + 1, len(v))):
                    out[near, column] = True
            last = row
    return out


def test_reversals_are_those_of_a_slow_twin():
    rng = np.random.default_rng(3)
    for reach in (1, 5, 40):
        v = np.cumsum(rng.standard_normal((600, 3)), axis=0) * [1.0, 0.2, 5.0]
        assert np.array_equal(reversals(v, 0.5, reach), slow_reversals(v, 0.5, reach))
    assert not reversals(np.zeros((50, 2)), 0.5, 5).any()


def slow_slid(v, positions, speeds, travel):
    """Row by row what `slid` says."""
    out = np.zeros(v.shape, dtype=bool)
    for column in range(v.shape[1]):
        begin, way = 0, None
        for row, speed in enumerate(v[:, column]):
            now = 0 if abs(speed) < speeds[column] else (1 if speed > 0.0 else -1)
            if now != way:
                begin, way = row, now
            gone = abs(positions[row, column] - positions[begin, column])
            out[row, column] = now != 0 and gone >= travel[column]
    return out


def test_actuators_slide_as_a_slow_twin_says():
    v = np.cumsum(np.random.default_rng(5).standard_normal((600, 3)), axis=0) * [1.0, 0.2, 5.0]
    positions = 0.01 * np.cumsum(v, axis=0)
    speeds, travel = np.array([0.5, 0.5, 2.0]), np.array([0.05, 0.2, 0.0])
    found = slid(v, positions, speeds, travel)
    assert np.array_equal(found, slow_slid(v, positions, speeds, travel)) and found.any() and not found.all()


def test_friction_of_a_standing_actuator_may_be_anything_up_to_its_level():
    t, x, xd, _ = swinging(2.0)
    x, xd = np.tile(x[0], (len(t), 1)), 0.0 * xd
    weight = predict(block_of(t, x, xd, np.zeros((len(t), 4))), crane(), oil()).effort_id_frictionless
    for beyond, left in ((0.9, 0.0), (-0.9, 0.0), (1.5, 0.5), (-1.5, -0.5)):
        effort = weight + beyond * COULOMB * np.array([0.0, 1.0, 1.0, 1.0])
        found = predict(block_of(t, x, xd, effort), crane(), oil())
        off = (found.effort - found.effort_near)[found.core]
        assert found.held[found.core, 1:].all() == (left == 0.0) and not found.held[:, 0].any()
        assert off[:, 1:] == pytest.approx(left * COULOMB, abs=1e-6 * COULOMB)
        assert found.undetermined[:, 1:].all() and not found.undetermined[:, 0].any()
        assert np.array_equal(found.unclear, found.undetermined)


def test_every_actuator_has_a_regime_of_its_own():
    t, x, xd, _ = swinging(4.0)
    t4 = t[:, None]
    x = np.hstack((x[:, :1], 0.3 + 0.05 * t4, 0.25 + 0.01 * t4, 0.4 + 0.1 * np.cos(2.0 * np.pi * 0.5 * t4)))
    xd = np.hstack((0.0 * t4, 0.05 + 0.0 * t4, 0.01 + 0.0 * t4, -0.1 * np.pi * np.sin(2.0 * np.pi * 0.5 * t4)))
    regime = predict(block_of(t, x, xd, np.full((len(t), 4), np.nan)), crane(), oil()).regime
    assert (regime[100:-100, 0] == STATIC).all() and (regime[100:-100, 2] == SLOW).all()
    assert regime[500, 1] == FAST and set(regime[100:-100, 3]) == {FAST, REVERSING}
    turns = np.flatnonzero(regime[100:-100, 3] == REVERSING) + 100
    assert (np.abs(np.sin(np.pi * t[turns])) < 0.65).all() and REVERSING in regime[495:505, 3]
    upper = crane().limits.upper[1]
    near = block_of(t, np.tile([0.0, upper - 1e-3, 0.25, 0.4], (len(t), 1)), 0.0 * xd, np.full((len(t), 4), np.nan))
    assert (predict(near, crane(), oil()).regime[:, 1] == NEAR_STOP).all()
