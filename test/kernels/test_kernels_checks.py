"""The kernels of checks beside the same in NumPy, one obvious line a step."""

from collections import deque

import numpy as np
import pytest

from psdyn_ros.api.hydraulics.statics import hydraulic_records
from psdyn_ros.kernels.control import effort_range, error_range
from psdyn_ros.kernels.control import pressure_plausibility as kernels
from psdyn_ros.kernels.control import speed_plausibility as speeds
from psdyn_ros.kernels.control.valve_inversion import MIN_CHAMBER_VOLUME_M3
from psdyn_ros.kernels.hydraulics.records import AXIS, FLUID, SPOOL
from psdyn_ros.kernels.runtime.buffer import pack, views
from psdyn_ros.kernels.runtime.compiler import entry
from psdyn_ros.kernels.runtime.status import OK
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics

N, PERIOD = 4, 0.002


def range_of(recent, ahead, now, gains, scale, measured, desired):
    """`set_bounds` in NumPy; recent: deque of the rows of the last cycles."""
    fed = np.outer([1.0, scale], [ahead, now]).reshape(4, -1)
    back = error_range.STRONGER * gains * (desired[:2] - measured)
    recent.append((fed.min(axis=0), fed.max(axis=0), *back))
    low, high = np.min(recent, axis=0), np.max(recent, axis=0)
    return low[0] + np.minimum(low[2:], 0.0).sum(axis=0), high[1] + np.maximum(high[2:], 0.0).sum(axis=0)


def friction(axes, v):
    """Stribeck friction in NumPy."""
    level = axes['coulomb'] + axes['stribeck'] * np.exp(-(v / axes['stribeck_velocity'])**2)
    return level * np.tanh(v / axes['slip']) + axes['viscous'] * v


def some_axes(rng):
    """AXIS records with friction of every kind."""
    axes = np.zeros(N, AXIS)
    for field in ('coulomb', 'stribeck', 'stribeck_velocity', 'viscous', 'slip'):
        axes[field] = rng.uniform(0.1, 1.0, N)
    return axes


def set_model(rng, buffer):
    """Give the buffer of `EffortModel` efforts, inertia and a state; return its arrays."""
    model, a = effort_range.EffortModel(*views(buffer, effort_range.MODEL_TYPES)), rng.normal(size=(N, N))
    model.state[:], model.efforts[:], model.inertia[:] = rng.normal(size=(2, N)), rng.normal(size=N), a @ a.T
    model.inertia[:] += np.eye(N)
    model.lack[:] = rng.normal(size=N)
    return model


class Efforts:
    """`restrain_efforts` in NumPy."""

    def __init__(self, forces, limits, area, room):
        self.rows, self.others, self.recent = np.flatnonzero(forces), np.flatnonzero(~forces), deque(maxlen=room)
        self.away, self.limit, self.speed, self.area = limits[0], limits[1][self.rows], limits[2], area

    def restrain(self, model, gains, scale, measured, desired, added, ahead, command):
        (unknown, integrals), rows, others = added, self.rows, self.others
        away = self.away + unknown
        faster = (model.state[1] - desired[1]) / self.speed
        low, high = range_of(self.recent, ahead, desired[2], gains, scale, measured, desired)
        given = np.array(self.recent)[:, 2:].sum(axis=1) / error_range.STRONGER     # feedback by the gains
        up, down = (effort_range.DEMANDED * least for least in (given.min(axis=0), given.max(axis=0)))
        low = low + np.maximum(up, 0.0) - self.away * np.clip(1.0 + faster, 0.0, 1.0) - unknown
        high = high + np.minimum(down, 0.0) + self.away * np.clip(1.0 - faster, 0.0, 1.0) + unknown
        ahead = ahead + given[-1]
        inertia = model.inertia / self.area[:, None]
        own, coupling = inertia[np.ix_(rows, rows)], inertia[np.ix_(rows, others)]
        efforts = ((model.efforts + model.lack) / self.area)[rows] + 0.5 * coupling @ (low + high)[others]
        spread = 0.5 * np.abs(np.linalg.solve(own, coupling)) @ (high - low)[others]
        without, given = -np.linalg.solve(own, (model.lack / self.area)[rows]), command[rows]
        more = integrals[rows]
        low = low[rows] - spread + np.minimum(without + np.minimum(more, 0.0), 0.0)
        high = high[rows] + spread + np.maximum(without + np.maximum(more, 0.0), 0.0)
        asked = np.linalg.solve(own, given - efforts)
        off = np.maximum(asked - high, low - asked) / away[rows]
        fed, edge = np.clip(ahead[rows], low, high), np.clip(asked, low, high)
        replaced = np.where(off > 0.0, fed + np.maximum(1.0 - off, 0.0) * (edge - fed), asked)
        rest, inertial = np.clip(efforts, -self.limit, self.limit), own @ replaced
        share = min(1.0, ((self.limit - rest * np.sign(inertial)) / np.abs(inertial)).min())
        kept = np.clip(efforts + share * inertial, -self.limit, self.limit)
        restrained = (np.abs(given - kept) > effort_range.ROUNDING * self.limit).any()
        command[rows] = kept if restrained else given
        return (off.argmax(), off.max()) if restrained else (-1, 0.0)


