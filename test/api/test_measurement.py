"""From measured joints to the state and back: any sufficient set, redundant sets, and sets that do not do."""

from itertools import chain as flattened
from itertools import product

import numpy as np
import pytest
from conftest import thorough
from hypothesis import given
from hypothesis import strategies as st
from support.cases import FLOATING_CRANE, made
from support.comparison import error
from support.machines import hiab, random_state, tree
from support.one_loop import one_loop

import psdyn_ros
from psdyn_ros import (
    MeasurementError,
    NonFiniteError,
    ShapeError,
    TogglePointError,
    UnknownNameError,
    UnreachableStrokeError,
)
from psdyn_ros.model.locate import find_machine

CRANE = made('crane').m
LIFT, TILT = ('lift_cylinder', 'lift_boom', 'lift_barrel'), ('tilt_cylinder', 'tilt_boom', 'tilt_barrel')


def subsets(names):
    return [tuple(name for name, kept in zip(names, chosen) if kept)
            for chosen in product((True, False), repeat=len(names)) if any(chosen)]


# what a real machine may measure: for each loop any of stroke, boom angle, barrel angle, but not nothing
SETS = [('slew', *lift, *tilt, 'telescope') for lift, tilt in product(subsets(LIFT), subsets(TILT))]


def lever(manipulator, x, joint):
    """Return d(joint)/d(its coordinate): where it is small, the joint says little of the stroke."""
    names, _, rates, _ = manipulator.joint_state(x, np.ones(manipulator.dof))
    return rates[names.index(joint)]


def measured(manipulator, x, xd, names):
    joints, position, velocity, _ = manipulator.joint_state(x, xd)
    rows = [joints.index(name) for name in names]
    return position[rows], velocity[rows]


def say_all_that_is_needed(x):
    """Return True where one barrel angle stands for one stroke only within the limits."""
    names = [name for name in CRANE.joints if not name.endswith(('cylinder', 'boom'))]
    try:
        CRANE.actuator_state(names, measured(CRANE, x, 0 * x, names)[0])
    except psdyn_ros.StateError:
        return False
    return True


@pytest.mark.parametrize('names', thorough(SETS, SETS[::7]), ids='-'.join)
def test_every_sufficient_set_of_the_crane(names, rng):
    for _ in range(5):
        x, xd = random_state(hiab(), rng)[:2]
        levers = [abs(lever(CRANE, x, name)) for name in names]
        if min(levers) < 0.05 or not say_all_that_is_needed(x):
            continue
        order = rng.permutation(len(names))
        position, velocity = measured(CRANE, x, xd, names)
        shuffled = [names[k] for k in order]
        for given_names, row in ((names, slice(None)), (shuffled, order)):
            found, rate, residual = CRANE.actuator_state(given_names, position[row], velocity[row])
            assert found == pytest.approx(x, abs=1e-12) and rate == pytest.approx(xd, abs=1e-10)
            assert residual < 1e-13


@pytest.mark.parametrize('joints', [LIFT, LIFT[:1], LIFT[1:], LIFT[1:2]], ids='-'.join)
def test_velocities_may_be_missing(joints):
    names = ['slew', *joints, 'tilt_cylinder', 'telescope']
    x, xd, _ = CRANE.actuator_state(names, measured(CRANE, [0.1, 0.2, 0.3, 0.4], np.ones(4), names)[0])
    assert x == pytest.approx([0.1, 0.2, 0.3, 0.4]) and not xd.any()


@pytest.mark.parametrize('options', [{}, dict(e=0.2), dict(mode=1), dict(rod_sign=-1, e=-0.15), dict(barrel_sign=-1),
                                     dict(boom_sign=-1, mode=1), dict(L=0.4, L1=1.2), dict(turning='continuous')],
                         ids=str)
