"""Arrays of every kind at the door of the API, batches, and the errors of states and environments that do not fit."""

import pickle
import sys

import numpy as np
import pytest
from conftest import thorough
from support.cases import made
from support.comparison import error, same
from support.machines import hiab, loop_chain
from support.one_loop import one_loop

import psdyn_ros
from psdyn_ros import (
    BaseDrive,
    BaseMotion,
    NonFiniteError,
    ShapeError,
    StateError,
    TogglePointError,
    UnknownNameError,
    UnreachableStrokeError,
)

CRANE = made('crane').m
STATE = np.array([[0.1, 0.2, 0.3, 0.4], [0.1, -0.2, 0.3, 0.1], [1.0, 2.0, 3.0, 4.0]])
BATCHES = (0, 1, 2, 255, 256, 257, 5000) if psdyn_ros.compiled else (0, 1, 2, 5)
MACHINES = ('crane', 'tree', 'five_bar', 'excavator', 'floating crane', 'floating loops', 'redundant')

# every call with a state, and the number of arrays that it takes
CALLS = {**dict.fromkeys(('forward_dynamics', 'inverse_dynamics', 'generalized_forces', 'base_wrench',
                          'joint_state'), 3),
         **dict.fromkeys(('bias_forces', 'energy'), 2),
         **dict.fromkeys(('mass_matrix', 'gravity_forces', 'actuator_map'), 1)}
BATCHED = ('forward_dynamics', 'inverse_dynamics', 'generalized_forces')
ENVIRONED = ('forward_dynamics', 'inverse_dynamics', 'base_wrench')
LOOPED = [call for call in CALLS if call != 'actuator_map']        # the crane's actuators are its coordinates anywhere


@pytest.fixture(params=thorough(MACHINES, ('crane', 'floating crane')))
def m(request):
    return made(request.param).m


@pytest.fixture
def s(request, m, rng):
    """A state (x, xd, xdd, f) of the machine of `m`."""
    return made(request.node.callspec.params['m']).state(rng)


def labels(call):
    return ('x', 'xd', 'f' if call == 'forward_dynamics' else 'xdd')[:CALLS[call]]


def arguments(call, s):
    return [getattr(s, label) for label in labels(call)]


def rows_about(s, call, rng, n):
    """Return the arguments of n states, (n, ...) each, that differ in their rates."""
    state = [np.tile(array, (n, 1)) for array in arguments(call, s)]
    state[1] *= rng.uniform(-1, 1, (n, 1))
    return state


def outside_of(m, rng):
    """Return what acts on a machine from outside, by names of arguments."""
    base = BaseDrive((1, 0, 1, 0, 0, 1), rng.normal(size=6)) if m.floating else \
        BaseMotion((0.1, 0.2, 0.3, 0.9), *rng.normal(size=(2, 6)))
    return {'base': base, 'wrenches': {m.links[-1]: rng.normal(size=(2, 3))}, 'joint_efforts': {m.joints[0]: 3.0}}


# Arrays

@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('change', [-1, 1, None, 'empty', 'tripled'], ids=str)
def test_wrong_shapes(m, s, call, change):
    state = arguments(call, s)
    for which, array in enumerate(state):
        wrong = [*state]
        wrong[which] = np.tile(array, (1, 3, 1)) if change == 'tripled' else np.zeros(0) if change == 'empty' else \
            np.zeros(len(array) + change) if change else np.zeros(())
        if change is None and len(array) == 1:
            continue        # a number alone counts as an array of one
        with pytest.raises(ShapeError) as caught:
            getattr(m, call)(*wrong)
        base = 'base, ' if m.floating else ''
        assert (f"'{m.name}' has {m.nx} numbers in x, {m.dof} in xd and xdd ({base}{', '.join(m.coordinates)}) and "
                f"{len(m.actuators)} in f ({', '.join(m.actuators)}); got shapes") in str(caught.value)
        assert str(wrong[which].shape or (1,)) in str(caught.value)


