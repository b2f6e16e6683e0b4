"""`psdyn` on the command line: one file per command.

Exit codes: 0 success, 1 a verdict of fail, 2 unusable input, 3 pass on partial input, 70 internal error, 141 no reader.
"""

import argparse
import importlib
import os
import pkgutil
import signal
import sys
import traceback

import argcomplete

from .. import __version__
from ..model.errors import PsdynError
from ..model.troubleshooting import error_advice
from ._options import YAML_FILES

ABOUT = '''Dynamics and control of manipulators with cylinder-driven closed loops.

Start with `psdyn demo`, `psdyn view hiab_xs031`, and `psdyn check FILE` for a URDF of your own. Of these, status,
enable, move, send, record, echo, stop and reset talk to running nodes.'''


def main(arguments=None):
    """Run the command line and return the exit code."""
    # names of machines may be in any script, terminals may not
    sys.stdout.reconfigure(errors='backslashreplace')
    command_line = parser()
    argcomplete.autocomplete(command_line)
    options = command_line.parse_args(arguments)
    try:
        return options.run(options)
    except PsdynError as error:
        print(f'psdyn: {type(error).__name__}: {error}\nwhat to do: {error_advice(error)}', file=sys.stderr)
        return 2
    except BrokenPipeError:
        # the reader of our output went away, as `psdyn check FILE | head` does; as of the signal, and no verdict
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        print(f'psdyn: {error}', file=sys.stderr)       # of a file that was asked for, or its disk
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception:
        traceback.print_exc()
        return 70


def commands():
    """Return {command: its module}: every module of this folder and its folders but those with a leading underscore.

    A module has HELP, one line; `add_arguments(parser)`; and `run(options)`, which returns the exit code.
    """
    names = [info.name for info in pkgutil.walk_packages(__path__, f'{__name__}.') if not info.ispkg]
    commands = {name.rpartition('.')[2].replace('_', '-'): name for name in names if '._' not in name}
    return {command: importlib.import_module(commands[command]) for command in sorted(commands)}


def parser():
    """Return the argument parser of all commands."""
    parser = argparse.ArgumentParser(prog='psdyn', description=ABOUT, epilog=YAML_FILES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--version', action='version', version=f'psdyn {__version__}')
    subparsers = parser.add_subparsers(metavar='COMMAND', required=True)
    for name, module in commands().items():
        subparser = subparsers.add_parser(
            name, help=module.HELP,
            description=f'{module.HELP[0].upper()}{module.HELP[1:]}' + '.' * (not module.HELP.endswith('?')))
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser

