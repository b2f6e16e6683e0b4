"""TITOP blocks: Pinocchio on random trees, causalities, the printed equations, loop closures."""

import numpy as np
import pinocchio as pin
import pytest
from conftest import seeded_generator, thorough
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from support import titop_machines as titop
from support.comparison import error

from psdyn_ros.formulations.titop import Body, LoopClosure, Network, Prismatic, Revolute
from psdyn_ros.formulations.titop.dual_vectors import rotation_vector, turn

TREES = ['', 'R', 'P', 'RWP', 'RRRR', 'PWRPR', 'RPWRRPWR', 'RRPRWRPRRPWR']


def integrate(system, state, times, *inputs, method='DOP853', rtol=1e-10):
    run = solve_ivp(system.state_derivative, (0, times[-1]), system.pack(state), method, times, args=inputs,
                    rtol=rtol, atol=rtol / 10)
    assert run.success
    return [system.unpack(y) for y in run.y.T]





# Pinocchio

def wrenches_on_ports(tree, system, rng):
    """Wrenches on half of the ports, and what they are in Pinocchio: one per joint, in its axes."""
    wrenches = {port: rng.normal(size=6) * 20 for port in system.ports[1:][::2]}
    on_joints = [pin.Force.Zero() for _ in range(tree.model.njoints)]
    for port, wrench in wrenches.items():
        joint, pose = tree.carriers[port]
        on_joints[joint] += pose.act(pin.Force(wrench))
    return wrenches, on_joints


@pytest.fixture(params=thorough([f'{kinds}-{k}' for k in range(5) for kinds in TREES], len(TREES)))
def machine(request, rng):
    """A random tree, its system under a random gravity, a state and its two vectors in Pinocchio."""
    tree = titop.random_tree(rng, request.param.split('-')[0])
    tree.model.gravity.linear = 9.81 * titop.unit(rng)
    system = tree.network.assemble(tree.model.gravity.linear)
    state = titop.random_state(system, rng)
    return tree, system, state, titop.pinocchio_vectors(tree.model, system, state)


def test_forward_dynamics_is_pinocchios(machine, rng):
    tree, system, state, (q, v, at) = machine
    wrenches, on_joints = wrenches_on_ports(tree, system, rng)
    forces, on_base = rng.normal(size=len(at)) * 10, rng.normal(size=6) * 10
    effort = np.append(on_base, np.zeros(len(at)))
    effort[at] = forces
    ref = pin.aba(tree.model, tree.model.createData(), q, v, effort, on_joints)
    solution = system.solve(state, forces=forces, wrenches={**wrenches, system.base_port: on_base})
    assert error(solution.base_acceleration, ref[:6]) < 1e-12
    assert error(solution.joint_accelerations, ref[at]) < 1e-12
    np.testing.assert_array_equal(solution.joint_forces, forces)
    assert not solution.base_wrench.any()


def test_inverse_dynamics_is_pinocchios(machine, rng):
    tree, system, state, (q, v, at) = machine
    wrenches, on_joints = wrenches_on_ports(tree, system, rng)
    base, joints = rng.normal(size=6), rng.normal(size=len(at))
    acceleration = np.append(base, np.zeros(len(at)))
    acceleration[at] = joints
    ref = pin.rnea(tree.model, tree.model.createData(), q, v, acceleration, on_joints)
    solution = system.solve(state, wrenches=wrenches, accelerations=joints, base_acceleration=base)
    assert error(solution.base_wrench, ref[:6]) < 1e-12
    assert error(solution.joint_forces, ref[at]) < 1e-12


def test_energy_momentum_and_centre_of_mass_are_pinocchios(machine):
    tree, system, state, (q, v, _) = machine
    data = tree.model.createData()
    kinetic, potential = system.energy(state)
    assert error(kinetic, pin.computeKineticEnergy(tree.model, data, q, v)) < 1e-13
    assert error(potential, pin.computePotentialEnergy(tree.model, data, q)) < 1e-13
    com = pin.centerOfMass(tree.model, data, q)
    assert error(system.center_of_mass(state), com) < 1e-13
    linear, angular = np.split(pin.computeCentroidalMomentum(tree.model, data, q, v).vector, 2)
    assert error(system.momentum(state), np.append(linear, angular + np.cross(com, linear))) < 1e-13


