"""The loader crane on valves with its hanging load: plain sensors, delay, wrong models, and how the load swings."""

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

from ...api.load import load
from ...control.core.assembly import ControllerConfig, assemble
from ...control.laws.passive_states import MEASURED
from ...control.laws.payload_model import LoadModel
from ...control.reference.swing_shaper import NONE
from ...control.reference.trajectory import Waypoints
from ...model.locate import find_config, find_machine
from ...simulation.hydraulic_plant import HydraulicPlant
from .tracking_runs import EXACT, PLANT_PERIOD, TTL, Mismatch, PlainSensors, closed_loop, mistaken, scale_inertial

CRANE, LOAD, ROPE = 'loader_crane', 'load', ('hook', 'hook_mount')     # link, and what has its length from the rope
PASSIVE = 'hook_pitch', 'hook_roll'
RELEASED = 10.0             # degrees
LATE, LATER = 1, 3          # periods of 2 ms: 2 ms, and the first whole number of them that is not less than 5 ms
SETTLED = 0.3               # s after the end of a reference from which swing counts as what is left
EVERY = 10                  # cycles between two instants at which swing is looked at


@dataclass(frozen=True)
class Pendulum:
    """Factors by which the controller's model of the load is wrong; friction of its two joints."""

    mass: float = 1.0
    length: float = 1.0
    friction: float = 1.0


RIGHT = Pendulum()
PENDULUMS = tuple(Pendulum(*factors) for factors in product((0.8, 1.2), (0.8, 1.2), (0.5, 2.0)))


@dataclass(frozen=True)
class Case:
    """One run; the plant is the machine of the package, the model of the controller may be wrong."""

    way: tuple = ()             # m, rad of the driven joints from where the crane starts; none: it holds
    moving: float = 3.0         # s of that
    seconds: float = 6.0        # s of the run
    source: str = MEASURED      # of the passive states; joint states have them with 'measured' alone
    released: tuple = (0.0, 0.0)    # degrees of the passive joints from where the load hangs at the start
    shaper: str = NONE
    damped: bool = False        # actively, within the deviations of the crane's safety file
    mismatch: Mismatch = EXACT
    pendulum: Pendulum = RIGHT
    late: int = LATE            # periods between a measurement and the command that answers it


class Outcome(NamedTuple):
    """What came of a case."""

    rms: np.ndarray             # (4,) m, rad of the driven joints, while the reference was followed
    swing: np.ndarray           # (N,) rad from where the load hangs at rest
    time: np.ndarray            # (N,) s
    ended: float                # s, of the last motion of the reference
    sound: bool                 # whether nothing stopped the crane

    @property
    def left(self):
        """Largest swing [rad] after the motion."""
        return float(self.swing[self.time > self.ended + SETTLED].max())

    def largest(self, k):
        """Largest swing [rad] in period k of the load."""
        period = swing_period()
        return float(self.swing[(self.time >= k * period) & (self.time < (k + 1) * period)].max())


@lru_cache
def config():
    """`ControllerConfig` of the crane on its valves."""
    return ControllerConfig.from_files(find_machine(CRANE), find_config(f'{CRANE}_hydraulics.yaml'),
                                       safety=find_config(f'{CRANE}_safety.yaml'))


@lru_cache
def crane(inertia=1.0, pendulum=RIGHT):
    """The crane, all its masses and moments of inertia multiplied, with a pendulum that is wrong."""
    tree = ElementTree.fromstring(Path(find_machine(CRANE)).read_bytes())
    for link in tree.iter('link'):
        inertial = link.find('inertial')
        if inertial is not None:
            scale_inertial(inertial, inertia * (pendulum.mass if link.get('name') == LOAD else 1.0))
    for part in tree.iter():
        if part.get('name') in ROPE and part.tag in ('link', 'joint'):
            origin = part.find('inertial/origin' if part.tag == 'link' else 'origin')
            origin.set('xyz', ' '.join(repr(pendulum.length * float(one)) for one in origin.get('xyz').split()))
        if part.get('name') in PASSIVE and part.tag == 'joint':
            dynamics = part.find('dynamics')
            if dynamics is not None:        # not that of <ros2_control>
                dynamics.set('damping', repr(pendulum.friction * float(dynamics.get('damping'))))
    return load(ElementTree.tostring(tree, encoding='unicode'))


@lru_cache
def swung():
    """`PassiveStates` of the true crane."""
    return LoadModel(config().machine).passive


@lru_cache
def swing_period():
    """s of the slowest swing where the crane starts."""
    return 2.0 * np.pi / float(swung().modes(config().machine.driven_machine.initial_position)[0].min())


def believing(case):
    """The `ControllerConfig` of a case, with its wrong model."""
    c, off = config(), case.mismatch
    return replace(c, machine=crane(off.inertia, case.pendulum), hydraulics=mistaken(c.hydraulics, off),
                   passive_states=case.source, swing_shaper=case.shaper,
                   swing_damping=c.swing_damping if case.damped else 0.0)


def run(case):
    """The `Outcome` of a case."""
    c, true = believing(case), config().machine
    hangs = np.array([name in PASSIVE for name in true.coordinates])
    start = true.initial_position.copy()
    start[hangs] += np.radians(case.released)
    plant = HydraulicPlant(true, config().hydraulics, period=PLANT_PERIOD, ttl=TTL, position=start)
    sensors, core = PlainSensors(), assemble(c)

    def read(plant):
        x, xd, pressures = sensors.read(plant)
        if case.source != MEASURED:
            x[hangs] = xd[hangs] = np.nan
        return x, xd, pressures

    loop = closed_loop(core, plant, case.late, read)
    if case.way:
        zero, begin = np.zeros((2, len(case.way))), start[~hangs]
        loop.send(Waypoints(core.manipulator.coordinates, [0.0, case.moving], [begin, begin + case.way], zero, zero))
    return outcome(loop.run(case.seconds).recording(), hangs, case.late)


def outcome(record, hangs, late):
    """The `Outcome` of a `Recording`; hangs (dof,) bool: passive joints; late: periods of its measurements."""
    wanted, moved = record.desired[late:, 0], record.x[:len(record.x) - late, ~hangs]
    followed = np.isfinite(wanted[:, 0])
    rms = np.sqrt(np.mean((wanted[followed] - moved[followed])**2, axis=0))
    rows = slice(None, None, EVERY)
    rest = np.array([swung().resting(x[~hangs])[hangs] for x in record.x[rows]])
    moving = np.flatnonzero(np.abs(np.nan_to_num(record.desired[:, 1])).max(axis=1) > 1e-6)
    return Outcome(rms, np.linalg.norm(record.x[rows, hangs] - rest, axis=1), record.time[rows],
                   float(record.time[moving[-1]]) if moving.size else 0.0, record.reasons == ())
