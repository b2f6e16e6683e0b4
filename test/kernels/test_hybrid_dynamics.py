"""Hybrid dynamics against forward and inverse dynamics, the independent engine, and differences of its kernel."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from conftest import thorough
from support.cases import MACHINES, made
from support.comparison import error
from support.machines import random_wrenches
from support.witnesses import extended

import psdyn_ros
from psdyn_ros.api.hybrid import coordinate_names
from psdyn_ros.model.errors import ActuationError, NonFiniteError, ShapeError, UnknownNameError

NAMES = (*MACHINES, 'floating tree', 'nested', 'under_actuated', 'own_coordinates')
QUICK = ('crane', 'floating crane', 'excavator', 'balloon', 'under_actuated')
TYPICAL, WORST = 1e-12, 1e-11
STATES, PARTITIONS = 2, 16
DIFFERENTIATED = ('crane', 'tree', 'floating crane', 'balloon', 'five_bar', 'excavator', 'floating tree', 'nested')


@pytest.fixture(params=thorough(NAMES, QUICK), scope='module')
def case(request):
    return made(request.param)


def partitions(dof, rng):
    """Return rows of flags (dof,), True: driven; every one of few coordinates, else random ones."""
    if 2 ** dof <= PARTITIONS:
        return np.array(list(product((False, True), repeat=dof)))
    return rng.random((PARTITIONS, dof)) < rng.random((PARTITIONS, 1))


def given_to(m, driven, xdd, f):
    """Return the keyword arguments of `hybrid_dynamics` for xdd where coordinates are driven, and f where not."""
    columns = dict(zip(coordinate_names(m), range(m.dof)))
    return {'accelerations': {name: xdd[..., k] for name, k in columns.items() if driven[k]},
            'efforts': {name: f[..., k] for name, k in columns.items() if not driven[k]}}


def wrenches_of(case, rng):
    """Draw wrenches on the links of a machine, without the world under a base that floats."""
    return {link: wrench for link, wrench in random_wrenches(case.m, rng).items() if link in case.oracle.links}


def draw(case, rng):
    """Return a state (x, xd, xdd, efforts on the coordinates) and what acts from outside."""
    m = case.m
    x, xd, xdd, _ = case.state(rng)
    joints = rng.choice(m.joints, min(2, len(m.joints)), replace=False)
    outside = {'wrenches': wrenches_of(case, rng),
               'joint_efforts': {str(name): float(rng.uniform(-50, 50)) for name in joints}}
    if not m.floating:
        orientation = rng.normal(size=4)
        outside['base'] = psdyn_ros.BaseMotion(orientation / np.linalg.norm(orientation), *rng.normal(size=(2, 6)))
    return (x, xd, xdd, rng.uniform(-300, 300, m.dof)), outside


def engines_answer(oracle, driven, x, xd, xdd, f, base=None, wrenches=None, joint_efforts=None):
    """Return (accelerations, efforts) by the mass matrix of the independent engine, refined by its efforts."""
    mass, free = oracle.mass_matrix(x), ~driven
    a = np.where(driven, xdd, 0.0)
    for _ in range(3):
        missing = f - oracle.generalized_forces(x, xd, a, base, wrenches, joint_efforts)
        if free.any():
            a[free] += np.linalg.solve(mass[np.ix_(free, free)], missing[free])
    return a, np.where(driven, oracle.generalized_forces(x, xd, a, base, wrenches, joint_efforts), f)


def test_all_free_is_forward_and_all_driven_is_inverse_dynamics(case, rng):
    m, errors = case.m, []
    for _ in range(STATES):
        x, xd, xdd, f = case.state(rng)
        push = m.actuator_map(x).T @ f
        free = m.hybrid_dynamics(x, xd, **given_to(m, np.zeros(m.dof), xdd, push))
        driven = m.hybrid_dynamics(x, xd, **given_to(m, np.ones(m.dof), xdd, push))
        assert np.array_equal(free.efforts, push) and np.array_equal(driven.accelerations, xdd)
        errors += [error(free.accelerations, m.forward_dynamics(x, xd, f)),
                   error(driven.efforts, m.generalized_forces(x, xd, xdd))]
    assert np.median(errors) < TYPICAL and max(errors) < WORST


def test_every_partition_agrees_with_forward_and_inverse_dynamics_and_the_engine(case, rng):
    _, oracle, m, _ = case
    errors = {'forward': [], 'inverse': [], 'engine': []}
    for _ in range(STATES):
        (x, xd, xdd, f), outside = draw(case, rng)
        for driven in partitions(m.dof, rng):
            a, tau = m.hybrid_dynamics(x, xd, **given_to(m, driven, xdd, f), **outside)
            assert np.array_equal(a[driven], xdd[driven]) and np.array_equal(tau[~driven], f[~driven])
            errors['inverse'].append(error(tau, m.generalized_forces(x, xd, a, **outside)))
            free = m.hybrid_dynamics(x, xd, **given_to(m, np.zeros(m.dof), xdd, tau), **outside)
            errors['forward'].append(error(a, free.accelerations))
            theirs = engines_answer(oracle, driven, x, xd, xdd, f, **outside)
            errors['engine'].append(max(error(a, theirs[0]), error(tau, theirs[1])))
    assert {name: float(np.median(values)) for name, values in errors.items() if np.median(values) >= TYPICAL} == {}
    assert {name: max(values) for name, values in errors.items() if max(values) >= WORST} == {}


@pytest.mark.parametrize('loaded', [False, True], ids=['alone', 'with wrenches'])
def test_rows_equal_single_states(case, loaded, rng):
    """To the bit, but where loops are closed by iteration, from the row before."""
    m = case.m
    bound = 1e-12 if m.machine.clusters else 0.0
    rows = [np.array(values) for values in zip(*(draw(case, rng)[0] for _ in range(5)))]
    x, xd, xdd, f = rows
    outside = {'wrenches': wrenches_of(case, rng)} if loaded else {}
    driven = rng.random(m.dof) < 0.5
    given = given_to(m, driven, xdd, f)
    batch = m.hybrid_dynamics(x, xd, **given, **outside)
    for row in range(len(x)):
        one = m.hybrid_dynamics(x[row], xd[row], **given_to(m, driven, xdd[row], f[row]), **outside)
        for values, reference in zip(batch, one):
            assert error(values[row], reference) <= bound


def test_one_number_serves_all_rows(rng):
    case = made('crane')
    states = [case.state(rng) for _ in range(3)]
    x, xd = (np.array([state[k] for state in states]) for k in range(2))
    given = {'accelerations': {'slew': 0.3, 'telescope': -1}, 'efforts': {'tilt_cylinder': 2e4, 'lift_cylinder': 0.0}}
    rows = {what: {name: np.full(3, value) for name, value in values.items()} for what, values in given.items()}
    for values, reference in zip(case.m.hybrid_dynamics(x, xd, **given), case.m.hybrid_dynamics(x, xd, **rows)):
        assert np.array_equal(values, reference)


@pytest.mark.parametrize('rows', [(), (4,)], ids=['state', 'rows'])
def test_base_names_all_six_coordinates_of_a_floating_base(rows, rng):
    m = made('floating crane').m
    x, xd = np.tile(m.initial_position, (*rows, 1)), rng.normal(size=(*rows, m.dof))
    pull = rng.normal(size=(*rows, 6))
    joints = dict.fromkeys(m.coordinates, 0.1)
    single = dict(zip(coordinate_names(m), np.moveaxis(pull, -1, 0)))
    together, apart = (m.hybrid_dynamics(x, xd, accelerations=given, efforts=joints)
                       for given in ({'base': pull}, single))
    for values, reference in zip(together, apart):
        assert np.array_equal(values, reference)
    assert np.array_equal(together.accelerations[..., :6], pull)


@pytest.mark.parametrize('name', thorough(DIFFERENTIATED, ('crane', 'floating crane', 'five_bar')))
def test_derivatives_against_differences_of_the_kernel(name, rng):
    case = made(name)
    m, (x, xd, xdd, _) = case.m, case.state(rng)
    f, handle = rng.uniform(-300, 300, m.dof), case.m.handle()
    handle.let_efforts_act_on_coordinates()
    for driven in (np.zeros(m.dof, bool), np.ones(m.dof, bool), *(rng.random((3, m.dof)) < 0.5)):
        D = m.hybrid_dynamics_derivatives(x, xd, **given_to(m, driven, xdd, f))
        state = x, xd, np.where(driven, xdd, f)
        for argument, parts in enumerate(((D.dxdd_dx, D.df_dx), (D.dxdd_dxd, D.df_dxd), (D.dxdd_dgiven, D.df_dgiven))):
            reference = extended.derivative(partial(extended.hybrid_dynamics, driven), handle, state, argument)
            for value, part in zip(parts, np.split(reference, 2)):
                assert error(value, part) < 1e-10, (argument, driven)


def test_derivatives_with_springs_wrenches_and_a_moving_base(rng):
    case = made('nested')
    m, (x, xd, xdd, _) = case.m, case.state(rng)
    driven, f = rng.random(m.dof) < 0.5, rng.uniform(-300, 300, m.dof)
    base = psdyn_ros.BaseMotion((0.1, 0.2, 0.3, 0.9), *rng.normal(size=(2, 6)))
    outside = {'base': base, 'wrenches': wrenches_of(case, rng)}
    numbers = dict(zip(m.joints, rng.normal(size=(len(m.joints), 3)) * (10, 100, 30)))

    def springs(x, xd):
        names, q, qd, _ = m.joint_state(x, xd)
        return {name: float(numbers[name] @ (1.0, q[k], qd[k])) for k, name in enumerate(names)}

    D = m.hybrid_dynamics_derivatives(x, xd, **given_to(m, driven, xdd, f), joint_efforts=springs(x, xd),
                                      joint_slopes={name: row[1:] for name, row in numbers.items()}, **outside)
    for argument, step, parts in ((0, 3e-5, (D.dxdd_dx, D.df_dx)), (1, 1e-4, (D.dxdd_dxd, D.df_dxd))):

        def moved(change, argument=argument):
            there = [x, xd]
            there[argument] = there[argument] + change
            return np.concatenate(m.hybrid_dynamics(*there, **given_to(m, driven, xdd, f),
                                                    joint_efforts=springs(*there), **outside))

        for value, part in zip(parts, np.split(extended.differences(moved, m.dof, step), 2)):
            assert error(value, part) < 1e-8, argument


def all_given(m, **others):
    """Return (x, xd, arguments) with zero efforts on all coordinates that `others` does not name."""
    named = {name for values in others.values() for name in values}
    if 'base' in named:
        named |= set(coordinate_names(m)[:6])
    efforts = {name: 0.0 for name in coordinate_names(m) if name not in named} | others.get('efforts', {})
    return m.initial_position, np.zeros(m.dof), {'accelerations': others.get('accelerations', {}), 'efforts': efforts}


@pytest.mark.parametrize('call', ['hybrid_dynamics', 'hybrid_dynamics_derivatives'])
@pytest.mark.parametrize('name, others, kind, text', [
    ('crane', {'accelerations': {'slew': 0.0}, 'efforts': {'slew': 0.0}}, ActuationError,
     "efforts of 'slew': 'slew' is given already"),
    ('floating crane', {'accelerations': {'base': np.zeros(6)}, 'efforts': {'base_z': 0.0}}, ActuationError,
     "efforts of 'base_z': 'base_z' is given already"),
    ('floating crane', {'accelerations': {'base_rx': 0.0, 'base': np.zeros(6)}}, ActuationError,
     "accelerations of 'base': 'base_rx' is given already"),
    ('crane', {'accelerations': {'slow': 0.0}}, UnknownNameError, "'slow': no such coordinate of 'hiab_xs031'.*'slew'"),
    ('crane', {'efforts': {'base': np.zeros(6)}}, UnknownNameError, "'base': no such coordinate"),
    ('crane', {'efforts': {'base_x': 1.0}}, UnknownNameError, "'base_x': no such coordinate"),
    ('crane', {'accelerations': {'lift_boom': 0.0}}, UnknownNameError, "'lift_boom': it is no coordinate of"),
    ('five_bar', {'efforts': {'elbow_1': 0.0}}, UnknownNameError, "'elbow_1': it is no coordinate of"),
    ('floating crane', {'accelerations': {'base': np.zeros(5)}}, ShapeError,
     r"'base' has shape \(5,\); expected \(6,\) of the base: rates of \(v, w\) \[m/s\^2, rad/s\^2\]"),
    ('floating crane', {'efforts': {'base': 0.0}}, ShapeError, r"'base' has shape \(\); expected \(6,\)"),
    ('crane', {'accelerations': {'slew': np.zeros(2)}}, ShapeError, r"'slew' has shape \(2,\); expected \(\)"),
    ('crane', {'accelerations': {'slew': np.nan}}, NonFiniteError, "'slew'"),
    ('crane', {'efforts': {'telescope': np.inf}}, NonFiniteError, "'telescope'"),
    ('five_bar', {'efforts': {'shoulder_2': np.nan}}, NonFiniteError, "'shoulder_2'"),
    ('floating crane', {'accelerations': {'base': [0, 0, 0, 0, np.nan, 0]}}, NonFiniteError, 'base'),
])
def test_bad_partitions_are_errors_that_name_the_coordinate(call, name, others, kind, text):
    m = made(name).m
    x, xd, given = all_given(m, **others)
    with pytest.raises(kind, match=text):
        getattr(m, call)(x, xd, **given)


@pytest.mark.parametrize('call', ['hybrid_dynamics', 'hybrid_dynamics_derivatives'])
def test_missing_coordinates_are_all_named(call):
    m = made('crane').m
    with pytest.raises(ActuationError, match='neither an acceleration nor an effort of lift_cylinder, telescope'):
        getattr(m, call)(m.initial_position, np.zeros(4), accelerations={'slew': 0}, efforts={'tilt_cylinder': 0})
    with pytest.raises(ActuationError, match='of slew, lift_cylinder, tilt_cylinder, telescope'):
        getattr(m, call)(m.initial_position, np.zeros(4))


def test_values_that_are_no_dictionary_or_no_number_are_errors():
    m = made('crane').m
    x, zero = m.initial_position, np.zeros(4)
    with pytest.raises(ShapeError, match=r"accelerations=\[0, 0, 0, 1\]: expected \{coordinate: value\}"):
        m.hybrid_dynamics(x, zero, accelerations=[0, 0, 0, 1])
    with pytest.raises(ShapeError, match="'slew'"):
        m.hybrid_dynamics(x, zero, accelerations={'slew': 'fast'}, efforts=dict.fromkeys(m.coordinates[1:], 0.0))


def test_one_base_has_one_motion():
    m = made('floating crane').m
    given = {'efforts': dict.fromkeys(coordinate_names(m), 0.0)}
    for base in (psdyn_ros.BaseMotion(), psdyn_ros.BaseDrive()):
        with pytest.raises(ShapeError, match='floats; what drives it goes into accelerations and efforts'):
            m.hybrid_dynamics(m.initial_position, np.zeros(m.dof), base=base, **given)


def test_rows_and_values_of_other_length_are_errors():
    m = made('crane').m
    x, zero = np.tile(m.initial_position, (3, 1)), np.zeros((3, 4))
    with pytest.raises(ShapeError, match=r"'slew' has shape \(2,\); expected \(\) or \(3,\)"):
        m.hybrid_dynamics(x, zero, accelerations={'slew': [0, 0]}, efforts=dict.fromkeys(m.coordinates[1:], 0.0))
    with pytest.raises(ShapeError):
        m.hybrid_dynamics(x, zero[:2], efforts=dict.fromkeys(m.coordinates, 0.0))
    with pytest.raises(NonFiniteError, match="accelerations of 'tilt_cylinder' in row 2 is nan"):
        m.hybrid_dynamics(x, zero, accelerations={'tilt_cylinder': [0, 0, np.nan]},
                          efforts={'slew': 0, 'lift_cylinder': 0, 'telescope': 0})
    x[1, 1] = 2.0
    for outside, words in (({}, 'lift_cylinder = 2 m in row 1'),
                           ({'joint_efforts': {'slew': 1.0}}, 'row 1: .* lift_cylinder = 2 m')):
        with pytest.raises(psdyn_ros.UnreachableStrokeError, match=words):
            m.hybrid_dynamics(x, zero, efforts=dict.fromkeys(m.coordinates, 0.0), **outside)
