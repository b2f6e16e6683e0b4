"""How loops close: what each closure holds, assembly modes over the whole range, and loops that do not."""

import re

import numpy as np
import pytest
from scipy.optimize import brentq
from support import urdf_text as urdf
from support.general_machines import general_machine, general_state
from support.one_loop import edit, one_loop
from support.paths import ROOT
from support.witnesses.general_oracle import GeneralOracle

import psdyn_ros
from psdyn_ros import LoopClosureError, LoopError, TogglePointError, UnreachableStrokeError
from psdyn_ros.api.analysis.report import check_report
from psdyn_ros.model.locate import find_machine

FOUR_BAR, FIVE_BAR = ((ROOT / 'urdf' / f'{name}_bar.urdf').read_text() for name in ('four', 'five'))
# initial positions of the other mode, as in the comments of the files
CROSSED = {'four': {'coupler': -1.3648281656841457, 'rocker': 2.288972884144962},
           'five': {'elbow_1': -1.1504558472410755, 'elbow_2': -2.6118557488308576}}
BODY = np.diag((0.1, 0.2, 0.2))
QUANTITIES = ('joint_state', 'mass_matrix', 'gravity_forces')


def planar(lengths, initial, actuators, name='bars', ground=1.0, constraints=1, tilt=0.0):
    """Bars in a row from the origin, the last one pinned at (ground, 0); the joints are called a, b, c, ..."""
    names = 'abcdefgh'[:len(lengths)]
    elements, parent, x = [urdf.link('base_link')], 'base_link', 0.0
    for joint, length in zip(names, lengths):
        elements += [urdf.joint(joint, 'continuous', parent, f'{joint}_link', (x, 0, 0), (0, 0, 0), (0, 0, 1), (0, 0)),
                     urdf.link(f'{joint}_link', 2.0, (length / 2, 0, 0), BODY)]
        parent, x = f'{joint}_link', length
    for k in range(constraints):
        elements.append(urdf.constraint(f'close{k}' if k else 'close', (parent, (x, 0, 0), (0, 0, 0), (0, 0, 1)),
                                        ('base_link', (ground, 0, 0), (tilt, 0, 0), (0, 0, 1))))
    passive = [joint for joint in names if joint not in actuators]
    return urdf.robot(name, [*elements, urdf.control(name, list(actuators), passive, dict(zip(names, initial)))])


def intersection(a, b, first, second, mode):
    """Return the point at these distances from a and b, on the left of a -> b for mode 1; None: there is none."""
    side = b - a
    d = np.linalg.norm(side)
    along = (first**2 - second**2 + d**2) / (2 * d)
    if abs(along) > first:
        return None
    return a + (along * side + mode * np.sqrt(first**2 - along**2) * np.array((-side[1], side[0]))) / d


def angle(vector):
    return np.arctan2(vector[1], vector[0])


def four_bar_angles(crank, mode):
    end, ground = 0.3 * urdf.direction(crank), np.array((1.0, 0.0))
    top = intersection(end, ground, 1.0, 0.6, mode)
    return {'coupler': angle(top - end) - crank, 'rocker': angle(ground - top) - angle(top - end)}


def five_bar_angles(one, two, mode):
    """None where it does not close."""
    first, second = 0.6 * urdf.direction(one), np.array((1.2, 0.0)) + 0.7 * urdf.direction(two)
    top = intersection(first, second, 1.1, 0.8, mode)
    if top is None:
        return None
    return {'elbow_1': angle(top - first) - one, 'elbow_2': angle(top - second) - two}


def turned(m, x, expected):
    """Return the largest deviation of joint angles, whole turns apart."""
    names, position, *_ = m.joint_state(x)
    away = np.array([position[names.index(name)] - value for name, value in expected.items()])
    return np.abs(away - 2 * np.pi * np.round(away / (2 * np.pi))).max()


# What closures hold

@pytest.mark.parametrize('kind', ['revolute', 'spherical', 'universal', 'prismatic', 'fixed'])
def test_what_a_closure_holds(kind, rng):
    """By the poses of the links that it ties, at states away from the initial one."""
    machine = general_machine(rng, [f'spatial_{kind}'])
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    coordinates = None if machine.coordinates == machine.actuators else machine.coordinates
    m = psdyn_ros.load(machine.xml, coordinates=coordinates)
    closure, = m.machine.description.closures.values()
    for _ in range(3):
        x = general_state(machine, oracle, rng).x
        a, b = (m.link_pose(x, link) @ origin.matrix() for link, origin in (
            (closure.parent, closure.parent_origin), (closure.child, closure.child_origin)))
        axis, other = a[:3, :3] @ closure.parent_axis, b[:3, :3] @ closure.child_axis
        gap = b[:3, 3] - a[:3, 3]
        off = {'revolute': [*gap, *np.cross(axis, other)], 'spherical': gap, 'universal': [*gap, axis @ other],
               'prismatic': [*np.cross(axis, gap), *(a[:3, :3] - b[:3, :3]).ravel()], 'fixed': (a - b).ravel()}[kind]
        assert np.abs(off).max() < 1e-12
        if kind == 'revolute':
            assert axis @ other > 0


