"""The kernels of checks beside the same in NumPy, one obvious line a step."""

from collections import deque

import numpy as np
import pytest

from psdyn_ros.api.hydraulics.statics import hydraulic_records
from psdyn_ros.kernels.control import effort_range, plausibility, speed_governor
from psdyn_ros.kernels.control import pressure_plausibility as kernels
from psdyn_ros.kernels.control import speed_plausibility as speeds
from psdyn_ros.kernels.hydraulics.records import AXIS, FLUID, SPOOL
from psdyn_ros.kernels.runtime.buffer import pack, views
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

    def bounds(self, ahead, gains, scale, x, xd, desired):
        fed = np.array([ahead, desired[2]])
        fed = np.concatenate((fed, scale * fed))
        back = effort_range.STRONGER * gains * (desired[:2] - [x, xd])
        self.recent.append((fed.min(axis=0), fed.max(axis=0), *back))
        low, high = np.min(self.recent, axis=0), np.max(self.recent, axis=0)
        return (low[0] + np.minimum(low[2:], 0.0).sum(axis=0) - self.away,
                high[1] + np.maximum(high[2:], 0.0).sum(axis=0) + self.away)

    def restrain(self, model, a, gains, scale, x, xd, desired, command):
        rows, others, v = self.rows, self.others, desired[1]
        level = a['coulomb'] + a['stribeck'] * np.exp(-(v / a['stribeck_velocity'])**2)
        efforts = (model.efforts + level * np.tanh(v / a['slip']) + a['viscous'] * v) / model.area
        low, high = self.bounds(model.ahead, gains, scale, x, xd, desired)
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
    limits = np.array([np.full(N, 0.5), np.full(N, 30.0)])
    twin, restrained = Efforts(forces, limits, room, learning), []
    buffer = effort_range.make_effort_range(np.argsort(~forces, kind='stable'), forces.sum(), room)
    check = effort_range.EffortRange(*views(buffer, effort_range.TYPES))
    check.limits[:], check.learning[0], check.area[:] = limits, learning, rng.uniform(0.5, 2.0, N)
    axes = np.zeros(N, AXIS)
    for field in ('coulomb', 'stribeck', 'stribeck_velocity', 'viscous', 'slip'):
        axes[field] = rng.uniform(0.1, 1.0, N)
    for cycle in range(60):
        a = rng.normal(size=(N, N))
        check.efforts[:], check.inertia[:] = rng.normal(size=N), a @ a.T + N * np.eye(N)
        check.ahead[:], gains, scale = rng.normal(size=N), rng.uniform(0.0, 1.0, (2, N)), 0.1 * (cycle % 10)
        x, xd, desired = rng.normal(size=N), rng.normal(size=N), rng.normal(size=(3, N))
        command, expected = np.tile(rng.normal(size=N) * (5.0 if cycle % 3 else 50.0), (2, 1))
        wanted = twin.restrain(check, axes, gains, scale, x, xd, desired, expected)
        worst, off = effort_range.restrain_efforts(buffer, axes, gains, scale, x, xd, desired, command)
        assert worst == wanted[0] and off == pytest.approx(wanted[1], rel=1e-9)
        assert command == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert check.trim == pytest.approx(twin.trim * check.area[twin.rows], rel=1e-9, abs=1e-9)
        restrained.append(worst >= 0)
    assert any(restrained) and not all(restrained)


def test_an_effort_that_is_not_finite_is_left_to_the_gate():
    buffer, zero = effort_range.make_effort_range([0], 1, 2), np.zeros(1)
    command = np.array([np.nan])
    assert effort_range.restrain_efforts(buffer, np.zeros(1, AXIS), np.ones((2, 1)), 1.0, zero, zero, np.zeros((3, 1)),
                                         command) == (-1, 0.0)
    assert np.isnan(command[0])


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
    twin, found, smooth, memory = Speeds(limits), set(), np.zeros(N), np.zeros(3)
    for size, reference, stopping, states in ((0.005, 0.0, False, 400), (0.05, 0.0, False, 100), (0.3, 0.2, False, 50),
                                              (0.8, 0.1, False, 60), (0.8, 0.1, True, 60), (2.0, 0.1, False, 30)):
        sign = rng.choice((-1.0, 1.0), N)
        for _ in range(states):
            rates, desired = size * sign * rng.uniform(0.9, 1.0, N), reference * rng.uniform(0.5, 1.0, N)
            verdict = speeds.judge_speeds(limits, smooth, memory, rates, desired, PERIOD, stopping)
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


