"""Whitening of a residual whose noise is alike from one instant to the next (generalised least squares)."""

import numpy as np
from scipy.linalg import cholesky, solve_triangular, toeplitz

LAGS = 40           # rows as far apart as this are not alike any more
RIDGE = 0.01        # of the variance of the residual, as noise that is white: what is known of the others is not exact
SAME_STEP = 0.1     # share by which a step of time may be longer or shorter than the others


class Whitening:
    """Maps rows to combinations of them in which a residual is white.

    Noise of accelerations grows with the frequency, errors of a model fall with it; least squares of what was mapped
    weigh each frequency by what it says (A. C. Aitken, Proc. R. Soc. Edinburgh 55 (1936) 42). The autocovariance is
    that of the residual, tapered so that it is positive definite (W. K. Newey and K. D. West, Econometrica 55 (1987)
    703).

    t         (n,) s of the rows
    number    (n,) of the stretch that a row is in; stretches are not combined
    residual  (n,) of a plain fit
    """

    def __init__(self, t, number, residual):
        steps = np.diff(t)
        gaps = np.abs(steps - np.median(steps)) > SAME_STEP * np.median(steps) if len(steps) else np.zeros(0, bool)
        ends = np.concatenate(([True], gaps | (np.diff(number) != 0), [True]))
        first, last = (np.flatnonzero(one) for one in (ends[:-1], ends[1:]))
        self._runs = [slice(begin, end + 1) for begin, end in zip(first.tolist(), last.tolist())]
        lags = int((last - first).max()) + 1
        covariance = np.zeros(lags)
        for run in self._runs:
            part = residual[run]
            for lag in range(min(LAGS, len(part))):
                covariance[lag] += (1.0 - lag / LAGS) * (part[lag:] @ part[:len(part) - lag])
        if not covariance[0] > 0.0:
            covariance[0] = 1.0
        covariance /= covariance[0]
        covariance[0] += RIDGE
        self._factor = cholesky(toeplitz(covariance), lower=True)

    def __call__(self, values):
        """Return the combinations (n, ...) of rows (n, ...)."""
        out = np.empty_like(values)
        for run in self._runs:
            count = run.stop - run.start
            out[run] = solve_triangular(self._factor[:count, :count], values[run], lower=True)
        return out
