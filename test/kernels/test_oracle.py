"""The independent engine against laws that test_dynamics does not have; the generator keeps its promises.

The package, which agrees with it, is compared with the reference numbers by test_papers.
"""

import numpy as np
import pytest
from conftest import thorough
from support.cases import MACHINES, along, made, moved, random_case
from support.comparison import error
from support.general_machines import general_machine, general_state
from support.loop_kinds import KINDS
from support.machines import chain, random_state, tree
from support.witnesses.general_oracle import GeneralOracle

NESTED = ['six_link', 'parallel', 'twin_cylinders', 'spatial_universal', 'turn', 'knuckle']
WORDS = ['L', 'LL', 'RLPL', 'PRLRL', 'LLLLLLLL']       # of chains of cylinder triangles
CASES = {kind: ([kind], {}) for kind in KINDS} | {
    'floating': (NESTED, {'floating': True, 'friction': True}),
    'friction': (NESTED, {'friction': True}),
    'own_coordinates': (NESTED, {'own_coordinates': True, 'floating': True}),
    'redundant': (NESTED, {'redundant': True, 'friction': True}),
    'under_actuated': (NESTED, {'under_actuated': True}),
    'random': (5, {})}
QUICK = ('crane', 'parallel', 'floating', 'RLPL')


@pytest.fixture(params=thorough([*MACHINES, *CASES, *WORDS], QUICK))
def case(request, rng):
    """(machine, oracle, state)."""
    if request.param in WORDS:
        machine = chain(len(request.param), request.param, friction=len(request.param) % 2 == 1)
        return machine, GeneralOracle(machine.xml, machine.gravity, machine.initial), random_state(machine, rng)
    if request.param in MACHINES:
        case = made(request.param)
    else:
        kinds, options = CASES[request.param]
        case = random_case(rng, kinds, **options)
    return case.machine, case.oracle, case.state(rng)


@pytest.mark.parametrize('name', thorough([*CASES], QUICK))
def test_initial_values_close_the_loops(name, rng):
    kinds, options = CASES[name]
    machine = general_machine(rng, kinds, **options)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    drawn = np.array([machine.initial[name] for name in oracle.joints])
    assert error(oracle.start[7:], drawn) < 1e-12
    assert oracle.closure(oracle.start_position()) < 1e-14
    assert oracle.dof == machine.dof
    assert oracle.conditioning(oracle.start_position()) > 1e-3


def test_rates_obey_the_constraints(case):
    _, oracle, s = case
    motion = oracle.motion(s.x, s.xd)
    assert oracle.closure(s.x) < 1e-14
    assert np.abs(motion.K @ motion.G[6:]).max(initial=0.0) < 1e-12


def test_closure_jacobian_is_the_derivative_of_the_gaps(case, rng):
    """Also off the closed pose, where Newton's method needs it."""
    _, oracle, s = case
    q, h = oracle.motion(s.x).q, 1e-6
    q[:7] = 0, 0, 0, 0, 0, 0, 1
    q[7:] += rng.uniform(-0.1, 0.1, len(q) - 7)
    K, _ = oracle._jacobian(q)
    for k in range(len(oracle.joints)):
        step = np.zeros_like(q)
        step[7 + k] = h
        assert error((oracle._gaps(q + step) - oracle._gaps(q - step)) / (2 * h), K[:, k]) < 1e-8


@pytest.mark.parametrize('kinds', [['knuckle', 'spatial_prismatic'], ['slider_crank', 'rsur', 'spin'], ['parallel']])
def test_equations_of_lagrange(kinds, rng):
    """f_y = d/dt dL/dyd - dL/dy, by differences of the energies; neither g nor the recursion of forces is in them."""
    machine = general_machine(rng, kinds, own_coordinates=True)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    s, h = general_state(machine, oracle, rng), 1e-4

    def lagrangian(x):
        kinetic, potential = oracle.energy(x, s.xd)
        return kinetic - potential

    units = h * np.eye(machine.dof)
    of_position = [(lagrangian(s.x + unit) - lagrangian(s.x - unit)) / (2 * h) for unit in units]
    (after, v_after), (before, v_before) = along(s, h), along(s, -h)
    momenta = [oracle.mass_matrix(after) @ v_after, oracle.mass_matrix(before) @ v_before]
    ref = (momenta[0] - momenta[1]) / (2 * h) - of_position
    assert error(oracle.generalized_forces(s.x, s.xd, s.xdd), ref) < 2e-5


def test_least_weighted_efforts(rng):
    """Every change of the efforts that leaves the machine alone costs more, and its weighted product is zero."""
    machine = general_machine(rng, ['twin_cylinders', 'five_bar'], redundant=True)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    s, weights = general_state(machine, oracle, rng), rng.uniform(0.1, 10, len(machine.actuators))
    f = oracle.inverse_dynamics(s.x, s.xd, s.xdd, weights=weights)
    A = oracle.actuator_map(s.x)
    assert A.shape == (6, 3)
    assert error(A.T @ f, oracle.generalized_forces(s.x, s.xd, s.xdd)) < 1e-12
    null = np.linalg.svd(A.T)[2][3:]
    assert np.abs(null @ (weights * f)).max() < 1e-9 * np.abs(f).max()


