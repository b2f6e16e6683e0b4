"""`psdyn enable`: let the controller hold its machine."""

from ._session import add_session, with_operator

HELP = 'configure and activate a running controller where needed, and let it hold the machine where it is'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('--again', action='store_true', help='deactivate it first: it then takes the machine as it is')
    add_session(parser)


def run(options):
    """Enable the controller; return the exit code."""
    def work(operator):
        settling = 0.0
        for step in operator.activate(options.again):
            print(step, flush=True)
            settling = operator.timeout     # a machine that was just let go may sink until its oil carries it
        print(f'{operator.controller}: {operator.enable(settling)}')

    return with_operator(options, 'enable', work)
