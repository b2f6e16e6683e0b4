"""Measured speed beside the rated one and that of the reference; a swing that grows; a stop that does not slow down."""

import numpy as np

from ...kernels.control import speed_plausibility as kernels
from ...model.parameters.hydraulics import VALVE, VELOCITY
from .actuator_motion import ActuatorMotion
from .check import AT_ONCE, RAMPED, SAFE_OPEN_LOOP, STOP_OPEN_LOOP, Check, Finding, Row, State, When

AT_REST = 1.5               # times the speed of standstill that the machine may have at rest, as where static friction
                            # lets go
SWINGING = 2.5              # times the speed of standstill, and
SWING_SHARE = 0.07          # share of its rated speed, by which an axis at force level may swing in motion anyway
STANDS = 0.125              # share of the rated speed that a stop may add, and ends with
STANDS_BY_FORCE = 0.03      # the same where forces are given that look at nothing measured: what adds speed goes on
REACTION = 0.1, 0.2         # s until a stop slows down; under a law without pressures, which lags its reference
SLOWING = 0.5               # of the declared deceleration that is demanded on the average


def asked_speed(config):
    """Return the speeds (actuators,) that a command of 1 asks for: of a valve the rated ones; inf where unknown."""
    rated, interfaces = np.array(config.machine.limits.velocity, float), np.array(config.declaration.interfaces)
    asked = np.where(interfaces == VELOCITY, 1.0, np.where(interfaces == VALVE, rated, np.inf))
    return np.where(asked > 0.0, asked, np.inf)


class SpeedCheck(Check):
    """Stops an actuator that moves faster than it is rated for, or off the speed of its reference."""

    rows = (
        Row('F41', 'overspeed', STOP_OPEN_LOOP, 'faster than the declared share of the rated speed', RAMPED, 4,
            event=True),
        Row('F41', 'speed_error', STOP_OPEN_LOOP, 'farther from the speed of the reference than is declared, for 50 ms',
            RAMPED, 2, 0.05, event=True),
        Row('F41', 'not_standing', STOP_OPEN_LOOP, 'faster than 1.5 times the speed of standstill, after machine and '
            'reference were at rest for half a second', RAMPED, 4, 0.05, event=True),
    )
    when = When.STATE

    def __init__(self, config, law):
        declared, m = config.declaration.plausibility, config.machine
        self._motion, self._names, self._load = ActuatorMotion(m), m.actuators, law.load
        rated = np.array(m.limits.velocity, dtype=float)
        rated[rated <= 0.0] = np.inf
        self._limits = np.array([declared.overspeed * rated, declared.speed_share * rated,
                                 AT_REST * np.array(config.declaration.standstill_speed), asked_speed(config)])
        self._smooth, self._memory = np.zeros(len(rated)), np.zeros(3)

    def restart(self):
        """As `Check.restart`."""
        self._smooth[:], self._memory[:] = 0.0, 0.0

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if not inputs.under_law:
            return ()
        rates, desired = inputs.rates, self._motion.rates(inputs.x, inputs.reference_rate)
        if self._load.settling:         # it moves the machine as a motion before rest does
            self._memory[kernels.RESTED_S] = 0.0
        verdict, i = kernels.judge_speeds(self._limits, self._smooth, self._memory, rates, desired,
                                          inputs.command, inputs.period, inputs.state is State.STOPPING)
        return () if verdict == kernels.SOUND else (self._finding(verdict, i, rates, desired),)

    def _finding(self, verdict, i, rates, desired):
        """Return the `Finding` of a verdict on actuator i."""
        limits, name = self._limits[:, i], self._names[i]
        if verdict == kernels.TOO_FAST:
            return Finding('overspeed', f'{name} moves at {rates[i]:.3g} per second, at most {limits[0]:.3g}')
        if verdict == kernels.APART:
            return Finding('speed_error', f'{name} moves at {rates[i]:.3g} per second, its reference at '
                           f'{desired[i]:.3g}; at most {limits[1]:.3g} apart')
        return Finding('not_standing', f'{name} moves at {self._smooth[i]:.3g} per second while its reference '
                       f'rests; at most {limits[2]:.3g}')


