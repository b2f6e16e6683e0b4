"""`psdyn annotate`: a trajectory file with the efforts that it needs."""

from ..model.errors import ModelError
from ._options import add_machine, initial_positions

HELP = 'fill a trajectory with the efforts that it needs, for a stock joint_trajectory_controller'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    add_machine(parser, 'machine', metavar='MACHINE')
    parser.add_argument('trajectory', metavar='FILE', help='YAML file, a JointTrajectory as `ros2 topic echo` prints')
    parser.add_argument('--max-dt', type=float, default=0.02, metavar='S', help='from point to point at most (0.02)')
    parser.add_argument('--output', metavar='FILE', help='YAML file to write (default: standard output)')
    parser.add_argument('--payload', nargs=5, metavar=('LINK', 'KG', 'X', 'Y', 'Z'),
                        help='a point mass on a link, at m in its axes')
    parser.add_argument('--clamp', action='store_true', help='clamp efforts beyond the limits instead of refusing')
    parser.add_argument('--initial', nargs='*', default=[], metavar='JOINT=POSITION', help='picks assembly modes')


def run(options):
    """Write the trajectory; return the exit code."""
    from ..api.load import load
    from ..control.offline.annotate import annotate
    from ..control.offline.trajectory_file import read_trajectory, trajectory_text

    machine = load(options.machine, initial=initial_positions(options.initial))
    if options.payload:
        link, *numbers = options.payload
        try:
            mass, *com = map(float, numbers)
        except ValueError:
            raise ModelError(f"--payload {' '.join(options.payload)}: expected LINK KG X Y Z") from None
        machine = machine.with_payload(link, mass, com, [[0.0] * 3] * 3)
    found = annotate(machine, read_trajectory(options.trajectory), options.max_dt, clamp=options.clamp)
    text = trajectory_text(found.waypoints, found.efforts)
    if options.output is None:
        print(text, end='')
        return 0
    with open(options.output, 'w', encoding='utf-8') as file:
        file.write(text)
    print(f'{len(found.efforts)} points over {found.waypoints.times[-1]:.3g} s in {options.output}'
          + (f'; clamped at {found.clamped} of them' if found.clamped else ''))
    return 0
