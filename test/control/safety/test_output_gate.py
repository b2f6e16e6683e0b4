"""The gate and the ramp: whatever is asked of them, what leaves is finite, in its limits and in its rate."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from hypothesis.stateful import RuleBasedStateMachine, rule
from support.control.safety_declarations import ACTUATORS, LIMITS, MS, PERIOD, T, contents, declaration

from psdyn_ros import PsdynError
from psdyn_ros.control.safety.output_gate import GateError, OutputGate
from psdyn_ros.control.safety.output_ramp import EASE, OutputRamp

DECLARATION = declaration()
MOST = np.array([3e4, 1.0, 1.5e7, 0.3])         # of commands, in the order of the actuators
RATE = np.array([1e6, 50.0, 1e9, 5.0])          # per s
STEP = RATE * PERIOD
SMALL = 0.1 * np.minimum(MOST, STEP)
STOP_TIME = 500 * MS
NASTY = [math.nan, math.inf, -math.inf]
SECOND = 1000 * MS

numbers = st.floats() | st.floats(-2e7, 2e7) | st.sampled_from([*NASTY, 5e-324, -5e-324, 1e308, -1e308, 0.0, -0.0])
commands = arrays(float, 4, elements=numbers)


def gate(limits=LIMITS, declared=DECLARATION):
    return OutputGate(declared, limits, PERIOD)


def passed(g, command, dt=PERIOD):
    return g.filter_command(np.asarray(command, dtype=float), 7, 7, dt)


# the gate

def test_the_declaration_is_what_these_tests_suppose():
    assert DECLARATION.command_limit.tolist() == MOST.tolist()
    assert DECLARATION.command_rate.tolist() == RATE.tolist()


def test_a_command_that_is_right_passes_as_it_is():
    g, command = gate(), SMALL * [1, -1, -1, 1]
    out = passed(g, command)
    assert out is not command
    assert out.dtype == float
    assert out.tolist() == command.tolist()
    assert g.last.tolist() == command.tolist()
    # to the last bit, also of actuators that are coupled, whatever came before
    for k in range(20):
        other = command * math.sin(k * k)
        assert passed(g, other).tolist() == other.tolist()
    assert g.range_clamps == g.rate_clamps == [0] * 4


def test_an_output_does_not_change_afterwards():
    g = gate()
    out = passed(g, SMALL)
    out[:] = math.nan
    assert passed(g, SMALL).tolist() == SMALL.tolist()
    g.last[:] = math.nan
    assert passed(g, 5 * STEP).tolist() == pytest.approx((SMALL + STEP).tolist())


@pytest.mark.parametrize('stamp, now', [(6, 7), (8, 7), (0, 7), (None, 7), (math.nan, 7)])
def test_F16_a_command_of_another_cycle(stamp, now):
    with pytest.raises(GateError, match=re.escape(f'the command is of the cycle at {stamp} ns; expected this one, 7')):
        gate().filter_command(SMALL, stamp, now, PERIOD)


@pytest.mark.parametrize('command', [
    None, 3.0, SMALL.tolist(), SMALL[:3], np.zeros(5), np.zeros((4, 1)), np.zeros(()), SMALL.astype(np.float32),
    SMALL.astype(int), SMALL.astype(complex), SMALL.astype(object), np.ma.array(SMALL), 'text' * 1000,
], ids=lambda value: type(value).__name__)
def test_F16_a_command_that_is_no_array_of_this_machine(command):
    g = gate()
    with pytest.raises(GateError, match='expected a float64 array of 4$') as error:
        g.filter_command(command, 7, 7, PERIOD)
    assert len(str(error.value)) < 200
    assert np.isnan(g.last).all()


@pytest.mark.parametrize('value', NASTY)
@pytest.mark.parametrize('i', range(4))
def test_F16_a_command_that_is_not_finite(i, value):
    g = gate()
    passed(g, SMALL)
    command = 1e3 * MOST
    command[i] = value
    with pytest.raises(GateError, match=f"the command of '{ACTUATORS[i]}' is {value}; expected a finite one"):
        passed(g, command)
    assert g.last.tolist() == SMALL.tolist()
    assert g.range_clamps == g.rate_clamps == [0] * 4, 'nothing was taken from a command that does not leave'


@pytest.mark.parametrize('dt', NASTY)
def test_a_time_that_is_not_finite(dt):
    with pytest.raises(GateError, match=f'the command comes {dt} s after the one before'):
        passed(gate(), SMALL, dt)


def test_the_refusal_is_an_error_of_the_package():
    assert issubclass(GateError, PsdynError)


@pytest.mark.parametrize('sign', [1.0, -1.0])
@pytest.mark.parametrize('i', range(4))
def test_the_range_of_each_actuator(i, sign):
    g, command = gate(), np.zeros(4)
    for value, clamps in ((MOST[i], 0), (np.nextafter(MOST[i], np.inf), 1), (1e308, 2)):
        command[i] = sign * value
        out = passed(g, command)
        assert out[i] == sign * MOST[i]
        assert g.range_clamps == [clamps if k == i else 0 for k in range(4)] and g.clamped == clamps
    assert g.rate_clamps == [0] * 4


@pytest.mark.parametrize('sign', [1.0, -1.0])
@pytest.mark.parametrize('i', range(4))
def test_the_rate_of_each_actuator(i, sign):
    g, command = gate(), np.zeros(4)
    passed(g, command)
    command[i] = sign * STEP[i]
    assert passed(g, command)[i] == command[i]
    assert g.rate_clamps == [0] * 4
    command[i] = sign * np.nextafter(2 * STEP[i], np.inf)
    out = passed(g, command)
    assert out[i] == sign * 2 * STEP[i]
    assert g.rate_clamps == [int(k == i) for k in range(4)]
    command[i] = -sign * MOST[i]
    assert passed(g, command)[i] == pytest.approx(sign * STEP[i], rel=1e-12)
    assert g.rate_clamps == [2 * (k == i) for k in range(4)]
    assert np.delete(passed(g, command), i).tolist() == [0.0] * 3


@pytest.mark.parametrize('dt, periods', [(0.0, 0.5), (-1e308, 0.5), (0.5 * PERIOD, 0.5), (PERIOD, 1.0),
                                         (1.5 * PERIOD, 1.5), (2.0 * PERIOD, 2.0), (1.0, 2.0), (1e308, 2.0)])
def test_the_time_of_a_rate_is_half_a_period_to_two(dt, periods):
    g = gate()
    passed(g, np.zeros(4))
    assert passed(g, MOST, dt)[0] == pytest.approx(periods * STEP[0], rel=1e-12)


def test_range_comes_before_rate():
    g = gate()
    passed(g, MOST)
    # force and pressure go the same share of their way, as far as the force may
    way = [STEP[0], STEP[1], STEP[0] / MOST[0] * MOST[2], STEP[3]]
    assert passed(g, -1e308 * np.ones(4)).tolist() == pytest.approx((MOST - way).tolist())
    assert g.range_clamps == g.rate_clamps == [1] * 4 and g.clamped == 4


def test_the_limits_of_the_machine_hold_whatever_is_declared():
    tighter = replace(LIMITS, effort=np.array([1e4, 0.5, 1e4, 1e4]), velocity=np.array([0.1, 0.1, 0.1, 0.2]))
    assert passed(gate(tighter), 1e9 * np.ones(4)).tolist() == [1e4, 1.0, 1.5e7, 0.2]
    wider = replace(LIMITS, effort=LIMITS.effort * 9, velocity=LIMITS.velocity * 9)
    assert passed(gate(wider), 1e9 * np.ones(4)).tolist() == MOST.tolist()


# the safe output

def test_the_safe_output_of_each_kind():
    out = gate().safe()
    assert out[:2].tolist() == [3000.0, 0.0]
    assert np.isnan(out[2:]).all(), 'without a pressure that holds it the actuator is left out'
    held = gate().safe(np.array([1.0, 0.5, 4e6, 0.3]))
    assert held[:3].tolist() == [3000.0, 0.0, 4e6]
    assert math.isnan(held[3])


def test_valves_on_their_way_to_neutral_are_open_as_far_as_is_given():
    g = gate()
    out = g.safe(None, np.array([0.0, 0.25, 0.0, 0.0]))
    assert out[:2].tolist() == g.last[:2].tolist() == [3000.0, 0.25]
    assert np.isnan(out[2:]).all()


@pytest.mark.parametrize('value, held', [(1.5e7, 1.5e7), (1e308, 1.5e7), (-1e308, -1.5e7), (-3.0, -3.0)])
def test_what_holds_the_load_stays_in_its_limits(value, held):
    assert gate().safe(np.array([0.0, 0.0, value, 0.0]))[2] == held


@pytest.mark.parametrize('holding', [None, 4e6, [0.0, 0.0, 4e6, 0.0], np.zeros(3), np.zeros((4, 4)), 'text',
                                     np.array([0.0, 0.0, math.nan, 0.0]), np.array([0.0, 0.0, math.inf, 0.0]),
                                     np.array([None] * 4), np.ma.array(np.zeros(4))], ids=str)
def test_without_what_holds_the_load_the_actuator_is_left_out(holding):
    out = gate().safe(holding)
    assert out[:2].tolist() == [3000.0, 0.0]
    assert np.isnan(out[2:]).all()


def test_a_machine_without_gravity_compensation_needs_no_holding_command():
    changed = contents()
    changed['actuators']['tilt']['safe_output']['pressure'] = 'brake'
    out = gate(declared=declaration(changed)).safe(np.ones(4))
    assert out[:2].tolist() == [3000.0, 0.0]
    assert np.isnan(out[2:]).all()


def test_the_safe_output_is_given_at_once_and_rates_are_counted_from_there():
    g = gate()
    passed(g, MOST)
    g.safe(np.zeros(4))
    assert g.last[:3].tolist() == [3000.0, 0.0, 0.0]
    out = passed(g, -MOST)
    pressure = -MOST[2] * STEP[0] / (MOST[0] + 3000.0)
    assert out.tolist() == pytest.approx([3000.0 - STEP[0], -STEP[1], pressure, -MOST[3]])
    assert g.rate_clamps == [1, 1, 1, 0], 'what was left out may begin anywhere'


def test_a_safe_output_does_not_change_afterwards():
    g = gate()
    g.safe()[:] = 5.0
    assert g.last[0] == 3000.0
    assert g.safe()[0] == 3000.0


class AnyCommands(RuleBasedStateMachine):
    """Commands and safe outputs in any order."""

    def __init__(self):
        super().__init__()
        self.g, self.last = gate(), np.full(4, math.nan)

    @rule(command=commands, dt=numbers, late=st.integers(-1, 1))
    def command(self, command, dt, late):
        before = command.copy()
        try:
            out = self.g.filter_command(command, 7 + late, 7, dt)
        except GateError:
            assert late or not np.isfinite(command).all() or not math.isfinite(dt)
            out = self.last
        else:
            assert not late
            assert np.isfinite(out).all()
            assert (np.abs(out) <= MOST).all()
            change = np.abs(out - self.last)
            assert not (change > RATE * min(max(dt, 0.5 * PERIOD), 2.0 * PERIOD) * (1 + 1e-9)).any()
            wanted = np.clip(command, -MOST, MOST)
            assert not (np.abs(out - wanted) > np.abs(self.last - wanted)).any(), 'away from the command'
        assert np.array_equal(command, before, equal_nan=True)
        assert np.array_equal(self.g.last, out, equal_nan=True)
        self.last = out

    @rule(holding=commands | st.none())
    def safe(self, holding):
        self.last = self.g.safe(holding)
        assert (np.isnan(self.last) | (np.abs(self.last) <= MOST)).all()
        assert self.last[:2].tolist() == [3000.0, 0.0]


TestAnyCommands = AnyCommands.TestCase
TestAnyCommands.settings = settings(max_examples=examples(60), stateful_step_count=20)


# the ramp

def ramp(command, velocity, target, now=0):
    r = OutputRamp(DECLARATION)
    r.start(np.array(command, float), np.array(velocity, float), np.array(target, float), now)
    return r


def test_a_ramp_has_the_declared_deceleration_with_an_ease():
    r = ramp([1e4, 0.5, 2e6, 0.2], [0.1, 0.2, -0.3, 0.0], [2e3, 0.0, 1e6, 0.0], now=SECOND)
    # tilt takes 0.3 s from 0.3 m/s at 1 m/s^2, and takes that up, and gives it up, within 0.1 s
    for ms, left in ((0, 1.0), (50, 1 - 0.5 * 0.05 * 0.05 / 0.1 / 0.3), (100, 1 - 0.05 / 0.3), (200, 0.5),
                     (300, 0.05 / 0.3), (350, 0.5 * 0.05 * 0.05 / 0.1 / 0.3)):
        at = SECOND + ms * MS
        assert not r.done(at)
        assert r.at(at).tolist() == pytest.approx(
            [2e3 + left * 8e3, left * 0.5, 1e6 + left * 1e6, left * 0.2], rel=1e-10)
    assert not r.done(SECOND + 400 * MS - 1)
    assert r.done(SECOND + 400 * MS)
    assert r.at(SECOND + 400 * MS).tolist() == [2e3, 0.0, 1e6, 0.0]
    assert r.at(9 * SECOND).tolist() == [2e3, 0.0, 1e6, 0.0]


@pytest.mark.parametrize('seconds', [0.03, 0.3])
def test_a_ramp_is_the_mean_of_its_straight_line(seconds):
    r, t = ramp([0, 1.0, 0, 0], [0, -seconds, 0, 0], np.zeros(4)), np.linspace(0.0, 0.1, 100_001)
    for now in np.linspace(0.0, seconds + 0.099, 40):
        line = np.clip(1.0 - (now - t) / seconds, 0.0, 1.0)
        assert r.at(round(now * SECOND))[1] == pytest.approx(line.mean(), abs=1e-4)


@pytest.mark.parametrize('speed', [0.02, 0.05, 0.3])
def test_what_a_ramp_excites_cancels_as_far_as_its_way_lets_it(speed):
    period, step = 0.64, 0.0005
    t = np.arange(0.0, 1.0, step)
    swings, ways = [], []
    for swing_period in (0.0, period):
        r = OutputRamp(DECLARATION, swing_period)
        r.start(np.array([0.0, 1.0, 0.0, 0.0]), np.array([0.0, speed, 0.0, 0.0]), np.zeros(4), 0)
        left = np.array([r.at(round(now * SECOND))[1] for now in t])
        assert left[0] == 1.0 and left[-1] == 0.0 and (np.diff(left) <= 0.0).all()
        swings.append(abs(np.sum(np.diff(left) * np.exp(2j * np.pi * t[1:] / period))))
        ways.append(speed * left.sum() * step)
    # all of it where half a period costs less than the way that is allowed
    assert swings[1] < 0.01 if speed == 0.02 else swings[1] < swings[0]
    assert ways[1] - ways[0] == pytest.approx(min(0.007, 0.25 * period * speed), abs=1e-4)


def test_a_ramp_without_time_for_a_slope_waits_for_no_swing():
    r = OutputRamp(replace(DECLARATION, stop_time=EASE), 100.0)
    r.start(np.zeros(4), np.full(4, 0.1), np.zeros(4), 0)
    assert r.done(1)


def test_a_ramp_waits_for_no_swing_beyond_the_stop_time():
    r = OutputRamp(DECLARATION, 100.0)
    r.start(np.array(SMALL), np.full(4, 1e-4), np.zeros(4), 0)
    assert not r.done(STOP_TIME - 10) and r.done(STOP_TIME)


@pytest.mark.parametrize('i, speed, seconds', [(0, 0.6, 0.4), (1, -0.2, 0.3), (3, 0.3, 0.4)])
def test_each_actuator_has_its_own_deceleration(i, speed, seconds):
    velocity = np.zeros(4)
    velocity[i] = speed
    r = ramp(np.zeros(4), velocity, np.zeros(4))
    assert not r.done(round(seconds * SECOND) - 2)
    assert r.done(round(seconds * SECOND) + 2)


@pytest.mark.parametrize('i, command, target', [(0, 3e4, -2e4), (1, -1.0, 1.0), (2, 1e7, 0.0), (3, 0.3, 0.0)])
def test_a_ramp_is_no_faster_than_the_declared_rates(i, command, target):
    begin, end = np.zeros(4), np.zeros(4)
    begin[i], end[i] = command, target
    r = ramp(begin, np.zeros(4), end)
    ns = abs(command - target) / RATE[i] * SECOND
    assert not r.done(math.floor(ns) - 1)
    assert r.done(math.ceil(ns) + 1)


def test_a_part_of_a_nanosecond_makes_no_rate_too_fast():
    r = ramp([0.0, 1.0 / 3.0, 0.0, 0.0], np.zeros(4), np.zeros(4))     # 6666666.7 ns at 50 per s
    assert not r.done(6_666_666)
    assert r.done(6_666_667)


def test_a_ramp_is_over_after_the_stop_time():
    r = ramp(SMALL, [1e308, 0, 0, 0], np.zeros(4))
    assert not r.done(STOP_TIME - 1)
    assert r.done(STOP_TIME)


@pytest.mark.parametrize('target', [np.zeros(4), np.array([2e3, 0.0, 1e6, 0.1])])
def test_a_ramp_goes_on_with_the_slope_of_a_stop_in_progress(target):
    command, velocity = target + np.array([0.0, 0.5, 0.0, 0.2]), np.array([0.0, 0.2, 0.0, 0.3])
    whole, rest = ramp(command, velocity, target), OutputRamp(DECLARATION)
    elapsed = 60_000_000
    rest.start(whole.at(elapsed), velocity, target, elapsed, elapsed)
    for ms in range(0, 500, 20):
        assert rest.at(elapsed + ms * 1_000_000) == pytest.approx(whole.at(elapsed + ms * 1_000_000), abs=1e-12)


# 100 ms of ease are the most that may be over, and half of a ramp that is shorter than twice that
@pytest.mark.parametrize('speed, elapsed, ends', [(0.3, 10 * SECOND, 300 * MS), (0.03, 10 * SECOND, 65 * MS),
                                                  (0.3, 1, 400 * MS - 1), (0.3, 0, 400 * MS)])
def test_how_much_of_a_ramp_may_be_over_when_it_begins(speed, elapsed, ends):
    r = OutputRamp(DECLARATION)
    r.start(np.array([0.0, 0.5, 0.0, 0.0]), np.array([0.0, speed, 0.0, 0.0]), np.zeros(4), 0, elapsed)
    assert not r.done(ends - 1) and r.done(ends)


def test_a_ramp_from_rest_to_rest_is_over_at_once():
    r = ramp(np.zeros(4), np.zeros(4), np.zeros(4), now=5)
    assert r.done(5)
    assert r.at(5).tolist() == [0.0] * 4


def test_a_ramp_that_was_never_started_is_at_zero():
    r = OutputRamp(DECLARATION)
    assert r.done(0)
    assert r.at(0).tolist() == [0.0] * 4


def test_before_its_start_a_ramp_is_over():
    r = ramp(SMALL, np.ones(4), np.zeros(4), now=SECOND)
    assert r.done(SECOND - 1)
    assert r.at(SECOND - 1).tolist() == [0.0] * 4
    assert not r.done(SECOND)
    assert r.at(SECOND).tolist() == SMALL.tolist()


@pytest.mark.parametrize('value', NASTY)
def test_what_is_not_finite_is_rest(value):
    r = ramp([value, 0.5, value, 0.1], [value, 0.1, 0, 0], [5e3, value, 1e6, 0.0])
    assert r.at(0).tolist() == [5e3, 0.5, 1e6, 0.1]
    assert r.at(SECOND).tolist() == [5e3, 0.0, 1e6, 0.0]
    assert not r.done(200 * MS - 2)
    assert r.done(200 * MS + 2)


def test_commands_of_a_ramp_are_taken_within_their_limits():
    r = ramp(1e308 * np.ones(4), np.ones(4), -1e308 * np.ones(4))
    assert r.at(0).tolist() == MOST.tolist()
    assert r.at(SECOND).tolist() == (-MOST).tolist()


@settings(max_examples=examples(100))
@given(command=commands, velocity=commands, target=commands, start=st.integers(0, 10**18))
def test_a_ramp_is_finite_in_limits_and_in_rate(command, velocity, target, start):
    r = ramp(command, velocity, target, start)
    times = [start + k * T for k in range(0, STOP_TIME // T + 2, 5)]
    out = np.array([r.at(now) for now in times])
    assert np.isfinite(out).all()
    assert (np.abs(out) <= MOST * (1 + 1e-12)).all()
    assert (np.abs(np.diff(out, axis=0)) <= 5 * STEP * (1 + 1e-6)).all()
    ends = np.diff(out, axis=0)
    assert ((ends >= -1e-6 * MOST).all(0) | (ends <= 1e-6 * MOST).all(0)).all(), 'there and back'
    assert r.done(times[-1])
    assert not math.isnan(gate().filter_command(out[0], 0, 0, PERIOD).sum())