class SwingCheck(Check):
    """Stops a machine that swings ever more, as under a law that is late.

    While the reference rests that is more than when it came to rest; while it moves, ever faster about its speed. Under
    a wrong model a machine is too fast and too slow in turn, too, as its reference is accelerated and braked, but each
    takes longer. So swings a sound machine on its oil, where targets change in time with it: in motion only axes at
    force level are judged, which nothing but the law holds.
    """

    rows = (
        Row('F41', 'swing_growing', STOP_OPEN_LOOP, 'while its reference rests, faster than in its first half second, '
            'and than 1.5 times the speed of standstill', RAMPED, 4, 0.05, event=True),
        Row('F41', 'swing_in_motion', SAFE_OPEN_LOOP, 'an axis at force level swings about the speed of its reference, '
            'to either side 1.5 times as fast as a period before, by 0.07 of the rated speed and 2.5 times that of '
            'standstill', AT_ONCE, 4, event=True),
    )
    when = When.STATE

    def __init__(self, config, law):
        self._motion, self._names, self._load = ActuatorMotion(config.machine), config.machine.actuators, law.load
        rest, rated = np.array(config.declaration.standstill_speed), np.array(config.machine.limits.velocity, float)
        in_motion = np.where(config.declaration.by_force, np.maximum(SWINGING * rest, SWING_SHARE * rated), np.inf)
        self._limits = np.array([AT_REST * rest, asked_speed(config), in_motion])
        self._swing, self._rested, self._halves = np.zeros((3, rest.size)), np.zeros(1), np.zeros((7, rest.size))

    def restart(self):
        """As `Check.restart`."""
        self._swing[:], self._rested[:], self._halves[:] = 0.0, 0.0, 0.0

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if not inputs.under_law:
            return ()
        desired, found = self._motion.rates(inputs.x, inputs.reference_rate), []
        if self._load.settling:
            self._rested[0] = 0.0
        at_rest, in_motion = kernels.judge_swing(self._limits, self._swing, self._rested, self._halves, inputs.rates,
                                                 desired, inputs.command, inputs.period)
        if at_rest >= 0:
            rate, _, most = self._swing[:, at_rest]
            found.append(Finding('swing_growing', f'{self._names[at_rest]} swings at {abs(rate):.3g} per second while '
                                 f'its reference rests; at most {most:.3g}'))
        if in_motion >= 0:
            now, before = self._halves[[kernels.PEAK, kernels.TWO_BEFORE], in_motion]
            found.append(Finding('swing_in_motion', f'{self._names[in_motion]} swings about the speed of its reference '
                                 f'by {now:.3g} per second, a period before by {before:.3g}'))
        return found


class StopCheck(Check):
    """Watches a stop: under a law that does not slow down it becomes a ramp, and a ramp that does not is cut off.

    A ramp of openings is judged only where it began for that reason: else the measured state is not valid. A ramp of
    forces is always judged, of the axes at force level: nothing corrects what the model lacks, and one may be driven
    back.
    """

    rows = (
        Row('F42', 'stop_failing', STOP_OPEN_LOOP, 'a stop under the law that does not slow down as declared', RAMPED,
            2, max(REACTION), event=True),
        Row('F42', 'ramp_failing', SAFE_OPEN_LOOP, 'a ramp, after such a stop or of forces, that does not slow down',
            AT_ONCE, 2, 0.5, event=True),
    )
    when = When.STATE

    def __init__(self, config, law):
        m = config.machine
        self._motion, self._names = ActuatorMotion(m), m.actuators
        slowing, rated = SLOWING * np.array(config.declaration.deceleration), np.array(m.limits.velocity, dtype=float)
        rest = np.array(config.declaration.standstill_speed)
        self._limits = np.array([slowing, STANDS * rated, rest])
        forces = config.declaration.by_force
        self._by_force = bool(forces.any())
        # valves beside forces shut on a ramp, which is not to be cut off for a swing
        self._limits_of_ramp = np.array([slowing, (STANDS_BY_FORCE if forces.all() else STANDS) * rated, rest])
        self._limits_of_forces = self._limits_of_ramp.copy()
        self._limits_of_forces[1, ~forces] = np.inf
        self._reaction = REACTION[law.opens_by_speed]
        self._half_swing = 0.5 * law.swing_period           # s that the halves of a stop are apart at most
        self._stop = np.zeros((3, len(self._names)))        # speed at the beginning; smoothed rates; speed that is left
        self.restart()

    def restart(self):
        """As `Check.restart`."""
        self._began = None          # ns of the stop
        self._failing = False       # whether the law has failed to stop
        self._off = 0               # states in a row

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if inputs.state is not State.STOPPING or not (inputs.under_law or self._failing or self._by_force):
            self._began = None
            return ()
        rates = inputs.rates
        if self._began is None:
            self._began, self._stop[0], self._stop[1] = inputs.clock, np.abs(rates), rates
            self._direction = np.sign(rates)
        elapsed = 1e-9 * (inputs.clock - self._began) - self._reaction
        elapsed = 0.5 * (max(elapsed, 0.0) + max(elapsed - self._half_swing, 0.0))
        asked = self._motion.rates(inputs.x, inputs.reference_rate)
        of_ramp = self._limits_of_ramp if self._failing else self._limits_of_forces
        limits = self._limits if inputs.under_law else of_ramp
        i = kernels.judge_stop(limits, self._stop, rates, asked, elapsed, inputs.period)
        forth = self._direction * rates + limits[1]
        if not inputs.under_law and (forth < 0.0).any():
            i = int(forth.argmin())
        self._off = self._off + 1 if i >= 0 else 0
        if self._off < kernels.IN_A_ROW:
            return ()
        name = 'stop_failing' if inputs.under_law else 'ramp_failing'
        self._failing, self._began, self._off = True, None, 0
        _, rate, left = self._stop[:, i]
        return (Finding(name, f'{self._names[i]} moves at {abs(rate):.3g} per second in a stop; at most {left:.3g} by '
                        'now'),)
