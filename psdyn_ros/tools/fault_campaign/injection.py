"""What an injection is: a way to bring a condition of the fault table about on a `Bench`.

It is a generator function: what stands before its `yield` brings the fault about, what comes after takes it away.
`fault_trials.py` measures from the turn after the first part.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from ...control.safety.fault_table import CONDITIONS, State

STANDBY, RUN, DEGRADED, HOLD, STOPPING, _ = State
DRIVEN = RUN, HOLD, DEGRADED, STOPPING
UNDER_LAW = RUN, HOLD, DEGRADED
ALL = (*DRIVEN, STANDBY)


class After(Enum):
    """How a fault goes on."""

    LASTS = 'until it is taken away'
    ONCE = 'an event: over when it has happened'


@dataclass(frozen=True)
class Injection:
    """A way in which a condition is brought about.

    bring    function of a Bench, a context manager
    states   in which it is tried
    after    `After`
    levels   of the bench
    amend    declaration for it, see `Bench`
    options  of the core
    onset    function of a Bench: whether the fault has its effect at the input by now; None: from the first turn on
    conforms function of a Bench: whether the output is what it should be; None: by the demand of the row
    sound    function of a Bench: what goes on with a sound machine, where the fault is its end; None: nothing
    lies     whether the machine is made to move by what is believed wrongly, or commanded by a law that was spoilt
    lingers  s for which it counts beyond the probation when it is gone
    """

    condition: str
    name: str
    bring: object
    states: tuple = DRIVEN
    after: After = After.LASTS
    levels: tuple = ('effort', 'valve')
    amend: object = None
    options: dict = field(default_factory=dict)
    onset: object = None
    conforms: object = None
    sound: object = None
    lies: bool = False
    lingers: float = 0.0

    @property
    def row(self):
        return CONDITIONS[self.condition]

    @property
    def group(self):
        """The fault of the table."""
        return self.row.id


INJECTIONS = []


def injection(condition, name='', **how):
    """Register a generator function as an injection of this condition, under its own name or another."""
    def register(function):
        INJECTIONS.append(Injection(condition, name or function.__name__.strip('_'), contextmanager(function), **how))
        return function
    return register


def during(context):
    """The context as a generator: entered before the yield, left after it."""
    with context:
        yield
