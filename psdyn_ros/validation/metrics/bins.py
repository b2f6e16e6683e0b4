"""Sums over bins of time in bounded memory: of a whole recording, or of its last seconds."""

from collections import deque

import numpy as np

MAX_BINS = 2048


class Column:
    """One quantity per bin: `rows` (bins, *shape).

    combine  ufunc by which two bins become one
    empty    value of a bin without samples
    """

    def __init__(self, shape, combine, empty):
        self.rows, self.combine, self.empty = np.zeros((0, *shape)), combine, empty


class Bins:
    """Bins of a recording: 1 s each, and where there are too many, pairs of them become one, and so on.

    count  of bins
    width  s of a bin
    """

    def __init__(self):
        self.count, self.width, self._columns = 0, 1.0, []

    def column(self, shape, combine=np.add, empty=0.0):
        """Return a new `Column`, which grows and shrinks with the bins."""
        self._columns.append(Column(shape, combine, empty))
        return self._columns[-1]

    def place(self, t, period):
        """Return the bins (n,) of ascending instants [s]; makes room for them.  period: s, for `Window`."""
        while t[-1] / self.width >= MAX_BINS:
            self._halve()
        bins = np.maximum((t / self.width).astype(np.int64), 0)
        missing = int(bins[-1]) + 1 - self.count
        if missing > 0:
            self._grow(max(missing, min(self.count // 2, MAX_BINS - self.count)))
        return bins

    def _grow(self, count):
        for column in self._columns:
            column.rows = np.concatenate((column.rows, np.full((count, *column.rows.shape[1:]), column.empty)))
        self.count += count

    def _halve(self):
        if self.count % 2:
            self._grow(1)
        for column in self._columns:
            column.rows = column.combine(column.rows[::2], column.rows[1::2])
        self.count //= 2
        self.width *= 2.0


class Window(Bins):
    """One bin for each block, of the last seconds.

    length  s
    spans   deque of (begin, end [s]) of the bins
    """

    def __init__(self, length):
        super().__init__()
        self.length, self.spans = length, deque()

    def place(self, t, period):
        """Return the bin of a block, for each of its instants; forgets what is too old then."""
        self._grow(1)
        self.spans.append((float(t[0]), float(t[-1]) + period))
        self.forget(self.spans[-1][1])
        return np.full(len(t), self.count - 1)

    def forget(self, now):
        """Forget the bins that are older than the window at an instant [s]."""
        old = 0
        while self.spans and self.spans[0][1] <= now - self.length:
            self.spans.popleft()
            old += 1
        for column in self._columns:
            column.rows = column.rows[old:]
        self.count -= old
