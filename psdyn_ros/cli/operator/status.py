"""`psdyn status`: what controller, simulator and sensors report."""

from ._session import add_session, with_operator

HELP = 'print what running nodes report, and where the joints are'
add_arguments = add_session


def run(options):
    """Print the status; return 1 where a node reports an error."""
    def work(operator):
        from ...tools.operator.status import status

        lines, worst = status(operator)
        print('\n'.join(lines))
        return 1 if worst == 'error' else 0

    return with_operator(options, 'status', work)