@pytest.mark.parametrize('names', subsets(('cylinder', 'boom', 'barrel')), ids='-'.join)
def test_every_sufficient_set_of_triangles(options, names, rng):
    machine = one_loop(**options)
    manipulator = psdyn_ros.load(machine.xml)
    for _ in range(10):
        x, xd = random_state(machine, rng)[:2]
        if names == ('barrel',) and not unique_for_barrel(manipulator, x):
            continue
        position, velocity = measured(manipulator, x, xd, names)
        found, rate, residual = manipulator.actuator_state(names, position, velocity)
        small = min(1.0, abs(lever(manipulator, x, names[-1])))
        assert abs(found - x) < 1e-13 / small and abs(rate - xd) < 1e-11 / small**3 and residual < 1e-12 / small


def unique_for_barrel(manipulator, x):
    """Return True when no other stroke within the limits has the same barrel angle, and this one has a lever."""
    triangle, assembly = manipulator.machine.modules[0].triangle, manipulator.machine.modules[0].assembly
    low, high = manipulator.limits.lower[0] - 1e-4, manipulator.limits.upper[0] + 1e-4
    angles = triangle.angles(np.linspace(low, high, 4000), assembly.mode)[1]
    crossings = np.diff(np.sign(angles - triangle.angles(x, assembly.mode)[1]))
    return np.count_nonzero(crossings) == 1 and abs(lever(manipulator, x, 'barrel')) > 0.05


@pytest.fixture(params=['shared', 'floating shared'])
def case(request):
    return made(request.param)


@pytest.mark.parametrize('name', thorough(['tree', 'excavator', 'shared', 'floating shared'], 2))
def test_sufficient_sets_of_joints_give_the_state(name, rng):
    case = made(name)
    m, s = case.m, case.state(rng)
    names, *reported = m.joint_state(s.x, s.xd, s.xdd)
    base = (s.x[:7], s.xd[:6]) if m.floating else None
    booms = [joint for joint in names if not joint.endswith(('_cylinder', '_barrel'))]
    cranks = ['m1_five_bar_left_crank', 'm1_five_bar_right_crank', 'm2_twin_cylinders_boom']
    other = {'tree': booms, 'shared': cranks, 'floating shared': cranks}.get(name, m.coordinates)
    for measured in (names, m.coordinates, m.coordinates[::-1], other):
        rows = [names.index(joint) for joint in measured]
        try:
            joint_map = m.joint_map(measured)
        except MeasurementError as problem:
            # the cranks may be singular as coordinates of the pose that was drawn
            assert measured == cranks and 'five_bar' in str(problem)
            continue
        x, xd, residual = joint_map.state(*(values[rows] for values in reported[:2]), base)
        assert error(x, s.x) < 1e-9 and error(xd, s.xd) < 1e-8 and residual < 1e-9
        xdd = joint_map.motion(*(values[rows] for values in reported), base)[2]
        assert error(xdd[m.dof - len(m.coordinates):], s.xdd[m.dof - len(m.coordinates):]) < 1e-7
    assert m.joint_map(names) is m.joint_map(list(names))
    if m.floating:
        x, xd, _ = m.joint_map(names).state(*reported[:2])
        assert x[:7].tolist() == [0, 0, 0, 0, 0, 0, 1] and not xd[:6].any()


@pytest.mark.parametrize('name', ['shared', 'floating shared', 'crane', FLOATING_CRANE])
def test_rows_of_measured_joints_are_each_as_alone(name, rng):
    case = made(name)
    m, s = case.m, case.state(rng)
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


def test_a_bound_map_reads_as_the_map_does(case, rng):
    m = case.m
    bound = None
    for s in (case.state(rng), case.state(rng)):
        names, position, velocity, _ = m.joint_state(s.x, s.xd)
        joint_map = m.joint_map(names)
        bound = bound or joint_map.bind()
        bound.measured[:2] = position + 1e-4 * rng.standard_normal(len(names)), velocity
        expected, found = joint_map.state(*bound.measured[:2]), bound.state()
        assert all(np.array_equal(*pair) for pair in zip(found[:2], expected[:2])) and found[2] == expected[2] > 0.0
        assert found[0] is not bound.state()[0]
    bound.measured[1, 0] = np.nan
    with pytest.raises(NonFiniteError, match=f"velocity of '{names[0]}' is nan"):
        bound.state()


