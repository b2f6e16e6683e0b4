"""The Numba decorator of these equations; without Numba they run as plain Python."""

import hashlib
from pathlib import Path

from ....kernels.runtime.compiler import CACHE_FOLDER

try:
    import numba
except ImportError:
    numba = None


def cache_folder():
    """Return the cache folder of these sources, named by their hash: Numba itself sees no edit of a callee."""
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob('*.py')):
        digest.update(source.read_bytes())
    return CACHE_FOLDER / f'second_plant_{digest.hexdigest()[:16]}'


def compiled(function):
    """Compile `function`, with its machine code kept beside that of the kernels."""
    if numba is None:
        return function
    if CACHE_FOLDER is None:
        return numba.njit(function)
    # the setting belongs to the whole process, and is read when the decorator runs
    borrowed = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        return numba.njit(cache=True)(function)
    finally:
        numba.config.CACHE_DIR = borrowed