@pytest.mark.long
def test_virtual_work_of_external_wrenches(case, rng):
    """A wrench on a link does the work of its force at the link's origin and of its moment."""
    _, oracle, s = case
    h, link, wrench = 1e-6, str(rng.choice(oracle.links)), rng.normal(size=(2, 3))
    pose, rest = oracle.link_pose(s.x, link), np.zeros(oracle.dof)
    comp = oracle.generalized_forces(s.x, rest, rest, wrenches={link: wrench}) - oracle.gravity_forces(s.x)
    for k, unit in enumerate(np.eye(oracle.dof)):
        step = (oracle.link_pose(moved(s.x, h * unit), link)
                - oracle.link_pose(moved(s.x, -h * unit), link)) / (2 * h)
        turn = step[:3, :3] @ pose[:3, :3].T
        twist = np.array((turn[2, 1], turn[0, 2], turn[1, 0]))
        work = (pose[:3, :3] @ wrench[0]) @ step[:3, 3] + (pose[:3, :3] @ wrench[1]) @ twist
        assert comp[k] == pytest.approx(-work, abs=1e-6 * (1 + abs(work)))


def test_generator_repeats():
    first, second, other = (general_machine(np.random.default_rng(seed), 4) for seed in (1, 1, 2))
    assert first == second
    assert first.xml != other.xml


def test_options_of_the_generator(rng):
    plain, redundant, fewer, own = (general_machine(rng, NESTED, **{option: True} if option else {})
                                    for option in (None, 'redundant', 'under_actuated', 'own_coordinates'))
    assert plain.dof in (8, 9)  # a loop in space has one or two
    assert len(plain.actuators) == plain.dof + 1  # twin cylinders
    assert len(redundant.actuators) == redundant.dof + 3
    assert len({name.split('_')[0] for name in fewer.actuators}) == len(NESTED) - 1
    assert not set(own.coordinates) <= set(own.actuators)


# random chains and trees of triangles

SEEDS = range(12)


def sin_q(oracle, x, loop):
    """Return sin q of a loop about the axis of its rod eye, from the places of its pins."""
    c, b = (oracle.link_pose(x, f'{loop}_{part}_link')[:3, 3] for part in ('barrel', 'boom'))
    eye = oracle.data.oMf[oracle.model.getFrameId(f'{loop}_eye/parent')]
    across, lever, axis = b - c, eye.translation - b, eye.rotation[:, 2]
    across, lever = (v - v @ axis * axis for v in (across, lever))
    return axis @ np.cross(across, lever) / np.linalg.norm(across) / np.linalg.norm(lever)


@pytest.mark.parametrize('seed', thorough(SEEDS, 2))
@pytest.mark.parametrize('make', [chain, tree])
def test_loops_close_and_stay_clear_of_toggle_points(make, seed, rng):
    machine = make(seed, 5)
    oracle = GeneralOracle(machine.xml, machine.gravity)
    assert oracle.closure([machine.initial[name] for name in machine.actuators]) < 5e-15
    loops = [name.removesuffix('_cylinder') for name in machine.actuators if name.endswith('_cylinder')]
    x = random_state(machine, rng).x
    ends = np.array([machine.span[name] for name in machine.actuators]).T
    for loop in loops:
        assert abs(sin_q(oracle, x, loop)) >= 0.2
        for end in ends:
            assert abs(sin_q(oracle, end, loop)) == pytest.approx(0.2, abs=1e-9)


def test_both_assembly_modes_and_all_kinds_of_mounting_occur():
    machines = [chain(seed, 'L') for seed in SEEDS]
    assert {sin_q(GeneralOracle(m.xml), [m.initial['m1_cylinder']], 'm1') > 0 for m in machines} == {True, False}
    for bracket in ('m1_barrel_bracket', 'm1_boom_bracket'):
        assert {bracket in machine.xml for machine in machines} == {True, False}


def test_limits_declare_the_same_machine():
    """Only limits and initial values differ between the two ways to declare the assembly mode."""
    declared, limited = chain(3, 'LL'), chain(3, 'LL', assembly='limits')
    assert 'initial_value' in declared.xml and 'initial_value' not in limited.xml
    assert limited.initial == declared.initial and limited.span == declared.span


def test_trees_branch_from_cylinders_on_request():
    for branches in (False, True):
        machines = [tree(seed, 'LLLLL', cylinder_branches=branches) for seed in SEEDS]
        assert any('<parent link="m1_rod_link"/><child' in machine.xml for machine in machines) == branches


def test_same_seed_same_machine():
    assert chain(5, 6) == chain(5, 6)
    assert chain(5, 6).xml != chain(6, 6).xml


def test_friction_is_on_every_joint_and_pin():
    xml = chain(1, 'RLP', friction=True).xml
    moving = xml.count('type="revolute"') + xml.count('type="prismatic"')  # pins are of type revolute too
    assert xml.count('<dynamics') == moving
    assert '<dynamics' not in chain(1, 'RLP').xml