@pytest.mark.parametrize('name, impossible', [
    pytest.param('five_bar', [2.6, 0.3], marks=pytest.mark.long), ('hiab_xs031', [0.0, 9.0, 0.0, 0.0])])
def test_rows_that_no_pose_has_are_nan_and_the_others_are_not(name, impossible):
    m = psdyn_ros.load(find_machine(name))
    x, xd, residual = m.joint_map(m.coordinates).states(
        [m.initial_position, impossible, m.initial_position + 0.05], np.ones((3, m.dof)))
    assert np.isnan(x[1]).all() and np.isnan(xd[1]).all() and np.isnan(residual[1])
    assert np.array_equal(x[::2], m.initial_position + [[0.0], [0.05]]) and (xd[::2] == 1.0).all()


def test_contradicting_joints_have_a_residual(case, rng):
    m, s = case.m, case.state(rng)
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
    m = case.m
    with pytest.raises(kind, match=words):
        m.joint_map(names)


@pytest.mark.long
def test_joint_map_tabulated_in_pauses_equals_one_made_at_once():
    joints = ('shoulder_1', 'elbow_1')
    m, other = (psdyn_ros.load(find_machine('five_bar')) for _ in range(2))
    paused = m.joint_map(joints, tabulate=False)
    assert sum(1 for _ in paused.building) > 1000 and list(paused.building) == []
    at_once = other.joint_map(joints)
    assert list(at_once.building) == [] and other.joint_map(joints, tabulate=False) is at_once
    names, position, velocity, _ = m.joint_state(m.initial_position + [0.2, -0.1], [0.3, 0.4])
    columns = [names.index(name) for name in joints]
    for one, twin in zip(paused.state(position[columns], velocity[columns]),
                         at_once.state(position[columns], velocity[columns])):
        assert np.array_equal(one, twin)
    with pytest.raises(MeasurementError, match="do not fix loop 'pin_c'"):
        m.joint_map(('shoulder_1',), tabulate=False)


def test_measured_positions_that_no_pose_has():
    m = psdyn_ros.load(find_machine('five_bar'))
    with pytest.raises(MeasurementError, match="loop 'pin_c' with shoulder_1 = 2.6, shoulder_2 = 0.3: no position cl"):
        m.joint_map(('shoulder_1', 'shoulder_2')).state([2.6, 0.3])
    with pytest.raises(UnreachableStrokeError, match="loop 'pin_c': does not close at shoulder_1 = 2.6, shoulder_2 ="):
        m.joint_state([2.6, 0.3])


@given(st.floats(-0.05, 0.05), st.sampled_from(['lift_boom', 'lift_barrel', 'tilt_boom', 'tilt_barrel']))
def test_residual_is_the_distance_at_the_rod_eye(angle, joint):
    """A redundant sensor that is wrong by an angle: the eye of its link is apart by the chord."""
    x = np.array([0.1, 0.2, 0.3, 0.4])
    names, position, _, _ = CRANE.joint_state(x)
    wrong = position.copy()
    wrong[names.index(joint)] += angle
    loop = joint.split('_')[0]
    closure = CRANE.machine.description.closures[f'{loop}_eye']
    pin = CRANE.link_pose(x, f'{joint}_link')[:3, 3]
    eye = CRANE.link_pose(x, closure.parent) @ (*closure.parent_origin.position, 1.0)
    arm = np.linalg.norm(pin - eye[:3])
    found, _, residual = CRANE.actuator_state(names, wrong)
    assert (found == x).all()
    assert residual == pytest.approx(2 * arm * abs(np.sin(angle / 2)), abs=1e-14)
    residuals = CRANE.joint_map(names).residuals(wrong)
    assert residuals[f'{loop}_eye'] == pytest.approx(residual, abs=1e-15)
    assert sum(residuals.values()) == pytest.approx(residual, abs=1e-14)


