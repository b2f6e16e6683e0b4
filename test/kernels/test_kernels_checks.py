"""The kernels of checks beside the same in NumPy, one obvious line a step."""

from collections import deque

import numpy as np
import pytest

from psdyn_ros.api.hydraulics.statics import hydraulic_records
from psdyn_ros.kernels.control import effort_range, plausibility, pressure_plausibility, speed_governor
from psdyn_ros.kernels.control import speed_plausibility as speeds
from psdyn_ros.kernels.hydraulics.records import AXIS, FLUID, SPOOL
from psdyn_ros.kernels.runtime.compiler import entry
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics

N, PERIOD = 4, 0.002


def test_the_largest_share_is_that_of_numpy(rng):
    values, limits = rng.normal(size=N), rng.uniform(0.1, 2.0, N)
    shares = np.abs(values) / limits
    assert plausibility.largest_share(values, limits) == (shares.argmax(), pytest.approx(shares.max()))
    assert plausibility.largest_share(values, np.full(N, np.inf)) == (0, 0.0)


class Efforts:
    """`restrain_efforts` in NumPy."""

    def __init__(self, forces, limits, room, learning):
        self.rows, self.others, self.learning = np.flatnonzero(forces), np.flatnonzero(~forces), learning
        self.away, self.limit = limits[0], limits[1][self.rows]
        self.recent, self.trim = deque(maxlen=room), np.zeros(len(self.rows))

    def bounds(self, feedback, x, xd, desired):
        fed = np.array([feedback.ahead, desired[2]])
        fed = np.concatenate((fed, feedback.scale * fed))
        back = effort_range.STRONGER * feedback.gains * (desired[:2] - [x, xd])
        self.recent.append((fed.min(axis=0), fed.max(axis=0), *back))
        low, high = np.min(self.recent, axis=0), np.max(self.recent, axis=0)
        return (low[0] + np.minimum(low[2:], 0.0).sum(axis=0) - self.away,
                high[1] + np.maximum(high[2:], 0.0).sum(axis=0) + self.away)

    def restrain(self, model, feedback, x, xd, desired, command):
        rows, others, a, v = self.rows, self.others, model.axes, desired[1]
        level = a['coulomb'] + a['stribeck'] * np.exp(-(v / a['stribeck_velocity'])**2)
        efforts = (model.efforts + level * np.tanh(v / a['slip']) + a['viscous'] * v) / model.area
        low, high = self.bounds(feedback, x, xd, desired)
        inertia = model.inertia / model.area[:, None]
        own, coupling = inertia[np.ix_(rows, rows)], inertia[np.ix_(rows, others)]
        efforts = efforts[rows] + 0.5 * coupling @ (low + high)[others]
        spread = 0.5 * np.abs(np.linalg.solve(own, coupling)) @ (high - low)[others]
        low, high, given = low[rows] - spread, high[rows] + spread, command[rows]
        asked = np.linalg.solve(own, given - efforts - self.trim)
        kept = np.clip(efforts + self.trim + own @ np.clip(asked, low, high), -self.limit, self.limit)
        off = np.maximum(asked - high, low - asked) / self.away[rows]
        restrained = (np.abs(given - kept) > effort_range.ROUNDING * self.limit).any()
        if restrained:
            command[rows] = kept
        lacking = kept - efforts
        lacking -= own @ np.clip(np.linalg.solve(own, lacking), low, high)
        self.trim += self.learning * (lacking - self.trim)
        return (off.argmax(), off.max()) if restrained else (-1, 0.0)


