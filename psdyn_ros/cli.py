"""`psdyn` on the command line.  Exit codes: 0 success, 1 a verdict of fail, 2 unusable input, 70 internal error."""
import argparse
import math
import os
import sys
import traceback
from importlib.metadata import PackageNotFoundError, version

from .api.analysis.report import check_report
from .api.hydraulics.report import hydraulic_report
from .api.load import load
from .formulations.adapters import Mechanism, call_witnesses
from .formulations.cross_check import compare, witness_report
from .model.errors import ModelError, PsdynError
from .model.locate import find_config, find_machine, machine_names
from .model.parameters.hydraulics import read_hydraulics
from .tools.papers import SECTIONS
from .tools.recordings import cases
from .validation import compare_bags
from .validation import identify as identification
from .validation import validate as validation


def main(arguments=None):
    """Run the command line and return the exit code."""
    # names of machines may be in any script, terminals may not
    sys.stdout.reconfigure(errors='backslashreplace')
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except PsdynError as error:
        print(f'psdyn: {type(error).__name__}: {error}', file=sys.stderr)
        return 2
    except BrokenPipeError:
        # the reader of our output went away, as `psdyn check FILE | head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception:
        traceback.print_exc()
        return 70


def _parser():
    parser = argparse.ArgumentParser(
        prog='psdyn', description='Dynamics and control of manipulators with cylinder-driven closed loops.')
    parser.add_argument('--version', action='version', version=f'psdyn {_version()}')
    commands = parser.add_subparsers(metavar='COMMAND', required=True)

    check = commands.add_parser('check', help='print tree, loops, actuators and warnings of a URDF')
    check.add_argument('file', metavar='FILE', help='URDF file, or the name of a machine of the package')
    check.add_argument('--gravity', nargs=3, type=float, default=(0.0, 0.0, -9.81), metavar=('X', 'Y', 'Z'))
    check.add_argument('--initial', nargs='*', default=[], metavar='JOINT=POSITION', help='picks assembly modes')
    check.add_argument('--actuated', nargs='+', metavar='JOINT', help='actuated joints, overrules <ros2_control>')
    check.add_argument('--loops-file', metavar='YAML', help='further loop closures')
    check.add_argument('--hydraulics', metavar='FILE',
                       help='cylinders, valves and supply to print too (default: those of the machine of the package)')
    check.add_argument('--allow-unphysical', action='store_true', help='accept inertias that no body can have')
    check.add_argument('--witness', action='store_true',
                       help='compare the dynamics with every other formulation that applies, on random states')
    check.add_argument('--states', type=_at_least(1), default=50, metavar='N', help='number of these states (50)')
    check.add_argument('--seed', type=_at_least(0), default=0, metavar='S', help='of these states (0)')
    check.set_defaults(run=_check)

    demo = commands.add_parser(
        'demo', help='simulate and control a machine over ROS 2, compare with PD, write a report')
    demo.add_argument('--machine', default='hiab_xs031', help=f"URDF file, or one of: {', '.join(machine_names())}")
    demo.add_argument('--output', default='demo_output', metavar='DIR', help='folder of bags, plots and report')
    demo.add_argument('--level', choices=('valve', 'effort'),
                      help='what the controller commands (default: valve where the machine has hydraulics)')
    demo.add_argument('--rig', metavar='CYLINDER',
                      help='put this cylinder on a test rig, a process of its own, and compare with the whole machine')
    demo.add_argument('--real-time', action='store_true', help='of --rig: run on the clock rather than in lock-step')
    demo.add_argument('--config', metavar='FILE',
                      help='ROS parameter file of the nodes (default: that of the machine of the package)')
    demo.add_argument('--initial', nargs='+', metavar='JOINT=POSITION', help='picks assembly modes')
    demo.add_argument('--duration', type=float, metavar='S', help='length of the motion')
    demo.set_defaults(run=_demo)

    simulate = commands.add_parser(
        'simulate', help='run a machine under commands from a file, faster than real time, and write a bag')
    simulate.add_argument('machine', metavar='MACHINE', help=f"URDF file, or one of: {', '.join(machine_names())}")
    simulate.add_argument('--input', required=True, metavar='FILE', help='CSV or YAML file of commands over time')
    simulate.add_argument('--output', default='simulated', metavar='DIR', help='folder of the bag (simulated)')
    simulate.add_argument('--hydraulics', metavar='FILE',
                          help="YAML file, or 'none' for the force level (default: that of the machine of the package)")
    simulate.add_argument('--mode', nargs='+', default=[], metavar='JOINT=MODE',
                          help='command modes: valve, pressure, velocity, effort (default: as the hydraulics say)')
    simulate.add_argument('--sensors', metavar='FILE', help='YAML file of sensor errors (default: exact)')
    simulate.add_argument('--faults', metavar='FILE', help='YAML file with a schedule of faults')
    simulate.add_argument('--initial', nargs='*', default=[], metavar='JOINT=POSITION', help='where it starts')
    simulate.add_argument('--duration', type=float, metavar='S', help='simulated (1 s beyond the last command)')
    simulate.add_argument('--step', type=float, default=1e-3, metavar='S', help='of the plant (0.001)')
    simulate.add_argument('--substeps', type=_at_least(1), default=2, metavar='N', help='of the solver in a step (2)')
    simulate.add_argument('--log-rate', type=float, default=100.0, metavar='HZ', help='of states in the bag (100)')
    simulate.add_argument('--seed', type=_at_least(0), default=0, metavar='S', help='of sensors and faults (0)')
    simulate.set_defaults(run=_simulate)

    annotate = commands.add_parser(
        'annotate', help='fill a trajectory with the efforts that it needs, for a stock joint_trajectory_controller')
    annotate.add_argument('machine', metavar='MACHINE', help=f"URDF file, or one of: {', '.join(machine_names())}")
    annotate.add_argument('trajectory', metavar='FILE', help='YAML file, a JointTrajectory as `ros2 topic echo` prints')
    annotate.add_argument('--max-dt', type=float, default=0.02, metavar='S', help='from point to point at most (0.02)')
    annotate.add_argument('--output', metavar='FILE', help='YAML file to write (default: standard output)')
    annotate.add_argument('--payload', nargs=5, metavar=('LINK', 'KG', 'X', 'Y', 'Z'),
                          help='a point mass on a link, at m in its axes')
    annotate.add_argument('--clamp', action='store_true', help='clamp efforts beyond the limits instead of refusing')
    annotate.add_argument('--initial', nargs='*', default=[], metavar='JOINT=POSITION', help='picks assembly modes')
    annotate.set_defaults(run=_annotate)

    latency = commands.add_parser(
        'latency', help='measure how punctual and quick a control cycle is here, beside loops that do nothing')
    latency.add_argument('--seconds', type=float, default=60.0, metavar='S', help='of all turns together (60)')
    latency.add_argument('--rate', type=float, nargs='+', default=[500.0, 1000.0], metavar='HZ', help='(500 1000)')
    latency.add_argument('--trigger', choices=('timer', 'state', 'both'), default='both',
                         help='what begins a cycle: a deadline, or the message of the state (both)')
    latency.add_argument('--realtime', choices=('off', 'try', 'enforce'), default='try',
                         help='real-time conditions that every loop asks for (try)')
    latency.add_argument('--priority', type=int, default=45, metavar='N', help='of SCHED_FIFO (45)')
    latency.add_argument('--cpus', default='', metavar='N,N', help='processors for the loops (any)')
    latency.add_argument('--load', type=_at_least(0), default=0, metavar='N', help='busy processes beside them (0)')
    latency.add_argument('--json', metavar='FILE', help='all records and conditions')
    latency.add_argument('--picture', metavar='FILE', help='PNG: share of slots beyond a duration')
    latency.add_argument('--report', metavar='FILE', help='Markdown: conditions, table and verdict')
    latency.set_defaults(run=_latency)

    validate = commands.add_parser(
        'validate', help='compare a recorded bag with the model of the machine; a verdict, tables and a report')
    validation.add_arguments(validate)
    validate.set_defaults(run=validation.run)

    compare_two = commands.add_parser(
        'compare', help='compare two recorded bags: did the machine, or the model of it, get worse?')
    compare_bags.add_arguments(compare_two)
    compare_two.set_defaults(run=compare_bags.run)

    identify = commands.add_parser(
        'identify', help='estimate payload, friction and inertial parameters from a recorded bag')
    identification.add_arguments(identify)
    identify.set_defaults(run=identification.run)

    record = commands.add_parser(
        'record-demo', help='record a simulated crane over ROS 2, healthy and with faults, for `validate` to find them')
    cases.add_arguments(record)
    record.set_defaults(run=_record_demo)

    papers = commands.add_parser(
        'papers', help='recompute every example and figure of the four papers, beside their numbers')
    papers.add_argument('--output', default='papers_output', metavar='DIR', help='folder of papers.md and its pictures')
    papers.add_argument('--only', default=SECTIONS, type=_papers, metavar='NAMES',
                        help=f"some of {','.join(SECTIONS)}, separated by commas")
    papers.set_defaults(run=_run_papers)
    return parser