def test_a_wrong_stroke_shows_too():
    names, position, _, _ = CRANE.joint_state([0.1, 0.2, 0.3, 0.4])
    position[names.index('lift_cylinder')] += 0.01
    _, _, residual = CRANE.actuator_state(names, position)
    assert 0.009 < residual < 0.02


def test_contradiction_of_boom_and_barrel():
    names = ['slew', 'lift_boom', 'lift_barrel', 'tilt_boom', 'telescope']
    position, _ = measured(CRANE, [0.1, 0.2, 0.3, 0.4], np.zeros(4), names)
    position[2] += 0.02
    x, _, residual = CRANE.actuator_state(names, position)
    assert x == pytest.approx([0.1, 0.2, 0.3, 0.4])     # the boom decides
    assert residual == pytest.approx(0.02 * (0.83 + 0.2), rel=1e-3)


def test_stroke_and_boom_on_the_other_branch():
    names, position, _, _ = CRANE.joint_state([0.1, 0.2, 0.3, 0.4])
    position[names.index('lift_boom')] += np.pi
    assert CRANE.actuator_state(names, position)[2] == pytest.approx(2 * 0.37610632)
    loop = psdyn_ros.load(one_loop().xml)
    boom = loop.joint_state([0.3])[1][loop.joints.index('boom')]
    with pytest.raises(MeasurementError, match="loop 'eye' with boom = 1.543.*: the boom stands on the other as"):
        loop.actuator_state(['boom'], [-boom])


def test_whole_turns_of_measured_angles():
    loop = psdyn_ros.load(one_loop(turning='continuous').xml)
    names, position, _, _ = loop.joint_state([0.3])
    turned = position + 2 * np.pi * np.array([name != 'cylinder' for name in names])
    x, _, residual = loop.actuator_state(names, turned)
    assert x == [0.3] and residual < 1e-14
    assert loop.actuator_state(['boom'], [turned[names.index('boom')]])[0] == pytest.approx([0.3])


@pytest.mark.parametrize('names, words', [
    (('slew', 'lift_cylinder', 'tilt_cylinder'), "do not fix 'telescope'; name it too"),
    (('slew', 'lift_cylinder', 'telescope'),
     r"\['slew', 'lift_cylinder', 'telescope'\] do not fix 'tilt_cylinder' \(or 'tilt_boom', or 'tilt_barrel'\) of "
     "loop 'tilt_eye'; name it too"),
    (('lift_boom',), "do not fix 'slew'; name it too"),
    ((), r'the joints \[\] do not fix'),
])
def test_too_few_joints(names, words):
    with pytest.raises(MeasurementError, match=words):
        CRANE.actuator_state(names, [0.1] * len(names))


@pytest.mark.parametrize('name, words', [('slw', "; did you mean 'slew'"), ('tcp_mount', 'no movable joint'),
                                         ('x' * 500, 'there are: lift_barrel, lift_boom, lift_cylinder')])
def test_unknown_names(name, words):
    with pytest.raises(UnknownNameError, match=f"joint '{name}': no movable joint of 'hiab_xs031'.*{words}|{words}"):
        CRANE.actuator_state([*CRANE.actuators, name], [0.1, 0.2, 0.3, 0.4, 0.1])


@pytest.mark.parametrize('names', [5, None, [1, 2, 3, 4], [None], [['slew']], b'slew', 5.0], ids=str)
def test_what_are_no_names(names):
    with pytest.raises(MeasurementError, match='names=.*expected a list of joint names'):
        CRANE.actuator_state(names, [0.1, 0.2, 0.3, 0.4])


