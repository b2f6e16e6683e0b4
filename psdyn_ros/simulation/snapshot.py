"""A plant at the instant of a fault as a file, and the step that failed done again from it.

    python3 -m psdyn_ros.simulation.snapshot fault.npz

The file holds everything: the machine as text, state, commands, what acted on it, what was broken, seed and step.
"""

import argparse
import json
import os
import sys
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from ..api.environment import BaseMotion
from ..api.load import load
from ..model.errors import ModelError, PsdynError, shorten
from .external_forces import ExternalForces
from .plant import Plant

FORMAT = 'psdyn_ros plant snapshot 1'
MAX_BYTES = 64 * 1024 * 1024
UNUSABLE = 2


@dataclass(frozen=True)
class Machine:
    """What a plant was made from."""

    urdf: str
    """Its text."""
    initial: dict = field(default_factory=dict)
    """{joint: position} that picks the assembly mode."""
    loops_file: str = ''
    """Path of a YAML file, or empty."""
    allow_unphysical: bool = False
    hydraulics: str = ''
    """Text of a YAML file, or empty: force level."""
    external_forces: dict = field(default_factory=dict)


def write_snapshot(path, plant, machine, *, base=None, wrenches=None, seed=0, notes=None):
    """Write the plant, made from a `Machine`, into a file.

    base      `BaseMotion` it was under, or None
    wrenches  {link: (force, moment)} it was under
    notes     what else a reader may want to know, {name: text or number}
    Raises OSError where it cannot be written.
    """
    state = plant.snapshot()
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    about = {
        'format': FORMAT, 'machine': asdict(machine), 'seed': seed, 'notes': notes or {},
        'base': None if base is None else [list(map(float, row)) for row in base],
        'wrenches': {link: [list(map(float, row)) for row in wrench] for link, wrench in (wrenches or {}).items()},
        'state': {name: value for name, value in state.items() if name not in arrays}}
    part = Path(f'{path}.part')
    with open(part, 'wb') as file:
        np.savez_compressed(file, about=np.array(json.dumps(about, default=float)), **arrays)
    os.replace(part, path)      # a file with the final name is whole


def read_snapshot(path):
    """Return (what it says about itself, {name: value} for `restore`) of a file; ModelError where it is no snapshot."""
    try:
        size = os.path.getsize(path)
        if size > MAX_BYTES:
            raise ModelError(f"snapshot '{path}' has {size} bytes; at most {MAX_BYTES} are read")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop('about')))
        state = {**about['state'], **arrays}
    except OSError as error:
        raise ModelError(f"snapshot '{path}': {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ModelError(f"'{path}' is no snapshot of a plant: {shorten(str(error))}") from error
    if about.get('format') != FORMAT:
        raise ModelError(f"snapshot '{path}' says of itself '{shorten(str(about.get('format')))}'; expected '{FORMAT}'")
    return about, state


def restore(path):
    """Return the plant of a file as it was before the step that failed."""
    about, state = read_snapshot(path)
    try:
        machine = Machine(**about['machine'])
        plant = _plant(machine, state)
        base = None if about['base'] is None else BaseMotion(*map(tuple, about['base']))
        # first the state: no plant needs to stand at its start under what acted on it later
        plant.restore(state)
        plant.set_environment(base, {link: tuple(wrench) for link, wrench in about['wrenches'].items()} or None)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"snapshot '{path}' is not whole: {error!r}") from error
    return plant


def _plant(machine, state):
    manipulator = load(machine.urdf, initial=machine.initial, loops_file=machine.loops_file or None,
                       allow_unphysical=machine.allow_unphysical)
    period, substeps = float(state['period']), int(state['substeps'])
    if not machine.hydraulics:
        forces = ExternalForces(manipulator, machine.external_forces) if machine.external_forces else None
        return Plant(manipulator, period=period, substeps=substeps, command_timeout=float(state['command_timeout']),
                     external_forces=forces)
    # who replays a plant without hydraulics needs none of its kernels
    from ..model.parameters.hydraulics import read_hydraulics
    from .hydraulic_plant import HydraulicPlant
    hydraulics = read_hydraulics(machine.hydraulics, manipulator.actuators)
    return HydraulicPlant(manipulator, hydraulics, period=period, substeps=substeps, ttl=float(state['ttl']),
                          modes=dict(zip(state['actuators'], state['modes'])), seed=int(state['seed']))


def replay(path, periods=1):
    """Return the plant of a file after so many periods from before the step that failed; `fault` says how that went."""
    plant = restore(path)
    plant.step(None, periods * plant.period)
    return plant


def main(args=None):
    """Replay the file named on the command line; 0 where the step failed again, 1 where it did not."""
    parser = argparse.ArgumentParser(prog='python3 -m psdyn_ros.simulation.snapshot',
                                     description='Do the step that failed again.')
    parser.add_argument('file', help='snapshot that the simulator wrote')
    options = parser.parse_args(args)
    try:
        about, state = read_snapshot(options.file)
        plant = restore(options.file)
        print(f"{plant.manipulator.name}, step {plant.steps}, t = {plant.time:.6g} s, seed {about['seed']}")
        for name, value in (*about['notes'].items(), ('fault', state['fault']), ('x', plant.x), ('xd', plant.xd),
                            ('command', state['command'])):
            print(f'  {name}: {value}')
        plant.step(None, plant.period)
    except PsdynError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    print(f'again: {plant.fault}' if plant.fault else 'the step does not fail again')
    return 0 if plant.fault else 1


if __name__ == '__main__':
    sys.exit(main())
