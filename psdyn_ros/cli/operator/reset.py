"""`psdyn reset`: let the controller forget the faults that are gone."""

from ._session import add_session, with_operator

HELP = 'let a running controller forget the faults that are gone; nothing moves'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    add_session(parser)


def run(options):
    """Reset the controller; return the exit code."""
    def work(operator):
        print(f'{operator.controller}: {operator.reset()}')
        return 0

    return with_operator(options, 'reset', work)
