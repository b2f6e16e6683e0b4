"""A machine with loops, more actuators than freedom and losses, on a fixed and on a floating base."""

from functools import cache

from conftest import seeded_generator

from .general_machines import general_machine, general_state
from .general_oracle import GeneralOracle
from .machines import load

# 3 DoF and 4 actuators on a fixed base; the same loops and no more actuators on a floating one
KINDS = ['five_bar', 'twin_cylinders']


@cache
def made(name):
    """Return (machine, oracle, manipulator, state)."""
    rng = seeded_generator(name)
    machine = general_machine(rng, KINDS, floating=name == 'floating', friction=True)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    return machine, oracle, load(machine, coordinates=machine.coordinates), general_state(machine, oracle, rng)
