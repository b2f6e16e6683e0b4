"""`psdyn plan`: the fastest motion through way points within the limits of a machine, as a trajectory file."""

import math
import os

from ..model.errors import ModelError
from ..model.locate import find_config, find_machine
from ._options import UNPHYSICAL, add_machine, initial_positions

HELP = 'plan the fastest motion through way points within speeds, accelerations, forces, valves and pump flow'
KINDS = 'yaml', 'csv', 'png'    # of the files that are written


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    add_machine(parser, 'machine', without=UNPHYSICAL, metavar='MACHINE')
    parser.add_argument('way', metavar='FILE', help='YAML file of positions of coordinates, or of poses of a link')
    parser.add_argument('--hydraulics', metavar='FILE',
                        help="YAML file of cylinders, valves and supply, or 'none' for effort limits only (default: "
                             'that of a machine of the package)')
    parser.add_argument('--safety', metavar='FILE',
                        help="YAML file of accelerations and jerks of references, or 'none' (default: "
                             'that of a machine of the package)')
    parser.add_argument('--pressure', type=float, metavar='PA', help='of the pump (default: that of the supply)')
    parser.add_argument('--share', type=float, default=0.9, metavar='SHARE',
                        help='of efforts, pressure, openings and flow; the rest is left to the controller (0.9)')
    parser.add_argument('--shaper', default='zvd', choices=('zvd', 'ei', 'zv', 'none'),
                        help='of the swing of a load that hangs (zvd)')
    parser.add_argument('--initial', nargs='*', default=[], metavar='JOINT=POSITION', help='picks assembly modes')
    parser.add_argument('--output', default='plan', metavar='NAME', help='of the .yaml, .csv and .png file (plan)')


def run(options):
    """Write trajectory, table and picture; return the exit code."""
    from ..api.load import load
    from ..control.offline.planned_motion import LIMITS, plan_motion
    from ..control.offline.time_optimal import check_plannable
    from ..control.offline.trajectory_file import trajectory_text
    from ..control.offline.way_file import read_way
    from ..control.planning_limits import declared_limits
    from ..tools.charts.planned_motion import draw, write_table

    m = load(options.machine, initial=initial_positions(options.initial))
    check_plannable(m)
    hydraulics, safety = _file(options, 'hydraulics'), _file(options, 'safety')
    _check_output(options.output, (find_machine(options.machine), options.way, hydraulics, safety))
    limits, jerk = declared_limits(m, hydraulics, safety, pressure=options.pressure, share=options.share)
    motion = plan_motion(m, read_way(options.way, m), limits, jerk=jerk, shaper=options.shaper)
    with open(f'{options.output}.yaml', 'w', encoding='utf-8') as file:
        efforts = motion.f if m.driven_machine.actuators == m.driven_machine.coordinates else None
        file.write(trajectory_text(motion.waypoints(m), efforts))
    write_table(motion, f'{options.output}.csv')
    draw(motion, limits, f'{options.output}.png', f'{m.name}: {motion.duration:.2f} s')
    used = ', '.join(f'{name} {value:.0%}' for name, value in zip(LIMITS, motion.use.max(axis=0)) if value > 0.0)
    print(f'{motion.duration:.3f} s; largest use of limits: {used}')
    for name, left in zip(motion.axes['passive'].names, motion.swing_left):
        print(f'{name} swings by up to {math.degrees(left):.2g} degrees after the motion')
    print(', '.join(f'{options.output}.{kind}' for kind in KINDS))
    return 0


def _check_output(output, inputs):
    """Raise ModelError where a file that is written would be one of the inputs, paths or None."""
    written = {os.path.realpath(f'{output}.{kind}') for kind in KINDS}
    for path in inputs:
        if path is not None and os.path.realpath(path) in written:
            raise ModelError(f"--output {output}: '{path}' would be replaced; expected another name")


def _file(options, what):
    """The path of a YAML file of the machine, or None."""
    given = getattr(options, what)
    if given is None and not os.path.isfile(options.machine):
        return find_config(f'{options.machine}_{what}.yaml')
    return None if given == 'none' else given
