"""Valve inversion: it undoes the flow of the plant, and a slow twin written from the equations finds the same."""

import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from psdyn_ros.api.hydraulics.integrator import HydraulicIntegrator
from psdyn_ros.api.hydraulics.statics import frictionless, hydraulic_records
from psdyn_ros.kernels.control.pressure_plausibility import Oil, speed_for
from psdyn_ros.kernels.control.valve_inversion import (
    MIN_PRESSURE_DROP_PA,
    command_for,
    limited,
    opening_for,
    pressure_command,
    velocity_command,
)
from psdyn_ros.kernels.hydraulics.records import (
    AT,
    BT,
    FLUID,
    HOLDING_A,
    HOLDING_B,
    PA,
    PB,
    PRESSURE_A,
    PRESSURE_B,
    SPOOL,
)
from psdyn_ros.kernels.runtime.compiler import entry

LIFT = 0                    # row of the cylinder that is looked at
SUPPLY, TANK = 190e5, 10e5  # of the crane
OPTIONS = ('plain', 'compensated', 'air', 'walls', 'leak', 'overlap', 'holding', 'cushion')


def records_of(crane, hydraulics, options):
    """(axes, cylinders, supply) of the crane whose lift cylinder has these options."""
    axes, cylinders, supply = hydraulic_records(crane, hydraulics)
    c = cylinders[LIFT]
    c['gain'] *= (1.0, 0.8, 0.9, 1.2)       # an asymmetric spool
    if 'compensated' in options:
        c['compensated'], c['margin'] = 1, 8e5
    if 'air' in options:
        c['air'] = 0.02
    if 'walls' in options:
        c['wall'], c['hose'], c['hose_a'], c['hose_b'] = 3e10, 6e8, 1e-3, 2e-3
    if 'leak' in options:
        c['leak'] = 1e-12
    if 'overlap' in options:
        c['overlap_up'], c['overlap_down'] = 0.05, 0.12
    if 'holding' in options:
        c['holding'], c['holding_gain'] = 1, 0.7 * c['gain'][PA]
    if 'cushion' in options:
        c['cushion_a'] = c['cushion_b'] = 0.25
        c['cushion_gain'] = 0.3 * c['gain'][PA]
    return axes, cylinders, supply


def spool_at(c, opening):
    """Where the spool is when the valve is open so far."""
    up, down = c['overlap_up'], c['overlap_down']
    return up + (1.0 - up) * opening if opening > 0.0 else (1.0 - down) * opening - down


@entry
def command_of(cylinders, supply, supply_pressure, pressure_a, pressure_b, stroke, rate, force_rate, blend=0.0):
    """Return the command within -1 to 1 of the first valve for a rate of force [N/s], as the valve law finds it."""
    c = cylinders[0]
    tank = supply[0]['return_pressure']
    o = opening_for(c, supply_pressure, tank, pressure_a, pressure_b, stroke, rate, force_rate)
    return limited(command_for(c, o, blend))


cases = given(options=st.sets(st.sampled_from(OPTIONS)), opening=st.floats(-1.0, 1.0).filter(lambda o: abs(o) > 1e-3),
              pressure_a=st.floats(TANK + MIN_PRESSURE_DROP_PA, SUPPLY - MIN_PRESSURE_DROP_PA),
              pressure_b=st.floats(TANK + MIN_PRESSURE_DROP_PA, SUPPLY - MIN_PRESSURE_DROP_PA),
              stroke=st.floats(0.01, 0.5), rate=st.floats(-0.3, 0.3))


@settings(max_examples=examples(150))
@cases
def test_the_command_gives_the_rate_of_force_that_the_plant_has(crane, hydraulics, options, opening, pressure_a,
                                                                 pressure_b, stroke, rate):
    axes, cylinders, supply = records_of(crane, hydraulics, options)
    plant = HydraulicIntegrator(frictionless(crane, hydraulics), axes, cylinders, supply, 1e-3)
    x, xd = crane.initial_position, np.zeros(4)
    x[1], xd[1] = stroke, rate
    fluid = np.full((3, FLUID), 50e5)
    fluid[:, SPOOL:] = 0.0
    fluid[LIFT, [PRESSURE_A, PRESSURE_B, HOLDING_A, HOLDING_B]] = pressure_a, pressure_b, 1.0, 1.0
    fluid[LIFT, SPOOL] = spool_at(cylinders[LIFT], opening)
    rates = plant.unpack(plant.rates(plant.pack(x, xd, fluid, np.zeros(4), [SUPPLY])))[2][LIFT]
    c = cylinders[LIFT]
    force_rate = c['area_a'] * rates[PRESSURE_A] - c['area_b'] * rates[PRESSURE_B]
    command = command_of(cylinders, supply, SUPPLY, pressure_a, pressure_b, stroke, rate, force_rate)
    assert command == pytest.approx(spool_at(c, opening), abs=1e-12 + 1e-12 / abs(opening))


