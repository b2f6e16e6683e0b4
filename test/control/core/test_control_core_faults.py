"""The control core on the crane's plants: faults of mechanism and actuators, of run time, clocks and switches."""

import numpy as np
import pytest
from support.control.control_rig import MS, PROBATION, RATE, TARGET, WALL, Rig, T, crane
from support.machines import URDF

import psdyn_ros
from psdyn_ros.control.core.assembly import ControllerConfig, assemble, command_interfaces
from psdyn_ros.control.core.inputs import MeasuredState
from psdyn_ros.control.monitors.actuator_motion import EndStopCheck
from psdyn_ros.control.monitors.clock import OverrunCheck
from psdyn_ros.control.monitors.momentum import MomentumCheck
from psdyn_ros.control.monitors.singularity import SingularityCheck, toggle_measure
from psdyn_ros.control.monitors.tracking import TrackingCheck
from psdyn_ros.control.safety.fault_table import Result, State
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.safety import read_safety
from psdyn_ros.simulation.plant import Plant
from psdyn_ros.tools.demo.demonstration import demonstration

STANDBY, RUN, DEGRADED, HOLD, STOPPING, SAFE = State
LEVELS = ('effort', 'valve')


def test_near_a_singularity_the_reference_slows_down_stops_and_may_lead_away_F13():
    rig = Rig()
    measure = rig.core.checks[SingularityCheck]
    rig.run()
    here = measure.measure
    rig = Rig(plausibility={'sigma_slow': 0.999, 'sigma_stop': here - 0.05})
    rig.hold()
    towards = TARGET if measure_of(TARGET) < measure_of(rig.plant.x) else 2.0 * rig.plant.x - TARGET
    rig.law.reference.limits = type(rig.law.reference.limits)()     # which would not take it
    rig.follow(towards, 3.0)
    rig.ticks(400)
    assert rig.state is RUN and rig.core.selector.speed < 0.9 and rig.counts['singular_near'] > 0
    rig = Rig(plausibility={'sigma_slow': 0.999, 'sigma_stop': measure_of(crane().initial_position) - 0.002}).hold()
    rig.law.reference.limits = type(rig.law.reference.limits)()
    rig.follow(towards, 3.0)
    rig.tick()
    while rig.state is not HOLD:
        rig.tick()
        assert rig.core.checks[SingularityCheck].measure > measure_of(towards) and len(rig.outputs) < 2000
    assert 'singular' in rig.counts
    rig.ticks(400)
    assert rig.state is HOLD and np.abs(rig.plant.xd).max() < 1e-4
    away = 2.0 * rig.machine.initial_position - towards
    rig.follow(away, 3.0)
    rig.ticks(200)
    assert rig.state is RUN


def measure_of(x):
    return toggle_measure(crane(), np.asarray(x))[0]


@pytest.mark.parametrize('level', LEVELS)
def test_near_an_end_stop_only_what_leads_outward_is_clamped_and_integrals_are_held_then_F14(level):
    top = crane().limits.upper[1]
    rig = Rig(level).hold()
    frozen = []
    freeze, rig.law.freeze = rig.law.freeze, lambda mask: (frozen.append(np.array(mask)), freeze(mask))
    for distance, outward in ((0.004, True), (0.004, False), (-0.002, True), (-0.002, False)):
        rig.core.inputs.state_check.forget()
        rig.core.inputs.state_check.x = x = np.array([0.0, top - distance, 0.3, 0.3])
        command = rig.law.holding(x) + (0.9 if level == 'valve' else 50000.0) * (1.0 if outward else -1.0)
        before = command.copy()
        rig.core.checks[EndStopCheck].soften(rig.core.gate, command, x, np.zeros(4), True)
        assert (command[[0, 2, 3]] == before[[0, 2, 3]]).all()
        assert np.broadcast_to(frozen[-1], 4).tolist() == [False, outward, False, False]
        if not outward:
            assert command[1] == before[1]
        elif distance > 0.0:
            assert rig.law.holding(x)[1] < command[1] < before[1]
        else:
            assert command[1] == rig.law.holding(x)[1]
    rig.core.checks[EndStopCheck].soften(rig.core.gate, command, crane().initial_position, np.zeros(4), False)
    assert not frozen[-1].any()


def test_a_reference_behind_an_end_stop_is_not_followed_into_it_F14():
    top = crane().limits.upper[3]
    x = crane().initial_position
    x[3] = top - 0.012
    rig = Rig('valve', position=x, declared={'tracking_tolerance': np.full(4, 0.1)}).hold()
    x[3] = top + 0.005
    rig.law.reference.hold(x)
    rig.ticks(400)
    assert rig.state is HOLD and rig.counts['end_stop'] > 0 and top - 0.01 < rig.plant.x[3] <= top + 1e-3


