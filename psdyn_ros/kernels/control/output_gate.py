"""The part of the output gate that looks at each command: finite, then in range, then in rate."""
import math

from ..runtime.compiler import entry, vector
from ..runtime.places import FLOAT, INT, bound

HELD = (FLOAT, 1), (FLOAT, 1), (FLOAT, 1), (INT, 1), (INT, 1)       # arrays that `pass_commands` is given once


@entry
def pass_commands(limit, rate, last, range_clamps, rate_clamps, command, dt):
    """Clamp the command (actuators,) to +-limit, then to within rate * dt of the last one, which it becomes.

    range_clamps, rate_clamps (actuators,) count where that changed something.  last: NaN where there was none.
    Returns how many were beyond their limit; or -1 - i of the first that is not finite, and nothing is changed.
    """
    for i in range(command.shape[0]):
        if not math.isfinite(command[i]):
            return -1 - i
    beyond = 0
    for i in range(command.shape[0]):
        if not -limit[i] <= command[i] <= limit[i]:
            beyond += 1
            range_clamps[i] += 1
            command[i] = math.copysign(limit[i], command[i])
        step = rate[i] * dt
        if command[i] > last[i] + step:
            rate_clamps[i] += 1
            command[i] = last[i] + step
        elif command[i] < last[i] - step:
            rate_clamps[i] += 1
            command[i] = last[i] - step
        last[i] = command[i]
    return beyond


def gate_of(*held):
    """`pass_commands` of these arrays, its first five, as a function of the command and dt."""
    return bound(pass_commands_at, pass_commands, HELD, *held)


@entry
def pass_commands_at(places, command, dt):
    """`pass_commands` of the arrays at these places."""
    return pass_commands(vector(places, 0, FLOAT), vector(places, 1, FLOAT), vector(places, 2, FLOAT),
                         vector(places, 3, INT), vector(places, 4, INT), command, dt)
