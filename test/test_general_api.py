"""The API on machines with loops of any kind: what it takes, what it refuses and how it says so."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.comparison import error, same
from support.general_cases import made
from support.general_machines import general_machine, general_state
from support.general_oracle import GeneralOracle
from support.machines import load

import psdyn_ros
from psdyn_ros import BaseDrive, BaseMotion, NonFiniteError, ShapeError, StateError, UnknownNameError

# every call with a state, and the number of arrays that it takes
CALLS = {**dict.fromkeys(('forward_dynamics', 'inverse_dynamics', 'generalized_forces', 'base_wrench',
                          'joint_state'), 3),
         **dict.fromkeys(('bias_forces', 'energy'), 2),
         **dict.fromkeys(('mass_matrix', 'gravity_forces', 'actuator_map'), 1)}
BATCHED = ['forward_dynamics', 'inverse_dynamics', 'generalized_forces']


@pytest.fixture(params=['fixed', 'floating'])
def case(request):
    return made(request.param)


def arguments(call, s):
    third = s.f if call == 'forward_dynamics' else s.xdd
    return [s.x, s.xd, third][:CALLS[call]]


def labels(call):
    return ('x', 'xd', 'f' if call == 'forward_dynamics' else 'xdd')[:CALLS[call]]


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
@pytest.mark.parametrize('bad', ['abc', ['a'] * 3, [1, [2, 3]], np.ones(3, complex), {'x': 1},
                                 pytest.param(object(), id='object')], ids=str)
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
    m = load(machine)
    assert len(m.machine.clusters) == 1
    s = general_state(machine, oracle, rng)
    efforts = {name: rng.uniform(-50, 50) for name in m.joints}
    assert error(m.forward_dynamics(s.x, s.xd, s.f, joint_efforts=efforts),
                 oracle.forward_dynamics(s.x, s.xd, s.f, efforts=efforts)) < 1e-11
    assert error(m.inverse_dynamics(s.x, s.xd, s.xdd, joint_efforts=efforts),
                 oracle.inverse_dynamics(s.x, s.xd, s.xdd, efforts=efforts)) < 1e-11
