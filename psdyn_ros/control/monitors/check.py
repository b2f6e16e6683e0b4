"""What a check is: its rows of the fault table, and an evaluation of what the controller measures and commands.

README.md of this folder has an example; `CheckInputs` of `core/inputs.py` is what a check may look at.
"""

from enum import IntEnum
from typing import NamedTuple


class State(IntEnum):
    """Sub-states of an active controller; of several demands the highest wins."""

    STANDBY = 0     # nothing is asked of the machine: the declared safe output
    RUN = 1         # follows a reference
    DEGRADED = 2    # the same at reduced speed
    HOLD = 3        # under the law, at rest (stop category 2)
    STOPPING = 4    # on its way to rest, then the safe output (stop category 1)
    SAFE = 5        # the declared safe output at once (stop category 0), until `reset`


class Result(IntEnum):
    """Outcome of a check."""

    PASS = 0
    FAIL = 1
    STALE = 2       # the measurement is too old to judge
    ERROR = 3       # it could not be computed


class Demand(NamedTuple):
    """What a condition asks for."""

    state: State
    state_valid: bool = True
    """Whether the measured state may be used for the stop."""


class Row(NamedTuple):
    """A condition: one way in which a fault shows."""

    id: str
    """Of the fault, 'F01'."""
    name: str
    """Of the condition, unique."""
    demand: Demand | None
    """None: it is reported and counted; or not seen by the controller, and `output` names who deals with it."""
    detects: str
    output: str
    bound_cycles: int = 1
    """Control periods from its first effect to the first output that conforms, beyond `bound_s`."""
    bound_s: float = 0.0
    timeout: str = ''
    """Field of `Timeouts`, `Plausibility` or `SafetyDeclaration` that takes the place of bound_s; '': none."""
    probation: bool = True
    """Whether it must be gone for the probation of the declaration before it counts as gone."""
    event: bool = False
    """Whether it is over as soon as it was reported; others last until their check passes."""

    @property
    def latched(self):
        """Whether it counts until `reset`, also when it is gone."""
        return self.demand is not None and self.demand.state >= State.STOPPING

    def bound(self, declaration, period):
        """Return s from its first effect to the first output that conforms."""
        for values in (declaration.timeouts, declaration.plausibility, declaration):
            if self.timeout and hasattr(values, self.timeout):
                return getattr(values, self.timeout) + self.bound_cycles * period
        return self.bound_s + self.bound_cycles * period


COUNTED = Demand(State.RUN)         # counts, but asks for nothing
DEGRADE, HOLD = Demand(State.DEGRADED), Demand(State.HOLD)
STOP, STOP_OPEN_LOOP = Demand(State.STOPPING), Demand(State.STOPPING, False)
SAFE, SAFE_OPEN_LOOP = Demand(State.SAFE), Demand(State.SAFE, False)
# trajectories at half speed; streamed points at half of the rated speeds at most, and behind them where they are faster
REDUCED = 'goes on at reduced speed, until it was good for the probation'
RAMPED = 'the last command is ramped to that of rest, without the measured state; then the safe output'
BRAKED = 'the reference is slowed down from the measured state; then the safe output'
AT_ONCE = 'the safe output in the same cycle; valves of a moving machine begin to shut'
REJECTED = 'the message is not used: it counts as missing, F01'
KEPT = 'refused whole; what is going on goes on'
CONFIGURE = 'when the node is configured: it stays unconfigured, and logs the reason'


def warning(id, name, detects, output, **more):
    """Return the `Row` of a condition that is reported and counted, and asks for nothing."""
    return Row(id, name, None, detects, output, event=True, **more)


class Finding(NamedTuple):
    """One condition that a check found."""

    condition: str
    """Name of one of its rows."""
    text: str = ''
    """What was found, with figures and units."""
    result: Result = Result.FAIL
    demand: Demand | None = None
    """In the place of that of the row."""


class When(IntEnum):
    """At which point a check is evaluated."""

    CYCLE = 0       # in every cycle, before the sub-state is decided
    STATE = 1       # when a measured state was accepted
    PRESSURES = 2   # when pressures were accepted
    COMMAND = 3     # when the law has computed its command; a finding counts from the next cycle on


class Check:
    """A detector of the conditions in `rows`.

    config  `ControllerConfig`
    law     `ControlLaw`
    """

    rows = ()
    """`Row`s of the fault table, of no other check."""
    when = When.CYCLE
    required = True
    """Whether there is something to judge in this configuration; else it is never evaluated."""

    def __init__(self, config, law):
        pass

    def evaluate(self, inputs):
        """Return the `Finding`s of these `CheckInputs`; conditions without one pass. None: nothing was judged."""
        raise NotImplementedError

    def restrain(self, command, inputs):
        """Change a command (actuators,) of the law in place, as far as these `CheckInputs` do not explain it."""

    def restart(self):
        """Forget what was observed: the law begins to hold the machine."""

    def rebase(self, jump):
        """Shift the stamps that are kept: the clock of stamps jumped by so many ns."""