@pytest.mark.parametrize('forces', [[1, 1, 1, 1], [1, 0, 0, 1], [0, 1, 0, 0]], ids=['all', 'two', 'one'])
def test_efforts_are_restrained_as_by_numpy(rng, forces):
    forces, room, learning = np.array(forces, dtype=bool), 5, 0.02
    k, limits = forces.sum(), np.array([np.full(N, 0.5), np.full(N, 30.0)])
    twin, restrained = Efforts(forces, limits, room, learning), []
    check = effort_range.EffortRange(
        rows=np.argsort(~forces, kind='stable'), limits=limits, recent=np.zeros((room, 4, N)),
        count=np.zeros(1, np.int64), trim=np.zeros(k), bounds=np.zeros((2, N)), found=np.zeros((4, k)),
        system=np.zeros((k, k)), coupling=np.zeros((k, N - k)), right=np.zeros((k, 1)))
    axes = np.zeros(N, AXIS)
    for field in ('coulomb', 'stribeck', 'stribeck_velocity', 'viscous', 'slip'):
        axes[field] = rng.uniform(0.1, 1.0, N)
    for cycle in range(60):
        a = rng.normal(size=(N, N))
        model = effort_range.EffortModel(rng.normal(size=N), a @ a.T + N * np.eye(N), axes, rng.uniform(0.5, 2.0, N))
        feedback = effort_range.Feedback(rng.uniform(0.0, 1.0, (2, N)), rng.normal(size=N), 0.1 * (cycle % 10))
        x, xd, desired = rng.normal(size=N), rng.normal(size=N), rng.normal(size=(3, N))
        command, expected = np.tile(rng.normal(size=N) * (5.0 if cycle % 3 else 50.0), (2, 1))
        wanted = twin.restrain(model, feedback, x, xd, desired, expected)
        worst, off = effort_range.restrain_efforts(check, model, feedback, x, xd, desired, command, learning)
        assert worst == wanted[0] and off == pytest.approx(wanted[1], rel=1e-9)
        assert command == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert check.trim * 1.0 == pytest.approx(twin.trim * model.area[twin.rows], rel=1e-9, abs=1e-9)
        twin.trim = check.trim / model.area[twin.rows]
        restrained.append(worst >= 0)
    assert any(restrained) and not all(restrained)


def test_an_effort_that_is_not_finite_is_left_to_the_gate():
    zero = np.zeros(1)
    check = effort_range.EffortRange(np.zeros(1, np.int64), np.ones((2, 1)), np.zeros((2, 4, 1)), np.zeros(1, np.int64),
                                     zero.copy(), np.zeros((2, 1)), np.zeros((4, 1)), np.zeros((1, 1)),
                                     np.zeros((1, 0)), np.zeros((1, 1)))
    model = effort_range.EffortModel(zero.copy(), np.ones((1, 1)), np.zeros(1, AXIS), np.ones(1))
    feedback, command = effort_range.Feedback(np.ones((2, 1)), zero, 1.0), np.array([np.nan])
    assert effort_range.restrain_efforts(check, model, feedback, zero, zero, np.zeros((3, 1)), command, 0.1)[0] == -1
    assert np.isnan(command[0]) and check.count[0] == 0


class Speeds:
    """`judge_speeds` in NumPy."""

    def __init__(self, limits):
        self.limits, self.smooth, self.rested, self.fast, self.apart = limits, np.zeros(N), 0.0, 0, 0

    def judge(self, rates, desired, stopping):
        fast, off = np.abs(rates) / self.limits[0], np.abs(rates - desired) / self.limits[1]
        self.fast = self.fast + 1 if fast.max() > 1.0 else 0
        self.apart = self.apart + 1 if off.max() > 1.0 else 0
        if self.fast >= speeds.IN_A_ROW:
            return speeds.TOO_FAST, fast.argmax()
        if self.apart * PERIOD >= speeds.APART_S and not stopping:
            return speeds.APART, off.argmax()
        self.smooth += PERIOD / speeds.SMOOTHING_S * (rates - self.smooth)
        rest = np.abs(self.smooth) / self.limits[2]
        if desired.any():
            self.rested = 0.0
        elif self.rested < speeds.RESTING_S:
            self.rested = self.rested + PERIOD if rest.max() < speeds.REST else 0.0
        if self.rested < speeds.RESTING_S or rest.max() <= 1.0:
            return speeds.SOUND, -1
        return speeds.NOT_STANDING, rest.argmax()


