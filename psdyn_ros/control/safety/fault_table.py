"""What may go wrong, what the controller makes of it, and how soon: the one table behind code, documents and tests.

The rows of a check stand with the check, in `monitors/`; here are the others by their detector, and the whole table.
"""

from ..monitors.check import (
    AT_ONCE,
    BRAKED,
    CONFIGURE,
    DEGRADE,
    KEPT,
    RAMPED,
    REDUCED,
    REJECTED,
    SAFE,
    SAFE_OPEN_LOOP,
    STOP,
    STOP_OPEN_LOOP,
    Demand,
    Result,
    Row,
    State,
    warning,
)
from ..monitors.checks import CHECKS

__all__ = ['CONDITIONS', 'DETECTORS', 'REJECTED', 'ROWS', 'Demand', 'Result', 'Row', 'State']

# by the time since the last accepted state, in this order; `SafetyStates.state_accepted` feeds them
TIMEOUTS = (
    Row('F01', 'state_missed', DEGRADE, 'several states in a row did not come', REDUCED, 4),
    Row('F01', 'state_silent', STOP_OPEN_LOOP, 'no state for the timeout', RAMPED, 1, 0.020, 'stopping'),
    Row('F01', 'state_lost', SAFE_OPEN_LOOP, 'no state for the longer timeout; a ramp under way goes on to its end',
        AT_ONCE, 1, 1.0),
)
# around the law and its output
CORE = (
    Row('F16', 'output_rejected', SAFE, 'a command that is not finite, of another length or another cycle', AT_ONCE, 0,
        event=True),
    warning('F25', 'load_rejected', 'a payload or base motion that cannot be', KEPT),
    Row('F29', 'exception', SAFE, 'an exception where none is expected', AT_ONCE, 1, event=True),
)
# messages, parameters and publishers, which only a node sees
NODE = (
    warning('F06', 'state_surplus', 'joints that the machine does not have', 'they are passed over'),
    warning('F07', 'state_duplicate', 'a joint that is there twice', REJECTED),
    warning('F10', 'velocity_missing', 'no velocities where they are declared as measured', REJECTED),
    warning('F20', 'reference_rejected', 'starts elsewhere, or jumps in position or velocity', KEPT),
    warning('F21', 'reference_unreachable', 'beyond limits, through a singularity, or where no loop closes', KEPT),
    warning('F22', 'reference_malformed', 'NaN, empty, times not growing, in the past, duplicates', KEPT),
    warning('F23', 'parameter_rejected', 'a parameter of a wrong type, out of range, or fixed while active', KEPT,
            bound_cycles=0),
    warning('F24', 'clock_parameter', '`use_sim_time` set while active', KEPT, bound_cycles=0),
    warning('F26', 'description_changed', 'another description while active', 'is passed over'),
    Row('F32', 'conflicting_commands', STOP, 'another publisher of commands', BRAKED, 1, 1.0),
    # no message says whose it is: what was measured is not used for the stop
    Row('F32', 'conflicting_states', STOP_OPEN_LOOP, 'another publisher of states', RAMPED, 1, 1.0),
    warning('F33', 'flood', 'more messages, or larger ones, than are read', 'they are passed over'),
)
# never reported: refused before a controller runs, or answered by the receiver of its commands
REFUSED = (
    Row('F17', 'left_running', None, 'deactivation, SIGINT, SIGTERM',
        'not a fault: `SafetyStates.deactivate` stops, then the safe output at least three times', 3),
    Row('F18', 'no_state_at_start', None, 'activation or enabling without a fresh state',
        'refused by `SafetyStates`; without a reference it holds where it is'),
    Row('F25', 'impossible_inertia', None, 'masses and inertias that no body has', CONFIGURE),
    Row('F26', 'broken_description', None, 'a description that cannot be read', CONFIGURE),
    Row('F27', 'hostile_description', None, 'a description of absurd size, or with entities', CONFIGURE),
    Row('F28', 'controller_dead', None, 'commands older than their ttl',
        'the receiver gives its own safe output; a controller that starts again is not enabled', 1, 0.020),
)
# who finds a condition: its rows
DETECTORS = {'SafetyStates': TIMEOUTS, 'ControlCore': CORE, 'node': NODE, 'refused': REFUSED,
             **{check.__name__: check.rows for check in CHECKS}}
ROWS = tuple(sorted((row for rows in DETECTORS.values() for row in rows), key=lambda row: row.id))
CONDITIONS = {row.name: row for row in ROWS}
