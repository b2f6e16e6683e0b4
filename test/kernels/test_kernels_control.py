"""The kernels of a control cycle: clamps, distances, pressures, polynomials and their derivatives, computed torque."""

import numpy as np
import pytest
from conftest import thorough
from support.machines import URDF

import psdyn_ros
from psdyn_ros.api.allocation import Allocation
from psdyn_ros.control.laws.computed_torque import ComputedTorque, PdGravity
from psdyn_ros.control.laws.registry import make_law
from psdyn_ros.control.laws.valve_computed_torque import ValveControl
from psdyn_ros.control.laws.valve_pid import ValvePid
from psdyn_ros.control.reference.segments import SAME, Follow, Path, PathTime
from psdyn_ros.control.reference.trajectory import Waypoints, quintic_curve
from psdyn_ros.kernels.control import pressure_plausibility
from psdyn_ros.kernels.control.actuation import REST_BAND, clamp, make_actuation
from psdyn_ros.kernels.control.computed_torque import APPROACH_S
from psdyn_ros.kernels.control.path import polynomials
from psdyn_ros.kernels.runtime.compiler import entry
from psdyn_ros.model.locate import find_config
from psdyn_ros.model.parameters.hydraulics import read_hydraulics
from psdyn_ros.tools.demo.demonstration import demonstration


@entry
def clamped(f, limit, counts):
    """Call `clamp`, which is inlined, from Python."""
    clamp(f, limit, counts)


def test_clamp_keeps_the_sign_and_counts():
    f, count = np.array([5.0, -7.0, 1.0, -3.0]), np.zeros(4, dtype=np.int64)
    clamped(f, np.array([2.0, 3.0, 2.0, np.inf]), count)
    assert f.tolist() == [2.0, -3.0, 1.0, -3.0]
    assert count.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize('row', (0, 1))
@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_a_state_that_is_not_finite_changes_nothing_of_a_law(crane, bad, row):
    laws = [make_law('computed_torque', crane, None, None, 0.002) for _ in range(2)]
    state = np.array([crane.initial_position, np.full(4, 1e-3)])
    off = [0.5, 0.01, 0.01, 0.3]        # beyond the limits
    for law in laws:
        law.hold(state[0] + off)
        law.update(0.0, *state)
    spoilt = state.copy()
    spoilt[row, 1] = bad
    with pytest.raises(psdyn_ros.NonFiniteError, match='lift_cylinder'):
        laws[0].update(0.002, *spoilt)
    assert laws[0].saturations.tolist() == laws[1].saturations.tolist() and laws[0].saturations.any()
    assert laws[0].predicted_efforts.tolist() == laws[1].predicted_efforts.tolist()
    commands = [law.update(0.002, *state) for law in laws]
    assert commands[0].tolist() == commands[1].tolist()


def test_polynomials_and_their_derivatives_agree_with_numpy(rng):
    coefficients, out = rng.normal(size=(6, 3)), np.empty((3, 3))
    for t in (0.0, -0.7, 1.3):
        polynomials(coefficients, t, out)
        for j in range(3):
            p = np.polynomial.Polynomial(coefficients[:, j])
            assert out[:, j] == pytest.approx([p(t), p.deriv()(t), p.deriv(2)(t)], rel=1e-13, abs=1e-13)


def test_a_path_is_sampled_as_by_its_motion_at_any_speed(rng):
    curve = quintic_curve(np.array([0.5, 1.0, 2.5, 3.0]), *rng.normal(size=(3, 4, 2)))
    pace = PathTime(0.8)
    follow = Follow(Path(curve, SAME, ('a', 'b')), pace, start=1.0)
    for _ in range(2):
        for t in np.arange(0.7, 6.0, 0.1):
            wanted = follow.at(follow.path_time(t), *pace.at(t)[1:])
            assert follow.sample(t) == pytest.approx(np.array(wanted), rel=1e-13, abs=1e-13)
        pace.aim(0.25, 1.3, 2.0, 8.0)       # the second time on a path that slows down on its way


