"""Arrays that a kernel is given once, and finds at their addresses from then on.

To tell what an array is, which Numba does with each one at each call from Python, takes 0.05 us, with records 0.15, and
several times that after a sleep, since all heads of arrays are somewhere else in memory. What a control cycle calls is
spared it: `bound` writes down where the arrays are, and the kernel gets that one table.
"""
import functools

import numpy as np

FLOAT, INT = np.dtype('f8'), np.dtype('i8')


def bound(at, plain, kinds, *arrays):
    """`plain(*arrays, *others)` as a function of the others: `at(places, *others)`.

    kinds   (dtype, dimensions) of each array that `at` expects
    arrays  are kept as long as the function; where one is of another kind, or not contiguous, `plain` is called
    """
    same = all((one.dtype, one.ndim) == kind and one.flags.carray for one, kind in zip(arrays, kinds, strict=True))
    if not same:
        return functools.partial(plain, *arrays)
    places = np.zeros((len(arrays), 1 + max(ndim for _, ndim in kinds)), dtype=np.int64)
    for row, one in zip(places, arrays):
        row[0], row[1:1 + one.ndim] = one.ctypes.data, one.shape
    call = functools.partial(at, places)
    call.arrays = arrays
    return call