def test_speeds_are_judged_as_by_numpy(rng):
    limits = np.array([np.full(N, 1.0), np.full(N, 0.5), np.full(N, 0.02)])
    twin, found = Speeds(limits), set()
    check = speeds.Speeds(limits, np.zeros(N), np.zeros(2, np.int64), np.zeros(1))
    for size, reference, stopping, states in ((0.005, 0.0, False, 400), (0.05, 0.0, False, 100), (0.3, 0.2, False, 50),
                                              (0.8, 0.1, False, 60), (0.8, 0.1, True, 60), (2.0, 0.1, False, 30)):
        sign = rng.choice((-1.0, 1.0), N)
        for _ in range(states):
            rates, desired = size * sign * rng.uniform(0.9, 1.0, N), reference * rng.uniform(0.5, 1.0, N)
            verdict = speeds.judge_speeds(check, rates, desired, PERIOD, stopping)
            assert verdict == twin.judge(rates, desired, stopping)
            found.add(verdict[0])
    assert found == set(range(4))


def test_a_stop_is_judged_as_by_numpy(rng):
    limits = np.array([rng.uniform(0.5, 1.0, N), rng.uniform(0.05, 0.1, N)])
    begin = rng.uniform(0.3, 1.0, N)
    stop, smooth, found = np.array([begin, begin, np.zeros(N)]), begin.copy(), []
    for k in range(400):
        rates = begin * max(1.0 - 0.6 * k * PERIOD, 0.0) * rng.uniform(0.95, 1.05, N)
        smooth += PERIOD / speeds.SMOOTHING_S * (rates - smooth)
        left = np.maximum(np.maximum(speeds.FASTER * begin, begin + limits[1]) - k * PERIOD * limits[0], limits[1])
        wanted = int((smooth / left).argmax()) if (smooth > left).any() else -1
        found.append(speeds.judge_stop(limits, stop, rates, k * PERIOD, PERIOD))
        assert found[-1] == wanted and stop[1:] == pytest.approx(np.array([smooth, left]))
    assert min(found) == -1 < max(found)


@entry
def speed(c, fluid, x, oil, command):
    """Call `speed_for`, which only kernels call, from Python."""
    return pressure_plausibility.speed_for(c[0], fluid, x, oil, command)


@pytest.fixture
def oil(crane):
    """(witnesses, cylinders, oil) of the crane, with oil of constant stiffness in stiff walls."""
    axes, cylinders, supply = hydraulic_records(crane, read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'),
                                                                       crane.actuators))
    records = np.zeros(len(cylinders), pressure_plausibility.FLOW_WITNESS)
    records['cylinder'], records['actuator'], records['slack'] = range(len(cylinders)), cylinders['axis'], 0.01
    cylinders['air'], cylinders['wall'], cylinders['hose'] = 0.0, np.inf, np.inf
    pressures = np.full((len(cylinders), 2), 0.4 * supply['pressure'][0])
    return (pressure_plausibility.Witnesses(records, np.zeros((len(cylinders), FLUID))), cylinders.copy(),
            pressure_plausibility.Oil(pressures, np.nan, supply))


