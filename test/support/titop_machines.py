"""Block networks for the tests of TITOP: balloon, four-bar with a compliant cut, random trees beside Pinocchio."""

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from psdyn_ros.formulations.titop import Body, LoopClosure, Network, Prismatic, Revolute, System, Weld

from .reference import reference

NO_INERTIA = np.zeros((3, 3))


def unit(rng):
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def random_rotation(rng):
    return pin.exp3(rng.uniform(0, 3) * unit(rng))


def random_inertial(rng):
    """Mass, inertia and centre of some real body, small against the arms of `random_tree`."""
    mass, (a, b, c), R = rng.uniform(1, 5), rng.uniform(0.05, 0.3, 3), random_rotation(rng)
    return mass, R @ np.diag((b + c, a + c, a + b)) @ R.T, rng.uniform(-0.3, 0.3, 3)


def random_state(system, rng):
    n = len(system.joints)
    return system.state(rng.normal(size=3), pin.Quaternion(random_rotation(rng)).coeffs(), rng.normal(size=6),
                        rng.uniform(-1.5, 1.5, n), rng.normal(size=n))


def connect(network, *pairs):
    """Connect pairs of ports, each 'one other'."""
    for pair in pairs:
        network.connect(*pair.split())


class Balloon(NamedTuple):
    """The balloon of the paper, with the data that it leaves out; springs and dampers may be turned off."""

    data: dict
    system: System
    state: tuple
    stiffness: float

    def inputs(self, damped=True):
        """Return joint forces and wrenches: spring, dampers, buoyancy at B that carries the whole weight."""
        ours, g = self.data['parameters']['ours'], self.system.gravity
        k, d_s, d_1, d_2 = (ours[name] * keep for name, keep in
                            zip(('k', 'd_s', 'd_p1', 'd_p2'), (1, damped, damped, damped)))
        forces = {'slider': lambda t, p, pd: -k * p - d_s * pd, 'pendulum1': lambda t, q, qd: -d_1 * qd,
                  'pendulum2': lambda t, q, qd: -d_2 * qd}
        buoyancy = -sum(self.data['parameters']['m']) * g
        return forces, {'balloon.P': lambda t, B: np.append(B.rotation.T @ buoyancy, np.zeros(3))}

    def energy(self, state):
        """Return the energy [J]: kinetic, of gravity, of buoyancy and of the spring."""
        lift = sum(self.data['parameters']['m']) * self.system.gravity @ state.position
        return sum(self.system.energy(state)) + lift + 0.5 * self.stiffness * state.joint_positions[0] ** 2


def balloon():
    data = reference('balloon')
    p = data['parameters']
    m, z = p['m'], (0, 0, 1)
    network = Network()
    network.add(Body('balloon', m[0], p['J_B'], ports={'C': np.negative(p['CB'])}),
                Prismatic('slider', p['t_axis'], m[1], NO_INERTIA, ports={'C': (0, 0, 0)}),
                Revolute('pendulum1', z, m[2], NO_INERTIA, p['SP1'], {'C': p['SP1']}),
                Revolute('pendulum2', z, m[3], NO_INERTIA, p['P1P2']))
    connect(network, 'slider.P balloon.C', 'slider.C pendulum1.P', 'pendulum2.P pendulum1.C')
    system = network.assemble(p['g'])
    state = system.state(joint_positions={'pendulum1': np.radians(p['theta1_0_deg']),
                                          'pendulum2': np.radians(p['theta2_0_deg'])})
    return Balloon(data, system, state, p['ours']['k'])


# four-bar of S. K. Saha and W. Schiehlen: crank, coupler, rocker, ground [m], masses [kg], slender rods
BARS, GROUND, MASSES = np.array((0.3, 1.0, 0.6)), 1.0, np.array((1.5, 5.0, 3.0))
GRAVITY = 9.81


def rod(length, mass):
    return np.diag((0, 1, 1)) * mass * length**2 / 12


def four_bar_angles(crank):
    """Angles (3,) of crank, coupler and rocker against the ground, each from the bar before; coupler above."""
    tip = BARS[0] * np.exp(1j * crank)
    to_pivot = GROUND - tip
    d = abs(to_pivot)
    coupler = np.angle(to_pivot) + np.arccos((BARS[1] ** 2 + d**2 - BARS[2] ** 2) / (2 * BARS[1] * d))
    return np.array((crank, coupler, np.angle(to_pivot - BARS[1] * np.exp(1j * coupler))))


