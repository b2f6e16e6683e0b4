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

ERROR_FROM, ERROR_TO = 0.45, 0.9        # share of the tolerance at which the speed begins to fall, and is the least
LEAD = 0.1                  # s that a growing error is looked at ahead
MEMORY = 0.05               # s of the filters of the growth and of clipped commands
OFTEN = 0.5                 # share of the last cycles with clipped commands from which the speed falls
CLIPPED_FALL = 1.0          # 1/s then
SUPPLY_FROM, SUPPLY_TO = 0.85, 0.6      # share of the setting at which the speed begins to fall, and is the least
LEAST = 0.05                # speed left in any case: a machine that does not move at all runs into its tolerance
RISE = 0.25                 # 1/s


class SpeedGovernor:
    """`speed`, LEAST to 1, is the share of its speed that a reference may have."""

    def __init__(self):
        self.restart()

    def restart(self):
        """Forget what was seen: the machine holds still."""
        self.speed = 1.0
        self._error, self._growth, self._clipped = None, 0.0, 0.0

    def update(self, error, clipped, supply, dt):
        """Return the speed, dt [s] after the last call.

        error    share of its tracking tolerance that the worst actuator is off
        clipped  whether a command was clipped since the last call
        supply   pressure as a share of its setting; None where it is not measured
        """
        if dt <= 0.0 or not math.isfinite(error):
            return self.speed
        new = 1.0 - math.exp(-dt / MEMORY)
        if self._error is not None:
            self._growth += new * ((error - self._error) / dt - self._growth)
        self._clipped += new * (float(clipped) - self._clipped)
        self._error = error
        allowed = falling(error + LEAD * max(self._growth, 0.0), ERROR_FROM, ERROR_TO)
        if supply is not None:
            allowed = min(allowed, falling(-supply, -SUPPLY_FROM, -SUPPLY_TO))
        if self._clipped > OFTEN:
            allowed = min(allowed, self.speed - CLIPPED_FALL * dt)
        self.speed = max(LEAST, min(allowed, self.speed + RISE * dt, 1.0))
        return self.speed


def falling(value, start, end):
    """Return 1 below `start`, 0 beyond `end`, and a straight line between them."""
    return min(max((end - value) / (end - start), 0.0), 1.0)
