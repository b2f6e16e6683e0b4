"""A machine with loops, more actuators than freedom and losses, on a fixed and on a floating base; and comparisons."""

from functools import cache

import numpy as np
from conftest import seeded_generator

import psdyn_ros

from .general_machines import general_machine, general_state
from .general_oracle import GeneralOracle

# 3 DoF and 4 actuators on a fixed base; the same loops and no more actuators on a floating one
KINDS = ['five_bar', 'twin_cylinders']


@cache
def made(name):
    """Return (machine, oracle, manipulator, state)."""
    rng = seeded_generator(name)
    machine = general_machine(rng, KINDS, floating=name == 'floating', friction=True)
    oracle = GeneralOracle(machine.xml, machine.gravity, coordinates=machine.coordinates)
    m = psdyn_ros.load(machine.xml, gravity=machine.gravity, coordinates=machine.coordinates)
    return machine, oracle, m, general_state(machine, oracle, rng)


def error(computed, expected):
    return np.abs(np.asarray(computed) - expected).max(initial=0) / (1 + np.abs(expected).max(initial=0))


def same(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
