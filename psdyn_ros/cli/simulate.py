"""`psdyn simulate`: a machine under commands from a file, offline, into a bag."""

from ..model.errors import ModelError
from ._options import add_machine, at_least, check_positive, initial_positions

HELP = 'run a machine under commands from a file, faster than real time, and write a bag'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    add_machine(parser, 'machine', metavar='MACHINE')
    parser.add_argument('--input', required=True, metavar='FILE', help='CSV or YAML file of commands over time')
    parser.add_argument('--output', default='simulated', metavar='DIR', help='new folder of the bag (simulated)')
    parser.add_argument('--hydraulics', metavar='FILE',
                        help="YAML file of cylinders, valves and supply, or 'none' for the force level (default: that "
                             'of a machine of the package)')
    parser.add_argument('--mode', nargs='+', default=[], metavar='JOINT=MODE',
                        help='command modes: valve, pressure, velocity, effort (default: as the hydraulics say)')
    parser.add_argument('--sensors', metavar='FILE', help='YAML file of sensor errors (default: exact)')
    parser.add_argument('--faults', metavar='FILE', help='YAML file with a schedule of faults')
    parser.add_argument('--initial', nargs='*', default=[], metavar='JOINT=POSITION', help='where it starts')
    parser.add_argument('--duration', type=float, metavar='S', help='simulated (1 s beyond the last command)')
    parser.add_argument('--step', type=float, default=1e-3, metavar='S', help='of the plant (0.001)')
    parser.add_argument('--substeps', type=at_least(1), default=2, metavar='N', help='of the solver in a step (2)')
    parser.add_argument('--log-rate', type=float, default=100.0, metavar='HZ', help='of states in the bag (100)')
    parser.add_argument('--seed', type=at_least(0), default=0, metavar='S', help='of sensors and faults (0)')


def run(options):
    """Simulate into a bag; return the exit code, 1 where the plant stopped with a fault."""
    from ..validation.report.page import as_text
    from ..validation.simulated_run import Run, simulate_into_bag

    for name, value in (('duration', options.duration), ('step', options.step), ('log-rate', options.log_rate)):
        if value is not None:
            check_positive(name, value)
    modes = {}
    for entry in options.mode:
        joint, equals, mode = entry.partition('=')
        if not equals:
            raise ModelError(f"--mode '{entry}': expected JOINT=MODE")
        modes[joint] = mode
    outcome = simulate_into_bag(options.machine, options.input, options.output, Run(
        hydraulics='' if options.hydraulics == 'none' else options.hydraulics, sensors=options.sensors,
        faults=options.faults, modes=modes, duration=options.duration, period=options.step, substeps=options.substeps,
        log_rate=options.log_rate, seed=options.seed, initial=initial_positions(options.initial)))
    print(as_text(outcome.table))
    speed = outcome.simulated / outcome.elapsed
    print(f'\n{outcome.simulated:.3f} s simulated in {outcome.elapsed:.2f} s, {speed:.0f} '
          f'times faster than real time; {outcome.messages} messages in {outcome.bag}')
    print(f'report: {outcome.report}')
    if outcome.fault:
        print(f'FAULT: {outcome.fault}; snapshot: {outcome.snapshot}')
        return 1
    return 0
