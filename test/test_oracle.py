"""The independent engine obeys the laws of mechanics (it reproduces the reference numbers in test_paz_mattila)."""


import numpy as np
import pytest
from support.comparison import error
from support.machines import chain, hiab, loop_chain, random_state, tree
from support.oracle import Oracle

WORDS = ['L', 'LL', 'RLPL', 'PRLRL', 'LLLLLLLL']


def make(machine):
    return Oracle(machine.xml, machine.gravity, machine.initial)


def random_machines():
    return [chain(seed, word, friction=seed % 2 == 1) for seed, word in enumerate(WORDS)] + [
        tree(7, 6), tree(8, 6, cylinder_branches=True, friction=True), hiab(), loop_chain(6)]


@pytest.fixture(params=random_machines(), ids=lambda machine: '-'.join(machine.actuators))
def case(request, rng):
    return make(request.param), random_state(request.param, rng)


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
