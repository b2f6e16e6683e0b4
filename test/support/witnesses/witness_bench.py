"""A manipulator and its witnesses, for tests of either."""

from psdyn_ros.formulations.adapters import FORMULATIONS, Mechanism, call_witnesses
from psdyn_ros.formulations.cross_check import compare

from ..general_machines import general_machine
from ..machines import load

NOC, TITOP, DENOC, PAZ = FORMULATIONS
TIGHT = 1e-10       # what healthy machines have to reach; less than what users are told


def mechanism_of(manipulator, description=None):
    """Return what the formulations make of a manipulator's description, or of another one."""
    m = manipulator
    return Mechanism(description or m.machine.description, m.coordinates, m.actuators, m.gravity)


def posture_of(manipulator, mechanism):
    """Return the posture at the initial position."""
    x = manipulator.initial_position
    names, q, *_ = manipulator.joint_state(x)
    return mechanism.posture(x, dict(zip(names, q)))


def examine(manipulator, description=None, states=3, seed=0):
    """Compare a manipulator with the witnesses of its own, or of another, description."""
    mechanism = mechanism_of(manipulator, description)
    witnesses = call_witnesses(mechanism, posture_of(manipulator, mechanism))
    return compare(manipulator, mechanism, witnesses, states, seed)


def applying(result):
    """Return the names of the formulations that apply."""
    return {name for name, reason in result.reasons.items() if not reason}


def general(rng, kinds, **options):
    """Return the manipulator of a random general machine."""
    machine = general_machine(rng, kinds, **options)
    return load(machine, coordinates=machine.coordinates)