@pytest.mark.parametrize('forces', [[1, 1, 1, 1], [1, 0, 0, 1], [0, 1, 0, 0]], ids=['all', 'two', 'one'])
def test_efforts_are_restrained_as_by_numpy(rng, forces):
    forces, room, area = np.array(forces, dtype=bool), 5, rng.uniform(0.5, 2.0, N)
    limits, restrained = np.array([np.full(N, 0.5), np.full(N, 30.0), rng.uniform(0.5, 3.0, N)]), []
    twin, model = Efforts(forces, limits, area, room), effort_range.make_effort_model(N)
    buffer = effort_range.make_effort_range(np.argsort(~forces, kind='stable'), forces.sum(), room)
    check = effort_range.EffortRange(*views(buffer, effort_range.TYPES))
    check.limits[:], check.area[:] = limits, area
    for cycle in range(60):
        expected_model, gains, scale = set_model(rng, model), rng.uniform(0.0, 1.0, (2, N)), 0.1 * (cycle % 10)
        check.ahead[:], measured, desired = rng.normal(size=N), rng.normal(size=(2, N)), rng.normal(size=(3, N))
        added = np.array((rng.uniform(0.0, 0.1, N), 0.1 * rng.normal(size=N)))
        command, expected = np.tile(rng.normal(size=N) * (5.0 if cycle % 3 else 50.0), (2, 1))
        wanted = twin.restrain(expected_model, gains, scale, measured, desired, added, check.ahead, expected)
        worst, off = effort_range.restrain_efforts(buffer, model, gains, scale, measured, desired, added, command)
        assert worst == wanted[0] and off == pytest.approx(wanted[1], rel=1e-9)
        assert command == pytest.approx(expected, rel=1e-9, abs=1e-9)
        restrained.append(worst >= 0)
    assert any(restrained) and not all(restrained)


def test_an_effort_that_is_not_finite_is_left_to_the_gate():
    buffer, model, command = effort_range.make_effort_range([0], 1, 2), effort_range.make_effort_model(1), np.ones(1)
    command[:], none = np.nan, np.zeros((3, 1))
    given = buffer, model, np.ones((2, 1)), 1.0, none[1:], none, none[1:], command
    assert effort_range.restrain_efforts(*given) == (-1, 0.0) and np.isnan(command[0])
    model = effort_range.EffortModel(*views(model, effort_range.MODEL_TYPES))
    model.inertia[:], model.lack[:], command[:] = 1.0, np.nan, 0.5
    assert effort_range.restrain_efforts(*given)[0] == 0 and np.isnan(command[0])


def test_the_effort_model_is_inverse_dynamics_and_friction(rng, crane):
    handle, axes, buffer = crane.handle(), some_axes(rng), effort_range.make_effort_model(N)
    x, xd, rate = crane.initial_position + rng.uniform(-0.01, 0.01, N), 0.1 * rng.normal(size=N), rng.normal(size=N)
    assert effort_range.evaluate_efforts(handle.tree, handle.loops, buffer, axes, x, xd, rate) == OK
    model = effort_range.EffortModel(*views(buffer, effort_range.MODEL_TYPES))
    assert (model.state == [x, xd]).all() and model.inertia == pytest.approx(crane.mass_matrix(x))
    efforts = crane.inverse_dynamics(x, xd, np.zeros(N))
    assert model.efforts == pytest.approx(efforts + friction(axes, rate))
    model.efforts[:], model.inertia[:] = 1.0, 2.0
    assert effort_range.evaluate_efforts(None, None, buffer, axes, x, xd, rate) == OK
    assert model.efforts == pytest.approx(1.0 + friction(axes, rate)) and (model.inertia == 2.0).all()
    assert effort_range.evaluate_efforts(handle.tree, handle.loops, buffer, axes, np.full(N, np.nan), xd, rate) != OK


