"""The API on machines with loops of any kind: what it takes, what it refuses and how it says so."""

import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import urdf_text as urdf
from conftest import seeded_generator
from general_machines import general_machine, general_state
from general_oracle import GeneralOracle
from machines import hiab

import psdyn_ros
from psdyn_ros import (
    ActuationError,
    BaseDrive,
    BaseMotion,
    InertiaError,
    MeasurementError,
    NonFiniteError,
    ShapeError,
    StateError,
    UnknownNameError,
    UnreachableStrokeError,
)
from psdyn_ros.model.locate import find_machine

# 3 DoF and 4 actuators on a fixed base; the same loops and no more actuators on a floating one
KINDS = ['five_bar', 'twin_cylinders']
# every call with a state, and the number of arrays that it takes
CALLS = {**dict.fromkeys(('forward_dynamics', 'inverse_dynamics', 'generalized_forces', 'base_wrench',
                          'joint_state'), 3),
         **dict.fromkeys(('bias_forces', 'energy'), 2),
         **dict.fromkeys(('mass_matrix', 'gravity_forces', 'actuator_map'), 1)}
BATCHED = ['forward_dynamics', 'inverse_dynamics', 'generalized_forces']


@cache
def made(name):
    """Return (machine, oracle, manipulator, state)."""
    rng = seeded_generator(name)
    machine = general_machine(rng, KINDS, floating=name == 'floating', friction=True)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    m = psdyn_ros.load(machine.xml, gravity=machine.gravity, coordinates=machine.coordinates)
    return machine, oracle, m, general_state(machine, oracle, rng)


@pytest.fixture(params=['fixed', 'floating'])
def case(request):
    return made(request.param)


def arguments(call, s):
    third = s.f if call == 'forward_dynamics' else s.xdd
    return [s.x, s.xd, third][:CALLS[call]]


def labels(call):
    return ('x', 'xd', 'f' if call == 'forward_dynamics' else 'xdd')[:CALLS[call]]


def error(computed, expected):
    return np.abs(np.asarray(computed) - expected).max(initial=0) / (1 + np.abs(expected).max(initial=0))


