"""The control core on the crane's plants: taking a machine under control, references, faults and what comes after."""

from itertools import pairwise

import numpy as np
import pytest
from conftest import examples, thorough
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.control.control_rig import BAD_STATES, MS, RATE, SILENT, TARGET, Rig, T, jumped, nothing

from psdyn_ros.control.core.diagnostics import status
from psdyn_ros.control.monitors.tracking import TrackingCheck
from psdyn_ros.control.reference import goal
from psdyn_ros.control.reference.trajectory import TrajectoryError, Waypoints
from psdyn_ros.control.safety.fault_table import CONDITIONS, Result, State
from psdyn_ros.control.safety.state_machine import SafetyError
from psdyn_ros.model.errors import PsdynError

STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
LEVELS = ('effort', 'valve')


@pytest.mark.parametrize('level', LEVELS)
def test_a_machine_is_taken_under_control_follows_a_trajectory_holds_its_end_and_is_left(level):
    rig = Rig(level)
    assert rig.tick() is None and rig.core.states.state is STANDBY
    rig.activate()
    assert not rig.output.valid and rig.output.state is STANDBY and rig.output.desired is None
    rig.core.enable(rig.now)
    at = rig.plant.x.copy()
    rig.ticks(50)
    assert rig.output.valid and rig.state is HOLD and np.abs(rig.plant.x - at).max() < 1e-6
    rig.follow(TARGET, 2.0)
    errors = []
    for _ in range(round(2.2 * RATE)):
        rig.tick()
        errors.append(np.abs(rig.output.desired[0] - rig.plant.x).max())
    assert rig.state is HOLD and max(errors) < 3e-3
    assert rig.output.desired[0] == pytest.approx(TARGET) and rig.plant.x == pytest.approx(TARGET, abs=1e-3)
    rig.core.deactivate(rig.now)
    rest = [rig.tick() for _ in range(10)]
    safe = [output for output in rest if output is not None and not output.valid]
    assert len(safe) >= 3 and rest[-1] is None and rig.core.finished
    assert {name for name in rig.counts if CONDITIONS[name].demand} == set()


def test_outputs_are_stamped_as_the_states_they_answer_and_later_where_none_came():
    rig = Rig().hold()
    assert rig.tick().stamp == rig.ros_now
    assert rig.tick(state=lambda stamp, x, xd: (stamp - MS, x, xd)).stamp == rig.ros_now - MS
    assert rig.tick(state=nothing).stamp == rig.ros_now


def test_the_feedforward_is_ramped_in_after_enabling():
    rig = Rig(feedforward_ramp=0.1).hold()
    scales = []
    for _ in range(60):
        rig.tick()
        scales.append(rig.law.feedforward_scale)
    assert 0.1 < scales[0] < 0.3 and scales[-1] == 1.0 and all(a <= b for a, b in pairwise(scales))
    assert Rig(feedforward_ramp=0.0).hold().law.feedforward_scale == 1.0


@pytest.mark.parametrize('level', ['effort', 'valve'])
def test_a_motion_right_after_enabling_is_followed_as_any_other(level):
    rig = Rig(level).hold()
    rig.follow(rig.plant.x + [0.2, 0.02, 0.02, 0.03], 2.0)
    off = 0.0
    for _ in range(300):
        rig.tick()
        off = max(off, np.abs(rig.law.desired[0] - rig.plant.x).max())
    assert off < 2e-4


def test_a_trajectory_can_be_replaced_in_motion_and_cancelled_without_a_jump():
    rig = Rig().run()
    rig.follow(rig.machine.initial_position, 4.0)
    before = len(rig.outputs) - 1
    rig.ticks(100)
    assert rig.state is RUN
    rig.core.cancel(rig.now)
    rig.ticks(300)
    assert rig.state is HOLD and np.abs(rig.plant.xd).max() < 1e-4 and not rig.core.interrupted
    desired = np.array([output.desired for output in rig.outputs[before:]])
    assert np.abs(np.diff(desired[:, 1], axis=0)).max() < 1.1 / RATE       # no more than the deceleration declared
    rig.core.cancel(rig.now)
    assert rig.state is HOLD


