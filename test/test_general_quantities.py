"""What the API does on machines with loops of any kind: actuators, limits, joint maps, payloads, integrator."""

import re
from pathlib import Path

import numpy as np
import pytest
from support import urdf_text as urdf
from support.comparison import error, same
from support.general_cases import made
from support.general_machines import general_machine
from support.general_oracle import GeneralOracle
from support.machines import hiab, load

import psdyn_ros
from psdyn_ros import (
    ActuationError,
    InertiaError,
    MeasurementError,
    NonFiniteError,
    ShapeError,
    StateError,
    UnknownNameError,
    UnreachableStrokeError,
)
from psdyn_ros.model.locate import find_machine


@pytest.fixture(params=['fixed', 'floating'])
def case(request):
    return made(request.param)


def conservative(name='fixed'):
    """The machine without its losses."""
    machine, _, m, s = made(name)
    xml = re.sub('<dynamics [^>]*/>', '', machine.xml)
    return psdyn_ros.load(xml, gravity=machine.gravity, coordinates=machine.coordinates), s


# Actuators

def test_the_actuator_map_maps_rates_and_efforts(case):
    _, _, m, s = case
    A = m.actuator_map(s.x)
    assert A.shape == (len(m.actuators), m.dof) and not A[:, :m.dof - len(m.coordinates)].any()
    names, _, velocity, _ = m.joint_state(s.x, s.xd)
    assert error(A @ s.xd, velocity[[names.index(name) for name in m.actuators]]) < 1e-13
    f = m.inverse_dynamics(s.x, s.xd, s.xdd)
    needed = m.generalized_forces(s.x, s.xd, s.xdd)
    joints = slice(m.dof - len(m.coordinates), None)
    assert error((A.T @ f)[joints], needed[joints]) < 1e-11
    # the least of all such efforts has no part that the machine does not feel
    null = np.linalg.svd(A.T[joints])[2][len(m.coordinates):]
    assert len(null) == 1 and np.abs(null @ f).max() < 1e-10 * np.abs(f).max()


def test_too_few_actuators(rng):
    machine = general_machine(rng, ['four_bar', 'turn'], under_actuated=True)
    m = psdyn_ros.load(machine.xml)
    x, zero = m.initial_position, np.zeros(2)
    words = rf"'machine' has 1 actuators for 2 joint coordinates \({', '.join(m.coordinates)}\); generalized_forces"
    for call in (lambda: m.inverse_dynamics(x, zero, zero), lambda: m.gravity_forces(x), lambda: m.allocation):
        with pytest.raises(ActuationError, match=words):
            call()
    assert m.generalized_forces(x, zero, zero).shape == (2,)
    assert m.actuator_map(x).shape == (1, 2)


def test_limits_are_those_of_actuators_and_of_coordinates(case):
    machine, _, m, _ = case
    joints = m.machine.description.joints
    for limits, names in ((m.limits, m.actuators), (m.coordinate_limits, m.coordinates)):
        assert limits.lower.tolist() == [joints[name].lower for name in names]
        assert limits.effort.tolist() == [joints[name].effort for name in names]
    m.coordinate_limits.lower[:] = 99.0
    m.initial_position[:] = 99.0
    assert not (m.coordinate_limits.lower == 99.0).any() and not (m.initial_position == 99.0).any()


def test_sizes_and_names(case):
    machine, oracle, m, _ = case
    assert m.coordinates == machine.coordinates and m.actuators == machine.actuators
    assert (m.dof, m.nx) == (3 + 6 * m.floating, 3 + 7 * m.floating)
    assert set(m.joints) == set(oracle.joints) and set(oracle.links) <= set(m.links)
    assert repr(m) == f"<Manipulator 'machine': {m.dof} DoF, 4 actuators, 3 loops, {m.total_mass:.2f} kg>"
    start = oracle.start_position()
    assert error(m.initial_position, start) < 1e-12


def test_names_of_links_are_checked(case):
    _, _, m, s = case
    for name in ('base_lin', None, 5):
        with pytest.raises(UnknownNameError, match="no such link in 'machine'"):
            m.link_pose(s.x, name)
        with pytest.raises(UnknownNameError, match="no such link in 'machine'"):
            m.link_twist(s.x, s.xd, name)


