"""Recordings of the crane in which one thing is wrong, made by formulas: what it is and how much of it is known."""

from dataclasses import replace
from functools import cache

import numpy as np

from psdyn_ros.api.environment import BaseMotion
from psdyn_ros.validation.diagnosis.diagnosis import Diagnosis
from psdyn_ros.validation.metrics.prediction import Predictor

from .recorded_motion import PERIOD, block_of, crane, oil, swinging

LIFT, TILT = 1, 2               # numbers of axes; of their cylinders one less
STROKE_NOISE, STROKE_QUANTUM, RATE_NOISE = 2e-5, 1e-4, 1e-3
PRESSURE_NOISE, PRESSURE_QUANTUM, TORQUE_NOISE = 5e4, 6e3, 20.0
MORE_PAYLOAD, MORE_FRICTION, MORE_AREA = 30.0, 0.5, 0.03
OFFSET, DRIFT, DELAY = 3e5, 1e4, 0.016
TILTED, STROKE_OFFSET = np.radians(3.0), 5e-3
FROZEN = 0.4, 3.0               # of the recording, when it begins; and s

# kind -> (about, estimate of it)
WRONG = {'payload': ('tcp', MORE_PAYLOAD), 'friction': ('lift_cylinder', 1.0 + MORE_FRICTION),
         'area': ('tilt_cylinder', 1.0 / (1.0 + MORE_AREA) - 1.0), 'sensor_offset': ('tilt_cylinder', OFFSET),
         'sensor_drift': ('tilt_cylinder', DRIFT), 'delay': ('pressures', DELAY), 'base_tilt': ('base', TILTED),
         'encoder_offset': ('tilt_cylinder', STROKE_OFFSET)}


@cache
def truth(seconds, wrong=''):
    """(t, x, xd, torque of the slewing drive, pressures) of a machine in which something is not as the model says."""
    t, x, xd, xdd = swinging(seconds)
    machine, hydraulics, base = crane(), oil(), None
    if wrong == 'payload':
        machine = machine.with_payload('telescope_link', MORE_PAYLOAD, [1.5, -0.15, -0.02],
                                       0.02 * MORE_PAYLOAD * np.eye(3))
    if wrong == 'friction':
        seal = hydraulics.cylinders['lift_cylinder'].friction
        hydraulics = with_cylinder('lift_cylinder', friction=replace(
            seal, coulomb=(1.0 + MORE_FRICTION) * seal.coulomb, viscous=(1.0 + MORE_FRICTION) * seal.viscous))
    if wrong == 'base_tilt':
        base = BaseMotion(orientation=(0.0, np.sin(0.5 * TILTED), 0.0, np.cos(0.5 * TILTED)))
    predictor = Predictor(machine, hydraulics)
    bare = predictor.mechanism.inverse_dynamics(x, xd, xdd, base=base)
    effort = bare + predictor.friction(x, xd, xdd, xd, bare)
    areas = port_areas(hydraulics)
    of_b = (2e6 + 5e5 * np.sin(0.7 * t))[:, None] * np.ones(3)
    return t, x, xd, effort[:, 0], np.stack(((effort[:, 1:] - of_b * areas[:, 1]) / areas[:, 0], of_b), axis=-1)


def with_cylinder(name, **changes):
    """The oil with one cylinder changed."""
    return replace(oil(), cylinders={**oil().cylinders, name: replace(oil().cylinders[name], **changes)})


def believed(wrong=''):
    """The `Hydraulics` of the model: in one case a port is larger than it is."""
    if wrong != 'area':
        return oil()
    cylinder = oil().cylinders['tilt_cylinder']
    bore = np.sqrt(1.0 + MORE_AREA) * cylinder.bore
    return with_cylinder('tilt_cylinder', bore=bore, rod=np.sqrt(bore ** 2 - 4.0 / np.pi * cylinder.area_b))


def port_areas(hydraulics):
    """(cylinders, 2), of B negative."""
    return np.array([[one.area_a, -one.area_b] for one in hydraulics.cylinders.values()])


def recorded(wrong='', seconds=30.0, plain=True, seed=0):
    """A `Block` in which one of `WRONG`, or 'frozen', is wrong; plain: with noise of sensors."""
    t, x, xd, torque, pressures = (values.copy() for values in truth(seconds, wrong))
    if wrong == 'sensor_offset':
        pressures[:, TILT - 1, 0] += OFFSET
    if wrong == 'sensor_drift':
        pressures[:, TILT - 1, 0] += DRIFT * t
    if wrong == 'delay':
        late = round(DELAY / PERIOD)
        pressures[late:] = pressures[:-late].copy()
    if wrong == 'encoder_offset':
        x[:, TILT] += STROKE_OFFSET
    if plain:
        normal = np.random.default_rng(seed).standard_normal
        x = np.round((x + STROKE_NOISE * normal(x.shape)) / STROKE_QUANTUM) * STROKE_QUANTUM
        xd += RATE_NOISE * normal(xd.shape)
        pressures += PRESSURE_NOISE * normal(pressures.shape)
        pressures = np.round(pressures / PRESSURE_QUANTUM) * PRESSURE_QUANTUM
        torque += TORQUE_NOISE * normal(torque.shape)
    if wrong == 'frozen':
        rows = frozen_rows(t)
        x[rows, LIFT], xd[rows, LIFT] = x[rows.start, LIFT], 0.0
    effort = np.column_stack((torque, (pressures * port_areas(believed(wrong))).sum(axis=2)))
    return block_of(t, x, xd, effort, pressures)


def frozen_rows(t):
    """Rows of a recording at the instants t in which an encoder stands still."""
    first = int(FROZEN[0] * len(t))
    return slice(first, first + round(FROZEN[1] / PERIOD))


def diagnosed(*blocks, hydraulics=None, manipulator=None, channels=None, **what):
    """(causes, `Diagnosis`) of blocks; hydraulics '' for none."""
    predictor = Predictor(manipulator or crane(), (oil() if hydraulics is None else hydraulics) or None)
    diagnosis = Diagnosis(predictor, channels)
    for block in blocks:
        diagnosis.add(block, predictor.predict(block))
    return diagnosis.causes(**what), diagnosis
