"""`psdyn record`: record topics of running nodes into a bag."""

from .._options import check_positive
from ._session import add_session, with_operator

HELP = 'record topics of running nodes into an MCAP bag, until Ctrl-C'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('output', metavar='DIR', help='new folder of the bag')
    parser.add_argument('topics', nargs='*', metavar='TOPIC', help='names in the namespace (default: all topics)')
    parser.add_argument('--seconds', type=float, metavar='S', help='to record (default: until Ctrl-C)')
    add_session(parser)


def run(options):
    """Record; return the exit code."""
    if options.seconds is not None:
        check_positive('seconds', options.seconds)

    def work(operator):
        from ...tools.operator.recording import record

        counts = record(operator, options.output, options.topics, options.seconds,
                        say=lambda line: print(line, flush=True))
        for topic, count in sorted(counts.items()):
            print(f'{count:8d}  {topic}')

    return with_operator(options, 'record', work)
