"""Checks of the output gate on each command: finite, in range, in rate."""
import math

from ..runtime.compiler import entry


@entry
def pass_commands(limit, rate, coupled, last, range_clamps, rate_clamps, command, dt):
    """Clamp the command (actuators,) to +-limit, then to within rate * dt of the last one, which it becomes.

    Those that are coupled (actuators,), not 0, all go the same share of their way where one would change too fast:
    forces that were clamped each by itself would accelerate the axis whose force was not.

    range_clamps, rate_clamps (actuators,) count the clamped commands.  last: NaN where there was none.
    Returns how many were beyond their limit; or -1 - i of the first that is not finite, and nothing is changed.
    """
    for i in range(command.shape[0]):
        if not math.isfinite(command[i]):
            return -1 - i
    beyond, share = 0, math.inf
    for i in range(command.shape[0]):
        if not -limit[i] <= command[i] <= limit[i]:
            beyond += 1
            range_clamps[i] += 1
            command[i] = math.copysign(limit[i], command[i])
        step, change = rate[i] * dt, abs(command[i] - last[i])
        if change > step:
            rate_clamps[i] += 1
            if coupled[i]:
                share = min(share, step / change)
            else:
                command[i] = last[i] + math.copysign(step, command[i] - last[i])
    for i in range(command.shape[0]):
        if coupled[i] and math.isfinite(share) and math.isfinite(last[i]):
            command[i] = last[i] + share * (command[i] - last[i])
        last[i] = command[i]
    return beyond
