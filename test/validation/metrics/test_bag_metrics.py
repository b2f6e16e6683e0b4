"""Metrics of predictions against plain twins, known errors, and what physics demands."""

import math
from dataclasses import replace

import numpy as np
import pytest
from support.bags.recorded_motion import PERIOD, block_of, crane, demonstration, exact_block, oil

import psdyn_ros
from psdyn_ros.validation.metrics import bins
from psdyn_ros.validation.metrics.energy import EnergyBalance
from psdyn_ros.validation.metrics.metrics import ACCELERATION, EFFORT, FRICTIONLESS, MetricsAccumulator, capacities
from psdyn_ros.validation.metrics.prediction import NEAR_STOP, REGIME_NAMES, REGIMES, Prediction, Predictor
from psdyn_ros.validation.metrics.simulation_error import SimulationError
from psdyn_ros.validation.signals.spectrum import ResidualSpectrum

JUDGED = tuple(regime for regime in REGIMES if regime != NEAR_STOP)


def random_prediction(rng, rows, start=0.0, core=None):
    """A `Prediction` of noise, with unknown efforts."""
    t = start + PERIOD * np.arange(rows)
    effort = rng.normal(2e4, 5e3, (rows, 4))
    effort[rng.random((rows, 4)) < 0.1] = np.nan
    xdd = rng.normal(0.0, 1.0, (rows, 4))
    effort_id = effort + rng.normal(1e2, 3e2, (rows, 4))
    effort_rate = np.gradient(effort_id, PERIOD, axis=0)
    never = np.zeros((rows, 4), dtype=bool)
    return Prediction(
        t=t, x=np.tile([0.0, 0.3, 0.25, 0.4], (rows, 1)), xd=np.zeros((rows, 4)), xdd=xdd, v=np.zeros((rows, 4)),
        effort=effort, effort_rate=effort_rate, effort_id=effort_id, effort_near=effort_id,
        effort_id_frictionless=effort - 1e3, xdd_fd=xdd + rng.normal(0.0, 0.1, (rows, 4)),
        regime=rng.integers(0, 5, (rows, 4)).astype(np.uint8), undetermined=never, held=never,
        residual=np.abs(rng.normal(0.0, 1e-3, rows)),
        core=core or slice(0, rows), period=PERIOD)


def accumulator(capacity=None):
    predictor = Predictor(crane(), oil())
    return MetricsAccumulator(crane(), predictor.mechanism, capacity)


def twin(pairs, regime, wanted):
    """{name: value} of measured and predicted values of the regimes wanted, by loops over samples."""
    errors, measured = [], []
    for (a, p), r in zip(pairs, regime):
        if math.isfinite(a) and math.isfinite(p) and r in wanted:
            errors.append(a - p)
            measured.append(a)
    mean = sum(measured) / len(measured)
    squares = sum(e * e for e in errors)
    return {'count': len(errors), 'rmse': math.sqrt(squares / len(errors)), 'bias': sum(errors) / len(errors),
            'mae': sum(map(abs, errors)) / len(errors), 'maximum': max(map(abs, errors)), 'low': min(measured),
            'high': max(measured), 'r2': 1.0 - squares / sum((a - mean) ** 2 for a in measured)}


def test_metrics_are_those_of_a_slow_twin_however_the_recording_is_cut(rng):
    pieces = [random_prediction(rng, 700, 0.3), random_prediction(rng, 900, 1.7, slice(50, 800)),
              random_prediction(rng, 300, 9.1)]
    found = accumulator()
    for piece in pieces:
        found.add(piece)
    for kind, names in ((EFFORT, ('effort', 'effort_id')), (FRICTIONLESS, ('effort', 'effort_id_frictionless')),
                        (ACCELERATION, ('xdd', 'xdd_fd'))):
        for axis in (0, 3):
            pairs = [pair for piece in pieces for pair in zip(*(getattr(piece, name)[piece.core, axis]
                                                                for name in names))]
            regime = [one for piece in pieces for one in piece.regime[piece.core, axis]]
            for wanted in (None, 0, NEAR_STOP):
                chosen = JUDGED if wanted is None else (wanted,)
                expected, given = twin(pairs, regime, chosen), found.metrics(kind, axis, wanted)
                assert {name: getattr(given, name) for name in expected} == pytest.approx(expected, rel=1e-9)
            whole = twin(pairs, regime, JUDGED)
            assert found.metrics(kind, axis).nrmse == pytest.approx(whole['rmse'] / (whole['high'] - whole['low']))
    assert found.rows == 700 + 750 + 300
    closure = found.figure['closure']
    rows, rms, largest = closure.as_dict().values()
    residual = np.concatenate([piece.residual[piece.core] for piece in pieces])
    assert (rows, rms, largest) == pytest.approx((1750, np.sqrt(np.mean(residual ** 2)), residual.max()))
    assert closure.largest()[0] == pieces[0].residual[:350].max()


