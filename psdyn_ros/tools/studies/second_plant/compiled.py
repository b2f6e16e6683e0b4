"""The Numba decorator of these equations; without Numba they run as plain Python."""

try:
    from numba import njit
except ImportError:
    def compiled(function):
        """Return the function as it is."""
        return function
else:
    compiled = njit(cache=True)