@pytest.mark.parametrize('kind', ['spherical', 'universal', 'prismatic', 'fixed'])
def test_friction_of_closures_that_are_no_pin_is_refused(kind, rng):
    machine = general_machine(rng, [f'spatial_{kind}'])
    xml = edit(machine.xml, ('</constraint>', '<dynamics damping="3"/></constraint>'))
    with pytest.raises(LoopError, match=rf"<dynamics> on a closure of type '{kind}'; only one of type 'revolute'"):
        psdyn_ros.load(xml)


# Assembly modes

@pytest.mark.parametrize('mode', [1, -1])
def test_both_modes_of_the_four_bar_over_the_whole_range(mode):
    m = psdyn_ros.load(FOUR_BAR, initial=CROSSED['four'] if mode < 0 else None)
    limits = m.limits
    for crank in np.linspace(limits.lower[0], limits.upper[0], 301):
        assert turned(m, [crank], four_bar_angles(crank, mode)) < 1e-12


@pytest.mark.parametrize('mode', [1, -1])
def test_both_modes_of_the_five_bar_over_the_whole_range(mode):
    """Wherever it closes its joints are those of its mode; elsewhere it says so, by the name of the loop."""
    m = psdyn_ros.load(FIVE_BAR, initial=CROSSED['five'] if mode < 0 else None)
    closed = 0
    for one in np.linspace(-np.pi, np.pi, 25):
        for two in np.linspace(-np.pi, np.pi, 25):
            expected = five_bar_angles(one, two, mode)
            if expected is None:
                with pytest.raises(UnreachableStrokeError, match="^loop 'pin_c': does not close at shoulder_1 = .*, "
                                                                 'shoulder_2 = '):
                    m.joint_state([one, two])
                continue
            closed += 1
            assert turned(m, [one, two], expected) < 1e-8
    assert closed > 300


@pytest.mark.parametrize('name', ['four', 'five'])
def test_rough_initial_positions_choose_the_mode(name, rng):
    xml, other = {'four': FOUR_BAR, 'five': FIVE_BAR}[name], CROSSED[name]
    exact = psdyn_ros.load(xml, initial=other)
    rough = psdyn_ros.load(xml, initial={joint: value + rng.uniform(-0.1, 0.1) for joint, value in other.items()})
    x = exact.initial_position
    assert rough.joint_state(x)[1] == pytest.approx(exact.joint_state(x)[1], abs=1e-12)


def test_loading_twice_gives_the_same_machine():
    """Names of clusters, coordinates and results do not depend on the order of hashes."""
    first, second = (psdyn_ros.load(find_machine('excavator')) for _ in range(2))
    assert [cluster.name for cluster in first.machine.clusters] == ['boom_eye_left+boom_eye_right',
                                                                    'bucket_eye+coupler_pin']
    assert first.coordinates == second.coordinates and first.joints == second.joints
    x = first.initial_position
    assert (first.gravity_forces(x) == second.gravity_forces(x)).all()


# Loops that cannot be

def test_loops_without_freedom():
    with pytest.raises(LoopError, match="loop 'close' leaves its 2 joints no freedom"):
        psdyn_ros.load(planar((1.0, 1.0), (1.0, -2.0), 'a'))


def test_links_that_are_too_short():
    words = (r"^loop 'close': does not close near its initial position; the smallest residual found is (\S+) "
             r'\(m or 1\)')
    with pytest.raises(LoopClosureError, match=words) as caught:
        psdyn_ros.load(planar((0.3, 0.2, 0.1), (0.1, 0.1, 0.1), 'a'))
    assert float(re.search(words, str(caught.value))[1]) == pytest.approx(0.4, rel=0.3)


