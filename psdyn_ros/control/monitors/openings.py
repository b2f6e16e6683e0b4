"""Openings of valves under a law that looks at no pressures: those that reference and errors do not explain, and rods
that move otherwise.
"""

import math

import numpy as np

from ...kernels.control import error_range as kernels
from ...kernels.runtime.buffer import views
from ...model.parameters.hydraulics import VALVE
from .actuator_motion import ActuatorMotion
from .check import RAMPED, STOP_OPEN_LOOP, Check, Finding, Row, State, When

WINDOW = 0.025          # s of errors and speeds, within which noise and filters may shift them
TRIM_TIME = 0.5         # s in which what is asked for beyond reference and errors counts as that of an integral
WRONG_OPENINGS = 0.018  # s beyond that range by as much as the speed of standstill
GROSS = 4.0             # times that, which count as so many times that


class OpeningCheck(Check):
    """Restrains openings of valves that the errors do not explain, and stops a law that goes on with them.

    A sound law opens a valve for the speed of its reference, with feedback towards it, and with what its integral has
    gathered. `restrain` takes the speed of each rod into that range, which ends a speed of standstill farther; what is
    farther off counts less, and by as much again not at all. A rod that goes another way than its valve is opened for
    is not where its sensor says.
    """

    rows = (
        Row('F38', 'opening_residual', STOP_OPEN_LOOP, 'a rod moves otherwise than its valve is open, under a law '
            'without pressures', RAMPED, 2, 1.0, event=True),
        Row('F39', 'opening_suspect', STOP_OPEN_LOOP, 'a valve is opened, by a law without pressures, for another '
            'speed than that of the reference', RAMPED, 4, 0.02, event=True))
    when = When.COMMAND

    def __init__(self, config, law):
        rows = [i for i, interface in enumerate(law.interfaces) if interface == VALVE]
        self.required = law.opens_by_speed and bool(rows)
        if not self.required:
            return
        self._law, self._names, self._period = law, config.machine.actuators, config.period
        self._motion, room = ActuatorMotion(config.machine), max(round(WINDOW / config.period), 2) + 1
        self._buffer = kernels.make_opening_range(rows, len(self._names), room)
        self._range = kernels.OpeningRange(*views(self._buffer, kernels.TYPES))
        self._range.slack[:] = config.declaration.standstill_speed
        self._range.learning[0] = min(config.period / TRIM_TIME, 1.0)
        full = np.ones(len(self._names))
        self._range.open[:] = law.rod_speeds(-full), law.rod_speeds(full)
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        if not self.required:
            return
        self._range.count[0], self._range.trim[:], self._range.speeds[:] = 0, 0.0, 0.0
        self._wrong, self._worst = 0.0, -1      # s out of range in a row, and which actuator
        self._time = math.inf                   # s of the last state: one that is repeated is no further evidence
        self._apart = -1                        # the actuator whose rod moves otherwise

    def restrain(self, command, inputs):
        """As `Check.restrain`: openings to the range that reference and errors explain."""
        if not np.isfinite(command).all():
            return      # it does not pass the gate
        law, t, further = self._law, inputs.time, inputs.time != self._time
        self._set_motion(inputs, t + inputs.age + law.lag + 0.5 * self._period)
        if further:
            self._apart = kernels.compare_ways(self._buffer, t - self._time)
        asked = law.rod_speeds(command)
        self._worst, off = kernels.restrain_speeds(self._buffer, law.flow_gains, law.feedforward_scale, asked,
                                                   inputs.state is State.STOPPING)
        self._time = t
        self._wrong = 0.0 if self._worst < 0 else self._wrong + further * self._period * min(off, GROSS)
        rows, speeds = self._range.rows, self._range.speeds
        wrong = rows[speeds[rows] != asked[rows]]
        command[wrong] = law.openings(speeds)[wrong]

    def _set_motion(self, inputs, ahead):
        """Set what was measured, and the reference now and at a time ahead [s]."""
        motion, of, (desired, rate, _) = self._range.motion, self._motion, self._law.desired
        motion[kernels.MEASURED], motion[kernels.MEASURED_RATE] = of.read(*inputs.estimated)
        motion[kernels.REFERENCE], motion[kernels.REFERENCE_RATE] = of.positions(desired), of.rates(desired, rate)
        motion[kernels.AHEAD_RATE] = of.rates(*self._law.reference.ahead(ahead)[:2])

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        findings = []
        if self._apart >= 0:
            off, way, allowed = 1e3 * self._range.ways[:, self._apart]
            findings.append(Finding('opening_residual', f'{self._names[self._apart]} moved {off:.3g} mm or mrad beyond '
                                    f'the {way:.3g} for which its valve was open; at most {allowed:.3g}'))
        if self._wrong >= WRONG_OPENINGS:
            asked, low, high = 1e3 * self._range.found[:, self._worst]
            findings.append(Finding('opening_suspect', f'the valve of {self._names[self._worst]} is opened for '
                                    f'{asked:.3g} mm/s or mrad/s; expected {low:.3g} to {high:.3g} by reference and '
                                    'errors'))
        return findings
