"""`psdyn papers`: every example and figure of the four papers, computed again."""

import argparse

from ..tools.papers import SECTIONS

HELP = 'recompute every example and figure of the four papers, beside their numbers'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('--output', default='papers_output', metavar='DIR', help='folder of papers.md and its pictures')
    parser.add_argument('--only', default=SECTIONS, type=_sections, metavar='NAMES',
                        help=f"some of {','.join(SECTIONS)}, separated by commas")


def run(options):
    """Compute and write the page; return the exit code."""
    from ..tools.papers.runner import run as compute

    return compute(options.output, options.only)


def _sections(text):
    names = tuple(text.split(','))
    for name in names:
        if name not in SECTIONS:
            raise argparse.ArgumentTypeError(f"'{name}': expected some of {','.join(SECTIONS)}")
    return tuple(name for name in SECTIONS if name in names)
