"""`psdyn compare`: whether the machine, or the model of it, got worse from one recording to the next.

Exit codes: as `compare_bags`.
"""

import sys
from pathlib import Path

from ..model.errors import PsdynError
from ..validation.metrics import EXIT_CODES, INVALID
from ._options import add_conditions, conditions, one_thread

HELP = 'compare two recorded bags: did the machine, or the model of it, get worse?'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('first', metavar='BAG_A', help='recording before: folder or file, MCAP or SQLite')
    parser.add_argument('second', metavar='BAG_B', help='recording after')
    add_conditions(parser)


def run(options):
    """Compare and print a table; return the exit code."""
    from ..validation.compare_bags import compare_bags
    from ..validation.report.compare_report import summary

    one_thread()
    try:
        comparison = compare_bags(options.first, options.second, options.urdf, output=options.output, quiet=False,
                                  **conditions(options))
    except (PsdynError, OSError) as error:
        print(f'{INVALID}: {error}', file=sys.stderr)
        return EXIT_CODES[INVALID]
    print(summary(comparison))
    if options.output:
        print(f'\nreport: {Path(options.output) / "report.html"}')
    return comparison.exit_code
