"""A plant, its sensors and its faults, as the parameters of the simulator ask for them."""

from typing import NamedTuple

import numpy as np

from ...api.environment import find_link
from ...model.joint_positions import joint_positions
from ...model.parameters.faults import read_faults
from ...model.parameters.sensors import read_sensors
from ...model.text_file import read_text
from ...simulation.external_forces import ExternalForces
from ...simulation.faults import FaultInjector
from ...simulation.plant import Plant
from ...simulation.sensors.kinds import channels_of, mountable
from ...simulation.sensors.plant_sensors import PlantSensors
from ...simulation.snapshot import Machine
from ..runtime import deadlines, parameters
from ..runtime.parameters import ParameterError
from ..runtime.robot_description import load_machine
from .parameters import command_modes, initial_positions

MAX_HYDRAULICS = 256 * 1024     # bytes of the file


class Setup(NamedTuple):
    """What a simulator works with."""

    plant: object
    """`Plant` or `HydraulicPlant`."""
    modes: tuple
    """Of its actuators, what commands mean."""
    sensors: PlantSensors
    faults: FaultInjector
    source: Machine
    """What the plant was made from."""
    forces: tuple
    """Names of external forces on it."""
    measured: tuple
    """Names of the joints in joint_states."""


def build(node, p):
    """The `Setup` of a node with parameters p; PsdynError names what does not fit, RateError a rate beyond reach."""
    m = load_machine(node, p)
    # what names do not exist is said before anything is compiled
    measured = parameters.joint_names(p.measured_joints, 'parameter measured_joints', m.joints)
    if p.tool_link:
        find_link(m.machine, p.tool_link)
    joints = parameters.declare_map(node, initial_positions(m))
    start = np.concatenate([m.initial_position[:m.nx - len(joints)], joints])
    given = parameters.below(node, 'external_forces')
    source = Machine(m.machine.description.text, joint_positions(p.assembly, 'parameter assembly'), p.loops_file,
                     p.allow_unphysical, read_text(p.hydraulics, MAX_HYDRAULICS) if p.hydraulics else '', given)
    make, modes, forces = _hydraulic(node, p, m, start, given) if p.hydraulics else _force_level(p, m, start, given)
    sensed = make()
    settings = read_sensors(p.sensors, channels_of(sensed), p.sensor_set, mountable(sensed)) if p.sensors else None
    schedule = read_faults(p.faults) if p.faults else ()
    deadlines.require_rate(p.rate * (p.real_time_factor or 1.0), _trial_step(make(), modes, settings),
                        'one step of the plant')
    plant = make()
    sensors = PlantSensors(plant, settings, p.seed)
    return Setup(plant, modes, sensors, FaultInjector(sensors.bank, plant, schedule, p.seed), source, forces, measured)


def _force_level(p, manipulator, start, given):
    forces = ExternalForces(manipulator, given) if given else None

    def make():
        return Plant(manipulator, period=1.0 / p.rate, substeps=p.substeps, command_timeout=p.command_timeout,
                     position=start, external_forces=forces)
    return make, ('effort',) * len(manipulator.actuators), forces.names if forces else ()


def _hydraulic(node, p, manipulator, start, given):
    # without hydraulics nobody waits for its kernels
    from ...api.hydraulics.checks import check_hydraulics
    from ...model.parameters.hydraulics import read_hydraulics
    from ...simulation.hydraulic_plant import HydraulicPlant
    if given:
        raise ParameterError('parameters external_forces: not with hydraulics; wrenches come on ~/tool_wrench')
    hydraulics = read_hydraulics(p.hydraulics, manipulator.actuators)
    for warning in check_hydraulics(manipulator, hydraulics):
        node.get_logger().warning(warning)
    table = command_modes(hydraulics)
    modes = dict(zip(hydraulics.command_modes, parameters.declare_map(node, table)))

    def make():
        return HydraulicPlant(manipulator, hydraulics, period=1.0 / p.rate, substeps=p.substeps, ttl=p.ttl,
                              position=start, modes=modes, seed=p.seed)
    return make, tuple(modes[name] for name in manipulator.actuators), ()


def _trial_step(plant, modes, settings):
    """What one step of the plant costs, as a function to call."""
    command = np.where(np.array(modes) == 'effort', plant.force, 0.0)
    sensors = PlantSensors(plant, settings, 0)

    def work():
        plant.step(command, plant.period)
        sensors.sample(plant)
    return work