@entry
def speed_of(cylinders, fluid, pressures, line, tank, stroke, command):
    """Return the speed [m/s] for which the check of commands takes that of the first valve."""
    return speed_for(cylinders[0], fluid, stroke, Oil(pressures, line, tank), command)


@settings(max_examples=examples(60))
@cases
def test_a_command_counts_as_for_the_speed_that_the_law_asked_for(crane, hydraulics, options, opening, pressure_a,
                                                                  pressure_b, stroke, rate):
    """Also where the flows of both chambers differ, as while their pressures rise together, for long on soft oil."""
    _, cylinders, supply = records_of(crane, hydraulics, options)
    command = command_of(cylinders, supply, SUPPLY, pressure_a, pressure_b, stroke, rate, 0.0)
    fluid = np.zeros(FLUID)
    fluid[[PRESSURE_A, PRESSURE_B, HOLDING_A, HOLDING_B]] = pressure_a, pressure_b, 1.0, 1.0
    speed = speed_of(cylinders, fluid, np.array([[pressure_a, pressure_b]]), SUPPLY, TANK, stroke, command)
    assert speed == pytest.approx(rate, abs=1e-9) or abs(command) == 1.0 and abs(speed) < abs(rate)


# the slow twin


def root(drop, linear):
    return math.copysign(math.sqrt(abs(drop)), drop) * (1.0 + (linear / drop) ** 2) ** -0.25


def restricted(gain, others):
    """Gain of orifices in series."""
    return (gain**-2 + sum(other**-2 for other in others)) ** -0.5


def force_rate_of(c, opening, pressure_a, pressure_b, stroke, rate):
    """F' of a piston, from the equations of cylinder and valve."""
    def flow(edge, drop, feeding, left, length):
        if feeding:
            if c['compensated']:
                drop = drop / (1.0 + (drop / c['margin']) ** 4) ** 0.25
            return c['gain'][edge] * abs(opening) * root(drop, c['linear'])
        others = [c['holding_gain']] if c['holding'][0] else []
        if length > left:
            others.append(c['cushion_gain'] / (1.0 - left / length))
        return -restricted(c['gain'][edge] * abs(opening), others) * root(drop, c['linear'])

    def modulus(pressure, volume, hose):
        softness = 1.0 / c['bulk']
        if c['air'] > 0.0:
            absolute = pressure + 101325.0
            free = c['air'] / (1.0 - c['air'])
            bubbles = free * (101325.0 / absolute) ** (1.0 / c['polytropic'])
            softness = (softness + bubbles / (c['polytropic'] * absolute)) / (1.0 + bubbles)
        return 1.0 / (softness + (volume - hose) / volume / c['wall'] + hose / volume / c['hose'])

    left = c['stroke'] - stroke
    if opening > 0.0:
        q_a = flow(PA, SUPPLY - pressure_a, True, stroke, c['cushion_a'])
        q_b = flow(BT, pressure_b - TANK, False, left, c['cushion_b'])
    else:
        q_a = flow(AT, pressure_a - TANK, False, stroke, c['cushion_a'])
        q_b = flow(PB, SUPPLY - pressure_b, True, left, c['cushion_b'])
    across = c['leak'] * (pressure_a - pressure_b)
    v_a, v_b = c['dead_a'] + c['area_a'] * stroke, c['dead_b'] + c['area_b'] * left
    rate_a = modulus(pressure_a, v_a, c['hose_a']) / v_a * (q_a - across - c['area_a'] * rate)
    rate_b = modulus(pressure_b, v_b, c['hose_b']) / v_b * (q_b + across + c['area_b'] * rate)
    return c['area_a'] * rate_a - c['area_b'] * rate_b


def searched(c, wanted, *state):
    """The opening in [-1, 1] with this rate of force, by bisection."""
    low, high = -1.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high) or 1e-18
        low, high = (low, middle) if force_rate_of(c, middle, *state) > wanted else (middle, high)
    return middle