# Joint maps

def test_any_sufficient_set_of_joints_tells_the_state(case, rng):
    _, oracle, m, s = case
    names, *told = m.joint_state(s.x, s.xd, s.xdd)
    base = (s.x[:7], s.xd[:6]) if m.floating else None
    sets = [names, m.coordinates, m.coordinates[::-1], ('m1_five_bar_left_crank', 'm1_five_bar_right_crank',
                                                        'm2_twin_cylinders_boom')]
    for measured in sets:
        rows = [names.index(name) for name in measured]
        try:
            joint_map = m.joint_map(measured)
        except MeasurementError as problem:
            # the cranks may be singular as coordinates of the pose that was drawn
            assert measured == sets[3] and 'five_bar' in str(problem)
            continue
        x, xd, residual = joint_map.state(*(values[rows] for values in told[:2]), base)
        assert error(x, s.x) < 1e-9 and error(xd, s.xd) < 1e-8 and residual < 1e-9
        xdd = joint_map.motion(*(values[rows] for values in told), base)[2]
        assert error(xdd[m.dof - len(m.coordinates):], s.xdd[m.dof - len(m.coordinates):]) < 1e-7
    assert m.joint_map(names) is m.joint_map(list(names))


def test_rows_of_measured_joints_are_each_as_alone(case, rng):
    _, _, m, s = case
    names, position, velocity, _ = m.joint_state(s.x, s.xd)
    measured = names[::-1]
    joint_map = m.joint_map(measured)
    q = position[::-1] + 1e-3 * rng.standard_normal((6, len(names)))
    qd = velocity[::-1] + 0.1 * rng.standard_normal(q.shape)
    q[2, 1], qd[4, 0] = np.nan, np.inf
    # strided, as columns of a table are
    x, xd, residual = joint_map.states(np.asfortranarray(q), np.asfortranarray(qd))
    assert x.shape == (6, m.nx) and xd.shape == (6, m.dof) and residual.shape == (6,)
    for k in (0, 1, 3, 5):
        alone = joint_map.state(q[k], qd[k])
        assert np.array_equal(x[k], alone[0]) and np.array_equal(xd[k], alone[1]) and residual[k] == alone[2] > 0.0
    assert np.isnan(x[2]).all() and np.isnan(xd[2]).all() and np.isnan(residual[2]) and np.isfinite(x[4]).all()
    assert joint_map.states(q)[1] is None
    with pytest.raises(ShapeError, match='expected .N, '):
        joint_map.states(q, qd[:, 1:])


def test_rows_that_no_pose_has_are_nan_and_the_others_are_not():
    m = psdyn_ros.load(find_machine('five_bar'))
    x, xd, residual = m.joint_map(m.coordinates).states(
        [m.initial_position, [2.6, 0.3], m.initial_position + 0.05], np.ones((3, 2)))
    assert np.isnan(x[1]).all() and np.isnan(residual[1])
    assert np.array_equal(x[::2], m.initial_position + [[0.0, 0.0], [0.05, 0.05]]) and (xd[::2] == 1.0).all()


def test_contradicting_joints_have_a_residual(case):
    _, _, m, s = case
    names, position, *_ = m.joint_state(s.x)
    wrong = position.copy()
    extra = next(name for name in names if 'five_bar' in name and name not in m.coordinates)
    wrong[names.index(extra)] += 0.01
    residuals = m.joint_map(names).residuals(wrong)
    assert residuals['m1_five_bar_close'] == pytest.approx(0.01, rel=1e-6)
    assert m.joint_map(names).state(wrong)[2] == pytest.approx(0.01, rel=1e-6)
    twin = next(name for name in residuals if 'twin' in name)
    assert residuals[twin] < 1e-12


@pytest.mark.parametrize('names, kind, words', [
    (('m1_five_bar_left',), MeasurementError, "do not fix loop 'm1_five_bar_close'; measure .* too, or others of"),
    (('m1_five_bar_left', 'm1_five_bar_left_crank'), MeasurementError, 'do not fix loop .*twin_cylinders_eye_left'),
    ((), MeasurementError, 'do not fix loop'),
    (('m1_five_bar_left', 'm1_five_bar_left'), MeasurementError, "'m1_five_bar_left' is listed 2 times"),
    (('m1_five_bar_lef',), UnknownNameError, "did you mean 'm1_five_bar_left'"),
    (('float',), UnknownNameError, "joint 'float': no movable joint"),
    (5, MeasurementError, 'expected a list of joint names')])