class Twin:
    """The laws at force level with nothing but calls of a `Manipulator`: what the cycle computes, one line a step."""

    def __init__(self, m, law, gains, joints=(), pd=False):
        self.m, self.law, self.pd = m, law, pd
        self.kp, self.kd, self.ki = gains
        self.sum, self.frozen, self.last = np.zeros(m.dof), np.zeros(len(m.actuators), bool), None
        self.start, self.limit = None, m.limits.effort
        self.saturations, self.map = np.zeros(len(m.actuators), dtype=int), m.joint_map(joints) if joints else None
        self.columns = [m.joints.index(name) for name in joints]

    def joints(self, *motion):
        return np.array(self.m.joint_state(*motion)[1:])[:, self.columns]

    def update(self, t, x, xd, reference):
        m, rest = self.m, np.zeros(self.m.dof)
        dt = 0.0 if self.last is None else min(t - self.last, 0.004)
        (x0, xd0, _), (x1, xd1, xdd1) = (np.array(reference(when)) for when in (t, t + 0.001))
        xd1, xdd1 = 0.7 * xd1, 0.7 * xdd1
        error, rate, wanted = x0 - x, xd0 - xd, xdd1
        if self.map is not None:
            q, want = self.joints(x, xd, rest), self.joints(x0, xd0, xdd1)
            error, rate, wanted = want[0] - q[0], want[1] - q[1], want[2]
        feedback = self.kp * error + self.kd * rate + self.ki * self.sum
        if self.pd:
            needed = m.generalized_forces(self.start, rest, rest) + np.diag(m.mass_matrix(self.start)) * feedback
        elif self.map is None:
            needed = m.generalized_forces(x, xd, wanted + feedback)
        else:
            needed = m.generalized_forces(x, xd, self.map.motion(q[0], q[1], wanted + feedback)[2])
        A = m.actuator_map(x)
        effort = m.allocation.share(A, needed).efforts
        approach = (x0 - x - np.clip(x0 - x, -REST_BAND, REST_BAND)) / APPROACH_S
        v, a = m.actuator_map(x0) @ (xd1 + approach), self.law.axes
        effort = effort + a['coulomb'] * np.tanh(v / a['slip']) + a['viscous'] * v
        beyond = np.abs(effort) > self.limit
        clipped = np.sign(np.abs(A).T @ beyond) * np.sign(A.T @ effort)
        command = effort
        if beyond.any() and len(effort) == m.dof:
            command, self.saturations = np.clip(effort, -self.limit, self.limit), self.saturations + beyond
        elif beyond.any():
            shared = Allocation(m.actuators, dict(zip(m.actuators, self.limit)), dict(zip(
                m.actuators, m.allocation.weights))).share(A, A.T @ effort)
            command = shared.efforts
            self.saturations = self.saturations + [name in shared.at_limit for name in m.actuators]
        frozen = np.abs(m.actuator_map(x0)).T @ self.frozen != 0.0
        summed = np.where(xd0 == 0.0, error - np.clip(error, -REST_BAND, REST_BAND), error)
        self.sum += np.where(frozen & (self.sum * error >= 0.0) | (clipped * error > 0.0), 0.0, summed * dt)
        self.last = t
        return command, effort


FAR = {'hiab_xs031': [0.3, 0.005, 0.005, 0.1], 'five_bar': [0.2, 0.2], 'excavator': [0.1, 0.01, 0.01, 0.02],
       'pkm_2pur2rpu': [0.01, 0.01, 0.002]}


@pytest.mark.parametrize('name, joints', thorough([
    ('hiab_xs031', ()), ('hiab_xs031', ('slew', 'lift_boom', 'tilt_boom', 'telescope')),
    ('five_bar', ('elbow_1', 'elbow_2')), ('five_bar', ()), ('excavator', ()), ('pkm_2pur2rpu', ())], 2, several=True))
@pytest.mark.parametrize('kind', [ComputedTorque, PdGravity])
def test_the_cycle_gives_the_efforts_of_its_slow_twin(name, joints, kind, rng):
    if joints and kind is PdGravity:
        pytest.skip('PD is refused in joint space')
    m = psdyn_ros.load(URDF / f'{name}.urdf')
    gains, options = np.array([np.full(m.dof, gain) for gain in (9000.0, 40.0, 2000.0)]), {}
    if joints:
        options = {'space': 'joint', 'joints': joints}
    law = kind(m, *gains, period=0.002, **options)
    # without the friction of the actuators in the model, as laws compensate that of the reference
    bare = law.load.mechanism
    twin = Twin(bare, law, gains, joints, kind is PdGravity)
    holding = np.abs(law.load.holding_efforts(m.initial_position)).max()
    law._law.limit[:] = twin.limit = np.minimum(m.limits.effort, 3.0 * holding)
    law.axes['viscous'], law.axes['coulomb'] = 0.02 * m.limits.effort, 0.01 * m.limits.effort
    law._law.dry[:] = 1
    law.hold(m.initial_position)
    twin.start = m.initial_position
    law.reference.follow(demonstration(m), 0.0)
    law.feedforward_scale = 0.7
    for k in range(30):
        t = 0.11 * k
        # far enough off to be clipped now and then
        off = np.array(FAR[name]) if k % 3 else np.full(m.dof, 1e-5)
        x = law.reference.ahead(t)[0] + off * rng.uniform(-1.0, 1.0, m.dof)
        xd = 0.1 * off * rng.normal(size=m.dof)
        twin.frozen[:] = k % 7 == 0
        reference = law.reference.ahead
        command, effort = twin.update(t, x, xd, reference)
        law.freeze(twin.frozen)
        given = law.update(t, x, xd, age=0.0)
        size = np.abs(effort).max()
        assert law.predicted_efforts == pytest.approx(effort, rel=1e-8, abs=1e-9 * size)
        assert given == pytest.approx(command, rel=1e-8, abs=1e-9 * size)
        assert law.desired == pytest.approx(np.array(reference(t)), abs=1e-15)
    assert law.saturations.tolist() == twin.saturations.tolist()
    assert law.saturations.any() or joints


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


