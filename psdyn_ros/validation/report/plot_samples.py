"""Every so many instants of a recording, to be drawn: the more there are, the fewer are kept."""

import numpy as np

MOST = 8192                 # instants that are kept
NAMES = ('t', 'effort', 'effort_id', 'effort_id_frictionless', 'v')


class Traces:
    """Arrays by name: t (n,), effort, effort_id, effort_id_frictionless and v (n, actuators); NaN rows at gaps."""

    def __init__(self, most=MOST):
        self._most, self._stride, self._skip = most, 1, 0
        self._kept = None

    def add(self, prediction):
        """Take a `Prediction`."""
        rows = np.arange(prediction.core.start + self._skip, prediction.core.stop, self._stride)
        self._skip = (self._skip - (prediction.core.stop - prediction.core.start)) % self._stride
        taken = {name: getattr(prediction, name)[rows] for name in NAMES}
        if self._kept is not None:
            taken = {name: np.concatenate((self._kept[name], taken[name])) for name in NAMES}
        while len(taken['t']) > self._most:
            taken = {name: values[::2] for name, values in taken.items()}
            self._stride *= 2
        self._kept = {name: values.copy() for name, values in taken.items()}

    def __getitem__(self, name):
        """One of the arrays."""
        return np.zeros((0, 1)) if self._kept is None else self._kept[name]

    def lines(self, name, period):
        """(t, values) to be drawn as lines: NaN where nothing was recorded for more than some periods kept."""
        t, values = self['t'], self[name]
        gaps = np.flatnonzero(np.diff(t) > 3.0 * self._stride * period) + 1
        return np.insert(t, gaps, np.nan), np.insert(values, gaps, np.nan, axis=0)
