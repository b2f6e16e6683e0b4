"""Bags for tests: messages made one by one, and what they say."""

import numpy as np

from psdyn_ros.model.units import SECOND
from psdyn_ros.tools.fuzzing.mutations import BEGIN, STATES, TELEMETRY, write_mcap
from psdyn_ros.validation.bags.bulk_decoder import ARRAY, JOINT_STATE, PRESSURE, type_store

TYPES = type_store().types


def header(ns, frame=''):
    stamp = TYPES['builtin_interfaces/msg/Time'](sec=int(ns) // SECOND, nanosec=int(ns) % SECOND)
    return TYPES['std_msgs/msg/Header'](stamp=stamp, frame_id=frame)


def serialised(message):
    return bytes(type_store().serialize_cdr(message, message.__msgtype__))


def joint_state(ns, names, position, velocity=(), effort=(), frame=''):
    return serialised(TYPES[JOINT_STATE](header=header(ns, frame), name=list(names), **{
        field: np.array(values, dtype=float)
        for field, values in (('position', position), ('velocity', velocity), ('effort', effort))}))


def labelled(values, rows, columns):
    values = np.asarray(values, dtype=float)
    dimension = TYPES['std_msgs/msg/MultiArrayDimension']
    layout = TYPES['std_msgs/msg/MultiArrayLayout'](dim=[
        dimension(label=','.join(rows), size=len(rows), stride=values.size),
        dimension(label=','.join(columns), size=len(columns), stride=len(columns))], data_offset=0)
    return serialised(TYPES[ARRAY](layout=layout, data=values.ravel()))


def fluid_pressure(ns, absolute, frame=''):
    return serialised(TYPES[PRESSURE](header=header(ns, frame), fluid_pressure=float(absolute), variance=0.0))


def motion(manipulator, count, period, amplitude=0.05, frequency=0.5, times=None):
    """(times [s], positions, velocities (n, joints) of all joints) of a machine that swings about its initial pose."""
    times = np.arange(count) * period if times is None else times
    phase, rate = 2 * np.pi * frequency * times, 2 * np.pi * frequency
    rows = [manipulator.joint_state(manipulator.initial_position + amplitude * np.sin(a),
                                    np.full(manipulator.dof, amplitude * rate * np.cos(a)))[1:3] for a in phase]
    return times, np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def state_messages(manipulator, times, positions, velocities=None, efforts=None, topic=STATES, names=None,
                   latency=100_000):
    """[(topic, ns received, message)] of joint states stamped at BEGIN + times."""
    names = manipulator.joints if names is None else names
    stamps = BEGIN + np.rint(np.asarray(times) * SECOND).astype(np.int64)
    return [(topic, int(ns) + latency,
             joint_state(ns, names, positions[k], () if velocities is None else velocities[k],
                         () if efforts is None else efforts[k])) for k, ns in enumerate(stamps)]


def write(path, *streams, kinds=None, **options):
    """A bag of a single MCAP file with these messages, in the order of their receipt."""
    messages = sorted((message for stream in streams for message in stream), key=lambda message: message[1])
    write_mcap(path, messages, kinds={TELEMETRY: ARRAY, **(kinds or {})}, **options)
    return path
