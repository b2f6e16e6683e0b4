"""What may go wrong, what the controller makes of it, and how soon: the one table behind code, documents and tests."""
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
    """What a check says."""

    PASS = 0
    FAIL = 1
    STALE = 2       # what it looks at is too old to tell
    ERROR = 3       # it could not be computed


class Demand(NamedTuple):
    """What a condition asks for."""

    state: State
    trusted: bool = True
    """Whether the measured state may be used for the stop."""


class Row(NamedTuple):
    """A condition: one way in which a fault shows."""

    id: str
    """Of the fault, 'F01'."""
    name: str
    """Of the condition, unique."""
    demand: Demand | None
    """None: it is told and counted; or not seen by the controller, and `output` says who deals with it."""
    detects: str
    output: str
    bound_cycles: int = 1
    """Control periods from its first effect to the first output that conforms, beyond `bound_s`."""
    bound_s: float = 0.0
    timeout: str = ''
    """What of `Timeouts` or `Plausibility` takes the place of bound_s; '': nothing."""
    probation: bool = True
    """Whether it must be gone for the probation of the declaration before it counts as gone."""
    event: bool = False
    """Whether it is over as soon as it was told; others last until their check passes."""

    @property
    def latched(self):
        """Whether it counts until `reset`, also when it is gone."""
        return self.demand is not None and self.demand.state >= State.STOPPING

    def bound(self, declaration, period):
        """Return s from its first effect to the first output that conforms."""
        for values in (declaration.timeouts, declaration.plausibility):
            if self.timeout and hasattr(values, self.timeout):
                return getattr(values, self.timeout) + self.bound_cycles * period
        return self.bound_s + self.bound_cycles * period


DEGRADE, HOLD = Demand(State.DEGRADED), Demand(State.HOLD)
STOP, STOP_BLIND = Demand(State.STOPPING), Demand(State.STOPPING, False)
SAFE, SAFE_BLIND = Demand(State.SAFE), Demand(State.SAFE, False)
# trajectories at half speed; streamed points at half of the rated speeds at most, and behind them where they are faster
REDUCED = 'goes on at reduced speed, until it was good for the probation'
RAMP = 'the last command is ramped to that of rest, without the measured state; then the safe output'
BRAKED = 'the reference is slowed down from the measured state; then the safe output'
AT_ONCE = 'the safe output in the same cycle'
REJECTED = 'the message is not used: it counts as missing, F01'
KEPT = 'refused whole; what is going on goes on'
CONFIGURE = 'when the node is configured: it stays unconfigured, and says what was wrong'


def _told(id, name, detects, output, **more):
    return Row(id, name, None, detects, output, event=True, **more)