def test_port_motions_and_accelerations_are_pinocchios(machine):
    tree, system, state, (q, v, at) = machine
    data, solution = tree.model.createData(), system.solve(state)
    acceleration = np.append(solution.base_acceleration, np.zeros(len(at)))
    acceleration[at] = solution.joint_accelerations
    pin.forwardKinematics(tree.model, data, q, v, acceleration)
    motions = system.motions(state)
    for port, (joint, pose) in tree.carriers.items():
        placed = data.oMi[joint] * pose
        assert error(motions[port].position, placed.translation) < 1e-13
        assert error(motions[port].rotation, placed.rotation) < 1e-13
        assert error(motions[port].twist, pose.actInv(data.v[joint]).vector) < 1e-13
        assert error(solution.port_accelerations[port], pose.actInv(data.a[joint]).vector) < 1e-13


# causalities

def test_inverse_of_forward_is_identity(machine, rng):
    _, system, state, (_, _, at) = machine
    forces = rng.normal(size=len(at))
    forward = system.solve(state, forces=forces)
    inverse = system.solve(state, accelerations=forward.joint_accelerations,
                           base_acceleration=forward.base_acceleration)
    assert error(inverse.joint_forces, forces) < 1e-12
    assert error(inverse.base_wrench, np.zeros(6)) < 1e-11
    for block, wrench in forward.wrenches.items():
        assert error(inverse.wrenches[block], wrench) < 1e-12


def test_mixed_causality_has_the_same_solution(machine, rng):
    """Every second joint takes its acceleration instead of its force, the base is free or driven."""
    _, system, state, (_, _, at) = machine
    forward = system.solve(state, forces=rng.normal(size=len(at)))
    driven = dict(list(zip(system.joints, forward.joint_accelerations))[::2])
    forces = {joint: force for joint, force in zip(system.joints, forward.joint_forces) if joint not in driven}
    for base in (None, forward.base_acceleration):
        mixed = system.solve(state, forces=forces, accelerations=driven, base_acceleration=base)
        assert error(mixed.joint_accelerations, forward.joint_accelerations) < 1e-12
        assert error(mixed.joint_forces, forward.joint_forces) < 1e-12
        assert error(mixed.base_acceleration, forward.base_acceleration) < 1e-12


def test_affine_map_is_the_wrench_on_a_moving_base(machine, rng):
    _, system, state, (_, _, at) = machine
    inputs = {'forces': rng.normal(size=len(at)), 'wrenches': {port: rng.normal(size=6) for port in system.ports}}
    w0, D = system.affine_map(state, **inputs)
    assert error(D, D.T) < 1e-13
    for acceleration in rng.normal(size=(3, 6)):
        by_drive = system.solve(state, base_acceleration=acceleration, **inputs).base_wrench
        assert error(w0 - D @ acceleration, -by_drive) < 1e-12


def test_prescribed_motion_is_followed():
    """A base and a joint driven by functions of time end where their motion ends."""
    network = Network()
    network.add(Body('base', 1, np.eye(3), ports={'C': (0, 0, 0)}), Revolute('arm', (0, 0, 1), 1, np.eye(3), (1, 0, 0)))
    network.connect('arm.P', 'base.C')
    system = network.assemble()
    end = integrate(system, system.state(), [1.0], None, None, {'arm': np.cos},
                    lambda t: (0, 0, 2, 0, 0, 3 * t))[-1]
    assert error(end.joint_positions, np.array([1 - np.cos(1)])) < 1e-9
    assert error(end.position, np.array((0, 0, 1))) < 1e-9
    assert error(rotation_vector(system.motions(end)['base.P'].rotation), np.array((0, 0, 0.5))) < 1e-9


# the equations as printed

