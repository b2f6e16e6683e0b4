"""Whether the clock that stamps a topic runs at the speed of the one that its receipt is noted by."""

import numpy as np

from ...model.units import SECOND

MAX_BINS = 256
FEWEST_BINS = 10
WIDTH = 1.0                 # s of a bin, at first


class LeastLatency:
    """Least time from stamp to receipt in each bin of time: what nothing but the speed of the clocks changes.

    Room does not grow with the recording: pairs of bins are merged where there are too many.
    """

    def __init__(self):
        self._first, self._width, self._least = None, WIDTH, {}

    def add(self, received, stamps):
        """Add messages: received and stamps (n,) ns."""
        if self._first is None:
            self._first = int(received[0]), int(received[0] - stamps[0])
        bins = np.floor((received - self._first[0]) / (SECOND * self._width)).astype(np.int64)
        late = (received - stamps - self._first[1]) / SECOND
        order = np.argsort(bins, kind='stable')
        numbers, starts = np.unique(bins[order], return_index=True)
        for number, least in zip(numbers.tolist(), np.minimum.reduceat(late[order], starts).tolist()):
            self._least[number] = min(self._least.get(number, np.inf), least)
        while len(self._least) > MAX_BINS:
            self._width *= 2.0
            old, self._least = self._least, {}
            for number, least in old.items():
                self._least[number // 2] = min(self._least.get(number // 2, np.inf), least)

    @property
    def slope(self):
        """(s by which the latency grows in a second, s that it is known from); NaN of too little.

        The median of the slopes between all pairs of bins (P. K. Sen, J. Am. Stat. Assoc. 63 (1968) 1379), so that
        neither a jam nor a clock that is set once counts.
        """
        if len(self._least) < FEWEST_BINS:
            return np.nan, 0.0
        t, late = np.array(sorted(self._least.items())).T
        one, other = np.triu_indices(len(t), 1)
        steps = self._width * (t[other] - t[one])
        return float(np.median((late[other] - late[one]) / steps)), float(self._width * (t[-1] - t[0]))
