"""What cycles took, in memory that does not grow: histograms of durations, missed slots, overruns."""

from array import array

import numpy as np

RESOLUTION = 6                  # bits: a duration is known to 1/64 of itself
BITS = 40                       # durations from 2^40 ns, 18 minutes, count as that
BUCKETS = (BITS - RESOLUTION + 1) << RESOLUTION
PENDING = 256                   # records that wait until there is time to sort them in
PERCENTILES = (50.0, 99.0, 99.9, 99.99)
LABELS = ('p50', 'p99', 'p99.9', 'p99.99', 'max')
QUANTITIES = ('execution', 'lateness', 'age', 'publishing', 'computation')
STATISTICS = ('cycles', 'missed', *LABELS, 'longest_missed', 'overruns',
              *(f'{quantity}_{label}' for quantity in QUANTITIES[1:] for label in LABELS))
UNKNOWN = -1                    # in place of a duration that was not measured


def bucket_of(ns):
    """Buckets of durations, an array of non-negative int64; as many of them in each octave, one for each ns below."""
    ns = np.minimum(ns, (1 << BITS) - 1)
    shift = np.maximum(np.frexp(ns.astype(float))[1] - RESOLUTION - 1, 0)
    return (shift << RESOLUTION) + (ns >> shift)


def _edges():
    """(BUCKETS + 1,) ns: where each bucket begins, and where the last one ends."""
    bucket = np.arange(BUCKETS + 1)
    shift = np.maximum((bucket >> RESOLUTION) - 1, 0)
    return (bucket - (shift << RESOLUTION)) << shift


EDGES = _edges()


