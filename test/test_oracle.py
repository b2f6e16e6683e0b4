"""The independent engine obeys the laws of mechanics, and the generator's machines keep their promises.

test_paz_mattila compares the engine with reference numbers.
"""

import numpy as np
import pytest
from support.cases import MACHINES, along, made, moved, random_case
from support.comparison import error
from support.general_machines import general_machine, general_state
from support.general_oracle import GeneralOracle
from support.loop_kinds import KINDS
from support.machines import chain, hiab, random_state

NESTED = ['six_link', 'parallel', 'twin_cylinders', 'spatial_universal', 'turn', 'knuckle']
WORDS = ['L', 'LL', 'RLPL', 'PRLRL', 'LLLLLLLL']       # of chains of cylinder triangles
CASES = {kind: ([kind], {}) for kind in KINDS} | {
    'floating': (NESTED, {'floating': True, 'friction': True}),
    'friction': (NESTED, {'friction': True}),
    'own_coordinates': (NESTED, {'own_coordinates': True, 'floating': True}),
    'redundant': (NESTED, {'redundant': True, 'friction': True}),
    'under_actuated': (NESTED, {'under_actuated': True}),
    'random': (5, {})}


@pytest.fixture(params=[*MACHINES, *CASES, *WORDS])
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


@pytest.mark.parametrize('name', CASES)
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


def test_rates_are_the_derivatives_of_positions(case):
    _, oracle, s = case
    h = 1e-4
    _, before, v_before, _ = oracle.joint_state(*along(s, -h))
    _, after, v_after, _ = oracle.joint_state(*along(s, h))
    _, _, velocity, acceleration = oracle.joint_state(s.x, s.xd, s.xdd)
    assert error((after - before) / (2 * h), velocity) < 1e-5
    assert error((v_after - v_before) / (2 * h), acceleration) < 1e-5


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


def test_mass_matrix_is_the_derivative_of_the_forces(case):
    """The mass matrix comes from another algorithm of Pinocchio than the forces, and from the kinetic energy."""
    _, oracle, s = case
    bias, mass = oracle.bias_forces(s.x, s.xd), oracle.mass_matrix(s.x)
    columns = [oracle.generalized_forces(s.x, s.xd, unit) - bias for unit in np.eye(oracle.dof)]
    assert error(np.array(columns).T, mass) < 1e-11
    assert np.linalg.eigvalsh(mass).min() > 0
    assert oracle.energy(s.x, s.xd)[0] == pytest.approx(0.5 * s.xd @ mass @ s.xd, rel=1e-12)


def test_power_is_the_rate_of_energy(case):
    machine, oracle, s = case
    h = 1e-4
    rate = (sum(oracle.energy(*along(s, h))) - sum(oracle.energy(*along(s, -h)))) / (2 * h)
    losses = s.xd @ oracle.friction_forces(s.x, s.xd)
    assert losses >= 0
    assert (losses > 0) == ('<dynamics' in machine.xml)
    assert error(oracle.generalized_forces(s.x, s.xd, s.xdd) @ s.xd - losses, rate) < 2e-5


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


def test_forward_inverts_inverse(case, rng):
    """The efforts that the actuators cannot give are applied by joint efforts and the base wrench."""
    _, oracle, s = case
    weights = rng.uniform(0.1, 10, len(oracle.actuators))
    efforts = {oracle.joints[-1]: 30.0}
    forces = oracle.generalized_forces(s.x, s.xd, s.xdd, efforts=efforts)
    f = oracle.inverse_dynamics(s.x, s.xd, s.xdd, efforts=efforts, weights=weights)
    rest = forces - oracle.actuator_map(s.x).T @ f
    if oracle.floating:
        wrench, rest[:6] = rest[:6].copy(), 0
    if np.linalg.matrix_rank(oracle.actuator_map(s.x), 1e-9) == len(oracle.coordinates):
        assert np.abs(rest).max() < 1e-9 * (1 + np.abs(forces).max())
    missing = dict(zip(oracle.coordinates, rest[6 * oracle.floating:]))
    for name, effort in missing.items():
        efforts[name] = efforts.get(name, 0.0) + effort
    base_wrench = wrench if oracle.floating else None
    comp = oracle.forward_dynamics(s.x, s.xd, f, efforts=efforts, base_wrench=base_wrench)
    assert error(comp, s.xdd) < 1e-10


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


def test_coordinates_do_not_matter(rng):
    """The same motion told in other coordinates costs the same power and the same actuator efforts."""
    machine = general_machine(rng, ['knuckle', 'rusr'])
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    s = general_state(machine, oracle, rng, reach=0.1)
    names, q, qd, qdd = oracle.joint_state(s.x, s.xd, s.xdd)
    spatial = next(name for name in machine.coordinates if 'rusr' in name)
    other = GeneralOracle(machine.xml, machine.gravity, coordinates=[
        'm1_knuckle_second', spatial, 'm1_knuckle_first'])
    at = [names.index(name) for name in other.coordinates]
    assert error(other.joint_state(q[at], qd[at], qdd[at])[1:], (q, qd, qdd)) < 1e-9
    ref = oracle.inverse_dynamics(s.x, s.xd, s.xdd)
    assert error(other.inverse_dynamics(q[at], qd[at], qdd[at]), ref) < 1e-9
    assert set(other.coordinates) != set(machine.coordinates)


