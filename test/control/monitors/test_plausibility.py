"""Which measured states are believed, alone and by the control core: F01 to F12."""

import numpy as np
import pytest
from support.control.control_rig import BAD_STATES, RATE, SILENT, WALL, Rig, T, jumped, nothing

from psdyn_ros.control.monitors.clock import FUTURE, OLD, ORDER, UNSTAMPED, ClockWatch, CycleWatch, MeasuredInput
from psdyn_ros.control.safety.fault_table import CONDITIONS, State
from psdyn_ros.control.safety.state_machine import SafetyError
from psdyn_ros.kernels.control import plausibility
from psdyn_ros.model.parameters.safety import Timeouts

STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
LEVELS = ('effort', 'valve')


@pytest.mark.parametrize('level', LEVELS)
@pytest.mark.parametrize('start', ('hold', 'run'))
def test_no_states_F01(level, start):
    rig = getattr(Rig(level), start)()
    held = rig.state
    assert rig.ticks(2, state=nothing).state is held
    rig.tick(state=nothing)
    assert rig.state is max(held, DEGRADED)
    rig.ticks(SILENT - 4, state=nothing)
    assert rig.state < STOPPING
    assert rig.tick(state=nothing).state >= STOPPING and not rig.core.states.state_valid
    rig.ticks(500, state=nothing)      # the ramp goes on to its end, however long no state comes
    assert rig.state is SAFE and not rig.output.valid


@pytest.mark.parametrize('level', LEVELS)
def test_the_stop_without_trust_looks_at_nothing_measured_and_takes_the_speed_off_F01(level):
    commands = []
    for spoil in (nothing, BAD_STATES['F03 future'][1]):
        rig = Rig(level, timeouts={'safe': 0.2}).run()
        speed = rig.plant.xd.copy()
        rig.ticks(SILENT, state=spoil)
        first = len(rig.outputs) - 1
        while rig.state is STOPPING:
            rig.tick(state=spoil)
        commands.append([output.command for output in rig.outputs[first:-1]])
        # on valves the second half follows when what the first one excited swings back
        assert 0.05 * RATE < len(commands[-1]) < (0.2 if level == 'effort' else 0.6) * RATE
    assert (np.array(commands[0]) == np.array(commands[1])).all()
    assert (np.abs(rig.plant.xd) < 0.35 * np.abs(speed) + 2e-3).all()


def test_a_state_that_comes_back_within_the_ladder_leads_back_to_run_F01():
    rig = Rig().run()
    rig.ticks(4, state=nothing)
    assert rig.state is DEGRADED
    rig.tick()
    assert rig.state is DEGRADED and rig.core.selector.speed == 0.5
    assert rig.until(RUN, 60) > 45
    rig.ticks(2)
    assert rig.core.selector.speed == 1.0


def test_states_that_come_back_after_the_stop_change_nothing_any_more_F01():
    rig = Rig().run()
    rig.ticks(SILENT + 1, state=nothing)
    assert rig.state is STOPPING
    rig.until(SAFE, 200)
    rig.ticks(100)
    assert rig.state is SAFE


def test_no_pressures_are_as_bad_as_no_states_F01():
    rig = Rig('valve').run()
    rig.ticks(SILENT - 1, pressures=False)
    assert rig.state is RUN
    assert rig.tick(pressures=False).state is STOPPING and 'pressures_silent' in rig.core.states.reasons
    rig.until(SAFE, 500, pressures=False)
    effort = Rig('effort').run()
    assert effort.ticks(SILENT + 10, pressures=False).state is RUN


@pytest.mark.parametrize('name', BAD_STATES)
def test_bad_messages_are_as_good_as_none(name):
    condition, spoil = BAD_STATES[name]
    rig = Rig().run()
    before = rig.core.inputs.state_check.x
    rig.tick(state=spoil)
    condition = 'state_stale' if name == 'F04 frozen' else condition        # by then it is old, too
    assert rig.refused and rig.counts[condition] == 1 and rig.core.inputs.state_check.x is before and rig.state is RUN
    rig.ticks(SILENT - 1, state=spoil)
    assert rig.state is STOPPING and not rig.core.states.state_valid and rig.counts[condition] == SILENT