def test_joint_maps_that_do_not_fit(case, names, kind, words):
    _, _, m, _ = case
    with pytest.raises(kind, match=words):
        m.joint_map(names)


def test_joint_maps_check_their_numbers(case):
    _, _, m, s = case
    names, position, *_ = m.joint_state(s.x)
    with pytest.raises(ShapeError, match='position has shape'):
        m.joint_map(names).state(position[1:])
    position[0] = np.nan
    with pytest.raises(NonFiniteError, match=f"position of '{names[0]}' is nan"):
        m.joint_map(names).state(position)


def test_measured_positions_that_no_pose_has():
    m = psdyn_ros.load(find_machine('five_bar'))
    with pytest.raises(MeasurementError, match="loop 'pin_c' with shoulder_1 = 2.6, shoulder_2 = 0.3: no position cl"):
        m.joint_map(('shoulder_1', 'shoulder_2')).state([2.6, 0.3])
    with pytest.raises(UnreachableStrokeError, match="loop 'pin_c': does not close at shoulder_1 = 2.6, shoulder_2 ="):
        m.joint_state([2.6, 0.3])


# Payload

def test_a_payload_is_a_link_more(case, rng):
    machine, oracle, m, s = case
    link = str(rng.choice(oracle.links))
    mass, com, turn = 7.0, rng.normal(size=3) * 0.2, urdf.rotation(rng.normal(size=3))
    inertia = turn @ np.diag((0.3, 0.4, 0.5)) @ turn.T
    laden = m.with_payload(link, mass, com, inertia)
    assert laden.coordinates == m.coordinates and laden.total_mass == pytest.approx(m.total_mass + mass)
    payload = urdf.link('load', mass, com, inertia) + urdf.fixed(link, 'load', np.eye(4))
    ref = GeneralOracle(machine.xml.replace('<ros2_control', payload + '<ros2_control'), machine.gravity,
                        coordinates=machine.coordinates)
    assert error(laden.generalized_forces(s.x, s.xd, s.xdd), ref.generalized_forces(s.x, s.xd, s.xdd)) < 1e-11
    assert error(laden.forward_dynamics(s.x, s.xd, s.f), ref.forward_dynamics(s.x, s.xd, s.f)) < 1e-11
    assert error(m.generalized_forces(s.x, s.xd, s.xdd), oracle.generalized_forces(s.x, s.xd, s.xdd)) < 1e-11


def test_a_payload_keeps_the_weights_of_the_actuators(rng):
    machine, *_ = made('fixed')
    m = load(machine, coordinates=machine.coordinates)
    m.allocation.set_weights(dict(zip(m.actuators, rng.uniform(0.1, 10, 4))))
    laden = m.with_payload('base_link', 3.0, (0, 0, 0), np.eye(3))
    assert (laden.allocation.weights == m.allocation.weights).all()
    laden.allocation.set_weights(None)
    assert (laden.allocation.weights != m.allocation.weights).any()


def test_payloads_that_do_not_fit(case):
    _, _, m, _ = case
    with pytest.raises(UnknownNameError, match="no such link in 'machine'"):
        m.with_payload('nobody', 1.0, (0, 0, 0), np.eye(3))
    with pytest.raises(InertiaError, match="payload on 'base_link': mass -1 kg is negative"):
        m.with_payload('base_link', -1.0, (0, 0, 0), np.eye(3))
    with pytest.raises(ShapeError, match=r"payload on 'base_link': com has shape \(2,\)"):
        m.with_payload('base_link', 1.0, (0, 0), np.eye(3))


# The integrator

