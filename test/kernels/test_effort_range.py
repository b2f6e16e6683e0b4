"""What efforts of a law are restrained by, cycle after cycle, beside the same in NumPy."""

from itertools import product

import numpy as np
import pytest

from psdyn_ros.kernels.control import effort_range
from psdyn_ros.kernels.control.actuation import REST_BAND
from psdyn_ros.kernels.runtime.buffer import views

N, PERIOD, ROOM = 3, 0.005, 4


class Law:
    """`restrain_law` in NumPy, but for `restrain_efforts`."""

    def __init__(self, forces, limits, standstill, friction):
        self.standstill = standstill
        self.buffer, self.check = memory_of(forces, limits, standstill, friction)
        self.errors, self.time, self.moved, self.wrong = None, None, None, 0.0
        self.sum = np.zeros(N)

    def restrain(self, model, gains, integral_gains, scale, motion, command):
        t, _, x, xd, desired, ahead, unknown, stopping = motion
        dt = 0.0 if self.time is None else min(max(t - self.time, 0.0), effort_range.LONGEST_STEP)
        errors = desired[0] - x
        beyond = errors - np.clip(errors, -REST_BAND, REST_BAND)
        self.sum += dt * np.where((self.check.friction > 0.0) & (desired[1] == 0.0), beyond,
                                  errors - self.sum / effort_range.FORGET_S)
        if self.moved is None or desired[1].any():
            self.moved = t
        rests = t - self.moved > effort_range.SETTLING_S
        self.errors = (errors if self.errors is None else self.errors) if stopping else None
        counted = desired.copy()
        if stopping:
            most = np.abs(self.errors) + effort_range.STOP_ERROR
            counted[0] = x + np.clip(errors, -most, most)
        self.check.limits[2] = self.standstill * (effort_range.RESTING if rests else 1.0)
        self.check.ahead[:] = ahead
        integrals = (1.0 if rests else effort_range.STRONGER) * integral_gains * self.sum
        worst, off = effort_range.restrain_efforts(self.buffer, model, gains, scale, np.array((x, xd)), counted,
                                                   np.array((unknown, integrals)), command)
        if worst < 0:
            self.wrong = 0.0
        elif t != self.time:
            self.wrong += PERIOD * min(off, effort_range.GROSS)
        self.time = t
        return worst


def memory_of(forces, limits, standstill, friction):
    """(buffer, arrays) of `EffortRange`, as if nothing had been before."""
    rows = np.argsort(~np.array(forces, dtype=bool), kind='stable')
    buffer = effort_range.make_effort_range(rows, sum(forces), ROOM)
    check = effort_range.EffortRange(*views(buffer, effort_range.TYPES))
    check.limits[:], check.standstill[:], check.memory[effort_range.TIME] = limits, standstill, np.nan
    check.friction[:] = friction
    return buffer, check


def some_motion(rng, cycle, t, x):
    """`Motion` that moves, rests for a second, and stops, with some states that come twice."""
    rests = 60 < cycle < 260
    desired = np.array((x + 1e-3 * rng.normal(size=N), 0.0 * x if rests else rng.normal(size=N), rng.normal(size=N)))
    return effort_range.Motion(t, PERIOD, x, rng.normal(size=N), desired, rng.normal(size=N),
                               rng.uniform(0.0, 0.1, N), cycle > 280)


@pytest.mark.parametrize('forces', [(1, 1, 1), (1, 0, 1)], ids=['all', 'two'])
def test_a_law_is_restrained_as_by_numpy(rng, forces):
    limits = np.array([np.full(N, 2.0), np.full(N, 30.0), np.zeros(N)])
    standstill, t, x, restrained, wrong = rng.uniform(0.5, 3.0, N), 1.0, rng.normal(size=N), [], []
    given = forces, limits, standstill, np.array([0.0, 1.0, 2.0])
    twin, (buffer, check) = Law(*given), memory_of(*given)
    model, a = effort_range.make_effort_model(N), rng.normal(size=(N, N))
    terms = effort_range.EffortModel(*views(model, effort_range.MODEL_TYPES))
    terms.inertia[:] = a @ a.T + np.eye(N)
    for cycle in range(320):
        if cycle % 7:                       # else the state comes once more
            t, x = t + rng.uniform(0.2, 1.8) * PERIOD, x + 1e-3 * rng.normal(size=N)
        motion = some_motion(rng, cycle, t, x)
        terms.state[:], terms.efforts[:] = (x, motion.xd), rng.normal(size=N)
        terms.lack[:] = 0.1 * rng.normal(size=N)
        gains, integral_gains = rng.uniform(0.0, 1.0, (2, N)), rng.uniform(0.0, 5.0, N)
        command, expected = np.tile(rng.normal(size=N) * (3.0 if cycle % 3 else 30.0), (2, 1))
        given = gains, integral_gains, 0.1 * (cycle % 10), motion
        assert (effort_range.restrain_law(buffer, model, *given, command)
                == twin.restrain(model, *given, expected))
        assert command == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert check.memory[effort_range.WRONG_S] == pytest.approx(twin.wrong, rel=1e-9, abs=1e-12)
        restrained.append(check.found[0, 0] != command[0])
        wrong.append(twin.wrong)
    assert any(restrained) and not all(restrained) and max(wrong) > 0.0


def test_what_seals_hold_at_rest_is_explained():
    """Forces within the friction of an axis that rests, less what of it is overcome: the less the more it moves."""
    limits = np.array([np.full(N, 2.0), np.full(N, 1e4), np.full(N, 5.0)])
    (buffer, check), model = memory_of((1, 1, 1), limits, np.ones(N), 0.0), effort_range.make_effort_model(N)
    terms, none = effort_range.EffortModel(*views(model, effort_range.MODEL_TYPES)), np.zeros((2, N))
    terms.inertia[:] = inertia = np.array([[5.0, 1.0, -0.5], [1.0, 4.0, 1.0], [-0.5, 1.0, 2.0]])
    each = np.linalg.inv(inertia)[:, 2]
    assert each.min() < 0.0 < each.max()

    def bounds(friction, measured, desired):
        check.friction[2], check.count[0] = friction, 0
        x, reference = np.zeros((2, N)), np.zeros((3, N))
        x[1, 2], reference[1, 2] = measured, desired
        effort_range.restrain_efforts(buffer, model, none, 1.0, x, reference, none, np.zeros(N))
        return check.found[2:].copy()

    for rate, overcome in product((0.0, 0.25, 1.0, 2.0), (0.0, 30.0, -60.0)):
        terms.dry[2], rest = overcome, effort_range.HELD * max(1.0 - rate, 0.0)
        ends = rest * np.outer([-60.0 - overcome, 60.0 - overcome], each)
        for moves in ((rate, 0.0), (0.0, -rate)):
            low, high = bounds(60.0, *moves) - bounds(0.0, *moves)
            assert low == pytest.approx(ends.min(axis=0), rel=1e-9, abs=1e-12)
            assert high == pytest.approx(ends.max(axis=0), rel=1e-9, abs=1e-12)
