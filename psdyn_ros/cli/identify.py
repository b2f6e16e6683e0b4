"""`psdyn identify`: payload, friction and inertial parameters from a recorded bag.

Exit codes: 0 the identified model explains what was held out, 1 it does not, 2 unusable, 3 it does, but only a part of
what was recorded could be used.
"""

import json
import sys
from pathlib import Path

from ..model.errors import PsdynError
from ._options import add_model, chosen_topics

HELP = 'estimate payload, friction and inertial parameters from a recorded bag'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('bag', metavar='BAG', help='folder or file, MCAP or SQLite')
    add_model(parser)
    parser.add_argument('--payload', metavar='LINK', help='believe the machine, and find a body on this link')
    parser.add_argument('--com', type=float, nargs=3, metavar=('X', 'Y', 'Z'),
                        help="m, where that body is believed to be, in axes of the link (default: the link's own)")


def run(options):
    """Identify and print a table; return the exit code."""
    from ..validation.identification.corrected_model import write_corrected
    from ..validation.identify import identify_bag
    from ..validation.playback import write_playback
    from ..validation.report.identification_report import write_report

    try:
        found, manipulator, hydraulics = identify_bag(
            options.bag, options.urdf, hydraulics=options.hydraulics, payload_link=options.payload,
            payload_com=options.com, topics=chosen_topics(options.topic))
        print(found.text)
        if options.output:
            folder = Path(options.output)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / 'identification.json').write_text(json.dumps(found.as_dict(), indent=2) + '\n')
            print(write_report(folder, found, write_playback(folder, options.bag, manipulator, hydraulics=hydraulics,
                                                             topics=chosen_topics(options.topic))))
            for path in write_corrected(folder, found, manipulator, options.urdf, hydraulics):
                print(path)
    except (PsdynError, OSError) as error:
        print(f'UNUSABLE: {error}', file=sys.stderr)
        return 2
    return found.exit_code
