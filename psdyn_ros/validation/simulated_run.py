"""`psdyn simulate`: a machine under commands from a file, offline, into a bag."""
from __future__ import annotations

import math
import time
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from tqdm import tqdm

from ..api.load import load
from ..model.errors import ModelError
from ..model.locate import find_config, find_machine
from ..model.parameters.hydraulics import read_hydraulics
from ..model.parameters.sensors import read_sensors
from ..model.text_file import read_text
from ..simulation.command_file import read_commands
from ..simulation.faults import FaultInjector, read_faults
from ..simulation.hydraulic_plant import HydraulicPlant
from ..simulation.plant import Plant
from ..simulation.sensors.kinds import channels_of, mountable
from ..simulation.sensors.plant_sensors import PlantSensors
from ..simulation.sensors.readings import exact_readings
from ..simulation.snapshot import Machine, write_snapshot
from ..simulation.study import Study
from .bags.recording import check_unused
from .bags.simulated_bag import SimulatedBag
from .simulated_states import SimulatedStates

SNAPSHOT = 'snapshot.npz'
WHOLE = 2e-3                    # share by which the log rate may miss a whole number of steps
TTL = 0.1                       # s of simulated time; commands from a file never age


class Outcome(NamedTuple):
    """What came of a run.

    bag          path of the bag
    simulated    s of the machine's time
    elapsed      s that it took
    messages     written
    fault        why the plant stopped; empty where it did not
    snapshot     path of the snapshot of a plant that stopped, or None
    report       path of the page about the run, with pictures and a playback
    table        rows of text, the header first: range of every actuator and its pressures
    """

    bag: Path
    simulated: float
    elapsed: float
    messages: int
    fault: str
    snapshot: Path
    report: Path
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
    log_rate    Hz at which states go into the bag, after whole steps
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


def simulate_into_bag(machine: str | PathLike[str], commands: str | PathLike[str], output: str | PathLike[str],
                      run: Run | None = None, *, quiet: bool = False) -> Outcome:
    """Run a plant under the commands of a file and write what happens into the new bag `output`; returns an `Outcome`.

    machine  URDF file, or the name of a machine of the package, which brings its hydraulics
    run      `Run`; None: defaults
    """
    run, machine, commands, output = run or Run(), fspath(machine), fspath(commands), Path(output)
    check_unused(output)
    _check_log_rate(run)
    manipulator = load(machine, initial=run.initial)
    hydraulics = run.hydraulics
    if hydraulics is None and not Path(machine).is_file():
        hydraulics = find_config(f'{machine}_hydraulics.yaml')
    plant = _plant(manipulator, hydraulics, run)
    modes = getattr(plant, 'modes', ('effort',) * len(manipulator.actuators))
    table = read_commands(commands, list(manipulator.actuators), all_or_none=not hydraulics, openings=[
        name for name, mode in zip(manipulator.actuators, modes) if mode == 'valve'])
    bank = None
    if run.sensors or run.faults:
        settings = read_sensors(run.sensors, channels_of(plant), mountable=mountable(plant)) if run.sensors else None
        bank = PlantSensors(plant, settings, run.seed)
    injector = FaultInjector(bank.bank, plant, read_faults(run.faults), run.seed) if run.faults else None
    study = Study(plant, table, sensors=bank, faults=injector)
    duration = float(table.times[-1]) + 1.0 if run.duration is None else run.duration
    if output.exists():
        output.rmdir()
    states = SimulatedStates(plant)
    started = time.perf_counter()
    with SimulatedBag(output, plant.cylinders, bank.mounted if bank else ()) as bag, \
            tqdm(total=duration, unit='s', disable=True if quiet else None, leave=False,
                 bar_format='{desc}{bar} {n:.1f} of {total:.1f} s') as bar:
        for readings in study.run(duration, 1.0 / run.log_rate):
            bag.write(plant, readings, exact_readings(plant))
            states.add()
            bar.update(plant.time - bar.n)
        messages = bag.messages
    snapshot = None
    if plant.fault:
        snapshot = output / SNAPSHOT
        made_from = Machine(urdf=read_text(find_machine(machine)), initial=run.initial or {},
                            hydraulics=read_text(hydraulics) if hydraulics else '')
        write_snapshot(snapshot, plant, made_from, seed=run.seed)
    elapsed = time.perf_counter() - started
    facts = {
        'machine': f'{machine}, {manipulator.dof} degrees of freedom, {manipulator.total_mass:.2f} kg',
        'commands': commands, 'hydraulics': hydraulics or 'none, efforts act on the mechanism',
        'sensors': run.sensors or 'exact', 'faults': run.faults or 'none', 'seed': run.seed,
        'plant': f'steps of {run.period:g} s, {run.substeps} of the solver in each',
        'took': f'{elapsed:.2f} s, {plant.time / elapsed:.0f} times faster than real time',
        'recording': f'{output}, {messages} messages (MCAP)'}
    from .report.simulated_report import write_report  # figures take a second to import
    report = write_report(output, manipulator, states, modes, plant.fault, facts)
    return Outcome(output, plant.time, elapsed, messages, plant.fault, snapshot, report, tuple(states.ranges()))


def _check_log_rate(run):
    """Raise ModelError where there is no whole number of steps between states."""
    steps = 1.0 / (run.log_rate * run.period)
    if abs(steps - max(round(steps), 1)) > WHOLE * steps:
        counts = filter(None, (math.ceil(steps), math.floor(steps)))
        near = ' or '.join(f'{1.0 / (count * run.period):.6g}' for count in counts)
        raise ModelError(f'log rate {run.log_rate:g} Hz: states are logged after whole steps of {run.period:g} s; '
                         f'expected {near} Hz')


def _plant(manipulator, hydraulics, run):
    if hydraulics:
        return HydraulicPlant(manipulator, read_hydraulics(hydraulics, manipulator.actuators), period=run.period,
                              substeps=run.substeps, ttl=TTL, modes=run.modes, seed=run.seed)
    if run.modes and set(run.modes.values()) != {'effort'}:
        raise ModelError(f"'{manipulator.name}' has no hydraulics here, so every command mode is effort")
    return Plant(manipulator, period=run.period, substeps=run.substeps, command_timeout=TTL)