def test_overconstrained_and_inconsistent():
    """A pin that leans out of the plane: in the plane all fits, in space it does not."""
    good = planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'a')
    assert psdyn_ros.load(good).dof == 1
    words = r"^loop 'close': does not close near .* residual found is (\S+) "
    with pytest.raises(LoopClosureError, match=words) as caught:
        psdyn_ros.load(planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'a', tilt=0.02))
    assert float(re.search(words, str(caught.value))[1]) == pytest.approx(0.02, rel=0.05)


def test_rounded_numbers_are_closed_by_least_squares_and_warned_of():
    rounded = planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'a', tilt=3e-5)
    m, ref = psdyn_ros.load(rounded), psdyn_ros.load(planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'a'))
    warning, = m.machine.warnings
    assert re.search(r"loop 'close': closes only to \S+e-05 \(m or 1\)", warning)
    for a in np.linspace(-3, 3, 7):
        assert m.inverse_dynamics([a], [0.5], [1.0]) == pytest.approx(ref.inverse_dynamics([a], [0.5], [1.0]), rel=1e-3)


@pytest.mark.parametrize('constraints', [1, 2, 3])
def test_overconstrained_and_consistent(constraints):
    """The same pin again and again: accepted, said by `psdyn check`, and the same machine."""
    x, xd, xdd = [0.7], [0.4], [1.0]
    m = psdyn_ros.load(planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'a', constraints=constraints))
    ref = psdyn_ros.load(planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'a'))
    assert m.inverse_dynamics(x, xd, xdd) == pytest.approx(ref.inverse_dynamics(x, xd, xdd), rel=1e-11)
    assert (f'constraints: {5 * constraints} equations for 3 joints, {5 * constraints - 2} of them redundant '
            '(overconstrained, and consistent)') in check_report(m)


def test_doubled_actuators():
    """Both drive the loop, while the joint beyond has none; with one more of them all is well."""
    chain = planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'ab')
    lonely = urdf.joint('alone', 'continuous', 'base_link', 'alone_link', (0, 0, 1), (0, 0, 0), (0, 0, 1), (0, 0))
    xml = edit(chain, ('<constraint', lonely + urdf.link('alone_link', 1.0, (0.1, 0, 0), BODY) + '<constraint'))
    assert any("the 2 actuators of 'bars' move only 1 of its 2 degrees of freedom at the initial position; a, b double "
               'one another' in warning for warning in psdyn_ros.load(xml).machine.warnings)
    assert psdyn_ros.load(xml, actuated=['a', 'b', 'alone']).dof == 2
    assert psdyn_ros.load(xml, actuated=['a', 'alone']).dof == 2
    assert psdyn_ros.load(xml, actuated=['a']).dof == 2


# Singular poses

def test_starting_at_a_singular_pose():
    """A flat parallelogram may leave as one or as an antiparallelogram."""
    flat = planar((0.5, 1.0, 0.5), (0.0, 0.0, np.pi), 'a')
    with pytest.raises(LoopError, match="loop 'close': the initial position is singular; start elsewhere"):
        psdyn_ros.load(flat)
    assert psdyn_ros.load(flat, initial={'a': 0.5, 'b': -0.5, 'c': 0.5 - np.pi}).dof == 1


def test_starting_where_the_actuators_have_no_lever():
    """Both forearms of a five-bar in line: its shoulders do not fix the elbows."""
    first = 2.0
    elbow = 0.6 * urdf.direction(first)
    second = brentq(lambda angle: np.linalg.norm(np.array((1.2, 0)) + 0.7 * urdf.direction(angle) - elbow) - 1.9, 0, 2)
    line = angle(np.array((1.2, 0)) + 0.7 * urdf.direction(second) - elbow)
    start = {'shoulder_1': first, 'shoulder_2': second, 'elbow_1': line - first, 'elbow_2': line + np.pi - second}
    assert any("the 2 actuators of 'five_bar' move only 1 of its 2 degrees of freedom at the initial position; "
               'shoulder_1, shoulder_2 double one another' in warning
               for warning in psdyn_ros.load(FIVE_BAR, initial=start).machine.warnings)