@pytest.mark.parametrize('call', BATCHED)
@pytest.mark.parametrize('outside', [False, True], ids=['alone', 'with base or wrenches'])
def test_mismatched_batches(m, s, call, outside, rng):
    state = arguments(call, s)
    rows = [np.tile(array, (3, 1)) for array in state]
    options = outside_of(m, rng) if outside else {}
    for wrong in ([rows[0], rows[1], rows[2][:2]], [rows[0], state[1], rows[2]], [state[0], rows[1], state[2]],
                  [rows[0][:0], rows[1][:0], rows[2][:1]], [rows[0], rows[1], rows[2][:, :-1]],
                  [row[None] for row in rows]):
        with pytest.raises(ShapeError, match='got shapes') as caught:
            getattr(m, call)(*wrong, **options)
        assert all(str(array.shape) in str(caught.value) for array in wrong)


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_not_finite(m, s, call, bad):
    """The array and the joint are named, of the base its coordinate."""
    state = arguments(call, s)
    position, rates = ((f'base_{axis}' for axis in axes.split()) if m.floating else () for axes in (
        'x y z qx qy qz qw', 'x y z rx ry rz'))
    position, rates = (*position, *m.coordinates), (*rates, *m.coordinates)
    for which, label in enumerate(labels(call)):
        names = {'x': position, 'f': m.actuators}.get(label, rates)
        for column, name in enumerate(names):
            wrong = [array.copy() for array in state]
            wrong[which][column] = bad
            with pytest.raises(NonFiniteError, match=f"^{label} of '{name}' is {bad}; expected a finite number"):
                getattr(m, call)(*wrong)


@pytest.mark.parametrize('call', CALLS)
@pytest.mark.parametrize('bad', ['abcd', None, ['a', 'b', 'c', 'd'], ['1', '2', '3', '4'], [1, 2, 3, [4, 5]],
                                 np.ones(4, complex), [0.1, None, 0.2, 0.3], {'slew'},
                                 pytest.param(object(), id='object')], ids=str)
def test_what_is_no_array_of_numbers(m, s, call, bad):
    state = arguments(call, s)
    # None stands for nothing given in xd and xdd of `joint_state`
    for which in range(1 if call == 'joint_state' and bad is None else len(state)):
        with pytest.raises(ShapeError, match='is not an array of numbers'):
            getattr(m, call)(*state[:which], bad, *state[which + 1:])


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
def test_the_form_of_an_array_does_not_matter(m, s, call):
    state = arguments(call, s)
    expected = getattr(m, call)(*state)
    for key in variants(s.x):
        assert same(getattr(m, call)(*(variants(array)[key] for array in state)), expected), key


@pytest.mark.parametrize('call', BATCHED)
@pytest.mark.parametrize('n', [1, 3, 600] if psdyn_ros.compiled else [3])
def test_the_form_of_a_batch_does_not_matter(m, s, call, n, rng):
    state = rows_about(s, call, rng, n)
    expected = getattr(m, call)(*state)
    for key in variants(state[0]):
        assert same(getattr(m, call)(*(variants(array)[key] for array in state)), expected), key


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


@pytest.mark.parametrize('call', BATCHED)
@pytest.mark.parametrize('n', thorough(BATCHES, (0, 1, 257) if psdyn_ros.compiled else BATCHES))
def test_batches_equal_single_calls_to_the_bit(m, s, call, n, rng):
    state = rows_about(s, call, rng, n)
    batch = getattr(m, call)(*state)
    assert batch.shape == (n, len(m.actuators) if call == 'inverse_dynamics' else m.dof) and batch.dtype == float
    for row in range(n) if n < 600 else rng.integers(0, n, 300):
        single = getattr(m, call)(*(array[row] for array in state))
        if call != 'inverse_dynamics' or m.actuators == m.coordinates:
            assert np.array_equal(batch[row], single)
        else:           # efforts that many actuators share are solved for all rows at once
            assert error(batch[row], single) < 1e-13


