#!/usr/bin/env python3
"""Run the tests with the Python this is called with: those without ROS processes side by side, then the others.

Arguments are those of pytest. Tests that start nodes run alone, since they keep to the clock; where one of them fails
it runs once more, and the summary says so (RERUN): a computer that others share may stall for longer than any deadline
of a controller may be. Tests that take minutes are left out; `--long` runs them, and no others.

A cold cache of compiled kernels is filled first: both workers would compile the same.
"""

import os
import subprocess
import sys
from pathlib import Path

NO_TESTS = 5        # exit code of pytest that found nothing to do
LONG = '--long'
KERNELS = Path(__file__).with_name('compile_kernels.py')
# files in the order of conftest.py, where those that take longest come first
PARTS = (('not dds', ('-n', '2', '--dist', 'loadfile', '--no-loadscope-reorder')),
         ('dds', ('-rR', '--reruns', '1')))


def main(arguments):
    """Return 0 where every test passed, else the code of the first part in which one did not."""
    only = 'long' if LONG in arguments else 'not long'
    arguments = [one for one in arguments if one != LONG]
    # hundreds of processes start; without bytecode each would compile our sources again
    quick = {name: value for name, value in os.environ.items() if name != 'PYTHONDONTWRITEBYTECODE'}
    # where it fails, the tests say more
    subprocess.run([sys.executable, KERNELS], env=quick)
    pytest = sys.executable, '-m', 'pytest', '--durations', '15', '-m'
    codes = [subprocess.run([*pytest, f'{marked} and {only}', *options, *arguments], env=quick).returncode
             for marked, options in PARTS]
    if all(code == NO_TESTS for code in codes):
        return NO_TESTS
    return next((code for code in codes if code not in (0, NO_TESTS)), 0)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
