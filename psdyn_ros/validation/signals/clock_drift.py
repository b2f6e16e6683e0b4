"""The clock that stamps a topic beside the one that its receipt is noted by: its speed, and where it was set."""

import numpy as np

from ...model.units import SECOND

MAX_BINS = 256
FEWEST_BINS = 10
WIDTH = 1.0                 # s of a bin, at first
LOOK, FEWEST = 50, 5        # messages on either side of a step, at most and at least, that tell it from a stray stamp
CERTAIN = 0.5               # of a step, by which nearly all messages on either side of it must be apart
FORWARD = SECOND            # ns from which on a step forward is no gap
DAY = 86_400 * SECOND       # from which on stamps are absurd


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


class ClockSteps:
    """Tells where the clock of one topic was set: its stamps step against its receipts, and stay there.

    Neither messages out of order do that, nor ones that were received late.
    set_back  [(ns of the receipt, ns by which the clock was set back)]
    """

    def __init__(self):
        self.set_back, self._shift = [], 0
        self._stamps = self._behind = np.empty(0, dtype=np.int64)    # of the last messages, as they were returned

    def add(self, received, stamps):
        """Take messages: received and stamps (n,) ns, as received.

        Returns the stamps (n,) of a clock that was not set back, and [(first row after a step, ns that were added)].
        """
        known = len(self._stamps)
        out = np.concatenate((self._stamps, stamps + self._shift))
        behind = np.concatenate((self._behind, received - stamps - self._shift))
        steps, jumps = [], np.diff(behind)
        for k in (np.flatnonzero((np.diff(out) < 0) | (jumps < -FORWARD)) + 1).tolist():
            jump, before, after = int(behind[k] - behind[k - 1]), behind[max(k - LOOK, 0):k], behind[k:k + LOOK]
            if k <= known - FEWEST or not _stepped(jump, before, after) or not out[k] < out[k + len(after) - 1]:
                continue
            step = round(np.median(after) - np.median(before))
            row = max(k, known)
            # what a clock is set forward by leaves a gap, unless it was set back before
            shift = max(step, -self._shift)
            out[row:] += shift
            behind[row:] -= shift
            self._shift += shift
            steps.append((row - known, shift))
            if step > 0:
                self.set_back.append((int(received[row - known]), step))
        self._stamps, self._behind = out[-LOOK:].copy(), behind[-LOOK:].copy()
        return out[known:], steps


def _stepped(jump, before, after):
    """Whether nearly all (n,) ns `after` are apart from nearly all `before`, by a jump [ns] between them."""
    if min(len(before), len(after)) < FEWEST or not 0 < abs(jump) < DAY or jump < 0 and jump > -FORWARD:
        return False
    way, step = np.sign(jump), np.median(after) - np.median(before)
    return (abs(step - jump) < CERTAIN * abs(jump)
            and np.percentile(way * after, 10) - np.percentile(way * before, 90) > CERTAIN * abs(jump))