def _at_least(least):
    """Return what reads an integer of this size for argparse."""
    def integer(text):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f'{value}: expected {least} or more')
        return value
    return integer


def _papers(text):
    names = tuple(text.split(','))
    for name in names:
        if name not in SECTIONS:
            raise argparse.ArgumentTypeError(f"'{name}': expected some of {','.join(SECTIONS)}")
    return tuple(name for name in SECTIONS if name in names)


def _version():
    try:
        return version('psdyn_ros')
    except PackageNotFoundError:
        return '(not installed)'


def _initial(entries):
    """Return {joint: position} of --initial."""
    initial = {}
    for entry in entries:
        joint, _, value = entry.partition('=')
        try:
            initial[joint] = float(value)
        except ValueError:
            raise ModelError(f"--initial '{entry}': expected JOINT=POSITION") from None
    return initial


def _check(options):
    manipulator = load(find_machine(options.file), gravity=options.gravity, initial=_initial(options.initial),
                       actuated=options.actuated,
                       loops_file=options.loops_file, allow_unphysical=options.allow_unphysical)
    if options.witness:
        return _witness(manipulator, options.states, options.seed)
    print(check_report(manipulator))
    hydraulics = options.hydraulics
    if hydraulics is None and not os.path.isfile(options.file):
        hydraulics = find_config(f'{options.file}_hydraulics.yaml')
    if hydraulics:
        print('\n' + hydraulic_report(manipulator, read_hydraulics(hydraulics, manipulator.actuators)))
    return 0