def same(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


def conservative(name='fixed'):
    """The machine without its losses."""
    machine, _, m, s = made(name)
    xml = re.sub('<dynamics [^>]*/>', '', machine.xml)
    return psdyn_ros.load(xml, gravity=machine.gravity, coordinates=machine.coordinates), s


# Arrays

@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('change', [-1, 1, None, 'tripled'], ids=str)
def test_wrong_shapes(case, call, change):
    _, _, m, s = case
    state = arguments(call, s)
    for which, array in enumerate(state):
        wrong = [*state]
        wrong[which] = np.tile(array, (1, 3, 1)) if change == 'tripled' else \
            np.zeros(len(array) + change) if change else np.zeros(())
        with pytest.raises(ShapeError) as caught:
            getattr(m, call)(*wrong)
        base = 'base, ' if m.floating else ''
        assert (f"'machine' has {m.nx} numbers in x, {m.dof} in xd and xdd ({base}{', '.join(m.coordinates)}) and "
                f"{len(m.actuators)} in f ({', '.join(m.actuators)}); got shapes") in str(caught.value)
        assert str(wrong[which].shape or (1,)) in str(caught.value)


@pytest.mark.parametrize('call', BATCHED)
def test_mismatched_batches(case, call):
    _, _, m, s = case
    state = arguments(call, s)
    rows = [np.tile(array, (3, 1)) for array in state]
    for wrong in ([rows[0], rows[1], rows[2][:2]], [rows[0], state[1], rows[2]], [row[None] for row in rows]):
        with pytest.raises(ShapeError, match='got shapes'):
            getattr(m, call)(*wrong)


@pytest.mark.parametrize('call', sorted(set(CALLS) - set(BATCHED)))
def test_calls_without_batches_refuse_them(case, call):
    _, _, m, s = case
    with pytest.raises(ShapeError, match='got shapes'):
        getattr(m, call)(*(np.tile(array, (2, 1)) for array in arguments(call, s)))


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_not_finite(case, call, bad):
    """The array and the joint are named, of the base its coordinate."""
    _, _, m, s = case
    state, shift = arguments(call, s), m.nx - len(m.coordinates)
    for which, label in enumerate(labels(call)):
        names = {'x': (*(f'base {i}' for i in range(shift)), *m.coordinates), 'f': m.actuators}.get(
            label, (*(f'base {i}' for i in range(m.dof - len(m.coordinates))), *m.coordinates))
        for column, name in enumerate(names):
            wrong = [array.copy() for array in state]
            wrong[which][column] = bad
            with pytest.raises(NonFiniteError, match=f"^{label} of '{name}' is {bad}; expected a finite number"):
                getattr(m, call)(*wrong)


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('bad', ['abc', ['a'] * 3, [1, [2, 3]], np.ones(3, complex), {'x': 1}, object()], ids=str)
def test_what_is_no_array_of_numbers(case, call, bad):
    _, _, m, s = case
    state = arguments(call, s)
    for which in range(len(state)):
        with pytest.raises(ShapeError, match='is not an array of numbers'):
            getattr(m, call)(*state[:which], bad, *state[which + 1:])


@pytest.mark.parametrize('call', CALLS)
def test_the_form_of_an_array_does_not_matter(case, call):
    _, _, m, s = case
    state = arguments(call, s)
    expected = getattr(m, call)(*state)
    for form in (list, tuple, lambda a: np.repeat(a, 2)[::2], lambda a: a[::-1].copy()[::-1],
                 lambda a: a.astype('>f8'), lambda a: a.astype(np.longdouble)):
        assert same(getattr(m, call)(*map(form, state)), expected)
    for array in state:
        array.flags.writeable = False
    assert same(getattr(m, call)(*state), expected)
    for array in state:
        array.flags.writeable = True


@pytest.mark.parametrize('call', BATCHED)
@pytest.mark.parametrize('n', [0, 1, 5])
def test_batches_equal_single_calls(case, call, n, rng):
    _, _, m, s = case
    state = [np.tile(array, (n, 1)) for array in arguments(call, s)]
    state[1] *= rng.uniform(-1, 1, (n, 1))
    around = {'wrenches': {m.links[-1]: rng.normal(size=(2, 3))}, 'joint_efforts': {m.joints[0]: 3.0}}
    for options in ({}, around):
        batch = getattr(m, call)(*state, **options)
        assert batch.shape == (n, len(m.actuators) if call == 'inverse_dynamics' else m.dof)
        for row, single in enumerate(zip(*state)):
            assert error(batch[row], getattr(m, call)(*single, **options)) < 1e-13


def test_bad_rows_are_named(case):
    _, _, m, s = case
    x, xd, f = (np.tile(array, (4, 1)) for array in (s.x, s.xd, s.f))
    xd[2, -1] = np.nan
    with pytest.raises(NonFiniteError, match=f"^xd of '{m.coordinates[-1]}' in row 2 is nan"):
        m.forward_dynamics(x, xd, f)


@pytest.mark.parametrize('call', CALLS)
def test_called_twice_the_answer_is_the_same_whatever_came_between(case, call):
    _, _, m, s = case
    state = arguments(call, s)
    kept = [array.copy() for array in state]
    expected = getattr(m, call)(*state)
    for other in CALLS:
        getattr(m, other)(*(array * 0.9 if i else array for i, array in enumerate(arguments(other, s))))
    with pytest.raises(StateError):
        getattr(m, call)(*(array * np.nan for array in state))
    m.forward_dynamics(s.x, s.xd, s.f, wrenches={m.links[-1]: ((1, 2, 3), (4, 5, 6))}, joint_efforts={m.joints[0]: 9})
    assert same(getattr(m, call)(*state), expected)
    assert all(map(np.array_equal, state, kept))


def test_threads_share_a_manipulator(case, rng):
    """With Numba any number of them; without it calls are one after another here all the same."""
    _, _, m, s = case
    rates = s.xd * rng.uniform(-1, 1, (40, 1))
    expected = [m.forward_dynamics(s.x, xd, s.f) for xd in rates]
    with ThreadPoolExecutor(4 if psdyn_ros.compiled else 1) as pool:
        found = list(pool.map(lambda xd: m.forward_dynamics(s.x, xd, s.f), rates))
    assert all(map(np.array_equal, found, expected))


def test_numbers_too_large_to_compute_with(case):
    _, _, m, s = case
    for call in ('forward_dynamics', 'generalized_forces', 'inverse_dynamics'):
        with pytest.raises(NonFiniteError), np.errstate(all='ignore'):
            getattr(m, call)(s.x, np.full(m.dof, 1e200), np.zeros(len(arguments(call, s)[2])))


# Surroundings

@pytest.mark.parametrize('base', [BaseDrive(), BaseMotion(), (1, 2), 5, 'still'], ids=str)
def test_a_base_that_does_not_fit(case, base):
    _, _, m, s = case
    if isinstance(base, BaseDrive if m.floating else BaseMotion):
        return
    expected = 'BaseDrive|base.driven' if m.floating else 'BaseMotion|base.orientation'
    for call in ('forward_dynamics', 'inverse_dynamics', 'generalized_forces', 'base_wrench'):
        with pytest.raises(ShapeError, match=expected):
            getattr(m, call)(*arguments(call, s), base=base)


@pytest.mark.parametrize('wrong, words', [
    (BaseDrive((True,) * 5), r'base.driven has shape \(5,\); expected \(6,\)'),
    (BaseDrive(acceleration=(0, 0)), r'base.acceleration has shape \(2,\); expected \(6,\)'),
    (BaseDrive(acceleration=('a',) * 6), 'base.acceleration is not an array of numbers'),
    (BaseDrive(acceleration=(np.nan,) * 6), 'base.acceleration = .* is not finite')])
def test_drives_that_do_not_fit(wrong, words):
    _, _, m, s = made('floating')
    with pytest.raises(StateError, match=words):
        m.forward_dynamics(s.x, s.xd, s.f, base=wrong)


def test_quaternions_without_a_direction():
    _, _, m, s = made('floating')
    x = s.x.copy()
    x[3:7] = 0.0
    for call in CALLS:
        with pytest.raises(StateError, match=r'the quaternion x\[3:7\] of the base is zero; expected x y z w'):
            getattr(m, call)(x, *arguments(call, s)[1:])
    _, _, m, s = made('fixed')
    with pytest.raises(StateError, match='base.orientation = .* is no rotation'):
        m.forward_dynamics(s.x, s.xd, s.f, base=BaseMotion((0, 0, 0, 0)))


def test_a_base_at_rest_is_no_base(case):
    _, _, m, s = case
    base = BaseDrive((False,) * 6) if m.floating else BaseMotion()
    assert error(m.forward_dynamics(s.x, s.xd, s.f, base=base), m.forward_dynamics(s.x, s.xd, s.f)) < 1e-13


@pytest.mark.parametrize('wrenches, kind, words', [
    ({'nobody': ((0, 0, 0), (0, 0, 0))}, UnknownNameError, "link 'nobody': no such link in 'machine'"),
    ({'base_link': (0, 0, 0)}, ShapeError, "wrench on 'base_link': expected a pair"),
    ({'base_link': ((0, 0), (0, 0, 0))}, ShapeError, r"force on 'base_link' has shape \(2,\)"),
    ({'base_link': ((0, 0, 0), (0, 0, np.nan))}, NonFiniteError, "moment on 'base_link' = .* is not finite"),
    ([('base_link', 1)], ShapeError, r'expected \{link: \(force, moment\)\}')])
def test_wrenches_that_do_not_fit(case, wrenches, kind, words):
    _, _, m, s = case
    for call in ('forward_dynamics', 'inverse_dynamics', 'base_wrench'):
        with pytest.raises(kind, match=words):
            getattr(m, call)(*arguments(call, s), wrenches=wrenches)


@pytest.mark.parametrize('efforts, kind, words', [
    ({'nobody': 1.0}, UnknownNameError, "joint 'nobody': no movable joint of 'machine'"),
    ({'m1_five_bar_lef': 1.0}, UnknownNameError, "did you mean 'm1_five_bar_left'"),
    ({'m1_five_bar_left': (1, 2)}, ShapeError, "effort on 'm1_five_bar_left' has shape"),
    ({'m1_five_bar_left': np.nan}, NonFiniteError, "effort on 'm1_five_bar_left' = .* is not finite"),
    ({'m1_five_bar_left': 'much'}, ShapeError, "effort on 'm1_five_bar_left' is not an array of numbers"),
    ([('m1_five_bar_left', 1)], ShapeError, r'expected \{joint: effort\}')])
def test_joint_efforts_that_do_not_fit(case, efforts, kind, words):
    _, _, m, s = case
    for call in ('forward_dynamics', 'inverse_dynamics', 'generalized_forces'):
        with pytest.raises(kind, match=words):
            getattr(m, call)(*arguments(call, s), joint_efforts=efforts)


def test_efforts_on_actuated_joints_are_as_good_as_those_of_their_actuators(case):
    _, _, m, s = case
    expected = m.forward_dynamics(s.x, s.xd, s.f)
    comp = m.forward_dynamics(s.x, s.xd, 0 * s.f, joint_efforts=dict(zip(m.actuators, s.f)))
    assert error(comp, expected) < 1e-12


def test_efforts_on_booms_and_barrels_of_triangles_beside_other_loops(rng):
    """The triangle keeps its closed form in a general machine; efforts find its passive joints."""
    machine = general_machine(rng, ['four_bar', 'triangle'])
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    m = psdyn_ros.load(machine.xml, gravity=machine.gravity)
    assert len(m.machine.clusters) == 1
    s = general_state(machine, oracle, rng)
    efforts = {name: rng.uniform(-50, 50) for name in m.joints}
    assert error(m.forward_dynamics(s.x, s.xd, s.f, joint_efforts=efforts),
                 oracle.forward_dynamics(s.x, s.xd, s.f, efforts=efforts)) < 1e-11
    assert error(m.inverse_dynamics(s.x, s.xd, s.xdd, joint_efforts=efforts),
                 oracle.inverse_dynamics(s.x, s.xd, s.xdd, efforts=efforts)) < 1e-11


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
    assert len(null) == 1 and error(null @ f, 0) < 1e-10 * np.abs(f).max()


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
    assert repr(m) == f"<GeneralManipulator 'machine': {m.dof} DoF, 4 actuators, 3 loops, {m.total_mass:.2f} kg>"
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
    load = urdf.link('load', mass, com, inertia) + urdf.fixed(link, 'load', np.eye(4))
    ref = GeneralOracle(machine.xml.replace('<ros2_control', load + '<ros2_control'), machine.gravity,
                        coordinates=machine.coordinates)
    assert error(laden.generalized_forces(s.x, s.xd, s.xdd), ref.generalized_forces(s.x, s.xd, s.xdd)) < 1e-11
    assert error(laden.forward_dynamics(s.x, s.xd, s.f), ref.forward_dynamics(s.x, s.xd, s.f)) < 1e-11
    assert error(m.generalized_forces(s.x, s.xd, s.xdd), oracle.generalized_forces(s.x, s.xd, s.xdd)) < 1e-11


def test_a_payload_keeps_the_weights_of_the_actuators(rng):
    machine, *_ = made('fixed')
    m = psdyn_ros.load(machine.xml, gravity=machine.gravity, coordinates=machine.coordinates)
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