@pytest.mark.parametrize('name', BAD_STATES)
def test_a_single_bad_message_changes_nothing_worth_mentioning(name):
    commands = []
    for spoil in (None, BAD_STATES[name][1]):
        rig = Rig().run()
        rig.tick(state=spoil)
        rig.ticks(20)
        assert rig.state is RUN
        commands.append(rig.output.command)
    assert np.abs(commands[1] - commands[0]).max() < 1e-3 * np.abs(commands[0]).max()


def test_repeated_and_reordered_stamps_are_dropped_and_three_of_them_degrade_F04():
    rig = Rig().run()
    rig.tick(state=lambda stamp, x, xd: (stamp - T, x, xd))
    rig.tick(state=lambda stamp, x, xd: (stamp - 3 * T, x, xd))
    assert rig.state is RUN and rig.counts['stamp_order'] == 2
    rig.tick(state=lambda stamp, x, xd: (stamp - 3 * T, x, xd))
    assert rig.state is DEGRADED and 'stamp_order' in rig.core.states.reasons
    rig.tick()
    assert rig.until(RUN, 60) > 40


def test_messages_that_could_not_be_read_count_as_missing_F06_F07():
    rig = Rig().run()
    for _ in range(SILENT):
        rig.core.reject_state(rig.now, 'state_duplicate', 'lift_cylinder named more than once')
        rig.tick(state=nothing)
    assert rig.state is STOPPING and rig.counts['state_duplicate'] == SILENT


@pytest.mark.parametrize('by', [[0.0, 0.004, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, -1e300]])
def test_one_wild_position_is_rejected_and_three_stop_without_trust_F08(by):
    rig = Rig().run()
    x = rig.core.inputs.state_check.x
    rig.tick(state=jumped(by))
    assert 'jumped' in rig.refused and rig.core.inputs.state_check.x is x and rig.state is RUN
    rig.ticks(20)
    assert rig.state is RUN and rig.counts['state_jump'] == 1
    rig.ticks(2, state=jumped(by))
    assert rig.state is RUN
    rig.tick(state=jumped(by))
    assert rig.state is STOPPING and not rig.core.states.state_valid


def test_a_velocity_that_no_actuator_has_is_a_wild_state_F08():
    rig = Rig().run()
    for by in (1.0, 0.15, -0.15):
        rig.tick(state=lambda stamp, x, xd: (stamp, x, xd + [0.0, by, 0.0, 0.0]))      # noqa: B023
        assert 'its velocity' in rig.refused
        assert rig.tick().state is RUN and not rig.refused


def test_a_lasting_step_is_a_fault_and_never_the_new_position_while_enabled_F08():
    rig = Rig(timeouts={'safe': 0.2}).run()
    step = jumped([0.0, 0.05, 0.0, 0.0])
    x = rig.core.inputs.state_check.x
    while rig.state is not SAFE:
        rig.tick(state=step)
        assert rig.output.valid is False or rig.core.inputs.state_check.x is x
    rig.ticks(60, state=step)       # where nothing is commanded it is where the machine is
    assert rig.core.inputs.state_check.x[1] == pytest.approx(rig.plant.x[1] + 0.05) and rig.state is SAFE
    rig.core.reset(rig.now)
    rig.tick(state=step)
    assert rig.state is STANDBY


def test_in_standby_a_lasting_step_is_the_new_position_of_the_next_activation_F08():
    rig = Rig().activate()
    step = jumped([0.0, 0.05, 0.0, 0.0])
    rig.ticks(3, state=step)
    assert rig.core.inputs.state_check.x[1] == pytest.approx(rig.plant.x[1] + 0.05) and rig.state is STANDBY
    with pytest.raises(SafetyError, match='jumped from .* while nothing moved the machine'):
        rig.core.enable(rig.now)
    rig.core.deactivate(rig.now)
    rig.ticks(3, state=step)
    rig.core.activate(rig.now, rig.ros_now)
    rig.tick(state=step)
    rig.core.enable(rig.now)
    rig.tick(state=step)
    assert rig.state is HOLD and rig.output.desired[0] == pytest.approx(rig.plant.x + [0.0, 0.05, 0.0, 0.0])


