"""`psdyn check`: tree, loops, actuators and warnings of a URDF; or a safety file that fits it."""

import os

from ..model.errors import PsdynError
from ..model.locate import find_config
from ._options import add_machine, at_least, initial_positions

HELP = 'print tree, loops, actuators and warnings of a URDF'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    add_machine(parser, 'file', without=(), metavar='MACHINE')
    parser.add_argument('--gravity', nargs=3, type=float, default=(0.0, 0.0, -9.81), metavar=('X', 'Y', 'Z'),
                        help='m/s^2, in axes of the world (0 0 -9.81)')
    parser.add_argument('--initial', nargs='*', default=[], metavar='JOINT=POSITION', help='picks assembly modes')
    parser.add_argument('--actuated', nargs='+', metavar='JOINT', help='actuated joints, overrules <ros2_control>')
    parser.add_argument('--loops-file', metavar='YAML', help='further loop closures')
    parser.add_argument('--hydraulics', metavar='FILE',
                        help='YAML file of cylinders, valves and supply, to print too (default: that of a machine of '
                             'the package)')
    parser.add_argument('--allow-unphysical', action='store_true', help='accept inertias that no body can have')
    parser.add_argument('--witness', action='store_true',
                        help='compare the dynamics with every other formulation that applies, on random states')
    parser.add_argument('--safety', action='store_true',
                        help='print a complete safety file with values from the limits of the machine, in place of the '
                             'report')
    parser.add_argument('--html', metavar='FILE',
                        help='also write a page: a drawing of joints, links and loops, the machine in 3-D, the report')
    parser.add_argument('--states', type=at_least(1), default=50, metavar='N', help='number of these states (50)')
    parser.add_argument('--seed', type=at_least(0), default=0, metavar='S', help='of these states (0)')


def run(options):
    """Print the report of the machine; return the exit code."""
    from ..api.analysis.report import check_report
    from ..api.hydraulics.report import hydraulic_report
    from ..api.load import load
    from ..model.parameters.hydraulics import read_hydraulics

    manipulator = load(options.file, gravity=options.gravity, initial=initial_positions(options.initial),
                       actuated=options.actuated, loops_file=options.loops_file,
                       allow_unphysical=options.allow_unphysical)
    if options.witness:
        return _compare_formulations(manipulator, options.states, options.seed)
    report = check_report(manipulator)
    if not options.safety:
        print(report)
    hydraulics = options.hydraulics
    if hydraulics is None and not os.path.isfile(options.file):
        hydraulics = find_config(f'{options.file}_hydraulics.yaml')
    hydraulics = read_hydraulics(hydraulics, manipulator.actuators) if hydraulics else None
    if options.safety:
        from ..control.safety.proposal import proposed_safety
        print(proposed_safety(manipulator, hydraulics), end='')
        return 0
    if hydraulics:
        oil = hydraulic_report(manipulator, hydraulics)
        print(f'\n{oil}')
        report += f'\n\n{oil}'
    refusal = _refusal(manipulator)
    if refusal:
        print(f'\n{refusal}')
        report += f'\n\n{refusal}'
    if options.html:
        from ..view import check_page
        with open(options.html, 'w', encoding='utf-8', errors='replace') as file:
            file.write(check_page(manipulator, report))
        print(f'\n{options.html}: opens in any browser, without network')
    return 0


def _refusal(manipulator):
    """Return why a controller refuses the machine; empty where it does not."""
    from ..control.laws.base import check_actuation
    from ..control.laws.payload_model import LoadModel

    try:
        check_actuation(manipulator)
        if manipulator.underactuated:
            LoadModel(manipulator)      # refuses a load that stands above its joints
    except PsdynError as error:
        return f'A controller refuses this machine: {error}'
    return ''


def _compare_formulations(manipulator, states, seed):
    """Print how far other formulations are from the dynamics of a machine; return 1 when one disagrees."""
    from ..formulations.adapters import Mechanism, call_witnesses
    from ..formulations.cross_check import compare, witness_report

    m, start = manipulator, manipulator.initial_position
    mechanism = Mechanism(m.machine.description, m.coordinates, m.actuators, m.gravity)
    names, positions, *_ = m.joint_state(start)
    witnesses = call_witnesses(mechanism, mechanism.posture(start, dict(zip(names, positions))))
    result = compare(m, mechanism, witnesses, states, seed)
    print(witness_report(m.name, result))
    return 0 if result.agree else 1