def test_names_of_any_collection():
    x = [0.1, 0.2, 0.3, 0.4]
    values = dict(zip(CRANE.actuators, x))
    for names in (CRANE.actuators, list(CRANE.actuators), values.keys(), iter(CRANE.actuators)):
        assert CRANE.actuator_state(names, x)[0] == pytest.approx(x)
    lift = psdyn_ros.load(hiab(lift_only=True).xml)
    assert lift.actuator_state('lift_cylinder', [0.2])[0] == [0.2]


@pytest.mark.parametrize('position, velocity, error, words', [
    ([0.1, 0.2, 0.3], None, ShapeError, r"position has shape \(3,\) for 4 joints \['slew', 'lift_cylinder', 'tilt_c"),
    ([0.1, 0.2, 0.3, 0.4], [0.1], ShapeError, r'velocity has shape \(1,\) for 4 joints'),
    ([0.1, 0.2, 0.3, 0.4], [], ShapeError, r'velocity has shape \(0,\) for 4 joints'),
    ([[0.1, 0.2, 0.3, 0.4]], None, ShapeError, r'position has shape \(1, 4\) for 4 joints'),
    (0.1, None, ShapeError, r'position has shape \(\) for 4 joints'),
    (None, None, ShapeError, 'position is not an array of numbers: None'),
    (['0.1', '0.2', '0.3', '0.4'], None, ShapeError, 'position is not an array of numbers'),
    ([0.1, 0.2, [0.3], 0.4], None, ShapeError, 'position is not an array of numbers'),
    ([0.1, 0.2, np.nan, 0.4], None, NonFiniteError, "position of 'tilt_cylinder' is nan; expected a finite number"),
    ([0.1, 0.2, 0.3, 0.4], [0, np.inf, 0, 0], NonFiniteError, "velocity of 'lift_cylinder' is inf"),
    ([0.1, 0.7, 0.3, 0.4], None, UnreachableStrokeError, "loop 'lift_eye': stroke lift_cylinder = 0.7 m is out of"),
])
def test_bad_values(position, velocity, error, words):
    with pytest.raises(error, match=words):
        CRANE.actuator_state(CRANE.actuators, position, velocity)


def test_a_barrel_angle_that_two_strokes_have():
    """The barrel turns back where the boom stands across the cylinder."""
    loop = psdyn_ros.load(one_loop().xml)
    strokes = np.linspace(-0.2, 0.6, 81)
    angles = [measured(loop, [x], [0.0], ['barrel'])[0][0] for x in strokes]
    extreme = int(np.argmin(angles))
    assert 0 < extreme < 80
    with pytest.raises(MeasurementError, match="loop 'eye' with barrel = .*: two strokes fit within the limits of "
                                               'cylinder; measure the stroke or the boom'):
        loop.actuator_state(['barrel'], [angles[extreme] + 0.01])
    with pytest.raises(UnreachableStrokeError, match="loop 'eye' with barrel = .*: no stroke between -0.25 and 0.65 m"):
        loop.actuator_state(['barrel'], [angles[extreme] - 0.01])
    # with the boom beside it the barrel need not be unique
    names = ['barrel', 'boom']
    assert loop.actuator_state(names, measured(loop, [0.1], [0.0], names)[0])[0] == pytest.approx([0.1])


def test_a_barrel_at_rest_says_nothing_of_the_velocity():
    """Where the barrel turns back it does not move with the stroke: s^2 = L^2 - L1^2."""
    stroke = np.sqrt(1.1**2 - 0.45**2) - 0.9
    loop = psdyn_ros.load(one_loop(stroke=stroke, limits={'cylinder': (stroke, 0.6)}).xml)
    angle, _ = measured(loop, [stroke], [0.0], ['barrel'])
    with pytest.raises((TogglePointError, UnreachableStrokeError, MeasurementError), match="loop 'eye'"):
        loop.actuator_state(['barrel'], angle, [0.1])