@pytest.mark.parametrize('grows', (True, False))
def test_commands_at_their_limits_while_the_error_grows_degrade_F15(grows):
    # or F11 would have found it first
    rig = Rig(declared={'tracking_tolerance': np.full(4, 0.008)}, plausibility={'velocity_residual': 10.0}).run()
    update, clipped = rig.law.update, []

    def at_its_limit(*inputs):
        clipped.append(True)
        rig.law.saturations[1] += 1
        return update(*inputs)
    rig.law.update = at_its_limit
    behind = lambda stamp, x, xd: (stamp, x - [0.0, grows * 6e-5 * len(clipped), 0.0, 0.0], xd)     # noqa: E731
    rig.ticks(101, state=behind)
    assert rig.state is RUN and rig.counts['clamped'] == 101
    rig.ticks(3, state=behind)
    assert rig.state is (DEGRADED if grows else RUN) and ('saturated' in rig.core.states.reasons) is grows
    rig.law.update = update
    rig.until(RUN, 60, state=behind)


@pytest.mark.parametrize('axis', range(4))
def test_a_law_with_a_wrong_integral_that_clips_its_efforts_stops_F39(axis):
    rig = Rig().run()
    for _ in range(4):
        rig.law._sum[axis] = 5.0
        rig.tick()
    assert rig.state is STOPPING and 'effort_suspect' in rig.counts and rig.law.saturations.max() >= 3


def test_an_effort_at_its_limit_is_no_fault_of_a_sound_law_F39():
    rig = Rig(declared={'tracking_tolerance': np.full(4, 0.3)}).hold()
    rig.law._law.limit[2] = 1.02 * abs(rig.law.holding(rig.plant.x)[2])
    rig.follow(rig.machine.initial_position + [0.4, 0.1, 0.1, 0.3], 2.0)
    rig.ticks(100)
    assert rig.state is RUN and rig.law.saturations[2] > 50 and 'effort_suspect' not in rig.counts


def test_enabling_forgets_what_the_motion_before_needed_F39():
    rig = Rig().hold()
    rig.core.disable(rig.now)
    rig.until(STANDBY, 10)
    rig.law._effort_terms.lack[:] = 2e3
    rig.core.enable(rig.now)
    for _ in range(5):
        assert rig.tick().command == pytest.approx(rig.law.holding(rig.plant.x), rel=1e-3, abs=1.0)


def test_what_was_added_to_a_frozen_position_ends_with_its_reference_F09():
    rig = Rig('valve').hold()
    rig._drive = lambda: None           # friction holds the machine
    rig.follow(rig.plant.x + [0.0, 0.0, 0.0, 0.001], 1.0)
    rig.ticks(round(RATE))
    assert rig.law.desired[0, 3] - rig.plant.x[3] > 9e-4
    rig.pressed = True
    rig.until(SAFE, 100)
    rig.pressed = False
    rig.ticks(5)
    rig.core.reset(rig.now)
    rig.until(STANDBY, 10)
    rig.core.enable(rig.now)
    rig.ticks(round(3 * RATE))
    assert rig.state is HOLD and (np.abs(rig.output.command) < 1e-3).all()


@pytest.mark.parametrize('bad', [np.full(4, np.nan), np.array([0.0, np.inf, 0.0, 0.0]), np.zeros(3), [0.0] * 4, None],
                         ids=['nan', 'inf', 'length', 'list', 'none'])
@pytest.mark.parametrize('start', ('hold', 'run'))
def test_an_output_that_must_not_leave_is_the_safe_one_in_the_same_cycle_F16(start, bad):
    rig = getattr(Rig(), start)()
    rig.law.update = lambda *_: bad
    assert rig.tick().state is SAFE and not rig.output.valid and np.isnan(rig.output.command).all()
    assert {'output_rejected', 'exception'} & set(rig.counts)


