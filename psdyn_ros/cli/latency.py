"""`psdyn latency`: how punctual and quick a control cycle is on this computer."""

from ._options import at_least, check_positive, without_ros

HELP = 'measure how punctual and quick a control cycle is here, beside loops that do nothing'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('--seconds', type=float, default=60.0, metavar='S', help='of all turns together (60)')
    parser.add_argument('--rate', type=float, nargs='+', default=[500.0, 1000.0], metavar='HZ', help='(500 1000)')
    parser.add_argument('--trigger', choices=('timer', 'state', 'both'), default='both',
                        help='what begins a cycle: a deadline, or the message of the state (both)')
    parser.add_argument('--realtime', choices=('off', 'try', 'enforce'), default='try',
                        help='real-time conditions that every loop asks for (try)')
    parser.add_argument('--priority', type=int, default=45, metavar='N', help='of SCHED_FIFO (45)')
    parser.add_argument('--cpus', default='', metavar='N,N', help='processors for the loops (any)')
    parser.add_argument('--load', type=at_least(0), default=0, metavar='N', help='busy processes beside them (0)')
    parser.add_argument('--flood', choices=('small', 'large', 'wrong'), default='',
                        help='messages that the loops get meanwhile: small ones, of 1 MiB, of another type (none)')
    parser.add_argument('--json', metavar='FILE', help='all records and conditions')
    parser.add_argument('--picture', metavar='FILE', help='PNG: share of slots beyond a duration')
    parser.add_argument('--report', metavar='FILE', help='Markdown: conditions, table and verdict')


def run(options):
    """Measure, print and write what was asked for; return the exit code."""
    for name, values in (('seconds', [options.seconds]), ('rate', options.rate)):
        for value in values:
            check_positive(name, value)
    try:
        from ..tools.timing import latency
    except ImportError as error:
        return without_ros('latency', error)
    triggers = latency.TRIGGERS if options.trigger == 'both' else (options.trigger,)
    return latency.run(
        latency.Options(options.seconds, tuple(dict.fromkeys(options.rate)), triggers, options.realtime,
                        options.priority, options.cpus, options.load, options.flood),
        options.json, options.picture, options.report)
