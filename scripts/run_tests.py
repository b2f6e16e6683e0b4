#!/usr/bin/env python3
"""Run the tests with the Python this is called with: those that do not keep to the clock side by side, then the others.

Arguments are those of pytest. Tests of nodes that keep to the clock run alone. No test runs a second time where it
failed. Tests that are marked `long` are left out; `--long` runs them, and no others, and `--all` both. Either has
Hypothesis draw as many examples as it should, where it draws a fifth of them otherwise. What failed in any part is
listed at the end, since a service may keep the end of what is printed only.

A cold cache of compiled kernels is filled first: both workers would compile the same.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from psdyn_ros.nodes.runtime.realtime import ONE_THREAD

NO_TESTS = 5        # exit code of pytest that found nothing to do
CHOICES = {'--long': ' and long', '--all': ''}
KERNELS = Path(__file__).with_name('compile_kernels.py')
# files in the order of conftest.py, where those that take longest come first
SIDE_BY_SIDE = '-n', '2', '--dist', 'loadfile', '--no-loadscope-reorder'
# marks, options, and folders: looking for tests takes longer than some of them
PARTS = (('(not dds or lockstep)', SIDE_BY_SIDE, ()), ('dds and not lockstep', (), ('test/nodes', 'test/tools')))
ROOT = Path(__file__).parent.parent


def failures(report):
    """Return a line for each test of a report in JUnit's form that failed, or could not be set up or collected."""
    cases = ElementTree.parse(report).iter('testcase') if report.exists() else ()
    return [' '.join((one.tag.upper(), case.get('classname'), case.get('name'), one.get('message'))).split('\n')[0]
            for case in cases for one in case if one.tag in ('failure', 'error')]


def main(arguments):
    """Return 0 where every test passed, else the code of the first part in which one did not."""
    chosen = [one for one in arguments if one in CHOICES]
    only = CHOICES[chosen[-1]] if chosen else ' and not long'
    arguments = [one for one in arguments if one not in CHOICES]
    # hundreds of processes start; without bytecode each would compile our sources again
    quick = {name: value for name, value in os.environ.items() if name != 'PYTHONDONTWRITEBYTECODE'}
    # threads of linear algebra, of two workers on two processors, would wait for each other: matrices are small here
    quick |= ONE_THREAD
    if chosen:
        quick['PSDYN_THOROUGH'] = '1'
    # where it fails, the tests say more
    subprocess.run([sys.executable, KERNELS], env=quick)
    pytest = sys.executable, '-m', 'pytest', '--durations', '15', '-m'
    named = any((ROOT / one.split('::')[0]).exists() for one in arguments)     # tests that were asked for by name
    codes, failed = [], []
    with tempfile.TemporaryDirectory() as reports:
        for part, (marked, options, folders) in enumerate(PARTS):
            report = Path(reports, f'{part}.xml')
            codes.append(subprocess.run([*pytest, f'{marked}{only}', *options, f'--junit-xml={report}',
                                         *(() if named else folders), *arguments], env=quick, cwd=ROOT).returncode)
            failed += failures(report)
    print(*failed, sep='\n')
    if all(code == NO_TESTS for code in codes):
        return NO_TESTS
    return next((code for code in codes if code not in (0, NO_TESTS)), 0)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
