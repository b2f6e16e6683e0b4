"""Arrays of every kind at the door of the API, batches, and the errors of states that no machine has."""

import pickle
import sys

import numpy as np
import pytest
from support.comparison import same
from support.machines import chain, hiab, load, loop_chain, random_state, tree
from support.one_loop import one_loop

import psdyn_ros
from psdyn_ros import NonFiniteError, ShapeError, StateError, TogglePointError, UnreachableStrokeError

CRANE = psdyn_ros.load(hiab().xml)
MACHINES = {'crane': hiab(), 'tree': tree(4, 7, cylinder_branches=True, friction=True), 'chain': loop_chain(5)}
NAMES = '(slew, lift_cylinder, tilt_cylinder, telescope)'
STATE = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, -0.2, 0.3, 0.1], [1.0, 2.0, 3.0, 4.0]])
DYNAMICS = ['forward_dynamics', 'inverse_dynamics']
BATCHES = (0, 1, 2, 255, 256, 257, 5000) if psdyn_ros.compiled else (0, 1, 2, 255, 256, 257)

# every call with a state, and the number of (dof,) arrays that it takes
CALLS = {**dict.fromkeys((*DYNAMICS, 'base_wrench', 'joint_state'), 3),
         **dict.fromkeys(('bias_forces', 'energy'), 2), **dict.fromkeys(('mass_matrix', 'gravity_forces'), 1)}


@pytest.fixture(params=MACHINES)
def case(request):
    machine = MACHINES[request.param]
    return machine, load(machine)


def states(machine, rng, n):
    drawn = [random_state(machine, rng) for _ in range(n)]
    dof = len(machine.actuators)
    return [np.array([getattr(s, key) for s in drawn]).reshape(n, dof) for key in ('x', 'xd', 'f')]


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('shape', [(3,), (5,), (0,), (2, 3), (1, 2, 4), ()], ids=str)
def test_wrong_shapes(call, shape):
    state = list(STATE[:CALLS[call]])
    for which in range(len(state)):
        wrong = [*state]
        wrong[which] = np.zeros(shape)
        with pytest.raises(ShapeError) as caught:
            getattr(CRANE, call)(*wrong)
        message = str(caught.value)
        assert f"'hiab_xs031' has 4 coordinates {NAMES}; got shapes" in message
        # a number alone counts as an array of one
        assert str(shape or (1,)) in message


@pytest.mark.parametrize('call', [call for call in CALLS if call not in DYNAMICS])
def test_only_forward_and_inverse_dynamics_take_batches(call):
    with pytest.raises(ShapeError, match='4 coordinates'):
        getattr(CRANE, call)(*(np.tile(row, (2, 1)) for row in STATE[:CALLS[call]]))


@pytest.mark.parametrize('call', DYNAMICS)
@pytest.mark.parametrize('shapes', [((2, 4), (3, 4), (2, 4)), ((2, 4), (4,), (2, 4)), ((4,), (4,), (1, 4)),
                                    ((0, 4), (0, 4), (1, 4)), ((2, 4), (2, 4), (2, 3)), ((2, 2, 4),) * 3], ids=str)
@pytest.mark.parametrize('options', [{}, {'base': psdyn_ros.BaseMotion()}, {'wrenches': {}}], ids=str)
def test_mismatched_batches(call, shapes, options):
    with pytest.raises(ShapeError, match='got shapes') as caught:
        getattr(CRANE, call)(*map(np.zeros, shapes), **options)
    assert all(str(shape) in str(caught.value) for shape in shapes)


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('bad', [float('nan'), float('inf'), float('-inf')])
def test_not_finite(call, bad):
    labels = {'forward_dynamics': ('x', 'xd', 'f')}.get(call, ('x', 'xd', 'xdd'))
    state = STATE[:CALLS[call]]
    for label, row in zip(labels, range(len(state))):
        for column, joint in enumerate(CRANE.actuators):
            wrong = state.copy()
            wrong[row, column] = bad
            with pytest.raises(NonFiniteError, match=f"^{label} of '{joint}' is {bad}; expected a finite number"):
                getattr(CRANE, call)(*wrong)


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('bad', ['abcd', None, ['a', 'b', 'c', 'd'], ['1', '2', '3', '4'], [1, 2, 3, [4, 5]],
                                 np.ones(4, complex), [0.1, None, 0.2, 0.3], {'slew': 1},
                                 pytest.param(object(), id='object')], ids=str)
