"""`psdyn simulate`: a machine under commands from a file, offline, into a bag."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from ..api.load import load
from ..model.errors import ModelError
from ..model.locate import find_config, find_machine
from ..model.parameters.hydraulics import read_hydraulics
from ..model.parameters.sensors import read_sensors
from ..model.text_file import read_text
from ..model.units import number_text
from ..simulation.command_file import read_commands
from ..simulation.faults import FaultInjector, read_faults
from ..simulation.hydraulic_plant import HydraulicPlant
from ..simulation.plant import Plant
from ..simulation.sensors.kinds import channels_of, mountable
from ..simulation.sensors.plant_sensors import PlantSensors
from ..simulation.sensors.readings import exact_readings
from ..simulation.snapshot import Machine, write_snapshot
from ..simulation.study import Study
from .bags.simulated_bag import SimulatedBag
from .playback import write_playback

SNAPSHOT = 'snapshot.npz'
TTL = 0.1                       # s of simulated time; commands from a file never age


class Outcome(NamedTuple):
    """What came of a run.

    bag          path of the bag
    simulated    s of the machine's time
    elapsed      s that it took
    messages     written
    fault        why the plant stopped; empty where it did not
    snapshot     path of the snapshot of a plant that stopped, or None
    playback     path of a page that plays the run back, or None where it has a floating base or is too short
    table        rows of text, the header first: range of every actuator and its pressures
    """

    bag: Path
    simulated: float
    elapsed: float
    messages: int
    fault: str
    snapshot: Path
    playback: Path
    table: tuple


@dataclass(frozen=True, kw_only=True)
class Run:
    """What is simulated, and how.

    hydraulics  YAML file; '' for the force level, None for that of the machine of the package, where it has one
    sensors     YAML file, or None for exact readings
    faults      YAML file with a schedule, or None
    modes       {actuator: command mode}
    initial     {joint: position}, see `load`
    duration    s; None: 1 s beyond the last command
    period, substeps  s of a step of the plant, and integration steps in it
    log_rate    Hz at which states go into the bag
    seed        of sensors and faults
    """

    hydraulics: str | None = None
    sensors: str | None = None
    faults: str | None = None
    modes: dict | None = None
    initial: dict | None = None
    duration: float | None = None
    period: float = 1e-3
    substeps: int = 2
    log_rate: float = 100.0
    seed: int = 0


def simulate_into_bag(machine, commands, output, run=None, *, quiet=False):
    """Run a plant under the commands of a file and write what happens into the new bag `output`; returns an `Outcome`.

    machine  URDF file, or the name of a machine of the package, which brings its hydraulics
    run      `Run`; None: defaults
    """
    run = run or Run()
    output = Path(output)
    if output.exists() and any(output.iterdir() if output.is_dir() else [output]):
        raise ModelError(f"output '{output}' exists and will not be overwritten; expected a new folder")
    manipulator = load(machine, initial=run.initial)
    hydraulics = run.hydraulics
    if hydraulics is None and not Path(machine).is_file():
        hydraulics = find_config(f'{machine}_hydraulics.yaml')
    plant = _plant(manipulator, hydraulics, run)
    table = read_commands(commands, list(manipulator.actuators), all_or_none=not hydraulics)
    bank = None
    if run.sensors or run.faults:
        settings = read_sensors(run.sensors, channels_of(plant), mountable=mountable(plant)) if run.sensors else None
        bank = PlantSensors(plant, settings, run.seed)
    injector = FaultInjector(bank.bank, plant, read_faults(run.faults), run.seed) if run.faults else None
    study = Study(plant, table, sensors=bank, faults=injector)
    duration = float(table.times[-1]) + 1.0 if run.duration is None else run.duration
    if output.exists():
        output.rmdir()
    ranges = _Ranges(plant)
    started = time.perf_counter()
    with SimulatedBag(output, plant.cylinders, bank.mounted if bank else ()) as bag, \
            tqdm(total=duration, unit='s', disable=True if quiet else None, leave=False,
                 bar_format='{desc}{bar} {n:.1f} of {total:.1f} s') as bar:
        for readings in study.run(duration, 1.0 / run.log_rate):
            bag.write(plant, readings, exact_readings(plant))
            ranges.add()
            bar.update(plant.time - bar.n)
        messages = bag.messages
    snapshot = None
    if plant.fault:
        snapshot = output / SNAPSHOT
        made_from = Machine(urdf=read_text(find_machine(machine)), initial=run.initial or {},
                            hydraulics=read_text(hydraulics) if hydraulics else '')
        write_snapshot(snapshot, plant, made_from, seed=run.seed)
    elapsed = time.perf_counter() - started
    playback = write_playback(output, output, manipulator, hydraulics=getattr(plant, 'hydraulics', None))
    return Outcome(output, plant.time, elapsed, messages, plant.fault, snapshot, playback, tuple(ranges.table()))


def _plant(manipulator, hydraulics, run):
    if hydraulics:
        return HydraulicPlant(manipulator, read_hydraulics(hydraulics, manipulator.actuators), period=run.period,
                              substeps=run.substeps, ttl=TTL, modes=run.modes, seed=run.seed)
    if run.modes and set(run.modes.values()) != {'effort'}:
        raise ModelError(f"'{manipulator.name}' has no hydraulics here, so every command mode is effort")
    return Plant(manipulator, period=run.period, substeps=run.substeps, command_timeout=TTL)


class _Ranges:
    """Lowest and highest of what the actuators do."""

    def __init__(self, plant):
        self._plant = plant
        self._low, self._high = np.inf, -np.inf

    def add(self):
        plant = self._plant
        names, position, velocity, _ = plant.manipulator.joint_state(plant.x, plant.xd)
        columns = [names.index(name) for name in plant.manipulator.actuators]
        pressures = np.full((len(columns), 2), np.nan)
        for name, row in zip(plant.cylinders, getattr(plant, 'telemetry', ())):
            pressures[plant.manipulator.actuators.index(name)] = row[:2]
        now = np.column_stack((position[columns], velocity[columns], plant.force, 1e-5 * pressures))
        self._low, self._high = np.minimum(self._low, now), np.maximum(self._high, now)

    def table(self):
        yield 'actuator', 'position [m, rad]', 'velocity [m/s, rad/s]', 'force [N, N m]', 'p_a [bar]', 'p_b [bar]'
        for name, low, high in zip(self._plant.manipulator.actuators, self._low, self._high):
            yield (name, *(_range(a, b) if a == a else '' for a, b in zip(low, high)))


def _range(low, high):
    scale = max(abs(low), abs(high))
    return f'{number_text(low, scale)} to {number_text(high, scale)}'
