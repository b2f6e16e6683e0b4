"""The reference slows down where something saturates, and only there; fast moves end in their goal."""

from contextlib import suppress

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.control import ClosedLoop, ControllerConfig, State, TrajectoryError, Waypoints, assemble
from psdyn_ros.kernels.control import speed_governor
from psdyn_ros.kernels.control.speed_governor import AT_REST, ERROR_FROM, LEAST, RISE, govern
from psdyn_ros.tools.studies import judgement
from psdyn_ros.tools.studies.second_plant import SecondPlant

DT = 0.002


def after(seconds, memory=None, error=lambda t: 0.0, clipped=False, supply=np.nan):
    """Return the speed, and the memory, after so many seconds."""
    memory = np.array(AT_REST) if memory is None else memory
    for k in range(round(seconds / DT)):
        speed = govern(memory, error(k * DT), clipped, supply, DT)
    return speed, memory


def test_nothing_saturated_leaves_full_speed():
    assert after(1.0)[0] == 1.0
    assert after(1.0, error=lambda t: ERROR_FROM - 0.01, supply=0.9)[0] == 1.0


def test_a_growing_error_slows_down_before_a_constant_one():
    constant, growing = after(1.0, error=lambda t: 0.4)[0], after(1.0, error=lambda t: 0.4 * t)[0]
    assert constant == 1.0
    assert after(1.0, error=lambda t: 0.6)[0] == pytest.approx(2.0 / 3.0, abs=0.01)
    assert after(0.999, error=lambda t: 0.44 * t)[0] < growing + 1e-9
    assert after(0.3, error=lambda t: 2.0 * t)[0] < after(0.3, error=lambda t: 0.6)[0]


def test_commands_clipped_now_and_then_do_not_slow_down():
    assert after(0.02, clipped=True)[0] == 1.0
    assert after(0.5, clipped=True)[0] < 0.6
    assert after(5.0, clipped=True)[0] == LEAST


def test_an_error_counts_sooner_where_commands_are_clipped():
    assert after(0.1, error=lambda t: 0.4)[0] == 1.0
    assert after(0.1, error=lambda t: 0.4, clipped=True)[0] < 2.0 / 3.0 < 0.9 < after(0.1, clipped=True)[0]


def test_a_sagging_supply_slows_down():
    assert after(0.1, supply=0.7)[0] == pytest.approx(0.4, abs=0.01)
    assert after(0.1, supply=0.0)[0] == LEAST


def test_speed_recovers_slowly():
    _, memory = after(0.1, supply=0.0)
    assert after(1.0, memory, supply=1.0)[0] == pytest.approx(LEAST + RISE, abs=0.01)
    assert after(4.0, memory, supply=1.0)[0] == 1.0
    for error, dt in ((np.inf, DT), (0.5, 0.0)):
        assert govern(memory, error, False, np.nan, dt) == 1.0


def test_the_speed_governor_is_that_of_plain_numbers(rng):
    memory, speed_left, error, growth, clipped = np.array(speed_governor.AT_REST), 1.0, None, 0.0, 0.0
    g = speed_governor
    for k in range(500):
        new_error, now, supply = 0.4 + 0.4 * np.sin(0.02 * k), k % 100 < 50, rng.uniform(0.8, 1.0) if k % 2 else np.nan
        share = 1.0 - np.exp(-DT / g.MEMORY)
        growth += 0.0 if error is None else share * ((new_error - error) / DT - growth)
        clipped += share * (now - clipped)
        error = new_error
        begin = g.CLIPPED_FROM if clipped > g.OFTEN else g.ERROR_FROM
        allowed = np.interp(error + g.LEAD * max(growth, 0.0), (begin, g.ERROR_TO), (1.0, 0.0))
        if np.isfinite(supply):
            allowed = min(allowed, np.interp(supply, (g.SUPPLY_TO, g.SUPPLY_FROM), (0.0, 1.0)))
        if clipped > g.OFTEN:
            allowed = min(allowed, speed_left - g.CLIPPED_FALL * DT)
        speed_left = float(np.clip(min(allowed, speed_left + g.RISE * DT), g.LEAST, 1.0))
        assert g.govern(memory, new_error, now, supply, DT) == pytest.approx(speed_left, rel=1e-12)


def moved(law, seconds, pump=None, duration=7.0):
    """Return the closed loop of a point-to-point move; pump [m^3/s]."""
    plant = SecondPlant(judgement.URDF, judgement.HYDRAULICS,
                        position=dict(zip(judgement.NAMES, judgement.START)), pump_flow=pump)
    core = assemble(judgement.configuration(law))
    loop = ClosedLoop(core, plant).start()
    loop.send(judgement.point_to_point(seconds))
    return loop.run(duration)


