"""Normal equations of a recording: what they take of memory."""

import tracemalloc

import numpy as np

from psdyn_ros.validation.diagnosis.correction_fits import Equations


def test_equations_of_a_long_recording_are_not_copied():
    rows = np.random.default_rng(1).standard_normal((256, 4, 40, 40))
    products = np.swapaxes(rows, -1, -2) @ rows
    tracemalloc.start()
    equations = Equations(products, products, np.ones(4), 1.0)
    equations.share(np.array([[0, 1], [0, -1], [2, 3], [-1, -1]]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.25 * products.nbytes