@pytest.mark.parametrize('call', BATCHED)
def test_batches_with_base_wrenches_and_efforts(m, s, call, rng):
    state, outside = rows_about(s, call, rng, 5), outside_of(m, rng)
    for options in (*({name: value} for name, value in outside.items()), outside):
        batch = getattr(m, call)(*state, **options)
        assert (batch != getattr(m, call)(*state)).any()
        for row, single in enumerate(zip(*state)):
            assert error(batch[row], getattr(m, call)(*single, **options)) < 1e-13


@pytest.mark.parametrize('call', BATCHED)
def test_a_bad_row_is_named(m, s, call, rng):
    for n, row in ((3, 0), (3, 2), (1000, 501), (1000, 999)) if psdyn_ros.compiled else ((3, 0), (3, 2)):
        for label, array in zip(labels(call), state := rows_about(s, call, rng, n)):
            kept, array[row, -1] = array[row, -1], np.nan
            name = (m.actuators if label == 'f' else m.coordinates)[-1]
            with pytest.raises(NonFiniteError, match=f"^{label} of '{name}' in row {row} is nan"):
                getattr(m, call)(*state)
            array[row, -1] = kept


# States that no machine has

@pytest.mark.parametrize('call', ['forward_dynamics', 'inverse_dynamics'])
@pytest.mark.parametrize('n, row', [(3, 0), (3, 2), (255, 254), (1000, 501)])
def test_the_row_of_an_unreachable_stroke_is_named(call, n, row):
    x, xd, third = (np.tile(one, (n, 1)) for one in STATE)
    x[row, 1] = 0.7
    loop = "loop 'lift_eye': stroke lift_cylinder = 0.7 m"
    wrenches = {'tcp': ((0, 0, 1), (0, 0, 0))}
    for options, words in (({}, f'{loop} in row {row}'), ({'base': BaseMotion()}, f'{loop} in row {row}'),
                           ({'wrenches': wrenches}, f'^row {row}: {loop}')):
        with pytest.raises(UnreachableStrokeError, match=words):
            getattr(CRANE, call)(x, xd, third, **options)


def test_the_first_of_several_bad_rows_is_named():
    x, xd, f = (np.tile(one, (2000, 1)) for one in STATE)
    x[[300, 1200, 1999], 1] = 0.7
    with pytest.raises(UnreachableStrokeError, match='in row 300 '):
        CRANE.forward_dynamics(x, xd, f)


@pytest.mark.parametrize('call', LOOPED)
@pytest.mark.parametrize('stroke, by', [(0.6, '0.0467'), (-0.3, '0.101'), (1e6, '999999')])
def test_unreachable_strokes(call, stroke, by):
    state = STATE[:CALLS[call]].copy()
    state[0, 1] = stroke
    said = f'{stroke:.6g}'.replace('+', '.')
    words = (rf"^loop 'lift_eye': stroke lift_cylinder = {said} m is out of reach by {by}\d* m; the loop closes "
             'between -0.198984 and 0.553229 m')
    with pytest.raises(UnreachableStrokeError, match=words):
        getattr(CRANE, call)(*state)


@pytest.mark.parametrize('call', LOOPED)
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
    with pytest.raises(UnknownNameError, match="did you mean 'pillar'"):
        CRANE.link_pose(STATE[0], 'pilar')


def test_names_of_links_are_checked(m, s):
    for name in ('tpc', None, 5, ['tcp']):
        with pytest.raises(UnknownNameError, match=f"no such link in '{m.name}'"):
            m.link_pose(s.x, name)
        with pytest.raises(UnknownNameError, match=f"no such link in '{m.name}'"):
            m.link_twist(s.x, s.xd, name)


