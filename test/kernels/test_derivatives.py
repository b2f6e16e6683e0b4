"""Derivatives of dynamics against complex steps and 80-bit differences of the kernels, Pinocchio's, and the laws."""

import numpy as np
import pinocchio as pin
import pytest
from conftest import thorough
from support.comparison import error
from support.general_machines import KINDS, general_machine
from support.machines import chain, hiab, load, loop_chain, near_start, random_state, random_wrenches, tree
from support.one_loop import one_loop
from support.witnesses.extended import (
    derivative,
    differences,
    displaced,
    forward_dynamics,
    inverse_dynamics,
    widened_mechanism,
)

import psdyn_ros
from psdyn_ros.api.analysis.derivatives import (
    effort_derivatives,
    forward_dynamics_derivatives,
    generalized_forces_derivatives,
    inverse_dynamics_derivatives,
)
from psdyn_ros.kernels.derivatives.entry import forward_derivatives, inverse_derivatives, make_scratch
from psdyn_ros.kernels.rigid_body.records import PRISMATIC
from psdyn_ros.kernels.runtime.status import OK
from psdyn_ros.model.errors import ActuationError, NonFiniteError, ShapeError, UnknownNameError, UnreachableStrokeError

CLOSED_FORM = {
    'hiab': hiab, 'loops': lambda: loop_chain(3),
    **{word: lambda word=word: chain(7, word) for word in ('R', 'P', 'L', 'RPLLR')},
    'rubbing chain': lambda: chain(5, 'LPR', friction=True),
    **{f'children of cylinders {seed}': lambda seed=seed: tree(seed, 6, cylinder_branches=True, friction=seed % 2)
       for seed in range(4)},
    **{f'eye off axis {e} {mode} {sign}': lambda e=e, mode=mode, sign=sign: one_loop(
        e=e, mode=mode, rod_sign=sign, losses=((90, 40), (20, 9), (8, 7), (3, 4)))
       for e, mode, sign in ((0.1, 1, 1), (-0.15, -1, 1), (0.12, -1, -1), (-0.08, 1, -1))},
}


def check_kernels(manipulator, handle, state, bound):
    """Compare the derivatives of inverse and forward dynamics with those of the kernels' own text."""
    m, (x, xd, xdd, f) = manipulator, state
    n = m.dof
    D, by_f, efforts = np.full((3, n, n), np.nan), np.full((n, len(m.actuators)), np.nan), np.full(n, np.nan)
    buffers = handle.tree, handle.loops, make_scratch(handle)
    assert inverse_derivatives(*buffers, x, xd, xdd, efforts, D) == OK
    for argument in range(3):
        assert error(D[argument], derivative(inverse_dynamics, handle, (x, xd, xdd), argument)) < bound, argument
    reference = inverse_dynamics(widened_mechanism(handle), *map(np.longdouble, (x, xd, xdd)))
    assert error(efforts, reference.astype(float)) < bound
    assert forward_derivatives(*buffers, x, xd, f, D, by_f) == OK
    for argument, value in enumerate((D[0], D[1], by_f)):
        assert error(value, derivative(forward_dynamics, handle, (x, xd, f), argument)) < bound, argument


def in_motion(manipulator, rng, loaded):
    """Return a handle whose base moves, if it does not float, with wrenches on all bodies where `loaded`."""
    handle = manipulator.handle()
    if not manipulator.floating:
        handle.environment['twist'] = rng.normal(size=6)
        handle.environment['acceleration'] = 9 * rng.normal(size=6)
    if loaded:
        handle.environment['loaded'] = 1
        handle.modules['external'] = 50 * rng.normal(size=handle.modules['external'].shape)
        # `derivative` moves wrenches with bodies whose slide is a coordinate; one along its slide need not be moved
        follows = (handle.modules['kind'] == PRISMATIC) & (handle.modules['coordinate'] < 0)
        handle.modules['external'][follows, :, :2] = 0.0
    return handle


@pytest.mark.parametrize('name', thorough(
    [*CLOSED_FORM], ('hiab', 'RPLLR', 'children of cylinders 3', 'eye off axis 0.12 -1 -1')))
