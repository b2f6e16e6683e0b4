"""Dynamics against an independent engine, against the kernels in extended precision, against the laws of mechanics.

`PSDYN_MACHINES=1000 pytest test/kernels/test_dynamics.py -k campaign` compares as many random machines with it.
"""

import os
import re

import numpy as np
import pytest
from conftest import THOROUGH, thorough
from support.cases import MACHINES, MIXES, SINGLE, Case, along, made
from support.comparison import error
from support.general_machines import general_machine, general_state
from support.loop_kinds import KINDS
from support.machines import chain, hiab, load, loop_chain, random_state, tree
from support.witnesses.extended import inverse_dynamics_extended
from support.witnesses.general_oracle import GeneralOracle

import psdyn_ros

CLOSE = 1e-11  # typically 1e-14; loops near their singular poses cost some digits
CAMPAIGN = int(os.environ.get('PSDYN_MACHINES', 40))
STATES = 3  # of each machine
QUICK = ('crane', 'tree', 'floating crane', 'five_bar', 'excavator', 'balloon', 'in space', 'floating loops',
         'friction')
OPTIONS = ('friction', 'floating', 'redundant', 'under_actuated', 'own_coordinates')


@pytest.fixture(params=thorough([*MACHINES, *MIXES, *SINGLE], QUICK), scope='module')
def case(request):
    return made(request.param)


def closed_form_machine(seed):
    """Return machine `seed` of an endless family: chains, trees, branching cylinders, friction, both modes."""
    modules = 1 + seed % 8
    if seed % 4 == 0:
        return chain(seed, modules)
    if seed % 4 == 1:
        return chain(seed, modules, friction=True, assembly='limits')
    return tree(seed, modules, cylinder_branches=seed % 4 == 3, friction=seed % 8 == 3)


def closed_form_case(machine):
    oracle = GeneralOracle(machine.xml, machine.gravity, machine.initial, machine.actuators)
    return Case(machine, oracle, load(machine))


def outside_of(oracle, rng):
    """Draw wrenches, joint efforts and, where the base does not float, its motion."""
    links = rng.choice(oracle.links, min(3, len(oracle.links)), replace=False)
    wrenches = {str(link): rng.normal(size=(2, 3)) * ((50,), (20,)) for link in links}
    efforts = {str(joint): rng.uniform(-50, 50) for joint in rng.choice(oracle.joints, 2)}
    if oracle.floating:
        return None, wrenches, efforts
    orientation = rng.normal(size=4)
    return (orientation / np.linalg.norm(orientation), *rng.normal(size=(2, 6))), wrenches, efforts


def disagreements(case, s, rng):
    """Return {quantity: error} of everything that both engines compute."""
    _, oracle, m, _ = case
    base, wrenches, efforts = outside_of(oracle, rng)
    around = {'base': base, 'wrenches': wrenches, 'joint_efforts': efforts}
    link = str(rng.choice(oracle.links))
    still = np.zeros(oracle.dof)
    found = {
        'generalized_forces': error(m.generalized_forces(s.x, s.xd, s.xdd, **around),
                                    oracle.generalized_forces(s.x, s.xd, s.xdd, base, wrenches, efforts)),
        'forward_dynamics': error(m.forward_dynamics(s.x, s.xd, s.f, **around),
                                  oracle.forward_dynamics(s.x, s.xd, s.f, base, wrenches, efforts)),
        'at_rest': error(m.forward_dynamics(s.x, still, s.f), oracle.forward_dynamics(s.x, still, s.f)),
        'bias_forces': error(m.bias_forces(s.x, s.xd), oracle.bias_forces(s.x, s.xd)),
        'mass_matrix': error(m.mass_matrix(s.x), oracle.mass_matrix(s.x)),
        'energy': error(m.energy(s.x, s.xd), oracle.energy(s.x, s.xd)),
        'actuator_map': error(m.actuator_map(s.x), oracle.actuator_map(s.x)),
        'link_pose': error(m.link_pose(s.x, link), oracle.link_pose(s.x, link)),
        'base_wrench': error(m.base_wrench(s.x, s.xd, s.xdd, base=base, wrenches=wrenches),
                             oracle.base_wrench(s.x, s.xd, s.xdd, base, wrenches)),
    }
    names, *reported = m.joint_state(s.x, s.xd, s.xdd)
    rows = [names.index(name) for name in oracle.joints]
    q, *reported = (values[rows] for values in reported)
    their_q, *theirs = oracle.joint_state(s.x, s.xd, s.xdd)[1:]
    # angles of triangles are those nearest to zero or to the limits
    turns = np.array([m.machine.description.joints[name].type != 'prismatic' for name in oracle.joints])
    q = q - 2 * np.pi * turns * np.round((q - their_q) / (2 * np.pi))
    found['joint_state'] = max(map(error, (q, *reported), (their_q, *theirs)))
    if len(m.actuators) >= len(m.coordinates) and np.linalg.matrix_rank(oracle.actuator_map(s.x), 1e-6) == \
            len(m.coordinates):
        weights = rng.uniform(0.1, 10, len(m.actuators))
        if len(m.actuators) > len(m.coordinates):
            m.allocation.set_weights(dict(zip(m.actuators, weights)))
        found['inverse_dynamics'] = error(m.inverse_dynamics(s.x, s.xd, s.xdd, **around),
                                          oracle.inverse_dynamics(s.x, s.xd, s.xdd, base, wrenches, efforts, weights))
    return found


