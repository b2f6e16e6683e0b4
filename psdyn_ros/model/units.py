"""Units in which the package counts, and the constants between them and those of messages."""

SECOND = 1_000_000_000          # ns
MILLISECOND = SECOND // 1000    # ns
HOUR = 3600 * SECOND            # ns
MEBIBYTE = 2**20                # bytes
BAR = 1e5                       # Pa
ATMOSPHERE = 101325.0           # Pa, between gauge pressures and those of FluidPressure

ROUNDING = 1e-12                # a number below this share of those beside it is what rounding left of zero


def number_text(value: float, scale: float = 1.0) -> str:
    """Return a number with four digits; 0 where it is rounding beside numbers of size `scale`, or beside 1."""
    if abs(value) <= ROUNDING * max(scale, 1.0):
        return '0'
    text = f'{value:.4g}'
    return f'{float(text):.7g}' if 1e4 <= abs(value) < 1e7 else text
