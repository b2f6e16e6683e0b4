"""`psdyn stop`: bring the machine to rest and to its safe output."""

from ._session import add_session, with_operator

HELP = 'let a running controller stop its machine and stand by; not an emergency stop'
add_arguments = add_session


def run(options):
    """Stop; return the exit code."""
    def work(operator):
        from ...tools.operator.motion import stop

        print(f'{operator.controller}: {stop(operator)}')

    return with_operator(options, 'stop', work)
