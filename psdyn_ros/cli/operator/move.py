"""`psdyn move`: move coordinates of the machine to positions."""

from ...model.joint_positions import joint_positions
from .._options import check_positive
from ._session import add_session, with_operator

HELP = 'move coordinates of the machine of a running controller: psdyn move slew=0.2 telescope=0.5'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('positions', nargs='+', metavar='JOINT=VALUE', help='m or rad; other coordinates stay')
    parser.add_argument('--seconds', type=float, default=5.0, metavar='S', help='that the motion takes (%(default)g)')
    parser.add_argument('--no-wait', action='store_true', help='return when the controller has accepted the motion')
    add_session(parser)


def run(options):
    """Move; return the exit code."""
    check_positive('seconds', options.seconds)
    positions = joint_positions(' '.join(options.positions), 'move')

    def work(operator):
        from ...tools.operator.motion import follow, target

        seconds = follow(operator, target(operator, positions, options.seconds), not options.no_wait)
        print('accepted' if options.no_wait else f'the machine is there, after {seconds:.1f} s')

    return with_operator(options, 'move', work)
