"""The kernels of a control cycle: clamps, distances, polynomials that know their derivatives, computed torque."""

import numpy as np
import pytest
from support.machines import URDF

import psdyn_ros
from psdyn_ros.control.computed_torque import ComputedTorque
from psdyn_ros.control.motions import SAME, Follow, Path, sample_each
from psdyn_ros.control.path_time import PathTime
from psdyn_ros.control.trajectory import Waypoints, quintic_curve
from psdyn_ros.control.valve_control import ValveControl
from psdyn_ros.control.valve_pid import ValvePid
from psdyn_ros.kernels.control import computed_torque as control
from psdyn_ros.kernels.control.plausibility import share_of, worst_share
from psdyn_ros.kernels.rigid_body.entry import NON_FINITE
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics


@pytest.fixture(scope='module')
def crane():
    return psdyn_ros.load(URDF / 'hiab_xs031.urdf')


@pytest.fixture
def count():
    return np.zeros(4, dtype=np.int64)


def test_clamp_keeps_the_sign_and_counts(count):
    f = np.array([5.0, -7.0, 1.0, -3.0])
    assert control.clamp(f, np.array([2.0, 3.0, 2.0, np.inf]), count) == 0
    assert f.tolist() == [2.0, -3.0, 1.0, -3.0]
    assert count.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_clamp_refuses_what_is_not_finite_and_changes_nothing(bad):
    f, count = np.array([5.0, bad]), np.zeros(2, dtype=np.int64)
    assert control.clamp(f, np.array([2.0, 2.0]), count) == NON_FINITE
    assert f[0] == 5.0 and not count.any()


def test_polynomials_and_their_derivatives_agree_with_numpy(rng):
    coefficients, out = rng.normal(size=(6, 3)), np.empty((3, 3))
    for t in (0.0, -0.7, 1.3):
        control.polynomials(coefficients, t, out)
        for j in range(3):
            p = np.polynomial.Polynomial(coefficients[:, j])
            assert out[:, j] == pytest.approx([p(t), p.deriv()(t), p.deriv(2)(t)], rel=1e-13, abs=1e-13)


def test_the_state_is_read_from_the_columns_wanted_and_no_others(crane, rng):
    x, xd = crane.initial_position + rng.uniform(-0.02, 0.02, 4), rng.uniform(-0.1, 0.1, 4)
    _, position, velocity, _ = crane.joint_state(x, xd)
    order = rng.permutation(8)
    column = {joint: 1 + int(np.flatnonzero(order == joint)[0]) for joint in range(8)} | {-1: -1}
    rows = np.array([[column[int(joint)] for joint in module] for module in crane.records.mods['joint']])
    q, qd = np.concatenate([[np.nan], position[order]]), np.concatenate([[np.nan], velocity[order]])
    out, residual = np.empty((3, 4)), np.empty(4)
    status, gap = control.measured_state(crane.records.mods, rows, residual, q, qd, out)
    assert status == 0 and gap <= 1e-12
    assert out[0] == pytest.approx(x, abs=1e-14) and out[1] == pytest.approx(xd, abs=1e-14)
    q[column[crane.joints.index('lift_boom')]] += 0.01
    assert control.measured_state(crane.records.mods, rows, residual, q, qd, out)[1] > 1e-3
    q[column[crane.joints.index('slew')]] = np.inf
    assert control.measured_state(crane.records.mods, rows, residual, q, qd, out)[0] == NON_FINITE


def test_a_path_is_sampled_as_by_its_motion_at_any_speed(rng):
    curve = quintic_curve(np.array([0.5, 1.0, 2.5, 3.0]), *rng.normal(size=(3, 4, 2)))
    pace = PathTime(0.8)
    follow = Follow(Path(curve, SAME, ('a', 'b')), pace, start=1.0)
    out, wanted = np.empty((2, 3, 3, 2))
    for _ in range(2):
        for first in np.arange(0.7, 6.0, 0.13):
            times = first, first + 0.01, first + 0.5
            follow.samples(times, out)
            sample_each(follow, times, wanted)
            assert out == pytest.approx(wanted, rel=1e-13, abs=1e-13)
        pace.aim(0.25, 1.3, 2.0, 8.0)       # the second time on a path that slows down on its way


class StepByStep(ComputedTorque):
    """The same law without its kernel."""

    def _at_once(self, x, xd, desired, dt):
        return None