@pytest.mark.parametrize('name', thorough(
    ['computed_torque', 'pd_gravity', 'valve_computed_torque', 'valve_pid'], ('pd_gravity', 'valve_pid')))
def test_coordinates_as_actuators_by_their_map_get_the_same_commands(name, crane, rng):
    oil = read_hydraulics(find_config('hiab_xs031_hydraulics.yaml'), crane.actuators)
    direct, mapped = (make_law(name, crane, oil, None, 0.002) for _ in range(2))
    assert direct._actuation is None
    mapped._actuation = make_actuation(Allocation(crane.actuators), 4, 4)
    away = crane.initial_position + np.array([0.1, -0.01, 0.01, 0.03])
    for law in (direct, mapped):
        law.hold(crane.initial_position)
        law.reference.follow(Waypoints(crane.coordinates, [0.5, 1.0], [away, crane.initial_position]), 0.0)
    for k in range(20):
        t = 0.06 * k
        x, xd = direct.reference.ahead(t)[0] + 1e-3 * rng.normal(size=4), 1e-3 * rng.normal(size=4)
        pressures = 60e5 + 1e5 * rng.normal(size=(3, 2))
        commands = [law.update(t, x, xd, pressures) for law in (direct, mapped)]
        assert commands[1] == pytest.approx(commands[0], rel=1e-9, abs=1e-9)
        assert mapped.predicted_efforts == pytest.approx(direct.predicted_efforts, rel=1e-9, abs=1e-6)


def test_pressures_are_judged_sensor_by_sensor():
    sensors = np.zeros(3, pressure_plausibility.PRESSURE_SENSOR)
    sensors['high'], sensors['rate'], sensors['step'], sensors['jump'] = 10.0, 1e9, 1.0, np.inf

    def judge(a, b, supply, stamp):
        return pressure_plausibility.judge_pressures(sensors, np.array([[a, b]]), supply, stamp, stamp - 1, 2)
    assert judge(4.0, 5.0, 6.0, 1) == (pressure_plausibility.POSSIBLE, -1)
    assert sensors['value'].tolist() == [4.0, 5.0, 6.0] and sensors['beside'].tolist() == [5.0, 4.0, 0.0]
    assert judge(4.0, 11.0, np.nan, 2) == (pressure_plausibility.NOT_FINITE, 2)
    assert judge(4.0, 11.0, 6.0, 2) == (pressure_plausibility.OUT_OF_RANGE, 1)
    assert judge(6.5, 5.0, 6.0, 2) == (pressure_plausibility.TOO_FAST, 0)
    assert judge(4.0, 5.0, 8.5, 2) == (pressure_plausibility.TOO_FAST, 2)
    assert sensors['value'].tolist() == [4.0, 5.0, 6.0]
    assert judge(5.5, 5.0, 6.0, 2) == (pressure_plausibility.POSSIBLE, -1)
    assert sensors['changed'].tolist() == [2, 1, 1]
    # port B stands for 2 ns, while A moved by more than a step
    assert judge(5.6, 5.0, 6.0, 3) == (pressure_plausibility.POSSIBLE, 1)
    assert judge(5.6, 5.1, 6.0, 4) == (pressure_plausibility.POSSIBLE, -1)


def test_a_jump_of_a_pressure_needs_a_second_message():
    sensors = np.zeros(3, pressure_plausibility.PRESSURE_SENSOR)
    sensors['high'], sensors['rate'], sensors['jump'], sensors['unconfirmed'] = 100.0, 1e12, 2.0, np.nan

    def judge(a, b, stamp, before=1):
        return pressure_plausibility.judge_pressures(sensors, np.array([[a, b]]), 6.0, stamp, before, 100)[0]
    possible, unconfirmed = pressure_plausibility.POSSIBLE, pressure_plausibility.UNCONFIRMED
    assert judge(40.0, 5.0, 1, 0) == possible
    assert [judge(a, 5.0, 2 + k) for k, a in enumerate((41.9, 50.0, 42.0, 50.0, 60.0, 51.0, 70.0, 71.0, 71.5))] == [
        possible, unconfirmed, possible, unconfirmed, possible, unconfirmed, unconfirmed, possible, possible]
    assert judge(90.0, 5.0, 20, 0) == possible      # the first one that is taken needs none
    sensors['jump_rate'] = 1e9
    assert judge(99.0, 5.0, 28, 20) == possible     # 2 and 8 more in 8 ns
    sensors['jump_rate'] = 0.0
    assert judge(90.0, 5.0, 29, 0) == possible
    # both at once, each needs its own
    assert [judge(*values, 30 + k) for k, values in enumerate(((80.0, 20.0), (81.0, 5.0), (81.0, 21.0), (81.0, 21.0)))
            ] == [unconfirmed, possible, unconfirmed, possible]
