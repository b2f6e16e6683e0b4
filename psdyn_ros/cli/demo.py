"""`psdyn demo`: simulator and controller as processes, under computed torque and under a baseline."""

from ._options import add_machine, without_ros

HELP = 'simulate and control a machine over ROS 2, compare with PID or PD, write a report'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    add_machine(parser, '--machine', default='hiab_xs031', without=(), metavar='MACHINE')
    parser.add_argument('--output', metavar='DIR',
                        help='new folder of bags, plots and report (default: demo_output, then demo_output_2, ...)')
    parser.add_argument('--level', choices=('valve', 'effort'),
                        help='what the controller commands (default: valve where the machine has hydraulics)')
    parser.add_argument('--rig', metavar='CYLINDER',
                        help='put this cylinder on a test rig, a process of its own; compare with the whole machine')
    parser.add_argument('--real-time', action='store_true',
                        help='run on the clock rather than in lock-step, and report stalls')
    parser.add_argument('--config', metavar='FILE',
                        help='YAML file of ROS parameters of simulator and controller (default: that of a machine of '
                             'the package, here and below)')
    parser.add_argument('--hydraulics', metavar='FILE', help='YAML file of cylinders, valves and supply')
    parser.add_argument('--safety', metavar='FILE', help='YAML file of limits, deadlines, stops and safe outputs')
    parser.add_argument('--sensors', metavar='FILE', help='YAML file of noise and delays of the simulated sensors')
    parser.add_argument('--initial', nargs='+', metavar='JOINT=POSITION', help='picks assembly modes')
    parser.add_argument('--duration', type=float, metavar='S', help='length of the motion')
    parser.add_argument('--bandwidth', type=float, metavar='W', help='rad/s of computed torque')
    parser.add_argument('--baseline-bandwidth', type=float, metavar='W', help='rad/s of PD with constant gravity')
    parser.add_argument('--rate', type=float, metavar='HZ', help='of the plant and of the controller')


def run(options):
    """Run the demonstration; return the exit code."""
    try:
        from ..tools.demo.demo import run as run_demo
    except ImportError as error:
        return without_ros('demo', error)
    return run_demo(options.machine, options.output, level=options.level, rig=options.rig,
                    real_time=options.real_time, config=options.config, hydraulics=options.hydraulics,
                    safety=options.safety, sensors=options.sensors, duration=options.duration, rate=options.rate,
                    assembly=None if options.initial is None else ' '.join(options.initial),
                    bandwidth=options.bandwidth, baseline_bandwidth=options.baseline_bandwidth)
