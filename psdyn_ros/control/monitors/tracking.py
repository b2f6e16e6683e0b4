"""Checks of a motion under a law: is the reference followed, are commands at their limits, is a singularity near?"""

import numpy as np

from ...kernels.control import plausibility as kernels
from ..safety.fault_table import Result
from .actuator_motion import ActuatorMotion
from .singularity import toggle_gauge

PASS, FAIL = Result.PASS, Result.FAIL
IN_A_ROW = 2            # cycles off the reference until it is a fault
CLIPPED = 200_000_000   # ns at a limit, while the error grows, until it is a fault
SLOWEST = 0.1           # share of the speed of a reference near a singularity
AHEAD = 0.02            # s, by how much the reference is looked at in advance


class MotionWatch:
    """The checks, and what follows from them for the speed of the reference and for commands near end stops.

    manipulator  whose base stands or is moved
    declaration  `SafetyDeclaration`
    law          `ControlLaw` with these actuators
    gate         `OutputGate` that its commands pass
    states       `SafetyStates`, to which results are reported
    """

    def __init__(self, manipulator, declaration, law, gate, states):
        self._manipulator, self._declared, self._law, self._states = manipulator, declaration, law, states
        self._gate = gate
        self._toggle = toggle_gauge(manipulator)
        self._motion = ActuatorMotion(manipulator)
        limits = manipulator.limits
        self._lower, self._upper = np.array(limits.lower, float), np.array(limits.upper, float)
        self._margin = np.maximum(declaration.soft_margin, 1e-9)
        # of arrays that may not be written the kernels would have to be compiled once more
        self._tolerance, self._most = np.array(declaration.tracking_tolerance), np.array(declaration.command_limit)
        self._deceleration = np.array(declaration.deceleration)
        self._within = np.zeros(len(manipulator.actuators), dtype=np.int64)
        self._frozen = False        # whether integrals of the law are held
        self._counted = None        # commands at their limits until the last cycle, of law and gate
        self._clamped, self._beyond = None, 0   # of the gate: each, and all together
        self._clipped_since = None  # ns; and with which error
        self._clipped_error = 0.0
        self.off = 0                # cycles in a row off the reference
        self.share = 0.0            # of the tracking tolerance that the worst actuator is off
        self.measure = 1.0          # distance from a singularity

    def forget(self):
        """Start anew, from rest."""
        self.off, self.share, self._counted, self._clipped_since = 0, 0.0, None, None
        self._clamped = self._gate.range_clamps
        self._beyond = self._gate.clamped
        if self._frozen:
            self._law.freeze(False)
            self._frozen = False

    def velocities(self, x, xd):
        """Velocities (actuators,) at x, xd (dof,)."""
        return self._motion.rates(x, xd)

    def speed(self, clock, x, reference_rate):
        """Share of its speed that the reference may have at x (dof,), where it has the velocity given (dof,)."""
        p = self._declared.plausibility
        self.measure, joint = self._toggle(x)
        if self.measure >= p.sigma_slow:
            if self._states.unsettled:
                self._states.report(clock, 'singular', PASS)
            return 1.0
        further = self._toggle(x + AHEAD * reference_rate)[0]
        text = f'{joint} is at {self.measure:.3g} of its best transmission'
        self._states.report(clock, 'singular_near', FAIL, text)
        towards = further < self.measure
        self._states.report(clock, 'singular', FAIL if towards and self.measure < p.sigma_stop else PASS, text)
        if not towards:
            return 1.0
        return max(SLOWEST, (self.measure - p.sigma_stop) / (p.sigma_slow - p.sigma_stop))

    def soften(self, clock, command, x, xd, near):
        """Clamp in place what of a command (actuators,) pushes outward near an end stop; near: whether x may be.

        Outward goes what the share of the margin that is left allows, and nothing where the declared deceleration can
        no longer stop the actuator before its limit. The integrals of actuators that are there, or whose last command
        was beyond its limit, are held.
        """
        position = self._motion.positions(x)
        if self._motion.columns is not None:
            near = ((position < self._lower + self._margin) | (position > self._upper - self._margin)).any()
        if near:
            rate = self._motion.rates(x, xd)
            room = np.maximum(np.where(rate > 0.0, self._upper - position, position - self._lower), 0.0)
            most = np.where(rate * rate > 2.0 * self._deceleration * room, 0.0, self._most)
            clamped = kernels.clamp_outward(command, position, self._lower, self._upper, self._margin,
                                            self._law.holding(x), most, self._within)
            if clamped:
                self._states.report(clock, 'end_stop', FAIL, 'a command towards an end stop is clamped')
            near = bool(self._within.any())
        if near or self._gate.clamped != self._beyond:
            counts = self._gate.range_clamps
            frozen = np.array([count > last for count, last in zip(counts, self._clamped)])
            self._law.freeze(frozen | (self._within > 0) if near else frozen)
            self._clamped, self._beyond, self._frozen = counts, self._gate.clamped, True
        elif self._frozen:
            self._law.freeze(False)
            self._frozen = False

    def look(self, clock, x):
        """Compare x (dof,) with the reference of the last update, and the commands with their limits."""
        position, wanted = self._motion.positions(x), self._motion.positions(self._law.desired[0])
        self.share, i, saturations = kernels.worst_share(self._tolerance, self._law.saturations, position, wanted)
        if self.share <= 1.0:
            self.off = 0
        else:
            self.off += 1
            if self.off >= IN_A_ROW:
                self._states.report(clock, 'tracking', FAIL, f'{self._manipulator.actuators[i]} is '
                                    f'{abs(wanted[i] - position[i]):.3g} off its reference, at most '
                                    f'{self._tolerance[i]:g}')
        self._look_at_limits(clock, saturations + self._gate.clamped)

    def _look_at_limits(self, clock, counted):
        clipped = self._counted is not None and counted != self._counted
        self._counted = counted
        if not clipped:
            self._clipped_since = None
            if self._states.unsettled:
                self._states.report(clock, 'saturated', PASS)
            return
        self._states.report(clock, 'clamped', FAIL)
        if self._clipped_since is None:
            self._clipped_since, self._clipped_error = clock, self.share
        elif clock - self._clipped_since > CLIPPED:
            grows = self.share > self._clipped_error
            self._states.report(clock, 'saturated', FAIL if grows else PASS,
                                f'commands are at their limits for {(clock - self._clipped_since) / 1e6:.0f} ms')