def test_a_swing_is_judged_as_by_numpy(rng):
    limits, swing, rested, found = np.full(N, 0.02), np.zeros((3, N)), np.zeros(1), set()
    smooth, most, rest = np.zeros(N), np.zeros(N), 0.0
    for k in range(900):
        desired = np.full(N, 0.1 if k < 100 or 700 <= k < 750 else 0.0)
        rates = desired + rng.uniform(-1.0, 1.0, N) * 0.02 + np.where(np.arange(N) == 2, max(k - 450, 0) * 1e-3, 0.0)
        smooth += PERIOD / speeds.SMOOTHING_S * (rates - smooth)
        wanted = -1
        if desired.any():
            rest, most = 0.0, np.abs(smooth)
        elif rest < speeds.SETTLING_S:
            rest, most = rest + PERIOD, np.maximum(most, np.abs(smooth))
        else:
            share = np.abs(smooth) / np.maximum(speeds.GROWTH * most, limits)
            wanted = int(share.argmax()) if share.max() > 1.0 else -1
        assert speeds.judge_swing(limits, swing, rested, rates, desired, PERIOD) == wanted
        found.add(wanted)
    assert found == {-1, 2}


@entry
def speed(buffer, supply, line, pressures, row, command):
    """Call `speed_for`, which only kernels call, from Python."""
    w = kernels.bind_witnesses(buffer)
    oil, axis = kernels.measured_oil(pressures, supply, line), w.records[row]['actuator']
    return kernels.speed_for(w.cylinders[w.records[row]['cylinder']], w.fluid[row], w.motion[0, axis], oil, command)


class Oil:
    """The check of the oil of the crane, of constant stiffness and in stiff walls."""

    def __init__(self, crane):
        _, self.cylinders, self.supply = hydraulic_records(crane, read_hydraulics(
            find_config('hiab_xs031_hydraulics.yaml'), crane.actuators))
        self.cylinders['air'], self.cylinders['wall'], self.cylinders['hose'] = 0.0, np.inf, np.inf
        self.rows, n = self.cylinders['axis'], len(self.cylinders)
        records = np.zeros(n, kernels.FLOW_WITNESS)
        records['cylinder'], records['actuator'], records['slack'] = range(n), self.rows, 0.01
        self.buffer = pack(kernels.Witnesses(records, np.zeros((n, FLUID)), self.cylinders, np.array([0.01, 0.5]),
                                             np.zeros((5, N))))
        self.check = kernels.Witnesses(*views(self.buffer, kernels.TYPES))
        self.oil = self.supply, np.nan, np.full((n, 2), 0.4 * self.supply['pressure'][0])

    def move(self, rng):
        motion = self.check.motion
        motion[0], motion[2] = rng.uniform(0.1, 0.3, N), 0.1 * rng.normal(size=N)
        motion[1], motion[3:] = motion[0] + rng.uniform(-1e-3, 1e-3, N), 1e3 * rng.normal(size=(2, N))
        return motion.copy()

    def restrain(self, command, last):
        return kernels.restrain_valves(self.buffer, *self.oil, command, last, PERIOD)

    def compare(self, commands, dt):
        return kernels.compare_flows(self.buffer, *self.oil, commands, dt)


@pytest.fixture
def oil(crane):
    return Oil(crane)


def test_valves_are_restrained_to_the_nearest_command_that_is_explained(rng, oil):
    restrained = 0
    for _ in range(40):
        oil.move(rng)
        given, last = rng.uniform(-1.0, 1.0, N), np.where(rng.random(N) < 0.2, np.nan, rng.uniform(-0.2, 0.2, N))
        command, beyond = given.copy(), []
        worst, off = oil.restrain(command, last)
        for k, row in enumerate(oil.rows):
            w = oil.check.records[k]

            def at(u, k=k):
                return speed(oil.buffer, *oil.oil, k, u)
            beyond.append(max(at(given[row]) - w['high'], w['low'] - at(given[row])) / w['slack'])
            if beyond[-1] <= 0.0:
                assert command[row] == given[row]
                continue
            restrained += 1
            begin = np.nan_to_num(last[row])
            begin = begin if w['low'] <= at(begin) <= w['high'] else 0.0
            step = (given[row] - begin) / 2**kernels.HALVINGS
            steps = (command[row] - begin) / step
            assert steps == pytest.approx(round(steps), abs=1e-9)
            assert steps == 0.0 or w['low'] <= at(command[row]) <= w['high']
            assert not w['low'] <= at(command[row] + step) <= w['high']
        wanted = (int(np.argmax(beyond)), pytest.approx(max(beyond))) if max(beyond) > 0.0 else (-1, 0.0)
        assert (worst, off) == wanted
    assert 20 < restrained < 120