def lift_at(position):
    """Return a spoiler of states whose lift stays at a position."""
    def stuck(stamp, x, xd):
        x[1] = position
        return stamp, x, xd
    return stuck


@pytest.mark.parametrize('level', LEVELS)
def test_a_position_that_stands_still_while_it_should_move_F09(level):
    # or those would have found it first
    rig = Rig(level, plausibility={'velocity_residual': 10.0, 'flow_residual': 10.0, 'speed_share': 1.0}).run()
    assert np.abs(rig.output.desired[1, 1]) > 0.02
    cycles = rig.until(STOPPING, 200, state=lift_at(rig.plant.x[1]))
    bound = CONDITIONS['state_frozen'].bound(rig.core.declaration, 1 / RATE)
    assert 50 <= cycles <= bound * RATE + 1 and not rig.core.states.state_valid
    assert 'lift_cylinder' in rig.core.states.reasons['state_frozen']


def test_a_position_that_sticks_for_less_than_friction_explains_is_not_frozen_F09():
    rig = Rig(plausibility={'velocity_residual': 10.0, 'freeze_time': 0.01}).run()
    begin, stuck = rig.output.desired[0, 1], lift_at(rig.plant.x[1])
    while abs(rig.law.reference.ahead(rig.core.inputs.time)[0][1] - begin) < 0.004:
        rig.tick(state=stuck)
    assert 'state_frozen' not in rig.core.states.reasons
    rig.until(STOPPING, 60, state=stuck)
    assert 'state_frozen' in rig.core.states.reasons


def coarse_rig(step):
    """A rig in motion whose lift has an encoder of this step [m], just at the next one; and what it says."""
    # or those would have found it first
    others = {'velocity_residual': 10.0, 'momentum_residual': 10.0, 'speed_share': 1.0}
    rig = Rig(plausibility={**others, 'freeze_time': 0.01})
    exact = rig.measured

    def coarse():
        stamp, x, xd = exact()
        x[1] = step * round(x[1] / step)
        return stamp, x, xd
    rig.measured = coarse
    stuck_at = rig.run().measured()[1][1]
    while rig.measured()[1][1] == stuck_at:
        rig.tick()
    return rig, rig.measured()[1][1]


def test_a_coarse_encoder_is_frozen_after_three_of_its_steps_F09():
    step = 2e-3
    rig, stuck_at = coarse_rig(step)
    begin, stuck = rig.output.desired[0, 1], lift_at(stuck_at)
    while abs(rig.output.desired[0, 1] - begin) < 2.9 * step:
        rig.tick(state=stuck)
    assert 'state_frozen' not in rig.core.states.reasons
    rig.until(STOPPING, 20, state=stuck)
    assert 'state_frozen' in rig.core.states.reasons


@pytest.mark.parametrize(('noise', 'slip', 'frozen'), [(0.0, 0.0, True), (1e-3, 0.0, False), (1e-3, 0.02, True)],
                         ids=['both stand still', 'it stands', 'it moves'])
def test_a_velocity_of_its_own_says_whether_the_encoder_or_the_machine_stands_F09(rng, noise, slip, frozen):
    rig, stuck_at = coarse_rig(1e-3)

    def stuck(stamp, x, xd):
        x[1], xd[1] = stuck_at, slip + noise * rng.normal()
        return stamp, x, xd
    rig.ticks(120, state=stuck)
    assert ('state_frozen' in rig.core.states.reasons) == frozen