def test_valves_are_restrained_to_the_nearest_command_that_is_explained(rng, oil):
    witnesses, cylinders, _ = oil
    rows, restrained = cylinders['axis'], 0
    for _ in range(40):
        position, reference, rate = rng.uniform(0.1, 0.3, N), rng.uniform(0.1, 0.3, N), 0.1 * rng.normal(size=N)
        reference = position + 0.01 * (reference - 0.2)
        motion = pressure_plausibility.RodMotion(position, reference, rate, 1e3 * rng.normal(size=N),
                                                 1e3 * rng.normal(size=N))
        given, last = rng.uniform(-1.0, 1.0, N), np.where(rng.random(N) < 0.2, np.nan, rng.uniform(-0.2, 0.2, N))
        command = given.copy()
        worst, off = pressure_plausibility.restrain_valves(witnesses, cylinders, oil[2], motion, command, last, PERIOD)
        beyond = []
        for k, row in enumerate(rows):
            w, c = witnesses.records[k], cylinders[k:k + 1]

            def at(u, x=position[row], fluid=witnesses.fluid[k], c=c):
                return speed(c, fluid, x, oil[2], u)
            beyond.append(max(at(given[row]) - w['high'], w['low'] - at(given[row])) / w['slack'])
            if beyond[-1] <= 0.0:
                assert command[row] == given[row]
                continue
            restrained += 1
            begin = np.nan_to_num(last[row])
            begin = begin if w['low'] <= at(begin) <= w['high'] else 0.0
            step = (given[row] - begin) / 2**pressure_plausibility.HALVINGS
            assert (command[row] - begin) / step == pytest.approx(round((command[row] - begin) / step))
            assert command[row] == begin or w['low'] <= at(command[row]) <= w['high']
            assert not w['low'] <= at(command[row] + step) <= w['high']
        wanted = (int(np.argmax(beyond)), pytest.approx(max(beyond))) if max(beyond) > 0.0 else (-1, 0.0)
        assert (worst, off) == wanted
    assert 20 < restrained < 120


def test_speeds_that_are_explained_are_those_of_numpy(rng, oil):
    witnesses, cylinders, measured = oil
    rows, before = cylinders['axis'], np.zeros(N)
    for _ in range(3):
        motion = pressure_plausibility.RodMotion(*rng.uniform(0.1, 0.3, (2, N)), 0.1 * rng.normal(size=N),
                                                 *1e4 * rng.normal(size=(2, N)))
        pressure_plausibility.restrain_valves(witnesses, cylinders, measured, motion, np.zeros(N), np.zeros(N), PERIOD)
        area = np.array([cylinders['area_a'], cylinders['area_b']])
        volume = np.array([cylinders['dead_a'] + area[0] * motion.position[rows],
                           cylinders['dead_b'] + area[1] * (cylinders['stroke'] - motion.position[rows])])
        stiffness = (cylinders['bulk'] * area**2 / volume).sum(axis=0)
        errors = np.array([motion.reference - motion.position, np.zeros(N)])[:, rows]
        errors[1] = -motion.residual[rows] / stiffness
        room = 0.01 + pressure_plausibility.SLACK * np.abs(motion.rate[rows]) + pressure_plausibility.CHANGE * np.abs(
            motion.effort - before)[rows] / (PERIOD * stiffness)
        gain, before = pressure_plausibility.LOOP_GAIN, motion.effort
        assert witnesses.records['low'] == pytest.approx(
            motion.rate[rows] - room + gain * np.minimum(errors, 0.0).sum(axis=0), rel=1e-6)
        assert witnesses.records['high'] == pytest.approx(
            motion.rate[rows] + room + gain * np.maximum(errors, 0.0).sum(axis=0), rel=1e-6)


def test_rods_are_judged_as_by_numpy(rng, oil):
    witnesses, cylinders, measured = oil
    allowed, found = (0.01, 0.5), set()
    for _ in range(100):
        w = witnesses.records
        rate, way = rng.normal(0.0, 0.1, len(w)), rng.uniform(0.0, 0.5, len(w))
        w['rate'], w['rate_a'], w['rate_b'] = rate, *(rate + rng.normal(0.0, 0.05, (2, len(w))))
        w['way'], w['way_a'], w['way_b'] = way, *(way * rng.uniform(0.8, 1.2, (2, len(w))))
        wrong = pressure_plausibility.compare_flows(witnesses, cylinders, measured, np.full(N, 0.2), np.zeros(N), 0.0,
                                                    allowed)
        prior = pressure_plausibility.PRIOR_M
        by_oil = np.array([w['rate_a'], w['rate_b']]) * (way + prior) / (np.array([w['way_a'], w['way_b']]) + prior)
        most = allowed[0] + (allowed[1] * prior / (way + prior) + pressure_plausibility.SCATTER) * np.abs(
            [rate, *by_oil]).max(axis=0)
        off = by_oil - rate
        verdict = np.where((off > most).all(axis=0) | (off < -most).all(axis=0), pressure_plausibility.BOTH_OFF,
                           np.where((np.abs(off) > most).any(axis=0), pressure_plausibility.ONE_OFF,
                                    pressure_plausibility.MOVES_AS_OIL))
        assert w['verdict'].tolist() == verdict.tolist() and wrong == np.count_nonzero(verdict)
        found.update(verdict.tolist())
    assert found == set(range(3))