def test_solution_satisfies_the_printed_equations(rng):
    """Both joint blocks with their own inertia as denominator, and the child's wrench as an input."""
    (mA, IA, BA), (mT, IT, BT) = titop.random_inertial(rng), titop.random_inertial(rng)
    r, t, mounts = titop.unit(rng), titop.unit(rng), rng.normal(size=(2, 3))
    P_a0b, P_ta = titop.random_rotation(rng), titop.random_rotation(rng)
    network = Network()
    network.add(Body('B', *titop.random_inertial(rng), {'C': mounts[0]}),
                Revolute('A', r, mA, IA, BA, {'C': mounts[1]}, P_a0b), Prismatic('T', t, mT, IT, BT, orientation=P_ta))
    network.connect('A.P', 'B.C')
    network.connect('T.P', 'A.C')
    g = rng.normal(size=3)
    system = network.assemble(g)
    state = titop.random_state(system, rng)
    solution = system.solve(state, forces=rng.normal(size=2))
    (theta, x), (thetadot, xdot) = state.joint_positions, state.joint_rates
    (C_m, F_m), (thetaddot, xddot) = solution.joint_forces, solution.joint_accelerations

    def transport(PC, dual):
        return np.append(dual[:3] + np.cross(dual[3:], PC), dual[3:])

    def weight_and_inertia(m, I_B, PB, twist, acceleration, g):
        """Newton and Euler at P with the classical acceleration a_P = vdot + w x v."""
        v, w, I_P = twist[:3], twist[3:], I_B + m * (PB @ PB * np.eye(3) - np.outer(PB, PB))
        a, wdot = acceleration[:3] + np.cross(w, v) - g, acceleration[3:]
        force = m * (a + np.cross(wdot, PB) + np.cross(w, np.cross(w, PB)))
        return np.append(force, np.cross(PB, m * a) + I_P @ wdot + np.cross(w, I_P @ w))

    R_b = Rotation.from_quat(state.quaternion).as_matrix()
    P_ab = P_a0b @ Rotation.from_rotvec(theta * r).as_matrix()
    to_a = np.kron(np.eye(2), P_ab.T)
    twist_B = to_a @ transport(mounts[0], state.twist)
    twist_A = twist_B + np.append(np.zeros(3), thetadot * r)
    accel_B = to_a @ transport(mounts[0], solution.base_acceleration)
    accel_A = accel_B + np.append(-thetadot * np.cross(r, twist_B[:3]),
                                  thetaddot * r - thetadot * np.cross(r, twist_B[3:]))
    W_TA = solution.wrenches['T']  # on A at its port C, in axes of A
    W_TA_P = np.append(W_TA[:3], W_TA[3:] + np.cross(mounts[1], W_TA[:3]))
    W_AB = W_TA_P - weight_and_inertia(mA, IA, BA, twist_A, accel_A, P_ab.T @ R_b.T @ g)
    assert error(solution.wrenches['A'], to_a.T @ W_AB) < 1e-13
    assert error(C_m, -r @ W_AB[3:]) < 1e-13
    J_r = r @ (IA + mA * (BA @ BA * np.eye(3) - np.outer(BA, BA))) @ r
    without = accel_B - thetadot * np.append(np.cross(r, twist_B[:3]), np.cross(r, twist_B[3:]))
    inertial = weight_and_inertia(mA, IA, BA, twist_A, without, P_ab.T @ R_b.T @ g)
    assert error(thetaddot, (C_m - r @ (inertial - W_TA_P)[3:]) / J_r) < 1e-12

    to_t = np.kron(np.eye(2), P_ta.T)
    twist_0, accel_0 = to_t @ transport(mounts[1], twist_A), to_t @ transport(mounts[1], accel_A)
    twist_T = transport(x * t, twist_0) + np.append(xdot * t, np.zeros(3))
    without = transport(x * t, accel_0) - np.append(xdot * np.cross(t, twist_0[3:]), np.zeros(3))
    g_t = P_ta.T @ P_ab.T @ R_b.T @ g
    inertial = weight_and_inertia(mT, IT, BT, twist_T, without, g_t)
    assert error(xddot, (F_m - t @ inertial[:3]) / mT) < 1e-12
    W = -weight_and_inertia(mT, IT, BT, twist_T, without + np.append(xddot * t, np.zeros(3)), g_t)
    assert error(W_TA, to_t.T @ np.append(W[:3], W[3:] + np.cross(x * t, W[:3]))) < 1e-12