def test_a_trajectory_cancelled_before_its_first_cycle_moves_no_millimetre():
    rig = Rig().hold()
    at = rig.plant.x.copy()
    rig.follow(TARGET, 1.0)
    rig.core.cancel(rig.now)
    rig.ticks(500)
    assert rig.state is HOLD and not rig.core.interrupted
    np.testing.assert_allclose(rig.plant.x, at, atol=1e-3)


def test_payload_and_base_go_to_the_law_and_what_cannot_be_is_counted():
    rig = Rig().hold()
    rig.core.set_payload('boom_tip' if 'boom_tip' in rig.machine.links else rig.machine.links[-1], 100.0, np.zeros(3),
                         np.eye(3))
    with pytest.raises(PsdynError):
        rig.core.set_payload('no_such_link', 100.0, np.zeros(3), np.eye(3))
    rig.core.set_base(None)
    assert rig.counts['load_rejected'] == 1
    rig.ticks(20)
    assert rig.state is HOLD


def test_the_status_tells_state_reasons_and_counts():
    rig = Rig('valve').run()
    told = status(rig.core)
    assert told['state'] == 'RUN' and told['age of the pressures [ms]'] == 0.0 and told['enabled']
    rig.ticks(SILENT, state=nothing)
    told = status(rig.core)
    assert told['reason: state_silent'].startswith('F01') and told['count: state_silent'] == 1
    assert told['age of the state [ms]'] == pytest.approx(2.0 * SILENT)


# F18 and the rules of activation


def test_activation_without_a_fresh_state_is_refused_F18():
    rig = Rig('valve')
    with pytest.raises(SafetyError, match='no state came'):
        rig.core.activate(rig.now, rig.ros_now)
    rig.tick()
    rig.ticks(SILENT, state=nothing)
    with pytest.raises(SafetyError, match='no state came for 22.0 ms'):
        rig.core.activate(rig.now, rig.ros_now)


def test_a_refusal_names_every_reason():
    rig = Rig('valve')
    rig.pressed = None
    rig.plant.x[:] += [0.0, 0.4, 0.0, 0.0]
    rig.tick(pressures=False, state=lambda stamp, x, xd: (stamp, x, xd, 0.02))
    with pytest.raises(SafetyError) as refusal:
        rig.core.activate(rig.now, rig.ros_now)
    for reason in ('F18: no pressures came', 'F36: the emergency stop says nothing', "F14: 'lift_cylinder' is at 0.6",
                   'F12: measured joints of a loop disagree by 20 mm'):
        assert reason in str(refusal.value)
    assert rig.core.step(rig.now, rig.ros_now) is None


def test_missing_limits_and_a_pressed_stop_refuse_activation():
    rig = Rig(declared={'command_limit': np.array([1.0, np.inf, 1.0, 1.0])})
    rig.pressed = True
    rig.tick()
    with pytest.raises(SafetyError, match="F36: the emergency stop is pressed; 'lift_cylinder' lacks limits"):
        rig.core.activate(rig.now, rig.ros_now)


def test_velocities_that_disagree_by_half_of_what_is_allowed_refuse_activation_F11():
    rig = Rig()
    wrong = lambda stamp, x, xd: (stamp, x, xd + [0.0, 0.03, 0.0, 0.0])     # noqa: E731
    rig.ticks(40, state=wrong)
    with pytest.raises(SafetyError, match='F11: positions and velocities disagree by 60 %'):
        rig.core.activate(rig.now, rig.ros_now)
    rig.ticks(40)
    rig.core.activate(rig.now, rig.ros_now)


def test_inputs_that_were_missing_at_activation_need_no_probation():
    rig = Rig('valve')
    rig.ticks(3, pressures=False)
    with pytest.raises(SafetyError, match='F18: no pressures came'):
        rig.core.activate(rig.now, rig.ros_now)
    rig.ticks(3)
    rig.core.activate(rig.now, rig.ros_now)
    assert rig.tick().state is STANDBY


def test_a_fault_that_left_it_inactive_can_be_reset_once_it_is_gone():
    rig = Rig('valve').hold()
    rig.pressed = True
    rig.until(SAFE, 3)
    rig.core.deactivate(rig.now)
    rig.ticks(5)
    assert rig.core.finished and rig.tick() is None
    with pytest.raises(SafetyError, match='F36'):
        rig.core.reset(rig.now)
    rig.pressed = False
    rig.ticks(2)
    rig.core.reset(rig.now)
    rig.core.activate(rig.now, rig.ros_now)
    assert rig.tick().state is STANDBY