def test_what_is_no_array_of_numbers(call, bad):
    state = STATE[:CALLS[call]]
    # None stands for nothing given in xd and xdd of `joint_state`
    for row in range(1 if call == 'joint_state' else len(state)):
        with pytest.raises(ShapeError, match='is not an array of numbers'):
            getattr(CRANE, call)(*state[:row], bad, *state[row + 1:])


def variants(array):
    """The same numbers in every form that a caller may have them in."""
    padded = np.zeros((*array.shape[:-1], 2 * array.shape[-1]))
    padded[..., ::2] = array
    read_only = array.copy()
    read_only.flags.writeable = False
    return {'list': array.tolist(), 'tuple': tuple(array.tolist()), 'strided': padded[..., ::2],
            'read-only': read_only, 'Fortran': np.asfortranarray(array), 'reversed': array[..., ::-1].copy()[..., ::-1],
            'big-endian': array.astype('>f8'), 'subclass': array.view(np.ma.MaskedArray),
            'unaligned': np.frombuffer(b'x' + array.tobytes(), np.uint8)[1:].view(float).reshape(array.shape),
            'slices': [*array], 'pickled': pickle.loads(pickle.dumps(array))}


@pytest.mark.parametrize('call', CALLS)
def test_the_form_of_an_array_does_not_matter(call):
    state = STATE[:CALLS[call]]
    expected = getattr(CRANE, call)(*state)
    for key in variants(STATE[0]):
        computed = getattr(CRANE, call)(*(variants(row)[key] for row in state))
        assert same(computed, expected), key


@pytest.mark.parametrize('call', DYNAMICS)
@pytest.mark.parametrize('n', [1, 3, 600])
def test_the_form_of_a_batch_does_not_matter(call, n):
    state = [np.tile(row, (n, 1)) + 1e-3 * np.arange(n)[:, None] % 0.05 for row in STATE]
    expected = getattr(CRANE, call)(*state)
    for key in variants(state[0]):
        assert same(getattr(CRANE, call)(*(variants(array)[key] for array in state)), expected), key


@pytest.mark.parametrize('kind', [int, np.int32, np.uint8, np.float32, np.float16, bool, np.longdouble])
def test_numbers_of_other_types_are_converted(kind):
    rows = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 0, 1]])
    expected = CRANE.inverse_dynamics(*rows.astype(float))
    assert same(CRANE.inverse_dynamics(*rows.astype(kind)), expected)
    # one array of another type is enough to leave the quick path
    assert same(CRANE.inverse_dynamics(rows[0].astype(float), rows[1].astype(kind), rows[2].astype(float)), expected)


def test_numbers_alone_will_do_for_one_degree_of_freedom():
    lift = psdyn_ros.load(hiab(lift_only=True).xml)
    assert lift.inverse_dynamics(0.2, 0, 1) == lift.inverse_dynamics([0.2], [0.0], [1.0])
    assert lift.inverse_dynamics(0.2, 0, 1).shape == (1,)


@pytest.mark.parametrize('call', DYNAMICS)
@pytest.mark.parametrize('n', BATCHES)
def test_batches_equal_single_calls_bit_for_bit(case, call, n, rng):
    machine, manipulator = case
    x, xd, f = states(machine, rng, n)
    batch = getattr(manipulator, call)(x, xd, f)
    assert batch.shape == (n, manipulator.dof) and batch.dtype == float
    picked = range(n) if n < 600 else rng.integers(0, n, 300)
    for row in picked:
        assert (batch[row] == getattr(manipulator, call)(x[row], xd[row], f[row])).all()


@pytest.mark.parametrize('call', DYNAMICS)
def test_batches_with_base_and_wrenches(case, call, rng):
    machine, manipulator = case
    state = states(machine, rng, 7)
    base = psdyn_ros.BaseMotion((0.1, 0.2, 0.3, 0.9), rng.normal(size=6), rng.normal(size=6))
    wrenches = {link: rng.normal(size=(2, 3)) for link in manipulator.links[-2:]}
    for options in ({'base': base}, {'wrenches': wrenches}, {'base': base, 'wrenches': wrenches}):
        batch = getattr(manipulator, call)(*state, **options)
        assert (batch != getattr(manipulator, call)(*state)).any()
        for row, single in enumerate(zip(*state)):
            assert (batch[row] == getattr(manipulator, call)(*single, **options)).all()


