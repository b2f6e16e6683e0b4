"""`psdyn view`: a machine, a bag or a running robot in 3-D, in the browser.

Exit codes: 0 success, 2 unusable, 3 a page that cannot show everything.
"""

import sys
import threading
import webbrowser
from pathlib import Path

from ..model.errors import ModelError
from ..model.locate import find_config, find_machine, machine_names
from ._options import add_machine, at_least, chosen_topics, initial_positions, machine_help, without_ros

HELP = 'show a machine, a bag or a running robot in 3-D in the browser'
PARTIAL = 3


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    add_machine(parser, 'what', nargs='?', without=(), metavar='MACHINE|BAG',
                help=f'{machine_help()}; or a bag (folder, MCAP, SQLite)')
    parser.add_argument('--live', action='store_true', help='follow the joint states of a running robot (needs ROS 2)')
    parser.add_argument('--html', metavar='FILE', help='write one file that needs no server and no network, and exit')
    parser.add_argument('--urdf', metavar='FILE',
                        help='machine of a bag: URDF, or a name of the package (default: its /robot_description)')
    parser.add_argument('--hydraulics', metavar='FILE', help='cylinders of a bag, by which pressures become forces '
                        '(default: those of the machine of the package)')
    parser.add_argument('--initial', nargs='*', default=[], metavar='JOINT=POSITION', help='picks assembly modes')
    parser.add_argument('--loops-file', metavar='YAML', help='further loop closures')
    parser.add_argument('--allow-unphysical', action='store_true', help='accept inertias that no body can have')
    parser.add_argument('--topic', action='append', default=[], metavar='WHAT=TOPIC',
                        help='states or reference, of a bag also efforts and pressures; more than once for more')
    parser.add_argument('--timeout', type=float, default=10.0, metavar='S',
                        help='with --live: for robot_description, where no machine is given (10)')
    parser.add_argument('--host', default='127.0.0.1', metavar='ADDRESS',
                        help='to listen on (127.0.0.1: this computer only; 0.0.0.0: everybody in the network)')
    parser.add_argument('--port', type=at_least(0, 65535), default=8008, metavar='N',
                        help='first port to try (8008; 0: any)')
    parser.add_argument('--no-browser', action='store_true', help='do not open a browser')


def run(options):
    """Show it until Ctrl-C, or write the file of --html; return the exit code."""
    from ..validation.playback import is_bag

    if options.live:
        return _live(options)
    if options.what is None:
        raise ModelError('expected a MACHINE, a BAG or --live')
    page, code = _page_of_bag(options) if is_bag(options.what) else _page_of_machine(options)
    if options.html:
        with open(options.html, 'w', encoding='utf-8', errors='replace') as file:
            size = file.write(page)
        print(f'{options.html}: {size / 1e6:.2f} MB; opens in any browser, without network')
        return code
    from ..view.server import Server

    with Server(page, options.host, options.port) as server:
        _report(server, options)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
    return code


def _load(options, description):
    from ..api.load import load

    return load(description, initial=initial_positions(options.initial), loops_file=options.loops_file,
                allow_unphysical=options.allow_unphysical)


def _page_of_machine(options):
    from ..view import machine_page

    return machine_page(_load(options, find_machine(options.what))), 0


def _page_of_bag(options):
    from ..model.parameters.hydraulics import read_hydraulics
    from ..validation.bags.recording import BagError
    from ..validation.playback import description_in, recorded_motion
    from ..view import machine_page

    if not Path(options.what).exists():
        raise ModelError(f"'{options.what}': no such file or folder")
    manipulator = _load(options, find_machine(options.urdf) if options.urdf else description_in(options.what))
    hydraulics = options.hydraulics
    if hydraulics is None and options.urdf in machine_names():
        hydraulics = find_config(f'{options.urdf}_hydraulics.yaml')
    hydraulics = read_hydraulics(hydraulics, manipulator.actuators) if hydraulics else None
    try:
        motion, sentences = recorded_motion(options.what, manipulator, hydraulics=hydraulics,
                                            topics=chosen_topics(options.topic))
    except BagError as error:       # the machine can still be shown
        motion, sentences = None, (f'no motion is shown: {error}',)
    for sentence in sentences:
        print(f'psdyn: {sentence}', file=sys.stderr)
    return machine_page(manipulator, motion, messages=sentences), PARTIAL if sentences else 0


def _live(options):
    try:
        from ..nodes.observers.viewer import run as run_viewer
    except ImportError as error:
        return without_ros('view --live', error)
    if options.html:
        raise ModelError('--html writes what does not change; record a bag, and view that')
    topics = chosen_topics(options.topic)
    machine = options.what or options.urdf
    return run_viewer(_load(options, find_machine(machine)) if machine else None,
                      topics.get('states', 'joint_states'), topics.get('reference', '/controller/reference'),
                      host=options.host, port=options.port, timeout=options.timeout,
                      on_ready=lambda server: _report(server, options))


def _report(server, options):
    moved = f' (port {options.port} is in use)' if server.busy else ''
    print(f'{server.url}{moved}; Ctrl-C ends it', flush=True)
    if not options.no_browser:
        webbrowser.open(server.url)