def test_closed_form_against_complex_steps(name, rng):
    machine = CLOSED_FORM[name]()
    manipulator = load(machine)
    state = random_state(machine, rng)
    for handle in (manipulator.handle(), *(in_motion(manipulator, rng, loaded) for loaded in (False, True))):
        check_kernels(manipulator, handle, state, 1e-12)


def test_values_come_with_the_derivatives(rng):
    manipulator, machine = load(hiab()), hiab()
    x, xd, xdd, f = random_state(machine, rng)
    D = inverse_dynamics_derivatives(manipulator, x, xd, xdd)
    M = manipulator.mass_matrix(x)
    assert error(D.df_dxdd, M) < 1e-13
    inverse = forward_dynamics_derivatives(manipulator, x, xd, f).dxdd_df
    assert error(inverse, inverse.T) < 1e-15 and error(inverse @ M, np.eye(4)) < 1e-12


@pytest.mark.parametrize('seed', thorough(range(6), 2))
def test_velocity_terms_are_quadratic_and_gravity_has_a_potential(seed, rng):
    machine = tree(seed, 6, cylinder_branches=True)
    manipulator = load(machine)
    x, xd, *_ = random_state(machine, rng)
    zero = np.zeros(manipulator.dof)
    by_rate = inverse_dynamics_derivatives(manipulator, x, xd, zero).df_dxd
    assert error(0.5 * by_rate @ xd, manipulator.bias_forces(x, xd) - manipulator.gravity_forces(x)) < 1e-11
    at_rest = inverse_dynamics_derivatives(manipulator, x, zero, zero)
    assert error(at_rest.df_dx, at_rest.df_dx.T) < 1e-12 and not at_rest.df_dxd.any()


def state_near_start(manipulator, rng, spread=0.05):
    xd, xdd = rng.normal(size=(2, manipulator.dof)) * 0.5
    return near_start(manipulator, rng, spread), xd, xdd, rng.normal(size=len(manipulator.actuators)) * 50


@pytest.mark.parametrize('kinds', [('turn', 'slide', 'spin', 'turn'), ('triangle', 'slide', 'triangle')])
def test_floating_base_against_complex_steps(kinds, rng):
    manipulator = load(general_machine(rng, kinds, floating=True, friction=True))
    assert manipulator.handle().loops is None
    for loaded in (False, True):
        check_kernels(manipulator, in_motion(manipulator, rng, loaded), state_near_start(manipulator, rng), 1e-12)


@pytest.mark.parametrize('kind', thorough([*KINDS], ('six_link', 'spatial_prismatic')))
def test_loops_of_any_kind_against_80_bit_differences(kind, rng):
    machine = general_machine(rng, (kind,), friction=True, floating=bool(rng.integers(2)), own_coordinates=True)
    manipulator = load(machine)
    for loaded in (False, True):
        check_kernels(manipulator, in_motion(manipulator, rng, loaded), state_near_start(manipulator, rng), 1e-10)


def springs(manipulator, rng):
    """Return ({joint: slopes}, function of x, xd that gives {joint: effort}) of springs and dampers on all joints."""
    m = manipulator
    names = [name for name in m.joint_state(m.initial_position)[0] if name in m.joints]
    numbers = dict(zip(names, rng.normal(size=(len(names), 3)) * (10, 100, 30)))

    def efforts(x, xd):
        q, qd = m.joint_state(x, xd)[1:3]
        return {name: float(a + b * q[i] + c * qd[i]) for i, (name, (a, b, c)) in enumerate(numbers.items())}

    return {name: tuple(row[1:]) for name, row in numbers.items()}, efforts


