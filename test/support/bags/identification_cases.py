"""Recordings for the tests of identification: one of the crane, also as a bag, and machines in motions made up."""

import numpy as np

from psdyn_ros.simulation.sensors.readings import exact_readings
from psdyn_ros.tools.studies.identification_runs import record
from psdyn_ros.validation.bags.simulated_bag import SimulatedBag

BAG_PERIOD = 0.01           # s


def record_crane(bag, bag_seconds, seed=4):
    """The `Recording` of 60 s, and of the first `bag_seconds` a bag, exact, at 100 Hz."""
    writer = None

    def watch(seconds, plant):
        nonlocal writer
        writer = writer or SimulatedBag(bag, plant.cylinders).__enter__()
        if seconds < bag_seconds and round(seconds / BAG_PERIOD, 6) % 1.0 == 0.0:
            writer.write(plant, exact_readings(plant), exact_readings(plant))
    recording = record(seed, watch=watch)
    writer.__exit__()
    return recording


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
