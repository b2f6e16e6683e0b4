"""Block networks for the tests of TITOP: random trees beside Pinocchio."""

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from psdyn_ros.formulations.titop import Body, Network, Prismatic, Revolute, Weld


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