@pytest.mark.parametrize('call', DYNAMICS)
@pytest.mark.parametrize('n, row', [(3, 0), (3, 2), (255, 254), (1000, 0), (1000, 501), (1000, 999)])
def test_a_bad_row_is_named(call, n, row):
    x, xd, third = (np.tile(one, (n, 1)) for one in STATE)
    for array, label in ((x, 'x'), (xd, 'xd'), (third, 'f' if 'forward' in call else 'xdd')):
        kept, array[row, 2] = array[row, 2], np.nan
        with pytest.raises(NonFiniteError, match=f"^{label} of 'tilt_cylinder' in row {row} is nan"):
            getattr(CRANE, call)(x, xd, third)
        array[row, 2] = kept
    x[row, 1] = 0.7
    words = f"loop 'lift_eye': stroke lift_cylinder = 0.7 m in row {row} is out of reach"
    for options in ({}, {'base': psdyn_ros.BaseMotion()}, {'wrenches': {'tcp': ((0, 0, 1), (0, 0, 0))}}):
        with pytest.raises(UnreachableStrokeError, match=words):
            getattr(CRANE, call)(x, xd, third, **options)


def test_the_first_of_several_bad_rows_is_named():
    x, xd, f = (np.tile(one, (2000, 1)) for one in STATE)
    x[[300, 1200, 1999], 1] = 0.7
    with pytest.raises(UnreachableStrokeError, match='in row 300 '):
        CRANE.forward_dynamics(x, xd, f)


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('stroke, by', [(0.6, '0.0467'), (-0.3, '0.101'), (1e6, '999999')])
def test_unreachable_strokes(call, stroke, by):
    state = STATE[:CALLS[call]].copy()
    state[0, 1] = stroke
    said = f'{stroke:.6g}'.replace('+', '.')
    words = (rf"^loop 'lift_eye': stroke lift_cylinder = {said} m is out of reach by {by}\d* m; the loop closes "
             'between -0.198984 and 0.553229 m')
    with pytest.raises(UnreachableStrokeError, match=words):
        getattr(CRANE, call)(*state)


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('end', [0, 1])
def test_toggle_points(call, end):
    module, = (module for module in CRANE.machine.modules if module.name == 'lift_cylinder')
    state = STATE[:CALLS[call]].copy()
    state[0, 1] = module.assembly.reach[end]
    with pytest.raises(TogglePointError, match="^loop 'lift_eye': stroke lift_cylinder = .* m from its toggle point at "
                                               r'.* m, \|sin q\| = .*: the cylinder has no lever'):
        getattr(CRANE, call)(*state)
    # a tenth of a millimetre away there is one
    state[0, 1] += 1e-4 * (-1) ** end
    assert getattr(CRANE, call)(*state) is not None


def test_link_pose_checks_the_state_and_the_name():
    with pytest.raises(UnreachableStrokeError, match="loop 'lift_eye'"):
        CRANE.link_pose([0, 0.7, 0.3, 0], 'tcp')
    with pytest.raises(ShapeError, match='got shapes'):
        CRANE.link_pose([0, 0.2, 0.3], 'tcp')
    for name in ('tpc', None, 5, ['tcp']):
        with pytest.raises(psdyn_ros.UnknownNameError, match="no such link in 'hiab_xs031'"):
            CRANE.link_pose(STATE[0], name)
    with pytest.raises(psdyn_ros.UnknownNameError, match="did you mean 'pillar'"):
        CRANE.link_pose(STATE[0], 'pilar')


@pytest.mark.parametrize('call', CALLS)
def test_called_twice_the_answer_is_the_same_whatever_came_between(case, call, rng):
    machine, manipulator = case
    first, second = (random_state(machine, rng)[:3][:CALLS[call]] for _ in range(2))
    expected = getattr(manipulator, call)(*first)
    for other in CALLS:
        getattr(manipulator, other)(*random_state(machine, rng)[:CALLS[other]])
        assert same(getattr(manipulator, call)(*first), expected)
    with pytest.raises(StateError):
        getattr(manipulator, call)(*(np.full(manipulator.dof, np.nan) for _ in first))
    manipulator.forward_dynamics(*random_state(machine, rng)[:3], wrenches={manipulator.links[-1]: ((1, 2, 3),) * 2})
    assert same(getattr(manipulator, call)(*first), expected)
    assert not same(getattr(manipulator, call)(*second), expected)