def test_toggle_points_are_refused():
    loop = psdyn_ros.load(one_loop().xml)
    low, high = loop.machine.modules[0].assembly.reach
    for end in (low, high):
        with pytest.raises(TogglePointError, match="loop 'eye': stroke cylinder = .* from its toggle point"):
            loop.actuator_state(['cylinder'], [end])
    for flat in (0.0, -np.pi, np.pi):
        with pytest.raises(psdyn_ros.StateError, match="loop 'eye'"):
            loop.actuator_state(['boom'], [flat])


def test_joint_maps_are_kept_but_not_without_end():
    first = CRANE.joint_map(CRANE.actuators)
    assert CRANE.joint_map(list(CRANE.actuators)) is first
    rng = np.random.default_rng(0)
    for _ in range(500):
        CRANE.joint_map(rng.permutation(CRANE.joints).tolist())
    assert len(CRANE._maps) <= 100


# the way there: joint_state


def test_joint_state_answers_what_it_is_asked():
    x, xd, xdd = np.full((3, 4), 0.1)
    for state, given_arrays in (((x,), (True, False, False)), ((x, xd), (True, True, False)),
                                ((x, xd, xdd), (True, True, True)), ((x, None, xdd), (True, False, False))):
        names, *arrays = CRANE.joint_state(*state)
        assert names == CRANE.joints
        assert tuple(array is not None for array in arrays) == given_arrays
        assert all(array.shape == (8,) for array in arrays if array is not None)


def test_joint_positions_start_where_the_urdf_says():
    for machine in (hiab(), hiab(lift_only=True), tree(6, 7)):
        manipulator = psdyn_ros.load(machine.xml)
        names, position, _, _ = manipulator.joint_state(manipulator.initial_position)
        declared = {name: machine.initial.get(name) for name in names}
        assert dict(zip(names, position)) == pytest.approx(declared, abs=1e-9)


@pytest.mark.parametrize('rod_sign, barrel_sign, mode, e', [*product((-1, 1), (-1, 1), (-1, 1), (-0.1, 0.0, 0.1))])
def test_joint_positions_of_triangles_start_where_the_urdf_says(rod_sign, barrel_sign, mode, e):
    for stroke in np.linspace(-0.1, 0.6, 8):
        machine = one_loop(rod_sign=rod_sign, barrel_sign=barrel_sign, mode=mode, e=e, stroke=stroke)
        manipulator = psdyn_ros.load(machine.xml)
        names, position, _, _ = manipulator.joint_state(manipulator.initial_position)
        assert dict(zip(names, position)) == pytest.approx(machine.initial, abs=1e-9)


@pytest.mark.parametrize('rod_sign, barrel_sign', [*product((-1, 1), (-1, 1))])
@pytest.mark.parametrize('slip', [-0.05, 0.05])
@pytest.mark.parametrize('turns', [-1, 0, 2])
def test_joint_positions_start_near_rough_initial_values(rod_sign, barrel_sign, slip, turns):
    machine = one_loop(rod_sign=rod_sign, barrel_sign=barrel_sign, limits={'boom': (-20, 20), 'barrel': (-20, 20)})
    rough = {name: machine.initial[name] + slip + turns * 2 * np.pi for name in ('boom', 'barrel')}
    manipulator = psdyn_ros.load(machine.xml, initial={**rough, 'cylinder': machine.initial['cylinder']})
    names, position, _, _ = manipulator.joint_state(manipulator.initial_position)
    for name, value in rough.items():
        assert position[names.index(name)] == pytest.approx(value - slip), name


def test_joint_positions_of_the_crane_are_within_its_limits():
    """The limits of the passive joints are those of the strokes, so that RViz and MoveIt see what happens."""
    joints = CRANE.machine.description.joints
    corners = product(*((CRANE.limits.lower[k], CRANE.limits.upper[k]) for k in (1, 2)))
    for lift, tilt in flattened(corners, [(0.2, 0.3)]):
        names, position, _, _ = CRANE.joint_state([0.0, lift, tilt, 0.5])
        for name, value in zip(names, position):
            assert joints[name].lower - 1e-3 <= value <= joints[name].upper + 1e-3, name
