"""Counts what a node rejects, and says so without flooding the log."""

import time
from collections import Counter

from ...model.errors import PsdynError

LINE = 400                      # characters
LOG_PERIOD = 1_000_000_000      # ns between two lines about one topic


def brief(text):
    """The text, cut where a message of somebody else made it long."""
    text = str(text)
    return text if len(text) <= LINE else text[:LINE] + ' ...'


class Rejections:
    """Rejected messages by topic: every one is counted, at most one a second is logged.

    warn  function that logs one line
    """

    def __init__(self, warn):
        self._warn = warn
        self._logged = {}           # topic -> (ns of the last line, count it named)
        self.counts = Counter()     # topic -> rejected messages
        self.reasons = {}           # topic -> why the last one was rejected

    @property
    def total(self):
        """Rejected messages of all topics."""
        return sum(self.counts.values())

    def values(self):
        """{what: count} for diagnostics."""
        return {'rejected messages': self.total,
                **{f'rejected {topic}': count for topic, count in self.counts.items()}}

    def checked(self, topic, read):
        """Return a callback that hands a message to `read`, and counts it as rejected where that raises PsdynError."""
        def receive(msg):
            try:
                read(msg)
            except PsdynError as error:
                self.add(topic, error, time.monotonic_ns())
        return receive

    def add(self, topic, reason, now):
        """Count one rejected message; now in ns on a steady clock."""
        self.counts[topic] += 1
        self.reasons[topic] = reason
        then, named = self._logged.get(topic, (None, 0))
        if then is not None and now - then < LOG_PERIOD:
            return
        silent = self.counts[topic] - named - 1
        self._logged[topic] = now, self.counts[topic]
        self._warn(f'{topic}: rejected, {brief(reason)}' + (f' ({silent} more since the last line)' if silent else ''))
