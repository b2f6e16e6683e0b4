"""Figures of a recording, and what its verdict may be, with the exit code of each."""

PASS, FAIL, INVALID, UNDECIDED = 'PASS', 'FAIL', 'INVALID', 'UNDECIDED'
PARTIAL_PASS = 3
EXIT_CODES = {PASS: 0, FAIL: 1, INVALID: 2, UNDECIDED: PARTIAL_PASS}
