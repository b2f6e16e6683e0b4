"""`psdyn validate`: a recorded bag, or many, against the model of the machine.

Exit codes: 0 pass, 1 fail, 2 unusable, 3 pass on partial input.
"""

import argparse
import math
import sys
from pathlib import Path

from ..model.errors import PsdynError
from ..validation.bags.predicted_bag import RATE
from ..validation.metrics import EXIT_CODES, INVALID
from ._options import add_conditions, conditions, one_thread

HELP = 'compare a recorded bag with the model of the machine; a verdict, tables and a report'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('bag', nargs='+', metavar='BAG', help='folder or file, MCAP or SQLite, or a folder of bags')
    add_conditions(parser)
    parser.add_argument('--predicted-rate', type=_rate, default=RATE, metavar='HZ',
                        help=f'of the messages in the bag of predictions, in the folder of --output ({RATE:g})')
    processes = parser.add_mutually_exclusive_group()
    processes.add_argument('--workers', type=int, metavar='N',
                           help='bags that are validated at once (default: as many as there are processors)')
    processes.add_argument('--scheduler', metavar='ADDRESS', help='of a Dask cluster that validates them instead')


def run(options):
    """Validate and print a table; return the exit code."""
    from ..validation.bags.folders import is_collection

    try:
        if len(options.bag) > 1 or options.scheduler is not None or is_collection(options.bag[0]):
            return _validate_many(options)
        return _validate_one(options)
    except BrokenPipeError:
        raise               # the reader of our output went away, which says nothing of the bag
    except (PsdynError, OSError) as error:
        print(f'{INVALID}: {error}', file=sys.stderr)
        return EXIT_CODES[INVALID]


def _validate_one(options):
    from ..validation.report.validation_tables import summary
    from ..validation.validate import validate

    one_thread()
    found = validate(options.bag[0], options.urdf, output=options.output, quiet=False,
                     predicted_rate=options.predicted_rate, **conditions(options))
    print(summary(found))
    if options.output:
        print(f'\nreport: {Path(options.output) / "report.html"}')
    return found.verdict.exit_code


def _validate_many(options):
    from ..validation.fleet.batch import validate_many
    from ..validation.fleet.outcomes import PAGES
    from ..validation.fleet.summary_page import summary

    fleet = validate_many(options.bag, options.urdf, workers=options.workers, scheduler=options.scheduler,
                          output=options.output, quiet=False, **conditions(options))
    print(summary(fleet))
    if options.output:
        print(f'\nsummary: {Path(options.output) / PAGES[0]}')
    if fleet.error:
        print(f'{INVALID}: {fleet.error}', file=sys.stderr)
    return fleet.exit_code


def _rate(text):
    rate = float(text)
    if not 0.0 < rate < math.inf:
        raise argparse.ArgumentTypeError(f'{text}: expected more than 0')
    return rate
