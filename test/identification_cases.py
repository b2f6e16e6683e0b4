"""Recordings for identification: the crane under its valve controller, and machines in motions made up."""

from functools import cache

import numpy as np

from psdyn_ros.campaign.tracking_runs import PERIOD, PLANT_PERIOD, TORQUE, TTL, PlainSensors, crane, oil, through
from psdyn_ros.control.laws import make_law
from psdyn_ros.kernels.hydraulic_records import PRESSURE_A, PRESSURE_B
from psdyn_ros.simulation.hydraulic_plant import HydraulicPlant
from psdyn_ros.simulation.study import exact_readings
from psdyn_ros.validation.blocks import Block
from psdyn_ros.validation.evidence import friction_block
from psdyn_ros.validation.simulated_bag import SimulatedBag

CARRIER, MASS, COM = 'telescope_link', 200.0, np.array([1.5, -0.15, -0.02])
INERTIA = np.diag([8.0, 6.0, 5.0])
SECONDS = 60.0
# of a coordinate: range [rad, m], largest rate
RANGES = ((-0.6, 0.6), (0.14, 0.34), (0.12, 0.40), (0.03, 0.33))
RATES = (0.4, 0.10, 0.11, 0.16)
OVERLAP = 250               # rows
STROKE_NOISE, STROKE_QUANTUM, PRESSURE_NOISE, PRESSURE_QUANTUM = 2e-5, 1e-4, 5e4, 6e3


def wandering(seed, duration):
    """`Waypoints` on which every axis keeps moving, out and in, at rates of its own."""
    rng, moves, start = np.random.default_rng(seed), [], np.array([0.0, 0.2, 0.2, 0.15])
    for axis, ((low, high), rate) in enumerate(zip(RANGES, RATES)):
        t, here = rng.uniform(0.3, 0.6), start[axis]
        while True:
            there = rng.uniform(low, high)
            if abs(there - here) < 0.3 * (high - low):
                continue
            seconds = max(1.875 * abs(there - here) / (rate * rng.uniform(0.4, 1.0)), 0.8)
            if t + seconds > duration - 0.3:
                break
            moves.append((axis, t, t + seconds, there - here))
            here, t = there, t + seconds + rng.uniform(0.0, 0.2)
    return through(start, moves, duration)


@cache
def laden_crane():
    return crane().with_payload(CARRIER, MASS, COM, INERTIA)


def record_crane(bag=None, bag_seconds=0.0, seed=4):
    """(x (N, 4), pressures (N, 3, 2), efforts (N, 4)) of the crane with a payload that its controller knows nothing of.

    bag  folder for a bag of the first `bag_seconds`, exact, at 100 Hz
    """
    waypoints = wandering(seed, SECONDS)
    plant = HydraulicPlant(laden_crane(), oil(), period=PLANT_PERIOD, ttl=TTL, position=waypoints.positions[0])
    law, sensors = make_law(TORQUE, crane(), oil(), period=PERIOD), PlainSensors(7)
    law.hold(waypoints.positions[0])
    law.reference.follow(waypoints, 0.0)
    x, pressures, efforts, seen = [], [], [], []
    writer = SimulatedBag(bag, plant.cylinders).__enter__()
    for k in range(round(SECONDS / PERIOD)):
        x.append(plant.x.copy())
        pressures.append(plant.fluid[:, (PRESSURE_A, PRESSURE_B)])
        efforts.append(plant.force.copy())
        if k * PERIOD < bag_seconds and k % 5 == 0:
            writer.write(plant, exact_readings(plant), exact_readings(plant))
        seen.append(sensors.read(plant))
        late = max(0, k - 1)
        plant.step(law.update(late * PERIOD, *seen[late], age=(k - late) * PERIOD), PERIOD)
    writer.__exit__()
    assert not plant.fault
    return np.array(x), np.array(pressures), np.array(efforts)


def measured(recording, seed, *, noise=1.0, offset=0.0, gain=0.0):
    """The recording as sensors say it: plain ones times `noise`; offset [Pa] and gain are off either way, at random."""
    x, pressures, efforts = recording
    rng = np.random.default_rng(seed)
    if noise:
        x = np.round((x + noise * STROKE_NOISE * rng.standard_normal(x.shape)) / STROKE_QUANTUM) * STROKE_QUANTUM
        pressures = pressures + noise * PRESSURE_NOISE * rng.standard_normal(pressures.shape)
        pressures = np.round(pressures / PRESSURE_QUANTUM) * PRESSURE_QUANTUM
    signs = rng.choice([-1.0, 1.0], size=(2, *pressures.shape[1:]))
    return x, pressures * (1.0 + gain * signs[0]) + offset * signs[1], efforts


def crane_blocks(recording, rows=8192):
    """Yield the `Block`s of the crane's strokes and pressures."""
    x, pressures, efforts = recording
    cylinders = oil().cylinders.values()
    areas = np.array([[cylinder.area_a, -cylinder.area_b] for cylinder in cylinders])
    effort = efforts.copy()
    effort[:, 1:] = (pressures * areas).sum(axis=2)
    yield from cut(crane(), x, effort, PERIOD, rows, pressures)


def cut(manipulator, x, effort, period, rows=8192, pressures=None):
    """Yield `Block`s of rows in a row."""
    for first in range(0, len(x), rows):
        low, high = max(0, first - OVERLAP), min(len(x), first + rows + OVERLAP)
        part = slice(low, high)
        yield Block(period * np.arange(low, high), x[part], None, np.zeros(high - low), effort[part],
                    None if pressures is None else pressures[part], None,
                    slice(first - low, min(first + rows, len(x)) - low), manipulator.coordinates, x[part], period)


def sines(manipulator, seconds, period, amplitude, seed=1):
    """(x, xd, xdd) (N, dof) of slow sines about the initial position."""
    rng, t = np.random.default_rng(seed), period * np.arange(round(seconds / period))
    frequencies = 2.0 * np.pi * rng.uniform(0.08, 0.3, (2, manipulator.dof))
    phases = rng.uniform(0.0, 2.0 * np.pi, (2, manipulator.dof))
    size = amplitude * np.array([[1.0], [0.4]])
    arguments = t[:, None, None] * frequencies + phases
    x = (size * np.sin(arguments)).sum(axis=1)
    xd = (size * frequencies * np.cos(arguments)).sum(axis=1)
    xdd = -(size * frequencies**2 * np.sin(arguments)).sum(axis=1)
    return manipulator.initial_position + x, xd, xdd


def friction_truth(name, speeds):
    """Friction of a cylinder of the crane at these speeds [N]; nothing of the slewing drive."""
    seal = friction_block(oil(), name)
    speeds = np.asarray(speeds)
    return 0.0 * speeds if seal is None else seal.coulomb * np.tanh(speeds / seal.slip_velocity) + seal.viscous * speeds
