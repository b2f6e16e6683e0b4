"""Whether streamed points of a reference keep coming."""

from .check import HOLD, Check, Finding, Result, Row


class StreamCheck(Check):
    """The age of the newest streamed point, while points are streamed."""

    rows = (
        Row('F19', 'stream_silent', HOLD, 'no streamed point for the timeout', 'stops and holds', 1, 0.1, 'stream',
            probation=False),)

    def __init__(self, config, law):
        self._timeout = config.declaration.timeouts.stream

    def evaluate(self, inputs):
        """As `Check.evaluate`."""
        if not inputs.under_law:
            return None
        if not inputs.streaming:
            return ()
        age = inputs.stream_age
        if age > self._timeout:
            return (Finding('stream_silent', f'no point came for {age * 1e3:.0f} ms', Result.STALE),)
        return ()