@pytest.mark.parametrize('period', [0.1, 0.7])
def test_a_machine_that_swings_without_noise_and_then_stands_is_not_frozen_F09(period):
    rig = Rig().hold()
    for time in np.arange(0.0, 3.0, 1 / RATE):
        rig.ticks(1, state=lambda stamp, x, xd, t=time: (
            stamp, x + (1e-5 * np.sin(2.0 * np.pi * t / period) if t < 2.0 else 0.0), xd))
    assert 'state_frozen' not in rig.core.states.reasons and rig.core.states.state is State.HOLD


def test_at_rest_a_position_may_be_the_same_for_ever_F09():
    rig = Rig().hold()
    at = rig.plant.x.copy()
    assert rig.ticks(200, state=lambda stamp, x, xd: (stamp, at.copy(), np.zeros(4))).state is HOLD


def with_all_joints(rig, change=lambda positions, names: None):
    names = list(rig.machine.joints)

    def state(stamp, x, xd):
        positions = rig.machine.joint_state(x)[1].copy()
        change(positions, names)
        return stamp, x, xd, 0.0, positions
    return state


def test_a_redundant_sensor_that_stands_still_while_its_loop_moves_F09():
    rig = Rig()
    rig.core.inputs.state_check.measure(rig.machine.joints)
    rig.run()
    at = rig.machine.joint_state(rig.plant.x)[1][rig.machine.joints.index('lift_boom')]

    def stuck(positions, names):
        positions[names.index('lift_boom')] = at
    assert rig.ticks(50, state=with_all_joints(rig)).state is RUN
    rig.until(STOPPING, 300, state=with_all_joints(rig, stuck))
    assert 'lift_boom' in rig.core.states.reasons['state_frozen']


def test_a_stroke_that_stands_still_while_other_joints_of_its_loop_move_F09():
    rig = Rig(plausibility={'velocity_residual': 10.0, 'freeze_speed': 1.0})
    rig.core.inputs.state_check.measure(rig.machine.joints)
    rig.run()
    at = rig.plant.x[1]

    def stuck(stamp, x, xd):
        positions = rig.machine.joint_state(x)[1].copy()
        x[1] = at
        return stamp, x, xd, 0.0, positions
    rig.until(STOPPING, 200, state=stuck)
    assert 'the others of its loop stand still' in rig.core.states.reasons['state_frozen']


def test_a_coarse_sensor_of_a_barrel_at_the_turn_of_its_swing_is_not_stuck_F09():
    machine, where = Rig().machine, Rig().machine.joints.index('lift_barrel')
    strokes = np.linspace(0.02, 0.48, 400)
    swing = [machine.joint_state(np.array([0.0, s, 0.3, 0.3]))[1][where] for s in strokes]
    turn = strokes[int(np.argmax(swing))] if 0 < int(np.argmax(swing)) < 399 else strokes[int(np.argmin(swing))]
    assert 0.05 < turn < 0.45
    rig = Rig(position=np.array([0.0, turn - 0.015, 0.3, 0.3]))
    rig.core.inputs.state_check.measure(rig.machine.joints)

    def coarse(positions, names):
        positions[where] = np.round(positions[where] / 4e-4) * 4e-4
    rig.hold()
    rig.follow(np.array([0.0, turn + 0.015, 0.3, 0.3]), 1.0)
    rig.ticks(600, state=with_all_joints(rig, coarse))
    assert rig.state is HOLD and not rig.core.states.reasons


def test_positions_and_velocities_that_disagree_F11():
    rig = Rig('valve').run()
    suspect = lambda stamp, x, xd: (stamp, x, xd + [0.0, 0.03, 0.0, 0.0])   # noqa: E731
    wrong = lambda stamp, x, xd: (stamp, x, xd + [0.0, 0.06, 0.0, 0.0])     # noqa: E731
    rig.ticks(30, state=suspect)
    assert rig.state is RUN and rig.counts['velocity_suspect'] > 0
    rig.ticks(60)
    assert rig.until(STOPPING, 30, state=wrong) <= 26 and not rig.core.states.state_valid
    assert 'F11' in rig.core.states.reasons['velocity_residual']


