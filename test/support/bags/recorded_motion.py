"""Motions of the crane as blocks of a recording: made by formulas, where everything is known, or by running it."""

from functools import cache
from itertools import islice

import numpy as np

from psdyn_ros.control import assemble
from psdyn_ros.model.units import SECOND
from psdyn_ros.simulation.sensors.readings import Readings, exact_readings
from psdyn_ros.tools.fuzzing.mutations import BEGIN, STATES, TELEMETRY
from psdyn_ros.tools.studies import tracking_runs
from psdyn_ros.validation.bags.simulated_bag import SimulatedBag
from psdyn_ros.validation.metrics.prediction import Predictor
from psdyn_ros.validation.signals.blocks import Block

from .bag_cases import joint_state, labelled, write

PERIOD = 0.002
MIDDLE, SWING = np.array([0.0, 0.3, 0.25, 0.4]), np.array([0.3, 0.1, 0.09, 0.2])
FREQUENCY = np.array([0.11, 0.17, 0.23, 0.13])      # Hz


def crane():
    return tracking_runs.crane()


def oil():
    return tracking_runs.oil()


def swinging(seconds, start=0.0, quicker=1.0):
    """(t, x, xd, xdd) of sines of all axes, turning round now and then; quicker: factor on their frequencies."""
    t = start + PERIOD * np.arange(round(seconds / PERIOD))
    w = 2.0 * np.pi * quicker * FREQUENCY
    phase = t[:, None] * w
    return t, MIDDLE + SWING * np.sin(phase), SWING * w * np.cos(phase), -SWING * w ** 2 * np.sin(phase)


def block_of(t, x, xd, effort, pressures=None, residual=None, core=None):
    """A `Block` of the crane."""
    return Block(t=t, x=x, xd=xd, residual=np.zeros(len(t)) if residual is None else residual, effort=effort,
                 pressures=pressures, command=None, core=core or slice(0, len(t)), joints=crane().actuators,
                 positions=x, period=PERIOD)


def exact_block(seconds=10.0, start=0.0, recorded_velocity=True, hydraulics=True):
    """A swinging crane whose efforts are those of the model."""
    t, x, xd, xdd = swinging(seconds, start)
    predictor = Predictor(crane(), oil() if hydraulics else None)
    bare = predictor.mechanism.inverse_dynamics(x, xd, xdd)
    effort = bare + predictor.friction(x, xd, xdd, xd, bare)
    return block_of(t, x, xd if recorded_velocity else None, effort)


def controlled(payload=0.0, plain=False, seconds=10.0, drift=0.0, late=0):
    """Yield (plant, x, xd, pressures) every period of the crane on its oil under control, as sensors see it.

    payload  kg that the machine carries and the model does not know of
    plain    sensors of a plain machine; else exact ones
    drift    Pa/s of the sensor of chamber A of the tilt cylinder, which only the recording sees
    late     periods by which its pressures come later than they are stamped
    """
    waypoints = tracking_runs.REFERENCES['demonstration']()
    plant = tracking_runs.plant_for(waypoints.positions[0], payload=payload)
    # no core: the recording is what is tested, and bounds of its figures are those of this very motion
    law = assemble(tracking_runs.configured(tracking_runs.TORQUE)).law
    law.hold(waypoints.positions[0])
    law.reference.follow(waypoints, 0.0)
    sensors, history = tracking_runs.PlainSensors(), []
    for k in range(round(seconds / PERIOD)):
        x, xd, pressures = (sensors.read(plant) if plain else
                            (plant.x.copy(), plant.xd.copy(), plant.fluid[:, :2].copy()))
        history.append(pressures)
        seen = history[max(k - late, 0)].copy()
        seen[1, 0] += drift * k * PERIOD
        yield plant, x, xd, seen
        plant.step(law.update(k * PERIOD, x, xd, pressures), PERIOD)
        assert not plant.fault


@cache
def demonstration(payload=0.0, plain=False, seconds=10.0):
    """The same as a block."""
    rows = [(x, xd, pressures, plant.force[0]) for plant, x, xd, pressures in controlled(payload, plain, seconds)]
    x, xd, pressures, slew = (np.array(column) for column in zip(*rows))
    effort = np.column_stack([slew] + [one.area_a * pressures[:, k, 0] - one.area_b * pressures[:, k, 1]
                                       for k, one in enumerate(oil().cylinders.values())])
    return block_of(PERIOD * np.arange(len(x)), x, xd, effort, pressures)


def write_demonstration(path, seconds=10.0, every=2, **what):
    """A bag of it at 500 Hz / every, as the simulator writes them."""
    with SimulatedBag(path, tuple(oil().cylinders)) as bag:
        for plant, x, xd, pressures in islice(controlled(seconds=seconds, **what), 0, None, every):
            exact = exact_readings(plant)
            names, position, velocity, _ = crane().joint_state(x, xd)
            bag.write(plant, Readings(tuple(names), position, velocity, exact.effort, pressures), exact)
    return path


def write_swinging(path, seconds=6.0, gain=1.0, late=0, frozen=(), without=(), seed=1, change=None):
    """A bag of the swinging crane at 100 Hz, a single file; returns its path.

    gain     of the efforts of cylinders: what the model knows as 1
    late     rows of 10 ms by which pressures come later than they are stamped
    frozen   (joint, from, to [s]) whose position stays as it was
    without  cylinders whose pressures nobody measures
    seed     of the noise of pressures, 0.5 bar
    change   function of pressures (cylinders, 2) [Pa] in place, before they are written
    """
    block, messages = exact_block(seconds), []
    noise = np.random.default_rng(seed).normal(0.0, 5e4, (len(block.t), len(oil().cylinders), 2))
    rows = range(0, len(block.t), 5)
    held = {}
    for k, row in enumerate(rows):
        ns = BEGIN + round(block.t[row] * SECOND)
        names, position, velocity, _ = crane().joint_state(block.x[row], block.xd[row])
        if frozen and frozen[1] <= block.t[row] < frozen[2]:
            joint = names.index(frozen[0])
            position[joint] = held.setdefault(joint, position[joint])
        effort = np.zeros(len(names))
        effort[names.index('slew')] = block.effort[row, 0]
        messages.append((STATES, ns + 100_000, joint_state(ns, names, position, velocity, effort)))
        pressures = np.array([((gain * force + 4e6 * one.area_b) / one.area_a + a, 4e6 + b, ns / SECOND)
                              for force, one, (a, b) in zip(block.effort[rows[max(k - late, 0)], 1:],
                                                            oil().cylinders.values(), noise[row])])
        if change is not None:
            change(pressures[:, :2])
        measured = {name: row for name, row in zip(oil().cylinders, pressures) if name not in without}
        messages.append((TELEMETRY, ns + 200_000, labelled(list(measured.values()), measured, (
            'pressure_a', 'pressure_b', 'stamp'))))
    return write(path, messages)


def with_pressures(effort):
    """Chamber pressures (n, cylinders, 2) that give these efforts of the cylinders."""
    cylinders = [list(crane().actuators).index(name) for name in oil().cylinders]
    area = np.array([(one.area_a, one.area_b) for one in oil().cylinders.values()])
    b = 1e7
    return np.stack(((effort[:, cylinders] + b * area[:, 1]) / area[:, 0], np.full((len(effort), 3), b)), axis=2)