def test_speeds_for_which_valves_are_opened_are_restrained_as_by_numpy(rng):
    rows, slack, room, learning, recent, trim = [1, 2, 3], rng.uniform(0.01, 0.1, N), 5, 0.02, deque(maxlen=5), 0.0
    buffer, found = error_range.make_opening_range(rows, N, room), []
    check = error_range.OpeningRange(*views(buffer, error_range.TYPES))
    check.slack[:], check.learning[0], check.open[:] = slack, learning, [[-1.2], [0.9]]
    for cycle in range(60):
        check.motion[:] = motion = rng.normal(size=(5, N))
        gains, scale, asked = rng.uniform(0.0, 1.0, (2, N)), 0.1 * (cycle % 10), rng.normal(size=N)
        asked *= 10.0 if cycle % 3 == 0 else 0.5
        stopping = cycle % 7 == 0
        least, most = range_of(recent, motion[4], motion[3], gains, scale, motion[:2], motion[2:])
        low, high = np.minimum(trim + least - slack, 0.9), np.maximum(trim + most + slack, -1.2)
        edge, fed = np.clip(asked, low, high), trim + scale * motion[4]
        beyond = np.abs(asked - edge) / slack
        kept = np.where(beyond > 0.0, fed + np.maximum(1.0 - beyond, 0.0) * (edge - fed), asked)
        if stopping:
            rates, left = motion[3:5], error_range.STOP_SHARE * slack
            kept = np.clip(kept, trim + rates.min(axis=0) - left, trim + rates.max(axis=0) + left)
        off = beyond[rows]
        wanted = (rows[off.argmax()], pytest.approx(off.max())) if off.any() else (-1, 0.0)
        assert error_range.restrain_speeds(buffer, gains, scale, asked, stopping) == wanted
        assert check.speeds[rows] == pytest.approx(kept[rows])
        assert check.found[:, rows] == pytest.approx(np.array([asked, low, high])[:, rows])
        within = (kept > -1.2) & (kept < 0.9)
        trim += within * learning * (kept - np.clip(kept, least, most) - trim)
        assert check.trim[rows] == pytest.approx(trim[rows])
        found.append(wanted[0] >= 0)
    assert any(found) and not all(found)