def test_the_integrator_keeps_energy_and_is_of_fourth_order():
    m, s = conservative()
    f, errors = np.zeros(len(m.actuators)), []
    start = sum(m.energy(s.x, s.xd))
    for step in (4e-3, 2e-3):
        integrator, x, xd = m.integrator(step, stiffness=0.0), s.x.copy(), 0.5 * s.xd
        for _ in range(round(0.04 / step)):
            assert integrator.step(x, xd, f) == 0
        errors.append((x, xd))
    integrator, x, xd = m.integrator(4e-2, 160, stiffness=0.0), s.x.copy(), 0.5 * s.xd
    assert integrator.step(x, xd, f) == 0
    coarse, fine = (np.abs(np.concatenate(pair) - np.concatenate((x, xd))).max() for pair in errors)
    assert fine < coarse / 10 or coarse < 1e-10
    assert sum(m.energy(x, xd)) == pytest.approx(sum(m.energy(s.x, 0.5 * s.xd)), abs=1e-9 * abs(start) + 1e-9)


def test_substeps_are_steps(case):
    _, _, m, s = case
    runs = []
    for step, substeps, count in ((1e-3, 1, 4), (4e-3, 4, 1)):
        integrator, x, xd = m.integrator(step, substeps), s.x.copy(), s.xd.copy()
        assert all(integrator.step(x, xd, s.f) == 0 for _ in range(count))
        runs.append(np.concatenate((x, xd)))
    assert error(runs[0], runs[1]) < 1e-12


def test_stops_hold_the_coordinates_within_their_limits():
    """A crank pushed against its stop sinks in by what stiffness and speed make of it, and no more."""
    text = Path(find_machine('four_bar')).read_text().replace('upper="14"', 'upper="1.2"')
    m = psdyn_ros.load(text)
    integrator, x, xd = m.integrator(1e-3, stiffness=1e5, damping=1.0), m.initial_position, np.zeros(1)
    deepest = -1.0
    for _ in range(500):
        assert integrator.step(x, xd, np.array((40.0,))) == 0
        deepest = max(deepest, x[0] - 1.2)
    assert 0.0 < deepest < 0.1 and x[0] < 1.21
    free, x, xd = m.integrator(1e-3, stiffness=0.0), m.initial_position, np.zeros(1)
    for _ in range(500):
        assert free.step(x, xd, np.array((40.0,))) == 0
    assert x[0] > 1.5


def test_integrators_that_do_not_fit(case):
    _, _, m, s = case
    for options, words in (({'step': 0.0}, 'must be positive'), ({'step': 1e-3, 'substeps': 1.5}, 'a whole number'),
                           ({'step': 1e-3, 'stiffness': -1}, 'must not be negative'),
                           ({'step': np.nan}, 'is not finite')):
        with pytest.raises(StateError, match=words):
            m.integrator(**options)
    integrator = m.integrator(1e-3)
    shapes = re.escape(str(((m.nx,), (m.dof,), (len(m.actuators),))))
    for x, xd, f in ((s.x[1:], s.xd, s.f), (s.x, s.xd[1:], s.f), (s.x, s.xd, s.f[1:]), (s.x.tolist(), s.xd, s.f)):
        with pytest.raises(ShapeError, match=rf'float64 arrays of shapes {shapes}'):
            integrator.step(x, xd, f)


def test_the_integrator_refuses_what_is_not_finite_and_keeps_the_state(case):
    _, _, m, s = case
    integrator = m.integrator(1e-3)
    for which in range(3):
        state = [s.x.copy(), s.xd.copy(), s.f.copy()]
        state[which][-1] = np.nan
        kept = [array.copy() for array in state]
        status = integrator.step(*state)
        assert status != 0 and isinstance(integrator.error(status, state[0]), NonFiniteError)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(state, kept))


# The closed form answers alike

def test_machines_of_triangles_have_the_same_calls():
    m = psdyn_ros.load(hiab().xml)
    x, xd, xdd = m.initial_position, np.full(4, 0.1), np.ones(4)
    assert (m.actuator_map(x) == np.eye(4)).all()
    assert same(m.generalized_forces(x, xd, xdd), m.inverse_dynamics(x, xd, xdd))
    assert same(m.coordinate_limits.lower, m.limits.lower) and (m.nx, m.floating) == (4, False)
    general = psdyn_ros.load(hiab().xml, coordinates=('slew', 'lift_boom', 'tilt_boom', 'telescope'))
    public = {name for name in dir(m) if not name.startswith('_')}
    assert public <= {name for name in dir(general) if not name.startswith('_')}
