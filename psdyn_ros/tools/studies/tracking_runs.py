"""A controller of the crane on valves: references, mismatch of its model, plain sensors, delay, and its errors."""

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from ...api.load import load
from ...control.closed_loop import ClosedLoop, Measurement
from ...control.core.assembly import ControllerConfig, assemble
from ...control.reference.trajectory import Waypoints
from ...control.safety.fault_table import State
from ...kernels.hydraulics.records import PRESSURE_A, PRESSURE_B
from ...model.locate import find_config, find_machine
from ...model.parameters.hydraulics import read_hydraulics
from ...simulation.hydraulic_plant import HydraulicPlant

CRANE = 'hiab_xs031'
CYLINDERS = ('lift_cylinder', 'tilt_cylinder', 'telescope')
LADEN = 'telescope_link'    # carries the payload at its tip
PERIOD = 0.002              # s
PLANT_PERIOD = 1e-3
TTL = 0.02                  # s
QUANTUM, NOISE = 1e-4, 2e-5                         # m of a stroke, of a 14-bit encoder on the boom
RATE_NOISE = 1e-3                                   # m/s
PRESSURE_QUANTUM, PRESSURE_NOISE = 6e3, 5e4         # Pa
# with static friction the seals turn round sharply, or the peak would be rounded off
STRIBECK_SLIP, STRIBECK_VELOCITY = 1e-3, 5e-3       # m/s
SEED = 5
LOOP_GAINS = ('stiffness', 'damping', 'integral', 'flow_stiffness', 'flow_integral', 'force_gain', 'proportional',
              'derivative', 'force_integral')
TORQUE, PID = 'valve_computed_torque', 'valve_pid'


@dataclass(frozen=True)
class Mismatch:
    """Factors by which the law's model of the crane is wrong; friction of the seals, gain of the valves."""

    inertia: float = 1.0
    areas: float = 1.0
    valves: float = 1.0
    friction: float = 1.0


EXACT = Mismatch()
CORNERS = tuple(Mismatch(inertia, areas, valves, 0.9 if (inertia > 1.0) ^ (areas > 1.0) ^ (valves > 1.0) else 1.1)
                for inertia, areas, valves in product((0.9, 1.1), (0.95, 1.1), (0.97, 1.05)))


@dataclass(frozen=True)
class Case:
    """One run.

    law       TORQUE or PID
    stribeck  N that static friction is above Coulomb's, of which the law does not know
    late      periods between a measurement and the command that answers it
    louder    factor of all gains of the loops
    payload   kg more, or less, than the law knows of
    rest      s at the end of the reference that are added, to see whether it comes to rest
    """

    law: str = TORQUE
    reference: str = 'demonstration'
    mismatch: Mismatch = EXACT
    stribeck: float = 0.0
    late: int = 1
    louder: float = 1.0
    payload: float = 0.0
    rest: float = 0.0


@lru_cache
def crane(inertia=1.0, payload=0.0, name=CRANE):
    """A machine, all its masses and moments of inertia multiplied, and `payload` kg more at the tip of the crane."""
    tree = ElementTree.fromstring(Path(find_machine(name)).read_bytes())
    for link in tree.iter('link'):
        inertial = link.find('inertial')
        if inertial is None:
            continue
        factor = inertia
        if link.get('name') == LADEN:
            factor *= 1.0 + payload / float(inertial.find('mass').get('value'))
        scale_inertial(inertial, factor)
    return load(ElementTree.tostring(tree, encoding='unicode'))


def scale_inertial(inertial, factor):
    """Multiply mass and moments of inertia of an <inertial>."""
    mass, moments = inertial.find('mass'), inertial.find('inertia')
    mass.set('value', repr(factor * float(mass.get('value'))))
    for name, value in moments.items():
        moments.set(name, repr(factor * float(value)))


@lru_cache
def oil():
    """`Hydraulics` of the crane."""
    return read_hydraulics(find_config(f'{CRANE}_hydraulics.yaml'), crane().actuators)


