"""The fault campaign: every fault of the table in process, and over the wire what only processes can show.

    python3 -m psdyn_ros.tools.fault_campaign.campaign [--short] [--cycles N] [--seeds N] [--in-process]
        [--over-wire] [--output FILE]

Prints each condition with its trials, worst reaction against its bound and unsafe outputs, and writes a report. Ends
with 1 where a bound was broken or an output was unsafe.
"""

import argparse
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ...model.errors import PsdynError
from ..demo.session import graph, terminable
from ..timing.conditions import Meanwhile, conditions
from . import fault_report, in_process, motion_trials
from .over_dds import attacks as dds_attacks
from .over_dds import kills as dds_kills
from .over_dds.bench import LOOPBACK, TRANSPORTS, TTL, WireBench, environment

GOOD, BAD, UNUSABLE, INTERRUPTED = 0, 1, 2, 130
SEEDS, SHORT_SEEDS = 8, 1
MOTION_SEEDS = 3            # of each fault, plant, rate, level and state: 2,000 trials on each plant
WORKERS = 2                 # processes that watch motions
CYCLES, SHORT_CYCLES = 200, 2
REPORT = 'docs/reference/fault_report.md'


@dataclass(frozen=True)
class Options:
    """What a campaign tries."""

    seeds: int = SEEDS                  # of each way, state and level in process
    cycles: int = CYCLES                # of kill -9 and SIGSTOP
    motion_seeds: int = MOTION_SEEDS    # of each fault, plant, rate, level and state whose motion is watched; 0: none
    short: bool = False                 # whether one state of each of these faults is enough
    first: int = 0                      # seed; the same seeds, the same faults
    processes: bool = True              # whether the in-process half runs
    wire: bool = True                   # whether the half over the wire runs
    attacks: bool = True                # whether with its attacks
    ttl: float = TTL                    # s of commands over the wire
    output: str | None = None           # file of the report; None: none is written
    transport: str = LOOPBACK           # over the wire, one of TRANSPORTS
    quiet: bool = False                 # whether nothing is said about progress


def run(options):
    """Run the campaign of these `Options`; returns the exit code."""
    say = _progress if not options.quiet and sys.stdout.isatty() else (lambda text: None)
    meanwhile, began = Meanwhile(), time.monotonic()
    summaries, motions, kills, attacked, nulls = [], [], [], [], {}
    try:
        with terminable():
            if options.processes:
                summaries = in_process.summarize(in_process.run(options.seeds, first=options.first, progress=say))
                say('motions')
                seeds = range(options.first, options.first + options.motion_seeds)
                motions = list(motion_trials.run(motion_trials.jobs(seeds, short=options.short), WORKERS))
            seconds = time.monotonic() - began
            if options.wire:
                with dds_kills.NullLoop() as null:
                    kills, attacked, abandoned = _over_wire(options, say)
                    nulls = _null(null, abandoned)
    except KeyboardInterrupt:
        return INTERRUPTED
    except PsdynError as error:
        print(f'\npsdyn campaign: {error}', file=sys.stderr)
        return UNUSABLE
    say('')
    print('\n'.join([*fault_report.table(summaries), *fault_report.bad_trials(summaries)]) if summaries else '')
    print('\n'.join([*fault_report.motion_table(motions), *fault_report.missed_motions(motions)]) if motions else '')
    print('\n'.join(fault_report.verdicts(summaries, kills, attacked, motions)))
    for one in [kill for kill in kills if fault_report.wrong_kill(kill)] + [one for one in attacked if one.problem]:
        print(f'  {one}')
    if options.output:
        facts = {'run': f'seeds {options.first} to {options.first + options.seeds - 1} of each way, state and level; '
                        f'{options.first} over the wire',
                 'transport over the wire': options.transport,
                 'begun': time.strftime('%Y-%m-%d %H:%M %z', time.localtime(time.time() - time.monotonic() + began)),
                 'duration': f'{seconds:.0f} s in process, {time.monotonic() - began - seconds:.0f} s over the wire',
                 **conditions(), **meanwhile.report()}
        print('report:', fault_report.write(options.output, summaries, kills, attacked, facts, nulls, options.ttl,
                                            motions))
    return GOOD if fault_report.is_good(summaries, kills, attacked, motions) else BAD


