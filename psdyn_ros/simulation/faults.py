"""Faults by schedule and at run time: which are in force when, on sensors, on messages and on the plant itself."""

from bisect import insort
from collections import deque
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ..model.errors import StateError
from ..model.parameters.faults import (
    CYLINDER,
    MESSAGE,
    MODEL,
    OIL,
    PAYLOAD,
    SENSOR,
    SUPPLY,
    Fault,
    FaultKind,
    placed,
    read_fault,
    read_faults,
)
from .sensors.bank import checked_seed

__all__ = ['Event', 'Fault', 'FaultInjector', 'read_fault', 'read_faults']

STATES = 'joint_states'     # the message that faults may befall
KEPT = 1000                 # events
ROUNDING = 1e-9             # s


class Event(NamedTuple):
    """A fault that began or ended."""

    time: float
    """s of simulated time."""
    fault: Fault
    on: bool


@dataclass(eq=False)
class _Entry:
    """A fault with the absolute times of its beginning and end [s]."""

    fault: Fault
    kind: FaultKind
    start: float
    end: float


class FaultInjector:
    """
    Switches faults on and off as simulated time goes by.

    Of faults of one kind on one target the one that began last counts; when it ends, those before it count again.

    sensors   `SensorBank`, or None
    plant     with `disturb(target, quantity, value)` and `undisturb(target, quantity)`, or another, or None
    schedule  `Fault`s
    seed      whole number; of which messages are lost, kept back, repeated

    Raises ModelError or UnknownNameError about faults that the machine cannot have.
    """

    def __init__(self, sensors=None, plant=None, schedule=(), seed=0):
        self._sensors, self._plant, self._seed = sensors, plant, checked_seed(seed)
        self.targets = _targets(sensors, plant)
        """{domain: names of what may fail}."""
        self._schedule = [self._entry(fault, 0.0) for fault in schedule]
        self.events = deque(maxlen=KEPT)
        """The last `Event`s."""
        self._running = []              # entries in the order of their beginning
        self._forget()
        self._pending = sorted(self._schedule, key=attrgetter('start'))

    @property
    def active(self):
        """Names of the faults in force, such as 'bias of telescope.position (0.01)'."""
        return tuple(str(entry.fault) for entry in self._running)

    def update(self, time):
        """Bring everything in line with a time [s], never smaller than the last one, but for a `reset`."""
        if not time >= self._time:
            raise StateError(f'faults: time {time:g} s after {self._time:g} s; expected a later one, or a reset before')
        self._time = time
        for entry in [entry for entry in self._running if entry.end <= time + ROUNDING]:
            self._end(entry)
        while self._pending and self._pending[0].start <= time + ROUNDING:
            self._begin(self._pending.pop(0))

    def inject(self, fault):
        """Let a fault begin at the next `update`, or its `start` [s] after the last one.

        fault: `Fault`, or the YAML text of one.  Raises ModelError or UnknownNameError.
        """
        fault = read_fault(fault) if isinstance(fault, str) else fault
        insort(self._pending, self._entry(fault, self._time), key=attrgetter('start'))

    def clear(self):
        """End all faults, forget those to come, and lose the messages that are under way."""
        for entry in reversed(self._running.copy()):
            self._end(entry)
        self._pending = []
        self._transit.clear()
        self._kept.clear()

    def reset(self):
        """Begin the schedule again at time zero; what was injected is forgotten."""
        self.clear()
        self._forget()
        self._pending = sorted(self._schedule, key=attrgetter('start'))
        self.events.clear()

    def message(self, item):
        """Return the list of what is to be published now, in order.

        item  what a faultless machine would publish now: a stamp, a message; a delayed one keeps what it says.  To be
              called once after `update`.
        """
        if not (self._ruling_message or self._transit or self._kept):
            return [item]
        if not self._happens('dropout'):
            (delay,) = self._ruling_message.get('delay', (0.0,))
            self._transit.append((self._time + delay, item))
        sent = []
        while self._transit and self._transit[0][0] <= self._time + ROUNDING:
            one = self._transit.popleft()[1]
            if not self._kept and self._happens('out_of_order'):
                self._kept.append(one)
                continue
            sent += [one, *self._kept]
            self._kept.clear()
        return [one for one in sent for _ in range(1 + self._happens('duplicate'))]

    def _happens(self, kind):
        """Whether a fault of messages befalls this one."""
        if kind not in self._ruling_message:
            return False
        (share,) = self._ruling_message[kind]
        return bool(self._generators[kind].random() < share)

    def _forget(self):
        self._time = 0.0
        self._ruling_message = {}       # kind -> numbers
        self._transit = deque()         # (time at which it is due, message)
        self._kept = []                 # a message that waits for the next one
        self._generators = {kind: np.random.default_rng(np.random.SeedSequence(self._seed, spawn_key=(index,)))
                            for index, kind in enumerate(('dropout', 'out_of_order', 'duplicate'))}

    def _entry(self, fault, origin):
        fault, kind = placed(fault, self.targets)
        start = origin + fault.start
        return _Entry(fault, kind, start, start + fault.duration)

    def _begin(self, entry):
        self._apply(entry)
        self._running.append(entry)
        self.events.append(Event(self._time, entry.fault, True))

    def _end(self, entry):
        self._running.remove(entry)
        self.events.append(Event(self._time, entry.fault, False))
        same = [one for one in self._running if (one.kind, one.fault.target) == (entry.kind, entry.fault.target)]
        if same:
            self._apply(same[-1])
        else:
            self._undo(entry)

    def _apply(self, entry):
        fault, domain = entry.fault, entry.kind.domain
        if domain == SENSOR:
            self._sensors.set_fault(fault.target, fault.kind, fault.value)
        elif domain == MESSAGE:
            self._ruling_message[fault.kind] = fault.value
        else:
            self._plant.disturb(*_addressed(entry), fault.value if len(fault.value) > 1 else fault.value[0])

    def _undo(self, entry):
        fault, domain = entry.fault, entry.kind.domain
        if domain == SENSOR:
            self._sensors.clear_fault(fault.target, fault.kind)
        elif domain == MESSAGE:
            del self._ruling_message[fault.kind]
        else:
            self._plant.undisturb(*_addressed(entry))


def _targets(sensors, plant):
    targets = {SENSOR: tuple(sensors.channels) if sensors is not None else (), MESSAGE: (STATES,)}
    if hasattr(plant, 'disturb'):
        targets.update({CYLINDER: tuple(plant.cylinders), PAYLOAD: tuple(plant.manipulator.links)},
                       **{name: (name,) for name in (SUPPLY, OIL, MODEL)})
    return targets


def _addressed(entry):
    """Return (target, quantity) as the plant calls them; links are quantities of its payload."""
    fault = entry.fault
    return (PAYLOAD, fault.target) if entry.kind.domain == PAYLOAD else (fault.target, fault.kind)
