"""The kernels against an independent engine, against themselves in extended precision, and against the laws.

`PSDYN_MACHINES=1000 python -m pytest test/test_dynamics.py -k engine` compares as many random machines with the engine.
"""

import os

import numpy as np
import pytest
from support.comparison import error
from support.extended import inverse_dynamics_extended
from support.machines import chain, hiab, load, loop_chain, random_state, random_wrenches, tree
from support.oracle import Oracle

import psdyn_ros

MACHINES = int(os.environ.get('PSDYN_MACHINES', 80))
GROUP = 8               # of all sizes


def random_machine(seed):
    """Return machine `seed` of an endless family: chains, trees, branching cylinders, friction, both modes."""
    modules = 1 + seed % 8
    if seed % 4 == 0:
        return chain(seed, modules)
    if seed % 4 == 1:
        return chain(seed, modules, friction=True, assembly='limits')
    return tree(seed, modules, cylinder_branches=seed % 4 == 3, friction=seed % 8 == 3)


def random_base(rng):
    orientation = rng.normal(size=4)
    return psdyn_ros.BaseMotion(orientation / np.linalg.norm(orientation), rng.normal(size=6), rng.normal(size=6))


# Pinocchio projected by a numerical G is the less accurate side: where they differ most, at |sin q| near 0.2,
# extended precision sides with the kernels (test_rounding_errors).  The bound here leaves room for its rarest
# states; test_accuracy_up_to_eight_modules holds what is usual.
@pytest.mark.parametrize('first', range(0, MACHINES, GROUP))
def test_agrees_with_independent_engine(first, rng):
    for seed in range(first, first + GROUP):
        machine = random_machine(seed)
        manipulator, oracle = load(machine), Oracle(machine.xml, machine.gravity, machine.initial)
        x, xd, xdd, f = random_state(machine, rng)
        base, wrenches = random_base(rng), random_wrenches(manipulator, rng)
        for outside in ({}, {'base': base}, {'wrenches': wrenches}, {'base': base, 'wrenches': wrenches}):
            assert error(manipulator.forward_dynamics(x, xd, f, **outside),
                         oracle.forward_dynamics(x, xd, f, **outside)) < 5e-11, seed
            for quantity in ('inverse_dynamics', 'base_wrench'):
                comp, ref = (getattr(engine, quantity)(x, xd, xdd, **outside) for engine in (manipulator, oracle))
                assert error(comp, ref) < 5e-11, (seed, quantity)
        assert error(manipulator.mass_matrix(x), oracle.mass_matrix(x)) < 5e-11
        assert error(manipulator.gravity_forces(x), oracle.gravity_forces(x)) < 5e-11
        assert error(manipulator.energy(x, xd), oracle.energy(x, xd)) < 5e-11


def test_accuracy_up_to_eight_modules(rng):
    """The median of the difference to the engine is rounding, and its worst case at most 1e-12 nine times in ten."""
    forward, inverse = [], []
    for seed in range(300, 400):
        machine = chain(seed, 1 + seed % 8)
        manipulator, oracle = load(machine), Oracle(machine.xml, machine.gravity, machine.initial)
        x, xd, xdd, f = random_state(machine, rng)
        forward.append(error(manipulator.forward_dynamics(x, xd, f), oracle.forward_dynamics(x, xd, f)))
        inverse.append(error(manipulator.inverse_dynamics(x, xd, xdd), oracle.inverse_dynamics(x, xd, xdd)))
    for errors in (forward, inverse):
        assert np.median(errors) < 5e-14
        assert np.quantile(errors, 0.9) < 1e-12


def test_rounding_errors(rng):
    """The same kernel text in extended precision: what double precision loses, without another engine's error."""
    for seed in range(120):
        machine = random_machine(seed)
        manipulator = load(machine)
        x, xd, xdd, _ = random_state(machine, rng)
        ref = inverse_dynamics_extended(manipulator, x, xd, xdd)
        assert error(manipulator.inverse_dynamics(x, xd, xdd), ref) < 1e-12, seed


