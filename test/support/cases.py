"""The machines that the tests of dynamics go through, each with the independent engine, and states to compare at."""

from functools import cache
from typing import NamedTuple

import numpy as np
from conftest import seeded_generator

import psdyn_ros

from . import urdf_text as urdf
from .general_machines import general_machine, general_state
from .general_oracle import GeneralOracle
from .machines import URDF, Machine, hiab, load, loop_chain, near_start, random_state, tree

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
SPREAD = {'five_bar': 0.3, 'pkm_2pur2rpu': 0.01, 'excavator': 0.3, 'balloon': 1.0}      # of states [m, rad]
TREES = {'crane': hiab, 'chain of loops': lambda: loop_chain(3),
         'tree': lambda: tree(4, 7, cylinder_branches=True, friction=True)}
FLOATING_CRANE = 'floating crane'
MACHINES = (*TREES, FLOATING_CRANE, *SPREAD)


class Case(NamedTuple):
    """A machine, the independent engine with its coordinates, and where to draw states."""

    machine: object             # `Machine` or `GeneralMachine`; None of a file of the package
    oracle: GeneralOracle
    m: psdyn_ros.Manipulator
    spread: float = 0.0         # of states of a file [m, rad]

    def state(self, rng):
        """Draw (x, xd, xdd, f) away from singular poses."""
        if isinstance(self.machine, Machine) and not self.m.floating:
            return random_state(self.machine, rng)
        if self.machine is not None and not isinstance(self.machine, Machine):
            return general_state(self.machine, self.oracle, rng)
        x = near_start(self.m, rng, self.spread)
        xd, xdd = rng.uniform(-1, 1, (2, self.m.dof)) * ((0.5,), (2,))
        return x, xd, xdd, rng.uniform(-300, 300, len(self.m.actuators))


def floating(xml):
    """Return the URDF with its base_link, of 800 kg, floating under a link 'world'."""
    base = urdf.link('base_link', 800.0, (0.1, -0.05, 0.4), np.diag((120.0, 150.0, 90.0)))
    assert '<link name="base_link"/>' in xml
    return xml.replace('<link name="base_link"/>', '\n'.join((urdf.link('world'), urdf.joint(
        'float', 'floating', 'world', 'base_link', (0.3, -0.2, 1.0), (0.1, 0.2, -0.4)), base)))


@cache
def made(name):
    """Return the `Case` of a name of MACHINES or MIXES."""
    if name in MIXES:
        kinds, options = MIXES[name]
        return random_case(seeded_generator(name), kinds, **options)
    if name in TREES:
        machine = TREES[name]()
        return Case(machine, GeneralOracle(machine.xml, machine.gravity, machine.initial, machine.actuators), load(machine))
    if name == FLOATING_CRANE:
        crane = hiab()
        machine = crane._replace(xml=floating(crane.xml), gravity=(1.0, -2.0, -9.0))
        m = load(machine)
        return Case(machine, GeneralOracle(machine.xml, machine.gravity, coordinates=m.coordinates), m, 0.2)
    xml = (URDF / f'{name}.urdf').read_text()
    m = psdyn_ros.load(xml, allow_unphysical=name == 'balloon')
    return Case(None, GeneralOracle(xml, coordinates=m.coordinates), m, SPREAD[name])


def random_case(rng, kinds, **options):
    """Return the `Case` of a random machine of these kinds of modules; see `general_machine`."""
    machine = general_machine(rng, kinds, **options)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    coordinates = None if machine.coordinates == machine.actuators else machine.coordinates
    return Case(machine, oracle, load(machine, coordinates=coordinates))