def test_computed_torque_at_once_is_computed_torque_step_by_step(crane, rng):
    laws = [kind(crane, np.full(4, 9000.0), np.full(4, 40.0), np.full(4, 2000.0), period=0.002)
            for kind in (ComputedTorque, StepByStep)]
    away = crane.initial_position + np.array([0.3, -0.02, 0.02, 0.05])
    for law in laws:
        law.axes['viscous'], law.axes['coulomb'] = 200.0, [0.0, 300.0, 0.0, 50.0]
        law.hold(crane.initial_position)
        law.reference.follow(Waypoints(crane.coordinates, [1.5, 3.0], [away, crane.initial_position]), 0.0)
        law.feedforward_scale = 0.7
    for k in range(200):
        t = 0.016 * k
        # far enough off to be clipped now and then
        off = np.array([0.3, 0.005, 0.005, 0.1] if k % 3 else [1e-4] * 4)
        x = laws[0].reference.ahead(t)[0] + off * rng.normal(size=4)
        xd = rng.normal(size=4) * 0.1
        for law in laws:
            law.freeze(k % 7 == 0)
        efforts = [law.update(t, x, xd, age=0.001) for law in laws]
        assert efforts[0] == pytest.approx(efforts[1], rel=1e-9, abs=1e-6)
        assert laws[0].predicted_efforts == pytest.approx(laws[1].predicted_efforts, rel=1e-9, abs=1e-6)
        assert laws[0].desired == pytest.approx(laws[1].desired, abs=1e-15)
    assert laws[0].saturations.tolist() == laws[1].saturations.tolist() and laws[0].saturations.all()


@pytest.mark.parametrize('law, hydraulics', [(ValveControl, True), (ValvePid, True), (ComputedTorque, False)])
def test_a_law_that_samples_its_path_by_itself_gives_the_commands_of_one_that_is_given_the_samples(
        law, hydraulics, crane, rng):
    oil = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), crane.actuators) if hydraulics else None
    gains = () if hydraulics else (np.full(4, 900.0), np.full(4, 40.0), np.full(4, 2000.0))
    here, given = (law(crane, *((oil, 0.002) if hydraulics else gains), **({} if hydraulics else {'period': 0.002}))
                   for _ in range(2))
    away = crane.initial_position + np.array([0.1, -0.01, 0.01, 0.03])
    taken = []
    for one in (here, given):
        one.hold(crane.initial_position)
        one.reference.follow(Waypoints(crane.coordinates, [0.5, 1.0], [away, crane.initial_position]), 0.0)
        one.feedforward_scale = 0.8
    taking = here.reference.path
    here.reference.path = lambda *args: taken.append(taking(*args)) or taken[-1]
    given.reference.path = given.reference.samples      # fills the array, and gives no path
    for k in range(300):
        t = 0.004 * k
        if k == 150:
            here.reference.set_speed(0.4), given.reference.set_speed(0.4)
        x, xd = here.reference.ahead(t)[0] + 1e-4 * rng.normal(size=4), 1e-3 * rng.normal(size=4)
        pressures = (60e5 + 1e5 * rng.normal(size=(3, 2)),) if hydraulics else ()
        commands = [one.update(t, x, xd, *pressures) for one in (here, given)]
        assert commands[0] == pytest.approx(commands[1], rel=1e-12, abs=1e-12)
        assert here.desired == pytest.approx(given.desired, abs=1e-15)
    assert all(path is not None for path in taken) and len(taken) == 300


@pytest.mark.parametrize('spoil', [None, lambda one: np.repeat(one, 2)[::2], lambda one: one.astype(np.float32)],
                         ids=['found at their addresses', 'not contiguous', 'of another type'])
def test_arrays_that_are_given_once_count_as_if_given_at_each_call(rng, spoil):
    """Those that are not what the kernel expects are handed over as they are."""
    x, wanted = rng.normal(size=(2, 4))
    tolerance, counts = rng.uniform(0.1, 1.0, 4), rng.integers(0, 9, 4)
    held = (tolerance if spoil is None else spoil(tolerance)), counts
    share = share_of(*held)
    assert hasattr(share, 'arrays') is (spoil is None)
    for _ in range(2):
        assert share(x, wanted) == worst_share(*held, x, wanted)
        tolerance *= 1.5        # changes in place are seen
        counts += 1
    del tolerance, counts, held
    assert share(x, wanted)[2] > 0