def test_joints_and_poses_agree_with_independent_engine(rng):
    for seed in range(MACHINES // 2):
        machine = random_machine(seed)
        manipulator, oracle = load(machine), Oracle(machine.xml, machine.gravity, machine.initial)
        x, xd, xdd, _ = random_state(machine, rng)
        names, *comp = manipulator.joint_state(x, xd, xdd)
        theirs, *ref = oracle.joint_state(x, xd, xdd)
        order = [list(theirs).index(name) for name in names]
        turns = (comp[0] - np.asarray(ref[0])[order]) / (2 * np.pi)
        slides = ['slide' in name or 'cylinder' in name for name in names]
        assert np.abs(turns - np.where(slides, 0, np.round(turns))).max() < 1e-14
        for mine, other in zip(comp[1:], ref[1:]):
            assert error(mine, np.asarray(other)[order]) < 1e-10
        for link in manipulator.links:
            assert error(manipulator.link_pose(x, link), oracle.link_pose(x, link)) < 1e-13


def test_forward_inverts_inverse(rng):
    """FD(ID) within 1e-12; what several modules lose more is the conditioning of their mass matrix."""
    for seed in range(160):
        machine = random_machine(seed)
        manipulator = load(machine)
        x, xd, xdd, _ = random_state(machine, rng)
        outside = {'base': random_base(rng), 'wrenches': random_wrenches(manipulator, rng)}
        f = manipulator.inverse_dynamics(x, xd, xdd, **outside)
        assert error(manipulator.forward_dynamics(x, xd, f, **outside), xdd) < 1e-12, seed


def test_mass_matrix_is_symmetric_positive_definite_and_the_derivative_of_the_efforts(rng):
    for seed in range(60):
        machine = random_machine(seed)
        manipulator = load(machine)
        x, xd, _, _ = random_state(machine, rng)
        M, bias = manipulator.mass_matrix(x), manipulator.bias_forces(x, xd)
        columns = [manipulator.inverse_dynamics(x, xd, unit) - bias for unit in np.eye(manipulator.dof)]
        assert (M == M.T).all()
        assert np.linalg.eigvalsh(M).min() > 0
        assert error(np.array(columns).T, M) < 1e-11
        assert manipulator.energy(x, xd)[0] == pytest.approx(0.5 * xd @ M @ xd, rel=1e-11)


def test_gravity_forces_are_the_derivative_of_potential_energy(rng):
    for seed in range(40):
        machine = random_machine(seed)
        manipulator = load(machine)
        x, h = random_state(machine, rng).x, 1e-6
        slope = [(manipulator.energy(x + h * unit, 0 * x)[1] - manipulator.energy(x - h * unit, 0 * x)[1]) / (2 * h)
                 for unit in np.eye(manipulator.dof)]
        assert error(manipulator.gravity_forces(x), slope) < 1e-5


def test_energy_is_conserved_without_effort_and_friction(rng):
    manipulator = load(hiab())
    x, xd, f = manipulator.initial_position, 0.1 * rng.normal(size=4), np.zeros(4)
    before = sum(manipulator.energy(x, xd))
    integrator = manipulator.integrator(1e-3, 4)
    moved = 0.0
    for _ in range(150):
        assert integrator.step(x, xd, f) == 0
        moved = max(moved, manipulator.energy(x, xd)[0])
    assert moved > 100.0
    assert abs(sum(manipulator.energy(x, xd)) - before) < 1e-9 * moved


@pytest.mark.parametrize('motion', ['slewing', 'tilting', 'accelerating'])
def test_exact_with_moving_base_and_masses_off_the_plane(motion, rng):
    """Assumption (56) of Paz & Mattila, planar wrenches, is never needed: their section 4 in our words.

    Out-of-plane wrench components are not zero on a slewing base, and still the dynamics are exact.
    """
    rows = {'slewing': ((0, 0, 0, 0, 0, 2.0), (0, 0, 0, 0, 0, 1.5)),
            'tilting': ((0, 0, 0, 0.7, -0.4, 0), (0, 0, 0, 2.0, 1.0, 0)),
            'accelerating': ((1.0, -2.0, 0.5, 0, 0, 0), (4.0, -3.0, 2.0, 0, 0, 0))}
    base = psdyn_ros.BaseMotion((0.1, -0.2, 0.3, np.sqrt(1 - 0.14)), *rows[motion])
    for seed in range(400, 420):
        machine = chain(seed, 'LLL')
        manipulator, oracle = load(machine), Oracle(machine.xml, machine.gravity, machine.initial)
        x, xd, xdd, f = random_state(machine, rng)
        assert error(manipulator.forward_dynamics(x, xd, f, base=base),
                     oracle.forward_dynamics(x, xd, f, base=base)) < 5e-11
        assert error(manipulator.base_wrench(x, xd, xdd, base=base),
                     oracle.base_wrench(x, xd, xdd, base=base)) < 5e-11


def test_closure_residual_over_the_whole_stroke():
    """Rod eye on boom eye within 1e-14 m at 1000 strokes of each loop of the crane."""
    machine = hiab()
    manipulator = load(machine)
    low, high = np.array([machine.span[name] for name in manipulator.actuators]).T
    worst = 0.0
    for share in np.linspace(0, 1, 1000):
        x = low + share * (high - low)
        for closure in manipulator.machine.description.closures.values():
            ends = [(manipulator.link_pose(x, link) @ origin.matrix())[:3, 3] for link, origin in (
                (closure.parent, closure.parent_origin), (closure.child, closure.child_origin))]
            worst = max(worst, np.linalg.norm(ends[0] - ends[1]))
    assert worst < 1e-14


def test_long_chains(rng):
    """64 loops: inverse dynamics to 1e-11 against the engine, the round trip limited by conditioning."""
    machine = loop_chain(64)
    manipulator, oracle = load(machine), Oracle(machine.xml, machine.gravity, machine.initial)
    x, xd, xdd, _ = random_state(machine, rng)
    f = manipulator.inverse_dynamics(x, xd, xdd)
    assert error(f, oracle.inverse_dynamics(x, xd, xdd)) < 1e-11
    assert error(manipulator.forward_dynamics(x, xd, f), xdd) < 1e-9