@pytest.mark.parametrize('call', CALLS)
def test_called_twice_the_answer_is_the_same_whatever_came_between(m, s, call, rng):
    state = arguments(call, s)
    kept = [array.copy() for array in state]
    expected = getattr(m, call)(*state)
    for other in CALLS:
        getattr(m, other)(*(array * 0.9 if i else array for i, array in enumerate(arguments(other, s))))
        assert same(getattr(m, call)(*state), expected)
    with pytest.raises(StateError):
        getattr(m, call)(*(array * np.nan for array in state))
    m.forward_dynamics(s.x, s.xd, s.f, **outside_of(m, rng))
    assert same(getattr(m, call)(*state), expected)
    assert all(map(np.array_equal, state, kept))


@pytest.mark.parametrize('call', CALLS)
def test_outputs_are_fresh(m, s, call):
    inputs = arguments(call, s)
    first, second = (getattr(m, call)(*inputs) for _ in range(2))
    for a, b in zip(first, second) if isinstance(first, tuple) else [(first, second)]:
        if isinstance(a, np.ndarray):
            assert not np.shares_memory(a, b)
            assert not any(np.shares_memory(a, array) for array in inputs)


@pytest.mark.parametrize('call', BATCHED)
def test_batches_do_not_write_to_their_inputs(m, s, call, rng):
    inputs = rows_about(s, call, rng, 300 if psdyn_ros.compiled else 3)
    kept = [array.copy() for array in inputs]
    out = getattr(m, call)(*inputs)
    assert all(map(np.array_equal, inputs, kept)) and not any(np.shares_memory(out, array) for array in inputs)


def test_limits_and_arrays_are_those_of_the_joints_and_copies(m):
    joints = m.machine.description.joints
    for own, names in (('limits', m.actuators), ('coordinate_limits', m.coordinates)):
        for side in ('lower', 'upper', 'effort'):
            assert getattr(getattr(m, own), side).tolist() == [getattr(joints[name], side) for name in names]
    for array in (m.initial_position, m.gravity, m.limits.lower, m.coordinate_limits.lower):
        array[:] = 99.0
    for array in (m.initial_position, m.gravity, m.limits.lower, m.coordinate_limits.lower):
        assert not (array == 99.0).any()


def test_sizes_and_names_are_those_of_the_engine(request, m):
    oracle = made(request.node.callspec.params['m']).oracle
    assert (m.dof, m.nx) == (oracle.dof, oracle.dof + m.floating) and m.coordinates == oracle.coordinates
    assert set(m.joints) == set(oracle.joints) and set(oracle.links) <= set(m.links)
    assert repr(m).startswith(f"<Manipulator '{m.name}': {m.dof} DoF, {len(m.actuators)} actuators, ")
    assert repr(m).endswith(f' loops, {m.total_mass:.2f} kg>')
    joints = slice(7 * m.floating, None)
    assert error(m.initial_position[joints], oracle.start_position()[joints]) < 1e-12


def test_the_properties_of_the_crane():
    assert CRANE.name == 'hiab_xs031' and CRANE.dof == 4
    assert CRANE.actuators == CRANE.coordinates == ('slew', 'lift_cylinder', 'tilt_cylinder', 'telescope')
    assert set(CRANE.joints) == {*CRANE.actuators, 'lift_boom', 'lift_barrel', 'tilt_boom', 'tilt_barrel'}
    assert 'tcp' in CRANE.links and 'base_link' in CRANE.links and len(set(CRANE.links)) == len(CRANE.links)
    assert CRANE.total_mass == pytest.approx(1062.93, abs=5e-3)
    assert repr(CRANE) == "<Manipulator 'hiab_xs031': 4 DoF, 4 actuators, 2 loops, 1062.93 kg>"


@pytest.mark.long
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


def test_finite_numbers_too_large_to_compute_with_are_an_error(m, s):
    for call in BATCHED:
        state = [s.x, np.full(m.dof, 1e200), np.zeros(len(arguments(call, s)[2]))]
        with np.errstate(all='ignore'):
            with pytest.raises(NonFiniteError, match='too large|not finite'):
                getattr(m, call)(*state)
            with pytest.raises(NonFiniteError, match='too large|not finite'):
                getattr(m, call)(*(array[None] for array in state))


# Environment

