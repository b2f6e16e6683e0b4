"""Write a bag of a simulated machine while it runs: the topics of the node `simulator`, without ROS."""

from functools import partial
from operator import attrgetter
from pathlib import Path

import numpy as np

from ...kernels.hydraulics.records import QUANTITIES
from ...model.units import SECOND
from ...simulation.sensors.kinds import PRESSURES
from .bulk_decoder import type_store
from .row_bag import RowBag, Template, joint_states, labelled_array, trajectory_points

STATES, TRUTH, DYNAMICS, COMMANDS, TELEMETRY = (
    '/joint_states', '/simulator/ground_truth', '/simulator/dynamics', '/simulator/joint_commands',
    '/simulator/hydraulic_telemetry')
LABELS = (*QUANTITIES, 'safe', 'stamp')
FIELDS = {'valve': 0, 'velocity': 1, 'effort': 2, 'pressure': 2}     # of a JointState: position, velocity, effort
BATCH = 256                 # instants that are written at once


class SimulatedBag:
    """Writes an MCAP bag into the new folder `path`, instant by instant; to be used in a `with` statement.

    Stamps are simulated time, from zero.  What was written before an exception is kept.

    cylinders  names of those whose telemetry is written
    mounted    tuple of `Mounted` sensors
    messages   written so far
    """

    def __init__(self, path, cylinders=(), mounted=()):
        self._path, self._bag = Path(path), None
        self._cylinders, self._mounted = tuple(cylinders), {f'/simulator/{one.topic}': one for one in mounted}
        self._waiting = []          # (ns, {topic: arrays})
        self.messages = 0

    def __enter__(self):
        self._path.mkdir(parents=True)
        return self

    def __exit__(self, *_):
        if self._bag is not None:
            self._flush()
            self._bag.__exit__(None)

    def write(self, plant, measured, exact):
        """Write what `measured` and `exact` (`Readings`) say of the plant now, and the commands it obeys."""
        if self._bag is None:
            self._begin(plant, exact.names)
        names, *rows = plant.manipulator.joint_state(plant.x, plant.xd, plant.xdd)
        commands = np.full((3, len(self._columns)), np.nan)
        commands[self._fields, range(len(self._columns))] = getattr(plant, 'command', plant.force)
        values = {STATES: (measured.position, measured.velocity, measured.effort),
                  TRUTH: (exact.position, exact.velocity, exact.effort),
                  DYNAMICS: (*(row[self._columns] for row in rows), plant.force),
                  COMMANDS: commands}
        if self._cylinders:
            table = np.column_stack((plant.telemetry, plant.safe[plant.cylinder_records['axis']],
                                     np.full(len(self._cylinders), plant.time)))
            table[:, PRESSURES] = measured.pressures
            values[TELEMETRY] = (table.ravel(),)
        for topic, one in self._mounted.items():
            values[topic] = tuple(measured.mounted[kind, one.name] for kind in one.fields)
        self._waiting.append((round(plant.time * SECOND), {topic: [np.array(one, dtype=float) for one in arrays]
                                                           for topic, arrays in values.items()}))
        self.messages += len(values)
        if len(self._waiting) == BATCH:
            self._flush()

    def _flush(self):
        if self._waiting:
            stamps, values = zip(*self._waiting)
            self._bag.write(stamps, {topic: [np.stack(rows) for rows in zip(*(one[topic] for one in values))]
                                     for topic in values[0]})
            self._waiting.clear()

    def _begin(self, plant, joints):
        actuators = plant.manipulator.actuators
        self._columns = [joints.index(name) for name in actuators]
        self._fields = [FIELDS[mode] for mode in getattr(plant, 'modes', ('effort',) * len(actuators))]
        topics = {STATES: joint_states(joints), TRUTH: joint_states(joints), DYNAMICS: trajectory_points(actuators),
                  COMMANDS: joint_states(actuators)}
        if self._cylinders:
            topics[TELEMETRY] = labelled_array(self._cylinders, LABELS)
        topics.update((topic, Template(partial(_sensor_message, one), (3,) * len(one.fields)))
                      for topic, one in self._mounted.items())
        self._bag = RowBag(self._path, topics, compress=False).__enter__()


def _sensor_message(mounted, *vectors):
    message = _blank(mounted.message.type)
    message.header.frame_id = mounted.frame
    if mounted.message.unknown:
        getattr(message, mounted.message.unknown)[0] = -1.0
    for field, values in zip(mounted.fields.values(), vectors):
        vector = attrgetter(field)(message)
        vector.x, vector.y, vector.z = values.tolist()
    return message


def _blank(kind):
    """Return a message of zeros, of a type that has no sequences."""
    from rosbags.interfaces import Nodetype

    def zero(what, detail):
        if what == Nodetype.NAME:
            return _blank(detail)
        if what == Nodetype.ARRAY:
            return np.zeros(detail[1])
        return '' if detail[0] == 'string' else 0

    return type_store().types[kind](**{name: zero(*field) for name, field in type_store().fielddefs[kind][1]})
