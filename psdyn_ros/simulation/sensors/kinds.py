"""How each kind of channel of `model/parameters/sensors.py` is read from a plant, and messages of mounted sensors."""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...kernels.hydraulics.records import QUANTITIES
from ...model.parameters.sensors import KINDS as CHANNELS

PRESSURES = [QUANTITIES.index(f'pressure_{port}') for port in CHANNELS['pressure'].parts]
"""Columns of telemetry."""


class Truth:
    """What is true of a plant now; computed where a sensor asks for it."""

    def __init__(self, plant):
        self.plant, self._links = plant, {}

    @cached_property
    def joints(self):
        """(names, position, velocity, None) of all joints."""
        return self.plant.manipulator.joint_state(self.plant.x, self.plant.xd)

    @cached_property
    def motion(self):
        """(x, xd, xdd)."""
        return self.plant.x, self.plant.xd, self.plant.xdd

    def link(self, name):
        """(twist (v, w) (6,), specific force (3,)) of a link in its axes, see `Manipulator.link_motion`."""
        if name not in self._links:
            base = self.plant.environment()['base']
            self._links[name] = self.plant.manipulator.link_motion(*self.motion, name, base=base)
        return self._links[name]

    def load(self, joint):
        """Force (3,) of a joint on its child link, in axes of the link [N]."""
        return self.plant.manipulator.joint_wrench(*self.motion, joint, **self.plant.environment())[:3]


class Kind(NamedTuple):
    """How channels are read.

    names  function of a plant: joints, cylinders or links on which they are, or on which they may be mounted
    read   function of a `Truth` and such names: values (names,) or (names, parts)
    field  where the values stand in the message of the sensor, see MESSAGES
    """

    names: Callable
    read: Callable
    field: str = ''


KINDS = {
    'position': Kind(lambda plant: plant.manipulator.joints, lambda truth, names: truth.joints[1]),
    'velocity': Kind(lambda plant: plant.manipulator.joints, lambda truth, names: truth.joints[2]),
    'effort': Kind(lambda plant: plant.manipulator.actuators, lambda truth, names: truth.plant.effort),
    'pressure': Kind(lambda plant: plant.cylinders, lambda truth, names: truth.plant.telemetry[:, PRESSURES]),
    'angular_velocity': Kind(lambda plant: plant.manipulator.links,
                             lambda truth, names: [truth.link(name)[0][3:] for name in names], 'angular_velocity'),
    'acceleration': Kind(lambda plant: plant.manipulator.links,
                         lambda truth, names: [truth.link(name)[1] for name in names], 'linear_acceleration'),
    'pin_force': Kind(lambda plant: plant.manipulator.serial_joints,
                      lambda truth, names: [truth.load(name) for name in names], 'wrench.force'),
}


class Message(NamedTuple):
    """What a mounted sensor publishes: its type, and an array whose first entry -1 says that something is unknown."""

    type: str
    unknown: str = ''


MESSAGES = {'imu': Message('sensor_msgs/msg/Imu', 'orientation_covariance'),
            'load_pin': Message('geometry_msgs/msg/WrenchStamped')}


class Mounted(NamedTuple):
    """A sensor on a joint or link."""

    sensor: str
    name: str
    frame: str
    """Link in whose axes it measures."""

    @property
    def topic(self):
        """Of its messages, below the simulator."""
        return f'{self.sensor}/{self.name}'

    @property
    def message(self):
        """Its `Message`."""
        return MESSAGES[self.sensor]

    @property
    def fields(self):
        """{kind: field of the message}, x, y and z below it."""
        return {kind: KINDS[kind].field for kind, row in CHANNELS.items() if row.sensor == self.sensor}


def channels_of(plant, mounted=None):
    """Names of all that is measured, such as 'lift_cylinder.position'.

    mounted  {sensor: names of joints or links} of what is not always there
    """
    return tuple(channel for kind, names in kinds_of(plant, mounted) for name in names
                 for channel in CHANNELS[kind].channels(kind, name))


def kinds_of(plant, mounted=None):
    """Yield (kind, names) of all that is measured, see `channels_of`."""
    for kind, row in KINDS.items():
        sensor = CHANNELS[kind].sensor
        yield kind, tuple((mounted or {}).get(sensor, ()) if sensor else row.names(plant))


def mountable(plant):
    """Return {sensor: joints or links of a plant on which it may be}."""
    return {row.sensor: tuple(KINDS[kind].names(plant)) for kind, row in CHANNELS.items() if row.sensor}


def mounted_on(plant, mounted):
    """Return tuple of `Mounted`."""
    joints = plant.manipulator.machine.description.joints
    on_links = {row.sensor for row in CHANNELS.values() if row.link}
    return tuple(Mounted(sensor, name, name if sensor in on_links else joints[name].child)
                 for sensor, names in mounted.items() for name in names)


def read_exact(truth, kind, names):
    """Return true values (names,) or (names, parts) of a kind."""
    values = KINDS[kind].read(truth, names) if names else ()
    return np.reshape(np.asarray(values, dtype=float), shape_of(kind, names))


def shape_of(kind, names):
    """Return the shape of the values of a kind."""
    parts = CHANNELS[kind].parts
    return (len(names), len(parts)) if parts else (len(names),)