@pytest.mark.parametrize('law', thorough([judgement.VALVES, judgement.PID], 1))
def test_a_move_beyond_the_pump_ends_in_its_goal(law):
    loop = moved(law, 3.2, pump=8e-4)
    record = loop.recording()
    assert record.state[-1] == State.HOLD and not (record.state >= State.STOPPING).any(), record.reasons
    goal = judgement.point_to_point(3.2).positions[-1]
    # the integral of PID, wound up meanwhile, takes seconds to come down
    assert np.abs(record.x[-1] - goal).max() < (3e-3 if law == judgement.VALVES else 1e-2)
    under = np.isfinite(record.desired[:, 0, 0])
    tolerance = judgement.configuration(law).declaration.tracking_tolerance
    assert (np.abs(record.desired[under, 0] - record.x[under]) < tolerance).all()


def test_a_sound_move_is_not_slowed():
    loop = moved(judgement.VALVES, 4.0, duration=4.2)
    assert loop.core.selector.speed == 1.0
    assert not loop.core.law.reference.moving(loop.core.inputs.time)


@pytest.mark.long
def test_bristles_are_no_frozen_sensor():
    loop = judgement.closed_loop(judgement.VALVES, presliding=1e-4)
    loop.send(judgement.as_waypoints(judgement.multi_sine, judgement.SECONDS))
    record = loop.run(10.0).recording()
    assert not any('state_frozen' in reasons for _, reasons in record.reasons)


FAR, NEAR = (0.5, 0.2, -0.15, 0.5), (0.1, 0.05, -0.05, 0.1)


@pytest.mark.long
@pytest.mark.parametrize(('law', 'rate', 'stiction', 'move', 'most', 'seconds'), thorough([
    (judgement.VALVES, 200.0, 4e3, FAR, 3e-3, 16.0), (judgement.PID, 200.0, 4e3, FAR, 3e-3, 10.0),
    (judgement.VALVES, 500.0, 2e3, NEAR, 1e-3, 16.0), (judgement.VALVES, 500.0, 4e3, NEAR, 1.5e-3, 16.0),
    (judgement.VALVES, 100.0, 3e3, FAR, 3e-3, 16.0), (judgement.VALVES, 500.0, 4e3, FAR, 3e-3, 16.0),
    (judgement.VALVES, 100.0, 4e3, FAR, 3e-3, 16.0), (judgement.PID, 100.0, 2e3, FAR, 3e-3, 10.0),
    (judgement.PID, 500.0, 3e3, FAR, 3e-3, 10.0)], 2, several=True))
def test_holding_with_stiction_hunts_less_than_a_millimetre_and_is_no_fault(law, rate, stiction, move, most, seconds):
    """After a long way the telescope slips once across its reference, as far as the oil springs back."""
    loop = judgement.closed_loop(law, rate=rate, stiction=dict.fromkeys(judgement.NAMES[1:], stiction))
    loop.send(judgement.point_to_point(3.2, move))
    record = loop.run(seconds).recording()
    last = record.time > record.time[-1] - 0.375 * seconds
    assert record.state[-1] == State.HOLD and not record.reasons
    assert np.ptp(record.x[last], axis=0)[1:].max() < 1e-3
    assert np.abs(record.x[-1] - record.desired[-1, 0])[1:].max() < most


def test_three_lost_states_at_100_hz_degrade():
    loop = judgement.closed_loop(judgement.VALVES, rate=100.0)
    loop.send(judgement.point_to_point(5.0))
    loop.run(1.0)
    begin = loop.time + 1e-6
    loop.change = lambda time, measured: None if begin < time < begin + 0.03 else measured
    record = loop.run(1.0).recording()
    assert State.DEGRADED in record.state and not (record.state >= State.STOPPING).any()


def test_a_cycle_too_slow_for_its_timeouts_is_refused():
    with pytest.raises(Exception, match="'degraded_misses' 3 at a period of 50 ms: a stop comes after 200 ms"):
        ControllerConfig.from_files(judgement.URDF, safety=judgement.SAFETY, rate=20.0)


@pytest.mark.parametrize('rate', thorough([10.0, 1.0, 4.0], 1))
def test_new_targets_again_and_again_make_no_axis_faster_than_rated(rate):
    loop, rng = judgement.closed_loop(judgement.VALVES), np.random.default_rng(3)
    for _ in range(round(4.0 * rate)):
        zero, way = np.zeros((1, 4)), rng.uniform(-1.0, 1.0, 4) * (0.3, 0.1, 0.1, 0.2)
        with suppress(TrajectoryError):
            loop.send(Waypoints(judgement.NAMES, [rng.uniform(0.8, 2.0)], [judgement.START + way], zero, zero))
        loop.run(1.0 / rate)
    record, rated = loop.recording(), np.array(loop.core.manipulator.limits.velocity)
    assert (record.state < State.STOPPING).all() and (record.speed.max(axis=0) <= rated).all()
    assert record.speed.max(axis=0).min() > 0.02, 'all axes moved'