def test_on_the_way_to_a_singular_pose_there_is_an_answer_or_a_named_error():
    """Never NaN, and the error tells the loop and how singular it is."""
    m = psdyn_ros.load(FIVE_BAR)
    inside, outside = m.initial_position, np.array((2.6, 0.3))
    assert five_bar_angles(*outside, 1) is None
    for _ in range(60):
        middle = 0.5 * (inside + outside)
        inside, outside = (inside, middle) if five_bar_angles(*middle, 1) is None else (middle, outside)
    seen, start = set(), m.initial_position
    for share in [*np.linspace(0, 0.95, 20), *(1 - 10.0 ** -np.arange(2, 17)), 1 + 1e-15, 1 + 1e-12, 1 + 1e-9, 1.01]:
        x = start + share * (inside - start)
        for quantity in QUANTITIES:
            try:
                told = getattr(m, quantity)(x)
                assert np.isfinite(told[1] if quantity == 'joint_state' else told).all()
                seen.add('finite')
            except TogglePointError as error:
                words = (r"^loop 'pin_c': is singular at shoulder_1 = \S+, shoulder_2 = \S+; the other joints do not "
                         r'follow from these \(smallest singular value (\S+)\)$')
                assert float(re.search(words, str(error))[1]) < 1e-4
                seen.add('singular')
            except UnreachableStrokeError as error:
                assert re.search(r"^loop 'pin_c': does not close at shoulder_1 = \S+, shoulder_2 = \S+$", str(error))
                seen.add('open')
        if 1 - share > 1e-3:
            assert seen == {'finite'}
        if share > 1.005:
            with pytest.raises(UnreachableStrokeError):
                m.mass_matrix(x)
    assert {'finite', 'singular'} <= seen


def test_dead_points_of_a_rocker():
    """With the rocker as coordinate the crank has dead points, at which the machine is not driven through them."""
    m = psdyn_ros.load(planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'a'), coordinates=['c'])
    ref = psdyn_ros.load(planar((0.3, 1.0, 0.6), (0.5236, 0.0, -2.3), 'a'))
    start, cranks = m.initial_position[0], np.linspace(0.2, 0.9, 15)
    rockers = [ref.joint_state([a])[1][2] for a in cranks]
    for a, c in zip(cranks, rockers):
        assert m.joint_state([c])[1][0] == pytest.approx(a, abs=1e-9)
    ends = [ref.joint_state([a])[1][2] for a in np.linspace(0, 2 * np.pi, 721)]
    for c in (min(ends) - 0.01, max(ends) + 0.01):
        with pytest.raises(UnreachableStrokeError, match=r"^loop 'close': does not close at c = "):
            m.forward_dynamics([c], [0.0], [0.0])
    assert min(ends) < start < max(ends)


@pytest.mark.parametrize('value', [1e3, 1e12, 1e300, -1e300])
def test_positions_far_away(value):
    """Whole turns are taken off where they can be; what is beyond is an error, never NaN or another turn's rounding."""
    m = psdyn_ros.load(FOUR_BAR)
    try:
        position = m.joint_state([value])[1]
        assert turned(m, [value], four_bar_angles(value, 1)) < 1e-6 and np.isfinite(position).all()
    except UnreachableStrokeError as error:
        assert abs(value) > 1e6 and "loop 'rocker_pivot'" in str(error)


def test_a_batch_names_the_row_that_does_not_close():
    m = psdyn_ros.load(FIVE_BAR)
    x = np.tile(m.initial_position, (5, 1))
    x[3] = 2.6, 0.3
    for call in (m.forward_dynamics, m.inverse_dynamics):
        with pytest.raises(UnreachableStrokeError, match=r"loop 'pin_c' in row 3: does not close at shoulder_1 = 2.6,"):
            call(x, 0 * x, 0 * x)


def test_the_integrator_stops_at_a_singular_pose():
    """The free fall of the five-bar ends where its forearms are in line."""
    m = psdyn_ros.load(FIVE_BAR)
    integrator, x, xd = m.integrator(0.01), m.initial_position, np.zeros(2)
    for _ in range(300):
        before = x.copy(), xd.copy()
        status = integrator.step(x, xd, np.zeros(2))
        if status != 0:
            break
    assert status != 0
    assert (x == before[0]).all() and (xd == before[1]).all() and np.isfinite(x).all()
    assert isinstance(integrator.error(status, x), (TogglePointError, UnreachableStrokeError))
    assert "loop 'pin_c'" in str(integrator.error(status, x))


def test_closures_within_one_body_of_a_general_machine():
    ends = ('rod_link', (0, 0, 0), (0, 0, 0), (0, 0, 1)), ('rod_link', (1, 0, 0), (0, 0, 0), (0, 0, 1))
    xml = edit(one_loop().xml, ('<ros2_control', urdf.constraint('tie', *ends).replace('revolute', 'fixed')
                                + '<ros2_control'))
    with pytest.raises(LoopError, match=r"constraint 'tie' \(line \d+\): links 'rod_link' and 'rod_link' are fixed"):
        psdyn_ros.load(xml)
