"""Openings of valves under a law that looks at no pressures: those that reference and errors do not explain."""

from collections import deque

import numpy as np

from ...model.parameters.hydraulics import VALVE
from .actuator_motion import ActuatorMotion
from .check import RAMPED, STOP_OPEN_LOOP, Check, Finding, Row, When

STRONGER = 2.0          # times the feedback by the gains, that an opening may give
WINDOW = 0.025          # s of errors and speeds, within which noise and filters may shift them
TRIM_TIME = 0.5         # s in which what is asked for beyond reference and errors counts as that of an integral
WRONG_OPENINGS = 0.018  # s beyond that range by as much as the speed of standstill
GROSS = 4.0             # times that, which count as so many times that


class OpeningCheck(Check):
    """Restrains openings of valves that the errors do not explain, and stops a law that goes on with them.

    A sound law opens a valve for the speed of its reference, with feedback towards it, and with what its integral has
    gathered. `restrain` takes the speed of each rod into that range, which ends a speed of standstill farther.
    """

    rows = (Row('F39', 'opening_suspect', STOP_OPEN_LOOP, 'a valve is opened, by a law without pressures, for another '
                'speed than that of the reference', RAMPED, 4, 0.02, event=True),)
    when = When.COMMAND

    def __init__(self, config, law):
        self._rows = np.array([i for i, tier in enumerate(law.tiers) if tier == VALVE], dtype=int)
        self.required = law.opens_by_speed and bool(self._rows.size)
        if not self.required:
            return
        self._law, self._names, self._period = law, config.machine.actuators, config.period
        self._motion = ActuatorMotion(config.machine)
        self._off = np.array(config.declaration.standstill_speed)[self._rows]
        self._room = max(round(WINDOW / config.period), 2) + 1
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        if not self.required:
            return
        self._recent = deque(maxlen=self._room)     # (4, rows) m/s: least and largest fed forward, of both errors
        self._trim = np.zeros(self._rows.size)      # m/s
        self._wrong, self._worst = 0.0, ''          # s out of range in a row, and how
        self._time = None                           # s of the last state: one that is repeated is no further evidence

    def restrain(self, command, inputs, last):
        """As `Check.restrain`: openings to the range that reference and errors explain."""
        if not np.isfinite(command).all():
            return      # it does not pass the gate
        rows, law, t = self._rows, self._law, inputs.time
        further, self._time = t != self._time, t
        low, high = self._speeds(inputs.checks.x, inputs.checks.xd, t, inputs.age)
        asked = law.rod_speeds(command)[rows]
        kept = np.clip(asked, self._trim + low - self._off, self._trim + high + self._off)
        wrong = kept != asked
        if not wrong.any():
            self._wrong = 0.0
        else:
            off = np.abs(asked - kept) / self._off
            i = int(off.argmax())
            self._wrong += further * self._period * min(off[i], GROSS)
            self._worst = (f'the valve of {self._names[rows[i]]} is opened for {1e3 * asked[i]:.3g} mm/s; expected '
                           f'{1e3 * (self._trim + low - self._off)[i]:.3g} to '
                           f'{1e3 * (self._trim + high + self._off)[i]:.3g} by reference and errors')
            speeds = np.zeros(command.size)
            speeds[rows] = kept
            command[rows] = np.where(wrong, law.openings(speeds)[rows], command[rows])
        self._trim += min(self._period / TRIM_TIME, 1.0) * (kept - np.clip(kept, low, high) - self._trim)

    def _speeds(self, x, xd, t, age):
        """Return the least and the largest speed (rows,) that reference and errors explain."""
        law, rows, (desired, rate, _) = self._law, self._rows, self._law.desired
        ahead = law.reference.ahead(t + age + law.lag + 0.5 * self._period)
        fed = np.array([self._motion.rates(desired, rate), self._motion.rates(*ahead[:2])])[:, rows]
        fed = np.concatenate((fed, law.feedforward_scale * fed))
        proportional, derivative = STRONGER * law.flow_gains[:, rows]
        error = self._motion.positions(desired) - self._motion.positions(x)
        drift = self._motion.rates(desired, rate) - self._motion.rates(x, xd)
        self._recent.append((fed.min(axis=0), fed.max(axis=0), proportional * error[rows], derivative * drift[rows]))
        parts = np.array(self._recent)
        low, high = parts.min(axis=0), parts.max(axis=0)
        return (low[0] + np.minimum(low[2], 0.0) + np.minimum(low[3], 0.0),
                high[1] + np.maximum(high[2], 0.0) + np.maximum(high[3], 0.0))

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        return () if self._wrong < WRONG_OPENINGS else (Finding('opening_suspect', self._worst),)
