"""`psdyn echo`: print the messages of a topic."""

from .._options import at_least
from ._session import add_session, with_operator

HELP = 'print messages of a topic as YAML, until Ctrl-C'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('topic', metavar='TOPIC', help='name in the namespace')
    parser.add_argument('--count', type=at_least(1), metavar='N', help='messages to print (default: until Ctrl-C)')
    add_session(parser)


def run(options):
    """Print messages; return the exit code."""
    def work(operator):
        from ...tools.operator.recording import echo

        echo(operator, options.topic, options.count)

    return with_operator(options, 'echo', work)
