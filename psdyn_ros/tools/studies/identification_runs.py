"""Recordings for identification: the crane under its valve controller with a load of which its models do not know, in
memory, and what sensors make of them."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...control.core.assembly import assemble
from ...kernels.hydraulics.records import PRESSURE_A, PRESSURE_B
from ...simulation.hydraulic_plant import HydraulicPlant
from ...validation.identification.normal_equations import friction_block
from ...validation.signals.blocks import Block
from .tracking_runs import (
    NOISE,
    PERIOD,
    PLANT_PERIOD,
    PRESSURE_NOISE,
    PRESSURE_QUANTUM,
    QUANTUM,
    TORQUE,
    TTL,
    PlainSensors,
    closed_loop,
    configured,
    crane,
    oil,
    through,
)

CARRIER, MASS, COM = 'telescope_link', 200.0, np.array([1.5, -0.15, -0.02])     # kg, m
INERTIA = np.diag([8.0, 6.0, 5.0])
SECONDS = 60.0
# of a coordinate: range [rad, m], largest rate
RANGES = ((-0.6, 0.6), (0.14, 0.34), (0.12, 0.40), (0.03, 0.33))
RATES = (0.4, 0.10, 0.11, 0.16)
START = np.array([0.0, 0.2, 0.2, 0.15])
OVERLAP = 250               # rows


class Recording(NamedTuple):
    """Every PERIOD: x (N, 4) [rad, m], pressures (N, cylinders, 2) [Pa], efforts (N, 4) [N m, N]."""

    x: np.ndarray
    pressures: np.ndarray
    efforts: np.ndarray


@dataclass(frozen=True)
class Sensors:
    """What is wrong with sensors: noise and quanta of plain ones, times `noise`; offset [Pa] and gain of each pressure
    sensor are off by so much, either way at random."""

    noise: float = 1.0
    offset: float = 0.0
    gain: float = 0.0


def keep_moving(seed, duration=SECONDS):
    """`Waypoints` on which every axis keeps moving, out and in, at rates of its own."""
    rng, moves = np.random.default_rng(seed), []
    for axis, ((low, high), rate) in enumerate(zip(RANGES, RATES)):
        t, here = rng.uniform(0.3, 0.6), START[axis]
        while True:
            there = rng.uniform(low, high)
            if abs(there - here) < 0.3 * (high - low):
                continue
            seconds = max(1.875 * abs(there - here) / (rate * rng.uniform(0.4, 1.0)), 0.8)
            if t + seconds > duration - 0.3:
                break
            moves.append((axis, t, t + seconds, there - here))
            here, t = there, t + seconds + rng.uniform(0.0, 0.2)
    return through(START, moves, duration)


@lru_cache
def crane_with_load():
    """The crane with MASS at COM on its CARRIER."""
    return crane().with_payload(CARRIER, MASS, COM, INERTIA)


def record(seed=4, duration=SECONDS, watch=None):
    """The `Recording` of the crane with its load under a controller that knows nothing of its load.

    watch  function of (s, plant) before every period, or None
    """
    waypoints = keep_moving(seed, duration)
    plant = HydraulicPlant(crane_with_load(), oil(), period=PLANT_PERIOD, ttl=TTL, position=waypoints.positions[0])
    loop, rows = closed_loop(assemble(configured(TORQUE)), plant, read=PlainSensors(7).read), []
    loop.send(waypoints)
    for k in range(round(duration / PERIOD)):
        rows.append((plant.x.copy(), plant.fluid[:, (PRESSURE_A, PRESSURE_B)], plant.force.copy()))
        if watch is not None:
            watch(k * PERIOD, plant)
        loop.cycle()
    if loop.core.states.reasons:
        raise RuntimeError(f'the crane did not get through motion {seed}: {loop.core.states.reasons}')
    return Recording(*(np.array(column) for column in zip(*rows)))


def measured(recording, seed, sensors):
    """The `Recording` as `Sensors` say it."""
    x, pressures, efforts = recording
    rng = np.random.default_rng(seed)
    if sensors.noise:
        x = np.round((x + sensors.noise * NOISE * rng.standard_normal(x.shape)) / QUANTUM) * QUANTUM
        pressures = pressures + sensors.noise * PRESSURE_NOISE * rng.standard_normal(pressures.shape)
        pressures = np.round(pressures / PRESSURE_QUANTUM) * PRESSURE_QUANTUM
    signs = rng.choice([-1.0, 1.0], size=(2, *pressures.shape[1:]))
    return Recording(x, pressures * (1.0 + sensors.gain * signs[0]) + sensors.offset * signs[1], efforts)


def crane_blocks(recording, rows=8192):
    """Yield the `Block`s of strokes, pressures, and the effort of the slewing drive."""
    areas = np.array([[cylinder.area_a, -cylinder.area_b] for cylinder in oil().cylinders.values()])
    effort = recording.efforts.copy()
    effort[:, 1:] = (recording.pressures * areas).sum(axis=2)
    yield from cut(crane(), recording.x, effort, PERIOD, rows, recording.pressures)


def cut(manipulator, x, effort, period, rows=8192, pressures=None):
    """Yield `Block`s of x (N, dof) and efforts (N, actuators), `rows` rows in a row, that overlap."""
    for first in range(0, len(x), rows):
        low, high = max(0, first - OVERLAP), min(len(x), first + rows + OVERLAP)
        part = slice(low, high)
        yield Block(period * np.arange(low, high), x[part], None, np.zeros(high - low), effort[part],
                    None if pressures is None else pressures[part], None,
                    slice(first - low, min(first + rows, len(x)) - low), manipulator.coordinates, x[part], period)


def friction_truth(name, speeds):
    """Friction of a cylinder of the crane at these speeds [N]; nothing of the slewing drive."""
    seal = friction_block(oil(), name)
    speeds = np.asarray(speeds)
    return 0.0 * speeds if seal is None else seal.coulomb * np.tanh(speeds / seal.slip_velocity) + seal.viscous * speeds
