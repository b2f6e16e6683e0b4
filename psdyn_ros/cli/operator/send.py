"""`psdyn send`: let the controller follow a trajectory from a file."""

from ._session import add_session, with_operator

HELP = 'let a running controller follow the trajectory in a YAML file'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('file', metavar='FILE', help='YAML in the form of trajectory_msgs/JointTrajectory')
    parser.add_argument('--no-wait', action='store_true', help='return when the controller has accepted the trajectory')
    add_session(parser)


def run(options):
    """Send the trajectory; return the exit code."""
    from ...control.offline.trajectory_file import read_trajectory

    waypoints = read_trajectory(options.file)

    def work(operator):
        from ...tools.operator.motion import follow

        seconds = follow(operator, waypoints, not options.no_wait)
        print('accepted' if options.no_wait else f'followed to its end, in {seconds:.1f} s')

    return with_operator(options, 'send', work)
