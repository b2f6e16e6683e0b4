"""Measured pressures: their stamps, their age, and whether they are numbers."""

import math

from .check import COUNTED, RAMPED, REJECTED, STOP_OPEN_LOOP, Check, Finding, Result, Row, warning
from .state import IN_A_ROW
from .timestamps import ORDER, MeasuredInput


class PressureCheck(Check):
    """Whether pressures may be used, and whether they are recent; judged only where the law needs them."""

    rows = (
        Row('F01', 'pressures_silent', STOP_OPEN_LOOP, 'no pressures for the timeout, where the law needs them',
            RAMPED, 1, 0.020, 'stopping'),
        warning('F05', 'pressures_not_finite', 'NaN or infinity in pressures', REJECTED),
    )

    def __init__(self, config, law):
        declaration = config.declaration
        self.required = law.needs_pressures
        self.input = MeasuredInput('pressures', declaration.timeouts, declaration.plausibility.clock_skew_ns,
                                   config.period)

    def take(self, stamp, ros_now, clock, values, supply):
        """Accept pressures and return None, or return the `Finding` for which they are rejected.

        stamp, ros_now  ns on the clock of stamps
        clock           ns on the clock of ages
        values          (cylinders, 2) chambers A, B [Pa gauge]
        supply          Pa gauge, or None
        """
        refused = self.input.refuse(stamp, ros_now)
        if refused:
            kind, text = refused
            if kind is not ORDER:
                return Finding('state_stale', text)
            return Finding('stamp_order', text, demand=None if self.input.in_disorder >= IN_A_ROW else COUNTED)
        if not math.isfinite(sum(values.ravel().tolist()) + (0.0 if supply is None else supply)):
            return Finding('pressures_not_finite', 'a pressure is not finite')
        self.input.accept(stamp, ros_now, clock)
        return None

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if self.input.silent(inputs.clock):
            return (Finding('pressures_silent', self.input.silence(inputs.clock), Result.STALE),)
        return ()

    def rebase(self, jump):
        """As `Check.rebase`."""
        self.input.rebase(jump)