@pytest.mark.parametrize('call', ENVIRONED)
@pytest.mark.parametrize('base, kind, words', [
    (BaseMotion(orientation=(0, 0, 1)), ShapeError, r'base.orientation has shape \(3,\); expected \(4,\)'),
    (BaseMotion(orientation=np.eye(3)), ShapeError, r'base.orientation has shape \(3, 3\)'),
    (BaseMotion(orientation=(0, 0, 0, 0)), StateError, 'base.orientation = .* is no rotation; .* quaternion x y z w'),
    (BaseMotion(orientation=(0, 0, 0, 1e-9)), StateError, 'base.orientation = .* is no rotation'),
    (BaseMotion(orientation=(0, 0, 0, np.nan)), NonFiniteError, 'base.orientation = .* is not finite'),
    (BaseMotion(twist=(1, 2, 3)), ShapeError, r'base.twist has shape \(3,\); expected \(6,\)'),
    (BaseMotion(twist=((1, 2, 3), (4, 5, 6))), ShapeError, r'base.twist has shape \(2, 3\)'),
    (BaseMotion(twist=(1, 2, 3, 4, 5, np.nan)), NonFiniteError, 'base.twist = .* is not finite'),
    (BaseMotion(acceleration=5.0), ShapeError, r'base.acceleration has shape \(\)'),
    (BaseMotion(acceleration=(0, 0, 0, 0, 0, np.inf)), NonFiniteError, 'base.acceleration = .* is not finite'),
    (BaseMotion(twist='fast'), ShapeError, 'base.twist is not an array of numbers'),
    (BaseMotion(twist=None), ShapeError, 'base.twist is not an array of numbers'),
    (5, ShapeError, r'base=5: expected a BaseMotion\(orientation, twist, acceleration\)'),
    ((1, 2, 3, 4), ShapeError, r'base=\(1, 2, 3, 4\): expected a BaseMotion'),
    ({'twist': np.zeros(6)}, ShapeError, 'base.orientation is not an array of numbers'),
], ids=lambda value: str(value)[:40])
def test_bad_base_motions(call, base, kind, words):
    with pytest.raises(kind, match=words):
        getattr(CRANE, call)(*STATE, base=base)


def test_base_motion_may_be_a_plain_tuple_of_lists(rng):
    """Its quaternion of any norm, and with either sign."""
    quaternion, *rates = rng.normal(size=4), *rng.normal(size=(2, 6)).tolist()
    expected = CRANE.inverse_dynamics(*STATE, base=BaseMotion(quaternion, *rates))
    for scale in (1.0, -2.5, 1e-3):
        found = CRANE.inverse_dynamics(*STATE, base=((scale * quaternion).tolist(), *rates))
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-10)


@pytest.mark.parametrize('base', [BaseDrive(), BaseMotion(), (1, 2), 5, 'still'], ids=str)
def test_a_base_that_does_not_fit(m, s, base):
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
def test_drives_that_do_not_fit(wrong, words, rng):
    m, s = made('floating loops').m, made('floating loops').state(rng)
    with pytest.raises(StateError, match=words):
        m.forward_dynamics(s.x, s.xd, s.f, base=wrong)


def test_quaternions_without_a_direction(rng):
    m, s = made('floating loops').m, made('floating loops').state(rng)
    x = s.x.copy()
    x[3:7] = 0.0
    for call in CALLS:
        with pytest.raises(StateError, match=r'the quaternion x\[3:7\] of the base is zero; expected x y z w'):
            getattr(m, call)(x, *arguments(call, s)[1:])


def test_environment_at_rest_changes_nothing(m, s):
    for call in ENVIRONED:
        state = arguments(call, s)
        expected = getattr(m, call)(*state)
        if not m.floating:
            assert error(getattr(m, call)(*state, base=BaseMotion()), expected) < 1e-13
        elif call == 'forward_dynamics':
            assert same(m.forward_dynamics(*state, base=BaseDrive((False,) * 6, np.ones(6))), expected)
        assert same(getattr(m, call)(*state, wrenches={}), expected)
        nothing = {link: (np.zeros(3), np.zeros(3)) for link in m.links if link != 'world'}
        assert error(getattr(m, call)(*state, wrenches=nothing), expected) < 1e-13


