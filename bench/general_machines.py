"""Machines with loops of any kind: three of urdf/, three with rods that end in balls, and chains of modules.

The competitors get the spanning tree (Pinocchio's parser) and one CONTACT_3D for each closure. For a revolute or a
universal closure that leaves the axes out; on these machines they follow from the pins, as the accelerations, which
are compared, show. Joint positions are ours; that they close the loops is checked by Pinocchio's kinematics.
"""

import copy
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

import psdyn_ros
from bench import machines

CLOSED = 1e-9  # largest distance between the two sides of a pin [m]
# the joints that make a module, and the bodies that carry it and the next one
FOUR_BAR = 'four_bar', ('crank', 'coupler', 'rocker'), 'base_link', 'coupler_link'
SIX_LINK = ('excavator', ('bucket', 'bucket_barrel', 'bucket_cylinder', 'rocker', 'coupler'), 'arm_link',
            'bucket_link')
# states lie so far from the initial position [m, rad], and move that fast [m/s, rad/s]
REACH = {'five_bar': (0.4, 0.5), 'pkm_2pur2rpu': (0.01, 0.05), 'excavator': (0.3, 0.2), 'four_bar': (0.5, 0.5),
         'delta_robot': (0.35, 0.5), 'stewart_platform': (0.12, 0.3), 'rssr': (0.4, 0.5)}
GENERATED = 'delta_robot', 'stewart_platform', 'rssr'      # by functions of these names of the tests


@dataclass(frozen=True)
class Machine(machines.Machine):
    manipulator: psdyn_ros.Manipulator
    coordinates: np.ndarray  # velocity indices of the independent joints, in the order of x
    reach: tuple

    @property
    def dof(self):
        return len(self.coordinates)


def read(name):
    if name in GENERATED:
        xml = getattr(machines.test_helper('parallel_robots'), name)().xml
    else:
        xml = (machines.ROOT / 'urdf' / f'{name}.urdf').read_text()
    return _read(name, xml, REACH[name])


def chain(module, count):
    """`count` modules, each on the moving body of the one before; all of the same size."""
    source = module[0]
    return _read(f'{source} x {count}', chain_xml(module, count), REACH[source])


def chain_xml(module, count):
    source, joints, base, tip = module
    root = ElementTree.parse(machines.ROOT / 'urdf' / f'{source}.urdf').getroot()
    chosen = [each for each in root.findall('joint') if each.get('name') in joints]
    links = {each.find('child').get('link') for each in chosen}
    parts = chosen + [each for each in root.findall('link') if each.get('name') in links]
    parts += [each for each in root.findall('constraint')
              if {each.find(side).get('link') for side in ('parent', 'child')} <= links | {base}]
    states = [each for each in root.findall('ros2_control/joint') if each.get('name') in joints]

    robot = ElementTree.Element('robot', name=f'{source}_chain')
    ElementTree.SubElement(robot, 'link', name='base_link')
    control = ElementTree.Element('ros2_control', name='chain', type='system')
    for k in range(count):
        def renamed(name, k=k):
            return f'm{k}_{name}' if name != base else f'm{k - 1}_{tip}' if k else 'base_link'

        for part, target in [(part, robot) for part in parts] + [(state, control) for state in states]:
            part = copy.deepcopy(part)
            part.set('name', renamed(part.get('name')))
            for end in (*part.findall('parent'), *part.findall('child')):
                end.set('link', renamed(end.get('link')))
            for visual in part.findall('visual'):
                part.remove(visual)
            target.append(part)
    robot.append(control)
    return ElementTree.tostring(robot, 'unicode')


def _read(name, xml, reach):
    robot = ElementTree.fromstring(xml)
    for joint in robot.findall('joint'):
        if joint.get('type') == 'continuous':  # one number, not Pinocchio's cosine and sine
            joint.set('type', 'revolute')
            joint.append(ElementTree.Element('limit', lower='-1e9', upper='1e9', effort='0', velocity='0'))
    tree = pin.buildModelFromXML(ElementTree.tostring(robot, 'unicode'))
    closures = robot.findall('constraint')
    unknown = {tag.get('type') for tag in closures} - {'revolute', 'universal', 'spherical'}
    if unknown:
        raise ValueError(f'{name}: no closure of type {", ".join(unknown)} is understood here')
    manipulator = psdyn_ros.load(xml)
    coordinates = np.array([tree.joints[tree.getJointId(each)].idx_v for each in manipulator.coordinates])
    return Machine(name, xml, tree, tuple(machines.closing_pin(tree, tag) for tag in closures), (),
                   machines.actuated_joints(tree, robot), np.zeros(tree.nv, int), manipulator, coordinates, reach)


def random_states(machine, count, seed=1):
    """States about the initial position, within the limits, under efforts about those that hold it there."""
    random, manipulator = np.random.default_rng(seed), machine.manipulator
    distance, speed = machine.reach
    start, limits = manipulator.initial_position, manipulator.coordinate_limits
    x = np.clip(start + random.uniform(-distance, distance, (count, len(start))), limits.lower, limits.upper)
    xd = random.uniform(-speed, speed, x.shape)
    xdd = random.uniform(-0.5, 0.5, x.shape)
    hold = manipulator.gravity_forces(start)
    f = hold * random.uniform(0.8, 1.2, (count, len(hold)))
    names = list(machine.tree.names)[1:]
    q, v = np.empty((2, count, machine.tree.nv))
    for k in range(count):
        joints, position, rate, _ = manipulator.joint_state(x[k], xd[k])
        order = [joints.index(name) for name in names]
        q[k], v[k] = position[order], rate[order]
    gap = machines.closing_error(machine, q)
    if not gap <= CLOSED:
        raise RuntimeError(f'{machine.name}: our joint positions leave a pin {gap:.1e} m open')
    tau = np.zeros_like(q)
    tau[:, machine.actuated] = f
    return machines.States(x, xd, xdd, f, q, v, None, None, tau)
