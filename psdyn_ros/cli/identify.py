"""`psdyn identify`: payload, friction and inertial parameters from a recorded bag.

Exit codes: 0 the identified model explains what was held out, and the recording, 1 it does not, 2 unusable, 3 it does,
but only a part of what was recorded could be used.
"""

import json
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ..model.errors import PsdynError
from ._options import add_model, chosen_topics, one_thread

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
    from ..validation.validate import validate

    one_thread()
    try:
        topics = chosen_topics(options.topic)
        found, manipulator, hydraulics = identify_bag(
            options.bag, options.urdf, hydraulics=options.hydraulics, payload_link=options.payload,
            payload_com=options.com, topics=topics)
        with _folder(options.output) as folder:
            corrected, *others = written = write_corrected(folder, found, manipulator, options.urdf, hydraulics)
            found = replace(found, validated=_promised(validate(
                options.bag, corrected, topics=topics, hydraulics=others[0] if others else hydraulics or '')))
            print(found.text)
            if options.output:
                print(write_report(folder, found, write_playback(folder, options.bag, manipulator,
                                                                 hydraulics=hydraulics, topics=topics)))
                print(*written, sep='\n')
                (folder / 'identification.json').write_text(json.dumps(found.as_dict(), indent=2) + '\n')
            rmse = ', '.join(f'{name} {value:.4g}' for name, value in found.validated['rmse'].items())
            print(f'`psdyn validate` of this recording with these files: RMSE {rmse} N or N m; '
                  f'{found.validated["text"]}')
    except (PsdynError, OSError) as error:
        print(f'UNUSABLE: {error}', file=sys.stderr)
        return 2
    return found.exit_code


@contextmanager
def _folder(output):
    """The folder of the outputs, which is made; where none are wanted, one that is gone afterwards."""
    if output:
        Path(output).mkdir(parents=True, exist_ok=True)
        yield Path(output)
    else:
        with TemporaryDirectory(prefix='psdyn_identify_') as folder:
            yield Path(folder)


def _promised(validation):
    """What `psdyn validate` says of the files that were written, whose filter is another one: for JSON."""
    metrics = validation.metrics
    return {'verdict': validation.verdict.verdict, 'text': validation.verdict.text,
            'rmse': {metrics.actuators[axis]: metrics.effort(axis).rmse for axis in metrics.measured()}}