def _over_wire(options, say):
    """([`Kill`], [`Attack`], controllers that stopped by themselves) of processes in domains of their own."""
    rng, attacked = np.random.default_rng(options.first), []
    with _wire(options) as bench:
        watch = dds_attacks.CommandWatch(bench)
        kills = list(dds_kills.run(bench, options.cycles, options.first, say))
        if options.attacks:
            attacked += dds_attacks.run(bench, watch, rng, say)
        attacked += _commands(watch)
        abandoned = bench.abandoned
    if options.attacks:
        with _wire(options, simulated_time=True) as bench:
            watch = dds_attacks.CommandWatch(bench)
            attacked += dds_attacks.run_clock(bench, watch, rng, say)
            attacked += _commands(watch)
    return kills, attacked, abandoned


def _commands(watch):
    """What the commands on the wire were, all together, as an `Attack`."""
    problem = f'{len(watch.unsafe)} unsafe: {watch.unsafe[0]}' if watch.unsafe else ''
    return [dds_attacks.Attack('every command on the wire, finite and in range', watch.messages, (), None, None, 0,
                               problem, row='F16')]


@contextmanager
def _wire(options, simulated_time=False):
    """A `WireBench` with its processes, in a domain of its own."""
    with tempfile.TemporaryDirectory() as folder:
        with graph(folder, environment(options.transport)) as (nodes, node, spin_once):
            yield WireBench(node, spin_once, nodes, folder, ttl=options.ttl, simulated_time=simulated_time)


def _null(null, abandoned):
    return {'wake-ups': f'{null.wakes}', 'late by a period or more': f'{null.late}',
            'worst lateness': f'{null.worst * 1e3:.1f} ms',
            'controllers that stopped by themselves before their signal, and were replaced': f'{abandoned}'}


def _progress(text):
    print(f'{text:<100.100}', end='\r', flush=True)


def main(args=None):
    """Run the campaign from the command line."""
    parser = argparse.ArgumentParser(prog='python3 -m psdyn_ros.tools.fault_campaign.campaign',
                                     description=__doc__.splitlines()[0])
    parser.add_argument('--short', action='store_true',
                        help=f'{SHORT_SEEDS} seed, motions in one state of each fault, {SHORT_CYCLES} cycles over the '
                             'wire, no attacks, no report')
    parser.add_argument('--cycles', type=int, metavar='N', help=f'kill -9 and SIGSTOP cycles (default: {CYCLES})')
    parser.add_argument('--seeds', type=int, metavar='N', help=f'of each trial in process (default: {SEEDS})')
    parser.add_argument('--first', type=int, default=0, metavar='N', help='first seed (default: %(default)s)')
    parser.add_argument('--in-process', action='store_true', help='this half only')
    parser.add_argument('--over-wire', action='store_true', help='this half only')
    parser.add_argument('--ttl', type=float, default=TTL, metavar='S',
                        help='of commands over the wire (default: %(default)s)')
    parser.add_argument('--transport', choices=tuple(TRANSPORTS), default=LOOPBACK,
                        help='over the wire (default: %(default)s)')
    parser.add_argument('--output', metavar='FILE', help=f'report (default: {REPORT}, with --short none)')
    given = parser.parse_args(args)
    for name in ('cycles', 'seeds'):
        if getattr(given, name) is not None and getattr(given, name) < 1:
            parser.error(f'--{name} {getattr(given, name)}: expected 1 or more')
    both = given.in_process == given.over_wire
    return run(Options(
        given.seeds or (SHORT_SEEDS if given.short else SEEDS),
        given.cycles or (SHORT_CYCLES if given.short else CYCLES),
        motion_seeds=SHORT_SEEDS if given.short else MOTION_SEEDS, short=given.short, first=given.first,
        processes=both or given.in_process, wire=both or given.over_wire, attacks=not given.short, ttl=given.ttl,
        transport=given.transport, output=given.output or (None if given.short else REPORT)))


if __name__ == '__main__':
    sys.exit(main())