def mistaken(hydraulics, mismatch):
    """`Hydraulics` of cylinders, racks and axes that are wrong by a `Mismatch`."""
    drives, axes, areas, share = {}, {}, mismatch.areas, mismatch.friction

    def scaled(friction):
        return friction and replace(friction, coulomb=share * friction.coulomb, viscous=share * friction.viscous)

    for name, one in hydraulics.cylinders.items():
        flows = tuple(mismatch.valves * flow for flow in one.valve.nominal_flow)
        drives[name] = replace(one, bore=areas**0.5 * one.bore, rod=areas**0.5 * one.rod,
                               friction=scaled(one.friction), valve=replace(one.valve, nominal_flow=flows))
    for name, one in hydraulics.axes.items():
        axes[name] = replace(one, friction=scaled(one.friction))
    return replace(hydraulics, cylinders=drives, axes=axes)


# references


def through(start, moves, duration):
    """`Waypoints` of quintics from rest to rest.

    start  (dof,); moves: (coordinate, from s, to s, how far), which must not overlap on one coordinate
    """
    machine = crane()
    times = np.array(sorted({0.0, duration, *(t for _, *span, _ in moves for t in span)}))
    motion = np.zeros((3, times.size, machine.dof))
    motion[0] = start
    for i, begin, end, way in moves:
        s = np.clip((times - begin) / (end - begin), 0.0, 1.0)
        motion[:, :, i] += way * np.array([s**3 * (10 - 15 * s + 6 * s**2),
                                           30 * (s * (1 - s))**2 / (end - begin),
                                           60 * s * (1 - s) * (1 - 2 * s) / (end - begin)**2])
    return Waypoints(machine.coordinates, times, *motion)


def out_and_back(start, travel):
    """Every cylinder out and back, its travel [m] from start [m]."""
    spans = ((0.5, 4.5, 5.0, 9.0), (0.5, 4.0, 5.0, 8.5), (1.0, 4.0, 5.5, 9.0))
    moves = []
    for i, (way, (leave, arrive, turn, back)) in enumerate(zip(travel, spans), 1):
        moves += [(i, leave, arrive, way), (i, turn, back, -way)]
    return through([0.0, *start], moves, 10.0)


def wandering(seed, duration=12.0):
    """Random strokes at random times, every axis on its own, slewing too."""
    rng = np.random.default_rng(seed)
    ranges = ((-0.6, 0.6), (0.14, 0.40), (0.12, 0.42), (0.15, 0.60))
    speeds = (0.5, 0.10, 0.10, 0.16)        # rad/s, m/s at most
    start, moves = np.array([0.0, 0.2, 0.2, 0.2]), []
    for i, ((low, high), speed) in enumerate(zip(ranges, speeds)):
        t, here = rng.uniform(0.4, 1.2), start[i]
        while True:
            there = rng.uniform(low, high)
            seconds = max(1.875 * abs(there - here) / (speed * rng.uniform(0.5, 1.0)), 0.8)
            if t + seconds > duration - 0.5:
                break
            moves.append((i, t, t + seconds, there - here))
            here, t = there, t + seconds + rng.choice([0.0, rng.uniform(0.1, 0.6)])
    return through(start, moves, duration)


REFERENCES = {
    'demonstration': lambda: out_and_back((0.20, 0.20, 0.20), (0.18, 0.18, 0.25)),
    'reaching out': lambda: out_and_back((0.25, 0.20, 0.50), (0.20, 0.18, 0.25)),
    'heavy': lambda: out_and_back((0.28, 0.20, 0.70), (0.18, 0.18, 0.30)),
    'wandering': lambda: wandering(SEED),
}


def load_share(waypoints, steps=400):
    """(3,) largest share of the force, between supply and return pressure, that the cylinders need on the way."""
    law = assemble(configured(PID)).law     # its reference and its model alone: no loop is closed
    law.hold(waypoints.positions[0])
    law.reference.follow(waypoints, 0.0)
    high, low = float(law.supply['pressure'][0]), float(law.supply['return_pressure'][0])
    push = high * law.cylinders['area_a'] - low * law.cylinders['area_b']
    pull = high * law.cylinders['area_b'] - low * law.cylinders['area_a']
    share = np.zeros(3)
    for t in np.linspace(0.0, waypoints.times[-1], steps):
        x, xd, xdd = (np.array(row) for row in law.reference.ahead(t))
        rubbing = law.axes['coulomb'] * np.tanh(xd / law.axes['slip']) + law.axes['viscous'] * xd
        force = (law.load.inverse_dynamics(x, xd, xdd) + rubbing)[law.cylinders['axis']]
        share = np.maximum(share, np.where(force > 0.0, force / push, -force / pull))
    return share