class Forces:
    """`judge_momentum` in NumPy."""

    def __init__(self, *given):
        self.rows, self.area, self.residual, self.friction, self.rest, self.integral = given
        self.smooth, self.given, self.speed, self.noise = (0.0 * self.area,) * 2, [], None, 0.0 * self.area

    def judge(self, model, command, speed, desired, unknown, dt):
        if not 0.0 <= dt <= speeds.LONGEST_STEP_S or np.isnan(command[self.rows]).any():
            self.given, self.speed = [], None
            return speeds.BEGUN
        self.given.append((dt, *command[self.rows]))
        times, commands = np.array(self.given)[:, 0], np.array(self.given)[:, 1:]
        if times.sum() < speeds.STEP_S - 1e-12:
            return speeds.NOT_JUDGED
        waited, force = times.sum(), times @ commands / times.sum() * self.area
        self.given, now = [], model.efforts[self.rows].copy()
        own, stands = model.inertia[np.ix_(self.rows, self.rows)], not desired.any() and all(np.abs(speed) < self.rest)
        if self.speed is None:
            self.off = self.lack = own @ self.integral if stands else force - now
            self.usual, self.mean, self.learnt = now * (not stands), speed, 0.0
            self.times, self.three = [speeds.HORIZON_S] if stands else [], np.zeros((3, len(now)))
        else:
            excess = force - 0.5 * (self.model + now) - model.inertia[self.rows] @ (speed - self.speed) / waited
            part, (once, twice) = min(waited / speeds.HORIZON_S, 1.0), self.smooth
            self.three = np.array((*self.three[1:], excess))
            once = once + part * (np.median(self.three, axis=0) - once)
            self.smooth = once, twice + part * (once - twice)
            begins, self.times = sum(self.times) < speeds.HORIZON_S - 1e-8, [*self.times, waited]
            new, learnt = (waited / sum(self.times), 1.0) if begins else (10.0 * waited, 2.0 * waited)
            self.off, self.mean = self.off + new * (excess - self.off), self.mean + new * (speed - self.mean)
            self.lack = self.lack + learnt * (self.off - self.lack)
            self.usual = self.usual + learnt * (now - self.usual)
            self.learnt += learnt * (speed - self.mean - self.learnt)
        self.speed, self.model = speed, now
        change, wrong = np.linalg.solve(own, 0.1 * np.array((self.off - self.lack, now - self.usual)).T).T
        known = np.abs(np.linalg.inv(own)) @ self.friction + unknown[self.rows] + np.abs(wrong)
        allowed = (np.clip(5.0 * np.sqrt(self.noise), self.residual, 2.0 * self.residual)
                   + speeds.INACCURACY * np.abs(speed - self.mean - self.learnt)[self.rows]
                   + speeds.HORIZON_S * known)
        self.noise = self.noise + 0.005 * (np.minimum(np.abs(change), self.residual)**2 - self.noise)
        self.found, share = (change, allowed), np.abs(change) / allowed
        return int(share.argmax()) if share.max() > 1.0 else speeds.EXPLAINED


@pytest.mark.parametrize('rows', [[0, 1, 2, 3], [0, 3], [1]], ids=['all', 'two', 'one'])
def test_momentum_is_judged_as_by_numpy(rng, rows):
    area, allowed, rest = rng.uniform(0.5, 2.0, len(rows)), rng.uniform(0.1, 0.3, len(rows)), np.full(N, 0.02)
    twin, buffer, found = Forces(rows, area, 0.05, allowed, rest, area - 1.0), speeds.make_momentum(rows, N), set()
    check, model = speeds.Momentum(*views(buffer, speeds.TYPES)), effort_range.make_effort_model(N)
    check.area[:], check.friction[:], check.rest[:], check.residual[0] = area, allowed, rest, 0.05
    arrays, check.forces[speeds.INTEGRAL] = set_model(rng, model), area - 1.0
    arrays.lack[:] = 0.0
    for cycle in range(400):
        stands = cycle < 200
        speed = rng.normal(size=N) * (0.005 if stands else 0.1)
        desired, unknown = np.zeros(N) if stands else rng.normal(size=N), rng.uniform(0.0, 0.1, N)
        command, dt = rng.normal(size=N), PERIOD
        if cycle % 150 == 149:
            command[rows[-1]] = np.nan
        elif cycle % 130 == 129:
            dt = rng.choice((-0.01, 0.2, np.nan))
        verdict = speeds.judge_momentum(buffer, model, command, speed, desired, unknown, dt)
        assert verdict == twin.judge(arrays, command, speed, desired, unknown, dt)
        if verdict >= speeds.EXPLAINED:
            assert check.found == pytest.approx(np.array(twin.found), rel=1e-9, abs=1e-9)
            assert arrays.lack[rows] == pytest.approx(2.0 * twin.smooth[0] - twin.smooth[1], rel=1e-9, abs=1e-9)
        found.add(min(verdict, 0))
    assert found == {speeds.BEGUN, speeds.NOT_JUDGED, speeds.EXPLAINED, 0}


def test_a_momentum_that_is_not_finite_is_not_explained():
    buffer, model, zero = speeds.make_momentum([0, 1], 2), effort_range.make_effort_model(2), np.zeros(2)
    arrays = effort_range.EffortModel(*views(model, effort_range.MODEL_TYPES))
    arrays.inertia[:], arrays.efforts[0] = np.eye(2), np.nan
    speeds.Momentum(*views(buffer, speeds.TYPES)).residual[0] = 1.0
    assert speeds.judge_momentum(buffer, model, zero, zero, zero, zero, speeds.STEP_S) == 0