def test_sums_of_a_long_bag_take_no_more_room_and_lose_nothing(rng, monkeypatch):
    monkeypatch.setattr(bins, 'MAX_BINS', 8)
    pieces = [random_prediction(rng, 60, start) for start in (0.0, 1.5, 3.0, 6.5, 9.9, 14.0, 33.0, 61.2)]
    found, whole = accumulator(), accumulator()
    monkeypatch.setattr(bins, 'MAX_BINS', 4096)
    for piece in pieces:
        whole.add(piece)
    monkeypatch.setattr(bins, 'MAX_BINS', 8)
    for piece in pieces:
        found.add(piece)
        assert len(found.sums) <= 8
    assert found.width == 8.0 and whole.width == 1.0
    assert found.seconds[0] == 4.0
    for kind in (EFFORT, ACCELERATION):
        for regime in (None, 2):
            assert found.metrics(kind, 1, regime).as_dict() == pytest.approx(whole.metrics(kind, 1, regime).as_dict())
    assert found.figure['closure'].as_dict() == pytest.approx(whole.figure['closure'].as_dict())
    assert found.figure['delay'].lag(2).estimate == pytest.approx(whole.figure['delay'].lag(2).estimate)
    nrmse, other = (one.figure['nrmse'].interval(2).estimate for one in (found, whole))
    assert nrmse == pytest.approx(other)
    assert nrmse == pytest.approx(found.metrics(EFFORT, 2).nrmse)
    assert np.nansum(found.per_bin(EFFORT, 0)[:, 2]) == np.nansum(whole.per_bin(EFFORT, 0)[:, 2])


def test_a_known_bias_is_the_bias_and_nothing_else():
    block = exact_block(6.0)
    predictor, found = Predictor(crane(), oil()), accumulator(capacities(crane(), oil()))
    found.add(predictor.predict(replace(block, effort=block.effort + [0.0, 500.0, 0.0, -200.0])))
    assert [found.metrics(EFFORT, axis).bias for axis in range(4)] == pytest.approx([0, 500, 0, -200], abs=10.0)
    assert found.metrics(EFFORT, 1).rmse == pytest.approx(500.0, rel=0.02)
    assert found.metrics(EFFORT, 1).r2 > 0.98
    # without its friction the model misses the 4 kN of the seals
    assert found.metrics(FRICTIONLESS, 3).rmse == pytest.approx(4000.0, rel=0.15)
    assert sum(found.metrics(EFFORT, 1, regime).count for regime in range(5)) == found.metrics(EFFORT, 1).count
    assert {name for _, _, parts in found.table(EFFORT) for name in parts} == {'all', *REGIME_NAMES}


def test_what_hardly_acts_is_judged_by_what_it_can_do():
    """The slewing drive of the demonstration gives some N m, of a sensor's noise."""
    found = accumulator(capacities(crane(), oil()))
    found.add(Predictor(crane(), oil()).predict(demonstration(plain=True)))
    slew = found.metrics(EFFORT, 0)
    assert slew.high - slew.low < 200.0
    assert slew.scale == pytest.approx(0.05 * crane().limits.effort[0]) and slew.nrmse < 0.02
    lift = oil().cylinders['lift_cylinder']
    assert capacities(crane(), oil())[1] == pytest.approx(19e6 * lift.area_a - 1e6 * lift.area_b)
    assert found.metrics(EFFORT, 1).scale == pytest.approx(3e4, rel=0.2)


