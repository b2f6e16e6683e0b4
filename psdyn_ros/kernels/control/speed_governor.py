"""Speed of a reference along its path where valve, pump or force leave less than it asks for.

A reference governor in the sense of path velocity control (Dahl and Nielsen, "Torque-limited path following by on-line
trajectory time scaling", IEEE Transactions on Robotics and Automation 6, 1990): where the machine cannot follow, path
time runs slower, and the motion stays on its path. Three signs are looked at, whatever their cause:

    error    of the worst actuator, as a share of its tracking tolerance, a little ahead while it grows
    clipped  commands of the law or the gate, for most of the last cycles
    supply   pressure of the pump, as a share of its setting: it sags where the pump gives less oil than is taken

The speed falls as fast as the path lets it and rises slowly, so that it settles at what the machine can do.
"""
import math

from ..runtime.compiler import entry, kernel

ERROR_FROM, ERROR_TO = 0.45, 0.9        # share of the tolerance at which the speed begins to fall, and is the least
CLIPPED_FROM = 0.15         # the same where commands are clipped: the error is no passing one
LEAD = 0.1                  # s that a growing error is looked at ahead
MEMORY = 0.05               # s of the filters of the growth and of clipped commands
OFTEN = 0.5                 # share of the last cycles with clipped commands from which the speed falls
CLIPPED_FALL = 1.0          # 1/s then
SUPPLY_FROM, SUPPLY_TO = 0.85, 0.6      # share of the setting at which the speed begins to fall, and is the least
LEAST = 0.05                # speed left in any case: a machine that does not move at all runs into its tolerance
RISE = 0.25                 # 1/s
SPEED, ERROR, GROWTH, CLIPPED = range(4)        # of the memory
AT_REST = 1.0, math.nan, 0.0, 0.0               # memory of a machine that holds still: no error was seen yet


@entry
def govern(memory, error, clipped, supply, dt):
    """Return the share, LEAST to 1, of its speed that a reference may have, dt [s] after the last call.

    memory   (4,) changed here; `AT_REST` at the beginning
    error    share of its tracking tolerance that the worst actuator is off
    clipped  whether a command was clipped since the last call
    supply   pressure as a share of its setting; NaN where it is not measured
    """
    speed = memory[SPEED]
    if dt <= 0.0 or not math.isfinite(error):
        return speed
    new = 1.0 - math.exp(-dt / MEMORY)
    if not math.isnan(memory[ERROR]):
        memory[GROWTH] += new * ((error - memory[ERROR]) / dt - memory[GROWTH])
    memory[CLIPPED] += new * ((1.0 if clipped else 0.0) - memory[CLIPPED])
    memory[ERROR] = error
    clipped_often = memory[CLIPPED] > OFTEN
    allowed = falling(error + LEAD * max(memory[GROWTH], 0.0), CLIPPED_FROM if clipped_often else ERROR_FROM, ERROR_TO)
    if not math.isnan(supply):
        allowed = min(allowed, falling(-supply, -SUPPLY_FROM, -SUPPLY_TO))
    if clipped_often:
        allowed = min(allowed, speed - CLIPPED_FALL * dt)
    memory[SPEED] = max(LEAST, min(allowed, min(speed + RISE * dt, 1.0)))
    return memory[SPEED]


@kernel
def falling(value, start, end):
    """Return 1 below `start`, 0 beyond `end`, and a straight line between them."""
    return min(max((end - value) / (end - start), 0.0), 1.0)