def test_speeds_that_are_explained_are_those_of_numpy(rng, oil):
    rows, c, before = oil.rows, oil.cylinders, np.zeros(N)
    for _ in range(3):
        position, reference, rate, residual, effort = oil.move(rng)
        oil.restrain(np.zeros(N), np.zeros(N))
        area = np.array([c['area_a'], c['area_b']])
        volume = np.array([c['dead_a'] + area[0] * position[rows],
                           c['dead_b'] + area[1] * (c['stroke'] - position[rows])])
        stiffness = (c['bulk'] * area**2 / volume).sum(axis=0)
        errors = np.array([(reference - position)[rows], -residual[rows] / stiffness])
        room = 0.01 + kernels.SLACK * np.abs(rate[rows]) + kernels.CHANGE * np.abs(
            effort - before)[rows] / (PERIOD * stiffness)
        low, high = (kernels.LOOP_GAIN * limit(errors, 0.0).sum(axis=0) for limit in (np.minimum, np.maximum))
        assert oil.check.records['low'] == pytest.approx(rate[rows] - room + low, rel=1e-6)
        assert oil.check.records['high'] == pytest.approx(rate[rows] + room + high, rel=1e-6)
        before = effort


def test_rods_are_judged_as_by_numpy(rng, oil):
    w, (fixed, learnt), found = oil.check.records, oil.check.allowed, set()
    for _ in range(100):
        rate, way = rng.normal(0.0, 0.1, len(w)), rng.uniform(0.0, 0.5, len(w)) + kernels.PRIOR_M
        flows, ways = rate + rng.normal(0.0, 0.05, (2, len(w))), way * rng.uniform(0.8, 1.2, (2, len(w)))
        w['rate'], w['rate_a'], w['rate_b'] = rate, *flows
        w['way'], w['way_a'], w['way_b'] = np.array([way, *ways]) - kernels.PRIOR_M
        wrong = oil.compare(np.zeros(N), 0.0)
        flows *= way / np.maximum(ways, kernels.PRIOR_M)
        most = fixed + (learnt * kernels.PRIOR_M / way + kernels.SCATTER) * np.abs([rate, *flows]).max(axis=0)
        off = flows - rate
        verdict = np.where((off > most).all(axis=0) | (off < -most).all(axis=0), kernels.BOTH_OFF,
                           np.where((np.abs(off) > most).any(axis=0), kernels.ONE_OFF, kernels.MOVES_AS_OIL))
        assert w['verdict'].tolist() == verdict.tolist() and wrong == np.count_nonzero(verdict)
        found.update(verdict.tolist())
    assert found == set(range(3))


def test_a_command_that_is_left_out_moves_no_spool(oil):
    for _ in range(2):
        oil.compare(np.full(N, np.nan), PERIOD)
    assert (oil.check.cylinders['command'] == 0.0).all() and not oil.check.fluid[:, SPOOL].any()
    oil.compare(np.ones(N), PERIOD)
    assert (oil.check.cylinders['command'] == 1.0).all() and oil.check.fluid[:, SPOOL].all()


def test_pressures_are_judged_sensor_by_sensor():
    sensors = np.zeros(3, kernels.PRESSURE_SENSOR)
    sensors['high'], sensors['rate'], sensors['step'] = 10.0, 1e9, 1.0

    def judge(a, b, supply, stamp):
        return kernels.judge_pressures(sensors, np.array([[a, b]]), supply, stamp, stamp - 1, 2)
    assert judge(4.0, 5.0, 6.0, 1) == (kernels.POSSIBLE, -1)
    assert sensors['value'].tolist() == [4.0, 5.0, 6.0] and sensors['beside'].tolist() == [5.0, 4.0, 0.0]
    assert judge(4.0, 11.0, np.nan, 2) == (kernels.NOT_FINITE, 2)
    assert judge(4.0, 11.0, 6.0, 2) == (kernels.OUT_OF_RANGE, 1)
    assert judge(6.5, 5.0, 6.0, 2) == (kernels.TOO_FAST, 0)
    assert judge(4.0, 5.0, 8.5, 2) == (kernels.TOO_FAST, 2)
    assert sensors['value'].tolist() == [4.0, 5.0, 6.0]
    assert judge(5.5, 5.0, 6.0, 2) == (kernels.POSSIBLE, -1)
    assert sensors['changed'].tolist() == [2, 1, 1]
    # port B stands for 2 ns, while A moved by more than a step
    assert judge(5.6, 5.0, 6.0, 3) == (kernels.POSSIBLE, 1)
    assert judge(5.6, 5.1, 6.0, 4) == (kernels.POSSIBLE, -1)


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
