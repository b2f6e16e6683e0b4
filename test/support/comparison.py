"""Comparisons of numbers."""

import numpy as np


def error(value, reference):
    """Return the accuracy measure of the package, max|value - reference| / (1 + max|reference|); 0.0 where empty."""
    value, reference = np.asarray(value), np.asarray(reference)
    assert value.shape == reference.shape
    return np.abs(value - reference).max(initial=0.0) / (1.0 + np.abs(reference).max(initial=0.0))


def same(a, b):
    """Whether arrays, tuples of them, names or None are equal bit for bit."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
