"""A stop without measurements: commands of speeds are ramped, commands of forces brake by the model.

A force that is merely ramped to what holds the load leaves a machine its speed. So efforts and pressures are those that
the model expects of the reference while it is slowed down from where it was, and not from what was measured. What
overcame friction fades: it slows the machine down too, and seals that are let go at once would throw it back; slowly at
first, since a light axis that its seals hold at once gives its momentum to the others. What errors asked for fades
fast at first: where a position drifts, it drives the machine. What their integrals have gathered goes on carrying what
the model lacks. Neither counts as far as the machine did not get it, as where a check restrained it or the law fails.
"""

import numpy as np

from .output_ramp import EASE, OutputRamp

FADING = 3          # power of the share of `EASE` that is over, for friction, or left, for errors


class OpenLoopStop:
    """A stop of the reference and of the commands together.

    declaration  `SafetyDeclaration`
    law          `ControlLaw` whose reference is slowed down
    """

    def __init__(self, declaration, law):
        self._law, self._ramp = law, OutputRamp(declaration, law.swing_period)
        self._deceleration = np.array(declaration.deceleration)
        self._forces = declaration.by_force
        self._braking, self._limit = bool(self._forces.any()), np.array(declaration.command_limit)[self._forces]
        self._began = self._time = 0
        self._overloaded = False
        self._friction = self._errors = self._integrals = None      # parts of the commands beside those of the model

    def start(self, command, velocity, target, clock, t, elapsed=0):
        """Begin at `clock` (ns), which is t (s) of the reference; the rest as `OutputRamp.start`."""
        self._ramp.start(command, velocity, target, clock, elapsed)
        self._began, self._time, self._overloaded = clock, t, False
        if self._braking:
            self._friction = self._law.friction(velocity)
            self._errors, self._integrals = self._given_corrections(command, t)
            # of forces: no oil swings on them
            self._law.reference.stop(t, self._deceleration, halves=False)

    def at(self, clock):
        """Return the commands (actuators,) at `clock`; raises what the model does."""
        command = self._ramp.at(clock)
        if self._braking:
            over = min(1e-9 * (clock - self._began) / EASE, 1.0)
            x, xd, xdd = self._law.reference.sample(self._seconds(clock))
            braking = self._law.carrying(x, xd, xdd)
            braking += self._integrals + (1.0 - over**FADING) * self._friction + (1.0 - over)**FADING * self._errors
            command[self._forces] = braking[self._forces]
            if (np.abs(braking[self._forces]) > self._limit).any():
                steady = self._law.carrying(x, xd, 0.0 * xdd)[self._forces]
                # efforts at their limits neither hold such a load nor stop it, and throw a machine that has none
                self._overloaded = bool((np.abs(steady) > self._limit).any())
                command[self._forces] = self._possible(steady, braking[self._forces])
        return command

    def _possible(self, steady, asked):
        """Return commands within their limits, what is beyond the steady ones all reduced alike.

        An axis at its limit does not brake as it should, and what the others give for that would throw them.
        """
        more = asked - steady
        room = np.maximum(self._limit - np.sign(more) * steady, 0.0)
        share = np.divide(room, np.abs(more), out=np.ones_like(more), where=np.abs(more) > room).min()
        return np.clip(steady + share * more, -self._limit, self._limit)

    def _given_corrections(self, command, t):
        """Return what the last command (actuators,) gave of what the law asked for errors, and for their integrals."""
        law, (x, xd, xdd) = self._law, self._law.reference.sample(t)
        carrying = law.carrying(x, xd, xdd)
        asked = np.array([law.carrying(x, xd, xdd + accelerations) - carrying for accelerations in law.corrections])
        missing = np.linalg.norm((law.asked_commands - command)[self._forces] / self._limit)
        most = np.linalg.norm(asked.sum(axis=0)[self._forces] / self._limit)
        return (1.0 - missing / most) * asked if missing < most else np.zeros_like(asked)   # nothing where one is NaN

    def done(self, clock):
        """Return whether the stop has come to its end, or the model has a load that cannot be held."""
        at_rest = not self._braking or self._law.reference.at_rest(self._seconds(clock))
        return self._overloaded or self._ramp.done(clock) and at_rest

    def _seconds(self, clock):
        return self._time + 1e-9 * (clock - self._began)
