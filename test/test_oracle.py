"""The independent engine reproduces the reference numbers on its own and obeys the laws of mechanics."""

import json

import numpy as np
import pytest
from machines import DATA, chain, hiab, loop_chain, paz_machine, random_state, tree
from oracle import Oracle

PAZ = ['paz_one_loop_415kg', 'paz_four_dof_1063kg']
WORDS = ['L', 'LL', 'RLPL', 'PRLRL', 'LLLLLLLL']


def error(comp, ref):
    return np.abs(np.asarray(comp) - ref).max() / (1 + np.abs(ref).max())


def make(machine):
    return Oracle(machine.xml, machine.gravity, machine.initial)


def random_machines():
    return [chain(seed, word, friction=seed % 2 == 1) for seed, word in enumerate(WORDS)] + [
        tree(7, 6), tree(8, 6, cylinder_branches=True, friction=True), hiab(), loop_chain(6)]


@pytest.fixture(params=random_machines(), ids=lambda machine: '-'.join(machine.actuators))
def case(request, rng):
    return make(request.param), random_state(request.param, rng)


@pytest.mark.parametrize('name', PAZ)
def test_reference_trajectory(name):
    data, oracle = json.loads((DATA / f'{name}.json').read_text()), make(paz_machine(name))
    for ref in data['trajectory_inverse_dynamics']:
        comp = oracle.inverse_dynamics(ref['x'], ref['xd'], ref['xdd'])
        assert error(comp, np.array(ref['f'])) < 1e-10  # the file's forces are good to 6e-11
        joints = joints_of(oracle, ref['x'], ref['xd'], ref['xdd'])
        loops = [k for k, module in enumerate(data['parameters'], 1) if module['type'] == 'par']
        for k, (q, q1, _), ratios in zip(loops, ref['q_q1_q2'], ref['k1_to_k6']):
            xd, xdd = ref['xd'][k - 1], ref['xdd'][k - 1]
            k1, k2, _, k4, k5, _ = ratios
            assert error(joints[f'boom{k}'], np.array((q, k1 * xd, k4 + k1 * xdd))) < 1e-13
            assert error(joints[f'barrel{k}'], np.array((q1, k2 * xd, k5 + k2 * xdd))) < 1e-13


@pytest.mark.parametrize('name', PAZ)
def test_reference_accelerations(name):
    data, oracle = json.loads((DATA / f'{name}.json').read_text()), make(paz_machine(name))
    for ref in data['forward_dynamics']:
        comp = oracle.forward_dynamics(ref['x'], ref['xd'], ref['f'])
        assert error(comp, np.array(ref['xdd'])) < 1e-13


def test_reference_recursion_quantities():
    """Alpha, psi, delta, M^A and p^A of the loop at t = 1 s, read off the whole machine without gravity."""
    data = json.loads((DATA / f'{PAZ[0]}.json').read_text())
    machine = paz_machine(PAZ[0])
    oracle = Oracle(machine.xml, (0, 0, 0), machine.initial)
    for ref in (value for key, value in data['intermediate_t1'].items() if key.startswith('f=')):
        x, xd = ref['x'], ref['xd']
        force = float(next(key for key, value in data['intermediate_t1'].items() if value is ref)[2:])
        assert error(oracle.mass_matrix(x), ref['alpha']) < 1e-13
        assert error(oracle.bias_forces(x, xd), ref['delta']) < 1e-13
        columns = []
        for unit in np.vstack((np.zeros(6), np.eye(6))):
            base = ((0, 0, 0, 1), np.zeros(6), unit)
            psi = oracle.inverse_dynamics(x, xd, [0.0], base) - ref['delta']
            assert error(psi, unit @ ref['psi']) < 1e-12
            xdd = oracle.forward_dynamics(x, xd, [force], base)
            columns.append(oracle.base_wrench(x, xd, xdd, base))
        p, columns = columns[0], np.array(columns[1:])
        assert error(p, np.array(ref['p_Bc_A'])) < 1e-12
        assert error((columns - p).T, np.array(ref['M_Bc_A'])) < 1e-12


@pytest.mark.parametrize('t, force', [(0.0, 7578.789634), (2.5, 7696.612240), (7.5, 7457.042727)])
def test_published_forces_one_loop(t, force):
    w = 2 * np.pi / 10
    x, xd, xdd = 0.25 + 0.025 * np.sin(w * t), 0.025 * w * np.cos(w * t), -0.025 * w**2 * np.sin(w * t)
    comp = make(paz_machine(PAZ[0])).inverse_dynamics([x], [xd], [xdd])
    assert comp == pytest.approx([force], abs=1e-6)


@pytest.mark.parametrize('t, forces', [
    (0.0, (104.267261, 27960.248268, -375.836065, -1583.022428)),
    (1.0, (-208.574972, 29951.461215, 1526.446326, -1569.744205)),
    (3.0, (-354.267903, 29112.478720, 188.202433, -1542.634581))])
def test_published_forces_four_dof(t, forces):
    centre, amplitude = np.array((0, 0.25, 0.25, 0.5)), np.array((0.3, 0.05, 0.05, 0.1))
    w = 2 * np.pi / 10 * np.array((1, 1, 2, 2))
    x, xd = centre + amplitude * np.sin(w * t), amplitude * w * np.cos(w * t)
    comp = make(paz_machine(PAZ[1])).inverse_dynamics(x, xd, -amplitude * w**2 * np.sin(w * t))
    assert comp == pytest.approx(forces, abs=1e-6)


