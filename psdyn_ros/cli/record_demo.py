"""`psdyn record-demo`: example recordings of a simulated crane, healthy and with faults."""

import argparse

from ..tools.recordings.cases import CASES, DURATION, PLAIN, SEED, SENSORS
from ._options import without_ros

HELP = 'record a simulated crane over ROS 2, healthy and with faults, for `validate` to find them'


def add_arguments(parser):
    """Add the arguments of the command to its parser."""
    parser.add_argument('--output', default='record_demo_output', metavar='DIR',
                        help='folder of the bags, the model and cases.yaml (%(default)s)')
    parser.add_argument('--cases', type=lambda text: tuple(text.split(',')), default=tuple(CASES), metavar='NAMES',
                        help=f"some of {','.join(CASES)}, separated by commas (all)")
    parser.add_argument('--duration', type=float, default=DURATION, metavar='S', help='of motion (%(default)g)')
    parser.add_argument('--lock-step', action=argparse.BooleanOptionalAction, default=True,
                        help='in simulated time, as fast as the nodes answer each other; else on the clock')
    parser.add_argument('--sensors', choices=SENSORS, default=PLAIN, help='0.1 mm and 0.5 bar, or exact (%(default)s)')
    parser.add_argument('--seed', type=int, default=SEED, metavar='S', help='of motion and sensors (%(default)d)')


def run(options):
    """Record; return the exit code."""
    try:
        from ..tools.recordings.record import run as record
    except ImportError as error:
        return without_ros('record-demo', error)
    record(options.output, cases=options.cases, duration=options.duration, lock_step=options.lock_step,
           sensors=options.sensors, seed=options.seed)
    return 0
