"""The emergency stop: pressed, absent, or not heard for too long."""

from .check import AT_ONCE, SAFE, Check, Finding, Row


class EmergencyStopCheck(Check):
    """Whether an operator can stop the machine, and does not; its silence counts only where one is required."""

    rows = (
        Row('F36', 'emergency_stop', SAFE, 'the emergency stop is pressed, absent, or too old', AT_ONCE, 1, 0.1,
            'emergency_stop', probation=False),)

    def __init__(self, config, law):
        self._excused = not config.emergency_stop
        self._timeout = config.declaration.timeouts.emergency_stop_ns
        self._pressed, self._arrival = False, None      # (steady clock, clock of ages)

    def take(self, pressed, now, clock):
        """Record a message of the emergency stop; now: ns of the steady clock, clock: ns on the clock of ages."""
        self._pressed, self._arrival = bool(pressed), (now, clock)

    def reason(self, now, clock):
        """Return why the emergency stop stops the machine; '' where it does not."""
        if self._pressed:
            return 'the emergency stop is pressed'
        if self._excused:
            return ''
        if self._arrival is None:
            return 'the emergency stop says nothing'
        # a simulation may be slower than its operator, or faster
        age = min(now - self._arrival[0], clock - self._arrival[1])
        return '' if age <= self._timeout else f'the emergency stop said nothing for {age / 1e6:.0f} ms'

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        reason = self.reason(inputs.now, inputs.clock)
        return (Finding('emergency_stop', reason),) if reason else ()