def test_published_accelerations():
    one, four = make(paz_machine(PAZ[0])), make(paz_machine(PAZ[1]))
    x, xd = [0.25], [0.025 * 2 * np.pi / 10]
    assert one.forward_dynamics(x, xd, [0.0]) == pytest.approx([-2.31149628], abs=1e-8)
    assert one.forward_dynamics(x, xd, [1000.0]) == pytest.approx([-2.00650084], abs=1e-8)
    w = 2 * np.pi / 10 * np.array((1, 1, 2, 2))
    amplitude = np.array((0.3, 0.05, 0.05, 0.1))
    x, xd = np.array((0, 0.25, 0.25, 0.5)) + amplitude * np.sin(w), amplitude * w * np.cos(w)
    assert four.forward_dynamics(x, xd, np.zeros(4)) == pytest.approx(
        [-0.01204794, -1.95437318, 1.70541313, -1.73127829], abs=1e-8)


def test_loops_close(case):
    oracle, s = case
    assert oracle.closure(s.x) < 1e-14


def test_forward_inverts_inverse(case):
    oracle, s = case
    assert error(oracle.forward_dynamics(s.x, s.xd, oracle.inverse_dynamics(s.x, s.xd, s.xdd)), s.xdd) < 1e-11


def test_mass_matrix_is_the_derivative_of_the_forces(case):
    """The mass matrix comes from another algorithm of Pinocchio than the forces; both must agree."""
    oracle, s = case
    bias = oracle.bias_forces(s.x, s.xd)
    columns = [oracle.inverse_dynamics(s.x, s.xd, unit) - bias for unit in np.eye(len(s.x))]
    mass = oracle.mass_matrix(s.x)
    assert error(np.array(columns).T, mass) < 1e-11
    assert np.linalg.eigvalsh(mass).min() > 0


def test_joint_rates_are_the_derivatives_of_joint_positions(case):
    oracle, s = case
    h = 1e-4
    _, before, v_before, _ = oracle.joint_state(*along(s, -h))
    _, after, v_after, _ = oracle.joint_state(*along(s, h))
    _, _, velocity, acceleration = oracle.joint_state(s.x, s.xd, s.xdd)
    assert error((after - before) / (2 * h), velocity) < 1e-5
    assert error((v_after - v_before) / (2 * h), acceleration) < 1e-5


def test_power_is_the_rate_of_energy(case):
    oracle, s = case
    h = 1e-4
    rate = (sum(oracle.energy(*along(s, h))) - sum(oracle.energy(*along(s, -h)))) / (2 * h)
    losses = s.xd @ oracle.friction_forces(s.x, s.xd)
    assert losses >= 0
    assert error(oracle.inverse_dynamics(s.x, s.xd, s.xdd) @ s.xd - losses, rate) < 1e-5


def test_virtual_work_of_external_wrenches(case, rng):
    """A wrench on a link does the work of its force at the link's origin and of its moment."""
    oracle, s = case
    h, link, wrench = 1e-6, oracle.links[-1], rng.normal(size=(2, 3))
    pose, rest = oracle.link_pose(s.x, link), np.zeros_like(s.x)
    comp = oracle.inverse_dynamics(s.x, rest, rest, wrenches={link: wrench}) - oracle.gravity_forces(s.x)
    for k, unit in enumerate(np.eye(len(s.x))):
        step = (oracle.link_pose(s.x + h * unit, link) - oracle.link_pose(s.x - h * unit, link)) / (2 * h)
        turn = step[:3, :3] @ pose[:3, :3].T
        twist = np.array((turn[2, 1], turn[0, 2], turn[1, 0]))
        work = (pose[:3, :3] @ wrench[0]) @ step[:3, 3] + (pose[:3, :3] @ wrench[1]) @ twist
        assert comp[k] == pytest.approx(-work, abs=1e-6 * (1 + abs(work)))


def test_base_carries_the_machine(case):
    """At rest the base wrench is the weight; a wrench on the base itself is taken from it at once."""
    oracle, s = case
    rest = np.zeros_like(s.x)
    mass = sum(inertia.mass for inertia in oracle.model.inertias)
    weight = oracle.base_wrench(s.x, rest, rest)
    assert error(weight[:3], -mass * oracle.model.gravity.linear) < 1e-12
    push = np.arange(1.0, 7.0)
    pushed = oracle.base_wrench(s.x, rest, rest, wrenches={oracle.links[0]: np.split(push, 2)})
    assert error(weight - pushed, push) < 1e-9


def test_turning_base_is_a_slew(rng):
    """A slewing crane and one on a turning base feel the same; the base wrench contains the slew torque."""
    oracle, s = make(hiab()), random_state(hiab(), rng)
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
    moved = machine.xml.replace('<origin xyz="0 0 0" rpy="1.5707963267948966 0 0"/>',
                                f'<origin xyz="{radius} 0 0" rpy="1.5707963267948966 0 0"/>')
    assert moved != machine.xml
    w, a = s.xd[0], s.xdd[0]
    held = [np.array((0.0, *values[1:])) for values in s[:3]]
    far = Oracle(moved, machine.gravity, machine.initial)
    about_axis = ((0, 0, 0, 1), (0, 0, 0, 0, 0, w), (0, 0, 0, 0, 0, a))
    circling = ((0, 0, 0, 1), (0, radius * w, 0, 0, 0, w), (-radius * w**2, radius * a, 0, 0, 0, a))
    ref = far.inverse_dynamics(*held, base=about_axis)
    assert error(make(machine).inverse_dynamics(*held, base=circling), ref) < 1e-12


def along(s, h):
    """Return position and velocity a time h later, at constant acceleration."""
    return s.x + h * s.xd + h * h / 2 * s.xdd, s.xd + h * s.xdd


def joints_of(oracle, *state):
    """Return position, velocity and acceleration of each joint by its name."""
    names, *values = oracle.joint_state(*state)
    return dict(zip(names, np.transpose(values)))
