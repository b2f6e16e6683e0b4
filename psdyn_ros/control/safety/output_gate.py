"""The last word before an actuator: a command is finite, in range, in rate and of this cycle, or it does not leave."""
import math
from functools import partial

import numpy as np

from ...kernels.control.output_gate import pass_commands
from ...model.errors import PsdynError, shorten
from ...model.parameters.safety import EFFORT, GRAVITY, VELOCITY

NO_COMMAND = math.nan
DOUBLE = np.dtype(np.float64)
MIN_PERIODS, MAX_PERIODS = 0.5, 2.0    # periods, of the time over which a rate is judged


class GateError(PsdynError):
    """A command that must not leave; the answer is SAFE in the same cycle."""


class OutputGate:
    """Judges each command against the declaration, and knows the safe output.

    declaration  `SafetyDeclaration`
    limits       `Limits` of the actuators: no command is beyond them, whatever the declaration says
    period       s, of the control cycle
    """

    def __init__(self, declaration, limits, period):
        self.actuators = declaration.actuators
        most = {EFFORT: limits.effort, VELOCITY: limits.velocity}
        self._limit = np.array([min(limit, most[interface][i]) if interface in most else limit
                                for i, (interface, limit) in enumerate(zip(declaration.interfaces,
                                                                           declaration.command_limit))], dtype=float)
        self._rate = np.array(declaration.command_rate, dtype=float)
        self._shape = (len(self.actuators),)
        self._shortest, self._longest = MIN_PERIODS * period, MAX_PERIODS * period
        self._safe = declaration.safe_value.tolist()
        self._gravity = [kind == GRAVITY for kind in declaration.safe_kind]
        self._last = np.full(self._shape, NO_COMMAND)
        self._range_clamps, self._rate_clamps = np.zeros((2, *self._shape), dtype=np.int64)
        coupled = declaration.by_force.astype(np.int64)
        self.clamped = 0
        """How often commands were beyond their limits, all together."""
        self._clamp = partial(pass_commands, self._limit, self._rate, coupled, self._last, self._range_clamps,
                              self._rate_clamps)

    @property
    def last(self):
        """Output (actuators,) before, a copy; NaN: left out."""
        return self._last.copy()

    @property
    def range_clamps(self):
        """How often each command was beyond its limit."""
        return self._range_clamps.tolist()

    @property
    def rate_clamps(self):
        """How often each command changed faster than declared."""
        return self._rate_clamps.tolist()

    def filter_command(self, command, stamp, now, dt):
        """Return the output (actuators,): the command, clamped to its limits and to its rate.

        Where a force or pressure would change too fast all of them go the same share of their way.
        command (actuators,) of float64, in the unit of each interface.  stamp: ns, of the cycle that it is for;
        now: ns, of this cycle, on the same clock.  dt: s since the last output, taken as 0.5 to 2 periods.
        After an output in which an actuator was left out its first command may be any within its limits.
        Raises GateError.
        """
        if stamp != now:
            raise GateError(f'the command is of the cycle at {stamp!r:.40} ns; expected this one, {now!r:.40} ns')
        if not self.is_array(command):
            raise GateError(f'the command is {shorten(repr(command))}; expected a float64 array of {self._shape[0]}')
        if not math.isfinite(dt):
            raise GateError(f'the command comes {dt} s after the one before; expected a finite time')
        dt = min(max(dt, self._shortest), self._longest)
        # kept as it is even if `command` changes, and of the only kind that the kernel is compiled for
        out = command.copy()
        found = self._clamp(out, dt)
        if found < 0:
            i = -1 - found
            raise GateError(f"the command of '{self.actuators[i]}' is {float(command[i])}; expected a finite one")
        self.clamped += found
        return out

    def is_array(self, command):
        """Return whether a command is an array (actuators,) of float64; no other passes."""
        return type(command) is np.ndarray and command.shape == self._shape and command.dtype == DOUBLE

    def safe(self, holding=None, closing=None):
        """Return the declared safe output (actuators,), NaN where an actuator is left out.

        holding (actuators,): commands that held the load at the last valid position; without them actuators of
        which gravity is the safe output are left out.  closing (actuators,): openings of valves that are on their way
        to neutral.  Never raises.
        """
        out = list(self._safe)
        known = self.is_array(holding)
        for i, gravity in enumerate(self._gravity):
            if gravity and known and math.isfinite(holding[i]):
                out[i] = min(max(float(holding[i]), -float(self._limit[i])), float(self._limit[i]))
        self._last[:] = out
        if closing is not None:
            self._last += closing
        return self._last.copy()