@pytest.mark.parametrize('call', ENVIRONED)
@pytest.mark.parametrize('wrenches, kind, words', [
    ({'tpc': ((0, 0, 1), (0, 0, 0))}, UnknownNameError, "link 'tpc': no such link in 'hiab_xs031'"),
    ({'slew': ((0, 0, 1), (0, 0, 0))}, UnknownNameError, "link 'slew': no such link"),
    ({None: ((0, 0, 1), (0, 0, 0))}, UnknownNameError, "link 'None': no such link"),
    ({'tcp': (0, 0, 1, 0, 0, 0)}, ShapeError, r"wrench on 'tcp': expected a pair \(force, moment\)"),
    ({'tcp': 5}, ShapeError, r"wrench on 'tcp': expected a pair \(force, moment\)"),
    ({'tcp': None}, ShapeError, r"wrench on 'tcp': expected a pair \(force, moment\)"),
    ({'tcp': ((0, 0), (0, 0, 0))}, ShapeError, r"force on 'tcp' has shape \(2,\); expected \(3,\)"),
    ({'tcp': ((0, 0, 0), 4.0)}, ShapeError, r"moment on 'tcp' has shape \(\)"),
    ({'tcp': ((0, 0, np.nan), (0, 0, 0))}, NonFiniteError, "force on 'tcp' = .* is not finite"),
    ({'tcp': ((0, 0, 0), (0, np.inf, 0))}, NonFiniteError, "moment on 'tcp' = .* is not finite"),
    ({'tcp': ('up', 'down')}, ShapeError, "force on 'tcp' is not an array of numbers"),
    ([('tcp', (0, 0, 1), (0, 0, 0))], ShapeError, r'wrenches=.*: expected {link: \(force, moment\)}'),
    ('tcp', ShapeError, 'wrenches=.*: expected'),
    (5, ShapeError, 'wrenches=5: expected'),
], ids=lambda value: str(value)[:40])
def test_bad_wrenches(call, wrenches, kind, words):
    for state in (STATE, np.tile(STATE[:, None], (3, 1))) if call in BATCHED else (STATE,):
        with pytest.raises(kind, match=words):
            getattr(CRANE, call)(*state, wrenches=wrenches)


@pytest.mark.parametrize('effort, kind, words', [
    ((1, 2), ShapeError, "effort on '{}' has shape"), (np.nan, NonFiniteError, "effort on '{}' = .* is not finite"),
    ('much', ShapeError, "effort on '{}' is not an array of numbers")])
def test_joint_efforts_that_do_not_fit(m, s, effort, kind, words):
    for call in BATCHED:
        with pytest.raises(kind, match=words.format(m.joints[-1])):
            getattr(m, call)(*arguments(call, s), joint_efforts={m.joints[-1]: effort})
        with pytest.raises(UnknownNameError, match="joint 'nobody': no movable joint of"):
            getattr(m, call)(*arguments(call, s), joint_efforts={'nobody': 1.0})
        with pytest.raises(UnknownNameError, match=f"did you mean '{m.joints[-1]}'"):
            getattr(m, call)(*arguments(call, s), joint_efforts={m.joints[-1] + 'a': 1.0})
        with pytest.raises(ShapeError, match=r'expected \{joint: effort\}'):
            getattr(m, call)(*arguments(call, s), joint_efforts=[(m.joints[-1], 1)])


def test_efforts_on_actuated_joints_are_as_good_as_those_of_their_actuators(m, s):
    expected = m.forward_dynamics(s.x, s.xd, s.f)
    comp = m.forward_dynamics(s.x, s.xd, 0 * s.f, joint_efforts=dict(zip(m.actuators, s.f)))
    assert error(comp, expected) < 1e-12