@pytest.mark.parametrize('late', [0.0, 0.008, -0.0133])
def test_a_known_delay_is_found_between_samples(late):
    block = exact_block(20.0)
    shifted = np.array([np.interp(block.t - late, block.t, column) for column in block.effort.T]).T
    found = accumulator()
    found.add(Predictor(crane(), oil()).predict(replace(block, effort=shifted)))
    for axis in range(1, 4):
        assert found.figure['delay'].lag(axis).estimate == pytest.approx(late, abs=5e-4), axis


@pytest.mark.parametrize('late', [0, 4])
def test_a_delay_is_found_behind_the_noise_of_plain_sensors_too(late):
    """8 ms, in 10 s; cross-correlation sees only the noise of accelerations there."""
    block = demonstration(plain=True)
    effort = np.vstack((block.effort[:1],) * late + (block.effort[:len(block.effort) - late],))
    found = accumulator()
    found.add(Predictor(crane(), oil()).predict(replace(block, effort=effort)))
    for axis, width in ((1, 12e-3), (2, 15e-3), (3, 23e-3)):
        lag = found.figure['delay'].lag(axis, block=2)
        assert lag.estimate == pytest.approx(1e-3 * 2 * late, abs=2.5e-3) and lag.high - lag.low < width
        assert lag.low - 1e-3 <= 1e-3 * 2 * late <= lag.high + 1e-3
    assert math.isnan(accumulator_of_nothing().figure['delay'].lag(1).estimate)


@pytest.mark.parametrize('late', [0.0, 0.008])
def test_forces_that_a_controller_makes_of_noise_are_no_delay(late, rng):
    """Noise of velocities is in the errors, and in the forces of a law that feeds them back: 10 ms by rates as such."""
    block = exact_block(20.0)
    noise = 1e-3 * rng.standard_normal(block.xd.shape)
    inertia = np.array([np.diag(crane().mass_matrix(x)) for x in block.x])
    effort = np.array([np.interp(block.t - late, block.t, column) for column in block.effort.T]).T
    found, of_noise = accumulator(), accumulator()
    predictor = Predictor(crane(), oil())
    fed_back = -10.0 * inertia * noise
    found.add(predictor.predict(replace(block, xd=block.xd + noise, effort=effort + fed_back)))
    for axis in range(1, 4):
        assert found.figure['delay'].lag(axis, block=2).estimate == pytest.approx(late, abs=3e-3), axis
    still = np.zeros_like(block.xd)
    holding = crane().inverse_dynamics(block.x[0], still[0], still[0])
    of_noise.add(predictor.predict(replace(block, x=still + block.x[0], xd=noise, effort=holding + fed_back)))
    assert all(math.isnan(of_noise.figure['delay'].lag(axis).estimate) for axis in range(4))


def accumulator_of_nothing():
    found = accumulator()
    rows = 1000
    block = block_of(PERIOD * np.arange(rows), np.tile([0.0, 0.3, 0.25, 0.4], (rows, 1)), np.zeros((rows, 4)),
                     np.full((rows, 4), np.nan))
    found.add(Predictor(crane(), oil()).predict(block))
    return found


def test_nothing_measured_gives_nothing_and_no_number_that_looks_like_one():
    found = accumulator_of_nothing().metrics(EFFORT, 1)
    assert found.count == 0 and math.isnan(found.rmse) and math.isnan(found.nrmse)
    assert found.as_dict()['rmse'] is None and found.as_dict()['count'] == 0


def test_a_vibration_is_seen_at_its_frequency_with_its_power():
    """Parseval: the integral of the density is the variance; two sensors, one of them off by a sine of 3 Hz."""
    block = exact_block(40.0)
    effort = block.effort.copy()
    effort[:, 2] += 300.0 * np.sin(2.0 * np.pi * 3.0 * block.t)
    predictor, spectrum = Predictor(crane(), oil()), ResidualSpectrum(4)
    whole = predictor.predict(replace(block, effort=effort))
    for core in (slice(100, 9000), slice(9000, 9500), slice(9500, 19000)):
        spectrum.add(replace(whole, core=core))
    frequencies, density = spectrum.density()
    assert frequencies[np.argmax(density[:, 2])] == pytest.approx(3.0, abs=0.5)
    power = (density * frequencies[1]).sum(axis=0)
    passed = predictor.filter(np.sin(2.0 * np.pi * 3.0 * block.t))[1000:-1000].std() * 2 ** 0.5
    assert power[2] == pytest.approx(0.5 * (300.0 * passed) ** 2, rel=0.05)
    assert power[1] < 0.05 * power[2]