def test_enabling_needs_activity_and_a_reference_needs_enabling():
    rig = Rig()
    rig.tick()
    with pytest.raises(SafetyError, match='not active'):
        rig.core.enable(rig.now)
    rig.activate()
    with pytest.raises(TrajectoryError, match='STANDBY and not enabled'):
        rig.follow(TARGET, 3.0)
    with pytest.raises(TrajectoryError, match='not enabled'):
        rig.core.take_point(0, rig.now, rig.plant.x)
    rig.core.enable(rig.now)
    rig.core.enable(rig.now)        # once more changes nothing
    rig.tick()
    rig.follow(TARGET, 3.0)


# references


def test_streamed_points_are_followed_and_when_they_stop_it_holds_F19():
    rig = Rig().hold()
    start, speed = rig.plant.x.copy(), np.array([0.1, 0.02, 0.02, 0.02])
    for k in range(300):
        ramp = min(1.0, k / 100)
        way = (0.5 * k * k / 100 if k < 100 else k - 50) / RATE
        rig.core.take_point(rig.ros_now, rig.now, start + way * speed, ramp * speed)
        rig.tick()
    assert rig.state is RUN and np.abs(rig.plant.x - rig.output.desired[0]).max() < 2e-3
    taken = rig.until(HOLD, 60)
    assert 49 <= taken <= 52 and rig.counts['stream_silent'] >= 1
    rig.ticks(400)
    assert np.abs(rig.plant.xd).max() < 1e-4 and rig.state is HOLD
    rig.follow(TARGET, 3.0)
    rig.ticks(10)
    assert rig.state is RUN


@pytest.mark.parametrize('level', thorough(('valve', 'effort'), 1))
def test_streamed_points_faster_than_the_reduced_speed_are_followed_at_that_and_caught_up_with_F30(level):
    rig = Rig(level, declared={'probation': 0.6}).hold()
    start, speed = rig.plant.x.copy(), np.array([0.36, 0.05, 0.05, 0.18])      # the first and last of 0.6, 0.3
    rates, lags, states = [], [], []
    for k in range(2000):
        t = k / RATE
        away = 1.0 if t < 2.2 else max(0.0, 1.0 - 2.0 * (t - 2.2))
        ramp = min(1.0, t) * away
        way = (0.5 * t * t if t < 1.0 else t - 0.5 if t < 2.2 else 1.95 - 0.25 * away * away)
        rig.core.take_point(rig.ros_now, rig.now, start + way * speed, ramp * speed)
        rig.tick(cycle=not 600 <= k < 603)
        rates.append(rig.output.desired[1] / rig.machine.limits.velocity)
        lags.append(np.abs(start + way * speed - rig.output.desired[0]).max())
        states.append(rig.state)
    rates, lags = np.array(rates), np.array(lags)
    degraded = np.array([state is DEGRADED for state in states])
    assert set(states) == {RUN, DEGRADED} and 290 <= degraded.sum() <= 310
    settled = degraded & (np.arange(2000) > 603 + 0.3 * RATE)
    assert rates[:600].max() > 0.55 and rates[settled].max() < 0.501, 'of the rated speeds'
    assert np.abs(np.diff(rates, axis=0)).max() < 0.01, 'no jump of a velocity'
    assert lags[600:].max() < 0.1 and lags[-1] < 2e-3
    assert np.abs(rig.plant.x - rig.output.desired[0]).max() < 2e-3 and rig.state is RUN


def test_too_far_from_the_reference_is_a_stop_from_where_it_is_F20():
    # or F11 and F43 would have found it first
    rig = Rig(declared={'tracking_tolerance': np.full(4, 0.004)},
              plausibility={'velocity_residual': 10.0, 'momentum_residual': 10.0}).run()
    off, shares = 0, []

    def blocked(stamp, x, xd):
        return stamp, x - [0.0, 3e-4 * off, 0.0, 0.0], xd
    while rig.state is RUN:
        off += 1
        rig.tick(state=blocked)
        shares.append(rig.core.checks[TrackingCheck].share)
    assert rig.state is STOPPING and rig.core.states.state_valid and 'tracking' in rig.core.states.reasons
    assert [share > 1.0 for share in shares[-4:]] == [False, True, True, False]      # two cycles, then it stops
    assert rig.output.desired[0] == pytest.approx(rig.core.inputs.state_check.x, abs=1e-3)


