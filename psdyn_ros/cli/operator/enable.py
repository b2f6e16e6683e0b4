"""`psdyn enable`: let the controller hold its machine."""

from ._session import add_session, with_operator

HELP = 'configure and activate a running controller where needed, and let it hold the machine where it is'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    add_session(parser)


def run(options):
    """Enable the controller; return the exit code."""
    def work(operator):
        for step in operator.activate():
            print(step, flush=True)
        print(f'{operator.controller}: {operator.enable(True)}')
        return 0

    return with_operator(options, 'enable', work)