def test_a_velocity_that_lacks_less_than_the_residual_adds_up_F11():
    rig = Rig('valve').run()
    assert 0.02 < abs(rig.output.desired[1, 1]) < rig.core.declaration.plausibility.velocity_residual

    def less(stamp, x, xd):
        xd[1] *= 0.2
        return stamp, x, xd
    assert rig.until(STOPPING, 75, state=less) > 10 and 'mm' in rig.core.states.reasons['velocity_residual']


@pytest.mark.parametrize('lag', [0.005, 0.025])
def test_velocities_that_lag_as_filters_let_them_are_sound_F11(lag):
    rig, filtered = Rig('valve').run(), None

    def late(stamp, x, xd):
        nonlocal filtered
        filtered = xd.copy() if filtered is None else filtered + (xd - filtered) / (RATE * lag)
        return stamp, x, filtered.copy()
    rig.ticks(800, state=late)
    assert 'velocity_residual' not in rig.counts and rig.state < STOPPING


def test_loops_whose_joints_disagree_F12():
    rig = Rig().run()
    rig.ticks(5, state=lambda *state: (*state, 0.003))
    assert rig.state is RUN and rig.counts['closure_suspect'] == 5
    rig.tick(state=lambda *state: (*state, 0.006))
    assert rig.state is STOPPING and not rig.core.states.state_valid
    rig = Rig().run()
    assert rig.tick(state=lambda *state: (*state, np.nan)).state is STOPPING


def test_a_loop_in_another_assembly_mode_F12():
    rig = Rig()
    rig.core.inputs.state_check.measure(rig.machine.joints)
    rig.run()

    def flipped(positions, names):
        positions[names.index('lift_boom')] += 1.5
    assert rig.tick(state=with_all_joints(rig, flipped)).state is SAFE
    assert 'assembly' in rig.core.states.reasons['branch_flip']


# the parts alone


def test_stamps_may_be_old_or_early_up_to_what_is_declared_F02_F03():
    one = MeasuredInput('state', Timeouts(), 5_000_000, 0.002)
    now = WALL
    assert one.refuse(now - 20_000_000, now) is None and one.refuse(now - 20_000_001, now)[0] == OLD
    assert one.refuse(now + 5_000_000, now) is None and one.refuse(now + 5_000_001, now)[0] == FUTURE
    assert one.refuse(0, now)[0] == UNSTAMPED and one.silent(0) and one.age(0) is None
    one.accept(now, now + 3_000_000, 7)
    assert one.age(1_000_007) == 4_000_000 and not one.silent(20_000_007) and one.silent(20_000_008)
    assert one.refuse(now, now)[0] == ORDER and one.refuse(now - 1, now)[0] == ORDER and one.in_disorder == 2
    one.accept(now + 4 * T, now + 4 * T, 9)
    assert (one.missed, one.in_disorder) == (3, 0)
    one.rebase(-500)
    assert one.stamp == now + 4 * T - 500


def test_a_clock_that_is_slewed_has_not_jumped_F31():
    watch, ros = ClockWatch(False), WALL
    for k in range(1000):
        ros += T + 40_000       # 2 % fast
        assert watch.update(k * T, ros) == 0 and watch.clock == k * T
    assert watch.update(1000 * T, ros + T + 1_000_000) == 0 and watch.jumps == 0
    assert watch.update(1001 * T, ros + 2 * T - 1) == -1_000_001 and watch.jumps == 1
    assert watch.update(1002 * T, ros + 3 * T - 1) == 0


def test_late_cycles_are_counted_by_the_slots_they_left_out_F30():
    watch, now = CycleWatch(0.002), 0
    for gap, missed in ((1.0, 0), (0.1, 0), (1.7, 0), (1.8, 1), (2.0, 2), (4.0, 5), (1.0, 5)):
        now += round(gap * T)
        watch.update(now)
        assert watch.missed == missed
    assert watch.run == 0 and watch.recent == 5 and not watch.overrun
    watch.update(now + 2 * T)
    assert watch.overrun == '6 cycles of the last second came too late'
    for _ in range(600):
        now += T
        watch.update(now + 2 * T)
    assert watch.recent == 0 and watch.missed == 6 and not watch.overrun
    watch.update(now + 6 * T)
    assert watch.overrun == '3 cycles in a row came too late'