def waypoints_of(rig, **changes):
    given = {'joints': rig.machine.coordinates, 'times': [2.0], 'positions': [TARGET], 'velocities': [np.zeros(4)]}
    given.update(changes)
    return Waypoints(*given.values())


BAD_REFERENCES = {
    'F20 elsewhere': {'times': [0.0, 2.0], 'positions': [TARGET + 0.2, TARGET], 'velocities': np.zeros((2, 4))},
    'F21 outside': {'positions': [[0.0, 5.0, 0.3, 0.3]]},
    'F21 fast': {'times': [0.05]},
    'F22 nan': {'positions': [[0.0, np.nan, 0.3, 0.3]]},
    'F22 empty': {'times': [], 'positions': [], 'velocities': []},
    'F22 order': {'times': [2.0, 1.0], 'positions': [TARGET, TARGET], 'velocities': np.zeros((2, 4))},
    'F22 length': {'positions': [TARGET[:3]]},
    'F22 twice': {'joints': ('slew', 'slew', 'tilt_cylinder', 'telescope')},
}


def test_a_stop_that_leaves_its_reference_goes_on_without_the_law_F20():
    rig = Rig('valve').run()
    rig.core.disable(rig.now)
    rig.ticks(20)
    assert rig.state is STOPPING and rig.core.states.state_valid
    rig.core.checks[TrackingCheck]._tolerance[:] = 1e-9        # whatever the error is, it is too large
    rig.ticks(4)
    assert rig.state is STOPPING and not rig.core.states.state_valid
    assert 'off its reference' in rig.core.states.reasons['tracking']


@pytest.mark.parametrize('name', BAD_REFERENCES)
def test_references_that_cannot_be_followed_leave_the_motion_as_it_is(name):
    desired = []
    for bad in (None, BAD_REFERENCES[name]):
        rig = Rig().run(0.3)
        if bad:
            with pytest.raises(PsdynError):
                validated = rig.core.validate_trajectory(waypoints_of(rig, **bad))
                validated.advance(100.0)
                rig.core.execute(validated, rig.now)
        rig.ticks(50)
        assert rig.state is RUN
        desired.append(rig.output.desired)
    assert (desired[0] == desired[1]).all()


def test_a_candidate_is_void_after_a_stop_another_reference_a_reset_or_a_cancellation():
    rig = Rig().run()
    old = rig.core.validate_trajectory(waypoints_of(rig))
    old.advance(100.0)
    rig.follow(TARGET, 4.0)
    with pytest.raises(TrajectoryError, match='another reference came'):
        rig.core.execute(old, rig.now)
    old = rig.core.validate_trajectory(waypoints_of(rig))
    old.advance(100.0)
    rig.core.disable(rig.now)
    rig.until(STANDBY, 400)
    rig.core.enable(rig.now)
    rig.ticks(5)
    with pytest.raises(TrajectoryError, match='stopped'):
        rig.core.execute(old, rig.now)
    old = rig.core.validate_trajectory(waypoints_of(rig))
    old.advance(100.0)
    rig.core.cancel(rig.now)
    with pytest.raises(TrajectoryError, match='stopped'):
        rig.core.execute(old, rig.now)


def test_references_stamped_before_enabling_are_refused():
    rig = Rig().hold()
    stamp = rig.ros_now - 20 * T
    with pytest.raises(TrajectoryError, match='before the controller was enabled') as refused:
        rig.core.validate_trajectory(waypoints_of(rig), stamp)
    assert goal.refusal(refused.value) is goal.Result.OLD_HEADER_TIMESTAMP
    with pytest.raises(TrajectoryError, match='before the controller was enabled'):
        rig.core.take_point(stamp, rig.now, rig.plant.x)


# after a fault