def test_commands_out_of_range_and_rate_are_clamped_F16(monkeypatch):
    # they would not come as far as the gate
    monkeypatch.setattr('psdyn_ros.control.monitors.oil_flow.FlowCheck.restrain', lambda *given: None)
    rig = Rig('valve').hold()
    rig.law.update = lambda *_: np.array([0.0, 5.0, -5.0, 0.0])
    rig.tick()
    assert np.abs(rig.output.command[1:3]).max() <= 50.0 * 2.0 / RATE + 1e-6
    rig.ticks(20)
    assert np.abs(rig.output.command[1:3]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize('level', LEVELS)
@pytest.mark.parametrize('leave', ('deactivate', 'disable'))
def test_leaving_in_motion_ends_in_a_stop_and_the_safe_output_F17(level, leave):
    rig = Rig(level).run()
    speed = np.abs(rig.plant.xd)
    getattr(rig.core, leave)(rig.now)
    taken = rig.until(STANDBY, 500)
    # on oil, the halves of a stop are half a period of its swing apart
    assert taken / RATE <= max(speed / rig.declaration.deceleration) + 0.15 + 0.5 * rig.law.swing_period
    assert np.abs(rig.plant.xd).max() < 0.2 * speed.max() and not rig.core.states.reasons
    if leave == 'deactivate':
        assert [rig.tick().valid for _ in range(2)] == [False, False] and rig.core.finished
        assert rig.tick() is None
        rig.core.activate(rig.now, rig.ros_now)
    assert rig.tick().state is STANDBY
    rig.core.enable(rig.now)
    rig.ticks(20)
    assert rig.state is HOLD


def test_deactivation_at_rest_or_safe_gives_the_safe_output_three_times_F17():
    for fault in (False, True):
        rig = Rig().activate()
        if fault:
            rig.core.fail(rig.now, 'broken')
            rig.tick()
        rig.core.deactivate(rig.now)
        assert [rig.tick().valid for _ in range(3)] == [False] * 3 and rig.core.finished and rig.tick() is None


# run time


@pytest.mark.parametrize('break_it', [
    lambda rig: setattr(rig.law, 'update', lambda *_: 1 / 0),
    lambda rig: setattr(rig.law.reference, 'at_rest', None) or setattr(rig.law.reference, 'path', None),
    lambda rig: setattr(rig.core._runner, 'run', None),
    lambda rig: setattr(rig.core.selector, 'set_speed', lambda *_: [][0]),
    lambda rig: rig.core.fail(rig.now, 'a callback broke')], ids=['law', 'reference', 'checks', 'selector', 'told'])
def test_an_exception_is_the_safe_output_in_the_same_cycle_F29(break_it):
    rig = Rig().run()
    break_it(rig)
    assert rig.tick().state is SAFE and not rig.output.valid and rig.counts['exception'] >= 1
    rig.ticks(5)
    assert rig.state is SAFE


def test_a_law_that_cannot_even_say_what_holds_the_load_does_not_break_the_stop_F29():
    rig = Rig().run()
    rig.law.update = rig.law.holding = rig.law.freeze = lambda *_: 1 / 0
    assert rig.tick().state is SAFE and not rig.output.valid


def test_overruns_are_counted_degrade_and_stop_F30():
    rig = Rig().run()
    rig.tick(cycle=False)
    rig.tick()
    assert rig.state is RUN and rig.core.checks[OverrunCheck].watch.missed == 1
    for _ in range(3):
        rig.tick(cycle=False)
    rig.tick()
    assert rig.state is DEGRADED and 'overrun' in rig.core.states.reasons
    rig = Rig().run()
    for _ in range(11):
        rig.tick(cycle=False)
    assert rig.tick().state is STOPPING and rig.core.states.state_valid and 'output_late' in rig.core.states.reasons


@pytest.mark.parametrize('level', LEVELS)
@pytest.mark.parametrize('missed, state', [(60, SAFE), (200, SAFE), (30, None)])
@pytest.mark.parametrize('first', ['new state', 'no state'])
def test_after_a_gap_in_which_the_receiver_acted_nothing_moves_the_machine_again_F30(level, missed, state, first):
    """The last command before the gap is in force no more: a ramp of it would be a motion that nobody released."""
    rig = Rig(level).run()
    rig.ticks(150)
    assert np.abs(rig.plant.xd).max() > 0.05
    rig.output = None                       # the receiver gives its own safe output
    for _ in range(missed):
        rig.tick(state=lambda *measured: None, pressures=False, cycle=False)
    before, speed = rig.plant.x.copy(), np.abs(rig.plant.xd).max()
    rig.tick(**({} if first == 'new state' else {'state': lambda *measured: None}))
    assert rig.state >= STOPPING and rig.core.states.reasons.keys() & {'output_lost', 'output_late', 'state_lost'}
    assert state is None or rig.state is state
    rig.ticks(300)
    assert rig.state is SAFE
    assert np.abs(rig.plant.x - before).max() < 0.003 + 0.1 * speed


def test_more_than_one_percent_of_late_cycles_in_a_second_degrades_F30():
    rig = Rig().run()
    for _ in range(6):
        assert rig.state is RUN
        rig.ticks(20)
        rig.tick(cycle=False)
    rig.tick()
    assert rig.state is DEGRADED
    rig.until(RUN, 600)


@pytest.mark.parametrize('jump', [-3_600_000 * MS, -60 * MS, -40 * MS, 40 * MS, 60 * MS, 1000 * MS])
@pytest.mark.parametrize('level', LEVELS)
def test_a_jump_of_the_wall_clock_changes_no_motion_F31(level, jump):
    commands = []
    for by in (0, jump):
        rig = Rig(level).run(0.3)
        rig.ros_jump = by
        first = len(rig.outputs)
        stamp = rig.output.stamp
        for _ in range(100):
            rig.slot += 1
            rig._drive()
            rig.core.take_emergency_stop(False, rig.now)
            if level == 'valve':
                rig.core.take_pressures(rig.ros_now, rig.ros_now, rig.now, rig.plant.fluid[:, :2].copy())
            assert rig.core.take_state(MeasuredState(*rig.measured()), rig.now, rig.ros_now) == ''
            rig.output = rig.core.step(rig.now, rig.ros_now)
            rig.outputs.append(rig.output)
        assert rig.state is RUN and rig.outputs[first].stamp == stamp + T + by
        told = abs(by) > 50 * MS
        assert told == ('clock_jump' in rig.counts) == ('warning' in [grade for grade, _ in rig.log])
        commands.append([output.command for output in rig.outputs[first:]])
    assert np.allclose(commands[0], commands[1], rtol=1e-6, atol=1e-6 * np.abs(commands[0]).max())


@pytest.mark.parametrize('by', (20 * MS, 90 * MS))
def test_the_clock_of_stamps_jumps_and_momentum_is_compared_as_before_F43(by):
    rig = Rig().run(0.3)
    found, largest = rig.core.checks[MomentumCheck]._memory.found, 0.0
    rig.ros_jump = by
    rig.slot += 1
    rig.output = rig.core.step(rig.now, rig.ros_now)    # without a state
    for _ in range(100):
        rig.tick()
        largest = max(largest, (np.abs(found[0]) / found[1]).max())
    assert 0.0 < largest < 0.02


def test_a_state_from_before_a_jump_is_one_missing_message_F31():
    rig = Rig().run()
    rig.ros_jump = 100 * MS
    rig.tick(state=lambda stamp, x, xd: (stamp - rig.ros_jump, x, xd))
    assert rig.refused and rig.state is RUN
    rig.ticks(10)
    assert not rig.refused and rig.state is RUN


class SimulatedRig(Rig):
    """Its clock of stamps is simulated time, its steady clock runs by itself."""

    wall = 9_000_000_000
    ros = 50 * T

    now = property(lambda self: self.wall)
    ros_now = property(lambda self: self.ros)

    def tick(self, **spoil):
        self.wall += round(T * self.slowness)
        self.ros += T
        return super().tick(**spoil)

    slowness = 1


@pytest.mark.parametrize('slowness', [1, 25])
def test_in_simulated_time_ages_count_that_and_a_pause_holds_F31(slowness):
    rig = SimulatedRig(simulated_time=True)
    rig.slowness = slowness
    rig.run()
    assert rig.state is RUN
    for _ in range(150):
        rig.wall += T
        rig.output = rig.core.step(rig.now, rig.ros_now)
    assert rig.state is HOLD and 'clock_paused' in rig.counts and rig.output.valid
    rig.ticks(400)
    assert rig.state is HOLD and np.abs(rig.plant.xd).max() < 1e-4
    rig.follow(TARGET, 3.0)
    rig.ticks(10)
    assert rig.state is RUN


def test_a_clock_that_is_ahead_of_the_states_neither_answers_the_next_one_nor_makes_a_motion_look_slower_F38():
    rig = SimulatedRig('valve', simulated_time=True).run()
    for _ in range(round(1.5 * RATE)):
        rig.ros, rig.wall = rig.ros + T, rig.wall + T
        early = rig.core.step(rig.now, rig.ros_now)     # the time of the next state, which has not come yet
        assert early.stamp == rig.output.stamp          # else a plant in lock-step would take it for the answer
        rig.ros, rig.wall = rig.ros - T, rig.wall - T
        rig.tick()
    assert rig.state is RUN and 'flow_suspect' not in rig.counts
    rig.wall, rig.ros = rig.wall + 2 * T, rig.ros + 2 * T
    assert rig.core.step(rig.now, rig.ros_now).stamp == rig.ros_now     # one is lost


@pytest.mark.parametrize('slowness', [0.05, 20])
def test_an_emergency_stop_is_as_old_as_the_slower_of_both_clocks_says_F36(slowness):
    rig = SimulatedRig(simulated_time=True)
    rig.slowness = slowness
    rig.hold()
    rig.pressed = None
    assert 49 <= rig.until(SAFE, 1100) <= (1001 if slowness < 1 else 51)
    rig = SimulatedRig(simulated_time=True)
    rig.slowness = slowness
    rig.hold()
    for k in range(300):        # 20 Hz of the wall, or of simulated time where that is slower
        rig.pressed = None if k % round(25 / min(slowness, 1.0)) else False
        rig.tick()
    assert rig.state is HOLD


def test_simulated_time_that_goes_back_stops_and_has_to_be_enabled_again_F31():
    rig = SimulatedRig(simulated_time=True).run()
    rig.ros, rig.output = 10 * T, None      # stamps go with the clock
    rig.tick()
    assert rig.state is STOPPING and not rig.core.states.state_valid and 'clock_reset' in rig.core.states.reasons
    rig.until(SAFE, 500)
    rig.ticks(100)
    rig.core.reset(rig.now)
    rig.tick()
    rig.core.enable(rig.now)
    rig.ticks(5)
    assert rig.state is HOLD


def test_a_stop_that_was_asked_for_is_no_error_in_the_log_whatever_else_is_degraded():
    rig = Rig().run()
    rig.core.report(rig.now, 'overrun', Result.FAIL, 'late')
    rig.tick()
    rig.core.disable(rig.now)
    rig.until(STANDBY, 500)
    assert rig.log[-3:] == [('info', 'RUN to DEGRADED: F30: late'), ('info', 'DEGRADED to STOPPING as asked'),
                            ('info', 'STOPPING to STANDBY')]
    rig = Rig().run()
    rig.core.report(rig.now, 'conflicting_commands', Result.FAIL, 'two publishers')
    rig.until(SAFE, 500)
    assert rig.log[-2:] == [('error', 'RUN to STOPPING: F32: two publishers'),
                            ('error', 'STOPPING to SAFE: F32: two publishers')]


def test_states_that_come_and_are_refused_are_told_with_the_last_reason_F01():
    rig = Rig().run()
    rig.tick(state=lambda stamp, x, xd: (stamp, x + np.nan, xd))
    for _ in range(2):
        rig.core.reject_state(rig.now, 'velocity_missing', 'velocity has 0 entries for 8 names')
        rig.tick(state=lambda *good: None)
    assert rig.core.states.reasons['state_missed'] == (
        'F01: the last state is 6.0 ms old, 3 refused since: velocity has 0 entries for 8 names')
    rig.ticks(round(PROBATION * RATE) + 5)
    rig.ticks(4, state=lambda *good: None)
    assert 'refused' not in rig.core.states.reasons['state_missed']


def test_what_only_the_node_sees_is_reported_F32():
    rig = Rig().run()
    rig.core.report(rig.now, 'conflicting_commands', Result.FAIL, 'two publishers')
    assert rig.tick().state is STOPPING and rig.core.states.state_valid
    assert rig.until(SAFE, 500) / RATE < 0.5 and np.abs(rig.plant.xd).max() < 0.02


# other machines


@pytest.mark.long
def test_a_machine_with_more_actuators_than_coordinates_runs_and_stops():
    machine = psdyn_ros.load(URDF / 'pkm_2pur2rpu.urdf')
    declaration = read_safety(find_config('pkm_2pur2rpu_safety.yaml'), machine.actuators,
                              command_interfaces('computed_torque', machine), machine.limits)
    core = assemble(ControllerConfig(machine, declaration, 'computed_torque', rate=RATE, emergency_stop=False))
    plant, output, slot = Plant(machine, period=1 / RATE, command_timeout=0.02), None, 0

    def ticks(count, measured=True):
        nonlocal output, slot
        for _ in range(count):
            slot += 1
            now = slot * T
            plant.step(output.command if output and output.valid else None, 1 / RATE)
            if measured:
                core.take_state(MeasuredState(WALL + now, plant.x.copy(), plant.xd.copy()), now, WALL + now)
            output = core.step(now, WALL + now)
        return now
    now = ticks(3)
    core.activate(now, WALL + now)
    core.enable(ticks(2))
    ticks(5)
    validated = core.validate_trajectory(demonstration(machine, 4.0))
    validated.advance(100.0)
    core.execute(validated, now)
    ticks(250)
    assert output.state is RUN and core.checks[TrackingCheck].share < 0.1 and output.command.shape == (4,)
    ticks(12, measured=False)
    assert output.state is STOPPING
    ticks(500, measured=False)
    assert output.state is SAFE and not output.valid