@pytest.mark.parametrize('call', CALLS)
def test_inputs_are_never_written_to_and_outputs_are_fresh(case, call, rng):
    machine, manipulator = case
    inputs = [*random_state(machine, rng)[:CALLS[call]]]
    kept = [array.copy() for array in inputs]
    first = getattr(manipulator, call)(*inputs)
    second = getattr(manipulator, call)(*inputs)
    assert all(map(np.array_equal, inputs, kept))
    for a, b in zip(first, second) if isinstance(first, tuple) else [(first, second)]:
        if isinstance(a, np.ndarray):
            assert not np.shares_memory(a, b) and a.flags.owndata | (a.base is not None)
            assert not any(np.shares_memory(a, array) for array in inputs)


@pytest.mark.parametrize('call', DYNAMICS)
def test_batches_do_not_write_to_their_inputs(case, call, rng):
    machine, manipulator = case
    inputs = states(machine, rng, 300)
    kept = [array.copy() for array in inputs]
    out = getattr(manipulator, call)(*inputs)
    assert all(map(np.array_equal, inputs, kept)) and not any(np.shares_memory(out, array) for array in inputs)


def test_what_a_manipulator_hands_out_is_not_its_own():
    for name in ('initial_position', 'gravity'):
        getattr(CRANE, name)[:] = 99.0
        assert not (getattr(CRANE, name) == 99.0).any()
    CRANE.limits.lower[:] = 99.0
    assert (CRANE.limits.lower == (-3, 0, 0.03, 0)).all()


def test_the_properties_of_the_crane():
    assert CRANE.name == 'hiab_xs031' and CRANE.dof == 4
    assert CRANE.actuators == CRANE.coordinates == ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
    assert set(CRANE.joints) == {*CRANE.actuators, 'lift_boom', 'lift_barrel', 'tilt_boom', 'tilt_barrel'}
    assert 'tcp' in CRANE.links and 'base_link' in CRANE.links and len(set(CRANE.links)) == len(CRANE.links)
    assert CRANE.total_mass == pytest.approx(1062.93, abs=5e-3)
    assert repr(CRANE) == "<Manipulator 'hiab_xs031': 4 DoF, 2 loops, 1062.93 kg>"


def test_hundreds_of_modules():
    machine = loop_chain(666 if psdyn_ros.compiled else 100)       # 1999 links
    manipulator = psdyn_ros.load(machine.xml)
    x = manipulator.initial_position
    xdd = manipulator.forward_dynamics(x, 0 * x, manipulator.gravity_forces(x))
    assert np.abs(xdd).max() < 1e-6
    assert sys.getrecursionlimit() < 2000       # nothing had to be raised for it


def test_nothing_is_said_of_sound_states(recwarn):
    manipulator = psdyn_ros.load(one_loop().xml)
    manipulator.forward_dynamics([0.2], [0.1], [5.0])
    manipulator.energy([0.2], [0.1])
    assert not recwarn.list


def test_finite_numbers_too_large_to_compute_with_are_an_error():
    crane = psdyn_ros.load(hiab().xml)
    x, fast = crane.initial_position, np.full(4, 1e200)
    for call in (crane.forward_dynamics, crane.inverse_dynamics):
        with pytest.raises(psdyn_ros.NonFiniteError, match='too large'):
            call(x, fast, np.zeros(4))
        with pytest.raises(psdyn_ros.NonFiniteError, match='too large'):
            call(x[None], fast[None], np.zeros((1, 4)))


def test_integrator_refuses_an_effort_that_is_not_finite_and_keeps_the_state():
    arm = psdyn_ros.load(chain(1, 'RP').xml)
    integrator, x, xd = arm.integrator(1e-3), np.zeros(2), np.zeros(2)
    status = integrator.step(x, xd, np.array([np.nan, 0.0]))
    assert status != 0
    assert not x.any()
    assert not xd.any()
    assert isinstance(integrator.error(status, x), psdyn_ros.NonFiniteError)
