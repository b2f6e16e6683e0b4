"""Options that several commands have, and how their texts are read."""

import argparse
import math
import sys

from ..model.errors import ModelError
from ..model.joint_positions import joint_positions
from ..model.locate import machine_names

YAML_FILES = """\
a MACHINE is a URDF file (.urdf, .xacro) or the name of a machine of the package; with a name come its YAML files:
  --hydraulics FILE   cylinders, valves, oil, pump: what turns valve openings into forces, and pressures into efforts
  --safety FILE       limits, deadlines, stops and safe outputs of the controller (psdyn check MACHINE --safety
                      prints one to start from)
  --sensors FILE      noise, delay and resolution of the simulated sensors (default: exact)
  --config FILE       of nodes (demo): ROS parameters of simulator and controller;
                      of recordings (validate, compare): tolerances, filter, topics
docs/reference/parameters.md has every entry; `eval "$(register-python-argcomplete psdyn)"` completes commands in bash
"""

UNPHYSICAL = 'balloon',     # machines with inertias that no body can have, which few commands accept


def at_least(least, most=math.inf):
    """Return what reads an integer of this size for argparse."""
    def integer(text):
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f'{value}: expected {least} ' + ('or more' if most == math.inf else
                                                                              f'to {most}'))
        return value
    return integer


def machine_help(names=None):
    """Return the help of an argument that is a machine; names: of the package, None: all."""
    return f"URDF file, or a machine of the package: {', '.join(machine_names() if names is None else names)}"


def add_machine(parser, *flags, without=UNPHYSICAL, **options):
    """Add an argument that is a machine, with its help and completion; without: names that the command refuses."""
    names = [name for name in machine_names() if name not in without]

    def complete(prefix, **_):
        from argcomplete.completers import FilesCompleter

        return [*(name for name in names if name.startswith(prefix)), *FilesCompleter(('urdf', 'xacro'))(prefix)]

    parser.add_argument(*flags, **{'help': machine_help(names), **options}).completer = complete


def check_positive(name, value):
    """Raise ModelError where the value of --name is not a finite number above 0."""
    if not (value > 0.0 and math.isfinite(value)):
        raise ModelError(f'--{name} {value:g}: expected a positive number')


def initial_positions(entries):
    """Return {joint: position} of the entries 'JOINT=POSITION' of --initial."""
    return joint_positions(' '.join(entries), '--initial')


def chosen_topics(entries):
    """Return {what: topic or list of topics} of the entries 'WHAT=TOPIC' of --topic."""
    found = {}
    for entry in entries:
        what, equals, topic = entry.partition('=')
        if not (what and equals and topic):
            raise ModelError(f"--topic '{entry}': expected WHAT=TOPIC")
        found.setdefault(what, []).append(topic)
    return {what: given[0] if len(given) == 1 else given for what, given in found.items()}


def add_model(parser):
    """Add the model that recordings are held against, where to write to, and topics."""
    add_machine(parser, '--urdf', required=True, metavar='MACHINE')
    parser.add_argument('--hydraulics', metavar='FILE',
                        help="YAML file; '' for none (default: that of a machine of the package, "
                             'where the bag has pressures)')
    parser.add_argument('--output', metavar='DIR', help='folder for the report and the files beside it')
    parser.add_argument('--topic', action='append', default=[], metavar='WHAT=TOPIC',
                        help='states, efforts, pressures, commands or reference; more than once for more')


def add_conditions(parser):
    """Add what `conditions` reads, and the model."""
    add_model(parser)
    parser.add_argument('--config', metavar='FILE', help='YAML file of tolerances, filter and topics')
    parser.add_argument('--no-align', action='store_true',
                        help='look for no delays between topics, and take off those of the file of --config only')


def conditions(options):
    """Return the keyword arguments of `validate` that options of `add_conditions` ask for."""
    return {'hydraulics': options.hydraulics, 'config': options.config, 'topics': chosen_topics(options.topic),
            'align': not options.no_align}


def one_thread():
    """Let linear algebra that is loaded use one thread: products of a bag are small, and others would wait busily."""
    from ..nodes.runtime.realtime import one_thread_for_algebra

    one_thread_for_algebra()


def without_ros(command, error):
    """Report that a command needs ROS 2, which could not be imported; return the exit code."""
    print(f'psdyn: {command} needs ROS 2: {error} (source a ROS 2 installation; `make demo` makes an environment '
          'that has it)', file=sys.stderr)
    return 2