def test_agrees_with_the_independent_engine(case, rng):
    assert case.m.coordinates == case.oracle.coordinates
    for _ in range(STATES):
        found = disagreements(case, case.state(rng), rng)
        assert max(found.values()) < CLOSE, found


@pytest.mark.parametrize('number', thorough(range(CAMPAIGN), 4))
def test_campaign(number, rng):
    """Random machines in closed form, and of one to three modules with loops of any kind and any options."""
    if number % 2:
        case = closed_form_case(closed_form_machine(number // 2))
    else:
        kinds = [str(kind) for kind in rng.choice(list(KINDS), int(rng.integers(1, 4)))]
        options = {option: True for option in OPTIONS if rng.random() < 0.3}
        machine = general_machine(rng, kinds, **options)
        oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
        coordinates = None if machine.coordinates == machine.actuators else machine.coordinates
        case = Case(machine, oracle, load(machine, coordinates=coordinates))
    for _ in range(STATES):
        s = case.state(rng)
        found = disagreements(case, s, rng)
        assert max(found.values()) < 1e-10, (case.machine, found)
        round_trip(case.m, s, 1e-10)


@pytest.mark.long
def test_accuracy_up_to_eight_modules(rng):
    """The median of the difference to the engine is rounding, and its worst case at most 1e-12 nine times in ten."""
    forward, inverse = [], []
    for seed in range(300, 400 if THOROUGH else 340):
        _, oracle, m, _ = case = closed_form_case(chain(seed, 1 + seed % 8))
        x, xd, xdd, f = case.state(rng)
        forward.append(error(m.forward_dynamics(x, xd, f), oracle.forward_dynamics(x, xd, f)))
        inverse.append(error(m.inverse_dynamics(x, xd, xdd), oracle.inverse_dynamics(x, xd, xdd)))
    for errors in (forward, inverse):
        assert np.median(errors) < 5e-14
        assert np.quantile(errors, 0.9) < 1e-12


def test_rounding_errors(case, rng):
    """The same kernel text in extended precision: what double precision loses, without another engine's error."""
    x, xd, xdd, _ = case.state(rng)
    reference = inverse_dynamics_extended(case.m, x, xd, xdd).astype(float)
    assert error(case.m.generalized_forces(x, xd, xdd), reference) < 1e-12


def round_trip(m, s, bound=CLOSE):
    """Accelerations of the efforts that cause them, whatever the actuators leave to other efforts and to the base."""
    f = np.linspace(-30, 30, len(m.actuators))
    missing = m.generalized_forces(s.x, s.xd, s.xdd) - m.actuator_map(s.x).T @ f
    efforts = dict(zip(m.coordinates, missing[m.dof - len(m.coordinates):]))
    base = psdyn_ros.BaseDrive(acceleration=s.xdd[:6]) if m.floating else None
    assert error(m.forward_dynamics(s.x, s.xd, f, joint_efforts=efforts, base=base), s.xdd) < bound


def test_forward_inverts_inverse(case, rng):
    s = case.state(rng)
    round_trip(case.m, s)
    xdd = case.m.forward_dynamics(s.x, s.xd, s.f)
    push = case.m.actuator_map(s.x).T @ s.f
    assert error(case.m.generalized_forces(s.x, s.xd, xdd), push) < CLOSE


def test_mass_matrix_is_symmetric_and_positive_definite(case, rng):
    s, m = case.state(rng), case.m
    M = m.mass_matrix(s.x)
    assert (M == M.T).all() and np.linalg.eigvalsh(M).min() > 0
    assert m.energy(s.x, s.xd)[0] == pytest.approx(0.5 * s.xd @ M @ s.xd, rel=1e-11)
    columns = [m.generalized_forces(s.x, s.xd, unit) - m.bias_forces(s.x, s.xd) for unit in np.eye(m.dof)]
    assert error(np.array(columns).T, M) < CLOSE


def test_power_is_the_rate_of_energy(case, rng):
    """Efforts less friction; the energies come from velocities only, the efforts from accelerations."""
    _, oracle, m, _ = case
    s, h = case.state(rng), 1e-4
    rate = (sum(m.energy(*along(s, h))) - sum(m.energy(*along(s, -h)))) / (2 * h)
    losses = s.xd @ oracle.friction_forces(s.x, s.xd)
    assert error(m.generalized_forces(s.x, s.xd, s.xdd) @ s.xd - losses, rate) < 2e-5


def test_rates_are_the_derivatives_of_positions(case, rng):
    """Along a trajectory: joints, and poses and twists of links."""
    _, oracle, m, _ = case
    s, h = case.state(rng), 1e-4
    (_, before, v_before, _), (_, after, v_after, _) = (m.joint_state(*along(s, t), s.xdd) for t in (-h, h))
    _, _, velocity, acceleration = m.joint_state(s.x, s.xd, s.xdd)
    assert error((after - before) / (2 * h), velocity) < 1e-5
    assert error((v_after - v_before) / (2 * h), acceleration) < 1e-5
    link = str(rng.choice(oracle.links))
    pose, (first, last) = m.link_pose(s.x, link), (m.link_pose(along(s, t)[0], link) for t in (-h, h))
    step = (last - first) / (2 * h)
    turn = pose[:3, :3].T @ step[:3, :3]
    twist = np.concatenate((pose[:3, :3].T @ step[:3, 3], (turn[2, 1], turn[0, 2], turn[1, 0])))
    assert error(m.link_twist(s.x, s.xd, link), twist) < 1e-5


def test_loops_stay_closed(case, rng):
    """The joints that follow close the loops of the other engine, and their rates keep them closed."""
    _, oracle, m, _ = case
    s = case.state(rng)
    names, q, qd, _ = m.joint_state(s.x, s.xd)
    rows = [names.index(name) for name in oracle.joints]
    closed = oracle.motion(s.x).q
    closed[7:] = q[rows]
    gaps = oracle._gaps(closed)
    assert np.abs(gaps).max(initial=0) < 1e-12
    assert np.abs(oracle._jacobian(closed)[0] @ qd[rows]).max(initial=0) < 1e-11


@pytest.mark.parametrize('machine', [hiab(), loop_chain(3), tree(4, 7, cylinder_branches=True, friction=True)],
                         ids=['crane', 'chain', 'tree'])
def test_triangles_in_closed_form_and_as_clusters(machine, rng):
    """The same machine with each boom as coordinate, then each boom as actuator: no triangle is left."""
    fast = load(machine)
    modules = fast.machine.modules
    booms = [next(each.triangle.boom.name if each.triangle else name for each in modules if each.name == name)
             for name in fast.actuators]
    own = load(machine, coordinates=booms)
    driven = load(machine, actuated=booms, coordinates=fast.actuators)
    assert len(own.machine.clusters) == sum(module.triangle is not None for module in modules) > 0
    for _ in range(STATES):
        s = random_state(machine, rng)
        names, *told = fast.joint_state(s.x, s.xd, s.xdd)
        rows = [names.index(name) for name in booms]
        x, xd, xdd = (values[rows] for values in told)
        f = fast.inverse_dynamics(s.x, s.xd, s.xdd)
        assert error(own.inverse_dynamics(x, xd, xdd), f) < 1e-10
        assert error(driven.generalized_forces(s.x, s.xd, s.xdd), f) < 1e-10
        assert error(driven.mass_matrix(s.x), fast.mass_matrix(s.x)) < 1e-10
        _, _, _, booms_told = own.joint_state(x, xd, own.forward_dynamics(x, xd, s.f))
        actuators = [own.joints.index(name) for name in fast.actuators]
        assert error(booms_told[actuators], fast.forward_dynamics(s.x, s.xd, s.f)) < 1e-10
        shared = driven.actuator_map(s.x).T @ driven.inverse_dynamics(s.x, s.xd, s.xdd)
        assert error(shared, f) < 1e-10


@pytest.mark.parametrize('kind', thorough(
    ['four_bar', 'five_bar', 'three_cranks', 'six_link', 'knuckle'], 2))
def test_redundant_rows_of_planar_loops_change_nothing(kind, rng):
    """A pin holds five of six, though three would do in a plane; a ball holds three."""
    machine = general_machine(rng, [kind])
    balls = re.sub(r'(<constraint name="\S+" type=)"revolute"', r'\1"spherical"', machine.xml)
    assert balls != machine.xml
    pinned, loose = (psdyn_ros.load(xml, gravity=machine.gravity) for xml in (machine.xml, balls))
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    s = general_state(machine, oracle, rng)
    assert error(loose.inverse_dynamics(s.x, s.xd, s.xdd), pinned.inverse_dynamics(s.x, s.xd, s.xdd)) < CLOSE
    assert error(loose.forward_dynamics(s.x, s.xd, s.f), pinned.forward_dynamics(s.x, s.xd, s.f)) < CLOSE


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


@pytest.mark.long
def test_long_chains(rng):
    """64 loops: inverse dynamics to 1e-11 against the engine, the round trip limited by conditioning."""
    _, oracle, manipulator, _ = case = closed_form_case(loop_chain(64))
    x, xd, xdd, _ = case.state(rng)
    f = manipulator.inverse_dynamics(x, xd, xdd)
    assert error(f, oracle.inverse_dynamics(x, xd, xdd)) < 1e-11
    assert error(manipulator.forward_dynamics(x, xd, f), xdd) < 1e-9