def smoothed(speed, rates, limit, asked, command):
    """Smoothed speeds, those that no command asks for over a longer time."""
    slips = asked * np.abs(command) < limit
    return speed + PERIOD / np.where(slips, speeds.SLIP_S, speeds.SMOOTHING_S) * (rates - speed)


class Speeds:
    """`judge_speeds` in NumPy."""

    def __init__(self, limits):
        self.limits, self.smooth, self.rested, self.fast, self.apart = limits, np.zeros(N), 0.0, 0, 0

    def judge(self, rates, desired, command, stopping):
        fast, off = np.abs(rates) / self.limits[0], np.abs(rates - desired) / self.limits[1]
        self.fast = self.fast + 1 if fast.max() > 1.0 else 0
        self.apart = self.apart + 1 if off.max() > 1.0 else 0
        if self.fast >= speeds.IN_A_ROW:
            return speeds.TOO_FAST, fast.argmax()
        if self.apart * PERIOD >= speeds.APART_S and not stopping:
            return speeds.APART, off.argmax()
        self.smooth = smoothed(self.smooth, rates, *self.limits[2:], command)
        rest = np.abs(self.smooth) / self.limits[2]
        if desired.any():
            self.rested = 0.0
        elif self.rested < speeds.RESTING_S:
            self.rested = self.rested + PERIOD if rest.max() < speeds.REST else 0.0
        if self.rested < speeds.RESTING_S or rest.max() <= 1.0:
            return speeds.SOUND, -1
        return speeds.NOT_STANDING, rest.argmax()


def test_speeds_are_judged_as_by_numpy(rng):
    limits = np.array([np.full(N, 1.0), np.full(N, 0.5), np.full(N, 0.02), [*np.full(N - 1, 0.3), np.inf]])
    twin, found, smooth, memory = Speeds(limits), set(), np.zeros(N), np.zeros(3)
    for size, reference, stopping, states in ((0.005, 0.0, False, 400), (0.05, 0.0, False, 100), (0.3, 0.2, False, 50),
                                              (0.8, 0.1, False, 60), (0.8, 0.1, True, 60), (2.0, 0.1, False, 30)):
        sign = rng.choice((-1.0, 1.0), N)
        for _ in range(states):
            rates, desired = size * sign * rng.uniform(0.9, 1.0, N), reference * rng.uniform(0.5, 1.0, N)
            command = rng.uniform(-0.1, 0.1, N)
            verdict = speeds.judge_speeds(limits, smooth, memory, rates, desired, command, PERIOD, stopping)
            assert verdict == twin.judge(rates, desired, command, stopping)
            found.add(verdict[0])
    assert found == set(range(4))


def test_a_stop_is_judged_as_by_numpy(rng):
    limits, begin = np.array([rng.uniform(0.5, 1.0, N), *rng.uniform(0.05, 0.1, (2, N))]), rng.uniform(0.3, 1.0, N)
    stop, smooth, found, fast = np.array([begin, begin, np.zeros(N)]), begin.copy(), [], begin.copy()
    for k in range(600):
        rates = begin * max(1.0 - 0.6 * k * PERIOD, 0.0) * rng.uniform(0.95, 1.05, N)
        asked = -begin * np.clip(1.0 - 2.0 * (k * PERIOD - 0.5 * begin), 0.0, 1.0)
        smooth += PERIOD / speeds.SMOOTHING_S * (rates - smooth)
        fast = np.maximum(fast - (k > 0) * PERIOD * limits[0], np.abs(asked))
        left = np.maximum(fast + limits[1], limits[2])
        found.append(speeds.judge_stop(limits, stop, rates, asked, k * PERIOD, PERIOD))
        assert found[-1] == int(np.argmax([1.0, *np.minimum(smooth, rates) / left])) - 1
        assert stop[1:] == pytest.approx(np.array([smooth, left]))
    assert min(found) == -1 < max(found)