FAULTS = {
    'silence': lambda rig: rig.ticks(500, state=nothing),
    'jump': lambda rig: rig.ticks(300, state=jumped([0.0, 0.05, 0.0, 0.0])),
    'stop': lambda rig: (setattr(rig, 'pressed', True), rig.ticks(5), setattr(rig, 'pressed', False)),
    'exception': lambda rig: (rig.core.fail(rig.now, 'broken'), rig.tick()),
    'conflict': lambda rig: (rig.core.report(rig.now, 'conflicting_commands', Result.FAIL), rig.ticks(400),
                             rig.core.report(rig.now, 'conflicting_commands', Result.PASS)),
}


@pytest.mark.parametrize('name', FAULTS)
@pytest.mark.parametrize('level', LEVELS)
def test_after_a_reset_nothing_moves_until_a_new_reference(level, name):
    rig = Rig(level).run()
    FAULTS[name](rig)
    assert rig.state is SAFE
    with pytest.raises(SafetyError):
        rig.core.enable(rig.now)
    rig.ticks(100)          # the probation
    assert rig.state is SAFE
    rig.core.reset(rig.now)
    at = rig.plant.x.copy()
    assert not rig.ticks(100).valid and rig.state is STANDBY
    rig.core.enable(rig.now)
    rig.ticks(200)
    assert rig.state is HOLD and np.abs(rig.plant.x - at).max() < 5e-3       # oil that settles
    rig.follow(TARGET, 4.0)
    rig.ticks(100)
    assert rig.state is RUN


# whatever happens

EVENTS = ('wait', 'wait', 'silence', 'nan', 'jump', 'late', 'old', 'repeat', 'press', 'no cycle', 'follow', 'enable',
          'reset', 'disable', 'deactivate', 'activate', 'cancel', 'wall', 'law', 'point')


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(LEVELS), st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(1, 30)), max_size=25))
def test_whatever_happens_outputs_are_fit_and_safe_is_left_by_a_reset_only(level, events):
    rig = Rig(level, feedforward_ramp=0.05).hold()
    spoilt = {'silence': nothing, 'nan': BAD_STATES['F05 position'][1], 'jump': jumped([0.2, 0.0, 0.05, 0.0]),
              'late': lambda stamp, x, xd: (stamp - 15 * MS, x, xd), 'old': BAD_STATES['F02 old'][1],
              'repeat': lambda stamp, x, xd: (stamp - T, x, xd)}
    update = rig.law.update
    for event, count in events:
        was_safe, before = rig.state is SAFE, rig.plant.x.copy()
        reset = False
        try:
            match event:
                case 'press':
                    rig.pressed = True
                case 'wall':
                    rig.ros_jump += (count - 15) * 100 * MS
                case 'follow':
                    rig.follow(TARGET, 3.0)
                case 'point':
                    rig.core.take_point(rig.ros_now, rig.now, rig.plant.x + 1e-3)
                case 'reset':
                    rig.pressed = False
                    rig.tick()
                    reset = True
                    rig.core.reset(rig.now)
                case 'activate':
                    rig.core.activate(rig.now, rig.ros_now)
                case 'enable' | 'disable' | 'deactivate' | 'cancel':
                    getattr(rig.core, event)(rig.now)
                case 'law':
                    rig.law.update = lambda *_: np.full(4, np.nan)
        except PsdynError:
            pass
        for _ in range(count):
            if event == 'no cycle':
                rig.tick(cycle=False)
            elif event == 'wall':
                rig.outputs, rig.output = [], None      # stamps go with the clock
                rig.tick()
            else:
                rig.tick(state=spoilt.get(event))
        rig.law.update = update
        assert not was_safe or rig.state is SAFE or reset
        if rig.output is None or not rig.output.valid:
            continue
        assert rig.state in (RUN, DEGRADED, HOLD, STOPPING) and np.isfinite(rig.output.command).all()
        assert np.abs(rig.plant.x - before).max() < 0.2


def test_a_stop_that_is_asked_for_at_reduced_speed_stays_on_the_path():
    """As without the fault, which is none that stops: the axes come to rest together."""
    rig = Rig().run()
    rig.ticks(150)
    for _ in range(3):
        rig.tick(cycle=False)
    rig.tick()
    assert rig.state is DEGRADED
    start = rig.machine.initial_position
    rig.core.disable(rig.now)
    while rig.tick().state is not STANDBY:
        share = (rig.core.selector.desired[0] - start) / (TARGET - start)
        assert rig.state is STOPPING and np.ptp(share) < 1e-6