def test_work_goes_into_height_and_friction():
    predictor = Predictor(crane(), oil())
    energy = EnergyBalance(predictor)
    energy.add(predictor.predict(demonstration()))
    balance = energy.balance()
    assert sum(balance.actuators) - sum(balance.friction) - balance.mechanical == pytest.approx(balance.unexplained)
    assert balance.spans == 9 and sum(balance.friction) > 4000.0
    assert abs(balance.unexplained) <= 1e-3 * balance.turnover and balance.mismatch <= 2e-3
    # without friction in the model its work is what is unexplained
    smooth = Predictor(crane(), replace(oil(), cylinders={name: replace(one, friction=replace(one.friction, coulomb=0.0,
                       viscous=0.0)) for name, one in oil().cylinders.items()}))
    energy = EnergyBalance(smooth)
    energy.add(smooth.predict(demonstration()))
    assert energy.balance().unexplained == pytest.approx(sum(balance.friction), rel=0.01)


def test_a_payload_that_the_model_does_not_know_of_is_lifted_at_a_cost():
    predictor = Predictor(crane(), oil())
    balances = []
    for payload in (0.0, 60.0):
        energy = EnergyBalance(predictor)
        energy.add(predictor.predict(demonstration(payload=payload)))
        balances.append(energy.balance().mismatch)
    assert balances[1] > 20.0 * balances[0]


# simulation error


def simulated(predictor, block, every=0.5):
    found = SimulationError(predictor, every=every)
    found.add(predictor.predict(block))
    return found


def test_an_exact_model_stays_with_the_recording_and_a_wrong_one_does_not():
    predictor = Predictor(crane(), oil())
    exact, wrong = (simulated(predictor, demonstration(payload=payload)).errors() for payload in (0.0, 60.0))
    assert [error.seconds for error in exact] == [PERIOD, 0.1, 1.0]
    assert (exact[2].position[1:] <= 1e-3 * exact[2].still[1:]).all() and exact[2].starts >= 15
    assert (wrong[2].position[1:] >= 0.1 * wrong[2].still[1:]).all()
    assert (exact[0].position <= exact[1].position + 1e-9).all() and (exact[2].largest >= exact[2].position).all()


def test_a_constant_force_too_much_moves_a_mass_by_half_a_t_squared():
    """A telescope that slides without friction: 100 N too much for 0.1 s."""
    machine = psdyn_ros.load('<robot name="slide"><link name="base"/><link name="car"><inertial><mass value="50"/>'
                             '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
                             '<joint name="slide" type="prismatic"><parent link="base"/><child link="car"/>'
                             '<axis xyz="1 0 0"/><limit lower="-10" upper="10" velocity="5" effort="1000"/></joint>'
                             '</robot>', actuated=['slide'])
    t = PERIOD * np.arange(2000)
    block = replace(block_of(t, np.sin(t)[:, None], np.cos(t)[:, None], 100.0 - 50.0 * np.sin(t)[:, None]),
                    joints=('slide',))
    errors = simulated(Predictor(machine), block).errors()
    assert errors[1].position[0] == pytest.approx(0.5 * (100.0 / 50.0) * 0.1 ** 2, rel=1e-3)
    assert errors[1].velocity[0] == pytest.approx(100.0 / 50.0 * 0.1, rel=1e-3)
    assert errors[2].position[0] == pytest.approx(1.0, rel=1e-3)


def test_simulations_do_not_start_where_an_effort_is_unknown_and_stop_where_it_gets_unknown():
    block = exact_block(6.0)
    effort = block.effort.copy()
    effort[:, 0] = np.nan
    predictor = Predictor(crane(), oil())
    assert simulated(predictor, replace(block, effort=effort)).errors() == ()
    effort = block.effort.copy()
    effort[1300:, 0] = np.nan
    errors = simulated(predictor, replace(block, effort=effort)).errors()
    assert errors[2].starts < errors[1].starts <= errors[0].starts <= 5