def test_a_swing_is_judged_as_by_numpy(rng):
    limits, swing, rested, found = np.outer([0.02, 0.3, np.inf], np.ones(N)), np.zeros((10, N)), np.zeros(1), set()
    smooth, most, rest = np.zeros(N), np.zeros(N), 0.0
    for k in range(900):
        desired = np.full(N, 0.1 if k < 100 or 700 <= k < 750 else 0.0)
        rates = desired + rng.uniform(-1.0, 1.0, N) * 0.02 + np.where(np.arange(N) == 2, max(k - 450, 0) * 1e-3, 0.0)
        command = rng.uniform(-0.1, 0.1, N)
        smooth = smoothed(smooth, rates, *limits[:2], command)
        wanted = -1
        if desired.any():
            rest, most = 0.0, np.abs(smooth)
        elif rest < speeds.SETTLING_S:
            rest, most = rest + PERIOD, np.maximum(most, np.abs(smooth))
        else:
            share = np.abs(smooth) / np.maximum(speeds.GROWTH * most, limits[0])
            wanted = int(share.argmax()) if share.max() > 1.0 else -1
        given = limits, swing[:3], rested, swing[3:], rates, desired, command, PERIOD
        assert speeds.judge_swing(*given) == (wanted, -1)
        found.add(wanted)
    assert found == {-1, 2}


@entry
def speed(buffer, supply, line, pressures, row, command):
    """Call `speed_for`, which only kernels call, from Python."""
    w = kernels.bind_witnesses(buffer)
    oil, axis = kernels.measured_oil(w, pressures, supply, line), w.records[row]['actuator']
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
                                             np.zeros((6, N))))
        self.check = kernels.Witnesses(*views(self.buffer, kernels.TYPES))
        self.oil = self.supply, np.nan, np.full((n, 2), 0.4 * self.supply['pressure'][0])

    def move(self, rng):
        motion = self.check.motion
        motion[0], motion[2] = rng.uniform(0.1, 0.3, N), 0.1 * rng.normal(size=N)
        motion[1], motion[3] = motion[0] + rng.uniform(-1e-3, 1e-3, N), motion[2] + 0.01 * rng.normal(size=N)
        motion[4:] = 1e3 * rng.normal(size=(2, N))
        return motion.copy()

    def restrain(self, command, last, stopping=False):
        return kernels.restrain_valves(self.buffer, *self.oil, command, last, PERIOD, stopping)

    def compare(self, commands, dt):
        return kernels.compare_flows(self.buffer, *self.oil, commands, dt)


@pytest.fixture
def oil(crane):
    return Oil(crane)


def _share(at, w, begin, end, too_high):
    """Share of the way between two commands at which the speed leaves its range."""
    shares = np.linspace(0.0, 1.0, 2001)
    within = [at(begin + share * (end - begin)) <= w['high'] if too_high else
              at(begin + share * (end - begin)) >= w['low'] for share in shares]
    return 1.0 if all(within) else shares[max(within.index(False) - 1, 0)]


def test_valves_are_restrained_the_less_the_farther_a_command_is_off(rng, oil):
    restrained = held = 0
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
            begin, too_high = np.nan_to_num(last[row]), at(given[row]) > w['high']
            if not min(w['low'], 0.0) <= at(begin) <= max(w['high'], 0.0):
                begin *= _share(at, w, 0.0, begin, at(begin) > 0.0)
            share = max(1.0 - beyond[-1], 0.0) * _share(at, w, begin, given[row], too_high)
            assert command[row] == pytest.approx(begin + share * (given[row] - begin), abs=2.0**-kernels.HALVINGS)
            held += beyond[-1] >= 1.0
            assert abs(command[row]) <= max(abs(np.nan_to_num(last[row])), abs(given[row]))     # opened no farther
        wanted = (int(np.argmax(beyond)), pytest.approx(max(beyond))) if max(beyond) > 0.0 else (-1, 0.0)
        assert (worst, off) == wanted
    assert 20 < restrained < 120 and 10 < held < restrained


def test_in_a_stop_a_valve_is_opened_for_its_reference_whatever_the_error_is(rng, oil):
    found = []
    for _ in range(20):
        motion = oil.move(rng)
        oil.check.motion[1] += rng.choice((-0.05, 0.05), N)         # errors that explain a speed either way
        open_wide = 0.3 * np.sign(motion[2])
        oil.restrain(open_wide.copy(), open_wide)                   # from here on no force of the model changes
        for command in (np.zeros(N), open_wide, -open_wide):
            free, stopped = command.copy(), command.copy()
            oil.restrain(free, open_wide)
            oil.restrain(stopped, open_wide, True)
            for k, row in enumerate(oil.rows):
                rates, before, after = motion[2:4, row], *(speed(oil.buffer, *oil.oil, k, u[row])
                                                           for u in (free, stopped))
                room = kernels.STOP_SHARE * (0.01 + kernels.SLACK * max(-rates.min(), rates.max()))
                low, high = min(rates.min() - room, 0.0), max(rates.max() + room, 0.0)
                assert low - 1e-3 <= after <= high + 1e-3
                assert after == before or not rates.min() - room <= before <= rates.max() + room
                found.append((after > before) - (after < before))
    assert {-1, 0, 1} == set(found)