ROWS = (
    # joint state
    Row('F01', 'state_missed', DEGRADE, 'several states in a row did not come', REDUCED, 4),
    Row('F01', 'state_silent', STOP_BLIND, 'no state for the timeout', RAMP, 1, 0.020, 'stopping'),
    Row('F01', 'state_lost', SAFE_BLIND, 'no state for the longer timeout', AT_ONCE, 1, 0.100, 'safe'),
    Row('F01', 'pressures_silent', STOP_BLIND, 'no pressures for the timeout, where the law needs them', RAMP, 1, 0.020,
        'stopping'),
    _told('F02', 'state_stale', 'stamp zero, or too old', REJECTED),
    _told('F03', 'state_future', 'stamp later than the clock and its skew', REJECTED),
    Row('F04', 'stamp_order', DEGRADE, 'stamps not later than the one before, three in a row', REDUCED, 4, event=True),
    _told('F05', 'state_not_finite', 'NaN or infinity in a state', REJECTED),
    _told('F05', 'pressures_not_finite', 'NaN or infinity in pressures', REJECTED),
    _told('F06', 'state_malformed', 'joints missing, or arrays of another length', REJECTED),
    _told('F06', 'state_surplus', 'joints that the machine does not have', 'they are passed over'),
    _told('F07', 'state_duplicate', 'a joint that is there twice', REJECTED),
    Row('F08', 'state_jump', STOP_BLIND, 'positions farther than velocities explain, three in a row', RAMP, 4,
        event=True),
    Row('F09', 'state_frozen', STOP_BLIND, 'a position that is bit-identical while it should move', RAMP, 1, 0.1,
        'freeze_time', event=True),
    _told('F10', 'velocity_missing', 'no velocities where they are declared as measured', REJECTED),
    _told('F11', 'velocity_suspect', 'positions and velocities differ by half of what is allowed', 'is told',
          bound_s=0.05, timeout='velocity_window'),
    Row('F11', 'velocity_residual', STOP_BLIND, 'positions and velocities disagree', RAMP, 1, 0.05, 'velocity_window',
        event=True),
    _told('F12', 'closure_suspect', 'redundant joints differ by half of what is allowed', 'is told'),
    Row('F12', 'closure_residual', STOP_BLIND, 'redundant joints of a loop disagree', RAMP, event=True),
    Row('F12', 'branch_flip', SAFE_BLIND, 'a loop in another assembly mode than at the start', AT_ONCE, event=True),
    # mechanism and actuators
    _told('F13', 'singular_near', 'a transmission ratio below the first threshold', 'the reference is slowed down'),
    Row('F13', 'singular', HOLD, 'a transmission ratio below the second threshold',
        'stops and holds; a reference that leads away is followed', probation=False),
    _told('F14', 'end_stop', 'a position in the soft margin of its limits', 'commands outward are clamped'),
    _told('F15', 'clamped', 'a command beyond its limit or rate', 'is clamped'),
    Row('F15', 'saturated', DEGRADE, 'clamped for longer than 200 ms while the error grows', REDUCED, 2, 0.2),
    Row('F16', 'output_rejected', SAFE, 'a command that is not finite, of another length or another cycle', AT_ONCE, 0,
        event=True),
    Row('F17', 'left_running', None, 'deactivation, SIGINT, SIGTERM',
        'not a fault: `SafetyStates.deactivate` stops, then the safe output at least three times', 3),
    # reference
    Row('F18', 'no_state_at_start', None, 'activation or enabling without a fresh state',
        'refused by `SafetyStates`; without a reference it holds where it is'),
    Row('F19', 'stream_silent', HOLD, 'no streamed point for the timeout', 'stops and holds', 1, 0.1, 'stream',
        probation=False),
    _told('F20', 'reference_rejected', 'starts elsewhere, or jumps in position or velocity', KEPT),
    Row('F20', 'tracking', STOP, 'farther from the reference than is tolerated', BRAKED, 2, event=True),
    _told('F21', 'reference_unreachable', 'beyond limits, through a singularity, or where no loop closes', KEPT),
    _told('F22', 'reference_malformed', 'NaN, empty, times not growing, in the past, duplicates', KEPT),
    # model and parameters
    _told('F23', 'parameter_rejected', 'a parameter of a wrong type, out of range, or fixed while active', KEPT,
          bound_cycles=0),
    _told('F24', 'clock_parameter', '`use_sim_time` set while active', KEPT, bound_cycles=0),
    Row('F25', 'impossible_inertia', None, 'masses and inertias that no body has', CONFIGURE),
    _told('F25', 'load_rejected', 'a payload or base motion that cannot be', KEPT),
    Row('F26', 'broken_description', None, 'a description that cannot be read', CONFIGURE),
    _told('F26', 'description_changed', 'another description while active', 'is passed over'),
    Row('F27', 'hostile_description', None, 'a description of absurd size, or with entities', CONFIGURE),
    # run time, network, process
    Row('F28', 'controller_dead', None, 'commands older than their ttl',
        'the receiver gives its own safe output; a controller that starts again is not enabled', 1, 0.020),
    Row('F29', 'exception', SAFE, 'an exception where none is expected', AT_ONCE, 1, event=True),
    Row('F30', 'overrun', DEGRADE, 'three cycles in a row, or more than 1 % of a second, too late', REDUCED),
    Row('F30', 'output_late', STOP, 'no output for the timeout', BRAKED, 1, 0.020, 'stopping', event=True),
    # by then the receiver gives its own safe output: a ramp of the last command would set the machine in motion again
    Row('F30', 'output_lost', SAFE_BLIND, 'no output for the longer timeout, or for the timeout and no trusted state',
        AT_ONCE, 1, 0.100, 'safe', event=True),
    _told('F31', 'clock_jump', 'the clock of stamps jumped', 'stamps are taken from there; no change of motion',
          bound_cycles=0),
    Row('F31', 'clock_paused', HOLD, 'simulated time stands still', 'stops and holds', 1, 0.2, probation=False),
    Row('F31', 'clock_reset', STOP_BLIND, 'simulated time went back', RAMP, event=True),
    Row('F32', 'rival_commands', STOP, 'another publisher of commands', BRAKED, 1, 1.0),
    # no message says whose it is: what was measured is not used for the stop
    Row('F32', 'rival_states', STOP_BLIND, 'another publisher of states', RAMP, 1, 1.0),
    _told('F33', 'flood', 'more messages, or larger ones, than are read', 'they are passed over'),
    Row('F36', 'emergency_stop', SAFE, 'the emergency stop is pressed, absent, or too old', AT_ONCE, 1, 0.1,
        'emergency_stop', probation=False),
)
CONDITIONS = {row.name: row for row in ROWS}
