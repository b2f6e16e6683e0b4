"""The machines that the tests of dynamics go through, each with the independent engine, and states to compare at."""

import re
from functools import cache
from typing import NamedTuple

import numpy as np
from conftest import seeded_generator

import psdyn_ros

from . import urdf_text as urdf
from .general_machines import GeneralMachine, GeneralState, general_machine, general_state
from .loop_kinds import KINDS
from .machines import URDF, Machine, hiab, load, loop_chain, near_start, random_state, tree
from .parallel_robots import delta_robot
from .witnesses.general_oracle import GeneralOracle

# random machines: (kinds of modules, options of `general_machine`)
MIXES = {
    'nested': (['six_link', 'twin_cylinders', 'triangle'], {}),
    'in space': (['rusr', 'spatial_prismatic', 'turn'], {}),
    'floating tree': (['turn', 'triangle', 'slide'], {'floating': True, 'friction': True}),
    'floating': (['knuckle', 'spatial_universal', 'slide'], {'floating': True, 'friction': True}),
    'floating loops': (['five_bar', 'triangle'], {'floating': True, 'own_coordinates': True}),
    'friction': (['planar_fixed', 'six_link', 'rsur'], {'friction': True}),
    'redundant': (['three_cranks', 'five_bar'], {'redundant': True, 'friction': True}),
    'redundant in space': (['parallel', 'twin_cylinders'], {'redundant': True, 'floating': True}),
    'under_actuated': (['four_bar', 'parallel'], {'under_actuated': True}),
    'own_coordinates': (['triangle', 'slider_crank', 'knuckle'], {'own_coordinates': True}),
    'two platforms': (['parallel', 'parallel'], {'own_coordinates': True, 'friction': True}),
}
SINGLE = {f'{kind} module': kind for kind in KINDS}
# 3 joint coordinates; on a fixed base 4 actuators
SHARED = {'shared': (['five_bar', 'twin_cylinders'], {'friction': True}),
          'floating shared': (['five_bar', 'twin_cylinders'], {'friction': True, 'floating': True})}
# how far states are from the initial position [m, rad]
SPREAD = {'four_bar': 0.5, 'five_bar': 0.3, 'pkm_2pur2rpu': 0.01, 'excavator': 0.3, 'balloon': 1.0}
TREES = {'crane': hiab, 'chain of loops': lambda: loop_chain(3),
         'tree': lambda: tree(4, 7, cylinder_branches=True, friction=True)}
FLOATING_CRANE = 'floating crane'
MACHINES = (*TREES, FLOATING_CRANE, *SPREAD)


class Case(NamedTuple):
    """A machine, the independent engine with its coordinates, and where to draw states."""

    machine: object             # `Machine` or `GeneralMachine`
    oracle: GeneralOracle
    m: psdyn_ros.Manipulator
    spread: float = 0.0         # of states about the initial position [m, rad]; 0: the machine says where they may be

    def state(self, rng):
        """Draw (x, xd, xdd, f) away from singular poses."""
        if isinstance(self.machine, GeneralMachine):
            return general_state(self.machine, self.oracle, rng)
        if not self.spread:
            return random_state(self.machine, rng)
        x, f = near_start(self.m, rng, self.spread), rng.uniform(-300, 300, len(self.m.actuators))
        return GeneralState(x, *rng.uniform(-1, 1, (2, self.m.dof)) * ((0.5,), (2,)), f)


def floating(xml):
    """Return the URDF of a crane whose base_link, of 800 kg, floats under a link 'world'."""
    body = urdf.link('base_link', 800.0, (0.1, -0.05, 0.4), np.diag((120.0, 150.0, 90.0)))
    joint = urdf.joint('float', 'floating', 'world', 'base_link', (0.3, -0.2, 1.0), (0.1, 0.2, -0.4))
    out = re.sub('<link name="base_link">.*?</link>', lambda _: f'{urdf.link("world")}\n{joint}\n{body}', xml, count=1,
                 flags=re.DOTALL)
    assert out != xml
    return out


@cache
def made(name):
    """Return the `Case` of a name of MACHINES, MIXES, SINGLE or SHARED."""
    if name in SINGLE:
        return random_case(seeded_generator(name), [SINGLE[name]])
    if name in MIXES or name in SHARED:
        kinds, options = (MIXES | SHARED)[name]
        return random_case(seeded_generator(name), kinds, **options)
    if name in TREES:
        machine = TREES[name]()
        oracle = GeneralOracle(machine.xml, machine.gravity, machine.initial, machine.actuators)
        return Case(machine, oracle, load(machine))
    if name == FLOATING_CRANE:
        crane = hiab()
        machine = crane._replace(xml=floating(crane.xml), gravity=(1.0, -2.0, -9.0))
        m = load(machine)
        return Case(machine, GeneralOracle(machine.xml, machine.gravity, coordinates=m.coordinates), m, 0.2)
    xml = (URDF / f'{name}.urdf').read_text()
    m = psdyn_ros.load(xml, allow_unphysical=name == 'balloon')
    return Case(Machine(xml, m.actuators, {}, {}), GeneralOracle(xml, coordinates=m.coordinates), m, SPREAD[name])


def random_case(rng, kinds, **options):
    """Return the `Case` of a random machine of these kinds of modules; see `general_machine`."""
    machine = general_machine(rng, kinds, **options)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    coordinates = None if machine.coordinates == machine.actuators else machine.coordinates
    return Case(machine, oracle, load(machine, coordinates=coordinates))


def along(s, h):
    """Return x and xd a time h later at constant xdd, to second order in h; a floating base by its twist."""
    xd = s.xd + h * s.xdd
    if len(s.x) == len(s.xd):
        return s.x + h * s.xd + h * h / 2 * s.xdd, xd
    mean = s.xd + h / 2 * s.xdd
    return moved(s.x, h * mean), xd


def moved(x, step):
    """Return x moved by a small step of the coordinates (dof,)."""
    if len(x) == len(step):
        return x + step
    (px, py, pz, pw), w = x[3:7], step[3:6]
    # rotation vector in body axes on the right, the quaternion's imaginary part first
    angle = np.linalg.norm(w)
    v, c = 0.5 * w * np.sinc(angle / (2 * np.pi)), np.cos(angle / 2)
    p = np.array((px, py, pz))
    turned = (*(c * p + pw * v + np.cross(p, v)), pw * c - p @ v)
    x_, y_, z_ = p
    R = np.array(((1 - 2 * (y_ * y_ + z_ * z_), 2 * (x_ * y_ - pw * z_), 2 * (x_ * z_ + pw * y_)),
                  (2 * (x_ * y_ + pw * z_), 1 - 2 * (x_ * x_ + z_ * z_), 2 * (y_ * z_ - pw * x_)),
                  (2 * (x_ * z_ - pw * y_), 2 * (y_ * z_ + pw * x_), 1 - 2 * (x_ * x_ + y_ * y_))))
    return np.concatenate((x[:3] + R @ (step[:3] + 0.5 * np.cross(w, step[:3])), turned, x[7:] + step[6:]))


@cache
def machine(name):
    """Return the `Manipulator` of a machine that pictures are drawn of: one of the package, or 'delta'."""
    return psdyn_ros.load(delta_robot().xml if name == 'delta' else URDF / f'{name}.urdf',
                          allow_unphysical=name == 'balloon')