# one run


class PlainSensors:
    """Strokes, their rates and pressures as a plain machine measures them."""

    def __init__(self, seed=1):
        self._rng = np.random.default_rng(seed)

    def read(self, plant):
        """(x, xd, pressures (cylinders, 2))."""
        normal = self._rng.standard_normal
        x = plant.x + NOISE * normal(plant.x.size)
        fluid = plant.fluid[:, (PRESSURE_A, PRESSURE_B)]
        pressures = fluid + PRESSURE_NOISE * normal(fluid.shape)
        return (np.round(x / QUANTUM) * QUANTUM, plant.xd + RATE_NOISE * normal(plant.xd.size),
                np.round(pressures / PRESSURE_QUANTUM) * PRESSURE_QUANTUM)


def configured(name, machine=None, hydraulics=None, **options):
    """`ControllerConfig` as it ships for the crane, of a law whose model may be another one than the crane and its oil.

    options  further fields
    """
    config = ControllerConfig.of_machine(crane(), oil(), safety=find_config(f'{CRANE}_safety.yaml'), law=name,
                                         rate=1.0 / PERIOD, **options)
    return replace(config, machine=machine or crane(), hydraulics=hydraulics or oil())


def closed_loop(core, plant, late=1, read=None):
    """`ClosedLoop` that holds the plant where it is.

    late  periods between a measurement and the command that answers it
    read  function of the plant that returns (x, xd, pressures) as measured; None: that of `PlainSensors`
    """
    read, waiting = read or PlainSensors().read, []

    def change(time, measured):
        waiting.append(Measurement(*read(plant), measured.supply))
        return waiting.pop(0)._replace(age=late * core.law.period) if len(waiting) > late else None

    loop = ClosedLoop(core, plant, change=change)
    for _ in range(late):
        loop.cycle()
    return loop.start()


def believing(case):
    """The `ControlCore` of a case, made from its wrong model."""
    off = case.mismatch
    config = configured(case.law, crane(off.inertia), mistaken(oil(), off))
    if case.louder > 1.0:
        # such gains do not ship: checks of speeds would end so rough a motion before it is seen whether it dies out
        limits = replace(config.declaration.plausibility, speed_share=1.0, overspeed=2.0)
        config = replace(config, declaration=replace(config.declaration, plausibility=limits))
    core = assemble(config)
    gains = core.law.gains
    names = [field.name for field in fields(gains) if field.name in LOOP_GAINS]
    core.law.set_gains(replace(gains, **{name: case.louder * getattr(gains, name) for name in names}))
    return core


def plant_for(start, *, payload=0.0, stribeck=0.0, modes=None):
    """The crane on its oil, at rest at start (dof,)."""
    plant = HydraulicPlant(crane(1.0, payload), oil(), period=PLANT_PERIOD, ttl=TTL, position=start, modes=modes)
    if stribeck:
        rows = plant.cylinder_records['axis']
        plant.axes['slip'][rows] = STRIBECK_SLIP
        plant.axes['stribeck'][rows], plant.axes['stribeck_velocity'][rows] = stribeck, STRIBECK_VELOCITY
    return plant


def run(case):
    """(N, 3) errors [m] of the cylinders when states were measured, in this case; NaN where the controller stopped."""
    waypoints = REFERENCES[case.reference]()
    plant = plant_for(waypoints.positions[0], payload=case.payload, stribeck=case.stribeck)
    loop = closed_loop(believing(case), plant, case.late)
    begin = loop.slot
    loop.send(waypoints)
    # not by the time of the last waypoint: the controller may slow the reference down
    while loop.cycle().state in (State.RUN, State.DEGRADED):
        pass
    record = loop.run(case.rest).recording()
    errors = record.x[begin - case.late:len(record.x) - case.late] - record.desired[begin:, 0]
    errors[record.state[begin:] >= State.STOPPING] = np.nan
    return errors[:, plant.cylinder_records['axis']]


def rms(errors):
    """(3,) of the cylinders [m], NaN where they were stopped."""
    return np.sqrt(np.mean(errors**2, axis=0))


def swing(errors, seconds=1.0):
    """(3,) standard deviations [m] at the end, where the reference rests: what does not die out is unstable."""
    return errors[-round(seconds / PERIOD):].std(axis=0)
