"""Units in which the package counts, and the constants between them and those of messages."""

SECOND = 1_000_000_000          # ns
MILLISECOND = SECOND // 1000    # ns
HOUR = 3600 * SECOND            # ns
MEBIBYTE = 2**20                # bytes
ATMOSPHERE = 101325.0           # Pa, between gauge pressures and those of FluidPressure