def test_floating_base_moves_as_a_driven_one(rng):
    """A base that floats with some motion needs the wrench that a base driven through the same motion carries."""
    machine = general_machine(rng, ['four_bar', 'rusr'], floating=True)
    floating = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    rooted = machine.xml.replace('<link name="world"/>', '')
    rooted = rooted[:rooted.index('<joint name="float"')] + rooted[rooted.index('<link name="base_link"'):]
    driven = GeneralOracle(rooted, machine.gravity, coordinates=machine.coordinates)
    s = general_state(machine, floating, rng)
    v, w = np.split(s.xd[:6], 2)
    acceleration = s.xdd[:6] + (*np.cross(w, v), 0, 0, 0)  # classical
    base = s.x[3:7], s.xd[:6], acceleration
    ref = floating.generalized_forces(s.x, s.xd, s.xdd)
    joints = s.x[7:], s.xd[6:], s.xdd[6:], base
    assert error(driven.generalized_forces(*joints), ref[6:]) < 1e-12
    assert error(driven.base_wrench(*joints), ref[:6]) < 1e-12
    assert error(floating.base_wrench(s.x, s.xd, s.xdd), ref[:6]) < 1e-12


def test_a_free_machine_falls(rng):
    """Without actuators a resting machine in space falls with gravity as one body."""
    machine = general_machine(rng, NESTED, floating=True)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    s = general_state(machine, oracle, rng)
    xdd = oracle.forward_dynamics(s.x, np.zeros(oracle.dof), np.zeros(len(machine.actuators)))
    R = oracle.link_pose(s.x, 'base_link')[:3, :3]
    assert error(R @ xdd[:3], machine.gravity) < 1e-10
    assert np.abs(xdd[3:]).max() < 1e-10


def test_base_carries_the_machine(case):
    """At rest the base wrench is the weight; a wrench on the base itself is taken from it at once."""
    _, oracle, s = case
    if oracle.floating:
        pytest.skip('nothing carries it')
    rest = np.zeros(oracle.dof)
    mass = sum(inertia.mass for inertia in oracle.model.inertias)
    weight = oracle.base_wrench(s.x, rest, rest)
    assert error(weight[:3], -mass * oracle.model.gravity.linear) < 1e-12
    push = np.arange(1.0, 7.0)
    pushed = oracle.base_wrench(s.x, rest, rest, wrenches={oracle.links[0]: np.split(push, 2)})
    assert error(weight - pushed, push) < 1e-9


def test_turning_base_is_a_slew(rng):
    """A slewing crane and one on a turning base feel the same; the base wrench contains the slew torque."""
    oracle, s = made('crane').oracle, random_state(hiab(), rng)
    ref = oracle.inverse_dynamics(*s[:3])
    held = [np.array((0.0, *values[1:])) for values in s[:3]]
    turn = (0, 0, np.sin(s.x[0] / 2), np.cos(s.x[0] / 2))
    base = (turn, (0, 0, 0, 0, 0, s.xd[0]), (0, 0, 0, 0, 0, s.xdd[0]))
    assert error(oracle.inverse_dynamics(*held, base=base), ref) < 1e-12
    assert oracle.base_wrench(*held, base=base)[5] == pytest.approx(ref[0], rel=1e-12)


def test_classical_acceleration_of_a_circling_base(rng):
    """A base on a circle about a distant axis: the machine again, moved outwards on a base that turns."""
    machine, radius = hiab(), 3.0
    s = random_state(machine, rng)
    displaced = machine.xml.replace('<origin xyz="0 0 0" rpy="1.5707963267948966 0 0"/>',
                                f'<origin xyz="{radius} 0 0" rpy="1.5707963267948966 0 0"/>')
    assert displaced != machine.xml
    w, a = s.xd[0], s.xdd[0]
    held = [np.array((0.0, *values[1:])) for values in s[:3]]
    far = GeneralOracle(displaced, machine.gravity, machine.initial)
    about_axis = ((0, 0, 0, 1), (0, 0, 0, 0, 0, w), (0, 0, 0, 0, 0, a))
    circling = ((0, 0, 0, 1), (0, radius * w, 0, 0, 0, w), (-radius * w**2, radius * a, 0, 0, 0, a))
    ref = far.inverse_dynamics(*held, base=about_axis)
    assert error(made('crane').oracle.inverse_dynamics(*held, base=circling), ref) < 1e-12


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
