"""Commands of actuators out of messages, each in its command mode."""

import math

import numpy as np

from ...model.errors import did_you_mean
from .conversions import MessageError, NameMaps, check_lengths

# mode -> (field of a JointState that carries it, the most that can be meant, unit)
FIELDS = {'effort': ('effort', 1e9, 'N or N m'), 'pressure': ('effort', 1e9, 'Pa'),
          'velocity': ('velocity', 100.0, 'm/s or rad/s'), 'valve': ('position', 10.0, 'share of the spool travel')}


class CommandReader:
    """Commands (actuators,) each in its mode; NaN for actuators that a message says nothing of.

    actuators  names, in their order
    modes      of each, a key of `FIELDS`
    on_extra   called with the names that are no actuators, once for each order of names
    partial    whether a message may name some of the actuators only
    """

    def __init__(self, actuators, modes, on_extra, partial=True):
        self._actuators, self._modes, self._on_extra = tuple(actuators), tuple(modes), on_extra
        self._partial = partial
        self._label = ','.join(actuators)
        self._maps = NameMaps(self._map)
        self._valves = tuple(name for name, mode in zip(self._actuators, self._modes) if mode == 'valve')

    def named(self, msg):
        """Of a JointState whose fields carry the modes.

        Where messages may be partial NaN means no command, as bridges write it for an interface that a joint lacks.
        """
        columns = self._maps[msg.name]
        check_lengths(msg, {FIELDS[self._modes[row]][0] for row, _ in columns})
        command = np.full(len(self._actuators), math.nan)
        for row, column in columns:
            command[row] = getattr(msg, FIELDS[self._modes[row]][0])[column]
        if not self._partial:
            return self._checked(command, slice(None))
        given = ~np.isnan(command)
        if not given.any():
            raise MessageError('no command in it: all NaN')
        return self._checked(command, given)

    def valves(self, msg):
        """Of the positions of a JointState that names valve-driven actuators only, -1 to 1."""
        columns = self._maps[msg.name]
        check_lengths(msg, {'position'})
        command, given = np.full(len(self._actuators), math.nan), np.zeros(len(self._actuators), dtype=bool)
        for row, column in columns:
            if self._modes[row] != 'valve':
                raise MessageError(f"'{self._actuators[row]}' takes {self._modes[row]} commands; valve commands are "
                                   f'taken by {", ".join(self._valves)}')
            command[row], given[row] = msg.position[column], True
        return self._checked(command, given)

    def ordered(self, msg):
        """Of a Float64MultiArray in the order of the actuators; a label of its first dimension must name them."""
        count = len(self._actuators)
        if len(msg.data) != count:
            raise MessageError(f'data has {len(msg.data)} entries, expected {count} ({self._label})')
        if msg.layout.dim and msg.layout.dim[0].label not in ('', self._label):
            raise MessageError(f"data is labelled '{msg.layout.dim[0].label}', expected '{self._label}'")
        return self._checked(np.array(msg.data), slice(None))

    def _checked(self, command, given):
        for row in np.arange(command.size)[given]:
            value, (_, most, unit) = command[row], FIELDS[self._modes[row]]
            if not math.isfinite(value):
                raise MessageError(f'the command of {self._actuators[row]} is {value:g}, not finite')
            if abs(value) > most:
                raise MessageError(f'the command of {self._actuators[row]} is {value:g}, absurd for '
                                   f'{self._modes[row]} commands ({unit})')
        return command

    def _map(self, names):
        found = [(self._actuators.index(name), column) for column, name in enumerate(names) if name in self._actuators]
        extra = [name for name in names if name not in self._actuators]
        named = {row for row, _ in found}
        missing = [name for row, name in enumerate(self._actuators) if row not in named]
        if self._partial and extra and not found:
            raise MessageError(f"'{extra[0]:.80}' is no actuator{did_you_mean(extra[0], self._actuators)}")
        if missing and (not self._partial or not found):
            raise MessageError(f'{", ".join(missing)} missing' + (did_you_mean(missing[0], extra) if extra else ''))
        if extra:
            self._on_extra(extra)
        return found