def check_calls(manipulator, state, rng, base):
    """Compare every public derivative with differences of the call that it is of, all that acts from outside on."""
    m = manipulator
    x, xd, xdd, f = state
    slopes, efforts = springs(m, rng)
    outside = {'base': base, 'wrenches': random_wrenches(m, rng)}
    for call, derivatives, state in ((m.forward_dynamics, forward_dynamics_derivatives, (x, xd, f)),
                                     (m.inverse_dynamics, inverse_dynamics_derivatives, (x, xd, xdd)),
                                     (m.generalized_forces, generalized_forces_derivatives, (x, xd, xdd))):
        D = derivatives(m, *state, joint_efforts=efforts(x, xd), joint_slopes=slopes, **outside)
        for argument, step in enumerate((3e-5, 1e-4, 1.0)):

            def moved(change, call=call, state=state, argument=argument):
                there = list(state)
                there[argument] = there[argument] + change if argument else displaced(x, change, m.floating)
                return call(*there, joint_efforts=efforts(*there[:2]), **outside)

            count = m.dof if argument == 0 else len(state[argument])
            assert error(D[argument], differences(moved, count, step)) < 1e-8, (call.__name__, argument)


@pytest.mark.parametrize('kinds, options', [
    (('triangle', 'slide', 'triangle'), {}), (('five_bar', 'turn'), {'redundant': True}), (('twin_cylinders',), {}),
    (('planar_fixed', 'slide'), {'own_coordinates': True}), (('six_link', 'triangle'), {'floating': True}),
    (('spatial_revolute',), {'floating': True, 'redundant': True, 'own_coordinates': True})])
def test_calls_of_machines_against_differences(kinds, options, rng):
    manipulator = load(general_machine(rng, kinds, **options))
    base = psdyn_ros.BaseMotion((0.1, 0.2, 0.3, 0.9), rng.normal(size=6), rng.normal(size=6))
    if manipulator.floating:
        base = psdyn_ros.BaseDrive((1, 0, 0, 1, 0, 1), rng.normal(size=6))
    check_calls(manipulator, state_near_start(manipulator, rng, 0.02), rng, base)


@pytest.mark.parametrize('floating', [False, True])
def test_serial_machines_against_pinocchio(floating, rng):
    if floating:
        machine = general_machine(rng, ('turn', 'slide', 'spin', 'turn'), floating=True)
    else:
        machine = tree(int(rng.integers(1000)), 'RPRRPR')
    manipulator = load(machine)
    m = manipulator
    if floating:
        x, xd, xdd, f = state_near_start(m, rng, 0.5)
    else:
        x, xd, xdd, f = random_state(machine, rng)
    model = pin.buildModelFromXML(machine.xml)
    model.gravity.linear = np.array(machine.gravity)
    data, base = model.createData(), 6 * floating
    names = [name for name in list(model.names)[1:] if name in m.coordinates]
    ours = np.r_[:base, base + np.array([m.coordinates.index(name) for name in names], int)]
    q = pin.neutral(model)
    angles = dict(zip(m.coordinates, x[base + floating:]))
    q[:base + floating] = x[:base + floating]
    for name in names:
        joint = model.joints[model.getJointId(name)]
        value = angles[name]
        q[joint.idx_q:joint.idx_q + joint.nq] = value if joint.nq == 1 else (np.cos(value), np.sin(value))
    pin.computeRNEADerivatives(model, data, q, xd[ours], xdd[ours])
    M = np.triu(data.M) + np.triu(data.M, 1).T
    D = generalized_forces_derivatives(m, x, xd, xdd)
    for comp, ref in zip(D, (data.dtau_dq, data.dtau_dv, M)):
        assert error(comp[np.ix_(ours, ours)], ref) < 1e-11
    tau = np.zeros(model.nv)
    tau[base:] = f[[m.actuators.index(name) for name in names]]
    pin.computeABADerivatives(model, data, q, xd[ours], tau)
    inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
    D = forward_dynamics_derivatives(m, x, xd, f)
    driven = [base + names.index(name) for name in m.actuators]
    assert error(D.dxdd_dx[np.ix_(ours, ours)], data.ddq_dq) < 1e-10
    assert error(D.dxdd_dxd[np.ix_(ours, ours)], data.ddq_dv) < 1e-10
    assert error(D.dxdd_df[ours], inverse[:, driven]) < 1e-10