def test_the_largest_share_is_that_of_numpy(rng):
    values, limits = rng.normal(size=4), rng.uniform(0.1, 2.0, 4)
    shares = np.abs(values) / limits
    assert plausibility.largest_share(values, limits) == (shares.argmax(), pytest.approx(shares.max()))
    assert plausibility.largest_share(values, np.full(4, np.inf)) == (0, 0.0)


def estimates(positions, rates, reference, period=0.002):
    """(N,) positions on which a law may act, of one coordinate whose reference has this rate."""
    path = np.full((3, 2), np.nan)
    memory, desired, found = np.zeros((5, 1)), np.array([[0.0], [reference], [0.0]]), []
    memory[plausibility.MOST_ADDED] = 0.01
    for k, (x, xd) in enumerate(zip(positions, rates)):
        estimate = np.empty((2, 1))
        plausibility.go_on(memory, path, np.array([x]), np.array([xd]), desired, period if k else np.nan, estimate)
        found.append(estimate[0, 0])
    return np.array(found)


@pytest.mark.parametrize('rates, speed', [(np.zeros(50), 0.1), (1e-3 * (-1.0) ** np.arange(50), 0.0),
                                          (0.03 + 1e-3 * (-1.0) ** np.arange(50), 0.03)],
                         ids=['stuck', 'standing', 'moving'])
def test_a_position_that_stays_goes_on_by_its_velocity_or_with_its_reference(rates, speed):
    assert estimates(np.full(50, 0.2), rates, 0.1) == pytest.approx(0.2 + 0.002 * speed * np.arange(50), abs=2e-6)


def test_a_coarse_encoder_is_smoothed_without_a_lead():
    step, true = 1e-4, 0.2 + 2e-5 * np.arange(500)
    found = estimates(np.round(true / step) * step, 0.01 + 1e-3 * (-1.0) ** np.arange(500), 0.01)
    assert abs((found - true)[50:].mean()) < 0.2 * step and np.abs(found - true)[50:].max() < 0.6 * step


@pytest.mark.parametrize('lie', [1.0, -1.0, 0.0, 2.0])
def test_a_law_gets_the_middle_of_measured_rate_that_of_positions_and_reference(rng, lie):
    """In NumPy, from states in uneven steps, some of which follow a break; the second coordinate rests."""
    memory, path, seen = np.zeros((5, 2)), np.full((9, 3), np.nan), []
    t, x, desired = 0.0, np.array([0.2, 0.3]), np.zeros((3, 2))
    for k in range(400):
        desired = np.array([[0.0, 0.0], [0.1 * np.sin(0.05 * k), 0.0], rng.normal(size=2)])
        dt = np.nan if k % 50 == 0 else rng.uniform(0.003, 0.009)
        t, x = t + np.nan_to_num(dt), x + rng.normal(size=2) * 1e-4 + np.nan_to_num(dt) * desired[1]
        xd, estimate = lie * desired[1] + rng.normal(size=2) * 1e-3, np.empty((2, 2))
        seen = [*([] if np.isnan(dt) else seen), (t, x)]
        goes_on, differs = plausibility.go_on(memory, path, x, xd, desired, dt, estimate)
        expected, before = xd, [state for state in seen[:-1] if t - state[0] >= plausibility.RATE_S - 1e-12]
        if desired[1].any() and len(seen) > 1:
            begun, start = before[-1] if before else seen[0]
            expected = np.median([xd, (x - start) / (t - begun), desired[1] + dt * desired[2]], axis=0)
        assert estimate[1] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert differs == (estimate[1] != xd).any() and not goes_on and (estimate[0] == x).all()
