"""Many arrays in one flat buffer, so that Numba has one argument to unpack at a call from Python.

A buffer is an int64 array. It starts with a table of six numbers an array: first word, last word, three extents, and
the number of dimensions. The arrays follow, each at a multiple of eight words. Kernels read them as views: Numba lets a
function return a view in a tuple only, so each of the functions below returns a tuple of one.
"""
import numpy as np

from .compiler import kernel, reshaped

HEAD_WORDS, ALIGNMENT_WORDS = 6, 8      # of an array in the table; of arrays, a cache line
FLOAT = np.dtype('f8')


def pack(arrays):
    """Return a buffer that holds copies of `arrays`, whose items are multiples of 8 bytes."""
    heads = np.zeros((len(arrays), HEAD_WORDS), np.int64)
    first = -(-HEAD_WORDS * len(arrays) // ALIGNMENT_WORDS) * ALIGNMENT_WORDS
    for head, array in zip(heads, arrays):
        head[:2] = first, first + array.nbytes // 8
        head[2:2 + array.ndim], head[5] = array.shape, array.ndim
        first = -(-int(head[1]) // ALIGNMENT_WORDS) * ALIGNMENT_WORDS
    buffer = np.zeros(first, np.int64)
    buffer[:heads.size] = heads.ravel()
    for (start, end, *_), array in zip(heads, arrays):
        buffer[start:end] = np.ascontiguousarray(array).reshape(-1).view(np.int64)
    return buffer


def view(buffer, k, dtype):
    """Return array k of a buffer as Python sees it, of this type."""
    first, end, *shape, dimensions = buffer[HEAD_WORDS * k:HEAD_WORDS * (k + 1)].tolist()
    return buffer[first:end].view(dtype).reshape(shape[:dimensions])


def shapes_text(arrays):
    """Return the fields of a named tuple of arrays in a line: its `__repr__`."""
    texts = (f'{name}: {getattr(value, "shape", value)}' for name, value in arrays._asdict().items())
    return f'{type(arrays).__name__} of arrays: {", ".join(texts)}'


def views(buffer, dtypes):
    """Return the first arrays of a buffer as Python sees them, of these types."""
    return [view(buffer, k, dtype) for k, dtype in enumerate(dtypes)]


@kernel
def records(buffer, k, dtype):
    """Return array k of a buffer, of one dimension and of any type, in a tuple."""
    return (buffer[buffer[6 * k]:buffer[6 * k + 1]].view(dtype),)


@kernel
def matrix(buffer, k):
    """Return array k of a buffer, two dimensions of floats, in a tuple."""
    return reshaped(buffer[buffer[6 * k]:buffer[6 * k + 1]].view(FLOAT), (buffer[6 * k + 2], buffer[6 * k + 3]))


@kernel
def stack(buffer, k):
    """Return array k of a buffer, three dimensions of floats, in a tuple."""
    return reshaped(buffer[buffer[6 * k]:buffer[6 * k + 1]].view(FLOAT),
                    (buffer[6 * k + 2], buffer[6 * k + 3], buffer[6 * k + 4]))


@kernel
def indices(buffer, k):
    """Return array k of a buffer, two dimensions of integers, in a tuple."""
    return reshaped(buffer[buffer[6 * k]:buffer[6 * k + 1]], (buffer[6 * k + 2], buffer[6 * k + 3]))