def four_bar(kappa, damping):
    """The four-bar on a ground that is a driven base, its coupler cut in the middle."""
    (a, b, c), (m1, m2, m3), z = BARS, MASSES, (0, 0, 1)
    half = rod(b / 2, m2 / 2)
    network = Network()
    network.add(Body('ground', 0, NO_INERTIA, ports={'A': (0, 0, 0), 'D': (GROUND, 0, 0)}),
                Revolute('crank', z, m1, rod(a, m1), (a / 2, 0, 0), {'B': (a, 0, 0)}),
                Revolute('left', z, m2 / 2, half, (b / 4, 0, 0), {'cut': (b / 2, 0, 0)}),
                Revolute('rocker', z, m3, rod(c, m3), (c / 2, 0, 0), {'C': (c, 0, 0)}),
                Revolute('right', z, m2 / 2, half, (-b / 4, 0, 0), {'cut': (-b / 2, 0, 0)}),
                LoopClosure('coupler', kappa * np.eye(6), damping * np.eye(6)))
    connect(network, 'crank.P ground.A', 'left.P crank.B', 'rocker.P ground.D', 'right.P rocker.C',
            'coupler.l left.cut', 'right.cut coupler.r')
    system = network.assemble((0, -GRAVITY, 0))
    crank, coupler, rocker = four_bar_angles(np.pi / 2) + (0, 0, np.pi)
    return system, system.state(joint_positions={'crank': crank, 'left': coupler - crank, 'rocker': rocker,
                                                 'right': coupler - rocker})


def rigid_four_bar(t, y):
    """Rate of (angles, rates) (6,) of the rigid loop: three bars in a row whose end is pinned, with multipliers."""
    angle, rate = np.split(y, 2)
    arms = np.tril(np.ones((3, 3)), -1) * BARS + np.diag(BARS) / 2  # from bar k's centre back to each bar's pin
    products = arms.T @ (MASSES[:, None] * arms)
    difference = angle[:, None] - angle
    M = products * np.cos(difference) + np.diag(MASSES * BARS**2 / 12)
    bias = products * np.sin(difference) @ rate**2 + GRAVITY * np.cos(angle) * (MASSES @ arms)
    J = BARS * np.array((-np.sin(angle), np.cos(angle)))
    K = np.block([[M, J.T], [J, np.zeros((2, 2))]])
    centripetal = BARS * np.array((np.cos(angle), np.sin(angle))) @ rate**2
    return np.append(rate, np.linalg.solve(K, np.append(-bias, centripetal))[:3])


class Tree(NamedTuple):
    """One machine in two engines."""

    network: Network
    model: pin.Model
    carriers: dict  # port -> (joint of the model, pose of the port's body in it and the port's own)


def random_tree(rng, kinds):
    """A base and one block per letter, R, P or W, each on a new port of any block before; tips have a port 'tool'."""
    model, network, carriers = pin.Model(), Network(), {}
    drawn = [random_inertial(rng) for _ in range(len(kinds) + 1)]
    parents = [int(rng.integers(k)) for k in range(1, len(kinds) + 1)]
    points = [{**{f'c{k}': rng.uniform(-1, 1, 3) for k, parent in enumerate(parents, 1) if parent == i},
               'tool': rng.uniform(-1, 1, 3)} for i in range(len(drawn))]
    frames = [(model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'base'), pin.SE3.Identity())]
    network.add(Body('b0', *drawn[0], points[0]))
    for k, (kind, parent) in enumerate(zip(kinds, parents), 1):
        axis, orientation = unit(rng), random_rotation(rng)
        joint, frame = frames[parent]
        frame = frame * pin.SE3(orientation, points[parent][f'c{k}'])
        if kind == 'W':
            network.add(Weld(f'b{k}', *drawn[k], points[k], orientation))
            frames.append((joint, frame))
        else:
            block, moving = ((Revolute, pin.JointModelRevoluteUnaligned) if kind == 'R'
                             else (Prismatic, pin.JointModelPrismaticUnaligned))
            network.add(block(f'b{k}', 3 * axis, *drawn[k], points[k], orientation))
            frames.append((model.addJoint(joint, moving(axis), frame, f'b{k}'), pin.SE3.Identity()))
        network.connect(f'b{k}.P', f'b{parent}.c{k}')
    for i, ((joint, frame), (mass, inertia, center)) in enumerate(zip(frames, drawn)):
        model.appendBodyToJoint(joint, pin.Inertia(mass, center, inertia), frame)
        network.expose(f'b{i}.tool')
        carriers[f'b{i}.tool'] = (joint, frame * pin.SE3(np.eye(3), points[i]['tool']))
    return Tree(network, model, carriers)


def pinocchio_vectors(model, system, state):
    """Return configuration and velocity of Pinocchio, and where the joints of the system are in the latter."""
    at = [model.joints[model.getJointId(joint)].idx_v for joint in system.joints]
    q, v = pin.neutral(model), np.append(state.twist, np.zeros(len(at)))
    q[:3], q[3:7] = state.position, state.quaternion / np.linalg.norm(state.quaternion)
    q[np.array(at, int) + 1], v[at] = state.joint_positions, state.joint_rates
    return q, v, at
