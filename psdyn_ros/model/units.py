"""Units in which the package counts, and the constants between them and those of messages."""

from math import pi

SECOND = 1_000_000_000          # ns
MILLISECOND = SECOND // 1000    # ns
HOUR = 3600 * SECOND            # ns
MEBIBYTE = 2**20                # bytes
BAR = 1e5                       # Pa
ATMOSPHERE = 101325.0           # Pa, between gauge pressures and those of FluidPressure

ROUNDING = 1e-12                # a number below this share of those beside it is what rounding left of zero
MISTAKEN = {'m': ((1e-3, 'mm'), (1e-2, 'cm')), 'rad': ((pi / 180.0, 'degrees'), (1e-3, 'mrad'))}


def mistaken_unit(low: float, high: float, lower: float, upper: float, unit: str) -> str:
    """Return ': in mm?' where positions from low to high are within limits in that unit instead of 'm' or 'rad'."""
    return next((f': in {name}?' for factor, name in MISTAKEN[unit]
                 if lower <= factor * low and factor * high <= upper), '')


def number_text(value: float, scale: float = 1.0) -> str:
    """Return a number with four digits; 0 where it is rounding beside numbers of size `scale`, or beside 1."""
    if abs(value) <= ROUNDING * max(scale, 1.0):
        return '0'
    text = f'{value:.4g}'
    return f'{float(text):.7g}' if 1e4 <= abs(value) < 1e7 else text