@settings(max_examples=examples(100))
@cases
def test_a_search_through_the_equations_finds_the_same_opening(crane, hydraulics, options, opening, pressure_a,
                                                                pressure_b, stroke, rate):
    _, cylinders, supply = records_of(crane, hydraulics, options)
    c, state = cylinders[LIFT], (pressure_a, pressure_b, stroke, rate)
    wanted = force_rate_of(c, opening, *state)
    command = command_of(cylinders, supply, SUPPLY, *state, wanted)
    assert command == pytest.approx(spool_at(c, searched(c, wanted, *state)), abs=1e-10)


# limits


@pytest.fixture
def lift(crane, hydraulics):
    _, cylinders, supply = records_of(crane, hydraulics, {'overlap'})
    cylinders['leak'] = 0.0
    return cylinders[:1], supply


def inverted(lift, force_rate, *, blend=0.0, pressure_a=80e5, pressure_b=60e5, stroke=0.2, rate=0.0):
    return command_of(*lift, SUPPLY, pressure_a, pressure_b, stroke, rate, force_rate, blend)


def test_commands_are_clipped(lift):
    assert inverted(lift, 1e12) == 1.0 and inverted(lift, -1e12) == -1.0


def test_a_pressure_drop_counts_as_two_bar_at_least(lift):
    assert (inverted(lift, 1e4, pressure_a=SUPPLY + 30e5)
            == inverted(lift, 1e4, pressure_a=SUPPLY - MIN_PRESSURE_DROP_PA)
            == inverted(lift, 1e4, pressure_a=SUPPLY))
    assert inverted(lift, 1e4, pressure_a=SUPPLY - 2.0 * MIN_PRESSURE_DROP_PA) < inverted(lift, 1e4, pressure_a=SUPPLY)


def test_the_step_over_the_dead_band_is_spread_over_the_blend(lift):
    up, down = lift[0]['overlap_up'][0], lift[0]['overlap_down'][0]
    assert inverted(lift, 0.0) == 0.0
    assert inverted(lift, 1e-6) == pytest.approx(up, abs=1e-9)
    assert inverted(lift, -1e-6) == pytest.approx(-down, abs=1e-9)
    assert inverted(lift, 1e-6, blend=0.01) == pytest.approx(0.0, abs=1e-9)
    far = inverted(lift, 3e5)
    assert far > up + 0.05 and inverted(lift, 3e5, blend=0.01) == far
    lift[0]['jump'] = 1             # the valve's own electronics do it
    assert inverted(lift, 3e5) == pytest.approx((far - up) / (1.0 - up), rel=1e-12)


@pytest.mark.parametrize('place', range(6))
@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(lift, place, bad):
    state = [SUPPLY, 80e5, 60e5, 0.2, 0.0, 1e5]
    state[place] = bad
    assert math.isnan(command_of(*lift, *state))
    assert math.isnan(pressure_command(*lift, state[0], tuple(state[1:3]), *state[3:], 60.0))


@settings(max_examples=examples(200))
@given(state=st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=6, max_size=6))
def test_a_command_is_within_its_bounds_whatever_comes_in(crane, hydraulics, state):
    _, cylinders, supply = records_of(crane, hydraulics, OPTIONS)
    command = command_of(cylinders, supply, *state)
    assert -1.0 <= command <= 1.0 or math.isnan(command)


# what valves with electronics of their own do


def test_the_pressure_loop_asks_for_the_force_that_is_lacking(lift):
    c, state = lift[0][0], ((80e5, 60e5), 0.2, 0.1)
    force = c['area_a'] * 80e5 - c['area_b'] * 60e5
    wanted = force + 2e3
    expected = inverted(lift, 60.0 * 2e3, rate=0.1)
    command = pressure_command(*lift, SUPPLY, *state, wanted / c['area_a'], 60.0)
    assert command == pytest.approx(expected, rel=1e-9)
    assert pressure_command(*lift, SUPPLY, *state, 1e9, 60.0) == 1.0
    assert pressure_command(*lift, SUPPLY, *state, -1e9, 60.0) == -1.0


def test_a_compensated_valve_is_opened_in_proportion_to_the_flow(crane, hydraulics):
    _, cylinders, _ = records_of(crane, hydraulics, {'compensated', 'overlap'})
    c, one = cylinders[LIFT], cylinders[:1]
    for velocity, area, edge in ((0.05, c['area_a'], PA), (-0.05, c['area_b'], PB)):
        most = c['gain'][edge] * root(c['margin'], c['linear']) / area
        assert velocity_command(one, velocity) == pytest.approx(spool_at(c, velocity / most), rel=1e-12)
        assert velocity_command(one, 2.0 * math.copysign(most, velocity)) == math.copysign(1.0, velocity)
    assert velocity_command(one, 0.0) == 0.0
    assert math.isnan(velocity_command(one, math.nan))