def test_efforts_at_a_limit_stay_there(rng):
    """Weighted least norm about a preload, some efforts held: against differences of the formula solved anew."""
    A0, dA, needed0, d_needed = (rng.normal(size=shape) for shape in ((6, 3), (6, 3, 2), 3, (3, 3, 2)))
    weights, preload, free = rng.uniform(0.5, 2, 6), rng.normal(size=6), np.array([1, 1, 0, 1, 1, 1], bool)

    def efforts(change):
        A, needed = A0 + dA @ change, needed0 + d_needed[0] @ change
        f = np.where(free, preload, 0.7)
        B = A[free].T / np.sqrt(weights[free])
        f[free] += np.linalg.lstsq(B, needed - A.T @ f)[0] / np.sqrt(weights[free])
        return f

    out = effort_derivatives(A0, dA, efforts(np.zeros(2)), d_needed, weights, preload, free)
    assert error(out[0], differences(efforts, 2, 1e-4)) < 1e-8
    for row, needed in zip(out[1:], d_needed[1:]):
        assert error(A0.T @ row, needed) < 1e-13 and not row[2].any()


def test_called_twice_gives_the_same(rng):
    machine = hiab()
    manipulator = load(machine)
    x, xd, xdd, f = random_state(machine, rng)
    first = forward_dynamics_derivatives(manipulator, x, xd, f)
    inverse_dynamics_derivatives(manipulator, x + 0.01, xd, xdd)
    for again, once in zip(forward_dynamics_derivatives(manipulator, x, xd, f), first):
        assert np.array_equal(again, once)


def test_odd_arrays_give_the_same(rng):
    manipulator = load(hiab())
    x, zero = np.array([0.0, 0.25, 0.5, 1.0]), np.zeros(4)
    frozen = x.copy()
    frozen.flags.writeable = False
    for call in (forward_dynamics_derivatives, inverse_dynamics_derivatives):
        plain = call(manipulator, x, zero, zero)
        for odd in (x.tolist(), np.repeat(x, 2)[::2], frozen, x.astype('>f8'), x.astype(np.float32)):
            for ours, same in zip(call(manipulator, odd, zero.astype(int), zero), plain):
                assert np.array_equal(ours, same)


def test_refusals(rng):
    manipulator = load(hiab())
    x, zero = manipulator.initial_position, np.zeros(4)
    for call in (forward_dynamics_derivatives, inverse_dynamics_derivatives, generalized_forces_derivatives):
        with pytest.raises(UnreachableStrokeError, match='lift_cylinder = 2 m'):
            call(manipulator, [0.0, 2.0, 0.3, 0.0], zero, zero)
        with pytest.raises(ShapeError):
            call(manipulator, np.tile(x, (3, 1)), np.zeros((3, 4)), np.zeros((3, 4)))
        with pytest.raises(NonFiniteError, match="'tilt_cylinder'"):
            call(manipulator, x, [0, 0, np.nan, 0], zero)
        with pytest.raises(UnknownNameError, match="'lift_boom', on which joint_efforts has no effort"):
            call(manipulator, x, zero, zero, joint_slopes={'lift_boom': (1, 2)})
        with pytest.raises(ShapeError, match="'slew'"):
            call(manipulator, x, zero, zero, joint_efforts={'slew': 1.0}, joint_slopes={'slew': 3.0})


def test_refusals_of_general_machines(rng):
    manipulator = load(general_machine(rng, ('five_bar',), under_actuated=True))
    x, zero, f = manipulator.initial_position, np.zeros(2), np.zeros(len(manipulator.actuators))
    with pytest.raises(ShapeError, match='one state'):
        forward_dynamics_derivatives(manipulator, np.tile(x, (3, 1)), np.zeros((3, 2)), np.zeros((3, len(f))))
    with pytest.raises(NonFiniteError):
        forward_dynamics_derivatives(manipulator, x, [np.inf, 0], f)
    with pytest.raises(ActuationError):
        inverse_dynamics_derivatives(manipulator, x, zero, zero)
    assert forward_dynamics_derivatives(manipulator, x, zero, f).dxdd_df.shape == (2, len(f))
