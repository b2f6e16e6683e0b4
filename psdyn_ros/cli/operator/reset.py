"""`psdyn reset`: let the controller forget the faults that are gone."""

from ._session import add_session, with_operator

HELP = 'let a running controller forget the faults that are gone; nothing moves'
add_arguments = add_session


def run(options):
    """Reset the controller; return the exit code."""
    return with_operator(options, 'reset', lambda operator: print(f'{operator.controller}: {operator.reset()}'))
