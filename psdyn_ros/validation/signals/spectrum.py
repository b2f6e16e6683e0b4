"""At which frequencies a prediction is off: Welch's method, a segment at a time."""

import numpy as np
from scipy.signal import welch

SEGMENT = 2.048             # s, so that the lowest frequency is half a hertz


class ResidualSpectrum:
    """The spectral density of measured - predicted efforts of some actuators; segments do not cross gaps."""

    def __init__(self, actuators):
        self._power, self._period, self._size = None, None, 0
        self._weights, self._actuators = np.zeros(actuators), actuators

    def add(self, prediction):
        """Take a `Prediction`."""
        if self._period is None:
            self._period = prediction.period
            self._size = max(round(SEGMENT / self._period), 8)
            self._power = np.zeros((self._size // 2 + 1, self._actuators))
        residual = np.where(prediction.near_stop, np.nan, prediction.effort - prediction.effort_id)[prediction.core]
        if len(residual) < self._size:
            return
        segments = 2 * (len(residual) // self._size) - 1
        for axis, column in enumerate(residual.T):
            if np.isfinite(column).all():
                _, power = welch(column, 1.0 / self._period, nperseg=self._size)
                self._power[:, axis] += segments * power
                self._weights[axis] += segments

    def density(self):
        """Return (frequencies (n,) [Hz], one-sided density (n, actuators) [N^2/Hz]); NaN where there is none."""
        if self._period is None:
            return np.zeros(0), np.zeros((0, self._actuators))
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.fft.rfftfreq(self._size, self._period), self._power / self._weights
