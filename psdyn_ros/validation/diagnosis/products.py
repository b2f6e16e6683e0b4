"""Products of the columns of each actuator, summed in bins of time: large, so that nothing here copies them.

They are symmetric, and kept as triangles. What fits look at - some bins, some columns, columns that others are added to
- is worked out for the few columns that are asked for.
"""

import numpy as np


def triangle(matrices):
    """Upper triangles (..., n (n + 1) / 2) of symmetric matrices (..., n, n), row after row."""
    return matrices[(..., *np.triu_indices(matrices.shape[-1]))]


class Products:
    """Products of `size` columns of some actuators.

    packed   (bins, actuators, n (n + 1) / 2) triangles of sums of products of n columns
    bins     (m,) numbers of the bins that count; None: all
    factors  (m, actuators) on their sums; None: 1
    made     (actuators, n, size) of what each column is made of the n; None: of itself
    """

    def __init__(self, packed, bins=None, factors=None, made=None):
        count = round((2.0 * packed.shape[-1] + 0.25) ** 0.5 - 0.5)
        self._packed = packed
        self._bins = np.arange(len(packed)) if bins is None else bins
        self._factors = np.ones((len(self._bins), packed.shape[1])) if factors is None else factors
        self._made = np.tile(np.eye(count), (packed.shape[1], 1, 1)) if made is None else made
        upper = np.zeros((count, count), dtype=int)
        upper[np.triu_indices(count)] = np.arange(packed.shape[-1])
        self._place = np.maximum(upper, upper.T)        # of a product in a triangle

    @classmethod
    def full(cls, matrices):
        """Return those of matrices (bins, actuators, size, size)."""
        return cls(triangle(matrices))

    def __len__(self):
        return len(self._bins)

    def of(self, actuator, columns):
        """(bins, k, k) of some columns (k,) of an actuator."""
        made = self._made[actuator][:, columns]
        parts = np.flatnonzero(made.any(axis=1))
        own = self._packed[self._bins[:, None, None], actuator, self._place[parts[:, None], parts]]
        return self._factors[:, actuator, None, None] * (made[parts].T @ own @ made[parts])

    def squares(self, column):
        """(bins, actuators) of a column."""
        return np.stack([self.of(actuator, [column])[:, 0, 0] for actuator in range(len(self._made))], axis=1)

    def within(self, bins):
        """Return those of some bins (m,)."""
        return Products(self._packed, self._bins[bins], self._factors[bins], self._made)

    def times(self, factors):
        """Return them times factors (bins, actuators)."""
        return Products(self._packed, self._bins, self._factors * factors, self._made)

    def some(self, columns):
        """Return those of some columns (k,)."""
        return Products(self._packed, self._bins, self._factors, self._made[..., columns])

    def made(self, weights):
        """Return those of columns that are sums of these with weights (size, k)."""
        return Products(self._packed, self._bins, self._factors, self._made @ weights)

    def added(self, columns, others, more):
        """Return those in which `more` (others, columns), or of each actuator, of others are added to columns."""
        made = self._made.copy()
        made[..., columns] += made[..., others] @ more
        return Products(self._packed, self._bins, self._factors, made)
