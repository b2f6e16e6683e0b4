"""Laws at force level on axes with dry friction: how it is overcome, and how an axis comes to rest."""

import numpy as np
import pytest
from conftest import thorough

from psdyn_ros.control import State
from psdyn_ros.control.laws.registry import make_law
from psdyn_ros.kernels.control.actuation import REST_BAND
from psdyn_ros.kernels.control.computed_torque import APPROACH_S
from psdyn_ros.tools.fault_campaign.bench import FRICTION, Bench, make_machine
from psdyn_ros.tools.fault_campaign.fault_trials import OPERATOR, prepare
from psdyn_ros.tools.fault_campaign.motion_trials import false_stops, with_wrong_model
from psdyn_ros.tools.studies.tracking_runs import EXACT, PERIOD, Mismatch, crane, oil

START, STILL = np.array([0.0, 0.2, 0.2, 0.2]), np.zeros(4)
MORE, LESS = Mismatch(inertia=0.9, friction=1.1), Mismatch(inertia=1.1, friction=0.9)   # than the machine has
STICTION = 500.0          # N above Coulomb friction, of which the law does not know


def resting_law():
    law = make_law('computed_torque', crane(), oil(), ('effort',) * 4, PERIOD)
    law.hold(START)
    return law


@pytest.mark.parametrize('off', [0.5, -1.0, 4.0, -20.0])
def test_an_axis_that_is_off_at_rest_is_brought_back_against_its_friction(off):
    law, error = resting_law(), np.array([0.0, 0.0, 0.0, 1e-3 * off])
    carried = crane().inverse_dynamics(START - error, STILL, law.gains.p * error)
    axes, approach = law.axes[3], np.sign(off) * max(1e-3 * abs(off) - REST_BAND, 0.0) / APPROACH_S
    friction = axes['coulomb'] * np.tanh(approach / axes['slip']) + axes['viscous'] * approach
    assert law.update(0.0, START - error, STILL) == pytest.approx(carried + [0.0, 0.0, 0.0, friction], rel=1e-9)


@pytest.mark.parametrize(('off', 'gathered'), [(0.4, 0.0), (1.5, 1.0), (-1.5, -1.0)])
def test_an_integral_rests_with_an_axis_that_seals_hold(off, gathered):
    law, error = resting_law(), np.array([1e-3, 0.0, 0.0, 1e-3 * off])
    for k in range(51):
        law.update(k * PERIOD, START - error, STILL)
    grown = np.array([1e-3, 0.0, 0.0, 1e-3 * gathered]) * 50 * PERIOD       # the slew has no dry friction
    assert law.corrections[1] == pytest.approx(law.integral_gains * grown, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(('plant', 'rate', 'off'), thorough([
    ('second', 100.0, LESS), ('package', 200.0, MORE), ('second', 200.0, EXACT), ('second', 100.0, MORE)], 2,
    several=True))
def test_an_axis_with_stiction_holds_still_within_a_millimetre(plant, rate, off):
    bench = Bench(with_wrong_model(make_machine(FRICTION, plant=plant, rate=rate), off), 1)
    axes = bench.plant.axes
    axes['stiction' if plant == 'second' else 'stribeck'][1:] += STICTION
    axes['stribeck_velocity'] = 5e-3
    bench.motion_watched = True
    prepare(bench, State.HOLD)
    bench.follow(bench.motion(1.0, 0.5))
    bench.turns(bench.declaration.stop_time + OPERATOR)
    while bench.core.states.state is State.RUN:
        bench.turn()
    bench.turns(5.0)
    begin = len(bench.path)
    bench.turns(10.0)
    assert bench.core.states.state is State.HOLD, bench.core.states.reasons
    x = np.array([point.x for point in bench.path[begin:]])
    assert np.ptp(x, axis=0).max() <= 1e-3 and np.abs(x - bench.path[-1].reference[0]).max() <= 2e-3


@pytest.mark.parametrize(('plant', 'off'), thorough(
    [('second', MORE), ('package', LESS), ('second', LESS), ('package', MORE)], 1, several=True))
def test_a_sound_machine_whose_friction_the_law_knows_badly_is_not_stopped(plant, off):
    machine = with_wrong_model(make_machine(FRICTION, plant=plant, rate=100.0), off)
    assert not false_stops(machine, 1, 60.0)