class Histogram:
    """Durations in logarithmic buckets made once: any number of them, percentiles within 1.6 %, the greatest exact.

    counts  (BUCKETS,) int64 to count in; None: its own
    """

    def __init__(self, counts=None):
        self.counts = np.zeros(BUCKETS, dtype=np.int64) if counts is None else counts
        self.greatest = 0           # ns

    @property
    def count(self):
        """How many durations were added."""
        return int(self.counts.sum())

    def add(self, ns):
        """Sort in durations, an array of int64; negative ones count as 0."""
        if ns.size:
            ns = np.maximum(ns, 0)
            np.add.at(self.counts, bucket_of(ns), 1)
            self.greatest = max(self.greatest, int(ns.max()))

    def add_ramp(self, first, step, count):
        """Sort in first, first - step, ... (ns), so many of them, negative ones as 0; as quick for many as for few."""
        ends = first - EDGES[:-1]
        reached = np.clip(ends // step + 1, 0, count)      # terms at or above the beginning of each bucket
        reached[0] = count
        self.counts[:-1] += reached[:-1] - reached[1:]
        self.counts[-1] += reached[-1]
        self.greatest = max(self.greatest, first)

    def merge(self, other):
        """Add all that another histogram holds."""
        self.counts += other.counts
        self.greatest = max(self.greatest, other.greatest)

    def as_dict(self):
        """The buckets that are not empty, and the greatest, as plain numbers for JSON."""
        buckets = np.flatnonzero(self.counts)
        return {'buckets': buckets.tolist(), 'counts': self.counts[buckets].tolist(), 'greatest': self.greatest}

    @classmethod
    def from_dict(cls, contents):
        """What `as_dict` returned."""
        histogram = cls()
        histogram.counts[contents['buckets']] = contents['counts']
        histogram.greatest = contents['greatest']
        return histogram

    def percentiles(self, *which):
        """Percentiles in s, never less than they are; zeros before the first duration."""
        reached = np.cumsum(self.counts)
        if not reached[-1]:
            return np.zeros(len(which))
        ranks = np.clip(np.ceil(np.array(which) * 0.01 * reached[-1]), 1, reached[-1])
        return np.minimum(EDGES[1:][np.searchsorted(reached, ranks)] - 1, self.greatest) * 1e-9

    def summary(self):
        """Percentiles p50, p99, p99.9, p99.99 and the greatest, in s."""
        return (*self.percentiles(*PERCENTILES), self.greatest * 1e-9)


class CycleRecords:
    """Each cycle of a loop: how late it woke, what it took, how old its input was when its output was out.

    period  ns
    A cycle that came late counts for every slot that it covered, so that a stall of ten slots is ten late slots
    rather than one. Adding a cycle takes less than 1 µs; `fold` sorts what has come into the histograms, between
    cycles.
    """

    def __init__(self, period):
        self.period = period
        self._counts = np.zeros((len(QUANTITIES), BUCKETS), dtype=np.int64)
        self.histograms = {quantity: Histogram(row) for quantity, row in zip(QUANTITIES, self._counts)}
        self._ring = array('q', bytes(8 * len(QUANTITIES) * PENDING))       # quicker to write to than one of numpy
        self._waiting = np.frombuffer(self._ring, dtype=np.int64).reshape(PENDING, len(QUANTITIES))
        self._pending = 0           # of its records
        self.cycles = 0
        self.missed = 0             # slots in which no cycle began
        self.stalls = 0             # times that one or more of them were missed
        self.longest_missed = 0     # in a row
        self.overruns = 0           # cycles that ended after the next one was due, or came after a missed slot

    def add(self, execution, lateness=UNKNOWN, missed=0, age=UNKNOWN, publishing=UNKNOWN, computation=UNKNOWN,
            total=0):
        """Record one cycle, durations in ns, UNKNOWN where one was not measured.

        execution    >= 0, from its beginning to the moment at which its command was out
        lateness     from the instant it was due to its beginning; with missed slots, of the first of them
        missed       slots just before it that had no cycle
        age          of its input when its output was published
        publishing   time within the calls that publish
        computation  time from the input to the output, messages aside
        total        from its beginning to its end, where that is later than its command
        """
        self.cycles += 1
        if missed:
            self._miss(lateness, missed)
            lateness = lateness if lateness < 0 else lateness - missed * self.period
        if missed or max(execution, total) + max(lateness, 0) > self.period:
            self.overruns += 1
        ring, place = self._ring, len(QUANTITIES) * self._pending
        ring[place] = execution
        ring[place + 1] = lateness
        ring[place + 2] = age
        ring[place + 3] = publishing
        ring[place + 4] = computation
        self._pending += 1
        if self._pending == PENDING:
            self.fold()

    def _miss(self, lateness, missed):
        self.missed += missed
        self.stalls += 1
        self.longest_missed = max(self.longest_missed, missed)
        if lateness >= 0:
            self.histograms['lateness'].add_ramp(lateness, self.period, missed)

    def fold(self):
        """Sort what has come into the histograms; 0.1 ms at most, to be done between cycles."""
        if not self._pending:
            return
        waiting = self._waiting[:self._pending]
        buckets = bucket_of(np.maximum(waiting, 0)) + BUCKETS * np.arange(len(QUANTITIES))
        np.add.at(self._counts.reshape(-1), buckets[waiting >= 0], 1)
        for histogram, greatest in zip(self.histograms.values(), waiting.max(axis=0).tolist()):
            histogram.greatest = max(histogram.greatest, greatest)
        self._pending = 0

    def statistics(self):
        """Values of `STATISTICS`: counts, and durations in s, zeros of what was not measured."""
        self.fold()
        execution, *others = (histogram.summary() for histogram in self.histograms.values())
        return (self.cycles, self.missed, *execution, self.longest_missed, self.overruns,
                *(value for summary in others for value in summary))

    def as_dict(self):
        """All of it as plain numbers and lists for JSON; of the histograms the buckets that are not empty."""
        self.fold()
        return {'period': self.period, 'cycles': self.cycles, 'missed': self.missed,
                'stalls': self.stalls, 'longest_missed': self.longest_missed, 'overruns': self.overruns,
                'histograms': {name: histogram.as_dict() for name, histogram in self.histograms.items()}}

    def merge(self, contents):
        """Add what `as_dict` of other records of the same loop returned."""
        self.fold()
        for count in ('cycles', 'missed', 'stalls', 'overruns'):
            setattr(self, count, getattr(self, count) + contents[count])
        self.longest_missed = max(self.longest_missed, contents['longest_missed'])
        for name, histogram in self.histograms.items():
            histogram.merge(Histogram.from_dict(contents['histograms'][name]))