def _witness(manipulator, states, seed):
    """Print what other formulations say of a machine; 1 when one disagrees."""
    m, start = manipulator, manipulator.initial_position
    mechanism = Mechanism(m.machine.description, m.coordinates, m.actuators, m.gravity)
    names, positions, *_ = m.joint_state(start)
    witnesses = call_witnesses(mechanism, mechanism.posture(start, dict(zip(names, positions))))
    result = compare(m, mechanism, witnesses, states, seed)
    print(witness_report(m.name, result))
    return 0 if result.agree else 1


def _run_papers(options):
    # here, since the other commands do without scipy and matplotlib
    from .tools.papers.runner import run
    try:
        return run(options.output, options.only)
    except OSError as error:
        print(f"psdyn: --output '{options.output}': {error}", file=sys.stderr)
        return 2


def _simulate(options):
    # here, since the other commands do without scipy and rosbags
    from .validation.report.page import as_text
    from .validation.simulated_run import simulate_into_bag
    for name, value in (('duration', options.duration), ('step', options.step), ('log-rate', options.log_rate)):
        if value is not None and not (value > 0.0 and math.isfinite(value)):
            raise ModelError(f'--{name} {value:g}: expected a positive number')
    modes = {}
    for entry in options.mode:
        joint, equals, mode = entry.partition('=')
        if not equals:
            raise ModelError(f"--mode '{entry}': expected JOINT=MODE")
        modes[joint] = mode
    outcome = simulate_into_bag(
        options.machine, options.input, options.output,
        hydraulics='' if options.hydraulics == 'none' else options.hydraulics, sensors=options.sensors,
        faults=options.faults, modes=modes, duration=options.duration, period=options.step, substeps=options.substeps,
        log_rate=options.log_rate, seed=options.seed, initial=_initial(options.initial))
    print(as_text(outcome.table))
    speed = outcome.simulated / outcome.elapsed
    print(f'\n{outcome.simulated:.3f} s simulated in {outcome.elapsed:.2f} s, {speed:.0f} '
          f'times faster than real time; {outcome.messages} messages in {outcome.bag}')
    if outcome.fault:
        print(f'FAULT: {outcome.fault}; snapshot: {outcome.snapshot}')
        return 1
    return 0


def _annotate(options):
    # here, since the other commands do without scipy
    from .control.offline.annotate import annotate
    from .control.offline.trajectory_file import read_trajectory, trajectory_text
    machine = load(find_machine(options.machine), initial=_initial(options.initial))
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
    try:
        with open(options.output, 'w', encoding='utf-8') as file:
            file.write(text)
    except OSError as error:
        raise ModelError(f"--output '{options.output}': {error}") from error
    print(f'{len(found.efforts)} points over {found.waypoints.times[-1]:.3g} s in {options.output}'
          + (f'; clamped at {found.clamped} of them' if found.clamped else ''))
    return 0


def _latency(options):
    for name, values in (('seconds', [options.seconds]), ('rate', options.rate)):
        for value in values:
            if not (value > 0.0 and math.isfinite(value)):
                raise ModelError(f'--{name} {value:g}: expected a positive number')
    try:
        from .tools.timing import latency
    except ImportError as error:
        return _without_ros('latency', error)
    triggers = latency.TRIGGERS if options.trigger == 'both' else (options.trigger,)
    return latency.run(
        latency.Options(options.seconds, tuple(dict.fromkeys(options.rate)), triggers, options.realtime,
                        options.priority, options.cpus, options.load), options.json, options.picture, options.report)


def _without_ros(command, error):
    print(f'psdyn: {command} needs ROS 2: {error} (source a ROS 2 installation; `make demo` makes an environment '
          'that has it)', file=sys.stderr)
    return 2


def _record_demo(options):
    try:
        from .tools.recordings.record import run_options
    except ImportError as error:
        return _without_ros('record-demo', error)
    return run_options(options)


def _demo(options):
    try:
        from .tools.demo.demo import run
    except ImportError as error:
        return _without_ros('demo', error)
    return run(options.machine, options.output, level=options.level, rig=options.rig, real_time=options.real_time,
               config=options.config, assembly=options.initial, duration=options.duration)


if __name__ == '__main__':
    sys.exit(main())