def test_speeds_that_are_explained_are_those_of_numpy(rng, oil):
    rows, c, before, lasting = oil.rows, oil.cylinders, np.zeros(N), 0.0
    for _ in range(3):
        position, reference, rate, ahead, residual, effort = oil.move(rng)
        oil.restrain(np.zeros(N), np.zeros(N))
        area = np.array([c['area_a'], c['area_b']])
        volume = np.array([c['dead_a'] + area[0] * position[rows],
                           c['dead_b'] + area[1] * (c['stroke'] - position[rows])])
        stiffness = (c['bulk'] * area**2 / volume).sum(axis=0)
        lacking, share = -residual[rows] / stiffness, 1.0 - np.exp(-PERIOD / kernels.LASTING_S)
        lasting += share * (lacking - lasting)
        errors = np.array([(reference - position)[rows], lacking, -lasting])
        slowest, fastest = np.minimum(rate, ahead)[rows], np.maximum(rate, ahead)[rows]
        room = 0.01 + kernels.SLACK * np.maximum(-slowest, fastest)
        changing = kernels.CHANGE * (effort - before)[rows] / (PERIOD * stiffness)
        for name, limit, most in (('low', np.minimum, slowest - room), ('high', np.maximum, fastest + room)):
            more = limit(changing, 0.0) + kernels.LOOP_GAIN * limit(errors, 0.0).sum(axis=0)
            assert oil.check.records[name] == pytest.approx(most + more, rel=1e-6)
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


@pytest.mark.parametrize('limited', [0, 1])
def test_pressures_may_change_as_by_numpy(rng, oil, limited):
    c, n = oil.cylinders, len(oil.cylinders)
    oil.supply['limited'], oil.supply['flow'], oil.supply['capacity'] = limited, 1e-3, 1e-10
    commanded, margin, fastest, decay = np.arange(n) > 0, rng.uniform(0.01, 0.05, n), np.full((n, 2), 3e8), 0.8
    sensors, open_by = np.zeros(2 * n + 1, kernels.PRESSURE_SENSOR), np.ones(n)
    sensors['high'], sensors['rate'] = rng.uniform(2e7, 3e7, 2 * n + 1), 7.0
    buffer = kernels.make_pressure_rates(c, commanded, margin, fastest, decay)
    for cycle in range(20):
        command, position, rate = rng.uniform(-1.0, 1.0, N), rng.uniform(-0.1, 0.5, N), 0.2 * rng.normal(size=N)
        command[cycle % N] = np.nan
        kernels.set_pressure_rates(buffer, sensors, oil.supply, command, position, rate)
        now = np.where(commanded, np.abs(np.nan_to_num(command))[oil.rows], 1.0)
        open_by = np.maximum(now, decay * open_by)
        high = sensors['high'][:-1].reshape(n, 2).max(axis=1)
        flow = c['gain'].max(axis=1) * np.sqrt(high) * np.minimum(open_by + kernels.OPENING_MARGIN, 1.0)
        area, x = np.array([c['area_a'], c['area_b']]), position[oil.rows]
        volume = np.array([c['dead_a'] + area[0] * x, c['dead_b'] + area[1] * (c['stroke'] - x)])
        least = np.maximum(volume, MIN_CHAMBER_VOLUME_M3)
        rates = c['bulk'] / least * (flow + area * (np.abs(rate[oil.rows]) + margin))
        assert sensors['rate'][:-1] == pytest.approx(np.minimum(rates.T, fastest).ravel())
        of_supply = (flow.sum() + oil.supply['flow'][0]) / oil.supply['capacity'][0] if limited else 7.0
        assert sensors['rate'][-1] == pytest.approx(of_supply)
    assert (rates > 3e8).any() and (rates < 3e8).any()
