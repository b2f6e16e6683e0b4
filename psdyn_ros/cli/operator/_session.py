"""What the commands of an operator have in common: where the nodes are, how long to wait, how a refusal ends."""

import sys

from ...model.troubleshooting import advice, error_advice
from .._options import check_positive, without_ros


def add_session(parser):
    """Add the namespace, the name of the controller and the timeout."""
    parser.add_argument('--namespace', default='', metavar='NS', help='of the nodes and topics (default: none)')
    parser.add_argument('--controller', default='controller', metavar='NAME', help='name of the node (%(default)s)')
    parser.add_argument('--timeout', type=float, default=10.0, metavar='S',
                        help='to wait for a node, a topic or an answer (%(default)g)')


def with_operator(options, command, work):
    """Return the exit code of `work(operator)`: what it returns, 1 where the controller refuses."""
    check_positive('timeout', options.timeout)
    try:
        from ...tools.operator.session import RefusedError, operator
    except ImportError as error:
        return without_ros(command, error)
    with operator(options.namespace, options.controller, options.timeout) as session:
        try:
            return work(session) or 0
        except RefusedError as error:
            actions = advice(str(error)) or [error_advice(error)]
            print('\nwhat to do: '.join([f'psdyn: {error}', *actions]), file=sys.stderr)
            return 1