def test_a_command_that_is_left_out_moves_no_spool(oil):
    witnesses, cylinders, measured = oil
    for _ in range(2):
        pressure_plausibility.compare_flows(witnesses, cylinders, measured, np.full(N, 0.2), np.full(N, np.nan), PERIOD,
                                            (0.01, 0.5))
    assert (cylinders['command'] == 0.0).all() and not witnesses.fluid[:, SPOOL].any()


def test_pressures_are_judged_sensor_by_sensor():
    sensors = np.zeros(3, pressure_plausibility.PRESSURE_SENSOR)
    sensors['high'], sensors['rate'], sensors['step'] = 10.0, 1e9, 1.0
    judge = pressure_plausibility.judge_pressures
    assert judge(sensors, np.array([[4.0, 5.0]]), 6.0, 1, 0) == (pressure_plausibility.POSSIBLE, 0)
    assert sensors['value'].tolist() == [4.0, 5.0, 6.0] and sensors['beside'].tolist() == [5.0, 4.0, 0.0]
    assert judge(sensors, np.array([[4.0, 11.0]]), np.nan, 2, 1) == (pressure_plausibility.NOT_FINITE, 2)
    assert judge(sensors, np.array([[4.0, 11.0]]), 6.0, 2, 1) == (pressure_plausibility.OUT_OF_RANGE, 1)
    assert judge(sensors, np.array([[6.5, 5.0]]), 6.0, 2, 1) == (pressure_plausibility.TOO_FAST, 0)
    assert judge(sensors, np.array([[4.0, 5.0]]), 8.5, 2, 1) == (pressure_plausibility.TOO_FAST, 2)
    assert sensors['value'].tolist() == [4.0, 5.0, 6.0]
    assert judge(sensors, np.array([[5.5, 5.0]]), 6.0, 2, 1) == (pressure_plausibility.POSSIBLE, 0)
    assert sensors['changed'].tolist() == [2, 1, 1]


def test_the_speed_governor_is_that_of_plain_numbers(rng):
    memory, speed_left, error, growth, clipped = np.array(speed_governor.AT_REST), 1.0, None, 0.0, 0.0
    g = speed_governor
    for k in range(500):
        new_error, now, supply = rng.uniform(0.0, 1.2), k % 7 < 5, rng.uniform(0.5, 1.0) if k % 2 else np.nan
        share = 1.0 - np.exp(-PERIOD / g.MEMORY)
        growth += 0.0 if error is None else share * ((new_error - error) / PERIOD - growth)
        clipped += share * (now - clipped)
        error = new_error
        allowed = np.interp(error + g.LEAD * max(growth, 0.0), (g.ERROR_FROM, g.ERROR_TO), (1.0, 0.0))
        if np.isfinite(supply):
            allowed = min(allowed, np.interp(supply, (g.SUPPLY_TO, g.SUPPLY_FROM), (0.0, 1.0)))
        if clipped > g.OFTEN:
            allowed = min(allowed, speed_left - g.CLIPPED_FALL * PERIOD)
        speed_left = float(np.clip(min(allowed, speed_left + g.RISE * PERIOD), g.LEAST, 1.0))
        assert g.govern(memory, new_error, now, supply, PERIOD) == pytest.approx(speed_left, rel=1e-12)