@pytest.mark.parametrize('tip', ['mass', 'inertia'])
def test_joint_without_inertia_of_its_own(tip):
    """A massless crank, or a point mass on its axis, is moved by what it carries: a pendulum through two joints."""
    network, nothing, z = Network(), np.zeros((3, 3)), (0, 0, 1)
    child = Revolute('tip', z, 2, nothing, (0.5, 0, 0)) if tip == 'mass' else Revolute('tip', z, 2, np.eye(3))
    network.add(Body('ground', 0, nothing, ports={'C': (0, 0, 0)}),
                Revolute('crank', z, 3, nothing, ports={'C': (1, 0, 0)}), child)
    network.connect('crank.P', 'ground.C')
    network.connect('tip.P', 'crank.C')
    system = network.assemble((0, -9.81, 0))
    solution = system.solve(system.state(), accelerations={'tip': 0}, base_acceleration=np.zeros(6))
    arm, inertia = (1.5, 2 * 1.5**2) if tip == 'mass' else (1.0, 2 + 1)
    assert error(solution.joint_accelerations[0], -2 * 9.81 * arm / inertia) < 1e-14


# the package's own recursion


# loop closure


def closed_chain(rng, damping, sideways=1.0):
    """Two arms on a free base, their tips tied; `sideways` makes the translational stiffness uneven."""
    tree = Network()
    tree.add(Body('base', *titop.random_inertial(rng), {'left': (-0.5, 0, 0), 'right': (0.5, 0, 0)}),
             Revolute('arm', titop.unit(rng), *titop.random_inertial(rng), {'C': (0, 0, 1)}),
             Revolute('rocker', titop.unit(rng), *titop.random_inertial(rng), {'C': (0, 0.2, 1)}),
             LoopClosure('tie', np.diag((200, 200 * sideways, 300, 40, 40, 40)), damping * np.eye(6),
                         titop.random_rotation(rng)))
    titop.connect(tree, 'arm.P base.left', 'rocker.P base.right', 'tie.l arm.C', 'tie.r rocker.C')
    return tree


@pytest.mark.long
def test_loop_closure_is_internal(rng):
    """A free machine keeps its momentum, and without damping its energy, however far the gap opens."""
    system = closed_chain(rng, 0, sideways=3).assemble((0, 0, 0))
    state = titop.random_state(system, rng)
    states = [state, *integrate(system, state, np.linspace(0.2, 2, 10), rtol=1e-12)]
    momenta = np.array([system.momentum(state) for state in states])
    energies = np.array([sum(system.energy(state)) for state in states])
    assert np.ptp(momenta, axis=0).max() < 1e-9 * (1 + np.abs(momenta).max())
    assert np.ptp(energies) < 1e-9 * energies[0]


def test_damped_loop_closure_only_loses_energy(rng):
    system = closed_chain(rng, 5).assemble((0, 0, 0))
    state = titop.random_state(system, rng)
    states = [state, *integrate(system, state, np.linspace(0.1, 2, 20))]
    assert (np.diff([sum(system.energy(state)) for state in states]) < 0).all()
    momenta = np.array([system.momentum(state) for state in states])
    assert np.ptp(momenta, axis=0).max() < 1e-7 * (1 + np.abs(momenta).max())


@pytest.mark.parametrize('angle', [0, 1e-9, 1e-3, 1.5, np.pi / 2, 3, np.pi - 1e-5, np.pi - 1e-9, np.pi])
def test_rotation_vector_of_a_turn(angle):
    for axis in (*np.eye(3), *-np.eye(3), titop.unit(seeded_generator(f'{angle}'))):
        comp = rotation_vector(turn(axis, angle))
        # half a turn has two vectors
        assert min(error(comp, angle * axis), error(-comp, angle * axis) if angle > np.pi - 1e-8 else 1) < 1e-12
